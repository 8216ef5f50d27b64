"""The standalone checker by its parts: what it reads and refuses, and its arithmetic against what is known in closed form."""

from __future__ import annotations

import bz2
import decimal
import gzip
import io
import json
import lzma
import math
import os
import random
import struct
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np
import pytest
import scipy.sparse as sp
from checkers import Distant, both

import gordan
from gordan.certificates import bounds, standalone
from gordan.certificates.matrix import Matrix
from gordan.certificates.problem import Problem
from gordan.certificates.standalone import BadInput, Rejected
from gordan.certificates.verify import check, hash_for
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


# ---- rows -----------------------------------------------------------------------------------------------------------


def rows_of(X, d):
    rows, width = standalone._rows(X, d)
    return [*rows], width


def test_rows_are_exact():
    assert rows_of([[0.1, 0, Fraction(1, 3)]], 3) == ([{0: Fraction(0.1), 2: Fraction(1, 3)}], 3)
    assert rows_of([{2: 10**400, 0: 0.0}], 3) == ([{2: 10**400}], 3)
    assert rows_of([[np.float32(0.1), True, np.False_]], 3) == ([{0: Fraction(float(np.float32(0.1))), 1: 1}], 3)
    assert rows_of(np.array([[2**53 + 1, -(2**63)]]), 2) == ([{0: 2**53 + 1, 1: -(2**63)}], 2)
    assert rows_of(np.array([[2**64 - 1]], dtype=np.uint64), 1) == ([{0: 2**64 - 1}], 1)


def test_columns_are_counted():
    """Those of sequences; rows by column have as many as the certificate says, unless there is an entry beyond."""
    assert rows_of([[1.0], [0.0]], 2) == ([{0: 1}, {}], 1)
    assert rows_of([[1.0, 2.0, 0.0]], 2) == ([{0: 1, 1: 2}], 3)
    assert rows_of([{}, {0: 1.0}], 2) == ([{}, {0: 1}], 2)
    assert rows_of([{}, {4: 1.0}], 2) == ([{}, {4: 1}], 5)
    content = json.loads(SEPARATOR.to_json())
    for X, width in (([[0.0]] * 3, 1), ([[0.0] * 3] * 3, 3), ([{}, {2: 0.0}, {}], 3)):
        assert standalone.check(content, X, ["no", "yes", "no"]) == (False, f"it is about 2 columns; the data has {width}")


@pytest.mark.parametrize(
    "rows",
    [
        *([], [[]], [[], []], [[1.0, 2.0], [1.0]], [[1.0], [1.0, 2.0]], [{-1: 1.0}], [{"a": 1.0}], [1.0, 2.0], [None], 3.0),
        *([[value, 0]] for value in (math.nan, math.inf, -math.inf, "x", "nan", None, [1.0], 1j)),
    ],
    ids=str,
)
def test_malformed_rows_are_refused(rows):
    with pytest.raises((BadInput, TypeError) if rows == 3.0 else BadInput):
        standalone._rows(rows, 2)


@pytest.mark.parametrize(
    "y", [["a", None, "b"], [0, 1, math.nan], [0, 1, [1]], [b"a", b"b", b"a"], ["a", 1, "a"], [0, 1, 2], [2, 2, 2]], ids=str
)
def test_malformed_labels_are_refused_by_both_checkers(y):
    """By both checkers, whatever the certificate says."""
    for classes in ((0, 1), ("a", "b"), (False, True)):
        certificate = gordan.Certificate("separator", "none", classes, (3, 1), w=(1.0,))
        with pytest.raises(BadInput):
            standalone.check(json.loads(certificate.to_json()), [[1.0]] * 3, y)
        with pytest.raises(gordan.InputError):
            gordan.verify(certificate, [[1.0]] * 3, y)


def test_lengths_of_rows_and_labels():
    content = json.loads(SEPARATOR.to_json())
    X = [[1, -2], [0, 4], [0, 0.25]]
    assert standalone.check(content, X, ["no", "yes", "no"]) == (True, "accepted")
    with pytest.raises(BadInput, match="3 rows and 2 labels"):
        standalone.check(content, X, ["no", "yes"])
    for few, labels in ((X[:2], ["no", "yes"]), ([*X, X[0]], ["no", "yes", "no", "no"])):
        accepted, reason = standalone.check(content, few, labels)
        assert not accepted
        assert reason == f"it is about 3 rows; the data has {len(few)}"
    for labels in (["no", "maybe", "no"], ["No", "Yes", "No"], [0, 1, 0]):
        accepted, reason = standalone.check(content, X, labels)
        assert not accepted
        assert "classes" in reason


# ---- arithmetic -----------------------------------------------------------------------------------------------------


def root(value, power):
    """value^(1/power) to 80 digits."""
    with decimal.localcontext(decimal.Context(prec=80)):
        return Fraction((decimal.Decimal(value.numerator) / value.denominator) ** (1 / decimal.Decimal(power)))


