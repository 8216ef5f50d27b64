"""Columns that are left out of a table: an index, those that are dropped, and what is said about them."""

from __future__ import annotations

import gzip
import os
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from problems import cells
from readers import dense, parquet, refused, written

import gordan
from gordan.errors import InputError
from gordan.io import read
from gordan.io import text as text_module

# ---- columns that are left out ----------------------------------------------------------------------------------------


def as_text(columns, names, mark=","):
    lines = [mark.join(names), *(mark.join(map(str, row)) for row in zip(*columns, strict=True))]
    return "\n".join(lines) + "\n"


COUNT = list(range(20))
VALUES = [(7 * k) % 5 - 2.5 for k in COUNT]
OTHERS = [(3 * k) % 7 for k in COUNT]
LABELS = ["u", "v"] * 10


@pytest.mark.parametrize("name", ["", "  ", '""', "Unnamed: 0", "Unnamed: 0.1"])
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz"])
def test_a_nameless_count_of_the_rows_is_left_out(name, start, suffix, route, tmp_path):
    count = [start + k for k in COUNT]
    content = as_text([count, VALUES, OTHERS, LABELS], [name, "a", "b", "y"], "\t" if suffix == "tsv" else ",").encode()
    path = written(tmp_path, f"t.{suffix}", gzip.compress(content) if suffix.endswith("gz") else content)
    table = read(path)
    assert table.X.tolist() == [[a, b] for a, b in zip(VALUES, OTHERS, strict=True)]
    assert (table.y.tolist(), table.names, [*table.numbers]) == (LABELS, ("a", "b"), [1, 2])
    (notice,) = table.notices
    assert "column 0" in notice
    assert path.name in notice
    assert "--keep-index" in notice
    kept = read(path, keep_index=True)
    assert (kept.X[:, 0].tolist(), kept.names[1:], kept.notices) == (count, ("a", "b"), ())
    # the label keeps its position, and may be any other column
    assert read(path, label=1, drop=["y"]).X.tolist() == [[b] for b in OTHERS]
    assert read(path, label="b", drop=[3, "a"]).names == kept.names[:1]  # nothing else is left


WITH_A_COUNT = {
    "named": (["id", "a", "y"], [COUNT, VALUES, LABELS], ("id", "a")),
    "a row is missing": (["", "a", "y"], [[*COUNT[:-1], 20], VALUES, LABELS], ("", "a")),
    "from 2": (["", "a", "y"], [[k + 2 for k in COUNT], VALUES, LABELS], ("", "a")),
    "downwards": (["", "a", "y"], [COUNT[::-1], VALUES, LABELS], ("", "a")),
    "not in front": (["a", "", "y"], [VALUES, COUNT, LABELS], ("a", "")),
    "a measurement without a name": (["", "a", "y"], [VALUES, OTHERS, LABELS], ("", "a")),
    "alone": (["", "y"], [COUNT, LABELS], ("",)),
    "twice, but the second counts something else": (
        ["", "Unnamed: 0", "a", "y"],
        [COUNT, VALUES, OTHERS, LABELS],
        ("Unnamed: 0", "a"),
    ),
    "twice": (["", "Unnamed: 0", "a", "y"], [COUNT, [k + 1 for k in COUNT], OTHERS, LABELS], ("a",)),
    "twice and alone": (["", "Unnamed: 0", "y"], [COUNT, COUNT, LABELS], ("Unnamed: 0",)),
    "named by their number": (["0", "1", "2"], [COUNT, VALUES, LABELS], ("0", "1")),
}


@pytest.mark.parametrize(("names", "columns", "left"), cells(WITH_A_COUNT))
def test_what_is_no_index_is_kept(names, columns, left, route, tmp_path):
    table = read(written(tmp_path, "t.csv", as_text(columns, names)))
    assert table.names == left
    assert len(table.notices) == len(names) - 1 - len(left)
    held = [np.array(column, dtype=float).tolist() for column in columns[:-1]]
    assert all(column in held for column in table.X.T.tolist())


def test_the_label_is_never_taken_for_an_index(tmp_path):
    path = written(tmp_path, "t.csv", as_text([COUNT, COUNT, VALUES], ["", "Unnamed: 0", "a"]))
    for label in ("", 0, "0", -3):
        table = read(path, label=label)
        assert (table.y.tolist(), table.names, table.notices) == (COUNT, ("Unnamed: 0", "a"), ())


