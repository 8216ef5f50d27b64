"""The mirror-prox Perceptron."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.checkpoint import checkpointed
from gordan.dynamics import Form, Output, Protocol1, Round, unit_weight
from gordan.game import Game
from gordan.geometry import Entropy, Simplex, SquaredNorm
from gordan.learners import Mirror
from gordan.methods.registry import Guarantee, Method, Regrets, choose, once_positive, register
from gordan.rows import Rows


@register(
    "mirror_prox_perceptron",
    reference="A. W. Yu, F. Kılınç-Karzan and J. Carbonell, Saddle points and accelerated Perceptron algorithms, ICML 2014",
    forms=("published", "game"),
)
def mirror_prox_perceptron(*, form: str = "published") -> Method:
    """Play the bilinear game on the unit ball by mirror-prox (MPFP), which separates or certifies that the margin is small.

    Published: F(w, p) = [-Aᵀp; Aw], u_t = Prox_{v_t}(γ_t F(v_t)), v_{t+1} = Prox_{v_t}(γ_t F(u_t)), output the
    average of u_t, for R = α_w ½‖w‖² + α_p E(p) with Ω_w = ½, Ω_p = D, γ_t = 1/(√Ω_p+√Ω_w), α_w = √Ω_p γ_t, α_p = γ_t/√Ω_p.

    Game: g = pᵀAw, ‖w‖ ≤ 1, α_t = 1; both players optimistic mirror descent with η_w = 1/√D, η_p = √D, each guessing the loss at
    the other's anchor. Then u_t = (w_t, p_t) and v_{t+1} = (ŵ_t, p̂_t).

    Guarantee: ‖Aᵀp̄_T‖ - γ(w̄_T) ≤ 1.5√D/T: a positive margin for T > 1.5√D/γ, and where γ* = 0 an ε-certificate
    ‖Aᵀp̄_T‖ ≤ ε for T ≥ 1.5√D/ε.

    >>> import gordan, numpy as np
    >>> A = np.array([[1.0, 1.0], [-2.0, 1.0], [1.0, -3.0]])  # no plane through 0 separates these rows
    >>> trace = gordan.play(A, mirror_prox_perceptron(), 200)
    >>> bool(np.linalg.norm(trace.p_bar @ A) / trace.scale <= trace.bound[-1])  # the ε-certificate
    True

    Implements: Algorithm 5, Theorem 6, Proposition 3, Lemma 6, Theorem 7
    """
    choose("form", form, ("published", "game"))

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        game = Game(rows, p_set, p0, curvature=0.0, radius=1.0)
        if form == "published":
            return _MirrorProx(game)
        root = math.sqrt(game.D)
        return Protocol1(
            game,
            w=Mirror(game.w_set, np.zeros(rows.d), SquaredNorm(), 1 / root, hint="anchor"),
            p=Mirror(p_set, p0, Entropy(), root, hint="anchor"),
            first="w",
            weight=unit_weight,
        )

    guarantee = Guarantee(
        "gap <= 1.5 sqrt(D)/T",
        gap=lambda t, D: 1.5 * math.sqrt(D) / t,
        margin=lambda t, D, gamma: once_positive(gamma - 1.5 * math.sqrt(D) / t),
        rounds=lambda D, gamma: 1.5 * math.sqrt(D) / gamma,
        regrets=lambda D, moves: Regrets(both=1.5 * math.sqrt(D)),
    )
    return Method("mirror_prox_perceptron", form, 2.0, build, guarantee, 1 if form == "published" else 4, resident=True)


@checkpointed("mirror_prox_perceptron.state")
class _State(NamedTuple):
    """The state: v_t = (ŵ, p̂) with p̂ by its logarithm, Aᵀp̂, and Σ of the w-parts of u_t."""

    w: Array
    log_p: Array
    combination: Array
    total: Array


@dataclass(frozen=True, eq=False)
class _MirrorProx:
    """Published form: the prox map in its two blocks.

    Both moves of p answer a w that is known before the round, from the same anchor, so they share a fused pass.
    """

    game: Game

    @cached_property
    def _constants(self) -> tuple[float, float, float]:
        """γ_t, α_w and α_p."""
        root_p, root_w = math.sqrt(self.game.D), math.sqrt(0.5)
        gamma = 1 / (root_p + root_w)
        return gamma, root_p * gamma, gamma / root_p

    def start(self) -> _State:
        zero = np.zeros(self.game.rows.d)
        return _State(zero, self.game.log_p0, self.game.rows.combine(self.game.p0), zero)

    def round(self, state: _State, t: int) -> tuple[_State, Round]:
        gamma, alpha_w, alpha_p = self._constants
        clip = self.game.w_set.clip
        # u_t = (w, p) = Prox_{v_t}(γ F(v_t)) and v_{t+1} = (w_hat, p_hat) = Prox_{v_t}(γ F(u_t))
        w = clip(state.w + (gamma / alpha_w) * state.combination)
        p, p_hat = self.game.responses((gamma / alpha_p) * np.array((state.w, w)), state.log_p)
        w_hat = clip(state.w + (gamma / alpha_w) * p.combination)
        total = state.total + w
        played = Round(1.0, w, p.p, p.combination, scores=p_hat.scores * (alpha_p / gamma), output=Output(total / t, None, 1.0))
        return _State(w_hat, p_hat.log_p, p_hat.combination, total), played
