"""Problems whose largest margin is known by construction, and the shapes that tests walk over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

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
