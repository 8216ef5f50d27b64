"""Gordan's alternative and the largest margin of small data, by an interior-point method in NumPy alone.

There are two programs, in vectors p over rows and z over columns, for the rows B_i = A_i/‖A_i‖:

    sign   min c·p over Bᵀp = 0, Σp = 1, p ≥ 0, for a random c. The solution is a vertex, hence a witness on independent rows;
           where there is none, the multipliers z diverge along a w with A w > 0.
    width  min ½‖w‖² over A w ≥ 1, from such a w. The solution has the largest margin, and its multipliers are the p that proves
    it.

Both ask for s = Bz + c ≥ 0 and p ≥ 0 with Bᵀp = rz + q, r diagonal, and p_i s_i = 0. One loop solves both: the predictor and
corrector of S. Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optim. 2, 1992. A step solves two
systems of the size of z, whatever the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array

# benchmarks/order.py times what these constants decide, on its small sets.

# Steps: about ten are needed, twice that for columns that nearly depend on each other.
MAX_STEPS = 40
# Share of the way to the boundary that a step goes.
STEP_TO_BOUNDARY = 0.999
# p is taken for a vertex when no entry of Bᵀp, nor p·s, exceeds this, for rows of length 1.
VERTEX = 1e-9
# The plane is taken for the widest when p·s is at most this share of ‖w‖².
OPTIMAL = 1e-12
# Weights below this share of the largest are taken for 0: an interior point comes near the boundary and does not reach it.
NEGLIGIBLE_INTERIOR_WEIGHT = 1e-7
# Columns smaller than this, beside rows of length 1, are scaled as if they had this size: the square of a larger factor would
# hide all other columns.
MIN_COLUMN_SIZE = 1e-50
# Weights p_i/s_i below this share of the largest add nothing to the system.
NEGLIGIBLE = 1e-10


class InteriorSolution(NamedTuple):
    """A plane w, b that may separate, with weights p that bound the margin; or, without w, weights of rows that may cancel."""

    w: Array | None
    b: float
    p: Array


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The rows (x_i, constant), without their signs, in coordinates in which they are well scaled and have length 1.

    B are the rows, divided by `norms`; `ridge` is what the square of each entry of z costs in ‖w‖². The other fields are for the
    way back.
    """

    B: Array
    norms: Array
    ridge: Array
    column_scale: Array
    constant: float
    centre: Array
    turn: Array | None

    @staticmethod
    def of(X: Array, constant: float, free: bool) -> Coordinates:
        """Return the coordinates for rows X of length at most about 1.

        The constant is 0 where there is no intercept, and costs nothing in ‖w‖ if it is `free`.
        """
        centre = X.mean(axis=0) if free else np.zeros(X.shape[1])
        A, turn = X - centre, None
        if A.shape[0] < A.shape[1]:  # as many columns as rows are enough: x = Qt, hence w = Qu
            turn, T = np.linalg.qr(A.T)
            A = T.T
        if constant:
            A = np.column_stack((A, np.full(len(A), constant)))
        # the coordinates of the span are not scaled: some may be mere rounding
        sizes = np.maximum(_or_one(np.max(np.abs(A), axis=0)), MIN_COLUMN_SIZE)
        column_scale = 1 / sizes if turn is None else np.ones(A.shape[1])
        A = A * column_scale
        norms = _or_one(np.sqrt(np.sum(A * A, axis=1)))
        ridge = np.square(column_scale)
        ridge[-1] *= not free
        return Coordinates(A / norms[:, None], norms, ridge, column_scale, constant, centre, turn)

    def plane(self, z: Array) -> tuple[Array, Array]:
        """Return w and b, in the units of X and of x·w, for one z or for one in each row."""
        w = z * self.column_scale
        b = self.constant * w[..., -1] if self.constant else np.zeros(z.shape[:-1])
        w = w[..., :-1] if self.constant else w
        w = w if self.turn is None else w @ self.turn.T
        return w, b - w @ self.centre

    def point(self, w: Array, b: Array) -> Array:
        """Return the z of planes, one in each row of w: the inverse of `plane`."""
        z = w if self.turn is None else w @ self.turn
        if self.constant:
            z = np.column_stack((z, (b + w @ self.centre) / self.constant))
        return np.asarray(z / self.column_scale)


