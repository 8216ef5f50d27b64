"""Rows without missing cells: NaN, None, `pandas.NA`, and text that stands for a missing value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gordan.arrays import Array, column_values, is_arrow, is_sparse
from gordan.io.table import is_missing_text
from gordan.rows.accept import column_names, column_types, frame_column, host


def is_missing(value: Any) -> bool:
    """Return whether a cell is missing."""
    if isinstance(value, str):
        return is_missing_text(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and math.isnan(value)


@dataclass(frozen=True, eq=False)
class Complete:
    """Which of n rows are kept, by position.

    `missing` has the number of missing cells of each column that has some, and `zero` is the number of complete rows that are
    left out because their weight is zero.
    """

    n: int
    kept: Array
    missing: dict[str, int]
    zero: int = 0

    @property
    def left_out(self) -> int:
        """The number of rows that are not kept."""
        return self.n - len(self.kept)

    def of(self, values: Any) -> Any:
        """Return these rows of a data frame, a matrix or a vector."""
        if values is None or not self.left_out:
            return values
        if hasattr(values, "iloc"):
            return values.iloc[self.kept]
        if is_arrow(values):
            return values.take(self.kept)
        if isinstance(values, (list, tuple)):
            return [values[i] for i in self.kept]
        return (values.tocsr() if is_sparse(values) else values)[self.kept]


def complete_rows(n: int, given: dict[str, Any], weights: Any = None) -> Complete:
    """Return which rows have no missing cell in anything that is given and, if there are weights, a nonzero weight."""
    lost = np.zeros(n, bool)
    missing: dict[str, int] = {}
    for name, where in _missing_cells(given):
        lost |= where
        missing[name] = missing.get(name, 0) + int(np.count_nonzero(where))
    zero = np.zeros(n, bool)
    if weights is not None:
        values = np.asarray(host(weights))
        if values.dtype.kind in "OUT":  # where a missing weight may be pandas.NA or text
            values = np.array([math.nan if is_missing(weight) else weight for weight in values.tolist()], dtype=object)
        zero = ~lost & (values.astype(np.float64) == 0)
    return Complete(n, np.flatnonzero(~(lost | zero)), missing, int(np.count_nonzero(zero)))


def _missing_cells(given: dict[str, Any]) -> Iterator[tuple[str, Array]]:
    """Yield the name of each column with missing cells, and a mask of them."""
    for name, values in given.items():
        if values is None:
            continue
        if not len(column_types(values)) and is_sparse(values):
            yield from _missing_entries(values)
            continue
        for own, column in _named_columns(name, values):
            where = _missing_in(column)
            if where.any():
                yield own, where


def _missing_entries(values: Any) -> Iterator[tuple[str, Array]]:
    """Yield the same for a sparse matrix."""
    entries = values.tocoo()
    wrong = np.isnan(entries.data) if entries.data.dtype.kind == "f" else np.zeros(len(entries.data), bool)
    names = column_names(values, values.shape[1]) or [f"x{j}" for j in range(values.shape[1])]
    for j in np.unique(entries.col[wrong]).tolist():
        where = np.zeros(values.shape[0], bool)
        where[entries.row[wrong & (entries.col == j)]] = True
        yield names[j], where


def _named_columns(name: str, values: Any) -> Iterator[tuple[str, Array]]:
    """Yield the columns of a table, a matrix or a vector called `name`, with their names."""
    d = len(column_types(values))
    if d:
        names = column_names(values, d) or [f"{name}[{j}]" for j in range(d)]
        yield from ((own, np.asarray(frame_column(values, j))) for j, own in enumerate(names))
        return
    plain = column_values(values)
    array = np.asarray(_objects(plain) if isinstance(plain, (list, tuple)) else host(plain))
    if array.ndim == 2:
        names = column_names(values, array.shape[1]) or [f"x{j}" for j in range(array.shape[1])]
        yield from ((own, array[:, j]) for j, own in enumerate(names))
    else:
        yield name, array


def _objects(values: Any) -> Array:
    """Return a list as an array in which text and numbers keep their types."""
    if values and isinstance(values[0], (list, tuple, np.ndarray)):
        return np.array([[*row] for row in values], dtype=object)
    return np.fromiter(values, dtype=object, count=len(values))


def _missing_in(column: Array) -> Array:
    if column.dtype.kind == "f":
        return np.asarray(np.isnan(column))
    if column.dtype.kind in "OUT":
        return np.fromiter(map(is_missing, column.tolist()), dtype=bool, count=len(column))
    return np.zeros(len(column), bool)
