"""The checker: `verify` re-derives the claim of a certificate from X and y.

It uses gordan's code for reading data and for rigorous bounds, but no solver. Every claim is decided by floating-point enclosures
if these are narrow enough, and otherwise in exact arithmetic. A certificate is accepted only if it proves its claim for the
stored values as real numbers.
"""

from __future__ import annotations

import decimal
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, require_aligned, vector
from gordan.certificates import exact, standalone, verified
from gordan.certificates.data import About, Certificate, Kind
from gordan.certificates.losses import hash_of_weights
from gordan.certificates.margins import Margin, first_not_positive
from gordan.certificates.matrix import CLAIM, Products
from gordan.certificates.models import Observations
from gordan.certificates.problem import Problem, read_labels
from gordan.certificates.regions import claims, posed, proved
from gordan.errors import InputError
from gordan.floats import NotIEEE, ieee_floats
from gordan.intercepts import Intercept
from gordan.regressions import Regression
from gordan.rows import Complete, column_names, complete_rows

# A plane is scaled only if its largest entry is above 2^500 or below 2^-500.
FARTHEST_EXPONENT = 500
# The largest number of names that a note lists.
MAX_NAMES = 4
# The number of digits with which the ends of an interval are shown.
SHOWN_DIGITS = 8
# The largest number of stored entries of X for which an optimum is decided in fractions if floats leave it open. This takes
# seconds at most.
MAX_IN_FRACTIONS = 1 << 12


@dataclass(frozen=True)
class Check:
    """The outcome of `verify`: whether a certificate was accepted, what it claims, and why it was rejected. True if accepted.

    When printed, it also says where the certificate comes from, and whether this is the data that it was made for.
    """

    accepted: bool
    claim: str
    reason: str = ""
    _asked: tuple[Certificate, Any, Any, Any] | None = field(default=None, repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.accepted

    @cached_property
    def same_data(self) -> bool | None:
        """Whether this is the data that the certificate was made for, or None if the certificate does not say.

        The data is identified by its hash, which is computed on first access. No check depends on this: a claim may hold for
        other data as well.
        """
        if self._asked is None or self._asked[0].data_hash is None:
            return None
        return self._asked[0].data_hash == hash_for(*self._asked)

    @cached_property
    def renamed(self) -> tuple[str, ...]:
        """The columns of X whose names differ from those that the certificate was made for."""
        if self._asked is None:
            return ()
        certificate, X = self._asked[:2]
        shape = getattr(X, "shape", certificate.shape)
        return other_names(certificate, column_names(X, shape[-1]))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about where the certificate comes from, and about how the data relates to it."""
        if self._asked is None:
            return ()
        certificate, X, y, sample_weight = self._asked
        kept = _kept_rows(certificate, X, y, sample_weight)
        own = (y, sample_weight) if kept is None else (kept.of(y), None if sample_weight is None else kept.of(sample_weight))
        weights = compared_weights(certificate, *own, getattr(sample_weight, "name", None))
        label = getattr(y, "name", None)
        return provenance(certificate, self.renamed, self.same_data, self.accepted, label=label, weights=weights)

    def __str__(self) -> str:
        head = f"accepted: {self.claim}" if self.accepted else f"rejected: {self.reason} (it claims that {self.claim})"
        return "\n  ".join((head, *self.notes))


def other_names(certificate: Certificate, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the differences between column names and those that a certificate was made for; empty if either has no names."""
    stated = (certificate.about or About()).columns
    if stated is None or names is None or [*names] == [*stated]:
        return ()
    if sorted(names) == sorted(stated):
        return (standalone.OTHER_ORDER,)
    pairs = zip(names, stated, strict=False)
    return tuple(f"{a!r} in place of {b!r}" for a, b in pairs if a != b) or ("their number differs",)


def other_label(certificate: Certificate, name: Any) -> bool:
    """Return whether the name of the labels differs from the one that a certificate was made for; False if either has none."""
    stated = (certificate.about or About()).label
    return bool(stated) and isinstance(name, str) and bool(name) and name != stated


def compared_weights(
    certificate: Certificate, y: Any, sample_weight: Any, column: str | None, shown: Any = None
) -> tuple[str, str]:
    """Return what `standalone.compare_weights` does; nothing if there are no weights to compare, or a hash has done so.

    y has the labels as the certificate means them; `shown` are other labels by which factors are compared and named.
    """
    stated, stored = (certificate.lower, certificate.upper) != (None, None), certificate.sample_weight
    if stored is None and (sample_weight is None or not stated or certificate.weights_hash is not None):
        return "", ""
    stored = (1.0,) * certificate.shape[0] if stored is None else stored
    if certificate.class_weight is not None:
        found, which = read_labels(y, len(y))
        own = [found[k] for k in which.tolist()]
        stored = standalone.with_class_weights(stored, certificate.class_weight, certificate.classes, own)
    only_zeros = certificate.kind != "optimum" and certificate.nu is None
    given = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64).tolist()
    column = column if given is not None else (certificate.about or About()).weight
    return standalone.compare_weights(stored, given, [*(y if shown is None else shown)], column, only_zeros)


