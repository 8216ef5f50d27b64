"""Define what a reader returns, how columns are selected, and how labels become an array."""

from __future__ import annotations

import contextlib
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from gordan.arrays import Array, choose
from gordan.errors import InputError, did_you_mean

Features: TypeAlias = int | Sequence[str] | None

WHOLE_NUMBER = re.compile(rb"[+-]?[0-9]{1,400}")
# The white space that may surround a number; a no-break space may not, because it is invisible.
BLANKS = " \t\r\n\v\f"
BOOLEANS = {"true": 1.0, "false": 0.0}
# What pandas, R and databases write for a missing value, in lower case. "none" in lower case is an ordinary word.
MISSING = ("", "na", "n/a", "nan", "<na>", "null")
MAX_LISTED = 8  # columns, classes or lines that a message lists
INVISIBLE = ("Cc", "Cf")  # Unicode categories: control characters, and format characters such as a zero-width space


@dataclass(frozen=True)
class Dialect:
    """The format of a text table; see `gordan.io.read`. `sep` is None if it is to be detected."""

    sep: str | None = None
    decimal: str = "."
    thousands: str | None = None
    header: bool = True
    missing: str = "raise"

    def __post_init__(self) -> None:
        """Raise an InputError for marks that are invalid or ambiguous."""
        if self.sep is not None and (not _is_mark(self.sep) or self.sep in '"\n\r.+-'):
            raise InputError(f"sep is {self.sep!r}; pass the single character between columns, such as ';' or a tab")
        if self.decimal not in (".", ","):
            raise InputError(f"decimal is {self.decimal!r}; pass '.' or ','")
        if self.thousands is not None and (not _is_mark(self.thousands) or self.thousands in '"\n\r+-'):
            raise InputError(f"thousands is {self.thousands!r}; pass the single character that groups digits, such as ',' or '.'")
        choose("missing", self.missing, ("raise", "drop"))
        if self.decimal == self.thousands == ".":
            raise InputError("thousands is '.', and so is the decimal mark; pass --decimal , as well (in Python decimal=',')")
        if self.decimal == self.thousands:  # either may be equal to `sep`, because such numbers are in quotes
            raise InputError("decimal and thousands must differ")

    def value(self, cell: str) -> float | None:
        """Return the number in a cell, where True and False are 1 and 0; None if it is not a number."""
        text = cell.strip(BLANKS)
        if text.lower() in BOOLEANS:
            return BOOLEANS[text.lower()]
        if self.thousands is not None and self.thousands in text:
            whole, point, rest = text.partition(self.decimal)
            if not re.fullmatch(rf"[+-]?[0-9]{{1,3}}(?:{re.escape(self.thousands)}[0-9]{{3}})+", whole):
                return None
            text = whole.replace(self.thousands, "") + point + rest
        if self.decimal == ",":
            if "." in text:
                return None
            text = text.replace(",", ".")
        return number(text.encode())

    def other_readings(self, cell: str) -> str:
        """Return the options with which a cell that is not a number would be read as one; empty if there are none."""
        if self.value(cell) is not None:
            return ""
        return " or ".join(f"{options} (in Python {python})" for options, python, other in READINGS if other.explains(cell))

    def explains(self, cell: str) -> bool:
        """Return whether a cell is a number that contains the thousands separator, if there is one, or else the decimal mark.

        Digits are not grouped after a leading zero: 0,959 has a decimal comma.
        """
        grouped_zero = self.thousands is not None and cell.strip(BLANKS).lstrip("+-").startswith("0")
        return (self.thousands or self.decimal) in cell and not grouped_zero and self.value(cell) is not None


def _is_mark(text: str) -> bool:
    return (len(text) == 1 and not text.isalnum() and text.isprintable()) or text == "\t"


READINGS = (
    ("--decimal ,", "decimal=','", Dialect(decimal=",")),
    ("--thousands ,", "thousands=','", Dialect(thousands=",")),
    ("--decimal , --thousands .", "decimal=',', thousands='.'", Dialect(decimal=",", thousands=".")),
    ("--decimal .", "decimal='.'", Dialect()),
)


