"""Turn what a caller passes for X into stored rows, exactly or not at all.

float32 and float64 are used as they are (no copy when contiguous); small integers, booleans and float16 become float32 and
int32 becomes float64, both exact; 64-bit integers are refused beyond 2⁵³; everything else is refused by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.rows.memory import Dense, Sparse

EXACT_IN_FLOAT32 = ("float16", "bool", "int8", "uint8", "int16", "uint16")
EXACT_IN_FLOAT64 = ("int32", "uint32")
MOST_EXACT_INTEGER = 2**53


def stored(X: Any) -> Dense | Sparse:
    """The storage for X: CSR for SciPy sparse matrices and arrays, C-contiguous dense otherwise."""
    if sp.issparse(X):
        return _sparse(X)
    return _dense(X)


def _dense(X: Any) -> Dense:
    try:
        array = np.asarray(X)
    except (ValueError, TypeError) as error:
        raise InputError(f"X cannot be read as a matrix ({error}); pass a 2-D array with one row per example") from None
    _check_shape(array.shape)
    return Dense(np.ascontiguousarray(_real(array, "X")))


def _sparse(X: Any) -> Sparse:
    _check_shape(X.shape)
    csr = X if X.format == "csr" else X.tocsr()
    try:
        csr.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"the CSR matrix is not valid: {error}; rebuild it, for example from its COO form") from None
    return Sparse(np.ascontiguousarray(_real(csr.data, "X.data")), csr.indices, csr.indptr, csr.shape[1])


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        hint = "; use X.reshape(-1, 1) for one feature or X.reshape(1, -1) for one row" if len(shape) == 1 else ""
        raise InputError(f"X must be a matrix of rows and columns, but its shape is {shape}{hint}")
    if 0 in shape:
        raise InputError(f"X has {shape[0]} rows and {shape[1]} columns; at least one of each is needed")


def _real(array: Array, name: str) -> Array:
    """`array` as float32 or float64 in native byte order, exactly."""
    kind = array.dtype.newbyteorder("=").name
    if kind in ("float32", "float64"):
        return array.astype(kind, copy=False)
    if kind in EXACT_IN_FLOAT32:
        return array.astype(np.float32)
    if kind in EXACT_IN_FLOAT64:
        return array.astype(np.float64)
    if kind in ("int64", "uint64"):
        too_large = (array > MOST_EXACT_INTEGER) | (array < -MOST_EXACT_INTEGER if kind == "int64" else False)
        _refuse_first(too_large, array, name, "is an integer beyond 2**53, which float64 cannot hold; rescale the column")
        return array.astype(np.float64)
    if kind == "object":
        return _from_objects(array, name)
    if array.dtype.kind == "f":
        narrowed = array.astype(np.float64)
        _refuse_first(narrowed != array, array, name, "is not exact in float64; round it with X.astype(float) first")
        return narrowed
    _refuse_first(np.ones(array.shape, bool), array, name, f"has dtype {array.dtype}; features must be real numbers")
    raise AssertionError("unreachable")


def _from_objects(array: Array, name: str) -> Array:
    numbers = np.empty(array.shape, np.float64)
    for where, value in np.ndenumerate(array):
        try:
            if isinstance(value, (str, bytes, complex)) or value is None:
                raise TypeError
            numbers[where] = float(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{_cell(where, name)} is {value!r}; features must be real numbers") from None
        if isinstance(value, int) and int(numbers[where]) != value:
            raise InputError(f"{_cell(where, name)} is {value}, which float64 cannot hold; rescale the column")
    return numbers


def _refuse_first(bad: Array, array: Array, name: str, reason: str) -> None:
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InputError(f"{_cell(where, name)} ({array[where]!r}) {reason}")


def _cell(where: tuple[int, ...], name: str) -> str:
    return f"{name}[{', '.join(map(str, where))}]"
