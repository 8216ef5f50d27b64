"""Linear classifiers of many classes on a GPU: seconds of whole calls, X on the device, y there as well, proof included.

`python benchmarks/classes.py --out docs/gpu` prints Markdown and writes it with a JSON twin. Rows are made on the device in
float16: class c has the mean s·μ_c, μ_c a random unit vector, and every entry has noise N(0, 1) on top. "limit kept": no call,
nor one that may take `--tight` seconds, took longer than its limit by more than a tenth of it and 0.3 s. Beside the multinomial
loss: the training accuracy of torch's L-BFGS (`probe.Logistic`) for the same problem after 100 steps, and its seconds.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import report
import torch
from probe import Logistic, probe

import gordan

SETS = {"50 classes": (1_280_000, 1024, 50, 6.0), "20 overlapping classes": (500_000, 768, 20, 3.0)}
TASKS = [
    {"loss": "squared_hinge", "C": 1e-4, "tol": 1e-6},
    {"loss": "squared_hinge", "C": 1.0, "tol": 1e-4},
    {"loss": "logistic", "C": 1e-4, "tol": 1e-6},
    {"loss": "multinomial", "C": 1e-4, "tol": 1e-4},
    {"loss": "multinomial", "C": 1e-2, "tol": 1e-4},
    {"loss": "hinge", "C": 1e-4, "tol": 1e-3},
]
LBFGS_STEPS = 100


def accuracy(model: gordan.LinearClassifier, X: torch.Tensor, y: torch.Tensor) -> float:
    """Share of the rows whose own class has the largest score."""
    W = torch.from_numpy(model.coef_).to(X.device, torch.float32)
    b = torch.from_numpy(model.intercept_).to(X.device, torch.float32)
    right = 0
    for lo in range(0, len(X), 1 << 16):
        right += int(((X[lo : lo + (1 << 16)].float() @ W.T + b).argmax(1) == y[lo : lo + (1 << 16)]).sum())
    return right / len(X)


def fitted(task: dict, X: torch.Tensor, y: torch.Tensor, limit: float) -> tuple[gordan.LinearClassifier, float]:
    """The classifier, and the seconds of its fit."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gordan.LinearClassifier(**task, time_limit=limit).fit(X, y)
    return model, time.perf_counter() - started


def kept(seconds: float, limit: float) -> bool:
    """Whether a limit was kept."""
    return seconds <= 1.1 * limit + 0.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--shrink", type=int, default=1, help="divide the rows by this, to try it out")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--tight", type=float, default=0.5, help="a limit that is hit")
    parser.add_argument("--tasks", type=int, nargs="*", help="numbers of the tasks")
    arguments = parser.parse_args()
    lines = []
    for name, (n, d, k, strength) in SETS.items():
        X, y = probe(n // arguments.shrink, d, k, strength, arguments.device, 0)
        for number, task in enumerate(TASKS):
            if arguments.tasks is not None and number not in arguments.tasks:
                continue
            seconds = []
            for _ in range(arguments.repeats + 1):  # the first one warms up
                model, took = fitted(task, X, y, arguments.limit)
                seconds.append(took)
                if took > 10:
                    break
            tight = fitted(task, X, y, arguments.tight)[1]
            line = {"data": f"{len(X):,} × {d}, {name}", **task, "seconds": statistics.median(seconds[1:] or seconds)}
            line |= {"first": seconds[0], "worst gap": float(np.max(model.gap_)), "accuracy": accuracy(model, X, y)}
            line |= {"steps": model.n_iter_, f"limit {arguments.tight:g}": tight}
            line["limit kept"] = kept(max(seconds), arguments.limit) and kept(tight, arguments.tight)
            if task["loss"] == "multinomial":
                ridge = torch.full((d + 1, 1), 1 / (task["C"] * len(X)), device=X.device)
                ridge[-1] = 0.0
                peer = Logistic(X, y, k, ridge).until(2.0, LBFGS_STEPS, arguments.limit)
                line |= {"L-BFGS accuracy": peer["accuracy"], "L-BFGS seconds": peer["seconds"]}
            lines.append(line)
            print(line, flush=True)
        del X, y
    text = report.table(lines)
    print(text)
    report.save(arguments.out, "classes", text, lines)


if __name__ == "__main__":
    main()
