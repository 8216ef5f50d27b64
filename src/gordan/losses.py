"""The losses of a linear classifier, each as what the p-player of the game pays.

With z = y(x·w + b) a loss is ℓ(z) = max_a g(a) - a z: a is the weight of the row, between 0 and `most_weight`, and g what the
p-player pays for it. Hinge: a box. Squared hinge: ¼a². Logistic: the entropy of (a, 1 - a). A new loss is a new member here,
and its bounds in `certificates.losses`. The multinomial loss is about several classes at once, log Σ_c e^{s_c} - s_y for scores
s and the label y: a row has a weight for each class, a point q of a simplex, and the p-player pays its entropy
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
    """A loss by the name that users pass and that files hold; formulas are in plain floats, for finders, and for arrays of NumPy
    and tensors alike."""

    HINGE = "hinge"
    SQUARED_HINGE = "squared_hinge"
    LOGISTIC = "logistic"
    MULTINOMIAL = "multinomial"

    @staticmethod
    def of(name: Any) -> Loss:
        """The loss of that name, or an InputError that lists the names."""
        if isinstance(name, str) and name in {*Loss}:
            return Loss(name)
        raise InputError(f"loss is {name!r}; {one_of(name, Loss)}")

    @property
    def smooth(self) -> bool:
        """Whether it has a slope everywhere: the weights of the rows then follow from w alone."""
        return self is not Loss.HINGE

    @property
    def several(self) -> bool:
        """Whether it is about several classes at once; what follows here is then not about it."""
        return self is Loss.MULTINOMIAL

    @property
    def probabilities(self) -> bool:
        """Whether scores stand for probabilities of the classes."""
        return self in (Loss.LOGISTIC, Loss.MULTINOMIAL)

    @property
    def most_weight(self) -> float:
        """The largest a that g allows."""
        return math.inf if self is Loss.SQUARED_HINGE else 1.0

    def at_zero(self, k: int) -> float:
        """The loss of a row whose scores are all 0, of k classes."""
        return math.log(k) if self.probabilities else 1.0

    def cost(self, z: Array) -> Array:
        """ℓ(z)."""
        if self is Loss.LOGISTIC:
            xp = namespace(z)
            return np.logaddexp(0.0, -z) if xp is np else xp.nn.functional.softplus(-z)
        short = (1.0 - z).clip(min=0.0)
        return short if self is Loss.HINGE else short * short

    def weight(self, z: Array) -> Array:
        """a(z) = -ℓ'(z); for the hinge 1 where z < 1, else 0."""
        if self is Loss.LOGISTIC:
            xp = namespace(z)
            e = xp.exp(-abs(z))
            weight: Array = xp.where(z >= 0, e, 1.0) / (1.0 + e)
            return weight
        if self is Loss.HINGE:
            return (z < 1) * 1.0
        return 2.0 * (1.0 - z).clip(min=0.0)

    def curvature(self, z: Array, a: Array) -> Array:
        """ℓ''(z), given a(z)."""
        if self is Loss.LOGISTIC:
            return a * (1.0 - a)
        return 2.0 * (z < 1) if self is Loss.SQUARED_HINGE else 0.0 * (z < 1)

    def paid(self, a: Array) -> Array:
        """g(a)."""
        if self is Loss.HINGE:
            return a
        if self is Loss.SQUARED_HINGE:
            return a - 0.25 * a * a
        q = np.minimum(a, 1.0 - a)
        s = np.where(q > 0, q, 0.5)
        return np.where(q > 0, -s * np.log(s) - (1.0 - s) * np.log1p(-s), 0.0)


@dataclass(frozen=True)
class SmoothHinge:
    """The hinge with a parabola in place of its corner: with s = 1 - z, s²/2ε up to s = ε, and s - ε/2 beyond."""

    epsilon: float
    several = False

    def cost(self, z: Any) -> Any:
        """ℓ(z)."""
        s = (1.0 - z).clip(min=0.0)
        near = s.clip(max=self.epsilon)
        return near * near / (2 * self.epsilon) + (s - near)

    def weight(self, z: Any) -> Any:
        """a(z) = -ℓ'(z)."""
        return ((1.0 - z) / self.epsilon).clip(min=0.0, max=1.0)

    def curvature(self, z: Any, a: Any) -> Any:
        """ℓ''(z), given a(z)."""
        return ((a > 0) & (a < 1)) * (1 / self.epsilon)


# ---- several classes ------------------------------------------------------------------------------------------------


def softmax(S: Array) -> Array:
    """e^{s_c}/Σ e^s for each row."""
    xp = namespace(S)
    Q: Array = xp.exp(S - xp.amax(S, 1)[:, None])
    Q /= Q.sum(1)[:, None]
    return Q


def balancing(S: Array, which: Array, c: Array) -> Array:
    """b with Σ c softmax(s + b) = Σ c e_y, nearly, and a sum of 0: by Newton's method, as far as rounding lets it."""
    b, mass = np.zeros(S.shape[1]), np.bincount(which, weights=c, minlength=S.shape[1])
    best, least = b, math.inf
    for _ in range(30):
        Q = softmax(S + b)
        weighted = c[:, None] * Q
        own = weighted[np.arange(len(S)), which]
        # as C less its own weight, which does not lose the digits of a small difference
        weighted[np.arange(len(S)), which] = 0.0
        others = weighted.sum(axis=1)
        weighted[np.arange(len(S)), which] = -others
        g = weighted.sum(axis=0)
        size = float(np.max(np.abs(g)))
        if not size < least:
            break
        best, least = b, size
        if size <= 1e-15 * float(np.min(mass)):
            break
        full = weighted
        full[np.arange(len(S)), which] = own
        H = np.diag(full.sum(axis=0)) - full.T @ Q
        s = balancing_step(g, H)
        if not np.isfinite(s).all():
            break
        b = b + s
    return np.asarray(best - np.mean(best))


def balancing_step(g: Array, H: Array) -> Array:
    """A step of it, where masses are off by g, and H are their slopes; NaN where there is none. It changes no entry by more
    than 1, so that it cannot go far astray."""
    try:
        s = -np.linalg.solve(H + np.max(np.diagonal(H)) / len(H), g)
    except np.linalg.LinAlgError:
        return np.full_like(g, math.nan)
    return np.asarray(s * min(1.0, 1.0 / max(float(np.max(np.abs(s))), 1e-300)))
