"""The standalone checker as a program: the files that it reads or refuses, and what it prints."""

from __future__ import annotations

import gzip
import io
import random
import struct
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import gordan
from gordan.certificates import standalone
from gordan.certificates.standalone import BadInput
from gordan.io import read

ROWS = [[1.5, -2.0], [0.0, 4.0], [1e-300, 0.25]]


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# ---- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [None, "y", "-1", "2", "a", "0", "-3", "b", "1"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.TSV"])
def test_tables(name, label, tmp_path):
    """The label is the last column, or the one of that name or place; empty lines and a byte-order mark do not matter."""
    mark = "," if name.endswith("csv") else "\t"
    body = [[repr(x) for x in row] + [word] for row, word in zip(ROWS, ("no", "yes", "no"), strict=True)]
    if label in ("a", "0", "-3"):
        body = [[row[2], row[0], row[1]] for row in body]
    elif label in ("b", "1"):
        body = [[row[0], row[2], row[1]] for row in body]
    text = "\ufeff" + "\r\n".join(mark.join(line) for line in [["a", "b", "y"], *body[:1], [], *body[1:]]) + "\n"
    assert standalone.read_table(written(tmp_path / name, text), label)[:2] == (ROWS, ["no", "yes", "no"])


@pytest.mark.parametrize("label", ["3", "-4", "c", "1.0"])
def test_unknown_label_columns_are_refused(label, tmp_path):
    path = written(tmp_path / "t.csv", "a,b,y\n1,2,0\n")
    with pytest.raises(BadInput):
        standalone.read_table(path, label)


@pytest.mark.parametrize("text", ["", "\n\n", "a,b\n1\n", "a,b\n1,2,3\n", "a,b\nx,1\n", "a,b\n" + "1" * 200_000 + ",2\n"])
def test_malformed_tables_are_refused(text, tmp_path):
    with pytest.raises(BadInput):
        standalone.read_table(written(tmp_path / "t.csv", text), None)


def test_a_column_may_be_named_by_a_number(tmp_path):
    """A name comes before a place."""
    path = written(tmp_path / "t.csv", "1,0,2\n10,11,12\n")
    assert standalone.read_table(path, "0")[:2] == ([[10.0, 12.0]], ["11"])
    assert standalone.read_table(path, "2")[:2] == ([[10.0, 11.0]], ["12"])


def test_labels_of_several_lines(tmp_path):
    (tmp_path / "t.csv").write_bytes(b'a,y\r\n1,"no\r\nmore"\r\n2,"yes,\n"\r\n')
    assert standalone.read_table(tmp_path / "t.csv", None)[:2] == ([[1.0], [2.0]], ["no\r\nmore", "yes,\n"])


def test_svmlight(tmp_path):
    text = "\ufeff# a comment\n+1 qid:3 1:0.5 3:-2 # more: 7:8\n\n-1\n   \n0 2:1e-3\n"
    assert standalone.read_svmlight(written(tmp_path / "d", text)) == ([{0: 0.5, 2: -2.0}, {}, {1: 1e-3}], ["+1", "-1", "0"])
    text = "a 1:0.5 3:-2\nb 0:4\n"  # some index is 0: then all are from 0
    assert standalone.read_svmlight(written(tmp_path / "d", text)) == ([{1: 0.5, 3: -2.0}, {0: 4.0}], ["a", "b"])


