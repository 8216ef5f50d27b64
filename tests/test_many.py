"""Tables of labels: each column as a call of its own has it, proved for both checkers; and held against exact arithmetic."""

from __future__ import annotations

import json
import math
import pickle
import random
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import count

import degenerate
import modes
import mutations
import numpy as np
import oracle
import pandas as pd
import pytest
import scipy.sparse as sp
from checkers import both
from degenerate import signed, with_both_signs
from sklearn.exceptions import ConvergenceWarning
from test_verified import FAMILIES, INTERCEPTS

import gordan
from gordan.certificates import standalone, verified
from gordan.certificates.blocks import Margins
from gordan.certificates.margins import Margin
from gordan.certificates.matrix import Matrix
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept
from gordan.losses import Loss
from gordan.rows import memory, stored
from gordan.rows.blocks import Blocks, Loadable
from gordan.rows.memory import Dense
from gordan.solve import batches, block_newton
from gordan.verdicts import many as tables


def table(n, k, seed=0, labels=(-1, 1)):
    return with_both_signs(np.random.default_rng(seed).choice(labels, (n, k)))


# ---- the contract -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [(-1, 1), (-1, 0, 1), (False, True)], ids=str)
def test_verdicts_are_those_of_single_calls(labels):
    X, Y = np.random.default_rng(0).standard_normal((14, 5)), table(14, 40, 1, labels)
    many = gordan.separate(X, Y)
    assert isinstance(many, gordan.ManyVerdicts)
    assert (len(many), many.margin.shape, many.w.shape, many.b.shape) == (40, (40, 2), (5, 40), (40,))
    for j, own in enumerate(many):
        y = Y[:, j]
        kept = y != 0 if Y.dtype != bool else np.ones(14, dtype=bool)
        alone = gordan.separate(X[kept], y[kept])
        assert own.status == alone.status == many.status[j]
        assert both(own.certificate, X, y) == (True, True)
        assert own.margin == tuple(many.margin[j])
        if own.separable:
            assert own.margin[0] <= alone.margin[1]
            assert alone.margin[0] <= own.margin[1]
            assert np.array_equal(own.w, many.w[:, j])
            assert own.b == many.b[j]
            scores = (X @ own.w + own.b) * np.where(y > 0, 1, -1)
            assert scores[kept].min() > 0
        else:
            assert np.isnan(many.w[:, j]).all()
            assert np.isnan(many.b[j])
            assert own.w is None
            assert kept[[*own.stated_witness.rows]].all()
            exact = own.witness
            total = sum(
                int(w) * np.append(X[i], 1.0) * (1 if y[i] > 0 else -1) for i, w in zip(exact.rows, exact.weights, strict=True)
            )
            assert np.abs(total).max() <= 1e-6 * max(exact.weights) * np.abs(X).max()


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_margins_are_those_of_single_calls(intercept):
    X, Y = np.random.default_rng(2).standard_normal((16, 7)), table(16, 30, 3, (-1, 0, 1, 1))
    many = gordan.maximize_margin(X, Y, intercept=intercept, tol=1e-6)
    assert isinstance(many, gordan.ManyMargins)
    for j, own in enumerate(many):
        kept = np.flatnonzero(Y[:, j])
        alone = gordan.maximize_margin(X[kept], Y[kept, j], intercept=intercept, tol=1e-6)
        assert own.status == alone.status == many.status[j]
        assert both(own.certificate, X, Y[:, j]) == (True, True)
        assert own.margin[0] <= alone.margin[1]
        assert alone.margin[0] <= own.margin[1]
        assert own.gap <= 1e-6
        if own.p is not None:
            assert own.p.shape == (16,)
            assert not own.p[Y[:, j] == 0].any()
            assert own.p.sum() == pytest.approx(1)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_columns_that_leave_out_most_rows(intercept, monkeypatch):
    """Pairs of classes are decided together, each by its own rows, of which there are not equally many."""
    r = np.random.default_rng(4)
    which = r.integers(0, 7, 90)
    X = np.round(16 * (r.standard_normal((7, 3))[which] + 0.4 * r.standard_normal((90, 3))))
    X = np.column_stack([X, X[:, 0] + X[:, 1], which == 2])  # columns that depend on others, also on the rows of a pair alone
    Y = np.column_stack([1 * (which == b) - (which == a) for a in range(7) for b in range(a + 1, 7)] + [r.choice((-1, 1), 90)])
    monkeypatch.setattr("gordan.verdicts.margin.answer", None)
    many = gordan.maximize_margin(X, Y, intercept=intercept, tol=1e-6)
    monkeypatch.undo()
    assert {*many.status.tolist()} == {"solved", "not-separable"}
    for j, own in enumerate(many):
        kept = np.flatnonzero(Y[:, j])
        alone = gordan.maximize_margin(X[kept], Y[kept, j], intercept=intercept, tol=1e-6)
        assert own.status == alone.status
        assert own.margin[0] <= alone.margin[1]
        assert alone.margin[0] <= own.margin[1]
        assert own.n_iter > 0
        assert both(own.certificate, X, Y[:, j]) == (True, True)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "hinge"])
def test_losses_are_those_of_single_calls(loss):
    X, Y = np.random.default_rng(4).standard_normal((30, 4)), table(30, 12, 5, (-1, 0, 1))
    weights = np.random.default_rng(6).random(30) + 0.5
    for sample_weight in (None, weights):
        many = gordan.minimize_loss(X, Y, loss=loss, C=0.5, sample_weight=sample_weight, tol=1e-6)
        assert isinstance(many, gordan.ManyLosses)
        assert (many.status == "solved").all()
        for j, own in enumerate(many):
            kept = np.flatnonzero(Y[:, j])
            own_weights = None if sample_weight is None else sample_weight[kept]
            alone = gordan.minimize_loss(X[kept], Y[kept, j], loss=loss, C=0.5, sample_weight=own_weights, tol=1e-6)
            assert own.objective[0] <= alone.objective[1]
            assert alone.objective[0] <= own.objective[1]
            assert tuple(many.objective[j]) == own.objective
            assert np.allclose(many.w[:, j], alone.w, atol=1e-2)
            assert own.gap <= 1e-6
            assert both(own.certificate, X, Y[:, j]) == (True, True)
            assert not {*own.support.tolist()} & {*np.flatnonzero(Y[:, j] == 0).tolist()}


