"""Two versions of gordan on the same calls: `python benchmarks/trees.py OLD NEW --data DATA [--repeats 5] [--only separate]`.

OLD and NEW are checkouts (folders with `src/gordan`). Each has a process of its own that has everything imported and compiled;
they take turns on every call, so that what else the machine does hits both alike, and medians are compared, with `--processor`
of processor time. Statuses must be the same and intervals must overlap. The last lines give the geometric mean of the ratios
NEW/OLD and the largest one, by call, and the cells above the largest ratio that is promised.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Ratios up to this are promised for every cell.
PROMISED = 1.3
# Calls by name: what is asked, as Python that sees gordan, np, X and y, and whether (lower, upper) is compared.
CALLS = {
    "separate": "gordan.separate(X, y, time_limit=LIMIT)",
    "separate none": "gordan.separate(X, y, intercept='none', time_limit=LIMIT)",
    "margin 1e-2": "gordan.maximize_margin(X, y, tol=1e-2, time_limit=LIMIT)",
    "margin 1e-6": "gordan.maximize_margin(X, y, tol=1e-6, time_limit=LIMIT)",
    "margin penalized": "gordan.maximize_margin(X, y, tol=1e-6, intercept='penalized', time_limit=LIMIT)",
    "margin inf": "gordan.maximize_margin(X, y, tol=1e-4, norm=np.inf, time_limit=LIMIT)",
    "nu": "gordan.maximize_margin(X, y, tol=1e-4, nu=0.3 * min(np.mean(y > 0), np.mean(y < 0)), time_limit=LIMIT)",
    "diagnose": "gordan.diagnose(X, y, time_limit=LIMIT)",
    "verify": "gordan.verify(certificate, X, y)",
}
# Made-up sets beside those of the folder: pixels are dense with many equal columns and a constant one.
MADE = ("planted:separable:20000:50", "planted:overlap:20000:50", "planted:overlap:1000:250", "pixels")


def load(key: str):
    """X and y of a set."""
    import numpy as np
    import sets

    if key != "pixels":
        data = sets.load(key)
        return data.X, data.y
    rng = np.random.default_rng(3)
    ink = rng.random((2, 784)) < 0.25
    y = rng.integers(0, 2, 12_665)
    X = (ink[y] & (rng.random((len(y), 784)) < 0.8)) * rng.integers(1, 256, (len(y), 784)).astype(np.float64)
    X[:, 0] = 1.0
    return X, np.where(y == 1, 1, -1)


def serve() -> None:
    """Answer calls from standard input: a line names a set, a call, its time limit and whether processor time is measured."""
    import time

    import numpy as np

    import gordan

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    kept = None
    for line in sys.stdin:
        key, call, limit, processor = json.loads(line)
        clock = time.process_time if processor else time.perf_counter
        if kept is None or kept[0] != key:
            X, y = load(key)
            kept = key, X, y, None
        _, X, y, certificate = kept
        names = {"gordan": gordan, "np": np, "X": X, "y": y, "LIMIT": limit, "certificate": certificate}
        if call == "verify" and certificate is None:
            names["certificate"] = gordan.separate(X, y, time_limit=limit).certificate
            kept = key, X, y, names["certificate"]
        begin = clock()
        try:
            found = eval(CALLS[call], names)
            told = {
                "status": str(getattr(found, "status", getattr(found, "kind", bool(found)))),
                "margin": getattr(found, "margin", None),
            }
        except Exception as error:
            told = {"status": f"{type(error).__name__}: {error}"[:120], "margin": None}
        told["seconds"] = clock() - begin
        print(json.dumps(told), file=answers, flush=True)


class Tree:
    """The process of one checkout."""

    def __init__(self, folder: Path, limit: float, processor: bool) -> None:
        self.limit, self.processor = limit, processor
        path = os.pathsep.join([str(folder.absolute() / "src"), str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"PYTHONPATH": path}
        command = [sys.executable, __file__, "--serve"]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(self, key: str, call: str) -> dict:
        """One timed call."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([key, call, self.limit, self.processor]), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def agree(one: dict, other: dict) -> bool:
    """Whether statuses are the same and intervals overlap."""
    if one["margin"] is None or other["margin"] is None:
        return one["status"] == other["status"]
    (a, b), (c, d) = one["margin"], other["margin"]
    return one["status"] == other["status"] and a <= d and c <= b


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="time limit of a call, in seconds")
    parser.add_argument("--processor", action="store_true", help="compare processor time, which other programs hardly change")
    parser.add_argument("--only", nargs="*", choices=CALLS, default=[*CALLS])
    parser.add_argument("--sets", nargs="*", help="names of sets; all if left out")
    options = parser.parse_args()
    import sets

    keys = [str(options.data / f"{name}.npz") for name in sets.names(options.data)] if options.data else []
    keys = [key for key in (*keys, *MADE) if not options.sets or Path(key).stem in options.sets or key in options.sets]
    trees = [Tree(folder, options.limit, options.processor) for folder in (options.old, options.new)]
    ratios: dict[str, list[tuple[float, str]]] = {call: [] for call in options.only}
    for key in keys:
        for call in options.only:
            first = [tree.call(key, call) for tree in trees]  # compiles
            runs = [first, [tree.call(key, call) for tree in trees]]
            while len(runs) <= options.repeats and sum(told["seconds"] for told in runs[-1]) < 20:
                runs.append([tree.call(key, call) for tree in trees])
            timed = runs[1:]
            old, new = (statistics.median(run[side]["seconds"] for run in timed) for side in (0, 1))
            same = all(agree(*run) for run in runs)
            ratios[call].append((new / old, Path(key).stem))
            differs = (
                ""
                if same
                else f"   DIFFERS: {first[0]['status']} {first[0]['margin']} / {first[1]['status']} {first[1]['margin']}"
            )
            times = f"{old * 1e3:10.1f} ms {new * 1e3:10.1f} ms {new / old:6.2f}"
            print(f"{Path(key).stem:28s} {call:17s} {times}  {first[1]['status']}{differs}", flush=True)
    for call, found in ratios.items():
        mean = math.exp(statistics.mean(math.log(ratio) for ratio, _ in found))
        print(f"{call:17s} geometric mean {mean:.3f}, largest {max(found)[0]:.2f} ({max(found)[1]})")
    above = sorted(((ratio, f"{name}, {call}") for call, found in ratios.items() for ratio, name in found if ratio > PROMISED))
    print(f"above {PROMISED}: " + ("; ".join(f"{name} ({ratio:.2f})" for ratio, name in reversed(above)) or "none"))


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else main()
