"""The finder for data so badly scaled, or so far from 0, that products in floats lose all digits.

Rows and columns are scaled by powers of two until their entries are of similar size, and points are centred where there is an
intercept. Neither makes nor loses a separator. The finders that work in floats are asked about the rows that result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gordan.arrays import Array, is_sparse, times_powers
from gordan.certificates.margins import Margin
from gordan.certificates.matrix import Matrix
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Proposal, Question
from gordan.rows import Rows, stored
from gordan.solve.separation import (
    TUNING,
    by_ascent,
    by_interior_point,
    suits_exact_arithmetic,
    suits_interior_point,
    working_set,
)

# Rows and columns are scaled where a norm, or the largest entry of a column, is beyond 2^-200 to 2^200: squares and products of
# such numbers overflow or underflow.
FAR_APART = 2.0**200
# Points are centred where a column ranges over less than this share of its size: a product would lose half of its digits.
NARROW_RANGE = 2.0**-26
# Rounds in which rows and columns are scaled in turn; further ones change little.
SCALING_ROUNDS = 3
# About this many rows are examined first: they show of most columns that these are well scaled.
EXAMINED_ROWS = 64


@dataclass(frozen=True, eq=False)
class ScaledQuestion:
    """The question about the scaled rows 2^-(r_i + c_j) a_ij of the centred points, without intercept.

    `rows` and `columns` are the exponents r and c. w and p of the scaled rows are those of A up to powers of two.
    """

    question: Question
    rows: Array
    columns: Array
    centre: Array

    def back(self, proposal: Proposal) -> Proposal:
        """Return the proposal for A that corresponds to one for the scaled rows."""
        origin = self.question.origin
        assert origin is not None
        p = None if proposal.p is None else times_powers(proposal.p, -self.rows)
        if proposal.w is None:
            return replace(proposal, p=p)
        w, b = origin.margin.intercept.plane_of(times_powers(proposal.w, -self.columns))
        if self.centre.any():
            terms = zip(w.tolist(), self.centre.tolist(), strict=True)
            b = _as_float(Fraction(float(b)) - sum((Fraction(x) * Fraction(c) for x, c in terms), Fraction(0)))
        return replace(proposal, w=w, b=float(b), p=p)


def by_scaling(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose what the finders that work in floats propose for the scaled rows: interior point, ascent and working set."""
    level = question.shared(scaled_question)
    if level is None:
        return
    inner, x = level.question, None
    if suits_interior_point(inner):
        yield from map(level.back, by_interior_point(inner, evidence, decide_sign))
    for proposal in by_ascent(inner, evidence, decide_sign):
        x = proposal.p
        yield level.back(proposal)
    if not suits_exact_arithmetic(inner):
        yield from map(level.back, working_set(inner, x))


def scaled_question(question: Question) -> ScaledQuestion | None:
    """Return the question with scaled rows and columns, centred where there is an intercept; None if floats need neither.

    None also where there is no time for it.

    Centring is exact: the points are near each other, as seen from 0.
    """
    problem, exists = question.counted, question.margin.intercept.exists
    X = problem.X
    rows = Rows(problem.storage, np.ones(X.n, np.int8), constant=exists)
    if not rows.in_memory or X.n * rows.d > TUNING.max_dense_entries:
        return None
    entries, norms = problem.storage.plain(), X.norms
    suspect = _suspect_columns(entries, float(np.max(norms, initial=0.0)))
    entries = entries[:, suspect] if len(suspect) < X.d else entries
    ends = [end.todense() if is_sparse(end) else end for end in (entries.max(axis=0), entries.min(axis=0))]
    high, low = (np.asarray(end, dtype=np.float64).ravel() for end in ends)
    tops = np.maximum(np.abs(high), np.abs(low))
    away = (high / 2 - low / 2 < NARROW_RANGE * tops) & exists
    sizes = np.concatenate((norms[norms > 0], tops[tops > 0], [1.0]))
    if not away.any() and FAR_APART >= sizes.max() >= sizes.min() >= 1 / FAR_APART:
        return None
    time = question.budget.time
    if not time.affords(time.pace.splitting(X.n, rows.d)):
        return None
    A = rows.dense()
    centre = np.zeros(X.d)
    centre[suspect] = np.where(away, high / 2 + low / 2, 0.0)
    A[:, : X.d] -= centre
    exponents = np.frexp(A)[1].astype(np.float64)
    r, c = np.zeros(X.n), np.zeros(rows.d)
    for _ in range(SCALING_ROUNDS):  # the middle of the exponents of a row, then of a column, becomes 0
        r = _middle(np.where(A == 0, np.nan, exponents - c), 1)
        c = _middle(np.where(A == 0, np.nan, exponents - r[:, None]), 0)
    r = np.max(exponents - c, axis=1, where=A != 0, initial=-np.inf)  # at the end the largest exponent of each row does
    by_row, by_column = (np.where(np.isfinite(e), e, 0.0).astype(np.int64) for e in (r, c))
    same = replace(problem, X=Matrix(stored(np.ldexp(A, -(by_row[:, None] + by_column).astype(np.int32)))))
    margin = Margin(same.X, same.signs, Intercept.NONE)
    return ScaledQuestion(question.derived(same, margin), by_row, by_column, centre)


def _suspect_columns(entries: Any, longest: float) -> Array:
    """Return the columns that may be far from 0 or too small, judged by some rows; `longest` is the largest norm of a row."""
    d = entries.shape[1]
    if is_sparse(entries):
        return np.arange(d)
    some = entries[:: max(1, len(entries) // EXAMINED_ROWS)]
    extent = some.max(axis=0) / 2 - some.min(axis=0) / 2
    return np.flatnonzero(~(extent >= max(NARROW_RANGE * longest, 1 / FAR_APART)))


def _as_float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf


def _middle(exponents: Array, axis: int) -> Array:
    """Return the middle between the largest and the smallest exponent along the axis; 0 where all entries are NaN."""
    known = ~np.isnan(exponents)
    high = np.max(exponents, axis=axis, where=known, initial=-np.inf)
    low = np.min(exponents, axis=axis, where=known, initial=np.inf)
    with np.errstate(invalid="ignore"):
        middle: Array = np.where(known.any(axis=axis), np.rint((high + low) / 2), 0.0)
    return middle
