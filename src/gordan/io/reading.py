"""Read a table from a file of any supported format."""

from __future__ import annotations

import contextlib
import errno
import os
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from gordan.arrays import whole_number, whole_number_or_none
from gordan.errors import InputError
from gordan.io.container import MAGIC
from gordan.io.delimited import DELIMITERS, header_of, read_delimited, with_separator
from gordan.io.index import without_index
from gordan.io.npy import ARCHIVE_ERRORS, NPY_MAGIC, npz_size, read_npy, read_npz
from gordan.io.parquet import parquet_names, read_parquet
from gordan.io.parts import Csr, physical_memory
from gordan.io.store import JOURNAL, MANIFEST, read_store
from gordan.io.svmlight import read_svmlight
from gordan.io.table import Dialect, Request, Table
from gordan.io.text import SUFFIXES, Text, decompressed_size

BY_SUFFIX = {".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".csv": "csv", ".tsv": "tsv", ".tab": "tsv"}
BY_SUFFIX |= {".npy": "npy", ".npz": "npz", ".parquet": "parquet", ".pq": "parquet"}
BY_MAGIC = {NPY_MAGIC: "npy", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz", b"PAR1": "parquet"}


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

    The format is determined by the suffix of the name (svmlight and CSV may be compressed: .gz, .bz2, .xz) or else by the
    content. Numbers in text are read as float64, exactly as `float` reads them.

    Parameters
    ----------
    path : path
        A file, a folder of Parquet files, or a converted folder.
    label : str or int, optional
        The label column, by name or by position (from 0; negative positions count from the end). Default: the last column. For
        .npy it may also be the path of a second .npy file with the labels. It cannot be passed for svmlight, which has the label
        first, or for .npz, which has the labels in the array y.
    features : int or names, optional
        The number of features that the file must have (an svmlight file gets that many columns), or the names of the columns to
        read, in this order; other columns are then ignored.
    labelled : bool or None, default=True
        False: the file has no labels. None: it may have labels; it has none if it has exactly `features` columns, or if its last
        column is one of the named features.
    drop : iterable of str or int, default=()
        Columns to leave out, by name or position as for `label`; in svmlight, by their index in the file. They may contain
        anything.
    keep_index : bool, default=False
        Keep a column without a name (or with a name that pandas gives it, "Unnamed: 0") at the beginning of a CSV, TSV or
        Parquet file that counts the rows, 0, 1, 2, … or 1, 2, 3, …. This is the index of a data frame, and is left out by
        default, unless no other feature is left or `features` names the columns.
    sep : str, optional
        The character that separates the columns of a text table. Default: a comma in .csv and a tab in .tsv, unless a first line
        such as `sep=;` names another one, or the first two lines contain none but the same number of semicolons, tabs, commas or
        vertical bars; a notice says which one is used.
    decimal, thousands : str, default="." and None
        The decimal mark of a text table, "." or ",", and the character that groups digits, if any. Numbers that contain the
        separator of the columns must be in quotes.
    header : bool, default=True
        False: the text table has no header, and its first line is a row.
    missing : {"raise", "drop"}, default="raise"
        "drop": leave out rows of a text table, or of a Parquet file that fits into memory, in which a feature or the label is
        empty, NA, N/A, NaN, <NA>, null or None; a notice says how many. True and False are always read as 1 and 0.
    memory_limit : int, optional
        The number of bytes that the process should stay below. X is read into memory if it takes at most half of that; otherwise
        .npy files and converted folders are mapped, Parquet is left in its row groups, and other files are refused. Default:
        .npy files and converted folders are mapped, Parquet larger than a quarter of the machine's memory is left in its row
        groups, and everything else is read into memory.

    Returns
    -------
    Table
        `X` (dense, or CSR from svmlight and sparse .npz; mapped into memory from .npy; see `memory_limit`), `y` (integers,
        floats, booleans or text; None without labels), `names` and `path`; `numbers`, the position in the file of each column of
        X (in svmlight its index); `notices`, lines of text about the separator and about columns and rows that were left out;
        and `left_out`, the numbers of these rows.

    Raises
    ------
    InputError
        If the content is invalid; the message names the file, the line or row, and the reason. An .npy file is not searched for
        NaN, because it may be larger than memory; computations with it report NaN instead.
    OSError
        If the file does not exist, is a folder, or cannot be read.
    """
    if isinstance(features, int):
        whole_number(features, "features")
    elif features is not None:
        named = () if isinstance(features, str) else tuple(features)
        if not named or not all(isinstance(name, str) for name in named):
            raise InputError(f"features is {features!r}; pass a list of names, or a number of columns")
        features = named
    if label is not None and (isinstance(label, bool) or not isinstance(label, (str, int))):
        raise InputError(f"label is {label!r}; pass the name or the position of the label column")
    if labelled is False and label is not None:
        raise InputError("labelled is False, and label names a label column; leave out one of them")
    whole_number_or_none(memory_limit, "memory_limit")
    dialect = Dialect(sep, decimal, thousands, header, missing)
    wanted = Request(label, features, labelled, columns_to_drop(drop), keep_index, dialect)
    return _read(Path(path), wanted, memory_limit)


def columns_to_drop(drop: Iterable[str | int]) -> tuple[str | int, ...]:
    """Return the argument `drop` as a tuple, or raise an InputError if it is not a list of columns."""
    found = None if isinstance(drop, str) else tuple(drop)
    if found is None or any(isinstance(column, bool) or not isinstance(column, (str, int)) for column in found):
        raise InputError(f"drop is {drop!r}; pass a list of names or positions of columns")
    return found


def _read(path: Path, wanted: Request, limit: int | None) -> Table:
    kind = format_of(path)
    if kind in ("svmlight", "npz", *DELIMITERS) and limit is not None:
        size = npz_size(path) if kind == "npz" else decompressed_size(path, limit // 2)
        if size > limit // 2:
            raise InputError(
                f"{path} (decompressed) has more bytes than half of the memory limit of {limit}; "
                f"convert it once with `gordan convert {path.name} FOLDER` and use the folder"
            )
    wanted, notices = resolve_columns(path, kind, wanted)
    table = _table(path, kind, wanted, limit)
    return replace(table, notices=(*notices, *table.notices)) if notices else table


def resolve_columns(path: Path, kind: str, wanted: Request) -> tuple[Request, tuple[str, ...]]:
    """Return the request with the separator of the file and without its index columns, and the notices about these."""
    notices: tuple[str, ...] = ()
    if kind in DELIMITERS:
        wanted, notices = with_separator(path, kind, wanted)
    elif wanted.dialect != (Dialect(missing=wanted.dialect.missing) if kind == "parquet" else Dialect()):
        missing = "" if kind == "parquet" else " and missing"
        raise InputError(f"{path} is not a text table; sep, decimal, thousands, header{missing} are for CSV and TSV files")
    wanted, more = without_index(path, kind, wanted)
    return wanted, (*notices, *more)


def _table(path: Path, kind: str, wanted: Request, limit: int | None) -> Table:
    if kind == "parquet":
        return read_parquet(path, wanted, physical_memory() // 4 if limit is None else limit // 2)
    if kind in ("npy", "store"):
        most = None if limit is None else limit // 2
        table = read_npy(path, wanted, most) if kind == "npy" else read_store(path, wanted, most)
        return table if most is None else _loaded_if_small(table, most)
    if kind == "svmlight":
        return read_svmlight(path, wanted)
    if kind in DELIMITERS:
        return read_delimited(path, wanted)
    return read_npz(path, wanted)


def _loaded_if_small(table: Table, most: int) -> Table:
    """Return the table with X in memory if X takes at most `most` bytes, else unchanged."""
    X = table.X
    if isinstance(X, Csr):
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        return table if size > most else replace(table, X=X.tocsr())
    if not isinstance(X, np.ndarray):  # a SciPy matrix, which is in memory already
        return table
    return table if X.nbytes > most else replace(table, X=np.array(X))


def format_of(path: Path) -> str:
    """Return the format of a file: "svmlight", "csv", "tsv", "npy", "npz", "parquet", or "store" for a converted folder."""
    if path.is_dir():
        if (path / MANIFEST).exists() or (path / JOURNAL).exists():
            return "store"
        if next(path.glob("*.parquet"), None) is None:
            raise IsADirectoryError(errno.EISDIR, "it is a folder without Parquet files or a manifest; pass a file", str(path))
        return "parquet"
    _refuse_other_formats(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in SUFFIXES
    named = BY_SUFFIX.get(suffixes[-2 if packed else -1]) if len(suffixes) > packed else None
    if packed and named in ("npy", "npz", "parquet"):
        raise InputError(f"{path}: only text files may be compressed; decompress it first")
    return named or _format_by_content(path)


def names_in(path: Path, dialect: Dialect) -> list[str] | None:
    """Return the names of the columns, which are empty without a header; None for formats whose columns have no names."""
    kind = format_of(path)
    if kind == "parquet":
        return parquet_names(path)
    return header_of(path, with_separator(path, kind, Request(dialect=dialect))[0]) if kind in DELIMITERS else None


def _refuse_other_formats(path: Path) -> None:
    """Raise an InputError that says how to convert a workbook, JSON or Feather, or what to do with a file of gordan's own.

    The name of the file does not matter.
    """
    if not path.is_file():
        return
    with path.open("rb") as file:
        start = file.read(64)
    if start.startswith(MAGIC):
        raise InputError(
            f"{path} is a model or a checkpoint of gordan; pass data here (in predict and verify the model comes first)"
        )
    workbook = start.startswith(b"\xd0\xcf\x11\xe0")  # .xls
    if start.startswith(b"PK\x03\x04"):
        with contextlib.suppress(*ARCHIVE_ERRORS, OSError), zipfile.ZipFile(path) as archive:
            workbook = any(name in ("xl/workbook.xml", "content.xml") for name in archive.namelist())
    named, table = (repr(path.name), f"{path.stem}-table.csv") if path.suffix else ("FILE", "table.csv")  # standard input
    if workbook:
        to_csv = f"pandas.read_excel({named}).to_csv({table!r}, index=False)"
        raise InputError(f"{path} is a spreadsheet workbook; export the sheet as CSV, or in Python: {to_csv}")
    if start.startswith(b"ARROW1"):
        to_parquet = f"pandas.read_feather({named}).to_parquet({table.removesuffix('csv') + 'parquet'!r})"
        raise InputError(f"{path} is a Feather file; convert it to Parquet, in Python: {to_parquet}")
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
