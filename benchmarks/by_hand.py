"""What parts that are written by hand take beside a library that could do them: python benchmarks/by_hand.py

Processor time, the best of some repetitions, taken by turns; see docs/by_hand.md. For text files: reading.py.
"""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Callable

import numpy as np
from flint import arb, arb_mat
from joblib import Parallel, delayed
from scipy.optimize import line_search, linprog
from scipy.special import expit

import gordan
from gordan.certificates import elementary
from gordan.certificates.matrix import Matrix, Products
from gordan.certificates.problem import Problem
from gordan.rows import ascent, kernels, stored, threads
from gordan.solve import loss_newton, quick

Work = Callable[[], object]


def seconds(works: dict[str, Work], repeat: int = 5) -> dict[str, float]:
    """Processor time of each, the best of `repeat`."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeat + 1):  # the first one imports and compiles
        for name, work in works.items():
            began = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - began)
    return best


def enclosed_scores() -> dict[str, Work]:
    """Bounds for X w, 2,000 x 100: floats with error bounds, and python-flint's balls."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((2000, 100)), rng.standard_normal(100)
    return {
        "certificates.matrix": lambda: Products.of(Matrix(stored(X)), w).scores(0.0, np.ones(2000)),
        "flint arb": lambda: arb_mat(X.tolist()) * arb_mat([[value] for value in w.tolist()]),
    }


def enclosed_losses() -> dict[str, Work]:
    """Bounds for log(1 + e^-z), 100,000 numbers."""
    z = np.random.default_rng(0).standard_normal(100_000) * 10
    return {
        "certificates.elementary": lambda: elementary.softplus_above(z),
        "flint arb": lambda: [(-arb(value)).exp().log1p() for value in z.tolist()],
    }


def verdicts() -> dict[str, Work]:
    """Separable or not, 400 x 40: a proof, and HiGHS without one."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 40)), rng.integers(0, 2, 400)
    A = np.column_stack((X, np.ones(400))) * np.where(y, 1.0, -1.0)[:, None]
    return {
        "separate": lambda: gordan.separate(X, y),
        "HiGHS": lambda: linprog(np.zeros(41), A_ub=-A, b_ub=-np.ones(400), bounds=(None, None), method="highs"),
    }


def two_pieces() -> dict[str, Work]:
    """A pass of two pieces on two threads, without work in them: 100 passes."""
    ranges, pool = [(0, 1), (1, 2)], Parallel(n_jobs=2, prefer="threads")

    def piece(lo: int, hi: int) -> int:
        return hi - lo

    def joblib() -> None:
        with pool:
            for _ in range(100):
                pool(delayed(piece)(lo, hi) for lo, hi in ranges)

    return {"rows.threads": lambda: [threads.run(piece, ranges, 2) for _ in range(100)], "joblib": joblib}


def checksums() -> dict[str, Work]:
    """A checksum of 16 MB."""
    words = np.random.default_rng(0).standard_normal(2_000_000).view(np.uint64)
    words.flags.writeable = False
    return {
        "rows.kernels.mixed_bits": lambda: kernels.mixed_bits(words),
        "zlib.crc32": lambda: zlib.crc32(words),
        "hashlib.sha256": lambda: hashlib.sha256(words),
    }


def equal_rows() -> dict[str, Work]:
    """Keys by which equal rows are found, 100,000 x 20."""
    import pandas

    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 20))
    problem, frame = Problem.of(X, rng.integers(0, 2, len(X))), pandas.DataFrame(X)
    return {
        "solve.quick.row_keys": lambda: quick.row_keys(problem),
        "pandas.util.hash_pandas_object": lambda: pandas.util.hash_pandas_object(frame, index=False),
        "numpy.unique": lambda: np.unique(X, axis=0, return_inverse=True),
    }


def orders() -> dict[str, Work]:
    """A random order of 100,000 rows."""
    rows, generator = np.arange(100_000), np.random.default_rng(0)
    return {
        "rows.ascent.shuffle": lambda: ascent.shuffle(rows, len(rows), np.uint64(1)),
        "numpy.random.Generator": lambda: generator.shuffle(rows),
    }


def step_lengths() -> dict[str, Work]:
    """The length of Newton's first step for the logistic loss, 200,000 x 50, from the scores of the start."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200_000, 50))
    A *= np.where(A @ rng.standard_normal(50) + rng.standard_normal(len(A)) > 0, 1.0, -1.0)[:, None]
    w, z = np.zeros(50), np.zeros(len(A))

    def value(w: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -(A @ w)).sum() + 0.5 * w @ w)

    def gradient(w: np.ndarray) -> np.ndarray:
        return w - A.T @ expit(-(A @ w))

    first = gradient(w)
    step = -np.linalg.solve(A.T @ (0.25 * A) + np.eye(50), first)
    of_losses = loss_newton.derivatives(lambda z: expit(-z), lambda z, alpha: alpha * (1.0 - alpha))

    def by_scores() -> float:
        line = loss_newton.Line(z, A @ step, float(w @ step), float(step @ step))
        return loss_newton.line_search(line, of_losses, 0.1 * abs(float(first @ step)))

    return {
        "solve.loss_newton.line_search": by_scores,
        "scipy.optimize.line_search": lambda: line_search(value, gradient, w, step, first, value(w)),
    }


if __name__ == "__main__":
    for measured in (
        *(enclosed_scores, enclosed_losses, verdicts, two_pieces),
        *(checksums, equal_rows, orders, step_lengths),
    ):
        found = seconds(measured())
        told = ", ".join(f"{name} {1e3 * spent:.2f} ms" for name, spent in found.items())
        print(f"{(measured.__doc__ or '').splitlines()[0]}  {told}")
