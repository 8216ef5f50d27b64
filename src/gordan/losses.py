"""The losses of a linear classifier, each as what the p-player of the game pays.

With z = y(x·w + b) a loss is ℓ(z) = max_a g(a) - a z: a is the weight of the row, between 0 and `most_weight`, and g what the
p-player pays for it. Hinge: a box. Squared hinge: ¼a². Logistic: the entropy of (a, 1 - a). A new loss is a new member here,
and its bounds in `certificates.losses`.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError


class Loss(StrEnum):
    """A loss by the name that users pass and that files hold; formulas are in plain floats, for finders."""

    HINGE = "hinge"
    SQUARED_HINGE = "squared_hinge"
    LOGISTIC = "logistic"

    @staticmethod
    def of(name: Any) -> Loss:
        """The loss of that name, or an InputError that lists the names."""
        if isinstance(name, str) and name in {*Loss}:
            return Loss(name)
        raise InputError(f"loss is {name!r}; choose one of {', '.join(repr(str(known)) for known in Loss)}")

    @property
    def smooth(self) -> bool:
        """Whether it has a slope everywhere: the weights of the rows then follow from w alone."""
        return self is not Loss.HINGE

    @property
    def most_weight(self) -> float:
        """The largest a that g allows."""
        return math.inf if self is Loss.SQUARED_HINGE else 1.0

    def cost(self, z: Array) -> Array:
        """ℓ(z)."""
        if self is Loss.LOGISTIC:
            return np.logaddexp(0.0, -z)
        short = np.maximum(1.0 - z, 0.0)
        return short if self is Loss.HINGE else short * short

    def weight(self, z: Array) -> Array:
        """a(z) = -ℓ'(z); for the hinge 1 where z < 1, else 0."""
        if self is Loss.LOGISTIC:
            e = np.exp(-np.abs(z))
            return np.asarray(np.where(z >= 0, e, 1.0) / (1.0 + e))
        if self is Loss.HINGE:
            return (z < 1).astype(np.float64)
        return 2.0 * np.maximum(1.0 - z, 0.0)

    def curvature(self, z: Array, a: Array) -> Array:
        """ℓ''(z), given a(z)."""
        if self is Loss.LOGISTIC:
            return a * (1.0 - a)
        return 2.0 * (z < 1) if self is Loss.SQUARED_HINGE else np.zeros_like(z)

    def paid(self, a: Array) -> Array:
        """g(a)."""
        if self is Loss.HINGE:
            return a
        if self is Loss.SQUARED_HINGE:
            return a - 0.25 * a * a
        q = np.minimum(a, 1.0 - a)
        s = np.where(q > 0, q, 0.5)
        return np.where(q > 0, -s * np.log(s) - (1.0 - s) * np.log1p(-s), 0.0)
