"""Readers of arrays, archives and Parquet files: every format exactly, every bad file refused with its place."""

from __future__ import annotations

import struct
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from readers import A, csr, npy, npz, packed, parquet, refused, written

import gordan
from gordan.errors import InputError
from gordan.io import read

# ---- .npy and .npz --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i1", "i8", "u2", "?", ">f8", ">i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(dtype, order, tmp_path):
    values = np.asarray(np.arange(12).reshape(3, 4) % 5, dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", values)
    table = read(tmp_path / "a.npy")
    assert isinstance(table.X, np.memmap)
    assert table.X.dtype == values.dtype
    assert (values[:, :-1] == table.X).all()
    assert (table.y == values[:, -1]).all()
    for label in (0, 1, -3, "2"):
        at = int(label) % 4
        table = read(tmp_path / "a.npy", label=label)
        assert (np.delete(values, at, axis=1) == table.X).all()
        assert (table.y == values[:, at]).all()
    whole = read(tmp_path / "a.npy", labelled=False)
    assert whole.y is None
    assert (values == whole.X).all()
    assert not whole.X.flags.writeable
    assert read(tmp_path / "a.npy", labelled=None, features=4).y is None
    assert read(tmp_path / "a.npy", labelled=None, features=3).y is not None
    refused(tmp_path / "a.npy", "no names", label="y")


BAD_NPY = {
    "empty": (b"", "is empty"),
    "magic only": (npy(A)[:8], "damaged header"),
    "text": (b"1,2,3\n", "bad magic number"),
    "cut in the header": (npy(A)[:40], "damaged header"),
    "cut in the values": (npy(A)[:-1], "cut short"),
    "something behind": (npy(A) + b"x", "something follows"),
    "claims more than it has": (npy(A, replace={"(2, 3)": "(2000000000, 3000000000)"}), "cut short"),
    "claims 10^36 values": (npy(A, replace={"(2, 3)": f"({10**17}, {10**17})"}), "cut short"),
    "a shape of a hundred digits": (npy(A, replace={"(2, 3)": f"({'1' * 100}, 3)"}), "damaged header"),
    "a shape that never ends": (npy(A, replace={"(2, 3)": "(" + "1" * 200}), "damaged header"),
    "negative": (npy(A, replace={"(2, 3)": "(-2, -3)"}), "damaged header"),
    "objects": (npy(A, replace={"<f8": "|O"}), "never unpickled"),
    "complex": (npy(A.astype(complex)), "type complex128"),
    "dates": (npy(A, replace={"<f8": "<M8[s]"}), "datetime64[s], which are not supported"),
    "records": (npy(np.zeros(3, dtype=[("a", float), ("b", float)])), "which are not supported"),
    "text values": (npy(np.array([["a", "b"]])), "numbers are needed"),
    "one dimension": (npy(A[0]), "shape (3,)"),
    "three dimensions": (npy(A[None]), "shape (1, 2, 3)"),
    "no rows": (npy(A[:0]), "shape (0, 3)"),
    "a word too many": (npy(A, replace={"}": "'x': 1}"}), "damaged header"),
    "code": (npy(A, replace={"(2, 3)": "__import__('os').getcwd()"}), "damaged header"),
    "newer version": (npy(A)[:6] + b"\x03\x00" + npy(A)[8:], "version"),
    "nan as a label": (npy(np.array([[1.0, 0.0], [1.0, np.nan]])), "row 1", "the label is nan"),
    "one column": (npy(A[:, :1]), "no feature columns"),
}


@pytest.mark.parametrize("case", BAD_NPY.values(), ids=BAD_NPY)
def test_bad_npy(case, tmp_path):
    refused(written(tmp_path, "a.npy", case[0]), *case[1:])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("y", [[1, -1], ["a", "b"], [0.5, 1.5], [True, False], [[1], [2]]])
def test_npz(save, y, tmp_path):
    save(tmp_path / "a.npz", X=A.astype(np.float32), y=y, more=[1])
    table = read(tmp_path / "a.npz", features=3)
    assert table.X.dtype == np.float32
    assert table.X.tolist() == A.tolist()
    assert table.y.tolist() == np.ravel(y).tolist()
    assert read(tmp_path / "a.npz", labelled=False).y is None
    assert read(tmp_path / "a.npz", labelled=None).y is not None
    save(tmp_path / "a.npz", X=np.asfortranarray(A), y=y)
    assert read(tmp_path / "a.npz").X.tolist() == A.tolist()


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_sparse_npz(make, save, tmp_path):
    X = make(np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]]))
    sp.save_npz(tmp_path / "plain.npz", X)
    assert (read(tmp_path / "plain.npz", labelled=None).X != X).nnz == 0
    refused(tmp_path / "plain.npz", "no array y")
    with np.load(tmp_path / "plain.npz") as held:
        save(tmp_path / "a.npz", **held, y=["u", "v"])
    table = read(tmp_path / "a.npz")
    assert (table.X != X).nnz == 0
    assert table.y.tolist() == ["u", "v"]


