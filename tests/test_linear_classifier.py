"""`LinearClassifier`: scikit-learn's own checks, agreement with its solvers, and what it claims."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from typer.testing import CliRunner

import gordan
from gordan import InputError, LinearClassifier
from gordan.certificates import standalone
from gordan.certificates.verify import verified_for
from gordan.cli.app import app
from gordan.cli.proofs import claims_in
from gordan.verdicts import many

LOSSES = ("hinge", "squared_hinge", "logistic")
INTERCEPTS = ("free", "penalized", "none")


@pytest.mark.filterwarnings("ignore:only rows of class:UserWarning")
@parametrize_with_checks([LinearClassifier(loss) for loss in ("squared_hinge", "hinge", "logistic", "multinomial")])
def test_scikit_learn_checks_it(estimator, check):
    """None of scikit-learn's checks is expected to fail."""
    check(estimator)


@pytest.fixture(scope="module")
def overlapping():
    X, y = make_classification(400, 8, n_informative=4, flip_y=0.1, random_state=3)
    return X, np.where(y > 0, "yes", "no")


def objective(loss, X, y, C, w, b, penalized):
    """½‖w‖² + C Σ ℓ(z), from raw numbers."""
    z = y * (X @ w + b)
    short = np.maximum(0, 1 - z)
    losses = {"hinge": short, "squared_hinge": short**2, "logistic": np.logaddexp(0, -z)}[loss]
    return 0.5 * (w @ w + (b * b if penalized else 0.0)) + C * losses.sum()


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_classes_of_small_data_are_found_together_as_precisely_as_one_by_one(loss, monkeypatch):
    alone, found = [], many.result_of

    def counted(asked, *known, **named):
        alone.extend([] if known else [asked])
        return found(asked, *known, **named)

    monkeypatch.setattr(many, "result_of", counted)
    X, y = load_iris(return_X_y=True)
    model = LinearClassifier(loss).fit(X, y)
    assert not alone
    assert np.max(model.gap_) <= 1e-9
    for k in range(3):
        one = gordan.minimize_loss(X, y == k, loss=loss, tol=1e-12)
        np.testing.assert_allclose(model.coef_[k], one.w, rtol=1e-8)
    with pytest.warns(ConvergenceWarning, match="no-progress"):
        precise = LinearClassifier(loss, tol=1e-13).fit(X, y)
    assert alone
    assert (precise.gap_ <= model.gap_).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_interval_holds_the_value_of_the_plane_and_no_other_plane_is_better(overlapping, loss, intercept, C):
    X, y = overlapping
    model = LinearClassifier(loss, C, intercept=intercept).fit(X, y)
    signs = np.where(y == "yes", 1.0, -1.0)
    lower, upper = model.objective_
    w, b = model.coef_[0], float(model.intercept_[0])
    own = objective(loss, X, signs, C, w, b, intercept == "penalized")
    assert lower <= own <= upper * (1 + 1e-12)
    assert (upper - lower) <= 1e-4 * upper
    rng = np.random.default_rng(0)
    for scale in (1e-4, 1e-2, 1.0):
        v, c = w + scale * rng.standard_normal(len(w)), b + scale * rng.standard_normal() * (intercept != "none")
        assert objective(loss, X, signs, C, v, c, intercept == "penalized") >= lower


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_both_checkers_accept_its_certificate_and_refuse_a_narrower_one(overlapping, loss, intercept):
    X, y = overlapping[0][:40], overlapping[1][:40]
    certificate = LinearClassifier(loss, 2.0, intercept=intercept).fit(X, y).certificate_
    lower, upper = certificate.lower, certificate.upper
    from dataclasses import replace

    wrong = (replace(certificate, lower=upper * (1 + 1e-9)), replace(certificate, upper=lower * (1 - 1e-9)))
    for claim, expected in ((certificate, True), *((each, False) for each in wrong)):
        assert bool(gordan.verify(claim, X, y)) is expected
        text = standalone.read_certificate(claim.to_json())
        assert standalone.check(text, X.tolist(), y.tolist())[0] is expected


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_it_agrees_with_linear_svc(overlapping, loss):
    X, y = overlapping
    ours = LinearClassifier(loss, intercept="penalized", tol=1e-10).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = LinearSVC(loss=loss, tol=1e-9, max_iter=200_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    assert (ours.predict(X) == theirs.predict(X)).mean() >= 0.995


def test_it_agrees_with_logistic_regression(overlapping):
    X, y = overlapping
    ours = LinearClassifier("logistic", 0.7).fit(X, y)
    theirs = LogisticRegression(C=0.7, solver="newton-cholesky", tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-6, atol=1e-9)


def test_several_classes_are_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    model = LinearClassifier("logistic").fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.objective_.shape == (3, 2)
    for k in range(3):
        single = LinearClassifier("logistic").fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], single.coef_[0], rtol=1e-7)
        assert gordan.verify(model.certificate_[k], X, y == k)
    shares = 1 / (1 + np.exp(-model.decision_function(X)))
    np.testing.assert_allclose(model.predict_proba(X), shares / shares.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_counts_as_so_many_equal_rows(overlapping, loss):
    X, y = overlapping
    times = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = LinearClassifier(loss).fit(X, y, sample_weight=times)
    repeated = LinearClassifier(loss).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-7)
    factors = {"yes": 3.0, "no": 1.0}
    by_class = LinearClassifier(loss, class_weight=factors).fit(X, y)
    by_row = LinearClassifier(loss).fit(X, y, sample_weight=[factors[label] for label in y])
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_same_prediction_is_right_about_a_far_better_plane(overlapping, loss):
    X, y = overlapping
    big = np.vstack([X] * 50)  # too many entries for the fit to be finished at once
    rng = np.random.default_rng(0)
    big = big + 1e-3 * rng.standard_normal(big.shape)
    labels = np.concatenate([y] * 50)
    rough, fine = LinearClassifier(loss, tol=1e-6).fit(big, labels), LinearClassifier(loss, tol=1e-10).fit(big, labels)
    points = rng.standard_normal((2000, 8)) * 3
    same = rough.same_prediction(points)
    assert same.mean() > 0.2
    assert (rough.predict(points)[same] == fine.predict(points)[same]).all()
    assert fine.same_prediction(points).mean() >= same.mean()
    assert np.linalg.norm(rough.coef_ - fine.coef_) <= rough.radius_ + fine.radius_


