"""The theorems are tests: every bound at every round, on problems of known margin, recomputed from the raw rows by `ledger`."""

from __future__ import annotations

import math

import numpy as np
import printed
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger import Ledger, psi_mu
from problems import cone, inseparable, separable

import gordan
from gordan import methods
from gordan.geometry import Simplex
from gordan.methods.registry import Moves

PLAIN = {
    "smooth-1/4": methods.smooth_perceptron(),
    "smooth-1/2": methods.smooth_perceptron(eta=0.5),
    "smooth-game": methods.smooth_perceptron(form="game"),
    "smooth-game-1/2": methods.smooth_perceptron(form="game", eta=0.5),
    "accelerated": methods.accelerated_perceptron(),
    "accelerated-1/2": methods.accelerated_perceptron(eta=0.5),
    "accelerated-gradient": methods.accelerated_perceptron(form="gradient"),
    "accelerated-game": methods.accelerated_perceptron(form="game"),
    "accelerated-original": methods.accelerated_perceptron(theta="original"),
    "mirror-prox": methods.mirror_prox_perceptron(),
    "mirror-prox-game": methods.mirror_prox_perceptron(form="game"),
    "nesterov": methods.nesterov(),
    "nesterov-game": methods.nesterov(form="game"),
    "gradient-descent": methods.gradient_descent(),
    "ngd-constant": methods.normalized_gradient_descent(),
    "ngd-game": methods.normalized_gradient_descent(form="game"),
    "ngd-sqrt": methods.normalized_gradient_descent(step="1/sqrt(t)"),
}
# The share of the bound on the gap that is used up on a cone at least, where that is less than 0.4.
SHARES = {"ngd-constant": 0.2, "ngd-game": 0.2, "ngd-sqrt": 0.2}
GAMES = [name for name in PLAIN if PLAIN[name].guarantee.gap is not None]
P_NORM = {
    f"{name}-p{p}": method
    for p in (2, 3, 6, 12)
    for name, method in {
        "ball": methods.accelerated_p_norm_perceptron(p=p),
        "free": methods.accelerated_p_norm_perceptron(p=p, w_set="free"),
        "smooth": methods.smooth_p_norm_perceptron(p=p),
    }.items()
}
ON_OTHER_SIMPLICES = [*(name for name in GAMES if PLAIN[name].plain is None), "ball-p3", "smooth-p6"]
SHAPES = [(20, 2, 0.3), (40, 5, 0.1), (80, 20, 0.02), (60, 50, 1e-3)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PLAIN)
def test_every_bound_on_separable_data(name, shape):
    """Theorem 1 and its twin, the regret bounds of each method, gap, normalized margin, bracket.

    Checks: Theorem 1, Theorem 2, Theorem 3, Lemma 5, Theorem 4, Proposition 3
    """
    n, d, gamma = shape
    problem = separable(n, d, gamma, seed=n)
    Ledger(problem.A, problem.A, PLAIN[name], gamma=gamma).check(300)


@pytest.mark.parametrize("name", [*PLAIN, *P_NORM])
def test_every_bound_where_it_is_nearly_used_up(name):
    """On cones the gap comes near its bound: a theorem stated with half its constant would fail here."""
    method = {**PLAIN, **P_NORM}[name]
    worst = 0.0
    for n, d, gamma in ((6, 3, 0.05), (20, 8, 0.1), (8, 3, 0.9)):
        problem = cone(n, d, gamma, norm=method.norm, seed=n)
        ledger = Ledger(problem.A, problem.A, method, gamma=gamma)
        ledger.check(150)
        worst = max(worst, ledger.worst)
    assert method.guarantee.gap is None or worst > SHARES.get(name, 0.4)


