"""Readers: every format exactly, every bad file refused with its place; InputError or OSError, whatever the bytes."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import struct
import sys
import threading
import zipfile
from decimal import Context, Decimal
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from problems import cells

import gordan
from gordan.certificates import standalone
from gordan.errors import InputError
from gordan.io import Table, read
from gordan.io import text as text_module
from gordan.io.scan import POINT, scan_number


@pytest.fixture(params=["careful", "fast", "fast, blocks of 7 bytes"])
def route(request, monkeypatch):
    """The line-by-line parser, the compiled scanner, and the scanner with lines across blocks must not differ in anything."""
    if request.param != "careful":
        monkeypatch.setattr(text_module, "SHORT", 0)
    if "7" in request.param:
        monkeypatch.setattr(text_module, "BLOCK", 7)


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


# ---- numbers --------------------------------------------------------------------------------------------------------


def scanned(text):
    return scan_number(np.frombuffer(text.encode() + b"\n", np.uint8), 0, POINT)


def agrees(text):
    """The scanner reads the number exactly as float does, all of it, or leaves it alone."""
    known, value, end = scanned(text)
    if known:
        assert end == len(text)
        assert struct.pack("<d", value) == struct.pack("<d", float(text)), text
    return known


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_shortest_text_of_a_float(value):
    known = agrees(repr(value))
    assert known or not 1e-250 < abs(value) < 1e250


@given(st.integers(0, 10**25), st.integers(0, 10**12), st.integers(-400, 400), st.sampled_from(["", "-", "+"]))
@example(1, 0, 23, "")
@example(9007199254740993, 0, 0, "-")
@example(0, 0, 0, "-")
@example(18446744073709551615, 0, 0, "")
def test_decimals_of_any_length(whole, part, exponent, sign):
    agrees(f"{sign}{whole}.{part}e{exponent}")
    agrees(f"{sign}{whole}")
    agrees(f"{sign}.{part:040d}E+{abs(exponent)}")


@given(st.integers(2**52, 2**53 - 1), st.integers(-120, 120), st.sampled_from(["", "1", "0000000000000001"]), st.booleans())
def test_decimals_halfway_between_two_floats(m, e, after, below):
    """(2m+1) 2^e has 54 bits: the nearest floats are equally far; a digit more, or one less at the end, decides."""
    half = Context(prec=400).multiply(Decimal(2 * m + 1), Context(prec=400).power(Decimal(2), e))
    digits = format(half, "f")
    digits += "" if "." in digits else ".0"
    agrees(digits + after)
    if below:
        agrees(str(Context(prec=400).subtract(half, Decimal(f"1e-{200}"))))
    agrees(digits.replace(".", "")[:19] + f"e{digits.index('.') - 19}")


def test_most_numbers_in_files_take_the_quick_way():
    values = np.random.default_rng(0).standard_normal(3000)
    for form in ("%.6g", "%.17g", "%.18e", "%.25f"):
        assert np.mean([agrees(form % value) for value in values]) > 0.999


@pytest.mark.parametrize("text", ["", ".", "-", "+.", "e5", "1e", "1e+", "--1", "nan", "inf", "-inf", "x1", "1e1234567"])
def test_what_is_no_plain_number_is_left_alone(text):
    assert not scanned(text)[0]


# ---- svmlight -------------------------------------------------------------------------------------------------------

SVMLIGHT = {
    "plain": ("1 1:0.5 3:-2\n-1 2:1e-3\n", [[0.5, 0, -2], [0, 1e-3, 0]], [1, -1]),
    "no newline at the end": ("1 1:0.5\n-1 2:1", [[0.5, 0], [0, 1]], [1, -1]),
    "CRLF": ("1 1:0.5\r\n-1 2:1\r\n", [[0.5, 0], [0, 1]], [1, -1]),
    "BOM": ("\ufeff1 1:0.5\n-1 2:1\n", [[0.5, 0], [0, 1]], [1, -1]),
    "comments and blank lines": ("# head\n\n  \n1 1:2 # é 7:1\n-1 #x\n#\r\n2 2:1#\n", [[2, 0], [0, 0], [0, 1]], [1, -1, 2]),
    "tabs and spaces": ("\t1\t1:2  2:3\t\n  -1  1:1 \n", [[2, 3], [1, 0]], [1, -1]),
    "columns from 0": ("1 0:2 2:3\n-1 1:1\n", [[2, 0, 3], [0, 1, 0]], [1, -1]),
    "qid": ("1 qid:3 1:2\n-1 qid:-4 2:1\n", [[2, 0], [0, 1]], [1, -1]),
    "signs": ("+1 1:+2\n-1 1:-.5\n", [[2], [-0.5]], [1, -1]),
    "labels that are numbers": ("0.5 1:2\n1 1:3\n", [[2], [3]], [0.5, 1.0]),
    "labels that are text": ("spam 1:2\n1 1:3\n", [[2], [3]], ["spam", "1"]),
    "explicit zeros": ("1 1:0 2:-0.0\n", [[0, 0]], [1]),
    "labels of any letters": ("\u0661 1:2\n1_0 1:3\nm\u00e9\u200dx 1:1\n", [[2], [3], [1]], ["\u0661", "1_0", "m\u00e9\u200dx"]),
    "blank lines of any ASCII whitespace": ("1 1:2\n \t\x0b\x0c\n-1 1:3\x0c\n", [[2], [3]], [1, -1]),
    "hard numbers": (
        "1 1:1e23 2:5e-324 3:123456789012345678901234567890.5e-10\n2 1:1e-400\n",
        [[1e23, 5e-324, float("123456789012345678901234567890.5e-10")], [0, 0, 0]],
        [1, 2],
    ),
}


@pytest.mark.parametrize(("content", "X", "y"), cells(SVMLIGHT))
def test_svmlight(content, X, y, route, tmp_path):
    table = read(written(tmp_path, "a.svm", content))
    assert sp.issparse(table.X)
    assert table.X.dtype == np.float64
    assert dense(table).tolist() == np.array(X, dtype=float).tolist()
    assert table.y.tolist() == y
    assert table.y.dtype.kind == {int: "i", float: "f", str: "U"}[type(y[0])]
    assert table.names is None
    assert table.path == tmp_path / "a.svm"


BAD_SVMLIGHT = {
    "no value": ("1 1:2\n-1 1:\n", "line 2", "value of index 1 is empty"),
    "no index": ("1 1:2\n\n-1 :3\n", "line 3", "does not start with an index"),
    "negative index": ("1 -1:2\n", "line 1", "does not start with an index"),
    "index with a fraction": ("1 1.5:2\n", "line 1", "does not start with an index"),
    "huge index": ("1 1:1\n# x\n1 99999999999:2\n", "line 3", "index 99999999999 is too large"),
    "index beyond all bounds": ("1 " + "9" * 5000 + ":2\n", "line 1", "does not start with an index"),
    "index twice": ("1 1:2 1:3\n", "line 1", "index 1 comes after 1"),
    "falling indices": ("1 3:2 2:3\n", "line 1", "index 2 comes after 3"),
    "no colon": ("1 1:2\n1 1:2 7\n", "line 2", "'7' is not index:value"),
    "nan": ("1 1:2\n1 1:nan\n", "line 2", "value of index 1 is nan, which is not finite"),
    "inf": ("1 1:-inf\n", "line 1", "which is not finite"),
    "overflow": ("1 1:1e999\n", "line 1", "is 1e999, which is not finite in float64"),
    "word": ("1 1:two\n", "line 1", "'two', which is not a number"),
    "underscore": ("1 1:1_0\n", "line 1", "'1_0', which is not a number"),
    "two colons": ("1 1:2:3\n", "line 1", "'2:3', which is not a number"),
    "bad qid": ("1 qid:x 1:2\n", "line 1", "'qid:x' does not start with an index"),
    "no label": ("1:2 2:3\n", "line 1", "no label"),
    "no label later": ("1 1:2\n1:2 2:3\n", "line 2", "has no label"),
    "label nan": ("1 1:2\nnan 1:2\n", "line 2", "the label is nan"),
    "label nan after others": ("1 1:2\n1 1:2\n2 1:2\n1 1:3\nnan 1:2\n2 1:1\n", "line 5", "the label is nan"),
    "label inf": ("1 1:2\n# c\n-inf 1:2\n", "line 3", "the label is -inf"),
    "NUL": ("1 1:2\n1 1:\0\n", "line 2", "NUL"),
    "not UTF-8": (b"1 1:2\n1 1:2 # caf\xe9\n", "line 2", "UTF-8"),
    "UTF-16": ("1 1:2\n".encode("utf-16"), "UTF-16"),
    "carriage return": ("1 1:2\r1 1:3\n", "line 1", "carriage return"),
    "empty": ("", "is empty"),
    "comments only": ("# nothing\n\n", "is empty"),
    "no entries": ("1\n-1\n", "no entries", "features="),
    "a no-break space for a line": ("1 1:2\n\xa0\n-1 1:3\n", "line 2", r"the label is '\xa0', which is invisible"),
    "a wide space for a line": ("1 1:2\n-1 1:3\n \u3000\u2003\r\n", "line 3", r"the label is '\u3000\u2003'"),
    "a line separator for a line": ("1 1:2\n-1 1:3\n\u2028 # c\n", "line 3", r"the label is '\u2028', which is invisible"),
    "a zero-width space for a line": ("1 1:2\n\u200b\n-1 1:3\n", "line 2", r"the label is '\u200b', which is invisible"),
    "a control character for a line": ("1 1:2\n\x1c\n-1 1:3\n", "line 2", r"the label is '\x1c', which is invisible"),
    "a no-break space behind a label": ("1 1:2\n1\xa0 1:2\n-1 1:3\n", "line 2", r"the label is '1\xa0'", "plain spaces"),
    "a no-break space behind a value": ("1 1:2\xa0\n", "line 1", r"value of index 1 is '2\xa0', which is not a number"),
    "a no-break space alone in the line": ("1 1:2 \xa0\n", "line 1", "is not index:value"),
    "digits of another script": ("1 1:\u0661\n", "line 1", "value of index 1 is '\u0661', which is not a number"),
    "wide digits": ("1 1:2\n1 1:\uff11\n", "line 2", "value of index 1 is '\uff11', which is not a number"),
    "an index in another script": ("1 \u0661:2\n", "line 1", "does not start with an index"),
    "an index with an underscore": ("1 1_0:2\n", "line 1", "does not start with an index"),
}


@pytest.mark.parametrize("case", BAD_SVMLIGHT.values(), ids=BAD_SVMLIGHT)
def test_bad_svmlight(case, route, tmp_path):
    refused(written(tmp_path, "a.svm", case[0]), *case[1:])


def test_svmlight_gets_the_width_of_the_model(tmp_path):
    path = written(tmp_path, "a.svm", "1 1:2\n-1 3:1\n")
    assert read(path, features=5).X.shape == (2, 5)
    refused(path, "3 columns", "row 1", "2 features", features=2)
    assert read(written(tmp_path, "b.svm", "1\n-1\n"), features=4).X.shape == (2, 4)


def test_svmlight_without_labels(route, tmp_path):
    path = written(tmp_path, "a.svm", "# a head\n\n1:2 2:3\n2:1 # c\n")
    for labelled in (False, None):
        table = read(path, labelled=labelled)
        assert table.y is None
        assert dense(table).tolist() == [[2, 3], [0, 1]]
    refused(written(tmp_path, "b.svm", "1:2\n1 1:2\n"), "line 2", "earlier lines have no label", labelled=None)
    refused(written(tmp_path, "c.svm", "1 1:2\n"), "line 1", "a label", labelled=False)
    assert read(written(tmp_path, "c.svm", "1 1:2\n"), labelled=None).y.tolist() == [1]
    refused(path, "svmlight", label="y", labelled=None)


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed(suffix, route, tmp_path):
    content = "".join(f"{i % 3} 1:{i} 7:0.25\n" for i in range(400)).encode()
    packed = PACKERS[suffix](content)
    table = read(written(tmp_path, f"a.svm{suffix}", packed))
    assert table.X.shape == (400, 7)
    assert table.y.tolist() == [i % 3 for i in range(400)]
    assert read(written(tmp_path, "named otherwise", packed)).X.shape == (400, 7)
    assert read(written(tmp_path, f"t.csv{suffix}", PACKERS[suffix](b"x,y\n1,2\n"))).X.tolist() == [[1.0]]
    refused(written(tmp_path, f"c.svm{suffix}", content), "is not a")
    refused(written(tmp_path, f"e.svm{suffix}", b""), "is empty")
    for cut in (12, len(packed) // 2, len(packed) - 1):
        refused(written(tmp_path, f"b.svm{suffix}", packed[:cut]), "cut short")
    spoilt = bytearray(packed)
    spoilt[len(packed) // 2] ^= 0x55
    refused(written(tmp_path, f"b.svm{suffix}", bytes(spoilt)))  # by its checksum, or by a line that makes no sense before it


def test_round_trip_with_scikit_learn(route, tmp_path):
    datasets = pytest.importorskip("sklearn.datasets")
    rng = np.random.default_rng(3)
    X = sp.random(60, 30, 0.2, format="csr", random_state=rng, data_rvs=rng.standard_normal)  # 32-bit indices in every SciPy
    y = rng.integers(-1, 3, 60)
    for zero_based in (True, False):
        path = tmp_path / "a.svm"
        datasets.dump_svmlight_file(X, y, str(path), zero_based=zero_based, comment="made here", query_id=np.arange(60))
        ours, theirs = read(path, features=30), datasets.load_svmlight_file(str(path), n_features=30, zero_based=zero_based)
        assert (theirs[0] != ours.X).nnz == 0
        assert (ours.y == theirs[1]).all()
        assert (ours.y == y).all()


# ---- CSV and TSV ----------------------------------------------------------------------------------------------------

CSV = {
    "plain": ("a,b,y\n1,2,yes\n3,-4.5e1,no\n", [[1, 2], [3, -45]], ["yes", "no"]),
    "CRLF, no newline at the end": ("a,b,y\r\n1,2,0\r\n3,4,1", [[1, 2], [3, 4]], [0, 1]),
    "BOM": ("\ufeffa,y\n1,2\n", [[1]], [2]),
    "quotes": ('"a","b","y"\n"1",2,"x, ""z"""\n3," 4 ","w"\n', [[1, 2], [3, 4]], ['x, "z"', "w"]),
    "a label on two lines": ('a,y\n1,"up\nand down"\n2,z\n', [[1], [2]], ["up\nand down", "z"]),
    "a quote inside a label": ('a,y\n1,5" pipe\n2,z\n', [[1], [2]], ['5" pipe', "z"]),
    "blank lines": ("\n\na,y\n\n1,2\n\r\n3,4\n\n", [[1], [3]], [2, 4]),
    "spaces": ("a,y\n 1 , x\n2,x \n", [[1], [2]], [" x", "x "]),
    "labels that are numbers": ("a,y\n1,1\n2,1.5\n", [[1], [2]], [1.0, 1.5]),
    "labels beyond 64 bits": ("a,y\n1,1\n2,100000000000000000000\n", [[1], [2]], [1.0, 1e20]),
    "labels with a zero in front": ("a,y\n1,007\n2,7\n", [[1], [2]], [7, 7]),
    "letters of all kinds": ("größe,y\n1,café\n2,日本\n", [[1], [2]], ["café", "日本"]),
    "columns named by their number": ("0,1,2\n1,2,3\n", [[1, 2]], [3]),
    "inf as a word": ("a,y\n1,inf\n2,sup\n", [[1], [2]], ["inf", "sup"]),
    "hard numbers": ("a,y\n1e23,0\n4.9e-324,1\n1e-999,1\n", [[1e23], [5e-324], [0]], [0, 1, 1]),
}


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize(("content", "X", "y"), cells(CSV))
def test_csv(content, X, y, suffix, route, tmp_path):
    if suffix == "tsv":
        content = content.replace(",", "\t")
        y = [label.replace(",", "\t") if isinstance(label, str) else label for label in y]
    table = read(written(tmp_path, f"a.{suffix}", content))
    assert table.X.dtype == np.float64
    assert table.X.tolist() == X
    assert table.y.tolist() == y
    assert table.y.dtype.kind == {int: "i", float: "f", str: "U"}[type(y[0])]
    assert table.names is not None


