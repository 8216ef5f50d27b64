"""Read-ahead for arrays in memory-mapped files: while a pass works on some rows, a thread requests those that come next.

The read-ahead of the operating system follows a single reader and gives up on several threads at different places of a file.
Nothing is copied: pages are requested (`madvise`), and the pass finds them in the page cache, where they stay if there is room.
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

# Bytes of one chunk of a pass over a file.
FILE_CHUNK_BYTES = 1 << 23
# Bytes of all chunks that are requested before they are worked on.
WINDOW_BYTES = 1 << 26
# Bytes that one call of `madvise` requests.
REQUEST_BYTES = 1 << 20
# Read-ahead of smaller files is left to the operating system.
LARGE_FILE_BYTES = 1 << 26
# The numbers of MADV_POPULATE_READ (Linux since 5.14), which reads a file in large pieces as `read` does, and of MADV_WILLNEED,
# which exists elsewhere but allocates page by page and was measured to take twice the processor time for a cold file.
POPULATE_READ, WILLNEED = 22, 3


def is_mapped(array: Any) -> bool:
    """Return whether the values are in a memory-mapped file."""
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return isinstance(array, np.memmap)


class ReadAhead:
    """A context manager that requests the parts to come, up to WINDOW_BYTES ahead of the part begun last.

    `parts` lists for each part the (address, bytes) of every array it reads; `begun` must be called as each part is begun.
    """

    def __init__(self, parts: list[list[tuple[int, int]]]) -> None:
        self._parts = parts
        largest = max((sum(size for _, size in part) for part in parts), default=1)
        self._room = threading.Semaphore(max(2, WINDOW_BYTES // max(1, largest)))
        self._over = False
        self._thread = threading.Thread(target=self._request, name="gordan-read", daemon=True)

    def __enter__(self) -> ReadAhead:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._room.release()
        self._thread.join()

    def begun(self) -> None:
        """Note that work on one more part has begun."""
        self._room.release()

    def _request(self) -> None:
        madvise, advice = _madvise(), POPULATE_READ if sys.platform == "linux" else WILLNEED
        for part in self._parts:
            self._room.acquire()
            for address, size in part:
                for start in range(address - address % mmap.PAGESIZE, address + size, REQUEST_BYTES):
                    if self._over:
                        return
                    if madvise(start, min(REQUEST_BYTES, address + size - start), advice) and advice == POPULATE_READ:
                        advice = WILLNEED  # an older Linux


def _madvise() -> Any:
    """Return the system's `madvise` through ctypes, which releases the GIL and works on parts of any mapping."""
    import ctypes

    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return madvise


def is_large_file(arrays: tuple[Any, ...]) -> bool:
    """Return whether these arrays are in files of LARGE_FILE_BYTES or more, whose rows should be visited in order."""
    return sum(int(array.nbytes) for array in arrays if is_mapped(array)) >= LARGE_FILE_BYTES


def _read_ahead(arrays: tuple[Any, ...], ranges: list[tuple[int, int]]) -> ReadAhead | None:
    """Return the read-ahead of a pass over these ranges of rows of a dense array, or of the arrays of CSR; None if not needed."""
    if not is_large_file(arrays):
        return None
    if len(arrays) == 1:
        return ReadAhead([[_span(arrays[0], lo, hi)] for lo, hi in ranges])
    data, indices, indptr = arrays
    ends = [(int(indptr[lo]), int(indptr[hi])) for lo, hi in ranges]
    return ReadAhead([[_span(array, begin, end) for array in (data, indices) if is_mapped(array)] for begin, end in ends])


def _span(array: Array, lo: int, hi: int) -> tuple[int, int]:
    """Return address and size of the entries lo..hi-1 along the first axis of a C-contiguous array."""
    stride = array.strides[0]
    return array.ctypes.data + lo * stride, (hi - lo) * stride


def in_order(
    work: Callable[[int, int], Part], arrays: tuple[Any, ...], ranges: list[tuple[int, int]], threads: int
) -> list[Part]:
    """Do `threads.run` over ranges of the rows in these arrays, with read-ahead if they are in a large file."""
    if len(ranges) == 1 and not any(map(is_mapped, arrays)):
        return [work(*ranges[0])]
    return list(in_waves(work, arrays, ranges, threads, len(ranges)))


def in_waves(
    work: Callable[[int, int], Part], arrays: tuple[Any, ...], ranges: list[tuple[int, int]], threads: int, wave: int
) -> Iterator[Part]:
    """Do the same in waves of `wave` ranges, and yield the results in their order."""
    ahead = _read_ahead(arrays, ranges)
    with nullcontext() if ahead is None else ahead:
        for k in range(0, len(ranges), max(1, wave)):
            yield from run(work, ranges[k : k + wave], threads, (lambda: None) if ahead is None else ahead.begun)
