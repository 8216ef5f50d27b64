"""The command line: what it prints is re-derived from the files it was given."""

from __future__ import annotations

import csv
import gzip
import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from terminal import signalled
from typer.testing import CliRunner

import gordan
from gordan import datasets
from gordan.certificates import standalone
from gordan.cli import answers
from gordan.cli.app import app
from gordan.cli.commands import Interrupts, Terminated
from gordan.cli.data import parse_size
from gordan.cli.progress import Watch, fit_to_width
from gordan.compiling import _CompilationLog
from gordan.io import Model, read
from gordan.io.lines import lines_of

DATA = Path(gordan.__file__).parent / "data"
IRIS, RASH = DATA / "iris.csv", DATA / "rash.csv"
# half the distance of the hulls of setosa and the rest, from an independent solver (LIBSVM, C = 1e10)
SETOSA = 0.817557
UNCOUNTED = "are left out, and row numbers do not count them"  # those in a certificate


def run(*arguments: object, **options):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answer(*arguments: object, code: int = 0):
    """The JSON that a command prints."""
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.output
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout, parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))


def program(*arguments: object, **options):
    """The program as a process of its own."""
    command = [sys.executable, "-m", "gordan", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


@pytest.fixture
def table(tmp_path):
    """Two classes in a CSV; rows 3 and 8 have the same features and different labels."""
    rng = np.random.default_rng(3)
    X = rng.integers(-9, 10, size=(30, 3)) / 4
    y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
    X[8], y[3], y[8] = X[3], "up", "down"
    return write_csv(tmp_path / "pair.csv", X, y)


def write_csv(path: Path, X, y=None, names: str = "abcdefghij") -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names[: X.shape[1]], *([] if y is None else ["side"])])
        writer.writerows([*map(repr, row), *([] if y is None else [y[i]])] for i, row in enumerate(X.tolist()))
    return path


# ---- separate and verify ----------------------------------------------------------------------------------------------


def test_separable_with_the_plane_and_its_margin():
    found = answer("separate", IRIS, "--positive", "setosa")
    X, y = datasets.iris()
    distances = y * (X @ np.array(found["w"]) + found["b"]) / np.linalg.norm(found["w"])
    lower, upper = found["margin"]
    assert found["status"] == "separable"
    assert found["proved"]
    assert (lower + upper) / 2 == pytest.approx(SETOSA, rel=1e-5)
    assert lower <= distances.min() * (1 + 1e-12) <= upper * (1 + 1e-12)


def test_not_separable_names_rows_and_lines(table):
    result = run("separate", table)
    assert result.exit_code == 1
    assert "not separable: rows 3 and 8 have the same features and different labels" in result.stdout
    lines = table.read_text().splitlines()
    told = re.findall(r"row (\d+) +line (\d+) +label (\w+) +weight 1", result.stdout)
    assert [row for row, _, _ in told] == ["3", "8"]
    assert len({lines[int(line) - 1].rpartition(",")[0] for _, line, _ in told}) == 1  # the same features
    assert all(lines[int(line) - 1].endswith(label) for _, line, label in told)


def test_witness_cancels_exactly():
    found = answer("separate", IRIS, "--positive", "virginica", code=1)
    rows, weights = found["witness"]["rows"], [int(weight, 16) for weight in found["witness"]["weights"]]
    cells = [line.split(",") for line in IRIS.read_text().splitlines()[1:]]
    for column in [*range(4), None]:
        signed = [
            weight * (1 if cells[row][4] == "virginica" else -1) * (1 if column is None else Fraction(float(cells[row][column])))
            for row, weight in zip(rows, weights, strict=True)
        ]
        assert sum(signed) == 0
    assert all(weight > 0 for weight in weights)


def test_undecided_is_not_a_no(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "hard.npz", X=rng.normal(size=(4000, 60)), y=rng.integers(0, 2, 4000))
    found = answer("separate", tmp_path / "hard.npz", "--time-limit", 0.001, code=3)
    assert found["status"] == "undecided"
    assert found["separable"] is None
    assert found["w"] is None
    assert run("separate", tmp_path / "hard.npz", "--time-limit", 0.001).exit_code == 3


def test_certificate_is_accepted_by_both_checkers(table, tmp_path, capsys):
    proof = tmp_path / "proof.json"
    assert run("separate", table, "--certificate", proof).exit_code == 1
    result = run("verify", proof, table)
    assert (result.exit_code, result.stdout.split(":")[0]) == (0, "accepted")
    assert standalone.main([str(proof), str(table)]) == 0
    # a label changed: the claim is about other data, and false
    changed = tmp_path / "changed.csv"
    lines = table.read_text().splitlines()
    lines[9] = lines[9].replace("down", "up")
    changed.write_text("\n".join(lines) + "\n")
    result = run("verify", proof, changed)
    assert result.exit_code == 1
    assert result.stdout.startswith("rejected: ")
    assert "this is not the data that it was made for" in result.stdout
    assert answer("verify", proof, changed, code=1)["checks"][0]["other_data"]


def test_certificate_of_a_diagnosis(tmp_path, capsys):
    (tmp_path / "trial.csv").write_text("x,z,died\n1,0,no\n2,0,yes\n3,0,no\n1.5,1,yes\n2.5,1,yes\n")
    proof = tmp_path / "proof.json"
    found = answer("diagnose", tmp_path / "trial.csv", "--certificate", proof)
    assert (found["kind"], found["certificate"]) == ("quasi-complete", str(proof))
    result = run("verify", proof, tmp_path / "trial.csv")
    assert (result.exit_code, result.stdout.split(":")[0]) == (0, "accepted")
    assert standalone.main([str(proof), str(tmp_path / "trial.csv")]) == 0
    before = proof.read_text()
    assert "certificate written to" in run("diagnose", tmp_path / "trial.csv", "--certificate", proof).stdout
    assert proof.read_text() == before  # equal runs write equal files
    about = {"file": "trial.csv", "size": 51, "label": "died", "weight": None, "positive": None, "columns": ["x", "z"]}
    told = "the data is quasi-completely separated: some plane separates it weakly, and none strictly"
    assert json.loads(before)["about"] == {**about, "version": gordan.__version__, "statement": told}


