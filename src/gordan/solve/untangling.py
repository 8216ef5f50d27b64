"""The finder for columns that are combinations of others up to rounding.

Such columns are common: a total of floats next to its parts, standardized dummy variables, the redundant features that
scikit-learn's `make_classification` makes. In floats such a column A_c depends on the others; in exact arithmetic it does not,
because A_c - Σ f_j A_j, for floats f_j, is not zero: these are the last bits. With the last bits in its place, scaled to a size
near 1, floats find rows that cancel: Σ p_i A_i = 0 holds exactly if and only if it holds for the changed rows. The weights of
these rows are then computed exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.certificates.exact import integers
from gordan.certificates.margins import Margin
from gordan.certificates.matrix import Matrix
from gordan.certificates.problem import Problem
from gordan.certificates.verified import signed_rows
from gordan.deadlines import Deadline, Pace
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Proposal, Question
from gordan.memory import fits
from gordan.rows import stored
from gordan.solve.cancelling import Dependence, balance, dependent_columns, few_rows, short_factors
from gordan.solve.overlapping import by_newton_steps

# Copies of the rows that are in use at a time, and the largest number of columns.
COPIES, MAX_COLUMNS = 12, 600
# Entries of the rows that are untangled first, because classes that overlap do so in a sample, too; and of all rows, at most.
SAMPLED_ENTRIES, MAX_ENTRIES = 1 << 20, 1 << 23
# Rows per column from which it is guessed which columns depend on others.
ROWS_PER_COLUMN = 4
# Binary digits of a slice of an entry: products of two slices, and sums of MAX_COLUMNS of these, have at most 53. Slices of an
# entry; and the share of the terms up to which what is left of a column counts as 0.
SLICE, SLICES = 21, 4
LOST = 2.0 ** -(SLICE * SLICES - 12)


def applies(question: Question) -> bool:
    """Return whether there are enough rows, in memory, and room for the slices of the entries of a sample."""
    n, k = question.counted.X.n, question.margin.intercept.columns(question.counted.X.d)
    sampled = min(n * k, max(ROWS_PER_COLUMN * k * k, SAMPLED_ENTRIES))
    return question.rows.in_memory and n > k and k <= MAX_COLUMNS and fits(8.0 * COPIES * sampled)


def by_untangling(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose rows that cancel, found by Newton's method on columns of which none nearly depends on others."""
    problem, intercept, budget = question.counted, question.margin.intercept, question.budget
    n, k = problem.X.n, intercept.columns(problem.X.d)
    tangle = Tangle.of(problem, intercept, budget.time)
    if tangle is None:
        return
    sampled = max(ROWS_PER_COLUMN * k, SAMPLED_ENTRIES // k)
    samples = [np.sort(np.random.default_rng(budget.seed).choice(n, sampled, replace=False))] if sampled < n else []
    everything = [np.arange(n)] if n * k <= MAX_ENTRIES and fits(8.0 * COPIES * n * k) else []
    for rows in (*samples, *everything):
        if budget.spent or not budget.time.affords(tangle.seconds(len(rows), budget.time.pace)):
            return
        inner = tangle.untangled(question, rows)
        for proposal in by_newton_steps(inner, evidence, decide_sign):
            found = proposal.cancelling
            if found is None:
                continue
            S = signed_rows(inner.counted, found.rows.tolist(), intercept, inner.counted.signs)
            S = np.delete(S, [relation[0][0] for relation in found.dependent], axis=1)
            few = few_rows(S, found.weights, budget.time)
            weights = None if few is None else balance(problem, rows[found.rows[few]], intercept, budget.time)
            if weights is not None:
                yield Proposal(witness=weights)


class Tangle(NamedTuple):
    """How columns depend on others, as guessed from few rows; a wrong guess does no harm.

    That is the column that each one equals (itself unless it is a copy), which columns depend on others, and the combinations
    that nearly vanish.
    """

    equal_to: Array
    dependence: Dependence
    combinations: Array

    @classmethod
    def of(cls, problem: Problem, intercept: Intercept, deadline: Deadline) -> Tangle | None:
        """Return the tangle of a problem; None if no column depends on others up to rounding, or for lack of time.

        Exact dependence is no obstacle to the other finders.
        """
        n, d = problem.X.n, problem.X.d
        some = np.linspace(0, n - 1, min(n, ROWS_PER_COLUMN * intercept.columns(d))).astype(int)
        m, k, pace = len(some), intercept.columns(d), deadline.pace
        if not deadline.affords(pace.basis(m, k) + pace.splitting(m, k)):
            return None
        A = signed_rows(problem, some.tolist(), intercept, np.ones(n))
        _, first, which = np.unique(A[:, :d], axis=1, return_index=True, return_inverse=True)
        equal_to = first[which.ravel()]
        _drop_copies(A, equal_to)
        found = dependent_columns(A, intercept.exists)
        if not len(found.dependent):
            return None
        combinations = _combinations(found)
        left = last_bits(np.ldexp(A, -found.exponents), combinations)
        return cls(equal_to, found, combinations) if left.any() else None

    def seconds(self, m: int, pace: Pace) -> float:
        """Return the seconds of `untangled` for m rows."""
        k, c = self.combinations.shape
        return pace.splitting(m, k) + SLICES * pace.products(m, c, k)

    def untangled(self, question: Question, rows: Array) -> Question:
        """Return the question about these rows in which the last bits replace each column that depends on others."""
        problem, intercept = question.counted, question.margin.intercept
        A = signed_rows(problem, rows.tolist(), intercept, np.ones(problem.X.n))
        _drop_copies(A, self.equal_to)
        left = last_bits(np.ldexp(A, -self.dependence.exponents), self.combinations)
        independent = sorted(j for j in self.dependence.independent if j < problem.X.d)
        X = np.column_stack((A[:, independent], left[:, left.any(axis=0)]))
        same = replace(problem, X=Matrix(stored(X)), signs=problem.signs[rows])
        return question.derived(same, Margin(same.X, same.signs, intercept))


def _drop_copies(A: Array, equal_to: Array) -> None:
    """Replace columns that are equal to another one by zeros."""
    for j, original in enumerate(equal_to.tolist()):
        if j != original and np.array_equal(A[:, j], A[:, original]):
            A[:, j] = 0.0


def _combinations(found: Dependence) -> Array:
    """Return the combinations of columns that nearly vanish, one for each dependent column.

    They are in integers where these are short, so that a combination vanishes if the dependence is exact.
    """
    factors = np.zeros((len(found.exponents), len(found.dependent)))
    for c, column, own in zip(found.dependent, factors.T, found.factors.T, strict=True):
        column[c], column[found.independent] = -1.0, own
        short = short_factors(dict(zip(found.independent, own.tolist(), strict=True)))
        whole = [] if short is None else integers([Fraction(-1), *short.values()])[0]
        if short is not None and max(map(abs, whole)) < 2**53:  # exact as floats
            column[:] = 0.0
            column[[c, *short]] = [float(m) for m in whole]
    return factors


def last_bits(X: Array, F: Array) -> Array:
    """Return X F, each column divided by its largest entry, to many more digits than plain products have.

    A column is 0 if all digits that can be determined are 0. Entries of X and F are cut into slices of few digits, whose products
    are exact in floats, in whatever order they are added up.
    """
    rows, columns = np.max(np.abs(X), axis=1, initial=0.0)[:, None], np.max(np.abs(F), axis=0, initial=0.0)[None, :]
    total, rest = np.zeros((len(X), F.shape[1])), np.zeros((len(X), F.shape[1]))
    slices = [*_slices(F, columns)]
    for a, x in enumerate(_slices(X, rows)):
        for f in slices[: SLICES - a]:
            part = x @ f
            moved = total + part
            taken = moved - total
            rest += (total - (moved - taken)) + (part - taken)  # what the addition rounds off, exactly
            total = moved
    left = total + rest
    left[np.abs(left) <= LOST * X.shape[1] * rows * columns] = 0.0
    largest = np.max(np.abs(left), axis=0, initial=0.0)
    return np.asarray(left / np.where(largest > 0, largest, 1.0))


def _slices(A: Array, size: Array) -> Iterator[Array]:
    """Yield the first digits of all entries, those that follow them, and so on, in units that go with these sizes."""
    unit = np.ldexp(1.0, np.frexp(size)[1] - SLICE)
    for _ in range(SLICES):
        first = np.rint(A / unit) * unit
        yield first
        A, unit = A - first, np.ldexp(unit, -SLICE)