def test_classes_have_weights_of_their_own_columns():
    X, Y = np.random.default_rng(4).standard_normal((30, 4)), table(30, 5, 5, (-1, 0, 1, 1))
    many = gordan.minimize_loss(X, Y, class_weight="balanced", tol=1e-8)
    for j, own in enumerate(many):
        kept = np.flatnonzero(Y[:, j])
        alone = gordan.minimize_loss(X[kept], Y[kept, j], class_weight="balanced", tol=1e-8)
        assert own.objective == pytest.approx(alone.objective, rel=1e-7)
        assert both(own.certificate, X, Y[:, j]) == (True, True)


def test_a_column_of_one_sign():
    X = np.random.default_rng(7).standard_normal((6, 3))
    Y = np.column_stack([np.ones(6), -np.ones(6), [1, -1] * 3]).astype(int)
    for many in (gordan.separate(X, Y), gordan.maximize_margin(X, Y)):
        assert many.status[:2].tolist() == [many[0].status] * 2
        assert many[0].status.separable
        assert (many.margin[:2] == math.inf).all()
        assert many[1].margin == (math.inf, math.inf)
        assert many[1].b < 0
        for j in range(2):
            assert both(many[j].certificate, X, Y[:, j]) == (True, True)
    assert gordan.maximize_margin(X, Y)[0].gap == 0
    for options in (
        {"norm": 3},
        {"sample_weight": np.ones(6)},
        {"method": "smooth_perceptron"},
        {"callback": lambda moment: False},
    ):
        assert (gordan.maximize_margin(X, Y, **options).margin[:2] == math.inf).all()
    assert (gordan.separate(X, Y, callback=lambda verdict: False).margin[:2] == math.inf).all()
    with pytest.raises(gordan.InputError, match=r"Y\[:, 1\] has labels of one sign only"):
        gordan.minimize_loss(X, Y[:, [2, 1]])


@pytest.mark.parametrize("ask", [gordan.separate, gordan.maximize_margin, gordan.minimize_loss])
def test_a_column_of_one_sign_beside_zeros_is_refused(ask):
    """Its labels alone do not tell whether 0 is a class: no certificate could be checked against them."""
    X, y = np.random.default_rng(7).standard_normal((6, 3)), [1, -1] * 3
    for column in ([1, 1, 0, 1, 1, 0], [0, -1, -1, -1, -1, 0]):
        with pytest.raises(gordan.InputError, match=r"Y\[:, 1\] has 0 and labels of one sign only"):
            ask(X, np.column_stack([y, column]))


@pytest.mark.parametrize("intercept", ["none", "penalized"])
def test_a_column_of_one_sign_where_that_decides_nothing(intercept):
    """Without an intercept it may be inseparable; with a penalized one its margin is that of the rows (x, 1)."""
    X = np.array([[1.0, 2.0], [-1.0, -2.0], [3.0, 1.0]])
    Y = np.array([[1, 1], [1, -1], [1, -1]])
    many = gordan.separate(X, Y, intercept=intercept)
    rows = signed(X, Y[:, 0], intercept)
    assert many[0].separable == oracle.separable(rows) == (intercept == "penalized")
    if intercept == "penalized":
        squared = oracle.squared_margin(rows)
        assert Fraction(many[0].margin[0]) ** 2 <= squared <= Fraction(many[0].margin[1]) ** 2
    assert both(many[0].certificate, X, Y[:, 0]) == (True, True)


def test_what_holds_x_does_not_matter():
    X, Y = np.random.default_rng(8).integers(-3, 4, (12, 4)).astype(float), table(12, 9, 9)
    frame = pd.DataFrame(X, index=np.arange(12) + 5)
    plain = gordan.separate(X, Y)
    for given, labels in (
        (sp.csr_array(X), Y),
        (frame, pd.DataFrame(Y, index=frame.index)),
        (X.astype(np.float32), Y.astype(float)),
        (X, [*map(list, Y)]),
        (X, Y == 1),
    ):
        found = gordan.separate(given, labels)
        assert found.status.tolist() == plain.status.tolist()
        y = labels.iloc[:, 2] if isinstance(labels, pd.DataFrame) else np.asarray(labels)[:, 2]
        assert gordan.verify(found[2].certificate, given, y)
    with pytest.raises(gordan.InputError, match="index"):
        gordan.separate(frame, pd.DataFrame(Y))


def test_sequences():
    X, Y = np.random.default_rng(8).standard_normal((12, 4)), table(12, 9, 9)
    many = gordan.separate(X, Y)
    assert many[-1] is many[8]
    assert [*many][3] is many[3]
    assert len(many[2:5]) == 3
    with pytest.raises(IndexError):
        many[9]
    assert "9 label vectors" in repr(many)
    assert many.seconds > 0
    none = gordan.separate(X, Y[:, :0])
    assert len(none) == 0
    assert none.margin.shape == (0, 2)
    assert none.w.shape == (4, 0)
    one = gordan.separate(X, Y[:, :1])
    assert isinstance(one, gordan.Verdict)  # as ever: a column is a label vector


BAD = {
    "0 and 1": (lambda Y: (Y > 0).astype(int), "pass Y == 1, or -1/\\+1"),
    "0 and 1 as floats": (lambda Y: (Y > 0).astype(float), "pass Y == 1, or -1/\\+1"),
    "other numbers": (lambda Y: np.where(np.arange(20).reshape(5, 4) == 6, 2, Y), r"Y\[1, 2\] is .*2"),
    "nan": (lambda Y: np.where(np.arange(20).reshape(5, 4) == 6, np.nan, Y), r"Y\[1, 2\] is .*nan"),
    "text": (lambda Y: Y.astype(str), "labels of type"),
    "no rows": (lambda Y: Y * np.array([1, 1, 0, 1]), r"Y\[:, 2\] leaves out every row"),
    "rows": (lambda Y: Y[:-1], "5 rows"),
    "ragged": (lambda Y: [[1, -1], [1, -1], [1], [1, 1], [1, 1]], "not a table"),
    "missing": (
        lambda Y: pd.DataFrame(Y).astype("Int64").mask(pd.DataFrame(Y) > 5, 1).replace(-1, pd.NA),
        r"Y\[\d, \d\] is <NA>",
    ),
    "sparse": (lambda Y: sp.csr_matrix(Y), r"Y is a sparse matrix; pass Y\.toarray\(\)"),
    "masked": (lambda Y: np.ma.masked_equal(Y, -1), "masked"),
}


@pytest.mark.parametrize("call", [gordan.separate, gordan.maximize_margin, gordan.minimize_loss])
@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_refused(name, call):
    make, reason = BAD[name]
    with pytest.raises(gordan.InputError, match=reason):
        call(np.arange(15.0).reshape(5, 3), make(table(5, 4, 1)))


