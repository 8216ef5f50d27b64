"""Newton's method with conjugate gradients for the losses of many label vectors, all of them in the same passes over the rows.

No array with an entry for each row is kept between passes, unless the rows are in memory: every pass computes scores, weights and
second derivatives piece by piece where the rows are, and returns sums over rows. So the method is the same for rows in memory, in
files, on a device or on other machines. Each label vector has its own step. The Hessian J + AᵀhA does not depend on the signs at
w = 0, so that it is the same for all label vectors. One factorization of it preconditions all steps until these take many
conjugate gradients, then one of the mean Hessian. If planes nearly separate the rows, few rows have a second derivative, and
other ones for each label vector: each is then solved on the rows nearest to its plane, to which rows on the wrong side are added
(`_on_few_rows`).

The columns of a multinomial loss belong to one problem: values, slopes and products are then sums over all columns, and a piece
of the rows is processed by other functions (`COUPLED`). Everything else is the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, as_dense, dot, namespace
from gordan.deadlines import UNLIMITED, Deadline
from gordan.losses import Loss, SmoothHinge, balancing_step, softmax
from gordan.memory import fits
from gordan.rows import Rows
from gordan.solve.loss_newton import (
    PART,
    Hessian,
    Interrupted,
    Line,
    derivatives,
    line_search,
    second_moment,
    seconds_for_a_factor,
)
from gordan.solve.loss_newton import TUNING as NEWTON


@dataclass(frozen=True)
class Tuning:
    """Constants of the method; `benchmarks/many.py` and `benchmarks/gpu.py` show what each choice costs."""

    # The gap in floats is brought to this share of the tolerance.
    share: float = 0.5
    steps: int = 200
    # Largest relative residual of conjugate gradients; the number of steps on a block of vectors that take as long as one step
    # for each of its vectors; and the smallest limit on their number that is worth beginning with: if a factorization costs less
    # than that, each label vector is left to the method for one.
    forcing: float = 0.1
    vectors_in_one: float = 6.0
    least_cg: int = 8
    # A preconditioner for each label vector: all of them may take this many bytes, or this many for each entry of X. They are
    # made once the last direction took this share of the conjugate gradients that cost as much. After a start from a part of the
    # rows, the first direction is expected to take `after_part` of them.
    own_of_entries: float = 2.0
    own_bytes: int = 1 << 26
    worth_own: float = 0.25
    after_part: int = 15
    # The shared preconditioner is made anew once a direction takes more conjugate gradients than this, and this many times as
    # many as when it was new.
    stale: float = 6.0
    more_than_fresh: float = 1.5
    # For rows in memory, the entries of the labels that are processed together, so that no pass takes long; and the smallest
    # number of label vectors that share passes.
    block: int = 1 << 20
    fewest: int = 4
    # A step is taken as it is if it leaves at most this share of the slope along it; otherwise these multiples of it are tried.
    slope_left: float = 0.5
    multiples: tuple[float, ...] = (0.002, 0.01, 0.03, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
    # With a free intercept, both classes must have the same mass up to this share of it, or this share times the tolerance.
    unequal: float = 1e-13
    unequal_of_tol: float = 1e-6
    # When the time is up: the largest number of moves of b, and the difference of the masses, relative to them, that ends these.
    balancings: int = 3
    balanced: float = 1e-8
    # How far a step may move a free b, relative to 1 + |b|.
    farthest: float = 1.0
    # The values of ε by which the hinge is smoothed; the tolerance for each of them, as a multiple of ε²; the share of the
    # tolerance to which the gap is brought; and the largest ε at which the rows near z = 1 are few enough to be stated.
    smoothings: tuple[float, ...] = (2.0, 0.5, 0.2, 0.08, 0.03, 0.015, 6e-3, 3e-3, 1e-3, 3e-4, 1e-4)
    of_square: float = 0.03
    hinge_share: float = 0.8
    most_stated: float = 0.1
    # Passes that follow after the last step.
    ending: float = 5.0
    # Steps on a part of the rows (`loss_newton.Part`).
    part_steps: int = 12
    # If at most `few` rows per column have a second derivative, the label vectors are solved on few rows each, once a direction
    # takes `patience` conjugate gradients. At most `incoming` rows per column are added at a time, in at most `rounds` rounds.
    few: int = 16
    patience: int = 24
    incoming: int = 8
    rounds: int = 40
    # Steps of Newton's method on these rows.
    exact_steps: int = 60


TUNING = Tuning()


@dataclass(eq=False)
class LossTable:
    """The losses of k label vectors.

    `rows` come without signs. The columns of signs Y (n × k, where 0 leaves a row out) and C_i are stored where the rows are. For
    a multinomial loss Y has a 1 in the column of the class of each row, and 0 elsewhere.
    """

    rows: Rows
    Y: Any
    c: Any
    loss: Loss | SmoothHinge
    free: bool
    seed: int = 1
    deadline: Deadline = UNLIMITED
    one_by_one: bool = True
    """Whether label vectors may be solved on few rows of their own."""
    pace: float = 0.0
    """Seconds of the slowest recent pass."""

    def spent(self) -> bool:
        """Return whether the passes that follow after the last step would end after the deadline if they began now."""
        return not self.deadline.affords(TUNING.ending * self.pace)

    @property
    def J(self) -> Array:
        """A column with 1 for every entry of w that counts in the norm, and 0 for a free b."""
        J = np.ones((self.rows.d, 1))
        J[-1] = not self.free
        return J

    @property
    def work(self) -> Work:
        """The functions that process a piece of the rows."""
        return COUPLED if self.loss.several else SEPARATE

    def dot(self, x: Array, y: Array) -> Array:
        """Return x·y for each label vector; for a multinomial loss, the sum over all classes for each of them."""
        found = np.sum(x * y, axis=0)
        return np.full_like(found, found.sum()) if self.loss.several else found

    def shifts(self, here: Point, unequal: float) -> tuple[Array, Array]:
        """Return how far to move b to give both classes the same mass, and where these differ by more than the share `unequal`.

        For a multinomial loss, each class is to have the mass of its own rows.
        """
        g = here.gradient[-1]
        apart = np.abs(g) > unequal * here.mass
        if not len(g):
            return g, apart
        if not self.loss.several:
            return -g / here.curvature_in_b, apart & (here.curvature_in_b > 0)
        step = balancing_step(g, here.curvature_in_b)
        return step, np.full(len(g), apart.any() and np.isfinite(step).all())

    def reduce(self, work: Any, W: Array, *more: Any, rough: bool = False, over_rows: tuple[Any, ...] = ()) -> list[Array]:
        """Return the sums of `work` over the rows for the planes W, which it gets with b as the last row, and its arguments."""
        constant = self.rows.constant
        if constant != 1:
            W = np.vstack((W[:-1], constant * W[-1:]) if constant else (W, np.zeros((1, W.shape[1]))))
        begin = time.perf_counter()
        found = self.rows.reduce(work, over_rows or (self.Y, self.c), (W, *more, self.loss), rough=rough)
        self.pace = max(time.perf_counter() - begin, 0.5 * self.pace)
        return found

    def curvatures(self, W: Array, todo: Array) -> Array | None:
        """Return the second derivatives of the losses of these label vectors (n × k) for rows in memory, else None."""
        return self.own_curvatures(W, todo) if self.rows.in_memory and not self.loss.several else None

    def own_curvatures(self, W: Array, todo: Array) -> Array:
        """Return for rows in memory the second derivative of each loss along each of these planes (n × k)."""
        scores = self.rows.scores(W)
        if self.loss.several:
            Q = softmax(scores)
            return np.asarray(self.c[:, None] * Q * (1 - Q))
        y, c = _counted(self.Y, self.c, todo)
        z = y * scores
        return np.asarray(c * self.loss.curvature(z, self.loss.weight(z)))

    def columns(self, sums: Array, mass: Array) -> Array:
        """Return Aᵀq from Xᵀq and Σ q."""
        return np.vstack((sums, self.rows.constant * mass)) if self.rows.constant else sums

    def at(self, W: Array, todo: Array) -> Point:
        """Return values and gradients at the planes W of these label vectors."""
        cost, sums, signed, bend, mass, active = self.reduce(self.work.slopes, W, todo)
        J = self.J
        value = 0.5 * self.dot(J * W, W) + cost
        return Point(value, J * W - self.columns(sums, signed), bend, mass, active)


class Point(NamedTuple):
    """The values and gradients of P at some planes.

    `bend` are the second derivatives in b (a matrix for a multinomial loss), `mass` is Σ α, or Σ C of each class, and `active` is
    the number of rows that have a second derivative.
    """

    value: Array
    gradient: Array
    curvature_in_b: Array
    mass: Array
    active: Array

    def some(self, which: Array) -> Point:
        """Return the part for these planes."""
        return Point(*(part[..., which] for part in self))

    def put(self, which: Array, other: Point) -> None:
        """Replace the part for these planes."""
        for mine, new in zip(self, other, strict=True):
            mine[..., which] = new


def block_size(rows: Rows, k: int) -> int:
    """Return how many of k label vectors are solved together."""
    return min(k, max(TUNING.fewest, TUNING.block // rows.n)) if rows.in_memory else k


@np.errstate(all="ignore")
def planes(
    table: LossTable, tol: float, spent: Callable[[], bool], start: Array | None = None, most: int = TUNING.steps
) -> tuple[Array, Array]:
    """Minimize ½wᵀJw + Σ c_i ℓ(y_i A_i·w) for each label vector, and return the planes w, as columns, and the steps of each.

    J = 0 for a free b, the last entry of w, and otherwise 1. There are at most `most` steps. Planes are not finite if floats
    overflow on the way. Ctrl-C raises `Interrupted` if there are planes already, of these rows or of a part of them.
    """
    known: Array | None = None
    try:
        for found in _steps(table, tol, spent, start, most):
            known = found[0].copy()
    except KeyboardInterrupt as stop:
        raise (stop if known is None else Interrupted(known)) from None
    return found


def _steps(
    table: LossTable, tol: float, spent: Callable[[], bool], start: Array | None, most: int
) -> Iterator[tuple[Array, Array]]:
    """Yield the planes and the number of their steps, in arrays that change, before each step and at the end."""
    rows, k = table.rows, table.Y.shape[1]
    precondition, W = Preconditioner(table), start
    if W is None:
        W = _from_part(table, tol, spent, precondition)
    steps, todo, J = np.zeros(k, np.int64), np.arange(k), table.J
    if start is None and W.any():
        yield W, steps
    first, here = np.full(k, math.nan), table.at(W, todo)
    for _ in range(most):
        yield W, steps
        size = table.dot(J * here.gradient, here.gradient)
        near = 0.5 * size <= TUNING.share * tol * here.value
        shift, unequal = table.shifts(here, max(TUNING.unequal, TUNING.unequal_of_tol * tol))
        shifted = near & unequal & table.free
        on = np.isfinite(here.value) & (~near | shifted)
        todo, here, size, shifted, near, shift = todo[on], here.some(on), size[on], shifted[on], near[on], shift[on]
        if not len(todo) or (spent() and (W.any() or not rows.in_memory)):  # in memory there is time for one step from w = 0
            break
        if precondition.used >= TUNING.patience and _few_count(table, here):
            steps[todo] += _one_by_one(table, W, todo, here, tol, spent)
            precondition = Preconditioner(table)
            continue
        step = np.zeros((rows.d, len(todo)))
        step[-1, shifted] = shift[shifted]
        far = np.flatnonzero(~shifted)
        if len(far):
            first[todo[far]] = np.fmax(first[todo[far]], size[far])
            enough = np.minimum(TUNING.forcing, (size[far] / first[todo[far]]) ** 0.25)
            # for rows outside memory there is no other method, which might use a factorization
            active = float(np.mean(here.active[far])) if rows.in_memory else rows.n
            worth = TUNING.patience if _few_count(table, here) else int(TUNING.vectors_in_one * _steps_for_a_factor(rows, active))
            if rows.in_memory and worth < TUNING.least_cg and W.any():
                break
            if not spent():
                precondition.renew(W, todo[far], worth)
            step[:, far], met, precondition.used = _conjugate_gradients(
                table, W[:, todo[far]], todo[far], here.gradient[:, far], precondition, CGLimits(enough, worth, spent)
            )
        last = W[:, todo]
        step = _limited(table, last, step)
        before, W[:, todo] = here, last + step
        here = table.at(W[:, todo], todo)
        steps[todo] += 1
        _shorten(table, W, todo, step, before, here)
        falls = here.value < before.value
        rises = ~(here.value <= before.value) & ~shifted & ~near
        W[:, todo[rises]] = last[:, rises]
        # a value that does not fall any more is the least one up to rounding
        better = falls | shifted | near
        todo, here = todo[better], here.some(better)
        if len(far) and not met and rows.in_memory and (precondition.each or not precondition.may_be_own):
            break  # a factorization for each label vector costs less
    if table.free and len(todo):
        _balance(table, W, todo, here)
    yield W, steps


def stated(loss: SmoothHinge) -> float:
    """Return ε if a certificate has to state the weights of few rows only, else 0, for the weights of the hinge itself."""
    return loss.epsilon if loss.epsilon <= TUNING.most_stated else 0.0


@np.errstate(all="ignore")
def hinge_planes(table: LossTable, tol: float, start: Array | None, max_iter: int | None) -> tuple[Array, Array, SmoothHinge]:
    """Return planes and steps for the hinge, from smoothed hinges with ever smaller ε, and the one whose widest gap is least.

    A row of weight a leaves a gap of Cεa(1-a), and the number of rows with 0 < a < 1 falls with ε, so the whole gap falls as ε².
    Ctrl-C raises `Interrupted`, as in `planes`.
    """
    k, known = table.Y.shape[1], None
    own, steps, W, widest = table, np.zeros(k, np.int64), start, math.inf
    best = np.zeros((table.rows.d, k)), SmoothHinge(TUNING.smoothings[0])
    try:
        for loss in map(SmoothHinge, TUNING.smoothings):
            own = replace(own, loss=loss)
            enough = max(tol, TUNING.of_square * loss.epsilon**2)
            W, more = planes(own, enough, own.spent, W, min(TUNING.steps, (max_iter or TUNING.steps**2) - int(steps.max())))
            known, steps = W, steps + more
            upper, lower = hinge_interval(own, W)
            gap = float(np.max((upper - lower) / upper))
            if not gap < widest and widest < PART.tol:
                break
            best, widest = (W.copy(), loss), gap
            if gap <= TUNING.hinge_share * tol or own.spent() or steps.max() == max_iter:
                break
        W, loss = best
        if table.free:
            own = replace(own, loss=loss)
            _balance(own, W, np.arange(k), own.at(W, np.arange(k)))
    except KeyboardInterrupt as stop:
        raise (stop if known is None or isinstance(stop, Interrupted) else Interrupted(known)) from None
    return W, steps, loss


def hinge_interval(table: LossTable, W: Array) -> tuple[Array, Array]:
    """Return upper and lower bounds, in floats, on the least value of the hinge, from the planes of a smoothed hinge."""
    every = np.arange(W.shape[1])
    here, rest = table.at(W, every), table.reduce(_corner, W, every)[0]
    upper = here.value + 0.5 * rest
    return upper, upper - (0.5 * table.dot(table.J * here.gradient, here.gradient) + rest)


def _balance(table: LossTable, W: Array, todo: Array, here: Point) -> None:
    """Move b so that both classes have the same mass, without which a plane proves little; `here` is what W[:, todo] has.

    Elsewhere than in memory, a pass that looks whether another move is needed may take as long as all passes before it.
    """
    for left in reversed(range(TUNING.balancings)):
        shift, unequal = table.shifts(here, TUNING.balanced)
        todo, shift = todo[unequal], shift[unequal]
        W[-1, todo] += shift
        if not len(todo) or not left or not (table.rows.in_memory or table.deadline.affords(table.pace)):
            return
        here = table.at(W[:, todo], todo)


def _from_part(table: LossTable, tol: float, spent: Callable[[], bool], precondition: Preconditioner) -> Array:
    """Return the planes of a random part of the rows if there are many rows per column, else 0; prepare the preconditioner."""
    rows, k = table.rows, table.Y.shape[1]
    zero = np.zeros((rows.d, k))
    if rows.n < PART.rows_per_column * rows.d or tol >= PART.tol or spent():
        return zero
    if table.loss is Loss.LOGISTIC and rows.in_memory and rows.n < PART.for_large_c * rows.d and _is_large(table):
        return zero
    part = part_of(table)
    if part is None:
        return zero
    W, _ = planes(part, PART.tol, lambda: part.deadline.passed or spent(), zero, TUNING.part_steps)
    rows.passes += part.rows.passes * part.rows.n / rows.n
    W = np.where(np.isfinite(W), W, 0.0)
    if W.any():
        precondition.prepare(part, W)
    return W


def part_of(table: LossTable) -> LossTable | None:
    """Return the losses of a random part of the rows; None if it does not fit in memory or lacks the rows of a label vector."""
    rows, storage = table.rows, table.rows.storage
    i = PART.choose(rows, table.seed)
    count = len(i)
    if count < PART.least_per_column * rows.d or not fits(8 * count * rows.d):
        return None
    rows.passes += count / rows.n
    own = replace(rows, storage=storage.part(i), signs=rows.signs[i])
    Y, c = storage.rows_of(table.Y, i), storage.rows_of(table.c, i)
    deadline = table.deadline.sooner(PART.share_of_time)
    part = replace(table, rows=own, Y=Y, c=c * (rows.n / count), deadline=deadline, one_by_one=False, pace=0.0)
    return part if bool((abs(part.Y).sum(0) > 0).all()) else None


def _is_large(table: LossTable) -> bool:
    """Return whether C is so large that a plane of part of the rows depends too much on its noise, as in `loss_newton.Part`."""
    return float(np.mean(table.c * table.rows.squares())) > PART.small


def _few_count(table: LossTable, here: Point) -> bool:
    """Return whether few rows have a second derivative on average, so that label vectors are better solved on few rows each."""
    if table.rows.in_memory or table.loss is not Loss.SQUARED_HINGE or not table.one_by_one:
        return False  # rows in memory have other methods for one label vector; a smoothed hinge gives many more rows a weight
    return float(np.mean(here.active)) <= TUNING.few * table.rows.d


def _one_by_one(table: LossTable, W: Array, todo: Array, here: Point, tol: float, spent: Callable[[], bool]) -> Array:
    """Solve these label vectors on few rows each, and return the steps of each; W and `here` are updated where values fall."""
    planes, steps = zip(*(_on_few_rows(table, j, W[:, j], tol, spent) for j in todo), strict=True)
    found = np.column_stack(planes)
    after = table.at(found, todo)
    lower = np.flatnonzero(after.value < here.value)
    W[:, todo[lower]] = found[:, lower]
    here.put(lower, after.some(lower))
    return np.array(steps)


def _on_few_rows(table: LossTable, j: int, w: Array, tol: float, spent: Callable[[], bool]) -> tuple[Array, int]:
    """Return the plane of one label vector, solved on a growing set of rows, and the steps.

    The set begins with the rows nearest to w, and rows with a score below 1 are added. If none is left outside, the plane is that
    of all rows.
    """
    storage = table.rows.storage
    y = table.Y[:, j]
    rows = replace(table.rows, signs=storage.to_host(y).astype(np.int8))
    inside, steps = np.empty(0, np.int64), 0
    for _ in range(TUNING.rounds):
        i, z = rows.lowest(w, TUNING.incoming * rows.d)
        new = i[np.isin(i, inside, invert=True) & ((z < 1) | (len(inside) == 0))]
        if spent() or not len(new):
            break
        inside = np.concatenate((inside, new))
        at = storage.to_storage_f64(inside)
        w, more = _exactly(rows.part(inside).residing(), table.c[at] * abs(y[at]), table.loss, table.J[:, 0], w, tol, spent)
        steps += more
    table.rows.passes += rows.passes
    return w, steps


def _exactly(rows: Rows, c: Any, loss: Any, J: Array, w: Array, tol: float, spent: Callable[[], bool]) -> tuple[Array, int]:
    """Minimize the loss of few rows, with their signs, by Newton's method with factorizations; return the plane and the steps."""
    every, ridge = rows.to_storage_f64(np.arange(rows.n)), rows.to_storage_f64(np.diag(J))
    along = derivatives(lambda z: c * loss.weight(z), lambda z, alpha: c * loss.curvature(z, loss.weight(z)))
    steps = 0
    while True:
        z = rows.to_storage_f64(rows.scores(w))
        a = loss.weight(z)
        gradient, value = J * w - rows.combine(c * a), 0.5 * dot(J * w, w) + float((c * loss.cost(z)).sum())
        near = 0.5 * dot(J * gradient, gradient) <= TUNING.share * tol * value
        level = J[-1] > 0 or abs(gradient[-1]) <= TUNING.balanced * float((c * a).sum())
        if (near and level) or steps == TUNING.exact_steps or spent():
            return w, steps
        step = rows.solve(rows.moments(c * loss.curvature(z, a), every)[0] + ridge, -gradient)
        if step is None:
            return w, steps
        line = Line(z, rows.to_storage_f64(rows.scores(step)), dot(J * w, step), dot(J * step, step))
        w = w + line_search(line, along, TUNING.slope_left * abs(dot(gradient, step))) * step
        steps += 1


