"""The finder for data that overlaps: rows that cancel and span, by Newton's method on the squared hinge loss.

With p_i = (1 - A_i·w)₊ the gradient of ½Σ(1 - A_i·w)₊² is -Σ p_i A_i: where the minimum of the loss is positive, the rows with
A_i·w < 1 cancel with weights p > 0. Unlike those of a vertex these are many rows, none of which is nearly superfluous, so that a
few steps of linear algebra find and prove them. Where the rows are separable instead, the loss falls to 0 along a separator.

Sparse rows of many columns, such as the dummies of a factor with thousands of levels, often overlap already in the rows that have
entries in few columns only. These are looked at first, without the other columns. Where the rows that cancel have entries in too
many columns for such a proof, as those of text with noisy labels do, the loss still shows which way it is: by conjugate gradients
either a separator is found, or weights with which the rows cancel up to rounding, and which bound the margin.

Each step is the least-squares solution for the active rows, as in O. L. Mangasarian, A finite Newton method for classification,
Optim. Methods Softw. 17, 2002. Near the end the active rows stay the same and the step is exact.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gordan.arrays import Array, as_dense, is_sparse
from gordan.deadlines import SLOW_CELL, SPARSE_GRAM, Pace
from gordan.errors import BeyondFloats
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Budget, Proposal, Question
from gordan.memory import fits
from gordan.rows import host
from gordan.solve.cancelling import EXACT_AT_ONCE, in_floats
from gordan.solve.loss_newton import Newton
from gordan.solve.separation import are_many, ascent_of


@dataclass(frozen=True)
class Tuning:
    """Constants of the finders; `benchmarks/overlap.py` times what they decide."""

    # Rows per column that the search begins with: random labels are inseparable from 2 on, those that follow a plane with much
    # noise from about 3. Each further round adds at most as many, of the rows on the wrong side of the last plane; and at least
    # one per column, the nearest to the plane, since there would be many rounds otherwise.
    rows_per_column: int = 4
    max_rounds: int = 5
    # The rows of weight after a short ascent that are looked at, and the rows that it visits at most, per column.
    suspects_per_column: int = 3
    visited_per_column: int = 200
    # Columns up to which the d × d system of a step is worth its time.
    max_columns: int = 3000
    # The number of most frequent columns that sparse rows are first restricted to, and up to which it is doubled.
    min_columns: int = 64
    max_few_columns: int = 1500
    # A sample of sparse rows is taken where they are more than twice this many times the columns, and one of the rows with few
    # columns where they are more than this many times these columns.
    sampled_rows_per_column: int = 16
    max_rows_per_column: int = 8
    # Where there are more than `max_columns`, C begins at 1 and is multiplied by this whenever the gradient is at most this share
    # of w.
    c_growth: float = 100.0
    small_gradient: float = 1e-2
    # Rows of norm at most 1 are taken to cancel at this ‖Aᵀp‖. The search ends after this many products with AᵀhA, and this many
    # steps; sets of benchmarks/everyday.py take a few hundred and about thirty.
    cancelled: float = 1e-10
    max_products: int = 5000
    max_loss_steps: int = 200
    # Systems of equations that are solved for a set of rows, about.
    systems: int = 8
    # Copies of the rows that exist at a time.
    copies: int = 4
    # Newton steps (about eight are needed), and halvings of one step.
    max_steps: int = 40
    max_halvings: int = 20
    # What is added to the diagonal of the equations, relative to their trace, so that they are never singular.
    ridge: float = 1e-13
    # Weights below this share of the largest count as 0.
    negligible_newton_weight: float = 1e-9
    # Negative scores below this share of the largest may be rounding.
    negligible_score: float = 1e-6


TUNING = Tuning()


def applies(question: Question) -> bool:
    """Return whether there are enough rows, and room for them; smaller data is left to finders with exact weights."""
    n, k = question.counted.X.n, question.margin.intercept.columns(question.counted.X.d)
    rows = min(n, TUNING.max_rounds * TUNING.rows_per_column * k)
    return n > 2 * k and k <= TUNING.max_columns and k**3 > EXACT_AT_ONCE and fits(8.0 * TUNING.copies * rows * k)


def by_newton_steps(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose rows of a growing sample that cancel; or a plane that separates the sample, if it may separate all rows.

    A round costs about eight systems of d equations, made from the sample, and a pass.
    """
    n, count = question.unit_rows.A.n, TUNING.rows_per_column * question.unit_rows.A.d
    rng = np.random.default_rng(question.budget.seed)
    return _from_rows(question, np.arange(n) if n <= count else np.unique(rng.integers(n, size=count)), TUNING.max_rounds)