@pytest.mark.parametrize(
    "text",
    ["", "# nothing\n", "1 1:2 1:3\n", "1 1:2:3\n", "1 1\n", "1 x:2\n", "1 1:y\n", "1 1:1_0\n", "1 1:\u0661\n", "1\u00a01:2\n"],
)
def test_malformed_svmlight_is_refused(text, tmp_path):
    with pytest.raises(BadInput):
        standalone.read_svmlight(written(tmp_path / "d", text))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_arrays_of_every_type(dtype, order, tmp_path):
    """Matrices in either order, vectors, and the largest and least values that a type has."""
    X = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    if X.dtype.kind in "iuf":
        most = np.finfo(dtype) if X.dtype.kind == "f" else np.iinfo(dtype)
        X[0] = most.min, most.max, 3
    np.save(tmp_path / "X.npy", np.asarray(X, order=order))
    assert [list(row) for row in standalone.read_npy(tmp_path / "X.npy")] == X.tolist()
    np.save(tmp_path / "y.npy", X[0])
    assert standalone.read_npy(tmp_path / "y.npy") == X[0].tolist()


def test_arrays_of_text_and_of_the_second_version(tmp_path):
    words = np.array(["no", "yes, é", "", "OX"])
    np.save(tmp_path / "y.npy", words)
    assert standalone.read_npy(tmp_path / "y.npy") == words.tolist()
    with (tmp_path / "X.npy").open("wb") as file:
        np.lib.format.write_array(file, np.array(ROWS), version=(2, 0))
    assert [list(row) for row in standalone.read_npy(tmp_path / "X.npy")] == ROWS


@pytest.mark.parametrize(
    ("text", "kind", "label"),
    [
        ("True", "bool", True),
        (" 1 ", "bool", True),
        ("FALSE", "bool", False),
        ("0", "bool", False),
        ("1", "int", 1),
        ("-2.0", "int", -2),
        ("0.5", "float", 0.5),
        ("1", "str", "1"),
        (7, "int", 7),
        (True, "bool", True),
        (2.5, "str", 2.5),
    ],
)
def test_labels(text, kind, label):
    found = standalone.as_label(text, kind)
    assert found == label
    assert isinstance(found, str) == isinstance(label, str)


# ---- the program ----------------------------------------------------------------------------------------------------


def program(tmp_path, capsys, certificate, name, *options):
    """Exit code, the verdict that is printed (with the reason, without the claim), and what is printed about mistakes."""
    path = tmp_path / "c.json"
    path.write_text(certificate if isinstance(certificate, str) else certificate.to_json(), encoding="utf-8")
    code = standalone.main([str(path), str(tmp_path / name), *map(str, options)])
    out, err = capsys.readouterr()
    verdict = out.partition("\n")[0]
    return code, f"{'accepted' if verdict.startswith('accepted: ') else verdict}\n" if out else "", err


SEPARATOR = gordan.Certificate("separator", "free", ("no", "yes"), (3, 2), w=(0.0, 1.0), b=-1.0)


def test_exit_codes_and_reasons(tmp_path, capsys):
    """The exit codes 0, 1 and 2, and one line that says why."""
    written(tmp_path / "t.csv", "a,b,y\n1,-2,no\n0,4,yes\n0,0.25,no\n")
    written(tmp_path / "t.svm", "no 1:1 2:-2\nyes 2:4\nno 2:0.25\n")
    np.save(tmp_path / "X.npy", np.array([[1, -2], [0, 4], [0, 0.25]]))
    np.save(tmp_path / "y.npy", np.array(["no", "yes", "no"]))
    written(tmp_path / "t.parquet", "PAR1")
    for name, *options in (
        ("t.csv",),
        ("t.csv", "--label", "y"),
        ("t.csv", "--label", "2"),
        ("t.svm",),
        ("X.npy", "--labels", tmp_path / "y.npy"),
    ):
        assert program(tmp_path, capsys, SEPARATOR, name, *options) == (0, "accepted\n", "")
        code, out, err = program(tmp_path, capsys, replace(SEPARATOR, b=-0.25), name, *options)
        assert (code, out, err) == (1, "rejected: row 2 is not on the right side\n", "")
    for certificate, name, reason in (
        (SEPARATOR, "y.npy", "one dimension"),
        (SEPARATOR, "t.parquet", "this checker does not read .parquet"),
        (SEPARATOR, "nothing.csv", "nothing.csv"),
        ("{", "t.csv", "Expecting"),
        ("[]", "t.csv", "not a certificate"),
        (replace(SEPARATOR, classes=(False, True)), "t.csv", "neither true nor false"),
        ("[" * 100_000, "t.csv", "recursion"),
    ):
        code, out, err = program(tmp_path, capsys, certificate, name)
        assert (code, out) == (2, "")
        assert err.startswith("bad input: ")
        assert reason in err
    wider = replace(SEPARATOR, shape=(3, 3), w=(0.0, 1.0, 0.0))
    assert program(tmp_path, capsys, wider, "t.csv") == (1, "rejected: it is about 3 columns; the data has 2\n", "")