def provenance(
    certificate: Certificate,
    renamed: Sequence[str],
    same_data: bool | None,
    accepted: bool,
    *,
    label: Any = None,
    more: Sequence[str] = (),
    classes: bool = True,
    weights: tuple[str, str] = ("", ""),
) -> tuple[str, ...]:
    """Return notes on where a certificate comes from and on how the data relates to it.

    `renamed` are differences of column names (`other_names`), `label` is the name of the labels, `more` are further notes,
    without `classes` the note on classes is left out, and `weights` is what `compared_weights` returns.
    """
    about = certificate.about or About()
    notes = [*_source_note(about), *_statement_note(certificate), *(_class_note(certificate) if classes else ())]
    notes += [f"{RULES[rule]} are left out, and row numbers do not count them" for rule in certificate.dropped]
    if renamed:
        names = ", ".join(renamed[:MAX_NAMES]) + (", …" if len(renamed) > MAX_NAMES else "")
        in_order = renamed[0] != standalone.OTHER_ORDER
        notes.append(f"the columns have other names than those it was made for: {names}" if in_order else names)
    if other_label(certificate, label):
        notes.append(OTHER_LABEL.format(label, about.label))
    notes += [*more, *([weights[1]] if weights[1] else ())]
    names_differ = bool(renamed) or other_label(certificate, label)
    notes.append(standalone.same_data_words(same_data, accepted, weights[0], names_differ))
    if renamed and not accepted and design_hint(certificate):
        notes.append(design_hint(certificate))
    return tuple(map(standalone.cut, notes))


def design_hint(certificate: Certificate) -> str:
    """Return advice for a certificate about columns that a formula made from a table, if the data has other columns, or ""."""
    about = certificate.about or About()
    if not any(map(standalone.FORMULA_TERM.search, about.columns or ())):
        return ""
    label = about.label or "y"
    y = f"{label}=d.y" if label.isidentifier() else f"**{{{label!r}: d.y}}"
    return (
        "a formula made columns that the certificate names; ask for a file of these, which "
        f"d.X.assign({y}).to_csv('design.csv', index=False) writes for a diagnosis d"
    )


def _source_note(about: About) -> list[str]:
    """Return a sentence about what a certificate says it was made for, or nothing if it does not say."""
    parts = [words.format(_printable(getattr(about, part))) for part, words in SOURCES.items() if getattr(about, part)]
    if about.columns:
        parts.append(f"{len(about.columns)} named column{'s' * (len(about.columns) > 1)} ({_first_few(about.columns)})")
    if about.size is not None and about.file:
        parts[0] += f" ({about.size:,} bytes)"
    version = _printable(about.version or "(unknown version)")
    note = f"the certificate says it was made by gordan {version}{' for ' if parts else ''}{', '.join(parts)}"
    return [note] if parts or about.version else []


def _class_note(certificate: Certificate) -> list[str]:
    """Return a sentence about the positive class or the order of the classes, unless `about` already says it."""
    classes, stated = certificate.classes, (certificate.about or About()).positive
    if stated and (certificate.model != "logistic" or certificate.several):
        return [f"its description, which was not checked, names the class {stated!r}, but its claim is about all classes"]
    if stated and not isinstance(classes[1], bool) and not _is_label(stated, classes[1]):
        other = f"its positive class is {classes[1]!r}, the other one {classes[0]!r}"
        return [f"its description, which was not checked, names the class {stated!r}, but {other}"]
    if certificate.model == "poisson" or stated:
        return []
    if certificate.model == "ordinal":
        return [f"the order of its classes is {_first_few(classes, ' < ')}"]
    if certificate.several:
        reference = "; the first is the reference" if certificate.model == "multinomial" else ""
        return [f"its classes are {_first_few(classes)}{reference}"]
    return [f"the positive class is {classes[1]!r}, the other one {classes[0]!r}"]


def _is_label(text: str, label: Any) -> bool:
    """Return whether the text is that label, or the same number."""
    try:
        return text == str(label) or (not isinstance(label, str) and float(text) == label)
    except ValueError:
        return False


def _first_few(values: Sequence[Any], separator: str = ", ") -> str:
    """Return the first few of the values as text."""
    return separator.join(map(repr, values[:MAX_NAMES])) + (separator + "…" if len(values) > MAX_NAMES else "")


