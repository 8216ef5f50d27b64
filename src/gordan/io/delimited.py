"""Read CSV and TSV files: one record per row, quotes as in RFC 4180, every feature a finite number."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.io.table import (
    BLANKS,
    MAX_LISTED,
    Dialect,
    Labels,
    Request,
    Table,
    equal_names,
    is_missing_text,
    listed,
    why_not_finite,
)
from gordan.io.text import Text, read_rows

SCANNED_ENTRIES = 1 << 20  # entries of X for each call of the scanner
LEADING_ENTRIES = 1 << 14  # entries of leading columns that are read at a time
DELIMITERS = {"csv": ",", "tsv": "\t"}
# The separators that are recognized whatever the file is called.
SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas", "|": "vertical bars"}
LABEL, UNUSED = -1, -2
AMOUNT = r"[+-]?\d[\d.,' ]*"
# What a cell that is not a number looks like, and what to do about it, if it is neither a category nor a label.
LOOKALIKES = {
    rf"{AMOUNT}\s*[%‰]$": "a number with a percent sign: write the number alone in every cell of the column",
    rf"[^\W\d]?[$€£¥₹]\s*{AMOUNT}$|{AMOUNT}\s*[$€£¥₹]$": "an amount of money: write the number alone in every cell of the column",
    r"(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.](\d\d){1,2})([T ]|$)": "a date: make it a number, such as days since a day",
    r"#(DIV/0!|N/A|NAME\?|NULL!|NUM!|REF!|VALUE!)": "a spreadsheet error: replace it by the number, or leave the row out",
}


def read_delimited(path: Path, wanted: Request) -> Table:
    """Read a text table whose separator is known; X is dense float64."""
    with Text(path) as text:
        cells = Cells(text, wanted)
        read_rows(cells)
    X = cells.matrix()
    columns, left_out = cells.columns, tuple(cells.left_out.rows)
    y = None if columns.label_at is None else cells.labels.array(path)
    return Table(X, y, columns.names, path, tuple(columns.chosen), cells.notices, left_out, wanted.dialect, columns.label)


def pandas_call(path: Path, dialect: Dialect, counted: bool = False) -> str:
    """Return the call of pandas that reads such a file; `counted` says that its first column is an index."""
    marks = {"sep": (dialect.sep or ",", ","), "decimal": (dialect.decimal, "."), "thousands": (dialect.thousands, None)}
    given = [f"{mark}={own!r}" for mark, (own, usual) in marks.items() if own != usual]
    name = repr(path.name) if path.suffix else "FILE"
    return f"pandas.read_csv({', '.join([name, *given, *(['index_col=0'] if counted else [])])})"


def with_separator(path: Path, kind: str, wanted: Request) -> tuple[Request, tuple[str, ...]]:
    """Return the request with the separator of this file, and a notice if that is not the usual one for its name.

    A pipe can be read only once, so its separator is not detected.
    """
    dialect, usual = wanted.dialect, DELIMITERS[kind]
    if dialect.sep is not None:
        return wanted, ()
    found = _separator(path, usual, dialect) if path.is_file() else usual
    named = SEPARATORS.get(found, repr(found))
    notices = () if found == usual else (f"the columns of {path.name} are separated by {named}",)
    return replace(wanted, dialect=replace(dialect, sep=found)), notices


def _separator(path: Path, usual: str, dialect: Dialect) -> str:
    """Return the separator of a file, as a first line such as `sep=;` states it or the first two lines suggest it.

    The usual separator is taken unless it finds a single column where another one splits both lines into the same number of
    cells, or unless it is a comma that is better read as a decimal mark.
    """
    with Text(path) as text:
        named, lines = text.sep, [line.decode() for line in itertools.islice(text.lines(), 2) if line.strip()]
    if named is not None:
        return named
    marks = sorted(SEPARATORS, key=lambda mark: (mark in (dialect.decimal, dialect.thousands), mark != usual))
    parts = {mark: _cells(lines, mark) for mark in marks}
    found = [mark for mark in marks if len({*map(len, parts[mark])}) == 1 < len(parts[mark][0])]
    best = found[0] if found else usual
    if best == dialect.decimal == "," and not any('"' in line for line in lines):
        hint = "pass --sep , if these cells are in quotes, else --sep with the separator of the columns (in Python sep=)"
        raise InputError(f"{path} has commas between its columns, so commas cannot be decimal marks; {hint}")
    return next((mark for mark in found if best == "," != mark and _has_decimal_commas(parts[mark])), best)


def _cells(lines: list[str], mark: str) -> list[list[str]]:
    """Split lines at this separator; nothing where a cell would exceed the limit of the csv module."""
    try:
        return [*csv.reader(lines, delimiter=mark)]
    except csv.Error:
        return []


@contextmanager
def cells_of_any_length() -> Iterator[None]:
    """Return a context without the limit that the csv module has for the length of a cell, which compiled code does not have."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _has_decimal_commas(lines: list[list[str]]) -> bool:
    """Return whether some cells contain a comma and all of those are numbers with decimal commas."""
    cells = [cell for line in lines for cell in line if "," in cell]
    return bool(cells) and all(map(Dialect(decimal=",").explains, cells))


