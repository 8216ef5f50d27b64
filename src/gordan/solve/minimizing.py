"""Finders of the least value of a loss: Newton's method for smooth losses, the method of multipliers for the hinge.

They work in floating point and prove nothing: the evidence has their proposals checked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.checkpoint import checkpointed, fingerprint
from gordan.deadlines import UNLIMITED, Deadline
from gordan.errors import BeyondFloats
from gordan.ledger.optimum import MAX_WEIGHTS, LossEvidence, LossQuestion
from gordan.ledger.question import Proposal
from gordan.losses import Loss
from gordan.rows import Ascent, Offset, Rows
from gordan.solve import block_newton
from gordan.solve.block_ascent import with_equal_masses
from gordan.solve.loss_newton import (
    PART,
    Curvature,
    Interrupted,
    Line,
    Newton,
    Weights,
    bordered,
    derivatives,
    line_search,
    steps_for_a_factor,
)
from gordan.solve.loss_newton import TUNING as NEWTON
from gordan.solve.row_softmax import RowSoftmaxNewton
from gordan.solve.row_space import RowSpace
from gordan.solve.softmax_newton import TUNING as SOFTMAX
from gordan.solve.softmax_newton import Look, SoftmaxNewton
from gordan.statuses import Ending
from gordan.trace import Moment, Trace


@dataclass(frozen=True)
class Tuning:
    """Constants of the finders; `benchmarks/losses.py` shows what each choice costs."""

    # The gap in floats is brought to this share of the tolerance, because the proved gap is a little wider.
    share: float = 0.8
    # A smaller gap in floats may narrow a proved gap if it is at least this share of it.
    proved: float = 0.1
    most_steps: int = 500
    # After this many steps without a smaller gap, or a value smaller by `progress`, rounding is taken to stop the method.
    patience: int = 6
    progress: float = 1e-6
    # A gap below this share of the value is lost in the rounding of the value.
    lost: float = 1e-16
    # At a gap of this share of the value w has all the digits that it can have.
    settled: float = 1e-26
    # The squared hinge of dense rows that a plane nearly separates: if the relative gap is above one of these after so many
    # steps, it is solved again with shares of C first (`loss_newton`).
    continued: tuple[tuple[int, float], ...] = ((4, 1e4), (8, 1e3), (40, 10.0))
    # How many sets of rows with weight are tried, and how far below 1 rounding alone may leave a score.
    supports: int = 100
    lost_of_one: float = 1e-14
    # A start that led to no proved interval narrower than this is dropped.
    astray: float = 0.1


@dataclass(frozen=True)
class Multipliers:
    """Constants of the method of multipliers.

    The first `smoothing` is in units of 1/(mean C); it is multiplied by `shrink` whenever the first part of the gap is at most
    `inner` times the second. Until the gap is `narrow`, more steps without progress are allowed (`patience`). A gap that is
    `least` is mostly rounding error: after `idle` steps in which it does not halve, no more are taken.
    """

    smoothing: float = 30.0
    smoothing_after_part: float = 0.1
    shrink: float = 0.5
    inner: float = 0.1
    patience: int = 80
    narrow: float = 1e-6
    least: float = 1e-12
    idle: int = 2


@dataclass(frozen=True)
class Epochs:
    """How many epochs of coordinate ascent are run.

    The gap is first computed after `first` epochs, then after intervals that grow by `growth` up to `most_at_a_time`, and
    there are at most `most` epochs. If the gap of the hinge is expected to be small enough sooner, it is computed after
    `margin` times as many epochs as that would take, but at least `first`. For the squared hinge Newton's method takes over
    once the gap of the ascent is within `near` tolerances; with a free intercept after `free` epochs, from the plane with a
    penalized intercept at a gap of `neighbour`. For the hinge, `before_multipliers` epochs precede the method of multipliers
    if C ‖x‖² is at most `small` on average and there are at most `most_entries`: rows are visited in random order, which is
    slow where they are not in a cache. The squared hinge of sparse rows is left to Newton's method if there are at least
    `rows_per_column`, or one per column if rows have few entries, and C ‖x‖² is at least `newton` on average: most rows have
    weight then, and their weights depend on each other.
    """

    first: float = 3.0
    growth: float = 1.5
    most_at_a_time: float = 100.0
    margin: float = 1.2
    most: int = 3000
    near: float = 1.0
    free: int = 200
    neighbour: float = 1e-2
    small: float = 1.0
    before_multipliers: int = 60
    most_entries: int = 1 << 22
    rows_per_column: int = 2
    newton: float = 0.5


TUNING, MULTIPLIERS, EPOCHS = Tuning(), Multipliers(), Epochs()


@dataclass(frozen=True, eq=False)
class Task:
    """A loss to be minimized: the signed rows, with a column of ones if there is an intercept, and C_i for each row."""

    rows: Rows
    c: Array
    loss: Loss
    free: bool
    tol: float
    time: Deadline = UNLIMITED
    seed: int = 1
    which: Array | None = None
    """The class of each row, if the loss is multinomial."""
    max_iter: int | None = None
    alpha: Array | None = None
    """Weights of the rows to start from, for methods that use them."""
    partial: bool = False
    """Whether the rows are a part that is solved first."""

    @property
    def classes(self) -> set[int]:
        """The classes that have rows."""
        return {*np.unique(self.rows.signs if self.which is None else self.which).tolist()}

    def part(self, i: Array) -> Task:
        """Return the task for these rows alone, with C_i increased to stand for all rows."""
        rows, which = self.rows.take(i), None if self.which is None else self.which[i]
        c, tol = self.c[i] * (self.rows.n / len(i)), max(PART.tol, self.tol)
        time = self.time.sooner(PART.share_of_time)
        return replace(self, rows=rows, c=c, tol=tol, time=time, which=which, alpha=None, partial=True)

    def weights(self, z: Array) -> Array:
        """Return the weights C a(z) of a smooth loss at scores z."""
        return np.asarray(self.c * self.loss.weight(z))

    def curvature(self, z: Array, alpha: Array) -> Array:
        """Return the second derivatives of the losses, by which these weights fall as z grows."""
        return np.asarray(self.c * self.loss.curvature(z, alpha / self.c))

    def after(self, steps: int) -> Task:
        """Return the task for a method that goes on after so many steps."""
        return self if self.max_iter is None else replace(self, max_iter=self.max_iter - steps)

    def value(self, w: Array, z: Array) -> float:
        """Return the value P of the plane w, whose scores are z."""
        v = w[:-1] if self.free else w
        return 0.5 * float(v @ v) + float(self.c @ self.loss.cost(z))

    def dual(self, alpha: Array, v: Array) -> float:
        """Return the dual value D of the weights α with Aᵀα = v; with a free b, Σ y α = 0 is taken for granted."""
        v = v[:-1] if self.free else v
        with np.errstate(invalid="ignore", divide="ignore"):
            paid = self.c @ self.loss.paid(np.where(self.c > 0, alpha / self.c, 0.0))
        return float(paid) - 0.5 * float(v @ v)

    def balanced_dual(self, alpha: Array, v: Array, w: Array) -> float:
        """Return D, reduced if Σ y α should be 0 and is not: P - D = ½‖w - v‖² + Σ C FY - b Σ y α, whose last term must be 0."""
        imbalance = float(w[-1]) * float(alpha @ self.rows.signs) if self.free else 0.0
        return self.dual(alpha, v) - imbalance - abs(imbalance)


@checkpointed("minimize_loss.found")
@dataclass(frozen=True, eq=False)
class Found:
    """A plane (w has b as its last entry if there is an intercept), weights, and the interval that they give in floats."""

    w: Array
    alpha: Array
    lower: float
    upper: float
    steps: int
    stated: bool = False
    """Whether the weights of a smooth loss are more than those that follow from the plane."""
    smoothing: float | None = None
    """The smoothing of the hinge, if its weights follow from the plane in that way."""
    unaided: bool = False
    """Whether conjugate gradients without a factorization found the plane."""

    @property
    def bracket_width(self) -> float:
        """(upper - lower)/upper."""
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0

    @property
    def width(self) -> float:
        """The width of the interval that a proof gives, whose lower end is at least 0; NaN counts as infinite."""
        width = self.upper - max(self.lower, 0.0)
        return width if width < math.inf else math.inf


Find = Callable[[Task, Array | None], Iterator[Found]]


def proposing(find: Find) -> Callable[[LossQuestion, LossEvidence, object], Iterator[Proposal]]:
    """Return the finder that proposes the planes of this method."""
    return lambda question, evidence, decide_sign: _proposals(question, evidence, find)


def by_passes_alone(question: LossQuestion, evidence: LossEvidence, decide_sign: object) -> Iterator[Proposal]:
    """Propose the plane of Newton's method by passes that return sums, for rows in files, on devices or on other machines.

    This is the method for many label vectors, with one of them, or with one for each class of a multinomial loss.
    """
    rows, budget, which = question.rows, question.budget, question.which
    bare = replace(rows, signs=np.ones(rows.n, np.int8))
    labels = rows.signs[:, None] if which is None else (which[:, None] == np.arange(question.vectors)).astype(np.int8)
    table = block_newton.LossTable(
        bare,
        rows.storage.to_storage(labels, "y"),
        rows.storage.to_storage_f64(question.c),
        question.objective.loss,
        question.objective.intercept.grouped,
        budget.seed,
        budget.time,
    )
    start, done = question.play.start, 0
    find = _smoothed if table.loss is Loss.HINGE else _by_table
    for first in (None,) if start is None else (question.inward(start).reshape(rows.d, -1).copy(), None):
        try:
            found = find(table, question, first, None if budget.max_iter is None else budget.max_iter - done)
        except Interrupted as stop:
            w = question.outward(stop.planes[:, 0] if which is None else stop.planes)
            yield replace(_unmeasured(w, question, 0.0 if table.loss is Loss.HINGE else None), stopped=True)
            return
        done += found.steps
        rows.passes, bare.passes = rows.passes + bare.passes, 0.0
        found = replace(found, w=question.outward(found.w), steps=done)
        yield _proposal(found, [_moment(found, question)], question)
        if evidence.bracket_width <= TUNING.astray or done == budget.max_iter or table.spent():
            return


def _by_table(table: block_newton.LossTable, question: LossQuestion, start: Array | None, most: int | None) -> Found:
    """Return the plane of a smooth loss, or those of several classes."""
    W, steps = block_newton.planes(table, question.tol, table.spent, start, block_newton.TUNING.steps if most is None else most)
    if table.free and question.which is not None:
        W[-1] -= np.mean(W[-1])
    looked = table.at(W, np.arange(question.vectors))
    upper, gap = float(looked.value[0]), 0.5 * float(table.dot(table.J * looked.gradient, looked.gradient)[0])
    return Found(W[:, 0] if question.which is None else W, np.empty(0), upper - gap, upper, int(steps[0]))


def _smoothed(table: block_newton.LossTable, question: LossQuestion, start: Array | None, most: int | None) -> Found:
    """Return the plane of the smoothed hinge."""
    W, steps, loss = block_newton.hinge_planes(table, question.tol, start, most)
    W = np.where(np.isfinite(W), W, 0.0)
    upper, lower = block_newton.hinge_interval(replace(table, loss=loss), W)
    bracket = float(lower[0]), float(upper[0])
    return Found(W[:, 0], np.empty(0), *bracket, int(steps[0]), smoothing=block_newton.stated(loss))


def _proposals(question: LossQuestion, evidence: LossEvidence, find: Find) -> Iterator[Proposal]:
    """Propose the planes of a method whenever their gap is small enough in floats, and at the end."""
    objective, budget = question.objective, question.budget
    task = Task(
        question.rows,
        question.c,
        objective.loss,
        objective.intercept.grouped,
        question.tol,
        budget.time,
        budget.seed,
        question.which,
        budget.max_iter,
    )
    enough, moments, offered, stopped = TUNING.share * question.tol, list[Moment](), False, False
    found, best, known, earlier = None, None, None, _earlier(question)
    task, start = (task, question.play.start) if earlier is None else (replace(task, alpha=earlier.alpha), earlier.w)
    start = None if start is None else question.inward(start)
    try:
        for found in _until_overflow(_in_row_space(find, task, start, evidence), question):
            found, offered = replace(found, w=question.outward(found.w)), False
            best = found if best is None or _is_better(found, best, objective.loss) else best
            _write(question, found, earlier, at_once=False)
            moment = _moment(_kept(found, earlier, objective.loss), question)
            moments.append(moment)
            if question.play.watch is not None and question.play.watch(moment):
                stopped = True
                break
            if found.bracket_width <= enough or found.stated:
                offered = True
                yield _proposal(found, moments, question)
                # if the proved gap is much wider than the one in floats, that is due to rounding: only the last step is proposed
                # again
                enough = found.bracket_width / 4 if found.bracket_width > TUNING.proved * evidence.bracket_width else -1.0
            if budget.max_iter is not None and found.steps >= budget.max_iter:
                break
    except KeyboardInterrupt as stop:
        stopped = True
        known = stop.planes if isinstance(stop, Interrupted) else None
    finally:
        _write(question, found, earlier, at_once=True)
    if found is not None and best is not None and not offered:
        # a search that is stopped after it began anew may be behind where it was before
        ended = stopped or task.time.passed or (budget.max_iter is not None and found.steps >= budget.max_iter)
        last = _proposal(replace(best, steps=found.steps) if ended else found, moments, question)
        yield replace(last, stopped=stopped)
    elif found is None and known is not None:
        yield replace(_unmeasured(question.outward(known), question), stopped=True)
    elif stopped:
        yield Proposal(stopped=True)


def _is_better(found: Found, other: Found, loss: Loss) -> bool:
    """Return whether a plane is to be preferred if the search is stopped: by its interval, or for several classes by its value.

    The lower end that planes of several classes prove is 0 until they are near the best ones.
    """
    return found.upper <= other.upper if loss.several else found.width <= other.width


def _in_row_space(find: Find, task: Task, start: Array | None, evidence: LossEvidence) -> Iterator[Found]:
    """Run a method on the rows, after running it in their row space if there are few rows with many columns.

    From a bad start no row may have curvature, and no slope leads to a free b. Such a start is dropped.
    """
    space, last = None if _epochs_first(task, start) and task.rows.sparse else RowSpace.of(task.rows, task.time), None
    if space is not None:
        try:
            for found in find(replace(task, rows=space.rows), None if start is None else space.coordinates(start)):
                last = replace(found, w=space.plane(found.w, refined=2 * (found.bracket_width <= task.tol)))
                yield last
        except Interrupted as stop:
            raise Interrupted(space.plane(stop.planes, refined=0)) from None
    if last is not None and evidence.bracket_width > task.tol and task.loss in (Loss.HINGE, Loss.SQUARED_HINGE):
        last = _by_support(task, last)
        yield last
    if last is None:
        for last in find(task, start) if start is None else _until_overflow(find(task, start), evidence.question):
            yield last
    elif evidence.bracket_width > task.tol:
        yield from _then(last, find(replace(task.after(last.steps), alpha=last.alpha), last.w))
    if start is not None and evidence.bracket_width > TUNING.astray and not task.time.passed:
        again = replace(task if last is None else task.after(last.steps), alpha=None)
        steps = _in_row_space(find, again, None, evidence)
        yield from steps if last is None else _then(last, steps)


def _by_support(task: Task, found: Found) -> Found:
    """Return a plane from weights that solve the optimality conditions of a hinge or squared hinge of few rows.

    With a large C the weights cannot be computed from z, because 1 - z is lost in rounding.
    """
    rows, n, smooth = replace(task.rows, constant=False) if task.free else task.rows, task.rows.n, task.loss.smooth
    with np.errstate(over="ignore", invalid="ignore"):
        K = rows.gram(np.arange(n))
    if not np.isfinite(K).all():
        return found
    K[np.diag_indices(n)] += 0.5 / task.c if smooth else 0.0
    caps = np.full(n, math.inf) if smooth else task.c
    inside = task.rows.scores(found.w) < 1.0 if smooth else (found.alpha > 0) & (found.alpha < caps)
    weights = _support_weights(K, rows.signs.astype(np.float64), caps, inside, found.alpha >= caps, task.free)
    if weights is None:
        return found
    alpha, b = weights
    v = rows.combine(alpha)
    w = np.append(v[: task.rows.d - 1], b) if task.free else v
    task.rows.passes += rows.passes if rows is not task.rows else 0.0
    z, lower = task.rows.scores(w), task.dual(alpha, w)
    if not smooth and (alpha < caps).all():  # C times what rounding leaves rows short of 1 may be more than the least value
        w, z = w / np.min(z), z / np.min(z)
    upper = task.value(w, z)
    return Found(w, alpha, lower, upper, found.steps, stated=True) if upper - lower < found.upper - found.lower else found


def _support_weights(K: Array, signs: Array, caps: Array, inside: Array, full: Array, free: bool) -> tuple[Array, float] | None:
    """Return weights 0 ≤ α ≤ caps with (K α)_i = 1 - y_i b for the rows in between, Σ y α = 0 if b is free, and b.

    Rows that reach a bound leave the set of rows in between, and rows that should leave their bound join it. None if the set
    becomes empty.
    """
    alpha, b = np.zeros(len(K)), 0.0
    for _ in range(TUNING.supports):
        own = np.flatnonzero(inside)
        if not len(own):
            return None
        alpha = np.where(full, caps, 0.0)
        right = 1.0 - K[np.ix_(own, np.flatnonzero(full))] @ caps[full]
        alpha[own], b = bordered(K[np.ix_(own, own)], right, signs[own] if free else None, -float(signs @ alpha))
        left = 1.0 - signs * b - K @ alpha  # how far scores are below 1: by 0 for the rows in between
        filled = np.where(inside, alpha >= caps, full & (left > -TUNING.lost_of_one))
        changed = (np.where(inside, alpha > 0, left > TUNING.lost_of_one) | full) & ~filled
        if (changed == inside).all():
            break
        inside, full = changed, filled
    return np.clip(alpha, 0.0, caps), b


def _earlier(question: LossQuestion) -> Found | None:
    """Return the plane that the checkpoint holds from an earlier call for the same loss and data, or None."""
    keeper, objective = question.play.checkpoint, question.objective
    if keeper is None:
        return None
    facts: dict[str, Any] = {"task": "minimize_loss", "loss": objective.loss.value, "intercept": objective.intercept.value}
    facts |= {"C": question.head.C, "weights": objective.c}  # C by itself, so that a message can show it
    labels = question.rows.signs if question.which is None else question.which
    keeper.require(fingerprint(question.given_rows, labels=labels, start=question.play.start, **facts))
    found: Found | None = keeper.restored("found", Found)
    return found


def _write(question: LossQuestion, found: Found | None, earlier: Found | None, at_once: bool) -> None:
    """Write the checkpoint, if there is one and it is due, or `at_once`."""
    keeper = question.play.checkpoint
    if found is not None and keeper is not None and (at_once or keeper.due):
        keeper.write(found=_kept(found, earlier, question.objective.loss))


def _kept(found: Found, earlier: Found | None, loss: Loss) -> Found:
    """Return the plane as a checkpoint holds it: with the steps of earlier calls, and with weights unless they follow from w."""
    steps = found.steps + (0 if earlier is None else earlier.steps)
    return replace(found, steps=steps, alpha=found.alpha[:0] if loss.smooth else found.alpha)


def _until_overflow(steps: Iterator[Found], question: LossQuestion) -> Iterator[Found]:
    """Yield these steps until a product overflows, which extreme weights or C can cause; X is blamed only if it is not finite."""
    try:
        yield from steps
    except BeyondFloats:
        question.problem.require_finite()


def _proposal(found: Found, moments: list[Moment], question: LossQuestion) -> Proposal:
    w, b = question.objective.intercept.plane_of(found.w)
    loss = question.objective.loss
    most = question.budget.max_iter
    status = Ending.ROUNDS if most is not None and found.steps >= most else Ending.FINISHED
    alpha = found.alpha if found.smoothing is None else None
    trace = Trace.of(
        moments,
        method=loss.value,
        form="newton",
        norm=2.0,
        n=question.rows.n,
        d=question.rows.d,
        scale=1.0,
        status=status,
        w=found.w,
        p=None if loss.smooth else alpha,
        w_best=found.w,
        p_best=None if loss.smooth else alpha,
        loss=loss,
    )
    offset = np.zeros(w.shape[1]) + b if loss.several else float(b)
    return Proposal(w, offset, alpha if found.stated or not loss.smooth else None, smoothing=found.smoothing, trace=trace)


def _unmeasured(w: Array, question: LossQuestion, smoothing: float | None = None) -> Proposal:
    """Return the proposal of a plane, with b as its last entry if there is an intercept, of which no interval is known."""
    v, b = question.objective.intercept.plane_of(w)
    return Proposal(v, np.zeros(v.shape[1]) + b if question.objective.loss.several else float(b), smoothing=smoothing)


def _moment(found: Found, question: LossQuestion) -> Moment:
    """Return a step as callbacks and plots see it; its interval is one for the least value."""
    seconds, passes = time.perf_counter() - question.budget.started, question.rows.passes
    bracket = found.lower, found.upper
    return Moment(found.steps, math.nan, math.nan, *bracket, passes=passes, seconds=seconds, w_out=found.w)


def by_newton(task: Task, w: Array | None = None, continues: bool = True) -> Iterator[Found]:
    """Yield a plane for each step of Newton's method for a smooth loss, until nothing improves or the time is up.

    Unless it `continues`, C is not approached from below.
    """
    first = _part_and_plane(task, by_newton) if w is None else None
    steps = _newton_steps(task, w, first, continues)
    yield from steps if first is None else _after(first[1].w, steps)


def _newton_steps(task: Task, w: Array | None, first: tuple[Task, Found] | None, continues: bool) -> Iterator[Found]:
    """Yield the steps of `by_newton` from w, or from the plane of a part of the rows that was solved first."""
    unaided = not task.rows.sparse if first is None else first[1].unaided
    newton = Newton.start(task.rows, task.free, w if first is None else first[1].w, task.time, unaided)
    waited, best, least = 0, math.inf, math.inf
    may_continue = continues and task.loss is Loss.SQUARED_HINGE and not task.rows.sparse
    for _ in range(TUNING.most_steps):
        found, gradient = _evaluated(task, newton)
        yield found
        upper, gap = found.upper, found.upper - found.lower
        # far from the optimum the value falls at every step, and the gap, the square of a slope, need not
        waited = 0 if gap < best or upper < (1 - TUNING.progress) * least else waited + 1
        best, least = min(gap, best), min(upper, least)
        if waited >= TUNING.patience or gap <= TUNING.settled * upper or task.time.passed:
            return
        if may_continue and any(newton.steps == steps and gap > wide * upper for steps, wide in TUNING.continued):
            newton = replace(Newton.start(task.rows, task.free, _continued(task), task.time), steps=newton.steps)
            may_continue, waited, best, least = False, 0, math.inf, math.inf
            continue
        if first is not None and not newton.unaided:
            newton.prepare(first[0].rows, first[0].weights, first[0].curvature)
            first = None
        small = math.sqrt(2 * TUNING.share * task.tol * upper)
        if not newton.step(gradient, task.weights, task.curvature, found.alpha, small):
            return


def _evaluated(task: Task, newton: Newton) -> tuple[Found, Array]:
    """Return the current plane with its interval, and the gradient; near the end a free b is moved to its best place first."""
    moved = not task.free
    while True:
        alpha = task.weights(newton.z)
        gradient = newton.gradient(alpha)
        upper, gap = task.value(newton.w, newton.z), _half_square(gradient, task.free)
        if moved or not gap <= task.tol * upper or not _shift(newton, task.weights, task.curvature):
            return Found(newton.w, alpha, upper - gap, upper, newton.steps, unaided=newton.unaided), gradient
        moved = True


def by_all_classes(task: Task, w: Array | None = None) -> Iterator[Found]:
    """Yield the planes of Newton's method for the multinomial loss, as in `by_newton`; w has a column for each class."""
    assert task.which is not None
    rows, classes = task.rows, len(task.classes)
    enough = rows.n / (_rows_per_column(task) * rows.d)  # at least 1 if there are enough rows to solve a part of them first
    newton: SoftmaxNewton | RowSoftmaxNewton
    waiting: SoftmaxNewton | None = None  # the method, as long as it may still be moved to the planes of a part
    if w is None and enough < 1 and RowSoftmaxNewton.suits(rows, classes):
        newton = RowSoftmaxNewton.start(rows, task.which, classes, task.c, task.free, task.time)
    else:
        # without several rows for each coefficient, a part says little about all rows
        unaided = w is None and not rows.sparse and enough < classes
        newton = SoftmaxNewton.start(rows, task.which, classes, task.c, task.free, w, task.time, unaided)
        waiting = newton if w is None else None
    yield from _class_steps(task, newton, waiting, begun=w is not None or not rows.in_memory)


