"""A diagnosis in words: a summary, and a report with a table of coefficients, the reasons and what to do next."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gordan.certificates.models import INTERCEPT
from gordan.regressions import Regression
from gordan.verdicts.explaining import level_of, separating_columns
from gordan.verdicts.model_matrix import counts_by_column

if TYPE_CHECKING:
    from gordan.verdicts.diagnose import Diagnosis

SIGNLESS = "inf: infinite, sign undetermined; the likelihood keeps increasing whether this coefficient goes to +∞ or to -∞."
# The most names that a sentence lists, and the most lines of the table.
MAX_NAMES, MAX_LINES = 6, 40
SEPARATED = ("complete", "quasi-complete")


def summary(d: Diagnosis) -> str:
    """Write the kind, what the coefficients do, and advice, one sentence or two to a line."""
    return "\n".join(_lines(d))


def summary_html(d: Diagnosis) -> str:
    """Write the summary with a paragraph for each line."""
    return "".join(f"<p>{html.escape(line)}</p>" for line in _lines(d))


def report(d: Diagnosis) -> str:
    """Write the summary with reasons, a table in place of the sentence about coefficients, and code that fits estimates."""
    why = [f"  - {sentence}" for sentence in d.explanation]
    code = [f"    {line}" for line in d.next_steps]
    return "\n".join([*_facts(d), *(["Why:", *why] if why else []), *_table(d), f"Next: {_advice(d)}", *code])


def _lines(d: Diagnosis) -> list[str]:
    """Return the lines of the summary."""
    return [*_facts(d), *filter(None, [_behaviour(d)]), f"Next: {_advice(d)}"]


def _facts(d: Diagnosis) -> list[str]:
    """Return what both the summary and the report begin with: rows and columns that are left out, the kind, the outcome."""
    lines = []
    if d.left_out:
        complete = d._data.design.complete
        missing = f"missing values: {counts_by_column(d.missing)}" if d.missing else ""
        zero = f"{complete.zero} of weight zero" if complete is not None and complete.zero else ""
        reason = "; ".join(filter(None, (missing, zero)))
        verb = "is" if d.left_out == 1 else "are"
        lines.append(f"{d.left_out} of {d.left_out + d._data.n} rows {verb} left out ({reason}); rows are numbered as given.")
    lines += [f"Notice: {words}" for words in d._data.design.notices]
    aliased = _aliased(d)
    if aliased:
        verb = "is a linear combination" if len(aliased) == 1 else "are linear combinations"
        apart = any(name.endswith(INTERCEPT) for name in (*d.columns, *d.open))
        beside = " and the thresholds" if d.model == "ordinal" else " and the intercept" if apart else ""
        effect = f"{'its effect' if len(aliased) == 1 else 'their effects'} cannot be told from those of the others"
        lines.append(
            f"X is rank-deficient: {_listed(aliased)} {verb} of the other columns{beside}, and left out as aliased: {effect}."
        )
    for name, others in d._nearly_dependent:
        lines.append(
            f"Notice (not proved): {name} is a linear combination of {_listed(others)} up to rounding; programs may fail to "
            "converge, or return arbitrary coefficients for them."
        )
    return [*lines, _kind(d), *filter(None, [_outcome(d)])]


def _kind(d: Diagnosis) -> str:
    """Say which kind of separation there is, of how many rows, and whether the estimates exist."""
    n, link = d._data.n, d._data.design.link
    regression = Regression(d.model).in_words
    if link:
        regression = f"an ordinal {link} regression" if d.model == "ordinal" else f"a {link} regression"
    lost = f"The maximum-likelihood estimates of {regression} do not exist."
    separated = len(d.rows)
    if d.model == "poisson" and d.kind in SEPARATED:
        zero = f"{d._data.table.outcome} = 0"
        rows = (
            f"1 of {n} rows, with {zero}, has a fitted mean that goes"
            if separated == 1
            else (f"{separated} of {n} rows, all with {zero}, have fitted means that go")
        )
        return f"Separation (proved): {rows} to 0; no other row can be separated. {lost}"
    if Regression(d.model).of_classes and d.kind == "complete":
        return f"Complete separation (proved): some direction separates all {n} rows strictly from every other class. {lost}"
    if Regression(d.model).of_classes and d.kind == "quasi-complete":
        verb = "is" if separated == 1 else "are"
        rows = f"{separated} of {n} rows {verb} strictly separated from at least one other class"
        return f"Quasi-complete separation (proved): {rows}; no direction does better. {lost}"
    if d.kind == "complete":
        return f"Complete separation (proved): a plane has all {n} rows strictly on the right side. {lost}"
    if d.kind == "quasi-complete":
        return (
            f"Quasi-complete separation (proved): a plane has {separated} of {n} rows strictly on the right side and the other "
            f"{n - separated} exactly on the plane; no plane does better. {lost}"
        )
    if d.kind == "overlap":
        aliased = _aliased(d)
        unique = "" if d.dependent is None else " and are unique"
        if aliased:
            unique = f", and are unique only after {_listed(aliased)} {'is' if len(aliased) == 1 else 'are'} dropped"
        what = "no plane separates the classes" if d.model == "logistic" else "no direction separates any row"
        return f"Overlap (proved): {what}, not even weakly. The maximum-likelihood estimates exist{unique}."
    if d._certificate is not None:
        return "Undecided: the separation is not complete (proved); whether it is quasi-complete is undecided."
    return "Undecided: nothing was proved about separation."


def _outcome(d: Diagnosis) -> str:
    """Say what the signs and names of coefficients refer to: the event, the reference class, or the order of the classes."""
    table = d._data.table
    if d.model == "ordinal":
        classes = [*map(str, table.labels)]
        return f"Order of the classes: {' < '.join(classes[:MAX_NAMES])}{' < …' if len(classes) > MAX_NAMES else ''}."
    if d.model == "multinomial":
        return f"Reference: {table.has(0)}."
    return f"Event: {table.has(1)}." if d.model == "logistic" and d.kind in SEPARATED else ""


def _behaviour(d: Diagnosis) -> str:
    """Say in one sentence which coefficients are infinite and which are finite; nothing where all or none are known to be."""
    if d.kind not in SEPARATED:
        return ""
    groups = (
        ("goes to +∞", "go to +∞", [name for name, sign in d.columns.items() if sign == 1]),
        ("goes to -∞", "go to -∞", [name for name, sign in d.columns.items() if sign == -1]),
        (
            "is infinite, sign undetermined",
            "are infinite, sign undetermined",
            [name for name, sign in d.columns.items() if sign is None],
        ),
        ("stays finite", "stay finite", [name for name, sign in d.columns.items() if sign == 0]),
        ("was not decided", "were not decided", [*d.open]),
    )
    parts = [f"{_listed(names)} {one if len(names) == 1 else several}" for one, several, names in groups if names]
    return f"Coefficients: {'; '.join(parts)}." if parts else ""


def _table(d: Diagnosis) -> list[str]:
    """Return a line for each coefficient, as R prints them, and an explanation of "inf" where it occurs."""
    rows = d._coefficients
    width = max((len(name) for name, _, _ in rows[:MAX_LINES]), default=0)
    shown = [f"{name:<{width}}  {estimate:>9}" for name, estimate, _ in rows[:MAX_LINES]]
    more = [f"… and {len(rows) - MAX_LINES} more: see to_frame()"] if len(rows) > MAX_LINES else []
    signless = [SIGNLESS] if any(estimate == "inf" for _, estimate, _ in rows) else []
    return [f"{'':<{width}}  {'estimate':>9}", *shown, *more, *signless]


def _advice(d: Diagnosis) -> str:
    """Say what to do next."""
    dropped = [*_aliased(d), *(name for name, _ in d._nearly_dependent)]
    if d.kind == "overlap" and dropped:
        them = "it" if len(dropped) == 1 else "them"
        return (
            f"drop {_listed(dropped)} first, then fit as usual; with {them} the fit can fail, or return arbitrary coefficients."
        )
    if d.kind == "overlap":
        return "fit as usual."
    if d.kind == "undecided":
        return (
            "try more time if it was limited; leave out columns that are sums or copies of others up to rounding; or round the "
            "columns to the digits that were measured."
        )
    if d.model == "poisson" and d.separated.all():
        return f"there is nothing to estimate where {d._data.table.has(0)} in every row; is this the right column?"
    if d.model == "poisson":
        return (
            "do not rely on Wald tests or standard errors of this fit. Leave out the separated rows (`rows`), which say nothing "
            "about the coefficients that stay finite, and fit the others; or use a penalized likelihood."
        )
    if d.model != "logistic":
        return (
            "do not rely on Wald tests or standard errors of this fit. Bias-reduced (Firth-type) or penalized likelihoods give "
            "finite estimates; or merge classes or levels, or drop a column that separates, if it only restates the outcome."
        )
    return (
        "do not rely on Wald tests or standard errors of this fit. Firth's penalized likelihood and Bayesian fits give finite "
        f"estimates; exact or profile-likelihood methods give tests; or {_change(d)}."
    )


def _change(d: Diagnosis) -> str:
    """Say how to change the columns of a logistic model: the one that separates alone, or that has the only infinite estimate."""
    table = d._data.table
    infinite = {name: sign for name, sign in d.columns.items() if sign != 0 and name != INTERCEPT and name not in table.constants}
    alone = separating_columns(d.model, table, infinite) if d.kind == "complete" else []
    name = next(iter(alone or (infinite if len(infinite) == 1 else ())), None)
    level = level_of(table, name) if name is not None else None
    if level is not None and level[2]:
        return f"merge level {level[1]} of {level[0]} with another level (dropping {name} merges it with the baseline)"
    what = "drop or coarsen a column that separates" if name is None else f"drop or coarsen {name}"
    return f"{what if level is None else f'drop {level[0]}'}, if it only restates the outcome"


def _aliased(d: Diagnosis) -> list[str]:
    """Return the columns of X that are combinations of others, except a column of ones that is the constant of unnamed columns.

    A multinomial model has a coefficient of each column for each class, but the column is dropped only once.
    """
    table = d._data.table
    found = [*dict.fromkeys(_column(d, name) for name in d.dependent or ())]
    ones = next((name for name in found if d._data.columns is None and name in table.names and table.is_constant(name)), None)
    return [name for name in found if name != ones]


def _column(d: Diagnosis, name: str) -> str:
    """Return the column of X that a coefficient belongs to, or the name itself for a constant."""
    column = name.partition(":")[2]
    return column if name not in d._data.table.names and column in d._data.table.names else name


def _listed(names: Sequence[str]) -> str:
    """Join the first few names."""
    shown = [*names[:MAX_NAMES]]
    if len(names) > MAX_NAMES:
        return f"{', '.join(shown)} and {len(names) - MAX_NAMES} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