CUBE = [3, -4, 5, 0]  # 3³ + 4³ + 5³ = 6³
NORMS = [
    # x, norm p, whether the dual q = p/(p - 1) is meant, |x|
    ([3, -4, 0], 2.0, False, Fraction(5)),
    ([3, -4, 0], 2.0, True, Fraction(5)),
    ([3, -4, 0], math.inf, False, Fraction(4)),
    ([3, -4, 0], math.inf, True, Fraction(7)),
    (CUBE, 3.0, False, Fraction(6)),
    ([1] * 8, 3.0, True, Fraction(4)),  # 8^(2/3)
    ([1] * 27, 3.0, True, Fraction(9)),
    ([4, 4, -1] * 3, 1.5 / 0.5, True, root(Fraction(51), 3) ** 2),
    ([-1] * 32, 2.5, False, Fraction(4)),  # 32^(2/5)
    ([1] * 32, 2.5, True, Fraction(8)),  # 32^(3/5)
    ([7], 2.5, True, Fraction(7)),
    ([0, -7], 1e300, False, Fraction(7)),
    ([0, -7], 1e300, True, Fraction(7)),
    ([1, -4], 3.0, True, root(Fraction(81), 3)),
    ([1, 1], 3.0, False, root(Fraction(2), 3)),
    ([2, 3, 5], 4.0, False, root(Fraction(722), 4)),
]


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10**400), Fraction(1, 3**700)])
@pytest.mark.parametrize(("x", "norm", "dual", "length"), NORMS)
def test_norms_are_compared_with_bounds(x, norm, dual, length, scale):
    """Norms that are rational to the last digit, others to 60 of the 80 digits known: by both checkers."""
    p = None if math.isinf(norm) else Fraction(norm)

    def at_most(bound):
        found = standalone._bounds_norm(bound, [scale * value for value in x], p, dual)
        assert bounds.norm_at_most([value * scale.numerator for value in x], bound * scale.denominator, norm, dual=dual) == found
        return found

    rational = length.denominator < 10**60  # not one of the roots, which are rounded
    length = scale * length
    for part in (Fraction(1, 10**9), Fraction(1, 10**39), Fraction(1, 10**60)):
        assert at_most(length * (1 + part))
        assert not at_most(length * (1 - part))
    if rational:
        assert at_most(length)
        assert not at_most(length * (1 - Fraction(1, 10**300)))
        assert at_most(length * (1 + Fraction(1, 10**300)))


@pytest.mark.parametrize("norm", [2.25, 3.0, 2.1, 7.5, 1e4, 1e300])
@pytest.mark.parametrize("dual", [False, True])
def test_both_checkers_decide_norms_alike(norm, dual):
    """Bounds one unit in the 53rd, 200th and 1000th digit beside the norm, as flint has it."""
    r = random.Random(f"{norm} {dual}")
    for _ in range(8):
        x = [r.randint(-(2 ** r.choice((3, 60, 900))), 2**60) for _ in range(r.randint(1, 4))]
        with flint.ctx.workprec(8000):
            q = flint.arb(flint.fmpq(*Fraction(norm).as_integer_ratio()))
            q = q / (q - 1) if dual else q
            length = sum((flint.arb(abs(v)) ** q for v in x if v), flint.arb(0)) ** (1 / q)
            m, e = (int(part) for part in length.mid().man_exp())
        length = Fraction(m) * Fraction(2) ** e
        for digits in (53, 200, 1000):
            for side in (-1, 1):
                bound = length * (1 + side * Fraction(1, 2**digits))
                assert standalone._bounds_norm(bound, [Fraction(v) for v in x], Fraction(norm), dual) == (side == 1)
                assert bounds.norm_at_most(x, bound, norm, dual=dual) == (side == 1)


def test_roots():
    for value in (1, 2, 7, 8, 9, 10**40 - 1, 10**40, 10**40 + 1, 3**2000):
        for k in (1, 2, 3, 40, 2000):
            r = standalone._root(value, k)
            assert r**k <= value < (r + 1) ** k


@pytest.mark.parametrize("norm", [None, Fraction(2), Fraction(3)])
@pytest.mark.parametrize("dual", [False, True])
def test_norms_of_zero_vectors(norm, dual):
    for x in ([], [Fraction(0)] * 3):
        assert standalone._bounds_norm(Fraction(0), x, norm, dual)
        assert not standalone._bounds_norm(Fraction(-1, 10**9), x, norm, dual)
    assert not standalone._bounds_norm(Fraction(-1), [Fraction(1)], norm, dual)
    assert not standalone._bounds_norm(Fraction(0), [Fraction(1, 10**300)], norm, dual)


def test_lowest_scores_are_filled_up_to_their_caps():
    scores = [(Fraction(3), Fraction(1)), (Fraction(-1), Fraction(1, 2)), (Fraction(2), Fraction(1, 4))]
    assert standalone._lowest_mean(scores, Fraction(1, 4)) == -1
    assert standalone._lowest_mean(scores, Fraction(3, 4)) == 0
    assert standalone._lowest_mean(scores, Fraction(7, 4)) == Fraction(12, 7)
    with pytest.raises(Rejected):
        standalone._lowest_mean([], Fraction(1))


def test_rows_are_reduced_to_what_is_left():
    """x - (2)(1, 1, 0) - ... for an echelon whose first columns are 0 and 1."""
    one = Fraction(1)
    echelon = {0: {0: one, 1: one}, 1: {1: one, 2: 3 * one}}
    assert standalone._reduced({0: 2 * one, 1: 2 * one}, echelon) == {}
    assert standalone._reduced({0: 2 * one}, echelon) == {2: 6 * one}
    assert standalone._reduced({2: one}, echelon) == {2: one}
    assert standalone._reduced({0: one, 1: 2 * one, 2: 3 * one, 3: one}, echelon) == {3: one}


# ---- each condition, by claims that violate only one ---------------------------------------------------------------------


