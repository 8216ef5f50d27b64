"""`separate` and `verify` as a user meets them: answers, input of every kind, and what must not change them."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import random
import signal
from fractions import Fraction

import numpy as np
import oracle
import pytest
import scipy.sparse as sp
from flint import fmpq
from passes import Kept
from problems import planted
from sklearn.datasets import load_digits, make_classification
from test_fuzz import hull

import gordan
from gordan import datasets
from gordan.certificates import standalone
from gordan.certificates.problem import Problem
from gordan.deadlines import UNLIMITED, Deadline
from gordan.errors import BeyondFloats
from gordan.intercepts import Intercept
from gordan.ledger.question import Proposal
from gordan.rows.blocks import Blocks
from gordan.rows.memory import Dense
from gordan.solve import double_oracle, finders, playing, rounding
from gordan.solve.alternative import alternative
from gordan.solve.quick import SAMPLE, quick_witness, row_keys, sample_keys
from gordan.solve.rounding import Allowance, float_separators
from gordan.solve.untangling import last_bits
from gordan.verdicts import outward
from gordan.verdicts.arguments import budget_of
from gordan.verdicts.margin import MarginOptions, margin_of

XOR = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
XOR_Y = np.array([0, 0, 1, 1])


def blobs(seed=0, n=30, d=3, gap=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.arange(n) % 2
    X[:, 0] = np.abs(X[:, 0]) * (2 * y - 1) + gap * (2 * y - 1)
    return X, y


def test_iris():
    """The margin of setosa is known from LIBSVM (C = 1e10): 0.817557; virginica has no separator."""
    X, y = datasets.iris("setosa")
    v = gordan.separate(X, y)
    assert v.status == "separable"
    assert v.separable is True
    assert v.proved
    assert v.margin == pytest.approx((0.817556, 0.817556), abs=2e-6)
    assert (y * (X @ v.w + v.b) > 0).all()
    assert np.linalg.norm(v.w) == pytest.approx(1.0, abs=1e-12)
    assert (y * (X @ v.w + v.b)).min() >= v.margin[0] - 1e-12
    assert gordan.verify(v.certificate, X, y)
    X, y = datasets.iris("virginica")
    v = gordan.separate(X, y)
    assert v.status == "not-separable"
    assert v.separable is False
    assert v.margin == (0.0, 0.0)
    rows, weights = v.witness.rows, v.witness.weights
    assert len(rows) <= X.shape[1] + 2
    for column in (*X.T, np.ones(len(X))):
        assert sum(Fraction(column[i]) * int(y[i]) * weight for i, weight in zip(rows, weights, strict=True)) == 0
    assert gordan.verify(v.certificate, X, y)


@pytest.mark.parametrize("value", [1.0, 2.0, 0.5, 255.0])
def test_rows_of_round_numbers_have_keys_of_their_own(value):
    """Equal keys send rows to a slow comparison: all 4,096 rows of twelve such numbers or zeros must be told apart."""
    X = value * ((np.arange(4096)[:, None] >> np.arange(12)) & 1)
    y = np.arange(4096) % 2
    keys = row_keys(Problem.of(X, y))
    assert len(np.unique(keys)) == 4096
    assert keys[0] == 0
    assert (keys == row_keys(Problem.of(sp.csr_array(X.astype(np.float32)), y))).all()


@pytest.mark.parametrize("values", [(-1.0, 1.0), (1.0, 2.0), (-3.0, 3.0), (0.0, -0.25)])
def test_rows_that_differ_in_signs_or_powers_of_two_have_keys_of_their_own(values):
    """x and -x, too: with symmetric points, as with ±1 or 1 and 2 as codes, a pass would end in a comparison of all rows."""
    X = np.array(values)[(np.arange(4096)[:, None] >> np.arange(12)) & 1]
    assert len(np.unique(row_keys(Problem.of(X, np.arange(4096) % 2)))) == 4096
    wide = np.tile(X, 2)  # of whose 24 entries eight are looked at first
    sampled = sample_keys(Problem.of(wide, np.arange(4096) % 2))
    looked_at = np.linspace(0, 23, SAMPLE).astype(int)
    assert len(np.unique(sampled)) == len(np.unique(wide[:, looked_at], axis=0))


def test_symmetric_points_are_told_apart_by_keys():
    """One pass over some entries of each row, and no row is looked at by itself."""
    X = np.random.default_rng(5).normal(size=(200, 40))
    block = Kept(Dense(np.concatenate((X, -X))))
    problem = Problem.of(Blocks([block], 40, np.float64), np.arange(400) // 200)
    block.loads = 0
    assert quick_witness(problem, Intercept.FREE) is None
    assert block.loads == 1


def test_rows_of_equal_keys_are_brought_together_while_there_is_time(monkeypatch, clock):
    """Where keys tell nothing, 400 rows are compared: brought here once, and no longer than until the deadline."""
    X = np.random.default_rng(5).normal(size=(400, 40))
    X[399], y = X[0], np.arange(400) // 200
    block = Kept(Dense(X))
    problem = Problem.of(Blocks([block], 40, np.float64), y)
    monkeypatch.setattr("gordan.solve.quick._scrambled", lambda columns: np.zeros(columns.shape, np.uint64))
    block.loads = 0
    assert quick_witness(problem, Intercept.FREE) == {0: 1, 399: 1}
    assert block.loads == 3  # some entries of each row, all of them, rows
    clock.tick, clock.readings = 1.0, 0
    assert quick_witness(problem, Intercept.FREE, Deadline(clock.now + 100)) is None
    assert clock.readings < 110


@pytest.mark.parametrize("storage", ["dense", "float32", "sparse", "explicit zeros"])
def test_equal_points_are_found_whatever_their_storage(storage):
    """Of 300 points in 60 columns one comes with both labels; many agree with it in the entries that are looked at first."""
    r = np.random.default_rng(2)
    X = np.round(r.normal(size=(300, 60)) * 8) * (r.uniform(size=(300, 60)) < 0.6)
    X[100:200] = X[7]
    X[100:200, 30] = np.arange(1, 101)  # alike but for one column
    X[250] = X[7]
    y = np.arange(300) % 2
    y[250] = 1 - y[7]
    stored = X.astype(np.float32) if storage == "float32" else X
    if storage in ("sparse", "explicit zeros"):
        stored = sp.csr_array(X)
    if storage == "explicit zeros":
        zeros = sp.coo_array((np.full(1, 0.0), ([7], [int(np.flatnonzero(X[7] == 0)[0])])), shape=X.shape)
        parts = stored.tocoo()
        where = np.r_[parts.row, zeros.row], np.r_[parts.col, zeros.col]
        stored = sp.csr_array(sp.coo_array((np.r_[parts.data, zeros.data], where), shape=X.shape))
        assert stored.nnz == np.count_nonzero(X) + 1
    assert gordan.separate(stored, y).witness == gordan.Witness((7, 250), (1, 1))


def test_the_certificate_is_that_of_the_proof_whatever_happens_to_w():
    X, y = blobs()
    v = gordan.separate(X, y)
    w, lower = v.w.copy(), v.margin[0]
    v.w[:] = -1.0
    assert v.certificate.w == tuple(w)
    assert v.certificate.lower == lower
    assert gordan.verify(v.certificate, X, y)


def test_xor_has_a_four_row_witness():
    v = gordan.separate(XOR, XOR_Y)
    assert v.witness == gordan.Witness((0, 1, 2, 3), (1, 1, 1, 1))
    assert "cancel exactly" in repr(v)
    assert repr(v) in v._repr_html_()


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_equal_points_with_opposite_labels(intercept):
    X, y = blobs()
    X[7], y[7], X[20], y[20] = X[12], 1, X[12], 0
    v = gordan.separate(X, y, intercept=intercept)
    assert v.status == "not-separable"
    assert len(v.witness.rows) == 2
    assert "have the same features and different labels" in repr(v)


def test_a_zero_row():
    X, y = blobs()
    X[4] = 0
    assert gordan.separate(X, y, intercept="none").witness == gordan.Witness((4,), (1,))
    assert gordan.separate(X, y, intercept="free").status == "separable"


STORAGES = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csr": sp.csr_matrix,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "list": lambda X: X.tolist(),
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("data", [blobs(), (XOR, XOR_Y)], ids=["separable", "not"])
def test_storage_changes_nothing(storage, data):
    X, y = data
    first, second = gordan.separate(X, y), gordan.separate(STORAGES[storage](X), y)
    assert first.status == second.status
    assert first.certificate.data_hash == second.certificate.data_hash
    assert gordan.verify(second.certificate, X, y)
    assert gordan.verify(first.certificate, STORAGES[storage](X), y)


def test_memory_map(tmp_path):
    X, y = blobs(n=200)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    v = gordan.separate(mapped, y)
    assert v.status == "separable"
    assert gordan.verify(v.certificate, mapped, y)


LABELS = {
    "strings": lambda y: np.where(y == 1, "yes", "no"),
    "objects": lambda y: np.where(y == 1, "yes", "no").astype(object),
    "booleans": lambda y: y == 1,
    "floats": lambda y: y.astype(float) * 2 - 1,
    "int8": lambda y: y.astype(np.int8),
    "list": lambda y: y.tolist(),
    "column": lambda y: y.reshape(-1, 1),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind(kind):
    X, y = blobs()
    labels = LABELS[kind](y)
    v = gordan.separate(X, labels)
    assert v.status == "separable"
    again = gordan.Certificate.from_json(v.certificate.to_json())
    assert again == v.certificate
    assert gordan.verify(again, X, labels)
    assert not gordan.verify(again, X, LABELS[kind](1 - y))


def test_frames():
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'gordan[data]'")
    X, y = blobs()
    frame = pandas.DataFrame(X, columns=list("abc"))
    labels = pandas.Series(np.where(y == 1, "yes", "no"), dtype="string")
    v = gordan.separate(frame, labels)
    assert v.status == "separable"
    assert gordan.verify(v.certificate, frame, labels)
    labels[3] = pandas.NA
    with pytest.raises(gordan.InputError, match=r"y\[3\] is .*drop that row"):
        gordan.separate(frame, labels)


def asked(monkeypatch):
    """The names of the finders that are asked, in their order, as they are asked."""
    names = []

    def noted(finder):
        def find(*arguments):
            names.append(finder.name)
            yield from finder.find(*arguments)

        return dataclasses.replace(finder, find=find)

    monkeypatch.setattr(finders, "FINDERS", tuple(map(noted, finders.FINDERS)))
    return names


@pytest.mark.parametrize(("storage", "finder"), [(np.asarray, "suspects"), (sp.csr_array, "few columns")])
def test_many_overlapping_rows_are_not_played_for(storage, finder, monkeypatch):
    """A sample of the rows is a witness, found and proved sooner than a play sees that there is no margin."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((9000, 100)) * (rng.random((9000, 100)) < (1 if storage is np.asarray else 0.2))
    y = np.where(X[:, 0] + rng.standard_normal(9000) > 0, 1, -1)
    names = asked(monkeypatch)
    r = gordan.maximize_margin(storage(X), y)
    assert r.status == "not-separable"
    assert gordan.verify(r.certificate, storage(X), y)
    assert finder in names
    assert "play" not in names


