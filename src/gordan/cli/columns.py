"""Warn of columns that look like row numbers or identifiers instead of measurements; they are kept."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gordan.io.index import NAMELESS
from gordan.io.table import MAX_LISTED

if TYPE_CHECKING:
    from gordan.arrays import Array
    from gordan.io import Table

# With fewer rows, any measurement may separate the classes by chance, so nothing is checked.
MIN_ROWS = 10
# Rows that are checked first, which excludes most columns.
SAMPLE = 256
# Entries of sparse columns that are checked together.
SPARSE_ENTRIES = 1 << 22
# Larger mapped arrays are not checked, because that would read all of them from disk.
MAX_MAPPED_BYTES = 1 << 28
ALONE = "a different value in every row"


def warnings_for(table: Table, y: Array) -> list[str]:
    """Return warnings about columns that count the rows, may be an index, or are an identifier that separates the classes y."""
    counting, separating = suspicious(table.X, y, table.left_out)
    return [
        *_index_warnings(table, {*counting, *separating}),
        *_warning(counting, ("counts the rows", "count the rows"), table),
        *_warning(
            separating,
            (f"has {ALONE} and separates the classes alone", f"each have {ALONE} and separate the classes alone"),
            table,
        ),
    ]


def _index_warnings(table: Table, reported: set[int]) -> list[str]:
    """Return warnings about unnamed columns with a different integer in every row that do not count the rows.

    They may be the index of a table that was sorted, sampled or filtered, but they may also be measurements, so they are kept.
    """
    names = () if table.names is None or not isinstance(table.X, np.ndarray) else table.names
    unnamed = [j for j, name in enumerate(names) if j not in reported and NAMELESS.fullmatch(name)]
    found = [j for j in unnamed if _all_different_integers(table.X[:, j])]
    what = "has no name and a different whole number in every row; it is used as a feature. If it is an index, leave it out"
    return [
        f"warning: column {table.numbers[j]} of {table.path.name} {what}: --drop {_drop_argument(j, table)}"
        for j in found[:MAX_LISTED]
    ]


def _all_different_integers(column: Array) -> bool:
    """Return whether a column has a different integer in every row."""
    return bool((column == np.floor(column)).all()) and len(np.unique(column)) == len(column)


def _warning(columns: list[int], words: tuple[str, str], table: Table) -> list[str]:
    """Return a warning about these columns, in the words for one column or for several; nothing if there are none."""
    if not columns:
        return []
    several = len(columns) > 1
    named = [table.names[j] if table.names is not None else "" for j in columns[:MAX_LISTED]]
    shown = [repr(name) if name.strip() else str(table.numbers[j]) for j, name in zip(columns, named, strict=False)]
    which = ", ".join(shown) + (f" and {len(columns) - MAX_LISTED} more" if len(columns) > MAX_LISTED else "")
    hint = "if they are not measurements, leave them out" if several else "if it is not a measurement, leave it out"
    options = " ".join(f"--drop {_drop_argument(j, table)}" for j in columns[:MAX_LISTED])
    return [f"warning: column{'s' * several} {which} of {table.path.name} {words[several]}; {hint}: {options}"]


def suspicious(X: Any, y: Array, left_out: Sequence[int] = ()) -> tuple[list[int], list[int]]:
    """Return the columns that count the rows, and the others that are all different and separate the classes alone.

    The former hold 0, 1, 2, … or 1, 2, 3, …, including the rows that were left out. Along the latter, once sorted, each class
    is contiguous. A sample of the rows excludes most columns, and only the others are sorted. Data on disk is not checked.
    """
    counting: list[int] = []
    separating: list[int] = []
    n, classes = len(y), None
    if n < MIN_ROWS:
        return counting, separating
    some = slice(None, None, max(1, n // SAMPLE))
    place = np.delete(np.arange(n + len(left_out)), left_out)
    for columns, part in _dense_columns(X, n):
        if classes is None:
            classes = np.unique(y, return_inverse=True)[1]
        counts = _counting_columns(part, place)
        counting += [int(j) for j in columns[counts]]
        if classes.any():  # otherwise there is only one class
            disjoint = np.flatnonzero(_disjoint_classes(part[some], classes[some]) & ~counts)
            separating += [int(columns[j]) for j in disjoint if _separates(part[:, j], classes)]
    return counting, separating


def _dense_columns(X: Any, n: int) -> Iterator[tuple[Array, Array]]:
    """Yield columns of X that may have n different values, with their content as dense arrays."""
    if isinstance(X, np.ndarray) and not (isinstance(X, np.memmap) and X.nbytes > MAX_MAPPED_BYTES):
        yield np.arange(X.shape[1]), X
    elif hasattr(X, "tocsc") and X.nnz:  # a SciPy matrix; n different values leave at most one zero that is not stored
        full = np.flatnonzero(np.bincount(X.indices) >= n - 1)
        step = max(1, SPARSE_ENTRIES // n)
        for lo in range(0, len(full), step):
            yield full[lo : lo + step], X[:, full[lo : lo + step]].toarray()


def _counting_columns(X: Array, place: Array) -> Array:
    """Return which columns count the rows, given the position of each row in the file."""
    first, last = X[0].astype(float) - place[0], X[-1].astype(float) - place[-1]
    found = ((first == 0) | (first == 1)) & (last == first)
    for j in np.flatnonzero(found):
        found[j] = bool((X[:, j] == first[j] + place).all())
    return np.asarray(found)


def _disjoint_classes(X: Array, classes: Array) -> Array:
    """Return in which columns the ranges of the classes do not overlap."""
    rows = np.argsort(classes, kind="stable")
    starts = np.flatnonzero(np.diff(classes[rows], prepend=-1))
    lowest, highest = (bound.reduceat(X[rows], starts, axis=0) for bound in (np.minimum, np.maximum))
    order = np.argsort(lowest, axis=0)
    before, after = np.take_along_axis(highest, order, axis=0)[:-1], np.take_along_axis(lowest, order, axis=0)[1:]
    return np.asarray((before < after).all(axis=0))


def _separates(column: Array, classes: Array) -> bool:
    """Return whether all values are different and each class is contiguous when they are sorted."""
    order = np.argsort(column)
    different = (column[order][1:] != column[order][:-1]).all()
    return bool(different) and np.count_nonzero(np.diff(classes[order])) == classes.max()


def _drop_argument(j: int, table: Table) -> str:
    """Return what to pass to `--drop` for a column: its name, or its number if the name is empty or not unique."""
    names = table.names
    if names is None or not names[j].strip() or names.count(names[j]) > 1 or names[j].startswith("-"):
        return str(table.numbers[j])
    return shlex.quote(names[j])
