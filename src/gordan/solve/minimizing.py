"""The finders of the least value of a loss, as the loop over all finders asks them.

They work in floating point and prove nothing: the evidence has their proposals checked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.checkpoint import fingerprint
from gordan.errors import BeyondFloats
from gordan.ledger.optimum import LossEvidence, LossQuestion
from gordan.ledger.question import Cost, Proposal
from gordan.losses import Loss
from gordan.solve import block_newton
from gordan.solve.hinge import epochs_first
from gordan.solve.loss_newton import Interrupted, bordered
from gordan.solve.loss_task import TUNING, Find, Found, Task, then
from gordan.solve.row_space import RowSpace
from gordan.statuses import Ending
from gordan.trace import Moment, Trace


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
    space, last = None if epochs_first(task, start) and task.rows.sparse else RowSpace.of(task.rows, task.time), None
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
        yield from then(last, find(replace(task.after(last.steps), alpha=last.alpha), last.w))
    if start is not None and evidence.bracket_width > TUNING.astray and not task.time.passed:
        again = replace(task if last is None else task.after(last.steps), alpha=None)
        steps = _in_row_space(find, again, None, evidence)
        yield from steps if last is None else then(last, steps)


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
    return Proposal(w, offset, alpha if found.stated or not loss.smooth else None, smoothing=found.smoothing, cost=Cost(trace))


def _unmeasured(w: Array, question: LossQuestion, smoothing: float | None = None) -> Proposal:
    """Return the proposal of a plane, with b as its last entry if there is an intercept, of which no interval is known."""
    v, b = question.objective.intercept.plane_of(w)
    return Proposal(v, np.zeros(v.shape[1]) + b if question.objective.loss.several else float(b), smoothing=smoothing)


def _moment(found: Found, question: LossQuestion) -> Moment:
    """Return a step as callbacks and plots see it; its interval is one for the least value."""
    seconds, passes = time.perf_counter() - question.budget.started, question.rows.passes
    bracket = found.lower, found.upper
    return Moment(found.steps, math.nan, math.nan, *bracket, passes=passes, seconds=seconds, w_out=found.w)