def test_numbers_as_labels_of_files(tmp_path, capsys):
    written(tmp_path / "t.tsv", "y\ta\n1\t-2\n2\t4\n")
    for classes in ((1, 2), (1.0, 2.0)):
        certificate = gordan.Certificate("separator", "none", classes, (2, 1), w=(1.0,))
        assert program(tmp_path, capsys, certificate, "t.tsv", "--label", "y")[:2] == (0, "accepted\n")
    written(tmp_path / "t.csv", "a,y\n-2,False\n4,1\n")
    certificate = gordan.Certificate("separator", "none", (False, True), (2, 1), w=(1.0,))
    assert program(tmp_path, capsys, certificate, "t.csv")[:2] == (0, "accepted\n")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("label", [None, 2, -1, 0, 1])
def test_the_label_in_a_column_of_an_array(label, order, tmp_path, capsys):
    """The same column as the package takes, and the same verdict."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2 + 1.0
    X[:, 0] += 9 * y
    np.save(tmp_path / "t.npy", np.asarray(np.insert(X, [2 if label is None else label % 3], y[:, None], axis=1), order=order))
    table = read(tmp_path / "t.npy", label=label)
    assert (table.X == X).all()
    certificate = gordan.separate(table.X, table.y).certificate
    options = [] if label is None else ["--label", label]
    assert program(tmp_path, capsys, certificate, "t.npy", *options) == (0, "accepted\n", "")
    assert program(tmp_path, capsys, certificate, "t.npy", "--label", 3)[0] == 2


def npy(array, **header):
    """The bytes of a .npy file with other things said in its header."""
    file = io.BytesIO()
    np.save(file, array)
    content = file.getvalue()
    said = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape} | header
    text = repr({name: value for name, value in said.items() if value is not ...}).encode("latin-1")
    return content[:8] + struct.pack("<H", len(text)) + text + array.tobytes()


TABLE = np.array([[1, -2, 0], [0, 4, 1], [0, 0.25, 0]])  # a column of labels, and before it the rows of SEPARATOR
NOT_READ = {
    "no rows": npy(np.zeros((0, 3))),
    "no rows and no columns": npy(np.zeros((0, 0))),
    "no columns": npy(np.zeros((3, 0))),
    "nothing": npy(np.zeros(0)),
    "one dimension": npy(np.zeros(3)),
    "no dimension": npy(np.array(1.0)),
    "three dimensions": npy(np.zeros((3, 3, 1))),
    "objects": npy(TABLE, descr="|O"),
    "records": npy(TABLE, descr=[("a", "<f8")]),
    "complex": npy(TABLE.astype(complex)),
    "big-endian": npy(TABLE.astype(">f8")),
    "dates": npy(TABLE.astype("i8").astype("M8[D]")),
    "text of no length": npy(TABLE, descr="<U0"),
    "text below zero": npy(TABLE, descr="<U-1"),
    "text that is none": npy(np.full(3, 0x7FFFFFFF, np.uint32), descr="<U1"),
    "text longer than the file": npy(TABLE, descr=f"<U{10**30}"),
    "an unknown type": npy(TABLE, descr="<z8"),
    "no type": npy(TABLE, descr=""),
    "a number for a type": npy(TABLE, descr=8),
    "a shape that is a list": npy(TABLE, shape=[3, 3]),
    "a shape of floats": npy(TABLE, shape=(3.0, 3)),
    "a shape of booleans": npy(TABLE, shape=(True, 3)),
    "a shape below zero": npy(TABLE, shape=(-3, -3)),
    "a shape beyond the file": npy(TABLE, shape=(10**18, 10**18)),
    "more rows than in the file": npy(TABLE, shape=(4, 3)),
    "an order that is none": npy(TABLE, fortran_order="no"),
    "no shape": npy(TABLE, shape=...),
    "no order": npy(TABLE, fortran_order=...),
    "an unknown version": npy(TABLE)[:6] + b"\x09" + npy(TABLE)[7:],
    "a header that is cut": npy(TABLE)[:40],
    "a magic number that is cut": npy(TABLE)[:5],
    "a length that is cut": npy(TABLE)[:11],
    "text that is cut": npy(np.array(["ab", "cd", "ab"]))[:-8],
    "bytes": npy(np.full((3, 3), b"ab")),
    "a header that is nested": b"\x93NUMPY\x02\x00" + struct.pack("<I", 200_000) + b"[" * 200_000,
    "a header that is an expression": npy(TABLE)[:8] + struct.pack("<H", 9) + b"__name__ ",
    "entries that are cut": npy(TABLE)[:-1],
    "compressed": gzip.compress(npy(TABLE)),
    "no file of this kind": b"a,b,y\n1,2,0\n",
    "an empty file": b"",
    "NaN": npy(np.full((3, 3), np.nan)),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_malformed_arrays_are_bad_input(name, tmp_path, capsys):
    """Bad input, in one line, as a table and as labels."""
    (tmp_path / "a.npy").write_bytes(NOT_READ[name])
    (tmp_path / "X.npy").write_bytes(npy(TABLE[:, :2]))
    for arguments in (("a.npy",), ("a.npy", "--labels", tmp_path / "a.npy"), ("X.npy", "--labels", tmp_path / "a.npy")):
        if name == "one dimension" and arguments[0] == "X.npy":
            continue
        code, out, err = program(tmp_path, capsys, replace(SEPARATOR, classes=(0, 1)), *arguments)
        assert (code, out) == (2, ""), err
        assert err.startswith("bad input: ")
        assert err.count("\n") == 1


def test_columns_of_an_array_in_fortran_order(tmp_path, capsys):
    (tmp_path / "a.npy").write_bytes(npy(TABLE.T, fortran_order=True, shape=(3, 3)))
    assert program(tmp_path, capsys, replace(SEPARATOR, classes=(0, 1)), "a.npy") == (0, "accepted\n", "")


def test_internal_errors_are_not_verdicts(tmp_path, capsys, monkeypatch):
    """Exit code 70 and one line for an exception inside; and reasons that cannot be encoded are printed with escapes."""
    written(tmp_path / "t.csv", "a,b,y\n1,-2,no\n0,4,yes\n0,0.25,no\n")
    monkeypatch.setattr(standalone.Claim, "decide", lambda *_: 1 / 0)
    code, out, err = program(tmp_path, capsys, SEPARATOR, "t.csv")
    assert (code, out) == (70, "")
    assert err == "internal error in standalone.py, please report it: ZeroDivisionError: division by zero\n"
    monkeypatch.setattr(standalone.Claim, "decide", lambda *_: (False, "half a character: \ud800"))
    assert program(tmp_path, capsys, SEPARATOR, "t.csv") == (1, "rejected: half a character: \\ud800\n", "")


@pytest.mark.parametrize("name", ["no rows", "objects", "compressed"])
def test_bad_input_has_no_traceback(name, tmp_path):
    """No traceback, and 2 and not 1, which says that the certificate is false."""
    (tmp_path / "a.npy").write_bytes(NOT_READ[name])
    written(tmp_path / "c.json", SEPARATOR.to_json())
    command = [sys.executable, "-I", "-S", standalone.__file__, str(tmp_path / "c.json"), str(tmp_path / "a.npy")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bad input: ")


def files(folder):
    """Every kind of file that is read, with a certificate that is true of it, by the arguments that name it."""
    X, labels = TABLE[:, :2], np.array([0, 1, 0])
    number, word = replace(SEPARATOR, classes=(0, 1)), SEPARATOR
    for order in "CF":
        np.save(folder / f"table{order}.npy", np.asarray(TABLE, order=order))
        np.save(folder / f"X{order}.npy", np.asarray(X.astype("f4"), order=order))
    np.save(folder / "y.npy", labels)
    np.save(folder / "words.npy", np.array(["no", "yes", "no"]))
    written(folder / "t.csv", "a,b,y\n1,-2,no\n0,4,yes\n0,0.25,no\n")
    written(folder / "t.tsv", "a\tb\ty\r\n1\t-2\t0\r\n0\t4\t1\r\n0\t0.25\t0\r\n")
    written(folder / "t.svm", "# points\n0 1:1 2:-2\n1 2:4\n0 qid:3 2:0.25 # the last\n")
    return [
        *((number, f"table{order}.npy") for order in "CF"),
        *((number, f"X{order}.npy", "--labels", "y.npy") for order in "CF"),
        (word, "XC.npy", "--labels", "words.npy"),
        (word, "t.csv"),
        (number, "t.tsv", "--label", "y"),
        (number, "t.svm"),
        (replace(SEPARATOR, classes=(False, True)), "t.csv", "--positive", "yes"),
    ]


def spoiled(r, content):
    """Some bytes changed, left out, added, exchanged or repeated, or the end cut off."""
    content = bytearray(content)
    for _ in range(r.choice((1, 1, 2, 5))):
        k = r.randrange(len(content) + 1)
        kind = r.randrange(6)
        if kind == 0:
            content[k:] = b""
        elif kind == 1:
            content[k : k + 1] = bytes([r.randrange(256)])
        elif kind == 2:
            content[k:k] = r.choice((b"0", b"-", b"\0", b"nan", b"\xff", b"1e999", b",", b"\n", b":", b'"', b"(", b"9" * 5000))
        elif kind == 3:
            del content[k : k + r.randrange(9)]
        elif kind == 4:
            content[k:k] = content[k : k + r.randrange(40)]
        else:
            content[k : k + 8] = r.randbytes(8)
    return bytes(content)


def test_spoiled_files_are_read_or_refused(tmp_path, capsys):
    """1,000 files and certificates with some bytes changed: accepted, rejected or bad input, and never an error inside."""
    r, codes, every = random.Random(14), Counter(), files(tmp_path)
    for certificate, name, *options in every:
        named = [tmp_path / part if part.endswith(".npy") else part for part in options]
        assert program(tmp_path, capsys, certificate, name, *named) == (0, "accepted\n", "")
    for k in range(1000):
        certificate, name, *options = r.choice(every)
        text, victims = certificate.to_json(), [name, *(part for part in options if part.endswith(".npy")), ""]
        victim = r.choice(victims)
        if victim:
            whole = (tmp_path / victim).read_bytes()
            (tmp_path / f"spoiled{k % 7}-{victim}").write_bytes(spoiled(r, whole))
        else:
            text = spoiled(r, text.encode()).decode("utf-8", "replace")
        named = [f"spoiled{k % 7}-{part}" if part == victim else part for part in (name, *options)]
        named = [tmp_path / part if part.endswith(".npy") else part for part in named]
        code, out, err = program(tmp_path, capsys, text, *named)
        codes[code] += 1
        assert code in (0, 1, 2), err
        assert (out == "") == (code == 2) == err.startswith("bad input: ")
    assert min(codes[0], codes[1], codes[2]) > 20
