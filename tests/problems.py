"""Problems whose largest margin is known by construction, and the shapes that tests walk over."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from gordan import InputError
from gordan.geometry import dual_exponent


@dataclass(frozen=True)
class Problem:
    """Rows of p-norm at most 1 (one of them exactly 1) with γ* = gamma, attained by w (‖w‖_q = 1) and by p."""

    A: np.ndarray
    gamma: float
    w: np.ndarray
    norm: float
    halves: np.ndarray | None = None

    @property
    def n(self) -> int:
        return len(self.A)


def cells(table):
    """Parametrise over {id: (…)}."""
    return [pytest.param(*(row if isinstance(row, tuple) else (row,)), id=name) for name, row in table.items()]


def refused(call, *parts):
    """`call` raises an InputError whose message has all the parts."""
    with pytest.raises(InputError) as caught:
        call()
    assert all(parts)  # "" is part of every message
    for part in parts:
        assert part in str(caught.value), str(caught.value)


def p_norm(x, p):
    """Written apart from the package: tests trust nothing they test."""
    return float(np.linalg.norm(x, ord=p, axis=-1)) if np.ndim(x) == 1 else np.linalg.norm(x, ord=p, axis=-1)


def separable(n=40, d=5, gamma=0.1, norm=2.0, seed=0, halves=False) -> Problem:
    """γ g ± u for some u with u·w = 0 (so that γ g is in the hull), and rows x with x·w ≥ γ; g and w are dual unit vectors.

    With halves the two classes are shifted by ±k g, which moves neither γ* nor w.
    """
    rng = np.random.default_rng(seed)
    q = dual_exponent(norm)
    g = rng.standard_normal(d)
    g /= p_norm(g, norm)
    w = np.sign(g) * np.abs(g) ** (norm - 1)  # ‖w‖_q = 1 and w·g = 1 since ‖g‖_p = 1
    assert abs(p_norm(w, q) - 1) < 1e-12
    assert abs(w @ g - 1) < 1e-12
    shift = 0.05 if halves else 0.0

    def across(size):
        """Vectors with u·w = 0 and p-norm at most `size`."""
        u = rng.standard_normal((max(1, n // 4), d))
        u -= np.outer(u @ w, g)
        lengths = p_norm(u, norm)
        return u * (size * rng.uniform(0.3, 1.0, len(u)) / np.where(lengths > 0, lengths, 1))[:, None]

    def one_class(k):
        u = across(1 - gamma - abs(k) - 1e-9)
        base = (gamma + k) * g
        near = np.concatenate((base + u, base - u))
        reach = rng.uniform(0, 1, (len(near), 1))
        far = base + 0.5 * reach * across(1 - gamma - abs(k))[rng.integers(0, len(u), len(near))]
        far += np.outer(rng.uniform(0, 0.5 * (1 - gamma - abs(k)), len(far)), g)
        return np.concatenate((near, far))

    if not halves:
        return Problem(np.concatenate((one_class(0.0), g[None])), gamma, w, norm)
    plus, minus = one_class(shift), one_class(-shift)
    A = np.concatenate((plus, minus, g[None]))
    return Problem(A, gamma, w, norm, np.r_[np.zeros(len(plus), int), np.ones(len(minus), int), 0])


def inseparable(n=40, d=5, seed=0) -> Problem:
    """Pairs x, -x among random rows: γ* = 0."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((n // 2, d))
    half /= np.linalg.norm(half, axis=1).max()
    return Problem(np.concatenate((half, -half)), 0.0, np.zeros(d), 2.0)


