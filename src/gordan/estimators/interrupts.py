"""Whether Ctrl-C was pressed in a fit of several problems, each of which may catch it to return what it has proved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class InterruptFlag:
    """A context that remembers Ctrl-C and passes it on to the handler that was installed before."""

    def __init__(self) -> None:
        self._pressed = False
        self._before: Callable[[int, FrameType | None], Any] | None = None

    def __enter__(self) -> InterruptFlag:
        before: Any = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(before):
            self._before = before
            signal.signal(signal.SIGINT, self._press)
        return self

    def _press(self, which: int, frame: FrameType | None) -> None:
        self._pressed = True
        if self._before is not None:
            self._before(which, frame)

    def is_set(self) -> bool:
        """Return whether Ctrl-C was pressed within the context."""
        return self._pressed

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