def _printable(text: Any) -> Any:
    """Return text without control characters, which could move the cursor of a terminal or begin another line; it may be cut."""
    return standalone.printable(text) if isinstance(text, str) else text


def _statement_note(certificate: Certificate) -> list[str]:
    """Return a sentence with the statement in a certificate if that is not the claim that was checked."""
    stated = (certificate.about or About()).statement
    other = stated is not None and stated != statement(certificate)
    return [f"its own statement reads differently, and was not checked: {stated!r}"] if other else []


SOURCES = {
    "file": "the file {}",
    "label": "the label column {!r}",
    "weight": "the weights {!r}",
    "positive": "the class {!r} against the rest",
}
OTHER_LABEL = "the label column has another name than the one it was made for: {!r} in place of {!r}"
RULES = {"missing": "rows with a missing value", "zero-weight": "rows of weight zero"}


def verify(certificate: Certificate, X: Any, y: Any, sample_weight: Any = None) -> Check:
    """Check a certificate against data.

    An exception is raised only for malformed input. A certificate that does not prove its claim is rejected.

    Parameters
    ----------
    certificate
        the `certificate` of a result, or `Certificate.from_json` of the text of a file.
    X, y
        the data that the claim is about, in any storage. If y has the labels -1 and 1, the label 0 marks rows that are left out.
    sample_weight
        the weights of the rows; needed only if the certificate leaves out rows of weight zero, or if it has too many rows to hold
        the weights itself and identifies them by a hash.

    Returns
    -------
    Check
        its truth value and `accepted` say whether the certificate was accepted, `claim` what it claims, and `reason` why it was
        rejected. `same_data` says whether this is the data that it was made for, and `renamed` which columns have other names.
        All of this is shown when it is printed.

    Examples
    --------

    >>> import gordan
    >>> X, y = [[0.0], [1.0]], [0, 1]
    >>> c = gordan.Certificate("separator", "free", (0, 1), (2, 1), w=(1.0,), b=-0.5)
    >>> bool(gordan.verify(c, X, y)), bool(gordan.verify(c, X, [1, 0]))
    (True, False)
    """
    return verified_for(certificate, X, y, sample_weight)


def verified_for(
    certificate: Certificate,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    more: Callable[[Certificate, Problem], str] | None = None,
    *,
    missing: int = 0,
    weight: str | None = None,
) -> Check:
    """Return what `verify` does, with an additional condition for acceptance.

    If the certificate itself is accepted, `more` is called with it and the problem, and returns why something else that should
    follow from it does not, or an empty string if it does. For the claim in words, `missing` is the number of rows with missing
    values that X and y lack already, and `weight` the name of the column of weights.
    """
    if not isinstance(certificate, Certificate):
        raise InputError(
            f"certificate is {type(certificate).__name__}; pass result.certificate, or model.certificate_ of a classifier (for "
            "several classes, pass one certificate and y == that class), or Certificate.from_json(text)"
        )
    asked = certificate, X, y, sample_weight
    kept = _kept_rows(certificate, X, y, sample_weight)
    if kept is not None:
        X, y = kept.of(X), kept.of(y)
        missing += kept.left_out - kept.zero
        weight = weight or getattr(sample_weight, "name", None)
        sample_weight = None if sample_weight is None else kept.of(sample_weight)
    if "zero-weight" in certificate.dropped and sample_weight is None and len(y) > certificate.shape[0]:
        reason = "it leaves out rows of weight zero: pass the weights as sample_weight"
        return Check(False, statement(certificate), reason, asked)
    found, unlabeled = _checked(certificate, X, y, sample_weight, more)
    left_out = missing, 0 if kept is None else kept.zero, unlabeled
    words = standalone.left_out_words(certificate.shape[0] - unlabeled, *left_out, weight)
    return replace(found, claim=found.claim + words, _asked=asked)


def _checked(
    certificate: Certificate, X: Any, y: Any, sample_weight: Any, more: Callable[[Certificate, Problem], str] | None
) -> tuple[Check, int]:
    """Check the certificate and the condition `more` of `verified_for`; also return how many rows of label 0 are left out."""
    if certificate.model != "logistic":
        return _check_model(certificate, X, y), 0
    try:
        part, problem = _read_data(certificate, X, y, sample_weight)
    except (NotIEEE, _DoesNotApply) as error:
        return Check(False, statement(certificate), str(error)), 0
    found = check(part, problem)
    reason = "" if more is None or not found else more(part, problem)
    found = replace(found, accepted=False, reason=reason) if reason else found
    return found, certificate.shape[0] - part.shape[0]


class _DoesNotApply(Exception):
    """A certificate cannot be about the data; the message says why."""


