"""Write and read a folder of arrays for data larger than memory: it is written once, piece by piece, and then mapped.

    manifest.json                            shape, names, and the SHA-256 of every piece of every file; written last
    X.npy                                    dense, or
    data.npy, indices.npy, indptr.npy        CSR
    y.npy                                    the labels

While the folder is being written it has a journal instead of the manifest, with a line for each piece that is on disk. After a
crash, writing resumes after the last complete line.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.io.files import flush_to_disk, write_atomic, write_errors_at
from gordan.io.npy import read_labels, select_mapped_columns
from gordan.io.parts import Csr
from gordan.io.table import Request, Table, select_columns
from gordan.schema import COUNT, TEXT, FieldType, choice, each, fields, mapping, optional, require_format, strict_json

MANIFEST, JOURNAL, FORMAT = "manifest.json", "journal.jsonl", "gordan-data-1"
HEADER = 128  # the size in bytes of the header of each .npy file
CODES = "codes.part"  # the codes of the labels of text, while a folder is being written
FILES = {"dense": ("X.npy",), "csr": ("data.npy", "indices.npy", "indptr.npy")}
SIZE = COUNT._replace(description="a nonnegative integer below 2**48", holds=lambda size: 0 <= size < 2**48)
ARRAY = mapping("an array", {"dtype": choice("<f4", "<f8", "<i4", "<i8"), "shape": each(SIZE, "a list of sizes")})


def _is_place(plain: Any) -> bool:
    """Return whether this is a place in a source: a number of rows or files, or in text, two to four numbers."""
    return COUNT.allows(plain) or (type(plain) is list and 2 <= len(plain) <= 4 and COUNT.allows_all(plain))


def _is_label(plain: Any) -> bool:
    """Return whether this is a label in a journal: its text in base64, and the line where it was first met."""
    return type(plain) is list and [*map(type, plain)] == [str, int]


PLACE = FieldType((int, list), "a place in the source", holds=_is_place)
LABELS = FieldType((list,), "labels, each with its line", holds=lambda labels: all(map(_is_label, labels)))


@dataclass(frozen=True)
class StoredRows:
    """Some consecutive rows: their bytes for each file, their numbers of rows and entries, and the place in the source behind."""

    rows: int
    entries: int
    content: dict[str, bytes]
    place: Any


@dataclass
class Writer:
    """A folder that is being written.

    `head` describes the source, the request and the "kind" of storage; only a folder with the same head is resumed.
    """

    path: Path
    head: dict[str, Any]
    pieces: list[dict[str, Any]] = field(default_factory=list)
    _journal: IO[bytes] | None = None
    _files: dict[str, IO[bytes]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The kind of storage, "dense" or "csr"."""
        return str(self.head["kind"])

    def __enter__(self) -> Writer:
        with write_errors_at(self.path):
            self.path.mkdir(exist_ok=True)
            self._journal = (self.path / JOURNAL).open("a+b")
        try:
            with write_errors_at(self.path):
                self._open(self._journal)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _open(self, journal: IO[bytes]) -> None:
        try:
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{self.path} is being written by another process") from None
        kept = self._read_journal()
        os.ftruncate(journal.fileno(), kept)
        if not kept:
            self._append({"format": FORMAT, **self.head})
        for name in (*FILES[self.kind], CODES):
            file = self._files[name] = open(self.path / name, "a+b")  # noqa: SIM115 (closed in __exit__)
            size = self.size_of(name)
            if self.pieces and os.fstat(file.fileno()).st_size < size:
                raise InputError(f"{self.path / name} was cut short; delete {self.path} and convert again")
            os.ftruncate(file.fileno(), size if self.pieces else 0)
            if not self.pieces and name != CODES:
                file.write(bytes(HEADER) + (bytes(8) if name == "indptr.npy" else b""))

    def __exit__(self, *_: object) -> None:
        with write_errors_at(self.path), contextlib.ExitStack() as files:  # closing flushes, which fails again on a full disk
            for file in (*self._files.values(), self._journal):
                if file is not None:
                    files.callback(file.close)

    def size_of(self, name: str) -> int:
        """Return the size of a file after the last complete piece, in bytes."""
        start = 0 if name == CODES else HEADER + 8 * (name == "indptr.npy")
        return start + sum(int(piece["bytes"][name]) for piece in self.pieces)

    @property
    def place(self) -> Any:
        """The place in the source after the last piece; None at its beginning."""
        return self.pieces[-1]["place"] if self.pieces else None

    @property
    def rows(self) -> int:
        """The number of rows that are written."""
        return sum(int(piece["rows"]) for piece in self.pieces)

    @property
    def entries(self) -> int:
        """The number of entries that are written."""
        return sum(int(piece["entries"]) for piece in self.pieces)

    def write(self, piece: StoredRows, labels: list[Any]) -> None:
        """Write the bytes of a piece to disk, and then its line in the journal; `labels` are those that no earlier piece has."""
        for name, content in piece.content.items():
            self._files[name].write(content)
            flush_to_disk(self._files[name])
        contents = {name: piece.content.get(name, b"") for name in self._files}
        record = {
            "rows": piece.rows,
            "entries": piece.entries,
            "bytes": {name: len(content) for name, content in contents.items()},
            "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
            "place": piece.place,
            "labels": labels,
        }
        self._append(record)
        self.pieces.append(record)

    def codes(self) -> Array:
        """Return the codes of the labels of all rows."""
        return np.fromfile(self.path / CODES, "<i4")

    def finish(self, y: Array | None, shape: tuple[int, int], dtype: str, names: tuple[str, ...] | None) -> None:
        """Write the headers, the labels and, last, the manifest; `dtype` is that of the values."""
        dtypes = dict.fromkeys(FILES[self.kind], dtype) | {"indices.npy": "<i4", "indptr.npy": "<i8"}
        lengths = {"X.npy": shape, "data.npy": (self.entries,), "indices.npy": (self.entries,), "indptr.npy": (shape[0] + 1,)}
        for name in FILES[self.kind]:
            with open(self.path / name, "r+b") as file:
                file.write(header(dtypes[name], lengths[name]))
                flush_to_disk(file)
        labels: dict[str, Any] | None = None
        if y is not None:
            content = io.BytesIO()
            np.save(content, y, allow_pickle=False)
            write_atomic(self.path / "y.npy", content.getvalue())
            labels = {"bytes": len(content.getvalue()), "sha256": hashlib.sha256(content.getvalue()).hexdigest()}
        files = {name: {"dtype": dtypes[name], "shape": list(lengths[name])} for name in FILES[self.kind]}
        pieces = [
            {
                "rows": piece["rows"],
                "entries": piece["entries"],
                "bytes": {name: piece["bytes"][name] for name in files},
                "sha256": {name: piece["sha256"][name] for name in files},
            }
            for piece in self.pieces
        ]
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "kind": self.kind,
            "shape": list(shape),
            "names": None if names is None else list(names),
            "y": labels,
            "files": files,
            "source": self.head,
            "pieces": pieces,
        }
        write_atomic(self.path / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n")
        remove_working_files(self.path)

    def increment_indices(self) -> None:
        """Add 1 to all column indices, which were written too low; nothing is added if none is negative, after a crash here."""
        old, new = self.path / "indices.npy", self.path / "indices.part"
        lowest = min((int(part.min()) for part in self._index_pieces(old) if len(part)), default=0)
        with new.open("wb") as file:
            file.write(bytes(HEADER))
            for piece, part in zip(self.pieces, self._index_pieces(old), strict=True):
                content = (part + (lowest < 0)).astype("<i4").tobytes()
                piece["sha256"]["indices.npy"] = hashlib.sha256(content).hexdigest()
                file.write(content)
            flush_to_disk(file)
        os.replace(new, old)

    def _index_pieces(self, path: Path) -> Iterator[Array]:
        with path.open("rb") as file:
            file.seek(HEADER)
            for piece in self.pieces:
                yield np.frombuffer(file.read(piece["bytes"]["indices.npy"]), "<i4")

    def _append(self, record: dict[str, Any]) -> None:
        assert self._journal is not None
        self._journal.write(json.dumps(record).encode() + b"\n")
        flush_to_disk(self._journal)

    def _read_journal(self) -> int:
        """Restore the pieces from the lines before the first damaged one; return their size, 0 if the head is another one."""
        assert self._journal is not None
        self._journal.seek(0)
        lines = self._journal.read().split(b"\n")[:-1]
        records: list[Any] = []
        piece = mapping("a piece", _piece_fields((*FILES[self.kind], CODES)) | {"place": PLACE, "labels": LABELS})
        for line in lines:
            try:
                plain = strict_json(line)
                records.append(piece.parse(plain, "a piece") if records else plain)
            except (ValueError, RecursionError):
                break
        if not records or records[0] != {"format": FORMAT, **self.head}:
            return 0
        self.pieces = records[1:]
        return sum(len(line) + 1 for line in lines[: len(records)])


def remove_working_files(path: Path) -> None:
    """Remove the files that only a writer needs."""
    for name in (CODES, "indices.part", JOURNAL):
        (path / name).unlink(missing_ok=True)


def remove_output_files(path: Path) -> None:
    """Remove all files of a writer; the journal last, because it identifies them."""
    for name in (*FILES["dense"], *FILES["csr"], "y.npy", MANIFEST):
        (path / name).unlink(missing_ok=True)
    remove_working_files(path)


def header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of an .npy file, which has 128 bytes whatever the shape: NumPy fills it up to a multiple of 64."""
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": dtype, "fortran_order": False, "shape": shape})
    return content.getvalue()


def unfinished_head(path: Path) -> dict[str, Any] | None:
    """Return the head of an unfinished folder; None if there is none."""
    try:
        with (path / JOURNAL).open("rb") as file:
            line = file.readline()
        found = strict_json(line) if line.endswith(b"\n") else None
    except (FileNotFoundError, ValueError):
        return None
    return {name: value for name, value in found.items() if name != "format"} if isinstance(found, dict) else None


def require_store(path: Path) -> None:
    """Raise an error if this is not a folder that `convert` has written or begun to write."""
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if not ((path / MANIFEST).exists() or (path / JOURNAL).exists()):
        raise InputError(f"{path} is not a folder that `gordan convert` wrote")


def manifest_of(path: Path) -> dict[str, Any]:
    """Return the manifest of a folder; raise an InputError if it is unfinished, damaged or of a newer format."""
    require_store(path)
    if not (path / MANIFEST).exists():
        raise InputError(f"{path} is unfinished: its conversion was stopped; run `gordan convert` again to resume")
    try:
        plain = strict_json((path / MANIFEST).read_bytes())
        hint = "use the version that wrote it, or convert the data again"
        require_format(plain["format"], (FORMAT,), f"{path} is not a folder", hint)
        found = fields(plain, _manifest_fields(plain["kind"]), "a manifest")
        (n, d), names = found["shape"], found["names"]
        if 0 in (n, d) or sum(piece["rows"] for piece in found["pieces"]) != n or (names is not None and len(names) != d):
            raise ValueError("its pieces or names do not match its shape")
    except InputError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path / MANIFEST} is damaged: {error}; convert the data again") from None
    return found


def _manifest_fields(kind: str) -> dict[str, FieldType]:
    """Return the declarations of the fields of a manifest for this kind of storage."""
    return {
        "format": TEXT,
        "kind": TEXT,
        "shape": each(SIZE, "the numbers of rows and columns", 2),
        "names": optional(each(TEXT, "a list of texts")),
        "y": optional(mapping("the labels", {"bytes": SIZE, "sha256": TEXT})),
        "files": _per_file(FILES[kind], ARRAY),
        "source": FieldType((dict,), "what was converted"),
        "pieces": each(mapping("a piece", _piece_fields(FILES[kind])), "a list of pieces"),
    }


def _piece_fields(files: tuple[str, ...]) -> dict[str, FieldType]:
    """Return the declarations of the fields of a piece of these files that the journal and the manifest have."""
    return {"rows": SIZE, "entries": SIZE, "bytes": _per_file(files, SIZE), "sha256": _per_file(files, TEXT)}


def _per_file(files: tuple[str, ...], form: FieldType) -> FieldType:
    """Return the declaration of an object with a value for each of these files."""
    kind = "csr" if "indptr.npy" in files else "dense"
    return mapping(f"the files of {kind} rows", dict.fromkeys(files, form))


def read_store(path: Path, wanted: Request, most: int | None = None) -> Table:
    """Return the table in a folder, with its arrays mapped. Sizes and headers are checked, but not checksums (see `check`).

    If columns are left out, the others are copied, unless they are adjacent or the copy takes more than `most` bytes.
    """
    wanted.count(f"{path} was converted, with its labels in y.npy")
    manifest = manifest_of(path)
    (n, d), names = manifest["shape"], manifest["names"]
    kept = wanted.kept(d, names, path)
    arrays = [_mapped(path / name, manifest["files"][name]) for name in FILES[manifest["kind"]]]
    y = _stored_labels(path, manifest["y"], n, wanted.labelled)
    X: Any = arrays[0]
    if manifest["kind"] == "csr":
        if len(arrays[0]) != len(arrays[1]) or len(arrays[2]) != n + 1:
            raise InputError(f"{path} is damaged: the sizes of its arrays do not match")
        X = Csr(arrays[0], arrays[1], arrays[2], (n, d), names)
        size = sum(array.nbytes for array in arrays)
        if len(kept) < d and most is not None and size > most:
            raise InputError(
                f"{path}: a copy without the dropped columns takes {size} bytes, more than half of the memory limit; "
                "drop them when the data is converted (gordan convert --drop)"
            )
        X = select_columns(X.tocsr(), kept) if len(kept) < d else X
    elif X.shape != (n, d):
        raise InputError(f"{path} is damaged: X has the shape {X.shape}, but the manifest says {(n, d)}")
    else:
        X = select_mapped_columns(X, list(kept), path, most)
    return Table(X, y, None if names is None else tuple(names[j] for j in kept), path, kept)


def _stored_labels(path: Path, entry: dict[str, Any] | None, n: int, labelled: bool | None) -> Array | None:
    """Return the labels of a folder, given their entry in its manifest; None if there are none or none are wanted."""
    if entry is None and labelled is True:
        raise InputError(f"{path} has no labels (in Python, labelled=False reads the rest)")
    if entry is None or labelled is False:
        return None
    if (path / "y.npy").stat().st_size != entry["bytes"]:
        raise InputError(f"{path / 'y.npy'} is damaged: its size is not that of the manifest; convert the data again")
    return read_labels(path / "y.npy", n)


def check(folder: str | os.PathLike[str]) -> int:
    """Compare all files of a converted folder with their checksums, and return the number of bytes that were read.

    An InputError names the piece that differs.
    """
    path = Path(folder)
    manifest = manifest_of(path)
    read_store(path, Request(labelled=None))
    total = 0
    for name in FILES[manifest["kind"]]:
        with (path / name).open("rb") as file:
            file.seek(HEADER + 8 * (name == "indptr.npy"))
            for k, piece in enumerate(manifest["pieces"]):
                found, left = hashlib.sha256(), int(piece["bytes"][name])
                total += left
                while left and (part := file.read(min(left, 1 << 20))):
                    found.update(part)
                    left -= len(part)
                if left or found.hexdigest() != piece["sha256"][name]:
                    raise InputError(f"{path / name}, piece {k}: the checksum is wrong; convert the data again")
    if manifest["y"] is not None:
        content = (path / "y.npy").read_bytes()
        if hashlib.sha256(content).hexdigest() != manifest["y"]["sha256"]:
            raise InputError(f"{path / 'y.npy'}: the checksum is wrong; convert the data again")
        total += len(content)
    return total


def _mapped(path: Path, entry: dict[str, Any]) -> Array:
    """Map an array into memory, given its entry in the manifest."""
    shape, dtype = entry["shape"], np.dtype(entry["dtype"])
    size = HEADER + dtype.itemsize * math.prod(shape)
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size != size or file.read(HEADER) != header(dtype.str, shape):
            raise InputError(f"{path} is damaged: its size or header is not that of the manifest; convert the data again")
    if size == HEADER:
        return np.empty(shape, dtype)
    mapped: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped
