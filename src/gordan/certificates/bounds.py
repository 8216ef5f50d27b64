"""Rigorous bounds in floating point, and exact integers for what they cannot decide.

Every function here states an inequality that holds for the stored values as real numbers, whatever the order of summation,
with or without fused multiply-add, and whether or not subnormal results are flushed to zero. Subnormal operands must not be
flushed: callers ensure that the thread is in such a mode (`floats.ieee_floats`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.floats import U
from gordan.rows import host

# An upper bound on the absolute error that underflow, gradual or flushed, can cause in one product or sum.
TINY = 2.0**-1021
# The number of terms that are added up in floats, in any order, before these partial sums are added up exactly.
SUM_BLOCK = 64
# The least size of the largest entry of a vector, and its inverse the greatest, for which squares of entries are added unscaled.
MIN_PLAIN = 2.0**-400
# How many precisions are tried when a norm is compared with a bound, each twice the one before; the last has about 600 decimal
# digits. A norm with irrational powers that is closer to the bound than that counts as above it, as in the standalone checker.
DOUBLINGS = 5
# The largest number of bits of a power that is computed as a fraction.
LONGEST_POWER = 10**6


def dyadic(x: float) -> tuple[int, int]:
    """Return integers m and e with x = m·2^e."""
    m, denominator = x.as_integer_ratio()
    return m, 1 - denominator.bit_length()


def multiply(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
    """Return the exact product of two numbers that are given as (m, e), meaning m·2^e."""
    return x[0] * y[0], x[1] + y[1]


def common_exponent(numbers: list[tuple[int, int]]) -> tuple[list[int], int]:
    """Return integers m and one e with numbers = m·2^e for numbers that are given as (m, e); e is the least of theirs."""
    least = min((e for _, e in numbers), default=0)
    return [m << (e - least) for m, e in numbers], least


def add(terms: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the exact sum of numbers that are given as (m, e), meaning m·2^e."""
    numbers, e = common_exponent([term for term in terms if term[0]])
    return sum(numbers), e


def round_down(m: int, e: int) -> float:
    """Return the largest float that is not above m·2^e, or -∞ if m·2^e is below all finite floats."""
    return -round_up(-m, e)


def round_up(m: int, e: int) -> float:
    """Return the smallest float that is not below m·2^e, or +∞ if m·2^e is above all finite floats."""
    if m == 0:
        return 0.0
    keep = max(m.bit_length() - 53, -1074 - e, 0)
    top = -((-m) >> keep)  # rounded up
    try:
        return math.ldexp(top, e + keep)
    except OverflowError:
        return math.inf if m > 0 else -math.nextafter(math.inf, 0.0)


def round_near(m: int, e: int) -> float:
    """Return the float nearest to m·2^e, infinite if it is beyond the floats."""
    try:
        return float(m << e) if e >= 0 else m / (1 << -e)
    except OverflowError:
        return math.inf if m > 0 else -math.inf


def enclosed(value: Fraction, *, root: bool = False) -> tuple[float, float]:
    """Return a float not above and a float not below a nonnegative number, or its square root; both are next to it."""
    shift = max(0, 130 + value.denominator.bit_length() - value.numerator.bit_length()) & -2
    m, rest = divmod(value.numerator << shift, value.denominator)
    if root:
        square, m = m, math.isqrt(m)
        rest, shift = rest + square - m * m, shift // 2
    return round_down(m, -shift), round_up(m + (rest > 0), -shift)


def up(x: float) -> float:
    """Return the next float above x."""
    return math.nextafter(x, math.inf)


def down(x: float) -> float:
    """Return the next float below x."""
    return math.nextafter(x, -math.inf)


def below(x: Array) -> Array:
    """Return the next float below each entry of the array x."""
    return np.asarray(np.nextafter(x, -np.inf))


def above(x: Array) -> Array:
    """Return the next float above each entry of the array x."""
    return np.asarray(np.nextafter(x, np.inf))


