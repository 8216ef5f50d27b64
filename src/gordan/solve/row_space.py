"""Few rows of many columns: the same loss in as many coordinates as there are rows.

The best w is a combination of rows, and only their products with each other matter: with XXᵀ = LLᵀ the rows of L have those of
the rows of X. A plane u for them is w = XᵀL⁻ᵀu for X, of the same length and with the same scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gordan.arrays import Array
from gordan.blas import factorized, scipy_linalg
from gordan.deadlines import Deadline
from gordan.errors import InputError
from gordan.memory import fits
from gordan.rows import Rows, stored

# Rows up to which a matrix of their products is made, and columns for each of them from which it is worth it.
MOST_ROWS = 1000
COLUMNS_PER_ROW = 2


def few_and_long(n: int, d: int) -> bool:
    """Whether so many rows are few, and of so many columns that it is worth it."""
    return n <= MOST_ROWS and d >= COLUMNS_PER_ROW * n


@dataclass(frozen=True, eq=False)
class RowSpace:
    """The `rows` in coordinates of what they span, L, and the rows of X themselves."""

    rows: Rows
    L: Array
    X: Rows

    @staticmethod
    def of(rows: Rows, time: Deadline) -> RowSpace | None:
        """None where there are too many rows or too few columns for it, or products are beyond the floats."""
        n = rows.n
        if not (few_and_long(n, rows.d) and rows.in_memory and not rows.sparse and fits(8 * 3 * n * n)):
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
        """u for a plane w of X, or for the part of it that rows span; of a block of planes, a block. None beyond the floats."""
        d = self.X.d
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                u = self._solved(self.X.scores(w[:d]), "N")
            except InputError:  # of products that overflow
                return None
        return np.concatenate((u, w[d:])) if np.isfinite(u).all() else None

    def plane(self, u: Array, refined: int) -> Array:
        """w for X, with b as its last entry where there is one; of a block of planes, a block. So often `refined`: by what
        rounding has made of its scores."""
        n = self.rows.n
        w, z = self.X.combine(self._solved(u[:n], "T")), self.L @ u[:n]
        for _ in range(refined):
            w = w + self.X.combine(self._solved(self._solved(z - self.X.scores(w), "N"), "T"))
        return np.concatenate((w, u[n:]))

    def _solved(self, right: Array, trans: str) -> Array:
        return np.asarray(scipy_linalg().solve_triangular(self.L, right, lower=True, trans=trans, check_finite=False))