def about(kind, intercept="none", **content):
    return gordan.Certificate(kind, intercept, (0, 1), (4, 2), **content)


X = [[1.0, 0.0], [3.0, 4.0], [-2.0, 0.0], [-1.0, -4.0]]  # with these labels A_i·(1, 0) is 1, 3, 2, 1
LABELS = [1, 1, 0, 0]
P = {"rows": (0, 3), "weights": (1.0, 1.0)}  # A^T p = (1, 2)
BRACKETS = {
    "lower": (about("bracket", w=(1.0, 0.0), lower=1.0), True),
    "lower, too much": (about("bracket", w=(1.0, 0.0), lower=math.nextafter(1.0, 2.0)), False),
    "lower of zero proves itself": (about("bracket", lower=0.0), True),
    "lower below zero": (about("bracket", lower=-1.0), True),
    "lower without w": (about("bracket", lower=0.5), False),
    "lower from nothing": (about("bracket", w=(0.0, 0.0), lower=0.5), False),
    "lower, free": (about("bracket", "free", w=(1.0, 0.0), lower=1.0), True),
    "lower, free, b does not count": (about("bracket", "free", w=(1.0, 0.0), b=100.0, lower=1.0), True),
    "lower, penalized": (about("bracket", "penalized", w=(3.0, 0.0), b=0.0, lower=1.0), True),
    "lower, penalized, b counts": (about("bracket", "penalized", w=(3.0, 0.0), b=4.0, lower=0.5), False),
    "lower, penalized, b in the norm": (about("bracket", "penalized", w=(2.0, 0.0), b=1.0, lower=0.5), False),
    "lower, penalized, b in the norm, less": (about("bracket", "penalized", w=(2.0, 0.0), b=1.0, lower=0.44), True),
    "lower, infinite norm": (about("bracket", w=(0.5, 0.0), lower=1.0, norm=math.inf), True),
    "lower, infinite norm, too much": (about("bracket", w=(1.0, 0.125), lower=0.9, norm=math.inf), False),
    "lower, norm 3": (about("bracket", w=(1.0, 0.0), lower=1 - 1e-14, norm=3.0), True),
    "lower, norm 3, too much": (about("bracket", w=(1.0, 0.0), lower=1 + 1e-15, norm=3.0), False),
    "upper": (about("bracket", **P, upper=math.sqrt(5) + 1e-15), True),
    "upper, too little": (about("bracket", **P, upper=math.sqrt(5) - 1e-15), False),
    "upper, infinite": (about("bracket", upper=math.inf), True),
    "upper without rows": (about("bracket", upper=1e300), False),
    "upper, infinite norm": (about("bracket", **P, upper=2.0, norm=math.inf), True),
    "upper, infinite norm, too little": (about("bracket", **P, upper=math.nextafter(2.0, 0), norm=math.inf), False),
    "upper, free": (about("bracket", "free", **P, upper=math.sqrt(5) + 1e-15), True),
    "upper, free, one class": (about("bracket", "free", rows=(0, 1), weights=(1.0, 1.0), upper=1e300), False),
    "upper, penalized": (about("bracket", "penalized", **P, upper=math.sqrt(5) + 1e-15), True),
    "upper, penalized, unbalanced": (about("bracket", "penalized", rows=(0,), weights=(1.0,), upper=1.42), True),
    "upper, penalized, unbalanced, too little": (about("bracket", "penalized", rows=(0,), weights=(1.0,), upper=1.41), False),
    "weights are normalized": (about("bracket", rows=(0, 3), weights=(8.0, 8.0), upper=math.sqrt(5) + 1e-15), True),
    "norm below one": (about("bracket", lower=0.0, norm=0.875), False),
    "norm of one": (about("bracket", lower=0.0, norm=1.0), True),
    "norm of two": (about("bracket", lower=0.0, norm=2.0), True),
    "nu": (about("bracket", w=(1.0, 0.0), lower=1.25, nu=0.75, sample_weight=(1.0, 1.0, 1.0, 1.0)), True),
    "nu, too much": (about("bracket", w=(1.0, 0.0), lower=1.34, nu=0.75), False),
    "nu of one": (about("bracket", w=(1.0, 0.0), lower=1.75 * (1 - 1e-12), nu=1.0), True),
    "nu above one": (about("bracket", lower=0.0, nu=1.5), False),
    "nu of zero": (about("bracket", lower=0.0, nu=0.0), False),
    "nu, free, a class too small": (about("bracket", "free", lower=0.0, nu=0.75, sample_weight=(1.0, 0.0, 1.0, 1.0)), False),
    "nu, free": (about("bracket", "free", lower=0.0, nu=0.6, sample_weight=(1.0, 0.0, 1.0, 1.0)), True),
    "nu, p within its caps": (about("bracket", **P, upper=2.3, nu=0.5), True),
    "nu, p of too little mass": (about("bracket", **P, upper=2.3, nu=0.75), False),
    "nu, p above its caps": (about("bracket", rows=(0, 3), weights=(2.0, 1.0), upper=9.0, nu=0.5), False),
    "a weight below zero": (about("bracket", lower=0.0, sample_weight=(1.0, 1.0, 1.0, -1.0)), False),
    "rows of weight zero do not count": (about("bracket", w=(1.0, 0.0), lower=2.0, sample_weight=(0.0, 1.0, 1.0, 0.0)), True),
    "rows of weight zero count for p": (about("bracket", **P, upper=9.0, sample_weight=(0.0, 1.0, 1.0, 1.0)), False),
    "all of weight zero": (about("bracket", w=(1.0, 0.0), lower=0.1, sample_weight=(0.0,) * 4), False),
    "rows twice": (about("bracket", rows=(0, 0), weights=(1.0, 1.0), upper=9.0), False),
    "rows beyond the data": (about("bracket", rows=(0, 4), weights=(1.0, 1.0), upper=9.0), False),
    "a weight of zero": (about("bracket", rows=(0, 3), weights=(1.0, 0.0), upper=9.0), False),
    "separator": (about("separator", w=(1.0, 0.0)), True),
    "separator with b, none": (about("separator", w=(1.0, 0.0), b=0.5), False),
    "separator with b, free": (about("separator", "free", w=(1.0, 0.0), b=0.5), True),
    "separator with too much b": (about("separator", "free", w=(1.0, 0.0), b=1.0), False),
    "separator without w": (about("separator"), False),
    "separator with a bracket": (about("separator", w=(1.0, 0.0), lower=1.0, **P, upper=2.3), True),
    "separator with a false lower": (about("separator", w=(1.0, 0.0), lower=1.1), False),
    "separator with a false upper": (about("separator", w=(1.0, 0.0), **P, upper=0.5), False),
    "separator of a bad norm, no bracket": (about("separator", w=(1.0, 0.0), norm=0.5), True),
    "separator of a bad norm": (about("separator", w=(1.0, 0.0), norm=0.5, upper=math.inf), False),
}


