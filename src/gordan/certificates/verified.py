"""Proofs in floats that rows cancel with positive weights, from approximations of these weights.

*Theorem.* Let M have the chosen signed rows as columns (r × k: one row for each of r columns of [X, 1]), and let p > 0 (length k)
and Q (k × r) be any floats. If ‖I - MQ‖_∞ ≤ δ < 1, ‖Mp‖_∞ ≤ ρ and (Σ_j|Q_ij|) ρ/(1-δ) < p_i for every i, then some x > 0 has
Mx = 0, and M has rank r. *Proof.* MQ is invertible, so that x = p - Q(MQ)⁻¹Mp is defined and Mx = 0; and
|x_i - p_i| ≤ (Σ_j|Q_ij|) ‖(MQ)⁻¹‖_∞ ‖Mp‖_∞ < p_i.

Columns that depend on others are left out of M. If each of them is a combination of the columns in M on the chosen rows, then x
cancels them as well, which makes a witness. If that holds on further rows, these lie in a space of dimension r in which the
chosen rows have rank r, so that the chosen rows span them, and Aw ≥ 0 implies A_iw = 0 there. If it holds on all rows, this
proves overlap. The certificate states these combinations in integers, and they are checked exactly. Columns in which all chosen
rows are 0 cancel with any x: a witness leaves them out without saying so.

The product MQ is computed by BLAS on the host, the only place where a proof relies on that. The floating-point mode of its
threads cannot be checked, so the bounds hold in every mode:

1. *Nothing is subnormal.* Rows and columns are scaled by powers of two, so that the entries of M, Q and p are 0 or between 2⁻⁴⁰⁰
   and 2⁴⁰⁰, and hence multiples of 2⁻⁴⁵². Their products and all sums of these, rounded or not, are multiples of 2⁻⁹⁰⁴: they are
   0 or far above 2⁻¹⁰²², and below 2¹⁰⁰⁰. Flushing subnormal operands or results to zero makes no difference.
2. *Every rounding is counted with V = 2⁻⁵²*, which is twice the relative error of rounding to nearest and that of any other
   direction. In whatever order k products are added up, with fused multiply-add or without, a term is rounded at most k times
   (once as a product and in k - 1 additions), and the sum is off by less than kV/(1-kV) Σ|a||b|.

This excludes a BLAS that multiplies matrices by another algorithm than the definition, such as Strassen's, or in lower
precision; the ones that NumPy is built with do neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gordan.arrays import Array, as_dense, is_sparse
from gordan.blas import scipy_linalg
from gordan.certificates import exact, standalone
from gordan.certificates.data import Certificate, Relation
from gordan.certificates.matrix import CLAIM
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept
from gordan.memory import fits

# The largest relative error of one operation in any rounding mode.
V = 2.0**-52
# The range of the sizes of nonzero entries.
MIN_SIZE, MAX_SIZE = 2.0**-400, 2.0**400
# How much less the last column counts than the first when a basis is chosen. A single matrix of at most this many entries is
# tried with the opposite preference, too.
PREFERENCE, FEW_ENTRIES = 2.0**-6, 1 << 12
# The number of copies of M that are in memory at a time.
COPIES = 6
# The largest number of entries of M for which the theorem is applied in integers if floats leave it open; this takes a second or
# two at most.
MAX_IN_INTEGERS = 1 << 16
# The number of rows whose products are computed at a time.
BLOCK_ROWS = 1 << 14


def signed_rows(problem: Problem, rows: Sequence[int], intercept: Intercept, signs: Array, columns: Array | None = None) -> Array:
    """Return the rows A_i = y_i (x_i, 1), or y_i x_i without intercept, as a dense array with exact values.

    If `columns` is given, only these columns are returned; they are sorted.
    """
    d = problem.X.d
    columns = np.arange(intercept.columns(d)) if columns is None else columns
    held, own = problem.storage.take(np.array(rows, int)).plain(), columns[columns < d]
    held = held if len(own) == d else held[:, own]
    A = np.ones((len(rows), len(columns)))
    A[:, : len(own)] = as_dense(held)
    A *= signs[list(rows), None]
    return A


def occupied_columns(problem: Problem, rows: Sequence[int], intercept: Intercept) -> Array:
    """Return the columns, that of the intercept included, in which one of these rows is not 0."""
    held = problem.storage.take(np.array(rows, int)).plain()
    own = np.flatnonzero(np.asarray((held != 0).sum(axis=0)).ravel())
    return np.append(own, problem.X.d) if intercept.exists else own


def deviation(c: Certificate, problem: Problem, spanned: Array | None, slack: float = 1.0) -> float:
    """Return a bound on the distance between a certificate's weights and exact positive weights with which its rows cancel.

    The distance is the largest difference of two weights, divided by the sum of the certificate's weights; it is infinite if
    such weights are not proved to exist. The certificate's rows are also proved to span the rows in `spanned` (None: all rows).
    A `slack` above 1 multiplies the bounds in the theorem, to leave room for a checker that finds another Q or adds in another
    order. To be called within `ieee_floats`.
    """
    A = _chosen_rows(c, problem, spanned)
    return math.inf if A is None else cancelling(A, np.array(c.weights, dtype=np.float64), slack)


def proved(c: Certificate, problem: Problem, spanned: Array | None) -> bool:
    """Return whether `deviation` is finite; where floats leave less room than a claim has, the theorem is applied in integers.

    The standalone checker does the same, and has another Q: unless there are too many entries, both decide alike. To be called
    within `ieee_floats`.
    """
    A, p = _chosen_rows(c, problem, spanned), np.array(c.weights, dtype=np.float64)
    if A is None or not np.isfinite(p).all():
        return False
    few = A.size <= MAX_IN_INTEGERS
    if cancelling(A, p, CLAIM if few else 1.0) < math.inf:
        return True
    rows = [[*map(Fraction, row)] for row in A.tolist()] if few else []
    return few and standalone.positive_solution(rows, [*map(Fraction, p.tolist())])


def _chosen_rows(c: Certificate, problem: Problem, spanned: Array | None) -> Array | None:
    """Return the rows of a certificate without its dependent columns: the matrix M of the theorem, transposed.

    None if the relations between columns do not hold on the rows in `spanned`, or there are too few rows for a proof.
    """
    k, intercept = len(c.rows), Intercept(c.intercept)
    columns = intercept.columns(problem.X.d)
    kept = _independent(c.dependent, columns)
    if kept is None or not (problem.storage.sparse or fits(8.0 * COPIES * k * columns)):
        return None
    if c.kind == "verified-witness":
        kept = np.intersect1d(kept, occupied_columns(problem, c.rows, intercept)).tolist()
    if k <= len(kept) or not fits(8.0 * COPIES * k * len(kept)) or not _hold(problem, c.dependent, intercept, spanned):
        return None
    return signed_rows(problem, c.rows, intercept, problem.signs_for(c.classes), np.array(kept, int))


def _independent(dependent: Sequence[Relation], columns: int) -> list[int] | None:
    """Return the columns that no relation expresses by others; None if the relations are malformed.

    Each relation must begin with a column of its own, with a factor other than 0, and express it by columns of the result.
    """
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
    """Return whether the relations are well-formed and hold exactly on all rows, whatever the labels are."""
    return _independent(dependent, intercept.columns(problem.X.d)) is not None and _hold(problem, dependent, intercept, None)


def _hold(problem: Problem, dependent: Sequence[Relation], intercept: Intercept, among: Array | None) -> bool:
    """Return whether the relations hold exactly on the rows in `among`, or on all rows if that is None."""
    for relation in dependent:
        v = [0] * intercept.columns(problem.X.d)
        for column, factor in relation:
            v[column] = factor
        w, b = intercept.plane_of(v)
        found = exact.score_signs(problem.X, w, b, np.ones(problem.X.n, np.int8), among)  # labels do not matter
        if (found if among is None else found[among]).any():
            return False
    return True


@np.errstate(all="ignore")  # comparisons with NaN are false, so what is not finite proves nothing
def cancelling(S: Array, p: Array, slack: float = 1.0) -> float:
    """Return a bound on max|x - p| / Σp for some positive x with Σ x_i S_i = 0; infinite if the theorem proves no such x.

    The theorem is applied to the rows S_i·2^-e_i and the weights p_i·2^e_i, whose combinations are the same.
    """
    if not (np.isfinite(p).all() and (p > 0).all()):
        return math.inf
    if not S.shape[1]:
        return 0.0
    scaled = _scaled(S, p)
    if scaled is None:
        return math.inf
    M, p, e = scaled
    signs = np.ones((1, len(p)))
    within = float(_deviations(M, signs, p[None], e, slack)[0])
    if within == math.inf and M.size <= FEW_ENTRIES:
        within = float(_deviations(M, signs, p[None], e, slack, -PREFERENCE)[0])
    return within


def each_cancelling(S: Array, signs: Array, p: Array, slack: float = 1.0) -> Array:
    """Return for each of m sign vectors of the same rows what `cancelling` does: bounds on max|x_j - p_j| / Σp_j.

    S is n × r; `signs` and `p` are m × n. Each x_j has Σ_i x_ji signs_ji S_i = 0, and x_ji > 0 exactly where p_ji > 0, else
    x_ji = 0. A bound is infinite if this is not proved. Rows and columns are scaled as for p = 1, so that the matrices M_j differ
    in signs only.
    """
    found = np.full(len(p), math.inf)
    scaled = _scaled(S, np.ones(len(S)))
    if scaled is None or not 0 < S.shape[1] < len(S):
        return found
    M, _, e = scaled
    with np.errstate(all="ignore"):
        weights = np.ldexp(p, e)
        weights = np.ldexp(weights, -np.frexp(np.max(weights, axis=1))[1][:, None])
        used = p > 0
        in_scale = (weights >= MIN_SIZE) & (weights < math.inf) & (np.abs(signs) == 1)
        usable = np.flatnonzero((in_scale | (p == 0)).all(axis=1) & used.any(axis=1))
        found[usable] = _deviations(M, signs[usable], np.where(used[usable], weights[usable], 0.0), e, slack)
    return found


@np.errstate(all="ignore")
def _deviations(M: Array, signs: Array, p: Array, e: Array, slack: float, preference: float = PREFERENCE) -> Array:
    """Apply the theorem to m matrices M_j, whose columns are those of M times signs_j, with weights p_j ≥ 0.

    Returns the bounds of `each_cancelling`, in the units of the rows before `_scaled` divided them by 2^e. The columns with
    p_ji = 0 take no part: both Q and p are 0 there.
    """
    k, size = p.shape[1], np.abs(M)
    q, delta = _right_inverses(M, signs, p, preference)
    g = 2 * V * (k + 4)
    rho = np.max(np.abs((signs * p) @ M.T) + g * _above(p @ size.T, k), axis=1) * (1 + 8 * V)
    # four roundings, covered by 16V; a result that underflows is below 2⁻⁴⁰⁰ ≤ p_i in any case
    radius = q * (rho / (1 - delta))[:, None] * (1 + 16 * V)
    proved = (slack * delta < 0.5) & ((slack * radius < p) | (p == 0)).all(axis=1)
    # in the units of the original rows, generously rounded up: this number is only shown to people
    back = np.min(e) - e
    within = np.max(np.ldexp(radius, back), axis=1) / np.sum(np.ldexp(p, back), axis=1) * (1 + 2.0**-20)
    return np.where(proved, within, math.inf)


def _right_inverses(M: Array, signs: Array, p: Array, preference: float = PREFERENCE) -> tuple[Array, Array]:
    """Return upper bounds on Σ_j|Q_ij| (m × k) and on ‖I - M_jQ_j‖_∞ for an approximate right inverse Q_j of each matrix.

    Q_j is 0 except in the r rows that belong to a basis of columns of M_j, those that are large when multiplied by their weights.
    The second bound is infinite if no such basis is found.

    Columns that cancel with these weights are equally large: the last row that is eliminated has two entries ±a for a minimal
    witness. The `preference` decides between them rather than rounding, in the standalone checker as well: what Q proves depends
    on the basis, and both checkers should find the same one.
    """
    (m, k), r = p.shape, len(M)
    preferred = p * (1 - preference * np.arange(k) / k)
    q, delta, solved, bases, inverses = np.zeros(p.shape), np.full(m, math.inf), list[int](), list[Array](), list[Array]()
    N = np.empty_like(M)
    for j in range(m if r <= k else 0):
        try:
            chosen, inverse = _factorized(np.multiply(M, signs[j] * preferred[j], out=N), invert=True)
        except np.linalg.LinAlgError:
            continue
        solved.append(j)
        bases.append(chosen)
        inverses.append(inverse * preferred[j][chosen, None])
    if not solved:
        return q, delta
    basis, Q = np.array(bases), np.array(inverses)
    # the rows of Q for the other columns of M are 0; the theorem holds for any Q, so these entries need not be trusted
    Q[np.abs(Q) < MIN_SIZE] = 0.0
    usable = np.max(np.abs(Q), axis=(1, 2)) <= MAX_SIZE
    Q[~usable] = 0.0
    sums = np.zeros((len(solved), k))
    np.put_along_axis(sums, basis, _above(np.abs(Q).sum(axis=2), r), axis=1)
    residual = np.array([M[:, chosen] for chosen in bases])
    residual *= np.take_along_axis(signs[solved], basis, axis=1)[:, None, :]  # exact
    residual = residual @ Q
    residual.reshape(len(solved), -1)[:, :: r + 1] -= 1.0  # the diagonals
    # g exceeds kV/(1-kV) for k < 2⁴⁰ by a factor of nearly 2, which covers the roundings of the products with it
    g = 2 * V * (k + 4)
    most = np.max(_above(np.abs(residual).sum(axis=2), r) + g * _above(sums @ np.abs(M).T, k), axis=1) * (1 + 8 * V)
    q[solved], delta[solved] = sums, np.where(usable & (most < math.inf), most, math.inf)
    return q, delta


def independent(S: Array) -> bool:
    """Return whether the columns of S are proved to be linearly independent: ‖I - MQ‖_∞ < 1/2 for M = Sᵀ, scaled, and some Q."""
    with np.errstate(all="ignore"):
        scaled = _scaled(S, np.ones(len(S))) if len(S) >= S.shape[1] > 0 else None
        return scaled is not None and bool(_right_inverses(scaled[0], np.ones((1, len(S))), scaled[1][None])[1][0] < 0.5)


class ScoreProver:
    """Products of rows S, dense or CSR, with vectors w, which can be proved to be positive in floats in any mode.

    Nonzero entries must be between MIN_SIZE and MAX_SIZE in size (`in_range`), or nothing is proved. A computed product is off
    by less than g Σ_j|S_ij||w_j| ≤ g (Σ_j|S_ij|) max_j|w_j|, where g is twice as large as necessary, which covers the roundings
    of this bound itself.
    """

    def __init__(self, S: Any) -> None:
        sizes, k = abs(S), S.shape[1]
        self.S, self.in_range = S, in_range(sizes.data if is_sparse(S) else sizes)
        self.off = _above(np.asarray(sizes.sum(axis=1)).ravel(), k) * (2 * V * (k + 4))

    def positive(self, W: Array) -> Array:
        """Return for each column w of W whether S_i·w > 0 is proved for every row of S."""
        sizes = np.abs(W)
        if not (self.in_range and in_range(sizes)):
            return np.zeros(W.shape[1], dtype=bool)
        positive, largest = np.ones(W.shape[1], dtype=bool), np.max(sizes, axis=0, initial=0.0)
        for lo in range(0, len(self.off), BLOCK_ROWS):
            part = slice(lo, lo + BLOCK_ROWS)
            positive &= (self.S[part] @ W > np.multiply.outer(self.off[part], largest)).all(axis=0)
        return positive


@np.errstate(all="ignore")
def nonnegative_combinations(S: Array, T: Array, P: Array) -> Array:
    """Return for each column t of T whether t = Σ x_i S_i is proved for some x ≥ 0 near the same column p of P.

    With M = Sᵀ and ρ ≥ ‖Mp - t‖_∞ in the theorem, x = p - Q(MQ)⁻¹(Mp - t) has Mx = t. One Q is used for all columns; where a row
    of it is 0, x_i = p_i. Nonzero entries must be between MIN_SIZE and MAX_SIZE in size, or nothing is proved.
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
    """Return whether all these sizes are 0 or between MIN_SIZE and MAX_SIZE, so that no product or sum is subnormal."""
    if not sizes.size or np.min(sizes) >= MIN_SIZE:
        return not sizes.size or bool(np.max(sizes) <= MAX_SIZE)
    return bool(np.max(sizes) <= MAX_SIZE and np.min(sizes, where=sizes > 0, initial=1.0) >= MIN_SIZE)


