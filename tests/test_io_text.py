"""Readers of text, with numbers as `float` reads them: every format exactly, every bad file refused with its place."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from decimal import Context, Decimal

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from problems import cells
from readers import A, dense, refused, written

import gordan
from gordan.certificates import standalone
from gordan.errors import InputError
from gordan.io import read
from gordan.io import text as text_module
from gordan.io.scan import POINT, scan_number

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
    "carriage returns": ("a,y\r1,2\r3,4\n", "line 1", "carriage return inside the line; save"),
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


@pytest.mark.parametrize("labels", [("5", str(10**20 + 1), str(10**20 + 2)), ("0.5", str(2**53), str(2**53 + 1))])
def test_labels_that_are_the_same_float_are_refused(labels, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels)))
    with pytest.raises(gordan.InputError, match="cannot be represented in float64"):
        read(path)


# ---- the second checker ---------------------------------------------------------------------------------------------


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
