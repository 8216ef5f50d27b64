"""Gradient descent on the exponential loss, plain and normalized: the baselines of implicit bias."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gordan.arrays import Array
from gordan.dynamics import Form, Output, Round, unit_weight
from gordan.game import Game
from gordan.geometry import Simplex
from gordan.methods.registry import Guarantee, Method, choose, register
from gordan.methods.steepest_descent import best_response_of_w, descent, inverse_root, regret_of_steps
from gordan.rows import Rows


@register(
    "gradient_descent",
    reference="D. Soudry et al., The implicit bias of gradient descent on separable data, JMLR 19 (2018)",
    forms=("published",),
)
def gradient_descent(*, form: str = "published") -> Method:
    """Run gradient descent on the exponential loss R(v), the mean of e^{-A_i·v}, with step 1.

        v_t = v_{t-1} - ∇R(v_{t-1}) = v_{t-1} + R(v_{t-1}) Aᵀsoftmax(-Av_{t-1}),   v_0 = 0.

    Guarantee, for rows that can be separated: normalized margin ≥ γ - O(1/log t), with a constant that depends on the rows.

    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], gradient_descent(), 1000, record=[10, 100, 1000])
    >>> print(trace.normalized_margin.round(2))  # slowly towards 1.70
    [1.42 1.56 1.62]
    """
    choose("form", form, ("published",))

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        return _GradientDescent(Game(rows, p_set, p0))

    guarantee = Guarantee("margin >= gamma - O(1/log t)")
    plain = "it is about the plain exponential loss"
    return Method("gradient_descent", form, 2.0, build, guarantee, 1, plain=plain, resident=True)


@register(
    "normalized_gradient_descent",
    reference="M. S. Nacson et al., AISTATS 2019 (step 1/sqrt(t)); Z. Ji and M. Telgarsky, ALT 2021 (constant step)",
    forms=("published", "game"),
)
def normalized_gradient_descent(*, form: str = "published", step: str = "constant") -> Method:
    """Run gradient descent on log R: v_t = v_{t-1} + η_t Aᵀsoftmax(-Av_{t-1}), with η_t = 1 or 1/√t.

    Game: that of `steepest_descent` for p = 2, α_t = η_t: p first with FTRL[E, p_0, 1], w with the best response Aᵀp_t to the
    current loss alone. v_T = Σα_t w_t.

    Guarantee: gap ≤ (D + ½Ση_t²)/Ση_t, and normalized margin ≥ γ - (D + ½Ση_t²)/(γΣη_t): γ - (D + ½Σ1/t)/(γΣ1/√t) for step
    "1/sqrt(t)"; at the constant step 1 the smoothness of log R does better, gap ≤ (D + ½)/T and margin ≥ γ - (D + ½)/(γT).

    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], normalized_gradient_descent(), 200)
    >>> bool((trace.dual - trace.m <= trace.bound).all())  # the guarantee, at every recorded round
    True
    """
    choose("form", form, ("published", "game"))
    choose("step", step, ("constant", "1/sqrt(t)"))
    constant = step == "constant"

    def gap(t: int, D: float) -> float:
        return (D + 0.5) / t if constant else regret_of_steps(t, D)

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        return descent(Game(rows, p_set, p0), form, 1.0, unit_weight if constant else inverse_root)

    promised = "(D + 1/2)/T" if constant else "(D + log(T)/2 + 1/2)/(2 (sqrt(T+1) - 1))"
    guarantee = Guarantee(
        f"gap <= {promised}, margin >= gamma - gap/gamma",
        gap=gap,
        margin=lambda t, D, gamma: gamma - gap(t, D) / gamma,
        regrets=best_response_of_w,
    )
    return Method("normalized_gradient_descent", form, 2.0, build, guarantee, 1 if form == "published" else 2, resident=True)


@dataclass(frozen=True, eq=False)
class _GradientDescent:
    """v += R(v) · Aᵀsoftmax(-Av). The pass is at v_{t-1}, so the margin of v_t is measured at recorded rounds."""

    game: Game

    def start(self) -> Array:
        return np.zeros(self.game.rows.d)

    def round(self, state: Array, t: int) -> tuple[Array, Round]:
        response = self.game.respond(state)
        assert response.log_risk is not None
        risk = math.exp(response.log_risk)
        v = state + risk * response.combination
        return v, Round(risk, None, response.p, response.combination, output=Output(v, None, None))
