"""Margins for norms 1 ≤ p < 2, certified: w is measured in a q-norm with q > 2, for p = 1 by its largest entry."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from checkers import both
from problems import p_norm
from scipy.optimize import OptimizeResult, linprog
from test_robust import clouds

import gordan
from gordan.certificates.bounds import norm_at_most, norm_bound
from gordan.geometry import dual_exponent
from gordan.solve import box_norm


def least_sum(A, groups, caps=math.inf):
    """min ‖Aᵀp‖₁ over P, the dual of what `maximize_margin` solves: the largest margin for norm 1."""
    n, d = A.shape
    above = np.block([[A.T, -np.eye(d)], [-A.T, -np.eye(d)]])
    total = np.array([np.append(group, np.zeros(d)) for group in groups])
    bounds = [*zip(np.zeros(n), np.broadcast_to(caps, n), strict=True), *[(0, None)] * d]
    shares = np.full(len(groups), 1 / len(groups))
    return linprog(np.append(np.zeros(n), np.ones(d)), above, np.zeros(2 * d), total, shares, bounds=bounds).fun


def signed(X, y, intercept):
    """A, and the groups of rows that have equal weight in P."""
    signs = np.where(y, 1.0, -1.0)
    A = (np.column_stack([X, np.ones(len(X))]) if intercept == "penalized" else X) * signs[:, None]
    return A, [signs > 0, signs < 0] if intercept == "free" else [np.ones(len(y))]


@pytest.mark.parametrize("intercept", ["free", "none", "penalized"])
def test_norm_1_is_a_linear_program(intercept):
    for seed in range(4):
        X, y = clouds(30, 5, seed=seed)
        A, groups = signed(X, y, intercept)
        result = gordan.maximize_margin(X, y, norm=1, intercept=intercept, tol=1e-6)
        assert result.status == "solved"
        assert result.margin == pytest.approx((least_sum(A, groups),) * 2, rel=1e-6)
        assert both(result.certificate, X, y) == (True, True)
        assert both(replace(result.certificate, lower=result.margin[0] * 1.001), X, y) == (False, False)
        assert both(replace(result.certificate, upper=result.margin[1] * 0.999), X, y) == (False, False)
        assert both(replace(result.certificate, norm=0.5), X, y) == (False, False)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", ["free", "none", "penalized"])
def test_a_soft_margin_of_norm_1_is_a_linear_program_too(intercept, weighted):
    """Overlapping classes, with nu that leaves a margin and nu that leaves none: no round is played."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=40) > 0
    c = rng.integers(1, 4, 40).astype(float) if weighted else np.ones(40)
    A, groups = signed(X, y, intercept)
    for nu in (0.05, 0.4, 0.7):
        value = least_sum(A, groups, c / (nu * c.sum()))
        result = gordan.maximize_margin(X, y, norm=1, nu=nu, intercept=intercept, sample_weight=c, tol=1e-8)
        assert result.n_iter == 0
        assert result.margin == pytest.approx((value, value), rel=1e-8, abs=1e-10)
        assert result.status == ("solved" if value > 1e-9 else "margin-below-tol")
        assert both(result.certificate, X, y) == (True, True)


