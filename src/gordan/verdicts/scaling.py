"""Badly scaled columns: whether an answer that depends on the units of X, as margins and penalties do, is decided by a few."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gordan.arrays import Array

# The ratio of the scales of two columns from which the advice is given. A loss depends on scales only through its penalty: there
# the columns of small scale must also contribute less than the least share to the variation of the scores.
LARGEST_RATIO, LEAST_SHARE = 1e3, 0.01
# The share of columns whose scale is ignored if it is small: of many columns in the same units some are nearly always 0.
IGNORED_SHARE = 0.1
# The sample that scales are estimated from: rows at most, and entries at most.
SAMPLE_ROWS, SAMPLE_ENTRIES = 512, 1 << 20


def scale_hint(storage: Any, planes: Array | None) -> str:
    """Return the advice to scale the columns of X if their scales differ by more than LARGEST_RATIO, otherwise an empty text.

    If `planes` of least loss are given (their last axis is that of the columns), the columns of small scale must also contribute
    next to nothing to the scores of each. The scale of a column is its standard deviation in a sample of rows; for sparse X the
    root mean square of its nonzero entries. Data that is not in memory is not looked at.
    """
    if not storage.in_memory or storage.n < 2:
        return ""
    rows = np.unique(np.linspace(0, storage.n - 1, min(SAMPLE_ROWS, max(2, SAMPLE_ENTRIES // storage.d)), dtype=np.int64))
    with np.errstate(all="ignore"):
        scale = _scales(storage.take(rows).plain())
        known = np.isfinite(scale) & (scale > 0)
        if not known.any():
            return ""
        ignored = int(IGNORED_SHARE * np.count_nonzero(known))
        largest, least = float(np.max(scale[known])), float(np.sort(scale[known])[ignored])
        if largest <= LARGEST_RATIO * least:
            return ""
        if planes is not None:
            effect = np.where(known, scale, 0.0) * np.abs(planes).reshape(-1, storage.d).max(axis=0)
            small = known & (scale < largest / LARGEST_RATIO) & (scale < math.sqrt(LARGEST_RATIO) * least)
            if not np.linalg.norm(effect[small]) < LEAST_SHARE * np.linalg.norm(effect):
                return ""
        return (
            f"columns differ in size by a factor of {largest / least:.1g}, on which this answer depends: scale them first "
            "(in Python make_pipeline(StandardScaler(), ...), in the shell --standardize)"
        )


def _scales(X: Any) -> Array:
    """Return the scale of each column of a dense or CSR matrix."""
    if not hasattr(X, "tocsc"):
        return np.asarray(np.std(X, axis=0))
    squares, counts = np.zeros(X.shape[1]), np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    np.add.at(squares, X.indices, X.data**2)
    return np.asarray(np.sqrt(squares / np.maximum(counts, 1)))
