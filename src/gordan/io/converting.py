"""Convert a file or a folder once into arrays that are mapped: streaming, and resumable after a kill at any instant."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gordan.arrays import MOST_EXACT_INTEGER, Array
from gordan.errors import InputError
from gordan.io.delimited import DELIMITERS, Cells
from gordan.io.files import naming
from gordan.io.npy import open_npy
from gordan.io.parquet import open_parquet
from gordan.io.parts import Parts
from gordan.io.reading import columns_to_drop, format_of, prepared
from gordan.io.store import JOURNAL, MANIFEST, Piece, Writer, begun, discard, manifest_of, tidy
from gordan.io.svmlight import MOST_INDEX, Entries, dropped_numbers, labelled, require_numbers
from gordan.io.table import Dialect, Labels, Wanted, require_finite, without
from gordan.io.text import Text, take_rows

# Entries of a piece unless memory is short.
ENTRIES = 1 << 22
# Share of entries that are not zero from which on rows are stored dense.
DENSE = 0.25


@dataclass(frozen=True)
class Converted:
    """What a conversion wrote. `kept` is the number of rows that an earlier, stopped run had written; `notices` are as in a
    `gordan.io.Table`."""

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
    """Convert data to a folder of arrays that `gordan.io.read` maps.

    Memory in use is some 200 MB and what a row group takes, whatever the size of the source, and one label per row. If it is
    stopped, the same call goes on where it was; if the source was changed in between, from the beginning.

    Parameters
    ----------
    source, target
        svmlight, CSV, TSV, .npy or Parquet, a file or a folder of them; and the folder to write.
    label
        the label column, by name or position, as in `gordan.io.read`.
    drop
        columns to leave out, by name or position, in svmlight by the index that the file has for them.
    keep_index
        keep a column without a name that counts the rows, as in `gordan.io.read`.
    sep, decimal, thousands, header, missing
        how a table of text is written, as in `gordan.io.read`.
    kind
        "dense", "csr", or "auto": dense if a quarter of the entries, as the first rows have it, is not zero.
    memory_limit
        bytes that the process should stay below, where those 200 MB are too many.
    progress
        called with the number of rows written so far.
    """
    path, folder = Path(source), Path(target)
    if kind not in ("auto", "dense", "csr"):
        raise InputError(f"kind is {kind!r}; choose 'auto', 'dense' or 'csr'")
    found_kind = format_of(path)
    dialect = Dialect(sep, decimal, thousands, header, missing)
    wanted = Wanted(label, drop=columns_to_drop(drop), keep_index=keep_index, dialect=dialect)
    wanted, notices = prepared(path, found_kind, wanted)
    most = ENTRIES if memory_limit is None else max(1 << 12, min(ENTRIES, memory_limit // 128))
    found = _source(path, found_kind, wanted, most)
    stamp: dict[str, Any] = {
        "name": str(path.resolve()),
        "stamp": _stamp(path),
        "label": label,
        "asked": kind,
        "drop": list(wanted.drop) or None,
    }
    if dialect != Dialect():
        stamp["dialect"] = vars(dialect)
    if (folder / MANIFEST).exists():
        done = manifest_of(folder)
        if not _holds(done["source"], stamp):
            raise InputError(
                f"{folder} holds other data or other columns, or {path} was changed since; name another folder, or delete it"
            )
        tidy(folder)
        entries = sum(piece["entries"] for piece in done["pieces"])
        return Converted(folder, done["kind"], tuple(done["shape"]), entries, done["shape"][0], True, notices)
    head = _begun(folder, stamp)
    if head is None:
        head = {**stamp, **found.settle(kind)}
        if folder.exists():
            discard(folder)  # what a conversion of something else, which was stopped, had written
    with Writer(folder, head) as writer:
        kept = writer.rows
        found.resume(writer, head)
        for piece, labels in found.pieces(writer.place):
            with naming(folder):
                writer.write(piece, labels)
            progress(writer.rows)
        if not writer.rows:
            raise InputError(f"{path} has no rows")
        with naming(folder):
            shape = found.finish(writer)
        return Converted(folder, writer.kind, shape, writer.entries, kept, notices=notices)


def _holds(head: dict[str, Any], stamp: dict[str, Any]) -> bool:
    """Whether a conversion that says this of itself is the one that is asked for."""
    return {name: head.get(name) for name in stamp} == stamp


def _begun(folder: Path, stamp: dict[str, Any]) -> dict[str, Any] | None:
    """What a conversion that was stopped says of itself, if it is the one that is asked for."""
    head = begun(folder)
    if folder.exists() and head is None and any(name.name != JOURNAL for name in folder.iterdir()):
        raise InputError(f"{folder} is not empty and was not written by gordan convert; name another folder")
    return head if head is not None and _holds(head, stamp) else None


def _stamp(path: Path) -> list[list[Any]]:
    """What tells whether the source is still the same."""
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]


class Source(Protocol):
    """Something that can be converted."""

    def settle(self, kind: str) -> dict[str, Any]:
        """What must be known before the first row is written, as plain JSON: at least the "kind" of storage."""
        ...

    def resume(self, writer: Writer, head: dict[str, Any]) -> None:
        """Take up what `settle` found and what was written already."""
        ...

    def pieces(self, place: Any) -> Iterator[tuple[Piece, list[Any]]]:
        """The rows from a place on (None: all), with the labels first seen in each piece."""
        ...

    def finish(self, writer: Writer) -> tuple[int, int]:
        """Write the rest; the shape."""
        ...


def _source(path: Path, kind: str, wanted: Wanted, most: int) -> Source:
    if kind == "svmlight":
        return _Svmlight(path, wanted, most)
    if kind in DELIMITERS:
        return _Delimited(path, wanted, most)
    if kind in ("parquet", "npy"):
        return _Arrays(path, wanted, kind, most)
    raise InputError(f"{path}: only svmlight, CSV, TSV, .npy and Parquet are converted; `gordan.io.read` reads it as it is")


def csr_bytes(values: Array, indices: Array, counts: Array, before: int) -> dict[str, bytes]:
    """The content of the three files for some rows, after so many entries."""
    return {
        "data.npy": values.astype("<f4" if values.dtype == np.float32 else "<f8", copy=False).tobytes(),
        "indices.npy": indices.astype("<i4").tobytes(),
        "indptr.npy": (before + np.cumsum(counts)).astype("<i8").tobytes(),
    }


class _Text:
    """What svmlight and delimited text share: labels as codes, and pieces at places of a text."""

    words = False  # see `Labels`

    def __init__(self, path: Path, most: int) -> None:
        self.path, self.most = path, most
        self.labels = Labels(words=self.words)
        self.seen = 0
        self.written = 0

    def known(self, writer: Writer) -> None:
        """Take up the labels and the entries that were written."""
        told = [entry for piece in writer.pieces for entry in piece["labels"]]
        self.labels.known([(base64.b64decode(text), line) for text, line in told])
        self.seen, self.written = len(told), writer.entries

    def new_labels(self, content: dict[str, bytes]) -> list[Any]:
        """Add the codes of the labels since the last piece to its content; those not seen before."""
        codes, table = self.labels.drained()
        content["codes.part"] = codes.astype("<i4").tobytes()
        new = [[base64.b64encode(text).decode(), line] for text, line in table[self.seen :]]
        self.seen = len(table)
        return new

    def y(self, writer: Writer) -> Array:
        """The labels of all rows."""
        found: Array = self.labels.distinct(self.path)[writer.codes()]
        return found


class _Svmlight(_Text):
    """svmlight: sparse rows, whose width and lowest index (0 or 1) are known when all have been read."""

    words = True

    def __init__(self, path: Path, wanted: Wanted, most: int) -> None:
        super().__init__(path, most)
        wanted.count(f"{path} is svmlight: the label comes first and columns have no names")
        self.dropped = dropped_numbers(wanted, path)
        self.width, self.base, self.kind = 0, 1, "csr"  # of the file: columns that are left out count
        self.lowest = MOST_INDEX

    def settle(self, kind: str) -> dict[str, Any]:
        """Dense rows need their width before the first is written: the file is gone through once for it."""
        entries = rows = 0
        for indices, _, counts in self._read(None):
            entries, rows = entries + len(indices), rows + len(counts)
            self._note(indices)
            if kind == "auto" and entries + rows >= self.most // 4:
                kind = "dense" if entries > DENSE * rows * max(1, self.width) else "csr"
            if kind == "csr":
                return {"kind": "csr"}
        if kind == "auto" and entries <= DENSE * rows * max(1, self.width):
            return {"kind": "csr"}
        base, width = int(self.lowest > 0), self.width + (self.lowest == 0)
        require_numbers(self.dropped, base, width, self.path)
        return {"kind": "dense", "width": width, "base": base}

    def resume(self, writer: Writer, head: dict[str, Any]) -> None:
        self.kind, self.labels, self.lowest = head["kind"], Labels(words=True), MOST_INDEX
        self.known(writer)
        self.width, self.base = head.get("width", 0), head.get("base", 1)
        for piece in writer.pieces:  # the widest row and the lowest index so far
            self.width, self.lowest = max(self.width, piece["place"][2]), min(self.lowest, piece["place"][3])

    def _read(self, place: Any) -> Iterator[tuple[Array, Array, Array]]:
        with Text(self.path, (0, 1) if place is None else (int(place[0]), int(place[1]))) as text:
            self.text = text
            if place is None:
                labelled(text, Wanted())
            entries = Entries(text, True)
            entries.labels = self.labels

            while text.more():
                take_rows(entries, self.most)
                yield entries.drained()

    def _note(self, indices: Array) -> None:
        if len(indices):
            self.width = max(self.width, int(indices.max()))
            self.lowest = min(self.lowest, int(indices.min()))

    def pieces(self, place: Any) -> Iterator[tuple[Piece, list[Any]]]:
        for indices, values, counts in self._read(place):
            if not len(counts):
                continue
            self._note(indices)
            indices, values, counts = without(indices, values, counts, self.dropped)
            if self.kind == "csr":
                first = int(0 not in self.dropped)  # from 1; put right at the end if it is from 0, unless that is known
                content = csr_bytes(values, indices - first, counts, self.written)
            else:
                X = np.zeros((len(counts), self.width - len(self.dropped)))
                X[np.repeat(np.arange(len(counts)), counts), indices - self.base] = values
                content = {"X.npy": X.astype("<f8", copy=False).tobytes()}
            self.written += len(indices)
            labels = self.new_labels(content)
            yield Piece(len(counts), len(indices), content, [*self.text.place, self.width, self.lowest]), labels

    def finish(self, writer: Writer) -> tuple[int, int]:
        y = self.y(writer)
        width = self.width if self.kind == "dense" else self.width + (self.lowest == 0)
        if not width:
            raise InputError(f"{self.path} has no entries, so its number of columns is unknown")
        require_numbers(self.dropped, int(self.lowest > 0), width, self.path)
        width -= len(self.dropped)
        if self.kind == "dense":
            writer.finish(y, (writer.rows, width), {"X.npy": "<f8"}, None)
            return writer.rows, width
        if self.lowest == 0 and 0 not in self.dropped:
            writer.add_to_indices(1)
        writer.finish(y, (writer.rows, width), {"data.npy": "<f8", "indices.npy": "<i4", "indptr.npy": "<i8"}, None)
        return writer.rows, width


class _Delimited(_Text):
    """CSV and TSV: the columns that are wanted. Their names are read from the head of the file, wherever the rows begin."""

    def __init__(self, path: Path, wanted: Wanted, most: int) -> None:
        super().__init__(path, most)
        self.wanted = wanted
        self.kind = "dense"

    def _read(self, place: Any) -> Iterator[Array]:
        with Text(self.path) as text:
            cells = Cells(text, self.wanted)
            cells.labels, self.names, self.width, self.text = self.labels, cells.names, cells.width, text
            if place is None:
                yield from self._drain(cells)
                return
        with Text(self.path, (int(place[0]), int(place[1]))) as text:
            cells.go_to(text)
            self.text = text
            yield from self._drain(cells)

    def _drain(self, cells: Cells) -> Iterator[Array]:
        while self.text.more():
            take_rows(cells, self.most)
            yield cells.drained()

    def settle(self, kind: str) -> dict[str, Any]:
        if kind == "auto":
            kind = _by_density(next(self._read(None), np.empty((0, 1))))
        return {"kind": kind}

    def resume(self, writer: Writer, head: dict[str, Any]) -> None:
        self.kind, self.labels = head["kind"], Labels()
        self.known(writer)

    def pieces(self, place: Any) -> Iterator[tuple[Piece, list[Any]]]:
        for X in self._read(place):
            if len(X):
                piece = _rows_piece(X, self.kind, self.written, list(self.text.place))
                self.written += piece.entries
                yield piece, self.new_labels(piece.content)

    def finish(self, writer: Writer) -> tuple[int, int]:
        shape = (writer.rows, self.width)
        writer.finish(self.y(writer), shape, _dtypes("<f8"), self.names)
        return shape


class _Arrays:
    """Parquet and .npy: X by slices of rows, y in memory."""

    def __init__(self, path: Path, wanted: Wanted, kind: str, most: int) -> None:
        self.path = path
        self.chosen: list[int] | None = None
        self.names: tuple[str, ...] | None = None
        if kind == "parquet":
            if wanted.dialect.missing == "drop":
                raise InputError(f"{path}: convert leaves no rows of Parquet out; write a file without missing values first")
            table = open_parquet(path, wanted)
            self.X, self.y, self.names = table.X, table.y, table.names
        else:
            self.X, self.y, self.chosen = open_npy(path, wanted)
        self.shape = len(self.X), self.X.shape[1] if self.chosen is None else len(self.chosen)
        self.step = max(1, most // self.X.shape[1])
        self.dtype = "<f4" if self.X.dtype.itemsize <= 2 or self.X.dtype == np.float32 else "<f8"
        self.kind, self.written = "dense", 0

    def _part(self, k: int) -> tuple[Array, int]:
        """Rows from place k on, and the next place: a row group, or some rows."""
        if isinstance(self.X, Parts):
            return self.X.parts[k].read(), k + 1
        part = np.asarray(self.X[k : k + self.step])[:, self.chosen]
        if part.dtype.kind in "iu" and part.size and max(abs(int(part.max())), abs(int(part.min()))) > MOST_EXACT_INTEGER:
            raise InputError(f"{self.path}, near row {k}: an integer beyond 2**53, which float64 cannot hold")
        require_finite(part, self.path, first=k)
        return part, k + len(part)

    def settle(self, kind: str) -> dict[str, Any]:
        if kind == "auto":
            kind = _by_density(self._part(0)[0])
        return {"kind": kind}

    def resume(self, writer: Writer, head: dict[str, Any]) -> None:
        self.kind, self.written = head["kind"], writer.entries

    def pieces(self, place: Any) -> Iterator[tuple[Piece, list[Any]]]:
        k = 0 if place is None else int(place)
        while k < (len(self.X.parts) if isinstance(self.X, Parts) else len(self.X)):
            X, k = self._part(k)
            piece = _rows_piece(X.astype(self.dtype, copy=False), self.kind, self.written, k)
            self.written += piece.entries
            yield piece, []

    def finish(self, writer: Writer) -> tuple[int, int]:
        writer.finish(self.y, self.shape, _dtypes(self.dtype), self.names)
        return self.shape


def _by_density(first: Array) -> str:
    """How to store rows like these."""
    return "csr" if np.count_nonzero(first) < DENSE * first.size else "dense"


def _rows_piece(X: Array, kind: str, before: int, place: Any) -> Piece:
    """Dense rows as a piece of either kind."""
    if kind == "dense":
        return Piece(len(X), X.size, {"X.npy": np.ascontiguousarray(X).tobytes()}, place)
    rows, columns = np.nonzero(X)
    counts = np.bincount(rows, minlength=len(X))
    return Piece(len(X), len(rows), csr_bytes(X[rows, columns], columns, counts, before), place)


def _dtypes(values: str) -> dict[str, str]:
    return {"X.npy": values, "data.npy": values, "indices.npy": "<i4", "indptr.npy": "<i8"}
