"""svmlight (libsvm) text: `label index:value index:value … # comment`, indices rising, zeros left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.io.table import Labels, Table, Wanted, number, why_not_finite, without
from gordan.io.text import Text, take_rows

MOST_INDEX = 2**31 - 1  # as in LIBSVM; a larger one is a damaged line, and w would not fit
ROWS = 1 << 15  # per call of the scanner


def read_svmlight(path: Path, wanted: Wanted) -> Table:
    """The table in an svmlight file; X is CSR, and every value is stored, explicit zeros too."""
    features = wanted.count(f"{path} is svmlight: the label comes first and columns have no names")
    with Text(path) as text:
        entries = Entries(text, labelled(text, wanted))
        take_rows(entries)
    X, numbers = entries.matrix(features, dropped_numbers(wanted, path))
    return Table(X, entries.labels.array(path) if entries.labelled else None, None, path, numbers)


def dropped_numbers(wanted: Wanted, path: Path) -> Array:
    """The indices of the columns to leave out, as the file has them."""
    for column in wanted.drop:
        if not re.fullmatch("[0-9]{1,10}", str(column)):
            raise InputError(f"{path} is svmlight: its columns have no names; drop {column!r} by its index in the file")
    return np.unique(np.array([int(column) for column in wanted.drop], dtype=np.int64))


def require_numbers(dropped: Array, first: int, width: int, path: Path) -> None:
    """Refuse to drop what is not there, or all that is; the columns are `first` and so on, `width` in all."""
    missing = dropped[(dropped < first) | (dropped >= first + width)]
    if len(missing):
        raise InputError(f"{path} has no column {missing[0]} to drop; its columns are {first} to {first + width - 1}")
    if len(dropped) == width:
        raise InputError(f"all columns of {path} are dropped; keep at least one")


def labelled(text: Text, wanted: Wanted) -> bool:
    """Whether lines start with a label, seen from the first that says something; those before it are taken."""
    while text.more():
        end = text.block.index(b"\n", text.at) + 1
        tokens = text.block[text.at : end].partition(b"#")[0].split()
        if tokens:
            found = b":" not in tokens[0]
            if wanted.labelled is not None and found != wanted.labelled:
                raise InputError(f"{text.path}, line {text.line}: it starts with {'a' if found else 'no'} label; {ASK[found]}")
            return found
        text.at, text.line = end, text.line + 1
    return wanted.labelled is not False


ASK = {
    True: "leave out --unlabelled (in Python, labelled=False)",
    False: "put one in front (in Python, labelled=False reads the rest)",
}


class Entries:
    """The entries read so far, in parts."""

    def __init__(self, text: Text, labelled: bool) -> None:
        self.text, self.labelled, self.labels = text, labelled, Labels(words=True)
        self._indices: list[Array] = []
        self._values: list[Array] = []
        self._counts: list[Array] = []
        self._scratch: list[Array] = []

    def scan(self) -> tuple[bool, int]:
        """Take plain lines of the block at full speed; whether the next line is none, and how many rows there were."""
        from gordan.io import scan

        text, block = self.text, self.text.block
        if not self._scratch or len(self._scratch[0]) < len(block) // 4 + 2:  # an entry has three letters and a space
            self._scratch = [np.empty(len(block) // 4 + 2, kind) for kind in (np.int64, np.float64)]
            self._scratch += [np.empty(ROWS, np.int64), np.empty(ROWS, np.int64), np.empty((scan.LABELS, 3), np.int64)]
        indices, values, ends, which, labels = self._scratch
        scanner: Any = scan.scan_svmlight
        state, text.at, text.line, rows, count, distinct = scanner(
            np.frombuffer(block, np.uint8), text.at, text.line, self.labelled, MOST_INDEX, tuple(self._scratch)
        )
        self._add(indices[:count], values[:count], np.diff(ends[:rows], prepend=0))
        if self.labelled:
            self.labels.add_found(block, labels[:distinct], which[:rows])
        return state == scan.STOPPED, rows

    def parse(self, most: int) -> None:
        """Take that many lines in Python, or refuse one."""
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
        """Entries and rows not drained."""
        return sum(map(len, self._values)) + sum(map(len, self._counts))

    def drained(self) -> tuple[Array, Array, Array]:
        """Indices as in the file, values, and the number of entries of each row, of what was read since the last call."""
        indices = np.concatenate([np.empty(0, np.int32), *self._indices])
        values = np.concatenate([np.empty(0), *self._values])
        counts = np.concatenate([np.empty(0, np.int64), *self._counts])
        self._indices, self._values, self._counts = [], [], []
        return indices, values, counts

    def matrix(self, features: int | None, dropped: Array) -> tuple[Any, Sequence[int]]:
        """The CSR matrix without the dropped columns, and the index that each of the others has in the file.

        Columns count from 1, unless an index 0 occurs.
        """
        from scipy.sparse import csr_array  # here: 0.15 s to import

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
            told = f"{path} has {width} columns (row {row} has the last of them)"
            raise InputError(f"{told}, where {features} features are wanted{beside}")
        require_numbers(dropped, first, total, path)
        indices, values, counts = without(indices, values, counts, dropped - first)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        if len(values) < 2**31:
            indptr = indptr.astype(np.int32)
        numbers: Any = range(first, first + total)
        if len(dropped):
            numbers = np.setdiff1d(numbers, dropped, assume_unique=True)
        return csr_array((values, indices, indptr), shape=(len(counts), len(numbers))), numbers


def parse_line(line: bytes, labelled: bool) -> tuple[bytes, list[int], list[float]] | None:
    """Label, indices and values of one line; None if it is blank or a comment; a ValueError says what is wrong with it."""
    if b"\r" in line.rstrip(b"\r\n"):
        raise ValueError("there is a carriage return inside the line; end lines with a newline")
    tokens = line.partition(b"#")[0].split()
    if not tokens:
        return None
    label = tokens.pop(0) if labelled else b""
    if b":" in label:
        raise ValueError(f"it starts with {_shown(label)} and has no label; earlier lines have one")
    indices: list[int] = []
    values: list[float] = []
    for token in tokens:
        before, colon, after = token.partition(b":")
        if before == b"qid" and after.lstrip(b"-").isdigit():
            continue
        if not colon:
            hint = "" if labelled or indices else "; earlier lines have no label"
            raise ValueError(f"{_shown(token)} is not index:value{hint}")
        index, value = _entry(token, before, after)
        if indices and index <= indices[-1]:
            raise ValueError(f"index {index} comes after {indices[-1]}; indices must increase along the line")
        indices.append(index)
        values.append(value)
    return label, indices, values


def _entry(token: bytes, before: bytes, after: bytes) -> tuple[int, float]:
    """Index and value of a token, which are before and after its colon."""
    if not before.isdigit() or len(before) > 12:
        raise ValueError(f"{_shown(token)} does not start with an index (a whole number, at least 1; 0 if columns count from 0)")
    index, value = int(before), number(after)
    if index > MOST_INDEX:
        raise ValueError(f"index {index} is too large; the largest possible is {MOST_INDEX}")
    if value is None or value - value != 0:  # inf - inf is nan
        raise ValueError(f"the value of index {index} {why_not_finite(after)}")
    return index, value


def _shown(token: bytes) -> str:
    return repr(token[:40].decode(errors="replace"))
