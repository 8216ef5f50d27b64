"""Files in a format that has to be found out, and any bytes at all: a table, an InputError or an OSError."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from readers import A, csr, dense, npy, npz, refused, written

from gordan.errors import InputError
from gordan.io import Table, read
from gordan.io import text as text_module

# ---- which format, which file ---------------------------------------------------------------------------------------


def test_the_content_tells_where_the_name_does_not(tmp_path):
    contents = {
        "a9a": b"-1 3:1 11:1\n+1 5:1\n",
        "a9a.t": b"# c\n\n-1 3:1 11:1\n+1 5:1\n",
        "table.txt": b"a,b,y\n1,2,3\n",
        "table": b"a\tb\ty\n1\t2\t3\n",
        "array": npy(A),
        "archive": npz(X=A, y=[0, 1]),
    }
    for name, content in contents.items():
        assert read(written(tmp_path, name, content)).y is not None, name
    refused(written(tmp_path, "story.txt", "Once upon a time\n"), "unknown format")
    refused(written(tmp_path, "nothing", ""), "is empty")
    refused(written(tmp_path, "a.npy.gz", gzip.compress(npy(A))), "decompress it first")


def test_files_that_cannot_be_opened(tmp_path):
    for suffix in ("svm", "svm.gz", "csv", "tsv", "npy", "npz", "parquet", "what"):
        with pytest.raises(FileNotFoundError, match=r"missing"):
            read(tmp_path / f"missing.{suffix}")
    with pytest.raises(IsADirectoryError, match=r"folder.*without Parquet files") as caught:
        read(tmp_path)
    assert caught.value.errno == errno.EISDIR
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(IsADirectoryError):
        read(tmp_path / "a.csv")


def test_permission(tmp_path, monkeypatch):
    def forbidden(path, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", forbidden)
    for suffix in ("svm", "csv", "npy", "npz", "parquet", "what"):
        with pytest.raises(PermissionError, match=f"closed.{suffix}"):
            read(tmp_path / f"closed.{suffix}")


def test_what_a_table_says(tmp_path):
    table = read(written(tmp_path, "a.svm", "1 1:2\n-1 2:1\n"))
    assert isinstance(table, Table)
    assert "2 rows, 2 columns, CSR float64, labels of type int64" in repr(table)
    assert "dense float64, no labels" in repr(read(written(tmp_path, "a.csv", "a\n1\n"), labelled=False))


# ---- any bytes at all -----------------------------------------------------------------------------------------------


def survives(path, content):
    """A table or a refusal; anything else fails the test. Both routes must agree."""
    path.unlink(missing_ok=True)  # some file systems are slow to overwrite
    path.write_bytes(content)
    outcomes = []
    for short in (1 << 20, 0):
        text_module.SHORT = short
        try:
            table = read(path, labelled=None, features=3)
            assert table.X.shape[1] == 3
            assert table.y is None or len(table.y) == table.X.shape[0]
            outcomes.append((dense(table).tobytes(), None if table.y is None else table.y.tolist()))
        except (InputError, OSError) as error:
            outcomes.append(str(error))
        finally:
            text_module.SHORT = 1 << 20
    assert outcomes[0] == outcomes[1]


def sample(suffix):
    X, y = np.round(np.random.default_rng(0).standard_normal((4, 3)), 3), [0, 1, 1, 0]
    if suffix == "svm":
        return b"".join(b"%d 1:%r 3:%r # c\n" % (k, a, c) for k, (a, _, c) in zip(y, X.tolist(), strict=True))
    if suffix in ("csv", "tsv"):
        lines = ["a,b,c,y", *(",".join(map(repr, [*row, k])) for row, k in zip(X.tolist(), y, strict=True)), '"1",2,3,"x"']
        return "\n".join(lines).replace(",", "," if suffix == "csv" else "\t").encode()
    if suffix == "npy":
        return npy(np.column_stack([X, y]))
    if suffix == "npz":
        return npz(X=X, y=y)
    return csr(shape=[2, 3])


SUFFIXES = {"svm": "svm", "csv": "csv", "tsv": "tsv", "npy": "npy", "npz": "npz", "csr": "npz"}
LETTERS = b'0123456789:.-+eE,"\t\r\n #naif_x\x00\xff\xc3'


@pytest.mark.parametrize("kind", SUFFIXES)
@settings(max_examples=100)
@given(data=st.data())
def test_damaged_files(kind, data, tmp_path_factory):
    """A valid file with a few bytes replaced, put in or cut out."""
    content = bytearray(sample(kind))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content)))
        new = data.draw(st.one_of(st.binary(max_size=3), st.lists(st.sampled_from(list(LETTERS)), max_size=4).map(bytes)))
        content[place : place + data.draw(st.integers(0, 3))] = new
    survives(tmp_path_factory.getbasetemp() / f"damaged.{SUFFIXES[kind]}", bytes(content))


@pytest.mark.parametrize("suffix", ["svm", "csv", "tsv", "npy", "npz", "gz", "what"])
@settings(max_examples=40)
@given(content=st.one_of(st.binary(max_size=200), st.lists(st.sampled_from(list(LETTERS)), max_size=80).map(bytes)))
@example(content=b"PK\x03\x04")
@example(content=b"\x1f\x8b\x08")
@example(content=b"BZh91AY&SY")
@example(content=b"\xfd7zXZ\x00")
@example(content=b"\x93NUMPY\x01\x00\x02\x00{}")
def test_any_bytes(suffix, content, tmp_path_factory):
    survives(tmp_path_factory.getbasetemp() / f"any.{suffix}", content)


@pytest.mark.parametrize("kind", ["npz", "csr"])
def test_archives_with_any_byte_changed(kind, tmp_path):
    """A memory limit has the directory read once more, before: the outcome is the same, and nothing but an InputError."""
    content, path = sample(kind), tmp_path / "a.npz"
    for place in range(len(content)):
        spoilt = bytearray(content)
        spoilt[place] ^= 1 << place % 8
        path.unlink(missing_ok=True)
        path.write_bytes(spoilt)
        outcomes = []
        for limit in (None, 1 << 30):
            try:
                outcomes.append(dense(read(path, labelled=None, memory_limit=limit)).tobytes())
            except InputError as error:
                outcomes.append(str(error).partition(";")[0])
        assert outcomes[0] == outcomes[1] or "more bytes than half of the memory limit" in outcomes[1]


@pytest.mark.parametrize("kind", ["npy", "npz", "csr"])
def test_every_truncation(kind, tmp_path):
    content, path = sample(kind), tmp_path / f"a.{SUFFIXES[kind]}"
    path.write_bytes(content)
    for length in reversed(range(len(content))):
        os.truncate(path, length)
        refused(path, labelled=None, features=3)
