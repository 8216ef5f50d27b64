"""`diagnose`: do the estimates of a regression exist? Complete or quasi-complete separation, or overlap, with proof."""

from __future__ import annotations

import contextlib
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
from gordan.certificates.margins import Margin
from gordan.certificates.models import INTERCEPT, Observations
from gordan.certificates.problem import Problem
from gordan.errors import InputError, import_extra
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Asks, Budget, Question, Subject
from gordan.rows import column_names
from gordan.solve.finders import answer
from gordan.verdicts import diagnosis_text
from gordan.verdicts.designs import design_of
from gordan.verdicts.explaining import COUNTS, OutcomeTable, explanation
from gordan.verdicts.formatting import described
from gordan.verdicts.model_matrix import Design
from gordan.verdicts.remedies import Remedies
from gordan.verdicts.scaling import nearly_dependent

Kind = Literal["complete", "quasi-complete", "overlap", "undecided"]
KIND_OF_PROOF: dict[str | None, Kind] = {
    "separator": "complete",
    "quasi-separation": "quasi-complete",
    "verified-quasi-separation": "quasi-complete",
    "overlap": "overlap",
    "verified-overlap": "overlap",
}
ESTIMATES = {0: "finite", 1: "+inf", -1: "-inf", None: "inf"}
# What to add to the refusal of X or y, by a part of its message.
HINTS = dict.fromkeys((" is nan;", " is None;", " is <NA>;", " is NaT;"), "; or pass missing='drop'")
HINTS["classes; two are"] = "; or is it model='multinomial', 'ordinal' or 'poisson'?"
# The row that the refusal names.
REFUSED_ROW = re.compile(r"(?<=^[Xy]\[)\d+")