@np.errstate(all="ignore")
def answers(X: Array, signs: Array, constant: float, free: bool, planes: bool = True) -> list[InteriorSolution]:
    """Return planes or weights for rows y_i(x_i, constant) of length at most about 1, the best first; none where floats fail.

    The constant is 0 where there is no intercept, and costs nothing in ‖w‖ if it is `free`. b has the units of x·w. Without
    `planes` only weights are returned.
    """
    rows = Coordinates.of(X, constant, free)
    B, norms = rows.B * signs[:, None], rows.norms

    def answer(z: Array, p: Array) -> InteriorSolution:
        w, b = rows.plane(z)
        return InteriorSolution(w, float(b), p / norms)

    z, p = _alternative(B)
    if z is not None and not planes:
        return []
    if z is not None:
        return [answer(*_widest(B, 1 / norms, rows.ridge, z)), answer(z, np.zeros(len(B)))]
    return [] if p is None else [InteriorSolution(None, 0.0, p / norms)]


def _or_one(sizes: Array) -> Array:
    return np.where(sizes > 0, sizes, 1.0)


def _alternative(B: Array) -> tuple[Array | None, Array | None]:
    """Return a z with Bz > 0, or the weights of a vertex of Bᵀp = 0, Σp = 1, p ≥ 0."""
    n, k = B.shape
    q = np.append(np.zeros(k), -1.0)
    cost = np.random.default_rng(1).random(len(B))
    for z, p, s in _steps(np.column_stack((B, -np.ones(n))), np.zeros(k + 1), q, cost, q, np.full(n, 1 / n)):
        if np.min(s - cost) > -z[-1]:
            return z[:-1], None
        if float(p @ s) <= VERTEX and np.max(np.abs(p @ B)) <= VERTEX:
            return None, np.where(p > NEGLIGIBLE_INTERIOR_WEIGHT * p.max(), p, 0.0)
    return None, None


def _widest(B: Array, least: Array, ridge: Array, start: Array) -> tuple[Array, Array]:
    """Return the z of least Σ ridge z² with Bz ≥ least, from one with Bz > 0, and its multipliers p."""
    z = start * (1.2 / np.min(B @ start / least))
    p = float(ridge @ z**2) / (10 * len(B)) / (B @ z - least)
    before = math.inf
    for step in _steps(B, ridge, np.zeros(len(z)), -least, z, p):
        z, p, s = step
        gap = float((p @ s) / (p @ least))  # a NumPy division, which gives NaN and raises no error
        if not gap > OPTIMAL or before < gap < 1e-6:  # a small gap that grows is rounding
            break
        before = gap
    return z, np.where(p > NEGLIGIBLE_INTERIOR_WEIGHT * p.max(), p, 0.0)


def _steps(B: Array, ridge: Array, q: Array, c: Array, z: Array, p: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Yield z, p > 0 and s = Bz + c > 0 after each step, from such z and p, while they are finite.

    With weights p_i/s_i and H = Bᵀ diag(p/s) B + diag(r), the step that takes every p_i s_i to t_i is H dz = Bᵀ(t/s) - rz - q,
    ds = B dz, dp = t/s - p - (p/s) ds. The predictor has t = 0. The t of the corrector follows from how far the predictor can go,
    and from the product dp ds that it neglects.
    """
    n, k = B.shape
    s = B @ z + c
    together = bool(ridge.any())  # without a ridge nothing ties p to z, and their steps may have different lengths
    for _ in range(MAX_STEPS):
        weights = p / s
        heavy = np.flatnonzero(weights > NEGLIGIBLE * weights.max())
        rows = B if 2 * len(heavy) > n else B[heavy]  # near the end few rows matter
        rows = rows * np.sqrt(weights if rows is B else weights[heavy])[:, None]
        H = rows.T @ rows
        H.flat[:: k + 1] += ridge if together else 1e-15 * H.diagonal().max()
        here = ridge * z + q
        try:
            dz = np.linalg.solve(H, -here)
            ds = B @ dz
            dp = -p - weights * ds
            mean, after = float(p @ s) / n, float((p + _room(p, dp) * dp) @ (s + _room(s, ds) * ds)) / n
            share = ((after / mean) ** 3 * mean - dp * ds) / s
            dz = np.linalg.solve(H, share @ B - here)
        except (np.linalg.LinAlgError, ArithmeticError):  # floats allow no further step
            return
        ds = B @ dz
        dp = share - p - weights * ds
        z_step, p_step = STEP_TO_BOUNDARY * _room(s, ds), STEP_TO_BOUNDARY * _room(p, dp)
        if together:
            z_step = p_step = min(z_step, p_step)
        z, s, p = z + z_step * dz, s + z_step * ds, p + p_step * dp
        if not math.isfinite(p @ s):
            return
        yield z, p, s


def _room(x: Array, dx: Array) -> float:
    """Return the largest step, up to 1, with x + step·dx ≥ 0."""
    return 1.0 / max(1.0, -float((dx / x).min()))