def test_the_checker_is_printed_and_needs_nothing(tmp_path):
    """`gordan checker > check.py`: the class, the label column and the columns are those that the certificate names."""
    proof, checker = tmp_path / "proof.json", tmp_path / "check.py"
    run("separate", IRIS, "--positive", "setosa", "--certificate", proof)
    checker.write_text(run("checker").stdout, encoding="utf-8")
    assert checker.read_text(encoding="utf-8") == Path(standalone.__file__).read_text(encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", "-S", checker, proof, IRIS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("accepted: the data is separable, with a largest margin between 0.817555")
    assert "for the file iris.csv (" in lines[1]
    assert "the class 'setosa' against the rest" in lines[1]
    assert lines[-1] == "  everything that the claim depends on matches the data it was made for"


def test_the_checker_reads_tables_as_they_are(tmp_path, capsys):
    """Semicolons, decimal commas, True and False, and the rows that were left out for a missing cell."""
    text = "Größe;raucht;Klasse\n1,80;True;krank\n1,65;;gesund\n1,70;False;gesund\n1,92;TRUE;krank\n1,60;NA;krank\n1,81;true;"
    text += "gesund\n"
    (tmp_path / "patienten.csv").write_text(text, encoding="utf-8")
    options = ["--decimal", ",", "--missing", "drop"]
    proof = tmp_path / "proof.json"
    found = answer("diagnose", tmp_path / "patienten.csv", *options, "--certificate", proof)
    assert json.loads(proof.read_text())["dropped"] == ["missing"]
    assert run("verify", proof, tmp_path / "patienten.csv", *options).exit_code == 0
    assert standalone.main([str(proof), str(tmp_path / "patienten.csv"), "--decimal", ","]) == 0
    told = capsys.readouterr().out.splitlines()
    same = "  everything that the claim depends on matches the data it was made for"
    assert told[-2:] == [f"  rows with a missing value {UNCOUNTED}", same]
    assert found["kind"] == "quasi-complete"
    for more in (["--decimal", ",", "--sep", "|"], ["--decimal", ",", "--sep", "ab"], []):
        assert standalone.main([str(proof), str(tmp_path / "patienten.csv"), *more]) == 2


WEIGHTED = """id,age,region,count,died
1,50,0,3,no
2,61,1,2,no
3,NA,0,1,yes
4,44,0,1,yes
5,71,0,5,yes
7,55,1,0,yes
8,58,1,4,no
9,66,0,,no
10,47,0,1,no
11,39,0,2,no
"""


def test_weights_and_missing_values_on_the_command_line(tmp_path, capsys):
    """The row of weight zero is the one in region 1 who died; a row without a weight is left out as one without an age is."""
    data, proof = tmp_path / "trial.csv", tmp_path / "proof.json"
    data.write_text(WEIGHTED)
    found = answer("diagnose", data, "--drop", "id", "--weight", "count", "--missing", "drop", "--certificate", proof)
    assert (found["kind"], found["columns"]["region"], found["rows"]) == ("quasi-complete", -1, [1, 6])  # rows of the file
    assert "left out 2 of 10 rows of trial.csv for missing cells (age: 1, count: 1)" in found["notices"][0]
    content = json.loads(proof.read_text())
    assert (content["dropped"], content["about"]["weight"]) == (["missing", "zero-weight"], "count")
    by_place = answer("diagnose", data, "--drop", 0, "--weight", 3, "--missing", "drop", "--certificate", tmp_path / "two.json")
    assert by_place["rows"] == found["rows"]
    assert (tmp_path / "two.json").read_text() == proof.read_text()
    packed = tmp_path / "trial.csv.gz"
    packed.write_bytes(gzip.compress(data.read_bytes()))
    for file in (data, packed):  # nothing has to be named
        result = run("verify", proof, file)
        assert result.exit_code == 0
        assert standalone.main([str(proof), str(file)]) == 0
        assert capsys.readouterr().out == result.stdout  # both say the same
        assert result.stdout.splitlines()[-1] == "  everything that the claim depends on matches the data it was made for"
    data.write_text(WEIGHTED.replace("7,55,1,0,yes", "7,55,1,1,yes"))
    assert run("verify", proof, data).exit_code == 1
    assert standalone.main([str(proof), str(data)]) == 1
    assert "has no column named 'mass'" in run("diagnose", data, "--weight", "mass", "--missing", "drop").stderr
    assert "is the label, is dropped" in run("diagnose", data, "--weight", "died", "--missing", "drop").stderr


OTHER_LABELS = {
    "the same": ["u", "v"],
    "swapped": ["v", "u"],
    "other text": ["r", "s"],
    "numbers": [5, 6],
    "0 and 1": [0, 1],
    "truths": ["true", "false"],
    "one class": ["u"],
    "another class": ["r"],
    "one number": [1],
    "three": ["u", "v", "w"],
    "three numbers": [0, 1, 2],
    "a number in text": ["u", "v", "u", "v", "u", "v", "7"],
    "text in numbers": [0, 1, 0, 1, 0, 1, "u"],
    "an empty one": ["u", "v", "u", "v", "u", "v", ""],
    "nan": [0, 1, 0, 1, 0, 1, "nan"],
}


@pytest.mark.parametrize("labels", [["u", "v"], [0, 1], ["True", "False"]], ids=str)
@pytest.mark.parametrize(
    "asked", [["separate"], ["separate", "--positive"], ["diagnose", "--model", "multinomial"]], ids=" ".join
)
def test_both_checkers_end_with_the_same_code_whatever_the_labels(asked, labels, tmp_path, capsys):
    X, proof = np.random.default_rng(1).normal(size=(14, 2)).round(2), tmp_path / "proof.json"

    def file(name, given):
        return write_csv(tmp_path / name, X, np.array([str(given[i % len(given)]) for i in range(14)]))

    asked = [*asked, labels[0]] if asked[-1] == "--positive" else asked
    run(asked[0], file("t.csv", labels), *asked[1:], "--certificate", proof)
    codes = {}
    for name, given in OTHER_LABELS.items():
        codes[name] = run("verify", proof, file("other.csv", given)).exit_code
        assert standalone.main([str(proof), str(tmp_path / "other.csv")]) == codes[name], name
    assert run("verify", proof, tmp_path / "t.csv").exit_code == 0
    assert {2} < {*codes.values()} <= {0, 1, 2}


def test_one_class_is_separable_for_both_checkers(tmp_path, capsys):
    """As it is for `separate` of several label vectors, one of which has one sign."""
    X = np.random.default_rng(1).normal(size=(6, 2))
    proof = tmp_path / "proof.json"
    proof.write_text(gordan.separate(X, np.array([[1, 1, 1, 1, 1, 1], [1, -1, 1, -1, 1, 1]]).T)[0].certificate.to_json())
    data = write_csv(tmp_path / "t.csv", X, np.ones(6, int))
    result = run("verify", proof, data)
    assert result.exit_code == standalone.main([str(proof), str(data)]) == 0
    assert capsys.readouterr().out == result.stdout
    assert "one class only" in run("separate", data).stderr


def test_certificates_in_a_model_say_what_they_are_about(tmp_path, capsys):
    """So that they can be taken out and checked alone; nothing has to be named for `verify`, where rows were left out as well."""
    text = IRIS.read_text().splitlines()
    text[3] = text[3].replace("4.7", "")
    data, model, proof = tmp_path / "iris.csv", tmp_path / "iris.gordan", tmp_path / "proof.json"
    data.write_text("\n".join(f"{line.rpartition(',')[2]},{line.rpartition(',')[0]}" for line in text) + "\n")
    options = ["--label", "species", "--missing", "drop"]
    run("fit", data, *options, "-o", model, "--loss", "squared_hinge")
    told = run("verify", model, data)
    assert told.exit_code == 0
    assert told.stdout.count("accepted") == 3
    assert told.stdout.count("for the file iris.csv") == 1
    proof.write_text(Model.load(model).certificates[1])
    assert standalone.main([str(proof), str(data)]) == 0
    assert "the label column 'species', the class 'versicolor' against the rest, 4 named columns (" in capsys.readouterr().out
    assert standalone.main([str(model), str(data)]) == 2
    line = re.search(r"(from pathlib import .*)", capsys.readouterr().err)[1]
    before, proof = proof.read_text(), tmp_path / "first.json"
    exec(line.replace("proof.json", str(proof)))
    assert proof.read_text() == Model.load(model).certificates[0] != before
    run("fit", data, *options, "-o", model)  # planes of pairs, each with its own rows
    assert run("verify", model, data).exit_code == 0
    run("fit", data, *options, "-o", model, "--standardize", "--loss", "squared_hinge")
    told = run("verify", model, data)
    assert (told.exit_code, told.stdout.count("the claim is about standardized columns")) == (0, 1)
    assert "for the file" not in told.stdout


def test_columns_without_a_name_beside_those_of_a_certificate(tmp_path):
    """They are left out by both checkers, though nothing says that they are an index."""
    X, y = np.random.default_rng(1).normal(size=(9, 2)), np.array(["u", "v", "v"] * 3)
    data, proof = with_count(tmp_path / "t.csv", "", range(2, 11), y=y, X=X), tmp_path / "proof.json"
    run("separate", data, "--drop", 0, "--certificate", proof)
    assert run("verify", proof, data).exit_code == standalone.main([str(proof), str(data)]) == 0


def test_rows_are_those_of_the_file_where_some_are_left_out(tmp_path):
    """Rows 1 and 3 of the file cancel, and row 0 is left out: the certificate does not count it, the answers do."""
    data, proof = tmp_path / "gaps.csv", tmp_path / "proof.json"
    data.write_text("x,z,died\n,0,no\n1,0,no\n2,0,no\n1,0,yes\n0,7,no\n")
    found = answer("separate", data, "--missing", "drop", "--certificate", proof, code=1)
    assert found["witness"]["rows"] == [1, 3]
    assert found["notices"] == ["left out 1 of 5 rows of gaps.csv for missing cells (x: 1): line 2"]
    assert json.loads(proof.read_text())["rows"] == [0, 2]
    assert run("verify", proof, data).exit_code == standalone.main([str(proof), str(data)]) == 0
    told = run("separate", data, "--missing", "drop").stdout
    assert told.startswith("not separable: rows 1 and 3 have the same features and different labels")
    assert re.findall(r"row (\d) +line (\d) +label (\w+)", told) == [("1", "3", "no"), ("3", "5", "yes")]
    assert "rows that are left out are counted" in told
    model = tmp_path / "model.gordan"
    fitted = run("fit", data, "-o", model, "--missing", "drop")
    assert "not separable: rows 1 and 3 have the same features" in fitted.stderr
    assert answer("fit", data, "-o", model, "--missing", "drop")["planes"][0]["witness"]["rows"] == [1, 3]
    raced = run("race", data, "--missing", "drop", "-m", "smooth_perceptron", "--rounds", 5).stdout
    assert raced.startswith("not separable: rows 1 and 3 have the same features")
    predicted = run("predict", model, data, "--missing", "drop")
    assert "(x: 1): line 2" in predicted.stderr
    assert "4 lines are printed, none for the rows that are left out" in predicted.stderr
    assert (len(predicted.stdout.splitlines()), answer("predict", model, data, "--missing", "drop")["left_out"]) == (4, [0])
    seen = run("diagnose", data, "--missing", "drop").stdout
    assert "Rows strictly on the correct side: 2, 4 (from 0, without the header; rows that are left out are counted)." in seen


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--label", "died", "--weight", "count", "--missing", "drop"],
        ["--positive", "yes", "--intercept", "none", "--drop", "count", "--drop", "age", "--missing", "drop"],
    ],
    ids=" ".join,
)
def test_what_diagnose_shows_to_be_done_next_runs(options, tmp_path, monkeypatch, capsys):
    """The commands, one of which is given lines of Python; both with the options of this one."""
    pytest.importorskip("firthmodels", reason="needs firthmodels: pip install 'gordan[stats]'")
    monkeypatch.chdir(tmp_path)
    text = "age,region,count,died\n50,0,3,no\n61,1,2,no\n44,0,1,yes\n71,0,5,yes\n58,1,4,no\n47,0,1,no\n"
    Path("trial.csv").write_text(text + (",0,1,yes\n" if options else ""))
    told = run("diagnose", "trial.csv", *options).stdout
    assert ("Outcome: died; the event is yes." if "--label" in options else "yes (the last column; --label names another") in told
    commands = r"^(gordan fit .*)  # ridge.*\npip install firthmodels\npython3 - <<'END'  # Firth.*\n((?:.*\n)+)END\n$"
    ridge, firth = re.search(commands, told, re.M).groups()
    fitted = run(*shlex.split(ridge)[1:])
    assert (fitted.exit_code, Path("ridge.gordan").exists()) == (0, True)
    capsys.readouterr()
    exec(firth, {})
    shown = capsys.readouterr().out
    assert "('region', -" in shown
    assert ("count" in shown) == (not options)
    assert ("died ≠ yes" in told) == ("--positive" in options)


def test_what_to_pass_for_several_classes(tmp_path):
    told = run("diagnose", IRIS).stderr
    assert "pass --positive setosa for that class against the rest, or --model multinomial, ordinal or poisson" in told
    assert "--reference is for --model multinomial" in run("diagnose", IRIS, "--model", "ordinal", "--reference", "setosa").stderr
    rows = pandas.read_csv(IRIS).query("species != 'setosa'")
    X, y = rows.drop(columns="species"), rows["species"]
    (tmp_path / "pair.json").write_text(gordan.separate(X, y).certificate.to_json())
    assert "a file with rows of versicolor and virginica only" in run("verify", tmp_path / "pair.json", IRIS).stderr


def test_a_missing_label_of_a_class_against_the_rest(tmp_path):
    """It is left out by both checkers, and not taken as one of the rest."""
    data, proof = tmp_path / "t.csv", tmp_path / "proof.json"
    data.write_text("x,z,side\n1,0,u\n2,0,NA\n3,0,v\n1.5,1,\n2.5,1,w\n")
    run("separate", data, "--positive", "u", "--missing", "drop", "--certificate", proof)
    assert json.loads(proof.read_text())["shape"] == [3, 2]
    assert run("verify", proof, data).exit_code == standalone.main([str(proof), str(data)]) == 0


