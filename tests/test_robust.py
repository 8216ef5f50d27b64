"""Margins under perturbations of the rows: the interval, the proof that none is left, and both checkers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from checkers import both
from scipy.optimize import linprog

import gordan
from gordan.certificates import standalone
from gordan.certificates.margins import Margin
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept
from gordan.solve import double_oracle

NORMS = (1, 2, math.inf)


def clouds(n=24, d=4, apart=2.0, seed=0):
    """Two clouds of points, `apart` in every coordinate."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.standard_normal((n, d)) * 0.4 + apart * (y[:, None] - 0.5), y


def largest_noise(X, y, s, intercept):
    """The ε at which no plane stands the noise any more, min ‖Aᵀp‖_s over P, as a linear program (s = 1, ∞)."""
    A = X * np.where(y, 1, -1)[:, None]
    n, d = A.shape
    free = intercept == "free"
    # p, then t with |Aᵀp| ≤ t in every column
    k = 1 if s == math.inf else d
    T = np.ones((d, 1)) if k == 1 else np.eye(d)
    above = np.block([[A.T, -T], [-A.T, -T]])
    groups = [y == 1, y == 0] if free else [np.ones(n, bool)]
    total = np.array([np.append(group.astype(float), np.zeros(k)) for group in groups])
    found = linprog(np.append(np.zeros(n), np.ones(k)), above, np.zeros(2 * d), total, np.full(len(groups), 1 / len(groups)))
    return found.fun


@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize("s", [1, math.inf])
def test_both_sides_of_the_largest_noise(s, intercept):
    """Just below it a positive margin is proved, just above it that there is none; the threshold is that of a linear program."""
    for seed in range(4):
        X, y = clouds(seed=seed)
        epsilon = largest_noise(X, y, s, intercept)
        below = gordan.maximize_margin(X, y, robust=0.9 * epsilon, robust_norm=s, intercept=intercept, tol=1e-2)
        above = gordan.maximize_margin(X, y, robust=1.1 * epsilon, robust_norm=s, intercept=intercept, tol=1e-2)
        assert below.status == "solved"
        assert below.margin[0] > 0
        assert (above.status, above.margin) == ("not-separable", (0.0, 0.0))
        for result in (below, above):
            assert both(result.certificate, X, y) == (True, True)
            assert result.robust_norm == s
            assert f"in the {s:g}-norm" in repr(result)


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_in_the_2_norm_noise_is_taken_off_the_margin(intercept):
    X, y = clouds(seed=5)
    margin = gordan.maximize_margin(X, y, intercept=intercept, tol=1e-6).margin
    for share in (0.3, 0.8):
        noisy = gordan.maximize_margin(X, y, robust=share * margin[0], intercept=intercept, tol=1e-3)
        assert noisy.margin[0] <= margin[1] - share * margin[0] + 1e-12
        assert noisy.margin[1] >= margin[0] - share * margin[0] - 1e-12
        assert noisy.gap <= 1e-3
    assert gordan.maximize_margin(X, y, robust=1.01 * margin[1], intercept=intercept).status == "not-separable"


@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
def test_noise_in_the_2_norm_takes_as_long_as_the_margin(stored, intercept):
    """The same plane and weights prove both: a few rounds, however near to the largest noise, on both sides of it."""
    X, y = clouds(300, 6, seed=4)
    X = stored(X)
    hard = gordan.maximize_margin(X, y, intercept=intercept, tol=1e-9)
    for share in (0.5, 0.99, 1 - 1e-4):
        noisy = gordan.maximize_margin(X, y, robust=share * hard.margin[0], intercept=intercept)
        assert noisy.status == "solved"
        assert noisy.n_iter <= 5
        assert both(noisy.certificate, X, y) == (True, True)
        assert noisy.trace.lower[-1] <= noisy.margin[1]
        assert noisy.trace.upper[-1] >= noisy.margin[0]
    above = gordan.maximize_margin(X, y, robust=(1 + 1e-6) * hard.margin[1], intercept=intercept)
    assert (above.status, above.margin) == ("not-separable", (0.0, 0.0))
    assert both(above.certificate, X, y) == (True, True)
    mixed = gordan.maximize_margin(X, np.arange(300) % 3 > 0, robust=1e-6, intercept=intercept)
    assert (mixed.status, mixed.margin) == ("not-separable", (0.0, 0.0))


@pytest.mark.parametrize("s", NORMS)
def test_data_that_cannot_be_separated_do_not_stand_any_noise(s):
    """However little it is: the weights of rows that cancel prove it, and both checkers agree."""
    X, y = clouds(seed=3)
    X, y = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])
    for epsilon in (1e-3, 1e-9):
        result = gordan.maximize_margin(X, y, robust=epsilon, robust_norm=s)
        assert (result.status, result.margin) == ("not-separable", (0.0, 0.0))
        assert both(result.certificate, X, y) == (True, True)


