"""The user's X as the checker reads it, and rigorous enclosures of its products with a vector w.

Sums are computed by the storage (`rows.reads`) in plain float64 arithmetic with a known number of operations; this module
bounds their rounding errors. A column that is far from 0 for its spread would make these bounds useless; where b is free, which
makes the origin of X arbitrary, they are about the rows x - o instead (`Matrix.centred`). All arithmetic on the host is done in
threads whose floating-point mode is checked (`floats`), and none by a BLAS, whose threads may be in another mode. (The one
product that `verified` leaves to BLAS has bounds that hold in any mode. On a GPU, sums for several vectors at once are float64
matrix products; `rows.tensors` says what is tested there.)
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from gordan.arrays import MAX_SQUARE, MIN_SQUARE, Array, namespace
from gordan.certificates.bounds import SUM_BLOCK, TINY, add, dyadic, length, multiply, round_near
from gordan.errors import InputError
from gordan.floats import U, ieee_floats
from gordan.rows import Block, Storage, host, nonzero, over_vector

# Claims are made from enclosures whose radius is this many times that of the checker, which may add in another order: the bound
# that the checker finds with its radius r is within 2r of the exact value, and the claim was made with 4r.
CLAIM = 4.0
# From this number of stored entries on, checksums are made by a compiled loop even if no kernel has been compiled yet: data of
# this size needs other kernels as well.
WORTH_COMPILING = 1 << 19
# The measured seconds that a row and an entry take when sums are rounded only once, and the number of seconds that this may take.
SECONDS_PER_ROW, SECONDS_PER_ENTRY, WORTH_ROUNDING_ONCE = 3e-5, 2e-7, 2.0
# Products whose size is above this and below its inverse are split into two floats without error.
MIN_SPLIT = 2.0**-900
# The number of rows that `added` sums up before it adds these partial sums.
ROWS_AT_ONCE = 256
ALL = slice(None)
# A column is centred if its distance from 0 is at least this many times its spread, and more than the constant of the intercept:
# the gap that rounding leaves grows with the square of the distance. For a large distance, as that of timestamps, a smaller ratio
# suffices. Ratios must be at least 1 for differences to be exact.
MIN_OFFSET_RATIO, MIN_OFFSET = 64.0, 1.0
MIN_LARGE_OFFSET_RATIO, LARGE_OFFSET = 2.0, 1e5
# The number of rows in which it is seen whether any column may be that far from 0.
SAMPLED_ROWS = 16
# X is copied if it has at most this many bytes, so that the caller may change it after a proof.
MAX_COPIED_BYTES = 1 << 20
# The vector for which results are remembered that depend on X alone.
ALWAYS = np.empty(0)

T = TypeVar("T")


@dataclass(frozen=True)
class Matrix:
    """The user's X as it is stored, read by blocks of rows. Every stored value is used exactly.

    If there is an `origin`, the rows are x - origin, without error, and the intercept of a plane is another one: `inward` and
    `outward` convert it. If they are `computed`, block by block, the storage has the rows x.
    """

    storage: Storage
    origin: Array | None = field(default=None, compare=False)
    computed: bool = False
    # the last result of each kind, with the vector that it was computed for: a claim and its check need the same results. What
    # is kept here is never changed, and whether it is kept changes only how many passes are needed.
    _last: dict[str, tuple[Array, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.storage.n

    @property
    def d(self) -> int:
        """The number of columns."""
        return self.storage.d

    @property
    def centred(self) -> Matrix:
        """The rows without the offsets of columns that are far from 0 for their spread; the same matrix if there are none."""
        return self if self.origin is not None or self._centred is None else self._centred

    @cached_property
    def _centred(self) -> Matrix | None:
        """The matrix with an origin; None if there is no reason for one, as a look at some rows usually shows."""
        with ieee_floats():
            origin = far_origin(self)
        if origin is None:
            return None
        held = self.storage.minus(origin)
        return Matrix(self.storage, origin, computed=True) if held is None else Matrix(held, origin)

    def inward(self, w: Array, b: Any) -> Any:
        """Return the intercept for these rows of the plane w, b for the user's rows: b + origin·w, rounded once.

        With several planes as columns of w, b has an entry for each. The bounds on scores have room for that rounding (`error`).
        """
        return self._moved(w, b, 1)

    def outward(self, w: Array, b: Any) -> Any:
        """Return the intercept for the user's rows of the plane w, b for these rows: b - origin·w, rounded once."""
        return self._moved(w, b, -1)

    def _moved(self, w: Array, b: Any, sign: int) -> Any:
        if self.origin is None:
            return b
        if w.ndim == 2:
            each = zip(w.T, np.broadcast_to(b, w.shape[1:]).tolist(), strict=True)
            return np.array([self._moved(column, own, sign) for column, own in each])
        used = np.flatnonzero(self.origin)
        shift, own = (sign * self.origin[used]).tolist(), w[used].tolist()
        if not all(map(math.isfinite, (b, *own))):
            return b
        terms = [multiply(dyadic(o), dyadic(x)) for o, x in zip(shift, own, strict=True)]
        return round_near(*add([*terms, dyadic(float(b))]))

    def plane_inward(self, plane: Array) -> Array:
        """Return a plane with b as its last entry, or planes as columns, as `inward` does."""
        return self._moved_plane(plane, 1)

    def plane_outward(self, plane: Array) -> Array:
        """Return a plane with b as its last entry, or planes as columns, as `outward` does."""
        return self._moved_plane(plane, -1)

    def _moved_plane(self, plane: Array, sign: int) -> Array:
        if self.origin is None:
            return plane
        moved = plane.copy()
        moved[-1] = self._moved(plane[:-1], plane[-1], sign)
        return moved

    def relative(self, point: Array) -> Array | None:
        """Return point - origin; None if that is not a float in every column."""
        if self.origin is None:
            return point
        used = np.flatnonzero(self.origin)
        found = point.copy()
        found[used] -= self.origin[used]
        each = zip(*(x[used].tolist() for x in (point, self.origin, found)), strict=True)
        exact = all(math.isfinite(p) and Fraction(p) - Fraction(o) == Fraction(x) for p, o, x in each)
        return found if exact else None

    def stored_for(self, given: Matrix) -> Matrix:
        """Return this matrix if its storage has its rows, else the one of the user."""
        return given if self.computed else self

    def each_block(
        self, work: Any, over_rows: Any = (), shared: Any = (), rows: Array | None = None, **how: Any
    ) -> Iterator[Any]:
        """Yield the results of `work` for blocks of the rows, as `Storage.each_block` does."""
        if self.computed:
            work, shared = _of_differences, (*shared, self.origin, work)
        return self.storage.each_block(work, over_rows, shared, rows, **how)

    @cached_property
    def seconds_row_by_row(self) -> float:
        """An estimate of the seconds that `Products.rounded_once` takes. One pass over X.

        It counts nonzero entries only, so that the decision is the same whether rows are stored as sparse or dense ones, for
        whoever makes a claim and for whoever checks it.
        """
        return float(SECONDS_PER_ROW * self.n + SECONDS_PER_ENTRY * sum(self.each_block(_nonzeros)))

    def remembered(self, kind: str, vector: Array, compute: Callable[[], Any]) -> Any:
        """Return compute(), or its last result for this kind if that was for the same vector."""
        with ieee_floats():
            before = self._last.get(kind)
            if before is not None and _equal(before[0], vector):
                return before[1]
            computed = compute()
        return self._remember(kind, vector, computed)

    def _remember(self, kind: str, vector: Array, computed: T) -> T:
        self._last[kind] = 1 * vector, computed  # a copy of an array or a tensor
        return computed

    @property
    def norms(self) -> Array:
        """Upper bounds on ‖x_i‖, too large by a few units in the last place; not finite where x_i is not.

        One pass over X when they are first needed, unless `products` was called before.
        """
        norms: Array = self.remembered("norms on the host", ALWAYS, lambda: self._on_host(self.norms_in_place))
        return norms

    @property
    def norms_in_place(self) -> Any:
        """The `norms` where the blocks of the rows are."""
        if "norms" not in self._last:
            self._remember("norms", ALWAYS, _joined(self.each_block(_norms)))
        return self._last["norms"][1]

    def _on_host(self, values: Any) -> Array:
        """Return a vector over rows on the host."""
        return values if isinstance(values, np.ndarray) else self.storage.to_host(values)

    def products(self, w: Array, *, in_place: bool = False) -> tuple[Any, Array, Any]:
        """Return X w in float64, the largest number of additions that a term goes through, for each row or for all, and norms.

        w is a vector or a block (d, k), which gives a block (n, k). If `norms` are not remembered, the same pass finds them. The
        products and the norms are on the host or, `in_place`, where the blocks are.
        """
        fresh = "norms" not in self._last
        sums, terms, norms = zip(*self.each_block(_products, (), (np.ascontiguousarray(w.T), fresh)), strict=True)
        if fresh:
            self._remember("norms", ALWAYS, _joined(norms))
        counts, found = np.concatenate(terms) if terms[0].ndim else terms[0], _joined(sums)
        return (found, counts, self.norms_in_place) if in_place else (self._on_host(found), counts, self.norms)

    def absolute(self, w: Array, rows: Array | None = None, *, in_place: bool = False) -> Any:
        """Return |X||w| as computed in float64 for these rows, which are sorted, or for all rows; places as for `products`."""
        found = _joined(self.each_block(_absolute, (), (np.abs(w),), rows))
        return found if in_place else self._on_host(found)

    def combination(self, q: Any, rows: Any | None = None) -> Array:
        """Return Xᵀq in float64 for a vector q or a block (n, k); `rows`, if given, are the rows where q is not 0."""
        total = np.zeros((self.d, *q.shape[1:]))
        used = np.flatnonzero(q if q.ndim == 1 else q.any(axis=1)) if rows is None else rows
        few = 2 * len(used) < self.n  # copying most rows would take longer than adding zeros, which rounds nothing
        with ieee_floats():
            for part in self.each_block(_combination, (q,), (), used if few else None, added=True):
                total += part
        return total

    def checksum(self) -> int:
        """Return a checksum of all that is stored, computed where it is stored. One pass over X."""
        found = self.each_block(_checksum, (), (self._compiles,))
        return zlib.crc32(repr(list(found)).encode())

    @cached_property
    def _compiles(self) -> bool:
        """Whether checksums are made by a compiled loop; decided once, since the other loop gives other checksums."""
        return self.storage.entries >= WORTH_COMPILING or "gordan.rows.kernels" in sys.modules

    def watched(self, given: Any) -> Matrix:
        """Return the same matrix in a form that notices if the caller changes X later (`changed`).

        A small X is copied, of a large one the checksum is remembered. `given` is what the caller passed for X: a storage
        belongs to the caller, who made it, and is not watched.
        """
        if given is self.storage:
            return self
        copied = self.storage.snapshot(MAX_COPIED_BYTES)
        if copied is not None:
            return Matrix(copied)
        self.remembered("checksum", ALWAYS, self.checksum)
        return self

    @property
    def changed(self) -> bool:
        """Whether X differs from what it was when `watched` was called. One pass over X, unless it was copied."""
        return "checksum" in self._last and self.checksum() != self._last["checksum"][1]

    def require_unchanged(self, wanted: str) -> None:
        """Raise an InputError if X has changed, which says that `wanted` (the name of an attribute) cannot be had any more."""
        if self.changed:
            raise InputError(
                f"X was changed after it was read, so there is no {wanted} of what it was; "
                f"ask for .{wanted} before you change X, or pass a copy of it"
            )


