"""One function for every file of data: which format it is, and which columns are wanted."""

from __future__ import annotations

import contextlib
import errno
import os
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from gordan.arrays import whole_number
from gordan.errors import InputError
from gordan.io.delimited import DELIMITERS, header_of, read_delimited, settled
from gordan.io.index import without_index
from gordan.io.npy import DAMAGED, MAGIC, read_npy, read_npz, unpacked_npz
from gordan.io.parquet import parquet_names, read_parquet
from gordan.io.parts import Csr, physical_memory
from gordan.io.store import JOURNAL, MANIFEST, read_store
from gordan.io.svmlight import read_svmlight
from gordan.io.table import Dialect, Table, Wanted
from gordan.io.text import SUFFIXES, Text, unpacked_size

BY_SUFFIX = {".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".csv": "csv", ".tsv": "tsv", ".tab": "tsv"}
BY_SUFFIX |= {".npy": "npy", ".npz": "npz", ".parquet": "parquet", ".pq": "parquet"}
BY_MAGIC = {MAGIC: "npy", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz", b"PAR1": "parquet"}


def read(
    path: str | os.PathLike[str],
    *,
    label: str | int | None = None,
    features: int | Iterable[str] | None = None,
    labelled: bool | None = True,
    drop: Iterable[str | int] = (),
    keep_index: bool = False,
    sep: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    header: bool = True,
    missing: str = "raise",
    memory_limit: int | None = None,
) -> Table:
    """Read rows and labels from a file: svmlight, CSV, TSV, .npy, .npz, Parquet, or a folder that `gordan.io.convert` wrote.

    The format is told by the suffix (svmlight and CSV may be compressed: .gz, .bz2, .xz), and where that says nothing by the
    content. Text is read as float64, every number exactly as `float` reads it.

    Parameters
    ----------
    path : path
        The file, a folder of Parquet files, or a folder that was converted.
    label : str or int, optional
        The label column, by name or by position (from 0; negative from the end). Default: the last. svmlight has the label
        first and .npz has the array y; there it is not accepted. For .npy also a second .npy file with the labels, by its path.
    features : int or names, optional
        How many features there must be (an svmlight file gets that many columns), or the names of the columns to take, in
        that order; other columns are then ignored.
    labelled : bool or None, default=True
        False: the file has no labels. None: it may have; in a table of exactly `features` columns, or one without a column
        beside the named ones at its end, there are none.
    drop : iterable of str or int, default=()
        Columns to leave out, by name or position as for `label`; in svmlight by the index that the file has for them. What is
        in them does not matter.
    keep_index : bool, default=False
        Keep a column without a name (or with the one that pandas gives it, "Unnamed: 0") at the beginning of a CSV, TSV or
        Parquet file that counts the rows, 0, 1, 2, … or 1, 2, 3, …: the index of a data frame, which is left out otherwise.
        It is kept in any case if no other feature is left, or if `features` names the columns.
    sep : str, optional
        The one character between the columns of a table of text. Default: a comma in .csv, a tab in .tsv; where the first two
        lines have none, but as many semicolons, tabs, commas or vertical bars as each other, these, with a notice; so is what a
        first line such as `sep=;` names.
    decimal, thousands : str, default="." and None
        The decimal mark of a table of text, "." or ","; and the character that groups digits, if there is one. Numbers with a
        mark that is also between the columns must be in quotes.
    header : bool, default=True
        False: the table of text has no names of columns, and its first line is a row.
    missing : {"raise", "drop"}, default="raise"
        "drop": rows of a table of text, and of Parquet that fits into memory, are left out where a cell that is wanted is
        empty, NA, N/A, NaN, <NA>, null or None, the label too; a notice has their number. True and False are read as 1 and 0
        in any case.
    memory_limit : int, optional
        Bytes that the process should stay below. X is read into memory if it takes at most half of that; else .npy files and
        converted folders are mapped, Parquet is left in its row groups, and other files are refused. Default: .npy files and
        converted folders are mapped, Parquet beyond a quarter of the machine's memory is left in its row groups, and all
        else is read into memory.

    Returns
    -------
    Table
        `X` (dense, or CSR from svmlight and sparse .npz; mapped into memory from .npy; see `memory_limit`), `y` (whole numbers,
        numbers, booleans or text; None without labels), `names` and `path`; `numbers`, the position in the file of each column
        of X (in svmlight its index), and `notices`, lines of text: columns that were left out as an index, what is between
        columns, rows that were left out; and these rows, `left_out`.

    Raises
    ------
    InputError
        The content is refused; the message has the file, the line or row, and the reason. An .npy file is not searched for NaN,
        since it may be larger than memory: whoever computes with it finds that.
    OSError
        The file is missing, is a folder, or may not be read.
    """
    if features is not None and not isinstance(features, int):
        if isinstance(features, str):
            raise InputError(f"features is {features!r}; pass a list of names, or a number of columns")
        features = tuple(features)
        if not features or not all(isinstance(name, str) for name in features):
            raise InputError(f"features is {features!r}; pass a list of names, or a number of columns")
    elif features is not None:
        whole_number(features, "features")
    if label is not None and (isinstance(label, bool) or not isinstance(label, (str, int))):
        raise InputError(f"label is {label!r}; pass the name or the position of the label column")
    if labelled is False and label is not None:
        raise InputError("labelled is False, and label names a label column; leave out one of them")
    if memory_limit is not None:
        whole_number(memory_limit, "memory_limit")
    dialect = Dialect(sep, decimal, thousands, header, missing)
    wanted = Wanted(label, features, labelled, columns_to_drop(drop), keep_index, dialect)
    return _read(Path(path), wanted, memory_limit)


def columns_to_drop(drop: Iterable[str | int]) -> tuple[str | int, ...]:
    """What was passed for `drop`, checked."""
    found = None if isinstance(drop, str) else tuple(drop)
    if found is None or any(isinstance(column, bool) or not isinstance(column, (str, int)) for column in found):
        raise InputError(f"drop is {drop!r}; pass a list of names or positions of columns")
    return found


def _read(path: Path, wanted: Wanted, limit: int | None) -> Table:
    kind = format_of(path)
    in_memory = kind in ("svmlight", "npz", *DELIMITERS)
    if (
        in_memory
        and limit is not None
        and (unpacked_npz(path) if kind == "npz" else unpacked_size(path, limit // 2)) > limit // 2
    ):
        size = f"{path} (unpacked, if it is compressed) has more bytes than half of the memory limit of {limit}"
        raise InputError(f"{size}; convert it once with `gordan convert {path.name} FOLDER` and use the folder")
    wanted, notices = prepared(path, kind, wanted)
    table = _table(path, kind, wanted, limit)
    return replace(table, notices=(*notices, *table.notices)) if notices else table


def prepared(path: Path, kind: str, wanted: Wanted) -> tuple[Wanted, tuple[str, ...]]:
    """What is wanted of a file of that format, with its dialect settled and without its index; and the notices about that."""
    notices: tuple[str, ...] = ()
    if kind in DELIMITERS:
        wanted, notices = settled(path, kind, wanted)
    elif wanted.dialect != (Dialect(missing=wanted.dialect.missing) if kind == "parquet" else Dialect()):
        missing = "" if kind == "parquet" else " and missing"
        raise InputError(f"{path} is not a text table: sep, decimal, thousands, header{missing} are for CSV and TSV files")
    wanted, more = without_index(path, kind, wanted)
    return wanted, (*notices, *more)


def _table(path: Path, kind: str, wanted: Wanted, limit: int | None) -> Table:
    if kind == "parquet":
        return read_parquet(path, wanted, physical_memory() // 4 if limit is None else limit // 2)
    if kind in ("npy", "store"):
        most = None if limit is None else limit // 2
        table = read_npy(path, wanted, most) if kind == "npy" else read_store(path, wanted, most)
        return table if most is None else _within(table, most)
    if kind == "svmlight":
        return read_svmlight(path, wanted)
    if kind in DELIMITERS:
        return read_delimited(path, wanted)
    return read_npz(path, wanted)


def _within(table: Table, most: int) -> Table:
    """The table in memory where that takes at most so many bytes; large maps are worked on in the order of the file."""
    X = table.X
    if isinstance(X, Csr):
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        return table if size > most else replace(table, X=X.tocsr())
    if not isinstance(X, np.ndarray):  # without some columns: that is in memory
        return table
    return table if X.nbytes > most else replace(table, X=np.array(X))


def format_of(path: Path) -> str:
    """Which format a file has: "svmlight", "csv", "tsv", "npy", "npz", "parquet", or "store" for a converted folder."""
    if path.is_dir():
        if (path / MANIFEST).exists() or (path / JOURNAL).exists():
            return "store"
        if next(path.glob("*.parquet"), None) is None:
            raise IsADirectoryError(errno.EISDIR, "it is a folder without Parquet files or a manifest; pass a file", str(path))
        return "parquet"
    _refuse_others(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in SUFFIXES
    named = BY_SUFFIX.get(suffixes[-2 if packed else -1]) if len(suffixes) > packed else None
    if packed and named in ("npy", "npz", "parquet"):
        raise InputError(f"{path}: only text files may be compressed; decompress it first")
    return named or _format_by_content(path)


def names_in(path: Path, dialect: Dialect) -> list[str] | None:
    """The names of the columns of a table, empty ones where it has no header; None for files whose columns have no names."""
    kind = format_of(path)
    if kind == "parquet":
        return parquet_names(path)
    return header_of(path, settled(path, kind, Wanted(dialect=dialect))[0]) if kind in DELIMITERS else None


def _refuse_others(path: Path) -> None:
    """Say what a file is that people have tables in, and that is not read here, whatever its name."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        start = file.read(64)
    workbook = start.startswith(b"\xd0\xcf\x11\xe0")  # of old versions
    if start.startswith(b"PK\x03\x04"):
        with contextlib.suppress(*DAMAGED, OSError), zipfile.ZipFile(path) as archive:
            workbook = any(name in ("xl/workbook.xml", "content.xml") for name in archive.namelist())
    named, table = (
        (repr(path.name), f"{path.stem}-table.csv") if path.suffix else ("FILE", "table.csv")
    )  # standard input has none
    if workbook:
        to_csv = f"pandas.read_excel({named}).to_csv({table!r}, index=False)"
        raise InputError(f"{path} is a spreadsheet workbook; export the sheet as CSV, or in Python: {to_csv}")
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith((b'{"', b"[{", b"[[")) or path.suffix.lower() in (".json", ".jsonl", ".ndjson"):
        lines = ", lines=True" if path.suffix.lower() in (".jsonl", ".ndjson") else ""
        to_csv = f"pandas.read_json({named}{lines}).to_csv({table!r}, index=False)"
        raise InputError(f"{path} is JSON; convert it to CSV, in Python: {to_csv}")


def _format_by_content(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(8)
    for magic, kind in BY_MAGIC.items():
        if start.startswith(magic):
            return kind
    with Text(path) as text:
        for line in text.lines():
            tokens = line.partition(b"#")[0].split()
            if tokens and all(b":" in token for token in tokens[1:]) and (len(tokens) > 1 or b":" in tokens[0]):
                return "svmlight"
            if b"\t" in line.strip():
                return "tsv"
            if any(mark in line for mark in (b",", b";", b"|")):
                return "csv"
            if tokens:
                break
    if not start:
        raise InputError(f"{path} is empty; rows are needed")
    raise InputError(f"{path}: unknown format; name it .svm, .csv, .tsv, .npy, .npz or .parquet (text may add .gz)")
