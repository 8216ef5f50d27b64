"""What practitioners and operators meet: columns of very different size, class weights, pickles, full disks, misspelt names."""

from __future__ import annotations

import copy
import json
import pickle
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from commands import IRIS, run
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

import gordan
from gordan import LinearClassifier, MaxMarginClassifier, datasets, report
from gordan.certificates import standalone
from gordan.io import Model
from gordan.io.model import scaled, scaling_of
from gordan.verdicts.scaling import scale_hint

X, Y = datasets.iris("setosa")
OVERLAP = datasets.iris("virginica")
UNITS = np.array([1.0, 1e4, 1e-4, 1.0])
PAGE = Path(__file__).parent.parent / "docs" / "export.md"
HINT = "columns differ in size by a factor of"


# ---- columns of very different size --------------------------------------------------------------------------------------


def test_a_margin_depends_on_units_and_says_so():
    assert HINT not in repr(gordan.maximize_margin(X, Y))
    assert f"{HINT} 2e+07" in repr(gordan.maximize_margin(X * UNITS, Y))
    for question in (gordan.separate, gordan.maximize_margin):  # no plane separates, in whatever units
        assert HINT not in repr(question(OVERLAP[0] * UNITS, OVERLAP[1]))
    assert HINT not in repr(gordan.separate(X * UNITS, Y))  # neither does yes depend on them
    with pytest.warns(UserWarning, match=HINT):
        MaxMarginClassifier().fit(X * UNITS, Y)