def _limited(table: LossTable, W: Array, step: Array) -> Array:
    """Return the steps from W, shortened where they move a free b too far: a hinge may have no curvature along b."""
    if not table.free:
        return step
    most = TUNING.farthest * (1 + np.abs(W[-1]))
    factor = np.minimum(1.0, most / np.maximum(np.abs(step[-1]), most))
    return np.asarray(step * (np.min(factor) if table.loss.several else factor))


def _shorten(table: LossTable, W: Array, todo: Array, step: Array, before: Point, here: Point) -> None:
    """Replace steps of a wrong length, in W and `here`, by multiples with a slope of about 0, by interpolation in one pass."""
    start, end = (table.dot(look.gradient, step) for look in (before, here))
    off = np.flatnonzero(~(np.abs(end) <= TUNING.slope_left * np.abs(start)) & (start < 0))
    if not len(off):
        return
    own, s, multiples = todo[off], step[:, off], np.array(TUNING.multiples)[:, None]
    base, J = W[:, own] - s, table.J
    wide = np.hstack((base, s))
    slopes = multiples * table.dot(J * s, s) + table.dot(J * base, s)
    slopes -= table.reduce(table.work.along, wide, own, multiples[:, 0], rough=True)[0]
    known = np.vstack((start[off], slopes))
    at = np.vstack((np.zeros((1, 1)), multiples))
    last = np.argmax(np.vstack((known > 0, np.ones((1, len(off)), dtype=bool))), axis=0)  # the first that is too far, if any
    low, high = np.maximum(last - 1, 0), np.minimum(last, len(multiples))
    line = np.arange(len(off))
    left, right = known[low, line], known[high, line]
    t = np.where(right > left, at[low, 0] - left * (at[high, 0] - at[low, 0]) / (right - left), at[high, 0])
    t = np.where(last > len(multiples), at[-1, 0], t)
    W[:, own] = base + t * s
    here.put(off, table.at(W[:, own], own))