def test_what_cannot_be_shared_is_refused():
    X, Y = np.random.default_rng(0).standard_normal((8, 3)), table(8, 3, 1)
    with pytest.raises(gordan.InputError, match="checkpoint is for one label vector"):
        gordan.maximize_margin(X, Y, checkpoint="run")
    for call in (gordan.maximize_margin, gordan.minimize_loss):
        with pytest.raises(gordan.InputError, match="for 3 label vectors"):
            call(X, Y, start=call(X, Y[:, :2]))
        again = call(X, Y, start=call(X, Y))
        assert {*again.status} <= {"solved", "not-separable"}
    with pytest.raises(gordan.InputError, match=r"X\[2, 1\] is nan"):
        gordan.separate(np.where(np.arange(24).reshape(8, 3) == 7, np.nan, X), Y)
    with pytest.raises(gordan.InputError, match=r"Y\[:, 0\]: .*nu is 0.99"):
        gordan.maximize_margin(X, np.sign(np.arange(8)[:, None] - [[0.5, 1.5]]).astype(int), nu=0.99)


# ---- limits -------------------------------------------------------------------------------------------------------------


def test_what_was_not_begun_in_time_is_open(clock):
    X, Y = np.random.default_rng(0).standard_normal((12, 4)), table(12, 6, 1)
    clock.tick = 1.0
    verdicts = gordan.separate(X, Y, time_limit=0.5)
    assert (verdicts.status == "undecided").all()
    assert (verdicts.margin == [0, math.inf]).all()
    assert verdicts[0].certificate is None
    assert verdicts[0].separable is None
    margins = gordan.maximize_margin(X, Y, time_limit=0.5)
    assert (margins.status == "time-limit").all()
    assert np.isnan(margins.w).all()
    assert gordan.verify(margins[1].certificate, X, Y[:, 1])
    found = gordan.minimize_loss(X, Y, time_limit=0.5)
    assert (found.status == "time-limit").all()
    assert (found.objective == [0, math.inf]).all()
    for j in range(6):
        assert found[j].objective[1] == pytest.approx(12.0)
        assert found[j].status == "time-limit"
        assert both(found[j].certificate, X, Y[:, j]) == (True, True)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_columns_that_were_not_begun_in_time_share_their_passes(loss, clock, monkeypatch):
    """What w = 0 proves, and where the minimizers are, takes hardly more passes for twelve columns than for three, and holds."""
    X, Y = np.random.default_rng(0).standard_normal((40, 3)), table(40, 12, 1, (-1, 0, 1))
    passes, each_block = Counter(), memory.Dense.each_block
    monkeypatch.setattr(memory.Dense, "each_block", lambda *args, **how: passes.update([clock.tick]) or each_block(*args, **how))
    for k in (3, 12):
        clock.tick = float(k)
        many = gordan.minimize_loss(X, Y[:, :k], loss=loss, time_limit=0.5)
        radii = [result.place.radius for result in many]
        clock.tick = 0.0
        for j, own in enumerate(many):
            kept = Y[:, j] != 0
            best = gordan.minimize_loss(X[kept], Y[kept, j], loss=loss)
            assert (own.status, own.w.tolist(), own.b) == ("time-limit", [0, 0, 0], 0.0)
            assert own.objective[0] <= best.objective[1] <= own.objective[1] * (1 + 1e-12)
            assert np.linalg.norm(best.w) <= radii[j] + best.radius
            assert own.intercept_interval[0] <= best.b <= own.intercept_interval[1]
            assert both(own.certificate, X, Y[:, j]) == (True, True)
    assert passes[12.0] <= 2 * passes[3.0]  # the slowest column decides


@pytest.mark.parametrize("call", [gordan.separate, gordan.maximize_margin, gordan.minimize_loss])
@pytest.mark.parametrize("n", [12, 600], ids=["together", "one by one"])
def test_pickles(call, n):
    """Whether or not results have been looked at."""
    X, Y = np.random.default_rng(0).standard_normal((n, 4)), table(n, 3, 1)
    many = call(X, Y)
    first = pickle.loads(pickle.dumps(many))
    certificates = [result.certificate for result in many]
    for again in (first, pickle.loads(pickle.dumps(many))):
        assert [result.certificate for result in again] == certificates
    assert pickle.loads(pickle.dumps(many[1])).certificate == certificates[1]


@pytest.mark.parametrize("call", [gordan.separate, gordan.maximize_margin, gordan.minimize_loss])
def test_a_callback_ends_the_whole_call(call):
    r = np.random.default_rng(0)
    X, Y = r.standard_normal((400, 30)), table(400, 4, 1)
    if call is gordan.separate:  # whose callback hears of proposals that were not accepted, as with a column of another size
        X = r.standard_normal((1500, 40))
        Y = np.sign(X @ r.standard_normal((40, 4)))
        X[:, 0] *= 1e6
    seen = []

    def stop(moment):
        seen.append(moment)
        return True

    many = call(X, Y, callback=stop, **({"tol": 1e-12} if call is gordan.minimize_loss else {}))
    assert len(seen) == 1
    assert (many.status[1:] == ("undecided" if call is gordan.separate else "interrupted")).all()


@pytest.mark.parametrize("call", [gordan.separate, gordan.maximize_margin, gordan.minimize_loss])
def test_ctrl_c_ends_the_whole_call(call, monkeypatch):
    """What was decided by then is kept; nothing else is begun."""

    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(batches, "alternatives", interrupted)
    monkeypatch.setattr(batches, "_least_loss", interrupted)
    X, Y = np.random.default_rng(0).standard_normal((12, 4)), table(12, 6, 1)
    many = call(X, Y)
    assert (many.status == ("undecided" if call is gordan.separate else "interrupted")).all()
    if call is not gordan.separate:
        assert gordan.verify(many[2].certificate, X, Y[:, 2])


def test_ctrl_c_during_the_proof_of_least_losses_keeps_what_was_found(monkeypatch):
    from gordan.verdicts import many

    pressed, prove = iter([True]), many._Columns.prove

    def proved(*given):
        if next(pressed, False):
            raise KeyboardInterrupt
        return prove(*given)

    monkeypatch.setattr(many._Columns, "prove", proved)
    X, Y = np.random.default_rng(0).standard_normal((60, 4)), table(60, 6, 1)
    found = gordan.minimize_loss(X, Y)
    assert next(pressed, None) is None
    assert all(found[j].gap <= 1e-3 for j in range(6))
    assert all(gordan.verify(found[j].certificate, X, Y[:, j]) for j in range(6))


