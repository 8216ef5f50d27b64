"""Seconds and memory of soft margins and losses of many rows, and by what power of n the seconds grow.

    python benchmarks/soft.py                               # 150,000 × 100 to 10,000,000 × 20: some minutes, 4 GB
    python benchmarks/soft.py --sizes 100000x20,1000000x20  # these alone
    python benchmarks/soft.py --sizes 300000x100000,1000000x100000 --entries 50 --asked nu,squared_hinge,logistic,hinge

X is float32, labels are the sign of the first column with noise; with `--entries` X is sparse, with so many in each row at random
columns, and labels are the sign of the row's score at random weights with noise. nu = 0.4, C = 1, tol = 1e-4; a size is a process
of its own, so that its peak is. "beside X" is the peak of the call less what was in use before it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SIZES = "150000x100,1000000x100,1000000x20,10000000x20"


def made_up(n: int, d: int, entries: int, noise: float) -> tuple[Any, Any]:
    """Rows and labels."""
    import numpy as np
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    if not entries:
        X = rng.standard_normal((n, d), dtype=np.float32)
        return X, X[:, 0] + noise * rng.standard_normal(n) > 0
    columns = rng.integers(0, d // entries, (n, entries), dtype=np.int32)
    columns += np.arange(entries, dtype=np.int32) * (d // entries)  # they rise along a row
    values = np.abs(rng.standard_normal(n * entries, dtype=np.float32))
    values /= np.float32(math.sqrt(entries))
    X = csr_array((values, columns.reshape(-1), np.arange(n + 1, dtype=np.int64) * entries), shape=(n, d))
    score = X @ rng.standard_normal(d)
    return X, score + noise * rng.standard_normal(n) > 0


def kilobytes(name: str) -> int:
    """A line of what Linux says of the memory of this process: VmRSS is in use, VmHWM was at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def one(n: int, d: int, entries: int, noise: float, asked: str, limit: float) -> None:
    """One size, in this process."""
    import gordan

    def answer(X: Any, y: Any) -> Any:
        if asked == "nu":
            return gordan.maximize_margin(X, y, nu=0.4, time_limit=limit)
        return gordan.minimize_loss(X, y, loss=asked, time_limit=limit)

    answer(*made_up(20_000, d, entries, noise))  # compiles
    X, y = made_up(n, d, entries, noise)
    Path("/proc/self/clear_refs").write_text("5")  # the peak from here on, not that of making X
    before = kilobytes("VmRSS")
    begin = time.perf_counter()
    r = answer(X, y)
    seconds = time.perf_counter() - begin
    peak = kilobytes("VmHWM") - before
    size = sum(part.nbytes for part in (X.data, X.indices, X.indptr)) if entries else X.nbytes
    print(json.dumps([str(r.status), r.gap, r.passes, seconds, peak / 1024, size / 2**20]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--noise", type=float, default=0.3)
    parser.add_argument("--entries", type=int, default=0)
    parser.add_argument("--asked", default="nu")
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        n, d = map(int, options.sizes.split("x"))
        one(n, d, options.entries, options.noise, options.asked, options.limit)
        return
    print(
        "| rows × columns | asked | status | gap | passes | seconds | MB beside X | MB of X |\n|---|---|---|---|---|---|---|---|"
    )
    found: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for asked, size in itertools.product(options.asked.split(","), options.sizes.split(",")):
        n, d = map(int, size.split("x"))
        command = [sys.executable, __file__, "--one", "--sizes", size, "--asked", asked, "--noise", str(options.noise)]
        command += ["--entries", str(options.entries), "--limit", str(options.limit)]
        status, gap, passes, seconds, peak, whole = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        numbers = f"{gap:.1e} | {passes:.0f} | {seconds:.2f} | {peak:.0f} | {whole:.0f}"
        print(f"| {n:,} × {d:,} | {asked} | {status} | {numbers} |", flush=True)
        found.setdefault((asked, d), []).append((n, seconds))
    for (asked, d), sizes in found.items():
        (n, seconds), (more, longer) = sizes[0], sizes[-1]
        if more > n:
            print(f"{asked}, {d:,} columns: seconds grow as n^{math.log(longer / seconds) / math.log(more / n):.2f}")


if __name__ == "__main__":
    main()
