"""`MaxMarginClassifier`: scikit-learn's contract, what weights and labels mean, what is claimed, and what is said on failure."""

from __future__ import annotations

import contextlib
import inspect
import io
import pickle
import re
import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from fractions import Fraction

import joblib
import numpy as np
import pandas
import polars
import pytest
import scipy.sparse as sp
import sklearn
from checkers import both
from flint import fmpq, fmpq_mat
from sklearn import datasets
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, NuSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import gordan
from gordan.estimators import InseparableWarning, MaxMarginClassifier, fitting
from gordan.io import Model

# of wine, whose columns have other units
pytestmark = pytest.mark.filterwarnings("ignore:columns differ in size:UserWarning")
quiet = {"on_inseparable": "ignore"}
X_IRIS, Y_IRIS = datasets.load_iris(return_X_y=True)
X_WINE, Y_WINE = datasets.load_wine(return_X_y=True)


@pytest.mark.filterwarnings("ignore::gordan.estimators.InseparableWarning")
@parametrize_with_checks([MaxMarginClassifier(), MaxMarginClassifier(multi_class="ovr")])
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_scikit_learn_is_imported_only_when_asked_for():
    code = (
        "import sys, gordan, gordan.cli.app; "
        "gordan.separate([[0.0], [1.0]], [0, 1]); gordan.maximize_margin([[0.0], [1.0]], [0, 1]); "
        "assert 'MaxMarginClassifier' in dir(gordan) and 'sklearn' not in sys.modules; "
        "gordan.MaxMarginClassifier; assert 'sklearn' in sys.modules and 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = gordan.Nothing


# ---- the answer ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"tol": 0.5}, {"tol": 1e-8}, {"method": "smooth_perceptron", "tol": 1e-2}], ids=str)
def test_coef_is_exact_whatever_tol(options):
    """Against the tightest fit, against what p proves, and against LIBSVM."""
    y = Y_IRIS == 0
    found = MaxMarginClassifier(**options).fit(X_IRIS, y)
    exact = MaxMarginClassifier(tol=1e-11).fit(X_IRIS, y)
    np.testing.assert_allclose(found.coef_, exact.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.intercept_, exact.intercept_, rtol=0, atol=1e-9)
    # γ(w) from the raw data, and what p says it can be at most
    distances = np.where(y, 1, -1) * (X_IRIS @ found.coef_[0] + found.intercept_[0]) / np.linalg.norm(found.coef_[0])
    most = np.linalg.norm(found.dual_coef_[0] @ X_IRIS[found.support_])
    assert distances.min() == pytest.approx(most, rel=1e-9)
    assert abs(found.dual_coef_[0][found.dual_coef_[0] > 0].sum() - 0.5) < 1e-12
    other = SVC(kernel="linear", C=1e9, tol=1e-9).fit(X_IRIS, y)
    np.testing.assert_allclose(found.coef_[0], other.coef_[0] / np.linalg.norm(other.coef_[0]), atol=1e-6)
    assert found.margin_[0] <= distances.min() * (1 + 1e-15)
    assert found.margin_[0] <= found.margin_[1]
    assert found.gap_ < 1e-9
    assert found.separable_ is True
    assert found.nu_ is None


def exact_plane(X, signs, support):
    """w of the closest points of the hulls, ‖w‖ = 1: the optimality conditions on the support rows, solved in fractions."""
    cells = [[Fraction(float(value)) * int(signs[i]) for value in X[i]] for i in support]
    A = fmpq_mat([[fmpq(cell.numerator, cell.denominator) for cell in row] for row in cells])
    n, K = A.nrows(), A * A.transpose()
    system, right = fmpq_mat(n + 2, n + 2), fmpq_mat(n + 2, 1, [0] * n + [fmpq(1, 2)] * 2)
    for i in range(n):
        for j in range(n):
            system[i, j] = K[i, j]
        half = n + int(signs[support[i]] < 0)
        system[i, half], system[half, i] = -1, 1
    p = fmpq_mat(1, n, system.solve(right).entries()[:n])
    w = [Fraction(int(entry.p), int(entry.q)) for entry in (p * A).entries()]
    largest = max(map(abs, w))
    w = np.array([float(entry / largest) for entry in w])
    return w / np.linalg.norm(w), [Fraction(int(entry.p), int(entry.q)) for entry in p.entries()]


EXACT = {
    "iris": (X_IRIS, Y_IRIS == 0),
    "wine": (X_WINE, Y_WINE == 0),
    "wine, scaled": (StandardScaler().fit_transform(X_WINE), Y_WINE == 1),
    "wide": (np.random.default_rng(0).normal(size=(40, 200)), np.arange(40) % 2 == 0),
}


@pytest.mark.parametrize("tol", [0.9, 1e-4])
@pytest.mark.parametrize("name", EXACT)
def test_coef_against_the_exact_solution(name, tol):
    """The support rows that a fit names give w in fractions; it is optimal if p > 0 and no row is nearer than they are."""
    X, y = EXACT[name]
    signs = np.where(y, 1, -1)
    found = MaxMarginClassifier(tol=tol).fit(X, y)
    w, p = exact_plane(X, signs, found.support_.tolist())
    assert min(p) > 0
    scores = X @ w
    margin = (scores[y].min() - scores[~y].max()) / 2
    apart = sum(float(share) * score for share, score in zip(p, (signs * scores)[found.support_], strict=True))
    assert margin == pytest.approx(apart, rel=1e-7)
    np.testing.assert_allclose(found.coef_[0], w, rtol=0, atol=2e-9)


@pytest.mark.parametrize("nu", [0.05, 0.1, 0.3, 0.6])
def test_soft_margins_are_those_of_nu_svm(nu):
    X, y = datasets.load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    found = MaxMarginClassifier(nu=nu).fit(X, y)
    other = NuSVC(kernel="linear", nu=nu, tol=1e-9).fit(X, y)
    size = np.linalg.norm(other.coef_)
    np.testing.assert_allclose(found.coef_, other.coef_ / size, atol=2e-6)
    np.testing.assert_allclose(found.intercept_, other.intercept_ / size, atol=1e-5)
    assert set(found.support_) <= set(other.support_)
    # ν is at least the share of rows beyond their margin and at most that of support rows
    assert len(found.support_) >= nu * len(X) - 1e-9
    assert gordan.verify(found.certificate_, X, y)


def test_hard_planes_against_libsvm_on_all_pairs():
    X = StandardScaler().fit_transform(X_WINE)
    found = MaxMarginClassifier().fit(X, Y_WINE)
    other = SVC(kernel="linear", C=1e9, tol=1e-9, decision_function_shape="ovo").fit(X, Y_WINE)
    lengths = np.linalg.norm(other.coef_, axis=1)
    np.testing.assert_allclose(
        found.coef_, -other.coef_ / lengths[:, None], atol=1e-5
    )  # LIBSVM: the first of the pair is positive
    np.testing.assert_array_equal(found.predict(X), other.predict(X))
    assert found.separable_ == [True, True, True]
    assert found.margin_.shape == (3, 2)
    np.testing.assert_allclose(found.margin_[:, 0], 1 / lengths, rtol=1e-5)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_certificates_are_about_the_binary_problems(multi_class):
    found = MaxMarginClassifier(multi_class=multi_class, **quiet).fit(X_IRIS, Y_IRIS)
    assert len(found.certificate_) == len(found.trace_) == len(found.separable_) == len(found.coef_) == 3
    pairs = [(0, 1), (0, 2), (1, 2)]
    for k, certificate in enumerate(found.certificate_):
        own = np.isin(Y_IRIS, pairs[k]) if multi_class == "ovo" else np.full(150, True)
        y = Y_IRIS[own] if multi_class == "ovo" else k == Y_IRIS
        assert gordan.verify(certificate, X_IRIS[own], y)
        assert (certificate.lower, certificate.upper) == tuple(found.objective_[k] or found.margin_[k])
        assert certificate.nu == found.nu_[k]
        assert certificate.loss == found.loss_[k]
        # a witness names rows of X: they cancel, in whole numbers
        witness = found.witness_[k]
        assert (witness is not None) == (found.separable_[k] is False)
        if witness is not None:
            rows = list(witness.rows)
            signs = np.where((Y_IRIS[rows] == pairs[k][1]) if multi_class == "ovo" else (Y_IRIS[rows] == k), 1, -1)
            A = np.column_stack((X_IRIS[rows], np.ones(len(rows)))) * signs[:, None]
            weights = np.array([float(weight) for weight in witness.weights])
            assert np.abs(weights @ A).max() <= 1e-12 * weights.sum() * np.abs(A).max()
    rows = found.support_
    for k, w in enumerate(found.coef_):
        u = found.dual_coef_[k] @ X_IRIS[rows]
        if found.loss_[k] is not None:
            np.testing.assert_allclose(u, w, atol=1e-8)
        elif w.any():
            np.testing.assert_allclose(u / np.linalg.norm(u), w, atol=1e-8)
            assert np.linalg.norm(u) == pytest.approx(found.margin_[k, 1], rel=1e-9)


def test_votes_are_those_of_scikit_learn():
    from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

    X = X_WINE[:, :5]
    pairs = MaxMarginClassifier(nu=0.5).fit(X, Y_WINE)
    other = OneVsOneClassifier(MaxMarginClassifier(nu=0.5)).fit(X, Y_WINE)
    np.testing.assert_allclose(pairs.decision_function(X), other.decision_function(X), atol=1e-9)
    np.testing.assert_array_equal(pairs.predict(X), other.predict(X))
    rest = MaxMarginClassifier(nu=0.5, multi_class="ovr").fit(X, Y_WINE)
    other = OneVsRestClassifier(MaxMarginClassifier(nu=0.5)).fit(X, Y_WINE)
    np.testing.assert_allclose(rest.decision_function(X), other.decision_function(X), atol=1e-9)
    np.testing.assert_array_equal(rest.predict(X), other.predict(X))
    # the kind of the fit counts, not what was set later
    rest.set_params(multi_class="ovo")
    np.testing.assert_allclose(rest.decision_function(X), other.decision_function(X), atol=1e-9)


# ---- equivalences --------------------------------------------------------------------------------------------------------

SETTINGS = [
    {},
    {"nu": 0.3},
    {"nu": 0.3, "multi_class": "ovr"},
    {"intercept": "penalized"},
    {"nu": 0.2, "class_weight": "balanced"},
]


def same(one, two, atol=1e-8):
    np.testing.assert_allclose(one.coef_, two.coef_, atol=atol)
    np.testing.assert_allclose(one.intercept_, two.intercept_, atol=atol * max(1.0, float(np.max(np.abs(one.intercept_)))))
    np.testing.assert_allclose(np.array(one.margin_), np.array(two.margin_), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_zero_weight_is_row_removed_and_whole_weights_are_repeated_rows(options):
    rng = np.random.default_rng(0)
    X, y = X_IRIS[:, [0, 2, 3]], Y_IRIS
    weights = rng.integers(0, 4, len(y))
    weighted = MaxMarginClassifier(**options, **quiet).fit(X, y, sample_weight=weights)
    repeated = MaxMarginClassifier(**options, **quiet).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    same(weighted, repeated)
    assert not set(weighted.support_) & set(np.flatnonzero(weights == 0))


def test_class_weight_is_a_factor_of_the_sample_weight():
    X, y = X_IRIS[50:, 2:], Y_IRIS[50:]
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    one = MaxMarginClassifier(nu=0.3, class_weight={1: 3.0}).fit(X, y, sample_weight=weights)
    two = MaxMarginClassifier(nu=0.3).fit(X, y, sample_weight=weights * np.where(y == 1, 3.0, 1.0))
    same(one, two)
    assert abs(one.intercept_[0] - MaxMarginClassifier(nu=0.3).fit(X, y, weights).intercept_[0]) > 1e-3
    rare = np.concatenate((np.arange(50), np.arange(50, 70)))
    balanced = MaxMarginClassifier(nu=0.5, class_weight="balanced").fit(X[rare], y[rare])
    same(balanced, MaxMarginClassifier(nu=0.5, class_weight={1: 70 / 100, 2: 70 / 40}).fit(X[rare], y[rare]))


LABELS = {
    "text": np.array(["no", "yes"]),
    "objects": np.array(["no", "yes"], dtype=object),
    "booleans": np.array([False, True]),
    "floats": np.array([-1.0, 2.0]),
    "small integers": np.array([-3, 7], dtype=np.int8),
    "unsigned": np.array([1, 200], dtype=np.uint8),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind(kind):
    labels = LABELS[kind]
    y = labels[(Y_IRIS == 0).astype(int)]
    found = MaxMarginClassifier().fit(X_IRIS, y)
    same(found, MaxMarginClassifier().fit(X_IRIS, (Y_IRIS == 0).astype(int)), atol=0)
    predicted = found.predict(X_IRIS)
    np.testing.assert_array_equal(predicted, y)
    assert predicted.dtype == labels.dtype
    assert gordan.verify(found.certificate_, X_IRIS, y)


def test_columns_rows_and_units():
    """A permutation of columns or rows permutes the answer; a unit of X is a unit of the margin; a shift is taken up by b."""
    X, y = X_WINE[:, :6], Y_WINE
    found = MaxMarginClassifier(**quiet).fit(X, y)
    order = np.random.default_rng(2).permutation(6)
    moved = MaxMarginClassifier(**quiet).fit(X[:, order], y)
    np.testing.assert_allclose(moved.coef_, found.coef_[:, order], atol=1e-8)
    rows = np.random.default_rng(3).permutation(len(y))
    np.testing.assert_allclose(MaxMarginClassifier(**quiet).fit(X[rows], y[rows]).coef_, found.coef_, atol=1e-8)
    own = np.isin(y, (0, 2))  # separable: a loss with C = 1 depends on the unit of X
    hard = MaxMarginClassifier().fit(X[own], y[own])
    for scale in (2.0**-40, 1e8):
        scaled = MaxMarginClassifier(**quiet).fit(scale * X[own], y[own])
        np.testing.assert_allclose(scaled.coef_, hard.coef_, atol=1e-7)
        np.testing.assert_allclose(scaled.margin_, scale * np.array(hard.margin_), rtol=1e-7)
    constant = MaxMarginClassifier(**quiet).fit(np.column_stack((X, np.full(len(y), 3.0), np.zeros(len(y)))), y)
    np.testing.assert_allclose(constant.coef_[:, :6], found.coef_, atol=1e-8)
    np.testing.assert_allclose(constant.coef_[:, 6:], 0, atol=1e-8)


def test_storage_changes_nothing(tmp_path):
    X, y = np.round(X_WINE * 8) / 8, Y_WINE  # exact in float32
    found = MaxMarginClassifier().fit(X, y)
    mapped = np.memmap(tmp_path / "X.bin", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    names = [f"c{j}" for j in range(X.shape[1])]
    others = {
        "float32": X.astype(np.float32),
        "Fortran": np.asfortranarray(X),
        "strides": np.ascontiguousarray(X[:, ::-1])[:, ::-1],
        "CSR": sp.csr_array(X),
        "CSC": sp.csc_matrix(X),
        "COO": sp.coo_array(X),
        "memory map": np.memmap(tmp_path / "X.bin", dtype=np.float64, mode="r", shape=X.shape),
        "list": X.tolist(),
        "pandas": pandas.DataFrame(X, columns=names),
        "polars": polars.DataFrame(X, schema=names),
    }
    for kind, other in others.items():
        again = MaxMarginClassifier().fit(other, y)
        np.testing.assert_allclose(again.coef_, found.coef_, atol=1e-9, err_msg=kind)
        np.testing.assert_array_equal(again.predict(other), found.predict(X))
        if kind in ("pandas", "polars"):
            assert again.feature_names_in_.tolist() == names
            with pytest.warns(UserWarning, match="valid feature names"):
                again.predict(X)
        else:
            assert not hasattr(again, "feature_names_in_")
    assert others["float32"].dtype == np.float32


def large(value):
    """The first row is beyond the others by its first column; 2**53 + 1 is not, once it is a float64."""
    first, rest = [value, 2**53 if value > 2**53 else 2**52, 0, 1], [0.5] * 4
    frame = pandas.DataFrame({"a": first, "b": rest})
    columns = {"a": np.array(first), "b": np.array(rest)}
    wide = np.array(list(zip(first, rest, strict=True)), dtype=np.longdouble)
    wide[0, 0] = np.longdouble(2**53) + np.longdouble(value - 2**53)
    return {
        "frame": frame,
        "Int64": frame.astype({"a": "Int64"}),
        "UInt64": frame.astype({"a": "UInt64"}),
        "Arrow": frame.astype({"a": "int64[pyarrow]", "b": "double[pyarrow]"}),
        "polars": polars.DataFrame(columns),
        "lists": [[x, b] for x, b in zip(first, rest, strict=True)],
        "tuples": tuple((x, b) for x, b in zip(first, rest, strict=True)),
        "objects": np.array([[x, b] for x, b in zip(first, rest, strict=True)], dtype=object),
        "longdouble": wide,
        "int64": np.array([[x, 1] for x in first]),
        "uint64": np.array([[x, 1] for x in first], np.uint64),
        "sparse int64": sp.csr_array(np.array([[x, 1] for x in first])),
        "sparse longdouble": sp.coo_array(wide),
    }


@pytest.mark.parametrize("kind", large(2**53 + 1))
def test_numbers_that_floats_cannot_hold_are_refused(kind):
    """As `separate` refuses them, and not made equal to others; in `fit` and wherever X is passed afterwards."""
    y = [1, 0, 0, 0]
    with pytest.raises(gordan.InputError) as told:
        gordan.separate(large(2**53 + 1)[kind], y)
    same = re.escape(str(told.value))
    with pytest.raises(gordan.InputError, match=same):
        MaxMarginClassifier().fit(large(2**53 + 1)[kind], y)
    found = MaxMarginClassifier().fit(large(2**53)[kind], y)
    assert found.separable_
    assert gordan.verify(found.certificate_, large(2**53)[kind], y)
    for call in (found.predict, found.decision_function, lambda X: found.score(X, y)):
        with pytest.raises(gordan.InputError, match=same):
            call(large(2**53 + 1)[kind])


def test_labels_that_numpy_makes_equal_are_refused():
    for labels in ([2**53, 2**53 + 1, 0.0], [0, 2**53 + 1, float(2**53)]):
        with pytest.raises(gordan.InputError, match="use text for labels"):
            MaxMarginClassifier().fit([[0.0], [1.0], [3.0]], labels)


def test_rows_named_in_another_order_are_refused_and_other_rows_warned_about():
    X = pandas.DataFrame({"a": [0.0, 1.0, 5.0, 6.0]}, index=[*"abcd"])
    y = pandas.Series([0, 0, 1, 1], index=X.index)
    weights = pandas.Series([1.0, 2.0, 1.0, 1.0], index=X.index)
    found = MaxMarginClassifier(nu=0.5).fit(X, y, sample_weight=weights)
    shuffled = [2, 0, 3, 1]
    for arguments in ((X, y.iloc[shuffled]), (X, y, weights.iloc[shuffled]), (X.to_numpy(), y, weights.iloc[shuffled])):
        for call in (MaxMarginClassifier(nu=0.5).fit, found.score):
            with pytest.raises(gordan.InputError, match=r"differ: .* = \w+\.loc\[[Xy]\.index\]"):
                call(*arguments)
    for other in (y.set_axis(range(4)), y.rename(index={"b": "z"})):
        with pytest.warns(gordan.IndexWarning, match=r"X\.index\[[01]\] is '[ab]'.*pass y\.to_numpy\(\)") as told:
            again = MaxMarginClassifier(nu=0.5).fit(X, other, sample_weight=weights)
        assert told[0].filename == __file__
        np.testing.assert_array_equal(again.coef_, found.coef_)
        with pytest.warns(gordan.IndexWarning) as told:
            assert again.score(X, other) == 1
        assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X_, y_ in ((X.to_numpy(), y), (X, y.to_numpy()), (X.reset_index(drop=True), y.reset_index(drop=True))):
            assert MaxMarginClassifier().fit(X_, y_).score(X_, y_) == 1
        cross_val_score(MaxMarginClassifier(), X.iloc[[0, 1, 0, 2, 3, 2]], y.iloc[[0, 1, 0, 2, 3, 2]], cv=2)


def test_what_is_not_finite_is_named_by_its_row_in_x():
    """Not by its number among the rows of a pair of classes."""
    X, y = X_WINE.copy(), Y_WINE
    X[-1, 2] = np.nan
    for kind in (np.asarray, sp.csr_array, pandas.DataFrame):
        found = MaxMarginClassifier(on_inseparable="ignore").fit(kind(X_WINE), y)
        for call in (lambda given: MaxMarginClassifier().fit(given, y), found.predict):
            with pytest.raises(gordan.InputError, match=rf"X\[{len(X) - 1}, 2\].* is nan"):
                call(kind(X))


# ---- where nothing separates ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_by_squared_hinge_where_no_plane_separates(intercept):
    """The plane, the interval and the certificate are those of minimize_loss with C = 1; the claims hold on the raw data."""
    X, y = X_IRIS[50:], Y_IRIS[50:]
    weights = np.where(y == 1, 1.0, 0.6)
    named = r"2 against 1 is not separable: the weighted rows .*; fitted by squared hinge loss \(C = 1\)\. Use LinearClassifier"
    with pytest.warns(InseparableWarning, match=named) as told:
        found = MaxMarginClassifier(intercept=intercept).fit(X, y, sample_weight=weights)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert str(found.witness_.rows[0]) in str(told[0].message)
    assert (found.loss_, found.separable_, found.nu_, found.margin_) == ("squared_hinge", False, None, (0.0, 0.0))
    least = gordan.minimize_loss(X, y, intercept=intercept, sample_weight=weights, tol=1e-9)
    np.testing.assert_allclose(found.coef_[0], least.w, atol=1e-6)
    lower, upper = found.objective_
    w, b = found.coef_[0], found.intercept_[0]
    short = np.maximum(1 - np.where(y == 2, 1, -1) * (X @ w + b), 0)
    value = 0.5 * (w @ w + (b * b if intercept == "penalized" else 0)) + weights @ short**2
    assert lower <= value * (1 + 1e-12)
    assert value <= upper * (1 + 1e-12)
    assert found.gap_ == (upper - lower) / upper <= 1e-6
    np.testing.assert_array_equal(found.support_, np.flatnonzero(short))
    np.testing.assert_allclose(found.dual_coef_[0] @ X[found.support_], w, atol=1e-8)
    assert gordan.verify(found.certificate_, X, y, sample_weight=weights)
    again = MaxMarginClassifier(intercept=intercept, warm_start=True, **quiet).fit(X, y, weights).fit(X, y, weights)
    np.testing.assert_allclose(again.coef_, found.coef_, atol=1e-8)


def apart(k, n, d, seed=0):
    """Classes that planes separate, with text for labels."""
    r = np.random.default_rng(seed)
    which = np.arange(n) % k
    return 2 * r.standard_normal((k, d))[which] + 0.3 * r.standard_normal((n, d)), np.array([f"class {c}" for c in which])


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_planes_of_several_classes_are_found_together(multi_class, intercept, monkeypatch):
    """Each is that of a call with its labels alone, and has a certificate about them."""
    X, y = apart(6, 72, 12)
    monkeypatch.setattr("gordan.estimators.fitting.margin_of", None)
    found = MaxMarginClassifier(multi_class=multi_class, intercept=intercept).fit(X, y, np.linspace(1, 2, len(y)))
    assert found.separable_ == [True] * len(found.coef_)
    assert found.n_iter_ > 1
    used = np.zeros(len(y), dtype=bool)
    classes = found.classes_.tolist()
    problems = [((y == b) | (y == a), b) for i, a in enumerate(classes) for b in classes[i + 1 :]]
    problems = problems if multi_class == "ovo" else [(y != "", c) for c in classes]
    for k, (rows, label) in enumerate(problems):
        labels = y[rows] if multi_class == "ovo" else y[rows] == label
        alone = gordan.maximize_margin(X[rows], labels, intercept=intercept, tol=1e-9)
        np.testing.assert_allclose(found.coef_[k], alone.w, atol=1e-6)
        np.testing.assert_allclose(found.intercept_[k], alone.b, atol=1e-6)
        assert found.margin_[k, 0] <= alone.margin[1]
        assert alone.margin[0] <= found.margin_[k, 1]
        assert found.gap_[k] <= 1e-9
        assert both(found.certificate_[k], X[rows], labels) == (True, True)
        used[np.flatnonzero(rows)[[*found.certificate_[k].rows]]] = True
    np.testing.assert_array_equal(found.support_, np.flatnonzero(used))
    for dual, w in zip(found.dual_coef_, found.coef_, strict=True):
        combined = dual @ X[found.support_]
        assert abs(dual).sum() == pytest.approx(1)
        np.testing.assert_allclose(combined / np.linalg.norm(combined), w / np.linalg.norm(w), atol=1e-5)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_planes_that_are_found_one_by_one(multi_class, monkeypatch):
    """Where rounds are asked for, limited, or started from others, margins are soft or rows have no weight."""
    X, y = apart(4, 40, 5)
    monkeypatch.setattr("gordan.estimators.fitting.margins_together", None)
    weights = np.where(np.arange(40) < 3, 0.0, 1.0)
    for options in ({"nu": 0.1}, {"norm": 3}, {"method": "double_oracle"}, {"max_iter": 500}, {"verbose": 2}):
        found = MaxMarginClassifier(multi_class=multi_class, **options).fit(X, y)
        assert found.score(X, y) > 0.9
    assert MaxMarginClassifier(multi_class=multi_class).fit(X, y, weights).score(X, y) > 0.9
    monkeypatch.undo()
    warm = MaxMarginClassifier(multi_class=multi_class, warm_start=True).fit(X, y)
    monkeypatch.setattr("gordan.estimators.fitting.margins_together", None)
    first = warm.coef_
    np.testing.assert_allclose(warm.fit(X, y).coef_, first, atol=1e-8)


def test_the_class_that_is_not_separable_from_the_rest_is_asked_first(monkeypatch):
    """The hard margins of other classes are not wanted then; what is said of that class is what a single call says."""
    X, y = apart(5, 50, 6)
    X[3::5] = X[0::5] / 2 + X[1::5] / 2  # class 3 is between two others, which are not separable from the rest either
    asked, real = [], fitting.margin_of

    def noted(problem, *given):
        asked.append(problem.signs > 0)
        return real(problem, *given)

    monkeypatch.setattr(fitting, "margin_of", noted)
    found = MaxMarginClassifier(multi_class="ovr", **quiet).fit(X, y)
    k = found.separable_.index(False)
    np.testing.assert_array_equal(asked, [y == f"class {k}"])
    assert found.witness_[k] == gordan.maximize_margin(X, y == f"class {k}", tol=1e-9).stated_witness
    assert found.separable_ == [False if j == k else None for j in range(5)]
    assert found.loss_ == ["squared_hinge"] * 5
    for j in range(5):
        assert both(found.certificate_[j], X, y == f"class {j}") == (True, True)


def test_all_classes_by_a_loss_if_one_against_the_rest_needs_it():
    with pytest.warns(
        InseparableWarning, match=r"1 against the rest is not .*; fitted by .* \(C = 1\), as are all classes\. "
    ) as told:
        found = MaxMarginClassifier(multi_class="ovr").fit(X_IRIS, Y_IRIS)
    assert len(told) == 1
    assert found.loss_ == ["squared_hinge"] * 3
    assert found.separable_ == [None, False, None]
    np.testing.assert_array_equal(found.margin_, [[0, np.inf], [0, 0], [0, np.inf]])
    for k in range(3):
        least = gordan.minimize_loss(X_IRIS, k == Y_IRIS, tol=1e-9)
        np.testing.assert_allclose(found.coef_[k], least.w, atol=1e-6)
    jobs = MaxMarginClassifier(multi_class="ovr", n_jobs=2, **quiet).fit(X_IRIS, Y_IRIS)
    np.testing.assert_allclose(jobs.coef_, found.coef_, atol=1e-12)
    assert found.score(X_IRIS, Y_IRIS) > 0.95
    pairs = MaxMarginClassifier(**quiet).fit(X_IRIS, Y_IRIS)
    assert pairs.loss_ == [None, None, "squared_hinge"]
    assert pairs.objective_[:2] == [None, None]


def overlaps(one, other):
    """Whether two intervals may hold the same number."""
    return one[0] <= other[1] and other[0] <= one[1]


def test_by_a_loss_where_no_separator_is_found_in_a_quarter_of_the_time():
    """No word about the data is said then."""
    X, y = datasets.load_digits(return_X_y=True)
    with pytest.warns(
        InseparableWarning, match="no separator was found, nor a proof that there is none; fitted by squared hinge"
    ):
        found = MaxMarginClassifier(method="smooth_perceptron", time_limit=1e-9, tol=1.0).fit(X, y == 1)
    assert found.separable_ is None
    assert found.loss_ == "squared_hinge"
    assert overlaps(found.margin_, gordan.maximize_margin(X, y == 1, tol=0.1).margin)


def test_a_separator_within_the_quarter_is_improved_in_the_rest(monkeypatch):
    """A run that the first quarter ended with a positive margin goes on until the limit."""
    asked, real = [], fitting.margin_of

    def watched(problem, budget, options, weights, start, checkpoint):
        asked.append((budget.deadline - budget.started, start))
        budget = replace(budget, max_iter=1 if len(asked) == 1 else None)
        result = real(problem, budget, options._replace(method="smooth_perceptron"), weights, start, checkpoint)
        return replace(result, status=gordan.statuses.Status.TIME_LIMIT) if len(asked) == 1 else result

    monkeypatch.setattr(fitting, "margin_of", watched)
    X, y = X_IRIS, Y_IRIS == 0
    found = MaxMarginClassifier(time_limit=1000.0, tol=1e-3).fit(X, y)
    (first, nothing), (second, start) = asked[:2]
    assert 240 < first <= 250 < 900 < second <= 1000
    assert nothing is None
    assert start.margin[0] > 0
    assert found.loss_ is None
    assert found.gap_ <= 1e-3


def noisy_classes(wrong):
    """Four classes of 400 points in 150 dimensions, far apart, of which a share has another label; and fresh points."""
    r = np.random.default_rng(0)
    centres = r.standard_normal((4, 150))
    true = r.integers(4, size=4000)
    X = r.standard_normal((4000, 150)) / 3 + 0.25 * centres[true]
    y = np.where(r.random(4000) < wrong, r.integers(4, size=4000), true)
    return X[:1600], y[:1600], X[1600:], true[1600:]


def test_a_warning_where_classes_are_barely_separable():
    """Wrong labels that planes can still separate: the warning names LinearClassifier, which does better."""
    X, y, Z, true = noisy_classes(0.04)
    with pytest.warns(InseparableWarning, match=r"barely separable: .* misclassify about .* % of new .*LinearClassifier") as told:
        found = MaxMarginClassifier().fit(X, y)
    assert len(told) == 1
    assert found.separable_ == [True] * 6
    assert gordan.LinearClassifier(C=0.01).fit(X, y).score(Z, true) > found.score(Z, true) + 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MaxMarginClassifier(**quiet).fit(X, y)
        clean, labels, *_ = noisy_classes(0.0)
        MaxMarginClassifier().fit(clean, labels)


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_rows_that_are_wrong_when_left_out(intercept):
    """The estimate, beside what comes of leaving each support row out."""
    from gordan.estimators.leave_one_out import leave_one_out_errors
    from gordan.rows import stored

    r = np.random.default_rng(3)
    X = r.standard_normal((60, 25)) + 0.2
    y = X[:, 0] + 0.8 * r.standard_normal(60) > 0.2
    options = {"intercept": intercept, "tol": 1e-9}
    result = gordan.maximize_margin(X, y, **options)
    assert result.margin[0] > 0
    wrong = 0
    for i in np.flatnonzero(result.p):
        others = np.arange(60) != i
        left = gordan.maximize_margin(X[others], y[others], **options)
        wrong += (X[i] @ left.w + left.b > 0) != y[i]
    estimate = leave_one_out_errors(stored(X), y, result, gordan.intercepts.Intercept(intercept))
    assert wrong >= 5
    assert abs(estimate - wrong) <= 0.25 * wrong


def test_soft_with_half_of_the_largest_nu_for_other_norms():
    X, y = X_IRIS[50:], Y_IRIS[50:]
    weights = np.where(y == 1, 1.0, 0.6)
    with pytest.warns(InseparableWarning, match=r"2 against 1 is not separable: the weighted rows .* nu = 0\.375") as told:
        found = MaxMarginClassifier(norm=4).fit(X, y, sample_weight=weights)
    assert len(told) == 1
    assert found.nu_ == pytest.approx(0.5 * 2 * 30 / 80)
    assert found.separable_ is False
    assert found.loss_ is None
    same(found, MaxMarginClassifier(nu=found.nu_, norm=4).fit(X, y, sample_weight=weights))
    assert gordan.verify(found.certificate_, X, y)
    with pytest.raises(gordan.InputError, match=rf"not separable: the weighted rows {found.witness_.rows[0]}.*nu = 0\.375"):
        MaxMarginClassifier(norm=4, on_inseparable="raise").fit(X, y, sample_weight=weights)
    with pytest.raises(gordan.InputError, match=r"not separable: .* to fit by squared hinge loss, or use LinearClassifier"):
        MaxMarginClassifier(on_inseparable="raise").fit(X, y, sample_weight=weights)
    MaxMarginClassifier(**quiet).fit(X, y)
    folds = {"estimator": MaxMarginClassifier(on_inseparable="raise"), "X": X, "y": y, "cv": 2, "error_score": "raise"}
    with pytest.raises(gordan.InputError, match="is not separable"):  # out of a worker process, too
        cross_val_score(**folds, n_jobs=2)


def test_then_the_largest_nu():
    """On a line: the hull of -3 and 5 holds 0 and 1, also when halved; the means are apart."""
    X, y = [[-3.0], [5.0], [0.0], [1.0]], [1, 1, 0, 0]
    with pytest.warns(InseparableWarning, match="nu = 1"):
        found = MaxMarginClassifier(norm=3).fit(X, y)
    assert found.nu_ == 1
    assert found.margin_ == pytest.approx(((1 - 0.5) / 2,) * 2)
    assert found.coef_.tolist() == [[1.0]]


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_then_the_heavier_class(intercept):
    X, y = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]]), np.array(["a", "a", "b", "b"])
    for heavy, weights in {"a": [2.0, 2.0, 1.0, 1.0], "b": [1.0, 1.0, 2.0, 2.0]}.items():
        with pytest.warns(InseparableWarning, match=f"w is 0 and the heavier class .'{heavy}'. is predicted"):
            found = MaxMarginClassifier(intercept=intercept, norm=3).fit(X, y, sample_weight=weights)
        assert not found.coef_.any()
        assert found.predict(X).tolist() == [heavy] * 4
        least = MaxMarginClassifier(intercept=intercept, **quiet).fit(X, y, sample_weight=weights)
        assert np.abs(least.coef_).max() < 1e-12
        if intercept != "none":
            assert least.predict(X).tolist() == [heavy] * 4
        if intercept == "penalized":  # the constant column is a feature there, and has a soft margin of its own
            assert abs(found.intercept_[0]) == 1
        else:
            assert found.margin_[0] == 0
            assert found.margin_[1] < 1e-8


def test_a_nu_at_which_the_reduced_hulls_meet():
    X, y = X_IRIS, Y_IRIS == 1
    with pytest.warns(
        InseparableWarning,
        match=r"no plane of positive soft margin was found at nu = 0\.1.*larger nu \(at most 0\.666667\), or use Linear",
    ):
        found = MaxMarginClassifier(nu=0.1).fit(X, y)
    assert not found.coef_.any()
    assert found.separable_ is None
    with pytest.raises(gordan.InputError, match=r"was found at nu = 0\.1"):
        MaxMarginClassifier(nu=0.1, on_inseparable="raise").fit(X, y)


def test_one_convergence_warning_with_both_numbers():
    X, y = datasets.load_digits(return_X_y=True)
    with pytest.warns(
        ConvergenceWarning, match=r"after 1 round with the margin between \S+ and \S+, a gap of .* where tol is 0.0001"
    ) as told:
        found = MaxMarginClassifier(max_iter=1, method="smooth_perceptron").fit(X, y == 1)
    assert len(told) == 1
    assert found.gap_ > 1e-4
    assert found.n_iter_ == 1
    assert gordan.verify(found.certificate_, X, y == 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # no gap is wider than that
        found = MaxMarginClassifier(max_iter=1, method="smooth_perceptron", tol=1.0, **quiet).fit(X, y == 1)
    with pytest.warns(ConvergenceWarning, match="time-limit"):
        MaxMarginClassifier(method="smooth_perceptron", tol=1e-9, nu=0.1, time_limit=0.2).fit(X, y == 1)


@pytest.mark.parametrize("nu", [0.1, 0.2])
def test_a_limit_before_anything_is_found(nu):
    """No plane yet is no word about the data: the heavier class is predicted, and the limit is what is warned of."""
    X, y = datasets.load_digits(return_X_y=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = MaxMarginClassifier(method="smooth_perceptron", nu=nu, time_limit=1e-9).fit(X, y == 1)
    assert [warning.category for warning in told] == [ConvergenceWarning]
    assert "(time-limit)" in str(told[0].message)
    assert found.separable_ is None
    assert overlaps(found.margin_, gordan.maximize_margin(X, y == 1, nu=nu, tol=0.1).margin)
    if not found.coef_.any():
        assert not found.predict(X).any()


# ---- scikit-learn around it ----------------------------------------------------------------------------------------------


def test_pipelines_searches_and_calibration():
    model = make_pipeline(StandardScaler(), MaxMarginClassifier(nu=0.1, **quiet))
    X, y = X_IRIS, Y_IRIS
    assert cross_val_score(model, X, y).mean() > 0.93
    search = GridSearchCV(model, {"maxmarginclassifier__nu": [0.05, 0.1, 0.4]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.93
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X, y)
    assert calibrated.predict_proba(X).shape == (150, 3)
    assert calibrated.score(X, y) > 0.93


def test_infeasible_nu_is_refused_with_its_range_and_problem():
    with pytest.raises(gordan.InputError, match=r"0 against the rest: nu is 0.9.*\(0, 0.666667\]"):
        MaxMarginClassifier(nu=0.9, multi_class="ovr").fit(X_IRIS, Y_IRIS)


def test_metadata_is_routed():
    X, y = X_IRIS[50:], Y_IRIS[50:]
    weights = np.where(np.arange(100) % 7 == 0, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        step = MaxMarginClassifier(nu=0.3).set_fit_request(sample_weight=True)
        model = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), step).fit(X, y, sample_weight=weights)
    alone = MaxMarginClassifier(nu=0.3).fit(StandardScaler().fit_transform(X), y, weights)
    np.testing.assert_allclose(model[-1].coef_, alone.coef_, atol=1e-12)


def test_jobs_change_nothing():
    X, y = datasets.load_digits(return_X_y=True)
    X, y = X[:600], y[:600]
    before = _blas_threads()
    one = MaxMarginClassifier(random_state=3, **quiet).fit(X, y)
    two = MaxMarginClassifier(random_state=3, n_jobs=2, **quiet).fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert _blas_threads() == before
    assert one.coef_.shape == (45, 64)
    fits = joblib.Parallel(n_jobs=2)(joblib.delayed(clone(one).fit)(X, y < k) for k in (3, 6))
    np.testing.assert_array_equal(fits[0].coef_, clone(one).fit(X, y < 3).coef_)


def _blas_threads():
    from threadpoolctl import threadpool_info

    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_pickle_and_joblib(tmp_path):
    X, y = datasets.load_digits(return_X_y=True)
    found = MaxMarginClassifier(multi_class="ovr", **quiet).fit(X, y)
    text = pickle.dumps(found)
    assert len(text) < X.nbytes  # the data is not in it
    buffer = io.BytesIO()
    joblib.dump(found, buffer)
    buffer.seek(0)
    for again in (pickle.loads(text), joblib.load(buffer)):
        np.testing.assert_array_equal(again.decision_function(X), found.decision_function(X))


@pytest.mark.parametrize("options", [{}, {"multi_class": "ovr"}, {"norm": 2.0, "nu": 0.3}, {"intercept": "penalized"}], ids=str)
@pytest.mark.parametrize("labels", [[0, 1, 2], ["x", "y", "z"], [0.0, 1.0, 5.0], [False, True, True]], ids=str)
def test_model_files(options, labels, tmp_path):
    y = np.array(labels)[Y_IRIS]
    X = pandas.DataFrame(X_IRIS, columns=["a", "b", "c", "d"])
    found = MaxMarginClassifier(**options, **quiet).fit(X, y)
    found.save(tmp_path / "model")
    again = gordan.MaxMarginClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(X), found.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    np.testing.assert_array_equal(np.array(again.margin_), np.array(found.margin_))
    np.testing.assert_array_equal(again.gap_, found.gap_)
    assert again.classes_.tolist() == found.classes_.tolist()
    assert again.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert again.nu_ == found.nu_
    assert again.certificate_ == found.certificate_
    assert clone(again).set_params(**quiet).fit(X, y).coef_.shape == found.coef_.shape


@pytest.mark.parametrize(
    ("y", "options", "used", "written"),
    [
        (Y_IRIS == 0, {}, None, None),
        (Y_IRIS == 2, {"norm": 3.0}, 1 / 3, 1 / 3),  # not separable: half of the largest nu, which nobody asked for
        (Y_IRIS == 1, {"norm": 3.0}, 2 / 3, 2 / 3),  # half of it is not enough
        (Y_IRIS, {"norm": 3.0}, [None, None, 0.5], None),
        (Y_IRIS, {}, [None, None, None], None),
        (Y_IRIS, {"nu": 0.3}, [0.3] * 3, 0.3),
        (Y_IRIS == 1, {"nu": 1, "intercept": "none"}, 1.0, 1.0),
    ],
    ids=["hard", "soft", "softest", "both", "by a loss", "asked", "asked as an integer"],
)
def test_nu_in_a_model_file(y, options, used, written, tmp_path):
    """That of the planes where they have one, else the one asked for; `load` asks for it again."""
    found = MaxMarginClassifier(**options, **quiet).fit(X_IRIS, y)
    assert found.nu_ == used
    found.save(tmp_path / "model")
    assert Model.load(tmp_path / "model").nu == written
    again = MaxMarginClassifier.load(tmp_path / "model")
    assert again.nu == written
    assert again.nu_ == used
    assert (again.loss_, again.objective_) == (found.loss_, found.objective_)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    same(clone(again).set_params(**quiet).fit(X_IRIS, y), found)


def test_a_model_file_without_certificates_is_loaded_and_saved(tmp_path):
    found = MaxMarginClassifier(nu=0.3).fit(X_IRIS, Y_IRIS)
    replace(found._model(), certificates=None).save(tmp_path / "model")
    again = MaxMarginClassifier.load(tmp_path / "model")
    assert again.nu_ == found.nu_
    assert not hasattr(again, "certificate_")
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_only_fitted_models_are_saved(tmp_path):
    with pytest.raises(sklearn.exceptions.NotFittedError):
        MaxMarginClassifier().save(tmp_path / "model")


# ---- options -------------------------------------------------------------------------------------------------------------


def test_warm_start_of_pairs():
    """Each pair goes on with the weights of its own rows."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = np.array([[6.0, 0.0], [-3.0, 5.0], [-3.0, -5.0]])[y] + rng.uniform(-1, 1, (60, 2))
    model = MaxMarginClassifier(multi_class="ovo", method="smooth_perceptron", tol=1e-3, warm_start=True)
    cold = np.sum(model.fit(X, y).n_iter_)
    coef = model.coef_
    assert np.sum(model.fit(X, y).n_iter_) < cold / 2
    np.testing.assert_allclose(model.coef_, coef, atol=1e-9)


def test_warm_start():
    X, y = X_IRIS, Y_IRIS == 0
    model = MaxMarginClassifier(method="smooth_perceptron", tol=1e-3, warm_start=True)
    cold = model.fit(X, y).n_iter_
    coef = model.coef_
    assert model.fit(X, y).n_iter_ < cold / 2
    np.testing.assert_allclose(model.coef_, coef, atol=1e-9)
    model.set_params(nu=0.6).fit(X, y)  # the old weights are above the new caps
    same(model, MaxMarginClassifier(nu=0.6).fit(X, y))
    model.set_params(nu=None).fit(X[10:], y[10:])  # other rows: a fresh start
    same(model, MaxMarginClassifier().fit(X[10:], y[10:]))
    corners = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0], [9.0, 9.0]])  # four classes: six pairs, or four against the rest
    model.fit(corners, [0, 1, 2, 3]).set_params(multi_class="ovr").fit(corners, [0, 1, 2, 3])
    assert model.coef_.shape == (4, 2)


def test_seeds_and_progress(capsys):
    X, y = X_WINE, Y_WINE
    one = MaxMarginClassifier(random_state=np.random.RandomState(0)).fit(X, y)
    two = MaxMarginClassifier(random_state=np.random.RandomState(0)).fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert capsys.readouterr().out == ""
    MaxMarginClassifier(verbose=1).fit(X, y)
    assert len(capsys.readouterr().out.splitlines()) == 3
    MaxMarginClassifier(verbose=2).fit(X, y)
    told = capsys.readouterr().out
    assert "2 against 1: solved" in told
    assert "round 1" in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": 0}, "tol is 0"),
        ({"multi_class": "both"}, "multi_class is 'both'; choose one of 'ovo', 'ovr'"),
        ({"on_inseparable": "shout"}, "on_inseparable is 'shout'"),
        ({"class_weight": {7: 1.0}}, "class_weight names 7"),
        ({"class_weight": "fair"}, "class_weight is 'fair'"),
        ({"class_weight": {0: -1.0}}, r"class_weight\[0\] is -1.0"),
        ({"class_weight": {0: 0.0}}, "all rows of class 0 have weight zero"),
        ({"method": "magic"}, "magic"),
        ({"norm": 1}, "norm is 1"),
        ({"nu": 2.0}, r"nu is 2.0; for this data it must be in \(0, 0.666667\]"),
        ({"intercept": "maybe"}, "intercept is 'maybe'"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"time_limit": -1}, "time_limit is -1"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(gordan.InputError, match=message):
        MaxMarginClassifier(**options).fit(X_IRIS, (Y_IRIS == 0).astype(int))


def test_bad_weights_are_refused():
    weights = np.ones(150)
    weights[7] = -1
    with pytest.raises(gordan.InputError, match=r"sample_weight\[7\] is -1"):
        MaxMarginClassifier().fit(X_IRIS, Y_IRIS, weights)
    with pytest.raises(gordan.InputError, match="sample_weight must hold one number"):
        MaxMarginClassifier().fit(X_IRIS, Y_IRIS, weights[:-1])


def test_one_row_in_a_class_and_one_column():
    found = MaxMarginClassifier().fit([[0.0], [1.0], [4.0]], [0, 0, 1])
    assert (found.coef_[0, 0], found.intercept_[0]) == pytest.approx((1.0, -2.5))
    assert found.margin_ == pytest.approx((1.5, 1.5))
    assert found.support_.tolist() == [1, 2]


@pytest.mark.parametrize("norm", [3, 6.5, np.inf])
def test_other_norms(norm):
    """Lengths of w are measured in the dual norm, distances of points in the norm itself."""
    y = np.where(Y_IRIS == 0, 1, -1)
    found = MaxMarginClassifier(norm=norm).fit(X_IRIS, y)
    q = 1.0 if norm == np.inf else norm / (norm - 1)
    assert np.linalg.norm(found.coef_[0], ord=q) == pytest.approx(1)
    assert (y * (X_IRIS @ found.coef_[0] + found.intercept_[0])).min() == pytest.approx(found.margin_[0], rel=1e-9)
    assert np.linalg.norm(found.dual_coef_[0] @ X_IRIS[found.support_], ord=norm) == pytest.approx(found.margin_[1], rel=1e-9)
    assert found.gap_ <= 1e-9


def test_what_scikit_learn_does_not_look_at():
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [3.0, 4.0], [4.0, 3.0]]), [0, 0, 1, 1]
    masked = np.ma.masked_array(X, mask=X == 4.0)
    fitted = MaxMarginClassifier().fit(X, y)
    for call in (lambda: MaxMarginClassifier().fit(masked, y), lambda: fitted.predict(masked)):
        with pytest.raises(gordan.InputError, match="masked"):
            call()
    with pytest.raises(gordan.InputError, match="verbose is None"):
        MaxMarginClassifier(verbose=None).fit(X, y)


@pytest.mark.parametrize("made", [MaxMarginClassifier, gordan.LinearClassifier])
def test_unknown_parameters_are_refused_by_name(made):
    """With the name of the estimator, and of what is called otherwise here; scikit-learn goes on to see the parameters."""
    for wrong, told in (
        ("fit_intercept", "pass intercept='none'"),
        ("penalty", "the penalty is "),
        ("tolerance", "parameters are C"),
    ):
        if made is gordan.LinearClassifier or wrong == "fit_intercept":
            with pytest.raises(TypeError, match=rf"^{made.__name__} has no parameter '{wrong}'; .*{re.escape(told)}"):
                made(**{wrong: False})
    with pytest.raises(TypeError, match=r"did you mean 'max_iter'\?"):
        made(max_iters=3)
    model = made(tol=1e-3)
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).tol == 1e-3
    assert "tol" in inspect.signature(made).parameters


@pytest.mark.parametrize(("multi_class", "classes", "older"), [("ovr", 2, "ovo"), ("ovr", 3, "ovr"), ("ovo", 3, "ovo")])
def test_a_loaded_classifier_fits_several_classes_as_the_saved_one_did(multi_class, classes, older, tmp_path):
    """A file of two classes without options does not say how more of them would be fitted: the default holds."""
    kept = classes > Y_IRIS
    MaxMarginClassifier(multi_class=multi_class, **quiet).fit(X_IRIS[kept], Y_IRIS[kept]).save(tmp_path / "m.gordan")
    assert gordan.load(tmp_path / "m.gordan").multi_class == multi_class
    replace(Model.load(tmp_path / "m.gordan"), options=None).save(tmp_path / "older.gordan")
    assert gordan.load(tmp_path / "older.gordan").multi_class == older


TWO_LABELS = np.column_stack((Y_IRIS == 0, Y_IRIS > 1)).astype(int)


@pytest.mark.parametrize(
    ("made", "options", "y"),
    [
        (gordan.LinearClassifier, {"class_weight": "balanced", "tol": 1e-9, "max_iter": 50, "warm_start": True}, Y_IRIS),
        (gordan.LinearClassifier, {"class_weight": {"b": 5}, "time_limit": 100, "random_state": 7}, np.array([*"abc"])[Y_IRIS]),
        (gordan.LinearClassifier, {"loss": "multinomial", "class_weight": {0: 0.25, 2: np.float32(2)}}, Y_IRIS),
        (gordan.LinearClassifier, {"class_weight": {1: 3}}, TWO_LABELS),
        (gordan.LinearClassifier, {"class_weight": "balanced"}, TWO_LABELS),
        (
            MaxMarginClassifier,
            {"nu": 0.3, "class_weight": {0: 2, 1: 1, 2: 1}, "tol": 1e-2, "method": "smooth_perceptron"},
            Y_IRIS,
        ),
        (MaxMarginClassifier, {"class_weight": "balanced", "multi_class": "ovr", "on_inseparable": "ignore"}, Y_IRIS),
        (MaxMarginClassifier, {"random_state": np.int64(3), "max_iter": np.int64(90), "on_inseparable": "raise"}, Y_IRIS > 0),
    ],
)
def test_a_loaded_classifier_fits_as_the_saved_one_did(made, options, y, tmp_path):
    """With the parameters that change the answer; a weight of 1 for each other class says the same as a dict without it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = made(**options).fit(X_IRIS, y)
        model.save(tmp_path / "m.gordan")
        loaded = gordan.load(tmp_path / "m.gordan")
        for name, value in (model.get_params() | options).items():
            own = getattr(loaded, name)
            if name == "class_weight" and isinstance(value, dict):
                assert own == {label: value.get(label, 1.0) for label in own}
                assert value.keys() <= own.keys()
            else:
                assert own == value
        assert (loaded.class_weight_ is None) == (model.class_weight_ is None)
        assert model.class_weight_ is None or (loaded.class_weight_ == model.class_weight_).all()
        loaded.save(tmp_path / "again.gordan")
        assert (tmp_path / "again.gordan").read_bytes() == (tmp_path / "m.gordan").read_bytes()
        loaded.set_params(warm_start=False)
        assert np.array_equal(loaded.fit(X_IRIS, y).coef_, model.coef_)


def test_parameters_that_a_file_cannot_hold_get_their_defaults(tmp_path):
    method = gordan.methods.smooth_perceptron(eta=0.5)
    model = MaxMarginClassifier(method=method, random_state=np.random.RandomState(0)).fit(X_IRIS, Y_IRIS > 0)
    model.save(tmp_path / "m.gordan")
    loaded = gordan.load(tmp_path / "m.gordan")
    assert (loaded.method, loaded.random_state) == ("auto", None)


@pytest.mark.parametrize("options", [{}, {"multi_class": "ovr"}, {"labels": True}])
def test_ctrl_c_ends_the_fit_and_not_only_one_of_its_problems(options, monkeypatch):
    # whatever a problem makes of Ctrl-C (here the first one catches it and goes on to the end), the others are not begun
    begun = []

    def attempts(self, *given):
        begun.append(given[0])
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return original(self, *given)

    original = fitting.Fitting._attempts
    monkeypatch.setattr(fitting.Fitting, "_attempts", attempts)
    monkeypatch.setattr(fitting.Fitting, "hard_margins_together", lambda self, problems: ({}, [*range(len(problems))]))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 4
    Y = np.eye(4, dtype=int)[y] if options.pop("labels", False) else y
    before = signal.getsignal(signal.SIGINT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InseparableWarning)
        with pytest.warns(ConvergenceWarning, match=r"stopped \(interrupted\).*fit again without interrupting it"):
            model = MaxMarginClassifier(**options).fit(X, Y)
    assert begun == [0]
    assert signal.getsignal(signal.SIGINT) is before
    assert not model.coef_[1:].any()
    assert len(model.predict(X)) == len(X)
