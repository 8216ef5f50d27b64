"""`MaxMarginClassifier` within scikit-learn, and its options."""

from __future__ import annotations

import contextlib
import decimal
import inspect
import io
import pickle
import re
import signal
import warnings
from dataclasses import replace

import joblib
import numpy as np
import pandas
import pytest
import sklearn
from sklearn import datasets
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, VotingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_estimator import X_IRIS, X_WINE, Y_IRIS, Y_WINE, quiet, same

import gordan
from gordan.estimators import InseparableWarning, MaxMarginClassifier, fitting, planes
from gordan.io import Model

# of wine, whose columns have other units
pytestmark = pytest.mark.filterwarnings("ignore:columns differ in size:UserWarning")


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


@pytest.mark.parametrize("model", [gordan.LinearClassifier(), MaxMarginClassifier()], ids=["losses", "margins"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_jobs": "a"}, "n_jobs is 'a'; pass a number of threads, -1 for one on each core, or None"),
        ({"n_jobs": 1.5}, "n_jobs is 1.5"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"n_jobs": True}, "n_jobs is True"),
        ({"verbose": "a"}, "verbose is 'a'; pass 0"),
        ({"warm_start": "yes"}, "warm_start is 'yes'; pass True or False"),
        ({"warm_start": 1}, "warm_start is 1"),
    ],
)
def test_bad_options_of_both_classifiers_are_refused(model, options, message):
    with pytest.raises(gordan.InputError, match=message):
        clone(model).set_params(**options).fit(X_IRIS, Y_IRIS == 0)


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
    with pytest.raises(gordan.InputError, match="verbose is None; pass 0, 1 or 2"):
        MaxMarginClassifier(verbose=None).fit(X, y)


@pytest.mark.parametrize("made", [MaxMarginClassifier, gordan.LinearClassifier])
def test_unknown_parameters_are_refused_by_name(made):
    """With the name of the estimator, and of what is called otherwise here; scikit-learn goes on to see the parameters."""
    for wrong, told in (
        ("fit_intercept", "pass intercept='none'"),
        ("kernel", "the classifier is linear"),
        *(
            (
                ("penalty", "the penalty is "),
                ("multi_class", "pass loss='multinomial'"),
                ("tolerance", "parameters are C"),
            )
            if made is gordan.LinearClassifier
            else (("C", "use LinearClassifier to choose a loss and C"), ("penalty", "parameters are class_weight"))
        ),
    ):
        with pytest.raises(TypeError, match=rf"^{made.__name__} has no parameter '{wrong}'; .*{re.escape(told)}"):
            made(**{wrong: False})
    allowed = "only loss and C" if made is gordan.LinearClassifier else "no parameters"
    with pytest.raises(TypeError, match=rf"^{made.__name__} takes {allowed} by position; pass parameters by name, such as tol"):
        made("hinge", 1.0, 1e-3)
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


# ---- classes without weight ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("class_weight", [None, "balanced", {1: 2.0, 2: 5.0}])
@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize(
    "model",
    [
        gordan.LinearClassifier(),
        gordan.LinearClassifier("multinomial"),
        MaxMarginClassifier(),
        MaxMarginClassifier(multi_class="ovr"),
    ],
    ids=["losses", "multinomial", "pairs", "rest"],
)
def test_a_class_without_weight_is_left_out(model, k, class_weight, tmp_path):
    """The fit is that without its rows, and the certificates hold for the rows of the other classes."""
    r = np.random.default_rng(0)
    y = np.arange(60) % k
    X = r.standard_normal((60, 3)) + np.eye(4, 3)[y]
    kept = y != 2
    others = {1: 2.0} if isinstance(class_weight, dict) else class_weight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = clone(model).set_params(class_weight=class_weight).fit(X, y, sample_weight=kept.astype(float))
        alone = clone(model).set_params(class_weight=others).fit(X[kept], y[kept])
    assert found.classes_.tolist() == [c for c in range(k) if c != 2]
    assert found.kind_ == alone.kind_
    assert np.allclose(found.coef_, alone.coef_, atol=1e-6)
    assert class_weight is None or np.allclose(found.class_weight_, alone.class_weight_)
    if found.kind_ == "one-vs-rest":
        assert all(gordan.verify(own, X, y == c) for own, c in zip(found.certificate_, found.classes_, strict=True))
    elif found.kind_ in ("binary", "multinomial"):
        assert gordan.verify(found.certificate_, X[kept], y[kept])
    if hasattr(found, "support_"):
        assert kept[found.support_].all()
    found.save(tmp_path / "m")
    assert (gordan.load(tmp_path / "m").predict(X) == found.predict(X)).all()


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"], [2.0, 5.0, 7.0]])
@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize(
    "model",
    [
        *(gordan.LinearClassifier(loss) for loss in ("hinge", "squared_hinge", "logistic", "multinomial")),
        gordan.LinearClassifier(intercept="none", class_weight="balanced"),
        gordan.LinearClassifier("logistic", intercept="penalized"),
        MaxMarginClassifier(),
        MaxMarginClassifier(nu=0.2, intercept="none"),
    ],
    ids=str,
)
def test_one_class_with_weight_is_predicted_for_all_rows(model, own, labels, tmp_path):
    r = np.random.default_rng(0)
    X, which = r.standard_normal((24, 3)), np.arange(24) % len(labels)
    y = np.array(labels)[which]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = clone(model).fit(X, y)  # whatever an earlier fit left behind
    for found in (clone(model), again):
        with pytest.warns(UserWarning, match=f"only rows of class {labels[own]!r} have positive weight") as warned:
            found.fit(X, y, sample_weight=(which == own) * 2.0)
        assert len(warned) == 1
        assert found.classes_.tolist() == labels[:2]
        assert (found.predict(X) == labels[own]).all()
        assert (np.sign(found.decision_function(X)) == 2 * own - 1).all()
        assert not found.coef_.any()
        assert found.n_iter_ == 0
        planes.REMARKED.clear()
    if hasattr(found, "predict_proba"):
        p = found.predict_proba(X)
        assert p.shape == (24, 2)
        assert (p[:, own] > 1 - 1e-4).all()
        assert np.allclose(p.sum(axis=1), 1)
    if isinstance(found, gordan.LinearClassifier):
        lower, upper = found.objective_
        assert lower == 0 <= upper
        assert (upper <= found.tol) == (found.intercept == "free")
        assert found.radius_ == np.inf
        with pytest.raises(AttributeError, match="only one class had weight"):
            _ = found.certificate_
        with pytest.raises(gordan.InputError, match="only one class had weight"):
            found.same_prediction(X)
    found.save(tmp_path / "m")
    assert (gordan.load(tmp_path / "m").predict(X) == labels[own]).all()
    assert (pickle.loads(pickle.dumps(found)).predict(X) == labels[own]).all()
    assert (found.to_sklearn().predict(X) == labels[own]).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "multinomial"])
