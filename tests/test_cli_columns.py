"""Columns that are not measurements: which are left out or warned about, by every command that reads data."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from commands import IRIS, answer, run, write_csv

from gordan.certificates import standalone
from gordan.io import Model


def test_columns_without_a_name_beside_those_of_a_certificate(tmp_path):
    """They are left out by both checkers, though nothing says that they are an index."""
    X, y = np.random.default_rng(1).normal(size=(9, 2)), np.array(["u", "v", "v"] * 3)
    data, proof = with_count(tmp_path / "t.csv", "", range(2, 11), y=y, X=X), tmp_path / "proof.json"
    run("separate", data, "--drop", 0, "--certificate", proof)
    assert run("verify", proof, data).exit_code == standalone.main([str(proof), str(data)]) == 0


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


def test_a_column_of_bytes_does_not_count_the_rows(tmp_path):
    X, y = np.column_stack([NOISE, np.arange(400) % 7, UNEVEN]), (SORTED == "v").astype(int)
    path = tmp_path / "t.npy"
    np.save(path, np.column_stack([y, X]).astype(np.uint8))
    assert json.loads(run("separate", path, "--label", 0, "--json").stdout)["notices"] == []


@pytest.mark.parametrize("kind", ["svm", "npy", "npz", "csr", "dense"])
def test_columns_without_names_are_named_by_number(kind, tmp_path):
    X, y = np.column_stack([NOISE, np.arange(400), UNEVEN]), (SORTED == "v").astype(int)
    if kind == "svm":
        lines = [
            " ".join([str(label), *(f"{j}:{v!r}" for j, v in enumerate(row, 1))])
            for label, row in zip(y, X.tolist(), strict=True)
        ]
        path, numbers = tmp_path / "t.svm", (4, 5)
        path.write_text("\n".join(lines) + "\n")
    elif kind == "npy":
        path, numbers = tmp_path / "t.npy", (4, 5)
        np.save(path, np.column_stack([y, X]))
    else:
        np.savez(tmp_path / "t.npz", X=X, y=y)
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", y)
        path, numbers = tmp_path / "t.npz", (3, 4)
        if kind != "npz":
            answer("convert", tmp_path / "X.npy", tmp_path / "folder", "--label", tmp_path / "y.npy", "--kind", kind)
            path = tmp_path / "folder"
    label = ["--label", 0] if kind == "npy" else []
    limit = ["--memory-limit", "1GB"] if kind in ("csr", "dense") else []
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
        assert f"('a') of {path} is in both features and drop" in run(*head, "--drop", "a").stderr


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
