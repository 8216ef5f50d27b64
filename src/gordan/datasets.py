"""The small data sets that ship with the package."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError


def iris(positive: str = "setosa") -> tuple[Array, Array]:
    """Fisher's iris measurements (150 × 4, in cm) with y = +1 for the species `positive` and -1 for the other two.

    "setosa" is separable from the rest; "versicolor" and "virginica" are not.

    >>> X, y = iris()
    >>> X.shape, int(y.sum())
    ((150, 4), -50)
    """
    if positive not in ("setosa", "versicolor", "virginica"):
        raise InputError(f"positive is {positive!r}; choose 'setosa', 'versicolor' or 'virginica'")
    lines = (files("gordan") / "data" / "iris.csv").read_text().splitlines()[1:]
    cells = [line.split(",") for line in lines]
    X = np.array([[float(cell) for cell in row[:4]] for row in cells])
    return X, np.array([1 if row[4] == positive else -1 for row in cells])