def test_a_certificate_names_the_file_and_its_size(tmp_path):
    """Also one that is compressed, and what comes by standard input."""
    text = "x,z,died\n1,0,no\n2,0,yes\n3,0,no\n1.5,1,yes\n2.5,1,yes\n"
    (tmp_path / "trial.csv").write_text(text)
    (tmp_path / "trial.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    proof = tmp_path / "proof.json"
    for file, given, name in (("trial.csv", None, None), ("trial.csv.gz", None, None), ("-", text, "standard input")):
        path = tmp_path / file if given is None else file
        assert run("diagnose", path, "--certificate", proof, input=given).exit_code == 0
        about = json.loads(proof.read_text())["about"]
        size = len(text) if given is not None else path.stat().st_size
        assert (about["file"], about["size"], about["label"]) == (name or file, size, "died")
        result = run("verify", proof, path, input=given)
        assert f"for the file {name or file} ({size} bytes), the label column 'died', 2 named columns (" in result.stdout
        assert result.stdout.endswith("  everything that the claim depends on matches the data it was made for\n")


def test_weights_of_other_files(tmp_path):
    """A column of a .npy or Parquet file, which are read without rows that are left out."""
    table = np.array([[50.0, 0, 3, 0], [61, 1, 2, 0], [44, 0, 1, 1], [71, 0, 5, 1], [55, 1, 0, 1], [47, 0, 1, 0], [39, 0, 2, 0]])
    np.save(tmp_path / "t.npy", table)
    proof = tmp_path / "proof.json"
    found = answer("diagnose", tmp_path / "t.npy", "--weight", 2, "--certificate", proof)
    assert (found["kind"], found["rows"]) == ("quasi-complete", [1])
    assert run("verify", proof, tmp_path / "t.npy", "--weight", 2).exit_code == 0
    assert standalone.main([str(proof), str(tmp_path / "t.npy"), "--weight", "2"]) == 0


def test_the_order_of_an_ordinal_model(tmp_path):
    data = tmp_path / "pain.csv"
    data.write_text("dose,pain\n1,low\n2,medium\n3,high\n1.5,low\n2.5,high\n1.7,medium\n")
    result = run("diagnose", data, "--model", "ordinal")
    assert "taken in alphabetical order, high < low < medium; pass --order with the lowest class first" in result.stderr
    result = run("diagnose", data, "--model", "ordinal", "--order", "low, medium,high", "--certificate", tmp_path / "proof.json")
    assert result.stderr == ""
    assert result.stdout.startswith("Complete separation (proved)")
    assert "Order of the classes: low < medium < high." in result.stdout
    assert run("verify", tmp_path / "proof.json", data).exit_code == 0
    for order, told in (("low,high", "must name each class once"), ("low,medium,hihg", "did you mean 'high'")):
        result = run("diagnose", data, "--model", "ordinal", "--order", order)
        assert (result.exit_code, told in result.stderr) == (2, True)
    assert run("diagnose", data, "--model", "multinomial", "--order", "low,medium,high").exit_code == 2


def test_both_checkers_read_a_table_without_a_header(tmp_path, capsys):
    data, proof = tmp_path / "t.csv", tmp_path / "proof.json"
    data.write_text("1.000,5;0;a\n2.000;0;b\n3.000;0;a\n1,5;1;b\n2,5;1;b\n;0;a\n")
    options = ["--no-header", "--decimal", ",", "--thousands", "."]
    found = answer("diagnose", data, *options, "--missing", "drop", "--certificate", proof)
    assert found["kind"] == "quasi-complete"
    for checker in (lambda *arguments: run("verify", *arguments).exit_code, lambda *a: standalone.main([*map(str, a)])):
        assert checker(proof, data, *options) == 0
        assert checker(proof, data, "--no-header", "--decimal", ",") == 2
        assert checker(proof, data, *options, "--sep", ";") == 0
    capsys.readouterr()
    complete = [line for line in data.read_text().splitlines() if not line.startswith(";")]
    data.write_text("\n".join(complete) + "\n")
    answer("diagnose", data, *options, "--certificate", proof)
    data.write_text("\n".join([*complete, ";1;a"]) + "\n")
    for checker in (lambda *arguments: run("verify", *arguments).exit_code, lambda *a: standalone.main([*map(str, a)])):
        assert checker(proof, data, *options) == 2
        assert checker(proof, data, *options, "--missing", "drop") == 0


def test_models_on_the_command_line(tmp_path):
    (tmp_path / "visits.csv").write_text("x,z,visits\n0,1,3\n0,2,1\n1,1,0\n0,3,0\n0,1,2\n")
    proof = tmp_path / "proof.json"
    found = answer("diagnose", tmp_path / "visits.csv", "--model", "poisson", "--certificate", proof)
    assert (found["kind"], found["model"], found["rows"], found["event"]) == ("quasi-complete", "poisson", [2], None)
    result = run("verify", proof, tmp_path / "visits.csv")
    assert result.stdout.startswith("accepted: the data of a Poisson regression is separated")
    assert "for the file visits.csv (41 bytes), the label column 'visits', 2 named columns ('x', 'z')\n" in result.stdout
    (tmp_path / "named.csv").write_text((tmp_path / "visits.csv").read_text().replace("x,z", "x,w"))
    told = run("verify", proof, tmp_path / "named.csv").stdout
    assert "the columns have other names than those it was made for: 'w' in place of 'z'" in told
    assert "other data" not in told
    assert answer("verify", proof, tmp_path / "named.csv")["checks"][0]["other_names"]
    (tmp_path / "grades.csv").write_text("t,grade\n1,a\n1,b\n0,a\n0,b\n0,c\n1,b\n")
    found = answer("diagnose", tmp_path / "grades.csv", "--model", "multinomial", "--reference", "b")
    assert found["columns"]["c:t"] == -1
    assert found["explanation"] == ["none of the 3 rows with t = 1 has grade = c"]
    assert run("diagnose", tmp_path / "grades.csv").exit_code == 2


def test_certificate_of_one_class_against_the_rest(tmp_path):
    proof = tmp_path / "proof.json"
    run("separate", IRIS, "--positive", "setosa", "--certificate", proof)
    assert run("verify", proof, IRIS, "--positive", "setosa").exit_code == 0
    assert run("verify", proof, IRIS, "--positive", "virginica").exit_code == 1
    assert run("verify", proof, IRIS).exit_code == 0  # the certificate names the class


def test_certificate_of_one_class_of_two(tmp_path, table):
    """About a class against the rest: where the classes are 0 and 1 that is what they say, else it is the class that the
    certificate names; one that names none must be told which."""
    proof, X = tmp_path / "proof.json", read(table).X
    numbers = write_csv(tmp_path / "numbers.csv", X, (X[:, 0] > 0.3).astype(int))
    words = write_csv(tmp_path / "words.csv", X, np.where(X[:, 0] > 0.3, "up", "down"))
    for data, positive in ((numbers, 1), (words, "up")):
        assert run("separate", data, "--positive", positive, "--certificate", proof).exit_code == 0
        assert run("verify", proof, data, "--positive", positive).exit_code == 0
    assert run("verify", proof, numbers).exit_code == 0
    assert run("verify", proof, words).exit_code == 0
    proof.write_text(replace(gordan.Certificate.from_json(proof.read_text()), about=None).to_json())
    result = run("verify", proof, words)
    assert result.exit_code == 2
    assert "say which with --positive" in result.stderr
    assert run("separate", numbers, "--positive", "1.0").exit_code == 0  # the number, however it is written
    for wrong in ("up", "0_1", "\u0661"):  # float() reads the last two as 1
        assert f"has no class {wrong!r}" in run("separate", numbers, "--positive", wrong).stderr


def test_both_checkers_say_what_a_certificate_names_otherwise(tmp_path, capsys):
    """Another name of the label column; a class that is not the positive one, or that the labels 0 and 1 do not name."""
    proof, data = tmp_path / "proof.json", tmp_path / "t.csv"

    def told(about, text):
        content = {**made, "about": {**made["about"], **about}}
        proof.write_text(json.dumps(content))
        data.write_text(text)
        assert standalone.main([str(proof), str(data)]) == 0
        own = run("verify", proof, data).stdout
        assert own == capsys.readouterr().out
        return own

    text = "a,b,ill\n1,2,no\n2,1,no\n5,3,yes\n6,2,yes\n"
    data.write_text(text)
    run("separate", data, "--certificate", proof)
    made = json.loads(proof.read_text())
    other = "the label column has another name than the one it was made for: "
    assert other not in told({}, text)
    assert f"{other}'ill' in place of 'zzz'" in told({"label": "zzz"}, text)
    assert f"{other}'sick' in place of 'ill'" in told({}, text.replace("ill", "sick"))
    assert answer("verify", proof, data)["checks"][0]["other_names"]
    named = "its description, which was not checked, names the class {!r}, but its positive class is 'yes'"
    for positive in ("maybe", "no"):
        assert named.format(positive) in told({"positive": positive}, text)
    assert "its description" not in told({"positive": "yes"}, text)
    run("separate", data, "--positive", "yes", "--certificate", proof)
    made = json.loads(proof.read_text())
    assert "the data does not name" not in told({}, text)
    numbers = text.replace("no", "0").replace("yes", "1")
    assert "the data does not name the class 'maybe': its labels are 0 and 1, and 1 was taken" in told(
        {"positive": "maybe"}, numbers
    )
    X, y = np.loadtxt(text.splitlines()[1:], delimiter=",", usecols=(0, 1)), [1, 1, 2, 3]
    made = json.loads(gordan.diagnose(X, y, model="poisson").certificate.to_json())
    numbers = "a,b,y\n1,2,1\n2,1,1\n5,3,2\n6,2,3\n"
    assert "its description, which was not checked, names the class '1'" in told({"positive": "1"}, numbers)


def test_model_without_certificates(tmp_path):
    model = tmp_path / "m.gordan"
    assert run("fit", IRIS, "-o", model, "--positive", "setosa", "--no-certificates").exit_code == 0
    result = run("verify", model, IRIS, "--positive", "setosa")
    assert result.exit_code == 2
    assert "model without certificates" in result.stderr
    result = run("predict", model, IRIS, "--label", "species", "--unlabelled")
    assert result.exit_code == 2
    assert "leave out one of them" in result.stderr


# ---- fit and predict --------------------------------------------------------------------------------------------------


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
    ours, theirs = Model.load(tmp_path / "ours.gordan"), found._model()
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
    # the classifier looks at classes together, the command shows the progress of each: they differ in last digits
    np.testing.assert_allclose(loaded.coef_, expected.coef_, rtol=1e-6, atol=1e-9)
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
        (["--loss", "hinge", "--C", "-1"], "C is -1.0; pass a positive finite number"),
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


# ---- diagnose, play, demo ---------------------------------------------------------------------------------------------


def test_diagnose_names_the_column():
    found = answer("diagnose", RASH)
    assert found["kind"] == "quasi-complete"
    assert found["columns"] == {"age": 0, "new_soap": 1, "dose": 0, "(intercept)": 0}
    soap = [i for i, line in enumerate(RASH.read_text().splitlines()[1:]) if line.split(",")[1] == "1"]
    assert found["rows"] == soap
    result = run("diagnose", RASH)
    assert result.exit_code == 0
    assert "all 4 rows with new_soap = 1 have rash = yes" in result.stdout
    assert re.search(r"^new_soap +\+inf$", result.stdout, re.MULTILINE)
    assert "8-11" in result.stdout


def test_play_prints_a_table_or_the_trace(tmp_path):
    arguments = ("play", IRIS, "mirror_prox_perceptron", "--positive", "setosa", "--rounds", 200)
    found = answer(*arguments, "--save", tmp_path / "t.json")
    saved = gordan.Trace.load(tmp_path / "t.json")
    assert found["columns"]["upper"] == saved.upper.tolist()
    assert found["bracket"][0] <= SETOSA <= found["bracket"][1]
    lines = [line.split() for line in run(*arguments).stdout.splitlines()]
    last = next(line for line in reversed(lines) if line[:1] == ["200"])
    assert float(last[2]) <= SETOSA <= float(last[3])


def test_demo(tmp_path):
    result = run("demo", "--rounds", "300", "--picture", tmp_path / "demo.png")
    assert result.exit_code == 0
    brackets = [tuple(map(float, pair)) for pair in re.findall(r"(0\.\d{5,7}) (\d\.\d{4,6})\b", result.output)]
    assert len(brackets) == 3
    assert all(lower <= SETOSA <= upper for lower, upper in brackets)
    assert "cancel exactly" in result.output
    assert "Quasi-complete separation" in result.output
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    found = answer("demo", "--rounds", "10", "--no-picture")
    assert found["virginica"]["accepted"]
    assert found["picture"] is None


def test_demo_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("demo", "--rounds", "10", "--picture", tmp_path / "demo.png")
    assert result.exit_code == 0
    assert "gordan[plot]" in result.output
    assert not (tmp_path / "demo.png").exists()


def test_the_demo_is_shown_where_no_picture_can_be_saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gordan-demo.png").mkdir()  # a place that cannot be written to, for root as well
    result = run("demo", "--rounds", "10")
    assert result.exit_code == 0
    assert "cancel exactly" in result.output
    assert "no picture was saved. gordan-demo.png: cannot be written: Is a directory" in result.output
    assert answer("demo", "--rounds", "10")["picture"] is None
    assert run("demo", "--rounds", "10", "--picture", "gordan-demo.png").exit_code == 2
    assert run("demo", "--rounds", "10", "--picture", "demo.docx").exit_code == 2


# ---- columns that are no measurements -----------------------------------------------------------------------------------


NOISE = np.random.default_rng(0).normal(size=(400, 3)).round(6)
SORTED = np.repeat(["u", "v"], 200)


def with_count(path: Path, name: str = "", first=range(400), X=NOISE, y=SORTED) -> Path:
    """Rows of noise, sorted by class, behind another column; as a data frame writes them, if that has no name."""
    mark = "\t" if ".tsv" in path.name else ","
    lines = [[name, *"abc"[: X.shape[1]], "y"], *([k, *row, label] for k, row, label in zip(first, X.tolist(), y, strict=True))]
    content = "\n".join(mark.join(map(str, line)) for line in lines) + "\n"
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return path


def assert_witness(found, X, positive):
    """The witness of that answer cancels the rows of X, exactly."""
    rows, weights = found["witness"]["rows"], [int(weight, 16) for weight in found["witness"]["weights"]]
    signed = [weight * (1 if positive[row] else -1) for row, weight in zip(rows, weights, strict=True)]
    assert sum(signed) == 0
    assert all(weight > 0 for weight in weights)
    for j in range(X.shape[1]):
        assert sum(t * Fraction(float(X[row, j])) for t, row in zip(signed, rows, strict=True)) == 0


@pytest.mark.parametrize("name", ["noise.csv", "noise.tsv", "noise.csv.gz", "-", "pipe.csv"])
def test_an_index_does_not_separate(name, tmp_path, monkeypatch):
    """Noise sorted by class is not separable; with the index of the data frame it would be."""
    path = with_count(tmp_path / ("noise.csv" if name in ("-", "pipe.csv") else name))
    options = {}
    if name == "-":
        options["input"], path = path.read_bytes(), "-"
    elif name == "pipe.csv":
        os.mkfifo(tmp_path / name)
        threading.Thread(target=(tmp_path / name).write_bytes, args=(path.read_bytes(),), daemon=True).start()
        path = tmp_path / name
    result = run("separate", path, "--json", **options)
    found = json.loads(result.stdout)
    assert (result.exit_code, found["status"], found["names"], found["d"]) == (1, "not-separable", ["a", "b", "c"], 3)
    assert_witness(found, NOISE, SORTED == "v")
    (notice,) = found["notices"]
    assert result.stderr == notice + "\n"
    assert "column 0 of " in notice
    assert "--keep-index" in notice


def test_the_index_can_be_kept(tmp_path):
    path = with_count(tmp_path / "noise.csv")
    found = answer("separate", path, "--keep-index")
    assert (found["status"], found["names"]) == ("separable", ["", "a", "b", "c"])
    X = np.column_stack([np.arange(400), NOISE])
    assert (((X @ np.array(found["w"]) + found["b"]) > 0) == (SORTED == "v")).all()
    (warning,) = found["notices"]  # it is still no measurement
    assert "column 0 of noise.csv counts the rows" in warning
    assert answer("separate", path, "--keep-index", "--drop", warning.rpartition(" ")[2], code=1)["notices"] == []


@pytest.mark.parametrize(
    "options", [[], ["--drop", "b"], ["--keep-index"], ["--keep-index", "--drop", "0"], ["--label", "y", "--drop", 2]]
)
def test_what_was_left_out_is_left_out_by_predict_and_verify(options, tmp_path):
    """The same file with the same options: the certificate and the model are about the same columns, for both checkers."""
    path, proof, model = with_count(tmp_path / "noise.csv"), tmp_path / "proof.json", tmp_path / "m.gordan"
    X = {"": np.arange(400.0), **{name: NOISE[:, j] for j, name in enumerate("abc")}}
    found = answer("separate", path, *options, "--certificate", proof, code=0 if options == ["--keep-index"] else 1)
    expected = [*([""] if options == ["--keep-index"] else []), *("ac" if {"b", 2} & {*options} else "abc")]
    assert found["names"] == expected
    checked = answer("verify", proof, path, *options)
    assert (checked["accepted"], checked["checks"][0]["other_data"], checked["notices"]) == (True, False, found["notices"])
    assert standalone.main([str(proof), str(path), *map(str, options)]) == 0
    other = [] if "--keep-index" in options and "--drop" not in options else ["--keep-index"]
    assert run("verify", proof, path, *other).exit_code == 1
    assert answer("fit", path, *options, "-o", model, "--nu", 1.0)["notices"] == found["notices"]
    loaded = Model.load(model)
    assert list(loaded.names) == expected
    scores = np.column_stack([X[name] for name in expected]) @ loaded.coef[0] + loaded.intercept[0]
    predicted = np.array(loaded.classes)[(scores > 0).astype(int)]
    for again in (options, [word for word in options if word not in ("--keep-index",)], []):  # names say which columns they are
        told = answer("predict", model, path, *again)
        assert told["labels"] == predicted.tolist()
        assert told["right"] == (predicted == SORTED).sum()
    assert answer("verify", model, path, *options)["accepted"]


@pytest.mark.parametrize("kind", ["svm", "zero.svm", "npy", "npy and labels"])
def test_both_checkers_drop_columns_of_any_format(kind, tmp_path):
    X, y, proof = np.column_stack([np.arange(400), NOISE]), (SORTED == "v").astype(int), tmp_path / "proof.json"
    names, drop, checked = [], "0", []
    if "svm" in kind:
        first, path = int(kind == "svm"), tmp_path / "t.svm"
        drop = str(first)
        rows = (
            " ".join([str(k), *(f"{j}:{v!r}" for j, v in enumerate(row, first))]) for k, row in zip(y, X.tolist(), strict=True)
        )
        path.write_text("\n".join(rows) + "\n")
    elif kind == "npy":
        path = tmp_path / "t.npy"
        np.save(path, np.column_stack([X, y]))
    else:
        path, labels = tmp_path / "X.npy", tmp_path / "y.npy"
        np.save(path, X)
        np.save(labels, y)
        names, checked = ["--label", labels], ["--labels", labels]
    found = answer("separate", path, *names, "--drop", drop, "--certificate", proof, code=1)
    assert_witness(found, NOISE, y == 1)
    assert answer("verify", proof, path, *names, "--drop", drop)["accepted"]
    assert standalone.main([*map(str, [proof, path, *checked, "--drop", drop])]) == 0
    assert standalone.main([*map(str, [proof, path, *checked])]) in (1, 2)
    assert standalone.main([*map(str, [proof, path, *checked, "--drop", 2])]) in (1, 2)


def test_a_model_without_names_predicts_a_table_with_an_index(tmp_path):
    """Columns by position: the index is left out of the table as it would be by a fit."""
    y = np.where(NOISE[:, 0] > 0.1, 1, 0)
    X = NOISE + np.outer(2 * y - 1, [1.0, 0, 0])
    np.savez(tmp_path / "t.npz", X=X, y=y)
    assert run("fit", tmp_path / "t.npz", "-o", tmp_path / "m").exit_code == 0
    found = answer("predict", tmp_path / "m", with_count(tmp_path / "t.csv", X=X, y=y))
    assert (found["right"], len(found["notices"])) == (400, 1)
    unlabelled = tmp_path / "new.csv"
    unlabelled.write_text("\n".join(line.rpartition(",")[0] for line in (tmp_path / "t.csv").read_text().splitlines()) + "\n")
    for options in ([], ["--unlabelled"]):
        assert answer("predict", tmp_path / "m", unlabelled, *options)["labels"] == y.tolist()


UNEVEN = np.cumsum(np.random.default_rng(5).integers(1, 9, 400))
SUSPECTS = {
    "counts": ("id", range(400), "column 'id' of t.csv counts the rows", "--drop id"),
    "counts from 1": ("n", range(1, 401), "column 'n' of t.csv counts the rows", "--drop n"),
    "counts, not sorted": ("id", range(400), "counts the rows", "--drop id"),
    "an identifier": (
        "patient no.",
        UNEVEN,
        "has a different value in every row and separates the classes alone",
        "--drop 'patient no.'",
    ),
    "falling": ("t", -UNEVEN / 7, "separates the classes alone", "--drop t"),
    "an index from 2, not sorted": ("", range(2, 402), "column 0 of t.csv has no name and a different whole number", "--drop 0"),
    "a falling index, not sorted": ("Unnamed: 0", range(400, 0, -1), "it is used as a feature", "--drop 'Unnamed: 0'"),
    "a sampled index, not sorted": ("", np.random.default_rng(6).permutation(1000)[:400], "it is used as a feature", "--drop 0"),
    "nameless, but no count": ("", UNEVEN, "column 0 of t.csv has a different value in every row", "--drop 0"),
}


def test_a_column_that_counts_the_rows_is_seen_where_rows_are_left_out(tmp_path):
    rng = np.random.default_rng(4)
    lines = [f"{i + 1},{rng.normal():.3f},{'u' if i < 200 else 'v'}" for i in range(400)]
    lines[0], lines[37] = "1,,u", "38,NA,u"
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["Nr,a,y", *lines]) + "\n")
    result = run("separate", path, "--missing", "drop")
    assert "column 'Nr' of t.csv counts the rows" in " ".join(result.stderr.split())