def _class_steps(
    task: Task, newton: SoftmaxNewton | RowSoftmaxNewton, waiting: SoftmaxNewton | None, begun: bool
) -> Iterator[Found]:
    """Yield the steps of `by_all_classes`; there is time for one unless they are `begun`."""
    waited, best = 0, math.inf
    for _ in range(TUNING.most_steps):
        # from w = 0 there is time for one step of rows in memory, which takes about as many passes as a proof
        begun = begun or newton.steps > 0
        look, upper, spent = newton.look(), newton.value, task.time.passed and begun
        if waiting is not None and not waiting.unaided and not spent:
            first = _part_and_plane(task, by_all_classes) if look.gap > PART.tol * upper else None
            if first is not None:
                yield from _after(first[1].w, _class_steps_from_part(task, waiting, look, *first))
                return
            waiting = None
        last = spent or newton.steps == task.max_iter or look.gap <= task.tol * upper
        if last and newton.settle():  # which a proof needs
            look, upper = newton.look(), newton.value
        gap = look.gap
        yield Found(newton.W, newton.loss.Q, upper - gap, upper, newton.steps)
        waited, best = (0, gap) if gap < best else (waited + 1, best)
        if waited >= TUNING.patience or spent or gap <= TUNING.lost * upper:
            return
        # where the gap is small enough and its proof is not, that is no aim: steps would hardly move the planes
        aim = math.sqrt(2 * TUNING.share * task.tol * upper) * SOFTMAX.wanted if gap > task.tol * upper else 0.0
        if not newton.step(look, aim):
            return


