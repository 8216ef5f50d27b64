"""Dual coordinate ascent for the hinge and its square, for rows of few entries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gordan.arrays import Array
from gordan.ledger.optimum import MAX_WEIGHTS
from gordan.losses import Loss
from gordan.rows import Ascent, Offset, Rows
from gordan.solve.block_ascent import with_equal_masses
from gordan.solve.loss_newton import TUNING as NEWTON
from gordan.solve.loss_newton import Newton
from gordan.solve.loss_task import TUNING, Found, Task, then
from gordan.solve.smooth_losses import by_newton, evaluated, shift


@dataclass(frozen=True)
class Epochs:
    """How many epochs of coordinate ascent are run.

    The gap is first computed after `first` epochs, then after intervals that grow by `growth` up to `most_at_a_time`, and
    there are at most `most` epochs. If the gap of the hinge is expected to be small enough sooner, it is computed after
    `margin` times as many epochs as that would take, but at least `first`. For the squared hinge Newton's method takes over
    once the gap of the ascent is within `near` tolerances; with a free intercept after `free` epochs, from the plane with a
    penalized intercept at a gap of `neighbour`. Where another method would do, there are none for rows of more than
    `most_entries`: rows are visited in random order, which is slow where they are not in a cache. The squared hinge of sparse
    rows is left to Newton's method if there are at least `rows_per_column`, or one per column if rows have few entries, and
    C ‖x‖² is at least `newton` on average: most rows have weight then, and their weights depend on each other.
    """

    first: float = 3.0
    growth: float = 1.5
    most_at_a_time: float = 100.0
    margin: float = 1.2
    most: int = 3000
    near: float = 1.0
    free: int = 200
    neighbour: float = 1e-2
    most_entries: int = 1 << 22
    rows_per_column: int = 2
    newton: float = 0.5


EPOCHS = Epochs()


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
        found = replace(evaluated(task, newton)[0], steps=done)
        near = found.upper - task.dual(alpha, v) <= EPOCHS.near * task.tol * found.upper
        if near and found.bracket_width > TUNING.share * task.tol and np.count_nonzero(alpha) <= MAX_WEIGHTS:
            found = _with_weights(task, newton, alpha, found)
        yield found
        if task.time.passed:
            return
        if near and (found.stated or found.bracket_width > EPOCHS.near * task.tol):
            yield from then(found, by_newton(task.after(done), found.w))
            return
        if task.free and done >= EPOCHS.free:  # the plane with a penalized b is near, and takes a tenth of the epochs
            for found in by_ascent(replace(task.after(done), free=False)):
                if found.bracket_width <= EPOCHS.neighbour:
                    break
            found = replace(found, steps=done + found.steps)
            yield from then(found, by_newton(task.after(found.steps), found.w))
            return


def _with_weights(task: Task, newton: Newton, alpha: Array, found: Found) -> Found:
    """Return the plane with the weights α of the ascent if their gap is small enough, else `found`.

    The errors of the weights that follow from w, in contrast, are multiplied by C.
    """
    if task.free:
        shift(newton, task.weights, task.curvature)
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