@pytest.mark.parametrize("when", ["search", "proof"])
def test_ctrl_c_ends_verdicts_that_are_found_one_by_one(when, monkeypatch):
    """A verdict has no status that says so, and may even be decided: no other column is begun either way."""
    from gordan.ledger.evidence import Evidence
    from gordan.verdicts import many

    pressed, begun, offer, verdict_of = iter([True] * (2 if when == "search" else 1)), [], Evidence.offer, many.verdict_of

    def offered(*given):
        if next(pressed, False):
            raise KeyboardInterrupt
        return offer(*given)

    monkeypatch.setattr(many._Columns, "search", lambda *given: [])
    monkeypatch.setattr(many, "verdict_of", lambda *given: begun.append(1) or verdict_of(*given))
    monkeypatch.setattr(Evidence, "offer", offered)
    found = gordan.separate(np.random.default_rng(0).standard_normal((12, 4)), table(12, 6, 1))
    assert len(begun) == 1
    assert (found.status[1:] == "undecided").all()
    assert (found.status[0] == "undecided") == (when == "search")


def test_quasi_separation_needs_no_single_call(monkeypatch):
    """Rows of one level of a factor, all of one label, are not in the witness, so that its columns depend on each other."""
    r = np.random.default_rng(3)
    level = r.integers(0, 5, 60)
    X = np.column_stack([r.standard_normal((60, 3)), np.eye(5)[level]])
    Y = table(60, 30, 4)
    Y[level == 2] = 1
    monkeypatch.setattr("gordan.verdicts.many.verdict_of", None)
    many = gordan.separate(X, Y)
    assert (many.status == "not-separable").all()
    for j in range(30):
        assert both(many[j].certificate, X, Y[:, j]) == (True, True)


def test_memory_does_not_grow_with_the_number_of_columns(peak_memory):
    """Beside Y, its signs and the answer: of each column w, at most 60 rows with weights, and what a few arrays take."""
    X, peaks = np.random.default_rng(0).standard_normal((60, 10)), []
    for k in (500, 4000):
        Y = table(60, k, 1)
        peaks.append(peak_memory(lambda Y=Y: gordan.separate(X, Y))[1])
    assert peaks[1] - peaks[0] <= 3500 * (60 * (8 + 8 + 4) + 10 * 8 + 1600)


# ---- proofs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_bounds_of_blocks_beside_those_of_one(intercept):
    """The same theorem with sums in another order: within rounding of each other, and neither beyond the truth."""
    r, kind = np.random.default_rng(1), Intercept(intercept)
    X = np.ldexp(r.standard_normal((9, 4)), r.integers(-3, 4, (9, 1)))
    signs = r.choice((-1, 1, 0), (9, 50), p=(0.45, 0.45, 0.1)).astype(np.int8)
    matrix = Matrix(stored(X))
    margins = Margins(X, matrix.norms, signs, kind)
    W, b, P = r.standard_normal((4, 50)), r.standard_normal(50), r.random((9, 50)) * (signs != 0)
    planes = [gordan.maximize_margin(X[s != 0], s[s != 0], intercept=intercept).w if {*s} >= {-1, 1} else None for s in signs.T]
    for j, w in enumerate(planes):
        if w is not None:
            W[:, j] = w
    strict, lower = margins.lower(W, b, 4.0)
    upper = margins.upper(P, 4.0)
    for j in range(50):
        kept = np.flatnonzero(signs[:, j])
        one = Margin(Matrix(stored(X[kept])), signs[kept, j], kind)
        low, high = one.lower(W[:, j], b[j], slack=4.0), one.upper(P[kept, j], slack=4.0)
        assert lower[j] == pytest.approx(low, rel=1e-11, abs=1e-12)
        assert upper[j] == pytest.approx(high, rel=1e-11)
        assert lower[j] <= one.exact_lower(W[:, j], b[j])
        assert upper[j] >= one.exact_upper(P[kept, j])
        scores = [
            sum(Fraction(float(x)) * Fraction(float(v)) for x, v in zip(X[i], W[:, j], strict=True)) + Fraction(b[j])
            for i in kept
        ]
        assert not strict[j] or all(s * int(signs[i, j]) > 0 for s, i in zip(scores, kept, strict=True))
    assert strict.any()


def test_blocks_of_wild_numbers_prove_nothing():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    signs = np.array([[1], [1], [-1]], np.int8)
    margins = Margins(X, Matrix(stored(X)).norms, signs, Intercept.FREE)
    for w in ([math.nan, 1], [math.inf, 1], [1e200, 1e200], [1e-200, 1e-200], [0.0, 0.0]):
        strict, lower = margins.lower(np.array(w)[:, None].astype(float), np.zeros(1), 1.0)
        assert not strict[0]
        assert lower[0] == 0
    for p in ([math.nan, 1, 1], [math.inf, 1, 1], [-1, 1, 1], [0, 0, 1], [1e-300, 1, 1], [1e300, 1, 1]):
        assert margins.upper(np.array(p, dtype=float)[:, None], 1.0)[0] == math.inf
    left_out = Margins(X, Matrix(stored(X)).norms, np.array([[1], [0], [-1]], np.int8), Intercept.FREE)
    assert left_out.upper(np.array([[1.0], [1.0], [1.0]]), 1.0)[0] == math.inf


def test_stacks_of_witnesses_beside_single_ones():
    """`each_cancelling` accepts what `cancelling` does for the rows of weight, and nothing that exact arithmetic refutes."""
    r, counts = np.random.default_rng(3), Counter()
    for _ in range(300):
        n, c = int(r.integers(3, 9)), int(r.integers(1, 4))
        S = FAMILIES[int(r.integers(0, len(FAMILIES)))](r, n, c)
        signs = r.choice((-1.0, 1.0), (6, n))
        p = r.random((6, n)) * (r.random((6, n)) < 0.8)
        for j in range(0, 6, 2):  # half of them nearly cancel
            A = S * signs[j][:, None]
            null = np.linalg.svd(A.T)[2][-1]
            p[j] = null if (null > 1e-9).all() or (null < -1e-9).all() else p[j]
            p[j] = np.abs(p[j])
        found = verified.each_cancelling(S, signs, p)
        for j in range(6):
            used = p[j] > 0
            alone = verified.cancelling((S * signs[j][:, None])[used], p[j][used]) if used.any() else math.inf
            counts[found[j] < math.inf, alone < math.inf] += 1
            if found[j] < math.inf:
                assert not oracle.separable(signed(S[used], signs[j][used], "none"))
    assert counts[True, True] > 100
    assert counts[False, True] + counts[True, False] <= 0.02 * counts.total()
    bad = np.array([[math.nan, 1, 1], [-1, 1, 1], [math.inf, 1, 1], [0, 0, 0], [1e-200, 1, 1]])
    assert (verified.each_cancelling(np.array([[1.0], [-1.0], [0.5]]), np.ones((5, 3)), bad)[:4] == math.inf).all()


