"""The small data sets that ship with the package."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError


def iris(positive: str = "setosa") -> tuple[Array, Array]:
    """Return Fisher's iris measurements (150 × 4, in cm) with y = +1 for the species `positive` and -1 for the other two.

    "setosa" is separable from the rest; "versicolor" and "virginica" are not.

    >>> X, y = iris()
    >>> X.shape, int(y.sum())
    ((150, 4), -50)
    """
    if positive not in ("setosa", "versicolor", "virginica"):
        raise InputError(f"positive is {positive!r}; choose 'setosa', 'versicolor' or 'virginica'")
    cells = _cells("iris.csv")[1:]
    X = np.array([[float(cell) for cell in row[:4]] for row in cells])
    return X, np.array([1 if row[4] == positive else -1 for row in cells])


def rash() -> tuple[Array, Array, tuple[str, ...]]:
    """Return data about twelve invented people, with labels and column names: X has age, new soap and dose, y who has a rash.

    Everybody with the new soap has a rash and the others overlap: the separation is quasi-complete.

    >>> X, y, names = rash()
    >>> names, set(y[X[:, 1] == 1].tolist())
    (('age', 'new_soap', 'dose'), {'yes'})
    """
    header, *cells = _cells("rash.csv")
    return (
        np.array([[float(cell) for cell in row[:-1]] for row in cells]),
        np.array([row[-1] for row in cells]),
        tuple(header[:-1]),
    )


def _cells(name: str) -> list[list[str]]:
    return [line.split(",") for line in (files("gordan") / "data" / name).read_text().splitlines()]