def test_a_loss_depends_on_units_where_small_columns_hardly_count():
    r = np.random.default_rng(0)
    Z = r.standard_normal((300, 2)) * [1e4, 1.0]
    y = Z[:, 0] + 1e4 * Z[:, 1] + 1e3 * r.standard_normal(300) > 0
    small = gordan.minimize_loss(Z, y, C=1e-9)  # the penalty decides
    assert abs(small.w[1]) < 0.01 * 1e4 * abs(small.w[0])
    assert HINT in repr(small)
    large = gordan.minimize_loss(Z, y, C=1.0)
    assert abs(large.w[1]) > 0.5 * 1e4 * abs(large.w[0])
    assert HINT not in repr(large)
    with pytest.warns(UserWarning, match=HINT):
        LinearClassifier(C=1e-9).fit(Z, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearClassifier().fit(Z, y)


def test_graded_sizes_are_seen_as_well():
    """Columns in the middle may count where the smallest ones do not."""
    r = np.random.default_rng(0)
    Z = r.standard_normal((300, 5))
    y = Z @ [0.0, 1, 1, 2, 2] + 0.3 * r.standard_normal(300) > 0
    graded = gordan.minimize_loss(Z * np.geomspace(1e3, 1e-5, 5), y, C=0.1)
    assert HINT in repr(graded)
    assert HINT not in repr(gordan.minimize_loss(Z, y, C=0.1))


def test_what_is_the_size_of_a_column():
    stored = gordan.rows.stored
    assert scale_hint(stored(np.column_stack((X, np.full(len(X), 1e9)))), None) == ""  # a constant has none
    rare = sp.random_array((400, 3000), density=0.01, rng=0, format="csr")
    assert scale_hint(stored(rare), None) == ""  # few entries are not small ones
    assert HINT in scale_hint(stored(rare @ sp.diags_array(np.geomspace(1, 1e6, 3000))), None)
    assert scale_hint(stored(X[:1]), None) == ""


def test_race_on_raw_data_gives_the_hint():
    Z, y = load_breast_cancer(return_X_y=True)
    raw = report.race(Z, y, methods=["smooth_perceptron", "double_oracle"], rounds=20)
    assert all(lane.first_positive is None for lane in raw.lanes[:1])
    assert HINT in raw.hint
    assert raw.hint in repr(raw)
    assert raw.to_dict()["hint"] == raw.hint
    assert raw.hint in report.page_html(raw).replace("&#x27;", "'")
    assert report.race(X * UNITS, Y, methods=["double_oracle"], rounds=5).hint == ""
    assert report.race(OVERLAP[0] * UNITS, OVERLAP[1], methods=["smooth_perceptron"], rounds=5).hint == ""


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_scaling_is_that_of_scikit_learn(storage):
    Z = np.column_stack((X * UNITS, np.full(len(X), 0.1)))
    Z = Z if storage == "dense" else sp.csr_array(Z)
    theirs = StandardScaler(with_mean=storage == "dense").fit_transform(Z)
    ours = scaled(Z, scaling_of(Z))
    if storage == "sparse":
        assert sp.issparse(ours)
        ours, theirs = ours.toarray(), theirs.toarray()
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.fixture
def table(tmp_path):
    """A file of three classes and columns in different units, the label first."""
    frame = pandas.DataFrame(X * UNITS, columns=["a", "b", "c", "d"])
    frame.insert(0, "species", pandas.read_csv(IRIS)["species"])
    frame.to_csv(tmp_path / "units.csv", index=False)
    return tmp_path / "units.csv", frame


@pytest.mark.parametrize("loss", [[], ["--loss", "logistic"]])
def test_a_standardized_model_predicts_and_is_verified(table, tmp_path, loss):
    path, frame = table
    model = tmp_path / "m.gordan"
    told = run("fit", path, "--label", "species", "-o", model, "--standardize", *loss)
    assert told.exit_code == 0
    assert HINT not in told.output
    again = gordan.load(model)
    Z = frame.drop(columns="species")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(again.predict(Z), run("predict", model, path).stdout.split())
    right = int((again.predict(Z) == frame["species"]).sum())
    assert f"{right} of 150 predictions match" in run("predict", model, path).stderr  # the label column is remembered
    checked = run("verify", model, path, "--label", "species")
    assert checked.exit_code == 0
    assert checked.stdout.count("accepted") == 3
    ours = StandardScaler().fit_transform(Z)
    kind = LinearClassifier("logistic") if loss else MaxMarginClassifier(on_inseparable="ignore")
    np.testing.assert_allclose(again[-1].coef_, kind.fit(ours, frame["species"]).coef_, rtol=1e-5, atol=1e-7)
    if loss:  # of the classifier alone, for scaled rows
        assert again[-1].same_prediction(again[:-1].transform(Z)).mean() > 0.9
        assert len(again[-1].certificate_) == 3
    with pytest.raises(gordan.InputError, match=r"gordan\.load gives a pipeline"):
        type(kind).load(model)


def test_fit_hints_on_stderr_and_scaling_is_checked_in_a_file(table, tmp_path):
    path, _ = table
    told = run("fit", path, "--label", "species", "-o", tmp_path / "m.gordan")
    assert told.stderr.count(HINT) == 1
    for options in ([], ["--loss", "squared_hinge", "--C", "1e-9"]):
        done = run("fit", path, "--label", "species", "-o", tmp_path / "m.json.gordan", "--json", *options)
        assert [HINT in notice for notice in json.loads(done.stdout)["notices"]].count(True) == 1
        assert done.stderr.count(HINT) == 1
    found = Model.load(tmp_path / "m.gordan")
    assert (found.label, found.scaling) == ("species", None)
    known = replace(found, scaling=np.ones((2, 4)))
    np.testing.assert_array_equal(Model.from_bytes(known.to_bytes()).scaling, known.scaling)
    for wrong in (np.ones((1, 4)), np.zeros((2, 4)), np.full((2, 4), np.nan), "scaling"):
        with pytest.raises(gordan.InputError, match="scaling"):
            replace(found, scaling=wrong)


# ---- class weights, pickles ----------------------------------------------------------------------------------------------


def test_class_weights_without_effect_warn_once():
    with pytest.warns(UserWarning, match="class_weight has no effect on a hard margin: pass nu") as told:
        MaxMarginClassifier(class_weight="balanced").fit(X, Y)
    assert len(told) == 1
    iris = pandas.read_csv(IRIS)
    with pytest.warns(UserWarning, match="has no effect on 2 of 3 planes, which have a hard margin") as told:
        MaxMarginClassifier(class_weight="balanced", on_inseparable="ignore").fit(iris.iloc[:, :4], iris["species"])
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MaxMarginClassifier(class_weight="balanced", nu=0.4).fit(X, Y)
        LinearClassifier(class_weight="balanced").fit(X, Y)


FITS = [MaxMarginClassifier(class_weight="balanced", on_inseparable="ignore"), LinearClassifier(C=1e-9)]


@pytest.mark.parametrize("kind", FITS)
def test_remarks_are_made_once_where_many_fits_would_repeat_them(kind):
    iris = pandas.read_csv(IRIS)
    Z, y = iris.iloc[:, :4].to_numpy() * [1, 1e4, 1, 1], iris["species"].to_numpy()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        cross_val_score(kind, Z, y, cv=5)
        OneVsRestClassifier(kind).fit(Z, y)
        assert sum(HINT in str(each.message) for each in told) == 1
        assert sum("a hard margin" in str(each.message) for each in told) <= 2  # of some planes, and of all
        kind.fit(Z[:, :2], y)  # other data
        assert sum(HINT in str(each.message) for each in told) == 2
        kind.fit(pandas.DataFrame(Z, columns=list("abcd")), y)  # as many columns, but with names
        assert sum(HINT in str(each.message) for each in told) == 3


def test_a_remark_of_one_classifier_does_not_silence_the_other():
    iris = pandas.read_csv(IRIS)
    Z, y = iris.iloc[:, :4].to_numpy() * [1, 1e4, 1, 1], iris["species"].to_numpy()
    for kind in (MaxMarginClassifier(on_inseparable="ignore"), LinearClassifier(C=1e-9)):
        with pytest.warns(UserWarning, match=HINT):
            kind.fit(Z, y)


@pytest.mark.parametrize("model", [MaxMarginClassifier(method="smooth_perceptron"), LinearClassifier()])
def test_pickles_leave_the_trace_out(model):
    found = clone(model).fit(X, Y)
    assert found.trace_ is not None
    for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert not hasattr(again, "trace_")
        np.testing.assert_array_equal(again.predict(X), found.predict(X))
        assert repr(again.certificate_) == repr(found.certificate_)
    assert len(pickle.dumps(found)) < 10_000
    with pytest.raises(gordan.InputError, match="no trace"):
        gordan.ConvergenceDisplay.from_estimator(pickle.loads(pickle.dumps(found)))


def test_what_scikit_learn_is_handed_comes_without_a_warning():
    iris = pandas.read_csv(IRIS)
    planes = iris.iloc[:, :4].to_numpy()
    for model in (MaxMarginClassifier(multi_class="ovr", on_inseparable="ignore"), LinearClassifier("logistic")):
        found = model.fit(planes, iris["species"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(found.to_sklearn().predict(planes), found.predict(planes))


@pytest.mark.skipif(not PAGE.exists(), reason="the pages are not here: run the suite in a checkout of the repository")
@pytest.mark.parametrize("k", [0, 1], ids=["ONNX", "skops"])
def test_the_page_about_exporting_runs(k, tmp_path, monkeypatch):
    packages = [["skl2onnx", "onnxruntime"], ["skops"]][k]
    for package in packages:
        pytest.importorskip(package, reason=f"not installed: pip install {' '.join(packages)}")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    code = (
        blocks[0]
        if k == 0
        else re.sub("(?s)^import onnxruntime$|^from skl2onnx.*?$|^exported =.*", "", blocks[0], flags=re.M) + blocks[1]
    )
    exec(compile(code, str(PAGE), "exec"), {})
    assert (tmp_path / ["probe.onnx", "probe.skops"][k]).stat().st_size > 1000


# ---- labels that are remembered, predictions that are proved -----------------------------------------------------------


def test_predict_remembers_the_label_column(table, tmp_path):
    path, frame = table
    model = tmp_path / "m.gordan"
    run("fit", path, "--label", "species", "-o", model, "--multi-class", "ovr")
    for columns in (["species", *"abcd"], [*"abcd", "species", "note"], ["note", *"dcba", "species"]):
        frame.assign(note="x")[columns].to_csv(tmp_path / "other.csv", index=False)
        assert "of 150 predictions match the file" in run("predict", model, tmp_path / "other.csv").stderr
    frame.rename(columns={"species": "kind"})[[*"abcd", "kind"]].to_csv(tmp_path / "other.csv", index=False)
    assert "of 150 predictions match the file" in run("predict", model, tmp_path / "other.csv").stderr
    frame[[*"abcd"]].to_csv(tmp_path / "other.csv", index=False)
    assert run("predict", model, tmp_path / "other.csv").stderr == ""
    frame[["species", *"abc"]].to_csv(tmp_path / "other.csv", index=False)
    assert "has no column named 'd'" in run("predict", model, tmp_path / "other.csv").stderr


def test_predictions_of_a_plain_fit_are_proved_where_all_planes_are_of_a_loss(tmp_path):
    model = tmp_path / "m.gordan"
    run("fit", IRIS, "-o", model, "--multi-class", "ovr")
    told = run("predict", model, IRIS, "--proved")
    assert "150 of 150 predictions are proved" in told.stderr
    frame = pandas.read_csv(IRIS)
    theirs = LinearClassifier().fit(frame.iloc[:, :4].to_numpy(), frame["species"])
    same = theirs.same_prediction(frame.iloc[:, :4].to_numpy())
    assert [line.endswith("\tproved") for line in told.stdout.splitlines()] == same.tolist()
    for options, which in ([], "some planes"), (["--positive", "setosa"], "the planes"):
        run("fit", IRIS, "-o", model, *options)
        refused = run("predict", model, IRIS, "--proved", *options)
        assert refused.exit_code == 2
        assert f"but {which} of {model} have the largest margin instead; fit with --loss squared_hinge" in refused.stderr


# ---- what goes wrong, in words -------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full, as on Linux")
def test_a_full_disk_names_the_file():
    told = run("fit", IRIS, "--positive", "setosa", "-o", "/dev/full")
    assert told.exit_code == 2
    assert "gordan: /dev/full: cannot be written: No space left on device" in told.stderr


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (["seperate", "iris.csv"], "Did you mean 'separate'"),
        (["separate", "iris.csv", "--positive", "setsa"], "did you mean 'setosa'?"),
        (["separate", "iris.csv", "--label", "specie"], "did you mean 'species'?"),
        (["separate", "iris.csv", "--drop", "sepal_lenght"], "did you mean 'sepal_length'?"),
        (["fit", "iris.csv", "-o", "/dev/null", "--class-weight", "setos=2"], "did you mean 'setosa'?"),
        (["play", "iris.csv", "smoth_perceptron"], "did you mean 'smooth_perceptron'?"),
        (["race", "iris.csv", "--positive", "setosa", "-m", "nestrov"], "did you mean 'nesterov'?"),
        (["fit", "iris.csv", "-o", "/dev/null", "--positive", "setosa", "--method", "nestrov"], "did you mean 'nesterov'?"),
        (["fit", "iris.csv", "-o", "/dev/null", "--loss", "logistc"], "Did you mean 'logistic'?"),
        (["separate", "iris.csv", "--missing", "dropp"], "Did you mean 'drop'?"),
        (["separate", "iris.csv", "--intercept", "penalised"], "Did you mean 'penalized'?"),
        (["--progress", "lgo", "separate", "iris.csv"], "Did you mean 'log'?"),
    ],
)
def test_did_you_mean(command, meant, monkeypatch):
    monkeypatch.chdir(IRIS.parent)
    told = run(*command)
    assert told.exit_code == 2
    assert meant in " ".join(told.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (lambda: LinearClassifier(loss="sqared_hinge").fit(X, Y), "'squared_hinge'"),
        (lambda: gordan.minimize_loss(X, Y, loss="Logistic"), "'logistic'"),
        (lambda: gordan.separate(X, Y, intercept="penalised"), "'penalized'"),
        (lambda: gordan.maximize_margin(X, Y, method="nestrov"), "'nesterov'"),
        (lambda: MaxMarginClassifier(multi_class="over").fit(X, Y), "'ovr'"),
        (lambda: MaxMarginClassifier(class_weight="balance").fit(X, Y), "'balanced'"),
        (lambda: LinearClassifier(class_weight={"setoso": 2.0}).fit(X, np.where(Y > 0, "setosa", "rest")), "'setosa'"),
        (lambda: LinearClassifier(class_weight={"1": 2.0}).fit(X, Y), "1"),
    ],
)
def test_did_you_mean_in_python(asked, meant):
    with pytest.raises(gordan.InputError, match=re.escape(f"did you mean {meant}?")):
        asked()


