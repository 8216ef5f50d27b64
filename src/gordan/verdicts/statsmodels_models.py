"""A model of statsmodels, or its results, as the design of the same model here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.regressions import Regression
from gordan.rows import Complete
from gordan.verdicts.explaining import baselines
from gordan.verdicts.model_matrix import Design, Names, kept_rows
from gordan.verdicts.proportions import refuse_proportions_of_model

BY_CLASS = {"Logit": "logistic", "Probit": "logistic", "MNLogit": "multinomial", "OrderedModel": "ordinal", "Poisson": "poisson"}
# The links of a binomial family whose log-likelihood is concave and increases forever in the same directions, in words.
LINKS = {"Logit": "", "Probit": "probit", "CLogLog": "complementary log-log", "LogLog": "log-log"}
# The same for the distributions of an ordinal model: those that are known to be log-concave, by their names in SciPy.
LOG_CONCAVE = {"logistic": "", "norm": "probit", "gumbel_l": "complementary log-log", "gumbel_r": "log-log"}


def is_statsmodels(given: Any) -> bool:
    """Return whether this is a model of statsmodels, or the results of one."""
    source = getattr(given, "model", given)
    return hasattr(source, "endog") and hasattr(source, "exog")


def design_of_statsmodels(given: Any, y: Any, data: Any, model: str, weights: Any) -> Design:
    """Make the design of a model of statsmodels or of its results; the constant is one of its columns."""
    if y is not None or data is not None or weights is not None:
        raise InputError("a statsmodels model has its own data and weights; pass it alone")
    source = getattr(given, "model", given)
    if source.endog is None or source.exog is None:
        raise InputError("the data of this model was removed (remove_data); pass the data, gordan.diagnose(X, y), or fit again")
    found = _model_of(source)
    if model not in (Regression.LOGISTIC, found):  # which is the default
        raise InputError(f"model is {model!r}, but the statsmodels model is {found}; leave model out")
    if found == "logistic":
        refuse_proportions_of_model(source, given is not source)
    names = [str(name) for name in source.exog_names][: source.exog.shape[1]]
    outcome = source.endog_names if isinstance(source.endog_names, str) else None
    labels, order = _outcomes_of(source, found)
    weights = getattr(source, "freq_weights", None)
    weights = None if weights is None else np.asarray(weights) * np.asarray(source.var_weights)
    kept = kept_rows([], len(labels), weights)
    from pandas import DataFrame  # which statsmodels needs

    return Design(
        DataFrame(np.asarray(source.exog)[kept.kept], columns=names),
        labels[kept.kept],
        found,
        intercept="free" if found == "ordinal" else "none",
        weights=kept.of(weights),
        names=Names(names, outcome, baselines=baselines(names, getattr(source.data, "frame", None))),
        order=order,
        complete=_among_all_rows(kept, source),
        link=_link_of(source),
        notices=_notices(source, found),
        offset=any(getattr(source, part, None) is not None for part in ("offset", "exposure")),
    )


def _notices(source: Any, found: str) -> tuple[str, ...]:
    """Say that the model has no constant, not even as a combination of columns, unless its formula says so itself."""
    if found == "ordinal" or getattr(source, "formula", None) is not None or getattr(source, "k_constant", True):
        return ()
    return ("the model has no constant; if one is meant, pass sm.add_constant(X) to statsmodels.",)


def _model_of(source: Any) -> str:
    """Return the model of `diagnose` that this model of statsmodels is, or refuse it."""
    kinds = [kind.__name__ for kind in type(source).__mro__]
    for kind in kinds:
        if kind in BY_CLASS:
            if BY_CLASS[kind] == "ordinal":
                _require_log_concave(_distribution_of(source))
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


def _distribution_of(source: Any) -> str:
    """Return the name that SciPy gives the distribution of an ordinal model."""
    return str(getattr(source.distr, "name", type(source.distr).__name__))


def _require_log_concave(name: str) -> None:
    """Refuse a distribution with which the estimates of an ordinal model need not be unique where the data overlaps."""
    if name not in LOG_CONCAVE:
        raise InputError(
            f"diagnose does not know whether the distribution {name!r} of the OrderedModel is log-concave, as the logistic, "
            "normal and Gumbel distributions are; if it is, pass the columns and outcomes: gordan.diagnose(X, y, model='ordinal')"
        )


def _link_of(source: Any) -> str:
    """Return the link of a binary or ordinal model in words, if it is not the logit."""
    if hasattr(source, "distr"):
        return LOG_CONCAVE[_distribution_of(source)]
    family = getattr(source, "family", None)
    kinds = [kind.__name__ for kind in type(source if family is None else family.link).__mro__]
    return next((LINKS[kind] for kind in kinds if kind in LINKS), "")


def _outcomes_of(source: Any, found: str) -> tuple[Array, list[Any] | None]:
    """Return the outcomes of the model, and the order of the classes where there are several."""
    labels = np.asarray(source.endog)
    if found == "multinomial":
        order = [source._ynames_map[k] for k in sorted(source._ynames_map)]
    elif found == "ordinal":
        order = [label.item() if isinstance(label, np.generic) else label for label in source.labels]
    else:
        return labels, None
    return np.array([order[int(code)] for code in labels], dtype=object), [*map(type(order[0]), order)]


def _among_all_rows(kept: Complete, source: Any) -> Complete:
    """Number the rows that are kept among all rows of the data: statsmodels has left out those with missing values."""
    lost = np.array(getattr(source.data, "missing_row_idx", None) or [], dtype=np.intp)
    if not len(lost):
        return kept
    n = kept.n + len(lost)
    return replace(kept, n=n, kept=np.delete(np.arange(n), lost)[kept.kept], missing={"the data of the model": len(lost)})
