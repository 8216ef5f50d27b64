"""Read svmlight (libsvm) files: lines `label index:value index:value … # comment` with increasing indices and without zeros."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.io.table import Labels, Request, Table, drop_columns, number, why_not_finite
from gordan.io.text import Text, read_rows

MAX_INDEX = 2**31 - 1  # as in LIBSVM; a larger index is a sign of a damaged line, and w would not fit into memory
SCANNED_ROWS = 1 << 15  # rows for each call of the scanner


def read_svmlight(path: Path, wanted: Request) -> Table:
    """Return the table in an svmlight file; X is CSR, and explicit zeros are stored, too."""
    features = wanted.count(f"{path} is svmlight: the label comes first and columns have no names")
    with Text(path) as text:
        entries = Entries(text, has_labels(text, wanted))
        read_rows(entries)
    X, numbers = entries.matrix(features, dropped_indices(wanted, path))
    return Table(X, entries.labels.array(path) if entries.labelled else None, None, path, numbers)


def dropped_indices(wanted: Request, path: Path) -> Array:
    """Return the indices of the columns to leave out, as in the file."""
    for column in wanted.drop:
        if not re.fullmatch("[0-9]{1,10}", str(column)):
            raise InputError(f"{path} is svmlight: its columns have no names; drop {column!r} by its index in the file")
    return np.unique(np.array([int(column) for column in wanted.drop], dtype=np.int64))


def require_existing_columns(dropped: Array, first: int, width: int, path: Path) -> None:
    """Raise an InputError for dropping columns that do not exist, or all of the `width` columns from index `first` on."""
    missing = dropped[(dropped < first) | (dropped >= first + width)]
    if len(missing):
        raise InputError(f"{path} has no column {missing[0]} to drop; its columns are {first} to {first + width - 1}")
    if len(dropped) == width:
        raise InputError(f"all columns of {path} are dropped; keep at least one")


def has_labels(text: Text, wanted: Request) -> bool:
    """Return whether the first line that is not blank starts with a label; blank lines before it are skipped."""
    while text.more():
        end = text.block.index(b"\n", text.at) + 1
        tokens = text.block[text.at : end].partition(b"#")[0].split()
        if tokens:
            found = b":" not in tokens[0]
            if wanted.labelled is not None and found != wanted.labelled:
                raise InputError(f"{text.path}, line {text.line}: {LABEL_HINTS[found]}")
            return found
        text.at, text.line = end, text.line + 1
    return wanted.labelled is not False


LABEL_HINTS = {
    True: "it starts with a label; leave out --unlabelled (in Python, labelled=False)",
    False: "it has no label; put one before the entries (in Python, labelled=False reads a file without labels)",
}


class Entries:
    """A reader of the lines of a text, which keeps the entries in parts."""

    def __init__(self, text: Text, labelled: bool) -> None:
        self.text, self.labelled, self.labels = text, labelled, Labels(words=True)
        self._indices: list[Array] = []
        self._values: list[Array] = []
        self._counts: list[Array] = []
        self._buffers: list[Array] = []

    def scan(self) -> tuple[bool, int]:
        """Read plain lines of the block with the compiled scanner; see `Reader.scan`."""
        from gordan.io import scan

        text, block = self.text, self.text.block
        if not self._buffers or len(self._buffers[0]) < len(block) // 4 + 2:  # an entry has at least three characters and a space
            self._buffers = [np.empty(len(block) // 4 + 2, kind) for kind in (np.int64, np.float64)]
            self._buffers += [
                np.empty(SCANNED_ROWS, np.int64),
                np.empty(SCANNED_ROWS, np.int64),
                np.empty((scan.MAX_LABELS, 3), np.int64),
            ]
        indices, values, ends, which, labels = self._buffers
        scanner: Any = scan.scan_svmlight
        state, text.at, text.line, rows, count, distinct = scanner(
            np.frombuffer(block, np.uint8), text.at, text.line, self.labelled, MAX_INDEX, tuple(self._buffers)
        )
        self._add(indices[:count], values[:count], np.diff(ends[:rows], prepend=0))
        if self.labelled:
            self.labels.add_found(block, labels[:distinct], which[:rows])
        return state == scan.STOPPED, rows

    def parse(self, most: int) -> None:
        """Read at most this many lines in Python, and raise an InputError for one that is invalid."""
        text, lines = self.text, self.text.lines()
        indices: list[int] = []
        values: list[float] = []
        counts: list[int] = []
        texts: list[bytes] = []
        numbers: list[int] = []
        for _ in range(most):
            number, line = text.line, next(lines, None)
            if line is None:
                break
            try:
                parsed = parse_line(line, self.labelled)
            except ValueError as error:
                raise InputError(f"{text.path}, line {number}: {error}") from None
            if parsed is not None:
                texts.append(parsed[0])
                numbers.append(number)
                indices += parsed[1]
                values += parsed[2]
                counts.append(len(parsed[1]))
        self._add(np.array(indices), np.array(values), np.array(counts))
        if self.labelled:
            self.labels.add(texts, numbers, np.arange(len(texts)))

    def _add(self, indices: Array, values: Array, counts: Array) -> None:
        self._indices.append(indices.astype(np.int32))
        self._values.append(values.astype(np.float64))
        self._counts.append(counts.astype(np.int64))

    @property
    def held(self) -> int:
        """The number of entries and rows that were read since the last call of `drained`."""
        return sum(map(len, self._values)) + sum(map(len, self._counts))

    def drained(self) -> tuple[Array, Array, Array]:
        """Return the indices as in the file, the values and the number of entries of each row read since the last call."""
        indices = np.concatenate([np.empty(0, np.int32), *self._indices])
        values = np.concatenate([np.empty(0), *self._values])
        counts = np.concatenate([np.empty(0, np.int64), *self._counts])
        self._indices, self._values, self._counts = [], [], []
        return indices, values, counts

    def matrix(self, features: int | None, dropped: Array) -> tuple[Any, Sequence[int]]:
        """Return the CSR matrix without the dropped columns, and the index in the file of each of its columns.

        Columns are counted from 1, unless an index 0 occurs.
        """
        from scipy.sparse import csr_array  # imported here because it takes 0.15 s

        path = self.text.path
        indices, values, counts = self.drained()
        if not len(counts):
            raise InputError(f"{path} is empty: it has no rows")
        first = 0 if len(indices) and indices.min() == 0 else 1
        indices -= first
        width = int(indices.max()) + 1 if len(indices) else 0
        total = width if features is None else features + len(dropped)
        if not total:
            raise InputError(f"{path} has no entries, so its number of columns is unknown; pass features=")
        if width > total:
            row = int(np.searchsorted(np.cumsum(counts), np.argmax(indices), side="right"))
            beside = f" beside the {len(dropped)} that are dropped" if len(dropped) else ""
            raise InputError(f"{path} has {width} columns (see row {row}), but {features} features are wanted{beside}")
        require_existing_columns(dropped, first, total, path)
        indices, values, counts = drop_columns(indices, values, counts, dropped - first)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        if len(values) < 2**31:
            indptr = indptr.astype(np.int32)
        numbers: Any = range(first, first + total)
        if len(dropped):
            numbers = np.setdiff1d(numbers, dropped, assume_unique=True)
        return csr_array((values, indices, indptr), shape=(len(counts), len(numbers))), numbers


def parse_line(line: bytes, labelled: bool) -> tuple[bytes, list[int], list[float]] | None:
    """Return the label, the indices and the values of a line; None if it is blank or a comment; a ValueError if it is invalid."""
    if b"\r" in line.rstrip(b"\r\n"):
        raise ValueError("there is a carriage return inside the line; end lines with a newline")
    tokens = line.partition(b"#")[0].split()
    if not tokens:
        return None
    label = tokens.pop(0) if labelled else b""
    if b":" in label:
        raise ValueError(f"it starts with {_quoted(label)} and has no label; earlier lines have one")
    indices: list[int] = []
    values: list[float] = []
    for token in tokens:
        before, colon, after = token.partition(b":")
        if before == b"qid" and after.lstrip(b"-").isdigit():
            continue
        if not colon:
            hint = "" if labelled or indices else "; earlier lines have no label"
            raise ValueError(f"{_quoted(token)} is not index:value{hint}")
        index, value = _entry(token, before, after)
        if indices and index <= indices[-1]:
            raise ValueError(f"index {index} comes after {indices[-1]}; indices must increase along the line")
        indices.append(index)
        values.append(value)
    return label, indices, values


def _entry(token: bytes, before: bytes, after: bytes) -> tuple[int, float]:
    """Return the index and the value of a token, given what is before and after its colon."""
    if not before.isdigit() or len(before) > 12:
        raise ValueError(f"{_quoted(token)} does not start with an index (a whole number, at least 1; 0 if columns count from 0)")
    index, value = int(before), number(after)
    if index > MAX_INDEX:
        raise ValueError(f"index {index} is too large; the largest possible is {MAX_INDEX}")
    if value is None or value - value != 0:  # inf - inf is nan
        raise ValueError(f"the value of index {index} {why_not_finite(after)}")
    return index, value


def _quoted(token: bytes) -> str:
    return repr(token[:40].decode(errors="replace"))
