"""How the command line talks: answers and JSON on stdout, progress and complaints on stderr, and the exit codes."""

from __future__ import annotations

import functools
import json
import math
import re
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Sequence
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec

import typer

from gordan.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from rich.console import Console

    from gordan.cli.data import Data
    from gordan.trace import Moment
    from gordan.verdicts import Verdict, Witness

ANSWERED, NO, BAD_INPUT, OPEN, INTERRUPTED = 0, 1, 2, 3, 130
# What `sysexits.h` calls a temporary failure: do the same again, and it goes on.
TERMINATED = 75
# Seconds of silence before a progress bar appears: short runs show none.
PATIENCE = 0.4
# Columns of a terminal from which there is room for a bar beside the numbers.
WIDE = 120
# Columns that the turning mark, the clock and the spaces around them take.
CLOCK = 12
# Rows of a witness, or of any other list, that are printed.
MOST_ROWS = 10
# Characters that do something to a terminal; not the end of a line and the tabulator.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
P = ParamSpec("P")


# ---- commands and how they end ----------------------------------------------------------------------------------------


def answering(command: Callable[P, int]) -> Callable[P, None]:
    """A command that returns its exit code, with the errors that gordan raises by design told in one line each."""

    @functools.wraps(command)
    def answer(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except BrokenPipeError:  # whoever read our output has gone, as `head` does
            raise
        except KeyboardInterrupt as error:
            terminated = isinstance(error, Terminated)
            complain("terminated" if terminated else "interrupted", kwargs)
            code = TERMINATED if terminated else INTERRUPTED
        except (InputError, MissingExtra) as error:
            code = complain(str(error), kwargs)
        except OSError as error:
            told = f"{error.filename}: {error.strerror or error}" if error.filename is not None else str(error)
            code = complain(told, kwargs)
        except MemoryError:
            code = complain("there is not enough memory for this data", kwargs)
        raise typer.Exit(code)

    return answer


def complain(message: str, options: dict[str, Any]) -> int:
    """Say on stderr what went wrong, and with --json on stdout as well; the exit code of bad input."""
    typer.echo(f"gordan: {visible(message)}", err=True)
    if options.get("as_json"):
        say_json({"error": message})
    return BAD_INPUT


def note(message: str) -> None:
    """A remark on stderr, which leaves stdout to the answer."""
    typer.echo(visible(message), err=True)


class Terminated(KeyboardInterrupt):
    """SIGTERM: taken as the wish to stop with what there is, as Ctrl-C is."""


class Interrupts:
    """Within: Ctrl-C and SIGTERM are remembered, since the functions that keep what they have proved do not pass them on.

    `code` is the exit code that the signal asks for, None if there was none.
    """

    code: int | None = None

    @property
    def pressed(self) -> bool:
        """Whether there was a signal."""
        return self.code is not None

    @property
    def told(self) -> str:
        """What happened, in a word."""
        return "terminated" if self.code == TERMINATED else "interrupted"

    def __enter__(self) -> Interrupts:
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            self._before = {which: signal.signal(which, self._press) for which in (signal.SIGINT, signal.SIGTERM)}
        return self

    def _press(self, which: int, _: FrameType | None) -> NoReturn:
        if which == signal.SIGTERM:
            self.code = TERMINATED
            raise Terminated
        self.code = INTERRUPTED
        raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        for which, before in self._before.items():
            if before is not None:  # it was none of Python's
                signal.signal(which, before)


# ---- answers ----------------------------------------------------------------------------------------------------------


def say(text: str) -> None:
    """A line of the answer; broken between words where a terminal is narrower."""
    typer.echo(fitted(text))


def say_lines(lines: Iterable[str]) -> None:
    """Lines of the answer: on a terminal visible, piped as they are."""
    typer.echo("\n".join(map(visible, lines) if sys.stdout.isatty() else lines))


def visible(text: str) -> str:
    """text with control characters shown by their codes: names and labels come from files, and must not command the terminal."""
    return CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def fitted(text: str) -> str:
    """text, visible, in lines that fit the terminal; in one line if piped, so that one answer is one line."""
    text = visible(text)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    if not 20 <= width < len(text):
        return text
    indent = " " * (len(text) - len(text.lstrip(" ")))
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def headline(text: str, good: bool | None) -> None:
    """The first line of an answer: what comes before the colon in green, red, or yellow where it is open; plain if piped."""
    colour = {True: typer.colors.GREEN, False: typer.colors.RED, None: typer.colors.YELLOW}[good]
    head, colon, rest = fitted(text).partition(":")
    typer.echo(typer.style(head, fg=colour, bold=True) + colon + rest)


def say_json(content: Any) -> None:
    """The answer for machines: one JSON object on one line."""
    typer.echo(json.dumps(plain(content), allow_nan=False))


def plain(value: Any) -> Any:
    """For JSON: arrays as lists, and null for infinity and NaN, which JSON does not have."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def witness_plain(witness: Witness | None) -> dict[str, Any] | None:
    """A witness for JSON; weights as hexadecimal text, since they may have thousands of digits."""
    return None if witness is None else {"rows": witness.rows, "weights": [hex(weight) for weight in witness.weights]}


def say_witness(witness: Witness, data: Data) -> None:
    """The rows of a witness, where they are in the file, and with which weights they cancel."""
    shown = witness.rows[:MOST_ROWS]
    lines = data.lines(shown)
    table = [
        [f"row {row}", f"line {lines[row]}" if row in lines else "", f"label {data.labels[row]}", f"weight {weight}"]
        for row, weight in zip(shown, weights_told(witness), strict=False)
    ]
    for line in aligned(table):
        say("  " + line)
    if len(witness.rows) > len(shown):
        say(f"  and {len(witness.rows) - len(shown)} more rows; --json lists them all")


def weights_told(witness: Witness) -> list[str]:
    """The weights of a witness: as they are if they are short, else about which share of the total each is."""
    if max(witness.weights) < 10**9:
        return [str(weight) for weight in witness.weights]
    total = sum(witness.weights)
    return [f"≈ {weight / total:.3g} of all" for weight in witness.weights]


def aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, each column as wide as its widest cell; empty columns are left out."""
    columns = [column for column in zip(*table, strict=True) if any(column)]
    widths = [max(map(len, column)) for column in columns]
    padded = (zip(row, widths, strict=True) for row in zip(*columns, strict=True))
    return ["  ".join(cell.ljust(width) for cell, width in row).rstrip() for row in padded]


def rows_told(rows: Iterable[int]) -> str:
    """Rows in words, runs of them shortened: 3, 5-9."""
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][1] + 1:
            runs[-1][1] = row
        else:
            runs.append([row, row])
    told = [str(start) if start == end else f"{start}-{end}" for start, end in runs]
    return ", ".join(told[:MOST_ROWS]) + (", …" if len(told) > MOST_ROWS else "")