@pytest.mark.parametrize("n", [7, 40])
@pytest.mark.parametrize("t", [1, 5, 300])
def test_guarantees_are_those_of_the_theorems(n, t):
    """The formulas written out once more, with D = log n and γ = 0.1: `Ledger` checks runs against what the methods state."""
    D, gamma = math.log(n), 0.1
    S = t * (t + 1)
    steps = [1 / math.sqrt(s) for s in range(1, t + 1)]
    by_steps = (D + 0.5 * sum(s * s for s in steps)) / sum(steps)
    stated = {
        "smooth-1/4": (8 * D / S, gamma - 8 * D / (gamma * S)),
        "smooth-1/2": (4 * D / S, gamma - 4 * D / (gamma * S)),
        "accelerated": (8 * D / S, gamma - 8 * D / (gamma * S)),
        "accelerated-1/2": (4 * D / S, gamma - 4 * D / (gamma * S)),
        "nesterov": ((8 * D + 0.25) / S, gamma - (8 * D + 0.25) / (gamma * S)),
        "mirror-prox": (1.5 * math.sqrt(D) / t, gamma - 1.5 * math.sqrt(D) / t),
        "ngd-constant": ((D + 0.5) / t, gamma - (D + 0.5) / (gamma * t)),
        "ngd-sqrt": (by_steps, gamma - by_steps / gamma),
        **{f"ball-p{p}": (math.sqrt(2 * (p - 1) * D) / t, gamma - math.sqrt(2 * (p - 1) * D) / t) for p in (2, 3, 6, 12)},
        **{f"free-p{p}": (math.sqrt(2 * (p - 1) * D) / t, None) for p in (2, 3, 6, 12)},
        **{f"smooth-p{p}": (8 * (p - 1) * D / S, gamma**2 - 16 * (p - 1) * D / S) for p in (2, 3, 6, 12)},
    }
    for name, (gap, margin) in stated.items():
        guarantee = {**PLAIN, **P_NORM}[name].guarantee
        assert (guarantee.gap is None) == (gap is None)
        assert gap is None or guarantee.gap(t, D) == pytest.approx(gap, rel=1e-12)
        if margin is not None:
            value = guarantee.margin(t, D, gamma)
            if name.startswith("smooth-p"):
                assert value == (pytest.approx(math.sqrt(margin), rel=1e-9) if margin > 0 else -math.inf)
            else:
                silent = margin < 0 and name.startswith(("mirror", "ball"))
                assert value == (-math.inf if silent else pytest.approx(margin, rel=1e-12))


def test_regret_bounds_are_those_of_the_theorems():
    """Written out once more, as the gaps are: a method may not state less than what is proved for it."""
    D, moves = math.log(7), Moves(p=0.3, w=0.2, scores=0.1)
    stated = {
        "smooth-1/4": (0.6, 4 * D - 0.6, math.inf),
        "accelerated-game": (0.6, 4 * D - 0.6, math.inf),
        "smooth-game-1/2": (0.3, 2 * D - 0.3, math.inf),
        "nesterov": (-0.2, 4 * D + 0.1, math.inf),
        "mirror-prox": (math.inf, math.inf, 1.5 * math.sqrt(D)),
        "ngd-sqrt": (0.0, math.inf, math.inf),
        **{f"smooth-p{p}": (0.6 * (p - 1), 4 * (p - 1) * D - 0.6 * (p - 1), math.inf) for p in (2, 3, 6, 12)},
        **{
            f"{kind}-p{p}": (root * (1 + 0.15 / D), root * (1 - 0.15 / D), math.inf)
            for p in (2, 3, 6, 12)
            for root in [math.sqrt((p - 1) * D / 2)]
            for kind in ("ball", "free")
        },
    }
    for name, bounds in stated.items():
        assert tuple({**PLAIN, **P_NORM}[name].guarantee.regrets(D, moves)) == pytest.approx(bounds, rel=1e-12), name
    assert PLAIN["accelerated-1/2"].guarantee.length(3, 0.1) == pytest.approx(0.5 * 0.1 * 12 / 2)


