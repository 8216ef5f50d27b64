"""The regularizers, each with its mirror map: argmin over a set of R(z) - ⟨θ, z⟩, and the gradient of R there.

With the mirror map, every learner's argmin is one call. For a loss ⟨c, z⟩ and a reference z_0,

    argmin_z  η⟨c, z⟩ + D_R(z, z_0)  =  mirror(set, ∇R(z_0) - η c).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from gordan.arrays import Array, dot, namespace
from gordan.errors import InputError
from gordan.geometry.sets import Ball, Domain, Simplex, dual_exponent, dual_vector, norm


class Regularizer(Protocol):
    """The interface of a convex function R that learners use as a regularizer."""

    def value(self, z: Array) -> float:
        """Return R(z)."""
        ...

    def gradient(self, z: Array) -> Array:
        """Return ∇R(z)."""
        ...

    def divergence(self, z: Array, y: Array) -> float:
        """Return D_R(z, y) = R(z) - R(y) - ⟨∇R(y), z - y⟩."""
        ...

    def mirror(self, domain: Domain, theta: Array) -> tuple[Array, Array]:
        """Return argmin_{z in domain} R(z) - ⟨θ, z⟩, and ∇R there."""
        ...


@dataclass(frozen=True)
class Entropy:
    """The negative entropy E(p) = Σ p_i log p_i, 1-strongly convex in ‖·‖₁ on any simplex of mass 1."""

    def value(self, z: Array) -> float:
        return float(np.sum(_times_log(z, z)))

    def gradient(self, z: Array) -> Array:
        with np.errstate(divide="ignore"):
            gradient: Array = 1.0 + namespace(z).log(z)
        return gradient

    def divergence(self, z: Array, y: Array) -> float:
        return float(np.sum(_times_log(z, z) - _times_log(z, y) - z + y))

    def mirror(self, domain: Domain, theta: Array) -> tuple[Array, Array]:
        """Return p_i ∝ e^{θ_i}, at most its cap, and the gradient, from the logarithm of p so that it survives underflow."""
        if not isinstance(domain, Simplex):
            raise InputError("the entropy needs a simplex; use SquaredNorm for w")
        log_p = domain.log_softmax(theta)
        return namespace(log_p).exp(log_p), 1.0 + log_p


@dataclass(frozen=True)
class SquaredNorm:
    """The squared norm R(w) = scale · ½‖w‖_q²; with scale = 1/(q-1) it is 1-strongly convex in ‖·‖_q for 1 < q ≤ 2."""

    q: float = 2.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not (self.q >= 1 and self.scale > 0):
            raise InputError(f"a squared norm needs q >= 1 and a positive scale; got q = {self.q}, scale = {self.scale}")

    def value(self, z: Array) -> float:
        return self.scale * 0.5 * norm(z, self.q) ** 2

    def gradient(self, z: Array) -> Array:
        return self.scale * dual_vector(z, self.q)

    def divergence(self, z: Array, y: Array) -> float:
        return self.value(z) - self.value(y) - dot(self.gradient(y), z - y)

    def has_form_of(self, other: object) -> bool:
        """Return whether `plus` can add the other."""
        return type(other) is SquaredNorm and other.q == self.q

    def plus(self, weight: float, other: Any) -> SquaredNorm:
        """Return this plus `weight` times the other."""
        return replace(self, scale=self.scale + weight * other.scale)

    def mirror(self, domain: Domain, theta: Array) -> tuple[Array, Array]:
        """Return ∇½‖·‖_p² at θ/scale, scaled back into the q-ball; for q = 2 on a simplex or another ball, the nearest point."""
        target = theta if self.scale == 1 else theta / self.scale
        if isinstance(domain, Ball) and (domain.q == self.q or domain.radius == np.inf):
            z = domain.clip(dual_vector(target, dual_exponent(self.q)))
        elif self.q == 2 and (isinstance(domain, Simplex) or domain.q > 2):
            z = domain.project(target)
        else:
            raise InputError(f"no argmin of ½‖·‖_{self.q:g}² over {domain!r}; use a ball of the same q, or q = 2")
        return z, self.gradient(z)


@dataclass(frozen=True)
class NoisySquare(SquaredNorm):
    """The squared norm with noise, R(w) = ½‖w‖² + max_δ δ·w, where δ is a perturbation of a row that lowers its margin."""

    noise: Ball | None = None

    def value(self, z: Array) -> float:
        assert self.noise is not None
        return super().value(z) + self.noise.radius * norm(z, dual_exponent(self.noise.q))

    def mirror(self, domain: Domain, theta: Array) -> tuple[Array, Array]:
        """Return θ minus the nearest point of the noise; for R^d only."""
        assert self.noise is not None
        if domain != Ball(len(theta)):
            raise InputError(f"no argmin of a norm with noise over {domain!r}; use R^d")
        return theta - self.noise.project(theta), theta


def _times_log(z: Array, y: Array) -> Array:
    """Return z log y, with 0 log 0 = 0 and -∞ if y = 0 < z."""
    with np.errstate(divide="ignore"):
        return np.asarray(z * np.log(y, out=np.zeros_like(y), where=z > 0))
