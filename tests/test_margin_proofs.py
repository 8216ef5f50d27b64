"""The bounds on margins that w and p prove."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from checkers import Distant

import gordan
from gordan.certificates import margins
from gordan.certificates.margins import Margin, first_not_positive
from gordan.certificates.matrix import Matrix, Products
from gordan.intercepts import Intercept
from gordan.rows.memory import Dense

INTERCEPTS = (Intercept.FREE, Intercept.NONE, Intercept.PENALIZED)


UP = math.nextafter(1.0, 2.0)


DOWN = math.nextafter(1.0, 0.0)


def tail(scores, caps, mass):
    """The least Σ t_i s_i / mass over 0 ≤ t ≤ caps, Σt = mass."""
    total, left = Fraction(0), mass
    for score, cap in sorted(zip(scores, caps, strict=True)):
        part = min(cap, left)
        total, left = total + part * score, left - part
    return total / mass


def lowest_scores(seed, equal):
    """Scores that are equal, below zero, and of any size; weights; a mass of one row, of some, of all, and between; the mean."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        n = int(rng.integers(1, 9))
        scores = rng.integers(-3, 4, n) * 2.0 ** rng.integers(-3, 3)
        c = np.full(n, rng.uniform(0.5, 2)) if equal else rng.uniform(0, 2, n) + 1e-3
        for share in (0.01, 1 / n, 0.5, 0.999):
            mass = float(share * c.sum())
            yield scores, c, mass, tail([*map(Fraction, scores.tolist())], [*map(Fraction, c.tolist())], Fraction(mass))


@pytest.mark.parametrize("equal", [True, False])
def test_lower_bounds_on_the_mean_of_the_lowest_scores(equal):
    for lo, c, mass, exact in lowest_scores(8, equal):
        found = margins._tail_lower(lo, c, mass)
        assert Fraction(found) <= exact
        room = (1 + max(map(abs, lo.tolist()))) * (1 + sum(map(Fraction, c.tolist())) / Fraction(mass))
        assert exact - Fraction(found) <= Fraction(1, 10**14) * room
    assert margins._tail_lower(np.array([1.0, 2.0]), np.ones(2), 0.0) == -math.inf
    assert margins._tail_lower(np.array([1.0, 2.0]), np.ones(2), -1.0) == -math.inf
    assert margins._tail_lower(np.array([-math.inf, 2.0]), np.ones(2), 1.5) == -math.inf
    assert margins._tail_lower(np.array([-math.inf, 2.0]), np.array([1.0, 2.0]), 1.5) == -math.inf
    assert margins._tail_lower(np.array([1.0, 2.0]), np.array([1.0, 0.0]), 0.5) == pytest.approx(1.0, rel=1e-14)
    # weights whose sum, one after the other, never gets beyond the first
    c = np.array([1.0, *[2.0**-53] * 4])
    assert margins._tail_lower(np.arange(1.0, 6.0), c, float(np.nextafter(1.0, 2.0))) == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("equal", [True, False])
def test_upper_bounds_on_the_mean_of_the_lowest_scores(equal):
    """The mean of the lowest scores, from above and sharp; and a score up to which there are enough rows for their mass."""
    for hi, c, mass, exact in lowest_scores(9, equal):
        level, mean = margins._tail_upper(hi, c, mass)
        if math.isinf(level):  # the mass is that of all rows, up to rounding
            assert mass > (1 - 1e-14) * c.sum()
            continue
        assert exact <= Fraction(mean) <= exact + Fraction(1, 10**14) * (1 + max(map(abs, hi.tolist())))
        assert sum(map(Fraction, c[hi <= level].tolist())) >= Fraction(mass)
        assert sum(map(Fraction, c[hi < level].tolist())) <= Fraction(mass) * (1 + Fraction(1, 10**14))
    assert margins._tail_upper(np.array([3.0, -2.0]), np.ones(2), 0.0) == (-2.0, -2.0)
    for hi, c, mass in (
        ([1.0, 2.0], [1.0, 1.0], 3.0),
        ([1.0, math.inf], [1.0, 1.0], 1.5),
        ([1.0, 2.0], [1e308, 1e308], math.inf),
    ):
        assert margins._tail_upper(np.array(hi), np.array(c), mass) == (math.inf, math.inf)
    assert margins._tail_upper(np.array([-1e308, 1e308]), np.ones(2), 1.5) == (1e308, math.inf)