def test_noise_a_little_above_the_largest_is_refuted():
    """2% above what a plane stands: the distance of Aᵀp to the noise falls to 0, and not only near it."""
    X = [[0, 0, -4, 3], [-4, 2, -4, 2], [1, -4, -4, 3], [4, 1, 1, 1], [2, 4, -4, 2], [0, -1, -3, 4], [4, -3, -1, -4]]
    X, y = np.array([*X, [-3, 3, -1, -3], [-2, 0, -3, -1]]) / 2, np.array([0, 1, 0, 0, 0, 0, 0, 1, 1])
    epsilon = 1.02 * largest_noise(X, y, math.inf, "none")
    result = gordan.maximize_margin(X, y, robust=epsilon, robust_norm=math.inf, intercept="none")
    assert result.status == "not-separable"
    assert both(result.certificate, X, y) == (True, True)


def test_a_checkpoint_is_of_one_noise(tmp_path):
    X, y = clouds(300, 6, seed=4)
    file = tmp_path / "run"
    whole = gordan.maximize_margin(X, y, robust=0.1, checkpoint=file)
    assert gordan.maximize_margin(X, y, robust=0.1, checkpoint=file).margin == whole.margin
    for other in ({}, {"robust": 0.2}, {"robust": 0.1, "robust_norm": 1}):
        with pytest.raises(gordan.InputError, match="checkpoint"):
            gordan.maximize_margin(X, y, **other, checkpoint=file)


def test_rows_that_outgrow_the_memory_are_played_by_the_robust_perceptron(monkeypatch):
    """As for the margin itself: where the working set has no room, a game of passes goes on."""
    X = np.random.default_rng(3).standard_normal((600, 20))
    y = X[:, 0] > 0
    X[:, 0] += np.where(y, 0.3, -0.3)
    monkeypatch.setattr("gordan.solve.playing.working_set_limit", lambda *_: 1)
    few = replace(double_oracle.TUNING, all_rows_at_once=0, max_visited=0)  # so that the first round does not end it
    monkeypatch.setattr(double_oracle, "TUNING", few)
    result = gordan.maximize_margin(X, y, robust=0.1, tol=1e-2)
    assert (result.status, result.trace.method) == ("solved", "robust_perceptron")


@pytest.mark.parametrize("s", NORMS)
def test_the_plane_stands_every_corner_of_the_noise(s):
    """The lower end, recomputed from moved points: the worst move against w of each."""
    X, y = clouds(seed=6)
    epsilon = 0.3
    result = gordan.maximize_margin(X, y, robust=epsilon, robust_norm=s, tol=1e-3)
    w, signs = result.w, np.where(y, 1, -1)
    move = {math.inf: np.sign(w), 2: w / np.linalg.norm(w), 1: np.sign(w) * (np.arange(4) == np.abs(w).argmax())}[s] * epsilon
    moved = X - signs[:, None] * move
    scores = signs * (moved @ w + result.b)
    assert scores.min() / np.linalg.norm(w) >= result.margin[0] * (1 - 1e-9)
    assert scores.min() > 0


@pytest.mark.parametrize("s", NORMS)
def test_checkers_refuse_what_is_not_proved(s):
    """More than w proves, less than p proves, other noise, and noise where it is not defined."""
    X, y = clouds(seed=7)
    certificate = gordan.maximize_margin(X, y, robust=0.3, robust_norm=s, tol=1e-4).certificate
    assert both(certificate, X, y) == (True, True)
    for change in (
        {"lower": certificate.lower * 1.01},
        {"upper": certificate.upper * 0.99},
        {"robust": 0.35},  # then w proves less
        {"robust": 0.25},  # then p proves less
        {"robust": 0.0},
        {"robust": -0.3},
        {"robust_norm": 3.0},
        {"nu": 0.5},
        {"norm": 3.0},
        {"intercept": "penalized"},
    ):
        assert both(replace(certificate, **change), X, y) == (False, False), change
    none = gordan.maximize_margin(X, y, robust=5.0, robust_norm=s).certificate
    assert none.upper == 0
    assert both(none, X, y) == (True, True)
    assert both(replace(none, robust=0.1), X, y) == (False, False)


