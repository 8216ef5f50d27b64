"""What is larger than the data is compared with the memory there is; where it does not fit, another route is taken."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import gordan
from gordan import memory
from gordan.certificates import exact, standalone
from gordan.certificates.problem import Problem
from gordan.estimators import MaxMarginClassifier
from gordan.intercepts import Intercept
from gordan.rows import Rows
from gordan.solve import double_oracle, recession
from gordan.solve.cancelling import balance
from gordan.solve.coefficients import coordinate_signs
from gordan.solve.cone import Cone
from gordan.solve.recession import from_separator

MEMINFO = "MemTotal:       24000000 kB\nMemFree:         1000000 kB\nMemAvailable:    8000000 kB\n"


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A system whose files say what a test writes into them."""
    (tmp_path / "groups").mkdir()
    for name, value in (("MEMINFO", "meminfo"), ("OWN_GROUPS", "own"), ("GROUPS", "groups")):
        monkeypatch.setattr(memory, name, tmp_path / value)

    def write(path, content):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(str(content))

    return write


def test_what_the_system_has_left(system):
    assert memory.memory_left() == math.inf  # nothing is told
    system("meminfo", MEMINFO)
    assert memory.memory_left() == 8_000_000 * 1024
    system("meminfo", "MemTotal: 24 kB\n")
    assert memory.memory_left() == math.inf
    system("meminfo", "MemAvailable:\n")
    assert memory.memory_left() == math.inf


