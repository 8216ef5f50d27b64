"""Read .npy files, which are mapped into memory, and .npz files; nothing is unpickled, and sizes are checked before use."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError, input_errors
from gordan.io.table import Request, Table, listed, require_finite, require_labels, select_columns

NPY_MAGIC = np.lib.format.MAGIC_PREFIX
MAX_HEADER = 1 << 16
# The exceptions of NumPy for a damaged header. A header that may be of Python 2 is a UserWarning, if warnings are errors.
HEADER_ERRORS: tuple[type[Exception], ...] = (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, EOFError)
HEADER_ERRORS += (OverflowError, tokenize.TokenError, UserWarning)
NUMBERS = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}
MAX_DEFLATE_RATIO = 1032  # deflate cannot compress by a larger factor, so a member that claims it is damaged


@dataclass(frozen=True)
class _Header:
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool
    offset: int  # the position of the first value in the file

    @property
    def end(self) -> int:
        return self.offset + math.prod(self.shape) * self.dtype.itemsize


def read_npy(path: Path, wanted: Request, most: int | None = None) -> Table:
    """Return the table in an .npy file, with X mapped into memory and therefore not searched for NaN.

    Columns that are not adjacent are copied, unless that takes more than `most` bytes.
    """
    everything, y, chosen = open_npy(path, wanted)
    return Table(select_mapped_columns(everything, chosen, path, most), y, None, path, chosen)


def open_npy(path: Path, wanted: Request) -> tuple[Array, Array | None, list[int]]:
    """Return all columns of an .npy file, mapped into memory, the labels, and the positions of the features."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise InputError(f"{path} is empty")
        header = _header(file, str(path))
    if header.end != size:
        problem = "it is cut short" if size < header.end else "something follows the array"
        raise InputError(f"{path} is damaged: {problem} ({size} bytes, but its header says {header.end})")
    _require_matrix(header, str(path))
    everything = np.load(path, mmap_mode="r", allow_pickle=False, max_header_size=MAX_HEADER)
    if isinstance(wanted.label, str) and wanted.label.endswith(".npy"):
        y = read_labels(Path(wanted.label), len(everything))
        return everything, y, replace(wanted, label=None, labelled=False).columns(header.shape[1], None, path)[1]
    at, chosen = wanted.columns(header.shape[1], None, path)
    if at is None:
        return everything, None, chosen
    y = np.array(everything[:, at])
    require_labels(y, len(y), path)
    return everything, y, chosen


def select_mapped_columns(X: Array, chosen: list[int], path: Path, most: int | None) -> Array:
    """Return these increasing columns of a mapped array: a view if they are adjacent, else a copy of at most `most` bytes."""
    if chosen[-1] - chosen[0] == len(chosen) - 1:
        return X if len(chosen) == X.shape[1] else X[:, chosen[0] : chosen[-1] + 1]
    size = len(X) * len(chosen) * X.dtype.itemsize
    if most is not None and size > most:
        raise InputError(
            f"{path}: the remaining columns are not adjacent, and a copy of them takes {size} bytes, more than half of the "
            "memory limit; convert it once with `gordan convert --drop` and use the folder"
        )
    return X[:, chosen]


def read_labels(path: Path, n: int) -> Array:
    """Read n labels from an .npy file of their own."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        header = _header(file, str(path))
        if header.end != size or len(header.shape) != 1:
            raise InputError(
                f"{path} is not a one-dimensional array of labels, or is damaged: the header states shape {header.shape}, which "
                f"needs {header.end} bytes; the file has {size}"
            )
        file.seek(0)
        y = np.lib.format.read_array(file, allow_pickle=False, max_header_size=MAX_HEADER)
    _require_text(y, str(path))
    require_labels(y, n, path)
    return y


def read_npz(path: Path, wanted: Request) -> Table:
    """Return the table in an .npz file: arrays X and y, or the arrays of scipy.sparse.save_npz for CSR, and y."""
    wanted.count(f"{path} has its labels in the array y and its columns have no names")
    with _archive(path) as archive:
        X, y = _members(archive, path, wanted)
    kept = wanted.kept(X.shape[1], None, path)
    require_finite(X, path)
    if y is not None:
        require_labels(y, X.shape[0], path)
    return Table(select_columns(X, kept), y, None, path, kept)


def npz_size(path: Path) -> int:
    """Return the size in bytes that an .npz file states for its arrays."""
    with _archive(path) as archive:
        return sum(info.file_size for info in archive.infolist())


# The exceptions of zipfile for a damaged archive. RuntimeError: it is encrypted, or (NotImplementedError) its version or its
# compression is not supported. ValueError: names that are not text (UnicodeDecodeError), negative positions.
ARCHIVE_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, OverflowError, ValueError)


@contextlib.contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip file; what zipfile raises over its content, here or in the body of the with statement, is an InputError."""
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise InputError(f"{path} is empty")
        try:
            with zipfile.ZipFile(file) as archive:
                yield archive
        except InputError:
            raise
        except ARCHIVE_ERRORS as error:
            raise InputError(f"{path} is damaged or not an .npz file: {error}") from None
        except OSError as error:  # EINVAL: the directory is damaged and points outside the file
            if error.errno not in (None, errno.EINVAL):
                raise
            raise InputError(f"{path} is damaged: {error}") from None