@pytest.mark.parametrize("name", BRACKETS)
def test_each_condition_of_separators_and_brackets(name):
    """Claims about four rows, true or false for one reason; both checkers know."""
    certificate, true = BRACKETS[name]
    accepted, reason = standalone.check(json.loads(certificate.to_json()), X, LABELS)
    assert accepted == true
    assert (reason == "accepted") == true
    found = gordan.verify(certificate, X, LABELS)
    assert found.accepted == bool(found) == true
    assert (found.reason == "") == true


def integers(kind, X, y, intercept="none", **content):
    return gordan.Certificate(kind, intercept, (0, 1), (len(X), len(X[0])), **content), X, y


CROSS = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1, 1, 1, 0]  # the last row of A is (0, -1)
TWINS = [[1.0], [1.0], [3.0], [3.0]], [1, 0, 1, 0]
WALL = [[0.0, 1.0], [0.0, 1.0], [1.0, 7.0], [-2.0, 3.0]], [1, 0, 1, 0]  # two twins on the plane x = 0, the others beyond it
SHIFTED = [[-1.0, 0.0], [-1.0, 0.0], [5.0, 0.0]], [1, 0, 1]
PAIR, FOUR = {"rows": (0, 1), "weights": (1, 1)}, {"rows": (0, 1, 2, 3), "weights": (1, 1, 1, 1)}
BIG = 2**60 + 1
WHOLE = {
    "witness": (*integers("witness", *TWINS, **PAIR), True),
    "witness, free": (*integers("witness", *TWINS, "free", **PAIR), True),
    "witness of nothing": (*integers("witness", *TWINS), False),
    "witness that does not cancel": (*integers("witness", *TWINS, rows=(0, 3), weights=(1, 1)), False),
    "witness of other weights": (*integers("witness", *TWINS, rows=(0, 3), weights=(3, 1)), True),
    "witness out of balance": (*integers("witness", *TWINS, "free", rows=(0, 3), weights=(3, 1)), False),
    "witness out of balance, penalized": (*integers("witness", *TWINS, "penalized", rows=(0, 3), weights=(3, 1)), False),
    "witness of long weights": (*integers("witness", *TWINS, "free", rows=(0, 1), weights=(BIG, BIG)), True),
    "witness of long weights that differ": (*integers("witness", *TWINS, rows=(0, 1), weights=(BIG, BIG - 1)), False),
    "witness of enormous weights": (*integers("witness", *TWINS, rows=(0, 1), weights=(2**1100, 2**1100)), True),
    "witness of weights below zero": (*integers("witness", *TWINS, rows=(0, 1), weights=(-1, -1)), False),
    "overlap": (*integers("overlap", *CROSS, **FOUR), True),
    "overlap that does not span": (*integers("overlap", *CROSS, **PAIR), False),
    "overlap that does not cancel": (*integers("overlap", *CROSS, rows=(0, 1, 2), weights=(1, 1, 1)), False),
    "overlap of nothing": (*integers("overlap", *CROSS), False),
    "overlap of twins": (*integers("overlap", *TWINS, **PAIR), True),
    "overlap of twins, free": (*integers("overlap", *TWINS, "free", **PAIR), False),
    "overlap of twins, penalized": (*integers("overlap", *TWINS, "penalized", **PAIR), False),
    "overlap of twins in the plane, free": (
        *integers("overlap", [[1.0, 0.0], [1.0, 0.0], [3.0, 5.0], [3.0, 5.0]], [1, 0, 1, 0], "free", **PAIR),
        False,
    ),
    "overlap of both twins, free": (*integers("overlap", *TWINS, "free", **FOUR), True),
    "quasi": (*integers("quasi-separation", *WALL, w=(1, 0), b=0, **PAIR), True),
    "quasi without b": (*integers("quasi-separation", *WALL, w=(1, 0), **PAIR), True),
    "quasi, free": (*integers("quasi-separation", *WALL, "free", w=(1, 0), b=0, **PAIR), True),
    "quasi, long": (*integers("quasi-separation", *WALL, w=(2**1100, 0), b=0, **PAIR), True),
    "quasi on the wrong side": (*integers("quasi-separation", *WALL, w=(-1, 0), b=0, **PAIR), False),
    "quasi on the wrong side of one": (*integers("quasi-separation", *WALL, w=(1, 1), b=-1, **PAIR), False),
    "quasi without w": (*integers("quasi-separation", *WALL, b=0, **PAIR), False),
    "quasi of nothing": (*integers("quasi-separation", *WALL, w=(1, 0), b=0), False),
    "quasi that separates nothing": (*integers("quasi-separation", *CROSS, w=(0, 0), b=0, **FOUR), False),
    "quasi that is complete": (*integers("quasi-separation", [[1.0], [-1.0]], [1, 0], w=(1,), b=0, **PAIR), False),
    "quasi that could be more": (*integers("quasi-separation", *CROSS, w=(0, 1), b=0, **PAIR), False),
    "quasi with a better w": (
        *integers(
            "quasi-separation", [[0.0, 1.0, 0], [0.0, 1.0, 0], [1.0, 0, 0], [0, 0, -1.0]], [1, 0, 1, 0], w=(1, 0, 0), **PAIR
        ),
        False,
    ),
    "quasi through the origin, along one line": (
        *integers("quasi-separation", [[0.0, 1], [0, 1], [0, 2], [1, 0]], [1, 0, 1, 1], w=(1, 0), **PAIR),
        True,
    ),
    "quasi along one line, which a constant leaves": (
        *integers("quasi-separation", [[0.0, 1], [0, 1], [0, 2], [1, 0]], [1, 0, 1, 1], "free", w=(1, 0), b=0, **PAIR),
        False,
    ),
    "quasi with b": (*integers("quasi-separation", *SHIFTED, "free", w=(1, 0), b=1, **PAIR), True),
    "quasi with b but no intercept": (*integers("quasi-separation", *SHIFTED, w=(1, 0), b=1, **PAIR), False),
}


@pytest.mark.parametrize("name", WHOLE)
def test_each_condition_of_integer_certificates(name):
    """Claims of whole numbers, true or false for one reason; both checkers know, whatever the storage."""
    certificate, X, y, true = WHOLE[name]
    assert standalone.check(json.loads(certificate.to_json()), X, y)[0] == true
    assert bool(gordan.verify(certificate, X, y)) == true
    assert bool(gordan.verify(certificate, sp.csr_array(np.array(X)), y)) == true


def test_witnesses_bring_their_rows_together():
    problem = Problem(Matrix(Distant(np.full((2, 1), 2.0))), np.array([1, -1], dtype=np.int8), (0, 1))
    assert check(gordan.Certificate("witness", "none", (0, 1), (2, 1), rows=(0, 1), weights=(1, 1)), problem)


@pytest.mark.parametrize("more", [{"lower": 5.0}, {"upper": -3.0}, {"nu": 0.5}, {"sample_weight": (1.0, 1.0, 1.0, 1.0)}], ids=str)
@pytest.mark.parametrize("name", ["witness", "overlap", "quasi"])
def test_margins_that_a_kind_does_not_prove_are_refused(name, more):
    certificate, X, y, true = WHOLE[name]
    assert true
    with pytest.raises(gordan.InputError, match="certificate has no"):
        replace(certificate, **more)
    content = {**json.loads(certificate.to_json()), **dict.fromkeys(more)}
    with pytest.raises(standalone.BadInput):
        standalone.check(content, X, y)


@pytest.mark.parametrize("suffix", [".parquet", ".pq", ".npz", ".npz.gz"])
def test_unsupported_files_are_refused(suffix, tmp_path, capsys):
    (tmp_path / "c.json").write_text(WHOLE["witness"][0].to_json())
    (tmp_path / f"d{suffix}").write_text("1 1:1\n")
    assert standalone.main([str(tmp_path / "c.json"), str(tmp_path / f"d{suffix}")]) == 2
    assert f"this checker does not read {suffix.removesuffix('.gz')};" in capsys.readouterr().err


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_compressed_files(suffix, pack, tmp_path, capsys):
    """Tables, svmlight and arrays; what is cut short or not compressed is bad input."""
    np.save(tmp_path / "t.npy", TABLE)
    written(tmp_path / "t.csv", "a,b,y\n1,-2,no\n0,4,yes\n0,0.25,no\n")
    written(tmp_path / "t.svm", "no 1:1 2:-2\nyes 2:4\nno 2:0.25\n")
    for name, certificate in (("t.csv", SEPARATOR), ("t.svm", SEPARATOR), ("t.npy", replace(SEPARATOR, classes=(0, 1)))):
        content = (tmp_path / name).read_bytes()
        (tmp_path / (name + suffix)).write_bytes(pack(content))
        assert program(tmp_path, capsys, certificate, name + suffix) == (0, "accepted\n", "")
        for spoiled in (content, pack(content)[:-9], b""):
            (tmp_path / (name + suffix)).write_bytes(spoiled)
            assert program(tmp_path, capsys, certificate, name + suffix)[0] == 2


def test_one_class_against_the_rest_by_its_number():
    """Numbers are compared as numbers, not as whole ones."""
    assert standalone.one_against_the_rest([2.5, 2.0, 3], "2") == [False, True, False]
    assert standalone.one_against_the_rest(["2.0", "2", "2.5"], "2") == [True, True, False]
    assert standalone.one_against_the_rest(["2.0", "2", "two"], "2") == [False, True, False]


