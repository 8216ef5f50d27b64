"""`diagnose`: do the estimates of a regression exist? Complete or quasi-complete separation, or overlap, with proof."""

from __future__ import annotations

import contextlib
import html
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gordan.arrays import Array, is_sparse, seconds_at_most
from gordan.blas import blas_threads
from gordan.certificates import Certificate
from gordan.certificates.data import About
from gordan.certificates.margins import Margin
from gordan.certificates.models import INTERCEPT, Observations
from gordan.certificates.problem import Problem
from gordan.errors import InputError, MissingExtra
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Asks, Budget, Question
from gordan.rows import column_names
from gordan.solve.finders import answer
from gordan.verdicts.designs import Design, design_of
from gordan.verdicts.explaining import COUNTS, Table, explanation
from gordan.verdicts.remedies import Remedies
from gordan.verdicts.telling import described

Kind = Literal["complete", "quasi-complete", "overlap", "undecided"]
KINDS: dict[str | None, Kind] = {
    "separator": "complete",
    "quasi-separation": "quasi-complete",
    "verified-quasi-separation": "quasi-complete",
    "overlap": "overlap",
    "verified-overlap": "overlap",
}
ESTIMATES = {0: "finite", 1: "+inf", -1: "-inf", None: "inf"}
SIGNLESS = "inf: infinite, sign undetermined; the likelihood keeps increasing whether this coefficient goes to +∞ or to -∞."
# Names shown of a longer list, and lines of a longer table.
MOST_SHOWN, MOST_LINES = 6, 40
# What to say beside a refusal of X or y, by a part of its words.
HINTS = dict.fromkeys((" is nan;", " is None;", " is <NA>;", " is NaT;"), "; or pass missing='drop'")
HINTS["classes; two are"] = "; or is it model='multinomial', 'ordinal' or 'poisson'?"
# The row that a refusal names.
REFUSED_ROW = re.compile(r"(?<=^[Xy]\[)\d+")


