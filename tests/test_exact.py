"""Rows as integers: every function of `certificates.exact` against fractions, by each of its routes."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from checkers import Distant, both
from flint import fmpq
from oracle import rank

import gordan
from gordan.certificates import exact
from gordan.certificates.matrix import Matrix
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept

STORAGES = {"dense": np.asarray, "float32": lambda X: np.asarray(X, np.float32), "CSR": sp.csr_array}
INTERCEPTS = (Intercept.FREE, Intercept.NONE, Intercept.PENALIZED)


def problem_of(X, storage="dense"):
    return Problem.of(STORAGES[storage](np.array(X, dtype=np.float64)), [i % 2 for i in range(len(X))])


def lengthened(X, intercept):
    return [[*map(Fraction, row), *([] if intercept == "none" else [Fraction(1)])] for row in X]


ENTRIES = {
    "small": [0.0, 3.0, -4.0, 0.0, 8.0],
    "fractions": [0.75, -0.0, 2.0**-40, 5.0, 0.0],
    "large": [2.0**300, 2.0**290 * 3, 0.0, -(2.0**310), 2.0**305],
    "62 bits": [2.0**61, -1.0, 3.0, 0.0, 2.0**-0],
    "63 bits": [2.0**62, -1.0, 3.0, 0.0, 1.0],
    "large and far apart": [3 * 2.0**300, 2.0**200, 0.0, -(2.0**310), 5 * 2.0**250],
    "far apart": [1e300, -1e-300, 5e-324, 1.7e308, 0.0],
    "zeros": [0.0, -0.0, 0.0, 0.0, 0.0],
    "full mantissas": [0.1, -0.3, 1 / 3, math.pi, 2.0**-1022 * 1.1],
}


@pytest.mark.parametrize("few", [40, 1])
@pytest.mark.parametrize("storage", ["dense", "CSR"])
@pytest.mark.parametrize("name", ENTRIES)
def test_entries_are_integers_times_a_power_of_two(name, storage, few, monkeypatch):
    monkeypatch.setattr(exact, "SHORT_ROW_ENTRIES", few)
    row = ENTRIES[name]
    problem = problem_of([[1.0] * 5, row], storage)
    flipped = replace(problem, signs=-problem.signs)
    ((i, columns, whole, e),) = exact.integer_entries(problem.X, [1])
    assert i == 1
    assert columns == [j for j, x in enumerate(row) if x]
    assert all(type(m) is int for m in whole)
    assert [Fraction(m) * Fraction(2) ** e for m in whole] == [Fraction(x) for x in row if x]
    values = np.array([x for x in row if x])
    if len(values):
        last = exact._lowest_bit_exponent(values)
        assert all((Fraction(x) / Fraction(2) ** last).denominator == 1 for x in values.tolist())
        assert any((Fraction(x) / Fraction(2) ** (last + 1)).denominator > 1 for x in values.tolist())
    for intercept, signed in itertools.product(INTERCEPTS, (problem, flipped)):
        (entries,), (low,) = exact.integer_rows(signed, [1], intercept)
        assert [m * Fraction(2) ** low for m in entries] == [signed.signs[1] * x for x in lengthened([row], intercept)[0]]
        assert all(type(m) is int for m in entries)
        first = [int(signed.signs[0])] * len(lengthened([row], intercept)[0])
        assert exact.integer_rows(signed, iter([1, 0]), intercept) == ([entries, first], [low, 0])


def test_rows_elsewhere_are_brought_together():
    rows = Distant(np.outer(np.arange(4.0), [1.0, 0.5]))
    problem = Problem(Matrix(rows), np.ones(4), (0, 1))
    assert exact.integer_rows(problem, [3, 1], Intercept.NONE) == ([[6, 3], [2, 1]], [-1, -1])


@pytest.mark.parametrize("few", [20_000, 7, 6, 0])
def test_the_first_column_that_does_not_cancel(few, monkeypatch):
    """Three rows of seven entries in all, by sums of Python's integers or by flint."""
    monkeypatch.setattr(exact, "FEW_PRODUCTS", few)
    big = 3**90
    rows = [([1, 4, 9], [big, 2, 3], 0), ([4, 9], [-1, 5], 0), ([1, 9], [-1, -13], 0)]
    assert exact.first_not_cancelling([1, 2, big], rows) == 9
    assert exact.first_not_cancelling([1, 2, 1], rows) == 1
    assert exact.first_not_cancelling([2, 4, 2 * big], [*rows[:2], ([1, 9], [-1, 0], 0)]) == 9
    assert exact.first_not_cancelling([1, 1, big], [*rows[:2], ([1], [-1], 0)]) == 4
    assert exact.first_not_cancelling([1, 2, big], [rows[0], ([4, 9], [-1, 0], 0), ([1, 9], [-1, 0], 0)]) == 9
    assert exact.first_not_cancelling([1, 2, big], [([1, 4], [big, 2], 0), ([4], [-1], 0), ([1], [-1], 0)]) is None
    assert exact.first_not_cancelling([5], [([], [], 0)]) is None


