"""What the BLAS libraries of NumPy and SciPy are held to: few threads, and memory that they work in found beforehand."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float64]

# Entries from which matrix products are worth more than one BLAS thread.
WORTH_THREADS = 1 << 26
# Most libraries have one number of threads for the whole process. So the first of those who are within `blas_threads` sets it to
# 1, and the last one sets it back. MKL and OpenMP have a number for each calling thread: the first and last in that thread do so.
# Who is within, in which thread; and what is held, by its file and thread (0 for the process), with the number that it had.
_lock = threading.RLock()  # a generator that is collected meanwhile may leave in the same thread
_users: dict[object, int] = {}
_held: dict[tuple[str, int], tuple[Any, int]] = {}
# What finds the libraries, and whether it was made when SciPy's was loaded.
_blas: Any = None
_knows_scipy = False

# What OpenBLAS takes to work in when it is first called, and keeps: 32 MiB for each caller at a time, and something around them.
# NumPy and SciPy bring one library each.
BLAS_ROOM = 40 << 20
# Which of the libraries a thread has called.
_called = threading.local()


@contextlib.contextmanager
def blas_threads(entries: int) -> Iterator[None]:
    """Within: one BLAS thread, unless the matrices are of so many entries that more of them help.

    BLAS threads spin while they wait for each other: on a machine that does something else as well, factorizing a matrix of a few
    hundred rows on two threads was measured a hundred times slower than on one. Calls may overlap and end in any order:
    the number of threads is then what it was before the first of them.
    """
    blas_has_room()
    if entries > WORTH_THREADS:
        yield
        return
    user, thread = object(), threading.get_ident()
    try:
        with _lock:
            _users[user] = thread
            _hold()
        yield
    finally:
        _users.pop(user, None)  # first of all: if Ctrl-C comes here, the next user to leave sets the numbers back
        with _lock:
            _let_go()


def _hold() -> None:
    """One thread for every BLAS that is loaded. What it had is written down first, since Ctrl-C may come between."""
    for library in _controller().lib_controllers:
        if library.user_api == "blas":
            by_thread = library.internal_api == "mkl" or getattr(library, "threading_layer", None) == "openmp"
            held = library.filepath, threading.get_ident() if by_thread else 0
            if held not in _held:
                _held[held] = library, library.get_num_threads()
                _set(library, 1)


def _let_go() -> None:
    """Set back what nobody needs held any more."""
    own = threading.get_ident()
    for held, (library, threads) in [*_held.items()]:
        if not _users or (held[1] == own and own not in _users.values()):
            _set(library, threads)
            del _held[held]


def _set(library: Any, threads: int) -> None:
    library.set_num_threads(threads)
    # since 3.8 threadpoolctl lets one thread set the number, until that has done with it; the last user may be another one
    getattr(library, "clear_controlling_thread", lambda: None)()


def _controller() -> Any:
    """Of all the BLAS libraries that have been loaded."""
    global _blas, _knows_scipy
    if _blas is None or (not _knows_scipy and "scipy.linalg" in sys.modules):
        from threadpoolctl import ThreadpoolController

        _knows_scipy = "scipy.linalg" in sys.modules
        _blas = ThreadpoolController()
    return _blas


def _after_fork() -> None:
    """A forked child has the users of all threads, but only the thread that forked."""
    global _lock
    _lock = threading.RLock()
    for user in [user for user, thread in _users.items() if thread != threading.get_ident()]:
        del _users[user]
    _let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def blas_has_room() -> None:
    """See to it that this thread's products of matrices find the memory that BLAS works in, or raise a MemoryError.

    Where there is none left, OpenBLAS up to 0.3.30 asks for it again and again forever, and later ones end the process. Once
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

    SciPy brings a BLAS of its own; loaded while somebody is within `blas_threads` it is held to one thread like the other. See
    `blas_has_room`.
    """
    import scipy.linalg

    _call_once("scipy", lambda: scipy.linalg.lapack.dpotrf(np.eye(2)))
    if not _knows_scipy:
        with _lock:
            if _users:
                _hold()
    return scipy.linalg


def factorized(H: Matrix) -> tuple[Matrix, Matrix]:
    """The factor of H scaled to a diagonal of 1, and the scale; what rounding makes indefinite is made definite again."""
    scale = 1 / np.sqrt(np.maximum(np.diagonal(H), 1e-300))
    H *= scale
    H *= scale[:, None]
    potrf = scipy_linalg().lapack.dpotrf
    ridge = 0.0
    while True:
        factor, info = potrf(H, lower=True, clean=False, overwrite_a=False)
        if info == 0:
            return factor, scale
        added = max(4 * ridge, 1e-14 * len(H))
        H[np.diag_indices(len(H))] += added - ridge
        ridge = added


def solved(factor: tuple[Matrix, Matrix], r: Matrix) -> Matrix:
    """H⁻¹r, by what `factorized` gives for H; r is a vector or a block of them."""
    lower, scale = factor[0], factor[1] if r.ndim == 1 else factor[1][:, None]
    return np.ascontiguousarray(scale * scipy_linalg().lapack.dpotrs(lower, scale * r, lower=True)[0])
