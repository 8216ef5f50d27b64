"""Exponential, logarithm and entropy with proved error bounds, computed by + - × / and powers of two alone.

The accuracy of a library's `exp` has to be trusted; that of these functions is proved in their docstrings, for every machine with
IEEE arithmetic. With u = 2⁻⁵³, the relative error of each is below 10u. Bounds allow for REL = 32u, and for TINY where results
may underflow. Arguments are NumPy arrays, or tensors on a device whose float64 is that of IEEE 754.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gordan.arrays import LN2_HIGH, LN2_LOW, Array, namespace
from gordan.certificates.bounds import TINY
from gordan.floats import U

REL = 2.0**-48
# The relative error that is allowed for two of these functions, one applied to the other, and the few operations around them.
REL_TWO = 2.0**-45
LN2 = 0.6931471805599453
# Below this number, e^x is less than TINY.
MIN_EXPONENT = -800.0
# The coefficients of the powers of r in e^r, and of those of s² in artanh(s)/s.
OF_EXP = [1.0 / math.factorial(j) for j in range(15)]
OF_ARTANH = [1.0 / j for j in range(1, 36, 2)]
# Smaller shares are left out of an entropy, since products with them may be subnormal.
MIN_SHARE = 2.0**-960


def exp(x: Array) -> Array:
    """Return e^x (1 ± REL) ± TINY for x ≤ 0.

    x = k ln 2 + r with |r| < 0.347. The difference x - k·LN2_HIGH is exact: both are multiples of 2⁻⁵⁴ or of the unit of x, and
    it is below ½. So the error of r is 0.4u. The Taylor sum of degree 14 leaves out 0.001u; its last steps, and its coefficients
    from 1/3! on, are rounded by less than 3u.
    """
    xp = namespace(x)
    x = x.clip(min=MIN_EXPONENT)
    k = xp.round(x * 1.4426950408889634)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    total = _polynomial(OF_EXP, r)
    return np.asarray(np.ldexp(total, k.astype(np.int32))) if xp is np else _ldexp(total, k, xp)


def _ldexp(x: Any, k: Any, torch: Any) -> Any:
    """Return x·2^k for tensors, by two powers of two made of their bits: torch's own powers are those of a library."""
    k = k.to(torch.int64)
    for part in (k // 2, k - k // 2):
        x = x * ((part + 1023) << 52).view(torch.float64)
    return x


def log1p(x: Array) -> Array:
    """Return log(1 + x) (1 ± REL) ± TINY for -½ ≤ x ≤ 1, as 2 artanh(x/(2 + x)).

    The relative error of s = x/(2 + x) is 2u. Since |s| ≤ 1/3, the 18 terms, which have one sign, leave out less than u, and
    their sum is rounded by 2u.
    """
    s = x / (2.0 + x)
    log: Array = 2.0 * s * _polynomial(OF_ARTANH, s * s)
    return log


def _polynomial(factors: list[float], x: Any) -> Any:
    """Return Σ factors_j x^j. A device may round a product and the sum that it is added to only once, together."""
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
    """Return -log q (1 ± REL) for 0 < q ≤ ½.

    q = m·2^e with ½ ≤ m < 1, where m - 1 is exact and both parts of the logarithm have the same sign.
    """
    m, e = _parted(q)
    log: Array = -e * LN2 - log1p(m - 1.0)
    return log


def _parted(q: Any) -> tuple[Any, Any]:
    """Return m and e with q = m·2^e, both as float64, since torch makes float32 of an integer and a float."""
    m, e = namespace(q).frexp(q)
    return m, e + 0.0 * m


def log1p_above(x: Array) -> Array:
    """Return an upper bound on log(1 + x) for x ≥ 0.

    For x > 1 this is -log(1/(1 + x)), in which an error of 2u of 1/(1 + x) matters little.
    """
    xp, small = namespace(x), x <= 1
    m, e = _parted((1.0 / (1.0 + x)).clip(max=0.5))
    log = log1p(xp.where(small, x, m - 1.0))
    log = xp.where(small, log, -e * LN2 - log)
    above: Array = log * (1 + REL_TWO) + 4 * TINY
    return above


def neg_log_above(x: Array) -> Array:
    """Return an upper bound on -log(1 - x) for 0 ≤ x ≤ ½."""
    return np.asarray(-log1p(-x) * (1 + REL_TWO) + 4 * TINY)


def complement_below(x: Array) -> Array:
    """Return a lower bound on -(1-x) ln(1-x) for 0 ≤ x < 1; 1 - x is exact for x ≥ ½."""
    xp, small = namespace(x), x <= 0.5
    m, e = _parted((1.0 - x).clip(max=0.5))
    log = -xp.where(small, 0.0, e * LN2) - log1p(xp.where(small, -x, m - 1.0))
    below: Array = xp.where(x > MIN_SHARE, (1.0 - x) * log * (1 - REL_TWO), 0.0)
    return below


def softplus_above(z: Array) -> Array:
    """Return an upper bound on log(1 + e⁻ᶻ) = max(-z, 0) + log1p(e^-|z|).

    A relative error of e^-|z| causes at most the same relative error of its log1p.
    """
    small = log1p(exp(-abs(z)))
    return ((-z).clip(min=0.0) + small * (1 + REL_TWO) + 4 * TINY) * (1 + 4 * U)


def sigmoid(z: Array) -> tuple[Array, Array]:
    """Return a lower and an upper bound on 1/(1 + eᶻ)."""
    e = exp(-abs(z))
    centre = namespace(z).where(z >= 0, e, 1.0) / (1.0 + e)
    return (centre * (1 - REL_TWO) - 4 * TINY).clip(min=0.0), (centre * (1 + REL_TWO) + 4 * TINY).clip(max=1.0)


def entropy_below(q: Array) -> Array:
    """Return a lower bound on -q ln q - (1-q) ln(1-q) for 0 ≤ q ≤ ½. Both parts are positive."""
    xp = namespace(q)
    s = xp.where(q > 0, q, 0.5)
    entropy = s * neg_log(s) - (1.0 - s) * log1p(-s)
    below: Array = xp.where(q > MIN_SHARE, entropy * (1 - REL_TWO), 0.0)
    return below
