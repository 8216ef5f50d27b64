"""The floating-point mode of a thread: how to test whether its arithmetic is that of IEEE 754, and how to set it for a proof.

The mode belongs to a thread. New threads inherit it from the thread that starts them, and libraries change it: torch has
`set_flush_denormal`, and loading a library built with -ffast-math may set it. Proofs therefore test it in the thread that
computes, before and after the work, and set it for the duration of the work if necessary.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

# Variables, so that arithmetic with them is done at run time and not folded by the compiler. The least float is made from its
# bits: as a power of two it would be 0 if this module were first imported in a thread that flushes subnormals. U is the unit
# roundoff, half the distance from 1 to the next float.
SMALLEST_SUBNORMAL: float = struct.unpack("<d", b"\1\0\0\0\0\0\0\0")[0]
ONE, U, ABOVE = 1.0, 2.0**-53, 1.0 + 2.0**-52
# More than any `fenv_t` needs; that of glibc on x86-64 has 32 bytes.
ENVIRONMENT_BYTES = 256


class NotIEEE(FloatingPointError):
    """Arithmetic is not that of IEEE 754 in a thread where a proof needs it."""


def floats_are_ieee() -> bool:
    """Return whether subnormals survive in this thread, as operands and as results, and rounding is to nearest.

    Python and NumPy obey the same control register. Half a unit must round to the even neighbour and more than half to the next
    one: each of the other three rounding modes fails one of these tests.
    """
    return (
        SMALLEST_SUBNORMAL * ONE > 0.0
        and ONE + U == ONE
        and -ONE - U == -ONE
        and ONE + 1.5 * U == ABOVE
        and -ONE - 1.5 * U == -ABOVE
    )


class _IEEE(ContextDecorator):
    """The context manager of `ieee_floats`; a class because generators are slower, and a proof enters it dozens of times."""

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
    """Return a context manager, or decorator, with IEEE arithmetic in this thread, whose own mode is restored afterwards.

    Raise `NotIEEE` if that mode cannot be set, or if it was lost in the meantime. Threads that are started within the context, or
    that do a part of the work, must set their own mode.
    """
    return _IEEE()


def _set_default_mode() -> Callable[[], object] | None:
    """Set the default environment of the C library in this thread; return a function that undoes it, or None if impossible."""
    import ctypes

    try:
        library = ctypes.CDLL(None)
        keep, take = library.fegetenv, library.fesetenv
        # FE_DFL_ENV is an invalid address for glibc and musl, and the address of a variable on macOS
        default: Any = (
            ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV")) if sys.platform == "darwin" else ctypes.c_void_p(-1)
        )
    except (AttributeError, OSError, TypeError, ValueError):  # no such functions, or (Windows) no library without a name
        return None
    own = ctypes.create_string_buffer(ENVIRONMENT_BYTES)
    if keep(own) != 0 or take(default) != 0:
        return None
    return lambda: take(own)
