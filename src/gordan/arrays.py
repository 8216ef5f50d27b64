"""Validation of arguments: functions that turn what a caller passes into arrays and numbers, exactly or not at all."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from gordan.errors import InputError, one_of

Array: TypeAlias = npt.NDArray[Any]

# From about this length on, OpenBLAS uses threads for a product of vectors, which then spin for some 20 ms on the cores that the
# next pass over the rows needs.
MAX_BLAS_LENGTH = 8192

# Sums of squares outside this range may have lost digits to underflow or overflow.
MIN_SQUARE, MAX_SQUARE = 1e-280, 1e300
# All integers up to this size are floats; beyond, some are not.
MAX_EXACT_INTEGER = 2**53
# Integers from here on are refused as labels: they are as large as the largest floats.
MAX_LABEL = 2**1023
# Integers from here on overflow when converted to float: half way from the largest float to the next power of two.
BEYOND_FLOATS = 2**1024 - 2**970
# ln 2 in two parts. The first has 32 bits, so that its product with an exponent is exact; the error of their sum is about 2⁻⁸⁶.
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")


def namespace(x: Any) -> Any:
    """Return the module with functions for the array x: NumPy, or torch for a tensor."""
    return np if isinstance(x, (np.ndarray, np.generic)) else sys.modules["torch"]


def in_float64(x: Any) -> Any:
    """Return an array or tensor of floats as float64."""
    return x.astype(np.float64, copy=False) if isinstance(x, np.ndarray) else x.double()


def aligned(x: Any) -> Any:
    """Return x, or a copy if it is an array that is not aligned for its type.

    Arrays received from other processes need not be; products with them are slower and differ in the last digits.
    """
    return x.copy() if isinstance(x, np.ndarray) and not x.flags.aligned else x


def dot(x: Array, y: Array) -> float:
    """Return x·y; an overflow gives infinity without the warning of `x @ y`."""
    return float(np.vdot(x, y) if len(x) < MAX_BLAS_LENGTH else np.einsum("i,i->", x, y))


def relative_width(lower: float, upper: float) -> float:
    """Return (upper - lower)/upper: 0 if the ends are equal or crossed because of rounding, 1 if upper is infinite."""
    if upper <= lower:
        return 0.0
    return (upper - lower) / upper if upper < math.inf else 1.0


def times_powers(v: Array, exponents: Array) -> Array:
    """Return v_j 2^e_j, all times one power of two that brings the largest between ½ and 1, so that none overflows."""
    fraction, own = np.frexp(v)
    total = own + exponents
    total = total - np.max(total, where=v != 0, initial=-(2**20))
    scaled: Array = np.ldexp(fraction, total.astype(np.int32))
    return scaled


def vector(values: Any, name: str, length: int, each: str = "rows") -> Array:
    """Return `values` as a contiguous float64 vector of this length, or raise an InputError that mentions `name`."""
    if type(values) is np.ndarray and values.dtype == np.float64 and values.shape == (length,):
        return values if values.flags.c_contiguous else np.ascontiguousarray(values)
    array = _numbers(values, name)
    if array.shape != (length,):
        raise InputError(
            f"{name} must hold one number for each of the {length} {each}, in an array of shape ({length},); "
            f"its shape is {array.shape}"
        )
    floats = np.ascontiguousarray(array, dtype=np.float64)
    if array.dtype.kind in "iu" and length and np.max(np.abs(floats)) >= MAX_EXACT_INTEGER:
        for i, (value, near) in enumerate(zip(array.tolist(), floats.tolist(), strict=True)):
            if value != near:
                raise InputError(f"{name}[{i}] is {value}, an integer that float64 cannot hold; pass a float")
    return floats


def columns_of(values: Any, name: str, length: int, each: str = "rows") -> Array:
    """Return `values` as such a vector, or as a block of vectors: a float64 matrix with one in each column."""
    if np.ndim(values) != 2:
        return vector(values, name, length, each)
    array = _numbers(values, name)
    if array.shape[0] != length or not array.shape[1]:
        raise InputError(f"{name} must be vectors over the {length} {each}, one in each column; its shape is {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def vectors(values: Any, name: str, length: int, each: str = "rows") -> Array:
    """Return `values` as a stack of such vectors, one in each row."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and values.shape == (len(values), length) and len(values):
        return np.ascontiguousarray(values)
    stack = [vector(row, name, length, each) for row in values]
    if not stack:
        raise InputError(f"{name} is empty; pass one vector or more")
    return np.array(stack)


