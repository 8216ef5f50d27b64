"""Gordan's alternative, decided exactly for few rows: a w with Mw > 0, or a p ≥ 0, p ≠ 0 with Mᵀp = 0.

The simplex method in rational arithmetic (python-flint) on: find p ≥ 0 with Mᵀp = 0, Σp = 1. A feasible basis is a witness on at
most rank + 1 rows (Carathéodory comes with it); otherwise the multipliers of the last basis are a separator.
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

# Rows of an exact system that are read and solved first where there is a deadline, to tell what all of them take; and how much
# longer that is than its cube (32 to 800 rows of 53 digits: 0.7 to 1.5 times, with the check of the answer).
PROBED, EXACT_GROWTH = 32, 2.0


@dataclass(frozen=True)
class Separator:
    """Exact w with M w > 0."""

    w: list[Any]


@dataclass(frozen=True)
class Balance:
    """Positive integers without a common divisor, by row: Σ weights[i] M_i = 0."""

    weights: dict[int, int]


def alternative(M: list[list[Any]], deadline: Deadline = UNLIMITED) -> Separator | Balance | None:
    """Decide for the rows M (lists of integral `fmpq`), by Bland's rule, which cannot cycle; None where time is up before."""
    m, k = len(M), len(M[0])
    columns = [fmpq_mat(k + 1, 1, [*row, fmpq(1)]) for row in M]
    rhs = fmpq_mat(k + 1, 1, [fmpq(0)] * k + [fmpq(1)])
    inverse = fmpq_mat(k + 1, k + 1, [fmpq(int(i == j)) for i in range(k + 1) for j in range(k + 1)])
    basis = [m + i for i in range(k + 1)]  # the artificial variables; m + i costs 1
    while not deadline.passed:
        cost = fmpq_mat(1, k + 1, [fmpq(int(variable >= m)) for variable in basis])
        y, x = cost * inverse, inverse * rhs
        entering = next((j for j in range(m) if j not in basis and (y * columns[j])[0, 0] > 0), None)
        if entering is None:
            return Separator([-y[0, i] for i in range(k)]) if (y * rhs)[0, 0] > 0 else _balance_in(basis, x, m)
        u = inverse * columns[entering]
        leaving = min((i for i in range(k + 1) if u[i, 0] > 0), key=lambda i: (x[i, 0] / u[i, 0], basis[i]))
        inverse = _pivot(inverse, u, leaving)
        basis[leaving] = entering
    deadline.refused = True
    return None


def _balance_in(basis: list[int], x: Any, m: int) -> Balance:
    """The weights of those of the m rows that are in the basis."""
    return Balance(exact.coprime({row: x[i, 0] for i, row in enumerate(basis) if row < m and x[i, 0] > 0}))


def reading_seconds(problem: Problem, rows: Any, intercept: Intercept, deadline: Deadline) -> float:
    """What it takes to read these rows as integers and to eliminate modulo a prime, from what the first few of them take."""
    if math.isinf(deadline.at) or len(rows) <= PROBED:
        return 0.0
    begin = time.perf_counter()
    exact.integer_rows(problem, rows[:PROBED], intercept)
    reading = 2 * (time.perf_counter() - begin) * len(rows) / PROBED
    return reading + MODULAR * deadline.pace.multiplication * len(rows) ** 2 * intercept.columns(problem.X.d)


def solving_seconds(square: Any, deadline: Deadline) -> float:
    """What it takes to solve an integer system exactly, from what a part of it takes: entries grow with the rank, so the cost
    grows with its cube."""
    r = square.nrows()
    if math.isinf(deadline.at) or r <= PROBED:
        return 0.0
    part = fmpz_mat(PROBED, PROBED, [square[i, j] for i in range(PROBED) for j in range(PROBED)])
    begin = time.perf_counter()
    with contextlib.suppress(ZeroDivisionError):  # to find that out takes about as long
        part.solve(fmpz_mat(PROBED, 1, [1] * PROBED))
    return EXACT_GROWTH * (time.perf_counter() - begin) * float(r / PROBED) ** 3


def balance_of_support(M: list[list[int]], deadline: Deadline = UNLIMITED) -> Balance | None:
    """The balance of these integer rows, if there is just one up to scale and it has no negative weight.

    Rows of weight 0 are left out of it: floats find them where an entry of p vanishes only in exact arithmetic.

    Independent columns are chosen modulo a prime; one linear system for the weights of all rows but the last (p-adic lifting, so
    hundreds of rows take a second) is then all there is to solve. Whoever uses the answer checks it.
    """
    count = len(M)
    if count == 1:
        return None if any(M[0]) else Balance({0: 1})
    first, last = fmpz_mat(M[:-1]), M[-1]
    columns = exact.pivots(first)
    if len(columns) != count - 1:
        # the others are dependent already: if they balance, then without the last
        return balance_of_support(M[:-1], deadline) if len(columns) == count - 2 else None
    square = fmpz_mat([[M[i][j] for i in range(count - 1)] for j in columns])
    if not deadline.affords(solving_seconds(square, deadline)):
        return None
    system: Any = fmpq_mat(square)
    solved = system.solve(fmpq_mat(fmpz_mat([[-last[j]] for j in columns])), algorithm="dixon")
    weights = {i: solved[i, 0] for i in range(count - 1) if solved[i, 0] != 0}
    if min(weights.values(), default=fmpq(0)) < 0:
        return None
    answer = Balance(exact.coprime({**weights, count - 1: fmpq(1)}))
    whole = fmpz_mat([[answer.weights.get(i, 0) for i in range(count)]]) * fmpz_mat(M)
    return answer if not any(whole[0, j] for j in range(whole.ncols())) else None


def _pivot(inverse: Any, u: Any, leaving: int) -> Any:
    """The inverse after the column u enters at the row `leaving`."""
    size = inverse.nrows()
    pivot = [inverse[leaving, j] / u[leaving, 0] for j in range(size)]
    entries = [pivot[j] if i == leaving else inverse[i, j] - u[i, 0] * pivot[j] for i in range(size) for j in range(size)]
    return fmpq_mat(size, size, entries)
