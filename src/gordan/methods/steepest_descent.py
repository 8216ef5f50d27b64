"""Steepest descent on the exponential loss in any norm, which includes normalized gradient descent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.checkpoint import checkpointed
from gordan.dynamics import Form, Output, Protocol1, Round, unit_weight
from gordan.game import Game
from gordan.geometry import Entropy, Simplex, dual_exponent
from gordan.learners import BestResponse, Leader
from gordan.methods.registry import (
    MAX_NORM,
    Guarantee,
    Method,
    Moves,
    Regrets,
    check_norm,
    choose,
    once_positive,
    register,
    root_margin,
)
from gordan.rows import Rows


def inverse_root(t: int) -> float:
    """Return the step 1/√t."""
    return 1 / math.sqrt(t)


def regret_of_steps(t: int, D: float) -> float:
    """Return (D + ½Ση²)/Ση for the steps η = 1/√s up to round t."""
    steps = 1 / np.sqrt(np.arange(1, t + 1))
    return float((D + 0.5 * np.sum(steps**2)) / np.sum(steps))


@register(
    "steepest_descent",
    reference="G. Wang, Z. Hu, V. Muthukumar and J. Abernethy, Faster margin maximization rates, 2023; the game form is gordan's",
    forms=("published", "game"),
)
def steepest_descent(*, form: str = "published", p: float = 3.0, step: str | None = None) -> Method:
    """Run steepest descent on log R in the q-norm, whose implicit bias is the largest p-norm margin.

    Published, v_0 = 0 and p_t = softmax(-Av_{t-1}), R(v) the mean of e^{-A_i·v}:

        step "plain", 2 ≤ p < ∞:        v_t = v_{t-1} + (q-1) ∇½‖·‖_p²(Aᵀp_t)
        step "normalized", 1 ≤ p ≤ ∞:   v_t = v_{t-1} + η_t argmax_{‖s‖_q≤1} s·Aᵀp_t,   η_t = 1/√t.

    `step=None` is the first where there is one, else the second. Normalized, p = 1 is sign descent, p = ∞ moves one coordinate a
    round, as boosting does. Plain, p = 2 is `normalized_gradient_descent`.

    Game: p first with FTRL[E, p_0, η], w with the best response to the current loss alone. Plain: g = pᵀAw - ½‖w‖_q², α_t = 1,
    η = q-1, v_T = (q-1)Σw_t. Normalized: g = pᵀAw on ‖w‖_q ≤ 1, α_t = η_t, η = 1, v_T = Ση_t w_t.

    Guarantee, for rows with ‖A_i‖_p ≤ 1: gap ≤ ((p-1)D + ½)/T plain (false for p < 2), (D + ½Ση²)/Ση normalized.

    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], steepest_descent(p=3.0), 200)
    >>> bool((trace.dual - trace.m <= trace.bound).all())  # the guarantee, at every recorded round
    True
    """
    choose("form", form, ("published", "game"))
    choose("step", step, (None, "plain", "normalized"))
    p = check_norm(p) if step == "plain" else check_norm(p, 1.0, math.inf)
    plain = step == "plain" or (step is None and 2 <= p <= MAX_NORM)
    q = dual_exponent(p)
    eta, weight = (q - 1, unit_weight) if plain else (1.0, inverse_root)

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        game = Game(rows, p_set, p0, p) if plain else Game(rows, p_set, p0, p, curvature=0.0, radius=1.0)
        return descent(game, form, eta, weight)

    def gap(t: int, D: float) -> float:
        return ((p - 1) * D + 0.5) / t if plain else regret_of_steps(t, D)

    promised = "((p-1) D + 1/2)/T" if plain else "(D + log(T)/2 + 1/2)/(2 (sqrt(T+1) - 1))"
    margin = root_margin(gap) if plain else lambda t, D, gamma: once_positive(gamma - gap(t, D))
    guarantee = Guarantee(f"gap <= {promised}", gap=gap, margin=margin, regrets=best_response_of_w)
    return Method("steepest_descent", form, p, build, guarantee, 1 if form == "published" else 2, resident=True)


def best_response_of_w(D: float, moves: Moves) -> Regrets:
    """Return the regret bounds of a w that moves last with the best response, whose regret is at most 0."""
    return Regrets(w=0.0)


def descent(game: Game, form: str, eta: float, weight: Callable[[int], float]) -> Form:
    """Return the form of steepest descent for this game, v_T = ηΣα_t w_t."""
    best = BestResponse(game.w_set, np.zeros(game.rows.d), curvature=game.w_curvature)
    if form == "game":
        return Protocol1(game, w=best, p=Leader(game.p_set, game.p0, Entropy(), eta), first="p", weight=weight)
    return _SteepestDescent(game, best, eta, weight)


@checkpointed("steepest_descent.state")
class _State(NamedTuple):
    """The state: v_t and Σα."""

    v: Array
    weight: float


@dataclass(frozen=True, eq=False)
class _SteepestDescent:
    """Published form. The pass is at v_{t-1}, so the margin of v_t is measured at recorded rounds."""

    game: Game
    best: BestResponse
    eta: float
    weight: Callable[[int], float]

    def start(self) -> _State:
        return _State(np.zeros(self.game.rows.d), 0.0)

    def round(self, state: _State, t: int) -> tuple[_State, Round]:
        response = self.game.respond(state.v)
        alpha = self.weight(t)
        w = self.best.play(0.0, alpha, -response.combination)
        after = _State(state.v + (self.eta * alpha) * w, state.weight + alpha)
        output = Output(after.v, None, self.eta * after.weight)
        return after, Round(alpha, w, response.p, response.combination, output=output)