@dataclass(frozen=True, eq=False)
class Data:
    """What a diagnosis is about: the design as it was read, and the rows of A, which for a logistic model are its own."""

    design: Design
    problem: Problem
    observations: Observations | None
    of: Array | None
    names: list[str]
    columns: Sequence[str] | None

    @staticmethod
    def of_design(design: Design) -> Data:
        """Read X and y of the design, and make the rows of the model."""
        try:
            return Data._read(design)
        except InputError as error:
            hint = next((hint for part, hint in HINTS.items() if part in str(error)), "")
            told = REFUSED_ROW.sub(lambda row: str(design.rows([int(row[0])])[0]), str(error))
            raise InputError(f"{told}{hint}") from None

    @staticmethod
    def _read(design: Design) -> Data:
        kind = Intercept.of(design.intercept)
        if design.model == "logistic":
            problem = Problem.of(design.X, design.y).watched(design.X)
            problem.require_finite()
            given = design.names or column_names(design.X, problem.X.d)
            columns = _names(given, problem.X.d, kind.exists)
            return Data(design, problem, None, None, [*columns, *([INTERCEPT] if kind.exists else [])], given)
        if design.model == "ordinal" and not kind.exists:
            raise InputError("an ordinal model has thresholds in place of an intercept; leave intercept out")
        found = Observations.of(design.model, design.X, design.y, Intercept.FREE if kind.exists else kind)
        found = (found if design.order is None else found.ordered(_same_type(design.order, found.classes))).watched(design.X)
        found.require_finite()
        given = design.names or column_names(design.X, found.X.d)
        problem, of = found.model_rows()
        return Data(design, problem, found, of, found.names(_names(given, found.X.d, kind.exists)), given)

    @property
    def intercept(self) -> Intercept:
        """That of the rows of A."""
        return Intercept.of(self.design.intercept) if self.observations is None else Intercept.NONE

    @property
    def n(self) -> int:
        """How many observations there are."""
        return self.problem.X.n if self.observations is None else self.observations.X.n

    def separated(self, strict: Array) -> tuple[int, ...]:
        """The observations that have a row among those that are strict."""
        rows = np.flatnonzero(strict)
        return tuple((rows if self.of is None else np.unique(self.of[rows])).tolist())

    def certificate(self, proof: Certificate) -> Certificate:
        """The proof as a certificate about the data, with its hash and with what it is about."""
        if self.observations is None:
            found = replace(proof, data_hash=self.problem.hash(proof.intercept))
        else:
            found = replace(self.observations.to_data(proof), data_hash=self.observations.hash())
        return replace(found, dropped=self.design.dropped)

    @cached_property
    def table(self) -> Table:
        """The columns and outcomes, as explanations read them."""
        made = self.observations
        X = self.problem.storage.plain() if made is None else made.X.storage.plain()
        X = X.tocsc() if is_sparse(X) else X
        columns = _names(self.columns, X.shape[1], True)
        outcome, baselines = self.design.outcome or "y", self.design.baselines
        if made is None:
            return Table(X, columns, outcome, self.problem.classes, (self.problem.signs > 0).astype(int), baselines)
        return Table(X, columns, outcome, COUNTS if made.model == "poisson" else made.classes, made.which, baselines)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the maximum-likelihood estimates of a regression do on this data, and the proof.

    Attributes
    ----------
    kind
        "complete": some direction separates every observation strictly (for a logistic model: some plane has every row strictly
        on its side). "quasi-complete": no such direction, but one that separates some observations and has the others on its
        border. "overlap": neither, so that the estimates exist. "undecided": not proved.
    columns
        the behaviour of each coefficient, by name ("(intercept)" for the constant, "class:column" for a multinomial model,
        "low|high" for the threshold between two classes of an ordinal one): 0 finite, +1 or -1 infinite with that sign, None
        infinite with undetermined sign: the likelihood increases along directions of both signs. A coefficient that is in
        `dependent` or `open` is left out.
    rows
        positions in the data of the observations that are separated: those whose likelihood increases along the direction. No
        direction separates any other. Of a multinomial or ordinal model an observation counts that is separated from one of the
        other classes at least.
    direction
        integers by name, along which the likelihood increases forever: in the relative interior of the recession cone, that
        is, strict on all of `rows`. None if there is none, or none was found.
    dependent
        columns that are linear combinations of those before them (the constant comes first), exactly; they are left
        out of the model, as `glm` of R does. None if that was not examined.
    open
        names of coefficients whose behaviour was not decided.
    model
        "logistic", "multinomial", "ordinal" or "poisson".
    seconds
        the time it took.
    """

    kind: Kind
    columns: dict[str, int | None]
    rows: tuple[int, ...]
    direction: dict[str, int] | None
    dependent: tuple[str, ...] | None
    open: tuple[str, ...]
    model: str
    seconds: float
    _certificate: Certificate | None = field(repr=False)
    _data: Data = field(repr=False)
    _separated: tuple[int, ...] = field(repr=False)

    @property
    def proved(self) -> bool:
        """Whether the checker accepted the kind; False only for "undecided"."""
        return self.kind != "undecided"

    @property
    def X(self) -> Any:
        """The matrix that the certificate is about: the design of a formula or model, without rows that were left out."""
        return self._data.design.X

    @property
    def y(self) -> Any:
        """The outcomes that go with `X`."""
        return self._data.design.y

    @property
    def separated(self) -> Array:
        """Whether each row of `X` is separated: true for those that `rows` names by their place in what was given."""
        found = np.zeros(self._data.n, bool)
        found[[*self._separated]] = True
        return found

    @property
    def weights(self) -> Any:
        """The sample weights that go with `X`, which estimates depend on; None if there are none."""
        return self._data.design.weights

    @property
    def missing(self) -> dict[str, int]:
        """How many cells were missing, by column, in rows that were dropped."""
        complete = self._data.design.complete
        return {} if complete is None else complete.missing

    @property
    def left_out(self) -> int:
        """How many rows were left out, because a value is missing or their weight is zero."""
        complete = self._data.design.complete
        return 0 if complete is None else complete.left_out

    @cached_property
    def certificate(self) -> Certificate | None:
        """The certificate of the kind, bound to the data by its hash (computed on first access; an InputError if X was changed
        before).

        A separator if complete; "quasi-separation" or "verified-quasi-separation"; "overlap" or "verified-overlap". Where the
        kind is undecided it is what was proved on the way: a witness that the separation is not complete, or None.
        """
        if self._certificate is None:
            return None
        columns, design = self._data.columns, self._data.design
        about = About(label=design.outcome, weight=design.weight_name, columns=None if columns is None else tuple(columns))
        return described(self._data.certificate(self._certificate), about)

    @cached_property
    def explanation(self) -> tuple[str, ...]:
        """Why estimates are infinite, in words of the data: sentences about levels, thresholds or a combination of columns."""
        if self.kind not in ("complete", "quasi-complete"):
            return ()
        infinite = {name: sign for name, sign in self.columns.items() if sign != 0}
        about = self.model, self._data.table, infinite, self.direction or {}, self._separated
        return tuple(explanation(*about))

    @property
    def next_steps(self) -> tuple[str, ...]:
        """What to do about separated data: lines of Python that run where `d` is this diagnosis. Each model has its own; of
        counts that are all 0 there is nothing to estimate."""
        if self.kind not in ("complete", "quasi-complete") or (self.model == "poisson" and self.separated.all()):
            return ()
        constant = any(name.endswith(INTERCEPT) for name, _, _ in self._lines())  # else it is a column of X, if there is one
        names, weighted, design = self._data.columns, self.weights is not None, self._data.design
        about = self.model, self.X, names, self.dependent or (), constant, weighted
        return Remedies(*about, design.link, design.offset).lines

    def to_frame(self) -> Any:
        """A pandas data frame with a line for each coefficient: its `estimate`, and its part of the `direction`.

        The estimate is "finite", "+inf", "-inf", "inf" (infinite, sign undetermined), "aliased" (the column depends on others) or
        "undecided".
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtra("pandas", "data", "Diagnosis.to_frame") from None
        lines = self._lines()
        index = pandas.Index([name for name, _, _ in lines], name="coefficient")
        frame = pandas.DataFrame({"estimate": [estimate for _, estimate, _ in lines]}, index=index)
        if self.direction is not None:
            frame["direction"] = pandas.array([step for _, _, step in lines], dtype=object)
        return frame

    def _lines(self) -> list[tuple[str, str, int | None]]:
        """Name, estimate and direction of each coefficient; a constant comes first."""
        estimates = {name: ESTIMATES[sign] for name, sign in self.columns.items()}
        estimates |= dict.fromkeys(self.open, "undecided") | dict.fromkeys(self.dependent or (), "aliased")
        names = [name for name in self._data.names if name in estimates]
        names.sort(key=lambda name: name != INTERCEPT)
        return [(name, estimates[name], None if self.direction is None else self.direction.get(name)) for name in names]

    def __repr__(self) -> str:
        return "\n".join(_story(self))

    def __str__(self) -> str:
        told = [line for line in _story(self) if not line.startswith("Coefficients: ")]
        advice = [told.pop()] if told[-1].startswith("Next: ") else []
        why = [f"  - {sentence}" for sentence in self.explanation]
        code = [f"    {line}" for line in self.next_steps]
        return "\n".join([*told, *(["Why:", *why] if why else []), *_table(self), *advice, *code])

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(line)}</p>" for line in _story(self))


