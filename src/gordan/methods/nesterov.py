"""Nesterov's accelerated gradient on the exponential loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.checkpoint import checkpointed
from gordan.dynamics import Form, Output, Protocol1, Round
from gordan.game import Game
from gordan.geometry import Entropy, Simplex, dual_exponent, dual_vector
from gordan.learners import Leader
from gordan.methods.registry import Guarantee, Method, Regrets, check_norm, choose, register, root_margin
from gordan.rows import Rows


@register(
    "nesterov",
    reference="G. Wang, R. Hanashiro, E. Guha and J. Abernethy, On accelerated Perceptrons and beyond, ICLR 2023 (NAG)",
    forms=("published", "game"),
)
def nesterov(*, form: str = "published", p: float = 2.0) -> Method:
    """Run Nesterov's accelerated gradient with normalized steps, whose implicit bias is the maximum margin, at rate 1/t².

    Published: v_0 = s_0 = 0, u_1 = 0, R(u) the mean of e^{-A_i·u}:

        u_t = s_{t-1} + v_{t-1}/(2(t-1)),   v_t = v_{t-1} - (t/R(u_t))∇R(u_t),   s_t = s_{t-1} + v_t/(2(t+1)),

    computed as v_t = v_{t-1} + tAᵀsoftmax(-Au_t), since R underflows after some hundreds of rounds. For p-norm margins, which is
    beyond the paper, w_t = ∇½‖·‖_p²(2v_t/(t(t+1))), u_t = s_{t-1} + ηt w_{t-1}, s_t = s_{t-1} + ηt w_t, η = (q-1)/4: the same for
    p = 2.

    Game: that of `smooth_perceptron` (p ≠ 2: of `smooth_p_norm_perceptron`), but p moves first: OFTRL[E, p_0, (q-1)/4] with hint
    last, then w with FTRL⁺ and no regularizer. s_T = ηΣα_t w_t.

    Guarantee: gap ≤ (8(p-1)D + (q-1)/4)/(T(T+1)) for rows with ‖A_i‖_p ≤ 1; for p = 2 normalized margin of s_T ≥ γ - gap/γ.

    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], nesterov(), 200)
    >>> bool((trace.dual - trace.m <= trace.bound).all())  # the guarantee, at every recorded round
    True

    Implements: Algorithm 3, Theorem 4
    """
    choose("form", form, ("published", "game"))
    p = check_norm(p)
    eta = (dual_exponent(p) - 1) / 4

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        game = Game(rows, p_set, p0, norm=p)
        if form == "published":
            return _Nesterov(game, eta)
        return Protocol1(
            game,
            w=Leader(game.w_set, np.zeros(rows.d), hint="current", curvature=game.w_curvature),
            p=Leader(p_set, p0, Entropy(), eta, hint="last"),
            first="p",
            weight=float,
        )

    def gap(t: int, D: float) -> float:
        return (8 * (p - 1) * D + eta) / (t * (t + 1))

    constants = f"({8 * (p - 1):g} D + {eta:.4g})"
    guarantee = Guarantee(
        f"gap <= {constants}/(T(T+1))" + (f", margin >= gamma - {constants}/(gamma T(T+1))" if p == 2 else ""),
        gap=gap,
        margin=(lambda t, D, gamma: gamma - gap(t, D) / gamma) if p == 2 else root_margin(gap),
        rounds=lambda D, gamma: math.sqrt((1 if p == 2 else 2) * (8 * (p - 1) * D + eta)) / gamma,
        regrets=lambda D, moves: Regrets(w=-moves.w, p=4 * D + moves.scores) if p == 2 else Regrets(w=0.0),
    )
    return Method("nesterov", form, p, build, guarantee, 1 if form == "published" else 2, resident=True)


@checkpointed("nesterov.state")
class _State(NamedTuple):
    """The state: v_t, w_t and s_t."""

    v: Array
    w: Array
    s: Array


@dataclass(frozen=True, eq=False)
class _Nesterov:
    """Published form. The pass is at u_t, so the margin of s_t is measured only at recorded rounds."""

    game: Game
    eta: float

    def start(self) -> _State:
        zero = np.zeros(self.game.rows.d)
        return _State(zero, zero, zero)

    def round(self, state: _State, t: int) -> tuple[_State, Round]:
        response = self.game.respond(state.s + (self.eta * t) * state.w)
        v = state.v + t * response.combination
        weight = t * (t + 1) / 2
        w = dual_vector(v / weight, self.game.norm)
        s = state.s + (self.eta * t) * w
        played = Round(float(t), w, response.p, response.combination, output=Output(s, None, self.eta * weight))
        return _State(v, w, s), played