def verdicts_on_degenerate_columns(seed, intercept, tables):
    counts = Counter()
    for number in range(tables):
        found, faults = degenerate.chunk([*degenerate.FAMILIES][number % len(FAMILIES)], intercept, f"{seed} {number}", 16)
        assert not faults, faults[0]
        counts += found
    return counts


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_no_wrong_verdict_on_degenerate_columns(intercept):
    """1,536 label vectors here; 20,160 others with `--soak`."""
    counts = verdicts_on_degenerate_columns(0, intercept, 32)
    # open are some planes whose margin is a last bit, as in single calls: "margin-below-tol"
    assert min(counts["separable"], counts["not-separable"]) > 100
    assert counts["undecided"] <= 0.02 * counts.total()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 8))
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_no_wrong_verdict_on_degenerate_columns_soak(intercept, seed):
    print(intercept, seed, dict(verdicts_on_degenerate_columns(seed, intercept, 60)))


def test_few_rows_and_columns_are_decided_together():
    """Random labels leave nothing open, so that no single call is needed; also where columns depend on each other."""
    r = np.random.default_rng(5)
    X = np.column_stack([r.standard_normal((40, 6)), np.eye(4)[r.integers(0, 4, 40)]])  # dummies add up to the constant
    for rows in (X, X[:, :6], X[:8]):
        signs = np.asfortranarray(table(len(rows), 60, 6).astype(np.int8))
        problem = Problem(Matrix(stored(rows)), signs[:, 0], (-1, 1))
        evidence = batches.TableEvidence(problem, signs, Intercept.FREE, rows)
        batches.search(evidence, np.arange(60), batches.Budget(time.perf_counter()), 1e-3)
        both_signs = (signs > 0).any(axis=0) & (signs < 0).any(axis=0)
        assert np.mean(evidence.decided[both_signs]) > 0.9


@pytest.mark.parametrize(("P", "N"), [(8, 3), (9, 4), (7, 2)])
def test_covers_theorem(P, N):
    """Of the 2^P labellings of P points in general position 2 Σ_{k<N} C(P-1, k) are separable through the origin."""
    X = np.random.default_rng(P).standard_normal((P, N))
    Y = 1 - 2 * ((np.arange(2**P) >> np.arange(P)[:, None]) & 1)
    for intercept, columns in (("none", N), ("free", N + 1), ("penalized", N + 1)):
        status = gordan.separate(X, Y, intercept=intercept).status
        expected = 2 * sum(math.comb(P - 1, k) for k in range(columns))
        assert Counter(status.tolist()) == {"separable": expected, "not-separable": 2**P - expected}


# ---- checkers -----------------------------------------------------------------------------------------------------------


def test_rows_of_label_0_are_left_out_only_beside_both_signs():
    """Else a certificate that names the classes -1 and 1 would be one about the labels 0 and 1."""
    X, y = np.array([[1.0], [2.0], [1.5], [0.0]]), np.array([1, 1, 0, -1])
    found = gordan.separate(X, np.column_stack([y, -y]))[0]
    assert both(found.certificate, X, y) == (True, True)
    for labels in ([1, 1, 0, 0], [0, 0, 0, -1], [1, 1, 2, -1], ["1", "1", "0", "-1"]):
        assert both(found.certificate, X, labels) == (False, False)
    everything = gordan.Certificate("separator", "free", (-1, 1), (4, 1), w=(0.0,), b=1.0)
    assert both(everything, X, [1, 1, 0, 0]) == (False, False)
    assert both(everything, X, [1, 1, 1, 1]) == (True, True)
    assert both(everything, X, [-1, -1, -1, -1]) == (False, False)


def test_a_certificate_knows_the_data_of_its_column(tmp_path, capsys):
    """Also where rows are left out, or all labels are the same."""
    X, Y = np.array([[1.0], [2.0], [1.5], [0.0]]), np.array([[1, 1], [1, 1], [0, 1], [-1, 1]])
    np.save(tmp_path / "X.npy", X)
    many = gordan.separate(X, Y)
    for j in range(2):
        np.save(tmp_path / "y.npy", Y[:, j])
        (tmp_path / "c.json").write_text(many[j].certificate.to_json())
        assert (
            standalone.main([*(str(tmp_path / name) for name in ("c.json", "X.npy")), "--labels", str(tmp_path / "y.npy")]) == 0
        )
        assert "matches the data it was made for" in capsys.readouterr().out


@pytest.mark.parametrize("ask", [gordan.separate, gordan.maximize_margin, gordan.minimize_loss])
def test_certificates_of_columns_have_the_names_of_x(ask):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"a": [0.0, 1, 2, 3], "b": [1.0, 0, 1, 0]})
    for found in ask(X, np.array([[-1, 1], [-1, -1], [1, -1], [1, 1]])):
        assert found.certificate.about.columns == ("a", "b")


def test_certificates_that_name_rows_which_are_left_out():
    X, y = np.array([[0.0], [0.0], [1.0], [2.0]]), [-1, 1, 0, 1]
    good = gordan.Certificate("witness", "free", (-1, 1), (4, 1), rows=(0, 1), weights=(1, 1))
    assert both(good, X, y) == (True, True)
    assert both(gordan.Certificate("witness", "free", (-1, 1), (4, 1), rows=(0, 2), weights=(1, 1)), X, y) == (False, False)
    assert both(gordan.Certificate("witness", "free", (-1, 1), (3, 1), rows=(0, 1), weights=(1, 1)), X, y) == (False, False)
    text = good.to_json()
    assert standalone.check(standalone.read_certificate(text), X.tolist(), y)[0]


def test_changed_certificates_of_columns_with_rows_left_out():
    """Both checkers say the same of each, and what they accept is true of the rows that count."""
    r, generator, accepted = random.Random(1), np.random.default_rng(1), Counter()
    for number in range(24):
        n = int(generator.integers(4, 9))
        X = FAMILIES[number % len(FAMILIES)](generator, n, 2)
        Y = generator.choice((-1, 0, 1), (n, 6))
        Y[:3] = np.array([[-1], [0], [1]])
        call = (gordan.separate, gordan.maximize_margin)[number % 2]
        for j, own in enumerate(call(X, Y, intercept=INTERCEPTS[number % 3])):
            y = Y[:, j].tolist()
            truth = oracle.separable(signed(X, y, INTERCEPTS[number % 3]))
            for _ in range(8):
                content = json.loads(own.certificate.to_json())
                for _ in range(r.choice((1, 1, 2))):
                    r.choice(mutations.CHANGES)(r, content, X.tolist(), y)
                text = json.dumps(content)
                first, second = mutations.verdicts(text, X.tolist(), y)
                assert mutations.CRASH not in first + second
                assert first == second or "verified-" in text, (text, X, y)
                if first == mutations.ACCEPT and content["intercept"] == INTERCEPTS[number % 3]:
                    claims = content["kind"] in ("separator",) or (
                        content["kind"] == "bracket" and content["lower"][:3] not in ("0x0", "-0x")
                    )
                    accepted[content["kind"]] += 1
                    assert not (claims and content["nu"] is None and content["sample_weight"] is None) or truth, (text, X, y)
                    assert content["kind"] not in ("witness", "verified-witness") or not truth, (text, X, y)
    assert accepted.total() > 100


