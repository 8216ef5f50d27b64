"""How loops are compiled: by numba, kept on disk, told in the log. Imported with them, because numba takes 0.5 s to import."""

from __future__ import annotations

import logging
import sys
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
    """Says in the log of "gordan" what is being compiled, since a first call may take half a minute; and to people once."""

    told = False

    def on_start(self, compilation: Any) -> None:
        function = compilation.data["dispatcher"].py_func
        ours = str(function.__module__).startswith("gordan.")  # others compile, too
        if ours and function.__name__.isidentifier():  # "<lambda>" says nothing
            logging.getLogger("gordan").info("compiling %s, which is done once", function.__name__)
            if not self.told and _somebody_waits():
                _Telling.told = True
                print("gordan compiles its loops for this machine: once, in up to half a minute", file=sys.stderr, flush=True)

    def on_end(self, compilation: Any) -> None:
        pass


def _somebody_waits() -> bool:
    """Whether a person sees stderr, and nothing else shows what is in the log: at a prompt, a terminal, or in a notebook."""
    shown = logging.getLogger("gordan").handlers
    return not shown and (hasattr(sys, "ps1") or "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty()))


event.register("numba:compile", _Telling())  # type: ignore[no-untyped-call]