@dataclass(frozen=True, eq=False)
class Data:
    """The data of a diagnosis: the design, and the rows of A that the model makes of it.

    For a logistic model the rows of A are those of the design, and `observations` and `of` are None; for another model `of` is
    the observation that each row of A comes from. `names` are those of the coefficients, in the order of A's columns, and
    `columns` those of X, if it has names.
    """

    design: Design
    problem: Problem
    observations: Observations | None
    of: Array | None
    names: list[str]
    columns: Sequence[str] | None

    @staticmethod
    def of_design(design: Design) -> Data:
        """Read X and y of the design, and make the rows of A; a refusal numbers the rows as they were passed."""
        try:
            return Data._read(design)
        except InputError as error:
            hint = next((hint for part, hint in HINTS.items() if part in str(error)), "")
            message = REFUSED_ROW.sub(lambda row: str(design.rows([int(row[0])])[0]), str(error))
            raise InputError(f"{message}{hint}") from None

    @staticmethod
    def _read(design: Design) -> Data:
        kind = Intercept.of(design.intercept)
        if design.model == "logistic":
            problem = Problem.of(design.X, design.y).watched(design.X)
            problem.require_finite()
            given = design.names.columns or column_names(design.X, problem.X.d)
            columns = _names(given, problem.X.d, kind.exists)
            return Data(design, problem, None, None, [*columns, *([INTERCEPT] if kind.exists else [])], given)
        if design.model == "ordinal" and not kind.exists:
            raise InputError("an ordinal model has thresholds in place of an intercept; leave intercept out")
        found = Observations.of(design.model, design.X, design.y, Intercept.FREE if kind.exists else kind)
        if design.order is not None:  # its entries may be of another type than the classes, as they were read from y
            found = found.ordered(sorted(found.classes, key=[*design.order].index))
        found = found.watched(design.X)
        found.require_finite()
        given = design.names.columns or column_names(design.X, found.X.d)
        problem, of = found.model_rows()
        return Data(design, problem, found, of, found.names(_names(given, found.X.d, kind.exists)), given)

    @property
    def intercept(self) -> Intercept:
        """The intercept of the rows of A; that of a model other than the logistic one is among their columns."""
        return Intercept.of(self.design.intercept) if self.observations is None else Intercept.NONE

    @property
    def n(self) -> int:
        """The number of observations."""
        return self.problem.X.n if self.observations is None else self.observations.X.n

    def separated(self, strict: Array) -> tuple[int, ...]:
        """Return the observations of which a row of A is among the strict ones."""
        rows = np.flatnonzero(strict)
        return tuple((rows if self.of is None else np.unique(self.of[rows])).tolist())

    def certificate(self, proof: Certificate) -> Certificate:
        """Turn the proof into a certificate about the data, with the hash of the data."""
        if self.observations is None:
            found = replace(proof, data_hash=self.problem.hash(proof.intercept))
        else:
            found = replace(self.observations.to_data(proof), data_hash=self.observations.hash())
        return replace(found, dropped=self.design.dropped)

    @cached_property
    def table(self) -> OutcomeTable:
        """The columns and outcomes, as the explanations need them."""
        made = self.observations
        X = self.problem.storage.plain() if made is None else made.X.storage.plain()
        X = X.tocsc() if is_sparse(X) else X
        columns = _names(self.columns, X.shape[1], True)
        outcome, baselines = self.design.names.outcome or "y", self.design.names.baselines
        if made is None:
            return OutcomeTable(X, columns, outcome, self.problem.classes, (self.problem.signs > 0).astype(int), baselines)
        return OutcomeTable(X, columns, outcome, COUNTS if made.model == "poisson" else made.classes, made.which, baselines)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Whether the maximum-likelihood estimates of a regression exist on this data, which are infinite and why, with the proof.

    Attributes
    ----------
    kind
        "complete": some direction separates every observation strictly (for a logistic model: some plane has every row strictly
        on the right side). "quasi-complete": there is no such direction, but one that separates some observations strictly and
        has the others on the boundary. "overlap": there is neither, so the estimates exist. "undecided": nothing was proved.
    columns
        the behaviour of each coefficient, by name ("(intercept)" for the constant, "class:column" for a multinomial model,
        "low|high" for the threshold between two classes of an ordinal one): 0 finite, +1 or -1 infinite with that sign, None
        infinite with undetermined sign: the likelihood increases along directions of both signs. Coefficients that are in
        `dependent` or `open` are not listed.
    rows
        positions in the data of the observations that are separated: those whose likelihood increases along the direction. No
        direction separates any other observation. In a multinomial or ordinal model these are the observations that are separated
        from at least one other class.
    direction
        integers by name, along which the likelihood increases forever: in the relative interior of the recession cone, that
        is, strict on all of `rows`. None if there is none, or none was found.
    dependent
        columns that are exact linear combinations of those before them (the constant comes first); they are left out of the
        model, as by `glm` in R. None if that was not examined.
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
        """Whether each row of `X` is separated; `rows` has the same rows by their positions in the data that was passed."""
        found = np.zeros(self._data.n, bool)
        found[[*self._separated]] = True
        return found

    @property
    def weights(self) -> Any:
        """The sample weights that go with `X`, which estimates depend on; None if there are none."""
        return self._data.design.weights

    @property
    def missing(self) -> dict[str, int]:
        """The number of missing values by column, in the rows that were dropped."""
        complete = self._data.design.complete
        return {} if complete is None else complete.missing

    @property
    def left_out(self) -> int:
        """The number of rows that were left out because a value is missing or their weight is zero."""
        complete = self._data.design.complete
        return 0 if complete is None else complete.left_out

    @cached_property
    def certificate(self) -> Certificate | None:
        """The certificate that proves the kind, with the hash of the data, which is computed on first access.

        It is a separator if the separation is complete; a "quasi-separation" or "verified-quasi-separation" if it is
        quasi-complete; and an "overlap" or "verified-overlap". If the kind is undecided, it is a witness that the separation is
        not complete, or None. If X was changed since the call, this raises an InputError.
        """
        if self._certificate is None:
            return None
        names = replace(self._data.design.names, columns=self._data.columns)
        return described(self._data.certificate(self._certificate), names.about)

    @cached_property
    def explanation(self) -> tuple[str, ...]:
        """Why estimates are infinite: sentences about levels, thresholds or combinations of columns of the data."""
        if self.kind not in ("complete", "quasi-complete"):
            return ()
        infinite = {name: sign for name, sign in self.columns.items() if sign != 0}
        about = self.model, self._data.table, infinite, self.direction or {}, self._separated
        return tuple(explanation(*about))

    @property
    def next_steps(self) -> tuple[str, ...]:
        """Lines of Python that fit estimates which exist, and run where `d` is this diagnosis; none where none are needed.

        The lines depend on the model. If all counts are 0, there is nothing to estimate.
        """
        if self.kind not in ("complete", "quasi-complete") or (self.model == "poisson" and self.separated.all()):
            return ()
        constant = any(name.endswith(INTERCEPT) for name, _, _ in self._coefficients)  # else it is a column of X
        names, weighted, design = self._data.columns, self.weights is not None, self._data.design
        about = self.model, self.X, names, self.dependent or (), constant, weighted, self._constants
        return Remedies(*about, design.link, design.offset).lines

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each coefficient: its `estimate`, and its entry of the `direction`.

        The estimate is "finite", "+inf", "-inf", "inf" (infinite, sign undetermined), "aliased" (the column is a combination of
        others) or "undecided".
        """
        pandas = import_extra("pandas", "data", "Diagnosis.to_frame")
        index = pandas.Index([name for name, _, _ in self._coefficients], name="coefficient")
        frame = pandas.DataFrame({"estimate": [estimate for _, estimate, _ in self._coefficients]}, index=index)
        if self.direction is not None:
            frame["direction"] = pandas.array([step for _, _, step in self._coefficients], dtype=object)
        return frame

    @property
    def _coefficients(self) -> list[tuple[str, str, int | None]]:
        """The name, the estimate and the direction of each coefficient, beginning with the constant."""
        estimates = {name: ESTIMATES[sign] for name, sign in self.columns.items()}
        estimates |= dict.fromkeys(self.open, "undecided") | dict.fromkeys(self.dependent or (), "aliased")
        names = [name for name in self._data.names if name in estimates]
        names.sort(key=lambda name: name != INTERCEPT)
        return [(name, estimates[name], None if self.direction is None else self.direction.get(name)) for name in names]

    @property
    def _aliased(self) -> set[str]:
        """The names of coefficients that are left out, and of their columns, which a multinomial model has for each class."""
        return {*(self.dependent or ()), *(name.partition(":")[2] for name in self.dependent or ())}

    @property
    def _constants(self) -> tuple[str, ...]:
        """The columns that are the constant of the model; not one that is aliased, where other columns add up to a constant."""
        return tuple(name for name in self._data.table.constants if name not in self._aliased)

    @cached_property
    def _nearly_dependent(self) -> list[tuple[str, list[str]]]:
        """Columns that are combinations of others up to rounding, but not exactly, each with the others; this is not proved."""
        table, constants = self._data.table, self._constants
        columns = [j for j, name in enumerate(table.names) if name not in self._aliased.union(constants)]
        centred = bool(constants) or Intercept.of(self._data.design.intercept).exists
        found = nearly_dependent(table.X, columns, centred)
        return [(table.names[j], [table.names[k] for k in others]) for j, others in found]

    def __repr__(self) -> str:
        return diagnosis_text.summary(self)

    def __str__(self) -> str:
        return diagnosis_text.report(self)

    def _repr_html_(self) -> str:
        return diagnosis_text.summary_html(self)


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
    none; the estimates exist exactly in this case (Albert and Anderson 1984). The other models have rows of their own
    (`certificates.models`, and the page on certificates). All answers are about the numbers as stored, without any tolerance:
    the certificate proves the kind and the rows; dependent columns and the signs of coefficients are decided in exact arithmetic
    as well, but the certificate does not contain their proofs. Ctrl-C and the time limit end the search, and what was proved by
    then is returned.

    Parameters
    ----------
    X, y
        the data: X is dense, sparse, a data frame or a design matrix of patsy or formulaic, whose column names are then used
        (x0, x1, … otherwise). For a logistic model y has two labels of any kind, and the second one in sorted order is the
        event; `model` says what y has for the others. Alternatively, X alone is a statsmodels model or its results; or a
        formula such as "died ~ age + C(region)", with its `data`.
    data
        the data frame of a formula (needs formulaic: `pip install 'gordan[stats]'`).
    model
        "logistic" (also for probit and complementary log-log links); "multinomial": y has several classes; "ordinal":
        cumulative logit or probit with thresholds, and y has classes in the order of a pandas Categorical, or else sorted;
        "poisson": log link, and y has counts or any numbers that are not negative.
    reference
        the class of a multinomial model whose coefficients are 0; by default the first one.
    intercept
        "free" or "penalized" (which mean the same here: the model has a constant), or "none". A column of ones in X is taken as
        the constant. Formulas and statsmodels models have an intercept of their own, or none.
    sample_weight
        weights or frequencies of the rows; with a formula also the name of their column. Rows of weight zero are left out; the
        size of a positive weight does not matter here.
    missing
        "raise" an InputError, or "drop" the rows in which a value is missing (NaN, None, pandas.NA, or text such as "NA" or "").
    time_limit
        stop after this many seconds and report what is proved; the behaviour of some coefficients, or the kind, may then be
        undecided.

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
    from gordan.solve import coefficients  # imported here because it needs SciPy and python-flint
    from gordan.solve.recession import Recession, independent

    Intercept.of(intercept)
    started = time.perf_counter()
    budget = Budget(started, started + seconds_at_most(time_limit))
    about = Data.of_design(design_of(X, y, data, model, intercept, sample_weight, missing, reference))
    problem, names = about.problem, about.names
    question = Question(Subject(problem, Margin(problem.X, problem.signs, about.intercept), budget.threads), Asks.CONE, budget)
    evidence = Evidence(question)
    columns: tuple[int, ...] | None = None
    signs: dict[str, int | None] = {}
    with contextlib.suppress(KeyboardInterrupt), blas_threads(problem.storage.entries):
        evidence = answer(question)
        question = evidence.question  # which has the pace measured in this call
        found, proof = evidence.cone, evidence.cone_proof
        kind = "" if proof is None else proof.kind
        if proof is not None and kind == "verified-overlap":  # it lists the columns that depend on others
            columns = tuple(sorted({*range(len(names))} - {relation[0][0] for relation in proof.dependent}))
        else:
            columns = evidence.hints.independent if evidence.effort.stopped else question.shared(independent)
        signs = {names[j]: 0 for j in (columns or ()) if KIND_OF_PROOF.get(kind) == "overlap"}
        if isinstance(found, Recession) and not evidence.effort.stopped:
            full_rank = found.kind != "complete" and not found.dimension
            columns = found.cone.columns if full_rank else columns
            for j, sign in coefficients.coordinate_signs(found) if columns else ():
                signs[names[found.cone.columns[j]]] = sign
    return _with_own_constant(_diagnosis(evidence, about, columns, signs))


def _names(given: Sequence[str] | None, d: int, intercept: bool) -> list[str]:
    """Return distinct names for the columns of X, other than that of the constant; a repeated one gets its position added."""
    last = [INTERCEPT] if intercept else []
    given = [f"x{j}" for j in range(d)] if given is None else given
    names: list[str] = []
    used = {*last, *given}  # a new name must not be that of a later column
    seen = {*last}
    for j, name in enumerate(given):
        own = name
        while own in seen or (own != name and own in used):
            own = f"{own} [{j}]"
        seen.add(own)
        names.append(own)
    return names


def _diagnosis(evidence: Evidence, about: Data, columns: tuple[int, ...] | None, signs: dict[str, int | None]) -> Diagnosis:
    """Build the answer from what was proved, the independent `columns` and the `signs` of the coefficients that are decided."""
    question, names = evidence.question, about.names
    proof, found = _kind_proof(evidence), evidence.cone
    kind = KIND_OF_PROOF.get(None if proof is None else proof.kind, "undecided")
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
    """Return the proof of the kind: that of a cone, of rows that cancel, or of a separator."""
    if evidence.cone_proof is not None:
        return evidence.cone_proof
    found = evidence.proof("separator") if evidence.witness is None and evidence.strict else evidence.witness
    return None if found is None else found.certificate


def _with_own_constant(d: Diagnosis) -> Diagnosis:
    """Rename "(intercept)" to the column of ones, where X has one with a name."""
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
    """Return the name of the column of ones that depends on the intercept, if X has one."""
    about, dependent = d._data, {*(d.dependent or ())}
    if about.columns is None or not dependent or not Intercept.of(about.design.intercept).exists:
        return None
    names = (name for name in about.table.names if block + name in dependent)
    return next(filter(about.table.is_constant, names), None)
