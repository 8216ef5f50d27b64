"""Weights with which rows may cancel: floats near which a proof in floats finds exact ones, or the exact ones themselves."""

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
from gordan.certificates.verified import heaviest_basis, occupied_columns, relations_hold, signed_rows
from gordan.deadlines import BASIS, UNLIMITED, Deadline
from gordan.floats import NotIEEE
from gordan.intercepts import Intercept
from gordan.ledger.question import Cancelling, Proposal, Question
from gordan.memory import fits

# benchmarks/overlap.py times what these constants decide.

# Rows times columns squared up to which exact weights are computed without trying floats first: about 20 ms for rows of 53
# digits.
EXACT_AT_ONCE = 80**3
# Rows times columns squared up to which rational arithmetic decides all rows at once.
MAX_EXACT_SIZE = 20_000
# Rows up to which the exact simplex method is worth starting: its cost grows with their cube.
MAX_PIVOTED_ROWS = 60
# Rows times columns squared times digits up to which it is worth starting where only floats say that the rows cancel, about 0.1
# s. Rows of a thin cone seem to cancel, and 50 of them with 40 columns of 53 digits take half a minute, in which other finders
# find a separator.
MAX_PIVOTED_DIGITS = 1 << 19
# A column whose part outside the span of others is a smaller share of its size than this depends on them, up to rounding.
DEPENDENT_COLUMN = 1e-10
# The factors of such a dependence are fractions with denominators up to this; smaller factors than the second number are 0.
MAX_DENOMINATOR, ZERO_FACTOR = 10**4, 1e-9
# A change of a weight that is a smaller share than this of the largest one is rounding.
WEIGHT_ROUNDING = 1e-10
# Exact weights of this many rows are timed first to predict the time for all, which grows with about this power of their number.
TIMED_ROWS, TIME_GROWTH = 96, 3.3
# Rows on which relations between columns are checked before all others.
CHECKED_ROWS = 16
# Copies of the rows that exist at a time.
COPIES = 6


def cancelling(question: Question, support: Array, p: Array) -> Iterator[Proposal]:
    """Propose these rows with float weights near p; if that fails, or little is to be computed, with exact weights."""
    asked = question if question.origin is None else question.origin
    problem, intercept = asked.counted, asked.margin.intercept
    k = intercept.columns(problem.X.d)
    small = len(support) * k * k <= EXACT_AT_ONCE
    if not small and question.origin is None:  # rows that were scaled have products that floats cannot hold
        found = in_floats(problem, support, p, intercept, asked.budget.time_to_prove)
        if found is not None:
            yield Proposal(cancelling=found)
    weights = balance(problem, support, intercept, asked.budget.time)
    if weights is not None:
        yield Proposal(witness=weights)


def in_floats(
    problem: Problem, support: Array, p: Array, intercept: Intercept, deadline: Deadline = UNLIMITED
) -> Cancelling | None:
    """Return positive weights near p with which these rows cancel up to rounding, and the columns that depend on others.

    Columns in which all of the rows are 0 are left out. None if there are no such weights, no room for the rows, or no time
    to find the weights and to prove them by the `deadline`.
    """
    pace = deadline.pace
    sparse, width = problem.storage.sparse, intercept.columns(problem.X.d)
    columns = occupied_columns(problem, support.tolist(), intercept) if sparse else np.arange(width)
    m, k = len(support), len(columns)
    if not fits(8.0 * COPIES * m * k) or not deadline.affords(pace.cancelling(m, k)):
        return None
    A = signed_rows(problem, support.tolist(), intercept, problem.signs, columns)
    with np.errstate(all="ignore"):
        try:
            weights = near(A, p) if m > k else None
            if weights is not None:
                return Cancelling(support, weights)
            if not deadline.affords(BASIS * pace.multiplication * m * k**2 + pace.cancelling(m, k)):
                return None
            kept, relations = dependence(A, intercept.exists)
            relations = tuple(tuple((int(columns[j]), factor) for j, factor in relation) for relation in relations)
            worth = relations and m > len(kept) and _worth_checking(problem, relations, support, intercept, deadline)
            weights = near(A[:, kept], p) if worth else None
        except np.linalg.LinAlgError:
            return None
    return None if weights is None else Cancelling(support, weights, relations)


