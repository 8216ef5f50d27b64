"""The standalone checker by its parts: what it reads and refuses, and its arithmetic against what is known in closed form."""

from __future__ import annotations

import decimal
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from checkers import Distant, both

import gordan
from gordan.certificates import standalone
from gordan.certificates.matrix import Matrix
from gordan.certificates.problem import Problem
from gordan.certificates.standalone import BadInput, Rejected
from gordan.certificates.verify import check
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
    assert standalone.read_table(written(tmp_path / name, text), label) == (ROWS, ["no", "yes", "no"])


@pytest.mark.parametrize("label", ["3", "-4", "c", "1.0"])
def test_columns_that_are_not_there(label, tmp_path):
    path = written(tmp_path / "t.csv", "a,b,y\n1,2,0\n")
    with pytest.raises(ValueError):
        standalone.read_table(path, label)


@pytest.mark.parametrize("text", ["", "\n\n", "a,b\n1\n", "a,b\n1,2,3\n", "a,b\nx,1\n", "a,b\n" + "1" * 200_000 + ",2\n"])
def test_tables_that_are_none(text, tmp_path):
    with pytest.raises(ValueError):
        standalone.read_table(written(tmp_path / "t.csv", text), None)


def test_a_column_may_be_named_by_a_number(tmp_path):
    """A name comes before a place."""
    path = written(tmp_path / "t.csv", "1,0,2\n10,11,12\n")
    assert standalone.read_table(path, "0") == ([[10.0, 12.0]], ["11"])
    assert standalone.read_table(path, "2") == ([[10.0, 11.0]], ["12"])


def test_labels_of_several_lines(tmp_path):
    (tmp_path / "t.csv").write_bytes(b'a,y\r\n1,"no\r\nmore"\r\n2,"yes,\n"\r\n')
    assert standalone.read_table(tmp_path / "t.csv", None) == ([[1.0], [2.0]], ["no\r\nmore", "yes,\n"])


def test_svmlight(tmp_path):
    text = "\ufeff# a comment\n+1 qid:3 1:0.5 3:-2 # more: 7:8\n\n-1\n   \n0 2:1e-3\n"
    assert standalone.read_svmlight(written(tmp_path / "d", text)) == ([{0: 0.5, 2: -2.0}, {}, {1: 1e-3}], ["+1", "-1", "0"])
    text = "a 1:0.5 3:-2\nb 0:4\n"  # some index is 0: then all are from 0
    assert standalone.read_svmlight(written(tmp_path / "d", text)) == ([{1: 0.5, 3: -2.0}, {0: 4.0}], ["a", "b"])


@pytest.mark.parametrize("text", ["", "# nothing\n", "1 1:2 1:3\n", "1 1:2:3\n", "1 1\n", "1 x:2\n", "1 1:y\n"])
def test_svmlight_that_is_none(text, tmp_path):
    with pytest.raises(ValueError):
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
    assert standalone.read_npy(tmp_path / "X.npy") == X.tolist()
    np.save(tmp_path / "y.npy", X[0])
    assert standalone.read_npy(tmp_path / "y.npy") == X[0].tolist()


def test_arrays_of_text_and_of_the_second_version(tmp_path):
    words = np.array(["no", "yes, é", "", "OX"])
    np.save(tmp_path / "y.npy", words)
    assert standalone.read_npy(tmp_path / "y.npy") == words.tolist()
    with (tmp_path / "X.npy").open("wb") as file:
        np.lib.format.write_array(file, np.array(ROWS), version=(2, 0))
    assert standalone.read_npy(tmp_path / "X.npy") == ROWS


@pytest.mark.parametrize("array", [np.array(1.0), np.ones((1, 1, 1)), np.ones(2, ">f8"), np.ones(2, complex), np.array([b"ab"])])
def test_arrays_that_are_not_read(array, tmp_path):
    np.save(tmp_path / "X.npy", array)
    with pytest.raises(BadInput):
        standalone.read_npy(tmp_path / "X.npy")


