"""One pool of threads for the kernels and the passes of proofs, which release the GIL.

How rows are split into chunks depends only on their size, and chunks are merged in order, so a result does not depend on the
number of threads or on their timing. Nor does it depend on who started the pool: threads inherit the floating-point mode of the
thread that starts them, so each task runs in the default mode (`floats`).
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gordan.floats import ieee_floats

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Part = TypeVar("Part")

# A chunk has at least this many stored entries; a pass over fewer takes less time than waking a thread.
MIN_CHUNK_ENTRIES = 1 << 17
# A chunk has at least this many times d entries, because merging costs O(d) per chunk.
MIN_CHUNK_TIMES_D = 16
# There are more chunks than threads, so that a thread that is held up does fewer of them.
MAX_CHUNKS = 32
# For work on vectors over rows alone: the rows of a range for one thread, whose operands then stay in its cache; the rows of a
# range for several threads, which contend for the GIL between operations; and the largest number of threads worth using.
ROWS_PER_RANGE, ROWS_PER_THREAD, MAX_VECTOR_THREADS = 1 << 15, 1 << 18, 8

POOL_NAME = "gordan-rows"
_pool: ThreadPoolExecutor | None = None


def available() -> int:
    """Return the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chunks(n: int, d: int, entries: int, least: int = 1) -> list[tuple[int, int]]:
    """Return ranges (lo, hi) of rows, a power of two of them; more than MAX_CHUNKS only if `least` is larger."""
    return even_ranges(n, min(max(MAX_CHUNKS, least), entries // max(MIN_CHUNK_ENTRIES, MIN_CHUNK_TIMES_D * d)))


def even_ranges(n: int, most: int) -> list[tuple[int, int]]:
    """Return ranges (lo, hi) of n rows: a power of two of them, at most `most` and at least one."""
    count = 1 << (max(1, min(most, n)).bit_length() - 1)
    return [(n * k // count, n * (k + 1) // count) for k in range(count)]


def run(
    work: Callable[[int, int], Part], ranges: list[tuple[int, int]], threads: int, begun: Callable[[], object] = lambda: None
) -> list[Part]:
    """Return [work(lo, hi) for each range], begun in order on at most `threads` threads; `begun` is called before each.

    The calling thread takes part: it begins at once and does not wait for threads that have not begun anything. If it does all of
    the work, its floating-point mode is left as it is.
    """
    if len(ranges) == 1:  # for small data the overhead of a call matters
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
            deque(waiting, maxlen=0)  # after an exception or Ctrl-C, no thread begins anything more

    if threads == 1:
        drain()
        return parts

    work_through = ieee_floats()(drain)
    tasks = [_shared_pool().submit(work_through) for _ in range(min(threads, len(ranges)) - 1)]
    try:
        work_through()
    finally:  # wait: other threads may still use arrays that the caller is about to release
        failed = [error for task in tasks if not task.cancel() and (error := task.exception())]
    if failed:
        raise failed[0]
    return parts


def over_rows(work: Callable[[int, int], Part], n: int, k: int = 1) -> list[Part]:
    """Return work(lo, hi) for ranges of n rows of k numbers, in their order; in IEEE arithmetic if the caller's arithmetic is."""
    alone, shared = max(1, ROWS_PER_RANGE // k), max(1, ROWS_PER_THREAD // k)
    if n <= alone:
        return [work(0, n)] if n else []
    threads = threads_for(n // shared)
    step = shared if threads > 1 else alone
    return run(work, [(lo, min(lo + step, n)) for lo in range(0, n, step)], threads)


def threads_for(most: int) -> int:
    """Return how many threads to use for work on vectors over rows that is worth at most so many."""
    in_pool = threading.current_thread().name.startswith(POOL_NAME)  # a pool thread that waited for others might deadlock
    return 1 if in_pool else max(1, min(available(), MAX_VECTOR_THREADS, most))


def over_vector(work: Callable[[int, int], Part], values: Any) -> list[Part]:
    """Return work(lo, hi) for ranges of a vector over rows as `over_rows` does; for one range if a device does the work."""
    return over_rows(work, len(values)) if isinstance(values, np.ndarray) else [work(0, len(values))]


def nonzero(values: Any) -> Any:
    """Return where a vector over rows is not 0: `np.flatnonzero` on all cores, or the same where the vector is."""
    if not isinstance(values, np.ndarray):
        return values.nonzero()[:, 0]
    found = over_rows(lambda lo, hi: np.flatnonzero(values[lo:hi]) + lo, len(values))
    return np.concatenate(found) if found else np.empty(0, np.intp)


def _shared_pool() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        from concurrent.futures import ThreadPoolExecutor

        _pool = ThreadPoolExecutor(max_workers=available(), thread_name_prefix=POOL_NAME)
    return _pool


def _forget_pool() -> None:
    """Forget the pool in a forked child, which has the object but none of its threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
