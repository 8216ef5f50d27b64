"""Other floating-point modes of x86-64, set through the C library: for tests, and for the programs that these start."""

from __future__ import annotations

import contextlib
import ctypes
import platform

# Bits of MXCSR: subnormal results count as 0, subnormal operands do, both; rounding down, up and towards 0.
MODES = {"FTZ": 0x8000, "DAZ": 0x0040, "FTZ and DAZ": 0x8040, "down": 0x2000, "up": 0x4000, "to zero": 0x6000}
ALL = 0xE040
CAN_BE_SET = platform.machine() in ("x86_64", "AMD64") and platform.libc_ver()[0] == "glibc"
REASON = "the control word is that of x86-64, its place that of glibc"


def _environment():
    libm, kept = ctypes.CDLL("libm.so.6"), (ctypes.c_uint32 * 8)()
    libm.fegetenv(kept)
    return libm, kept


def bits():
    """The mode of this thread."""
    return _environment()[1][7] & ALL


def become(wanted):
    """Give this thread that mode."""
    libm, environment = _environment()
    environment[7] = (environment[7] & ~ALL) | wanted
    libm.fesetenv(environment)


@contextlib.contextmanager
def mode(wanted):
    """Within: that mode in this thread."""
    before = bits()
    become(wanted)
    try:
        yield
    finally:
        become(before)