def diagnose(
    X: Any,
    y: Any = None,
    *,
    data: Any = None,
    model: str = "logistic",
    reference: Any = None,
    intercept: str = "free",
    sample_weight: Any = None,
    missing: str = "raise",
    time_limit: float | None = None,
) -> Diagnosis:
    """Decide whether the maximum-likelihood estimates of a regression exist, with proof.

    With rows A_i = y_i (x_i, 1) the likelihood of a logistic regression increases forever along w if A w ≥ 0 and A w ≠ 0. The
    separation is complete if A w > 0 for some w, else quasi-complete if there is such a w, and the data overlaps if there is
    none; just then the estimates exist (Albert and Anderson 1984). The other models have rows of their own
    (`certificates.models`, and the page on certificates). What is said is about the numbers as stored, without any tolerance:
    the kind and the rows are what the certificate proves; dependent columns and the signs of coefficients are decided in exact
    arithmetic, too, but the certificate does not carry their proofs. Ctrl-C and the time limit end the search; what was proved by
    then is returned.

    Parameters
    ----------
    X, y
        data; X dense, sparse, a data frame or a design matrix of patsy or formulaic, whose column names are then used (x0, x1, …
        otherwise); y two labels of any kind, the second of which in sorted order is the event, or what the model wants. Or X is
        a statsmodels model or its results, alone; or a formula such as "died ~ age + C(region)", with its `data`.
    data
        the data frame of a formula (needs formulaic: `pip install 'gordan[stats]'`).
    model
        "logistic", the default (also right for probit and complementary log-log links); "multinomial": y has several classes;
        "ordinal": cumulative logit or probit with thresholds, the order being that of a pandas Categorical, else the sorted one;
        "poisson": counts, or any numbers that are not negative, with a log link.
    reference
        the class of a multinomial model whose coefficients are 0; the first one if not given.
    intercept
        "free" or "penalized" (the same here: a constant is in the model), or "none". A column of ones in X is taken as the
        constant. A formula and a statsmodels model have their own.
    sample_weight
        weights or frequencies of the rows, or with a formula the name of a column: rows of weight zero are left out; how large
        a positive weight is does not matter.
    missing
        "raise", or "drop": leave out rows in which a value is missing (NaN, None, pandas.NA, or text such as "NA" or "").
    time_limit
        seconds; then whatever is open stays so: some coefficients, or the kind. Nothing is begun that would not end in time.

    Examples
    --------
    >>> import gordan
    >>> found = gordan.diagnose([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [1.5, 1.0], [2.5, 1.0]], [0, 1, 0, 1, 1])
    >>> found.kind, found.columns, found.rows
    ('quasi-complete', {'x0': 0, 'x1': 1, '(intercept)': 0}, (3, 4))
    >>> found.explanation
    ('all 2 rows with x1 = 1 have y = 1',)
    >>> bool(gordan.verify(found.certificate, [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [1.5, 1.0], [2.5, 1.0]], [0, 1, 0, 1, 1]))
    True
    >>> gordan.diagnose([[1.0], [0.0], [2.0]], [0, 3, 0], model="poisson").rows
    (0, 2)
    """
    from gordan.solve import coefficients  # here: it brings SciPy and python-flint
    from gordan.solve.recession import Recession, independent

    Intercept.of(intercept)
    started = time.perf_counter()
    budget = Budget(started, started + seconds_at_most(time_limit))
    about = Data.of_design(design_of(X, y, data, model, intercept, sample_weight, missing, reference))
    problem, names = about.problem, about.names
    question = Question(problem, Margin(problem.X, problem.signs, about.intercept), Asks.CONE, budget)
    evidence = Evidence(question)
    columns: tuple[int, ...] | None = None
    signs: dict[str, int | None] = {}
    with contextlib.suppress(KeyboardInterrupt), blas_threads(problem.storage.entries):
        evidence = answer(question)
        question = evidence.question  # with the pace of this call
        found, proof = evidence.cone, evidence.cone_proof
        kind = "" if proof is None else proof.kind
        if proof is not None and kind == "verified-overlap":  # which says which columns depend on the others
            columns = tuple(sorted({*range(len(names))} - {relation[0][0] for relation in proof.dependent}))
        else:
            columns = question.known(independent) if evidence.effort.stopped else question.shared(independent)
        signs = {names[j]: 0 for j in (columns or ()) if KINDS.get(kind) == "overlap"}
        if isinstance(found, Recession) and not evidence.effort.stopped:
            full_rank = found.kind != "complete" and not found.dimension
            columns = found.cone.columns if full_rank else columns
            for j, sign in coefficients.coordinate_signs(found) if columns else ():
                signs[names[found.cone.columns[j]]] = sign
    return _with_own_constant(_diagnosis(evidence, about, columns, signs))


