"""No proof in another arithmetic than that of IEEE 754: whichever thread, process or library has another mode, before or during.

The data of most tests: two rows a and 2^20 a, of opposite labels and with a subnormal entry, on one line through 0. Nothing
separates them, which a witness of two rows shows; where subnormal operands count as 0, a plane seems to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from modes import CAN_BE_SET, MODES, REASON, become, bits, mode

import gordan
from gordan import floats
from gordan.certificates import matrix, standalone
from gordan.certificates.margins import Margin
from gordan.certificates.matrix import Products
from gordan.certificates.problem import Problem
from gordan.certificates.verify import accepts, check
from gordan.floats import NotIEEE, floats_are_ieee, ieee_floats
from gordan.intercepts import Intercept
from gordan.rows import memory, reads, stored, tasks, threads

pytestmark = pytest.mark.skipif(not CAN_BE_SET, reason=REASON)

FLUSHED = MODES["FTZ and DAZ"]
STORAGES = {
    "dense": np.asarray,
    "wide": lambda X: np.hstack([X, np.zeros((len(X), 20))]),
    "CSR": sp.csr_array,
    "float32": lambda X: X.astype(np.float32),
}


def cancelling(n=4, least=2.0**-1022, at=1):
    """X, y, the witness and the false separator; rows other than the two from row `at`, which is odd, are clear of the plane."""
    X = np.zeros((n, 2))
    X[:, 0] = np.where(np.arange(n) % 2, 1, -1)
    X[at], X[at + 1] = (least, -least / 2), (2.0**20 * least, -(2.0**20) * least / 2)
    about = ("none", (0, 1), (n, 2))
    witness = gordan.Certificate("witness", *about, rows=(at, at + 1), weights=(2**20, 1))
    return X, np.arange(n) % 2, witness, gordan.Certificate("separator", *about, w=(2.0**900, 2.0**902), b=0.0)


def in_shape(certificate, X):
    """The certificate, for X with some columns of zeros more."""
    w = None if certificate.w is None else certificate.w + (0.0,) * (X.shape[1] - 2)
    return gordan.Certificate(**{**vars(certificate), "shape": X.shape, "w": w})


@pytest.mark.parametrize("name", MODES)
def test_other_modes_are_noticed_and_left_as_they_are(name):
    with mode(MODES[name]):
        assert not floats_are_ieee()
        with ieee_floats():
            assert floats_are_ieee()
            with ieee_floats():  # within another
                assert floats_are_ieee()
            assert floats_are_ieee()
        assert bits() == MODES[name]
        with pytest.raises(KeyError), ieee_floats():
            raise KeyError
        assert bits() == MODES[name]
    assert floats_are_ieee()


@pytest.mark.parametrize("name", MODES)
def test_a_mode_that_changes_within_is_noticed(name):
    with pytest.raises(NotIEEE, match="nothing can be proved"), mode(0), ieee_floats():
        become(MODES[name])
    with mode(FLUSHED):
        with pytest.raises(NotIEEE), ieee_floats():
            become(MODES[name])
        assert bits() == FLUSHED


def test_functions_in_ieee_arithmetic():
    """A decorated function is, in every thread and when it calls itself; what it raises comes through."""

    @ieee_floats()
    def halved(x, depth):
        return halved(x, depth - 1) / 2 if depth else x

    found = []

    def work():
        with mode(FLUSHED):
            found.append(halved(2.0**-1022, 5))

    workers = [threading.Thread(target=work) for _ in range(4)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert found == [2.0**-1027] * 4


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("storage", STORAGES)
def test_verify_in_a_thread_of_another_mode(storage, name):
    """The user's thread: what is true is accepted, what is false is not, and the mode stays."""
    X, y, witness, separator = cancelling(least=2.0**-126 if storage == "float32" else 2.0**-1022)
    X = STORAGES[storage](X)
    witness, separator = in_shape(witness, X), in_shape(separator, X)
    with mode(MODES[name]):
        assert gordan.verify(witness, X, y)
        assert "row 1" in gordan.verify(separator, X, y).reason
        assert bits() == MODES[name]


