"""The sets that are compared on: every one in a folder, and made-up ones for growth.

A folder holds dense sets as `NAME.npz` with arrays X and y, sparse ones as `NAME.npz` (SciPy) beside `NAME.y.npy`. Of a set with
more than two classes the first is taken against the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

# Planted margin of the made-up sets, as a share of the typical row norm.
MARGIN = 0.05


@dataclass(frozen=True, eq=False)
class Data:
    """X as stored, for gordan; as float64, for peers that would convert it anyway; y is -1 or 1, `labels` what it was made of."""

    name: str
    X: Any
    y: np.ndarray
    labels: np.ndarray | None = None

    @property
    def sparse(self) -> bool:
        return sp.issparse(self.X)

    @cached_property
    def X64(self) -> Any:
        return self.X.astype(np.float64, copy=False)

    @cached_property
    def standardized(self) -> Any:
        """X64 with columns of mean 0 and standard deviation 1; sparse columns are as they are."""
        if self.sparse:
            return self.X64
        deviation = self.X64.std(axis=0)
        return (self.X64 - self.X64.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)

    @cached_property
    def radius(self) -> float:
        squares = self.X64.multiply(self.X64).sum(axis=1) if self.sparse else np.einsum("ij,ij->i", self.X64, self.X64)
        return float(np.sqrt(np.max(squares)))

    def signed(self, constant: bool) -> Any:
        """The rows y_i x_i, or y_i (x_i, 1)."""
        y = self.y.astype(np.float64)
        if self.sparse:
            A = sp.diags_array(y) @ self.X64
            return sp.csr_array(sp.hstack((A, sp.csr_array(y[:, None]))) if constant else A)
        A = self.X64 * y[:, None]
        return np.column_stack((A, y)) if constant else A


def names(folder: Path) -> list[str]:
    """The sets in a folder, the smallest file first."""
    return [path.stem for path in sorted(folder.glob("*.npz"), key=lambda path: path.stat().st_size)]


@lru_cache(maxsize=1)
def load(key: str) -> Data:
    """The set in that file, or the made-up one of that name (`digits`, or what `planted` takes). One is kept."""
    if key == "digits":
        return digits()
    if key.startswith("planted:"):
        _, kind, n, d = key.split(":")
        return planted(kind, int(n), int(d))
    path = Path(key)
    labels = path.with_suffix(".y.npy")
    if labels.exists():
        X, y = sp.csr_array(sp.load_npz(path)), np.load(labels)
    else:
        with np.load(path) as stored:
            X, y = stored["X"], stored["y"]
    if X.dtype.kind in "iu":
        X = X.astype(np.float64)
    classes = np.unique(y)
    positive = y == (classes[0] if len(classes) > 2 else classes[1])
    return Data(path.stem, X, np.where(positive, 1, -1).astype(np.int64), y)


def planted(kind: str, n: int, d: int) -> Data:
    """Gaussian rows of length about 1, moved apart along a hidden direction; "overlap": one label in ten is then turned over."""
    rng = np.random.default_rng(7)
    w = rng.standard_normal(d)
    w /= np.linalg.norm(w)
    X = rng.standard_normal((n, d))
    X /= np.sqrt(d)
    y = np.where(X @ w >= 0, 1, -1)
    X += (MARGIN * y)[:, None] * w
    if kind == "overlap":
        y = np.where(rng.random(n) < 0.1, -y, y)
    return Data(f"{kind} {n:,} × {d:,}", X, y)


def digits(n: int = 12_665) -> Data:
    """Pictures of 28 × 28 smooth strokes against smooth rings, some of which are hardly wider than a stroke; pixel 0 is constant.

    Like two classes of handwritten digits: dense, columns that depend on their neighbours or are all 0, a margin of 1% of R.
    """
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, n)
    v, u = np.meshgrid(np.arange(28) - 13.5, np.arange(28) - 13.5)
    X = np.empty((n, 784))
    for lo in range(0, n, 1000):
        m = min(1000, n - lo)
        angle, tall, wide, thick = (rng.uniform(*ends, m) for ends in ((-0.5, 0.5), (6, 10), (3, 7), (1.2, 2.2)))
        wide = np.where(rng.random(m) < 0.12, rng.uniform(0.8, 3, m), wide)
        down, right = rng.normal(0, 1, (2, m))
        along = np.cos(angle) * (u[..., None] - down) - np.sin(angle) * (v[..., None] - right)
        across = np.sin(angle) * (u[..., None] - down) + np.cos(angle) * (v[..., None] - right)
        ring = np.abs(np.hypot(along / tall, across / wide) - 1) * np.minimum(tall, wide)
        stroke = np.hypot(across, np.maximum(np.abs(along) - tall, 0))
        distance = np.where(y[lo : lo + m] == 1, stroke, ring) / thick
        X[lo : lo + m] = np.rint(255 * np.exp(-(distance**2))).reshape(784, m).T
    X[:, 0] = 255.0
    return Data("digits", X / 255, np.where(y == 1, 1, -1))
