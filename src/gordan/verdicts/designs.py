"""What statisticians pass to `diagnose`: arrays, data frames, a formula with its data, a model of statsmodels or its results."""

from __future__ import annotations

import difflib
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gordan.arrays import Array, is_sparse, require_aligned
from gordan.certificates.data import MODELS
from gordan.errors import InputError, MissingExtra, one_of
from gordan.rows import DUMMIES, Complete, column_names, complete_rows, host, is_missing
from gordan.verdicts.explaining import baselines

MISSING = ("raise", "drop")
# Frames between formulaic and who called `diagnose`, in whose namespace the functions of a formula are looked up.
USER = 3
# A name that is not known, as Python and formulaic say it.
UNKNOWN = re.compile(r"name '(\w+)' is not defined|`(\w+)` is not present in the dataset")
# Texts in a formula; and names in backticks, or by themselves: not of functions, attributes or arguments.
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
NAMES = re.compile(r"`([^`]+)`|(?<![\w.])([^\W\d]\w*)(?!\w|\s*\(|\s*=(?!=))")
# Two counts on the left side of a formula, as R has them; and what to write in place of functions of R.
CBIND = re.compile(r"cbind\(\s*([^\W\d]\w*)\s*,\s*([^\W\d]\w*)\s*\)")
OF_R = {
    "factor": "C(…) makes 0/1 columns of a category, as factor(…) does in R",
    "offset": "leave the offset out: it changes the estimates, but not whether they exist",
}
# The links of a binomial family whose log-likelihood is concave and grows forever in the same directions, in words.
LINKS = {"Logit": "", "Probit": "probit", "CLogLog": "complementary log-log", "LogLog": "log-log"}
# The distributions of an ordinal model that are known to be log-concave, as the claims about it require.
LOG_CONCAVE = {"logistic": "", "norm": "probit", "gumbel_l": "complementary log-log", "gumbel_r": "log-log"}
BY_CLASS = {"Logit": "logistic", "Probit": "logistic", "MNLogit": "multinomial", "OrderedModel": "ordinal", "Poisson": "poisson"}


@dataclass(frozen=True, eq=False)
class Design:
    """The matrix and the outcome of a model, with names. `dropped` are the rules by which rows were left out (`complete`).

    `link` is that of a binary or ordinal model, in words, where it is another than the logit; `offset` says that the model has
    an offset or an exposure, which changes estimates and not whether they exist; `baselines` are the levels of factors that
    have no column of their own.
    """

    X: Any
    y: Any
    model: str = "logistic"
    intercept: str = "free"
    weights: Any = None
    names: Sequence[str] | None = None
    outcome: str | None = None
    order: Sequence[Any] | None = None
    complete: Complete | None = None
    dropped: tuple[str, ...] = ()
    weight_name: str | None = None
    link: str = ""
    offset: bool = False
    baselines: Mapping[str, str] = field(default_factory=dict)

    def rows(self, positions: Sequence[int]) -> tuple[int, ...]:
        """Where these rows of X are in what was given."""
        return tuple(positions) if self.complete is None else tuple(self.complete.kept[list(positions)].tolist())


def design_of(X: Any, y: Any, data: Any, model: str, intercept: str, weights: Any, missing: str, reference: Any = None) -> Design:
    """The design that the arguments of `diagnose` mean; rows with missing cells, or of weight zero, are left out."""
    if missing not in MISSING:
        raise InputError(f"missing is {missing!r}; choose 'raise' or 'drop'")
    if model not in MODELS:
        raise InputError(f"model is {model!r}; {one_of(model, MODELS)}")
    if isinstance(X, str):
        found = _of_formula(X, y, data, model, weights, missing)
    elif hasattr(getattr(X, "model", X), "endog") and hasattr(getattr(X, "model", X), "exog"):
        found = _of_statsmodels(X, y, data, model, weights)
    else:
        if data is not None:
            raise InputError("data goes with a formula: pass diagnose('y ~ x', data=frame), or X and y without data")
        if y is None:
            raise InputError("y is missing: pass X and y, a formula with data=, or a statsmodels model")
        if isinstance(y, str):
            raise InputError(
                f"y is the text {y!r}; pass the column itself, diagnose(frame.drop(columns={y!r}), frame[{y!r}]), "
                f"or a formula, diagnose('{y} ~ …', data=frame)"
            )
        label, weight = (_name_of(column) for column in (y, weights))
        y = y.toarray().ravel() if is_sparse(y) and y.shape[1] == 1 else y
        found = Design(X, y, model, intercept, weights, outcome=label, weight_name=weight)
        found = _complete(found, missing)
        _require_outcomes(found)
    _require_numbers(found.X)
    _refuse_proportions(found, X, weights)
    return replace(found, order=_order(found, reference, isinstance(X, str)))


