"""Parquet files, and folders of them, with the extra `data`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError, MissingExtra
from gordan.io.parts import Parts
from gordan.io.table import Table, Wanted, require_finite, require_labels

ROWS = 1 << 16  # per batch


def read_parquet(path: Path, wanted: Wanted, most: int) -> Table:
    """The table in a Parquet file, or in the *.parquet files of a folder in the order of their names; X is dense float64.

    What would take more than `most` bytes stays in its files, as `Parts`.
    """
    parts = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if 8 * _size(parts) > most:
        return open_parquet(path, wanted)
    columns, names = None, None
    X: list[Array] = []
    y: list[Array] = []
    for part in parts:
        with _Parquet(part) as file:
            if names is None:
                names = file.names
                columns = wanted.columns(len(names), names, path)
            if file.names != names or columns is None:
                raise InputError(f"{part} has other columns than {parts[0]}: {', '.join(map(repr, file.names[:8]))}")
            at, chosen = columns
            for batch in file.batches([*chosen, *([] if at is None else [at])]):
                X.append(file.features(batch[: len(chosen)]))
                if at is not None:
                    y.append(file.labels(batch[-1][1]))
    if names is None or columns is None or not sum(map(len, X)):
        raise InputError(f"{path} has no rows")
    matrix, picked = np.concatenate(X), tuple(names[j] for j in columns[1])
    require_finite(matrix, path, picked)
    labels = np.concatenate(y) if y else None
    if len({part.dtype.kind for part in y}) > 1:
        raise InputError(f"the label column has another type in some of the files of {path}")
    if labels is not None:
        require_labels(labels, len(matrix), path)
    return Table(matrix, labels, picked, path)


def _size(parts: list[Path]) -> int:
    """Rows times columns."""
    size = 0
    for part in parts:
        with _Parquet(part) as file:
            size += file.rows * len(file.names)
    return size


@dataclass(frozen=True)
class RowGroup:
    """One row group of a Parquet file."""

    path: Path
    k: int
    n: int
    names: tuple[str, ...]
    dtype: str

    def read(self) -> Array:
        """Its rows; an InputError names the file, the row group and what is wrong with it."""
        where = Path(f"{self.path}, row group {self.k}")
        with _Parquet(self.path) as file:
            columns = file.group(self.k, self.names)
            if len(columns[0][1]) != self.n:
                raise InputError(f"{where} has {len(columns[0][1])} rows, where there were {self.n}; the file was changed")
            X = file.features(columns, where).astype(self.dtype, copy=False)
        require_finite(X, where, self.names)
        return X


def open_parquet(path: Path, wanted: Wanted) -> Table:
    """The table in a Parquet file or folder, X left in its row groups; labels and what the files say of themselves are read."""
    parts = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    groups: list[tuple[Path, int, int]] = []
    y: list[Array] = []
    first: list[tuple[str, str]] | None = None
    for part in parts:
        with _Parquet(part) as file:
            if first is None:
                first = file.schema
                names = file.names
                at, chosen = wanted.columns(len(names), names, path)
                picked = tuple(names[j] for j in chosen)
            elif (differing := _difference(first, file.schema)) is not None:
                raise InputError(f"{part} {differing} in {parts[0]}; the files of a folder must have the same columns")
            file.require_numbers(picked)
            groups += [(part, k, n) for k, n in enumerate(file.groups) if n]
            if at is not None:
                y += [file.labels(batch[0][1]) for batch in file.batches([at])]
    if not groups:
        raise InputError(f"{path} has no rows")
    n = sum(rows for *_, rows in groups)
    labels = np.concatenate(y) if y else None
    if labels is not None:
        require_labels(labels, n, path)
    features = set(picked)
    kinds = {kind for name, kind in first or () if name in features}
    dtype = "float32" if kinds <= {"float", "halffloat"} else "float64"
    held = tuple(RowGroup(part, k, rows, picked, dtype) for part, k, rows in groups)
    return Table(Parts(held, (n, len(picked)), np.dtype(dtype), picked), labels, picked, path)


def _difference(ours: list[tuple[str, str]], theirs: list[tuple[str, str]]) -> str | None:
    """How two schemas differ, in words that end before "in"."""
    if [name for name, _ in ours] != [name for name, _ in theirs]:
        return f"has other columns ({', '.join(repr(name) for name, _ in theirs[:8])}) than there are"
    for (name, kind), (_, other) in zip(ours, theirs, strict=True):
        if kind != other:
            return f"has {other} in column {name!r}, where there is {kind}"
    return None


class _Parquet:
    """One open Parquet file; what pyarrow finds wrong with it becomes an InputError."""

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise MissingExtra("pyarrow", "data", "reading Parquet") from None
        self._arrow, self._path = pyarrow, path
        self._raw = path.open("rb")
        try:
            if not self._raw.seek(0, 2):
                raise InputError(f"{path} is empty")
            self._file = self._guarded(lambda: pyarrow.parquet.ParquetFile(self._raw))
            self._schema = self._guarded(lambda: self._file.schema_arrow)  # once: pyarrow makes it anew whenever it is asked
            self.names: list[str] = list(self._schema.names)
        except BaseException:
            self._raw.close()
            raise

    def __enter__(self) -> _Parquet:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._guarded(lambda: self._file.metadata.num_rows))

    @property
    def groups(self) -> list[int]:
        """Number of rows of each row group."""
        metadata = self._file.metadata
        return [int(metadata.row_group(k).num_rows) for k in range(metadata.num_row_groups)]

    @property
    def schema(self) -> list[tuple[str, str]]:
        """Names and types of all columns."""
        return [(field.name, str(field.type)) for field in self._schema]

    def require_numbers(self, names: tuple[str, ...]) -> None:
        """Refuse columns that are no numbers."""
        types = self._arrow.types
        if len(set(self.names)) < len(self.names):
            raise InputError(f"{self._path} has two columns of the same name; rename one")
        for name in names:
            kind = self._schema.field(name).type
            if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
                raise InputError(
                    f"{self._path}, column {name!r} is of type {kind}; features must be numbers (leave it out with features=)"
                )

    def group(self, k: int, names: tuple[str, ...]) -> list[tuple[str, Any]]:
        """(name, Arrow array) of these columns of row group k."""
        table = self._guarded(lambda: self._file.read_row_group(k, columns=list(names)))
        columns = [(name, table.column(name)) for name in names]
        for name, array in columns:
            if array.null_count:
                row = int(np.argmax(array.is_null().to_numpy()))
                where = f"{self._path}, row group {k}, row {row} of it (from 0), column {name!r}"
                raise InputError(f"{where}: the value is missing; fill or drop missing values first")
        return columns

    def batches(self, positions: list[int]) -> Any:
        """The rows, some at a time: (name, Arrow array) for each of the columns at `positions`."""
        if len(set(self.names)) < len(self.names):
            raise InputError(f"{self._path} has two columns of the same name; rename one")
        names = [self.names[j] for j in positions]
        for name in names:
            self._require_plain(name)
        done = 0
        batches = self._guarded(lambda: self._file.iter_batches(batch_size=ROWS, columns=names))
        while (batch := self._guarded(lambda: next(batches, None))) is not None:
            arrays = [batch.column(batch.schema.get_field_index(name)) for name in names]
            pairs = list(zip(names, arrays, strict=True))
            for name, array in pairs:
                if array.null_count:
                    row = done + int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
                    where = f"{self._path}, row {row} (from 0), column {name!r}"
                    raise InputError(f"{where}: the value is missing; fill or drop missing values first")
            yield pairs
            done += batch.num_rows

    def features(self, columns: list[tuple[str, Any]], where: Path | None = None) -> Array:
        """These columns as one float64 matrix, exactly."""
        X = np.empty((len(columns[0][1]), len(columns)))
        for k, (name, array) in enumerate(columns):
            X[:, k] = self._guarded(self._as_float64(array, f"{where or self._path}, column {name!r}").to_numpy)
        return X

    def labels(self, array: Any) -> Array:
        """A column as labels."""
        plain = self._guarded(array.dictionary_decode) if hasattr(array, "dictionary_decode") else array
        y: Array = self._guarded(lambda: plain.to_numpy(zero_copy_only=False))
        return y.astype(np.str_) if y.dtype.kind == "O" and all(isinstance(label, str) for label in y) else y

    def _as_float64(self, array: Any, where: str) -> Any:
        types, kind = self._arrow.types, array.type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise InputError(f"{where} is of type {kind}; features must be numbers (leave it out with features=)")
        if types.is_boolean(kind):
            array = array.cast(self._arrow.uint8())
        try:
            return array.cast(self._arrow.float64())
        except self._arrow.ArrowInvalid as error:
            raise InputError(f"{where}: {error}; float64 cannot hold it exactly, rescale the column") from None

    def _require_plain(self, name: str) -> None:
        kind = self._schema.field(name).type
        if self._arrow.types.is_nested(kind):
            raise InputError(
                f"column {name!r} of {self._path} is of type {kind}; numbers are needed (leave it out with features=)"
            )

    def _guarded(self, step: Any) -> Any:
        arrow = self._arrow
        try:
            return step()
        except MemoryError as error:  # sizes in a damaged file may be anything
            raise InputError(f"{self._path} is damaged, or there is not enough memory to read it: {_line(error)}") from None
        except (arrow.ArrowException, ValueError, NotImplementedError, KeyError, IndexError) as error:
            raise InputError(f"{self._path} is damaged or no Parquet file: {_line(error)}") from None
        except OSError as error:
            if error.errno is not None:
                raise
            raise InputError(f"{self._path} is damaged or no Parquet file: {_line(error)}") from None


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
