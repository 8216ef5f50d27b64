"""Planes and weights for many label vectors of the same few rows, all of them at a time. Nothing here is believed.

Label vectors are signs of the rows B (n × c, of length 1, see `interior.Coordinates`), so that norms, coordinates and products
B_i B_iᵀ are those of all of them, and a step is a few operations on stacks of matrices.

    which?    min ½Σ(1 - B_i·z)₊² by Newton's method, as in `overlapping`: where it ends with weights, their rows cancel; where
              every row is on its side, z separates.
    how far?  min ½‖w‖² over A w ≥ 1, from such a z, by the interior-point method of `interior`.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.blas import blas_has_room, blas_threads, scipy_linalg
from gordan.certificates.optima import Objectives
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept
from gordan.ledger.question import Budget
from gordan.ledger.table import TableEvidence
from gordan.losses import Loss
from gordan.memory import fits
from gordan.rows import SMALLEST_RADIUS, Rows, available, in_threads
from gordan.solve import block_ascent, block_newton
from gordan.solve.cancelling import dependence, in_floats
from gordan.solve.interior import LIGHT, MOST_STEPS, NEARLY, Coordinates
from gordan.solve.loss_newton import TUNING as NEWTON
from gordan.solve.minimizing import EPOCHS
from gordan.solve.row_space import RowSpace, few_and_long


@dataclass(frozen=True)
class Tuning:
    """What decides whether rows are few enough, and how many label vectors are looked at together (`benchmarks/many.py`)."""

    # Columns at most, and entries of the rows at most: beyond these each label vector is worth the finders for one.
    most_columns: int = 400
    most_entries: int = 1 << 18
    most_entries_of_a_loss: int = 1 << 15
    # Rows that count times the square of the columns, what a step costs for one label vector: up to this, margins are found
    # sooner together than one by one (`benchmarks/planes.py`).
    most_in_a_step: int = 1_600_000
    # Columns up to which a loss of rows in memory is minimized sooner for one label vector after the other: that starts from some
    # of the rows, and takes fewer steps.
    narrow: int = 64
    # Numbers in a stack of matrices: what a thread needs of memory, some eight times over, however many label vectors there are.
    stack: int = 1 << 18
    # Steps of Newton's method at most (about eight are needed), and how often one is halved.
    steps: int = 40
    halvings: int = 12
    # Columns from which a stack is factorized matrix by matrix, by Cholesky's method: below, elimination on the stack takes less.
    worth_factors: int = 32
    # Added to the diagonal of its equations, as a share of it; and weights that count as 0, as a share of the largest.
    ridge: float = 1e-13
    light: float = 1e-9


TUNING = Tuning()
# Of the tolerance, what a step for a loss may promise to gain when it is the last: the next one squares what is left.
SHARE_OF_TOL = 0.1
Spent = Callable[[], bool]


def applies(problem: Problem, intercept: Intercept) -> bool:
    """Whether rows are so few that many label vectors are looked at together."""
    n, c = problem.X.n, intercept.columns(problem.X.d)
    small = c <= TUNING.most_columns and n * c <= TUNING.most_entries
    norms = problem.X.norms
    sized = SMALLEST_RADIUS <= float(np.max(norms)) <= 1 / SMALLEST_RADIUS
    return small and sized and fits(8.0 * 16 * TUNING.stack * available())


def is_sooner(counted: int, columns: int) -> bool:
    """Whether the margins of label vectors, of which at most so many rows count, are found sooner together than one by one."""
    return counted * columns**2 <= TUNING.most_in_a_step


def search(evidence: TableEvidence, at: Array, budget: Budget, enough: float, *, all_or_none: bool = False) -> Array:
    """Look for planes and for rows that cancel, for these columns of signs, and offer them to the evidence; the columns that seem
    to have no plane.

    `enough` is the share of ‖w‖² that a plane may have too much to be called the widest. `all_or_none`: if one column seems to
    have no plane nothing is offered.
    """
    intercept, X = evidence.intercept, evidence.X
    if not len(at):
        return at
    R = math.hypot(float(np.max(evidence.problem.X.norms)), intercept.exists)
    constant = 0.0 if not intercept.exists else 1 / R if intercept.in_norm else 1.0
    rows = Coordinates.of(X / R, constant, intercept.grouped)
    few = rows
    if len(X) > rows.B.shape[1]:
        order = [*range(evidence.rows.shape[1])]
        _, relations = dependence(evidence.rows, order[-1:] + order[:-1] if intercept.exists else order)
        if relations:
            evidence.offer_relations(relations)
        if evidence.dependent:  # in fewer columns, in which Newton's equations can be solved
            del evidence.__dict__["rows"], evidence.__dict__["independent"]
            columns = [j for j in evidence.independent if j < X.shape[1]]
            few = Coordinates.of(X[:, columns] / R, constant, intercept.grouped)

    looking, apart = _Looking(evidence, rows, few, R, enough, budget.deadline), np.full((len(at), few.B.shape[1]), math.nan)

    def which(lo: int, hi: int) -> None:
        blas_has_room()
        if not looking.spent():
            apart[lo:hi] = looking.which(at[lo:hi], propose=not all_or_none)

    def how_far(lo: int, hi: int) -> None:
        found = lo + np.flatnonzero(np.isfinite(apart[lo:hi]).all(axis=1))
        if len(found) and not looking.spent():
            looking.how_far(at[found], apart[found])

    def both(lo: int, hi: int) -> None:
        which(lo, hi)
        how_far(lo, hi)

    counts = np.count_nonzero(evidence.signs[:, at], axis=0)
    by_size = np.argsort(-counts, kind="stable")  # those of a stack have about as many rows
    at, counts = at[by_size], np.where(2 * counts > len(X), len(X), counts)[by_size]
    ranges, lo = [], 0
    while lo < len(at):
        hi = min(lo + stack_size(int(counts[lo]), rows.B.shape[1]), len(at))
        ranges.append((lo, hi))
        lo = hi
    try:
        for step in (which, how_far) if all_or_none else (both,):
            in_threads(step, ranges, budget.threads or available())
            if not np.isfinite(apart).all():
                break
    finally:
        looking.halted.set()  # after Ctrl-C other threads are still at work
    return np.sort(at[~np.isfinite(apart).all(axis=1)])


@dataclass(frozen=True, eq=False)
class _Looking:
    """A search for planes of rows that were divided by R, and for rows that cancel in `few` columns."""

    evidence: TableEvidence
    rows: Coordinates
    few: Coordinates
    R: float
    enough: float
    deadline: float
    halted: threading.Event = field(default_factory=threading.Event)

    def spent(self) -> bool:
        """Whether it is over."""
        return self.halted.is_set() or time.perf_counter() >= self.deadline

    @np.errstate(all="ignore")
    def which(self, at: Array, *, propose: bool) -> Array:
        """For each label vector of a stack a z that separates in few columns, or NaN; rows that cancel may be proposed."""
        own, Y = self._counted(at)
        z, p, self.evidence.rounds[at] = alternatives(Stack.of(self.few.B, own), Y, self.spent)
        over = np.flatnonzero(p.any(axis=1))
        if propose and len(over):
            self._cancel(at[over], _spread(p[over], None if own is None else own[over], len(self.few.B)) / self.few.norms)
        return z

    def _counted(self, at: Array) -> tuple[Array | None, Array]:
        """The rows that count in each label vector, where these leave out most, and their signs; else None and those of all rows.
        A label vector with fewer rows than others has some that it leaves out."""
        Y = self.evidence.signs.T[at].astype(np.float64)
        counted = int(np.count_nonzero(Y, axis=1).max())
        if 2 * counted > Y.shape[1]:
            return None, Y
        own = np.argsort(Y == 0, axis=1, kind="stable")[:, :counted]
        return own, np.take_along_axis(Y, own, axis=1)

    def _cancel(self, at: Array, p: Array) -> None:
        """Weights p of all rows that may cancel these."""
        evidence = self.evidence
        weights = p / np.sum(p, axis=1)[:, None]
        evidence.offer_cancelling(at, weights)
        for j, each in zip(at.tolist(), weights, strict=True):
            if not evidence.decided[j]:  # rows that do not span all others: there are further dependent columns
                support = np.flatnonzero(each)
                found = in_floats(evidence.column(j), support, each[support], evidence.intercept)
                if found is not None:
                    evidence.offer_one(j, found)

    @np.errstate(all="ignore")
    def how_far(self, at: Array, z: Array) -> None:
        """The widest planes are proposed, from z that separate in few columns."""
        evidence, rows, (own, Y) = self.evidence, self.rows, self._counted(at)
        if self.few is not rows:
            w, b = self.few.plane(z)
            whole = np.zeros((len(z), evidence.X.shape[1]))
            whole[:, [j for j in evidence.independent if j < whole.shape[1]]] = w
            z = rows.point(whole, b)
        norms = rows.norms[None] if own is None else rows.norms[own]
        z, p, steps = widest(Stack.of(rows.B, own), 1 / norms, rows.ridge, Y, z, self.enough, self.spent)
        evidence.rounds[at] += steps
        p = _spread(p / norms, own, len(rows.B))
        w, b = rows.plane(z)
        W, b, P = w.T, b * self.R, np.ascontiguousarray(p.T)
        length = np.sqrt(np.sum(W * W, axis=0) + (b * b if evidence.intercept.in_norm else 0.0))
        W, b = np.ascontiguousarray(W / length), b / length
        if evidence.intercept.grouped:  # midway between the classes
            Y = evidence.signs.T[at].astype(np.float64)
            scores = (evidence.X @ W).T * Y
            low, high = (np.min(np.where(Y * side > 0, scores, math.inf), axis=1) for side in (1, -1))
            b = high / 2 - low / 2
        evidence.offer_planes(at, W, b, P)


def stack_size(n: int, c: int) -> int:
    """How many label vectors of n rows with c columns are looked at together."""
    return max(1, TUNING.stack // (n * c))


def _spread(p: Array, own: Array | None, n: int) -> Array:
    """Weights of the rows `own` of each label vector as weights of all n rows."""
    if own is None:
        return p
    found = np.zeros((len(p), n))
    np.put_along_axis(found, own, p, axis=1)
    return found


@np.errstate(all="ignore")
def alternatives(rows: Stack, Y: Array, spent: Spent) -> tuple[Array, Array, Array]:
    """For each row of signs Y (m × n, 0 leaves out): a z with y_i B_i·z > 0, or NaN; weights p of rows that cancel, or 0; and how
    many steps that took."""
    (m, n), c = Y.shape, rows.c
    z, p, s, used = np.full((m, c), math.nan), np.zeros((m, n)), np.zeros((m, n)), Y != 0
    u, todo, steps = np.zeros((m, c)), np.arange(m), np.zeros(m, np.int64)
    for number in range(TUNING.steps):
        if not len(todo) or spent():
            break
        y, at, own = Y[todo], s[todo], used[todo]
        steps[todo] += 1
        active = (at < 1) & own
        short = np.where(active, 1 - at, 0.0)
        down = rows.combined(short * y)
        alike = number == 0 and rows.shared and used.all()  # the first equations are those of all label vectors
        H = rows.moments(active[:1] if alike else active)
        H[:, range(c), range(c)] += TUNING.ridge * np.count_nonzero(active[: len(H)], axis=1)[:, None]  # rows have length 1
        solve = Solver(H)
        step = solve(down)
        ds = y * rows.scores(step)
        t = _lengths(at, ds, own, 1e-4 * np.sum(down * step, axis=1))
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
    """Weights near p whose rows cancel as well as floats can tell; 0 where that leaves one negative."""
    kept = p > TUNING.light * np.max(p, axis=1)[:, None]
    p = np.where(kept, p, 0.0)
    left = rows.combined(p * y)
    p = np.where(kept, p - y * rows.scores(solve(left)), 0.0)
    fine = np.isfinite(p).all(axis=1) & ((p > 0) == kept).all(axis=1)
    return np.where(fine[:, None], p / np.sum(p, axis=1)[:, None], 0.0)


def _lengths(s: Array, ds: Array, own: Array, slope: Array) -> Array:
    """How far each step goes: the first of 1, ½, ¼, … at which the loss has fallen enough."""
    t = np.ones(len(s))
    before, falls = _loss(s, own), np.zeros(len(s), dtype=bool)
    for _ in range(TUNING.halvings):
        wait = np.flatnonzero(~falls)
        falls[wait] = _loss(s[wait] + t[wait, None] * ds[wait], own[wait]) <= before[wait] - t[wait] * slope[wait]
        if falls.all():
            break
        t[~falls] /= 2
    return t


def _loss(s: Array, own: Array) -> Array:
    short = np.where(own, np.maximum(1 - s, 0.0), 0.0)
    return np.asarray(np.einsum("mi,mi->m", short, short) / 2)


class Stack:
    """Rows for each label vector of a stack: the same for all (1 × n × c), or its own (m × n × c). Moments are made in memory
    that is used again: to get it anew at each step takes as long as the products."""

    def __init__(self, B: Array) -> None:
        self.B, self.columns = B, np.ascontiguousarray(B.transpose(0, 2, 1))
        self.shared, self.c = len(B) == 1, B.shape[2]
        self._weighted = self._products = np.empty((0, *self.columns.shape[1:]))

    @staticmethod
    def of(B: Array, own: Array | None) -> Stack:
        """All of B, or for each label vector the rows with the numbers `own` (m × n)."""
        return Stack(B[None] if own is None else B[own])

    def those(self, which: Array) -> Stack:
        """The rows of these label vectors alone."""
        return self if self.shared or which.all() else Stack(self.B[which])

    def scores(self, z: Array) -> Array:
        """B_i·z_j, m × n."""
        return np.asarray(z @ self.columns[0] if self.shared else np.matmul(z[:, None, :], self.columns)[:, 0])

    def combined(self, p: Array) -> Array:
        """Σ_i p_ji B_i, m × c."""
        return np.asarray(p @ self.B[0] if self.shared else np.matmul(p[:, None, :], self.B)[:, 0])

    def moments(self, h: Array) -> Array:
        """Σ_i h_ji B_i B_iᵀ, m × c × c, which is overwritten by the next ones."""
        if len(h) > len(self._weighted):
            self._weighted, self._products = np.empty((len(h), *self.columns.shape[1:])), np.empty((len(h), self.c, self.c))
        weighted = np.multiply(self.columns, h[:, None, :], out=self._weighted[: len(h)])
        return np.matmul(weighted, self.B, out=self._products[: len(h)])


class Solver:
    """The factors of positive definite matrices H_j, of which there may be one for all right-hand sides; H is overwritten."""

    def __init__(self, H: Array) -> None:
        self.H, self.one, self.lapack = H, len(H) == 1, scipy_linalg().lapack
        self.factors: list[Array] | None = None
        if self.one or H.shape[1] >= TUNING.worth_factors:
            c = range(H.shape[1])
            diagonal = H[:, c, c].copy()
            found = [self.lapack.dpotrf(each.T, lower=True, clean=False, overwrite_a=True) for each in H]
            if any(info for _, info in found):  # as far as floats go: elimination may still get somewhere
                self.H = np.tril(H, -1) + np.tril(H, -1).transpose(0, 2, 1)  # the other triangle is overwritten
                self.H[:, c, c] = diagonal
            else:
                self.factors = [factor for factor, _ in found]

    def __call__(self, right: Array, which: Array | None = None) -> Array:
        """H_j⁻¹ right_j, for all j or for these; NaN where one is singular to the last bit."""
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
    rows: Stack, least: Array, ridge: Array, Y: Array, start: Array, enough: float, spent: Spent
) -> tuple[Array, Array, Array]:
    """For each row of signs Y the z of least Σ ridge z² with y_i B_i·z ≥ least_i, from one with y_i B_i·z > 0, its p, and how
    many steps that took.

    Until p·s, s what is left of the inequalities, is a share `enough` of p·least. A row that is left out has an inequality that
    always holds.
    """
    counted = np.where(Y != 0, least, 0.0)  # what p·least is of: a row that is left out has s = 1 and says nothing about w
    least = np.where(Y != 0, least, -1.0)
    scores = Y * rows.scores(start)
    z = start * (1.2 / np.min(np.where(Y != 0, scores / least, math.inf), axis=1))[:, None]
    s = Y * rows.scores(z) - least
    p = (z * z @ ridge / (10 * Y.shape[1]))[:, None] / s
    found = z.copy(), np.where(np.isfinite(p), p, 0.0)
    todo, before, steps = np.arange(len(Y)), np.full(len(Y), math.inf), np.zeros(len(Y), np.int64)
    for _ in range(MOST_STEPS):
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
    return z, np.where((p > LIGHT * np.max(p, axis=1)[:, None]) & (Y != 0), p, 0.0), steps


def _step(rows: Stack, ridge: Array, y: Array, z: Array, p: Array, s: Array) -> tuple[Array, Array, Array]:
    """One step of predictor and corrector for each, as in `interior`."""
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
    t = (NEARLY * np.minimum(_room(s, ds), _room(p, dp)))[:, None]
    return z + t * dz, p + t * dp, s + t * ds


def _room(x: Array, dx: Array) -> Array:
    """The largest step, up to 1, that leaves x + step·dx ≥ 0."""
    return np.asarray(1.0 / np.maximum(1.0, -np.min(dx / x, axis=1)))


# ---- losses -------------------------------------------------------------------------------------------------------------


def least_losses(
    problem: Problem, signs: Array, asked: Objectives, tol: float, budget: Budget
) -> tuple[Array | None, Array, Objectives]:
    """Planes (k × columns, b last where there is one) near those of least loss for every column of signs, the steps of each, and
    what is asked, with what finders add to it: what a hinge was smoothed by, or weights of the rows that prove more than those
    that follow from the planes. C_i is c for all columns. There are no planes for a hinge of rows in memory, and for many rows
    there that are `narrow` or sparse, unless they are for `block_ascent`: conjugate gradients for one label vector leave out the
    rows that do not count in it, and cost less."""
    storage, (n, k), loss, c, intercept = problem.storage, signs.shape, asked.loss, asked.c, asked.intercept
    steps, d = np.zeros(k, np.int64), intercept.columns(problem.X.d)
    rows = Rows(storage, np.ones(n, np.int8), constant=intercept.exists, threads=budget.threads)
    space = RowSpace.of(rows, budget.time) if loss.smooth and _few(n, n + 1) else None
    if c.any() and _ascends(problem, d, k, loss):
        return _by_ascent(rows, signs, asked, tol, budget)
    together = space is not None or (_few(n, d) and applies(problem, intercept))
    shared = together or _shares_passes(problem, d) if loss.smooth else not storage.in_memory
    if not c.any() or not shared:
        return None, steps, asked
    if together and loss.smooth:
        return *_in_stacks(problem, signs, asked, space, tol, budget), asked

    def spent() -> bool:
        return time.perf_counter() >= budget.deadline

    found = np.full((k, d), math.nan)
    size = block_newton.block_size(rows, k)
    for lo in range(0, k, size):
        if spent():
            break
        Y = asked.signs if size == k else asked.signs[:, lo : lo + size]
        table = block_newton.Table(rows, Y, storage.to_storage_f64(c), loss, intercept.grouped, deadline=budget.time)
        W, steps[lo : lo + size], asked = _by_passes(table, asked, tol, spent)
        found[lo : lo + size] = W.T
    return found, steps, asked


def _ascends(problem: Problem, d: int, k: int, loss: Loss) -> bool:
    """Whether coordinate ascent is for several label vectors of these rows at once, where it would be for one (`finders`)."""
    storage = problem.storage
    wide = storage.in_memory and storage.sparse and d > NEWTON.most_factorized and storage.entries <= EPOCHS.most_entries
    return wide and loss is Loss.SQUARED_HINGE and k > 1 and fits(block_ascent.BYTES * (problem.X.n + d) * k)


def _by_ascent(rows: Rows, signs: Array, asked: Objectives, tol: float, budget: Budget) -> tuple[Array, Array, Objectives]:
    found = block_ascent.ascend_together(rows, signs, asked.c, asked.intercept, tol, budget)
    return found.planes, found.epochs, replace(asked, weights=found.alpha) if found.few else asked


def _in_stacks(
    problem: Problem, signs: Array, asked: Objectives, space: RowSpace | None, tol: float, budget: Budget
) -> tuple[Array, Array]:
    """The planes and steps of a smooth loss for few rows, some label vectors at a time; in the `space` of the rows, if there is
    one."""
    storage, (n, k), intercept = problem.storage, signs.shape, asked.intercept
    halted = threading.Event()

    def spent() -> bool:
        return halted.is_set() or time.perf_counter() >= budget.deadline

    plain: Any = storage.plain() if space is None else space.L
    X = np.asarray(plain.toarray() if storage.sparse else plain)
    A = np.ascontiguousarray(np.column_stack((X, np.ones(n))) if intercept.exists else X)
    J = np.ones(A.shape[1])
    J[-1] = not intercept.grouped
    found, steps = np.full((k, intercept.columns(problem.X.d)), math.nan), np.zeros(k, np.int64)

    def stack(lo: int, hi: int) -> None:
        blas_has_room()
        W, steps[lo:hi] = _least(A, signs.T[lo:hi].astype(np.float64), asked.loss, asked.c, J, tol, spent)
        found[lo:hi] = W if space is None else space.plane(W.T, refined=2).T

    size = stack_size(*A.shape)
    ranges = [(lo, min(lo + size, k)) for lo in range(0, k, size)]
    with blas_threads(storage.entries):
        try:
            in_threads(stack, ranges, budget.threads or available())
        finally:
            halted.set()
    return found, steps


def _by_passes(table: block_newton.Table, asked: Objectives, tol: float, spent: Spent) -> tuple[Array, Array, Objectives]:
    if asked.loss.smooth:
        return *block_newton.planes(table, tol, spent), asked
    W, steps, smoothed = block_newton.hinge_planes(table, tol, None, None)
    return W, steps, replace(asked, smoothing=block_newton.stated(smoothed))


def _few(n: int, d: int) -> bool:
    """Whether so many rows and columns are few enough for steps of many label vectors at a time."""
    return n * d <= TUNING.most_entries_of_a_loss


def _shares_passes(problem: Problem, d: int) -> bool:
    """Whether many rows are worth a pass for all label vectors at a time: of few long ones each is solved in their own space."""
    if not problem.storage.in_memory:
        return not problem.storage.sparse
    return not problem.storage.sparse and d > TUNING.narrow and not few_and_long(problem.X.n, d)


@np.errstate(all="ignore")
def _least(A: Array, Y: Array, loss: Loss, c: Array, J: Array, tol: float, spent: Spent) -> tuple[Array, Array]:
    """Newton's method for ½wᵀJw + Σ c_i ℓ(y_i A_i·w), for all rows of signs Y at a time."""
    d, rows = A.shape[1], Stack(A[None])
    w, z, used = np.zeros((len(Y), d)), np.zeros(Y.shape), Y != 0
    todo, steps, gains = np.arange(len(Y)), np.zeros(len(Y), np.int64), np.full(len(Y), math.inf)

    def value(w: Array, z: Array, own: Array) -> Array:
        return np.asarray(0.5 * (w * w) @ J + np.sum(np.where(own, c * loss.cost(z), 0.0), axis=1))

    for _ in range(TUNING.steps):
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
        before, t, falls = value(here, at, own), np.ones(len(todo)), np.zeros(len(todo), dtype=bool)
        for _ in range(TUNING.halvings):
            on = np.flatnonzero(~falls)
            far = t[on, None]
            after = value(here[on] + far * step[on], at[on] + far * ds[on], own[on])
            falls[on] = after <= before[on] + 1e-4 * t[on] * slope[on] + 1e-15 * before[on]
            if falls.all():
                break
            t[~falls] /= 2
        w[todo] = here + t[:, None] * step
        z[todo] = y * rows.scores(w[todo])
        steps[todo] += 1
        # what a step of Newton's method promises to gain: the gap is about that, until rounding is all that is left
        stuck = (-slope > 0.5 * gains[todo]) & (-slope < 1e-8 * before)
        gains[todo] = -slope
        todo = todo[np.isfinite(w[todo]).all(axis=1) & (-slope > SHARE_OF_TOL * tol * before) & ~stuck]
    return w, steps
