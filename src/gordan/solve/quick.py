"""Exact exits before any arithmetic: a zero row, and equal points with opposite labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.certificates.bounds import Matrix
from gordan.certificates.problem import Problem


def quick_witness(problem: Problem, intercept: str) -> dict[int, int] | None:
    """Rows and weights that show at a glance that nothing separates, or None."""
    keys = row_keys(problem)
    if intercept == "none":
        for i in np.flatnonzero(keys == 0):
            if not len(problem.X.row(int(i))[1]):
                return {int(i): 1}
    order = np.argsort(keys, kind="stable")
    equal = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if not len(equal):
        return None
    starts = np.flatnonzero(np.r_[True, keys[order][1:] != keys[order][:-1]])
    for start, end in zip(starts, np.r_[starts[1:], len(order)], strict=True):
        if end - start > 1:
            pair = _opposite(problem, np.sort(order[start:end]))
            if pair is not None:
                return dict.fromkeys(pair, 1)
    return None


def _opposite(problem: Problem, rows: Array) -> tuple[int, int] | None:
    """Two of these rows with equal points and different labels. Keys may collide, so points are compared."""
    signs = problem.signs[rows]
    if signs.min() == signs.max():
        return None
    problem.X.have(rows[: 1 << 12])
    seen: dict[bytes, list[int | None]] = {}
    for i in rows:
        columns, values = problem.X.row(int(i))
        order = np.argsort(columns, kind="stable")
        found = seen.setdefault(columns[order].tobytes() + values[order].tobytes(), [None, None])
        side = int(problem.signs[i] > 0)
        if found[side] is None:
            found[side] = int(i)
        first, second = found
        if first is not None and second is not None:
            return min(first, second), max(first, second)
    return None


def row_keys(problem: Problem) -> Array:
    """A 64-bit key for each row, equal for equal points whatever their storage: Σ_j bits(x_ij) r_j mod 2⁶⁴; 0 for a zero row."""
    return _keys(problem.X)


def _keys_there(held: Any) -> Array:
    """The keys of one block, on another machine."""
    return _keys(Matrix(held.n, held.d, held.arrays))


def _keys(X: Matrix) -> Array:
    if X.elsewhere:
        return np.concatenate(X.each(_keys_there, (), ()))
    odd = np.random.default_rng(0).integers(0, 2**63, X.d, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    keys = np.zeros(X.n, dtype=np.uint64)
    for lo, hi in X.blocks():
        if X.sparse:
            data, indices, indptr = X.arrays
            begin, end = int(indptr[lo]), int(indptr[hi])
            terms = _bits(data[begin:end]) * odd[indices[begin:end]]
            starts = indptr[lo:hi].astype(np.int64) - begin
            filled = np.flatnonzero(np.diff(np.append(starts, end - begin)))
            if len(filled):
                keys[lo + filled] = np.add.reduceat(terms, starts[filled])
        else:
            keys[lo:hi] = np.add.reduce(_bits(X.arrays[0][lo:hi]) * odd, axis=1)
    return keys


def _bits(values: Array) -> Array:
    """The float64 values as integers, stirred so that all bits count; 0 and -0 as 0.

    Unstirred, the integer of a round number ends in 52 zeros (1.0 is 1023·2⁵²), and its product with r_j keeps 12 bits of it:
    rows of zeros and ones then share some 4,000 keys.
    """
    bits = np.ascontiguousarray(values.astype(np.float64) + 0.0).view(np.uint64)
    bits ^= bits >> np.uint64(33)
    bits *= np.uint64(0xFF51AFD7ED558CCD)
    bits ^= bits >> np.uint64(33)
    return bits
