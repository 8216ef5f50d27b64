"""What the tests of readers share: files and their content, and the refusal of a file."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from gordan.errors import InputError
from gordan.io import read

A = np.arange(6.0).reshape(2, 3)


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(path, *parts, **options):
    """`read` raises an InputError that names the file and has all the parts."""
    with pytest.raises(InputError) as caught:
        read(path, **options)
    assert all(parts)  # "" is part of every message
    for part in (str(path), *parts):
        assert part in str(caught.value), str(caught.value)


def dense(table):
    return table.X.toarray() if sp.issparse(table.X) else np.asarray(table.X)


def npy(array, **changes):
    """The bytes of an .npy file, some words of its header replaced by others of any length."""
    file = io.BytesIO()
    np.save(file, array)
    content = file.getvalue()
    length = struct.unpack_from("<H", content, 8)[0]
    header = content[10 : 10 + length].decode()
    for old, new in changes.get("replace", {}).items():
        assert old in header
        header = header.replace(old, new)
    return content[:8] + struct.pack("<H", len(header)) + header.encode() + content[10 + length :]


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def csr(**changes):
    held = {"data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1, 2], "shape": [2, 3], "format": b"csr", "y": [0, 1]}
    return npz(**{**held, **changes})


def packed(method=zipfile.ZIP_DEFLATED, **members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def parquet(path, columns, **options):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    return path