def _name_of(column: Any) -> str | None:
    """The name of a column of a data frame, or of the only one of a frame or a design matrix."""
    name, names = getattr(column, "name", None), column_names(column, 1)
    found = names[0] if names else name
    return found if isinstance(found, str) and found else None


# ---- a formula ------------------------------------------------------------------------------------------------------


def _of_formula(formula: str, y: Any, data: Any, model: str, weights: Any, missing: str) -> Design:
    """A design by formulaic, whose constant is one of its columns. Missing values matter in the variables that it names."""
    if y is not None:
        raise InputError("a formula names the outcome on its left side; leave y out")
    if not hasattr(data, "columns"):
        given = "a formula needs its data" if data is None else f"data is not a data frame but of type {type(data).__name__}"
        raise InputError(f"{given}: diagnose({formula!r}, data=frame)")
    parsed, variables = _parsed(formula, [name for name in data.columns if not (isinstance(weights, str) and name == weights)])
    import formulaic

    outcome = str(next(iter(parsed.lhs)))
    complete, weights = _complete_data(data, [name for name in data.columns if name in variables], weights, missing)
    kept = _with_numbers(complete.of(data), variables)
    plain = outcome in data.columns
    try:
        matrix = formulaic.model_matrix(parsed.rhs, kept, na_action="raise", context=USER).__wrapped__
        left = kept[outcome] if plain else formulaic.model_matrix(parsed.lhs, kept, na_action="raise", context=USER)
    except (formulaic.errors.FormulaicError, KeyError, TypeError, ValueError) as error:
        raise InputError(_why_no_matrix(formula, str(error), kept, variables)) from None
    if not plain:
        columns = [name for name in left.columns if name != "Intercept"]
        if len(columns) != 1:
            raise InputError(f"the outcome {outcome} becomes {len(columns)} columns; name a column of data, or make one")
        left = left[columns[0]]
    if model == "ordinal" and "Intercept" in matrix.columns:  # the thresholds take its place
        matrix = matrix.drop(columns="Intercept")
    names = [*map(str, matrix.columns)]
    intercept, left_out = "free" if model == "ordinal" else "none", baselines(names, kept)
    return Design(matrix, left, model, intercept, weights, names, outcome, complete=complete, baselines=left_out)


def _why_no_matrix(formula: str, error: str, data: Any, variables: set[str]) -> str:
    """Why formulaic cannot make a matrix: a name that it does not know, with one that it does; dates; or what it says itself."""
    columns = [*map(str, data.columns)]
    found = UNKNOWN.search(error)
    if found is None:
        dates = [name for name in columns if name in variables and str(data[name].dtype).lower().startswith("datetime")]
        if dates:
            column = f"frame[{dates[0]!r}]"
            days = f"{column} = ({column} - {column}.min()).dt.days"
            return f"the column {dates[0]!r} holds dates; make numbers of them first, such as days: {days}"
        return f"formulaic cannot make a matrix of {formula!r}: {error}"
    name = found[1] or found[2]
    unknown = f"{name!r} in the formula {formula!r} is neither a column of data nor a function"
    if name in OF_R:
        return f"{unknown}; {OF_R[name]}"
    near = difflib.get_close_matches(name, columns, 1)
    listed = f"the columns are {', '.join(map(repr, columns[:8]))}{', …' if len(columns) > 8 else ''}"
    return f"{unknown}; " + (f"did you mean {near[0]!r}?" if near else listed)


