"""How fast the rows are read: passes in memory against a plain read of the same array, and passes over a cold file.

    python benchmarks/bandwidth.py memory                       dense and sparse passes
    python benchmarks/bandwidth.py file --gigabytes 8           passes over a cold file, then a solve under RLIMIT_DATA

In memory the figures are the best of several turns, taken in alternation, and for files the median: what else runs on the
machine slows some of them.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numba
import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from threadpoolctl import threadpool_limits

import gordan
from gordan import rows
from gordan.rows.threads import available, run


@numba.njit(nogil=True, cache=False)
def bare(data, indices, indptr, w, lo, hi, out):
    """X w for CSR, nothing else."""
    for i in range(lo, hi):
        s = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            s += data[k] * w[indices[k]]
        out[i] = s


def cut(n, parts=32):
    """Ranges of equal size."""
    return [(n * k // parts, n * (k + 1) // parts) for k in range(parts)]


def best(turns, works):
    """The least seconds of each work, each done once a turn."""
    seconds = [float("inf")] * len(works)
    for _ in range(turns):
        for k, work in enumerate(works):
            started = time.perf_counter()
            work()
            seconds[k] = min(seconds[k], time.perf_counter() - started)
    return seconds


def dense_passes(megabytes, turns):
    """GB/s of a plain sum and of the fused pass, for each width and type."""
    threads = available()
    for dtype in (np.float32, np.float64):
        for d in (50, 500, 5000):
            n = int(megabytes * 1e6) // (d * np.dtype(dtype).itemsize)
            X = np.random.default_rng(0).standard_normal((n, d), dtype=dtype)
            A, flat, w = rows.of(X), X.ravel(), np.full(d, 0.01)
            works = [
                lambda flat=flat: run(lambda lo, hi: flat[lo:hi].sum(), cut(len(flat)), threads),
                lambda flat=flat: run(lambda lo, hi: flat[lo:hi] @ flat[lo:hi], cut(len(flat)), threads),
                lambda A=A, w=w: A.softmin(w),
                lambda A=A, w=w: A.scores(w),
            ]
            for work in works:
                work()
            with threadpool_limits(1):  # the threads are ours
                summed, squared, fused, scores = best(turns, works)
            plain = min(summed, squared)
            size = X.nbytes / 1e9
            print(
                f"| {np.dtype(dtype)} | {d} | {size / plain:.1f} | {size / fused:.1f} | {plain / fused:.0%} "
                f"| {size / scores:.1f} | {plain / scores:.0%} |",
                flush=True,
            )


def sparse_passes(megabytes, turns):
    """Seconds per product: the fused pass is two of them."""
    threads = available()
    for d, per_row in ((20_000, 50), (200_000, 100)):
        n = int(megabytes * 1e6) // (12 * per_row)
        rng = np.random.default_rng(0)
        indices = np.sort(rng.integers(0, d, (n, per_row)), axis=1).ravel().astype(np.int32)
        X = sp.csr_array((rng.normal(size=n * per_row), indices, np.arange(n + 1) * per_row), shape=(n, d))
        X.sum_duplicates()
        A, w, out = rows.of(X), rng.normal(size=d) * 0.01, np.empty(n)
        arrays = A.storage.arrays
        works = [
            lambda arrays=arrays, w=w, out=out, n=n: run(lambda lo, hi: bare(*arrays, w, lo, hi, out), cut(n), threads),
            lambda X=X, w=w: X @ w,
            lambda A=A, w=w: A.softmin(w),
            lambda A=A, w=w: A.scores(w),
        ]
        for work in works:
            work()
        plain, scipy_, fused, scores = best(turns, works)
        print(
            f"| {n} × {d}, {per_row} a row | {1e3 * plain:.0f} | {1e3 * scipy_:.0f} | {1e3 * fused / 2:.0f} "
            f"| {2 * plain / fused:.0%} | {1e3 * scores:.0f} | {plain / scores:.0%} |",
            flush=True,
        )


def write_problem(path, gigabytes, d=500, room=0.2):
    """Gaussian rows pushed `room` away from a plane, float32, written block by block; the labels beside them."""
    n = int(gigabytes * 1e9) // (4 * d)
    rng = np.random.default_rng(0)
    u = rng.normal(size=d).astype(np.float32)
    u /= np.linalg.norm(u)
    y = np.empty(n, np.int8)
    step = (1 << 22) // d
    with path.open("wb") as file:
        npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (n, d)})
        for lo in range(0, n, step):
            X = rng.standard_normal((min(step, n - lo), d), dtype=np.float32)
            y[lo : lo + step] = np.where(X @ u > 0, 1, -1)
            X += np.outer(room * y[lo : lo + step], u)
            file.write(X.tobytes())
        file.flush()
        os.fsync(file.fileno())
    np.save(path.with_suffix(".y.npy"), y)


def file_passes(path, turns):
    """GB/s of a plain sequential read and of passes over the mapped file, all of them cold."""
    X = np.load(path, mmap_mode="r")
    descriptor, buffer = os.open(path, os.O_RDONLY), bytearray(1 << 20)
    A, w = rows.of(X), np.full(X.shape[1], 0.01)

    def cold():
        X._mmap.madvise(mmap.MADV_DONTNEED)  # pages that are mapped are not dropped
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def plain():
        done = 0
        while got := os.preadv(descriptor, [buffer], done):
            done += got

    rows.of(np.array(X[:1000])).softmin(w)  # compiles
    works = {"plain read": plain, "fused pass": lambda: A.softmin(w), "scores": lambda: A.scores(w)}
    found = {name: [] for name in works}
    for _ in range(turns):
        for name, work in works.items():
            cold()
            before = read_bytes()
            started = time.perf_counter()
            work()
            seconds = time.perf_counter() - started
            found[name].append(X.nbytes / 1e9 / seconds)
            print(
                f"  {name}: {found[name][-1]:.2f} GB/s, {(read_bytes() - before) / X.nbytes:.0%} of it from the disk", flush=True
            )
    median = {name: float(np.median(values)) for name, values in found.items()}
    for name, value in median.items():
        print(f"| {name} | {value:.2f} | {max(found[name]):.2f} | {value / median['plain read']:.0%} |")


def read_bytes():
    """Bytes that this process had read from disk."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("read_bytes")).split()[1])