def listed(items: Sequence[Any]) -> str:
    """Return the first items as text, separated by commas, with an ellipsis if there are more."""
    return ", ".join(map(str, items[:MAX_LISTED])) + (", …" if len(items) > MAX_LISTED else "")


def equal_names(path: Path, names: Sequence[str] | None) -> str:
    """Return what is wrong with features of the same name, which a model could not find by name; empty if there are none."""
    times = Counter(name for name in names or () if name.strip())
    equal = [f"{count} columns named {name!r}" for name, count in times.items() if count > 1]
    return f"{path.name} has {listed(equal)}; rename all but one, because predict finds columns by name" if equal else ""


def is_missing_text(cell: str) -> bool:
    """Return whether a cell is empty or a common notation for a missing value."""
    text = cell.strip(BLANKS)
    return text == "None" or text.lower() in MISSING


class NoSuchColumn(InputError):
    """Raised if a file has no column named `column`."""

    def __init__(self, message: str, column: str | int | None = None) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True, eq=False)
class Table:
    """The rows X (dense or CSR) and labels y (None if there are none) of a file, and the names of its columns if it has them.

    `numbers` are the positions in the file of the columns of X, from 0 (in svmlight their indices). `notices` say what was
    detected or left out without being asked for; `left_out` are the rows of the file, from 0, that were left out for a missing
    cell; `dialect` is the format of a text table; and `label` is the name of the label column, if it has one.
    """

    X: Any
    y: Array | None
    names: tuple[str, ...] | None
    path: Path
    numbers: Sequence[int] = ()
    notices: tuple[str, ...] = ()
    left_out: tuple[int, ...] = ()
    dialect: Dialect = Dialect()
    label: str | None = None

    def __repr__(self) -> str:
        storage = "CSR" if hasattr(self.X, "indptr") else "dense in parts" if hasattr(self.X, "parts") else "dense"
        labels = "no labels" if self.y is None else f"labels of type {self.y.dtype}"
        return f"Table({str(self.path)!r}: {self.X.shape[0]} rows, {self.X.shape[1]} columns, {storage} {self.X.dtype}, {labels})"