def _with_numbers(data: Any, variables: set[str]) -> Any:
    """The data with columns of numbers or truths as such, also where text such as "NA" in rows that were left out made them
    columns of objects, of which a formula would make a category for each value; and without categories that no row has."""
    if not hasattr(data, "assign"):
        return data
    found = _with_used_categories(data, variables)
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


def _with_used_categories(data: Any, variables: set[str]) -> dict[str, Any]:
    """The columns of categories, without those that no row has."""
    categorical = (name for name in data.columns if name in variables and hasattr(data[name], "cat"))
    return {name: data[name].cat.remove_unused_categories() for name in categorical}


def _complete_data(data: Any, used: list[str], weights: Any, missing: str) -> tuple[Complete, Any]:
    """The rows of a data frame that are not left out, for a missing value in these columns or their weight; and their weights."""
    name = weights if isinstance(weights, str) else _name_of(weights) or "sample_weight"
    if isinstance(weights, str):
        if weights not in data:
            raise InputError(f"data has no column {weights!r} for sample_weight")
        weights = data[weights]
    require_aligned(data=data, sample_weight=weights)
    weights = None if weights is None else _checked(weights, len(data), missing)
    lacking = complete_rows(len(data), {"data": data[used]}).missing
    if lacking and missing == "raise":
        raise InputError(f"data has missing values ({_counted(lacking)}); pass missing='drop' to leave those rows out")
    complete = complete_rows(len(data), _by_name(("data", data[used]), (name, weights)), weights)
    _require_rows(complete)
    return complete, complete.of(weights)


def _counted(missing: dict[str, int]) -> str:
    return ", ".join(f"{count} in {name}" for name, count in missing.items()) or "none"


def _parsed(formula: str, columns: Sequence[str]) -> tuple[Any, set[str]]:
    """The formula and the variables in it; "." stands for those of the columns that it does not name."""
    try:
        import formulaic
    except ImportError:
        raise MissingExtra("formulaic", "stats", "a formula") from None
    try:
        found = formulaic.Formula(formula, _context={"__formulaic_variables_available__": columns})
        # formulaic leaves out those inside functions such as bs and scale, and those that are named like one
        tokens = NAMES.findall(QUOTED.sub("", formula))
        variables = {*map(str, found.required_variables), *({quoted or plain for quoted, plain in tokens} & {*columns})}
    except (formulaic.errors.FormulaicError, SyntaxError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error).splitlines()[0].rstrip(".")
        raise InputError(f"formulaic cannot read {formula!r}: {reason}{_syntax_hint(formula, reason, columns)}") from None
    left = [*map(str, getattr(found, "lhs", ()))]
    pair = CBIND.fullmatch(left[0]) if len(left) == 1 else None
    left = left if pair is None else [*pair.groups()]
    if len(left) == 2 and {*left} <= {*columns} and not isinstance(found.rhs, tuple):
        raise InputError(_pair_of_counts(formula, left))
    if len(left) != 1 or isinstance(found.rhs, tuple):
        raise InputError(f"the formula {formula!r} needs one outcome on its left side, and one sum on its right: 'y ~ x1 + x2'")
    return found, variables


def _syntax_hint(formula: str, reason: str, columns: Sequence[str]) -> str:
    """What to write in place of something that formulaic cannot read; nothing where that is not known."""
    if "as.factor(" in formula:
        return f"; {OF_R['factor']}"
    if "`|`" in reason:
        return "; random effects such as (1|group) are not supported"
    if reason.startswith("Unknown operator"):
        return "; write calculations and comparisons inside I(…), as in I(visits > 1)"
    spaced = next((name for name in map(str, columns) if not name.isidentifier() and name in formula), None)
    return f"; write the name {spaced!r} in backticks: `{spaced}`" if spaced else ""


