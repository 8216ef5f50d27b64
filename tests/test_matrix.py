"""Methods × sets × backends × dtypes: the bracket is right at every recorded round, for every method and form on every backend.

By weak duality it is right if the lower end belongs to a w and the upper end to a p of the set; both are recomputed from the raw
rows in float64.
"""

from __future__ import annotations

import tempfile

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import every_method, supports
from ledger import ends, lowest
from problems import p_norm, separable
from test_blocks import cut

import gordan
from gordan.geometry import Simplex, dual_exponent
from gordan.io.parts import Csr
from gordan.methods.rescaled_perceptron import OWN_ROWS
from gordan.rows import mapped

METHODS = every_method()
# The passes before the first round, at most, where they are more than 2: the epochs of the double oracle.
START = {"double_oracle": 30}
PROBLEM = separable(24, 6, 0.05, seed=21, halves=True)
N = PROBLEM.n
NO_DASK = "dask is missing: pip install 'gordan[dask]'"
SETS = {
    "simplex": {},
    "caps": {"caps": np.linspace(2, 9, N) / N},
    "halves": {"halves": PROBLEM.halves},
    "caps+halves": {"caps": np.linspace(2, 9, N) / N, "halves": PROBLEM.halves},
}


def tensor(A):
    """A torch tensor in memory: the passes of the GPU rows, without their kernels."""
    torch = pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'")
    torch.set_num_threads(1)
    return torch.from_numpy(A)


def file_of(A):
    """A in a file, mapped."""
    with tempfile.TemporaryDirectory() as folder:  # the mapping outlives the name
        np.save(f"{folder}/A.npy", A)
        return np.load(f"{folder}/A.npy", mmap_mode="r")


def csr_files(A):
    """A in the three mapped files of CSR."""
    csr = sp.csr_array(A)
    return Csr(file_of(csr.data), file_of(csr.indices.astype(np.int32)), file_of(csr.indptr.astype(np.int64)), csr.shape)


def dask_array(A):
    """A in two blocks, which the worker of `cluster` holds."""
    return pytest.importorskip("dask.array", reason=NO_DASK).from_array(A, chunks=(N // 2 + 1, 6))


BACKENDS = {"dense": np.asarray, "csr": sp.csr_array, "csc": sp.csc_matrix, "torch": tensor}
BACKENDS |= {"blocks": lambda A: cut(A, 7), "file": file_of, "csr-files": csr_files, "dask": dask_array}
ON_DISK = ("file", "csr-files")
# The first two play all sets and options for 40 rounds. What is particular to another storage shows in a few rounds (one is some
# tasks for a scheduler in Dask), without a set and with the one that asks for most.
MAIN = ("dense", "csr")
FEW, ROUNDS = ("simplex", "caps+halves"), {"dense": 40, "csr": 40, "dask": 3}


def cells():
    """Every method and form on every backend; with further options, which change nothing about storages, on two of them.

    Sets that a method refuses are refused before a row is read, so on one backend.
    """
    seen = set()
    for label, method in METHODS.items():
        first = (method.name, method.form) not in seen
        seen.add((method.name, method.form))
        for kind, sets in SETS.items():
            why = supports(method, sets)
            marks = [] if why is None else [pytest.mark.xfail(raises=gordan.InputError, strict=True, reason=why)]
            backends = MAIN[:1] if why is not None else BACKENDS if first and kind in FEW else MAIN
            for backend in backends:
                for dtype in ("float32", "float64"):
                    yield pytest.param(method, sets, backend, dtype, marks=marks, id=f"{label}-{kind}-{backend}-{dtype}")


@pytest.mark.parametrize(("method", "sets", "backend", "dtype"), list(cells()))
def test_bracket_is_right_at_every_recorded_round(method, sets, backend, dtype, monkeypatch, request):
    if backend == "dask":
        request.getfixturevalue("cluster")
    if backend in ON_DISK:
        monkeypatch.setattr(mapped, "LARGE_FILE_BYTES", 1)  # visited in the order of the file, and read ahead
    dense = np.where(np.abs(PROBLEM.A) > 0.02, PROBLEM.A, 0.0).astype(dtype) * 7.5
    A = dense.astype(np.float64)
    tol = 1e-9 if dtype == "float64" else 1e-6
    p_set = Simplex(N, **sets)
    q = dual_exponent(method.norm)
    lower_of, upper_of = ends(method, A, **sets)
    floor = ceiling = 0.0  # the best lower bound from the outputs alone, and from the moves too
    best_upper = np.inf

    def look(moment):
        nonlocal floor, ceiling, best_upper
        margin = lowest(A @ moment.w_out, **sets)
        length = p_norm(moment.w_out, q)
        assert abs(moment.margin - margin) <= tol * 10 * max(1.0, length)
        floor = max(floor, lower_of(moment.w_out))
        ceiling = max(ceiling, floor)
        if moment.w is not None:
            ceiling = max(ceiling, lower_of(moment.w))
        for p in (moment.p, moment.p_bar):
            assert p_set.contains(p)
            best_upper = min(best_upper, upper_of(p))
        assert floor - tol * 10 <= moment.lower <= ceiling + tol * 10
        assert method.form != "game" or moment.lower >= ceiling - tol * 10
        assert abs(moment.upper - best_upper) <= tol * 10
        assert moment.lower <= moment.upper + tol

    rounds = ROUNDS.get(backend, 10)
    trace = gordan.play(BACKENDS[backend](dense), method, rounds, record=range(1, rounds + 1), callback=look, **sets)
    assert abs(lower_of(trace.w_best) - trace.lower[-1]) <= tol * 10
    assert abs(upper_of(trace.p_best) - trace.upper[-1]) <= tol * 10
    assert p_set.contains(trace.p_best)


@pytest.mark.parametrize("label", [label for label in METHODS if np.isnan(METHODS[label].passes)])
def test_cost_of_rounds_that_differ(label):
    """A round looks at as many rows as there are to look at; with rows of its own, it has passes of its basic method too."""
    method = METHODS[label]
    trace = gordan.play(PROBLEM.A, method, 100, record=[1, 2])
    a_round = 8 if method.plain is OWN_ROWS else 2
    assert trace.passes[-1] <= a_round * trace.t[-1] + START.get(method.name, 2)


@pytest.mark.parametrize("label", [label for label in METHODS if not np.isnan(METHODS[label].passes)])
def test_cost_of_a_round_is_as_stated(label):
    """`Method.passes` is what a round touches; the start and the observer are not in it."""
    method = METHODS[label]
    traces = [gordan.play(PROBLEM.A, method, T, record=[1, 2]) for T in (50, 100)]
    assert traces[1].passes[-1] - traces[0].passes[-1] == pytest.approx(50 * method.passes)
    assert traces[0].passes[-1] <= 50 * method.passes + 1
