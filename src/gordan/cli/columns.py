"""Columns that look like the number of the row, or an identifier, and not like a measurement: they are kept, with a warning."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gordan.io.index import NAMELESS

if TYPE_CHECKING:
    from gordan.arrays import Array
    from gordan.io import Table

# Rows from which on columns are looked at: in fewer, any measurement may separate the classes by chance.
FEWEST_ROWS = 10
# Rows that are looked at first.
SAMPLE = 256
# Entries of sparse columns that are looked at together.
ENTRIES = 1 << 22
# Bytes of a mapped array that is looked at: a larger one stays on disk until it is needed.
MOST_MAPPED = 1 << 28
MOST_LISTED = 8
ALONE = "a different value in every row"


def warnings_for(table: Table, y: Array) -> list[str]:
    """What to say of columns that count the rows, may be an index, or have a different value in each row and separate the classes
    y alone."""
    counting, separating = suspicious(table.X, y, table.left_out)
    return [
        *_index_like(table, {*counting, *separating}),
        *_warning(counting, ("counts the rows", "count the rows"), table),
        *_warning(
            separating,
            (f"has {ALONE} and separates the classes alone", f"each have {ALONE} and separate the classes alone"),
            table,
        ),
    ]


def _index_like(table: Table, told: set[int]) -> list[str]:
    """What to say of nameless columns that may be the index of a sorted, sampled or filtered table: a different whole number in
    each row, though not the count of the rows. They are kept, since nothing proves that they are no measurement."""
    names = () if table.names is None or not isinstance(table.X, np.ndarray) else table.names
    found = [j for j, name in enumerate(names) if j not in told and NAMELESS.fullmatch(name) and _numbers(table.X[:, j])]
    what = "has no name and a different whole number in every row; it is used as a feature. If it is an index, leave it out"
    return [
        f"warning: column {table.numbers[j]} of {table.path.name} {what}: --drop {_argument(j, table)}"
        for j in found[:MOST_LISTED]
    ]


def _numbers(column: Array) -> bool:
    """Whether a column has a different whole number in every row."""
    return bool((column == np.floor(column)).all()) and len(np.unique(column)) == len(column)


def _warning(columns: list[int], told: tuple[str, str], table: Table) -> list[str]:
    """A warning about these columns, in words for one and for several of them; nothing if there are none."""
    if not columns:
        return []
    several = len(columns) > 1
    named = [table.names[j] if table.names is not None else "" for j in columns[:MOST_LISTED]]
    shown = [repr(name) if name.strip() else str(table.numbers[j]) for j, name in zip(columns, named, strict=False)]
    which = ", ".join(shown) + (f" and {len(columns) - MOST_LISTED} more" if len(columns) > MOST_LISTED else "")
    hint = "if they are not measurements, leave them out" if several else "if it is not a measurement, leave it out"
    options = " ".join(f"--drop {_argument(j, table)}" for j in columns[:MOST_LISTED])
    return [f"warning: column{'s' * several} {which} of {table.path.name} {told[several]}; {hint}: {options}"]


def suspicious(X: Any, y: Array, left_out: Sequence[int] = ()) -> tuple[list[int], list[int]]:
    """The columns that count the rows, 0, 1, 2, … or 1, 2, 3, …, with those that were left out; and the others that have a
    different value in each row and separate the classes alone: along the column, each class comes in one piece.

    Some rows tell of most columns that they do not, and the few others are sorted. What is not in memory is not looked at.
    """
    counting: list[int] = []
    separating: list[int] = []
    n, classes = len(y), None
    if n < FEWEST_ROWS:
        return counting, separating
    some = slice(None, None, max(1, n // SAMPLE))
    place = np.delete(np.arange(n + len(left_out)), left_out)
    for columns, part in _dense_columns(X, n):
        if classes is None:
            classes = np.unique(y, return_inverse=True)[1]
        counts = _count(part, place)
        counting += [int(j) for j in columns[counts]]
        apart = np.flatnonzero(_apart(part[some], classes[some]) & ~counts & classes.any())  # else there is one class only
        separating += [int(columns[j]) for j in apart if _separates(part[:, j], classes)]
    return counting, separating


def _dense_columns(X: Any, n: int) -> Iterator[tuple[Array, Array]]:
    """Columns of X that may have n different values, and what is in them, as dense arrays."""
    if isinstance(X, np.ndarray) and not (isinstance(X, np.memmap) and X.nbytes > MOST_MAPPED):
        yield np.arange(X.shape[1]), X
    elif hasattr(X, "tocsc") and X.nnz:  # SciPy's; with n different values at most one entry of a column is missing
        full = np.flatnonzero(np.bincount(X.indices) >= n - 1)
        step = max(1, ENTRIES // n)
        for lo in range(0, len(full), step):
            yield full[lo : lo + step], X[:, full[lo : lo + step]].toarray()


def _count(X: Array, place: Array) -> Array:
    """Which columns count the rows, which are at these places in their file."""
    first, last = X[0].astype(float) - place[0], X[-1].astype(float) - place[-1]
    found = ((first == 0) | (first == 1)) & (last == first)
    for j in np.flatnonzero(found):
        found[j] = bool((X[:, j] == first[j] + place).all())
    return np.asarray(found)


def _apart(X: Array, classes: Array) -> Array:
    """In which columns the classes do not overlap."""
    rows = np.argsort(classes, kind="stable")
    starts = np.flatnonzero(np.diff(classes[rows], prepend=-1))
    lowest, highest = (bound.reduceat(X[rows], starts, axis=0) for bound in (np.minimum, np.maximum))
    order = np.argsort(lowest, axis=0)
    before, after = np.take_along_axis(highest, order, axis=0)[:-1], np.take_along_axis(lowest, order, axis=0)[1:]
    return np.asarray((before < after).all(axis=0))


def _separates(column: Array, classes: Array) -> bool:
    """Whether all values are different and, in their order, each class comes in one piece."""
    order = np.argsort(column)
    different = (column[order][1:] != column[order][:-1]).all()
    return bool(different) and np.count_nonzero(np.diff(classes[order])) == classes.max()


def _argument(j: int, table: Table) -> str:
    """What `--drop` takes for a column: its name, or its number where the name does not tell which it is."""
    names = table.names
    if names is None or not names[j].strip() or names.count(names[j]) > 1 or names[j].startswith("-"):
        return str(table.numbers[j])
    return shlex.quote(names[j])