def _pair_of_counts(formula: str, columns: Sequence[str]) -> str:
    """What to do about two outcomes, which statsmodels and R take as counts of successes and failures."""
    code = _two_rows_of_formula(formula, f"frame[{[*columns]!r}]", "np.ravel(y)")
    return f"the formula {formula!r} has two outcomes, as counts of successes and failures{EXPAND}{code}"


# ---- a model of statsmodels -----------------------------------------------------------------------------------------


def _of_statsmodels(given: Any, y: Any, data: Any, model: str, weights: Any) -> Design:
    """The design of a model that statsmodels has made, which has its constant among the columns."""
    if y is not None or data is not None or weights is not None:
        raise InputError("a statsmodels model has its own data and weights; pass it alone")
    source = getattr(given, "model", given)
    found = _model_of(source)
    if model not in (MODELS[0], found):  # the first is the default
        raise InputError(f"model is {model!r}, but the statsmodels model is {found}; leave model out")
    names = [str(name) for name in source.exog_names][: source.exog.shape[1]]
    outcome = source.endog_names if isinstance(source.endog_names, str) else None
    labels, order = _outcomes_of(source, found)
    weights = getattr(source, "freq_weights", None)
    weights = None if weights is None else np.asarray(weights) * np.asarray(source.var_weights)
    if found == "logistic":
        _refuse_proportions_of_model(source, given is not source)
    kept = complete_rows(len(labels), {}, weights)
    intercept = "free" if found == "ordinal" else "none"
    from pandas import DataFrame  # which statsmodels needs

    own = DataFrame(np.asarray(source.exog)[kept.kept], columns=names), labels[kept.kept]
    design = Design(*own, found, intercept, kept.of(weights), names, outcome, order, _with_lost(kept, source))
    left_out = baselines(names, getattr(source.data, "frame", None))
    offset = any(getattr(source, part, None) is not None for part in ("offset", "exposure"))
    return replace(design, link=_link_of(source), offset=offset, baselines=left_out)


def _link_of(source: Any) -> str:
    """The link of a binary or ordinal model in words, if it is another than the logit."""
    if hasattr(source, "distr"):
        return LOG_CONCAVE[_name_of_distribution(source)]
    family = getattr(source, "family", None)
    kinds = [kind.__name__ for kind in type(source if family is None else family.link).__mro__]
    return next((LINKS[kind] for kind in kinds if kind in LINKS), "")


def _outcomes_of(source: Any, found: str) -> tuple[Array, list[Any] | None]:
    """The outcomes of a model of statsmodels, and the order of the categories where there are several."""
    labels = np.asarray(source.endog)
    if found == "multinomial":
        order = [source._ynames_map[k] for k in sorted(source._ynames_map)]
    elif found == "ordinal":
        order = [label.item() if isinstance(label, np.generic) else label for label in source.labels]
    else:
        return labels, None
    return np.array([order[int(code)] for code in labels], dtype=object), [*map(type(order[0]), order)]


def _with_lost(kept: Complete, source: Any) -> Complete:
    """The rows kept, by their places among all rows: statsmodels has left out those with missing values."""
    lost = np.array(getattr(source.data, "missing_row_idx", None) or [], dtype=np.intp)
    if not len(lost):
        return kept
    n = kept.n + len(lost)
    return replace(kept, n=n, kept=np.delete(np.arange(n), lost)[kept.kept], missing={"the data of the model": len(lost)})


def _model_of(source: Any) -> str:
    """Which of our models this one of statsmodels is."""
    kinds = [kind.__name__ for kind in type(source).__mro__]
    for kind in kinds:
        if kind in BY_CLASS:
            if BY_CLASS[kind] == "ordinal":
                _require_log_concave(_name_of_distribution(source))
            return BY_CLASS[kind]
    family = type(getattr(source, "family", None)).__name__
    link = type(getattr(getattr(source, "family", None), "link", None)).__name__
    plain = kinds[0] == "GLM"  # generalized estimating equations and additive models, which inherit from it, have other estimates
    if plain and family == "Binomial" and link in LINKS:
        return "logistic"
    if plain and family == "Poisson" and link == "Log":
        return "poisson"
    what = f"{kinds[0]} with the family {family} and the link {link}" if plain else kinds[0]
    raise InputError(
        f"diagnose does not support {what} of statsmodels; it supports {', '.join(BY_CLASS)}, and GLM with Binomial (logit, "
        "probit, cloglog) or Poisson (log)"
    )


