"""The rows of the standalone checker, and its arithmetic against what is known in closed form."""

from __future__ import annotations

import decimal
import json
import math
import random
from fractions import Fraction

import flint
import numpy as np
import pytest
from test_standalone_program import SEPARATOR

import gordan
from gordan.certificates import bounds, standalone
from gordan.certificates.standalone import BadInput, Rejected

# ---- rows -----------------------------------------------------------------------------------------------------------


def rows_of(X, d):
    rows, width = standalone._rows(X, d)
    return [*rows], width


def test_rows_are_exact():
    assert rows_of([[0.1, 0, Fraction(1, 3)]], 3) == ([{0: Fraction(0.1), 2: Fraction(1, 3)}], 3)
    assert rows_of([{2: 10**400, 0: 0.0}], 3) == ([{2: 10**400}], 3)
    assert rows_of([[np.float32(0.1), True, np.False_]], 3) == ([{0: Fraction(float(np.float32(0.1))), 1: 1}], 3)
    assert rows_of(np.array([[2**53 + 1, -(2**63)]]), 2) == ([{0: 2**53 + 1, 1: -(2**63)}], 2)
    assert rows_of(np.array([[2**64 - 1]], dtype=np.uint64), 1) == ([{0: 2**64 - 1}], 1)


def test_columns_are_counted():
    """Those of sequences; rows by column have as many as the certificate says, unless there is an entry beyond."""
    assert rows_of([[1.0], [0.0]], 2) == ([{0: 1}, {}], 1)
    assert rows_of([[1.0, 2.0, 0.0]], 2) == ([{0: 1, 1: 2}], 3)
    assert rows_of([{}, {0: 1.0}], 2) == ([{}, {0: 1}], 2)
    assert rows_of([{}, {4: 1.0}], 2) == ([{}, {4: 1}], 5)
    content = json.loads(SEPARATOR.to_json())
    for X, width in (([[0.0]] * 3, 1), ([[0.0] * 3] * 3, 3), ([{}, {2: 0.0}, {}], 3)):
        assert standalone.check(content, X, ["no", "yes", "no"]) == (False, f"it is about 2 columns; the data has {width}")


@pytest.mark.parametrize(
    "rows",
    [
        *([], [[]], [[], []], [[1.0, 2.0], [1.0]], [[1.0], [1.0, 2.0]], [{-1: 1.0}], [{"a": 1.0}], [1.0, 2.0], [None], 3.0),
        *([[value, 0]] for value in (math.nan, math.inf, -math.inf, "x", "nan", None, [1.0], 1j)),
    ],
    ids=str,
)
def test_malformed_rows_are_refused(rows):
    with pytest.raises((BadInput, TypeError) if rows == 3.0 else BadInput):
        standalone._rows(rows, 2)


@pytest.mark.parametrize(
    "y", [["a", None, "b"], [0, 1, math.nan], [0, 1, [1]], [b"a", b"b", b"a"], ["a", 1, "a"], [0, 1, 2], [2, 2, 2]], ids=str
)
def test_malformed_labels_are_refused_by_both_checkers(y):
    """By both checkers, whatever the certificate says."""
    for classes in ((0, 1), ("a", "b"), (False, True)):
        certificate = gordan.Certificate("separator", "none", classes, (3, 1), w=(1.0,))
        with pytest.raises(BadInput):
            standalone.check(json.loads(certificate.to_json()), [[1.0]] * 3, y)
        with pytest.raises(gordan.InputError):
            gordan.verify(certificate, [[1.0]] * 3, y)


def test_lengths_of_rows_and_labels():
    content = json.loads(SEPARATOR.to_json())
    X = [[1, -2], [0, 4], [0, 0.25]]
    assert standalone.check(content, X, ["no", "yes", "no"]) == (True, "accepted")
    with pytest.raises(BadInput, match="3 rows and 2 labels"):
        standalone.check(content, X, ["no", "yes"])
    for few, labels in ((X[:2], ["no", "yes"]), ([*X, X[0]], ["no", "yes", "no", "no"])):
        accepted, reason = standalone.check(content, few, labels)
        assert not accepted
        assert reason == f"it is about 3 rows; the data has {len(few)}"
    for labels in (["no", "maybe", "no"], ["No", "Yes", "No"], [0, 1, 0]):
        accepted, reason = standalone.check(content, X, labels)
        assert not accepted
        assert "classes" in reason


# ---- arithmetic -----------------------------------------------------------------------------------------------------


def root(value, power):
    """value^(1/power) to 80 digits."""
    with decimal.localcontext(decimal.Context(prec=80)):
        return Fraction((decimal.Decimal(value.numerator) / value.denominator) ** (1 / decimal.Decimal(power)))


