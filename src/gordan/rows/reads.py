"""Blocks of rows as proofs read them: exact entries, and plain sums in float64 with a known number of operations.

Only NumPy and SciPy's sparse products are used: nothing is compiled or reassociated here, except for a checksum that no proof
needs. BLAS is not used, because its threads keep the floating-point mode of the thread that started them. Work on a block runs in
a thread that checks its mode (`each_block` of a storage ensures it). `certificates` bounds the rounding errors of these sums.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from gordan.arrays import Array

# The number of stored entries of a block, which then stays in the cache.
BLOCK_ENTRIES = 1 << 18
# From this many stored entries on, a pass uses several threads: two blocks, which take some milliseconds each if rows are sparse.
MIN_ENTRIES_FOR_THREADS = 1 << 19
# Products of a dense row are added up in groups of this many columns.
LONGEST_SUM = 4096
# Up to this many columns, dense rows are summed column by column, which was measured to be faster than a loop over short rows.
NARROW_ROWS = 8


class _HostBlock:
    """Products of rows in memory with blocks of vectors, one vector after the other."""

    dot: Any
    weighted: Any

    def dots(self, W: Array) -> tuple[Any, Array]:
        columns = W.T if W.strides[0] == W.itemsize else np.ascontiguousarray(W.T)
        sums, terms = zip(*map(self.dot, columns), strict=True)
        return np.stack(sums, axis=1), terms[0]

    def combined(self, Q: Any) -> Any:
        return np.stack([*map(self.weighted, np.ascontiguousarray(Q.T))], axis=1)

    def to_storage_f64(self, values: Any) -> Any:
        return values

    def to_host(self, values: Any) -> Array:
        return np.asarray(values)


class DenseBlock(_HostBlock):
    """Some dense rows as a `storage.Block`."""

    values: Array
    n: int
    d: int
    first: int

    def __init__(self, values: Array, first: int = 0) -> None:
        self.values, self.first = values, first
        self.n, self.d = values.shape

    @property
    def lengths(self) -> Array:
        return np.array(self.d)

    @cached_property
    def _x(self) -> Array:
        return self.values.astype(np.float64, copy=False)

    def dot(self, w: Array) -> tuple[Array, Array]:
        x = self._x
        if self.d <= 2 * LONGEST_SUM:
            return row_sums(x, w), np.array(self.d)
        # sums of parts, then their sum: a term goes through at most as many additions as a part has columns, plus the parts
        cuts = range(0, self.d, LONGEST_SUM)
        sums = sum((row_sums(x[:, j : j + LONGEST_SUM], w[j : j + LONGEST_SUM]) for j in cuts), np.zeros(self.n))
        return sums, np.array(LONGEST_SUM + len(cuts))

    def abs_dot(self, size: Array) -> Array:
        return row_sums(np.abs(self._x), size)

    def squares(self) -> Array:
        x = self._x
        return row_sums(x, x)

    def weighted(self, q: Array) -> Array:
        return column_sums(q, self._x)

    def by_row(self, join: np.ufunc, terms: Any) -> Array:
        return np.asarray(join.reduce(terms(self.values, np.arange(self.d)), axis=1))

    def sample(self, k: int) -> list[tuple[Array, Array]] | None:
        columns = np.linspace(0, self.d - 1, k).astype(np.int64)
        return [(columns, self._columns(columns))]

    def _columns(self, columns: Array) -> Array:
        chosen: Array = self.values[:, columns]
        return chosen

    def entries(self) -> tuple[Array, Array, Array]:
        return np.repeat(np.arange(self.n), self.d), np.tile(np.arange(self.d), self.n), self._x.reshape(-1)

    def only(self, i: Array) -> DenseBlock:
        return DenseBlock(self.values[i])

    def extremes(self, columns: Array) -> tuple[Array, Array]:
        x = self._columns(columns).astype(np.float64, copy=False)
        return x.min(axis=0), x.max(axis=0)

    def minus(self, origin: Array) -> DenseBlock:
        return DenseBlock(self._x - origin, self.first)

    def checksum(self, at_length: bool) -> list[int]:
        return [_mixed(self.values, at_length)]


class SparseBlock(_HostBlock):
    """Some CSR rows as a `storage.Block`; row k has the entries from `ends[k]` to `ends[k + 1]`."""

    def __init__(self, data: Array, indices: Array, ends: Array, d: int, first: int = 0) -> None:
        self.data, self.indices, self.ends, self.first = data, indices, ends, first
        self.n, self.d = len(ends) - 1, d

    @property
    def lengths(self) -> Array:
        return np.diff(self.ends)

    @cached_property
    def _csr(self) -> Any:
        return csr_rows((self.data, self.indices, self.ends), self.d, 0, self.n)

    def dot(self, w: Array) -> tuple[Array, Array]:
        return self._csr @ w, self.lengths

    def abs_dot(self, size: Array) -> Array:
        return self.by_row(np.add, lambda values, columns: np.abs(values) * size[columns])

    def squares(self) -> Array:
        return self.by_row(np.add, lambda values, columns: values.astype(np.float64, copy=False) ** 2)

    def dots(self, W: Array) -> tuple[Any, Array]:
        # each column is added up as `dot` does, but the entries are read once
        return self._csr @ np.ascontiguousarray(W), self.lengths

    def weighted(self, q: Array) -> Array:
        return np.asarray(self._csr.T @ q)

    def combined(self, Q: Any) -> Any:
        return np.asarray(self._csr.T @ np.ascontiguousarray(Q))

    def by_row(self, join: np.ufunc, terms: Any) -> Array:
        found, lengths = terms(self.data, self.indices), self.lengths
        joined = np.zeros(self.n, dtype=found.dtype)
        filled = np.flatnonzero(lengths)
        if len(filled):
            joined[filled] = join.reduceat(found, self.ends[:-1][filled])
        return joined

    def sample(self, k: int) -> Iterator[tuple[Array, Array]] | None:
        if not self.data.all():  # entries are chosen by rank, which a stored zero would shift
            return None
        filled = np.flatnonzero(self.lengths)
        first, last = self.ends[:-1][filled], self.lengths[filled] - 1
        where = (first + last * rank // (k - 1) for rank in range(k))
        return ((self._spread(self.indices[places], filled), self._spread(self.data[places], filled)) for places in where)

    def _spread(self, values: Array, rows: Array) -> Array:
        """Return a vector over the rows that is 0 except on these."""
        if len(rows) == self.n:
            return values
        whole = np.zeros(self.n, values.dtype)
        whole[rows] = values
        return whole

    def entries(self) -> tuple[Array, Array, Array]:
        return np.repeat(np.arange(self.n), self.lengths), self.indices.astype(np.int64), self.data.astype(np.float64)

    def only(self, i: Array) -> SparseBlock:
        taken = self._csr[i]
        return SparseBlock(taken.data, taken.indices, taken.indptr, self.d)

    def extremes(self, columns: Array) -> tuple[Array, Array]:
        part = self._csr[:, columns].tocsc()
        whole = np.diff(part.indptr) == self.n  # other columns have zeros that are not stored
        low, high = np.zeros(len(columns)), np.zeros(len(columns))
        for k in np.flatnonzero(whole).tolist():
            values = part.data[part.indptr[k] : part.indptr[k + 1]]
            low[k], high[k] = values.min(), values.max()
        return low, high

    def minus(self, origin: Array) -> SparseBlock:
        moved = self.data.astype(np.float64) - origin[self.indices]
        return SparseBlock(moved, self.indices, self.ends, self.d, self.first)

    def checksum(self, at_length: bool) -> list[int]:
        return [_mixed(array, at_length) for array in (self.data, self.indices, self.ends)]


def row_sums(left: Array, right: Array) -> Array:
    """Return Σ_j left_ij right_j, or Σ_j left_ij right_ij for a matrix `right`."""
    if left.shape[1] > NARROW_ROWS:
        return np.asarray(np.einsum("ij,ij->i" if right.ndim == 2 else "ij,j->i", left, right))
    return sum((left[:, j] * right[..., j] for j in range(left.shape[1])), np.zeros(len(left)))


def column_sums(q: Array, block: Array) -> Array:
    """Return Σ_i q_i block_ij."""
    if block.shape[1] > NARROW_ROWS:
        return np.asarray(np.einsum("i,ij->j", q, block))
    return np.array([np.sum(q * block[:, j]) for j in range(block.shape[1])])


def _mixed(array: Array, at_length: bool) -> int:
    """Return a CRC of the bytes of an array or, `at_length`, a sum that takes a tenth of the time once it is compiled."""
    array = np.ascontiguousarray(array)
    if not at_length:
        return zlib.crc32(array.data)
    from gordan.rows import kernels

    mixed: Any = kernels.mixed_bits
    words = array.reshape(-1).view(f"u{array.itemsize}")
    words.flags.writeable = False  # so that one compiled kernel serves all arrays
    return int(mixed(words))


def csr_rows(arrays: tuple[Array, ...], d: int, lo: int, hi: int) -> Any:
    """Return rows lo..hi-1 as a SciPy CSR array over the same entries, whose products with float64 are plain float64 sums."""
    from scipy.sparse import csr_array

    data, indices, indptr = arrays
    begin, end = int(indptr[lo]), int(indptr[hi])
    short = max(d, end - begin) < 2**31
    columns, ends = indices[begin:end], (indptr[lo : hi + 1] - indptr[lo]).astype(np.int32 if short else np.int64)
    columns = columns.view(np.int32) if short and columns.itemsize == 4 else columns.astype(ends.dtype)
    return csr_array((data[begin:end], columns, ends), shape=(hi - lo, d))
