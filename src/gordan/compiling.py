"""How loops are compiled: by numba, kept on disk, told in the log. Imported with them, because numba takes 0.5 s to import."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeVar

import numba
from numba.core import event

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel, *, liberties: Collection[str] = ("reassoc", "contract", "nsz")) -> Kernel:
    """`function` compiled, with these liberties in arithmetic. Helpers, with an underscore, whose sums may be added up in another
    order are put into their callers.

    Else there would be two of them, their own and the caller's copy, and two orders: the process that compiles takes the one,
    and processes that find the caller in the cache take the other, which is not the same to the last bit.
    """
    inside = function.__name__.startswith("_") and "reassoc" in liberties
    options: dict[str, Any] = {"nogil": True, "fastmath": set(liberties), "forceinline": inside}
    try:
        kernel: Kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no cache folder can be written: compile anew in every process
        kernel = numba.njit(**options)(function)
    return kernel


compiled_in_order = partial(compiled, liberties=["contract"])
compiled_exactly = partial(compiled, liberties=[])


class _Telling(event.Listener):
    """Says in the log of "gordan" what is being compiled, since a first call may take half a minute.

    The first time it is a warning, which Python prints to stderr, also in a notebook, unless logging is set up otherwise.
    """

    told = False

    def on_start(self, compilation: Any) -> None:
        function = compilation.data["dispatcher"].py_func
        ours = str(function.__module__).startswith("gordan.")  # others compile, too
        if ours and function.__name__.isidentifier():  # "<lambda>" says nothing
            log = logging.getLogger("gordan")
            if not self.told:
                _Telling.told = True
                log.warning("gordan is compiling its loops for this machine; this happens once and takes up to half a minute")
            log.info("compiling %s, which is done once", function.__name__)

    def on_end(self, compilation: Any) -> None:
        pass


event.register("numba:compile", _Telling())  # type: ignore[no-untyped-call]
