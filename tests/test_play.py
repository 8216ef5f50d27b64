"""`gordan.play` and `Trace` as a user meets them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from problems import separable

import gordan
from gordan import methods
from gordan.trace import COLUMNS, Trace

PROBLEM = separable(30, 5, 0.1, seed=41)


def test_defaults_give_a_bracket_around_the_margin():
    trace = gordan.play(3 * PROBLEM.A)
    lower, upper = trace.bracket
    assert lower <= 0.3 <= upper
    assert trace.gap[-1] == (upper - lower) / upper
    assert trace.scale == pytest.approx(3.0)
    assert trace.t[0] == 1
    assert trace.t[-1] == 1000
    assert 40 <= len(trace) <= 70
    assert trace.status == "rounds"
    assert "1000 rounds" in repr(trace)


def test_recorded_rounds_are_those_asked_for_and_the_last():
    assert gordan.play(PROBLEM.A, "nesterov", 50, record=[3, 7]).t.tolist() == [3, 7, 50]
    assert gordan.play(PROBLEM.A, "nesterov", 50, record=range(1, 51)).t.tolist() == list(range(1, 51))
    assert gordan.play(PROBLEM.A, "nesterov", 1).t.tolist() == [1]


def test_recording_changes_nothing_but_what_is_recorded():
    every = gordan.play(PROBLEM.A, "nesterov", 60, record=range(1, 61))
    last = gordan.play(PROBLEM.A, "nesterov", 60, record=[])
    np.testing.assert_array_equal(every.w, last.w)
    np.testing.assert_array_equal(every.p_bar, last.p_bar)
    assert every.passes[-1] == last.passes[-1] == 60


def test_runs_are_bit_identical():
    A = np.tile(PROBLEM.A, (2000, 5))  # large enough for threads
    for method in ("smooth_perceptron", methods.nesterov(form="game")):
        first, second = (gordan.play(A, method, 20, threads=2) for _ in range(2))
        np.testing.assert_array_equal(first.w, second.w)
        np.testing.assert_array_equal(first.upper, second.upper)
        np.testing.assert_array_equal(gordan.play(A, method, 20, threads=1).w, first.w)


def test_dense_and_sparse_agree():
    A = np.where(np.abs(PROBLEM.A) > 0.1, PROBLEM.A, 0)
    np.testing.assert_allclose(gordan.play(sp.csr_array(A), rounds=100).w, gordan.play(A, rounds=100).w, atol=1e-12)


def test_rows_can_be_passed():
    X = np.abs(PROBLEM.A)
    signs = np.where(np.arange(len(X)) % 2, 1, -1)
    through_rows = gordan.play(gordan.rows.of(X, signs), rounds=50)
    np.testing.assert_allclose(through_rows.w, gordan.play(X * signs[:, None], rounds=50).w, atol=1e-12)


def test_callback_sees_moments_and_stops():
    seen = []
    trace = gordan.play(PROBLEM.A, "smooth_perceptron", 500, callback=lambda moment: seen.append(moment) or moment.margin > 0)
    assert trace.status == "callback"
    assert trace.margin[-1] > 0
    assert all(moment.margin <= 0 for moment in seen[:-1])
    assert [moment.t for moment in seen] == trace.t.tolist()
    assert seen[-1].gap == trace.gap[-1]


def test_time_limit_stops_after_a_round(clock):
    clock.tick = 1.0
    trace = gordan.play(PROBLEM.A, "smooth_perceptron", 10**9, time_limit=300.0)
    assert trace.status == "time-limit"
    assert 100 < trace.t[-1] <= 300  # the clock is read after every round, and twice more where one is recorded
    assert trace.bracket[0] <= 0.1 + 1e-9
    assert trace.bracket[1] >= 0.1 - 1e-9


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("method", ["smooth_perceptron", "nesterov", "mirror_prox_perceptron"])
def test_ctrl_c_keeps_what_was_found(method, ctrl_c):
    trace = gordan.play(PROBLEM.A, method, 10**9, callback=lambda moment: moment.t > 20 and ctrl_c.set())
    assert trace.status == "interrupted"
    assert trace.t[-1] > 1
    assert np.isfinite(trace.w).all()
    assert trace.bracket[0] <= 0.1 + 1e-9
    assert trace.bracket[1] >= 0.1 - 1e-9


def test_perceptron_finishes():
    trace = gordan.play(PROBLEM.A, "perceptron", 10**6)
    assert trace.status == "finished"
    assert trace.m is trace.regret_w is trace.regret_p is None
    assert (PROBLEM.A @ trace.w).min() > 0


def test_perceptron_is_rosenblatts():
    """Against the loop that everybody writes."""
    A, w, mistakes = PROBLEM.A, np.zeros(5), 0
    while (A @ w <= 0).any():
        for row in A:
            if row @ w <= 0:
                w = w + row
                mistakes += 1
    trace = gordan.play(A, "perceptron", 10**6)
    assert trace.t[-1] - 1 == mistakes
    np.testing.assert_allclose(trace.w, w, atol=1e-12)


@pytest.mark.parametrize("method", ["smooth_perceptron", "perceptron"])
def test_a_trace_saves_and_loads(tmp_path, method):
    trace = gordan.play(PROBLEM.A, method, 30)
    trace.save(tmp_path / "trace.json")
    again = Trace.load(tmp_path / "trace.json")
    for name in ("method", "form", "norm", "n", "d", "scale", "status"):
        assert getattr(again, name) == getattr(trace, name)
    for name in (*COLUMNS, "w", "p", "w_bar", "p_bar", "w_best", "p_best"):
        first, second = getattr(trace, name), getattr(again, name)
        assert (first is None) == (second is None)
        if first is not None:
            np.testing.assert_array_equal(first, second)
            assert first.dtype == second.dtype
    assert json.loads((tmp_path / "trace.json").read_text())["columns"]["t"] == trace.t.tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_infinities_survive_a_file(tmp_path):
    trace = gordan.play(PROBLEM.A, "smooth_perceptron", 3)
    trace.columns["upper"][0] = np.inf
    trace.save(tmp_path / "trace.json")
    assert Trace.load(tmp_path / "trace.json").upper[0] == np.inf


def test_a_trace_becomes_a_data_frame():
    pytest.importorskip("pandas", reason="needs pandas: pip install 'gordan[data]'")
    trace = gordan.play(PROBLEM.A, "perceptron", 5)
    frame = trace.to_frame()
    assert list(frame.columns) == list(COLUMNS)
    assert frame["t"].tolist() == trace.t.tolist()
    assert frame["regret_w"].isna().all()
    assert frame["upper"].dtype == float


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(gordan.MissingExtra, match=r"pip install 'gordan\[data\]'"):
        gordan.play(PROBLEM.A, "perceptron", 5).to_frame()


def test_trace_names_its_columns_when_asked_for_another():
    with pytest.raises(AttributeError, match="normalized_margin"):
        _ = gordan.play(PROBLEM.A, rounds=2).margins


@pytest.mark.parametrize("record", [None, "every"])
def test_memory_does_not_grow_with_rounds(record, peak_memory):
    """O(n + d): ten times the rounds, recorded or not, the same peak but for a line of numbers per recorded round."""
    A = separable(8000, 5, 0.1, seed=42).A
    method = methods.smooth_perceptron(form="game")

    def peak(rounds):
        return peak_memory(lambda: gordan.play(A, method, rounds, record=None if record is None else range(1, rounds + 1)))[1]

    assert peak(200) <= 1.1 * peak(20) + 200_000


def test_callbacks_are_not_charged_to_the_method(clock):
    clock.tick = 1.0

    def linger(moment):
        clock.now += 1000.0

    trace = gordan.play(PROBLEM.A, rounds=10, record=range(1, 11), callback=linger)
    assert 10 <= trace.seconds[-1] < 100


@pytest.mark.parametrize("name", methods.names())
def test_every_method_states_its_guarantee_and_has_an_example(name):
    text = methods.get(name).factory.__doc__
    assert "Guarantee" in text
    assert ">>> " in text


def test_registry_lists_and_extends():
    entry = methods.get("nesterov")
    assert entry.reference
    assert entry.summary
    assert entry().name == "nesterov"
    with pytest.raises(gordan.InputError, match="registered already"):
        methods.register("nesterov", reference="", forms=("published",))(methods.nesterov)

    @methods.register("mine", reference="here", forms=("published",))
    def mine():
        """My method."""
        return methods.smooth_perceptron()

    try:
        assert "mine" in methods.names()
        assert gordan.play(PROBLEM.A, "mine", 3).t[-1] == 3
    finally:
        methods.registry._entries.pop("mine")


def test_a_gap_is_not_below_zero():
    """Floats of both ends may cross by rounding."""
    trace = gordan.play([[1.0]], rounds=1)
    columns = {**trace.columns, "lower": np.array([1 + 1e-15]), "upper": np.array([1.0])}
    assert replace(trace, columns=columns).gap.tolist() == [0.0]
    moment = gordan.Moment(1, 1.0, 1.0, 1 + 1e-15, 1.0)
    assert moment.gap == 0.0


def test_import_is_light():
    """`import gordan` loads neither numba nor SciPy, flint or anything optional; kernels come with the first pass."""
    code = (
        "import sys, gordan; "
        "heavy = {'numba', 'scipy', 'flint', 'sklearn', 'pandas', 'matplotlib', 'typer', 'rich', 'torch'} & set(sys.modules); "
        "packages = {'gordan.datasets', 'gordan.report', 'gordan.plots'}; "
        "assert not heavy | packages & set(sys.modules), heavy; assert {name[7:] for name in packages} <= set(dir(gordan)); "
        "assert {getattr(gordan, name[7:]) for name in packages} == {sys.modules[name] for name in packages}; "
        "gordan.play([[1.0]], rounds=1); assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "code",
    [
        "gordan.play([[1.0], [2.0]], 'double_oracle', 5)",
        "assert 'double_oracle' in gordan.methods.names()",
        "from gordan.methods.registry import register; register('double_oracle', reference='', forms=('game',))(lambda: None)",
    ],
)
def test_methods_of_other_packages_are_known_in_a_new_process(code):
    """Whatever else has been imported: `import gordan` imports no solver, and the double oracle is registered by one."""
    ended = subprocess.run([sys.executable, "-c", f"import gordan; {code}"], capture_output=True, text=True)
    refused = "a method named 'double_oracle' is registered already" in ended.stderr
    assert refused if "register(" in code else ended.returncode == 0, ended.stderr


def test_moments_are_to_be_looked_at():
    """The vectors that a callback sees are those of the run, and cannot be changed."""
    seen = []

    def spoil(moment):
        for name in ("w", "p", "w_out", "p_bar"):
            x = getattr(moment, name)
            if x is not None:
                with pytest.raises(ValueError, match="read-only"):
                    x[:] = np.nan
                seen.append(name)

    trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], "smooth_perceptron", 50, callback=spoil)
    assert {"w", "p", "w_out"} <= {*seen}
    assert np.isfinite(trace.lower).all()