def zeros_and_ones(values: Any, name: str, length: int) -> Array:
    """Return `values` as int8, each 0 or 1, or raise an InputError that mentions `name`."""
    if isinstance(values, np.ndarray) and values.dtype == np.int8 and values.flags.c_contiguous and values.flags.owndata:
        array = values
    else:
        try:
            array = _numbers(values, name)
        except InputError:
            array = np.full(np.shape(values), np.nan)
    if array.shape != (length,) or ((array != 0) & (array != 1)).any():
        raise InputError(
            f"{name} must hold 0 or 1 for each of the {length} rows (y < 0, say), in an array of shape ({length},); "
            f"its shape is {array.shape}, its values are {str(np.unique(np.asarray(values)))[:60]}"
        )
    return np.ascontiguousarray(array, dtype=np.int8)


class Misaligned(NamedTuple):
    """The message about different indexes of two objects, and whether one is a permutation of the other."""

    message: str
    reordered: bool


def misaligned(**given: Any) -> Misaligned | None:
    """Return how the indexes of the pandas objects among `given` differ, or None if they agree.

    Rows are paired by position, as in NumPy; if indexes label them, they must label the same row. An object without an index
    pairs with anything, and different lengths are not reported here.
    """
    indexes = {name: index for name, values in given.items() if (index := _index(values)) is not None}
    for name, index in [*indexes.items()][1:]:
        first, of_first = next(iter(indexes.items()))
        if len(index) != len(of_first) or _equal(index, of_first):
            continue
        row = next((i for i, (a, b) in enumerate(zip(of_first, index, strict=True)) if not _same_label(a, b)), None)
        if row is None:
            continue
        unique = index.is_unique and of_first.is_unique
        common = np.count_nonzero(_among(of_first, index))
        by_position = f"if the rows are in the same order, pass {name}.to_numpy()"
        if unique and common == len(index):
            fix = f"align them with {name} = {name}.loc[{first}.index]; {by_position}"
        elif unique and common:
            kept = f"{first}, {name} = {first}.loc[common], {name}.loc[common]"
            fix = f"keep the {common} rows that both have with common = {first}.index.intersection({name}.index); {kept}"
            fix = f"{fix}. Or {by_position}"
        else:
            fix = by_position
        message = f"the indexes of {first} and {name} differ: {first}.index[{row}] is {of_first[row]!r}, {name}.index[{row}] is "
        reordered = common == len(index) and bool(_among(index, of_first).all())
        return Misaligned(f"{message}{index[row]!r}; {fix}", reordered)
    return None


def require_aligned(**given: Any) -> None:
    """Raise an InputError if pandas objects have different indexes (see `misaligned`)."""
    found = misaligned(**given)
    if found is not None:
        raise InputError(found.message)


def _index(values: Any) -> Any:
    """Return the pandas index of a data frame, a series or the like, else None, without importing pandas."""
    kind = getattr(sys.modules.get("pandas"), "Index", None)
    index = None if kind is None else getattr(values, "index", None)
    return index if kind is not None and isinstance(index, kind) else None


def _among(index: Any, others: Any) -> Array:
    """Return which labels of an index are in another one; none if their levels are incompatible."""
    try:
        return np.asarray(index.isin(others))
    except (TypeError, ValueError, AssertionError):
        return np.zeros(len(index), dtype=bool)


def _equal(a: Any, b: Any) -> bool:
    """Return whether two pandas indexes are equal, whatever their types; `equals` alone distinguishes int64 and Int64."""
    kind = sys.modules["pandas"].Index
    return bool(a.equals(b) or kind(np.asarray(a)).equals(kind(np.asarray(b))))


def _same_label(a: Any, b: Any) -> bool:
    try:
        return bool(a is b or a == b)
    except (TypeError, ValueError):  # pd.NA, which equals nothing, or an unusual object
        return False


def is_arrow(values: Any) -> bool:
    """Return whether it is an array or a table of pyarrow."""
    return hasattr(values, "to_pylist")