def cone(n=20, d=5, gamma=0.1, norm=2.0, seed=0) -> Problem:
    """All n rows exactly on the margin, of p-norm 1, balanced by multipliers far from uniform: here bounds are nearly used up.

    A_i = γ g + u_i with g, w along (1, …, 1) and u_i·w = 0; the last u balances a random convex combination of the others.
    """
    rng = np.random.default_rng(seed)
    g = np.full(d, d ** (-1 / norm))
    w = np.full(d, d ** (-1 / dual_exponent(norm)))
    u = rng.standard_normal((n, d))
    u -= u.mean(axis=1, keepdims=True)
    u = np.array([_stretched(gamma * g, row, norm) for row in u[:-1]])
    weights = rng.exponential(size=n - 1) ** 2 + 1e-3
    last = -(weights / weights.sum()) @ u
    u = np.vstack([u, _stretched(gamma * g, last, norm)])
    return Problem(gamma * g + u, gamma, w, norm)


def _stretched(base, direction, norm):
    """s·direction with ‖base + s·direction‖_p = 1, by bisection."""
    low, high = 0.0, 4.0 / max(p_norm(direction, norm), 1e-12)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if p_norm(base + middle * direction, norm) < 1 else (low, middle)
    return low * direction


# ---- problems of up to 2,000 rows whose answer is planted ------------------------------------------------------------


@dataclass(frozen=True)
class Planted:
    """X, y of which this is known: the `kind` of separation ("complete", "quasi-complete", "overlap"; "not complete" where only
    that), and the largest `margin`, the same in every norm, where it is not None."""

    X: np.ndarray
    y: np.ndarray
    kind: str
    margin: Fraction | None = None


def _plane(rng, n, d):
    """Small integers on both sides of the plane w·x = 0, none on it."""
    w = rng.integers(-3, 4, d)
    w[rng.integers(d)] = rng.choice([-2, -1, 1, 2])
    X = rng.integers(-9, 10, (n, d))
    j = int(np.flatnonzero(w)[0])
    X[X @ w == 0, j] += 1
    y = (X @ w > 0).astype(int)
    if y.min() == y.max():
        X[0], y[0] = -X[0], 1 - y[0]
    return Planted(X, y, "complete"), w


def planted_plane(rng, n, d):
    """A plane separates."""
    return _plane(rng, n, d)[0]


def planted_margin(rng, n, d):
    """(g + a, u) and (-g - a, u) with a ≥ 0, one pair with a = 0 and equal u: γ* = g, by the first coordinate and by the pair."""
    g, y = int(rng.integers(1, 4)), rng.integers(0, 2, n)
    X = rng.integers(-9, 10, (n, d))
    X[:, 0] = np.where(y, 1, -1) * (g + rng.integers(0, 5, n))
    X[:2, 0], y[:2] = (g, -g), (1, 0)
    X[1, 1:] = X[0, 1:]
    return Planted(X, y, "complete", Fraction(g))


def planted_flip(rng, n, d):
    """The same, but that of three points in a row the one in the middle is of the other class."""
    found = planted_margin(rng, max(n, 3), d)
    X, y = found.X, found.y
    X[:3, 1:] = X[0, 1:]
    X[:3, 0] = X[0, 0] + np.array([0, 1, 2])
    y[:3] = 1, 0, 1
    return Planted(X, y, "not complete")


def planted_face(rng, n, d):
    """Rows on the right side of a plane, and some on it of which one is the mean of two of the other class."""
    found, w = _plane(rng, max(n, 4), d)
    X, y = found.X, found.y
    on_plane = 2 * (rng.integers(-3, 4, (2, d)) @ (int(w @ w) * np.eye(d, dtype=int) - np.outer(w, w)))
    X[:3] = on_plane[0], on_plane[1], on_plane.sum(axis=0) // 2
    y[:3] = 1, 1, 0
    return Planted(X, y, "quasi-complete")


def planted_overlap(rng, n, d):
    """±c e_j of one class for every j, and 0 of the other: only w = 0 has A w ≥ 0."""
    X, y = rng.integers(-9, 10, (max(n, 2 * d + 1), d)), rng.integers(0, 2, max(n, 2 * d + 1))
    X[: 2 * d + 1] = np.vstack([np.diag(rng.integers(1, 9, d)), -np.diag(rng.integers(1, 9, d)), np.zeros((1, d), int)])
    y[: 2 * d], y[2 * d] = 1, 0
    return Planted(X, y, "overlap")