def _members(archive: zipfile.ZipFile, path: Path, wanted: Request) -> tuple[Any, Array | None]:
    names = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    sparse = ("data", "indices", "indptr", "shape", "format")
    y = None
    if wanted.labelled is True and "y" not in names:
        raise InputError(f"{path} has no array y with the labels; save them as y (in Python, labelled=False reads the rest)")
    if wanted.labelled is not False and "y" in names:
        y = _member(archive, names["y"], path)
        y = y.reshape(-1) if y.ndim == 2 and 1 in y.shape else y
    if "X" in names:
        return _member(archive, names["X"], path, matrix=True), y
    if all(name in names for name in sparse):
        return _csr([_member(archive, names[name], path) for name in sparse], path), y
    held = listed(sorted(names)) or "nothing"
    raise InputError(f"{path} has no array X (it holds {held}); save X and y, or a CSR matrix with scipy.sparse.save_npz")


def _csr(arrays: list[Array], path: Path) -> Any:
    from scipy.sparse import csr_array  # imported here because it takes 0.15 s

    data, indices, indptr, shape, kind = arrays
    if kind.shape != () or kind.item() not in (b"csr", "csr"):
        raise InputError(f"{path} holds a sparse matrix that is not CSR; save X.tocsr()")
    with input_errors(f"{path} does not hold a valid CSR matrix", ValueError, OverflowError):
        if any(part.ndim != 1 or part.dtype.kind not in "iu" for part in (indices, indptr, shape)) or len(shape) != 2:
            raise ValueError("its indices are not lists of whole numbers")
        if data.ndim != 1 or data.dtype.str[1:] not in NUMBERS:
            raise ValueError("its values are not a list of numbers")
        if len(indptr) != int(shape[0]) + 1 or not 0 < int(shape[1]) < 2**62 or len(indptr) < 2:
            raise ValueError(f"its shape is {tuple(shape.tolist())}")
        X = csr_array((data, indices, indptr), shape=(len(indptr) - 1, int(shape[1])))
        X.check_format(full_check=True)
    return X


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, matrix: bool = False) -> Array:
    """Read one array of the archive."""
    name = f"{path} ({info.filename})"
    packed = info.compress_size if info.compress_type == zipfile.ZIP_STORED else MAX_DEFLATE_RATIO * info.compress_size
    size = os.fstat(archive.fp.fileno()).st_size if archive.fp else 0
    if (
        info.compress_size > size
        or info.file_size > packed
        or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    ):
        raise InputError(f"{name} is damaged: {info.compress_size} bytes cannot decompress to {info.file_size}")
    with archive.open(info) as file:
        header = _header(file, name)
        if header.end != info.file_size:
            raise InputError(f"{name} is damaged: it has {info.file_size} bytes, but its header says {header.end}")
        if matrix:
            _require_matrix(header, name)
        file.seek(0)
        with input_errors(f"{name} is damaged", ValueError):  # reading its last byte also checks the checksum
            array: Array = np.lib.format.read_array(file, allow_pickle=False, max_header_size=MAX_HEADER)
    _require_text(array, name)
    return array


def _require_text(array: Array, name: str) -> None:
    """Raise an InputError for text with invalid code points, which NumPy would notice only when the text is used."""
    if array.dtype.kind == "U" and array.dtype.itemsize:
        codes = array.ravel(order="K").view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise InputError(f"{name} is damaged: it holds invalid Unicode")


def _header(file: IO[bytes], name: str) -> _Header:
    """Read the header of an .npy file. NumPy parses it as a literal and executes nothing."""
    try:
        version = np.lib.format.read_magic(file)
    except ValueError:
        raise InputError(f"{name} is not a .npy file: bad magic number") from None
    if version not in ((1, 0), (2, 0)):
        raise InputError(f"{name} has version {version[0]}.{version[1]} of the .npy format, which is not supported")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, fortran, dtype = read(file, max_header_size=MAX_HEADER)
    except HEADER_ERRORS as error:
        raise InputError(f"{name} has a damaged header: {str(error)[:80]!r}") from None
    if dtype.str[1:] not in NUMBERS and not re.fullmatch("[US][0-9]{1,6}", dtype.str[1:]):
        hint = "; objects are never unpickled" if dtype.hasobject else ""
        raise InputError(f"{name} holds values of type {dtype}, which are not supported{hint}")
    if not all(type(size) is int and 0 <= size < 2**60 for size in shape):
        raise InputError(f"{name} has a damaged header: its shape is {str(shape)[:80]}")
    return _Header(dtype, shape, fortran, file.tell())


def _require_matrix(header: _Header, name: str) -> None:
    if len(header.shape) != 2 or 0 in header.shape:
        raise InputError(f"{name} holds an array of shape {header.shape}; a matrix with rows and columns is needed")
    if header.dtype.str[1:] not in NUMBERS:
        raise InputError(f"{name} holds values of type {header.dtype}; numbers are needed")
