"""The Smooth Perceptron."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.checkpoint import checkpointed
from gordan.dynamics import Form, Output, Protocol1, Round
from gordan.game import Game
from gordan.geometry import Simplex
from gordan.learners import Leader
from gordan.methods.registry import Guarantee, Method, Moves, Regrets, choose, register
from gordan.rows import Rows


@register(
    "smooth_perceptron",
    reference="N. Soheili and J. Peña, A smooth Perceptron algorithm, SIAM J. Optim. 22 (2012) 728-737",
    forms=("published", "game"),
)
def smooth_perceptron(*, form: str = "published", eta: float = 0.25) -> Method:
    """Apply Nesterov's excessive gap technique to ψ(v) = min_q qᵀAv - ½‖v‖²: two accelerated players, averaged.

    Published: with θ_t = 2/(t+3), μ_0 = 1/η, v_0 = Aᵀp_0 and q_μ(v) = argmin_q qᵀAv + μ D_E(q, p_0),

        v_t = (1-θ_{t-1})(v_{t-1} + θ_{t-1}Aᵀq_{t-1}) + θ²_{t-1} Aᵀq_{μ_{t-1}}(v_{t-1}),   μ_t = (1-θ_{t-1})μ_{t-1},
        q_t = (1-θ_{t-1})q_{t-1} + θ_{t-1} q_{μ_t}(v_t).

    Game: g = pᵀAw - ½‖w‖², α_t = t; w first with OFTL (hint last), p with FTRL⁺[E, p_0, η]. Then v_{T-1} = w̄_T, q_{T-1} = p̄_T.

    Guarantee (η ≤ 1/2): ½‖Aᵀp̄_T‖² - m(w̄_T) ≤ 2D/(ηT(T+1)), which is 8 log n/(T(T+1)) at η = 1/4 as printed and
    4 log n/(T(T+1)) at η = 1/2; normalized margin ≥ γ - 2D/(ηγT(T+1)); so positive once T(T+1) > 2D/(ηγ²).

    >>> import gordan, numpy as np
    >>> A = np.array([[1.0, 0.2], [0.6, -0.1], [0.9, -0.3]])
    >>> trace = gordan.play(A, smooth_perceptron(eta=0.5), 200)
    >>> bool(trace.dual[-1] - trace.m[-1] <= trace.bound[-1])
    True

    Implements: Algorithm 1, Proposition 1, Theorem 2
    """
    choose("form", form, ("published", "game"))
    choose("eta", eta, (0.25, 0.5))

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        game = Game(rows, p_set, p0)
        return _Smooth(game, 1 / eta) if form == "published" else two_players(game, eta)

    passes = 1 if form == "published" else 2
    return Method("smooth_perceptron", form, 2.0, build, erm_guarantee(eta), passes, losses=form == "game", resident=True)


def two_players(game: Game, eta: float) -> Protocol1:
    """Return the game of Algorithms 1 and 2: w is an optimistic leader, p follows with the entropy or the cost of a loss."""
    return Protocol1(
        game,
        w=Leader(game.w_set, np.zeros(game.rows.d), hint="last", curvature=game.w_curvature),
        p=Leader(game.p_set, game.p0, game.p_regularizer, eta * game.p_convexity, hint="current", curvature=game.p_curvature),
        first="w",
        weight=float,
    )


def erm_guarantee(eta: float) -> Guarantee:
    """Return the guarantee that Algorithms 1 and 2 share."""
    return Guarantee(
        f"gap <= {2 / eta:g} D/(T(T+1)), margin >= gamma - {2 / eta:g} D/(gamma T(T+1))",
        gap=lambda t, D: 2 * D / (eta * t * (t + 1)),
        margin=lambda t, D, gamma: gamma - 2 * D / (eta * gamma * t * (t + 1)),
        rounds=lambda D, gamma: math.sqrt(2 * D / eta) / gamma,
        regrets=partial(erm_regrets, eta),
    )


def erm_regrets(eta: float, D: float, moves: Moves) -> Regrets:
    """Return the bounds on both regrets, in which the moves of p cancel."""
    return Regrets(w=moves.p / (2 * eta), p=D / eta - moves.p / (2 * eta))


@checkpointed("smooth_perceptron.state")
class _State(NamedTuple):
    """The state: v_t, μ_t, the averages q_t and Aᵀq_t, and Aᵀq_{μ_t}(v_t) of the response."""

    v: Array
    mu: float
    q: Array
    combination: Array
    response: Array | None


@dataclass(frozen=True, eq=False)
class _Smooth:
    """Published form. Round t plays v_{t-1} and q_{t-1}: round 1 is the paper's initialisation."""

    game: Game
    mu0: float

    def start(self) -> _State:
        v = self.game.rows.combine(self.game.p0)
        return _State(v, self.mu0, self.game.p0, v, None)

    def round(self, state: _State, t: int) -> tuple[_State, Round]:
        if state.response is None:
            v, w, mu, theta = state.v, state.v, state.mu, 1.0
        else:
            theta = 2 / (t + 1)  # θ_{t-2} in the paper's count, which starts at 0
            w = (1 - theta) * state.combination + theta * state.response
            v = (1 - theta) * state.v + theta * w
            mu = (1 - theta) * state.mu
        response = self.game.respond(v / mu)
        p = response.p
        q = (1 - theta) * state.q + theta * p
        combination = (1 - theta) * state.combination + theta * response.combination
        output = Output(v, mu * response.lowest, 1.0)
        played = Round(float(t), w, p, response.combination, output=output, p_bar=q)
        return _State(v, mu, q, combination, response.combination), played