def _above(sums: Array, terms: int) -> Array:
    """Return upper bounds on exact sums of m = `terms` nonnegative terms from the computed sums.

    Each term may have gone through m + 3 roundings, three more than the sum needs. Then a computed sum is at least the exact
    one times 1 - 1.001(m + 3)V; the factor here is at least 1 + 1.99(m + 4)V as rounded, and the product is rounded once.
    """
    return np.asarray(sums * (1 + 2 * V * (terms + 4)))


def _scaled(S: Array, p: Array) -> tuple[Array, Array, Array] | None:
    """Return M with M_ji = S_ij 2^(-e_i - f_j), the weights p_i 2^e_i, and e; None if the scaling would not be exact.

    The rows of S are scaled to a size of about 1, then the rows of M so that max_i |M_ji| p_i is about 1. Scaling by a power of
    two is exact if the result is between MIN_SIZE and MAX_SIZE.
    """
    top = np.max(np.abs(S), axis=1)
    if not np.isfinite(top).all():
        return None
    e = np.where(top > 0, np.frexp(top)[1], 0)
    # one more factor for all rows makes the largest weight about 1
    e = e - int(np.max(np.frexp(p)[1] + e))
    weights = np.ldexp(p, e)
    if not (weights >= MIN_SIZE).all():
        return None
    used = S != 0
    largest = np.max(np.ldexp(np.abs(S), -e[:, None]) * weights[:, None], axis=0)
    if not np.isfinite(largest).all():
        return None
    f = np.frexp(largest)[1]
    M = np.ldexp(S, -e[:, None] - f[None, :])
    size = np.abs(M)
    if not ((size <= MAX_SIZE) & (~used | (size >= MIN_SIZE))).all() or not used.any(axis=0).all():
        return None
    return np.ascontiguousarray(M.T), weights, e


def heaviest_basis(N: Array) -> Array:
    """Return as many linearly independent columns of N as it has rows, preferring large ones: the pivots of elimination."""
    return _factorized(N)[0]


def _factorized(N: Array, *, invert: bool = False) -> tuple[Array, Array]:
    """Return the columns of `heaviest_basis` and, with `invert`, an approximate inverse of N restricted to them.

    With `invert` N is overwritten. Raises LinAlgError if the rows of N are linearly dependent in floats.
    """
    lapack, r = scipy_linalg().lapack, len(N)
    triangles, swaps, info = lapack.dgetrf(N.T, overwrite_a=invert)
    if info:
        raise np.linalg.LinAlgError("the rows of N depend on each other")
    order = list(range(N.shape[1]))
    for i, j in enumerate(swaps[:r].tolist()):
        order[i], order[j] = order[j], order[i]
    inverse = N[:, :0]
    if invert:  # with the identity as permutation, since `order` accounts for the row swaps
        inverse, info = lapack.dgetri(triangles[:r], np.arange(r))
        if info:
            raise np.linalg.LinAlgError("the rows of N depend on each other")
    return np.array(order[:r]), inverse.T
