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
from gordan.certificates.data import Certificate, Relation
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept
from gordan.memory import fits

# What one operation can be off by, relatively, in any rounding mode.
V = 2.0**-52
# Sizes of the entries that are not 0.
LEAST_SIZE, MOST_SIZE = 2.0**-400, 2.0**400
# Copies of M that are in use at a time.
COPIES = 6
# Rows whose products are made at a time.
BLOCK_ROWS = 1 << 14


def signed_rows(problem: Problem, rows: Sequence[int], intercept: Intercept, signs: Array) -> Array:
    """The rows A_i = y_i (x_i, 1), or y_i x_i, spread out; exact, as the stored values are."""
    A = np.ones((len(rows), intercept.columns(problem.X.d)))
    held = problem.storage.take(np.array(rows, int)).plain()
    A[:, : problem.X.d] = held.toarray() if is_sparse(held) else held
    A *= signs[list(rows), None]
    return A


def deviation(c: Certificate, problem: Problem, spanned: Array | None, slack: float = 1.0) -> float:
    """How far positive weights with which its rows cancel are from those of a certificate, divided by their sum; infinite where
    that is not proved.

    The rows are proved to span those that are to be `spanned` (None: all) as well. With `slack` above 1 there is that much
    room left, for a checker that finds another Q or adds in another order. To be called in IEEE arithmetic.
    """
    k, intercept = len(c.rows), Intercept(c.intercept)
    columns = intercept.columns(problem.X.d)
    kept = _independent(c.dependent, columns)
    if kept is None or k <= len(kept) or not fits(8.0 * COPIES * k * columns):
        return math.inf
    if not _hold(problem, c.dependent, intercept, spanned):
        return math.inf
    with np.errstate(all="ignore"):  # what is not finite proves nothing
        A = signed_rows(problem, c.rows, intercept, problem.signs_for(c.classes))
        return cancelling(A[:, kept], np.array(c.weights, dtype=np.float64), slack)


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


def relations_hold(problem: Problem, dependent: Sequence[Relation], intercept: Intercept) -> bool:
    """Whether the relations are as they should be, and hold exactly on all rows, whatever the labels are."""
    independent = _independent(dependent, intercept.columns(problem.X.d)) is not None
    return independent and _hold(problem, dependent, intercept, None)


def _hold(problem: Problem, dependent: Sequence[Relation], intercept: Intercept, among: Array | None) -> bool:
    """Whether the relations hold exactly on these rows, or on all."""
    for relation in dependent:
        v = [0] * intercept.columns(problem.X.d)
        for column, factor in relation:
            v[column] = factor
        w, b = intercept.plane_of(v)
        found = exact.score_signs(problem.X, w, b, np.ones(problem.X.n, np.int8), among)  # labels have no part in it
        if (found if among is None else found[among]).any():
            return False
    return True


def cancelling(S: Array, p: Array, slack: float = 1.0) -> float:
    """How far from p, divided by its sum, a positive x with Σ x_i S_i = 0 is, where the theorem proves that there is one.

    It is the theorem for the rows S_i·2^-e_i and weights p_i·2^e_i, of which each combination is one of the S_i.
    """
    r = S.shape[1]
    if not (np.isfinite(p).all() and (p > 0).all()):
        return math.inf
    if not r:
        return 0.0
    scaled = _scaled(S, p)
    if scaled is None:
        return math.inf
    M, p, e = scaled
    return float(_deviations(M, np.ones((1, len(p))), p[None], e, slack)[0])


def each_cancelling(S: Array, signs: Array, p: Array, slack: float = 1.0) -> Array:
    """The same for many signs of the same rows: how far from p_j ≥ 0 weights x_j ≥ 0 are with Σ_i x_ji signs_ji S_i = 0.

    S is n × r; signs and p are m × n, and x_ji > 0 just where p_ji > 0. Infinite where that is not proved. Rows and columns are
    scaled as for p = 1, so that signs are all in which the M differ.
    """
    found = np.full(len(p), math.inf)
    scaled = _scaled(S, np.ones(len(S)))
    if scaled is None or not 0 < S.shape[1] < len(S):
        return found
    M, _, e = scaled
    with np.errstate(all="ignore"):  # what is not finite proves nothing
        weights = np.ldexp(p, e)
        weights = np.ldexp(weights, -np.frexp(np.max(weights, axis=1))[1][:, None])
        used = p > 0
        fine = (weights >= LEAST_SIZE) & (weights < math.inf) & (np.abs(signs) == 1)
        able = np.flatnonzero((fine | (p == 0)).all(axis=1) & used.any(axis=1))
        found[able] = _deviations(M, signs[able], np.where(used[able], weights[able], 0.0), e, slack)
    return found


