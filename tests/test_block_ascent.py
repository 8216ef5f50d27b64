"""Coordinate ascent for several label vectors of sparse rows at once, against its slow twin, and what its weights prove."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from checkers import both

import gordan
from gordan.certificates.losses import Objective
from gordan.certificates.matrix import Matrix
from gordan.certificates.optima import Objectives
from gordan.intercepts import Intercept
from gordan.losses import Loss
from gordan.rows import BlockAscent, Rows, gram_product, lane_ranges, stored
from gordan.solve import batches, block_ascent
from gordan.solve.row_softmax import RowSoftmaxNewton

COLUMNS = 3200  # more than a matrix of them is factorized for


def text(n, k, seed, d=COLUMNS, length=30):
    """Sparse rows of k classes, whose columns are as frequent as words are; and their classes."""
    r = np.random.default_rng(seed)
    y = np.concatenate((np.arange(k), r.integers(0, k, n - k)))
    often = 1.0 / np.arange(1, d + 1)
    columns = [np.unique((r.choice(d, length, p=often / often.sum()) + 7 * label) % d) for label in y]
    indptr = np.concatenate(([0], np.cumsum([len(own) for own in columns])))
    data = r.exponential(size=indptr[-1])
    X = sp.csr_array((data, np.concatenate(columns).astype(np.int32), indptr), shape=(n, d))
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_array(sp.diags_array(1.0 / norms) @ X), y


def table(y, k):
    return np.where(y[:, None] == np.arange(k), 1, -1).astype(np.int8)


@pytest.mark.parametrize(("k", "dtype"), [(2, np.float32), (2, np.float64), (11, np.float64)])
@pytest.mark.parametrize(("column", "free"), [(0.0, False), (1.0, False), (0.7, True)])
def test_an_epoch_is_that_of_its_slow_twin(k, dtype, column, free):
    """Row by row in the order in which the kernel visits them, in float64; for few and for many label vectors."""
    X, y = text(60, k + 1, 0)
    X = X.astype(dtype)
    signs = table(y, k + 1)[:, 1:].copy()
    signs[5:9, 0] = 0
    rows = Rows(stored(X), np.ones(60, np.int8), constant=column > 0)
    squares, bend = np.asarray(X.multiply(X).sum(axis=1)).ravel().astype(np.float64), np.linspace(0.2, 2.0, 60)
    ascent = BlockAscent(rows, signs, squares, bend, column, free)
    dense, x, W = X.toarray().astype(np.float64), np.zeros((60, k)), np.zeros((COLUMNS, k))
    last, offset = np.zeros(k), np.zeros(k)
    for _ in range(3):
        gap, value = ascent.run_epoch()
        expected = np.zeros((2, k))
        for i in ascent._order:
            for j in np.flatnonzero(signs[i]):
                sign = signs[i, j]
                z = sign * (dense[i] @ W[:, j] + column * last[j] + offset[j])
                short = max(1 - z, 0.0)
                expected[0, j] += (short - bend[i] * x[i, j]) ** 2 / (2 * bend[i]) + x[i, j] * max(z - 1, 0)
                expected[1, j] += 0.5 * (x[i, j] * z + short**2 / bend[i])
                new = max(x[i, j] - (z - 1 + bend[i] * x[i, j]) / (squares[i] + column**2 + bend[i]), 0.0)
                W[:, j] += sign * (new - x[i, j]) * dense[i]
                last[j] += sign * (new - x[i, j]) * column
                x[i, j] = new
        offset += free * column * last
        np.testing.assert_allclose([gap, value], expected, rtol=1e-4)
        np.testing.assert_allclose(ascent.weights, x, atol=1e-5)
        np.testing.assert_allclose(ascent.planes, W.T, atol=1e-5)
        np.testing.assert_allclose(ascent.intercepts, offset if free else column * last, atol=1e-5)
        np.testing.assert_allclose(ascent.scores(), dense @ W, atol=1e-5)


@pytest.mark.parametrize(
    ("k", "threads", "sizes"),
    [(1, 2, [1]), (10, 1, [10]), (10, 2, [5, 5]), (20, 1, [6, 7, 7]), (20, 2, [10, 10]), (50, 2, 2 * [12, 13])],
)
def test_label_vectors_are_divided_so_that_all_threads_are_done_soon(k, threads, sizes):
    """An ascent for sixteen takes half as long again as one for eight."""
    ranges = lane_ranges(k, threads)
    assert [hi - lo for lo, hi in ranges] == sizes
    assert [i for lo, hi in ranges for i in range(lo, hi)] == list(range(k))


@pytest.mark.parametrize("intercept", list(Intercept))
def test_planes_found_together_are_solved_and_accepted_by_both_checkers(intercept, monkeypatch):
    """Two blocks of label vectors, a row that counts in none, weights of which some are 0: all settled by the ascent."""
    X, y = text(300, 10, 1)
    signs, c = table(y, 10), np.random.default_rng(1).uniform(0.5, 2.0, 300)
    signs[20], signs[21:30, 3], c[30:35] = 0, 0, 0.0
    asked = {"intercept": intercept.value, "sample_weight": c}
    monkeypatch.setattr("gordan.verdicts.many.result_of", _refuse_to_search(gordan.verdicts.loss.result_of))
    found = gordan.minimize_loss(X, signs, tol=1e-4, **asked)
    monkeypatch.undo()
    assert set(found.status) == {"solved"}
    for j in range(10):
        own, kept = found[j], np.flatnonzero(signs[:, j])
        assert own.gap <= 1e-4
        assert len(own.certificate.weights) > 0
        exact = gordan.minimize_loss(X[kept], signs[kept, j], tol=1e-10, **(asked | {"sample_weight": c[kept]}))
        assert own.objective[0] <= exact.objective[1]
        assert exact.objective[0] <= own.objective[1]
        assert np.linalg.norm(own.w - exact.w) <= own.radius + exact.radius
        assert (np.abs(own.w - exact.w) <= own.coef_interval[:, 1] - own.coef_interval[:, 0] + exact.radius).all()
        assert own.intercept_interval[0] - 1e-9 <= exact.b <= own.intercept_interval[1] + 1e-9
        if j in (0, 3):
            assert both(own.certificate, X.toarray(), signs[:, j]) == (True, True)
            narrow = replace(own.certificate, lower=0.5 * (own.objective[0] + own.objective[1]))
            assert both(narrow, X.toarray(), signs[:, j]) == (False, False)


def _refuse_to_search(result_of):
    def refusing(question, evidence=None, steps=0):
        assert evidence is not None, "looked for one by one"
        return result_of(question, evidence, steps)

    return refusing


@pytest.mark.parametrize("intercept", list(Intercept))
def test_what_is_claimed_with_stated_weights_holds_what_is_proved_of_each(intercept):
    """At planes and weights good and bad, some of which are not allowed and count as 0."""
    X, y = text(120, 3, 2)
    signs, r = table(y, 3), np.random.default_rng(2)
    signs[:9, 1] = 0
    c = np.where(r.random(120) < 0.1, 0.0, r.uniform(0.1, 2.0, 120))
    rows = Rows(stored(X), np.ones(120, np.int8), constant=intercept.exists)
    budget = gordan.ledger.question.Budget(0.0)
    good = block_ascent.ascend_together(rows, signs, c, intercept, 1e-4, budget)
    assert good.few
    W, b = intercept.plane_of(good.planes.T)
    b = np.zeros(3) + b
    wild = np.where(r.random((120, 3)) < 0.5, r.standard_normal((120, 3)), 0.0)
    wild[:3] = [[math.nan], [math.inf], [1e-290]]
    for plane, alpha in ((W, good.alpha), (1.1 * W, good.alpha), (W, 0.9 * good.alpha), (W, wild), (0 * W, 0 * good.alpha)):
        objectives = Objectives(Matrix(stored(X)), signs, Loss.SQUARED_HINGE, c, intercept, weights=alpha)
        for j, claimed in enumerate(objectives.enclose(plane, b)):
            own = Objective(objectives.X, signs[:, j], Loss.SQUARED_HINGE, c * abs(signs[:, j]), intercept)
            proved = own.enclose(plane[:, j], float(b[j]), claimed.rows, claimed.weights)
            assert claimed.lower <= proved.lower <= proved.upper <= claimed.upper
            assert claimed.upper <= proved.upper * (1 + 1e-10)
            assert np.isfinite(claimed.weights).all()
            assert (claimed.weights >= 0).all()


def test_where_c_is_large_label_vectors_are_left_to_themselves(monkeypatch):
    """Many epochs would be needed: that is seen after a few of them."""
    X, y = text(200, 3, 3)
    epochs, run = [], BlockAscent.run_epoch
    monkeypatch.setattr(BlockAscent, "run_epoch", lambda self: (epochs.append(0), run(self))[1])
    found = gordan.minimize_loss(X, table(y, 3), C=1e4, intercept="penalized")
    assert set(found.status) == {"solved"}
    assert 0 < len(epochs) <= 2 * block_ascent.TUNING.look
    assert max(found[j].n_iter for j in range(3)) > 0


def test_rows_beyond_float32_are_left_to_others():
    X, y = text(100, 3, 4)
    for scale in (1e25, 1e-25):
        found = gordan.minimize_loss(X * scale, table(y, 3), C=scale**-2, intercept="none")
        assert set(found.status) == {"solved"}


def test_too_many_weights_are_not_stated(monkeypatch):
    """Then Newton's method goes on from the planes."""
    X, y = text(200, 3, 5)
    monkeypatch.setattr(block_ascent, "MAX_WEIGHTS", 10)
    found = gordan.minimize_loss(X, table(y, 3))
    assert set(found.status) == {"solved"}
    assert not any(found[j].certificate.weights for j in range(3))


