"""Proposals for a verdict: a w that may separate, or rows that may cancel. Nothing here is believed; the checker decides.

Small data is decided by an *interior-point method*, which finds the largest margin as well. Otherwise there are two routes.
*Coordinate ascent* visits rows one by one and finds a separator where there is one with some room. The *working set* solves the
game exactly on few rows, scaled (separators do not see the scale of rows, nor, up to a change of w, that of columns): if its
value is 0, the rows that carry weight are affinely independent and an exact solve gives the witness; else its w is tried on all
rows and the lowest come in. For few rows Gordan's alternative is decided in rational arithmetic.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gordan import rows as rows_
from gordan.arrays import LEAST_SQUARE, Array, is_sparse, times_powers
from gordan.blas import scipy_linalg
from gordan.certificates import exact
from gordan.certificates.matrix import Products
from gordan.certificates.problem import Problem
from gordan.deadlines import Deadline, Pace
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Asks, Proposal, Question
from gordan.memory import largest
from gordan.rows import Ascent, Offset, Rows
from gordan.solve.cancelling import MOST_PIVOTED, by_row, cancelling, has_room
from gordan.solve.interior import answers
from gordan.solve.quick import quick_witness
from gordan.solve.restricted import GRAMS, MAX_WORKING_SET, ZERO, Equilibrium, FeasibleSet, Gram, Restricted

# Epochs of coordinate ascent in all, those of them that reflect, and those between two looks at all rows.
EPOCHS, REFLECTED, EPOCHS_A_LOOK = 96, 24, 8
# With more rows for each column than this only so many epochs: few rows matter, and the working set finds them.
MANY_A_COLUMN, EPOCHS_OF_MANY = 10, 2
# Rows of a working set at most, as a multiple of those it begins with: those of weight are hardly more than columns. And those up
# to which all rows come into it at once, so that one game decides.
SETS_IN_HAND, ALL_AT_ONCE = 3, 400
# Games of value 0, as far as floats can tell, whose rows do not cancel: after so many it is left to exact arithmetic.
MOST_FAILURES = 50
# So many copies of the rows in hand, spread out or not, are in use at a time.
COPIES = 6
# Sparse rows in hand are spread out to dense ones up to so many entries.
MOST_DENSE = 1 << 22
# Columns up to which they are made orthonormal, and the share of the largest below which one counts as dependent.
MOST_COLUMNS, DEPENDENT = 1500, 1e-13
# Problems with at most this many entries (d squared) are decided exactly if ascent does not separate them; other ones start
# from what floats suggest, and are given up beyond so many rows.
SMALL, MOST_EXACT = 20_000, 2000
# The interior-point method is for so many rows and multiplications a step (n d times the smaller of the two) at most: with more
# rows the few that the working set begins with decide sooner.
MOST_ROWS, MOST_INTERIOR = 2000, 600_000
# Of these rows so many times the columns are asked for a witness first.
SAMPLED = 10


def suits_interior_point(question: Question) -> bool:
    """Whether the interior-point method decides soonest."""
    n, d = question.counted.X.n, question.counted.X.d
    return n <= MOST_ROWS and n * d * min(n, d) <= MOST_INTERIOR


def suits_exact_arithmetic(question: Question) -> bool:
    """Whether exact arithmetic decides all rows at once."""
    n, k = question.counted.X.n, question.counted.X.d + 1
    return n <= MOST_PIVOTED and n * k * k <= SMALL


def by_contradiction(question: Question, evidence: Evidence, doubt: Any) -> Iterator[Proposal]:
    """Equal points with different labels, or a row of zeros."""
    witness = quick_witness(question.counted, question.margin.intercept, question.budget.time)
    if witness is not None:
        yield Proposal(witness=witness)


def by_interior_point(question: Question, evidence: Evidence, doubt: Any) -> Iterator[Proposal]:
    """What `interior` has to say about the rows, which are brought here and spread out."""
    return _interior(question, np.arange(question.counted.X.n))


def by_interior_witness(question: Question, evidence: Evidence, doubt: Any) -> Iterator[Proposal]:
    """The same, if it says that no plane separates; of planes others have better ones, with weights to the last digit. Where
    classes overlap so do some of the rows, most likely, and these are asked first."""
    n, some = question.counted.X.n, SAMPLED * (question.counted.X.d + 1)
    samples = [np.sort(np.random.default_rng(1).choice(n, some, replace=False))] if 2 * some <= n else []
    with contextlib.suppress(InputError):  # it is asked for the width, of which others will say what is wrong
        for rows in (*samples, np.arange(n)):
            yield from (proposal for proposal in _interior(question, rows) if proposal.w is None)


def _interior(question: Question, rows: Array) -> Iterator[Proposal]:
    problem, intercept, unit = question.counted, question.margin.intercept, question.unit_rows
    X = Rows(problem.storage, np.ones(problem.X.n, np.int8), scale=1 / unit.R).take(rows).dense()
    constant = 0.0 if not intercept.exists else 1 / unit.R if intercept.in_norm else 1.0
    for w, b, weights in answers(X, problem.signs[rows], constant, intercept.grouped):
        p = np.zeros(problem.X.n)
        p[rows] = weights
        support = np.flatnonzero(p) if w is None else None
        if support is not None:
            yield from cancelling(question, support, p[support])
        yield Proposal(w, b * unit.R, p, suspects=support)


def by_ascent(question: Question, evidence: Evidence, doubt: Any) -> Iterator[Proposal]:
    """Epochs of coordinate ascent on max Σx - ½‖Aᵀx‖² (see `rows.Ascent`) until every row met is on the right side.

    The first ones reflect, which finds separators sooner; where there is none, the others leave x nearer to the rows that matter.
    """
    unit, problem, exists = question.unit_rows, question.counted, question.margin.intercept.exists
    bare, x = Rows(problem.storage, problem.signs, scale=unit.A.scale), np.zeros(problem.X.n)
    squares = np.maximum(unit.squares - (bare.scale * bare.scale if exists else 0.0), 0.0)
    # a constant column that goes with the size of the rows, not 1: x·w + b does not care, and b moves as easily as w
    column = 0.2 * math.sqrt(float(np.mean(squares))) if exists else 0.0
    rows = replace(bare, constant=column / bare.scale)
    going = Ascent(
        bare, squares, x, np.zeros(problem.X.d + 1), intercept=Offset(bare.signs, column), deadline=question.budget.deadline
    )
    epochs, failed = EPOCHS if bare.n <= MANY_A_COLUMN * bare.d else EPOCHS_OF_MANY, False
    for done in range(0, epochs, EPOCHS_A_LOOK):
        if done and question.budget.spent:
            return
        going.unshrink()
        seed = question.budget.seed + done
        met = going.run_epochs(min(epochs, EPOCHS_A_LOOK), seed=seed, until_separated=True, reflect=done < REFLECTED)
        w, last = going.w[: rows.d], done + EPOCHS_A_LOOK >= epochs
        # w has moved since rows were met: after a first failure one more pass tells whether it is worth the several of a check
        if last or (met.lowest > 0 and (not failed or float(np.min(rows.scores(w))) > 0)):
            failed = True
            yield Proposal(*rows.plane(w), x / max(float(x.sum()), 1e-300))


def by_working_set(question: Question, evidence: Evidence, doubt: Any) -> Iterator[Proposal]:
    """Restricted games on a growing set of rows, which begins with the rows of weight in the best p so far."""
    yield from working_set(question, None if evidence.p is None else evidence.p[question.kept])


def working_set(question: Question, x: Array | None) -> Iterator[Proposal]:
    """The same, from weights x over the rows, if there are any."""
    budget, unit = question.budget, question.unit_rows
    A, n, k = unit.A, unit.A.n, unit.A.d
    norms = np.sqrt(np.maximum(unit.squares, 1e-300))
    hand = largest(min(MAX_WORKING_SET, SETS_IN_HAND * max(400, 2 * k)), lambda m: _bytes_in_hand(A, min(m, n)))
    hand = budget.time.largest(min(hand, n), lambda m: _seconds_in_hand(A, m, budget.time.pace))
    if hand < min(n, k):
        return  # so few rows are separable whatever the others are
    most = min(max(400, 2 * k), 2000, hand)
    inside = _first_in_hand(None if x is None else x * norms, n, k, most, hand, budget.seed)
    p = np.zeros(len(inside)) if x is None or n > MANY_A_COLUMN * k else x[inside] * norms[inside]
    rounds = 10_000 if question.asks is not Asks.SIGN or budget.max_iter is None else budget.max_iter
    failures = 0
    for _ in range(rounds):
        if budget.spent or not budget.time.affords(_seconds_in_hand(A, len(inside), budget.time.pace)):
            return
        taken, over_rows, back = reshaped(A.take(inside))
        answer, meets = _played_out(taken, p, budget.time)
        weights = np.zeros(n)
        weights[inside] = over_rows(answer.p)
        if meets:
            support = inside[answer.p > 0]
            yield from cancelling(question, support, weights[support])
            yield Proposal(p=weights, suspects=support)
            failures += 1
            if failures == MOST_FAILURES:
                return
        v = back(taken.combine(answer.p))
        scores = A.scores(v) / norms
        yield Proposal(*A.plane(v), weights, suspects=inside[answer.p > 0])
        broken = np.setdiff1d(np.flatnonzero(scores <= 0), inside)
        if not len(broken):
            return
        broken = broken[np.argsort(scores[broken], kind="stable")]
        refilled = _refilled(inside, answer.p, broken, most, hand)
        if refilled is None:
            return
        inside, p = refilled


def _played_out(taken: Rows, p: Array, deadline: Deadline) -> tuple[Equilibrium, bool]:
    """The game on these rows, from p if it has weight; and whether their hull meets 0, on independent rows then."""
    m = len(p)
    game = Restricted(
        rows=Gram(taken.gram(np.arange(m))),
        allowed=FeasibleSet(np.zeros(m, np.int64), np.ones(1), np.full(m, np.inf)),
        pull=np.zeros(m),
        rest=0.0,
        rank=taken.d,
        deadline=deadline,
    )
    answer = game.solve(p if p.any() else np.full(m, 1 / m), 1e-9)
    meets = float(np.max(np.abs(answer.scores))) <= ZERO
    if meets and not _independent(answer.p, game):
        answer = game.descend(answer.p, 1e-9)
    return answer, meets


def _refilled(inside: Array, p: Array, broken: Array, most: int, hand: int) -> tuple[Array, Array] | None:
    """The rows in hand with the first of those that are broken, and weights; rows without weight go where more than `most` would
    be in hand. None where there is no room for others."""
    broken = broken[: max(100, int(np.count_nonzero(p)))]
    keep = np.ones(len(p), dtype=bool) if len(inside) + len(broken) <= most else p > 0
    if len(inside) + len(broken) > most and np.count_nonzero(keep) >= hand:
        return None
    return np.concatenate((inside[keep], broken))[:hand], np.concatenate((p[keep], np.zeros(len(broken))))[:hand]


def _first_in_hand(x: Array | None, n: int, k: int, most: int, hand: int, seed: int) -> Array:
    """The rows that a working set begins with: those of most weight x, or a sample of so many that any of them will do."""
    if x is not None and n <= MANY_A_COLUMN * k:
        count = min(n, hand) if n <= ALL_AT_ONCE else min(most, int(np.count_nonzero(x)))
        return np.sort(np.argsort(-x, kind="stable")[:count])
    # of rows about as many as columns, or fewer, nearly all would come in
    count = max(400, 4 * k) if n > MANY_A_COLUMN * k else most
    return np.sort(np.random.default_rng(seed).choice(n, min(n, count, hand), replace=False))


def _bytes_in_hand(A: Rows, m: int) -> float:
    """What m rows of A in hand take: their Gram matrix, and the rows, which `reshaped` may spread out."""
    stored, spread = 2 * m * A.entries / A.n, m * A.d  # an entry and its column, or a cell
    cells = spread if not A.sparse or spread <= MOST_DENSE else stored
    return 8.0 * (GRAMS * m * m + COPIES * cells)


def _seconds_in_hand(A: Rows, m: int, pace: Pace) -> float:
    """What it takes to make m rows of A well-conditioned, and their Gram matrix."""
    if A.sparse and m * A.d > MOST_DENSE:
        return pace.gram(A, m, m)
    return pace.products(m, m, min(m, A.d)) + (pace.basis(m, A.d) if A.d <= min(m, MOST_COLUMNS) else 0.0)


def _independent(p: Array, game: Restricted) -> bool:
    """Whether the rows of weight are no more than their rank allows (block pivoting may leave dependent ones)."""
    count = int(np.count_nonzero(p))
    used = np.flatnonzero(p)
    assert isinstance(game.rows, Gram)
    return bool(count <= game.rank + 1 and np.linalg.matrix_rank(game.rows.K[np.ix_(used, used)] + 1.0, hermitian=True) == count)


def reshaped(taken: Rows) -> tuple[Rows, Callable[[Array], Array], Callable[[Array], Array]]:
    """The rows in coordinates in which the game is well-conditioned, and the ways back for p and for w, up to their lengths.

    Rows and columns are scaled by powers of two; with more rows than columns these become an orthonormal basis of their span
    (QR), in which columns of different size or nearly dependent ones do no harm. No separator is lost or made, but by rounding.
    """
    A: Any = taken.csr() if taken.sparse and taken.n * taken.d > MOST_DENSE else taken.dense()
    top = abs(A).max(axis=0)
    columns = _to_one(np.asarray(top.todense() if is_sparse(A) else top).ravel())
    for scale in columns:
        A = _scaled(A, scale) if is_sparse(A) else A * scale
    squares = np.asarray((A * A).sum(axis=1)).ravel()
    top = abs(A).max(axis=1)
    top = np.asarray(top.todense() if is_sparse(A) else top).ravel()
    rows = _to_one(np.where(squares > LEAST_SQUARE, np.sqrt(squares), top))
    for scale in rows:
        A = _scaled(A.T, scale).T if is_sparse(A) else A * scale[:, None]
    if is_sparse(A) or taken.d > min(taken.n, MOST_COLUMNS):
        return rows_.of(A, threads=taken.threads), partial(_times, scales=rows), partial(_times, scales=columns)
    linalg = scipy_linalg()
    # without pivoting first, which is several times quicker on many rows; then with it on what is square
    Q, T = np.linalg.qr(A)
    turn, T, order = linalg.qr(T, pivoting=True, check_finite=False, overwrite_a=True)
    Q = Q @ turn
    size = np.abs(np.diag(T))
    rank = max(1, int(np.count_nonzero(size > DEPENDENT * size[0])))
    norms = np.sqrt(np.maximum(np.einsum("ij,ij->i", Q[:, :rank], Q[:, :rank]), 1e-300))

    def back(w: Array) -> Array:
        full = np.zeros(taken.d)
        full[order[:rank]] = linalg.solve_triangular(T[:rank, :rank], w, check_finite=False)
        return _times(full, columns)

    def over_rows(p: Array) -> Array:
        return _times(p / norms, rows)

    return rows_.of(Q[:, :rank] / norms[:, None], threads=taken.threads), over_rows, back


def _scaled(A: Any, scale: Array) -> Any:
    """The columns of a sparse matrix times these scales."""
    from scipy.sparse import diags_array

    return A @ diags_array(scale)


def _to_one(sizes: Array) -> list[Array]:
    """The powers of two that bring these sizes to between ½ and 1 (1 for 0): as two factors where one would overflow."""
    exponents = -np.where(sizes > 0, np.frexp(sizes)[1], 0)
    if np.max(np.abs(exponents), initial=0) <= 1000:
        return [np.ldexp(1.0, exponents)]
    return [np.ldexp(1.0, exponents // 2), np.ldexp(1.0, exponents - exponents // 2)]


def _times(v: Array, scales: list[Array]) -> Array:
    """v times these scales; between two factors also times one power of two, so that nothing overflows."""
    for scale in scales[:-1]:
        v = times_powers(v * scale, np.zeros(len(v), np.int64))
    return v * scales[-1]


# ---- in exact arithmetic --------------------------------------------------------------------------------------------


def by_exact_arithmetic(question: Question, evidence: Evidence, doubt: Any) -> Iterator[Proposal]:
    """Gordan's alternative decided exactly on a growing set of rows: the last resort.

    It begins with all rows where they are few, else with those that may cancel. A witness ends it; a separator of the set is
    proposed for all rows, and the rows it fails come into the set. It ends, too, when that outgrows MOST_EXACT or the memory, or
    when the time or the work that it may take is spent.
    """
    from gordan.solve.rounding import Allowance  # here: it brings python-flint, which takes 50 ms to import

    problem, intercept = question.counted, question.margin.intercept
    suspects = np.arange(problem.X.n) if suits_exact_arithmetic(question) else evidence.hints.suspects
    chosen = [] if suspects is None else [int(i) for i in suspects]
    k, allowance = intercept.columns(problem.X.d), Allowance(question.budget.time)
    while len(chosen) <= MOST_EXACT and has_room(len(chosen), k) and not question.budget.spent:
        failed = np.empty(0, np.intp)
        if not chosen:
            failed = _lowest_rows(problem, *intercept.plane_of(np.zeros(k)), chosen, max(2, problem.X.d))
        for found in _decided_exactly(problem, chosen, intercept, allowance) if chosen else ():
            if isinstance(found, dict):
                yield Proposal(witness=found)
                return
            yield _plane(found, intercept)
            failed = _lowest_rows(problem, *intercept.plane_of(found), chosen, max(2, problem.X.d))
            if len(failed) or question.budget.spent:
                break
        if not len(failed):
            return
        chosen.extend(int(i) for i in failed)


def _decided_exactly(problem: Problem, chosen: list[int], intercept: Intercept, allowance: Any) -> Iterator[Any]:
    """Integer weights by row with which some of these rows cancel; or float vectors that separate them, the shortest first."""
    from flint import fmpq

    from gordan.solve.alternative import Balance, balance_of_support, reading_seconds
    from gordan.solve.rounding import float_separators

    deadline = allowance.deadline
    if not deadline.affords(reading_seconds(problem, chosen, intercept, deadline)):
        return
    rows, exponents = exact.integer_rows(problem, chosen, intercept)
    M = [[fmpq(x) for x in row] for row in rows]
    small = len(M) <= MOST_PIVOTED or len(M) * len(M[0]) ** 2 <= SMALL
    answer = balance_of_support(rows, deadline) or (allowance.alternative(M) if small else None)
    if isinstance(answer, Balance):
        yield by_row(answer.weights, chosen, exponents)
    elif answer is not None:
        yield from float_separators(M, allowance)


def _plane(w: Array, intercept: Intercept) -> Proposal:
    """The plane of a vector with one entry for each column of A."""
    body, b = intercept.plane_of(w)
    return Proposal(body, float(b))


def _lowest_rows(problem: Problem, w: Array, b: float, chosen: list[int], count: int) -> Array:
    """The rows outside the set with the lowest scores, relative to their size, that are not clearly positive."""
    lo = problem.signs * (Products.of(problem.X, w).sums + b)
    absolute = problem.X.absolute(w, np.arange(problem.X.n)) + abs(b)
    relative = np.nan_to_num(lo / np.where(absolute > 0, absolute, 1.0), nan=-1.0)
    outside = np.setdiff1d(np.flatnonzero(relative <= 1e-12), chosen)
    return outside[np.argsort(relative[outside], kind="stable")[:count]]
