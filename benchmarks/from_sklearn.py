"""What LinearClassifier and the estimators of scikit-learn that it stands in for have in common, in digits.

    python benchmarks/from_sklearn.py

Sets that come with scikit-learn, standardized, 70 % of the rows to fit and 30 % to predict. Each estimator is taken at its
default tolerance and at a fine one. "above" is how far its objective is above the proved lower end, relatively; "digits" how
many leading ones of the largest coefficient all coefficients share with ours; "labels" how many of the test rows have the same
prediction.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

from gordan import LinearClassifier

SETS: dict[str, Callable[..., Any]] = {
    "breast cancer": load_breast_cancer,
    "iris": load_iris,
    "wine": load_wine,
    "digits": load_digits,
}
FINE: dict[str, Any] = {"tol": 1e-10, "max_iter": 1_000_000}


def pairs(classes: int) -> list[tuple[str, Any, LinearClassifier, bool]]:
    """Name, estimator, ours for the same problem, and whether the estimator is at a fine tolerance."""
    found = []
    for fine in (False, True):
        options = FINE if fine else {}
        svc = LinearSVC(random_state=0, **options)
        found.append(("LinearSVC()", svc, LinearClassifier(intercept="penalized", tol=1e-9), fine))
        if classes == 2:
            theirs = LogisticRegression(**options)
            found.append(("LogisticRegression()", theirs, LinearClassifier("logistic", tol=1e-9), fine))
        else:
            theirs = LogisticRegression(**options)
            found.append(("LogisticRegression()", theirs, LinearClassifier("multinomial", tol=1e-9), fine))
    return found


def values(ours: LinearClassifier, X: Any, y: Any, coef: Any, b: Any) -> list[float]:
    """The objective of each problem of ours at these planes."""
    penalized = ours.intercept == "penalized"
    size = [0.5 * float(w @ w + penalized * c * c) for w, c in zip(coef, b, strict=True)]
    scores = X @ coef.T + b
    if ours.kind_ == "multinomial":
        own = scores[np.arange(len(y)), np.searchsorted(ours.classes_, y)]
        return [math.fsum(size) + ours.C * math.fsum(np.logaddexp.reduce(scores, axis=1) - own)]
    found = []
    for k, half in enumerate(size):
        z = np.where(y == (ours.classes_[1] if ours.kind_ == "binary" else ours.classes_[k]), 1, -1) * scores[:, k]
        losses = np.logaddexp(0, -z) if ours.loss == "logistic" else np.maximum(1 - z, 0) ** 2
        found.append(half + ours.C * math.fsum(losses))
    return found


def main() -> None:
    """The table."""
    warnings.simplefilter("ignore")
    print("| set | estimator | tolerance | above | digits | labels |\n|---|---|---|---|---|---|")
    for name, load in SETS.items():
        X, y = load(return_X_y=True)
        X, test, y, _ = train_test_split(scale(X), y, test_size=0.3, random_state=0)
        for told, theirs, ours, fine in pairs(len(np.unique(y))):
            ours.fit(X, y)
            theirs.fit(X, y)
            lower = np.reshape(ours.objective_, (-1, 2))[:, 0]
            above = max(v / low - 1 for v, low in zip(values(ours, X, y, theirs.coef_, theirs.intercept_), lower, strict=True))
            coef = theirs.coef_ - theirs.coef_.mean(axis=0) if ours.kind_ == "multinomial" else theirs.coef_
            off = float(np.max(np.abs(coef - ours.coef_)) / np.max(np.abs(ours.coef_)))
            same = int((ours.predict(test) == theirs.predict(test)).sum())
            cells = (name, f"`{told}`", "fine" if fine else "default", f"{above:.0e}", f"{-math.log10(off):.1f}")
            print("| " + " | ".join(cells) + f" | {same} of {len(test)} |")


if __name__ == "__main__":
    main()
