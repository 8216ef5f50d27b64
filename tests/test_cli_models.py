"""`gordan fit` and `gordan predict`: the models, their weights, losses and checkpoints."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas
import pytest
from commands import IRIS, SETOSA, answer, run, write_csv

import gordan
from gordan.certificates import standalone
from gordan.estimators import fitting
from gordan.io import Model, read


def test_fit_then_predict(tmp_path):
    model = tmp_path / "setosa.gordan"
    found = answer("fit", IRIS, "-o", model, "--positive", "setosa")
    plane = found["planes"][0]
    assert plane["status"] == "solved"
    assert plane["margin"][0] <= SETOSA * (1 + 1e-6)
    loaded = Model.load(model)
    data = read(IRIS)
    scores = data.X @ loaded.coef[0] + loaded.intercept[0]
    assert ((scores > 0) == (data.y == "setosa")).all()
    result = run("predict", model, IRIS, "--label", "species")
    assert result.stdout.split() == [str(label == "setosa") for label in data.y]
    assert "--positive CLASS" in result.stderr  # nothing to compare True and False with
    compared = run("predict", model, IRIS, "--positive", "setosa")
    assert (compared.stdout, "150 of 150 predictions" in compared.stderr) == (result.stdout, True)
    assert answer("predict", model, IRIS, "--positive", "virginica")["right"] == 50  # versicolor: neither is right
    printed = run("predict", model, IRIS, "--scores").stdout.split()
    assert np.array(printed, float) == pytest.approx(scores, rel=1e-12, abs=1e-12)
    assert run("verify", model, IRIS, "--positive", "setosa").exit_code == 0


def test_predict_finds_columns_by_name(tmp_path, table):
    model = tmp_path / "m.gordan"
    data = read(table)
    good = [i for i in range(30) if i not in (3, 8)]
    clean = write_csv(tmp_path / "clean.csv", data.X[good], data.y[good])
    assert run("fit", clean, "-o", model).exit_code == 0
    labels = run("predict", model, clean)
    assert labels.stdout.split() == data.y[good].tolist()
    assert "28 of 28 predictions" in labels.stderr
    # other order, no label, a column that the model does not know
    moved = write_csv(tmp_path / "moved.csv", np.column_stack([data.X[good][:, [2, 0, 1]], np.arange(28.0)]), names="cabz")
    assert run("predict", model, moved, "--unlabelled").stdout == labels.stdout
    assert run("predict", model, write_csv(tmp_path / "less.csv", data.X[:, :2])).exit_code == 2
    # an array has no names: columns by position
    np.save(tmp_path / "plain.npy", data.X[good])
    assert run("predict", model, tmp_path / "plain.npy").stdout == labels.stdout


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_fit_three_classes(scheme, tmp_path):
    """A plane for each pair, or for each class; `verify` takes each certificate with the rows that it is about."""
    rng = np.random.default_rng(1)
    centres = np.array([[6.0, 0.0], [-3.0, 5.0], [-3.0, -5.0]])
    X, y = np.vstack([centre + rng.uniform(-1, 1, (20, 2)) for centre in centres]), np.repeat([1, 2, 5], 20)
    path, model = write_csv(tmp_path / "three.csv", X, y), tmp_path / "three.gordan"
    found = answer("fit", path, "-o", model, "--multi-class", scheme)
    sides = {"ovo": [(2, 1), (5, 1), (5, 2)], "ovr": [(1, None), (2, None), (5, None)]}[scheme]
    assert [(plane["positive"], plane["against"]) for plane in found["planes"]] == sides
    loaded = Model.load(model)
    for k, (positive, against) in enumerate(sides):
        own = np.full(60, True) if against is None else (y == positive) | (y == against)
        distances = np.where(y == positive, 1, -1) * (X @ loaded.coef[k] + loaded.intercept[k])
        assert distances[own].min() == pytest.approx(found["planes"][k]["margin"][0], rel=1e-9)
    assert run("predict", model, path).stdout.split() == [str(label) for label in y]
    assert answer("predict", model, path)["accuracy"] == 1
    verified = answer("verify", model, path)
    assert [(check["positive"], check["against"]) for check in verified["checks"]] == sides
    assert verified["accepted"]
    assert not any(check["other_data"] for check in verified["checks"])
    # a point of class 5 among those of class 1: what is claimed of 2 and 1 holds still, what is about 5 does not
    moved = X.copy()
    moved[-1] = centres[0]
    checks = answer("verify", model, write_csv(tmp_path / "moved.csv", moved, y), code=1)["checks"]
    assert [check["accepted"] for check in checks] == {"ovo": [True, False, False], "ovr": [False, True, False]}[scheme]
    assert [check["other_data"] for check in checks] == [5 in pair or None in pair for pair in sides]
    assert run("verify", model, write_csv(tmp_path / "two.csv", X[:20], np.where(X[:20, 0] > 6, "a", "b"))).exit_code in (1, 2)


@pytest.mark.parametrize(
    ("options", "count"),
    [(["--nu", 0.4], 3), (["--nu", 0.6, "--multi-class", "ovr"], 3), (["--loss", "hinge"], 3), (["--loss", "multinomial"], 1)],
)
def test_certificates_of_a_fit_for_the_checker(options, count, tmp_path, capsys):
    """Both checkers read the file of certificates; a pair of classes is about their rows alone."""
    proofs, changed = tmp_path / "proofs.json", tmp_path / "changed.csv"
    found = answer("fit", IRIS, "-o", tmp_path / "iris.gordan", "--certificate", proofs, *options)
    assert found["certificate"] == str(proofs)
    content = json.loads(proofs.read_text())
    assert (len(content) if count > 1 else isinstance(content, dict)) == count
    checks = answer("verify", proofs, IRIS)["checks"]
    assert [check["accepted"] for check in checks] == [True] * count
    assert not any(check["other_data"] for check in checks)
    assert standalone.main([str(proofs), str(IRIS)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("accepted: ") for line in lines) == count
    assert sum(line == "  everything that the claim depends on matches the data it was made for" for line in lines) == count
    if "ovr" not in options and count == 3 and "--nu" in options:
        assert "accepted: versicolor against setosa: the largest margin" in lines[0]
    changed.write_text(IRIS.read_text().replace("5.1,3.5,1.4,0.2,", "7.0,3.0,6.0,2.2,", 1))
    assert run("verify", proofs, changed).exit_code == 1
    assert standalone.main([str(proofs), str(changed)]) == 1
    proofs.write_text("[]")
    assert run("verify", proofs, IRIS).exit_code == 2
    assert standalone.main([str(proofs), str(IRIS)]) == 2


def test_certificates_that_a_fit_cannot_write(tmp_path):
    model, proofs = tmp_path / "m.gordan", tmp_path / "proofs.json"
    for options in (["--standardize"], ["--no-certificates"]):
        result = run("fit", IRIS, "-o", model, "--certificate", proofs, *options)
        assert (result.exit_code, model.exists()) == (2, False)
        assert f"--certificate with {options[0]}" in result.stderr
    assert "two files" in run("fit", IRIS, "-o", model, "--certificate", model).stderr


def test_fit_without_a_separator_is_soft_and_says_so(table, tmp_path):
    model = tmp_path / "m.gordan"
    result = run("fit", table, "-o", model)
    assert result.exit_code == 0
    assert "warning: up against down is not separable: rows 3 and 8 have the same features" in result.stderr
    assert "fitted by squared hinge loss (C = 1). Use --loss and --C, or --on-inseparable ignore" in result.stderr
    loaded = Model.load(model)
    assert loaded.planes[0].separable is False
    assert (loaded.nu, loaded.loss, loaded.C) == (None, "squared_hinge", 1.0)
    assert run("verify", model, table).exit_code == 0
    told = answer("fit", table, "-o", model)["planes"][0]
    assert told["loss"] == "squared_hinge"
    assert tuple(told["objective"]) == loaded.planes[0].objective
    norm3 = run("fit", table, "-o", model, "--norm", 3)
    assert "Pass --nu to choose how soft the margin is, or --on-inseparable ignore" in norm3.stderr
    assert Model.load(model).nu == Model.load(model).planes[0].nu > 0
    assert run("fit", table, "-o", model, "--on-inseparable", "ignore").stderr == ""
    found = answer("fit", table, "-o", model, "--nu", 0.5)
    assert found["planes"][0]["margin"][0] > 0
    assert (found["planes"][0]["nu"], found["planes"][0]["separable"]) == (0.5, None)
    assert Model.load(model).nu == 0.5


def test_fit_that_is_not_to_be_soft_writes_nothing(table, tmp_path):
    """Code 1 with the witness; 3 where nothing is proved, or where there is no plane however soft."""
    model = tmp_path / "m.gordan"
    result = run("fit", table, "-o", model, "--on-inseparable", "raise")
    assert result.exit_code == 1
    assert "row 3 " in result.stdout
    assert "no model was written: up against down is not separable" in result.stderr
    assert "--on-inseparable warn to fit by squared hinge loss, or use --loss and --C" in result.stderr
    assert answer("fit", table, "-o", model, "--on-inseparable", "raise", code=1)["planes"][0]["witness"]["rows"] == [3, 8]
    square = write_csv(tmp_path / "square.csv", np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]]), [*"aabb"])
    for options in ([], ["--nu", 1.0], ["--nu", 0.5, "--on-inseparable", "raise"]):
        result = run("fit", square, "-o", model, *options)
        assert result.exit_code == 3, options
        assert "no model was written" in result.stderr
    # the rows of a pair are numbered as in the file
    three = run("fit", IRIS, "-o", model, "--on-inseparable", "raise")
    rows = {*map(int, re.findall(r"row (\d+) ", three.stdout))}
    assert three.exit_code == 1
    assert min(rows) >= 50
    assert f"not separable: the weighted rows {min(rows)}, " in three.stdout
    assert not model.exists()


@pytest.mark.parametrize(
    "options",
    [{}, {"multi_class": "ovr"}, {"nu": 0.6666666666666667, "multi_class": "ovr"}, {"class_weight": "balanced", "nu": 0.2}],
    ids=str,
)
def test_the_model_is_that_of_the_classifier(options, tmp_path):
    """The same file, but for what the program adds: the hash, file and size of the data, the label column, where minimizers of
    losses are; of a nu above its limit by one float the one used."""
    flags = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", value)]
    assert run("fit", IRIS, "-o", tmp_path / "ours.gordan", *flags).exit_code == 0
    table = read(IRIS)
    frame = pandas.DataFrame(table.X, columns=table.names)
    found = gordan.MaxMarginClassifier(on_inseparable="ignore", **options).fit(frame, table.y)
    ours, theirs = Model.load(tmp_path / "ours.gordan"), found.set_params(on_inseparable="warn")._model()
    proofs = [gordan.Certificate.from_json(text) for text in ours.certificates]
    assert all(proof.data_hash is not None for proof in proofs)
    about = [replace(proof.about, file=None, size=None, label=None) for proof in proofs]
    bare = [replace(proof, data_hash=None, about=own).to_json() for proof, own in zip(proofs, about, strict=True)]
    assert ours.label == "species"
    assert replace(ours, certificates=tuple(bare), label=None, places=None).to_bytes() == theirs.to_bytes()
    if "multi_class" in options and "nu" in options:
        assert Fraction(options["nu"]) > Fraction(2, 3) >= Fraction(ours.nu)
    again = gordan.load(tmp_path / "ours.gordan")
    assert (again.separable_, again.nu_) == (found.separable_, found.nu_)
    assert again.predict(frame).tolist() == run("predict", tmp_path / "ours.gordan", IRIS).stdout.split()


def test_weights_of_rows_and_classes(tmp_path):
    """A column of weights is no feature: whole ones are repeated rows, and zero takes a row out."""
    rng = np.random.default_rng(2)
    y, c = np.arange(40) % 2, rng.integers(0, 4, 40)
    X = rng.normal(size=(40, 3)) + 1.5 * y[:, None]
    both = write_csv(tmp_path / "weighted.csv", np.column_stack((X[:, :2], c, X[:, 2])), y, names="abwc")
    many = write_csv(tmp_path / "repeated.csv", X.repeat(c, axis=0), y.repeat(c))
    for options in ([], ["--nu", 0.4], ["--nu", 0.4, "--class-weight", "0=3", "--class-weight", "1=2.0"]):
        assert run("fit", both, "-o", tmp_path / "one", "--weight", "w", *options).exit_code == 0
        assert run("fit", many, "-o", tmp_path / "two", *options).exit_code == 0
        one, two = Model.load(tmp_path / "one"), Model.load(tmp_path / "two")
        assert one.names == ("a", "b", "c")
        np.testing.assert_allclose(one.coef, two.coef, atol=1e-8)
        np.testing.assert_allclose(one.margins, two.margins, rtol=1e-7)
        assert run("verify", tmp_path / "one", both, "--drop", "w").exit_code == 0
    by_place = run("fit", both, "-o", tmp_path / "two", "--weight", 2, *options)
    assert by_place.exit_code == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    (tmp_path / "text.csv").write_text("a,w,side\n1,some,x\n2,more,y\n")
    (tmp_path / "less.csv").write_text("a,w,side\n1,2,x\n2,,y\n3,-1,y\n")
    (tmp_path / "negative.csv").write_text("a,w,side\n1,2,x\n3,-1,y\n")
    np.savez(tmp_path / "apart.npz", X=X, y=y)
    for wrong, column, message in (
        ("apart.npz", 0, "--weight names a column of a CSV, TSV, Parquet or .npy file"),
        ("weighted.csv", "z", "has no column named 'z'"),
        ("weighted.csv", "side", "is the label, is dropped, or is the only one"),
        ("text.csv", "w", "line 2, column 1 ('w'): the cell is 'some', which is not a number"),
        ("less.csv", "w", "less.csv, line 3"),
        ("negative.csv", "w", "sample_weight[1] is -1.0"),
    ):
        result = run("fit", tmp_path / wrong, "-o", tmp_path / "no", "--weight", column)
        assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    for wrong, message in (
        ("0", "pass balanced, or CLASS=WEIGHT"),
        ("7=1", "has no class '7'"),
        ("0=-1", "class_weight[0] is -1.0"),
    ):
        result = run("fit", both, "-o", tmp_path / "no", "--class-weight", wrong)
        assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


def test_pairs_that_do_not_fit_into_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("gordan.cli.models.fits", lambda size: size < 3000)  # of 4,800 bytes two thirds
    result = run("fit", IRIS, "-o", tmp_path / "m")
    assert result.exit_code == 2
    assert "pass --multi-class ovr, which copies none" in result.stderr
    assert run("fit", IRIS, "-o", tmp_path / "m", "--multi-class", "ovr").exit_code == 0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "multinomial"])
@pytest.mark.parametrize("positive", [None, "virginica"])
def test_fit_of_least_loss_is_that_of_the_classifier(loss, positive, tmp_path):
    model = tmp_path / "model.gordan"
    chosen = [] if positive is None else ["--positive", positive]
    told = answer("fit", IRIS, "-o", model, "--loss", loss, "--C", 0.5, *chosen)
    table = read(IRIS)
    X, y = table.X, table.y if positive is None else table.y == positive
    expected = gordan.LinearClassifier(loss, 0.5).fit(X, y)
    loaded = gordan.load(model)
    assert isinstance(loaded, gordan.LinearClassifier)
    np.testing.assert_array_equal(loaded.coef_, expected.coef_)  # the same code solves all classes together
    assert [plane["status"] for plane in told["planes"]] == ["solved"] * (1 if loss == "multinomial" else len(loaded.coef_))
    np.testing.assert_allclose(
        [plane["objective"] for plane in told["planes"]], np.reshape(expected.objective_, (-1, 2)), rtol=1e-9
    )
    assert answer("verify", model, IRIS, *chosen)["accepted"]
    predicted = answer("predict", model, IRIS, *chosen)
    assert predicted["right"] == (expected.predict(X) == y).sum()
    if loss in ("logistic", "multinomial"):
        named = answer("predict", model, IRIS, "--proba")
        np.testing.assert_allclose(named["probabilities"], expected.predict_proba(X), rtol=1e-6)
        assert named["classes"] == expected.classes_.tolist()
        order = ", ".join(map(str, expected.classes_))
        assert f"the columns are the probabilities of {order}, in this order" in run("predict", model, IRIS, "--proba").stderr
    else:
        assert "not fitted with --loss logistic" in run("predict", model, IRIS, "--proba").stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--C", "2"], "--C needs --loss"),
        (["--loss", "hinge", "--nu", "0.2"], "--nu cannot be combined with --loss"),
        (["--loss", "hinge", "--norm", "inf"], "--norm cannot be combined with --loss"),
        (["--loss", "hinge", "--multi-class", "ovr"], "--multi-class cannot be combined with --loss"),
        (["--loss", "hinge", "--multi-class", "ovo"], "--multi-class cannot be combined with --loss"),
        (["--loss", "hinge", "--C", "-1"], "gordan: --C is -1.0; pass a positive finite number"),
        (["--loss", "hinge", "--tol", "0"], "gordan: --tol is 0.0; pass a positive number"),
        (["--loss", "squared"], "is not one of"),
    ],
)
def test_options_of_losses_that_do_not_fit(options, words, tmp_path):
    result = run("fit", IRIS, "-o", tmp_path / "model", *options)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert not (tmp_path / "model").exists()


def test_fit_does_without_scikit_learn(tmp_path):
    """It takes longer to import than most fits do."""
    program = "import sys, gordan.cli as cli; sys.argv = ['gordan', *sys.argv[1:]]\n"
    program += "try: cli.main()\nexcept SystemExit as end: print(end.code, 'sklearn' in sys.modules)"
    for arguments in (["fit", IRIS, "-o", tmp_path / "m"], ["predict", tmp_path / "m", IRIS], ["verify", tmp_path / "m", IRIS]):
        done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "0 False"


@pytest.mark.parametrize("name", ["binary", "rest", "pairs"])
def test_model_files_of_0_1(name):
    """Written by 0.1.0 for iris: `fit --positive setosa`, `fit --nu 0.6`, and `MaxMarginClassifier().fit` with its names."""
    path = Path(__file__).parent / "models_0_1" / f"{name}.gordan"
    table, found = read(IRIS), gordan.load(path)
    options = ["--positive", "setosa"] if name == "binary" else []
    assert answer("verify", path, IRIS, *options)["accepted"]
    y = table.y == "setosa" if name == "binary" else table.y
    predicted = found.predict(pandas.DataFrame(table.X, columns=table.names))
    right = {"binary": 150, "rest": 138, "pairs": 145}[name]
    assert (predicted == y).sum() == right == answer("predict", path, IRIS, *options)["right"]
    assert found.feature_names_in_.tolist() == list(table.names)
    assert np.reshape(found.margin_, (-1, 2))[0, 0] <= {"rest": 1.53404}.get(name, SETOSA)
    expected = {"binary": (None, True), "rest": ([0.6] * 3, [None] * 3), "pairs": ([None, None, 0.5], [True, True, None])}
    assert (found.nu_, found.separable_) == expected[name]


def test_one_vs_one_votes():
    model = Model(
        classes=("a", "b", "c"),
        coef=np.zeros((3, 1)),
        intercept=np.zeros(3),
        kind="one-vs-one",
        margins=np.zeros((3, 2)),
        norm=2.0,
        nu=None,
        intercept_kind="free",
        version="0",
    )
    # (a, b), (a, c), (b, c): b beats a and c; a circle is decided by the sums
    scores = np.array([[1.0, 1.0, -1.0], [1.0, -3.0, 1.0], [-1.0, 3.0, -1.0]])
    assert model.labels(scores).tolist() == ["b", "a", "c"]


def test_a_model_that_is_not_written_keeps_its_checkpoint(tmp_path, monkeypatch):
    model, checkpoint = tmp_path / "m", tmp_path / "run"
    asked = ["fit", IRIS, "--positive", "setosa", "-o", model, "--checkpoint", checkpoint]
    asked += ["--method", "smooth_perceptron", "--tol", 1e-3]
    assert answer(*asked, "--max-iter", 3)["planes"][0]["status"] == "iteration-limit"
    model.unlink()

    def full(self, path):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Model, "save", full)
        assert answer(*asked, code=2)["planes"][0]["status"] == "solved"
    assert (checkpoint.exists(), model.exists()) == (True, False)
    assert answer(*asked)["planes"][0]["resumed"]
    assert (checkpoint.exists(), model.exists()) == (False, True)


@pytest.mark.parametrize(
    ("loss", "options", "files"),
    [
        ("logistic", ["--positive", "virginica"], {"run"}),
        ("squared_hinge", [], {"run.0", "run.1", "run.2"}),
        ("multinomial", [], {"run"}),
    ],
)
def test_checkpoints_of_losses(loss, options, files, tmp_path):
    """A stopped fit goes on where it was; one that is finished removes its files."""
    asked = ["fit", IRIS, *options, "--loss", loss, "-o", tmp_path / "m", "--tol", 1e-6, "--checkpoint", tmp_path / "run"]
    first = answer(*asked, "--max-iter", 2)["planes"]
    assert {plane["status"] for plane in first} == {"iteration-limit"}
    assert {path.name for path in tmp_path.iterdir()} == {"m", *files}
    assert not any(plane["resumed"] for plane in first)
    shown = run(*asked, "--max-iter", 1)
    assert f"resumed from {tmp_path / min(files)}" in shown.stdout.replace("\n", "")
    second = answer(*asked)["planes"]
    assert all(plane["resumed"] and plane["status"] == "solved" and plane["n_iter"] >= 3 for plane in second)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert answer("verify", tmp_path / "m", IRIS, *options)["accepted"]


@pytest.mark.parametrize("together", [True, False])
def test_no_model_of_a_loss_is_written_unless_each_class_has_a_plane(together, tmp_path, monkeypatch):
    """Ctrl-C in the shared passes, or with a checkpoint in those of the first class, leaves classes without a plane."""

    def pressed(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(f"gordan.solve.{'batches.least_losses' if together else 'minimizing._until_overflow'}", pressed)
    options = [] if together else ["--checkpoint", tmp_path / "run"]
    told = answer("fit", IRIS, "-o", tmp_path / "m", "--loss", "logistic", *options, code=130)
    assert (told["interrupted"], told["model"]) == (True, None)
    assert [plane["status"] for plane in told["planes"]] == ["interrupted"] * (3 if together else 1)
    assert not (tmp_path / "m").exists()


def test_checkpoints_of_planes_that_are_made_soft(tmp_path, monkeypatch):
    """The run without nu and the soft one have a file each, for each plane: both resume, and the model is the same."""
    assert run("fit", IRIS, "-o", tmp_path / "plain", "--norm", 3).exit_code == 0

    def full(self, path):
        raise OSError(28, "No space left on device", str(path))

    asked = ["fit", IRIS, "-o", tmp_path / "m", "--checkpoint", tmp_path / "run", "--norm", 3]
    with monkeypatch.context() as patch:
        patch.setattr(Model, "save", full)
        answer(*asked, code=2)
    assert (
        {"run.0", "run.1", "run.2.nu1"}
        <= {path.name for path in tmp_path.iterdir()}
        <= {"plain", "run.0", "run.1", "run.2", "run.2.nu1"}
    )
    assert [plane["resumed"] for plane in answer(*asked)["planes"]] == [True] * 3
    assert (tmp_path / "m").read_bytes() == (tmp_path / "plain").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "plain"]


def test_a_checkpoint_that_cannot_be_removed_does_not_cost_the_answer(tmp_path, monkeypatch):
    def forbidden(self, missing_ok=False):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "unlink", forbidden)
    result = run("fit", IRIS, "--positive", "setosa", "-o", tmp_path / "m", "--checkpoint", tmp_path / "run")
    assert result.exit_code == 0
    assert f"{tmp_path / 'run'}: cannot be removed: Permission denied" in result.stderr
    assert "model written to" in result.stdout


def test_fit_one_class_against_the_rest_by_a_loss(tmp_path):
    """As in Python: all planes by it, since one needs it; and the margin of those that were not asked is open."""
    model = tmp_path / "m.gordan"
    result = run("fit", IRIS, "-o", model, "--multi-class", "ovr")
    assert "warning: versicolor against the rest is not separable: " in result.stderr
    assert "as are all classes. Use --loss and --C" in result.stderr
    planes = answer("fit", IRIS, "-o", model, "--multi-class", "ovr")["planes"]
    assert [plane["loss"] for plane in planes] == ["squared_hinge"] * 3
    assert [plane["separable"] for plane in planes] == [None, False, None]
    assert run("verify", model, IRIS).exit_code == 0
    rows = gordan.io.read(IRIS)
    found = gordan.MaxMarginClassifier(multi_class="ovr", on_inseparable="ignore").fit(rows.X, rows.y)
    np.testing.assert_allclose(Model.load(model).coef, found.coef_, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared_hinge", "multinomial"])
def test_predictions_that_are_proved(tmp_path, loss):
    """As in Python; a file that does not say where the minimizer is has none."""
    model = tmp_path / "m.gordan"
    assert run("fit", IRIS, "-o", model, "--loss", loss, "--max-iter", 5).exit_code == 0
    rows = gordan.io.read(IRIS)
    same = gordan.load(model).same_prediction(pandas.DataFrame(rows.X, columns=rows.names))
    result = run("predict", model, IRIS, "--proved")
    assert [line.split("\t")[1] for line in result.stdout.splitlines()] == ["proved" if each else "open" for each in same]
    plain = run("predict", model, IRIS).stdout.splitlines()
    assert [line.split("\t")[0] for line in result.stdout.splitlines()] == plain
    assert f"{same.sum()} of 150 predictions are proved to be those of the exact minimizer" in result.stderr
    assert answer("predict", model, IRIS, "--proved")["same_prediction"] == same.tolist()
    assert "same_prediction" not in answer("predict", model, IRIS)
    assert "leave out --scores and --proba" in run("predict", model, IRIS, "--proved", "--scores").stderr
    assert run("fit", IRIS, "-o", model, "--positive", "setosa").exit_code == 0
    failed = run("predict", model, IRIS, "--positive", "setosa", "--proved")
    assert failed.exit_code == 2
    assert "--proved is about the exact minimizer of a loss" in failed.stderr


def test_planes_that_were_not_found_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(fitting.Fitting, "hard_margins_together", lambda self, problems: ({}, [*range(len(problems))]))
    monkeypatch.setattr(fitting.Fitting, "_ends_before", lambda self, k: k > 0)
    found = run("fit", IRIS, "-o", tmp_path / "m.gordan")
    assert found.exit_code == 3
    assert "stopped (time-limit): it was not started" in found.stdout
    assert "no model was written: 2 of 3 planes were not found in time; pass a larger --time-limit" in found.output
    assert not (tmp_path / "m.gordan").exists()


def test_labels_that_may_be_those_of_another_column(tmp_path):
    """Numbers that are not whole are refused, as in Python, and classes of hardly more than a row are reported."""
    file, model = tmp_path / "t.csv", tmp_path / "m.gordan"
    file.write_text("y,a,b\n" + "".join(f"{k % 2},{k},{k / 4}\n" for k in range(24)))
    refused = run("fit", file, "-o", model)
    assert refused.exit_code == 2
    assert "the labels are numbers that are not whole, 0.0, 0.25, 0.5, 0.75," in refused.stderr
    assert "is the label another column? --label NAME" in refused.stderr
    assert not model.exists()
    found = answer("fit", file, "-o", model, "--label", "a", "--drop", "y", "--loss", "squared_hinge")
    assert any(
        "has 24 classes, 0, 1, 2, 3" in notice and "in 24 rows; is the label another" in notice for notice in found["notices"]
    )
    assert not any("another column" in notice for notice in answer("fit", file, "-o", model, "--label", "y")["notices"])
