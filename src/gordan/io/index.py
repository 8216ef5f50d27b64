"""Recognize the index of a data frame, an unnamed first column that numbers the rows, and leave it out.

It is not a measurement, and it separates any classes that the file is sorted by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.io.delimited import DELIMITERS, header_of, leading_columns
from gordan.io.parquet import leading_parquet_columns, parquet_names
from gordan.io.table import Request

# pandas gives such names to unnamed columns when it reads them.
NAMELESS = re.compile(r"\s*|Unnamed: [0-9]+(\.[0-9]+)*")


def without_index(path: Path, kind: str, wanted: Request) -> tuple[Request, tuple[str, ...]]:
    """Return the request without the index columns of the file, and a notice for each column that is left out.

    Features chosen by name are all kept, and so is a column without which too few features would be left. A pipe is not
    inspected, because it can be read only once.
    """
    if wanted.keep_index or wanted.by_name or kind not in (*DELIMITERS, "parquet") or not (path.is_file() or path.is_dir()):
        return wanted, ()
    if kind in DELIMITERS and not wanted.dialect.header:
        return wanted, ()
    names = parquet_names(path) if kind == "parquet" else header_of(path, wanted)
    found = _candidates(names, wanted, path)
    if found:
        parts = leading_parquet_columns(path, found) if kind == "parquet" else leading_columns(path, wanted, found)
        try:
            found = found[: _count_index_columns(parts)]
        except InputError:  # the file is damaged, which reading all of it reports with the line
            found = []
    labels = [f"{j}" if not names[j].strip() else f"{j} ({names[j]!r})" for j in found]
    notices = tuple(
        f"column {label} of {path.name} has no name and counts the rows: it is left out (--keep-index keeps it, in Python "
        "keep_index=True)"
        for label in labels
    )
    return replace(wanted, drop=(*wanted.drop, *found), keep_index=True), notices


def _candidates(names: list[str], wanted: Request, path: Path) -> list[int]:
    """Return the positions of the unnamed first columns that may be left out without losing too many features."""
    width = len(names)
    dropped, label = wanted.dropped(width, names, path), wanted.known_label(width, names, path)
    found = []
    for j in (j for j in range(width) if j not in dropped):
        if j == label or not NAMELESS.fullmatch(names[j]):
            break
        found.append(j)
    least = wanted.features if isinstance(wanted.features, int) else 1
    features = width - len(dropped) - (label is not None)
    return found[: max(0, features - least)]


def _count_index_columns(parts: Iterator[tuple[int, Array]]) -> int:
    """Return how many of the first columns number the rows 0, 1, 2, … or 1, 2, 3, …, each file anew or across all files.

    `parts` are blocks of rows of these columns, each with the number of its file.
    """
    before, rows, file = 0, 0, -1
    start: Any = 0
    good: Any = True  # an entry per column: whether it has numbered all rows so far
    for number, part in parts:
        if not len(part):
            continue
        if number != file:
            before, rows, file, start = before + rows, 0, number, part[0]
            good = good & np.isin(start, (0, 1, before, before + 1))
        good = good & (part == start + np.arange(rows, rows + len(part))[:, None]).all(axis=0)
        if not good[0]:
            return 0
        rows += len(part)
    return 0 if file < 0 else int(np.argmin(np.append(good, False)))