def _names(given: Sequence[str] | None, d: int, intercept: bool) -> list[str]:
    """A name for each column of X, no two the same, nor the constant's: one that comes again is followed by its position."""
    last = [INTERCEPT] if intercept else []
    given = [f"x{j}" for j in range(d)] if given is None else given
    names: list[str] = []
    used = {*last, *given}  # a name that is made up must not be one that comes later
    seen = {*last}
    for j, name in enumerate(given):
        own = name
        while own in seen or (own != name and own in used):
            own = f"{own} [{j}]"
        seen.add(own)
        names.append(own)
    return names


def _same_type(order: Sequence[Any], classes: Sequence[Any]) -> list[Any]:
    """The classes in that order, each as it was read from y."""
    place = {label: k for k, label in enumerate(order)}
    return sorted(classes, key=lambda label: place[label])


def _diagnosis(evidence: Evidence, about: Data, columns: tuple[int, ...] | None, signs: dict[str, int | None]) -> Diagnosis:
    """The answer that follows from what was proved; `columns` are the independent ones, `signs` the coefficients decided."""
    question, names = evidence.question, about.names
    proof, found = _kind_proof(evidence), evidence.cone
    kind = KINDS.get(None if proof is None else proof.kind, "undecided")
    rows: tuple[int, ...] = tuple(range(about.n)) if kind == "complete" else ()
    direction = None
    if kind in ("complete", "quasi-complete") and found is not None:
        w, b = found.plane
        rows = about.separated(found.signs > 0)
        direction = dict(zip(names, [*w, b], strict=False))
    inside = {*names} if columns is None else {names[j] for j in columns}
    return Diagnosis(
        kind=kind,
        columns={name: signs[name] for name in names if name in signs},
        rows=about.design.rows(rows),
        direction=direction,
        dependent=None if columns is None else tuple(name for name in names if name not in inside),
        open=tuple(name for name in names if name in inside and name not in signs),
        model=about.design.model,
        seconds=time.perf_counter() - question.budget.started,
        _certificate=proof,
        _data=about,
        _separated=rows,
    )


