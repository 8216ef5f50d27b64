"""Rows held in memory, dense or CSR: the same passes over two sets of kernels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any

import numpy as np

from gordan.arrays import Array, aligned
from gordan.blas import blas_has_room, blas_threads
from gordan.floats import ieee_floats
from gordan.rows import reads
from gordan.rows.mapped import CHUNK, in_order, in_waves, is_large_file, is_mapped
from gordan.rows.reads import DenseBlock, SparseBlock, csr_rows
from gordan.rows.storage import HostVectors, Sums, sums_of, widest
from gordan.rows.threads import available, chunks, even_ranges, run

# Share of the rows of a file below which those of weight zero are stepped over, and not read because they come next.
WORTH_SKIPPING = 0.05
# Share of the rows of a file from which on taking them is a pass, and not a way from one to the next.
WORTH_A_PASS = 0.01
# Bytes of the sums over chunks that are kept until they are merged.
MERGED = 1 << 26
# Entries of the copies that a Gram matrix is computed from.
GRAM_BLOCK = 1 << 21
# One entry in so many that is not zero is enough for products of matrices to be faster on rows that are spread out.
DENSE_ENOUGH = 20
# Entries of a piece of rows whose product with a block of vectors is made at a time.
PIECE = 1 << 18
# Rows of such a piece, at least, where d are no more: adding up d × d products costs less than they do.
LEAST_PIECE = 1024
# One entry in so many that is not zero is enough for second moments to be made of rows that are spread out: a loop over the pairs
# of stored entries takes that many times squared as long for each of them as BLAS does.
SPREAD = 3
# Entries that are looked at together for one that is not finite, so that no mask of all of them is made.
SEARCHED = 1 << 20
# What kernels take for a log p_0 that is uniform.
UNIFORM = np.zeros(1)


@cache
def _kernel(kind: str, name: str) -> Any:
    """The compiled loop of a pass, whose first arguments are the arrays; not imported before, since numba takes its time."""
    from gordan.rows import kernels

    return getattr(kernels, f"{kind}_{name}")


class _Memory(HostVectors):
    """The passes, over whichever kernels and arrays a subclass names."""

    kind: str
    sparse: bool
    names: list[str] | None = None  # of the columns, for messages
    block: Any  # rows lo..hi-1 as proofs read them
    _over: Any  # the same rows over other arrays
    spread: Any  # rows lo..hi-1 as a plain array
    _piece: Any  # and in float64, of SciPy's CSR if sparse
    _place: Any  # row and column of the k-th stored entry
    row: Any  # columns and float64 values of the entries of a row that are not zero

    def __init__(self, arrays: tuple[Array, ...], n: int, d: int) -> None:
        self.arrays, self.n, self.d = arrays, n, d
        self.entries, self.dtype = max(1, arrays[0].size), arrays[0].dtype
        self.mapped = is_mapped(arrays[0])
        # in so large a file that rows should be visited in its order, and not one by one
        self.on_disk = is_large_file(arrays)
        self.in_memory = not self.on_disk

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"arrays": tuple(map(_read_only, map(aligned, state["arrays"])))}

    def __sizeof__(self) -> int:
        """The bytes of the arrays: by this a cluster knows that work is sent to rows, and not rows to work."""
        return sum(int(array.nbytes) for array in self.arrays)

    @cached_property
    def _norms(self) -> dict[float, Array]:
        return {}

    @cached_property
    def _one_group(self) -> Array:
        """What kernels take for groups where there is but one."""
        return np.zeros(self.n, np.int8)

    @cached_property
    def _ranges(self) -> list[tuple[int, int]]:
        # chunks of a file are small and many, so that all threads are near to each other in it
        many = min(sum(array.nbytes for array in self.arrays) // CHUNK, MERGED // (16 * self.d)) if self.on_disk else 1
        return chunks(self.n, self.d, self.entries, many)

    def _run(self, work: Any, threads: int) -> list[Any]:
        """`work` on all chunks, in the order of the file."""
        return in_order(work, self.arrays, self._ranges, threads)

    def _by_products(self, work: Any, ranges: list[tuple[int, int]], threads: int) -> list[Any]:
        """`work`, which multiplies matrices, on these ranges in the file's order; on one thread of BLAS if there are several."""

        def part(lo: int, hi: int) -> Any:
            blas_has_room()
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
            most = min(len(self._ranges), MERGED // (8 * self.d * q.shape[1]))
            return _added(self._by_products(lambda lo, hi: self._combined(q, lo, hi), even_ranges(self.n, most), threads))
        kernel = _kernel(self.kind, "combine")

        def part(lo: int, hi: int) -> Array:
            acc = np.zeros(self.d)
            kernel(*self.arrays, q, lo, hi, acc)
            return acc

        few = self.on_disk and np.count_nonzero(q) < WORTH_SKIPPING * self.n  # rows of weight zero are not read
        return _added(run(part, self._ranges, threads) if few else self._run(part, threads))

    def _combined(self, q: Array, lo: int, hi: int) -> Array:
        """Xᵀq of the rows lo..hi-1, for a block q."""
        total = np.zeros((self.d, q.shape[1]))
        for start, stop in self._pieces(lo, hi):
            if q[start:stop].any():  # others are not read
                total += self._piece(start, stop).T @ q[start:stop]
        return total

    def reduce(self, work: Any, over_rows: Any, shared: Any, threads: int, *, rough: bool = False) -> list[Array]:
        wide = widest(shared)
        rows = max(1, min(PIECE * self.n // self.entries, PIECE // wide))

        def part(lo: int, hi: int) -> list[Array]:
            pieces = (slice(start, min(start + rows, hi)) for start in range(lo, hi, rows))
            with np.errstate(over="ignore", invalid="ignore"):
                return sums_of(
                    work(self._piece(of.start, of.stop), *(values[of] for values in over_rows), *shared) for of in pieces
                )

        most = min(len(self._ranges), max(1, MERGED // (8 * self.d * wide)))
        return sums_of(self._by_products(part, even_ranges(self.n, most), threads))

    def _squares(self, q: Array, threads: int) -> Array:
        """In as many ranges as there is room for matrices that are then added up."""
        room = max(MERGED, sum(array.nbytes for array in self.arrays) // 4) // (8 * self.d * self.d)
        ranges = even_ranges(self.n, min(len(chunks(self.n, 0, self.entries)), room))
        root = np.sqrt(q)
        return _added(self._by_products(lambda lo, hi: self._square(root, lo, hi), ranges, threads))

    def _square(self, root: Array, lo: int, hi: int) -> Array:
        """Σ q x xᵀ of the rows lo..hi-1 for q = root², by products of matrices."""
        total = np.zeros((self.d, self.d))
        for start, stop in self._pieces(lo, hi, min(self.d, LEAST_PIECE)):
            used = np.flatnonzero(root[start:stop])
            if len(used):
                block, weights = self.spread(start, stop), root[start:stop, None]
                if len(used) < stop - start:
                    block, weights = block[used], weights[used]
                y = np.multiply(block, weights, dtype=np.float64)
                total += y.T @ y  # one matrix with itself: half the work
        return total

    def _pieces(self, lo: int, hi: int, least: int = 1) -> Iterator[tuple[int, int]]:
        """Ranges of the rows lo..hi-1, of so many of them at least, of which a copy in float64 stays in the cache."""
        step = max(least, PIECE * self.n // self.entries)
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

        if len(self._ranges) == 1:  # small: what a call costs is seen
            return part(0, self.n), scores
        return Sums.merged(self._run(part, threads)), scores

    def norms(self, p: float, threads: int) -> Array:
        if p not in self._norms:  # asked for R first, then for the squares
            norms = np.empty(self.n)
            kernel = _kernel(self.kind, "norms")
            self._run(lambda lo, hi: kernel(*self.arrays, float(p), lo, hi, norms), threads)
            self._norms[p] = _read_only(norms)
        return self._norms[p]

    def knows_norms(self, p: float) -> bool:
        return self.on_disk and p in self._norms

    def first_not_finite(self) -> tuple[int, int, float] | None:
        values = self.arrays[0].reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(np.sum(values)):  # whatever is not finite stays so in a sum
                return None
        for start in range(0, len(values), SEARCHED):
            bad = np.flatnonzero(~np.isfinite(values[start : start + SEARCHED]))
            if len(bad):
                k = start + int(bad[0])
                return *self._place(k), float(values[k])
        return None

    # ---- reads for proofs --------------------------------------------------------------------------------------------

    def each_block(
        self, work: Any, over_rows: Any = (), shared: Any = (), rows: Array | None = None, *, step: int = 0, added: bool = False,
        first: int = 0,
    ) -> Iterator[Any]:  # fmt: skip
        """`first` is the number of the first row, where this is a part of X: for storages that are made of such parts."""
        a_block = max(reads.BLOCK_ENTRIES, 16 * self.d if added and self.sparse else 0)
        size = step or max(1, a_block // max(1, self.entries // max(1, self.n)))
        if rows is None and 0 < self.n <= size and not step and not self.on_disk:  # small: what a call costs is seen
            with ieee_floats(), np.errstate(over="ignore", invalid="ignore"):
                return iter([work(self.block(0, self.n, first), *over_rows, *shared)])
        ends = [0, *range(size - (first % size if step else 0), self.n, size), self.n]
        places = ends if rows is None else np.searchsorted(rows, ends).tolist()
        own = {ends[k]: slice(places[k], places[k + 1]) for k in range(len(ends) - 1) if places[k] < places[k + 1]}
        ranges = [(ends[k], ends[k + 1]) for k in range(len(ends) - 1) if ends[k] in own]

        def part(lo: int, hi: int) -> Any:
            which: Any = own[lo] if rows is None else rows[own[lo]]
            with ieee_floats(), np.errstate(over="ignore", invalid="ignore"):
                block = self.block(lo, hi, first)
                if rows is not None and len(which) < hi - lo:
                    block = block.only(which - lo)
                return work(block, *(values[which] for values in over_rows), *shared)

        threads = available() if self.entries >= reads.WORTH_THREADS else 1
        return in_waves(part, self.arrays, ranges, threads, 4 * threads)

    def each_row(self, rows: Any) -> Iterator[tuple[int, Array, Array]]:
        return ((int(i), *self.row(i)) for i in rows)

    def snapshot(self, most: int) -> Any:
        if self.__sizeof__() > most:
            return None
        copied = self._over(*(array.copy() for array in self.arrays))
        copied.names = self.names
        return copied


class Dense(_Memory):
    """A C-contiguous float32 or float64 array."""

    kind, sparse = "dense", False

    def __init__(self, X: Array) -> None:
        # A read-only view: the input is never written to, and one kernel serves arrays and read-only memory maps alike.
        X = np.asarray(X).view(np.ndarray)
        X.flags.writeable = False
        super().__init__((X,), *X.shape)

    def take(self, i: Array) -> Dense:
        if not self.on_disk or len(i) < WORTH_A_PASS * self.n:
            return Dense(self.arrays[0][i])
        order = np.argsort(i, kind="stable")  # so many rows are picked up on a way through the file
        cuts = np.searchsorted(i[order], [lo for lo, _ in self._ranges] + [self.n])
        taken = np.empty((len(i), self.d), self.dtype)
        places = {lo: order[cuts[k] : cuts[k + 1]] for k, (lo, _) in enumerate(self._ranges)}

        def part(lo: int, hi: int) -> None:
            taken[places[lo]] = self.arrays[0][i[places[lo]]]

        self._run(part, available())
        return Dense(taken)

    def gram(self, i: Array, j: Array, scale: float, weights: Array | None = None) -> Array:
        """By blocks of columns, so that the rows are not copied as a whole."""
        blas_has_room()
        X = self.arrays[0]
        step = max(1, GRAM_BLOCK // max(1, len(i) + len(j)))

        def product(lo: int) -> Array:
            # times the scale first: it undoes the size of the rows
            left = np.multiply(X[i, lo : lo + step], scale, dtype=np.float64)
            right = left if i is j else np.multiply(X[j, lo : lo + step], scale, dtype=np.float64)
            return (left if weights is None else left * weights[lo : lo + step]) @ right.T

        products = product(0)
        for lo in range(step, self.d, step):
            products += product(lo)
        return products

    def spread(self, lo: int = 0, hi: int | None = None) -> Array:
        """Rows lo..hi-1 as a plain array."""
        rows: Array = self.arrays[0][lo:hi]
        return rows

    def _piece(self, lo: int, hi: int) -> Array:
        return self.spread(lo, hi).astype(np.float64, copy=False)

    def block(self, lo: int, hi: int, first: int = 0) -> DenseBlock:
        """Rows lo..hi-1 as proofs read them."""
        return DenseBlock(self.arrays[0][lo:hi], first + lo)

    def row(self, i: int) -> tuple[Array, Array]:
        """Columns and float64 values of the entries of row i that are not zero."""
        values = self.arrays[0][i].astype(np.float64)
        columns = np.flatnonzero(values)
        return columns, values[columns]

    def plain(self) -> Array:
        whole: Array = self.arrays[0].astype(np.float64, copy=False)
        return whole

    def _over(self, X: Array) -> Dense:
        return Dense(X)

    def columns(self, j: Array) -> Array:
        """The columns j, in float64."""
        return np.asarray(self.arrays[0][:, j], dtype=np.float64)

    def _place(self, k: int) -> tuple[int, int]:
        return divmod(k, self.d)


class Sparse(_Memory):
    """CSR: data float32 or float64. Columns rise along a row, so that none comes twice (`accept` sees to it): norms need each
    entry once. Explicit zeros are legal."""

    kind, sparse = "sparse", True

    def __init__(self, data: Array, indices: Array, indptr: Array, d: int) -> None:
        # Unsigned 32-bit indices are read in half the time of 64-bit ones, and need no test for negative ones at every entry.
        columns, ends = (np.uint32 if most < 2**32 else np.int64 for most in (d, len(data)))
        arrays = data, _indices(indices, columns), _indices(indptr, ends)
        super().__init__(tuple(map(_read_only, arrays)), len(indptr) - 1, d)

    def take(self, i: Array) -> Sparse:
        taken = csr_rows(self.arrays, self.d, 0, self.n)[i]
        return Sparse(taken.data, taken.indices, taken.indptr, self.d)

    def narrowed(self, i: Array) -> Sparse:
        """The rows i without the columns that they do not use."""
        taken = self.take(i)
        data, indices, indptr = taken.arrays
        used = np.zeros(self.d, dtype=bool)
        used[indices] = True
        places = np.cumsum(used) - 1
        return Sparse(data, places[indices], indptr, int(places[-1]) + 1)

    def gram(self, i: Array, j: Array, scale: float, weights: Array | None = None) -> Array:
        """By blocks of rows j spread out to dense columns."""
        left = self.take(i).csr() * scale
        if left.nnz * DENSE_ENOUGH >= len(i) * self.d and left.shape[0] * self.d <= GRAM_BLOCK:
            left = left.toarray()  # spread out, too, the products are faster
        right = left if i is j else self.take(j).csr() * scale
        products = np.empty((len(i), len(j)))
        step = max(1, GRAM_BLOCK // max(1, self.d))
        for lo in range(0, len(j), step):
            part = right[lo : lo + step]
            part = part if isinstance(part, np.ndarray) else part.toarray()
            products[:, lo : lo + step] = left @ (part if weights is None else part * weights).T
        return products

    def _square(self, root: Array, lo: int, hi: int) -> Array:
        if self.entries * SPREAD >= self.n * self.d:
            return super()._square(root, lo, hi)
        total = np.zeros((self.d, self.d))
        _kernel(self.kind, "squares")(*self.arrays, root, lo, hi, total)
        return total

    def spread(self, lo: int = 0, hi: int | None = None) -> Array:
        """Rows lo..hi-1 as a plain array, in float64."""
        return np.asarray(self.csr(lo, hi).toarray())

    def _piece(self, lo: int, hi: int) -> Any:
        return csr_rows(self.arrays, self.d, lo, hi)

    def block(self, lo: int, hi: int, first: int = 0) -> SparseBlock:
        """Rows lo..hi-1 as proofs read them."""
        data, indices, indptr = self.arrays
        stored, ends = slice(int(indptr[lo]), int(indptr[hi])), indptr[lo : hi + 1].astype(np.int64)
        return SparseBlock(data[stored], indices[stored], ends - ends[0], self.d, first + lo)

    def row(self, i: int) -> tuple[Array, Array]:
        """Columns and float64 values of the entries of row i that are not zero."""
        data, indices, indptr = self.arrays
        stored = slice(int(indptr[i]), int(indptr[i + 1]))
        columns, values = indices[stored].astype(np.int64), data[stored].astype(np.float64)
        filled = values != 0
        return columns[filled], values[filled]

    def _over(self, data: Array, indices: Array, indptr: Array) -> Sparse:
        return Sparse(data, indices, indptr, self.d)

    def columns(self, j: Array) -> Array:
        """The columns j, spread out, in float64."""
        return np.asarray(self.csr()[:, j].toarray())

    def csr(self, lo: int = 0, hi: int | None = None) -> Any:
        """Rows lo..hi-1 as a CSR array of SciPy's, a copy in float64."""
        return csr_rows(self.arrays, self.d, lo, self.n if hi is None else hi).astype(np.float64)

    plain = csr

    def _place(self, k: int) -> tuple[int, int]:
        _, indices, indptr = self.arrays
        return int(np.searchsorted(indptr, k, side="right")) - 1, int(indices[k])


# Rows in memory: what `take` gives, and the only ones that can be visited one by one.
Held = Dense | Sparse


def _added(parts: list[Array]) -> Array:
    """The sum of the parts, in their order."""
    return parts[0] if len(parts) == 1 else np.asarray(np.sum(parts, axis=0))


def _indices(array: Array, kind: type[np.integer[Any]]) -> Array:
    return array.view(kind) if kind is np.uint32 and array.dtype == np.int32 else array.astype(kind, copy=False)


def _read_only(array: Array) -> Array:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