KINDS = (planted_plane, planted_margin, planted_flip, planted_face, planted_overlap)


def as_they_are(rng, found, intercept):
    """Small integers."""
    return found


def powers_of_two(rng, found, intercept):
    """All times one power of two."""
    e = int(rng.integers(-900, 900))
    margin = None if found.margin is None or intercept == "penalized" else found.margin * Fraction(2) ** e
    return replace(found, X=np.ldexp(found.X, e), margin=margin)


def subnormal(rng, found, intercept):
    """All, or some columns but the first, times the smallest float."""
    if rng.random() < 0.5 or found.X.shape[1] == 1:
        margin = None if found.margin is None or intercept == "penalized" else found.margin * Fraction(2) ** -1074
        return replace(found, X=np.ldexp(found.X, -1074), margin=margin)
    columns = 1 + np.flatnonzero(rng.random(found.X.shape[1] - 1) < 0.5)
    X = found.X.astype(np.float64)
    X[:, columns] = np.ldexp(X[:, columns], -1074)
    return replace(found, X=X)


def badly_scaled(rng, found, intercept):
    """Columns times powers of two; without intercept sometimes rows, too."""
    n, d = found.X.shape
    e = rng.integers(-300, 301, d)
    e[0] *= rng.integers(2)
    rows = rng.integers(-300, 301, (n, 1)) if intercept == "none" and rng.random() < 0.3 else np.zeros((n, 1), int)
    known = found.margin is not None and not rows.any() and (intercept != "penalized" or e[0] == 0)
    return replace(found, X=np.ldexp(found.X, rows + e), margin=found.margin * Fraction(2) ** int(e[0]) if known else None)


def duplicated_columns(rng, found, intercept):
    """Columns that come again, as they are or as sums of two; the first does not."""
    d = found.X.shape[1]
    if d == 1:
        return replace(found, X=np.hstack([found.X, np.zeros_like(found.X)]))
    copies = 1 + rng.integers(0, d - 1, int(rng.integers(1, d + 1)))
    sums = found.X[:, copies] + found.X[:, 1 + rng.integers(0, d - 1, len(copies))] * rng.integers(0, 2, len(copies))
    return replace(found, X=np.hstack([found.X, sums]))


def last_bits(rng, found, intercept):
    """Moved so far that points are a few units in the last place apart; without intercept sheared instead."""
    d = found.X.shape[1]
    if intercept != "none":
        far = np.append(2**52, rng.choice([0, 2**40, 2**52], d - 1)) * rng.choice([-1, 1], d)
        return replace(found, X=found.X + far, margin=found.margin if intercept == "free" else None)
    X = found.X.copy()
    if d > 1:
        X[:, 0] += X[:, 1] << (52 - int(np.abs(X).max()).bit_length())
    return replace(found, X=X, margin=None if d > 1 else found.margin)


CHANGES = {
    change.__name__: change for change in (as_they_are, powers_of_two, subnormal, badly_scaled, duplicated_columns, last_bits)
}


def planted(family, r, intercept, most=2000):
    """A problem of the family (a name of CHANGES) with up to `most` rows, its columns and rows in random order; r is a Random."""
    rng = np.random.default_rng(r.getrandbits(64))
    n, d = int(math.exp(r.uniform(math.log(2), math.log(most)))), int(math.exp(r.uniform(0, math.log(20))))
    found = CHANGES[family](rng, r.choice(KINDS)(rng, n, d), intercept)
    rows, columns = rng.permutation(len(found.X)), rng.permutation(found.X.shape[1])
    assert found.X.dtype == np.float64 or np.abs(found.X).max() <= 2**53
    return replace(found, X=np.ascontiguousarray(found.X[rows][:, columns], dtype=np.float64), y=found.y[rows])
