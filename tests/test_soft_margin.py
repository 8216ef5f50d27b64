"""Soft margins where caps add up exactly: no row need be strictly between its bounds, and the largest nu leaves one p only."""

from __future__ import annotations

import json
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import datasets

import gordan
from gordan.certificates import bounds, standalone
from gordan.solve.alternative import balance_of_support

CLOSED = ("solved", "margin-below-tol")


def mean_of_lowest(scores, c, mass):
    """The mean of the lowest scores up to a total weight of `mass`: what a soft margin averages, written apart."""
    order = np.argsort(scores, kind="stable")
    taken = np.diff(np.minimum(np.cumsum(c[order]), mass), prepend=0.0)
    return float(taken @ scores[order]) / mass


def test_every_whole_number_of_rows():
    X, y = datasets.load_iris(return_X_y=True)
    for k in range(3):
        for rows in (1, 2, 10, 25, 49, 50):
            r = gordan.maximize_margin(X, y == k, nu=2 * rows / 150, tol=1e-9)
            assert r.status in CLOSED, (k, rows, r)
            if r.status == "solved":
                ends = [mean_of_lowest(s * (X[(y == k) == (s > 0)] @ r.w), np.ones(150), rows) for s in (1, -1)]
                assert sum(ends) / 2 == pytest.approx(r.margin[0], rel=1e-8)
                assert np.count_nonzero(r.p) >= 2 * rows


def test_small_integer_data_with_and_without_weights():
    rng = np.random.default_rng(0)
    for trial in range(60):
        n, d = int(rng.integers(4, 40)), int(rng.integers(1, 6))
        X = rng.integers(-3, 4, (n, d)).astype(float)
        y = np.arange(n) % (2 + trial % 2) == 0
        c = rng.integers(1, 4, n).astype(float) if trial % 3 == 0 else np.ones(n)
        most = 2 * min(c[y].sum(), c[~y].sum()) / c.sum()
        nu = most * rng.choice([1, 0.5, 0.25, 0.75])
        r = gordan.maximize_margin(X, y, nu=nu, sample_weight=c, tol=1e-9)
        assert r.status in CLOSED, (trial, r)
        assert r.nu == pytest.approx(nu, rel=1e-12)
        assert gordan.verify(r.certificate, X, y)
        accepted, reason = standalone.check(json.loads(r.certificate.to_json()), X.tolist(), y.tolist())
        assert accepted, reason


def test_the_largest_nu_and_beyond():
    X, y = np.arange(50.0)[:, None], np.arange(50) >= 40
    r = gordan.maximize_margin(X, y, nu=0.4, tol=1e-9)  # as a float, 0.4 is above 2/5
    assert r.status == "solved"
    assert r.nu <= 0.4
    assert r.margin[0] == pytest.approx((44.5 - 34.5) / 2, rel=1e-9)  # all of the one class, as much of the other
    with pytest.raises(gordan.InputError, match=r"\(0, 0\.4\]"):
        gordan.maximize_margin(X, y, nu=0.401)


def test_a_witness_in_which_a_weight_vanishes():
    """The middle row has weight 0 in the one balance there is: it is left out, wherever it stands."""
    M = [[1, 0, 1], [0, 5, 1], [-1, 0, -1]]
    for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2]):
        found = balance_of_support([M[i] for i in order])
        assert found is not None
        assert {order[i]: weight for i, weight in found.weights.items()} == {0: 1, 2: 1}
    assert balance_of_support([[1, 0], [0, 1], [1, 1]]) is None


def test_a_tiny_margin_has_a_separator_at_least():
    """Columns of sizes 1e-3 to 1e3: the game in floats does not see the margin, the exact route does."""
    X, y = datasets.load_breast_cancer(return_X_y=True)
    r = gordan.maximize_margin(X, y, max_iter=20)
    assert r.margin[0] > 0
    assert (np.where(y == 1, 1, -1) * (X @ r.w + r.b) > 0).all()
    assert gordan.verify(r.certificate, X, y)


