"""Finders of the sign: a w that may separate, or rows that may cancel.

Small data is given to an *interior-point method*, which finds the largest margin as well. For larger data *coordinate ascent*
visits rows one by one and finds a separator where there is one with some room. The *working set* solves the game exactly on few
rows, scaled: separability does not depend on the scale of rows nor, up to a change of w, on that of columns. If the value of the
game is 0, the rows that have weight are affinely independent and an exact solve gives the witness; otherwise its w is tried on
all rows, and those with the lowest scores are added. Few rows are decided by Gordan's alternative in rational arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gordan import rows as rows_
from gordan.arrays import MIN_SQUARE, Array, is_sparse, times_powers
from gordan.blas import scipy_linalg
from gordan.certificates import exact
from gordan.certificates.matrix import Products
from gordan.certificates.problem import Problem
from gordan.deadlines import BASIS, Deadline, Pace
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Asks, Proposal, Question
from gordan.memory import largest
from gordan.rows import Ascent, Offset, Rows, host
from gordan.solve.cancelling import MAX_EXACT_SIZE, MAX_PIVOTED_ROWS, by_row, cancelling, has_room
from gordan.solve.double_oracle import ASCENT
from gordan.solve.interior import answers
from gordan.solve.quick import quick_witness
from gordan.solve.restricted import TUNING as GAMES
from gordan.solve.restricted import Equilibrium, FeasibleSet, Gram, Restricted


@dataclass(frozen=True)
class Tuning:
    """Constants of the finders; `benchmarks/order.py` times what they decide, on real and on synthetic data."""

    # The interior-point method is asked up to this many rows, and this many multiplications per step, n·d·min(n, d): with more
    # rows the few that the working set begins with decide sooner.
    max_interior_rows: int = 2000
    max_interior_multiplications: int = 600_000
    # Rows per column of the sample that is searched for a witness before all rows are, if these are so many times as many.
    sampled_rows_per_column: int = 10
    samples_in_rows: int = 4
    # Epochs of coordinate ascent in all, and between two checks of the plane on all rows.
    max_epochs: int = 96
    epochs_per_check: int = 8
    # The first epochs reflect, which finds separators sooner; the later ones leave more of x on the rows that matter.
    reflected_epochs: int = 24
    # With more than `ASCENT.many_rows_per_column` few rows matter, and the working set finds them: two epochs are enough.
    epochs_for_many_rows: int = 2
    # Dense rows of which more than `kept_per_column` keep weight are likely to overlap if there are at least
    # `doubtful_rows_per_column`: further epochs would find nothing.
    kept_per_column: int = 2
    doubtful_rows_per_column: int = 4
    # The working set begins with at least this many rows; if there are no more, one game decides.
    first_working_set: int = 400
    # The working set may grow to this multiple of its first size: rows that have weight are hardly more than columns.
    max_growth: int = 3
    # Games whose value is 0 in floats although their rows do not cancel. After this many, exact arithmetic decides.
    max_failures: int = 50
    # Copies of the working set, as a dense array or not, that exist at a time.
    copies: int = 6
    # Sparse rows are copied to a dense array up to this many entries.
    max_dense_entries: int = 1 << 22
    # Columns up to which rows are transformed by a QR factorization, and the pivot, relative to the largest, below which a column
    # counts as dependent.
    max_qr_columns: int = 1500
    rank_tol: float = 1e-13
    # Rows of the set that exact arithmetic decides, at most.
    max_exact_rows: int = 2000
    # Scores up to this share of the terms that they are sums of may be negative in exact arithmetic.
    score_rounding: float = 1e-12


TUNING = Tuning()


def suits_interior_point(question: Question) -> bool:
    """Return whether the interior-point method decides soonest."""
    n, d = question.counted.X.n, question.counted.X.d
    return n <= TUNING.max_interior_rows and n * d * min(n, d) <= TUNING.max_interior_multiplications


def suits_exact_arithmetic(question: Question) -> bool:
    """Return whether exact arithmetic decides all rows at once."""
    n, k = question.counted.X.n, question.counted.X.d + 1
    return n <= MAX_PIVOTED_ROWS and n * k * k <= MAX_EXACT_SIZE


def by_contradiction(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose two equal points with different labels, or a row of zeros, as a witness."""
    witness = quick_witness(question.counted, question.margin.intercept, question.budget.time)
    if witness is not None:
        yield Proposal(witness=witness)


# ---- the interior-point method ------------------------------------------------------------------------------------------


