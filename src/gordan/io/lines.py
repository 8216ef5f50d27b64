"""Find the lines of a text file on which given rows start."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from pathlib import Path

from gordan.io.delimited import DELIMITERS, cells_of_any_length
from gordan.io.reading import format_of
from gordan.io.table import Dialect
from gordan.io.text import Text

# Larger files are not read a second time just to report line numbers.
MAX_SEARCHED_BYTES = 1 << 24


def lines_of(path: Path, rows: Collection[int], dialect: Dialect | None = None) -> dict[int, int]:
    """Return the line on which each of these rows (of the file, from 0) starts; nothing for binary and for large files."""
    kind = "folder" if path.is_dir() else format_of(path)
    if not rows or kind not in ("svmlight", *DELIMITERS) or path.stat().st_size > MAX_SEARCHED_BYTES:
        return {}
    starts = _svmlight_starts(path) if kind == "svmlight" else _delimited_starts(path, dialect or Dialect(DELIMITERS[kind]))
    wanted, last, found = {*rows}, max(rows), {}
    with cells_of_any_length():
        for row, line in enumerate(starts):
            if row in wanted:
                found[row] = line
            if row >= last:
                break
    return found


def _svmlight_starts(path: Path) -> Iterator[int]:
    with Text(path) as text:
        for number, line in enumerate(text.lines(), 1):
            if line.partition(b"#")[0].split():
                yield number


def _delimited_starts(path: Path, dialect: Dialect) -> Iterator[int]:
    with Text(path) as text:
        records = csv.reader((line.decode() for line in text.lines()), delimiter=dialect.sep or ",", strict=True)
        header, before = dialect.header, text.line - 1
        start = before + 1
        for record in records:
            if record and not header:
                yield start
            header, start = header and not record, before + records.line_num + 1