def test_sparse_and_narrow_floats_give_the_same_plane(overlapping):
    X, y = overlapping
    X = X.astype(np.float32)
    dense = LinearClassifier().fit(X, y)
    for other in (sp.csr_array(X), sp.csc_matrix(X), X.astype(np.float64), np.asfortranarray(X)):
        np.testing.assert_allclose(LinearClassifier().fit(other, y).coef_, dense.coef_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_equal_fits_give_equal_files(overlapping, loss):
    first, second = (LinearClassifier(loss).fit(*overlapping)._model().to_bytes() for _ in range(2))
    assert first == second


def test_warm_start_takes_fewer_steps(overlapping):
    X, y = overlapping
    cold = LinearClassifier("logistic", 10.0).fit(X, y)
    warm = LinearClassifier("logistic", 9.0, warm_start=True).fit(X, y)
    warm.set_params(C=10.0).fit(X, y)
    assert warm.n_iter_ <= cold.n_iter_
    np.testing.assert_allclose(warm.coef_, cold.coef_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["free", "penalized", "none"])
@pytest.mark.parametrize("loss", [*LOSSES, "multinomial"])
@pytest.mark.parametrize("several", [False, True])
def test_what_is_proved_of_the_minimizer_is_in_the_file(tmp_path, overlapping, several, loss, kind):
    """The same rows are proved by a model from a file, which has no data; each is right about a far better plane."""
    X, y = load_iris(return_X_y=True) if several else overlapping
    rough = LinearClassifier(loss, intercept=kind, max_iter=6, tol=1.0).fit(X, y)
    rough.save(tmp_path / "model")
    again = gordan.load(tmp_path / "model")
    points = X + np.random.default_rng(0).standard_normal(X.shape)
    same = rough.same_prediction(points)
    np.testing.assert_array_equal(again.same_prediction(points), same)
    np.testing.assert_array_equal(again.radius_, rough.radius_)
    fine = LinearClassifier(loss, intercept=rough.intercept, tol=1e-10).fit(X, y)
    assert (fine.predict(points)[same] == again.predict(points)[same]).all()
    assert fine.same_prediction(points).mean() > 0.9
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    replace(rough._model(), places=None).save(tmp_path / "without")
    with pytest.raises(gordan.InputError, match="does not say where the exact minimizer is"):
        gordan.load(tmp_path / "without").same_prediction(points)


def test_a_fit_does_not_hold_on_to_the_data(overlapping):
    X, y = overlapping
    big, labels = np.vstack([X] * 50), np.concatenate([y] * 50)
    assert len(pickle.dumps(LinearClassifier().fit(big, labels))) < big.nbytes / 4


@pytest.mark.parametrize("several", [False, True])
def test_a_saved_model_predicts_the_same_and_can_be_verified(tmp_path, overlapping, several):
    X, y = load_iris(return_X_y=True) if several else overlapping
    model = LinearClassifier("logistic", 3.0, intercept="penalized").fit(X, y)
    model.save(tmp_path / "model")
    for loaded in (gordan.load(tmp_path / "model"), LinearClassifier.load(tmp_path / "model")):
        assert isinstance(loaded, LinearClassifier)
        assert (loaded.loss, loaded.C, loaded.intercept) == ("logistic", 3.0, "penalized")
        np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
        assert np.array_equal(loaded.objective_, model.objective_)
        certificates = loaded.certificate_ if several else [loaded.certificate_]
        for k, certificate in enumerate(certificates):
            assert gordan.verify(certificate, X, y == k if several else y)
    with pytest.raises(InputError, match="holds a LinearClassifier"):
        gordan.MaxMarginClassifier.load(tmp_path / "model")


def test_limits_warn_with_both_ends_of_the_interval():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 60))
    y = X[:, 0] + rng.standard_normal(3000) > 0
    with pytest.warns(ConvergenceWarning, match="least value between .* and .*max_iter"):
        model = LinearClassifier("hinge", max_iter=1).fit(X, y)
    assert model.status_ == "iteration-limit"
    assert model.objective_[0] < model.objective_[1]


