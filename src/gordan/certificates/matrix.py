"""The user's X as the checker reads it, and rigorous enclosures of its products with a w.

NumPy and SciPy's sparse products only: nothing compiled here, nothing reassociated, but for a checksum that no proof needs. And
no BLAS: its threads are in whatever floating-point mode the thread that started them was in (`verified` has one product whose
bounds hold in any). All arithmetic is done in threads that look at their mode (`floats`).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gordan.arrays import LEAST_SQUARE, MOST_SQUARE, Array
from gordan.certificates.bounds import TINY, U, add, dyadic, multiply, norm_bound
from gordan.floats import ieee_floats
from gordan.rows.mapped import in_order
from gordan.rows.memory import csr_rows, entries_of
from gordan.rows.tensors import Entries
from gordan.rows.threads import available

# What is claimed comes from enclosures so much wider than those of the checker, which may add in another order: with its own
# radius r it then finds a bound within 2r of the truth, and the claim was made with 4r.
CLAIM = 4.0
BLOCK_ENTRIES = 1 << 18
# Rows up to which those of another machine are brought here, and not the work to them.
MOST_BROUGHT = 4096
# Stored entries from which a pass is worth more than one thread: two blocks, of some milliseconds each where rows are sparse.
WORTH_THREADS = 1 << 19
# Stored entries from which a checksum is worth a compiled loop: others are needed then as well.
WORTH_COMPILING = 1 << 19
# Columns of a dense row whose products are added up in one go.
LONGEST_SUM = 4096
# Dense columns up to which these are gone through one by one: a loop over so short rows takes longer (measured).
NARROW = 8
# Products above this and below its inverse are split into two floats without error.
LEAST_SPLIT = 2.0**-900


@dataclass(frozen=True)
class Matrix:
    """The user's X as stored, read by blocks of rows; dense array, `Entries` on a device or CSR arrays. Values are float32 or
    float64 (of 16 bits too on a device), used exactly."""

    n: int
    d: int
    arrays: tuple[Any, ...]
    # what was computed last, by kind, with the vector it was computed for: a claim and its check ask for the same
    _last: dict[str, tuple[Array, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def remembered(self, kind: str, vector: Array, compute: Callable[[], Any]) -> Any:
        """compute(), or what it gave last time if that was for the same vector."""
        with ieee_floats():
            before = self._last.get(kind)
            if before is not None and np.array_equal(before[0], vector):
                return before[1]
            computed = compute()
        self._last[kind] = vector.copy(), computed
        return computed

    @cached_property
    def norms(self) -> Array:
        """Upper bounds on ‖x_i‖, a few units in the last place above it; not finite where x_i is not. One pass."""
        return np.concatenate(self.each(_norms_there)) if self.elsewhere else self._norms_here()

    def _norms_here(self) -> Array:
        norms = np.empty(self.n)

        def part(lo: int, hi: int) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                norms[lo:hi] = self._norms(lo, hi)

        self.by_blocks(part)
        return norms

    def by_blocks(self, work: Callable[[int, int], None]) -> None:
        """work(lo, hi) for each block of rows."""
        with ieee_floats():  # for the rows that are gone through here; `threads.run` sees to the others
            in_order(work, self.arrays, list(self.blocks()), available() if self.stored_entries >= WORTH_THREADS else 1)

    def _norms(self, lo: int, hi: int) -> Array:
        if self.sparse:
            data, _, indptr = self.arrays
            values = data[int(indptr[lo]) : int(indptr[hi])].astype(np.float64, copy=False)
            lengths: Array = np.diff(indptr[lo : hi + 1].astype(np.int64))
            squares = by_rows(np.add, values * values, lengths)
        elif isinstance(self.arrays[0], Entries):
            values, lengths = None, np.full(hi - lo, self.d)
            squares = self.arrays[0].squares(lo, hi)
        else:
            values = self.arrays[0][lo:hi].astype(np.float64, copy=False)
            lengths = np.full(hi - lo, self.d)
            squares = row_sums(values, values)
        norms = np.sqrt(squares) * (1 + U * (lengths + 8.0))
        lost = ~((squares >= LEAST_SQUARE) & (squares <= MOST_SQUARE)) & (lengths > 0)
        if lost.any():
            sizes = np.abs(self.arrays[0][lo:hi].astype(np.float64) if values is None else values)
            top = by_rows(np.maximum, sizes, lengths) if self.sparse else np.max(sizes, axis=1)
            above = np.nextafter(top * np.sqrt(lengths) * (1 + 8 * U), np.inf)  # subnormals are rounded by up to half a unit
            norms[lost] = np.where(top == 0, 0.0, above)[lost]
        return norms

    @property
    def sparse(self) -> bool:
        """Whether the arrays are (data, indices, indptr)."""
        return len(self.arrays) == 3

    @property
    def elsewhere(self) -> bool:
        """Whether the rows are on other machines: the work goes there, and few rows come here."""
        return hasattr(self.arrays[0], "each")

    def each(self, work: Any, over_rows: tuple[Any, ...] = (), shared: tuple[Any, ...] = ()) -> list[Any]:
        """`work(rows, *its part of each vector over rows, *shared)`, done where each block of rows is, in their order."""
        return list(self.arrays[0].each(work, over_rows, shared))

    def taken(self, rows: Array) -> Matrix:
        """These rows of a matrix that is elsewhere, here."""
        held = self.arrays[0].storage.take(rows)
        return Matrix(held.n, held.d, held.arrays)

    def have(self, rows: Any) -> None:
        """These rows will be asked for one by one (`row`): if they are elsewhere, bring them here together."""
        if self.elsewhere:
            self.arrays[0].have(rows)

    def csr(self, lo: int, hi: int) -> Any:
        """Sparse rows lo..hi-1 as SciPy's CSR array, whose products are plain sums in float64."""
        return csr_rows(self.arrays, self.d, lo, hi)

    def blocks(self, entries: int = BLOCK_ENTRIES) -> Iterator[tuple[int, int]]:
        """Ranges of rows of about so many stored entries, so that a block stays in the cache."""
        per_row = max(1, (len(self.arrays[0]) // max(1, self.n)) if self.sparse else self.d)
        step = max(1, getattr(self.arrays[0], "block_entries", entries) // per_row)
        for lo in range(0, self.n, step):
            yield lo, min(lo + step, self.n)

    def row(self, i: int) -> tuple[Array, Array]:
        """Columns and float64 values of the entries of row i that are not zero."""
        if self.sparse:
            data, indices, indptr = self.arrays
            part = slice(int(indptr[i]), int(indptr[i + 1]))
            columns, values = indices[part].astype(np.int64), data[part].astype(np.float64)
        else:
            columns, values = np.arange(self.d), self.arrays[0][i].astype(np.float64)
        stored = values != 0
        return columns[stored], values[stored]

    def checksum(self) -> int:
        """A number made of all that is stored, where it is stored: another one if any of it was changed. One pass."""
        if self.elsewhere:
            return zlib.crc32(repr(self.each(_checksum_there)).encode())
        found: dict[int, list[int]] = {}

        def part(lo: int, hi: int) -> None:
            found[lo] = self._checksums(lo, hi)

        self.by_blocks(part)
        return zlib.crc32(repr(sorted(found.items())).encode())

    def _checksums(self, lo: int, hi: int) -> list[int]:
        if isinstance(self.arrays[0], Entries):
            return [self.arrays[0].checksum(lo, hi)]
        parts = [self.arrays[0][lo:hi]]
        if self.sparse:
            data, indices, indptr = self.arrays
            entries = slice(int(indptr[lo]), int(indptr[hi]))
            parts = [data[entries], indices[entries], indptr[lo : hi + 1]]
        return [_mixed(np.ascontiguousarray(part), self.stored_entries >= WORTH_COMPILING) for part in parts]

    @property
    def stored_entries(self) -> int:
        """How many entries are stored."""
        return len(self.arrays[0]) if self.sparse else self.n * self.d

    def products(self, w: Array, lo: int, hi: int) -> tuple[Array, Array]:
        """For rows lo..hi-1: X w in float64 and the additions that a term goes through at most (one number if dense)."""
        if self.sparse:
            rows = self.csr(lo, hi)
            return rows @ w, np.diff(rows.indptr)
        if isinstance(self.arrays[0], Entries):
            return self.arrays[0].products(w, lo, hi), np.array(self.d)
        block = self.arrays[0][lo:hi].astype(np.float64, copy=False)
        if self.d <= 2 * LONGEST_SUM:
            return row_sums(block, w), np.array(self.d)
        # sums of parts, then their sum: no term goes through more additions than a part and the number of parts have
        cuts = range(0, self.d, LONGEST_SUM)
        sums = sum((row_sums(block[:, j : j + LONGEST_SUM], w[j : j + LONGEST_SUM]) for j in cuts), np.zeros(hi - lo))
        return sums, np.array(LONGEST_SUM + len(cuts))

    def all_products(self, w: Array) -> tuple[Array, Array]:
        """`products` of all rows, on all cores. The norms come with them if nobody has asked for them yet: one pass for both."""
        sums, norms = np.empty(self.n), np.empty(0 if "norms" in self.__dict__ else self.n)
        terms = np.empty(self.n if self.sparse else ())

        def part(lo: int, hi: int) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                sums[lo:hi], terms[slice(lo, hi) if self.sparse else ...] = self.products(w, lo, hi)
                if len(norms):  # while the block is in the cache
                    norms[lo:hi] = self._norms(lo, hi)

        self.by_blocks(part)
        if len(norms):
            self.__dict__["norms"] = norms  # where `cached_property` keeps it
        return sums, terms

    def absolute(self, w: Array, rows: Array) -> Array:
        """|X||w| for these rows (in order), as computed."""
        if self.elsewhere:
            if len(rows) <= MOST_BROUGHT:
                return self.taken(rows).absolute(w, np.arange(len(rows)))
            return np.concatenate(self.each(_absolute_there, (), (w,)))[rows]
        size = np.abs(w)
        if self.sparse:
            data, indices, indptr = self.arrays
            where, lengths = entries_of(indptr, rows)
            return by_rows(np.add, np.abs(data[where]) * size[indices[where]], lengths)
        if isinstance(self.arrays[0], Entries):
            return self.arrays[0].absolute(size, rows)
        return np.concatenate([np.empty(0), *(row_sums(np.abs(block), size) for _, block in self._dense(rows))])

    def combination(self, q: Array) -> Array:
        """Xᵀq in float64, from the rows where q is not 0."""
        if self.elsewhere:
            rows = np.flatnonzero(q)
            if len(rows) <= MOST_BROUGHT:
                return self.taken(rows).combination(q[rows])
            return np.asarray(np.sum(self.each(_combination_there, (q,)), axis=0))
        if self.sparse:
            total = np.zeros(self.d)
            for lo, hi in self.blocks(max(BLOCK_ENTRIES, 16 * self.d)):
                used = np.flatnonzero(q[lo:hi])
                rows = self.csr(lo, hi)
                rows = rows[used] if 2 * len(used) < hi - lo else rows
                total += rows.T @ (q[lo:hi] if rows.shape[0] == hi - lo else q[lo + used])
            return total
        if isinstance(self.arrays[0], Entries):
            return self.arrays[0].combination(q)
        total = np.zeros(self.d)
        for rows, block in self._dense(np.flatnonzero(q)):
            total += column_sums(q[rows], block)
        return total

    def _dense(self, rows: Array) -> Iterator[tuple[Array, Array]]:
        """These rows (in order) and their entries in float64, block by block."""
        for lo, hi in self.blocks():
            part = rows[np.searchsorted(rows, lo) : np.searchsorted(rows, hi)]
            if len(part):
                block = self.arrays[0][lo:hi]
                yield part, (block if len(part) == hi - lo else block[part - lo]).astype(np.float64, copy=False)


def row_sums(left: Array, right: Array) -> Array:
    """Σ_j left_ij right_j, or right_ij."""
    if left.shape[1] > NARROW:
        return np.asarray(np.einsum("ij,ij->i" if right.ndim == 2 else "ij,j->i", left, right))
    return sum((left[:, j] * right[..., j] for j in range(left.shape[1])), np.zeros(len(left)))


def column_sums(q: Array, block: Array) -> Array:
    """Σ_i q_i block_ij."""
    if block.shape[1] > NARROW:
        return np.asarray(np.einsum("i,ij->j", q, block))
    return np.array([np.sum(q * block[:, j]) for j in range(block.shape[1])])


def _mixed(array: Array, at_length: bool) -> int:
    """A CRC of the bytes of an array; or, of one that is long, a sum that takes a tenth of the time once it is compiled."""
    if not at_length:
        return zlib.crc32(array.data)
    from gordan.rows import kernels

    mixed: Any = kernels.mixed_bits
    words = array.reshape(-1).view(f"u{array.itemsize}")
    words.flags.writeable = False  # one kernel for all
    return int(mixed(words))


def by_rows(join: np.ufunc, terms: Array, lengths: Array) -> Array:
    """Sums (or what else joins two terms) over consecutive groups of terms of these lengths; 0 where there are none."""
    joined = np.zeros(len(lengths), dtype=terms.dtype)
    filled = np.flatnonzero(lengths)
    if len(filled):
        starts = np.cumsum(lengths) - lengths
        joined[filled] = join.reduceat(terms, starts[filled])
    return joined


def error(absolute: Array, terms: Any) -> Array:
    """A bound on |computed - exact| for a sum of so many products whose absolute values add up to `absolute` (as computed).

    2(k+4)u·fl(Σ|a||w|) is more than γ_k Σ|a||w| for k < 2⁴⁰, by enough for the few operations with the sum that follow; and TINY
    a term is for underflow.
    """
    bound = np.asarray(absolute * ((2.0 * U) * (terms + 4.0)))
    bound += (terms + 4.0) * TINY
    return bound


@dataclass(frozen=True, eq=False)
class Products:
    """X w as computed, what ‖w‖ and |X||w| are at most, and the number of terms: what scores are enclosed from, whatever b is.

    |x_i|·|w| ≤ ‖x_i‖‖w‖ needs no pass of its own; for rows where that is too much, `sharpen` finds the sum itself.
    """

    X: Matrix
    w: Array
    length: float
    sums: Array
    absolute: Array
    terms: Array

    @staticmethod
    def of(X: Matrix, w: Array) -> Products:
        """One pass over X, block by block, on all cores; none if it was made for the same w just before."""
        products: Products = X.remembered("products", w, lambda: Products._computed(X, w.copy()))
        return products

    @staticmethod
    def _computed(X: Matrix, w: Array) -> Products:
        if X.elsewhere:
            found = X.each(_products_there, (), (w,))
            sums, terms = np.concatenate([part for part, _ in found]), np.concatenate([part for _, part in found])
            return Products._with(X, w, sums, terms)
        return Products._with(X, w, *X.all_products(w))

    @staticmethod
    def _with(X: Matrix, w: Array, sums: Array, terms: Array) -> Products:
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.abs(w)
            length = norm_bound(size, 2.0, dual=True)
            return Products(X, w, length, sums, X.norms * length, terms)

    def sharpen(self, rows: Array) -> None:
        """|x_i|·|w| as it is for these rows."""
        if len(rows):
            with np.errstate(over="ignore", invalid="ignore"):
                with ieee_floats():
                    sharper = np.fmin(self.absolute[rows], self.X.absolute(self.w, rows))
                self.absolute[rows] = sharper

    def scores(self, b: float, signs: Array, slack: float = 1.0) -> tuple[Array, Array]:
        """lo ≤ y_i(x_i·w + b) ≤ hi for every row; infinite where float64 overflows. `slack` widens the enclosures."""
        with np.errstate(over="ignore", invalid="ignore"):
            radius = error(self.absolute + abs(b), self.terms + 1.0)
            radius *= slack
            centre = self.sums + b
            centre *= signs
            hi = centre + radius
            lo = np.subtract(centre, radius, out=radius)
            del centre  # as long as X has rows, like the others
            finite = bool(np.isfinite(np.min(lo) + np.max(hi)))  # NaN goes through both
        if not finite:
            lo[~np.isfinite(lo)] = -np.inf
            hi[~np.isfinite(hi)] = np.inf
        return lo, hi


# ---- the same on other machines, for one block of rows, in IEEE arithmetic there ---------------------------------------


def _checksum_there(held: Any) -> int:
    return Matrix(held.n, held.d, held.arrays).checksum()


def _norms_there(held: Any) -> Array:
    # not `norms`: a cached property holds a lock, for all matrices of a process, while whoever waits for this holds it
    return Matrix(held.n, held.d, held.arrays)._norms_here()


@ieee_floats()
def _products_there(held: Any, w: Array) -> tuple[Array, Array]:
    X = Matrix(held.n, held.d, held.arrays)
    sums, terms = np.empty(X.n), np.empty(X.n)
    with np.errstate(over="ignore", invalid="ignore"):
        for lo, hi in X.blocks():
            sums[lo:hi], terms[lo:hi] = X.products(w, lo, hi)
    return sums, terms


@ieee_floats()
def _absolute_there(held: Any, w: Array) -> Array:
    return Matrix(held.n, held.d, held.arrays).absolute(w, np.arange(held.n))


@ieee_floats()
def _combination_there(held: Any, q: Array) -> Array:
    return Matrix(held.n, held.d, held.arrays).combination(q)


def exact_score(X: Matrix, i: int, w: Array, b: float, sign: int) -> tuple[int, int]:
    """y_i(x_i·w + b) exactly, as m·2^e."""
    columns, values = X.row(i)
    terms = [multiply(dyadic(float(x)), dyadic(float(w[j]))) for j, x in zip(columns, values, strict=True)]
    m, e = add([*terms, dyadic(float(b))])
    return sign * m, e


def near_score(X: Matrix, i: int, w: Array, b: float, sign: int) -> float:
    """y_i(x_i·w + b) rounded to the nearest float, so that its sign is right; NaN where products are too large or too small.

    Each product is split without error into two floats (Dekker), and `math.fsum` adds them up exactly.
    """
    columns, x = X.row(i)
    v = w[columns]
    x, v = x[v != 0], v[v != 0]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        products = x * v
        sizes = np.abs(products)
        if len(x) and not LEAST_SPLIT < sizes.min() <= sizes.max() < 1 / LEAST_SPLIT:
            return math.nan
        (x1, x2), (v1, v2) = _halves(x), _halves(v)  # NaN where a factor is too large, and so is the sum
        errors = x2 * v2 - (((products - x1 * v1) - x2 * v1) - x1 * v2)
    return sign * math.fsum([*products.tolist(), *errors.tolist(), b])


def _halves(x: Array) -> tuple[Array, Array]:
    """x as a sum of two floats of at most 26 digits each."""
    shifted = x * (2.0**27 + 1)
    high = shifted - (shifted - x)
    return high, x - high