def test_rows_that_hardly_touch_are_played_for(monkeypatch):
    """Both questions are answered by the same finder; the working set would need many games."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((3000, 40)), rng.standard_normal(40)
    y = np.where(X @ w > 0, 1, -1)
    X += np.outer(1e-2 * y, w)
    names = asked(monkeypatch)
    v = gordan.separate(X, y)
    assert v.separable
    assert gordan.verify(v.certificate, X, y)
    assert names[-1] == "play"
    names.clear()
    assert gordan.maximize_margin(X, y, tol=1e-2).status == "solved"
    assert names[-1] == "play"


def test_rows_that_overlap_are_not_played_for(monkeypatch):
    rng = np.random.default_rng(0)
    names = asked(monkeypatch)
    assert not gordan.separate(rng.standard_normal((3000, 40)), rng.integers(0, 2, 3000))
    assert names[-1] == "working set"
    assert "play" not in names


def sparse_noise(n=12_000, d=3200, per_row=12, wrong=None):
    """Sparse rows with entries in random columns: random labels, or a plane's with this share of them turned over."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(
        (rng.random(n * per_row), rng.integers(0, d, n * per_row), np.arange(0, n * per_row + 1, per_row)), shape=(n, d)
    )
    X.sum_duplicates()
    y = rng.integers(0, 2, n)
    if wrong is not None:
        scores = X @ rng.standard_normal(d)
        y = (scores > np.median(scores)) ^ (rng.random(n) < wrong)
    return X, y