def _class_steps_from_part(task: Task, newton: SoftmaxNewton, look: Look, part: Task, found: Found) -> Iterator[Found]:
    """Move towards the planes found for a part of the rows, begin with their preconditioner, and yield the steps from there.

    These planes fit the part too well, and are too long for all rows.
    """
    assert part.which is not None
    newton.move(look, found.w - newton.W)
    newton.prepare(part.rows, part.which, part.c)
    yield from _class_steps(task, newton, None, begun=True)


def _half_square(gradient: Array, free: bool) -> float:
    g = gradient[:-1] if free else gradient
    return 0.5 * float(np.sum(g * g))


def by_hinge(task: Task, w: Array | None = None) -> Iterator[Found]:
    """Yield planes for the hinge by the method of multipliers, preceded by some epochs of coordinate ascent if C is small.

    Most weights are then at their bounds, and the epochs find out which.
    """
    if _epochs_first(task, w):
        found = None
        for found in by_ascent(task):
            yield found
            if found.steps >= EPOCHS.before_multipliers or task.time.passed:
                break
        if found is not None:
            yield from _then(found, by_multipliers(replace(task.after(found.steps), alpha=found.alpha), found.w))
            return
    yield from by_multipliers(task, w)


def _epochs_first(task: Task, w: Array | None) -> bool:
    """Return whether epochs of coordinate ascent precede the method of multipliers."""
    few = w is None and task.loss is Loss.HINGE and task.rows.in_memory and task.rows.entries <= EPOCHS.most_entries
    return few and float(np.mean(task.c * task.rows.squares())) <= EPOCHS.small


