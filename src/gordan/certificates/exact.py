"""Rows of A as integers: the signs of their scores, their spans and null spaces, without rounding.

A = diag(y) [X, 1] (without the last column if there is no intercept). Every stored number is m·2^e, so that each row is an
integer row times a power of two; neither signs of scores nor spans see that power.
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

# Independent modulo a prime is independent; the converse may fail, and then something that is true is not proved.
PRIME = 2**61 - 1
# Entries up to which pivots are taken from exact elimination and not modulo the prime.
FEW_ENTRIES_TO_ELIMINATE = 400
# Products up to which sums of integers are left to Python; flint is quicker with more.
FEW_PRODUCTS = 20_000
# Entries of a row up to which they are turned into integers one by one.
FEW_ENTRIES = 40
# Bytes of an integer or a fraction in a list and in a matrix of flint, with short numbers in it.
NUMBER_BYTES = 100
# Rows whose signs are found together, and their entries, at most.
SIGN_ROWS, SIGN_ENTRIES = 4096, 1 << 20
# Float64 holds sums of multiples of 2^s exactly while they stay below 2^(s+53).
FLOAT_DIGITS = 53
# Entries of w this much smaller than the largest one are not trusted to floats.
LEAST_TRUSTED = 2.0**-500


def integer_entries(X: Matrix, rows: Any) -> Iterator[tuple[int, list[int], list[int], int]]:
    """Of each of these rows its number, columns and integers m with x_ij = m_j·2^e for its entries that are not zero, and e."""
    return ((i, columns.tolist(), *whole(values)) for i, columns, values in X.storage.each_row(rows))


def whole(values: Array) -> tuple[list[int], int]:
    """Integers m and e with values = m·2^e, for finite floats."""
    if len(values) <= FEW_ENTRIES or not values.all():
        ratios = [x.as_integer_ratio() for x in values.tolist()]
        common = max((q for _, q in ratios), default=1)  # denominators are powers of two
        return [m * (common // q) for m, q in ratios], 1 - common.bit_length()
    low = _last_digit(values)
    if int(np.frexp(values)[1].max()) - low <= 62:  # then all are whole numbers of 64 bits, and exact
        return np.ldexp(values, -low).astype(np.int64).tolist(), low
    pairs = [bounds.dyadic(x) for x in values.tolist()]
    return [m << (e - low) if e >= low else m >> (low - e) for m, e in pairs], low


def scores(X: Matrix, rows: Array, w: Array, b: float, signs: Array) -> tuple[list[int], int]:
    """Integers m and e with y_i(x_i·w + b) = m_i·2^e for these rows."""
    (v, low), constant = whole(w), bounds.dyadic(b)
    found = []
    for i, columns, entries, e in integer_entries(X, rows):
        m, e = bounds.add([(sum(map(mul, entries, map(v.__getitem__, columns))), e + low), constant])
        found.append((int(signs[i]) * m, e))
    least = min((e for _, e in found), default=0)
    return [m << (e - least) for m, e in found], least


def combination(X: Matrix, rows: Array, weights: Sequence[int], *, constant: int) -> dict[int, tuple[int, int]]:
    """Σ weight_i x_i over these rows, by column, as m·2^e; with a further column of that constant, if it is not 0."""
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
    """The first column j with Σ_i p_i m_ij ≠ 0, for rows m_i given by their columns and integers."""
    used = sorted({column for columns, _, _ in entries for column in columns})
    if sum(len(columns) for columns, _, _ in entries) <= FEW_PRODUCTS or not numbers_fit(len(p) * len(used)):
        sums: dict[int, int] = {}
        for weight, (columns, whole, _) in zip(p, entries, strict=True):
            for column, m in zip(columns, whole, strict=True):
                sums[column] = sums.get(column, 0) + weight * m
        return min((column for column, total in sums.items() if total != 0), default=None)
    place = {column: k for k, column in enumerate(used)}
    rows = []
    for columns, whole, _ in entries:
        row = [0] * len(used)
        for column, m in zip(columns, whole, strict=True):
            row[place[column]] = m
        rows.append(row)
    total = matrix([p], len(p)) * matrix(rows, len(used))
    return next((column for k, column in enumerate(used) if total[0, k] != 0), None)


def numbers_fit(count: float) -> bool:
    """Whether there is room for so many exact numbers. Rows of integers are spread out, zeros and all."""
    return fits(NUMBER_BYTES * count)


def _last_digit(values: Array) -> int:
    """The largest e with all values multiples of 2^e; they are not zero."""
    fraction, exponent = np.frexp(values)
    whole = np.ldexp(fraction, FLOAT_DIGITS).astype(np.int64)
    return int((np.frexp((whole & -whole).astype(np.float64))[1] - 1 - FLOAT_DIGITS + exponent).min())


@ieee_floats()
def integer_rows(problem: Problem, rows: Iterable[int], intercept: Intercept) -> tuple[list[list[int]], list[int]]:
    """These rows of A, each divided by its power of two 2^e, and the e."""
    k, found, exponents = intercept.columns(problem.X.d), [], []
    for i, columns, whole, low in integer_entries(problem.X, [*rows]):
        row, shift, sign = [0] * k, 0, int(problem.signs[i])
        if intercept.exists:
            shift, low = max(0, low), min(0, low)
            row[k - 1] = sign << -low
        for j, m in zip(columns, whole, strict=True):
            row[j] = (sign * m) << shift
        found.append(row)
        exponents.append(low)
    return found, exponents


def matrix(rows: Sequence[Sequence[int]], k: int) -> Any:
    """Integer rows of length k as one matrix of flint."""
    from flint import fmpz_mat  # here and below: separators need none of it, and it takes 50 ms to import

    return fmpz_mat(len(rows), k, [x for row in rows for x in row])


def pivots(M: Any, *, exactly: bool = False) -> list[int]:
    """Columns of M that are independent, the first ones possible; all that there are, but for bad luck with the prime."""
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
    """Integer vectors, as columns of a matrix, that span {v : M v = 0}, for independent rows M with these pivot columns."""
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
    """Whether the rows of A in `support` span all those `among`; None where there is no room to find out."""
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
            break  # else bad luck with the prime: what was taken for a basis does not span the support
    return False


def integers(values: Sequence[Any]) -> tuple[list[int], int]:
    """Rationals as integers over one denominator."""
    denominator = math.lcm(*(int(x.denominator) for x in values))
    return [int(x.numerator) * (denominator // int(x.denominator)) for x in values], denominator


def primitive(w: Sequence[int]) -> tuple[int, ...]:
    """w without a common divisor."""
    divisor = math.gcd(*w) or 1
    return tuple(x // divisor for x in w)


def coprime(weights: dict[int, Any]) -> dict[int, int]:
    """Rational weights as integers without a common divisor."""
    return dict(zip(weights, primitive(integers([*weights.values()])[0]), strict=True))


def unscaled(weights: dict[int, Any], exponents: Mapping[int, int] | Sequence[int]) -> dict[int, int]:
    """Coprime weights for the rows as they are, in their order, from rational ones for the rows divided by 2^e."""
    numerators, _ = integers([*weights.values()])
    low = min((-exponents[i] for i in weights), default=0)
    scaled = {i: value << (-exponents[i] - low) for i, value in zip(weights, numerators, strict=True)}
    return coprime({i: scaled[i] for i in sorted(scaled)})


@ieee_floats()
def score_signs(X: Matrix, w: Sequence[int], b: int, signs: Array, among: Array | None = None) -> Array:
    """The signs -1, 0, 1 of y_i(x_i·w + b) for integers w, b; where `among` names rows, only theirs are to be relied on."""
    answer = np.zeros(X.n, dtype=np.int8)
    asked = np.arange(X.n) if among is None else among
    only = [j for j, value in enumerate(w) if value]
    if len(only) == 1 and not b:  # a column, up to its sign: its products with 1, and zeros, are not rounded
        column = Products.of(X, np.bincount(only, minlength=len(w)).astype(np.float64)).sums
        if np.isfinite(column).all():
            return np.asarray(np.sign(column) * (1 if w[only[0]] > 0 else -1) * signs, dtype=np.int8)
    rounded = _rounded([*w, b])
    if rounded is not None:
        # rounding w costs at most one unit in the last place a term, which the enclosure's factor of two leaves room for
        products = Products.of(X, rounded[:-1])
        lo, hi = products.scores(float(rounded[-1]), signs)
        products.sharpen(asked[(lo[asked] <= 0) & (hi[asked] >= 0)])
        lo, hi = products.scores(float(rounded[-1]), signs)
        answer[lo > 0], answer[hi < 0] = 1, -1
        asked = asked[(lo[asked] <= 0) & (hi[asked] >= 0)]
    entries = X.storage.entries / X.n
    for part in np.array_split(asked, max(1, len(asked) // SIGN_ROWS, math.ceil(len(asked) * entries / SIGN_ENTRIES))):
        if len(part):
            answer[part] = _exact_signs(X, part, w, b) * signs[part]
    return answer


def _rounded(w: Sequence[int]) -> Array | None:
    """w times a power of two, rounded to floats; None where they would be too far apart in size."""
    unit = 1 << max(abs(x).bit_length() for x in w)
    floats = np.array([x / unit for x in w])  # Python rounds quotients of integers to the nearest float
    small = (floats != 0) & (np.abs(floats) < LEAST_TRUSTED)
    lost = any(x != 0 and f == 0 for x, f in zip(w, floats.tolist(), strict=True))
    return None if small.any() or lost else floats


def _exact_signs(X: Matrix, rows: Array, w: Sequence[int], b: int) -> Array:
    """The signs of x_i·w + b for these rows."""
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
    """What these rows have in the columns `used`: all of it, or what is stored where rows are sparse; as (position of the row,
    column, float64 value)."""
    held = X.storage.take(rows).plain()
    if is_sparse(held):
        held = held[:, used] if len(used) < X.d else held
        return np.repeat(np.arange(len(rows)), np.diff(held.indptr)), used[held.indices], held.data
    return np.repeat(np.arange(len(rows)), len(used)), np.tile(used, len(rows)), held[:, used].ravel()


def adds_exactly(values: Array, w: Sequence[int], b: int) -> bool:
    """Whether float64 adds up products of these values and w, and b, without rounding in any order.

    It does if all are multiples of one 2^s and Σ|w| max|x| + |b| stays below 2^(s+53): each column comes once in a row.
    """
    weight = sum(abs(value) for value in w) + abs(b)
    if weight.bit_length() > FLOAT_DIGITS or not np.isfinite(values).all():
        return False
    used = np.append(values[values != 0], 1.0)
    top, low = int(np.frexp(used)[1].max()), _last_digit(used)
    return top + weight.bit_length() - low <= FLOAT_DIGITS and top + weight.bit_length() < 1023