def by_weighted_rows(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose rows that cancel, of a sample of those to which coordinate ascent gives weight, where these are many.

    Costs at most two epochs, if there was no ascent before, and a few systems of d equations.
    """
    k, rng = question.unit_rows.A.d, np.random.default_rng(question.budget.seed)
    if evidence.p is None:
        rows, x = question.shared(short_ascent)
    else:
        rows, x = np.arange(question.counted.X.n), host(evidence.p)[question.kept]
    if are_many(x, k):
        # in proportion to x, with which the rows nearly cancel: the heaviest alone may be separable, being on the wrong side of w
        chosen = rng.choice(len(x), min(TUNING.suspects_per_column * k, int(np.count_nonzero(x))), replace=False, p=x / np.sum(x))
        yield from _from_rows(question, rows[np.sort(chosen)], rounds=1)


def short_ascent(question: Question) -> tuple[Array, Array]:
    """Return rows, all or a sample, and the weights that one or two epochs of ascent leave on them (two where these are many)."""
    problem, k, seed = question.counted, question.unit_rows.A.d, question.budget.seed
    rows = np.arange(problem.X.n)
    if len(rows) > TUNING.visited_per_column * k:
        rows = np.sort(np.random.default_rng(seed).choice(rows, TUNING.visited_per_column * k, replace=False))
        problem = problem.part(rows)
    ascent, _ = ascent_of(question, problem)
    ascent.run_epochs(1, seed=seed)
    if are_many(ascent.x, k):
        ascent.run_epochs(1, seed=seed + 1)
    return rows, ascent.x


def seems_separable(question: Question) -> bool:
    """Return whether a short ascent leaves weight on few rows, as it does where a plane separates them."""
    with contextlib.suppress(BeyondFloats), np.errstate(all="ignore"):
        return not are_many(question.shared(short_ascent)[1], question.unit_rows.A.d)
    return False  # products overflow


def _from_rows(question: Question, inside: Array, rounds: int) -> Iterator[Proposal]:
    """Propose what Newton steps find on these rows, and in further rounds on more."""
    A = question.unit_rows.A
    n, count = A.n, TUNING.rows_per_column * A.d
    for _ in range(rounds):
        if question.budget.spent or not _affordable(question.budget, len(inside), A.d):
            return
        rows = (A if len(inside) == n else A.take(inside)).dense()
        columns = np.sqrt(np.mean(rows * rows, axis=0))
        columns = np.where(columns > 0, columns, 1.0)
        rows /= columns
        norms = np.sqrt(np.maximum(np.einsum("ij,ij->i", rows, rows), 1e-300))
        rows /= norms[:, None]
        w, p = _least_loss(rows, question)
        if p is not None:
            heavy = np.flatnonzero(p > TUNING.negligible_newton_weight * p.max())
            yield from _cancelling(question, inside[heavy], p[heavy] / norms[heavy])
            return
        if w is None or rounds == 1:
            return
        v = w / columns
        lowest, scores = A.lowest(v, count + len(inside))
        if scores[0] > -TUNING.negligible_score * abs(scores[-1]):  # otherwise the several passes of a check would be wasted
            yield Proposal(*A.plane(v))
        outside = np.isin(lowest, inside, invert=True)
        wrong = int(np.count_nonzero(outside & (scores <= 0)))
        if not wrong:
            return
        inside = np.sort(np.concatenate((inside, lowest[outside][: min(count, max(wrong, A.d))])))


def _affordable(budget: Budget, m: int, k: int) -> bool:
    """Return whether there is time for a step with m dense rows of k columns, and for the proof that they cancel."""
    pace = budget.time.pace
    step = TUNING.copies * pace.entry * m * k + pace.products(k, k, m) / 2 + pace.system(k)
    return budget.time.affords(step) and budget.time_to_prove.affords(step + pace.cancelling(m, k))


def _cancelling(question: Question, rows: Array, p: Array) -> Iterator[Proposal]:
    """Propose these rows with float weights near p, if they seem to cancel."""
    found = in_floats(question.counted, rows, p, question.margin.intercept, question.budget.time_to_prove)
    if found is not None:
        yield Proposal(cancelling=found)


def has_many_columns(question: Question) -> bool:
    """Return whether there are too many columns for `by_newton_steps`."""
    return question.margin.intercept.columns(question.counted.X.d) > TUNING.max_columns


def by_least_loss(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose a plane that separates the rows, or weights with which they cancel up to rounding, for any number of columns.

    The plane that minimizes ½‖w‖² + ½CΣ(1 - A_i·w)₊² tends to that of the largest margin as C grows, where there is one.
    Otherwise w stays bounded and ‖Aᵀp‖ = ‖w‖/C tends to 0, which bounds every margin without proving that none is positive.
    Costs two passes over the rows of weight for each step of conjugate gradients, a few hundred of them.
    """
    A, budget, C = question.unit_rows.A, question.budget, 1.0
    newton = Newton.start(A, question.margin.intercept.exists, None, budget.time)
    p = np.ones(A.n)
    while newton.cg.products <= TUNING.max_products and newton.steps <= TUNING.max_loss_steps and not budget.spent:
        v, w = newton.combine(p), newton.J * newton.w
        if float(np.linalg.norm(v)) <= TUNING.cancelled * float(np.sum(p)):
            evidence.hints.cancelled = True
            break
        while w.any() and float(np.linalg.norm(w - C * v)) <= TUNING.small_gradient * float(np.linalg.norm(w)):
            C *= TUNING.c_growth
        moved = newton.step(w - C * v, partial(_weights, C), partial(_curvature, C), C * p)
        if newton.steps and float(np.min(newton.z)) > 0:
            yield Proposal(*A.plane(newton.w))
            return
        p = np.maximum(1 - newton.z, 0.0)
        if not moved:
            break
    yield Proposal(p=p / np.sum(p))


def _weights(C: float, z: Array) -> Array:
    return np.asarray(C * np.maximum(1 - z, 0.0))


def _curvature(C: float, z: Array, alpha: Array) -> Array:
    return np.asarray(C * (z < 1))


def by_few_columns(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose rows that cancel among those that have entries only in the m most frequent columns, for growing m.

    Costs a copy of the rows or of a sample, and for each m about eight sparse products and systems of m equations. A constant
    column, in which all rows have an entry, is not one of the m.
    """
    from scipy.sparse import diags_array

    A, budget = question.unit_rows.A, question.budget
    rng, inside = np.random.default_rng(budget.seed), np.arange(A.n)
    if A.n > 2 * TUNING.sampled_rows_per_column * A.d:
        inside = np.sort(rng.choice(A.n, TUNING.sampled_rows_per_column * A.d, replace=False, shuffle=False))
        A = A.take(inside)
    if not fits(16.0 * TUNING.copies * A.entries):
        return
    for rows, width in _with_few_columns(A.storage.plain()):
        if len(rows) > TUNING.max_rows_per_column * width:
            rows = np.sort(rng.choice(rows, TUNING.max_rows_per_column * width, replace=False))
        part = A.take(rows).csr()
        kept, columns = _without_pure_columns(part)
        rows = rows[kept]
        if len(rows) <= len(columns):
            continue
        m, k, pace = len(rows), len(columns), budget.time.pace
        steps = TUNING.systems * pace.products(k, k, k)
        if budget.spent or not budget.time.affords(steps) or not fits(8.0 * TUNING.copies * k * k):
            return
        if not budget.time_to_prove.affords(steps + pace.cancelling(m, k)):
            return
        part = part[kept][:, columns]
        sizes = np.sqrt((part * part).sum(axis=0) / len(rows))
        part = part @ diags_array(1 / sizes)
        norms = np.sqrt((part * part).sum(axis=1))
        _, p = _least_loss(diags_array(1 / norms) @ part, question)
        if p is not None:
            heavy = np.flatnonzero(p > TUNING.negligible_newton_weight * p.max())
            yield from _cancelling(question, inside[rows[heavy]], p[heavy] / norms[heavy])


def _without_pure_columns(A: Any) -> tuple[Array, Array]:
    """Return the rows that can have positive weight where rows cancel, and the columns in which they have entries.

    If the entries of a column all have the same sign, the rows that have one there must have weight 0, and are left out. Then
    other columns may be left with entries of one sign.
    """
    used = np.flatnonzero(np.bincount(A.indices, A.data != 0, A.shape[1]))
    rows, part = np.arange(A.shape[0]), A[:, used]  # there may be a round for each row: none should pass over all columns of A
    part.eliminate_zeros()
    while True:
        positive = np.bincount(part.indices, part.data > 0, len(used))
        negative = np.bincount(part.indices, part.data < 0, len(used))
        pure = (positive == 0) ^ (negative == 0)
        if not pure.any():
            return rows, used[positive > 0]
        out = np.bincount(np.repeat(np.arange(len(rows)), np.diff(part.indptr)), pure[part.indices], len(rows))
        rows, part = rows[out == 0], part[out == 0]


def _with_few_columns(A: Any) -> Iterator[tuple[Array, int]]:
    """Yield the rows of a CSR matrix that have entries only in its m most frequent columns, and m.

    This is done for growing m, whenever there are `TUNING.rows_per_column` times as many rows as columns.
    """
    (n, d), present = A.shape, A.data != 0
    order = np.argsort(-np.bincount(A.indices, present, d), kind="stable")
    rank = np.empty(d, np.int32)
    rank[order] = np.arange(d)
    filled = np.flatnonzero(np.diff(A.indptr))
    last = np.zeros(n, np.int64)
    last[filled] = np.maximum.reduceat(rank[A.indices] * present, A.indptr[filled]) if len(filled) else 0
    counts = np.cumsum(np.bincount(last, minlength=d))  # rows whose last column has at most this rank
    m = TUNING.min_columns  # data with fewer columns is left to finders whose witnesses have exact weights and few rows
    while m <= min(d, TUNING.max_few_columns):
        enough = np.flatnonzero(counts[m - 1 :] >= TUNING.rows_per_column * np.arange(m, d + 1))
        if not len(enough) or m + enough[0] > TUNING.max_few_columns:
            return
        m += int(enough[0])
        yield np.flatnonzero(last < m), m
        m *= 2


def _seconds_of_step(A: Any, count: int, pace: Pace) -> float:
    """Return the seconds of a Newton step in which so many rows of A become active: their second moments, and k equations."""
    m, k = A.shape
    if is_sparse(A):
        return float(SPARSE_GRAM * pace.entry * count * (A.nnz / m) ** 2 + SLOW_CELL * k * k + pace.system(k))
    return pace.products(k, k, count) / 2 + pace.system(k)


@np.errstate(all="ignore")
def _least_loss(A: Any, question: Question) -> tuple[Array | None, Array | None]:
    """Return w and p = (1 - Aw)₊ where the rows of p cancel; w alone where it separates; neither where neither is reached."""
    m, k = A.shape
    w, s = np.zeros(k), np.zeros(m)
    before, H, time = np.zeros(m, dtype=bool), np.zeros((k, k)), question.budget.time
    for _ in range(TUNING.max_steps):
        active = s < 1
        added, gone = active & ~before, before & ~active
        changed, count = int(np.count_nonzero(added | gone)), int(np.count_nonzero(active))
        if question.budget.spent or not time.affords(_seconds_of_step(A, min(changed, count), time.pace)):
            break
        if changed < count:
            H += _second_moments(A[added]) - _second_moments(A[gone])
        else:
            H = _second_moments(A[active])
        before, down = active, np.maximum(1 - s, 0.0) @ A
        try:
            step = np.linalg.solve(H + TUNING.ridge * np.trace(H) * np.eye(k), down)
        except np.linalg.LinAlgError:
            break
        ds, t, slope = A @ step, 1.0, float(down @ step)
        loss = _loss(s)
        for _ in range(TUNING.max_halvings):
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


def _second_moments(rows: Any) -> Array:
    return np.asarray(as_dense(rows.T @ rows))


def _loss(s: Array) -> float:
    return float(np.sum(np.square(np.maximum(1 - s, 0.0)))) / 2
