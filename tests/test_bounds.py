"""Bounds of scores, sums and norms in floats: they hold for whatever rounding may lose, and are not wider than need be."""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from checkers import both
from hypothesis import example, given
from hypothesis import strategies as st
from test_certificates import INTERCEPTS
from test_proof_reads import random_rows

import gordan
from gordan import floats
from gordan.certificates import bounds, matrix, standalone
from gordan.certificates.margins import Margin, combined
from gordan.certificates.matrix import Matrix, Products, exact_score, near_score
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept
from gordan.rows import stored
from gordan.rows.memory import Dense
from gordan.rows.reads import DenseBlock

# A bound is too large by no more than this share.
SHARP = 1 - Fraction(1, 10**12)


@given(st.lists(st.floats(0, 1e308) | st.floats(0, 1e-300), min_size=1, max_size=9))
def test_exact_sums(values):
    """exact_sum makes no error, and `reaches` decides by it."""
    total = sum(map(Fraction, values))
    assert value(*bounds.exact_sum(np.array(values))) == total
    array = np.array(values)
    for nu in (1.0, 0.5, math.nextafter(1.0, 0.0)):
        for groups in (1, 2):
            expected = total >= Fraction(nu) * total / groups
            assert bounds.reaches(array, array, nu, groups) == expected
    assert bounds.reaches(array, np.append(array, 5e-324), 1.0, 1) is False


FINITE = st.floats(allow_nan=False, allow_infinity=False)
MODERATE = st.floats(-1e150, 1e150)
MANTISSAS = st.integers(-(2**70), 2**70)


def value(m, e):
    """m·2^e as a fraction."""
    return Fraction(m) * Fraction(2) ** e


@given(MANTISSAS, st.integers(-1300, 1100))
@example(3, -1075)
@example(-3, -1075)
@example(2**60 + 1, -1130)
@example(1, 1024)
@example(-1, 1024)
@example(1, -2000)
@example(2**54 - 1, 970)  # above the largest float, and below the next power of two
@example(-(2**54 - 1), 970)
@example(2**53 + 1, 5)
def test_directed_rounding(m, e):
    """round_up is the least float not below, round_down the greatest not above."""
    exact = value(m, e)
    for rounded, side in ((bounds.round_up(m, e), 1), (bounds.round_down(m, e), -1)):
        if math.isfinite(rounded):
            assert side * Fraction(rounded) >= side * exact
        else:
            assert rounded == side * math.inf
        inner = math.nextafter(rounded, -side * math.inf)
        assert math.isinf(inner) or side * Fraction(inner) < side * exact


