"""Margins for norms 1 ≤ p < 2, certified: w is measured in a q-norm with q > 2, for p = 1 by its largest entry."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from checkers import both
from problems import p_norm
from scipy.optimize import linprog
from test_robust import clouds

import gordan
from gordan.certificates.bounds import norm_at_most, norm_bound
from gordan.geometry import dual_exponent


def least_sum(A, groups):
    """min ‖Aᵀp‖₁ over P, the dual of what `maximize_margin` solves: the largest margin for norm 1."""
    n, d = A.shape
    above = np.block([[A.T, -np.eye(d)], [-A.T, -np.eye(d)]])
    total = np.array([np.append(group, np.zeros(d)) for group in groups])
    return linprog(np.append(np.zeros(n), np.ones(d)), above, np.zeros(2 * d), total, np.full(len(groups), 1 / len(groups))).fun


@pytest.mark.parametrize("intercept", ["free", "none", "penalized"])
def test_norm_1_is_a_linear_program(intercept):
    for seed in range(4):
        X, y = clouds(30, 5, seed=seed)
        signs = np.where(y, 1.0, -1.0)
        A = (np.column_stack([X, np.ones(len(X))]) if intercept == "penalized" else X) * signs[:, None]
        groups = [signs > 0, signs < 0] if intercept == "free" else [np.ones(len(y))]
        result = gordan.maximize_margin(X, y, norm=1, intercept=intercept, tol=1e-6)
        assert result.status == "solved"
        assert result.margin == pytest.approx((least_sum(A, groups),) * 2, rel=1e-6)
        assert both(result.certificate, X, y) == (True, True)
        assert both(replace(result.certificate, lower=result.margin[0] * 1.001), X, y) == (False, False)
        assert both(replace(result.certificate, upper=result.margin[1] * 0.999), X, y) == (False, False)
        assert both(replace(result.certificate, norm=0.5), X, y) == (False, False)


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
