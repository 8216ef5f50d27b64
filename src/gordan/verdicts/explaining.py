"""Sentences that say why data is separated: a level in which one outcome occurs, a threshold, or a combination of columns.

Sentences about levels and thresholds follow from comparing values of the data; nothing in them is taken from a solver.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from gordan.arrays import Array, as_dense
from gordan.regressions import Regression
from gordan.rows import is_missing

# A combination of columns is written out if it has at most so many terms, with factors of at most so many digits.
MAX_TERMS, MAX_DIGITS = 6, 6
# The most sentences that are written, and the most columns that are examined for them.
MAX_SENTENCES, MAX_COLUMNS = 8, 200
NO_SIMPLE_REASON = "no single column or level says why; `direction` has a combination of columns that separates"
# The 0/1 column of a level, as patsy and formulaic name it: the factor, and the level.
LEVEL = re.compile(r"^(?:C\()?([^\[\]()]+?)(?:,.*)?\)?\[(?:T\.)?((?:(?!\]:).)+)\]$")


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """The columns of a design by name, and the outcome of each row as the position of its label in `labels`.

    For counts the labels are "= 0" and "> 0". `baselines` are the levels of factors that have no column of their own, where they
    are known.
    """

    X: Any
    names: Sequence[str]
    outcome: str
    labels: Sequence[Any]
    which: Array
    baselines: Mapping[str, str] = field(default_factory=dict)

    def column(self, name: str) -> Array:
        """Return the values of a column."""
        part = self.X[:, [self.names.index(name)]]
        return np.asarray(as_dense(part), dtype=np.float64).ravel()

    def is_dummy(self, name: str) -> bool:
        """Return whether the values of a column are 0 and 1, and both occur."""
        x = self.column(name)
        ones = x == 1
        return bool((ones | (x == 0)).all() and ones.any() and not ones.all())

    def is_constant(self, name: str) -> bool:
        """Return whether a column consists of ones, as the constant of a model does."""
        return bool((self.column(name) == 1).all())

    @cached_property
    def constants(self) -> tuple[str, ...]:
        """The columns with one value, not 0, in every row: each of them is a constant of the model, whatever its value."""
        n = len(self.which)
        some = self.X[[0, n // 2, n - 1]]  # few other columns have the same value in these rows
        some = np.asarray(as_dense(some))
        alike = [self.names[int(j)] for j in np.flatnonzero((some == some[0]).all(axis=0) & (some[0] != 0))]
        return tuple(name for name in alike for x in [self.column(name)] if (x == x[0]).all())

    def has(self, place: int) -> str:
        """Say that the outcome is the label at this position."""
        label = self.labels[place]
        if isinstance(label, _Words):
            return f"{self.outcome} {label}"
        return f"{self.outcome} = {_number(label) if isinstance(label, float) else label}"


class _Words(str):
    """A label that contains its relation, as "> 0" does."""

    __slots__ = ()


COUNTS = (_Words("= 0"), _Words("> 0"))


def explanation(
    model: str, table: OutcomeTable, infinite: Mapping[str, int | None], direction: Mapping[str, int], rows: Sequence[int]
) -> list[str]:
    """Write sentences that say why these coefficients are infinite.

    A combination of columns is added if the simple reasons do not account for all separated `rows`.
    """
    if model == "poisson" and not table.which.any():
        return [f"all {len(table.which)} rows have {table.has(0)}: the likelihood increases as all fitted means go to 0"]
    separated = [name for name in table.names if _is_infinite(name, model, infinite)]
    sentences: list[str] = []
    covered = np.zeros(len(table.which), bool)
    for sentence, where in _simple(model, table, separated[:MAX_COLUMNS]):
        if sentence not in sentences:
            sentences.append(sentence)
            covered |= where
    if not covered[[*rows]].all() or not sentences:
        sentences += _combination(model, table, direction, len(rows))
    sentences = sentences or [NO_SIMPLE_REASON]
    more = len(sentences) - MAX_SENTENCES
    return sentences if more <= 0 else [*sentences[:MAX_SENTENCES], f"{more} more sentences of this kind are left out"]


def _is_infinite(name: str, model: str, infinite: Mapping[str, int | None]) -> bool:
    """Return whether a coefficient of this column is infinite, for any class of a multinomial model."""
    return name in infinite or (model == "multinomial" and any(key.split(":", 1)[1] == name for key in infinite if ":" in key))


def _simple(model: str, table: OutcomeTable, separated: Sequence[str]) -> Iterator[tuple[str, Array]]:
    """Find the reasons that lie in one column or in the baseline level of a factor, each with the rows that it is about."""
    reasons = _by_column(model, table, separated)
    alone = _separating(reasons)
    for name in (*alone, *(name for name in reasons if name not in alone)):
        yield from reasons[name]
    dummies = [name for name in separated if table.is_dummy(name)]
    groups = _factors(table, dummies)
    known = {*filter(None, map(_factor, dummies))}
    for name in table.names:  # a level whose column is a combination of the others has no coefficient
        if name not in separated and _factor(name) in known and table.is_dummy(name):
            yield from _describe_level(model, table, _level_in_words(name, 1.0), table.column(name) == 1)
    constant = any(map(table.is_constant, separated))
    for factor, names in groups.items():
        yield from _baseline(model, table, factor, names, constant)


def _by_column(model: str, table: OutcomeTable, separated: Sequence[str]) -> dict[str, list[tuple[str, Array]]]:
    """Find the reasons that lie in each of these columns."""
    dummies = [name for name in separated if table.is_dummy(name)]
    groups = _factors(table, dummies)
    found: dict[str, list[tuple[str, Array]]] = {}
    for name in separated:
        x = table.column(name)
        if name not in dummies:
            found[name] = [*_thresholds(model, table, name, x)]
            continue
        found[name] = [*_describe_level(model, table, _level_in_words(name, 1.0), x == 1)]
        if groups.get(_factor(name)) != [name]:
            found[name] += _describe_level(model, table, _level_in_words(name, 0.0), x == 0)
    return found


def _separating(reasons: Mapping[str, list[tuple[str, Array]]]) -> list[str]:
    """Return the columns whose reasons account for every row."""
    return [name for name, own in reasons.items() if own and np.logical_or.reduce([where for _, where in own]).all()]


def separating_columns(model: str, table: OutcomeTable, infinite: Mapping[str, int | None]) -> list[str]:
    """Return the columns each of which determines the outcome of every row."""
    separated = [name for name in table.names if _is_infinite(name, model, infinite)]
    return _separating(_by_column(model, table, separated[:MAX_COLUMNS]))


def level_of(table: OutcomeTable, name: str) -> tuple[str, str, bool] | None:
    """Return the factor and the level that a 0/1 column stands for, and whether the factor has other columns; None if none.

    A name without brackets, as region_B, is that of a level if there are others and no row is in two of them.
    """
    if not table.is_dummy(name):
        return None
    factor, match = _factor(name), LEVEL.match(name)
    others = [other for other in table.names if other != name and factor and _factor(other) == factor and table.is_dummy(other)]
    if match is not None:
        return factor, match[2], bool(others)
    if not others or np.max(sum(map(table.column, others), table.column(name))) > 1:
        return None
    return factor, name[len(factor) + 1 :], True


def _describe_level(model: str, table: OutcomeTable, words: str, inside: Array) -> Iterator[tuple[str, Array]]:
    """Say which outcomes the rows of a level have or do not have, where that makes coefficients infinite."""
    alone, absent = _alone(model, table, inside), {*range(len(table.labels))} - {*table.which[inside].tolist()}
    if alone is not None:
        yield f"{_all(inside)} with {words} {_have(inside)} {table.has(alone)}", inside
    elif model == "multinomial" and absent:
        what = " or ".join(table.has(label) for label in sorted(absent))
        yield f"none of the {_rows(inside.sum())} with {words} has {what}", inside


def _alone(model: str, table: OutcomeTable, inside: Array) -> int | None:
    """Return the only outcome of these rows, where that makes coefficients infinite; otherwise None.

    For counts it must be 0, and for ordered classes the first or the last one.
    """
    found = np.unique(table.which[inside]).tolist()
    ends = {"poisson": [0], "ordinal": [0, len(table.labels) - 1]}.get(model, found)
    return found[0] if len(found) == 1 and found[0] in ends else None


def _thresholds(model: str, table: OutcomeTable, name: str, x: Array) -> Iterator[tuple[str, Array]]:
    """Say that the value of a column determines the outcome, in all rows or beyond a value that occurs with both outcomes."""
    if model == "poisson":
        yield from _only_in_zeros(table, name, x)
        return
    if model == "multinomial" or len(table.labels) > 2:
        for label in range(len(table.labels)) if model == "multinomial" else (0, len(table.labels) - 1):
            own = table.which == label
            for relation, apart in ((">", _between(x[~own], x[own])), ("≤", _between(x[own], x[~own]))):
                if apart is not None:
                    yield f"{name} {relation} {apart} exactly when {table.has(label)}", own
        return
    low, high = x[table.which == 0], x[table.which == 1]
    for below, above, place in ((low, high, 1), (high, low, 0)):
        apart = _between(below, above)
        if apart is not None:
            yield f"{name} > {apart} exactly when {table.has(place)}", np.ones(len(x), bool)
        elif below.max() == above.min() and (x != below.max()).any():
            at, where = _number(float(below.max())), x != below.max()
            sides = ((">", x > below.max(), place), ("<", x < below.max(), 1 - place))
            parts = [f"{name} {sign} {at} only where {table.has(own)}" for sign, some, own in sides if some.any()]
            yield ", and ".join(parts), where


def _only_in_zeros(table: OutcomeTable, name: str, x: Array) -> Iterator[tuple[str, Array]]:
    """Say that a column is at one end of its range wherever the count is positive."""
    held = np.unique(x[table.which == 1])
    if len(held) == 1 and (x != held[0]).any() and ((x >= held[0]).all() or (x <= held[0]).all()):
        zero = x != held[0]
        same = f"{name} is {_number(float(held[0]))} in every row with {table.has(1)}"
        yield f"{same}, and not in {_rows(zero.sum())} with {table.has(0)}", zero


def _between(below: Array, above: Array) -> str | None:
    """Return the shortest decimal t with below ≤ t < above; None if there is none."""
    low, high = float(below.max()), float(above.min())
    if not low < high:
        return None
    middle = low / 2 + high / 2
    for digits in range(1, 18):
        text = f"{middle:.{digits}g}"
        if Decimal(low) <= Decimal(text) < Decimal(high):
            return _number(float(text)) if Decimal(low) <= Decimal(_number(float(text))) < Decimal(high) else text
    return repr(low)


def _baseline(model: str, table: OutcomeTable, factor: str, names: Sequence[str], constant: bool) -> Iterator[tuple[str, Array]]:
    """Say that the level without a column of its own has one outcome, which makes the coefficients of all others infinite.

    With another level as the baseline fewer coefficients can be infinite. If there are two levels, exchanging them can only help
    the `constant`, if that is infinite.
    """
    outside = np.ones(len(table.which), bool)
    for name in names:
        outside &= table.column(name) == 0
    alone, own = _alone(model, table, outside), table.baselines.get(factor)
    if alone is None:
        if len(names) == 1:
            yield from _describe_level(model, table, f"{factor} = {own}", outside)
        return
    unknown = own is None and not any(map(LEVEL.match, names))  # the columns may be those of all levels
    baseline = f"the baseline level of {factor} (none of {_some(names)})" if own is None else f"{factor} = {own}, the baseline,"
    baseline = f"none of {_some(names)}" if unknown else baseline
    sentence = f"{_all(outside)} with {baseline} {_have(outside)} {table.has(alone)}"
    if unknown:
        sentence += (
            f"; if all levels of {factor} have columns, {factor} is missing in these rows: leave them out; otherwise they have "
            "the baseline level"
        )
    other = next((name for name in names if _alone(model, table, table.column(name) == 1) is None), None)
    if other is not None and len(names) > 1:
        sentence += f"; with another level as the baseline ({_as_baseline(other)}) fewer coefficients can be infinite"
    elif other is not None and constant:
        sentence += f"; with the other level as the baseline ({_as_baseline(other)}) the constant can be finite, and the "
        sentence += "coefficient only changes its sign"
    yield sentence, outside


def _as_baseline(name: str) -> str:
    """Say how to make the level of this column the baseline."""
    found = LEVEL.match(name)
    if found is None:
        return f"of the 0/1 columns of all levels leave out {name}"
    own = found[2] if re.fullmatch(r"-?[0-9.]+", found[2]) else repr(found[2])
    return f"C({found[1].strip()}, Treatment({own})) in a formula"


def baselines(names: Sequence[str], frame: Any) -> dict[str, str]:
    """Find the level of each factor that has no column of its own, where the data frame has exactly one such level."""
    levels: dict[str, set[str]] = {}
    for found in filter(None, map(LEVEL.match, names)):
        levels.setdefault(found[1].strip(), set()).add(found[2])
    left: dict[str, str] = {}
    for factor in (factor for factor in levels if frame is not None and factor in frame.columns):
        others = {str(value) for value in frame[factor].unique() if not is_missing(value)} - levels[factor]
        left |= {factor: others.pop()} if len(others) == 1 else {}
    return left


def _factors(table: OutcomeTable, dummies: Sequence[str]) -> dict[str, list[str]]:
    """Group 0/1 columns by the factor in their names, where no row is in two levels.

    A single column is a factor if its baseline is known.
    """
    groups: dict[str, list[str]] = {}
    known = {*filter(None, map(_factor, dummies))}
    for name in table.names:
        if _factor(name) in known and table.is_dummy(name):
            groups.setdefault(_factor(name), []).append(name)
    alone = {}
    for factor, names in groups.items():
        total = sum(table.column(name) for name in names)
        if {*names} <= {*dummies} and np.max(total) <= 1 and (len(names) > 1 or factor in table.baselines):
            alone[factor] = names
    return alone


def _factor(name: str) -> str:
    """Return the factor that a column is a level of, by its name: region for region[T.B], region_B and region=B; "" if none."""
    found = LEVEL.match(name)
    return found[1].strip() if found else name.rpartition("_")[0] or name.rpartition("=")[0]


def _level_in_words(name: str, value: float) -> str:
    """Say that a 0/1 column has this value: "region = A" for `region[T.A]`, "region = A and sex = m" for an interaction."""
    parts = [LEVEL.match(part) for part in re.split(r"(?<=\]):", name)]
    if not all(parts) or (value == 0 and len(parts) > 1):
        return f"{name} = {int(value)}"
    return " and ".join(f"{part[1].strip()} {'=' if value == 1 else '≠'} {part[2]}" for part in filter(None, parts))


def _combination(model: str, table: OutcomeTable, direction: Mapping[str, int], strict: int) -> Iterator[str]:
    """Write the direction as a rule, if it is short enough; `strict` is the number of rows that are strictly on their side."""
    if Regression(model).of_classes:
        return
    constant, terms = 0, dict[str, int]()
    for name, value in direction.items():
        ones = name not in table.names or table.is_constant(name)
        constant, terms = (constant + value, terms) if ones else (constant, terms | ({name: value} if value else {}))
    if not 0 < len(terms) <= MAX_TERMS or max(map(abs, [constant, *terms.values()])) >= 10**MAX_DIGITS:
        return
    rule, at, n = _sum(terms), _number(float(-constant)), len(table.which)
    if model == "poisson":
        yield f"{rule} = {at} in every row with {table.has(1)}, and less in {_rows(strict)} with {table.has(0)}"
    elif strict == n:
        yield f"{rule} > {at} exactly when {table.has(1)}"
    else:
        sides = f"{rule} ≥ {at} in every row with {table.has(1)}, and ≤ {at} in every row with {table.has(0)}"
        yield f"{sides}; {_rows(n - strict)} {'is' if n - strict == 1 else 'are'} at {at}"


def _sum(terms: Mapping[str, int]) -> str:
    """Write a combination of columns."""
    parts: list[str] = []
    for name, value in sorted(terms.items(), key=lambda term: term[1] < 0):  # a sum is easier to read if it begins with a plus
        size = "" if abs(value) == 1 else f"{abs(value)}·"
        parts.append(f"{'- ' if value < 0 else '+ ' if parts else ''}{size}{name}")
    return " ".join(parts)


def _rows(count: int) -> str:
    """Write a number of rows."""
    return "1 row" if count == 1 else f"{count} rows"


def _all(inside: Array) -> str:
    """Write the subject of a sentence about all of these rows."""
    return "the only row" if inside.sum() == 1 else f"all {inside.sum()} rows"


def _have(inside: Array) -> str:
    """Write the verb that goes with `_all`."""
    return "has" if inside.sum() == 1 else "have"


def _some(names: Sequence[str]) -> str:
    """Join the first few names."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _number(value: float) -> str:
    """Write a number, a whole one without a decimal point."""
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 10**15 else repr(value)