def _read_data(certificate: Certificate, X: Any, y: Any, sample_weight: Any) -> tuple[Certificate, Problem]:
    """Return the certificate with its sample weights, and the data, both without rows of label 0.

    The norms of the rows are computed here and are finite; an InputError names an entry of X that is not.
    """
    problem = Problem.named(X, y, certificate.classes, several=certificate.several)
    require_aligned(X=X, y=y, sample_weight=sample_weight)
    if sample_weight is not None and certificate.kind == "optimum":  # the other kinds always hold the weights themselves
        certificate = _with_sample_weight(certificate, vector(sample_weight, "sample_weight", problem.X.n))
    if certificate.shape == (problem.X.n, problem.X.d):
        problem, rows = problem.counted()
        certificate = certificate if rows is None else _restricted_to(certificate, rows)
    X = problem.X.centred if certificate.kind == "optimum" and Intercept(certificate.intercept).grouped else problem.X
    if certificate.w is not None and not (certificate.exact or certificate.several) and len(certificate.w) == problem.X.d:
        w, _ = _of_moderate_size(np.array(certificate.w, dtype=np.float64), float(certificate.b or 0.0))
        Products.of(X, w)  # the products that the check needs, in the same pass as the norms
    if not np.isfinite(X.norms).all():
        problem.require_finite()
    return certificate, problem


def _kept_rows(c: Certificate, X: Any, y: Any, sample_weight: Any) -> Complete | None:
    """Return which rows the certificate's `dropped` rules leave; None if it has no such rules."""
    given = {"X": X, "y": y, "sample_weight": sample_weight} if "missing" in c.dropped else {}
    return complete_rows(len(y), given, sample_weight if "zero-weight" in c.dropped else None) if c.dropped else None


def hash_for(certificate: Certificate, X: Any, y: Any, sample_weight: Any = None) -> str:
    """Return the data hash that a certificate of the same model, intercept and `dropped` rules would have for this data."""
    kept = _kept_rows(certificate, X, y, sample_weight)
    X, y = (X, y) if kept is None else (kept.of(X), kept.of(y))
    if certificate.model == "logistic":
        return Problem.named(X, y, certificate.classes, several=certificate.several).hash(certificate.intercept)
    given = Observations.of(certificate.model, X, y, Intercept(certificate.intercept))
    return (given.ordered(certificate.classes) if {*given.classes} == {*certificate.classes} else given).hash()


def _restricted_to(c: Certificate, rows: Array) -> Certificate:
    """Return the certificate as one about these rows only."""
    place = {row: k for k, row in enumerate(rows.tolist())}
    if not {*c.rows} <= {*place}:
        raise _DoesNotApply("it names rows that are left out")
    weights = c.sample_weight if c.sample_weight is None else tuple(c.sample_weight[row] for row in place)
    return replace(c, shape=(len(rows), c.shape[1]), rows=tuple(place[row] for row in c.rows), sample_weight=weights)


def _with_sample_weight(c: Certificate, weights: Array) -> Certificate:
    """Return the certificate with these sample weights in it, if they are those that it was made for."""
    if c.weights_hash is not None:
        same = hash_of_weights(weights) == c.weights_hash
    elif c.sample_weight is not None:
        same = c.sample_weight == tuple(weights.tolist())
    else:
        same = bool((weights == 1).all())
    if not same:
        raise _DoesNotApply(standalone.OTHER_WEIGHTS if c.weights_hash is not None else "it was made for other sample weights")
    return c if c.weights_hash is None else replace(c, sample_weight=tuple(weights.tolist()))


def _check_model(certificate: Certificate, X: Any, y: Any) -> Check:
    """Check a certificate about the rows that a model makes from the data; reasons name rows of the data."""
    claim, reason = statement(certificate), ""
    try:
        with ieee_floats():
            given = Observations.of(certificate.model, X, y, Intercept(certificate.intercept))
            of_classes = certificate.model != "poisson"
            reason = _other_shape(certificate, given.shape, given.classes, of_classes)
            if not reason and of_classes and {*certificate.classes} != {*given.classes}:
                reason = f"its classes are {certificate.classes}, those of y are {given.classes}"
            if reason:
                return Check(False, claim, reason)
            given.require_finite()
            made, of = given.ordered(certificate.classes).model_rows()
    except NotIEEE as error:
        return Check(False, claim, str(error))
    claimed = replace(certificate, model="logistic", intercept="none", classes=made.classes, shape=(made.X.n, made.X.d))
    found = check(claimed, made)
    return replace(found, claim=claim, reason=re.sub(r"(?<=^row )\d+", lambda row: str(of[int(row[0])]), found.reason))


def check(certificate: Certificate, problem: Problem) -> Check:
    """Check a certificate against data that has been read."""
    try:
        with ieee_floats():
            reason = _mismatch(certificate, problem) or CHECKS[certificate.kind].refusal(certificate, problem)
    except NotIEEE as error:
        reason = str(error)
    return Check(not reason, statement(certificate), reason)


