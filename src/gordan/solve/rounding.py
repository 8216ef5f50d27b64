"""Float vectors that separate, near an exact rational w that does.

The cone {w : M w > 0} of a few integer rows M may be so thin that w, rounded to floats, is outside: where the terms of a score
cancel to more than 53 bits, or where the range of the entries of w exceeds that of exponents. Then entries are fixed one after
the other, those with the largest terms first, each at a float of few bits for which the cone still has a w. The smaller terms
make up for the rounding of the larger ones, since their floats are finer.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import fmpq, fmpz

from gordan.arrays import Array
from gordan.deadlines import Deadline
from gordan.solve.alternative import Separator, alternative

# Rounds in which rows and columns are scaled by the last w, so that no row is much nearer to its plane than others.
CENTRING_ROUNDS = 6
# Numbers of bits tried for an entry, few first: the entries that follow then more likely have a float left.
BITS = (1, 2, 3, 4, 6, 8, 11, 15, 20, 26, 33, 41, 50, 53)
# Sizes of the first entry that are tried; fewer in proportion where rows times columns squared exceed the second number.
MAX_TRIALS, FULL_TRIALS_SIZE = 40, 600
# Work on exact systems (rows times columns squared times digits, summed over the systems): at most this much, which takes about
# five seconds. Without a limit, rows of full digits and dozens of columns would take hours, and floats rarely separate such rows.
MAX_WORK = 1 << 23
# The range of exponents of floats.
MIN_EXPONENT, MAX_EXPONENT = -1074, 1023

Vector = list[Any]


@dataclass
class Allowance:
    """What may still be spent on exact systems: time until the deadline, and work, which is the same on every machine."""

    deadline: Deadline
    work: float = MAX_WORK

    @property
    def spent(self) -> bool:
        """Whether nothing is left of one of the two."""
        return self.work <= 0 or self.deadline.passed

    def alternative(self, M: list[Vector]) -> Any:
        """Decide Gordan's alternative for the rows M; None if time or work is spent."""
        digits = max(int(x.p.bit_length()) + int(x.q.bit_length()) for row in M for x in row)
        self.work -= len(M) * len(M[0]) ** 2 * digits
        return None if self.spent else alternative(M, self.deadline)


