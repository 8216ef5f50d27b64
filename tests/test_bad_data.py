"""The table of bad data: every line over dense, sparse and memory-mapped data, in every function; refused, or a valid answer.

The number of cells is that of: python -m pytest tests/test_bad_data.py -k "cell" -q
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pytest
import scipy.sparse as sp
from problems import cells, refused
from test_bad_input import BAD_VALUES, INVALID, objects, spoiled, stored, with_entry

import gordan
from gordan import InputError, play, rows
from gordan.certificates import problem
from gordan.certificates.problem import Problem

GOOD = np.array([[2.0, 1.0, 0.0], [3.0, -1.0, 1.0], [1.0, 0.5, 2.0], [2.0, 2.0, 0.0], [-1.0, 0.0, 1.0], [-2.0, 1.0, 0.0]])
GOOD = np.vstack([GOOD, [[-1.5, -2.0, 1.0], [-0.5, -1.0, 0.0]]])
GOOD_Y = np.array([1, 1, 1, 1, 0, 0, 0, 0])
GOOD_CERTIFICATE = gordan.separate(GOOD, GOOD_Y).certificate
STORED = ("dense", "sparse", "memory map")


def checked(X, y):
    """`verify` on such data, as a function that refuses: a certificate for other data is rejected, never accepted."""
    assert not gordan.verify(GOOD_CERTIFICATE, X, y), "accepted"
    raise InputError("rejected")


CALLS = {
    "separate": lambda X, y: gordan.separate(X, y),
    "separate none": lambda X, y: gordan.separate(X, y, intercept="none"),
    "maximize_margin": lambda X, y: gordan.maximize_margin(X, y, max_iter=300),
    "maximize_margin nu": lambda X, y: gordan.maximize_margin(X, y, nu=0.5, intercept="none", max_iter=300),
    "maximize_margin smooth": lambda X, y: gordan.maximize_margin(X, y, method="smooth_perceptron", max_iter=300),
    "maximize_margin weights": lambda X, y: gordan.maximize_margin(X, y, sample_weight=[0.0, *[1.0] * 7], max_iter=300),
    "diagnose": lambda X, y: gordan.diagnose(X, y),
    "verify": checked,
}


def entry(value, place=(5, 1)):
    def make():
        X = GOOD.copy()
        X[place] = value
        return X, GOOD_Y

    return make


def labelled(y):
    return lambda: (GOOD, y)


NA = type("NAType", (), {"__repr__": lambda self: "<NA>"})()
REFUSED = {
    **{f"{name} in X": (entry(value), f"X[5, 1] is {name};", "finite") for name, value in BAD_VALUES.items()},
    "nan in the first entry": (entry(np.nan, (0, 0)), "X[0, 0] is nan;", "finite"),
    "nan in the last entry": (entry(np.nan, (7, 2)), "X[7, 2] is nan;", "finite"),
    "nan in float32": (lambda: (entry(np.nan)()[0].astype(np.float32), GOOD_Y), "X[5, 1] is nan;", "finite"),
    "nan in y": (labelled(np.where(np.arange(8) == 3, np.nan, GOOD_Y)), "y[3] is nan", "every row needs a label"),
    "None in y": (labelled([1, 1, None, 1, 0, 0, 0, 0]), "y[2] is None", "every row needs a label"),
    "NA in y": (labelled([1, NA, 1, 1, 0, 0, 0, 0]), "y[1] is <NA>", "every row needs a label"),
    "infinity in y": (labelled(np.where(GOOD_Y == 1, np.inf, 0.0)), "y[", "pass finite numbers or text for labels"),
    "nan among strings": (labelled(["a", float("nan"), "a", "a", "b", "b", "b", "b"]), "y[1] is nan", "every row needs a label"),
    "no rows": (lambda: (GOOD[:0], GOOD_Y[:0]), "0 rows and 3 columns", "at least one"),
    "no columns": (lambda: (GOOD[:, :0], GOOD_Y), "8 rows and 0 columns", "at least one"),
    "one class": (labelled(np.ones(8)), "one class only, 1.0", "two are needed"),
    "three classes": (labelled(np.arange(8) % 3), "y has 3 classes", "pass y == one of them"),
    "y too short": (labelled(GOOD_Y[:7]), "X has 8 rows", "y has 7 labels"),
    "y too long": (labelled(np.append(GOOD_Y, 1)), "X has 8 rows", "y has 9 labels"),
    "y a matrix": (labelled(np.ones((8, 2))), "(8, 2)", "pass"),
    "y a number": (labelled(3), "of type int", "one label per row"),
    "y of objects": (labelled([(1,), *[(0,)] * 7]), "y[0] is (1,)", "text, numbers or booleans"),
    "y of text and numbers": (labelled(["a", 1, 1, 1, 0, 0, 0, 0]), "mixes text and numbers", "one kind"),
    "complex X": (lambda: (GOOD + 1j, GOOD_Y), "X[0, 0]", "real numbers"),
}
DENSE_ONLY = {
    "1-D": (lambda: (GOOD[:, 0], GOOD_Y), "(8,)", "reshape(X, (-1, 1))"),
    "3-D": (lambda: (GOOD[:, :, None], GOOD_Y), "(8, 3, 1)", "rows and columns"),
    "strings": (lambda: (GOOD.astype(str), GOOD_Y), "X[0, 0]", "real numbers"),
    "object string": (lambda: (objects("abc"), [0, 1]), "X[1, 2]", "'abc'"),
    "object None": (lambda: (objects(None), [0, 1]), "X[1, 2]", "None"),
    "None": (lambda: (None, GOOD_Y), "of type NoneType", "2-D array"),
    "ragged": (lambda: ([[1.0, 2.0], [3.0]], [0, 1]), "cannot be read", "2-D array"),
    "integers beyond 2**53": (lambda: (with_entry(2**53 + 1, np.int64), [0, 1]), "X[1, 2]", "2**53"),
    "masked": (lambda: (np.ma.masked_equal(GOOD, 2.0), GOOD_Y), "X[0, 0] is masked", "fill"),
}
SPOILED = {
    name: (lambda arrays=arrays: (spoiled(**arrays), [0, 1, 0]), "CSR matrix is not valid", "rebuild")
    for name, arrays in INVALID.items()
}
CELLS = [
    *(
        pytest.param(call, storage, *row, id=f"{call}-{storage}-{name}")
        for call in CALLS
        for storage in STORED
        for name, row in REFUSED.items()
    ),
    *(
        pytest.param(call, "as it is", *row, id=f"{call}-{name}")
        for call in CALLS
        for name, row in (DENSE_ONLY | SPOILED).items()
    ),
]


@pytest.mark.parametrize(("call", "storage", "make", "first", "second"), CELLS)
def test_bad_data_is_refused(call, storage, make, first, second, tmp_path):
    """An InputError that says where and what to do; `verify` may also reject, and accepts nothing."""
    X, y = make()
    if storage != "as it is" and not (storage == "sparse" and 0 in np.shape(X)):
        X = stored(X, storage, tmp_path)
    with pytest.raises(InputError) as caught:
        CALLS[call](X, y)
    if str(caught.value) != "rejected":
        assert first in str(caught.value), str(caught.value)
        assert second in str(caught.value), str(caught.value)


def answers(X, y):
    """Everything the functions say about X, y, with certificates that are accepted; as plain facts."""
    verdict = gordan.separate(X, y)
    result = gordan.maximize_margin(X, y)
    soft = gordan.maximize_margin(X, y, nu=0.5)
    diagnosis = gordan.diagnose(X, y)
    for answer in (verdict, result, soft, diagnosis):
        assert gordan.verify(answer.certificate, X, y)
    return verdict.status, result.status, soft.status, diagnosis.kind, result.margin, soft.margin


@pytest.fixture(scope="module")
def good_answers():
    return answers(GOOD, GOOD_Y)


def same_answers(X, y, expected):
    """The same verdicts; brackets that overlap."""
    found = answers(X, y)
    assert found[:4] == expected[:4]
    for one, other in zip(found[4:], expected[4:], strict=True):
        assert one[0] <= other[1]
        assert other[0] <= one[1]


def untouched(X):
    """A copy of everything that X holds, to compare with afterwards."""
    if not sp.issparse(X):
        return [np.array(X)]
    return [np.array(part) for part in (X.data, *(X.coords if X.format == "coo" else (X.indices, X.indptr)))]


def unsorted():
    """GOOD as CSR with its entries backwards in each row, one of them in two parts, and explicit zeros."""
    data, indices, indptr = [], [], [0]
    for row in GOOD:
        for j in range(2, -1, -1):
            data += [row[j] / 2, row[j] / 2] if j == 1 else [row[j]]
            indices += [1, 1] if j == 1 else [j]
        indptr.append(len(data))
    return sp.csr_array((np.array(data), np.array(indices), np.array(indptr)), shape=GOOD.shape)


def swapped_bytes(X):
    return X.astype(X.dtype.newbyteorder(">"))


def int64_indices():
    X = sp.csr_array(GOOD)
    return sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


ODD = {
    **{f"as {kind}": (lambda kind=kind: (2 * GOOD).astype(kind)) for kind in ("int8", "int16", "int32", "int64")},
    **{f"as {kind}": (lambda kind=kind: (2 * GOOD).astype(kind)) for kind in ("float16", "float32", "object", "longdouble")},
    "as a list": lambda: (2 * GOOD).tolist(),
    "read-only": lambda: _frozen(2 * GOOD),
    "Fortran order": lambda: np.asfortranarray(2 * GOOD),
    "negative strides": lambda: (2 * GOOD)[::-1, ::-1].copy()[::-1, ::-1],
    "every other row of a larger array": lambda: np.repeat(2 * GOOD, 2, axis=0)[::2],
    "swapped bytes": lambda: swapped_bytes(2 * GOOD),
    "CSR": lambda: sp.csr_matrix(2 * GOOD),
    "CSR unsorted, duplicates, zeros": lambda: 2 * unsorted(),
    "CSR with int64 indices": lambda: 2 * int64_indices(),
    "CSR of int8": lambda: sp.csr_array((2 * GOOD).astype(np.int8)),
    "CSC": lambda: sp.csc_array(2 * GOOD),
    "COO": lambda: sp.coo_array(2 * GOOD),
    "BSR": lambda: sp.bsr_array(2 * GOOD),
    "LIL": lambda: sp.lil_array(2 * GOOD),
    "DOK": lambda: sp.dok_array(2 * GOOD),
    "DIA": lambda: sp.dia_array(2 * GOOD),
}


def _frozen(X):
    X.flags.writeable = False
    return X


@pytest.fixture(scope="module")
def doubled_answers():
    return answers(2 * GOOD, GOOD_Y)


@pytest.mark.parametrize("kind", ODD)
def test_odd_storage_changes_no_answer(kind, doubled_answers):
    """The answers for the numbers themselves, and X as it was."""
    X = ODD[kind]()
    plain = isinstance(X, np.ndarray) or (sp.issparse(X) and X.format in ("csr", "csc", "coo"))
    before = untouched(X) if plain else None
    same_answers(X, GOOD_Y, doubled_answers)
    if plain:
        assert all(np.array_equal(one, other) for one, other in zip(before, untouched(X), strict=True))


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64", "bool"])
def test_unsigned_values_do_not_wrap(kind):
    """Nothing wraps: -x of an unsigned x is negative."""
    X = np.array([[1, 0], [1, 1], [0, 1], [0, 0]]).astype(kind)
    y = [1, 1, 0, 0]
    same_answers(X, y, answers(X.astype(float), y))


LABELS_OF_ALL_KINDS = {
    "strings": np.where(GOOD_Y == 1, "yes", "no"),
    "booleans": GOOD_Y == 1,
    "floats": 2.0 * GOOD_Y - 1,
    "int8": GOOD_Y.astype(np.int8),
    "a column": GOOD_Y[:, None],
    "a list": GOOD_Y.tolist(),
}


@pytest.mark.parametrize("kind", LABELS_OF_ALL_KINDS)
@pytest.mark.parametrize("storage", STORED)
def test_labels_of_all_kinds(kind, storage, good_answers, tmp_path):
    same_answers(stored(GOOD, storage, tmp_path), LABELS_OF_ALL_KINDS[kind], good_answers)


def test_nullable_labels(good_answers):
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'gordan[data]'")
    same_answers(GOOD, pandas.array(GOOD_Y, dtype="Int64"), good_answers)
    same_answers(GOOD, pandas.Series(GOOD_Y == 1, dtype="boolean"), good_answers)
    for labels in (pandas.array([*GOOD_Y[:-1], pandas.NA], dtype="Int64"), pandas.Series([*"ababaab", None], dtype="string")):
        for call in CALLS.values():
            refused(lambda call=call, labels=labels: call(GOOD, labels), "y[7] is ", "every row needs a label")


@pytest.mark.parametrize("storage", STORED)
def test_equal_points(storage, tmp_path):
    """The same point with opposite labels: a witness of two rows. With the same label: nothing changes."""
    X = np.vstack([GOOD, GOOD[2]])
    for y, status in ((np.append(GOOD_Y, 0), "not-separable"), (np.append(GOOD_Y, 1), "solved")):
        given = stored(X, storage, tmp_path)
        result = gordan.maximize_margin(given, y)
        assert result.status == status
        assert gordan.verify(result.certificate, given, y)
        assert gordan.separate(given, y).separable == (status == "solved")
        if status == "solved":
            assert result.margin == pytest.approx(gordan.maximize_margin(GOOD, GOOD_Y).margin, rel=1e-9)
            assert gordan.diagnose(given, y).kind == "complete"
        else:
            assert result.witness == gordan.Witness((2, 8), (1, 1)) == gordan.separate(given, y).witness
            assert gordan.diagnose(given, y).kind in ("overlap", "quasi-complete")


@pytest.mark.parametrize("storage", STORED)
def test_a_row_of_zeros(storage, tmp_path):
    """Without intercept a witness by itself; with one an ordinary row."""
    X, y = stored(np.vstack([GOOD, np.zeros(3)]), storage, tmp_path), np.append(GOOD_Y, 0)
    for call in (gordan.separate, gordan.maximize_margin):
        found = call(X, y, intercept="none")
        assert found.status == "not-separable"
        assert found.witness == gordan.Witness((8,), (1,))
        assert gordan.verify(found.certificate, X, y)
        assert call(X, y).status in ("separable", "solved")
    assert gordan.diagnose(X, y).kind == "complete"
    assert gordan.diagnose(X, y, intercept="none").kind == "quasi-complete"


def test_a_score_of_exactly_zero_is_not_on_the_right_side():
    """Is not on the right side."""
    certificate = gordan.Certificate("separator", "none", (0, 1), (2, 2), w=(1.0, 1.0), b=0.0)
    assert gordan.verify(certificate, [[1.0, -0.5], [-1.0, 0.5]], [1, 0])
    assert not gordan.verify(certificate, [[1.0, -1.0], [-1.0, 0.5]], [1, 0])


SCALES = {
    **{f"times {scale:g}": (lambda scale=scale: scale * GOOD) for scale in (1e-310, 1e-300, 1e-150, 1e150, 1e300)},
    "the smallest floats": lambda: 5e-324 * GOOD,
    "the largest floats": lambda: np.finfo(float).max * (GOOD / 3),
    "rows from 1e-300 to 1e300": lambda: GOOD * 10.0 ** np.linspace(-300, 300, 8)[:, None],
    "columns from 1e-300 to 1e300": lambda: GOOD * np.array([1e300, 1e-300, 1.0]),
    "columns from 1e-300 to 1": lambda: GOOD * np.array([1e-300, 1e-150, 1.0]),
    "a denormal among ordinary entries": lambda: np.where(GOOD == 1, 5e-324, GOOD),
    "entries from 1e-300 to 1e300": lambda: GOOD * 10.0 ** np.random.default_rng(0).integers(-300, 301, GOOD.shape),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("storage", STORED)
def test_extreme_scales(storage, scale, tmp_path):
    """The right verdict, and a valid margin or an error that says to rescale; no warning."""
    X = SCALES[scale]()
    given = stored(X, storage, tmp_path)
    for intercept in ("free", "none", "penalized"):
        constant = [] if intercept == "none" else [1]
        rows = [[x if label else -x for x in [*row, *constant]] for row, label in zip(X.tolist(), GOOD_Y, strict=True)]
        truth = oracle.separable(rows)
        verdict = gordan.separate(given, GOOD_Y, intercept=intercept)
        assert verdict.separable is truth
        assert gordan.verify(verdict.certificate, given, GOOD_Y)
        for options in ({}, {"nu": 0.5}, {"method": "smooth_perceptron", "max_iter": 50}):
            try:
                result = gordan.maximize_margin(given, GOOD_Y, intercept=intercept, **options)
            except InputError as error:
                assert "power of two" in str(error)  # noqa: PT017
            else:
                assert (result.status == "not-separable") == (not truth)
                assert gordan.verify(result.certificate, given, GOOD_Y)
        diagnosis = gordan.diagnose(given, GOOD_Y, intercept=intercept)
        assert (diagnosis.kind == "complete") == truth
        assert diagnosis.proved


MARGIN_OPTIONS = {
    "sample_weight too short": ({"sample_weight": [1.0] * 7}, "8 rows", "(7,)"),
    "sample_weight in a matrix": ({"sample_weight": np.ones((8, 1))}, "8 rows", "(8, 1)"),
    "sample_weight negative": ({"sample_weight": [1, 1, -1, 1, 1, 1, 1, 1]}, "sample_weight[2] is -1.0", "not negative"),
    "sample_weight nan": ({"sample_weight": [1, 1, 1, np.nan, 1, 1, 1, 1]}, "sample_weight[3] is nan", "finite"),
    "sample_weight inf": ({"sample_weight": [np.inf, *[1] * 7]}, "sample_weight[0] is inf", "finite"),
    "sample_weight as strings": ({"sample_weight": list("11111111")}, "sample_weight", "real numbers"),
    "sample_weight a string": ({"sample_weight": "balanced"}, "sample_weight", "real numbers"),
    "sample_weight zero for a class": ({"sample_weight": GOOD_Y.astype(float)}, "class 0 have weight zero", "two classes"),
    "sample_weight all zero": ({"sample_weight": np.zeros(8)}, "weight zero", "two classes"),
    "sample_weight too far apart": ({"sample_weight": [1e300, *[1e-300] * 7], "nu": 0.5}, "rows 1 and 0", "too far apart"),
    "weights that overflow": ({"sample_weight": [1e308] * 8, "class_weight": {1: 1e10}, "nu": 0.5}, "overflows", "divide"),
    "class_weight a word": ({"class_weight": "even"}, "class_weight is 'even'", "'balanced'"),
    "class_weight a list": ({"class_weight": [1, 2]}, "class_weight is [1, 2]", "'balanced'"),
    "class_weight of others": ({"class_weight": {2: 1.0}}, "class_weight names 2", "0, 1"),
    "class_weight negative": ({"class_weight": {0: -1.0}}, "class_weight[0] is -1.0", "not negative"),
    "class_weight nan": ({"class_weight": {0: float("nan")}}, "class_weight[0] is nan", "finite"),
    "class_weight a string": ({"class_weight": {0: "1"}}, "class_weight[0] is '1'", "finite"),
    "class_weight zero": ({"class_weight": {0: 0}}, "class 0 have weight zero", "two classes"),
    **{f"nu {nu!r}": ({"nu": nu}, f"nu is {nu!r}", "(0, 1]") for nu in (0, -0.5, 1.5, float("nan"), "0.5", True)},
    "nu infeasible": ({"nu": 0.9, "class_weight": {0: 1, 1: 3}}, "nu is 0.9", "(0, 0.5]: twice the share of the lighter class"),
    **{f"norm {p!r}": ({"norm": p}, f"norm is {p!r}", "1 <= p <= inf") for p in (0.99, 0, float("nan"), "2", None, True)},
    **{f"tol {tol!r}": ({"tol": tol}, f"tol is {tol!r}", "positive number") for tol in (0, -1.0, float("nan"), "1", None)},
    **{f"max_iter {n!r}": ({"max_iter": n}, f"max_iter is {n!r}", "whole number") for n in (0, -1, 1.5, "3", True)},
    **{f"time_limit {t!r}": ({"time_limit": t}, f"time_limit is {t!r}", "positive number") for t in (0, -1, float("nan"), "1")},
    "threads 0": ({"threads": 0}, "threads is 0", "whole number"),
    **{f"random_state {s!r}": ({"random_state": s}, f"random_state is {s!r}", "whole number") for s in (1.5, "a", float("nan"))},
    "intercept": ({"intercept": "yes"}, "intercept is 'yes'", "'free', 'penalized', 'none'"),
    "callback": ({"callback": 3}, "callback is 3", "function"),
    "start": ({"start": 3}, "start is 3", "earlier result"),
    "unknown method": ({"method": "svm"}, "there is no method 'svm'", "smooth_perceptron"),
    "a method for another norm": ({"method": "smooth_perceptron", "norm": 3}, "plays for the norm 2, not 3", "p-norm"),
}


@pytest.mark.parametrize(("options", "first", "second"), cells(MARGIN_OPTIONS))
def test_bad_options_of_maximize_margin(options, first, second):
    refused(lambda: gordan.maximize_margin(GOOD, GOOD_Y, **options), first, second)


# One bad value of each option: the checks are those of maximize_margin.
SEPARATE_OPTIONS = {
    name: MARGIN_OPTIONS[name] for name in ("tol 0", "max_iter 0", "time_limit 0", "random_state 1.5", "intercept", "callback")
}


@pytest.mark.parametrize(("options", "first", "second"), cells(SEPARATE_OPTIONS))
def test_separate_checks_its_options(options, first, second):
    refused(lambda: gordan.separate(GOOD, GOOD_Y, **options), first, second)


ASKED = {
    "maximize_margin": lambda stop: gordan.maximize_margin(GOOD, GOOD_Y, callback=stop),
    "minimize_loss": lambda stop: gordan.minimize_loss(GOOD, GOOD_Y, callback=stop),
    "play": lambda stop: gordan.play(GOOD, "smooth_perceptron", 3, callback=stop),
    "race": lambda stop: gordan.report.race(GOOD, GOOD_Y, rounds=3, callback=stop),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_callback_that_returns_an_array_is_refused(name):
    refused(lambda: ASKED[name](lambda _: np.ones(2)), "callback returned an object of type ndarray", "return True to stop")


@pytest.mark.parametrize("storage", STORED)
def test_zero_weights_remove_rows(storage, tmp_path):
    X, y = np.vstack([GOOD, -GOOD]), np.append(GOOD_Y, GOOD_Y)
    weights = np.r_[np.ones(8), np.zeros(8)]
    result = gordan.maximize_margin(stored(X, storage, tmp_path), y, sample_weight=weights)
    assert result.margin == pytest.approx(gordan.maximize_margin(GOOD, GOOD_Y).margin, rel=1e-9)
    assert gordan.verify(result.certificate, X, y)
    bad = X.copy()
    bad[12, 1] = np.nan  # removed or not, it is named
    refused(lambda: gordan.maximize_margin(stored(bad, storage, tmp_path), y, sample_weight=weights), "X[12, 1] is nan")


@pytest.mark.parametrize("certificate", ["{}", None, 3, {"kind": "separator"}], ids=repr)
def test_verify_refuses_what_is_no_certificate(certificate):
    refused(lambda: gordan.verify(certificate, GOOD, GOOD_Y), "certificate is", "Certificate.from_json")


# ---- numbers that a conversion on the way would change ---------------------------------------------------------------


def duplicated(kind, values):
    """(0, 0) in two parts and (1, 0)."""
    values = np.array(values)
    if kind == "csr":
        return sp.csr_matrix((values, [0, 0, 0], [0, 2, 3]), shape=(2, 1))
    if kind == "csc":
        return sp.csc_matrix((values, [0, 0, 1], [0, 3]), shape=(2, 1))
    return sp.coo_matrix((values, ([0, 0, 1], [0, 0, 0])), shape=(2, 1))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_parts_of_an_entry_are_added_exactly(kind):
    small = duplicated(kind, np.array([200, 100, 44], np.uint8))
    assert gordan.separate(small, [0, 1]).margin[0] == pytest.approx(128, rel=1e-5)
    with pytest.raises(gordan.InputError, match=r"X\[0, 0\] is stored in parts .* X\.sum_duplicates\(\), which rounds"):
        gordan.separate(rounded := duplicated(kind, [2.0**53, 1.0, 44.0]), [0, 1])
    rounded.sum_duplicates()
    assert gordan.separate(rounded, [0, 1])
    with pytest.raises(gordan.InputError, match=r"2\*\*53"):
        gordan.separate(duplicated(kind, [2**62, 2**62, 1]), [0, 1])
    with pytest.raises(gordan.InputError, match=r"X\[0, 0\] is nan"):
        gordan.separate(duplicated(kind, [np.nan, 1.0, 44.0]), [0, 1])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("more", [[], [[2.0, 3.0]]])
def test_equal_rows_that_are_not_finite_prove_nothing(value, intercept, more):
    """Equal points of two classes are found before the lengths of rows are needed."""
    X, y = np.array([[value, 1.0], [value, 1.0], *more]), [0, 1, *[1 for _ in more]]
    for call in (gordan.separate, gordan.maximize_margin, gordan.minimize_loss):
        with pytest.raises(gordan.InputError, match=r"X\[0, 0\] is (nan|inf|-inf); every entry must be finite"):
            call(X, y, intercept=intercept)


def test_what_is_no_table_is_refused_with_what_to_pass():
    polars = pytest.importorskip("polars")
    X, y = GOOD, GOOD_Y
    functions = (gordan.separate, gordan.maximize_margin, gordan.minimize_loss, gordan.diagnose)
    fits = [type(model)().fit for model in (gordan.LinearClassifier(), gordan.MaxMarginClassifier())]
    for call in (*functions, *fits):
        with pytest.raises(gordan.InputError, match=r"X is a LazyFrame, which has no rows yet; pass X.collect\(\)"):
            call(polars.DataFrame(X).lazy(), y)
        with pytest.raises(gordan.InputError, match=r"X is 'data.csv'.* t = gordan.io.read\('data.csv'\)"):
            call("data.csv", y)
        with pytest.raises(gordan.InputError, match=r"of type set"):
            call(X, {*y.tolist()})
        with pytest.raises(gordan.InputError, match=r"X\[0, 0\] \(column 'a'\) is 'u'|column 'a' of X holds text") as caught:
            call(polars.DataFrame({"a": ["u", "v"] * 4}), y)
        assert "to_dummies(" in str(caught.value)
    for call in functions:
        with pytest.raises(gordan.InputError, match=r"X is of type dict; pass a 2-D array or a data frame"):
            call({"a": X}, y)


@pytest.mark.parametrize("frame", [list, "pandas", "polars"])
def test_large_integers_beside_floats_are_not_rounded(frame):
    columns = {"u": [2**60 + 1, 2**60 + 3], "v": [0.5, 0.5]}
    X = (
        [list(row) for row in zip(*columns.values(), strict=True)]
        if frame is list
        else pytest.importorskip(frame).DataFrame(columns)
    )
    with pytest.raises(gordan.InputError, match="1152921504606846977"):
        gordan.separate(X, [0, 1])
    exact = [[2.0**60, 0.5], [2**61, 0.5]]
    assert gordan.separate(exact, [0, 1]).status == "separable"


def frames(columns):
    """The same columns in every kind of data frame that keeps their types."""
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    frame = pandas.DataFrame(columns)
    return {
        "pandas": frame,
        "nullable": frame.convert_dtypes(),
        "Arrow": frame.convert_dtypes(dtype_backend="pyarrow"),
        "objects": frame.astype(object),
        "polars": polars.DataFrame(columns),
        "table": pyarrow.table(columns),
    }


@pytest.mark.parametrize("kind", ["pandas", "nullable", "Arrow", "objects", "polars", "table"])
def test_columns_of_several_types_are_exact(kind):
    """Each column is read in its own type: exactly, with its name where it is refused."""
    columns = {
        "flag": np.array([True, False, True]),
        "count": np.array([2**53, 3, -(2**53)]),
        "large": np.array([2**53 - 1, 0, 2**53], np.uint64),
        "size": np.array([1e300, -0.25, 2.0**60]),
        "small": np.array([0.1, 0.2, 0.3], np.float32),
    }
    expected = np.column_stack([column.astype(np.float64) for column in columns.values()])
    held = rows.stored(frames(columns)[kind])
    np.testing.assert_array_equal(held.arrays[0], expected)
    assert held.names == [*columns]
    assert gordan.separate(frames(columns)[kind], [0, 1, 1])._problem.hash("free") == (
        gordan.separate(expected, [0, 1, 1])._problem.hash("free")
    )
    for name, value in {"count": -(2**53) - 1, "large": 2**63 + 1}.items():
        spoiled = {**columns, name: columns[name].copy()}
        spoiled[name][1] = value
        j = [*columns].index(name)
        refused(lambda: gordan.separate(frames(spoiled)[kind], [0, 1, 1]), f"X[1, {j}] (column {name!r})", str(value))  # noqa: B023


def test_float_columns_are_not_read_one_by_one(monkeypatch):
    """One large value, or a column of booleans, does not make objects of a data frame."""
    from gordan.rows import accept

    monkeypatch.setattr(accept, "_from_objects", lambda *_: pytest.fail("objects were made"))
    for kind, frame in frames({"a": [1e16, 0.5, 2.0], "b": [0.5, 1.0, 1.5]}).items():
        if kind != "objects":
            assert gordan.separate(frame, [1, 0, 0]).separable
    for kind, frame in frames({"a": [1e16, 0.5, 2.0], "b": [True, False, True], "c": [2**53, 1, 2]}).items():
        if kind != "objects":
            assert gordan.separate(frame, [1, 0, 0]).separable
    assert gordan.separate([np.array([1e16, 0.5]), np.array([0.5, 0.5])], [1, 0]).separable


# ---- indexes that name other rows ------------------------------------------------------------------------------------

ORDER = [3, 0, 4, 1, 2]


def indexed():
    """Quasi-complete separation by x = group; a y in another order makes it overlap."""
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"dose": [1.0, 2.0, 3.0, 1.5, 2.5], "group": [0.0, 0.0, 0.0, 1.0, 1.0]}, index=[*"abcde"])
    return X, pandas.Series([0, 1, 0, 1, 1], index=X.index)


PAIRED = {
    "separate": lambda X, y: gordan.separate(X, y).separable,
    "maximize_margin": lambda X, y: gordan.maximize_margin(X, y).status,
    "diagnose": lambda X, y: gordan.diagnose(X, y).kind,
    "verify": lambda X, y: bool(gordan.verify(gordan.separate(indexed()[0], indexed()[1]).certificate, X, y)),
    "rows.of": lambda X, y: rows.of(X, 2 * y - 1).combine(np.ones(5)).tolist(),
    "play, halves": lambda X, y: play(X, rounds=3, halves=y).bracket,
    "play, caps": lambda X, y: play(X, rounds=3, caps=y + 0.5).bracket,
    "play, p0": lambda X, y: play(X, rounds=3, p0=y + 0.5).bracket,
    "sample_weight": lambda X, y: gordan.maximize_margin(X, indexed()[1], nu=0.5, sample_weight=y + 1).margin,
    "sample_weight and y": lambda X, y: gordan.maximize_margin(np.asarray(X), indexed()[1], nu=0.5, sample_weight=y + 1).margin,
}


@pytest.mark.parametrize("call", PAIRED)
def test_indexes_in_another_order_are_refused(call):
    """Refused with the line that aligns them; after that line the answer is the one of aligned data."""
    X, y = indexed()
    call_it, shuffled = PAIRED[call], y.iloc[ORDER]
    right = call_it(X, y)
    with pytest.raises(InputError, match=r"\.index\[0\] is 'a', \w+\.index\[0\] is 'd'") as told:
        call_it(X, shuffled)
    name, fix = str(told.value).partition("align them with ")[2].partition(";")[0].split(" = ")
    assert fix in (f"{name}.loc[X.index]", f"{name}.loc[A.index]", f"{name}.loc[y.index]")
    assert call_it(X, shuffled.loc[X.index]) == right
    assert call_it(X.to_numpy(), y.to_numpy()) == right
    assert call_it(X, y.to_numpy()) == right
    assert call_it(X, y.set_axis(X.index.astype(object))) == right
    if "weight" not in call:  # where y has an index, too
        assert call_it(X.to_numpy(), y.set_axis(range(5))) == right


def test_indexes_that_differ_are_refused():
    """One label that differs is enough, and what both have can be kept; equal indexes of any type are equal."""
    pandas = pytest.importorskip("pandas")
    X, y = indexed()
    y_other = y.rename(index={"c": "z"})
    refused(lambda: gordan.separate(X, y_other), "X.index[2] is 'c', y.index[2] is 'z'", "4 rows that both have", "y.to_numpy()")
    common = X.index.intersection(y_other.index)
    kept = [0, 1, 3, 4]
    assert gordan.diagnose(X.loc[common], y_other.loc[common]).columns == gordan.diagnose(X.iloc[kept], y.iloc[kept]).columns
    refused(lambda: gordan.separate(X.iloc[1:], y.iloc[:4].set_axis(range(4))), "X.index[0] is 'b', y.index[0] is 0")
    refused(lambda: gordan.separate(X, y.iloc[:3]), "X has 5 rows but y has 3 labels")
    twice = ["a", "a", "b", "b", "b"]
    assert gordan.diagnose(X.set_axis(twice), y.set_axis(twice)).kind == "quasi-complete"
    refused(lambda: gordan.separate(X.set_axis(twice), y.set_axis(twice[::-1])), "y.to_numpy()")
    numbers = X.set_axis(range(5))
    for dtype in ("int64", "uint8", "float64", "Int64", "int64[pyarrow]"):
        index = pandas.Index(range(5), dtype=dtype)
        assert gordan.diagnose(numbers, y.set_axis(index)).kind == "quasi-complete"
    refused(lambda: gordan.separate(numbers, y.set_axis([*"01234"])), "X.index[0] is 0, y.index[0] is '0'")
    assert gordan.diagnose(numbers, y.reset_index(drop=True).to_frame()).kind == "quasi-complete"
    refused(lambda: gordan.separate(X, y.iloc[ORDER].to_frame()), "y = y.loc[X.index]")
    pairs = pandas.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a"), (2, "b"), (3, "a")])
    assert gordan.diagnose(X.set_axis(pairs), y.set_axis(pairs)).kind == "quasi-complete"
    refused(lambda: gordan.separate(X.set_axis(pairs), y.set_axis(pairs).iloc[ORDER]), "'b')", "y = y.loc[X.index]")


@pytest.mark.parametrize("shape", [(4, 1), (1, 4), (2, 2), (3,), ()])
def test_shapes_of_vectors_over_rows(shape):
    """Both shapes are reported: the one that is wrong and the one that is wanted."""
    X, y, wrong = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], np.ones(shape)
    for name in ("start", "sample_weight"):
        if name != "sample_weight" or shape:
            told = f"{name} must hold one number for each of the 4 rows, in an array of shape (4,); its shape is {shape}"
            refused(lambda name=name: gordan.maximize_margin(X, y, nu=0.5, **{name: wrong}), told)
    for name in ("caps", "p0", "halves"):
        refused(lambda name=name: play(X, **{name: wrong}), name, "in an array of shape (4,)", f"its shape is {shape}")


def test_masked_labels_and_weights():
    y = np.ma.array([0, 1, 1], mask=[0, 1, 0])
    with pytest.raises(gordan.InputError, match=r"y\[1\] is masked"):
        gordan.separate([[0.0], [5.0], [1.0]], y)
    with pytest.raises(gordan.InputError, match="masked"):
        gordan.maximize_margin([[0.0], [5.0], [1.0]], [0, 1, 1], sample_weight=np.ma.array([1.0, 2.0, 1.0], mask=[0, 1, 0]))


@pytest.mark.parametrize("option", ["norm", "tol", "time_limit", "nu"])
def test_numbers_beyond_the_floats(option):
    with pytest.raises(gordan.InputError, match=f"^{option} is 1000"):
        gordan.maximize_margin([[0.0], [1.0]], [0, 1], **{option: 10**400})


def test_more_columns_than_memory():
    with pytest.raises(gordan.InputError, match="columns"):
        gordan.separate(sp.csr_matrix((2, 10**15)), [0, 1])


def test_opposite_rows_of_one_class_are_reported_as_such():
    verdict = gordan.separate([[1.0, 2.0], [-1.0, -2.0], [-3.0, 1.0]], [1, 1, 0], intercept="none")
    assert "rows 0 and 1 have opposite features and the same label" in repr(verdict)
    assert "same features and different labels" in repr(gordan.separate([[1.0], [1.0]], [0, 1]))


@pytest.mark.parametrize("call", [gordan.separate, gordan.maximize_margin, gordan.diagnose], ids=lambda call: call.__name__)
@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_what_is_not_finite_in_a_data_frame_is_named(frame, call):
    X = pytest.importorskip(frame).DataFrame({"height": [1.0, 2.0, 3.0], "weight": [1.0, float("nan"), 2.0]})
    refused(lambda: call(X, [0, 1, 1]), "X[1, 1] (column 'weight') is nan")


@pytest.mark.parametrize("levels", [0, 3])
def test_an_index_of_other_levels_is_refused(levels):
    pandas = pytest.importorskip("pandas", reason="pandas is missing: pip install 'gordan[data]'")
    index = pandas.MultiIndex.from_tuples([(0, 0), (0, 1), (1, 0), (1, 1)])
    other = pandas.MultiIndex.from_tuples([(*label, 0) for label in index]) if levels else pandas.RangeIndex(4)
    with pytest.raises(InputError, match="the indexes of X and y differ"):
        gordan.separate(pandas.DataFrame({"a": [0.0, 1.0, 2.0, 3.0]}, index=index), pandas.Series([0, 0, 1, 1], index=other))


def test_a_path_is_no_matrix():
    for name in ("iris.csv", Path("iris.csv")):
        with pytest.raises(gordan.InputError, match=r"X is 'iris.csv'; read a file first: t = gordan.io.read\('iris.csv'\)"):
            gordan.separate(name, [0, 1])


@pytest.mark.parametrize("ask", [gordan.separate, gordan.maximize_margin])
def test_a_table_with_one_1_in_each_row_is_one_class_a_row(ask):
    X, Y = np.arange(6.0).reshape(3, 2), np.eye(3)
    for table, hinted in ((Y, True), (np.maximum(Y, Y[:, ::-1]), False)):
        with pytest.raises(gordan.InputError, match="has only 0 and 1") as refused:
            ask(X, table)
        assert ("pass y = Y.argmax(axis=1) to a classifier" in str(refused.value)) == hinted


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, None])
@pytest.mark.parametrize("size", [1.0, 1e200, 1.7e308])
def test_norms_show_that_many_dense_rows_are_finite(bad, size, monkeypatch):
    """Entries whose squares overflow are finite nevertheless, and others are named."""
    monkeypatch.setattr(problem, "WORTH_COMPILING", 0)
    X = size * np.array([[0.5, 1.0], [1.0, 1.0], [-1.0, 0.5]])
    found = Problem.of(X, [0, 1, 1])
    found.require_finite()
    if bad is not None:
        X[1, 0] = bad
        with pytest.raises(InputError, match=r"X\[1, 0\] is"):
            Problem.of(X, [0, 1, 1]).require_finite()
