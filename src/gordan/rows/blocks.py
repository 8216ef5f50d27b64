"""Rows in blocks that are loaded when they are needed, from files larger than memory or from other machines.

A pass does the same work on every block and merges the results in the order of the blocks. `Blocks` works in this process while a
thread loads the next block; a cluster works where the blocks are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.rows import tasks
from gordan.rows.memory import Dense, Held, Sparse
from gordan.rows.storage import Storage, Sums, sums_of

# How many entries of rows that were taken before are kept in memory.
MAX_CACHED_ENTRIES = 1 << 24

Work = Callable[..., Any]
# For each block, the arguments that belong to it alone.
Own = Sequence[tuple[Any, ...]]
# Increasing row numbers, and these rows.
_Taken = tuple[Array, Held]


@dataclass(frozen=True, eq=False)
class Loadable:
    """Some consecutive rows of X: how many, how many entries they store, and `load`, which reads them anew at each call."""

    n: int
    entries: int
    load: Callable[[], Held]


def ahead(blocks: Sequence[Loadable]) -> Iterator[Held]:
    """Yield the blocks in memory one by one, each loaded while its predecessor is worked on: at most two at a time."""
    if len(blocks) < 2:
        yield from (block.load() for block in blocks)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="gordan-read") as reader:
        coming = reader.submit(blocks[0].load)
        for following in [*blocks[1:], None]:
            held = coming.result()
            if following is not None:
                coming = reader.submit(following.load)
            yield held


class InBlocks(Storage):
    """The part of a storage in blocks that does not depend on where vectors over rows are."""

    def __init__(self, blocks: Sequence[Loadable], d: int, dtype: Any, *, kind: str = "blocks") -> None:
        self.blocks = tuple(blocks)
        self.ends = np.cumsum([0, *(block.n for block in self.blocks)])
        self.n, self.d = int(self.ends[-1]), d
        self.entries = max(1, sum(block.entries for block in self.blocks))
        self.dtype = dtype if isinstance(dtype, str) else np.dtype(dtype)
        self.kind = kind
        self._norms: dict[float, Array] = {}
        self._cached: tuple[_Taken, ...] = ()

    def run(self, work: Work, blocks: Sequence[Any], own: Own, shared: tuple[Any, ...]) -> Iterable[Any]:
        """Return `work(block.load(), *own, *shared)` for each of these blocks, in their order.

        `work` is a function at the top level of a module; `own` and `shared` are numbers and arrays.
        """
        return (work(held, *mine, *shared) for held, mine in zip(ahead(blocks), own, strict=True))

    def knows_norms(self, p: float) -> bool:
        return p in self._norms

    def take(self, i: Array) -> Held:
        """Return the rows i in memory, in that order, and cache them: a working set is requested again and again."""
        i = np.asarray(i)
        if not len(i):
            return Dense(np.empty((0, self.d)))
        missing, cached = np.unique(i), self._cached  # read once: other threads take rows as well
        found: list[_Taken] = []
        for rows, held in cached:
            at = np.minimum(np.searchsorted(rows, missing), len(rows) - 1)
            known = rows[at] == missing
            if known.any():
                found.append((missing[known], held.take(at[known])))
            missing = missing[~known]
        if len(missing):
            found.append((missing, self._load_rows(missing)))
        rows, held = _merged(found)
        if len(rows) * self.entries <= MAX_CACHED_ENTRIES * self.n:
            kept = [*cached, *found[-1:]] if len(missing) else [*cached]
            while len(kept) > 1 and len(kept[-2][0]) <= 2 * len(kept[-1][0]):  # sizes double: few pieces to search, few copies
                kept[-2:] = [_merged(kept[-2:])]
            self._cached = tuple(kept) if sum(part.entries for _, part in kept) <= MAX_CACHED_ENTRIES else ((rows, held),)
        return held if np.array_equal(rows, i) else held.take(np.searchsorted(rows, i))

    def _load_rows(self, wanted: Array) -> Held:
        """Return these rows, given by increasing numbers, from their blocks."""
        asked = self.holding(wanted)
        own = [(part - self.ends[k],) for k, part in asked]
        return joined(list(self.run(tasks.take, [self.blocks[k] for k, _ in asked], own, ())))

    def holding(self, rows: Array | None) -> list[tuple[int, Any]]:
        """Return the number of each block that holds some of these rows, given by increasing numbers, and those that it holds.

        Without row numbers, return every block with None.
        """
        if rows is None:
            return [(k, None) for k in range(len(self.blocks))]
        parts = enumerate(np.split(rows, np.searchsorted(rows, self.ends[1:-1])))
        return [(k, part) for k, part in parts if len(part)]

    def first_not_finite(self) -> tuple[int, int, float] | None:
        for lo, bad in zip(self.ends, self.run(tasks.first_not_finite, self.blocks, [()] * len(self.blocks), ()), strict=False):
            if bad is not None:
                return int(lo) + bad[0], bad[1], bad[2]
        return None


class Blocks(InBlocks):
    """A storage of X in blocks of rows, with vectors over rows on the host."""

    def each(self, work: Work, over_rows: tuple[Any, ...] = (), shared: tuple[Any, ...] = ()) -> list[Any]:
        """Return `work(rows in memory, *its part of each vector over rows, *shared)` for every block, in their order."""
        ranges = zip(self.ends[:-1], self.ends[1:], strict=True)
        own = [tuple(None if values is None else values[lo:hi] for values in over_rows) for lo, hi in ranges]
        return list(self.run(work, self.blocks, own, shared))

    # ---- passes ------------------------------------------------------------------------------------------------------

    def scores(self, w: Array, b: float | Array, signs: Array, threads: int) -> Array:
        return np.concatenate(self.each(tasks.scores, (signs,), (w, b, threads)))

    def combine(self, q: Array, threads: int) -> Array:
        return self._sum_over_blocks(tasks.combine, q, threads, np.zeros((self.d, *q.shape[1:])))

    def second_moments(self, q: Array, threads: int) -> Array:
        return self._sum_over_blocks(tasks.second_moments, q, threads, np.zeros((self.d, self.d)))

    def _sum_over_blocks(self, work: Work, q: Array, threads: int, total: Array) -> Array:
        """Add to `total` what `work` returns for each block and its part of q, in order; blocks of weight zero are not read."""
        weighty = [k for k in range(len(self.blocks)) if np.any(q[self.ends[k] : self.ends[k + 1]])]
        own = [(q[self.ends[k] : self.ends[k + 1]],) for k in weighty]
        for part in self.run(work, [self.blocks[k] for k in weighty], own, (threads,)):
            total += part
        return total

    def reduce(self, work: Any, over_rows: Any, shared: Any, threads: int, *, rough: bool = False) -> list[Array]:
        return sums_of(self.each(tasks.reduce, over_rows, (work, shared, threads, rough)))

    def softmin(
        self, v: Array, b: Array, signs: Array, scale: float, log_p0: Array | None, groups: Array | None, threads: int
    ) -> tuple[Sums, Array]:
        found = self.each(tasks.softmin, (signs, log_p0, groups), (v, b, scale, threads))
        return Sums.merged([sums for sums, _ in found]), np.concatenate([scores for _, scores in found], axis=1)

    def norms(self, p: float, threads: int) -> Array:
        if p not in self._norms:
            self._norms[p] = np.concatenate(self.each(tasks.norms, (), (p, threads)))
        return self._norms[p]

    def each_block(
        self, work: Work, over_rows: Any = (), shared: Any = (), rows: Array | None = None, **how: Any
    ) -> Iterator[Any]:
        asked = self.holding(rows)
        for held, (k, mine) in zip(ahead([self.blocks[k] for k, _ in asked]), asked, strict=True):
            lo, hi = int(self.ends[k]), int(self.ends[k + 1])
            own = tuple(values[lo:hi] for values in over_rows)
            yield from held.each_block(work, own, shared, None if mine is None else mine - lo, first=lo, **how)


def _merged(parts: list[_Taken]) -> _Taken:
    """Return the rows of all parts, in the order of their numbers."""
    if len(parts) == 1:
        return parts[0]
    rows, held = np.concatenate([rows for rows, _ in parts]), joined([held for _, held in parts])
    order = np.argsort(rows)
    return rows[order], held.take(order)


def joined(parts: list[Held]) -> Held:
    """Return several blocks of rows in memory as one."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, Dense) for part in parts):
        return Dense(np.concatenate([part.arrays[0] for part in parts]))
    if not all(isinstance(part, Sparse) for part in parts):
        raise InputError("some blocks of X are dense and some are sparse; store them in one way")
    data, indices = (np.concatenate([part.arrays[k] for part in parts]) for k in (0, 1))
    lengths = np.concatenate([np.diff(part.arrays[2].astype(np.int64)) for part in parts])
    return Sparse(data, indices, np.concatenate(([0], np.cumsum(lengths))), parts[0].d)
