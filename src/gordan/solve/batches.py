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
from dataclasses import dataclass, replace
from functools import partial

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
from gordan.solve import block_newton
from gordan.solve.cancelling import dependence, in_floats
from gordan.solve.interior import LIGHT, MOST_STEPS, NEARLY, Coordinates


@dataclass(frozen=True)
class Tuning:
    """What decides whether rows are few enough, and how many label vectors are looked at together (`benchmarks/many.py`)."""

    # Columns at most, and entries of the rows at most: beyond these each label vector is worth the finders for one.
    most_columns: int = 400
    most_entries: int = 1 << 18
    most_entries_of_a_loss: int = 1 << 15
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


def search(evidence: TableEvidence, at: Array, budget: Budget, enough: float) -> None:
    """Look for planes and for rows that cancel, for these columns of signs, and offer them to the evidence.

    `enough` is the share of ‖w‖² that a plane may have too much to be called the widest.
    """
    intercept, X = evidence.intercept, evidence.X
    if not len(at):
        return
    R = math.sqrt(float(np.max(evidence.problem.X.norms)) ** 2 + intercept.exists)
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

    halted = threading.Event()

    def spent() -> bool:
        return halted.is_set() or time.perf_counter() >= budget.deadline

    def stack(lo: int, hi: int) -> None:
        blas_has_room()
        if not spent():
            _look(evidence, at[lo:hi], rows, few, R, enough, spent)

    size = stack_size(*rows.B.shape)
    ranges = [(lo, min(lo + size, len(at))) for lo in range(0, len(at), size)]
    try:
        in_threads(stack, ranges, budget.threads or available())
    finally:
        halted.set()  # after Ctrl-C other threads are still at work


@np.errstate(all="ignore")
def _look(evidence: TableEvidence, at: Array, rows: Coordinates, few: Coordinates, R: float, enough: float, spent: Spent) -> None:
    """The proposals for one stack of label vectors."""
    Y = evidence.signs.T[at].astype(np.float64)
    z, p = alternatives(few.B, Y, spent)
    over = np.flatnonzero(p.any(axis=1))
    if len(over):
        weights = p[over] / few.norms
        weights /= np.sum(weights, axis=1)[:, None]
        evidence.offer_cancelling(at[over], weights)
        for j, each in zip(at[over].tolist(), weights, strict=True):
            if not evidence.decided[j]:  # rows that do not span all others: there are further dependent columns
                support = np.flatnonzero(each)
                found = in_floats(evidence.column(j), support, each[support], evidence.intercept)
                if found is not None:
                    evidence.offer_one(j, found)
    apart = np.flatnonzero(np.isfinite(z).all(axis=1))
    if not len(apart):
        return
    z, Y = z[apart], Y[apart]
    if few is not rows:
        w, b = few.plane(z)
        whole = np.zeros((len(z), evidence.X.shape[1]))
        whole[:, [j for j in evidence.independent if j < whole.shape[1]]] = w
        z = rows.point(whole, b)
    z, p = widest(rows, Y, z, enough, spent)
    w, b = rows.plane(z)
    W, b, P = w.T, b * R, np.ascontiguousarray(p.T)
    length = np.sqrt(np.sum(W * W, axis=0) + (b * b if evidence.intercept.in_norm else 0.0))
    W, b = np.ascontiguousarray(W / length), b / length
    if evidence.intercept.grouped:  # midway between the classes
        scores = (evidence.X @ W).T * Y
        low, high = (np.min(np.where(Y * side > 0, scores, math.inf), axis=1) for side in (1, -1))
        b = high / 2 - low / 2
    evidence.offer_planes(at[apart], W, b, P)