@dataclass(frozen=True)
class Request:
    """The columns that the caller asked for; see `gordan.io.read`."""

    label: str | int | None = None
    features: Features = None
    labelled: bool | None = True
    drop: tuple[str | int, ...] = ()
    keep_index: bool = False
    dialect: Dialect = Dialect()

    @property
    def by_name(self) -> bool:
        """Whether the features are chosen by name."""
        return not (self.features is None or isinstance(self.features, int))

    def count(self, fixed: str) -> int | None:
        """Return the number of wanted features (None: all) for a format without column names; `fixed` says why in an error."""
        if self.label is not None or self.by_name:
            raise InputError(f"{fixed}; leave out label= and names")
        return self.features if isinstance(self.features, int) else None

    def columns(self, width: int, names: Sequence[str] | None, path: Path) -> tuple[int | None, list[int]]:
        """Return the positions of the label column (None if there is none) and of the features in a file of `width` columns."""
        dropped = self.dropped(width, names, path)
        left = [j for j in range(width) if j not in dropped]
        at, chosen = (self._by_name if self.by_name else self._by_width)(width, names, left, path)
        if not chosen:
            raise InputError(
                f"{path} has no feature columns besides the label" + (" and those that are dropped" if dropped else "")
            )
        return at, chosen

    def _by_width(self, width: int, names: Sequence[str] | None, left: list[int], path: Path) -> tuple[int | None, list[int]]:
        """Return the label column and all other columns that are left; the number of features may tell if there is a label."""
        if self.labelled is not None or self.label is not None:
            at = self.known_label(width, names, path)
        elif self.features is None:
            raise InputError(f"{path} may or may not have a label column; pass features=, or labelled=True or False")
        else:
            at = None if len(left) == self.features or not left else left[-1]
        chosen = [j for j in left if j != at]
        if self.features not in (None, len(chosen)):
            which = "no label column" if at is None else "one of them the label"
            which += f", {width - len(left)} left out" if len(left) < width else ""
            raise InputError(f"{path} has {width} columns ({which}), but {self.features} features are wanted")
        return at, chosen

    def _by_name(self, width: int, names: Sequence[str] | None, left: list[int], path: Path) -> tuple[int | None, list[int]]:
        """Return the label column and the columns with the wanted names."""
        assert isinstance(self.features, Sequence)  # otherwise `_by_width` is called
        chosen = [self.position(name, names, path) for name in self.features]
        if len({*chosen}) < len(chosen):
            raise InputError(f"features names a column of {path} twice")
        if gone := {*chosen} - {*left}:
            raise InputError(
                f"column {_column_label(min(gone), names)} of {path} is in both features and drop; leave out one of them"
            )
        if self.labelled is None and self.label is None:
            return None if not left or left[-1] in chosen else left[-1], chosen
        at = self.known_label(width, names, path)
        if at in chosen:
            raise InputError(f"column {at} of {path} is both the label and a feature; pass label= to name another label column")
        return at, chosen

    def dropped(self, width: int, names: Sequence[str] | None, path: Path) -> frozenset[int]:
        """Return the positions of the columns to leave out."""
        return frozenset(self.position(column, names, path, width) for column in self.drop)

    def kept(self, width: int, names: Sequence[str] | None, path: Path) -> Sequence[int]:
        """Return the positions of the columns to keep in a file that stores its labels elsewhere."""
        dropped = self.dropped(width, names, path)
        if len(dropped) == width:
            raise InputError(f"all columns of {path} are dropped; keep at least one")
        if self.features not in (None, width - len(dropped)):
            raise InputError(f"{path} has {width - len(dropped)} columns, but {self.features} features are wanted")
        return range(width) if not dropped else [j for j in range(width) if j not in dropped]

    def known_label(self, width: int, names: Sequence[str] | None, path: Path) -> int | None:
        """Return the position of the label column, or None if there is none or it depends on the number of features."""
        if self.labelled is False or (self.labelled is None and self.label is None):
            return None
        at = self.position(-1 if self.label is None else self.label, names, path, width)
        if at in self.dropped(width, names, path):
            hint = "name the label with --label (in Python label=)" if self.label is None else "leave out one of them"
            raise InputError(f"column {_column_label(at, names)} of {path} is the label column, which cannot be dropped; {hint}")
        return at

    def position(self, label: str | int, names: Sequence[str] | None, path: Path, width: int | None = None) -> int:
        """Return the position of a column, given by its name or by its position from 0 (negative: from the end)."""
        if isinstance(label, str) and names is not None:
            found = [j for j, name in enumerate(names) if name == label]
            if len(found) == 1:
                return found[0]
            if found:
                raise InputError(f"{path} has {len(found)} columns named {label!r}; rename all but one")
        if width is None or (isinstance(label, str) and not re.fullmatch(r"[+-]?[0-9]{1,9}", label)):
            raise NoSuchColumn(f"{path} has no column named {label!r}{_column_hint(names, label)}", label)
        at = int(label)
        if not -width <= at < width:
            raise InputError(
                f"{path} has {width} columns, so there is no column {at}; positions count from 0, or from -1 at the end"
            )
        return at % width


def _column_label(j: int, names: Sequence[str] | None) -> str:
    return str(j) if names is None else f"{j} ({names[j][:40]!r})"


def _column_hint(names: Sequence[str] | None, label: str | int) -> str:
    if names is None:
        return "; its columns have no names, pass positions"
    if isinstance(label, str) and "," in label and all(part.strip() in names for part in label.split(",")):
        parts = [part.strip() for part in label.split(",")]
        return (
            f"; name one column at a time: {' '.join(f'--drop {shlex.quote(part)}' for part in parts)}, in Python drop={parts!r}"
        )
    return f"; {did_you_mean(label, names) or f'its columns are {listed([*map(repr, names)])}'}"


