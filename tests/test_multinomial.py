"""The multinomial loss: its proofs against exact minimizers, changed certificates, results and what is refused."""

from __future__ import annotations

import json
import math
import random
import warnings
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from checkers import unchecked
from flint import arb, ctx
from loss_problems import FAMILIES, KINDS
from multinomial_problems import attack
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression

import gordan
from gordan import InputError, LinearClassifier
from gordan.certificates import elementary, standalone
from gordan.certificates.matrix import CLAIM, Matrix
from gordan.certificates.multinomial import Multinomial, Scores, balancing, smallest_spanning_tree_edge
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept
from gordan.losses import softmax
from gordan.rows import stored
from gordan.rows.blocks import Blocks
from gordan.rows.memory import Dense

# Problems of each family and intercept; `make fuzz` has others.
SIZE = 3


def data(n=60, d=3, k=3, seed=0):
    """Classes that overlap."""
    r = np.random.default_rng(seed)
    y = np.arange(n) % k
    return r.standard_normal((n, d)) + r.standard_normal((k, d))[y], y


# ---- proofs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_everything_that_is_proved_holds(kind):
    found = Counter()
    for family in FAMILIES:
        for k in range(SIZE):
            own, faults = attack(random.Random(f"{family} {kind} suite {k}"), family, kind, solve=True)
            assert not faults, (family, k, *faults)
            found.update(own)
    # and something is proved
    assert found["informative"] >= 0.4 * found["enclosures"]
    assert found["minimizers"] >= 0.7 * found["problems"]
    assert found["labels"]
    assert found["intercepts"]