@pytest.mark.parametrize(
    ("own", "root", "limit", "usage", "cached"),
    [
        ("0::/a/b\n", "groups", "memory.max", "memory.current", "inactive_file"),
        ("5:cpu:/x\n4:memory:/a/b\n", "groups/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ],
    ids=["version 2", "version 1"],
)
def test_what_control_groups_leave(system, own, root, limit, usage, cached):
    """The least that a group and those around it leave; pages of files that can be given back count as left."""
    system("meminfo", MEMINFO)
    system("own", own)
    system(f"{root}/a/b/{limit}", "max" if limit == "memory.max" else 2**63 - 4096)
    system(f"{root}/a/b/{usage}", 1_500_000)
    assert memory.memory_left() == 8_000_000 * 1024
    system(f"{root}/a/{limit}", 5_000_000)
    system(f"{root}/a/{usage}", 2_000_000)
    assert memory.memory_left() == 3_000_000
    system(f"{root}/a/memory.stat", f"anon 3\n{cached} 700000\nfile 900000\n")
    assert memory.memory_left() == 3_700_000
    system(f"{root}/a/b/{limit}", 1_000_000)
    assert memory.memory_left() == 0
    system(f"{root}/a/b/{usage}", 999_000)
    assert memory.memory_left() == 1000


def test_a_container_that_sees_its_own_group_as_the_root(system):
    system("own", "0::/outside/name\n")
    system("groups/memory.max", 100)
    system("groups/memory.current", 40)
    assert memory.memory_left() == 60


def test_what_fits(system, monkeypatch):
    system("meminfo", "MemAvailable: 1000000 kB\n")
    half = 1_000_000 * 1024 * memory.MAX_SHARE
    assert memory.fits(half)
    assert not memory.fits(half + 1)
    system("meminfo", "MemAvailable: 0 kB\n")
    assert memory.fits(memory.UNCHECKED_BYTES)
    assert not memory.fits(memory.UNCHECKED_BYTES + 1)
    system("meminfo", "nothing")
    assert not memory.fits(1e30)
    monkeypatch.setattr(memory, "memory_left", lambda: pytest.fail("asked for little"))
    assert memory.fits(1.0)
    assert memory.largest(10, lambda m: m) == 10


@given(st.integers(1, 10**6), st.floats(0, 1e9), st.floats(0, 1e6), st.integers(0, 10**6))
def test_the_largest_that_fits(most, left, square, linear):
    """As defined: it fits, and the next one does not."""

    def size(m):
        return square * m * m + linear * m

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "memory_left", lambda: left)
        patch.setattr(memory, "UNCHECKED_BYTES", 1000)
        patch.setattr(memory, "_allowed", lambda size: True)
        found = memory.largest(most, size)
        assert 1 <= found <= most
        assert found == 1 or memory.fits(size(found))
        assert found == most or not memory.fits(size(found + 1))


LIMITED = """
import json, resource, sys
import numpy as np
import gordan
from gordan import memory

def allow(kind, megabytes):
    name = "VmSize" if kind == "RLIMIT_AS" else "VmData"
    used = int(next(line for line in open("/proc/self/status") if line.startswith(name)).split()[1]) << 10
    resource.setrlimit(getattr(resource, kind), (used + (megabytes << 20), resource.RLIM_INFINITY))

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 20))
y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
for norm in (2, 10, np.inf):
    gordan.maximize_margin(X[:300], y[:300], nu=0.8, norm=norm)  # compiles, and starts threads
    gordan.maximize_margin(X[:2000], y[:2000], nu=0.8, norm=norm)
allow(sys.argv[1], 300)
fits = [memory.fits(megabytes << 20) for megabytes in (100, 200)]
results = [gordan.maximize_margin(X, y, nu=0.4, norm=norm, time_limit=60) for norm in (2, 10, np.inf)]
accepted = [bool(gordan.verify(result.certificate, X, y)) for result in results]
print(json.dumps([fits, [result.status for result in results], accepted]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="limits, and what they leave, as Linux has them")
@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_soft_margins_under_a_limit(kind):
    """Labels of one noisy column: ascent leaves most rows free. The Gram matrix of all of these would take 1.1 GB."""
    found = subprocess.run([sys.executable, "-c", LIMITED, kind], capture_output=True, text=True, check=False, timeout=300)
    assert found.returncode == 0, found.stderr[-2000:]
    fits, statuses, accepted = json.loads(found.stdout)
    assert fits == [True, False]
    assert {*statuses} <= {"solved", "margin-below-tol"}
    assert accepted == [True] * 3


def noisy(n, d, noise, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + noise * rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("norm", [2, 10])
def test_working_set_under_caps_is_bounded(norm, kind, monkeypatch):
    """Ascent leaves more rows free than the working set may hold: those left out stay at a bound, and bring in no others."""
    X, y = noisy(4000, 6, 1.0)
    monkeypatch.setattr(double_oracle, "GAMES", replace(double_oracle.GAMES, max_working_set=700))
    asked = []
    gram = Rows.gram

    def watched(self, i, *others, **options):
        asked.append(len(i))
        return gram(self, i, *others, **options)

    monkeypatch.setattr(Rows, "gram", watched)
    result = gordan.maximize_margin(kind(X), y, nu=0.4, norm=norm)
    assert result.status in ("solved", "margin-below-tol")
    assert max(asked) <= 1400
    assert gordan.verify(result.certificate, X, y)


def test_rows_of_both_classes_stay_in_the_working_set(monkeypatch):
    """Of too many rows the heaviest of each class stay in the working set: here all rows of one class are heavier."""
    rng = np.random.default_rng(0)
    positive = np.column_stack((np.full(600, 1.0), rng.normal(size=(600, 3))))
    X = np.vstack((positive, [[-1.0, 0.0, 0.0, 0.0]]))
    y = np.arange(601) < 600
    full = gordan.maximize_margin(X, y)
    monkeypatch.setattr(double_oracle, "GAMES", replace(double_oracle.GAMES, max_working_set=4))
    monkeypatch.setattr(double_oracle, "TUNING", replace(double_oracle.TUNING, all_rows_at_once=0, max_visited=10**9))
    monkeypatch.setattr(
        double_oracle, "ascended", lambda rows, p_set, *_: (np.where(np.arange(rows.n) < 600, 1e-3, 1e-9), np.zeros(rows.n, bool))
    )
    result = gordan.maximize_margin(X, y, method=double_oracle.double_oracle())
    assert result.status == "solved"
    assert result.margin[0] <= full.margin[1]
    assert full.margin[0] <= result.margin[1]


PROBLEMS = {
    "overlapping": noisy(1500, 8, 1.0),
    "noisy": noisy(1500, 8, 0.3),
    "wide": noisy(120, 150, 0.5),
    "separable": (lambda X, y: (X + 0.3 * np.outer(2 * y - 1, np.eye(20)[0]), y))(*noisy(500, 20, 0.0)),
}


@pytest.fixture(params=[0, 1 << 17], ids=["no memory", "a little"])
def short(request, monkeypatch):
    """Nothing is left, and what is asked for without a look is next to nothing."""

    def begin():
        monkeypatch.setattr(memory, "UNCHECKED_BYTES", request.param)
        monkeypatch.setattr(memory, "memory_left", lambda: 0.0)

    return begin


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("norm", [2, 10, math.inf])
@pytest.mark.parametrize("nu", [None, 0.4])
def test_margins_without_memory(nu, norm, name, kind, short):
    """Whatever is given up, a result comes back whose interval holds the margin that is found with memory."""
    X, y = PROBLEMS[name]
    X = kind(X)
    full = gordan.maximize_margin(X, y, nu=nu, norm=norm)
    short()
    result = gordan.maximize_margin(X, y, nu=nu, norm=norm, callback=lambda moment: moment.t >= 300)
    assert result.margin[0] <= full.margin[1]
    assert full.margin[0] <= result.margin[1]
    assert result.status in ("solved", "margin-below-tol", "not-separable", "no-progress", "interrupted")
    assert gordan.verify(result.certificate, X, y)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", PROBLEMS)
def test_verdicts_without_memory(name, kind, short):
    """What is proved is the same, or left open; it takes rounds, not memory."""
    X, y = PROBLEMS[name]
    X = kind(X)
    full, kinds = gordan.separate(X, y), gordan.diagnose(X, y)
    short()
    verdict, diagnosis = gordan.separate(X, y, max_iter=50), gordan.diagnose(X, y)
    assert verdict.status in (full.status, "undecided", "margin-below-tol")
    assert diagnosis.kind in (kinds.kind, "undecided")
    for name, sign in diagnosis.columns.items():
        assert kinds.columns[name] == sign
    for found in (verdict, diagnosis):
        if found.certificate is not None:
            assert gordan.verify(found.certificate, X, y)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_nothing_large_is_begun_without_memory(kind, monkeypatch):
    """No linear program, no matrix of exact numbers, no copy of all rows, and no Gram matrix but of two rows of each class."""
    X, y = noisy(2500, 40, 0.3)
    X += 1000.0  # far from 0: rows would be moved
    separable = kind(X), X[:, 0] > 1000.0
    X = kind(X)
    dense, gram = Rows.dense, Rows.gram
    monkeypatch.setattr(memory, "UNCHECKED_BYTES", 0)
    monkeypatch.setattr(memory, "memory_left", lambda: 0.0)
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: pytest.fail("a linear program"))
    monkeypatch.setattr(exact, "integer_rows", lambda *_: pytest.fail("a matrix of integers"))
    monkeypatch.setattr(Rows, "dense", lambda self: pytest.fail("a copy") if self.n > 4 else dense(self))
    monkeypatch.setattr(Rows, "gram", lambda self, i, *_, **__: pytest.fail("a Gram matrix") if len(i) > 4 else gram(self, i))
    for norm in (2, 10, math.inf):
        gordan.maximize_margin(X, y, nu=0.4, norm=norm, callback=lambda moment: moment.t >= 30)
        gordan.maximize_margin(*separable, norm=norm, callback=lambda moment: moment.t >= 30)
    for data in ((X, y), separable):
        gordan.separate(*data, max_iter=5)
        gordan.diagnose(*data)


def test_witnesses_and_coefficients_without_memory(monkeypatch):
    """What would take a matrix of exact numbers, or linear programs, is left open; what needs neither is decided as before."""
    contradicting = Problem.of([[1.0, 2.0], [1.0, 2.0], [3.0, 1.0]], [0, 1, 1])
    assert balance(contradicting, np.array([0, 1]), Intercept.NONE) == {0: 1, 1: 1}
    X, y = PROBLEMS["separable"]
    verdict, problem = gordan.separate(X, y), Problem.of(X, y)

    def signs():
        cone = Cone(problem, Intercept.FREE, tuple(range(X.shape[1] + 1)))
        return dict(coordinate_signs(from_separator(cone, [*verdict.w.tolist(), verdict.b])))

    decided = signs()
    monkeypatch.setattr(memory, "UNCHECKED_BYTES", 0)
    monkeypatch.setattr(memory, "memory_left", lambda: 0.0)
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: pytest.fail("a linear program"))
    assert balance(contradicting, np.array([0, 1]), Intercept.NONE) is None
    assert signs().items() < decided.items()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_without_memory(short):
    X, y = PROBLEMS["overlapping"]
    short()
    model = MaxMarginClassifier(nu=0.3, max_iter=50, on_inseparable="ignore").fit(X, y + (X[:, 1] > 0.5))
    assert np.isfinite(model.coef_).all()


def test_weights_of_many_planes_are_kept_for_their_support_alone():
    """50 planes over 100,000 rows, each with weight on three of these: 40 MB, were they kept for all rows before."""
    n, rng = 100_000, np.random.default_rng(0)
    outcomes, expected = [], np.zeros((50, n))
    for k in range(50):
        support, dual = np.sort(rng.choice(n, 3, replace=False)), rng.normal(size=3)
        expected[k, support] = dual
        outcomes.append(SimpleNamespace(n_iter=1, witness=None, trace=None, support=support, dual=dual))
    model = MaxMarginClassifier(warm_start=True)
    model.n_features_in_, model.kind_, model.classes_ = 2, "one-vs-one", np.arange(3)
    tracemalloc.start()
    try:
        model._keep_runs(outcomes, n)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e6
    assert np.array_equal(model.support_, np.flatnonzero(expected.any(axis=0)))
    assert np.array_equal(model.dual_coef_, expected[:, model.support_])
    starts = model._starts("one-vs-one", np.arange(3), n)
    assert all(np.allclose(start, abs(row) / abs(row).sum()) for start, row in zip(starts, expected, strict=True))


def test_the_rows_of_a_pair_are_given_back():
    """Ten classes have 45 pairs, whose rows are X nine times over: each copy goes when its plane is found."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(10), 200)
    X = np.eye(10)[y].repeat(20, axis=1) + 0.01 * rng.random((len(y), 200))
    MaxMarginClassifier().fit(X[::20], y[::20])  # what is imported and compiled is not counted
    tracemalloc.start()
    try:
        model = MaxMarginClassifier().fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.separable_ == [True] * 45
    assert peak < 8 * X.nbytes


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_rows_off_a_span_by_blocks(kind, monkeypatch):
    rng = np.random.default_rng(0)
    F, rows = rng.normal(size=(40, 6)), rng.permutation(40)[:23]
    span = np.linalg.qr(rng.normal(size=(6, 2)))[0]
    expected = np.abs(F[rows] - F[rows] @ span @ span.T).max(axis=1)
    for entries in (1, 20, 10**6):
        monkeypatch.setattr(recession, "DENSE_BLOCK_ENTRIES", entries)
        assert np.abs(recession._distance_to_span(kind(F), rows, span) - expected).max() < 1e-14
    assert len(recession._distance_to_span(kind(F), rows[:0], span)) == 0


def test_certificates_that_take_too_much_memory_to_check(monkeypatch):
    """A few rows of many columns: that they span all rows is asked of a null space of d² numbers, which is not begun."""
    d = 300
    X = np.zeros((4, d))
    X[:, 0] = [1.0, 1.0, 2.0, 2.0]
    y = [0, 1, 0, 1]
    c = gordan.Certificate("overlap", "none", (0, 1), X.shape, rows=(0, 1), weights=(1, 1))
    assert gordan.verify(c, X, y)
    assert standalone.check(json.loads(c.to_json()), X.tolist(), y)[0]
    monkeypatch.setattr(memory, "memory_left", lambda: 2.0 * exact.NUMBER_BYTES * d * d / 2)
    monkeypatch.setattr(memory, "UNCHECKED_BYTES", 0)
    assert "needs more memory than there is" in gordan.verify(c, X, y).reason
    monkeypatch.setattr(memory, "memory_left", lambda: 0.0)
    monkeypatch.setattr(exact, "integer_rows", lambda *_: pytest.fail("rows of integers"))
    assert "needs more memory than there is" in gordan.verify(c, X, y).reason


@pytest.mark.parametrize("wrong", [0, 1])
def test_rows_that_cancel_are_added_up_without_spreading_them_out(wrong, monkeypatch):
    """A witness of more products than are left to Python: with and without room for a matrix the answer is the same."""
    rng = np.random.default_rng(0)
    X = rng.integers(-5, 6, (60, 500)).astype(float)
    X = np.vstack((X, -X.sum(axis=0)))
    X[7, 444] += wrong
    y = np.arange(61) % 2
    signs = np.where(y, 1.0, -1.0)
    X *= signs[:, None]
    c = gordan.Certificate("witness", "none", (0, 1), X.shape, rows=tuple(range(61)), weights=(1,) * 61)
    expected = gordan.verify(c, X, y)
    assert bool(expected) == (not wrong)
    monkeypatch.setattr(memory, "memory_left", lambda: 0.0)
    monkeypatch.setattr(memory, "UNCHECKED_BYTES", 0)
    monkeypatch.setattr(exact, "matrix", lambda *_: pytest.fail("a matrix"))
    assert gordan.verify(c, X, y) == expected


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_signs_by_blocks(kind, monkeypatch):
    """Rows whose signs need exact arithmetic go by so many entries at a time."""
    rng = np.random.default_rng(1)
    X = rng.integers(-3, 4, (300, 12)).astype(float)
    problem = Problem.of(kind(X), np.arange(300) % 2)
    w = rng.integers(-3, 4, 12).tolist()
    expected = np.sign((X @ w) * problem.signs)
    lengths = []
    original = exact._exact_signs

    def watched(X, rows, w, b):
        lengths.append(len(rows))
        return original(X, rows, w, b)

    monkeypatch.setattr(exact, "_exact_signs", watched)
    monkeypatch.setattr(exact, "_rounded_to_floats", lambda w: None)
    monkeypatch.setattr(exact, "SIGN_ENTRIES", 100)
    assert (exact.score_signs(problem.X, w, 0, problem.signs) == expected).all()
    assert max(lengths) * 10 <= 100
