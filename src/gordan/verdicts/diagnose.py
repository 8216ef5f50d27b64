"""`diagnose`: do the estimates of a logistic regression exist? Complete or quasi-complete separation, or overlap, with proof."""

from __future__ import annotations

import contextlib
import html
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gordan.arrays import seconds_at_most
from gordan.blas import blas_threads
from gordan.certificates import Certificate
from gordan.certificates.margins import Margin
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Asks, Budget, Question
from gordan.rows import column_names
from gordan.solve.finders import answer

Kind = Literal["complete", "quasi-complete", "overlap", "undecided"]
INTERCEPT = "(intercept)"
KINDS: dict[str | None, Kind] = {
    "separator": "complete",
    "quasi-separation": "quasi-complete",
    "verified-quasi-separation": "quasi-complete",
    "overlap": "overlap",
    "verified-overlap": "overlap",
}
# Names shown of a longer list.
MOST_SHOWN = 6


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the maximum-likelihood estimates of a logistic regression do on this data, and the proof.

    Attributes
    ----------
    kind
        "complete": some plane has every row strictly on its side. "quasi-complete": no such plane, but one with every row on its
        side or on the plane, and not all on it. "overlap": neither, so that the estimates exist. "undecided": not proved.
    columns
        the behaviour of each coefficient, by name ("(intercept)" for the constant): 0 finite, +1 or -1 infinite with that sign,
        None infinite with undetermined sign: the likelihood increases along directions of both signs. A coefficient
        that is in `dependent` or `open` is left out.
    rows
        positions of the rows that are strictly separated: all of them, some, or none. No weak separator is strict on any other.
    direction
        integers by name, along which the likelihood increases for ever: in the relative interior of the recession cone, that
        is, strict on all of `rows`. None if there is none, or none was found.
    dependent
        columns that are linear combinations of those before them (the constant comes first), exactly; they are left
        out of the model, as `glm` of R does. None if that was not examined.
    open
        names of coefficients whose behaviour was not decided.
    seconds
        the time it took.
    """

    kind: Kind
    columns: dict[str, int | None]
    rows: tuple[int, ...]
    direction: dict[str, int] | None
    dependent: tuple[str, ...] | None
    open: tuple[str, ...]
    seconds: float
    _certificate: Certificate | None = field(repr=False)
    _problem: Problem = field(repr=False)

    @property
    def proved(self) -> bool:
        """Whether the checker accepted the kind; False only for "undecided"."""
        return self.kind != "undecided"

    @cached_property
    def certificate(self) -> Certificate | None:
        """The certificate of the kind, bound to the data by its hash (computed on first access; an InputError if X was changed
        before).

        A separator if complete; "quasi-separation" or "verified-quasi-separation"; "overlap" or "verified-overlap". Where the
        kind is undecided it is what was proved on the way: a witness that the separation is not complete, or None.
        """
        if self._certificate is None:
            return None
        return replace(self._certificate, data_hash=self._problem.hash(self._certificate.intercept))

    def __repr__(self) -> str:
        return "\n".join(_story(self))

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(line)}</p>" for line in _story(self))


def diagnose(X: Any, y: Any, *, intercept: str = "free", time_limit: float | None = None) -> Diagnosis:
    """Decide whether the maximum-likelihood estimates of a logistic regression of y on X exist, with proof.

    With rows A_i = y_i (x_i, 1) the likelihood increases for ever along w if A w ≥ 0 and A w ≠ 0. The separation is complete if
    A w > 0 for some w, else quasi-complete if there is such a w, and the data overlaps if there is none; just then the estimates
    exist (Albert and Anderson 1984). What is said is about the numbers as stored, without any tolerance: the kind and the rows
    are what the certificate proves; dependent columns and the signs of coefficients are decided in exact arithmetic, too, but
    the certificate does not carry their proofs. Ctrl-C and the time limit end the search; what was proved by then is returned.

    Parameters
    ----------
    X, y
        data; X dense, sparse or a data frame, whose column names are then used (x0, x1, … otherwise); y two labels of any kind,
        the second of which in sorted order is the event.
    intercept
        "free" or "penalized" (the same here: a constant is in the model), or "none".
    time_limit
        seconds; then whatever is open stays so: some coefficients, or the kind. Nothing is begun that would not end in time.

    Examples
    --------
    >>> import gordan
    >>> found = gordan.diagnose([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [1.5, 1.0], [2.5, 1.0]], [0, 1, 0, 1, 1])
    >>> found.kind, found.columns, found.rows
    ('quasi-complete', {'x0': 0, 'x1': 1, '(intercept)': 0}, (3, 4))
    >>> bool(gordan.verify(found.certificate, [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [1.5, 1.0], [2.5, 1.0]], [0, 1, 0, 1, 1]))
    True
    """
    from gordan.solve import coefficients  # here: it brings SciPy and python-flint
    from gordan.solve.recession import Recession, independent

    kind = Intercept.of(intercept)
    started = time.perf_counter()
    budget = Budget(started, started + seconds_at_most(time_limit))
    problem = Problem.of(X, y).watched(X)
    problem.require_finite()
    names = _names(column_names(X, problem.X.d), problem.X.d, kind)
    question = Question(problem, Margin(problem.X, problem.signs, kind), Asks.CONE, budget)
    evidence = Evidence(question)
    columns: tuple[int, ...] | None = None
    signs: dict[str, int | None] = {}
    with contextlib.suppress(KeyboardInterrupt), blas_threads(problem.storage.entries):
        evidence = answer(question)
        question = evidence.question  # with the pace of this call
        found, proof = evidence.cone, evidence.cone_proof
        if proof is not None and proof.kind == "verified-overlap":  # which says which columns depend on the others
            columns = tuple(sorted({*range(len(names))} - {relation[0][0] for relation in proof.dependent}))
            signs = {names[j]: 0 for j in columns}
        else:
            columns = question.known(independent) if evidence.effort.stopped else question.shared(independent)
        if isinstance(found, Recession) and not evidence.effort.stopped:
            full_rank = found.kind != "complete" and not found.null.ncols()
            columns = found.cone.columns if full_rank else columns
            for j, sign in coefficients.coordinate_signs(found) if columns else ():
                signs[names[found.cone.columns[j]]] = sign
    return _diagnosis(evidence, names, columns, signs)


def _names(given: Sequence[str] | None, d: int, intercept: Intercept) -> list[str]:
    """A name for each column of [X, 1], no two the same: a name that comes again is followed by its position."""
    last = [INTERCEPT] if intercept.exists else []
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
    return [*names, *last]


def _diagnosis(evidence: Evidence, names: list[str], columns: tuple[int, ...] | None, signs: dict[str, int | None]) -> Diagnosis:
    """The answer that follows from what was proved; `columns` are the independent ones, `signs` the coefficients decided."""
    question = evidence.question
    proof, found = evidence.cone_proof or evidence.witness, evidence.cone
    if proof is None and evidence.strict:
        separator = evidence.proof("separator")
        proof = None if separator is None else separator.certificate
    kind = KINDS.get(None if proof is None else proof.kind, "undecided")
    rows: tuple[int, ...] = tuple(range(question.problem.X.n)) if kind == "complete" else ()
    direction = None
    if kind in ("complete", "quasi-complete") and found is not None:
        w, b = found.plane
        rows = tuple(np.flatnonzero(found.signs > 0).tolist())
        direction = dict(zip(names, [*w, b], strict=False))
    inside = None if columns is None else {names[j] for j in columns}
    return Diagnosis(
        kind=kind,
        columns={name: signs[name] for name in names if name in signs},
        rows=rows,
        direction=direction,
        dependent=None if inside is None else tuple(name for name in names if name not in inside),
        open=tuple(name for name in names if (inside is None or name in inside) and name not in signs),
        seconds=time.perf_counter() - question.budget.started,
        _certificate=proof,
        _problem=question.problem,
    )


# ---- telling --------------------------------------------------------------------------------------------------------


def _story(d: Diagnosis) -> list[str]:
    lines = []
    if d.dependent:
        verb = "is a linear combination" if len(d.dependent) == 1 else "are linear combinations"
        lines.append(f"X is rank-deficient: {_listed(d.dependent)} {verb} of the other columns; what follows is without.")
    return [*lines, _kind_told(d), *filter(None, (_columns_told(d), _advice(d)))]


def _kind_told(d: Diagnosis) -> str:
    n = d._problem.X.n
    if d.kind == "complete":
        return (
            f"Complete separation (proved): a plane has all {n} rows strictly on the right side. "
            "The maximum-likelihood estimates of a logistic regression do not exist."
        )
    if d.kind == "quasi-complete":
        return (
            f"Quasi-complete separation (proved): a plane has {len(d.rows)} of {n} rows strictly on the right side and the other "
            f"{n - len(d.rows)} on it; no plane does better. "
            "The maximum-likelihood estimates of a logistic regression do not exist."
        )
    if d.kind == "overlap":
        unique = "" if d.dependent is None else " and are unique"
        told = "Overlap (proved): no plane separates the classes, not even weakly. The maximum-likelihood estimates exist"
        return f"{told}{unique}."
    if d._certificate is not None:
        return "Undecided: the separation is not complete (proved); whether it is quasi-complete is open."
    return "Undecided: nothing was proved about separation."


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
        return "Next: try more time if it was limited, fewer columns, or rows without duplicates."
    infinite = [name for name, sign in d.columns.items() if sign != 0 and name != INTERCEPT]
    drop = f"drop or coarsen {infinite[0]}" if len(infinite) == 1 else "drop or coarsen a column that separates"
    return (
        "Next: do not read Wald tests or standard errors of this fit. Firth's penalized likelihood gives finite estimates; "
        f"exact or profile-likelihood methods give tests; or {drop}, if it says nothing but the outcome."
    )


def _listed(names: Sequence[str]) -> str:
    shown = [*names[:MOST_SHOWN]]
    if len(names) > MOST_SHOWN:
        return f"{', '.join(shown)} and {len(names) - MOST_SHOWN} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
