"""Convert a file or a folder to memory-mapped arrays in bounded memory; a conversion that was killed can be resumed."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gordan.arrays import MAX_EXACT_INTEGER, Array, choose, whole_number_or_none
from gordan.errors import InputError
from gordan.io.delimited import DELIMITERS, Cells
from gordan.io.files import write_errors_at
from gordan.io.npy import open_npy
from gordan.io.parquet import open_parquet, parquet_files
from gordan.io.parts import Parts
from gordan.io.reading import columns_to_drop, format_of, resolve_columns
from gordan.io.store import (
    CODES,
    JOURNAL,
    MANIFEST,
    StoredRows,
    Writer,
    manifest_of,
    remove_output_files,
    remove_working_files,
    unfinished_head,
)
from gordan.io.svmlight import MAX_INDEX, Entries, dropped_indices, has_labels, require_existing_columns
from gordan.io.table import Dialect, Labels, Request, drop_columns, require_finite
from gordan.io.text import Text, read_rows

# The number of entries in a piece, unless `memory_limit` asks for less.
CONVERSION_ENTRIES = 1 << 22
# Rows are stored dense if at least this share of their entries is not zero.
DENSE_FILE_SHARE = 0.25


@dataclass(frozen=True)
class Converted:
    """The result of a conversion.

    `kept` is the number of rows that an earlier, interrupted run had written, `already` says whether that run was complete, and
    `notices` are those of a `gordan.io.Table`.
    """

    path: Path
    kind: str
    shape: tuple[int, int]
    entries: int
    kept: int
    already: bool = False
    notices: tuple[str, ...] = ()


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    label: str | int | None = None,
    drop: Iterable[str | int] = (),
    keep_index: bool = False,
    sep: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    header: bool = True,
    missing: str = "raise",
    kind: str = "auto",
    memory_limit: int | None = None,
    progress: Callable[[int], object] = lambda rows: None,
) -> Converted:
    """Convert data to a folder of arrays that `gordan.io.read` maps into memory.

    The conversion needs about 200 MB of memory, plus one row group of a Parquet file and one label per row, whatever the size
    of the source. If it is stopped, the same call resumes it, or starts again if the source has changed in the meantime.

    Parameters
    ----------
    source, target
        An svmlight, CSV, TSV, .npy or Parquet file, or a folder of Parquet files; and the folder to write.
    label
        The label column, by name or position, as in `gordan.io.read`.
    drop
        Columns to leave out, by name or position; in svmlight, by their index in the file.
    keep_index
        Keep a column without a name that counts the rows, as in `gordan.io.read`.
    sep, decimal, thousands, header, missing
        The format of a text table, as in `gordan.io.read`.
    kind
        "dense", "csr", or "auto": dense if at least a quarter of the entries in the first rows is not zero.
    memory_limit
        The number of bytes that the process should stay below, if 200 MB are too many.
    progress
        Called with the number of rows written so far.
    """
    path, folder = Path(source), Path(target)
    choose("kind", kind, ("auto", "dense", "csr"))
    whole_number_or_none(memory_limit, "memory_limit")
    found_kind = format_of(path)
    dialect = Dialect(sep, decimal, thousands, header, missing)
    wanted = Request(label, drop=columns_to_drop(drop), keep_index=keep_index, dialect=dialect)
    wanted, notices = resolve_columns(path, found_kind, wanted)
    max_entries = CONVERSION_ENTRIES if memory_limit is None else max(1 << 12, min(CONVERSION_ENTRIES, memory_limit // 128))
    found = _source(path, found_kind, wanted, max_entries)
    request: dict[str, Any] = {
        "name": str(path.resolve()),
        "stamp": _fingerprint(path),
        "label": label,
        "asked": kind,
        "drop": list(wanted.drop) or None,
    }
    if dialect != Dialect():
        request["dialect"] = vars(dialect)
    if (folder / MANIFEST).exists():
        done = manifest_of(folder)
        if not _matches(done["source"], request):
            raise InputError(
                f"{folder} holds other data or other columns, or {path} has changed since; name another folder, or delete it"
            )
        remove_working_files(folder)
        entries = sum(piece["entries"] for piece in done["pieces"])
        return Converted(folder, done["kind"], done["shape"], entries, done["shape"][0], True, notices)
    head = _resumable_head(folder, request)
    if head is None:
        head = {**request, **found.plan(kind)}
        if folder.exists():
            remove_output_files(folder)  # left by an interrupted conversion of something else
    with Writer(folder, head) as writer:
        kept = writer.rows
        for piece, labels in found.pieces(writer):  # `labels` are those that no earlier piece has
            with write_errors_at(folder):
                writer.write(piece, labels)
            progress(writer.rows)
        if not writer.rows:
            raise InputError(f"{path} has no rows")
        with write_errors_at(folder):
            shape = found.finish(writer)
        return Converted(folder, writer.kind, shape, writer.entries, kept, notices=notices)


def _matches(head: dict[str, Any], request: dict[str, Any]) -> bool:
    """Return whether the head of a conversion says that it was started by the same request."""
    return {name: head.get(name) for name in request} == request


def _resumable_head(folder: Path, request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the head of an interrupted conversion in this folder if it was started by the same request, else None."""
    head = unfinished_head(folder)
    if folder.exists() and head is None and any(name.name != JOURNAL for name in folder.iterdir()):
        raise InputError(f"{folder} is not empty and was not written by gordan convert; name another folder")
    return head if head is not None and _matches(head, request) else None


