"""Rows in blocks against the same rows in memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from passes import Kept, log_total, passes_agree

import gordan
from gordan import rows
from gordan.rows.blocks import Blocks
from gordan.rows.memory import Dense


def cut(X, size):
    """X in blocks of so many rows."""
    whole = rows.stored(X)
    parts = [Kept(whole.take(np.arange(lo, min(lo + size, whole.n)))) for lo in range(0, whole.n, size)]
    return Blocks(parts, whole.d, whole.dtype)


@pytest.fixture(params=["dense", "sparse"])
def problem(request):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(103, 7)) * (rng.random((103, 7)) < 0.6)
    y = np.where(X @ rng.normal(size=7) > 0, 1, -1)
    X[:, 0] += 0.5 * y
    return (X if request.param == "dense" else sp.csr_array(X)), y


@pytest.mark.parametrize("size", [1, 10, 103])
@pytest.mark.parametrize("constant", [False, True])
def test_every_operation_agrees(problem, size, constant):
    X, y = problem
    ours = rows.of(cut(X, size), signs=y, constant=constant)
    theirs = rows.of(X, signs=y, constant=constant)
    rng = np.random.default_rng(0)
    w, p = rng.normal(size=theirs.d), rng.random(103)
    halves = (y < 0).astype(np.int8)
    assert ours.radius() == pytest.approx(theirs.radius(), rel=1e-15)
    np.testing.assert_allclose(ours.scores(w), theirs.scores(w), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(ours.combine(p), theirs.combine(p), rtol=1e-12)
    for log_p0, split in [(None, None), (np.log(p), halves)]:
        a, b = ours.softmin(w, log_p0, split), theirs.softmin(w, log_p0, split)
        np.testing.assert_allclose(a.combination, b.combination, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(a.scores, b.scores, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(log_total(a), log_total(b), rtol=1e-13)
        np.testing.assert_allclose(a.lowest, b.lowest, rtol=1e-14)
    assert ours.lowest(w, 9)[0].tolist() == theirs.lowest(w, 9)[0].tolist()
    some = np.array([100, 3, 3, 57, 0])
    np.testing.assert_array_equal(ours.take(some).dense(), theirs.take(some).dense())
    np.testing.assert_allclose(ours.gram(some), theirs.gram(some), rtol=1e-13)
    np.testing.assert_allclose(ours.gram(some, np.array([1, 99])), theirs.gram(some, np.array([1, 99])), rtol=1e-13)
    assert ours.passes == theirs.passes
    passes_agree(ours, theirs.dense(), rng.normal(size=(theirs.d, 3)), rng.normal(size=(103, 3)))


def test_verdict_margin_and_proof_are_those_of_the_rows_in_memory(problem):
    X, y = problem
    blocks = cut(X, 20)
    verdict = gordan.separate(blocks, y)
    assert verdict.status == "separable"
    assert gordan.verify(verdict.certificate, X, y)
    ours, theirs = (gordan.maximize_margin(data, y, tol=1e-9) for data in (blocks, X))
    assert ours.status == theirs.status == "solved"
    assert max(ours.margin[0], theirs.margin[0]) <= min(ours.margin[1], theirs.margin[1])
    np.testing.assert_allclose(ours.w, theirs.w, atol=1e-7)
    assert gordan.verify(ours.certificate, blocks, y)
    assert ours.certificate.data_hash == theirs.certificate.data_hash
    flipped = y.copy()
    flipped[:3] *= -1
    assert gordan.separate(blocks, flipped).status == gordan.separate(X, flipped).status


def test_a_pass_reads_every_block_once(problem):
    X, y = problem
    blocks = cut(X, 25)
    A = rows.of(blocks, signs=y)
    A.softmin(np.ones(A.d))
    assert [block.loads for block in blocks.blocks] == [1] * 5


def test_entries_that_are_not_finite_are_named():
    X = np.ones((10, 3))
    X[7, 2] = np.nan
    with pytest.raises(gordan.InputError, match=r"X\[7, 2\] is nan"):
        rows.of(cut(X, 4)).scores(np.ones(3))


def test_blocks_of_different_kinds_are_refused():
    parts = [Kept(Dense(np.ones((2, 2)))), Kept(rows.stored(sp.csr_array(np.ones((2, 2)))))]
    with pytest.raises(gordan.InputError, match="some blocks of X are dense"):
        rows.of(Blocks(parts, 2, np.float64)).take([0, 3])
