"""The double oracle against independent references, in every norm and on every set; and the restricted games it solves.

References: exact rational arithmetic (p = 2, integers), a linear program over all rows and columns (p = ∞), a general convex
solver (SLSQP). Both ends of each bracket are recomputed from the raw rows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import oracle
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger import lowest
from problems import p_norm, separable
from scipy.optimize import linprog, minimize

import gordan
from gordan import rows
from gordan.deadlines import Deadline, Pace
from gordan.geometry import Simplex, dual_exponent, norm
from gordan.solve.corral import descend
from gordan.solve.double_oracle import GAMES, TUNING, DoubleOracle, double_oracle
from gordan.solve.p_norm import PNormGame
from gordan.solve.restricted import FeasibleSet, Gram, Restricted, RowProducts, filled
from gordan.solve.sup_norm import SupNormGame

NORMS = (2.0, 3.0, 6.0, 12.0, math.inf)


# ---- what is true ---------------------------------------------------------------------------------------------------


def groups_of(n, halves):
    return [np.arange(n)] if halves is None else [np.flatnonzero(np.asarray(halves) == half) for half in (0, 1)]


def by_program(A, caps=None, halves=None):
    """p = ∞: max Σ_g mass_g t_g - Σ caps_i ξ_i over A_i w ≥ t_g - ξ_i, ‖w‖₁ ≤ 1, with all rows and columns."""
    n, d = A.shape
    members = groups_of(n, halves)
    mass = 1 / len(members)
    group = np.zeros((n, len(members)))
    for g, own in enumerate(members):
        group[own, g] = 1
    slack = np.zeros((n, 0)) if caps is None else np.eye(n)
    k = slack.shape[1]
    answer = linprog(
        np.r_[np.zeros(2 * d), np.full(len(members), -mass), np.zeros(0) if caps is None else np.minimum(caps, mass)],
        A_ub=np.vstack([np.column_stack([-A, A, group, -slack]), np.r_[np.ones(2 * d), np.zeros(len(members) + k)]]),
        b_ub=np.r_[np.zeros(n), 1.0],
        bounds=[(0, None)] * (2 * d) + [(None, None)] * len(members) + [(0, None)] * k,
        method="highs",
    )
    assert answer.status == 0
    return -answer.fun


def by_descent(A, p, caps=None, halves=None):
    """min ‖Aᵀz‖_p over the set of z, by sequential least squares from its centre; never below the truth."""
    n = len(A)
    p_set = Simplex(n, caps=caps, halves=halves)
    members = groups_of(n, halves)

    def value(z):
        v = A.T @ z
        length = p_norm(v, p)
        if length == 0:
            return 0.0, np.zeros(n)
        return 0.5 * length**2, A @ (np.sign(v) * (np.abs(v) / length) ** (p - 1) * length)

    answer = minimize(
        value,
        p_set.centre,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, top) for top in (np.full(n, 1.0) if p_set.caps is None else p_set.caps)],
        constraints=[
            {
                "type": "eq",
                "fun": lambda z, own=own: z[own].sum() - p_set.mass,
                "jac": lambda z, own=own: np.isin(np.arange(n), own),
            }
            for own in members
        ],
        options={"maxiter": 2000, "ftol": 1e-16},
    )
    assert p_set.contains(answer.x, 1e-7)
    return p_norm(A.T @ answer.x, p)


def truth(A, p, **sets):
    return by_program(A, **sets) if p == math.inf else by_descent(A, p, **sets)


def closed(A, method, rounds=100, tol=1e-6, **sets):
    """The trace of a run that finished, with both ends recomputed from the raw rows and a gap of at most tol."""
    trace = gordan.play(A, method, rounds, **sets)
    dense = np.asarray(A.todense() if sp.issparse(A) else A, dtype=np.float64)
    p_set = Simplex(len(dense), **sets)
    p, q = method.norm, dual_exponent(method.norm)
    R = max(p_norm(row, p) for row in dense)
    lower, upper = trace.bracket
    assert trace.status == "finished"
    assert p_set.contains(trace.p_best, 1e-12)
    assert upper == pytest.approx(p_norm(dense.T @ trace.p_best, p), rel=1e-9, abs=1e-13 * R)
    length = p_norm(trace.w_best, q)
    assert lower == pytest.approx(lowest(dense @ trace.w_best, **sets) / length if length else 0.0, rel=1e-9, abs=1e-13 * R)
    assert lower <= upper * (1 + 1e-12)
    assert upper - lower <= tol * upper or upper <= 1e-11 * R
    return trace


# ---- problems -------------------------------------------------------------------------------------------------------


def _plain(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((14, 4))
    A[:, 0] = 0.2 + np.abs(A[:, 0])
    return A


def _dependent():
    """Rows in a plane, many of them affinely dependent."""
    rng = np.random.default_rng(5)
    return np.column_stack([np.ones(12), rng.integers(-2, 3, 12)]) @ np.array([[1.0, 2.0, -1.0, 3.0], [0.0, 1.0, 1.0, -1.0]])


DATA = {
    "separable": _plain(0),
    "many columns": np.random.default_rng(1).standard_normal((8, 12)),
    "integers": np.random.default_rng(2).integers(-3, 4, (12, 5)) + np.array([4.0, 0, 0, 0, 0]),
    "integers, hull around 0": np.random.default_rng(3).integers(-3, 4, (14, 2)).astype(float),
    "opposite pairs": np.concatenate([_plain(4)[:6], -_plain(4)[:6]]),
    "duplicates": np.repeat(_plain(6)[:5], 3, axis=0),
    "a row of zeros": np.concatenate([_plain(7)[:8], np.zeros((1, 4))]),
    "affinely dependent": _dependent(),
    "unlike columns": _plain(8) * np.array([1.0, 30.0, 0.1, 5.0]),
    "one row": np.array([[3.0, -4.0, 1.0]]),
    "one column": np.array([[2.0], [1.0], [3.0], [1.5]]),
}
SETS = ("plain", "halves", "caps", "both")


def sets_of(kind, n):
    found = {}
    if kind in ("halves", "both"):
        found["halves"] = np.arange(n) % 2
    if kind in ("caps", "both"):
        weights = 1.0 + np.arange(n) % 3
        if kind == "both":
            total = min(weights[own].sum() for own in groups_of(n, found["halves"]))
            found["caps"] = 0.5 * weights / (0.6 * total)
        else:
            found["caps"] = weights / (0.4 * weights.sum())
    return found


CASES = [
    pytest.param(name, kind, id=f"{name}-{kind}")
    for name in DATA
    for kind in SETS
    if len(DATA[name]) > 1 or kind in ("plain", "caps")
]


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.parametrize("p", NORMS)
def test_the_value(p, name, kind):
    A = DATA[name]
    sets = sets_of(kind, len(A))
    trace = closed(A, double_oracle(p=p), **sets)
    R = np.abs(A).max()
    want = truth(A, p, **sets)
    # a general solver stops short by more than we do, the more so where the value is 0 and its root is taken
    eps = 1e-9 * R if p == math.inf else 3e-4 * R if want < 1e-3 * R else 1e-5 * want
    assert trace.lower[-1] <= want + 1e-9 * R
    assert trace.upper[-1] >= want - eps


@pytest.mark.parametrize("name", ["integers", "integers, hull around 0", "duplicates", "affinely dependent", "one row"])
def test_the_value_exactly(name):
    """p = 2, from rational arithmetic."""
    A = DATA[name]
    value = math.sqrt(oracle.squared_margin(A.tolist()))
    trace = closed(A, double_oracle())
    assert trace.lower[-1] <= value + 1e-12
    assert trace.upper[-1] >= value - 1e-12


@pytest.mark.parametrize("p", [2.0, 2.1, 3.0, 6.0, 12.0, 50.0])  # the construction needs a smooth norm
@pytest.mark.parametrize("halves", [False, True])
def test_known_margins(p, halves):
    """Problems made around a known w and γ*; large enough for several rounds."""
    problem = separable(400, 6, 0.05, norm=p, seed=3, halves=halves)
    trace = closed(problem.A, double_oracle(p=p), tol=1e-8, **({"halves": problem.halves} if halves else {}))
    assert trace.upper[-1] == pytest.approx(problem.gamma, rel=1e-7)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("kind", SETS)
def test_storages_and_types(p, kind):
    A = np.where(np.random.default_rng(9).random((60, 8)) < 0.5, 0.0, np.random.default_rng(10).standard_normal((60, 8)))
    A[:, 0] = 0.5
    sets = sets_of(kind, len(A))
    brackets = []
    for dtype in (np.float32, np.float64):
        X = A.astype(np.float32).astype(dtype)
        brackets += [closed(store(X), double_oracle(p=p), **sets).bracket for store in (np.asarray, sp.csr_array)]
    assert max(lower for lower, _ in brackets) <= min(upper for _, upper in brackets) * (1 + 1e-9)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("kind", ["plain", "halves", "caps"])
def test_rows_come_and_go(p, kind):
    """Far more rows than the working set ever holds, so that rounds are needed."""
    rng = np.random.default_rng(11)
    w = np.array([1.0, 0.5, 0.0, 0.0, -0.5])
    A = rng.standard_normal((3000, 5))
    A = A * np.where(A @ w >= 0, 1.0, -1.0)[:, None] + 0.02 * w
    sets = sets_of(kind, len(A))
    if kind == "caps":
        sets["caps"] = np.full(len(A), 1 / (0.1 * len(A)))
    trace = closed(A, double_oracle(p=p), **sets)
    if p == math.inf and kind == "plain":
        assert trace.upper[-1] == pytest.approx(by_program(A), rel=1e-8)
    if kind != "caps":
        assert np.count_nonzero(trace.p_best) <= 12  # rank + groups rows carry it


@pytest.mark.parametrize(("n", "d"), [(40, 3000), (3000, 40)])
def test_sup_norm_has_few_rows_and_columns(n, d):
    rng = np.random.default_rng(12)
    A = sp.random_array((n, d), density=0.05, random_state=rng, format="csr")
    first = sp.csr_array(rng.uniform(0.5, 1.0, (n, 2)))
    A = sp.csr_array(sp.hstack([first, A]))
    trace = closed(A, double_oracle(p=math.inf))
    assert trace.upper[-1] == pytest.approx(by_program(A.toarray()), rel=1e-8)
    assert np.count_nonzero(np.abs(trace.w_best) > 1e-9) <= np.count_nonzero(trace.p_best) + 1


def test_rows_are_not_dropped_and_added_by_turns(monkeypatch):
    """Small integers: many w are optimal for few rows, and each violates others, although ‖Aᵀp‖ does not fall any more."""
    monkeypatch.setattr("gordan.solve.double_oracle.TUNING", replace(TUNING, max_program_rows=20))
    rng = np.random.default_rng(5)
    X = sp.random_array((400, 300), density=0.01, rng=rng, format="csr")
    X.data[:] = 1 + (rng.random(len(X.data)) < 0.3)
    y = np.where(X @ rng.choice([-1, 0, 0, 0, 1], 300) + 0.5 > 0, 1, -1)
    assert gordan.maximize_margin(X, y, norm=math.inf).status == "solved"


@pytest.fixture(scope="module")
def wide():
    """Sparse rows, most of which are support vectors: more than a Gram matrix is made for, and fewer than columns."""
    rng = np.random.default_rng(2)
    A = sp.random_array((420, 900), density=0.02, random_state=rng, format="csr", data_sampler=rng.standard_normal)
    return sp.csr_array(A + sp.csr_array((np.full(420, 0.2), (np.arange(420), np.zeros(420, int))), shape=A.shape))


@pytest.mark.parametrize(("kind", "budget"), [("plain", "enough"), ("halves", "enough"), ("caps", "none")])
def test_wide_rows_by_products(wide, kind, budget, monkeypatch):
    """Conjugate gradients and, where their budget is spent, the Gram matrix: the same value as of the rows as an array."""
    asked = []
    if budget == "none":
        monkeypatch.setattr("gordan.solve.double_oracle.TUNING", replace(TUNING, gram_cost=0.0, factor_cost=0.0))
    stationary = RowProducts.stationary

    def counted(self, *arguments):
        asked.append(len(arguments[0]))
        return stationary(self, *arguments)

    monkeypatch.setattr(RowProducts, "stationary", counted)
    sets = sets_of(kind, wide.shape[0])
    trace = closed(wide, double_oracle(), tol=1e-7, **sets)
    assert asked
    assert max(asked) > 200
    dense = closed(wide.toarray(), double_oracle(), tol=1e-7, **sets)
    assert trace.bracket == pytest.approx(dense.bracket, rel=1e-6)


@pytest.mark.parametrize("p", [2.0, 3.0, math.inf])
def test_more_rows_near_than_the_working_set_holds(p, monkeypatch):
    """The heaviest are kept, and the others come in when they are asked for: brackets of the same value."""
    A = np.random.default_rng(7).standard_normal((450, 40))
    A[:, 0] = 0.3 + np.abs(A[:, 0])
    whole = closed(A, double_oracle(p=p)).bracket
    monkeypatch.setattr("gordan.solve.double_oracle.GAMES", replace(GAMES, max_working_set=12))
    monkeypatch.setattr("gordan.solve.double_oracle.TUNING", replace(TUNING, max_program_rows=12))
    trace = gordan.play(A, double_oracle(p=p), 60)
    lower, upper = trace.bracket
    assert upper == pytest.approx(p_norm(A.T @ trace.p_best, p), rel=1e-9)
    assert lower <= whole[1] * (1 + 1e-12)
    assert whole[0] <= upper * (1 + 1e-12)


def test_sup_norm_under_a_clock(monkeypatch, clock):
    """In time the same answer as without; too late, or without a solver that answers, a feasible p that claims nothing."""
    A = _plain(1)
    n = len(A)
    ways = FeasibleSet(np.zeros(n, np.int64), np.ones(1), np.full(n, np.inf))

    def solve(seconds):
        return SupNormGame(rows.of(A), ways, np.zeros(4), Deadline(clock.now + seconds)).solve(np.ones(n), 1e-9)

    in_time, w = solve(3600.0)
    assert in_time.settled
    assert p_norm(A.T @ in_time.p, math.inf) == pytest.approx(by_program(A), rel=1e-8)
    assert np.min(A @ w) == pytest.approx(np.abs(w).sum() * by_program(A), rel=1e-7)
    late = [solve(-1.0)]
    monkeypatch.setattr("scipy.optimize.linprog", lambda **_: SimpleNamespace(status=4))
    late.append(solve(math.inf))
    for found, w in late:
        assert not found.settled
        assert not w.any()
        assert Simplex(n).contains(found.p, 1e-12)


def test_norms_that_are_refused():
    for p in (1.5, 1e7, "x", math.nan, None):
        with pytest.raises(gordan.InputError, match="the norm p is"):
            double_oracle(p=p)
    assert double_oracle(p=math.inf).norm == math.inf


# ---- what went wrong once -------------------------------------------------------------------------------------------


def allowed(groups, mass, caps):
    """The set, from one indicator column for each group."""
    return FeasibleSet(np.argmax(groups, axis=1), mass, caps)


def test_a_group_with_all_rows_at_bounds():
    """One row at its cap carries a half: none of it is free, and the row that should take over comes in together with it."""
    A = np.array([[1.0], [1.0], [1.0], [-1.0], [-1.5], [-0.5]]) / 1.5
    groups = np.repeat(np.eye(2), 3, axis=0)
    mass, caps = np.full(2, 0.5), np.array([0.5, 0.5, 0.5, 0.25, 0.25, 0.5])
    for start in np.eye(6)[:3, None] + np.eye(6)[3:]:
        for guess in start:
            answer = Restricted(Gram(A @ A.T), allowed(groups, mass, caps), np.zeros(6), 0.0, 1).descend(guess, 1e-12)
            assert answer.settled
            is_optimal(A, np.zeros(1), groups, mass, caps, answer.p)


@pytest.mark.parametrize("size", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("kind", SETS)
def test_nearly_dependent_rows(size, kind):
    """A thin slab: rows that are nearly an affine combination of others decide the margin, which is `size`."""
    rng = np.random.default_rng(13)
    A = rng.standard_normal((40, 3))
    A[:, 0] = size * (1 + rng.random(40))
    closed(A, double_oracle(), **sets_of(kind, len(A)))


@pytest.mark.parametrize("p", NORMS)
def test_nothing_to_separate_ends_it(p):
    """A value of 0 is reached to rounding, and rounding is not worked on."""
    rng = np.random.default_rng(14)
    trace = closed(rng.standard_normal((200, 6)), double_oracle(p=p))
    assert trace.upper[-1] <= 1e-12
    assert trace.t[-1] <= 10


def test_all_rows_at_their_caps():
    """ν = 1: p is the centre, and there is nothing to choose."""
    A = DATA["separable"]
    for p in NORMS:
        trace = closed(A, double_oracle(p=p), caps=np.full(len(A), 1 / len(A)))
        assert trace.upper[-1] == pytest.approx(p_norm(A.mean(axis=0), p), rel=1e-12)


# ---- the restricted games -------------------------------------------------------------------------------------------


@st.composite
def restricted_games(draw):
    """Rows (small integers, so that duplicates, zero rows and dependence are common), groups, caps, and what rows outside add."""
    m, d = draw(st.integers(2, 8)), draw(st.integers(1, 4))
    entries = st.lists(st.integers(-3, 3), min_size=d, max_size=d)
    A = np.array(draw(st.lists(entries, min_size=m, max_size=m)), dtype=np.float64)
    A /= max(1.0, np.linalg.norm(A, axis=1).max())
    r = np.array(draw(entries)) * draw(st.sampled_from([0.0, 0.1]))
    split = draw(st.integers(1, m - 1)) if draw(st.booleans()) else m
    groups = np.zeros((m, 1 if split == m else 2))
    groups[:split, 0] = 1
    groups[split:, 1:] = 1
    mass = np.full(groups.shape[1], 1 / groups.shape[1])
    caps = np.full(m, np.inf)
    if draw(st.booleans()):
        weights = np.array(draw(st.lists(st.integers(1, 3), min_size=m, max_size=m)), dtype=np.float64)
        fewest = min(weights @ groups)
        caps = np.minimum(weights / fewest * mass[0] * draw(st.sampled_from([1.0, 1.25, 2.0, 5.0])), mass[0])
    return A, r, groups, mass, caps


def is_optimal(A, r, groups, mass, caps, p, tol=1e-9):
    """Feasible, and no row of weight has a higher score than a row with room in its group."""
    assert (p >= 0).all()
    assert (p <= caps).all()
    np.testing.assert_allclose(p @ groups, mass, atol=1e-12)
    scores = A @ (A.T @ p + r)
    for column in groups.T:
        own = column > 0
        heavy, room = scores[own & (p > 1e-12)], scores[own & (p < caps * (1 - 1e-12))]
        assert not len(room) or heavy.max() <= room.min() + tol


@settings(max_examples=300)
@given(restricted_games(), st.randoms(use_true_random=False))
def test_restricted_games_are_solved(game, random):
    A, r, groups, mass, caps = game
    restricted = Restricted(Gram(A @ A.T), allowed(groups, mass, caps), A @ r, float(r @ r), A.shape[1])
    guess = np.array([random.choice([0.0, 0.3, 1.0]) for _ in A])
    for answer in (restricted.solve(guess, 1e-12), restricted.descend(guess, 1e-12)):
        assert answer.settled
        is_optimal(*game, answer.p)
        np.testing.assert_allclose(answer.scores, A @ (A.T @ answer.p + r), atol=1e-12)
    # Wolfe's method leaves no dependence among the rows that can move
    free = (answer.p > 0) & (answer.p < caps)
    assert np.linalg.matrix_rank(np.column_stack([A, groups])[free], tol=1e-6) == np.count_nonzero(free)


def descended(A, groups, mass, caps, p, most):
    """p after `most` steps of Wolfe's method, and whether it came to an end."""
    K, p = A @ A.T, np.array(p)
    m, order = len(p), np.argsort(-p, kind="stable")
    left = np.array([most, np.inf])
    done = descend(K, K @ p, groups, mass, caps, order, p, 1e-12, left, np.empty(m), np.empty(len(mass)))
    return p, done