@pytest.mark.parametrize("name", MODES)
def test_answers_in_a_thread_of_another_mode(name):
    """The functions prove what they always prove; the standalone checker agrees, and so does the hash."""
    rng = np.random.default_rng(0)
    X, y, *_ = cancelling(60)
    Z = rng.normal(size=(60, 3)) + 2 * np.outer(2 * y - 1, [1, 0, 0])
    with mode(MODES[name]):
        verdict = gordan.separate(X, y, intercept="none")
        diagnosis = gordan.diagnose(X, y, intercept="none")
        result = gordan.maximize_margin(Z, y, nu=0.5)
        assert bits() == MODES[name]
        certificates = verdict.certificate, result.certificate
    assert verdict.status == "not-separable"
    assert diagnosis.kind != "complete"
    assert result.status == "solved"
    assert [c.data_hash for c in certificates] == [Problem.of(X, y).hash("none"), Problem.of(Z, y).hash("free")]
    for certificate, data in zip(certificates, (X, Z), strict=True):
        assert standalone.check(json.loads(certificate.to_json()), data.tolist(), y.tolist())[0]


@pytest.mark.parametrize("storage", STORAGES)
def test_what_was_computed_in_another_mode_is_not_remembered(storage):
    """Products, norms and combinations that a search asks for in whatever mode are those of IEEE arithmetic."""
    X, y, _, separator = cancelling()
    X = STORAGES[storage](X) if storage != "float32" else X
    separator = in_shape(separator, X)
    for w in (np.array(separator.w), np.ldexp(separator.w, -1924)):
        problem, other, small, smaller = (Problem.of(data, y) for data in (X, X, X * 0.125, X * 0.125))
        with mode(FLUSHED):
            found, norms = Products.of(problem.X, w), small.X.norms
            found = found.sharpened(np.arange(4))
            upper = Margin(problem.X, problem.signs, Intercept.NONE).upper(np.array([0.0, 2.0**20, 1.0, 0.0]))
        right = Products.of(other.X, w)
        right = right.sharpened(np.arange(4))
        assert found.length == right.length > 0
        assert found.sums.tolist() == right.sums.tolist()
        assert found.absolute.tolist() == right.absolute.tolist()
        assert norms.tolist() == smaller.X.norms.tolist()
        assert (norms[1:3] > 0).all()
        assert upper == Margin(other.X, other.signs, Intercept.NONE).upper(np.array([0.0, 2.0**20, 1.0, 0.0]))
        assert not check(separator, problem)
        head = gordan.Certificate(**{**vars(separator), "w": None})
        assert not accepts(head, problem, np.array(separator.w), None)


