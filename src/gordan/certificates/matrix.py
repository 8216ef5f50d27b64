"""The user's X as the checker reads it, and rigorous enclosures of its products with a w.

Sums come from `rows.reads`, plain ones in float64 with a known number of operations; here is what rounding may have done to them.
All arithmetic is done in threads that look at their floating-point mode (`floats`), and none by a BLAS, whose threads may be in
another one (`verified` has one product whose bounds hold in any).
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from gordan.arrays import LEAST_SQUARE, MOST_SQUARE, Array
from gordan.certificates.bounds import SUM_BLOCK, TINY, U, add, dyadic, length, multiply
from gordan.errors import InputError
from gordan.floats import ieee_floats
from gordan.rows import Block, Storage, over_rows

# What is claimed comes from enclosures so much wider than those of the checker, which may add in another order: with its own
# radius r it then finds a bound within 2r of the truth, and the claim was made with 4r.
CLAIM = 4.0
# Stored entries from which a checksum is worth a compiled loop, even if none has been needed yet: others are needed then as well.
WORTH_COMPILING = 1 << 19
# Seconds that a row and an entry take where sums are rounded once (measured), and how many of these seconds are worth it.
A_ROW, AN_ENTRY, WORTH_ROUNDING_ONCE = 3e-5, 2e-7, 2.0
# Products above this and below its inverse are split into two floats without error.
LEAST_SPLIT = 2.0**-900
# Rows that are added up in one go, before their sums are, where sums of many columns are made at once.
AT_ONCE = 256
ALL = slice(None)
# Bytes of X up to which it is copied, so that it may be changed after a proof.
COPIED = 1 << 20

T = TypeVar("T")


@dataclass(frozen=True)
class Matrix:
    """The user's X as stored, read by blocks of rows. Values are used exactly."""

    storage: Storage
    # what was computed last, by kind, with the vector it was computed for: a claim and its check ask for the same
    _last: dict[str, tuple[Array, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.storage.n

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.storage.d

    @cached_property
    def seconds_row_by_row(self) -> float:
        """About the time that `Products.rounded_once` takes, from entries that are not 0: what is worth it for sparse rows is
        worth it for a checker that holds them as dense ones. One pass."""
        return float(A_ROW * self.n + AN_ENTRY * sum(self.storage.each_block(_nonzeros)))

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
        return np.concatenate(list(self.storage.each_block(_norms)))

    def products(self, w: Array) -> tuple[Array, Array]:
        """X w in float64, and the additions that a term goes through at most: for each row, or one number for all. A block w
        (d, k) gives a block.

        The norms come with them if nobody has asked for them yet: one pass for both.
        """
        fresh = "norms" not in self.__dict__
        sums, terms, norms = zip(*self.storage.each_block(_products, (), (np.ascontiguousarray(w.T), fresh)), strict=True)
        if fresh:
            self.__dict__["norms"] = np.concatenate(norms)  # where `cached_property` keeps it
        return np.concatenate(sums), np.concatenate(terms) if terms[0].ndim else terms[0]

    def absolute(self, w: Array, rows: Array | None = None) -> Array:
        """|X||w| for these rows (in order), or all of them, as computed."""
        return np.concatenate([np.empty(0), *self.storage.each_block(_absolute, (), (np.abs(w),), rows)])

    def combination(self, q: Array, rows: Array | None = None) -> Array:
        """Xᵀq in float64, from the rows where q is not 0, which may be named; for a vector q or a block (n, k)."""
        total = np.zeros((self.d, *q.shape[1:]))
        used = np.flatnonzero(q if q.ndim == 1 else q.any(axis=1)) if rows is None else rows
        few = 2 * len(used) < self.n  # a copy of most rows takes longer than to add zeros, which rounds nothing
        with ieee_floats():
            for part in self.storage.each_block(_combination, (q,), (), used if few else None, added=True):
                total += part
        return total

    def checksum(self) -> int:
        """A number made of all that is stored, where it is stored: another one if any of it was changed. One pass."""
        found = self.storage.each_block(_checksum, (), (self._compiles,))
        return zlib.crc32(repr(list(found)).encode())

    @cached_property
    def _compiles(self) -> bool:
        """Whether checksums are made by a compiled loop: once that is decided, always."""
        return self.storage.entries >= WORTH_COMPILING or "gordan.rows.kernels" in sys.modules

    def watched(self, given: Any) -> Matrix:
        """The same, so that it is known whether it has `changed`: copied where it is small, else its checksum is taken.

        `given` is what the caller passed for X: a storage, which belongs to whoever made it, is not watched.
        """
        if given is self.storage:
            return self
        copied = self.storage.snapshot(COPIED)
        if copied is not None:
            return Matrix(copied)
        self.remembered("checksum", np.empty(0), self.checksum)
        return self

    @property
    def changed(self) -> bool:
        """Whether it is not what it was when it was `watched`. One pass."""
        return "checksum" in self._last and self.checksum() != self._last["checksum"][1]

    def require_unchanged(self, wanted: str) -> None:
        """Refuse what is `wanted` of an X that has changed."""
        if self.changed:
            raise InputError(
                f"X was changed after it was read, so there is no {wanted} of what it was; "
                f"ask for .{wanted} before you change X, or pass a copy of it"
            )


# ---- work on one block of rows, done where that is ----------------------------------------------------------------------


def _norms(block: Block) -> Array:
    squares, lengths = block.squares(), block.lengths
    norms = np.sqrt(squares) * (1 + U * (lengths + 8.0))
    lost = ~((squares >= LEAST_SQUARE) & (squares <= MOST_SQUARE)) & (lengths > 0)
    if lost.any():
        top = block.by_row(np.maximum, lambda values, columns: np.abs(values.astype(np.float64, copy=False)))
        above = np.nextafter(top * np.sqrt(lengths) * (1 + 8 * U), np.inf)  # subnormals are rounded by up to half a unit
        norms[lost] = np.where(top == 0, 0.0, above)[lost]
    return norms


def _nonzeros(block: Block) -> float:
    return float(np.sum(block.by_row(np.add, lambda values, columns: (values != 0).astype(np.float64))))


def _products(block: Block, w: Array, with_norms: bool) -> tuple[Array, Array, Array | None]:
    norms = _norms(block) if with_norms else None  # while the block is in the cache
    if w.ndim == 1:
        return *block.dot(w), norms
    sums, terms = block.dots(w.T)
    return block.drop(sums), terms, norms


def _absolute(block: Block, size: Array) -> Array:
    return block.abs_dot(size)


def _combination(block: Block, q: Array) -> Array:
    return block.weighted(q) if q.ndim == 1 else block.drop(block.combined(block.lift(q)))


def _checksum(block: Block, at_length: bool) -> list[int]:
    return block.checksum(at_length)


def error(absolute: Array, terms: Any) -> Array:
    """A bound on |computed - exact| for a sum of so many products whose absolute values add up to `absolute` (as computed).

    2(k+4)u·fl(Σ|a||w|) is more than γ_k Σ|a||w| for k < 2⁴⁰, by enough for the few operations with the sum that follow; and TINY
    a term is for underflow.
    """
    bound: Array = absolute * ((2.0 * U) * (terms + 4.0))
    bound += (terms + 4.0) * TINY
    return bound


def block_scores(block: Block, W: Array) -> tuple[Any, Any]:
    """Scores, and the additions that a term goes through, both of float64: torch makes float32 of a whole number and a float."""
    sums, terms = block.dots(W)
    terms = block.lift(np.asarray(terms, dtype=np.float64))
    return sums, terms if terms.ndim == 0 else terms[:, None]


def added(x: Any) -> Any:
    """The sum of the rows, of which a term goes through 2·AT_ONCE + rows/AT_ONCE additions at most."""
    whole = len(x) - len(x) % AT_ONCE
    return x[:whole].reshape(-1, AT_ONCE, x.shape[1]).sum(1).sum(0) + x[whole:].sum(0)


def sum_share(rows: int, blocks: int) -> float:
    """What a sum of nonnegative terms over all rows may be off by, as a share of it: a term goes through 2·AT_ONCE + rows/AT_ONCE
    additions in its block (`added`) and one for each block; one that a checker makes is off by 2·SUM_BLOCK roundings."""
    return 2 * U * (2 * AT_ONCE + rows / AT_ONCE + blocks + 4 * SUM_BLOCK)


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
    once: bool = False
    """Whether sums are the floats nearest to the exact ones, which no order of summation changes."""

    @staticmethod
    def of(X: Matrix, w: Array) -> Products:
        """One pass over X, block by block, on all cores; none if it was made for the same w just before."""
        # without X: that would be kept by what it remembers, until garbage is collected
        return Products(X, *X.remembered("products", w, lambda: Products._computed(X, w.copy())))

    @staticmethod
    def _computed(X: Matrix, w: Array) -> tuple[Array, float, Array, Array, Array]:
        (sums, terms), size = X.products(w), length(w)
        absolute = np.empty(X.n)

        def fill(lo: int, hi: int) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                np.multiply(X.norms[lo:hi], size, out=absolute[lo:hi])

        over_rows(fill, X.n)
        return w, size, sums, absolute, terms

    def sharpen(self, rows: Array) -> None:
        """|x_i|·|w| as it is for these rows."""
        if len(rows):
            with np.errstate(over="ignore", invalid="ignore"):
                with ieee_floats():
                    sharper = np.fmin(self.absolute[rows], self.X.absolute(self.w, rows))
                self.absolute[rows] = sharper

    @property
    def rounded_once(self) -> Products | None:
        """The same with the float nearest to each sum, so that its error is that of one term; None where X is too large to
        be read row by row, or a product is beyond the floats."""
        if self.X.seconds_row_by_row > WORTH_ROUNDING_ONCE:
            return None
        sums: Array = self.X.remembered("rounded once", self.w, self._rounded)
        if not np.isfinite(sums).all():
            return None
        return replace(self, sums=sums, absolute=np.abs(sums), terms=np.zeros(self.X.n), once=True)

    def _rounded(self) -> Array:
        return np.concatenate(list(self.X.storage.each_block(_near_scores, (), (self.w,))))

    def scores(self, b: float, signs: Array, slack: float = 1.0, part: slice | Array = ALL) -> tuple[Array, Array]:
        """lo ≤ y_i(x_i·w + b) ≤ hi for every row, or for those of a `part`; infinite where float64 overflows. `slack` widens the
        enclosures."""
        terms = self.terms[part] if self.terms.ndim else self.terms
        with np.errstate(over="ignore", invalid="ignore"):
            radius = error(self.absolute[part] + abs(b), terms + 1.0)
            radius *= slack
            centre = self.sums[part] + b
            centre *= signs[part]
            hi = centre + radius
            lo = np.subtract(centre, radius, out=radius)
            del centre  # as long as X has rows, like the others
            finite = bool(np.isfinite(np.min(lo, initial=0.0) + np.max(hi, initial=0.0)))  # NaN goes through both
        if not finite:
            lo[~np.isfinite(lo)] = -np.inf
            hi[~np.isfinite(hi)] = np.inf
        return lo, hi

    def each(self, work: Callable[[slice, Array, Array], T], b: float, signs: Array, slack: float = 1.0) -> list[T]:
        """work(part, lo, hi) for some rows at a time: for those who want a few numbers of all, and no vector as long as X."""

        def enclosed(first: int, end: int) -> T:
            part = slice(first, end)
            return work(part, *self.scores(b, signs, slack, part))

        return over_rows(enclosed, self.X.n)

    def ends(self, b: float, signs: Array, groups: Groups, slack: float = 1.0) -> list[tuple[float, float]]:
        """The least lo of each group, and the hi of that row, which the least score is at most; infinite where it has no rows."""

        def least(part: slice, lo: Array, hi: Array) -> list[tuple[float, float]]:
            found = []
            for g in range(groups.count):
                own = groups.within(g, part)
                low = lo if own is None else np.where(own, lo, np.inf)
                i = int(np.argmin(low))
                found.append((float(low[i]), float(hi[i]) if low[i] < np.inf else math.inf))
            return found

        return [min(ends) for ends in zip(*self.each(least, b, signs, slack), strict=True)]

    def near(self, levels: list[float], b: float, signs: Array, groups: Groups, slack: float = 1.0) -> list[Array]:
        """The rows of each group whose lo is at most the level of the group."""

        def close(part: slice, lo: Array, hi: Array) -> list[Array]:
            owns = [groups.within(g, part) for g in range(groups.count)]
            below = [lo <= level if own is None else own & (lo <= level) for own, level in zip(owns, levels, strict=True)]
            return [np.flatnonzero(rows) + part.start for rows in below]

        return [np.concatenate(rows) for rows in zip(*self.each(close, b, signs, slack), strict=True)]


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows by group: the number of groups, and the group of each row (negative for one that does not count; None: all in one)."""

    count: int
    of_row: Array | None = None

    def within(self, g: int, part: slice) -> Array | None:
        """Which of the rows of a part are in group g; None if all are."""
        return None if self.of_row is None else self.of_row[part] == g


def exact_score(row: Sequence[Array], w: Array, b: float, sign: int) -> tuple[int, int]:
    """y_i(x_i·w + b) exactly, as m·2^e, for a row given by its columns and values."""
    columns, values = row
    terms = [multiply(dyadic(float(x)), dyadic(float(w[j]))) for j, x in zip(columns, values, strict=True)]
    m, e = add([*terms, dyadic(float(b))])
    return sign * m, e


def near_score(row: Sequence[Array], w: Array, b: float, sign: int) -> float:
    """The same rounded to the nearest float, so that its sign is right; NaN where products are too large or too small.

    `math.fsum` adds up without error.
    """
    columns, x = row
    v = w[columns]
    return sign * math.fsum([*np.stack(_split_products(x[v != 0], v[v != 0])).reshape(-1).tolist(), b])


def _near_scores(block: Block, w: Array) -> Array:
    """The same for the rows of a block, without b and signs."""
    rows, columns, x = block.entries()
    v = w[columns]
    used = (x != 0) & (v != 0)
    terms = np.stack(_split_products(x[used], v[used]), axis=1).reshape(-1).tolist()
    ends = (2 * np.searchsorted(rows[used], np.arange(block.n + 1))).tolist()
    return np.array([math.fsum(terms[lo:hi]) for lo, hi in pairwise(ends)])


def _split_products(x: Array, v: Array) -> tuple[Array, Array]:
    """Each product as a sum of two floats, without error (Dekker); NaN where it is too large or too small for that."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        products = x * v
        (x1, x2), (v1, v2) = _halves(x), _halves(v)  # NaN where a factor is too large, and so is the sum
        errors = x2 * v2 - (((products - x1 * v1) - x2 * v1) - x1 * v2)
        split = (np.abs(products) > LEAST_SPLIT) & (np.abs(products) < 1 / LEAST_SPLIT)
    return np.where(split, products, math.nan), errors


def _halves(x: Array) -> tuple[Array, Array]:
    """x as a sum of two floats of at most 26 digits each."""
    shifted = x * (2.0**27 + 1)
    high = shifted - (shifted - x)
    return high, x - high
