"""How many rows a hard margin gets wrong when they are left out: an estimate from the fit itself, by the rule of the span.

A plane that separates every row may still rest on rows that it could not have predicted. With α_i = p_i/γ² and S_i the distance
of support row i from the span of the others, weights of total 1, the plane without row i has that row on its wrong side just if
α_i S_i² ≥ 1, provided that the other support rows stay the same (Vapnik and Chapelle, Bounds on error expectation for support
vector machines, Neural Computation 12, 2000). S_i² is one over a diagonal entry of the inverse of the support rows' Gram
matrix, bordered by their signs where b is free.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.blas import scipy_linalg
from gordan.intercepts import Intercept
from gordan.rows import Rows
from gordan.verdicts import MarginResult

# Support rows up to which the inverse is made: some 50 ms for as many.
MOST_SUPPORT = 1000
# Relative width of an interval for γ that leaves p too far from the optimum to tell.
WIDE = 1e-3
# What is added to the diagonal, as a share of its mean, so that rows that depend on the others have S = 0 nearly.
RIDGE = 1e-10


def left_out_wrong(X: Any, positive: Array, result: MarginResult, intercept: Intercept) -> int:
    """How many rows the plane of a hard margin without them has on the wrong side, by estimate; 0 where its support is large."""
    lower, upper = result.margin
    support = np.empty(0, np.int64) if result.p is None else np.flatnonzero(result.p)
    if result.p is None or not 0 < lower <= upper < (1 + WIDE) * lower or not 1 < len(support) <= MOST_SUPPORT:
        return 0
    signs = np.where(positive, 1, -1).astype(np.int8)
    rows = Rows(X, signs, constant=intercept.column).take(support)
    K = rows.gram(np.arange(rows.n))
    K[np.diag_indices(rows.n)] += RIDGE * np.trace(K) / rows.n
    lapack = scipy_linalg().lapack
    factor, info = lapack.dpotrf(K, lower=True)
    if info != 0 or not np.isfinite(factor).all():
        return 0
    inverse, _ = lapack.dpotri(factor, lower=True)
    diagonal = np.diagonal(inverse).copy()
    if intercept.grouped:
        y = signs[support].astype(np.float64)
        u, _ = lapack.dpotrs(factor, y, lower=True)
        diagonal -= u * u / float(y @ u)
    return int(np.count_nonzero(result.p[support] >= lower * upper * diagonal))
