"""The floating-point mode of a thread: whether its arithmetic is that of IEEE 754, and how it is made so for a proof.

The mode belongs to a thread. New threads inherit it from the one that starts them, and libraries change it: torch has
`set_flush_denormal`, and loading what was built with -ffast-math may set it. Proofs therefore ask in the thread that computes,
before and after the work, and set the mode for its duration where it is another one.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

# Named, so that arithmetic with them is done when it is asked for, and not by the compiler. The least float is taken from its
# bits: as a power of two it would be 0 if this module were first imported where subnormals are flushed.
LEAST: float = struct.unpack("<d", b"\1\0\0\0\0\0\0\0")[0]
ONE, HALF_UNIT, ABOVE = 1.0, 2.0**-53, 1.0 + 2.0**-52
# Larger than any `fenv_t`; that of glibc on x86-64 has 32 bytes.
ENVIRONMENT_BYTES = 256


class NotIEEE(FloatingPointError):
    """Arithmetic is not that of IEEE 754 where it is needed, so that nothing can be proved."""


def floats_are_ieee() -> bool:
    """Whether subnormals survive in this thread, as operands and as results, and rounding is to nearest.

    Floats of Python and of NumPy obey the same register. Half a unit goes to the even neighbour, more than half to the next one:
    each of the other three rounding modes fails one of these.
    """
    return (
        LEAST * ONE > 0.0
        and ONE + HALF_UNIT == ONE
        and -ONE - HALF_UNIT == -ONE
        and ONE + 1.5 * HALF_UNIT == ABOVE
        and -ONE - 1.5 * HALF_UNIT == -ABOVE
    )


class _IEEE(ContextDecorator):
    """What `ieee_floats` gives. No generator: a proof enters it dozens of times."""

    restore: Callable[[], object] | None = None

    def _recreate_cm(self) -> _IEEE:
        return _IEEE()

    def __enter__(self) -> None:
        if floats_are_ieee():
            return
        self.restore = _set_default_mode()
        if not floats_are_ieee():
            self._leave()
            raise NotIEEE(
                "this thread flushes subnormal numbers to zero or does not round to nearest, and its mode cannot be changed from "
                "here; nothing can be proved in it (with torch, call torch.set_flush_denormal(False) first)"
            )

    def __exit__(self, kind: type[BaseException] | None, *about: object) -> None:
        kept = floats_are_ieee()
        self._leave()
        if kind is None and not kept:
            raise NotIEEE("the floating-point mode of this thread was changed in the middle of a proof; nothing can be proved")

    def _leave(self) -> None:
        if self.restore is not None:
            self.restore()


def ieee_floats() -> _IEEE:
    """Within: IEEE arithmetic in this thread, which has its own mode back afterwards. Also a decorator: `@ieee_floats()`.

    Raises `NotIEEE` where that mode cannot be set, and where it was lost on the way. Threads that are started within, or that
    do a part of the work, have to see to their own mode.
    """
    return _IEEE()


def _set_default_mode() -> Callable[[], object] | None:
    """Give this thread the default environment of the C library. Returns what undoes that; None where it is not possible."""
    import ctypes

    try:
        library = ctypes.CDLL(None)
        keep, take = library.fegetenv, library.fesetenv
        # what FE_DFL_ENV is: for glibc and musl an address where nothing is, on macOS that of a variable
        default: Any = (
            ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV")) if sys.platform == "darwin" else ctypes.c_void_p(-1)
        )
    except (AttributeError, OSError, TypeError, ValueError):  # no such functions, or (Windows) no library without a name
        return None
    own = ctypes.create_string_buffer(ENVIRONMENT_BYTES)
    if keep(own) != 0 or take(default) != 0:
        return None
    return lambda: take(own)