@pytest.mark.parametrize("intercept", ["none", "penalized", "free"])
def test_the_interval_of_one_class_with_weight_holds_the_least_value(loss, intercept):
    """Rows at 0 leave nothing to w: without an intercept the least value is ΣC_i ℓ(0), with more digits than floats have."""
    r = np.random.default_rng(1)
    for _ in range(20):
        weights = np.append(r.uniform(0.1, 2.0, 3) * 10.0 ** r.integers(-3, 4), 0.0)
        C = float(10.0 ** r.uniform(-4, 4))
        found = gordan.LinearClassifier(loss, C=C, intercept=intercept).fit(np.zeros((4, 1)), [1, 1, 1, 0], weights)
        lower, upper = found.objective_
        with decimal.localcontext(prec=60):
            total = decimal.Decimal(C) * sum(map(decimal.Decimal, weights.tolist()))
            least = total * (decimal.Decimal(2).ln() if loss in ("logistic", "multinomial") else 1)
            assert lower == 0
            assert intercept != "none" or least <= decimal.Decimal(upper) <= least * (1 + decimal.Decimal("1e-11"))
            assert intercept != "free" or upper <= found.tol


@pytest.mark.filterwarnings("ignore")
def test_constants_of_one_class_with_weight_beyond_floats_are_refused():
    for C, weight, told in ((1e307, 100.0, "overflows"), (1e-320, 1e-5, "underflows")):
        for loss in ("hinge", "logistic"):
            with pytest.raises(gordan.InputError, match=told):
                gordan.LinearClassifier(loss, C=C).fit(np.zeros((4, 1)), [1, 1, 1, 0], [weight] * 3 + [0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "model", [gordan.LinearClassifier(), gordan.LinearClassifier("logistic"), MaxMarginClassifier()], ids=str
)
def test_bagging_of_two_classes_of_which_one_is_rare(model):
    """A bootstrap that misses it predicts the other one, and the rest of the ensemble decides."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.where(np.arange(40) < 2, "rare", "usual")
    X[:2] += 5
    bag = BaggingClassifier(model, n_estimators=20, random_state=0).fit(X, y)
    assert 0 < sum(not each.coef_.any() for each in bag.estimators_) < 10
    assert (bag.predict(X) == y).all()
    assert bag.predict_proba(X).shape == (40, 2)
    assert ((bag.decision_function(X) > 0) == (y == "usual")).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [gordan.LinearClassifier(), gordan.LinearClassifier("multinomial"), MaxMarginClassifier()])
def test_ensembles_of_few_rows_of_a_class(model):
    """A bootstrap that misses a class gives it no weight."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.r_[np.zeros(29), np.ones(29), 2, 2].astype(int)
    bag = BaggingClassifier(model, n_estimators=20, random_state=0).fit(X, y)
    assert {len(each.classes_) for each in bag.estimators_} == {2, 3}
    assert bag.predict(X).shape == (60,)
    weights = np.r_[np.ones(58), 0, 0]
    assert VotingClassifier([("one", model)]).fit(X, y, sample_weight=weights).predict(X).max() == 1
    assert AdaBoostClassifier(model, n_estimators=3).fit(X, y, sample_weight=weights).predict(X).max() <= 2
