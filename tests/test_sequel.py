"""Beyond the paper: the methods of its sequel and of its open question, each bound at every round, and both forms compared.

What breaks a bound is tested as well: with those changes the bound must fail.
"""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import printed
import pytest
from catalogue import every_method
from ledger import Ledger
from problems import cone, inseparable, p_norm, separable
from test_equivalences import averages, close, data, iterates  # noqa: F401
from test_theorems import P_NORM, PLAIN

import gordan
from gordan import methods
from gordan.dynamics import Protocol1, run
from gordan.game import Game
from gordan.geometry import Entropy, Simplex
from gordan.learners import BestResponse, Leader
from gordan.methods.projection_rescaling import Projected

T = 60
NORMS = (2.0, 3.0, 6.0, 12.0)
ALL_NORMS = (1.0, 1.5, 2.0, 4.0, math.inf)
MIRROR = {
    **{f"mirror-p{p:g}": methods.mirror_descent(p=p) for p in NORMS},
    **{f"mirror-constant-{eta}": methods.mirror_descent(weights="constant", eta=eta) for eta in (0.25, 2.0)},
    "mirror-game": methods.mirror_descent(form="game"),
}
GAMES = {
    **{f"steepest-p{p:g}": methods.steepest_descent(p=p) for p in NORMS},
    "steepest-game": methods.steepest_descent(form="game"),
    **{f"normalized-p{p:g}": methods.steepest_descent(p=p, step="normalized") for p in ALL_NORMS},
    **MIRROR,
    **{f"nesterov-p{p:g}": methods.nesterov(p=p) for p in NORMS},
    "frank-wolfe": methods.frank_wolfe(),
    "frank-wolfe-search": methods.frank_wolfe(step="line search"),
    "frank-wolfe-game": methods.frank_wolfe(form="game"),
    "box": methods.box_perceptron(),
    "box-p1.5": methods.box_perceptron(p=1.5),
    **{f"pdhg-{omega}": methods.pdhg(omega=omega) for omega in (0.4, 1.0, 2.4)},
    "pdhg-game": methods.pdhg(form="game"),
    **{f"robust-{s:g}": methods.robust_perceptron(noise=0.05, noise_norm=s) for s in (1.0, 2.0, math.inf)},
    "perceptron": methods.perceptron(),
    "perceptron-p3": methods.p_norm_perceptron(p=3.0),
}
# The share of a bound that is used up at least, where that is less than 0.15.
SHARES = dict.fromkeys(MIRROR, 0.02)


def own_bound(name, A):
    """The bounds that depend on more than D, written out; None for the others."""
    n, d = A.shape
    if name.startswith("box"):
        size = d ** (2 / GAMES[name].norm - 1)
        return lambda t: math.sqrt(2 * size * max(math.log(n), math.log(2))) / t
    if name.startswith("pdhg"):
        omega, L = float(name.partition("-")[2].replace("game", "1")), np.linalg.norm(A, 2)
        return lambda t: L * (omega / 2 + (1 - 1 / n) / (2 * omega)) / t
    return None


def check(name, A, gamma, rounds=150):
    """Every bound at every round; the largest share of a bound that was used. Under noise the margin is another one."""
    ledger = Ledger(A, A, GAMES[name], gamma=None if GAMES[name].noisy else gamma, gap=own_bound(name, A))
    ledger.check(rounds if GAMES[name].norm != 1.5 else 30)
    return ledger.worst


@pytest.mark.parametrize("name", GAMES)
def test_every_bound_at_every_round(name):
    norm = GAMES[name].norm
    worst = 0.0
    for n, d, gamma in ((6, 3, 0.05), (20, 8, 0.1), (8, 3, 0.9)):
        worst = max(worst, check(name, cone(n, d, gamma, norm=norm, seed=n).A, gamma))
    if norm < math.inf:
        for n, d, gamma in ((20, 2, 0.3), (40, 5, 0.1)):
            worst = max(worst, check(name, separable(n, d, gamma, norm=norm, seed=n).A, gamma))
    A = inseparable(30, 4, seed=5).A
    check(name, A / p_norm(A, norm).max(), 0.0)
    A = np.random.default_rng(7).standard_normal((12, 5))
    check(name, A / p_norm(A, norm).max(), None)
    assert worst > SHARES.get(name, 0.15)


def test_every_theorem_is_tested():
    """Each form of a method whose guarantee declares a bound is in a table that `Ledger` checks, here or in test_theorems."""
    declared = {
        (method.name, method.form)
        for method in every_method().values()
        if any((method.guarantee.gap, method.guarantee.margin, method.guarantee.upper))
    }
    tested = {(method.name, method.form) for method in (*PLAIN.values(), *P_NORM.values(), *GAMES.values())}
    assert declared <= tested, declared - tested


@pytest.mark.soak
@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("name", GAMES)
def test_forty_larger_problems_against_every_bound(name, part):
    """Separable, overlapping and flat cones, n < 100 and d < 50, 400 rounds."""
    rng, norm, worst = np.random.default_rng(part), GAMES[name].norm, 0.0
    for k in range(8):
        n, d, gamma = int(rng.integers(8, 100)), int(rng.integers(2, 50)), float(10 ** rng.uniform(-3, -0.5))
        if k % 2:
            worst = max(worst, check(name, cone(n, d, gamma, norm=norm, seed=8 * part + k).A, gamma, 400))
            continue
        A = rng.standard_normal((n, d)) * rng.random((n, 1))
        A = A if k % 4 else A * np.sign(A @ rng.standard_normal(d))[:, None]
        worst = max(worst, check(name, A / p_norm(A, norm).max(), None, 400))
    print(f"{name}, part {part}: largest gap/bound {worst:.3f}")