SOLVE = "import sys; sys.path.insert(0, sys.argv[3]); import bandwidth; bandwidth.solve(sys.argv[1], int(sys.argv[2]))"


def solve(path, megabytes):
    """Solve to 1e-4 in a process that may have so much data."""
    resource.setrlimit(resource.RLIMIT_DATA, (megabytes * 10**6,) * 2)
    X, y = np.load(path, mmap_mode="r"), np.load(Path(path).with_suffix(".y.npy"))
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    result = gordan.maximize_margin(X, y, tol=1e-4)
    status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    lower, upper = result.margin
    memory = int(status["VmData"].split()[0]) / 1e3
    print(
        json.dumps(
            {
                "status": result.status, "lower": lower, "upper": upper, "rounds": result.n_iter, "passes": result.passes,
                "seconds": result.seconds, "read from disk, GB": read_bytes() / 1e9, "data at the end, MB": memory,
            }
        )
    )  # fmt: skip


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("memory", "file"))
    parser.add_argument("--megabytes", type=float, default=400, help="of an array in memory")
    parser.add_argument("--gigabytes", type=float, default=8, help="of the file")
    parser.add_argument("--limit", type=int, default=1000, help="RLIMIT_DATA of the solve, in MB")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--file", type=Path, help="an earlier file, with its labels beside it; else one is made and removed")
    parser.add_argument("--no-solve", action="store_true")
    chosen = parser.parse_args()
    print(f"{available()} cores, load {os.getloadavg()[0]:.1f}")
    if chosen.what == "memory":
        print("| type | d | plain sum, GB/s | fused pass, GB/s | share | scores, GB/s | share |")
        dense_passes(chosen.megabytes, chosen.turns)
        print("| CSR | bare A @ w, ms | SciPy, ms | fused pass, ms a product | share | scores, ms | share |")
        sparse_passes(chosen.megabytes, chosen.turns)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.file or Path(folder) / "X.npy"
        if chosen.file is None:
            write_problem(path, chosen.gigabytes)
        file_passes(path, chosen.turns)
        if not chosen.no_solve:
            command = [sys.executable, "-c", SOLVE, str(path), str(chosen.limit), str(Path(__file__).parent)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
