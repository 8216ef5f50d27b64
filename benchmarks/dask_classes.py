"""Least losses on local Dask workers: seconds of `LinearClassifier().fit` beside the same fit in one process, and beside dask-ml.

    python benchmarks/dask_classes.py [--rows 400000] [--d 100] [--classes 20] [--repeats 3]

Rows of overlapping classes (Gaussian, means of length 3) in 8 blocks, held by 2 workers of one thread; "one process" has them in
memory, and two threads. Two classes, logistic loss: dask-ml's LogisticRegression (`pip install dask-ml`; left out where it is
missing) solves the same problem by its solvers lbfgs and newton at their default tolerance; *above* is how far its objective is
above the least value, as a share of it, at most. dask-ml has no classifier of several classes. All of it runs on the loopback.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import dask.array as da
import numpy as np
import report
from clock import median_seconds
from distributed import Client, LocalCluster

import gordan

BLOCKS = 8


def classes(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows about the mean of their class, float32."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((k, d))
    means *= 3 / np.linalg.norm(means, axis=1, keepdims=True)
    y = rng.integers(k, size=n)
    return (rng.standard_normal((n, d)) + means[y]).astype(np.float32), y


def objective(X: np.ndarray, y: np.ndarray, w: np.ndarray, b: float) -> float:
    """½‖w‖² + Σ log(1 + e^-z)."""
    z = np.where(y == 1, 1, -1) * (X @ w + b)
    return 0.5 * float(w @ w) + float(np.logaddexp(0, -z).sum())


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--d", type=int, default=100)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        for k, loss in ((2, "logistic"), (options.classes, "squared_hinge"), (options.classes, "multinomial")):
            X, y = classes(options.rows, options.d, k)
            there = client.persist(da.from_array(X, chunks=(options.rows // BLOCKS, options.d)))
            labels = client.persist(da.from_array(y, chunks=options.rows // BLOCKS))
            model = gordan.LinearClassifier(loss)
            spread = median_seconds(lambda: model.fit(there, labels), options.repeats)  # noqa: B023
            gap = float(np.max(model.gap_))
            alone = median_seconds(lambda: gordan.LinearClassifier(loss).fit(X, y), options.repeats)  # noqa: B023
            data = f"{len(X):,} × {options.d}, {k} classes, {loss}"
            lines.append({"data": data, "what": "gordan, 2 workers", "seconds": spread, "proved gap": gap})
            lines.append({"data": data, "what": "gordan, one process", "seconds": alone})
            if k == 2:
                least = float(np.ravel(model.objective_)[0])
                lines += peers(data, there, labels, (X, y, least), options.repeats)
            print(lines, flush=True)
    print(report.table(lines))


def peers(data: str, there: Any, labels: Any, held: tuple[np.ndarray, np.ndarray, float], repeats: int) -> list[dict[str, Any]]:
    """dask-ml's solvers."""
    try:
        from dask_ml.linear_model import LogisticRegression
    except ImportError:
        return [{"data": data, "what": "dask-ml is missing: pip install dask-ml"}]
    found, (X, y, least) = [], held
    for solver in ("lbfgs", "newton"):
        model = LogisticRegression(solver=solver)
        took = median_seconds(lambda: model.fit(there, labels), repeats)  # noqa: B023
        above = objective(X, y, np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])) / least - 1
        found.append({"data": data, "what": f"dask-ml, {solver}, 2 workers", "seconds": took, "above": above})
    return found


if __name__ == "__main__":
    main()