@np.errstate(all="ignore")  # what is not finite proves nothing
def _deviations(M: Array, signs: Array, p: Array, e: Array, slack: float) -> Array:
    """The theorem for the r × k matrices M_j whose columns are those of M times signs_j, and weights p_j ≥ 0; m of each.

    A row with p_ji = 0 has no part in it: neither Q nor p has anything but 0 there.
    """
    k, size = p.shape[1], np.abs(M)
    q, delta = _right_inverses(M, signs, p)
    g = 2 * V * (k + 4)
    rho = np.max(np.abs((signs * p) @ M.T) + g * _above(p @ size.T, k), axis=1) * (1 + 8 * V)
    # four roundings; what underflows here is below 2⁻⁴⁰⁰ ≤ p_i in any case
    radius = q * (rho / (1 - delta))[:, None] * (1 + 16 * V)
    able = (slack * delta < 0.5) & ((slack * radius < p) | (p == 0)).all(axis=1)
    # back in the units of the rows as they are: for people, and rounded up generously
    back = np.min(e) - e
    within = np.max(np.ldexp(radius, back), axis=1) / np.sum(np.ldexp(p, back), axis=1) * (1 + 2.0**-20)
    return np.where(able, within, math.inf)


def _right_inverses(M: Array, signs: Array, p: Array) -> tuple[Array, Array]:
    """Bounds on Σ_j|Q_ij|, m × k, and on ‖I - MQ‖_∞, infinite where there is none, for a Q for each of these matrices that is 0
    but for the columns that are heaviest with its weights."""
    (m, k), r = p.shape, len(M)
    q, delta, open_, bases, inverses = np.zeros(p.shape), np.full(m, math.inf), list[int](), list[Array](), list[Array]()
    N = np.empty_like(M)
    for j in range(m if r <= k else 0):
        try:
            chosen, inverse = _factorized(np.multiply(M, signs[j] * p[j], out=N), invert=True)
        except np.linalg.LinAlgError:
            continue
        open_.append(j)
        bases.append(chosen)
        inverses.append(inverse * p[j][chosen, None])
    if not open_:
        return q, delta
    basis, Q = np.array(bases), np.array(inverses)
    # the rows of Q for the other columns of M are 0; nobody believes what is in it, and any Q will do
    Q[np.abs(Q) < LEAST_SIZE] = 0.0
    able = np.max(np.abs(Q), axis=(1, 2)) <= MOST_SIZE
    Q[~able] = 0.0
    sums = np.zeros((len(open_), k))
    np.put_along_axis(sums, basis, _above(np.abs(Q).sum(axis=2), r), axis=1)
    left = np.array([M[:, chosen] for chosen in bases])
    left *= np.take_along_axis(signs[open_], basis, axis=1)[:, None, :]  # exact
    left = left @ Q
    left.reshape(len(open_), -1)[:, :: r + 1] -= 1.0  # the diagonals
    # g ≥ kV/(1-kV), for k below 2⁴⁰, and by a factor of nearly 2, which is more than the product with it is rounded by
    g = 2 * V * (k + 4)
    most = np.max(_above(np.abs(left).sum(axis=2), r) + g * _above(sums @ np.abs(M).T, k), axis=1) * (1 + 8 * V)
    q[open_], delta[open_] = sums, np.where(able & (most < math.inf), most, math.inf)
    return q, delta


def independent(S: Array) -> bool:
    """Whether the columns of S are proved to be linearly independent: ‖I - MQ‖_∞ < 1 for M = Sᵀ, scaled, and some Q."""
    with np.errstate(all="ignore"):
        scaled = _scaled(S, np.ones(len(S))) if len(S) >= S.shape[1] > 0 else None
        return scaled is not None and bool(_right_inverses(scaled[0], np.ones((1, len(S))), scaled[1][None])[1][0] < 0.5)