@pytest.mark.parametrize("few", [400, 0])
def test_pivots_and_null_spaces(few, monkeypatch):
    """The first independent columns, and integer vectors that span what the rows annihilate."""
    monkeypatch.setattr(exact, "FEW_ENTRIES_TO_ELIMINATE", few)
    r = random.Random(1)
    for _ in range(40):
        n, k = r.randint(1, 4), r.randint(1, 5)
        rows = [[r.choice([0, 0, 1, -2, 3, 2**80]) for _ in range(k)] for _ in range(n)]
        for i in range(1, n):
            if r.random() < 0.3:
                rows[i] = [2 * x for x in rows[0]]
        columns = exact.pivots(exact.matrix(rows, k))
        ranks = [0, *(rank([row[: j + 1] for row in rows]) for j in range(k))]
        assert columns == [j for j in range(k) if ranks[j + 1] > ranks[j]]
        chosen = exact.pivots(exact.matrix(rows, k).transpose())
        rows = [rows[i] for i in chosen]
        M = exact.matrix(rows, k)
        null = exact.null_space(M, exact.pivots(M))
        vectors = [[int(null[j, c]) for j in range(k)] for c in range(null.ncols())]
        assert (null.nrows(), null.ncols()) == (k, k - len(rows))
        assert all(sum(x * y for x, y in zip(row, v, strict=True)) == 0 for row in rows for v in vectors)
        assert rank(vectors) == len(vectors)
    assert exact.pivots(exact.matrix([], 3)) == exact.pivots(exact.matrix([[], []], 0)) == []
    null = exact.null_space(exact.matrix([], 2), [])
    assert [[int(null[i, j]) for j in range(2)] for i in range(2)] == [[1, 0], [0, 1]]


