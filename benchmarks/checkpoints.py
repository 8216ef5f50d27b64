"""What a checkpoint costs: its size, the seconds to write and to read it, and the time of a round that could be kept.

    python benchmarks/checkpoints.py --rows 1000000 --columns 20

How runs survive being killed is counted by tests/kills.py.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import gordan
from gordan.checkpoint import Checkpoint
from gordan.dynamics import Snapshot

METHODS = ("auto", "smooth_perceptron", "accelerated_perceptron", "nesterov", "mirror_prox_perceptron")


def problem(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Random float32 points with a gap between the classes."""
    X = np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)
    y = np.where(X.sum(axis=1) > 0, 1, -1)
    X += np.float32(0.02) * y[:, None].astype(np.float32)
    return X, y


def large(n: int, d: int, folder: Path) -> None:
    """Size and seconds of the checkpoint of each method after five rounds."""
    X, y = problem(n, d)
    print(f"{n} rows, {d} columns, {X.nbytes / 1e6:.0f} MB")
    for method in METHODS:
        path = folder / method
        gordan.maximize_margin(X, y, method=method, max_iter=5, tol=1e-6, checkpoint=path)
        begin = time.perf_counter()
        found = Checkpoint(path)
        run = found.restored("run", Snapshot)
        read = time.perf_counter() - begin
        size = path.stat().st_size
        begin = time.perf_counter()
        found.write(run=run, notes=None)
        write = time.perf_counter() - begin
        print(
            f"{method:24} {size / 1e6:8.2f} MB = {size / 8 / n:.2f} numbers a row, written in {write:.2f} s, read in {read:.2f} s"
        )


def small(folder: Path, rounds: int = 5000, times: int = 5) -> None:
    """Microseconds of a round on a tiny problem, without and with a checkpoint (which is written once)."""
    A = np.random.default_rng(0).standard_normal((60, 4))
    for told, path in (("without", None), ("with", folder / "small")):
        best = np.inf
        for _ in range(times):
            if path is not None:
                path.unlink(missing_ok=True)
            begin = time.perf_counter()
            gordan.play(A, "smooth_perceptron", rounds, checkpoint=path)
            best = min(best, time.perf_counter() - begin)
        print(f"a round of 60 x 4 {told} a checkpoint: {1e6 * best / rounds:.0f} µs")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        large(options.rows, options.columns, Path(name))
        small(Path(name))
