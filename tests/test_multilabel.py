"""scikit-learn's multilabel Y in both classifiers: as fits of the columns one by one, as scikit-learn's own, proved."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from commands import run
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import gordan
from gordan import InputError, InseparableWarning, LinearClassifier, MaxMarginClassifier, minimize_loss
from gordan.estimators import least_loss
from gordan.plots import BoundaryDisplay
from gordan.verdicts.many import minimize_many_losses

rng = np.random.default_rng(18)
X = rng.normal(size=(90, 6))
# the first two are separable, the others not
Y = (X @ rng.normal(size=(6, 4)) + [0, 0, 1, 1] * rng.normal(size=(90, 4)) > 0).astype(int)


def both(**options):
    """Both classifiers, fitted without warnings: that labels are not separable is expected."""
    yield LinearClassifier(**options).fit(X, Y)
    yield MaxMarginClassifier(on_inseparable="ignore", **options).fit(X, Y)


def close(one, other, tol=1e-7):
    return np.allclose(one, other, rtol=tol, atol=tol)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (LinearClassifier(C=0.5, intercept="penalized"), LinearSVC(C=0.5, tol=1e-10, max_iter=1_000_000)),
        (LinearClassifier("logistic", C=0.5), LogisticRegression(C=0.5, tol=1e-10)),
    ],
)
def test_planes_are_those_of_scikit_learn(ours, theirs):
    peer, fitted = OneVsRestClassifier(theirs).fit(X, Y), ours.fit(X, Y)
    assert close(fitted.coef_, np.vstack([own.coef_ for own in peer.estimators_]), 1e-5)
    assert close(fitted.intercept_, [own.intercept_[0] for own in peer.estimators_], 1e-5)
    assert fitted.predict(X).tolist() == peer.predict(X).tolist()
    assert fitted.score(X, Y) == peer.score(X, Y) == accuracy_score(Y, fitted.predict(X))
    assert fitted.classes_.tolist() == peer.classes_.tolist() == [0, 1, 2, 3]
    if hasattr(peer, "predict_proba"):
        assert close(fitted.predict_proba(X), peer.predict_proba(X), 1e-5)
    back = fitted.to_sklearn()
    assert close(back.decision_function(X), fitted.decision_function(X))
    assert back.predict(X).tolist() == fitted.predict(X).tolist()
    # exporters to ONNX read 0.5 as the threshold of what the estimators of a OneVsRestClassifier return
    assert (back.predict_proba(X) > 0.5).astype(int).tolist() == fitted.predict(X).tolist()
    if hasattr(fitted, "predict_proba"):
        assert close(back.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize(
    "model",
    [
        *(
            LinearClassifier(loss, C=0.3, class_weight=own)
            for loss in ("hinge", "logistic")
            for own in (None, "balanced", {1: 5})
        ),
        LinearClassifier(intercept="none"),
        MaxMarginClassifier(on_inseparable="ignore"),
        MaxMarginClassifier(nu=0.4, class_weight="balanced", on_inseparable="ignore"),
        MaxMarginClassifier(norm=np.inf, on_inseparable="ignore"),
    ],
    ids=str,
)
@pytest.mark.parametrize("weights", [None, np.arange(90) % 4])
def test_each_column_is_fitted_as_by_itself(model, weights):
    """Planes, intervals, whether it is separable, and a certificate that both the column and the weights satisfy."""
    warnings.simplefilter("ignore")
    model.fit(X, Y, sample_weight=weights)
    attributes = ["objective_", "gap_"] + (["margin_", "separable_", "loss_", "nu_"] if hasattr(model, "margin_") else [])
    for j in range(4):
        alone = type(model)(**model.get_params()).fit(X, Y[:, j], sample_weight=weights)
        assert close(model.coef_[j], alone.coef_[0], 1e-4)
        assert close(model.intercept_[j], alone.intercept_[0], 1e-4)
        for name in attributes:
            own, single = getattr(model, name)[j], getattr(alone, name)
            numbers = isinstance(single, (tuple, float))
            assert close(own, single, 1e-6) if numbers else own == single, name
        assert gordan.verify(model.certificate_[j], X, Y[:, j])
    distances = model.decision_function(X)
    assert close(distances, X @ model.coef_.T + model.intercept_)
    assert (model.predict(X) == (distances > 0)).all()
    assert model.kind_ == "multilabel"


def test_columns_share_the_passes(monkeypatch):
    """One call with a table, whichever classifier: for labels without a separator of that of largest margin as well."""
    asked = []

    def counted(X, Y, *given):
        asked.append(np.shape(Y))
        return minimize_many_losses(X, Y, *given)

    monkeypatch.setattr(least_loss, "minimize_many_losses", counted)
    linear, margins = both()
    assert asked == [(90, 4), (90, 2)]
    assert margins.loss_ == [None, None, "squared_hinge", "squared_hinge"]
    assert margins.separable_ == [True, True, False, False]
    assert [witness is None for witness in margins.witness_] == [True, True, False, False]
    assert (margins.margin_[:2, 0] > 0).all()
    assert linear.status_ == ["solved"] * 4


@pytest.mark.parametrize("form", ["bool", "float", "list", "csr", "csc matrix", "frame", "object"])
def test_forms_of_a_table(form):
    names = ["a", "b", "c", "d"]
    forms = {
        "bool": Y == 1,
        "float": Y.astype(float),
        "list": Y.tolist(),
        "csr": sp.csr_array(Y),
        "csc matrix": sp.csc_matrix(Y),
        "frame": pd.DataFrame(Y, columns=names),
        "object": Y.astype(object),
    }
    expected, fitted = LinearClassifier().fit(X, Y), LinearClassifier().fit(X, forms[form])
    assert fitted.coef_.tolist() == expected.coef_.tolist()
    assert fitted.classes_.tolist() == (names if form == "frame" else [0, 1, 2, 3])
    assert form == "object" or fitted.score(X, forms[form]) == expected.score(X, Y)  # scikit-learn knows no metric of objects
    assert fitted.predict(X).dtype.kind == "i"
    about = [certificate.about for certificate in fitted.certificate_]
    assert [one.label for one in about] == (names if form == "frame" else [None] * 4)
    assert {one.positive for one in about} == {"1"}


def test_what_is_refused():
    one = Y.copy()
    one[:, 2] = 0
    for estimator in (LinearClassifier(), MaxMarginClassifier()):
        for table, told in (
            (one, r"Y\[:, 2\] is 0 in every row; both 0 and 1 are needed"),
            (pd.DataFrame(1 - one, columns=list("abcd")), r"Y\[:, 2\] \('c'\) is 1 in every row"),
            (Y + 1, r"Y\[0, \d\] is .*2.*; Y has a column of 0 and 1"),
            (2 * Y - 1, r"Y\[\d+, \d\] is .*-1"),
            (np.where(Y == 1, "yes", "no"), r"Y\[0, 0\] is .*(yes|no)"),
            (np.where(Y == 1, 1.0, np.nan), "is .*nan"),
            (pd.DataFrame(Y).astype("Int64").mask(Y == 1), "is <NA>"),
            (Y[:50], r"X has 90 rows but Y.*\(50, 4\)"),
            (np.ma.masked_array(Y, mask=Y == 1), "masked"),
        ):
            with pytest.raises(InputError, match=told):
                estimator.fit(X, table)
    with pytest.raises(InputError, match=r"multinomial.*one class for each row.*4 columns.*loss='logistic'"):
        LinearClassifier("multinomial").fit(X, Y)
    one_hot = np.eye(4, dtype=int)[np.arange(90) % 4]
    for fit in (LinearClassifier("multinomial").fit, partial(minimize_loss, loss="multinomial")):
        for table in (one_hot, one_hot.astype(float)):
            with pytest.raises(InputError, match=r"argmax\(axis=1\)"):
                fit(X, table)
    with pytest.raises(InputError, match="label 2 is not separable"):
        MaxMarginClassifier(on_inseparable="raise").fit(X, Y)
    with pytest.warns(InseparableWarning, match=r"label 'c' is not separable.*squared hinge.*label 'd'"):
        MaxMarginClassifier().fit(X, pd.DataFrame(Y, columns=list("abcd")))
    for model in (LinearClassifier(), MaxMarginClassifier()):
        with pytest.raises(InputError, match="Y has no columns"):
            model.fit(X, Y[:, :0])


def test_the_tools_of_scikit_learn():
    model = LinearClassifier("logistic")
    assert len(cross_val_score(model, X, Y, cv=3)) == 3
    assert cross_val_predict(model, X, Y, cv=3, method="predict_proba").shape == (90, 4)
    assert LinearClassifier("logistic", n_jobs=2).fit(X, Y).predict(X).tolist() == model.fit(X, Y).predict(X).tolist()
    assert MaxMarginClassifier(on_inseparable="ignore", n_jobs=2).fit(X, Y).separable_ == [True, True, False, False]
    again = LinearClassifier(warm_start=True).fit(X, Y)
    assert again.fit(X, Y).n_iter_ <= LinearClassifier().fit(X, Y).n_iter_


def test_model_files(tmp_path):
    """Saved and loaded with all that is proved; the commands, whose tables have one label, say that it is not for them."""
    path = tmp_path / "labels.gordan"
    np.savetxt(tmp_path / "data.csv", np.column_stack((X, Y[:, 0])), delimiter=",", header="a,b,c,d,e,f,y", comments="")
    for model in both():
        model.save(path)
        loaded = gordan.load(path)
        assert type(loaded) is type(model)
        assert loaded.kind_ == "multilabel"
        assert loaded.predict(X).tolist() == model.predict(X).tolist()
        assert loaded.certificate_ == model.certificate_
        assert loaded.classes_.tolist() == [0, 1, 2, 3]
        for command in ("predict", "verify"):
            done = run(command, path, tmp_path / "data.csv")
            assert done.exit_code == 2
            assert "several labels per row" in " ".join(done.stderr.split())
    with pytest.raises(InputError, match="one label per row"):
        BoundaryDisplay.from_estimator(MaxMarginClassifier(on_inseparable="ignore").fit(X[:, :2], Y), X[:, :2], Y)


def test_the_same_prediction_is_that_of_all_labels():
    """Far from all planes the exact minimizer predicts the same labels; on one of them that is not known."""
    model = LinearClassifier().fit(X, Y)
    w = model.coef_[1]
    on_plane = -model.intercept_[1] * w / (w @ w)
    assert model.same_prediction(np.vstack((X[:3], on_plane))).tolist() == [True, True, True, False]
