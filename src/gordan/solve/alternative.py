"""Gordan's alternative, decided exactly for few rows: a w with Mw > 0, or a p ≥ 0, p ≠ 0 with Mᵀp = 0.

The simplex method in rational arithmetic (python-flint) on: find p ≥ 0 with Mᵀp = 0, Σp = 1. A feasible basis is a witness on at
most rank + 1 rows (Carathéodory comes with it); otherwise the multipliers of the last basis are a separator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flint import fmpq, fmpq_mat, fmpz, fmpz_mat


@dataclass(frozen=True)
class Separator:
    """Exact w with M w > 0."""

    w: list[Any]


@dataclass(frozen=True)
class Balance:
    """Positive integers without a common divisor, by row: Σ weights[i] M_i = 0."""

    weights: dict[int, int]


def alternative(M: list[list[Any]]) -> Separator | Balance:
    """Decide for the rows M (lists of integral `fmpq`), by Bland's rule, which cannot cycle."""
    m, k = len(M), len(M[0])
    columns = [fmpq_mat(k + 1, 1, [*row, fmpq(1)]) for row in M]
    rhs = fmpq_mat(k + 1, 1, [fmpq(0)] * k + [fmpq(1)])
    inverse = fmpq_mat(k + 1, k + 1, [fmpq(int(i == j)) for i in range(k + 1) for j in range(k + 1)])
    basis = [m + i for i in range(k + 1)]  # the artificial variables; m + i costs 1
    while True:
        cost = fmpq_mat(1, k + 1, [fmpq(int(variable >= m)) for variable in basis])
        y = cost * inverse
        entering = next((j for j in range(m) if j not in basis and (y * columns[j])[0, 0] > 0), None)
        x = inverse * rhs
        if entering is None:
            break
        u = inverse * columns[entering]
        rows = [i for i in range(k + 1) if u[i, 0] > 0]
        leaving = min(rows, key=lambda i: (x[i, 0] / u[i, 0], basis[i]))
        inverse = _pivot(inverse, u, leaving)
        basis[leaving] = entering
    if (y * rhs)[0, 0] > 0:
        return Separator([-y[0, i] for i in range(k)])
    return Balance(coprime({variable: x[i, 0] for i, variable in enumerate(basis) if variable < m and x[i, 0] > 0}))


def balance_of_support(M: list[list[Any]]) -> Balance | None:
    """The balance of all these rows, if there is just one up to scale and it is positive: the kernel of Mᵀ (fast, many rows)."""
    count, k = len(M), len(M[0])
    transposed = fmpz_mat(k, count, [M[i][j].p for j in range(k) for i in range(count)])
    kernel, nullity = transposed.nullspace()
    if nullity != 1:
        return None
    weights = [kernel[i, 0] for i in range(count)]
    if all(weight < 0 for weight in weights):
        weights = [-weight for weight in weights]
    return Balance(coprime({i: fmpq(weight) for i, weight in enumerate(weights)})) if all(w > 0 for w in weights) else None


def _pivot(inverse: Any, u: Any, leaving: int) -> Any:
    """The inverse after the column u enters at the row `leaving`."""
    size = inverse.nrows()
    pivot = [inverse[leaving, j] / u[leaving, 0] for j in range(size)]
    entries = [pivot[j] if i == leaving else inverse[i, j] - u[i, 0] * pivot[j] for i in range(size) for j in range(size)]
    return fmpq_mat(size, size, entries)


def coprime(weights: dict[int, Any]) -> dict[int, int]:
    """Rational weights as integers without a common divisor."""
    denominator = fmpz(1)
    for weight in weights.values():
        denominator = denominator.lcm(weight.q)
    whole = {i: (weight * denominator).p for i, weight in weights.items()}
    divisor = fmpz(0)
    for value in whole.values():
        divisor = divisor.gcd(value)
    return {i: int(value / divisor) if divisor == 1 else int(fmpz(value) // divisor) for i, value in whole.items()}