def by_multipliers(task: Task, w: Array | None = None) -> Iterator[Found]:
    """Yield planes for the hinge by the proximal method of multipliers.

    Newton's method solves for the weights α = clip(ᾱ + (1 - z)/ε, 0, C) with fixed ᾱ and ε. P - D = ½‖w - Aᵀα‖² + Σ C FY: when
    the first part is small compared with the second, ᾱ becomes α and ε shrinks.
    """
    first = _part_and_plane(task, by_multipliers) if w is None else None
    steps = _multiplier_steps(task, w if first is None else first[1].w)
    yield from steps if first is None else _after(first[1].w, steps)


def _multiplier_steps(task: Task, w: Array | None) -> Iterator[Found]:
    """Yield the steps of `by_multipliers` from w, or from 0."""
    c = task.c
    epsilon = (MULTIPLIERS.smoothing if w is None else MULTIPLIERS.smoothing_after_part) / _typical_weight(task)
    newton = Newton.start(task.rows, task.free, w, task.time)
    base = np.zeros(task.rows.n) if task.alpha is None else task.alpha

    def weights(z: Array) -> Array:
        return np.minimum(np.maximum(base + (1.0 - z) / epsilon, 0.0), c)

    def curvature(z: Array, alpha: Array) -> Array:
        return ((alpha > 0) & (alpha < c)) / epsilon

    waited, idle, halved = 0, 0, math.inf
    plane, value, dual, best = newton.w, math.inf, -math.inf, base
    for _ in range(TUNING.most_steps):
        if task.free:
            _shift(newton, weights, curvature)
        alpha = weights(newton.z)
        if task.free and not alpha.any():
            _center(newton)
            alpha = weights(newton.z)
        gradient = newton.gradient(alpha)
        upper, lower = task.value(newton.w, newton.z), task.balanced_dual(alpha, newton.J * newton.w - gradient, newton.w)
        waited = 0 if upper < value or lower > dual else waited + 1
        if upper < value:
            plane, value = newton.w, upper
        if lower > dual:
            dual, best = lower, alpha
        yield Found(plane, best, dual, value, newton.steps)
        narrow = value - dual <= MULTIPLIERS.narrow * value
        if waited >= (TUNING.patience if narrow else MULTIPLIERS.patience) or task.time.passed:
            return
        idle, halved = (0, value - dual) if value - dual <= 0.5 * halved else (idle + 1, halved)
        if idle >= MULTIPLIERS.idle and value - dual <= MULTIPLIERS.least * value:
            return
        own = _half_square(gradient, task.free)
        rest = max(upper - lower - own, 0.0)
        if own <= MULTIPLIERS.inner * rest or own <= 0.02 * task.tol * upper:
            base = alpha
            epsilon *= MULTIPLIERS.shrink if own <= MULTIPLIERS.inner * rest else 1.0
            alpha = weights(newton.z)
            gradient = newton.gradient(alpha)
        newton.step(gradient, weights, curvature, alpha)


