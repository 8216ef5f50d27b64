"""The finder for columns that are combinations of others but for rounding: a total of floats beside its parts, say.

To floats such a column depends on the others, and to exact arithmetic it does not: what is left of it, Σ m_j A_j for integers
m_j, are the last bits. With that in its place, made of a size near 1, floats find rows that cancel: Σ p_i A_i = 0 just where that
holds for the rows that come out. The weights of these rows are then found exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.certificates import exact
from gordan.certificates.data import Relation
from gordan.certificates.margins import Margin
from gordan.certificates.matrix import Matrix
from gordan.certificates.verified import signed_rows
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Proposal, Question
from gordan.memory import fits
from gordan.rows import stored
from gordan.solve.cancelling import balance, dependence, few_rows
from gordan.solve.overlapping import by_newton_steps

# Copies of the rows that are in use at a time, rows for each column that are looked at for dependence, and columns at most.
COPIES, ROWS_A_COLUMN, MOST_COLUMNS = 6, 4, 600


def applies(question: Question) -> bool:
    """Whether there are rows enough, in memory, and room to spread them out."""
    n, k = question.counted.X.n, question.margin.intercept.columns(question.counted.X.d)
    return question.rows.in_memory and n > k and k <= MOST_COLUMNS and fits(8.0 * COPIES * n * k)


def by_untangling(question: Question, evidence: Evidence, doubt: Any) -> Iterator[Proposal]:
    """Rows that cancel, by Newton's method on columns of which none nearly depends on others."""
    inner, problem, intercept = untangled(question), question.counted, question.margin.intercept
    if inner is None:
        return
    for proposal in by_newton_steps(inner, evidence, doubt):
        found = proposal.cancelling
        if found is None:
            continue
        S = signed_rows(inner.counted, found.rows.tolist(), intercept, problem.signs)
        few = few_rows(np.delete(S, [relation[0][0] for relation in found.dependent], axis=1), found.weights)
        weights = balance(problem, found.rows[few], intercept, question.budget.time)
        if weights is not None:
            yield Proposal(witness=weights)


def untangled(question: Question) -> Question | None:
    """The question about what is left of columns that depend on others within rounding; None where there is no such column."""
    problem, intercept = question.counted, question.margin.intercept
    n, d = problem.X.n, problem.X.d
    k = intercept.columns(d)
    some = np.linspace(0, n - 1, min(n, ROWS_A_COLUMN * k)).astype(int).tolist()
    order = [*range(d, k), *range(d)]  # the constant comes before all others
    part = signed_rows(problem, some, intercept, problem.signs)
    _, relations = dependence(part, order)
    within_rounding = [relation for relation in relations if not _holds(part, relation)]
    if not within_rounding:  # the others depend exactly, which other finders know of
        return None
    X = signed_rows(problem, range(n), intercept, np.ones(n))
    for relation in relations:
        X[:, relation[0][0]] = _left(X, relation) if relation in within_rounding else 0.0
    same = replace(problem, X=Matrix(stored(X[:, [j for j in range(d) if X[:, j].any()]])))
    return replace(question, problem=same, margin=Margin(same.X, same.signs, intercept), origin=question)


def _holds(X: Array, relation: Relation) -> bool:
    """Whether Σ m_j X_j = 0, in floats where these round nothing."""
    values, factors = X[:, [c for c, _ in relation]], [m for _, m in relation]
    if exact.adds_exactly(values, factors, 0):
        return not (values @ np.array(factors, dtype=np.float64)).any()
    return not _left(X, relation).any()


def _left(X: Array, relation: Relation) -> Array:
    """Σ m_j X_j, rounded once and made of a size near 1."""
    parts = [(m, *exact.whole(X[:, c])) for c, m in relation]
    low = min(e for _, _, e in parts)
    sums = [sum(terms) for terms in zip(*([m * v << (e - low) for v in values] for m, values, e in parts), strict=True)]
    unit = max(map(abs, sums)) or 1
    return np.array([x / unit for x in sums])