@pytest.mark.parametrize("s", NORMS)
def test_bounds_are_next_to_exact_ones(s):
    """Float bounds beside fractions, on small integers: never beyond, and close.

    w separates the rows, two steps away from its plane, so that most margins remain positive.
    """
    rng, positive = np.random.default_rng(8), 0
    for _ in range(20):
        w, p = rng.integers(-5, 6, 3).astype(float), rng.integers(1, 9, 6).astype(float)
        X = rng.integers(-9, 10, (6, 3)).astype(float)
        y = np.array([0, 1, 0, 1, 0, 1])
        side = np.where(y, 1, -1)[:, None]
        X = np.where(np.sign(X @ w)[:, None] == side, X, -X) + 2 * side * np.sign(w)
        problem = Problem.of(X, y)
        margin = Margin(problem.X, problem.signs, Intercept.NONE, robust=0.5, robust_norm=float(s))
        A = [[Fraction(int(v)) for v in row] for row in X * np.where(y, 1, -1)[:, None]]
        sizes = [abs(Fraction(v)) for v in w]
        cost = Fraction(1, 2) * (Fraction(math.hypot(*w)) if s == 2 else max(sizes) if s == 1 else sum(sizes))
        least = min(sum(a * Fraction(v) for a, v in zip(row, w, strict=True)) for row in A) - cost
        lower = max(0.0, float(least) / math.hypot(*w))
        assert margin.lower(w, 0.0) == pytest.approx(lower, rel=1e-12)
        positive += lower > 0
        u = [sum(Fraction(int(q)) * row[j] for q, row in zip(p, A, strict=True)) / int(p.sum()) for j in range(3)]
        if s == 2:
            distance = max(0.0, math.hypot(*map(float, u)) - 0.5)
        else:
            distance = math.hypot(*map(float, standalone._outside_ball(u, Fraction(1, 2), s)))
        upper = margin.upper(p)
        assert distance <= upper <= distance * (1 + 1e-9) + 1e-9
        assert margin.proves_upper(math.nextafter(upper, math.inf), p)
        assert not distance or not margin.proves_upper(distance * 0.999, p)
    assert positive >= 15


@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize("s", NORMS)
def test_both_checkers_accept_just_what_is_proved(s, intercept):
    """The least upper and the largest lower end that one of them accepts are those of the other, to the last bit."""
    X, y = clouds(8, 3, seed=2)
    certificate = gordan.maximize_margin(X, y, robust=0.3, robust_norm=s, intercept=intercept, max_iter=30).certificate
    for end, factor in (("lower", 1 + 1e-9), ("upper", 1 - 1e-9)):
        proved, refused = getattr(certificate, end), getattr(certificate, end) * factor
        while refused != math.nextafter(proved, refused):
            middle = (proved + refused) / 2
            answers = both(replace(certificate, **{end: middle}), X, y)
            assert answers in ((True, True), (False, False)), (end, middle)
            proved, refused = (middle, refused) if answers[0] else (proved, middle)


@pytest.mark.parametrize("s", NORMS)
def test_hardly_any_noise_and_more_than_any(s):
    """Noise that is lost beside the data leaves its margin; any amount that floats hold above the largest is refuted."""
    X, y = clouds(seed=1)
    margin = gordan.maximize_margin(X, y, tol=1e-6).margin
    for epsilon in (2.0**-900, 1e-30, 1e-12):
        result = gordan.maximize_margin(X, y, robust=epsilon, robust_norm=s, tol=1e-2)
        assert result.status == "solved"
        assert result.margin[0] <= margin[1] <= result.margin[1] * (1 + 1e-6)
        assert both(result.certificate, X, y) == (True, True)
    for epsilon in (1e3, 1e300):
        result = gordan.maximize_margin(X, y, robust=epsilon, robust_norm=s)
        assert (result.status, result.margin) == ("not-separable", (0.0, 0.0))
        assert both(result.certificate, X, y) == (True, True)
    zeros = np.zeros((4, 2))
    result = gordan.maximize_margin(zeros, [0, 1, 0, 1], robust=0.1, robust_norm=s)
    assert result.status == "not-separable"
    assert both(result.certificate, zeros, np.array([0, 1, 0, 1])) == (True, True)


def test_weights_files_and_storages():
    X, y = clouds(seed=9)
    c = np.ones(len(y))
    c[:4] = 0.0
    whole = gordan.maximize_margin(X[4:], y[4:], robust=0.2, robust_norm=1, tol=1e-3)
    for stored in (X, sp.csr_array(X), X.astype(np.float32)):
        result = gordan.maximize_margin(stored, y, robust=0.2, robust_norm=1, tol=1e-3, sample_weight=c)
        assert result.margin[0] <= whole.margin[1] * (1 + 1e-5)
        assert whole.margin[0] <= result.margin[1] * (1 + 1e-5)
        assert bool(gordan.verify(gordan.Certificate.from_json(result.certificate.to_json()), stored, y))


def test_what_is_refused():
    X, y = clouds()
    for options, why in (
        ({"robust": -1.0}, "robust is -1.0; pass 0, or how far"),
        ({"robust": math.inf}, "and finite"),
        ({"robust": "much"}, "robust is 'much'"),
        ({"robust": 1e-300}, "at least 1e-271"),
        ({"robust": 0.1, "robust_norm": 3}, "robust_norm is 3; pass 1, 2"),
        ({"robust": 0.1, "norm": 3}, "leave out norm, or robust"),
        ({"robust": 0.1, "nu": 0.3}, "leave out nu, or robust"),
        ({"robust": 0.1, "intercept": "penalized"}, "leave out intercept, or robust"),
        ({"robust": 0.1, "method": "nesterov", "nu": 0.2}, "leave out nu and method, or robust"),
    ):
        with pytest.raises(gordan.InputError, match=why):
            gordan.maximize_margin(X, y, **options)


def test_without_noise_nothing_changes():
    X, y = clouds()
    assert gordan.maximize_margin(X, y, robust=0.0).margin == gordan.maximize_margin(X, y).margin