@dataclass(eq=False)
class Preconditioner:
    """The preconditioner of conjugate gradients, which solves with J + AᵀhA unless there are too many columns.

    At first h is that of w = 0, which all label vectors share, later their mean, or `each` label vector has its own. `used` is
    the number of conjugate gradients that the last direction took.
    """

    table: LossTable
    used: int = 0
    shared: Callable[[Array], Array] = np.array  # a copy
    each: dict[int, Callable[[Array], Array]] = field(default_factory=dict)
    hessians: dict[int, Hessian] = field(default_factory=dict)
    """The matrices AᵀhA of `each`."""
    fresh: float = math.nan
    """The number of conjugate gradients of the first direction after it was made."""

    @property
    def may_be_own(self) -> bool:
        """Whether each label vector may have its own: for dense rows in memory that are not a part, and if all of them fit."""
        table, rows = self.table, self.table.rows
        size = 8 * table.Y.shape[1] * rows.d**2
        dense = rows.is_array and rows.d <= NEWTON.most_factorized
        room = size <= max(TUNING.own_bytes, TUNING.own_of_entries * rows.entries) and fits(2 * size)
        return dense and room and table.one_by_one and not table.loss.several

    def prepare(self, part: LossTable, W: Array) -> None:
        """Expect of the first direction what is usual at planes W of a part, or take the matrices of a part in memory for all."""
        self.used, rows = TUNING.after_part, part.rows
        if self.table.rows.in_memory or not rows.in_memory or rows.d > NEWTON.most_factorized:
            return
        if not fits(16 * W.shape[1] * rows.d**2):
            return
        for j, h in enumerate(part.own_curvatures(W, np.arange(W.shape[1])).T):
            if not part.deadline.affords(seconds_for_a_factor(rows, rows.n, part.deadline.pace)):
                self.each.clear()
                return
            self.each[j] = rows.storage.solver_for(second_moment(rows, np.flatnonzero(h), h[h != 0]) + np.diag(part.J[:, 0]))

    def _affords_a_factor(self, active: int) -> bool:
        """Return whether there is time for a factorization for so many rows, if it is made on this machine."""
        table, rows = self.table, self.table.rows
        return rows.storage.elsewhere or table.deadline.affords(seconds_for_a_factor(rows, active, table.deadline.pace))

    def solve(self, r: Array, own: Array) -> Array:
        """Return the preconditioned residuals r of these label vectors, as columns.

        A label vector without a preconditioner of its own gets the shared one.
        """
        if not self.each:
            return self.shared(r)
        return np.column_stack([self.each.get(j, self.shared)(r[:, i]) for i, j in enumerate(own.tolist())])

    def renew(self, W: Array, todo: Array, worth: int) -> None:
        """Make or renew the preconditioner if that saves time; one for each label vector costs `worth` conjugate gradients."""
        d, rows = self.table.rows.d, self.table.rows
        if math.isnan(self.fresh):
            self.fresh = self.used or math.nan
        made = self.shared is not np.array
        if 0 < self.used >= TUNING.worth_own * worth and self.may_be_own and self._renew_each(W[:, todo], todo):
            return
        if self.each or not NEWTON.factorizes(d):
            return
        if made and not self.used > max(TUNING.stale, TUNING.more_than_fresh * self.fresh):
            return
        if not self._affords_a_factor(rows.n):
            return
        # the second derivatives at w = 0 are the same for all label vectors; but those of a smoothed hinge are 0 there
        own = made or len(todo) == 1 or isinstance(self.table.loss, SmoothHinge)
        at = W[:, todo] if own else 0.0 * W[:, todo]
        H, sums, mass = self.table.reduce(self.table.work.moments, at, todo, rough=True)
        if rows.constant:
            column = rows.constant * sums[:, None]
            H = np.block([[H, column], [column.T, np.full((1, 1), rows.constant**2 * mass)]])
        H = H + np.diag(self.table.J[:, 0])
        if np.isfinite(H).all() and (np.diagonal(H) > 0).all():
            self.shared, self.fresh, self.used = rows.storage.solver_for(H), math.nan, 0

    def _renew_each(self, W: Array, todo: Array) -> bool:
        """Make a preconditioner for each of these label vectors; return whether time and the range of floats allow it."""
        table, rows = self.table, self.table.rows
        curvatures = table.curvatures(W, todo)
        assert curvatures is not None
        for h, j in zip(curvatures.T, todo.tolist(), strict=True):
            afforded = self._affords_a_factor(int(np.count_nonzero(h))) and not table.spent()
            hessian = Hessian.of(rows, h, self.hessians.get(j)) if afforded else None
            if hessian is None or not np.isfinite(hessian.products).all():
                self.each.clear()
                return False
            self.hessians[j] = hessian
            self.each[j] = rows.storage.solver_for(hessian.products + np.diag(table.J[:, 0]))
        self.fresh, self.used = math.nan, 0
        return True


