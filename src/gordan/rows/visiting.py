"""Algorithms that visit rows in memory one by one: dual coordinate ascent, and conjugate gradients on a few rows.

The compiled loops are in `rows.ascent`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.deadlines import SLOW_ENTRY
from gordan.rows.memory import Held, Sparse
from gordan.rows.rows import Rows

NO_CAPS, NO_RIDGE = np.array([np.inf]), np.zeros(1)
# Squared lengths are raised to this before they divide a step: full steps for shorter rows would overflow.
MIN_SQUARE = 1e-150
# The preconditioner raises squared lengths to this share of their mean.
MIN_SHARE_OF_MEAN = 1e-3
# With a deadline, the clock is checked after about this many seconds of epochs.
SECONDS_PER_CHECK = 0.02
# The number of steps of conjugate gradients between two calls of `go_on`.
STEPS_PER_CHECK = 64
# If the rows have fewer than this many times d entries, columns that none of them uses are left out of these steps, so that a
# vector over columns stays in the cache (11,000 rows of 160 entries with d = 130,000: a quarter of the total time).
NARROW_BELOW_TIMES_D = 4


class EpochStats(NamedTuple):
    """Statistics of an ascent.

    `violation` is the largest violation of optimality of its last epoch and `lowest` the lowest score; `epochs` is the number of
    epochs, and `turned` the share of the rows visited in the last one that reached or left a bound.
    """

    violation: float
    lowest: float
    epochs: int
    turned: float


class Offset(NamedTuple):
    """An additional column of A with entries `column` · sides_i, sides_i = ±1 (int8); sides_i · `offset` is added to A_i·w."""

    signs_of_column: Array
    column: float
    offset: float = 0.0


@dataclass(eq=False)
class Ascent:
    """Dual coordinate ascent on max_x Σx - ½‖Σ x_i A_i‖² - ½Σ ridge x², 0 ≤ x ≤ caps; x and w = Σ x_i A_i change in place.

    Rows are visited in random order, and x_i moves to its best value. A row at a bound whose gradient is beyond the violations of
    the last epoch is shrunk: it is not visited until `unshrink` is called (as in LIBLINEAR). w has one entry more than A has
    columns, the weight of the additional column of a free intercept, for rows without a constant column. `squares` are ‖A_i‖²
    without that column. No epoch begins after the `deadline` (of `time.perf_counter`).
    """

    rows: Rows
    squares: Array
    x: Array
    w: Array
    caps: Array | None = None
    ridge: Array | None = None
    intercept: Offset | None = None
    deadline: float = math.inf
    # the order of the rows, of which the first shrinking[0] are active; and the violations beyond which a row may be shrunk
    order: Array = field(init=False, repr=False)
    shrinking: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.unshrink()

    def unshrink(self) -> None:
        """Make all rows active again."""
        self.order, self.shrinking = np.arange(self.rows.n, dtype=np.int64), np.array([self.rows.n, -np.inf, np.inf])

    def run_epochs(
        self, epochs: int, *, seed: int = 1, quiet: float = -1.0, until_separated: bool = False, reflect: bool = False
    ) -> EpochStats:
        """Run up to `epochs` epochs, each of which costs the share of the rows that it visits.

        Stop after an epoch in which at most the share `quiet` of the rows turned or, with `until_separated`, in which every row
        had a positive score. With `reflect`, x_i moves twice as far as would be best, and never back, so that w is reflected at
        every plane A_i·w = 1 on whose wrong side it is (T. S. Motzkin and I. J. Schoenberg, The relaxation method for linear
        inequalities, 1954). This does not lead to the best x, but to a separator if there is one, and in fewer epochs.
        """
        from gordan.rows.ascent import ascend

        rows = self.rows
        signs_of_column, column, offset = self.intercept or (rows.signs, 0.0, 0.0)
        steps = np.where(self.squares > 0, np.maximum(self.squares, MIN_SQUARE), 1.0) + column * column
        w = self.w
        if rows.constant:  # the constant column of A plays the role of the additional column
            signs_of_column, column, w = rows.signs, rows.scale * rows.constant, w[:-1]
        caps, tally = NO_CAPS if self.caps is None else self.caps, np.array([0.0, math.inf, -math.inf, 0.0, 1.0])
        ridge = NO_RIDGE if self.ridge is None else self.ridge
        kernel: Any = ascend
        stream, done = np.array([seed], np.uint64), 0
        first = epochs if math.isinf(self.deadline) else int(SECONDS_PER_CHECK / (SLOW_ENTRY * rows.entries))
        piece = max(1, min(epochs, first))
        while done < epochs and time.perf_counter() < self.deadline:
            begin = time.perf_counter()
            stopped = kernel(
                arrays_of(rows), rows.signs, rows.scale, signs_of_column, column, offset, self.order, self.shrinking, caps, ridge,
                steps, self.x, w, piece, until_separated, reflect, quiet, stream, tally,
            )  # fmt: skip
            done += int(tally[3])
            if stopped:  # perhaps in the last epoch of the piece
                break
            piece = min(epochs - done, max(1, int(piece * SECONDS_PER_CHECK / max(time.perf_counter() - begin, 1e-9))))
        rows.passes += tally[0] / rows.n
        if np.isnan(tally).any():
            rows.check(math.nan)
        return EpochStats(max(0.0, float(tally[1])), float(tally[2]), done, float(tally[4]))


@dataclass(frozen=True, eq=False)
class Face:
    """The problem min ½‖Σ z_k A_i[k]‖² + pull·z over Σz = mass_g in each group of the rows i.

    `groups` has 0 or 1 for each of these rows, and no group is empty. `squares` are ‖A_i‖², for a diagonal preconditioner. The
    bounds 0 and `caps` are not enforced; they define which z is within bounds.
    """

    i: Array
    groups: Array
    mass: Array
    pull: Array
    squares: Array
    caps: Array


@dataclass(frozen=True)
class StoppingRule:
    """When `equalize_scores` stops.

    It stops when no score differs from the mean of its group by more than `target`, or by more than `rough` while some z is out
    of bounds; after `most` steps; or when `go_on`, called now and then, returns False.
    """

    target: float
    rough: float
    most: int
    go_on: Callable[[], bool] = lambda: True


def equalize_scores(rows: Rows, face: Face, z: Array, until: StoppingRule, gradient: Array | None = None) -> tuple[int, float]:
    """Run conjugate gradients on the face; z changes in place. `gradient` is the gradient at z, if it is known.

    Return the number of steps, each of which costs twice the share of the rows, and the largest difference of a score from the
    mean of its group.
    """
    from gordan.rows.ascent import level

    kernel: Any = level
    i, groups, mass = face.i, face.groups, face.mass
    share = 1.0 / np.maximum(face.squares, MIN_SHARE_OF_MEAN * float(np.mean(face.squares)) + MIN_SQUARE)
    missing = mass - np.bincount(groups, weights=z, minlength=len(mass))
    z += share * (missing / np.bincount(groups, weights=share, minlength=len(mass)))[groups]
    here, visited = _narrowed(rows, i)
    if gradient is None or float(np.max(np.abs(missing))) > 1e-13 * float(np.sum(mass)):
        x = np.zeros(here.n)
        x[visited] = z
        gradient = here.scores(here.combine(x))[visited] + face.pull
    direction, residual, tally = np.zeros(len(z)), np.empty(len(z)), np.zeros(3 + here.storage.d)
    column = rows.scale * rows.constant
    steps, last = 0, STEPS_PER_CHECK
    while steps < until.most and last == STEPS_PER_CHECK and until.go_on():
        last = kernel(
            arrays_of(here), here.signs, rows.scale, column, visited, groups, share, face.caps, z, gradient,
            direction, residual, tally, until.rough, until.target, min(STEPS_PER_CHECK, until.most - steps),
        )  # fmt: skip
        steps += last
    rows.passes += 2 * steps * len(i) / rows.n + (here.passes * len(i) / rows.n if here is not rows else 0.0)
    return steps, float(tally[1])


def arrays_of(rows: Rows) -> tuple[Array, ...]:
    """Return the arrays of rows in memory, as compiled loops take them."""
    assert isinstance(rows.storage, Held), "take the rows first"
    return rows.storage.arrays


def _narrowed(rows: Rows, i: Array) -> tuple[Rows, Array]:
    """Return rows that contain the rows i, and their positions there; columns that they do not use are left out if many."""
    if isinstance(rows.storage, Sparse) and len(i) * rows.entries < NARROW_BELOW_TIMES_D * rows.d * rows.n:
        return replace(rows, storage=rows.storage.narrowed(i), signs=rows.signs[i]), np.arange(len(i))
    return rows, i