BAD_CSV = {
    "a field too few": ("a,b,y\n1,2,3\n1,2\n", "line 3", "2 fields, but the header has 3"),
    "a field too many": ("a,b,y\n1,2,3,4\n", "line 2", "4 fields, but the header has 3"),
    "a comma at the end": ("a,y\n1,2,\n", "line 2", "3 fields"),
    "empty cell": ("a,b,y\n1,2,3\n\n1,,3\n", "line 4, column 1 ('b')", "is empty"),
    "blank cell": ("a,b,y\n1,  ,3\n", "line 2, column 1 ('b')", "is empty"),
    "nan": ("a,y\n1,2\nNaN,2\n", "line 3, column 0 ('a')", "is NaN, which is not finite"),
    "inf": ("a,y\n-inf,2\n", "line 2, column 0 ('a')", "which is not finite"),
    "overflow": ("a,y\n1e309,2\n", "line 2", "is 1e309, which is not finite in float64"),
    "word": ("a,y\nNA,2\n", "line 2", "'NA', which is not a number"),
    "underscore": ("a,y\n1_0,2\n", "line 2", "'1_0', which is not a number"),
    "digits of another script": ("a,y\n1,2\n\u0661,2\n", "line 3", "'\u0661', which is not a number"),
    "wide digits": ("a,y\n\uff11,2\n", "line 2", "'\uff11', which is not a number"),
    "a no-break space behind a number": ("a,y\n1\xa0,2\n", "line 2", r"'1\xa0', which is not a number"),
    "a no-break space for a cell": ("a,y\n\xa0,2\n", "line 2", r"'\xa0', which is not a number"),
    "a no-break space for a line": ("a,y\n1,2\n\xa0\n", "line 3", "1 fields, but the header has 2"),
    "a no-break space for a label": ("a,y\n1,2\n1,\xa0\n", "line 3", r"the label is '\xa0', which is invisible"),
    "empty label": ("a,y\n1,2\n1,\n", "line 3", "the label is empty"),
    "blank label": ("a,y\n1,x\n1,  \n", "line 3", "the label is empty"),
    "label nan": ("a,y\n1,x\n1,NaN\n", "line 3", "the label is NaN"),
    "label nan after others": ("a,y\n1,x\n1,x\n1,y\n1,x\n1,nan\n1,y\n", "line 6", "the label is nan"),
    "label inf": ("a,y\n1,2\n1,inf\n", "line 3", "the label is inf"),
    "after a cell on two lines": ('a,y\n1,"x\ny"\nz,x\n', "line 4", "'z', which is not a number"),
    "a quote that is not closed": ('a,y\n1,x\n2,"x\n3,z\n', "line 3"),
    "text behind a quote": ('a,y\n1,"x"z\n', "line 2"),
    "NUL": ("a,y\n1,\0\n", "line 2", "NUL"),
    "not UTF-8": (b"a,y\n1,x\n1,caf\xe9\n", "line 3", "UTF-8"),
    "UTF-16": ("a,y\n1,2\n".encode("utf-16-be"), "line 1", "NUL"),
    "carriage returns": ("a,y\r1,2\r3,4\n", "line 1"),
    "empty": ("", "is empty"),
    "newlines only": ("\n\n", "is empty"),
    "header only": ("a,y\n", "no rows"),
    "no header": ("1.5,2,0\n3,4,1\n", "no header"),
    "label alone": ("y\n1\n", "no feature columns"),
    "semicolons": ("a;b;y\n1,5;2;3\n", "line 2, column 0 ('a')", "pass --decimal ,"),
    "spaces": ("a  b y\n1 2   no\n", "separated by spaces; pass --sep ' '"),
    "text in front": ("y,a,b\nno,1,2\nyes,1,2\n", "line 2, column 0 ('y')", "the label, pass --label y (in Python label='y')"),
}