def sum_bounds(values: Any) -> tuple[float, float]:
    """Return a lower and an upper bound on Σ values: the correctly rounded sum (`fsum`), widened by one float on each side."""
    total = fsum(values)
    return down(total), up(total)


def near_bounds(values: Any) -> tuple[float, float]:
    """Return a lower and an upper bound on Σ values for nonnegative values, by the faster `near_sum`.

    Few values, and values that are all equal, get the narrower bounds of `sum_bounds`.
    """
    if len(values) <= SUM_BLOCK or _all_equal(values):
        return sum_bounds(values)
    total = near_sum(values)
    return down(total * (1 - (SUM_BLOCK + 2) * U)), up(total * (1 + (SUM_BLOCK + 2) * U))


def exact_sum(values: Array) -> tuple[int, int]:
    """Return integers m and e with Σ values = m·2^e exactly, for finite values.

    The mantissas of all values with the same exponent are added up as integers.
    """
    if len(values) and _all_equal(values):
        return multiply(dyadic(float(values[0])), (len(values), 0))
    fractions, exponents = np.frexp(values)
    mantissas = np.ldexp(fractions, 53).astype(np.int64)
    high, low = mantissas >> 27, mantissas & ((1 << 27) - 1)  # of 27 bits each, so that sums of 2³⁶ of them fit in 64 bits
    terms = []
    for exponent in np.unique(exponents):
        own = exponents == exponent
        terms.append(((int(high[own].sum()) << 27) + int(low[own].sum()), int(exponent) - 53))
    return add(terms)


def reaches(part: Any, whole: Any, nu: float, groups: int) -> bool:
    """Return whether Σ part ≥ ν Σ whole / groups for nonnegative finite values: by float bounds if they decide, else exactly."""
    for enclosed_sum in (near_bounds, sum_bounds):
        have, total = enclosed_sum(part), enclosed_sum(whole)
        if have[0] >= up(nu * total[1] / groups):
            return True
        if have[1] < down(nu * total[0] / groups):
            return False
    (m, e), (k, f) = exact_sum(host(part)), multiply(exact_sum(host(whole)), dyadic(nu))
    return add([(groups * m, e), (-k, f)])[0] >= 0


def fsum(values: Any) -> float:
    """Return the correctly rounded sum of values of one sign, as `math.fsum` does; ±∞ if it is beyond the floats."""
    if hasattr(values, "shape"):
        if len(values) > SUM_BLOCK and _all_equal(values):
            return len(values) * float(values[0])  # rounded once, as the exact sum would be
        # most weights of a large problem are 0, and iterating over a list takes half the time
        values = values[values != 0].tolist()
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf if values[0] >= 0 else -math.inf


def _all_equal(values: Any) -> bool:
    """Return whether all values are equal; a number that was broadcast to an array need not be read n times."""
    broadcast = isinstance(values, np.ndarray) and values.strides == (0,)
    return broadcast or bool(values.min() == values.max())


def norm_bound(size: Array, p: float, *, dual: bool) -> float:
    """Return an upper bound on ‖x‖_p for |x| = size, or on ‖x‖_q with q = p/(p-1) if `dual`.

    q is never rounded: for p other than 1, 2 and ∞ the powers are enclosed by ball arithmetic with the rational p/(p-1).
    """
    largest = float(np.max(size, initial=0.0))
    if largest == 0 or not math.isfinite(largest):
        return largest if largest == 0 else math.inf
    if math.isinf(p) or p == 1:
        return up(fsum(size)) if dual == math.isinf(p) else largest
    exponent = math.frexp(largest)[1]
    size = np.ldexp(size, -exponent)  # exact except for underflow, which is negligible beside the largest entry, at least 1/2
    # relative errors: (SUM_BLOCK + 2)u of the sum of squares, and so half of that of its root
    length = math.sqrt(near_sum(size * size)) * (1 + SUM_BLOCK * U) if p == 2 else _power_norm(size, p, dual)
    return up(_ldexp(length, exponent))


