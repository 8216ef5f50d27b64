"""Rows that cancel, and span, by Newton's method on the squared hinge loss: for data that overlaps.

With p_i = (1 - A_i·w)₊ the gradient of ½Σ(1 - A_i·w)₊² is -Σ p_i A_i: where the loss has a least value above 0, the rows with
A_i·w < 1 cancel with weights p > 0. Unlike a vertex these are many rows, none of which is nearly superfluous, and so few steps of
linear algebra find and prove them. Where the rows in hand are separable instead, the loss goes to 0 along a separator.

Each step is the least-squares solution for the rows that are active, as in O. L. Mangasarian, A finite Newton method for
classification, Optim. Methods Softw. 17, 2002; near the end these stay the same and the step is exact.
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

# Rows to begin with, for each column: labels of random sign are inseparable from 2 on, those that follow a plane with much noise
# from about 3. Each further round has those that the last plane has on the wrong side, as many more at most; at least the nearest
# to it, one a column, or there would be many rounds with few.
ROWS_A_COLUMN, ROUNDS = 4, 5
# Columns at most, and copies of the rows in hand that are in use at a time.
MOST_COLUMNS, COPIES = 3000, 4
# Steps at most (about eight are needed), and how often one is halved.
STEPS, HALVINGS = 40, 20
# Added to the diagonal of the equations, as a share of it; and weights that count as 0, as a share of the largest.
RIDGE, LIGHT = 1e-13, 1e-9
# Share of other scores below which a negative one may be rounding.
ROUNDING = 1e-6


def applies(question: Question) -> bool:
    """Whether there are as many rows as are needed, and room; for smaller data other finders and exact weights are at hand."""
    n, k = question.counted.X.n, question.margin.intercept.columns(question.counted.X.d)
    rows = min(n, ROUNDS * ROWS_A_COLUMN * k)
    return n > 2 * k and k <= MOST_COLUMNS and k**3 > EXACT_AT_ONCE and fits(8.0 * COPIES * rows * k)


def by_newton_steps(question: Question, evidence: Evidence, doubt: Any) -> Iterator[Proposal]:
    """Rows in hand that cancel; or their separator, and then more rows."""
    A = question.unit_rows.A
    n = A.n
    count = ROWS_A_COLUMN * A.d
    rng = np.random.default_rng(question.budget.seed)
    inside = np.arange(n) if n <= count else np.unique(rng.integers(n, size=count))
    for _ in range(ROUNDS):
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
        if scores[0] > -ROUNDING * abs(scores[-1]):  # to have it checked costs several passes
            yield Proposal(*A.plane(v))
        outside = np.isin(lowest, inside, invert=True)
        wrong = int(np.count_nonzero(outside & (scores <= 0)))
        if not wrong:
            return
        inside = np.sort(np.concatenate((inside, lowest[outside][: min(count, max(wrong, A.d))])))


@np.errstate(all="ignore")
def _least_loss(A: Array, question: Question) -> tuple[Array | None, Array | None]:
    """w, with p = (1 - Aw)₊ where the rows of p cancel; without p where w separates; None where neither is reached."""
    m, k = A.shape
    w, s = np.zeros(k), np.zeros(m)
    for _ in range(STEPS):
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
        for _ in range(HALVINGS):
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