# ---- two forms of one method -----------------------------------------------------------------------------------------


def both_forms(method, X, **options):
    """[(game, published)] moves; the same to 1e-10."""
    game, published = (iterates(method(form=form, **options), X) for form in ("game", "published"))
    for (_, one), (_, other) in zip(game, published, strict=True):
        for part in ("w", "p", "combination"):
            close(getattr(one, part), getattr(other, part))
        assert one.alpha == other.alpha
    return game, published


@pytest.mark.parametrize(
    ("p", "step"), [(2.0, "plain"), (3.0, "plain"), (12.0, "plain"), (1.5, "normalized"), (4.0, "normalized")]
)
def test_steepest_descent(data, p, step):  # noqa: F811
    A, X = data
    if step == "normalized" and not np.linalg.norm(A.mean(axis=0)) > 1e-3:
        A = X = separable(30, 4, 0.1, seed=9).A  # where Aᵀp is rounding, its direction is, too
    game, published = both_forms(methods.steepest_descent, X, p=p, step=step)
    w_bar, _, S = averages(game)
    factor = 1 / (p - 1) if step == "plain" else 1.0
    for t, v in enumerate(printed.steepest_descent(A, T, p, step)):
        close(published[t][1].output.w, v)
        close(factor * S[t] * w_bar[t], v)


@pytest.mark.parametrize("p", [1.0, math.inf])
def test_sign_descent_and_boosting(p):
    """Where no score ties, which rounding would break in two ways."""
    A = separable(30, 6, 0.05, norm=2.0, seed=1).A
    _, published = both_forms(methods.steepest_descent, A, p=p, step="normalized")
    for t, v in enumerate(printed.steepest_descent(A, T, p, "normalized")):
        close(published[t][1].output.w, v)


def test_plain_steepest_descent_in_the_2_norm_is_normalized_gradient_descent(data):  # noqa: F811
    _, X = data
    for form in ("game", "published"):
        one, other = (
            iterates(method, X)
            for method in (methods.steepest_descent(p=2.0, form=form), methods.normalized_gradient_descent(form=form))
        )
        for (_, a), (_, b) in zip(one, other, strict=True):
            close(a.w, b.w)
            close(a.p, b.p)


@pytest.mark.parametrize("step", ["constant", "1/sqrt(t)"])
def test_normalized_gradient_descent_has_a_game_form(data, step):  # noqa: F811
    A, X = data
    game, published = both_forms(methods.normalized_gradient_descent, X, step=step)
    w_bar, _, S = averages(game)
    reference = printed.normalized_gradient_descent(A, T, lambda t: 1.0 if step == "constant" else t**-0.5)
    for t, v in enumerate(reference):
        close(S[t] * w_bar[t], v)
        close(published[t][1].output.w, v)


@pytest.mark.parametrize("p", [2.0, 3.0, 12.0])
def test_nesterov_in_p_norms(data, p):  # noqa: F811
    A, X = data
    A, X = A / 2, X / 2
    game, published = both_forms(methods.nesterov, X, p=p)
    w_bar, _, S = averages(game)
    for t, s in enumerate(printed.nesterov_p(A, T, p)):
        close(published[t][1].output.w, s, 1e-9)
        close(S[t] * w_bar[t] / (4 * (p - 1)), s, 1e-9)


@pytest.mark.parametrize(("weights", "eta"), [("constant", 1.0), ("linear", 0.05)])
@pytest.mark.parametrize("p", [2.0, 3.0])
def test_mirror_descent(data, p, weights, eta):  # noqa: F811
    """With short steps: with long ones, near those of Frank–Wolfe, rounding grows from round to round."""
    A, X = data
    game, published = both_forms(methods.mirror_descent, X, p=p, weights=weights, eta=eta)
    w_bar, _, _ = averages(game)
    for t, (w, p_t) in enumerate(printed.mirror_descent(A, T, p, weights, eta)):
        close(game[t][1].w, w)
        close(game[t][1].p, p_t)
        close(published[t][1].output.w, w_bar[t])


def test_frank_wolfe(data):  # noqa: F811
    A, X = data
    game, published = both_forms(methods.frank_wolfe, X)
    w_bar, p_bar, _ = averages(game)
    for t, p in enumerate(printed.frank_wolfe(A, T)):
        close(p_bar[t], p)
        close(published[t][1].p_bar, p)
        close(published[t][1].output.w, w_bar[t])


@pytest.mark.parametrize("omega", [0.4, 1.0, 2.4])
def test_pdhg(data, omega):  # noqa: F811
    """The game's (w_t, p_t) is the published (w_t, p_{t-1})."""
    A, X = data
    game, _ = both_forms(methods.pdhg, X, omega=omega)
    reference = printed.pdhg(A, T, omega)
    for t in range(T):
        close(game[t][1].w, reference[t][0])
        close(game[t][1].p, reference[t - 1][1] if t else np.full(len(A), 1 / len(A)))


def test_the_box_game(data):  # noqa: F811
    A, X = data
    A, X = A / 4, X / 4
    game = iterates(methods.box_perceptron(), X)
    for t, (w, p) in enumerate(printed.box(A, T)):
        close(game[t][1].w, w)
        close(game[t][1].p, p)


# ---- what the bounds need --------------------------------------------------------------------------------------------

SKEW = np.array([[1.0, 0.0], [-0.9, 0.1]])


def gap(A, w_bar, p_bar, p):
    """The gap of the regularized game, by its definition."""
    return 0.5 * p_norm(A.T @ p_bar, p) ** 2 - ((A @ w_bar).min() - 0.5 * p_norm(w_bar, p / (p - 1)) ** 2)


