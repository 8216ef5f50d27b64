"""Files that the standalone checker reads by itself, and what it says of those that it cannot read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import run
from sklearn.utils.class_weight import compute_sample_weight
from test_certificates import SEPARABLE, Y

import gordan
from gordan.certificates import standalone
from gordan.certificates.data import About
from gordan.estimators import least_loss
from gordan.io import Model
from gordan.verdicts import loss


def write(folder, kind, X, y):
    """The data in a file of that kind, and the arguments for it."""
    X = np.array(X)
    path = folder / f"data.{kind.split()[0]}"
    if kind in ("csv", "tsv"):
        mark = "," if kind == "csv" else "\t"
        path.write_text(
            "\n".join([f"a{mark}b{mark}label", *(mark.join(map(repr, [*row, v])) for row, v in zip(X.tolist(), y, strict=True))])
        )
        return [path, "--label", "label"]
    if kind == "svm":
        lines = (
            f"{v} " + " ".join(f"{j + 1}:{x!r}" for j, x in enumerate(row) if x) for row, v in zip(X.tolist(), y, strict=True)
        )
        path.write_text("# data\n" + "\n".join(lines))
        return [path]
    dtype, order = kind.split()[1:]
    np.save(path, np.asarray(X, dtype=dtype, order=order))
    np.save(folder / "y.npy", np.array(y))
    return [path, "--labels", folder / "y.npy"]


def checked_by_python(*arguments, **options):
    command = [sys.executable, "-I", "-S", standalone.__file__, *map(str, arguments)]
    return subprocess.run(command, capture_output="stdout" not in options, check=False, **options)


@pytest.fixture
def small(tmp_path):
    """A certificate and its data."""
    (tmp_path / "data.csv").write_text("x,y\n1,a\n2,b\n")
    certificate = gordan.separate([[1.0], [2.0]], ["a", "b"]).certificate
    (tmp_path / "proof.json").write_text(certificate.to_json())
    return tmp_path / "proof.json", tmp_path / "data.csv"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standalone_on_a_full_disk(small):
    with open("/dev/full", "w") as full:
        done = checked_by_python(*small, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert b"cannot be written" in done.stderr
    assert b"internal error" not in done.stderr


def test_standalone_reads_standard_input(small):
    proof, data = small
    done = checked_by_python(proof, "-", input=data.read_bytes())
    assert (done.returncode, done.stdout.split(b":")[0]) == (0, b"accepted")
    assert checked_by_python("-", data, input=proof.read_bytes()).returncode == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_standalone_is_interrupted(small, tmp_path):
    """By the code of Ctrl-C, not by 1, which would mean that the certificate is rejected."""
    pipe = tmp_path / "slow.csv"
    os.mkfifo(pipe)
    command = [sys.executable, "-I", "-S", standalone.__file__, str(small[0]), str(pipe)]
    piped = subprocess.PIPE
    with subprocess.Popen(command, stdout=piped, stderr=piped) as process, pipe.open("w"):  # opened when it reads
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"\ninterrupted\n")


def test_long_texts_of_a_certificate_are_cut(small, capsys):
    proof, data = small
    certificate = gordan.Certificate.from_json(proof.read_text())
    X, y = [[1.0], [2.0]], ["a", "b"]
    for field in ("file", "label", "version", "statement", "positive"):
        about = replace(certificate.about or About(), **{field: "A" * 10**6})
        forged = replace(certificate, about=about)
        proof.write_text(forged.to_json())
        assert standalone.main([str(proof), str(data)]) == 0
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) < 2100
        assert max(map(len, str(gordan.verify(forged, X, y)).splitlines())) < 2100
        assert "everything that the claim depends on" in out or "the names of the columns differ" in out


@pytest.mark.parametrize("kind", ["csv", "tsv", "svm", "npy f8 C", "npy f4 F", "npy f2 C"])
def test_standalone_reads_files(kind, tmp_path, capsys):
    """Every kind of file, with true and false certificates, and the exit codes."""
    arguments = [str(part) for part in write(tmp_path, kind, SEPARABLE, Y)]
    certificate = gordan.separate(SEPARABLE, Y).certificate
    other = replace(certificate, kind="overlap", w=None, b=None, lower=None, upper=None, weights=(1, 1), rows=(0, 3))
    for content, code in (
        (certificate, 0),
        (replace(certificate, classes=(1, 0)), 1),
        (replace(certificate, shape=(6, 2), b=9.0), 1),
        (other, 1),
    ):
        path = tmp_path / "certificate.json"
        path.write_text(content.to_json())
        assert standalone.main([str(path), *arguments]) == code
    path.write_text("{")
    assert standalone.main([str(path), *arguments]) == 2
    path.write_text(certificate.to_json())
    for bad in (b"", b"\0\xff", b"a,b\n1\n", b"1 1:\n"):
        (tmp_path / arguments[0]).write_bytes(bad)
        assert standalone.main([str(path), *arguments]) == 2
    assert standalone.main([str(path), str(tmp_path / "missing.csv")]) == 2


FILES = {
    "too few labels": ("data.svm", "1 1:1\n0 1:1\n", "it is about 5 rows"),
    "entries outside": ("data.svm", "1 9:1\n0 1:1\n", "it is about 2 columns; the data has 9"),
    "one class": ("data.svm", "2 1:1\n" * 5, "the data has 1 class;"),
    "entries before the first": ("data.svm", "1 -3:1\n0 1:1\n", "in the column -4"),
    "an index that is too long": ("data.svm", f"1 {2**62}:1\n", "line 1 has an index beyond"),
    "an index twice": ("data.svm", "1 1:1 1:2\n", "the same index twice"),
    "infinite": ("data.csv", "a,b,y\n" + "inf,0,0\n" * 3 + "1,0,1\n" * 2, "not a finite number"),
    "an open quote": ("data.csv", 'a,b,y\n1,2,"0' + "x" * 200_000, "unexpected end of data"),
    "no such column": ("data.csv", "a,b,y\n1,2,0\n", "there is no column 7"),
}


@pytest.mark.parametrize(("name", "content", "told"), FILES.values(), ids=FILES)
def test_standalone_says_what_is_wrong_with_a_file(name, content, told, tmp_path, capsys):
    proof = tmp_path / "certificate.json"
    proof.write_text(gordan.separate(SEPARABLE, Y).certificate.to_json().replace(f'"shape": [{len(Y)}', '"shape": [5'))
    (tmp_path / name).write_text(content)
    options = ["--label", "7"] if "7" in told else []
    assert standalone.main([str(proof), str(tmp_path / name), *options]) == (1 if told.startswith("it is") else 2)
    printed = capsys.readouterr()
    assert told in printed.out + printed.err


def test_standalone_reads_arrays_of_labels(tmp_path, capsys):
    """Text and booleans; what it does not read is refused, and so are arrays that are not there."""
    labels = {"text": np.where(np.array(Y) == Y[0], "no", "yes"), "bool": np.array(Y) != Y[0]}
    X, y, proof = (tmp_path / name for name in ("X.npy", "y.npy", "certificate.json"))
    np.save(X, np.array(SEPARABLE))
    for values in labels.values():
        np.save(y, values)
        proof.write_text(gordan.separate(SEPARABLE, values).certificate.to_json())
        assert standalone.main([str(proof), str(X), "--labels", str(y)]) == 0
        np.save(y, values[::-1])
        assert standalone.main([str(proof), str(X), "--labels", str(y)]) == 1
    np.save(y, labels["bool"])
    assert standalone.main([str(proof), str(X)]) == 2
    np.save(X, np.array(SEPARABLE).astype(">f8"))
    assert standalone.main([str(proof), str(X), "--labels", str(y)]) == 2
    np.save(X, np.zeros((len(Y), 2, 1)))
    assert standalone.main([str(proof), str(X), "--labels", str(y)]) == 2
    told = capsys.readouterr().err
    assert "add --labels y.npy" in told
    assert "arrays of type >f8" in told
    assert "does not hold an array of one or two dimensions" in told


@pytest.mark.parametrize("third", [2**53, 2**53 + 1])
def test_standalone_reads_long_whole_labels(third, tmp_path):
    """Labels that are the same as floats are not the same."""
    (tmp_path / "d.csv").write_text(f"x,y\n0,1\n1,1\n3,{2**53 + 1}\n4,{third}\n")
    claim = gordan.Certificate("separator", "free", (1, 2**53 + 1), (4, 1), w=(1.0,), b=-2.0)
    (tmp_path / "c.json").write_text(claim.to_json())
    arguments = [str(tmp_path / "c.json"), str(tmp_path / "d.csv")]
    assert standalone.main(arguments) == (2 if third == 2**53 else 0)  # three classes
    claim = gordan.Certificate("separator", "free", (False, True), (4, 1), w=(1.0,), b=-2.0)
    (tmp_path / "c.json").write_text(claim.to_json())
    assert standalone.main([*arguments, "--positive", str(2**53 + 1)]) == (third == 2**53)


def test_standalone_reads_booleans_in_text(tmp_path):
    y = np.array(Y) != Y[0]
    (tmp_path / "c.json").write_text(gordan.separate(SEPARABLE, y).certificate.to_json())
    for words in (("False", "True"), ("0", "1")):
        data = write(tmp_path, "csv", SEPARABLE, Y)[0]
        lines = data.read_text().splitlines()
        body = [line.rsplit(",", 1)[0] + "," + words[value] for line, value in zip(lines[1:], y.tolist(), strict=True)]
        data.write_text("\n".join([lines[0], *body]))
        assert standalone.main([str(tmp_path / "c.json"), str(data), "--label", "label"]) == 0


@pytest.mark.parametrize("names", [("rose", "tulip", "violet"), ("1", "2.0", "3")], ids=["text", "numbers"])
def test_standalone_takes_one_class_against_the_rest(names, tmp_path, capsys):
    X, labels = [[0.0, 1.0], [1.0, 0.0], [5.0, 5.0], [6.0, 5.0], [9.0, 0.0]], [names[k] for k in (0, 0, 1, 1, 2)]
    proof, data = tmp_path / "c.json", tmp_path / "data.csv"
    proof.write_text(gordan.separate(X, np.array(labels) == names[1]).certificate.to_json())
    data.write_text("a,b,kind\n" + "".join(f"{a},{b},{label}\n" for (a, b), label in zip(X, labels, strict=True)))
    assert standalone.main([str(proof), str(data), "--positive", names[1]]) == 0
    assert standalone.main([str(proof), str(data), "--positive", names[2]]) == 1
    assert standalone.main([str(proof), str(data), "--positive", "lily"]) == 2
    assert standalone.main([str(data), str(proof)]) == 2
    told = capsys.readouterr().err
    assert "no row has the label 'lily'" in told
    assert "the certificate comes first" in told
    if names[0] == "rose":
        assert standalone.main([str(proof), str(data)]) == 2
        assert "add --positive CLASS" in capsys.readouterr().err
    proof.write_text(gordan.separate(SEPARABLE, Y).certificate.to_json())
    assert standalone.main([str(proof), str(data), "--positive", names[1]]) == 2
    assert "leave out --positive" in capsys.readouterr().err


def test_standalone_refuses_malformed_rows_and_labels():
    """They are bad input and not a reason to reject the certificate."""
    content = json.loads(gordan.separate(SEPARABLE, Y).certificate.to_json())
    for X, y, told in [
        (SEPARABLE, Y[:-1], "rows and"),
        ([["x", 0.0], *SEPARABLE[1:]], Y, "not a finite number"),
        ([{-1: 1.0}, *SEPARABLE[1:]], Y, "in the column -1"),
    ]:
        with pytest.raises(standalone.BadInput, match=told):
            standalone.check(content, X, y)


def test_standalone_runs_without_site_packages(tmp_path):
    """A copy of the file is all that is needed."""
    path = tmp_path / "certificate.json"
    path.write_text(gordan.separate(SEPARABLE, Y).certificate.to_json())
    data = write(tmp_path, "csv", SEPARABLE, Y)[0]
    copy = tmp_path / "checker.py"
    with open(standalone.__file__, encoding="utf-8") as source:
        copy.write_text(source.read(), encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", "-S", copy, path, data], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "accepted")
    assert done.stdout.endswith("  everything that the claim depends on matches the data it was made for\n")


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"class_weight": "balanced", "loss": "multinomial"}])
def test_weights_that_are_too_many_for_a_certificate(options, tmp_path, monkeypatch, capsys):
    """They are read from a column or a file, and compared with their hash; the certificate has the class weights."""
    monkeypatch.setattr(loss, "MAX_STORED", 10)
    monkeypatch.setattr(least_loss, "MAX_STORED", 10)
    r = np.random.default_rng(0)
    X, w = r.integers(-3, 4, (30, 2)).astype(float), r.integers(0, 4, 30) / 2
    y = (X[:, 0] + r.integers(-3, 4, 30) > 0).astype(int)
    certificate = gordan.LinearClassifier(**options).fit(X, y, sample_weight=w).certificate_
    assert certificate.sample_weight is None
    assert certificate.weights_hash is not None
    assert (certificate.class_weight is None) == ("class_weight" not in options)
    proof = tmp_path / "proof.json"
    proof.write_text(certificate.to_json())
    for name, array in {"X": X, "y": y, "w": w, "other": w + 1, "few": w[1:], "all": np.column_stack((X, w))}.items():
        np.save(tmp_path / f"{name}.npy", array)
    lines = ["a,b,w,y", *(f"{a!r},{b!r},{c!r},{d}" for (a, b), c, d in zip(X.tolist(), w.tolist(), y.tolist(), strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(lines))

    def told(data, *more):
        given = [str(tmp_path / part) if part.endswith((".npy", ".csv")) else part for part in more]
        code = standalone.main([str(proof), str(tmp_path / data), *given])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    in_arrays = "X.npy", "--labels", "y.npy"
    assert gordan.verify(certificate, X, y, sample_weight=w)
    assert told(*in_arrays, "--weights", "w.npy")[0] == 0
    assert told("all.npy", "--labels", "y.npy", "--weight", "2")[0] == 0
    assert told("t.csv", "--weight", "w")[0] == 0
    for arguments, code, words in (
        (in_arrays, 1, "name their column by --weight, or their file by --weights"),
        ((*in_arrays, "--weights", "other.npy"), 1, "it was made for other sample weights"),
        ((*in_arrays, "--weights", "few.npy"), 2, "one weight for each of the 30 rows"),
        ((*in_arrays, "--weights", "t.csv"), 2, "takes a .npy file"),
        (("t.csv", "--weight", "w", "--weights", "w.npy"), 2, "leave out one of them"),
    ):
        found, text = told(*arguments)
        assert found == code
        assert words in text
    assert "products of both" in gordan.verify(certificate, X, y, sample_weight=w + 1).reason


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("factors", ["balanced", {0: 3.0, 2: 0.1}])
def test_products_with_class_weights_that_are_too_many_for_a_certificate(weighted, factors, tmp_path, monkeypatch, capsys):
    """The rest of a class has no class weight of its own: the products are formed by a model file, or by the user."""
    monkeypatch.setattr(loss, "MAX_STORED", 10)
    monkeypatch.setattr(least_loss, "MAX_STORED", 10)
    r = np.random.default_rng(0)
    X, w = r.integers(-3, 4, (60, 2)).astype(float), r.integers(1, 4, 60) / 10
    y = np.digitize(X[:, 0] + r.integers(-2, 3, 60), [-1, 2])
    sample = w if weighted else None
    model = gordan.LinearClassifier(class_weight=factors).fit(X, y, sample)
    products = model.class_weight_[np.searchsorted(model.classes_, y)] * (w if weighted else 1.0)
    if factors != "balanced" or not weighted:
        assert (products == compute_sample_weight(factors, y) * (w if weighted else 1.0)).all()
    names = {"a": X[:, 0], "b": X[:, 1], "w": w if weighted else 1.0, "p": products, "y": y}
    pd.DataFrame(names).to_csv(tmp_path / "t.csv", index=False)
    np.save(tmp_path / "products.npy", products)
    np.save(tmp_path / "twice.npy", 2 * products)
    for k, certificate in enumerate(model.certificate_):
        assert (certificate.sample_weight, certificate.class_weight) == (None, None)
        proof = tmp_path / "proof.json"
        proof.write_text(certificate.to_json())
        for given, accepted in ((products, True), (sample, False), (2 * products, False), (np.where(y == k, products, w), False)):
            check = gordan.verify(certificate, X, y == k, given)
            assert bool(check) == accepted
            assert accepted or "sample_weight * model.class_weight_[" in check.reason or "products of both" in check.reason
        command = [str(proof), str(tmp_path / "t.csv")]
        for more, code in (
            (("--drop", "w", "--weight", "p"), 0),
            (("--drop", "w", "--drop", "p", "--weights", str(tmp_path / "products.npy")), 0),
            (("--drop", "w", "--drop", "p", "--weights", str(tmp_path / "twice.npy")), 1),
            (("--drop", "p", "--weight", "w"), 1),
            (("--drop", "w", "--drop", "p"), 1),
        ):
            assert standalone.main([*command, *more]) == code
            if "--weights" not in more:
                assert run("verify", *command, *more).exit_code == code
            assert code == 0 or "products of both" in capsys.readouterr().out
    columns = ("--drop", "p", *(("--weight", "w") if weighted else ("--drop", "w")))
    given = [factors] if factors == "balanced" else [f"{label}={factor}" for label, factor in factors.items()]
    weights = [part for each in given for part in ("--class-weight", each)]
    fit = ("fit", tmp_path / "t.csv", "-o", tmp_path / "m.gordan", "--loss", "squared_hinge", *weights, *columns)
    assert run(*fit).exit_code == 0
    model.save(tmp_path / "own.gordan")
    for name in ("m.gordan", "own.gordan"):
        assert run("verify", tmp_path / name, tmp_path / "t.csv", *columns).exit_code == 0
    stored = Model.load(tmp_path / "m.gordan")
    np.testing.assert_array_equal(gordan.load(tmp_path / "m.gordan").class_weight_, model.class_weight_)
    wrong = (*stored.options.class_weight[:2], 2 * stored.options.class_weight[2])
    replace(stored, options=replace(stored.options, class_weight=wrong)).save(tmp_path / "wrong.gordan")
    rejected = run("verify", tmp_path / "wrong.gordan", tmp_path / "t.csv", *columns)
    assert rejected.exit_code == 1
    assert rejected.output.count("it was made for other sample weights") == 3


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_class_weights_of_labels_are_not_in_the_weights_that_are_too_many(n_jobs, monkeypatch):
    """A label and the rows without it have one class weight each, which the certificate holds however it was found."""
    monkeypatch.setattr(loss, "MAX_STORED", 10)
    monkeypatch.setattr(least_loss, "MAX_STORED", 10)
    r = np.random.default_rng(0)
    X, w = r.standard_normal((60, 2)), r.integers(1, 4, 60) / 10
    Y = (X + r.standard_normal((60, 2)) > 0).astype(int)
    model = gordan.LinearClassifier(class_weight={1: 3.0}, n_jobs=n_jobs).fit(X, Y, w)
    for j, certificate in enumerate(model.certificate_):
        assert certificate.class_weight == (1.0, 3.0)
        assert gordan.verify(certificate, X, Y[:, j], w)


def test_products_where_a_class_was_left_out(tmp_path, monkeypatch):
    """Its rows have the weight 0 in the proofs about the rest of a class, and so they have for the command."""
    monkeypatch.setattr(loss, "MAX_STORED", 10)
    monkeypatch.setattr(least_loss, "MAX_STORED", 10)
    X = np.random.default_rng(0).integers(-3, 4, (60, 2))
    y = np.arange(60) % 4
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).to_csv(tmp_path / "t.csv", index=False)
    model = gordan.LinearClassifier(class_weight={0: 3.0, 2: 0.0}).fit(X, y)
    model.save(tmp_path / "m.gordan")
    assert model.classes_.tolist() == [0, 1, 3]
    products = np.array([3.0, 1.0, 0.0, 1.0])[y]
    for k, certificate in zip(model.classes_, model.certificate_, strict=True):
        assert gordan.verify(certificate, X, y == k, products)
    done = run("verify", tmp_path / "m.gordan", tmp_path / "t.csv")
    assert (done.exit_code, done.stdout.count("accepted")) == (0, 3)


def test_data_with_a_class_that_a_fit_left_out(tmp_path):
    """The claim is about the other classes only; both checkers say so, and accept it for their rows."""
    y = np.array(["u", "v", "w"] * 6)
    rows = pd.DataFrame({"a": np.arange(18) % 5, "b": np.arange(18) % 7, "c": (y != "w").astype(int), "y": y})
    rows.to_csv(tmp_path / "t.csv", index=False)
    rows[y != "w"].to_csv(tmp_path / "two.csv", index=False)
    options = ["--loss", "multinomial", "--weight", "c", "--certificate", tmp_path / "c.json"]
    assert run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.gordan", *options).exit_code == 0
    reason = "it is about 2 classes only, and the data also has 'w': pass only their rows"
    X = rows[["a", "b"]].to_numpy()
    claim = standalone.read_certificate((tmp_path / "c.json").read_text())
    accepted, why = standalone.check(claim, X, y.tolist())
    assert not accepted
    assert why.startswith(reason)
    for proof in ("m.gordan", "c.json"):
        rejected = run("verify", tmp_path / proof, tmp_path / "t.csv")
        assert rejected.exit_code == 1
        assert reason in rejected.output
        assert run("verify", tmp_path / proof, tmp_path / "two.csv").exit_code == 0
    diagnosis = gordan.diagnose(X[y != "w"], y[y != "w"], model="multinomial").certificate
    assert gordan.verify(diagnosis, X, y).reason.startswith(reason)
    assert standalone.check(standalone.read_certificate(diagnosis.to_json()), X, y.tolist())[1].startswith(reason)
