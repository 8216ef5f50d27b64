"""The losses of a linear classifier, each defined by what the p-player of the game pays.

With z = y(x·w + b), a loss is ℓ(z) = max_a g(a) - a z, where a is the weight of the row, between 0 and `most_weight`, and g is
what the p-player pays for it. Hinge: a box. Squared hinge: ¼a². Logistic: the entropy of (a, 1 - a). A new loss is a new member
here, and its bounds in `certificates.losses`. The multinomial loss concerns several classes at once, log Σ_c e^{s_c} - s_y for
scores s and label y: a row has a weight for each class, a point q of a simplex, and the p-player pays its entropy
(`certificates.multinomial`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from gordan.arrays import Array, namespace
from gordan.errors import InputError, one_of


class Loss(StrEnum):
    """A loss, by the name that users pass and that files contain.

    The formulas are in plain floats, for finders, and accept NumPy arrays and tensors.
    """

    HINGE = "hinge"
    SQUARED_HINGE = "squared_hinge"
    LOGISTIC = "logistic"
    MULTINOMIAL = "multinomial"

    @staticmethod
    def of(name: Any) -> Loss:
        """Return the loss of this name, or raise an InputError that lists the names."""
        if isinstance(name, str) and name in {*Loss}:
            return Loss(name)
        hint = NAMES_IN_OTHER_LIBRARIES.get(name.lower().replace("-", "_").replace(" ", "_")) if isinstance(name, str) else None
        raise InputError(f"loss is {name!r:.60}; {hint or one_of(name, Loss)}")

    @property
    def smooth(self) -> bool:
        """Whether the loss is differentiable everywhere, so that w determines the weights of the rows."""
        return self is not Loss.HINGE

    @property
    def several(self) -> bool:
        """Whether the loss concerns several classes at once; the formulas below do not apply to it."""
        return self is Loss.MULTINOMIAL

    @property
    def probabilities(self) -> bool:
        """Whether scores determine probabilities of the classes."""
        return self in (Loss.LOGISTIC, Loss.MULTINOMIAL)

    @property
    def most_weight(self) -> float:
        """The largest a that g allows."""
        return math.inf if self is Loss.SQUARED_HINGE else 1.0

    def at_zero(self, k: int) -> float:
        """Return the loss of a row whose scores are 0 for all k classes."""
        return math.log(k) if self.probabilities else 1.0

    def cost(self, z: Array) -> Array:
        """Return ℓ(z)."""
        if self is Loss.LOGISTIC:
            xp = namespace(z)
            return np.logaddexp(0.0, -z) if xp is np else xp.nn.functional.softplus(-z)
        short = (1.0 - z).clip(min=0.0)
        return short if self is Loss.HINGE else short * short

    def weight(self, z: Array) -> Array:
        """Return a(z) = -ℓ'(z); for the hinge, 1 if z < 1, else 0."""
        if self is Loss.LOGISTIC:
            xp = namespace(z)
            e = xp.exp(-abs(z))
            weight: Array = xp.where(z >= 0, e, 1.0) / (1.0 + e)
            return weight
        if self is Loss.HINGE:
            return (z < 1) * 1.0
        return 2.0 * (1.0 - z).clip(min=0.0)

    def curvature(self, z: Array, a: Array) -> Array:
        """Return ℓ''(z), given a(z)."""
        if self is Loss.LOGISTIC:
            return a * (1.0 - a)
        return 2.0 * (z < 1) if self is Loss.SQUARED_HINGE else 0.0 * (z < 1)

    def paid(self, a: Array) -> Array:
        """Return g(a)."""
        if self is Loss.HINGE:
            return a
        if self is Loss.SQUARED_HINGE:
            return a - 0.25 * a * a
        q = np.minimum(a, 1.0 - a)
        s = np.where(q > 0, q, 0.5)
        return np.where(q > 0, -s * np.log(s) - (1.0 - s) * np.log1p(-s), 0.0)


@dataclass(frozen=True)
class SmoothHinge:
    """The hinge loss with a parabola in place of its corner: with s = 1 - z, it is s²/2ε up to s = ε, and s - ε/2 beyond."""

    epsilon: float
    several = False

    def cost(self, z: Any) -> Any:
        """Return ℓ(z)."""
        s = (1.0 - z).clip(min=0.0)
        near = s.clip(max=self.epsilon)
        return near * near / (2 * self.epsilon) + (s - near)

    def weight(self, z: Any) -> Any:
        """Return a(z) = -ℓ'(z)."""
        return ((1.0 - z) / self.epsilon).clip(min=0.0, max=1.0)

    def curvature(self, z: Any, a: Any) -> Any:
        """Return ℓ''(z), given a(z)."""
        return ((a > 0) & (a < 1)) * (1 / self.epsilon)


# ---- several classes ------------------------------------------------------------------------------------------------


def softmax(S: Array) -> Array:
    """Return e^{s_c}/Σ e^s for each row of scores."""
    xp = namespace(S)
    Q: Array = xp.exp(S - xp.amax(S, 1)[:, None])
    Q /= Q.sum(1)[:, None]
    return Q


def balancing_step(g: Array, H: Array) -> Array:
    """Return a Newton step of `balancing` for residual masses g with Jacobian H, NaN if H is singular.

    No entry changes by more than 1, so that a bad step does little harm.
    """
    try:
        s = -np.linalg.solve(H + np.max(np.diagonal(H)) / len(H), g)
    except np.linalg.LinAlgError:
        return np.full_like(g, math.nan)
    return np.asarray(s * min(1.0, 1.0 / max(float(np.max(np.abs(s))), 1e-300)))


# Names of losses in other libraries, and what to pass instead.
NAMES_IN_OTHER_LIBRARIES = {
    **dict.fromkeys(
        ("softmax", "cross_entropy", "crossentropy", "categorical_crossentropy", "cross_entropy_loss"),
        "pass 'multinomial', the cross-entropy of the softmax of the scores of all classes",
    ),
    **dict.fromkeys(
        ("log_loss", "logloss", "binary_crossentropy", "bce", "logit", "deviance"),
        "pass 'logistic' for two classes or one plane per class, or 'multinomial' for several classes as in LogisticRegression",
    ),
    "crammer_singer": "there is no loss of Crammer and Singer; pass 'multinomial' for all classes at once, or 'hinge'",
}