def test_sparse_rows_that_overlap_in_many_columns_nearly_cancel(monkeypatch):
    """A witness would need a matrix of thousands of columns. Without one it is still proved that any margin is negligible."""
    X, y = sparse_noise()
    names = asked(monkeypatch)
    v = gordan.separate(X, y)
    assert v.status == "margin-below-tol"
    assert v.margin[1] < 1e-9
    assert "least loss" in names
    assert "play" not in names


def test_no_large_game_is_played_where_sparse_rows_overlap(monkeypatch):
    """Its first game would take longer than all finders of the sign; they are asked before, not after four rounds."""
    monkeypatch.setattr(double_oracle.DoubleOracle, "round", None)
    X, y = sparse_noise()
    r = gordan.maximize_margin(X, y)
    assert r.status == "margin-below-tol"
    assert r.n_iter == 0
    with pytest.warns(UserWarning, match="no separator was found, nor a proof that there is none; fitted by squared hinge"):
        model = gordan.MaxMarginClassifier().fit(X, y)
    assert model.coef_.any()


def test_work_in_vain_is_counted(monkeypatch):
    """A classifier without a time limit does not play for long where the finders of the sign decide nothing."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((20_000, 40)), rng.standard_normal(40)
    y = np.where(X @ w > 0, 1, -1)
    monkeypatch.setattr(finders, "FINDERS", [finder for finder in finders.FINDERS if finder.name == "play"])
    monkeypatch.setattr(playing, "TUNING", dataclasses.replace(playing.TUNING, rounds_before_doubt=1))
    problem, budget = Problem.of(X, y), budget_of(None, None, None, None)
    options = MarginOptions(Intercept.FREE, 2.0, None, "auto", 1e-9, None, None)
    rounds = [margin_of(problem, budget, options._replace(work=work)).n_iter for work in (0.0, math.inf)]
    assert rounds[0] == 1 < rounds[1]


@pytest.mark.parametrize("intercept", Intercept)
def test_small_data_is_left_to_the_interior_point_method(monkeypatch, intercept):
    """Whatever is asked before it: both ends of the margin that `separate` reports are then those of the largest margin."""
    X, y = blobs(n=60, d=5)
    names = asked(monkeypatch)
    v = gordan.separate(X, y, intercept=intercept.value)
    assert names[-1] == "interior point"
    assert 0 < v.margin[1] <= v.margin[0] * (1 + 1e-6)


def test_a_finder_of_the_sign_that_fails_leaves_the_question_to_others(monkeypatch):
    """Its warnings are not shown; what it is asked for the width, and finds wrong with the data, is reported."""

    def failing(question, evidence, doubt):
        np.array([1e308]) * 10
        raise BeyondFloats("a product with X overflows")
        yield

    X, y = blobs()
    always = dict.fromkeys(("sign", "width"), lambda question, evidence: True)
    monkeypatch.setattr(finders, "FINDERS", (finders.Finder("failing", failing, **always), *finders.FINDERS))
    assert gordan.separate(X, y).separable
    with pytest.raises(gordan.InputError, match="overflows"):
        gordan.maximize_margin(X, y)


def test_no_finder_is_asked_after_one_that_was_stopped(monkeypatch):
    """Even if it has nothing to propose, and the question is still open."""
    X, y = blobs()
    always = dict.fromkeys(("sign", "width"), lambda question, evidence: True)
    stopped = finders.Finder("stopped", lambda *given: iter([Proposal(stopped=True)]), **always)
    monkeypatch.setattr(finders, "FINDERS", (stopped, *finders.FINDERS))
    names = asked(monkeypatch)
    assert gordan.separate(X, y).status == "undecided"
    assert gordan.maximize_margin(X, y).status == "interrupted"
    assert names == ["stopped"] * 2


def test_a_contradiction_spares_the_play(monkeypatch):
    """Unless somebody wants to see it."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 20)), rng.integers(0, 2, 300)
    X[7], y[7] = X[3], 1 - y[3]
    names, moments = asked(monkeypatch), []
    result = gordan.maximize_margin(X, y)
    assert (result.status, result.n_iter, names) == ("not-separable", 0, ["contradiction"])
    assert gordan.verify(result.certificate, X, y)
    assert gordan.maximize_margin(X, y, callback=lambda moment: moments.append(moment)).status == "not-separable"
    assert moments