POINTS = [[1.0, 0.0], [3.0, 4.0], [-2.0, 0.0], [-1.0, -4.0]]  # A_i·(1, 0) is 1, 3, 2, 1 with the signs below
SIGNS = np.array([1, 1, -1, -1], dtype=np.int8)


def margin_of(X=POINTS, signs=SIGNS, **options):
    X = np.asarray(X, dtype=np.float64)
    intercept = Intercept(options.pop("intercept", "free"))
    return Margin(Matrix(Dense(X)), np.asarray(signs, dtype=np.int8), intercept, **options)


def test_groups_and_weights():
    assert [group.tolist() for group in margin_of().groups] == [[0, 1], [2, 3]]
    for intercept in ("none", "penalized"):
        assert [group.tolist() for group in margin_of(intercept=intercept).groups] == [[0, 1, 2, 3]]
    assert margin_of().c.tolist() == [1.0] * 4
    weighed = margin_of(weights=np.array([0.0, 2.0, 1.0, 0.0]))
    assert weighed.c.tolist() == [0, 2, 1, 0]
    assert [group.tolist() for group in weighed._weighted_groups] == [[1], [2]]
    assert (margin_of(intercept="penalized")._b_in_norm(3.0), margin_of()._b_in_norm(3.0)) == (3.0, 0.0)


NO_MARGIN = {
    "norm below 1": ({"norm": 0.999}, "its norm is 0.999"),
    "norm NaN": ({"norm": math.nan}, "its norm is nan"),
    "a weight below zero": ({"weights": np.array([1.0, -1e-300, 1, 1])}, "negative or not finite"),
    "a weight that is infinite": ({"weights": np.array([1.0, math.inf, 1, 1])}, "negative or not finite"),
    "a weight that is NaN": ({"weights": np.array([1.0, math.nan, 1, 1])}, "negative or not finite"),
    "nu of zero": ({"nu": 0.0}, "nu is 0.0"),
    "nu above one": ({"nu": UP, "intercept": "none"}, "no p is allowed"),
    "nu above one of nothing": ({"nu": 1.5, "intercept": "none", "weights": np.zeros(4)}, "no p is allowed"),
    "nu beyond a class": ({"nu": 0.75, "weights": np.array([1.0, 0, 1, 1])}, "no p is allowed"),
}


@pytest.mark.parametrize("name", NO_MARGIN)
def test_reasons_for_infeasible_margins(name):
    options, reason = NO_MARGIN[name]
    assert reason in margin_of(**options).infeasibility_reason()


@pytest.mark.parametrize(
    "options",
    [{}, {"norm": 2.0}, {"norm": math.inf}, {"nu": 1.0}, {"nu": 5e-324}, {"nu": 2 / 3, "weights": np.array([1.0, 0, 1, 1])}],
)
def test_feasible_margins(options):
    assert margin_of(**options).infeasibility_reason() == ""


ALLOWS = [
    ({}, [1.0, 0, 0, 1], True),
    ({}, [0.0, 0, 0, 0], True),
    ({}, [1.0, -1e-300, 0, 1], False),
    ({}, [1.0, math.nan, 0, 1], False),
    ({}, [1.0, math.inf, 0, 1], False),
    ({"weights": np.array([1.0, 0, 1, 1])}, [1.0, 0, 0, 1], True),
    ({"weights": np.array([1.0, 0, 1, 1])}, [1.0, 1e-300, 0, 1], False),
    ({"nu": 0.5}, [1.0, 0, 0, 1], True),
    ({"nu": 0.5}, [1.0, 0, 0, DOWN], False),  # half of ν·4 is 1 in each class
    ({"nu": 0.5}, [UP, 0, 0, 1], False),
    ({"nu": 0.5, "intercept": "none"}, [1.0, 1, 0, 0], True),
    ({"nu": 0.5, "intercept": "none"}, [1.0, DOWN, 0, 0], False),
    ({"nu": 0.5}, [1.0, 1, 0, 0], False),
]


@pytest.mark.parametrize(("options", "p", "allowed"), ALLOWS)
def test_allowed_weights(options, p, allowed):
    margin = margin_of(**options)
    assert margin.allows(np.array(p)) == allowed
    if not allowed:
        assert margin.upper(np.array(p)) == math.inf
        assert not margin.proves_upper(1e300, np.array(p))


