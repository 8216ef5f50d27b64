"""CSV and TSV with a header: one line per row, quotes as in RFC 4180, every feature a finite number."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.io.table import Labels, Table, Wanted, number, why_not_finite
from gordan.io.text import Text, take_rows

ENTRIES = 1 << 20  # of X, per call of the scanner
COUNTED = 1 << 14  # entries of leading columns, at a time
DELIMITERS = {"csv": ",", "tsv": "\t"}
# What may be between the columns of a file that has another name; None: any blanks.
SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas", None: "spaces"}
LABEL, UNUSED = -1, -2


def read_delimited(path: Path, wanted: Wanted, delimiter: str) -> Table:
    """The table in a file of text with that delimiter; X is dense float64."""
    with Text(path) as text:
        cells = Cells(text, wanted, delimiter)
        take_rows(cells)
    X = cells.matrix()
    return Table(X, cells.labels.array(path) if cells.labelled else None, cells.names, path, tuple(cells.chosen))


def header_of(path: Path, delimiter: str) -> list[str]:
    """The names of the columns."""
    with Text(path) as text:
        return Cells(text, Wanted(labelled=False), delimiter).header


def leading_columns(path: Path, delimiter: str, positions: list[int]) -> Iterator[tuple[int, Array]]:
    """These columns alone, some rows at a time, and 0: the number of the file."""
    with Text(path) as text:
        cells = Cells(text, Wanted(labelled=False), delimiter, positions)
        while text.more():
            take_rows(cells, COUNTED)
            yield 0, cells.drained()


class Cells:
    """The rows read so far, in parts; the header is read first. `only`: the positions of the features, where these are known."""

    def __init__(self, text: Text, wanted: Wanted, delimiter: str, only: list[int] | None = None) -> None:
        self.text, self.delimiter, self.labels, self._wanted = text, delimiter, Labels(), wanted
        self._parts: list[Array] = []
        self._records = csv.reader(self._decoded(), delimiter=delimiter, strict=True)
        header = self._next_record()
        while header == []:  # blank lines
            header = self._next_record()
        if header is None:
            raise InputError(f"{text.path} is empty; a header and rows are needed")
        self.header = header
        self._check_header()
        self.label_at, self.chosen = wanted.columns(len(header), header, text.path) if only is None else (None, only)
        self.labelled, self.width = self.label_at is not None, len(self.chosen)
        self.names = tuple(header[j] for j in self.chosen)
        self.roles = np.full(len(header), UNUSED, np.int64)
        self.roles[self.chosen] = np.arange(self.width)
        if self.label_at is not None:
            self.roles[self.label_at] = LABEL
        self._scratch: list[Array] = []

    def scan(self) -> tuple[bool, int]:
        """Take plain lines of the block at full speed; whether the next line is none, and how many rows there were."""
        from gordan.io import scan

        if not self._scratch:
            most = max(1, ENTRIES // self.width)
            self._scratch = [np.empty((most, self.width)), np.empty(most, np.int64), np.empty((scan.LABELS, 3), np.int64)]
        text, block = self.text, self.text.block
        X, which, labels = self._scratch
        scanner: Any = scan.scan_table
        state, text.at, text.line, rows, distinct = scanner(
            np.frombuffer(block, np.uint8), text.at, text.line, ord(self.delimiter), self.roles, *self._scratch
        )
        self._parts.append(X[:rows].copy())
        if self.labelled:
            self.labels.add_found(block, labels[:distinct], which[:rows])
        return state == scan.STOPPED, rows

    def parse(self, most: int) -> None:
        """Take that many records in Python, or refuse one."""
        rows: list[list[float]] = []
        texts: list[bytes] = []
        lines: list[int] = []
        for _ in range(most):
            line = self.text.line
            record = self._next_record()
            if record is None:
                break
            if record or len(self.roles) == 1:  # else it is a blank line
                row, label = self._parsed(record or [""], line)
                rows.append(row)
                texts.append(label)
                lines.append(line)
        self._parts.append(np.array(rows, dtype=np.float64).reshape(len(rows), self.width))
        if self.labelled:
            self.labels.add(texts, lines, np.arange(len(texts)))

    def _parsed(self, record: list[str], line: int) -> tuple[list[float], bytes]:
        """The features and the label of one record."""
        path = self.text.path
        if len(record) != len(self.roles):
            raise InputError(f"{path}, line {line}: it has {len(record)} fields, where the header has {len(self.roles)}")
        row, label = [], b"" if self.label_at is None else record[self.label_at].encode()
        for j in self.chosen:
            value = number(record[j].encode())
            if value is None or value - value != 0:  # inf - inf is nan
                name = self.header[j]
                where, hint = f"{path}, line {line}, column {j} ({name[:40]!r})", ""
                if value is None and record[j].strip() and not self._wanted.by_name:
                    column = name if name.isidentifier() and self.header.count(name) == 1 else j
                    if self._wanted.label is None and self.labelled:
                        hint = f"; if it is the label, say so: --label {column}, in Python label={column!r}"
                    hint += f"; --drop {column} leaves it out"
                raise InputError(f"{where}: the cell {why_not_finite(record[j].encode())}{hint}")
            row.append(value)
        return row, label

    @property
    def held(self) -> int:
        """Numbers not drained."""
        return sum(part.size for part in self._parts)

    def drained(self) -> Array:
        """The rows since the last call."""
        X = np.concatenate([np.empty((0, self.width)), *self._parts])
        self._parts = []
        return X

    def go_to(self, text: Text) -> None:
        """Go on in another `Text`, behind the header."""
        self.text = text
        self._records = csv.reader(self._decoded(), delimiter=self.delimiter, strict=True)

    def matrix(self) -> Array:
        """X."""
        X = self.drained()
        if not len(X):
            raise InputError(f"{self.text.path} has a header but no rows")
        return X

    def _check_header(self) -> None:
        names, path = self.header, self.text.path
        counted = ([str(j) for j in range(len(names))], [str(j + 1) for j in range(len(names))])  # as pandas names columns
        if names not in counted and all(number(name.encode()) is not None for name in names):
            raise InputError(f"{path} has no header: line 1 is all numbers; put the names of the columns there")
        if len(names) == 1:
            self._check_separator(names[0])

    def _check_separator(self, header: str) -> None:
        """Refuse a file of one column if its header and its first line fall into as many parts at something else."""
        first = self.text.block[self.text.at :].partition(b"\n")[0].decode() if self.text.more() else ""
        for mark, told in SEPARATORS.items():
            if mark != self.delimiter and len(header.split(mark)) == len(first.split(mark)) > 1:
                named = next((f"; name it .{kind}, or" for kind, own in DELIMITERS.items() if own == mark), ";")
                raise InputError(
                    f"{self.text.path} is separated by {told}{named} save it with {self.delimiter!r} between the columns"
                )

    def _decoded(self) -> Iterator[str]:
        for line in self.text.lines():
            yield line.decode()

    def _next_record(self) -> list[str] | None:
        line = self.text.line
        try:
            return next(self._records, None)
        except csv.Error as error:
            raise InputError(f"{self.text.path}, line {line}: {error}") from None