@pytest.mark.parametrize("nu", [None, 0.5])
@pytest.mark.parametrize("intercept", ["free", "none", "penalized"])
def test_more_columns_than_rows(intercept, nu):
    """The dual program has the same value."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(12, 30)), np.arange(12) % 2 == 0
    A, groups = signed(X, y, intercept)
    value = least_sum(A, groups, math.inf if nu is None else 1 / (nu * 12))
    result = gordan.maximize_margin(X, y, norm=1, nu=nu, intercept=intercept, tol=1e-8)
    assert (result.status, result.n_iter) == ("solved", 0)
    assert result.margin == pytest.approx((value, value), rel=1e-8)
    assert both(result.certificate, X, y) == (True, True)


def test_the_game_is_played_where_no_method_solves_the_program(monkeypatch):
    """The interior-point method comes first for large programs, each may use a part of the time, and the game has the rest."""
    X, y = clouds(30, 5, seed=1)
    tried = []

    def fails(*_, method, options, **__):
        tried.append((method, options["time_limit"]))
        return OptimizeResult(status=1)

    monkeypatch.setattr("scipy.optimize.linprog", fails)
    for large in (10**9, 0):
        monkeypatch.setattr(box_norm, "LARGE_ENTRIES", large)
        result = gordan.maximize_margin(X, y, norm=1, nu=0.5, tol=0.1, time_limit=1000)
        assert result.status == "solved"
        assert result.n_iter > 0
    assert [method for method, _ in tried] == ["highs-ds", "highs-ipm", "highs-ipm", "highs-ds"]
    assert all(350 < seconds <= 400 for _, seconds in tried)


def test_a_method_chosen_by_name_plays_for_norm_1():
    X, y = clouds(24, 4, seed=3)
    for nu in (None, 0.5):
        result = gordan.maximize_margin(X, y, norm=1, nu=nu, method="box_perceptron", tol=0.1)
        assert result.n_iter > 0
        assert result.status == "solved"


@pytest.mark.parametrize("norm", [1, 1.2, 1.5, 1.9])
def test_both_ends_follow_from_the_vectors(norm):
    X, y = clouds(24, 4, seed=3)
    signs = np.where(y, 1.0, -1.0)
    result = gordan.maximize_margin(X, y, norm=norm, tol=3e-2, max_iter=3000)
    assert result.status == "solved"
    scores = signs * (X @ result.w + result.b)
    low = scores.min() / p_norm(result.w, dual_exponent(norm))
    high = p_norm(X.T @ (signs * result.p), norm)
    assert result.margin[0] == pytest.approx(low, rel=1e-9)
    assert result.margin[1] == pytest.approx(high, rel=1e-9)
    assert result.margin[0] <= low * (1 + 1e-12)
    assert result.margin[1] >= high * (1 - 1e-12)
    assert both(result.certificate, X, y) == (True, True)


def test_inseparable_data_and_methods_by_name():
    X, y = clouds(24, 3, seed=4)
    method = gordan.methods.steepest_descent(p=1.5, step="normalized")
    assert gordan.maximize_margin(X, y, norm=1.5, method=method, tol=0.3, intercept="none").margin[0] > 0
    X[0], y[0] = X[1], 1 - y[1]
    assert gordan.maximize_margin(X, y, norm=1).status == "not-separable"
    assert gordan.maximize_margin(X, y, norm=1.5, max_iter=200).status == "not-separable"
    for norm, method in ((0.9, "auto"), (1.5, "nesterov"), (1.0, "double_oracle")):
        with pytest.raises(gordan.InputError, match=rf"norm (p )?is {norm}"):
            gordan.maximize_margin(X, y, norm=norm, method=method)


@pytest.mark.parametrize("p", [1.0, 1.25, 1.5, 1.75])
def test_norms_are_bounded_from_above_and_decided_exactly(p):
    rng = np.random.default_rng(5)
    for _ in range(20):
        x = rng.integers(-50, 51, 6)
        if not x.any():
            continue
        for dual in (False, True):
            exact = p_norm(x.astype(float), dual_exponent(p) if dual else p)
            bound = norm_bound(np.abs(x).astype(float), p, dual=dual)
            assert exact * (1 - 1e-15) <= bound <= exact * (1 + 1e-12)
            assert norm_at_most(x.tolist(), Fraction(exact * (1 + 1e-9)), p, dual=dual)
            assert not norm_at_most(x.tolist(), Fraction(exact * (1 - 1e-9)), p, dual=dual)
    assert norm_bound(np.zeros(2), p, dual=True) == 0
    assert math.isinf(norm_bound(np.array([math.inf]), p, dual=True))
