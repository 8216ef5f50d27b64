"""Compilation of loops by numba, cached on disk and reported in the log; imported with them, as numba takes 0.5 s to import."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeVar

import numba
from numba.core import event

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel, *, fastmath: Collection[str] = ("reassoc", "contract", "nsz")) -> Kernel:
    """Compile the function with these fast-math flags; private helpers whose sums may be reassociated are inlined.

    Otherwise there would be two versions of a helper, its own and the caller's copy, with different orders of summation: the
    process that compiles would use one, and processes that load the caller from the cache the other, which differs in the last
    bits.
    """
    inside = function.__name__.startswith("_") and "reassoc" in fastmath
    options: dict[str, Any] = {"nogil": True, "fastmath": set(fastmath), "forceinline": inside}
    try:
        kernel: Kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no cache directory is writable: compile in every process
        kernel = numba.njit(**options)(function)
    return kernel


compiled_in_order = partial(compiled, fastmath=["contract"])
compiled_exactly = partial(compiled, fastmath=[])


class _CompilationLog(event.Listener):
    """Reports in the log of "gordan" what is being compiled, because a first call may take half a minute.

    The first report is a warning, which Python prints to stderr, also in a notebook, unless logging is configured otherwise.
    """

    warned = False

    def on_start(self, compilation: Any) -> None:
        function = compilation.data["dispatcher"].py_func
        ours = str(function.__module__).startswith("gordan.")  # other packages compile, too
        if ours and function.__name__.isidentifier():  # "<lambda>" says nothing
            log = logging.getLogger("gordan")
            if not self.warned:
                _CompilationLog.warned = True
                log.warning("gordan is compiling its loops for this machine; this happens once and takes up to half a minute")
            log.info("compiling %s, which is done once", function.__name__)

    def on_end(self, compilation: Any) -> None:
        pass


event.register("numba:compile", _CompilationLog())  # type: ignore[no-untyped-call]
