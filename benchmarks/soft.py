"""Seconds and memory of soft margins of many rows, and by what power of n the seconds grow.

    python benchmarks/soft.py                               # 150,000 × 100 to 10,000,000 × 20: some minutes, 4 GB
    python benchmarks/soft.py --sizes 100000x20,1000000x20  # these alone

X is float32, labels are the sign of the first column with noise, nu = 0.4, tol = 1e-4; a size is a process of its own, so that
its peak is. "beside X" is the peak of the call less what was in use before it.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time

SIZES = "150000x100,1000000x100,1000000x20,10000000x20"


def one(n: int, d: int, noise: float) -> None:
    """One size, in this process."""
    import numpy as np

    import gordan

    rng = np.random.default_rng(0)
    gordan.maximize_margin(rng.standard_normal((20_000, d), dtype=np.float32), np.arange(20_000) % 2, nu=0.4)  # compiles
    X = rng.standard_normal((n, d), dtype=np.float32)
    y = X[:, 0] + noise * rng.standard_normal(n) > 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    r = gordan.maximize_margin(X, y, nu=0.4)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps([str(r.status), r.gap, r.passes, seconds, peak / 1024, X.nbytes / 2**20]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--noise", type=float, default=0.3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        n, d = map(int, options.one.split("x"))
        one(n, d, options.noise)
        return
    print("| rows × columns | status | gap | passes | seconds | MB beside X | MB of X |\n|---|---|---|---|---|---|---|")
    found: dict[int, list[tuple[int, float]]] = {}
    for size in options.sizes.split(","):
        n, d = map(int, size.split("x"))
        command = [sys.executable, __file__, "--one", size, "--noise", str(options.noise)]
        status, gap, passes, seconds, peak, whole = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        print(f"| {n:,} × {d} | {status} | {gap:.1e} | {passes:.0f} | {seconds:.2f} | {peak:.0f} | {whole:.0f} |", flush=True)
        found.setdefault(d, []).append((n, seconds))
    for d, sizes in found.items():
        (n, seconds), (more, longer) = sizes[0], sizes[-1]
        if more > n:
            print(f"{d} columns: seconds grow as n^{math.log(longer / seconds) / math.log(more / n):.2f}")


if __name__ == "__main__":
    main()
