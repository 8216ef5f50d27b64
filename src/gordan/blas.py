"""Control of the BLAS libraries of NumPy and SciPy: how many threads they use, and that their working memory is available."""

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

# Matrix products of more entries than this use all BLAS threads.
MAX_SINGLE_THREAD_ENTRIES = 1 << 26
# Most libraries have one number of threads for the whole process: the first user of `blas_threads` sets it to 1, and the last one
# restores it. MKL and OpenMP have a number for each calling thread, which the first and last user in that thread set.
_lock = threading.RLock()  # reentrant: a generator that is collected meanwhile may exit in the same thread
# The current users, with the thread of each.
_users: dict[object, int] = {}
# The libraries that are limited, by file and thread (0 for the process), with the number of threads to restore.
_held: dict[tuple[str, int], tuple[Any, int]] = {}
# The threadpoolctl controller, and whether SciPy's library was loaded when it was made.
_blas: Any = None
_knows_scipy = False

# The working memory that OpenBLAS allocates at its first call and keeps: 32 MiB for each concurrent caller, and some more. NumPy
# and SciPy bring one library each.
BLAS_WORK_BYTES = 40 << 20
# Which of the libraries a thread has called.
_called = threading.local()


@contextlib.contextmanager
def blas_threads(entries: int) -> Iterator[None]:
    """Limit BLAS to one thread within the context, unless matrices of this many entries benefit from more.

    BLAS threads spin while they wait for each other: on a busy machine, factorizing a matrix of a few hundred rows on two threads
    was measured to be a hundred times slower than on one. Contexts may overlap and end in any order; afterwards, the number of
    threads is what it was before the first of them.
    """
    ensure_blas_memory()
    if entries > MAX_SINGLE_THREAD_ENTRIES:
        yield
        return
    user, thread = object(), threading.get_ident()
    try:
        with _lock:
            _users[user] = thread
            _limit()
        yield
    finally:
        _users.pop(user, None)  # first: if Ctrl-C comes here, the next user to leave restores the numbers
        with _lock:
            _restore()


def _limit() -> None:
    """Limit every loaded BLAS to one thread; the old number is recorded first, because Ctrl-C may come in between."""
    for library in _controller().lib_controllers:
        if library.user_api == "blas":
            by_thread = library.internal_api == "mkl" or getattr(library, "threading_layer", None) == "openmp"
            held = library.filepath, threading.get_ident() if by_thread else 0
            if held not in _held:
                _held[held] = library, library.get_num_threads()
                _set(library, 1)


def _restore() -> None:
    """Restore the number of threads of libraries that no user needs limited any more."""
    own = threading.get_ident()
    for held, (library, threads) in [*_held.items()]:
        if not _users or (held[1] == own and own not in _users.values()):
            _set(library, threads)
            del _held[held]


def _set(library: Any, threads: int) -> None:
    library.set_num_threads(threads)
    # since 3.8 threadpoolctl reserves the right to set the number for one thread, but the last user may be another one
    getattr(library, "clear_controlling_thread", lambda: None)()


def _controller() -> Any:
    """Return the controller of all BLAS libraries that are loaded."""
    global _blas, _knows_scipy
    if _blas is None or (not _knows_scipy and "scipy.linalg" in sys.modules):
        from threadpoolctl import ThreadpoolController

        _knows_scipy = "scipy.linalg" in sys.modules
        _blas = ThreadpoolController()
    return _blas


def _after_fork() -> None:
    """Forget the users of other threads in a forked child, which has only the thread that forked."""
    global _lock
    _lock = threading.RLock()
    for user in [user for user, thread in _users.items() if thread != threading.get_ident()]:
        del _users[user]
    _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def ensure_blas_memory() -> None:
    """Ensure that matrix products of this thread have the working memory of BLAS, or raise a MemoryError.

    Without it, OpenBLAS up to 0.3.30 retries forever, and later versions end the process. Once it has been called with enough
    memory, it keeps what it needs. Each thread checks for itself, because OpenBLAS allocates more when more threads than ever
    before call it at the same time.
    """
    _call_once("numpy", lambda: np.linalg.solve(np.eye(2), np.ones(2)))


def _call_once(library: str, work: Callable[[], object]) -> None:
    if getattr(_called, library, False):
        return
    try:
        np.empty(BLAS_WORK_BYTES, np.uint8)  # not touched, and released at once
    except MemoryError:
        message = f"BLAS needs {BLAS_WORK_BYTES >> 20} MiB of working memory, which is not available; raise the memory limit"
        raise MemoryError(message) from None
    work()
    setattr(_called, library, True)


def scipy_linalg() -> Any:
    """Import and return `scipy.linalg`, which takes 0.1 s to import, when it is first needed.

    SciPy brings its own BLAS; if it is loaded within `blas_threads`, it is limited to one thread, too. See `ensure_blas_memory`.
    """
    import scipy.linalg

    _call_once("scipy", lambda: scipy.linalg.lapack.dpotrf(np.eye(2)))
    if not _knows_scipy:
        with _lock:
            if _users:
                _limit()
    return scipy.linalg


def factorized(H: Matrix) -> tuple[Matrix, Matrix]:
    """Return the Cholesky factor of H scaled to a unit diagonal, and the scale, with a ridge if rounding made H indefinite."""
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
    """Return H⁻¹r from the result of `factorized` for H; r is a vector or a block of vectors."""
    lower, scale = factor[0], factor[1] if r.ndim == 1 else factor[1][:, None]
    return np.ascontiguousarray(scale * scipy_linalg().lapack.dpotrs(lower, scale * r, lower=True)[0])