BAD_NPZ = {
    "empty": (b"", "is empty"),
    "no archive": (b"PK\x03\x04 and so on", "damaged or not an .npz"),
    "cut short": (npz(X=A, y=[0, 1])[:-30], "damaged or not an .npz"),
    "no X": (npz(A=A, y=[0, 1]), "no array X (it holds A, y)"),
    "nothing": (npz(), "no array y"),
    "no y": (npz(X=A), "no array y"),
    "y too short": (npz(X=A, y=[0]), "2 rows", "(1,)"),
    "y a matrix": (npz(X=A, y=A), "2 rows", "(2, 3)"),
    "y nan": (npz(X=A, y=[0, np.nan]), "row 1", "the label is nan"),
    "y bytes": (npz(X=A, y=[b"a", b"b"]), "labels of type"),
    "X nan": (npz(X=np.where(A == 4, np.nan, A), y=[0, 1]), "row 1 (from 0), column 1", "is nan"),
    "X text": (npz(X=[["a"], ["b"]], y=[0, 1]), "numbers are needed"),
    "X one-dimensional": (npz(X=[1.0, 2.0], y=[0, 1]), "shape (2,)"),
    "X complex": (npz(X=A + 1j, y=[0, 1]), "type complex128"),
    "X objects": (npz(X=np.array([[1, "a"]], dtype=object), y=[0]), "never unpickled"),
    "a claim without values": (packed(X=npy(A, replace={"(2, 3)": "(2000000, 3000000)"})), "but its header says"),
    "bzip2 inside": (packed(zipfile.ZIP_BZIP2, X=npy(A)), "damaged"),
    "not an array": (packed(X=b"hello"), "bad magic number"),
    "a name that is no text": (
        npz(X=A, y=[0, 1]).replace(b"X.npy", b"\xf0.npy").replace(b"\0\0\0\0\0\0!", b"\0\x08\0\0\0\0!"),
        "damaged",
    ),
    "letters beyond Unicode": (packed(X=npy(A), y=npy(np.array(["a", "b"]))[:-1] + b"\x7f"), "invalid Unicode"),
    "half a letter": (packed(X=npy(A), y=npy(np.array(["a", "b"]))[:-4] + b"\0\xd8\0\0"), "invalid Unicode"),
    "CSC": (csr(format=b"csc"), "a sparse matrix that is not CSR"),
    "an index outside": (csr(indices=[0, 3]), "not hold a valid CSR"),
    "a negative index": (csr(indices=[0, -1]), "not hold a valid CSR"),
    "falling indptr": (csr(indptr=[0, 2, 1]), "not hold a valid CSR"),
    "indptr too long": (csr(indptr=[0, 1, 2, 2]), "not hold a valid CSR"),
    "indptr beyond": (csr(indptr=[0, 1, 9]), "not hold a valid CSR"),
    "indices are floats": (csr(indices=[0.0, 1.0]), "not hold a valid CSR"),
    "shape of three": (csr(shape=[2, 3, 1]), "not hold a valid CSR"),
    "shape beyond bounds": (csr(shape=[2, 2**63 - 1]), "not hold a valid CSR"),
    "no columns": (csr(shape=[2, 0]), "not hold a valid CSR"),
    "values are text": (csr(data=["a", "b"]), "not hold a valid CSR"),
    "sparse nan": (csr(data=[1.0, np.inf]), "row 1 (from 0), column 1", "is inf"),
}


@pytest.mark.parametrize("case", BAD_NPZ.values(), ids=BAD_NPZ)
def test_bad_npz(case, tmp_path):
    labelled = None if case[1] in ("but its header says", "damaged", "bad magic number") else True
    refused(written(tmp_path, "a.npz", case[0]), *case[1:], labelled=labelled)


def test_npz_claims_are_checked_before_anything_is_allocated(tmp_path):
    """The directory of the archive says 2^31 bytes, packed into 100: more than deflate can do."""
    content = bytearray(packed(X=npy(A)))
    for magic, place in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        struct.pack_into("<I", content, content.index(magic) + place, 2**31)
    refused(written(tmp_path, "a.npz", bytes(content)), "cannot decompress to", labelled=None)