def select_columns(X: Any, kept: Sequence[int]) -> Any:
    """Return these columns, in increasing order, of X, dense or SciPy's CSR; explicit zeros are kept."""
    if len(kept) == X.shape[1]:
        return X
    if not hasattr(X, "indptr"):
        return X[:, kept]
    dropped = np.setdiff1d(np.arange(X.shape[1]), kept, assume_unique=True)
    indices, data, counts = drop_columns(X.indices, X.data, np.diff(X.indptr), dropped)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(X.indptr.dtype)
    return type(X)((data, indices, ends), shape=(X.shape[0], len(kept)))


def drop_columns(indices: Array, values: Array, counts: Array, dropped: Array) -> tuple[Array, Array, Array]:
    """Return CSR rows without some columns: indices and values of their entries, and the number of entries in each row."""
    if not len(dropped):
        return indices, values, counts
    gone = np.isin(indices, dropped)
    rows = np.repeat(np.arange(len(counts)), counts)
    left = indices[~gone]
    fewer = counts - np.bincount(rows[gone], minlength=len(counts))
    return left - np.searchsorted(dropped, left).astype(left.dtype), values[~gone], fewer


def require_labels(y: Array, n: int, path: Path) -> None:
    """Raise an InputError unless there is one label, a number, boolean or text, for each of n rows."""
    if y.shape != (n,):
        raise InputError(f"{path} has {n} rows, but its labels have the shape {y.shape}")
    if y.dtype.kind not in "biufU":
        raise InputError(f"{path} has labels of type {y.dtype}; numbers, booleans or text are needed")
    bad = np.flatnonzero(~np.isfinite(y)) if y.dtype.kind == "f" else np.empty(0, np.int64)
    if len(bad):
        raise InputError(f"{path}, row {bad[0]} (from 0): the label is {y[bad[0]]}; every row needs a label (drop that row)")