def test_wolfe_stops_with_a_better_feasible_p():
    """Too few steps: not settled, but inside the set, and nearer to 0 with every step."""
    A = _plain(3) / 5
    n = len(A)
    start, caps = np.full(n, 1 / n), np.full(n, 0.3)
    lengths, ended = [np.linalg.norm(A.T @ start)], []
    for most in range(1, 40):
        p, done = descended(A, np.zeros(n, np.int64), np.ones(1), caps, start, most)
        assert Simplex(n, caps=caps).contains(p, 1e-12)
        lengths.append(np.linalg.norm(A.T @ p))
        ended.append(done)
    assert not ended[0]
    assert ended == sorted(ended)
    assert (np.diff(lengths) <= 1e-14).all()
    assert ended[-1]
    is_optimal(A, np.zeros(4), np.ones((n, 1)), np.ones(1), caps, p)


def test_wolfe_leaves_a_group_without_mass_alone():
    """Rows whose group has all its mass outside: the others are solved as if these were not there."""
    A = _plain(3) / 5
    n, half = len(A), np.arange(len(A)) < 7
    start = np.where(half, 1 / 7, 0.0)
    p, done = descended(A, np.where(half, 0, 1), np.array([1.0, 0.0]), np.full(n, np.inf), start, 100)
    alone, _ = descended(A[:7], np.zeros(7, np.int64), np.ones(1), np.full(7, np.inf), start[:7], 100)
    assert done
    assert not p[7:].any()
    np.testing.assert_allclose(p[:7], alone, atol=1e-12)
    is_optimal(A[:7], np.zeros(4), np.ones((7, 1)), np.ones(1), np.full(7, np.inf), p[:7])