def statement(c: Certificate) -> str:
    """Return the claim in words, with decimal numbers rounded so that it stays true."""
    return CHECKS[c.kind].claim(c) if c.model == "logistic" else _model_claim(c)


def _model_claim(c: Certificate) -> str:
    """Return what a certificate with a model other than the logistic one claims about the estimates of the model."""
    data = f"the data of {Regression(c.model).in_words}"
    data += "" if Intercept(c.intercept).exists else " (with no constant beside its columns)"
    if c.kind == "separator":
        return f"{data} is completely separated: its maximum-likelihood estimates do not exist"
    if c.kind in ("quasi-separation", "verified-quasi-separation"):
        partly = "" if c.model == "poisson" else ", but not completely"
        return f"{data} is separated{partly}: its maximum-likelihood estimates do not exist"
    if c.kind in ("overlap", "verified-overlap"):
        return f"{data} overlaps: its maximum-likelihood estimates exist"
    return f"{data} is not completely separated"


def accepts(head: Certificate, problem: Problem, w: Array | None, p: Any | None) -> bool:
    """Return whether `check` would accept the separator or bracket `head` with this w and these weights p over all rows.

    The certificate need not hold them yet: converting many numbers to tuples and back to arrays takes longer than the check.
    """
    if p is not None and not (p.min() >= 0 and p.max() < math.inf):
        return False
    try:
        with ieee_floats():
            reason = _data_mismatch(head, problem) or _malformed_numbers(head, w)
            return not (reason or _margin_refusal(head, problem, w, np.zeros(problem.X.n) if p is None else p))
    except NotIEEE:
        return False


def deviation(certificate: Certificate, problem: Problem) -> float:
    """Return a bound on the distance of a verified certificate's weights, divided by their sum, from exact weights.

    It is infinite if such exact weights are not proved to exist, or if the certificate would be rejected for another reason. Used
    before a claim is made, so the proof must leave room for the checker's own rounding (`CLAIM`).
    """
    try:
        with ieee_floats():
            if _mismatch(certificate, problem):
                return math.inf
            spanned, reason = _to_be_spanned(certificate, problem)
            return math.inf if reason else verified.deviation(certificate, problem, spanned, CLAIM)
    except NotIEEE:
        return math.inf


# Each of the following functions returns why a certificate is not accepted, or an empty string if nothing speaks against it.


def _mismatch(c: Certificate, problem: Problem) -> str:
    """Return why a certificate of any kind cannot be about this data."""
    reason = _data_mismatch(c, problem)
    if reason:
        return reason
    if len({*c.rows}) != len(c.rows) or (c.rows and not 0 <= min(c.rows) <= max(c.rows) < problem.X.n):
        return "its rows are not distinct rows of X"
    least = min(c.weights, default=1)
    if not (least > 0 or (least == 0 and c.kind == "optimum")) or len(c.weights) != len(c.rows):
        return "its weights are not positive, one for each row"
    return ""


def _other_shape(c: Certificate, shape: tuple[int, int], classes: Sequence[Any], several: bool) -> str:
    """Return that the data has another shape, or more classes, which is then why, if the claim is about `several` classes."""
    others = standalone.other_classes(c.classes, classes) if several else ""
    return others or (f"it is about data of shape {c.shape}, not {shape}" if c.shape != shape else "")


def _data_mismatch(c: Certificate, problem: Problem) -> str:
    """Return why the shape, the classes or the device of the data rule out any proof, or b without an intercept."""
    other = _other_shape(c, (problem.X.n, problem.X.d), problem.classes, c.several)
    if other:
        return other
    if {*c.classes} != {*problem.classes} or len(c.classes) != len(problem.classes):
        return f"its classes are {c.classes}, those of y are {problem.classes}"
    if c.b and c.kind != "bracket" and not Intercept(c.intercept).exists:  # a bracket does not use its b then
        return "it has b although there is no intercept"
    if not problem.storage.ieee():
        return "the device of X flushes subnormal numbers to zero or does not round to nearest; nothing can be proved on it"
    return ""


def _malformed_numbers(c: Certificate, w: Array | None) -> str:
    """Return what is wrong with lengths of vectors and with numbers that are not finite, which JSON cannot hold."""
    n, d = c.shape
    size = len(c.classes) * (d + Intercept(c.intercept).exists) if c.several else d
    sizes = ((c.w, size), (w, size), (c.sample_weight, n))
    if any(given is not None and len(given) != length for given, length in sizes):
        return "its w or its sample weights are of the wrong length"
    plain = (c.lower or 0.0, c.nu or 0.0, c.b or 0.0, c.robust, *c.weights)
    finite = all(map(math.isfinite, plain)) and c.norm > -math.inf and (c.upper or 0.0) > -math.inf
    return "" if finite and (w is None or np.isfinite(w).all()) else "it has numbers that are not finite"


