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
from gordan.io.text import Text

ENTRIES = 1 << 20  # of X, per call of the scanner
LABEL, UNUSED = -1, -2


def read_delimited(path: Path, wanted: Wanted, delimiter: str) -> Table:
    """The table in a CSV (delimiter ",") or TSV ("\\t") file; X is dense float64."""
    with Text(path) as text:
        cells = _Cells(text, wanted, delimiter)
        while text.more():
            if text.short or not cells.scan():
                cells.parse()
    X = cells.matrix()
    return Table(X, cells.labels.array(path) if cells.labelled else None, cells.names, path)


class _Cells:
    """The rows read so far, in parts; the header is read first."""

    def __init__(self, text: Text, wanted: Wanted, delimiter: str) -> None:
        self.text, self.delimiter, self.labels = text, delimiter, Labels()
        self._parts: list[Array] = []
        self._records = csv.reader(self._decoded(), delimiter=delimiter, strict=True)
        self.header = self._next_record()
        while self.header == []:
            self.header = self._next_record()
        if self.header is None:
            raise InputError(f"{text.path} is empty; a header and rows are needed")
        self._check_header()
        at, chosen = wanted.columns(len(self.header), self.header, text.path)
        self.labelled, self.width = at is not None, len(chosen)
        self.names = tuple(self.header[j] for j in chosen)
        self.roles = np.full(len(self.header), UNUSED, np.int64)
        self.roles[chosen] = np.arange(len(chosen))
        if at is not None:
            self.roles[at] = LABEL
        if len(set(chosen)) < len(chosen):
            raise InputError(f"features names a column of {text.path} twice")
        self._scratch: list[Array] = []

    def scan(self) -> bool:
        """Take plain lines of the block at full speed; False if the next line is none."""
        from gordan.io import scan

        if not self._scratch:
            most = max(1, ENTRIES // self.width)
            self._scratch = [np.empty((most, self.width))] + [np.empty(most, np.int64) for _ in range(3)]
        text, block = self.text, self.text.block
        X, label_at, label_to, lines = self._scratch
        scanner: Any = scan.scan_table
        state, text.at, text.line, rows = scanner(
            np.frombuffer(block, np.uint8), text.at, text.line, ord(self.delimiter), self.roles, *self._scratch
        )
        self._parts.append(X[:rows].copy())
        if self.labelled:
            self.labels.add(block, label_at[:rows], label_to[:rows], lines[:rows])
        return bool(state != scan.STOPPED)

    def parse(self) -> None:
        """Take one record in Python, or refuse it."""
        line, path = self.text.line, self.text.path
        record = self._next_record()
        if record is None or (record == [] and len(self.roles) > 1):
            return  # a blank line
        if record != [] and len(record) != len(self.roles):
            raise InputError(f"{path}, line {line}: it has {len(record)} fields, where the header has {len(self.roles)}")
        row = np.empty((1, self.width))
        for j, cell in enumerate(record or [""]):
            role, content = int(self.roles[j]), cell.encode()
            if role == LABEL:
                self.labels.add(content, np.array([0]), np.array([len(content)]), np.array([line]))
            elif role >= 0:
                value = number(content)
                if value is None or value - value != 0:  # inf - inf is nan
                    raise InputError(f"{path}, line {line}, column {self._told(j)}: the cell {why_not_finite(content)}")
                row[0, role] = value
        self._parts.append(row)

    def matrix(self) -> Array:
        """X."""
        X = np.concatenate([np.empty((0, self.width)), *self._parts])
        self._parts = []
        if not len(X):
            raise InputError(f"{self.text.path} has a header but no rows")
        return X

    def _check_header(self) -> None:
        names, path = self.header or [], self.text.path
        counted = ([str(j) for j in range(len(names))], [str(j + 1) for j in range(len(names))])  # as pandas names columns
        if names not in counted and all(number(name.encode()) is not None for name in names):
            raise InputError(f"{path} has no header: line 1 is all numbers; put the names of the columns there")
        if len(names) == 1 and ";" in names[0]:
            raise InputError(f"{path} is separated by semicolons; save it with {self.delimiter!r} between the columns")

    def _told(self, j: int) -> str:
        names = self.header or []
        return f"{j} ({names[j][:40]!r})"

    def _decoded(self) -> Iterator[str]:
        for line in self.text.lines():
            yield line.decode()

    def _next_record(self) -> list[str] | None:
        line = self.text.line
        try:
            return next(self._records, None)
        except csv.Error as error:
            raise InputError(f"{self.text.path}, line {line}: {error}") from None