def test_a_callback_that_says_stop():
    """It is shown what is proved so far, and what it is shown last is the answer."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 40)), rng.integers(0, 2, 3000)
    shown = []
    v = gordan.separate(X, y, callback=lambda so_far: shown.append(so_far) or True)
    assert len(shown) == 1
    assert (v.status, v.margin) == (shown[0].status, shown[0].margin)
    assert v.status == "undecided"


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_keeps_what_was_proved():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 40)), rng.integers(0, 2, 3000)
    v = gordan.separate(X, y, callback=lambda so_far: os.kill(os.getpid(), signal.SIGINT))
    assert v.status == "undecided"
    assert v.separable is None
    assert not v.proved
    assert v.certificate is None
    assert 0 < v.margin[1] < np.inf
    assert "undecided: the largest margin is at most" in repr(v)


def test_time_limit(clock):
    """What is not decided in time is open; soon after the limit the search ends."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 40)), rng.integers(0, 2, 3000)
    clock.tick = 1000.0
    v = gordan.separate(X, y, time_limit=1000.0, max_iter=10**9)
    assert v.status == "undecided"
    assert v.seconds <= 10_000  # ten readings of the clock
    v = gordan.separate(X, y, time_limit=1e6, max_iter=10**9)
    assert v.status == "not-separable"
    assert gordan.verify(v.certificate, X, y)