def float_separators(M: Sequence[Vector], allowance: Allowance) -> Iterator[Array]:
    """Yield float vectors w with M w > 0, exactly, for rows M of `fmpq` that have a separator; the cheapest to find come first.

    Nothing long is begun once the allowance is spent.
    """
    w: Vector | None = None
    for _ in range(CENTRING_ROUNDS):
        w = _centred(M, w, allowance)
        if w is None or allowance.spent:
            return
        yield from _checked(M, w)
    assert w is not None
    rng = random.Random(0)
    for trial in range(max(1, MAX_TRIALS * FULL_TRIALS_SIZE // max(FULL_TRIALS_SIZE, len(M) * len(w) ** 2))):
        # another size of the first entry leads to other floats for those that follow
        size = 1 if trial == 0 else rng.getrandbits(rng.choice((3, 8, 20, 40, 53))) | 1
        found = _fixed_one_by_one(M, w, size, allowance)
        if found is not None:
            yield from _checked(M, found)
        if allowance.spent:
            return


def _checked(M: Sequence[Vector], w: Vector) -> Iterator[Array]:
    """Yield w as floats, if these separate."""
    floats = as_floats(w)
    if np.isfinite(floats).all():
        exact = [fmpq(*x.as_integer_ratio()) for x in floats.tolist()]
        if all(score > 0 for score in _scores(M, exact)):
            yield floats


def _scores(M: Sequence[Vector], w: Vector) -> Vector:
    return [sum((x * v for x, v in zip(row, w, strict=True)), fmpq(0)) for row in M]


def _centred(M: Sequence[Vector], w: Vector | None, allowance: Allowance) -> Vector | None:
    """Return a separator of M, found with rows and columns scaled so that the terms of each score at w are at most about 1.

    None if there is no separator, or the allowance is spent.
    """
    if w is None:
        columns, sizes = [fmpq(1)] * len(M[0]), [_power(max(map(abs, row))) for row in M]
    else:
        columns = [_power(x) for x in w]
        sizes = [_power(max(abs(x * v) for x, v in zip(row, w, strict=True))) for row in M]
    scaled = [[x * c / s for x, c in zip(row, columns, strict=True)] for row, s in zip(M, sizes, strict=True)]
    answer = allowance.alternative(scaled)
    return [x * c for x, c in zip(answer.w, columns, strict=True)] if isinstance(answer, Separator) else None


def _fixed_one_by_one(M: Sequence[Vector], w: Vector, size: int, allowance: Allowance) -> Vector | None:
    """Return a separator of M whose entries have at most 53 bits, from any separator w; the first entry to be fixed is ±size."""
    fixed: dict[int, Any] = {}
    while len(fixed) < len(w):
        scores = _scores(M, w)
        rest = [j for j in range(len(w)) if j not in fixed]
        terms = {j: max(abs(row[j] * w[j]) / score for row, score in zip(M, scores, strict=True)) for j in rest}
        j = max(rest, key=lambda j: terms[j])
        if terms[j] == 0:  # the entries that are left may all be 0
            return [fixed.get(i, fmpq(0)) for i in range(len(w))]
        if not fixed:
            w = [x * size / abs(w[j]) for x in w]
            fixed[j] = w[j]
            continue
        moved = _with_short_entry(M, w, scores, j, fixed, allowance)
        if moved is None:
            return None
        w = moved
        fixed[j] = w[j]
    return w


def _with_short_entry(
    M: Sequence[Vector], w: Vector, scores: Vector, j: int, fixed: dict[int, Any], allowance: Allowance
) -> Vector | None:
    """Return a separator whose entry j has as few bits as possible; the other entries stay as they are, if they can."""
    near = [*_dyadic(w[j])]
    kept = (x for x in near if all(s + row[j] * (x - w[j]) > 0 for row, s in zip(M, scores, strict=True)))
    x = next(kept, None)
    if x is not None:
        return [*w[:j], x, *w[j + 1 :]]
    tried = (_with_entries(M, w, {**fixed, j: x}, allowance) for x in near if not allowance.spent)
    return next((other for other in tried if other is not None), None)


def _with_entries(M: Sequence[Vector], w: Vector, fixed: dict[int, Any], allowance: Allowance) -> Vector | None:
    """Return a separator of M with these entries fixed, or None.

    The fixed entries are combined to one column, whose entry must be positive; the separator is divided by that entry.
    """
    others = [i for i in range(len(w)) if i not in fixed]
    rows = [[*(row[i] for i in others), sum((row[i] * x for i, x in fixed.items()), fmpq(0))] for row in M]
    rows.append([*(fmpq(0) for _ in others), fmpq(1)])
    found = _centred(rows, [*(w[i] for i in others), fmpq(1)], allowance)
    if found is None:
        return None
    whole = {**fixed, **{i: x / found[-1] for i, x in zip(others, found, strict=False)}}
    return [whole[i] for i in range(len(w))]


def _dyadic(x: Any) -> Iterator[Any]:
    """Yield the numbers of few bits next to x, below and above, the nearer first, with more and more bits; 0 at the end."""
    if x != 0:
        top = _power(x)
        top = top / 2 if top > abs(x) else top
        seen = set()
        for bits in BITS:
            unit = top / (1 << (bits - 1))
            below = (x / unit).floor()
            for whole in sorted((below, below + 1), key=lambda whole: abs(x - whole * unit)):
                if whole * unit not in seen:
                    seen.add(whole * unit)
                    yield whole * unit
    yield fmpq(0)


def _power(x: Any) -> Any:
    """Return the power of two near |x|; 1 for 0."""
    e = int(x.p.bit_length()) - int(x.q.bit_length()) if x != 0 else 0
    return fmpq(fmpz(1) << e) if e >= 0 else fmpq(fmpz(1), fmpz(1) << -e)


def as_floats(w: Vector) -> Array:
    """Return the rational w times a power of two, rounded to floats.

    The largest entry is near 1, unless small ones would lose bits: then it is as large as floats can be.
    """
    used = [x for x in w if x != 0]
    if not used:
        return np.zeros(len(w))
    exponents = [int(x.p.bit_length()) - int(x.q.bit_length()) for x in used]
    shift = -max(exponents)
    if min(exponents) + shift < MIN_EXPONENT + 53:
        shift += MAX_EXPONENT - 1
    return np.array([_nearest(x, shift) for x in w])


def _nearest(x: Any, shift: int) -> float:
    """Return x·2^shift rounded to a float."""
    p, q = int(x.p), int(x.q)
    p, q = (p << shift, q) if shift >= 0 else (p, q << -shift)
    try:
        return p / q
    except OverflowError:
        return math.copysign(math.inf, p)