def test_planes_whose_scores_are_no_numbers():
    """The problem was found by `make fuzz`: a column of W whose products overflow, and an infinite b of the other sign."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, faults = attack(random.Random("scaled multinomial free 41 0 1 15"), "scaled", "free")
    assert not faults


def test_logarithms_and_complements_are_never_reported_on_the_wrong_side():
    x = np.concatenate((10.0 ** np.random.default_rng(0).uniform(-300, 6, 500), [0.0, 1.0, np.nextafter(1, 2), 99.0]))
    with ctx.workprec(2400):
        for value, above in zip(x.tolist(), elementary.log1p_above(x).tolist(), strict=True):
            true = arb(value).log1p()
            assert true <= arb(above) <= true * (1 + arb(2) ** -43) + 8e-307
        q = np.concatenate((x[x < 1], np.random.default_rng(1).uniform(0, 1, 500), [0.5, np.nextafter(0.5, 1), 1 - 2.0**-53]))
        for value, below in zip(q.tolist(), elementary.complement_below(q).tolist(), strict=True):
            true = -(1 - arb(value)) * (-arb(value)).log1p()
            assert not arb(below) > true
            assert value < 2.0**-960 or arb(below) >= true * (1 - arb(2) ** -43)
        half = q[q <= 0.5]
        for value, above in zip(half.tolist(), elementary.neg_log_above(half).tolist(), strict=True):
            assert not arb(above) < -(-arb(value)).log1p()


def test_the_smallest_spanning_tree_edge_is_in_every_cut():
    r = np.random.default_rng(0)
    for k in (2, 3, 5):
        A = 10.0 ** r.uniform(-9, 0, (k, k))
        A = A + A.T
        cuts = [[j for j in range(k) if code >> j & 1] for code in range(1, 2**k - 1)]
        least_cut = min(max(A[i, j] for i in T for j in range(k) if j not in T) for T in cuts)
        assert smallest_spanning_tree_edge(A) == least_cut


def test_balancing_gives_each_class_its_mass():
    X, y = data(400, 2, 4)
    c = np.random.default_rng(1).uniform(0.1, 3, 400)
    S = 5 * X @ np.random.default_rng(2).standard_normal((2, 4))
    b = balancing(S, y, c)
    assert abs(b.sum()) < 1e-12
    mass = np.bincount(y, weights=c)
    np.testing.assert_allclose(c @ softmax(S + b), mass, rtol=1e-13)


# ---- certificates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_planes_that_are_changed_prove_what_they_still_prove(kind):
    """A claim fails once the planes are moved by more than it leaves room for; a claim that they make themselves holds."""
    X, y = data(30, 2, 3)
    certificate = gordan.minimize_loss(X, y, loss="multinomial", intercept=kind, tol=1e-9).certificate
    from dataclasses import replace

    for off in (1e-3, 0.1):
        moved = replace(certificate, w=tuple(w + off * (-1) ** j for j, w in enumerate(certificate.w)))
        assert not gordan.verify(moved, X, y)
        assert not standalone.check(json.loads(moved.to_json()), X.tolist(), y.tolist())[0]
        looser = replace(moved, lower=0.0, upper=certificate.upper * 100)
        assert gordan.verify(looser, X, y)


def test_orders_of_classes_do_not_matter_and_labels_do():
    X, y = data(30, 2, 3)
    certificate = gordan.minimize_loss(X, y, loss="multinomial").certificate
    from dataclasses import replace

    size = len(certificate.w) // 3
    planes = [certificate.w[size * k : size * (k + 1)] for k in range(3)]
    turned = replace(certificate, classes=(2, 0, 1), w=(*planes[2], *planes[0], *planes[1]))
    assert gordan.verify(turned, X, y)
    assert not gordan.verify(replace(certificate, classes=(2, 0, 1)), X, y)
    assert not gordan.verify(certificate, X, np.roll(y, 1))
    assert not gordan.verify(unchecked(certificate, classes=(0, 1, 1)), X, y)
    for wrong in ((0,), (0, 1, "a"), (0, 1, 1)):
        with pytest.raises(InputError):
            gordan.verify(replace(certificate, classes=wrong), X, y)
    with pytest.raises(InputError, match="a certificate of this kind has two classes, not 3"):
        replace(certificate, loss="logistic")


def test_hashes_of_two_classes_are_those_of_the_other_losses():
    X, y = data(20, 2, 2)
    several, two = (gordan.minimize_loss(X, y, loss=loss).certificate for loss in ("multinomial", "logistic"))
    assert several.data_hash == two.data_hash
    three = data(20, 2, 3)
    certificate = gordan.minimize_loss(*three, loss="multinomial").certificate
    assert gordan.minimize_loss(three[0], np.roll(three[1], 1), loss="multinomial").certificate.data_hash != certificate.data_hash


# ---- results ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_solved_to_the_tolerance(kind):
    X, y = data()
    result = gordan.minimize_loss(X, y, loss="multinomial", intercept=kind, C=0.7, tol=1e-6)
    lower, upper = result.objective
    assert result.status == "solved"
    assert result.gap <= 1e-6
    assert result.w.shape == (3, 3)
    assert result.b.shape == (3,)
    s = X @ result.w + result.b
    cost = np.logaddexp.reduce(s, axis=1) - s[np.arange(len(y)), y]
    size = np.sum(result.w**2) + (np.sum(result.b**2) if kind == "penalized" else 0)
    assert lower <= 0.5 * size + 0.7 * cost.sum() <= upper
    low, high = np.moveaxis(result.coef_interval, -1, 0)
    assert ((low <= result.w) & (result.w <= high)).all()
    low, high = result.intercept_interval.T
    assert ((low <= result.b) & (result.b <= high)).all()
    assert result.same_prediction(X).mean() > 0.9
    assert (len(result.support), len(result.not_support)) == (60, 0)
    assert abs(result.b.sum()) < 1e-9
    finer = gordan.minimize_loss(X, y, loss="multinomial", intercept=kind, C=0.7, tol=1e-9, start=result)
    assert np.linalg.norm(finer.w - result.w) <= result.radius + finer.radius
    assert repr(result).startswith("solved: the least value (multinomial, C = 0.7) is between")


def test_two_classes_are_the_logistic_loss_with_twice_the_C():
    X, y = data(80, 3, 2)
    several = gordan.minimize_loss(X, y, loss="multinomial", C=1.0, tol=1e-10)
    two = gordan.minimize_loss(X, y, loss="logistic", C=2.0, tol=1e-10)
    np.testing.assert_allclose(several.w[:, 1] - several.w[:, 0], two.w, atol=1e-4)
    assert 2 * several.objective[0] <= two.objective[1]
    assert two.objective[0] <= 2 * several.objective[1]


@pytest.mark.filterwarnings("ignore:columns differ in size:UserWarning")
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_it_agrees_with_logistic_regression(scale):
    X, y = load_iris(return_X_y=True)
    X = X * [scale, 1, 1, 1 / scale]
    ours = LinearClassifier("multinomial", 0.5).fit(X, y)
    theirs = LogisticRegression(C=0.5, solver="newton-cholesky", tol=1e-12, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_ - theirs.coef_.mean(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("few", [0, 1 << 30], ids=["conjugate gradients", "factors"])
def test_both_ways_to_a_step(few, monkeypatch):
    monkeypatch.setattr("gordan.solve.softmax_newton.TUNING", type(gordan.solve.softmax_newton.TUNING)(most_factorized=few))
    X, y = load_digits(n_class=4, return_X_y=True)
    result = gordan.minimize_loss(X[:150, :20], y[:150], loss="multinomial", C=0.01, tol=1e-8)
    assert result.status == "solved"
    assert result.same_prediction(X[150:, :20]).mean() > 0.9


@pytest.mark.parametrize("wide", [False, True])
def test_storage_does_not_matter(wide, tmp_path, monkeypatch):
    if wide:  # no matrix of the size of the columns
        monkeypatch.setattr("gordan.solve.softmax_newton.NEWTON", type(gordan.solve.loss_newton.TUNING)(most_factorized=2))
    X, y = data(90, 40, 5)
    X = X.astype(np.float16).astype(np.float64)
    wanted = gordan.minimize_loss(X, y, loss="multinomial", tol=1e-6).objective
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for other in (np.asfortranarray(X), X.astype(np.float32), X.astype(np.float16), sp.csr_array(X), sp.csc_matrix(X), mapped):
        result = gordan.minimize_loss(other, y, loss="multinomial", tol=1e-6)
        assert result.status == "solved"
        assert result.objective == pytest.approx(wanted, rel=2e-6)
        assert gordan.verify(result.certificate, X, y)


def test_weights_count_as_rows():
    X, y = data(40, 2, 3)
    times = np.random.default_rng(0).integers(0, 4, 40)
    times[:3] = 1
    weighted = gordan.minimize_loss(X, y, loss="multinomial", sample_weight=times, tol=1e-9)
    repeated = gordan.minimize_loss(np.repeat(X, times, axis=0), np.repeat(y, times), loss="multinomial", tol=1e-9)
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-4)
    assert len(weighted.not_support) == (times == 0).sum()
    by_class = gordan.minimize_loss(X, y, loss="multinomial", class_weight={1: 3.0}, tol=1e-9)
    by_row = gordan.minimize_loss(X, y, loss="multinomial", sample_weight=np.where(y == 1, 3.0, 1.0), tol=1e-9)
    assert by_class.objective == pytest.approx(by_row.objective, rel=1e-8)
    assert by_class.certificate.class_weight == (1.0, 3.0, 1.0)
    assert gordan.verify(by_class.certificate, X, y)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
@pytest.mark.parametrize("C", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("error")
def test_sizes_beyond_reason_leave_a_true_interval(scale, C, kind):
    X, y = data(9, 2, 3)
    result = gordan.minimize_loss(X * scale, y, loss="multinomial", intercept=kind, C=C, max_iter=50)
    lower, upper = result.objective
    assert lower <= upper <= 9 * C * math.log(3) * (1 + 1e-9)  # W = 0 is never better
    assert not np.isnan(result.coef_interval).any()
    assert not np.isnan(result.intercept_interval).any()
    assert len(result.same_prediction(X * scale)) == 9
    assert gordan.verify(result.certificate, X * scale, y)
    assert standalone.check(json.loads(result.certificate.to_json()), (X * scale).tolist(), y.tolist())[0]


def test_odd_data():
    X, y = data(30, 3, 3)
    X[:, 1] = 0.0
    y[:] = y % 2
    y[5] = 2  # a class of one row
    twice = np.vstack((X, X))
    result = gordan.minimize_loss(X, y, loss="multinomial", tol=1e-8)
    assert result.status == "solved"
    assert (result.w[1] == 0).all()
    double = gordan.minimize_loss(twice, np.tile(y, 2), loss="multinomial", C=0.5, tol=1e-8)
    np.testing.assert_allclose(double.w, result.w, atol=1e-3)
    zeros = gordan.minimize_loss(np.zeros((30, 2)), y, loss="multinomial", tol=1e-8)
    assert zeros.status == "solved"
    counts = np.bincount(y)
    assert zeros.objective[0] == pytest.approx(-np.sum(counts * np.log(counts / 30)), rel=1e-7)
    apart = gordan.minimize_loss([[0.0], [1.0], [2.0]], ["a", "b", "c"], loss="multinomial", C=1e6, tol=1e-3)
    assert apart.status == "solved"


REFUSED = {
    "a table": (
        (data(9, 2, 3)[0], np.eye(9, 2, dtype=int) - 1),
        {},
        r"its shape is \(9, 2\); pass one column \(separate, .* unless the loss is multinomial, accept a table of labels\)",
    ),
    "one class": (([[0.0], [1.0]], [1, 1]), {}, "y has one class only"),
    "a class without weight": (data(9, 2, 3), {"sample_weight": [0, 1, 1] * 3}, "all rows of class 0 have weight zero"),
    "shape of start": (data(9, 2, 3), {"start": np.zeros(2)}, r"start must be finite and of shape \(2, 3\), or \(3, 3\) with b"),
    "start of another loss": (
        data(9, 2, 3),
        {"start": gordan.minimize_loss(*data(9, 2, 2))},
        "start has one plane, this problem the planes of 3 classes",
    ),
    "start is text": (data(9, 2, 3), {"start": "x"}, "start must hold real numbers"),
    "start is not finite": (data(9, 2, 3), {"start": np.full((2, 3), math.nan)}, "start must be finite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    (X, y), options, words = REFUSED[name]
    with pytest.raises(InputError, match=words):
        gordan.minimize_loss(X, y, loss="multinomial", **options)


def test_stopped_early_with_what_is_proved(clock):
    X, y = data()
    true = gordan.minimize_loss(X, y, loss="multinomial", tol=1e-8).objective
    clock.tick = 1.0
    results = {"time-limit": gordan.minimize_loss(X, y, loss="multinomial", time_limit=1e-9)}
    clock.tick = 0.0
    results["interrupted"] = gordan.minimize_loss(X, y, loss="multinomial", callback=lambda moment: True)
    results["iteration-limit"] = gordan.minimize_loss(X, y, loss="multinomial", max_iter=1, tol=1e-9)
    for status, result in results.items():
        assert result.status == status
        assert result.objective[0] <= true[1]
        assert true[0] <= result.objective[1] < math.inf


@pytest.mark.parametrize("limit", [1e-9, 0.1, 0.2, 0.4, 0.8, 1.6])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_the_planes_are_of_use_however_short_the_time(limit, C, clock):
    """A step that was cut short could end far above w = 0, which was then returned; here are rows of which a part comes first."""
    r = np.random.default_rng(5)
    y = r.integers(0, 4, 6000)
    X = (np.eye(4, 30)[y] + 0.5 * r.standard_normal((6000, 30))).astype(np.float32)
    y = np.where(r.random(6000) < 0.05, r.integers(0, 4, 6000), y)
    clock.tick = 2e-3
    found = gordan.minimize_loss(X, y, loss="multinomial", C=C, tol=1e-9, time_limit=limit)
    clock.tick = 0.0
    assert found.objective[1] < 0.7 * 6000 * C * math.log(4)
    assert np.mean((X @ found.w + found.b).argmax(axis=1) == y) > 0.7


def test_what_the_time_does_not_afford_is_not_begun(clock):
    """With a pace at which a factorization takes a year, conjugate gradients go without."""
    from gordan.deadlines import Deadline, Pace
    from gordan.rows import of
    from gordan.solve.softmax_newton import SoftmaxNewton

    X, y = data(200, 5, 3)
    late = Deadline(clock() + 100.0, lambda: Pace(1e6, 1e-9))
    newton = SoftmaxNewton.start(of(X), y, 3, np.ones(200), False, None, late)
    assert newton.step(newton.look(), 0.0)
    assert late.refused


@pytest.mark.parametrize("k", [2, 3])
def test_the_classifier(k, tmp_path):
    X, y = data(80, 3, k)
    labels = np.array(["b", "a", "c"])[y]
    model = LinearClassifier("multinomial", 2.0).fit(X, labels)
    assert model.kind_ == "multinomial"
    assert model.coef_.shape == (k, 3)
    assert model.decision_function(X).shape == ((80,) if k == 2 else (80, 3))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert (model.classes_[model.predict_proba(X).argmax(axis=1)] == model.predict(X)).all()
    assert model.same_prediction(X).mean() > 0.9
    assert gordan.verify(model.certificate_, X, labels)
    assert isinstance(model.gap_, float)
    model.save(tmp_path / "model")
    loaded = gordan.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.objective_ == model.objective_
    assert gordan.verify(loaded.certificate_, X, labels)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    warm = LinearClassifier("multinomial", 1.9, warm_start=True).fit(X, labels).set_params(C=2.0).fit(X, labels)
    np.testing.assert_allclose(warm.coef_, model.coef_, atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "multinomial"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("weight", [None, "balanced"])
def test_estimators_of_scikit_learn_predict_the_same(loss, k, weight):
    X, y = data(80, 3, k)
    labels = np.array(["b", "a", "c"])[y]
    ours = LinearClassifier(loss, 2.0, class_weight=weight).fit(X, labels)
    theirs = ours.to_sklearn()
    points = 3 * np.random.default_rng(0).standard_normal((200, 3))
    assert (theirs.predict(points) == ours.predict(points)).all()
    np.testing.assert_allclose(theirs.decision_function(points), ours.decision_function(points), atol=1e-12)
    if hasattr(ours, "predict_proba"):
        np.testing.assert_allclose(
            theirs.predict_proba(points), ours.predict_proba(points), rtol=1e-9, atol=1e-15
        )  # theirs is 1 less the other


def test_margins_for_scikit_learn():
    X, y = load_iris(return_X_y=True)
    for labels in (y, y == 0):
        ours = gordan.MaxMarginClassifier(multi_class="ovr", on_inseparable="ignore").fit(X, labels)
        assert (ours.to_sklearn().predict(X) == ours.predict(X)).all()
    with pytest.raises(InputError, match="no linear classifier with one plane per pair of classes"):
        gordan.MaxMarginClassifier(on_inseparable="ignore").fit(X, y).to_sklearn()


# ---- rows that are not in memory --------------------------------------------------------------------------------------


class Piece:
    """Some rows that are read when they are needed."""

    def __init__(self, X):
        self.X, self.n, self.entries = X, len(X), X.size

    def load(self):
        return Dense(self.X)


def blocks(X):
    return Blocks([Piece(X[lo : lo + 150]) for lo in range(0, len(X), 150)], X.shape[1], X.dtype)


def tensor(X):
    pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'")
    from device_problems import held

    return held(X)


@pytest.fixture(params=[blocks, tensor])
def elsewhere(request, monkeypatch):
    """What puts X there; of a device all that is done to rows is done there."""
    if request.param is blocks:
        yield blocks
        return
    pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'")
    from device_problems import as_on_a_gpu

    with as_on_a_gpu():
        yield tensor


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [2, 5])
def test_what_is_claimed_elsewhere_is_found_in_memory(elsewhere, kind, k):
    """At planes good and bad, with columns and rows in any order, and where scores nearly cancel."""
    r = np.random.default_rng(k)
    X, y = data(700, 6, k, seed=k)
    far = r.uniform(1e3, 2e3, (len(X), 3))
    X = np.column_stack((X, far, r.normal(0, 0.2, (len(X), 3)) - far))
    c = np.where(r.random(len(X)) < 0.1, 0.0, r.uniform(0.01, 2.0, len(X)))
    c[:k] = 1.0
    best = gordan.minimize_loss(X, y, loss="multinomial", intercept=kind, sample_weight=c, tol=1e-7)
    there = Multinomial(Matrix(stored(elsewhere(X))), y, k, c, Intercept(kind))
    columns, rows = r.permutation(X.shape[1]), r.permutation(len(X))
    here = [
        (Multinomial(Matrix(stored(X)), y, k, c, there.intercept), slice(None)),
        (Multinomial(Matrix(stored(X[:, columns])), y, k, c, there.intercept), columns),
        (Multinomial(Matrix(stored(X[rows])), y[rows], k, c[rows], there.intercept), slice(None)),
    ]
    for W, b in ((best.w, best.b), (0.9 * best.w, best.b + 0.1 * r.random(k)), (r.standard_normal(best.w.shape), 0 * best.b)):
        b = b if kind != "none" else 0 * b
        claimed = there.enclose(W, b, slack=CLAIM)
        for objective, order in here:
            proved = objective.enclose(W[order], b)
            assert claimed.lower <= proved.lower <= proved.upper <= claimed.upper
        assert claimed.upper <= here[0][0].enclose(W, b, slack=CLAIM).upper * (1 + 1e-9)
        (excess, least), (most, link) = there.balance(W, b, CLAIM), here[0][0].balance(W, b)
        assert CLAIM * excess >= most
        assert least == pytest.approx(link, rel=1e-9)
    assert there.enclose(best.w, best.b, slack=CLAIM).width <= 5 * best._optimum.width


@pytest.mark.parametrize("kind", KINDS)
def test_passes_that_bring_back_sums(elsewhere, kind, monkeypatch):
    """A classifier, found, proved and placed without the scores of all rows coming back; the same as in memory."""
    X, y = data(700, 12, 4)
    scores = gordan.rows.Rows.scores

    def no_scores(*_):
        raise AssertionError("scores were made")

    def of_a_part(rows, w):
        assert rows.n < len(X), "the scores of all rows were made"
        return scores(rows, w)

    monkeypatch.setattr(Scores, "of", no_scores)
    monkeypatch.setattr(gordan.rows.Rows, "scores", of_a_part)
    there = LinearClassifier("multinomial", 0.5, intercept=kind, tol=1e-6).fit(elsewhere(X), y)
    monkeypatch.undo()
    here = LinearClassifier("multinomial", 0.5, intercept=kind, tol=1e-9).fit(X, y)
    assert there.status_ == "solved"
    assert there.gap_ <= 1e-6
    assert np.linalg.norm(there.coef_ - here.coef_) <= there.radius_ + here.radius_
    assert gordan.verify(there.certificate_, X, y)
    assert not there._places[0].unproved(there.certificate_, Problem.of(X, y, None, several=True))
    same = there.same_prediction(X)
    assert same.mean() > 0.9
    assert (there.predict(X)[same] == here.predict(X)[same]).all()


def test_limits_of_rows_elsewhere(elsewhere, tmp_path, clock):
    X, y = data(400, 5, 3)
    true = gordan.minimize_loss(X, y, loss="multinomial", tol=1e-8).objective
    results = {
        "iteration-limit": gordan.minimize_loss(elsewhere(X), y, loss="multinomial", max_iter=1, tol=1e-9),
        "interrupted": gordan.minimize_loss(elsewhere(X), y, loss="multinomial", callback=lambda moment: True),
    }
    clock.tick = 1.0
    results["time-limit"] = gordan.minimize_loss(elsewhere(X), y, loss="multinomial", time_limit=8.0, tol=1e-9)
    clock.tick = 0.0
    for status, result in results.items():
        assert result.status == status
        assert result.objective[0] <= true[1]
        assert true[0] <= result.objective[1] < math.inf
    path = tmp_path / "run"
    first = gordan.minimize_loss(elsewhere(X), y, loss="multinomial", max_iter=1, tol=1e-9, checkpoint=path)
    assert first.n_iter == 1
    assert gordan.minimize_loss(elsewhere(X), y, loss="multinomial", tol=1e-6, checkpoint=path).n_iter > 1


def test_the_time_that_the_last_passes_take_is_kept(clock, monkeypatch):
    """A search ends when what is left to do would end after the deadline, at the pace of its own passes."""
    X, y = data(400, 5, 3)
    reduce = Blocks.reduce

    def slow(*arguments, **options):
        clock.now += 1.0
        return reduce(*arguments, **options)

    monkeypatch.setattr(Blocks, "reduce", slow)
    begin = clock.now
    result = gordan.minimize_loss(blocks(X), y, loss="multinomial", C=100.0, tol=1e-12, time_limit=20.0)
    assert 10.0 < clock.now - begin <= 22.3
    assert result.status == "time-limit"
    assert result.gap < 1
