"""Bad arguments of rows, methods and `play`: each is an `InputError` that says where and what to do, never a warning."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import every_method
from problems import cells, refused

from gordan import InputError, datasets, methods, play, rows
from gordan.game import Game
from gordan.geometry import Ball, Entropy, Simplex, SquaredNorm, dual_exponent
from gordan.learners import Leader

A3 = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]])


# ---- NaN and infinity -----------------------------------------------------------------------------------------------


def stored(X, storage, tmp_path):
    if storage == "sparse":
        return sp.csr_matrix(X)
    if storage == "memory map":
        np.save(tmp_path / "X.npy", X)
        return np.load(tmp_path / "X.npy", mmap_mode="r")
    return X


BAD_VALUES = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


@pytest.mark.parametrize("storage", ["dense", "sparse", "memory map"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", BAD_VALUES)
@pytest.mark.parametrize("place", [(0, 0), (7, 2), (499, 3)])
def test_not_finite_in_play(storage, dtype, value, place, tmp_path):
    X = np.random.default_rng(0).standard_normal((500, 4)).astype(dtype)
    X[place] = BAD_VALUES[value]
    refused(
        lambda: play(stored(X, storage, tmp_path), rounds=3), f"X[{place[0]}, {place[1]}] is {value};", "must be finite", "drop"
    )


OPERATIONS = {
    "scores": lambda A: A.scores(np.ones(A.d)),
    "combine": lambda A: A.combine(np.ones(A.n)),
    "softmin": lambda A: A.softmin(np.ones(A.d)),
    "softmin down": lambda A: A.softmin(-np.ones(A.d)),
    "softmin halves": lambda A: A.softmin(np.ones(A.d), np.zeros(A.n), (np.arange(A.n) % 2).astype(np.int8)),
    "lowest": lambda A: A.lowest(np.ones(A.d), 2),
    "radius": lambda A: A.radius(),
    "radius 3": lambda A: A.radius(3.0),
    "radius inf": lambda A: A.radius(np.inf),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("value", BAD_VALUES)
@pytest.mark.parametrize("constant", [False, True], ids=["plain", "constant"])
def test_not_finite_in_a_pass(operation, storage, value, constant):
    """Found by whichever pass comes first, by its place in X."""
    X = np.ones((6, 3))
    X[4, 1] = BAD_VALUES[value]
    A = rows.of(sp.csr_matrix(X) if storage == "sparse" else X, constant=constant)
    refused(lambda: OPERATIONS[operation](A), f"X[4, 1] is {value};")


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_the_first_of_several_is_named(storage):
    X = np.zeros((9, 5))
    X[3, 4], X[3, 2], X[6, 0] = np.inf, np.nan, np.nan
    refused(lambda: play(sp.csr_matrix(X) if storage == "sparse" else X), "X[3, 2] is nan")


@pytest.mark.parametrize("dtype", ["float16", "longdouble", "object"])
@pytest.mark.parametrize("value", BAD_VALUES)
def test_not_finite_in_other_types(dtype, value):
    X = np.array([[1, 2], [3, BAD_VALUES[value]]], dtype=dtype)
    refused(lambda: play(X), f"X[1, 1] is {value}", "finite")


# ---- shapes ---------------------------------------------------------------------------------------------------------


SHAPES = {
    "no rows": (np.zeros((0, 3)), "0 rows and 3 columns", "at least one of each"),
    "no columns": (np.zeros((3, 0)), "3 rows and 0 columns", "at least one of each"),
    "no rows, sparse": (sp.csr_matrix((0, 3)), "0 rows and 3 columns", "at least one of each"),
    "no columns, sparse": (sp.csr_matrix((3, 0)), "3 rows and 0 columns", "at least one of each"),
    "empty list": ([], "(0,)", "rows and columns"),
    "1-D": (np.ones(5), "(5,)", "reshape(X, (-1, 1))"),
    "1-D sparse": (sp.coo_array(np.ones(5)), "(5,)", "reshape(X, (-1, 1))"),
    "3-D": (np.ones((2, 3, 4)), "(2, 3, 4)", "rows and columns"),
    "a number": (3.0, "of type float", "2-D array"),
    "None": (None, "of type NoneType", "2-D array"),
    "a string": ("abc", "X is 'abc'", "gordan.io.read"),
    "ragged": ([[1.0, 2.0], [3.0]], "cannot be read as a matrix", "2-D array"),
}


@pytest.mark.parametrize(("X", "shape", "hint"), cells(SHAPES))
def test_shapes(X, shape, hint):
    refused(lambda: play(X), shape, hint)
    refused(lambda: rows.of(X), shape, hint)


# ---- types ----------------------------------------------------------------------------------------------------------


def objects(value):
    X = np.ones((2, 3), dtype=object)
    X[1, 2] = value
    return X


def with_entry(value, dtype):
    X = np.zeros((2, 3), dtype=dtype)
    X[1, 2] = value
    return X


TYPES = {
    "complex": (with_entry(1j, complex), "X[0, 0]", "complex128", "real numbers"),
    "complex64": (with_entry(1j, np.complex64), "X[0, 0]", "complex64", "real numbers"),
    "complex list": ([[1.0, 2j]], "X[0, 0]", "complex", "real numbers"),
    "strings": (np.array([["1.0", "a"]]), "X[0, 0]", "'1.0'", "real numbers"),
    "bytes": (np.array([[b"1"]]), "X[0, 0]", "b'1'", "real numbers"),
    "dates": (np.array([["2020-01-01"]], dtype="datetime64[D]"), "X[0, 0]", "datetime64", "real numbers"),
    "durations": (np.array([[3]], dtype="timedelta64[s]"), "X[0, 0]", "timedelta64", "real numbers"),
    "object string": (objects("abc"), "X[1, 2]", "'abc'", "real numbers"),
    "object number as string": (objects("1.5"), "X[1, 2]", "'1.5'", "real numbers"),
    "object None": (objects(None), "X[1, 2]", "None", "real numbers"),
    "object complex": (objects(1 + 2j), "X[1, 2]", "(1+2j)", "real numbers"),
    "object np.complex64": (objects(np.complex64(1 + 2j)), "X[1, 2]", "1+2j", "real numbers"),
    "object list": (objects([1, 2]), "X[1, 2]", "[1, 2]", "real numbers"),
    "object date": (objects(date(2020, 1, 1)), "X[1, 2]", "2020", "real numbers"),
    "object dict": (objects({}), "X[1, 2]", "{}", "real numbers"),
}


INEXACT = {
    "int64 above": (with_entry(2**53 + 1, np.int64), "X[1, 2]", "2**53", "rescale"),
    "int64 below": (with_entry(-(2**53) - 1, np.int64), "X[1, 2]", "2**53", "rescale"),
    "int64 least": (with_entry(-(2**63), np.int64), "X[1, 2]", "2**53", "rescale"),
    "uint64": (with_entry(2**64 - 1, np.uint64), "X[1, 2]", "2**53", "rescale"),
    "int list": ([[1, 2**60 + 1]], "X[0, 1]", "2**53", "rescale"),
    "int64 swapped": (with_entry(2**53 + 1, ">i8"), "X[1, 2]", "2**53", "rescale"),
    "object int": (objects(2**53 + 1), "X[1, 2]", str(2**53 + 1), "rescale"),
    "object int beyond 64 bits": (objects(2**70 + 1), "X[1, 2]", str(2**70 + 1), "rescale"),
    "object int beyond floats": (objects(10**400), "X[1, 2]", "1000", "rescale"),
    "object np.int64": (objects(np.int64(2**53 + 1)), "X[1, 2]", str(2**53 + 1), "rescale"),
    "object Fraction": (objects(Fraction(1, 3)), "X[1, 2]", "1/3", "rescale"),
    "object Decimal": (objects(Decimal("0.1")), "X[1, 2]", "0.1", "rescale"),
    "longdouble": (with_entry(np.longdouble(1) / 3, np.longdouble), "X[1, 2]", "not exact in float64", "astype"),
    "longdouble beyond floats": (with_entry(np.longdouble("1e4000"), np.longdouble), "X[1, 2]", "not exact in float64", "astype"),
}


@pytest.mark.parametrize(("X", "cell", "what", "why"), cells(TYPES | INEXACT))
def test_types_and_numbers_that_float64_cannot_hold(X, cell, what, why):
    """Converted exactly or refused; nothing wraps, nothing is rounded."""
    refused(lambda: play(X), cell, what, why)


@pytest.mark.parametrize("value", [Fraction(3, 8), Decimal("0.375"), np.int64(2**53), np.float32(0.1), True, 2**1000])
def test_objects_that_float64_can_hold(value):
    assert rows.of(objects(value)).scores(np.array([0.0, 0.0, 1.0]))[1] == float(value)


SPARSE_TYPES = {
    "complex": (with_entry(1j, complex), "complex128"),
    "int64": (with_entry(2**53 + 1, np.int64), "2**53"),
}


@pytest.mark.parametrize(("X", "what"), cells(SPARSE_TYPES))
def test_sparse_types(X, what):
    """The cell is named by its row and column, not by its place in X.data."""
    refused(lambda: play(sp.csr_matrix(X)), "X[1, 2]", what)


# ---- CSR that is none -----------------------------------------------------------------------------------------------


def spoiled(**arrays):
    """A 3 × 2 CSR matrix of four entries with some of its arrays replaced."""
    X = sp.csr_matrix(np.array([[1.0, 0], [2, 3], [0, 4]]))
    for name, array in arrays.items():
        setattr(X, name, np.array(array, dtype=np.float64 if name == "data" else None))
    return X


INVALID = {
    "column too large": {"indices": [0, 0, 2, 1]},
    "negative column": {"indices": [0, -1, 1, 1]},
    "row pointer too short": {"indptr": [0, 1, 4]},
    "row pointer too long": {"indptr": [0, 1, 3, 4, 4]},
    "row pointer decreases": {"indptr": [0, 3, 1, 4]},
    "row pointer starts late": {"indptr": [1, 1, 3, 4]},
    "row pointer beyond the data": {"indptr": [0, 1, 3, 9]},
    "row pointer negative": {"indptr": [0, -1, 3, 4]},
    "fewer entries than columns": {"data": [1, 2, 3]},
    "columns are no integers": {"indices": [0.0, 0.5, 1.0, 1.0]},
}


@pytest.mark.parametrize("arrays", cells(INVALID))
def test_invalid_csr(arrays):
    refused(lambda: play(spoiled(**arrays)), "CSR matrix is not valid", "rebuild it")


# These would write out of bounds where nothing checked them, so they run in a process of their own.
OUT_OF_BOUNDS = {
    "csr": (
        """
        X = sp.csr_matrix((np.ones(4), np.array([0, 1, 10**9, 2]), np.array([0, 2, 4])), shape=(2, 3))
        play(X, rounds=3)
        """,
        "not valid",
    ),
    "csc": (
        """
        X = sp.csc_matrix((np.ones(4), np.array([0, 1, 10**7, 2]), np.array([0, 2, 4])), shape=(3, 2))
        rows.of(X)
        """,
        "not valid",
    ),
    "coo": (
        """
        X = sp.coo_matrix(np.ones((3, 2)))
        X.row[2] = 10**7
        rows.of(X)
        """,
        "not valid",
    ),
    "halves": ("rows.of(np.ones((3, 2))).softmin(np.ones(2), None, np.array([0, 1, 100], np.int8))", "halves"),
    "halves too short": ("rows.of(np.ones((3000, 2))).softmin(np.ones(2), None, np.array([0, 1], np.int8))", "halves"),
}


@pytest.mark.parametrize(("code", "message"), cells(OUT_OF_BOUNDS))
def test_out_of_bounds(code, message):
    lines = "\n".join("    " + line.strip() for line in code.strip().splitlines())
    program = (
        "import numpy as np, scipy.sparse as sp\nfrom gordan import InputError, play, rows\n"
        f"try:\n{lines}\nexcept InputError as error:\n    print('refused:', error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-300:]
    assert "refused:" in done.stdout
    assert message in done.stdout


# ---- signs, threads and vectors -------------------------------------------------------------------------------------


OF = {
    "signs too few": (lambda: rows.of(A3, [1, -1]), "3 rows", "(2,)"),
    "signs in a matrix": (lambda: rows.of(A3, [[1], [1], [1]]), "3 rows", "signs"),
    "sign 0": (lambda: rows.of(A3, [1, 0, 1]), "+1 or -1", "signs"),
    "sign 2": (lambda: rows.of(A3, [1, 2, 1]), "+1 or -1", "signs"),
    "sign nan": (lambda: rows.of(A3, [1.0, np.nan, 1.0]), "+1 or -1", "signs"),
    "signs as strings": (lambda: rows.of(A3, ["1", "-1", "1"]), "signs", "numbers"),
    "threads 0": (lambda: rows.of(A3, threads=0), "threads is 0", "at least 1"),
    "threads -2": (lambda: rows.of(A3, threads=-2), "threads is -2", "at least 1"),
    "threads 1.5": (lambda: rows.of(A3, threads=1.5), "threads is 1.5", "at least 1"),
    "threads nan": (lambda: rows.of(A3, threads=float("nan")), "threads is nan", "at least 1"),
    "threads as a string": (lambda: rows.of(A3, threads="2"), "threads is '2'", "at least 1"),
    "w too long": (lambda: rows.of(A3).scores(np.ones(3)), "2", "(3,)"),
    "w in a matrix of another height": (lambda: rows.of(A3).scores(np.ones((3, 1))), "2", "(3, 1)"),
    "w in a matrix where one is needed": (lambda: rows.of(A3).lowest(np.ones((2, 1)), 1), "2", "(2, 1)"),
    "p in a matrix of another height": (lambda: rows.of(A3).combine(np.ones((2, 1))), "3", "(2, 1)"),
    "q in a matrix": (lambda: rows.of(A3).moments(np.ones((3, 1))), "3", "(3, 1)"),
    "w without the constant": (lambda: rows.of(A3, constant=True).scores(np.ones(2)), "3", "(2,)"),
    "v too short": (lambda: rows.of(A3).softmin(np.ones(1)), "2", "(1,)"),
    "p too short": (lambda: rows.of(A3).combine(np.ones(2)), "3", "(2,)"),
    "p for one row": (lambda: rows.of(A3[:1]).combine(np.ones(3)), "1", "(3,)"),
    "log_p0 too short": (lambda: rows.of(A3).softmin(np.ones(2), np.zeros(2)), "log_p0", "(2,)"),
}


PIECES = {
    "iris": (lambda: datasets.iris("rose"), "positive is 'rose'", "'virginica'"),
    "norm below one": (lambda: rows.of(A3).radius(0.5), "p is 0.5", "p >= 1"),
    "take nothing": (lambda: rows.of(A3).take([]), "rows between 0 and 2", "a mask of 3"),
    "take beyond": (lambda: rows.of(A3).take([0, 3]), "rows between 0 and 2", "a mask of 3"),
    "take half a row": (lambda: rows.of(A3).take([0.5]), "rows between 0 and 2", "a mask of 3"),
    "take a short mask": (lambda: rows.of(A3).take([True, False]), "rows between 0 and 2", "a mask of 3"),
    "a norm that is none": (lambda: SquaredNorm(q=0.5), "q >= 1", "q = 0.5"),
    "a ball of no size": (lambda: Ball(3, radius=0.0), "positive radius", "radius = 0.0"),
    "game, norm": (lambda: Game(rows.of(A3), Simplex(3), np.full(3, 1 / 3), norm=0.5), "norm >= 1", "a game needs"),
    "game, p0 on the border": (lambda: Game(rows.of(A3), Simplex(3), np.array([0.5, 0.5, 0.0])), "a positive point", "p0"),
    "game, p0 too short": (lambda: Game(rows.of(A3), Simplex(3), np.full(2, 0.5)), "p0 must be a positive", "one entry per row"),
    "hint": (lambda: Leader(Simplex(3), np.full(3, 1 / 3), Entropy(), 0.5, hint="next"), "hint is 'next'", "'last'"),
}


@pytest.mark.parametrize(("call", "first", "second"), cells({**OF, **PIECES}))
def test_rows_and_pieces_built_by_hand(call, first, second):
    refused(call, first, second)


def test_rows_by_a_mask():
    taken = rows.of(A3, [1, -1, 1]).take(np.array([False, True, True]))
    np.testing.assert_array_equal(taken.dense(), A3[1:] * [[-1.0], [1.0]])


# ---- the options of play --------------------------------------------------------------------------------------------


WHOLE = "pass a whole number, at least 1"
# Further values of time_limit are in tests/test_bad_data.py, and of threads in OF.
OPTIONS = {
    "rounds 0": ({"rounds": 0}, "rounds is 0", WHOLE),
    "rounds -1": ({"rounds": -1}, "rounds is -1", WHOLE),
    "rounds 1.5": ({"rounds": 1.5}, "rounds is 1.5", WHOLE),
    "rounds 10.0": ({"rounds": 10.0}, "rounds is 10.0", WHOLE),
    "rounds nan": ({"rounds": float("nan")}, "rounds is nan", WHOLE),
    "rounds inf": ({"rounds": float("inf")}, "rounds is inf", WHOLE),
    "rounds True": ({"rounds": True}, "rounds is True", WHOLE),
    "rounds None": ({"rounds": None}, "rounds is None", WHOLE),
    "rounds as a string": ({"rounds": "10"}, "rounds is '10'", WHOLE),
    "record 0": ({"record": [0, 1]}, "record is 0", WHOLE),
    "record 1.5": ({"record": [1.5]}, "record is 1.5", WHOLE),
    "record as a string": ({"record": ["a"]}, "record is 'a'", WHOLE),
    "record beyond the rounds": ({"record": [3, 11], "rounds": 10}, "record asks for round 11", "only 10 are played"),
    "record a number": ({"record": 5}, "record", "5"),
    "time_limit 0": ({"time_limit": 0}, "time_limit is 0", "positive number of seconds"),
    "threads 0": ({"threads": 0}, "threads is 0", "at least 1"),
    "callback a number": ({"callback": 3}, "callback", "3"),
    "method unknown": ({"method": "perceptrn"}, "no method 'perceptrn'", "did you mean 'perceptron'?"),
    "method empty": ({"method": ""}, "no method ''", "smooth_perceptron"),
    "method None": ({"method": None}, "method is None", "pass a name"),
    "method not called": ({"method": methods.smooth_perceptron}, "method is <function", "call it"),
}


@pytest.mark.parametrize(("options", "what", "fix"), cells(OPTIONS))
def test_options(options, what, fix):
    refused(lambda: play(A3, **options), what, fix)


SETS = {
    "caps too few": ({"caps": [1.0, 1.0]}, "caps", "3 rows", "(2,)"),
    "caps a number": ({"caps": 0.5}, "caps", "3 rows", "()"),
    "caps 0": ({"caps": [1.0, 0.0, 1.0]}, "caps[1] is 0.0", "positive", "leave the row out"),
    "caps negative": ({"caps": [1.0, 1.0, -0.5]}, "caps[2] is -0.5", "positive", "leave the row out"),
    "caps nan": ({"caps": [np.nan, 1.0, 1.0]}, "caps[0] is nan", "positive", "leave the row out"),
    "caps that hold too little": ({"caps": [0.3, 0.3, 0.3]}, "caps add up to 0.9", "mass 1", "nu"),
    "caps that hold too little of a half": (
        {"caps": [0.4, 0.4, 0.4], "halves": [0, 1, 1]},
        "caps add up to 0.4",
        "mass 0.5",
        "nu",
    ),
    "caps as strings": ({"caps": ["a", "b", "c"]}, "caps", "must hold real numbers", "<U1"),
    "caps complex": ({"caps": np.array([1j, 1, 1])}, "caps", "must hold real numbers", "complex128"),
    "halves too few": ({"halves": [0, 1]}, "halves must hold 0 or 1", "3 rows", "(2,)"),
    "halves a number": ({"halves": 1}, "halves must hold 0 or 1", "3 rows", "()"),
    "halves 2": ({"halves": [0, 1, 2]}, "halves must hold 0 or 1", "3 rows", "its values are [0 1 2]"),
    "halves -1": ({"halves": [-1, 1, 1]}, "halves must hold 0 or 1", "3 rows", "-1"),
    "halves nan": ({"halves": [0, 1, np.nan]}, "halves must hold 0 or 1", "3 rows", "nan"),
    "halves as strings": ({"halves": ["0", "1", "1"]}, "halves must hold 0 or 1", "3 rows", "its values are ['0'"),
    "halves all 0": ({"halves": [0, 0, 0]}, "halves must contain both 0 and 1", "both 0", "halves must"),
    "halves all 1": ({"halves": [1, 1, 1]}, "halves must contain both 0 and 1", "both 0", "halves must"),
    "p0 too few": ({"p0": [1.0, 1.0]}, "3 rows", "(2,)", "p0"),
    "p0 a number": ({"p0": 1.0}, "3 rows", "()", "p0"),
    "p0 0": ({"p0": [1.0, 0.0, 1.0]}, "p0[1] is 0.0", "positive and finite", "leave the row out"),
    "p0 negative": ({"p0": [-1.0, 1.0, 1.0]}, "p0[0] is -1.0", "positive and finite", "leave the row out"),
    "p0 nan": ({"p0": [1.0, 1.0, np.nan]}, "p0[2] is nan", "positive and finite", "leave the row out"),
    "p0 inf": ({"p0": [1.0, 1.0, np.inf]}, "p0[2] is inf", "positive and finite", "leave the row out"),
    "p0 above its cap": ({"p0": [8.0, 1.0, 1.0], "caps": [0.5, 0.5, 0.5]}, "p0[0] is 0.8", "cap 0.5", "of the total"),
    "p0 as strings": ({"p0": ["a", "b", "c"]}, "p0", "must hold real numbers", "<U1"),
    "p0 complex": ({"p0": np.array([1j, 1, 1])}, "p0", "must hold real numbers", "complex128"),
    "p0 ragged": ({"p0": [[1.0], 1.0, 1.0]}, "p0", "must hold real numbers", "inhomogeneous"),
}


@pytest.mark.parametrize(("options", "first", "second", "third"), cells(SETS))
def test_sets(options, first, second, third):
    refused(lambda: play(A3, **options), first, second, third)


def test_sets_are_refused_by_the_simplex_itself():
    refused(lambda: Simplex(3, caps=np.array([0.3, 0.3, 0.3])), "caps add up to 0.9")
    refused(lambda: Simplex(3, halves=np.zeros(3)), "halves must contain both 0 and 1")


BASELINES = {
    "perceptron, caps": ("perceptron", {}, {"caps": [1.0] * 3}, "perceptron supports neither caps (nu) nor halves (a free"),
    "perceptron, halves": ("perceptron", {}, {"halves": [0, 1, 1]}, "intercept 'penalized' or 'none'"),
    "p-norm, halves": (
        "p_norm_perceptron",
        {},
        {"halves": [0, 1, 1]},
        "p_norm_perceptron supports neither caps (nu) nor halves (a free",
    ),
    "gradient descent, caps": ("gradient_descent", {}, {"caps": [1.0] * 3}, "gradient_descent supports neither"),
    "gradient form, halves": ("accelerated_perceptron", {"form": "gradient"}, {"halves": [0, 1, 1]}, "use form='published'"),
}


@pytest.mark.parametrize(("name", "options", "sets", "message"), cells(BASELINES))
def test_sets_that_a_method_does_not_know(name, options, sets, message):
    refused(lambda: play(A3, methods.get(name)(**options), 3, **sets), message)


P0 = {
    "huge": [1.7e308, 1.7e308, 1.0],
    "tiny": [1e-320, 1e-320, 1e-320],
    "far apart": [1e-300, 1.0, 1e300],
    "one denormal": [5e-324, 1.0, 1.0],
}


@pytest.mark.parametrize("p0", cells({name: (p0,) for name, p0 in P0.items()}))
@pytest.mark.parametrize("method", ["smooth_perceptron", "mirror_prox_perceptron", "accelerated_p_norm_perceptron"])
def test_extreme_starting_weights(p0, method):
    """Positive and finite, so normalized as any other; or refused by name where float64 cannot."""
    valid_or_refused(A3, lambda: play(A3, method, 50, p0=p0), "p0")


# ---- the methods and their options ----------------------------------------------------------------------------------


FACTORIES = {
    **{f"{name}, form": (name, {"form": "nope"}, "form is 'nope'; choose one of") for name in methods.names()},
    "smooth, eta 1": ("smooth_perceptron", {"eta": 1.0}, "eta is 1.0; choose one of 0.25, 0.5"),
    "smooth, eta nan": ("smooth_perceptron", {"eta": float("nan")}, "eta is nan; choose one of 0.25, 0.5"),
    "smooth, eta None": ("smooth_perceptron", {"eta": None}, "eta is None; choose one of 0.25, 0.5"),
    "accelerated, eta": ("accelerated_perceptron", {"eta": 0.3}, "eta is 0.3; choose one of 0.25, 0.5"),
    "accelerated, theta": ("accelerated_perceptron", {"theta": "x"}, "theta is 'x'; choose one of 'matched', 'original'"),
    "original game": ("accelerated_perceptron", {"theta": "original", "form": "game"}, "has no game form and no eta"),
    "original eta": ("accelerated_perceptron", {"theta": "original", "eta": 0.5}, "has no game form and no eta"),
    "p-norm, w_set": ("accelerated_p_norm_perceptron", {"w_set": "cube"}, "w_set is 'cube'; choose one of 'ball', 'free'"),
    "normalized, step": ("normalized_gradient_descent", {"step": 1.0}, "step is 1.0; choose one of 'constant', '1/sqrt(t)'"),
    "perceptron, output": ("perceptron", {"output": "best"}, "output is 'best'; choose one of 'last', 'average'"),
    "smooth p-norm, eta too large": ("smooth_p_norm_perceptron", {"eta": 1.0}, "eta is 1.0; the guarantee needs 0 < eta <="),
    "smooth p-norm, eta 0": ("smooth_p_norm_perceptron", {"eta": 0.0}, "eta is 0.0; the guarantee needs 0 < eta <="),
    "smooth p-norm, eta nan": ("smooth_p_norm_perceptron", {"eta": float("nan")}, "eta is nan; the guarantee needs"),
    "smooth p-norm, eta as a string": ("smooth_p_norm_perceptron", {"eta": "x"}, "eta is"),
}


@pytest.mark.parametrize(("name", "options", "message"), cells(FACTORIES))
def test_factories(name, options, message):
    refused(lambda: methods.get(name)(**options), message)


P_NORM = ("p_norm_perceptron", "accelerated_p_norm_perceptron", "smooth_p_norm_perceptron")


@pytest.mark.parametrize("name", P_NORM)
@pytest.mark.parametrize("p", [1.999, 1, 0, -3.0, float("nan"), float("inf"), "3", None, True, 3 + 0j], ids=repr)
def test_norms_out_of_range(name, p):
    refused(lambda: methods.get(name)(p=p), f"the norm p is {p!r}", "2 <= p")


@pytest.mark.parametrize("name", P_NORM)
@pytest.mark.parametrize("p", [2, 2.0, np.float64(3.0), np.float32(3.0), np.int64(4)], ids=repr)
def test_norms_of_any_numeric_type(name, p):
    assert methods.get(name)(p=p).norm == float(p)


@pytest.mark.parametrize("name", P_NORM)
@pytest.mark.parametrize("p", [100.0, 1e4, 1e8, 1e15, 1e17, 1e300])
def test_enormous_norms(name, p):
    """q - 1 = 1/(p - 1) loses its digits and becomes 0 in float64 at some p: larger ones are refused by name."""
    if p <= 1e6:
        assert_valid(A3, play(A3, methods.get(name)(p=p), 20))
    else:
        refused(lambda: methods.get(name)(p=p), f"the norm p is {p!r}")  # and not an eta that nobody passed


def test_get_and_register():
    refused(lambda: methods.get("svm"), "there is no method 'svm'", *methods.names())
    refused(lambda: methods.get(None), "there is no method None")
    before = methods.names()
    add = methods.register("perceptron", reference="nobody", forms=("published",))
    refused(lambda: add(lambda: None), "a method named 'perceptron' is registered already")
    assert methods.names() == before
    assert methods.get("perceptron").reference != "nobody"


# ---- legal, if odd: a valid bracket ---------------------------------------------------------------------------------


def assert_valid(A, trace):
    """Both ends of the bracket follow from the vectors behind them, recomputed with the range and digits of long doubles.

    γ(w)/‖w‖_q ≤ γ* ≤ ‖Aᵀp‖_p for any w and p, so nothing else is needed. Rounding is relative to the largest row.
    """
    A = np.asarray(A, dtype=np.longdouble)
    R = long_norm(A, trace.norm).max()
    lower, upper = trace.bracket
    assert np.isfinite([lower, upper]).all()
    assert np.isfinite(trace.w).all()
    for name, column in trace.columns.items():
        if column is not None:
            assert not np.isnan(column).any(), name
            assert name == "margin" or np.isfinite(column).all(), name  # that of a long w may be beyond the floats
    w, p = trace.w_best.astype(np.longdouble), trace.p_best.astype(np.longdouble)
    length = long_norm(w, dual_exponent(trace.norm))
    margin = (A @ w).min() / length if length > 0 else 0.0
    assert abs(p.sum() - 1) <= 1e-9
    assert (p >= 0).all()
    hull = long_norm(A.T @ p, trace.norm)
    assert abs(lower - margin) <= 1e-9 * abs(margin) + 1e-12 * R
    assert abs(upper - hull) <= 1e-9 * hull + 1e-12 * R
    assert lower <= upper + 1e-9 * R


def long_norm(x, p):
    """‖x‖_p along the last axis in long doubles, scaled so that no power underflows."""
    x = np.abs(np.asarray(x, dtype=np.longdouble))
    top = x.max(axis=-1, keepdims=True)
    safe = np.where(top > 0, top, 1)
    return safe[..., 0] * ((x / safe) ** np.longdouble(p)).sum(axis=-1) ** (1 / np.longdouble(p)) * (top[..., 0] > 0)


def valid_or_refused(A, run, *parts):
    try:
        trace = run()
    except InputError as error:
        message = str(error)
    else:
        assert_valid(A, trace)
        return
    for part in parts:
        assert part in message, message


RNG = np.random.default_rng(0)
TRIANGLE = np.array([[1.0, 0.2], [0.3, 0.1], [0.3, -0.1]])
LEGAL = {
    "one row": [[3.0, 4.0]],
    "one row, one column": [[-2.0]],
    "all zero": np.zeros((3, 2)),
    "one zero": [[0.0]],
    "a zero row": [[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]],
    "a zero column": [[1.0, 0.0], [2.0, 0.0]],
    "a row and its opposite": [[1.0, 2.0], [-1.0, -2.0], [3.0, 1.0]],
    "one row many times": np.tile([[0.6, 0.8]], (50, 1)),
    "denormals among ordinary rows": [[5e-324, 1e-310], [1.0, 2.0], [2.0, 1e-320]],
    "1e-270": 1e-270 * TRIANGLE,
    "1e150": 1e150 * TRIANGLE,
    "1e-150": 1e-150 * TRIANGLE,
    "rows from 1e-300 to 1": TRIANGLE * np.array([[1e-300], [1.0], [1e-150]]),
    "columns from 1e-300 to 1": TRIANGLE * np.array([1e-300, 1.0]),
}
EXTREME = {
    "1e300": 1e300 * TRIANGLE,
    "1e308": np.full((3, 2), 1e308),
    "the largest float": np.full((2, 1), np.finfo(float).max),
    "rows from 1e-300 to 1e300": TRIANGLE * np.array([[1e300], [1e-300], [1.0]]),
    "columns from 1e-300 to 1e300": TRIANGLE * np.array([1e300, 1e-300]),
    "entries from 1e-300 to 1e300": RNG.standard_normal((8, 3)) * 10.0 ** RNG.integers(-300, 301, (8, 3)),
    "1e-300": 1e-300 * TRIANGLE,
    "1e-310": 1e-310 * TRIANGLE,
    "the smallest float": np.full((2, 2), 5e-324),
}
METHODS = {label: method for label, method in every_method().items() if not method.noisy}  # its own margin


@pytest.mark.parametrize("A", cells({name: (A,) for name, A in LEGAL.items()}))
@pytest.mark.parametrize("method", METHODS)
def test_legal(A, method):
    assert_valid(A, play(A, METHODS[method], 40))


@pytest.mark.parametrize("A", cells({name: (A,) for name, A in EXTREME.items()}))
@pytest.mark.parametrize("method", METHODS)
def test_extreme_scales(A, method):
    """A valid bracket, or an error that says to rescale; no NaN, no warning."""
    valid_or_refused(A, lambda: play(A, METHODS[method], 120), "power of two")


def test_tiny_rows_are_refused_with_the_way_out():
    refused(lambda: play(1e-310 * TRIANGLE), "norm", "too small", "multiply the data by a power of two")


def test_overflowing_norms_are_refused_with_the_way_out():
    refused(lambda: rows.of(np.full((2, 4), 1.7e308)).radius(), "overflows float64", "divide X by a power of two")
    refused(lambda: rows.of(np.full((2, 4), 1.7e308), constant=True).radius(), "overflows float64", "divide X by a power of two")


def test_a_power_of_two_changes_nothing_but_the_units():
    one, other = play(TRIANGLE, rounds=100), play(2.0**500 * TRIANGLE, rounds=100)
    assert other.bracket == (2.0**500 * one.bracket[0], 2.0**500 * one.bracket[1])


@pytest.mark.parametrize("A", cells({name: (LEGAL[name],) for name in ("a zero row", "a row and its opposite", "all zero")}))
@pytest.mark.parametrize("method", METHODS)
def test_no_margin_is_never_reported_as_some(A, method):
    """γ* = 0: whatever is played, no lower bound above rounding."""
    trace = play(A, METHODS[method], 100)
    assert trace.bracket[0] <= 1e-12


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("method", ["smooth_perceptron", "accelerated_perceptron", "nesterov", "normalized_gradient_descent"])
def test_duplicates_change_nothing(storage, method):
    A = np.random.default_rng(1).standard_normal((9, 3)) + np.array([2.0, 0, 0])
    twice = np.concatenate((A, A))
    once = play(A, method, 200)
    again = play(sp.csr_matrix(twice) if storage == "sparse" else twice, method, 200)
    assert again.bracket == pytest.approx(once.bracket, rel=1e-9)


@pytest.mark.parametrize("halves", [[0, 1], [1, 0]])
def test_one_row_a_half(halves):
    """The largest margin of two points with a free intercept is half their distance."""
    trace = play([[1.0, 0.0], [1.0, 4.0]], "mirror_prox_perceptron", 300, halves=halves)
    assert trace.bracket == pytest.approx((np.sqrt(5), np.sqrt(5)), rel=1e-6)


@pytest.mark.parametrize("seconds", [1e-9, float("inf")])
def test_time_limits_that_are_legal(seconds):
    trace = play(A3, rounds=5, time_limit=seconds)
    assert trace.status == ("time-limit" if seconds < 1 else "rounds")
    assert_valid(A3, trace)


def test_legal_options():
    assert play(A3, rounds=np.int64(3), record=[]).t.tolist() == [3]
    assert play(A3, rounds=3, record=(t for t in (1, np.int32(2)))).t.tolist() == [1, 2, 3]
    assert play(A3, rounds=3, caps=[2.0, np.inf, 1.0]).status == "rounds"
    assert play(A3, rounds=3, p0=[1, 2, 3], halves=[True, False, True]).status == "rounds"