def share(form, A, bound, rounds=60):
    """The largest gap/bound of a form over its rounds."""
    rows = gordan.rows.of(A)
    p_set = Simplex(len(A))
    trace = run(form(rows, p_set, p_set.centre), rounds, record=range(1, rounds + 1))
    return max((dual - m) / bound(t) for t, dual, m in zip(trace.t, trace.dual, trace.m, strict=True))


def test_plain_steepest_descent_needs_p_of_at_least_2():
    p = 1.2
    q, D, v, P, worst = p / (p - 1), math.log(2), np.zeros(2), np.zeros(2), 0.0
    for t in range(1, 201):
        weights = printed.softmax(-SKEW @ v)
        w = printed.link(SKEW.T @ weights, p)
        v, P = v + (q - 1) * w, P + weights
        worst = max(worst, gap(SKEW, v / ((q - 1) * t), P / t, p) / (((p - 1) * D + 0.5) / t))
    assert worst > 10
    with pytest.raises(gordan.InputError, match="2 <= p"):
        methods.steepest_descent(p=p, step="plain")
    assert (
        methods.steepest_descent(p=p).guarantee.statement == methods.steepest_descent(p=p, step="normalized").guarantee.statement
    )


@pytest.mark.parametrize(("p", "least"), [(1.5, 2.0), (1.2, 10.0)])
def test_nesterov_needs_p_of_at_least_2(p, least):
    q, D = p / (p - 1), math.log(2)

    def form(rows, p_set, p0):
        game = Game(rows, p_set, p0, norm=p)
        return Protocol1(
            game,
            w=Leader(game.w_set, np.zeros(2), hint="current", curvature=game.w_curvature),
            p=Leader(p_set, p0, Entropy(), (q - 1) / 4, hint="last"),
            first="p",
            weight=float,
        )

    assert share(form, SKEW, lambda t: (8 * (p - 1) * D + (q - 1) / 4) / (t * (t + 1)), 200) > least
    with pytest.raises(gordan.InputError, match="2 <= p"):
        methods.nesterov(p=p)


def test_mirror_descent_needs_p_of_at_least_2():
    p, eta, D = 1.05, 100.0, math.log(2)

    def form(rows, p_set, p0):
        game = Game(rows, p_set, p0, norm=p)
        w = Leader(game.w_set, np.zeros(2), curvature=game.w_curvature)
        return Protocol1(game, w=w, p=BestResponse(p_set, p0, Entropy(), eta), first="w", weight=lambda t: 1.0)

    assert share(form, SKEW, lambda t: (1 + math.log(t)) * (2 * (p - 1) + D / eta) / t, 200) > 2
    with pytest.raises(gordan.InputError, match="2 <= p"):
        methods.mirror_descent(p=p)


def test_three_times_the_step_breaks_the_bound_of_the_box_game():
    worst = 0.0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((int(rng.integers(2, 12)), int(rng.integers(1, 8))))
        A /= np.abs(A).sum(axis=1).max()
        n, d = A.shape
        w_sum, p_sum = np.zeros(d), np.zeros(n)
        for t, (w, p) in enumerate(printed.box(A, 60, widened=3.0), 1):
            w_sum, p_sum = w_sum + w, p_sum + p
            reached = np.abs(A.T @ p_sum).sum() / t - (A @ w_sum).min() / t
            worst = max(worst, reached / (math.sqrt(2 * d * math.log(n)) / t))
    assert worst > 1


def test_pdhg_needs_the_pair_of_the_game():
    """For (w_t, p_t) the bound is false; ½(1/√τ + √((1-1/n)/σ))²/T holds."""
    A = np.array([[0.0524], [-0.0247], [1.0]])
    omega, L = 1 / 2.4, np.linalg.norm(A, 2)
    tau, sigma = 1 / (omega * L), omega / L
    w_sum, p_sum, worst, proved = 0.0, 0.0, 0.0, 0.0
    for w, p in printed.pdhg(A, 60, omega):
        w_sum, p_sum = w_sum + w, p_sum + p
        reached = np.linalg.norm(A.T @ p_sum) - (A @ w_sum).min()
        worst = max(worst, reached / (1 / (2 * tau) + (1 - 1 / 3) / (2 * sigma)))
        proved = max(proved, reached / (0.5 * (1 / math.sqrt(tau) + math.sqrt((1 - 1 / 3) / sigma)) ** 2))
    assert worst > 1
    assert proved <= 1


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(100, 140))])
def test_the_published_pair_of_pdhg_has_a_bound_of_its_own(seed):
    """½(1/√τ + √((1-1/n)/σ))²/T at every round, for the averages of (w_t, p_t)."""
    rng = np.random.default_rng(seed)
    n, d = (20, 8) if seed < 100 else (150, 50)
    A, omega = rng.standard_normal((int(rng.integers(2, n)), int(rng.integers(1, d)))), float(10 ** rng.uniform(-0.5, 0.5))
    A /= p_norm(A, 2).max()
    n, L = len(A), np.linalg.norm(A, 2)
    constant = 0.5 * L * (math.sqrt(omega) + math.sqrt((1 - 1 / n) / omega)) ** 2
    w_sum, p_sum = 0.0, 0.0
    for w, p in printed.pdhg(A, 100, omega):
        w_sum, p_sum = w_sum + w, p_sum + p
        assert np.linalg.norm(A.T @ p_sum) - (A @ w_sum).min() <= constant * (1 + 1e-12)


