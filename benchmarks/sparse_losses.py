"""Losses of many sparse rows: `python benchmarks/sparse_losses.py [--rows 1000000] [--columns 100000] [--losses hinge,...]`.

Rows of 50 entries, whose columns are the more frequent the lower their number, and labels that follow a plane with noise.
Seconds on the clock and of the processor to a certified gap of 1e-4, and how far memory grows beyond what X takes.
"""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import gordan

ENTRIES = 50


def resident() -> float:
    """The memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def rows(n: int, d: int) -> tuple[sp.csr_array, np.ndarray]:
    """X in float32, and y."""
    rng = np.random.default_rng(0)
    columns = np.sort((d * rng.random((n, ENTRIES), dtype=np.float32) ** 2).astype(np.int32), axis=1)
    values = rng.standard_normal((n, ENTRIES), dtype=np.float32) / np.float32(ENTRIES**0.5)
    X = sp.csr_array((values.ravel(), columns.ravel(), np.arange(0, n * ENTRIES + 1, ENTRIES, dtype=np.int32)), shape=(n, d))
    X.sum_duplicates()
    return X, X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) > 0


def main() -> None:
    """A line for each loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100_000)
    parser.add_argument("--losses", default="squared_hinge,logistic,hinge")
    options = parser.parse_args()
    X, y = rows(options.rows, options.columns)
    for loss in options.losses.split(","):
        gordan.minimize_loss(X[:2000], y[:2000], loss=loss)  # compiled
        before, peak, over = resident(), [0.0], threading.Event()

        def watch(peak: list[float] = peak, over: threading.Event = over) -> None:
            while not over.wait(0.02):
                peak.append(resident())

        watching = threading.Thread(target=watch)
        watching.start()
        clock, processor = time.perf_counter(), time.process_time()
        found = gordan.minimize_loss(X, y, loss=loss, tol=1e-4)
        seconds = f"{time.perf_counter() - clock:.1f} s, processor {time.process_time() - processor:.1f} s"
        over.set()
        watching.join()
        size = f"{options.rows:,} × {options.columns:,}"
        print(
            f"{loss:14} {size}: {found.status}, gap {found.gap:.1e}, {seconds}, {max(peak) - before:.0f} MB beside X", flush=True
        )


if __name__ == "__main__":
    main()