def test_a_time_limit_holds_between_epochs():
    X, y = text(2000, 9, 6, length=60)
    rows = Rows(stored(X), np.ones(2000, np.int8), constant=True)
    spent = gordan.ledger.question.Budget(0.0, deadline=0.0)
    found = block_ascent.ascend_together(rows, table(y, 9), np.ones(2000), Intercept.FREE, 1e-4, spent)
    assert found.epochs.max() == 1
    assert np.isfinite(found.planes).all()
    assert set(gordan.minimize_loss(X, table(y, 9), time_limit=1e-3).status) == {"time-limit"}


def test_few_columns_and_other_losses_are_not_for_it():
    X, y = text(100, 3, 7)
    problem = batches.Problem.of(X, table(y, 3)[:, 0])
    assert batches._ascends(problem, COLUMNS, 3, Loss.SQUARED_HINGE)
    assert not batches._ascends(problem, COLUMNS, 1, Loss.SQUARED_HINGE)
    assert not batches._ascends(problem, COLUMNS, 3, Loss.LOGISTIC)
    assert not batches._ascends(problem, 100, 3, Loss.SQUARED_HINGE)


def test_products_of_rows_with_each_other():
    X, _ = text(70, 2, 8)
    r = np.random.default_rng(8)
    rows = Rows(stored(X), np.ones(70, np.int8), constant=True)
    Q = r.standard_normal((70, 11)) * 10.0 ** r.integers(-200, 200, 11)
    Q[:, 4] = 0.0
    expected = (X @ X.T).toarray() @ (Q / np.maximum(np.abs(Q).max(axis=0), 1e-300))
    np.testing.assert_allclose(gram_product(rows, Q) / np.maximum(np.abs(Q).max(axis=0), 1e-300), expected, atol=1e-5)
    assert rows.passes == 2


