"""A file of a JSON header and raw arrays, which can be damaged but not misread: every byte is checked, and nothing in it is run.

    0   8 bytes   89 47 4F 52 44 41 4E 0A ("\\x89GORDAN\\n")
    8   uint32    version of this layout, 1
    12  uint32    H, the length of the header
    16  H bytes   {"arrays": [{"dtype", "name", "offset", "shape"}, …], "header": {…}} in UTF-8, filled up with spaces
    …             each array, C order, at its offset from the end of the header: the next multiple of 64, zero bytes in between
    -32 32 bytes  SHA-256 of everything before

All integers are little-endian. There is one way to write given content, and any other is refused.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.io.files import write_atomic
from gordan.schema import strict_json

MAGIC = b"\x89GORDAN\n"
VERSION = 1
ALIGNED = 64
DIGEST = 32
MOST_HEADER = 1 << 28
DTYPES = ("<f8", "<f4", "<i8", "<i4", "|i1", "|u1")


def save(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write header (plain JSON: no floats that are not finite) and arrays to one file, in one step."""
    write_atomic(path, encode(header, arrays))


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and (read-only) arrays of a file that `save` wrote; an InputError for any other, newer or damaged one."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "it is a folder; pass the file itself", os.fspath(path))
    with open(path, "rb") as file:
        return decode(file.read(), os.fspath(path))


def is_container(path: str | os.PathLike[str]) -> bool:
    """Whether a file starts as those do that `save` wrote."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def encode(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """The content of the file."""
    stored = {name: _little(name, array) for name, array in arrays.items()}
    head, offsets = _head(header, [(name, array.dtype.str, array.shape) for name, array in stored.items()])
    content = bytearray(head)
    for array, offset in zip(stored.values(), offsets, strict=True):
        content += bytes(offset - len(content)) + array.tobytes()
    return bytes(content + hashlib.sha256(content).digest())


def decode(content: bytes, name: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of the content of a file called `name`. No size in the file is believed before it is checked."""
    if content[: len(MAGIC)] != MAGIC:
        raise InputError(f"{name} is not a gordan file: bad magic number")
    if len(content) < 16 + DIGEST:
        raise InputError(f"{name} is cut short")
    version, length = struct.unpack_from("<II", content, len(MAGIC))
    if version > VERSION:
        raise InputError(f"{name} has layout {version}; this version of gordan reads up to {VERSION}, use a newer one")
    if hashlib.sha256(memoryview(content)[:-DIGEST]).digest() != content[-DIGEST:]:
        raise InputError(f"{name} is damaged or cut short: its checksum is wrong; regenerate it")
    try:
        return _read(content, version, length)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise InputError(f"{name} is damaged: {error}") from None


def _read(content: bytes, version: int, length: int) -> tuple[dict[str, Any], dict[str, Array]]:
    if version < 1 or 16 + length + DIGEST > len(content):
        raise ValueError("its header does not fit into it")
    whole = strict_json(content[16 : 16 + length])
    if type(whole) is not dict or set(whole) != {"arrays", "header"} or type(whole["header"]) is not dict:
        raise ValueError("its header has other fields than arrays and header")
    described = [_described(entry) for entry in whole["arrays"]]
    head, offsets = _head(whole["header"], described)
    ends = [
        offset + math.prod(shape) * np.dtype(dtype).itemsize for (_, dtype, shape), offset in zip(described, offsets, strict=True)
    ]
    if (ends[-1] if ends else len(head)) + DIGEST != len(content):
        raise ValueError(f"it has {len(content)} bytes, where its header asks for {(ends[-1] if ends else len(head)) + DIGEST}")
    gaps = zip([len(head), *ends], offsets, strict=False)
    if content[: len(head)] != head or any(any(content[end:offset]) for end, offset in gaps):
        raise ValueError("it is not in canonical form")
    arrays = {
        name: np.frombuffer(content, dtype, math.prod(shape), offset).reshape(shape)
        for (name, dtype, shape), offset in zip(described, offsets, strict=True)
    }
    return whole["header"], arrays


def _described(entry: Any) -> tuple[str, str, tuple[int, ...]]:
    if type(entry) is not dict or set(entry) != {"name", "dtype", "shape", "offset"}:
        raise ValueError("an array has other fields than name, dtype, shape and offset")
    if type(entry["name"]) is not str or entry["dtype"] not in DTYPES or type(entry["shape"]) is not list:
        raise ValueError(f"the array {entry['name']!r} is of type {entry['dtype']!r}, shape {entry['shape']!r}")
    if any(type(size) is not int or not 0 <= size < 2**48 for size in entry["shape"]) or len(entry["shape"]) > 8:
        raise ValueError(f"the array {entry['name']!r} has the shape {entry['shape']!r}")
    return entry["name"], entry["dtype"], tuple(entry["shape"])


def _head(header: Mapping[str, Any], described: list[tuple[str, str, tuple[int, ...]]]) -> tuple[bytes, list[int]]:
    """The file up to the end of its header, and where the arrays start in it."""
    if len({name for name, _, _ in described}) < len(described):
        raise ValueError("two arrays have the same name")
    relative, place = [], 0
    for _, dtype, shape in described:
        relative.append(place)
        place += _round_up(math.prod(shape) * np.dtype(dtype).itemsize)
    entries = [
        {"name": name, "dtype": dtype, "shape": list(shape), "offset": offset}
        for (name, dtype, shape), offset in zip(described, relative, strict=True)
    ]
    whole = {"arrays": entries, "header": dict(header)}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode()
    text += b" " * (_round_up(16 + len(text)) - 16 - len(text))
    if len(text) > MOST_HEADER:
        raise ValueError("the header is too long; put what is long into arrays")
    start = 16 + len(text)
    return MAGIC + struct.pack("<II", VERSION, len(text)) + text, [start + offset for offset in relative]


def _round_up(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


def _little(name: str, array: Array) -> Array:
    plain = np.ascontiguousarray(array).reshape(np.shape(array))
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    if plain.dtype.str not in DTYPES:
        raise InputError(f"the array {name!r} is of type {plain.dtype}; a file holds {', '.join(DTYPES)}")
    return plain