def _kind_proof(evidence: Evidence) -> Certificate | None:
    """What proves the kind: a cone, rows that cancel, or a separator."""
    if evidence.cone_proof is not None:
        return evidence.cone_proof
    found = evidence.proof("separator") if evidence.witness is None and evidence.strict else evidence.witness
    return None if found is None else found.certificate


def _with_own_constant(d: Diagnosis) -> Diagnosis:
    """The same where X has a column of ones with a name: it takes the place of "(intercept)"."""
    about = d._data
    blocks = [name.removesuffix(INTERCEPT) for name in about.names if name.endswith(INTERCEPT)]
    own = _own_constant(d, blocks[0]) if blocks else None
    if own is None:
        return d
    place = {block + INTERCEPT: block + own for block in blocks}

    def renamed(values: dict[str, Any]) -> dict[str, Any]:
        found = {place.get(name, name): value for name, value in values.items() if name not in place.values()}
        return {name: found[name] for name in about.names if name in found}

    return replace(
        d,
        columns=renamed(d.columns),
        direction=None if d.direction is None else renamed(d.direction),
        dependent=tuple(name for name in d.dependent or () if name not in place.values()),
        open=tuple(place.get(name, name) for name in d.open),
    )


def _own_constant(d: Diagnosis, block: str) -> str | None:
    """The name of a column of ones that depends on the intercept, if X has one."""
    about, dependent = d._data, {*(d.dependent or ())}
    if about.columns is None or not dependent or not Intercept.of(about.design.intercept).exists:
        return None
    names = (name for name in about.table.names if block + name in dependent)
    return next(filter(about.table.is_constant, names), None)


