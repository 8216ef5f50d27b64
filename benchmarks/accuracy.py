"""Accuracy in cross-validation, next to scikit-learn's linear classifiers on its own data sets.

    python benchmarks/accuracy.py --out docs/accuracy          # about a minute on two cores

Columns are standardized within each fold; five folds, shuffled with a fixed seed, the same for every model. The last two
lines count the binary problems that are separable on all rows, by pairs and by class against the rest.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, NuSVC

from gordan import MaxMarginClassifier

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder for table.md; printed only, if not given")
    options = parser.parse_args()
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
    table = "\n".join(lines) + "\n"
    print(table)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "table.md").write_text(table)


if __name__ == "__main__":
    main()
