"""Two small data sets for examples."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from gordan.arrays import Array, choose


def iris(positive: str = "setosa") -> tuple[Array, Array]:
    """Load Fisher's iris measurements, one species against the other two.

    "setosa" is separable from the rest; "versicolor" and "virginica" are not.

    Parameters
    ----------
    positive : {"setosa", "versicolor", "virginica"}, default="setosa"
        The species that is labelled +1.

    Returns
    -------
    X : ndarray of shape (150, 4)
        The measurements in cm.
    y : ndarray of shape (150,)
        +1 for the species `positive`, and -1 for the others.

    Examples
    --------
    >>> from gordan.datasets import iris
    >>> X, y = iris()
    >>> X.shape, int(y.sum())
    ((150, 4), -50)
    """
    choose("positive", positive, ("setosa", "versicolor", "virginica"))
    cells = _cells("iris.csv")[1:]
    X = np.array([[float(cell) for cell in row[:4]] for row in cells])
    return X, np.array([1 if row[4] == positive else -1 for row in cells])


def rash() -> tuple[Array, Array, tuple[str, ...]]:
    """Load twelve invented patients, some of whom have a rash.

    All who use the new soap have a rash, and the others overlap: the separation is quasi-complete.

    Returns
    -------
    X : ndarray of shape (12, 3)
        The age, whether the new soap is used (0 or 1), and the dose of a cream.
    y : ndarray of shape (12,)
        "yes" for patients with a rash, and "no" for the others.
    names : tuple of str
        The names of the columns.

    Examples
    --------
    >>> from gordan.datasets import rash
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
    """Return the cells of a CSV file of the package, row by row."""
    return [line.split(",") for line in (files("gordan") / "data" / name).read_text().splitlines()]