def _stored_margin_refusal(c: Certificate, problem: Problem) -> str:
    """Return why a separator or bracket is not accepted with the w and the weights that it holds."""
    w = None if c.w is None else np.fromiter(c.w, np.float64, len(c.w))
    p = np.zeros(problem.X.n)
    p[list(c.rows)] = c.weights
    return _malformed_numbers(c, w) or _margin_refusal(c, problem, w, p)


def _margin_refusal(c: Certificate, problem: Problem, w: Array | None, p: Any) -> str:
    """Return why a separator or bracket is not accepted with this w and these weights p over all rows."""
    margin, b = Margin.of(problem, c), float(c.b or 0.0)
    if w is not None:
        w, b = _of_moderate_size(w, b)
    if c.kind == "separator":
        reason = _separator_refusal(margin, w, b)
        if reason or (c.lower is None and c.upper is None):
            return reason
    return margin.infeasibility_reason() or _bracket_refusal(c, margin, w, b, p)


def _of_moderate_size(w: Array, b: float) -> tuple[Array, float]:
    """Return the plane divided by a power of two if its products might overflow or underflow, unless that loses digits."""
    top = max(float(np.max(np.abs(w), initial=0.0)), abs(b))
    exponent = math.frexp(top)[1]
    if not 0 < top < math.inf or abs(exponent) <= FARTHEST_EXPONENT:
        return w, b
    v, a = np.ldexp(w, -exponent), math.ldexp(b, -exponent)
    return (v, a) if (np.ldexp(v, exponent) == w).all() and math.ldexp(a, exponent) == b else (w, b)


def _separator_refusal(margin: Margin, w: Array | None, b: float) -> str:
    """Return why w, b does not have every row strictly on its side."""
    if w is None:
        return "it has no w"
    row = first_not_positive(Products.of(margin.X, w, in_place=True), b, margin.in_place.signs)
    return "" if row is None else f"row {row} is not on the right side"


def _bracket_refusal(c: Certificate, margin: Margin, w: Array | None, b: float, p: Any) -> str:
    """Return why w, b and p do not prove lower ≤ γ* ≤ upper."""
    if c.lower is not None and c.lower > 0:
        if w is None:
            return "it has no w for its lower bound"
        best = margin.lower(w, b)
        if c.lower > best:
            best = margin.lower(w, b, exactly=True)
        if not (c.lower <= best or margin.proves_lower(c.lower, w, b)):
            return f"its lower bound {c.lower!r} is above {best!r}, which is what w proves"
    if c.upper is not None and c.upper < math.inf:
        proved = margin.upper(p)
        if not (c.upper >= proved or margin.proves_upper(c.upper, p)):
            return f"its upper bound {c.upper!r} is below {proved!r}, which is what p proves"
    return ""


def _witness_refusal(c: Certificate, problem: Problem) -> str:
    """Return why the rows do not cancel exactly with the integer weights."""
    if not c.rows:
        return "it has no rows"
    signs = problem.signs_for(c.classes)
    entries = [found[1:] for found in exact.integer_entries(problem.X, c.rows)]
    low = min(e for _, _, e in entries)
    p = [int(weight) * int(signs[row]) for row, weight in zip(c.rows, c.weights, strict=True)]
    balance = sum(p)
    column = exact.first_not_cancelling([part << (e - low) for part, (_, _, e) in zip(p, entries, strict=True)], entries)
    if column is not None:
        return f"the weighted rows do not cancel in column {column}"
    if balance != 0 and Intercept(c.intercept).exists:
        return "the weights of the two classes differ, and there is an intercept"
    return ""


def _quasi_separation_refusal(c: Certificate, problem: Problem) -> str:
    """Return why it is not proved that A w ≥ 0, A w ≠ 0 and no v with A v ≥ 0 is positive on a row with A_i w = 0.

    The weights prove A_i v = 0 for each such v on the rows of the certificate, and so on all rows that these span.
    """
    on_plane, reason = _on_plane(c, problem)
    return reason or _witness_refusal(c, problem) or _span_refusal(c, problem, on_plane, "the rows on the plane of w")


