"""One pool of threads for the kernels and the passes of proofs, which release the GIL.

The rows are cut into chunks by their size alone, and chunks are merged in order, so a result does not depend on the number of
threads or on which of them was quicker. Nor does it depend on who started the pool: threads inherit the floating-point mode of
the one that starts them, so each task is done in the default mode (`floats`).
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gordan.arrays import Array
from gordan.floats import ieee_floats

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Part = TypeVar("Part")

# A chunk has at least this many stored entries (below, a pass takes less time than waking a thread), and at least this many
# times d, since merging costs O(d) a chunk. More chunks than threads let a thread that is held up do fewer of them.
ENTRIES_A_CHUNK = 1 << 17
TIMES_D = 16
MOST_CHUNKS = 32
# Rows of a range where there are vectors over rows and nothing else: few where one thread goes through them, so that they stay in
# its cache; more for several threads, up to so many, which wait for each other's Python between any two operations.
ROWS_A_RANGE, ROWS_A_THREAD, MOST_THREADS = 1 << 15, 1 << 18, 8

POOL = "gordan-rows"
_pool: ThreadPoolExecutor | None = None


def available() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chunks(n: int, d: int, entries: int, least: int = 1) -> list[tuple[int, int]]:
    """The ranges (lo, hi) of rows, a power of two of them; more than MOST_CHUNKS only where `least` says so."""
    return even_ranges(n, min(max(MOST_CHUNKS, least), entries // max(ENTRIES_A_CHUNK, TIMES_D * d)))


def even_ranges(n: int, most: int) -> list[tuple[int, int]]:
    """Ranges (lo, hi) of n rows: a power of two of them, at most so many, at least one."""
    count = 1 << (max(1, min(most, n)).bit_length() - 1)
    return [(n * k // count, n * (k + 1) // count) for k in range(count)]


def run(
    work: Callable[[int, int], Part], ranges: list[tuple[int, int]], threads: int, begun: Callable[[], object] = lambda: None
) -> list[Part]:
    """[work(lo, hi) for each range], begun in their order on at most `threads` threads; `begun` is called before each.

    The calling thread is one of them: it begins at once, and does not wait for others that have not come to begin anything.
    Where it does it all from the start its floating-point mode is left as it is.
    """
    if len(ranges) == 1:  # small: what a call costs is seen
        begun()
        return [work(*ranges[0])]
    parts: list[Any] = [None] * len(ranges)
    waiting = iter(enumerate(ranges))  # next() on it is atomic, so threads can share it

    def drain() -> None:
        try:
            for k, (lo, hi) in waiting:
                begun()
                parts[k] = work(lo, hi)
        finally:
            deque(waiting, maxlen=0)  # after an exception, or Ctrl-C, nobody begins anything more

    if threads == 1:
        drain()
        return parts

    work_through = ieee_floats()(drain)
    tasks = [_shared_pool().submit(work_through) for _ in range(min(threads, len(ranges)) - 1)]
    try:
        work_through()
    finally:  # what others have begun may read or write arrays that the caller is about to give up
        failed = [error for task in tasks if not task.cancel() and (error := task.exception())]
    if failed:
        raise failed[0]
    return parts


def over_rows(work: Callable[[int, int], Part], n: int) -> list[Part]:
    """work(lo, hi) for ranges of n rows, in their order. In IEEE arithmetic if the caller's is."""
    if n <= ROWS_A_RANGE:
        return [work(0, n)] if n else []
    within = threading.current_thread().name.startswith(POOL)  # a thread of the pool that waited for others might wait forever
    threads = 1 if within else min(available(), MOST_THREADS, n // ROWS_A_THREAD)
    step = ROWS_A_THREAD if threads > 1 else ROWS_A_RANGE
    return run(work, [(lo, min(lo + step, n)) for lo in range(0, n, step)], max(1, threads))


def nonzero(values: Array) -> Array:
    """Where a vector over rows is not 0: `np.flatnonzero` on all cores."""
    found = over_rows(lambda lo, hi: np.flatnonzero(values[lo:hi]) + lo, len(values))
    return np.concatenate(found) if found else np.empty(0, np.intp)


def _shared_pool() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        from concurrent.futures import ThreadPoolExecutor

        _pool = ThreadPoolExecutor(max_workers=available(), thread_name_prefix=POOL)
    return _pool


def _forget_pool() -> None:
    """A forked child has the pool object but none of its threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
