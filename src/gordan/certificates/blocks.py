"""What planes and weights prove about the margins of many label vectors for the same rows: `Margin` for blocks of vectors.

For the 2-norm and hard margins, from rows that are spread out in memory with their exact values. Sums are plain ones by
`np.einsum`, which uses no BLAS, in whatever order: of k terms a sum goes through k roundings at most. What is not proved here
may still be proved by `Margin`, which looks at one label vector at a time and has exact arithmetic besides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gordan.arrays import LEAST_SQUARE, MOST_SQUARE, Array
from gordan.certificates.bounds import SUM_BLOCK, TINY, U, above, below
from gordan.certificates.matrix import error
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept


@dataclass(frozen=True, eq=False)
class Margins:
    """The largest margins of rows X (n × d) with upper bounds `norms` on their lengths; a column of signs (n × m) for each label
    vector, in which 0 leaves a row out."""

    X: Array
    norms: Array
    signs: Array
    intercept: Intercept

    @ieee_floats()
    def lower(self, W: Array, b: Array, slack: float) -> tuple[Array, Array]:
        """For each column w of W (d × m) with its b whether every row is strictly on its side, and what γ* is at least: 0 where
        that is not proved. As `Margin.lower`, with enclosures that are wider by `slack`."""
        d = self.X.shape[1]
        with np.errstate(all="ignore"):  # what is not finite proves nothing
            sums, length = np.einsum("ij,jk->ik", self.X, W), _lengths(W)
            counted = b if self.intercept.in_norm else np.zeros_like(b)
            absolute = self.norms[:, None] * length
            radius = slack * error(absolute + np.abs(b), d + 1.0)
            strict = (((sums + b) * self.signs - radius > 0) | (self.signs == 0)).all(axis=0) & np.isfinite(length)
            lo = (sums + counted) * self.signs - radius
            sides = (1, -1) if self.intercept.grouped else (0,)
            lows = [np.min(np.where(self._group(side), lo, math.inf), axis=0) / len(sides) for side in sides]
            total = below(np.sum([below(low) for low in lows], axis=0))
            whole = _lengths(np.vstack((W, counted / self.intercept.column))) if self.intercept.in_norm else length
            margin = below(total / whole)
            # a class without rows has a low of infinity, and NaN fails both
            return strict, np.where((margin > 0) & (margin < math.inf), margin, 0.0)

    @ieee_floats()
    def upper(self, P: Array, slack: float) -> Array:
        """For each column p ≥ 0 of P (n × m), of whatever mass, what γ* is at most. As `Margin.upper`.

        A sum of n weights is off by a share of nu at most, so that a normalized weight is off by (n + 4)u; a column of Aᵀp by n
        roundings of each term: together less than 2u(2n + 16) Σ q_i‖x_i‖, with room for the roundings of that sum itself.
        """
        n, d = self.X.shape
        with np.errstate(all="ignore"):
            sides = (1, -1) if self.intercept.grouped else (0,)
            q = np.zeros_like(P)
            able = (((P >= 2.0**-400) & (P <= 2.0**400) & (self.signs != 0)) | (P == 0)).all(axis=0)
            for side in sides:
                part = np.where(self._group(side), P, 0.0)
                q += part * (1 / (np.sum(part, axis=0) * len(sides)))  # infinite, then NaN, where there is none
            signed = q * self.signs
            centre, sizes = np.einsum("ij,ik->jk", self.X, signed), self.norms
            if self.intercept.in_norm:
                centre, sizes = np.vstack((centre, self.intercept.column * np.sum(signed, axis=0))), sizes + self.intercept.column
            total = np.einsum("i,ik->k", sizes, q)
            off = 2 * U * (2 * n + 16) * total + n * TINY * (float(np.max(sizes)) + d + 1.0)
            bound = above(_lengths(centre) + above(slack * off))
            return np.where(able & (bound < math.inf), bound, math.inf)

    def _group(self, side: int) -> Array:
        return np.asarray(self.signs == side if side else self.signs != 0)


def _lengths(W: Array) -> Array:
    """Upper bounds on the lengths of the columns; infinite where squares may overflow or underflow."""
    squares = np.einsum("jk,jk->k", W, W)
    found = np.sqrt(squares) * (1 + U * (len(W) + 2 * SUM_BLOCK))
    return np.where((squares >= LEAST_SQUARE) & (squares <= MOST_SQUARE), found, math.inf)