# ---- what certificates say ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["a loss", "a margin of one against the rest", "a margin of pairs"])
def test_certificates_of_classifiers_say_what_they_are_about(kind, tmp_path):
    """Columns, label, weights, and which class: so that both checkers find them in a file."""
    frame = pandas.read_csv(IRIS).assign(mass=1.0)
    X, y = frame.drop(columns=["species", "mass"]), frame["species"]
    multi_class = "ovo" if kind == "a margin of pairs" else "ovr"
    model = LinearClassifier() if kind == "a loss" else MaxMarginClassifier(multi_class=multi_class, on_inseparable="ignore")
    proofs = model.fit(X, y, sample_weight=frame["mass"]).certificate_
    assert {(proof.about.label, proof.about.weight, proof.about.columns) for proof in proofs} == {
        ("species", "mass", (*X.columns,))
    }
    positives = [None] * 3 if multi_class == "ovo" else ["setosa", "versicolor", "virginica"]
    assert [proof.about.positive for proof in proofs] == positives
    assert all(" is between " in proof.about.statement for proof in proofs)
    rows = y.isin(["setosa", "virginica"]) if multi_class == "ovo" else slice(None)
    frame[rows].to_csv(tmp_path / "flowers.csv", index=False)
    (tmp_path / "proof.json").write_text(proofs[1].to_json())
    assert run("verify", tmp_path / "proof.json", tmp_path / "flowers.csv").stdout.startswith("accepted: the ")
    assert standalone.main([str(tmp_path / "proof.json"), str(tmp_path / "flowers.csv")]) == 0
    plain = type(model)().fit(X.to_numpy()[:100], y.to_numpy()[:100]).certificate_.about
    assert (plain.label, plain.weight, plain.columns, plain.positive) == (None, None, None, None)
