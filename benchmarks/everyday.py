"""Whole calls with default settings on data as users have it, beside scikit-learn with its defaults.

    python benchmarks/everyday.py [--only "one-hot"] [--repeats 3] [--limit 60] [--out docs/benchmarks/everyday.md]

All sets are made up from a fixed seed, and their classes overlap. gordan's classifiers prove a relative gap of 1e-4; scikit-learn
stops at its default tolerance and proves nothing. Calls shorter than 3 s are repeated, and the median is shown. `separate` is
about the first class against the rest. The hinge and more than ten classes are left out where scikit-learn takes minutes.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import gordan

LONG = 3.0  # seconds
MOST_ROWS_FOR_HINGE = 100_000

Made = tuple[Any, np.ndarray]
Maker = Callable[[np.random.Generator], Made]


def noisy(n: int, d: int, classes: int = 2, dtype: type = np.float64) -> Maker:
    """Gaussian rows whose labels follow planes with much noise; one in ten is drawn at random."""

    def make(r: np.random.Generator) -> Made:
        X = r.standard_normal((n, d)).astype(dtype)
        y = np.argmax(X @ r.standard_normal((d, classes)) + 2 * r.gumbel(size=(n, classes)), axis=1)
        wrong = r.random(n) < 0.1
        y[wrong] = r.integers(0, classes, np.count_nonzero(wrong))
        return X, y

    return make


def changed(maker: Maker, change: Callable[[np.ndarray], np.ndarray]) -> Maker:
    """The same data with other columns."""

    def make(r: np.random.Generator) -> Made:
        X, y = maker(r)
        return change(X), y

    return make


def classification(n: int, d: int, **options: Any) -> Maker:
    """Data of scikit-learn's generator."""
    return lambda r: make_classification(n, d, random_state=0, **options)


def short(X: Any) -> Any:
    """X as CSR with indices of 32 bits, which LIBLINEAR needs."""
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def factors(n: int, levels: tuple[int, ...]) -> Maker:
    """Sparse dummies of factors with so many levels, and labels from a logistic model."""

    def make(r: np.random.Generator) -> Made:
        blocks = [sp.csr_array((np.ones(n), (np.arange(n), r.integers(0, m, n))), shape=(n, m)) for m in levels]
        X = short(sp.hstack(blocks))
        return X, (X @ r.standard_normal(X.shape[1]) + r.logistic(size=n) > 0).astype(int)

    return make


def texts(n: int, d: int, words: int, classes: int) -> Maker:
    """Tf-idf of texts with words of Zipf's frequencies, 6% of them from 200 words of the class; 3% of the labels are random."""

    def make(r: np.random.Generator) -> Made:
        often = np.arange(1, d + 1) ** -0.9
        columns, y = r.choice(d, size=(n, words), p=often / often.sum()), r.integers(0, classes, n)
        typical, own = r.integers(0, d, (classes, 200)), r.random((n, words)) < 0.06
        columns[own] = typical[np.broadcast_to(y[:, None], own.shape)[own], r.integers(0, 200, np.count_nonzero(own))]
        X = sp.csr_array((np.ones(n * words), columns.ravel(), np.arange(0, n * words + 1, words)), shape=(n, d))
        X.sum_duplicates()
        wrong = r.random(n) < 0.03
        y[wrong] = r.integers(0, classes, np.count_nonzero(wrong))
        return short(TfidfTransformer().fit_transform(X)), y

    return make


SETS: dict[str, Maker] = {
    "noisy, 1,000 × 20": noisy(1000, 20),
    "noisy, 10,000 × 100": noisy(10_000, 100),
    "noisy, 100,000 × 30": noisy(100_000, 30),
    "noisy, 100,000 × 300, float32": noisy(100_000, 300, dtype=np.float32),
    "noisy, 1,000,000 × 20, float32": noisy(1_000_000, 20, dtype=np.float32),
    "columns of sizes 1e-3 to 1e4, 20,000 × 30": changed(noisy(20_000, 30), lambda X: X * np.logspace(-3, 4, X.shape[1])),
    "columns around 1,000, 20,000 × 50": changed(noisy(20_000, 50), lambda X: X + 1000),
    "redundant columns, 50,000 × 100": classification(50_000, 100, n_informative=20, n_redundant=30),
    "1 in 200 positive, 200,000 × 20": classification(200_000, 20, weights=[0.995]),
    "one-hot, 100,000 × 5,563": factors(100_000, (10, 50, 500, 5000, 3)),
    "texts, 20,000 × 50,000": texts(20_000, 50_000, 60, 2),
    "texts, 20,000 × 50,000, 10 classes": texts(20_000, 50_000, 60, 10),
    "embeddings, 20,000 × 384, 10 classes, float32": noisy(20_000, 384, 10, np.float32),
    "noisy, 50,000 × 50, 100 classes": noisy(50_000, 50, 100),
}


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """The median time of the call."""
    found: list[float] = []
    while len(found) < repeats and not (found and found[-1] > LONG):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return statistics.median(found)


def line(name: str, X: Any, y: np.ndarray, repeats: int, limit: float) -> str:
    """A line of the table; an asterisk marks what is not proved to its tolerance, or undecided."""
    classes = len(np.unique(y))
    losses = {"squared_hinge": LinearSVC(), "logistic" if classes == 2 else "multinomial": LogisticRegression(max_iter=1000)}
    if classes == 2 and len(y) <= MOST_ROWS_FOR_HINGE:
        losses["hinge"] = LinearSVC(loss="hinge")
    cells = dict.fromkeys(("squared_hinge", "logistic", "multinomial", "hinge"), "")
    for loss, peer in losses.items():
        model = gordan.LinearClassifier(loss, time_limit=limit)
        own, other = seconds(lambda m=model: m.fit(X, y), repeats), seconds(lambda p=peer: p.fit(X, y), repeats)
        cells[loss] = f"{own:.2g}{'' if np.max(model.gap_) <= model.tol else '*'} / {other:.2g}"
    margin = seconds(lambda: gordan.MaxMarginClassifier(time_limit=limit).fit(X, y), repeats) if classes <= 10 else None
    verdict = gordan.separate(X, y == y[0], time_limit=limit)
    decided = seconds(lambda: gordan.separate(X, y == y[0], time_limit=limit), repeats)
    last = (
        "" if margin is None else f"{margin:.2g}",
        f"{decided:.2g}{'' if verdict.status in ('separable', 'not-separable') else '*'}",
    )
    return "| " + " | ".join((name, *cells.values(), *last)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    small = noisy(500, 10)(np.random.default_rng(0))
    for loss in ("squared_hinge", "logistic", "hinge", "multinomial"):  # compiles, or loads what is compiled
        gordan.LinearClassifier(loss).fit(*small)
        gordan.LinearClassifier(loss).fit(sp.csr_array(small[0]), small[1])
    lines = ["| data | squared hinge | logistic | multinomial | hinge | `MaxMarginClassifier` | `separate` |", "|---" * 7 + "|"]
    print("\n".join(lines), flush=True)
    for name, maker in SETS.items():
        if options.only in name:
            lines.append(line(name, *maker(np.random.default_rng(0)), options.repeats, options.limit))
            print(lines[-1], flush=True)
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