def require_finite(X: Any, path: Path, names: Sequence[str] | None = None, first: int = 0) -> None:
    """Raise an InputError that names the first NaN or infinity in X, dense or CSR, which starts at row `first` of the file.

    X is checked in blocks, so that no mask of its size is allocated.
    """
    values = X.data if hasattr(X, "indptr") else X
    if values.dtype.kind != "f":
        return
    step = max(1, (1 << 20) // (values.shape[1] if values.ndim == 2 else 1))
    for start in range(0, len(values), step):
        good = np.isfinite(values[start : start + step])
        if not good.all():
            place = [int(k) for k in np.argwhere(~good)[0]]
            value = values[start : start + step][tuple(place)]
            place[0] += start
            if values.ndim == 1:
                place = [int(np.searchsorted(X.indptr, place[0], side="right")) - 1, int(X.indices[place[0]])]
            column = place[1] if names is None else repr(names[place[1]])
            where = f"{path}, row {first + place[0]} (from 0), column {column}"
            raise InputError(f"{where}: the value is {value}; every value must be finite")


class Labels:
    """The labels of a text file, each distinct label stored once, because a file has few classes and many rows.

    Whether they are integers, floats or text is decided when all are known. `words` says that a label ends at ASCII white space,
    so that other white space in a label is a mistake.
    """

    def __init__(self, *, words: bool = False) -> None:
        self._words = words
        self._code: dict[bytes, int] = {}
        self._lines: list[int] = []  # the line on which each distinct label was first seen
        self._parts: list[Array] = []

    def add(self, texts: Sequence[bytes], lines: Sequence[int], which: Array) -> None:
        """Add the labels of successive rows: row i has texts[which[i]], and texts[k] was first seen on lines[k]."""
        codes = np.array([self._code.setdefault(text, len(self._code)) for text in texts], dtype=np.int64)
        for code, line in zip(codes.tolist(), lines, strict=True):
            if code == len(self._lines):
                self._lines.append(line)
        self._parts.append(codes[which])

    def add_found(self, block: bytes, found: Array, which: Array) -> None:
        """Add the labels that a scanner found, each as its start and end in the block and its line."""
        self.add([block[start:end] for start, end, _ in found.tolist()], found[:, 2].tolist(), which)

    def drained(self) -> tuple[Array, list[tuple[bytes, int]]]:
        """Return the codes of the rows since the last call, and the label and first line of every code."""
        codes = np.concatenate([np.empty(0, np.int64), *self._parts])
        self._parts = []
        return codes, list(zip(self._code, self._lines, strict=True))

    def restore(self, seen: list[tuple[bytes, int]]) -> None:
        """Add labels that an earlier run has seen, in the order of their codes."""
        for text, line in seen:
            self.add([text], [line], np.empty(0, np.int64))

    def array(self, path: Path) -> Array:
        """Return the label of each row."""
        y: Array = self.distinct(path)[self.drained()[0]]
        return y

    def distinct(self, path: Path) -> Array:
        """Return the label of each code."""
        texts = list(self._code)
        for text, line in zip(texts, self._lines, strict=True):
            if text.strip().lower() in (b"", b"nan", b"+nan", b"-nan"):
                shown = text.decode().strip() or "empty"
                raise InputError(f"{path}, line {line}: the label is {shown}; every row needs a label (drop that line)")
            self._require_visible(text.decode(), f"{path}, line {line}")
        return self._distinct(texts, path)

    def _require_visible(self, text: str, where: str) -> None:
        """Raise an InputError for a label that looks blank, such as a no-break space, which would be a class of its own."""
        if not text.isprintable():
            if all(char.isspace() or unicodedata.category(char) in INVISIBLE for char in text):
                raise InputError(
                    f"{where}: the label is {text[:40]!r}, which is invisible; every row needs a label (drop that line)"
                )
            if self._words and any(map(str.isspace, text)):
                raise InputError(f"{where}: the label is {text[:40]!r}; separate words by plain spaces or tabs")

    def _distinct(self, texts: list[bytes], path: Path) -> Array:
        if all(WHOLE_NUMBER.fullmatch(text) for text in texts):
            for dtype in (np.int64, np.uint64):
                with contextlib.suppress(OverflowError):
                    return np.array([int(text) for text in texts], dtype=dtype)
        numbers = [number(text) for text in texts]
        if any(value is None for value in numbers):
            return np.array([text.decode() for text in texts], dtype=np.str_)
        values = np.array(numbers, dtype=np.float64)
        if not np.isfinite(values).all():
            k = int(np.argmin(np.isfinite(values)))
            raise InputError(f"{path}, line {self._lines[k]}: the label is {texts[k].decode()}; labels must be finite")
        for text, value, line in zip(texts, numbers, self._lines, strict=True):
            if WHOLE_NUMBER.fullmatch(text.strip()) and int(text) != value:
                shown = text.decode().strip()
                raise InputError(
                    f"{path}, line {line}: the label {shown} cannot be represented in float64; put a letter before it"
                )
        return values


def number(text: bytes) -> float | None:
    """Return float(text), or None if that fails or the text has underscores, which Python allows but data should not."""
    try:
        return None if b"_" in text else float(text)
    except ValueError:
        return None


def why_not_finite(text: bytes) -> str:
    """Return what is wrong with text that `number` does not read as a finite number."""
    shown = text.strip().decode(errors="replace")  # stripped as bytes, so that a no-break space is shown
    if not shown:
        return "is empty; fill missing values first, or leave such rows out: --missing drop, in Python missing='drop'"
    if number(text) is None:
        return f"is {shown[:40]!r}, which is not a number"
    return f"is {shown[:40]}, which is not finite in float64; every value must be (drop or impute that row)"
