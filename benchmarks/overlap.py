"""Proved verdicts on dense data that overlaps, beside HiGHS: `python benchmarks/overlap.py [--columns 100 250] [--out FOLDER]`.

X is Gaussian, labels follow one column with as much noise. Data on which the separation is quasi-complete has a further column
that is 1 in a tenth of the rows, all of one class, and 0 elsewhere; where it is complete, the labels follow a plane without
noise. `separate` and `diagnose` prove their answers, and the latter says of each coefficient which way it goes; HiGHS solves the
linear programs that answer the same questions (max t with A w ≥ t, |w_j| ≤ 1, t ≤ 1; for `diagnose` that of Konis, max Σ A_i w
with A w ≥ 0, |w_j| ≤ 1: the kind alone) and proves nothing. The ways take turns, and the median of their times is shown. The
certificate of `separate`
is checked by `verify` and, up to `--standalone` columns, by the standalone checker in a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import report
from clock import timed
from scipy.optimize import linprog

import gordan
from gordan.blas import blas_threads
from gordan.certificates import standalone


def problem(n: int, d: int, kind: str = "overlap"):
    r = np.random.default_rng(d)
    X = r.standard_normal((n, d))
    if kind == "complete":
        return X, (X @ r.standard_normal(d) > 0).astype(int)
    y = (X[:, 0] + r.standard_normal(n) > 0).astype(int)
    if kind == "quasi-complete":
        X[:, -1] = 0
        X[np.flatnonzero(y)[: n // 10], -1] = 1
    return X, y


def signed(X, y):
    return np.where(y > 0, 1.0, -1.0)[:, None] * np.column_stack([X, np.ones(len(X))])


def highs(X, y, limit):
    """Whether t > 0; None where the time was up."""
    A = signed(X, y)
    n, k = A.shape
    found = linprog(
        np.append(np.zeros(k), -1.0),
        A_ub=np.column_stack([-A, np.ones(n)]),
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * k + [(None, 1)],
        method="highs",
        options={"time_limit": limit},
    )
    return None if found.status else "separable" if found.x[-1] > 1e-9 else "not-separable"


def konis(X, y, limit):
    """Whether a weak separator exists."""
    A = signed(X, y)
    found = linprog(
        -A.sum(axis=0),
        A_ub=-A,
        b_ub=np.zeros(len(A)),
        bounds=[(-1, 1)] * A.shape[1],
        method="highs",
        options={"time_limit": limit},
    )
    return None if found.status else "overlap" if -found.fun < 1e-6 else "separated"


def checked_alone(certificate, X, y) -> float:
    """Seconds of the standalone checker in a process of its own, which reads the data from files."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "c.json").write_text(certificate.to_json())
        np.save(base / "X.npy", X)
        np.save(base / "y.npy", y)
        command = [sys.executable, "-I", "-S", standalone.__file__, base / "c.json", base / "X.npy", "--labels", base / "y.npy"]
        seconds, done = timed(lambda: subprocess.run(command, capture_output=True, text=True, check=False))
        assert done.stdout.startswith("accepted: "), done
        return seconds


def told(value: float, limit: float = float("inf")) -> str:
    return f"{value:.3g} s" if value < float("inf") else f"over {limit:.0f} s"


def ratio(theirs: float, ours: float, limit: float) -> str:
    return f"{theirs / ours:.2g}" if theirs < float("inf") else f"over {limit / ours:.2g}"


def medians(ways, repeat: int, limit: float):
    """Of the seconds that each takes, by turns; infinite where one had no answer in time."""
    times = {name: [] for name in ways}
    late = set()
    for _ in range(repeat):
        for name, (work, right) in ways.items():
            if name in late:
                continue
            seconds, answer = timed(work)
            assert answer in (right, None), (name, answer)
            times[name].append(seconds)
            if answer is None or seconds > limit / 4:
                late.add(name)  # once is enough
            if answer is None:
                times[name] = [float("inf")]
    return {name: median(each) for name, each in times.items()}


def separated(n: int, d: int, kind: str, repeat: int, limit: float) -> str:
    """The line of data that is separated, for `diagnose`."""
    X, y = problem(n, d, kind)
    ways = {
        "diagnose": (lambda: gordan.diagnose(X, y).kind, kind),
        "konis": (lambda: konis(X, y, limit), "separated"),
    }
    shown = medians(ways, repeat, limit)
    certificate = gordan.diagnose(X, y).certificate
    assert gordan.verify(certificate, X, y)
    cells = [f"{n:,} × {d:,}", kind, told(shown["diagnose"]), told(shown["konis"], limit)]
    cells += [ratio(shown["konis"], shown["diagnose"], limit), f"{len(certificate.to_json()) / 1000:.0f} kB"]
    return "| " + " | ".join(cells) + " |"


def line(n: int, d: int, repeat: int, limit: float, alone: int) -> str:
    X, y = problem(n, d)
    ways = {
        "separate": (lambda: gordan.separate(X, y).status, "not-separable"),
        "highs": (lambda: highs(X, y, limit), "not-separable"),
        "diagnose": (lambda: gordan.diagnose(X, y).kind, "overlap"),
        "konis": (lambda: konis(X, y, limit), "overlap"),
    }
    shown = medians(ways, repeat, limit)
    certificate = gordan.separate(X, y).certificate
    with blas_threads(0):
        seconds, check = timed(lambda: gordan.verify(certificate, X, y))
    assert check
    by_itself = f"{checked_alone(certificate, X, y):.1f} s" if d <= alone else ""

    cells = [
        f"{n:,} × {d:,}",
        told(shown["separate"]),
        told(shown["highs"], limit),
        ratio(shown["highs"], shown["separate"], limit),
    ]
    cells += [told(shown["diagnose"]), told(shown["konis"], limit), ratio(shown["konis"], shown["diagnose"], limit)]
    cells += [f"{len(certificate.rows):,}", f"{len(certificate.to_json()) / 1000:.0f} kB", told(seconds), by_itself]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, nargs="+", default=[100, 250, 500, 1000])
    parser.add_argument("--rows-a-column", type=int, nargs="+", default=[4, 20])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a linear program")
    parser.add_argument("--standalone", type=int, default=500, help="columns up to which the standalone checker is run")
    parser.add_argument("--tables", nargs="+", choices=("overlap", "separated"), default=["overlap", "separated"])
    parser.add_argument("--out", type=Path, default=Path("docs/verdicts"))
    arguments = parser.parse_args()
    for each in (gordan.separate, gordan.diagnose):  # what is compiled or imported on first use
        each(*problem(1200, 100))
    head = ["rows × columns", "`separate`", "HiGHS", "speedup", "`diagnose`", "Konis, HiGHS", "speedup"]
    head += ["rows of the proof", "certificate", "`verify`", "standalone"]
    sizes = [(times * d, d) for d in arguments.columns for times in arguments.rows_a_column]
    given = arguments.repeat, arguments.limit
    tables = {
        "overlap": (head, (line(n, d, *given, arguments.standalone) for n, d in sizes)),
        "separated": (
            ["rows × columns", "kind", "`diagnose`", "Konis, HiGHS", "speedup", "certificate"],
            (separated(n, d, kind, *given) for kind in ("quasi-complete", "complete") for n, d in sizes),
        ),
    }
    for name in arguments.tables:
        head, lines = tables[name]
        shown = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        print("\n".join(shown), flush=True)
        for each in lines:
            shown.append(each)
            print(each, flush=True)
        report.save(arguments.out, name, "\n".join(shown))


if __name__ == "__main__":
    main()
