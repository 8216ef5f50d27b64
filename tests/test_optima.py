"""Least losses of many label vectors: what one pass proves of all of them, against what is proved of each; wherever rows are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from checkers import both

import gordan
from gordan.certificates import elementary, optima
from gordan.certificates.losses import Objective
from gordan.certificates.matrix import Matrix
from gordan.certificates.optima import TERMS_AT_ONCE, Objectives, Planes, _sums
from gordan.certificates.regions import Balls, _slopes
from gordan.floats import U
from gordan.intercepts import Intercept
from gordan.losses import Loss
from gordan.rows import Rows, stored
from gordan.rows.blocks import Blocks, Loadable
from gordan.rows.memory import Dense
from gordan.rows.reads import DenseBlock
from gordan.solve import block_newton

SMOOTH = (Loss.SQUARED_HINGE, Loss.LOGISTIC)
NONE = np.empty(0, np.int64), np.empty(0)


def problem(n, d, k, seed, sparse=False, scale=1.0):
    """Rows of k classes that overlap, signs of which some are 0, and weights of which some are 0."""
    r = np.random.default_rng(seed)
    y = r.integers(0, k, n)
    X = scale * (r.standard_normal((n, d)) + r.standard_normal((k, d))[y])
    if sparse:
        X = sp.csr_array(X * (r.random((n, d)) < 0.3))
    signs = np.where(y[:, None] == np.arange(k), 1, -1).astype(np.int8)
    signs[r.random((n, k)) < 0.05] = 0
    signs[:2] = [[1], [-1]]
    c = np.where(r.random(n) < 0.1, 0.0, r.uniform(0.01, 2.0, n))
    c[:2] = 1.0
    return X, signs, c


def one(objectives, j):
    signs = np.ascontiguousarray(objectives.signs[:, j])
    return Objective(objectives.X, signs, objectives.loss, objectives.c * abs(signs), objectives.intercept)


@pytest.mark.parametrize("intercept", list(Intercept))
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("seed", range(6))
def test_what_is_claimed_of_many_holds_what_is_proved_of_each(loss, intercept, seed):
    """At planes good and bad: so a checker, who looks at one label vector, accepts every claim."""
    r = np.random.default_rng(100 + seed)
    n, d, k = [(40, 3, 2), (700, 5, 3), (60, 40, 2), (300, 8, 12), (1100, 2, 3), (90, 7, 4)][seed]
    X, signs, c = problem(n, d, k, seed, sparse=seed == 3, scale=[1, 1e3, 1e-3, 1, 1e6, 1][seed])
    objectives = Objectives(Matrix(stored(X)), signs, loss, c, intercept)
    best = gordan.minimize_loss(X, signs, loss=loss.value, intercept=intercept.value, tol=1e-7, sample_weight=c)
    for W, b in (
        (best.w, best.b),
        (best.w * 0.9, best.b + 0.1),
        (r.standard_normal((d, k)), r.standard_normal(k)),
        (0 * best.w, 0 * best.b),
    ):
        b = b if intercept.exists else np.zeros(k)
        for j, claimed in enumerate(objectives.enclose(W, b)):
            proved = one(objectives, j).enclose(W[:, j], float(b[j]), *NONE)
            assert claimed.lower <= proved.lower <= proved.upper <= claimed.upper
            assert claimed.upper <= proved.upper * (1 + 1e-10)
            assert best.objective[j, 0] <= claimed.upper
            assert claimed.lower <= best.objective[j, 1]


@pytest.mark.parametrize("loss", SMOOTH)
def test_scores_that_nearly_cancel_are_enclosed(loss):
    """Rounding of scores is then far more than that of sums, and the bounds have to allow for it."""
    r = np.random.default_rng(0)
    far = r.uniform(1e7, 2e7, (300, 4))
    X = np.column_stack((far, r.normal(0, 0.2, (300, 4)) - far))
    turned = Matrix(stored(np.ascontiguousarray(X[:, ::-1])))  # the same scores, added up in another order
    signs = np.where(r.random((300, 3)) < 0.5, 1, -1).astype(np.int8)
    objectives = Objectives(Matrix(stored(X)), signs, loss, np.ones(300), Intercept.FREE)
    for scale in (0.1, 0.3, 1.0):
        W, b = np.full((8, 3), scale), np.array([0.0, 0.5, -0.5])
        for j, claimed in enumerate(objectives.enclose(W, b)):
            for X in (objectives.X, turned):
                proved = replace(one(objectives, j), X=X).enclose(W[:, j], float(b[j]), *NONE)
                assert claimed.lower <= proved.lower
                assert proved.upper <= claimed.upper


@pytest.mark.parametrize("intercept", list(Intercept))
@pytest.mark.parametrize("loss", SMOOTH)
def test_weights_of_scores_that_cancel_may_drift(loss, intercept):
    """Each row comes with both labels, so that much is proved although rows are long: sums in another order have other weights,
    and the combination of these is another one. Without room for that, more is claimed than a checker then finds."""
    r = np.random.default_rng(0)
    far = r.uniform(3e5, 6e5, (20, 4))
    X = np.repeat(np.column_stack((far, -far[:, ::-1])), 2, axis=0)
    signs = np.tile([[1], [-1]], (20, 12)).astype(np.int8)
    half = r.uniform(0.1, 0.3, (4, 12))
    W, b = np.concatenate((half, half[::-1])), np.zeros(12)
    W[0] += r.uniform(-1e-14, 1e-14, 12)
    objectives, order = Objectives(Matrix(stored(X)), signs, loss, np.ones(40), intercept), r.permutation(8)
    turned = Matrix(stored(np.ascontiguousarray(X[:, order])))
    for j, claimed in enumerate(objectives.enclose(W, b)):
        proved = replace(one(objectives, j), X=turned).enclose(W[order, j], 0.0, *NONE)
        assert 0 < claimed.lower <= proved.lower
        assert proved.upper <= claimed.upper


@pytest.mark.parametrize("loss", SMOOTH)
def test_places_of_many_hold_the_minimizers(loss):
    X, signs, c = problem(400, 6, 4, 1)
    X += 3.0  # far from the origin, where b and w go together
    rough = gordan.minimize_loss(X, signs, loss=loss.value, tol=1e-3, sample_weight=c)
    fine = gordan.minimize_loss(X, signs, loss=loss.value, tol=1e-10, sample_weight=c)
    for a, b in zip(rough, fine, strict=True):
        place = a.place
        assert np.linalg.norm(place.centre - b.w) <= place.r + b.radius
        assert place.offset[0] <= b.b + place.origin @ b.w + 1e-3
        assert b.b + place.origin @ b.w <= place.offset[1] + 1e-3
        assert place.offset[0] <= b.place.offset[1]  # both hold the same number: the origin is the same
        assert b.place.offset[0] <= place.offset[1]
        alone = a._located.place.offset
        assert np.ptp(place.offset) <= 1.5 * np.ptp(alone) + 1e-9
    labels = rough[0].place.label(Matrix(stored(X)))
    exact = np.where(X @ fine.w[:, 0] + fine.b[0] > 0, 1, 0)
    assert ((labels == exact) | (labels < 0)).all()
    assert (labels >= 0).mean() > 0.5


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("shift", [-0.05, 0.05])
def test_places_of_planes_that_are_off_hold_the_minimizers(loss, shift):
    """Whatever b the ends are looked for from."""
    X, signs, c = problem(400, 6, 4, 1)
    fine = gordan.minimize_loss(X, signs, loss=loss.value, tol=1e-10, sample_weight=c)
    objectives = Objectives(Matrix(stored(X)), signs, loss, c, Intercept.FREE)
    optima = objectives.enclose(0.999 * fine.w, fine.b)
    for place, right in zip(objectives.places(optima, fine.b + shift), fine, strict=True):
        exact = right.b + place.origin @ right.w
        assert place.offset[0] <= exact + 1e-4
        assert exact - 1e-4 <= place.offset[1]
        assert np.isfinite(place.offset).all()


def test_certificates_of_many_are_accepted_by_both_checkers():
    X, signs, c = problem(120, 4, 3, 5)
    for intercept in Intercept:
        many = gordan.minimize_loss(X, signs, loss="logistic", intercept=intercept.value, sample_weight=c)
        for j, result in enumerate(many):
            assert gordan.verify(result.certificate, X, signs[:, j], c)
    y = signs[:, 0].copy()
    y[y == 0] = 1
    result = gordan.minimize_loss(X, np.column_stack((y, -y)) > 0, C=0.5)[0]
    assert both(result.certificate, X, y > 0) == (True, True)


def test_more_label_vectors_than_columns_are_proved_in_steps():
    r = np.random.default_rng(0)
    n, k = 3000, 700
    assert n * k > TERMS_AT_ONCE
    X, signs = r.standard_normal((n, 2)), np.where(r.random((n, k)) < 0.5, 1, -1).astype(np.int8)
    objectives = Objectives(Matrix(stored(X)), signs, Loss.SQUARED_HINGE, np.ones(n), Intercept.FREE)
    W, b = 0.1 * r.standard_normal((2, k)), np.zeros(k)
    found = objectives.enclose(W, b)
    for j in (0, 350, 699):
        proved = one(objectives, j).enclose(W[:, j], 0.0, *NONE)
        assert found[j].lower <= proved.lower <= proved.upper <= found[j].upper


@pytest.mark.parametrize("given", [False, True])
def test_hinges_proved_in_many_steps_state_the_weights_of_their_own_rows(monkeypatch, given):
    """Four pieces of 200 rows: rows are counted over all of them, and label vectors can be taken out of the table."""
    r = np.random.default_rng(1)
    X, signs, c = problem(700, 2, 9, 3)
    monkeypatch.setattr(optima, "TERMS_AT_ONCE", 9 * 200)
    weights = np.where(r.random((700, 9)) < 0.5, 0.5 * c[:, None], 0.0) if given else None
    objectives = Objectives(Matrix(stored(X)), signs, Loss.HINGE, c, Intercept.FREE, 0.0 if given else 0.3, weights)
    W, b = r.standard_normal((2, 9)), 0.1 * r.standard_normal(9)
    found, some = objectives.enclose(W, b), np.array([7, 2])
    for j, claimed in enumerate(found):
        proved = one(objectives, j).enclose(W[:, j], float(b[j]), claimed.rows, claimed.weights)
        assert claimed.lower <= proved.lower <= proved.upper <= claimed.upper
        assert claimed.upper <= proved.upper * (1 + 1e-10)
        assert claimed.lower >= proved.lower - 1e-9 * proved.upper
        assert np.max(claimed.rows) >= 600
    for j, claimed in zip(some, objectives.columns(some).enclose(W[:, some], b[some]), strict=True):
        assert np.array_equal(claimed.rows, found[j].rows)
        assert np.array_equal(claimed.weights, found[j].weights)
        assert claimed.lower == pytest.approx(found[j].lower, rel=1e-9)


# ---- other storages ------------------------------------------------------------------------------------------------------


def piece_sums(x, y, q, W):
    """What `reduce` adds up in the tests."""
    s = x @ W
    return s.sum(0), x.T @ (y * s), (q[:, None] * s).sum(0)


class Piece:
    def __init__(self, X):
        self.X = X
        self.n, self.entries = len(X), X.size

    def load(self):
        return Dense(self.X)


def test_reduce_is_the_same_in_memory_sparse_and_in_blocks():
    r = np.random.default_rng(0)
    X, y, q, W = (
        r.standard_normal((900, 7)),
        r.integers(-1, 2, (900, 3)).astype(np.int8),
        r.random(900),
        r.standard_normal((7, 3)),
    )
    right = piece_sums(X, y, q, W)
    blocks = Blocks([Piece(X[:400]), Piece(X[400:])], 7, X.dtype)
    for storage in (stored(X), stored(sp.csr_array(X)), blocks):
        found = storage.reduce(piece_sums, (storage.to_storage(y, "y"), storage.to_storage(q, "q")), (W,), 2)
        for one_, other in zip(found, right, strict=True):
            assert np.allclose(one_, other, rtol=1e-12, atol=1e-10)


def on_device(monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'")
    from gordan.rows import device

    torch.set_num_threads(1)  # threads that wait for each other on busy cores cost more than they bring
    monkeypatch.setattr(device, "MIN_ENTRIES", 0)  # however few rows there are
    return torch, device.Device


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_planes_of_rows_on_a_device_are_those_of_rows_in_memory(monkeypatch, kind):
    torch, Device = on_device(monkeypatch)
    X, signs, _ = problem(900, 12, 5, 3)
    tensor = torch.from_numpy(X).to(getattr(torch, kind))
    X = tensor.to(torch.float64).numpy()
    right, storage = gordan.minimize_loss(X, signs, C=0.1, tol=1e-10), Device(tensor)
    rows = Rows(storage, np.ones(900, np.int8), constant=True)
    table = block_newton.LossTable(
        rows, storage.to_storage(signs, "Y"), storage.to_storage_f64(np.full(900, 0.1)), Loss.SQUARED_HINGE, free=True
    )
    W, _ = block_newton.planes(table, 1e-10, lambda: False)
    assert np.allclose(W, np.vstack((right.w, right.b)), atol=1e-4)
    many = gordan.minimize_loss(tensor, signs, C=0.1, tol=1e-6)
    assert (many.status == "solved").all()
    y = signs[:, 1]
    assert gordan.verify(many[1].certificate, X, y)


def test_a_classifier_of_rows_on_a_device_is_that_of_rows_in_memory(monkeypatch):
    torch, _ = on_device(monkeypatch)
    X, signs, _ = problem(600, 8, 3, 4)
    y = np.argmax(signs, axis=1)
    tensor = torch.from_numpy(X.astype(np.float32))
    there = gordan.LinearClassifier(C=0.05, tol=1e-6).fit(tensor, torch.from_numpy(y))
    here = gordan.LinearClassifier(C=0.05, tol=1e-6).fit(X.astype(np.float32), y)
    assert np.allclose(there.coef_, here.coef_, atol=1e-3)
    assert (there.gap_ <= 1e-6).all()
    same = there.same_prediction(X.astype(np.float32))
    assert same.mean() > 0.5
    assert (there.predict(X.astype(np.float32))[same] == here.predict(X.astype(np.float32))[same]).all()


@pytest.mark.parametrize("intercept", list(Intercept))
@pytest.mark.parametrize("place", ["device", "blocks"])
def test_the_hinge_by_passes_that_bring_back_sums(monkeypatch, place, intercept):
    """Smoothed ever less; no scores come back, and of the weights only those that the certificate holds."""
    X, signs, c = problem(900, 6, 2, 3)
    y, c = np.where(signs[:, 0] > 0, 1, -1), c + 0.01
    there = Blocks([Piece(X[:400]), Piece(X[400:])], 6, X.dtype)
    if place == "device":
        torch, Device = on_device(monkeypatch)
        there = Device(torch.from_numpy(X))
    calls, scores = [], Rows.scores
    monkeypatch.setattr(Rows, "scores", lambda rows, w: calls.append(w) or scores(rows, w))
    options = {"loss": "hinge", "C": 0.3, "intercept": intercept.value, "sample_weight": c}
    found = gordan.minimize_loss(there, y, tol=1e-3, **options)
    assert (found.status, len(calls)) == ("solved", 0)
    right = gordan.minimize_loss(X, y, tol=1e-8, **options)
    assert found.objective[0] <= right.objective[1]
    assert right.objective[0] <= found.objective[1]
    assert np.linalg.norm(found.w - right.w) <= found.radius + right.radius
    assert both(found.certificate, X, y) == (True, True)
    few = gordan.minimize_loss(there, y, tol=1e-3, max_iter=2, **options)
    assert (few.status, few.n_iter) == ("iteration-limit", 2)
    assert few.objective[0] <= right.objective[1]
    assert right.objective[0] <= few.objective[1]
    further = gordan.minimize_loss(there, y, tol=1e-7, **options)  # by multipliers
    assert further.status == "solved"
    assert further.objective == pytest.approx(right.objective, rel=1e-6)


@pytest.mark.parametrize("intercept", list(Intercept))
@pytest.mark.parametrize("place", ["device", "blocks"])
def test_hinges_of_many_label_vectors_share_passes(monkeypatch, place, intercept):
    """Found, proved and placed together; every certificate is accepted, and no score comes back."""
    X, signs, c = problem(900, 6, 4, 3)
    there = Blocks([Piece(X[:400]), Piece(X[400:])], 6, X.dtype)
    if place == "device":
        torch, Device = on_device(monkeypatch)
        there = Device(torch.from_numpy(X))

    def no_scores(*_):
        raise AssertionError("scores were made")

    monkeypatch.setattr(Rows, "scores", no_scores)
    options = {"loss": "hinge", "C": 0.3, "intercept": intercept.value, "sample_weight": c}
    found = gordan.minimize_loss(there, signs, tol=1e-2, **options)
    places = [each.place for each in found]
    monkeypatch.undo()
    right = gordan.minimize_loss(X, signs, tol=1e-8, **options)
    assert (found.status == "solved").all()
    for j, (each, exact, where) in enumerate(zip(found, right, places, strict=True)):
        assert each.gap <= 1e-2
        assert each.objective[0] <= exact.objective[1]
        assert exact.objective[0] <= each.objective[1]
        centre = np.append(exact.w, exact.b) if intercept.in_norm else exact.w
        assert np.linalg.norm(where.centre - centre) <= where.r + exact.radius
        if intercept.grouped:
            assert where.offset[0] - 1e-3 <= exact.b + where.origin @ exact.w <= where.offset[1] + 1e-3
        assert gordan.verify(each.certificate, X, signs[:, j], c)


@pytest.mark.parametrize("limit", [4.0, 30.0])
def test_hinges_of_many_label_vectors_keep_a_time_limit(monkeypatch, clock, limit):
    """Each pass takes a fifth of a second by the clock, of the search, the proof and the places; something is proved of all."""
    X, signs, _ = problem(900, 6, 12, 3)
    signs[signs == 0] = -1

    def slow(work):
        def charged(*arguments, **options):
            clock.now += 0.2
            return work(*arguments, **options)

        return charged

    for name in ("reduce", "each_block"):
        monkeypatch.setattr(Blocks, name, slow(getattr(Blocks, name)))
    begin = clock.now
    blocks = Blocks([Piece(X[:400]), Piece(X[400:])], 6, X.dtype)
    found = gordan.minimize_loss(blocks, signs, loss="hinge", C=10.0, tol=1e-9, time_limit=limit)
    assert clock.now - begin <= 1.1 * limit + 0.3
    assert (found.status == "time-limit").all()
    assert np.isfinite(found.objective).all()
    assert all(len(each.bare_certificate.rows) < 0.3 * len(X) for each in found)  # however early the search ended
    places = [each.place for each in found]
    assert clock.now - begin <= 1.1 * limit + 3.0
    assert all(np.isfinite(place.r) for place in places)


@pytest.mark.parametrize("intercept", list(Intercept))
@pytest.mark.parametrize("smoothing", [0.0, 1e-3, 0.3])
def test_what_is_claimed_of_many_hinges_holds_what_is_proved_of_each(smoothing, intercept):
    """At planes good and bad, also with rows on z = 1 itself: a checker finds it from the stated weights."""
    r = np.random.default_rng(0)
    X, signs, c = problem(700, 5, 3, 2)
    X[:40], signs[:40] = np.round(X[:40]), 1
    objectives = Objectives(Matrix(stored(X)), signs, Loss.HINGE, c, intercept, smoothing)
    best = gordan.minimize_loss(X, signs, loss="hinge", intercept=intercept.value, tol=1e-7, sample_weight=c)
    ones = np.zeros((5, 3))
    ones[0] = 1.0
    for W, b in (
        (best.w, best.b),
        (best.w * 0.9, best.b + 0.1),
        (ones, np.zeros(3)),
        (r.standard_normal((5, 3)), r.standard_normal(3)),
    ):
        b = b if intercept.exists else np.zeros(3)
        for j, claimed in enumerate(objectives.enclose(W, b)):
            for matrix in (objectives.X, Matrix(stored(np.ascontiguousarray(X[:, ::-1])))):
                turned = slice(None) if matrix is objectives.X else slice(None, None, -1)
                each = replace(one(objectives, j), X=matrix)
                proved = each.enclose(np.ascontiguousarray(W[turned, j]), float(b[j]), claimed.rows, claimed.weights)
                assert claimed.lower <= proved.lower <= proved.upper <= claimed.upper
            assert best.objective[j, 0] <= claimed.upper
            assert claimed.lower <= best.objective[j, 1]


@pytest.mark.parametrize("loss", SMOOTH)
def test_sums_on_a_device_are_those_on_the_host(monkeypatch, loss):
    """The work of the proofs, on a tensor and on an array with the same entries."""
    torch, _ = on_device(monkeypatch)
    from gordan.rows.tensors import TensorBlock

    X, signs, c = problem(700, 9, 4, 7)
    r = np.random.default_rng(1)
    W, b, norms = r.standard_normal((9, 4)), r.standard_normal(4), np.linalg.norm(X, axis=1)
    length = np.linalg.norm(W, axis=0)
    radii, shifts = np.full(4, 1e-3), np.array([np.full(4, 0.1), np.full(4, 0.2)])
    ends = np.stack((b - np.array([[0.1], [0.2]]), b + np.array([[0.1], [0.2]])))
    both = []
    for block in (DenseBlock(X), TensorBlock(torch.from_numpy(X))):
        vectors, origin = (signs, c, norms), X.mean(0)
        planes = Planes(W, b, length, 0.0)
        sums, combined, rows, _ = _sums(block, *vectors, np.empty((700, 0)), planes, loss, Intercept.PENALIZED)
        balls = Balls(np.column_stack((W, origin)), np.array([length, radii]), float(np.linalg.norm(origin)), shifts)
        slopes, more = _slopes(block, *vectors, balls, ends, loss, 1.0)
        assert rows == more == 700
        both.append((sums, combined, slopes))
    for here, there in zip(*both, strict=True):
        # drifts are differences of weights whose last digits differ
        assert np.allclose(here, there, rtol=1e-9, atol=1e-12)


def test_elementary_functions_of_tensors_are_as_good_as_those_of_arrays():
    torch = pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'")
    x = -np.concatenate((np.linspace(0, 40, 4001), np.geomspace(1e-300, 1, 300), np.linspace(40, 900, 500)))
    q = np.concatenate((np.linspace(1e-3, 0.5, 500), np.geomspace(1e-290, 0.5, 500)))
    for function, values in (
        (elementary.exp, x),
        (elementary.softplus_above, np.concatenate((x, -x))),
        (elementary.neg_log, q),
        (elementary.entropy_below, q),
        (lambda z: elementary.sigmoid(z)[0], np.concatenate((x, -x))),
        (lambda z: elementary.sigmoid(z)[1], np.concatenate((x, -x))),
    ):
        here, there = function(values), function(torch.from_numpy(values)).numpy()
        assert (np.abs(here - there) <= 64 * U * np.abs(here) + 1e-300).all()


def test_rows_that_are_left_out_do_not_count():
    X, signs, c = problem(200, 5, 3, 9)
    objectives = Objectives(Matrix(stored(X)), signs, Loss.LOGISTIC, c, Intercept.PENALIZED)
    r = np.random.default_rng(0)
    W, b = r.standard_normal((5, 3)), r.standard_normal(3)
    before = objectives.enclose(W, b)
    moved = X.copy()
    moved[signs[:, 1] == 0] += 50.0
    after = replace(objectives, X=Matrix(stored(moved))).enclose(W, b)
    assert after[1].upper == pytest.approx(before[1].upper, rel=1e-12)
    assert after[1].lower == pytest.approx(before[1].lower, rel=1e-9)
    assert after[0].upper != before[0].upper


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "multinomial"])
def test_losses_of_sparse_rows_in_blocks(loss):
    """Second moments of such rows are sparse as SciPy makes them, and a plain matrix is needed."""
    r = np.random.default_rng(11)
    X = sp.csr_array(r.normal(size=(150, 6)) * (r.random((150, 6)) < 0.6))
    y = np.sign(X @ r.normal(size=6) + 0.3 * r.normal(size=150)).astype(int)
    here = gordan.minimize_loss(X, y, loss=loss)
    parts = [stored(X[:70]), stored(X[70:])]
    blocks = Blocks([Loadable(part.n, part.entries, lambda part=part: part) for part in parts], 6, X.dtype)
    there = gordan.minimize_loss(blocks, y, loss=loss)
    assert there.status == "solved"
    assert max(there.objective[0], here.objective[0]) <= min(there.objective[1], here.objective[1])
    assert gordan.verify(there.certificate, X, y)


def test_weights_beyond_the_largest_allowed_prove_nothing_more():
    """The hinge allows weights up to C: larger ones count as C in all parts of the proof."""
    X, signs, c = np.array([[1.0], [0.01]]), np.array([[1], [-1]], np.int8), np.full(2, 0.1)
    asked = Objectives(Matrix(stored(X)), signs, Loss.HINGE, c, Intercept.NONE, weights=np.array([[0.1], [10.0]]))
    (found,) = asked.enclose(np.array([[0.099]]), np.zeros(1))
    assert found.lower <= found.upper