@pytest.mark.parametrize("eta", [0.25, 2.0])
@pytest.mark.parametrize("times", [1, pytest.param(6, marks=pytest.mark.soak)])
def test_the_twin_of_the_heavy_ball_has_a_bound(eta, times):
    """w FTL, p FTRL⁺, α = t: 8/(T+1) + 2D/(ηT(T+1)), for any step."""
    n, d = 20 * times, 4 * times
    for A in (cone(n, 2 * d, 0.1, seed=3).A, separable(2 * n, d + 1, 0.1, seed=4).A, inseparable(n + 10, d, seed=5).A):
        A = A / p_norm(A, 2).max()
        D = math.log(len(A))

        def form(rows, p_set, p0):
            game = Game(rows, p_set, p0)
            w = Leader(game.w_set, np.zeros(rows.d), curvature=game.w_curvature)
            return Protocol1(game, w=w, p=Leader(p_set, p0, Entropy(), eta, hint="current"), first="w", weight=float)

        assert share(form, A, lambda t, D=D: 8 / (t + 1) + 2 * D / (eta * t * (t + 1)), 150) <= 1


def test_the_heavy_ball_has_not_the_bound_of_nesterov():
    """Without the hint, which makes it Polyak's heavy ball: 99 rows 1 and one row 0.35."""
    A = np.append(np.ones(99), 0.35)[:, None]

    def form(rows, p_set, p0):
        game = Game(rows, p_set, p0)
        w = Leader(game.w_set, np.zeros(1), hint="current", curvature=game.w_curvature)
        return Protocol1(game, w=w, p=Leader(p_set, p0, Entropy(), 0.25), first="p", weight=float)

    D = math.log(100)
    assert share(form, A, lambda t: (8 * D + 2) / (t * (t + 1)), 20) > 1
    assert share(methods.nesterov().build, A, lambda t: (8 * D + 0.25) / (t * (t + 1)), 20) < 1


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(100, 200))])
def test_von_neumann_by_line_search(seed):
    """‖Aᵀp_t‖² ≤ 1/t as long as no margin has been positive."""
    rng = np.random.default_rng(seed)
    most = (40, 15) if seed < 100 else (200, 60)
    A = rng.standard_normal((int(rng.integers(2, most[0])), int(rng.integers(2, most[1]))))
    A = A if seed % 2 else A * np.sign(A @ rng.standard_normal(A.shape[1]))[:, None]
    A /= np.linalg.norm(A, axis=1).max()
    seen = []
    gordan.play(A, methods.frank_wolfe(step="line search"), 200, record=range(1, 201), callback=seen.append)
    bound = methods.frank_wolfe(step="line search").guarantee.unseparated
    separated = next((k for k, moment in enumerate(seen) if moment.margin > 0), len(seen) - 1)
    assert separated > 0 or (A @ A.mean(axis=0)).min() > 0  # by p_0 alone
    for moment in seen[1 : separated + 1]:  # round t + 1 looks at p_t
        assert bound(moment.t) ** 2 == pytest.approx(1 / (moment.t - 1))
        assert np.linalg.norm(A.T @ moment.p) <= bound(moment.t) + 1e-12


@pytest.mark.parametrize("step", ["line search", "away", "pairwise"])
def test_frank_wolfe_with_line_search_closes_the_bracket(step):
    problem = separable(40, 5, 0.1, seed=3)
    trace = gordan.play(problem.A, methods.frank_wolfe(step=step), 2000)
    lower, upper = trace.bracket
    assert lower <= 0.1 + 1e-12 <= upper + 2e-12
    assert upper - lower <= (5e-3 if step == "line search" else 1e-9)


@pytest.mark.parametrize("step", ["line search", "away", "pairwise"])
def test_frank_wolfe_does_not_lose_what_it_moves_along(step):
    """Where rows cancel, Aᵀp falls to its rounding and no further: what the bracket says is that of p."""
    A = np.random.default_rng(4).standard_normal((40, 3))
    A /= p_norm(A, 2).max()
    trace = gordan.play(A, methods.frank_wolfe(step=step), 2000)
    assert np.linalg.norm(A.T @ trace.p_best) <= 1e-12
    assert trace.upper[-1] >= 1e-25
    assert abs(np.linalg.norm(A.T @ trace.p_best) - trace.upper[-1]) <= 1e-15


def test_restarted_pdhg_closes_the_bracket_and_nobody_claims_a_bound():
    problem = cone(30, 10, 1e-2, seed=4)
    trace = gordan.play(problem.A, methods.pdhg(restart=True), 3000)
    lower, upper = trace.bracket
    assert trace.bound is None
    assert lower <= 1e-2 + 1e-12 <= upper + 2e-12
    assert upper - lower <= 1e-8


# ---- online learning -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [2, 7, 100, 1001])
def test_follow_the_leader_suffers_linear_regret(rounds):
    """Losses (½, 0), (0, 1), (1, 0), (0, 1), … on the simplex of two: regret T/2 - ¼; regularized √(T log 2/2) at most."""
    start = np.full(2, 0.5)

    def regret(learner):
        state, paid, total = learner.start(), 0.0, np.zeros(2)
        for t in range(1, rounds + 1):
            loss = np.array([0.5, 0.0]) if t == 1 else np.array([0.0, 1.0]) if t % 2 == 0 else np.array([1.0, 0.0])
            z = learner.play(state, 1.0, None)
            state, paid, total = learner.update(state, 1.0, loss, z), paid + z @ loss, total + loss
        return paid - total.min()

    assert regret(Leader(Simplex(2), start)) == rounds / 2 - 0.25
    eta = math.sqrt(8 * math.log(2) / rounds)
    assert regret(Leader(Simplex(2), start, Entropy(), eta)) <= math.sqrt(rounds * math.log(2) / 2)


