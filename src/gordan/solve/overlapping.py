"""The finder for data that overlaps: rows that cancel and span, by Newton's method on the squared hinge loss.

With p_i = (1 - A_i·w)₊ the gradient of ½Σ(1 - A_i·w)₊² is -Σ p_i A_i: where the minimum of the loss is positive, the rows with
A_i·w < 1 cancel with weights p > 0. Unlike those of a vertex these are many rows, none of which is nearly superfluous, so that a
few steps of linear algebra find and prove them. Where the rows are separable instead, the loss falls to 0 along a separator.

Each step is the least-squares solution for the active rows, as in O. L. Mangasarian, A finite Newton method for classification,
Optim. Methods Softw. 17, 2002. Near the end the active rows stay the same and the step is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Proposal, Question
from gordan.memory import fits
from gordan.solve.cancelling import EXACT_AT_ONCE, in_floats

# benchmarks/overlap.py times what these constants decide.

# Rows per column that the search begins with: random labels are inseparable from 2 on, those that follow a plane with much noise
# from about 3. Each further round adds at most as many, of the rows on the wrong side of the last plane; and at least one per
# column, the nearest to the plane, since there would be many rounds otherwise.
ROWS_PER_COLUMN, MAX_ROUNDS = 4, 5
# Columns up to which the d × d system of a step is worth its time.
MAX_COLUMNS = 3000
# Copies of the rows that exist at a time.
COPIES = 4
# Newton steps (about eight are needed), and halvings of one step.
MAX_STEPS, MAX_HALVINGS = 40, 20
# What is added to the diagonal of the equations, relative to their trace, so that they are never singular.
RIDGE = 1e-13
# Weights below this share of the largest count as 0.
LIGHT = 1e-9
# Negative scores below this share of the largest may be rounding.
NEGLIGIBLE_SCORE = 1e-6


def applies(question: Question) -> bool:
    """Return whether there are enough rows, and room for them; smaller data is left to finders with exact weights."""
    n, k = question.counted.X.n, question.margin.intercept.columns(question.counted.X.d)
    rows = min(n, MAX_ROUNDS * ROWS_PER_COLUMN * k)
    return n > 2 * k and k <= MAX_COLUMNS and k**3 > EXACT_AT_ONCE and fits(8.0 * COPIES * rows * k)


def by_newton_steps(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose rows of a growing sample that cancel; or a plane that separates the sample, if it may separate all rows.

    A round costs about eight systems of d equations, made from the sample, and a pass.
    """
    A = question.unit_rows.A
    n = A.n
    count = ROWS_PER_COLUMN * A.d
    rng = np.random.default_rng(question.budget.seed)
    inside = np.arange(n) if n <= count else np.unique(rng.integers(n, size=count))
    for _ in range(MAX_ROUNDS):
        if question.budget.spent:
            return
        rows = (A if len(inside) == n else A.take(inside)).dense()
        columns = np.sqrt(np.mean(rows * rows, axis=0))
        columns = np.where(columns > 0, columns, 1.0)
        rows /= columns
        norms = np.sqrt(np.maximum(np.einsum("ij,ij->i", rows, rows), 1e-300))
        rows /= norms[:, None]
        w, p = _least_loss(rows, question)
        if p is not None:
            heavy = np.flatnonzero(p > LIGHT * p.max())
            found = in_floats(question.counted, inside[heavy], p[heavy] / norms[heavy], question.margin.intercept)
            if found is not None:
                yield Proposal(cancelling=found)
            return
        if w is None:
            return
        v = w / columns
        lowest, scores = A.lowest(v, count + len(inside))
        if scores[0] > -NEGLIGIBLE_SCORE * abs(scores[-1]):  # otherwise the several passes of a check would be wasted
            yield Proposal(*A.plane(v))
        outside = np.isin(lowest, inside, invert=True)
        wrong = int(np.count_nonzero(outside & (scores <= 0)))
        if not wrong:
            return
        inside = np.sort(np.concatenate((inside, lowest[outside][: min(count, max(wrong, A.d))])))


@np.errstate(all="ignore")
def _least_loss(A: Array, question: Question) -> tuple[Array | None, Array | None]:
    """Return w and p = (1 - Aw)₊ where the rows of p cancel; w alone where it separates; neither where neither is reached."""
    m, k = A.shape
    w, s = np.zeros(k), np.zeros(m)
    for _ in range(MAX_STEPS):
        if question.budget.spent:
            break
        active = s < 1
        rows = A[active]
        H = rows.T @ rows
        H.flat[:: k + 1] += RIDGE * float(np.trace(H))
        down = (1 - s[active]) @ rows
        try:
            step = np.linalg.solve(H, down)
        except np.linalg.LinAlgError:
            break
        ds, t, slope = A @ step, 1.0, float(down @ step)
        loss = _loss(s)
        for _ in range(MAX_HALVINGS):
            if _loss(s + t * ds) <= loss - 1e-4 * t * slope:
                break
            t /= 2
        w, s = w + t * step, s + t * ds
        if not np.isfinite(s).all():
            break
        if np.min(s) > 0:
            return w, None
        if t == 1 and np.array_equal(s < 1, active):
            return w, np.maximum(1 - s, 0.0)
    return None, None


def _loss(s: Array) -> float:
    return float(np.sum(np.square(np.maximum(1 - s, 0.0)))) / 2