class CGLimits(NamedTuple):
    """When conjugate gradients stop: at a residual (as a share of the first), after so many steps, or when the time is up."""

    enough: Array
    most: int
    spent: Callable[[], bool]


def _conjugate_gradients(
    table: LossTable,
    W: Array,
    todo: Array,
    gradient: Array,
    precondition: Preconditioner,
    effort: CGLimits,
) -> tuple[Array, bool, int]:
    """Solve (J + AᵀhA) s = -gradient approximately for each column s.

    Return these, whether most of them converged, and the number of steps.
    """
    most = max(effort.most, TUNING.least_cg)
    step, r, h = np.zeros_like(gradient), -gradient, table.curvatures(W, todo)
    q = precondition.solve(r, todo)
    p, rq = q, table.dot(r, q)
    aim, left, J = effort.enough**2 * rq, np.arange(gradient.shape[1]), table.J
    used = 0
    while used < most:
        used += 1
        if not len(left) or (effort.spent() and (step.any() or not table.rows.in_memory)):
            break
        if h is None:
            weighted_scores = table.reduce(table.work.curved, np.hstack((W[:, left], p)), todo[left], rough=True)
        else:
            weighted_scores = table.reduce(_hessian_times, p, left, rough=True, over_rows=(h,))
        Hp = J * p + table.columns(*weighted_scores)
        bend = table.dot(p, Hp)
        t = np.where(bend > 0, rq / bend, 0.0)
        step[:, left] += t * p
        r = r - t * Hp
        q = precondition.solve(r, todo[left])
        new = table.dot(r, q)
        p = q + (new / rq) * p
        on = (new > aim[left]) & (bend > 0)
        left, p, r, rq = left[on], p[:, on], r[:, on], new[on]
    return step, 2 * len(left) <= gradient.shape[1], used


