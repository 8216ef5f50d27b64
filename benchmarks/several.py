"""Several classes: seconds of `LinearClassifier().fit`, certified to 1e-4, beside scikit-learn's `LinearSVC().fit`, as they come.

    python benchmarks/several.py FOLDER [--repeats 3] [--loss squared_hinge]

The sets of several classes in FOLDER (see `sets`), dense ones with standardized columns, and 60,000 × 784 with ten classes:
Gaussian rows about means of length 5. LinearSVC stops at its default tolerance of 1e-4, which says nothing about the distance
from the optimum; how far its objective is above the proved optimum is shown beside it, for the class where that is worst. Ours
has a penalized intercept here, so that both solve the same problem. Calls take turns; the median counts.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import report
import sets
from clock import timed
from losses import value
from sklearn.svm import LinearSVC

import gordan


def made_up(n: int = 60_000, d: int = 784, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Rows about the mean of their class."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((k, d))
    means *= 5 / np.linalg.norm(means, axis=1, keepdims=True)
    y = rng.integers(k, size=n)
    return rng.standard_normal((n, d)) + means[y], y


def cases(folder: Path) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Name, X and y."""
    for name in sets.names(folder):
        data = sets.load(str(folder / f"{name}.npz"))
        labels = data.labels
        if labels is None or len(np.unique(labels)) < 3:
            continue
        yield name, data.standardized, labels
    yield "made up", *made_up()


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--loss", default="squared_hinge", choices=["squared_hinge", "hinge"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for name, X, y in cases(options.folder):
        ours = gordan.LinearClassifier(options.loss, intercept="penalized", tol=1e-4)
        theirs = LinearSVC(loss=options.loss, random_state=0)
        some = np.random.default_rng(1).permutation(len(y))[:400]
        ours.fit(X[some], y[some])  # compiled
        fits = partial(ours.fit, X, y), partial(theirs.fit, X, y)
        times = [tuple(timed(fit)[0] for fit in fits) for _ in range(options.repeats)]
        mine, other = (statistics.median(column) for column in zip(*times, strict=True))
        above = []
        for j, label in enumerate(ours.classes_):
            signs, least = np.where(y == label, 1, -1), float(ours.objective_[j, 0])
            above.append(value(options.loss, X, signs, 1.0, theirs.coef_[j], float(theirs.intercept_[j]), True) / least - 1)
        line = {"set": name, "n": X.shape[0], "d": X.shape[1], "classes": len(ours.classes_), "seconds": mine}
        line |= {"gap": float(np.max(ours.gap_)), "LinearSVC": other, "above optimum": max(above), "ratio": other / mine}
        lines.append(line)
        print(line, flush=True)
    print(report.table(lines))


if __name__ == "__main__":
    main()