def test_start_from_weights_above_the_caps():
    X, y = datasets.load_iris(return_X_y=True)
    hard = gordan.maximize_margin(X, y == 0, method="smooth_perceptron")
    for start in (hard, hard.p):
        soft = gordan.maximize_margin(X, y == 0, nu=0.6, method="smooth_perceptron", start=start)
        assert soft.status == "solved"
    with pytest.raises(gordan.InputError, match=r"start must hold one number for each of the 150 rows.*its shape is \(10,\)"):
        gordan.maximize_margin(X, y == 0, start=hard.p[:10])


@given(st.lists(st.floats(0, 1e300) | st.floats(0, 1e-300), min_size=1, max_size=30), st.floats(1e-3, 1))
def test_masses_are_compared_exactly(values, nu):
    c = np.array(values)
    exact = sum(map(Fraction, values))
    m, e = bounds.exact_sum(c)
    assert Fraction(m) * Fraction(2) ** e == exact
    assert bounds.reaches(c * nu, c, nu, 1) == (sum(map(Fraction, (c * nu).tolist())) >= Fraction(nu) * exact)


def noisy(n, d, noise=0.3, seed=0):
    """Labels from one column with noise."""
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, d)) + 0.1
    return X, X[:, 0] + noise * r.standard_normal(n) > 0


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, np.float32, sp.csr_array])
def test_many_rows_at_their_caps_are_solved_by_newtons_method(intercept, weighted, storage):
    """To the margin that the double oracle finds; the ends hold on the raw data."""
    X, y = noisy(20_000, 4)
    X = storage(X)
    c = 1.0 + np.arange(len(y)) % 3 if weighted else None
    options = {"nu": 0.4, "intercept": intercept, "sample_weight": c}
    r = gordan.maximize_margin(X, y, **options)
    assert (r.status, r.trace.method) == ("solved", "proximal_newton")
    other = gordan.maximize_margin(X, y, method="double_oracle", **options)
    assert other.trace.method == "double_oracle"
    assert max(r.margin[0], other.margin[0]) <= min(r.margin[1], other.margin[1])
    signs, weights = np.where(y, 1, -1), np.ones(len(y)) if c is None else c
    z = signs * (X @ r.w + (r.b if intercept == "penalized" else 0.0))
    parts = [y, ~y] if intercept == "free" else [np.full(len(y), True)]
    lower = np.mean([mean_of_lowest(z[own], weights[own], 0.4 * weights.sum() / len(parts)) for own in parts])
    length = np.linalg.norm(np.append(r.w, r.b if intercept == "penalized" else 0.0))
    assert lower / length == pytest.approx(r.margin[0], rel=1e-6)
    combination = X.T @ (signs * r.p)
    upper = np.linalg.norm(np.append(combination, (signs * r.p).sum() if intercept == "penalized" else 0.0))
    assert upper == pytest.approx(r.margin[1], rel=1e-6)
    assert gordan.verify(r.certificate, X, y, sample_weight=c)


def test_memory_of_many_rows_at_their_caps():
    """Vectors over rows, and none of the Gram matrix of those at their caps."""
    X, y = noisy(60_000, 6)
    gordan.maximize_margin(X, y, nu=0.4, threads=1)  # what is compiled and kept
    tracemalloc.start()
    # one thread: each further one, when it first multiplies matrices, asks for the memory that BLAS will need
    assert gordan.maximize_margin(X, y, nu=0.4, threads=1).status == "solved"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * 8 * len(y)


def test_many_rows_whose_reduced_hulls_meet():
    """An upper end below the tolerance is the answer: nobody else is asked how far below."""
    X, y = noisy(30_000, 4, noise=2.0)
    r = gordan.maximize_margin(X, y, nu=0.4)
    assert r.status == "margin-below-tol"
    assert r.trace.method == "proximal_newton"
    assert r.margin[0] == 0
    assert np.linalg.norm(X.T @ (np.where(y, 1, -1) * r.p)) <= r.margin[1] * (1 + 1e-6)
    assert gordan.verify(r.certificate, X, y)


def test_many_rows_and_no_time():
    X, y = noisy(30_000, 4)
    r = gordan.maximize_margin(X, y, nu=0.4, time_limit=1e-9)
    assert r.status == "time-limit"
    assert gordan.verify(r.certificate, X, y)
