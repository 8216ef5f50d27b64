"""Is the easier question answered sooner? `python benchmarks/order.py --data DATA [--sets digits mfeat] [--repeats 5]`.

`separate` beside `maximize_margin(tol=1e-2)`, with an intercept and without, on every set of a folder and on made-up ones. They
take turns, so that what else the machine does hits both alike, and medians are compared. A verdict needs no more than a rough
margin does, so no ratio should be much above 1; the last lines give the largest ones.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from pathlib import Path

import sets

import gordan

MADE = ("digits", "planted:separable:20000:50", "planted:overlap:20000:50", "planted:overlap:1000:250")
LIMIT, TOL, PROMISED = 60.0, 1e-2, 1.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sets", nargs="*", help="names of sets; all if left out")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    keys = [str(options.data / f"{name}.npz") for name in sets.names(options.data)] if options.data else []
    keys = [key for key in (*keys, *MADE) if not options.sets or Path(key).stem in options.sets]
    found: list[tuple[float, str]] = []
    for key in keys:
        data = sets.load(key)
        for intercept in ("free", "none"):
            runs: list[tuple[float, float]] = []
            while len(runs) <= options.repeats and (not runs or sum(runs[-1]) < 20):  # the first one compiles
                begin = time.perf_counter()
                verdict = gordan.separate(data.X, data.y, intercept=intercept, time_limit=LIMIT)
                middle = time.perf_counter()
                margin = gordan.maximize_margin(data.X, data.y, intercept=intercept, tol=TOL, time_limit=LIMIT)
                runs.append((middle - begin, time.perf_counter() - middle))
            one, other = (statistics.median(run[k] for run in runs[1:] or runs) for k in (0, 1))
            name = f"{Path(key).stem}, {intercept}"
            found.append((one / other, name))
            times = f"{one * 1e3:9.1f} ms {other * 1e3:9.1f} ms {one / other:6.2f}"
            print(f"{name:36s} {times}  {verdict.status}, {margin.status}", flush=True)
    above = [f"{name} ({ratio:.2f})" for ratio, name in sorted(found, reverse=True) if ratio > PROMISED]
    median = statistics.median(ratio for ratio, _ in found)
    print(f"separate / maximize_margin(tol={TOL:g}): median {median:.2f}, largest {max(found)[0]:.2f}")
    print(f"above {PROMISED}: {', '.join(above) or 'none'}")


if __name__ == "__main__":
    main()
