"""One function for every file of data: which format it is, and which columns are wanted."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from gordan.arrays import whole_number
from gordan.errors import InputError
from gordan.io.delimited import read_delimited
from gordan.io.npy import MAGIC, read_npy, read_npz
from gordan.io.parquet import read_parquet
from gordan.io.svmlight import read_svmlight
from gordan.io.table import Table, Wanted
from gordan.io.text import SUFFIXES, Text

BY_SUFFIX = {".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".csv": "csv", ".tsv": "tsv", ".tab": "tsv"}
BY_SUFFIX |= {".npy": "npy", ".npz": "npz", ".parquet": "parquet", ".pq": "parquet"}
BY_MAGIC = {MAGIC: "npy", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz", b"PAR1": "parquet"}


def read(
    path: str | os.PathLike[str],
    *,
    label: str | int | None = None,
    features: int | Iterable[str] | None = None,
    labelled: bool | None = True,
) -> Table:
    """Read rows and labels from a file: svmlight, CSV, TSV, .npy, .npz, or Parquet.

    The format is told by the suffix (svmlight and CSV may be compressed: .gz, .bz2, .xz), and where that says nothing by the
    content. Text is read as float64, every number exactly as `float` reads it.

    Parameters
    ----------
    path : path
        The file, or a folder of Parquet files.
    label : str or int, optional
        The label column, by name or by position (from 0; negative from the end). Default: the last. svmlight has the label
        first and .npz has the array y; there it is not accepted.
    features : int or names, optional
        How many features there must be (an svmlight file gets that many columns), or the names of the columns to take, in
        that order; other columns are then ignored.
    labelled : bool or None, default=True
        False: the file has no labels. None: it may have; in a table of exactly `features` columns, or one without a column
        beside the named ones at its end, there are none.

    Returns
    -------
    Table
        `X` (dense, or CSR from svmlight and sparse .npz; mapped into memory from .npy), `y` (whole numbers, numbers, booleans
        or text; None without labels), `names` and `path`.

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
    return _read(Path(path), Wanted(label, features, labelled))


def _read(path: Path, wanted: Wanted) -> Table:
    kind = format_of(path)
    if kind == "svmlight":
        return read_svmlight(path, wanted)
    if kind in ("csv", "tsv"):
        return read_delimited(path, wanted, "," if kind == "csv" else "\t")
    return {"npy": read_npy, "npz": read_npz, "parquet": read_parquet}[kind](path, wanted)


def format_of(path: Path) -> str:
    """Which format a file has: "svmlight", "csv", "tsv", "npy", "npz" or "parquet"."""
    if path.is_dir():
        if next(path.glob("*.parquet"), None) is None:
            raise IsADirectoryError(errno.EISDIR, "it is a folder, and one without Parquet files; pass a file", str(path))
        return "parquet"
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in SUFFIXES
    told = BY_SUFFIX.get(suffixes[-2 if packed else -1]) if len(suffixes) > packed else None
    if packed and told in ("npy", "npz", "parquet"):
        raise InputError(f"{path}: only text is read compressed; decompress it first")
    return told or _format_by_content(path)


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
            if b"," in line:
                return "csv"
            if tokens:
                break
    raise InputError(f"{path}: its format cannot be told; name it .svm, .csv, .tsv, .npy, .npz or .parquet (text may add .gz)")
