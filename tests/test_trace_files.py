"""The files of traces: what was saved is loaded, and everything else is refused with an InputError."""

from __future__ import annotations

import json

import numpy as np
import pytest
from problems import cells, refused

import gordan
from gordan import InputError, Trace, methods, play

A3 = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The text of a trace file."""
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    play(A3, rounds=20).save(path)
    return path.read_text()


def changed(saved, **parts):
    return json.dumps({**json.loads(saved), **parts})


def with_column(saved, name, values):
    return changed(saved, columns={**json.loads(saved)["columns"], name: values})


def without(saved, name):
    content = json.loads(saved)
    del content[name]
    return json.dumps(content)


FILES = {
    "empty": (lambda s: "", "is not a trace"),
    "truncated": (lambda s: s[: len(s) // 2], "is not a trace"),
    "without its last character": (lambda s: s.rstrip()[:-1], "is not a trace"),
    "not JSON": (lambda s: "round,margin\n1,2\n", "is not a trace"),
    "not text": (lambda s: b"\x93NUMPY\xff\xfe\x00", "is not a trace"),
    "NUL": (lambda s: "\0" * 100, "is not a trace"),
    "nested too deeply": (lambda s: "[" * 200_000, "is not a trace"),
    "a field twice": (lambda s: s.replace("{", '{"n": 3, ', 1), "is not a trace: a name is given twice"),
    "a list": (lambda s: "[1, 2]", "is not a trace that this version of gordan can read"),
    "a number": (lambda s: "3", "is not a trace that this version of gordan can read"),
    "null": (lambda s: "null", "is not a trace that this version of gordan can read"),
    "no format": (lambda s: without(s, "format"), "is not a trace that this version of gordan can read"),
    "newer format": (lambda s: changed(s, format="gordan-trace-2"), "(format 'gordan-trace-1' expected, "),
    "format is a list": (lambda s: changed(s, format=["gordan-trace-1"]), "(format 'gordan-trace-1' expected, "),
    "a field missing": (lambda s: without(s, "w"), "is damaged: its fields are not those of a trace: missing fields: ['w']"),
    "a field too many": (
        lambda s: changed(s, extra=1),
        "is damaged: its fields are not those of a trace: missing fields: []; unknown fields: ['extra']",
    ),
    "no columns": (lambda s: without(s, "columns"), "is damaged"),
    "columns null": (lambda s: changed(s, columns=None), "is damaged"),
    "columns a number": (
        lambda s: changed(s, columns=5),
        "is damaged: columns: its fields are not those of the columns of a trace: '5' is not an object",
    ),
    "columns a list": (lambda s: changed(s, columns=[]), "is damaged"),
    "a column missing": (lambda s: changed(s, columns={"t": [1]}), "is damaged"),
    "a column of strings": (lambda s: with_column(s, "lower", ["a"] * 5), "is damaged: lower"),
    "a column that is a number": (lambda s: with_column(s, "lower", 5), "is damaged: columns: lower is 5; it must be a list"),
    "a column that is a string": (lambda s: with_column(s, "lower", "abc"), "is damaged"),
    "a column too short": (lambda s: with_column(s, "lower", [1.0]), "is damaged: lower: a list of"),
    "rounds beyond 64 bits": (lambda s: with_column(s, "t", [10**30]), "is damaged"),
    "w a string": (lambda s: changed(s, w="abc"), "is damaged"),
    "w of strings": (lambda s: changed(s, w=["a", "b"]), "is damaged"),
    "w a matrix": (lambda s: changed(s, w=[[1.0, 2.0]]), "is damaged"),
    "w ragged": (lambda s: changed(s, w=[[1.0], 2.0]), "is damaged"),
    "w null": (lambda s: changed(s, w=None), "is damaged"),
    "w too short": (lambda s: changed(s, w=[1.0]), "is damaged"),
    "p too long": (lambda s: changed(s, p=[0.25] * 4), "is damaged"),
    "n a string": (lambda s: changed(s, n="three"), "is damaged: n: a nonnegative integer is expected in place of 'three'"),
    "an unknown status": (
        lambda s: changed(s, status="done"),
        "is damaged: status is 'done'; it must be one of finished, rounds, time-limit, callback, interrupted",
    ),
    "an integer for a float": (lambda s: changed(s, scale=1), "is damaged: scale is 1; it must be a float, such as 1.0"),
}


@pytest.mark.parametrize(("make", "message"), cells(FILES))
def test_trace_files(make, message, saved, tmp_path):
    path = tmp_path / "trace.json"
    content = make(saved)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(lambda: Trace.load(path), str(path), message)


def test_traces_for_the_largest_norm_come_back(tmp_path):
    trace = play(A3, methods.get("double_oracle")(p=float("inf")), 5)
    trace.save(tmp_path / "trace.json")
    again = Trace.load(tmp_path / "trace.json")
    assert again.norm == trace.norm == float("inf")
    assert again.to_dict() == trace.to_dict()


def test_trace_paths(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.json"):
        Trace.load(tmp_path / "missing.json")
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        Trace.load(tmp_path)


def test_saving_where_nothing_can_be_saved(tmp_path):
    trace = play(A3, rounds=3)
    with pytest.raises(FileNotFoundError):
        trace.save(tmp_path / "no such folder" / "trace.json")
    with pytest.raises(IsADirectoryError):
        trace.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_every_truncation_is_refused(saved, tmp_path):
    path = tmp_path / "trace.json"
    text = saved.rstrip()
    for length in np.unique(np.geomspace(1, len(text) - 1, 150).astype(int)):
        path.write_text(text[:length])
        refused(lambda: Trace.load(path), "is not a trace")


def test_mutations_load_or_are_refused(saved, tmp_path):
    """Single characters replaced at random: a trace or an InputError, and no other exception."""
    path, rng = tmp_path / "trace.json", np.random.default_rng(0)
    outcomes = {"loaded": 0, "refused": 0}
    for _ in range(300):
        text, place = saved.encode(), int(rng.integers(len(saved)))
        letter = rng.choice(list(b'0123456789"{}[],:.-+eEnultrfa \x00\xff'))
        path.write_bytes(text[:place] + bytes([letter]) + text[place + 1 :])
        try:
            trace = Trace.load(path)
        except InputError:
            outcomes["refused"] += 1
        else:
            outcomes["loaded"] += 1
            assert isinstance(trace, gordan.Trace)
    assert min(outcomes.values()) > 0


def test_a_trace_of_a_loss_says_so(tmp_path):
    """Also in its file, which only such a trace has a field for."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    played = play(X, "smooth_perceptron", 50, loss="hinge")
    found = gordan.minimize_loss(X, np.arange(30) % 2, loss="logistic").trace
    for trace, loss in ((played, "hinge"), (found, "logistic"), (play(A3, rounds=20), None)):
        trace.save(tmp_path / "trace.json")
        loaded = Trace.load(tmp_path / "trace.json")
        assert trace.loss == loaded.loss == loss
        assert repr(loaded) == repr(trace)
        assert (", least value in [" in repr(trace)) is (loss is not None)
        assert (", margin in [" in repr(trace)) is (loss is None)
        assert ("loss" in json.loads((tmp_path / "trace.json").read_text())) is (loss is not None)


def test_a_trace_of_an_unknown_loss_is_refused(saved, tmp_path):
    (tmp_path / "trace.json").write_text(changed(saved, loss="zero_one"))
    with pytest.raises(InputError, match="is damaged: loss is 'zero_one'"):
        Trace.load(tmp_path / "trace.json")
