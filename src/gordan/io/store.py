"""A folder of arrays for data larger than memory: written once, piece by piece, and then mapped.

    manifest.json                            shape, names, and the SHA-256 of every piece of every file; written last
    X.npy                                    dense, or
    data.npy, indices.npy, indptr.npy        CSR
    y.npy                                    the labels

While it is written there is a journal instead of the manifest: a line for each piece, added after the piece is on disk. A writer
that was killed goes on after the last whole line.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.io.files import naming, write_atomic
from gordan.io.npy import neighbours, read_labels
from gordan.io.parts import Csr
from gordan.io.table import Table, Wanted, taken
from gordan.schema import strict_json

MANIFEST, JOURNAL, FORMAT = "manifest.json", "journal.jsonl", "gordan-data-1"
HEADER = 128  # bytes of the header of each .npy file
FILES = {"dense": ("X.npy",), "csr": ("data.npy", "indices.npy", "indptr.npy")}


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows as bytes for each file, how many rows and entries they are, and where the source goes on after."""

    rows: int
    entries: int
    content: dict[str, bytes]
    place: Any


@dataclass
class Writer:
    """A folder in the making. `head` says what is being written from what, and of which "kind"; a folder with another head is
    not gone on with."""

    path: Path
    head: dict[str, Any]
    pieces: list[dict[str, Any]] = field(default_factory=list)
    _journal: IO[bytes] | None = None
    _files: dict[str, IO[bytes]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """ "dense" or "csr"."""
        return str(self.head["kind"])

    def __enter__(self) -> Writer:
        self.path.mkdir(exist_ok=True)
        self._journal = (self.path / JOURNAL).open("a+b")
        try:
            with naming(self.path):
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
        for name in (*FILES[self.kind], "codes.part"):
            file = self._files[name] = open(self.path / name, "a+b")  # noqa: SIM115 (closed in __exit__)
            size = self.size_of(name)
            if self.pieces and os.fstat(file.fileno()).st_size < size:
                raise InputError(f"{self.path / name} was cut short; delete {self.path} and convert again")
            os.ftruncate(file.fileno(), size if self.pieces else 0)
            if not self.pieces and name != "codes.part":
                file.write(bytes(HEADER) + (bytes(8) if name == "indptr.npy" else b""))

    def __exit__(self, *_: object) -> None:
        for file in (*self._files.values(), self._journal):
            if file is not None:
                file.close()

    def size_of(self, name: str) -> int:
        """Bytes of a file after the last whole piece."""
        start = 0 if name == "codes.part" else HEADER + 8 * (name == "indptr.npy")
        return start + sum(int(piece["bytes"].get(name, 0)) for piece in self.pieces)

    @property
    def place(self) -> Any:
        """Where the source goes on; None at its beginning."""
        return self.pieces[-1]["place"] if self.pieces else None

    @property
    def rows(self) -> int:
        """Rows written."""
        return sum(int(piece["rows"]) for piece in self.pieces)

    @property
    def entries(self) -> int:
        """Entries written."""
        return sum(int(piece["entries"]) for piece in self.pieces)

    def write(self, piece: Piece, labels: list[Any]) -> None:
        """Add a piece: first its bytes, on disk, then its line in the journal. `labels` are those first seen in it."""
        for name, content in piece.content.items():
            self._files[name].write(content)
            self._files[name].flush()
            os.fsync(self._files[name].fileno())
        record = {
            "rows": piece.rows,
            "entries": piece.entries,
            "bytes": {name: len(content) for name, content in piece.content.items()},
            "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in piece.content.items()},
            "place": piece.place,
            "labels": labels,
        }
        self._append(record)
        self.pieces.append(record)

    def codes(self) -> Array:
        """The codes of all labels."""
        return np.fromfile(self.path / "codes.part", "<i4")

    def finish(self, y: Array | None, shape: tuple[int, int], dtypes: dict[str, str], names: tuple[str, ...] | None) -> None:
        """Headers, labels and, last, the manifest."""
        lengths = {"X.npy": shape, "data.npy": (self.entries,), "indices.npy": (self.entries,), "indptr.npy": (shape[0] + 1,)}
        for name in FILES[self.kind]:
            with open(self.path / name, "r+b") as file:
                file.write(header(dtypes[name], lengths[name]))
                file.flush()
                os.fsync(file.fileno())
        told: dict[str, Any] = {}
        if y is not None:
            content = io.BytesIO()
            np.save(content, y, allow_pickle=False)
            write_atomic(self.path / "y.npy", content.getvalue())
            told = {"bytes": len(content.getvalue()), "sha256": hashlib.sha256(content.getvalue()).hexdigest()}
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
        }
        manifest |= {"y": told or None, "files": files, "source": self.head, "pieces": pieces}
        write_atomic(self.path / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n")
        tidy(self.path)

    def add_to_indices(self, shift: int) -> None:
        """Add to all column indices, which were written too low by that. Done already if none is negative."""
        old, new = self.path / "indices.npy", self.path / "indices.part"
        lowest = min((int(part.min()) for part in self._index_pieces(old) if len(part)), default=0)
        with new.open("wb") as file:
            file.write(bytes(HEADER))
            for piece, part in zip(self.pieces, self._index_pieces(old), strict=True):
                content = (part + (shift if lowest < 0 else 0)).astype("<i4").tobytes()
                piece["sha256"]["indices.npy"] = hashlib.sha256(content).hexdigest()
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, old)

    def _index_pieces(self, path: Path) -> Iterator[Array]:
        with path.open("rb") as file:
            file.seek(HEADER)
            for piece in self.pieces:
                yield np.frombuffer(file.read(piece["bytes"]["indices.npy"]), "<i4")

    def _append(self, record: dict[str, Any]) -> None:
        assert self._journal is not None
        self._journal.write(json.dumps(record).encode() + b"\n")
        self._journal.flush()
        os.fsync(self._journal.fileno())

    def _read_journal(self) -> int:
        """Take over the whole lines; how many bytes they are. 0 if the journal is of something else."""
        assert self._journal is not None
        self._journal.seek(0)
        lines = self._journal.read().split(b"\n")[:-1]
        records = []
        for line in lines:
            try:
                records.append(strict_json(line))
            except ValueError:
                break
        if not records or records[0] != {"format": FORMAT, **self.head}:
            return 0
        self.pieces = records[1:]
        return sum(len(line) + 1 for line in lines[: len(records)])


