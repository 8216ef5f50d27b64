"""What statisticians pass to `diagnose`, as a design: arrays, data frames, a formula with its data, or a statsmodels model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gordan.arrays import choose, is_sparse, require_aligned
from gordan.errors import InputError
from gordan.regressions import Regression
from gordan.rows import DUMMIES, complete_rows, host, is_missing, refuse_queries
from gordan.verdicts.formulas import NUMERAL, design_of_formula
from gordan.verdicts.model_matrix import Design, Names, checked_weights, kept_rows, name_of, plain_array
from gordan.verdicts.proportions import refuse_proportions
from gordan.verdicts.statsmodels_models import design_of_statsmodels, is_statsmodels

# Types of columns by the first letters of their names, and by their names, in pandas, polars and pyarrow.
CATEGORIES = ("cat", "Cat", "Enum")
TEXTS = ("str", "string", "String", "Utf8", "large_string")
OBJECTS = ("object", "Object")


def design_of(X: Any, y: Any, data: Any, model: str, intercept: str, weights: Any, missing: str, reference: Any = None) -> Design:
    """Make the design that the arguments of `diagnose` describe, without rows that have missing values or weight zero."""
    choose("missing", missing, ("raise", "drop"))
    choose("model", model, [*map(str, Regression)])
    if isinstance(X, str):
        found = design_of_formula(X, y, data, model, weights, missing)
    elif is_statsmodels(X):
        found = design_of_statsmodels(X, y, data, model, weights)
    else:
        if data is not None:
            raise InputError("data goes with a formula: pass diagnose('y ~ x', data=frame), or X and y without data")
        if y is None:
            raise InputError("y is missing: pass X and y, a formula with data=, or a statsmodels model")
        if isinstance(y, (set, frozenset, dict)):
            raise InputError(f"y must be one outcome per row, but it is of type {type(y).__name__}")
        refuse_queries(X)
        if isinstance(y, str):
            raise InputError(
                f"y is the text {y!r}; pass the column itself, diagnose(frame.drop(columns={y!r}), frame[{y!r}]), "
                f"or a formula, diagnose('{y} ~ …', data=frame)"
            )
        names = Names(outcome=name_of(y), weight=name_of(weights))
        y = y.toarray().ravel() if is_sparse(y) and y.shape[1] == 1 else y
        found = Design(X, y, model, intercept, weights, names)
        found = _complete(found, missing)
        _require_outcomes(found)
    _require_numbers(found.X, found.names.outcome)
    refuse_proportions(found, X, weights)
    return replace(found, order=_order(found, reference, isinstance(X, str)))


def _complete(design: Design, missing: str) -> Design:
    """Leave out rows of weight zero, and rows with a missing value if these are to be dropped."""
    X, y, weights = design.X, design.y, design.weights
    require_aligned(X=X, y=y, sample_weight=weights)
    if missing == "raise" and weights is None:
        return design
    n, rows = len(y), X.shape[0] if hasattr(X, "shape") else len(X)
    if n != rows:
        raise InputError(f"X has {rows} rows but y has {n} labels")
    if weights is not None:
        weights = checked_weights(weights, n, missing)
    columns = [("X", X), (design.names.outcome or "y", y), (design.names.weight or "sample_weight", weights)]
    complete = kept_rows(columns if missing == "drop" else [], n, weights)
    if not complete.left_out:
        return replace(design, weights=weights, complete=complete)
    rules = (
        *(("missing",) if complete.missing else ()),
        *(("zero-weight",) if weights is not None and np.any(weights == 0) else ()),
    )
    kept = {name: complete.of(column) for name, column in (("X", X), ("y", y), ("weights", weights))}
    return replace(design, **kept, complete=complete, dropped=rules)


# ---- what is refused ------------------------------------------------------------------------------------------------


def _require_outcomes(design: Design) -> None:
    """Refuse outcomes of which one is missing, also as text such as "NA"."""
    if not getattr(design.y, "shape", getattr(design.y, "__len__", None)):
        return  # it is not a column, which is refused where it is read
    complete = complete_rows(len(design.y), {"y": design.y})
    if complete.left_out:
        row = int(np.setdiff1d(np.arange(complete.n), complete.kept)[0])
        # an array of a list would turn numbers beside text into text
        value = design.y[row] if isinstance(design.y, (list, tuple)) else plain_array(design.y).astype(object)[row]
        where = f"y[{design.rows([row])[0]}]"
        raise InputError(f"{where} is {value!r}; every row needs a label: drop that row, or pass missing='drop'")


def _require_numbers(X: Any, outcome: str | None) -> None:
    """Refuse columns of text or categories, with the line that makes numbers of them."""
    types = getattr(X, "dtypes", None)
    if types is None or not hasattr(X, "columns"):
        return
    for j, (name, kind) in enumerate(zip(X.columns, map(str, types), strict=True)):
        column = X.iloc[:, j] if hasattr(X, "iloc") else X[name]  # by position: pandas allows two columns of one name
        if kind.startswith(CATEGORIES) or kind in TEXTS:
            values = [*column]
        elif kind in OBJECTS:
            values = [value for value in column if isinstance(value, str)]
        else:
            continue
        _refuse_text(name, values, kind.startswith(CATEGORIES), hasattr(X, "to_dummies"), outcome)


def _refuse_text(name: str, values: list[Any], categories: bool, polars: bool, outcome: str | None) -> None:
    """Refuse these values of a column, if there are any; the line that makes numbers of them is one of polars or pandas."""
    present = [value for value in values if not is_missing(value)]
    if present and all(map(_is_numeral, present)) and not categories:
        convert = f"X[{name!r}] = pandas.to_numeric(X[{name!r}], errors='coerce')"
        convert = f"X = X.with_columns(polars.col({name!r}).cast(float, strict=False))" if polars else convert
        drop = "; then missing='drop' leaves out the rows without a number" if len(present) < len(values) else ""
        raise InputError(f"column {name!r} of X holds numbers as text; convert it: {convert}{drop}")
    if present and all(isinstance(value, str) and NUMERAL.fullmatch(value) for value in present) and not categories:
        convert = f"X[{name!r}] = pandas.to_numeric(X[{name!r}].str.replace(',', '.'))"
        convert = f"X = X.with_columns(polars.col({name!r}).str.replace(',', '.').cast(float))" if polars else convert
        raise InputError(
            f"column {name!r} of X holds numbers with a decimal comma, such as {present[0]!r}; convert it: {convert}"
        )
    if present:
        y = outcome if outcome is not None and outcome.isidentifier() else "outcome"
        frame = f"X.{'with_columns' if polars else 'assign'}({y}=y)"
        dummies = f"X.to_dummies({name!r}, drop_first=True)" if polars else DUMMIES
        raise InputError(
            f"column {name!r} of X holds text, such as {present[0]!r}; make 0/1 columns of it: X = {dummies} (drop rows "
            "without a value first: they would get zeros), or pass a formula, which makes them and finds missing values: "
            f"gordan.diagnose('{y} ~ .', data={frame}, missing='drop')"
        )
    if values:
        raise InputError(f"column {name!r} of X has missing values, such as {values[0]!r}; pass missing='drop'")


def _is_numeral(value: Any) -> bool:
    """Return whether a value is text that stands for a finite number."""
    try:
        return isinstance(value, str) and math.isfinite(float(value))
    except ValueError:
        return False


# ---- the order of the classes ---------------------------------------------------------------------------------------


def _order(design: Design, reference: Any, formula: bool) -> Sequence[Any] | None:
    """Return the classes in their order where y or the model has one, with the reference first; None: they are sorted.

    If a `formula` made the design, messages name the column of its data.
    """
    order = design.order
    if Regression(design.model).of_classes and order is None:
        order, stated = _categories(design.y)
        if design.model == "ordinal" and not stated:
            _warn_of_order(design.y, order, design.names.outcome if formula else None)
    if reference is None:
        return order
    if design.model != "multinomial":
        raise InputError(f"reference is for model='multinomial'; leave it out for model={design.model!r}")
    labels = [*order] if order is not None else sorted({*np.asarray(host(design.y)).tolist()})
    if reference not in labels:
        raise InputError(f"reference is {reference!r}, but y has the classes {', '.join(map(repr, labels))}")
    return [reference, *(label for label in labels if label != reference)]


def _categories(y: Any) -> tuple[Sequence[Any] | None, bool]:
    """Return the categories of y that occur, in their order, if it has categories, and whether they are declared as ordered."""
    kind = getattr(y, "dtype", None)
    categories = getattr(kind, "categories", getattr(y, "categories", None))  # of pandas, or of polars' Enum
    if not hasattr(categories, "__iter__"):
        return None, False
    present = {*np.asarray(y).tolist()}
    found = [label for label in np.asarray(categories).tolist() if label in present]
    return found, bool(getattr(kind, "ordered", True))


def _warn_of_order(given: Any, order: Sequence[Any] | None, column: str | None) -> None:
    """Warn that the order of classes that are text was not declared, and say which order is used."""
    labels = sorted({*np.asarray(host(given)).tolist()}) if order is None else [*order]
    if len(labels) > 2 and all(isinstance(label, str) for label in labels):
        taken = f"{' < '.join(labels[:6])}{' < …' if len(labels) > 6 else ''}"
        to, y = ("pass y", "y") if column is None else (f"data[{column!r}]",) * 2
        warnings.warn(
            f"the classes of {column or 'y'} are text, taken in the order {taken}; to set it, {to} = pandas.Categorical({y}, "
            "categories=[lowest, …, highest], ordered=True)",
            stacklevel=5,
        )