def _steps_for_a_factor(rows: Rows, active: float) -> float:
    """Return how many conjugate gradients for one vector cost as much as a factorization for this many rows with h > 0."""
    per_row = rows.entries / rows.n
    return (active * per_row * NEWTON.dense_pair * rows.d + NEWTON.cube * rows.d**3) / rows.entries


# ---- work on a piece of the rows, done where it is stored ----------------------------------------------------------------


class Work(NamedTuple):
    """Functions of a piece of the rows: a `Point`, products with the Hessian, moments of a preconditioner, slopes along steps."""

    slopes: Callable[..., tuple[Any, ...]]
    curved: Callable[..., tuple[Any, ...]]
    moments: Callable[..., tuple[Any, ...]]
    along: Callable[..., tuple[Any, ...]]


def _counted(y: Any, c: Any, todo: Any) -> tuple[Any, Any]:
    """Return the signs of these label vectors, and C_i where they are not 0."""
    y = y[:, todo]
    return y, c[:, None] * abs(y)


def _slopes(x: Any, y: Any, c: Any, W: Any, todo: Any, loss: Any) -> tuple[Any, ...]:
    y, c = _counted(y, c, todo)
    z = y * (x @ W[:-1] + W[-1])
    a = loss.weight(z)
    mass = c * a
    signed, bend = y * mass, c * loss.curvature(z, a)
    return (c * loss.cost(z)).sum(0), x.T @ signed, signed.sum(0), bend.sum(0), mass.sum(0), (bend > 0).sum(0)