@pytest.mark.skipif(not modes.CAN_BE_SET, reason=modes.REASON)
@pytest.mark.parametrize("name", modes.MODES)
def test_answers_are_proved_in_every_floating_point_mode(name):
    X, Y = np.random.default_rng(0).standard_normal((30, 8)) * 2.0**-300, table(30, 40, 1)
    with modes.mode(modes.MODES[name]):
        many = gordan.separate(X, Y)
        certificates = [many[j].certificate for j in range(40)]
    truths = gordan.separate(X, Y)
    assert many.status.tolist() == truths.status.tolist()
    for j, certificate in enumerate(certificates):
        assert standalone.check(json.loads(certificate.to_json()), X.tolist(), Y[:, j].tolist())[0]


# ---- many rows, and classifiers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_losses_of_more_rows_share_passes(loss, intercept):
    """Newton's method in blocks ends where that for one label vector does; columns that it leaves are finished one by one."""
    r = np.random.default_rng(0)
    X, Y = r.standard_normal((1500, 40)), table(1500, 5, 1, (-1, 0, 1))
    Y[:, 4] = np.sign(X[:, 0])  # one that is separable
    weights = r.random(1500)
    for sample_weight in (None, weights):
        many = gordan.minimize_loss(X, Y, loss=loss, intercept=intercept, sample_weight=sample_weight, tol=1e-7)
        assert (many.status == "solved").all()
        for j in range(5):
            kept = np.flatnonzero(Y[:, j])
            own_weights = None if sample_weight is None else sample_weight[kept]
            alone = gordan.minimize_loss(X[kept], Y[kept, j], loss=loss, intercept=intercept, sample_weight=own_weights, tol=1e-9)
            assert many.objective[j, 0] <= alone.objective[1]
            assert alone.objective[0] <= many.objective[j, 1]
            assert np.linalg.norm(many.w[:, j] - alone.w) <= many[j].radius + alone.radius
            assert gordan.verify(many[j].certificate, X, Y[:, j], sample_weight)


def test_blocks_of_planes_take_no_more_passes_than_one(monkeypatch):
    """Where second derivatives are those of the start, all label vectors are solved in the passes of a few."""
    from gordan.losses import Loss
    from gordan.rows import Rows
    from gordan.solve import block_newton

    r = np.random.default_rng(0)
    X, passes = r.standard_normal((2000, 300)), []
    for k in (1, 12):
        rows = Rows(stored(X), np.ones(2000, np.int8), constant=True)
        losses = block_newton.LossTable(rows, table(2000, k, 1), np.full(2000, 0.01), Loss.LOGISTIC, free=True)
        W, steps = block_newton.planes(losses, 1e-4, lambda: False)
        assert np.isfinite(W).all()
        assert steps.min() >= 1
        passes.append(rows.passes)
    assert passes[1] <= 2 * passes[0]


@pytest.mark.parametrize("free", [True, False])
def test_a_factorization_of_each_label_vector_is_that_of_its_own_rows(free):
    """Also when it is updated by the rows that changed."""
    from gordan.losses import Loss
    from gordan.rows import Rows
    from gordan.solve import block_newton

    r = np.random.default_rng(0)
    X = r.standard_normal((400, 20))
    rows = Rows(stored(X), np.ones(400, np.int8), constant=True)
    losses = block_newton.LossTable(rows, table(400, 3, 1), r.uniform(0.5, 2.0, 400), Loss.SQUARED_HINGE, free=free)
    precondition, A = block_newton.Preconditioner(losses, used=100), np.column_stack((X, np.ones(400)))
    W, todo, right = 0.1 * r.standard_normal((21, 3)), np.array([0, 2]), r.standard_normal((21, 2))
    for _ in range(2):
        precondition.used = 100
        precondition.renew(W, todo, 10)
        assert precondition.used == 0
        found = precondition.solve(right, todo)
        for j, s, b in zip(todo, found.T, right.T, strict=True):
            h = 2 * losses.c * (losses.Y[:, j] * (A @ W[:, j]) < 1) * abs(losses.Y[:, j])
            assert np.allclose(losses.J[:, 0] * s + A.T @ (h * (A @ s)), b, atol=1e-9)
        W = W + 0.02 * r.standard_normal((21, 3))
    # vector 1 has none yet: it was near its minimum when those were made, and left it as its intercept was moved
    mixed = precondition.solve(right, np.array([0, 1]))
    assert np.array_equal(mixed[:, 0], precondition.solve(right[:, :1], np.array([0]))[:, 0])
    assert right[:, 1] @ mixed[:, 1] > 0


def test_a_factorization_of_each_label_vector_saves_passes(monkeypatch):
    """Where second derivatives differ much between label vectors: classes of which each is cut off."""
    from gordan.losses import Loss
    from gordan.rows import Rows
    from gordan.solve import block_newton

    r = np.random.default_rng(0)
    y = r.integers(0, 6, 4000)
    X = r.standard_normal((4000, 250)) + 2 * np.eye(6, 250)[y]
    signs = np.where(y[:, None] == np.arange(6), 1, -1).astype(np.int8)
    passes = []
    for most in (block_newton.TUNING.own_bytes, 0):
        monkeypatch.setattr(block_newton, "TUNING", replace(block_newton.TUNING, own_bytes=most, own_of_entries=0.0))
        rows = Rows(stored(X), np.ones(4000, np.int8), constant=True)
        losses = block_newton.LossTable(rows, signs, np.ones(4000), Loss.SQUARED_HINGE, free=False)
        W, _ = block_newton.planes(losses, 1e-6, lambda: False)
        passes.append(rows.passes)
        here = losses.at(W, np.arange(6))
        assert (0.5 * np.sum(here.gradient**2, axis=0) <= 1e-6 * here.value).all()
    assert passes[0] < 0.8 * passes[1]


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_classes_for_which_no_time_is_left_cost_no_passes(loss, intercept, monkeypatch, clock):
    """A proof and a place of the minimizer for each of many classes took several times the limit."""
    r = np.random.default_rng(3)
    X, y = r.standard_normal((60, 3)), r.integers(0, 3, 60)
    exact = gordan.LinearClassifier(loss, intercept=intercept, tol=1e-8).fit(X, y)
    clock.tick = 1.0
    with monkeypatch.context() as patch:
        patch.setattr("gordan.certificates.losses.Objective.enclose", lambda *_, **__: pytest.fail("a pass for a proof"))
        patch.setattr("gordan.certificates.regions.Slopes.proved", lambda *_: pytest.fail("a pass for a place"))
        with pytest.warns(ConvergenceWarning, match="time-limit"):
            model = gordan.LinearClassifier(loss, intercept=intercept, time_limit=1e-9).fit(X, y)
    assert not model.coef_.any()
    for j in range(3):
        assert gordan.verify(model.certificate_[j], X, y == j)
        (low, high), (lower, upper) = model.objective_[j], exact.objective_[j]
        assert low == 0 < lower <= upper <= high <= 60 * (1 + 1e-9)
        place = model._places[j]
        assert place.unproved(model.certificate_[j], Problem.of(X, y == j)) == ""
    assert not model.same_prediction(X).any()


