"""Two expressions of one method give the same iterates: Propositions 1 and 2, Theorems 4 and 6, NMGD.

Game forms and published forms of the package are compared with each other and with `printed`, a transcription that shares no
code with either; to 1e-10 over 60 rounds, dense and sparse, separable and not.
"""

from __future__ import annotations

import numpy as np
import printed
import pytest
import scipy.sparse as sp
from catalogue import supports
from problems import inseparable, separable

import gordan
from gordan import methods, rows
from gordan.geometry import Simplex

T = 60
PROBLEMS = {
    "separable": separable(n=30, d=6, gamma=0.05, seed=1),
    "small-margin": separable(n=50, d=12, gamma=2e-3, seed=2),
    "inseparable": inseparable(n=30, d=4, seed=3),
}


@pytest.fixture(params=[(p, s) for p in PROBLEMS for s in ("dense", "sparse")], ids="-".join)
def data(request):
    name, storage = request.param
    A = PROBLEMS[name].A
    if storage == "sparse":
        A = np.where(np.abs(A) > 0.05, A, 0.0)
    return A, sp.csr_array(A) if storage == "sparse" else A


def iterates(method, X, rounds=T, **sets):
    """[(state, Round)] of a form on rows X, driven without the loop."""
    A = rows.of(X)
    p_set = Simplex(A.n, **sets)
    form = method.on(A, p_set, p_set.centre)
    state, out = form.start(), []
    for t in range(1, rounds + 1):
        state, played = form.round(state, t)
        out.append((state, played))
    return out


def averages(played):
    """w̄_T and p̄_T for every T, from the moves alone."""
    alpha = np.array([r.alpha for _, r in played])
    S = np.cumsum(alpha)[:, None]
    w = np.cumsum(alpha[:, None] * [r.w for _, r in played], axis=0) / S
    p = np.cumsum(alpha[:, None] * [r.p for _, r in played], axis=0) / S
    return w, p, S


def close(actual, expected, tol=1e-10):
    actual, expected = np.asarray(actual), np.asarray(expected)
    scale = max(1.0, float(np.abs(expected).max()))
    assert np.abs(actual - expected).max() <= tol * scale


@pytest.mark.parametrize("eta", [0.25, 0.5])
def test_smooth_perceptron(data, eta):
    """v_{T-1} = w̄_T and q_{T-1} = p̄_T.

    Checks: Algorithm 1, Proposition 1
    """
    A, X = data
    reference = printed.smooth_perceptron(A, T, mu0=1 / eta)
    game = iterates(methods.smooth_perceptron(form="game", eta=eta), X)
    published = iterates(methods.smooth_perceptron(form="published", eta=eta), X)
    w_bar, p_bar, _ = averages(game)
    for t, (v, q) in enumerate(reference):
        close(w_bar[t], v)
        close(p_bar[t], q)
        close(published[t][1].output.w, v)
        close(published[t][1].p_bar, q)
        close(published[t][1].w, game[t][1].w)
        close(published[t][1].p, game[t][1].p)


@pytest.mark.parametrize("eta", [0.25, 0.5])
def test_accelerated_perceptron(data, eta):
    """q_T = p_T, v_T = ηΣα_t w_t; and Aᵀp̄_T = -(2/T) g_T.

    Checks: Algorithm 2, Proposition 2
    """
    A, X = data
    reference = printed.accelerated_perceptron(A, T, theta=lambda t: 2 * eta * t / (t + 1))
    game = iterates(methods.accelerated_perceptron(form="game", eta=eta), X)
    published = iterates(methods.accelerated_perceptron(form="published", eta=eta), X)
    w_bar, p_bar, S = averages(game)
    for t, (v, q, g) in enumerate(reference):
        close(game[t][1].p, q)
        close(eta * S[t] * w_bar[t], v)
        close(A.T @ p_bar[t], -2 / (t + 1) * g)
        close(published[t][1].output.w, v)
        close(published[t][1].p, q)
        close(published[t][1].w, game[t][1].w)
        close(published[t][1].output.factor * w_bar[t], v)


