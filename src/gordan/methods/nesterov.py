"""Nesterov's accelerated gradient on the exponential loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.dynamics import Form, Output, Protocol1, Round
from gordan.game import Game
from gordan.geometry import Entropy, Simplex
from gordan.learners import Leader
from gordan.methods.registry import Guarantee, Method, choose, register
from gordan.rows import Rows


@register(
    "nesterov",
    reference="G. Wang, R. Hanashiro, E. Guha and J. Abernethy, On accelerated Perceptrons and beyond, ICLR 2023 (NAG)",
    forms=("published", "game"),
)
def nesterov(*, form: str = "published") -> Method:
    """Nesterov's accelerated gradient with normalized steps: its implicit bias is the maximum margin, at rate 1/t².

    Published: v_0 = s_0 = 0, u_1 = 0, R(u) the mean of e^{-A_i·u}:

        u_t = s_{t-1} + v_{t-1}/(2(t-1)),   v_t = v_{t-1} - (t/R(u_t))∇R(u_t),   s_t = s_{t-1} + v_t/(2(t+1)),

    computed as v_t = v_{t-1} + tAᵀsoftmax(-Au_t), since R underflows after some hundreds of rounds.

    Game: that of `smooth_perceptron`, but p moves first: OFTRL[E, p_0, 1/4] with hint last, then w with FTRL⁺ and no
    regularizer. s_T = ¼Σα_t w_t.

    Guarantee: normalized margin of s_T ≥ γ - (8D + 2)/(γT(T+1)).

    Implements: Algorithm 3, Theorem 4
    """
    choose("form", form, ("published", "game"))

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        game = Game(rows, p_set, p0)
        if form == "published":
            return _Nesterov(game)
        return Protocol1(
            game,
            w=Leader(game.w_set, np.zeros(rows.d), hint="current", curvature=game.w_curvature),
            p=Leader(p_set, p0, Entropy(), 0.25, hint="last"),
            first="p",
            weight=float,
        )

    guarantee = Guarantee(
        "gap <= (8 D + 2)/(T(T+1)), margin >= gamma - (8 D + 2)/(gamma T(T+1))",
        gap=lambda t, D: (8 * D + 2) / (t * (t + 1)),
        margin=lambda t, D, gamma: gamma - (8 * D + 2) / (gamma * t * (t + 1)),
        rounds=lambda D, gamma: math.sqrt(8 * D + 2) / gamma,
    )
    return Method("nesterov", form, 2.0, build, guarantee, 1 if form == "published" else 2)


class _State(NamedTuple):
    """v_t and s_t."""

    v: Array
    s: Array


@dataclass(frozen=True, eq=False)
class _Nesterov:
    """Published form. The pass is at u_t, so the margin of s_t is measured only at recorded rounds."""

    game: Game

    def start(self) -> _State:
        zero = np.zeros(self.game.rows.d)
        return _State(zero, zero)

    def round(self, state: _State, t: int) -> tuple[_State, Round]:
        u = state.s + state.v / (2 * (t - 1)) if t > 1 else state.s
        response = self.game.respond(u)
        v = state.v + t * response.combination
        s = state.s + v / (2 * (t + 1))
        weight = t * (t + 1) / 2
        played = Round(float(t), v / weight, response.p, response.combination, output=Output(s, None, weight / 4))
        return _State(v, s), played
