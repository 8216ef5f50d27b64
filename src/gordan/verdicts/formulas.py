"""A formula with its data frame, as the design that formulaic makes of them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gordan.arrays import require_aligned
from gordan.errors import InputError, did_you_mean, import_extra
from gordan.io.table import listed
from gordan.rows import Complete, complete_rows
from gordan.verdicts.explaining import baselines
from gordan.verdicts.model_matrix import Design, Names, checked_weights, counts_by_column, kept_rows, name_of
from gordan.verdicts.proportions import refuse_pair_of_counts

# The number of frames from formulaic up to the caller of `diagnose`, in whose namespace the functions of a formula are found.
FRAMES_TO_CALLER = 3
# An unknown name, as Python and formulaic report it.
UNKNOWN_NAME = re.compile(r"name '(\w+)' is not defined|`(\w+)` is not present in the dataset")
# Text in a formula; and its variables, in backticks or plain, which are not functions, attributes or arguments.
QUOTED_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"")
VARIABLES = re.compile(r"`([^`]+)`|(?<![\w.])([^\W\d]\w*)(?!\w|\s*\(|\s*=(?!=))")
# How types of columns begin that can hold text. A number as text, with a decimal point or comma; and the most different ones
# that may be meant as levels.
TEXT_TYPES = ("object", "str", "utf8", "large_string")
NUMERAL = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)\s*")
MAX_NUMERALS = 10
# Two counts on the left side of a formula, as R has them.
CBIND = re.compile(r"cbind\(\s*([^\W\d]\w*)\s*,\s*([^\W\d]\w*)\s*\)")
# What to write in place of functions of R.
IN_PLACE_OF = {
    "factor": "C(…) makes 0/1 columns of a category, as factor(…) does in R",
    "offset": "leave the offset out: it changes the estimates, but not whether they exist",
}


def design_of_formula(formula: str, y: Any, data: Any, model: str, weights: Any, missing: str) -> Design:
    """Make the design of a formula, which has the constant among its columns.

    Only missing values in the variables of the formula matter.
    """
    if "~" not in formula:
        raise InputError(
            f"X is {formula!r}, which is no formula (as 'y ~ x1 + x2' is); if it is a file, read it first: "
            f"t = gordan.io.read({formula!r}), which has t.X and t.y"
        )
    if hasattr(y, "columns") and data is None:
        raise InputError(f"the data frame of a formula is passed as data: diagnose({formula!r}, data=frame)")
    if y is not None:
        raise InputError("a formula names the outcome on its left side; leave y out")
    if data is not None:
        import_extra("formulaic", "stats", "a formula")  # first: where it is missing, there may be no data frames either
    if not hasattr(data, "columns"):
        given = "a formula needs its data" if data is None else f"data is not a data frame but of type {type(data).__name__}"
        raise InputError(f"{given}: diagnose({formula!r}, data=frame)")
    usable = [name for name in data.columns if not (isinstance(weights, str) and name == weights)]
    parsed, variables = _parsed(formula, usable, model)
    _require_distinct([*data.columns], {*variables, weights} if isinstance(weights, str) else variables)
    import formulaic

    outcome = str(next(iter(parsed.lhs)))
    complete, weights = _complete_data(data, [name for name in data.columns if name in variables], weights, missing)
    kept = _with_numbers(complete.of(data), variables)
    _warn_of_numerals(formula, kept, variables)
    is_column = outcome in data.columns
    try:
        matrix = formulaic.model_matrix(parsed.rhs, kept, na_action="raise", context=FRAMES_TO_CALLER).__wrapped__
        left = (
            kept[outcome] if is_column else formulaic.model_matrix(parsed.lhs, kept, na_action="raise", context=FRAMES_TO_CALLER)
        )
    except (formulaic.errors.FormulaicError, KeyError, TypeError, ValueError) as error:
        raise InputError(_why_no_matrix(formula, str(error), kept, variables)) from None
    if not is_column:
        columns = [name for name in left.columns if name != "Intercept"]
        if len(columns) != 1:
            raise InputError(f"the outcome {outcome} becomes {len(columns)} columns; name a column of data, or make one")
        left = left[columns[0]]
    if model == "ordinal" and "Intercept" in matrix.columns:  # the thresholds take its place
        matrix = matrix.drop(columns="Intercept")
    columns = [*map(str, matrix.columns)]
    names = Names(columns, outcome, baselines=baselines(columns, kept))
    return Design(matrix, left, model, "free" if model == "ordinal" else "none", weights, names, complete=complete)


def _require_distinct(columns: Sequence[str], used: set[str]) -> None:
    """Refuse a column of the formula of which the data frame has two."""
    twice = sorted({name for name in columns if name in used and columns.count(name) > 1})
    if twice:
        raise InputError(
            f"data has {columns.count(twice[0])} columns {twice[0]!r}; rename or drop all but one: "
            "data = data.loc[:, ~data.columns.duplicated()] keeps the first"
        )


def _parsed(formula: str, columns: Sequence[str], model: str) -> tuple[Any, set[str]]:
    """Parse the formula, and find its variables; "." stands for those of the columns that it does not name."""
    formulaic = import_extra("formulaic", "stats", "a formula")
    try:
        found = formulaic.Formula(formula, _context={"__formulaic_variables_available__": columns})
        # formulaic does not list those inside functions such as bs and scale, nor those with the name of a function
        tokens = VARIABLES.findall(QUOTED_TEXT.sub("", formula))
        variables = {*map(str, found.required_variables), *({quoted or plain for quoted, plain in tokens} & {*columns})}
    except (formulaic.errors.FormulaicError, SyntaxError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error).splitlines()[0].rstrip(".")
        raise InputError(f"formulaic cannot read {formula!r}: {reason}{_syntax_hint(formula, reason, columns)}") from None
    left = [*map(str, getattr(found, "lhs", ()))]
    pair = CBIND.fullmatch(left[0]) if len(left) == 1 else None
    left = left if pair is None else [*pair.groups()]
    if model == "logistic" and len(left) == 2 and {*left} <= {*columns} and not isinstance(found.rhs, tuple):
        refuse_pair_of_counts(formula, left)
    if len(left) != 1 or isinstance(found.rhs, tuple):
        raise InputError(f"the formula {formula!r} needs one outcome on its left side, and one sum on its right: 'y ~ x1 + x2'")
    return found, variables


def _syntax_hint(formula: str, reason: str, columns: Sequence[str]) -> str:
    """Say what to write in place of something that formulaic cannot read; nothing where that is not known."""
    if "as.factor(" in formula:
        return f"; {IN_PLACE_OF['factor']}"
    if "`|`" in reason:
        return "; random effects such as (1|group) are not supported"
    if reason.startswith("Unknown operator"):
        return "; write calculations and comparisons inside I(…), as in I(visits > 1)"
    spaced = next((name for name in map(str, columns) if not name.isidentifier() and name in formula), None)
    return f"; write the name {spaced!r} in backticks: `{spaced}`" if spaced else ""


def _complete_data(data: Any, used: list[str], weights: Any, missing: str) -> tuple[Complete, Any]:
    """Find the rows of a data frame that are kept, given the columns that are used and the weights; and their weights."""
    name = weights if isinstance(weights, str) else name_of(weights) or "sample_weight"
    if isinstance(weights, str):
        if weights not in data:
            hint = did_you_mean(weights, [*map(str, data.columns)])
            raise InputError(f"data has no column {weights!r} for sample_weight{f'; {hint}' if hint else ''}")
        weights = data[weights]
    require_aligned(data=data, sample_weight=weights)
    weights = None if weights is None else checked_weights(weights, len(data), missing)
    lacking = complete_rows(len(data), {"data": data[used]}).missing
    if lacking and missing == "raise":
        raise InputError(f"data has missing values ({counts_by_column(lacking)}); pass missing='drop' to leave those rows out")
    complete = kept_rows([("data", data[used]), (name, weights)], len(data), weights)
    return complete, complete.of(weights)


def _with_numbers(data: Any, variables: set[str]) -> Any:
    """Make columns of objects that are all numbers or all truths what they are, and leave out categories that no row has.

    Text such as "NA" in rows that were left out makes a column one of objects, and a formula would make a category of each value.
    """
    if not hasattr(data, "assign"):
        return data
    categorical = [name for name in data.columns if name in variables and hasattr(data[name], "cat")]
    found = {name: data[name].cat.remove_unused_categories() for name in categorical}
    for name in (name for name in data.columns if name in variables and data[name].dtype == object):
        values = data[name].tolist()
        numbers = [value for value in values if isinstance(value, (int, float, np.number))]
        if values and len(numbers) == len(values):
            plain = np.array(values)
            found[name] = plain if plain.dtype == bool else plain.astype(np.float64)
        elif 2 * len(numbers) > len(values):
            text = next(value for value in values if not isinstance(value, (int, float, np.number)))
            warnings.warn(
                f"the column {name!r} has numbers and also {text!r}, so each value becomes a category; replace it by a missing "
                f"value, or write C({name}) if categories are meant",
                UserWarning,
                stacklevel=5,
            )
    return data.assign(**found) if found else data


def _warn_of_numerals(formula: str, data: Any, variables: set[str]) -> None:
    """Warn that numbers are text, as "24,0" is, where each of many becomes a level and no C(…) asks for that."""
    for name in (name for name in data.columns if name in variables and not hasattr(data[name], "cat")):
        values = {*data[name].to_list()} if str(data[name].dtype).lower().startswith(TEXT_TYPES) else ()
        if len(values) <= MAX_NUMERALS or re.search(rf"C\(\s*`?{re.escape(str(name))}\b", formula):
            continue
        if all(isinstance(value, str) and NUMERAL.fullmatch(value) for value in values):
            column = f"data[{name!r}]"
            warnings.warn(
                f"the column {name!r} holds numbers as text, such as {min(values)!r}, so each of {len(values)} values becomes a "
                f"level; convert it: {column} = pandas.to_numeric({column}.str.replace(',', '.')), or write C({name}) if levels "
                "are meant",
                UserWarning,
                stacklevel=5,
            )


def _why_no_matrix(formula: str, error: str, data: Any, variables: set[str]) -> str:
    """Say why formulaic cannot make a matrix of the formula, and what to write instead."""
    columns = [*map(str, data.columns)]
    found = UNKNOWN_NAME.search(error)
    if found is None:
        dates = [name for name in columns if name in variables and str(data[name].dtype).lower().startswith("datetime")]
        if dates:
            column = f"frame[{dates[0]!r}]"
            days = f"{column} = ({column} - {column}.min()).dt.days"
            return f"the column {dates[0]!r} holds dates; make numbers of them first, such as days: {days}"
        return f"formulaic cannot make a matrix of {formula!r}: {error}"
    name = found[1] or found[2]
    unknown = f"{name!r} in the formula {formula!r} is neither a column of data nor a function"
    if name in IN_PLACE_OF:
        return f"{unknown}; {IN_PLACE_OF[name]}"
    return f"{unknown}; {did_you_mean(name, columns) or f'the columns are {listed([*map(repr, columns)])}'}"