def _typical_weight(task: Task) -> float:
    """Return the mean of C; with a free b that of the class where it is smaller, because both have the same mass of weights."""
    if not task.free:
        return float(np.mean(task.c))
    return min(float(np.mean(task.c[task.rows.signs == sign])) for sign in task.classes)


def suits_ascent(rows: Rows, c: Array, loss: Loss) -> bool:
    """Return whether coordinate ascent is the method for this loss of sparse rows in memory with many columns."""
    if loss is not Loss.SQUARED_HINGE or rows.entries > EPOCHS.most_entries:
        return loss is Loss.HINGE
    per_column = 1 if rows.entries <= NEWTON.few_entries * rows.n else EPOCHS.rows_per_column
    return rows.n < per_column * rows.d or float(np.mean(c * rows.squares())) < EPOCHS.newton


def by_ascent(task: Task, w: Array | None = None) -> Iterator[Found]:
    """Yield planes for the hinge or its square by dual coordinate ascent, for rows of few entries."""
    if task.loss.smooth:
        yield from _by_ascent_and_newton(task, w)
        return
    value, plane, looks = math.inf, np.zeros(task.rows.d), GapSchedule(TUNING.share * task.tol)
    for v, alpha, done in _epochs(task, w, looks):
        upper, lower = task.value(v, task.rows.scores(v)), task.balanced_dual(alpha, v, v)
        if upper < value:
            plane, value = v.copy(), upper
        looks.saw((value - lower) / value, done)
        yield Found(plane, alpha.copy(), lower, value, done)