# ---- scores in floats, and what the certificate is about -------------------------------------------------------------


def test_scores_in_floats_enclose_the_exact_ones():
    """Rows that cancel to the last bit, exponents far apart, whole numbers beyond floats: the exact score is never outside."""
    r, decided = random.Random(3), 0
    for _ in range(300):
        d, size = r.randint(1, 6), r.choice((0, 3, 60, 300, 500))
        number = r.choice((lambda size=size: math.ldexp(r.gauss(0, 1), r.randint(-size, size)), lambda: float(r.randint(-3, 3))))
        w, b = [number() for _ in range(d)], r.choice((0.0, number()))
        rows = [[number() for _ in range(d)] for _ in range(8)]
        for row in rows[:4]:  # nearly, or exactly, on the plane
            j = r.randrange(d)
            rest = sum((Fraction(x) * Fraction(v) for k, (x, v) in enumerate(zip(row, w, strict=True)) if k != j), Fraction(b))
            if w[j] and abs(rest / Fraction(w[j])) < 2**1000:
                row[j] = float(-rest / Fraction(w[j]))
        if r.random() < 0.2:
            rows[0] = [r.randint(-(2**70), 2**70) for _ in range(d)]
        claim = standalone.Claim(json.loads(gordan.Certificate("separator", "free", (0, 1), (8, d), w=tuple(w), b=b).to_json()))
        X, signs = standalone._rows(rows, d)[0], [r.choice((1, -1)) for _ in rows]
        for i, (near, error) in enumerate(claim._float_scores(X, signs, claim.b)):
            exact = claim._score(X, signs, i, claim.b)
            assert math.isinf(error) or abs(Fraction(near) - exact) <= Fraction(error)
            decided += near > error
    assert decided > 400


def test_a_separator_is_decided_exactly_where_floats_do_not(tmp_path):
    """A row on the plane, one unit to its side, and one to the other, where the sum of products is rounded to 0."""
    tiny = 2.0**-60
    certificate = gordan.Certificate("separator", "none", (0, 1), (2, 3), w=(1.0, 1.0, 1.0))
    for last, accepted in ((tiny, True), (0.0, False), (-tiny, False)):
        X = [[1.0, last, -1.0], [-1.0, -1.0, -1.0]]
        assert standalone.check(json.loads(certificate.to_json()), X, [1, 0])[0] == accepted


class Trial:
    """A table with a missing cell, weights, a column that is not used, and a certificate of a diagnosis of it."""

    TEXT = "id,age,soap,weight,ill\n1,20,0,1,no\n2,30,0,2,yes\n3,40,0,1,no\n4,,1,1,no\n5,25,1,1,yes\n6,35,1,1,yes\n7,25,1,0,no\n"

    def __init__(self, folder, change=None):
        pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'gordan[data]'")
        (folder / "trial.csv").write_text(self.TEXT)
        self.frame = pandas.read_csv(folder / "trial.csv")
        X, y, weights = self.frame[["age", "soap"]], self.frame.ill, self.frame.weight
        self.found = gordan.diagnose(X, y, missing="drop", sample_weight=weights)
        (folder / "proof.json").write_text(self.found.certificate.to_json())


def told(capsys, folder, data, *options, code=0):
    assert standalone.main([str(folder / "proof.json"), str(folder / data), *options]) == code
    return capsys.readouterr().out.splitlines()


def test_rules_and_names_are_applied_to_files(tmp_path, capsys):
    """The label, the weights, the columns and the rules are those of the certificate: nothing has to be named."""
    trial = Trial(tmp_path)
    assert (trial.found.kind, trial.found.rows, trial.found.left_out) == ("quasi-complete", (4, 5), 2)
    lines = told(capsys, tmp_path, "trial.csv", "--weight", "weight", "--drop", "id")
    unasked = "  columns that it does not name are left out: 'id'"
    assert [*lines[:-1], unasked, lines[-1]] == told(capsys, tmp_path, "trial.csv")
    assert lines[0].startswith("accepted: the data is quasi-completely separated")
    assert lines[1].endswith("for the label column 'ill', the weights 'weight', 2 named columns ('age', 'soap')")
    assert lines[2:] == [
        "  the positive class is 'yes', the other one 'no'",
        "  rows with a missing value are left out, and row numbers do not count them",
        "  rows of weight zero are left out, and row numbers do not count them",
        SAME,
    ]
    (tmp_path / "mass.csv").write_text(Trial.TEXT.replace("weight", "mass"))
    assert "by --weight" in told(capsys, tmp_path, "mass.csv", code=1)[0]
    others = told(capsys, tmp_path, "mass.csv", "--weight", "mass")
    assert [line.replace("'mass'", "'weight'") for line in others if line != unasked] == lines
    renamed = Trial.TEXT.replace("soap", "cream")
    (tmp_path / "renamed.csv").write_text(renamed)
    lines = told(capsys, tmp_path, "renamed.csv", "--weight", "weight", "--drop", "id")
    assert "  the columns have other names than those it was made for: 'cream' in place of 'soap'" in lines
    assert lines[-1] == "  the values match the data it was made for; the names of the columns differ"
    (tmp_path / "other.csv").write_text(Trial.TEXT.replace("6,35,", "6,36,"))
    lines = told(capsys, tmp_path, "other.csv", "--weight", "weight", "--drop", "id")
    assert lines[0].startswith("accepted: ")
    assert lines[-1] == "  this is not the data that it was made for, but the claim holds for it as well"
    (tmp_path / "false.csv").write_text(Trial.TEXT.replace("5,25,1,1,yes", "5,25,1,1,no"))
    lines = told(capsys, tmp_path, "false.csv", "--weight", "weight", "--drop", "id", code=1)
    assert lines[0].startswith("rejected: ")
    assert lines[1].startswith("  it claims that the data is quasi-completely separated")


