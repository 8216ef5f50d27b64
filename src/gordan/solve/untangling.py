"""The finder for columns that are combinations of others except for rounding, such as a total of floats beside its parts.

In floats such a column depends on the others, in exact arithmetic it does not: the residual Σ m_j A_j, for integers m_j, consists
of the last bits. If the residual, scaled to a size near 1, replaces the column, floats find rows that cancel: Σ p_i A_i = 0 holds
for the original rows if and only if it holds for the new ones. The weights of these rows are then computed exactly.
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

# Copies of the rows that exist at a time.
COPIES = 6
# Rows per column that are examined for dependence: a relation that holds on them rarely fails on others.
ROWS_PER_COLUMN = 4
# Columns up to which dependence is examined: it is found by a QR factorization, whose cost grows with their cube.
MAX_COLUMNS = 600


def applies(question: Question) -> bool:
    """Return whether there are enough rows, in memory, and room for dense copies of them."""
    n, k = question.counted.X.n, question.margin.intercept.columns(question.counted.X.d)
    return question.rows.in_memory and n > k and k <= MAX_COLUMNS and fits(8.0 * COPIES * n * k)


def by_untangling(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose rows that cancel, found by Newton's method on columns of which none nearly depends on others."""
    inner, problem, intercept = untangled(question), question.counted, question.margin.intercept
    if inner is None:
        return
    for proposal in by_newton_steps(inner, evidence, decide_sign):
        found = proposal.cancelling
        if found is None:
            continue
        S = signed_rows(inner.counted, found.rows.tolist(), intercept, problem.signs)
        few = few_rows(np.delete(S, [relation[0][0] for relation in found.dependent], axis=1), found.weights)
        weights = balance(problem, found.rows[few], intercept, question.budget.time)
        if weights is not None:
            yield Proposal(witness=weights)


def untangled(question: Question) -> Question | None:
    """Return the question with residuals in place of nearly dependent columns; None where there is no such column."""
    problem, intercept = question.counted, question.margin.intercept
    n, d = problem.X.n, problem.X.d
    some = np.linspace(0, n - 1, min(n, ROWS_PER_COLUMN * intercept.columns(d))).astype(int).tolist()
    part = signed_rows(problem, some, intercept, problem.signs)
    _, relations = dependence(part, intercept.exists)
    within_rounding = [relation for relation in relations if not _holds(part, relation)]
    if not within_rounding:  # columns that depend exactly are no obstacle to the other finders
        return None
    X = signed_rows(problem, range(n), intercept, np.ones(n))
    for relation in relations:
        X[:, relation[0][0]] = _residual(X, relation) if relation in within_rounding else 0.0
    same = replace(problem, X=Matrix(stored(X[:, [j for j in range(d) if X[:, j].any()]])))
    return replace(question, problem=same, margin=Margin(same.X, same.signs, intercept), origin=question)


def _holds(X: Array, relation: Relation) -> bool:
    """Return whether Σ m_j X_j = 0 exactly; in floats where these round nothing."""
    values, factors = X[:, [c for c, _ in relation]], [m for _, m in relation]
    if exact.adds_exactly(values, factors, 0):
        return not (values @ np.array(factors, dtype=np.float64)).any()
    return not _residual(X, relation).any()


def _residual(X: Array, relation: Relation) -> Array:
    """Return Σ m_j X_j, computed exactly, scaled to a size near 1 and rounded once."""
    parts = [(m, *exact.whole(X[:, c])) for c, m in relation]
    low = min(e for _, _, e in parts)
    sums = [sum(terms) for terms in zip(*([m * v << (e - low) for v in values] for m, values, e in parts), strict=True)]
    unit = max(map(abs, sums)) or 1
    return np.array([x / unit for x in sums])