def _fingerprint(path: Path) -> list[list[Any]]:
    """Return name, size and time of change of each file of the source, by which a changed source is noticed."""
    return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in parquet_files(path)]


class RowSource(Protocol):
    """A file or folder that is converted piece by piece."""

    def plan(self, kind: str) -> dict[str, Any]:
        """Return what must be known before the first row is written, as plain JSON: at least the "kind" of storage."""
        ...

    def pieces(self, writer: Writer) -> Iterator[tuple[StoredRows, list[Any]]]:
        """Yield the pieces after those that are written already, each with the labels that no earlier piece has."""
        ...

    def finish(self, writer: Writer) -> tuple[int, int]:
        """Write what is known only at the end, and return the shape."""
        ...


def _source(path: Path, kind: str, wanted: Request, max_entries: int) -> RowSource:
    if kind == "svmlight":
        return _Svmlight(path, wanted, max_entries)
    if kind in DELIMITERS:
        return _Delimited(path, wanted, max_entries)
    if kind in ("parquet", "npy"):
        return _Arrays(path, wanted, kind, max_entries)
    raise InputError(f"{path}: only svmlight, CSV, TSV, .npy and Parquet are converted; `gordan.io.read` reads it as it is")


def csr_bytes(values: Array, indices: Array, counts: Array, before: int) -> dict[str, bytes]:
    """Return the bytes to append to the three CSR files for some rows, given the number of entries `before` them."""
    return {
        "data.npy": values.astype("<f4" if values.dtype == np.float32 else "<f8", copy=False).tobytes(),
        "indices.npy": indices.astype("<i4").tobytes(),
        "indptr.npy": (before + np.cumsum(counts)).astype("<i8").tobytes(),
    }


class _LabelCodes:
    """The labels of a text file: a code for each row, and the label for each code, which the pieces list as they appear."""

    def __init__(self, writer: Writer, *, words: bool = False) -> None:
        self.labels = Labels(words=words)
        known = [entry for piece in writer.pieces for entry in piece["labels"]]
        self.labels.restore([(base64.b64decode(text), line) for text, line in known])
        self._listed = len(known)

    def add_to(self, piece: StoredRows) -> tuple[StoredRows, list[Any]]:
        """Add the codes of the rows of a piece to its content, and return it with the labels that no earlier piece has."""
        codes, table = self.labels.drained()
        piece.content[CODES] = codes.astype("<i4").tobytes()
        new = [[base64.b64encode(text).decode(), line] for text, line in table[self._listed :]]
        self._listed = len(table)
        return piece, new

    def of_all_rows(self, writer: Writer, path: Path) -> Array:
        """Return the labels of all rows that were written."""
        y: Array = self.labels.distinct(path)[writer.codes()]
        return y