def test_features_that_are_chosen_are_taken_as_they_are(tmp_path):
    """By name: that one. By number: the index goes where enough is left without it."""
    path = written(tmp_path, "t.csv", as_text([COUNT, VALUES, OTHERS], ["", "a", "b"]))
    assert read(path, features=["", "a"], labelled=None).names == ("", "a")
    found = {count: read(path, features=count, labelled=None) for count in (1, 2, 3)}
    assert [(table.names, table.y is None) for table in found.values()] == [
        (("a",), False),
        (("a", "b"), True),
        (("", "a", "b"), True),
    ]
    refused(path, "3 columns (one of them the label, 1 left out), but 4 features", features=4, drop=["a"])


def test_long_files_are_counted_too(tmp_path, monkeypatch):
    """Over many blocks of the compiled scanner; a break near the end is seen."""
    monkeypatch.setattr(text_module, "SHORT", 0)
    monkeypatch.setattr(text_module, "BLOCK", 1 << 12)
    count = list(range(40_000))
    for last, names in ((39_999, ("a",)), (40_000, ("", "a"))):
        count[-1] = last
        path = written(tmp_path, "t.csv", as_text([count, count[::-1], LABELS * 2000], ["", "a", "y"]))
        assert read(path).names == names


def test_a_file_that_breaks_off_is_refused_as_ever(route, tmp_path):
    content = as_text([COUNT, VALUES, LABELS], ["", "a", "y"])
    refused(written(tmp_path, "t.csv", content + "20,1\n"), "line 22", "2 fields, but the header has 3")
    refused(written(tmp_path, "t.csv", content.replace("\n7,", "\nseven,")), "line 9, column 0 ('')", "--drop 0 leaves it out")
    refused(written(tmp_path, "t.csv", ",a,y\n"), "no rows")


