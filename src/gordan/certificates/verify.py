"""The checker. It re-derives every claim from X and y; of gordan it uses the reading of data and the rigorous bounds, no solver.

Every claim is decided by floating-point enclosures where these are enough, and else by exact integers: a certificate is accepted
just if it proves its claim for the stored values as real numbers.
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
from gordan.certificates.problem import Problem
from gordan.certificates.regions import claims, posed, proved
from gordan.errors import InputError
from gordan.floats import NotIEEE, ieee_floats
from gordan.intercepts import Intercept
from gordan.rows import column_names, complete_rows

# w and b of which the largest is within these powers of two of 1 are used as they are.
FARTHEST = 500
# Columns with other names that are listed.
MOST_NAMES = 4
# Digits of the ends of an interval in words.
SHOWN_DIGITS = 8
# Entries of X up to which the interval of an optimum is decided in fractions where enclosures leave it open: seconds at most.
MOST_IN_FRACTIONS = 1 << 12


@dataclass(frozen=True)
class Check:
    """Whether a certificate was accepted, what it claims, and why it was rejected. True when accepted.

    Printed, it also says where the certificate comes from, and whether this is the data that it was made for.
    """

    accepted: bool
    claim: str
    reason: str = ""
    _asked: tuple[Certificate, Any, Any, Any] | None = field(default=None, repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.accepted

    @cached_property
    def same_data(self) -> bool | None:
        """Whether this is the data that the certificate was made for, by its hash (computed on first access); None where it does
        not say. No check depends on that: a claim may hold for other data as well."""
        if self._asked is None or self._asked[0].data_hash is None:
            return None
        return self._asked[0].data_hash == hash_for(*self._asked)

    @cached_property
    def renamed(self) -> tuple[str, ...]:
        """The columns of X that have other names than those that the certificate was made for."""
        if self._asked is None:
            return ()
        certificate, X = self._asked[:2]
        shape = getattr(X, "shape", certificate.shape)
        return other_names(certificate, column_names(X, shape[-1]))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about where the certificate comes from, and about the data beside the claim."""
        if self._asked is None:
            return ()
        label = getattr(self._asked[2], "name", None)
        return provenance(self._asked[0], self.renamed, self.same_data, self.accepted, label=label)

    def __str__(self) -> str:
        head = f"accepted: {self.claim}" if self.accepted else f"rejected: {self.reason} (it claims that {self.claim})"
        return "\n  ".join((head, *self.notes))


def other_names(certificate: Certificate, names: Sequence[str] | None) -> tuple[str, ...]:
    """What differs between the names of columns and those that a certificate was made for, where both have names."""
    stated = None if certificate.about is None else certificate.about.columns
    if stated is None or names is None or [*names] == [*stated]:
        return ()
    pairs = zip(names, stated, strict=False)
    return tuple(f"{a!r} in place of {b!r}" for a, b in pairs if a != b) or ("more or fewer of them",)


def other_label(certificate: Certificate, name: Any) -> bool:
    """Whether the labels have another name than those that a certificate was made for, where both have names."""
    stated = None if certificate.about is None else certificate.about.label
    return bool(stated) and isinstance(name, str) and bool(name) and name != stated


def provenance(
    certificate: Certificate,
    renamed: Sequence[str],
    same_data: bool | None,
    accepted: bool,
    *,
    label: Any = None,
    more: Sequence[str] = (),
    classes: bool = True,
) -> tuple[str, ...]:
    """What to say of a certificate and the data beside the claim; of its `classes` unless that has been said."""
    about = certificate.about or About()
    pairs = [f"{', '.join(renamed[:MOST_NAMES])}{', …' if len(renamed) > MOST_NAMES else ''}"] if renamed else []
    return (
        *_source(about),
        *_other_statement(certificate),
        *(_classes_told(certificate) if classes else ()),
        *(f"{RULES[rule]} are left out, and row numbers do not count them" for rule in certificate.dropped),
        *(f"the columns have other names than those it was made for: {names}" for names in pairs),
        *((OTHER_LABEL.format(label, about.label),) if other_label(certificate, label) else ()),
        *more,
        OTHER_DATA[same_data, accepted and same_data is False],
        *((design_hint(certificate),) if renamed and not accepted else ()),
    )


