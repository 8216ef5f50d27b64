"""Arrays in memory-mapped files: while a pass works on some rows, a thread has the system read those that come next.

The system's own reading ahead follows a single reader, and gives up on several threads at different places of a file. Nothing is
copied: pages are asked for (`madvise`), and the pass finds them in the page cache, where they stay if there is room.
"""

from __future__ import annotations

import mmap
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np

from gordan.arrays import Array
from gordan.rows.threads import run

Part = TypeVar("Part")

# Bytes of a chunk of a pass over a file, and of all those that are asked for before they are worked on.
CHUNK, WINDOW = 1 << 23, 1 << 26
# Asked for by one call.
STEP = 1 << 20
# Files below this are left to the system.
LARGE = 1 << 26
# Linux since 5.14 can be told to fault pages in, which reads a file as `read` does, in large pieces. MADV_WILLNEED, which is what
# there is elsewhere, allocates page by page: measured, twice the processor's time for a cold file.
POPULATE_READ, WILLNEED = 22, 3


def is_mapped(array: Any) -> bool:
    """Whether the values are in a memory-mapped file."""
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return isinstance(array, np.memmap)


class Ahead:
    """Asks for the bytes of parts to come, WINDOW of them before the part begun last. `parts` has (address, bytes) for each part,
    of every array it reads. A context manager; `begun` is to be called as each part is begun."""

    def __init__(self, parts: list[list[tuple[int, int]]]) -> None:
        self._parts = parts
        largest = max((sum(size for _, size in part) for part in parts), default=1)
        self._room = threading.Semaphore(max(2, WINDOW // max(1, largest)))
        self._over = False
        self._thread = threading.Thread(target=self._ask, name="gordan-read", daemon=True)

    def __enter__(self) -> Ahead:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._room.release()
        self._thread.join()

    def begun(self) -> None:
        """One more part is being worked on."""
        self._room.release()

    def _ask(self) -> None:
        ask, advice = _madvise(), POPULATE_READ if sys.platform == "linux" else WILLNEED
        for part in self._parts:
            self._room.acquire()
            for address, size in part:
                for start in range(address - address % mmap.PAGESIZE, address + size, STEP):
                    if self._over:
                        return
                    if ask(start, min(STEP, address + size - start), advice) and advice == POPULATE_READ:
                        advice = WILLNEED  # an older Linux


def _madvise() -> Any:
    """The system's madvise, by way of ctypes: that lets other threads run, and works on parts of any mapping."""
    import ctypes

    ask = ctypes.CDLL(None).madvise
    ask.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return ask


def is_large_file(arrays: tuple[Any, ...]) -> bool:
    """Whether these arrays are in files of LARGE bytes or more, whose rows should be visited in their order."""
    return sum(int(array.nbytes) for array in arrays if is_mapped(array)) >= LARGE


def reading(arrays: tuple[Any, ...], ranges: list[tuple[int, int]]) -> Ahead | None:
    """What reads ahead of a pass over these ranges of rows of a dense array, or of the three arrays of CSR; None where nothing
    needs to be read."""
    if not is_large_file(arrays):
        return None
    if len(arrays) == 1:
        return Ahead([[_span(arrays[0], lo, hi)] for lo, hi in ranges])
    data, indices, indptr = arrays
    ends = [(int(indptr[lo]), int(indptr[hi])) for lo, hi in ranges]
    return Ahead([[_span(array, begin, end) for array in (data, indices) if is_mapped(array)] for begin, end in ends])


def _span(array: Array, lo: int, hi: int) -> tuple[int, int]:
    """Address and size of the entries lo..hi-1 along the first axis of a C-contiguous array."""
    stride = array.strides[0]
    return array.ctypes.data + lo * stride, (hi - lo) * stride


def in_order(
    work: Callable[[int, int], Part], arrays: tuple[Any, ...], ranges: list[tuple[int, int]], threads: int
) -> list[Part]:
    """`threads.run` over ranges of the rows in these arrays, which are read ahead of it where they are in a large file."""
    if len(ranges) == 1 and not any(map(is_mapped, arrays)):
        return [work(*ranges[0])]
    return list(in_waves(work, arrays, ranges, threads, len(ranges)))


def in_waves(
    work: Callable[[int, int], Part], arrays: tuple[Any, ...], ranges: list[tuple[int, int]], threads: int, wave: int
) -> Iterator[Part]:
    """The same, of which the results come in their order, so many at a time."""
    ahead = reading(arrays, ranges)
    with nullcontext() if ahead is None else ahead:
        for k in range(0, len(ranges), max(1, wave)):
            yield from run(work, ranges[k : k + wave], threads, (lambda: None) if ahead is None else ahead.begun)
