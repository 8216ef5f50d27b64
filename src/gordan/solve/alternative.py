"""Gordan's alternative, decided exactly for few rows: a w with Mw > 0, or a p ≥ 0, p ≠ 0 with Mᵀp = 0.

The simplex method in rational arithmetic (python-flint) looks for a p ≥ 0 with Mᵀp = 0 and Σp = 1. A feasible basis is a witness
on at most rank + 1 rows, by Carathéodory's theorem; otherwise the multipliers of the last basis are a separator.
"""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass
from typing import Any

from flint import fmpq, fmpq_mat, fmpz_mat

from gordan.certificates import exact
from gordan.certificates.problem import Problem
from gordan.deadlines import MODULAR, UNLIMITED, Deadline
from gordan.intercepts import Intercept

# Where there is a deadline, this many rows of an exact system are read and solved first to predict the time for all of them.
PROBED_ROWS = 32
# The predicted time grows with the cube of the rows, times this for safety: for 32 to 800 rows of 53 digits, the measured time is
# 0.7 to 1.5 times the cube, with the check of the answer.
PREDICTION_SAFETY = 2.0


@dataclass(frozen=True)
class Separator:
    """A rational w with M w > 0."""

    w: list[Any]


@dataclass(frozen=True)
class CancellingWeights:
    """Positive integers without a common divisor, by row, with Σ weights[i] M_i = 0."""

    weights: dict[int, int]


def alternative(M: list[list[Any]], deadline: Deadline = UNLIMITED) -> Separator | CancellingWeights | None:
    """Decide the alternative for the rows M, lists of `fmpq`, by Bland's rule, which cannot cycle; None if the time runs out."""
    m, k = len(M), len(M[0])
    columns = [fmpq_mat(k + 1, 1, [*row, fmpq(1)]) for row in M]
    rhs = fmpq_mat(k + 1, 1, [fmpq(0)] * k + [fmpq(1)])
    inverse = fmpq_mat(k + 1, k + 1, [fmpq(int(i == j)) for i in range(k + 1) for j in range(k + 1)])
    basis = [m + i for i in range(k + 1)]  # the artificial variables; m + i costs 1
    while deadline.affords(0.0):
        cost = fmpq_mat(1, k + 1, [fmpq(int(variable >= m)) for variable in basis])
        y, x = cost * inverse, inverse * rhs
        entering = next((j for j in range(m) if j not in basis and (y * columns[j])[0, 0] > 0), None)
        if entering is None:
            return Separator([-y[0, i] for i in range(k)]) if (y * rhs)[0, 0] > 0 else _balance_in(basis, x, m)
        u = inverse * columns[entering]
        leaving = min((i for i in range(k + 1) if u[i, 0] > 0), key=lambda i: (x[i, 0] / u[i, 0], basis[i]))
        inverse = _pivot(inverse, u, leaving)
        basis[leaving] = entering
    return None


def _balance_in(basis: list[int], x: Any, m: int) -> CancellingWeights:
    """Return the weights of those of the m rows that are in the basis."""
    return CancellingWeights(exact.coprime({row: x[i, 0] for i, row in enumerate(basis) if row < m and x[i, 0] > 0}))


def reading_seconds(problem: Problem, rows: Any, intercept: Intercept, deadline: Deadline) -> float:
    """Predict the seconds to read these rows as integers and to eliminate modulo a prime, from the time of the first few."""
    if math.isinf(deadline.at) or len(rows) <= PROBED_ROWS:
        return 0.0
    begin = time.perf_counter()
    exact.integer_rows(problem, rows[:PROBED_ROWS], intercept)
    reading = 2 * (time.perf_counter() - begin) * len(rows) / PROBED_ROWS
    return reading + MODULAR * deadline.pace.multiplication * len(rows) ** 2 * intercept.columns(problem.X.d)


def solving_seconds(square: Any, deadline: Deadline) -> float:
    """Predict the seconds to solve an integer system exactly, from the time of a part.

    Entries grow with the rank, so that the time grows with its cube.
    """
    r = square.nrows()
    if math.isinf(deadline.at) or r <= PROBED_ROWS:
        return 0.0
    part = fmpz_mat(PROBED_ROWS, PROBED_ROWS, [square[i, j] for i in range(PROBED_ROWS) for j in range(PROBED_ROWS)])
    begin = time.perf_counter()
    with contextlib.suppress(ZeroDivisionError):  # a singular part takes about as long
        part.solve(fmpz_mat(PROBED_ROWS, 1, [1] * PROBED_ROWS))
    return PREDICTION_SAFETY * (time.perf_counter() - begin) * float(r / PROBED_ROWS) ** 3


def balance_of_support(M: list[list[int]], deadline: Deadline = UNLIMITED) -> CancellingWeights | None:
    """Return the balance of these integer rows, if it is unique up to scale and has no negative weight.

    Rows of weight 0 are left out of it: there are some where an entry of p is positive in floats and 0 in exact arithmetic.

    Independent columns are chosen modulo a prime. What is left is one linear system for the weights of all rows but the last,
    solved by p-adic lifting: hundreds of rows take a second.
    """
    count = len(M)
    if count == 1:
        return None if any(M[0]) else CancellingWeights({0: 1})
    first, last = fmpz_mat(M[:-1]), M[-1]
    columns = exact.pivots(first)
    if len(columns) != count - 1:
        # the other rows are dependent already: if they balance, they do so without the last
        return balance_of_support(M[:-1], deadline) if len(columns) == count - 2 else None
    square = fmpz_mat([[M[i][j] for i in range(count - 1)] for j in columns])
    if not deadline.affords(solving_seconds(square, deadline)):
        return None
    system: Any = fmpq_mat(square)
    solved = system.solve(fmpq_mat(fmpz_mat([[-last[j]] for j in columns])), algorithm="dixon")
    weights = {i: solved[i, 0] for i in range(count - 1) if solved[i, 0] != 0}
    if min(weights.values(), default=fmpq(0)) < 0:
        return None
    answer = CancellingWeights(exact.coprime({**weights, count - 1: fmpq(1)}))
    whole = fmpz_mat([[answer.weights.get(i, 0) for i in range(count)]]) * fmpz_mat(M)
    return answer if not any(whole[0, j] for j in range(whole.ncols())) else None


def _pivot(inverse: Any, u: Any, leaving: int) -> Any:
    """Return the inverse of the basis after the column u enters at the row `leaving`."""
    size = inverse.nrows()
    pivot = [inverse[leaving, j] / u[leaving, 0] for j in range(size)]
    entries = [pivot[j] if i == leaving else inverse[i, j] - u[i, 0] * pivot[j] for i in range(size) for j in range(size)]
    return fmpq_mat(size, size, entries)
