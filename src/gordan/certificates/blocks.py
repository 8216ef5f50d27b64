"""Bounds on the largest margins of many label vectors for the same rows, computed for all vectors at once.

This is `Margin` for blocks of vectors, restricted to the 2-norm, hard margins and dense rows in memory with their exact values.
Sums are made by `np.einsum`, which here uses no BLAS and may add in any order: in a sum of k products each product goes
through at most k roundings. What is not proved here may still be proved by `Margin`, which handles one label vector at a time
and also uses exact arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gordan.arrays import MAX_SQUARE, MIN_SQUARE, Array
from gordan.certificates.bounds import SUM_BLOCK, TINY, above, below
from gordan.certificates.matrix import error
from gordan.floats import U, ieee_floats
from gordan.intercepts import Intercept


@dataclass(frozen=True, eq=False)
class Margins:
    """The largest margins of the rows X (n × d) for m label vectors.

    `norms` are upper bounds on the lengths of the rows. `signs` (n × m) has one column for each label vector; a 0 in it leaves
    out the row.
    """

    X: Array
    norms: Array
    signs: Array
    intercept: Intercept

    @ieee_floats()
    def lower(self, W: Array, b: Array, slack: float) -> tuple[Array, Array]:
        """Return for each plane whether it is proved to separate strictly, and a lower bound on γ*, 0 if none is proved.

        The planes are the columns w of W (d × m), each with its entry of b. The bounds are those of `Margin.lower`, from
        enclosures of the scores whose radius is multiplied by `slack`.
        """
        d = self.X.shape[1]
        with np.errstate(all="ignore"):  # comparisons with NaN are false, so what is not finite proves nothing
            sums, length = np.einsum("ij,jk->ik", self.X, W), _lengths(W)
            counted = b if self.intercept.in_norm else np.zeros_like(b)
            absolute = self.norms[:, None] * length
            radius = slack * error(absolute + np.abs(b), d + 1.0)
            strict = (((sums + b) * self.signs - radius > 0) | (self.signs == 0)).all(axis=0) & np.isfinite(length)
            lo = (sums + counted) * self.signs - radius
            lows = [np.min(np.where(own, lo, math.inf), axis=0) / len(self._groups) for own in self._groups]
            total = below(np.sum([below(low) for low in lows], axis=0))
            whole = _lengths(self.intercept.joined(W, b)) if self.intercept.in_norm else length
            margin = below(total / whole)
            # a class without rows gives an infinite margin, and NaN fails both comparisons
            return strict, np.where((margin > 0) & (margin < math.inf), margin, 0.0)

    @ieee_floats()
    def upper(self, P: Array, slack: float) -> Array:
        """Return for each column p ≥ 0 of P (n × m), of any mass, an upper bound on γ*, as `Margin.upper` does.

        The sum of n weights has a relative error of at most n·u, so that a normalized weight has one of at most (n + 4)u. Each
        term of a column of Aᵀp goes through at most n further roundings. Together this is less than 2u(2n + 16) Σ q_i‖x_i‖,
        which leaves room for the roundings in that sum itself.
        """
        n, d = self.X.shape
        with np.errstate(all="ignore"):
            q = np.zeros_like(P)
            usable = (((P >= 2.0**-400) & (P <= 2.0**400) & (self.signs != 0)) | (P == 0)).all(axis=0)
            for own in self._groups:
                part = np.where(own, P, 0.0)
                q += part * (1 / (np.sum(part, axis=0) * len(self._groups)))  # a class without weight gives 0·∞ = NaN
            signed = q * self.signs
            centre = self.intercept.combined(np.einsum("ij,ik->jk", self.X, signed), np.sum(signed, axis=0))
            sizes = self.norms + self.intercept.column
            total = np.einsum("i,ik->k", sizes, q)
            radius = 2 * U * (2 * n + 16) * total + n * TINY * (float(np.max(sizes)) + d + 1.0)
            bound = above(_lengths(centre) + above(slack * radius))
            return np.where(usable & (bound < math.inf), bound, math.inf)

    @cached_property
    def _groups(self) -> list[Array]:
        """Masks (n × m) of the rows of each class if the intercept is free, else one of all rows that are not left out."""
        return [self.signs > 0, self.signs < 0] if self.intercept.grouped else [self.signs != 0]


def _lengths(W: Array) -> Array:
    """Return upper bounds on the lengths of the columns of W; infinite where squares may overflow or underflow."""
    squares = np.einsum("jk,jk->k", W, W)
    lengths = np.sqrt(squares) * (1 + U * (len(W) + 2 * SUM_BLOCK))
    return np.where((squares >= MIN_SQUARE) & (squares <= MAX_SQUARE), lengths, math.inf)
