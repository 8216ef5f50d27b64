"""The game of a loss: `play` runs the paper's methods on it, the theorem holds at every round, and its value is the least."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import gordan
from gordan import methods, rows
from gordan.game import Game
from gordan.geometry import LossCost, LossWeights
from gordan.losses import Loss

LOSSES = ("hinge", "squared_hinge", "logistic")


def problem(n=60, d=4, seed=0):
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, d))
    y = np.where(X[:, 0] + 0.7 * r.standard_normal(n) > 0, 1, -1)
    return X, y


def cost(loss, z):
    short = np.maximum(1 - z, 0)
    return {"hinge": short, "squared_hinge": short**2, "logistic": np.logaddexp(0, -z)}[loss]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.1, 1.0, "by row"])
def test_the_theorem_holds_at_every_round(loss, C):
    """gap ≤ 8D/(T(T+1)) with D that of the best answer to w̄, divided by the convexity; and gap ≤ (R^w + R^p)/Σα."""
    X, y = problem()
    A = X * y[:, None]
    c = 0.2 + np.arange(60) % 3 if C == "by row" else np.full(60, C)
    p_set = LossWeights.of(loss, c, 60)
    game = Game(rows.of(A), p_set, p_set.centre)
    met: list = []
    method = methods.smooth_perceptron(form="game")
    trace = gordan.play(A, method, 300, loss=loss, C=c, record=range(1, 301), callback=met.append)
    gap = trace.dual - trace.m
    assert (gap >= -1e-9 * trace.upper).all()
    assert (gap <= (trace.regret_w + trace.regret_p) / trace.weight + 1e-9 * trace.upper).all()
    for moment in met:
        scores = A @ moment.w_out
        best = c * Loss(loss).weight(scores)
        D = p_set.regularizer.divergence(best, p_set.centre) / game.p_convexity
        assert moment.dual - moment.m <= 8 * D / (moment.t * (moment.t + 1)) * (1 + 1e-9) + 1e-12
        # m and dual from the raw data
        value = 0.5 * moment.w_out @ moment.w_out + c @ cost(loss, scores)
        assert -moment.m == pytest.approx(value, rel=1e-9)
        v = A.T @ moment.p_bar
        assert moment.dual == pytest.approx(0.5 * v @ v + p_set.cost.value(moment.p_bar), rel=1e-9, abs=1e-9)
    if loss != "squared_hinge":
        assert (gap <= trace.bound * (1 + 1e-9)).all()
        assert trace.bound[0] < math.inf


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", ["smooth_perceptron", "accelerated_perceptron"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, np.float32])
def test_the_value_is_the_least_loss(loss, method, storage):
    """The bracket of the play and the certified interval of minimize_loss hold the same number; the rate is 1/t²."""
    X, y = problem(seed=1)
    X = X.astype(np.float32).astype(np.float64)
    result = gordan.minimize_loss(X, y, loss=loss, intercept="none", tol=1e-9)
    trace = gordan.play(storage(X * y[:, None]), method, 2000, loss=loss, record=[20, 200, 2000])
    lower, upper = trace.bracket
    assert lower <= result.objective[1] * (1 + 1e-9)
    assert upper >= result.objective[0] * (1 - 1e-9)
    assert (upper - lower) / upper < 1e-3
    assert (np.diff(trace.lower) >= 0).all()
    assert (np.diff(trace.upper) <= 0).all()
    early, late = (trace.dual - trace.m)[[0, -1]]
    assert late <= early / 100**1.5
    penalized = gordan.minimize_loss(X, y, loss=loss, intercept="penalized", tol=1e-9)
    column = gordan.play(storage(np.column_stack((X, np.ones(60))) * y[:, None]), method, 2000, loss=loss)
    assert column.bracket[0] <= penalized.objective[1] * (1 + 1e-9)
    assert column.bracket[1] >= penalized.objective[0] * (1 - 1e-9)


@given(seed=st.integers(0, 10**6), loss=st.sampled_from(LOSSES), scale=st.floats(0.1, 10), linear=st.floats(-2, 2))
def test_the_mirror_map_beats_other_points(seed, loss, scale, linear):
    r = np.random.default_rng(seed)
    c = r.uniform(0.1, 3.0, 5)
    p_set, theta = LossWeights.of(loss, c, 5), 3 * r.standard_normal(5)
    R = LossCost(Loss(loss), c, scale, linear)
    z, gradient = R.mirror(p_set, theta)
    assert p_set.contains(z)
    np.testing.assert_allclose(gradient, R.gradient(z), rtol=1e-6, atol=1e-9)
    most = np.minimum(p_set.loss.most_weight, 50.0) * c
    for _ in range(20):
        other = r.uniform(0, 1, 5) * most
        assert R.value(z) - theta @ z <= R.value(other) - theta @ other + 1e-9
        apart = np.sum((other - p_set.centre) ** 2 / c)
        assert R.divergence(other, p_set.centre) >= R.scale * R.convexity / 2 * apart * (1 - 1e-9)
    scores = 2 * r.standard_normal(5)
    p = p_set.c * p_set.loss.weight(scores)
    assert p_set.lowest(scores) == pytest.approx(p @ scores + p_set.cost.value(p))
    other = r.uniform(0, 1, 5) * most
    assert p_set.lowest(scores) <= other @ scores + p_set.cost.value(other) + 1e-9
    assert p_set.diameter(p_set.centre) >= p_set.regularizer.divergence(np.minimum(other, most), p_set.centre) - 1e-9


def test_what_cannot_be_played_is_refused():
    X, y = problem()
    A = X * y[:, None]
    every = [method for name in methods.names() for method in (methods.get(name)(form=form) for form in methods.get(name).forms)]
    for method in (method for method in every if not method.losses):
        for loss in ("hinge", "squared_hinge", "logistic"):
            with pytest.raises(
                gordan.InputError, match=r"plays for margins only; for a loss use smooth_perceptron\(form='game'\)"
            ):
                gordan.play(A, method, 3, loss=loss)
    for C in (0.0, -1.0, math.inf, np.full(60, np.nan), np.ones(59)):
        with pytest.raises(gordan.InputError, match=r"^C (is|must hold)"):
            gordan.play(A, "smooth_perceptron", 3, loss="hinge", C=C)
    with pytest.raises(gordan.InputError, match="loss is 'zero'"):
        gordan.play(A, "smooth_perceptron", 3, loss="zero")
    with pytest.raises(gordan.InputError, match="is played for 'hinge', 'squared_hinge', 'logistic'"):
        gordan.play(A, "smooth_perceptron", 3, loss="multinomial")
    with pytest.raises(gordan.InputError, match="are for margins only"):
        gordan.play(A, "smooth_perceptron", 3, loss="hinge", p0=np.ones(60))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("s", "r"), [(2, 2), (1, math.inf), (math.inf, 1)])
def test_noise_is_a_penalty_of_a_loss(loss, s, r):
    """The bracket is that of ½‖w‖² + ε‖w‖_r + Σ C ℓ: its upper end is a value, and no w is below its lower end."""
    X, y = problem()
    A = X * y[:, None]
    trace = gordan.play(A, methods.robust_perceptron(noise=2.0, noise_norm=s), 3000, loss=loss)

    def value(w):
        return 0.5 * w @ w + 2.0 * np.linalg.norm(w, r) + cost(loss, A @ w).sum()

    lower, upper = trace.bracket
    assert value(trace.w) == pytest.approx(upper, rel=1e-4)
    assert upper - lower <= 1e-3 * upper
    rng = np.random.default_rng(0)
    assert all(
        value(trace.w + step) >= lower for step in 10.0 ** rng.uniform(-4, 0, 200)[:, None] * rng.standard_normal((200, 4))
    )


def test_checkpoints_of_a_loss(tmp_path):
    X, y = problem()
    A = X * y[:, None]
    whole = gordan.play(A, "smooth_perceptron", 40, loss="logistic")
    gordan.play(A, "smooth_perceptron", 17, loss="logistic", checkpoint=tmp_path / "run")
    again = gordan.play(A, "smooth_perceptron", 40, loss="logistic", checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(again.w, whole.w)
    with pytest.raises(gordan.InputError, match="checkpoint"):
        gordan.play(A, "smooth_perceptron", 40, loss="logistic", C=2.0, checkpoint=tmp_path / "run")