def _by_ascent_and_newton(task: Task, w: Array | None) -> Iterator[Found]:
    """Yield planes for the squared hinge by coordinate ascent and then, once it is near the optimum, by Newton's method."""
    if w is not None:
        yield from by_newton(task, w)
        return
    for v, alpha, done in _epochs(
        task, None, GapSchedule()
    ):  # a gap that is just small enough is a poor start for Newton's method
        newton = Newton.start(task.rows, task.free, v, task.time)
        found = replace(_evaluated(task, newton)[0], steps=done)
        near = found.upper - task.dual(alpha, v) <= EPOCHS.near * task.tol * found.upper
        if near and found.bracket_width > TUNING.share * task.tol and np.count_nonzero(alpha) <= MAX_WEIGHTS:
            found = _with_weights(task, newton, alpha, found)
        yield found
        if task.time.passed:
            return
        if near and (found.stated or found.bracket_width > EPOCHS.near * task.tol):
            yield from _then(found, by_newton(task.after(done), found.w))
            return
        if task.free and done >= EPOCHS.free:  # the plane with a penalized b is near, and takes a tenth of the epochs
            for found in by_ascent(replace(task.after(done), free=False)):
                if found.bracket_width <= EPOCHS.neighbour:
                    break
            found = replace(found, steps=done + found.steps)
            yield from _then(found, by_newton(task.after(found.steps), found.w))
            return