def _curved(x: Any, y: Any, c: Any, wide: Any, todo: Any, loss: Any) -> tuple[Any, ...]:
    y, c = _counted(y, c, todo)
    both, k = x @ wide[:-1] + wide[-1], y.shape[1]
    z = y * both[:, :k]
    weighted_scores = c * loss.curvature(z, loss.weight(z)) * both[:, k:]
    return x.T @ weighted_scores, weighted_scores.sum(0)


def _hessian_times(x: Any, h: Any, p: Any, left: Any, loss: Any) -> tuple[Any, ...]:
    """Return the same as `_curved` for known second derivatives h."""
    weighted_scores = h[:, left] * (x @ p[:-1] + p[-1])
    return x.T @ weighted_scores, weighted_scores.sum(0)


def _moments(x: Any, y: Any, c: Any, W: Any, todo: Any, loss: Any) -> tuple[Any, ...]:
    """Return Σ h x xᵀ, Σ h x and Σ h for the mean h of these label vectors."""
    y, c = _counted(y, c, todo)
    z = y * (x @ W[:-1] + W[-1])
    return _second_moments(x, (c * loss.curvature(z, loss.weight(z))).mean(1))


def _second_moments(x: Any, h: Any) -> tuple[Any, ...]:
    size = h.max() + 1e-30
    rows = ((h / size) ** 0.5)[:, None] * x  # a product of a matrix with its own transpose is half the work
    return as_dense(rows.T @ rows) * size, (x.T @ h[:, None])[:, 0], h.sum(0)


