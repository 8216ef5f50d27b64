"""Rows in memory, dense or CSR: the same passes over two sets of kernels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any

import numpy as np

from gordan.arrays import Array, aligned, read_only
from gordan.blas import blas_threads, ensure_blas_memory
from gordan.floats import ieee_floats
from gordan.memory import fits
from gordan.rows import reads
from gordan.rows.mapped import FILE_CHUNK_BYTES, in_order, in_waves, is_large_file, is_mapped
from gordan.rows.reads import DenseBlock, SparseBlock, csr_rows
from gordan.rows.storage import Storage, Sums, sums_of, widest
from gordan.rows.threads import MIN_CHUNK_TIMES_D, available, chunks, even_ranges, run

# If less than this share of the rows of a file has nonzero weight, the others are skipped rather than read in sequence.
SKIP_BELOW_SHARE = 0.05
# If at least this share of the rows of a file is taken, they are collected in one pass instead of one seek each.
TAKE_BY_PASS_SHARE = 0.01
# Upper bound on the bytes of partial sums that wait to be merged.
MAX_PARTIAL_SUM_BYTES = 1 << 26
# Upper bound on the entries of the copies from which a Gram matrix is computed.
GRAM_BLOCK = 1 << 21
# Gram matrices of sparse rows are computed from dense copies, which is faster, if at least one entry in this many is nonzero.
DENSE_GRAM_RATIO = 20
# The number of entries of a piece of rows that is multiplied with a block of vectors at a time, so that it stays in the cache.
PIECE_ENTRIES = 1 << 18
# A piece for second moments has at least min(d, this many) rows, so that adding up the d × d products costs less than making
# them.
MIN_PIECE_ROWS = 1024
# Second moments of sparse rows are computed from dense copies if at least one entry in this many is nonzero: the loop over pairs
# of stored entries takes this ratio squared times as long per pair as BLAS.
DENSE_MOMENTS_RATIO = 3
# The number of entries that are checked for finiteness at a time, which bounds the memory of the mask.
FINITE_CHECK_ENTRIES = 1 << 20
# What kernels take for a uniform log p_0.
UNIFORM = np.zeros(1)


@cache
def _kernel(kind: str, name: str) -> Any:
    """Return the compiled loop of a pass, whose first arguments are the arrays; numba is slow to import, so not before."""
    from gordan.rows import kernels

    return getattr(kernels, f"{kind}_{name}")


class _Memory(Storage):
    """The passes over rows in memory, with the kernels and arrays of a subclass."""

    names: list[str] | None = None  # of the columns, for messages
    block: Any  # rows lo..hi-1 as proofs read them
    row: Any  # columns and float64 values of the nonzero entries of a row
    spread: Any  # rows lo..hi-1 as a dense array
    _piece: Any  # rows lo..hi-1 in float64, or as SciPy's CSR if sparse
    _position: Any  # row and column of the k-th stored entry
    _with_arrays: Any  # the same rows over other arrays
    _minus: Any  # the stored entries minus those of a vector over columns

    def __init__(self, arrays: tuple[Array, ...], n: int, d: int) -> None:
        self.arrays, self.n, self.d = arrays, n, d
        self.entries, self.dtype = max(1, arrays[0].size), arrays[0].dtype
        self.mapped = is_mapped(arrays[0])
        self.on_disk = is_large_file(arrays)  # its rows should be visited in the order of the file
        self.in_memory = not self.on_disk
        self._norms: dict[float, Array] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= {"_norms": {}} | state | {"arrays": tuple(map(read_only, map(aligned, state["arrays"])))}

    def __sizeof__(self) -> int:
        """Return the bytes of the arrays, by which Dask's scheduler decides to send work to rows, not rows to work."""
        return sum(int(array.nbytes) for array in self.arrays)

    @cached_property
    def _one_group(self) -> Array:
        """What kernels take for groups if there is only one."""
        return np.zeros(self.n, np.int8)

    @cached_property
    def _ranges(self) -> list[tuple[int, int]]:
        # a file has many small chunks, so that all threads read near each other
        least = 1
        if self.on_disk:
            least = min(sum(array.nbytes for array in self.arrays) // FILE_CHUNK_BYTES, MAX_PARTIAL_SUM_BYTES // (16 * self.d))
        return chunks(self.n, self.d, self.entries, least)

    def _run(self, work: Any, threads: int) -> list[Any]:
        """Return `work` of all chunks, done in the order of the file."""
        return in_order(work, self.arrays, self._ranges, threads)

    def _by_products(self, work: Any, ranges: list[tuple[int, int]], threads: int) -> list[Any]:
        """Return `work`, which multiplies matrices, of these ranges; with several ranges, BLAS is held to one thread."""

        def part(lo: int, hi: int) -> Any:
            ensure_blas_memory()
            return work(lo, hi)

        with blas_threads(0 if len(ranges) > 1 else self.entries * self.d):
            return in_order(part, self.arrays, ranges, threads)

    def scores(self, w: Array, b: float | Array, signs: Array, threads: int) -> Array:
        scores = np.empty((self.n, *w.shape[1:]))
        if w.ndim == 2:

            def products(lo: int, hi: int) -> None:
                for start, stop in self._pieces(lo, hi):
                    scores[start:stop] = (self._piece(start, stop) @ w + b) * signs[start:stop, None]

            self._by_products(products, self._ranges, threads)
            return scores
        kernel = _kernel(self.kind, "scores")
        self._run(lambda lo, hi: kernel(*self.arrays, w, b, signs, lo, hi, scores), threads)
        return scores

    def combine(self, q: Array, threads: int) -> Array:
        if q.ndim == 2:
            most = min(len(self._ranges), MAX_PARTIAL_SUM_BYTES // (8 * self.d * q.shape[1]))
            return _sum(self._by_products(lambda lo, hi: self._combined(q, lo, hi), even_ranges(self.n, most), threads))
        kernel = _kernel(self.kind, "combine")

        def part(lo: int, hi: int) -> Array:
            acc = np.zeros(self.d)
            kernel(*self.arrays, q, lo, hi, acc)
            return acc

        skips = self.on_disk and np.count_nonzero(q) < SKIP_BELOW_SHARE * self.n  # then nothing is read ahead
        return _sum(run(part, self._ranges, threads) if skips else self._run(part, threads))

    def _combined(self, q: Array, lo: int, hi: int) -> Array:
        """Return Xᵀq of the rows lo..hi-1, for a block q."""
        total = np.zeros((self.d, q.shape[1]))
        for start, stop in self._pieces(lo, hi):
            if q[start:stop].any():  # other rows are not read
                total += self._piece(start, stop).T @ q[start:stop]
        return total

    def curved(self, w: Array, b: float, h: Array, threads: int) -> tuple[Array, float]:
        q, kernel = np.empty(self.n), _kernel(self.kind, "curved")

        def part(lo: int, hi: int) -> Array:
            acc = np.zeros(self.d)
            kernel(*self.arrays, w, b, h, lo, hi, q, acc)
            return acc

        return _sum(self._run(part, threads)), float(np.sum(q))

    def reduce(self, work: Any, over_rows: Any, shared: Any, threads: int, *, rough: bool = False) -> list[Array]:
        wide = widest(shared)
        rows = max(1, min(PIECE_ENTRIES * self.n // self.entries, PIECE_ENTRIES // wide))
        kind = np.dtype(np.float32 if rough and not self.sparse and self.dtype.itemsize < 8 else np.float64)

        def fits(values: Any) -> Any:
            narrow = kind.itemsize < 8 and isinstance(values, np.ndarray) and values.dtype == np.float64
            return values.astype(kind) if narrow else values

        def piece(of: slice, there: Any) -> Any:
            found = work(self._piece(of.start, of.stop, kind), *(fits(values[of]) for values in over_rows), *there)
            return found if kind.itemsize == 8 else tuple(values.astype(np.float64) for values in found)

        def part(lo: int, hi: int) -> list[Array]:
            with np.errstate(over="ignore", invalid="ignore"):
                there = [fits(values) for values in shared]
                return sums_of(piece(slice(start, min(start + rows, hi)), there) for start in range(lo, hi, rows))

        most = min(len(self._ranges), max(1, MAX_PARTIAL_SUM_BYTES // (8 * self.d * wide)))
        found = sums_of(self._by_products(part, even_ranges(self.n, most), threads))
        if kind.itemsize < 8 and not all(np.isfinite(values).all() for values in found):  # too large for float32
            return self.reduce(work, over_rows, shared, threads)
        return found

    def second_moments(self, q: Array, threads: int) -> Array:
        """Return Σ q x xᵀ, from as many ranges as there is room for their d × d matrices."""
        room = max(MAX_PARTIAL_SUM_BYTES, sum(array.nbytes for array in self.arrays) // 4) // (8 * self.d * self.d)
        ranges = even_ranges(self.n, min(len(chunks(self.n, 0, self.entries)), room))
        root = np.sqrt(q)
        return _sum(self._by_products(lambda lo, hi: self._moments_of_range(root, lo, hi), ranges, threads))

    def _moments_of_range(self, root: Array, lo: int, hi: int) -> Array:
        """Return Σ q x xᵀ of the rows lo..hi-1 for q = root², by products of matrices."""
        total = np.zeros((self.d, self.d))
        for start, stop in self._pieces(lo, hi, min(self.d, MIN_PIECE_ROWS)):
            used = np.flatnonzero(root[start:stop])
            if len(used):
                block, weights = self.spread(start, stop), root[start:stop, None]
                if len(used) < stop - start:
                    block, weights = block[used], weights[used]
                y = np.multiply(block, weights, dtype=np.float64)
                total += y.T @ y  # BLAS does half the work for a matrix times itself
        return total

    def _pieces(self, lo: int, hi: int, least: int = 1) -> Iterator[tuple[int, int]]:
        """Return ranges of at least `least` of the rows lo..hi-1 whose float64 copies stay in the cache."""
        step = max(least, PIECE_ENTRIES * self.n // self.entries)
        return ((start, min(start + step, hi)) for start in range(lo, hi, step))

    def softmin(
        self, v: Array, b: Array, signs: Array, scale: float, log_p0: Array | None, groups: Array | None, threads: int
    ) -> tuple[Sums, Array]:
        scores = np.empty((len(v), self.n))
        kernel = _kernel(self.kind, "softmin")
        log_p0 = UNIFORM if log_p0 is None else log_p0
        count, groups = (1, self._one_group) if groups is None else (2, groups)

        def part(lo: int, hi: int) -> Sums:
            sums = Sums(np.empty((len(v), 5, count)), np.empty((len(v), count, self.d)))
            kernel(*self.arrays, v, b, signs, scale, log_p0, groups, lo, hi, scores, *sums)
            return sums

        if len(self._ranges) == 1:  # for small data the overhead of a call matters
            return part(0, self.n), scores
        return Sums.merged(self._run(part, threads)), scores

    def norms(self, p: float, threads: int) -> Array:
        if p not in self._norms:  # used for R first, then for the squares
            norms = np.empty(self.n)
            kernel = _kernel(self.kind, "norms")
            self._run(lambda lo, hi: kernel(*self.arrays, float(p), lo, hi, norms), threads)
            self._norms[p] = read_only(norms)
        return self._norms[p]

    def knows_norms(self, p: float) -> bool:
        return self.on_disk and p in self._norms

    def first_not_finite(self) -> tuple[int, int, float] | None:
        values = self.arrays[0].reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(np.sum(values)):  # a sum with a term that is not finite is not finite
                return None
        for start in range(0, len(values), FINITE_CHECK_ENTRIES):
            bad = np.flatnonzero(~np.isfinite(values[start : start + FINITE_CHECK_ENTRIES]))
            if len(bad):
                k = start + int(bad[0])
                return *self._position(k), float(values[k])
        return None

    # ---- reads for proofs --------------------------------------------------------------------------------------------

    def each_block(
        self, work: Any, over_rows: Any = (), shared: Any = (), rows: Array | None = None, *, step: int = 0, added: bool = False,
        first: int = 0,
    ) -> Iterator[Any]:  # fmt: skip
        """Yield the results as `Storage` says; `first` is the number of the first row if this is a part of X."""
        # results that are added up may have d entries each, which must cost less than the entries of the block
        block_entries = max(reads.BLOCK_ENTRIES, MIN_CHUNK_TIMES_D * self.d if added and self.sparse else 0)
        size = step or max(1, block_entries // max(1, self.entries // max(1, self.n)))
        if rows is None and 0 < self.n <= size and not step and not self.on_disk:  # for small data the overhead of a call matters
            with ieee_floats(), np.errstate(over="ignore", invalid="ignore"):
                return iter([work(self.block(0, self.n, first), *over_rows, *shared)])
        ends = [0, *range(size - (first % size if step else 0), self.n, size), self.n]
        cuts = ends if rows is None else np.searchsorted(rows, ends).tolist()
        own = {ends[k]: slice(cuts[k], cuts[k + 1]) for k in range(len(ends) - 1) if cuts[k] < cuts[k + 1]}
        ranges = [(ends[k], ends[k + 1]) for k in range(len(ends) - 1) if ends[k] in own]

        def part(lo: int, hi: int) -> Any:
            selected: Any = own[lo] if rows is None else rows[own[lo]]
            with ieee_floats(), np.errstate(over="ignore", invalid="ignore"):
                block = self.block(lo, hi, first)
                if rows is not None and len(selected) < hi - lo:
                    block = block.only(selected - lo)
                return work(block, *(values[selected] for values in over_rows), *shared)

        threads = available() if self.entries >= reads.MIN_ENTRIES_FOR_THREADS else 1
        return in_waves(part, self.arrays, ranges, threads, 4 * threads)

    def each_row(self, rows: Any) -> Iterator[tuple[int, Array, Array]]:
        return ((int(i), *self.row(i)) for i in rows)

    def squared(self) -> Any:
        """Return the rows with the squares of all entries, in float64."""
        return self._with_arrays(np.square(self.arrays[0], dtype=np.float64), *self.arrays[1:])

    def snapshot(self, most: int) -> Any:
        if self.__sizeof__() > most:
            return None
        return self._renamed(self._with_arrays(*(array.copy() for array in self.arrays)))

    @ieee_floats()
    def minus(self, origin: Array) -> Any:
        if self.on_disk or not fits(self.arrays[0].nbytes):
            return None
        return self._renamed(self._with_arrays(self._minus(origin.astype(self.dtype)), *self.arrays[1:]))

    def _renamed(self, rows: Any) -> Any:
        rows.names = self.names
        return rows


class Dense(_Memory):
    """The rows of a C-contiguous float32 or float64 array."""

    kind, sparse = "dense", False

    def __init__(self, X: Array) -> None:
        # A read-only view: the input is never written to, and arrays and read-only memory maps share one compiled kernel.
        X = np.asarray(X).view(np.ndarray)
        X.flags.writeable = False
        super().__init__((X,), *X.shape)

    def take(self, i: Array) -> Dense:
        if not self.on_disk or len(i) < TAKE_BY_PASS_SHARE * self.n:
            return Dense(self.arrays[0][i])
        order = np.argsort(i, kind="stable")  # collected in one pass through the file
        cuts = np.searchsorted(i[order], [lo for lo, _ in self._ranges] + [self.n])
        taken = np.empty((len(i), self.d), self.dtype)
        places = {lo: order[cuts[k] : cuts[k + 1]] for k, (lo, _) in enumerate(self._ranges)}

        def part(lo: int, hi: int) -> None:
            taken[places[lo]] = self.arrays[0][i[places[lo]]]

        self._run(part, available())
        return Dense(taken)

    def gram(self, i: Array, j: Array, scale: float, weights: Array | None = None) -> Array:
        """Return the products, computed by blocks of columns so that rows are not copied as a whole."""
        ensure_blas_memory()
        X = self.arrays[0]
        step = max(1, GRAM_BLOCK // max(1, len(i) + len(j)))

        def product(lo: int) -> Array:
            # the scale first: it brings the entries near 1, so that products do not overflow
            left = np.multiply(X[i, lo : lo + step], scale, dtype=np.float64)
            right = left if i is j else np.multiply(X[j, lo : lo + step], scale, dtype=np.float64)
            return (left if weights is None else left * weights[lo : lo + step]) @ right.T

        products = product(0)
        for lo in range(step, self.d, step):
            products += product(lo)
        return products

    def spread(self, lo: int = 0, hi: int | None = None) -> Array:
        """Return rows lo..hi-1 as a dense array."""
        rows: Array = self.arrays[0][lo:hi]
        return rows

    def _piece(self, lo: int = 0, hi: int | None = None, kind: Any = np.float64) -> Array:
        return self.spread(lo, hi).astype(kind, copy=False)

    plain = _piece

    def block(self, lo: int, hi: int, first: int = 0) -> DenseBlock:
        """Return rows lo..hi-1 as proofs read them."""
        return DenseBlock(self.arrays[0][lo:hi], first + lo)

    def row(self, i: int) -> tuple[Array, Array]:
        """Return columns and float64 values of the nonzero entries of row i."""
        values = self.arrays[0][i].astype(np.float64)
        columns = np.flatnonzero(values)
        return columns, values[columns]

    def _with_arrays(self, X: Array) -> Dense:
        return Dense(X)

    def _minus(self, origin: Array) -> Array:
        return np.subtract(self.arrays[0], origin)

    def columns(self, j: Array) -> Array:
        """Return the columns j in float64."""
        return np.asarray(self.arrays[0][:, j], dtype=np.float64)

    def _position(self, k: int) -> tuple[int, int]:
        return divmod(k, self.d)


class Sparse(_Memory):
    """The rows of a CSR matrix with float32 or float64 data.

    Column numbers increase along a row (`accept` ensures it), so that every entry is stored once, as norms require. Explicit
    zeros are allowed.
    """

    kind, sparse = "sparse", True

    def __init__(self, data: Array, indices: Array, indptr: Array, d: int) -> None:
        # Unsigned 32-bit indices are read in half the time of 64-bit ones, and kernels need not test them for negative values.
        columns, ends = (np.uint32 if most < 2**32 else np.int64 for most in (d, len(data)))
        arrays = data, _indices(indices, columns), _indices(indptr, ends)
        super().__init__(tuple(map(read_only, arrays)), len(indptr) - 1, d)

    def take(self, i: Array) -> Sparse:
        """Copy the rows i: solvers take some at every step, and for few rows SciPy's checks would take longer than the copy."""
        data, indices, indptr = self.arrays
        rows, ends = np.array(i, dtype=np.intp), np.zeros(len(i) + 1, np.int64)
        np.cumsum(indptr[rows + 1] - indptr[rows], out=ends[1:])
        taken, columns = np.empty(ends[-1], data.dtype), np.empty(ends[-1], indices.dtype)
        _kernel(self.kind, "take")(*self.arrays, rows, ends, taken, columns)
        return Sparse(taken, columns, ends, self.d)

    def narrowed(self, i: Array) -> Sparse:
        """Return the rows i without the columns that they do not use."""
        taken = self.take(i)
        data, indices, indptr = taken.arrays
        used = np.zeros(self.d, dtype=bool)
        used[indices] = True
        places = np.cumsum(used) - 1
        return Sparse(data, places[indices], indptr, int(places[-1]) + 1)

    def gram(self, i: Array, j: Array, scale: float, weights: Array | None = None) -> Array:
        """Return the products, computed by blocks of rows j that are made dense."""
        left = self.take(i).csr() * scale
        if left.nnz * DENSE_GRAM_RATIO >= len(i) * self.d and left.shape[0] * self.d <= GRAM_BLOCK:
            left = left.toarray()
        right = left if i is j else self.take(j).csr() * scale
        products = np.empty((len(i), len(j)))
        step = max(1, GRAM_BLOCK // max(1, self.d))
        for lo in range(0, len(j), step):
            part = right[lo : lo + step]
            part = part if isinstance(part, np.ndarray) else part.toarray()
            products[:, lo : lo + step] = left @ (part if weights is None else part * weights).T
        return products

    def _moments_of_range(self, root: Array, lo: int, hi: int) -> Array:
        if self.entries * DENSE_MOMENTS_RATIO >= self.n * self.d:
            return super()._moments_of_range(root, lo, hi)
        total = np.zeros((self.d, self.d))
        _kernel(self.kind, "squares")(*self.arrays, root, lo, hi, total)
        return total

    def spread(self, lo: int = 0, hi: int | None = None) -> Array:
        """Return rows lo..hi-1 as a dense float64 array."""
        return np.asarray(self.csr(lo, hi).toarray())

    def _piece(self, lo: int, hi: int, kind: Any = np.float64) -> Any:
        return csr_rows(self.arrays, self.d, lo, hi)

    def block(self, lo: int, hi: int, first: int = 0) -> SparseBlock:
        """Return rows lo..hi-1 as proofs read them."""
        data, indices, indptr = self.arrays
        stored, ends = slice(int(indptr[lo]), int(indptr[hi])), indptr[lo : hi + 1].astype(np.int64)
        return SparseBlock(data[stored], indices[stored], ends - ends[0], self.d, first + lo)

    def row(self, i: int) -> tuple[Array, Array]:
        """Return columns and float64 values of the nonzero entries of row i."""
        data, indices, indptr = self.arrays
        stored = slice(int(indptr[i]), int(indptr[i + 1]))
        columns, values = indices[stored].astype(np.int64), data[stored].astype(np.float64)
        filled = values != 0
        return columns[filled], values[filled]

    def _with_arrays(self, data: Array, indices: Array, indptr: Array) -> Sparse:
        return Sparse(data, indices, indptr, self.d)

    def _minus(self, origin: Array) -> Array:
        return np.subtract(self.arrays[0], origin[self.arrays[1]])

    def columns(self, j: Array) -> Any:
        """Return the columns j as a float64 CSR array."""
        return self.csr()[:, j]

    def csr(self, lo: int = 0, hi: int | None = None) -> Any:
        """Return a float64 copy of rows lo..hi-1 as a SciPy CSR array."""
        return csr_rows(self.arrays, self.d, lo, self.n if hi is None else hi).astype(np.float64)

    plain = csr

    def _position(self, k: int) -> tuple[int, int]:
        _, indices, indptr = self.arrays
        return int(np.searchsorted(indptr, k, side="right")) - 1, int(indices[k])


# Rows in memory: what `take` returns, and the only rows that can be visited one by one.
Held = Dense | Sparse


def _sum(parts: list[Array]) -> Array:
    """Return the sum of the parts, added in their order."""
    return parts[0] if len(parts) == 1 else np.asarray(np.sum(parts, axis=0))


def _indices(array: Array, kind: type[np.integer[Any]]) -> Array:
    return array.view(kind) if kind is np.uint32 and array.dtype == np.int32 else array.astype(kind, copy=False)