def _with_weights(task: Task, newton: Newton, alpha: Array, found: Found) -> Found:
    """Return the plane with the weights α of the ascent if their gap is small enough, else `found`.

    The errors of the weights that follow from w, in contrast, are multiplied by C.
    """
    if task.free:
        _shift(newton, task.weights, task.curvature)
        alpha = with_equal_masses(alpha, task.rows.signs)
    w, upper, lower = newton.w, task.value(newton.w, newton.z), task.dual(alpha, task.rows.combine(alpha))
    enough = upper - lower <= TUNING.share * task.tol * upper
    return Found(w, alpha.copy(), lower, upper, found.steps, stated=True) if enough else found


@dataclass
class GapSchedule:
    """The looks at the relative gap of an ascent: the last gap, after how many epochs it was computed, and how many more are
    expected until it has fallen to the `goal`; without a goal, or if it does not fall, this is infinite."""

    goal: float = 0.0
    gap: float = math.inf
    done: int = 0
    left: float = math.inf

    def saw(self, gap: float, done: int) -> None:
        """Note the gap after so many epochs in all."""
        falls = 0 < self.goal < gap < self.gap < math.inf
        self.left = (done - self.done) * math.log(gap / self.goal) / math.log(self.gap / gap) if falls else math.inf
        self.gap, self.done = gap, done

    def interval(self, epochs: float) -> float:
        """Return the number of epochs to the next look, from that to the last one."""
        return min(epochs * EPOCHS.growth, EPOCHS.most_at_a_time, max(EPOCHS.first, EPOCHS.margin * self.left))