def length(x: Array) -> float:
    """Return an upper bound on ‖x‖₂; for a matrix, on its Frobenius norm.

    Entries of ordinary size need no scaling: what underflows in their squares is negligible next to the largest one. Squares are
    added up in blocks of SUM_BLOCK, of which each term is rounded as often at most, and the sums of blocks are added exactly. So
    the root is off by half as many roundings and three more, and the factor allows for twice as many.
    """
    x = np.ravel(np.asarray(x, dtype=np.float64))
    whole = len(x) - len(x) % SUM_BLOCK
    if not whole or not MIN_PLAIN <= max(float(x.max()), -float(x.min())) <= 1 / MIN_PLAIN:
        return norm_bound(np.abs(x), 2.0, dual=False)
    blocks, rest = x[:whole].reshape(-1, SUM_BLOCK), x[whole:]
    squares = np.einsum("ij,ij->i", blocks, blocks)
    return up(math.sqrt(fsum([*squares.tolist(), *(rest * rest).tolist()])) * (1 + SUM_BLOCK * U))


def norm_at_most(x: Sequence[int], bound: Fraction, p: float, *, dual: bool) -> bool:
    """Return whether ‖x‖_p ≤ bound, or ‖x‖_q ≤ bound with q = p/(p-1) if `dual`.

    True is always proved. False is exact as well, except for a norm with irrational powers that is so close to the bound
    that the precisions of `_powers_at_most_one` do not separate them.
    """
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
    """Return whether Σ r^power ≤ 1 for positive rationals r, by ball arithmetic of increasing precision.

    If the first precision does not decide and all terms are rational, their sum is computed as a fraction. Otherwise some
    precision would decide, since a sum with an irrational term is not 1: such a term is c^(1/k) with the least possible k, and
    the mean of its conjugates is 0; if the sum were 1, so would be the mean of its conjugates, which is the sum of the rational
    terms alone. The precision is limited (`DOUBLINGS`), and what it leaves undecided is reported as False.
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
    """Return Σ r^(a/b) for rationals 0 < r < 1 as a fraction, with power = a/b.

    Returns None if some r is not the b-th power of a rational number, or if r^(a/b) has more than LONGEST_POWER bits.
    """
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


def near_sum(values: Any) -> float:
    """Return Σ values for nonnegative values, up to a factor of 1 ± (SUM_BLOCK + 1)u; infinite if it is beyond the floats.

    Blocks of SUM_BLOCK values are added up in any order, with SUM_BLOCK - 1 roundings, and the sums of the blocks by `fsum`. For
    values of both signs the error is at most (SUM_BLOCK + 1)u Σ|values|. Blocks of a vector on a device are added up there.
    """
    whole = len(values) - len(values) % SUM_BLOCK
    with np.errstate(over="ignore"):
        sums = values[:whole].reshape(-1, SUM_BLOCK).sum(1)
    return fsum([*sums.tolist(), *values[whole:].tolist()])


def _ldexp(x: float, exponent: int) -> float:
    """Return x·2^exponent, infinite if that is beyond the floats."""
    try:
        return math.ldexp(x, exponent)
    except OverflowError:
        return math.inf


def _power_norm(size: Array, p: float, dual: bool) -> float:
    """Return the upper bound of `norm_bound` for entries in [0, 1], by ball arithmetic."""
    from flint import arb, ctx, fmpq

    numerator, denominator = float(p).as_integer_ratio()
    exact = fmpq(numerator, numerator - denominator) if dual else fmpq(numerator, denominator)
    with ctx.workprec(128 + 2 * (numerator // denominator).bit_length()):
        power, root = arb(exact), arb(1 / exact)
        total = arb(0)
        for value in size.tolist():
            if value > 0:
                total += arb(value) ** power
        if not total > 0:  # the ball contains 0: use that every norm is at most the sum of the entries
            return up(float(np.max(size)) * len(size))
        return up(float((total**root).upper()))