@pytest.mark.parametrize(
    ("answer", "options", "status"),
    [(gordan.separate, {}, "not-separable"), (gordan.maximize_margin, {"nu": 0.5}, "solved")],
)
def test_a_callback_that_changes_the_mode(answer, options, status):
    """Proofs are right after it as before, and the mode is the one that it chose."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 8))
    y = np.where(X @ rng.normal(size=8) > 0, 1, 0)
    y[:3] = 1 - y[:3]
    called = []

    def flush(_):
        called.append(bits())
        become(FLUSHED)

    with mode(0):
        result = answer(X, y, callback=flush, **options)
        assert bits() == FLUSHED
        certificate = result.certificate
    assert called
    assert result.status == status
    assert gordan.verify(certificate, X, y)
    assert standalone.check(json.loads(certificate.to_json()), X.tolist(), y.tolist())[0]


@pytest.mark.parametrize("name", MODES)
def test_nothing_is_proved_where_the_mode_cannot_be_set(name, monkeypatch):
    monkeypatch.setattr(floats, "_set_default_mode", lambda: None)
    X, y, witness, separator = cancelling()
    problem = Problem.of(X, y)
    with mode(MODES[name]):
        for certificate in (witness, separator):
            assert "nothing can be proved" in gordan.verify(certificate, X, y).reason
            assert "nothing can be proved" in check(certificate, problem).reason
        assert not accepts(gordan.Certificate(**{**vars(separator), "w": None}), problem, np.array(separator.w), None)
        for answer in (gordan.separate, gordan.maximize_margin, gordan.diagnose):
            with pytest.raises(NotIEEE, match="nothing can be proved"):
                answer(X, y)


def test_the_mode_cannot_be_set_without_the_functions_for_it(monkeypatch):
    class Nothing:
        def __init__(self, name):
            pass

    monkeypatch.setattr("ctypes.CDLL", Nothing)
    assert floats._set_default_mode() is None


# ---- threads that others have started ----------------------------------------------------------------------------------


@pytest.fixture
def pool(monkeypatch):
    """A pool of two threads, and its start in some mode."""
    monkeypatch.setattr(threads, "available", lambda: 2)
    monkeypatch.setattr(memory, "available", lambda: 2)
    monkeypatch.setattr(threads, "_pool", None)

    def start(wanted):
        both = threading.Barrier(2)
        with mode(wanted):  # both threads at once: one that is started later has the mode of that time
            started = [threads._shared_pool().submit(both.wait, 60) for _ in range(2)]
            assert {task.result() for task in started} == {0, 1}
        return threads._pool

    yield start
    threads._pool.shutdown()


def each_pool_thread(work):
    """What it gives in each of the two threads: neither gets on before the other has begun."""
    barrier = threading.Barrier(2)

    def part(lo, hi):
        barrier.wait(60)
        return work()

    return set(threads.run(part, [(0, 1), (1, 2)], 2))


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("storage", ["dense", "CSR"])
def test_pool_threads_that_were_started_in_another_mode(storage, name, pool, monkeypatch):
    """They have the default mode whenever work is handed to them, and their own one when they wait for it."""
    monkeypatch.setattr(reads, "MIN_ENTRIES_FOR_THREADS", 1)
    waiting = pool(MODES[name])
    X, y, witness, separator = cancelling(300_000)
    for _ in range(2):
        assert waiting.submit(bits).result() == MODES[name]
        assert each_pool_thread(bits) == {0}
        assert gordan.verify(witness, STORAGES[storage](X), y)
        assert not gordan.verify(separator, STORAGES[storage](X), y)


def test_pool_threads_whose_mode_cannot_be_set(pool, monkeypatch):
    pool(FLUSHED)
    monkeypatch.setattr(floats, "_set_default_mode", lambda: None)
    X, y, _, separator = cancelling(300_000)
    assert "nothing can be proved" in gordan.verify(separator, X, y).reason


def printed(program):
    """What a program prints, in JSON: a process of its own, since the threads of others keep the mode they have."""
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    found = subprocess.run(
        [sys.executable, "-c", f"from test_floats import *\n{program}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert found.returncode == 0, found.stderr[-2000:]
    return json.loads(found.stdout)


TORCH = """
import torch
torch.set_num_threads(2)
torch.set_flush_denormal(True)
torch.ones(2000, 2000).sum()  # torch's own threads start here
threads.run(lambda lo, hi: None, [(0, 1), (1, 2)], 2)  # and those of gordan
torch.set_flush_denormal(False)
# fewer rows than are worth a pool; of those that torch takes at a time the two would be a second thread's
X, y, *certificates = cancelling(200_000, at=30_001)
flushed = float((torch.full((300_000,), 2.0**-1023, dtype=torch.float64) * 2.0**900 == 0).double().mean())
accepted = [[bool(gordan.verify(c, make(X), y)) for c in certificates] for make in (np.asarray, torch.from_numpy)]
print(json.dumps([flushed, accepted]))
"""


def test_after_torch_has_flushed_subnormals():
    """As around an inference loop. No thread of torch's takes part in a proof, also of a tensor."""
    pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'")
    flushed, accepted = printed(TORCH)
    assert accepted == [[True, False]] * 2
    if flushed == 0:
        pytest.skip("torch did without threads of its own, so that nothing was to be seen")