@pytest.mark.parametrize(("p", "method"), [(2, methods.perceptron()), (3, methods.p_norm_perceptron(p=3.0))])
def test_the_bound_of_a_perceptron_is_on_its_mistakes(p, method):
    """‖Aᵀp̄_T‖_p ≤ √((p-1)/T) after T mistakes, which is `trace.bound`; it holds with separable rows and with others."""
    overlapping = inseparable(30, 5, seed=6).A
    for A in (overlapping / p_norm(overlapping, p).max(), separable(40, 5, 0.03, norm=p, seed=15).A):
        seen = []
        trace = gordan.play(A, method, 500, record=range(1, 501), callback=seen.append)
        mistakes = np.maximum(1, trace.t - 1)
        assert trace.bound == pytest.approx(np.sqrt((p - 1) / mistakes))
        assert all(p_norm(A.T @ moment.p_bar, p) <= moment.bound * (1 + 1e-12) for moment in seen)


# ---- rescaling -------------------------------------------------------------------------------------------------------


def chain(delta, d, slope=2.0):
    """w_1 > 0, κw_i < w_{i+1} < κ(1 + δ)w_i: a thin cone, rows of norm 1."""
    rows = [np.eye(d)[0]]
    for i in range(d - 1):
        for sign, factor in ((1, -slope), (-1, slope * (1 + delta))):
            row = np.zeros(d)
            row[i + 1], row[i] = sign, factor
            rows.append(row)
    return np.array(rows) / np.linalg.norm(rows, axis=1)[:, None]


def phases(method, A, rounds):
    """[(round of the phase, state before, state after, Round)] of a form, one for each round, until it has finished."""
    rows, out = gordan.rows.of(A), []
    p_set = Simplex(len(A))
    form = method.on(rows, p_set, p_set.centre)
    state = form.start()
    for t in range(1, rounds + 1):
        before = state
        state, played = form.round(state, t)
        out.append((t - before.since, before, state, played))
        if played.finished:
            break
    return out


# rounds of a phase at most, of n rows in d dimensions
BASIC = {
    "smooth_perceptron": lambda n, d, D: 3 * d * math.sqrt(8 * D),
    "nesterov": lambda n, d, D: 3 * d * math.sqrt(2 * (8 * D + 0.25)),
    "perceptron": lambda n, d, D: 9 * d * d,
    "frank_wolfe": lambda n, d, D: 16 * 9 * d * d,
    "line search": lambda n, d, D: 9 * d * d,
    "mirror_prox_perceptron": lambda n, d, D: 4.5 * d * math.sqrt(D),
    "pdhg": lambda n, d, D: 3 * d * math.sqrt(n),
}


@pytest.mark.parametrize("step", ["adaptive", "plain"])
@pytest.mark.parametrize("basic", BASIC)
def test_rescaled_perceptron_keeps_its_invariants_in_every_phase(basic, step):
    rng = np.random.default_rng(5)
    check_phases(
        basic, step, rng, [(int(rng.integers(4, 25)), int(rng.integers(2, 7)), int(rng.integers(1, 5))) for _ in range(6)]
    )


@pytest.mark.soak
@pytest.mark.parametrize("step", ["adaptive", "plain"])
@pytest.mark.parametrize("basic", BASIC)
def test_invariants_of_rescaling_on_larger_problems(basic, step):
    rng = np.random.default_rng(6)
    sizes = [(int(rng.integers(20, 100)), int(rng.integers(5, 25)), int(rng.integers(2, 9))) for _ in range(8)]
    check_phases(basic, step, rng, sizes if step == "adaptive" else [(n, min(d, 8), min(power, 4)) for n, d, power in sizes])


def check_phases(basic, step, rng, sizes):
    """Feasible w stay in the ellipsoid; each gain is at least log 2 - 1/3, all of them at most 2d log(1 + 1/γ̂); phases and their
    lengths; three upper bounds on γ*; and w separates."""
    for k, (n, d, power) in enumerate(sizes):
        gamma = 10.0**-power
        problem = cone(n, d, gamma, seed=k)
        A, D = problem.A, max(math.log(n), math.log(2))
        played_by = methods.frank_wolfe(step=basic) if basic == "line search" else basic
        run_ = phases(methods.rescaled_perceptron(basic=played_by, step=step), A, 200_000)
        inside = [problem.w]
        for _ in range(5):
            z = rng.standard_normal(d)
            w = problem.w + gamma * z / np.linalg.norm(z)
            inside += [w / np.linalg.norm(w)] if (A @ w >= 0).all() else []
        longest = math.ceil(BASIC[basic](n, d, D)) + 1
        for length, before, after, played in run_:
            assert length <= longest
            assert np.linalg.norm(A.T @ played.p) >= gamma * (1 - 1e-9)
            lengths = np.linalg.norm(A @ before.W, axis=1)
            p = played.p * lengths / (played.p @ lengths)  # back on the rows of the phase
            tighter = np.linalg.norm((p / lengths) @ A @ before.W) / (p / lengths).sum()
            assert gamma <= tighter * (1 + 1e-9)
            if after.phases > before.phases:
                assert tighter <= 1 / math.expm1(after.gain / (2 * d))
                assert after.gain - before.gain >= math.log(2) - 1 / 3 - 1e-12
                assert after.gain <= 2 * d * math.log1p(1 / gamma)
                assert after.phases <= 5.56 * d * math.log1p(1 / gamma)
                assert gamma <= 1 / math.expm1(after.gain / (2 * d))
                assert all(np.linalg.norm(np.linalg.solve(after.W, w)) <= 1 + 1e-7 for w in inside)
        assert run_[-1][3].finished
        assert (A @ run_[-1][3].output.w).min() > 0