@pytest.mark.parametrize(
    ("packing", "more", "problem"),
    [
        (zipfile.ZIP_STORED, -8, "168 bytes cannot decompress to 176"),
        (zipfile.ZIP_STORED, 8, "Bad CRC-32"),
        (zipfile.ZIP_DEFLATED, -8, "EOF: reading array data, expected 48 bytes got 40"),
        (zipfile.ZIP_DEFLATED, 8, "Bad CRC-32"),
    ],
)
def test_npz_with_fewer_or_more_values_than_it_states(packing, more, problem, tmp_path):
    """The directory of the archive and the header of the array agree, but the values in between do not."""
    array = npy(A)
    content = bytearray(packed(packing, X=array[:more] if more < 0 else array + bytes(more)))
    for magic, place in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        struct.pack_into("<I", content, content.index(magic) + place, len(array))
        if packing == zipfile.ZIP_STORED and more > 0:
            struct.pack_into("<I", content, content.index(magic) + place - 4, len(array))
    refused(written(tmp_path, "a.npz", bytes(content)), "is damaged", problem, labelled=None)


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("rows", [2, 20_000])
def test_npz_with_a_changed_byte(packing, rows, tmp_path):
    content = bytearray(packed(packing, X=npy(np.random.default_rng(0).standard_normal((rows, 3)))))
    content[content.index(b"PK\x01\x02") - 9] ^= 1
    refused(written(tmp_path, "a.npz", bytes(content)), "is damaged", labelled=None)


@pytest.mark.parametrize("limit", [None, 1 << 30])
@pytest.mark.parametrize(
    ("place", "value"), [(6, 0xAD), (8, 1), (8, 0x20), (8, 0x40), (10, 99), (10, 12), (10, 14), (30, 200), (42, 0xFF)]
)
def test_what_zipfile_does_not_know_is_refused(place, value, limit, tmp_path):
    """In the directory of the archive: a later version, encryption, patches, other packings, and lengths that do not fit."""
    content = bytearray(npz(X=A, y=[0, 1]))
    content[content.index(b"PK\x01\x02") + place] = value
    refused(written(tmp_path, "a.npz", bytes(content)), "is damaged", memory_limit=limit)


def test_npz_takes_no_names(tmp_path):
    refused(written(tmp_path, "a.npz", npz(X=A, y=[0, 1])), "array y", label="y")
    refused(written(tmp_path, "a.npz", npz(X=A, y=[0, 1])), "3 columns, but 2 features", features=2)


# ---- Parquet --------------------------------------------------------------------------------------------------------


def test_parquet(arrow, tmp_path):
    strings = arrow.array(["u", "v", "u"]).dictionary_encode()
    columns = {
        "a": arrow.array([1.5, 2.0, -1.0], arrow.float32()),
        "b.c": arrow.array([1, 2, 2**53]),
        "d": [True, False, True],
        "y": strings,
    }
    path = parquet(tmp_path / "a.parquet", columns, row_group_size=2)
    table = read(path)
    assert table.X.tolist() == [[1.5, 1, 1], [2.0, 2, 0], [-1.0, 2**53, 1]]
    assert table.X.dtype == np.float64
    assert table.y.tolist() == ["u", "v", "u"]
    assert table.names == ("a", "b.c", "d")
    assert read(path, label="d", features=["b.c", "a"]).X.tolist() == [[1, 1.5], [2, 2.0], [2**53, -1.0]]
    assert read(path, label="d", features=["a"]).y.tolist() == [True, False, True]
    assert read(path, labelled=False, features=["a"]).y is None
    refused(path, "column 'y' is of type dictionary", label="a")


@pytest.mark.parametrize("labels", [[0, 1, 1, 0, 1, 0], [*"abbaba"], [False, True] * 3], ids=["int", "text", "bool"])
def test_parquet_without_rows_that_miss_a_value(labels, arrow, tmp_path):
    """As the same table in text, over row groups; an infinite value is refused by its row in the file."""
    columns = {"a": [1.5, None, 3.0, 4.0, np.nan, 6.0], "b": [1, 2, 3, None, 5, 6], "y": [*labels]}
    columns["y"][2] = None
    path = parquet(tmp_path / "a.parquet", columns, row_group_size=4)
    table = read(path, missing="drop")
    assert table.X.tolist() == [[1.5, 1.0], [6.0, 6.0]]
    assert table.y.tolist() == [labels[0], labels[5]]
    assert table.left_out == (1, 2, 3, 4)
    assert table.notices == ("left out 4 of 6 rows of a.parquet for missing values (a: 2, b: 1, y: 1): rows 1, 2, 3, 4",)
    text = "\n".join(",".join("" if cell is None else str(cell) for cell in row) for row in zip(*columns.values(), strict=True))
    other = read(written(tmp_path, "a.csv", f"a,b,y\n{text}\n".encode()), missing="drop")
    assert (other.X.tolist(), other.left_out) == (table.X.tolist(), table.left_out)
    assert [*map(str, other.y.tolist())] == [*map(str, table.y.tolist())]  # text has no type of its own for truths
    refused(path, "row 2 (from 0), column 'y'", "the value is missing", "missing='drop'")
    with pytest.raises(InputError, match="too large to be read into memory"):
        read(path, missing="drop", memory_limit=64)
    with pytest.raises(InputError, match="convert cannot drop rows of Parquet files"):
        gordan.io.convert(path, tmp_path / "folder", missing="drop")
    columns["a"][5] = np.inf
    with pytest.raises(InputError, match=r"row 5 \(from 0\), column 'a': the value is inf"):
        read(parquet(tmp_path / "b.parquet", columns), missing="drop")
    with pytest.raises(InputError, match="no rows beside those with missing values"):
        read(parquet(tmp_path / "c.parquet", {"a": [1.0, None], "y": [None, 1]}), missing="drop")


