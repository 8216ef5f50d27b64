"""The squared hinge of several label vectors of sparse rows, by dual coordinate ascent for all of them at once.

Most of the time of an epoch goes into reading the entries of X and finding their places in w. Here that is done once for eight
label vectors. The weights α of the ascent are kept: they prove an interval much narrower than those that follow from w, which
are C times as far off, so that no further step of another method is needed.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

import numpy as np

from gordan.arrays import Array
from gordan.intercepts import Intercept
from gordan.ledger.optimum import MOST_WEIGHTS
from gordan.ledger.question import Budget
from gordan.rows import BlockAscent, Rows, available, in_threads, lane_ranges


@dataclass(frozen=True)
class Tuning:
    """What the method is tuned by; `benchmarks/several.py` shows what it costs."""

    # Of the tolerance, what the gap in floats is brought to, how much more of it the estimate of an epoch may be, whose planes
    # are those in the middle of it, and the smallest tolerance that floats of 32 bits are good for.
    share: float = 0.8
    before: float = 2.5
    least_tol: float = 1e-6
    # Epochs at most, and after how many of them it is estimated, from what the gap has become in the last of these, whether that
    # will be enough. Where C is large it is not: single label vectors, whose rows may rest, then cost less.
    epochs: int = 60
    look: int = 5
    # Steps of Newton's method for b, and the share of the slope at which it ends.
    steps: int = 20
    level: float = 1e-9


TUNING = Tuning()


# Bytes for each row and column and each label vector: weights and planes in both sizes of floats.
BYTES = 24


@dataclass(frozen=True, eq=False)
class Together:
    """Planes of several label vectors (k × columns, b last where there is one), weights α of the rows (n × k), and the epochs."""

    planes: Array
    alpha: Array
    epochs: Array

    @property
    def few(self) -> bool:
        """Whether the rows that have a weight are few enough for a certificate to state them."""
        return int((self.alpha > 0).sum(axis=0).max(initial=0)) <= MOST_WEIGHTS


def ascend_together(rows: Rows, signs: Array, c: Array, kind: Intercept, tol: float, budget: Budget) -> Together:
    """The planes of least ½‖w‖² + Σ C_i (1 - y_i(x_i·w + b))₊² for each column of signs, where few epochs come that near.

    The rows come without signs. Planes that are farther away are not finite, unless the time is up.
    """
    n, k = signs.shape
    squares = rows.squares() - float(rows.constant) ** 2
    column = 0.0 if not kind.exists else math.sqrt(float(np.mean(squares))) if kind.grouped else 1.0
    found = Together(np.zeros((k, rows.d)), np.zeros((n, k)), np.zeros(k, np.int64))
    halted = threading.Event()
    if not c.all():
        signs, c = np.where(c[:, None] > 0, signs, 0).astype(np.int8), np.where(c > 0, c, 1.0)

    def work(lo: int, hi: int) -> None:
        ascent = BlockAscent(rows, signs, slice(lo, hi), squares, 0.5 / c, column, kind.grouped, budget.seed)
        epochs, b, alpha, near = _run(ascent, c, kind, max(tol, TUNING.least_tol), budget, halted)
        found.planes[lo:hi, : rows.storage.d], found.epochs[lo:hi], found.alpha[:, lo:hi] = ascent.planes, epochs, alpha
        if kind.exists:
            found.planes[lo:hi, -1] = b
        if not budget.spent:  # others find more than these would prove
            found.planes[lo:hi][~near] = math.nan
            found.epochs[lo:hi][~near] = 0

    try:
        in_threads(work, lane_ranges(k), budget.threads or available())
    finally:
        halted.set()
    rows.passes += 2.0 * float(found.epochs.max(initial=0))
    return found


@np.errstate(all="ignore")
def _run(
    ascent: BlockAscent, c: Array, kind: Intercept, tol: float, budget: Budget, halted: threading.Event
) -> tuple[int, Array, Array, Array]:
    """Epochs until the gap of every label vector is narrow enough, or is not expected to be in time: how many these were, b and
    the weights, and where the gap is that narrow."""
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
            b, alpha, left = _finish(ascent, c, kind)
            near = left <= enough * value
            if over or (near | hopeless).all():
                break
    return epochs, b, alpha, near


@np.errstate(all="ignore")
def _finish(ascent: BlockAscent, c: Array, kind: Intercept) -> tuple[Array, Array, Array]:
    """The best b for each plane, weights that are allowed with it, and the gap that is left.

    After an epoch b is what the last rows made of it, and the value suffers. Where b is free the weights of the heavier class are
    multiplied by the ratio of the masses.
    """
    y, scores, alpha = ascent.signs[:, ascent.own], ascent.scores(), ascent.weights
    cost, b = c[:, None] * abs(y), ascent.intercepts.copy()
    own = np.sum(y * alpha, axis=0)  # b of the combination
    penalty = float(kind.in_norm)
    for _ in range(TUNING.steps if kind.exists else 0):
        short = np.maximum(1.0 - y * (scores + b), 0.0)
        slope = penalty * b - 2.0 * np.sum(cost * y * short, axis=0)
        bend = penalty + 2.0 * np.sum(cost * (short > 0), axis=0)
        step = np.where(bend > 0, -slope / bend, 0.0)
        b = b + step
        if (np.abs(slope) <= TUNING.level * (1.0 + bend)).all():
            break
    if kind.grouped:
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