def test_original_theta_sums_with_the_next_weight(data):
    """The remark after the proposition: with θ = 1, v_T = ½Σα_{t+1} w_t for the same update of w.

    Checks: Proposition 2
    """
    A, X = data
    reference = printed.accelerated_perceptron(A, T, theta=lambda t: 1.0)
    published = iterates(methods.accelerated_perceptron(theta="original"), X)
    w_bar, _, S = averages(published)  # α_t = t + 1 there
    for t, (v, q, _) in enumerate(reference):
        close(published[t][1].output.w, v)
        close(published[t][1].p, q)
        close(0.5 * S[t] * w_bar[t], v)


@pytest.mark.parametrize("theta", ["matched", "original"])
def test_nmgd(data, theta):
    """The gradient form is the primal-dual form, and both are gradient descent on the risk as it stands.

    Checks: Algorithm 2
    """
    A, X = data
    printed_theta = (lambda t: t / (2 * (t + 1))) if theta == "matched" else (lambda t: 1.0)
    reference = printed.nmgd(A, T, printed_theta)
    gradient = iterates(methods.accelerated_perceptron(form="gradient", theta=theta), X)
    published = iterates(methods.accelerated_perceptron(form="published", theta=theta), X)
    for t, v in enumerate(reference):
        close(gradient[t][1].output.w, v)
        close(published[t][1].output.w, v)
        close(gradient[t][1].w, published[t][1].w)


def test_mirror_prox(data):
    """u_t = (w_t, p_t), v_{t+1} = (ŵ_t, p̂_t), z_t = their averages.

    Checks: Algorithm 5, Theorem 6
    """
    A, X = data
    reference = printed.mirror_prox(A, T)
    game = iterates(methods.mirror_prox_perceptron(form="game"), X)
    published = iterates(methods.mirror_prox_perceptron(form="published"), X)
    w_bar, p_bar, _ = averages(game)
    for t, (u, v, z) in enumerate(reference):
        close(game[t][1].w, u[0])
        close(game[t][1].p, u[1])
        close(game[t][0].w.point, v[0])
        close(game[t][0].p.point, v[1])
        close(w_bar[t], z[0])
        close(p_bar[t], z[1])
        close(published[t][1].w, u[0])
        close(published[t][1].p, u[1])
        close(published[t][0].w, v[0])
        close(np.exp(published[t][0].log_p), v[1])
        close(published[t][1].output.w, z[0])


def test_nesterov(data):
    """s_T = ¼Σα_t w_t.

    Checks: Algorithm 3, Theorem 4
    """
    A, X = data
    reference = printed.nesterov(A, T)
    game = iterates(methods.nesterov(form="game"), X)
    published = iterates(methods.nesterov(form="published"), X)
    w_bar, _, S = averages(game)
    for t, s in enumerate(reference):
        close(S[t] / 4 * w_bar[t], s)
        close(published[t][1].output.w, s)
        close(published[t][1].w, game[t][1].w)
        close(published[t][1].p, game[t][1].p)


@pytest.mark.parametrize("p", [3.0, 6.0])
@pytest.mark.parametrize("w_set", ["ball", "free"])
def test_accelerated_p_norm(data, p, w_set):
    """The learners play Algorithm 4 as transcribed.

    Checks: Algorithm 4
    """
    A, X = data
    A, X = A / 2, X / 2  # p-norms stay below 1 whatever p
    game = iterates(methods.accelerated_p_norm_perceptron(p=p, w_set=w_set), X)
    for t, (w, weights) in enumerate(printed.accelerated_p_norm(A, T, p, w_set == "ball")):
        close(game[t][1].w, w, 1e-9)
        close(game[t][1].p, weights, 1e-9)


@pytest.mark.parametrize("p", [2.0, 3.0, 12.0])
def test_smooth_p_norm(data, p):
    A, X = data
    game = iterates(methods.smooth_p_norm_perceptron(p=p), X)
    for t, (w, weights) in enumerate(printed.smooth_p_norm(A, T, p)):
        close(game[t][1].w, w, 1e-9)
        close(game[t][1].p, weights, 1e-9)


def test_gradient_descents(data):
    """The baselines are gradient descent on the risk as it stands, plain and normalized."""
    A, X = data
    pairs = [
        (methods.gradient_descent(), printed.gradient_descent(A, T)),
        (methods.normalized_gradient_descent(), printed.normalized_gradient_descent(A, T, lambda t: 1.0)),
        (
            methods.normalized_gradient_descent(step="1/sqrt(t)"),
            printed.normalized_gradient_descent(A, T, lambda t: t**-0.5),
        ),
    ]
    for method, reference in pairs:
        for (_, played), v in zip(iterates(method, X), reference, strict=True):
            close(played.output.w, v)