def design_hint(certificate: Certificate) -> str:
    """What to ask for if a certificate is about columns that a formula made of a table."""
    label = (None if certificate.about is None else certificate.about.label) or "y"
    y = f"{label}=d.y" if label.isidentifier() else f"**{{{label!r}: d.y}}"
    return (
        "if a formula made the columns that the certificate names, ask for a file of these, which "
        f"d.X.assign({y}).to_csv('design.csv', index=False) writes for a diagnosis d"
    )


def _source(about: About) -> list[str]:
    """What a certificate says it was made for, in one sentence; none where it says nothing."""
    told = [words.format(_printable(getattr(about, part))) for part, words in SOURCES.items() if getattr(about, part)]
    if about.columns:
        told.append(f"{len(about.columns)} named column{'s' * (len(about.columns) > 1)} ({_some(about.columns)})")
    if about.size is not None and about.file:
        told[0] += f" ({about.size:,} bytes)"
    version = _printable(about.version or "(unknown version)")
    made = f"the certificate says it was made by gordan {version}{' for ' if told else ''}{', '.join(told)}"
    return [made] if told or about.version else []


def _classes_told(certificate: Certificate) -> list[str]:
    """Which class is the positive one, or the order of the classes, where that is not said already."""
    classes, stated = certificate.classes, None if certificate.about is None else certificate.about.positive
    if stated and (certificate.model != "logistic" or certificate.several):
        return [
            f"its own words contradict its claim, and were not checked: they name the class {stated!r}, but no class is set apart"
        ]
    if stated and not isinstance(classes[1], bool) and not _names(stated, classes[1]):
        other = f"its positive class is {classes[1]!r}, the other one {classes[0]!r}"
        return [f"its own words contradict its classes, and were not checked: they name the class {stated!r}, but {other}"]
    if certificate.model == "poisson" or stated:
        return []
    if certificate.model == "ordinal":
        return [f"the order of its classes is {_some(classes, ' < ')}"]
    if certificate.several:
        reference = "; the first is the reference" if certificate.model == "multinomial" else ""
        return [f"its classes are {_some(classes)}{reference}"]
    return [f"the positive class is {classes[1]!r}, the other one {classes[0]!r}"]


def _names(text: str, label: Any) -> bool:
    """Whether the text is that label, or the same number."""
    try:
        return text == str(label) or (not isinstance(label, str) and float(text) == label)
    except ValueError:
        return False


def _some(values: Sequence[Any], mark: str = ", ") -> str:
    """The first few of the values."""
    return mark.join(map(repr, values[:MOST_NAMES])) + (mark + "…" if len(values) > MOST_NAMES else "")


def _printable(text: Any) -> Any:
    """Text with nothing in it that moves on a terminal, or begins another line."""
    return repr(text) if isinstance(text, str) and not text.isprintable() else text


def _other_statement(certificate: Certificate) -> list[str]:
    """The statement in a certificate, where it is not the claim that was checked."""
    stated = None if certificate.about is None else certificate.about.statement
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
OTHER_DATA = {
    (None, False): "it does not say which data it was made for",
    (True, False): "everything that the claim depends on matches the data it was made for",
    (False, False): "this is not the data that it was made for",
    (False, True): "this is not the data that it was made for, but the claim holds for it as well",
}


