"""Proportions and counts of successes and failures as outcomes: refuse them with code that makes two rows of each.

A logistic regression of proportions is one of twice as many rows, one for each outcome, with its frequency as weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.verdicts.model_matrix import Design, plain_array

EXPAND = "; pass two rows for each, one for either outcome, with its frequency as weight: "
# The frequencies of both outcomes where y is a proportion.
PARTS = "np.ravel(np.column_stack([y, 1 - y]))"


def refuse_proportions(design: Design, given: Any, weights: Any) -> None:
    """Refuse outcomes of a logistic model that are proportions or pairs of counts.

    `given` is X or the formula, and `weights` are the sample weights or the name of their column, as the user passed them.
    """
    if design.model != "logistic":
        return
    values = plain_array(design.y)
    X = "X.iloc" if hasattr(given, "iloc") else "X" if hasattr(given, "shape") else "np.asarray(X)"
    if values.ndim == 2 and values.shape[1] == 2 and values.dtype.kind in "iuf":
        what = f"y has the shape {values.shape}: two columns, as counts of successes and failures have"
        raise InputError(f"{what}{EXPAND}{_two_rows(X, 'np.ravel(y)')}")
    if _are_proportions(values):
        column = f"frame[{weights!r}]" if isinstance(weights, str) else "sample_weight"
        counts = PARTS if weights is None else f"{PARTS} * np.repeat(np.asarray({column}), 2)"
        outcome = f"frame[{design.names.outcome!r}]"
        code = _two_rows_of_formula(given, outcome, counts) if isinstance(given, str) else _two_rows(X, counts)
        raise InputError(f"y has values between 0 and 1, as proportions have{EXPAND}{code}")


def refuse_pair_of_counts(formula: str, columns: Sequence[str]) -> None:
    """Refuse a formula with two outcomes, which statsmodels and R take as counts of successes and failures."""
    code = _two_rows_of_formula(formula, f"frame[{[*columns]!r}]", "np.ravel(y)")
    raise InputError(f"the formula {formula!r} has two outcomes, as counts of successes and failures{EXPAND}{code}")


def refuse_proportions_of_model(source: Any, results: bool) -> None:
    """Refuse a model of statsmodels whose outcomes are proportions or pairs of counts; `results`: its results were passed."""
    counts = bool(np.any(np.asarray(getattr(source, "n_trials", 1)) != 1))
    if not counts and not _are_proportions(np.asarray(source.endog, dtype=np.float64)):
        return
    weights = [name for name in ("freq_weights", "var_weights") if np.any(np.asarray(getattr(source, name, 1)) != 1)]
    trials = ["np.repeat(model.n_trials, 2)"] if counts else []
    frequencies = " * ".join([PARTS, *trials, *(f"np.repeat(np.asarray(model.{name}), 2)" for name in weights)])
    model = "model = results.model; " if results else ""
    data = f"{model}X, y = pandas.DataFrame(model.exog, columns=model.exog_names), model.endog; "
    what = "counts of successes and failures" if counts else "proportions as outcomes"
    raise InputError(f"the model has {what}{EXPAND}{data}{_two_rows('X.iloc', frequencies, ', intercept=' + repr('none'))}")


def _are_proportions(values: Array) -> bool:
    """Return whether these are numbers from 0 to 1, and not only 0 and 1."""
    if values.ndim != 1 or values.dtype.kind != "f":
        return False
    inside = values[np.isfinite(values)]
    return bool(len({*inside[:1000].tolist()} - {0.0, 1.0})) and inside.min() >= 0 and inside.max() <= 1


def _two_rows(X: str, counts: str, options: str = "") -> str:
    """Write the code that makes two rows of each row of X, and keeps the names of its columns."""
    X2 = f"X2 = {X}[np.repeat(np.arange(len(y)), 2)]"
    return f"{X2}; gordan.diagnose(X2, np.tile([1, 0], len(y)), sample_weight={counts}{options})"


def _two_rows_of_formula(formula: str, y: str, counts: str) -> str:
    """Write the code that makes two rows of each row of the data frame of a formula."""
    formula = f"event ~ {formula.partition('~')[2].strip()}"
    long = f"frame.iloc[np.repeat(np.arange(len(y)), 2)].assign(event=np.tile([1, 0], len(y)), count={counts})"
    return f"y = {y}; long = {long}; gordan.diagnose({formula!r}, data=long, sample_weight='count')"
