"""Accuracy in cross-validation, next to scikit-learn's linear classifiers on its own data sets.

    python benchmarks/accuracy.py --out docs/accuracy                       # about a minute on two cores
    python benchmarks/accuracy.py --data FOLDER --out docs/accuracy         # the sets in a folder instead (see `sets`)

Columns are standardized within each fold; five folds, shuffled with a fixed seed, the same for every model. The last two
lines count the binary problems that are separable on all rows, by pairs and by class against the rest.

Of a folder, the sets with 500 rows or more are taken, 70 % of the rows for fitting, in ten random splits (`--splits`): the mean
test accuracy and the median seconds of the classifiers with their defaults; dense columns are standardized by the rows that are
fitted. The last columns say in how many splits a plane separated the rows, and in how many the fit called that bare.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import report
import sets
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_validate, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, NuSVC

from gordan import LinearClassifier, MaxMarginClassifier

SETS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}
MODELS = {
    "`MaxMarginClassifier()`": MaxMarginClassifier(on_inseparable="ignore"),
    "`MaxMarginClassifier(multi_class='ovr')`": MaxMarginClassifier(multi_class="ovr", on_inseparable="ignore"),
    "`MaxMarginClassifier(nu=0.1)`": MaxMarginClassifier(nu=0.1, on_inseparable="ignore"),
    "`NuSVC(nu=0.1, kernel='linear')`": NuSVC(nu=0.1, kernel="linear"),
    "`LinearSVC()`": LinearSVC(),
    "`LinearSVC(C=1e4)`": LinearSVC(C=1e4),
    "`LogisticRegression()`": LogisticRegression(),
}


LEAST_ROWS = 500
DEFAULTS = {
    "`LinearSVC()`": LinearSVC(),
    "`LinearClassifier()`": LinearClassifier(),
    "`MaxMarginClassifier()`": MaxMarginClassifier(),
}


def mislabelled(n: int, d: int, classes: int, wrong: float) -> tuple[str, Any, np.ndarray, np.ndarray]:
    """Rows of length 1 around as many random centres, of which a share has a random label; and the true labels."""
    r = np.random.default_rng(0)
    centres = r.standard_normal((classes, d)) / np.sqrt(d)
    true = r.integers(classes, size=n)
    X = 0.4 * centres[true] + r.standard_normal((n, d)) / np.sqrt(d)
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    y = np.where(r.random(n) < wrong, r.integers(classes, size=n), true)
    return f"made up: {n:,} × {d}, {classes} classes, {100 * wrong:.0f} % of the labels wrong", X, y, true


def large_sets(folder: Path, chosen: list[str]) -> Iterator[tuple[str, Any, np.ndarray, np.ndarray]]:
    """Name, X, y and the labels to be judged by, of each set with enough rows."""
    for name in sets.names(folder):
        data = sets.load(str(folder / f"{name}.npz"))
        if len(data.y) >= LEAST_ROWS and (not chosen or name in chosen):
            yield name, data.X64, data.y, data.y
    if not chosen or "mislabelled" in chosen:
        for wrong in (0.0, 0.03):
            yield mislabelled(20_000, 384, 10, wrong)


def defaults(folder: Path, splits: int, chosen: list[str]) -> list[str]:
    """The table of the sets in a folder."""
    heads = [f" {name} | s |" for name in DEFAULTS]
    lines = ["| |" + "".join(heads) + " separable | called bare |", "|---|" + "---|---|" * len(DEFAULTS) + "---|---|"]
    for name, X, y, true in large_sets(folder, chosen):
        scores: dict[str, list[float]] = {model: [] for model in DEFAULTS}
        seconds: dict[str, list[float]] = {model: [] for model in DEFAULTS}
        separable = bare = 0
        for seed in range(splits):
            train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=y)
            Z, T = X[train], X[test]
            if isinstance(X, np.ndarray) and X.dtype == np.float64:
                scaler = StandardScaler().fit(Z)
                Z, T = scaler.transform(Z), scaler.transform(T)
            for each, model in DEFAULTS.items():
                begin = time.perf_counter()
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    model.fit(Z, y[train])
                seconds[each].append(time.perf_counter() - begin)
                scores[each].append(float(np.mean(model.predict(T) == true[test])))
                bare += any("barely" in str(warning.message) for warning in told)
            separable += all(answer is True for answer in np.atleast_1d(np.array(model.separable_, dtype=object)))
        cells = [f" {np.mean(scores[each]):.4f} | {np.median(seconds[each]):.3f} |" for each in DEFAULTS]
        lines.append(f"| {name} |" + "".join(cells) + f" {separable} of {splits} | {bare} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder for table.md (of --data: defaults.md); printed only, if not given")
    parser.add_argument("--data", type=Path, help="a folder of sets, for their table instead")
    parser.add_argument("--splits", type=int, default=10, help="random splits of a set in that folder")
    parser.add_argument("--sets", default="", help="those alone, separated by commas; mislabelled: the made-up ones")
    options = parser.parse_args()
    if options.data is not None:
        table = "\n".join(defaults(options.data, options.splits, list(filter(None, options.sets.split(",")))))
        print(table)
        report.save(options.out, "defaults", table)
        return
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    lines = ["| |" + "".join(f" {name} |" for name in SETS), "|---|" + "---|" * len(SETS)]
    data = {name: load(return_X_y=True) for name, load in SETS.items()}
    for name, model in MODELS.items():
        cells = []
        for X, y in data.values():
            begin = time.perf_counter()
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                scores = cross_validate(make_pipeline(StandardScaler(), model), X, y, cv=folds, error_score="raise")
            mark = "*" if any("onverge" in str(warning.message) for warning in told) else ""
            cells.append(f" {scores['test_score'].mean():.3f} ± {scores['test_score'].std():.3f}{mark} |")
            print(f"{name} {cells[-1]} {time.perf_counter() - begin:.1f} s", flush=True)
        lines.append(f"| {name} |" + "".join(cells))
    for multi_class, title in (("ovo", "pairs that are separable"), ("ovr", "classes separable from the rest")):
        cells = []
        for X, y in data.values():
            model = MaxMarginClassifier(multi_class=multi_class, on_inseparable="ignore").fit(
                StandardScaler().fit_transform(X), y
            )
            found = np.atleast_1d(np.array(model.separable_, dtype=object))
            cells.append(f" {sum(answer is True for answer in found)} of {len(found)} |")
        lines.append(f"| *{title}* |" + "".join(cells))
    table = "\n".join(lines)
    print(table)
    report.save(options.out, "table", table)


if __name__ == "__main__":
    main()