def test_arrays_that_are_cut(tmp_path):
    for array in (np.ones((3, 2)), np.array(["ab", "cd"])):
        np.save(tmp_path / "X.npy", array)
        whole = (tmp_path / "X.npy").read_bytes()
        for content in (whole[:5], whole[:11], b"X" + whole[1:], whole[:-8]):
            (tmp_path / "X.npy").write_bytes(content)
            with pytest.raises((BadInput, ValueError, standalone.struct.error, SyntaxError)):
                standalone.read_npy(tmp_path / "X.npy")


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
    """Exit code, what is printed, and what is printed about mistakes."""
    path = tmp_path / "c.json"
    path.write_text(certificate if isinstance(certificate, str) else certificate.to_json(), encoding="utf-8")
    code = standalone.main([str(path), str(tmp_path / name), *map(str, options)])
    out, err = capsys.readouterr()
    return code, out, err


SEPARATOR = gordan.Certificate("separator", "free", ("no", "yes"), (3, 2), w=(0.0, 1.0), b=-1.0)


def test_the_program(tmp_path, capsys):
    """0, 1 and 2, and a line that says why."""
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
        (SEPARATOR, "t.parquet", ".parquet is not read here"),
        (SEPARATOR, "nothing.csv", "nothing.csv"),
        ("{", "t.csv", "Expecting"),
        ("[]", "t.csv", "not a certificate"),
        (replace(SEPARATOR, shape=(3, 3), w=(0.0, 1.0, 0.0)), "t.csv", "a row has 2 entries"),
        (replace(SEPARATOR, classes=(0, 1)), "t.csv", "could not convert"),
        (replace(SEPARATOR, classes=(False, True)), "t.csv", "no"),
        ("[" * 100_000, "t.csv", "recursion"),
    ):
        code, out, err = program(tmp_path, capsys, certificate, name)
        assert (code, out) == (2, "")
        assert err.startswith("bad input: ")
        assert reason in err


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


# ---- rows -----------------------------------------------------------------------------------------------------------


def test_rows_are_exact():
    assert standalone._row([0.1, 0, Fraction(1, 3)], 3) == {0: Fraction(0.1), 2: Fraction(1, 3)}
    assert standalone._row({2: 10**400, 0: 0.0}, 3) == {2: 10**400}
    assert standalone._row([np.float32(0.1), True], 2) == {0: Fraction(float(np.float32(0.1))), 1: 1}


@pytest.mark.parametrize("row", [[1.0], [1.0, 2.0, 3.0], {-1: 1.0}, {2: 1.0}, [math.nan, 0], [math.inf, 0], ["x", 0], [None, 0]])
def test_rows_that_are_refused(row):
    with pytest.raises(BadInput):
        standalone._row(row, 2)


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
    for labels in (["no"] * 3, ["no", "yes", "maybe"], ["no", "yes", 0]):
        accepted, reason = standalone.check(content, X, labels)
        assert not accepted
        assert "classes" in reason


# ---- arithmetic -----------------------------------------------------------------------------------------------------


def root(value, power):
    """value^(1/power) to 80 digits."""
    with decimal.localcontext(decimal.Context(prec=80)):
        return Fraction((decimal.Decimal(value.numerator) / value.denominator) ** (1 / decimal.Decimal(power)))


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10**400), Fraction(1, 3**700)])
def test_norms_are_held_against_bounds(scale):
    """|(3,4,5)|_3 = 6, |(1,4)|_(3/2) = 9^(2/3), and the plain ones: exact, or to one part in 10⁴⁰ on the safe side."""
    slack, half = 1 + Fraction(2, 10**40), 1 + Fraction(1, 2 * 10**40)
    cases = [
        ([3, -4, 0], Fraction(2), False, Fraction(5), 0),
        ([3, -4, 0], Fraction(2), True, Fraction(5), 0),
        ([3, -4, 0], None, False, Fraction(4), 0),
        ([3, -4, 0], None, True, Fraction(7), 0),
        ([3, 4, -5, 0], Fraction(3), False, Fraction(6), 1),
        ([1, -4], Fraction(3), True, root(Fraction(81), 3), 1),
        ([7], Fraction(5, 2), True, Fraction(7), 1),
    ]
    for x, norm, dual, length, rounded in cases:
        x, length = [scale * value for value in x], scale * length
        assert standalone._at_least(length * slack, x, norm, dual)
        assert standalone._at_least(length, x, norm, dual) == (not rounded)
        assert not standalone._at_least(length * (1 - Fraction(1, 10**50)), x, norm, dual)
        assert not rounded or not standalone._at_least(length * half, x, norm, dual)


