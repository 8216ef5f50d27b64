"""Print the answers of commands: text or one JSON object on stdout, remarks on stderr."""

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
from gordan.cli import drop_output
from gordan.errors import InputError
from gordan.io.files import require_writable
from gordan.io.lines import lines_of

if TYPE_CHECKING:
    from rich.console import Console

    from gordan.cli.data import Data
    from gordan.verdicts import Witness

# At most this many rows of a witness, or of any other list, are printed.
MAX_ROWS = 10
# Control characters, which could command the terminal, except newline and tab.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


# The names that users know for the temporary copies of standard input and of pipes.
TEMPORARY_COPIES: dict[str, str] = {}


def with_original_names(text: str) -> str:
    """Replace the names of temporary copies in a text by those of the originals."""
    return replaced(text, TEMPORARY_COPIES)


def replaced(text: str, words: dict[str, str]) -> str:
    """Return a text with words replaced by others, one after the other."""
    for old, new in words.items():
        text = text.replace(old, new)
    return text


def print_notes(*notes: str) -> None:
    """Print remarks to stderr, one per line; failing to do so, for instance on a full disk, does not stop the command."""
    for note in notes:
        with contextlib.suppress(OSError):
            typer.echo(escape_controls(note), err=True)


def write_stdout(text: str) -> None:
    """Print to stdout; an error, for instance on a full disk, names standard output."""
    try:
        typer.echo(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        raise OSError(error.errno, error.strerror, "standard output") from None


def print_line(text: str) -> None:
    """Print a line of the answer, wrapped to the width of the terminal."""
    write_stdout(wrapped(text))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of the answer, with control characters escaped on a terminal and unchanged in a pipe."""
    write_stdout("\n".join(map(escape_controls, lines) if sys.stdout.isatty() else lines))


def escape_controls(text: str) -> str:
    """Replace control characters by their codes, because names and labels come from files that may be malicious."""
    return CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def wrapped(text: str) -> str:
    """Return an escaped text in lines that fit the terminal, or in one line if the output is piped."""
    text = escape_controls(text)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    if not 20 <= width < len(text):
        return text
    indent = " " * (len(text) - len(text.lstrip(" ")))
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def headline(text: str, good: bool | None) -> None:
    """Print the first line of an answer, up to the colon in green, red or (undecided) yellow on a terminal."""
    colour = {True: typer.colors.GREEN, False: typer.colors.RED, None: typer.colors.YELLOW}[good]
    head, colon, rest = wrapped(text).partition(":")
    write_stdout(typer.style(head, fg=colour, bold=True) + colon + rest)


def print_json(content: dict[str, Any], notices: Sequence[str] | None = None) -> None:
    """Print the answer as one JSON object on one line, with the notices about the data, if any was read."""
    extra = {} if notices is None else {"notices": list(notices)}
    write_stdout(json.dumps(plain({**content, **extra}), allow_nan=False))


def print_witness(witness: Witness, data: Data) -> None:
    """Print the rows of a witness with their numbers and lines in the file, their labels and their weights."""
    shown = witness.rows[:MAX_ROWS]
    labels = dict(zip(shown, data.labels[np.searchsorted(data.kept, shown)], strict=True))
    lines = lines_of(data.path, shown, data.dialect)
    table = [
        [f"row {row}", f"line {lines[row]}" if row in lines else "", f"label {labels[row]}", f"weight {weight}"]
        for row, weight in zip(shown, format_weights(witness), strict=False)
    ]
    for line in align_columns(table):
        print_line("  " + line)
    if len(witness.rows) > len(shown):
        print_line(f"  and {len(witness.rows) - len(shown)} more rows; --json lists them all")
    if data.left_out:
        print_line(f"  (Row numbers are those of the file: {data.numbering}.)")


def format_weights(witness: Witness) -> list[str]:
    """Return the weights of a witness as text: exactly if they are short, else as shares of their sum."""
    if not witness.exact:
        return [f"{weight:.3g}" for weight in witness.weights]
    if max(witness.weights) < 10**9:
        return [str(weight) for weight in witness.weights]
    total = sum(witness.weights)
    return [f"≈ {weight / total:.3g} of all" for weight in witness.weights]


def align_columns(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table whose columns are as wide as their widest cell; empty columns are left out."""
    columns = [column for column in zip(*table, strict=True) if any(column)]
    widths = [max(map(len, column)) for column in columns]
    padded = (zip(row, widths, strict=True) for row in zip(*columns, strict=True))
    return ["  ".join(cell.ljust(width) for cell, width in row).rstrip() for row in padded]


def format_rows(rows: Iterable[int]) -> str:
    """Return row numbers as text, with runs abbreviated: 3, 5-9."""
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][1] + 1:
            runs[-1][1] = row
        else:
            runs.append([row, row])
    parts = [str(start) if start == end else f"{start}-{end}" for start, end in runs]
    return ", ".join(parts[:MAX_ROWS]) + (", …" if len(parts) > MAX_ROWS else "")


def console(*, err: bool = False) -> Console:
    """Return a console of rich that does not interpret [brackets] and :colons: in names."""
    from rich.console import Console

    return Console(stderr=err, highlight=False, markup=False, emoji=False)


def require_output(path: Path | None, data: Path | None = None) -> None:
    """Raise an InputError, before anything is computed, if the output cannot be written or is the input file."""
    if path is not None:
        require_writable(path)
        if data is not None and path.is_file() and data.exists() and path.samefile(data):
            raise InputError(f"{path} is the input file; write to another file")