def by_interior_point(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose rows of a sample that cancel; then the plane of the largest margin, or rows that cancel, of all rows."""
    return _interior(question, planes=True)


def by_interior_witness(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose rows of a sample that cancel, and such rows of all rows; other finders of the width have better planes."""
    return _interior(question, planes=False)


def _interior(question: Question, planes: bool) -> Iterator[Proposal]:
    """Propose what the interior-point method finds: where classes overlap, so does most likely a sample of them."""
    n, some = question.counted.X.n, TUNING.sampled_rows_per_column * (question.counted.X.d + 1)
    if TUNING.samples_in_rows * some <= n:
        yield from _interior_of(question, np.sort(np.random.default_rng(1).choice(n, some, replace=False)), planes=False)
    yield from _interior_of(question, np.arange(n), planes)


def _interior_of(question: Question, rows: Array, planes: bool) -> Iterator[Proposal]:
    problem, intercept, unit = question.counted, question.margin.intercept, question.unit_rows
    X = Rows(problem.storage, np.ones(problem.X.n, np.int8), scale=1 / unit.R).take(rows).dense()
    for w, b, weights in answers(X, problem.signs[rows], intercept.constant(unit.R), intercept.grouped, planes):
        p = np.zeros(problem.X.n)
        p[rows] = weights
        support = np.flatnonzero(p) if w is None else None
        if support is not None:
            yield from cancelling(question, support, p[support])
        yield Proposal(w, b * unit.R, p, suspects=support)


# ---- coordinate ascent --------------------------------------------------------------------------------------------------


def by_ascent(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose planes found by epochs of coordinate ascent on max Σx - ½‖Aᵀx‖² (see `rows.Ascent`).

    A plane is proposed when every row visited in the last epoch had a positive score, and after the last epoch if it may separate
    the rows, with the x where other finders begin.
    """
    ascent, rows = ascent_of(question, question.counted)
    many, failed = rows.n > ASCENT.many_rows_per_column * ascent.rows.d, False
    epochs = TUNING.epochs_for_many_rows if many else TUNING.max_epochs
    doubtful = not rows.sparse and rows.n >= TUNING.doubtful_rows_per_column * ascent.rows.d
    for done in range(0, epochs, TUNING.epochs_per_check):
        if done and question.budget.spent:
            return
        ascent.unshrink()
        stats = ascent.run_epochs(
            min(epochs, TUNING.epochs_per_check),
            seed=question.budget.seed + done,
            until_separated=True,
            reflect=done < TUNING.reflected_epochs,
        )
        w, x = ascent.w[: rows.d], ascent.x
        last = done + TUNING.epochs_per_check >= epochs or (stats.lowest <= 0 and doubtful and are_many(x, rows.d))
        if not last and stats.lowest <= 0:
            continue
        # w has changed since the first rows of the epoch were visited. After one refusal, or a row on the wrong side, a pass over
        # all rows comes first, since it costs less than the several passes of a check.
        apart = (stats.lowest > 0 and not failed) or _may_separate(rows, w, evidence)
        if last or apart:
            failed = True
            v, b = rows.plane(w)
            yield Proposal(v if apart else None, b, x / max(float(x.sum()), 1e-300))
        if last:
            return


def _may_separate(rows: Rows, w: Array, evidence: Evidence) -> bool:
    """Return whether w may separate rows of norm about 1 for some b, up to rounding; hint at the share on its wrong side."""
    scores = rows.scores(w)
    evidence.hints.broken = min(evidence.hints.broken, float(np.mean(scores < 0)))
    groups = (scores[rows.signs > 0], scores[rows.signs < 0]) if rows.constant else (scores,)
    return sum(float(np.min(own, initial=math.inf)) for own in groups) > -TUNING.score_rounding * float(np.linalg.norm(w))


def are_many(x: Array, columns: int) -> bool:
    """Return whether more rows keep weight x than rows that are separable do, which is hardly more than one per column."""
    return int(np.count_nonzero(x)) > TUNING.kept_per_column * columns


def ascent_of(question: Question, problem: Problem) -> tuple[Ascent, Rows]:
    """Return an ascent over the rows of the problem, which may be some of those of the question, and the rows that its w scores.

    The constant column is in proportion to the size of the rows, not 1: then b moves as easily as w, and x·w + b is the same.
    """
    scale, exists = question.unit_rows.A.scale, question.margin.intercept.exists
    bare, squares = Rows(problem.storage, problem.signs, scale=scale), np.square(scale * problem.X.norms)
    column = 0.2 * math.sqrt(float(np.mean(squares))) if exists else 0.0
    start, offset = (np.zeros(problem.X.n), np.zeros(problem.X.d + 1)), Offset(bare.signs, column)
    ascent = Ascent(bare, squares, *start, intercept=offset, deadline=question.budget.deadline)
    return ascent, replace(bare, constant=column / scale)


# ---- the working set ----------------------------------------------------------------------------------------------------


def by_working_set(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose planes, or rows that cancel, from games on a working set, which begins with the rows of weight in the best p."""
    yield from working_set(question, None if evidence.p is None else host(evidence.p)[question.kept])


def working_set(question: Question, x: Array | None) -> Iterator[Proposal]:
    """Solve games on a growing set of rows, which begins with those of most weight x, or with a sample.

    Each round costs the Gram matrix of the working set, the game on it, and a pass.
    """
    budget, unit = question.budget, question.unit_rows
    A, n, k = unit.A, unit.A.n, unit.A.d
    norms = np.sqrt(np.maximum(unit.squares, 1e-300))
    first = max(TUNING.first_working_set, 2 * k)
    limit = largest(min(GAMES.max_working_set, TUNING.max_growth * first), lambda m: _working_set_bytes(A, min(m, n)))
    limit = budget.time.largest(min(limit, n), lambda m: _working_set_seconds(A, m, budget.time.pace))
    if limit < min(n, k):
        return  # so few rows are separable, whatever the others are
    most = min(first, 2000, limit)
    inside = _first_working_set(None if x is None else x * norms, n, k, most, limit, budget.seed)
    p = np.zeros(len(inside)) if x is None or n > ASCENT.many_rows_per_column * k else x[inside] * norms[inside]
    rounds = 10_000 if question.asks is not Asks.SIGN or budget.max_iter is None else budget.max_iter
    failures = 0
    for _ in range(rounds):
        if budget.spent or not budget.time.affords(_working_set_seconds(A, len(inside), budget.time.pace)):
            return
        taken, to_weights, to_plane = reshaped(A.take(inside))
        answer, hull_meets_zero = _solved(taken, p, budget.time)
        weights = np.zeros(n)
        weights[inside] = to_weights(answer.p)
        if hull_meets_zero:
            support = inside[answer.p > 0]
            yield from cancelling(question, support, weights[support])
            yield Proposal(p=weights, suspects=support)
            failures += 1
            if failures == TUNING.max_failures:
                return
        w = to_plane(taken.combine(answer.p))
        scores = A.scores(w) / norms
        yield Proposal(*A.plane(w), weights, suspects=inside[answer.p > 0])
        wrong = np.setdiff1d(np.flatnonzero(scores <= 0), inside)
        if not len(wrong):
            return
        wrong = wrong[np.argsort(scores[wrong], kind="stable")]
        grown = _grown(inside, answer.p, wrong, most, limit)
        if grown is None:
            return
        inside, p = grown


def _solved(taken: Rows, p: Array, deadline: Deadline) -> tuple[Equilibrium, bool]:
    """Solve the game on these rows, from p if it has weight; return also whether their hull contains 0.

    If it does, the rows that have weight are independent.
    """
    m = len(p)
    gram = taken.gram(np.arange(m))
    game = Restricted(
        rows=Gram(gram),
        allowed=FeasibleSet(np.zeros(m, np.int64), np.ones(1), np.full(m, np.inf)),
        linear=np.zeros(m),
        constant=0.0,
        rank=taken.d,
        deadline=deadline,
    )
    answer = game.solve(p if p.any() else np.full(m, 1 / m), 1e-9)
    meets = float(np.max(np.abs(answer.scores))) <= GAMES.zero_scores
    if meets:
        used = np.flatnonzero(answer.p)
        # block pivoting may leave dependent rows, which Wolfe's method does not
        few = len(used) <= taken.d + 1
        if few and not deadline.affords(BASIS * deadline.pace.multiplication * len(used) ** 3):
            return answer, meets
        if not few or np.linalg.matrix_rank(gram[np.ix_(used, used)] + 1.0, hermitian=True) < len(used):
            answer = game.descend(answer.p, 1e-9)
    return answer, meets


def _grown(inside: Array, p: Array, wrong: Array, most: int, limit: int) -> tuple[Array, Array] | None:
    """Return the working set with the first of the rows on the wrong side, and its weights; None if there is no room for them.

    Rows without weight are dropped where there would be more than `most`.
    """
    wrong = wrong[: max(100, int(np.count_nonzero(p)))]
    full = len(inside) + len(wrong) > most
    keep = p > 0 if full else np.ones(len(p), dtype=bool)
    if full and np.count_nonzero(keep) >= limit:
        return None
    return np.concatenate((inside[keep], wrong))[:limit], np.concatenate((p[keep], np.zeros(len(wrong))))[:limit]


def _first_working_set(x: Array | None, n: int, k: int, most: int, limit: int, seed: int) -> Array:
    """Return the rows of most weight x; or, where rows are many or x is not known, a sample."""
    if x is not None and n <= ASCENT.many_rows_per_column * k:
        count = min(n, limit) if n <= TUNING.first_working_set else min(most, int(np.count_nonzero(x)))
        return np.sort(np.argsort(-x, kind="stable")[:count])
    # a larger sample does not pay where rows are about as many as columns, since nearly all of them would be in it
    count = max(TUNING.first_working_set, 4 * k) if n > ASCENT.many_rows_per_column * k else most
    return np.sort(np.random.default_rng(seed).choice(n, min(n, count, limit), replace=False))


def _working_set_bytes(A: Rows, m: int) -> float:
    """Return the bytes of the Gram matrix of m rows and of the rows, of which `reshaped` may make a dense array."""
    stored, spread = 2 * m * A.entries / A.n, m * A.d  # a stored entry has a column number as well
    cells = spread if not A.sparse or spread <= TUNING.max_dense_entries else stored
    return 8.0 * (GAMES.grams * m * m + TUNING.copies * cells)


def _working_set_seconds(A: Rows, m: int, pace: Pace) -> float:
    """Return the seconds that `reshaped` and the Gram matrix take for m rows."""
    if A.sparse and m * A.d > TUNING.max_dense_entries:
        return pace.gram(A, m, m)
    return pace.products(m, m, min(m, A.d)) + (pace.basis(m, A.d) if A.d <= min(m, TUNING.max_qr_columns) else 0.0)


def reshaped(taken: Rows) -> tuple[Rows, Callable[[Array], Array], Callable[[Array], Array]]:
    """Return the rows in well-conditioned coordinates, and the maps of p and of w back to the rows as they were.

    Rows and columns are scaled by powers of two. With more rows than columns, the columns are replaced by an orthonormal basis of
    their span (QR), in which badly scaled or nearly dependent columns do no harm. Except for rounding, this makes no separator
    and loses none. Both maps are up to a positive factor.
    """
    A: Any = taken.csr() if taken.sparse and taken.n * taken.d > TUNING.max_dense_entries else taken.dense()
    columns = _to_one(largest_entries(A, 0))
    for scale in columns:
        A = _scaled(A, scale) if is_sparse(A) else A * scale
    squares = np.asarray((A * A).sum(axis=1)).ravel()
    rows = _to_one(np.where(squares > MIN_SQUARE, np.sqrt(squares), largest_entries(A, 1)))
    for scale in rows:
        A = _scaled(A.T, scale).T if is_sparse(A) else A * scale[:, None]
    if is_sparse(A) or taken.d > min(taken.n, TUNING.max_qr_columns):
        return rows_.of(A, threads=taken.threads), partial(_times, scales=rows), partial(_times, scales=columns)
    linalg = scipy_linalg()
    # without pivoting first, which is several times as fast for many rows; then with pivoting on the square factor
    Q, T = np.linalg.qr(A)
    turn, T, order = linalg.qr(T, pivoting=True, check_finite=False, overwrite_a=True)
    Q = Q @ turn
    size = np.abs(np.diag(T))
    rank = max(1, int(np.count_nonzero(size > TUNING.rank_tol * size[0])))
    norms = np.sqrt(np.maximum(np.einsum("ij,ij->i", Q[:, :rank], Q[:, :rank]), 1e-300))

    def to_plane(w: Array) -> Array:
        full = np.zeros(taken.d)
        full[order[:rank]] = linalg.solve_triangular(T[:rank, :rank], w, check_finite=False)
        return _times(full, columns)

    def to_weights(p: Array) -> Array:
        return _times(p / norms, rows)

    return rows_.of(Q[:, :rank] / norms[:, None], threads=taken.threads), to_weights, to_plane


def largest_entries(A: Any, axis: int) -> Array:
    """Return the largest absolute value of each column (axis 0) or row (axis 1), dense or sparse."""
    top = abs(A).max(axis=axis)
    return np.asarray(top.todense() if is_sparse(A) else top).ravel()


def _scaled(A: Any, scale: Array) -> Any:
    """Return a sparse matrix with its columns times these scales."""
    from scipy.sparse import diags_array

    return A @ diags_array(scale)


def _to_one(sizes: Array) -> list[Array]:
    """Return the powers of two that bring these sizes to between ½ and 1 (1 for 0): as two factors where one would overflow."""
    exponents = -np.where(sizes > 0, np.frexp(sizes)[1], 0)
    if np.max(np.abs(exponents), initial=0) <= 1000:
        return [np.ldexp(1.0, exponents)]
    return [np.ldexp(1.0, exponents // 2), np.ldexp(1.0, exponents - exponents // 2)]


def _times(v: Array, scales: list[Array]) -> Array:
    """Return v times these scales; between two factors also times one power of two, so that nothing overflows."""
    for scale in scales[:-1]:
        v = times_powers(v * scale, np.zeros(len(v), np.int64))
    return v * scales[-1]


# ---- exact arithmetic ---------------------------------------------------------------------------------------------------


def by_exact_arithmetic(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Decide Gordan's alternative exactly on a growing set of rows: the last resort.

    The set begins with all rows where they are few, otherwise with those that another finder suspects to cancel. A witness ends
    the search. A separator of the set is proposed for all rows, and the rows on its wrong side are added. The search also ends
    when the set outgrows `TUNING.max_exact_rows` or memory, or the time or the work that it may take is spent.
    """
    from gordan.solve.rounding import Allowance  # here: it brings python-flint, which takes 50 ms to import

    problem, intercept, budget = question.counted, question.margin.intercept, question.budget
    k, count = intercept.columns(problem.X.d), max(2, problem.X.d)
    suspects = np.arange(problem.X.n) if suits_exact_arithmetic(question) else evidence.hints.suspects
    chosen = [] if suspects is None else [int(i) for i in suspects]
    if not chosen and not budget.spent:
        chosen = _lowest_rows(problem, *intercept.plane_of(np.zeros(k)), chosen, count)
    # all rows of small data are decided, however long that takes
    allowance = Allowance(budget.time, math.inf) if suits_exact_arithmetic(question) else Allowance(budget.time)
    while 0 < len(chosen) <= TUNING.max_exact_rows and has_room(len(chosen), k) and not budget.spent:
        wrong: list[int] = []
        for found in _decided_exactly(problem, chosen, intercept, allowance):
            if isinstance(found, dict):
                yield Proposal(witness=found)
                return
            w, b = intercept.plane_of(found)
            yield Proposal(w, float(b))
            wrong = _lowest_rows(problem, w, b, chosen, count)
            if wrong or budget.spent:
                break
        if not wrong:
            return
        chosen.extend(wrong)


def _decided_exactly(problem: Problem, chosen: list[int], intercept: Intercept, allowance: Any) -> Iterator[Any]:
    """Yield integer weights by row with which some of these rows cancel; or float vectors that separate them."""
    from flint import fmpq

    from gordan.solve.alternative import CancellingWeights, balance_of_support, reading_seconds
    from gordan.solve.rounding import float_separators

    deadline = allowance.deadline
    if not deadline.affords(reading_seconds(problem, chosen, intercept, deadline)):
        return
    rows, exponents = exact.integer_rows(problem, chosen, intercept)
    M = [[fmpq(x) for x in row] for row in rows]
    small = len(M) <= MAX_PIVOTED_ROWS or len(M) * len(M[0]) ** 2 <= MAX_EXACT_SIZE
    answer = balance_of_support(rows, deadline) or (allowance.alternative(M) if small else None)
    if isinstance(answer, CancellingWeights):
        yield by_row(answer.weights, chosen, exponents)
    elif answer is not None:
        yield from float_separators(M, allowance)


def _lowest_rows(problem: Problem, w: Array, b: float, chosen: list[int], count: int) -> list[int]:
    """Return the rows outside the set that are not clearly on the right side: those of lowest score, relative to their size."""
    scores = problem.signs * (host(Products.of(problem.X, w, in_place=True).sums) + b)
    absolute = problem.X.absolute(w, np.arange(problem.X.n)) + abs(b)
    relative = np.nan_to_num(scores / np.where(absolute > 0, absolute, 1.0), nan=-1.0)
    outside = np.setdiff1d(np.flatnonzero(relative <= TUNING.score_rounding), chosen)
    lowest: list[int] = outside[np.argsort(relative[outside], kind="stable")[:count]].tolist()
    return lowest
