"""The work on one block of rows, or on one part of a vector over rows, and how parts are merged.

These are functions at the top level of a module because they may be sent to other machines by name; Dask's dashboard shows the
names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gordan.arrays import Array, aligned
from gordan.floats import ieee_floats
from gordan.rows.memory import Held
from gordan.rows.storage import Lowest, Sums, smallest


def scores(held: Held, signs: Array, w: Array, b: float | Array, threads: int) -> Array:
    """Return y_i (x_i·w + b)."""
    return held.scores(w, b, signs, threads)


def combine(held: Held, q: Array, threads: int) -> Array:
    """Return Xᵀq."""
    return held.combine(q, threads)


def reduce(held: Held, *own: Any) -> list[Array]:
    """Return what `work` gives for the pieces of the block, summed; `own` is its part of each vector over rows, then options."""
    *over_rows, work, shared, threads, rough = own
    over_rows, shared = [*map(aligned, over_rows)], tuple(map(aligned, shared))
    return held.reduce(work, over_rows, shared, threads, rough=rough)


def second_moments(held: Held, q: Array, threads: int) -> Array:
    """Return Σ q x xᵀ."""
    return held.second_moments(q, threads)


def softmin(
    held: Held, signs: Array, log_p0: Array | None, groups: Array | None, v: Array, b: Array, scale: float, threads: int
) -> tuple[Sums, Array]:
    """Return the sums and scores of the fused pass."""
    return held.softmin(v, b, signs, scale, log_p0, groups, threads)


@ieee_floats()
def each_block(held: Held, first: int, rows: Array | None, own: tuple[Any, ...], work: Any, how: Any, *shared: Any) -> list[Any]:
    """Return what a proof computes from each part of the block, or from these rows of it; a sum if that is all it needs."""
    found = list(held.each_block(work, own, shared, rows, first=first, **how))
    return [added(found)] if how.get("added") else found


def norms(held: Held, p: float, threads: int) -> Array:
    """Return ‖x_i‖_p."""
    return held.norms(p, threads)


def take(held: Held, i: Array) -> Held:
    """Return the rows i of the block."""
    return held.take(i)


def first_not_finite(held: Held) -> tuple[int, int, float] | None:
    """Return row of the block, column and value of the first entry that is NaN or infinite, or None."""
    return held.first_not_finite()


def lowest(held: Held, first: int, signs: Array, groups: Array | None, k: int, w: Array, b: float, threads: int) -> Lowest:
    """Return the rows of smallest score."""
    return smallest(held.scores(w, b, signs, threads), first, k, groups)


def largest_norm(held: Held, p: float, threads: int) -> float:
    """Return max_i ‖x_i‖_p."""
    return float(np.max(held.norms(p, threads)))


def combine_some(held: Held, i: Array, q: Array, threads: int) -> Array:
    """Return Σ q_i x_i over the rows i of the block."""
    return held.take(i).combine(q, threads)


def added(parts: list[Any]) -> Any:
    """Return the sum of the parts, added in their order."""
    return np.sum(parts, axis=0)


def same(part: Any) -> Any:
    """Return the part itself, so that it becomes the result of a task."""
    return part


def entry(found: Any, path: tuple[int, ...]) -> Any:
    """Return what the path leads to in a nested result."""
    for k in path:
        found = found[k]
    return found


def product(part: Array, factor: Any) -> Array:
    """Return part · factor."""
    return np.asarray(part * factor)


def total(part: Array) -> Any:
    """Return the sum over the rows."""
    return part.sum(0)


def finite(part: Array) -> bool:
    """Return whether every entry is finite."""
    return bool(np.isfinite(part).all())
