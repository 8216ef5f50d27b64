"""One pool of threads for the kernels, which release the GIL. Chunks are contiguous and merged in order."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")

# Below this many stored entries a pass takes less time than waking a thread.
WORTH_A_THREAD = 1 << 17

_pool: ThreadPoolExecutor | None = None


def available() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_chunks(work: Callable[[int, int], Part], n: int, entries: int, threads: int) -> list[Part]:
    """[work(lo, hi) for each chunk of 0..n-1]; as many chunks as threads when that many entries are worth it."""
    count = max(1, min(threads, n, entries // WORTH_A_THREAD))
    if count == 1:
        return [work(0, n)]
    edges = [n * k // count for k in range(count + 1)]
    return list(_shared_pool().map(work, edges[:-1], edges[1:]))


def _shared_pool() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=available(), thread_name_prefix="gordan-rows")
    return _pool


def _forget_pool() -> None:
    """A forked child has the pool object but none of its threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