def test_the_claim_counts_the_rows_that_are_left_out(tmp_path, capsys):
    """A certificate chooses the rules, and by its description the column of weights: its claim says how many rows that costs."""
    trial = Trial(tmp_path)
    words = " (for 5 of 7 rows; left out: 1 with a missing value, 1 of weight zero in column 'weight')"
    lines = told(capsys, tmp_path, "trial.csv")
    X, y, weights = trial.frame[["age", "soap"]], trial.frame.ill, trial.frame.weight
    found = gordan.verify(trial.found.certificate, X, y, weights)
    assert lines[0].endswith(words)
    assert str(found).splitlines()[0] == lines[0]
    unnamed = gordan.verify(trial.found.certificate, X, y, weights.to_numpy())
    assert unnamed.claim == found.claim.replace(" in column 'weight'", "")
    # weights of another column leave out the rows that contradict a separator
    (tmp_path / "forged.csv").write_text("x,w,y\n1,1,no\n2,1,yes\n3,0,no\n4,0,no\n5,1,yes\n")
    about = gordan.certificates.data.About(weight="w", columns=("x",))
    proof = gordan.Certificate("separator", "free", ("no", "yes"), (3, 1), w=(1.0,), b=-1.5)
    (tmp_path / "proof.json").write_text(replace(proof, about=about, dropped=("zero-weight",)).to_json())
    words = " (for 3 of 5 rows; left out: 2 of weight zero in column 'w')"
    assert told(capsys, tmp_path, "forged.csv")[0] == "accepted: the data is separable" + words


@pytest.mark.parametrize("described", [True, False])
def test_the_claim_counts_the_rows_of_label_0(tmp_path, capsys, described):
    X, y = [[-1.0], [0.0], [1.0], [2.0]], [-1, 0, 1, 1]
    proof = gordan.Certificate("separator", "free", (-1, 1), (4, 1), w=(1.0,), b=0.0)
    described_proof = replace(proof, data_hash=hash_for(proof, X, y) if described else None)
    (tmp_path / "proof.json").write_text(described_proof.to_json())
    (tmp_path / "three.csv").write_text("x,y\n" + "".join(f"{x},{label}\n" for (x,), label in zip(X, y, strict=True)))
    words = "(for 3 of 4 rows; left out: 1 with the label 0)"
    assert told(capsys, tmp_path, "three.csv")[0].endswith(words)
    found = gordan.verify(described_proof, X, y)
    assert found
    assert found.claim.endswith(words)


def test_a_closed_pipe_is_not_an_error(tmp_path):
    """As after `| head -0`: the exit code is the answer, and nothing is reported."""
    (tmp_path / "proof.json").write_text(gordan.separate([[1.0], [2.0]], [0, 1]).certificate.to_json())
    (tmp_path / "t.csv").write_text("a,y\n1,0\n2,1\n")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-I", standalone.__file__, str(tmp_path / "proof.json"), str(tmp_path / "t.csv")]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


NUMBERS = "a,b,y\n1,2,no\n\n3,4,yes\n5,6,no\n"
WRONG_CELLS = {
    "text": ("5,6", "5,six", "line 5, column 1 ('b'): the cell 'six' is not a finite number; see --decimal"),
    "empty": ("3,4", ",4", "line 4, column 0 ('a'): the cell '' is not a finite number; --missing drop leaves out such rows"),
    "infinite": ("3,4", "3,inf", "line 4, column 1 ('b'): the cell 'inf' is not a finite number"),
    "after a cell of two lines": ("1,2,no\n\n3,4,yes", '1,2,"n\no"\n\n3,x,yes', "line 5, column 1 ('b'): the cell 'x'"),
    "a field too many": ("3,4", "3,4,5", "line 4 has 4 fields; the header has 3"),
    "no label": ("4,yes", "4,", "line 4: the label is empty; every row needs a label"),
}


@pytest.mark.parametrize("name", WRONG_CELLS)
def test_what_is_wrong_in_a_table_is_named_by_line_and_column(name, tmp_path, capsys):
    X, y = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], ["no", "yes", "no"]
    (tmp_path / "proof.json").write_text(gordan.separate(X, y).certificate.to_json())
    (tmp_path / "t.csv").write_text(NUMBERS)
    assert standalone.main([str(tmp_path / "proof.json"), str(tmp_path / "t.csv")]) == 0
    before, after, message = WRONG_CELLS[name]
    (tmp_path / "t.csv").write_text(NUMBERS.replace(before, after))
    assert standalone.main([str(tmp_path / "proof.json"), str(tmp_path / "t.csv")]) == 2
    assert message in capsys.readouterr().err


