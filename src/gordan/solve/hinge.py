"""The method of multipliers for the hinge, preceded by coordinate ascent if C is small."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gordan.arrays import Array
from gordan.losses import Loss
from gordan.solve.loss_ascent import EPOCHS, by_ascent
from gordan.solve.loss_newton import Newton, may_be_unaided
from gordan.solve.loss_task import TUNING, Found, Task, after, part_and_plane, then
from gordan.solve.smooth_losses import half_square, shift


@dataclass(frozen=True)
class Multipliers:
    """Constants of the method of multipliers.

    It follows `epochs` of coordinate ascent if C ‖x‖² is at most `small` on average and rows are not too many. The
    first `smoothing` is in units of 1/(mean C); it is multiplied by `shrink` whenever the first part of the gap is at most
    `inner` times the second. Until the gap is `narrow`, more steps without progress are allowed (`patience`). A gap that is
    `least` is mostly rounding error: after `idle` steps in which it does not halve, no more are taken.
    """

    small: float = 1.0
    epochs: int = 60
    smoothing: float = 30.0
    smoothing_after_part: float = 0.1
    shrink: float = 0.5
    inner: float = 0.1
    patience: int = 80
    narrow: float = 1e-6
    least: float = 1e-12
    idle: int = 2


MULTIPLIERS = Multipliers()


def by_hinge(task: Task, w: Array | None = None) -> Iterator[Found]:
    """Yield planes for the hinge by the method of multipliers, preceded by some epochs of coordinate ascent if C is small.

    Most weights are then at their bounds, and the epochs find out which.
    """
    if epochs_first(task, w):
        found = None
        for found in by_ascent(task):
            yield found
            if found.steps >= MULTIPLIERS.epochs or task.time.passed:
                break
        if found is not None:
            yield from then(found, by_multipliers(replace(task.after(found.steps), alpha=found.alpha), found.w))
            return
    yield from by_multipliers(task, w)


def epochs_first(task: Task, w: Array | None) -> bool:
    """Return whether epochs of coordinate ascent precede the method of multipliers."""
    few = w is None and task.loss is Loss.HINGE and task.rows.in_memory and task.rows.entries <= EPOCHS.most_entries
    return few and float(np.mean(task.c * task.rows.squares())) <= MULTIPLIERS.small


def by_multipliers(task: Task, w: Array | None = None) -> Iterator[Found]:
    """Yield planes for the hinge by the proximal method of multipliers.

    Newton's method solves for the weights α = clip(ᾱ + (1 - z)/ε, 0, C) with fixed ᾱ and ε. P - D = ½‖w - Aᵀα‖² + Σ C FY: when
    the first part is small compared with the second, ᾱ becomes α and ε shrinks.
    """
    first = part_and_plane(task, by_multipliers) if w is None else None
    steps = _multiplier_steps(task, w if first is None else first[1].w)
    yield from steps if first is None else after(first[1].w, steps)


def _multiplier_steps(task: Task, w: Array | None) -> Iterator[Found]:
    """Yield the steps of `by_multipliers` from w, or from 0."""
    c = task.c
    epsilon = (MULTIPLIERS.smoothing if w is None else MULTIPLIERS.smoothing_after_part) / _typical_weight(task)
    newton = Newton.start(task.rows, task.free, w, task.time, task.rows.sparse and may_be_unaided(task.rows))
    base = np.zeros(task.rows.n) if task.alpha is None else task.alpha

    def weights(z: Array) -> Array:
        return np.minimum(np.maximum(base + (1.0 - z) / epsilon, 0.0), c)

    def curvature(z: Array, alpha: Array) -> Array:
        return ((alpha > 0) & (alpha < c)) / epsilon

    waited, idle, halved = 0, 0, math.inf
    plane, value, dual, best = newton.w, math.inf, -math.inf, base
    for _ in range(TUNING.most_steps):
        if task.free:
            shift(newton, weights, curvature)
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
        own = half_square(gradient, task.free)
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


def _center(newton: Newton) -> None:
    """Move b, the last entry of w, midway between the lowest scores of the classes.

    Any b that leaves all rows without weight is as good, but for one at an end of these, w could hardly become shorter.
    """
    signs = newton.rows.signs.astype(np.float64)
    by = 0.5 * (float(np.min(newton.z[signs < 0])) - float(np.min(newton.z[signs > 0])))
    newton.z = newton.z + by * signs
    newton.w = newton.w.copy()
    newton.w[-1] += by
