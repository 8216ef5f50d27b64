"""Dual coordinate ascent for several label vectors of the same sparse rows, which reads each row once for all of them.

The same loops multiply the Gram matrix of these rows by a block of vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.rows.rows import Rows
from gordan.rows.storage import CACHE_LINE_BYTES
from gordan.rows.threads import available
from gordan.rows.threads import run as in_threads
from gordan.rows.visiting import arrays_of

# How many label vectors one ascent processes at once, half a line of the cache or a whole one, and what an epoch costs then.
LANES = {8: 1.0, 16: 1.5}
FEW_LANES = min(LANES)


@dataclass(eq=False)
class BlockAscent:
    """Dual coordinate ascent on max_x Σx - ½‖Σ x_i A_i‖² - ½Σ ridge x², x ≥ 0, for the few columns of `signs`.

    A_i = y_i(x_i, `column`); a sign of 0 leaves the row out. The planes w = Σ x_i A_i are the columns of `W`, with their entries
    for the constant column in `last`. The `offset` is added to scores: if the intercept is `free`, it is b, the multiplier of
    Σ y_i x_i = 0, which moves after every epoch. Weights and planes are held in float32, which is enough for a gap of 1e-6 and
    takes half the time of float64. `squares` are ‖x_i‖² without the constant column, and every `ridge` is positive.
    """

    rows: Rows
    signs: Array
    squares: Array
    ridge: Array
    column: float
    free: bool
    seed: int = 1
    x: Array = field(init=False, repr=False)
    W: Array = field(init=False, repr=False)
    last: Array = field(init=False, repr=False)
    offset: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._lanes = lanes = (0,) * min(width for width in LANES if width >= self.count)
        self.x, self.W = np.zeros((self.rows.n, len(lanes)), np.float32), _aligned(self.rows.storage.d, len(lanes))
        self.last, self.offset = np.zeros(len(lanes)), np.zeros(len(lanes))
        self._order, self._stream = np.arange(self.rows.n, dtype=np.int64), np.array([self.seed], np.uint64)
        self._steps = self.squares + self.column**2

    def run_epoch(self) -> tuple[Array, Array]:
        """Visit every row once; return estimates of P - D and P for each label vector, added up while rows are visited."""
        from gordan.rows.lanes import ascend_lanes

        kernel: Any = ascend_lanes
        tally = np.zeros((2, len(self._lanes)))
        kernel(
            *arrays_of(self.rows), self.signs, self.column, self.offset, self._order, self.ridge, self._steps,
            self.x, self.W, self.last, self._stream, tally, self._lanes,
        )  # fmt: skip
        if self.free:
            self.offset += self.column * self.last
        gap, value = tally[:, : self.count]
        return gap, value

    def scores(self) -> Array:
        """Return x_i·w for every row and plane, without the intercept."""
        from gordan.rows.lanes import lane_scores

        kernel: Any = lane_scores
        scores = np.empty((self.rows.n, len(self._lanes)), np.float32)
        kernel(*arrays_of(self.rows), self.W, scores, self._lanes)
        return scores[:, : self.count].astype(np.float64)

    @property
    def count(self) -> int:
        """The number of label vectors."""
        return int(self.signs.shape[1])

    @property
    def planes(self) -> Array:
        """The planes (k × d), in float32 and without the intercept."""
        return self.W[:, : self.count].T

    @property
    def intercepts(self) -> Array:
        """The intercept b of each plane."""
        return (self.offset if self.free else self.column * self.last)[: self.count]

    @property
    def weights(self) -> Array:
        """The weights x of the rows, a column for each label vector."""
        return self.x[:, : self.count].astype(np.float64)


def gram_product(rows: Rows, Q: Array) -> Array:
    """Return X(XᵀQ) for a block Q (n, k) and the rows x_i of sparse X in memory, added up in float32. Costs two passes."""
    from gordan.rows.lanes import lane_combination, lane_scores

    down: Any = lane_combination
    up: Any = lane_scores
    arrays, (n, k) = arrays_of(rows), Q.shape
    sizes, found = np.max(np.abs(Q), axis=0, initial=0.0), np.empty((n, k))
    sizes[~(sizes > 0)] = 1.0

    def work(lo: int, hi: int) -> None:
        lanes = (0,) * FEW_LANES
        q, W = np.zeros((n, FEW_LANES), np.float32), _aligned(rows.storage.d, FEW_LANES)
        q[:, : hi - lo] = Q[:, lo:hi] / sizes[lo:hi]
        down(*arrays, q, W, lanes)
        up(*arrays, W, q, lanes)
        found[:, lo:hi] = q[:, : hi - lo] * sizes[lo:hi]

    in_threads(work, _ranges(k, FEW_LANES), available() if rows.threads is None else rows.threads)
    rows.passes += 2
    return found


def lane_ranges(k: int, threads: int) -> list[tuple[int, int]]:
    """Return ranges (lo, hi) of k label vectors, each for one ascent, with which so many threads are done soonest."""
    return _ranges(k, min(LANES, key=lambda width: (-(-len(_ranges(k, width)) // threads) * LANES[width], width)))


def _ranges(k: int, most: int) -> list[tuple[int, int]]:
    """Return as few ranges (lo, hi) of k numbers as possible with at most so many in each, of sizes as equal as possible."""
    blocks = -(-k // most)
    return [(k * j // blocks, k * (j + 1) // blocks) for j in range(blocks)]


def _aligned(d: int, lanes: int) -> Array:
    """Return zeros (d × lanes) in float32, where no row is in two lines of the cache."""
    whole = np.zeros(4 * lanes * d + CACHE_LINE_BYTES, np.uint8)
    begin = -whole.ctypes.data % CACHE_LINE_BYTES
    return whole[begin : begin + 4 * lanes * d].view(np.float32).reshape(d, lanes)
