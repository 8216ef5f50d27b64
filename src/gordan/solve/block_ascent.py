"""Dual coordinate ascent for the squared hinge of several label vectors of sparse rows, eight or sixteen of them at once.

Most of the time of an epoch is spent on reading the entries of X and finding their places in w, which is shared by them. The
weights α of the ascent prove a much narrower interval than the weights that follow from w, whose errors are multiplied by C. They
are returned, and no other method is needed for a final step.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

import numpy as np

from gordan.arrays import Array
from gordan.intercepts import Intercept
from gordan.ledger.optimum import MAX_WEIGHTS
from gordan.ledger.question import Budget
from gordan.rows import BlockAscent, Rows, available, in_threads, lane_ranges


@dataclass(frozen=True)
class Tuning:
    """Constants of the method; `benchmarks/several.py` shows what each choice costs."""

    # The gap in floats is brought to this share of the tolerance. The estimate of an epoch may be `before` times as large, since
    # it is added up while the planes still move. The smallest tolerance is what float32 can reach.
    share: float = 0.8
    before: float = 2.5
    least_tol: float = 1e-6
    # The largest number of epochs. After every `look` of them, the decrease of the gap predicts whether that number will be
    # enough. If C is large it is not, and methods for one label vector, which can shrink the set of rows, cost less.
    epochs: int = 60
    look: int = 5
    # Steps of Newton's method for b, and the slope, relative to the second derivative, at which it ends.
    steps: int = 20
    level: float = 1e-9


TUNING = Tuning()


# Bytes for each row or column of each label vector: weights and planes in float32 and float64.
BYTES = 24


@dataclass(frozen=True, eq=False)
class Together:
    """Planes of several label vectors (k × columns, b last if there is one), weights α of the rows (n × k), and the epochs."""

    planes: Array
    alpha: Array
    epochs: Array

    @property
    def few(self) -> bool:
        """Whether few enough rows have weights for a certificate to state these."""
        return int((self.alpha > 0).sum(axis=0).max(initial=0)) <= MAX_WEIGHTS


def ascend_together(rows: Rows, signs: Array, c: Array, intercept: Intercept, tol: float, budget: Budget) -> Together:
    """Minimize ½‖w‖² + Σ C_i (1 - y_i(x_i·w + b))₊² for each column of signs; the rows come without signs.

    If the largest number of epochs is not enough for a plane, it is NaN, unless the time is up.
    """
    n, k = signs.shape
    squares = rows.squares() - float(rows.constant) ** 2
    column = 0.0 if not intercept.exists else math.sqrt(float(np.mean(squares))) if intercept.grouped else intercept.constant()
    threads = budget.threads or available()
    found = Together(np.zeros((k, rows.d)), np.zeros((n, k)), np.zeros(k, np.int64))
    halted = threading.Event()
    if not c.all():
        signs, c = np.where(c[:, None] > 0, signs, 0).astype(np.int8), np.where(c > 0, c, 1.0)

    def work(lo: int, hi: int) -> None:
        own = np.ascontiguousarray(signs[:, lo:hi])
        ascent = BlockAscent(rows, own, squares, 0.5 / c, column, intercept.grouped, budget.seed)
        epochs, b, alpha, near = _run(ascent, c, intercept, max(tol, TUNING.least_tol), budget, halted)
        found.planes[lo:hi, : rows.storage.d], found.epochs[lo:hi], found.alpha[:, lo:hi] = ascent.planes, epochs, alpha
        if intercept.exists:
            found.planes[lo:hi, -1] = b
        if not budget.spent:  # other methods find better planes
            found.planes[lo:hi][~near] = math.nan
            found.epochs[lo:hi][~near] = 0

    try:
        in_threads(work, lane_ranges(k, threads), threads)
    finally:
        halted.set()
    rows.passes += 2.0 * float(found.epochs.max(initial=0))
    return found


@np.errstate(all="ignore")
def _run(
    ascent: BlockAscent, c: Array, intercept: Intercept, tol: float, budget: Budget, halted: threading.Event
) -> tuple[int, Array, Array, Array]:
    """Run epochs until the gap of every label vector is narrow enough, or is not expected to be in time.

    Return the number of epochs, b and the weights, and whether each gap is narrow enough.
    """
    enough, hopeless, earlier = TUNING.share * tol, np.zeros(ascent.count, dtype=bool), None
    for epochs in range(1, TUNING.epochs + 1):
        gap, value = ascent.run_epoch()
        wide = gap / (TUNING.before * enough * value)
        if epochs % TUNING.look == 0:
            if earlier is not None:
                rate = np.minimum(np.log(earlier / wide) / TUNING.look, math.inf)
                hopeless = ~(np.log(wide) <= rate * (TUNING.epochs - epochs))
            earlier = wide
        over = epochs == TUNING.epochs or halted.is_set() or budget.spent
        if over or not ((wide > 1) & ~hopeless).any():
            b, alpha, left = _finish(ascent, c, intercept)
            near = left <= enough * value
            if over or (near | hopeless).all():
                break
    return epochs, b, alpha, near


@np.errstate(all="ignore")
def _finish(ascent: BlockAscent, c: Array, intercept: Intercept) -> tuple[Array, Array, Array]:
    """Return the best b for each plane, feasible weights, and the gap between their values.

    The b of an epoch depends mostly on its last rows, and has a larger value. If b is free, both classes must have the same mass.
    """
    y, scores, alpha = ascent.signs, ascent.scores(), ascent.weights
    cost, b = c[:, None] * abs(y), ascent.intercepts.copy()
    column = intercept.column
    own = column**2 * np.sum(y * alpha, axis=0)  # b of the combination
    penalty = column**-2 if column else 0.0
    for _ in range(TUNING.steps if intercept.exists else 0):
        short = np.maximum(1.0 - y * (scores + b), 0.0)
        slope = penalty * b - 2.0 * np.sum(cost * y * short, axis=0)
        curvature = penalty + 2.0 * np.sum(cost * (short > 0), axis=0)
        step = np.where(curvature > 0, -slope / curvature, 0.0)
        b = b + step
        if (np.abs(slope) <= TUNING.level * (1.0 + curvature)).all():
            break
    if intercept.grouped:
        alpha = with_equal_masses(alpha, y)
    z = y * (scores + b)
    left = np.maximum(1.0 - z, 0.0) - 0.5 * alpha / np.where(cost > 0, cost, 1.0)
    gap = np.sum(cost * left * left + alpha * np.maximum(z - 1.0, 0.0), axis=0) + 0.5 * penalty * (b - own) ** 2
    return b, alpha, gap


@np.errstate(all="ignore")
def with_equal_masses(alpha: Array, y: Array) -> Array:
    """Return weights with the same sum in both classes of each label vector: those of the heavier class are reduced."""
    above, below = (np.sum(alpha, axis=0, where=y == side) for side in (1, -1))
    shares = np.fmin(below / above, 1.0), np.fmin(above / below, 1.0)  # fmin returns 1 for 0/0
    return np.asarray(alpha * np.where(y > 0, *shares))