class Scores:
    """The products of rows S, dense or CSR, with vectors w: which of them are proved to be positive in floats, in any mode, as
    above.

    Entries that are not 0 have to be between LEAST_SIZE and MOST_SIZE (they are `in_range`), or nothing is proved. A computed
    product is off by less than g Σ_j|S_ij||w_j| ≤ g (Σ_j|S_ij|) max_j|w_j|, where g is twice as large as need be and so covers
    its own roundings.
    """

    def __init__(self, S: Any) -> None:
        sizes, k = abs(S), S.shape[1]
        self.S, self.in_range = S, in_range(sizes.data if is_sparse(S) else sizes)
        self.off = _above(np.asarray(sizes.sum(axis=1)).ravel(), k) * (2 * V * (k + 4))

    def positive(self, W: Array) -> Array:
        """Which columns w of W have S_i·w > 0 for every row of S."""
        sizes = np.abs(W)
        if not (self.in_range and in_range(sizes)):
            return np.zeros(W.shape[1], dtype=bool)
        positive, largest = np.ones(W.shape[1], dtype=bool), np.max(sizes, axis=0, initial=0.0)
        for lo in range(0, len(self.off), BLOCK_ROWS):
            part = slice(lo, lo + BLOCK_ROWS)
            positive &= (self.S[part] @ W > np.multiply.outer(self.off[part], largest)).all(axis=0)
        return positive


@np.errstate(all="ignore")  # what is not finite proves nothing
def nonnegative_combinations(S: Array, T: Array, P: Array) -> Array:
    """Which columns t of T are Σ x_i S_i for an x ≥ 0 near the column p of P: proved in floats, in any mode, as above.

    With ρ ≥ ‖Mp - t‖_∞ in the theorem, x = p - Q(MQ)⁻¹(Mp - t) has Mx = t. One Q serves all columns; where its row is 0, x_i
    is p_i. Entries that are not 0 have to be between LEAST_SIZE and MOST_SIZE in size, or nothing is proved.
    """
    k, r = S.shape
    if not (r <= k and P.shape[1] and all(in_range(np.abs(each)) for each in (S, T, P))):
        return np.zeros(P.shape[1], dtype=bool)
    M = np.ascontiguousarray(S.T)
    q, delta = _right_inverses(M, np.ones((1, k)), np.min(P / np.max(P, axis=0), axis=1)[None])
    rho = np.max(np.abs(M @ P - T) + 2 * V * (k + 4) * _above(np.abs(M) @ P, k), axis=0) * (1 + 8 * V)
    radius = np.multiply.outer(q[0], rho / (1 - delta[0])) * (1 + 16 * V)
    near = (radius < P) | ((q[0] == 0)[:, None] & (P == 0))
    return np.asarray(near.all(axis=0) & (delta[0] < 0.5))


def in_range(sizes: Array) -> bool:
    """Whether entries of these sizes are 0 or such that nothing made of them is subnormal."""
    if not sizes.size or np.min(sizes) >= LEAST_SIZE:
        return not sizes.size or bool(np.max(sizes) <= MOST_SIZE)
    return bool(np.max(sizes) <= MOST_SIZE and np.min(sizes, where=sizes > 0, initial=1.0) >= LEAST_SIZE)


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
    whose result is between LEAST_SIZE and MOST_SIZE.
    """
    top = np.max(np.abs(S), axis=1)
    if not np.isfinite(top).all():
        return None
    e = np.where(top > 0, np.frexp(top)[1], 0)
    # that the largest weight is about 1 is a factor of all rows
    e = e - int(np.max(np.frexp(p)[1] + e))
    weights = np.ldexp(p, e)
    if not (weights >= LEAST_SIZE).all():
        return None
    used = S != 0
    largest = np.max(np.ldexp(np.abs(S), -e[:, None]) * weights[:, None], axis=0)
    if not np.isfinite(largest).all():
        return None
    f = np.frexp(largest)[1]
    M = np.ldexp(S, -e[:, None] - f[None, :])
    size = np.abs(M)
    if not ((size <= MOST_SIZE) & (~used | (size >= LEAST_SIZE))).all() or not used.any(axis=0).all():
        return None
    return np.ascontiguousarray(M.T), weights, e


def heaviest_basis(N: Array) -> Array:
    """As many columns of N as it has rows, independent and the largest ones possible: the pivots of Gaussian elimination."""
    return _factorized(N)[0]


def _factorized(N: Array, *, invert: bool = False) -> tuple[Array, Array]:
    """The same columns; and, if asked for, what may be the inverse of N without the others, in place of what is in N."""
    lapack, r = scipy_linalg().lapack, len(N)
    triangles, swaps, info = lapack.dgetrf(N.T, overwrite_a=invert)
    if info:
        raise np.linalg.LinAlgError("the rows of N depend on each other")
    order = list(range(N.shape[1]))
    for i, j in enumerate(swaps[:r].tolist()):
        order[i], order[j] = order[j], order[i]
    inverse = N[:, :0]
    if invert:  # the rows have changed places already
        inverse, info = lapack.dgetri(triangles[:r], np.arange(r))
        if info:
            raise np.linalg.LinAlgError("the rows of N depend on each other")
    return np.array(order[:r]), inverse.T
