"""Newton's method for smooth losses of two and of several classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gordan.arrays import Array
from gordan.losses import Loss
from gordan.solve.loss_newton import PART, Curvature, Line, Newton, Weights, derivatives, line_search, may_be_unaided
from gordan.solve.loss_newton import TUNING as NEWTON
from gordan.solve.loss_task import TUNING, Found, Task, after, part_and_plane, rows_per_column
from gordan.solve.row_softmax import RowSoftmaxNewton
from gordan.solve.softmax_newton import TUNING as SOFTMAX
from gordan.solve.softmax_newton import Look, SoftmaxNewton


def by_newton(task: Task, w: Array | None = None, continues: bool = True) -> Iterator[Found]:
    """Yield a plane for each step of Newton's method for a smooth loss, until nothing improves or the time is up.

    Unless it `continues`, C is not approached from below.
    """
    first = part_and_plane(task, by_newton) if w is None else None
    steps = _newton_steps(task, w, first, continues)
    yield from steps if first is None else after(first[1].w, steps)


def _newton_steps(task: Task, w: Array | None, first: tuple[Task, Found] | None, continues: bool) -> Iterator[Found]:
    """Yield the steps of `by_newton` from w, or from the plane of a part of the rows that was solved first."""
    unaided = may_be_unaided(task.rows) and (first is None or first[1].unaided)
    newton = Newton.start(task.rows, task.free, w if first is None else first[1].w, task.time, unaided)
    waited, best, least = 0, math.inf, math.inf
    may_continue = continues and task.loss is Loss.SQUARED_HINGE and not task.rows.sparse
    for _ in range(TUNING.most_steps):
        found, gradient = evaluated(task, newton)
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


def evaluated(task: Task, newton: Newton) -> tuple[Found, Array]:
    """Return the current plane with its interval, and the gradient; near the end a free b is moved to its best place first."""
    moved = not task.free
    while True:
        alpha = task.weights(newton.z)
        gradient = newton.gradient(alpha)
        upper, gap = task.value(newton.w, newton.z), half_square(gradient, task.free)
        if moved or not gap <= task.tol * upper or not shift(newton, task.weights, task.curvature):
            return Found(newton.w, alpha, upper - gap, upper, newton.steps, unaided=newton.unaided), gradient
        moved = True


def shift(newton: Newton, weights: Weights, curvature: Curvature) -> bool:
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


def half_square(gradient: Array, free: bool) -> float:
    """Return half the squared length of the gradient, without its entry for a free b."""
    g = gradient[:-1] if free else gradient
    return 0.5 * float(np.sum(g * g))


def _continued(task: Task) -> Array:
    """Return a plane to start from, found for increasing shares of C, each from the plane before."""
    w = np.zeros(task.rows.d)
    for share in NEWTON.shares:
        for found in by_newton(replace(task, c=share * task.c, tol=NEWTON.share_tol), w, continues=False):
            w = found.w
            if found.bracket_width <= NEWTON.share_tol:
                break
    return w


def by_all_classes(task: Task, w: Array | None = None) -> Iterator[Found]:
    """Yield the planes of Newton's method for the multinomial loss, as in `by_newton`; w has a column for each class."""
    assert task.which is not None
    rows, classes = task.rows, len(task.classes)
    enough = rows.n / (rows_per_column(task) * rows.d)  # at least 1 if there are enough rows to solve a part of them first
    newton: SoftmaxNewton | RowSoftmaxNewton
    waiting: SoftmaxNewton | None = None  # the method, as long as it may still be moved to the planes of a part
    if w is None and enough < 1 and RowSoftmaxNewton.suits(rows, classes):
        newton = RowSoftmaxNewton.start(rows, task.which, classes, task.c, task.free, task.time)
    else:
        # without several rows for each coefficient, a part says little about all rows
        unaided = w is None and enough < classes and may_be_unaided(rows)
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
            first = part_and_plane(task, by_all_classes) if look.gap > PART.tol * upper else None
            if first is not None:
                yield from after(first[1].w, _class_steps_from_part(task, waiting, look, *first))
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