def column_values(values: Any) -> Any:
    """Return a column of pandas or polars as an array of NumPy, and anything else as it is.

    An array of pyarrow is converted by `np.asarray`: its own method refuses text and missing values.
    """
    return values.to_numpy() if hasattr(values, "to_numpy") and not is_arrow(values) else values


def is_sparse(X: Any) -> bool:
    """Return whether X is a SciPy sparse matrix or array, without importing SciPy."""
    issparse = getattr(sys.modules.get("scipy.sparse"), "issparse", None)
    return issparse is not None and bool(issparse(X))


def as_dense(X: Any) -> Any:
    """Return X, which may be a SciPy sparse matrix or array, as a dense array."""
    return X.toarray() if is_sparse(X) else X


def read_only(x: Any) -> Any:
    """Return a read-only view of x; a tensor is returned as it is."""
    if isinstance(x, np.ndarray):
        x = np.asarray(x).view()  # without the class of a memory map
        x.flags.writeable = False
    return x


def is_number(value: Any) -> bool:
    """Return whether the value is a real number, not a bool, that does not overflow as a float."""
    real = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    return real and not (isinstance(value, int) and abs(value) >= BEYOND_FLOATS)


def positive(value: Any, name: str) -> float:
    """Return the value as a positive float, or raise an InputError."""
    if not (is_number(value) and value > 0):
        raise InputError(f"{name} is {value!r:.60}; pass a positive number")
    return float(value)


def whole_number(value: Any, name: str) -> int:
    """Return the value as an int of at least 1, or raise an InputError."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral) or value < 1:
        raise InputError(f"{name} is {value!r:.60}; pass a whole number, at least 1")
    return int(value)


def choose(name: str, value: Any, allowed: Iterable[Any]) -> None:
    """Raise an InputError if a value is not among those allowed."""
    if not any(isinstance(value, type(item)) and value == item for item in allowed):
        raise InputError(f"{name} is {value!r}; {one_of(value, allowed)}")


def whole_number_or_none(value: Any, name: str) -> int | None:
    """Return the value as an int of at least 1 or None, or raise an InputError."""
    return None if value is None else whole_number(value, name)


def seconds_at_most(time_limit: Any) -> float:
    """Return a time limit as a positive float, infinite for None, or raise an InputError."""
    if time_limit is not None and not (is_number(time_limit) and time_limit > 0):
        raise InputError(f"time_limit is {time_limit!r}; pass a positive number of seconds, or None")
    return math.inf if time_limit is None else float(time_limit)


def check_callback(callback: Any, of: str) -> Callable[[Any], bool] | None:
    """Return the callback as a function that returns whether to stop, or None.

    Raise an InputError if it is not callable, or later if its answer has no truth value. `of` is what it is called with.
    """
    if callback is None:
        return None
    if not callable(callback):
        raise InputError(f"callback is {callback!r:.60}; pass a function that takes one {of}, or None")

    def answered(moment: Any) -> bool:
        answer = callback(moment)
        try:
            return bool(answer)
        except Exception:  # an array of several values, or a data frame
            kind = type(answer).__name__
            raise InputError(f"callback returned an object of type {kind}; return True to stop, False or None to go on") from None

    return answered


def exponent(norm: Any, least: int = 2) -> float:
    """Return the p of a norm of feature space, least ≤ p ≤ ∞, or raise an InputError."""
    if not (is_number(norm) and norm >= least):
        raise InputError(f"norm is {norm!r}; pass a number p with {least} <= p <= inf, such as 2, 3.0 or float('inf')")
    return float(norm)


def seed(random_state: Any) -> int:
    """Return a seed from a caller's `random_state`: an integer, taken modulo 2³¹, or None for the default."""
    if random_state is None:
        return 1
    if isinstance(random_state, (bool, np.bool_)) or not isinstance(random_state, numbers.Integral):
        raise InputError(f"random_state is {random_state!r}; pass a whole number, or None")
    return int(random_state) % 2**31


def plain(value: Any) -> Any:
    """Return the value for JSON: arrays as lists, and None for infinity and NaN, which JSON does not have."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _numbers(values: Any, name: str) -> Array:
    if np.ma.is_masked(values):
        raise InputError(f"{name} has masked entries; fill or drop them first")
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "bifuO":
            raise TypeError(f"its type is {array.dtype}")
        return array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must hold real numbers: {error}") from None