def _on_plane(c: Certificate, problem: Problem) -> tuple[Array, str]:
    """Return the rows with A_i w = 0, and why w is not a weak separator with some rows on its plane and some not."""
    nothing = np.arange(0)
    if c.w is None or len(c.w) != problem.X.d:
        return nothing, "it has no w, or one of the wrong length"
    # multiplied by a common power of two, floats become integers
    ratios = [x.as_integer_ratio() for x in (*c.w, 0 if c.b is None else c.b)]
    common = max(ratio[1] for ratio in ratios)
    *w, b = (top * (common // bottom) for top, bottom in ratios)
    found = exact.score_signs(problem.X, w, b, problem.signs_for(c.classes))
    on_plane = np.flatnonzero(found == 0)
    if (found < 0).any():
        return nothing, f"row {int(np.argmax(found < 0))} is on the wrong side"
    if len(on_plane) == problem.X.n:
        return nothing, "w separates nothing: every row is on its plane"
    return on_plane, "" if len(on_plane) else "w leaves no row on its plane: the separation is complete"


def _overlap_refusal(c: Certificate, problem: Problem) -> str:
    """Return why it is not proved that A w ≥ 0 implies A w = 0.

    The weights prove A_i w = 0 for each such w on the rows of the certificate, and so on all rows if these span them.
    """
    return _witness_refusal(c, problem) or _span_refusal(c, problem, np.arange(problem.X.n), "all rows")


def _verified_refusal(c: Certificate, problem: Problem) -> str:
    """Return why the float weights do not prove that exact ones exist near them; see `verified`."""
    spanned, reason = _to_be_spanned(c, problem)
    if reason or verified.proved(c, problem, spanned):
        return reason
    what = {"verified-overlap": " and span all rows", "verified-quasi-separation": " and span the rows on the plane of w"}
    return "its weights do not prove, within rounding, that its rows cancel with positive weights" + what.get(c.kind, "")


def _to_be_spanned(c: Certificate, problem: Problem) -> tuple[Array | None, str]:
    """Return the rows that a verified certificate claims to span (None: all rows), and why its plane rules that out."""
    if c.kind == "verified-quasi-separation":
        on_plane, reason = _on_plane(c, problem)
        return on_plane, reason or ("" if np.isin(c.rows, on_plane).all() else "one of its rows is not on the plane of w")
    return (None if c.kind == "verified-overlap" else np.array(c.rows, dtype=np.intp)), ""


def _span_refusal(c: Certificate, problem: Problem, among: Array, what: str) -> str:
    """Return why the rows of the certificate are not proved to span the rows in `among`, which are called `what`."""
    spanned = exact.spans(problem, c.rows, among, Intercept(c.intercept))
    if spanned is None:
        return f"deciding whether its rows span {what} needs more memory than there is; check it on a larger machine"
    return "" if spanned else f"its rows do not span {what}"


def _optimum_inconsistency(c: Certificate) -> str:
    """Return which fields of an optimum contradict each other."""
    if c.weights_hash is not None and c.sample_weight is None:
        return f"it is about sample weights that it does not hold: {NEEDED_PRODUCTS if _may_need_products(c) else NEEDED_WEIGHTS}"
    if c.several and (c.b is not None or c.rows):
        return "the planes of a multinomial loss have b in w, and its rows have no weights of their own"
    return ""


def _may_need_products(c: Certificate) -> bool:
    """Return whether the rows of one class may be of several classes of the user, whose class weights are then in the weights."""
    return isinstance(c.classes[0], bool) and c.class_weight is None


NEEDED_WEIGHTS = "pass them as sample_weight, or name their column by --weight"
NEEDED_PRODUCTS = (
    f"{NEEDED_WEIGHTS}; with class weights, those of a class against several are the products "
    "sample_weight * model.class_weight_[numpy.searchsorted(model.classes_, y)], and `gordan verify MODEL DATA` forms them"
)


def _optimum_refusal(c: Certificate, problem: Problem) -> str:
    """Return why an interval for the least value of a loss is not accepted."""
    if c.w is None or c.loss is None or c.C is None:
        return "it has no w, no loss or no C"
    w = np.fromiter(c.w, np.float64, len(c.w))
    reason = _optimum_inconsistency(c) or _malformed_numbers(c, w) or posed(c, problem)[0].infeasibility_reason()
    return reason or _interval_refusal(c, problem)


def _interval_refusal(c: Certificate, problem: Problem) -> str:
    """Return why the plane and the weights of an optimum do not prove its interval."""
    few = problem.storage.entries <= MAX_IN_FRACTIONS
    # with the room of a claim, so that what is accepted here is also proved by weights that follow from exact scores
    *_, found = proved(c, problem, CLAIM if few else 1.0)
    lower, upper = c.lower or 0.0, math.inf if c.upper is None else c.upper
    if few and not claims(c, found) and lower <= found.upper and upper >= found.lower:
        return _refusal_in_fractions(c, problem)
    if lower > found.lower:
        return f"its lower bound {c.lower!r} is above {found.lower!r}, which is what w and the weights prove"
    return "" if upper >= found.upper else f"its upper bound {c.upper!r} is below {found.upper!r}, which is what w proves"


def _refusal_in_fractions(c: Certificate, problem: Problem) -> str:
    """Return why the standalone checker, which uses fractions, does not accept a certificate that floats leave open."""
    X = problem.X
    rows = [dict(zip(*(part.tolist() for part in row), strict=True)) for _, *row in X.storage.each_row(np.arange(X.n))]
    which = problem.which_for(c.classes) if c.several else (problem.signs_for(c.classes) > 0).astype(np.intp)
    about = json.loads(replace(c, dropped=(), about=None).to_json())
    accepted, reason = standalone.check(about, rows, [c.classes[k] for k in which.tolist()])
    return "" if accepted else reason


# ---- the claims in words --------------------------------------------------------------------------------------------


def _optimum_claim(c: Certificate) -> str:
    """Return the claim of an optimum."""
    what, C = str(c.loss).replace("_", " "), "?" if c.C is None else format(c.C, ".6g")
    terms = f"C = {C}{Intercept(c.intercept).in_claims}{_weight_words(c)}"
    return f"the least value of the {what} objective with {terms} is {_interval(c)}"


def _interval(c: Certificate) -> str:
    """Return the interval in words, with ends in decimal digits that are rounded outward."""
    ends = []
    for value, none, rounding in ((c.lower, 0.0, decimal.ROUND_FLOOR), (c.upper, math.inf, decimal.ROUND_CEILING)):
        rounded = decimal.Context(prec=SHOWN_DIGITS, rounding=rounding).plus(decimal.Decimal(none if value is None else value))
        ends.append(f"{float(rounded):.{SHOWN_DIGITS}g}".replace("inf", "infinity"))
    return f"between {ends[0]} and {ends[1]}"


def _margin_words(c: Certificate) -> str:
    """Return the name of the margin; what differs from the hard margin in the 2-norm with a free intercept is mentioned."""
    soft = "" if c.nu is None else f" (soft, nu = {c.nu:.6g})"
    norm = "" if c.norm == 2 else f" in the {c.norm:g}-norm"
    noise = f" under perturbations of size {c.robust:.6g} in the {c.robust_norm:g}-norm" if c.robust > 0 else ""
    return f"largest margin{soft}{norm}{noise}{Intercept(c.intercept).in_claims}{_weight_words(c)}"


def _weight_words(c: Certificate) -> str:
    """Return a phrase that says that rows have weights and how many weights are 0; empty without weights."""
    if c.sample_weight is None and c.class_weight is None and c.weights_hash is None:
        return ""
    zeros = sum(not weight for weight in c.sample_weight or ())
    return " of weighted rows" + (f" ({zeros} of them of weight 0)" if zeros else "")


def _separator_claim(c: Certificate) -> str:
    """Return the claim of a separator, with its bracket if it states one."""
    bracket = "" if c.lower is None or c.upper is None else f", with a {_margin_words(c)} {_interval(c)}"
    return f"the data is separable{bracket or Intercept(c.intercept).in_claims_of_signs}"


def _witness_claim(c: Certificate) -> str:
    """Return the claim of a witness."""
    through = Intercept(c.intercept).in_claims_of_signs
    return f"the data is not separable{through}: {len(c.rows)} rows suffice to show it"


def _plane(c: Certificate) -> str:
    """Return what a claim calls the planes that it is about."""
    return "plane" if Intercept(c.intercept).exists else "plane through the origin"


def _quasi_separation_claim(c: Certificate) -> str:
    """Return the claim of a quasi-separation."""
    return f"the data is quasi-completely separated: some {_plane(c)} separates it weakly, and none strictly"


def _overlap_claim(c: Certificate) -> str:
    """Return the claim of an overlap."""
    return f"the data overlaps: no {_plane(c)} separates it, not even weakly"


class KindCheck(NamedTuple):
    """How certificates of one kind are handled: their claim in words, and why one is not accepted (empty if it is)."""

    claim: Callable[[Certificate], str]
    refusal: Callable[[Certificate, Problem], str]


CHECKS: dict[Kind, KindCheck] = {
    "separator": KindCheck(_separator_claim, _stored_margin_refusal),
    "bracket": KindCheck(lambda c: f"the {_margin_words(c)} is {_interval(c)}", _stored_margin_refusal),
    "witness": KindCheck(_witness_claim, _witness_refusal),
    "quasi-separation": KindCheck(_quasi_separation_claim, _quasi_separation_refusal),
    "overlap": KindCheck(_overlap_claim, _overlap_refusal),
    "verified-witness": KindCheck(_witness_claim, _verified_refusal),
    "verified-quasi-separation": KindCheck(_quasi_separation_claim, _verified_refusal),
    "verified-overlap": KindCheck(_overlap_claim, _verified_refusal),
    "optimum": KindCheck(_optimum_claim, _optimum_refusal),
}
