"""Sets and regularizers by their definitions: an argmin is feasible and beats every random feasible point."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog
from scipy.special import softmax, xlogy

from gordan import InputError
from gordan.geometry import Ball, Entropy, NoisySquare, Simplex, SquaredNorm, dual_exponent, dual_vector, norm
from gordan.geometry.sets import fill_level, fill_order

KINDS = ("plain", "caps", "halves", "caps+halves")
EXPONENTS = (2.0, 3.0, 6.0, 12.0)
SEEDS = st.integers(0, 2**32 - 1)


# ---- random sets and random points of them --------------------------------------------------------------------------


def simplex(kind, n, rng):
    """A simplex of that kind. Caps are loose, tight, equal (1/k for some k), or add up to the mass exactly."""
    halves = np.r_[0, 1, rng.integers(0, 2, n - 2)] if "halves" in kind else None
    if "caps" not in kind:
        return Simplex(n, halves=halves)
    style = rng.integers(4)
    caps = np.full(n, 1.0) if style == 0 else rng.uniform(0.02, 1.0, n)
    for members in Simplex(n, halves=halves).members:
        part, mass = caps[members], 1.0 if halves is None else 0.5
        part *= mass / part.sum() * (1.0 if style == 1 else rng.uniform(1.0, len(part) + 1.0))
        caps[members] = mass / rng.integers(1, len(part) + 1) if style == 2 else part
    return Simplex(n, caps=caps, halves=halves)


def random_point(domain, rng):
    """A point of a simplex, written apart from its projections: fill rows in random order, at random up to their caps."""
    p = np.zeros(domain.n)
    for members in domain.members:
        rows = np.arange(domain.n)[members]
        caps = np.ones(len(rows)) if domain.caps is None else domain.caps[rows]
        left = domain.mass
        share = caps * left / caps.sum()  # feasible; move from here towards a greedy vertex
        greedy = np.zeros(len(rows))
        for k in rng.permutation(len(rows)):
            greedy[k] = min(caps[k], left)
            left -= greedy[k]
        t = rng.choice([1.0, rng.random()])
        p[rows] = t * greedy + (1 - t) * share
    return p


def points(domain, rng, count=30):
    if isinstance(domain, Simplex):
        return [random_point(domain, rng) for _ in range(count)]
    radius = 3.0 if math.isinf(domain.radius) else domain.radius
    directions = rng.standard_normal((count, domain.d)) * (rng.random((count, domain.d)) < 0.8)
    lengths = np.linalg.norm(directions, ord=domain.q, axis=1)
    sizes = radius * np.minimum(1.0, rng.random(count) * 1.5)
    return list(directions * (sizes / np.where(lengths > 0, lengths, 1))[:, None])


def assert_feasible(domain, p, tol=1e-9):
    assert p.shape == (domain.n,)
    assert (p >= -tol).all()
    assert domain.caps is None or (p <= domain.caps + tol).all()
    for members in domain.members:
        assert abs(p[members].sum() - domain.mass) <= tol
    assert domain.contains(p)


def entropy(p):
    return float(np.sum(xlogy(p, p)))


def assert_least(objective, z, others):
    """No other point does better than z, up to rounding."""
    best = objective(z)
    assert np.isfinite(best)
    for y in others:
        value = objective(y)
        assert best <= value + 1e-9 * (1 + abs(value)), (best, value)


def theta_of(style, n, rng):
    if style == "extreme":
        return rng.choice([-1e4, 1e4], n)
    if style == "extreme mixed":
        return rng.choice([-1e4, 1e4, 0.0, 3.3], n) + rng.standard_normal(n)
    if style == "equal":
        return np.full(n, rng.standard_normal())
    return rng.standard_normal(n) * {"small": 0.1, "one": 1.0, "large": 50.0}[style]


THETAS = ("small", "one", "large", "equal", "extreme", "extreme mixed")


# ---- the simplex ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("style", THETAS)
@settings(max_examples=15, deadline=None)
@given(n=st.integers(2, 12), seed=SEEDS)
def test_log_softmax_is_the_argmin(kind, style, n, seed):
    rng = np.random.default_rng(seed)
    P, theta = simplex(kind, n, rng), theta_of(style, n, rng)
    log_p = P.log_softmax(theta)
    p = np.exp(log_p)
    assert_feasible(P, p)
    assert_least(lambda y: entropy(y) - theta @ y, p, points(P, rng))
    # the form of the answer: below its cap a row has the weight κ e^θ of its half, at it at most that
    for members in P.members:
        caps = np.full(n, np.inf)[members] if P.caps is None else P.caps[members]
        below = log_p[members] < np.log(caps) - 1e-9
        log_kappa = (log_p - theta)[members]
        if below.any():
            assert np.ptp(log_kappa[below]) <= 1e-6
            assert (log_kappa <= log_kappa[below].max() + 1e-6).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("style", THETAS)
@settings(max_examples=15, deadline=None)
@given(n=st.integers(2, 12), seed=SEEDS)
def test_project_is_the_nearest_point(kind, style, n, seed):
    rng = np.random.default_rng(seed)
    P, y = simplex(kind, n, rng), theta_of(style, n, rng)
    p = P.project(y)
    assert_feasible(P, p)
    # nearest: ⟨y - p, z - p⟩ ≤ 0 for every z of the set, which says more than that the distance is least
    for z in points(P, rng):
        assert (y - p) @ (z - p) <= 1e-9 * (1 + np.abs(y).max())
    assert np.allclose(P.project(p), p, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50, deadline=None)
@given(n=st.integers(2, 12), seed=SEEDS)
def test_vertex_and_lowest(kind, n, seed):
    rng = np.random.default_rng(seed)
    P, s = simplex(kind, n, rng), rng.integers(-3, 4, n) * rng.choice([1.0, 0.01])
    p = P.vertex(s)
    assert_feasible(P, p)
    assert P.lowest(s) == pytest.approx(p @ s, rel=1e-12, abs=1e-12)
    assert_least(lambda y: s @ y, p, points(P, rng))
    # and against the linear program
    sides = np.zeros((len(P.members), n))
    for row, members in zip(sides, P.members, strict=True):
        row[members] = 1
    caps = np.full(n, 1.0) if P.caps is None else P.caps * (1 + 1e-12)
    lp = linprog(s, A_eq=sides, b_eq=np.full(len(sides), P.mass), bounds=np.column_stack((np.zeros(n), caps)))
    assert lp.status == 0
    assert P.lowest(s) == pytest.approx(lp.fun, abs=1e-6)  # the tolerance of HiGHS


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50, deadline=None)
@given(n=st.integers(2, 12), seed=SEEDS)
def test_diameter_bounds_the_divergence(kind, n, seed):
    rng = np.random.default_rng(seed)
    P = simplex(kind, n, rng)
    starts = [P.centre, 0.5 * P.centre + 0.5 * random_point(P, rng)]
    for p0 in starts:
        D = P.diameter(p0)
        assert -np.log(p0).min() + 1e-9 >= D  # Σp log p ≤ 0
        for p in points(P, rng):
            assert np.sum(xlogy(p, p) - xlogy(p, p0)) <= D + 1e-9


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_diameter_of_the_simplex(n):
    P = Simplex(n)
    assert P.diameter(P.centre) == pytest.approx(math.log(n), abs=1e-14)


@pytest.mark.parametrize(("plus", "minus"), [(1, 1), (1, 5), (3, 3), (20, 7)])
def test_diameter_of_half_simplices(plus, minus):
    P = Simplex(plus + minus, halves=np.r_[np.zeros(plus), np.ones(minus)])
    assert P.diameter(P.centre) == pytest.approx((math.log(plus) + math.log(minus)) / 2, abs=1e-14)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("equal", [True, False])
def test_the_rows_that_a_mass_fills_come_first(equal, side):
    rng = np.random.default_rng(4)
    for n in (0, 1, 7, 40):
        s, caps = rng.standard_normal(n), np.full(n, 0.125) if equal else rng.uniform(0.1, 0.2, n)
        for mass in (0.0, 0.125, 0.5, 0.7, float(caps.sum()), 9.0):  # multiples of an eighth are filled exactly
            order, count = fill_order(s, caps, mass, side)
            by_score = np.argsort(s)
            sums = np.cumsum(caps[by_score])
            assert count == np.count_nonzero(sums < mass if side == "left" else sums <= mass)
            assert sorted(order) == list(range(n))
            assert {*order[:count]} == {*by_score[:count]}
            assert count == n or order[count] == by_score[count]


@pytest.mark.parametrize("side", ["left", "right"])
def test_many_rows_of_different_caps_are_filled_as_if_sorted(side):
    """More rows than are sorted at once, and caps that are multiples of an eighth, whose sums are exact."""
    rng = np.random.default_rng(5)
    s, caps = rng.standard_normal(5000), rng.integers(0, 4, 5000) / 8
    by_score = np.argsort(s)
    sums = np.cumsum(caps[by_score])
    for mass in (0.125, 7.0, sums[2499], 900.0, sums[-1] - 1, sums[-1] + 1):
        order, count = fill_order(s, caps, float(mass), side)
        assert count == np.searchsorted(sums, mass, side)
        assert sorted(order) == list(range(5000))
        assert {*order[:count]} == {*by_score[:count]}
        assert count == 5000 or order[count] == by_score[count]


@given(n=st.integers(1, 300), equal=st.booleans(), share=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), seed=SEEDS)
def test_the_level_of_a_filled_mass(n, equal, share, seed):
    """The rows below the level have caps of less than the mass; with those at the level they have at least as much."""
    rng = np.random.default_rng(seed)
    scores, caps = rng.integers(-5, 6, n).astype(float), np.full(n, 0.25) if equal else rng.integers(1, 9, n) / 8
    mass = max(1, round(share * 8 * caps.sum())) / 8  # sums of eighths are exact
    level = fill_level(scores, caps, mass)
    assert level in scores
    assert caps[scores < level].sum() < mass <= caps[scores <= level].sum()
    assert fill_level(scores, None, mass) == scores.min()


def test_the_level_of_more_mass_than_the_caps_is_the_largest_score():
    assert fill_level(np.array([2.0, 5.0, 3.0]), np.array([0.1, 0.1, 0.2]), 1.0) == 5.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_set_whose_rows_are_elsewhere(kind):
    """`placed` brings caps and halves elsewhere, and changes nothing in the set itself."""
    P = simplex(kind, 6, np.random.default_rng(1))
    moved, seen, scores = [], list(P.members), np.arange(6.0)
    found = P.placed(lambda values: moved.append(values) or np.array(values))
    assert found is not P
    assert len(moved) == 1 + (P.halves is not None) + (P.caps is not None)
    assert (found.n, found.mass, found.lowest(scores)) == (6, P.mass, P.lowest(scores))
    assert np.array_equal(found.centre, P.centre)
    assert (found.caps is None) == (P.caps is None)
    assert P.caps is None or (found.caps is not P.caps and np.array_equal(found.caps, P.caps))
    assert [np.arange(6)[rows].tolist() for rows in found.members] == [np.arange(6)[rows].tolist() for rows in seen]
    assert all(a is b for a, b in zip(P.members, seen, strict=True))


def test_of_equal_scores_the_earlier_rows_are_filled_first():
    n, caps = 1000, np.random.default_rng(2).uniform(0.001, 0.01, 1000)
    order, count = fill_order(np.arange(n) % 2 * 1.0, caps, 1.0)
    assert order.tolist() == [*range(0, n, 2), *range(1, n, 2)]
    assert np.sum(caps[order[:count]]) < 1 <= np.sum(caps[order[: count + 1]])


@pytest.mark.parametrize("nu", [0.1, 0.25, 0.3, 0.7, 1.0])
def test_diameter_under_caps(nu):
    P = Simplex(40, caps=np.full(40, 1 / (nu * 40)))
    assert P.diameter(P.centre) == pytest.approx(math.log(1 / nu), abs=1e-14)


@pytest.mark.parametrize(("plus", "minus", "nu"), [(10, 10, 0.5), (8, 12, 0.4), (6, 14, 0.6)])
def test_diameter_under_caps_of_half_simplices(plus, minus, nu):
    """½[log(2n₊/(νn)) + log(2n₋/(νn))] is the divergence of classes at whole numbers of caps, and log(1/ν) bounds it."""
    n = plus + minus
    P = Simplex(n, caps=np.full(n, 1 / (nu * n)), halves=np.r_[np.zeros(plus), np.ones(minus)])
    # relative to the uniform start of each class, a row at its cap has the ratio cap/p_0 = 2n±/(νn)
    expected = 0.5 * (math.log(2 * plus / (nu * n)) + math.log(2 * minus / (nu * n)))
    assert P.diameter(P.centre) == pytest.approx(expected, abs=1e-12)
    assert expected <= math.log(1 / nu) + 1e-12


def test_diameter_of_a_start_that_is_not_uniform():
    p0 = np.array([0.5, 0.3, 0.15, 0.05])
    assert Simplex(4).diameter(p0) == pytest.approx(math.log(20), abs=1e-14)
    halves = np.array([0, 0, 1, 1])
    p0 = np.array([0.4, 0.1, 0.3, 0.2])
    assert Simplex(4, halves=halves).diameter(p0) == pytest.approx(0.5 * math.log(5) + 0.5 * math.log(2.5), abs=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_centre_is_inside_and_positive(kind):
    rng = np.random.default_rng(0)
    for _ in range(50):
        P = simplex(kind, int(rng.integers(2, 12)), rng)
        assert_feasible(P, P.centre)
        assert (P.centre > 0).all()


@pytest.mark.parametrize("k", range(1, 31))
@pytest.mark.parametrize("high", [1, 3, 5, 7])
def test_equal_caps_and_extreme_thetas(k, high):
    """Caps 1/k: some rows far above (at their caps), some between, some far below."""
    n = 32
    P = Simplex(n, caps=np.full(n, 1 / k))
    theta = np.full(n, -1e4)
    theta[:high], theta[high : high + 13] = 1e4, 3.3
    p = np.exp(P.log_softmax(theta))
    assert_feasible(P, p)
    expected = np.zeros(n)
    for part in (slice(0, high), slice(high, high + 13), slice(high + 13, n)):
        left = 1 - expected.sum()
        expected[part] = min(1 / k, left / len(expected[part]))
    assert np.allclose(p, expected, atol=1e-12)


@pytest.mark.parametrize("nu", [0.1, 0.25, 0.3, 0.5])
def test_caps_of_nu_hold_the_mass_in_long_runs(nu):
    """Thetas some hundreds apart, as after many rounds: the rows at their caps may fill the mass to the last bit."""
    for n in range(4, 60):
        P = Simplex(n, caps=np.full(n, 1 / (nu * n)))
        for seed in range(18):
            assert_feasible(P, np.exp(P.log_softmax(300 * np.random.default_rng(seed).standard_normal(n))))


def test_caps_that_fill_the_mass_exactly():
    """0.2 + 0.2 + 0.3 + 0.3 is 1 but for rounding: the fourth row has nothing left, and the others their caps."""
    P = Simplex(5, caps=np.array([0.2, 0.2, 0.3, 0.1, 0.3]))
    p = np.exp(P.log_softmax(np.array([0.0, 0.0, 0.0, -2000.0, 0.0])))
    assert np.allclose(p, [0.2, 0.2, 0.3, 0.0, 0.3], atol=1e-12)


def test_caps_at_their_minimum_are_the_only_point():
    caps = np.array([0.1, 0.2, 0.3, 0.4])
    P = Simplex(4, caps=caps)
    for y in (np.zeros(4), np.array([1e4, -1e4, 0, 5.0])):
        assert np.allclose(np.exp(P.log_softmax(y)), caps, atol=1e-12)
        assert np.allclose(P.project(y), caps, atol=1e-12)
        assert np.allclose(P.vertex(y), caps, atol=1e-12)


def test_plain_log_softmax_keeps_the_logarithms_of_weights_that_underflow():
    theta = np.array([0.0, -5e3, -1e4])
    assert Simplex(3).log_softmax(theta).tolist() == theta.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_written_to(kind):
    rng = np.random.default_rng(3)
    P, y = simplex(kind, 9, rng), rng.standard_normal(9)
    before = y.copy(), P.centre.copy()
    for operation in (P.log_softmax, P.project, P.vertex, P.lowest, P.contains):
        operation(y)
    P.diameter(before[1])
    assert np.array_equal(y, before[0])
    assert np.array_equal(P.centre, before[1])


def test_the_arrays_of_the_caller_are_not_kept_or_changed():
    caps, halves = np.array([2.0, 0.6, 0.5, 0.9]), np.array([0, 1, 0, 1])
    P = Simplex(4, caps=caps, halves=halves)
    P.vertex(np.arange(4.0))
    P.centre  # noqa: B018
    assert caps.tolist() == [2.0, 0.6, 0.5, 0.9]
    assert halves.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("p", [[0.5, 0.6], [1.1, -0.1], [0.9, 0.1]], ids=["sum", "sign", "cap"])
def test_contains_refuses(p):
    assert not Simplex(2, caps=np.array([0.8, 0.8])).contains(np.array(p))


@pytest.mark.parametrize("halves", [None, [0, 1, 1, 0]])
def test_contains_up_to_the_tolerance_and_no_further(halves):
    """Signs, caps and sums may each be off by tol, here a power of two so that nothing is rounded, but not by more."""
    tol, middle, up = 2.0**-30, np.full(4, 0.25), np.array([1.0, -1.0, 1.0, -1.0])
    P = Simplex(4, caps=np.full(4, 0.5), halves=halves)
    for away in (0.0, 1.0, 1.5):
        inside = away <= 1
        assert P.contains(middle + (0.25 + away * tol) * up, tol) == inside  # above two caps, below zero twice
        assert P.contains(middle + np.array([away * tol, 0, 0, 0]), tol) == inside
        assert P.contains(middle - np.array([0, 0, away * tol, 0]), tol) == inside
        assert Simplex(4, halves=halves).contains(middle + (0.25 + away * tol) * up, tol) == inside
        assert P.contains(middle + np.array([0.25 + away * tol, -0.125, 0, -0.125 - away * tol]), tol) == (inside and not halves)
    assert P.contains(middle + 0.9e-9 * up)
    assert not P.contains(middle + (0.25 + 1.1e-9) * up)


def test_halves_are_named_by_their_numbers():
    """The rows of half 0 come first."""
    first, second = Simplex(5, halves=[1, 0, 0, 1, 0]).members
    assert (first.tolist(), second.tolist()) == ([1, 2, 4], [0, 3])


def test_what_a_simplex_keeps():
    """Lists become arrays, and caps above the mass are the mass."""
    P = Simplex(3, caps=[2.0, 0.5, 0.25], halves=[True, False, True])
    assert P.caps.tolist() == [0.5, 0.5, 0.25]
    assert P.halves.tolist() == [1, 0, 1]
    assert (P.mass, Simplex(3).mass) == (0.5, 1.0)
    assert Simplex(2, caps=[5.0, 0.5]).caps.tolist() == [1.0, 0.5]
    assert Simplex(2, caps=[1.0, 1e-300]).lowest(np.array([1.0, 2.0])) == 1.0


NO_SIMPLEX = {
    "no rows": ({"n": 0}, "n "),
    "half a row": ({"n": 2.5}, "n "),
    "one half, 0": ({"n": 2, "halves": [0, 0]}, "halves must contain both 0 and 1"),
    "one half, 1": ({"n": 2, "halves": [1, 1]}, "halves must contain both 0 and 1"),
    "halves of another length": ({"n": 3, "halves": [0, 1]}, "halves "),
    "halves of three kinds": ({"n": 3, "halves": [0, 1, 2]}, "halves"),
    "caps of another length": ({"n": 3, "caps": [0.5, 0.6]}, "caps "),
    "a cap of zero": ({"n": 3, "caps": [0.5, 0.0, 0.6]}, "caps[1] is 0.0"),
    "caps below zero": ({"n": 4, "caps": [0.5, 0.9, -1.0, -2.0]}, "caps[2] is -1.0"),
    "too little": ({"n": 2, "caps": [0.5, 0.5 - 1e-9]}, "but must hold mass 1; raise them"),
    "too little in a half": (
        {"n": 4, "caps": [0.2, 0.25, 1, 1], "halves": [0, 0, 1, 1]},
        "add up to 0.45 but must hold mass 0.5",
    ),
}


@pytest.mark.parametrize("name", NO_SIMPLEX)
def test_what_is_no_simplex(name):
    options, message = NO_SIMPLEX[name]
    with pytest.raises(InputError) as caught:
        Simplex(**options)
    assert message in str(caught.value)


def test_caps_may_lack_rounding():
    """0.7 + 0.2 + 0.1 is below 1 in floats; one part in 10¹² is the limit, and holds for what it is a part of."""
    assert sum([0.7, 0.2, 0.1]) < 1
    Simplex(3, caps=[0.7, 0.2, 0.1])
    Simplex(2, caps=[0.5, 0.5 - 4e-13])
    with pytest.raises(InputError):
        Simplex(2, caps=[0.5, 0.5 - 4e-12])
    with pytest.raises(InputError):
        Simplex(2, caps=[0.25, 0.5 - 2e-12], halves=[0, 1])


@pytest.mark.parametrize("kind", [lambda **o: Ball(3, **o), lambda **o: SquaredNorm(**o)], ids=["ball", "square"])
@pytest.mark.parametrize("q", [0.5, 0.999, math.nan])
def test_exponents_below_one_are_refused(kind, q):
    with pytest.raises(InputError, match=f"q >= 1 .* got q = {q}"):
        kind(q=q)
    assert kind(q=1.0).q == 1
    assert kind(q=1.5).q == 1.5
    assert kind().q == 2


@pytest.mark.parametrize("size", [0.0, -1.0, math.nan])
def test_radii_and_scales_are_positive(size):
    with pytest.raises(InputError, match=f"positive radius; got q = 2.0, radius = {size}"):
        Ball(3, radius=size)
    with pytest.raises(InputError, match=f"positive scale; got q = 2.0, scale = {size}"):
        SquaredNorm(scale=size)
    assert (Ball(3, radius=0.5).radius, Ball(3).radius) == (0.5, math.inf)
    assert (SquaredNorm(scale=0.5).scale, SquaredNorm().scale) == (0.5, 1.0)


def test_a_square_divided_by_its_scale_is_not_copied():
    """Nothing is divided by 1: θ of a plain square comes back as it is."""
    theta = np.array([1.0, -2.0])
    assert SquaredNorm().mirror(Ball(2), theta)[0] is theta
    assert SquaredNorm(2.0, 2.0).mirror(Ball(2), theta)[0].tolist() == [0.5, -1.0]


# ---- norms ----------------------------------------------------------------------------------------------------------


VECTORS = hnp.arrays(np.float64, st.integers(1, 8), elements=st.floats(-8, 8).filter(lambda x: x == 0 or abs(x) > 1e-3))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 6.0, 12.0, math.inf])
@pytest.mark.parametrize("size", [1e-200, 1e-3, 1.0, 1e200])
@settings(max_examples=20, deadline=None)
@given(x=VECTORS)
def test_norm(p, size, x):
    """Against NumPy on vectors of ordinary size; sizes at which squares are no floats do not matter."""
    assert norm(size * x, p) == pytest.approx(size * np.linalg.norm(x, ord=p), rel=1e-13)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_norm_of_little(p):
    assert norm(np.zeros(3), p) == 0
    assert norm(np.zeros(0), p) == 0
    assert norm(np.array([1.0, -math.inf]), p) == math.inf
    assert norm(np.array([0.0, -5e-324]), p) == 5e-324
    assert norm(np.array([3e-320, 4e-320]), p) == pytest.approx(np.linalg.norm([3.0, 4.0], ord=p) * 1e-320, rel=1e-3)


@pytest.mark.parametrize(("q", "p"), [(1, math.inf), (math.inf, 1), (2, 2), (3, 1.5), (1.2, 6)])
def test_dual_exponent(q, p):
    assert dual_exponent(q) == pytest.approx(p)


@pytest.mark.parametrize("p", [1.0 + 1 / 11, 1.2, 1.5, 2.0, 3.0, 6.0, 12.0])
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
@settings(max_examples=20, deadline=None)
@given(x=VECTORS)
def test_dual_vector_is_aligned_and_of_dual_norm(p, size, x):
    """‖u‖_q = ‖θ‖_p and ⟨u, θ⟩ = ‖u‖_q ‖θ‖_p (Hölder with equality), with ⟨u, θ⟩ formed in units of θ."""
    u = dual_vector(size * x, p)
    length = np.linalg.norm(x, ord=p)
    assert np.linalg.norm(u / size, ord=dual_exponent(p)) == pytest.approx(length, rel=1e-12)
    assert (u / size) @ x == pytest.approx(length**2, rel=1e-12)
    assert (u * x >= 0).all()


@pytest.mark.parametrize("p", [1.2, 1.5, *EXPONENTS])
def test_dual_vector_is_the_gradient(p):
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.standard_normal(5)
        slope = central_difference(lambda y: 0.5 * np.linalg.norm(y, ord=p) ** 2, x)
        assert np.allclose(dual_vector(x, p), slope, atol=1e-7)


def test_dual_vector_at_the_ends():
    assert dual_vector(np.zeros(3), 3.0).tolist() == [0, 0, 0]
    assert dual_vector(np.array([1.0, -4.0, 4.0]), math.inf).tolist() == [0, -4, 0]
    assert dual_vector(np.array([1.0, 0.0, -2.0]), 1.0).tolist() == [3, 0, -3]


def central_difference(f, x, h=1e-6):
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


# ---- the ball -------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(w=VECTORS, q=st.sampled_from([1.0, 1.2, 1.5, 2.0]), radius=st.sampled_from([0.5, 1.0, 4.0, math.inf]))
def test_clip(w, q, radius):
    ball = Ball(len(w), q, radius)
    z = ball.clip(w)
    length = np.linalg.norm(w, ord=q)
    assert np.linalg.norm(z, ord=q) == pytest.approx(min(length, radius), rel=1e-12)
    assert np.allclose(z * length, w * np.linalg.norm(z, ord=q), rtol=1e-12, atol=1e-12)  # same direction
    assert ball.contains(z)
    assert length > radius or np.array_equal(z, w)


@pytest.mark.parametrize("q", [1.0, 1.2, 1.5, 2.0, 3.0])
@settings(max_examples=30, deadline=None)
@given(c=VECTORS, seed=SEEDS)
def test_vertex_of_the_ball(q, c, seed):
    ball = Ball(len(c), q, 2.5)
    z = ball.vertex(c)
    assert ball.contains(z)
    assert c @ z == pytest.approx(-2.5 * np.linalg.norm(c, ord=dual_exponent(q)), rel=1e-12)
    assert_least(lambda y: c @ y, z, points(ball, np.random.default_rng(seed)))


@given(
    q=st.sampled_from([1.0, 2.0, 2.5, 3.0, 12.0, math.inf]),
    seed=SEEDS,
    size=st.sampled_from([0.1, 1.0, 20.0, 1e6]),
    radius=st.sampled_from([0.7, 1e-3, 50.0]),
)
def test_projection_onto_a_ball_is_the_nearest_point(q, seed, size, radius):
    """For z the nearest point to y, y - z is 0, or ⟨y - z, z⟩ is the largest value of ⟨y - z, ·⟩ on the ball."""
    rng = np.random.default_rng(seed)
    y = size * rng.standard_normal(5)
    y[rng.random(5) < 0.2] = 0.0
    ball = Ball(5, q, radius)
    z = ball.project(y)
    assert ball.contains(z)
    largest = radius * np.linalg.norm(y - z, dual_exponent(q))
    length = float(np.linalg.norm(y))  # rounding of its size is in every entry of z
    assert float((y - z) @ z) >= largest - 1e-14 * length * (length + radius)
    if np.linalg.norm(y, q) <= radius:
        assert np.array_equal(z, y)
    else:
        assert np.linalg.norm(z, q) == pytest.approx(radius, rel=1e-12, abs=1e-14 * length)


@pytest.mark.parametrize("radius", [1e-12, 1e-30, 1e-270])
def test_a_ball_far_smaller_than_the_point(radius):
    """Where the radius is lost beside the largest entry there is still a nearest point, close to 0."""
    z = Ball(3, 1.0, radius).project(np.array([3.0, -1.0, 2.0]))
    assert np.abs(z).sum() <= radius * (1 + 1e-12)


@pytest.mark.parametrize("q", [1.0 + 1e-9, 1.5, 1.999])
def test_no_projection_for_exponents_between_one_and_two(q):
    with pytest.raises(InputError, match="no projection onto a ball"):
        Ball(3, q, 1.0).project(np.array([3.0, -1.0, 2.0]))
    assert Ball(3, q, 10.0).project(np.array([3.0, -1.0, 2.0])).tolist() == [3.0, -1.0, 2.0]


@pytest.mark.parametrize("size", [1e-200, 1e200])
@pytest.mark.parametrize("q", [1.2, 2.0])
def test_ball_at_extreme_sizes(size, q):
    c = size * np.array([3.0, -4.0])
    assert Ball(2, q, 1.0).vertex(c) == pytest.approx(Ball(2, q, 1.0).vertex(c / size), rel=1e-12)
    assert norm(Ball(2, q, size / 100).clip(c), q) == pytest.approx(size / 100, rel=1e-12)


def test_contains_of_the_ball():
    assert Ball(2, 1.0, 1.0).contains(np.array([0.5, 0.5]))
    assert not Ball(2, 1.0, 1.0).contains(np.array([0.6, 0.5]))
    assert Ball(2).contains(np.array([1e300, 0.5]))
    for away in (0.0, 1.0, 1.5):
        assert Ball(2, 2.0, 5.0).contains(np.array([3.0, 4.0]) * (1 + away * 2.0**-30), 5 * 2.0**-30) == (away <= 1)
    assert not Ball(1, 2.0, 5.0).contains(np.array([5.0 + 2e-9]))


def test_a_point_on_the_sphere_is_left_alone():
    w = np.array([3.0, 4.0])
    assert Ball(2, 2.0, 5.0).clip(w) is w
    assert Ball(2).clip(w) is w


# ---- the regularizers -----------------------------------------------------------------------------------------------


REGULARIZERS = {"entropy": Entropy(), "half the square": SquaredNorm(), "scaled": SquaredNorm(2.0, 0.3)} | {
    f"q dual to {p:g}": SquaredNorm(dual_exponent(p), 1 / (dual_exponent(p) - 1)) for p in EXPONENTS
}


def value_of(R, z):
    """R(z), written apart."""
    return entropy(z) if isinstance(R, Entropy) else R.scale * 0.5 * np.linalg.norm(z, ord=R.q) ** 2


def interior(R, rng, d=5):
    return softmax(rng.standard_normal(d)) if isinstance(R, Entropy) else rng.standard_normal(d)


@pytest.mark.parametrize("name", REGULARIZERS)
@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_value_gradient_divergence(name, seed):
    R, rng = REGULARIZERS[name], np.random.default_rng(seed)
    z, y = interior(R, rng), interior(R, rng)
    assert R.value(z) == pytest.approx(value_of(R, z), rel=1e-12)
    slope = central_difference(lambda x: value_of(R, x), y, h=1e-7)
    assert np.allclose(R.gradient(y), slope, rtol=1e-4, atol=1e-4)
    definition = value_of(R, z) - value_of(R, y) - R.gradient(y) @ (z - y)
    assert R.divergence(z, y) == pytest.approx(definition, abs=1e-10)
    assert R.divergence(y, y) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", REGULARIZERS)
@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_strong_convexity(name, seed):
    """D_R(z, y) ≥ ½‖z - y‖²: in ‖·‖₁ for the entropy, in ‖·‖_q for ½‖·‖_q²/(q-1); times another scale, as many times that."""
    R, rng = REGULARIZERS[name], np.random.default_rng(seed)
    z, y = interior(R, rng), interior(R, rng)
    length = np.linalg.norm(z - y, ord=1 if isinstance(R, Entropy) else R.q)
    modulus = 1.0 if isinstance(R, Entropy) else R.scale * (R.q - 1)
    assert R.divergence(z, y) >= 0.5 * modulus * length**2 - 1e-12


@pytest.mark.parametrize("q", [2.0, 1.5])
def test_squared_norms_of_one_form_are_added(q):
    rng = np.random.default_rng(3)
    first, second = SquaredNorm(q, 2.0), SquaredNorm(q, 0.5)
    assert first.has_form_of(second)
    assert not first.has_form_of(SquaredNorm(3.0, 2.0))
    assert not first.has_form_of(Entropy())
    assert not first.has_form_of(NoisySquare(q, noise=Ball(4, 2.0, 0.5)))
    total = first.plus(3.0, second)
    assert (total.q, total.scale) == (q, 3.5)
    for z in rng.standard_normal((5, 4)):
        assert total.value(z) == pytest.approx(first.value(z) + 3.0 * second.value(z))


@pytest.mark.parametrize("q", [1.0, 2.0, 3.0, math.inf])
def test_a_squared_norm_with_noise(q):
    """Its value is ½‖w‖² plus the most that a perturbation can take off, and its argmin is where that is worth it."""
    rng = np.random.default_rng(4)
    noise = Ball(4, q, 0.4)
    R = NoisySquare(noise=noise)
    for theta in 2.0 * rng.standard_normal((5, 4)):
        assert R.value(theta) == pytest.approx(0.5 * float(theta @ theta) - float(theta @ noise.vertex(theta)))
        z = R.mirror(Ball(4), theta)[0]
        best = R.value(z) - float(theta @ z)
        for step in rng.standard_normal((50, 4)):
            for size in (1e-4, 0.1, 1.0):
                other = z + size * step
                assert R.value(other) - float(theta @ other) >= best - 1e-12
    with pytest.raises(InputError, match="use R\\^d"):
        R.mirror(Ball(4, 2.0, 1.0), np.ones(4))


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("halves", [False, True])
def test_sets_of_tensors_are_those_of_arrays(equal, halves):
    torch = pytest.importorskip("torch", reason="needs torch: make test EXTRAS=test-gpu")
    rng = np.random.default_rng(5)
    caps = np.full(40, 0.1) if equal else rng.uniform(0.05, 0.2, 40)
    P = Simplex(40, caps=caps, halves=np.arange(40) % 2 if halves else None)
    there = P.placed(lambda values: torch.from_numpy(np.array(values)))
    assert np.array_equal(there.caps.numpy(), P.caps)
    assert there.centre.numpy() == pytest.approx(P.centre)
    scores = rng.integers(-3, 4, 40).astype(float)
    assert there.lowest(torch.from_numpy(scores)) == pytest.approx(P.lowest(scores))
    for side in ("left", "right"):
        order, count = fill_order(torch.from_numpy(scores), torch.from_numpy(caps), 0.5, side)
        assert count == fill_order(scores, caps, 0.5, side)[1]
        assert sorted(order.tolist()) == list(range(40))
        assert scores[order.numpy()][:count].max() <= scores[order.numpy()][count:].min()


def test_entropy_at_the_border():
    E = Entropy()
    corner, middle = np.array([1.0, 0.0, 0.0]), np.full(3, 1 / 3)
    assert E.value(corner) == 0
    assert E.gradient(corner).tolist() == [1, -math.inf, -math.inf]
    assert E.divergence(corner, middle) == pytest.approx(math.log(3))
    assert E.divergence(corner, corner) == 0
    assert E.divergence(np.array([0.0, 0.5, 0.5]), np.array([0.0, 0.25, 0.75])) == pytest.approx(
        0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    )


def test_entropy_divergence_of_points_of_any_mass():
    """Σ z log(z/y) - z + y: the last two cancel only where the masses are equal."""
    z, y = np.array([0.5, 2.0, 0.0]), np.array([1.5, 1.0, 0.25])
    assert Entropy().divergence(z, y) == pytest.approx(0.5 * math.log(1 / 3) + 2 * math.log(2) - 2.5 + 2.75)


def test_entropy_divergence_from_outside_the_support_is_infinite():
    assert Entropy().divergence(np.array([0.5, 0.5]), np.array([1.0, 0.0])) == math.inf


def mirror_domains(R, rng, d=5):
    if isinstance(R, Entropy):
        return [simplex(kind, d, rng) for kind in KINDS]
    balls = [Ball(d, R.q), Ball(d, R.q, 1.0), Ball(d, R.q, 0.01)]
    return balls + ([simplex(kind, d, rng) for kind in KINDS] if R.q == 2 else [])


@pytest.mark.parametrize("name", REGULARIZERS)
@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, size=st.sampled_from([0.0, 0.1, 1.0, 30.0]))
def test_mirror_is_the_argmin(name, seed, size):
    """argmin_z R(z) - ⟨θ, z⟩, which is also what the first-order condition says; and the gradient there."""
    R, rng = REGULARIZERS[name], np.random.default_rng(seed)
    for domain in mirror_domains(R, rng):
        theta = size * rng.standard_normal(5)
        z, gradient = R.mirror(domain, theta)
        others = points(domain, rng)
        assert domain.contains(z)
        assert_least(lambda y, theta=theta: value_of(R, y) - theta @ y, z, others)
        for y in others:
            assert (gradient - theta) @ (y - z) >= -1e-8 * (1 + np.abs(theta).max())
        assert np.allclose(gradient, R.gradient(z), rtol=1e-9, atol=1e-9)


def test_mirror_of_entropy_remembers_weights_that_underflow():
    """Twice -1000 and once +2000 is where it began."""
    E, P, step = Entropy(), Simplex(3), np.array([0.0, -1000.0, 5.0])
    gradient = E.gradient(P.centre)
    for k in (1, 1, -2):
        p, gradient = E.mirror(P, gradient + k * step)
    assert np.allclose(p, P.centre, atol=1e-12)


@pytest.mark.parametrize(
    ("R", "domain", "message"),
    [
        (Entropy(), Ball(3), "the entropy needs a simplex; use SquaredNorm for w"),
        (SquaredNorm(1.5), Ball(3, 2.0, 1.0), "no argmin of ½‖·‖_1.5²"),
        (SquaredNorm(1.5), Simplex(3), "no argmin of ½‖·‖_1.5²"),
        (SquaredNorm(2.0), Ball(3, 1.5, 1.0), "use a ball of the same q, or q = 2"),
    ],
    ids=["entropy on a ball", "q on another ball", "q on a simplex", "2 on a q-ball"],
)
def test_unsupported_pairs(R, domain, message):
    with pytest.raises(InputError) as caught:
        R.mirror(domain, np.ones(3))
    assert message in str(caught.value)


def test_vertex_of_the_whole_space():
    with pytest.raises(InputError, match="no minimum over R\\^d; give the learner a regularizer"):
        Ball(3).vertex(np.ones(3))


@pytest.mark.parametrize("halves", [None, [0, 1, 1, 0]])
@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_a_start_is_normalized_over_each_half(scale, halves):
    p_set, given = Simplex(4, halves=halves), np.array([1.0, 2.0, 3.0, 4.0])
    p = p_set.start(scale * given)
    for members in p_set.members:
        assert np.allclose(p[members], p_set.mass * given[members] / given[members].sum(), rtol=1e-15)
    assert given.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert p_set.start() is p_set.centre
    assert p_set.start(None) is p_set.centre


@pytest.mark.parametrize(
    ("p0", "told"),
    [
        ([1.0, 0.0, 1.0], r"p0\[1\] is 0.0"),
        ([1.0, 1.0, -1.0], r"p0\[2\] is -1.0"),
        ([math.inf, 1.0, 1.0], r"p0\[0\] is inf"),
        ([1.0, 1.0, math.nan], r"p0\[2\] is nan"),
        ([1.0, 1.0], "p0 must hold one number for each of the 3 rows"),
        ([1.0, 1e-320, 1.0], r"p0\[1\] is too small"),
    ],
)
def test_starts_that_are_refused(p0, told):
    with pytest.raises(InputError, match=told):
        Simplex(3).start(p0)
    assert (Simplex(3).start([1.0, 1e-300, 1.0]) > 0).all()


def test_a_start_is_inside_the_caps():
    p_set = Simplex(3, caps=np.array([0.4, 0.4, 0.4]))
    assert p_set.start([0.4, 0.4 * (1 - 1e-12), 0.2])[0] == pytest.approx(0.4)
    assert p_set.contains(p_set.start([2.0, 2.0, 1.0]), 1e-9)
    with pytest.raises(InputError, match=r"p0\[1\] is 0.401606 of the total, above its cap 0.4"):
        p_set.start([0.297, 0.3, 0.15])
    with pytest.raises(InputError, match=r"p0\[1\] is 0.2 of the total, above its cap 0.1"):
        Simplex(3, caps=np.array([0.9, 0.1, 0.9])).start([0.5, 0.2, 0.3])