@pytest.mark.parametrize("case", BAD_CSV.values(), ids=BAD_CSV)
def test_bad_csv(case, route, tmp_path):
    refused(written(tmp_path, "a.csv", case[0]), *case[1:])


def test_which_column_is_the_label(route, tmp_path):
    path = written(tmp_path, "a.csv", "id,a,y,b\nr1,1,no,2\nr2,3,yes,4\n")
    taken = {"label": "y", "features": ["b", "a"]}
    table = read(path, **taken)
    assert (table.X.tolist(), table.y.tolist(), table.names) == ([[2, 1], [4, 3]], ["no", "yes"], ("b", "a"))
    for label in (2, -2, "2", "-2"):
        assert read(path, label=label, features=["a"]).y.tolist() == ["no", "yes"]
    assert read(path, label="id", features=["a"]).y.tolist() == ["r1", "r2"]
    refused(path, "line 2, column 0 ('id')", "'r1', which is not a number", label="y")
    refused(path, "no column named 'z'", "'id', 'a', 'y', 'b'", label="z")
    refused(path, "4 columns, so there is no column 4", label=4)
    refused(path, "no column named 'c'", features=["a", "c"], label="y")
    refused(path, "both the label and a feature", features=["a", "y"], label="y")
    refused(path, "both the label and a feature", features=["a", "b"])
    refused(path, "twice", features=["a", "a"], label="y")
    refused(path, "4 columns (one of them the label), but 2 features", features=2)
    refused(written(tmp_path, "b.csv", "a,a,y\n1,2,3\n"), "2 columns named 'a'", label="a")
    assert read(written(tmp_path, "b.tsv", "a,b,y\n1,2,3\n")).notices == ("the columns of b.tsv are separated by commas",)
    spaced = written(tmp_path, "c.csv", "petal length\n1.5\n")  # a name with a space is one name
    assert read(spaced, labelled=False).names == ("petal length",)


