"""An estimate of the leave-one-out error of a hard margin, computed from the fit itself by the span rule.

A plane that separates every row may depend on rows that it could not have predicted. Let α_i = p_i/γ², and let S_i be the
distance of support row i from the affine span of the others. The plane that is fitted without row i has that row on its wrong
side if and only if α_i S_i² ≥ 1, provided that the other support rows stay the same (Vapnik and Chapelle, Bounds on error
expectation for support vector machines, Neural Computation 12, 2000). S_i² is one over a diagonal entry of the inverse of the
Gram matrix of the support rows, bordered by their signs if b is free.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.blas import blas_threads, scipy_linalg
from gordan.intercepts import Intercept
from gordan.rows import Rows
from gordan.verdicts import MarginResult

# The most support rows for which the inverse is computed, which takes some 50 ms on one thread.
MAX_SUPPORT = 1000
# The relative width of the interval for γ from which p is too far from the optimum for an estimate.
TOO_WIDE_FOR_ESTIMATE = 1e-3
# A ridge on the diagonal, as a share of its mean, so that rows that depend on others have S close to 0.
RIDGE = 1e-10


@blas_threads(0)
def leave_one_out_errors(X: Any, positive: Array, result: MarginResult, intercept: Intercept) -> int:
    """Estimate how many rows a plane of largest margin misclassifies if it is fitted without them; 0 if there are too many."""
    lower, upper = result.margin
    support = np.empty(0, np.int64) if result.p is None else np.flatnonzero(result.p)
    if result.p is None or not 0 < lower <= upper < (1 + TOO_WIDE_FOR_ESTIMATE) * lower or not 1 < len(support) <= MAX_SUPPORT:
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
