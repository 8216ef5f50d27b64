"""Read Parquet files, and folders of them, with pyarrow (the extra `data`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError, import_extra
from gordan.io.parts import Parts
from gordan.io.table import Request, Table, is_missing_text, listed, require_finite, require_labels

LABEL_ROWS = 1 << 16  # labels that are read at a time


def read_parquet(path: Path, wanted: Request, most: int) -> Table:
    """Return the table in a Parquet file, or in the *.parquet files of a folder in the order of their names.

    X is dense float64; if that takes more than `most` bytes, it stays in its files as `Parts`.
    """
    drop = wanted.dialect.missing == "drop"
    table = open_parquet(path, wanted)
    n, d = table.X.shape
    if 8 * n * d > most and drop:
        raise InputError(f"{path} is too large to be read into memory, as dropping rows with missing values requires")
    table = table if 8 * n * d > most else replace(table, X=np.asarray(table.X, dtype=np.float64))
    return _without_missing(table) if drop else table


def _without_missing(table: Table) -> Table:
    """Return the table without the rows in which a value or the label is missing."""
    X, y, n = table.X, table.y, len(table.X)
    lost = {name: np.isnan(X[:, j]) for j, name in enumerate(table.names or ())}
    if y is not None:
        missing = [value is None or value != value or (isinstance(value, str) and is_missing_text(value)) for value in y.tolist()]
        lost[table.label or "the label"] = np.array(missing)
    kept = np.flatnonzero(~np.any([*lost.values()], axis=0))
    gone = tuple(np.setdiff1d(np.arange(n), kept).tolist())
    if not len(kept):
        raise InputError(f"{table.path} has no rows beside those with missing values")
    X[[*gone]] = 0.0  # they stay in X until it is checked, so that an error names the row by its number in the file
    require_finite(X, table.path, table.names)
    if y is not None:
        y = np.array(y[kept].tolist())
        require_labels(y, len(kept), table.path)
    cells = listed([f"{name}: {np.count_nonzero(where)}" for name, where in lost.items() if where.any()])
    notice = f"left out {len(gone)} of {n} rows of {table.path.name} for missing values ({cells})"
    notice += f": row{'s' * (len(gone) > 1)} {listed(gone)}"
    return replace(table, X=X[kept], y=y, left_out=gone, notices=(notice,) if gone else ())


@dataclass(frozen=True)
class RowGroup:
    """One row group of a Parquet file; `first` is the number of its first row in the file."""

    path: Path
    k: int
    first: int
    n: int
    names: tuple[str, ...]
    dtype: str
    missing: bool = False  # whether values may be missing, which are NaN then

    def read(self) -> Array:
        """Return its rows; an InputError names the file, the row and what is wrong with it."""
        with _Parquet(self.path) as file:
            columns = file.group(self.k, self.names)
            if len(columns[0]) != self.n:
                where = f"{self.path}, row group {self.k}"
                raise InputError(f"{where} has {len(columns[0])} rows, but it had {self.n} before; the file has changed")
            for name, column in () if self.missing else zip(self.names, columns, strict=True):
                file.require_values(name, column, self.first)
            X = file.features(self.names, columns).astype(self.dtype, copy=False)
        if not self.missing:
            require_finite(X, self.path, self.names, self.first)
        return X


def open_parquet(path: Path, wanted: Request) -> Table:
    """Return the table in a Parquet file or folder, with X left in its row groups.

    Metadata and labels are read. If rows with missing values are to be dropped, they are still there: such values are NaN, and
    such labels None.
    """
    files, missing = parquet_files(path), wanted.dialect.missing == "drop"
    groups: list[tuple[Path, int, int, int]] = []
    y: list[Array] = []
    with _Parquet(files[0]) as file:
        schema, names = file.schema, file.names
    at, chosen = wanted.columns(len(names), names, path)
    picked = tuple(names[j] for j in chosen)
    for part in files:
        with _Parquet(part) as file:
            if (differing := _difference(file.schema, schema)) is not None:
                theirs, ours = differing
                hint = "the files of a folder must have the same columns"
                raise InputError(f"{part} has {theirs}, but {files[0]} has {ours}; {hint}")
            file.require_numbers(picked)
            groups += [(part, k, first, n) for k, first, n in file.groups if n]
            if at is not None:
                y += file.labels(names[at], missing)
    if not groups:
        raise InputError(f"{path} has no rows")
    n = sum(rows for *_, rows in groups)
    labels = np.concatenate(y) if y else None
    if labels is not None and not missing:
        require_labels(labels, n, path)
    kinds = {schema[j][1] for j in chosen}
    dtype = "float32" if kinds <= {"float", "halffloat"} else "float64"
    held = tuple(RowGroup(*group, picked, dtype, missing) for group in groups)
    label = None if at is None else names[at]
    return Table(Parts(held, (n, len(picked)), np.dtype(dtype), picked), labels, picked, path, tuple(chosen), label=label)


def parquet_files(path: Path) -> list[Path]:
    """Return the *.parquet files of a folder in the order of their names, or the file itself."""
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


def parquet_names(path: Path) -> list[str]:
    """Return the names of the columns, in a folder those of the first file."""
    with _Parquet(parquet_files(path)[0]) as file:
        return file.names


def leading_parquet_columns(path: Path, positions: list[int]) -> Iterator[tuple[int, Array]]:
    """Yield only these columns, one row group at a time, each with the number of its file."""
    every = parquet_names(path)
    names = tuple(every[j] for j in positions)
    for number, part in enumerate(parquet_files(path)):
        with _Parquet(part) as file:
            if file.names != every:
                raise InputError(f"{part} does not have the columns of the first file")
            file.require_numbers(names)
            for k, first, _ in file.groups:
                columns = file.group(k, names)
                for name, column in zip(names, columns, strict=True):
                    file.require_values(name, column, first)
                yield number, file.features(names, columns)


def _difference(theirs: list[tuple[str, str]], ours: list[tuple[str, str]]) -> tuple[str, str] | None:
    """Return what each of two schemas has that the other has not, in words that can follow "has"; None if they are equal."""
    named, known = ([name for name, _ in schema] for schema in (theirs, ours))
    if named != known:
        same = next((k for k, (one, other) in enumerate(zip(named, known, strict=False)) if one != other), len(named))
        same = min(same, len(known))
        first, second = (listed([*map(repr, columns[same:])]) or "none" for columns in (named, known))
        return f"the columns {first} from column {same} on", second
    for (name, other), (_, kind) in zip(theirs, ours, strict=True):
        if kind != other:
            return f"{other} in column {name!r}", kind
    return None


class _Parquet:
    """An open Parquet file; the exceptions of pyarrow about its content become InputErrors."""

    def __init__(self, path: Path) -> None:
        self._arrow, self._path = import_extra("pyarrow", "data", "reading Parquet"), path
        parquet = import_extra("pyarrow.parquet", "data", "reading Parquet")
        self._raw = path.open("rb")
        try:
            if not self._raw.seek(0, 2):
                raise InputError(f"{path} is empty")
            self._file = self._guarded(lambda: parquet.ParquetFile(self._raw))
            self._schema = self._guarded(lambda: self._file.schema_arrow)  # kept, because pyarrow builds it on every access
            self.names: list[str] = list(self._schema.names)
        except BaseException:
            self._raw.close()
            raise

    def __enter__(self) -> _Parquet:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    @property
    def groups(self) -> list[tuple[int, int, int]]:
        """The index, the first row and the number of rows of each row group."""
        metadata = self._file.metadata
        sizes = [int(metadata.row_group(k).num_rows) for k in range(metadata.num_row_groups)]
        firsts = accumulate(sizes, initial=0)
        return [(k, first, n) for (k, n), first in zip(enumerate(sizes), firsts, strict=False)]

    @property
    def schema(self) -> list[tuple[str, str]]:
        """The names and types of all columns."""
        return [(field.name, str(field.type)) for field in self._schema]

    def require_numbers(self, names: tuple[str, ...]) -> None:
        """Raise an InputError if one of these columns does not hold numbers."""
        types = self._arrow.types
        if len(set(self.names)) < len(self.names):
            raise InputError(f"{self._path} has two columns of the same name; rename one")
        for name in names:
            kind = self._schema.field(name).type
            if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
                raise InputError(
                    f"{self._path}, column {name!r} is of type {kind}; features must be numbers (leave it out with features=)"
                )

    def require_values(self, name: str, column: Any, first: int) -> None:
        """Raise an InputError if a value is missing in a column, or in a part of it that starts at row `first`."""
        if column.null_count:
            row = first + int(np.argmax(np.asarray(column.is_null())))
            where = f"{self._path}, row {row} (from 0), column {name!r}"
            raise InputError(f"{where}: the value is missing; fill missing values first, or leave such rows out: missing='drop'")

    def group(self, k: int, names: tuple[str, ...]) -> list[Any]:
        """Return these columns of row group k as Arrow arrays."""
        table = self._guarded(lambda: self._file.read_row_group(k, columns=list(names)))
        return [table.column(name) for name in names]

    def features(self, names: tuple[str, ...], columns: list[Any]) -> Array:
        """Return these columns as one float64 matrix; refuse values that float64 cannot hold exactly."""
        X = np.empty((len(columns[0]), len(columns)))
        for k, (name, column) in enumerate(zip(names, columns, strict=True)):
            X[:, k] = self._guarded(self._as_float64(column, name).to_numpy)
        return X

    def labels(self, name: str, missing: bool = False) -> list[Array]:
        """Return a column as labels, in parts; the labels are objects if some may be missing."""
        kind = self._schema.field(name).type
        if self._arrow.types.is_nested(kind):
            raise InputError(f"{self._path}, column {name!r} is of type {kind}; labels must be numbers, booleans or text")
        parts: list[Array] = []
        batches = self._guarded(lambda: self._file.iter_batches(batch_size=LABEL_ROWS, columns=[name]))
        while (batch := self._guarded(lambda: next(batches, None))) is not None:
            column = batch.column(batch.schema.get_field_index(name))
            if missing:
                parts.append(np.array([*self._guarded(column.to_pylist), None], dtype=object)[:-1])
                continue
            self.require_values(name, column, sum(map(len, parts)))
            parts.append(self._labels(column))
        return parts

    def _labels(self, column: Any) -> Array:
        plain = self._guarded(column.dictionary_decode) if hasattr(column, "dictionary_decode") else column
        y: Array = self._guarded(lambda: plain.to_numpy(zero_copy_only=False))
        return y.astype(np.str_) if y.dtype.kind == "O" and all(isinstance(label, str) for label in y) else y

    def _as_float64(self, column: Any, name: str) -> Any:
        if self._arrow.types.is_boolean(column.type):
            column = column.cast(self._arrow.uint8())
        try:
            return column.cast(self._arrow.float64())
        except self._arrow.ArrowInvalid as error:
            where = f"{self._path}, column {name!r}"
            raise InputError(f"{where}: {error}; float64 cannot hold it exactly, rescale the column") from None

    def _guarded(self, step: Any) -> Any:
        arrow = self._arrow
        try:
            return step()
        except MemoryError as error:  # a damaged file may ask for any size
            raise InputError(f"{self._path} is damaged, or there is not enough memory to read it: {_first_line(error)}") from None
        except (arrow.ArrowException, ValueError, NotImplementedError, KeyError, IndexError, OSError) as error:
            if getattr(error, "errno", None) is not None:  # an error of the disk, not of the content
                raise
            raise InputError(f"{self._path} is damaged or not a Parquet file: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
