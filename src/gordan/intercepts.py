"""The three kinds of intercept, and what each means for rows, norms and weights.

A new kind is a new member here: which column it adds to A, whether b counts in the norm of w, and how the weights p split into
groups with a fixed mass each. Nothing else in the package compares kinds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError, one_of


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
    def column(self) -> int:
        """The constant of that column, a power of two by which b is divided in the norm; 0 if there is none."""
        return 1 if self is Intercept.PENALIZED else 0

    @property
    def grouped(self) -> bool:
        """Whether p has half of its mass in each class, which is the dual of a b that costs nothing."""
        return self is Intercept.FREE

    def columns(self, d: int) -> int:
        """Return the number of columns of A in exact arithmetic, for d columns of X."""
        return d + self.exists

    def plane_of(self, v: Any) -> tuple[Any, Any]:
        """Return w and b from a vector with one entry for each column of A."""
        return (v[:-1], v[-1]) if self.exists else (v, 0)

    def played(self, v: Array) -> tuple[Array, float | None]:
        """Return w and b from the w of the game; b is None if it is still to be chosen."""
        return (v[:-1], self.column * float(v[-1])) if self.in_norm else (v, None if self.grouped else 0.0)

    def joined(self, w: Array, b: float) -> Array:
        """Return the vector whose norm counts: (w, b/column), or w alone."""
        return np.append(w, b / self.column) if self.in_norm else w

    def group_of_row(self, signs: Array) -> Array | None:
        """Return the group of each row for `Simplex`: 0 for the positive class, 1 for the negative one; None for one group."""
        return (signs < 0).astype(np.int8) if self.grouped else None

    def groups(self, signs: Array) -> list[Array]:
        """Return the rows of each group that has a fixed mass, the positive class first."""
        return [np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)] if self.grouped else [np.arange(len(signs))]

    def largest_nu(self, positive: Any, negative: Any) -> Any:
        """Return the largest feasible nu for classes of these total weights: 2·min(C₊, C₋)/(C₊ + C₋), or 1."""
        return 2 * min(positive, negative) / (positive + negative) if self.grouped else type(positive)(1)
