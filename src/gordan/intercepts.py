"""The three kinds of intercept, and what each means for rows, norms, weights and words.

A new kind is a new member here: which column it adds to A, hence whether b counts in the norm of w, and how the weights p split
into groups with a fixed mass each. The rest of the package asks a kind for these properties. It compares kinds in two places:
a command leaves out an option that is the default, and a certificate of an ordinal model has a free intercept.
`certificates/standalone.py` implements the kinds once more, because it shares no code.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

import numpy as np

from gordan.arrays import Array, namespace
from gordan.errors import InputError, one_of

# The same words as a type; mypy notices if one is missing.
InterceptWord = Literal["free", "penalized", "none"]


class Intercept(StrEnum):
    """How b enters x·w + b; the values are the words that users pass and that files contain."""

    FREE = "free"
    PENALIZED = "penalized"
    NONE = "none"

    @staticmethod
    def of(kind: Any) -> Intercept:
        """Return the intercept of this name, or raise an InputError that lists the names."""
        if isinstance(kind, str) and kind in {*Intercept}:
            return Intercept(kind)
        raise InputError(f"intercept is {kind!r}; {one_of(kind, Intercept)}")

    @property
    def exists(self) -> bool:
        """Whether there is a b; exact arithmetic then works with a column of ones."""
        return self is not Intercept.NONE

    @property
    def in_norm(self) -> bool:
        """Whether b counts in the norm, so that the game is played on the rows (x, `column`)."""
        return self.column > 0

    @property
    def grouped(self) -> bool:
        """Whether p has half of its mass in each class, which is the dual of a b that costs nothing."""
        return self is Intercept.FREE

    @property
    def column(self) -> int:
        """The constant of that column, a power of two by which b is divided in the norm; 0 if there is none."""
        return 1 if self is Intercept.PENALIZED else 0

    def constant(self, R: float = 1.0) -> float:
        """Return the constant of the column that goes with rows x/R if b is the last entry of w: 0 if there is no b.

        It is `column`/R if b counts in the norm, so that the length of w is the norm, and 1 for a b that costs nothing.
        """
        return self.column / R if self.in_norm else float(self.exists)

    def columns(self, d: int) -> int:
        """Return the number of columns of A in exact arithmetic, for d columns of X."""
        return d + self.exists

    def plane_of(self, v: Any) -> tuple[Any, Any]:
        """Return w and b from a vector with one entry for each column of A."""
        return (v[:-1], v[-1]) if self.exists else (v, 0)

    def inward(self, plane: Array) -> Array:
        """Return the w of rows with the column `constant()` for a plane, or a block of planes, with b as its last entry."""
        return self._times(1 / self.column, plane) if self.in_norm else plane

    def outward(self, w: Array) -> Array:
        """Return the plane, or the block of planes, with b as its last entry, of a w of rows with the column `constant()`."""
        return self._times(self.column, w) if self.in_norm else w

    def _times(self, factor: float, w: Array) -> Array:
        return w if factor == 1 else np.concatenate((w[:-1], factor * w[-1:]))

    def played(self, v: Array) -> tuple[Array, float | None]:
        """Return w and b from the w of the game; b is None if it is still to be chosen."""
        w, b = self.parted(v)
        return w, None if self.grouped else float(b)

    def joined(self, w: Array, b: Any) -> Array:
        """Return the vector whose norm counts: (w, b/column), or w alone; or a block of such columns."""
        return np.concatenate((w, np.reshape(b, (1, *w.shape[1:])) / self.column)) if self.in_norm else w

    def combined(self, sums: Array, mass: Any) -> Array:
        """Return Aᵀq for the rows (x, `column`) from Xᵀq and Σ q, or blocks of these; Xᵀq alone if b does not count."""
        return np.concatenate((sums, np.reshape(self.column * mass, (1, *sums.shape[1:])))) if self.in_norm else sums

    def parted(self, v: Array) -> tuple[Array, Any]:
        """Return w and b from the vector whose norm counts, or from a block of such columns; b is 0 where it does not count."""
        return (v[:-1], self.column * v[-1]) if self.in_norm else (v, np.zeros(v.shape[1:]))

    def group_of_row(self, signs: Array) -> Array | None:
        """Return the group of each row for `Simplex`: 0 for the positive class, 1 for the negative one; None for one group."""
        return (signs < 0).astype(np.int8) if self.grouped else None

    def groups(self, signs: Any) -> list[Any]:
        """Return the rows of each group that has a fixed mass, the positive class first; where the signs are."""
        masks = [signs > 0, signs < 0] if self.grouped else [abs(signs) >= 0]
        return [namespace(mask).where(mask)[0] for mask in masks]

    def largest_nu(self, positive: Any, negative: Any) -> Any:
        """Return the largest feasible nu for classes of these total weights: 2·min(C₊, C₋)/(C₊ + C₋), or 1."""
        return 2 * min(positive, negative) / (positive + negative) if self.grouped else type(positive)(1)

    @property
    def in_words(self) -> str:
        """The name of the kind in a text."""
        return f"{self} intercept" if self.exists else "no intercept"

    @property
    def in_claims(self) -> str:
        """How the claim of a certificate ends; a free intercept is the default, which is not mentioned."""
        return "" if self.grouped else f" with a {self.in_words}" if self.exists else " without intercept"

    @property
    def in_claims_of_signs(self) -> str:
        """The same for claims that are the same for every b that exists, however it is counted."""
        return "" if self.exists else self.in_claims