def _worth_checking(
    problem: Problem, relations: Sequence[Relation], rows: Array, intercept: Intercept, deadline: Deadline
) -> bool:
    """Return whether relations between columns hold exactly on the first of these rows, and may be checked on all in time.

    Columns that were computed from others in floats often depend on them up to rounding only, which the first rows show.
    """
    some = rows[:CHECKED_ROWS]
    begin = time.perf_counter()
    try:
        if not relations_hold(problem.part(some), relations, intercept):
            return False
    except NotIEEE:
        return False
    exactly = (time.perf_counter() - begin) * len(rows) / len(some)
    return deadline.affords(exactly + deadline.pace.entry * problem.X.storage.entries * len(relations))


def near(S: Array, p: Array) -> Array | None:
    """Return positive weights near p with Σ weight_i S_i = 0 up to rounding, or None.

    With one row more than columns there is only one candidate.
    """
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
    for _ in range(2):  # the rows of the basis make up for the residual; twice, to refine it
        z[basis] -= np.linalg.solve(N[:, basis], N @ z)
    weights = p * z
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        return None
    # the residual relative to its terms exceeds rounding where the columns depend on each other
    residual = np.max(np.abs(N @ z) / (np.abs(N) @ np.abs(z)))
    return np.asarray(weights / np.sum(weights)) if residual <= DEPENDENT_COLUMN else None


def column_order(k: int, constant_last: bool) -> list[int]:
    """Return the order in which columns are tested for dependence: a constant in the last column comes before all others."""
    return [k - 1, *range(k - 1)] if constant_last else [*range(k)]


def dependence(A: Array, constant_last: bool) -> tuple[list[int], tuple[Relation, ...]]:
    """Return the columns that are independent, and the others as combinations of them.

    A column is independent if it is not in the span of those before it in `column_order`. This is a guess in floats, with factors
    that are short fractions. No combinations are returned where there are too few rows, or a factor is not a short fraction.
    """
    found = dependent_columns(A, constant_last)
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


def dependent_columns(A: Array, constant_last: bool) -> Dependence:
    """Guess in floats which columns of A depend on others: those that are nearly in the span of the ones before them.

    The columns are taken in `column_order`. None depends on others if A has too few rows to tell.
    """
    order, top = column_order(A.shape[1], constant_last), np.max(np.abs(A), axis=0, initial=0.0)
    exponents = np.where(top > 0, np.frexp(top)[1], 0)
    Z = np.ldexp(A, -exponents)
    kept, dependent = [j for j in order if top[j] > 0], [j for j in order if not top[j] > 0]
    while True:
        first = kept[: len(A)]
        H, R = np.linalg.qr(Z[:, first])
        found = {first[i] for i in np.flatnonzero(np.abs(np.diag(R)) <= DEPENDENT_COLUMN * np.linalg.norm(Z[:, first], axis=0))}
        if not found:
            break
        kept, dependent = [j for j in kept if j not in found], [*dependent, *found]
    if len(kept) > len(first):
        dependent = []
    factors = np.linalg.solve(R, H.T @ Z[:, dependent]) if kept and dependent else np.zeros((len(kept), len(dependent)))
    return Dependence(kept, dependent, factors, exponents)


def _relation(c: int, factors: dict[int, float], exponents: Array) -> Relation | None:
    """Return column c minus its factors times the others, in integers; None if the factors are not short fractions."""
    short = short_factors(factors)
    if short is None:
        return None
    # the factors are for columns that were divided by powers of two
    terms = {c: Fraction(-1)} | {j: factor * Fraction(2) ** int(exponents[c] - exponents[j]) for j, factor in short.items()}
    whole = exact.integers([*terms.values()])[0]
    return tuple((j, m) for j, m in zip(terms, whole, strict=True) if m)


def short_factors(factors: dict[int, float]) -> dict[int, Fraction] | None:
    """Return the short fractions next to these factors, without those that are 0; None if one of them is not a short fraction."""
    used = {j: factor for j, factor in factors.items() if abs(factor) > ZERO_FACTOR}
    short = {j: Fraction(factor).limit_denominator(MAX_DENOMINATOR) for j, factor in used.items()}
    near = all(abs(float(short[j]) - factor) <= DEPENDENT_COLUMN * max(1.0, abs(factor)) for j, factor in used.items())
    return short if near else None


# ---- exact arithmetic ---------------------------------------------------------------------------------------------------


