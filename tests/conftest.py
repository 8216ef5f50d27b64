from __future__ import annotations

import itertools
import logging
import os
import signal
import sys
import threading
import time
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings

# Triton's interpreter, for test_device: Triton looks once, when it is imported, and torch may import it
os.environ.setdefault("TRITON_INTERPRET", "1")

settings.register_profile("suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "mutants", settings.get_profile("suite"), max_examples=25, database=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("suite")


class Clock:
    """Stands for `time.perf_counter`: each time gordan reads it, it is `tick` seconds later, however busy the machine is.

    Others get the time that it is: compilers, for example, time themselves.
    """

    def __init__(self, real):
        self.real, self.now, self.tick, self.readings = real, 1000.0, 0.0, 0

    def __call__(self):
        if sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] != "gordan":
            return self.real()
        self.now += self.tick
        self.readings += 1
        return self.now


@pytest.fixture(autouse=True)
def small_rows_stay_on_clusters(monkeypatch):
    """Tests of clusters have few rows, which would otherwise be solved in memory."""
    monkeypatch.setattr("gordan.rows.cluster.MIN_ENTRIES", 0)


@pytest.fixture(autouse=True)
def remarks_as_in_a_new_process(monkeypatch):
    """Each test is told what a process is warned of once."""
    planes = sys.modules.get("gordan.estimators.planes")
    if planes is not None:
        monkeypatch.setattr(planes, "REMARKED", set())


@pytest.fixture(scope="module")
def cluster():
    """A worker of Dask on a thread of this process."""
    distributed = pytest.importorskip("distributed", reason="dask is missing: pip install 'gordan[dask]'")
    options = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, **options) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.fixture
def clock(monkeypatch):
    """The clock that gordan reads; it stands still until a test sets `tick`."""
    clock = Clock(time.perf_counter)
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock


@pytest.fixture
def table(tmp_path):
    """Two classes in a CSV file; rows 3 and 8 have the same features and different labels."""
    from commands import write_csv

    rng = np.random.default_rng(3)
    X = rng.integers(-9, 10, size=(30, 3)) / 4
    y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
    X[8], y[3], y[8] = X[3], "up", "down"
    return write_csv(tmp_path / "pair.csv", X, y)


@pytest.fixture(params=["careful", "fast", "fast, blocks of 7 bytes"])
def route(request, monkeypatch):
    """The line-by-line parser, the compiled scanner, and the scanner with lines across blocks must not differ in anything."""
    if request.param != "careful":
        monkeypatch.setattr("gordan.io.text.SHORT", 0)
    if "7" in request.param:
        monkeypatch.setattr("gordan.io.text.BLOCK", 7)


@pytest.fixture
def arrow():
    """pyarrow, which reads Parquet files."""
    return pytest.importorskip("pyarrow")


@pytest.fixture
def ctrl_c():
    """An event. Once it is set, another thread sends SIGINT, which reaches this one wherever it then is."""
    pressed = threading.Event()

    def press():
        pressed.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    return pressed


@pytest.fixture
def peak_memory(monkeypatch):
    """peak_memory(work): what work() returns, and the most bytes that it held in NumPy arrays and Python objects meanwhile.

    The call before the measured one imports and compiles. Each thread asks once whether there is room for BLAS, when it first
    multiplies matrices, which may be in either call: tracemalloc would count these 40 MiB, although nothing is written there.
    """
    from gordan import blas

    monkeypatch.setattr(blas, "BLAS_WORK_BYTES", 0)

    def peak_memory(work):
        work()
        tracemalloc.start()
        try:
            return work(), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return peak_memory


def pytest_configure(config):
    """Ctrl-C is Ctrl-C: a process started in the background ignores it, and tests that send it would wait for ever."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish():
    """`make coverage`: workers write down what they have seen while there is time; those slow to end are killed."""
    watching = sys.modules["coverage"].Coverage.current() if "coverage" in sys.modules else None
    if watching is not None:
        watching.save()


def pytest_terminal_summary(terminalreporter, config):
    """`make test`: beside the slowest tests, the seconds that each file took."""
    if not config.getoption("durations"):
        return
    spent = Counter()
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        spent[getattr(report, "nodeid", "").partition("::")[0]] += getattr(report, "duration", 0.0)
    terminalreporter.section("seconds per file")
    for name, seconds in spent.most_common():
        if seconds >= 0.5:
            terminalreporter.write_line(f"{seconds:8.1f}  {name}")


def pytest_addoption(parser):
    parser.addoption("--soak", action="store_true", help="also run the long tests (make soak)")


def pytest_collection_modifyitems(config, items):
    """Long runs are left out unless asked for."""
    if not config.getoption("--soak"):
        long = [item for item in items if "soak" in item.keywords]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if "soak" not in item.keywords]
