"""`MaxMarginClassifier`: scikit-learn's contract, what weights and labels mean, and what is claimed."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pandas
import polars
import pytest
import scipy.sparse as sp
from flint import fmpq, fmpq_mat
from sklearn import datasets
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, NuSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import gordan
from gordan.estimators import MaxMarginClassifier

# of wine, whose columns have other units
pytestmark = pytest.mark.filterwarnings("ignore:columns differ in size:UserWarning")


quiet = {"on_inseparable": "ignore"}


X_IRIS, Y_IRIS = datasets.load_iris(return_X_y=True)


X_WINE, Y_WINE = datasets.load_wine(return_X_y=True)


@pytest.mark.filterwarnings("ignore::gordan.estimators.InseparableWarning")
@pytest.mark.filterwarnings("ignore:only rows of class:UserWarning")
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