def test_tables_without_labels(route, tmp_path):
    path = written(tmp_path, "a.csv", "a,b\n1,2\n3,4\n")
    for options in ({"labelled": False}, {"labelled": None, "features": 2}, {"labelled": None, "features": ["a", "b"]}):
        table = read(path, **options)
        assert table.y is None
        assert table.X.tolist() == [[1, 2], [3, 4]]
    assert read(path, labelled=None, features=1).y.tolist() == [2, 4]
    assert read(path, labelled=None, features=["a"]).y.tolist() == [2, 4]
    refused(path, "may or may not have a label column", labelled=None)
    refused(path, "but 3 features are wanted", labelled=None, features=3)
    one = written(tmp_path, "b.csv", "a\n1\n\n3\n")  # a blank line is an empty cell here, not nothing
    refused(one, "line 3, column 0 ('a')", "is empty", labelled=False)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"features": "abc"}, "list of names"),
        ({"features": []}, "list of names"),
        ({"features": [1]}, "list of names"),
        ({"features": 0}, "at least 1"),
        ({"features": True}, "at least 1"),
        ({"label": 1.5}, "name or the position"),
        ({"label": True}, "name or the position"),
        ({"label": "y", "labelled": False}, "leave out one"),
    ],
)
def test_bad_options(options, part, tmp_path):
    with pytest.raises(InputError, match=part):
        read(written(tmp_path, "a.csv", "a,y\n1,2\n"), **options)


