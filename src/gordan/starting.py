"""Ctrl-C while the program is still being imported: it ends at once, as other programs do, and not with a traceback."""

from __future__ import annotations

import os
import signal
import sys
import threading


def is_program() -> bool:
    """Whether this is `gordan` or `python -m gordan`: in other programs, and notebooks, Ctrl-C is not ours."""
    name = sys.argv[0] if sys.argv else ""
    return os.path.basename(name) == "gordan" or (name == "-m" and "gordan" in sys.orig_argv)


def begin() -> bool:
    """From here to `end` Ctrl-C ends the program; whether that is so."""
    ours = is_program() and threading.current_thread() is threading.main_thread()
    if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # nobody has said otherwise
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        return True
    return False


def end() -> None:
    """From here on it is a KeyboardInterrupt again."""
    if BEGUN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


BEGUN = begin()
