"""Planes and weights for many label vectors of the same few rows, found together and offered to `TableEvidence`.

Label vectors are signs of the rows B (n × c, of length 1, see `interior.Coordinates`), so that norms, coordinates and products
B_i B_iᵀ are the same for all of them, and a step is a few operations on stacks of matrices.

    sign   min ½Σ(1 - B_i·z)₊² by Newton's method, as in `overlapping`: where it ends with positive weights, their rows cancel;
           where every row is on its side, z separates.
    width  min ½‖w‖² over A w ≥ 1, from such a z, by the interior-point method of `interior`.
    loss   min ½‖w‖² + C Σ loss by Newton's method.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.blas import blas_threads, ensure_blas_memory, scipy_linalg
from gordan.certificates.optima import Objectives
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept
from gordan.ledger.question import Budget
from gordan.ledger.table import TableEvidence
from gordan.losses import Loss
from gordan.memory import fits
from gordan.rows import MIN_RADIUS, Rows, available, in_threads
from gordan.solve import block_ascent, block_newton, overlapping
from gordan.solve.cancelling import dependence, in_floats
from gordan.solve.interior import MAX_STEPS, NEGLIGIBLE_INTERIOR_WEIGHT, STEP_TO_BOUNDARY, Coordinates
from gordan.solve.loss_ascent import EPOCHS
from gordan.solve.loss_newton import PART, Interrupted
from gordan.solve.loss_newton import TUNING as NEWTON
from gordan.solve.row_space import RowSpace, few_and_long


@dataclass(frozen=True)
class Tuning:
    """When label vectors are solved together, and how (`benchmarks/many.py` times what these values decide)."""

    # Beyond this many columns, or entries of the rows, each label vector is worth the finders for one.
    max_columns: int = 400
    max_entries: int = 1 << 18
    max_loss_entries: int = 1 << 15
    # Counted rows times columns squared, the cost of a step for one label vector, up to which margins are found sooner together
    # than one by one (`benchmarks/planes.py`).
    max_step_cost: int = 1_600_000
    # Columns up to which a loss of rows in memory is minimized sooner for one label vector after the other: that search starts
    # from some of the rows, and takes fewer steps.
    narrow: int = 64
    # Numbers in a stack of matrices, of which a thread needs about eight, however many label vectors there are.
    stack_entries: int = 1 << 18
    # Newton steps, and halvings of one step.
    max_steps: int = overlapping.TUNING.max_steps
    max_halvings: int = 12
    # Columns from which the matrices of a stack are factorized one by one, by Cholesky's method: below, elimination on the whole
    # stack is faster.
    min_cholesky_columns: int = 32
    # What is added to the diagonal of the equations, relative to it, so that they are never singular.
    ridge: float = overlapping.TUNING.ridge
    # Weights below this share of the largest count as 0.
    light: float = overlapping.TUNING.negligible_newton_weight
    # A step for a loss is the last if its predicted gain is at most this share of the tolerance: the next would square the gap.
    gain_share: float = 0.1


TUNING = Tuning()
StopCheck = Callable[[], bool]


def applies(problem: Problem, intercept: Intercept) -> bool:
    """Return whether rows are so few that many label vectors are solved together."""
    n, c = problem.X.n, intercept.columns(problem.X.d)
    small = c <= TUNING.max_columns and n * c <= TUNING.max_entries
    norms = problem.X.norms
    sized = MIN_RADIUS <= float(np.max(norms)) <= 1 / MIN_RADIUS
    return small and sized and fits(8.0 * 16 * TUNING.stack_entries * available())


def is_sooner(counted: int, columns: int) -> bool:
    """Return whether margins are found sooner together than one by one, where at most `counted` rows count for a label vector."""
    return counted * columns**2 <= TUNING.max_step_cost


def search(evidence: TableEvidence, at: Array, budget: Budget, enough: float, *, all_or_none: bool = False) -> Array:
    """Offer planes, or rows that cancel, for these columns of signs; return the columns that seem to have no plane.

    A plane is the widest if ‖w‖² exceeds the least possible by at most the share `enough`. With `all_or_none` nothing is offered
    if one column seems to have no plane.
    """
    intercept, X = evidence.intercept, evidence.X
    if not len(at):
        return at
    R = math.hypot(float(np.max(evidence.problem.X.norms)), intercept.constant())
    constant = intercept.constant(R)
    rows = Coordinates.of(X / R, constant, intercept.grouped)
    few = rows
    if len(X) > rows.B.shape[1]:
        _, relations = dependence(evidence.columns.rows, intercept.exists)
        if relations:
            evidence.offer_relations(relations)
        if evidence.columns.dependent:  # Newton's equations are regular in the independent columns
            columns = [j for j in evidence.columns.independent if j < X.shape[1]]
            few = Coordinates.of(X[:, columns] / R, constant, intercept.grouped)

    solver = _TableSearch(evidence, rows, few, R, enough, budget)
    separators = np.full((len(at), few.B.shape[1]), math.nan)

    def decide(lo: int, hi: int) -> None:
        ensure_blas_memory()
        if not solver.spent():
            separators[lo:hi] = solver.decide(at[lo:hi], propose=not all_or_none)

    def widen(lo: int, hi: int) -> None:
        found = lo + np.flatnonzero(np.isfinite(separators[lo:hi]).all(axis=1))
        if len(found) and not solver.spent():
            solver.widen(at[found], separators[found])

    def both(lo: int, hi: int) -> None:
        decide(lo, hi)
        widen(lo, hi)

    counts = np.count_nonzero(evidence.signs[:, at], axis=0)
    by_size = np.argsort(-counts, kind="stable")  # label vectors of a stack have about the same number of rows
    at, counts = at[by_size], np.where(2 * counts > len(X), len(X), counts)[by_size]
    ranges, lo = [], 0
    while lo < len(at):
        hi = min(lo + stack_size(int(counts[lo]), rows.B.shape[1]), len(at))
        ranges.append((lo, hi))
        lo = hi
    try:
        for step in (decide, widen) if all_or_none else (both,):
            in_threads(step, ranges, budget.threads or available())
            if not np.isfinite(separators).all():
                break
    finally:
        solver.halted.set()  # after Ctrl-C other threads are still at work
    return np.sort(at[~np.isfinite(separators).all(axis=1)])


@dataclass(frozen=True, eq=False)
class _TableSearch:
    """A search for planes of `rows`, which were divided by R, and for rows that cancel in the independent columns (`few`)."""

    evidence: TableEvidence
    rows: Coordinates
    few: Coordinates
    R: float
    enough: float
    budget: Budget
    halted: threading.Event = field(default_factory=threading.Event)

    def spent(self) -> bool:
        """Return whether the search is halted, or the time is up."""
        return self.halted.is_set() or self.budget.spent

    @np.errstate(all="ignore")
    def decide(self, at: Array, *, propose: bool) -> Array:
        """Return for each label vector of a stack a z that separates in independent columns, or NaN; offer rows that cancel."""
        own, Y = self._counted(at)
        z, p, self.evidence.rounds[at] = alternatives(Stack.of(self.few.B, own), Y, self.spent)
        over = np.flatnonzero(p.any(axis=1))
        if propose and len(over):
            p = _over_all_rows(p[over], None if own is None else own[over], len(self.few.B))
            self._offer_cancelling(at[over], p / self.few.norms)
        return z

    def _counted(self, at: Array) -> tuple[Array | None, Array]:
        """Return the rows that count in each label vector, where most rows do not, and their signs; or None and all signs.

        A label vector in which fewer rows count than in others has some rows of sign 0 among its own.
        """
        Y = self.evidence.signs.T[at].astype(np.float64)
        counted = int(np.count_nonzero(Y, axis=1).max())
        if 2 * counted > Y.shape[1]:
            return None, Y
        own = np.argsort(Y == 0, axis=1, kind="stable")[:, :counted]
        return own, np.take_along_axis(Y, own, axis=1)

    def _offer_cancelling(self, at: Array, p: Array) -> None:
        """Offer weights p over all rows with which these may cancel for the label vectors `at`."""
        evidence = self.evidence
        weights = p / np.sum(p, axis=1)[:, None]
        evidence.offer_cancelling(at, weights)
        for j, each in zip(at.tolist(), weights, strict=True):
            if not evidence.decided[j]:  # the rows do not span all others, so that more columns depend on each other
                support = np.flatnonzero(each)
                found = in_floats(evidence.column(j), support, each[support], evidence.intercept, self.budget.time_to_prove)
                if found is not None:
                    evidence.offer_one(j, found)

    @np.errstate(all="ignore")
    def widen(self, at: Array, z: Array) -> None:
        """Offer the widest planes, starting from z that separate in independent columns."""
        evidence, rows, (own, Y) = self.evidence, self.rows, self._counted(at)
        if self.few is not rows:
            w, b = self.few.plane(z)
            whole = np.zeros((len(z), evidence.X.shape[1]))
            whole[:, [j for j in evidence.columns.independent if j < whole.shape[1]]] = w
            z = rows.point(whole, b)
        norms = rows.norms[None] if own is None else rows.norms[own]
        z, p, steps = widest(Stack.of(rows.B, own), 1 / norms, rows.ridge, Y, z, self.enough, self.spent)
        evidence.rounds[at] += steps
        p = _over_all_rows(p / norms, own, len(rows.B))
        w, b = rows.plane(z)
        W, b, P = w.T, b * self.R, np.ascontiguousarray(p.T)
        own = evidence.intercept.joined(W, b)[len(W) :]  # b as it counts in the norm, if it does
        length = np.sqrt(np.sum(W * W, axis=0) + np.sum(own * own, axis=0))
        W, b = np.ascontiguousarray(W / length), b / length
        if evidence.intercept.grouped:  # midway between the classes
            Y = evidence.signs.T[at].astype(np.float64)
            scores = (evidence.X @ W).T * Y
            low, high = (np.min(np.where(Y * side > 0, scores, math.inf), axis=1) for side in (1, -1))
            b = high / 2 - low / 2
        evidence.offer_planes(at, W, b, P)


def stack_size(n: int, c: int) -> int:
    """Return how many label vectors of n rows with c columns are in a stack."""
    return max(1, TUNING.stack_entries // (n * c))


def _over_all_rows(p: Array, own: Array | None, n: int) -> Array:
    """Return the weights of the rows `own` of each label vector as weights over all n rows."""
    if own is None:
        return p
    found = np.zeros((len(p), n))
    np.put_along_axis(found, own, p, axis=1)
    return found


@np.errstate(all="ignore")
def alternatives(rows: Stack, Y: Array, spent: StopCheck) -> tuple[Array, Array, Array]:
    """Return for each row of signs Y (m × n, 0 leaves a row out) a z or a p, NaN or 0 for the other, and the number of steps.

    z has y_i B_i·z > 0 for all rows that count; p are weights of rows that cancel.
    """
    (m, n), c = Y.shape, rows.c
    z, p, s, used = np.full((m, c), math.nan), np.zeros((m, n)), np.zeros((m, n)), Y != 0
    u, todo, steps = np.zeros((m, c)), np.arange(m), np.zeros(m, np.int64)
    for number in range(TUNING.max_steps):
        if not len(todo) or spent():
            break
        y, at, own = Y[todo], s[todo], used[todo]
        steps[todo] += 1
        active = (at < 1) & own
        short = np.where(active, 1 - at, 0.0)
        down = rows.combined(short * y)
        same = number == 0 and rows.shared and used.all()  # the first equations are the same for all label vectors
        H = rows.moments(active[:1] if same else active)
        H[:, range(c), range(c)] += TUNING.ridge * np.count_nonzero(active[: len(H)], axis=1)[:, None]  # rows have length 1
        solve = Solver(H)
        step = solve(down)
        ds = y * rows.scores(step)
        t = _step_lengths(_loss, (at,), (ds,), own, _loss(at, own), 1e-4 * np.sum(down * step, axis=1), 0.0)
        u[todo] += t[:, None] * step
        at = at + t[:, None] * ds
        s[todo] = at
        finite = np.isfinite(at).all(axis=1)
        apart = finite & (np.min(np.where(own, at, 1.0), axis=1) > 0)
        z[todo[apart]] = u[todo[apart]]
        over = finite & ~apart & (t == 1) & (((at < 1) & own) == active).all(axis=1)
        if over.any():
            weights, own_solve = np.where(active[over], 1 - at[over], 0.0), partial(solve, which=np.flatnonzero(over))
            p[todo[over]] = _balanced(rows.those(over), y[over], weights, own_solve)
        go = finite & ~apart & ~over
        todo, rows = todo[go], rows.those(go)
    return z, p, steps


def _balanced(rows: Stack, y: Array, p: Array, solve: Callable[[Array], Array]) -> Array:
    """Return weights near p whose rows cancel up to rounding; 0 where one of them would be negative."""
    kept = p > TUNING.light * np.max(p, axis=1)[:, None]
    p = np.where(kept, p, 0.0)
    left = rows.combined(p * y)
    p = np.where(kept, p - y * rows.scores(solve(left)), 0.0)
    fine = np.isfinite(p).all(axis=1) & ((p > 0) == kept).all(axis=1)
    return np.where(fine[:, None], p / np.sum(p, axis=1)[:, None], 0.0)


def _step_lengths(
    value: Callable[..., Array],
    at: Sequence[Array],
    step: Sequence[Array],
    own: Array,
    before: Array,
    fall: Array,
    rounding: float,
) -> Array:
    """Return the length t of each step: the first of 1, ½, ¼, … at which the value has fallen from `before` by t·fall.

    A share `rounding` of `before` may be missing.
    """
    t, falls = np.ones(len(own)), np.zeros(len(own), dtype=bool)
    for _ in range(TUNING.max_halvings):
        open_ = np.flatnonzero(~falls)
        after = value(*(x[open_] + t[open_, None] * dx[open_] for x, dx in zip(at, step, strict=True)), own[open_])
        falls[open_] = after <= before[open_] - t[open_] * fall[open_] + rounding * before[open_]
        if falls.all():
            break
        t[~falls] /= 2
    return t


def _loss(s: Array, own: Array) -> Array:
    short = np.where(own, np.maximum(1 - s, 0.0), 0.0)
    return np.asarray(np.einsum("mi,mi->m", short, short) / 2)


class Stack:
    """The rows of each label vector of a stack: the same for all (1 × n × c), or its own (m × n × c).

    Memory for moments is reused: to allocate it at each step takes as long as the products.
    """

    def __init__(self, B: Array) -> None:
        self.B, self.columns = B, np.ascontiguousarray(B.transpose(0, 2, 1))
        self.shared, self.c = len(B) == 1, B.shape[2]
        self._weighted = self._products = np.empty((0, *self.columns.shape[1:]))

    @staticmethod
    def of(B: Array, own: Array | None) -> Stack:
        """Return the stack of all rows of B, or of the rows with the numbers `own` (m × n) for each label vector."""
        return Stack(B[None] if own is None else B[own])

    def those(self, which: Array) -> Stack:
        """Return the rows of these label vectors alone."""
        return self if self.shared or which.all() else Stack(self.B[which])

    def scores(self, z: Array) -> Array:
        """Return B_i·z_j, m × n."""
        return np.asarray(z @ self.columns[0] if self.shared else np.matmul(z[:, None, :], self.columns)[:, 0])

    def combined(self, p: Array) -> Array:
        """Return Σ_i p_ji B_i, m × c."""
        return np.asarray(p @ self.B[0] if self.shared else np.matmul(p[:, None, :], self.B)[:, 0])

    def moments(self, h: Array) -> Array:
        """Return Σ_i h_ji B_i B_iᵀ, m × c × c, in memory that the next call overwrites."""
        if len(h) > len(self._weighted):
            self._weighted, self._products = np.empty((len(h), *self.columns.shape[1:])), np.empty((len(h), self.c, self.c))
        weighted = np.multiply(self.columns, h[:, None, :], out=self._weighted[: len(h)])
        return np.matmul(weighted, self.B, out=self._products[: len(h)])


class Solver:
    """A solver for positive definite matrices H_j, or one for all right-hand sides; H is overwritten."""

    def __init__(self, H: Array) -> None:
        self.H, self.one, self.lapack = H, len(H) == 1, scipy_linalg().lapack
        self.factors: list[Array] | None = None
        if self.one or H.shape[1] >= TUNING.min_cholesky_columns:
            c = range(H.shape[1])
            diagonal = H[:, c, c].copy()
            found = [self.lapack.dpotrf(each.T, lower=True, clean=False, overwrite_a=True) for each in H]
            if any(info for _, info in found):  # not positive definite in floats: elimination may still solve the equations
                self.H = np.tril(H, -1) + np.tril(H, -1).transpose(0, 2, 1)  # the other triangle is overwritten
                self.H[:, c, c] = diagonal
            else:
                self.factors = [factor for factor, _ in found]

    def __call__(self, right: Array, which: Array | None = None) -> Array:
        """Return H_j⁻¹ right_j, for all j or for these; NaN for all where one is exactly singular."""
        if self.factors is not None:
            if self.one:
                return np.asarray(self.lapack.dpotrs(self.factors[0], right.T, lower=True)[0].T)
            places = range(len(right)) if which is None else which.tolist()
            solve, found = self.lapack.dpotrs, np.empty_like(right)
            for k, j in enumerate(places):
                found[k] = solve(self.factors[j], right[k], lower=True)[0]
            return found
        try:
            if self.one:
                return np.asarray(np.linalg.solve(self.H[0], right.T).T)
            H = self.H if which is None else self.H[which]
            return np.asarray(np.linalg.solve(H, right[:, :, None])[:, :, 0])
        except np.linalg.LinAlgError:
            return np.full_like(right, math.nan)


@np.errstate(all="ignore")
def widest(
    rows: Stack, least: Array, ridge: Array, Y: Array, start: Array, enough: float, spent: StopCheck
) -> tuple[Array, Array, Array]:
    """Return for each row of signs Y the z of least Σ ridge z² with y_i B_i·z ≥ least_i, its p, and the number of steps.

    It starts from a z with y_i B_i·z > 0 and ends when p·s, with s the slacks of the inequalities, is the share `enough` of
    p·least. A row that does not count has an inequality that always holds.
    """
    counted = np.where(Y != 0, least, 0.0)  # for p·least: a row that does not count has s = 1, whatever w is
    least = np.where(Y != 0, least, -1.0)
    scores = Y * rows.scores(start)
    z = start * (1.2 / np.min(np.where(Y != 0, scores / least, math.inf), axis=1))[:, None]
    s = Y * rows.scores(z) - least
    p = (z * z @ ridge / (10 * Y.shape[1]))[:, None] / s
    found = z.copy(), np.where(np.isfinite(p), p, 0.0)
    todo, before, steps = np.arange(len(Y)), np.full(len(Y), math.inf), np.zeros(len(Y), np.int64)
    for _ in range(MAX_STEPS):
        if not len(todo) or spent():
            break
        z, p, s = _step(rows, ridge, Y[todo], z, p, s)
        steps[todo] += 1
        gap = np.sum(p * s, axis=1) / np.sum(p * counted[todo], axis=1)
        fine = np.isfinite(gap) & np.isfinite(z).all(axis=1) & (gap > 0)
        found[0][todo[fine]], found[1][todo[fine]] = z[fine], p[fine]
        go = fine & (gap > enough) & ~((gap > before[todo]) & (gap < 1e-6))
        before[todo] = gap
        todo, rows, z, p, s = todo[go], rows.those(go), z[go], p[go], s[go]
    z, p = found
    return z, np.where((p > NEGLIGIBLE_INTERIOR_WEIGHT * np.max(p, axis=1)[:, None]) & (Y != 0), p, 0.0), steps


def _step(rows: Stack, ridge: Array, y: Array, z: Array, p: Array, s: Array) -> tuple[Array, Array, Array]:
    """Take one step of predictor and corrector for each label vector, as in `interior`."""
    n, c = y.shape[1], rows.c
    weights = p / s
    H = rows.moments(weights)
    H[:, range(c), range(c)] += ridge
    here, solve = ridge * z, Solver(H)
    dz = solve(-here)
    ds = y * rows.scores(dz)
    dp = -p - weights * ds
    mean = np.sum(p * s, axis=1) / n
    after = np.sum((p + _room(p, dp)[:, None] * dp) * (s + _room(s, ds)[:, None] * ds), axis=1) / n
    share = (((after / mean) ** 3 * mean)[:, None] - dp * ds) / s
    dz = solve(rows.combined(share * y) - here)
    ds = y * rows.scores(dz)
    dp = share - p - weights * ds
    t = (STEP_TO_BOUNDARY * np.minimum(_room(s, ds), _room(p, dp)))[:, None]
    return z + t * dz, p + t * dp, s + t * ds


def _room(x: Array, dx: Array) -> Array:
    """Return the largest step, up to 1, with x + step·dx ≥ 0."""
    return np.asarray(1.0 / np.maximum(1.0, -np.min(dx / x, axis=1)))


# ---- losses --------------------------------------------------------------------------------------------------------------


def least_losses(
    problem: Problem, signs: Array, asked: Objectives, tol: float, budget: Budget
) -> tuple[Array | None, Array, Objectives]:
    """Return planes near those of least loss for every column of signs, the steps of each, and the objectives.

    Planes are k × columns, with b last if there is one. Finders may add to the objectives: the smoothing of a hinge, or weights
    of the rows that prove more than those that follow from the planes. Planes are None for a hinge of rows in memory, and for
    many rows in memory that are sparse or `narrow`, unless `block_ascent` suits them: conjugate gradients for one label vector
    leave out the rows that do not count in it, and cost less. Ctrl-C in shared passes raises `Interrupted`.
    """
    storage, (n, k), loss, c, intercept = problem.storage, signs.shape, asked.loss, asked.c, asked.intercept
    steps, d = np.zeros(k, np.int64), intercept.columns(problem.X.d)
    rows = unsigned_rows(problem, intercept, budget)
    space = RowSpace.of(rows, budget.time) if loss.smooth and _few(n, n + 1) else None
    if c.any() and _ascends(problem, d, k, loss):
        return _by_ascent(rows, signs, asked, tol, budget)
    together = space is not None or (_few(n, d) and applies(problem, intercept))
    shared = together or _shares_passes(problem, d) if loss.smooth else not storage.in_memory
    if not c.any() or not shared:
        return None, steps, asked
    if storage.in_memory:
        budget = budget.paced(rows, k)
    if together and loss.smooth:
        return *_in_stacks(problem, signs, asked, space, tol, budget), asked

    size = block_newton.block_size(rows, k)
    found, limited = np.full((k, d), math.nan), size < k and math.isfinite(budget.deadline)
    if limited:  # the last blocks may not be begun in time
        found = rough_planes(problem, signs, asked, budget)
    for lo in range(0, k, size):
        if budget.spent:
            break
        Y = asked.signs if size == k else asked.signs[:, lo : lo + size]
        table = block_newton.LossTable(rows, Y, storage.to_storage_f64(c), loss, intercept.grouped, deadline=budget.time)
        spent = (lambda: budget.spent) if storage.in_memory else table.spent
        start = found[lo : lo + size].T.copy() if limited and np.isfinite(found[lo : lo + size]).all() else None
        try:
            W, steps[lo : lo + size], asked = _by_passes(table, asked, tol, spent, start)
        except KeyboardInterrupt as stop:
            if isinstance(stop, Interrupted):
                found[lo : lo + size] = intercept.outward(stop.planes).T
            raise Interrupted(found.T) from None
        found[lo : lo + size] = W.T
    return found, steps, asked


def unsigned_rows(problem: Problem, intercept: Intercept, budget: Budget) -> Rows:
    """Return the rows of a problem without the signs of a label vector, with the column of the intercept if there is one."""
    return Rows(problem.storage, np.ones(problem.X.n, np.int8), constant=intercept.constant(), threads=budget.threads)


def rough_planes(problem: Problem, signs: Array, asked: Objectives, budget: Budget) -> Array:
    """Return planes of a part of dense rows for every column of signs, as `least_losses` does, in part of the time.

    NaN stands for planes that were not found. They are for label vectors that are solved one after the other, of which the last
    ones may not be begun in time.
    """
    storage, k, loss, intercept = problem.storage, signs.shape[1], asked.loss, asked.intercept
    found = np.full((k, intercept.columns(problem.X.d)), math.nan)
    rows = unsigned_rows(problem, intercept, budget)
    size = block_newton.block_size(rows, k)
    for lo in range(0, 0 if storage.sparse or not asked.c.any() else k, size):
        Y, c = asked.signs[:, lo : lo + size], storage.to_storage_f64(asked.c)
        table = block_newton.LossTable(rows, Y, c, loss, intercept.grouped, deadline=budget.time)
        part = None if budget.spent else block_newton.part_of(table)
        if part is not None:
            found[lo : lo + size] = _by_passes(part, asked, PART.tol, part.spent)[0].T
    return found


def _ascends(problem: Problem, d: int, k: int, loss: Loss) -> bool:
    """Return whether coordinate ascent solves several label vectors at once: where it would be used for one (`finders`)."""
    storage = problem.storage
    wide = NEWTON.is_too_wide(storage, d) and storage.entries <= EPOCHS.most_entries
    return wide and loss is Loss.SQUARED_HINGE and k > 1 and fits(block_ascent.BYTES * (problem.X.n + d) * k)


def _by_ascent(rows: Rows, signs: Array, asked: Objectives, tol: float, budget: Budget) -> tuple[Array, Array, Objectives]:
    found = block_ascent.ascend_together(rows, signs, asked.c, asked.intercept, tol, budget)
    return found.planes, found.epochs, replace(asked, weights=found.alpha) if found.few else asked


def _in_stacks(
    problem: Problem, signs: Array, asked: Objectives, space: RowSpace | None, tol: float, budget: Budget
) -> tuple[Array, Array]:
    """Return the planes and steps of a smooth loss for few rows, stack by stack; in the `space` of the rows, if there is one."""
    storage, (n, k), intercept = problem.storage, signs.shape, asked.intercept
    halted = threading.Event()

    def spent() -> bool:
        return halted.is_set() or budget.spent

    plain: Any = storage.plain() if space is None else space.L
    X = np.asarray(plain.toarray() if space is None and storage.sparse else plain)
    A = np.ascontiguousarray(np.column_stack((X, np.full(n, intercept.constant()))) if intercept.exists else X)
    J = np.ones(A.shape[1])
    J[-1] = not intercept.grouped
    found, steps = np.full((k, intercept.columns(problem.X.d)), math.nan), np.zeros(k, np.int64)

    def stack(lo: int, hi: int) -> None:
        ensure_blas_memory()
        W, steps[lo:hi] = _least_loss(A, signs.T[lo:hi].astype(np.float64), asked.loss, asked.c, J, tol, spent)
        found[lo:hi] = intercept.outward(W.T if space is None else space.plane(W.T, refined=2)).T

    size = stack_size(*A.shape)
    ranges = [(lo, min(lo + size, k)) for lo in range(0, k, size)]
    with blas_threads(storage.entries):
        try:
            in_threads(stack, ranges, budget.threads or available())
        finally:
            halted.set()
    return found, steps


def _by_passes(
    table: block_newton.LossTable, asked: Objectives, tol: float, spent: StopCheck, start: Array | None = None
) -> tuple[Array, Array, Objectives]:
    """Return the planes and steps of a block of label vectors, and the objectives with the smoothing of a hinge."""
    intercept, start = asked.intercept, None if start is None else asked.intercept.inward(start)
    if asked.loss.smooth:
        W, steps = block_newton.planes(table, tol, spent, start)
        return intercept.outward(W), steps, asked
    W, steps, smoothed = block_newton.hinge_planes(table, tol, start, None)
    return intercept.outward(W), steps, replace(asked, smoothing=block_newton.stated(smoothed))


def _few(n: int, d: int) -> bool:
    """Return whether rows and columns are few enough for steps of many label vectors at a time."""
    return n * d <= TUNING.max_loss_entries


def _shares_passes(problem: Problem, d: int) -> bool:
    """Return whether label vectors share their passes; one by one they are solved sooner if rows are few and long, or narrow."""
    narrow_or_few = d <= TUNING.narrow or few_and_long(problem.X.n, d)
    return not problem.storage.sparse and not (problem.storage.in_memory and narrow_or_few)


@np.errstate(all="ignore")
def _least_loss(A: Array, Y: Array, loss: Loss, c: Array, J: Array, tol: float, spent: StopCheck) -> tuple[Array, Array]:
    """Minimize ½wᵀJw + Σ c_i ℓ(y_i A_i·w) by Newton's method, for all rows of signs Y together; return w and the steps."""
    d, rows = A.shape[1], Stack(A[None])
    w, z, used = np.zeros((len(Y), d)), np.zeros(Y.shape), Y != 0
    todo, steps, gains = np.arange(len(Y)), np.zeros(len(Y), np.int64), np.full(len(Y), math.inf)

    def value(w: Array, z: Array, own: Array) -> Array:
        return np.asarray(0.5 * (w * w) @ J + np.sum(np.where(own, c * loss.cost(z), 0.0), axis=1))

    for _ in range(TUNING.max_steps):
        if not len(todo) or spent():
            break
        y, own, at, here = Y[todo], used[todo], z[todo], w[todo]
        a = np.where(own, loss.weight(at), 0.0)
        h = np.where(own, c * loss.curvature(at, a), 0.0)
        gradient = J * here - rows.combined(c * a * y)
        H = rows.moments(h)
        H[:, range(d), range(d)] += J + TUNING.ridge * np.max(H[:, range(d), range(d)], axis=1)[:, None]
        step = -Solver(H)(gradient)
        ds, slope = y * rows.scores(step), np.sum(gradient * step, axis=1)
        before = value(here, at, own)
        t = _step_lengths(value, (here, at), (step, ds), own, before, -1e-4 * slope, 1e-15)
        w[todo] = here + t[:, None] * step
        z[todo] = y * rows.scores(w[todo])
        steps[todo] += 1
        # the predicted gain of a Newton step is about the gap, until rounding dominates
        stuck = (-slope > 0.5 * gains[todo]) & (-slope < 1e-8 * before)
        gains[todo] = -slope
        todo = todo[np.isfinite(w[todo]).all(axis=1) & (-slope > TUNING.gain_share * tol * before) & ~stuck]
    return w, steps