@pytest.mark.parametrize("few", [400, 0])
@pytest.mark.parametrize("storage", ["dense", "CSR"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_spans(intercept, storage, few, monkeypatch):
    """Whether rows are combinations of others, against their rank; also of all of them, and of some."""
    monkeypatch.setattr(exact, "FEW_ENTRIES_TO_ELIMINATE", few)
    r, seen = random.Random(2), set()
    for _ in range(60):
        n, d = r.randint(3, 6), r.randint(1, 4)
        X = [[r.choice([0, 0, 1, -1, 0.5, 2.0**-70]) for _ in range(d)] for _ in range(n)]
        problem, A = problem_of(X, storage), lengthened(X, intercept)
        support, among = r.sample(range(n), r.randint(1, n)), np.array(sorted(r.sample(range(n), r.randint(1, n))))
        chosen = [A[i] for i in support]
        truth = rank([*chosen, *(A[i] for i in among)]) == rank(chosen)
        assert exact.spans(problem, support, among, intercept) == truth
        seen.add((truth, rank(chosen) == len(A[0])))
    assert seen >= {(True, True), (True, False), (False, False)}


@pytest.mark.parametrize("support", [(0, 1, 2, 3), (2, 3), (0, 2)])
def test_spans_where_the_prime_divides(support, monkeypatch):
    """Rows that are independent, but not modulo the prime, or zero modulo it: what they span is found out all the same."""
    monkeypatch.setattr(exact, "FEW_ENTRIES_TO_ELIMINATE", 0)
    assert exact.PRIME == 2**31 * 2**30 - 1
    X = [[a, b, 0.0, 0.0] for a, b in ((2.0**31, 1.0), (2.0**31, 1.0), (1.0, 2.0**30), (1.0, 2.0**30), (5.0, 7.0))]
    problem = problem_of(X)
    chosen = [list(map(Fraction, X[i])) for i in support]
    for among in (np.arange(5), np.array([4]), np.array(support)):
        truth = rank([*chosen, *([Fraction(x) for x in X[i]] for i in among)]) == rank(chosen)
        assert exact.spans(problem, support, among, Intercept.NONE) == truth
    overlap = gordan.Certificate("overlap", "none", (0, 1), (5, 4), rows=(0, 1, 2, 3), weights=(1, 1, 1, 1))
    assert both(overlap, X, [0, 1, 0, 1, 1]) == (True, True)


@pytest.mark.parametrize("storage", ["dense", "CSR"])
def test_scores_and_combinations_are_exact(storage):
    """Of entries of any size, with zeros among the rows, w and the weights."""
    r = random.Random(5)
    for entry in (lambda: r.choice((0.0, r.gauss(0, 1))), lambda: math.ldexp(r.randint(-3, 3), r.randint(-1000, 1000))):
        X = [[entry() for _ in range(60)] for _ in range(7)]
        w, b = np.array([entry() for _ in range(60)]), entry()
        problem, rows = problem_of(X, storage), np.array([0, 2, 3, 6])
        exactly = [[Fraction(x) for x in row] for row in X]
        m, e = exact.scores(problem.X, rows, w, b, problem.signs)
        for i, found in zip(rows, m, strict=True):
            score = sum((x * Fraction(v) for x, v in zip(exactly[i], w.tolist(), strict=True)), Fraction(b))
            assert found * Fraction(2) ** e == int(problem.signs[i]) * score
        weights = [r.randint(-(2**70), 2**70) for _ in rows]
        for constant in (False, True):
            total = exact.combination(problem.X, rows, weights, constant=constant)
            columns = zip(*([*exactly[i], *([Fraction(1)] if constant else [])] for i in rows), strict=True)
            for j, column in enumerate(columns):
                m, e = total.get(j, (0, 0))
                assert m * Fraction(2) ** e == sum(x * t for x, t in zip(column, weights, strict=True))
    assert exact.scores(problem.X, np.array([], dtype=np.intp), w, b, problem.signs) == ([], 0)


@pytest.mark.parametrize("few", [40, 1])
def test_vectors_are_integers_times_a_power_of_two(few, monkeypatch):
    monkeypatch.setattr(exact, "SHORT_ROW_ENTRIES", few)
    for values in (*ENTRIES.values(), [], [0.1] * 50, [0.0, *[0.1] * 50], [1e300, 5e-324] * 30):
        m, e = exact.whole(np.array(values))
        assert [Fraction(part) * Fraction(2) ** e for part in m] == [Fraction(x) for x in values]


def test_planes():
    assert Intercept.NONE.plane_of([1, 2, 3]) == ([1, 2, 3], 0)
    assert Intercept.FREE.plane_of([1, 2, 3]) == Intercept.PENALIZED.plane_of([1, 2, 3]) == ([1, 2], 3)


def test_rationals_as_integers():
    """Over one denominator, the least; without a common divisor; and for rows that were divided by powers of two."""
    quarters = [Fraction(-3, 4), fmpq(5, 6), 2]
    assert exact.integers(quarters) == ([-9, 10, 24], 12)
    assert exact.integers([]) == ([], 1)
    assert exact.primitive([-6, 0, 9]) == (-2, 0, 3)
    assert exact.primitive([0, 0]) == (0, 0)
    assert exact.coprime({7: Fraction(4, 3), 2: 6}) == {7: 2, 2: 9}
    assert exact.unscaled({}, {}) == {}
    rows, exponents = {9: Fraction(1, 3), 4: fmpq(5), 6: 2}, {9: -70, 4: 3, 6: 0}
    weights = exact.unscaled(rows, exponents)
    assert [*weights] == [4, 6, 9]
    assert math.gcd(*weights.values()) == 1
    ratios = {weights[i] * Fraction(2) ** exponents[i] * int(x.denominator) / int(x.numerator) for i, x in rows.items()}
    assert len(ratios) == 1
    assert exact.unscaled({0: 3, 1: 5}, [1, -1]) == {0: 3, 1: 20}
    assert exact.unscaled({0: 3, 1: 5}, [6, 5]) == {0: 3, 1: 10}


NUMBERS = [0, 1, -1, 3, 2**53 + 1, -(2**53) - 1, 2**64 - 1, 2**64 + 1, 2**65 + 2**11 + 1, 2**65 + 2**12, 3**100, -(7**200)]


HALF = 2**63 + 2**10  # of 64 digits, half way between two floats: what is cut off behind it decides
NUMBERS += [sign * ((HALF << 5) + more) for sign in (1, -1) for more in (0, 1, 2, 16, 31)] + [(HALF + 2**11) << 5]


@pytest.mark.parametrize("x", NUMBERS)
def test_integers_become_floats_rounded_once(x):
    """To nearest, ties to even, whatever their length."""
    for bits in (1, abs(x).bit_length(), abs(x).bit_length() + 400):
        unit = 2 ** max(1, bits, abs(x).bit_length())
        assert exact._rounded_to_floats([x, unit - 1])[0] == float(Fraction(x, unit))


def test_directions_become_floats_unless_they_are_too_far_apart():
    for w in ([3, -5, 0], [3**400, 2**600 + 1, -1], [0, 2**499]):
        found, bits = exact._rounded_to_floats(w), max(abs(x).bit_length() for x in w)
        truth = [float(Fraction(x, 2**bits)) for x in w]
        apart = any(x and abs(Fraction(x, 2**bits)) < Fraction(exact.MIN_TRUSTED) for x in w)
        assert (found is None) == apart
        assert apart or found.tolist() == truth
    assert exact._rounded_to_floats([2**499, 1]).tolist() == [0.5, 2.0**-500]
    assert exact._rounded_to_floats([2**500, 1]) is None
    assert exact._rounded_to_floats([2**5000, 1]) is None


@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize("storage", STORAGES)
def test_signs_of_some_rows(storage, chunk, monkeypatch):
    """Scores that vanish, or nearly do, for integers small, long and far apart; only the rows that are named are relied on."""
    r, seen = random.Random(5), set()
    if chunk:
        monkeypatch.setattr(exact, "_rounded_to_floats", lambda w: None)
    for _ in range(60):
        d, n = r.randint(1, 5), 7
        w = [r.choice([0, 1, -2, 5]) * r.choice([1, 1, 2**60 + 1, 2**900]) for _ in range(d)]
        b = r.choice([0, 0, 3, -(2**40)])
        X = [[r.choice([0, 1, -1, 0.5, 3.0]) * 2.0 ** r.choice([0, 0, -60, 80]) for _ in range(d)] for _ in range(n)]
        problem = problem_of(X, storage)
        truth = []
        for row, sign in zip(X, problem.signs.tolist(), strict=True):
            score = sign * sum((Fraction(x) * v for x, v in zip(row, w, strict=True)), Fraction(b))
            truth.append((score > 0) - (score < 0))
        among = np.array(sorted(r.sample(range(n), 4)))
        assert exact.score_signs(problem.X, w, b, problem.signs).tolist() == truth
        assert exact.score_signs(problem.X, w, b, problem.signs, among)[among].tolist() == [truth[i] for i in among]
        assert exact.score_signs(problem.X, w, b, problem.signs, np.array([], dtype=np.intp)).shape == (n,)
        unsigned = [t * int(s) for t, s in zip(truth, problem.signs, strict=True)]
        assert exact._exact_signs(problem.X, among, w, b).tolist() == [unsigned[i] for i in among]
        assert exact._exact_signs(problem.X, among, w, b).dtype == np.int8  # one byte a row
        assert exact.score_signs(problem.X, w, b, problem.signs).dtype == np.int8
        seen.update(truth)
    assert seen == {-1, 0, 1}


@pytest.mark.parametrize("storage", STORAGES)
def test_signs_of_one_column(storage):
    """Read off it, however small its entries are, or large those beside it."""
    column = (
        [2.0**-149, -(2.0**-149), 0.0, -0.0, 2.0**100, -2.5, 1.0] if storage == "float32" else [5e-324, -5e-324, 0.0, -0.0, 1e308]
    )
    problem = problem_of([[2.0**120, x, -(2.0**120)] for x in column], storage)
    for factor in (1, -3, 2**2000):
        signs = [int(s) * ((x > 0) - (x < 0)) * (1 if factor > 0 else -1) for x, s in zip(column, problem.signs, strict=True)]
        assert exact.score_signs(problem.X, [0, factor, 0], 0, problem.signs).tolist() == signs


@pytest.mark.parametrize("storage", STORAGES)
def test_entries_of_some_rows(storage):
    X = np.array([[1.0, 0.0, 2.5], [0.0, 0.0, 0.0], [3.0, 4.0, 0.0], [0.0, -5.0, 6.0]])
    problem = problem_of(X, storage)
    for rows, used in (([0, 2, 3], [0, 1, 2]), ([3, 1], [0, 2]), ([2], [1]), ([1], [0, 1, 2]), ([0, 3], [])):
        place, columns, values = exact.entries(problem.X, np.array(rows), np.array(used, int))
        assert values.dtype == np.float64
        found = {(int(i), int(j)): float(x) for i, j, x in zip(place, columns, values, strict=True) if x}
        assert found == {(k, j): X[i, j] for k, i in enumerate(rows) for j in used if X[i, j]}


@pytest.mark.parametrize(
    ("values", "w", "b", "exactly"),
    [
        ([1.0, 2.0], [1, 1], 0, True),
        ([], [], 0, True),
        ([0.0], [5], 7, True),
        ([1.0], [2**51], 0, True),
        ([1.0], [2**52], 0, False),
        ([1.0], [2**50], 2**50, True),
        ([1.0], [2**51], 2**51, False),
        ([1.0, 3.0], [2**50], 2**50 - 1, True),
        ([1.0, 3.0], [-(2**51)], 2**51, False),
        ([2.0**-30, 1.0], [2**21], 0, True),
        ([2.0**-30, 1.0], [2**22], 0, False),
        ([2.0**-51, 0.5], [1], 0, True),
        ([2.0**-52], [1], 0, False),
        ([2.0**60], [1], 0, False),  # beside it b is a whole number
        ([math.inf], [1], 0, False),
        ([math.nan], [1], 0, False),
        ([1.0], [2**60], 0, False),
        ([1.0], [0, -(2**51)], -1, True),
    ],
)
def test_when_floats_add_exactly(values, w, b, exactly):
    """What is said to be exact is: for every order of the terms and of their signs."""
    found = exact.adds_exactly(np.array(values), w, b)
    assert found == exactly
    if found:
        for signs in itertools.product((1, -1), repeat=len(w)):
            terms = [
                s * Fraction(v) * x for s, v, x in zip(signs, w, map(Fraction, itertools.cycle(values or [0])), strict=False)
            ]
            for order in itertools.permutations([*terms, Fraction(b)]):
                total, whole = 0.0, Fraction(0)
                for term in order:
                    total, whole = total + float(term), whole + term
                    assert Fraction(total) == whole
