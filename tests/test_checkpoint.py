"""Checkpoints: a run that was stopped anywhere goes on to the same result bit for bit, and no other file is taken for one."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import every_method
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from terminal import signalled
from test_model_file import BINARY
from typer.testing import CliRunner

import gordan
from gordan import checkpoint, dynamics
from gordan.checkpoint import Checkpoint, checkpointed
from gordan.cli.app import app
from gordan.errors import InputError
from gordan.estimators.fitting import Fitting
from gordan.geometry import Simplex
from gordan.io import Model, container
from gordan.rows.blocks import Blocks
from gordan.rows.memory import Dense

METHODS = every_method()
HERE = Path(__file__).parent


def data(n, d, gap=0.02, seed=0):
    """Values that float32 holds, separable by about gap·√d."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32).astype(np.float64)
    y = np.where(X.sum(axis=1) > 0, 1, -1)
    return (X + np.float32(gap) * y[:, None]).astype(np.float32).astype(np.float64), y


@pytest.fixture(autouse=True)
def no_power_failures(monkeypatch):
    """A killed process needs no fsync, and hundreds of them take a while."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def stop_at(monkeypatch):
    """Ctrl-C at the end of round k of a form, before the loop has seen it."""

    def arrange(form, k):
        real = type(form).round

        def round(self, state, t):
            after = real(self, state, t)
            if t == k and 2 * self.game.rows.n > form.game.rows.n:  # not on a sample
                raise KeyboardInterrupt
            return after

        monkeypatch.setattr(type(form), "round", round)
        return lambda: monkeypatch.setattr(type(form), "round", real)

    return arrange


def same_bits(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
    elif isinstance(one, float):
        assert np.float64(one).tobytes() == np.float64(other).tobytes()
    else:
        assert one == other


def same_trace(one, other):
    for name in ("w", "p", "w_bar", "p_bar", "w_best", "p_best", "status"):
        same_bits(getattr(one, name), getattr(other, name))
    for name, column in one.columns.items():
        if name != "seconds":
            same_bits(column, other.columns[name])


def same_result(one, other):
    for name in ("status", "w", "b", "p", "margin", "witness", "n_iter", "passes"):
        same_bits(getattr(one, name), getattr(other, name))
    if one.trace is not None:
        same_trace(one.trace, other.trace)


# ---- every method -----------------------------------------------------------------------------------------------------


def runs():
    """Every method and form on each set that it takes; with further options, which change nothing about p, on the simplex."""
    seen = set()
    for label, method in METHODS.items():
        first = (method.name, method.form) not in seen
        seen.add((method.name, method.form))
        kinds = ("simplex", "caps", "halves") if first and method.plain is None else ("simplex",)
        yield from (pytest.param(label, sets, id=f"{label}-{sets}") for sets in kinds)


@pytest.mark.parametrize(("label", "sets"), list(runs()))
def test_every_method_goes_on_bit_for_bit(label, sets, tmp_path, stop_at):
    """Stopped twice in a row, and again later (of 40 rounds: where nothing is recorded); double_oracle in each round."""
    method = METHODS[label]
    oracle = method.name == "double_oracle"
    X, y = data(2500, 3) if oracle else data(60, 4)
    options = {"simplex": {}, "caps": {"caps": np.full(len(X), 2.5 / len(X))}, "halves": {"halves": y < 0}}[sets]
    A, rounds = X * y[:, None], 10 if oracle else 40
    whole = gordan.play(A, method, rounds, **options)
    form = method.on(gordan.rows.of(A), Simplex(len(A)), np.full(len(A), 1 / len(A)))
    path = tmp_path / "run"
    played = int(whole.t[-1])
    for k in range(1, played + 1) if oracle else (played // 3, played // 3 + 1, 31 * played // 40):
        go_on = stop_at(form, k)
        try:
            part = gordan.play(A, method, rounds, checkpoint=path, **options)
            assert part.status == "interrupted"
            assert part.t[-1] == k - 1
        except KeyboardInterrupt:  # before there was a first round to speak of
            assert k == 1
        go_on()
        found = Checkpoint(path).restored("run", dynamics.Snapshot)
        assert found.now.t == k - 1
    same_trace(whole, gordan.play(A, method, rounds, checkpoint=path, **options))
    same_trace(whole, gordan.play(A, method, rounds, checkpoint=path, **options))  # nothing is left to do


def test_a_further_look_at_the_end_leaves_no_trace(tmp_path):
    """What a time limit makes the loop measure is reported, and not part of the run that goes on."""
    X, y = data(200, 5)
    A, path = X * y[:, None], tmp_path / "run"
    whole = gordan.play(A, "smooth_perceptron", 300, record=[100, 200])
    part = gordan.play(A, "smooth_perceptron", 300, record=[100, 200], time_limit=1e-9, checkpoint=path)
    assert (part.status, part.t.tolist()) == ("time-limit", [1])
    same_trace(whole, gordan.play(A, "smooth_perceptron", 300, record=[100, 200], checkpoint=path))


def test_more_rounds_later(tmp_path):
    X, y = data(60, 4)
    A, path = X * y[:, None], tmp_path / "run"
    record = [10, 20, 40]
    first = gordan.play(A, "nesterov", 20, record=record[:2], checkpoint=path)
    assert (first.status, first.t.tolist()) == ("rounds", [10, 20])
    more = gordan.play(A, "nesterov", 40, record=record, checkpoint=path)
    same_trace(gordan.play(A, "nesterov", 40, record=record), more)
    fewer = gordan.play(A, "nesterov", 5, checkpoint=path)  # they have been played
    assert fewer.t[-1] == 40


# ---- maximize_margin --------------------------------------------------------------------------------------------------

TALL, WIDE, SMALL = data(4000, 4), data(60, 80), data(80, 4)
FAR = (SMALL[0] + 1000.0, SMALL[1])
CROSSED = (SMALL[0], np.where(np.arange(80) < 3, -SMALL[1], SMALL[1]))
TASKS = {
    "tall": (TALL, {"tol": 1e-9, "intercept": "none"}),
    "tall, free": (TALL, {"tol": 1e-9}),
    "tall, norm 3": (TALL, {"tol": 1e-7, "norm": 3, "intercept": "none"}),
    "tall, norm inf": (TALL, {"tol": 1e-7, "norm": np.inf, "intercept": "penalized"}),
    "wide": (WIDE, {"tol": 1e-9}),
    "sparse": ((sp.csr_array(WIDE[0] * (np.abs(WIDE[0]) > 1)), WIDE[1]), {"tol": 1e-9}),
    "soft": (CROSSED, {"tol": 1e-9, "nu": 0.3}),
    "soft, smooth": (CROSSED, {"tol": 1e-3, "nu": 0.3, "method": "smooth_perceptron", "max_iter": 200}),
    "weights": (SMALL, {"tol": 1e-4, "sample_weight": np.arange(80) % 3, "method": "nesterov", "max_iter": 200}),
    "moved": (FAR, {"tol": 1e-3, "method": "smooth_perceptron", "max_iter": 300}),
    "not separable": (CROSSED, {"method": "accelerated_perceptron", "max_iter": 300}),
    "loose": (SMALL, {"tol": 0.5, "method": "mirror_prox_perceptron"}),
}


@pytest.mark.parametrize("task", TASKS)
def test_the_margin_is_the_same_wherever_it_was_stopped(task, tmp_path, stop_at):
    (X, y), options = TASKS[task]
    whole = gordan.maximize_margin(X, y, **options)
    last = whole.n_iter
    method = options.get("method", "double_oracle")
    form = gordan.methods.get(method)().on(gordan.rows.of(X, y), Simplex(len(y)), np.full(len(y), 1 / len(y)))
    for k in sorted({1, 2, (1 + last) // 2, last}):
        path = tmp_path / f"run {k}"
        go_on = stop_at(form, k)
        part = gordan.maximize_margin(X, y, checkpoint=path, **options)
        go_on()
        if k <= last:
            assert part.n_iter == k - 1
            assert part.margin[0] <= whole.margin[1]
            assert whole.margin[0] <= part.margin[1]
        done = gordan.maximize_margin(X, y, checkpoint=path, **options)
        same_result(whole, done)
        assert done.certificate.to_json() == whole.certificate.to_json()
        same_result(whole, gordan.maximize_margin(X, y, checkpoint=path, **options))


def test_stopped_again_and_again_by_the_clock(tmp_path, clock):
    """Time limits inside rounds of the double oracle: such a round is not kept, and played again."""
    X, y = TALL
    whole = gordan.maximize_margin(X, y, tol=1e-9)
    path, limit, spent = tmp_path / "run", 1.0, 0.0
    clock.tick = 1.0
    while True:
        begin = clock.now
        part = gordan.maximize_margin(X, y, tol=1e-9, time_limit=limit, checkpoint=path)
        spent += clock.now - begin
        assert part.margin[0] <= whole.margin[1]
        assert whole.margin[0] <= part.margin[1]
        if part.status == "solved":
            break
        assert part.status == "time-limit"
        limit += 1.0
    assert 0 < part.seconds <= spent
    same_result(whole, gordan.maximize_margin(X, y, tol=1e-9, checkpoint=path))  # the last of them may have been cut short


def test_a_callback_that_stops(tmp_path):
    X, y = TALL
    whole = gordan.maximize_margin(X, y, tol=1e-9, intercept="none")
    path, seen = tmp_path / "run", []

    def once(moment):
        seen.append(moment)
        return len(seen) == 2

    part = gordan.maximize_margin(X, y, tol=1e-9, intercept="none", checkpoint=path, callback=once)
    assert part.status == "interrupted"
    same_result(whole, gordan.maximize_margin(X, y, tol=1e-9, intercept="none", checkpoint=path, callback=once))
    assert [moment.t for moment in seen] == [1, 2, 2, 3, *range(4, whole.n_iter + 1)]
    for name in ("w", "p", "w_out", "p_bar"):  # asked again, it sees what it saw
        same_bits(getattr(seen[1], name), getattr(seen[2], name))


def test_a_smaller_tolerance_goes_on(tmp_path, clock):
    X, y = SMALL
    options = {"method": "smooth_perceptron", "checkpoint": tmp_path / "run"}
    clock.tick = 1.0
    rough = gordan.maximize_margin(X, y, tol=0.1, **options)
    assert rough.status == "solved"
    fine = gordan.maximize_margin(X, y, tol=0.01, **options)
    assert fine.status == "solved"
    assert fine.n_iter > rough.n_iter
    assert fine.gap <= 0.01
    assert fine.seconds > rough.seconds


def test_a_smaller_tolerance_goes_on_where_the_double_oracle_had_finished(tmp_path):
    """It solves its rounds as exactly as the tolerance asks: what is finished for one is not for a smaller one."""
    X, y = data(400, 30)
    path = tmp_path / "run"
    rough = gordan.maximize_margin(X, y, tol=0.3, checkpoint=path)
    assert rough.status == "solved"
    fine = gordan.maximize_margin(X, y, tol=1e-9, checkpoint=path)
    assert fine.status == "solved"
    assert fine.gap <= 1e-9


# ---- elsewhere --------------------------------------------------------------------------------------------------------


class Part:
    """A block of rows that is read anew for each pass."""

    def __init__(self, X):
        self.X, self.n, self.entries = X, len(X), X.size

    def load(self):
        return Dense(self.X)


def stored_in_turn(X, folder):
    """X in every way that is at hand, Dask among them where it is installed."""
    lazy = {}
    if importlib.util.find_spec("dask") is not None:
        import dask.array

        lazy = {"Dask": dask.array.from_array(X, chunks=(-(-len(X) // 3), X.shape[1]))}
    mapped = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, X.shape)
    mapped[:] = X
    mapped.flush()
    return {
        "float64": X,
        "float32": X.astype(np.float32),
        "memory map": np.load(folder / "X.npy", mmap_mode="r"),
        "CSR": sp.csr_array(X),
        "CSC": sp.csc_array(X),
        "Fortran": np.asfortranarray(X),
        "blocks": Blocks([Part(part) for part in np.array_split(X, 3)], X.shape[1], np.float64),
        **lazy,
    }


@pytest.mark.parametrize("task", ["tall", "soft, smooth", "moved", "wide"])
def test_resumed_on_other_storages_and_threads(task, tmp_path):
    """A round on each storage in turn, with one thread and with two; the bracket holds, and closes as it does on one."""
    (X, y), options = TASKS[task]
    options = {**options, "max_iter": None, "checkpoint": tmp_path / "run"}
    if task == "moved":
        X = X.astype(np.float32).astype(np.float64)
    whole = gordan.maximize_margin(X, y, **{**options, "checkpoint": None})
    rounds = 0
    for k, (name, stored) in enumerate(stored_in_turn(X, tmp_path).items()):
        part = gordan.maximize_margin(stored, y, threads=1 + k % 2, **{**options, "max_iter": rounds + 1})
        assert part.n_iter >= rounds, name
        assert part.margin[0] <= whole.margin[1], name
        assert whole.margin[0] <= part.margin[1], name
        assert gordan.verify(part.certificate, X, y), name
        rounds = part.n_iter
    last = gordan.maximize_margin(sp.coo_array(X), y, **options)
    assert last.status == whole.status == "solved"
    assert last.gap <= options["tol"]


def test_resumed_on_torch(tmp_path):
    torch = pytest.importorskip("torch")
    (X, y), options = TASKS["moved"]
    X = X.astype(np.float32)
    options = {**options, "checkpoint": tmp_path / "run"}
    gordan.maximize_margin(X, y, **{**options, "max_iter": 20})
    there = gordan.maximize_margin(torch.from_numpy(X.astype(np.float64)), y, **{**options, "max_iter": 40})
    assert there.n_iter == 40
    assert gordan.verify(there.certificate, X, y)


# ---- which problem it belongs to --------------------------------------------------------------------------------------


def one_value(X):
    X = X.copy()
    X[0, 0] *= 1 + 1e-15
    return X


OTHERS = {
    "rows": lambda X, y: ((one_value(X), y), {}),
    "labels": lambda X, y: ((X, np.roll(y, 1)), {}),
    "classes": lambda X, y: ((X, y > 0), {}),
    "shape": lambda X, y: ((X[:-1], y[:-1]), {}),
    "nu": lambda X, y: ((X, y), {"nu": 0.25}),
    "intercept": lambda X, y: ((X, y), {"intercept": "none"}),
    "norm": lambda X, y: ((X, y), {"norm": np.inf, "method": "smooth_p_norm_perceptron"}),
    "weights": lambda X, y: ((X, y), {"sample_weight": np.arange(1, 81)}),
    "start": lambda X, y: ((X, y), {"start": np.ones(80)}),
    "method": lambda X, y: ((X, y), {"method": "nesterov"}),
    "form": lambda X, y: ((X, y), {"method": gordan.methods.smooth_perceptron(form="game")}),
    "eta": lambda X, y: ((X, y), {"method": gordan.methods.smooth_perceptron(eta=0.5)}),
}


@pytest.mark.parametrize("what", OTHERS)
def test_another_problem_is_refused(what, tmp_path):
    X, y = CROSSED
    path = tmp_path / "run"
    options = {"nu": 0.3, "method": "smooth_perceptron", "max_iter": 5, "checkpoint": path}
    gordan.maximize_margin(X, y, **options)
    before = path.read_bytes()
    (X, y), other = OTHERS[what](X, y)
    with pytest.raises(InputError, match=r"is the checkpoint of (another problem|other data)") as refused:
        gordan.maximize_margin(X, y, **{**options, **other})
    if what in ("labels", "nu", "weights", "start", "intercept"):
        assert f": {what} is" in str(refused.value)
        assert not re.search("[0-9a-f]{9}", str(refused.value).removeprefix(str(path)))
    assert path.read_bytes() == before


def test_options_of_methods_and_of_play_are_part_of_the_problem(tmp_path):
    A = SMALL[0] * SMALL[1][:, None]
    played = {label: method for label, method in METHODS.items() if method.plain is None}
    plays = [(method, {}) for method in METHODS.values()]
    plays += [(method, {"halves": np.arange(80) % 2}) for method in played.values()]
    plays += [(gordan.methods.get("double_oracle")(seed=2), {}), (METHODS["nesterov-game"], {"caps": np.full(80, 0.5)})]
    plays += [(METHODS["nesterov-game"], {"p0": np.arange(1.0, 81.0)})]
    files = {}
    for k, (method, options) in enumerate(plays):
        gordan.play(A, method, 1, checkpoint=tmp_path / f"{k}", **options)
        header, _ = container.load(tmp_path / f"{k}")
        files[json.dumps(header["problem"], sort_keys=True)] = k
    assert len(files) == len(plays)
    with pytest.raises(InputError, match="problem: method is 'smooth_perceptron' in the file, but 'nesterov' in this call"):
        gordan.play(A, "nesterov", 1, checkpoint=tmp_path / "0")
    with pytest.raises(InputError, match="problem: task is 'play' in the file"):
        gordan.maximize_margin(*SMALL, intercept="none", method="smooth_perceptron", checkpoint=tmp_path / "0")


# ---- files that are none ----------------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "run"
    gordan.maximize_margin(*SMALL, method="smooth_perceptron", max_iter=5, checkpoint=path)
    return path


def go_on(path):
    return gordan.maximize_margin(*SMALL, method="smooth_perceptron", max_iter=6, checkpoint=path)


def test_changed_bytes_are_refused(written):
    content = written.read_bytes()
    for place in {*range(0, 64), *np.random.default_rng(0).integers(0, len(content), 300).tolist()}:
        written.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(InputError):
            go_on(written)
    for length in (0, 7, 40, len(content) // 2, len(content) - 1):
        written.write_bytes(content[:length])
        with pytest.raises(InputError, match=re.escape(str(written))):
            go_on(written)
    written.write_bytes(content)
    assert go_on(written).n_iter == 6


def edited(path, change):
    header, arrays = container.load(path)
    change(header, arrays := dict(arrays))
    container.save(path, header, arrays)


CHANGES = {
    "newer": lambda header, arrays: header.update(format="gordan-checkpoint-9"),
    "of gordan 0.1": lambda header, arrays: header.update(format="gordan-checkpoint-1"),
    "a field too many": lambda header, arrays: header.update(more=1),
    "no problem": lambda header, arrays: header.update(problem=3),
    "no run": lambda header, arrays: header["parts"].pop("run"),
    "another type": lambda header, arrays: header["parts"]["run"].update(type="run.sums"),
    "a type that is none": lambda header, arrays: header["parts"]["run"].update(type="system"),
    "a function": lambda header, arrays: header["parts"]["run"].update(type="run"),
    "a part less": lambda header, arrays: header["parts"]["run"]["parts"].pop("now"),
    "a tuple for the run": lambda header, arrays: header["parts"].update(run={"tuple": []}),
    "a list": lambda header, arrays: header["parts"].update(run=[1]),
    "an empty part": lambda header, arrays: header["parts"].update(run={}),
    "notes of another kind": lambda header, arrays: header["parts"].update(notes={"float": "0x1p3"}),
    "arrays that are missing": lambda header, arrays: arrays.clear(),
    "no number": lambda header, arrays: header["parts"]["run"]["parts"].update(tol={"float": "one"}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_files_with_the_right_checksum_and_the_wrong_content_are_refused(what, written):
    edited(written, CHANGES[what])
    with pytest.raises(InputError, match=re.escape(str(written))):
        go_on(written)


def test_other_files_and_places_are_refused(written, tmp_path):
    model = tmp_path / "m.gordan"
    BINARY.save(model)
    known = r"\(format 'gordan-checkpoint-2' expected, 'gordan-model-2' found\); use the version that wrote it, or remove it"
    with pytest.raises(InputError, match=f"m.gordan is not a checkpoint that this version of gordan can read {known}"):
        go_on(model)
    text = tmp_path / "text"
    text.write_text("x,y\n1,2\n")
    with pytest.raises(InputError, match="is not a gordan file"):
        go_on(text)
    with pytest.raises(InputError, match="is a folder"):
        go_on(tmp_path)
    with pytest.raises(InputError, match=r"run cannot be written: the folder .*nowhere does not exist; create it first"):
        go_on(tmp_path / "nowhere" / "run")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a pipe or a device"):
        go_on(tmp_path / "pipe")
    with pytest.raises(InputError, match="pass the name of a file"):
        go_on(3)


def test_a_folder_without_permission_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever is root has every permission
    with pytest.raises(InputError, match="run cannot be written: there is no permission to write to the folder"):
        go_on(tmp_path / "run")


def test_a_checkpoint_behind_a_link(written, tmp_path):
    link = tmp_path / "far" / "link"
    link.parent.mkdir()
    link.symlink_to(written)
    before = written.read_bytes()
    assert go_on(link).n_iter == 6
    assert link.is_symlink()
    assert written.read_bytes() != before


def test_a_full_disk_is_a_warning_and_the_old_file_stays(written, monkeypatch):
    before = written.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(container, "write_atomic", full)
    with pytest.warns(RuntimeWarning, match="run was not written: No space left"):
        assert go_on(written).n_iter == 6
    assert written.read_bytes() == before


def test_what_a_killed_writer_left_is_removed_in_time(written):
    left, fresh = written.with_name(".run.1-00.part"), written.with_name(".run.2-00.part")
    left.write_bytes(b"half")
    fresh.write_bytes(b"half")
    os.utime(left, (time.time() - 2 * checkpoint.ABANDONED_AFTER,) * 2)
    go_on(written)
    assert not left.exists()
    assert fresh.exists()


# ---- what is in it ----------------------------------------------------------------------------------------------------


@checkpointed("test_checkpoint.leaf")
class Leaf(NamedTuple):
    a: object
    b: object


numbers = st.floats(allow_nan=True) | st.integers() | st.booleans() | st.none() | st.text(st.characters(codec="utf-8"))
scalars = st.floats(allow_nan=True, width=64).map(np.float64) | st.integers(-9, 9).map(np.int64)
kinds = st.sampled_from([np.float64, np.float32, np.int64, np.int8, np.bool_])
vectors = kinds.flatmap(lambda kind: arrays(kind, st.integers(0, 12) | st.tuples(st.integers(0, 4), st.integers(0, 4))))
values = st.recursive(
    numbers | scalars | vectors | vectors.map(np.asfortranarray) | vectors.map(np.zeros_like),
    lambda inner: st.builds(Leaf, inner, inner) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=8,
)


def same_value(one, other):
    assert type(one) is type(other)
    if isinstance(one, (np.ndarray, np.generic)):
        same_bits(np.asarray(one), np.asarray(other))
        assert np.asarray(one).flags.c_contiguous == np.asarray(other).flags.c_contiguous
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for x, y in zip(one, other, strict=True):
            same_value(x, y)
    elif isinstance(one, float):
        assert one.hex() == other.hex()
    else:
        assert one == other


@given(value=values)
def test_values_come_back_bit_for_bit(value, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "values"
    path.unlink(missing_ok=True)
    Checkpoint(path).write(run=(value,), notes=None)
    (found,) = Checkpoint(path).restored("run", tuple)
    same_value(value, found)


NOT_VALUES = [
    {},
    [],
    1.0,
    {"float": "0x1.0000000000000p+0", "junk": 1},
    {"unknown": "0"},
    {"type": "Leaf"},
    {"zeros": 3, "at": "0"},
    {"array": "0", "transposed": "0"},
    {"scalar": {"float": "0x1.0000000000000p+0"}},
    {"scalar": {"array": "0", "junk": 1}},
    {"bool": {"tuple": []}},
]


@pytest.mark.parametrize("plain", NOT_VALUES, ids=str)
def test_a_value_has_exactly_the_fields_of_a_known_one(plain):
    with pytest.raises(ValueError, match="is not a value of a checkpoint"):
        checkpoint._restored(plain, {"0": np.zeros(1)})


@pytest.mark.parametrize(
    "spelling", ["1", "0x1.0p+0", "0X1.0000000000000P+0", "infinity", "NaN", "-nan", " nan", "one", "", 1.0, None]
)
def test_a_float_has_one_spelling(spelling):
    with pytest.raises(ValueError, match=r"as float\.hex writes it|text is expected|invalid hexadecimal"):
        checkpoint._restored({"float": spelling}, {})


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -5e-324, np.inf, -np.inf, np.nan], ids=str)
def test_every_float_comes_back(value):
    same_value(checkpoint._restored(checkpoint._serialized(value, checkpoint._Arrays()), {}), value)


@pytest.mark.parametrize(
    "plain", [{"zeros": -1, "at": "0", "values": "0"}, {"zeros": 1.0, "at": "0", "values": "0"}, {"array": 0}]
)
def test_the_fields_of_an_array_are_of_their_types(plain):
    with pytest.raises(ValueError, match="is expected in place of"):
        checkpoint._restored(plain, {"0": np.zeros(1)})


def test_the_order_of_entries_in_memory_comes_back(tmp_path):
    """A product with a transposed matrix is rounded in another order, so it must not come back as another one."""
    kept = np.asfortranarray(np.random.default_rng(0).standard_normal((7, 5)))
    assert not Checkpoint(tmp_path / "run").found
    Checkpoint(tmp_path / "run").write(run=(kept, np.ascontiguousarray(kept)), notes=None)
    again = Checkpoint(tmp_path / "run")
    assert again.found
    fortran, c = again.restored("run", tuple)
    assert (fortran.flags.f_contiguous, c.flags.c_contiguous) == (True, True)
    for found in (fortran, c):
        np.testing.assert_array_equal(found, kept)
    assert (fortran @ np.ones(5)).tobytes() == (kept @ np.ones(5)).tobytes()


def test_an_array_met_twice_is_stored_once(tmp_path):
    x = np.arange(1000.0)
    Checkpoint(tmp_path / "run").write(run=(x, Leaf(x, x[:500])), notes=None)
    assert (tmp_path / "run").stat().st_size < 13_000
    (one, (two, _)) = Checkpoint(tmp_path / "run").restored("run", tuple)
    assert one is two
    assert one.flags.writeable


def test_what_cannot_be_kept_is_refused_by_name(tmp_path):
    class Local(NamedTuple):
        a: int

    how = r'decorate the class with @checkpointed\("test_checkpoint.Local"\) of gordan.checkpoint'
    for value, told in ((object(), "object"), (Local(1), how), ((Local(1), Local(2)), how), ({"a": 2}, "dict"), ([1], "list")):
        with pytest.raises(InputError, match=told):
            Checkpoint(tmp_path / "run").write(run=value)


@pytest.fixture
def registry(monkeypatch):
    """The registered types, which are restored afterwards."""
    for name in ("_types", "_tags"):
        monkeypatch.setattr(checkpoint, name, dict(getattr(checkpoint, name)))


def test_types_are_recognized_by_their_tags_and_fields(tmp_path, registry):
    """A class may move and get another name; other classes of the same name and fields do not matter."""
    path = tmp_path / "run"
    Old = checkpointed("a point")(NamedTuple("Old", [("a", int)]))
    NamedTuple("Old", [("a", int)])
    Checkpoint(path).write(run=Old(3))
    assert b"Old" not in path.read_bytes()
    assert __name__.encode() not in path.read_bytes()
    del checkpoint._types["a point"]
    with pytest.raises(InputError, match="does not fit this version of gordan: no type is registered as 'a point'; if a module"):
        Checkpoint(path).restored("run", Old)
    New = checkpointed("a point")(NamedTuple("New", [("a", int)]))
    found = Checkpoint(path).restored("run", New)
    assert type(found) is New
    assert found == New(3)
    del checkpoint._types["a point"]
    checkpointed("a point")(NamedTuple("New", [("b", int)]))
    with pytest.raises(InputError, match="does not fit this version of gordan: the type 'a point' has other fields"):
        Checkpoint(path).restored("run", New)


def test_a_tag_belongs_to_one_class(registry):
    checkpointed("a point")(NamedTuple("Point", [("a", int)]))
    checkpointed("a point")(NamedTuple("Point", [("a", int), ("b", int)]))  # its module was loaded again
    with pytest.raises(InputError, match=r"'a point' is the tag of test_checkpoint\.Point in checkpoints; choose another tag"):
        checkpointed("a point")(NamedTuple("Other", [("a", int)]))
    with pytest.raises(InputError, match="dict cannot be kept in a checkpoint; make it a named tuple"):
        checkpointed("a dict")(dict)


class Count(NamedTuple):
    """The state of a method from elsewhere: that of another one, and the number of rounds."""

    inner: object
    rounds: int


@dataclass(frozen=True, eq=False)
class Counting:
    """The form of that method."""

    inner: object

    @property
    def game(self):
        return self.inner.game

    def start(self):
        return Count(self.inner.start(), 0)

    def round(self, state, t):
        inner, played = self.inner.round(state.inner, t)
        return Count(inner, state.rounds + 1), played


def test_methods_from_elsewhere_register_their_state(tmp_path, registry):
    """Without that the call is refused at its start, and not when the checkpoint is first written."""
    known = gordan.methods.nesterov()
    method = replace(known, name="counting", build=lambda *about: Counting(known.build(*about)))
    path, A = tmp_path / "run", SMALL[0] * SMALL[1][:, None]
    rounds = []
    with pytest.raises(InputError, match=r'a Count cannot be kept .* @checkpointed\("test_checkpoint.Count"\)'):
        gordan.play(A, method, 20, checkpoint=path, callback=rounds.append)
    assert rounds == []
    checkpointed("counting.state")(Count)
    record = range(1, 21)
    gordan.play(A, method, 10, record=record[:10], checkpoint=path)
    same_trace(gordan.play(A, method, 20, record=record, checkpoint=path), gordan.play(A, known, 20, record=record))


@dataclass(frozen=True, eq=False)
class Weighing:
    """The form of a method from elsewhere that has a number and a function in its fields."""

    inner: object
    share: float
    weight: object

    @property
    def game(self):
        return self.inner.game

    def start(self):
        return self.inner.start()

    def round(self, state, t):
        state, played = self.inner.round(state, t)
        return state, played._replace(alpha=self.weight(t))


@dataclass(frozen=True, eq=False)
class Renamed(Weighing):
    """The same form after its class was renamed."""


def twice(t):
    return 2.0 * t


def test_classes_and_functions_of_forms_may_be_renamed(tmp_path):
    known, path, A = gordan.methods.nesterov(), tmp_path / "run", SMALL[0] * SMALL[1][:, None]
    record = range(1, 21)

    def method(kind, share, weight, **changes):
        return replace(known, name="weighing", build=lambda *about: kind(known.build(*about), share, weight), **changes)

    first, renamed = method(Weighing, 0.5, lambda t: 2.0 * t), method(Renamed, 0.5, twice)
    whole = gordan.play(A, first, 20, record=record)
    gordan.play(A, first, 10, record=record[:10], checkpoint=path)
    before = path.read_bytes()
    same_trace(gordan.play(A, renamed, 20, record=record, checkpoint=path), whole)
    others = {
        "settings": method(Renamed, 0.25, twice),
        "method": replace(renamed, name="weighing more"),
        "form": replace(renamed, form="game"),
        "guarantee": replace(renamed, guarantee=replace(known.guarantee, statement="none")),
    }
    for what, other in others.items():
        path.write_bytes(before)
        with pytest.raises(InputError, match=f"is the checkpoint of another problem: {what} is"):
            gordan.play(A, other, 20, record=record, checkpoint=path)


def test_another_C_is_shown_as_a_number(tmp_path):
    X, y = SMALL
    for call in (
        lambda C: gordan.minimize_loss(X, y, C=C, sample_weight=np.arange(1, 81), checkpoint=tmp_path / "loss"),
        lambda C: gordan.play(X, "smooth_perceptron", 5, loss="hinge", C=C, checkpoint=tmp_path / "game"),
    ):
        call(1)
        with pytest.raises(InputError, match=r"another problem: C is 1\.0 in the file, but 2\.5 in this call"):
            call(2.5)


@pytest.mark.parametrize("label", METHODS)
def test_settings_name_no_class_or_function(label):
    method = METHODS[label]
    form = method.on(gordan.rows.of(SMALL[0]), Simplex(80), np.full(80, 1 / 80))
    bare = re.sub(r"'[^']*'", "", checkpoint.settings(form))  # without texts, such as the statement of a guarantee
    words = {*re.findall("[A-Za-z_]+(?!=)", re.sub(r"\w+=", "", bare))}
    assert words <= {"None", "True", "False", "inf", "e"}


def test_the_file_does_not_grow_with_the_rows(tmp_path):
    """d, the working set and its Gram matrix; n only where an average over rows is kept."""
    sizes = {}
    for n in (10_000, 40_000):
        X, y = data(n, 5)
        result = gordan.maximize_margin(X, y, tol=1e-9, checkpoint=tmp_path / f"{n}")
        assert result.status == "solved"
        found = Checkpoint(tmp_path / f"{n}").restored("run", dynamics.Snapshot)
        m = len(found.now.state.inside)
        sizes[n] = (tmp_path / f"{n}").stat().st_size
        assert sizes[n] <= 8 * m * m + 20 * 16 * m + 8 * 20 * 5 + 15_000
    assert sizes[40_000] < 8 * 40_000


def test_it_is_written_from_time_to_time(tmp_path, monkeypatch, clock):
    times = []
    clock.tick = 1.0  # and read three times in a round, or more
    real = Checkpoint.write
    monkeypatch.setattr(Checkpoint, "write", lambda self, **parts: (times.append(parts["run"].now.t), real(self, **parts)))
    monkeypatch.setattr(checkpoint, "INTERVAL_SECONDS", 400.0)
    monkeypatch.setattr(checkpoint, "WRITING_SHARE", 1e9)
    gordan.play(SMALL[0], "smooth_perceptron", 3000, checkpoint=tmp_path / "run")
    assert all(50 <= later - earlier <= 140 for earlier, later in pairwise([0, *times[:-1]])), times
    assert times[-1] == 3000


# ---- signals ----------------------------------------------------------------------------------------------------------


def killed(count):
    command = [sys.executable, str(HERE / "kills.py"), "--kills", str(count)]
    path = os.pathsep.join([str(Path(gordan.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path})
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["kills"] == count
    assert figures["calls of a write"] > 50
    assert figures["unreadable"] == figures["different"] == figures["torn"] == 0, done.stdout
    assert figures["after a resume"] > 0
    return figures


def test_ten_kills_at_random_instants():
    killed(10)


@pytest.mark.soak
def test_two_hundred_kills_at_random_instants():
    print(killed(200))


def fit(*arguments, code=0):
    done = CliRunner().invoke(app, ["fit", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def test_sigterm_on_the_command_line(tmp_path, monkeypatch):
    """Exit code 75, the bracket so far, a checkpoint; the same command then ends as if nothing had happened."""
    X, y = SMALL
    np.savez(tmp_path / "set.npz", X=X, y=y)
    file, model, run = tmp_path / "set.npz", tmp_path / "m.gordan", tmp_path / "run"
    options = (file, "-o", model, "--method", "smooth_perceptron", "--tol", 0.01)
    whole = gordan.MaxMarginClassifier(method="smooth_perceptron", tol=0.01).fit(X, y)
    real = dynamics.Sums.after

    def terminated(self, game, played):
        if played.alpha == 21.0:
            signal.raise_signal(signal.SIGTERM)
        return real(self, game, played)

    monkeypatch.setattr(dynamics.Sums, "after", terminated)
    told = fit(*options, "--checkpoint", run, code=75)
    lower, upper = map(
        float, re.search(r"interrupted\): the largest margin is between (\S+) and (\S+) \(proved", told.output).groups()
    )
    assert lower <= whole.margin_[1]
    assert whole.margin_[0] <= upper
    assert Checkpoint(run).restored("run", dynamics.Snapshot).now.t == 20
    monkeypatch.setattr(dynamics.Sums, "after", real)
    told = fit(*options, "--checkpoint", run)
    assert f"resumed from {run}" in told.output
    same_bits(Model.load(model).coef, whole.coef_)
    assert not run.exists()  # the model is complete
    tight = (file, "-o", model, "--method", "smooth_perceptron", "--tol", 1e-9, "--json", "--time-limit", 0.05)
    told = json.loads(fit(*tight, "--checkpoint", run).output.splitlines()[0])
    assert told["planes"][0]["status"] == "time-limit"
    assert run.exists()  # more time would do more


def test_sigterm_between_the_planes_of_three_classes(tmp_path, monkeypatch):
    iris = Path(gordan.__file__).parent / "data" / "iris.csv"
    options = (iris, "-o", tmp_path / "m.gordan", "--nu", 0.6)
    whole = fit(*options)
    expected = Model.load(tmp_path / "m.gordan")
    real, solved = Fitting.outcome, []

    def second(self, k, binary, **known):
        if k == 1 and not solved:
            solved.append(k)
            signal.raise_signal(signal.SIGTERM)
        return real(self, k, binary, **known)

    monkeypatch.setattr(Fitting, "outcome", second)
    told = fit(*options, "--checkpoint", tmp_path / "run", code=75)
    assert "terminated" in told.output
    assert (tmp_path / "run.0").exists()
    fit(*options, "--checkpoint", tmp_path / "run")
    assert not list(tmp_path.glob("run*"))
    found = Model.load(tmp_path / "m.gordan")
    same_bits(found.coef, expected.coef)
    same_bits(found.margins, expected.margins)
    assert whole.output.count("solved") == 3


def test_sigterm_in_separate(tmp_path, monkeypatch):
    """Before there is a verdict, and after: what is proved is reported, and the code is 75."""
    np.savez(tmp_path / "set.npz", X=SMALL[0], y=SMALL[1])
    real = gordan.separate

    def early(*arguments, **options):
        signal.raise_signal(signal.SIGTERM)

    def late(*arguments, **options):
        verdict = real(*arguments, **options)
        with contextlib.suppress(KeyboardInterrupt):  # as `separate` does, which keeps what it has
            signal.raise_signal(signal.SIGTERM)
        return verdict

    for terminated, said in ((late, "separable: the largest margin"), (early, "gordan: terminated")):
        monkeypatch.setattr(gordan, "separate", terminated)
        done = CliRunner().invoke(app, ["separate", str(tmp_path / "set.npz")])
        assert done.exit_code == 75
        assert said in done.output
        assert "terminated" in done.output
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_sigterm_to_the_program(tmp_path):
    X, y = data(3000, 20)
    np.savez(tmp_path / "set.npz", X=X, y=y)
    run = tmp_path / "run"
    command = [sys.executable, "-m", "gordan", "fit", tmp_path / "set.npz", "-o", tmp_path / "m.gordan", "--checkpoint", run]
    command += ["--method", "smooth_perceptron", "--tol", 1e-12, "--max-iter", 10**8, "--json"]
    path = os.pathsep.join([str(Path(gordan.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "160"}
    code, told, _ = signalled(command, signal.SIGTERM, b"B/s", env=environment)  # the bar is shown: the run is on its way
    assert code == 75
    (plane,) = json.loads(told)["planes"]
    assert plane["status"] == "interrupted"
    assert Checkpoint(run).restored("run", dynamics.Snapshot).now.t <= plane["n_iter"]


def test_progress_shows_passes_and_bandwidth():
    from gordan.cli.progress import Watch, format_rate, stored_bytes

    X = np.zeros((1000, 125))
    assert stored_bytes(X) == 10**6
    csr = sp.csr_array(([1.0], ([0], [3])), shape=(10, 5))
    assert stored_bytes(csr) == csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes
    assert [format_rate(rate) for rate in (12.0, 1.5e6, 9.99e8, 1.24e10, 4.6e12)] == [
        "12 bytes/s", "1.5 MB/s", "999.0 MB/s", "12.4 GB/s", "4.6 TB/s"
    ]  # fmt: skip
    watch = Watch("fit", 1e-4)
    watch.about("a against b", X)
    trace = []
    gordan.play(np.array([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]]), "smooth_perceptron", 10, callback=lambda m: trace.append(m))
    watch.moment(replace(trace[-1], passes=50.0, seconds=0.025))
    assert watch._state[1:] == ("50 passes", "2.0 GB/s")
    assert "margin" in watch._state[0]
