"""Contradictions that are found without arithmetic: a row of zeros, and equal points with different labels.

Equal points are found by 64-bit keys: first from a few entries of each row, then from all entries of the rows whose first keys
come with both labels. Since keys may collide, the points themselves are compared at the end.
"""

from __future__ import annotations

import numpy as np

from gordan.arrays import Array
from gordan.certificates.problem import Problem
from gordan.deadlines import UNLIMITED, Deadline
from gordan.intercepts import Intercept
from gordan.rows import Block, Storage, nonzero

# Entries of a row from which its first key is made: rows that differ in these are different.
SAMPLE = 8


def quick_witness(problem: Problem, intercept: Intercept, deadline: Deadline = UNLIMITED) -> dict[int, int] | None:
    """Return rows with weights that show that nothing separates: a row of zeros, or two equal points with different labels."""
    if not intercept.exists:
        zero = nonzero(problem.X.norms_in_place == 0)
        if len(zero):
            return {int(zero[0]): 1}
    if problem.storage.on_device:
        rows = _repeated(problem.storage)
    else:
        keys, rows = sample_keys(problem), np.arange(problem.X.n)
        rows = rows if keys is None else _with_both_labels(keys, problem.signs, rows)
    if not len(rows) or deadline.passed:
        return None
    keys = row_keys(problem, None if len(rows) == problem.X.n else rows)
    pair = _opposite(problem, _with_both_labels(keys, problem.signs[rows], rows), deadline)
    return None if pair is None else dict.fromkeys(pair, 1)


def _repeated(storage: Storage) -> Array:
    """Return the rows on a device whose product with a random vector is that of another row, by one pass there.

    They include all rows that are equal to others if the device sums every row in the same order; if not, other finders decide.
    """
    r = (_scrambled(np.arange(storage.d)) >> np.uint64(11)) * 2.0**-53 - 0.5
    return storage.tied_rows(
        storage.scores(r[:, None], np.zeros(1), storage.to_storage(np.ones(storage.n, np.int8), "signs"), 1)[:, 0]
    )


def _with_both_labels(keys: Array, signs: Array, rows: Array) -> Array:
    """Return those of the rows, in order, whose key occurs with both signs."""
    ordered = np.sort(keys)
    if not (ordered[1:] == ordered[:-1]).any():  # most data has no equal points, and sorting numbers takes a quarter of the time
        return rows[:0]
    order = np.argsort(keys)
    ordered, signs = keys[order], signs[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    mixed = np.minimum.reduceat(signs, starts) < np.maximum.reduceat(signs, starts)
    return rows[np.sort(order[np.repeat(mixed, np.diff(np.r_[starts, len(order)]))])]


def _opposite(problem: Problem, rows: Array, deadline: Deadline) -> tuple[int, int] | None:
    """Return two of these rows that are equal points with different labels, or None."""
    seen: dict[bytes, int] = {}
    for i, columns, values in problem.storage.each_row(rows):
        if deadline.passed:
            return None
        first = seen.setdefault(columns.tobytes() + values.tobytes(), i)
        if problem.signs[first] != problem.signs[i]:
            return first, i
    return None


def sample_keys(problem: Problem) -> Array | None:
    """Return a key for each row from a few of its entries, equal for equal points; None if rows have hardly more entries.

    The entries of sparse rows, whose columns are sorted and distinct, are chosen by rank; also None if a stored entry is zero.
    """
    if problem.storage.entries < 2 * SAMPLE * problem.X.n:
        return None
    parts = list(problem.storage.each_block(_sampled))
    return None if any(part is None for part in parts) else np.concatenate(parts)


def _sampled(block: Block) -> Array | None:
    found = block.sample(SAMPLE)
    if found is None:
        return None
    keys, r = np.zeros(block.n, np.uint64), _scrambled(np.arange(block.d)) if block.d < block.n else None
    for columns, values in found:
        terms = _terms(values, _scrambled(columns) if r is None else r[columns])
        keys += terms if terms.ndim == 1 else np.add.reduce(terms, axis=1)
    return keys + block.lengths.astype(np.uint64)


def row_keys(problem: Problem, rows: Array | None = None) -> Array:
    """Return a 64-bit key for each of these rows (sorted; or all), equal for equal points in any storage; 0 for a row of zeros.

    The key is Σ_j r_j bits(x_ij) mod 2⁶⁴ with pseudorandom odd r_j; sums of integers do not depend on their order.
    """
    r = _scrambled(np.arange(problem.X.d))
    return np.concatenate(list(problem.storage.each_block(_keys, (), (r,), rows)))


def _keys(block: Block, r: Array) -> Array:
    return block.by_row(np.add, lambda values, columns: _terms(values, r[columns]))


def _scrambled(columns: Array) -> Array:
    """Return the r_j of these columns: the bits of j scrambled by the finalizer of SplitMix64, the last bit set."""
    z = (columns.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31)) | np.uint64(1)


def _terms(values: Array, r: Array) -> Array:
    """Return r_j bits(x_ij), 0 for 0 and -0.

    The upper half of the bits is mixed into the lower half: otherwise signs and powers of two, whose bits are all in the upper
    half, would hardly differ after a multiplication mod 2⁶⁴.
    """
    bits = np.add(values, 0.0, dtype=np.float64).view(np.uint64)
    bits ^= bits >> np.uint64(32)
    bits *= r
    return bits