def test_every_number_as_numpy_writes_it(route, tmp_path):
    rng = np.random.default_rng(5)
    X = np.ldexp(rng.standard_normal((40, 6)), rng.integers(-1060, 1020, (40, 6)))
    for form in ("%.18e", "%.17g", "%.40g"):
        np.savetxt(tmp_path / "a.csv", X, fmt=form, delimiter=",", header="a,b,c,d,e,f", comments="")
        table = read(tmp_path / "a.csv", labelled=False)
        assert table.X.tobytes() == X.tobytes()


def test_long_files_take_the_compiled_scanner(tmp_path, monkeypatch):
    """Above SHORT bytes the scanner is used unasked, over many blocks, and a hard line here and there changes nothing."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((30_000, 3))
    X[::997, 1] = 1e23
    lines = [f"{a!r},{b!r},{c!r},{'pos' if a > 0 else 'neg'}\n" for a, b, c in X.tolist()]
    path = written(tmp_path, "a.csv", "a,b,c,y\n" + "".join(lines))
    assert path.stat().st_size > text_module.SHORT
    monkeypatch.setattr(text_module, "BLOCK", 1 << 16)
    table = read(path)
    assert table.X.tobytes() == X.tobytes()
    assert table.y.tolist() == ["pos" if a > 0 else "neg" for a in X[:, 0]]
    lines[20_000] = "1,2,x,pos\n"
    refused(written(tmp_path, "a.csv", "a,b,c,y\n" + "".join(lines)), "line 20002, column 2 ('c')")


@pytest.mark.parametrize("classes", [3, 64, 65, 1000])
def test_many_rows_and_many_classes(classes, tmp_path, monkeypatch):
    """More rows, and more distinct labels, than one call of a scanner takes."""
    monkeypatch.setattr(text_module, "SHORT", 0)
    labels = [f"c{i * i % classes}" for i in range(40_000)]
    table = read(written(tmp_path, "a.svm", "".join(f"{label} 1:{i}\n" for i, label in enumerate(labels))))
    assert table.y.tolist() == labels
    assert table.X.data.tolist() == list(range(40_000))
    table = read(written(tmp_path, "a.csv", "y,x\n" + "".join(f"{label},{i}\n" for i, label in enumerate(labels))), label="y")
    assert table.y.tolist() == labels
    assert table.X[:, 0].tolist() == list(range(40_000))


@pytest.mark.parametrize("suffix", ["svm", "csv"])
def test_more_labels_than_one_call_takes(suffix, route, tmp_path):
    labels = [f"c{i % 70}" for i in range(150)]
    lines = [f"{label} 1:{i}\n" if suffix == "svm" else f"{i},{label}\n" for i, label in enumerate(labels)]
    table = read(written(tmp_path, f"a.{suffix}", ("" if suffix == "svm" else "x,y\n") + "".join(lines)))
    assert table.y.tolist() == labels
    assert dense(table).ravel().tolist() == list(range(150))


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


A = np.arange(6.0).reshape(2, 3)
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


@pytest.mark.parametrize("limit", [None, 1 << 30])
@pytest.mark.parametrize(
    ("place", "value"), [(6, 0xAD), (8, 1), (8, 0x20), (8, 0x40), (10, 99), (10, 12), (10, 14), (30, 200), (42, 0xFF)]
)
def test_what_zipfile_does_not_know_is_refused(place, value, limit, tmp_path):
    """In the directory of the archive: a later version, encryption, patches, other packings, and lengths that do not fit."""
    content = bytearray(npz(X=A, y=[0, 1]))
    content[content.index(b"PK\x01\x02") + place] = value
    refused(written(tmp_path, "a.npz", bytes(content)), "is damaged", memory_limit=limit)


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


def test_npz_takes_no_names(tmp_path):
    refused(written(tmp_path, "a.npz", npz(X=A, y=[0, 1])), "array y", label="y")
    refused(written(tmp_path, "a.npz", npz(X=A, y=[0, 1])), "3 columns, but 2 features", features=2)


# ---- Parquet --------------------------------------------------------------------------------------------------------


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow")


def parquet(path, columns, **options):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    return path


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
    with pytest.raises(InputError, match=r"part-3\.parquet has other columns"):
        read(folder)
    parquet(folder / "part-3.parquet", {"a": [1.0], "y": ["one"]})
    refused(folder, "has string in column 'y', where there is int64 in")


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


def test_the_second_checker_reads_the_same(route, tmp_path):
    """The readers of certificates/standalone.py share no code with these."""
    for content, X, _ in SVMLIGHT.values():
        path = written(tmp_path, "a.svm", content)
        rows, labels = standalone.read_svmlight(path)
        ours = read(path)
        assert [[row.get(j, 0.0) for j in range(len(X[0]))] for row in rows] == dense(ours).tolist()
        kind = {"i": "int", "f": "float", "U": "str"}[ours.y.dtype.kind]
        assert [standalone.as_label(label, kind) for label in labels] == ours.y.tolist()
    for content, _, _ in CSV.values():
        path = written(tmp_path, "a.csv", content)
        rows, labels = standalone.read_table(path, None)[:2]
        ours = read(path)
        assert rows == ours.X.tolist()
        kind = {"i": "int", "f": "float", "U": "str"}[ours.y.dtype.kind]
        assert [standalone.as_label(label, kind) for label in labels] == ours.y.tolist()
    np.save(tmp_path / "X.npy", A)
    assert [list(row) for row in standalone.read_npy(tmp_path / "X.npy")] == read(tmp_path / "X.npy", labelled=False).X.tolist()


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
    with pytest.raises(InputError, match="has other columns"):
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


@pytest.mark.parametrize("kind", ["npy", "npz", "csr"])
def test_every_truncation(kind, tmp_path):
    content, path = sample(kind), tmp_path / f"a.{SUFFIXES[kind]}"
    path.write_bytes(content)
    for length in reversed(range(len(content))):
        os.truncate(path, length)
        refused(path, labelled=None, features=3)


@pytest.mark.parametrize("labels", [("5", str(10**20 + 1), str(10**20 + 2)), ("0.5", str(2**53), str(2**53 + 1))])
def test_labels_that_are_the_same_float_are_refused(labels, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels)))
    with pytest.raises(gordan.InputError, match="cannot be represented in float64"):
        read(path)