class _Svmlight:
    """An svmlight file: sparse rows, whose width and lowest index (0 or 1) are known only when all have been read."""

    def __init__(self, path: Path, wanted: Request, max_entries: int) -> None:
        self.path, self.max_entries = path, max_entries
        wanted.count(f"{path} is svmlight: the label comes first and columns have no names")
        self.dropped = dropped_indices(wanted, path)
        self.width, self.lowest = 0, MAX_INDEX  # `width` includes the columns that are left out

    def plan(self, kind: str) -> dict[str, Any]:
        entries = rows = 0
        for indices, _, counts in self._read(None, Labels(words=True)):
            entries, rows = entries + len(indices), rows + len(counts)
            self._update_range(indices)
            if kind == "auto" and entries + rows >= self.max_entries // 4:
                kind = "dense" if entries > DENSE_FILE_SHARE * rows * max(1, self.width) else "csr"
            if kind == "csr":
                return {"kind": "csr"}  # else the whole file is read here, because dense rows need their width beforehand
        if kind == "auto" and entries <= DENSE_FILE_SHARE * rows * max(1, self.width):
            return {"kind": "csr"}
        base, width = int(self.lowest > 0), self.width + (self.lowest == 0)
        require_existing_columns(self.dropped, base, width, self.path)
        return {"kind": "dense", "width": width, "base": base}

    def _read(self, place: Any, labels: Labels) -> Iterator[tuple[Array, Array, Array]]:
        with Text(self.path, (0, 1) if place is None else (int(place[0]), int(place[1]))) as text:
            self.text = text
            if place is None:
                has_labels(text, Request())
            entries = Entries(text, True)
            entries.labels = labels
            while text.more():
                read_rows(entries, self.max_entries)
                yield entries.drained()

    def _update_range(self, indices: Array) -> None:
        if len(indices):
            self.width = max(self.width, int(indices.max()))
            self.lowest = min(self.lowest, int(indices.min()))

    def pieces(self, writer: Writer) -> Iterator[tuple[StoredRows, list[Any]]]:
        self.codes, self.width, self.lowest = _LabelCodes(writer, words=True), writer.head.get("width", 0), MAX_INDEX
        for piece in writer.pieces:  # the widest row and the lowest index so far
            self.width, self.lowest = max(self.width, piece["place"][2]), min(self.lowest, piece["place"][3])
        for indices, values, counts in self._read(writer.place, self.codes.labels):
            if not len(counts):
                continue
            self._update_range(indices)
            indices, values, counts = drop_columns(indices, values, counts, self.dropped)
            if writer.kind == "csr":
                first = int(0 not in self.dropped)  # a guess, unless index 0 is dropped; `finish` corrects it
                content = csr_bytes(values, indices - first, counts, writer.entries)
            else:
                X = np.zeros((len(counts), self.width - len(self.dropped)))
                X[np.repeat(np.arange(len(counts)), counts), indices - writer.head["base"]] = values
                content = {"X.npy": X.astype("<f8", copy=False).tobytes()}
            yield self.codes.add_to(StoredRows(len(counts), len(indices), content, [*self.text.place, self.width, self.lowest]))

    def finish(self, writer: Writer) -> tuple[int, int]:
        y = self.codes.of_all_rows(writer, self.path)
        width = self.width if writer.kind == "dense" else self.width + (self.lowest == 0)
        if not width:
            raise InputError(f"{self.path} has no entries, so its number of columns is unknown")
        require_existing_columns(self.dropped, int(self.lowest > 0), width, self.path)
        shape = writer.rows, width - len(self.dropped)
        if writer.kind == "csr" and self.lowest == 0 and 0 not in self.dropped:
            writer.increment_indices()
        writer.finish(y, shape, "<f8", None)
        return shape


