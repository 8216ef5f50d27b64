"""Long runs without overflow, NaN or loss of the bracket; 200 problems per method against every bound (`make soak`)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from catalogue import every_method, supports
from ledger import Ledger, ends
from problems import cone, inseparable, p_norm, separable

import gordan
from gordan import methods
from gordan.geometry import Simplex, dual_exponent

METHODS = every_method()


def norms_apart():
    A = separable(20, 4, 0.05, seed=31).A
    return A * np.geomspace(1e-6, 1e6, len(A))[:, None]


AWKWARD = {
    "norms-apart": norms_apart,
    "one-row": lambda: np.array([[0.3, -0.4, 0.0]]),
    "zero-row": lambda: np.concatenate((separable(12, 3, 0.1, seed=32).A, np.zeros((1, 3)))),
    "duplicates": lambda: np.repeat(separable(8, 3, 0.1, seed=33).A, 5, axis=0),
    "opposite-pair": lambda: np.array([[1.0, 2.0], [-1.0, -2.0], [0.5, 0.1]]),
    "all-zero": lambda: np.zeros((4, 3)),
}


def long_run(label, name, dtype, rounds):
    method = METHODS[label]
    A = AWKWARD[name]().astype(dtype)
    trace = gordan.play(A, method, rounds)
    A = A.astype(np.float64)
    R = max(p_norm(A, method.norm).max(), 1e-300)
    tol = 1e-9 if dtype == "float64" else 1e-6
    for column in ("margin", "normalized_margin", "lower", "upper", "m", "dual", "regret_w", "regret_p"):
        values = getattr(trace, column)
        assert values is None or np.isfinite(values).all(), column
    for vector in (trace.w, trace.p, trace.p_bar, trace.w_best, trace.p_best):
        assert np.isfinite(vector).all()
    assert (trace.lower <= trace.upper + tol * R).all()
    lower_of, upper_of = ends(method, A)
    assert trace.lower[-1] == pytest.approx(max(0.0, lower_of(trace.w_best)), abs=tol * R)
    assert trace.upper[-1] == pytest.approx(upper_of(trace.p_best), abs=tol * R)
    assert trace.p_best.sum() == pytest.approx(1.0, abs=1e-12)
    assert trace.p_bar.sum() == pytest.approx(1.0, abs=1e-10)  # a sum over the rounds, each rounded
    if trace.bound is not None:
        # of methods that count mistakes it bounds the upper end, in units of the largest norm
        excess = (trace.upper / R if trace.dual is None else trace.dual - trace.m) - trace.bound
        assert excess.max() <= tol + (0 if dtype == "float64" else 1e-4 * trace.bound[-1])


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("label", METHODS)
def test_some_rounds(label, name):
    long_run(label, name, "float64", 250)


@pytest.mark.parametrize("label", METHODS)
def test_a_thousand_rounds(label):
    long_run(label, "norms-apart", "float32", 1000)


@pytest.mark.soak
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["norms-apart", "one-row", "zero-row", "duplicates"])
@pytest.mark.parametrize("label", METHODS)
def test_a_hundred_thousand_rounds(label, name, dtype):
    long_run(label, name, dtype, 100_000)


SETS = {"simplex": {}, "caps": {"caps": np.full(10, 0.3)}, "halves": {"halves": np.arange(10) % 2}}
PLAYED = [
    pytest.param(label, sets, id=f"{label}-{sets}")
    for label, method in METHODS.items()
    for sets in SETS
    if not math.isnan(method.passes) and supports(method, SETS[sets]) is None
]


def noise_cost(method, problem):
    """What noise takes from the margin of the plane of the problem: ε‖w‖_r/‖w‖."""
    if not method.noisy:
        return 0.0
    n, w = problem.n, problem.w
    noise = method.build(gordan.rows.of(problem.A), Simplex(n), np.full(n, 1 / n)).game.noise
    return noise.radius * p_norm(w, dual_exponent(noise.q)) / np.linalg.norm(w)


@pytest.mark.parametrize("rounds", [1000, pytest.param(100_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("label", "sets"), PLAYED)
def test_large_scores_do_not_lose_the_bracket(label, rounds, sets):
    """A large margin makes scores of the order of γ²t²: the ends stay on their sides of γ*, and p keeps its mass."""
    method = METHODS[label]
    problem = cone(10, 4, 0.9, norm=method.norm, seed=34)
    trace = gordan.play(problem.A, method, rounds, **SETS[sets])
    assert (trace.lower <= trace.upper + 1e-9).all()
    if sets == "simplex":
        assert trace.lower[-1] <= 0.9 + 1e-9
        assert trace.upper[-1] >= 0.9 - noise_cost(method, problem) - 1e-9
    for p in (trace.p, trace.p_bar, trace.p_best):
        assert abs(p.sum() - 1) <= 1e-10


PROBLEMS = {
    "separable": {},
    "capped": {"nu": 0.3},
    "halves": {"halves": True},
    "inseparable": {"inseparable": True},
}
FURTHER = {
    # without passes a round are those that end: test_sequel
    **{label: m for label, m in METHODS.items() if not math.isnan(m.passes)},
    **{f"accelerated_p_norm_perceptron-p={p}": methods.accelerated_p_norm_perceptron(p=p) for p in (2.0, 6.0)},
    **{f"smooth_p_norm_perceptron-p={p}": methods.smooth_p_norm_perceptron(p=p) for p in (2.0, 6.0)},
}


FURTHER_PROBLEMS = [
    pytest.param(label, kind, id=f"{label}-{kind}")
    for label, method in FURTHER.items()
    for kind, options in PROBLEMS.items()
    if supports(method, {key for key in options if key in ("nu", "halves")}) is None
]


@pytest.mark.soak
@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize(("label", "kind"), FURTHER_PROBLEMS)
def test_two_hundred_problems_against_every_bound(label, part, kind):
    """Ten problems a part and kind, 200 a method: d from 2 to 50, γ from 1e-3 to 0.3, 5,000 rounds.

    The first 50 rounds are checked, then 20 a decade.
    """
    rng = np.random.default_rng(part)
    checked = {*range(1, 51), *(int(t) for t in np.geomspace(50, 5000, 41))}
    method, options = FURTHER[label], PROBLEMS[kind]
    worst = 0.0
    for k in range(10):
        seed = 1000 * part + k
        n, d = int(rng.integers(8, 80)), int(rng.integers(2, 51))
        gamma = float(10 ** rng.uniform(-3, math.log10(0.3)))
        if "inseparable" in options:
            problem = inseparable(n, d, seed)
            scaled = problem.A / p_norm(problem.A, method.norm).max()
            ledger = Ledger(scaled, scaled, method, gamma=None if method.noisy else 0.0)
        elif kind == "separable" and k % 2:
            problem = cone(n, d, gamma, norm=method.norm, seed=seed)
            ledger = Ledger(problem.A, problem.A, method, gamma=None if method.noisy else gamma)
        else:
            problem = separable(n, d, gamma, norm=method.norm, seed=seed, halves="halves" in options)
            known = None if "nu" in options or method.noisy else gamma  # under noise the margin is another one
            ledger = Ledger(problem.A, problem.A, method, gamma=known, nu=options.get("nu"), halves=problem.halves)
        ledger.check(5000, checked)
        worst = max(worst, ledger.worst)
    print(f"{label}, {kind}, part {part}: largest gap/bound {worst:.3f}")