def test_rounds_are_where_the_bounds_turn_positive():
    stated = {**PLAIN, **P_NORM}
    both = {name: m for name, m in stated.items() if m.guarantee.rounds is not None and m.guarantee.margin is not None}
    assert len(both) >= 20
    for name, method in both.items():
        for D, gamma in ((2.0, 0.3), (5.0, 0.01)):
            T = math.ceil(method.guarantee.rounds(D, gamma)) + 1
            assert method.guarantee.margin(T, D, gamma) > 0, name
            assert method.guarantee.margin(max(1, T // 2), D, gamma) <= 0, name


@pytest.mark.parametrize("name", PLAIN)
def test_every_bound_on_inseparable_data(name):
    problem = inseparable(30, 4, seed=5)
    A = problem.A / np.linalg.norm(problem.A, axis=1).max()
    trace = Ledger(A, A, PLAIN[name], gamma=0.0).check(200)
    if PLAIN[name].guarantee.gap is not None:
        # the methods certify that the margin is small, whether w is in the unit ball or has the cost ½‖w‖²
        game = PLAIN[name].build(gordan.rows.of(A), Simplex(30), np.full(30, 1 / 30)).game
        epsilon = math.sqrt(2 * trace.bound[-1]) if game.curvature else trace.bound[-1]
        assert trace.upper[-1] <= epsilon + 1e-12


@pytest.mark.parametrize("name", P_NORM)
@pytest.mark.parametrize("shape", [(30, 3, 0.2), (60, 20, 0.01)], ids=str)
def test_every_bound_in_p_norms(name, shape):
    """On the q-ball and free; and the rate 1/t² of the smooth p-norm Perceptron.

    Checks: Algorithm 4, Theorem 5
    """
    n, d, gamma = shape
    problem = separable(n, d, gamma, norm=P_NORM[name].norm, seed=n)
    Ledger(problem.A, problem.A, P_NORM[name], gamma=gamma).check(300)


@pytest.mark.parametrize("name", ON_OTHER_SIMPLICES)
@pytest.mark.parametrize("nu", [0.2, 0.55])
def test_log_one_over_nu_on_the_capped_simplex(name, nu):
    method = {**PLAIN, **P_NORM}[name]
    problem = separable(40, 5, 0.1, norm=method.norm, seed=7)
    Ledger(problem.A, problem.A, method, gamma=None, nu=nu).check(150)


@pytest.mark.parametrize("name", ON_OTHER_SIMPLICES)
@pytest.mark.parametrize("nu", [None, 0.3])
def test_half_the_logarithms_on_half_simplices(name, nu):
    """½(log n₊ + log n₋) takes the place of log n; with caps, ½(log 2n₊/(νn) + log 2n₋/(νn))."""
    method = {**PLAIN, **P_NORM}[name]
    problem = separable(30, 5, 0.08, norm=method.norm, seed=8, halves=True)
    gamma = problem.gamma if nu is None else None
    Ledger(problem.A, problem.A, method, gamma=gamma, nu=nu, halves=problem.halves).check(150)


@settings(max_examples=25)
@given(
    n=st.integers(4, 60),
    d=st.integers(2, 50),
    gamma=st.floats(1e-3, 0.3),
    seed=st.integers(0, 10**6),
    name=st.sampled_from(sorted(PLAIN)),
)
def test_every_bound_on_drawn_problems(n, d, gamma, seed, name):
    problem = separable(n, d, gamma, seed=seed)
    Ledger(problem.A, problem.A, PLAIN[name], gamma=gamma).check(60)


@settings(max_examples=15)
@given(
    n=st.integers(4, 40),
    d=st.integers(2, 20),
    gamma=st.floats(1e-2, 0.3),
    seed=st.integers(0, 10**6),
    name=st.sampled_from(sorted(P_NORM)),
)
def test_every_p_norm_bound_on_drawn_problems(n, d, gamma, seed, name):
    problem = separable(n, d, gamma, norm=P_NORM[name].norm, seed=seed)
    Ledger(problem.A, problem.A, P_NORM[name], gamma=gamma).check(60)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", [*PLAIN, *P_NORM])
def test_bounds_in_float32(name, storage):
    """The rows as stored in float32 are the data; sums are float64, so the bounds hold nearly as well."""
    method = {**PLAIN, **P_NORM}[name]
    problem = cone(12, 4, 0.1, norm=method.norm, seed=9)
    A = problem.A.astype(np.float32)
    Ledger(storage(A), A, method, gamma=problem.gamma, slack=1e-6, relative=1e-4).check(100)


@pytest.mark.parametrize("eta", [0.25, 0.5])
@pytest.mark.parametrize("problem", [separable(30, 5, 0.05, seed=11), inseparable(30, 5, seed=12)], ids=["sep", "insep"])
def test_excessive_gap_invariant(problem, eta):
    """γ*²/2 ≤ ‖Aᵀq_t‖²/2 ≤ ψ_{μ_t}(v_t) at every step, ψ ≤ ψ_μ ≤ ψ + μ log n, and ‖Aᵀq_t‖ on inseparable data.

    Checks: Theorem 2
    """
    A, n = problem.A, problem.n
    method = methods.smooth_perceptron(eta=eta)
    mu = [2 / (eta * (t + 1) * (t + 2)) for t in range(300)]
    printed_iterates = printed.smooth_perceptron(A, 300, mu0=1 / eta)
    seen = []
    gordan.play(A, method, 300, record=range(1, 301), callback=seen.append)
    R = np.linalg.norm(A, axis=1).max()
    assert abs(R - 1) < 1e-12
    for t, moment in enumerate(seen):
        for v, q in (printed_iterates[t], (moment.w_out, moment.p_bar)):
            half = 0.5 * np.linalg.norm(A.T @ q) ** 2
            psi = (A @ v).min() - 0.5 * v @ v
            smooth = psi_mu(A, v, mu[t])
            assert problem.gamma**2 / 2 <= half + 1e-12
            assert half <= smooth + 1e-12
            assert psi - 1e-12 <= smooth <= psi + mu[t] * math.log(n) + 1e-12
            if problem.gamma == 0:
                assert np.linalg.norm(A.T @ q) <= 2 * math.sqrt(math.log(n) / (eta * (t + 1) * (t + 2))) + 1e-12


@pytest.mark.parametrize("name", [n for n in PLAIN if PLAIN[n].guarantee.rounds is not None])
@pytest.mark.parametrize("gamma", [0.3, 0.05, 0.01])
def test_positive_margin_within_the_promised_rounds(name, gamma):
    """A positive margin once T exceeds a constant times √log n/γ.

    Checks: Theorem 2, Theorem 3, Theorem 4, Theorem 7
    """
    problem = separable(40, 5, gamma, seed=13)
    method = PLAIN[name]
    T = math.ceil(method.guarantee.rounds(math.log(problem.n), gamma)) + 1
    trace = gordan.play(problem.A, method, T, record=[])
    assert (problem.A @ trace.w).min() > 0


@pytest.mark.parametrize("p", [2, 3, 6, 12])
@pytest.mark.parametrize("gamma", [0.3, 0.05])
def test_positive_p_norm_margin_within_the_promised_rounds(p, gamma):
    """A positive margin once T exceeds √(2(p-1) log n)/γ.

    Checks: Theorem 5
    """
    problem = separable(40, 5, gamma, norm=p, seed=14)
    for method in (
        methods.accelerated_p_norm_perceptron(p=p),
        methods.accelerated_p_norm_perceptron(p=p, w_set="free"),
        methods.smooth_p_norm_perceptron(p=p),
    ):
        T = math.ceil(method.guarantee.rounds(math.log(problem.n), gamma)) + 1
        trace = gordan.play(problem.A, method, T, record=[])
        assert (problem.A @ trace.w).min() > 0


@pytest.mark.parametrize("gamma", [0.3, 0.1, 0.03])
def test_perceptrons_make_few_mistakes(gamma):
    """Novikoff: at most 1/γ² mistakes; Gentile: at most (p-1)/γ²."""
    for p in (2, 3, 6):
        problem = separable(40, 5, gamma, norm=p, seed=15)
        for output in ("last", "average"):
            method = methods.p_norm_perceptron(p=p, output=output) if p > 2 else methods.perceptron(output=output)
            trace = gordan.play(problem.A, method, 100_000, record=[])
            assert trace.status == "finished"
            assert trace.t[-1] - 1 <= (p - 1) / gamma**2
            assert output == "average" or (problem.A @ trace.w).min() > 0
            lower, upper = trace.bracket
            assert lower <= gamma + 1e-12 <= upper + 2e-12


def test_mirror_prox_certifies_inseparability():
    """‖Aᵀp̄_T‖ ≤ ε for T ≥ 1.5√log n/ε.

    Checks: Theorem 7
    """
    problem = inseparable(40, 6, seed=16)
    for epsilon in (0.3, 0.1, 0.03, 0.01):
        T = math.ceil(1.5 * math.sqrt(math.log(problem.n)) / epsilon)
        trace = gordan.play(problem.A, "mirror_prox_perceptron", T, record=[])
        assert np.linalg.norm(problem.A.T @ trace.p_bar) <= epsilon


def test_products_are_bounded_by_the_moves():
    """‖Aᵀp‖₂ ≤ ‖p‖₁ and ‖Aw‖_∞ ≤ ‖w‖₂ for rows of norm at most 1, through the rows themselves.

    Checks: Lemma 6
    """
    rng = np.random.default_rng(17)
    A = separable(40, 5, 0.1, seed=17).A
    X = gordan.rows.of(A)
    for _ in range(50):
        p, w = rng.standard_normal(len(A)), rng.standard_normal(5)
        assert np.linalg.norm(X.combine(p)) <= np.abs(p).sum() + 1e-12
        assert np.abs(X.scores(w)).max() <= np.linalg.norm(w) + 1e-12