def test_a_class_without_weight_proves_nothing():
    for p in ([1.0, 0, 0, 0], [0.0, 0, 0, 0]):
        assert margin_of().upper(np.array(p)) == math.inf
        assert not margin_of().proves_upper(1e300, np.array(p))
    assert margin_of(intercept="none").upper(np.zeros(4)) == math.inf
    assert margin_of(intercept="none").upper(np.array([1.0, 0, 0, 0])) == pytest.approx(1.0, rel=1e-14)


LOWEST = [
    # options, w, b, γ that w proves
    ({}, (1.0, 0.0), 0.0, 1.0),
    ({}, (1.0, 0.0), 77.0, 1.0),
    ({"intercept": "none"}, (1.0, 0.0), 77.0, 1.0),
    ({"intercept": "none"}, (4.0, 0.0), 0.0, 1.0),
    ({"intercept": "none", "norm": math.inf}, (1.0, 0.0), 0.0, 1.0),
    ({"intercept": "none", "norm": math.inf}, (2.0, 0.5), 0.0, 2 / 2.5),
    ({"intercept": "penalized"}, (3.0, 0.0), 0.0, 1.0),
    ({"intercept": "penalized"}, (12.0, 0.0), 5.0, 7 / 13),
    ({"intercept": "penalized", "norm": math.inf}, (3.0, 0.0), -1.0, 2 / 4),
    ({"intercept": "none", "weights": np.array([0.0, 1, 1, 0])}, (1.0, 0.0), 0.0, 2.0),
    ({"weights": np.array([0.0, 1, 1, 0])}, (1.0, 0.0), 0.0, 2.5),
    ({"nu": 1.0}, (1.0, 0.0), 0.0, 1.75),
    ({"nu": 0.75}, (1.0, 0.0), 0.0, ((1 + 1.5) / 1.5 + (1 + 1) / 1.5) / 2),
    ({"nu": 0.75, "intercept": "none"}, (1.0, 0.0), 0.0, 4 / 3),
    ({"nu": 0.5, "intercept": "none", "weights": np.array([2.0, 1, 1, 0])}, (1.0, 0.0), 0.0, 1.0),
    ({"intercept": "none"}, (-1.0, 0.0), 0.0, 0.0),
    ({"intercept": "none"}, (0.0, 0.0), 0.0, 0.0),
    ({"intercept": "none"}, (0.0, 1.0), 0.0, 0.0),
    ({"intercept": "none", "weights": np.zeros(4)}, (1.0, 0.0), 0.0, 0.0),
]


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize(("options", "w", "b", "proved"), LOWEST)
def test_lower_bounds_in_closed_form(options, w, b, proved, exactly):
    margin = margin_of(**options)
    found = margin.lower(np.array(w), b, exactly=exactly)
    assert found <= proved * (1 + 1e-15)
    assert found >= proved * (1 - 1e-12)
    assert proved == 0 or margin.proves_lower(proved * (1 - 1e-15), np.array(w), b)
    assert not margin.proves_lower(proved * (1 + 1e-15) + 5e-324, np.array(w), b)
    assert exactly or proved == 0 or margin.lower(np.array(w), b, slack=100.0) < found
    assert margin.lower(np.array(w), b, exactly=exactly, slack=1.0) == found


UPPERS = [
    ({"intercept": "none"}, [1.0, 0, 0, 0], 1.0),
    ({"intercept": "none"}, [0.0, 0.125, 0, 0], 5.0),
    ({"intercept": "none"}, [1.0, 0, 3.0, 0], 1.75),
    ({"intercept": "none", "norm": math.inf}, [0.0, 2.0, 0, 0], 4.0),
    ({"intercept": "penalized", "norm": math.inf}, [0.0, 2.0, 0, 0], 4.0),
    ({"intercept": "penalized"}, [1.0, 0, 1.0, 0], 1.5),
    ({}, [1.0, 0, 9.0, 0], 1.5),
    ({"norm": math.inf}, [0.0, 7.0, 9.0, 0], 2.5),
]


