"""gordan and its peers side by side.

    python benchmarks/compare.py all --data FOLDER [--out FOLDER] [--quick] [--resume] [--only SET ...]
    python benchmarks/compare.py verdict|margin|soft|growth|first-call|report ...

A section writes `SECTION.json` after every set, so that `--resume` goes on where a run was stopped; `report` makes the tables
and plots from what is there. Settings of a peer are tried in turn and the best one counts; a peer that does not get there counts
at its limit and is marked with >.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import report
import sets
from rounds import machine
from timing import Worker

ACCURACIES = (1e-2, 1e-4, 1e-6)
SECTIONS = ("verdict", "margin", "soft", "growth", "first-call")
# The sets of the soft margin, and those of a quick run.
SOFT = ("heart_scale", "sonar", "german_numer", "svmguide1", "spambase", "madelon", "mushrooms", "sms_spam", "basehock", "a9a")
QUICK = ("heart_scale", "sonar", "mushrooms", "khan_srbct", "relathe", "a9a")
Runs = list[dict[str, Any]]


@dataclass
class Bench:
    """One run of the programme: where things are, how long a peer may take, and the worker."""

    data: Path | None
    out: Path
    quick: bool
    resume: bool
    only: list[str]
    limits: dict[str, float]
    worker: Worker
    begun: float = field(default_factory=time.perf_counter)

    def names(self, wanted: tuple[str, ...] | None = None) -> list[str]:
        """The sets of this run, in order of size."""
        if self.data is None:
            return []
        found = sets.names(self.data)
        if self.only or self.quick or wanted:
            chosen = [set(part) for part in (self.only, QUICK if self.quick else (), wanted or ()) if part]
            found = [name for name in found if all(name in part for part in chosen)]
        return found

    def key(self, name: str) -> str:
        assert self.data is not None
        return str(self.data / f"{name}.npz")

    def say(self, text: str) -> None:
        print(f"[{time.perf_counter() - self.begun:6.0f} s] {text}", flush=True)

    def call(self, peer: str, key: str, intercept: str, limit: float, nu: float | None = None, **settings: Any) -> dict[str, Any]:
        """One timed call, told with its settings; the answer is judged for that intercept and nu."""
        passed = dict(settings)
        if peer.startswith("gordan"):
            passed["intercept"] = intercept
        if peer in ("gordan margin", "LIBSVM nu"):
            passed["nu"] = nu
        run = self.worker.call(peer, key, passed, intercept, nu, limit) | {"settings": settings}
        if "failed" in run:
            self.say(f"    {peer} {settings}: {run['failed']}")
        return run

    def section(self, name: str, entries: list[str], measure: Callable[[str], dict[str, Any]]) -> None:
        """Measure each entry and write after each; those of an earlier run of the same commit are kept if asked for."""
        path = self.out / f"{name}.json"
        before = json.loads(path.read_text()) if self.resume and path.exists() else {}
        same = before.get("commit") == commit()
        kept: dict[str, Any] = before.get("entries", {}) if same else {}
        told = {"commit": commit(), "machine": environment(), "limits": self.limits, "entries": kept}
        for entry in entries:
            if entry not in kept:
                kept[entry] = measure(entry)
                self.out.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(told, indent=1) + "\n")


def commit() -> str:
    """Of the code measured; marked where it has been changed since."""
    here = Path(__file__).parent.parent
    try:
        name = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=here, capture_output=True, text=True, check=True)
        changed = subprocess.run(["git", "status", "--porcelain", "src"], cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name.stdout.strip() + ("+changes" if changed.stdout.strip() else "")


def environment() -> dict[str, Any]:
    """The machine, and versions of everything compared."""
    import importlib.metadata

    versions = {name: importlib.metadata.version(name) for name in ("scikit-learn", "clarabel")}
    return machine() | versions | {"threads": int(os.environ["OMP_NUM_THREADS"])}


# ---- trying the settings of a peer -----------------------------------------------------------------------------------


def until_zero_error(bench: Bench, peer: str, key: str, grid: list[dict[str, Any]], limit: float) -> dict[str, Any]:
    """The fastest setting that leaves no training error, each given what is left of the limit."""
    best, left = None, limit
    for settings in grid:
        run = bench.call(peer, key, "free", left, **settings)
        left -= run["seconds"]
        if run.get("errors") == 0 and (best is None or run["seconds"] < best["seconds"]):
            best = run
        # finer settings rarely beat one that has done it
        if left <= 0.1 or (best is not None and run is not best):
            break
    return best or {"seconds": limit, "timeout": True}


def until_accurate(
    bench: Bench,
    peer: str,
    key: str,
    intercept: str,
    lines: list[list[dict[str, Any]]],
    limit: float,
    gamma: float,
    nu: float | None = None,
) -> Runs:
    """Runs along lines of settings, each finer than the one before, until the finest accuracy is reached.

    The first line may take the whole limit; the others as long as could still be an improvement.
    """
    runs: Runs = []
    for line in lines:
        reached = report.time_to(runs, ACCURACIES[-1], limit)
        left = limit if not runs else limit / 3 if reached["timeout"] else 2 * reached["seconds"]
        for settings in line:
            run = bench.call(peer, key, intercept, left, nu, **settings)
            run["accuracy"] = 1 - run["reached"] / gamma if "reached" in run else math.inf
            runs.append(run)
            left -= run["seconds"]
            if run["accuracy"] <= ACCURACIES[-1] or run.get("timeout") or "failed" in run or left <= 0.1:
                break
    return runs


def ours(bench: Bench, key: str, intercept: str, limit: float, nu: float | None = None) -> tuple[Runs, dict[str, Any]]:
    """gordan at each accuracy, certified; and a finer run that peers are judged against."""
    runs = []
    for tol in ACCURACIES:
        run = bench.call("gordan margin", key, intercept, limit, nu, tol=tol)
        runs.append(run | {"accuracy": run["gap"] if run.get("status") == "solved" else math.inf})
        if run.get("status") == "not-separable":
            return runs, run
    return runs, bench.call("gordan margin", key, intercept, limit, nu, tol=1e-8)


# ---- sections --------------------------------------------------------------------------------------------------------


def verdict(bench: Bench) -> None:
    """A proved yes or no, against HiGHS; beside it, unproved, learners that stop at no training error."""

    def measure(name: str) -> dict[str, Any]:
        key, limit = bench.key(name), bench.limits["unproved"]
        data = sets.load(key)
        entry: dict[str, Any] = {"n": data.X.shape[0], "d": data.X.shape[1]}
        entry["gordan"] = bench.call("gordan verdict", key, "free", bench.limits["gordan"])
        entry["HiGHS"] = bench.call("HiGHS", key, "free", bench.limits["HiGHS"])
        if entry["gordan"].get("status") == "separable":
            unit = 1 / data.radius**2
            grids: dict[str, list[dict[str, Any]]] = {
                "Perceptron": [{"epochs": epochs} for epochs in (5, 20, 100, 500, 2500, 12500)],
                "LIBLINEAR": [{"C": C * unit, "tol": tol} for C in (1e2, 1e6) for tol in (1e-1, 1e-2, 1e-3)],
                "LIBSVM": [{"C": C * unit, "tol": tol} for C in (1e2, 1e6) for tol in (1e-1, 1e-3)],
            }
            for peer, grid in grids.items():
                entry[peer] = until_zero_error(bench, peer, key, grid, limit)
        bench.say(f"verdict {name}: " + ", ".join(f"{k} {report.clock(v)}" for k, v in entry.items() if isinstance(v, dict)))
        return entry

    bench.section("verdict", bench.names(), measure)


def margin(bench: Bench) -> None:
    """Time to accuracy of the hard margin on the separable sets, each peer with the intercept it has."""

    def measure(name: str) -> dict[str, Any]:
        key, limit = bench.key(name), bench.limits["peer"]
        data = sets.load(key)
        entry: dict[str, Any] = {"n": data.X.shape[0], "d": data.X.shape[1]}
        for intercept in ("free", "penalized"):
            runs, finer = ours(bench, key, intercept, bench.limits["gordan"])
            if finer.get("status") == "not-separable":
                bench.say(f"margin {name}: not separable")
                return entry | {"separable": False}
            gamma = finer["margin"][1]
            C = 1 / gamma**2  # above every optimal weight, so that no weight is capped
            tols = [10.0**-k for k in range(1, 9)]
            lines: dict[str, list[list[dict[str, Any]]]] = {
                "free": {
                    "LIBSVM": [[{"C": C, "tol": tol} for tol in tols[::2]]],
                    "Clarabel": [[{"tol": tol} for tol in (1e-3, 1e-6, 1e-9)]],
                },
                "penalized": {
                    "LIBLINEAR": [
                        [{"C": C, "tol": tol} for tol in tols],
                        [{"C": C / 20, "tol": tol} for tol in tols],
                    ]
                },
            }[intercept]
            entry[intercept] = {"gordan": runs, "reference": finer["margin"]}
            for peer, line in lines.items():
                entry[intercept][peer] = until_accurate(bench, peer, key, intercept, line, limit, gamma)
            bench.say(f"margin {name} {intercept}: " + report.line(entry[intercept], ACCURACIES, bench.limits["gordan"], limit))
        return entry

    bench.section("margin", bench.names(), measure)


def soft(bench: Bench) -> None:
    """Soft margins: nu against NuSVC (free intercept) and, at the C that has the same solution, LinearSVC (penalized)."""

    def measure(name: str) -> dict[str, Any]:
        key, limit = bench.key(name), bench.limits["soft"]
        data = sets.load(key)
        n = len(data.y)
        nu = round(1.6 * float(min(np.mean(data.y > 0), np.mean(data.y < 0))), 3)
        entry: dict[str, Any] = {"n": n, "d": data.X.shape[1], "nu": nu}
        for intercept in ("free", "penalized"):
            runs, finer = ours(bench, key, intercept, bench.limits["gordan"], nu)
            entry[intercept] = {"gordan": runs, "reference": finer.get("margin")}
            if finer.get("status") != "solved":
                bench.say(f"soft {name} {intercept}: {finer.get('status')}")
                continue
            gamma = finer["margin"][1]
            if intercept == "free":
                line = [{"tol": 10.0**-k} for k in (1, 3, 5, 7)]
                entry[intercept]["NuSVC"] = until_accurate(bench, "LIBSVM nu", key, intercept, [line], limit, gamma, nu)
            elif finer["level"] > 0:
                C = 1 / (nu * n * gamma * finer["level"])
                line = [{"C": C, "tol": 10.0**-k} for k in range(1, 9)]
                entry[intercept]["LIBLINEAR"] = until_accurate(bench, "LIBLINEAR", key, intercept, [line], limit, gamma, nu)
            bench.say(f"soft {name} {intercept}: " + report.line(entry[intercept], ACCURACIES, bench.limits["gordan"], limit))
        return entry

    bench.section("soft", bench.names(SOFT), measure)


def growth(bench: Bench) -> None:
    """Made-up data: n grows at d = 50, d grows at n = 2,000."""
    n_sizes = [10_000, 40_000, 160_000] if bench.quick else [10_000, 100_000, 500_000, 2_000_000]
    d_sizes = [100, 500, 2500] if bench.quick else [100, 1000, 10_000, 100_000]
    questions = {f"n:{n}": (n, 50) for n in n_sizes} | {f"d:{d}": (2000, d) for d in d_sizes}
    slow: set[str] = set()

    def measure(question: str) -> dict[str, Any]:
        n, d = questions[question]
        separable, overlap = f"planted:separable:{n}:{d}", f"planted:overlap:{n}:{d}"
        limit = bench.limits["gordan"]
        entry: dict[str, Any] = {"n": n, "d": d}
        entry["verdict, separable"] = bench.call("gordan verdict", separable, "free", limit)
        entry["margin to 1e-6"] = bench.call("gordan margin", separable, "free", limit, tol=1e-6)
        line = question[0]
        if line not in slow:
            found = entry["margin to 1e-6"].get("margin", [0, 1.0])[1]
            entry["LIBLINEAR, tol 1e-3"] = bench.call(
                "LIBLINEAR", separable, "penalized", bench.limits["growth"], C=1 / found**2, tol=1e-3
            )
            if entry["LIBLINEAR, tol 1e-3"].get("timeout"):
                slow.add(line)
        if d <= n / 10:
            entry["verdict, overlap"] = bench.call("gordan verdict", overlap, "free", limit)
        bench.say(f"growth {question}: " + ", ".join(f"{k} {report.clock(v)}" for k, v in entry.items() if isinstance(v, dict)))
        return entry

    bench.section("growth", list(questions), measure)


def first_call(bench: Bench) -> None:
    """What a fresh process costs, with the caches of Python and numba warm, as they are after the first call of an installed
    package."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 20))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, "yes", "no")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        header = ",".join(f"x{j}" for j in range(20)) + ",label\n"
        lines = (",".join(f"{value:.6g}" for value in row) + f",{label}\n" for row, label in zip(X, y, strict=True))
        path.write_text(header + "".join(lines))
        separate = "import gordan; from gordan.io import read; t = read(sys.argv[1]); print(gordan.separate(t.X, t.y))"
        if subprocess.run([sys.executable, "-m", "gordan", "separate", "--help"], capture_output=True).returncode == 0:
            command = ["-m", "gordan", "separate", str(path)]
        else:
            command = ["-c", "import sys; " + separate, str(path)]
        questions = {"python -c pass": ["-c", "pass"], "import gordan": ["-c", "import gordan"], "separate FILE.csv": command}

        def measure(question: str) -> dict[str, Any]:
            times = []
            for _ in range(6):
                begin = time.perf_counter()
                done = subprocess.run([sys.executable, *questions[question]], capture_output=True, text=True, env=environment)
                times.append(time.perf_counter() - begin)
                if done.returncode > 1:
                    return {"seconds": math.inf, "failed": done.stderr[-500:]}
            bench.say(f"first-call {question}: {statistics.median(times[1:]):.2f} s")
            return {"seconds": statistics.median(times[1:]), "fastest": min(times[1:])}

        bench.section("first-call", list(questions), measure)


