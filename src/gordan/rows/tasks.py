"""What is done to one block of rows, or to a part of a vector over rows, and how parts are merged.

Functions at the top of a module, since they may be sent to other machines by name; a dashboard shows these names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gordan.arrays import Array, aligned
from gordan.floats import ieee_floats
from gordan.rows.memory import Held
from gordan.rows.storage import Lowest, Sums, smallest


def scores(held: Held, signs: Array, w: Array, b: float | Array, threads: int) -> Array:
    """y_i (x_i·w + b)."""
    return held.scores(w, b, signs, threads)


def combine(held: Held, q: Array, threads: int) -> Array:
    """Xᵀq."""
    return held.combine(q, threads)


def reduce(held: Held, *own: Any) -> list[Array]:
    """What `work` gives for the pieces of the block, added up: its parts of vectors over rows, then how."""
    *over_rows, work, shared, threads, rough = own
    over_rows, shared = [*map(aligned, over_rows)], tuple(map(aligned, shared))
    return held.reduce(work, over_rows, shared, threads, rough=rough)


def squares(held: Held, q: Array, threads: int) -> Array:
    """Σ q x xᵀ."""
    return held._squares(q, threads)


def softmin(
    held: Held, signs: Array, log_p0: Array | None, groups: Array | None, v: Array, b: Array, scale: float, threads: int
) -> tuple[Sums, Array]:
    """The sums and scores of the fused pass."""
    return held.softmin(v, b, signs, scale, log_p0, groups, threads)


@ieee_floats()
def each_block(held: Held, first: int, rows: Array | None, own: tuple[Any, ...], work: Any, how: Any, *shared: Any) -> list[Any]:
    """What a proof does with each part of the block, or with these rows of it; added up here, if that is all that is wanted."""
    found = list(held.each_block(work, own, shared, rows, first=first, **how))
    return [added(found)] if how.get("added") else found


def norms(held: Held, p: float, threads: int) -> Array:
    """‖x_i‖_p."""
    return held.norms(p, threads)


def take(held: Held, i: Array) -> Held:
    """The rows i of the block."""
    return held.take(i)


def first_not_finite(held: Held) -> tuple[int, int, float] | None:
    """Row of the block, column and value of the first entry that is NaN or infinite."""
    return held.first_not_finite()


def lowest(held: Held, first: int, signs: Array, groups: Array | None, k: int, w: Array, b: float, threads: int) -> Lowest:
    """The rows of smallest score."""
    return smallest(held.scores(w, b, signs, threads), first, k, groups)


def largest_norm(held: Held, p: float, threads: int) -> float:
    """max_i ‖x_i‖_p."""
    return float(np.max(held.norms(p, threads)))


def combine_some(held: Held, i: Array, q: Array, threads: int) -> Array:
    """Σ q_i x_i over the rows i of the block."""
    return held.take(i).combine(q, threads)


def added(parts: list[Any]) -> Any:
    """The sum of the parts, in their order."""
    return np.sum(parts, axis=0)


def same(part: Any) -> Any:
    """The part itself, as the result of a task."""
    return part


def entry(found: Any, path: tuple[int, ...]) -> Any:
    """What the path leads to in a nested result."""
    for k in path:
        found = found[k]
    return found


def product(part: Array, factor: Any) -> Array:
    """part · factor."""
    return np.asarray(part * factor)


def total(part: Array) -> Any:
    """The sum over the rows."""
    return part.sum(0)


def finite(part: Array) -> bool:
    """Whether every entry is finite."""
    return bool(np.isfinite(part).all())
