"""A path of C, from its smallest value to its largest: each fit from nothing, and each from the last one (`warm_start`).

    python benchmarks/path.py FOLDER [--sets a,b] [--losses squared_hinge,...] [--repeats 3]

Nine values of C from 1e-3 to 1e3, all rows, dense columns standardized, tol = 1e-6 for all; seconds are medians, runs of the two
kinds take turns. Steps are those of Newton's method, or epochs, over all nine fits.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import sets

from gordan import LinearClassifier

PATH = np.geomspace(1e-3, 1e3, 9)


def run(loss: str, X: Any, y: np.ndarray, warm: bool) -> tuple[float, int]:
    """Seconds and steps of the whole path."""
    model, steps, begin = LinearClassifier(loss, tol=1e-6, warm_start=warm), 0, time.perf_counter()
    for C in PATH:
        steps += model.set_params(C=float(C)).fit(X, y).n_iter_
    return time.perf_counter() - begin, steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default="a9a,spambase,covtype15k,isolet1560,news20_bydate_tfidf")
    parser.add_argument("--losses", default="squared_hinge,hinge,logistic")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print("| set | loss | cold s | warm s | cold steps | warm steps |\n|---|---|---|---|---|---|")
    for name in options.sets.split(","):
        data = sets.load(str(options.folder / f"{name}.npz"))
        X, y = data.standardized, data.y
        for loss in options.losses.split(","):
            run(loss, X[:: 1 + len(y) // 500], y[:: 1 + len(y) // 500], True)  # compiles
            found: dict[bool, list[tuple[float, int]]] = {False: [], True: []}
            for _ in range(options.repeats):
                for warm, runs in found.items():
                    runs.append(run(loss, X, y, warm))
            (cold, cold_steps), (warm, warm_steps) = (np.median(runs, axis=0) for runs in found.values())
            print(f"| {name} | {loss} | {cold:.2f} | {warm:.2f} | {cold_steps:.0f} | {warm_steps:.0f} |", flush=True)


if __name__ == "__main__":
    main()
