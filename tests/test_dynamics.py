"""Protocol 1 with any learners, and what the loop makes of it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from problems import inseparable, p_norm, separable

import gordan
from gordan import dynamics, methods, rows
from gordan.game import Game
from gordan.geometry import Entropy, Simplex, SquaredNorm
from gordan.learners import Leader, Mirror

PROBLEM = separable(20, 4, 0.1, seed=51)


def regularized(A):
    A = rows.of(A)
    p_set = Simplex(A.n)
    return Game(A, p_set, p_set.centre)


def bilinear(A):
    A = rows.of(A)
    p_set = Simplex(A.n)
    return Game(A, p_set, p_set.centre, curvature=0.0, radius=1.0)


def test_protocol_1_by_hand():
    """Both orders, transcribed: OFTL and FTRL⁺ with odd weights.

    Checks: Protocol 1
    """
    game = regularized(PROBLEM.A)
    A, n, d = PROBLEM.A, *PROBLEM.A.shape

    def weight(t):
        return 1 + t**0.5

    def entropic(total, eta):
        z = -eta * total
        e = np.exp(z - z.max())
        return e / e.sum()

    for first in ("w", "p"):
        w_hint, p_hint = ("last", "current") if first == "w" else ("current", "last")
        form = dynamics.Protocol1(
            game,
            Leader(game.w_set, np.zeros(d), hint=w_hint, curvature=game.w_curvature),
            Leader(game.p_set, game.p0, Entropy(), 0.3, hint=p_hint),
            first,
            weight,
        )
        state = form.start()
        w_total, p_total, S = np.zeros(d), np.zeros(n), 0.0
        p, w = np.full(n, 1 / n), np.zeros(d)
        for t in range(1, 20):
            state, played = form.round(state, t)
            a = weight(t)
            if first == "w":
                w = (w_total + a * A.T @ p) / (S + a)
                p = entropic(p_total + a * A @ w, 0.3)
            else:
                p = entropic(p_total + a * A @ w, 0.3)
                w = (w_total + a * A.T @ p) / (S + a)
            w_total, p_total, S = w_total + a * A.T @ p, p_total + a * A @ w, S + a
            assert played.alpha == a
            np.testing.assert_allclose(played.w, w, atol=1e-12)
            np.testing.assert_allclose(played.p, p, atol=1e-12)
            np.testing.assert_allclose(played.combination, A.T @ p, atol=1e-12)
            np.testing.assert_allclose(played.scores, A @ w, atol=1e-12)


W_PLAYERS = {
    "FTL": lambda g: Leader(g.w_set, np.zeros(g.rows.d), hint="none", curvature=g.w_curvature),
    "FTRL": lambda g: Leader(g.w_set, np.zeros(g.rows.d), SquaredNorm(), 0.2, curvature=g.w_curvature),
    "OFTRL": lambda g: Leader(g.w_set, np.zeros(g.rows.d), SquaredNorm(), 0.2, "last", g.w_curvature),
    "OMD": lambda g: Mirror(g.w_set, np.zeros(g.rows.d), SquaredNorm(), 0.1, "last", g.w_curvature),
    "MD": lambda g: Mirror(g.w_set, np.zeros(g.rows.d), SquaredNorm(), 0.1, "none", g.w_curvature),
}
P_PLAYERS = {
    "FTL": lambda g: Leader(g.p_set, g.p0, hint="none"),
    "FTRL": lambda g: Leader(g.p_set, g.p0, Entropy(), 0.5),
    "FTRL-euclidean": lambda g: Leader(g.p_set, g.p0, SquaredNorm(), 0.05),
    "OFTRL": lambda g: Leader(g.p_set, g.p0, Entropy(), 0.5, "last"),
    "FTRL+": lambda g: Leader(g.p_set, g.p0, Entropy(), 0.5, "current"),
    "OMD": lambda g: Mirror(g.p_set, g.p0, Entropy(), 0.3, "last"),
    "MD-euclidean": lambda g: Mirror(g.p_set, g.p0, SquaredNorm(), 0.1),
}
WEIGHTS = {"1": lambda t: 1.0, "t": float, "sqrt": lambda t: t**0.5}


@pytest.mark.parametrize("game", [regularized, bilinear], ids=["regularized", "bilinear"])
@pytest.mark.parametrize(("w_player", "p_player"), list(itertools.product(W_PLAYERS, P_PLAYERS)))
def test_theorem_1_for_any_learners(w_player, p_player, game):
    """However badly two learners play, the gap is at most the average of their measured regrets.

    Checks: Theorem 1
    """
    for problem, weight in itertools.product((PROBLEM, inseparable(20, 4, seed=52)), WEIGHTS.values()):
        played_game = game(problem.A)
        for first in ("w", "p"):
            w, p = W_PLAYERS[w_player](played_game), P_PLAYERS[p_player](played_game)
            if first == "p" and p.hint == "current":
                continue
            form = dynamics.Protocol1(played_game, w, p, first, weight)
            trace = dynamics.run(form, 25, record=range(1, 26))
            average = (trace.regret_w + trace.regret_p) / trace.weight
            assert (trace.dual - trace.m <= average + 1e-9).all()
            # m(w) - m(w̄) for the best w: γ w* in the regularized game (value γ²/2), w* in the bilinear one (value γ)
            best = 0.5 * problem.gamma**2 if played_game.curvature else problem.gamma
            assert (best - trace.m <= average + 1e-9).all()
            assert (trace.lower <= problem.gamma + 1e-9).all()
            assert (trace.upper >= problem.gamma - 1e-9).all()


def test_first_mover_cannot_know_the_current_loss():
    game = regularized(PROBLEM.A)
    with pytest.raises(gordan.InputError, match="moves first"):
        dynamics.Protocol1(game, W_PLAYERS["FTL"](game), P_PLAYERS["FTRL+"](game), "p", float)


def test_an_order_and_weights_that_are_none():
    game = regularized(PROBLEM.A)
    w, p = W_PLAYERS["FTL"](game), P_PLAYERS["FTRL"](game)
    with pytest.raises(gordan.InputError, match="first is 'both'"):
        dynamics.Protocol1(game, w, p, "both", float)
    for weight in (0.0, -1.0, math.inf, math.nan):
        form = dynamics.Protocol1(game, w, p, "w", lambda t, weight=weight: weight if t == 2 else 1.0)
        state, _ = form.round(form.start(), 1)
        with pytest.raises(gordan.InputError, match="the weight of round 2 is"):
            form.round(state, 2)


def test_anchor_hint_needs_an_anchor():
    game = bilinear(PROBLEM.A)
    w = Mirror(game.w_set, np.zeros(game.rows.d), SquaredNorm(), 0.1, "anchor")
    form = dynamics.Protocol1(game, w, P_PLAYERS["FTRL"](game), "w", float)
    with pytest.raises(gordan.InputError, match="mirror descent"):
        form.round(form.start(), 1)


@pytest.mark.parametrize("p", [2.0, 6.0])
def test_scale_changes_margins_and_nothing_else(p):
    """Rows are divided by R = max‖A_i‖_p, and margins multiplied back.

    Checks: Assumption 1, Assumption 2
    """
    problem = separable(20, 4, 0.1, norm=p, seed=53)
    method = methods.smooth_p_norm_perceptron(p=p)
    assert p_norm(problem.A, p).max() == pytest.approx(1.0, abs=1e-12)
    plain, large = gordan.play(problem.A, method, 50), gordan.play(2.0**20 * problem.A, method, 50)
    assert large.scale == pytest.approx(2.0**20)
    for name in ("margin", "normalized_margin", "lower", "upper"):
        np.testing.assert_allclose(getattr(large, name), 2.0**20 * getattr(plain, name), rtol=1e-9)
    for name in ("m", "dual", "regret_w", "regret_p", "bound", "weight"):
        np.testing.assert_allclose(getattr(large, name), getattr(plain, name), rtol=1e-7, atol=1e-12)


def test_non_uniform_start_changes_the_bound():
    """log n becomes max_i log(1/p_0i), and the bound still holds."""
    p0 = np.linspace(1, 10, PROBLEM.n)
    trace = gordan.play(PROBLEM.A, methods.smooth_perceptron(form="game"), 200, p0=p0)
    D = -np.log(p0.min() / p0.sum())
    np.testing.assert_allclose(trace.bound, 8 * D / (trace.t * (trace.t + 1.0)))
    assert (trace.dual - trace.m <= trace.bound).all()
    published = gordan.play(PROBLEM.A, methods.smooth_perceptron(), 200, p0=p0)
    np.testing.assert_allclose(published.w, trace.w_bar, atol=1e-10)