def balance(problem: Problem, support: Array, intercept: Intercept, deadline: Deadline = UNLIMITED) -> dict[int, int] | None:
    """Return positive integer weights with which these rows, or some of them, cancel; None also where time or room is short."""
    from flint import fmpq  # imported here: it takes 50 ms, and separators do not need it

    from gordan.solve.alternative import CancellingWeights, alternative, balance_of_support, reading_seconds

    k = intercept.columns(problem.X.d)
    if not exact.numbers_fit(len(support) * k):
        return None
    if not deadline.affords(reading_seconds(problem, support, intercept, deadline)):
        return None
    M, exponents = exact.integer_rows(problem, support, intercept)
    if problem.storage.sparse:  # columns in which all of the rows are 0 cancel with any weights
        columns = occupied_columns(problem, support.tolist(), intercept).tolist()
        M, k = [[row[j] for j in columns] for row in M], len(columns)
    answer: Any = balance_of_support(M, deadline)
    digits = max((abs(x) for row in M for x in row), default=0).bit_length()
    cheap = len(support) <= MAX_PIVOTED_ROWS and len(support) * k * k * digits <= MAX_PIVOTED_DIGITS
    if answer is None and cheap and has_room(len(support), k):
        answer = alternative([[fmpq(x) for x in row] for row in M], deadline)
    return by_row(answer.weights, support, exponents) if isinstance(answer, CancellingWeights) else None


def has_room(m: int, k: int) -> bool:
    """Return whether m rows of k fractions fit in memory, with the basis that the exact simplex method keeps of few rows."""
    return exact.numbers_fit(2 * m * k + (k * k if 0 < m <= MAX_PIVOTED_ROWS else 0))


def by_row(weights: dict[int, int], rows: Any, exponents: list[int]) -> dict[int, int]:
    """Return weights by row number, for the rows as they are, from weights by position, for the rows divided by 2^e."""
    return {int(rows[i]): weight for i, weight in exact.unscaled(weights, exponents).items()}


def exact_weights(problem: Problem, found: Cancelling, intercept: Intercept, seconds: float = math.inf) -> dict[int, int] | None:
    """Return positive integer weights of at most one row more than independent columns, for rows that are known to cancel.

    None if that would take more than `seconds`, by the time that some of the rows take; or if floats choose the wrong rows.
    """
    from gordan.solve.alternative import balance_of_support

    # columns in which these rows are 0 cancel with any weights, and are not listed as dependent
    gone = [relation[0][0] for relation in found.dependent]
    kept = np.setdiff1d(occupied_columns(problem, found.rows.tolist(), intercept), gone)
    if seconds < math.inf and len(kept) > 2 * TIMED_ROWS:
        started = time.perf_counter()
        M, _ = exact.integer_rows(problem, found.rows[: TIMED_ROWS + 1].tolist(), intercept)
        balance_of_support([[row[j] for j in kept[:TIMED_ROWS]] for row in M])
        if (time.perf_counter() - started) * (len(kept) / TIMED_ROWS) ** TIME_GROWTH > seconds:
            return None
    A = signed_rows(problem, found.rows.tolist(), intercept, problem.signs, kept)
    few = few_rows(A, found.weights)
    return None if few is None else balance(problem, found.rows[few], intercept)


@np.errstate(all="ignore")
def few_rows(S: Array, p: Array, deadline: Deadline = UNLIMITED) -> Array | None:
    """Return rows S_i, one more than there are columns, that cancel if all rows do with weights p > 0 (Carathéodory).

    One row after the other passes its weight to the rows of a basis. If the weight of one of these falls to 0 first, the two rows
    are exchanged. None if the time runs out.
    """
    k, r = S.shape
    if not deadline.affords(deadline.pace.cancelling(k, r)):
        return None
    N = (S * p[:, None]).T
    basis = heaviest_basis(N / np.max(np.abs(N), axis=1, initial=1e-300)[:, None])
    others = np.setdiff1d(np.arange(k), basis)
    T, z, rest = np.linalg.solve(N[:, basis], N[:, others]), np.ones(r), [*range(len(others))]
    while len(rest) > 1:
        if not deadline.affords(0.0):
            return None
        j = rest.pop()
        # Weights of 0 are common in dummies; an exchange for rounding would end with rows that depend on each other.
        falls = T[:, j] < -WEIGHT_ROUNDING * np.max(np.abs(T[:, j]), initial=0.0)
        if (z + T[:, j] >= 0)[falls].all():
            z = np.maximum(z + T[:, j], 0.0)
            continue
        i = int(np.argmin(np.where(falls, -z / T[:, j], math.inf)))
        share = -z[i] / T[i, j]
        z = np.maximum(z + share * T[:, j], 0.0)
        z[i], basis[i] = 1 - share, others[j]
        row = T[i, rest] / T[i, j]
        T[:, rest] -= np.outer(T[:, j], row)
        T[i, rest] = row
    return np.sort(np.append(basis, others[rest]))
