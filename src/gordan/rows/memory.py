"""Rows held in memory, dense or CSR: the same passes over two sets of kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.rows.threads import in_chunks


@dataclass(frozen=True)
class Sums:
    """What one chunk of a softmin pass adds up, per group: Σ e^{z_i - peak} (`total`), the same times y_i (`signed`) and times
    A_i (`acc`), and the lowest score."""

    peak: Array
    total: Array
    signed: Array
    acc: Array
    low: Array

    @staticmethod
    def empty(groups: int, d: int) -> Sums:
        # The least float, not -inf: a row of weight zero (z = -inf) must not make inf - inf.
        least = np.full(groups, -np.finfo(np.float64).max)
        return Sums(least, np.zeros(groups), np.zeros(groups), np.zeros((groups, d)), np.full(groups, np.inf))

    @staticmethod
    def merged(parts: list[Sums]) -> Sums:
        """The sums of all chunks, added in their order."""
        if len(parts) == 1:
            return parts[0]
        peak = np.max([part.peak for part in parts], axis=0)
        shrink = [np.exp(part.peak - peak) for part in parts]
        return Sums(
            peak,
            sum((k * part.total for k, part in zip(shrink, parts, strict=True)), np.zeros_like(peak)),
            sum((k * part.signed for k, part in zip(shrink, parts, strict=True)), np.zeros_like(peak)),
            sum((k[:, None] * part.acc for k, part in zip(shrink, parts, strict=True)), np.zeros_like(parts[0].acc)),
            np.min([part.low for part in parts], axis=0),
        )


class _Memory:
    """The passes, over whichever kernels and arrays a subclass names."""

    n: int
    d: int
    entries: int
    dtype: np.dtype[Any]
    arrays: tuple[Array, ...]
    kind: str

    @cached_property
    def _kernels(self) -> ModuleType:
        from gordan.rows import kernels

        return kernels

    def _kernel(self, name: str) -> Any:
        return getattr(self._kernels, f"{self.kind}_{name}")

    def scores(self, w: Array, b: float, signs: Array, threads: int) -> Array:
        scores = np.empty(self.n)
        kernel = self._kernel("scores")
        in_chunks(lambda lo, hi: kernel(*self.arrays, w, b, signs, lo, hi, scores), self.n, self.entries, threads)
        return scores

    def combine(self, q: Array, threads: int) -> Array:
        kernel = self._kernel("combine")

        def part(lo: int, hi: int) -> Array:
            acc = np.zeros(self.d)
            kernel(*self.arrays, q, lo, hi, acc)
            return acc

        parts = in_chunks(part, self.n, self.entries, threads)
        return parts[0] if len(parts) == 1 else np.sum(parts, axis=0)

    def softmin(
        self, v: Array, b: float, signs: Array, log_p0: Array, groups: Array, count: int, threads: int
    ) -> tuple[Sums, Array]:
        scores = np.empty(self.n)
        kernel = self._kernel("softmin")

        def part(lo: int, hi: int) -> Sums:
            s = Sums.empty(count, self.d)
            kernel(*self.arrays, v, b, signs, log_p0, groups, lo, hi, scores, s.peak, s.total, s.signed, s.acc, s.low)
            return s

        return Sums.merged(in_chunks(part, self.n, self.entries, threads)), scores

    def norms(self, p: float, threads: int) -> Array:
        norms = np.empty(self.n)
        kernel = self._kernel("norms")
        in_chunks(lambda lo, hi: kernel(*self.arrays, float(p), lo, hi, norms), self.n, self.entries, threads)
        return norms


class Dense(_Memory):
    """A C-contiguous float32 or float64 array."""

    kind = "dense"

    def __init__(self, X: Array) -> None:
        # A read-only view: the input is never written to, and one kernel serves arrays and read-only memory maps alike.
        X = np.asarray(X).view(np.ndarray)
        X.flags.writeable = False
        self.arrays = (X,)
        self.n, self.d = X.shape
        self.entries = max(1, X.size)
        self.dtype = X.dtype

    def take(self, i: Array) -> Dense:
        return Dense(self.arrays[0][i])

    def first_not_finite(self) -> tuple[int, int, float] | None:
        """Row, column and value of the first entry that is NaN or infinite; by blocks, so that no copy of X is made."""
        X = self.arrays[0]
        for start in range(0, self.n, 4096):
            bad = np.argwhere(~np.isfinite(X[start : start + 4096]))
            if len(bad):
                row, column = int(bad[0, 0]) + start, int(bad[0, 1])
                return row, column, float(X[row, column])
        return None


class Sparse(_Memory):
    """CSR: data float32 or float64; unsorted, duplicate and explicit zero entries are all legal."""

    kind = "sparse"

    def __init__(self, data: Array, indices: Array, indptr: Array, d: int) -> None:
        self.arrays = tuple(_read_only(array) for array in (data, indices, indptr))
        self.n, self.d = len(indptr) - 1, d
        self.entries = max(1, len(data))
        self.dtype = data.dtype

    def take(self, i: Array) -> Sparse:
        data, indices, indptr = self.arrays
        lengths = indptr[i + 1] - indptr[i]
        ends = np.cumsum(lengths)
        # position of every entry taken: the start of its row plus its rank within the row
        where = np.repeat(indptr[i] - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)
        return Sparse(data[where], indices[where], np.concatenate(([0], ends)).astype(indptr.dtype), self.d)

    def first_not_finite(self) -> tuple[int, int, float] | None:
        data, indices, indptr = self.arrays
        bad = np.flatnonzero(~np.isfinite(data))
        if not len(bad):
            return None
        row = int(np.searchsorted(indptr, bad[0], side="right")) - 1
        return row, int(indices[bad[0]]), math.nan if np.isnan(data[bad[0]]) else float(data[bad[0]])


def _read_only(array: Array) -> Array:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
