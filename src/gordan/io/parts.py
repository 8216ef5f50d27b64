"""Represent an X that is not in memory: parts that are read when needed, and CSR arrays in mapped files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gordan.arrays import Array


class Part(Protocol):
    """Some consecutive rows of a file, which can be pickled and read on any machine that has the file."""

    @property
    def n(self) -> int:
        """The number of rows."""
        ...

    def read(self) -> Array:
        """Read the rows from the file."""
        ...


@dataclass(frozen=True, eq=False)
class Parts:
    """A dense X in parts, of which only a few are in memory at a time; `columns` are the names of its columns."""

    parts: tuple[Part, ...]
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    columns: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the whole matrix in memory."""
        whole = np.empty(self.shape, self.dtype if dtype is None else dtype)
        done = 0
        for part in self.parts:
            whole[done : done + part.n] = part.read()
            done += part.n
        return whole

    def __matmul__(self, other: Array) -> Array:
        return np.concatenate([np.asarray(part.read() @ other) for part in self.parts])


class Csr:
    """A CSR matrix whose arrays are in mapped files (see `gordan.io.store`).

    `columns` are the names of its columns. `checked` is set once all indices have been found to be valid.
    """

    def __init__(
        self, data: Array, indices: Array, indptr: Array, shape: tuple[int, int], columns: tuple[str, ...] | None = None
    ) -> None:
        self.data, self.indices, self.indptr, self.shape, self.columns = data, indices, indptr, shape, columns
        self.checked = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return self.data.dtype

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        return len(self.data)

    def __len__(self) -> int:
        return self.shape[0]

    def tocsr(self, lo: int = 0, hi: int | None = None) -> Any:
        """Return a copy of the rows lo to hi - 1 as a SciPy matrix in memory."""
        import scipy.sparse as sp

        indptr = np.asarray(self.indptr[lo : (self.shape[0] if hi is None else hi) + 1])
        part = slice(int(indptr[0]), int(indptr[-1]))
        kind = np.int32 if max(part.stop - part.start, *self.shape) < 2**31 else np.int64
        arrays = (np.array(self.data[part]), self.indices[part].astype(kind), (indptr - indptr[0]).astype(kind))
        return sp.csr_array(arrays, shape=(len(indptr) - 1, self.shape[1]))

    def __matmul__(self, other: Array) -> Array:
        step = max(1, (1 << 22) * self.shape[0] // max(1, self.nnz))
        return np.concatenate([np.asarray(self.tocsr(lo, min(lo + step, len(self))) @ other) for lo in range(0, len(self), step)])


def physical_memory() -> int:
    """Return the size of the memory of this machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