def stack_size(n: int, c: int) -> int:
    """How many label vectors of n rows with c columns are looked at together."""
    return max(1, TUNING.stack // (n * c))


@np.errstate(all="ignore")
def alternatives(B: Array, Y: Array, spent: Spent) -> tuple[Array, Array]:
    """For each row of signs Y (m × n, 0 leaves out): a z with y_i B_i·z > 0, or NaN; and weights p of rows that cancel, or 0."""
    (n, c), m = B.shape, len(Y)
    z, p, s, used = np.full((m, c), math.nan), np.zeros((m, n)), np.zeros((m, n)), Y != 0
    u, todo, columns, moments = np.zeros((m, c)), np.arange(m), np.ascontiguousarray(B.T), Moments(B, m)
    for number in range(TUNING.steps):
        if not len(todo) or spent():
            break
        y, at, own = Y[todo], s[todo], used[todo]
        active = (at < 1) & own
        short = np.where(active, 1 - at, 0.0)
        down = (short * y) @ B
        alike = number == 0 and used.all()  # the first equations are those of all label vectors
        H = moments(active[:1] if alike else active)
        H[:, range(c), range(c)] += TUNING.ridge * np.count_nonzero(active[: len(H)], axis=1)[:, None]  # rows have length 1
        solve = Solver(H)
        step = solve(down)
        ds = y * (step @ columns)
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
            p[todo[over]] = _balanced(B, y[over], weights, own_solve)
        todo = todo[finite & ~apart & ~over]
    return z, p


def _balanced(B: Array, y: Array, p: Array, solve: Callable[[Array], Array]) -> Array:
    """Weights near p whose rows cancel as well as floats can tell; 0 where that leaves one negative."""
    kept = p > TUNING.light * np.max(p, axis=1)[:, None]
    p = np.where(kept, p, 0.0)
    left = (p * y) @ B
    p = np.where(kept, p - y * (solve(left) @ B.T), 0.0)
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


class Moments:
    """Σ_i h_ji B_i B_iᵀ for each row of weights h, at most m of them, in memory that is used again: to get it anew at each step
    takes as long as the products."""

    def __init__(self, B: Array, m: int) -> None:
        self.B, self.columns = B, np.ascontiguousarray(B.T)
        self._weighted, self._products = np.empty((m, *self.columns.shape)), np.empty((m, B.shape[1], B.shape[1]))

    def __call__(self, h: Array) -> Array:
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
def widest(rows: Coordinates, Y: Array, start: Array, enough: float, spent: Spent) -> tuple[Array, Array]:
    """For each row of signs Y the z of least Σ ridge z² with y_i B_i·z ≥ 1/norms_i, from one with y_i B_i·z > 0, and its p.

    Until p·s, s what is left of the inequalities, is a share `enough` of p·least. A row that is left out has an inequality that
    always holds.
    """
    B, ridge, columns = rows.B, rows.ridge, np.ascontiguousarray(rows.B.T)
    least = np.where(Y != 0, 1 / rows.norms, -1.0)
    scores = Y * (start @ columns)
    z = start * (1.2 / np.min(np.where(Y != 0, scores / least, math.inf), axis=1))[:, None]
    s = Y * (z @ columns) - least
    p = (z * z @ ridge / (10 * B.shape[0]))[:, None] / s
    found = z.copy(), np.where(np.isfinite(p), p, 0.0)
    todo, before, moments = np.arange(len(Y)), np.full(len(Y), math.inf), Moments(B, len(Y))
    for _ in range(MOST_STEPS):
        if not len(todo) or spent():
            break
        z, p, s = _step(B, moments, ridge, Y[todo], z, p, s)
        gap = np.sum(p * s, axis=1) / np.sum(p * least[todo], axis=1)
        fine = np.isfinite(gap) & np.isfinite(z).all(axis=1) & (gap > 0)
        found[0][todo[fine]], found[1][todo[fine]] = z[fine], p[fine]
        go = fine & (gap > enough) & ~((gap > before[todo]) & (gap < 1e-6))
        before[todo] = gap
        todo, z, p, s = todo[go], z[go], p[go], s[go]
    z, p = found
    return z, np.where((p > LIGHT * np.max(p, axis=1)[:, None]) & (Y != 0), p, 0.0) / rows.norms


def _step(B: Array, moments: Moments, ridge: Array, y: Array, z: Array, p: Array, s: Array) -> tuple[Array, Array, Array]:
    """One step of predictor and corrector for each, as in `interior`."""
    (n, c), columns = B.shape, moments.columns
    weights = p / s
    H = moments(weights)
    H[:, range(c), range(c)] += ridge
    here, solve = ridge * z, Solver(H)
    dz = solve(-here)
    ds = y * (dz @ columns)
    dp = -p - weights * ds
    mean = np.sum(p * s, axis=1) / n
    after = np.sum((p + _room(p, dp)[:, None] * dp) * (s + _room(s, ds)[:, None] * ds), axis=1) / n
    share = (((after / mean) ** 3 * mean)[:, None] - dp * ds) / s
    dz = solve((share * y) @ B - here)
    ds = y * (dz @ columns)
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
    """Planes (k × columns, b last where there is one) near those of least loss, for every column of signs, where C_i is c for all
    of them, the steps that each took, and what is asked, with what a hinge was smoothed by. No planes for a hinge of rows in
    memory, and for many sparse rows: conjugate gradients for one label vector leave out the rows that do not count in it, and
    cost less."""
    storage, (n, k), loss, c, intercept = problem.storage, signs.shape, asked.loss, asked.c, asked.intercept
    steps, d = np.zeros(k, np.int64), intercept.columns(problem.X.d)
    together = n * d <= TUNING.most_entries_of_a_loss and applies(problem, intercept)
    alone = storage.sparse and not together if loss.smooth else storage.in_memory
    if not c.any() or alone:
        return None, steps, asked
    halted = threading.Event()

    def spent() -> bool:
        return halted.is_set() or time.perf_counter() >= budget.deadline

    found = np.full((k, d), math.nan)
    if together and loss.smooth:
        plain = storage.plain()
        X = np.asarray(plain.toarray() if storage.sparse else plain)
        A = np.ascontiguousarray(np.column_stack((X, np.ones(n))) if intercept.exists else X)
        J = np.ones(A.shape[1])
        J[-1] = not intercept.grouped

        def stack(lo: int, hi: int) -> None:
            blas_has_room()
            found[lo:hi], steps[lo:hi] = _least(A, signs.T[lo:hi].astype(np.float64), loss, c, J, tol, spent)

        size = stack_size(*A.shape)
        ranges = [(lo, min(lo + size, k)) for lo in range(0, k, size)]
        with blas_threads(storage.entries):
            try:
                in_threads(stack, ranges, budget.threads or available())
            finally:
                halted.set()
        return found, steps, asked
    rows = Rows(storage, np.ones(n, np.int8), constant=intercept.exists, threads=budget.threads)
    size = block_newton.block_size(rows, k)
    for lo in range(0, k, size):
        if spent():
            break
        Y = asked.signs if size == k else asked.signs[:, lo : lo + size]
        table = block_newton.Table(rows, Y, storage.lift(c), loss, intercept.grouped, deadline=budget.time)
        W, steps[lo : lo + size], asked = _by_passes(table, asked, tol, spent)
        found[lo : lo + size] = W.T
    return found, steps, asked


def _by_passes(table: block_newton.Table, asked: Objectives, tol: float, spent: Spent) -> tuple[Array, Array, Objectives]:
    if asked.loss.smooth:
        return *block_newton.planes(table, tol, spent), asked
    W, steps, smoothed = block_newton.hinge_planes(table, tol, None, None)
    return W, steps, replace(asked, smoothing=smoothed.stated)


@np.errstate(all="ignore")
def _least(A: Array, Y: Array, loss: Loss, c: Array, J: Array, tol: float, spent: Spent) -> tuple[Array, Array]:
    """Newton's method for ½wᵀJw + Σ c_i ℓ(y_i A_i·w), for all rows of signs Y at a time."""
    d, columns, moments = A.shape[1], np.ascontiguousarray(A.T), Moments(A, len(Y))
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
        gradient = J * here - (c * a * y) @ A
        H = moments(h)
        H[:, range(d), range(d)] += J + TUNING.ridge * np.max(H[:, range(d), range(d)], axis=1)[:, None]
        step = -Solver(H)(gradient)
        ds, slope = y * (step @ columns), np.sum(gradient * step, axis=1)
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
        z[todo] = y * (w[todo] @ columns)
        steps[todo] += 1
        # what a step of Newton's method promises to gain: the gap is about that, until rounding is all that is left
        stuck = (-slope > 0.5 * gains[todo]) & (-slope < 1e-8 * before)
        gains[todo] = -slope
        todo = todo[np.isfinite(w[todo]).all(axis=1) & (-slope > SHARE_OF_TOL * tol * before) & ~stuck]
    return w, steps
