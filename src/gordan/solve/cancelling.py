"""Rows that may cancel, and weights for that: floats that a proof in floats accepts, or exact ones. Nothing here is believed."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.certificates import exact
from gordan.certificates.data import Relation
from gordan.certificates.problem import Problem
from gordan.certificates.verified import heaviest_basis, signed_rows
from gordan.deadlines import UNLIMITED, Deadline
from gordan.intercepts import Intercept
from gordan.ledger.question import Cancelling, Proposal, Question
from gordan.memory import fits

# Rows times columns squared up to which exact weights are found at once: about 20 ms for rows of full digits.
EXACT_AT_ONCE = 80**3
# Rows up to which the exact simplex method, whose cost grows with their cube, is worth starting; and rows times columns squared
# times digits up to which it is where floats alone say that the rows cancel, about 0.1 s. Rows of a thin cone seem to, and 50 of
# them with 40 columns of full digits take half a minute, in which others find a separator.
MOST_PIVOTED, MOST_DIGITS = 60, 1 << 19
# Share of its size below which what is left of a column counts as rounding, and factors that are looked for in the others.
DEPENDENT, LARGEST_DENOMINATOR, NO_FACTOR = 1e-10, 10**4, 1e-9
# Exact weights of so many rows are found first to see how long those of all take: time grows with about this power of the number.
FORETELLING, GROWTH = 96, 3.3
# Copies of the rows that are in use at a time.
COPIES = 6


def cancelling(question: Question, support: Array, p: Array) -> Iterator[Proposal]:
    """These rows with weights near p, for a proof in floats; and, if that fails or little is to be computed, exact ones."""
    asked = question if question.origin is None else question.origin
    problem, intercept = asked.counted, asked.margin.intercept
    k = intercept.columns(problem.X.d)
    small = len(support) * k * k <= EXACT_AT_ONCE
    if not small and question.origin is None:  # rows that had to be levelled are beyond floats
        found = in_floats(problem, support, p, intercept)
        if found is not None:
            yield Proposal(cancelling=found)
    weights = balance(problem, support, intercept, asked.budget.time)
    if weights is not None:
        yield Proposal(witness=weights)


def in_floats(problem: Problem, support: Array, p: Array, intercept: Intercept) -> Cancelling | None:
    """Positive weights near p with which these rows cancel up to rounding, and the columns that depend on others."""
    if not fits(8.0 * COPIES * len(support) * intercept.columns(problem.X.d)):
        return None
    A = signed_rows(problem, support.tolist(), intercept, problem.signs)
    order = [*range(A.shape[1])]
    order = order[-1:] + order[:-1] if intercept.exists else order  # the constant comes before all others
    with np.errstate(all="ignore"):
        try:
            weights = near(A, p) if len(A) > A.shape[1] else None
            if weights is not None:
                return Cancelling(support, weights)
            kept, relations = dependence(A, order)
            weights = near(A[:, kept], p) if relations and len(A) > len(kept) else None
        except np.linalg.LinAlgError:
            return None
    return None if weights is None else Cancelling(support, weights, relations)


def near(S: Array, p: Array) -> Array | None:
    """Positive weights near p with Σ weight_i S_i = 0, as good as floats are; with one row more than columns the only ones."""
    k, r = S.shape
    if not r:
        return np.asarray(p / np.sum(p))
    N = (S * p[:, None]).T
    top = np.max(np.abs(N), axis=1, initial=0.0)
    if not (np.isfinite(top).all() and (top > 0).all()):
        return None
    N /= top[:, None]
    basis = heaviest_basis(N)
    z = np.ones(k)
    for _ in range(2):  # what is left over is made up for by the rows of the basis
        z[basis] -= np.linalg.solve(N[:, basis], N @ z)
    weights = p * z
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        return None
    # what the equations are off by, beside their terms: more than rounding where the columns depend on each other
    off = np.max(np.abs(N @ z) / (np.abs(N) @ np.abs(z)))
    return np.asarray(weights / np.sum(weights)) if off <= DEPENDENT else None


def dependence(A: Array, order: Sequence[int]) -> tuple[list[int], tuple[Relation, ...]]:
    """Return the columns that are independent, the first possible in this order, and each other column in terms of these.

    Both are guessed in floats. Factors are taken to be short fractions; if one of them is not, no relation is returned, because
    the columns depend on each other only up to rounding.
    """
    found = dependent_columns(A, order)
    relations = []
    for c, factors in zip(found.dependent, found.factors.T, strict=True):
        relation = _relation(c, dict(zip(found.independent, factors.tolist(), strict=True)), found.exponents)
        if relation is None:
            return sorted(found.independent), ()
        relations.append(relation)
    return sorted(found.independent), tuple(relations)


class Dependence(NamedTuple):
    """Columns 2^-exponents · A: each dependent one is about the sum of the independent ones times its column of `factors`."""

    independent: list[int]
    dependent: list[int]
    factors: Array
    exponents: Array


def dependent_columns(A: Array, order: Sequence[int]) -> Dependence:
    """Guess in floats which columns of A depend on others: those of which nearly nothing lies off the span of the ones before
    them in this order. None does if A has too few rows to tell."""
    top = np.max(np.abs(A), axis=0, initial=0.0)
    exponents = np.where(top > 0, np.frexp(top)[1], 0)
    Z = np.ldexp(A, -exponents)
    kept, out = [j for j in order if top[j] > 0], [j for j in order if not top[j] > 0]
    while True:
        first = kept[: len(A)]
        H, R = np.linalg.qr(Z[:, first])
        gone = {first[i] for i in np.flatnonzero(np.abs(np.diag(R)) <= DEPENDENT * np.linalg.norm(Z[:, first], axis=0))}
        if not gone:
            break
        kept, out = [j for j in kept if j not in gone], [*out, *gone]
    if len(kept) > len(first):
        out = []
    factors = np.linalg.solve(R, H.T @ Z[:, out]) if kept and out else np.zeros((len(kept), len(out)))
    return Dependence(kept, out, factors, exponents)


def _relation(c: int, factors: dict[int, float], exponents: Array) -> Relation | None:
    """Return column c less its factors times the others, in integers; None unless the factors are short fractions."""
    short = short_factors(factors)
    if short is None:
        return None
    # of the columns as they are: these were divided by powers of two
    terms = {c: Fraction(-1)} | {j: factor * Fraction(2) ** int(exponents[c] - exponents[j]) for j, factor in short.items()}
    whole = exact.integers([*terms.values()])[0]
    return tuple((j, m) for j, m in zip(terms, whole, strict=True) if m)


def short_factors(factors: dict[int, float]) -> dict[int, Fraction] | None:
    """Return the short fractions next to these factors, without those that are 0; None if one of them is no short fraction."""
    short = {
        j: Fraction(factor).limit_denominator(LARGEST_DENOMINATOR) for j, factor in factors.items() if abs(factor) > NO_FACTOR
    }
    near = all(abs(float(fraction) - factors[j]) <= DEPENDENT * max(1.0, abs(factors[j])) for j, fraction in short.items())
    return short if near else None


# ---- in exact arithmetic --------------------------------------------------------------------------------------------


def balance(problem: Problem, support: Array, intercept: Intercept, deadline: Deadline = UNLIMITED) -> dict[int, int] | None:
    """Positive integer weights with which these rows, or some of them, cancel; None also where there is no time for that."""
    from flint import fmpq  # here: separators need none of it, and it takes 50 ms to import

    from gordan.solve.alternative import Balance, alternative, balance_of_support, reading_seconds

    k = intercept.columns(problem.X.d)
    if not exact.numbers_fit(len(support) * k):
        return None
    if not deadline.affords(reading_seconds(problem, support, intercept, deadline)):
        return None
    M, exponents = exact.integer_rows(problem, support, intercept)
    answer: Any = balance_of_support(M, deadline)
    digits = max((abs(x) for row in M for x in row), default=0).bit_length()
    cheap = len(support) <= MOST_PIVOTED and len(support) * k * k * digits <= MOST_DIGITS
    if answer is None and cheap and has_room(len(support), k):
        answer = alternative([[fmpq(x) for x in row] for row in M], deadline)
    return by_row(answer.weights, support, exponents) if isinstance(answer, Balance) else None


def has_room(m: int, k: int) -> bool:
    """Whether there is room for m rows of k fractions, and for the basis that the simplex method keeps of few of them."""
    return exact.numbers_fit(2 * m * k + (k * k if 0 < m <= MOST_PIVOTED else 0))


def by_row(weights: dict[int, int], rows: Any, exponents: list[int]) -> dict[int, int]:
    """Weights by row, for the rows as they are, from weights by position, for the rows divided by 2^e."""
    return {int(rows[i]): weight for i, weight in exact.unscaled(weights, exponents).items()}


def exact_weights(problem: Problem, found: Cancelling, intercept: Intercept, seconds: float = math.inf) -> dict[int, int] | None:
    """Positive integer weights of some of these rows, which are known to cancel, one more than independent columns at most.

    None if that takes longer, as a part of the rows foretells; or if floats do not tell which rows to take.
    """
    from gordan.solve.alternative import balance_of_support

    gone = {relation[0][0] for relation in found.dependent}
    kept = [j for j in range(intercept.columns(problem.X.d)) if j not in gone]
    if seconds < math.inf and len(kept) > 2 * FORETELLING:
        started = time.perf_counter()
        M, _ = exact.integer_rows(problem, found.rows[: FORETELLING + 1].tolist(), intercept)
        balance_of_support([row[:FORETELLING] for row in M])
        if (time.perf_counter() - started) * (len(kept) / FORETELLING) ** GROWTH > seconds:
            return None
    A = signed_rows(problem, found.rows.tolist(), intercept, problem.signs)[:, kept]
    return balance(problem, found.rows[few_rows(A, found.weights)], intercept)


@np.errstate(all="ignore")
def few_rows(S: Array, p: Array) -> Array:
    """Rows S_i, one more than there are columns, that cancel with positive weights if all do with weights p (Carathéodory).

    One row after the other gives its weight to those of a basis; if the weight of one of these comes down to 0 first, the two
    change places.
    """
    k, r = S.shape
    N = (S * p[:, None]).T
    basis = heaviest_basis(N / np.max(np.abs(N), axis=1, initial=1e-300)[:, None])
    others = np.setdiff1d(np.arange(k), basis)
    T, z, rest = np.linalg.solve(N[:, basis], N[:, others]), np.ones(r), [*range(len(others))]
    while len(rest) > 1:
        j = rest.pop()
        enough = z + T[:, j]
        if (enough >= 0).all():
            z = enough
            continue
        i = int(np.argmin(np.where(T[:, j] < 0, -z / T[:, j], math.inf)))
        share = -z[i] / T[i, j]
        z += share * T[:, j]
        z[i], basis[i] = 1 - share, others[j]
        row = T[i, rest] / T[i, j]
        T[:, rest] -= np.outer(T[:, j], row)
        T[i, rest] = row
    return np.sort(np.append(basis, others[rest]))
