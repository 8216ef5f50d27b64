"""What the BLAS libraries of NumPy and SciPy are held to: few threads, and memory that they work in found beforehand."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

# Entries from which matrix products are worth more than one BLAS thread.
WORTH_THREADS = 1 << 26
# What sets the number of BLAS threads, whether it knows of SciPy's, and the limits now in force in each thread.
_blas: Any = None
_knows_scipy = False
_limits = threading.local()

# What OpenBLAS takes to work in when it is first called, and keeps: 32 MiB for each caller at a time, and something around them.
# NumPy and SciPy bring one library each.
BLAS_ROOM = 40 << 20
# Which of the libraries a thread has called.
_called = threading.local()


@contextlib.contextmanager
def blas_threads(entries: int) -> Iterator[None]:
    """Within: one BLAS thread, unless the matrices are of so many entries that more of them help.

    BLAS threads spin while they wait for each other: on a machine that does something else as well, factorizing a matrix of a few
    hundred rows on two threads was measured a hundred times slower than on one.
    """
    blas_has_room()
    if entries > WORTH_THREADS:
        yield
        return
    with contextlib.ExitStack() as limits:
        limits.enter_context(_controller().limit(limits=1, user_api="blas"))
        outside, _limits.now = getattr(_limits, "now", None), limits
        try:
            yield
        finally:
            _limits.now = outside


def _controller() -> Any:
    """Of all the BLAS libraries that have been loaded."""
    global _blas, _knows_scipy
    if _blas is None or (not _knows_scipy and "scipy.linalg" in sys.modules):
        from threadpoolctl import ThreadpoolController

        _knows_scipy = "scipy.linalg" in sys.modules
        _blas = ThreadpoolController()
    return _blas


def blas_has_room() -> None:
    """See to it that this thread's products of matrices find the memory that BLAS works in, or raise a MemoryError.

    Where there is none left, OpenBLAS up to 0.3.30 asks for it again and again for ever, and later ones end the process. Once
    called while there was room, it has what it needs, however short memory becomes. Each thread looks for itself: if more of them
    call at a time than ever before, OpenBLAS takes that much more.
    """
    _call_once("numpy", lambda: np.linalg.solve(np.eye(2), np.ones(2)))


def _call_once(library: str, work: Callable[[], object]) -> None:
    if getattr(_called, library, False):
        return
    try:
        np.empty(BLAS_ROOM, np.uint8)  # not touched, and given back at once
    except MemoryError:
        raise MemoryError(f"there is no room left for the {BLAS_ROOM >> 20} MiB that BLAS works in; allow more memory") from None
    work()
    setattr(_called, library, True)


def scipy_linalg() -> Any:
    """`scipy.linalg`, which takes 0.1 s to import, when it is first needed.

    SciPy brings a BLAS of its own; loaded within `blas_threads` it is held to one thread from then on. See `blas_has_room`.
    """
    knew = _knows_scipy
    import scipy.linalg

    _call_once("scipy", lambda: scipy.linalg.lapack.dpotrf(np.eye(2)))

    limits = getattr(_limits, "now", None)
    if not knew and limits is not None:
        limits.enter_context(_controller().limit(limits=1, user_api="blas"))
    return scipy.linalg
