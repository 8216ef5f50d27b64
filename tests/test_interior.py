"""The interior-point method against margins known by construction and against the definition of a witness."""

from __future__ import annotations

import numpy as np
import pytest
from problems import inseparable, separable

import gordan
from gordan.solve import finders
from gordan.solve.interior import answers

CONSTANTS = {"free": 1.0, "penalized": 0.3, "none": 0.0}


def bounds(X, y, answer, constant, free):
    """The margin of w and ‖Aᵀp‖ for the game with this intercept, written out."""
    if free:
        s, p = X @ answer.w, answer.p
        low = (s[y > 0].min() - s[y < 0].max()) / 2 / np.linalg.norm(answer.w)
        return low, np.linalg.norm(p[y > 0] @ X[y > 0] / p[y > 0].sum() - p[y < 0] @ X[y < 0] / p[y < 0].sum()) / 2
    A = y[:, None] * np.column_stack((X, np.full(len(X), constant)))
    w = np.append(answer.w, answer.b / constant if constant else 0.0)
    return (A @ w).min() / np.linalg.norm(w), np.linalg.norm(answer.p @ A) / answer.p.sum()


@pytest.mark.parametrize("shape", [(40, 5), (200, 20), (30, 60)], ids=str)
@pytest.mark.parametrize("gamma", [0.2, 1e-3])
@pytest.mark.parametrize("free", [False, True], ids=["none", "free"])
def test_the_margin_known_by_construction(shape, gamma, free):
    problem = separable(*shape, gamma=gamma, halves=free)
    y = np.where(problem.halves == 1, -1.0, 1.0) if free else np.where(np.arange(problem.n) % 2, -1.0, 1.0)
    X = y[:, None] * problem.A
    best, first = answers(X, y, float(free), free)
    assert bounds(X, y, best, float(free), free) == pytest.approx((gamma, gamma), rel=1e-7)
    assert (y * (X @ first.w + first.b) > 0).all()


@pytest.mark.parametrize("intercept", CONSTANTS)
@pytest.mark.parametrize("columns", ["as they are", "of many sizes", "dependent", "far away"])
def test_both_bounds_meet(intercept, columns):
    rng = np.random.default_rng(3)
    y = np.where(rng.random(80) < 0.5, 1.0, -1.0)
    X = 0.1 * rng.standard_normal((80, 6))
    X[:, 0] += 0.4 * y
    if columns == "of many sizes":
        X[:, 1:] *= 10.0 ** -np.arange(5)
    if columns == "dependent":
        X[:, 3], X[:, 4] = X[:, 2], 0.0
    if columns == "far away" and intercept == "free":
        X += 50.0
    constant, free = CONSTANTS[intercept], intercept == "free"
    lower, upper = bounds(X, y, answers(X, y, constant, free)[0], constant, free)
    assert lower > 0
    assert upper == pytest.approx(lower, rel=1e-9)


@pytest.mark.parametrize("shape", [(30, 3), (200, 12)], ids=str)
@pytest.mark.parametrize("intercept", CONSTANTS)
def test_a_vertex_where_nothing_separates(shape, intercept):
    """The weights cancel, and their rows are independent but for that: an exact solve then has one answer."""
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal(shape), np.where(rng.random(shape[0]) < 0.5, 1.0, -1.0)
    X /= np.linalg.norm(X, axis=1).max()
    constant = CONSTANTS[intercept]
    (only,) = answers(X, y, constant, intercept == "free")
    A = y[:, None] * np.column_stack((X, np.full(len(X), constant)))[:, : shape[1] + (constant > 0)]
    used = np.flatnonzero(only.p)
    assert only.w is None
    assert np.abs(only.p @ A).max() < 1e-7 * only.p.sum()
    assert len(used) == np.linalg.matrix_rank(A[used]) + 1


def test_small_data_is_decided_by_it_alone(monkeypatch):
    """Neither coordinate ascent nor the working set nor exact pivoting is needed."""
    alone = [finder for finder in finders.FINDERS if finder.name in ("contradiction", "interior point")]
    assert len(alone) == 2
    monkeypatch.setattr(finders, "FINDERS", alone)
    yes = separable(n=60, d=4)
    X = np.concatenate((yes.A, -yes.A))
    y = np.arange(len(X)) < yes.n
    verdict = gordan.separate(X, y, intercept="none")
    assert verdict.margin == pytest.approx((0.1, 0.1), rel=1e-8)
    rng = np.random.default_rng(0)
    assert gordan.separate(rng.standard_normal((60, 4)), np.arange(60) % 2).status == "not-separable"


def test_a_sample_that_overlaps_decides(monkeypatch):
    """Rows that are 40 times as many as columns: a sample of them is asked for rows that cancel, and for no plane."""
    asked = []

    def noted(X, signs, constant, free, planes=True):
        asked.append((len(X), planes))
        return answers(X, signs, constant, free, planes)

    monkeypatch.setattr("gordan.solve.separation.answers", noted)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 9))
    y = np.where(X[:, 0] + rng.standard_normal(400) > 0, 1, -1)
    assert gordan.separate(X, y).status == "not-separable"
    assert asked == [(100, False)]
    asked.clear()
    assert gordan.separate(X + 9.0 * y[:, None], y).status == "separable"
    assert asked == [(100, False), (400, True)]


@pytest.mark.parametrize("exponent", [-1074, -1030, -600, -200])
def test_a_tiny_column_does_no_harm(exponent):
    """Its scale squared would be infinite: the margin is that without it."""
    problem = separable(n=40, d=4, halves=True)
    y = np.where(problem.halves == 1, -1.0, 1.0)
    X = np.column_stack([y[:, None] * problem.A, np.ldexp(np.arange(problem.n) % 3 - 1.0, exponent)])
    best = answers(X, y, 1.0, True)[0]
    assert bounds(X, y, best, 1.0, True) == pytest.approx((0.1, 0.1), rel=1e-7)
    assert gordan.separate(X, y).margin == pytest.approx((0.1, 0.1), rel=1e-7)


def test_what_is_beyond_floats_is_left_to_others():
    """Rows that cancel only in exact arithmetic, and a margin below the rounding: whatever is proposed, the verdict is right."""
    pairs = inseparable(n=20, d=3).A
    assert gordan.separate(pairs, np.ones(20) * (np.arange(20) % 2), intercept="none").proved
    X = np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-50], [-1.0, -1.0 + 2.0**-50]])
    assert gordan.separate(X, [1, 0, 0]).status == "separable"