@given(a=st.integers(1, 2**200), b=st.integers(1, 2**200), e=st.integers(-1800, 700), root=st.booleans(), exact=st.booleans())
@example(a=9, b=16, e=0, root=True, exact=False)
@example(a=2**54 + 1, b=1, e=0, root=False, exact=False)
def test_fractions_and_their_roots_are_enclosed_by_neighbours(a, b, e, root, exact):
    """The two floats hold the number and are next to each other, or equal if it is a float."""
    value = Fraction(a, b) * Fraction(2) ** e
    if exact:  # the square of a float, or a float
        x = Fraction(float(a % 2**24)) * Fraction(2) ** (e // 4)
        value = x * x if root else x
    low, high = bounds.enclosed(value, root=root)
    power = 2 if root else 1
    assert Fraction(low) ** power <= value
    assert high == math.inf or value <= Fraction(high) ** power
    assert high in (low, math.nextafter(low, math.inf))
    assert (high == low) == (Fraction(low) ** power == value)


@pytest.mark.parametrize(
    ("m", "e", "near"),
    [
        (3, 4, 48.0),
        (-3, -1, -1.5),
        (2**53 + 1, 0, 2.0**53),
        (1, -1074, 5e-324),
        (1, -1075, 0.0),
        (3, -1076, 5e-324),
        (1, 1024, math.inf),
        (-1, 1024, -math.inf),
        (2**1100, -1000, 2.0**100),
        (0, 5, 0.0),
    ],
)
def test_a_dyadic_number_is_rounded_to_the_nearest_float(m, e, near):
    assert bounds.round_near(m, e) == near


@given(FINITE, FINITE, st.lists(st.tuples(MANTISSAS, st.integers(-1200, 1200)), max_size=5))
def test_dyadics_are_exact(x, y, terms):
    """dyadic, multiply and add make no error."""
    assert value(*bounds.dyadic(x)) == Fraction(x)
    assert value(*bounds.multiply(bounds.dyadic(x), bounds.dyadic(y))) == Fraction(x) * Fraction(y)
    assert value(*bounds.add(terms)) == sum((value(m, e) for m, e in terms), Fraction(0))


@st.composite
def matrices(draw):
    """X dense or CSR, float32 or float64, w and b; rows may cancel, be subnormal or reach 1e300."""
    d = draw(st.integers(1, 5))
    entry = draw(st.sampled_from([FINITE, MODERATE, st.floats(-1e-300, 1e-300), st.integers(-3, 3).map(float)]))
    rows = draw(st.lists(st.lists(entry, min_size=d, max_size=d), min_size=2, max_size=6))
    w = draw(st.lists(entry, min_size=d, max_size=d))
    if d > 1 and draw(st.booleans()):  # x·w is small against its terms
        w = [1.0, -1.0, *[0.0] * (d - 2)]
        rows = [[row[0], math.nextafter(row[0], row[1]), *row[2:]] for row in rows]
    X = np.array(rows)
    if draw(st.booleans()):
        with np.errstate(over="ignore", under="ignore"):
            X = np.nan_to_num(X.astype(np.float32))
    return X, draw(st.booleans()), np.array(w), draw(entry)


@given(matrices())
def test_scores_are_enclosed(case):
    """lo ≤ y_i(x_i·w + b) ≤ hi, and exact_score is that score."""
    X, sparse, w, b = case
    signs = np.array([1, -1] * 3)[: len(X)].astype(np.int8)
    problem = Problem.of(sp.csr_array(X) if sparse else X, signs)
    lo, hi = Products.of(problem.X, w).scores(b, signs)
    for i, row in enumerate(X.tolist()):
        exact = int(signs[i]) * (sum((Fraction(x) * Fraction(v) for x, v in zip(row, w.tolist(), strict=True)), Fraction(b)))
        assert math.isinf(lo[i]) or Fraction(lo[i]) <= exact
        assert math.isinf(hi[i]) or exact <= Fraction(hi[i])
        assert lo[i] < hi[i]
        assert value(*exact_score(problem.storage.row(i), w, b, int(signs[i]))) == exact


@given(matrices())
@example((np.array([[0.0, 0.0], [5e-324, 5e-324]]), False, np.zeros(2), 0.0))  # √2 of them is not one of them
def test_rounded_scores_have_the_right_sign(case):
    """Where products can be split without error, near_score is the float nearest to the score; norms of rows are upper bounds."""
    X, sparse, w, b = case
    signs = np.array([1, -1] * 3)[: len(X)].astype(np.int8)
    problem = Problem.of(sp.csr_array(X) if sparse else X, signs)
    for i, row in enumerate(X.tolist()):
        exact = int(signs[i]) * (sum((Fraction(x) * Fraction(v) for x, v in zip(row, w.tolist(), strict=True)), Fraction(b)))
        found = near_score(problem.storage.row(i), w, b, int(signs[i]))
        assert math.isnan(found) or found == float(exact)
        square = sum(Fraction(x) ** 2 for x in row)
        upper = float(problem.X.norms[i])
        assert math.isinf(upper) or square <= Fraction(upper) ** 2
        assert upper == 0 or not 1e-120 < max(map(abs, row)) < 1e140 or Fraction(upper) ** 2 <= square * Fraction(1 + 1e-12)


def test_rounded_scores_where_nearly_everything_cancels():
    """The plain sum of these products is wrong in its sign; the rounded score is not, and tiny products are left to integers."""
    X, w = np.array([[1e16, 1.0, -1e16, 2.0**-40]]), np.array([1.0 + 2.0**-30, -1.0, 1.0 + 2.0**-30, 1.0])
    problem = Problem.of(np.vstack([X, -X]), [0, 1])
    exact = sum(Fraction(x) * Fraction(v) for x, v in zip(X[0].tolist(), w.tolist(), strict=True))
    assert near_score(problem.storage.row(0), w, 1.0, 1) == float(exact + 1) == 2.0**-40
    assert math.isnan(near_score(problem.storage.row(0), w * 2.0**-950, 0.0, 1))


@pytest.mark.parametrize("sparse", [False, True])
def test_scores_of_all_rows_rounded_once_are_those_of_each_row(sparse):
    """By blocks of rows, as row by row: with zeros, rows without entries, and products that cannot be split."""
    r = np.random.default_rng(3)
    X = np.exp(r.normal(0, 30, (60, 9))) * r.choice([-1, 0, 1], (60, 9))
    X[7], X[8, 0], X[9, 0] = 0.0, 2.0**-1000, 2.0**1010
    w = np.append(r.standard_normal(8), 0.0)
    storage = stored(sp.csr_array(X) if sparse else X)
    found = Products.of(Matrix(storage), w)._rounded()
    expected = [near_score(storage.row(i), w, 0.0, 1) for i in range(60)]
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.isnan(found).tolist() == [i in (8, 9) for i in range(60)]


def test_sums_are_near():
    """near_sum is within 1 ± (SUM_BLOCK + 1)u of the sum, for lengths around the number of terms that are added in one go."""
    r = np.random.default_rng(3)
    for length in (0, 1, 63, 64, 65, 1000):
        values = r.uniform(size=length) * 2.0 ** r.integers(-40, 40, length)
        exact = sum(map(Fraction, values.tolist()), Fraction(0))
        assert abs(Fraction(bounds.near_sum(values)) - exact) <= exact * (bounds.SUM_BLOCK + 1) * Fraction(1, 2**53)
    assert bounds.near_sum(np.full(100, 1e308)) == math.inf


def gamma(k):
    """What k roundings may do to a sum of products, as a share of the sum of their sizes: ku/(1 - ku)."""
    return Fraction(k, 2**53) / (1 - Fraction(k, 2**53))


class Adversary(Dense):
    """Sums as far off as the number of their terms allows, to one side or the other."""

    def __init__(self, X, side):
        super().__init__(X)
        self.side, self.exact = side, [[Fraction(x) for x in row] for row in X.tolist()]

    def block(self, lo, hi, first=0):
        return AdversaryBlock(self.arrays[0][lo:hi], first + lo, self.side)


class AdversaryBlock(DenseBlock):
    def __init__(self, values, first, side):
        super().__init__(values, first)
        self.side, self.exact = side, [[Fraction(x) for x in row] for row in values.tolist()]

    def off(self, terms, side):
        """Σ terms and as much as roundings may add to it; two of them are left for this float."""
        return float(sum(terms) + side * (gamma(len(terms)) - Fraction(2, 2**53)) * sum(map(abs, terms)))

    def dot(self, w):
        v = [Fraction(x) for x in w.tolist()]
        sums = [self.off([x * y for x, y in zip(row, v, strict=True)], self.side) for row in self.exact]
        return np.array(sums), np.array(self.d)

    def squares(self):
        return np.array([self.off([x * x for x in row], -1) for row in self.exact])

    def abs_dot(self, size):
        v = [Fraction(x) for x in size.tolist()]
        return np.array([self.off([abs(x * y) for x, y in zip(row, v, strict=True)], -1) for row in self.exact])

    def weighted(self, q):
        weights = [Fraction(x) for x in q.tolist()]
        columns = zip(*self.exact, strict=True)
        return np.array([self.off([x * y for x, y in zip(column, weights, strict=True)], self.side) for column in columns])

    def only(self, i):
        return AdversaryBlock(self.values[i], 0, self.side)


def nearly(values, side):
    """`near_sum`, as far from the sum as it may be."""
    return float(sum(Fraction(x) for x in values.tolist()) * (1 + side * (bounds.SUM_BLOCK + 1) * Fraction(1, 2**53)))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize(("side", "near"), [(1, 0), (-1, 0), (-1, -1), (-1, 1), (1, 1)])
def test_bounds_hold_for_whatever_a_sum_may_lose(side, near, intercept, monkeypatch):
    """Norms, scores and upper bounds, although every sum in floats is as wrong as the order of its terms may make it."""
    rng = np.random.default_rng(17)
    X, w, b = rng.uniform(0.5, 1.0, (16, 60)), rng.uniform(0.5, 1.0, 60), 0.25
    signs = np.array([1] * 16 if intercept != "free" else [1, -1] * 8, dtype=np.int8)
    if intercept == "free":
        X[1::2] *= -1
    M = Matrix(Adversary(X, side))
    exact = M.storage.exact
    for row, norm in zip(exact, M.norms.tolist(), strict=True):
        assert sum(x * x for x in row) <= Fraction(norm) ** 2
    products = Products.of(M, w)
    for _ in range(2):
        lo, hi = products.scores(b, signs)
        for row, sign, low, high in zip(exact, signs.tolist(), lo.tolist(), hi.tolist(), strict=True):
            score = sign * (sum(x * Fraction(y) for x, y in zip(row, w.tolist(), strict=True)) + Fraction(b))
            assert Fraction(low) <= score <= Fraction(high)
        products = products.sharpened(np.arange(16))
    margin = Margin(M, signs, intercept)
    for p in (np.ones(16), rng.uniform(size=16), np.where(np.arange(16) < 4, 1.0, 0.0)):
        total = [Fraction(0)] * (60 + (intercept == "penalized"))
        for group in margin.groups:
            mass = sum(Fraction(float(p[i])) for i in group) * len(margin.groups)
            for i in group:
                row = [*exact[i], *([Fraction(1)] if intercept == "penalized" else [])]
                total = [t + Fraction(float(p[i])) * int(signs[i]) * x / mass for t, x in zip(total, row, strict=True)]
        # the masses of the groups to one side, and what is added up after them to the other
        sides = itertools.chain([near] * len(margin.groups), itertools.repeat(-near))
        with monkeypatch.context() as patch:
            patch.setattr(bounds, "near_sum", lambda values, sides=sides: nearly(values, next(sides)))
            upper = Fraction(margin.upper(p)) ** 2
        square = sum(t * t for t in total)
        assert square <= upper <= square * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("n", [1, 63, 64, 65, 640, 4097])
def test_the_length_of_a_vector_is_bounded_from_above(n):
    """Against fractions, in float64 and float32: above ‖x‖, and by no more than the roundings that are allowed for."""
    rng = np.random.default_rng(n)
    for exponent in (-500, -400, -1, 0, 400, 480):
        for x in (rng.standard_normal(n), rng.uniform(0.999, 1.0, n), rng.standard_normal(n) * 2.0 ** rng.integers(-60, 1, n)):
            x = np.ldexp(x, exponent)
            for y in (x, x.reshape(1, -1).T) if abs(exponent) > 1 else (x, x.astype(np.float32)):
                square = sum(Fraction(v) ** 2 for v in y.ravel().tolist())
                found = Fraction(bounds.length(y))
                assert square <= found**2 <= square * (1 + Fraction(1, 10**12))
    assert bounds.length(np.zeros(n)) == 0
    assert bounds.length(np.full(n, math.inf)) == math.inf


@pytest.mark.parametrize("length", [3, 64, 200])
def test_the_norm_of_a_vector_holds_for_whatever_a_sum_may_lose(length, monkeypatch):
    """`near_sum` as far below the sum as it may be."""
    sizes = np.random.default_rng(1).uniform(0.5, 1.0, length)

    monkeypatch.setattr(bounds, "near_sum", lambda values: nearly(values, -1))
    square = sum(Fraction(x) ** 2 for x in sizes.tolist())
    bound = Fraction(bounds.norm_bound(sizes, 2.0, dual=False)) ** 2
    assert square <= bound <= square * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_norms_of_rows_whose_squares_are_no_floats(d, storage):
    """Rows of one entry or more, beside one whose square is: bounds all the same, and sharp to √d."""
    sizes = [1.0, 1e-200, 1e200, 5e-324, 1.7e308, 1e-141, 1e-139, 1e149, 1e151]
    M = Problem.of(storage(np.array([[0.0] * d, *([size] * d for size in sizes)])), [0, *[1] * 9]).X
    assert M.norms[0] == 0
    for size, norm in zip(sizes, M.norms[1:].tolist(), strict=True):
        if math.isfinite(norm):
            assert d * Fraction(size) ** 2 <= Fraction(norm) ** 2
            assert norm <= math.sqrt(d) * size * (1 + 1e-14) + 5e-324
        assert math.isfinite(norm) or size * math.sqrt(d) > 1.7e308


def test_overflow_in_one_row_is_not_that_of_others():
    products = Products.of(Matrix(Dense(np.array([[1e308, 1e308], [1.0, 2.0], [-1e308, -1e308]]))), np.array([1e10, 1e10]))
    lo, hi = products.scores(0.0, np.ones(3))
    assert lo[0] == lo[2] == -math.inf
    assert hi[0] == hi[2] == math.inf
    assert 2.9e10 < lo[1] < 3e10 < hi[1] < 3.1e10


def test_products_are_split_without_error():
    """x·v, less its float, less the rest of it, is zero: to the last of its 106 digits."""
    rng = np.random.default_rng(9)
    for x, v in rng.uniform(1.0, 2.0, (300, 2)).tolist():
        rest = Fraction(x) * Fraction(v) - Fraction(x * v)
        row = np.array([[x, -(x * v), -float(rest)], [1.0, 0.0, 0.0]])
        assert Fraction(float(rest)) == rest
        assert near_score(Dense(row).row(0), np.array([v, 1.0, 1.0]), 0.0, 1) == 0
        assert near_score(Dense(row).row(0), np.array([v, 1.0, 1.0]), 2.0**-200, -1) == -(2.0**-200)


def test_products_that_cannot_be_split_are_not_guessed():
    """Products beyond the floats, of both signs; a factor that is itself too large to split. `exact_score` knows."""
    for x, v in (([1e200, 1e200, 1.0], [1e200, -1e200, 1.0]), ([1.5e308, 1.0], [1e-300, 1.0])):
        row, w = Dense(np.array([x])).row(0), np.array(v)
        assert math.isnan(near_score(row, w, 0.0, 1))
        m, e = exact_score(row, w, 0.0, 1)
        assert Fraction(m) * Fraction(2) ** e == sum(Fraction(a) * Fraction(b) for a, b in zip(x, v, strict=True))


@pytest.mark.parametrize("nu", [None, 0.5])
def test_lower_bounds_scale_with_the_data_and_keep_their_slack(nu):
    """A column that w does not see makes the first enclosures too wide; what is found without it is as good on every scale, and
    a claim is made with more slack than its check, there too."""
    X, signs, w = np.array([[1.0, 1e9], [2.0, -1e9], [1.5, 1e8], [1.0, 1e9]]), np.ones(4, dtype=np.int8), np.array([1.0, 0.0])

    def lower(X, **options):
        return Margin(Matrix(Dense(X)), signs, Intercept.NONE, nu=nu).lower(w[: X.shape[1]], 0.0, **options)

    found = lower(X)
    assert 1 - 1e-14 < found < 1
    for scale in (2.0**-60, 1.0, 2.0**60):
        assert lower(X * scale) == pytest.approx(found * scale, rel=1e-15, abs=0)
        for data in (X * scale, X[:, :1] * scale):
            assert lower(data, slack=matrix.CLAIM) < lower(data)


def test_upper_bounds_of_rows_that_vanish_when_weighted():
    """A third of the least float is 0; three thirds of it are not."""
    X = np.full((3, 1), 5e-324)
    assert Margin(Matrix(Dense(X)), np.ones(3, dtype=np.int8), Intercept.NONE).upper(np.ones(3)) >= 5e-324


def test_slack_widens_the_enclosures():
    X = random_rows(np.random.default_rng(4))
    products, signs = Products.of(Matrix(Dense(X)), np.arange(6.0)), np.ones(23)
    plain, wide = products.scores(0.5, signs), products.scores(0.5, signs, 1000.0)
    assert [part.tolist() for part in products.scores(0.5, signs, 1.0)] == [part.tolist() for part in plain]
    assert np.allclose(wide[1] - wide[0], 1000 * (plain[1] - plain[0]), rtol=0.5)


def test_errors_are_those_of_the_theory():
    """γ_k Σ|a||w|, where the sum itself is only known as computed, and TINY for each term that may underflow."""
    for k in (1, 5, 1000, 10**6):
        for size in (0.0, 1e-310, 1.0, 1e300):
            bound = Fraction(float(matrix.error(np.array([size]), np.array(k))[0]))
            needed = gamma(k) * Fraction(size) / (1 - gamma(k)) + k * Fraction(sys.float_info.min)
            assert needed <= bound <= Fraction(2001 * (k + 4), 1000 * 2**53) * Fraction(size) + (k + 5) * Fraction(bounds.TINY)


@given(st.lists(FINITE.map(abs) | st.floats(0, 1e-320) | st.integers(0, 3).map(float), min_size=1, max_size=6))
def test_norms_are_enclosed(x):
    """Norms 2, ∞, its dual 1, and 3 by their powers; wide by no more than 10⁻¹² of themselves."""
    exact = [Fraction(v) for v in x]
    powers = {
        (2.0, False): (2, sum(v**2 for v in exact)),
        (2.0, True): (2, sum(v**2 for v in exact)),
        (math.inf, False): (1, max(exact)),
        (math.inf, True): (1, sum(exact)),
        (3.0, False): (3, sum(v**3 for v in exact)),
    }
    for (p, dual), (power, total) in powers.items():
        bound = bounds.norm_bound(np.array(x), p, dual=dual)
        assert math.isinf(bound) or total <= Fraction(bound) ** power
        if 1e-290 < max(x) < 1e290:
            assert (Fraction(bound) * SHARP) ** power <= total


@pytest.mark.parametrize("dual", [False, True])
@pytest.mark.parametrize("p", [2.0, 3.0, 2.5, 1e6, 1e300, math.inf])
def test_norms_at_the_ends(p, dual):
    """Nothing and zeros have the norm 0, what is not finite an infinite one; units and powers of two are sharp to rounding."""
    assert bounds.norm_bound(np.zeros(0), p, dual=dual) == bounds.norm_bound(np.zeros(3), p, dual=dual) == 0
    for bad in (math.inf, math.nan):
        assert bounds.norm_bound(np.array([1.0, bad]), p, dual=dual) == math.inf
    for size in (1.0, 2.0**1000, 2.0**-1000, 5e-324, 1.5e308):
        bound = bounds.norm_bound(np.array([0.0, size, 0.0]), p, dual=dual)
        assert size <= bound <= size * (1 + 1e-14) + 5e-324
    assert bounds.norm_bound(np.full(4, 1.5e308), 2.0, dual=dual) == math.inf
    assert bounds.norm_bound(np.full(4, 1.5e308), math.inf, dual=True) == math.inf
    assert p in (2.0, math.inf) or bounds._power_norm(np.zeros(2), p, dual) == 5e-324  # above 0, and no more
    many = np.full(10_000, 0.25)
    q = p if not dual else (p / (p - 1) if p < math.inf else 1.0)
    assert bounds.norm_bound(many, p, dual=dual) == pytest.approx(0.25 * 10_000 ** (1 / q), rel=1e-12)


@given(st.lists(st.floats(0, 1e308), min_size=1, max_size=6), st.sampled_from([2.5, 3.0, 7.0, 1.5e3]))
def test_dual_norm_with_standalone(x, p):
    """The dual norm of other exponents, against the decimals of the standalone checker."""
    bound = bounds.norm_bound(np.array(x), p, dual=True)
    exact = [Fraction(v) for v in x]
    assert math.isinf(bound) or standalone._bounds_norm(Fraction(bound), exact, Fraction(p), dual=True)
    if 1e-290 < max(x) < 1e290:
        assert not standalone._bounds_norm(Fraction(bound) * SHARP, exact, Fraction(p), dual=True)


@given(st.lists(st.floats(-1e307, 1e307), min_size=1, max_size=9))
def test_sums_are_enclosed(values):
    """sum_bounds holds Σ values."""
    low, high = bounds.sum_bounds(np.array(values))
    assert Fraction(low) <= sum(map(Fraction, values)) <= Fraction(high)


@pytest.mark.parametrize("x", [0.1, 1e-310, 1e300, -0.1])
@pytest.mark.parametrize("length", [1, 64, 65, 100, 1000])
def test_sums_of_equal_values_are_enclosed(x, length):
    """Many equal values are not added up one by one; the enclosure is as narrow as that of others."""
    low, high = bounds.sum_bounds(np.full(length, x))
    assert Fraction(low) <= length * Fraction(x) <= Fraction(high)
    assert Fraction(high) - Fraction(low) <= 2 * Fraction(math.ulp(length * x))


@pytest.mark.parametrize("length", [64, 65, 200])
def test_sums_of_many_values_are_enclosed(length):
    values = np.random.default_rng(length).uniform(0.0, 1.0, length)
    lower, upper = bounds.sum_bounds(values)
    exact = sum(Fraction(x) for x in values.tolist())
    assert Fraction(lower) < exact < Fraction(upper)
    assert upper - lower < 1e-13 * upper


def test_sums_beyond_the_floats():
    most = math.nextafter(math.inf, 0.0)
    assert bounds.sum_bounds(np.array([1e308, 1.5e308, 1.0])) == (most, math.inf)
    assert bounds.sum_bounds(np.array([-1e308, -1.5e308, -1.0])) == (-math.inf, -most)
    assert bounds.sum_bounds(np.array([0.25, 1e308, 1.5e308])) == (most, math.inf)
    assert bounds.near_sum(np.array([0.0] * bounds.SUM_BLOCK + [1e308, 1e308])) == math.inf


def test_the_unit_of_rounding():
    """1 + u is rounded to 1, more is not; nothing that underflows loses more than TINY, even where subnormals are flushed."""
    assert 1 + floats.U == 1
    assert 1 + 1.5 * floats.U > 1
    assert sys.float_info.min <= bounds.TINY / 2


@pytest.mark.parametrize("norm", [3.0, 1e6, 1e38, 1e300, float("inf")])
def test_upper_bounds_hold_for_enormous_norms(norm):
    X, y = [[0.0], [1.2]], [0, 1]
    false = gordan.Certificate("bracket", "free", (0, 1), (2, 1), upper=0.59, rows=(0, 1), weights=(1.0, 1.0), norm=norm)
    assert not gordan.verify(false, X, y)
    assert gordan.verify(replace(false, upper=0.61), X, y)


def test_tails_of_enormous_scores_do_not_overflow():
    """A mean of 1e308 and scores about 0, all in all 2.5e307."""
    c = gordan.Certificate("bracket", "none", (0, 1), (4, 1), w=(1.0,), lower=1e-300, nu=1.0)
    X, y = [[1.0], [1e-160], [5e-324], [-1e308]], [0, 1, 0, 0]
    assert both(c, X, y) == (True, True)
    assert both(replace(c, lower=1e308 / 4), X, y) == (False, False)
    assert both(replace(c, lower=math.nextafter(1e308 / 4, 0.0)), X, y) == (True, True)


@pytest.mark.parametrize("d", [4097, 8193, 20_000])
def test_scores_of_long_rows_are_enclosed_narrowly(d):
    rng = np.random.default_rng(d)
    X, w = rng.standard_normal((4, d)), rng.standard_normal(d)
    X[1, : d // 2], X[2] = X[1, d - d // 2 :], 1e-3 * X[3]  # cancelling, and small
    problem = Problem.of(X, [0, 1, 0, 1])
    products = Products.of(problem.X, w)
    products = products.sharpened(np.arange(4))
    lo, hi = products.scores(0.25, problem.signs)
    for i in range(4):
        terms = (Fraction(x) * Fraction(y) for x, y in zip(X[i].tolist(), w.tolist(), strict=True))
        exact = int(problem.signs[i]) * (sum(terms) + Fraction(1, 4))
        assert Fraction(float(lo[i])) <= exact <= Fraction(float(hi[i]))
        assert hi[i] - lo[i] <= 2.0**-53 * 40_000 * float(np.abs(X[i]) @ np.abs(w))


def test_sums_of_many_are_enclosed_and_equal_ones_exact():
    r = np.random.default_rng(0)
    for n in (1, 63, 64, 65, 1000):
        for values in (r.random(n), np.full(n, 0.1), 10.0 ** r.uniform(-300, 300, n), np.zeros(n)):
            exactly = sum(map(Fraction, values.tolist()))
            low, high = bounds.near_bounds(values)
            assert low <= exactly <= high
            m, e = bounds.exact_sum(values)
            assert m * Fraction(2) ** e == exactly
            for nu in (0.1, 0.5, 1.0):  # which are decided by floats, and exactly where these do not tell
                assert bounds.reaches(values * nu, values, nu, 1) == (
                    sum(map(Fraction, (values * nu).tolist())) >= Fraction(nu) * exactly
                )


def test_combinations_of_few_and_of_most_rows_are_not_mixed_up():
    A = np.arange(8.0).reshape(4, 2) + 1
    X, signs = Matrix(stored(A)), np.ones(4, np.int8)
    few = combined(X, signs, np.array([0, 2]), np.array([3.0, 5.0]), Intercept.NONE)  # as a key: 0, 2, 3, 5
    most = combined(X, signs, np.array([1, 2, 3]), np.array([2.0, 3.0, 5.0]), Intercept.NONE)
    assert few.tolist() == (A.T @ [3.0, 0.0, 5.0, 0.0]).tolist()
    assert most.tolist() == (A.T @ [0.0, 2.0, 3.0, 5.0]).tolist()
