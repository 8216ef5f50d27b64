"""Turn what a caller passes for X into stored rows, exactly or not at all.

float32 and float64 are used as they are (without a copy if contiguous); small integers, booleans and float16 become float32 and
int32 becomes float64, both exactly; 64-bit integers are refused beyond 2⁵³; everything else is refused with its position.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from gordan.arrays import MAX_EXACT_INTEGER, Array, is_sparse
from gordan.errors import InputError
from gordan.floats import ieee_floats
from gordan.io.parts import Csr, Part, Parts
from gordan.rows.blocks import Blocks, Loadable
from gordan.rows.cluster import Cluster
from gordan.rows.device import Device
from gordan.rows.lazy import are_files, computed, in_blocks, is_lazy
from gordan.rows.mapped import LARGE_FILE_BYTES, is_mapped
from gordan.rows.memory import Dense, Sparse
from gordan.rows.storage import Storage
from gordan.rows.tensors import host as from_device
from gordan.rows.tensors import is_on_device, is_tensor, placed

EXACT_IN_FLOAT32 = ("float16", "bool", "int8", "uint8", "int16", "uint16")
EXACT_IN_FLOAT64 = ("int32", "uint32")
# With more columns, no vector over columns fits into memory.
MAX_COLUMNS = 2**36
# Sums of duplicate entries from here on are refused; converting larger fractions to float may overflow.
OVERFLOWING_SUM = 2**1023
# The number of indices that are checked at a time.
INDICES_PER_CHECK = 1 << 22
# The number of entries of a data frame that are converted at a time.
ENTRIES_PER_CONVERSION = 1 << 20
# Characters of an entry that a message shows: an entry may be an array.
MAX_SHOWN = 60
# The advice for text columns.
DUMMIES = "pandas.get_dummies(X, drop_first=True, dtype=float)"


@ieee_floats()
def stored(
    X: Any, device: str | None = None, sums: str | None = None, *, first: int = 0
) -> Dense | Sparse | Blocks | Cluster | Device:
    """Return the storage for X: CSR for SciPy sparse matrices and arrays, C-contiguous dense arrays otherwise.

    A torch tensor or an array on a GPU stays where it is, unless `device` is given, and so do the blocks of a Dask collection. A
    storage is returned as it is. `first` is the number of the first row in messages, if X is a part of a larger matrix.
    """
    found = _as_it_is(X, device)
    if found is not None:
        return found
    if isinstance(X, (str, PathLike)):
        raise InputError(f"X is {str(X)!r}; read a file first: t = gordan.io.read({str(X)!r}), which has t.X and t.y")
    refuse_queries(X)
    X = _unwrapped(X)
    if device == "cpu":
        X = host(X)
    elif device is not None or is_tensor(X) or is_on_device(X):
        return Device(placed(X if is_tensor(X) or is_on_device(X) else stored(X), device), sums=sums)
    if sums not in (None, "float64"):
        raise InputError(f"sums is {sums!r}, but rows in memory are always added up in float64; leave sums out")
    if is_sparse(X):
        return _sparse(getattr(X, "__wrapped__", X), first)  # formulaic wraps its matrices
    dense = _dense(X, first)
    if isinstance(dense, Dense):
        dense.names = column_names(X, dense.d)
    return dense


def refuse_queries(X: Any) -> None:
    """Refuse a lazy frame of polars: it is a query whose rows are not there yet."""
    if hasattr(X, "collect_schema") and not hasattr(X, "to_numpy"):
        raise InputError(f"X is a {type(X).__name__}, which has no rows yet; pass X.collect()")


def in_memory_if_small(storage: Storage) -> Storage:
    """Return the storage, or its rows in memory if it is a small one on a device or a cluster."""
    return storage.take(np.arange(storage.n)) if storage.entries < storage.min_entries else storage


def _as_it_is(X: Any, device: str | None) -> Dense | Sparse | Blocks | Cluster | Device | None:
    """Return X if it is a storage on that device, or the storage that reads it in place; None for everything else."""
    here = device in (None, "cpu")
    if here and isinstance(X, (Dense, Sparse, Blocks, Cluster)):
        return X
    if device is None and isinstance(X, Device):
        return X
    if device is None and (is_lazy(X) or are_files(X)):
        return in_blocks(X)
    return _from_files(X) if here and isinstance(X, (Parts, Csr)) else None


def _unwrapped(X: Any) -> Any:
    """Return the array or matrix behind rows in files or on a device, and anything else as it is."""
    if isinstance(X, Parts):
        return np.asarray(X)
    return X.tocsr() if isinstance(X, Csr) else X.X if isinstance(X, Device) else X


def host(values: Any) -> Any:
    """Return `values` on the host: what is on a device or a cluster is copied, everything else is returned as it is."""
    return computed(values) if is_lazy(values) else from_device(values)


def _from_files(X: Parts | Csr) -> Sparse | Blocks:
    """Return the storage that reads X from its files."""
    if isinstance(X, Parts):
        parts = [Loadable(part.n, part.n * X.shape[1], partial(_loaded, part)) for part in X.parts]
        return Blocks(parts, X.shape[1], X.dtype)
    if not X.checked:  # kernels trust the indices: none may be out of range, and an entry may be stored only once
        _check_indices(X)
        X.checked = True
    return Sparse(X.data, X.indices, X.indptr, X.shape[1])


@ieee_floats()
def _loaded(part: Part) -> Dense:
    return Dense(np.ascontiguousarray(part.read()))


def _check_indices(X: Csr) -> None:
    """Raise an InputError if the indices of a CSR matrix in files are not valid."""
    ends = X.indptr
    wrong = "the CSR matrix is not valid: its %s; convert the data again"
    if len(ends) != X.shape[0] + 1 or ends[0] != 0 or ends[-1] != X.nnz or len(X.indices) != X.nnz:
        raise InputError(wrong % "arrays do not fit together: their lengths differ")
    if X.shape[0] and int(np.min(np.diff(ends))) < 0:
        raise InputError(wrong % "rows overlap")
    for lo in range(0, X.nnz, INDICES_PER_CHECK):
        hi = min(lo + INDICES_PER_CHECK, X.nnz)
        part = np.asarray(X.indices[lo : hi + 1])
        if int(part.min()) < 0 or int(part.max()) >= X.shape[1]:
            raise InputError(wrong % f"indices leave 0..{X.shape[1] - 1}")
        first = np.zeros(hi - lo + 1, bool)  # whether a row starts at that entry
        inside = ends[np.searchsorted(ends, lo) : np.searchsorted(ends, hi, side="right")] - lo
        first[inside] = True
        rising = np.diff(part) > 0
        if not (rising | first[1 : len(part)]).all():
            raise InputError(wrong % "indices do not increase along a row")


def _dense(X: Any, first: int) -> Dense | Blocks:
    if np.ma.is_masked(X):
        where = tuple(int(i) for i in np.argwhere(np.ma.getmaskarray(X))[0])
        raise InputError(f"{_name(where, first)} is masked; fill or drop masked entries first")
    types = column_types(X)
    if types and not (isinstance(types[0], np.dtype) and len({*types}) == 1):
        return Dense(_by_columns(X, len(types), first))
    try:
        array = np.asarray(X)
    except (ValueError, TypeError) as error:
        raise InputError(f"X cannot be read as a matrix ({error}); pass a 2-D array with one row per example") from None
    if array.ndim == 0:
        raise InputError(f"X is of type {type(X).__name__}; pass a 2-D array or a data frame, with one row per example")
    _check_shape(array.shape)
    usable = array.flags.c_contiguous and array.dtype in (np.float32, np.float64) and array.dtype.isnative
    if is_mapped(array) and array.nbytes >= LARGE_FILE_BYTES and not usable:
        return _sliced(array)
    names = column_names(X, array.shape[1])
    if array.dtype == np.float64 and isinstance(X, (list, tuple)):
        _check_large(X, array, first)
    return Dense(np.ascontiguousarray(_real(array, partial(_cell, first=first, names=names))))


def column_types(X: Any) -> list[Any]:
    """Return the column types of a pandas or polars data frame or a pyarrow table, and an empty list for anything else."""
    types = getattr(X, "dtypes", getattr(getattr(X, "schema", None), "types", ()))
    return [*types] if hasattr(X, "columns") else []


def _by_columns(frame: Any, d: int, first: int) -> Array:
    """Convert a data frame whose columns have different types, or types unknown to NumPy, column by column.

    NumPy would choose one type for all: float64, which rounds large integers, or object, which takes a hundred times as long.
    """
    n = len(frame)
    _check_shape((n, d))
    names = column_names(frame, d)
    columns = [_exact_integers(np.asarray(frame_column(frame, j))) for j in range(d)]
    narrow = all(column.dtype.name in ("float32", *EXACT_IN_FLOAT32) for column in columns)
    X = np.empty((n, d), np.float32 if narrow else np.float64)
    step = max(1024, ENTRIES_PER_CONVERSION // d)  # all columns of some rows at a time, so that cache lines are written once
    for lo in range(0, n, step):
        for j, column in enumerate(columns):
            X[lo : lo + step, j] = _real(column[lo : lo + step], partial(_cell, first=first + lo, names=names, column=j))
    return X


def _exact_integers(column: Array) -> Array:
    """Return a column as it is, or as objects if it has integers beyond 2**53, so that each of them is checked."""
    wide = column.dtype.kind in "iu" and column.dtype.itemsize == 8 and len(column)
    beyond = wide and (int(column.max()) > MAX_EXACT_INTEGER or int(column.min()) < -MAX_EXACT_INTEGER)
    return column.astype(object) if beyond else column


def frame_column(frame: Any, j: int) -> Any:
    """Return column j of a pandas data frame, a pyarrow table or a polars data frame."""
    if hasattr(frame, "iloc"):
        return frame.iloc[:, j]
    return frame.column(j) if hasattr(frame, "column") else frame[:, j]


def _check_large(X: Any, array: Array, first: int) -> None:
    """Raise an InputError for integers in nested lists that NumPy has rounded because there are floats beside them."""
    with np.errstate(invalid="ignore"):
        if not max(-float(np.min(array)), float(np.max(array))) >= MAX_EXACT_INTEGER:
            return
        rows = np.flatnonzero((np.abs(array) >= MAX_EXACT_INTEGER).any(axis=1))
    for i in rows.tolist():
        if getattr(X[i], "dtype", None) != np.float64:
            given = np.empty((1, array.shape[1]), dtype=object)
            given[0] = X[i]
            _from_objects(given, partial(_cell, first=first + i))


def _sliced(array: Array) -> Blocks:
    """Return a large mapped array that must be copied to be used (for its type, order or label column) in blocks.

    A copy of the whole may not fit into memory.
    """
    n, d = array.shape
    step = max(1, LARGE_FILE_BYTES // (8 * d))
    first = _real(array[:1], lambda where: _name(where, 0)).dtype if array.dtype.kind != "O" else np.dtype(np.float64)
    parts = [(lo, min(step, n - lo)) for lo in range(0, n, step)]
    return Blocks([Loadable(rows, rows * d, partial(_copied, array, lo, rows)) for lo, rows in parts], d, first)


@ieee_floats()
def _copied(array: Array, lo: int, rows: int) -> Dense:
    return Dense(np.ascontiguousarray(_real(array[lo : lo + rows], lambda where: _name(where, lo))))


def column_names(X: Any, d: int) -> list[str] | None:
    """Return the names of the d columns of X, or None if it has no names.

    Data frames, anything else with `columns`, and design matrices of patsy and formulaic have names.
    """
    design = getattr(X, "design_info", getattr(X, "model_spec", X))
    names = getattr(design, "column_names", getattr(X, "columns", None))
    try:
        found = None if names is None else [str(name) for name in names]
    except TypeError:  # an unrelated attribute of that name
        return None
    return found if found is not None and len(found) == d else None


def _sparse(X: Any, first: int) -> Sparse:
    _check_shape(X.shape)
    X = _checked(X)
    if X.format != "csr" or not X.has_canonical_format:  # row norms require each entry to be stored once
        return _summed(X, first)
    data, indices, indptr = X.data, X.indices, X.indptr

    def cell(where: tuple[int, ...]) -> str:
        return _name((int(np.searchsorted(indptr, where[0], side="right")) - 1, int(indices[where[0]])), first)

    return Sparse(np.ascontiguousarray(_real(data, cell)), indices, indptr, X.shape[1])


def _summed(X: Any, first: int) -> Sparse:
    """Convert a sparse matrix of any format to CSR, adding up duplicate entries exactly or not at all.

    SciPy would add them in the type in which they are stored: integers wrap, and floats are rounded.
    """
    entries = X.tocoo(copy=False)
    row, column = (np.asarray(index, dtype=np.int64) for index in (entries.row, entries.col))

    def cell(where: tuple[int, ...]) -> str:
        return _name((int(row[where[0]]), int(column[where[0]])), first)

    data = _real(entries.data, cell)
    order = np.lexsort((column, row))
    row, column, data = row[order], column[order], data[order]
    new = np.ones(len(data), dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    if not new.all():
        starts = np.flatnonzero(new)
        ends = np.append(starts[1:], len(data))
        sums = data[starts].astype(np.float64)
        for k in np.flatnonzero(ends - starts > 1):
            terms = [float(x) for x in data[starts[k] : ends[k]]]
            if all(map(math.isfinite, terms)):
                total = sum(map(Fraction, terms), Fraction(0))
                sums[k] = float(total) if abs(total) < OVERFLOWING_SUM else math.inf
                if sums[k] != total:
                    raise InputError(
                        f"{cell((int(starts[k]),))} is stored in parts whose sum float64 cannot hold; add them up with "
                        "X.sum_duplicates(), which rounds"
                    )
            else:
                sums[k] = sum(terms)
        row, column, data = row[starts], column[starts], sums
    indptr = np.zeros(X.shape[0] + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=X.shape[0]), out=indptr[1:])
    return Sparse(data, column, indptr, X.shape[1])


def _checked(X: Any) -> Any:
    """Return a matrix over the same arrays after checking its indices, which conversions and kernels trust.

    It is a new matrix because SciPy's check trims and converts the arrays of the matrix that it checks.
    """
    try:
        if X.format in ("csr", "csc", "bsr"):
            if X.indices.dtype.kind not in "iu" or X.indptr.dtype.kind not in "iu":
                raise ValueError(f"its indices are of type {X.indices.dtype}, not integers")
            X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
            X.check_format(full_check=True)
        elif X.format == "coo":
            for axis, (index, size) in enumerate(zip(X.coords, X.shape, strict=True)):
                if len(index) and (index.min() < 0 or index.max() >= size):
                    raise ValueError(f"an index along axis {axis} is outside 0..{size - 1}")
    except ValueError as error:
        raise InputError(f"the {X.format.upper()} matrix is not valid: {error}; rebuild it from its entries") from None
    return X


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        hint = "; use np.reshape(X, (-1, 1)) for one feature or np.reshape(X, (1, -1)) for one row" if len(shape) == 1 else ""
        raise InputError(f"X must be a matrix of rows and columns, but its shape is {shape}{hint}")
    if shape[1] > MAX_COLUMNS:
        raise InputError(f"X has {shape[1]} columns; no vector over columns fits into memory; drop columns that are empty")
    if 0 in shape:
        raise InputError(f"X has {shape[0]} rows and {shape[1]} columns; at least one of each is needed")


def _real(array: Array, cell: Callable[[tuple[int, ...]], str]) -> Array:
    """Return `array` as float32 or float64 in native byte order, exactly; `cell` names the entry of X at a position in it."""

    def refuse_first(bad: Array, reason: str) -> None:
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise InputError(f"{cell(where)} is {array.item(where)!r}: {reason}")

    kind = array.dtype.newbyteorder("=").name
    if kind in ("float32", "float64"):
        return array.astype(kind, copy=False)
    if kind in EXACT_IN_FLOAT32:
        return array.astype(np.float32)
    if kind in EXACT_IN_FLOAT64:
        return array.astype(np.float64)
    if kind in ("int64", "uint64"):
        too_large = (array > MAX_EXACT_INTEGER) | (array < -MAX_EXACT_INTEGER if kind == "int64" else False)
        refuse_first(too_large, "an integer beyond 2**53, which float64 cannot hold; rescale the column")
        return array.astype(np.float64)
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            narrowed = array.astype(np.float64)
        refuse_first((narrowed != array) & ~np.isnan(array), "not exact in float64; round it with X.astype(float) first")
        return narrowed
    if kind == "object":
        return _from_objects(array, cell)
    hint = ""
    if array.dtype.kind == "U" and array.size and "(column " in cell((0, 0)):
        hint = ": make 0/1 columns of text first (pandas.get_dummies(X), or X.to_dummies() of polars)"
    refuse_first(np.ones(array.shape, bool), f"its type is {array.dtype}; features must be real numbers{hint}")
    return array.astype(np.float64)  # an empty array has nothing to refuse


def _for_text(value: Any, where: str) -> str:
    """Return advice on converting text or arrays in a named column to numbers, or nothing."""
    if "(column " in where and isinstance(value, (list, tuple, np.ndarray)):
        return f": make columns of the arrays first, X = numpy.stack(X[{where.partition('(column ')[2].removesuffix(')')}])"
    if not isinstance(value, str) or "(column " not in where:
        return ""
    try:
        float(value)
    except ValueError:
        return f": make 0/1 columns of text first, X = {DUMMIES}"
    name = where.partition("(column ")[2].removesuffix(")")
    return f": convert the text, X[{name}] = pandas.to_numeric(X[{name}])"


def _from_objects(array: Array, cell: Callable[[tuple[int, ...]], str]) -> Array:
    from decimal import Decimal

    exact = np.empty(array.shape, np.float64)
    for where, value in np.ndenumerate(array):
        if isinstance(value, np.generic):
            value = value.item()
        if not isinstance(value, (numbers.Real, Decimal)):
            shown = " ".join(repr(value).split())  # arrays are printed in lines
            shown = shown if len(shown) <= MAX_SHOWN else f"{shown[: MAX_SHOWN - 1]}…"
            raise InputError(f"{cell(where)} is {shown}; features must be real numbers{_for_text(value, cell(where))}")
        try:
            exact[where] = float(value)
        except OverflowError:
            exact[where] = np.inf
        if float(exact[where]) != value and value == value:
            raise InputError(f"{cell(where)} is {value}, which float64 cannot hold exactly; rescale or round the column")
    return exact


def _cell(where: tuple[int, ...], first: int, names: list[str] | None = None, column: int | None = None) -> str:
    """Return the text for an entry of X, with the name of its column if known; `where` is only a row if `column` is given."""
    where = where if column is None else (where[0], column)
    return _name(where, first) if names is None else f"{_name(where, first)} (column {names[where[1]]!r})"


def _name(cell: tuple[int, ...], first: int) -> str:
    """Return the text for an entry of X whose rows are counted from `first`."""
    return f"X[{', '.join(map(str, (first + cell[0], *cell[1:])))}]"
