"""A line on stderr that shows the bracket closing."""

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

from gordan.cli.answers import console, visible
from gordan.verdicts import outward

if TYPE_CHECKING:
    from gordan.trace import Moment
    from gordan.verdicts import Verdict

# Seconds of silence before a progress bar appears: short runs show none.
PATIENCE = 0.4
# Seconds between the lines of a log.
EVERY = 30.0
# Columns of a terminal from which there is room for a bar beside the numbers.
WIDE = 120
# How full the bar gets: rich stops its clock where a task is complete, and a run that goes on is not.
FULL = 0.999
# Columns that the turning mark, the clock and the spaces around them take.
CLOCK = 12


class Showing(StrEnum):
    """What `--progress` may be."""

    AUTO = "auto"
    LOG = "log"
    NONE = "none"


class Shown:
    """How progress is shown, by `--progress`."""

    how = Showing.AUTO


class Watch:
    """A line on stderr that shows the bracket closing, if stderr is a terminal and the run is a long one; or lines of a log.

    A wide terminal has room for a bar as well. It is all but full when the relative width of the bracket has come down from 1 to
    `tol`, on a logarithmic scale.
    """

    def __init__(self, what: str, tol: float | None = None) -> None:
        self._what, self._tol = visible(what), tol
        self._done, self._bytes = 0.0, 0
        self._state: tuple[str, ...] = ()
        self._progress: Any = None
        self._timer = threading.Timer(PATIENCE, self._start_quietly)
        self._timer.daemon = True
        self._log = _Log(self)
        self._over = threading.Event()
        self._begin = time.monotonic()
        self.visible = Shown.how is Showing.LOG or (Shown.how is Showing.AUTO and sys.stderr.isatty())

    def __enter__(self) -> Watch:
        if self.visible:
            if Shown.how is Showing.LOG:
                self._timer = threading.Timer(0.0, self._write_lines)
                self._timer.daemon = True
            self._timer.start()
            logging.getLogger("gordan").addHandler(self._log)
            logging.getLogger("gordan").setLevel(logging.INFO)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Take the line away."""
        logging.getLogger("gordan").removeHandler(self._log)
        self._over.set()
        self._timer.cancel()
        if self._timer.ident is not None:
            self._timer.join()
        if self._progress is not None:
            self._progress.stop()

    def about(self, what: str, X: Any = None) -> None:
        """Another thing is being done now, with the data X: a pass reads all that is stored of it."""
        if X is not None:
            self._bytes = stored_bytes(X)
        self._what, self._done, self._state = visible(what), 0.0, ()
        self._show()

    def moment(self, moment: Moment) -> bool:
        """Show a recorded round; a callback of `maximize_margin` and `play`."""
        lower, upper = outward(moment.lower, moment.upper)
        found = moment.lower > 0
        bracket = f"margin {lower} … {upper}  gap {moment.gap:.1e}" if found else f"no separator yet, margin at most {upper}"
        rate = moment.passes * self._bytes / moment.seconds if moment.seconds > 0 else 0.0
        self._state = (bracket, f"{moment.passes:.0f} passes", *([rate_told(rate)] if rate else []))
        if self._tol is not None and 0 < moment.gap < 1:
            self._done = min(FULL, math.log(moment.gap) / math.log(min(self._tol, 0.5)))
        self._show()
        return False

    def verdict(self, verdict: Verdict) -> bool:
        """Show what is proved so far; a callback of `separate`."""
        self.note(f"no proof yet; the margin is at most {outward(*verdict.margin)[1]}")
        return False

    def note(self, text: str) -> None:
        """Show this until there is something else to show."""
        self._state = (text,)
        self._show()

    def _write_lines(self) -> None:
        """What is being done, every half minute, for a log."""
        while not self._over.wait(EVERY):
            seconds = time.monotonic() - self._begin
            with contextlib.suppress(OSError, ValueError):  # a log that is full or closed ends nothing
                print(f"{seconds:.0f} s: {'  '.join((self._what, *self._state))}", file=sys.stderr, flush=True)

    def _start_quietly(self) -> None:
        """In a thread of its own, where an exception would be a traceback on stderr: then there is no line, and that is all."""
        with contextlib.suppress(Exception):
            self._start()

    def _start(self) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        where = console(err=True)
        bar = [BarColumn(bar_width=20)] if self._tol is not None and where.width >= WIDE else []
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
            room = width - CLOCK - (0 if self._tol is None else 1 + (20 if width >= WIDE else 8))
            what, state = fitting(self._what, self._state, room)
            self._progress.update(task, description=what, completed=self._done, state=state)


class _Log(logging.Handler):
    """Shows what is logged: that code is being compiled."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        self._watch.note(record.getMessage())


def fitting(what: str, state: tuple[str, ...], room: int) -> tuple[str, str]:
    """What is being done and how it stands, in so many characters: the bytes go first, then what is done, then the passes."""
    told = ""
    for chosen, pieces in ((what, state), (what, state[:2]), ("", state[:2]), ("", state[:1])):
        told = "  ".join(pieces)
        if not state or len(chosen) + 1 + len(told) <= room:
            return chosen, told
    return "", told


def stored_bytes(X: Any) -> int:
    """What a pass over X reads."""
    if hasattr(X, "entries"):  # rows on a cluster
        return int(X.entries * X.dtype.itemsize)
    parts = [getattr(X, name) for name in ("data", "indices", "indptr")] if hasattr(X, "indptr") else [X]
    return sum(int(getattr(part, "nbytes", 0)) for part in parts)


def rate_told(rate: float) -> str:
    """Bytes per second in words."""
    for unit in ("B/s", "kB/s", "MB/s", "GB/s"):
        if rate < 999.5:
            return f"{rate:.3g} {unit}"
        rate /= 1000
    return f"{rate:.3g} TB/s"
