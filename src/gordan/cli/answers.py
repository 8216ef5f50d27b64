"""What a command prints: text or one JSON object on stdout, remarks on stderr."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from gordan.arrays import plain
from gordan.errors import InputError
from gordan.io.files import require_writable
from gordan.io.lines import lines_of

if TYPE_CHECKING:
    from rich.console import Console

    from gordan.cli.data import Data
    from gordan.verdicts import Witness

# Rows of a witness, or of any other list, that are printed.
MOST_ROWS = 10
# Characters that do something to a terminal; not the end of a line and the tabulator.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


# What people call the files that are copies of standard input and of pipes.
COPIES: dict[str, str] = {}


def as_given(text: str) -> str:
    """The text with the names that people know instead of those of copies."""
    for copy, name in COPIES.items():
        text = text.replace(copy, name)
    return text


def note(message: str) -> None:
    """A remark on stderr, which leaves stdout to the answer; a stderr that is full does not cost the answer."""
    with contextlib.suppress(OSError):
        typer.echo(visible(message), err=True)


def emit(text: str) -> None:
    """Print to stdout; if that fails (it may be redirected to a full disk), the error says what could not be written."""
    try:
        typer.echo(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from None


def say(text: str) -> None:
    """A line of the answer; broken between words where a terminal is narrower."""
    emit(fitted(text))


def say_lines(lines: Iterable[str]) -> None:
    """Lines of the answer: on a terminal visible, piped as they are."""
    emit("\n".join(map(visible, lines) if sys.stdout.isatty() else lines))


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
    emit(typer.style(head, fg=colour, bold=True) + colon + rest)


def say_json(content: dict[str, Any], notices: Sequence[str] | None = None) -> None:
    """The answer for machines: one JSON object on one line; of data that was read, with the notices about its columns."""
    told = {} if notices is None else {"notices": list(notices)}
    emit(json.dumps(plain({**content, **told}), allow_nan=False))


def say_witness(witness: Witness, data: Data) -> None:
    """The rows of a witness, by their numbers in the file, where they are in it, and with which weights they cancel."""
    shown = witness.rows[:MOST_ROWS]
    labels = dict(zip(shown, data.labels[np.searchsorted(data.kept, shown)], strict=True))
    lines = lines_of(data.path, shown, data.dialect)
    table = [
        [f"row {row}", f"line {lines[row]}" if row in lines else "", f"label {labels[row]}", f"weight {weight}"]
        for row, weight in zip(shown, weights_told(witness), strict=False)
    ]
    for line in aligned(table):
        say("  " + line)
    if len(witness.rows) > len(shown):
        say(f"  and {len(witness.rows) - len(shown)} more rows; --json lists them all")
    if data.left_out:
        say(f"  (Row numbers are those of the file: {data.numbering}.)")


def weights_told(witness: Witness) -> list[str]:
    """The weights of a witness: as they are if they are short, else about which share of the total each is."""
    if not witness.exact:
        return [f"{weight:.3g}" for weight in witness.weights]
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


def require_output(path: Path | None, data: Path | None = None) -> None:
    """Refuse a file that cannot be written, or that is the data itself, before anything is computed."""
    if path is not None:
        require_writable(path)
        if data is not None and path.is_file() and data.exists() and path.samefile(data):
            raise InputError(f"{path} is the input file; write to another file")
