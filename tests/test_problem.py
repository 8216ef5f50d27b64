"""Labels, rows and intercepts as problems and their hashes hold them."""

from __future__ import annotations

import enum
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from test_margin_proofs import INTERCEPTS

from gordan import InputError
from gordan.certificates import problem as problem_module
from gordan.certificates.problem import Problem, read_labels
from gordan.intercepts import Intercept


class Column:
    """What frames have in common."""

    def to_numpy(self):
        return np.array([3, 1, 3])


class Colour(enum.IntEnum):
    RED = 3
    BLUE = 5


LABELS = {
    "whole numbers": ([3, 1, 3], [1, 3], [1, 0, 1]),
    "an array": (np.array([3, 1, 3], dtype=np.uint8), [1, 3], [1, 0, 1]),
    "floats": (np.array([0.5, -0.5, 0.5]), [-0.5, 0.5], [1, 0, 1]),
    "half precision": (np.array([0.5, -0.5, 0.5], dtype=np.float16), [-0.5, 0.5], [1, 0, 1]),
    "booleans": ([True, False, True], [False, True], [1, 0, 1]),
    "text": (("b", "a", "b"), ["a", "b"], [1, 0, 1]),
    "a column": (np.array([[3], [1], [3]]), [1, 3], [1, 0, 1]),
    "a line": (np.array([[3, 1, 3]]), [1, 3], [1, 0, 1]),
    "booleans and numbers": ([True, 0, 1], [0, 1], [1, 0, 1]),
    "numbers of two kinds": ([1, 0.5, True], [0.5, 1.0], [1, 0, 1]),
    "what an Enum stands for": ([Colour.BLUE, Colour.RED, Colour.BLUE], [3, 5], [1, 0, 1]),
    "NumPy's numbers": ([np.int8(3), np.float32(0.5), np.int64(3)], [0.5, 3.0], [1, 0, 1]),
    "large numbers": ([2**1023 - 1, -(2**1023) + 1, 2**1023 - 1], [-(2**1023) + 1, 2**1023 - 1], [1, 0, 1]),
    "a column of a frame": (Column(), [1, 3], [1, 0, 1]),
    "NumPy's text": (np.array(["b", "a", "b"], dtype=object), ["a", "b"], [1, 0, 1]),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_read(name):
    y, distinct, which = LABELS[name]
    found, places = read_labels(y, 3)
    assert found == distinct
    assert [type(label) for label in found] == [type(label) for label in distinct]
    assert np.asarray(places).tolist() == which


BAD_LABELS = {
    "masked": (np.ma.masked_array([1, 2, 3], mask=[False, True, True]), "y[1] is masked"),
    "NaN": (np.array([1.0, math.nan, math.nan]), "y[1] is nan"),
    "infinity": (np.array([1.0, math.inf, 1.0]), "y[1] is inf; pass finite numbers"),
    "infinity in a list": ([1.0, 0.0, -math.inf], "y[2] is -inf; pass finite numbers"),
    "NaN in a list": ([1.0, 0.0, math.nan], "y[2] is nan"),
    "None": ([1, None, 2], "y[1] is None; every row needs a label"),
    "NA": ([1, 2, pd.NA], "y[2] is <NA>; every row needs a label"),
    "NaT": ([pd.NaT, 2, 1], "y[0] is NaT; every row needs a label"),
    "dates": (np.array(["2020-01-01", "NaT", "2021-01-01"], dtype="M8[D]"), "y has labels of type datetime64[D]; use text"),
    "dates in nanoseconds": (np.array([1, 2, 1], dtype="M8[ns]"), "y has labels of type datetime64[ns]; use text"),
    "times": (np.array([1, 2, 1], dtype="m8[ns]"), "y has labels of type timedelta64[ns]; use text"),
    "dates in a list": ([np.datetime64(1, "ns"), np.datetime64(2, "ns"), np.datetime64(1, "ns")], "labels must be text"),
    "bytes": (np.array([b"a", b"b", b"a"]), "y has labels of type |S1; use text"),
    "bytes in a list": ([b"a", b"b", b"a"], "y[0] is b'a'; labels must be text"),
    "sparse": (sp.csr_matrix(np.eye(3)), "y is a sparse matrix; pass y.toarray()"),
    "a sparse column": (sp.csr_matrix(np.ones((3, 1))), "y is a sparse matrix; pass y.toarray()"),
    "two columns": (np.ones((3, 2)), "its shape is (3, 2)"),
    "three dimensions": (np.ones((3, 1, 1)), "its shape is (3, 1, 1)"),
    "no dimension": (np.array(3), "its shape is ()"),
    "a set": ({1, 2}, "it is of type set"),
    "a dictionary": ({1: 0, 2: 1}, "it is of type dict"),
    "too few": ([1, 2], "X has 3 rows but y has 2 labels"),
    "too many": ([1, 2, 1, 2], "X has 3 rows but y has 4 labels"),
    "text and numbers": ([1, "a", 2], "mixes text and numbers"),
    "too large": ([1, 2**1023, 2], "y[1] is a number of 1024 bits"),
    "far below zero": ([1, -(2**1023), 2], "y[1] is a number of 1024 bits"),
    "long floats": (np.array([0.5, -0.5, 0.5], dtype=np.longdouble), "y has labels of type float"),
    "long floats in a list": ([np.longdouble(0.5), np.longdouble(1.5), np.longdouble(0.5)], "labels must be text"),
    "lists": ([[1], [2], [1, 2]], "labels must be text, numbers or booleans"),
    "complex": ([1j, 2j, 1j], "y[0] is 1j"),
}


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("end", ["least", "largest"])
def test_labels_that_can_be_counted_are_read_as_numpy_reads_them(dtype, end):
    info = np.iinfo(dtype)
    first = int(info.min) if end == "least" else int(info.max) - 255  # of the narrow types: over their whole range
    y = np.array([first + int(k) for k in np.random.default_rng(5).choice([0, 3, 4, 40, 255], 400)], dtype=dtype)
    found, places = read_labels(y, 400)
    expected, inverse = np.unique(y, return_inverse=True)
    assert found == expected.tolist()
    assert {*map(type, found)} == {int}
    assert np.array_equal(places, inverse)


@pytest.mark.parametrize("name", BAD_LABELS)
def test_labels_that_are_refused(name):
    y, message = BAD_LABELS[name]
    with pytest.raises(InputError) as caught:
        read_labels(y, 3)
    assert message in str(caught.value)


def test_classes_are_two():
    X = [[0.0], [1.0], [2.0]]
    for y, message in (([1, 1, 1], "one class only, 1;"), ([0, 1, 2], "y has 3 classes")):
        with pytest.raises(InputError, match=message):
            Problem.of(X, y)
    problem = Problem.of(X, ["b", "a", "b"])
    assert problem.classes == ("a", "b")
    assert problem.signs.tolist() == [1, -1, 1]
    assert problem.signs.dtype == np.int8
    assert problem.signs_for(("a", "b")).tolist() == [1, -1, 1]
    assert problem.signs_for(("b", "a")).tolist() == [-1, 1, -1]
    assert (problem.X.n, problem.X.d) == (3, 1)
    assert problem.in_memory_if_small() is problem


def test_parts_of_problems_and_devices(monkeypatch):
    problem = Problem.of([[0.0, 5.0], [1.0, 6.0], [2.0, 7.0]], ["b", "a", "b"])
    part = problem.part(np.array([2, 1]))
    assert (part.X.n, part.X.d, part.signs.tolist(), part.classes) == (2, 2, [1, -1], ("a", "b"))
    assert [part.storage.row(i)[1].tolist() for i in range(2)] == [[2.0, 7.0], [1.0, 6.0]]
    assert part.storage.n == 2
    other = Problem.of([[1.0, 2.0]] * 2, [0, 1]).storage
    monkeypatch.setattr(problem_module, "in_memory_if_small", lambda storage: other)
    near = problem.in_memory_if_small()
    assert (near.X.n, near.X.d, near.X.storage, near.storage) == (2, 2, other, other)
    assert near.signs is problem.signs
    asked = []
    monkeypatch.setattr(problem_module, "stored", lambda X, device: asked.append(device) or other)
    Problem.of(None, [0, 1], "cuda")
    Problem.of(None, [0, 1])
    assert asked == ["cuda", None]


@pytest.mark.parametrize("storage", [np.array, sp.csr_array])
def test_entries_that_are_not_finite_are_named(storage):
    X = np.array([[1e308, 1e308], [1e308, 5.0]])
    Problem.of(storage(X), [0, 1]).require_finite()  # although the sum of all is not
    for value in (math.nan, math.inf, -math.inf):
        X[1, 1] = value
        with pytest.raises(InputError, match=rf"X\[1, 1\] is {value}"):
            Problem.of(storage(X), [0, 1]).require_finite()


@pytest.mark.parametrize(
    ("label", "text"),
    [
        *(("a", '"a"'), ("é", '"\\u00e9"'), (1, "1"), (True, "1"), (1.0, "1"), (-0.0, "0"), (0.5, "0x1.0000000000000p-1")),
        *((-7, "-7"), (math.inf, "inf"), (-math.inf, "-inf"), (2**200, str(2**200)), (2.0**80, str(2**80))),
    ],
)
def test_labels_in_the_hash(label, text):
    assert problem_module.class_text(label) == text


def test_the_hash_does_not_see_the_order_of_entries():
    data, indices, indptr = np.array([3.0, 1.0, 2.0]), np.array([2, 0, 1]), np.array([0, 2, 3])
    unsorted = Problem.of(sp.csr_array((data, indices, indptr), shape=(2, 3)), [1, 0])
    plain = Problem.of([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]], [1, 0])
    assert unsorted.hash("free") == plain.hash("free")
    assert plain.hash("free") != plain.hash("none")


def test_intercepts():
    for intercept in INTERCEPTS:
        assert Intercept.of(intercept) == intercept
    with pytest.raises(InputError, match="intercept is 'fre'; choose one of 'free', 'penalized', 'none'"):
        Intercept.of("fre")
