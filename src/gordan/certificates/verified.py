"""Rows that cancel with positive weights which are not written down: proved in floats, from approximate ones.

Let M be the chosen signed rows as columns (r × k: one row for each of r columns of [X, 1]), p > 0 floats, Q any k × r floats.
If ‖I - MQ‖_∞ ≤ δ < 1, ‖Mp‖_∞ ≤ ρ and (Σ_j|Q_ij|) ρ/(1-δ) < p_i for every i, then some x > 0 has Mx = 0, and M has rank r. For
MQ is invertible, so that x = p - Q(MQ)⁻¹Mp is defined; Mx = 0; and |x_i - p_i| ≤ (Σ_j|Q_ij|) ‖(MQ)⁻¹‖_∞ ‖Mp‖_∞ < p_i.

Columns that depend on others are left out of M. If each of them is, on the chosen rows, a combination of those that are in, x
cancels them as well: a witness. If that holds on other rows, too, then these lie in the space of dimension r in which the
chosen ones have rank r, so that these span them: Aw ≥ 0 only with A_iw = 0 there. If it holds on all rows, that is an
overlap. These combinations are integers that the certificate states, and they are checked exactly.

The product MQ is left to BLAS, the one place where a proof does: nobody can look at the floating-point mode of its threads. So
the bounds hold in every mode. (1) *Nothing is subnormal.* Rows and columns are scaled by powers of two; entries of M, Q and p
are 0 or between 2⁻⁴⁰⁰ and 2⁴⁰⁰, and so multiples of 2⁻⁴⁵². Their products and all sums of these, rounded or not, are
multiples of 2⁻⁹⁰⁴: they are 0 or far above 2⁻¹⁰²², and below 2¹⁰⁰⁰. Whether subnormal operands or results are flushed makes
no difference. (2) *Every rounding is counted with V = 2⁻⁵²*, twice what rounding to nearest does and as much as any other
direction. In whatever order k products are added up, with fused multiplication or without, a term is rounded k times at most
(once as a product and in k - 1 additions), and the sum is off by less than kV/(1-kV) Σ|a||b|. What this leaves out is a BLAS
that multiplies matrices by another algorithm than the definition (Strassen's), or in lower precision; the ones that NumPy is
built with do neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gordan.arrays import Array, is_sparse
from gordan.blas import scipy_linalg
from gordan.certificates import exact
from gordan.certificates.data import Relation
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept
from gordan.memory import fits

# What one operation can be off by, relatively, in any rounding mode.
V = 2.0**-52
# Sizes of the entries that are not 0.
LEAST, MOST = 2.0**-400, 2.0**400
# Copies of M that are in use at a time.
COPIES = 6
# Rows whose products are made at a time.
BLOCK_ROWS = 1 << 14


def signed_rows(problem: Problem, rows: Sequence[int], intercept: Intercept, signs: Array) -> Array:
    """The rows A_i = y_i (x_i, 1), or y_i x_i, spread out; exact, as the stored values are."""
    problem.X.have(rows)
    A = np.zeros((len(rows), intercept.columns(problem.X.d)))
    if intercept.exists:
        A[:, -1] = 1.0
    for place, i in enumerate(rows):
        columns, values = problem.X.row(i)
        A[place, columns] = values
    A *= signs[list(rows), None]
    return A


def deviation(
    problem: Problem,
    rows: Sequence[int],
    p: Array,
    dependent: Sequence[Relation],
    intercept: Intercept,
    signs: Array,
    spanned: Array | None,
    *,
    slack: float = 1.0,
) -> float:
    """How far from p, divided by its sum, positive weights are with which these rows cancel; infinite where that is not proved.

    The rows are proved to span those that are to be `spanned` (None: all) as well. With `slack` above 1 there is that much
    room left, for a checker that finds another Q or adds in another order. To be called in IEEE arithmetic.
    """
    k, columns = len(rows), intercept.columns(problem.X.d)
    kept = _independent(dependent, columns)
    if kept is None or k <= len(kept) or not fits(8.0 * COPIES * k * columns):
        return math.inf
    if not _hold(problem, dependent, intercept, spanned):
        return math.inf
    with np.errstate(all="ignore"):  # what is not finite proves nothing
        return cancelling(signed_rows(problem, rows, intercept, signs)[:, kept], p, slack)


def _independent(dependent: Sequence[Relation], columns: int) -> list[int] | None:
    """The columns that no relation is about; None where the relations do not express the others by these."""
    out = {relation[0][0] for relation in dependent if relation}
    for relation in dependent:
        used = [column for column, _ in relation]
        if (
            not relation
            or relation[0][1] == 0
            or len({*used}) != len(used)
            or not 0 <= min(used) <= max(used) < columns
            or out & {*used[1:]}
        ):
            return None
    return [j for j in range(columns) if j not in out] if len(out) == len(dependent) else None


def _hold(problem: Problem, dependent: Sequence[Relation], intercept: Intercept, among: Array | None) -> bool:
    """Whether the relations hold exactly on these rows, or on all."""
    for relation in dependent:
        v = [0] * intercept.columns(problem.X.d)
        for column, factor in relation:
            v[column] = factor
        w, b = intercept.plane_of(v)
        found = exact.score_signs(problem.X, w, b, problem.signs, among)
        if (found if among is None else found[among]).any():
            return False
    return True


def cancelling(S: Array, p: Array, slack: float = 1.0) -> float:
    """How far from p, divided by its sum, a positive x with Σ x_i S_i = 0 is, where the theorem proves that there is one.

    It is the theorem for the rows S_i·2^-e_i and weights p_i·2^e_i, of which each combination is one of the S_i.
    """
    k, r = S.shape
    if not (np.isfinite(p).all() and (p > 0).all()):
        return math.inf
    if not r:
        return 0.0
    scaled = _scaled(S, p)
    if scaled is None:
        return math.inf
    M, p, e = scaled
    found = _right_inverse(M, p)
    if found is None:
        return math.inf
    q, delta = found
    size, g = np.abs(M), 2 * V * (k + 4)
    rho = float(np.max(np.abs(M @ p) + g * _above(size @ p, k))) * (1 + 8 * V)
    if not slack * delta < 0.5:
        return math.inf
    radius = q * (rho / (1 - delta)) * (1 + 16 * V)  # four roundings; what underflows here is below 2⁻⁴⁰⁰ ≤ p_i in any case
    if not (slack * radius < p).all():
        return math.inf
    # back in the units of the rows as they are: for people, and rounded up generously
    back = np.min(e) - e
    return float(np.max(np.ldexp(radius, back)) / np.sum(np.ldexp(p, back))) * (1 + 2.0**-20)


def _right_inverse(M: Array, p: Array) -> tuple[Array, float] | None:
    """Bounds on Σ_j|Q_ij| and on ‖I - MQ‖_∞ for a Q that is 0 but for the columns of M that are heaviest with these weights."""
    r, k = M.shape
    try:
        basis = heaviest_basis(M * p)
        Q = np.linalg.inv(M[:, basis])
    except np.linalg.LinAlgError:
        return None
    # the rows of Q for the other columns of M are 0; nobody believes what is in it, and any Q will do
    Q[np.abs(Q) < LEAST] = 0.0
    if not np.max(np.abs(Q), initial=0.0) <= MOST:
        return None
    q = np.zeros(k)
    q[basis] = _above(np.abs(Q).sum(axis=1), r)
    left = M[:, basis] @ Q
    left.flat[:: r + 1] -= 1.0
    # g ≥ kV/(1-kV), for k below 2⁴⁰, and by a factor of nearly 2, which is more than the product with it is rounded by
    g = 2 * V * (k + 4)
    delta = float(np.max(_above(np.abs(left).sum(axis=1), r) + g * _above(np.abs(M) @ q, k))) * (1 + 8 * V)
    return (q, delta) if delta < math.inf else None


def independent(S: Array) -> bool:
    """Whether the columns of S are proved to be linearly independent: ‖I - MQ‖_∞ < 1 for M = Sᵀ, scaled, and some Q."""
    ones = np.ones(len(S))
    with np.errstate(all="ignore"):
        scaled = _scaled(S, ones) if len(S) >= S.shape[1] > 0 else None
        found = None if scaled is None else _right_inverse(*scaled[:2])
    return found is not None and found[1] < 0.5


def strictly_positive(S: Any, W: Array) -> Array:
    """Which columns w of W have S_i·w > 0 for every row of S, dense or CSR: proved in floats, in any mode, as above.

    Entries that are not 0 have to be between LEAST and MOST in size, or nothing is proved. A computed product is off by less
    than g Σ_j|S_ij||w_j| ≤ g (Σ_j|S_ij|) max_j|w_j|, where g is twice as large as need be and so covers its own roundings.
    """
    entries = np.abs(S.data if is_sparse(S) else S)
    if not (in_range(entries) and in_range(np.abs(W))):
        return np.zeros(W.shape[1], dtype=bool)
    k = S.shape[1]
    size, largest = np.asarray(abs(S).sum(axis=1)).ravel(), np.max(np.abs(W), axis=0, initial=0.0)
    positive = np.ones(W.shape[1], dtype=bool)
    for lo in range(0, S.shape[0], BLOCK_ROWS):
        part = slice(lo, lo + BLOCK_ROWS)
        positive &= (S[part] @ W > np.multiply.outer(_above(size[part], k) * (2 * V * (k + 4)), largest)).all(axis=0)
    return positive


def in_range(sizes: Array) -> bool:
    """Whether entries of these sizes are 0 or such that nothing made of them is subnormal."""
    return bool(((sizes == 0) | ((sizes >= LEAST) & (sizes <= MOST))).all())


def _above(sums: Array, terms: int) -> Array:
    """A bound on exact sums of so many terms that are not negative, from computed ones; three more roundings a term are
    covered.

    With at most m + 3 roundings a computed sum is at least the exact one times 1 - 1.001(m + 3)V; the factor is at least
    1 + 1.99(m + 4)V as rounded, and the product with it is rounded once.
    """
    return np.asarray(sums * (1 + 2 * V * (terms + 4)))


def _scaled(S: Array, p: Array) -> tuple[Array, Array, Array] | None:
    """M, the weights that go with it and e: M_ji = S_ij 2^(-e_i - f_j), p_i 2^e_i; None where a factor is not exact.

    The rows are brought to a size of about 1, then the rows of M so that max_i |M_ji| p_i is. No power of two rounds anything
    whose result is between LEAST and MOST.
    """
    top = np.max(np.abs(S), axis=1)
    if not np.isfinite(top).all():
        return None
    e = np.where(top > 0, np.frexp(top)[1], 0)
    # that the largest weight is about 1 is a factor of all rows
    e = e - int(np.max(np.frexp(p)[1] + e))
    weights = np.ldexp(p, e)
    if not (weights >= LEAST).all():
        return None
    used = S != 0
    largest = np.max(np.ldexp(np.abs(S), -e[:, None]) * weights[:, None], axis=0)
    if not np.isfinite(largest).all():
        return None
    f = np.frexp(largest)[1]
    M = np.ldexp(S, -e[:, None] - f[None, :])
    size = np.abs(M)
    if not ((size <= MOST) & (~used | (size >= LEAST))).all() or not used.any(axis=0).all():
        return None
    return np.ascontiguousarray(M.T), weights, e


def heaviest_basis(N: Array) -> Array:
    """As many columns of N as it has rows, independent and the largest ones possible: the pivots of Gaussian elimination."""
    _, swaps, info = scipy_linalg().lapack.dgetrf(N.T)
    if info:
        raise np.linalg.LinAlgError("the rows of N depend on each other")
    order = np.arange(N.shape[1])
    for i, j in enumerate(swaps[: len(N)].tolist()):
        order[i], order[j] = order[j], order[i]
    return order[: len(N)]
