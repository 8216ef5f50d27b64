"""Every operation of `Rows` against a slow twin that forms A, over storages, types, shapes and odd inputs."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from passes import Kept, log_total, passes_agree
from scipy.special import logsumexp, softmax

from gordan import InputError, rows
from gordan.compiling import compiled, compiled_exactly
from gordan.rows import mapped, memory, threads
from gordan.rows.blocks import Blocks
from gordan.rows.memory import Dense
from gordan.rows.reads import DenseBlock, SparseBlock
from gordan.rows.storage import Block, Storage

STORAGES = ("dense", "sparse")
DTYPES = (np.float32, np.float64)
# one row, one column, fewer and more rows than a block of the kernels (4 to 256 rows), and no multiple of four
SHAPES = ((1, 1), (1, 7), (6, 1), (5, 3), (8, 4), (131, 3), (259, 6), (1027, 2), (11, 9_000))
BASE = np.array([[1.0, 0, -2, 0], [0, 0, 0, 0], [3, 4, 0, 5], [0, -6, 0, 7], [8, 0, 0, 9]])


# ---- the twin -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Twin:
    """The operations of `Rows` on a float64 matrix A that is really there."""

    A: np.ndarray

    def weights(self, v, log_p0=None, halves=None):
        """p of the fused pass."""
        z = (0.0 if log_p0 is None else log_p0) - self.A @ v
        if halves is None:
            return softmax(z)
        p = np.empty(len(self.A))
        for half in (0, 1):
            p[halves == half] = softmax(z[halves == half]) / 2
        return p

    def softmin(self, v, log_p0=None, halves=None):
        s = self.A @ v
        z = (0.0 if log_p0 is None else log_p0) - s
        groups = [np.full(len(s), True)] if halves is None else [halves == 0, halves == 1]
        combination = self.A.T @ self.weights(v, log_p0, halves)
        return combination, s, [logsumexp(z[g]) for g in groups], [s[g].min() for g in groups]

    def lowest(self, w, k):
        order = np.argsort(self.A @ w, kind="stable")[:k]
        return order, (self.A @ w)[order]

    def radius(self, p):
        return np.linalg.norm(self.A, ord=p, axis=1).max()


def as_stored(X, storage):
    return sp.csr_matrix(X) if storage == "sparse" else X


def matrix(n, d, dtype, seed=0):
    """Some zeros, an empty row where there are several."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    if n > 2:
        X[n // 2] = 0
    return X.astype(dtype)


def pair_of(X, storage="dense", signs=None, constant=False, scale=1.0, threads=None):
    """The rows, and their twin."""
    A = np.asarray(X, dtype=np.float64)
    A = np.column_stack((A, np.ones(len(A)))) if constant else A
    A = scale * (A if signs is None else np.asarray(signs)[:, None] * A)
    made = rows.of(as_stored(X, storage), signs, constant=constant, threads=threads)
    return made if scale == 1.0 else made.scaled(scale), Twin(A)


def close(got, want, scale=1.0, rtol=1e-12):
    """|got - want| ≤ rtol · scale (elementwise): `scale` is what the terms of a sum add up to in absolute value."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    assert (np.abs(got - want) <= rtol * (np.abs(want) + scale) + 1e-300).all(), np.abs(got - want).max()


def same_softmin(made, twin, v, log_p0=None, halves=None, rtol=1e-12):
    got = made.softmin(v, log_p0, None if halves is None else halves.astype(np.int8))
    combination, s, total, lowest = twin.softmin(v, log_p0, halves)
    size = np.abs(twin.A) @ np.abs(v)
    close(got.scores, s, size, rtol)
    close(log_total(got), total, 1 + size.max(), rtol)
    close(got.lowest, lowest, size.max(), rtol)
    assert min(got.lowest) == got.scores.min()
    # an error of the scores is an error of the exponents
    close(got.combination, combination, np.abs(twin.A).T @ twin.weights(v, log_p0, halves), rtol * (1 + size.max()))


def halves_of(n):
    return np.arange(n) % 3 % 2


CASES = list(itertools.product(STORAGES, DTYPES, SHAPES, ("plain", "signs, constant, scale")))


def label_of(case):
    storage, dtype, (n, d), variant = case
    return f"{storage}-{dtype.__name__}-{n}x{d}-{variant.split(',')[0]}"


@pytest.fixture(params=CASES, ids=label_of)
def pair(request):
    storage, dtype, (n, d), variant = request.param
    X = matrix(n, d, dtype, seed=n + d)
    if variant == "plain":
        return pair_of(X, storage)
    signs = np.where(np.arange(n) % 3 == 1, -1, 1)
    return pair_of(X, storage, signs, constant=True, scale=0.37)


def vector(length, seed=1):
    return np.random.default_rng(seed).standard_normal(length)


# ---- each operation -------------------------------------------------------------------------------------------------


def test_scores(pair):
    made, twin = pair
    w = vector(made.d)
    got = made.scores(w)
    assert got.dtype == np.float64
    close(got, twin.A @ w, np.abs(twin.A) @ np.abs(w))


def test_combine(pair):
    made, twin = pair
    p = vector(made.n)
    p[::5] = 0
    got = made.combine(p)
    assert got.dtype == np.float64
    close(got, twin.A.T @ p, np.abs(twin.A).T @ np.abs(p))


def test_curved(pair):
    made, twin = pair
    h, p = np.abs(vector(made.n)), vector(made.d)
    h[::3] = 0
    got = made.curved(h, p)
    assert got.dtype == np.float64
    close(got, twin.A.T @ (h * (twin.A @ p)), np.abs(twin.A).T @ (h * (np.abs(twin.A) @ np.abs(p))))


@pytest.mark.parametrize("start", ["uniform", "log_p0"])
@pytest.mark.parametrize("split", ["whole", "halves"])
def test_softmin(pair, start, split):
    made, twin = pair
    split = split if made.n > 1 else "whole"  # one row has no halves
    log_p0 = None if start == "uniform" else vector(made.n, seed=3)
    same_softmin(made, twin, vector(made.d) / np.sqrt(made.d), log_p0, halves_of(made.n) if split == "halves" else None)


@pytest.mark.parametrize("split", ["whole", "halves"])
def test_a_stack_shares_the_pass(pair, split):
    """Every v of a stack gets the bits it gets alone, and together they are one pass."""
    made, _ = pair
    stack = np.array([vector(made.d, seed) / np.sqrt(made.d) for seed in range(3)])
    log_p0 = vector(made.n, seed=3)
    halves = halves_of(made.n).astype(np.int8) if split == "halves" and made.n > 1 else None
    before = made.passes
    together = made.softmins(stack, log_p0, halves)
    assert made.passes == before + 1
    assert len(together) == 3
    for one, v in zip(together, stack, strict=True):
        for got, want in zip(one, made.softmin(v, log_p0, halves), strict=True):
            assert np.array_equal(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 15, 16, 17, 31, 32, 33, 100])
def test_columns_left_over_by_the_vector_loop(d, dtype):
    """Whole strips of columns and the rest, for 4, 5 and 300 rows (left over by fours, and more than a block)."""
    for n in (4, 5, 300):
        made, twin = pair_of(
            np.random.default_rng(d).standard_normal((n, d)).astype(dtype), signs=np.where(np.arange(n) % 2, 1, -1)
        )
        w = vector(d)
        close(made.scores(w), twin.A @ w, np.abs(twin.A) @ np.abs(w))
        same_softmin(made, twin, w / np.sqrt(d), vector(n), halves_of(n))


def test_no_row_with_weight():
    made = rows.of(np.ones((3, 2)))
    with pytest.raises(InputError, match="log_p0"):
        made.softmin(np.ones(2), np.full(3, -np.inf))
    with pytest.raises(InputError, match="each group needs a row"):
        made.softmin(np.ones(2), None, np.zeros(3, np.int8))


def test_an_empty_stack():
    with pytest.raises(InputError, match="one vector or more"):
        rows.of(np.ones((3, 2))).softmins(np.empty((0, 2)))


@pytest.mark.parametrize("k", [1, 2, 7, 10**6])
def test_lowest(pair, k):
    made, twin = pair
    w = vector(made.d)
    i, s = made.lowest(w, k)
    order, _ = twin.lowest(w, k)
    assert len(i) == len(s) == min(k, made.n)
    assert (np.diff(s) >= 0).all()
    close(s, (twin.A @ w)[order], np.abs(twin.A).sum(axis=1).max() * 5)
    close(s, (twin.A @ w)[i], np.abs(twin.A).sum(axis=1).max() * 5)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 7.5, np.inf])
def test_radius(pair, p):
    made, twin = pair
    close(made.radius(p), twin.radius(p))


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_moments_of_rows_of_any_size(storage, size):
    """Rows are scaled before they are squared: neither their squares nor that of the scale has room in float64."""
    rng = np.random.default_rng(8)
    X, q, y = rng.normal(size=(30, 4)), rng.random(30), np.where(rng.random(30) < 0.5, -1.0, 1.0)
    made = rows.of(storage(X * size), signs=y, constant=size).scaled(1 / size)
    A = y[:, None] * np.column_stack((X, np.ones(30)))
    products, sums, total = made.moments(q)
    np.testing.assert_allclose(products, (A.T * q) @ A, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sums, A.T @ q, rtol=1e-12, atol=1e-12)
    assert total == pytest.approx(q.sum(), rel=1e-13)


def test_take(pair):
    made, twin = pair
    i = np.array([made.n - 1, 0, made.n // 2, 0])
    taken = made.take(i)
    part = Twin(twin.A[i])
    w, p = vector(made.d), vector(4, seed=4)
    assert (taken.n, taken.d, taken.dtype) == (4, made.d, made.dtype)
    close(taken.scores(w), part.A @ w, np.abs(part.A) @ np.abs(w))
    close(taken.combine(p), part.A.T @ p, np.abs(part.A).T @ np.abs(p))
    close(taken.radius(3.0), part.radius(3))
    same_softmin(taken, part, w / np.sqrt(made.d), p, np.array([0, 1, 1, 0]))


def test_scaled(pair):
    made, twin = pair
    w = vector(made.d)
    other = made.scaled(3.0)
    close(other.scores(w), 3.0 * (twin.A @ w), 3 * np.abs(twin.A) @ np.abs(w))
    close(other.scaled(0.5).radius(2.0), 1.5 * twin.radius(2))
    close(made.scores(w), twin.A @ w, np.abs(twin.A) @ np.abs(w))


@pytest.mark.parametrize("weighted", [False, True])
def test_gram(pair, weighted):
    made, twin = pair
    i, j = np.arange(made.n)[::-2][:40], np.arange(made.n)[: min(made.n, 33)]
    weights = np.random.default_rng(5).random(made.d) if weighted else None
    spread = np.ones(made.d) if weights is None else weights
    size = np.abs(twin.A)
    close(made.gram(i, weights=weights), (twin.A[i] * spread) @ twin.A[i].T, (size[i] * spread) @ size[i].T)
    before = made.passes
    close(made.gram(i, j, weights), (twin.A[i] * spread) @ twin.A[j].T, (size[i] * spread) @ size[j].T)
    assert made.passes - before == pytest.approx((len(i) + len(j)) / made.n)


def test_gram_of_many_columns(monkeypatch):
    """Blocks of columns (dense) and of rows (sparse), the last one shorter."""
    from gordan.rows import memory

    monkeypatch.setattr(memory, "GRAM_BLOCK", 64)
    for storage in STORAGES:
        made, twin = pair_of(matrix(11, 45, np.float32, seed=6), storage, constant=True, scale=0.3)
        i, weights = np.array([3, 0, 10, 7, 7]), np.linspace(0.5, 2.0, 46)
        close(made.gram(i), twin.A[i] @ twin.A[i].T)
        close(made.gram(i, np.arange(11), weights), (twin.A[i] * weights) @ twin.A.T)


def test_squares(pair):
    made, twin = pair
    close(made.squares(), (twin.A**2).sum(axis=1))
    assert made.passes == 1


def test_squared(pair):
    made, twin = pair
    squared = made.squared()
    close(squared.dense(), twin.A**2)
    p = np.linspace(0.0, 1.0, made.n)
    close(squared.combine(p), (twin.A**2).T @ p)
    assert (made.passes, squared.passes) == (0, 1)


def test_columns(pair):
    made, twin = pair
    j = np.unique(np.array([made.d - 1, 0, made.d // 2]))[::-1]
    got = made.columns(j)
    assert got.dtype == np.float64
    got = got.toarray()
    close(got, twin.A[:, j])
    assert made.passes == pytest.approx(len(j) / made.d)


def test_dense(pair):
    made, twin = pair
    close(made.dense(), twin.A)


@pytest.mark.parametrize("pair", [case for case in CASES if case[0] != "sparse"], ids=label_of, indirect=True)
def test_dense_rows_have_no_csr(pair):
    assert pair[0].csr() is None


@pytest.mark.parametrize("pair", [case for case in CASES if case[0] == "sparse"], ids=label_of, indirect=True)
def test_csr(pair):
    made, twin = pair
    got = made.csr()
    assert got.dtype == np.float64
    close(got.toarray(), twin.A)
    before = made.scores(vector(made.d))
    got.data *= 2.0  # a copy: the rows do not change with it
    np.testing.assert_array_equal(made.scores(vector(made.d)), before)


def test_csr_of_duplicate_entries():
    X = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    made = rows.of(X)
    assert made.csr().toarray().tolist() == made.columns(np.array([0, 1])).toarray().tolist() == [[2.0, 5.0]]


@pytest.mark.parametrize("way", [compiled, compiled_exactly], ids=["rows", "io"])
def test_kernels_compile_where_nothing_can_be_cached(way):
    """As in a folder that cannot be written to: there is no place for what comes from no file."""
    made: dict = {}
    exec(compile("def twice(x):\n    return 2.0 * x", "<no file>", "exec"), made)
    assert way(made["twice"])(1.25) == 2.5


@pytest.mark.parametrize("storage", STORAGES)
def test_passes_are_counted(storage):
    made = rows.of(as_stored(matrix(8, 3, np.float64), storage))
    w, p = vector(3), vector(8)
    cost = [
        (lambda: made.scores(w), 1),
        (lambda: made.combine(p), 1),
        (lambda: made.curved(p, w), 1),
        (lambda: made.softmin(w), 1),
        (lambda: made.softmin(w, p, halves_of(8).astype(np.int8)), 1),
        (lambda: made.lowest(w, 3), 1),
        (lambda: made.radius(), 1),
        (lambda: made.take([1, 2, 2]), 3 / 8),
        (lambda: made.scaled(2.0), 0),
    ]
    for operation, passes in cost:
        before = made.passes
        operation()
        assert made.passes == before + passes
    taken, scaled = made.take([0, 1]), made.scaled(2.0)
    assert taken.passes == scaled.passes == 0
    before = made.passes
    taken.scores(w)
    scaled.scores(w)
    assert (taken.passes, scaled.passes, made.passes) == (1, 1, before)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("k", [1, 3, 4, 5, 9])
def test_ties_go_to_the_earlier_row(storage, k):
    X = np.array([2.0, 1, 0, 1, 0, 1, 0, 2, 1])[:, None]
    i, s = rows.of(as_stored(X, storage)).lowest(np.ones(1), k)
    assert i.tolist() == [2, 4, 6, 1, 3, 5, 8, 0, 7][:k]
    assert s.tolist() == X[i, 0].tolist()


@pytest.mark.parametrize("storage", STORAGES)
def test_signs_and_constant_exactly(storage):
    made = rows.of(as_stored(np.array([[1.0, 2.0], [3.0, 4.0]]), storage), [1, -1], constant=True)
    assert made.d == 3
    assert made.scores(np.array([1.0, 1.0, 10.0])).tolist() == [13.0, -17.0]
    assert made.combine(np.array([0.5, 0.25])).tolist() == [-0.25, 0.0, 0.25]
    assert made.radius(np.inf) == 4.0
    assert made.take([1]).scores(np.array([1.0, 0.0, 10.0])).tolist() == [-13.0]


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_radius_neither_overflows_nor_underflows(constant, size):
    X = size * np.array([[3.0, 4.0], [1.0, 0.0]])
    expected = np.hypot(5 * size, 1.0) if constant else 5 * size
    assert rows.of(X, constant=constant).radius(2.0) == pytest.approx(expected, rel=1e-14)


# ---- any storage ----------------------------------------------------------------------------------------------------


class Smallest(Storage):
    """A storage with what a `Storage` must have and nothing else, in plain NumPy: the least that a backend is."""

    kind = "smallest"

    def __init__(self, X):
        self.X, self.dtype = X, X.dtype
        self.n, self.d, self.entries = *X.shape, X.size

    def scores(self, w, b, signs, threads):
        return (signs * (self.X @ w + b).T).T

    def combine(self, q, threads):
        return self.X.T @ q

    def norms(self, p, threads):
        return np.where(np.isfinite(self.X).all(axis=1), np.linalg.norm(self.X, ord=p, axis=1), np.nan)

    def take(self, i):
        return Dense(self.X[i])

    def each_block(self, work, over_rows=(), shared=(), rows=None, *, step=0, added=False):
        rows = np.arange(self.n) if rows is None else rows
        for lo in range(0, len(rows), step or 7):
            some = rows[lo : lo + (step or 7)]
            yield work(DenseBlock(self.X[some], int(some[0])), *(values[some] for values in over_rows), *shared)


def test_the_smallest_storage_is_enough():
    members = {name for name in {*vars(Storage), *Storage.__annotations__} if not name.startswith("_")}
    assert members <= {*dir(Smallest(BASE))}
    assert {name for name in vars(Smallest) if not name.startswith("_")} == {*Storage.__abstractmethods__, "kind"}
    demands = {name for name in {*vars(Block), *Block.__annotations__} if not name.startswith("_")}
    for block in (DenseBlock(BASE), SparseBlock(np.ones(1), np.zeros(1, np.int32), np.array([0, 1]), 4)):
        assert demands <= {*dir(block)}
    X, signs = matrix(50, 4, np.float64), np.where(np.arange(50) % 3, 1, -1).astype(np.int8)
    made = rows.Rows(Smallest(X), signs, constant=True, scale=0.5)
    twin = Twin(0.5 * signs[:, None] * np.column_stack((X, np.ones(50))))
    assert [made.in_memory, made.reduces, made.sparse, made.storage.mapped] == [False] * 4
    w, p, some = vector(5), vector(50), np.array([7, 0, 49])
    close(made.scores(w), twin.A @ w, 1.0)
    close(made.combine(p), twin.A.T @ p, np.abs(twin.A).T @ np.abs(p))
    same_softmin(made, twin, w)
    same_softmin(made, twin, w, p, halves_of(50))
    assert made.lowest(w, 3)[0].tolist() == twin.lowest(w, 3)[0].tolist()
    close(made.radius(3.0), twin.radius(3))
    close(made.squares(), (twin.A**2).sum(axis=1))
    close(made.gram(some), twin.A[some] @ twin.A[some].T, 1.0)
    assert made.take(some).in_memory
    X[20, 1] = np.nan
    with pytest.raises(InputError, match=r"X\[20, 1\] is nan"):
        made.scores(w)


def _products(x, q, W):
    return [x.T @ (q * (x @ W))]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_derived_operations_agree_with_those_that_storages_override(storage, dtype, monkeypatch):
    X, q, some = matrix(30, 4, dtype), np.abs(vector(30)), np.array([7, 0, 29])
    held = rows.stored(as_stored(X, storage))
    signs, w = np.where(np.arange(30) % 3, 1, -1).astype(np.int8), vector(8).reshape(2, 4)
    for log_p0, groups in ((None, None), (vector(30), halves_of(30))):
        given = w, np.zeros(2), signs, 0.5, log_p0, groups, 1
        (ours, scores), (theirs, expected) = Storage.softmin(held, *given), held.softmin(*given)
        close(scores, expected, 1.0)
        shrink = np.exp(theirs.tally[:, 0] - ours.tally[:, 0])  # the peaks may differ
        close(ours.totals, theirs.totals * shrink, 1.0)
        close(ours.tally[:, 2], theirs.tally[:, 2] * shrink, 1.0)
        close(ours.tally[:, 3:], theirs.tally[:, 3:], 1.0)
        close(ours.acc, theirs.acc * shrink[:, :, None], 1.0)
    monkeypatch.setattr("gordan.rows.storage.MAX_FETCHED_ENTRIES", 28)
    close(Storage.second_moments(held, q, 1), held.second_moments(q, 1), 1.0)
    close(Storage.reduce(held, _products, (q[:, None],), (w.T,), 1)[0], X.T @ (q[:, None] * (X @ w.T)), 1.0)
    close(Storage.gram(held, some, some, 0.5), held.gram(some, some, 0.5), 1.0)
    assert np.array_equal(Storage.plain(held), X)
    assert [(i, *map(np.ndarray.tolist, row)) for i, *row in Storage.each_row(held, some)] == [
        (i, *map(np.ndarray.tolist, row)) for i, *row in held.each_row(some)
    ]
    assert Storage.first_not_finite(held) is held.first_not_finite() is None
    X[20, 1] = np.inf
    held = rows.stored(as_stored(X, storage))
    assert Storage.first_not_finite(held) == held.first_not_finite() == (20, 1, np.inf)


# ---- with Hypothesis ------------------------------------------------------------------------------------------------


def entries(dtype, size):
    width = 32 if dtype == np.float32 else 64
    return st.floats(-size, size, width=width).filter(lambda x: x == 0 or abs(x) > 1e-30)


@st.composite
def problems(draw):
    dtype = draw(st.sampled_from(DTYPES))
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    X = draw(hnp.arrays(dtype, (n, d), elements=entries(dtype, 64)))
    signs = draw(st.none() | hnp.arrays(np.int8, n, elements=st.sampled_from([-1, 1])))
    constant = draw(st.booleans())
    scale = draw(st.sampled_from([1.0, 0.01, 3.0]))
    return draw(st.sampled_from(STORAGES)), X, signs, constant, scale


@settings(max_examples=60, deadline=None)
@given(problem=problems(), data=st.data(), k=st.integers(1, 4))
def test_any_block_of_vectors(problem, data, k):
    """Scores and combinations of k vectors at a time, and second moments, in memory, in a file and in blocks."""
    storage, X, signs, constant, scale = problem
    made, twin = pair_of(X, storage, signs, constant, scale)
    W = data.draw(hnp.arrays(np.float64, (twin.A.shape[1], k), elements=entries(np.float64, 8)))
    P = data.draw(hnp.arrays(np.float64, (len(X), k), elements=entries(np.float64, 8)))
    whole = made.storage
    cuts = data.draw(st.lists(st.integers(1, len(X)), max_size=2).map(lambda ends: sorted({0, *ends, len(X)})))
    parts = [Kept(whole.take(np.arange(lo, hi))) for lo, hi in itertools.pairwise(cuts)]
    for where in (whole, Blocks(parts, whole.d, whole.dtype), Smallest(X.astype(np.float64))):
        passes_agree(replace(made, storage=where), twin.A, W, P)


def read(block, numbers, factor):
    """Where the block begins, its entries spread out, and what came with it."""
    place, columns, values = block.entries()
    X = np.zeros((block.n, block.d))
    X[place, columns] = values
    assert (block.dot(np.ones(block.d))[0] == block.by_row(np.add, lambda values, _: values.astype(np.float64))).all()
    return block.first, X, numbers * factor


@settings(max_examples=60, deadline=None)
@given(problem=problems(), data=st.data(), size=st.integers(1, 30), step=st.integers(0, 5))
def test_any_reads_for_proofs(problem, data, size, step):
    """All rows or some of them, in blocks of some size or that end at multiples of a number, come once and in order."""
    storage, X, *_ = problem
    X, n = np.round(X), len(X)
    whole = rows.stored(as_stored(X, storage))
    cuts = data.draw(st.lists(st.integers(1, n), max_size=2).map(lambda ends: sorted({0, *ends, n})))
    parts = [Kept(whole.take(np.arange(lo, hi))) for lo, hi in itertools.pairwise(cuts)]
    some = np.flatnonzero(data.draw(hnp.arrays(np.bool_, n)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gordan.rows.reads.BLOCK_ENTRIES", size)
        patch.setattr("gordan.rows.reads.MIN_ENTRIES_FOR_THREADS", 20)
        for held in (whole, Blocks(parts, whole.d, whole.dtype), Smallest(X)):
            found = list(held.each_block(read, (np.arange(n),), (2,), step=step))
            assert [first for first, *_ in found] == [0, *np.cumsum([len(part) for _, part, _ in found])[:-1]]
            assert np.array_equal(np.concatenate([part for _, part, _ in found]), X)
            assert np.array_equal(np.concatenate([numbers for *_, numbers in found]), 2 * np.arange(n))
            if step and held is not whole and isinstance(held, Blocks):
                assert all(first // step == (first + len(part) - 1) // step for first, part, _ in found)
            chosen = [np.empty((0, X.shape[1])), *(part for _, part, _ in held.each_block(read, (np.arange(n),), (2,), some))]
            assert np.array_equal(np.concatenate(chosen), X[some])
            for i, columns, values in held.each_row(np.append(some, 0)):
                assert columns.tolist() == np.flatnonzero(X[i]).tolist()
                assert values.tolist() == X[i][columns].tolist()
            plain = held.plain()
            assert np.array_equal(plain.toarray() if sp.issparse(plain) else plain, X)
            copy = held.snapshot(1 << 20)
            assert (copy is None) == (held is not whole)
            assert held.snapshot(0) is None


@pytest.mark.parametrize("density", [0.02, 0.9])
@pytest.mark.parametrize("storage", [*STORAGES, "map"])
def test_second_moments_of_many_rows(storage, density, tmp_path, monkeypatch):
    """Several ranges of rows and several pieces of each, loops and spread rows, whatever the number of threads."""
    monkeypatch.setattr(memory, "PIECE_ENTRIES", 1 << 12)
    rng = np.random.default_rng(4)
    X = (rng.standard_normal((40_000, 23)) * (rng.random((40_000, 23)) < density)).astype(np.float32)
    h = rng.random(len(X)) * (rng.random(len(X)) < 0.5)
    if storage == "map":
        np.save(tmp_path / "X.npy", X)
        monkeypatch.setattr(mapped, "LARGE_FILE_BYTES", 1 << 10)
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
    expected = (X.T.astype(np.float64) * h) @ X
    found = [rows.of(as_stored(X, storage), threads=threads).moments(h)[0] for threads in (1, 3)]
    np.testing.assert_allclose(found[0], expected, rtol=1e-12, atol=1e-10)
    assert np.array_equal(*found)
    assert np.array_equal(found[0], found[0].T)


def test_wrong_blocks_of_vectors_are_named():
    made = rows.of(BASE)
    for W in (np.ones((made.d + 1, 2)), np.ones((made.d, 0))):
        with pytest.raises(InputError, match=r"w must be vectors over the \d+ columns, one in each column; its shape is"):
            made.scores(W)
    with pytest.raises(InputError, match=r"p must be vectors over the \d+ rows"):
        made.combine(np.ones((made.n + 1, 2)))
    X = np.array([[1.0, np.nan], [1.0, 2.0]])
    with pytest.raises(InputError, match=r"X\[0, 1\] is nan"):
        rows.of(X).scores(np.ones((2, 2)))


@pytest.mark.parametrize("storage", STORAGES)
def test_a_direction_from_second_moments(storage):
    made, twin = pair_of(matrix(60, 5, np.float64), storage, constant=True)
    H, sums, total = made.moments(np.ones(60))
    b = vector(6)
    np.testing.assert_allclose(H @ made.solve(H, b), b, rtol=1e-9, atol=1e-9)
    assert made.solve(-H, b) is None
    np.testing.assert_allclose(sums, twin.A.sum(axis=0), rtol=1e-12)
    assert total == 60.0


@settings(max_examples=150, deadline=None)
@given(problem=problems(), data=st.data())
def test_any_rows(problem, data):
    storage, X, signs, constant, scale = problem
    before = X.copy()
    made, twin = pair_of(X, storage, signs, constant, scale)
    n, d = twin.A.shape
    w = data.draw(hnp.arrays(np.float64, d, elements=entries(np.float64, 8)))
    p = data.draw(hnp.arrays(np.float64, n, elements=entries(np.float64, 8)))
    size = np.abs(twin.A) @ np.abs(w)
    s = made.scores(w)
    close(s, twin.A @ w, size)
    close(made.combine(p), twin.A.T @ p, np.abs(twin.A).T @ np.abs(p))
    close(s @ p, w @ made.combine(p), size @ np.abs(p))
    same_softmin(made, twin, w)
    same_softmin(made, twin, w, p)
    if n > 1:
        same_softmin(made, twin, w, p, halves_of(n))
    i, lowest = made.lowest(w, 3)
    assert i.tolist() == np.argsort(s, kind="stable")[:3].tolist()
    assert (lowest == s[i]).all()
    close(made.radius(3.0), twin.radius(3))
    assert np.array_equal(X, before)


@settings(max_examples=50, deadline=None)
@given(
    s=hnp.arrays(np.float64, st.integers(1, 400), elements=st.floats(-1e5, 1e5)),
    storage=st.sampled_from(STORAGES),
    constant=st.booleans(),
)
def test_any_scores(s, storage, constant):
    """Scores of any size, through one column."""
    made, twin = pair_of(s[:, None], storage, constant=constant)
    v = np.array([1.0, 0.0])[: made.d]
    got, p = made.softmin(v), softmax(-s)
    close(got.combination, twin.A.T @ p, np.abs(twin.A).T @ p, 1e-11)
    close(log_total(got)[0], logsumexp(-s), 1.0)
    assert got.lowest[0] == s.min()


# ---- enormous scores ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("constant", [False, True], ids=["plain", "constant"])
@pytest.mark.parametrize("split", ["whole", "halves"])
@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
@pytest.mark.parametrize("step", [0.01, 39.0, 41.0, 1e5])
def test_enormous_scores(storage, constant, split, order, step):
    """No overflow and no NaN (warnings are errors) however often the running peak is lifted, within blocks and across."""
    n = 601
    s = {"ascending": np.arange(n), "descending": np.arange(n)[::-1], "shuffled": np.random.default_rng(0).permutation(n)}[order]
    other = np.random.default_rng(1).standard_normal((n, 2))
    X = np.column_stack((step * (s - n // 2), other))
    signs = np.where(np.arange(n) % 2, 1, -1)
    X *= signs[:, None]
    made, twin = pair_of(X, storage, signs, constant)
    v = np.array([1.0, 0, 0, 0])[: made.d]
    halves = (np.arange(n) % 3 == 0).astype(int) if split == "halves" else None
    got = made.softmin(v, None, None if halves is None else halves.astype(np.int8))
    combination, scores, total, lowest = twin.softmin(v, None, halves)
    assert np.isfinite(got.combination).all()
    assert (got.scores == scores).all()
    assert got.lowest == list(lowest)
    close(log_total(got), total, 1.0)
    close(got.combination, combination, np.abs(twin.A).T @ twin.weights(v, None, halves))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("sign", [1, -1])
def test_scores_near_the_end_of_the_floats(storage, sign):
    s = sign * np.array([1e300, -1e300, 0.0, 1e299])
    got = rows.of(as_stored(s[:, None], storage)).softmin(np.ones(1))
    assert got.combination[0] == got.lowest[0] == -1e300
    assert log_total(got)[0] == 1e300


def large_combination(X, v, storage):
    """Aᵀp of the fused pass in units of the largest entry."""
    return rows.of(as_stored(X, storage)).softmin(v).combination / np.abs(X).max()


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("size", [1e280, 1e292, 1e300, 1e306])
def test_large_rows_below_the_running_peak(storage, size):
    """The second row has e^38 times the weight of the first: times its entries that may be no float64, where p times them is."""
    X = size * np.array([[1.0, 1.0], [0.62, -1.0], [0.61, 0.5]])
    v = np.array([100.0 / size, 0.0])
    got = large_combination(X, v, storage)
    assert np.allclose(got, (X / size).T @ softmax(-(X @ v)), rtol=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
def test_many_large_rows(storage):
    got = large_combination(np.full((5, 1), 1e308), np.zeros(1), storage)
    assert got[0] == pytest.approx(1.0, rel=1e-15)


# ---- rows of weight zero --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("split", ["whole", "halves"])
@pytest.mark.parametrize("zeros", ["first", "every second", "first block", "last", "all but one a half"])
@pytest.mark.parametrize("constant", [False, True])
def test_weight_zero(storage, split, zeros, constant):
    """log p_0 = -inf is the row left out, though its score is the lowest of all."""
    n = 700
    X = matrix(n, 3, np.float64)
    gone = {
        "first": np.arange(n) < 1,
        "every second": np.arange(n) % 2 == 0,
        "first block": np.arange(n) < 300,
        "last": np.arange(n) == n - 1,
        "all but one a half": ~np.isin(np.arange(n), (505, 506)),
    }[zeros]
    X[gone, 0] -= 1e4
    halves = (np.arange(n) % 4 > 1).astype(int) if split == "halves" else None
    log_p0 = np.where(gone, -np.inf, vector(n))
    v = np.array([1.0, -0.5, 2.0, 0.3])[: 3 + constant]
    made, _ = pair_of(X, storage, constant=constant)
    _, left = pair_of(X[~gone], storage, constant=constant)
    got = made.softmin(v, log_p0, None if halves is None else halves.astype(np.int8))
    combination, _, total, _ = left.softmin(v, log_p0[~gone], None if halves is None else halves[~gone])
    close(got.combination, combination, np.abs(left.A).max(), 1e-12)
    close(log_total(got), total, 1.0)


# ---- threads --------------------------------------------------------------------------------------------------------


def large(storage, dtype):
    """Large enough that several threads are worth it, and not a multiple of anything."""
    n, d = 40_003, 16
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)).astype(dtype)
    if storage == "dense":
        return X
    kept = rng.random((n, d)) < 0.7
    return sp.csr_matrix(X * kept)


def everything(made):
    """The results of every pass."""
    w, p = vector(made.d), np.abs(vector(made.n, seed=2))
    halves = (np.arange(made.n) % 2).astype(np.int8)
    log_p0 = np.where(np.arange(made.n) < made.n // 2, -np.inf, 0.0)  # the first chunks have no weight at all
    soft = [made.softmin(w), made.softmin(w, np.log(p)), made.softmin(w, np.log(p), halves), made.softmin(w, log_p0)]
    fused = [part for one in soft for part in map(np.asarray, (one.combination, one.scores, log_total(one), one.lowest))]
    return [made.scores(w), made.combine(p), *fused, np.array([made.radius(2.0), made.radius(3.0)]), *made.lowest(w, 5)]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_number_of_threads_changes_no_bit(storage, dtype):
    """Nor does repetition: rows are cut into chunks by their size alone, and chunks are merged in order."""
    X = large(storage, dtype)
    one = everything(rows.of(X, threads=1))
    for count in (1, 2, 3, 3, 7):
        assert all(np.array_equal(x, y) for x, y in zip(one, everything(rows.of(X, threads=count)), strict=True))


@pytest.mark.parametrize("storage", STORAGES)
def test_threads_match_the_twin(storage):
    X = large(storage, np.float64)
    made, twin = rows.of(X, threads=2), Twin(X.toarray() if storage == "sparse" else X)
    w, p = vector(made.d), vector(made.n)
    close(made.scores(w), twin.A @ w, 20.0)
    close(made.combine(p), twin.A.T @ p, np.abs(twin.A).T @ np.abs(p))
    same_softmin(made, twin, w)
    same_softmin(made, twin, w, p, (np.arange(made.n) % 2))
    close(made.radius(2.0), twin.radius(2))


def test_threads_from_many_callers():
    """Several threads of the caller may use the same rows at once."""
    X = large("dense", np.float64)
    made, w = rows.of(X, threads=2), vector(16)
    want = made.scores(w)
    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(lambda _: made.scores(w), range(8)):
            assert np.array_equal(got, want)


@pytest.mark.parametrize("caller", [True, False])
def test_nothing_is_begun_after_an_exception(monkeypatch, caller):
    """Ctrl-C in the calling thread, or an error in one of the pool: the arrays may be gone when the next range is begun."""
    begun, both, leaving, own = [], threading.Barrier(2), threading.Event(), threading.current_thread()

    class Watched(ThreadPoolExecutor):
        def submit(self, *task):
            future = super().submit(*task)
            future.add_done_callback(lambda _: leaving.set())
            withdraw = future.cancel
            future.cancel = lambda: leaving.set() or withdraw()
            return future

    def work(lo, hi):
        begun.append(lo)
        if len(begun) <= 2:
            both.wait()  # one for each thread
        if (threading.current_thread() is own) == caller:
            raise KeyboardInterrupt
        leaving.wait()  # until the other one has given up

    pool = Watched(1)
    monkeypatch.setattr(threads, "_pool", pool)
    with pytest.raises(KeyboardInterrupt):
        threads.run(work, [(k, k + 1) for k in range(64)], 2)
    leaving.set()
    pool.shutdown(wait=True)
    assert len(begun) == 2


# ---- the same bits, and rough sums ----------------------------------------------------------------------------------


BITS = """
import numpy as np, scipy.sparse as sp
from gordan import rows

rng = np.random.default_rng(0)
A = rng.standard_normal((2000, 50))
halves, log_p0 = (np.arange(2000) % 2).astype(np.int8), np.log(rng.random(2000))
for stored in (A, sp.csr_array(A * (A > 1))):
    R = rows.of(stored, threads=1)
    for _ in range(30):
        soft = R.softmin(3 * rng.standard_normal(50), log_p0, halves)
        print(soft.combination.tobytes().hex(), soft.log_rest, soft.scores.tobytes().hex())
"""


def test_the_process_that_compiles_computes_the_same_bits(tmp_path):
    """A kernel's helpers are part of it, so that a process which finds it in the cache runs the same code as the one before."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_NUM_THREADS": "1"}
    told = [subprocess.run([sys.executable, "-c", BITS], env=environment, capture_output=True, check=True) for _ in range(2)]
    assert any(tmp_path.rglob("*.nbc"))
    assert told[0].stdout == told[1].stdout


def test_ranges_of_rows_within_a_thread_of_the_pool(monkeypatch):
    """All threads of the pool may go through ranges of rows at once: none waits for another one that waits, too."""
    monkeypatch.setattr(threads, "ROWS_PER_THREAD", 2)
    values = np.arange(12.0)
    count = threads.available()
    found = threads.run(lambda lo, hi: threads.nonzero(values).tolist(), [(k, k + 1) for k in range(4 * count)], max(2, count))
    assert found == [list(range(1, 12))] * (4 * count)
    assert sum(threads.over_rows(lambda lo, hi: float(values[lo:hi].sum()), 12)) == 66.0


def _squares(x, V):  # `reduce` takes functions at the top level
    U = x @ V
    return x.T @ U, U.sum(0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rough_sums_have_three_digits_and_fall_back_where_float32_overflows(dtype):
    rng = np.random.default_rng(0)
    X, V = rng.standard_normal((700, 12)).astype(dtype), rng.standard_normal((12, 3))
    wide = X.astype(np.float64)
    for size in (1.0, 1e100):
        found, total = rows.of(X).reduce(_squares, (), (size * V,), rough=True)
        assert found.dtype == total.dtype == np.float64
        np.testing.assert_allclose(found, size * (wide.T @ (wide @ V)), rtol=1e-3, atol=1e-3 * size)
        np.testing.assert_allclose(total, size * (wide @ V).sum(0), rtol=1e-3, atol=1e-3 * size)
