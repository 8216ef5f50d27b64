"""The design of a regression model, its matrix and outcomes, and the rows that are left out of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gordan.arrays import Array, column_values
from gordan.certificates.data import About
from gordan.errors import InputError
from gordan.rows import Complete, column_names, complete_rows, host, is_missing


@dataclass(frozen=True)
class Names:
    """The names of the columns of X, of the outcome and of the weights, where they have any.

    `baselines` are the levels of factors that have no column of their own.
    """

    columns: Sequence[str] | None = None
    outcome: str | None = None
    weight: str | None = None
    baselines: Mapping[str, str] = field(default_factory=dict)

    @property
    def about(self) -> About:
        """The names as a certificate states them."""
        columns = None if self.columns is None else tuple(self.columns)
        return About(label=self.outcome or None, weight=self.weight, columns=columns)


@dataclass(frozen=True, eq=False)
class Design:
    """The matrix and the outcomes of a model, with their names and with what else is known about the model.

    Attributes
    ----------
    X, y, model, intercept
        as `diagnose` takes them, without the rows that are left out.
    weights
        the sample weights of the rows of X.
    names
        the names of the columns of X, of y and of the weights.
    order
        the classes in their order, with the reference of a multinomial model first; None: sorted.
    complete, dropped
        which rows were kept, and the rules by which the others were left out, as certificates name them.
    link
        that of a binary or ordinal model, in words, where it is not the logit.
    offset
        whether the model has an offset or an exposure, which changes the estimates but not whether they exist.
    notices
        what else may not be as it is meant, in words.
    """

    X: Any
    y: Any
    model: str = "logistic"
    intercept: str = "free"
    weights: Any = None
    names: Names = Names()
    order: Sequence[Any] | None = None
    complete: Complete | None = None
    dropped: tuple[str, ...] = ()
    link: str = ""
    offset: bool = False
    notices: tuple[str, ...] = ()

    def rows(self, positions: Sequence[int]) -> tuple[int, ...]:
        """Return the positions of these rows of X in the data that was passed."""
        return tuple(positions) if self.complete is None else tuple(self.complete.kept[list(positions)].tolist())


def kept_rows(columns: Sequence[tuple[str, Any]], n: int, weights: Any) -> Complete:
    """Find the rows that have no missing value in these named columns, and a weight other than zero; refuse data without any."""
    given: dict[str, Any] = {}
    for name, values in columns:
        while name in given:  # an outcome may be called X, and must not replace it
            name = f"{name} (again)"
        given[name] = values
    complete = complete_rows(n, given, weights)
    if complete.n and not len(complete.kept):
        raise InputError(
            f"no row is left: each has a missing value or weight zero (missing: {counts_by_column(complete.missing)})"
        )
    return complete


def counts_by_column(missing: dict[str, int]) -> str:
    """Say how many values are missing in which columns."""
    return ", ".join(f"{count} in {name}" for name, count in missing.items()) or "none"


def name_of(column: Any) -> str | None:
    """Return the name of a column, or of the only column of a data frame or design matrix; None if it has none."""
    name, names = getattr(column, "name", None), column_names(column, 1)
    found = names[0] if names else name
    return found if isinstance(found, str) and found else None


def plain_array(values: Any) -> Array:
    """Return a column of any library as an array of NumPy."""
    return np.asarray(host(column_values(values)))


def checked_weights(weights: Any, n: int, missing: str) -> Array:
    """Return the weights as floats, none of them negative, with NaN where one is missing and may be."""
    if isinstance(weights, str):
        raise InputError(f"sample_weight is the text {weights!r}; pass the column itself, sample_weight=frame[{weights!r}]")
    given = plain_array(weights)
    if given.dtype.kind in "OUT":  # pandas.NA and text such as "NA" are missing values as well
        given = np.array([math.nan if is_missing(value) else value for value in given.ravel()], dtype=object).reshape(given.shape)
    try:
        values = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError("sample_weight must hold numbers, one for each row, that a float can hold") from None
    if values.shape != (n,):
        raise InputError(f"sample_weight must hold one number for each of the {n} rows; its shape is {values.shape}")
    bad = ~((values >= 0) & (values < np.inf)) & ~(np.isnan(values) & (missing == "drop"))
    if bad.any():
        row = int(np.argmax(bad))
        hint = "; or pass missing='drop'" if np.isnan(values[row]) else ""
        raise InputError(f"sample_weight[{row}] is {values[row]:g}; weights must be finite and not negative{hint}")
    return values
