"""What checking a separator costs, beside one `X @ w` in the same run, and the extra memory it takes.

python benchmarks/verify.py [--rows N] [--columns D] [--checker]

With --checker it is `python3 -I check.py proof.json X.npy --labels y.npy` that is timed, the file of plain Python that `gordan
checker` prints: 1,000,000 × 50 is to take 90 s at most.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from clock import median_seconds

import gordan
from gordan.certificates import standalone


def checker(n: int, d: int) -> None:
    """Seconds of the standalone checker for a separator with a bracket, in a process of its own."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal(d)
    X = rng.standard_normal((n, d))
    y = (X @ w > 0).astype(int)
    X += np.outer(2 * y - 1, w) * 0.02
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", y)
        (folder / "proof.json").write_text(gordan.separate(X, y).certificate.to_json())
        begin = time.perf_counter()
        command = [sys.executable, "-I", standalone.__file__, "proof.json", "X.npy", "--labels", "y.npy"]
        told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
        print(f"{n:,} × {d} float64, standalone checker: {time.perf_counter() - begin:.1f} s\n{told}", end="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--checker", action="store_true")
    options = parser.parse_args()
    if options.checker:
        return checker(options.rows, options.columns)
    rng = np.random.default_rng(0)
    n, d = options.rows, options.columns
    X = rng.standard_normal((n, d))
    w = rng.standard_normal(d)
    y = (X @ w > 0).astype(int)
    certificate = gordan.Certificate("separator", "none", (0, 1), (n, d), w=tuple(w.tolist()), b=0.0)
    product = median_seconds(lambda: X @ w)
    check = median_seconds(lambda: gordan.verify(certificate, X, y), 3)
    assert gordan.verify(certificate, X, y)
    tracemalloc.start()
    gordan.verify(certificate, X, y)
    extra = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"{n:,} × {d} float64: X @ w {1000 * product:.0f} ms, verify {1000 * check:.0f} ms, ratio {check / product:.1f}")
    print(f"extra memory while verifying: {extra / 1e6:.0f} MB, {extra / X.nbytes:.3f} of X")
    return None


if __name__ == "__main__":
    main()
