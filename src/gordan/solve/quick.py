"""Exact exits before any arithmetic: a zero row, and equal points with opposite labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gordan.arrays import Array
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept
from gordan.rows import Block, Storage

# Entries of a row that are looked at first: rows that differ in these differ.
SAMPLE = 8


def quick_witness(problem: Problem, intercept: Intercept) -> dict[int, int] | None:
    """Rows and weights that show at a glance that nothing separates, or None."""
    if not intercept.exists:
        zero = np.flatnonzero(problem.X.norms == 0)
        if len(zero):
            return {int(zero[0]): 1}
    rows = np.arange(0 if problem.storage.on_device else problem.X.n)
    keys = None if problem.storage.on_device else sample_keys(problem)
    if problem.storage.on_device:
        rows = _repeated(problem.storage)
        if not len(rows):
            return None
    elif keys is not None:
        alike = list(_both_labels(keys, problem.signs))
        if not alike:
            return None
        rows = np.sort(np.concatenate(alike))
    for group in _both_labels(row_keys(problem, None if len(rows) == problem.X.n else rows), problem.signs[rows]):
        pair = _opposite(problem, rows[group])
        if pair is not None:
            return dict.fromkeys(pair, 1)
    return None


def _repeated(storage: Storage) -> Array:
    """Rows on a device whose product with a random vector is that of another row: one pass there. Those that are equal are among
    them as far as the device adds up every row in one order; whom it does not, others will find."""
    r = _factors(np.arange(storage.d)) - 1.5
    return storage.repeated(storage.scores(r[:, None], np.zeros(1), storage.place(np.ones(storage.n, np.int8), "signs"), 1)[:, 0])


def _both_labels(keys: Array, signs: Array) -> Iterator[Array]:
    """The positions, in order, of each key that comes with both signs."""
    order = np.argsort(keys, kind="stable")
    ordered, signs = keys[order], signs[order]
    if not (ordered[1:] == ordered[:-1]).any():
        return
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    ends = np.r_[starts[1:], len(order)]
    mixed = np.minimum.reduceat(signs, starts) < np.maximum.reduceat(signs, starts)
    for start, end in zip(starts[mixed], ends[mixed], strict=True):
        yield order[start:end]


def _opposite(problem: Problem, rows: Array) -> tuple[int, int] | None:
    """Two of these rows with equal points and different labels. Keys may collide, so points are compared."""
    seen: dict[bytes, list[int | None]] = {}
    for i in problem.X.brought(rows):
        columns, values = problem.X.row(i)
        found = seen.setdefault(columns.tobytes() + values.tobytes(), [None, None])
        side = int(problem.signs[i] > 0)
        if found[side] is None:
            found[side] = i
        first, second = found
        if first is not None and second is not None:
            return min(first, second), max(first, second)
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
    columns, values = found
    keys: Array = np.add.reduce(_bits(values, _factors(columns)), axis=1)
    return keys + block.lengths.astype(np.uint64)


def row_keys(problem: Problem, rows: Array | None = None) -> Array:
    """A 64-bit key for each of these rows (in order; or all), equal for equal points whatever their storage; 0 for a zero row.

    It is Σ_j bits(x_ij r_j) mod 2⁶⁴ with r_j between 1 and 2 as good as random: the product is rounded the same way for the same
    x_ij, its bits are as random as r_j even where x_ij is a round number, and sums of integers do not depend on their order.
    """
    r = _factors(np.arange(problem.X.d))
    return np.concatenate(list(problem.storage.each_block(_keys, (), (r,), rows)))


def _keys(block: Block, r: Array) -> Array:
    return block.by_row(np.add, lambda values, columns: _bits(values, r[columns]))


def _factors(columns: Array) -> Array:
    """The r_j of these columns: the digits are those of j scrambled (the finalizer of D. Lea's SplitMix)."""
    z = (columns.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (((z ^ (z >> np.uint64(31))) >> np.uint64(12)) | np.uint64(0x3FF << 52)).view(np.float64)


def _bits(values: Array, factors: Array) -> Array:
    """The products as integers; those that are 0 or -0 as 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        products = np.multiply(values, factors, dtype=np.float64)
        products += 0.0
    return products.view(np.uint64)