@pytest.mark.parametrize("share_of_e", [1.0, 0.5])
def test_the_ellipsoid_holds_the_cone_and_a_longer_step_loses_some_of_it(share_of_e):
    """Few dimensions, the extreme rays of the cone; with 1 + τe/2 in place of 1 + τe the invariant is false."""
    rng, worst = np.random.default_rng(8), 0.0
    for seed in range(20):
        d = 2 + seed % 3
        A = cone(int(rng.integers(d + 1, 8)), d, 10.0 ** -rng.integers(1, 4), seed=seed).A
        rays = [s * np.linalg.svd(A[list(S)])[2][-1] for S in itertools.combinations(range(len(A)), d - 1) for s in (1, -1)]
        U = np.array([ray for ray in rays if (A @ ray >= -1e-12).all()])
        for _, before, after, played in phases(methods.rescaled_perceptron(), A, 500):
            if after.phases == before.phases or not len(U):
                continue
            assert np.linalg.norm(np.linalg.solve(after.W, U.T), axis=0).max() <= 1 + 1e-7
            B = A @ before.W
            p = played.p * np.linalg.norm(B, axis=1)  # back on the rows of that phase
            B, p = B / np.linalg.norm(B, axis=1)[:, None], p / p.sum()
            e = np.linalg.norm(B.T @ p)
            G = (B * (p * np.maximum(1, p / e))[:, None]).T @ B
            tau = max(np.geomspace(1e-3, 1e6 / e, 1000), key=lambda tau, G=G, e=e: tau_gain(tau, G, e))
            u = np.linalg.solve(before.W, U.T)
            u /= np.linalg.norm(u, axis=0)
            worst = max(worst, (1 + tau * np.sum(u * (G @ u), axis=0)).max() / (1 + tau * e * share_of_e))
    assert worst <= 1 + 1e-9 if share_of_e == 1 else worst > 1.2


def tau_gain(tau, G, e):
    """The gain, by its definition."""
    return np.linalg.slogdet(np.eye(len(G)) + tau * G)[1] - len(G) * math.log1p(tau * e)


@pytest.mark.parametrize("form", ["published", "game"])
def test_both_forms_of_the_rescaled_perceptron_play_the_same_rounds(form):
    A = cone(30, 8, 1e-4, seed=2).A
    one, other = (phases(methods.rescaled_perceptron(form=which), A, 2000) for which in (form, "published"))
    assert len(one) == len(other)
    for (_, _, a, x), (_, _, b, y) in zip(one, other, strict=True):
        close(a.W, b.W)
        close(x.p, y.p)
        close(x.output.w, y.output.w)


@pytest.mark.parametrize("A", [cone(80, 40, 1e-8, seed=0).A, chain(1e-6, 10)], ids=["cone 1e-8", "chain"])
def test_rounds_grow_with_the_logarithm_of_the_margin(A):
    """Margins near 1e-8: some hundred rounds, where the Smooth Perceptron alone needs 10^8; the separator holds exactly."""
    trace = gordan.play(A, "rescaled_perceptron", 2000, record=[])
    assert trace.status == "finished"
    assert trace.t[-1] < 400
    w = [Fraction(x) for x in trace.w]
    assert all(sum(Fraction(x) * v for x, v in zip(row, w, strict=True)) > 0 for row in A)


@pytest.mark.parametrize(("slow", "quick", "times"), [({"step": "plain"}, {}, 10), ({}, {"basic": "pdhg"}, 3)])
def test_what_saves_rounds_of_rescaling(slow, quick, times):
    """The adaptive step against the plain one, and phases of PDHG against those of the Smooth Perceptron."""
    A = cone(80, 40, 1e-3, seed=0).A
    rounds = [gordan.play(A, methods.rescaled_perceptron(**options), 20_000, record=[]) for options in (slow, quick)]
    assert [trace.status for trace in rounds] == ["finished"] * 2
    assert all((A @ trace.w).min() > 0 for trace in rounds)
    assert rounds[0].t[-1] > times * rounds[1].t[-1]


@pytest.mark.parametrize(("basic", "own"), [("smooth_perceptron", 3), ("pdhg", 5), ("perceptron", 3)])
def test_rescaling_counts_all_that_it_reads(basic, own):
    """A round of the basic method, Bᵀp̄ and Aᵀq; and Bu where the method does not tell the lowest score."""
    trace = gordan.play(cone(80, 40, 1e-4, seed=0).A, methods.rescaled_perceptron(basic=basic), 200, record=[])
    assert own <= trace.passes[-1] / trace.t[-1] <= own + 0.5


@pytest.mark.parametrize("constant", [False, True])
def test_separate_decides_thin_cones_by_rescaling(constant):
    """No other finder has an answer here; the proof is checked from the raw rows."""
    A = chain(1e-4, 50, 1.5)
    y = np.where(np.arange(len(A)) % 2, 1, -1)
    X = A * y[:, None]
    if constant:  # a further column
        X = np.column_stack([X, np.ones(len(X))])
    verdict = gordan.separate(X, y, intercept="none")
    assert verdict.status == "separable"
    assert gordan.verify(verdict.certificate, X, y)


