"""When to be done, and whether a piece of work that cannot be interrupted ends before that, at the pace measured in this call."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

# The product of two matrices of this size is timed: a tenth of a millisecond. Work of no more multiplications than in so many of
# them is begun without: to measure must not take longer than what it is for.
TIMED, UNTIMED = 96, 32
# What work takes beside the multiplications in a product of dense matrices, by measurement on two machines: the copies around a
# Gram matrix of dense rows; products with sparse rows, which SciPy makes on one thread; factors of a symmetric matrix with what
# solves by them; an orthonormal basis, and one with pivots; loops over rows of a factor; elimination modulo a prime.
DENSE_GRAM, SPARSE_GRAM, CHOLESKY, BASIS, PIVOTED, LOOPS, MODULAR = 2.0, 4.0, 3.0, 4.0, 20.0, 10.0, 40.0
# Seconds for an entry in a pass on a slow machine.
SLOW_ENTRY = 1e-8


@dataclass(frozen=True)
class Pace:
    """Seconds of a multiplication in a product of dense matrices, and for each stored entry in a pass over the rows."""

    multiplication: float = 0.0
    entry: float = 0.0

    @staticmethod
    def matters(n: int, d: int) -> bool:
        """Whether Gram matrices of rows of this shape, and their factors, take so long that the pace must be known."""
        return n * d * min(n, d) > UNTIMED * TIMED**3

    @staticmethod
    def measured(seconds: float, entries: int) -> Pace:
        """As it is now, on this machine, where a pass over so many entries took these seconds."""
        M = np.ones((TIMED, TIMED))
        M @ M  # brings the library and its threads
        begin = time.perf_counter()
        M @ M
        return Pace((time.perf_counter() - begin) / TIMED**3, seconds / entries)

    def gram(self, rows: Any, m: int, k: int) -> float:
        """Of the products of m rows with k rows."""
        if rows.sparse:
            return float(SPARSE_GRAM * self.entry * m * k * rows.entries / rows.n)
        return self.products(m, k, rows.d)

    def products(self, m: int, k: int, d: int) -> float:
        """Of the products of m dense rows of d entries with k of them."""
        return DENSE_GRAM * self.multiplication * m * k * (d + TIMED)

    def factors(self, m: int) -> float:
        """Of the Cholesky factors of an m × m matrix."""
        return CHOLESKY * self.multiplication * m**3 / 6

    def basis(self, m: int, k: int) -> float:
        """Of an orthonormal basis of k columns of m rows, and then one of k rows with pivots."""
        return self.multiplication * (BASIS * m * k**2 + PIVOTED * min(m, k) * k**2)


def unknown() -> Pace:
    """Of which every piece of work is begun that is begun in time."""
    return Pace()


@dataclass(eq=False)
class Deadline:
    """A time of `time.perf_counter`. `refused`: it came too soon for something that was asked for. `measure` finds the pace, when
    that is first asked for."""

    at: float = math.inf
    measure: Callable[[], Pace] = unknown
    refused: bool = field(default=False, init=False)

    @cached_property
    def pace(self) -> Pace:
        """What work costs."""
        return self.measure()

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() > self.at

    @property
    def left(self) -> float:
        """Seconds left, at least a millisecond: limits of zero are refused by those that are given them."""
        return max(1e-3, self.at - time.perf_counter())

    def affords(self, seconds: float) -> bool:
        """Whether work that takes so long ends in time. A no is noted: what is not found then is for want of time."""
        late = not math.isinf(self.at) and time.perf_counter() + seconds > self.at
        self.refused |= late
        return not late

    def largest(self, most: int, seconds: Callable[[int], float]) -> int:
        """The largest number up to `most` whose work, which grows with it, ends in time; 1 at least."""
        if self.affords(seconds(most)):
            return most
        left, least, beyond = self.at - time.perf_counter(), 1, most
        while beyond - least > 1:
            middle = (least + beyond) // 2
            least, beyond = (middle, beyond) if seconds(middle) <= left else (least, middle)
        return least


UNLIMITED = Deadline()