def test_folder_of_parquet_files(arrow, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    for k in (2, 0, 1):
        parquet(folder / f"part-{k}.parquet", {"a": [float(k)], "y": [k]})
    (folder / "_SUCCESS").touch()
    table = read(folder)
    assert table.X.tolist() == [[0.0], [1.0], [2.0]]
    assert table.y.tolist() == [0, 1, 2]
    parquet(folder / "part-3.parquet", {"b": [1.0], "y": [1]})
    with pytest.raises(
        InputError, match=r"part-3\.parquet has the columns 'b', 'y' from column 0 on, but .*part-0\.parquet has 'a', 'y'"
    ):
        read(folder)
    parquet(folder / "part-3.parquet", {"a": [1.0], "y": ["one"]})
    refused(folder, "has string in column 'y', but ", "has int64;")


def test_polars_files(arrow, tmp_path):
    polars = pytest.importorskip("polars")
    polars.DataFrame({"a": [1.0, 2.0], "y": ["u", "v"]}).write_parquet(tmp_path / "a.parquet")
    table = read(tmp_path / "a.parquet")
    assert (table.X.tolist(), table.y.tolist()) == ([[1.0], [2.0]], ["u", "v"])


BAD_PARQUET = {
    "missing value": ({"a": [1.0, None], "y": [0, 1]}, "row 1 (from 0), column 'a'", "missing"),
    "missing label": ({"a": [1.0, 2.0], "y": ["u", None]}, "row 1 (from 0), column 'y'", "missing"),
    "nan": ({"a": [1.0, 2.0], "b": [1.0, np.nan], "y": [0, 1]}, "row 1 (from 0), column 'b'", "is nan"),
    "label nan": ({"a": [1.0, 2.0], "y": [0.0, np.nan]}, "row 1", "the label is nan"),
    "text": ({"a": ["x", "z"], "y": [0, 1]}, "column 'a'", "string"),
    "a list": ({"a": [[1.0], [2.0]], "y": [0, 1]}, "column 'a'", "list"),
    "a large integer": ({"a": [2**53 + 1, 1], "y": [0, 1]}, "column 'a'", "float64 cannot hold it exactly"),
    "no rows": ({"a": np.zeros(0), "y": np.zeros(0)}, "no rows"),
    "one column": ({"y": [0, 1]}, "no feature columns"),
}


@pytest.mark.parametrize("case", BAD_PARQUET.values(), ids=BAD_PARQUET)
def test_bad_parquet(case, arrow, tmp_path):
    refused(parquet(tmp_path / "a.parquet", case[0]), *case[1:])


def test_damaged_parquet(arrow, tmp_path):
    content = parquet(tmp_path / "a.parquet", {"a": np.arange(100.0), "y": [0, 1] * 50}).read_bytes()
    refused(written(tmp_path, "a.parquet", b""), "is empty")
    for cut in (1, 4, 10, len(content) // 2, len(content) - 9, len(content) - 1):
        refused(written(tmp_path, "a.parquet", content[:cut]), "damaged")
    refused(written(tmp_path, "a.parquet", content[100:]), "damaged")


def test_parquet_with_bytes_changed(arrow, tmp_path):
    """A table or a refusal, and no other exception; pyarrow itself reads the file."""
    path, rng = tmp_path / "a.parquet", np.random.default_rng(0)
    content = parquet(path, {"a": np.arange(50.0), "b": np.arange(50), "y": ["u", "v"] * 25}, row_group_size=20).read_bytes()
    outcomes = {"read": 0, "refused": 0}
    for _ in range(300):
        spoilt = bytearray(content)
        spoilt[int(rng.integers(len(content)))] ^= int(rng.integers(1, 256))
        path.unlink()
        path.write_bytes(spoilt)
        try:
            outcomes["read"] += read(path, features=2).X.shape[1] == 2
        except InputError:
            outcomes["refused"] += 1
    assert sum(outcomes.values()) == 300
    assert min(outcomes.values()) > 0


def test_parquet_without_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(gordan.MissingExtra, match=r"Parquet needs pyarrow: pip install 'gordan\[data\]'"):
        read(written(tmp_path, "a.parquet", b"PAR1"))