@pytest.mark.parametrize("loss", [*LOSSES, "multinomial"])
def test_a_tiny_C_is_not_to_be_made_smaller(loss):
    """The weights of the rows, all about C, are then below those that a proof can use."""
    X, y, weights = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 2, np.full(40, 1e-90)
    for C, given, words in ((1e-300, None, "C is 1e-300"), (1e-200, weights, "C × the largest weight of a row is 1e-290")):
        with pytest.warns(ConvergenceWarning, match=f"{words}, which is too small .*; pass a larger C, such that .* 1e-265"):
            LinearClassifier(loss, C=C).fit(X, y, given)
    assert LinearClassifier(loss, C=1e-265).fit(X, y).status_ == "solved"


def test_no_probabilities_without_a_loss_of_probabilities(overlapping):
    model = LinearClassifier().fit(*overlapping)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as raised:
        model.predict_proba([[0.0] * 8])
    assert "loss='logistic'" in str(raised.value.__cause__)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"loss": "squared"}, "choose one of 'hinge'"),
        ({"loss": "softmax"}, "pass 'multinomial'"),
        ({"loss": "cross-entropy"}, "pass 'multinomial'"),
        ({"loss": "log_loss"}, "pass 'logistic'"),
        ({"loss": "crammer_singer"}, "pass 'multinomial'"),
        ({"C": 0.0}, "positive finite"),
        ({"C": np.inf}, "positive finite"),
        ({"C": np.nan}, "positive finite"),
        ({"intercept": "both"}, "choose one of 'free'"),
        ({"tol": 0.0}, "tol is 0.0"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"time_limit": -1}, "time_limit is -1"),
    ],
)
def test_what_is_wrong_is_said(overlapping, changed, words):
    with pytest.raises(InputError, match=words):
        clone(LinearClassifier()).set_params(**changed).fit(*overlapping)


# ---- what a file says of the minimizer is checked ---------------------------------------------------------------------


def refusals(path, X, y):
    """What `gordan verify` says of each problem of a model file; empty where it accepts."""
    found = []
    for claim in claims_in(path):
        labels = y if claim.positive is None else y == claim.positive
        found.append(verified_for(claim.certificate, X, labels, more=claim.unproved_statement).reason)
    return found