BLAS = """
become(FLUSHED)
child = os.fork()  # OpenBLAS ends its threads before it, and starts others at the next call
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
A = np.ones((2000, 2000))
A @ A
become(0)
X, w = np.full((60_000, 64), 2.0**-1023), np.full(64, 2.0**900)
def share(found, true):
    return float(np.mean(found != true))
M = matrix.Matrix(memory.Dense(X))
shares = [
    share(M.products(w)[0], 64 * 2.0**-123),
    share(M.absolute(w, np.arange(len(X))), 64 * 2.0**-123),
    share(M.combination(np.full(len(X), 2.0**900)), len(X) * 2.0**-123),
    share(reads.column_sums(np.full(len(X), 2.0**900), X), len(X) * 2.0**-123),
    share(reads.row_sums(X, np.broadcast_to(w, X.shape)), 64 * 2.0**-123),
]
print(json.dumps([share(X @ w, 64 * 2.0**-123), shares]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no other way to make OpenBLAS start its threads anew")
def test_threads_of_a_blas_take_no_part_in_proofs():
    """A share of its products is that of flushed operands; of ours none is."""
    blas, ours = printed(BLAS)
    assert ours == [0.0] * 5
    if blas == 0:
        pytest.skip("this BLAS did without threads of its own, so that nothing was to be seen")


@pytest.mark.parametrize("n", [1, 7, 300])
@pytest.mark.parametrize("d", [1, 2, 8, 9, 40])
def test_sums_of_rows_and_columns(n, d):
    """Against exact sums, for d on either side of what is narrow."""
    rng = np.random.default_rng(n * d)
    A, B = rng.integers(-999, 999, (2, n, d)).astype(np.float64)
    w, q = B[0], rng.integers(-999, 999, n).astype(np.float64)
    assert reads.row_sums(A, w).tolist() == [sum(map(int, row * w)) for row in A]
    assert reads.row_sums(A, B).tolist() == [sum(map(int, row)) for row in A * B]
    assert reads.column_sums(q, A).tolist() == [sum(map(int, column)) for column in (A * q[:, None]).T]
    assert reads.row_sums(A[:, ::-1], w).tolist() == [sum(map(int, row[::-1] * w)) for row in A]


# ---- other machines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODES)
def test_work_on_other_machines_is_in_ieee_arithmetic(name):
    X, _, _, separator = cancelling()
    w, held = np.array(separator.w), stored(X)
    exact = [float(sum(Fraction(x) * Fraction(v) for x, v in zip(row, w.tolist(), strict=True))) for row in X.tolist()]
    absolute = [sum(abs(x * v) for x, v in zip(row, w.tolist(), strict=True)) for row in X.tolist()]
    hashes = Problem.of(X, np.arange(4) % 2).hash("none")
    with mode(MODES[name]):
        (norms,) = tasks.each_block(held, 0, None, (), matrix._norms, {})
        ((sums, _, _),) = tasks.each_block(held, 0, None, (), matrix._products, {}, w, False)
        (sizes,) = tasks.each_block(held, 0, None, (), matrix._absolute, {}, np.abs(w))
        weights = (np.array([0.0, 2.0**20, -1.0, 0.0]),)
        (combined,) = tasks.each_block(held, 0, None, weights, matrix._combination, {"added": True})
        hashed = Problem.of(X, np.arange(4) % 2).hash("none")
    lengths = [sum(Fraction(x) ** 2 for x in row) for row in X.tolist()]
    assert all(Fraction(norm) ** 2 >= square for norm, square in zip(norms.tolist(), lengths, strict=True))
    assert (norms[1:3] > 0).all()
    assert sums.tolist() == exact
    assert sizes.tolist() == absolute
    assert combined.tolist() == [0.0, 0.0]
    assert hashed == hashes


def test_workers_in_another_mode():
    """A cluster whose worker flushes: the answers are those of IEEE arithmetic."""
    distributed = pytest.importorskip("distributed", reason="dask is missing: pip install 'gordan[dask]'")
    da = pytest.importorskip("dask.array", reason="dask is missing: pip install 'gordan[dask]'")
    X, y, witness, separator = cancelling(40)
    options = {"host": "127.0.0.1", "dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", **options) as local,
        distributed.Client(local) as client,
    ):
        client.submit(become, FLUSHED, pure=False).result()
        assert client.submit(bits, pure=False).result() == FLUSHED
        blocks = da.from_array(X, chunks=(10, 2))
        assert gordan.verify(witness, blocks, y)
        assert not gordan.verify(separator, blocks, y)
        assert gordan.separate(blocks, y, intercept="none").status == "not-separable"
        assert client.submit(bits, pure=False).result() == FLUSHED


@pytest.mark.skipif(not CAN_BE_SET, reason=REASON)
@pytest.mark.parametrize("name", ["FTZ", "DAZ", "FTZ and DAZ"])
def test_files_and_words_do_not_depend_on_the_mode(name, tmp_path):
    """Subnormal numbers are written, read and printed as they are where operands are flushed."""
    X, y = np.array([[3 * 2.0**-1060], [-3 * 2.0**-1060]]), [1, 0]
    verdict = gordan.separate(X, y)
    text, words = verdict.certificate.to_json(), repr(verdict)
    model = gordan.MaxMarginClassifier().fit([[0.0], [1.0]], [0, 1])
    model.certificate_ = verdict.certificate
    model.save(tmp_path / "expected")
    with mode(MODES[name]):
        written, read, told = verdict.certificate.to_json(), gordan.Certificate.from_json(text), repr(verdict)
        model.save(tmp_path / "found")
        loaded = gordan.load(tmp_path / "expected")
    assert (written, told) == (text, words)
    assert read == verdict.certificate == loaded.certificate_
    assert (tmp_path / "found").read_bytes() == (tmp_path / "expected").read_bytes()
