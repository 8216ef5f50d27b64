"""Exponential, logarithm and entropy with a known error, made of + - × / and powers of two alone.

A library's `exp` is as good as its authors say; these are as good as the comments prove, on every machine with IEEE arithmetic.
u = 2⁻⁵³. Each function is off by a share of less than 10u; REL = 32u is allowed for, and TINY besides where results underflow.
They take arrays of NumPy, and tensors on a device whose float64 is that of IEEE 754.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gordan.arrays import Array, namespace
from gordan.certificates.bounds import TINY, U

REL = 2.0**-48
# Of two of these functions, one applied to the other, and the few operations around them.
REL_TWO = 2.0**-45
# ln 2 in two parts: the first has 32 digits, so that its product with an exponent is exact; together they are off by 2⁻⁸⁶ or
# so.
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
LN2 = 0.6931471805599453
# Below this e^x is less than TINY.
LEAST_EXPONENT = -800.0
# What the powers of r are multiplied by in e^r, and those of s² in artanh(s)/s.
OF_EXP = [1.0 / math.factorial(j) for j in range(15)]
OF_ARTANH = [1.0 / j for j in range(1, 36, 2)]
# A share of an entropy that small is left out: products with it may be subnormal.
LEAST_SHARE = 2.0**-960


def exp(x: Array) -> Array:
    """e^x (1 ± REL) ± TINY for x ≤ 0.

    x = k ln 2 + r with |r| < 0.347. x - k·LN2_HIGH is exact: both are multiples of 2⁻⁵⁴ or of the unit of x, and the
    difference is below ½. So r is off by 0.4u; the Taylor sum of degree 14 leaves out 0.001u, and its last steps, and its factors
    from 1/3! on, round by less than 3u.
    """
    xp = namespace(x)
    x = x.clip(min=LEAST_EXPONENT)
    k = xp.round(x * 1.4426950408889634)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    total = _polynomial(OF_EXP, r)
    return np.asarray(np.ldexp(total, k.astype(np.int32))) if xp is np else _ldexp(total, k, xp)


def _ldexp(x: Any, k: Any, torch: Any) -> Any:
    """x·2^k of tensors: by two powers of two that are made of their bits, since torch's own are those of a library."""
    k = k.to(torch.int64)
    for part in (k // 2, k - k // 2):
        x = x * ((part + 1023) << 52).view(torch.float64)
    return x


def log1p(x: Array) -> Array:
    """log(1 + x) (1 ± REL) ± TINY for -½ ≤ x ≤ 1, as 2 artanh(x/(2 + x)).

    s = x/(2 + x) is off by 2u; |s| ≤ 1/3, so that the 18 terms, of one sign, leave out less than u, and adding them rounds by
    2u.
    """
    s = x / (2.0 + x)
    log: Array = 2.0 * s * _polynomial(OF_ARTANH, s * s)
    return log


def _polynomial(factors: list[float], x: Any) -> Any:
    """Σ factors_j x^j. A device may round x times the sum and what it is added to together, as one."""
    xp = namespace(x)
    if xp is np:
        total = np.full_like(x, factors[-1])
        for factor in factors[-2::-1]:
            total *= x
            total += factor
        return total
    *rest, total = xp.tensor(factors, dtype=x.dtype, device=x.device).unbind()
    for factor in reversed(rest):
        total = xp.addcmul(factor, total, x)
    return total


def neg_log(q: Array) -> Array:
    """-log q (1 ± REL) for 0 < q ≤ ½: q = m·2^e with ½ ≤ m < 1, where m - 1 is exact and both parts have one sign."""
    m, e = _parted(q)
    log: Array = -e * LN2 - log1p(m - 1.0)
    return log


def _parted(q: Any) -> tuple[Any, Any]:
    """m and e with q = m·2^e, both of float64: torch makes float32 of a whole number and a float."""
    m, e = namespace(q).frexp(q)
    return m, e + 0.0 * m


def log1p_above(x: Array) -> Array:
    """What log(1 + x) is at most, for x ≥ 0: by -log(1/(1 + x)) above 1, where an error of 2u in 1/(1 + x) matters little."""
    xp, small = namespace(x), x <= 1
    m, e = _parted((1.0 / (1.0 + x)).clip(max=0.5))
    log = log1p(xp.where(small, x, m - 1.0))
    log = xp.where(small, log, -e * LN2 - log)
    above: Array = log * (1 + REL_TWO) + 4 * TINY
    return above


def neg_log_above(x: Array) -> Array:
    """What -log(1 - x) is at most, for 0 ≤ x ≤ ½."""
    return np.asarray(-log1p(-x) * (1 + REL_TWO) + 4 * TINY)


def complement_below(x: Array) -> Array:
    """What -(1-x) ln(1-x) is at least, for 0 ≤ x < 1; 1 - x is exact from ½ on."""
    xp, small = namespace(x), x <= 0.5
    m, e = _parted((1.0 - x).clip(max=0.5))
    log = -xp.where(small, 0.0, e * LN2) - log1p(xp.where(small, -x, m - 1.0))
    below: Array = xp.where(x > LEAST_SHARE, (1.0 - x) * log * (1 - REL_TWO), 0.0)
    return below


def softplus_above(z: Array) -> Array:
    """What log(1 + e⁻ᶻ) is at most. max(-z, 0) + log1p(e^-|z|): an error of e^-|z| is at most the same share of its log1p."""
    small = log1p(exp(-abs(z)))
    return ((-z).clip(min=0.0) + small * (1 + REL_TWO) + 4 * TINY) * (1 + 4 * U)


def sigmoid(z: Array) -> tuple[Array, Array]:
    """What 1/(1 + eᶻ) is at least and at most."""
    e = exp(-abs(z))
    centre = namespace(z).where(z >= 0, e, 1.0) / (1.0 + e)
    return (centre * (1 - REL_TWO) - 4 * TINY).clip(min=0.0), (centre * (1 + REL_TWO) + 4 * TINY).clip(max=1.0)


def entropy_below(q: Array) -> Array:
    """What -q ln q - (1-q) ln(1-q) is at least, for 0 ≤ q ≤ ½. Both parts are positive."""
    xp = namespace(q)
    s = xp.where(q > 0, q, 0.5)
    entropy = s * neg_log(s) - (1.0 - s) * log1p(-s)
    below: Array = xp.where(q > LEAST_SHARE, entropy * (1 - REL_TWO), 0.0)
    return below
