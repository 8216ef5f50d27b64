"""What checking a separator costs, beside one `X @ w` in the same run, and the extra memory it takes.

python benchmarks/verify.py [--rows N] [--columns D]
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc

import numpy as np

import gordan


def seconds(function, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n, d = options.rows, options.columns
    X = rng.standard_normal((n, d))
    w = rng.standard_normal(d)
    y = (X @ w > 0).astype(int)
    certificate = gordan.Certificate("separator", "none", (0, 1), (n, d), w=tuple(w.tolist()), b=0.0)
    product = seconds(lambda: X @ w)
    check = seconds(lambda: gordan.verify(certificate, X, y), 3)
    assert gordan.verify(certificate, X, y)
    tracemalloc.start()
    gordan.verify(certificate, X, y)
    extra = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"{n:,} × {d} float64: X @ w {1000 * product:.0f} ms, verify {1000 * check:.0f} ms, ratio {check / product:.1f}")
    print(f"extra memory while verifying: {extra / 1e6:.0f} MB, {extra / X.nbytes:.3f} of X")


if __name__ == "__main__":
    main()