@pytest.mark.parametrize(("name", "column", "told", "option"), SUSPECTS.values(), ids=SUSPECTS)
def test_columns_that_are_no_measurements_are_named(request, name, column, told, option, tmp_path):
    """They are kept; the option that the warning shows leaves them out."""
    y = np.array(["u", "v"])[np.arange(400) % 2] if "not sorted" in request.node.name else SORTED
    path = with_count(tmp_path / "t.csv", name, column, y=y)
    result = run("separate", path, "--json")
    found = json.loads(result.stdout)
    assert found["names"] == [name, *"abc"]
    (warning,) = found["notices"]
    assert result.stderr == warning + "\n"
    assert warning.startswith("warning: ")
    assert told in warning
    assert warning.endswith(f": {option}")
    dropped = answer("separate", path, *shlex.split(option), code=1)
    assert (dropped["names"], dropped["notices"]) == ([*"abc"], [])
    assert_witness(dropped, NOISE, y == "v")


def test_measurements_are_not_named(tmp_path):
    """Values that are all different are nothing by themselves, nor is a column that separates and repeats a value."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 3)), np.repeat(["u", "v"], 30)
    X[:, 1] = np.sort(X[:, 1])
    X[[3, 40], 1] = X[[4, 41], 1]  # separates, with two values that come twice
    X[:, 2] = np.sort(X[:, 2])
    X[[29, 30], 2] = X[[30, 29], 2]  # separates all but two
    assert answer("separate", write_csv(tmp_path / "t.csv", X, y))["notices"] == []
    assert answer("separate", IRIS, "--positive", "setosa")["notices"] == []
    few = write_csv(tmp_path / "few.csv", np.arange(9.0)[:, None], np.repeat(["u", "v"], [4, 5]))
    assert answer("separate", few)["notices"] == []  # nine rows


def test_the_classes_that_are_asked_about_are_those_that_count(tmp_path):
    """Of three classes, in pieces along the column; one against the rest if it is at an end of it."""

    def warned(y, *arguments):
        path = write_csv(tmp_path / "t.csv", np.column_stack([np.sort(NOISE[:40, 0]), NOISE[40:80, 1]]), y)
        notices = json.loads(run(arguments[0], path, *arguments[1:], "--json").stdout)["notices"]
        assert all("column 'a' of t.csv has a different value in every row" in notice for notice in notices)
        return len(notices)

    y, fit = np.repeat(["u", "v", "w"], [10, 20, 10]), ("fit", "-o", tmp_path / "m", "--nu", 0.3)
    assert warned(y, *fit) == 1
    assert [warned(y, "separate", "--positive", positive) for positive in "uvw"] == [1, 0, 1]
    y[[9, 10]] = y[[10, 9]]  # u and v overlap now, w does not
    assert warned(y, *fit) == 0
    assert [warned(y, "separate", "--positive", positive) for positive in "uvw"] == [0, 0, 1]


@pytest.mark.parametrize("kind", ["svm", "npy", "npz", "csr", "dense", "u1.npy"])
def test_columns_without_names_are_named_by_number(kind, tmp_path):
    X, y = (
        np.column_stack([NOISE, np.arange(400) if kind != "u1.npy" else np.arange(400) % 7, UNEVEN]),
        (SORTED == "v").astype(int),
    )
    if kind == "svm":
        lines = [
            " ".join([str(label), *(f"{j}:{v!r}" for j, v in enumerate(row, 1))])
            for label, row in zip(y, X.tolist(), strict=True)
        ]
        path, numbers = tmp_path / "t.svm", (4, 5)
        path.write_text("\n".join(lines) + "\n")
    elif kind.endswith("npy"):
        path, numbers = tmp_path / kind.rpartition(".")[2].join(["t.", ""]), (4, 5)
        values = np.column_stack([y, X])
        np.save(path, values.astype(np.uint8) if kind == "u1.npy" else values)
    else:
        np.savez(tmp_path / "t.npz", X=X, y=y)
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", y)
        path, numbers = tmp_path / "t.npz", (3, 4)
        if kind != "npz":
            answer("convert", tmp_path / "X.npy", tmp_path / "folder", "--label", tmp_path / "y.npy", "--kind", kind)
            path = tmp_path / "folder"
    label = ["--label", 0] if kind.endswith("npy") else []
    limit = ["--memory-limit", "1GB"] if kind in ("csr", "dense") else []
    if kind == "u1.npy":  # a byte does not count to 400, and nothing goes wrong
        assert json.loads(run("separate", path, *label, "--json").stdout)["notices"] == []
        return
    found = answer("separate", path, *label, *limit)
    counts, separates = found["notices"]
    assert f"column {numbers[0]} of {path.name} counts the rows" in counts
    assert f"column {numbers[1]} of {path.name} has a different value" in separates
    dropped = answer("separate", path, *label, *limit, "--drop", numbers[0], "--drop", numbers[1], code=1)
    assert (dropped["d"], dropped["notices"]) == (3, [])
    assert_witness(dropped, NOISE, y == 1)
    again = answer("separate", path, *label, *limit, "--drop", numbers[0])["notices"]
    assert again == [separates]  # with the number that the file has for it


def test_many_columns_in_one_warning(tmp_path):
    X = np.sort(np.random.default_rng(1).normal(size=(40, 10)), axis=0)
    (warning,) = answer("separate", write_csv(tmp_path / "t.csv", X, np.repeat(["u", "v"], 20)))["notices"]
    assert "columns 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h' and 2 more of t.csv each have" in warning
    assert warning.count("--drop") == 8


@pytest.mark.parametrize("command", ["separate", "fit", "predict", "verify", "diagnose", "race", "play", "convert"])
def test_every_command_that_reads_data_drops_columns(command, tmp_path):
    """One notice for the index; none where it is dropped; the label stays; and names that are not there are listed."""
    X = NOISE[:60].copy()
    y = np.where(X[:, 0] + X[:, 2] > 0, "v", "u")
    X[:, [0, 2]] += np.where(y == "v", 0.2, -0.2)[:, None]
    path, model = with_count(tmp_path / "t.csv", "", range(60), X, y), tmp_path / "m.gordan"
    assert run("fit", path, "-o", model, "--drop", "b").exit_code == 0
    head = {
        "predict": ["predict", model, path],
        "verify": ["verify", model, path],
        "fit": ["fit", path, "-o", tmp_path / "new"],
        "convert": ["convert", path, tmp_path / "folder"],
        "play": ["play", path, "--rounds", 2],
        "race": ["race", path, "--rounds", 2, "-m", "nesterov"],
    }.get(command, [command, path])
    found = answer(*head, "--drop", "b")
    assert len(found["notices"]) == (0 if command == "predict" else 1)
    if "d" in found:
        assert found["d"] == 2
    if command == "convert":
        head[-1] = tmp_path / "other"
    assert answer(*head, "--drop", "b", "--drop", 0)["notices"] == []
    for wrong, message in (("zz", "no column named 'zz'; its columns are '', 'a', 'b', 'c', 'y'"), ("y", "the label column")):
        if command != "predict" or wrong == "zz":  # predict: without --label the last column that is left may be the label
            result = run(*head, "--drop", wrong)
            assert result.exit_code == 2
            assert message in result.stderr
    if command == "predict":
        assert "'a'" in run(*head, "--drop", "a").stderr


def test_a_converted_folder_is_the_same_data(tmp_path):
    """The index is left out when the data is converted, so that certificates of the file hold for the folder."""
    path, proof = with_count(tmp_path / "noise.csv"), tmp_path / "proof.json"
    assert answer("convert", path, tmp_path / "folder")["d"] == 3
    answer("separate", path, "--certificate", proof, code=1)
    for where in (path, tmp_path / "folder"):
        assert answer("verify", proof, where)["accepted"]
    answer("separate", tmp_path / "folder", "--drop", "b", "--certificate", proof, code=1)
    for where in (path, tmp_path / "folder"):
        assert answer("verify", proof, where, "--drop", "b")["accepted"]
    assert "'a', 'b', 'c'" in run("separate", tmp_path / "folder", "--drop", "y").stderr


# ---- files, lines, wrong use ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.csv", 'a,y\n1,0\n\n2,1\n"3\n",1\n4,0\n', {0: 2, 1: 4, 2: 5, 3: 7}),
        ("a.tsv", "\ufeffa\ty\r\n1\t0\r\n2\t1\r\n", {0: 2, 1: 3}),
        ("a.svm", "# one\n1 1:1\n\n-1 2:1 # two\n1\n", {0: 2, 1: 4, 2: 5}),
    ],
)
def test_lines_of_rows(tmp_path, name, content, lines):
    path = tmp_path / name
    path.write_bytes(content.encode())
    assert lines_of(path, [*lines]) == lines
    assert lines_of(path, [1]) == {1: lines[1]}
    if '"' not in content:
        assert len(read(path).y) == len(lines)


def test_binary_files_have_no_lines(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    assert lines_of(tmp_path / "a.npy", [0]) == {}


def bad_files(folder: Path) -> None:
    (folder / "bad.csv").write_text("a,b,y\n1,2,0\n1,x,1\n")
    (folder / "one.csv").write_text("a,y\n1,0\n2,0\n")
    (folder / "empty.csv").write_text("")
    (folder / "bad.svm").write_text("1 1:2\n-1 2:1 1:3\n")
    (folder / "junk.json").write_text("{}")


WRONG = [
    (["nonsense"], "No such command"),
    (["separate"], "Missing argument"),
    (["separate", "missing.csv"], "missing.csv: No such file"),
    (["separate", "bad.csv"], "bad.csv, line 3, column 1 ('b'): the cell is 'x', which is not a number"),
    (["separate", "bad.svm"], "bad.svm, line 2: index 1 comes after 2"),
    (["separate", "one.csv"], "one.csv has one class only"),
    (["separate", "empty.csv"], "empty.csv is empty"),
    (["separate", IRIS], "3 classes, setosa, versicolor, virginica; pass --positive setosa"),
    (["separate", IRIS, "--positive", "rose"], "no class 'rose'; its classes are setosa"),
    (["separate", RASH, "--label", "colour"], "no column named 'colour'; its columns are 'age'"),
    (["separate", RASH, "--certificate", "nowhere/c.json"], "the folder nowhere does not exist"),
    (["separate", RASH, "--intercept", "maybe"], "maybe"),
    (["fit", RASH], "Missing option"),
    (["fit", RASH, "-o", "m", "--norm", "1"], "norm is 1.0; pass a number p with 2 <= p <= inf"),
    (["fit", RASH, "-o", "m", "--nu", "0.99"], "nu is 0.99; for this data it must be in (0,"),
    (["fit", RASH, "-o", "m", "--method", "magic"], "there is no method 'magic'; choose one of"),
    (["predict", RASH, RASH], "rash.csv"),
    (["verify", "junk.json", RASH], "junk.json: this is not a certificate"),
    (["play", RASH, "magic"], "there is no method 'magic'"),
    (["play", RASH, "smooth_perceptron", "--norm", "3"], "smooth_perceptron does not take --norm"),
    (["race", RASH, "--method", "perceptron"], "perceptron supports neither nu nor a free intercept"),
    (["demo", "--rounds", "0"], "1"),
    (["convert", "--check", IRIS], "iris.csv is not a folder that `gordan convert` wrote"),
    (["convert", "--check", "."], ". is not a folder that `gordan convert` wrote"),
    (["convert", "--check", "nope"], "nope: No such file or directory"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), WRONG, ids=[" ".join(map(str, a[:1])) + str(k) for k, (a, _) in enumerate(WRONG)]
)
def test_wrong_use_exits_with_2_and_says_why(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bad_files(tmp_path)
    result = run(*arguments, terminal_width=200)
    assert result.exit_code == 2
    assert message in re.sub(r"\s*│?\n│?\s*", " ", result.stderr)
    assert "Traceback" not in result.output
    assert result.stdout == ""


WRITERS = [["separate", "--certificate"], ["fit", "-o"], ["play", "--rounds", 2, "--save"]]


# Each command that writes a file, the line of its answer that must not be lost, and a field of its JSON with the same.
LOST = {
    "separate": (["separate", IRIS, "--positive", "setosa", "--certificate"], "separable: the largest margin is", "status"),
    "not separable": (
        ["separate", IRIS, "--positive", "virginica", "--certificate"],
        "not separable: the weighted rows",
        "witness",
    ),
    "diagnose": (["diagnose", RASH, "--certificate"], "Quasi-complete separation (proved)", "kind"),
    "fit": (["fit", IRIS, "--positive", "setosa", "-o"], "solved: the largest margin is", "planes"),
    "fit three": (["fit", IRIS, "--nu", 0.6, "-o"], "virginica against versicolor:", "planes"),
    "play": (["play", IRIS, "--positive", "setosa", "--rounds", 2, "--save"], "stopped: round limit (2)", "columns"),
    "race": (["race", IRIS, "--positive", "setosa", "--rounds", 2, "-m", "nesterov", "--html"], "nesterov", "methods"),
    "demo": (["demo", "--rounds", 2, "--picture"], "Quasi-complete separation (proved)", "rash"),
}


@pytest.mark.parametrize(("arguments", "line", "field"), LOST.values(), ids=LOST)
def test_a_full_disk_does_not_cost_the_answer(arguments, line, field, tmp_path, monkeypatch):
    """The answer is printed, then the error with the name of the file, and the exit code is 2; nothing is left of the file."""
    for part, package in (("--html", "plotly"), ("--picture", "matplotlib")):
        if part in arguments:
            pytest.importorskip(package)

    def full(*_):
        raise OSError(28, "No space left on device")

    out = tmp_path / "out.png"
    monkeypatch.setattr(os, "fsync", full)
    result = run(*arguments, out)
    message = f"{out}: cannot be written: No space left on device"
    assert result.exit_code == 2
    assert line in result.stdout
    assert "written to" not in result.stdout
    assert "saved to" not in result.stdout
    assert result.stderr.endswith(f"gordan: {message}\n")
    found = answer(*arguments, out, code=2)
    assert found[field]
    assert found["error"] == message
    assert str(out) not in [value for name, value in found.items() if name != "error"]
    assert not list(tmp_path.iterdir())


def test_a_conversion_to_a_full_disk_names_the_folder(tmp_path):
    """Closing a file that could not be written fails once more; that error does not hide the name of the folder."""
    rows = "".join(f"{i},{i % 7},{i % 2}\n" for i in range(400))
    (tmp_path / "a.csv").write_text(f"a,b,y\n{rows}")
    program = "import resource, sys, gordan.cli as cli; sys.argv[0] = 'gordan'\n"
    program += "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); cli.main()"
    command = [sys.executable, "-c", program, "convert", "a.csv", "folder"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("gordan: folder: cannot be written: File too large\n")


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


def test_a_full_disk_while_converting_is_told_with_the_folder(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        result = run("convert", IRIS, tmp_path / "folder")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"gordan: {tmp_path / 'folder'}: cannot be written: No space left on device\n"
    assert answer("convert", IRIS, tmp_path / "folder")["n"] == 150


@pytest.mark.parametrize("arguments", WRITERS)
def test_links_and_pipes_are_written_to(arguments, tmp_path):
    """What is written in one step replaces files; neither a link nor a pipe is one."""
    asked = [*arguments, tmp_path / "plain", IRIS, "--positive", "setosa"]
    run(*asked)
    expected = (tmp_path / "plain").read_bytes()
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "target").write_text("old")
    (tmp_path / "link").symlink_to("far/target")
    os.mkfifo(tmp_path / "pipe")
    asked[len(arguments)] = tmp_path / "link"
    assert run(*asked).exit_code == 0
    assert (tmp_path / "link").is_symlink()
    read_from = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)  # a pipe holds 64 KiB: nobody needs to read meanwhile
    asked[len(arguments)] = tmp_path / "pipe"
    assert run(*asked).exit_code == 0
    assert (tmp_path / "pipe").is_fifo()
    piped = os.read(read_from, 1 << 20)
    os.close(read_from)
    if "play" not in arguments:  # a trace has its seconds in it
        assert piped == (tmp_path / "far" / "target").read_bytes() == expected
    assert len(piped) > 100
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["far", "link", "pipe", "plain", "target"]


def test_errors_as_json():
    result = run("separate", "missing.csv", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (2, {"error": "missing.csv: No such file or directory"})


def test_version_help_and_completion():
    assert run("--version").output.strip() == f"gordan {gordan.__version__}"
    for command in ("demo", "separate", "fit", "predict", "verify", "diagnose", "race", "play"):
        text = run(command, "--help").output
        assert f"gordan {command}" in text[text.index("Examples") :]
        assert command in run("--help").output
    completing = {"_GORDAN_COMPLETE": "complete_bash", "COMP_WORDS": "gordan play x.csv smooth_", "COMP_CWORD": "3"}
    shown = run(env=completing, prog_name="gordan").output.split()
    assert [word for word in shown if word.startswith("smooth_")] == ["smooth_perceptron", "smooth_p_norm_perceptron"]


def test_standard_input(tmp_path, table):
    """Every command that reads data takes it from a pipe as from a file, and leaves no copy of it."""
    model, proof = tmp_path / "m.gordan", tmp_path / "proof.json"
    run("fit", IRIS, "--positive", "setosa", "-o", model)
    run("separate", IRIS, "--positive", "setosa", "--certificate", proof)
    setosa = ("--positive", "setosa", "--json")
    for arguments in (
        ("separate", "-", *setosa),
        ("fit", "-", *setosa, "-o", model),
        ("diagnose", "-", *setosa),
        ("play", "-", *setosa, "--rounds", 3),
        ("race", "-", *setosa, "--rounds", 3, "-m", "nesterov"),
        ("verify", proof, "-", *setosa),
        ("predict", model, "-", *setosa),
    ):
        piped, plain = run(*arguments, input=IRIS.read_bytes()), run(*(IRIS if a == "-" else a for a in arguments))
        assert piped.exit_code == plain.exit_code == 0, piped.output
        answers = [json.loads(result.stdout) for result in (piped, plain)]
        drop_times(answers)
        assert answers[0] == answers[1]
    assert run("separate", "-", input="1 1:1\n0 1:2\n").exit_code == 0  # svmlight
    assert "standard input, line 2" in run("separate", "-", input="a,b,y\n1,x,0\n").stderr
    copies = tmp_path / "copies"
    copies.mkdir()
    with table.open() as stdin, program("separate", "-", stdin=stdin, env={**os.environ, "TMPDIR": str(copies)}) as process:
        assert "row 3  line 5" in process.communicate()[0]  # read a second time, for its lines
    assert not list(copies.iterdir())


def drop_times(content):
    """Leave out what differs from run to run."""
    if isinstance(content, dict):
        for name in ("seconds", "source"):
            content.pop(name, None)
    for each in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        drop_times(each)


@pytest.mark.parametrize("command", [None, "demo", "separate", "fit", "predict", "verify", "diagnose", "race", "play", "convert"])
def test_help_fits_a_terminal(command):
    """Paragraphs break where the terminal ends and nowhere else, examples do not break, and flags take no value."""
    shown = run(*([] if command is None else [command]), "--help", env={"COLUMNS": "80"}).output
    options, _, below = shown.partition("Examples")
    prose = [line.rstrip() for line in shown[: shown.index("╭")].splitlines()]
    for line, after in pairwise(prose):
        assert not line or not after or len(f"{line} {after.split()[0]}") > 79, after
    assert all(re.match(" (#|gordan) ", line) for line in below.splitlines() if line.strip())
    assert not re.search(r"--(json|version|check|scores|unlabelled|no-\w+) +[^A-Z\s]", options)


# ---- as a program of its own ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "code"), [("setosa", 0), ("virginica", 1)])
def test_heavy_packages_are_left_alone(kind, code):
    """Most of the time of a command on a small file would go to importing them: SciPy and numba take a second."""
    program = "import sys, gordan.cli as cli; sys.argv = ['gordan', 'separate', *sys.argv[1:]]\n"
    program += "heavy = ('numba', 'scipy', 'sklearn', 'matplotlib', 'plotly', 'pandas', 'rich.progress')\n"
    program += "try: cli.main()\nexcept SystemExit as end: print(end.code, [name for name in heavy if name in sys.modules])"
    command = [sys.executable, "-c", program, IRIS, "--positive", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"{code} []"


def test_pipe_that_closes_early(tmp_path):
    np.savez(tmp_path / "many.npz", X=np.tile([[0.0], [2.0]], (100_000, 1)), y=np.tile([0, 1], 100_000))
    model = tmp_path / "m.gordan"
    assert run("fit", tmp_path / "many.npz", "-o", model, "--no-certificates").exit_code == 0
    with program("predict", model, tmp_path / "many.npz", stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        complaint = process.stderr.read()
    assert "Traceback" not in complaint
    assert "Error" not in complaint


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX has this signal")
@pytest.mark.parametrize(
    "arguments", [("separate", IRIS, "--positive", "setosa"), ("diagnose", IRIS, "--positive", "setosa", "--json")]
)
def test_nobody_reads_the_answer(arguments):
    """An exit code that is neither yes nor no."""
    read_from, write_to = os.pipe()
    os.close(read_from)
    command = [sys.executable, "-m", "gordan", *map(str, arguments)]
    done = subprocess.run(command, stdout=write_to, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_to)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.skipif(sys.platform == "win32", reason="terminals and signals of POSIX")
def test_ctrl_c_in_a_long_fit(tmp_path):
    """The bar shows the bracket; Ctrl-C ends the run with the bracket so far, code 130 and no traceback."""
    X, w = np.random.default_rng(2).normal(size=(3000, 20)), np.arange(1.0, 21.0)
    signs = np.sign(X @ w)
    X += np.outer(signs, w) / 500
    np.savez(tmp_path / "long.npz", X=X, y=signs.astype(int))
    arguments = ("--method", "smooth_perceptron", "--tol", 1e-12, "--max-iter", 10**8)
    command = [sys.executable, "-m", "gordan", "fit", tmp_path / "long.npz", "-o", tmp_path / "long.gordan", *arguments]
    code, told, seen = signalled(command, signal.SIGINT, b"gap")
    assert code == 130
    assert b"margin" in seen
    assert "Traceback" not in told
    assert b"Traceback" not in seen
    lower, upper = map(float, re.search(r"interrupted\): the largest margin is between (\S+) and (\S+) \(proved", told).groups())
    model = Model.load(tmp_path / "long.gordan")
    reached = np.min(signs * (X @ model.coef[0] + model.intercept[0]))
    assert 0 < lower <= reached <= upper


@pytest.mark.parametrize(("encoding", "told"), [("ascii", "\\u2264"), ("latin-1", "\\u2264"), ("utf-8", "≤")])
def test_every_encoding(encoding, told):
    """What it does not have is told by its code: the demo prints ≈, ≤ and ∞, by both libraries that print."""
    variables = {**os.environ, "PYTHONIOENCODING": encoding}
    with program("demo", "--rounds", 5, "--no-picture", env=variables, encoding=encoding, errors="replace") as run:
        shown = run.communicate()[0]
    assert run.returncode == 0
    assert told in shown


def test_the_clock_goes_on_where_the_bar_is_full():
    watch = Watch("racing", tol=1e-4)
    watch._start()
    try:
        for what, gap in (("first", 1e-9), ("first", 1e-5), ("second", 0.5)):
            watch.about(what)
            watch.moment(gordan.Moment(1, 1.0, 1.0, 1 - gap, 1.0, passes=1.0, seconds=1.0))
            (task,) = watch._progress.tasks
            assert task.finished_time is None
            assert (gap > 1e-4) == (task.completed < 0.99)
    finally:
        watch.close()


def test_progress_fits_the_terminal():
    """The bracket is shown whatever the width; the rest as there is room."""
    what, state = "setosa against the rest", ("margin 0.817555 … 0.817556  gap 6.4e-08", "10001 passes", "6.62 MB/s")
    assert fit_to_width(what, state, 100) == (what, "  ".join(state))
    assert fit_to_width(what, state, 80) == (what, "  ".join(state[:2]))
    assert fit_to_width(what, state, 60) == ("", "  ".join(state[:2]))
    assert fit_to_width(what, state, 20) == ("", state[0])
    assert fit_to_width("reading a.csv", (), 5) == ("reading a.csv", "")


@pytest.mark.parametrize("module", ["typer", "numpy"])
@pytest.mark.parametrize("command", [["gordan"], ["-m", "gordan"]])
def test_ctrl_c_while_modules_are_imported(command, module, tmp_path):
    """It ends with the code of Ctrl-C, which to a shell is 130, and a line; NumPy is imported when it is needed."""
    pressed = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(9)"
    (tmp_path / f"{module}.py").write_text(pressed)
    (tmp_path / "gordan").write_text("import sys\nfrom gordan.cli import main\nsys.exit(main())\n")
    done = subprocess.run([sys.executable, *command, "demo"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode in (130, -signal.SIGINT), done.stdout, done.stderr) == (True, "", "gordan: interrupted\n")


def test_ctrl_c_before_anything_is_known(monkeypatch):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(gordan, "diagnose", pressed)
    result = run("diagnose", RASH)
    assert result.exit_code == 130
    assert "interrupted" in result.stderr


def test_ctrl_c_in_separate_keeps_the_verdict_so_far(monkeypatch):
    real = gordan.separate

    def pressed(*arguments, **options):
        verdict = real(*arguments, **options)
        try:  # as `separate` does, which keeps what it has
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return verdict

    monkeypatch.setattr(gordan, "separate", pressed)
    found = answer("separate", IRIS, "--positive", "setosa", code=130)
    assert found["interrupted"]
    assert found["status"] == "separable"


# ---- bugs ---------------------------------------------------------------------------------------------------------------

# What each command calls, and how to get there; each of them is made to raise.
INNER = {
    "separate": ("gordan.separate", ["separate", "two.csv"]),
    "fit": ("gordan.estimators.fitting.maximize_margin", ["fit", "two.csv", "-o", "new.gordan"]),
    "predict": ("gordan.cli.models.Model.scores", ["predict", "model.gordan", "two.csv"]),
    "verify": ("gordan.cli.proofs.verified_for", ["verify", "model.gordan", "two.csv"]),
    "diagnose": ("gordan.diagnose", ["diagnose", "two.csv"]),
    "race": ("gordan.report.race", ["race", "two.csv"]),
    "play": ("gordan.play", ["play", "two.csv"]),
    "convert": ("gordan.io.convert", ["convert", "two.csv", "folder"]),
    "convert --check": ("gordan.io.check", ["convert", "--check", "folder"]),
    "demo": ("gordan.separate", ["demo", "--no-picture"]),
}


@pytest.fixture
def bug(tmp_path, monkeypatch):
    """Makes what a command calls raise an exception; returns the arguments of the command."""

    def made(command: str, error: BaseException) -> list[object]:
        monkeypatch.chdir(tmp_path)
        write_csv(tmp_path / "two.csv", np.arange(8.0).reshape(4, 2), [0, 0, 1, 1])
        assert run("fit", "two.csv", "-o", "model.gordan").exit_code == 0
        assert run("convert", "two.csv", "folder").exit_code == 0
        place, arguments = INNER[command]

        def fails(*_, **__):
            raise error

        monkeypatch.setattr(place, fails)
        return arguments

    return made


BUGS = [TypeError("a\nb \x1b[31m"), KeyError("k"), EOFError(), RecursionError("deep"), AssertionError()]


@pytest.mark.parametrize(
    ("command", "error"), [*((command, BUGS[0]) for command in INNER), *((next(iter(INNER)), bug) for bug in BUGS[1:])], ids=repr
)
def test_a_bug_is_no_answer(command, error, bug):
    """Code 70, one line that asks for a report, and a traceback only if it is asked for."""
    arguments = bug(command, error)
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (70, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"gordan: unexpected {type(error).__name__}")
    assert " ".join(str(error).split()[:1]) in result.stderr
    assert "report it, with what the same command prints with --debug" in result.stderr
    assert answers.CONTROL.findall(result.stderr) == []
    found = answer(*arguments, code=70)
    assert f"unexpected {type(error).__name__}" in found["error"]
    for debugged in (["--debug", *arguments], [*arguments, "--debug"]):
        result = run(*debugged)
        assert (result.exit_code, result.stderr.count("Traceback")) == (70, 1)
        assert "in fails" in result.stderr
    assert run(*arguments, env={"GORDAN_DEBUG": "1"}).stderr.count("Traceback") == 1
    assert "Traceback" not in run(*arguments, env={"GORDAN_DEBUG": "0"}).stderr


@pytest.mark.parametrize(("debug", "traces"), [({}, 0), ({"GORDAN_DEBUG": "1"}, 1)])
def test_a_bug_while_commands_are_imported(debug, traces, tmp_path):
    (tmp_path / "typer.py").write_text("raise RuntimeError('half installed')")
    done = subprocess.run(
        [sys.executable, "-m", "gordan", "demo"], cwd=tmp_path, capture_output=True, text=True, env={**os.environ, **debug}
    )
    assert (done.returncode, done.stdout, done.stderr.count("Traceback")) == (70, "", traces)
    assert "gordan: unexpected RuntimeError: half installed; this is a bug" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(
    ("arguments", "code", "redirected"),
    [
        *((["separate", IRIS, "--positive", "setosa"], 0, where) for where in (">/dev/full", "2>/dev/full", ">&-", "2>&-")),
        *((["separate", IRIS], 2, where) for where in (">/dev/full", "2>&-")),
        (["separate", IRIS, "--positive", "setosa", "--json"], 0, ">/dev/full"),
        (["--help"], 0, ">/dev/full"),
    ],
)
def test_where_nothing_can_be_printed(arguments, code, redirected):
    """A stdout that is full is code 2, and a stream that is closed changes nothing: no traceback, and never a 1."""
    command = [sys.executable, "-m", "gordan", *map(str, arguments)]
    done = subprocess.run(["sh", "-c", f'"$@" {redirected}', "sh", *command], capture_output=True, text=True, timeout=120)
    assert done.returncode == (2 if redirected == ">/dev/full" else code)
    assert "Traceback" not in done.stdout + done.stderr
    if redirected == ">/dev/full":
        assert ("has 3 classes" if code else "No space left on device") in done.stderr


def test_a_progress_line_that_fails_is_left_out(monkeypatch, capfd):
    watch = Watch("reading")
    monkeypatch.setattr(watch, "_start", lambda: 1 / 0)
    watch.visible = True
    monkeypatch.setattr("gordan.cli.progress.PATIENCE", 0.0)
    with watch:
        watch._timer.join(10)
        watch.about("separating")
    assert capfd.readouterr() == ("", "")


def test_large_numbers_are_diagnosed(tmp_path):
    """2^53 and above, where a data frame may have rounded an integer: a CSV has not."""
    path = tmp_path / "large.csv"
    path.write_text("a,b,died\n1,2,no\n3,1e16,yes\n2,-9007199254740992,no\n4,1,yes\n")
    found = answer("diagnose", path)
    assert (found["kind"], found["proved"]) == ("complete", True)
    assert set(found["columns"]) == {"a", "b", "(intercept)"}
    direction = {name: int(value, 16) for name, value in found["direction"].items()}
    for a, b, sign in ((1, 2, -1), (3, 10**16, 1), (2, -(2**53), -1), (4, 1, 1)):
        assert sign * (direction["a"] * a + direction["b"] * b + direction["(intercept)"]) > 0


# ---- data larger than memory --------------------------------------------------------------------------------------------


def test_convert_tells_what_it_did(tmp_path):
    told = run("convert", IRIS, tmp_path / "iris").stdout
    assert told.startswith("converted: 150 rows, 4 columns, dense, ")
    assert run("convert", IRIS, tmp_path / "iris").stdout.startswith("already converted: 150 rows")
    checked = run("convert", "--check", tmp_path / "iris")
    assert checked.exit_code == 0
    assert "bytes, all checksums match" in checked.stdout
    (tmp_path / "iris/y.npy").unlink()
    assert run("convert", "--check", tmp_path / "iris").exit_code != 0
    (tmp_path / "iris/manifest.json").rename(tmp_path / "iris/journal.jsonl")
    unfinished = run("convert", "--check", tmp_path / "iris")
    assert (unfinished.exit_code, "is unfinished" in unfinished.stdout) == (1, True)


def test_too_little_memory_is_told(monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(gordan, "separate", full)
    result = run("separate", IRIS, "--positive", "setosa")
    assert result.exit_code == 2
    assert "not enough memory" in result.stderr


def test_lines_fit_a_terminal(monkeypatch):
    """Broken between words, indented as they were; piped they stay whole."""
    text = "  rows 3 and 8 have the same features and different labels"
    assert answers.wrapped(text) == text
    monkeypatch.setattr("sys.stdout", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setenv("COLUMNS", "30")
    lines = answers.wrapped(text).split("\n")
    assert len(lines) > 1
    assert all(len(line) <= 30 and line.startswith("  ") for line in lines)
    assert " ".join(" ".join(lines).split()) == text.strip()


def test_convert_and_use_the_folder(tmp_path):
    lines = IRIS.read_text().splitlines()
    assert answer("convert", IRIS, tmp_path / "iris", "--label", "species")["n"] == len(lines) - 1
    assert answer("convert", IRIS, tmp_path / "iris", "--label", "species")["already"]
    assert answer("convert", "--check", tmp_path / "iris")["accepted"]
    margin = answer("separate", tmp_path / "iris", "--positive", "setosa", "--memory-limit", "100MB")["margin"]
    assert margin[0] <= SETOSA * (1 + 1e-5)
    assert margin[1] >= SETOSA * (1 - 1e-5)
    assert answer("fit", tmp_path / "iris", "-o", tmp_path / "model", "--positive", "setosa")["planes"][0]["status"] == "solved"
    answer("convert", RASH, tmp_path / "rash", "--kind", "csr")
    assert answer("diagnose", tmp_path / "rash")["columns"] == answer("diagnose", RASH)["columns"]  # by the names of the columns
    content = bytearray((tmp_path / "iris/X.npy").read_bytes())
    content[-3] ^= 1
    (tmp_path / "iris/X.npy").write_bytes(content)
    assert "checksum is wrong" in answer("convert", "--check", tmp_path / "iris", code=1)["reason"]
    assert "needs a folder" in run("convert", IRIS).output


def test_a_folder_of_parquet_files(tmp_path):
    pytest.importorskip("pyarrow")
    import pandas as pd

    frame = pd.read_csv(IRIS)
    for k in range(3):
        frame.iloc[50 * k : 50 * k + 50].to_parquet(tmp_path / f"{k}.parquet")
    found = answer("separate", tmp_path, "--label", "species", "--positive", "setosa")
    assert found["separable"]
    assert found["margin"][0] == pytest.approx(SETOSA, rel=1e-4)


@pytest.mark.parametrize(("text", "size"), [("1GB", 10**9), ("1.5GiB", 3 << 29), ("500m", 5 * 10**8), ("200000000", 2 * 10**8)])
def test_sizes_of_memory(text, size):
    assert parse_size(text) == size
    for wrong in ("much", "1XB", "-1GB", "1kB"):
        with pytest.raises(gordan.InputError, match="--memory-limit"):
            parse_size(wrong)


def test_swapped_files_of_predict(tmp_path):
    model = tmp_path / "m.gordan"
    assert run("fit", IRIS, "-o", model, "--positive", "setosa").exit_code == 0
    result = run("predict", IRIS, model)
    assert result.exit_code == 2
    assert "the model comes first" in result.stderr


def test_compiling_is_told(tmp_path):
    """Once on stderr, which need not be a terminal; in the log, where it is asked for; and on the line of a terminal as long as
    there is one."""
    code = """
