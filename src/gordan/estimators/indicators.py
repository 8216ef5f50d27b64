"""Multilabel indicators as in scikit-learn: a table Y with a column of 0 and 1 for each label."""

from __future__ import annotations

from typing import Any

import numpy as np

from gordan.arrays import Array, column_values, is_sparse
from gordan.errors import InputError, input_errors
from gordan.rows import column_names


def read_indicators(Y: Any, n: int) -> tuple[Array, Array]:
    """Return a table of booleans that says which of n rows have which label, and the labels.

    The labels are the names of the columns, or their numbers if there are no distinct names. Y must contain only 0 and 1 (or
    booleans), and both in every column; otherwise an InputError names the entry or the column.
    """
    if np.ma.is_masked(Y):
        raise InputError("Y has masked entries; every row needs 0 or 1 in every column")
    table = Y.toarray() if is_sparse(Y) else column_values(Y)
    with input_errors("Y is not a table of labels", ValueError):
        array = np.asarray(table)
    if array.ndim != 2 or len(array) != n:
        raise InputError(f"X has {n} rows but Y has shape {array.shape}; pass a table with {n} rows and a column for each label")
    if not array.shape[1]:
        raise InputError("Y has no columns; pass a column of 0 and 1 for each label")
    wrong = ~_is_indicator(array)
    if wrong.any():
        i, j = (int(at) for at in np.argwhere(wrong)[0])
        raise InputError(f"Y[{i}, {j}] is {array[i, j]!r}; Y has a column of 0 and 1 (or booleans) for each label")
    names = column_names(Y, array.shape[1])
    distinct = names is not None and len({*names}) == len(names)
    labels = np.array(names) if distinct else np.arange(array.shape[1])
    positive = np.asfortranarray(array == 1)
    ones = positive.sum(axis=0)
    for j in np.flatnonzero((ones == 0) | (ones == n)).tolist():
        own = f" ({names[j]!r})" if names is not None else ""
        raise InputError(f"Y[:, {j}]{own} is {int(ones[j] > 0)} in every row; both 0 and 1 are needed: leave out that column")
    return positive, labels


def _is_indicator(array: Array) -> Array:
    """Return which entries are 0 or 1."""
    if array.dtype.kind in "biuf":
        return np.asarray((array == 0) | (array == 1))
    numbers = bool, int, float, np.bool_, np.number
    found = [isinstance(value, numbers) and bool(value in (0, 1)) for value in array.flat]
    return np.array(found, dtype=bool).reshape(array.shape)