def _corner(x: Any, y: Any, c: Any, W: Any, todo: Any, loss: SmoothHinge) -> tuple[Any, ...]:
    """Return Σ Cεa(1-a), the gap that the smoothing leaves."""
    y, c = _counted(y, c, todo)
    a = loss.weight(y * (x @ W[:-1] + W[-1]))
    return ((loss.epsilon * c * a * (1.0 - a)).sum(0),)


def _along(x: Any, y: Any, c: Any, wide: Any, todo: Any, multiples: Any, loss: Any) -> tuple[Any, ...]:
    """Return Σ c a(z + t u) u for each multiple t, where z and u are the scores of the first and second half of `wide`."""
    y, c = _counted(y, c, todo)
    both, k = x @ wide[:-1] + wide[-1], y.shape[1]
    z, u = y * both[:, :k], y * both[:, k:]
    found = namespace(z).stack([(c * loss.weight(z + t * u) * u).sum(0) for t in multiples])
    return (found,)


SEPARATE = Work(_slopes, _curved, _moments, _along)


def _class_slopes(x: Any, y: Any, c: Any, W: Any, todo: Any, loss: Any) -> tuple[Any, ...]:
    S = x @ W[:-1] + W[-1]
    xp, Q = namespace(S), softmax(S)
    top = xp.amax(S, 1)
    losses = xp.log(xp.exp(S - top[:, None]).sum(1)) + (top - (S * y).sum(1))
    others = Q * (1 - y)  # C minus its own weight, without losing the digits of a small difference
    signed, weighted = c[:, None] * (y * others.sum(1)[:, None] - others), c[:, None] * Q
    bend, mass = xp.diag(weighted.sum(0)) - weighted.T @ Q, (c[:, None] * y).sum(0)
    return (c * losses).sum(0), x.T @ signed, signed.sum(0), bend, mass, 0.0 * mass + len(y)