def _name_of_distribution(source: Any) -> str:
    """The name that SciPy gives the distribution of an ordinal model."""
    return str(getattr(source.distr, "name", type(source.distr).__name__))


def _require_log_concave(name: str) -> None:
    """Refuse an ordinal model with a distribution for which estimates need not be unique where the data overlaps."""
    if name not in LOG_CONCAVE:
        raise InputError(
            f"diagnose does not know whether the distribution {name!r} of the OrderedModel is log-concave, as logit, probit and "
            "Gumbel's are; if it is, pass the columns and outcomes: gordan.diagnose(X, y, model='ordinal')"
        )


# ---- rows that are left out, and what cannot be used ----------------------------------------------------------------


def _complete(design: Design, missing: str) -> Design:
    """The design without rows that miss a value, if these are to be dropped, and without rows of weight zero."""
    X, y, weights = design.X, design.y, design.weights
    require_aligned(X=X, y=y, sample_weight=weights)
    if missing == "raise" and weights is None:
        return design
    n, rows = len(y), X.shape[0] if hasattr(X, "shape") else len(X)
    if n != rows:
        raise InputError(f"X has {rows} rows but y has {n} labels")
    if weights is not None:
        weights = _checked(weights, n, missing)
    columns = (("X", X), (design.outcome or "y", y), (design.weight_name or "sample_weight", weights))
    complete = complete_rows(n, _by_name(*columns) if missing == "drop" else {}, weights)
    if not complete.left_out:
        return replace(design, weights=weights, complete=complete)
    _require_rows(complete)
    rules = (
        *(("missing",) if complete.missing else ()),
        *(("zero-weight",) if weights is not None and np.any(weights == 0) else ()),
    )
    kept = {name: complete.of(column) for name, column in (("X", X), ("y", y), ("weights", weights))}
    return replace(design, **kept, complete=complete, dropped=rules)


def _by_name(*columns: tuple[str, Any]) -> dict[str, Any]:
    """These columns by name; one whose name is taken gets another, so that none replaces another."""
    found: dict[str, Any] = {}
    for name, values in columns:
        while name in found:
            name = f"{name} (again)"
        found[name] = values
    return found


def _require_rows(complete: Complete) -> None:
    """Refuse data of which no row is kept."""
    if complete.n and not len(complete.kept):
        raise InputError(f"no row is left: each has a missing value or weight zero (missing: {_counted(complete.missing)})")


def _require_outcomes(design: Design) -> None:
    """Refuse y in which a value is missing, also one in words."""
    if not getattr(design.y, "shape", getattr(design.y, "__len__", None)):
        return  # it is no column: whoever reads it says so
    complete = complete_rows(len(design.y), {"y": design.y})
    if complete.left_out:
        row = int(np.setdiff1d(np.arange(complete.n), complete.kept)[0])
        value = np.asarray(host(design.y.to_numpy() if hasattr(design.y, "to_numpy") else design.y), dtype=object)[row]
        where = f"y[{design.rows([row])[0]}]"
        raise InputError(f"{where} is {value!r}; every row needs a label: drop that row, or pass missing='drop'")


def _checked(weights: Any, n: int, missing: str) -> Any:
    """Weights as floats, none of them negative; how large a positive one is does not matter here."""
    if isinstance(weights, str):
        raise InputError(f"sample_weight is the text {weights!r}; pass the column itself, sample_weight=frame[{weights!r}]")
    given = np.asarray(host(weights.to_numpy() if hasattr(weights, "to_numpy") else weights))
    if given.dtype.kind in "OUT":  # where pandas.NA and text such as "NA" are missing values as well
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


