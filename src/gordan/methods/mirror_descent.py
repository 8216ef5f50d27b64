"""Mirror descent on the exponential loss, for p-norm margins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array, positive
from gordan.checkpoint import checkpointed
from gordan.dynamics import Form, Output, Protocol1, Round, unit_weight
from gordan.game import Game
from gordan.geometry import Entropy, Simplex, dual_vector
from gordan.learners import BestResponse, Leader
from gordan.methods.registry import Guarantee, Method, check_norm, choose, register, root_margin
from gordan.rows import Rows


@register(
    "mirror_descent",
    reference="G. Wang, Z. Hu, V. Muthukumar and J. Abernethy, Faster margin maximization rates, 2023; the game form is gordan's",
    forms=("published", "game"),
)
def mirror_descent(*, form: str = "published", p: float = 3.0, weights: str = "linear", eta: float = 0.25) -> Method:
    """Run mirror descent on log R with the mirror map ½‖·‖_q² and average, for the largest p-norm margin, 2 ≤ p < ∞.

    Published, θ_0 = 0, α_t = 1 (`weights="constant"`) or t ("linear"):

        v_t = ∇½‖·‖_p²(ηθ_{t-1}),   θ_t = θ_{t-1} + α_t Aᵀsoftmax(-Av_t),   output the average of w_t = v_t/(ηS_{t-1}), w_1 = 0,

    with the weights α_t, S_t = α_1 + … + α_t.

    Game: g = pᵀAw - ½‖w‖_q²; w first with FTL, that is w_t = ∇½‖·‖_p²(θ_{t-1}/S_{t-1}); p answers w_t alone, with
    argmin ηS_{t-1} pᵀAw_t + D_E(p, p_0). As η → ∞ this is Frank–Wolfe.

    Guarantee, for rows with ‖A_i‖_p ≤ 1: gap ≤ (1 + ln T)(2(p-1) + D/η)/T constant,
    8(p-1)/(T+1) + 4D(1 + ln T)/(ηT(T+1)) linear.

    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], mirror_descent(p=3.0), 200)
    >>> bool((trace.dual - trace.m <= trace.bound).all())  # the guarantee, at every recorded round
    True
    """
    choose("form", form, ("published", "game"))
    choose("weights", weights, ("constant", "linear"))
    p, eta = check_norm(p), positive(eta, "eta")
    linear = weights == "linear"

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        game = Game(rows, p_set, p0, norm=p)
        if form == "published":
            return _MirrorDescent(game, eta, linear)
        return Protocol1(
            game,
            w=Leader(game.w_set, np.zeros(rows.d), curvature=game.w_curvature),
            p=BestResponse(p_set, p0, Entropy(), eta),
            first="w",
            weight=float if linear else unit_weight,
        )

    def gap(t: int, D: float) -> float:
        if linear:
            return 8 * (p - 1) / (t + 1) + 4 * D * (1 + math.log(t)) / (eta * t * (t + 1))
        return (1 + math.log(t)) * (2 * (p - 1) + D / eta) / t

    promised = "8(p-1)/(T+1) + 4 D(1 + log T)/(eta T(T+1))" if linear else "(1 + log T)(2(p-1) + D/eta)/T"
    guarantee = Guarantee(f"gap <= {promised}", gap=gap, margin=root_margin(gap))
    return Method("mirror_descent", form, p, build, guarantee, 1 if form == "published" else 2, resident=True)


@checkpointed("mirror_descent.state")
class _State(NamedTuple):
    """The state: θ_t, S_t, Σα_t w_t."""

    theta: Array
    weight: float
    total: Array


@dataclass(frozen=True, eq=False)
class _MirrorDescent:
    """Published form. The pass is at v_t, a multiple of w_t, so it also gives the margin of the average."""

    game: Game
    eta: float
    linear: bool

    def start(self) -> _State:
        zero = np.zeros(self.game.rows.d)
        return _State(zero, 0.0, zero)

    def round(self, state: _State, t: int) -> tuple[_State, Round]:
        alpha, scale = float(t) if self.linear else 1.0, self.eta * state.weight
        v = dual_vector(self.eta * state.theta, self.game.norm)
        response = self.game.respond(v)
        w, scores = (v / scale, response.scores / scale) if scale else (v, response.scores)  # both 0 in round 1
        after = _State(state.theta + alpha * response.combination, state.weight + alpha, state.total + alpha * w)
        output = Output(after.total / after.weight, None, 1.0)
        return after, Round(alpha, w, response.p, response.combination, scores=scores, output=output)
