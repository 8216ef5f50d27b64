"""`gordan separate`, `verify`, `checker` and `diagnose`: the answers, and their certificates."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas
import pytest
from commands import IRIS, RASH, SETOSA, answer, run, write_csv

import gordan
from gordan import datasets
from gordan.certificates import standalone
from gordan.io import Model, read

UNCOUNTED = "are left out, and row numbers do not count them"  # those in a certificate


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
    told = run("diagnose", data, "--drop", "id", "--weight", "count", "--missing", "drop").stdout
    assert told.startswith(
        "3 of 10 rows are left out (2 with missing cells; 1 of weight zero); rows are numbered as in the file."
    )
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


UNWEIGHTED = "a,b,w,y\n" + "".join(
    f"{i % 5}.5,{i * i % 7},{1 + i % 3},{'yes' if i * i % 7 + i % 3 > 3 else 'no'}\n" for i in range(30)
)


def both(capsys, proof, data, *options):
    """Return the exit code and the lines of both checkers, which print the same for an accepted claim."""
    result = run("verify", proof, data, *options)
    code = standalone.main([str(proof), str(data), *map(str, options)])
    told = capsys.readouterr()
    assert code == result.exit_code, (told.out, told.err, result.stdout, result.stderr)
    if code == 0:
        assert told.out == result.stdout
    return code, result.stdout.splitlines()


def first_certificate(model):
    """Write the first certificate of a model file to a file of its own."""
    proof = model.with_suffix(".json")
    proof.write_text(Model.load(model).certificates[0])
    return proof


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        ("--loss", "logistic"),
        ("--nu", 0.5),
        ("--loss", "hinge", "--class-weight", "balanced"),
        ("--nu", 0.25, "--class-weight", "no=2"),
    ],
)
def test_weights_are_compared_with_their_column(options, missing, tmp_path, capsys):
    """A claim of weighted rows holds for the weights in the certificate; both checkers say whether the data has the same."""
    data, changed = tmp_path / "data.csv", tmp_path / "changed.csv"
    data.write_text(UNWEIGHTED + (",1,1,no\n" if missing else ""))
    drop = ["--missing", "drop"] if missing else []
    assert run("fit", data, "-o", tmp_path / "m.gordan", "--weight", "w", *drop, *options).exit_code == 0
    proof = first_certificate(tmp_path / "m.gordan")
    scaled = "--class-weight" in options
    for named in ([], ["--weight", "w"]):
        code, lines = both(capsys, proof, data, *named)
        assert code == 0
        assert lines[-2].startswith(
            "  its weights are those of the column 'w'" + (" times a factor for each class" if scaled else "")
        )
        assert lines[-1].startswith("  the rows and labels match" if scaled else "  everything that the claim depends on matches")
        check = answer("verify", proof, data, *named)["checks"][0]
        assert (check["weights_match"], check["other_data"]) == ("factors" if scaled else "same", False)
    rows = [line.split(",") for line in data.read_text().splitlines()]
    for name, weight in (("other", lambda i: 1 + i % 2), ("negative", lambda i: -1)):
        text = [",".join(row) if i == 0 else ",".join([*row[:2], str(weight(i)), row[3]]) for i, row in enumerate(rows)]
        changed.write_text("\n".join(text) + "\n")
        for named in ([], ["--weight", "w"]):
            code, lines = both(capsys, proof, changed, *named)
            assert (code, lines[-1]) == (0, "  the rows and labels match the data it was made for; the weights differ"), name
            assert lines[-2].startswith("  its weights are not those of the column 'w', not even up to a factor for each class: ")
            assert "the weight of row" in lines[-2]
        check = answer("verify", proof, changed)["checks"][0]
        assert (check["weights_match"], check["other_data"]) == ("other", True)
    changed.write_text("\n".join(",".join([*row[:2], row[3]]) for row in rows) + "\n")
    code, lines = both(capsys, proof, changed)
    assert lines[-1] == "  the rows and labels match the data it was made for; the weights were not compared"
    assert lines[-2].startswith("  its weights are the certificate's own, and were not compared with the data: no column 'w'")
    assert answer("verify", proof, changed)["checks"][0]["weights_match"] == "unknown"
    assert both(capsys, proof, data, "--drop", "w")[1][-1] == lines[-1]
    changed.write_text("\n".join(",".join([*row[:2], "x" if i else "w", row[3]]) for i, row in enumerate(rows)) + "\n")
    assert both(capsys, proof, changed)[0] == 2


def test_rows_of_weight_zero_and_class_weights_alone(tmp_path, capsys):
    """A hard margin depends only on which weights are zero; class weights without a column are factors of the classes."""
    data, model = tmp_path / "data.csv", tmp_path / "m.gordan"
    text = "a,w,y\n0,1,no\n1,2,no\n9,0,no\n5,1,yes\n7,3,yes\n"
    data.write_text(text)
    assert run("fit", data, "-o", model, "--weight", "w").exit_code == 0
    proof = first_certificate(model)
    lines = both(capsys, proof, data)[1]
    assert lines[-2:] == ["  its rows of weight zero are those of the column 'w'", f"  {SAME}"]
    data.write_text(text.replace("1,2,no", "1,5,no"))
    assert both(capsys, proof, data)[1] == lines
    data.write_text(text.replace("9,0,no", "9,4,no"))
    lines = both(capsys, proof, data)[1]
    assert lines[-2].endswith("1 of 5 differ, and the weight of row 2 is zero only in the certificate")
    assert lines[-1].endswith("; the weights differ")
    data.write_text(UNWEIGHTED)
    assert run("fit", data, "-o", model, "--loss", "hinge", "--class-weight", "no=2", "--drop", "w").exit_code == 0
    lines = both(capsys, first_certificate(model), data)[1]
    assert "  its weights are a factor for each class, such as class weights: 2 for no, 1 for yes" in lines
    assert lines[-1].endswith("; the weights match up to a factor for each class")


def test_class_weights_that_a_certificate_holds_are_factors(tmp_path, capsys):
    """The functions keep them apart from the sample weights; what counts is the product."""
    data, proof = tmp_path / "data.csv", tmp_path / "proof.json"
    data.write_text("a,w,y\n0,1,no\n1,2,no\n9,1,no\n5,1,yes\n7,3,yes\n")
    X, y, w = np.array([[0.0], [1.0], [9.0], [5.0], [7.0]]), np.array(["no"] * 3 + ["yes"] * 2), np.array([1.0, 2, 1, 1, 3])
    for sample, factors in ((np.full(5, 0.5), "1 for no, 0.5 for yes"), (w, "2 for no, 1 for yes")):
        found = gordan.minimize_loss(X, y, class_weight={"no": 2}, sample_weight=sample).certificate
        column = w if sample is w else None
        check = gordan.verify(found, X, y, column)
        assert check
        times = (
            "are a factor for each class"
            if column is None
            else "are those of the weights of the data times a factor for each class"
        )
        assert f"its weights {times}, such as class weights: {factors}" in check.notes
        proof.write_text(found.to_json())
        options = ("--drop", "w") if column is None else ("--weight", "w")
        lines = both(capsys, proof, data, *options)[1]
        assert (
            f"  {next(note for note in check.notes if 'factor' in note)}".replace("the weights of the data", "the column 'w'")
            in lines
        )


def test_a_claim_without_weights_about_data_with_weights(tmp_path, capsys):
    """The description may name weights that the claim leaves out."""
    data, model = tmp_path / "data.csv", tmp_path / "m.gordan"
    data.write_text(UNWEIGHTED)
    run("fit", data, "-o", model, "--loss", "hinge", "--drop", "w")
    proof = first_certificate(model)
    assert both(capsys, proof, data)[1][-1] == f"  {SAME}"
    content = json.loads(proof.read_text())
    proof.write_text(json.dumps({**content, "about": {**content["about"], "weight": "w"}}))
    lines = both(capsys, proof, data)[1]
    assert lines[-1].endswith("; the weights differ")
    assert "the weight of row" in lines[-2]


SAME = "everything that the claim depends on matches the data it was made for"


def test_the_last_note_does_not_reassure(tmp_path, capsys):
    """It says that the names differ, and of a rejected claim only that this is its data."""
    data, proof = tmp_path / "data.csv", tmp_path / "proof.json"
    text = "a,b,y\n0,1,no\n1,2,no\n5,1,yes\n7,3,yes\n"
    data.write_text(text)
    run("separate", data, "--certificate", proof)
    for header in ("b,a,y", "a,c,y", "a,b,z"):
        data.write_text(text.replace("a,b,y", header))
        lines = both(capsys, proof, data)[1]
        assert lines[-1] == "  the values match the data it was made for; the names of the columns differ"
    data.write_text("".join(",".join((*line.split(",")[1::-1], line.split(",")[2])) + "\n" for line in text.splitlines()))
    code, lines = both(capsys, proof, data)
    told = "  the columns have the same names as those it was made for, but in another order"
    assert (code, lines[-2:]) == (1, [told, "  this is not the data that it was made for"])
    assert standalone.main([str(proof), str(data)]) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == lines[-2:]  # and no advice about formulas
    assert answer("verify", proof, data, code=1)["checks"][0]["other_names"]
    data.write_text(text)
    content = json.loads(proof.read_text())
    proof.write_text(json.dumps({**content, "upper": (0.001).hex()}))
    code, lines = both(capsys, proof, data)
    assert (code, lines[-1]) == (1, "  this is the data that it was made for")


def test_both_checkers_have_the_same_exit_codes(tmp_path, capsys):
    """For forged descriptions, labels of 0, long cells, separators and --positive."""
    proof, forged, other = tmp_path / "proof.json", tmp_path / "forged.json", tmp_path / "other.csv"
    run("separate", IRIS, "--positive", "setosa", "--certificate", proof)
    content = json.loads(proof.read_text())
    forged.write_text(json.dumps({**content, "about": {**content["about"], "weight": "sepal_width"}}))
    assert both(capsys, forged, IRIS)[0] == 0  # a feature cannot be the weights
    assert both(capsys, proof, IRIS, "--sep", "")[0] == 2
    for model in ("multinomial", "ordinal"):
        own = {"model": model, "w": [(0.0).hex()] * 5, "b": None, "rows": [], "weights": [], "lower": None, "upper": None}
        forged.write_text(json.dumps({**content, **own, "kind": "separator"}))
        assert both(capsys, forged, IRIS)[0] == 1  # its classes are False and True
    text = "x,y\n" + "".join(f"{x},{'sick' if x > 2 else 'well'}\n" for x in range(6))
    other.write_text(text)
    run("separate", other, "--certificate", proof)
    assert both(capsys, proof, other, "--positive", "sick")[0] == 2
    other.write_text(text.replace("3,", f"3.{'0' * 200_000},"))
    assert both(capsys, proof, other)[0] == 0
    content = json.loads(proof.read_text())
    signs = {"classes": [-1, 1], "class_type": "int", "w": [(1.0).hex()], "b": (0.0).hex(), "rows": [], "weights": []}
    signs |= {"lower": None, "upper": None, "data_hash": None, "about": None, "shape": [5, 1]}
    forged.write_text(json.dumps({**content, **signs}))
    for labels, code in (((1, 0, 0, -1, 0), 0), ((1, 5, 5, -1, 5), 2), ((1, 0, 0, 0, 0), 1), ((1, 0, 7, -1, 0), 2)):
        other.write_text("x,y\n" + "".join(f"{x},{label}\n" for x, label in zip((1, 2, -3, -1, 5), labels, strict=True)))
        assert both(capsys, forged, other)[0] == code, labels


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
    commands = (
        r"^(gordan fit .*)  # ridge.*\npython3 -c \"(.*)\"  # its coefficients.*\n"
        r"pip install firthmodels\npython3 - <<'END'  # Firth.*\n((?:.*\n)+)END\n$"
    )
    ridge, coefficients, firth = re.search(commands, told, re.M).groups()
    assert ("--standardize" in ridge) == ("--intercept" not in options)  # centred columns would add a constant
    fitted = run(*shlex.split(ridge)[1:])
    assert (fitted.exit_code, Path("ridge.gordan").exists()) == (0, True)
    capsys.readouterr()
    exec(coefficients, {})
    assert capsys.readouterr().out.startswith("[[")
    exec(firth, {})
    shown = capsys.readouterr().out
    assert "('region', -" in shown
    assert ("count" in shown) == (not options)
    assert ("died ≠ yes" in told) == ("--positive" in options)


def test_a_diagnosis_of_counts_says_where_the_shell_lists_the_rows(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("age,t,visits\n50,0,1\n60,0,0\n70,0,2\n80,0,1\n55,1,0\n56,1,0\n")
    told = run("diagnose", path, "--model", "poisson").stdout
    assert "Leave out the separated rows (listed below), which" in told
    assert "\nSeparated rows: 4-5 (from 0, without the header).\n" in told


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_the_ridge_of_a_file_with_a_constant_has_an_intercept_in_its_place(intercept, tmp_path):
    path = tmp_path / "trial.csv"
    path.write_text("age,const,region,died\n50,1,0,0\n61,1,1,0\n44,1,0,1\n71,1,0,1\n58,1,1,0\n47,1,0,0\n")
    told = run("diagnose", path, "--intercept", intercept).stdout
    assert "--drop const --loss logistic --standardize -o ridge.gordan  # ridge" in told
    assert "FirthLogisticRegression(max_iter=1000)" in told
    path.write_text("f,m,c,region,died\n1,0,7,0,0\n0,1,7,1,0\n1,0,7,0,1\n0,1,7,0,1\n0,1,7,1,0\n0,1,7,0,0\n")
    told = run("diagnose", path, "--intercept", "none").stdout  # f + m is the constant, and c is aliased
    assert "--drop c --intercept none --loss logistic -o ridge.gordan  # ridge" in told


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