def test_lengths_of_rows_do_not_matter_to_rescaling():
    """w = (1, ..., 1) separates these rows, whose lengths differ by 1e15: short ones are no rounding of long ones."""
    d = 40
    unit = np.eye(d)
    pairs = [a * unit[i] + b * unit[i + 1] for i in range(d - 1) for a, b in ((-2, 1), (3, -1))]
    A = np.array([unit[0], *pairs]) * 2.5 ** np.arange(d)
    trace = gordan.play(A, "rescaled_perceptron", 300)
    assert (A @ trace.w > 0).all()
    y = np.where(np.arange(len(A)) % 2, 1, -1)
    verdict = gordan.separate(A * y[:, None], y, intercept="none")
    assert verdict.status == "separable"
    assert gordan.verify(verdict.certificate, A * y[:, None], y)


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_thin_cones_are_not_left_to_the_exact_simplex_method(intercept, monkeypatch):
    """Floats say that some 50 of the rows cancel; to refute that exactly took half a minute, others take milliseconds."""
    monkeypatch.setattr("gordan.solve.alternative.alternative", lambda *_: pytest.fail("half a minute"))
    A = cone(80, 40, 1e-10, seed=0).A
    y = np.where(np.arange(len(A)) % 2, 1, -1)
    verdict = gordan.separate(A * y[:, None], y, intercept=intercept)
    assert verdict.status == "separable"
    assert gordan.verify(verdict.certificate, A * y[:, None], y)


def test_rescaling_gives_up_where_it_cannot_help(monkeypatch):
    """A cone too thin for floats: once W has lost its digits, weights are not looked for on and on."""
    rounds = []
    play = Projected.round
    monkeypatch.setattr(Projected, "round", lambda form, state, t: (rounds.append(t), play(form, state, t))[1])
    A = chain(1e-3, 100, 1.5)
    y = np.where(np.arange(len(A)) % 2, 1, -1)
    assert gordan.separate(A * y[:, None], y, intercept="none").status == "margin-below-tol"
    assert 0 < len(rounds) <= 500


def test_rescaling_reduces_to_the_rank():
    rng = np.random.default_rng(4)
    A = cone(40, 3, 1e-4, seed=6).A @ np.linalg.qr(rng.standard_normal((12, 3)))[0].T
    ((_, first, _, _), *_), last = (run_ := phases(methods.rescaled_perceptron(), A, 5000)), run_[-1][3]
    assert first.W.shape == (3, 3)
    assert (A @ last.output.w).min() > 0


