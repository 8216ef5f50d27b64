"""CSV and TSV with a header: one line per row, quotes as in RFC 4180, every feature a finite number."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.io.table import BLANKS, Dialect, Labels, Table, Wanted, is_missing, why_not_finite
from gordan.io.text import Text, take_rows

ENTRIES = 1 << 20  # of X, per call of the scanner
COUNTED = 1 << 14  # entries of leading columns, at a time
DELIMITERS = {"csv": ",", "tsv": "\t"}
# What may be between the columns of a file whose name says something else.
SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas", "|": "vertical bars"}
MOST_LISTED = 8
LABEL, UNUSED = -1, -2
AMOUNT = r"[+-]?\d[\d.,' ]*"
# What a cell that is not a number may be instead of a category or a label.
LOOKS = {
    rf"{AMOUNT}\s*[%‰]$": "a number with a percent sign: write the number alone in every cell of the column",
    rf"[^\W\d]?[$€£¥₹]\s*{AMOUNT}$|{AMOUNT}\s*[$€£¥₹]$": "an amount of money: write the number alone in every cell of the column",
    r"(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.](\d\d){1,2})([T ]|$)": "a date: make it a number, such as days since a day",
    r"#(DIV/0!|N/A|NAME\?|NULL!|NUM!|REF!|VALUE!)": "an error of a spreadsheet: put the number there, or leave the row out",
}


def read_delimited(path: Path, wanted: Wanted) -> Table:
    """The table in a file of text, whose dialect is settled; X is dense float64."""
    with Text(path) as text:
        cells = Cells(text, wanted)
        take_rows(cells)
    X = cells.matrix()
    y = cells.labels.array(path) if cells.labelled else None
    label = None if cells.label_at is None else cells.header[cells.label_at]
    left_out = tuple(cells.left_out)
    return Table(X, y, cells.names, path, tuple(cells.chosen), cells.notices, left_out, wanted.dialect, label)


def in_pandas(path: Path, dialect: Dialect, counted: bool = False) -> str:
    """How pandas reads such a file; `counted` if its first column counts the rows."""
    marks = {"sep": (dialect.sep or ",", ","), "decimal": (dialect.decimal, "."), "thousands": (dialect.thousands, None)}
    given = [f"{mark}={own!r}" for mark, (own, usual) in marks.items() if own != usual]
    name = repr(path.name) if path.suffix else "FILE"
    return f"pandas.read_csv({', '.join([name, *given, *(['index_col=0'] if counted else [])])})"


def settled(path: Path, kind: str, wanted: Wanted) -> tuple[Wanted, tuple[str, ...]]:
    """What is wanted, with what is between the columns of this file; and a notice where that is not what its name says.

    Nothing is looked for in a pipe, which can be read only once.
    """
    dialect, usual = wanted.dialect, DELIMITERS[kind]
    if dialect.sep is not None:
        return wanted, ()
    found = _separator(path, usual, dialect) if path.is_file() else usual
    named = SEPARATORS.get(found, repr(found))
    notices = () if found == usual else (f"the columns of {path.name} are separated by {named}",)
    return replace(wanted, dialect=replace(dialect, sep=found)), notices


def _separator(path: Path, usual: str, dialect: Dialect) -> str:
    """What is between the columns: what a first line such as `sep=;` says; else the usual, unless that makes one column of what
    falls into as many cells at another mark in the first two lines, or has another meaning: commas may be decimal marks."""
    with Text(path) as text:
        named, lines = text.sep, [line.decode() for line in itertools.islice(text.lines(), 2) if line.strip()]
    if named is not None:
        return named
    marks = sorted(SEPARATORS, key=lambda mark: (mark in (dialect.decimal, dialect.thousands), mark != usual))
    parts = {mark: _cells(lines, mark) for mark in marks}
    found = [mark for mark in marks if len({*map(len, parts[mark])}) == 1 < len(parts[mark][0])]
    best = found[0] if found else usual
    if best == dialect.decimal == "," and not any('"' in line for line in lines):
        hint = "pass --sep , if these cells are in quotes, else --sep with what is between the columns (in Python sep=)"
        raise InputError(f"{path} has commas between its columns, so commas cannot be decimal marks; {hint}")
    return next((mark for mark in found if best == "," != mark and _has_decimal_commas(parts[mark])), best)


def _cells(lines: list[str], mark: str) -> list[list[str]]:
    """The cells of these lines, if that is between them; none where a cell would be longer than cells are."""
    try:
        return [*csv.reader(lines, delimiter=mark)]
    except csv.Error:
        return []


def _has_decimal_commas(lines: list[list[str]]) -> bool:
    """Whether some cells have commas, and all of these are numbers with decimal commas."""
    cells = [cell for line in lines for cell in line if "," in cell]
    return bool(cells) and all(map(Dialect(decimal=",").explains, cells))


def header_of(path: Path, wanted: Wanted) -> list[str]:
    """The names of the columns; empty ones where they have none."""
    with Text(path) as text:
        return Cells(text, Wanted(labelled=False, dialect=wanted.dialect)).header


def leading_columns(path: Path, wanted: Wanted, positions: list[int]) -> Iterator[tuple[int, Array]]:
    """These columns alone, some rows at a time, and 0: the number of the file."""
    with Text(path) as text:
        cells = Cells(text, Wanted(labelled=False, dialect=replace(wanted.dialect, missing="raise")), positions)
        while text.more():
            take_rows(cells, COUNTED)
            yield 0, cells.drained()


class Cells:
    """The rows read so far, in parts; the header is read first. `only`: the positions of the features, where these are known."""

    def __init__(self, text: Text, wanted: Wanted, only: list[int] | None = None) -> None:
        self.text, self.dialect, self.labels, self._wanted = text, wanted.dialect, Labels(), wanted
        self._parts: list[Array] = []
        self.left_out: list[int] = []
        self._lines_left_out: list[int] = []  # the first of them
        self._missing: Counter[int] = Counter()
        self._row = 0  # of the file, the next one
        self._records = self._reader()
        start = text.place
        header = self._next_record()
        while header == []:  # blank lines
            start = text.place
            header = self._next_record()
        if header is None:
            raise InputError(f"{text.path} is empty; a header and rows are needed")
        self._first_line = start[1]
        if self.dialect.header:
            self.header = header
            self._check_header()
        else:
            self.header = [""] * len(header)
            text.back_to(start)
            self._records = self._reader()
        names = self.header if self.dialect.header else None
        self.label_at, self.chosen = wanted.columns(len(header), names, text.path) if only is None else (None, only)
        self.labelled, self.width = self.label_at is not None, len(self.chosen)
        self.names = None if names is None else tuple(names[j] for j in self.chosen)
        self.roles = np.full(len(header), UNUSED, np.int64)
        self.roles[self.chosen] = np.arange(self.width)
        if self.label_at is not None:
            self.roles[self.label_at] = LABEL
        self._scratch: list[Array] = []

    @property
    def notices(self) -> tuple[str, ...]:
        """What there is to be said of a header that looks like a row, of equal names, and of rows that were left out."""
        return (*self._about_header(), *self._about_equal_names(), *self._about_rows_left_out())

    def _about_equal_names(self) -> tuple[str, ...]:
        """A warning where features have the same name, by which a model could not find them in another file."""
        times = Counter(name for name in self.names or () if name.strip())
        equal = [f"{count} columns named {name!r}" for name, count in times.items() if count > 1]
        told = f"{', '.join(equal[:MOST_LISTED])}{', …' if len(equal) > MOST_LISTED else ''}"
        return (f"warning: {self.text.path.name} has {told}; rename all but one: predict finds columns by name",) if equal else ()

    def _about_header(self) -> tuple[str, ...]:
        """A warning where the names of features are numbers that neither count the columns nor, many of them, rise or fall."""
        values = [self.dialect.value(name) for name in self.names or ("",)]
        if None in values:
            return ()
        steps = np.diff(np.array(values, dtype=np.float64))
        graded = len(steps) >= MOST_LISTED and bool((steps > 0).all() or (steps < 0).all())  # such as wavelengths
        if graded or (values[0] in (0, 1) and bool((steps == 1).all())):
            return ()
        what = f"warning: line {self._first_line} of {self.text.path.name} is read as the header, although it names all features"
        return (f"{what} by numbers; if it is a row, pass --no-header (in Python header=False)",)

    def _about_rows_left_out(self) -> tuple[str, ...]:
        if not self.left_out:
            return ()
        cells = ", ".join(f"{self._column(j)}: {count}" for j, count in self._missing.most_common(MOST_LISTED))
        more = ", …" if len(self._missing) > MOST_LISTED else ""
        gone = f"left out {len(self.left_out)} of {self._row} rows of {self.text.path.name} for missing cells ({cells}{more})"
        lines = ", ".join(map(str, self._lines_left_out)) + (", …" if len(self.left_out) > len(self._lines_left_out) else "")
        return (f"{gone}: line{'s' * (len(self.left_out) > 1)} {lines}",)

    def _column(self, j: int) -> str:
        return self.header[j] or f"column {j}"

    def scan(self) -> tuple[bool, int]:
        """Take plain lines of the block at full speed; whether the next line is none, and how many rows there were."""
        from gordan.io import scan

        if not self._scratch:
            most = max(1, ENTRIES // self.width)
            self._scratch = [np.empty((most, self.width)), np.empty(most, np.int64), np.empty((scan.LABELS, 3), np.int64)]
        if self.dialect.thousands is not None:
            return True, 0
        text, block = self.text, self.text.block
        X, which, labels = self._scratch
        scanner: Any = scan.scan_table
        state, text.at, text.line, rows, distinct = scanner(
            np.frombuffer(block, np.uint8),
            text.at,
            text.line,
            ord(self.dialect.sep or ","),
            ord(self.dialect.decimal),
            self.roles,
            *self._scratch,
        )
        self._row += rows
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
                found = self._parsed(record or [""], line)
                self._row += 1
                if found is not None:
                    rows.append(found[0])
                    texts.append(found[1])
                    lines.append(line)
        self._parts.append(np.array(rows, dtype=np.float64).reshape(len(rows), self.width))
        if self.labelled:
            self.labels.add(texts, lines, np.arange(len(texts)))

    def _parsed(self, record: list[str], line: int) -> tuple[list[float], bytes] | None:
        """The features and the label of one record; None if a cell is missing, and such rows are to be left out."""
        path = self.text.path
        if len(record) != len(self.roles):
            what = "the header has" if self.dialect.header else "the first line has"
            hint = "; decimal commas must be in quotes here" if self.dialect.sep == self.dialect.decimal else ""
            raise InputError(f"{path}, line {line}: it has {len(record)} fields, where {what} {len(self.roles)}{hint}")
        if self.dialect.missing == "drop":
            used = self.chosen if self.label_at is None else [*self.chosen, self.label_at]
            gone = [j for j in used if is_missing(record[j])]
            if gone:
                self._missing.update(gone)
                self.left_out.append(self._row)
                self._lines_left_out += [line] if len(self._lines_left_out) < MOST_LISTED else []
                return None
        row, label = [], b"" if self.label_at is None else record[self.label_at].encode()
        for j in self.chosen:
            value = self.dialect.value(record[j])
            if value is None or value - value != 0:  # inf - inf is nan
                raise InputError(self._refused(record[j], j, line))
            row.append(value)
        return row, label

    def _refused(self, cell: str, j: int, line: int) -> str:
        """Why a cell is no number, and what to do about it."""
        name, text = self.header[j], cell.strip(BLANKS)
        where = f"{self.text.path}, line {line}, column {j}" + (f" ({name[:40]!r})" if self.dialect.header else "")
        no_number, hint = self.dialect.value(cell) is None and bool(text), ""
        if other := self.dialect.other_readings(cell):
            hint = f"; pass {other}"
        elif is_missing(cell) and text:
            hint = "; --missing drop leaves such rows out (in Python missing='drop')"
        elif looks := next((looks for pattern, looks in LOOKS.items() if re.match(pattern, text)), ""):
            hint = f"; it looks like {looks}" + (
                "" if self._wanted.by_name else f"; --drop {self._called(j)} leaves the column out"
            )
        elif no_number and not self._wanted.by_name:
            hint = self._about_text(j)
        what = f"is {text[:40]!r}, which is not a number" if no_number else why_not_finite(cell.encode())
        return f"{where}: the cell {what}{hint}"

    def _called(self, j: int) -> str | int:
        """What an option calls column j: its name, or its position where that is not plain."""
        name = self.header[j]
        return name if name.isidentifier() and self.header.count(name) == 1 else j

    def _about_text(self, j: int) -> str:
        """What to do about text in a column that should hold numbers: it is the label, or a category, or to be left out."""
        name, dialect, column = self.header[j], self.dialect, self._called(j)
        ways = [f"--drop {column} leaves it out"]
        if column == name:
            counted = not self.header[0].strip() and 0 not in self.chosen  # that is left out here, too
            frame = f"{in_pandas(self.text.path, dialect, counted)}.dropna()"  # a missing value would become the first level
            line = (
                f"pandas.get_dummies({frame}, columns=[{name!r}], drop_first=True, dtype=int).to_csv('numbers.csv', index=False)"
            )
            last = "" if self.label_at is None else f", and name the label with --label {self.header[self.label_at]}"
            ways.insert(0, f"if it is a category, make 0/1 columns in Python: {line}{last}")
        if self._wanted.label is None and self.labelled:
            ways.insert(0, f"if it is the label, pass --label {column} (in Python label={column!r})")
        return "; " + "; ".join(ways)

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
        self._records = self._reader()

    def matrix(self) -> Array:
        """X."""
        X = self.drained()
        if not len(X):
            left = " besides those with missing cells" if self.left_out else ""
            raise InputError(f"{self.text.path} has a header but no rows{left}")
        return X

    def _check_header(self) -> None:
        names, path = self.header, self.text.path
        counted = ([str(j) for j in range(len(names))], [str(j + 1) for j in range(len(names))])  # as pandas names columns
        if names not in counted and all(self.dialect.value(name) is not None for name in names):
            hint = "pass --no-header (in Python header=False), or put the names of the columns there"
            raise InputError(f"{path} has no header: line 1 is all numbers; {hint}")
        first = self.text.block[self.text.at :].partition(b"\n")[0].decode() if self.text.more() else ""
        if len(names) == 1 and len(names[0].split()) == len(first.split()) > 1:
            hint = (
                f"pass --sep ' ' (in Python sep=' ') if it is one space, or save it with {self.dialect.sep!r} between the columns"
            )
            raise InputError(f"{path} is separated by spaces; {hint}")

    def _reader(self) -> Any:
        return csv.reader(self._decoded(), delimiter=self.dialect.sep or ",", strict=True)

    def _decoded(self) -> Iterator[str]:
        for line in self.text.lines():
            yield line.decode()

    def _next_record(self) -> list[str] | None:
        line = self.text.line
        try:
            return next(self._records, None)
        except csv.Error as error:
            raise InputError(f"{self.text.path}, line {line}: {error}") from None