def main(arguments: list[str]) -> None:
    """Run the sections asked for, then write the tables and plots."""
    parser = argparse.ArgumentParser(description="gordan and its peers side by side")
    parser.add_argument("section", choices=("all", "report", *SECTIONS))
    parser.add_argument("--data", type=Path, help="folder of sets")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    parser.add_argument("--quick", action="store_true", help="few sets, short limits: two minutes")
    parser.add_argument("--resume", action="store_true", help="keep what an earlier run of the same commit has measured")
    parser.add_argument("--only", nargs="+", default=[], metavar="SET")
    parser.add_argument("--limit", type=float, help="one limit in seconds for every peer")
    parser.add_argument(
        "--threads", type=int, default=len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    )
    options = parser.parse_args(arguments)
    if options.section in ("all", "verdict", "margin", "soft") and (options.data is None or not sets.names(options.data)):
        parser.error("--data must name a folder with sets (NAME.npz)")
    limits = {"gordan": 60.0, "HiGHS": 60.0, "peer": 30.0, "unproved": 5.0, "soft": 10.0, "growth": 20.0}
    if options.quick or options.limit:
        limits |= dict.fromkeys(("HiGHS", "peer", "unproved", "soft", "growth"), options.limit or 1.5)
    bench = Bench(options.data, options.out, options.quick, options.resume, options.only, limits, Worker(options.threads))
    run: dict[str, Callable[[Bench], None]] = {
        "verdict": verdict,
        "margin": margin,
        "soft": soft,
        "growth": growth,
        "first-call": first_call,
    }
    try:
        for name in SECTIONS if options.section == "all" else (options.section,):
            if name in run:
                run[name](bench)
    finally:
        bench.worker.close()
    report.write(options.out, ACCURACIES)
    bench.say(f"written to {options.out}")


if __name__ == "__main__":
    main(sys.argv[1:])