def test_all_columns_of_text_are_named_at_once(route, tmp_path):
    path = written(tmp_path, "t.csv", "age,sex,region,seen,died\n50,m,A,NA,1\n60,f,B,NA,0\n")
    dummies = "columns=['sex', 'region'], drop_first=True"
    refused(path, "column 1 ('sex')", "text is also in 'region'; ", dummies, "--drop sex --drop region leaves them out")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_read_once(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    thread = threading.Thread(target=(tmp_path / "t.csv").write_text, args=(as_text([COUNT, VALUES, LABELS], ["", "a", "y"]),))
    thread.start()
    table = read(tmp_path / "t.csv")
    thread.join()
    assert table.names == ("", "a")


def test_index_of_parquet_files(arrow, tmp_path):
    """It counts all rows, or those of each file."""
    for second in (range(20, 40), range(20), range(1, 21), range(21, 41)):
        for k, count in enumerate((range(20), second)):
            parquet(tmp_path / f"{k}.parquet", {"Unnamed: 0": [*count], "a": VALUES, "y": LABELS}, row_group_size=7)
        table = read(tmp_path)
        assert table.names == ("a",)
        assert table.X.tolist() == [[a] for a in VALUES] * 2
        assert len(table.notices) == 1
        assert read(tmp_path, keep_index=True).X[:, 0].tolist() == [*range(20), *second]
    for second in ([*range(19), 3], range(5, 25), [None, *range(1, 20)]):
        parquet(tmp_path / "1.parquet", {"Unnamed: 0": [*second], "a": VALUES, "y": LABELS})
        if None in second:
            refused(tmp_path / "1.parquet", "column 'Unnamed: 0'", "missing")
        else:
            assert read(tmp_path).names == ("Unnamed: 0", "a")
    parquet(tmp_path / "1.parquet", {"a": VALUES, "y": LABELS})
    with pytest.raises(InputError, match="has the columns 'a', 'y' from column 0 on, but"):
        read(tmp_path)


def dropping(folder):
    """The same table of four columns in every format; and of each some columns to drop, with the function that finds them."""
    X = np.column_stack([COUNT, VALUES, OTHERS, VALUES[::-1]])
    y = np.arange(20) % 2
    np.save(folder / "t.npy", np.column_stack([X, y]))
    np.savez(folder / "t.npz", X=X, y=y)
    held = sp.csr_array(X)
    np.savez(folder / "csr.npz", data=held.data, indices=held.indices, indptr=held.indptr, shape=held.shape, format=b"csr", y=y)
    written(folder, "t.csv", as_text([*X.T.tolist(), y.tolist()], ["n", "a", "b", "c", "y"]))
    written(folder, "t.tsv", as_text([*X.T.tolist(), y.tolist()], ["n", "a", "b", "c", "y"], "\t"))
    for first in (0, 1):
        lines = [
            f"{k} " + " ".join(f"{j + first}:{v!r}" for j, v in enumerate(row)) for k, row in zip(y, X.tolist(), strict=True)
        ]
        written(folder, f"from{first}.svm", "\n".join(lines) + "\n")
    for kind in ("dense", "csr"):
        gordan.io.convert(folder / "t.csv", folder / kind, kind=kind)
    by_place = (("1", 0), (1, 0, 2), (3,), ("-1", 1)), lambda column: int(column) % 4
    by_name = (
        (("a", "n"), ("c", 1), ("0", "b", "a")),
        lambda column: "nabc".find(str(column)) if str(column) in "nabc" else int(column),
    )
    by_index = (("2", 1), (4,), (3, 3)), lambda column: int(column) - 1
    from_zero = ((0,), ("1", "3")), int
    table = dict.fromkeys(("t.npz", "csr.npz"), by_place)
    table |= {"t.npy": ((("1", 0), (1, 0, 2), (3,)), int)}
    table |= dict.fromkeys(("t.csv", "t.tsv", "dense", "csr"), by_name)
    return X, y, {**table, "from1.svm": by_index, "from0.svm": from_zero}


FORMATS = ["t.npy", "t.npz", "csr.npz", "t.csv", "t.tsv", "dense", "csr", "from1.svm", "from0.svm"]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("limit", [None, 1 << 30])
def test_drop(name, limit, tmp_path):
    X, y, table = dropping(tmp_path)
    cases, place = table[name]
    for drop in cases:
        left = [j for j in range(4) if j not in {place(column) for column in drop}]
        for features in (None, len(left)):
            found = read(tmp_path / name, drop=drop, features=features, memory_limit=limit)
            assert dense(found).tolist() == X[:, left].tolist(), drop
            assert found.y.tolist() == y.tolist()
            assert found.names is None or found.names == tuple("nabc"[j] for j in left)
            first = int(name == "from1.svm")
            assert [*found.numbers] == [j + first for j in left]
        if not name.endswith("svm"):  # which may be narrower than what is wanted
            refused(tmp_path / name, "but 5 features are wanted", drop=drop, features=5)
        elif len(left) > 1:
            refused(tmp_path / name, f"but 1 features are wanted beside the {4 - len(left)} that", drop=drop, features=1)
    unknown = {"from1.svm": (5, "columns are 1 to 4"), "from0.svm": (4, "columns are 0 to 3")}
    column, message = unknown.get(name, (9, "there is no column 9"))
    refused(tmp_path / name, message, drop=[column])
    named = "'n', 'a', 'b', 'c'" if name in ("t.csv", "t.tsv", "dense", "csr") else "no names"
    refused(tmp_path / name, "'zz'", named, drop=["zz"])
    with pytest.raises(InputError, match="dropped"):
        read(tmp_path / name, drop=range(1, 5) if name == "from1.svm" else range(4))


def test_drop_in_svmlight_leaves_every_other_entry(route, tmp_path):
    """Explicit zeros stay; a column without entries counts; a test file may lack the column that is dropped."""
    path = written(tmp_path, "a.svm", "1 1:2 2:0 4:5\n-1 2:3\n1 1:1 4:0\n")
    found = read(path, drop=[1])
    assert dense(found).tolist() == [[0, 0, 5], [3, 0, 0], [0, 0, 0]]
    assert (found.X.nnz, [*found.numbers]) == (4, [2, 3, 4])
    assert dense(read(path, drop=["3"])).tolist() == [[2, 0, 5], [0, 3, 0], [1, 0, 0]]
    short = written(tmp_path, "b.svm", "1 1:2\n")
    assert dense(read(short, drop=[4], features=3)).tolist() == [[2, 0, 0]]
    for wrong in ("a", "-1", "1.0", -1):
        refused(path, "by its index in the file", drop=[wrong])


def test_drop_and_the_label(tmp_path):
    path = written(tmp_path, "t.csv", as_text([VALUES, ["x"] * 20, OTHERS, LABELS, COUNT], ["a", "name", "b", "y", "id"]))
    found = read(path, label="y", drop=["id", "name"])  # whatever is in them
    assert (found.names, found.y.tolist(), [*found.numbers]) == (("a", "b"), LABELS, [0, 2])
    refused(path, "column 4 ('id')", "is the label column, which cannot be dropped", "--label", drop=["id", "name"])
    refused(path, "column 3 ('y')", "is the label column", drop=["y"], label="y")
    refused(path, "column 0 ('a')", "is in both features and drop", drop=["a"], label="y", features=["a", "b"])
    chosen = read(path, features=["b", "a"], labelled=None, drop=["id"])  # the label is the last one that is left
    assert (chosen.y.tolist(), chosen.names) == (LABELS, ("b", "a"))
    assert read(path, features=["b", "a"], labelled=None, drop=["id", "y", "name"]).y is None
    refused(path, "no feature columns besides the label and those that are dropped", label="y", drop=["a", "b", "id", "name"])
    for wrong in ("id", [True], [1.5], [None]):
        with pytest.raises(InputError, match="pass a list of names or positions"):
            read(path, drop=wrong)


def test_drop_in_parquet(arrow, tmp_path):
    path = parquet(tmp_path / "t.parquet", {"id": ["x"] * 20, "a": VALUES, "b": OTHERS, "y": LABELS})
    found = read(path, drop=["id"])
    assert (found.names, found.X.tolist(), [*found.numbers]) == (
        ("a", "b"),
        [*map(list, zip(VALUES, OTHERS, strict=True))],
        [1, 2],
    )
    refused(path, "no column named 'c'", "'id', 'a', 'b', 'y'", drop=["c"])
    refused(path, "cannot be dropped", drop=["id", "y"])


def test_a_mapped_array_is_not_copied_beyond_the_limit(tmp_path):
    """Columns at the ends are left out of a view; a copy of the others must fit into half of the limit."""
    X = np.arange(4000.0).reshape(1000, 4)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", np.arange(1000) % 2)
    options = {"label": str(tmp_path / "y.npy"), "memory_limit": 40_000}
    for drop, left in (([0], X[:, 1:]), ([3, 0], X[:, 1:3])):
        found = read(tmp_path / "X.npy", drop=drop, **options).X
        assert found.tolist() == left.tolist()
        assert found.flags.owndata == (left.nbytes <= 20_000)  # else it is still in its file
    refused(tmp_path / "X.npy", "24000 bytes", "gordan convert --drop", drop=[1], **options)
    assert read(tmp_path / "X.npy", drop=[1], label=options["label"]).X.tolist() == np.delete(X, 1, axis=1).tolist()
    for kind in ("dense", "csr"):
        gordan.io.convert(tmp_path / "X.npy", tmp_path / kind, label=options["label"], kind=kind)
        refused(tmp_path / kind, "gordan convert --drop", drop=[1], memory_limit=40_000)
        made = gordan.io.convert(tmp_path / "X.npy", tmp_path / f"{kind}-1", label=options["label"], kind=kind, drop=[1])
        assert made.shape == (1000, 3)
        assert dense(read(tmp_path / f"{kind}-1", memory_limit=1 << 30)).tolist() == np.delete(X, 1, axis=1).tolist()


@pytest.mark.parametrize("kind", ["dense", "csr", "auto"])
@pytest.mark.parametrize("name", ["t.npy", "t.csv", "t.tsv", "from1.svm", "from0.svm"])
@pytest.mark.parametrize("most", [None, 1])
def test_convert_without_some_columns(name, kind, most, tmp_path):
    """As `read` has them; in pieces of a few rows as well, and the options belong to the folder."""
    dropping(tmp_path)
    drop, target = [1, 2], tmp_path / "folder"
    expected = read(tmp_path / name, drop=drop)
    made = gordan.io.convert(tmp_path / name, target, drop=drop, kind=kind, memory_limit=most)
    found = read(target)
    assert made.shape == expected.X.shape == found.X.shape
    assert dense(read(target, memory_limit=1 << 30)).tolist() == dense(expected).tolist()
    assert (found.y.tolist(), found.names) == (expected.y.tolist(), expected.names)
    assert gordan.io.check(target) > 0
    assert gordan.io.convert(tmp_path / name, target, drop=drop, kind=kind).already
    with pytest.raises(InputError, match="other columns"):
        gordan.io.convert(tmp_path / name, target, kind=kind)
    with pytest.raises(InputError, match="no column"):
        gordan.io.convert(tmp_path / name, tmp_path / "other", drop=[9], kind=kind)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_convert_of_svmlight_that_counts_from_0_without_its_first_column(kind, tmp_path):
    """Where the columns begin is seen in all entries: those of the dropped column tell it, too."""
    path = written(tmp_path, "a.svm", "1 0:7 2:5\n-1 0:6 3:4\n")
    gordan.io.convert(path, tmp_path / "folder", drop=[0], kind=kind)
    assert (
        dense(read(tmp_path / "folder", memory_limit=1 << 30)).tolist()
        == [[0, 5, 0], [0, 0, 4]]
        == dense(read(path, drop=[0])).tolist()
    )


def test_convert_leaves_the_index_out(tmp_path):
    path = written(tmp_path, "t.csv", as_text([COUNT, VALUES, LABELS], ["", "a", "y"]))
    made = gordan.io.convert(path, tmp_path / "folder")
    assert (made.shape, made.notices) == ((20, 1), read(path).notices)
    assert gordan.io.convert(path, tmp_path / "folder").notices == made.notices
    kept = gordan.io.convert(path, tmp_path / "kept", keep_index=True)
    assert (kept.shape, kept.notices) == ((20, 2), ())
    assert read(tmp_path / "kept").names == ("", "a")  # asked for, so it stays
    with pytest.raises(InputError, match="other columns"):
        gordan.io.convert(path, tmp_path / "kept")
