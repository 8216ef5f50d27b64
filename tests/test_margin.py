"""`maximize_margin`: agreement with LIBSVM, LIBLINEAR and linear programs, brackets that hold whenever a run stops, and what must
not change them."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import signal
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import oracle
import pytest
import scipy.sparse as sp
from problems import planted, separable
from scipy.optimize import linprog
from test_fuzz import FAMILIES, hull, instance, playable, soft

import gordan
from gordan import InputError, datasets, maximize_margin, methods
from gordan.certificates import Certificate, bounds, standalone
from gordan.certificates.margins import Margin
from gordan.certificates.problem import Problem
from gordan.game import Game
from gordan.geometry import Simplex, dual_exponent
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Asks, Budget, Proposal, Question, Subject
from gordan.solve.double_oracle import DoubleOracle
from gordan.solve.restricted import TUNING

INTERCEPTS = (Intercept.FREE, Intercept.NONE, Intercept.PENALIZED)
STATUSES = {"solved", "not-separable", "margin-below-tol", "iteration-limit", "time-limit", "interrupted", "no-progress"}


def blobs(n=40, d=3, gap=0.5, seed=0, overlap=0):
    """Two classes on the sides of a plane through 0; `overlap` labels are wrong."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(d)
    w /= np.linalg.norm(w)
    X, y = rng.standard_normal((n, d)), np.arange(n) % 2
    X += np.outer((2 * y - 1) * (gap + np.abs(X @ w)) - X @ w, w)
    y[:overlap] ^= 1
    return X, y


def claims(result, X, y, tol=None):
    """What every result must be: its certificate is accepted by both checkers, and its fields say the same thing."""
    lower, upper = result.margin
    assert result.status in STATUSES
    assert lower <= upper
    certificate = result.certificate
    assert gordan.verify(certificate, X, y)
    assert gordan.Certificate.from_json(certificate.to_json()) == certificate
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    if dense.size <= 3000:
        assert standalone.check(json.loads(certificate.to_json()), dense.tolist(), list(y)) == (True, "accepted")
    if result.status == "not-separable":
        assert certificate.kind == "witness"
        assert result.witness is not None
        assert result.margin == (0.0, 0.0)
        assert result.w is None
        assert result.p is None
        return result
    assert certificate.kind == "bracket"
    assert (certificate.lower, certificate.upper) == result.margin
    assert result.witness is None
    assert result.p is not None
    assert (result.p >= 0).all()
    assert result.p.sum() == pytest.approx(1.0)
    if result.w is not None:
        assert result.w.shape == (dense.shape[1],)
        assert np.isfinite(result.w).all()
        assert math.isfinite(result.b)
        whole = np.append(result.w, result.b) if result.intercept == "penalized" else result.w
        assert np.linalg.norm(whole, ord=dual_exponent(result.norm)) == pytest.approx(1.0, abs=1e-9)
    assert lower == 0 or result.w is not None
    if tol is not None:
        assert (result.status == "solved") == (upper > 0 and upper - lower <= tol * upper)
        assert result.status != "margin-below-tol" or lower == 0
    return result


def solved(X, y, **options):
    """A result that must be solved, and hold water."""
    result = claims(maximize_margin(X, y, **options), X, y, options.get("tol", 1e-4))
    assert result.status == "solved", result
    return result


def inside(value, result, slack=1e-6):
    """Whether the value is in the bracket, widened by what another solver may be off."""
    lower, upper = result.margin
    return lower * (1 - slack) <= value <= upper * (1 + slack)


# ---- what others say ------------------------------------------------------------------------------------------------


def test_iris():
    """The margin of setosa is known from LIBSVM: 0.817557; virginica has no separator, and the result says so."""
    X, y = datasets.iris("setosa")
    result = solved(X, y)
    assert inside(0.817557, result, 2e-6)
    assert (y * (X @ result.w + result.b)).min() == pytest.approx(0.817557, rel=2e-4)
    X, y = datasets.iris("virginica")
    result = claims(maximize_margin(X, y), X, y)
    assert result.status == "not-separable"
    assert "not separable: the weighted rows" in repr(result)


@pytest.mark.parametrize("seed", range(3))
def test_hard_margin_of_libsvm(seed):
    svm = pytest.importorskip("sklearn.svm", reason="compares with LIBSVM")
    X, y = blobs(60, 4, 0.2, seed)
    fit = svm.SVC(kernel="linear", C=1e10, tol=1e-8).fit(X, y)
    result = solved(X, y)
    w = fit.coef_.ravel()
    assert inside(1 / np.linalg.norm(w), result)
    assert result.w == pytest.approx(w / np.linalg.norm(w), abs=5e-3)
    assert result.b == pytest.approx(fit.intercept_[0] / np.linalg.norm(w), abs=5e-3)
    score = (2 * y - 1) * (X @ result.w + result.b)
    assert score.min() >= result.margin[0] * (1 - 1e-9)  # in the units of X