def test_margin_below_tol_is_proved_and_says_so():
    """A loose tol makes a small upper bound the answer where nothing else could be completed in time."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 40)), rng.integers(0, 2, 3000)
    v = gordan.separate(X, y, tol=0.9, max_iter=50, time_limit=1e-6)
    assert v.status == "margin-below-tol"
    assert v.proved
    assert v.separable is None
    assert gordan.verify(v.certificate, X, y)
    assert "margin below tolerance" in repr(v)


def test_a_larger_problem_is_decided_both_ways():
    """Beyond what is solved exactly at once: the game finds separators, the linear program the support of a witness."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((800, 20))
    w = rng.standard_normal(20)
    y = (X @ w > 0).astype(int)
    v = gordan.separate(X, y)
    assert v.status == "separable"
    assert gordan.verify(v.certificate, X, y)
    y[rng.integers(0, 800, 60)] ^= 1
    for storage in (np.asarray, sp.csr_array):
        v = gordan.separate(storage(X), y)
        assert v.status == "not-separable"
        assert 2 <= len(v.witness.rows) <= 22
        assert gordan.verify(v.certificate, X, y)


@pytest.mark.parametrize(
    ("bracket", "shown"),
    [
        ((0.1, 0.3), ("0.1", "0.3")),
        ((1.23456789e-7, 1.23456712e-7), ("1.23456e-07", "1.23457e-07")),
        ((0.0, np.inf), ("0", "inf")),
    ],
)
def test_brackets_are_shown_rounded_outward(bracket, shown):
    assert outward(*bracket) == shown


def assert_margin(result, X, y, intercept):
    """The bracket holds the exact γ*², and its certificate is accepted."""
    square = oracle.squared_margin(hull(X, y, intercept))
    lower, upper = result.margin
    assert Fraction(lower) ** 2 <= square
    assert upper == math.inf or square <= Fraction(upper) ** 2
    assert gordan.verify(result.certificate, X, y)


def test_floats_that_end_in_the_interior_point_method():
    """Entries from 1e-82 to 1e79: a step overflows there, and others decide."""
    X = [
        [7.183572847808854e52, -6.784692728748996e74, 2251799813685248.0],
        [-9.284550294640352e26, 9.027796614315168e-36, 4.820814132776971e60],
        [2.9642774844752946e79, -1.3177747429038154e-82, 6291456.0],
        [1.349401336733507e-79, -3.637978807091713e-12, -1.9446922743316068e-62],
    ]
    y = [1, 0, 1, 1]
    verdict = gordan.separate(X, y, intercept="penalized")
    assert verdict.separable
    assert gordan.verify(verdict.certificate, X, y)
    assert_margin(gordan.maximize_margin(X, y, intercept="penalized"), np.array(X), y, "penalized")


