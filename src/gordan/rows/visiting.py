"""What is done to rows one by one, which only rows in memory allow: coordinate ascent, and conjugate gradients on a few rows.

The compiled loops are in `rows.ascent`; here is what they are for.
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

NO_CAPS, NO_BEND = np.array([np.inf]), np.zeros(1)
# Rows shorter than the root of this are visited with short steps: full ones would leave the range of floats.
SMALLEST_SQUARE = 1e-150
# Rows shorter than the root of this share of the mean square count as that long where rows are weighed by their length.
FLAT = 1e-3
# Seconds of epochs between two looks at the clock, where there is a deadline.
PIECE = 0.02
# Steps of conjugate gradients between two questions whether to go on.
STEPS_A_LOOK = 64
# Where the rows have fewer entries than so many times d, columns that none of them uses are left out of these steps: a vector
# over columns then stays in the cache (11,000 rows of 160 entries, d = 130,000: a quarter of the whole time).
WIDE = 4


class EpochStats(NamedTuple):
    """What the last epoch of an ascent met: the largest violation of optimality, the lowest score; the epochs done; and the share
    of the rows visited that the last one brought to a bound or away from it."""

    violation: float
    lowest: float
    epochs: int
    turned: float


class Offset(NamedTuple):
    """A further column of A, whose entry in row i is `column` times sides_i = ±1 (int8); sides_i · `offset` is added to A_i·w."""

    sides: Array
    column: float
    offset: float = 0.0


@dataclass(eq=False)
class Ascent:
    """Dual coordinate ascent on max_x Σx - ½‖Σ x_i A_i‖² - ½Σ bend x², 0 ≤ x ≤ caps; x and w = Σ x_i A_i change in place.

    Rows are visited in random order, and x_i is moved to the best value for it. A row at its bound whose gradient is clear of the
    last epoch's violations rests until `unshrink` is called (the shrinking of LIBLINEAR). w has one entry more than A has
    columns: the weight of the further column that a free intercept is, for rows without a constant one. `squares` are ‖A_i‖²
    without it. After the `deadline` (of `time.perf_counter`) no epoch is begun.
    """

    rows: Rows
    squares: Array
    x: Array
    w: Array
    caps: Array | None = None
    bend: Array | None = None
    intercept: Offset | None = None
    deadline: float = math.inf
    # the order of the rows, of which the first shrinking[0] do not rest; and the violations beyond which one may
    order: Array = field(init=False, repr=False)
    shrinking: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.unshrink()

    def unshrink(self) -> None:
        """No row rests."""
        self.order, self.shrinking = np.arange(self.rows.n, dtype=np.int64), np.array([self.rows.n, -np.inf, np.inf])

    def run_epochs(
        self, epochs: int, *, seed: int = 1, quiet: float = -1.0, until_separated: bool = False, reflect: bool = False
    ) -> EpochStats:
        """So many epochs, each of which costs the share of the rows it visits: fewer after one that turns at most the share
        `quiet` of them; or, `until_separated`, after one in which every row met had a positive score.

        `reflect` is another way: x_i goes twice as far as would be best for it, and never back, so that w is mirrored at every
        plane A_i·w = 1 on whose wrong side it is (T. S. Motzkin and I. J. Schoenberg, The relaxation method for linear
        inequalities, 1954). That does not lead to the best x, but to a separator, where there is one, and in fewer epochs.
        """
        from gordan.rows.ascent import ascend

        rows = self.rows
        sides, column, offset = self.intercept or (rows.signs, 0.0, 0.0)
        steps = np.where(self.squares > 0, np.maximum(self.squares, SMALLEST_SQUARE), 1.0) + column * column
        w = self.w
        if rows.constant:  # a constant column of A is the further column of X
            sides, column, w = rows.signs, rows.scale * rows.constant, w[:-1]
        caps, tally = NO_CAPS if self.caps is None else self.caps, np.array([0.0, math.inf, -math.inf, 0.0, 1.0])
        bend = NO_BEND if self.bend is None else self.bend
        kernel: Any = ascend
        stream, done = np.array([seed], np.uint64), 0
        first = epochs if math.isinf(self.deadline) else int(PIECE / (SLOW_ENTRY * rows.entries))
        piece = max(1, min(epochs, first))
        while done < epochs and time.perf_counter() < self.deadline:
            begin = time.perf_counter()
            kernel(
                _arrays(rows), rows.signs, rows.scale, sides, column, offset, self.order, self.shrinking, caps, bend, steps,
                self.x, w, piece, until_separated, reflect, quiet, stream, tally,
            )  # fmt: skip
            done += int(tally[3])
            if tally[3] < piece:
                break
            piece = min(epochs - done, max(1, int(piece * PIECE / max(time.perf_counter() - begin, 1e-9))))
        rows.passes += tally[0] / rows.n
        if np.isnan(tally).any():
            rows.check(math.nan)
        return EpochStats(max(0.0, float(tally[1])), float(tally[2]), done, float(tally[4]))


@dataclass(frozen=True, eq=False)
class Face:
    """min ½‖Σ z_k A_i[k]‖² + pull·z over Σz = mass_g in each group of the rows i.

    `groups` has 0 or 1 for each of them, and each group up to the largest has some. `squares` are ‖A_i‖², for a diagonal
    preconditioner. The `caps` are not enforced: they and 0 say which z is in bounds.
    """

    i: Array
    groups: Array
    mass: Array
    pull: Array
    squares: Array
    caps: Array


@dataclass(frozen=True)
class StoppingRule:
    """When `equalize_scores` ends: no score differs from the mean of its group by more than `target`, or than `rough` while some
    z is out of bounds; after `most` steps; or `go_on`, asked now and then, says no."""

    target: float
    rough: float
    most: int
    go_on: Callable[[], bool] = lambda: True


def equalize_scores(rows: Rows, face: Face, z: Array, until: StoppingRule, gradient: Array | None = None) -> tuple[int, float]:
    """Conjugate gradients on the face; z changes in place. `gradient` is that at z, where it is known.

    Returns the steps done, each of which costs twice the share of the rows, and the difference that `until` is about.
    """
    from gordan.rows.ascent import level

    kernel: Any = level
    i, groups, mass = face.i, face.groups, face.mass
    share = 1.0 / np.maximum(face.squares, FLAT * float(np.mean(face.squares)) + SMALLEST_SQUARE)
    missing = mass - np.bincount(groups, weights=z, minlength=len(mass))
    z += share * (missing / np.bincount(groups, weights=share, minlength=len(mass)))[groups]
    here, visited = _narrowed(rows, i)
    if gradient is None or float(np.max(np.abs(missing))) > 1e-13 * float(np.sum(mass)):
        x = np.zeros(here.n)
        x[visited] = z
        gradient = here.scores(here.combine(x))[visited] + face.pull
    direction, residual, tally = np.zeros(len(z)), np.empty(len(z)), np.zeros(3 + here.storage.d)
    column = rows.scale * rows.constant
    steps, last = 0, STEPS_A_LOOK
    while steps < until.most and last == STEPS_A_LOOK and until.go_on():
        last = kernel(
            _arrays(here), here.signs, rows.scale, column, visited, groups, share, face.caps, z, gradient,
            direction, residual, tally, until.rough, until.target, min(STEPS_A_LOOK, until.most - steps),
        )  # fmt: skip
        steps += last
    rows.passes += 2 * steps * len(i) / rows.n + (here.passes * len(i) / rows.n if here is not rows else 0.0)
    return steps, float(tally[1])


def _arrays(rows: Rows) -> tuple[Array, ...]:
    assert isinstance(rows.storage, Held), "take the rows first"
    return rows.storage.arrays


def _narrowed(rows: Rows, i: Array) -> tuple[Rows, Array]:
    """Rows among which the rows i are, and where: without the columns that these do not use, if those are many."""
    if isinstance(rows.storage, Sparse) and len(i) * rows.entries < WIDE * rows.d * rows.n:
        return replace(rows, storage=rows.storage.narrowed(i), signs=rows.signs[i]), np.arange(len(i))
    return rows, i