@pytest.mark.parametrize("limit", [0.02, 0.1, 0.2, 0.4, 0.8])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_planes_that_were_found_are_proved_however_short_the_time(loss, limit, clock):
    """They were dropped for w = 0 if the time was up, and a plane of part of the rows became worse the longer it took."""
    r = np.random.default_rng(5)
    y = r.integers(0, 4, 6000)
    X = (np.eye(4, 64)[y] + 0.4 * r.standard_normal((6000, 64))).astype(np.float32)
    clock.tick = 2e-3
    found = gordan.minimize_loss(X, y[:, None] == np.arange(4), loss=loss, C=100.0, tol=1e-9, time_limit=limit)
    at_zero = 6000 * 100.0 * (math.log(2) if loss == "logistic" else 1.0)
    values = [result.objective[1] for result in found]
    clock.tick = 0.0
    assert max(values) < 0.7 * at_zero
    assert np.mean((X @ found.w + found.b).argmax(axis=1) == y) > 0.7


@pytest.mark.parametrize("limit", [0.1, 0.3, 1.0, 3.0])
def test_no_class_is_left_at_zero(limit, clock):
    """The classes of a hinge were solved one after the other until the time was up; the warning named the first alone."""
    r = np.random.default_rng(5)
    y = r.integers(0, 8, 6000)
    X = (np.eye(8, 80)[y] + 0.4 * r.standard_normal((6000, 80))).astype(np.float32)
    clock.tick = 5e-3
    with pytest.warns(ConvergenceWarning, match=r"a gap of") as warned:
        model = gordan.LinearClassifier("hinge", tol=1e-9, time_limit=limit).fit(X, y)
    clock.tick = 0.0
    assert model.coef_.any(axis=1).all()
    assert model.score(X, y) > 0.7
    assert max(upper for _, upper in model.objective_) < 0.7 * 6000
    assert f"a gap of {max(model.gap_):.1e}" in str(warned[0].message)
    for j in (0, 7):
        assert gordan.verify(model.certificate_[j], X, y == j)


def test_columns_get_the_time_that_others_leave(clock, monkeypatch):
    """Each has an equal share of the time; what is left after the last goes to those that were stopped."""
    r = np.random.default_rng(5)
    X = r.standard_normal((400, 100))
    few = np.where(np.arange(400) < 2, np.where(np.arange(400) == 0, 1, -1), 0)  # the other rows are left out
    Y = np.column_stack((np.where(r.random(400) < 0.5, 1, -1), *[few] * 6))
    statuses = {}
    clock.tick, begin = 1e-2, clock.now
    gordan.minimize_loss(X, Y[:, 0], loss="hinge", C=1000.0, tol=1e-6, time_limit=1e6)
    limit = 6.5 * (clock.now - begin)  # a seventh is too short; how many steps there are depends on how BLAS rounds
    for rounds in (1, 4):
        monkeypatch.setattr(tables, "FAIR_ROUNDS", rounds)
        clock.tick, begin = 1e-2, clock.now
        many = gordan.minimize_loss(X, Y, loss="hinge", C=1000.0, tol=1e-6, time_limit=limit)
        clock.tick = 0.0
        statuses[rounds] = many.status.tolist()
        assert clock.now - begin <= 1.1 * limit
    assert statuses == {1: ["time-limit"] + ["solved"] * 6, 4: ["solved"] * 7}


def test_planes_to_start_from_are_kept_if_the_time_is_up(clock):
    r = np.random.default_rng(2)
    y = r.integers(0, 4, 200)
    X = r.standard_normal((200, 6)) + np.eye(4, 6)[y]
    Y = y[:, None] == np.arange(4)
    first = gordan.minimize_loss(X, Y, loss="hinge", tol=1e-6)
    clock.tick = 1.0
    again = gordan.minimize_loss(X, Y, loss="hinge", tol=1e-9, start=first, time_limit=0.5)
    clock.tick = 0.0
    assert (again.w == first.w).all()
    assert (again.objective[:, 1] <= first.objective[:, 1] * (1 + 1e-9)).all()


def test_intercepts_are_not_located_after_the_time_limit(monkeypatch, clock):
    """Planes that were found in part have an interval, but no passes for b* follow."""
    torch = pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'")
    monkeypatch.setattr("gordan.rows.device.MIN_ENTRIES", 0)
    r = np.random.default_rng(3)
    X, Y = r.standard_normal((300, 4)), r.random((300, 3)) < 0.4
    # The time is up at the fifth reading, in the first step. Three steps reach the limit of rounding, which decides what follows.
    clock.tick = 1.0
    found = gordan.minimize_loss(torch.tensor(X), Y, loss="logistic", C=10.0, tol=1e-12, time_limit=4.5)
    clock.tick = 0.0
    assert found.status.tolist() == ["time-limit"] * 3
    for j, own in enumerate(found):
        assert np.isfinite(own.objective).all()
        assert own.w.any()
        assert own.gap > 1e-3
        with monkeypatch.context() as patch:
            patch.setattr("gordan.certificates.regions.Slopes.proved", lambda *_: pytest.fail("a pass for a place"))
            place = own.place
        assert place.offset.tolist() == [-math.inf, math.inf]
        assert place.unproved(own.certificate, Problem.of(X, Y[:, j])) == ""


