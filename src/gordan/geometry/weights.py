"""The set of the p-player when a loss is minimized, with its regularizer, and what the p-player then pays.

A loss is ℓ(z) = max_a g(a) - a z (`gordan.losses`). With α_i = C_i a_i, ½‖w‖² + Σ C_i ℓ(A_i·w) is

    -min_α αᵀAw + ψ(α) - ½‖w‖²,   ψ(α) = -Σ C_i g(α_i/C_i),   0 ≤ α_i ≤ (the largest a) · C_i:

the game of the hard margin except for the set of p, on which Σp is not fixed, and for ψ. Hinge: ψ = -Σα, a box. Squared hinge:
ψ = Σ α²/4C - Σα. Logistic: C times the negative entropy of (a, 1 - a).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gordan.arrays import Array, dot, vector
from gordan.errors import InputError
from gordan.losses import Loss


@dataclass(frozen=True, eq=False)
class LossCost:
    """The function scale · H(α) - linear · Σα, the cost ψ or the regularizer of the p-player.

    H is C times the negative entropy of (α/C, 1 - α/C) for the logistic loss, and Σ α²/4C for the others.
    The ψ of every loss has this form, the regularizer H of the p-player has it, and so have their sums.
    """

    loss: Loss
    c: Array
    scale: float = 1.0
    linear: float = 0.0

    @property
    def convexity(self) -> float:
        """The strong convexity of H in the norm √(Σ α²/C)."""
        return 4.0 if self.loss is Loss.LOGISTIC else 0.5

    def value(self, z: Array) -> float:
        """Return the value at α."""
        own = -dot(self.c, self.loss.paid(z / self.c)) if self.loss is Loss.LOGISTIC else dot(z, z / self.c) / 4
        return self.scale * own - self.linear * float(np.sum(z))

    def gradient(self, z: Array) -> Array:
        """Return the gradient at α."""
        if self.loss is Loss.LOGISTIC:
            with np.errstate(divide="ignore"):
                own = np.log(z) - np.log(self.c - z)
        else:
            own = z / (2 * self.c)
        return np.asarray(self.scale * own - self.linear)

    def divergence(self, z: Array, y: Array) -> float:
        """Return the Bregman divergence D(z, y)."""
        return self.value(z) - self.value(y) - dot(self.gradient(y), z - y)

    def mirror(self, domain: Any, theta: Array) -> tuple[Array, Array]:
        """Return the argmin of this function minus ⟨θ, α⟩ over the weights of the loss, and the gradient there."""
        if not isinstance(domain, LossWeights) or not self.scale > 0:
            raise InputError(f"no argmin of a {self.loss.value} cost of scale {self.scale:g} over {domain!r:.60}")
        target = (theta + self.linear) / self.scale
        if self.loss is Loss.LOGISTIC:
            z = self.c * self.loss.weight(-target)
        else:
            z = np.clip(2 * self.c * target, 0.0, self.loss.most_weight * self.c)
        return z, self.gradient(z)

    def has_form_of(self, other: object) -> bool:
        """Return whether `plus` can add the other."""
        return isinstance(other, LossCost) and other.loss is self.loss

    def plus(self, weight: float, other: Any) -> LossCost:
        """Return this plus `weight` times the other."""
        return replace(self, scale=self.scale + weight * other.scale, linear=self.linear + weight * other.linear)


@dataclass(frozen=True, eq=False)
class LossWeights:
    """The set {0 ≤ α_i ≤ (the largest a of the loss) · C_i}, with the cost of each α.

    >>> LossWeights.of("hinge", 2.0, 3).lowest(np.array([0.0, 1.0, 5.0]))  # -Σ C (1 - z)₊
    -2.0
    """

    loss: Loss
    c: Array
    caps = None
    halves = None

    @staticmethod
    def of(loss: Any, C: Any, n: int) -> LossWeights:
        """Return the weights of a loss, given by name, with one C for all rows or one for each."""
        c = np.full(n, float(C)) if np.ndim(C) == 0 else vector(C, "C", n)
        if not ((c > 0) & np.isfinite(c)).all():
            raise InputError(f"C is {C!r:.60}; pass a positive number, or one for each of the {n} rows")
        found = Loss.of(loss)
        if found not in COSTS:
            raise InputError(f"the game is played for {', '.join(map(repr, map(str, COSTS)))}, not for {found.value!r}")
        return LossWeights(found, c)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.c)

    @property
    def regularizer(self) -> LossCost:
        """The regularizer H of the p-player."""
        return LossCost(self.loss, self.c)

    @property
    def cost(self) -> LossCost:
        """The cost ψ of the p-player."""
        return LossCost(self.loss, self.c, *COSTS[self.loss])

    @cached_property
    def centre(self) -> Array:
        """The default p_0: the weights at w = 0 or, for the hinge, the middle of the interval from 0 to C."""
        return self.c * (0.5 if self.loss is Loss.HINGE else float(self.loss.weight(np.zeros(1))[0]))

    def lowest(self, scores: Array) -> float:
        """Return min_α α·scores + ψ(α) = -Σ C ℓ(scores)."""
        return -dot(self.c, self.loss.cost(scores))

    def diameter(self, p0: Array) -> float:
        """Return max_α D_H(α, p_0), which is infinite for the squared hinge, whose weights are not bounded."""
        if self.loss is Loss.SQUARED_HINGE:
            return math.inf
        if self.loss is Loss.HINGE:
            return float(np.sum(np.maximum(p0, self.c - p0) ** 2 / (4 * self.c)))
        return float(-np.sum(self.c * np.log(np.minimum(p0, self.c - p0) / self.c)))

    def contains(self, p: Array, tol: float = 1e-9) -> bool:
        """Return whether p is in the set up to `tol`."""
        return bool((p >= -tol).all() and (p <= self.loss.most_weight * self.c + tol).all())


# The ψ of each loss as (scale, linear) of a `LossCost`.
COSTS = {Loss.HINGE: (0.0, 1.0), Loss.SQUARED_HINGE: (1.0, 1.0), Loss.LOGISTIC: (1.0, 0.0)}