@pytest.mark.parametrize("storage", [np.asarray, sp.csc_array, sp.csr_array])
def test_rows_whose_squares_leave_the_floats(storage):
    """Data of size 1e-155: its scale squared is beyond the floats."""
    X = np.array([[-1e-300, -(2.0**-1021)], [7e-155, -0.0], [-(2.0**-1022), 1e-200], [2.0**-1021, 1e-200]])
    y = [1, 0, 1, 1]
    verdict = gordan.separate(storage(X), y, intercept="none")
    assert verdict.separable
    assert gordan.verify(verdict.certificate, X, y)
    assert_margin(gordan.maximize_margin(storage(X), y, intercept="none"), X, y, "none")


def test_a_verdict_in_a_condition():
    """What is open is neither true nor false."""
    assert gordan.separate([[0.0], [1.0]], [0, 1])
    assert not gordan.separate([[0.0], [1.0], [2.0]], [0, 1, 0])
    X = np.random.default_rng(0).normal(size=(3000, 40))
    with pytest.raises(gordan.InputError, match="not decided"):
        bool(gordan.separate(X, X[:, 0] + 0.01 * X[:, 1] ** 3 > 0, time_limit=1e-9))


def test_the_order_of_rows_is_that_of_random_state():
    """Verdicts are the same whatever it is; the same seed gives the same plane, others give others."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((6000, 60))  # too many rows for the interior point, which visits none
    y = X @ rng.standard_normal(60) > 0
    found = [gordan.separate(X, y, random_state=seed) for seed in (None, 1, 2, 2)]
    assert all(v.separable for v in found)
    assert found[0].w.tolist() == found[1].w.tolist()
    assert found[2].w.tolist() == found[3].w.tolist()
    assert found[1].w.tolist() != found[2].w.tolist()


def test_labels_that_are_the_same_float_are_refused():
    for labels in ([0.5, 2**53, 2**53 + 1, 2**53 + 1], [0.5, 2**53 + 1, 2**53 + 1, 2**53 + 1]):
        with pytest.raises(gordan.InputError, match=f"is {2**53 + 1}, which float64 cannot hold"):
            gordan.separate([[0.0], [1.0], [2.0], [3.0]], labels)


# ---- as far as floats go ---------------------------------------------------------------------------------------------


def proved_twice(found, X, y):
    """Both checkers accept the certificate."""
    accepted, reason = standalone.check(json.loads(found.certificate.to_json()), np.asarray(X).tolist(), list(y))
    assert gordan.verify(found.certificate, X, y)
    assert accepted, reason


@pytest.mark.parametrize("n", [200, 3000])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("intercept", ["free", "none", "penalized"])
def test_columns_below_the_normal_floats(n, storage, intercept):
    """A column whose reciprocal is beyond the floats: decided as any other, by the functions alike."""
    X = np.zeros((n, 2))
    y = np.arange(n) % 2
    X[:, 0] = np.where(y, 1, -1)
    X[1], X[3], X[2] = (0, -(2.0**-1030)), (0, 2.0**-1030), (0, 0)  # row 2 is the mean of rows 1 and 3, and of the other class
    for call in (gordan.separate, gordan.maximize_margin):
        assert call(storage(X), y, intercept=intercept).status == "not-separable"
    assert gordan.diagnose(storage(X), y, intercept=intercept).kind == "quasi-complete"
    X[:, 0], X[:, 1] = np.random.default_rng(0).integers(-4, 5, n), np.where(y, 3, -3) * 2.0**-1060
    found = gordan.separate(storage(X), y, intercept=intercept)
    assert found.separable
    assert gordan.verify(found.certificate, X, y)
    assert gordan.diagnose(storage(X), y, intercept=intercept).kind == "complete"
    if n == 200:
        proved_twice(found, X, y)


TINY, SMALL, LARGE = 5e-324, 2.0**-40, 2.0**52
FEW_FLOATS = {
    "columns from 1e-300 to 1e100": (
        [[2e100, -3.0, -1e-300, -2e-16], [-1e100, 1.0, 3e-300, 0.0], [0.0, -1.0, 0.0, 0.0]],
        [1, 1, 0],
    ),
    "the smallest floats": (
        [
            [TINY, -5 * TINY, 0.0, -TINY],
            [TINY, -5 * TINY, 0.0, -2 * TINY],
            [TINY, 5 * TINY, 4 * TINY, 0.0],
            [4 * TINY, TINY, -TINY, 2 * TINY],
            [4 * TINY, -2 * TINY, -5 * TINY, TINY],
            [-3 * TINY, 5 * TINY, TINY, TINY],
        ],
        [1, 0, 0, 1, 1, 0],
    ),
    "half way between floats": ([[2 * LARGE, 0.5], [2 * LARGE - 1, 0.5], [0.0, 0.5], [1.0, 0.5]], [1, 0, 0, 0]),
    "rows that cancel": (
        [[LARGE, -LARGE, 1.0], [LARGE, 1 - LARGE, 0.0], [-LARGE, LARGE - 1, SMALL], [LARGE - 1, -LARGE, 0.0]],
        [1, 1, 0, 0],
    ),
    "rows of many sizes": (
        [
            [-(2.0**566), -(2.0**566), -(2.0**565)],
            [-(2.0**-985), 0.0, -(2.0**-986)],
            [128.0, 384.0, 0.0],
            [2.0**940, 2.0**940, -(2.0**939)],
        ],
        [0, 1, 1, 1],
    ),
}


@pytest.mark.parametrize("intercept", ["free", "penalized"])
@pytest.mark.parametrize("name", FEW_FLOATS)
def test_cones_with_few_floats_in_them(name, intercept):
    """Separable, but nearly all w near an exact one are not separators once they are rounded."""
    X, y = FEW_FLOATS[name]
    assert oracle.separable([[x if label else -x for x in (*row, 1.0)] for row, label in zip(X, y, strict=True)])
    found = gordan.separate(X, y, intercept=intercept)
    assert found.status == "separable"
    proved_twice(found, X, y)
    assert gordan.diagnose(X, y, intercept=intercept).kind == "complete"


def test_floats_near_exact_separators_separate():
    """Whatever is yielded does, in fractions; and for cones with one integer direction in them something is."""
    r = random.Random(0)
    for trial in range(40):
        k = r.randint(2, 5)
        w = [r.randint(-9, 9) or 1 for _ in range(k)]
        rows = [[r.randint(-(2**60), 2**60) for _ in range(k)] for _ in range(2 * k)]
        for row in rows:  # the score is 1 to 3: thousands of digits less than its terms
            j = min(range(k), key=lambda j: abs(w[j]))
            wanted = r.randint(1, 3) * abs(w[j])
            row[j] += (wanted - sum(x * v for x, v in zip(row, w, strict=True))) // w[j]
        rows = [row for row in rows if sum(x * v for x, v in zip(row, w, strict=True)) > 0]
        if not rows:
            continue
        found = next(float_separators([[fmpq(x) for x in row] for row in rows], Allowance(UNLIMITED)), None)
        assert found is not None, trial
        assert all(sum(x * Fraction(v) for x, v in zip(row, found.tolist(), strict=True)) > 0 for row in rows)


def test_far_from_zero_the_plane_is_put_midway_exactly():
    """Points around 2⁵² in several columns: scores in floats are off by more than the margin, and so is b between them."""
    rng = np.random.default_rng(0)
    for n, d in ((300, 3), (1500, 6)):
        X = rng.integers(-9, 10, (n, d))
        w = rng.integers(1, 4, d)
        X[X @ w == 0, 0] += 1
        y = (X @ w > 0).astype(int)
        moved = (X + 2**52).astype(np.float64)
        for intercept in ("free", "penalized"):
            found = gordan.separate(moved, y, intercept=intercept)
            assert found.separable
            assert gordan.verify(found.certificate, moved, y)


def test_a_working_set_that_goes_nowhere_is_left():
    """Games that floats take for 0 and whose rows do not cancel may come again for ever: then exact arithmetic decides."""
    found = planted("last_bits", random.Random("loop 45"), "none", 700)
    asked = []
    verdict = gordan.separate(found.X, found.y, intercept="none", callback=lambda v: asked.append(v) or len(asked) > 400)
    assert len(asked) < 400
    assert found.kind == "quasi-complete"
    assert verdict.status == "not-separable"


def redundant(n, d, rng):
    """Noisy labels; a third of the columns are combinations of others, rounded, and one is a copy of another."""
    X = rng.standard_normal((n, d))
    third = d // 3
    X[:, -third:] = X[:, :third] @ rng.uniform(-1, 1, (third, third))
    X[:, third] = X[:, -1]
    return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(int)


def standardized_dummies(n, d, rng):
    """Noisy labels; all levels of a category as columns of mean 0 and variance 1, and a column of noise."""
    X = np.column_stack((np.eye(d - 1)[rng.integers(d - 1, size=n)], rng.standard_normal(n)))
    return (X - X.mean(axis=0)) / X.std(axis=0), rng.integers(2, size=n)


@pytest.mark.parametrize("make", [redundant, standardized_dummies])
@pytest.mark.parametrize(("n", "d"), [(200, 9), (2000, 30), (30_000, 40)])
def test_columns_that_depend_on_others_up_to_rounding(make, n, d):
    """The redundant features of scikit-learn's generator and standardized dummies: overlap is proved, not left undecided."""
    X, y = make(n, d, np.random.default_rng(n + d))
    verdict = gordan.separate(X, y)
    assert verdict.status == "not-separable"
    total = [Fraction(0)] * (d + 1)
    for row, weight in zip(verdict.witness.rows, verdict.witness.weights, strict=True):
        assert weight > 0
        sign = 1 if y[row] == 1 else -1
        total = [part + sign * weight * Fraction(x) for part, x in zip(total, [*X[row].tolist(), 1.0], strict=True)]
    assert not any(total)


