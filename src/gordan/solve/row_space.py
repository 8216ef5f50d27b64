"""Coordinates in the row space, for few rows with many columns: as many as there are rows.

The best w is a combination of rows, and the loss depends only on their Gram matrix: with XXᵀ = LLᵀ, L has the same one. A plane
u for the rows of L is the plane w = XᵀL⁻ᵀu for X, with the same length and the same scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gordan.arrays import Array
from gordan.blas import factorized, scipy_linalg
from gordan.deadlines import Deadline
from gordan.errors import BeyondFloats
from gordan.memory import fits
from gordan.rows import Rows, stored
from gordan.solve.loss_newton import TUNING as NEWTON

# The largest number of rows whose Gram matrix is factorized, and the smallest number of columns per row for which that saves
# time.
MAX_ROWS = 1000
COLUMNS_PER_ROW = 2


def few_and_long(n: int, d: int) -> bool:
    """Return whether there are few rows, with so many columns that it saves time to work in the row space."""
    return n <= MAX_ROWS and d >= COLUMNS_PER_ROW * n


@dataclass(frozen=True, eq=False)
class RowSpace:
    """The rows in coordinates of the row space (`rows`, with the matrix `L`), and the rows of X without signs."""

    rows: Rows
    L: Array
    X: Rows

    @staticmethod
    def of(rows: Rows, time: Deadline) -> RowSpace | None:
        """Return the row space; None if there are too many rows or too few columns, or if products overflow.

        None for sparse rows as well if they have too many columns for a factorization: conjugate gradients and coordinate ascent
        cost less there.
        """
        n = rows.n
        if not (few_and_long(n, rows.d) and rows.in_memory and fits(8 * 3 * n * n)) or NEWTON.is_too_wide(rows.storage, rows.d):
            return None
        if not time.affords(time.pace.gram(rows, n, n)):
            return None
        X = replace(rows, constant=0.0, signs=np.ones(n, np.int8))
        with np.errstate(over="ignore", invalid="ignore"):
            K = X.gram(np.arange(n))
        rows.passes += X.passes
        if not np.isfinite(K).all():
            return None
        factor, scale = factorized(K)
        L = np.tril(factor) / scale[:, None]
        return RowSpace(replace(rows, storage=stored(L)), L, X)

    def coordinates(self, w: Array) -> Array | None:
        """Return u for a plane w of X or its projection to the row space, or for a block of planes; None if products overflow."""
        d = self.X.d
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                u = self._solved(self.X.scores(w[:d]), "N")
            except BeyondFloats:  # of products that overflow
                return None
        return np.concatenate((u, w[d:])) if np.isfinite(u).all() else None

    def plane(self, u: Array, refined: int) -> Array:
        """Return w for X, with b as its last entry if there is one, or a block of planes.

        Iterative refinement corrects the rounding errors of the scores `refined` times.
        """
        n = self.rows.n
        w, z = self.X.combine(self._solved(u[:n], "T")), self.L @ u[:n]
        for _ in range(refined):
            w = w + self.X.combine(self._solved(self._solved(z - self.X.scores(w), "N"), "T"))
        return np.concatenate((w, u[n:]))

    def _solved(self, right: Array, trans: str) -> Array:
        return np.asarray(scipy_linalg().solve_triangular(self.L, right, lower=True, trans=trans, check_finite=False))