@pytest.mark.parametrize("norm", [None, Fraction(2), Fraction(3)])
@pytest.mark.parametrize("dual", [False, True])
def test_norms_of_nothing(norm, dual):
    for x in ([], [Fraction(0)] * 3):
        assert standalone._at_least(Fraction(0), x, norm, dual)
        assert not standalone._at_least(Fraction(-1, 10**9), x, norm, dual)
    assert not standalone._at_least(Fraction(-1), [Fraction(1)], norm, dual)
    assert not standalone._at_least(Fraction(0), [Fraction(1, 10**300)], norm, dual)


def test_lowest_scores_are_filled_up_to_their_caps():
    scores = [(Fraction(3), Fraction(1)), (Fraction(-1), Fraction(1, 2)), (Fraction(2), Fraction(1, 4))]
    assert standalone._lowest(scores, None) == -1
    assert standalone._lowest(scores, Fraction(1, 4)) == -1
    assert standalone._lowest(scores, Fraction(3, 4)) == 0
    assert standalone._lowest(scores, Fraction(7, 4)) == Fraction(12, 7)
    with pytest.raises(Rejected):
        standalone._lowest([], None)


def test_rows_are_reduced_to_what_is_left():
    """x - (2)(1, 1, 0) - ... for an echelon whose first columns are 0 and 1."""
    one = Fraction(1)
    echelon = {0: {0: one, 1: one}, 1: {1: one, 2: 3 * one}}
    assert standalone._reduced({0: 2 * one, 1: 2 * one}, echelon) == {}
    assert standalone._reduced({0: 2 * one}, echelon) == {2: 6 * one}
    assert standalone._reduced({2: one}, echelon) == {2: one}
    assert standalone._reduced({0: one, 1: 2 * one, 2: 3 * one, 3: one}, echelon) == {3: one}


# ---- each demand, by claims that lack one thing ---------------------------------------------------------------------


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
    "norm below two": (about("bracket", lower=0.0, norm=1.5), False),
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
    "separator of a bad norm, no bracket": (about("separator", w=(1.0, 0.0), norm=1.5), True),
    "separator of a bad norm": (about("separator", w=(1.0, 0.0), norm=1.5, upper=math.inf), False),
}


@pytest.mark.parametrize("name", BRACKETS)
def test_each_demand(name):
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
def test_each_demand_on_integers(name):
    """Claims of whole numbers, true or false for one reason; both checkers know, whatever the storage."""
    certificate, X, y, true = WHOLE[name]
    assert standalone.check(json.loads(certificate.to_json()), X, y)[0] == true
    assert bool(gordan.verify(certificate, X, y)) == true
    assert bool(gordan.verify(certificate, sp.csr_array(np.array(X)), y)) == true


def test_witnesses_bring_their_rows_together():
    problem = Problem(Matrix(2, 1, (Distant(np.full((2, 1), 2.0)),)), np.array([1, -1], dtype=np.int8), (0, 1), None)
    assert check(gordan.Certificate("witness", "none", (0, 1), (2, 1), rows=(0, 1), weights=(1, 1)), problem)


@pytest.mark.parametrize("more", [{"lower": 5.0}, {"upper": -3.0}, {"nu": 0.5}, {"sample_weight": (1.0, 1.0, 1.0, 1.0)}], ids=str)
@pytest.mark.parametrize("name", ["witness", "overlap", "quasi"])
def test_margins_that_a_kind_does_not_prove_are_rejected(name, more):
    certificate, X, y, true = WHOLE[name]
    assert true
    assert both(replace(certificate, **more), X, y) == (False, False)


@pytest.mark.parametrize("suffix", [".parquet", ".pq", ".npz", ".gz", ".bz2", ".xz"])
def test_files_that_are_not_read(suffix, tmp_path, capsys):
    (tmp_path / "c.json").write_text(WHOLE["witness"][0].to_json())
    (tmp_path / f"d{suffix}").write_text("1 1:1\n")
    assert standalone.main([str(tmp_path / "c.json"), str(tmp_path / f"d{suffix}")]) == 2
    assert f"{suffix} is not read here" in capsys.readouterr().err


def test_one_class_against_the_rest_by_its_number():
    """Numbers are compared as numbers, not as whole ones."""
    assert standalone.one_against_the_rest([2.5, 2.0, 3], "2") == [False, True, False]
    assert standalone.one_against_the_rest(["2.0", "2", "2.5"], "2") == [True, True, False]
    assert standalone.one_against_the_rest(["2.0", "2", "two"], "2") == [False, True, False]