def _epochs(task: Task, w: Array | None, looks: GapSchedule) -> Iterator[tuple[Array, Array, int]]:
    """Yield planes Aᵀα of dual coordinate ascent, the weights α and the number of epochs, whenever the gap is looked at.

    It starts from the weights of the task if w is given. A free intercept is the multiplier of Σ y α = 0: an additional column
    keeps that sum small, and its weight moves b.
    """
    rows, c = task.rows, task.c
    if task.free:
        rows = replace(rows, constant=False)
    squares = rows.squares()
    alpha, v = np.zeros(rows.n), np.zeros(rows.d + 1)
    column = math.sqrt(float(np.mean(squares))) if task.free else 0.0
    b, epochs, done = 0.0, EPOCHS.first, 0
    caps, bend = (None, 0.5 / c) if task.loss.smooth else (c, None)
    if task.alpha is not None and w is not None:
        alpha, b = task.alpha.copy(), float(w[-1]) if task.free else 0.0
        v[: rows.d], v[-1] = rows.combine(alpha), column * float(alpha @ rows.signs)
    while done < (EPOCHS.most if task.max_iter is None else min(EPOCHS.most, task.max_iter)):
        offset = Offset(rows.signs, column, b) if task.free else None
        ascent = Ascent(rows, squares, alpha, v, caps, bend, offset, task.time.at)
        count = int(epochs) if task.max_iter is None else min(int(epochs), task.max_iter - done)
        ascent.run_epochs(count, seed=task.seed + done)
        done += count
        if task.free:
            b += column * float(v[-1])
        task.rows.passes += rows.passes if rows is not task.rows else 0.0
        rows.passes = 0.0 if rows is not task.rows else rows.passes
        yield np.append(v[:-1], b) if task.free else v[: rows.d], alpha, done
        if task.time.passed:
            return
        epochs = looks.interval(epochs)


def _then(before: Found, steps: Iterator[Found]) -> Iterator[Found]:
    """Yield these steps, counted on from those before."""
    for found in steps:
        yield replace(found, steps=before.steps + found.steps)


def _after(w: Array, steps: Iterator[Found]) -> Iterator[Found]:
    """Yield these steps from the plane w of a part of the rows, which is all that there is until the first of them."""
    try:
        yield from steps
    except KeyboardInterrupt:
        raise Interrupted(w) from None


def _part_and_plane(task: Task, find: Callable[[Task], Iterator[Found]]) -> tuple[Task, Found] | None:
    """Return the task for a part of the rows and its plane if there are many rows per column, else None."""
    rows = task.rows
    if rows.n < PART.least_rows or rows.n < _rows_per_column(task) * rows.d:
        return None
    i = PART.choose(rows, task.seed)
    part = task.part(i)
    if task.free and part.classes != task.classes:
        return None
    found: Found | None = None
    try:
        for found in find(part):
            if found.bracket_width <= part.tol:
                break
    except KeyboardInterrupt as stop:
        raise (stop if found is None else Interrupted(found.w)) from None
    assert found is not None
    task.rows.passes += part.rows.passes * len(i) / rows.n
    return part, found


def _rows_per_column(task: Task) -> int:
    """Return the smallest number of rows per column with which a part of the rows is solved first."""
    if task.loss is Loss.HINGE:
        return PART.for_hinge
    rows = task.rows
    between = PART.rows_per_column * rows.d <= rows.n < PART.for_large_c * rows.d and not task.loss.several
    between = between and (rows.sparse or steps_for_a_factor(rows, rows.n) < PART.costly_factor)
    if not between:
        return PART.rows_per_column
    z = np.zeros(rows.n)
    curvature = float(np.mean(task.curvature(z, task.weights(z)) * rows.squares()))
    return PART.for_large_c if curvature > PART.small else PART.rows_per_column


def _continued(task: Task) -> Array:
    """Return a plane to start from, found for increasing shares of C, each from the plane before."""
    w = np.zeros(task.rows.d)
    for share in NEWTON.shares:
        for found in by_newton(replace(task, c=share * task.c, tol=NEWTON.share_tol), w, continues=False):
            w = found.w
            if found.bracket_width <= NEWTON.share_tol:
                break
    return w


def _shift(newton: Newton, weights: Weights, curvature: Curvature) -> bool:
    """Move b, the last entry of w, so that the classes have the same mass, and return whether it had to be moved."""
    signs = newton.rows.signs.astype(np.float64)
    alpha = weights(newton.z)
    slope, lost = -float(alpha @ signs), 1e-15 * float(np.sum(alpha))
    if abs(slope) <= lost:
        return False
    bend = float(np.sum(curvature(newton.z, alpha)))
    # near the end 1 is much too long a step to begin with; and a slope that is lost in the rounding of the sum stays as it is
    step = math.copysign(min(1.0, abs(slope) / bend) if bend > 0 else 1.0, -slope)
    u = step * signs
    t = line_search(Line(newton.z, u, 0.0, 0.0), derivatives(weights, curvature), max(1e-13 * abs(slope), lost) * abs(step))
    newton.z = newton.z + t * u
    newton.w = newton.w.copy()
    newton.w[-1] += t * step
    return True


def _center(newton: Newton) -> None:
    """Move b, the last entry of w, midway between the lowest scores of the classes.

    Any b that leaves all rows without weight is as good, but for one at an end of these, w could hardly become shorter.
    """
    signs = newton.rows.signs.astype(np.float64)
    by = 0.5 * (float(np.min(newton.z[signs < 0])) - float(np.min(newton.z[signs > 0])))
    newton.z = newton.z + by * signs
    newton.w = newton.w.copy()
    newton.w[-1] += by