@pytest.mark.parametrize("kind", ["free", "penalized", "none"])
@pytest.mark.parametrize("loss", [*LOSSES, "multinomial"])
@pytest.mark.parametrize("tol", [1.0, 1e-9])
def test_places_in_a_file_are_verified(tmp_path, overlapping, loss, kind, tol):
    """In any storage and order of the columns' sums; nothing smaller than what is proved passes."""
    X, y = load_iris(return_X_y=True) if loss == "multinomial" else overlapping
    model = LinearClassifier(loss, intercept=kind, tol=tol, max_iter=None if tol < 1 else 5).fit(X, y)._model()
    model.save(tmp_path / "model")
    for storage in (np.asarray, np.asfortranarray, sp.csr_array):
        assert refusals(tmp_path / "model", storage(X), y) == [""]
    row, k = model.places[0], 3 if loss == "multinomial" else 1
    offset = slice(2, 4 if k == 1 else 2 + k + 1)
    changed = {"radius": (0, 1e-3 * row[0]), "r": (1, 1e-3 * row[1]), "centre": (-1, row[-1] + 3 * row[1])}
    if kind == "free":
        wide = row[offset][1] - row[offset][0]
        changed["offset"] = (2, row[2] + 0.7 * wide) if k == 1 else (offset.stop - 1, 0.2 * row[offset.stop - 1])
        if k == 1:
            changed["other end"] = (3, row[3] - 0.7 * wide)
    for name, (at, value) in changed.items():
        places = model.places.copy()
        places[0, at] = value
        replace(model, places=places).save(tmp_path / "changed")
        assert "is stated to be" in refusals(tmp_path / "changed", X, y)[0], name
    wider = model.places.copy()
    wider[0, :2] *= 2
    wider[0, offset] += (-1, 1) if k == 1 else (0, 0, 0, 1)
    replace(model, places=wider).save(tmp_path / "wider")
    # a larger ball leaves scores more open, for which the ends were not proved
    assert refusals(tmp_path / "wider", X, y) == [""] or kind == "free"


@pytest.mark.parametrize("loss", ["squared_hinge", "multinomial"])
def test_the_certificate_is_that_of_the_proof_whatever_happens_to_coef(overlapping, loss):
    """It is made when it is asked for, from the plane that was proved; a further fit has its own."""
    X, y = overlapping
    model = LinearClassifier(loss).fit(X, y)
    model.coef_ *= 2
    again = pickle.loads(pickle.dumps(model))
    assert gordan.verify(again.certificate_, X, y)
    assert again.certificate_ == model.certificate_
    assert gordan.verify(model.fit(-X, y).certificate_, -X, y)
    with pytest.raises(AttributeError, match="no certificate"):
        _ = LinearClassifier().certificate_


def test_a_model_with_another_plane_than_its_certificate_is_rejected(tmp_path, overlapping):
    X, y = overlapping
    model = LinearClassifier().fit(X, y)._model()
    for part in ({"coef": 2 * model.coef}, {"intercept": model.intercept + 1}, {"margins": model.margins * [1.0, 1.001]}):
        replace(model, **part).save(tmp_path / "model")
        assert refusals(tmp_path / "model", X, y) == ["the model has another plane or interval than its certificate"]


def test_the_command_line_rejects_a_place_that_is_not_proved(tmp_path, overlapping):
    X, y = overlapping
    np.savez(tmp_path / "data.npz", X=X, y=y)
    model = LinearClassifier().fit(X, y)._model()
    for factor, code in ((1.0, 0), (1e-3, 1)):
        places = model.places.copy()
        places[0, 0] *= factor
        replace(model, places=places).save(tmp_path / "model")
        told = CliRunner().invoke(app, ["verify", str(tmp_path / "model"), str(tmp_path / "data.npz")])
        assert told.exit_code == code
        assert ("the minimizer is stated to be within" in told.output) is (code == 1)


@pytest.mark.parametrize("cell", [np.arange(400.0), [1.0, 2.0] * 200], ids=["array", "list"])
def test_an_array_in_a_cell_is_not_printed_in_full(cell):
    frame = pd.DataFrame({"a": [1.0, 2.0], "embedding": [cell, cell]})
    with pytest.raises(
        InputError, match=r"X\[0, 1\] \(column 'embedding'\) is .*…; .* X = numpy.stack\(X\['embedding'\]\)$"
    ) as raised:
        LinearClassifier().fit(frame, [0, 1])
    assert len(str(raised.value)) < 220
    assert "\n" not in str(raised.value)