@pytest.mark.parametrize("k", [3, 9])
@pytest.mark.parametrize("intercept", list(Intercept))
def test_the_multinomial_loss_as_combinations_of_rows(intercept, k, monkeypatch):
    """As near to the optimum as Newton's method in the planes themselves, which both checkers accept."""
    X, y = text(150, k, 9)
    c = np.random.default_rng(9).uniform(0.5, 2.0, 150)
    c[k : k + 5] = 0.0
    asked = {"loss": "multinomial", "intercept": intercept.value, "C": 5.0, "sample_weight": c, "tol": 1e-7}
    starts, start = [], RowSoftmaxNewton.start
    monkeypatch.setattr(RowSoftmaxNewton, "start", lambda *given: (starts.append(0), start(*given))[1])
    found = gordan.minimize_loss(X, y, **asked)
    assert len(starts) == 1
    monkeypatch.setattr(RowSoftmaxNewton, "suits", lambda *given: False)
    other = gordan.minimize_loss(X, y, **asked)
    assert len(starts) == 1
    assert found.status == other.status == "solved"
    assert max(found.objective[0], other.objective[0]) <= min(found.objective[1], other.objective[1])
    assert np.linalg.norm(found.w - other.w) <= found.radius + other.radius
    if k == 3:
        assert both(found.certificate, X.toarray(), y) == (True, True)


def test_rows_beyond_float32_are_not_for_combinations_of_them():
    X, _ = text(50, 2, 10)
    for scale, suits in ((1.0, True), (1e20, False), (1e-20, False)):
        assert RowSoftmaxNewton.suits(Rows(stored(X * scale), np.ones(50, np.int8)), 2) is suits