import logging, sys
import numpy as np
if sys.argv[1:]:
    logging.basicConfig(level=logging.INFO)
from gordan.rows import kernels
for dtype in np.float32, np.float64:
    kernels._begin(np.ones((1, 5), dtype), np.ones((1, 2)))
"""
    for words, told in ([], "gordan is compiling its loops for this machine"), (["log"], "compiling _begin, which is done once"):
        folder = tmp_path / f"kernels{len(words)}"
        environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "NUMBA_DISABLE_JIT": "0"}
        command = [sys.executable, "-c", code, *words]
        runs = [subprocess.run(command, env=environment, capture_output=True, text=True).stderr for _ in range(2)]
        assert [run.count(told) for run in runs] == [1 + len(words), 0]
        assert words or runs[1] == ""
    watch, log = Watch("fit"), logging.getLogger("gordan")
    watch.visible = True
    with watch:
        log.info("compiling %s", "it")
        assert watch._state == ("compiling it",)
        for name, told in (("_begin", "compiling _begin, which is done once"), ("<lambda>", "compiling it")):
            watch.show_text("compiling it")
            function = SimpleNamespace(__module__="gordan.rows.kernels", __name__=name)
            _CompilationLog().on_start(SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)}))
            assert watch._state == (told,)
    log.info("compiling %s", "something else")
    assert watch._state == ("compiling it",)


def test_the_data_is_not_written_over(tmp_path):
    data = tmp_path / "iris.csv"
    data.write_text(IRIS.read_text())
    link = tmp_path / "link.csv"
    link.symlink_to(data)
    for command in (["fit", data, "-o", link], ["separate", data, "--positive", "setosa", "--certificate", data]):
        result = run(*command)
        assert result.exit_code == 2
        assert "is the input file" in result.stderr
    assert data.read_text() == IRIS.read_text()
    one = tmp_path / "one.gordan"
    result = run("fit", data, "-o", one, "--checkpoint", tmp_path / "." / "one.gordan")
    assert result.exit_code == 2
    assert "two files" in result.stderr
    assert not one.exists()


@pytest.mark.parametrize("arguments", [["--help"], ["race", RASH], ["separate", RASH]])
def test_whoever_stops_reading_gets_neither_yes_nor_no(arguments):
    """Exit code 1 means "no" elsewhere."""
    program = subprocess.Popen(
        [sys.executable, "-m", "gordan", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    program.stdout.close()
    program.stderr.read()
    program.stderr.close()
    assert program.wait() == 141


@pytest.mark.parametrize(("code", "raised"), [(130, KeyboardInterrupt), (75, Terminated)])
def test_what_fails_after_a_signal_is_no_bug(code, raised):
    """An import that Ctrl-C cuts leaves half a module behind."""

    def fails(error):
        with Interrupts() as interrupts:
            interrupts.code = code
            raise error

    with pytest.raises(raised):
        fails(AttributeError("module 'numba' has no attribute 'core'"))
    with pytest.raises(gordan.InputError, match="empty"):
        fails(gordan.InputError("the file is empty"))


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


@pytest.mark.parametrize("model", ["poisson", "multinomial", "ordinal"])
def test_certificates_about_other_models_are_verified(model, tmp_path):
    """Counts and classes of the file may be more than two."""
    rng = np.random.default_rng(0)
    lines = [
        f"{a},{b},{label}" for a, b, label in zip(rng.integers(0, 2, 40), rng.standard_normal(40), [0, 1, 2, 3] * 10, strict=True)
    ]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
    answer("diagnose", tmp_path / "data.csv", "--model", model, "--certificate", tmp_path / "proof.json")
    assert answer("verify", tmp_path / "proof.json", tmp_path / "data.csv")["accepted"]


def test_models_that_are_not_what_their_certificates_are_about_are_rejected(tmp_path):
    """Planes, intervals and the order of classes: a certificate in a model file proves something of that model."""
    rng = np.random.default_rng(0)
    lines = [f"{x:.3f},{2 * k + rng.random():.3f},{'abc'[k]}" for k in range(3) for x in rng.normal(size=12)]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["u,v,y", *lines]))
    for options, several in (([], True), (["--positive", "c"], False), (["--loss", "multinomial"], True)):
        path = tmp_path / "m.gordan"
        assert run("fit", table, "-o", path, *options).exit_code == 0
        checked = ["verify", path, table, *([] if several else ["--positive", "c"])]
        assert run(*checked).exit_code == 0
        model = Model.load(path)
        forged = [replace(model, coef=-model.coef), replace(model, margins=model.margins + 1.0)]
        forged += [replace(model, classes=model.classes[::-1])]
        for other in forged:
            other.save(path)
            result = run(*checked)
            assert result.exit_code == 1
            assert "than its certificate" in result.stdout