def header_of(path: Path, wanted: Request) -> list[str]:
    """Return the names of the columns, which are empty in a file without a header."""
    with Text(path) as text:
        return Cells(text, Request(labelled=False, dialect=wanted.dialect)).columns.header


def leading_columns(path: Path, wanted: Request, positions: list[int]) -> Iterator[tuple[int, Array]]:
    """Yield only these columns, some rows at a time, each with 0, the number of the file."""
    with Text(path) as text:
        cells = Cells(text, Request(labelled=False, dialect=replace(wanted.dialect, missing="raise")), positions)
        while text.more():
            read_rows(cells, LEADING_ENTRIES)
            yield 0, cells.drained()


@dataclass(frozen=True)
class Columns:
    """The columns of a table: their names, empty where it has no header, the position of the label, and those of the features."""

    header: list[str]
    named: bool
    label_at: int | None
    chosen: list[int]

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.chosen)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features, if the table has a header."""
        return tuple(self.header[j] for j in self.chosen) if self.named else None

    @property
    def label(self) -> str | None:
        """The name of the label, which is empty where there is no header; None if no label is read."""
        return None if self.label_at is None else self.header[self.label_at]

    @cached_property
    def roles(self) -> Array:
        """What the scanner reads each column as: the number of a feature, LABEL or UNUSED."""
        roles = np.full(len(self.header), UNUSED, np.int64)
        roles[self.chosen] = np.arange(len(self.chosen))
        if self.label_at is not None:
            roles[self.label_at] = LABEL
        return roles

    def option_value(self, j: int) -> str | int:
        """Return what to pass to an option for column j: its name if that is a unique identifier, else its position."""
        name = self.header[j]
        return name if name.isidentifier() and self.header.count(name) == 1 else j


@dataclass
class LeftOut:
    """The rows left out for missing cells: their numbers, the first of their lines, and how many cells of which columns."""

    rows: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    missing: Counter[int] = field(default_factory=Counter)

    def add(self, row: int, line: int, columns: list[int]) -> None:
        """Note a row in which the cells of these columns are missing."""
        self.missing.update(columns)
        self.rows.append(row)
        self.lines += [line] if len(self.lines) <= MAX_LISTED else []

    def notice(self, n: int, name: str, header: list[str]) -> tuple[str, ...]:
        """Return a notice about these of the n rows of the file `name`, if there are any."""
        if not self.rows:
            return ()
        cells = listed([f"{header[j] or f'column {j}'}: {count}" for j, count in self.missing.most_common()])
        dropped = f"left out {len(self.rows)} of {n} rows of {name} for missing cells ({cells})"
        return (f"{dropped}: line{'s' * (len(self.rows) > 1)} {listed(self.lines)}",)


class Cells:
    """A reader of the records of a text, which begins with the header and keeps the rows in parts.

    `only` gives the positions of the features if these are known already.
    """

    def __init__(self, text: Text, wanted: Request, only: list[int] | None = None) -> None:
        self.text, self.dialect, self.labels, self._wanted = text, wanted.dialect, Labels(), wanted
        self._parts: list[Array] = []
        self.left_out = LeftOut()
        self._row = 0  # the number of the next row in the file
        self._records = self._reader()
        header: list[str] | None = []
        while header == []:  # blank lines
            start, header = text.place, self._next_record()
        if header is None:
            raise InputError(f"{text.path} is empty; a header and rows are needed")
        self._first_line = start[1]
        named = self.dialect.header
        if named:
            self._check_header(header)
        else:
            header = [""] * len(header)
            text.rewind_to(start)
            self._records = self._reader()
        found = wanted.columns(len(header), header if named else None, text.path) if only is None else (None, only)
        self.columns = Columns(header, named, *found)
        self._buffers: list[Array] = []

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices about a header that looks like a row, about equal names, and about rows that were left out."""
        equal = equal_names(self.text.path, self.columns.names)
        warnings = (f"warning: {equal}",) if equal else ()
        return (*self._header_warning(), *warnings, *self.left_out.notice(self._row, self.text.path.name, self.columns.header))

    def _header_warning(self) -> tuple[str, ...]:
        """Warn of names that are all numbers, unless they count the columns or are many and sorted, such as wavelengths."""
        values = [self.dialect.value(name) for name in self.columns.names or ("",)]
        if None in values:
            return ()
        steps = np.diff(np.array(values, dtype=np.float64))
        graded = len(steps) >= MAX_LISTED and bool((steps > 0).all() or (steps < 0).all())
        if graded or (values[0] in (0, 1) and bool((steps == 1).all())):
            return ()
        what = f"warning: line {self._first_line} of {self.text.path.name} is read as the header, although it names all features"
        return (f"{what} by numbers; if it is a row, pass --no-header (in Python header=False)",)

    def scan(self) -> tuple[bool, int]:
        """Read plain lines of the block with the compiled scanner; see `Reader.scan`."""
        from gordan.io import scan

        if not self._buffers:
            width = self.columns.width
            most = max(1, SCANNED_ENTRIES // width)
            self._buffers = [np.empty((most, width)), np.empty(most, np.int64), np.empty((scan.MAX_LABELS, 3), np.int64)]
        if self.dialect.thousands is not None:
            return True, 0
        text, block = self.text, self.text.block
        X, which, labels = self._buffers
        scanner: Any = scan.scan_table
        state, text.at, text.line, rows, distinct = scanner(
            np.frombuffer(block, np.uint8),
            text.at,
            text.line,
            ord(self.dialect.sep or ","),
            ord(self.dialect.decimal),
            self.columns.roles,
            *self._buffers,
        )
        self._row += rows
        self._parts.append(X[:rows].copy())
        if self.columns.label_at is not None:
            self.labels.add_found(block, labels[:distinct], which[:rows])
        return state == scan.STOPPED, rows

    def parse(self, most: int) -> None:
        """Read at most this many records in Python, and raise an InputError for one that is invalid."""
        rows: list[list[float]] = []
        texts: list[bytes] = []
        lines: list[int] = []
        for _ in range(most):
            line = self.text.line
            record = self._next_record()
            if record is None:
                break
            if record or len(self.columns.header) == 1:  # otherwise the line is blank
                found = self._parse_record(record or [""], line)
                self._row += 1
                if found is not None:
                    rows.append(found[0])
                    texts.append(found[1])
                    lines.append(line)
        self._parts.append(np.array(rows, dtype=np.float64).reshape(len(rows), self.columns.width))
        if self.columns.label_at is not None:
            self.labels.add(texts, lines, np.arange(len(texts)))

    def _parse_record(self, record: list[str], line: int) -> tuple[list[float], bytes] | None:
        """Return the features and the label of a record; None if a cell is missing and such rows are left out."""
        path, columns, width = self.text.path, self.columns, len(self.columns.header)
        if len(record) != width:
            first = "header" if self.dialect.header else "first line"
            hint = "; decimal commas must be in quotes here" if self.dialect.sep == self.dialect.decimal else ""
            raise InputError(f"{path}, line {line}: it has {len(record)} fields, but the {first} has {width}{hint}")
        if self.dialect.missing == "drop":
            used = columns.chosen if columns.label_at is None else [*columns.chosen, columns.label_at]
            gone = [j for j in used if is_missing_text(record[j])]
            if gone:
                self.left_out.add(self._row, line, gone)
                return None
        row, label = [], b"" if columns.label_at is None else record[columns.label_at].encode()
        for j in columns.chosen:
            value = self.dialect.value(record[j])
            if value is None or value - value != 0:  # inf - inf is nan
                raise InputError(self._refusal(record, j, line))
            row.append(value)
        return row, label

    def _refusal(self, record: list[str], j: int, line: int) -> str:
        """Return the message about a cell that is not a finite number, with what to do about it."""
        cell, name = record[j], self.columns.header[j]
        text = cell.strip(BLANKS)
        where = f"{self.text.path}, line {line}, column {j}" + (f" ({name[:40]!r})" if self.dialect.header else "")
        no_number, hint = self.dialect.value(cell) is None and bool(text), ""
        if other := self.dialect.other_readings(cell):
            hint = f"; pass {other}"
        elif is_missing_text(cell) and text:
            hint = "; --missing drop leaves such rows out (in Python missing='drop')"
        elif looks := next((looks for pattern, looks in LOOKALIKES.items() if re.match(pattern, text)), ""):
            hint = f"; it looks like {looks}" + (
                "" if self._wanted.by_name else f"; --drop {self.columns.option_value(j)} leaves the column out"
            )
        elif no_number and not self._wanted.by_name:
            hint = self._text_hint(j, [k for k in self.columns.chosen if k != j and self._is_text(record[k])])
        what = f"is {text[:40]!r}, which is not a number" if no_number else why_not_finite(cell.encode())
        return f"{where}: the cell {what}{hint}"

    def _is_text(self, cell: str) -> bool:
        """Whether a cell is text, and neither missing nor a number, date or the like in any format."""
        text = cell.strip(BLANKS)
        known = (
            is_missing_text(cell) or self.dialect.other_readings(cell) or any(re.match(pattern, text) for pattern in LOOKALIKES)
        )
        return bool(text) and self.dialect.value(cell) is None and not known

    def _text_hint(self, j: int, others: list[int]) -> str:
        """Return what to do about text in a feature column: it may be the label, a category, or a column to leave out.

        The `others` are columns in which there is text as well, about which the same is to be done.
        """
        columns, dialect = self.columns, self.dialect
        header, option = columns.header, columns.option_value
        name, column = header[j], option(j)
        also = f"; text is also in {listed([repr(header[k]) for k in others])}" if others else ""
        ways = [f"{' '.join(f'--drop {option(k)}' for k in (j, *others))} leaves {'them' if others else 'it'} out"]
        if column == name:
            counted = not header[0].strip() and 0 not in columns.chosen
            frame = f"{pandas_call(self.text.path, dialect, counted)}.dropna()"  # else a missing value becomes the first level
            named = [header[k] for k in (j, *others) if option(k) == header[k]]
            line = (
                f"pandas.get_dummies({frame}, columns={named!r}, drop_first=True, dtype=int).to_csv('numbers.csv', index=False)"
            )
            last = "" if columns.label is None else f", and name the label with --label {columns.label}"
            kind = "if they are categories" if others else "if it is a category"
            ways.insert(0, f"{kind}, make 0/1 columns in Python: {line}{last}")
        if self._wanted.label is None and columns.label is not None:
            what = f"if {name!r} is the label" if others else "if it is the label"
            ways.insert(0, f"{what}, pass --label {column} (in Python label={column!r})")
        return f"{also}; {'; '.join(ways)}"

    @property
    def held(self) -> int:
        """The number of entries that were read since the last call of `drained`."""
        return sum(part.size for part in self._parts)

    def drained(self) -> Array:
        """Return the rows that were read since the last call."""
        X = np.concatenate([np.empty((0, self.columns.width)), *self._parts])
        self._parts = []
        return X

    def continue_in(self, text: Text) -> None:
        """Continue with the rows of another `Text` of the same file, which is behind the header."""
        self.text = text
        self._records = self._reader()

    def matrix(self) -> Array:
        """Return all rows; refuse a file that has none."""
        X = self.drained()
        if not len(X):
            left = " besides those with missing cells" if self.left_out.rows else ""
            raise InputError(f"{self.text.path} has a header but no rows{left}")
        return X

    def _check_header(self, names: list[str]) -> None:
        path = self.text.path
        counted = ([str(j) for j in range(len(names))], [str(j + 1) for j in range(len(names))])  # as pandas writes them
        if names not in counted and all(self.dialect.value(name) is not None for name in names):
            hint = "pass --no-header (in Python header=False), or add a line with the names of the columns"
            raise InputError(f"{path} has no header: all cells of line 1 are numbers; {hint}")
        first = self.text.block[self.text.at :].partition(b"\n")[0].decode() if self.text.more() else ""
        if len(names) == 1 and len(names[0].split()) == len(first.split()) > 1:
            hint = (
                f"pass --sep ' ' (in Python sep=' ') if it is one space, or save it with {self.dialect.sep!r} between the columns"
            )
            raise InputError(f"{path} is separated by spaces; {hint}")

    def _reader(self) -> Any:
        return csv.reader((line.decode() for line in self.text.lines()), delimiter=self.dialect.sep or ",", strict=True)

    def _next_record(self) -> list[str] | None:
        line = self.text.line
        try:
            with cells_of_any_length():
                return next(self._records, None)
        except csv.Error as error:
            reason = str(error)
            if reason.startswith("new-line character"):
                reason = "there is a carriage return inside the line; save the file with one kind of line ending"
            raise InputError(f"{self.text.path}, line {line}: {reason}") from None
