"""Show progress on stderr while a command runs."""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import threading
import time
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gordan.cli.answers import console, escape_controls
from gordan.verdicts import outward

if TYPE_CHECKING:
    from gordan.trace import Moment
    from gordan.verdicts import Verdict

# Seconds before the progress line appears, so that short runs show none.
PATIENCE = 0.4
# Seconds between the lines of a log.
LOG_INTERVAL = 30.0
# A terminal of at least this width has room for a bar beside the numbers.
MIN_BAR_WIDTH = 120
# The bar stops short of 1, because rich stops its clock when a task is complete.
ALMOST_FULL = 0.999
# The width of the spinner, the clock and the spaces around them.
CLOCK_WIDTH = 12


ProgressMode = StrEnum("ProgressMode", ["AUTO", "LOG", "NONE"])


class ProgressSetting:
    """How progress is shown, as set by `--progress`."""

    mode = ProgressMode.AUTO


class Watch:
    """A line on stderr that shows the progress of a long run on a terminal, or a line every 30 seconds in a log.

    On a wide terminal there is a bar as well, which fills up as the relative width of the bracket falls from 1 to `tol`, on a
    logarithmic scale.
    """

    def __init__(self, what: str, tol: float | None = None) -> None:
        self._what, self._tol = escape_controls(what), tol
        self._done, self._bytes = 0.0, 0
        self._state: tuple[str, ...] = ()
        self._progress: Any = None
        log = ProgressSetting.mode is ProgressMode.LOG
        self._timer = threading.Timer(0.0 if log else PATIENCE, self._write_lines if log else self._start_quietly)
        self._timer.daemon = True
        self._log = _Log(self)
        self._over = threading.Event()
        self._begin = time.monotonic()
        self.visible = log or (ProgressSetting.mode is ProgressMode.AUTO and sys.stderr.isatty())

    def __enter__(self) -> Watch:
        if self.visible:
            self._timer.start()
            logging.getLogger("gordan").addHandler(self._log)
            logging.getLogger("gordan").setLevel(logging.INFO)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Remove the line."""
        logging.getLogger("gordan").removeHandler(self._log)
        self._over.set()
        self._timer.cancel()
        if self._timer.ident is not None:
            self._timer.join()
        if self._progress is not None:
            self._progress.stop()

    def about(self, what: str, X: Any = None) -> None:
        """Show another step from now on; if it uses the data X, the rate is that of passes over X."""
        if X is not None:
            self._bytes = stored_bytes(X)
        self._what, self._done, self._state = escape_controls(what), 0.0, ()
        self._show()

    def moment(self, moment: Moment) -> bool:
        """Show a recorded round; this is a callback for `maximize_margin` and `play`."""
        lower, upper = outward(moment.lower, moment.upper)
        found = moment.lower > 0
        bracket = f"margin {lower} … {upper}  gap {moment.gap:.1e}" if found else f"no separator yet, margin at most {upper}"
        rate = moment.passes * self._bytes / moment.seconds if moment.seconds > 0 else 0.0
        self._state = (bracket, f"{moment.passes:.0f} passes", *([format_rate(rate)] if rate else []))
        if self._tol is not None and 0 < moment.gap < 1:
            self._done = min(ALMOST_FULL, math.log(moment.gap) / math.log(min(self._tol, 0.5)))
        self._show()
        return False

    def verdict(self, verdict: Verdict) -> bool:
        """Show what is proved so far; this is a callback for `separate`."""
        self.show_text(f"no proof yet; the margin is at most {outward(*verdict.margin)[1]}")
        return False

    def show_text(self, text: str) -> None:
        """Show this text until there is something else to show."""
        self._state = (text,)
        self._show()

    def _write_lines(self) -> None:
        """Write a line about the current step every LOG_INTERVAL seconds."""
        while not self._over.wait(LOG_INTERVAL):
            seconds = time.monotonic() - self._begin
            with contextlib.suppress(OSError, ValueError):  # a full or closed log must not stop the run
                print(f"{seconds:.0f} s: {'  '.join((self._what, *self._state))}", file=sys.stderr, flush=True)

    def _start_quietly(self) -> None:
        """Start the line in its own thread, where an exception must not print a traceback: there is no line then."""
        with contextlib.suppress(Exception):
            self._start()

    def _start(self) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        where = console(err=True)
        bar = [BarColumn(bar_width=20)] if self._tol is not None and where.width >= MIN_BAR_WIDTH else []
        columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), *bar]
        columns += [TextColumn("{task.fields[state]}", markup=False), TimeElapsedColumn()]
        progress = Progress(*columns, console=where, transient=True, refresh_per_second=8)
        progress.add_task(self._what, total=None if self._tol is None else 1.0, state="")
        progress.start()
        self._progress = progress
        self._show()

    def _show(self) -> None:
        if self._progress is not None:
            task, width = self._progress.task_ids[0], self._progress.console.width
            room = width - CLOCK_WIDTH - (0 if self._tol is None else 1 + (20 if width >= MIN_BAR_WIDTH else 8))
            what, state = fit_to_width(self._what, self._state, room)
            self._progress.update(task, description=what, completed=self._done, state=state)


class _Log(logging.Handler):
    """A logging handler that shows what gordan logs, such as that code is being compiled."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        self._watch.show_text(record.getMessage())


def fit_to_width(what: str, state: tuple[str, ...], room: int) -> tuple[str, str]:
    """Return the step and its state shortened to this width: the rate is dropped first, then the step, then the passes."""
    line = ""
    for chosen, pieces in ((what, state), (what, state[:2]), ("", state[:2]), ("", state[:1])):
        line = "  ".join(pieces)
        if not state or len(chosen) + 1 + len(line) <= room:
            return chosen, line
    return "", line


def stored_bytes(X: Any) -> int:
    """Return the number of bytes that a pass over X reads."""
    if hasattr(X, "entries"):  # rows on a cluster
        return int(X.entries * X.dtype.itemsize)
    parts = [getattr(X, name) for name in ("data", "indices", "indptr")] if hasattr(X, "indptr") else [X]
    return sum(int(getattr(part, "nbytes", 0)) for part in parts)


def format_rate(rate: float) -> str:
    """Return a rate in bytes per second as text."""
    from rich.filesize import decimal

    return f"{decimal(round(rate))}/s"