def _class_curved(x: Any, y: Any, c: Any, wide: Any, todo: Any, loss: Any) -> tuple[Any, ...]:
    both, k = x @ wide[:-1] + wide[-1], y.shape[1]
    Q = softmax(both[:, :k])
    weighted_scores = Q * both[:, k:]
    weighted_scores = c[:, None] * (weighted_scores - Q * weighted_scores.sum(1)[:, None])
    return x.T @ weighted_scores, weighted_scores.sum(0)


def _class_moments(x: Any, y: Any, c: Any, W: Any, todo: Any, loss: Any) -> tuple[Any, ...]:
    """Return the moments for the mean h of the second derivatives of a row's loss, over the directions in which it has any."""
    Q = softmax(x @ W[:-1] + W[-1])
    return _second_moments(x, c * (1.0 - (Q * Q).sum(1)).clip(min=0.0) / (y.shape[1] - 1))


def _class_along(x: Any, y: Any, c: Any, wide: Any, todo: Any, multiples: Any, loss: Any) -> tuple[Any, ...]:
    both, k = x @ wide[:-1] + wide[-1], y.shape[1]
    S, U = both[:, :k], both[:, k:]
    own = (y * U).sum(1)
    found = [(c * (own - (softmax(S + t * U) * U).sum(1))).sum(0) for t in multiples]
    return (namespace(S).stack(found)[:, None],)


COUPLED = Work(_class_slopes, _class_curved, _class_moments, _class_along)