@pytest.mark.parametrize("p", [2.0, 3.0, 6.0])
def test_p_norm_perceptron_is_gentiles(p):
    A = separable(30, 5, 0.1, norm=p, seed=5).A
    w, mistakes = printed.p_norm_perceptron(A, p)
    trace = gordan.play(A, methods.p_norm_perceptron(p=p), 10**6)
    assert trace.status == "finished"
    assert trace.t[-1] - 1 == mistakes
    close(trace.w, w)


# ---- as printed, misprints included: the corrections matter -----------------------------------------------------------


def apart(actual, expected):
    """Far beyond rounding."""
    return np.abs(np.asarray(actual) - expected).max() > 1e-3


def test_smooth_perceptron_with_A_for_its_transpose():
    """Where n = d the printed `A q` can be computed; v_{T-1} = w̄_T then fails from the second iterate on."""
    A = np.random.default_rng(6).standard_normal((8, 8)) / 8
    n, mu, theta = len(A), 4.0, 2 / 3
    v = A.T @ np.full(n, 1 / n)
    q = printed.softmax(-A @ v / mu)
    w_bar, p_bar, _ = averages(iterates(methods.smooth_perceptron(form="game"), A, 3))
    close(w_bar[0], v)
    for t in (1, 2):
        v = (1 - theta) * (v + theta * A @ q) + theta**2 * A @ printed.softmax(-A @ v / mu)
        mu = (1 - theta) * mu
        q = (1 - theta) * q + theta * printed.softmax(-A @ v / mu)
        theta = 2 / (t + 3)
        assert apart(w_bar[t], v)
        assert apart(p_bar[t], q)


@pytest.mark.parametrize("name", ["separable", "small-margin"])
def test_gradient_form_with_the_printed_sign(name):
    """g_t = β_t(g_{t-1} - ∇R/R): the first step agrees with the primal-dual form (g_0 = 0), and no later one does."""
    A = PROBLEMS[name].A

    def slope(v):
        return -A.T @ printed.softmax(-A @ v)

    published = iterates(methods.accelerated_perceptron(form="published"), A)
    v, g = np.zeros(A.shape[1]), np.zeros(A.shape[1])
    for t in range(T):
        g = t / (t + 1) * (g - slope(v))
        v = v - (t + 1) / (2 * (t + 2)) * (g + slope(v))
        assert apart(published[t][1].output.w, v) == (t > 0)


def test_nesterov_with_the_printed_first_step():
    """u_1 = s_0 + v_0/(2(t-1)) is 0/0: every iterate of the printed recurrence is NaN."""
    A = PROBLEMS["separable"].A
    v, s = np.zeros(A.shape[1]), np.zeros(A.shape[1])
    for t in range(1, 4):
        with np.errstate(invalid="ignore"):
            u = s + v / np.float64(2 * (t - 1))
        v = v + t * A.T @ printed.softmax(-A @ u)
        s = s + v / (2 * (t + 1))
        assert np.isnan(s).all()


WITH_BOTH_FORMS = [
    name
    for name in methods.names()
    if {"game", "published"} <= set(methods.get(name).forms) and supports(methods.get(name)(), {"caps": None}) is None
]


@pytest.mark.parametrize("name", WITH_BOTH_FORMS)
@pytest.mark.parametrize("kind", ["capped", "halves", "capped-halves"])
def test_forms_agree_on_other_simplices(name, kind):
    """Beyond the paper: the published forms with the response of the other simplices play the same game."""
    problem = separable(n=30, d=6, gamma=0.05, seed=4, halves=True)
    sets = {}
    if "capped" in kind:
        sets["caps"] = np.random.default_rng(0).uniform(3, 6, problem.n) / problem.n
    if "halves" in kind:
        sets["halves"] = problem.halves
    game = iterates(methods.get(name)(form="game"), problem.A, **sets)
    published = iterates(methods.get(name)(form="published"), problem.A, **sets)
    for (_, g), (_, p) in zip(game, published, strict=True):
        close(p.w, g.w)
        close(p.p, g.p)
        close(p.combination, g.combination)
