"""The online learners: `Leader` covers FTL, FTRL, OFTL, OFTRL and FTRL⁺, and `Mirror` is optimistic mirror descent.

Two more go beyond the paper: `BestResponse` remembers no loss, and `Reflected` is the projection step of Chambolle and Pock.

A learner is three functions over a frozen state: `start`, `play`, `update`. Losses are α_t f_t with f_t(z) = ⟨c_t, z⟩ + ψ(z),
where ψ is the curvature that the game gives this player (½‖w‖_q² for w in the regularized game, what p pays for a loss, else
nothing), so a loss is determined by its vector c_t. What a learner guesses about the coming loss is its *hint*:

    none      nothing (FTL, FTRL)
    last      the loss of the last round (OFTL, OFTRL)
    current   the loss itself: the learner moves second and has seen it (FTRL⁺)
    anchor    the loss that the opponent's anchor (the hat point of mirror descent) would cause (mirror-prox)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np

from gordan.arrays import Array, choose, namespace
from gordan.checkpoint import checkpointed
from gordan.errors import InputError
from gordan.geometry import Domain, LossCost, Regularizer, Simplex, SquaredNorm

Hint = Literal["none", "last", "current", "anchor"]


class Learner(Protocol):
    """The interface of a player of Protocol 1."""

    @property
    def hint(self) -> Hint:
        """What the player guesses about the coming loss."""
        ...

    def start(self) -> Any:
        """Return the state before the first round."""
        ...

    def play(self, state: Any, alpha: float, guess: Array | None) -> Array:
        """Return z_t, given the weight α_t and the guessed loss."""
        ...

    def update(self, state: Any, alpha: float, loss: Array, z: Array) -> Any:
        """Return the state after the loss α_t⟨loss, ·⟩ (plus curvature) was seen at z_t."""
        ...


@checkpointed("learner.losses")
class Losses(NamedTuple):
    """The state of a leader: Σ α_j c_j and Σ α_j."""

    total: Array
    weight: float


def _check_options(eta: float, hint: str) -> None:
    if not 0 < eta < math.inf:
        raise InputError(f"eta is {eta}; a step size must be positive and finite")
    choose("hint", hint, get_args(Hint))


@dataclass(frozen=True, eq=False)
class Leader:
    """The leader z_t = argmin_Z η[Σ_{j<t} α_j f_j + α_t ψ_t] + D_R(·, z_0); without R, the argmin of the sum alone.

    Parameters
    ----------
    domain
        Z.
    reference
        z_0, which is also played while there is nothing to minimize.
    regularizer
        R, or None (FTL, OFTL).
    eta
        η; the same η multiplies the guess (the paper's Algorithm 4 prints it for the sum alone).
    hint
        see the module.
    curvature
        the strongly convex part that every loss has in common, or None.

    Implements: Protocol 2, Lemma 1, Lemma 2, Lemma 3
    """

    domain: Domain
    reference: Array
    regularizer: Regularizer | None = None
    eta: float = 1.0
    hint: Hint = "none"
    curvature: SquaredNorm | LossCost | None = None

    def __post_init__(self) -> None:
        _check_options(self.eta, self.hint)

    @cached_property
    def _gradient0(self) -> Array:
        """∇R(z_0), if there is an R."""
        assert self.regularizer is not None
        return self.regularizer.gradient(self.reference)

    def start(self) -> Losses:
        """Return the state without any losses."""
        return Losses(namespace(self.reference).zeros_like(self.reference), 0.0)

    def play(self, state: Losses, alpha: float, guess: Array | None) -> Array:
        """Return z_t."""
        if guess is None:
            return self._argmin(state.total, state.weight)
        return self._argmin(state.total + alpha * guess, state.weight + alpha)

    def update(self, state: Losses, alpha: float, loss: Array, z: Array) -> Losses:
        """Return the state with one more loss."""
        return Losses(state.total + alpha * loss, state.weight + alpha)

    def _argmin(self, total: Array, weight: float) -> Array:
        """Return the argmin of ⟨total, z⟩ + weight·ψ(z), regularized by D_R(z, z_0)/η."""
        R, psi = self.regularizer, self.curvature
        if R is None:
            if weight == 0:
                return self.reference
            return self.domain.vertex(total) if psi is None else psi.mirror(self.domain, -total / weight)[0]
        theta = self._gradient0 - self.eta * total
        if psi is not None:
            if not (isinstance(R, SquaredNorm | LossCost) and R.has_form_of(psi)):
                raise InputError(f"no argmin of {R} plus {psi}: the regularizer must be a squared norm of the same q")
            R = R.plus(self.eta * weight, psi)
        return R.mirror(self.domain, theta)[0]


@checkpointed("learner.anchor")
class Anchor(NamedTuple):
    """The hat point of mirror descent and the gradient of R there."""

    point: Array
    gradient: Array


@dataclass(frozen=True, eq=False)
class Mirror:
    """Optimistic mirror descent (OMD).

    z_t = argmin_Z η⟨α_t∇ψ_t, ·⟩ + D_R(·, ẑ_{t-1}), then ẑ_t = argmin_Z η⟨α_t∇f_t(z_t), ·⟩ + D_R(·, ẑ_{t-1}). Parameters are those
    of `Leader`; without a hint, z_t = ẑ_{t-1} is plain mirror descent. The gradient for ẑ_t is taken at z_t (the paper prints the
    previous point, which is the same for linear losses).

    Implements: Protocol 2, Lemma 4
    """

    domain: Domain
    reference: Array
    regularizer: Regularizer
    eta: float = 1.0
    hint: Hint = "none"
    curvature: SquaredNorm | None = None

    def __post_init__(self) -> None:
        _check_options(self.eta, self.hint)

    def start(self) -> Anchor:
        """Return ẑ_0 = z_0."""
        return Anchor(self.reference, self.regularizer.gradient(self.reference))

    def play(self, state: Anchor, alpha: float, guess: Array | None) -> Array:
        """Return z_t."""
        return state.point if guess is None else self._step(state, alpha, guess, state.point).point

    def update(self, state: Anchor, alpha: float, loss: Array, z: Array) -> Anchor:
        """Return ẑ_t."""
        return self._step(state, alpha, loss, z)

    def _step(self, state: Anchor, alpha: float, loss: Array, at: Array) -> Anchor:
        gradient = loss if self.curvature is None else loss + self.curvature.gradient(at)
        return Anchor(*self.regularizer.mirror(self.domain, state.gradient - (self.eta * alpha) * gradient))


@dataclass(frozen=True, eq=False)
class BestResponse:
    """The best response to the current loss alone, z_t = argmin_Z f_t.

    With a regularizer R it is argmin_Z ηS_{t-1} f_t + D_R(·, z_0), where S is the total weight. It moves second. Without R, its
    regret is at most 0. With R, it is the p-player of mirror descent, which plays z_0 in round 1, and tends to the best response
    as η → ∞. Parameters are those of `Leader`; R takes the place of the curvature.
    """

    domain: Domain
    reference: Array
    regularizer: Regularizer | None = None
    eta: float = 1.0
    curvature: SquaredNorm | None = None
    hint: Hint = "current"

    def __post_init__(self) -> None:
        _check_options(self.eta, self.hint)

    def start(self) -> float:
        """Return S_0 = 0."""
        return 0.0

    def play(self, state: float, alpha: float, guess: Array | None) -> Array:
        """Return z_t."""
        assert guess is not None, "a best response moves second"
        if self.regularizer is not None:
            theta = self.regularizer.gradient(self.reference) - (self.eta * state) * guess
            return self.regularizer.mirror(self.domain, theta)[0]
        return self.domain.vertex(guess) if self.curvature is None else self.curvature.mirror(self.domain, -guess)[0]

    def update(self, state: float, alpha: float, loss: Array, z: Array) -> float:
        """Return S_t."""
        return state + alpha


@checkpointed("learner.reflection")
class Reflection(NamedTuple):
    """The state of `Reflected`: z_{t-1} (None before the first round), and the vectors of the last two losses."""

    point: Array | None
    last: Array
    before: Array


@dataclass(frozen=True, eq=False)
class Reflected:
    """The reflected gradient step of PDHG, which moves first.

    z_t = Π(z_{t-1} - η(2c_{t-1} - c_{t-2})) with Π the nearest point of Z, z_1 = z_0 and c_0 = 0: a step along twice the last
    loss minus the one before.
    """

    domain: Simplex
    reference: Array
    eta: float = 1.0
    hint: Hint = "none"

    def __post_init__(self) -> None:
        _check_options(self.eta, self.hint)

    def start(self) -> Reflection:
        """Return the state without any losses."""
        zero = np.zeros_like(self.reference)
        return Reflection(None, zero, zero)

    def play(self, state: Reflection, alpha: float, guess: Array | None) -> Array:
        """Return z_t."""
        if state.point is None:
            return self.reference
        return self.domain.project(state.point - (self.eta * alpha) * (2 * state.last - state.before))

    def update(self, state: Reflection, alpha: float, loss: Array, z: Array) -> Reflection:
        """Return the state with one more loss."""
        return Reflection(z, loss, state.last)