class _Delimited:
    """A CSV or TSV file; the names of its columns are read from its header, wherever the rows resume."""

    def __init__(self, path: Path, wanted: Request, max_entries: int) -> None:
        self.path, self.wanted, self.max_entries = path, wanted, max_entries

    def _read(self, place: Any, labels: Labels) -> Iterator[Array]:
        with Text(self.path) as text:
            cells = Cells(text, self.wanted)
            cells.labels, self.names, self.width, self.text = labels, cells.columns.names, cells.columns.width, text
            if place is None:
                yield from self._drain(cells)
                return
        with Text(self.path, (int(place[0]), int(place[1]))) as text:
            cells.continue_in(text)
            self.text = text
            yield from self._drain(cells)

    def _drain(self, cells: Cells) -> Iterator[Array]:
        while self.text.more():
            read_rows(cells, self.max_entries)
            yield cells.drained()

    def plan(self, kind: str) -> dict[str, Any]:
        if kind == "auto":
            kind = _kind_by_density(next(self._read(None, Labels()), np.empty((0, 1))))
        return {"kind": kind}

    def pieces(self, writer: Writer) -> Iterator[tuple[StoredRows, list[Any]]]:
        self.codes = _LabelCodes(writer)
        for X in self._read(writer.place, self.codes.labels):
            if len(X):
                yield self.codes.add_to(_rows_piece(X, writer, list(self.text.place)))

    def finish(self, writer: Writer) -> tuple[int, int]:
        shape = (writer.rows, self.width)
        writer.finish(self.codes.of_all_rows(writer, self.path), shape, "<f8", self.names)
        return shape


class _Arrays:
    """A Parquet or .npy file: X is read by slices of rows, and y is in memory."""

    def __init__(self, path: Path, wanted: Request, kind: str, max_entries: int) -> None:
        self.path = path
        self.chosen: list[int] | None = None
        self.names: tuple[str, ...] | None = None
        if kind == "parquet":
            if wanted.dialect.missing == "drop":
                raise InputError(f"{path}: convert cannot drop rows of Parquet files; write a file without missing values first")
            table = open_parquet(path, wanted)
            self.X, self.y, self.names = table.X, table.y, table.names
        else:
            self.X, self.y, self.chosen = open_npy(path, wanted)
        self.shape = len(self.X), self.X.shape[1] if self.chosen is None else len(self.chosen)
        self.step = max(1, max_entries // self.X.shape[1])
        self.dtype = "<f4" if self.X.dtype.itemsize <= 2 or self.X.dtype == np.float32 else "<f8"

    def _part(self, k: int) -> tuple[Array, int]:
        """Return the rows at place k (a row group, or some rows of an array), and the next place."""
        if isinstance(self.X, Parts):
            return self.X.parts[k].read(), k + 1
        part = np.asarray(self.X[k : k + self.step])[:, self.chosen]
        if part.dtype.kind in "iu" and part.size and max(abs(int(part.max())), abs(int(part.min()))) > MAX_EXACT_INTEGER:
            raise InputError(f"{self.path}, near row {k}: an integer beyond 2**53, which float64 cannot hold")
        require_finite(part, self.path, first=k)
        return part, k + len(part)

    def plan(self, kind: str) -> dict[str, Any]:
        if kind == "auto":
            kind = _kind_by_density(self._part(0)[0])
        return {"kind": kind}

    def pieces(self, writer: Writer) -> Iterator[tuple[StoredRows, list[Any]]]:
        k = int(writer.place or 0)
        while k < (len(self.X.parts) if isinstance(self.X, Parts) else len(self.X)):
            X, k = self._part(k)
            yield _rows_piece(X.astype(self.dtype, copy=False), writer, k), []

    def finish(self, writer: Writer) -> tuple[int, int]:
        writer.finish(self.y, self.shape, self.dtype, self.names)
        return self.shape


def _kind_by_density(first: Array) -> str:
    """Return the kind of storage that suits rows like these."""
    return "csr" if np.count_nonzero(first) < DENSE_FILE_SHARE * first.size else "dense"


def _rows_piece(X: Array, writer: Writer, place: Any) -> StoredRows:
    """Return dense rows as the next piece of either kind of storage."""
    if writer.kind == "dense":
        return StoredRows(len(X), X.size, {"X.npy": np.ascontiguousarray(X).tobytes()}, place)
    rows, columns = np.nonzero(X)
    counts = np.bincount(rows, minlength=len(X))
    return StoredRows(len(X), len(rows), csr_bytes(X[rows, columns], columns, counts, writer.entries), place)