def _require_numbers(X: Any) -> None:
    """Refuse columns of text or categories with the line that makes dummies of them."""
    types = getattr(X, "dtypes", None)
    if types is None or not hasattr(X, "columns"):
        return
    for j, (name, kind) in enumerate(zip(X.columns, types, strict=True)):
        told = str(kind)
        column = X.iloc[:, j] if hasattr(X, "iloc") else X[name]  # by position: pandas allows two columns of one name
        if told.startswith(("cat", "Cat", "Enum")) or told in ("str", "string", "String", "Utf8", "large_string"):
            values = [*column]
        elif told in ("object", "Object"):
            values = [value for value in column if isinstance(value, str)]
        else:
            continue
        _refuse_text(name, values, told.startswith(("cat", "Cat", "Enum")), hasattr(X, "to_dummies"))


def _refuse_text(name: str, values: list[Any], categories: bool, polars: bool) -> None:
    """Refuse these values of a column, if there are any, with what makes numbers of them: a line of polars for a frame of it."""
    present = [value for value in values if not is_missing(value)]
    if present and all(map(_is_numeral, present)) and not categories:
        convert = f"X[{name!r}] = pandas.to_numeric(X[{name!r}], errors='coerce')"
        convert = f"X = X.with_columns(polars.col({name!r}).cast(float, strict=False))" if polars else convert
        drop = "; then missing='drop' leaves out the rows without a number" if len(present) < len(values) else ""
        raise InputError(f"column {name!r} of X holds numbers as text; convert it: {convert}{drop}")
    if present:
        dummies = f"X.to_dummies({name!r}, drop_first=True)" if polars else DUMMIES
        raise InputError(
            f"column {name!r} of X holds text, such as {present[0]!r}; make 0/1 columns of it: X = {dummies} (drop rows "
            "without a value first: they would get zeros), or pass a formula, which makes them and finds missing values: "
            "gordan.diagnose('outcome ~ .', data=frame, missing='drop')"
        )
    if values:
        raise InputError(f"column {name!r} of X has missing values, such as {values[0]!r}; pass missing='drop'")


def _is_numeral(value: Any) -> bool:
    try:
        return isinstance(value, str) and math.isfinite(float(value))
    except ValueError:
        return False


# What to do about proportions and counts, and how much of a proportion y is in either outcome.
EXPAND = "; pass two rows for each, one for either outcome, with its frequency as weight: "
PARTS = "np.ravel(np.column_stack([y, 1 - y]))"


def _refuse_proportions(design: Design, given: Any, weights: Any) -> None:
    """Refuse y that is a proportion or a pair of counts, for which logistic regression has another form; `given` is X, or the
    formula, and `weights` are the weights, or the name of their column."""
    if design.model != "logistic":
        return
    values = np.asarray(host(design.y.to_numpy() if hasattr(design.y, "to_numpy") else design.y))
    X = "X.iloc" if hasattr(given, "iloc") else "X" if hasattr(given, "shape") else "np.asarray(X)"
    if values.ndim == 2 and values.shape[1] == 2 and values.dtype.kind in "iuf":
        told = f"y has the shape {values.shape}: two columns, as counts of successes and failures have"
        raise InputError(f"{told}{EXPAND}{_two_rows(X, 'np.ravel(y)')}")
    if _are_proportions(values):
        own = f"frame[{weights!r}]" if isinstance(weights, str) else "sample_weight"
        counts = PARTS if weights is None else f"{PARTS} * np.repeat(np.asarray({own}), 2)"
        in_frame = f"frame[{design.outcome!r}]"
        code = _two_rows_of_formula(given, in_frame, counts) if isinstance(given, str) else _two_rows(X, counts)
        raise InputError(f"y has values between 0 and 1, as proportions have{EXPAND}{code}")


