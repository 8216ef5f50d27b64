"""`MaxMarginClassifier` where nothing separates: what it says, and what it fits instead."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from checkers import both
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from test_estimator import X_IRIS, Y_IRIS, quiet, same

import gordan
from gordan.estimators import InseparableWarning, MaxMarginClassifier, fitting

# of wine, whose columns have other units
pytestmark = pytest.mark.filterwarnings("ignore:columns differ in size:UserWarning")


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