@settings(max_examples=60)
@given(restricted_games(), st.sampled_from([2.5, 4.0, 20.0]))
def test_p_norm_games_are_solved(game, p):
    A, r, groups, mass, caps = game
    power = PNormGame(rows.of(A), allowed(groups, mass, caps), r)
    answer = power.solve(p, np.ones(len(A)), 1e-10, near=False)
    v = A.T @ answer.p + r
    length = norm(v, p)
    np.testing.assert_allclose(answer.p @ groups, mass, atol=1e-12)
    assert (answer.p <= caps * (1 + 1e-12)).all()
    if length > 1e-9:
        w = np.sign(v) * (np.abs(v) / length) ** (p - 1) * length
        assert answer.p @ A @ w - power.allowed.cheapest(A @ w)[0] <= 1e-8 * length**2


def test_p_norm_gradient():
    """g = A w is the gradient of ½‖Aᵀz + r‖_p², and A diag((p-1)ω) Aᵀ its Hessian along directions d with g·d = 0."""
    rng = np.random.default_rng(15)
    A, r, z, p, h = rng.standard_normal((5, 7)), rng.standard_normal(7), rng.random(5), 5.0, 1e-4
    game = PNormGame(rows.of(A), allowed(np.ones((5, 1)), np.ones(1), np.full(5, np.inf)), r)
    point = game.at(p, z)
    d = rng.standard_normal(5)
    d -= point.gradient * (point.gradient @ d) / (point.gradient @ point.gradient)

    def value(t):
        return 0.5 * norm(A.T @ (z + t * d) + r, p) ** 2

    assert (value(h) - value(-h)) / (2 * h) == pytest.approx(0.0, abs=1e-6)
    weights = (np.abs(point.v) / point.length) ** (p - 2)
    curvature = (value(h) - 2 * value(0) + value(-h)) / h**2
    assert curvature == pytest.approx((p - 1) * d @ game.rows.gram(np.arange(5), weights=weights) @ d, rel=1e-4)