def test_rare_large_values_do_not_hide_last_bits():
    """A column that is 0 except in one row, where it is huge: it must not make the last bits of other rows count as 0."""
    X, y = make_classification(1000, 20, n_informative=5, n_redundant=10, flip_y=0.3, random_state=0)
    rare = np.zeros(1000)
    rare[5] = 1e9
    assert gordan.separate(np.column_stack((X, rare)), y).status == "not-separable"


def test_factors_whose_common_denominator_is_beyond_the_floats():
    """Short fractions, but as integers they would have hundreds of digits, and be no floats."""
    rng = np.random.default_rng(0)
    primes = np.array([p for p in range(2, 1100) if all(p % q for q in range(2, p))][:170])
    X = rng.standard_normal((1500, 170))
    X = np.column_stack((X, X @ (1 / primes)))
    assert gordan.separate(X, rng.integers(2, size=1500), time_limit=30).separable is not True


def test_last_bits_of_combinations():
    """Against fractions: digits beyond those of floats are right, and combinations that vanish do so."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 6)) * 2.0 ** rng.integers(-8, 9, 6)
    F = np.append(rng.standard_normal(5), -1.0)
    X[:, 5] = X[:, :5] @ F[:5]
    found = last_bits(X, F[:, None])[:, 0]
    wanted = [sum(Fraction(x) * Fraction(f) for x, f in zip(row, F.tolist(), strict=True)) for row in X.tolist()]
    largest = max(map(abs, wanted))
    assert 0 < largest < Fraction(1, 10**10)
    assert all(abs(Fraction(x) - want / largest) < Fraction(1, 10**6) for x, want in zip(found.tolist(), wanted, strict=True))
    short = np.round(X[:, :1] * 1024) / 1024
    assert not last_bits(np.column_stack((short, 3 * short)), np.array([[3.0], [-1.0]])).any()


def test_the_last_resort_ends_without_a_time_limit(monkeypatch):
    """A rotation of pixels leaves columns of rounding noise, and rows that have a column nearly to themselves: exact arithmetic
    would take hours, so its work is limited."""
    X, y = load_digits(return_X_y=True)
    X = X - X.mean(axis=0)
    X = X @ np.linalg.svd(X, full_matrices=False)[2].T
    spent = 0

    def counted(M, deadline):
        nonlocal spent
        spent += len(M) * len(M[0]) ** 2 * max(int(x.p.bit_length()) for row in M for x in row)
        assert spent <= 1 << 23  # about five seconds
        return alternative(M, deadline)

    monkeypatch.setattr(rounding, "alternative", counted)
    assert gordan.separate(X, y % 2).separable is not True


def test_the_allowance_of_exact_arithmetic():
    """A system is solved while work is left for it, and none afterwards."""
    allowance = Allowance(UNLIMITED, work=100.0)
    assert allowance.alternative([[fmpq(1), fmpq(2)], [fmpq(3), fmpq(-1)]]) is not None
    assert allowance.alternative([[fmpq(2**60), fmpq(2)], [fmpq(3), fmpq(-1)]]) is None
    assert allowance.spent
