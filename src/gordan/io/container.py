"""The file format of models and checkpoints: a JSON header and raw arrays, with a checksum over every byte.

    0   8 bytes   89 47 4F 52 44 41 4E 0A ("\\x89GORDAN\\n")
    8   uint32    version of this layout, 1
    12  uint32    H, the length of the header
    16  H bytes   {"arrays": [{"dtype", "name", "offset", "shape"}, …], "header": {…}} in UTF-8, filled up with spaces
    …             each array, C order, at its offset from the end of the header: the next multiple of 64, zero bytes in between
    -32 32 bytes  SHA-256 of everything before

All integers are little-endian. Given content has exactly one encoding, and any other is refused. Nothing in a file is executed.
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
from gordan.errors import InputError, input_errors
from gordan.io.files import write_atomic
from gordan.schema import COUNT, TEXT, FieldType, choice, each, fields, mapping, strict_json

MAGIC = b"\x89GORDAN\n"
VERSION = 1
ALIGNMENT = 64
DIGEST_SIZE = 32
MAX_HEADER = 1 << 28
DTYPES = ("<f8", "<f4", "<i8", "<i4", "|i1", "|u1")
SIZES = each(COUNT, "up to 8 sizes below 2**48")._replace(holds=lambda sizes: len(sizes) <= 8 and max(sizes, default=0) < 2**48)
ENTRY = mapping("an array", {"name": TEXT, "dtype": choice(*DTYPES), "shape": SIZES, "offset": COUNT})
CONTENT_FIELDS = {"arrays": each(ENTRY, "a list of arrays"), "header": FieldType((dict,), "an object")}


def save(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a header (plain JSON without NaN or infinity) and arrays to one file atomically."""
    write_atomic(path, encode(header, arrays))


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the read-only arrays of a file that `save` wrote; any other or damaged file is an InputError."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "it is a folder; pass the file itself", os.fspath(path))
    with open(path, "rb") as file:
        return decode(file.read(), os.fspath(path))


def is_container(path: str | os.PathLike[str]) -> bool:
    """Return whether a file starts with the magic number of this format."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def encode(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Return the bytes of a file with this header and these arrays."""
    stored = {name: _little_endian(name, array) for name, array in arrays.items()}
    head, offsets = _encode_header(header, [(name, array.dtype.str, array.shape) for name, array in stored.items()])
    content = bytearray(head)
    for array, offset in zip(stored.values(), offsets, strict=True):
        content += bytes(offset - len(content)) + array.tobytes()
    return bytes(content + hashlib.sha256(content).digest())


def decode(content: bytes, name: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays in the bytes of a file called `name`; sizes in the file are checked before use."""
    if content[: len(MAGIC)] != MAGIC:
        raise InputError(f"{name} is not a gordan file: bad magic number")
    if len(content) < 16 + DIGEST_SIZE:
        raise InputError(f"{name} is cut short")
    version, length = struct.unpack_from("<II", content, len(MAGIC))
    if version > VERSION:
        raise InputError(f"{name} has layout {version}; this version of gordan reads up to {VERSION}, use a newer one")
    if hashlib.sha256(memoryview(content)[:-DIGEST_SIZE]).digest() != content[-DIGEST_SIZE:]:
        raise InputError(f"{name} is damaged or cut short: its checksum is wrong; regenerate it")
    with input_errors(f"{name} is damaged", ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return _decode_checked(content, version, length)


def _decode_checked(content: bytes, version: int, length: int) -> tuple[dict[str, Any], dict[str, Array]]:
    if version < 1 or 16 + length + DIGEST_SIZE > len(content):
        raise ValueError("its header does not fit into it")
    whole = fields(strict_json(content[16 : 16 + length]), CONTENT_FIELDS, "arrays and a header")
    described = [(entry["name"], entry["dtype"], entry["shape"]) for entry in whole["arrays"]]
    head, offsets = _encode_header(whole["header"], described)
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for _, dtype, shape in described]
    ends = [len(head), *(offset + size for offset, size in zip(offsets, sizes, strict=True))]
    if ends[-1] + DIGEST_SIZE != len(content):
        raise ValueError(f"it has {len(content)} bytes, but its header requires {ends[-1] + DIGEST_SIZE}")
    gaps = zip(ends, offsets, strict=False)
    if content[: len(head)] != head or any(any(content[end:offset]) for end, offset in gaps):
        raise ValueError("it is not in canonical form")
    arrays = {
        name: np.frombuffer(content, dtype, math.prod(shape), offset).reshape(shape)
        for (name, dtype, shape), offset in zip(described, offsets, strict=True)
    }
    return whole["header"], arrays


def _encode_header(header: Mapping[str, Any], described: list[tuple[str, str, tuple[int, ...]]]) -> tuple[bytes, list[int]]:
    """Return the bytes of the file up to the end of its header, and the offset at which each array starts."""
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
    if len(text) > MAX_HEADER:
        raise ValueError("the header is too long; store long values as arrays")
    start = 16 + len(text)
    return MAGIC + struct.pack("<II", VERSION, len(text)) + text, [start + offset for offset in relative]


def _round_up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _little_endian(name: str, array: Array) -> Array:
    plain = np.ascontiguousarray(array).reshape(np.shape(array))
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    if plain.dtype.str not in DTYPES:
        raise InputError(f"the array {name!r} is of type {plain.dtype}; a file can hold {', '.join(DTYPES)}")
    return plain