@pytest.mark.parametrize(("options", "p", "proved"), UPPERS)
def test_upper_bounds_in_closed_form(options, p, proved):
    """‖Aᵀp‖ over the mass, in closed form; exactly that is proved in fractions, the next float below it is not."""
    margin, p = margin_of(**options), np.array(p)
    for scale in (1.0, 1e300, 1e-300):
        assert proved <= margin.upper(p * scale) <= proved * (1 + 1e-12)
    assert margin.upper(p, slack=1e6) > margin.upper(p) == margin.upper(p, slack=1.0)
    assert margin.proves_upper(proved, p)
    assert not margin.proves_upper(math.nextafter(proved, 0.0), p)
    assert not margin.proves_upper(-proved, p)


def test_upper_bounds_with_a_penalized_intercept():
    """The constant column counts: |(1, 0, 1)| for the first row alone."""
    margin = margin_of(intercept="penalized")
    assert margin.upper(np.array([1.0, 0, 0, 0])) == pytest.approx(math.sqrt(2), rel=1e-13)
    assert margin.proves_upper(1.4142135623730952, np.array([1.0, 0, 0, 0]))
    assert not margin.proves_upper(1.414213562373095, np.array([1.0, 0, 0, 0]))


@pytest.mark.parametrize("norm", [2.0, 3.0, math.inf])
def test_zero_is_proved_whatever_the_norm(norm):
    assert margin_of([[0.0, 0.0], [0.0, -0.0]], [1, -1], norm=norm).proves_upper(0.0, np.ones(2))
    margin = margin_of([[1.0, 2.0], [1.0, 2.0]], [1, -1], norm=norm)
    assert margin.proves_upper(0.0, np.ones(2))
    assert not margin.proves_upper(-5e-324, np.ones(2))
    assert not margin_of([[1.0, 2.0], [1.0, 2.5]], [1, -1], norm=norm).proves_upper(0.0, np.ones(2))


def test_exact_proofs_look_at_all_rows_that_matter(monkeypatch):
    """However many are lowest, or have weight: where rows are brought from elsewhere, some at a time."""
    monkeypatch.setattr(margins, "MAX_EXACT_ROWS", 2)
    X, signs, w = np.array([[1.0], [1.0], [1.0], [2.0]]), [1] * 4, np.ones(1)
    for rows in (Dense(X), Distant(X)):
        margin = Margin(Matrix(rows), np.array(signs, dtype=np.int8), Intercept.NONE)
        products = Products.of(margin_of(X, signs).X, w)  # a pass over rows elsewhere is not the question
        margin.X._last["products"] = w, (w, products.length, products.sums, products.absolute, products.terms)
        margin.X._last["combination"] = np.full(4, 0.25), np.array([1.25])
        margin.X._last["norms"] = np.empty(0), np.array([1.0, 1.0, 1.0, 2.0])
        assert margin.proves_upper(1.25, np.ones(4))
        assert not margin.proves_upper(DOWN * 1.25, np.ones(4))
        assert margin.proves_lower(1.0, w, 0.0)
        assert not margin.proves_lower(UP, w, 0.0)
    assert 1 - 1e-14 < margin_of(X, signs, intercept="none").lower(w, 0.0, exactly=True) < 1


def test_lowest_scores_that_cancel_are_refined():
    """Scores of 1 that are differences of 1e17: enclosures are too wide to tell, integers are not."""
    X = [[1e17, 1.0, -1e17], [1e17, 2.0, -1e17], [-1e17, -1.0, 1e17], [5.0, -4.0, 0.0]]
    w = np.array([1.0, 1.0, 1.0])
    margin = margin_of(X, [1, 1, -1, 1], intercept="none")
    lower = margin.lower(w, 0.0)
    assert lower == pytest.approx(1 / math.sqrt(3), rel=1e-13)
    assert Fraction(lower) ** 2 * 3 <= 1
    assert margin_of(X, [1, 1, -1, 1], intercept="free").lower(w, 0.0) == pytest.approx(1 / math.sqrt(3), rel=1e-13)
    products = Products.of(margin.X, w)
    assert first_not_positive(products, 0.0, margin.signs) is None


@pytest.mark.parametrize("nu", [None, 0.75])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_large_entries_that_w_does_not_see(intercept, nu):
    """Enclosures by norms are too wide by ten digits; those by the entries that count are not."""
    X = [[1.0, 1e10], [2.0, -1e10], [-1.0, 1e10], [-4.0, 3e10]]
    margin = margin_of(X, intercept=intercept, nu=nu)
    lowest = {None: 1.0, 0.75: 4 / 3}[nu] if intercept != "free" or nu is None else (4 / 3 + 2) / 2
    for exactly in (False, True):
        found = margin.lower(np.array([0.5, 0.0]), 0.0, exactly=exactly)
        assert lowest * (1 - 1e-13) <= found <= lowest
    assert margin.lower(np.array([0.5, 0.0]), 0.0, slack=1000.0) < margin.lower(np.array([0.5, 0.0]), 0.0)