CUBE = [3, -4, 5, 0]  # 3³ + 4³ + 5³ = 6³
NORMS = [
    # x, norm p, whether the dual q = p/(p - 1) is meant, |x|
    ([3, -4, 0], 2.0, False, Fraction(5)),
    ([3, -4, 0], 2.0, True, Fraction(5)),
    ([3, -4, 0], math.inf, False, Fraction(4)),
    ([3, -4, 0], math.inf, True, Fraction(7)),
    (CUBE, 3.0, False, Fraction(6)),
    ([1] * 8, 3.0, True, Fraction(4)),  # 8^(2/3)
    ([1] * 27, 3.0, True, Fraction(9)),
    ([4, 4, -1] * 3, 1.5 / 0.5, True, root(Fraction(51), 3) ** 2),
    ([-1] * 32, 2.5, False, Fraction(4)),  # 32^(2/5)
    ([1] * 32, 2.5, True, Fraction(8)),  # 32^(3/5)
    ([7], 2.5, True, Fraction(7)),
    ([0, -7], 1e300, False, Fraction(7)),
    ([0, -7], 1e300, True, Fraction(7)),
    ([1, -4], 3.0, True, root(Fraction(81), 3)),
    ([1, 1], 3.0, False, root(Fraction(2), 3)),
    ([2, 3, 5], 4.0, False, root(Fraction(722), 4)),
]


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10**400), Fraction(1, 3**700)])
@pytest.mark.parametrize(("x", "norm", "dual", "length"), NORMS)
def test_norms_are_compared_with_bounds(x, norm, dual, length, scale):
    """Norms that are rational to the last digit, others to 60 of the 80 digits known: by both checkers."""
    p = None if math.isinf(norm) else Fraction(norm)

    def at_most(bound):
        found = standalone._bounds_norm(bound, [scale * value for value in x], p, dual)
        assert bounds.norm_at_most([value * scale.numerator for value in x], bound * scale.denominator, norm, dual=dual) == found
        return found

    rational = length.denominator < 10**60  # not one of the roots, which are rounded
    length = scale * length
    for part in (Fraction(1, 10**9), Fraction(1, 10**39), Fraction(1, 10**60)):
        assert at_most(length * (1 + part))
        assert not at_most(length * (1 - part))
    if rational:
        assert at_most(length)
        assert not at_most(length * (1 - Fraction(1, 10**300)))
        assert at_most(length * (1 + Fraction(1, 10**300)))


@pytest.mark.parametrize("norm", [2.25, 3.0, 2.1, 7.5, 1e4, 1e300])
@pytest.mark.parametrize("dual", [False, True])
def test_both_checkers_decide_norms_alike(norm, dual):
    """Bounds one unit in the 53rd, 200th and 1000th digit beside the norm, as flint has it."""
    r = random.Random(f"{norm} {dual}")
    for _ in range(8):
        x = [r.randint(-(2 ** r.choice((3, 60, 900))), 2**60) for _ in range(r.randint(1, 4))]
        with flint.ctx.workprec(8000):
            q = flint.arb(flint.fmpq(*Fraction(norm).as_integer_ratio()))
            q = q / (q - 1) if dual else q
            length = sum((flint.arb(abs(v)) ** q for v in x if v), flint.arb(0)) ** (1 / q)
            m, e = (int(part) for part in length.mid().man_exp())
        length = Fraction(m) * Fraction(2) ** e
        for digits in (53, 200, 1000):
            for side in (-1, 1):
                bound = length * (1 + side * Fraction(1, 2**digits))
                assert standalone._bounds_norm(bound, [Fraction(v) for v in x], Fraction(norm), dual) == (side == 1)
                assert bounds.norm_at_most(x, bound, norm, dual=dual) == (side == 1)


def test_roots():
    for value in (1, 2, 7, 8, 9, 10**40 - 1, 10**40, 10**40 + 1, 3**2000):
        for k in (1, 2, 3, 40, 2000):
            r = standalone._root(value, k)
            assert r**k <= value < (r + 1) ** k


@pytest.mark.parametrize("norm", [None, Fraction(2), Fraction(3)])
@pytest.mark.parametrize("dual", [False, True])
def test_norms_of_zero_vectors(norm, dual):
    for x in ([], [Fraction(0)] * 3):
        assert standalone._bounds_norm(Fraction(0), x, norm, dual)
        assert not standalone._bounds_norm(Fraction(-1, 10**9), x, norm, dual)
    assert not standalone._bounds_norm(Fraction(-1), [Fraction(1)], norm, dual)
    assert not standalone._bounds_norm(Fraction(0), [Fraction(1, 10**300)], norm, dual)


def test_lowest_scores_are_filled_up_to_their_caps():
    scores = [(Fraction(3), Fraction(1)), (Fraction(-1), Fraction(1, 2)), (Fraction(2), Fraction(1, 4))]
    assert standalone._lowest_mean(scores, Fraction(1, 4)) == -1
    assert standalone._lowest_mean(scores, Fraction(3, 4)) == 0
    assert standalone._lowest_mean(scores, Fraction(7, 4)) == Fraction(12, 7)
    with pytest.raises(Rejected):
        standalone._lowest_mean([], Fraction(1))


def test_rows_are_reduced_to_what_is_left():
    """x - (2)(1, 1, 0) - ... for an echelon whose first columns are 0 and 1."""
    one = Fraction(1)
    echelon = {0: {0: one, 1: one}, 1: {1: one, 2: 3 * one}}
    assert standalone._reduced({0: 2 * one, 1: 2 * one}, echelon) == {}
    assert standalone._reduced({0: 2 * one}, echelon) == {2: 6 * one}
    assert standalone._reduced({2: one}, echelon) == {2: one}
    assert standalone._reduced({0: one, 1: 2 * one, 2: 3 * one, 3: one}, echelon) == {3: one}