@pytest.mark.parametrize("intercept", ["none", "penalized"])
@pytest.mark.parametrize("seed", range(3))
def test_hard_margin_of_liblinear(seed, intercept):
    svm = pytest.importorskip("sklearn.svm", reason="compares with LIBLINEAR")
    X, y = blobs(60, 4, 0.3, seed)
    given = intercept == "penalized"
    fit = svm.LinearSVC(loss="hinge", C=1e6, tol=1e-8, max_iter=10**6, fit_intercept=given, random_state=0).fit(X, y)
    w = np.append(fit.coef_, fit.intercept_) if given else fit.coef_.ravel()
    assert inside(1 / np.linalg.norm(w), solved(X, y, intercept=intercept), 1e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nu", [0.4, 0.75])
def test_soft_margin_of_libsvm(nu, weighted):
    """NuSVC: p = |dual_coef_|/Σ|dual_coef_|, γ* = ‖Aᵀp‖."""
    svm = pytest.importorskip("sklearn.svm", reason="compares with LIBSVM")
    X, y = blobs(60, 4, 0.1, seed=3, overlap=6)
    c = np.random.default_rng(0).uniform(0.5, 1.5, 60) if weighted else None
    fit = svm.NuSVC(kernel="linear", nu=nu, tol=1e-8).fit(X, y, sample_weight=c)
    p = fit.dual_coef_.ravel() / np.abs(fit.dual_coef_).sum()
    value = np.linalg.norm(p @ X[fit.support_])
    result = solved(X, y, nu=nu, sample_weight=c)
    assert inside(value, result, 1e-5)
    b = fit.intercept_[0] / np.linalg.norm(fit.coef_)
    assert result.b == pytest.approx(b, abs=0.02)


def test_a_nu_too_small_for_wrong_labels():
    """The reduced hulls meet: the soft margin is 0, and that is the answer."""
    X, y = blobs(60, 4, 0.1, seed=3, overlap=6)
    result = claims(maximize_margin(X, y, nu=0.1), X, y, 1e-4)
    assert result.status == "margin-below-tol"
    assert result.margin[1] < 1e-10


def test_soft_margin_is_half_the_sum_of_two_means():
    """With a free intercept the lower bound is what w gives: half the sum of both classes' means over their lowest ν/2."""
    X, y = blobs(40, 3, 0.1, seed=5, overlap=4)
    result = solved(X, y, nu=0.5, tol=1e-9)
    scores = X @ result.w
    low, high = np.sort(scores[y == 1])[:10], np.sort(scores[y == 0])[-10:]
    assert (low.mean() - high.mean()) / 2 == pytest.approx(result.margin[0], rel=1e-9)
    assert result.b == pytest.approx(-(low[-1] + high[0]) / 2, abs=1e-12)


def sup_norm_margin(A, caps=None, halves=None):
    """max γ, Σ|w| ≤ 1, of min_p p·Aw over P, as a linear program: per group γ_g - Σ cap_i (λ_g - A_i·w)₊/mass."""
    n, d = A.shape
    groups = [np.arange(n)] if halves is None else [np.flatnonzero(halves == g) for g in (0, 1)]
    k, mass = len(groups), 1.0 / len(groups)
    caps = np.full(n, np.inf) if caps is None else caps
    # variables w⁺, w⁻, a level per group, a slack per row (only where caps are finite)
    level = np.zeros((n, k))
    for g, members in enumerate(groups):
        level[members, g] = 1.0
    cost = np.r_[np.zeros(2 * d), -np.full(k, mass), np.where(np.isfinite(caps), caps, 0.0)]
    above = np.c_[-A, A, level, -np.diag(np.isfinite(caps).astype(float))]
    box = np.r_[np.ones(2 * d), np.zeros(k + n)]
    bounds = [(0, None)] * (2 * d) + [(None, None)] * k + [(0, None)] * n
    answer = linprog(cost, A_ub=np.vstack([above, box]), b_ub=np.r_[np.zeros(n), 1.0], bounds=bounds, method="highs")
    return max(0.0, -answer.fun)


def signed(X, y, intercept):
    """A, and the halves of a free intercept."""
    s = 2 * y - 1
    A = s[:, None] * (np.c_[X, np.ones(len(X))] if intercept == "penalized" else X)
    return A, (y == 0).astype(int) if intercept == "free" else None


@pytest.mark.parametrize("nu", [None, 0.5])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_sup_norm_against_a_linear_program(intercept, nu):
    X, y = blobs(24, 5, 0.3, seed=2)
    A, halves = signed(X, y, intercept)
    value = sup_norm_margin(A, None if nu is None else np.full(24, 1 / (nu * 24)), halves)
    result = maximize_margin(X, y, norm=math.inf, nu=nu, intercept=intercept, method="smooth_p_norm_perceptron", max_iter=2000)
    assert inside(value, claims(result, X, y), 1e-9)
    assert result.gap < 0.35


@pytest.mark.parametrize("nu", [None, 0.5, 1.0])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("shape", [(24, 5), (60, 3), (12, 30)])
def test_sup_norm_auto(shape, intercept, nu):
    X, y = blobs(*shape, 0.3, seed=2)
    A, halves = signed(X, y, intercept)
    value = sup_norm_margin(A, None if nu is None else np.full(len(X), 1 / (nu * len(X))), halves)
    result = solved(X, y, norm=math.inf, nu=nu, intercept=intercept, tol=1e-6)
    assert inside(value, result, 1e-7)


@pytest.mark.parametrize("nu", [None, 0.5])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("norm", [2.5, 3.0, 7.0])
def test_other_norms_auto(norm, intercept, nu):
    """`auto` and a p-norm method are about the same number."""
    X, y = blobs(30, 4, 0.3, seed=6)
    first = solved(X, y, norm=norm, nu=nu, intercept=intercept, tol=1e-6)
    second = solved(X, y, norm=norm, nu=nu, intercept=intercept, tol=1e-3, method="smooth_p_norm_perceptron")
    assert first.margin[0] <= second.margin[1]
    assert second.margin[0] <= first.margin[1]


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("norm", [2.0, 2.5, 3.0, 12.0])
def test_known_margins_in_other_norms(norm, halves):
    """Problems made with γ* = 0.1 in that norm."""
    problem = separable(40, 5, 0.1, norm=norm, seed=8, halves=halves)
    s = np.where(problem.halves == 1, -1, 1) if halves else np.where(np.arange(len(problem.A)) % 2, -1, 1)
    X, y = problem.A * s[:, None], (s > 0).astype(int)
    options = {"norm": norm, "intercept": "free" if halves else "none", "tol": 0.02, "max_iter": 20_000}
    for method in ("smooth_p_norm_perceptron", "accelerated_p_norm_perceptron", "auto"):
        assert inside(0.1, solved(X, y, method=method, **options), 1e-9)


# ---- every method ---------------------------------------------------------------------------------------------------


def declared(name):
    """The method as `maximize_margin` asks for it; None for one that does not know the norm 2."""
    try:
        return methods.get("double_oracle" if name == "auto" else name).for_norm(2.0)
    except InputError:
        return None


# These close the bracket on small data although they promise no rate that says so.
CLOSE_IT = ("auto", "double_oracle", "pdhg")
SMALL_X = np.array([[2.0, 1.0], [3.0, -1.0], [1.0, 0.5], [2.0, 2.0], [-1.0, 0.0], [-2.0, 1.0], [-1.5, -2.0], [-0.5, -1.0]])
SMALL_Y = [1, 1, 1, 1, 0, 0, 0, 0]


def refusal(method, intercept, nu):
    """What the message says if the method does not solve this problem; None if it does."""
    asked = declared(method)
    if asked is None or asked.noisy:
        return "the norm p is" if asked is None else "margins under noise"
    return "supports neither caps" if asked.plain is not None and (nu is not None or intercept == "free") else None


ASKED = [(method, kind, nu) for method in ("auto", *methods.names()) for kind in INTERCEPTS for nu in (None, 0.5)]


@pytest.mark.parametrize(("method", "intercept", "nu"), [asked for asked in ASKED if refusal(*asked) is not None])
def test_methods_that_do_not_solve_the_problem_say_so(method, intercept, nu):
    with pytest.raises(InputError, match=refusal(method, intercept, nu)):
        maximize_margin(SMALL_X, SMALL_Y, method=method, intercept=intercept, nu=nu, max_iter=2000, tol=1e-3)


@pytest.mark.parametrize(("method", "intercept", "nu"), [asked for asked in ASKED if refusal(*asked) is None])
def test_every_method(method, intercept, nu):
    """A valid bracket for the exact γ*, narrow for methods that promise it."""
    free, asked = intercept == "free", declared(method)
    result = maximize_margin(SMALL_X, SMALL_Y, method=method, intercept=intercept, nu=nu, max_iter=2000, tol=1e-3)
    claims(result, SMALL_X, SMALL_Y, 1e-3)
    square = oracle.squared_margin(hull(SMALL_X, SMALL_Y, intercept, 1 if nu is None else 2 if free else 4))
    assert Fraction(result.margin[0]) ** 2 <= square <= Fraction(result.margin[1]) ** 2
    gamma, margin = math.sqrt(square) / np.linalg.norm(SMALL_X, axis=1).max(), asked.guarantee.margin
    if method in CLOSE_IT or (margin is not None and margin(2000, math.log(len(SMALL_X)), gamma) >= 0.99 * gamma):
        assert result.status == "solved"
    assert result.margin[0] > 0
    assert result.passes > 0
    assert result.n_iter >= 1
    assert result.trace.method == asked.name


@pytest.mark.parametrize("method", [name for name in ["auto", *methods.names()] if declared(name) and not declared(name).noisy])
def test_every_method_stops_on_inseparable_data(method):
    X, y = SMALL_X.copy(), [*SMALL_Y]
    X[0], y[0] = X[5], 1
    result = claims(maximize_margin(X, y, method=method, intercept="none", max_iter=5000), X, y)
    assert result.status == "not-separable"
    assert result.n_iter < 100


def test_method_with_options_and_what_is_not_one():
    chosen = methods.smooth_perceptron(form="game", eta=0.5)
    assert solved(SMALL_X, SMALL_Y, method=chosen, tol=1e-2).trace.form == "game"
    assert solved(SMALL_X, SMALL_Y, method=methods.get("nesterov"), tol=1e-2).trace.method == "nesterov"
    for wrong in ("svm", None, 3, object()):
        with pytest.raises(InputError, match="method"):
            maximize_margin(SMALL_X, SMALL_Y, method=wrong)
    with pytest.raises(InputError, match="plays for the norm 2, not 3"):
        maximize_margin(SMALL_X, SMALL_Y, norm=3, method="smooth_perceptron")


# ---- weights, nu and start ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_weights(intercept):
    """Zero removes the row; whole numbers are so many copies; a common factor, however large, changes nothing."""
    X, y = blobs(30, 3, 0.1, seed=4, overlap=3)
    c = np.random.default_rng(1).integers(0, 4, 30).astype(float)
    one = solved(X, y, nu=0.6, sample_weight=c, intercept=intercept, tol=1e-9)
    copies = np.repeat(np.arange(30), c.astype(int))
    for other in (
        solved(X[copies], y[copies], nu=0.6, intercept=intercept, tol=1e-9),
        solved(X[c > 0], y[c > 0], nu=0.6, sample_weight=c[c > 0], intercept=intercept, tol=1e-9),
        *(solved(X, y, nu=0.6, sample_weight=f * c, intercept=intercept, tol=1e-9) for f in (2.0, 0.1, 5e307, 1e-300)),
    ):
        assert other.margin == pytest.approx(one.margin, rel=1e-8)
    assert (one.p[c == 0] == 0).all()
    assert (one.p <= c / (0.6 * c.sum()) * (1 + 1e-9)).all()


def test_weights_without_nu_only_say_which_rows_count():
    X, y = blobs(30, 3, seed=1)
    plain = maximize_margin(X, y)
    assert maximize_margin(X, y, sample_weight=np.linspace(1e-300, 1e300, 30)).margin == plain.margin
    wrong = y.copy()
    wrong[7] ^= 1
    left_out = np.where(np.arange(30) == 7, 0.0, 3.0)
    assert maximize_margin(X, wrong).status == "not-separable"
    result = solved(X, wrong, sample_weight=left_out)
    others = np.arange(30) != 7
    assert result.margin == pytest.approx(maximize_margin(X[others], y[others]).margin, rel=1e-9)
    wrong[8:14] ^= 1
    result = claims(maximize_margin(X, wrong, sample_weight=left_out), X, wrong)
    assert result.status == "not-separable"
    assert 7 not in result.witness.rows


def test_class_weights_are_weights():
    X, y = blobs(30, 3, 0.1, seed=4, overlap=3)
    X, y = X[5:], np.where(y[5:] == 1, "yes", "no")
    share = {label: 25 / (2 * np.count_nonzero(y == label)) for label in ("no", "yes")}
    c = np.array([share[label] for label in y])
    for intercept in INTERCEPTS:
        one = solved(X, y, nu=0.7, class_weight="balanced", intercept=intercept, tol=1e-9)
        assert solved(X, y, nu=0.7, class_weight=share, intercept=intercept, tol=1e-9).margin == one.margin
        assert solved(X, y, nu=0.7, sample_weight=c, intercept=intercept, tol=1e-9).margin == one.margin
        half = solved(X, y, nu=0.7, sample_weight=c / share["yes"], class_weight={"yes": share["yes"]}, intercept=intercept)
        assert half.nu == 0.7
    assert solved(X, y, nu=1, class_weight="balanced").nu == pytest.approx(1.0)  # any nu is possible with it


def test_balanced_classes_do_not_see_rows_of_weight_zero():
    y = np.arange(30) % 3 > 0
    X = np.random.default_rng(8).normal(size=(30, 2)) + np.outer(y, [2.0, 1.0])
    c = np.where((np.arange(30) < 18) & y, 0.0, 1.0)  # 10 to 20 rows become 10 to 8
    whole = gordan.maximize_margin(X, y, nu=0.5, class_weight="balanced", sample_weight=c, tol=1e-9)
    part = gordan.maximize_margin(X[c > 0], y[c > 0], nu=0.5, class_weight="balanced", tol=1e-9)
    assert part.margin[0] > 0
    assert whole.margin == pytest.approx(part.margin, rel=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_nu_at_its_limit(seed):
    """2·min(C₊, C₋)/(C₊ + C₋) as a caller computes it, rounded, is allowed; what is beyond is refused with the range."""
    r = np.random.default_rng(seed)
    n = int(r.integers(3, 40))
    X, y = r.standard_normal((n, 2)), np.zeros(n, int)
    y[: r.integers(1, n)] = 1
    c = None if seed % 2 else r.uniform(0.01, 1.0, n)
    weights = np.ones(n) if c is None else c
    totals = weights[y == 1].sum(), weights[y == 0].sum()
    limit = 2 * min(totals) / weights.sum()
    result = claims(maximize_margin(X, y, nu=limit, sample_weight=c), X, y)
    assert result.nu == pytest.approx(limit, rel=1e-12)
    assert result.margin[1] < math.inf
    exact = [sum(map(Fraction, weights[y == side].tolist())) for side in (1, 0)]
    assert Fraction(result.nu) <= 2 * min(exact) / sum(exact)
    assert result.status in ("solved", "margin-below-tol")
    if limit < 0.999:
        with pytest.raises(
            InputError, match=r"nu is .*; for this data it must be in \(0, 0\.\d+\]: twice the share of the lighter"
        ):
            maximize_margin(X, y, nu=limit * 1.001, sample_weight=c)
    for intercept in ("none", "penalized"):
        assert claims(maximize_margin(X, y, nu=1, intercept=intercept, sample_weight=c), X, y).margin[1] < math.inf


@pytest.mark.parametrize("nu", [1e-12, 1e-300, 2.0**-1074])
def test_a_tiny_nu_is_the_hard_margin(nu):
    X, y = blobs(30, 3)
    hard, soft_ = maximize_margin(X, y, tol=1e-9), claims(maximize_margin(X, y, nu=nu), X, y)
    assert soft_.margin[0] <= hard.margin[1]
    assert hard.margin[0] <= soft_.margin[1] == pytest.approx(hard.margin[1], rel=1e-6)


@pytest.mark.parametrize("method", ["auto", "smooth_perceptron", "mirror_prox_perceptron"])
def test_start(method):
    """From the answer itself, from another nu, intercept or data of as many rows: the same bracket."""
    X, y = blobs(40, 3, 0.2, seed=9)
    first = solved(X, y, method=method, tol=1e-2)
    others = [
        first,
        maximize_margin(X, y, nu=0.3, method=method),
        maximize_margin(X, y, intercept="none", method=method, max_iter=3),
        maximize_margin(-X[:, ::-1], y[::-1].copy()),
        maximize_margin(X, np.roll(y, 1)[::-1].copy()),
        maximize_margin(X, y, sample_weight=(np.arange(40) < 20).astype(float)),
    ]
    for start in others:
        again = solved(X, y, method=method, tol=1e-2, start=start)
        assert again.margin[0] <= first.margin[1]
        assert first.margin[0] <= again.margin[1]
        for nu, c in ((0.3, None), (1.0, np.linspace(0, 1, 40)), (0.01, None)):
            result = maximize_margin(X, y, method=method, nu=nu, sample_weight=c, start=start, intercept="none", max_iter=50)
            claims(result, X, y)
    with pytest.raises(InputError, match=r"start must hold one number for each of the 39 rows.*its shape is \(40,\)"):
        maximize_margin(X[1:], y[1:], start=first)


# ---- stopping -------------------------------------------------------------------------------------------------------


def test_limits_and_their_statuses(clock):
    X, y = blobs(200, 10, 0.05, seed=2)
    slow = {"method": "smooth_perceptron", "tol": 1e-9}
    result = claims(maximize_margin(X, y, max_iter=5, **slow), X, y)
    assert (result.status, result.n_iter) == ("iteration-limit", 5)
    clock.tick = 1.0
    result = claims(maximize_margin(X, y, time_limit=100.0, **slow), X, y)
    assert result.status == "time-limit"
    assert 1 <= result.n_iter <= 100  # the clock is read in every round
    seen = []
    result = claims(maximize_margin(X, y, callback=lambda moment: seen.append(moment) or moment.t >= 20, **slow), X, y)
    assert result.status == "interrupted"
    assert result.n_iter == seen[-1].t
    assert seen[-1].lower <= result.margin[1]
    assert maximize_margin(X, y, callback=lambda moment: None, tol=1e-2).status == "solved"


class Interrupted:
    """Stands for a method's form, rows, … : raises KeyboardInterrupt at the k-th call of something."""

    def __init__(self, function, k):
        self.function, self.left = function, k

    def __call__(self, *args, **options):
        self.left -= 1
        if self.left < 0:
            self.left = 1 << 60
            raise KeyboardInterrupt
        return self.function(*args, **options)


def stopped_result(X, y, options, how, r, monkeypatch):
    """A run that is stopped in some way at some moment."""
    if how == "max_iter":
        return maximize_margin(X, y, max_iter=r.randint(1, 60), **options)
    if how == "time_limit":
        return maximize_margin(X, y, time_limit=10 ** r.uniform(-6, -2), **options)
    if how == "callback":
        last = r.randint(1, 60)
        return maximize_margin(X, y, callback=lambda moment: moment.t >= last, **options)
    if how == "callback interrupt":
        return maximize_margin(X, y, callback=Interrupted(lambda moment: False, r.randint(0, 20)), **options)
    with monkeypatch.context() as patch:  # Ctrl-C in the middle of a pass
        name = r.choice(["scores", "combine", "softmins", "radius", "take", "gram"])
        first = 1 if name == "radius" else 0
        patch.setattr(f"gordan.rows.Rows.{name}", bound(Interrupted(getattr(gordan.rows.Rows, name), first + r.randint(0, 30))))
        try:
            return maximize_margin(X, y, **options)
        except KeyboardInterrupt:
            return None  # before anything was begun


def bound(call):
    return lambda self, *args, **options: call(self, *args, **options)


STOPS = ("max_iter", "time_limit", "callback", "callback interrupt", "signal")


def random_stops(seed, count, monkeypatch, clock):
    """`count` runs stopped at random; returns how many brackets were held against the exact γ*, and the statuses."""
    r = random.Random(seed)
    clock.tick = 1e-4  # time limits are up to a hundred readings
    checked, statuses = 0, set()
    while checked < count:
        family, intercept = r.choice(list(FAMILIES)), r.choice(INTERCEPTS)
        X, y = instance(family, r)
        nu, k = None, 1
        if r.random() < 0.4:
            X, y, nu, k = soft(r, X, y, intercept)
        X = playable(X)
        method = r.choice(["auto", "smooth_perceptron", "accelerated_perceptron", "mirror_prox_perceptron", "nesterov"])
        options = {"intercept": intercept, "nu": nu, "method": method, "tol": 10 ** r.uniform(-9, -1)}
        how = r.choice(STOPS)
        if how not in ("max_iter", "time_limit"):
            options["max_iter"] = 300  # if nothing else stops it
        result = stopped_result(X, y, options, how, r, monkeypatch)
        if result is None:
            continue
        square = oracle.squared_margin(hull(X, y, intercept, k))
        lower, upper = result.margin
        where = (seed, checked, family, options, how)
        assert lower <= upper, where
        assert Fraction(lower) ** 2 <= square, where
        assert math.isinf(upper) or square <= Fraction(upper) ** 2, where
        assert gordan.verify(result.certificate, X, y), where
        assert result.status != "not-separable" or square == 0, where
        assert (result.status == "solved") == (upper > 0 and upper - lower <= options["tol"] * upper), where
        checked += 1
        statuses.add(result.status)
    return checked, statuses


@pytest.mark.parametrize("part", range(4))
def test_random_stops(part, monkeypatch, clock):
    """300 runs stopped by a limit, a callback or Ctrl-C in the middle of a pass: 300 brackets around the exact γ*."""
    checked, statuses = random_stops(f"stops {part}", 75, monkeypatch, clock)
    assert checked == 75
    assert len(statuses & STATUSES) >= 5


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_random_stops_soak(part, monkeypatch, clock):
    checked, statuses = random_stops(f"soak {part}", 100, monkeypatch, clock)
    print(f"{checked} random stops, {checked} valid brackets; statuses {sorted(statuses)}")


def test_random_stops_of_separate(monkeypatch, clock):
    """The same for verdicts: none is wrong, and brackets hold, wherever it is stopped."""
    clock.tick = 1e-4
    r, statuses = random.Random("separate"), set()
    for k in range(150):
        family, intercept = r.choice(list(FAMILIES)), r.choice(INTERCEPTS)
        X, y = instance(family, r)
        how = r.choice(["max_iter", "time_limit", "callback", "signal"])
        with monkeypatch.context() as patch:
            if how == "signal":
                kind, name = r.choice(
                    [(gordan.rows.Rows, "scores"), (gordan.rows.Ascent, "run_epochs"), (gordan.rows.Rows, "gram")]
                )
                patch.setattr(kind, name, bound(Interrupted(getattr(kind, name), r.randint(0, 6))))
            options = {
                "max_iter": {"max_iter": r.randint(1, 5)},
                "time_limit": {"time_limit": 10 ** r.uniform(-6, -2)},
                "callback": {"callback": Interrupted(lambda verdict: False, r.randint(0, 3))},
                "signal": {},
            }[how]
            verdict = gordan.separate(X, y, intercept=intercept, **options)
        square = oracle.squared_margin(hull(X, y, intercept))
        statuses.add(verdict.status)
        lower, upper = verdict.margin
        assert verdict.separable in (None, square > 0), (k, family, intercept, how)
        assert Fraction(lower) ** 2 <= square
        assert math.isinf(upper) or square <= Fraction(upper) ** 2
        if verdict.certificate is not None:
            assert gordan.verify(verdict.certificate, X, y)
            assert (verdict.certificate.lower or 0.0) == lower
    assert {"separable", "not-separable"} <= statuses


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("method", ["auto", "smooth_perceptron"])
def test_ctrl_c(method):
    """A real signal in the middle of a larger problem: the bracket so far is returned."""
    X, y = blobs(3000, 40, 0.02, seed=1)
    result = maximize_margin(
        X, y, method=method, tol=1e-12, callback=lambda moment: os.kill(os.getpid(), signal.SIGINT) if moment.t == 1 else None
    )
    assert result.status == "interrupted"
    assert result.n_iter >= 1
    assert 0 < result.margin[1] < math.inf
    assert "stopped (interrupted): the largest margin is between" in repr(result)
    assert gordan.verify(result.certificate, X, y)


def test_ctrl_c_before_the_first_round(monkeypatch):
    """What p_0 proves is kept."""
    monkeypatch.setattr("gordan.solve.double_oracle.DoubleOracle.start", bound(Interrupted(lambda self: None, 0)))
    X, y = blobs()
    result = claims(maximize_margin(X, y), X, y)
    assert (result.status, result.n_iter, result.trace) == ("interrupted", 0, None)
    assert 0 < result.margin[1] < math.inf


@pytest.mark.parametrize("limit", [0.05, 0.5])
def test_time_limits_are_kept_on_larger_data(limit):
    """Within a pass or two, and one small solve; what is returned is proved. Processor time does not grow with the load."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4000, 60)).astype(np.float32), rng.integers(0, 2, 4000)
    for nu in (None, 0.3):
        maximize_margin(X, y, nu=nu, tol=1e-9)  # imports and compiles
        started = time.process_time()
        result = maximize_margin(X, y, time_limit=limit, nu=nu, tol=1e-9)
        assert time.process_time() - started < limit + 10
        assert gordan.verify(result.certificate, X, y)


# ---- how it is told -------------------------------------------------------------------------------------------------


def test_words():
    X, y = blobs()
    stories = {
        "solved: the largest margin is between": maximize_margin(X, y),
        "solved: the largest margin (soft, nu = 0.5) is between": maximize_margin(X, y, nu=0.5),
        "stopped (iteration-limit): the largest margin is between": maximize_margin(
            X, y, method="smooth_perceptron", max_iter=2, tol=1e-9
        ),
        "not separable: rows 0 and 1 have the same features and different labels (proved)": maximize_margin(
            np.ones((4, 2)), [0, 1, 0, 1]
        ),
        "margin below tolerance: no margin (soft, nu = 0.5) exceeds": maximize_margin(np.ones((4, 2)), [0, 1, 0, 1], nu=0.5),
    }
    for words, result in stories.items():
        assert words in repr(result)
        assert len(repr(result).splitlines()) == 1
        assert "array" not in repr(result)
        html = result._repr_html_()
        assert html.startswith("<p>")
        assert html.endswith("</p>")
        assert "<" not in html[3:-4]
    result = stories["solved: the largest margin is between"]
    lower, upper = (float(repr(result).split()[k]) for k in (6, 8))
    assert lower <= result.margin[0]
    assert result.margin[1] <= upper


# ---- what must not change the answer --------------------------------------------------------------------------------


def changes(X, y):
    """The same problem in other words, with the factor on the margin."""
    order = np.random.default_rng(1).permutation(len(X))
    near = int(np.argmax(y))
    return {
        "rows permuted": (X[order], y[order], 1.0),
        "columns permuted": (X[:, ::-1], y, 1.0),
        "rows duplicated": (np.repeat(X, 3, axis=0), np.repeat(y, 3), 1.0),
        "times 2**40": (X * 2.0**40, y, 2.0**40),
        "times 2**-300": (X * 2.0**-300, y, 2.0**-300),
        "x and y flipped": (-X, 1 - y, 1.0),
        "a far correct point": (np.vstack([X, 100 * X[near]]), np.append(y, y[near]), 1.0),
        "labels flipped": (X, 1 - y, 1.0),
        "sparse": (sp.csr_array(X), y, 1.0),
        "Fortran order": (np.asfortranarray(X), y, 1.0),
    }


# Which of n rows each row is, for the changes that keep the columns and leave every row in its place or another one.
ROW_OF = {
    "rows permuted": lambda n: np.random.default_rng(1).permutation(n),
    "rows duplicated": lambda n: np.repeat(np.arange(n), 3),
    **dict.fromkeys(("x and y flipped", "labels flipped", "sparse", "Fortran order"), np.arange),
}


def renamed(certificate, row_of, n):
    """The certificate with other numbers for its rows; the weights of equal rows are added up."""
    weights = {}
    for row, weight in zip(certificate.rows, certificate.weights, strict=True):
        weights[int(row_of[row])] = weights.get(int(row_of[row]), 0) + weight
    shape = n, certificate.shape[1]
    return replace(certificate, shape=shape, rows=(*weights,), weights=(*weights.values(),), data_hash=None)


@pytest.mark.parametrize("function", ["separate", "maximize_margin", "soft"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("change", changes(*blobs()))
def test_metamorphic(change, intercept, function):
    """Equal or overlapping brackets, and the same verdict, on separable data and on data that is not."""
    scaled = change.startswith("times")
    if (intercept == "penalized" and scaled) or (function == "soft" and change == "a far correct point"):
        pytest.skip("this changes the problem")
    call = {
        "separate": lambda X, y: gordan.separate(X, y, intercept=intercept),
        "maximize_margin": lambda X, y: maximize_margin(X, y, intercept=intercept, tol=1e-6),
        "soft": lambda X, y: maximize_margin(X, y, intercept=intercept, tol=1e-6, nu=0.5),
    }[function]
    for overlap in (0, 3):
        X, y = blobs(30, 3, 0.4, seed=11, overlap=overlap)
        other_X, other_y, factor = changes(X, y)[change]
        one, other = call(X, y), call(other_X, other_y)
        assert one.status == other.status
        if one.status == "not-separable":
            if change in ROW_OF:  # the witness is one of the original rows too
                assert gordan.verify(renamed(other.certificate, ROW_OF[change](len(X)), len(X)), X, y)
        else:
            assert 0 < other.margin[0] <= factor * one.margin[1]
            assert 0 < factor * one.margin[0] <= other.margin[1]
        if change == "rows duplicated" and one.status == "solved":
            assert other.margin == pytest.approx(one.margin, rel=1e-9)
        assert gordan.verify(other.certificate, other_X, other_y)


def test_the_same_every_time():
    X, y = blobs(300, 20, 0.1)
    one, two = (maximize_margin(X, y, random_state=3, threads=1) for _ in range(2))
    assert one.margin == two.margin
    assert np.array_equal(one.w, two.w)
    third = maximize_margin(X, y, random_state=4, threads=2)
    assert third.margin[0] <= one.margin[1]
    assert one.margin[0] <= third.margin[1]


# ---- medium problems, against HiGHS, LIBSVM and LIBLINEAR -------------------------------------------------------------


def medium(seed):
    """A problem with n up to 300 and d up to 40 (or d ≫ n), of one of the difficult kinds; separable or not."""
    r = np.random.default_rng(seed)
    kinds = ("plain", "scaled columns", "duplicates", "dependent columns", "wide", "tall", "offset", "constant columns")
    kind = kinds[seed % len(kinds)]
    n, d = int(r.integers(20, 300)), int(r.integers(2, 40))
    if kind == "wide":
        n, d = int(r.integers(10, 30)), int(r.integers(100, 200))
    if kind == "tall":
        n, d = 300, int(r.integers(2, 4))
    X, y = blobs(n, d, 10 ** r.uniform(-2, 0), seed, overlap=0 if seed // 8 % 2 == 0 else max(1, n // 20))
    if kind == "scaled columns":
        X = X * 10 ** r.uniform(-4, 4, d)
    if kind == "duplicates":
        again = r.integers(0, n, n // 2)
        X, y = np.vstack([X, X[again]]), np.append(y, y[again])
    if kind == "dependent columns":
        X = np.c_[X, X @ r.standard_normal((d, 3)), X.sum(axis=1) + 1]
    if kind == "offset":
        X = X + 1000 * r.standard_normal(d)
    if kind == "constant columns":
        X = np.c_[X, np.ones(len(X)), np.full(len(X), 2000.0), np.zeros(len(X))]
    if seed % 3 == 0:
        X = X.astype(np.float32)
    return kind, (sp.csr_array(X) if seed % 5 == 0 else X), y


def lp_separable(X, y):
    """Whether HiGHS finds w, b with y(x·w + b) ≥ 1, on columns scaled to 1."""
    A = np.c_[X / np.maximum(np.abs(X).max(axis=0), 1e-300), np.ones(len(X))] * (2 * y - 1)[:, None]
    found = linprog(np.zeros(A.shape[1]), A_ub=-A, b_ub=-np.ones(len(A)), bounds=(None, None), method="highs")
    return {0: True, 2: False}.get(found.status)


INSEPARABLE = (8, 9, 10, 11, 13, 15, 24, 25, 26, 29, 30, 31)  # seeds


def decided(seed):
    """The problem of this seed, X as a dense array, and the verdict on it, which is proved and that of HiGHS."""
    kind, X, y = medium(seed)
    dense = (X.toarray() if sp.issparse(X) else X).astype(np.float64)
    verdict = gordan.separate(X, y)
    assert verdict.proved
    assert verdict.separable == lp_separable(dense, y) == (seed not in INSEPARABLE)
    return kind, X, y, dense, verdict


@pytest.mark.parametrize("seed", sorted({*range(32)} - {*INSEPARABLE}))
def test_medium_problems_that_are_separable(seed):
    """Margins as LIBSVM says; every bracket proved, and closed but for columns of very different size."""
    svm = pytest.importorskip("sklearn.svm", reason="compares with LIBSVM")
    kind, X, y, dense, verdict = decided(seed)
    result = claims(maximize_margin(X, y), X, y, 1e-4)
    assert result.margin[0] > 0
    lower, upper = verdict.margin
    assert lower <= result.margin[1]
    assert result.margin[0] <= upper
    if kind != "scaled columns":
        assert result.status == "solved"
    if kind not in ("scaled columns", "offset"):
        fit = svm.SVC(kernel="linear", C=1e8, tol=1e-6).fit(dense - dense.mean(axis=0), y)
        assert inside(1 / np.linalg.norm(fit.coef_), result, 1e-3)


@pytest.mark.parametrize("seed", INSEPARABLE)
def test_medium_problems_that_are_not_separable(seed):
    """Refuted, and soft margins as LIBSVM says."""
    svm = pytest.importorskip("sklearn.svm", reason="compares with LIBSVM")
    kind, X, y, dense, _ = decided(seed)
    assert claims(maximize_margin(X, y), X, y, 1e-4).status == "not-separable"
    soft_ = claims(maximize_margin(X, y, nu=0.4), X, y, 1e-4)
    if kind not in ("scaled columns", "offset"):
        fit = svm.NuSVC(kernel="linear", nu=0.4, tol=1e-8, max_iter=10**7).fit(dense - dense.mean(axis=0), y)
        p = fit.dual_coef_.ravel() / np.abs(fit.dual_coef_).sum()
        assert soft_.status == "solved"
        assert inside(np.linalg.norm(p @ dense[fit.support_]), soft_, 1e-4)


# ---- memory ---------------------------------------------------------------------------------------------------------


def test_a_memory_map_is_neither_copied_nor_written(tmp_path, peak_memory):
    """Peak memory while solving stays well below the size of X, and the file is what it was."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 200)).astype(np.float32)
    y = np.arange(40_000) % 2
    X[:, 0] = (np.abs(X[:, 0]) + 0.1) * (2 * y - 1)
    path = tmp_path / "X.npy"
    np.save(path, X)
    before = path.read_bytes()
    mapped = np.load(path, mmap_mode="r")
    for call in (gordan.separate, maximize_margin):
        result, peak = peak_memory(lambda call=call: call(mapped, y))
        assert result.status in ("separable", "solved")
        assert peak < X.nbytes, peak / X.nbytes  # less than any copy of it
    assert path.read_bytes() == before


def test_soft_margins_of_many_rows_fit_memory():
    """The rows at their caps are many, those whose Gram matrix is needed are not: 1.2 GB it would be with a tenth of the mass."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 4)).astype(np.float32)
    y = (X[:, 0] + 0.3 * rng.standard_normal(100_000) > 0).astype(np.int64)
    rows = gordan.rows.of(X, np.where(y, 1, -1)).scaled(0.1)
    p_set = Simplex(len(X), caps=np.full(len(X), 1 / (0.8 * len(X))), halves=(y == 0).astype(np.int8))
    state = DoubleOracle(Game(rows, p_set, p_set.centre)).start()
    assert len(state.inside) <= TUNING.max_working_set
    result = maximize_margin(X, y, nu=0.8)
    assert result.status == "solved"
    assert gordan.verify(result.certificate, X, y)


def test_results_hold_for_the_data_as_it_was_given():
    """The certificate is about X itself: for other data it is rejected, and X is not changed by looking for it."""
    X, y = blobs(30, 3)
    kept = X.copy()
    result = maximize_margin(X, y, nu=0.5, sample_weight=np.linspace(0, 1, 30))
    assert np.array_equal(X, kept)
    assert not gordan.verify(replace(result.certificate, upper=result.margin[1] * 0.999), X, y)
    assert not gordan.verify(result.certificate, X * 1.01, y)


def test_rows_of_very_different_length_in_many_columns():
    """Few rows are visited by way of a factor of their Gram matrix, in which short rows are longer than they were."""
    long, short = [-7.72133638e-85, 2.06795153e-25, 3.42896217e-100, -2.41040707e60], [1.21543267e-63, 0.0, -12.0, 1.05097385e-45]
    result = gordan.maximize_margin([long, short], [1, 0], intercept="none", max_iter=1)
    assert result.margin[0] <= 12 <= result.margin[1] * (1 + 1e-9)


@pytest.mark.parametrize("method", ["auto", "accelerated_perceptron"])
@pytest.mark.parametrize("power", [13, 26, 33])
def test_soft_margins_among_columns_of_unlike_size(power, method):
    """Reduced hulls that are apart stay so when a column is multiplied, however small the distance is beside that column."""
    y = np.arange(20) % 2
    for seed in range(6 if method == "auto" else 2):  # the other one plays for seconds
        rng = np.random.default_rng(seed)
        Z = np.c_[rng.standard_normal(20) + (2 * y - 1), rng.standard_normal(20)]
        alike, unlike = (maximize_margin(X, y, nu=0.6, method=method) for X in (Z, Z * [1.0, 2.0**power]))
        assert (alike.margin[0] > 1e-3) == (unlike.margin[0] > 0)
        claims(unlike, Z * [1.0, 2.0**power], y)


def test_a_margin_that_is_small_beside_the_rows_is_bracketed():
    """Columns from 0.01 to 4000: games on few rows end in rounding, and what finds verdicts goes on."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    for intercept in INTERCEPTS:
        result = maximize_margin(X, y, intercept=intercept)
        assert result.status == "solved"
        assert result.margin[1] < 1e-7 * np.linalg.norm(X, axis=1).max()
        assert gordan.verify(result.certificate, X, y)


def test_no_progress_is_no_limit():
    """A game for p = 2 log d is not one for the largest norm: its end is neither a solution of that nor a limit."""
    result = maximize_margin(SMALL_X, SMALL_Y, norm=math.inf, method="smooth_p_norm_perceptron", tol=1e-3)
    assert result.status == "no-progress"
    assert result.trace.status == "callback"
    assert "no-progress" in repr(result)
    limited = maximize_margin(SMALL_X, SMALL_Y, method="smooth_perceptron", tol=1e-12, max_iter=3)
    assert (limited.status, limited.n_iter) == ("iteration-limit", 3)


def test_nothing_is_claimed_that_the_checker_rejects(monkeypatch):
    X, y = [[1.0], [1.0]], [0, 1]
    assert maximize_margin(X, y).status == "not-separable"
    for checker in ("check", "accepts"):
        monkeypatch.setattr(f"gordan.ledger.evidence.{checker}", lambda *claim: False)
    result = maximize_margin(X, y)
    assert (result.witness, result.margin) == (None, (0.0, math.inf))
    assert result.status == "no-progress"


def test_methods_are_given_the_norm_however_they_are_named():
    for method in ("double_oracle", methods.get("double_oracle"), methods.get("double_oracle")(p=3.0)):
        assert maximize_margin(SMALL_X, SMALL_Y, norm=3.0, method=method).status == "solved"
    for name in methods.names():
        entry, told = methods.get(name), []
        for norm in (1.5, 3.0):
            with contextlib.suppress(InputError):
                told.append(entry.for_norm(norm).norm == norm)
        assert told
        assert all(told) == entry.takes_norm, name
    assert methods.get("smooth_p_norm_perceptron").for_norm(3.0).norm == 3.0
    assert methods.get("smooth_perceptron").for_norm(3.0).norm == 2.0
    with pytest.raises(InputError, match="the norm p is"):
        methods.smooth_p_norm_perceptron(p=10**400)


# ---- where floats prove nothing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [2.0, 3.0, 7.5, math.inf])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_what_is_claimed_in_exact_arithmetic(intercept, norm):
    """Points so far from 0 that rounding hides their margin: both ends as fractions give them, to the last bit for squares and
    sums, are accepted by both checkers, and better ones are not."""
    far = 2.0**52
    X, y = [[far + 4, 1.0], [far + 9, 1.0], [far + 2, 1.0], [-far, 1.0]], [1, 1, 0, 0]
    problem = Problem.of(X, y)
    margin = Margin(problem.X, problem.signs, intercept, norm)
    w, b = (np.array([1.0, -far - 3]), 0.0) if intercept == "none" else (np.array([1.0, 0.0]), -far - 3)
    p = np.array([1.0, 0.0, 1.0, 0.0])
    lower, upper = margin.exact_lower(w, b), margin.exact_upper(p)
    measured = [abs(Fraction(float(x))) for x in (*w, b if intercept == "penalized" else 0.0)]
    if norm in (2.0, math.inf):
        power = 2 if norm == 2 else 1
        length = sum(x**power for x in measured)
        assert Fraction(lower) ** power * length <= 1 < Fraction(math.nextafter(lower, 2.0)) ** power * length
        assert upper == 1
    else:
        assert 0 <= 1 / sum(measured) - Fraction(lower) < Fraction(1, 10**15)
        assert 0 <= upper - 1 < 1e-15
    kind = Certificate("bracket", intercept, (0, 1), (4, 2), norm=norm)
    claim = replace(kind, w=tuple(w.tolist()), b=b, rows=(0, 2), weights=(1.0, 1.0), lower=lower, upper=upper)
    for stated in (claim, replace(claim, lower=lower * 4), replace(claim, upper=1 - 1e-9)):
        accepted = standalone.check(json.loads(stated.to_json()), X, y)[0]
        assert bool(gordan.verify(stated, X, y)) == accepted == (stated is claim)
    assert margin.sharpened(w, b, p, 0.0, math.inf) == (lower, upper)
    assert margin.sharpened(None, 0.0, None, 0.0, 5.0) == (0.0, 5.0)
    assert margin.exact_lower(-w, -b) == 0
    assert margin.exact_upper(np.zeros(4)) == math.inf


ENCLOSED = [Fraction(0), Fraction(1, 3), Fraction(2), Fraction(4), Fraction(1, 2**1074), Fraction(7, 10**330), Fraction(10**400)]


@pytest.mark.parametrize("value", ENCLOSED)
def test_floats_next_to_a_number_and_its_root(value):
    for root in (False, True):
        low, high = bounds.enclosed(value, root=root)
        power = 2 if root else 1
        assert Fraction(low) ** power <= value
        assert high == math.inf or value <= Fraction(high) ** power
        assert high in (low, math.nextafter(low, math.inf))
        assert (low == high) == (Fraction(low) ** power == value)


@pytest.mark.parametrize("norm", [2, 3, 7.5, math.inf])
@pytest.mark.parametrize("change", [lambda X: X, lambda X: np.hstack([X, np.zeros((5, 2))])], ids=["one column", "two of zeros"])
def test_one_column_has_the_same_margin_in_every_norm(norm, change):
    """Half the distance of the nearest points: two that are 2 units in the last place apart."""
    X = change(np.array([[3e16], [-3e16 + 4], [-3e16 - 4], [1e16], [2e16]]))
    y = [0, 0, 1, 0, 0]
    result = solved(X, y, norm=norm)
    assert result.margin == pytest.approx((4.0, 4.0), rel=1e-15)
    assert result.margin[0] <= 4 <= result.margin[1]
    claims(result, X, y)
    assert gordan.separate(X, y).margin == (4.0, 4.0)


def test_a_margin_seen_by_floats_alone_is_asked_about():
    """The game ends with a lower bound above 0 that no proof bears out: then a verdict is asked for."""
    found = planted("powers_of_two", random.Random("0 519 powers_of_two free ('margin', inf)"), "free", 200)
    assert found.kind == "quasi-complete"
    assert maximize_margin(found.X, found.y, norm=math.inf).status == "not-separable"


@pytest.mark.parametrize(("asks", "nu"), [(Asks.SIGN, None), (Asks.WIDTH, None), (Asks.WIDTH, 0.2)])
@pytest.mark.parametrize("intercept", Intercept)
def test_a_plane_that_is_proposed_without_b_counts(intercept, asks, nu):
    """It is put midway between the classes, whatever b costs; without an intercept b is 0."""
    X, y = np.array([[1.0, 0.5], [2.0, -1.0], [-3.0, 0.5], [-4.0, 1.0]]), np.array([1, 1, 0, 0])
    problem = Problem.of(X, y)
    margin = Margin(problem.X, problem.signs, intercept, nu=nu)
    evidence = Evidence(Question(Subject(problem, margin), asks, Budget(time.perf_counter()), tol=1e-3))
    assert evidence.offer(Proposal(np.array([2.0, 0.0])))
    assert evidence.b == (1.0 if intercept.exists else 0.0)
    length = math.sqrt(2.0) if intercept.in_norm else 1.0
    lowest = 2.0 if intercept.exists else 1.0
    assert evidence.lower == pytest.approx(lowest / length, rel=1e-12)