def test_weights_that_vanish_beside_others():
    """A weight that is nothing beside the largest is left out, not made larger; under caps it may not be left out."""
    for tiny in (1e-310, 5e-324):
        assert margin_of(intercept="none").upper(np.array([1.0, tiny, 0, 0])) == pytest.approx(1.0, rel=1e-13)
        assert margin_of().upper(np.array([1.0, tiny, 1.0, 0])) == pytest.approx(1.5, rel=1e-13)
        assert margin_of(intercept="none").upper(np.array([0.0, tiny, 0, 0])) == pytest.approx(5.0, rel=1e-13)
        capped = margin_of(intercept="none", nu=0.5, weights=np.array([1.0, tiny, 0, 0]))
        assert capped.upper(np.array([1.0, tiny, 0, 0])) == math.inf


def test_exact_proofs_prefetch_their_rows():
    """Where rows are elsewhere, exact scores and sums ask for theirs beforehand."""

    w, p = np.array([1.0, 0.0]), np.array([1.0, 0, 0, 1.0])
    for use, rows in (
        (lambda margin: margin.lower(w, 0.0, exactly=True), {0, 3}),
        (lambda margin: margin.proves_lower(1.0, w, 0.0), {0, 3}),
        (lambda margin: margin.proves_upper(9.0, p), {0, 3}),
        (lambda margin: first_not_positive(Products.of(margin.X, np.zeros(2)), 0.0, SIGNS) == 0, {0, 1, 2, 3}),
    ):
        held = Distant(np.array(POINTS))
        assert use(Margin(Matrix(held), SIGNS))
        assert held.brought == rows


WRONG = [
    ([[1.0], [-1.0], [0.0]], 0.0, 1),
    ([[1.0], [0.0], [-1.0]], 0.0, 2),  # one that is wrong beyond doubt comes before one on the plane
    ([[1.0], [0.0], [2.0]], 0.0, 1),
    ([[1.0], [2.0], [3.0]], 0.0, None),
    ([[1.0], [2.0], [3.0]], -1.0, 0),
    ([[1.0], [2.0], [3.0]], -DOWN, None),
    ([[1.0], [2.0], [5e-324]], 0.0, None),
    ([[1e17 + 16.0], [2e17], [3e17]], -1e17, None),
]


@pytest.mark.parametrize(("X", "b", "row"), WRONG)
def test_the_first_row_on_the_wrong_side(X, b, row):
    margin = margin_of(X, [1, 1, 1])
    assert first_not_positive(Products.of(margin.X, np.ones(1)), b, margin.signs) == row
    mirrored = margin_of([[-x] for (x,) in X], [-1, -1, -1])
    assert first_not_positive(Products.of(mirrored.X, np.ones(1)), -b, mirrored.signs) == row


TINY_SCORES = [
    ([1e-300, -1e-300], 0),  # exactly zero
    ([1e-300, -2e-300], -1),
    ([2e-300, -1e-300], 1),
    ([5e-324, 0.0], 1),
    ([-5e-324, 5e-324], 0),
]


@pytest.mark.parametrize(("row", "sign"), TINY_SCORES)
def test_scores_whose_products_underflow(row, sign):
    """x·w below the floats: decided by integers, whatever they are rounded to."""
    margin, w = margin_of([[1.0, 1.0], row], [1, 1], intercept="none"), np.full(2, 1e-300)
    assert first_not_positive(Products.of(margin.X, w), 0.0, margin.signs) == (None if sign > 0 else 1)
    flipped = margin_of([[1.0, 1.0], [-x for x in row]], [1, -1], intercept="none")
    assert first_not_positive(Products.of(flipped.X, w), 0.0, flipped.signs) == (None if sign > 0 else 1)
    separator = gordan.Certificate("separator", "none", (0, 1), (2, 2), w=(1e-300, 1e-300))
    assert bool(gordan.verify(separator, [[1.0, 1.0], [-x for x in row]], [1, 0])) == (sign > 0)
