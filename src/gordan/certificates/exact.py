"""Exact arithmetic with the rows of A as integers: signs of scores, spans and null spaces.

A = diag(y) [X, 1], without the last column if there is no intercept. Every stored number is m·2^e with integers m and e, so
that each row is an integer row times a power of two, which changes neither signs of scores nor spans.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import mul
from typing import Any

import numpy as np

from gordan.arrays import Array, is_sparse
from gordan.certificates import bounds
from gordan.certificates.matrix import Matrix, Products
from gordan.certificates.problem import Problem
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept
from gordan.memory import fits

# Vectors that are independent modulo this prime are independent. The converse may fail: claims that need it are decided exactly.
PRIME = 2**61 - 1
# Up to this number of entries the pivots come from exact elimination instead of elimination modulo the prime.
FEW_ENTRIES_TO_ELIMINATE = 400
# Up to this number of products Python adds up integers; flint is faster with more.
FEW_PRODUCTS = 20_000
# Rows with up to this number of entries are converted to integers entry by entry.
SHORT_ROW_ENTRIES = 40
# The bytes that a short integer or fraction takes in a list and in a matrix of flint together.
NUMBER_BYTES = 100
# The largest number of rows, and of entries of these, whose signs are found together.
SIGN_ROWS, SIGN_ENTRIES = 4096, 1 << 20
# Float64 holds sums of multiples of 2^s exactly as long as they stay below 2^(s+53).
FLOAT_DIGITS = 53
# If an entry of w is smaller than this, relative to the largest one, signs are not computed in floats.
MIN_TRUSTED = 2.0**-500


def integer_entries(X: Matrix, rows: Any) -> Iterator[tuple[int, list[int], list[int], int]]:
    """Yield each of these rows as (row number, columns, integers m, e) with x_ij = m_j·2^e for its nonzero entries."""
    return ((i, columns.tolist(), *whole(values)) for i, columns, values in X.storage.each_row(rows))


def whole(values: Array) -> tuple[list[int], int]:
    """Return integers m and one e with values = m·2^e exactly, for finite floats."""
    if len(values) <= SHORT_ROW_ENTRIES or not values.all():
        ratios = [x.as_integer_ratio() for x in values.tolist()]
        common = max((q for _, q in ratios), default=1)  # denominators are powers of two
        return [m * (common // q) for m, q in ratios], 1 - common.bit_length()
    low = _lowest_bit_exponent(values)
    if int(np.frexp(values)[1].max()) - low <= 62:  # the integers fit in 64 bits, so that the conversion is exact
        return np.ldexp(values, -low).astype(np.int64).tolist(), low
    pairs = [bounds.dyadic(x) for x in values.tolist()]
    return [m << (e - low) if e >= low else m >> (low - e) for m, e in pairs], low


def scores(X: Matrix, rows: Array, w: Array, b: float, signs: Array) -> tuple[list[int], int]:
    """Return integers m and one e with y_i(x_i·w + b) = m_i·2^e exactly for these rows."""
    (v, low), constant = whole(w), bounds.dyadic(b)
    found = []
    for i, columns, entries, e in integer_entries(X, rows):
        m, e = bounds.add([(sum(map(mul, entries, map(v.__getitem__, columns))), e + low), constant])
        found.append((int(signs[i]) * m, e))
    return bounds.common_exponent(found)


def combination(X: Matrix, rows: Array, weights: Sequence[int], *, constant: int) -> dict[int, tuple[int, int]]:
    """Return Σ weight_i x_i over these rows exactly, as {column: (m, e)}, meaning m·2^e.

    If `constant` is not 0, a further column with this value in every row is included.
    """
    total: dict[int, tuple[int, int]] = {}
    for (_, columns, entries, e), weight in zip(integer_entries(X, rows), weights, strict=True):
        for column, entry in zip(columns, entries, strict=True):
            m, low = total.get(column, (0, e))
            term = weight * entry
            total[column] = (m + (term << (e - low)), low) if low <= e else ((m << (low - e)) + term, e)
    if constant:
        total[X.d] = constant * sum(weights), 0
    return total


def first_not_cancelling(p: Sequence[int], entries: Sequence[tuple[list[int], list[int], int]]) -> int | None:
    """Return the first column j with Σ_i p_i m_ij ≠ 0, or None if all sums are 0.

    `entries` has (columns, integers m, exponent) for each row; the exponents are ignored, since p takes account of them.
    """
    used = sorted({column for columns, _, _ in entries for column in columns})
    if sum(len(columns) for columns, _, _ in entries) <= FEW_PRODUCTS or not numbers_fit(len(p) * len(used)):
        sums: dict[int, int] = {}
        for weight, (columns, values, _) in zip(p, entries, strict=True):
            for column, m in zip(columns, values, strict=True):
                sums[column] = sums.get(column, 0) + weight * m
        return min((column for column, total in sums.items() if total != 0), default=None)
    place = {column: k for k, column in enumerate(used)}
    rows = []
    for columns, values, _ in entries:
        row = [0] * len(used)
        for column, m in zip(columns, values, strict=True):
            row[place[column]] = m
        rows.append(row)
    total = matrix([p], len(p)) * matrix(rows, len(used))
    return next((column for k, column in enumerate(used) if total[0, k] != 0), None)


def numbers_fit(count: float) -> bool:
    """Return whether this many exact numbers fit in memory; rows of integers are dense, so zeros count as well."""
    return fits(NUMBER_BYTES * count)


def _lowest_bit_exponent(values: Array) -> int:
    """Return the largest e for which all values, none of which is zero, are multiples of 2^e."""
    fraction, exponent = np.frexp(values)
    mantissas = np.ldexp(fraction, FLOAT_DIGITS).astype(np.int64)
    lowest_bits = mantissas & -mantissas
    return int((np.frexp(lowest_bits.astype(np.float64))[1] - 1 - FLOAT_DIGITS + exponent).min())


@ieee_floats()
def integer_rows(problem: Problem, rows: Iterable[int], intercept: Intercept) -> tuple[list[list[int]], list[int]]:
    """Return these rows of A as integers, each divided by a power of two 2^e of its own, and the exponents e."""
    k, found, exponents = intercept.columns(problem.X.d), [], []
    for i, columns, values, low in integer_entries(problem.X, [*rows]):
        row, shift, sign = [0] * k, 0, int(problem.signs[i])
        if intercept.exists:
            shift, low = max(0, low), min(0, low)
            row[k - 1] = sign << -low
        for j, m in zip(columns, values, strict=True):
            row[j] = (sign * m) << shift
        found.append(row)
        exponents.append(low)
    return found, exponents


def matrix(rows: Sequence[Sequence[int]], k: int) -> Any:
    """Return integer rows of length k as a matrix of flint."""
    from flint import fmpz_mat  # imported here and below since it takes 50 ms, and separators do not need it

    return fmpz_mat(len(rows), k, [x for row in rows for x in row])


def pivots(M: Any, *, exactly: bool = False) -> list[int]:
    """Return columns of M that are linearly independent, the first ones possible.

    They are as many as the rank of M, unless elimination modulo the prime (without `exactly`) loses some of it.
    """
    from flint import nmod_mat

    echelon, rank = M.rref()[::2] if exactly or M.nrows() * M.ncols() <= FEW_ENTRIES_TO_ELIMINATE else nmod_mat(M, PRIME).rref()
    found: list[int] = []
    for i in range(rank):
        j = found[-1] + 1 if found else 0
        while not int(echelon[i, j]):
            j += 1
        found.append(j)
    return found


def null_space(M: Any, columns: list[int]) -> Any:
    """Return a matrix of integers whose columns span {v : M v = 0}, for a matrix M of full row rank with these pivot columns."""
    from flint import fmpz_mat

    k = M.ncols()
    free = [j for j in range(k) if j not in set(columns)]
    if not columns:
        return fmpz_mat(k, k, [int(i == j) for i in range(k) for j in range(k)])
    part = fmpz_mat(len(columns), len(columns), [M[i, j] for i in range(len(columns)) for j in columns])
    rest = fmpz_mat(len(columns), len(free), [-M[i, j] for i in range(len(columns)) for j in free])
    solved = part.solve(rest)
    basis = fmpz_mat(k, len(free))
    for position, j in enumerate(free):
        numerators, basis[j, position] = integers([solved[i, position] for i in range(len(columns))])
        for column, value in zip(columns, numerators, strict=True):
            basis[column, position] = value
    return basis


@ieee_floats()
def spans(problem: Problem, support: Sequence[int], among: Array, intercept: Intercept) -> bool | None:
    """Return whether the rows of A in `support` span all rows in `among`; None if there is not enough memory to decide.

    Both answers are exact. The rows in `among` are spanned if and only if each vector that is orthogonal to a basis of the
    support is orthogonal to them as well. Elimination modulo the prime is tried first and repeated exactly if it failed.
    """
    k = intercept.columns(problem.X.d)
    if not numbers_fit(len(support) * k):
        return None
    M = matrix(integer_rows(problem, support, intercept)[0], k)
    for exactly in (False, True):
        basis = pivots(M.transpose(), exactly=exactly)
        if len(basis) == k:
            return True
        if not numbers_fit(k * (k - len(basis))):
            return None
        part = matrix([[int(M[i, j]) for j in range(k)] for i in basis], k)
        null = null_space(part, pivots(part, exactly=exactly))
        vectors = (intercept.plane_of([int(null[j, column]) for j in range(k)]) for column in range(null.ncols()))
        if all(not score_signs(problem.X, w, b, problem.signs, among)[among].any() for w, b in vectors):
            return True
        if not any((M * null).entries()):
            break  # the basis spans the support, so the answer is no; otherwise the prime has lost some of the rank
    return False


def integers(values: Sequence[Any]) -> tuple[list[int], int]:
    """Return rationals as integer numerators over a common denominator, and that denominator."""
    denominator = math.lcm(*(int(x.denominator) for x in values))
    return [int(x.numerator) * (denominator // int(x.denominator)) for x in values], denominator


def primitive(w: Sequence[int]) -> tuple[int, ...]:
    """Return w divided by the greatest common divisor of its entries."""
    divisor = math.gcd(*w) or 1
    return tuple(x // divisor for x in w)


def coprime(weights: dict[int, Any]) -> dict[int, int]:
    """Return rational weights, multiplied by a positive number, as integers without a common divisor."""
    return dict(zip(weights, primitive(integers([*weights.values()])[0]), strict=True))


def unscaled(weights: dict[int, Any], exponents: Mapping[int, int] | Sequence[int]) -> dict[int, int]:
    """Return coprime integer weights for the rows of A, sorted by row, from rational weights for the rows divided by 2^e."""
    numerators, _ = integers([*weights.values()])
    low = min((-exponents[i] for i in weights), default=0)
    scaled = {i: value << (-exponents[i] - low) for i, value in zip(weights, numerators, strict=True)}
    return coprime({i: scaled[i] for i in sorted(scaled)})


@ieee_floats()
def score_signs(X: Matrix, w: Sequence[int], b: int, signs: Array, among: Array | None = None) -> Array:
    """Return the signs -1, 0 or 1 of y_i(x_i·w + b) for integers w and b, decided exactly.

    If `among` names rows, only the signs of these are decided, and the others must not be relied on.
    """
    answer = np.zeros(X.n, dtype=np.int8)
    asked = np.arange(X.n) if among is None else among
    only = [j for j, value in enumerate(w) if value]
    if len(only) == 1 and not b:  # the signs of one column: products with 1 and 0 are not rounded
        column = Products.of(X, np.bincount(only, minlength=len(w)).astype(np.float64)).sums
        if np.isfinite(column).all():
            return np.asarray(np.sign(column) * (1 if w[only[0]] > 0 else -1) * signs, dtype=np.int8)
    rounded = _rounded_to_floats([*w, b])
    if rounded is not None:
        # rounding w adds one rounding to each term, for which the factor of two in `matrix.error` leaves room
        products = Products.of(X, rounded[:-1])
        lo, hi = products.scores(float(rounded[-1]), signs)
        products = products.sharpened(asked[(lo[asked] <= 0) & (hi[asked] >= 0)])
        lo, hi = products.scores(float(rounded[-1]), signs)
        answer[lo > 0], answer[hi < 0] = 1, -1
        asked = asked[(lo[asked] <= 0) & (hi[asked] >= 0)]
    entries = X.storage.entries / X.n
    for part in np.array_split(asked, max(1, len(asked) // SIGN_ROWS, math.ceil(len(asked) * entries / SIGN_ENTRIES))):
        if len(part):
            answer[part] = _exact_signs(X, part, w, b) * signs[part]
    return answer


def _rounded_to_floats(w: Sequence[int]) -> Array | None:
    """Return w divided by a power of two and rounded to floats; None if its entries differ too much in size for that."""
    unit = 1 << max(abs(x).bit_length() for x in w)
    floats = np.array([x / unit for x in w])  # Python rounds quotients of integers to the nearest float
    small = (floats != 0) & (np.abs(floats) < MIN_TRUSTED)
    lost = any(x != 0 and f == 0 for x, f in zip(w, floats.tolist(), strict=True))
    return None if small.any() or lost else floats


def _exact_signs(X: Matrix, rows: Array, w: Sequence[int], b: int) -> Array:
    """Return the signs of x_i·w + b for these rows, in floats if these add up exactly, else in integers."""
    place, columns, values = entries(X, rows, np.flatnonzero([value != 0 for value in w]))
    if adds_exactly(values, [value for value in w if value], b):
        weights = np.array([float(value) for value in w])
        total = np.bincount(place, weights=values * weights[columns], minlength=len(rows)) + float(b)
        return np.asarray(np.sign(total), dtype=np.int8)
    terms: list[list[tuple[int, int]]] = [[(b, 0)] for _ in rows]
    for i, j, x in zip(place.tolist(), columns.tolist(), values.tolist(), strict=True):
        m, e = bounds.dyadic(x)
        terms[i].append((m * w[j], e))
    totals = [bounds.add(parts)[0] for parts in terms]
    return np.array([(total > 0) - (total < 0) for total in totals], dtype=np.int8)


def entries(X: Matrix, rows: Array, used: Array) -> tuple[Array, Array, Array]:
    """Return the entries of these rows in the columns `used` as arrays (position of the row, column, float64 value).

    Sparse rows give their stored entries only, dense rows all of them.
    """
    held = X.storage.take(rows).plain()
    if is_sparse(held):
        held = held[:, used] if len(used) < X.d else held
        return np.repeat(np.arange(len(rows)), np.diff(held.indptr)), used[held.indices], held.data
    return np.repeat(np.arange(len(rows)), len(used)), np.tile(used, len(rows)), held[:, used].ravel()


def adds_exactly(values: Array, w: Sequence[int], b: int) -> bool:
    """Return whether float64 adds up products of these values with w, and b, without any rounding and in any order.

    It does if all terms are multiples of one 2^s and Σ|w| max|x| + |b| stays below 2^(s+53), since each column occurs at most
    once in a row.
    """
    weight = sum(abs(value) for value in w) + abs(b)
    if weight.bit_length() > FLOAT_DIGITS or not np.isfinite(values).all():
        return False
    used = np.append(values[values != 0], 1.0)
    top, low = int(np.frexp(used)[1].max()), _lowest_bit_exponent(used)
    return top + weight.bit_length() - low <= FLOAT_DIGITS and top + weight.bit_length() < 1023
