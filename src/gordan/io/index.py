"""A nameless first column that counts the rows, as data frames write their index: it is left out, since it is no measurement and
separates whatever is sorted by class."""

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
from gordan.io.table import Wanted

# pandas names the nameless columns that it reads.
NAMELESS = re.compile(r"\s*|Unnamed: [0-9]+(\.[0-9]+)*")


def without_index(path: Path, kind: str, wanted: Wanted) -> tuple[Wanted, tuple[str, ...]]:
    """What is wanted of a file of that format, less its index; and a notice for each column that is left out for that.

    Nothing is left out of features that are chosen by name, nor so much that fewer are left than wanted, or none. A pipe can be
    read only once, so it is not looked at.
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
            found = found[: _counting(parts)]
        except InputError:  # something is wrong with the file: whoever reads all of it says what
            found = []
    told = [f"{j}" if not names[j].strip() else f"{j} ({names[j]!r})" for j in found]
    notices = tuple(
        f"column {each} of {path.name} has no name and counts the rows: it is left out (--keep-index keeps it, in Python "
        "keep_index=True)"
        for each in told
    )
    return replace(wanted, drop=(*wanted.drop, *found), keep_index=True), notices


def _candidates(names: list[str], wanted: Wanted, path: Path) -> list[int]:
    """The nameless columns at the beginning, as many as can be spared."""
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


def _counting(parts: Iterator[tuple[int, Array]]) -> int:
    """How many of the first columns count the rows: 0, 1, 2, … or 1, 2, 3, …; each file from its beginning, or on from the last.

    `parts` are the columns, some rows at a time, with the number of the file they are from.
    """
    before, rows, file = 0, 0, -1
    start: Any = 0
    good: Any = True  # of each column
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