# ---- telling --------------------------------------------------------------------------------------------------------

REGRESSIONS = {
    model: f"{'an' if model == 'ordinal' else 'a'} {model} regression" for model in ("logistic", "multinomial", "ordinal")
}
REGRESSIONS["poisson"] = "a Poisson regression"


def _story(d: Diagnosis) -> list[str]:
    lines = []
    if d.left_out:
        complete = d._data.design.complete
        counted = ", ".join(f"{count} in {name}" for name, count in d.missing.items())
        zero = f"{complete.zero} of weight zero" if complete is not None and complete.zero else ""
        reason = "; ".join(filter(None, (counted and f"missing values: {counted}", zero)))
        verb = "is" if d.left_out == 1 else "are"
        lines.append(f"{d.left_out} of {d.left_out + d._data.n} rows {verb} left out ({reason}); rows are numbered as given.")
    dependent = [name for name in d.dependent or () if not _is_constant(d, name)]
    if dependent:
        verb = "is a linear combination" if len(dependent) == 1 else "are linear combinations"
        lines.append(f"X is rank-deficient: {_listed(dependent)} {verb} of the other columns, and left out of the model.")
    return [*lines, _kind_told(d), *filter(None, (_outcome_told(d), _columns_told(d), _advice(d)))]


def _outcome_told(d: Diagnosis) -> str:
    """What signs and names of coefficients are about: the event, the class that others are compared with, or the order."""
    table = d._data.table
    if d.model == "ordinal":
        classes = [*map(str, table.labels)]
        return f"Order of the classes: {' < '.join(classes[:MOST_SHOWN])}{' < …' if len(classes) > MOST_SHOWN else ''}."
    if d.model == "multinomial":
        return f"Reference: {table.has(0)}."
    return f"Event: {table.has(1)}." if d.model == "logistic" and d.kind in ("complete", "quasi-complete") else ""


def _is_constant(d: Diagnosis, name: str) -> bool:
    """Whether a column is a constant, which needs no words: the model has one."""
    table = d._data.table
    column = name if name in table.names else name.partition(":")[2]
    values = table.column(column) if column in table.names else np.arange(2.0)
    return bool((values == values[0]).all() and values[0])


def _kind_told(d: Diagnosis) -> str:
    n, link = d._data.n, d._data.design.link
    regression = f"a {link} regression" if link else REGRESSIONS[d.model]
    lost = f"The maximum-likelihood estimates of {regression} do not exist."
    if d.model == "poisson" and d.kind in ("complete", "quasi-complete"):
        told = f"{len(d.rows)} of {n} rows, all with {d._data.table.outcome} = 0, have fitted means that go to 0"
        return f"Separation (proved): {told}; no other row can be separated. {lost}"
    if d.model in ("multinomial", "ordinal") and d.kind in ("complete", "quasi-complete"):
        if d.kind == "complete":
            return f"Complete separation (proved): some direction separates all {n} rows strictly from every other class. {lost}"
        others = f"{len(d.rows)} of {n} rows are strictly separated from at least one other class"
        return f"Quasi-complete separation (proved): {others}; no direction does better. {lost}"
    if d.kind == "complete":
        return f"Complete separation (proved): a plane has all {n} rows strictly on the right side. {lost}"
    if d.kind == "quasi-complete":
        return (
            f"Quasi-complete separation (proved): a plane has {len(d.rows)} of {n} rows strictly on the right side and the other "
            f"{n - len(d.rows)} exactly on the plane; no plane does better. {lost}"
        )
    if d.kind == "overlap":
        unique = "" if d.dependent is None else " and are unique"
        what = "no plane separates the classes" if d.model == "logistic" else "no direction separates any row"
        return f"Overlap (proved): {what}, not even weakly. The maximum-likelihood estimates exist{unique}."
    if d._certificate is not None:
        return "Undecided: the separation is not complete (proved); whether it is quasi-complete is undecided."
    return "Undecided: nothing was proved about separation."


