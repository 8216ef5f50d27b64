"""Planes of several classes in memory, found together and one by one: seconds of `MaxMarginClassifier().fit`, proofs included.

`python benchmarks/planes.py` prints Markdown; with `--data FOLDER` the sets of several classes in that folder come along (see
docs/benchmarks.md). Both ways are timed by turns, and medians are shown.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
from clock import timed
from sklearn.datasets import load_digits, load_iris, load_wine

from gordan import MaxMarginClassifier
from gordan.estimators.fitting import Fitting

# classes, rows, columns and how far apart the classes are, beside noise of size 1
MADE = [
    (10, 500, 20, 1.5),
    (10, 500, 20, 0.5),
    (10, 2000, 20, 1.5),
    (26, 1560, 60, 1.0),
    (5, 200, 100, 1.0),
    (20, 20_000, 100, 4.0),
]
STORED = ("khan_srbct", "mfeat", "isolet1560")
TURNS = 7


def sets(folder: Path | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Names, rows and labels."""
    for name, load in (("digits", load_digits), ("iris", load_iris), ("wine", load_wine)):
        yield name, *load(return_X_y=True)
    for k, n, d, apart in MADE:
        r = np.random.default_rng(0)
        means, y = apart * r.standard_normal((k, d)), r.integers(k, size=n)
        yield f"{k} classes, {n:,} × {d}, {apart:g} apart", means[y] + r.standard_normal((n, d)), y
    for name in STORED if folder is not None else ():
        found = np.load(folder / f"{name}.npz")
        yield name, found["X"].astype(np.float32), found["y"]


def seconds(multi_class: str, X: np.ndarray, y: np.ndarray) -> float:
    """Of one fit."""
    return timed(lambda: MaxMarginClassifier(multi_class=multi_class).fit(X, y))[0]


def main() -> None:
    """Time every set both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    warnings.simplefilter("ignore")
    print("| set | planes | together | one by one | |\n|---|---|---|---|---|")
    for name, X, y in sets(parser.parse_args().data):
        for multi_class in ("ovo", "ovr"):
            seconds(multi_class, X, y)
            together, alone = [], []
            for _ in range(TURNS):
                together.append(seconds(multi_class, X, y))
                with mock.patch.object(Fitting, "hard_margins_together", lambda self, problems: ({}, [*range(len(problems))])):
                    alone.append(seconds(multi_class, X, y))
            first, second = statistics.median(together), statistics.median(alone)
            print(
                f"| {name} | {multi_class} | {1e3 * first:,.0f} ms | {1e3 * second:,.0f} ms | {second / first:.2g} |", flush=True
            )


if __name__ == "__main__":
    main()