def _refuse_proportions_of_model(source: Any, results: bool) -> None:
    """Refuse a model of statsmodels whose outcomes are proportions, or pairs of counts; `results` were given in place of it."""
    counts = bool(np.any(np.asarray(getattr(source, "n_trials", 1)) != 1))
    if not counts and not _are_proportions(np.asarray(source.endog, dtype=np.float64)):
        return
    frequencies = [PARTS]
    if counts:
        frequencies.append("np.repeat(model.n_trials, 2)")
    weights = [name for name in ("freq_weights", "var_weights") if np.any(np.asarray(getattr(source, name, 1)) != 1)]
    frequencies += [f"np.repeat(np.asarray(model.{name}), 2)" for name in weights]
    model = "model = results.model; " if results else ""
    data = f"{model}X, y = pandas.DataFrame(model.exog, columns=model.exog_names), model.endog; "
    what = "counts of successes and failures" if counts else "proportions as outcomes"
    code = _two_rows("X.iloc", " * ".join(frequencies), ", intercept='none'")
    raise InputError(f"the model has {what}{EXPAND}{data}{code}")


def _are_proportions(values: Array) -> bool:
    """Whether these are numbers from 0 to 1, and not only 0 and 1."""
    if values.ndim != 1 or values.dtype.kind != "f":
        return False
    inside = values[np.isfinite(values)]
    return bool(len({*inside[:1000].tolist()} - {0.0, 1.0})) and inside.min() >= 0 and inside.max() <= 1


def _two_rows(X: str, counts: str, options: str = "") -> str:
    """Code that makes two rows of each, one for either outcome, and keeps the names of columns."""
    X2 = f"X2 = {X}[np.repeat(np.arange(len(y)), 2)]"
    return f"{X2}; gordan.diagnose(X2, np.tile([1, 0], len(y)), sample_weight={counts}{options})"


def _two_rows_of_formula(formula: str, y: str, counts: str) -> str:
    """The same for a formula and the data frame of it."""
    formula = f"event ~ {formula.partition('~')[2].strip()}"
    long = f"frame.iloc[np.repeat(np.arange(len(y)), 2)].assign(event=np.tile([1, 0], len(y)), count={counts})"
    return f"y = {y}; long = {long}; gordan.diagnose({formula!r}, data=long, sample_weight='count')"


def _order(design: Design, reference: Any, formula: bool) -> Sequence[Any] | None:
    """The order of the classes where y or the model says one, with the reference first; None: as they are sorted. Where a
    formula made the design, messages name the column of its data."""
    order = design.order
    if design.model in ("multinomial", "ordinal") and order is None:
        order, stated = _categories(design.y)
        if design.model == "ordinal" and not stated:
            _warn_of_order(design.y, order, design.outcome if formula else None)
    if reference is None:
        return order
    if design.model != "multinomial":
        raise InputError(f"reference is for model='multinomial'; leave it out for model={design.model!r}")
    labels = [*order] if order is not None else sorted({*np.asarray(host(design.y)).tolist()})
    if reference not in labels:
        raise InputError(f"reference is {reference!r}, but y has the classes {', '.join(map(repr, labels))}")
    return [reference, *(label for label in labels if label != reference)]


def _categories(y: Any) -> tuple[Sequence[Any] | None, bool]:
    """The categories of y that occur, in their order, if it has categories; and whether they are said to be ordered."""
    kind = getattr(y, "dtype", None)
    categories = getattr(kind, "categories", getattr(y, "categories", None))  # of pandas, or of polars' Enum
    if not hasattr(categories, "__iter__"):
        return None, False
    present = {*np.asarray(y).tolist()}
    found = [label for label in np.asarray(categories).tolist() if label in present]
    return found, bool(getattr(kind, "ordered", True))


def _warn_of_order(given: Any, order: Sequence[Any] | None, column: str | None) -> None:
    """Say in which order text is taken, which nobody has said: that of the alphabet, most often."""
    labels = sorted({*np.asarray(host(given)).tolist()}) if order is None else [*order]
    if len(labels) > 2 and all(isinstance(label, str) for label in labels):
        taken = f"{' < '.join(labels[:6])}{' < …' if len(labels) > 6 else ''}"
        to, y = ("pass y", "y") if column is None else (f"data[{column!r}]",) * 2
        warnings.warn(
            f"the classes of {column or 'y'} are text, taken in the order {taken}; to set it, {to} = pandas.Categorical({y}, "
            "categories=[lowest, …, highest], ordered=True)",
            stacklevel=5,
        )
