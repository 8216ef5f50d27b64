"""Rigorous bounds in floating point, and exact integers for what they cannot decide.

Every function here states an inequality that holds for the stored values as real numbers, whatever the order of summation,
with or without fused multiply-add, and with subnormal results flushed or not. Operands are taken for what they are: callers
see to it that the thread is in a mode that does not flush them (`floats.ieee_floats`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np

from gordan.arrays import Array

U = 2.0**-53
# An absolute error no smaller than what underflow, gradual or flushed, can do to one product or sum.
TINY = 2.0**-1021
# Terms that are added up in any order, with roundings, before their sums are added up exactly.
SUM_BLOCK = 64
# The largest entry of a vector from which on, up to its inverse, squares of entries are added up as they are.
LEAST_PLAIN = 2.0**-400
# How often a norm is held against a bound, each time with twice as many digits: 600 in the end. Whether one of irrational powers
# is below a bound that is nearer than that is left open, as in the standalone checker.
DOUBLINGS = 5
# Bits of a power that is written down as a fraction, at most.
LONGEST_POWER = 10**6


def dyadic(x: float) -> tuple[int, int]:
    """x = m·2^e with integers."""
    m, denominator = x.as_integer_ratio()
    return m, 1 - denominator.bit_length()


def multiply(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
    """The product."""
    return x[0] * y[0], x[1] + y[1]


def add(terms: list[tuple[int, int]]) -> tuple[int, int]:
    """The sum."""
    terms = [term for term in terms if term[0]]
    if not terms:
        return 0, 0
    e = min(exponent for _, exponent in terms)
    return sum(m << (exponent - e) for m, exponent in terms), e


def round_down(m: int, e: int) -> float:
    """The largest float not above m·2^e (−∞ below all of them)."""
    return -round_up(-m, e)


def round_up(m: int, e: int) -> float:
    """The smallest float not below m·2^e (+∞ above all of them)."""
    if m == 0:
        return 0.0
    keep = max(m.bit_length() - 53, -1074 - e, 0)
    top = -((-m) >> keep)  # rounded up
    try:
        return math.ldexp(top, e + keep)
    except OverflowError:
        return math.inf if m > 0 else -math.nextafter(math.inf, 0.0)


def enclosed(value: Fraction, *, root: bool = False) -> tuple[float, float]:
    """The floats next to a nonnegative number, or to its square root: one not above it and one not below."""
    shift = max(0, 130 + value.denominator.bit_length() - value.numerator.bit_length()) & -2
    m, rest = divmod(value.numerator << shift, value.denominator)
    if root:
        square, m = m, math.isqrt(m)
        rest, shift = rest + square - m * m, shift // 2
    return round_down(m, -shift), round_up(m + (rest > 0), -shift)


def up(x: float) -> float:
    """The next float above x."""
    return math.nextafter(x, math.inf)


def down(x: float) -> float:
    """The next float below x."""
    return math.nextafter(x, -math.inf)


def below(x: Array) -> Array:
    """The next floats below x, an array."""
    return np.asarray(np.nextafter(x, -np.inf))


def above(x: Array) -> Array:
    """The next floats above x, an array."""
    return np.asarray(np.nextafter(x, np.inf))


def sum_bounds(values: Array) -> tuple[float, float]:
    """Σ values, enclosed; exact to the last bit before the widening (`math.fsum`)."""
    total = fsum(values)
    return down(total), up(total)


def near_bounds(values: Array) -> tuple[float, float]:
    """Σ values for nonnegative ones, enclosed by `near_sum`; equal ones as well as `sum_bounds` has them."""
    if len(values) <= SUM_BLOCK or values.min() == values.max():
        return sum_bounds(values)
    total = near_sum(values)
    return down(total * (1 - (SUM_BLOCK + 2) * U)), up(total * (1 + (SUM_BLOCK + 2) * U))


def exact_sum(values: Array) -> tuple[int, int]:
    """Σ values exactly, as m·2^e; the values are finite. Mantissas are added up exponent by exponent."""
    if len(values) and values.min() == values.max():
        return multiply(dyadic(float(values[0])), (len(values), 0))
    fractions, exponents = np.frexp(values)
    mantissas = np.ldexp(fractions, 53).astype(np.int64)
    high, low = mantissas >> 27, mantissas & ((1 << 27) - 1)  # so that sums of 2³⁶ of them fit 64 bits
    terms = []
    for exponent in np.unique(exponents):
        own = exponents == exponent
        terms.append(((int(high[own].sum()) << 27) + int(low[own].sum()), int(exponent) - 53))
    return add(terms)


def reaches(part: Array, whole: Array, nu: float, groups: int) -> bool:
    """Whether Σ part ≥ ν Σ whole / groups (nonnegative finite values), by floats where they can tell, else exactly."""
    for enclosed_sum in (near_bounds, sum_bounds):
        have, total = enclosed_sum(part), enclosed_sum(whole)
        if have[0] >= up(nu * total[1] / groups):
            return True
        if have[1] < down(nu * total[0] / groups):
            return False
    (m, e), (k, f) = exact_sum(part), multiply(exact_sum(whole), dyadic(nu))
    return add([(groups * m, e), (-k, f)])[0] >= 0


def fsum(values: Any) -> float:
    """`math.fsum`, infinite where that is beyond the floats; for values of one sign."""
    if isinstance(values, np.ndarray):
        if len(values) > SUM_BLOCK and values.min() == values.max():
            return len(values) * float(values[0])  # rounded once, as the exact sum would be
        # most weights of a large problem are 0, and a list is gone through in half the time
        values = values[values != 0].tolist()
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf if values[0] >= 0 else -math.inf


def norm_bound(size: Array, p: float, *, dual: bool) -> float:
    """What ‖x‖_p is at most for |x| = size; or the norm of the dual exponent q = p/(p-1), if `dual`.

    q is never rounded: for p other than 2 and ∞ powers are enclosed by ball arithmetic with the rational p/(p-1).
    """
    largest = float(np.max(size, initial=0.0))
    if largest == 0 or not math.isfinite(largest):
        return largest if largest == 0 else math.inf
    if math.isinf(p) or p == 1:
        return up(fsum(size)) if dual == math.isinf(p) else largest
    exponent = math.frexp(largest)[1]
    size = np.ldexp(size, -exponent)  # exact, but for what underflows: nothing beside the largest, which is 1/2 at least
    # the square is off by (SUM_BLOCK + 2)u, its root by half of that
    length = math.sqrt(near_sum(size * size)) * (1 + SUM_BLOCK * U) if p == 2 else _power_norm(size, p, dual)
    return up(_ldexp(length, exponent))


def length(x: Array) -> float:
    """What ‖x‖₂ is at most; of a matrix, its Frobenius norm.

    Entries of usual size need not be scaled: what underflows in their squares is nothing beside the largest, and blocks of
    squares are added up as in `near_sum`, in one pass.
    """
    x = np.ravel(x)
    whole = len(x) - len(x) % SUM_BLOCK
    if not whole or not LEAST_PLAIN <= max(float(x.max()), -float(x.min())) <= 1 / LEAST_PLAIN:
        return norm_bound(np.abs(x), 2.0, dual=False)
    blocks, rest = x[:whole].reshape(-1, SUM_BLOCK), x[whole:]
    squares = np.einsum("ij,ij->i", blocks, blocks)
    return up(math.sqrt(fsum([*squares.tolist(), *(rest * rest).tolist()])) * (1 + SUM_BLOCK * U))


def norm_at_most(x: Sequence[int], bound: Fraction, p: float, *, dual: bool) -> bool:
    """Whether ‖x‖_p ≤ bound, or ‖x‖_q with q = p/(p-1) if `dual`: decided exactly, whether the norm is rational or not."""
    sizes = [abs(value) for value in x if value]
    if not sizes or bound <= 0:
        return bound >= 0 and not sizes
    if math.isinf(p) or p == 1:
        return bound >= (sum(sizes) if dual == math.isinf(p) else max(sizes))
    if p == 2:
        return bool(sum(map(mul, sizes, sizes)) * bound.denominator**2 <= bound.numerator**2)
    power = Fraction(p) / (Fraction(p) - 1) if dual else Fraction(p)
    return _powers_at_most_one([size / bound for size in sizes], power)


def _powers_at_most_one(shares: Sequence[Fraction], power: Fraction) -> bool:
    """Whether Σ r^power ≤ 1 for positive rationals r: in fractions if all terms are some, else in balls, ever more precise.

    Balls decide in the end, since a sum with an irrational term is not 1. That term is c^(1/k) with k least, and the mean of its
    conjugates is 0; if the sum were 1, so would be the mean of its conjugates, which is the sum of the rational terms alone.
    """
    from flint import arb, ctx, fmpq

    if len(shares) == 1 or max(shares) >= 1:
        return len(shares) == 1 and shares[0] <= 1
    ratios = [fmpq(share.numerator, share.denominator) for share in shares]
    exponent = fmpq(power.numerator, power.denominator)
    for k in range(DOUBLINGS):
        with ctx.workprec((128 + 2 * int(power).bit_length()) << k):
            total = sum((arb(ratio) ** arb(exponent) for ratio in ratios), arb(0))
            if total < 1 or total > 1:
                return bool(total < 1)
        exact = _sum_of_powers(shares, power) if k == 0 else None
        if exact is not None:
            return exact <= 1
    return False


def _sum_of_powers(shares: Sequence[Fraction], power: Fraction) -> Fraction | None:
    """Σ r^(a/b) for rationals 0 < r < 1; None where an r is not the b-th power of a rational, or its power is too long."""
    from flint import fmpz

    total = Fraction(0)
    for share in shares:
        bits = share.denominator.bit_length()
        if power.denominator >= bits or power * bits > LONGEST_POWER:
            return None
        root = Fraction(*(int(fmpz(part).root(power.denominator)) for part in (share.numerator, share.denominator)))
        if root**power.denominator != share:
            return None
        total += root**power.numerator
    return total


def near_sum(values: Array) -> float:
    """Σ values up to a factor 1 ± (SUM_BLOCK + 1)u, for nonnegative ones: so many at a time are added up in any order, and those
    sums exactly. Infinite where that is beyond the floats."""
    whole = len(values) - len(values) % SUM_BLOCK
    with np.errstate(over="ignore"):
        sums = values[:whole].reshape(-1, SUM_BLOCK).sum(axis=1)
    return fsum([*sums.tolist(), *values[whole:].tolist()])


def _ldexp(x: float, exponent: int) -> float:
    """x·2^exponent, infinite where that is beyond the floats."""
    try:
        return math.ldexp(x, exponent)
    except OverflowError:
        return math.inf


def _power_norm(size: Array, p: float, dual: bool) -> float:
    """The same for entries in [0, 1], by ball arithmetic."""
    from flint import arb, ctx, fmpq

    numerator, denominator = float(p).as_integer_ratio()
    exact = fmpq(numerator, numerator - denominator) if dual else fmpq(numerator, denominator)
    with ctx.workprec(128 + 2 * (numerator // denominator).bit_length()):
        power, root = arb(exact), arb(1 / exact)
        total = arb(0)
        for value in size.tolist():
            if value > 0:
                total += arb(value) ** power
        if not total > 0:  # nothing is known but that any norm is at most the sum of all
            return up(float(np.max(size)) * len(size))
        return up(float((total**root).upper()))
