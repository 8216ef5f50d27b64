"""The finder for rows and columns so far apart in size, or so far away, that products of floats are lost.

Rows and columns are scaled by powers of two until their entries are of like size, and points are moved around 0 where there is an
intercept. Neither makes or loses a separator. The finders that work in floats are asked about the rows that come out.
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
    MOST_DENSE,
    by_ascent,
    by_interior_point,
    suits_exact_arithmetic,
    suits_interior_point,
    working_set,
)

# Rows and columns are levelled, in so many rounds, where their sizes leave 2^-200 to 2^200, and moved where a column extends over
# less than this share of its size. About so many rows show that of most columns.
ROUNDS, FAR_APART, FAR_AWAY, SOME_ROWS = 3, 2.0**200, 2.0**-26, 64


@dataclass(frozen=True, eq=False)
class Levelled:
    """The question about rows 2^-(r_i + c_j) a_ij of like size, for points less their `centre`, without intercept: w and p are
    those of A up to powers of two."""

    question: Question
    rows: Array
    columns: Array
    centre: Array

    def back(self, proposal: Proposal) -> Proposal:
        """The same for A."""
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


def by_levelling(question: Question, evidence: Evidence, doubt: Any) -> Iterator[Proposal]:
    """What the finders that work in floats have to say about the levelled rows."""
    level = question.shared(levelled)
    if level is None:
        return
    inner, x = level.question, None
    if suits_interior_point(inner):
        yield from map(level.back, by_interior_point(inner, evidence, doubt))
    for proposal in by_ascent(inner, evidence, doubt):
        x = proposal.p
        yield level.back(proposal)
    if not suits_exact_arithmetic(inner):
        yield from map(level.back, working_set(inner, x))


def levelled(question: Question) -> Levelled | None:
    """The question with rows and columns of like size, around 0 where there is an intercept; None where they are so already.

    Only where they are so far apart, or so far away, that products of floats would be lost. To move points that are near each
    other, as seen from 0, is exact.
    """
    problem, exists = question.counted, question.margin.intercept.exists
    X = problem.X
    rows = Rows(problem.storage, np.ones(X.n, np.int8), constant=exists)
    if not rows.in_memory or X.n * rows.d > MOST_DENSE:
        return None
    entries, norms = problem.storage.plain(), X.norms
    doubtful = _doubtful(entries, float(np.max(norms, initial=0.0)))
    entries = entries[:, doubtful] if len(doubtful) < X.d else entries
    ends = [end.todense() if is_sparse(end) else end for end in (entries.max(axis=0), entries.min(axis=0))]
    high, low = (np.asarray(end, dtype=np.float64).ravel() for end in ends)
    tops = np.maximum(np.abs(high), np.abs(low))
    away = (high / 2 - low / 2 < FAR_AWAY * tops) & exists
    sizes = np.concatenate((norms[norms > 0], tops[tops > 0], [1.0]))
    if not away.any() and FAR_APART >= sizes.max() >= sizes.min() >= 1 / FAR_APART:
        return None
    A = rows.dense()
    centre = np.zeros(X.d)
    centre[doubtful] = np.where(away, high / 2 + low / 2, 0.0)
    A[:, : X.d] -= centre
    exponents = np.frexp(A)[1].astype(np.float64)
    r, c = np.zeros(X.n), np.zeros(rows.d)
    for _ in range(ROUNDS):  # the middle of their exponents goes to 0
        r = _middle(np.where(A == 0, np.nan, exponents - c), 1)
        c = _middle(np.where(A == 0, np.nan, exponents - r[:, None]), 0)
    r = np.max(exponents - c, axis=1, where=A != 0, initial=-np.inf)  # and the largest of each row, in the end
    by_row, by_column = (np.where(np.isfinite(e), e, 0.0).astype(np.int64) for e in (r, c))
    same = replace(problem, X=Matrix(stored(np.ldexp(A, -(by_row[:, None] + by_column).astype(np.int32)))))
    margin = Margin(same.X, same.signs, Intercept.NONE)
    return Levelled(replace(question, problem=same, margin=margin, origin=question), by_row, by_column, centre)


def _doubtful(entries: Any, longest: float) -> Array:
    """The columns that may be far away or far too small, as far as some of the rows tell, none of which is longer than that."""
    d = entries.shape[1]
    if is_sparse(entries):
        return np.arange(d)
    some = entries[:: max(1, len(entries) // SOME_ROWS)]
    extent = some.max(axis=0) / 2 - some.min(axis=0) / 2
    return np.flatnonzero(~(extent >= max(FAR_AWAY * longest, 1 / FAR_APART)))


def _as_float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf


def _middle(exponents: Array, axis: int) -> Array:
    """The middle between the largest and the smallest; 0 where there is none."""
    known = ~np.isnan(exponents)
    high = np.max(exponents, axis=axis, where=known, initial=-np.inf)
    low = np.min(exponents, axis=axis, where=known, initial=np.inf)
    with np.errstate(invalid="ignore"):
        middle: Array = np.where(known.any(axis=axis), np.rint((high + low) / 2), 0.0)
    return middle
