"""Several classes: seconds of `LinearClassifier().fit`, certified to 1e-4, beside scikit-learn's `LinearSVC().fit`, as they come.

    python benchmarks/several.py FOLDER [--repeats 3] [--loss squared_hinge] [--sets mfeat,images] [--cpu]

The sets of several classes in FOLDER (see `sets`), dense ones with standardized columns, and two of 60,000 × 784 with ten
classes: Gaussian rows about means of length 5 ("made up"), and "images" of strokes, moved and blurred, of which most pixels are 0
and a twentieth has a random label. LinearSVC stops at its default tolerance of 1e-4, which says nothing about the distance
from the optimum; how far its objective is above the proved optimum is shown beside it, for the class where that is worst. Ours
has a penalized intercept here, so that both solve the same problem. Calls take turns; the median counts. With `--cpu` it is one
of processor time, for a busy machine: set OMP_NUM_THREADS=1 for it.
"""

from __future__ import annotations

import argparse
import statistics
import time
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


def images(n: int = 60_000, side: int = 28, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Images of three strokes between points of their class, each in one of 150 places, with noise where there is ink."""
    rng = np.random.default_rng(0)
    points = rng.uniform(6, side - 6, (k, 1, 4, 2)) + rng.normal(0, 1.3, (k, 6, 4, 2))
    t = np.linspace(0, 1, 12)[:, None]
    strokes = np.concatenate([points[:, :, [j]] * (1 - t) + points[:, :, [j + 1]] * t for j in range(3)], axis=2)
    pixels = np.stack(np.mgrid[:side, :side], axis=-1)
    away = np.sum((pixels[..., None, :] - strokes[:, :, None, None]) ** 2, axis=-1).min(axis=-1)
    y, how, moved = rng.integers(k, size=n), rng.integers(6, size=n), rng.integers(-2, 3, (n, 2))
    X = np.exp(-away / 2.2)[y, how]
    for move in np.unique(moved, axis=0):
        own = (moved == move).all(axis=1)
        X[own] = np.roll(X[own], move, axis=(1, 2))
    X = X.reshape(n, -1) * rng.uniform(0.6, 1.3, (n, 1))
    X = np.clip(X + rng.normal(0, 0.15, X.shape) * (X > 0.02), 0, 1)
    return np.where(X < 0.1, 0.0, X), np.where(rng.random(n) < 0.05, rng.integers(k, size=n), y)


def cases(folder: Path, chosen: list[str]) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Name, X and y."""
    for name in sets.names(folder):
        if chosen and name not in chosen:
            continue
        data = sets.load(str(folder / f"{name}.npz"))
        labels = data.labels
        if labels is None or len(np.unique(labels)) < 3:
            continue
        yield name, data.standardized, labels
    for name, make in {"made up": made_up, "images": images}.items():
        if not chosen or name in chosen:
            yield name, *make()


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--loss", default="squared_hinge", choices=["squared_hinge", "hinge"])
    parser.add_argument("--sets", default="")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines, clock = [], time.process_time if options.cpu else time.perf_counter
    for name, X, y in cases(options.folder, [part for part in options.sets.split(",") if part]):
        ours = gordan.LinearClassifier(options.loss, intercept="penalized", tol=1e-4)
        theirs = LinearSVC(loss=options.loss, random_state=0)
        some = np.random.default_rng(1).permutation(len(y))[:400]
        ours.fit(X[some], y[some])  # compiled
        fits = partial(ours.fit, X, y), partial(theirs.fit, X, y)
        times = [tuple(timed(fit, clock)[0] for fit in fits) for _ in range(options.repeats)]
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