def test_classes_against_the_rest_as_one_table():
    """The planes of LinearClassifier are those of single calls, in the order of the classes; warm starts come along."""
    r = np.random.default_rng(2)
    y = r.integers(0, 4, 200)
    X = r.standard_normal((200, 6)) + np.eye(4, 6)[y]
    model = gordan.LinearClassifier(warm_start=True).fit(X, y)
    for j in range(4):
        alone = gordan.minimize_loss(X, y == j, tol=1e-10)
        assert np.allclose(model.coef_[j], alone.w, atol=1e-4)
        assert gordan.verify(model.certificate_[j], X, y == j)
    before = model.coef_.copy()
    assert np.allclose(model.fit(X, y).coef_, before, atol=1e-6)
    without = gordan.LinearClassifier(class_weight={2: 0.0}).fit(X, y)
    assert without.classes_.tolist() == [0, 1, 3]
    assert np.allclose(without.coef_, gordan.LinearClassifier().fit(X[y != 2], y[y != 2]).coef_, atol=1e-6)


@pytest.fixture
def wide(monkeypatch):
    """Sparse rows of which label vectors are solved on two threads at a time, however few there are, and their labels."""
    monkeypatch.setattr(tables, "PARALLEL_ENTRIES", 0)
    monkeypatch.setattr(tables, "available", lambda: 2)
    return sp.random(300, 4000, 0.01, "csr", random_state=0), table(300, 6, 1)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
def test_sparse_columns_on_all_cores_are_those_of_one(wide, loss):
    X, Y = wide
    found, alone = (gordan.minimize_loss(X, Y, loss=loss, threads=threads) for threads in (None, 1))
    assert (found.status == "solved").all()
    assert np.array_equal(found.w, alone.w)
    assert np.array_equal(found.objective, alone.objective)
    for j in (0, 5):
        assert gordan.verify(found[j].certificate, X, Y[:, j])


def test_ctrl_c_ends_all_threads(wide, monkeypatch):
    """Whoever is interrupted, no column is begun afterwards, and others end with what they have."""
    X, Y = wide
    monkeypatch.setattr(tables, "result_of", interrupting(tables.result_of, 1))
    found = gordan.minimize_loss(X, Y, loss="logistic")  # no table of planes for these rows: one column after the other
    assert np.count_nonzero(found.status == "interrupted") >= 4
    assert (found.objective[:, 0] <= found.objective[:, 1]).all()


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_every_block_of_columns_has_a_plane_after_a_time_limit(loss, monkeypatch):
    """Planes of a part of the rows come first, so that columns whose block is not begun in time are not left at w = 0."""
    r = np.random.default_rng(0)
    X = r.standard_normal((12_000, 110))
    Y = np.where(X @ r.standard_normal((110, 6)) + 3 * r.standard_normal((12_000, 6)) > 0, 1, -1)
    monkeypatch.setattr(block_newton, "TUNING", replace(block_newton.TUNING, fewest=2, block=2))
    begun, planes = [], block_newton.planes

    def late(table, *given):
        if table.rows.n == len(X):
            begun.append(table.Y.shape[1])
            monkeypatch.setattr(batches.Budget, "spent", True)  # from the first block of all rows on
        return planes(table, *given)

    monkeypatch.setattr(block_newton, "planes", late)
    found = gordan.minimize_loss(X, Y, loss=loss, time_limit=1000)
    assert begun == [2]
    assert found.w.any(axis=0).all()
    assert (found.objective[:, 1] < 0.9 * len(X) * Loss(loss).at_zero(2)).all()
    assert gordan.verify(found[5].certificate, X, Y[:, 5])


@pytest.mark.parametrize("held", ["memory", "blocks"])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "hinge"])
def test_ctrl_c_in_shared_passes_keeps_the_planes(loss, held, monkeypatch):
    """The last planes of all columns are returned, with what they prove."""
    if held == "memory" and loss == "hinge":
        pytest.skip("columns of a hinge in memory share no passes")
    r = np.random.default_rng(0)
    X = r.standard_normal((3000, 120))
    Y = np.where(X @ r.standard_normal((120, 5)) + 3 * r.standard_normal((3000, 5)) > 0, 1, -1)
    stored = X if held == "memory" else Blocks([Loadable(3000, X.size, lambda: Dense(X))], 120, np.float64)
    solved = gordan.minimize_loss(X, Y, loss=loss)
    monkeypatch.setattr(block_newton.LossTable, "at", interrupting(block_newton.LossTable.at, 3))
    found = gordan.minimize_loss(stored, Y, loss=loss)
    assert (found.status == "interrupted").all()
    assert found.w.any(axis=0).all()
    assert (found.objective[:, 1] < 0.9 * 3000 * Loss(loss).at_zero(2)).all()  # better than w = 0
    assert (found.objective[:, 0] <= solved.objective[:, 1]).all()
    assert (solved.objective[:, 0] <= found.objective[:, 1]).all()
    assert gordan.verify(found[1].certificate, X, Y[:, 1])


def interrupting(function, calls):
    """`function`, but for an interrupt after so many calls."""
    made = count()

    def called(*given, **options):
        if next(made) == calls:
            raise KeyboardInterrupt
        return function(*given, **options)

    return called


@pytest.mark.parametrize("kind", ["ovo", "ovr"])
def test_no_binary_problem_is_begun_after_the_deadline(kind, clock, monkeypatch):
    """Of 20 classes: one problem is being solved when the time is up, and no other asks for a pass."""
    import warnings

    from gordan.estimators import fitting

    r, begun, real = np.random.default_rng(0), [], fitting.margin_of
    monkeypatch.setattr(fitting, "margin_of", lambda *given: begun.append(1) or real(*given))
    y = np.arange(200) % 20
    X = r.standard_normal((200, 3))
    clock.tick = 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gordan.MaxMarginClassifier(multi_class=kind, time_limit=1.0).fit(X, y)
    assert 0 < len(begun) < 20
    assert np.sum(np.isinf(model.margin_[:, 1])) > 5
    assert model.predict(X).shape == (200,)


@pytest.mark.parametrize(("size", "intercept"), [(1e154, "free"), (1e200, "free"), (1e-150, "none")])
def test_margins_whose_squares_are_beyond_the_floats_are_not_called_solved_unproved(size, intercept):
    """Of such rows the proof for many columns has no upper end: each is then asked for alone."""
    X = np.random.default_rng(0).uniform(-1, 1, (9, 4)) * size
    y = np.repeat([0, 1, 2], 3)
    X[:, 0] = (y - 1) * size
    Y = np.column_stack([y == 0, y == 2])
    for k, found in enumerate(gordan.maximize_margin(X, Y, intercept=intercept)):
        assert found.status != "solved" or found.gap <= 1e-3
        assert found.margin[1] < np.inf
        assert gordan.verify(found.certificate, X, Y[:, k])
    if intercept == "free":
        fitted = gordan.MaxMarginClassifier().fit(X, y)
        assert np.isfinite(fitted.margin_).all()