def far_origin(X: Matrix) -> Array | None:
    """Return the entry nearest to 0 of each column that is far from 0 for its spread, and 0 for the others; None if all are 0.

    Then all entries of a column are between o and 2o, so that x - o is exact (Sterbenz). The entry does not depend on the order
    or the storage of the rows, and a column that is far from 0 is so in any part of the rows: whoever makes a claim and whoever
    checks it, perhaps without rows that do not count, subtract much the same.
    """
    storage, columns, low, high = X.storage, None, np.empty(0), np.empty(0)
    scattered = storage.in_memory or storage.mapped or storage.on_device  # elsewhere, reading single rows may read everything
    sample = np.arange(min(SAMPLED_ROWS, X.n))
    for _, own, values in storage.each_row(np.unique(sample * (X.n - 1) // max(1, len(sample) - 1)) if scattered else sample):
        if columns is None:
            columns, low, high = own, values, values
        _, here, there = np.intersect1d(columns, own, assume_unique=True, return_indices=True)
        values = values[there]
        columns, low, high = columns[here], np.minimum(low[here], values), np.maximum(high[here], values)
        far = _nearest_if_far(low, high) != 0
        columns, low, high = columns[far], low[far], high[far]
        if not len(columns):
            return None
    assert columns is not None
    lows, highs = zip(*X.each_block(_extremes, (), (columns,)), strict=True)
    nearest = _nearest_if_far(np.min(lows, axis=0), np.max(highs, axis=0))
    if not nearest.any():
        return None
    origin = np.zeros(X.d)
    origin[columns] = nearest
    return origin


def _nearest_if_far(low: Array, high: Array) -> Array:
    """Return the end nearest to 0 of each interval, or 0 if it is not far from 0 for the length; NaN is not."""
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = np.where(low > 0, low, high)
        distance = np.abs(nearest)
        ratio = np.where(distance >= LARGE_OFFSET, MIN_LARGE_OFFSET_RATIO, MIN_OFFSET_RATIO)
        return np.where((distance > MIN_OFFSET) & (distance >= ratio * (high - low)), nearest, 0.0)


# ---- work on one block of rows, done where the block is stored ----------------------------------------------------------


def _of_differences(block: Block, *given: Any) -> Any:
    """Return what the work, the last argument, returns for the rows x - o; o is the last argument but one."""
    *given, origin, work = given  # type: ignore[assignment]
    return work(block.minus(origin), *given)


def _extremes(block: Block, columns: Array) -> tuple[Array, Array]:
    """Return the least and the greatest entries of these columns."""
    return block.extremes(columns)


def _joined(parts: Iterable[Any]) -> Any:
    """Return the vectors over the rows of all blocks as one, where they are."""
    parts = list(parts)
    return namespace(parts[0]).concatenate(parts) if parts else np.empty(0)


def _equal(x: Any, y: Any) -> bool:
    """Return whether two vectors are equal, and in the same place."""
    return type(x) is type(y) and bool(np.array_equal(x, y) if isinstance(x, np.ndarray) else namespace(x).equal(x, y))


def _norms(block: Block) -> Any:
    """Return upper bounds on the norms of the rows: √(Σx²), or √k max|x| for k entries if squares may overflow or underflow."""
    squares, lengths = block.squares(), block.lengths
    # a sum of k squares goes through at most k roundings, and its root has half of that relative error and one rounding
    norms = namespace(squares).sqrt(squares) * (1 + U * (lengths + 8.0))
    lost = ~((squares >= MIN_SQUARE) & (squares <= MAX_SQUARE))
    if lost.any():
        few = block.only(block.to_host(namespace(lost).where(lost)[0]))
        top = few.by_row(np.maximum, lambda values, columns: np.abs(values.astype(np.float64, copy=False)))
        above = np.nextafter(top * np.sqrt(few.lengths) * (1 + 8 * U), np.inf)  # subnormals are rounded by up to half a unit
        norms[lost] = block.to_storage_f64(np.where(top == 0, 0.0, above))
    return norms


def _nonzeros(block: Block) -> float:
    """Return the number of nonzero entries."""
    return float(np.sum(block.by_row(np.add, lambda values, columns: (values != 0).astype(np.float64))))


def _products(block: Block, w: Array, with_norms: bool) -> tuple[Any, Array, Any | None]:
    """Return the products with w, or with the rows of w, the additions per term, and the norms of the rows if asked for."""
    norms = _norms(block) if with_norms else None  # while the block is in the cache
    return *(block.dot(w) if w.ndim == 1 else block.dots(w.T)), norms


def _absolute(block: Block, size: Array) -> Any:
    """Return |x_i|·size for each row."""
    return block.abs_dot(size)


def _combination(block: Block, q: Any) -> Array:
    """Return Σ q_i x_i over the rows of the block, for a vector or a block of weights q."""
    return block.weighted(q) if q.ndim == 1 else block.to_host(block.combined(block.to_storage_f64(q)))


def _checksum(block: Block, compiled: bool) -> list[int]:
    """Return the checksums of what the block stores."""
    return block.checksum(compiled)


def error(absolute: Array, terms: Any) -> Array:
    """Return a bound on |computed - exact| for a sum of k = `terms` products with absolute values that add up to `absolute`.

    `absolute` is itself a computed sum. For k < 2⁴⁰ the bound 2(k+4)u·fl(Σ|a||w|) exceeds γ_k Σ|a||w|, with γ_k = ku/(1-ku), by
    enough to cover the few operations with the sum that follow, and one rounding of a term before: that of an intercept by
    `Matrix.inward`. TINY per term covers underflow.
    """
    bound: Array = absolute * ((2.0 * U) * (terms + 4.0))
    bound += (terms + 4.0) * TINY
    return bound


def for_blocks(X: Matrix, W: Array) -> Array:
    """Return W in the order in which blocks of X multiply: dense rows in memory by one column after the other, others by all."""
    return np.asarray(W, order="F" if X.storage.is_array else "C")


def block_scores(block: Block, W: Array) -> tuple[Any, Any]:
    """Return the scores of the rows for each column of W, and the number of additions that a term goes through, both float64."""
    sums, terms = block.dots(W)
    terms = block.to_storage_f64(np.asarray(terms, dtype=np.float64))  # torch would make float32 of an integer and a float
    return sums, terms if terms.ndim == 0 else terms[:, None]


def added(x: Any) -> Any:
    """Return the sum of the rows of x; a term goes through at most 2·ROWS_AT_ONCE + rows/ROWS_AT_ONCE additions."""
    whole = len(x) - len(x) % ROWS_AT_ONCE
    return x[:whole].reshape(-1, ROWS_AT_ONCE, x.shape[1]).sum(1).sum(0) + x[whole:].sum(0)


def sum_share(rows: int, blocks: int) -> float:
    """Return a bound on the relative error of a sum of nonnegative terms over all rows.

    A term goes through 2·ROWS_AT_ONCE + rows/ROWS_AT_ONCE additions within its block (`added`) and one for each block. The sum
    that a checker computes in another way is off by 2·SUM_BLOCK roundings.
    """
    return 2 * U * (2 * ROWS_AT_ONCE + rows / ROWS_AT_ONCE + blocks + 4 * SUM_BLOCK)


@dataclass(frozen=True, eq=False)
class Products:
    """The products X w as computed, with everything that is needed to enclose the scores X w + b for any b.

    `length` is an upper bound on ‖w‖, `absolute` one on |x_i|·|w| up to rounding, and `terms` is the number of additions that a
    term goes through. |x_i|·|w| ≤ ‖x_i‖‖w‖ needs no further pass over X; `sharpened` has |x_i|·|w| itself for rows where that
    bound is too wide. `once` tells whether the sums are the floats nearest to the exact ones, which do not depend on the order
    of summation. Vectors over rows are on the host or, `in_place`, where the blocks of X are.
    """

    X: Matrix
    w: Array
    length: float
    sums: Any
    absolute: Any
    terms: Array
    once: bool = False

    @staticmethod
    def of(X: Matrix, w: Array, *, in_place: bool = False) -> Products:
        """Return the products with w: one pass over X on all cores, or none if the last call was for the same w."""
        w, in_place = np.asarray(w, dtype=np.float64), in_place and X.storage.proves_on_device
        kind = "products in place" if in_place else "products"
        # X is left out of what X remembers, since the cycle would keep X in memory until garbage is collected
        return Products(X, *X.remembered(kind, w, lambda: Products._computed(X, w.copy(), in_place)))

    @staticmethod
    def _computed(X: Matrix, w: Array, in_place: bool) -> tuple[Array, float, Any, Any, Array]:
        """Return the attributes of the products with w other than X."""
        (sums, terms, norms), size = X.products(w, in_place=in_place), length(w)
        xp = namespace(norms)
        absolute = xp.empty_like(norms)

        def fill(lo: int, hi: int) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                xp.multiply(norms[lo:hi], size, out=absolute[lo:hi])

        over_vector(fill, norms)
        return w, size, sums, absolute, terms

    def sharpened(self, rows: Array | None = None) -> Products:
        """Return the products with |x_i|·|w| itself, where it is smaller than its bound, for these rows or for all of them.

        The rows are sorted. If the last call was for the same rows and w, the sums are not computed again.
        """
        if rows is None:
            kind = "sharpened" if isinstance(self.sums, np.ndarray) else "sharpened in place"
            return replace(self, absolute=self.X.remembered(kind, self.w, self._sharper))
        if not len(rows):
            return self
        absolute, key = 1.0 * self.absolute, np.concatenate((rows, self.w))
        kind = "sharpened rows" if isinstance(self.sums, np.ndarray) else "sharpened rows in place"
        absolute[self._at(rows)] = self.X.remembered(kind, key, lambda: self._sharper(rows))
        return replace(self, absolute=absolute)

    def _at(self, part: slice | Array) -> Any:
        """Return a part of the rows as the vectors over them are indexed with."""
        return part if isinstance(part, slice) or isinstance(self.sums, np.ndarray) else self.X.storage.to_blocks(part)

    def _sharper(self, rows: Array | None = None) -> Any:
        bounds = self.absolute if rows is None else self.absolute[self._at(rows)]
        found = self.X.absolute(self.w, rows, in_place=not isinstance(bounds, np.ndarray))
        with np.errstate(over="ignore", invalid="ignore"):
            return namespace(bounds).fmin(bounds, found)

    @property
    def rounded_once(self) -> Products | None:
        """The products with each sum rounded only once, to the nearest float.

        None if X is too large to be read row by row, or if a product is too large or too small to be split without error.
        """
        if self.X.seconds_row_by_row > WORTH_ROUNDING_ONCE:
            return None
        sums: Array = self.X.remembered("rounded once", self.w, self._rounded)
        if not np.isfinite(sums).all():
            return None
        return replace(self, sums=sums, absolute=np.abs(sums), terms=np.zeros(self.X.n), once=True)

    def _rounded(self) -> Array:
        """Return the float nearest to each product x_i·w; NaN as in `near_score`."""
        return np.concatenate(list(self.X.each_block(_near_scores, (), (self.w,))))

    def scores(self, b: float, signs: Any, slack: float = 1.0, part: slice | Array = ALL) -> tuple[Any, Any]:
        """Return lo and hi with lo ≤ y_i(x_i·w + b) ≤ hi for every row, or for the rows of a `part`.

        The radius of the enclosures is multiplied by `slack`. They are infinite where float64 overflows. The signs are where the
        products are.
        """
        xp, part = namespace(self.sums), self._at(part)
        terms = self.terms[part] if self.terms.ndim else self.terms
        with np.errstate(over="ignore", invalid="ignore"):
            radius = error(self.absolute[part] + abs(b), terms + 1.0)
            radius *= slack
            centre = self.sums[part] + b
            centre *= signs[part]
            hi = centre + radius
            lo = xp.subtract(centre, radius, out=radius)
            del centre  # frees a vector with an entry for each row
            finite = not len(lo) or math.isfinite(float(lo.min()) + float(hi.max()))  # both are NaN if there is one
        if not finite:
            lo[~xp.isfinite(lo)] = -np.inf
            hi[~xp.isfinite(hi)] = np.inf
        return lo, hi

    def each(self, work: Callable[[slice, Any, Any], T], b: float, signs: Any, slack: float = 1.0) -> list[T]:
        """Return work(part, lo, hi) for each of several slices of the rows, so that no vector over all rows is made."""

        def enclosed(first: int, end: int) -> T:
            part = slice(first, end)
            return work(part, *self.scores(b, signs, slack, part))

        return over_vector(enclosed, self.sums)

    def ends(
        self, b: float, signs: Any, groups: Groups, slack: float = 1.0, rows: Array | None = None
    ) -> list[tuple[float, float]]:
        """Return for each group an enclosure of its lowest score: the least lo, and the hi of that row; ∞ for an empty group.

        `rows`, if given, are a few rows among which the lowest ones are known to be.
        """

        def least(part: slice | Array, lo: Any, hi: Any) -> list[tuple[float, float]]:
            found = []
            for g in range(groups.count):
                own = groups.within(g, self._at(part))
                low = lo if own is None else namespace(lo).where(own, lo, math.inf)
                i = int(low.argmin())
                found.append((float(low[i]), float(hi[i]) if low[i] < np.inf else math.inf))
            return found

        if rows is not None:
            return least(rows, *self.scores(b, signs, slack, rows))
        return [min(ends) for ends in zip(*self.each(least, b, signs, slack), strict=True)]

    def near(self, levels: list[float], b: float, signs: Any, groups: Groups, slack: float = 1.0) -> list[Array]:
        """Return the rows of each group whose lo is at most the level of that group, on the host."""

        def close(part: slice, lo: Any, hi: Any) -> list[Array]:
            owns = [groups.within(g, part) for g in range(groups.count)]
            below = [lo <= level if own is None else own & (lo <= level) for own, level in zip(owns, levels, strict=True)]
            return [host(nonzero(rows)) + part.start for rows in below]

        return [np.concatenate(rows) for rows in zip(*self.each(close, b, signs, slack), strict=True)]


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of the rows: the number of groups and the group of each row, negative for a row that does not count.

    `of_row`, which is where the products are that are asked for the ends of groups, is None if all rows are in one group.
    """

    count: int
    of_row: Any | None = None

    def within(self, g: int, part: Any) -> Any | None:
        """Return a mask of the rows of a part that are in group g; None if all rows are in one group."""
        return None if self.of_row is None else self.of_row[part] == g


def exact_score(row: Sequence[Array], w: Array, b: float, sign: int) -> tuple[int, int]:
    """Return integers m and e with y_i(x_i·w + b) = m·2^e exactly, for a row given by its columns and values."""
    columns, values = row
    terms = [multiply(dyadic(float(x)), dyadic(float(w[j]))) for j, x in zip(columns, values, strict=True)]
    m, e = add([*terms, dyadic(float(b))])
    return sign * m, e


def near_score(row: Sequence[Array], w: Array, b: float, sign: int) -> float:
    """Return y_i(x_i·w + b) rounded to the nearest float, so that its sign is right, for a row given by its columns and values.

    Each product is split into two floats without error, and `math.fsum` rounds their sum once. NaN if a product is too large or
    too small to be split.
    """
    columns, x = row
    v = w[columns]
    return sign * math.fsum([*np.stack(_split_products(x[v != 0], v[v != 0])).reshape(-1).tolist(), b])


def _near_scores(block: Block, w: Array) -> Array:
    """Return x_i·w rounded to the nearest float for each row of a block; NaN as in `near_score`."""
    rows, columns, x = block.entries()
    v = w[columns]
    used = (x != 0) & (v != 0)
    terms = np.stack(_split_products(x[used], v[used]), axis=1).reshape(-1).tolist()
    ends = (2 * np.searchsorted(rows[used], np.arange(block.n + 1))).tolist()
    return np.array([math.fsum(terms[lo:hi]) for lo, hi in pairwise(ends)])


def _split_products(x: Array, v: Array) -> tuple[Array, Array]:
    """Return each product as a sum of two floats, without error (Dekker); NaN if it is too large or too small for that."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        products = x * v
        (x1, x2), (v1, v2) = _halves(x), _halves(v)  # a factor that is too large gives NaN here and in the sum
        errors = x2 * v2 - (((products - x1 * v1) - x2 * v1) - x1 * v2)
        split = (np.abs(products) > MIN_SPLIT) & (np.abs(products) < 1 / MIN_SPLIT)
    return np.where(split, products, math.nan), errors


def _halves(x: Array) -> tuple[Array, Array]:
    """Return two floats with at most 26 significant bits each whose sum is x (Veltkamp's splitting)."""
    shifted = x * (2.0**27 + 1)
    high = shifted - (shifted - x)
    return high, x - high
