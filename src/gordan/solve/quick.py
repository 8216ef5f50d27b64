"""Exact exits before any arithmetic: a zero row, and equal points with opposite labels."""

from __future__ import annotations

import numpy as np

from gordan.arrays import Array
from gordan.certificates.problem import Problem
from gordan.deadlines import UNLIMITED, Deadline
from gordan.intercepts import Intercept
from gordan.rows import Block, Storage

# Entries of a row that are looked at first: rows that differ in these differ.
SAMPLE = 8


def quick_witness(problem: Problem, intercept: Intercept, deadline: Deadline = UNLIMITED) -> dict[int, int] | None:
    """Rows and weights that show at a glance that nothing separates, or None."""
    if not intercept.exists:
        zero = np.flatnonzero(problem.X.norms == 0)
        if len(zero):
            return {int(zero[0]): 1}
    rows = np.arange(problem.X.n)
    if problem.storage.on_device:
        rows = _repeated(problem.storage)
    else:
        keys = sample_keys(problem)
        rows = rows if keys is None else _with_both_labels(keys, problem.signs, rows)
    if not len(rows) or deadline.passed:
        return None
    keys = row_keys(problem, None if len(rows) == problem.X.n else rows)
    pair = _opposite(problem, _with_both_labels(keys, problem.signs[rows], rows), deadline)
    return None if pair is None else dict.fromkeys(pair, 1)


def _repeated(storage: Storage) -> Array:
    """Rows on a device whose product with a random vector is that of another row: one pass there. Those that are equal are among
    them as far as the device adds up every row in one order; whom it does not, others will find."""
    r = (_scrambled(np.arange(storage.d)) >> np.uint64(11)) * 2.0**-53 - 0.5
    return storage.repeated(
        storage.scores(r[:, None], np.zeros(1), storage.to_storage(np.ones(storage.n, np.int8), "signs"), 1)[:, 0]
    )


def _with_both_labels(keys: Array, signs: Array, rows: Array) -> Array:
    """Those of the rows, in order, whose key comes with both signs."""
    order = np.argsort(keys, kind="stable")
    ordered, signs = keys[order], signs[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    if len(starts) == len(rows):
        return rows[:0]
    mixed = np.minimum.reduceat(signs, starts) < np.maximum.reduceat(signs, starts)
    return rows[np.sort(order[np.repeat(mixed, np.diff(np.r_[starts, len(order)]))])]


def _opposite(problem: Problem, rows: Array, deadline: Deadline) -> tuple[int, int] | None:
    """Two of these rows with equal points and different labels. Keys may collide, so points are compared."""
    seen: dict[bytes, int] = {}
    for i, columns, values in problem.storage.each_row(rows):
        if deadline.passed:
            return None
        first = seen.setdefault(columns.tobytes() + values.tobytes(), i)
        if problem.signs[first] != problem.signs[i]:
            return first, i
    return None


def sample_keys(problem: Problem) -> Array | None:
    """A key for each row from a few of its entries, equal for equal points; None where all of them are hardly more.

    Of sparse rows, whose columns are in order and come once, the entries are chosen by rank: so no stored one may be zero.
    """
    if problem.storage.entries < 2 * SAMPLE * problem.X.n:
        return None
    parts = list(problem.storage.each_block(_sampled))
    return None if any(part is None for part in parts) else np.concatenate(parts)


def _sampled(block: Block) -> Array | None:
    found = block.sample(SAMPLE)
    if found is None:
        return None
    keys = np.zeros(block.n, np.uint64)
    for columns, values in found:
        terms = _terms(values, _scrambled(columns))
        keys += terms if terms.ndim == 1 else np.add.reduce(terms, axis=1)
    return keys + block.lengths.astype(np.uint64)


def row_keys(problem: Problem, rows: Array | None = None) -> Array:
    """A 64-bit key for each of these rows (in order; or all), equal for equal points whatever their storage; 0 for a zero row.

    It is Σ_j r_j bits(x_ij) mod 2⁶⁴ with odd r_j as good as random; sums of integers do not depend on their order.
    """
    r = _scrambled(np.arange(problem.X.d))
    return np.concatenate(list(problem.storage.each_block(_keys, (), (r,), rows)))


def _keys(block: Block, r: Array) -> Array:
    return block.by_row(np.add, lambda values, columns: _terms(values, r[columns]))


def _scrambled(columns: Array) -> Array:
    """The r_j of these columns: the digits of j scrambled (the finalizer of D. Lea's SplitMix), the last one 1."""
    z = (columns.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31)) | np.uint64(1)


def _terms(values: Array, r: Array) -> Array:
    """r_j bits(x_ij), 0 for 0 and -0. Mod 2⁶⁴ a factor leaves nothing but the sign of a term that has only the highest bit: rows
    would be told apart by neither signs nor powers of two in other places. So the upper half is mixed into the lower one."""
    bits = np.add(values, 0.0, dtype=np.float64).view(np.uint64)
    bits ^= bits >> np.uint64(32)
    bits *= r
    return bits