def tidy(path: Path) -> None:
    """Remove what only a writer needs."""
    for name in ("codes.part", "indices.part", JOURNAL):
        (path / name).unlink(missing_ok=True)


def discard(path: Path) -> None:
    """Remove what a writer wrote; the journal last, which says that it did."""
    for name in (*FILES["dense"], *FILES["csr"], "y.npy", MANIFEST):
        (path / name).unlink(missing_ok=True)
    tidy(path)


def header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The header of an .npy file, 128 bytes whatever the shape."""
    sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({sizes}), }}"
    return b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little") + text.ljust(HEADER - 11).encode() + b"\n"


def begun(path: Path) -> dict[str, Any] | None:
    """The head of a folder that is being written, or was when its writer was killed; None if there is none."""
    try:
        with (path / JOURNAL).open("rb") as file:
            line = file.readline()
        found = strict_json(line) if line.endswith(b"\n") else None
    except (FileNotFoundError, ValueError):
        return None
    return {name: value for name, value in found.items() if name != "format"} if isinstance(found, dict) else None


def require_store(path: Path) -> None:
    """Refuse what is no folder that was converted, or is being converted."""
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if not ((path / MANIFEST).exists() or (path / JOURNAL).exists()):
        raise InputError(f"{path} is not a folder that `gordan convert` wrote")


def manifest_of(path: Path) -> dict[str, Any]:
    """The manifest of a folder; an InputError if it is unfinished, damaged or newer."""
    require_store(path)
    if not (path / MANIFEST).exists():
        raise InputError(f"{path} is unfinished: its conversion was stopped; run `gordan convert` again to resume")
    try:
        found = strict_json((path / MANIFEST).read_bytes())
        if found["format"] != FORMAT:
            raise InputError(f"{path} has the format {found['format']!r}; this version of gordan reads {FORMAT!r}")
        _require_sizes(found)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path / MANIFEST} is damaged: {error}; convert the data again") from None
    return dict(found)


def _require_sizes(found: dict[str, Any]) -> None:
    """Refuse a manifest whose numbers are none, or do not fit each other."""
    (n, d), names = found["shape"], found["names"]
    sizes = [n, d, *(piece[what] for piece in found["pieces"] for what in ("rows", "entries"))]
    if not all(type(size) is int and 0 <= size < 2**48 for size in sizes) or 0 in (n, d):
        raise ValueError("a size is not a whole number")
    if set(found["files"]) != set(FILES[found["kind"]]) or sum(piece["rows"] for piece in found["pieces"]) != n:
        raise ValueError("its files or pieces do not match its shape")
    if names is not None and (len(names) != d or not all(type(name) is str for name in names)):
        raise ValueError("its names do not match its columns")


def read_store(path: Path, wanted: Wanted, most: int | None = None) -> Table:
    """The table in a folder, its arrays mapped. Sizes and headers are checked, checksums are not (see `check`).

    Where columns are left out, the others are copied, unless they are neighbours or that takes more than `most` bytes.
    """
    features = wanted.count(f"{path} was converted, with its labels in y.npy")
    manifest = manifest_of(path)
    n, d = manifest["shape"]
    names = None if manifest["names"] is None else tuple(manifest["names"])
    kept = wanted.kept(d, names, path)
    if features not in (None, len(kept)):
        raise InputError(f"{path} has {len(kept)} columns, where {features} features are wanted")
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
        X = taken(X.tocsr(), kept) if len(kept) < d else X
    elif X.shape != (n, d):
        raise InputError(f"{path} is damaged: X has the shape {X.shape}, where the manifest says {(n, d)}")
    else:
        X = neighbours(X, list(kept), path, most)
    return Table(X, y, None if names is None else tuple(names[j] for j in kept), path, kept)


def _stored_labels(path: Path, told: dict[str, Any] | None, n: int, labelled: bool | None) -> Array | None:
    """The labels of a folder, of which its manifest says so much; None where there are none, or none are wanted."""
    if told is None and labelled is True:
        raise InputError(f"{path} has no labels (in Python, labelled=False reads the rest)")
    if told is None or labelled is False:
        return None
    if (path / "y.npy").stat().st_size != told["bytes"]:
        raise InputError(f"{path / 'y.npy'} is damaged: its size is not that of the manifest; convert the data again")
    return read_labels(path / "y.npy", n)


def check(folder: str | os.PathLike[str]) -> int:
    """Read all of a converted folder and compare with its checksums; how many bytes that was.

    An InputError names the piece that differs.
    """
    path = Path(folder)
    manifest = manifest_of(path)
    read_store(path, Wanted(labelled=None))
    total = 0
    for name, pieces in ((name, _pieces(manifest, name)) for name in FILES[manifest["kind"]]):
        with (path / name).open("rb") as file:
            file.seek(HEADER + 8 * (name == "indptr.npy"))
            for k, (size, digest) in enumerate(pieces):
                found, left = hashlib.sha256(), size
                while left and (part := file.read(min(left, 1 << 20))):
                    found.update(part)
                    left -= len(part)
                if left or found.hexdigest() != digest:
                    raise InputError(f"{path / name}, piece {k}: the checksum is wrong; convert the data again")
                total += size
    if manifest["y"] is not None:
        content = (path / "y.npy").read_bytes()
        if hashlib.sha256(content).hexdigest() != manifest["y"]["sha256"]:
            raise InputError(f"{path / 'y.npy'}: the checksum is wrong; convert the data again")
        total += len(content)
    return total


def _pieces(manifest: dict[str, Any], name: str) -> Iterator[tuple[int, str]]:
    for piece in manifest["pieces"]:
        yield int(piece["bytes"][name]), str(piece["sha256"][name])


def _mapped(path: Path, told: dict[str, Any]) -> Array:
    try:
        shape = tuple(told["shape"])
        expected, dtype = header(told["dtype"], shape), np.dtype(told["dtype"])
        if dtype.str not in ("<f4", "<f8", "<i4", "<i8") or not all(type(size) is int and 0 <= size < 2**48 for size in shape):
            raise ValueError(f"it has the type {dtype} and the shape {shape}")
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"the manifest of {path} is damaged: {error}; convert the data again") from None
    size = HEADER + dtype.itemsize * int(np.prod([int(size) for size in shape], dtype=object))
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size != size or file.read(HEADER) != expected:
            raise InputError(f"{path} is damaged: its size or header is not that of the manifest; convert the data again")
    if size == HEADER:
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", HEADER, shape)