def _table(d: Diagnosis) -> list[str]:
    """The coefficients, one to a line, as R prints them."""
    lines = d._lines()
    width = max((len(name) for name, _, _ in lines[:MOST_LINES]), default=0)
    shown = [f"{name:<{width}}  {estimate:>9}" for name, estimate, _ in lines[:MOST_LINES]]
    more = [f"… and {len(lines) - MOST_LINES} more: see to_frame()"] if len(lines) > MOST_LINES else []
    signless = [SIGNLESS] if any(estimate == "inf" for _, estimate, _ in lines) else []
    return [f"{'':<{width}}  {'estimate':>9}", *shown, *more, *signless]


def _columns_told(d: Diagnosis) -> str:
    if d.kind in ("overlap", "undecided"):
        return ""
    behaviour = {
        "go to +∞": [name for name, sign in d.columns.items() if sign == 1],
        "go to -∞": [name for name, sign in d.columns.items() if sign == -1],
        "are infinite, sign undetermined": [name for name, sign in d.columns.items() if sign is None],
        "stay finite": [name for name, sign in d.columns.items() if sign == 0],
        "were not decided": [*d.open],
    }
    told = [f"{_listed(names)} {what if len(names) > 1 else _singular(what)}" for what, names in behaviour.items() if names]
    return f"Coefficients: {'; '.join(told)}." if told else ""


def _singular(what: str) -> str:
    verb, _, rest = what.partition(" ")
    one = {"go": "goes", "are": "is", "stay": "stays", "were": "was"}[verb]
    return f"{one} {rest}"


def _advice(d: Diagnosis) -> str:
    if d.kind == "overlap":
        return "Next: fit as usual."
    if d.kind == "undecided":
        return (
            "Next: try more time if it was limited; leave out columns that are sums or copies of others up to rounding; or round "
            "the columns to the digits that were measured."
        )
    if d.model == "poisson" and d.separated.all():
        return f"Next: there is nothing to estimate where {d._data.table.has(0)} in every row; is this the right column?"
    if d.model == "poisson":
        return (
            "Next: do not rely on Wald tests or standard errors of this fit. Leave out the separated rows (`rows`), which say "
            "nothing about the coefficients that stay finite, and fit the others; or use a penalized likelihood."
        )
    if d.model != "logistic":
        return (
            "Next: do not rely on Wald tests or standard errors of this fit. Bias-reduced (Firth-type) or penalized likelihoods "
            "give finite estimates; or merge classes or levels, or drop a column that separates, if it only restates the "
            "outcome."
        )
    infinite = [name for name, sign in d.columns.items() if sign != 0 and name != INTERCEPT and not _is_constant(d, name)]
    drop = f"drop or coarsen {infinite[0]}" if len(infinite) == 1 else "drop or coarsen a column that separates"
    return (
        "Next: do not rely on Wald tests or standard errors of this fit. Firth's penalized likelihood and Bayesian fits give "
        f"finite estimates; exact or profile-likelihood methods give tests; or {drop}, if it only restates the outcome."
    )


def _listed(names: Sequence[str]) -> str:
    shown = [*names[:MOST_SHOWN]]
    if len(names) > MOST_SHOWN:
        return f"{', '.join(shown)} and {len(names) - MOST_SHOWN} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
