"""Columns of very different size: whether they decide an answer that depends on units, as margins and penalties do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gordan.arrays import Array

# Sizes of columns further apart than this are told. A loss depends on them only by its penalty: there they are told where the
# smallest of the columns that are so much smaller than the largest one make up less than this share of what the scores vary by.
APART, HARDLY = 1e3, 0.01
# The share of columns that may be as small as they like: of many in the same units some hardly ever differ from 0.
FEW = 0.1
# Rows that are looked at, and entries of these.
ROWS, ENTRIES = 512, 1 << 20


def scale_hint(storage: Any, planes: Array | None) -> str:
    """What to say where columns differ in size by more than APART, and (if planes of least loss are given, the last axis being
    that of the columns) the small ones hardly count in any of them; else nothing.

    The size of a column is the standard deviation in some rows, of sparse rows the root mean square of its nonzero entries. Rows
    that are not in memory are not looked at.
    """
    if not storage.in_memory or storage.n < 2:
        return ""
    rows = np.unique(np.linspace(0, storage.n - 1, min(ROWS, max(2, ENTRIES // storage.d)), dtype=np.int64))
    with np.errstate(all="ignore"):
        size = _sizes(storage.take(rows).plain())
        known = np.isfinite(size) & (size > 0)
        if not known.any():
            return ""
        largest, least = float(np.max(size[known])), float(np.sort(size[known])[int(FEW * np.count_nonzero(known))])
        if largest <= APART * least:
            return ""
        if planes is not None:
            counts = np.where(known, size, 0.0) * np.abs(planes).reshape(-1, storage.d).max(axis=0)
            small = known & (size < largest / APART) & (size < math.sqrt(APART) * least)
            if not np.linalg.norm(counts[small]) < HARDLY * np.linalg.norm(counts):
                return ""
        return (
            f"columns differ in size by a factor of {largest / least:.1g}, on which this answer depends: scale them first "
            "(in Python make_pipeline(StandardScaler(), ...), in the shell --standardize)"
        )


def _sizes(X: Any) -> Array:
    if not hasattr(X, "tocsc"):
        return np.asarray(np.std(X, axis=0))
    squares, counts = np.zeros(X.shape[1]), np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    np.add.at(squares, X.indices, X.data**2)
    return np.asarray(np.sqrt(squares / np.maximum(counts, 1)))