def test_rescaling_ends_undecided_where_floats_end():
    """Rows whose cone is thinner than floats can tell: nothing positive is claimed, and W stays below its condition."""
    A = np.array([[1.0, 3.0], [-1.0, -2.9999999999999996]])  # separable, yet e = 0 in floats
    trace = gordan.play(A, "rescaled_perceptron", 1000, record=[])
    assert trace.status in ("finished", "rounds")
    assert trace.lower[-1] == 0
    quasi = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    for _, _, state, _ in phases(methods.rescaled_perceptron(), quasi, 2000):
        sizes = np.linalg.svd(state.W, compute_uv=False)
        assert sizes[0] <= 1e14 * sizes[-1]


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(100, 140))])
def test_projection_rescaling_finds_weights_of_full_support(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal(
        (int(rng.integers(30, 80)), 8) if seed < 100 else (int(rng.integers(60, 200)), int(rng.integers(10, 25)))
    )
    if seed % 2:
        B = chain(0.3, 6 + seed % 10)
        A = np.vstack([B, -B[:3].sum(axis=0) - 0.01 * B[5]])
    A /= np.linalg.norm(A, axis=1).max()
    run_ = phases(methods.projection_rescaling(), A, 20_000)
    p = run_[-1][3].p
    assert run_[-1][3].finished
    assert p.min() > 0
    assert np.linalg.norm(A.T @ p) <= 1e-13
    assert run_[-1][2].phases <= -np.log2(p / p.max()).sum()


def test_projection_rescaling_ends_in_silence_where_there_are_no_weights():
    """Rows that are independent: D grows until it overflows, which ends it."""
    A = [[-2, 2, 0, 0, 1], [-1, 1, 2, 2, -2], [2, 1, 1, -2, 2], [-1, 2, -1, -2, 2], [0, -1, 2, 2, -2]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = gordan.play(np.array(A, dtype=float), "projection_rescaling", 500)
    assert trace.status == "finished"
    assert np.linalg.norm(np.array(A).T @ trace.p_best) > 1e-3


def test_all_weights_cancel_rows_of_zeros():
    trace = gordan.play(np.zeros((3, 2)), "projection_rescaling", 50)
    assert trace.status == "finished"
    assert trace.p.min() > 0


@pytest.mark.parametrize("count", [60, pytest.param(200, marks=pytest.mark.soak)])
def test_rescaling_decides_both_ways(count):
    """The notes' 200 random problems, or 60 of them: always one of the two, never both."""
    rng = np.random.default_rng(3)
    for _ in range(count):
        d = int(rng.integers(2, 15))
        A = rng.standard_normal((int(rng.integers(d + 1, 5 * d)), d))
        trace = gordan.play(A, "rescaling", 2000, record=[])
        assert trace.status == "finished"
        separates = bool((A @ trace.w).min() > 0)
        cancels = bool(trace.p.min() > 0 and np.linalg.norm(A.T @ trace.p) <= 1e-12 * trace.scale)
        assert separates != cancels


def plays_phases(name):
    """Whether a method, as it declares itself, plays for the norm 2 without noise, and something bounds its gap or ‖Aᵀp‖; None
    where it does not play for that norm."""
    try:
        method = methods.get(name).for_norm(2.0)
    except gordan.InputError:
        return None
    one_row = gordan.rows.of(np.ones((1, 1)))
    promised = method.guarantee.gap, method.guarantee.upper, method.guarantee.unseparated
    form = method.on(one_row, Simplex(1), np.ones(1))
    return None if method.noisy else any(bound is not None for bound in (*promised, getattr(form, "bound", None)))


NO_GAP = [name for name in methods.names() if plays_phases(name) is False]


def test_who_plays_the_phases():
    assert {"gradient_descent", "double_oracle", "rescaled_perceptron", "projection_rescaling", "rescaling"} <= {*NO_GAP}
    assert all(map(plays_phases, ("pdhg", "perceptron", "frank_wolfe", *BASIC.keys() - {"line search"})))


@pytest.mark.parametrize("basic", [name for name in methods.names() if plays_phases(name)])
def test_any_method_that_gives_a_gap_plays_the_phases(basic):
    A = cone(30, 8, 1e-3, seed=2).A
    trace = gordan.play(A, methods.rescaled_perceptron(basic=basic), 2000, record=[])
    assert trace.status == "finished"
    assert (A @ trace.w).min() > 0


@pytest.mark.parametrize(
    ("basic", "why"),
    [
        *((name, "promises no gap") for name in NO_GAP),
        (methods.frank_wolfe(step="pairwise"), "promises no gap"),
        (methods.pdhg(restart=True), "promises no gap"),
        ("robust_perceptron", "plays for margins under noise"),  # e stays above 1/(3d): a phase need not end
        ("box_perceptron", "box_perceptron: the norm p is 2.0; it must be a number with 1 <= p < 2"),
        (methods.nesterov(p=3.0), "plays for the norm 3"),
        ("svm", "there is no method"),
        (3, "pass the name of a method"),
    ],
)
def test_basic_methods_that_are_refused(basic, why):
    with pytest.raises(gordan.InputError, match=why):
        methods.rescaled_perceptron(basic=basic)


# ---- noise -----------------------------------------------------------------------------------------------------------


def noisy(s, epsilon):
    """max_δ δ·w and x less its nearest point in ‖·‖_s ≤ ε, by their definitions; the second by a fine search for s = 1."""
    r = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[s]

    def rest(x):
        if p_norm(x, s) <= epsilon:
            return np.zeros_like(x)
        if s == math.inf:
            return x - np.clip(x, -epsilon, epsilon)
        if s == 2:
            return x * (1 - epsilon / p_norm(x, 2))
        low, high = 0.0, np.abs(x).max()
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if np.maximum(np.abs(x) - middle, 0).sum() > epsilon else (low, middle)
        return x - np.sign(x) * np.maximum(np.abs(x) - low, 0)

    return lambda w: epsilon * p_norm(w, r), rest


def noisy_share(A, s, epsilon, eta, rounds):
    """The largest gap/bound over the rounds, by the moves of a transcription; and the bracket at the end."""
    cost, rest = noisy(s, epsilon)
    n, d = A.shape
    C, L, W, P, S, worst = np.zeros(d), np.zeros(n), np.zeros(d), np.zeros(n), 0.0, 0.0
    last, moves = A.T @ np.full(n, 1 / n), []
    for t in range(1, rounds + 1):
        w = rest((C + t * last) / (S + t))
        L = L + t * (A @ w)
        p = printed.softmax(-eta * L)
        last = A.T @ p
        C, S, W, P = C + t * last, S + t, W + t * w, P + t * p
        w_bar, upper = W / S, p_norm(rest(A.T @ P / S), 2)
        m = (A @ w_bar).min() - cost(w_bar) - 0.5 * w_bar @ w_bar
        worst = max(worst, (0.5 * upper**2 - m) / (2 * math.log(n) / (eta * t * (t + 1))))
        assert not w_bar.any() or ((A @ w_bar).min() - cost(w_bar)) / np.linalg.norm(w_bar) <= upper + 1e-12
        moves.append((w, p))
    return worst, moves


@pytest.mark.parametrize("s", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("epsilon", [0.01, 0.1])
def test_robust_perceptron(s, epsilon):
    """Its moves are those of the transcription to 1e-10, and the bound holds at every round."""
    for problem in (separable(30, 6, 0.2, seed=1), inseparable(30, 4, seed=3), cone(20, 5, 0.05, seed=4)):
        A = problem.A
        worst, moves = noisy_share(A, s, epsilon, 0.5, T)
        assert worst <= 1 + 1e-9
        played = iterates(methods.robust_perceptron(noise=epsilon, noise_norm=s), A)
        for (_, one), (w, p) in zip(played, moves, strict=True):
            close(one.w, w)
            close(one.p, p)
        trace = gordan.play(3 * A, methods.robust_perceptron(noise=3 * epsilon, noise_norm=s), 100, record=range(1, 101))
        assert (trace.dual - trace.m <= trace.bound + 1e-12).all()
        assert trace.scale == pytest.approx(3.0)


@pytest.mark.soak
@pytest.mark.parametrize("s", [1.0, 2.0, math.inf])
def test_the_bound_under_noise_on_larger_problems(s):
    worst = 0.0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((int(rng.integers(8, 100)), int(rng.integers(2, 50))))
        A = A if seed % 2 else A * np.sign(A @ rng.standard_normal(A.shape[1]))[:, None]
        epsilon = float(10 ** rng.uniform(-3, -0.5))
        trace = gordan.play(A, methods.robust_perceptron(noise=epsilon, noise_norm=s), 400, record=range(1, 401))
        worst = max(worst, float(((trace.dual - trace.m) / trace.bound).max()))
        worst = max(worst, noisy_share(A / trace.scale, s, epsilon / trace.scale, 0.5, 400)[0])
    print(f"noise in the {s:g}-norm: largest gap/bound {worst:.3f}")
    assert worst <= 1 + 1e-9


@pytest.mark.parametrize("s", [1.0, 2.0, math.inf])
def test_a_longer_step_breaks_the_bound_under_noise(s):
    worst = 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((int(rng.integers(2, 12)), int(rng.integers(1, 6))))
        worst = max(worst, noisy_share(A / p_norm(A, 2).max(), s, 0.01, 2.0, 60)[0])
    assert worst > 1
