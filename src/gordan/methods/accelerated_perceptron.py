"""The accelerated Perceptron by empirical risk minimisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.checkpoint import checkpointed
from gordan.dynamics import Form, Output, Round
from gordan.errors import InputError
from gordan.game import Game, Response
from gordan.geometry import Simplex
from gordan.methods.registry import Guarantee, Method, choose, register
from gordan.methods.smooth_perceptron import erm_guarantee, two_players
from gordan.rows import Rows


@register(
    "accelerated_perceptron",
    reference="Z. Ji, N. Srebro and M. Telgarsky, Fast margin maximization via dual acceleration, ICML 2021",
    forms=("published", "gradient", "game"),
)
def accelerated_perceptron(*, form: str = "published", eta: float = 0.25, theta: str = "matched") -> Method:
    """Run normalized momentum gradient descent on the exponential loss: the Smooth Perceptron's game, summed, not averaged.

    Published (primal-dual): q_0 = p_0, v_0 = g_0 = 0, β_t = t/(t+1), θ_{t-1} = 2ηt/(t+1):

        v_t = v_{t-1} - θ_{t-1}(g_{t-1} - Aᵀq_{t-1}),   q_t = softmax(-Av_t),   g_t = β_t(g_{t-1} - Aᵀq_t).

    Gradient form (NMGD), with R(v) the mean of e^{-A_i·v}: v_t = v_{t-1} - θ_{t-1}(g_{t-1} + ∇R(v_{t-1})/R(v_{t-1})),
    g_t = β_t(g_{t-1} + ∇R(v_t)/R(v_t)).

    Game: that of `smooth_perceptron`; v_T = ηΣα_t w_t, q_T = p_T. `theta="original"` keeps θ = 1 of the first publication:
    then v_T = ½Σα_{t+1}w_t, weights and moves do not match, and the rate is log t/t² instead of 1/t².

    Guarantee (matched): normalized margin ≥ γ - 2D/(ηγT(T+1)), and ‖v_T‖ ≥ ηγT(T+1)/2.

    >>> import gordan, numpy as np
    >>> A = [[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]]
    >>> published, game = (gordan.play(A, accelerated_perceptron(form=form), 100) for form in ("published", "game"))
    >>> bool(np.allclose(published.normalized_margin, game.normalized_margin))  # both forms are the same method
    True

    Implements: Algorithm 2, Proposition 2, Theorem 3, Lemma 5
    """
    choose("form", form, ("published", "gradient", "game"))
    choose("eta", eta, (0.25, 0.5))
    choose("theta", theta, ("matched", "original"))
    if theta == "original" and (form == "game" or eta != 0.25):
        raise InputError("theta='original' has no game form and no eta; use form='published' or 'gradient' alone")

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        game = Game(rows, p_set, p0)
        if form == "game":
            return two_players(game, eta)
        variant = _NMGD if form == "gradient" else _PrimalDual
        return variant(game, eta if theta == "matched" else None)

    guarantee = Guarantee("margin >= gamma - O(log t/t^2)")
    if theta == "matched":
        guarantee = erm_guarantee(eta)
        if form != "game":
            guarantee = replace(guarantee, length=lambda t, gamma: eta * gamma * t * (t + 1) / 2)
    plain = "its gradient form is about the plain exponential loss (use form='published')" if form == "gradient" else None
    passes, game = 2 if form == "game" else 1, form == "game"
    return Method("accelerated_perceptron", form, 2.0, build, guarantee, passes, plain=plain, losses=game, resident=True)


@checkpointed("accelerated_perceptron.state")
class _State(NamedTuple):
    """The state: v, the momentum g, and the last direction: g_{t-1} - Aᵀq_{t-1} = -½(t+1)w_t."""

    v: Array
    g: Array
    move: Array


@dataclass(frozen=True, eq=False)
class _PrimalDual:
    """Published form; `eta` None is θ = 1. Round t makes v_t, then q_t; the state carries `move` for the next v."""

    game: Game
    eta: float | None

    def start(self) -> _State:
        zero = np.zeros(self.game.rows.d)
        return _State(zero, zero, zero - self.game.rows.combine(self.game.p0))

    def round(self, state: _State, t: int) -> tuple[_State, Round]:
        v = state.v - _theta(self.eta, t) * state.move
        response = self.game.respond(v)
        g = (t / (t + 1)) * (state.g - response.combination)
        return _State(v, g, g - response.combination), _round(self.eta, t, v, state.move, response)


@dataclass(frozen=True, eq=False)
class _NMGD:
    """Gradient form. The state carries the v at which the next gradient is taken: v_1 before round 1."""

    game: Game
    eta: float | None

    def start(self) -> _State:
        slope = -self.game.rows.combine(self.game.p0)  # ∇R(0)/R(0)
        return _State(-_theta(self.eta, 1) * slope, np.zeros(self.game.rows.d), slope)

    def round(self, state: _State, t: int) -> tuple[_State, Round]:
        response = self.game.respond(state.v)
        slope = -response.combination  # ∇R(v)/R(v), without forming R, which underflows
        g = (t / (t + 1)) * (state.g + slope)
        move = g + slope
        after = _State(state.v - _theta(self.eta, t + 1) * move, g, move)
        return after, _round(self.eta, t, state.v, state.move, response)


def _theta(eta: float | None, t: int) -> float:
    """Return θ_{t-1}."""
    return 1.0 if eta is None else 2 * eta * t / (t + 1)


def _round(eta: float | None, t: int, v: Array, move: Array, response: Response) -> Round:
    """Return round t of the game: w_t = -2 move/(t+1), and v_t = factor · w̄_t for the weights t (or t+1 if θ = 1)."""
    alpha, weight, step = (t, t * (t + 1) / 2, eta) if eta is not None else (t + 1, t * (t + 3) / 2, 0.5)
    output = Output(v, response.lowest, step * weight)
    return Round(float(alpha), (-2 / (t + 1)) * move, response.p, response.combination, output=output)