def console(*, err: bool = False) -> Console:
    """Rich's console, for tables; [brackets] and :colons: in names are nothing but these."""
    from rich.console import Console

    return Console(stderr=err, highlight=False, markup=False, emoji=False)


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


# ---- progress ---------------------------------------------------------------------------------------------------------


class Watch:
    """A line on stderr that shows the bracket closing, if stderr is a terminal and the run is a long one.

    A wide terminal has room for a bar as well. It is full when the relative width of the bracket has come down from 1 to `tol`,
    on a logarithmic scale.
    """

    def __init__(self, what: str, tol: float | None = None) -> None:
        self._what, self._tol = visible(what), tol
        self._done, self._bytes = 0.0, 0
        self._state: tuple[str, ...] = ()
        self._progress: Any = None
        self._timer = threading.Timer(PATIENCE, self._start)
        self._timer.daemon = True
        self.visible = sys.stderr.isatty()

    def __enter__(self) -> Watch:
        if self.visible:
            self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Take the line away."""
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
        from gordan.verdicts import outward

        lower, upper = outward(moment.lower, moment.upper)
        found = moment.lower > 0
        bracket = f"margin {lower} … {upper}  gap {moment.gap:.1e}" if found else f"no separator yet, margin at most {upper}"
        rate = moment.passes * self._bytes / moment.seconds if moment.seconds > 0 else 0.0
        self._state = (bracket, f"{moment.passes:.0f} passes", *([rate_told(rate)] if rate else []))
        if self._tol is not None and 0 < moment.gap < 1:
            self._done = min(1.0, math.log(moment.gap) / math.log(min(self._tol, 0.5)))
        self._show()
        return False

    def verdict(self, verdict: Verdict) -> bool:
        """Show what is proved so far; a callback of `separate`."""
        from gordan.verdicts import outward

        self._state = (f"no proof yet; the margin is at most {outward(*verdict.margin)[1]}",)
        self._show()
        return False

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


def fitting(what: str, state: tuple[str, ...], room: int) -> tuple[str, str]:
    """What is being done and how it stands, in so many characters: the bytes go first, then what is done, then the passes."""
    told = ""
    for chosen, pieces in ((what, state), (what, state[:2]), ("", state[:2]), ("", state[:1])):
        told = "  ".join(pieces)
        if not state or len(chosen) + 1 + len(told) <= room:
            return chosen, told
    return "", told
