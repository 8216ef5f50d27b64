"""Gradient descent on the exponential loss, plain and normalized: the baselines of implicit bias."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gordan.arrays import Array
from gordan.dynamics import Form, Output, Round
from gordan.game import Game
from gordan.geometry import Simplex
from gordan.methods.registry import Guarantee, Method, choose, register, require_plain
from gordan.rows import Rows


@register(
    "gradient_descent",
    reference="D. Soudry et al., The implicit bias of gradient descent on separable data, JMLR 19 (2018)",
    forms=("published",),
)
def gradient_descent(*, form: str = "published") -> Method:
    """Gradient descent on the exponential loss R(v), the mean of e^{-A_i·v}, with step 1.

        v_t = v_{t-1} - ∇R(v_{t-1}) = v_{t-1} + R(v_{t-1}) Aᵀsoftmax(-Av_{t-1}),   v_0 = 0.

    Its margin approaches γ at rate 1/log t.
    """
    choose("form", form, ("published",))

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        require_plain("gradient_descent", p_set)
        return _Descent(Game(rows, p_set, p0), _risk)

    guarantee = Guarantee("margin >= gamma - O(1/log t)")
    return Method("gradient_descent", form, 2.0, build, guarantee, 1)


def _risk(t: int, log_risk: float | None) -> float:
    """The step that makes normalized gradient descent the plain one."""
    assert log_risk is not None
    return math.exp(log_risk)


@register(
    "normalized_gradient_descent",
    reference="M. S. Nacson et al., AISTATS 2019 (step 1/sqrt(t)); Z. Ji and M. Telgarsky, ALT 2021 (constant step)",
    forms=("published",),
)
def normalized_gradient_descent(*, form: str = "published", step: str = "constant") -> Method:
    """Gradient descent on log R: v_t = v_{t-1} + η_t Aᵀsoftmax(-Av_{t-1}), with η_t = 1 or 1/√t.

    Guarantee: normalized margin ≥ γ - (D + ½Ση_t²)/(γΣη_t): γ - (D + ½Σ1/t)/(γΣ1/√t) for step "1/sqrt(t)"; at the constant
    step 1 the smoothness of log R does better, γ - (D + ½)/(γT).
    """
    choose("form", form, ("published",))
    choose("step", step, ("constant", "1/sqrt(t)"))
    constant = step == "constant"

    def eta(t: int) -> float:
        return 1.0 if constant else 1 / math.sqrt(t)

    def margin(t: int, D: float, gamma: float) -> float:
        if constant:
            return gamma - (D + 0.5) / (gamma * t)
        steps = 1 / np.sqrt(np.arange(1, t + 1))
        return float(gamma - (D + 0.5 * np.sum(steps**2)) / (gamma * np.sum(steps)))

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        return _Descent(Game(rows, p_set, p0), lambda t, log_risk: eta(t))

    statement = "margin >= gamma - " + ("(D + 1/2)/(gamma T)" if constant else "(D + log(T)/2 + 1/2)/(2 gamma (sqrt(T+1) - 1))")
    return Method("normalized_gradient_descent", form, 2.0, build, Guarantee(statement, margin=margin), 1)


@dataclass(frozen=True, eq=False)
class _Descent:
    """v += step(t, log R) · Aᵀsoftmax(-Av). The pass is at v_{t-1}, so the margin of v_t is measured at recorded rounds."""

    game: Game
    step: Callable[[int, float | None], float]

    def start(self) -> Array:
        return np.zeros(self.game.rows.d)

    def round(self, state: Array, t: int) -> tuple[Array, Round]:
        response = self.game.respond(state)
        step = self.step(t, response.log_risk)
        v = state + step * response.combination
        return v, Round(step, None, response.p, response.combination, output=Output(v, None, None))
