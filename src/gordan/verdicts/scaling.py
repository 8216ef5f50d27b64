"""Columns of X that make answers doubtful: badly scaled ones, where answers depend on their units, and nearly dependent ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gordan.arrays import Array, as_dense

# The ratio of the scales of two columns from which the advice is given. A loss depends on scales only through its penalty: there
# the columns of small scale must also contribute less than the least share to the variation of the scores.
MAX_RATIO, MIN_SHARE = 1e3, 0.01
# The share of columns whose scale is ignored if it is small: of many columns in the same units some are nearly always 0.
IGNORED_SHARE = 0.1
# The sample that scales are estimated from: rows at most, and entries at most.
SAMPLE_ROWS, SAMPLE_ENTRIES = 512, 1 << 20
# How far from 0 a column is, in units of its spread, from which the advice is given to subtract its mean; outliers do not count.
MIN_OFFSET_TO_ADVISE, QUANTILES = 1e3, (0.1, 0.5, 0.9)
# Columns are nearly dependent if no more than this share of one is left by the others: the equations that fits solve have the
# square of it, and lose most digits. What varies by less than the second share is rounding. Candidates are found in a sample of
# rows, unless there are too many columns.
NEARLY_DEPENDENT, ROUNDING_SHARE = 1e-6, 1e-12
DEPENDENCE_ROWS, DEPENDENCE_COLUMNS = 2048, 300


def scale_hint(storage: Any, planes: Array | None) -> str:
    """Return the advice to scale the columns of X if their scales differ by more than MAX_RATIO, otherwise an empty text.

    If `planes` of least loss are given (their last axis is that of the columns), the columns of small scale must also contribute
    next to nothing to the scores of each. The scale of a column is its standard deviation in a sample of rows; for sparse X the
    root mean square of its nonzero entries. Data that is not in memory is not looked at.
    """
    if not storage.in_memory or storage.n < 2:
        return ""
    with np.errstate(all="ignore"):
        scale = _scales(_sample(storage).plain())
        known = np.isfinite(scale) & (scale > 0)
        if not known.any():
            return ""
        ignored = int(IGNORED_SHARE * np.count_nonzero(known))
        largest, least = float(np.max(scale[known])), float(np.sort(scale[known])[ignored])
        if largest <= MAX_RATIO * least:
            return ""
        if planes is not None:
            effect = np.where(known, scale, 0.0) * np.abs(planes).reshape(-1, storage.d).max(axis=0)
            small = known & (scale < largest / MAX_RATIO) & (scale < math.sqrt(MAX_RATIO) * least)
            if not np.linalg.norm(effect[small]) < MIN_SHARE * np.linalg.norm(effect):
                return ""
        return (
            f"columns differ in size by a factor of {largest / least:.1g}, on which this answer depends: scale them first "
            "(in Python make_pipeline(StandardScaler(), ...), in the shell --standardize)"
        )


def far_column(storage: Any, origin: Array | None) -> str:
    """Return the name or the number of the column that is farthest from 0 for its spread; empty if it is not far.

    Columns that the `origin` moves to 0 are not looked at, nor those with entries that are not stored.
    """
    if not storage.in_memory or storage.n < 2:
        return ""
    with np.errstate(all="ignore"):
        sample = _sample(storage).plain()
        low, middle, high = np.quantile(as_dense(sample), QUANTILES, axis=0)
        far = np.where(high > low, np.abs(middle) / (high - low), 0.0)
    far[np.isnan(far) | (False if origin is None else origin != 0)] = 0.0
    j = int(np.argmax(far))
    names = getattr(storage, "names", None)
    return "" if far[j] < MIN_OFFSET_TO_ADVISE else str(j) if names is None else repr(names[j])


def _sample(storage: Any) -> Any:
    """Return some rows, spread over all of them."""
    count = min(SAMPLE_ROWS, max(2, SAMPLE_ENTRIES // storage.d))
    return storage.take(np.unique(np.linspace(0, storage.n - 1, count, dtype=np.int64)))


def _scales(X: Any) -> Array:
    """Return the scale of each column of a dense or CSR matrix."""
    if not hasattr(X, "tocsc"):
        return np.asarray(np.std(X, axis=0))
    squares, counts = np.zeros(X.shape[1]), np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    np.add.at(squares, X.indices, X.data**2)
    return np.asarray(np.sqrt(squares / np.maximum(counts, 1)))


def nearly_dependent(X: Any, columns: Sequence[int], centred: bool) -> list[tuple[int, list[int]]]:
    """Return columns that are combinations of others up to rounding, each with the others; nothing here is proved.

    Only the given `columns` of a dense matrix or a CSC matrix are examined, and they are `centred` if the model has a constant.
    Candidates come from a sample of rows, and are compared in all rows.
    """
    import scipy.linalg

    n = X.shape[0]
    if not 0 < len(columns) <= DEPENDENCE_COLUMNS:
        return []
    sample = np.unique(np.linspace(0, n - 1, min(n, DEPENDENCE_ROWS), dtype=np.int64))
    with np.errstate(all="ignore"):
        part = _scaled(_dense(X[sample], columns), centred)
        varied = np.flatnonzero(np.isfinite(part).all(axis=0) & part.any(axis=0))
        if not len(varied):
            return []
        # of columns that stand for each other, the later one is reported, whatever the rounding of their norms
        R = np.linalg.qr(part[:, varied] * np.linspace(1, 1 - NEARLY_DEPENDENT, len(varied)), mode="r")
        R, order = scipy.linalg.qr(R, mode="r", pivoting=True)[:2]
        rank = int(np.count_nonzero(np.abs(np.diag(R)) > NEARLY_DEPENDENT))
        factors = scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:]) if rank else np.zeros((0, len(varied)))
        found = []
        for j, own in zip(varied[order[rank:]], factors.T, strict=True):
            others = varied[order[:rank]][np.abs(own) > NEARLY_DEPENDENT]
            if _is_combination(X, columns[j], [columns[k] for k in others], centred):
                found.append((columns[j], sorted(columns[k] for k in others)))
    return sorted(found)


def _is_combination(X: Any, column: int, others: Sequence[int], centred: bool) -> bool:
    """Whether least squares over all rows leave next to nothing of a column."""
    part = _scaled(_dense(X, [column, *others]), centred)
    left = part[:, 0] - part[:, 1:] @ np.linalg.lstsq(part[:, 1:], part[:, 0])[0]
    return bool(np.linalg.norm(left) <= NEARLY_DEPENDENT * math.sqrt(len(others)))


def _dense(X: Any, columns: Sequence[int]) -> Array:
    """Return these columns as floats."""
    part = X[:, columns]
    return np.asarray(as_dense(part), dtype=np.float64)


def _scaled(part: Array, centred: bool) -> Array:
    """Return the columns with norm 1, without their means if they are to be centred; zeros in place of those that do not vary."""
    size = np.linalg.norm(part, axis=0)
    part = part - part.mean(axis=0) if centred else part
    scale = np.linalg.norm(part, axis=0)
    return np.asarray(np.where(scale > ROUNDING_SHARE * size, part / scale, 0.0))