def test_a_design_that_a_formula_made(tmp_path, capsys):
    """Its certificate is about no column of the table; both checkers say which file to ask for, and accept that."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("formulaic")
    frame = pandas.DataFrame({"age": [30.1, 41, 52, 33, 45, 37], "town": [*"AABBAA"], "ill": [*["no", "yes"] * 2, "no", "yes"]})
    frame.loc[frame.town == "B", "ill"] = "yes"
    d = gordan.diagnose("ill ~ age + town", data=frame)
    proof, table = tmp_path / "proof.json", tmp_path / "table.csv"
    proof.write_text(d.certificate.to_json())
    frame.to_csv(table, index=False)
    code = "d.X.assign(ill=d.y).to_csv('design.csv', index=False)"
    assert standalone.main([str(proof), str(table)]) == 2
    assert code in capsys.readouterr().err
    frame.drop(columns="town").to_csv(table, index=False)
    assert standalone.main([str(proof), str(table)]) == 1
    assert code in capsys.readouterr().out
    assert code in str(gordan.verify(d.certificate, frame[["age"]], frame.ill))
    design = str(tmp_path / "design.csv")
    eval(code.replace("'design.csv'", repr(design)), {"d": d})
    assert standalone.main([str(proof), design]) == 0
    out = capsys.readouterr().out
    assert "3 named columns ('Intercept', 'age', 'town[T.B]')" in out
    assert "the positive class is 'yes', the other one 'no'" in out
    assert out.rstrip().endswith(SAME)


WRONG = {
    "logistic": ([0, 1, 0, 1, 1, 1, 1], 5, 0),
    "multinomial": ([*"abcabcb"], 4, "a"),
    "ordinal": ([1, 2, 3, 1, 3, 3, 3], 5, 1),
    "poisson": ([1, 0, 2, 3, 0, 0, 0], 5, 1),
}


@pytest.mark.parametrize("model", WRONG)
def test_both_checkers_name_the_row_that_was_changed(model):
    """As it is in the data, also where a model makes several rows of it."""
    y, i, other = WRONG[model]
    X = [[1.0, 0], [2, 0], [3, 0], [4, 0], [2, 1], [3, 1], [1, 1]]
    certificate = gordan.diagnose(X, y, model=model).certificate
    assert both(certificate, X, y) == (True, True)
    y = [*y[:i], other, *y[i + 1 :]]
    reason = f"row {i} is on the wrong side"
    assert gordan.verify(certificate, X, y).reason == reason
    assert standalone.check(json.loads(certificate.to_json()), X, y) == (False, reason)


CLASSES = {
    "logistic": ([*"abab"], "the positive class is 'b', the other one 'a'"),
    "multinomial": ([*"abcab"], "its classes are 'a', 'b', 'c'; the first is the reference"),
    "ordinal": ([3, 7, 9, 11, 20, 3], "the order of its classes is 3 < 7 < 9 < 11 < …"),
    "poisson": ([0, 1, 0, 2], None),
}


@pytest.mark.parametrize("model", CLASSES)
def test_both_checkers_say_which_classes_it_is_about(model, tmp_path, capsys):
    y, words = CLASSES[model]
    X = np.arange(len(y), dtype=float)[:, None] % 3
    certificate = gordan.diagnose(X, y, model=model).certificate
    (tmp_path / "proof.json").write_text(certificate.to_json())
    np.savetxt(tmp_path / "t.csv", np.column_stack([X.astype(str), y]), fmt="%s", delimiter=",", header="x,y", comments="")
    lines = told(capsys, tmp_path, "t.csv")
    notes = str(gordan.verify(certificate, X, y)).splitlines()
    assert [line.replace("...", "…") for line in lines] == notes
    assert words is None or f"  {words}" in notes


SAME = "  everything that the claim depends on matches the data it was made for"


@pytest.mark.parametrize("model", ["logistic", "multinomial", "ordinal", "poisson"])
def test_the_data_of_every_model_is_recognised(model, tmp_path, capsys):
    """The hash is that of the package: for tables, svmlight and arrays, with zeros and without."""
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 3, size=(5000 if model == "logistic" else 30, 3)).astype(float)
    X[:, 0] += 0.5
    y = rng.integers(0, 2 if model == "logistic" else 3, len(X))
    certificate = gordan.diagnose(X, y, model=model).certificate
    (tmp_path / "proof.json").write_text(certificate.to_json())
    table = np.column_stack([X, y])
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header="a,b,c,y", comments="", fmt="%.17g")
    np.save(tmp_path / "t.npy", table)
    np.save(tmp_path / "f.npy", np.asfortranarray(table))
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    np.save(tmp_path / "y.npy", y)
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row) if v) for row, label in zip(X.tolist(), y, strict=True)
    ]
    (tmp_path / "t.svm").write_text("\n".join(lines))
    for name, *options in (("t.csv",), ("t.npy",), ("f.npy",), ("t.svm",), ("X.npy", "--labels", str(tmp_path / "y.npy"))):
        found = told(capsys, tmp_path, name, *options)
        assert found[0].startswith("accepted: the data ")
        assert found[-1] == SAME
    other_order = replace(certificate, classes=certificate.classes[::-1]) if model != "poisson" else certificate
    claim = standalone.Claim(json.loads(other_order.to_json()))
    rows, _, labels = claim.data(X.tolist(), y.tolist(), None)
    same = claim.hash_of(rows, labels) == claim.data_hash
    assert same == gordan.verify(other_order, X, y).same_data == (model == "poisson")
    table[0, 0] += 1
    np.save(tmp_path / "t.npy", table)
    assert standalone.main([str(tmp_path / "proof.json"), str(tmp_path / "t.npy")]) in (0, 1)
    assert capsys.readouterr().out.splitlines()[-1].startswith("  this is not the data that it was made for")
