"""Deadlines, and whether work that cannot be interrupted ends before them at the pace measured in this call."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

# The pace is measured by the product of two square matrices of this size, which takes a tenth of a millisecond: the fastest of a
# few, since other work of the machine slows down one of them at times.
PACE_MATRIX_SIZE, TIMINGS = 96, 3
# Work of up to this many such products is begun without a measurement, which would take longer than the work is worth.
MAX_UNTIMED_PRODUCTS = 32
# How much longer work takes than the same number of multiplications in a product of dense matrices, measured on two machines: a
# Gram matrix of dense rows, with its copies; one of sparse rows, which SciPy computes on one thread; a Cholesky factorization,
# with the solves; a system of equations; an orthonormal basis; one with pivots; loops over the rows of a factor; elimination
# modulo a prime; weights with which rows cancel, and their proof in floats, with the copies of the rows.
DENSE_GRAM, SPARSE_GRAM, CHOLESKY, SYSTEM, BASIS, PIVOTED, LOOPS, MODULAR = 2.0, 4.0, 3.0, 4.0, 4.0, 20.0, 10.0, 40.0
CANCELLING, CANCELLING_PROOF = 1.8, 2.2
# Seconds per entry of a pass on a slow machine, and per number of a new matrix, whose memory is fetched when it is written.
SLOW_ENTRY = SLOW_CELL = 1e-8
# How many new matrices it takes to split the entries of a matrix into exponents or digits, and to put them together again.
SPLITTING = 16


@dataclass(frozen=True)
class Pace:
    """Seconds per multiplication in a product of dense matrices, and per stored entry in a pass over the rows."""

    multiplication: float = 0.0
    entry: float = 0.0

    @staticmethod
    def matters(n: int, d: int) -> bool:
        """Return whether Gram matrices of rows of this shape, and their factors, take so long that the pace must be known."""
        return n * d * min(n, d) > MAX_UNTIMED_PRODUCTS * PACE_MATRIX_SIZE**3

    @staticmethod
    def measured(seconds: float, entries: int) -> Pace:
        """Measure the pace on this machine, where a pass over `entries` entries took `seconds`."""
        M = np.ones((PACE_MATRIX_SIZE, PACE_MATRIX_SIZE))
        M @ M  # loads the library and starts its threads
        product = min(_seconds_of_product(M) for _ in range(TIMINGS))
        return Pace(product / PACE_MATRIX_SIZE**3, seconds / entries)

    def gram(self, rows: Any, m: int, k: int) -> float:
        """Return the seconds of the products of m rows with k rows."""
        if rows.sparse:
            return float(SPARSE_GRAM * self.entry * m * k * rows.entries / rows.n) + SLOW_CELL * m * k
        return self.products(m, k, rows.d) + SLOW_CELL * m * k

    def products(self, m: int, k: int, d: int) -> float:
        """Return the seconds of the products of m dense rows of d entries with k such rows."""
        return DENSE_GRAM * self.multiplication * m * k * (d + PACE_MATRIX_SIZE)

    def moments(self, rows: Any, m: int) -> float:
        """Return the seconds of the second moments of m rows: of dense ones BLAS computes half, since the matrix is symmetric."""
        if rows.sparse:
            return self.products(rows.d, rows.d, int(m * rows.entries / (rows.n * rows.d)))
        return self.products(rows.d, rows.d, m) / 2

    def factors(self, m: int) -> float:
        """Return the seconds of the Cholesky factorization of an m × m matrix."""
        return CHOLESKY * self.multiplication * m**3 / 6

    def system(self, k: int) -> float:
        """Return the seconds of the solution of k equations."""
        return SYSTEM * self.multiplication * k**3 / 3

    def splitting(self, m: int, k: int) -> float:
        """Return the seconds of work on the exponents or the digits of the entries of an m × k matrix, array by array."""
        return SPLITTING * SLOW_CELL * m * k

    def cancelling(self, m: int, k: int) -> float:
        """Return the seconds to find weights with which m dense rows of k columns cancel, and to prove them in floats."""
        found, proved = CANCELLING * m, CANCELLING_PROOF * (m + k)
        return self.multiplication * (found + proved) * k * (k + PACE_MATRIX_SIZE)

    def basis(self, m: int, k: int) -> float:
        """Return the seconds of an orthonormal basis of k columns of length m, followed by one of k rows with pivots."""
        return self.multiplication * (BASIS * m * k**2 + PIVOTED * min(m, k) * k**2)


def _seconds_of_product(M: Any) -> float:
    """Return the seconds of the product of a matrix with itself."""
    begin = time.perf_counter()
    M @ M
    return time.perf_counter() - begin


def unknown() -> Pace:
    """Return the pace at which work takes no time, so that everything is begun until the deadline has passed."""
    return Pace()


@dataclass(eq=False)
class Deadline:
    """A time of `time.perf_counter` at which to be done.

    `refused` is set once some work would not have ended in time. `measure` is called when the pace is first needed. Where only
    a part of the time is given to some work, `later` is the deadline of the whole: it is asked about what the part refuses.
    """

    at: float = math.inf
    measure: Callable[[], Pace] = unknown
    later: Deadline | None = None
    refused: bool = field(default=False, init=False)

    @cached_property
    def pace(self) -> Pace:
        """The pace, measured when it is first needed."""
        return self.measure()

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() > self.at

    @property
    def left(self) -> float:
        """Seconds left, at least a millisecond, because functions refuse a time limit of zero."""
        return max(1e-3, self.at - time.perf_counter())

    def sooner(self, share: float) -> Deadline:
        """Return the deadline by which this share of the time left has passed."""
        now = time.perf_counter()
        return self if math.isinf(self.at) else Deadline(now + share * max(0.0, self.at - now), lambda: self.pace, self)

    def affords(self, seconds: float) -> bool:
        """Return whether work of this many seconds ends in time; if not, note that something was left out for lack of time."""
        late = not math.isinf(self.at) and time.perf_counter() + seconds > self.at
        if late:
            self.refused = True
            if self.later is not None:
                self.later.affords(seconds)
        return not late

    def largest(self, most: int, seconds: Callable[[int], float]) -> int:
        """Return the largest number up to `most`, at least 1, whose work ends in time; `seconds` increases with the number."""
        if self.affords(seconds(most)):
            return most
        return max(1, bisect_right(range(1, most), self.at - time.perf_counter(), key=seconds))


UNLIMITED = Deadline()