@settings(max_examples=200)
@given(st.data())
def test_filled_and_cheapest(data):
    n = data.draw(st.integers(1, 8))
    p = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=n, max_size=n)))
    caps = np.array(data.draw(st.lists(st.sampled_from([0.05, 0.2, 1.0, np.inf]), min_size=n, max_size=n)))
    mass = data.draw(st.floats(0.1, 1.0)) * min(float(caps.sum()), 2.0)
    full = filled(p, caps, mass)
    assert (full >= 0).all()
    assert (full <= caps).all()
    assert full.sum() == pytest.approx(mass, rel=1e-11)
    scores = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)), dtype=np.float64)
    least, levels = allowed(np.ones((n, 1)), np.array([mass]), caps).cheapest(scores)
    answer = linprog(scores, A_eq=np.ones((1, n)), b_eq=[mass], bounds=list(zip(np.zeros(n), caps, strict=True)))
    assert least == pytest.approx(answer.fun, abs=1e-9)
    assert caps[scores < levels[0]].sum() <= mass * (1 + 1e-12) <= caps[scores <= levels[0]].sum() * (1 + 1e-9)


def test_state_is_not_changed_by_a_round():
    """A form's state is frozen: the same round can be played twice."""
    A = rows.of(np.random.default_rng(16).standard_normal((500, 4)) + np.array([1.0, 0, 0, 0]))
    for p in NORMS:
        form = double_oracle(p=p).on(A.scaled(1 / A.radius(p)), Simplex(500), np.full(500, 1 / 500))
        assert isinstance(form, DoubleOracle)
        state = form.start()
        kept = state.p.copy(), state.inside.copy()
        first, second = form.round(state, 1)[1], form.round(state, 1)[1]
        np.testing.assert_array_equal(first.p, second.p)
        np.testing.assert_array_equal(state.p, kept[0])
        np.testing.assert_array_equal(state.inside, kept[1])


def test_a_gram_matrix_that_grows_has_a_cost_where_a_new_one_is_not_formed():
    """Rows that are added to the Gram matrix were taken for free if so many alone would be solved by products with them."""
    A = rows.of(sp.random_array((600, 1000), density=0.01, rng=np.random.default_rng(0), format="csr"))
    form = double_oracle().on(A, Simplex(600), np.full(600, 1 / 600))
    form = replace(form, deadline=Deadline(math.inf, lambda: Pace(1e-6, 1e-6)))
    assert form._gram_seconds(300, 300) == 0
    assert form._gram_seconds(300, 500) > form.deadline.pace.gram(A, 300, 500)