def verify(certificate: Certificate, X: Any, y: Any, sample_weight: Any = None) -> Check:
    """Check a certificate against data. Raises only on malformed input; a false claim is a rejected one.

    Parameters
    ----------
    certificate
        what a result has as `certificate`, or `Certificate.from_json` of a file.
    X, y
        the data that it is about, in any storage. Beside the labels -1 and 1, 0 stands for a row that is left out.
    sample_weight
        weights of the rows, which are needed where a certificate of very many rows names them by their hash alone, or leaves out
        rows of weight zero.

    Returns
    -------
    Check
        `accepted`, which is also its truth, `claim` and `reason`; `same_data` says whether this is the data that the certificate
        was made for, `renamed` which columns have other names. Printed, it says all of that.

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
    certificate: Certificate, X: Any, y: Any, sample_weight: Any = None, more: Callable[[Certificate, Problem], str] | None = None
) -> Check:
    """`verify`; of what is accepted `more` says why something else that is to follow from it does not (empty if it does)."""
    if not isinstance(certificate, Certificate):
        raise InputError(
            f"certificate is {type(certificate).__name__}; pass result.certificate (for several classes, pass one "
            "certificate and y == that class), or Certificate.from_json(text)"
        )
    return replace(_decided(certificate, X, y, sample_weight, more), _asked=(certificate, X, y, sample_weight))


def _decided(
    certificate: Certificate, X: Any, y: Any, sample_weight: Any, more: Callable[[Certificate, Problem], str] | None
) -> Check:
    weighted = sample_weight is not None
    X, y, sample_weight = _kept(certificate, X, y, sample_weight)
    if "zero-weight" in certificate.dropped and not weighted and len(y) > certificate.shape[0]:
        return Check(False, statement(certificate), "it leaves out rows of weight zero: pass the weights as sample_weight")
    if certificate.model != "logistic":
        return _about_a_model(certificate, X, y)
    try:
        part, problem = _counted(certificate, X, y, sample_weight)
    except (NotIEEE, _Refused) as error:
        return Check(False, statement(certificate), str(error))
    found = check(part, problem)
    reason = "" if more is None or not found else more(part, problem)
    return replace(found, accepted=False, reason=reason) if reason else found


class _Refused(Exception):
    """Why a certificate is not about the data."""


def _counted(certificate: Certificate, X: Any, y: Any, sample_weight: Any) -> tuple[Certificate, Problem]:
    """The certificate, with its weights, and the data without rows of label 0; the norms of rows are known, and finite."""
    problem = Problem.named(X, y, certificate.classes, several=certificate.several)
    require_aligned(X=X, y=y, sample_weight=sample_weight)
    if sample_weight is not None and certificate.kind == "optimum":  # others hold the weights that they are about
        certificate = _weighted(certificate, vector(sample_weight, "sample_weight", problem.X.n))
    if certificate.shape == (problem.X.n, problem.X.d):
        problem, rows = problem.counted()
        certificate = certificate if rows is None else _about(certificate, rows)
    if certificate.w is not None and not (certificate.exact or certificate.several) and len(certificate.w) == problem.X.d:
        w, _ = _of_moderate_size(np.array(certificate.w, dtype=np.float64), float(certificate.b or 0.0))
        Products.of(problem.X, w)  # in one pass with the norms
    if not np.isfinite(problem.X.norms).all():
        problem.require_finite()
    return certificate, problem


def _kept(c: Certificate, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """The data without the rows that the certificate leaves out by its rules."""
    if not c.dropped:
        return X, y, sample_weight
    given = {"X": X, "y": y, "sample_weight": sample_weight} if "missing" in c.dropped else {}
    kept = complete_rows(len(y), given, sample_weight if "zero-weight" in c.dropped else None)
    return kept.of(X), kept.of(y), None


def hash_for(certificate: Certificate, X: Any, y: Any, sample_weight: Any = None) -> str:
    """The hash that a certificate for this data would have, if it were of the same model, intercept and rules."""
    X, y, _ = _kept(certificate, X, y, sample_weight)
    if certificate.model == "logistic":
        return Problem.named(X, y, certificate.classes, several=certificate.several).hash(certificate.intercept)
    given = Observations.of(certificate.model, X, y, Intercept(certificate.intercept))
    return (given.ordered(certificate.classes) if {*given.classes} == {*certificate.classes} else given).hash()


def _about(c: Certificate, rows: Array) -> Certificate:
    """The certificate as one about these rows alone."""
    place = {row: k for k, row in enumerate(rows.tolist())}
    if not {*c.rows} <= {*place}:
        raise _Refused("it names rows that are left out")
    weights = c.sample_weight if c.sample_weight is None else tuple(c.sample_weight[row] for row in place)
    return replace(c, shape=(len(rows), c.shape[1]), rows=tuple(place[row] for row in c.rows), sample_weight=weights)


def _weighted(c: Certificate, weights: Array) -> Certificate:
    """The certificate holding these weights, if they are those that it is about."""
    if c.weights_hash is not None:
        same = hash_of_weights(weights) == c.weights_hash
    elif c.sample_weight is not None:
        same = c.sample_weight == tuple(weights.tolist())
    else:
        same = bool((weights == 1).all())
    if not same:
        raise _Refused("it is about other sample weights")
    return c if c.weights_hash is None else replace(c, sample_weight=tuple(weights.tolist()))


def _about_a_model(certificate: Certificate, X: Any, y: Any) -> Check:
    """`verify` for rows that are made from the data."""
    claim, reason = statement(certificate), ""
    classes = None if certificate.model == "poisson" else certificate.classes
    try:
        with ieee_floats():
            given = Observations.of(certificate.model, X, y, Intercept(certificate.intercept))
            if certificate.shape != given.shape:
                reason = f"it is about data of shape {certificate.shape}, not {given.shape}"
            elif {*certificate.classes} != {*given.classes} and classes is not None:
                reason = f"its classes are {certificate.classes}, those of y are {given.classes}"
            if reason:
                return Check(False, claim, reason)
            given.require_finite()
            made, of = given.ordered(certificate.classes).made()
    except NotIEEE as error:
        return Check(False, claim, str(error))
    found = check(given.inward(certificate, made), made)
    return replace(found, claim=claim, reason=re.sub(r"(?<=^row )\d+", lambda row: str(of[int(row[0])]), found.reason))


def check(certificate: Certificate, problem: Problem) -> Check:
    """`verify` on data that has been read."""
    try:
        with ieee_floats():
            reason = _misplaced(certificate, problem) or CHECKS[certificate.kind].refusal(certificate, problem)
    except NotIEEE as error:
        reason = str(error)
    return Check(not reason, statement(certificate), reason)


def statement(c: Certificate) -> str:
    """The claim in words for people, with decimal numbers that are rounded so that it stays true."""
    return CHECKS[c.kind].claim(c) if c.model == "logistic" else _claim_of_model(c)


def _claim_of_model(c: Certificate) -> str:
    """What a certificate about rows that are made says of the estimates."""
    regression = {"ordinal": "n ordinal", "poisson": " Poisson"}.get(c.model, f" {c.model}") + " regression"
    regression += " (with no constant beside its columns)" if c.intercept == "none" else ""
    if c.kind == "separator":
        return f"the data of a{regression} is completely separated: its maximum-likelihood estimates do not exist"
    if c.kind in ("quasi-separation", "verified-quasi-separation"):
        partly = "" if c.model == "poisson" else ", but not completely"
        return f"the data of a{regression} is separated{partly}: its maximum-likelihood estimates do not exist"
    if c.kind in ("overlap", "verified-overlap"):
        return f"the data of a{regression} overlaps: its maximum-likelihood estimates exist"
    return f"the data of a{regression} is not completely separated"


def accepts(head: Certificate, problem: Problem, w: Array | None, p: Array | None) -> bool:
    """Whether `check` accepts the separator or bracket `head` with this w and the weights p over all rows.

    Before it has them: to make tuples of many numbers, and arrays of these again, takes longer than to check them.
    """
    if p is not None and not (np.min(p) >= 0 and np.max(p) < math.inf):
        return False
    try:
        with ieee_floats():
            reason = _other_data(head, problem) or _out_of_range(head, w)
            return not (reason or _in_floats(head, problem, w, np.zeros(problem.X.n) if p is None else p))
    except NotIEEE:
        return False


def deviation(certificate: Certificate, problem: Problem) -> float:
    """How far the exact weights of a verified certificate are from those it has, of total 1; infinite if not accepted.

    For claims, with room to spare, as `accepts` is for others.
    """
    try:
        with ieee_floats():
            if _misplaced(certificate, problem):
                return math.inf
            spanned, reason = _to_be_spanned(certificate, problem)
            return math.inf if reason else verified.deviation(certificate, problem, spanned, CLAIM)
    except NotIEEE:
        return math.inf


def _misplaced(c: Certificate, problem: Problem) -> str:
    """Why it cannot be about this data, whatever its kind."""
    reason = _other_data(c, problem)
    if reason:
        return reason
    if len({*c.rows}) != len(c.rows) or (c.rows and not 0 <= min(c.rows) <= max(c.rows) < problem.X.n):
        return "its rows are not distinct rows of X"
    least = min(c.weights, default=1)
    if not (least > 0 or (least == 0 and c.kind == "optimum")) or len(c.weights) != len(c.rows):
        return "its weights are not positive, one for each row"
    return ""


def _other_data(c: Certificate, problem: Problem) -> str:
    """Why nothing can be said of this data."""
    if c.shape != (problem.X.n, problem.X.d):
        return f"it is about data of shape {c.shape}, not {(problem.X.n, problem.X.d)}"
    if {*c.classes} != {*problem.classes} or len(c.classes) != len(problem.classes):
        return f"its classes are {c.classes}, those of y are {problem.classes}"
    if not problem.storage.ieee():
        return "the device of X flushes subnormal numbers to zero or does not round to nearest; nothing can be proved on it"
    return ""


def _out_of_range(c: Certificate, w: Array | None) -> str:
    """What no file can hold."""
    n, d = c.shape
    size = len(c.classes) * (d + Intercept(c.intercept).exists) if c.several else d
    sizes = ((c.w, size), (w, size), (c.sample_weight, n))
    if any(given is not None and len(given) != length for given, length in sizes):
        return "its w or its sample weights are of the wrong length"
    plain = (c.lower or 0.0, c.nu or 0.0, c.b or 0.0, c.robust, *c.weights)
    finite = all(map(math.isfinite, plain)) and c.norm > -math.inf and (c.upper or 0.0) > -math.inf
    return "" if finite and (w is None or np.isfinite(w).all()) else "it has numbers that are not finite"


def _margin(c: Certificate, problem: Problem) -> str:
    """Why a separator or bracket is not accepted."""
    w = None if c.w is None else np.fromiter(c.w, np.float64, len(c.w))
    p = np.zeros(problem.X.n)
    p[list(c.rows)] = c.weights
    return _out_of_range(c, w) or _in_floats(c, problem, w, p)


def _in_floats(c: Certificate, problem: Problem, w: Array | None, p: Array) -> str:
    """The same with this w and the weights p over all rows."""
    margin, b = Margin.of(problem, c), float(c.b or 0.0)
    if w is not None:
        w, b = _of_moderate_size(w, b)
    if c.kind == "separator":
        reason = _separator(c, margin, w, b)
        if reason or (c.lower is None and c.upper is None):
            return reason
    return margin.infeasibility_reason() or _bracket(c, margin, w, b, p)


def _of_moderate_size(w: Array, b: float) -> tuple[Array, float]:
    """The same plane times a power of two, where its products might overflow or underflow; as it is if that would lose digits."""
    top = max(float(np.max(np.abs(w), initial=0.0)), abs(b))
    exponent = math.frexp(top)[1]
    if not 0 < top < math.inf or abs(exponent) <= FARTHEST:
        return w, b
    v, a = np.ldexp(w, -exponent), math.ldexp(b, -exponent)
    return (v, a) if (np.ldexp(v, exponent) == w).all() and math.ldexp(a, exponent) == b else (w, b)


def _separator(c: Certificate, margin: Margin, w: Array | None, b: float) -> str:
    if w is None:
        return "it has no w"
    if b != 0 and not Intercept(c.intercept).exists:
        return "it has b although there is no intercept"
    row = first_not_positive(Products.of(margin.X, w), b, margin.signs)
    return "" if row is None else f"row {row} is not on the right side"


def _bracket(c: Certificate, margin: Margin, w: Array | None, b: float, p: Array) -> str:
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


def _witness(c: Certificate, problem: Problem) -> str:
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


def _quasi_separation(c: Certificate, problem: Problem) -> str:
    """A w ≥ 0, A w ≠ 0; and A_i v = 0 for each v with A v ≥ 0 and each row with A_i w = 0, since p says so of its support."""
    on_plane, reason = _on_plane(c, problem)
    return reason or _witness(c, problem) or _not_spanned(c, problem, on_plane, "the rows on the plane of w")


def _on_plane(c: Certificate, problem: Problem) -> tuple[Array, str]:
    """The rows with A_i w = 0, if A w ≥ 0 and neither all are such nor none; else why it is not so."""
    nothing = np.arange(0)
    if c.w is None or len(c.w) != problem.X.d:
        return nothing, "it has no w, or one of the wrong length"
    if c.b and not Intercept(c.intercept).exists:
        return nothing, "it has b although there is no intercept"
    # all times a power of two, which makes whole numbers of floats
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


def _overlap(c: Certificate, problem: Problem) -> str:
    """A_i w = 0 for every row i and each w with A w ≥ 0, since p says so of its support, which spans all rows."""
    return _witness(c, problem) or _not_spanned(c, problem, np.arange(problem.X.n), "all rows")


def _verified(c: Certificate, problem: Problem) -> str:
    """Why float weights do not prove that exact ones exist near them; see `verified`."""
    spanned, reason = _to_be_spanned(c, problem)
    if reason or verified.deviation(c, problem, spanned) < math.inf:
        return reason
    what = {"verified-overlap": " and span all rows", "verified-quasi-separation": " and span the rows on the plane of w"}
    return "its weights do not prove, within rounding, that its rows cancel with positive weights" + what.get(c.kind, "")


def _to_be_spanned(c: Certificate, problem: Problem) -> tuple[Array | None, str]:
    """Which rows its rows are said to span (None: all), and why that cannot be: its plane is not such."""
    if c.kind == "verified-quasi-separation":
        on_plane, reason = _on_plane(c, problem)
        return on_plane, reason or ("" if np.isin(c.rows, on_plane).all() else "a row of it is not on the plane of w")
    return (None if c.kind == "verified-overlap" else np.array(c.rows, dtype=np.intp)), ""


def _not_spanned(c: Certificate, problem: Problem, among: Array, what: str) -> str:
    spanned = exact.spans(problem, c.rows, among, Intercept(c.intercept))
    if spanned is None:
        return f"to find out whether its rows span {what} takes more memory than there is; check it on a larger machine"
    return "" if spanned else f"its rows do not span {what}"


class Checking(NamedTuple):
    """How certificates of one kind are checked: what they claim in words, and why one is not accepted (empty if it is)."""

    claim: Callable[[Certificate], str]
    refusal: Callable[[Certificate, Problem], str]


def _inconsistent(c: Certificate) -> str:
    """Why what an optimum states does not go together."""
    if c.weights_hash is not None and c.sample_weight is None:
        return "it is about sample weights that it does not hold: pass them as sample_weight"
    if c.several and (c.b is not None or c.rows):
        return "the planes of a multinomial loss have b in w, and its rows have no weights of their own"
    if c.b and not Intercept(c.intercept).exists:
        return "it has b although there is no intercept"
    return ""


def _optimum(c: Certificate, problem: Problem) -> str:
    """Why an interval for the least value of a loss is not accepted."""
    if c.w is None or c.loss is None or c.C is None:
        return "it has no w, no loss or no C"
    w = np.fromiter(c.w, np.float64, len(c.w))
    return _inconsistent(c) or _out_of_range(c, w) or posed(c, problem)[0].infeasibility_reason() or _not_in(c, problem)


def _not_in(c: Certificate, problem: Problem) -> str:
    """Why its plane and weights do not prove its interval."""
    few = problem.storage.entries <= MOST_IN_FRACTIONS
    # with so much room that weights which follow from exact scores prove it, too
    *_, found = proved(c, problem, CLAIM if few else 1.0)
    lower, upper = c.lower or 0.0, math.inf if c.upper is None else c.upper
    if few and not claims(c, found) and lower <= found.upper and upper >= found.lower:
        return _in_fractions(c, problem)
    if lower > found.lower:
        return f"its lower bound {c.lower!r} is above {found.lower!r}, which is what w and the weights prove"
    return "" if upper >= found.upper else f"its upper bound {c.upper!r} is below {found.upper!r}, which is what w proves"


def _in_fractions(c: Certificate, problem: Problem) -> str:
    """Why the standalone checker, which rounds nothing, does not accept an interval that enclosures leave open."""
    X = problem.X
    rows = [dict(zip(*(part.tolist() for part in row), strict=True)) for _, *row in X.storage.each_row(np.arange(X.n))]
    which = problem.which_for(c.classes) if c.several else (problem.signs_for(c.classes) > 0).astype(np.intp)
    about = json.loads(replace(c, dropped=(), about=None).to_json())
    accepted, reason = standalone.check(about, rows, [c.classes[k] for k in which.tolist()])
    return "" if accepted else reason


def _least(c: Certificate) -> str:
    what, C = str(c.loss).replace("_", " "), "?" if c.C is None else format(c.C, ".6g")
    return f"the least value of the {what} objective with C = {C}{_INTERCEPTS[c.intercept]}{_weighted_rows(c)} is {_interval(c)}"


def _interval(c: Certificate) -> str:
    """The ends in decimal digits, rounded so that what is said stays true."""
    ends = []
    for value, none, rounding in ((c.lower, 0.0, decimal.ROUND_FLOOR), (c.upper, math.inf, decimal.ROUND_CEILING)):
        rounded = decimal.Context(prec=SHOWN_DIGITS, rounding=rounding).plus(decimal.Decimal(none if value is None else value))
        ends.append(f"{float(rounded):.{SHOWN_DIGITS}g}".replace("inf", "infinity"))
    return f"between {ends[0]} and {ends[1]}"


# What is said of planes whose b is not free.
_INTERCEPTS = {"free": "", "none": " without intercept", "penalized": " with a penalized intercept"}


def _largest(c: Certificate) -> str:
    """The margin in question: what differs from the hard margin in the 2-norm with a free intercept is named."""
    soft = "" if c.nu is None else f" (soft, nu = {c.nu:.6g})"
    norm = "" if c.norm == 2 else f" in the {c.norm:g}-norm"
    noise = f" under perturbations of size {c.robust:.6g} in the {c.robust_norm:g}-norm" if c.robust > 0 else ""
    return f"largest margin{soft}{norm}{noise}{_INTERCEPTS[c.intercept]}{_weighted_rows(c)}"


def _weighted_rows(c: Certificate) -> str:
    """That rows have weights, and how many have none."""
    if c.sample_weight is None and c.class_weight is None and c.weights_hash is None:
        return ""
    zeros = sum(not weight for weight in c.sample_weight or ())
    return " of weighted rows" + (f" ({zeros} of them of weight 0)" if zeros else "")


def _separable(c: Certificate) -> str:
    bracket = "" if c.lower is None or c.upper is None else f", with a {_largest(c)} {_interval(c)}"
    return f"the data is separable{bracket}" + ("" if bracket or c.intercept != "none" else _INTERCEPTS["none"])


def _inseparable(c: Certificate) -> str:
    through = _INTERCEPTS["none"] if c.intercept == "none" else ""
    return f"the data is not separable{through}: {len(c.rows)} rows suffice to show it"


def _weakly_separable(c: Certificate) -> str:
    plane = "plane through the origin" if c.intercept == "none" else "plane"
    return f"the data is quasi-completely separated: some {plane} separates it weakly, and none strictly"


def _overlapping(c: Certificate) -> str:
    plane = "plane through the origin" if c.intercept == "none" else "plane"
    return f"the data overlaps: no {plane} separates it, not even weakly"


CHECKS: dict[Kind, Checking] = {
    "separator": Checking(_separable, _margin),
    "bracket": Checking(lambda c: f"the {_largest(c)} is {_interval(c)}", _margin),
    "witness": Checking(_inseparable, _witness),
    "quasi-separation": Checking(_weakly_separable, _quasi_separation),
    "overlap": Checking(_overlapping, _overlap),
    "verified-witness": Checking(_inseparable, _verified),
    "verified-quasi-separation": Checking(_weakly_separable, _verified),
    "verified-overlap": Checking(_overlapping, _verified),
    "optimum": Checking(_least, _optimum),
}
