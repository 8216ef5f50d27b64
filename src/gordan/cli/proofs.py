"""The commands `gordan verify`, which checks certificates, and `gordan checker`, which prints a standalone checker."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import gordan
from gordan import schema
from gordan.arrays import Array
from gordan.certificates import standalone
from gordan.certificates.data import About
from gordan.certificates.regions import posed
from gordan.certificates.verify import (
    MAX_NAMES,
    compared_weights,
    design_hint,
    other_label,
    other_names,
    provenance,
    verified_for,
)
from gordan.cli.answers import headline, print_json, print_lines
from gordan.cli.commands import ANSWERED, NO, command
from gordan.cli.data import Data, DataOptions, TooManyClasses, class_named, local_copy, model_in
from gordan.cli.fields import fields
from gordan.cli.options import Json, OnMissing, Weight
from gordan.cli.progress import Watch
from gordan.errors import InputError
from gordan.estimators.least_loss import LeastPlane, least_planes
from gordan.io import Model
from gordan.io.container import is_container
from gordan.io.delimited import DELIMITERS
from gordan.io.model import pairs
from gordan.io.reading import format_of, names_in, resolve_columns
from gordan.io.table import Dialect, Request
from gordan.rows import stored


@command(
    "gordan separate data.csv --certificate proof.json",
    "gordan verify proof.json data.csv",
    "gordan verify model.gordan data.csv",
    fields={"verify": "accepted checks", "checks": "accepted claim reason positive against other_data other_names weights_match"},
)
def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="A certificate, or a model file with certificates.")],
    source: DataOptions,
    weight: Weight = None,
    as_json: Json = False,
) -> int:
    """Check a certificate against the data: everything is derived again, in exact arithmetic where floats do not decide.

    The label column, the class, the columns and the weights are those that the certificate names, if the file has them and no
    option says otherwise.

    Exit code 0: accepted. 1: rejected, because the claim does not follow or the data has other classes. 2: a file cannot be
    read, a label is missing, or there are too many classes. `check.py` (see `gordan checker`) has the same exit codes.
    """
    with Watch(f"reading {source.file}") as watch:
        claims, asked = claims_in(certificate), source.drop or []
        source, weight = with_stated_columns(source, weight, claims[0].certificate)
        data = _data_for(claims, source, weight)
        model = Model.load(certificate) if is_container(certificate) else None
        data = data if model is None else replace(data, X=model.scaled(data.X))
        watch.about("checking")
        checked = [Checked.of(claim, data) for claim in claims]
    accepted = all(each.check for each in checked)
    remarks = _remarks([name for name in source.drop or () if name not in asked], model)
    if as_json:
        checks = [fields("checks", each.check, each.claim, each) for each in checked]
        print_json(fields("verify", accepted=accepted, checks=checks), (*data.notices, *remarks))
    else:
        for each, after in zip(checked, [*checked[1:], None], strict=True):
            each.print()
            *notes, last = each.notes
            if after is None or after.notes != each.notes:  # once for planes of one model
                print_lines([f"  {note}" for note in (*notes, *remarks, last)])
    return ANSWERED if accepted else NO


def _data_for(claims: Sequence[Claim], source: DataOptions, weight: str | None) -> Data:
    """Read the data for these claims; an error says what to do about too many classes or renamed columns."""
    several = any(claim.of_several for claim in claims)
    if source.positive is not None and any(claim.names_its_classes for claim in claims):
        raise InputError("the certificate names its classes; leave out --positive")
    marked = claims[0].certificate.classes == (-1, 1)  # then label 0 may mark rows that are left out
    try:
        data = source.read(classes=(1, math.inf if several else 3 if marked else 2), weight=weight)
        if marked and not several and len(data.classes) > 2 and {*data.classes} != {-1, 0, 1}:
            raise TooManyClasses(f"{data.path} has {len(data.classes)} classes; pass a file with two classes")
        return data
    except TooManyClasses as error:
        names = " and ".join(map(str, claims[0].certificate.classes))
        raise InputError(f"{error}, or a file with rows of {names} only, if the certificate is about these") from None
    except InputError as error:
        certificate = claims[0].certificate
        renamed = other_names(certificate, names_in(source.file, Dialect(**source.dialect)))
        hint = design_hint(certificate) if renamed else ""
        raise InputError(f"{error}; {hint}" if hint else str(error)) from None


def _remarks(unasked: Sequence[Any], model: Model | None) -> list[str]:
    """Return remarks about columns that were left out without being asked for, and about the scaling of the model."""
    names = [repr(name) for name in unasked if isinstance(name, str)]
    shown = f"{', '.join(names[:MAX_NAMES])}{', ...' if len(names) > MAX_NAMES else ''}"
    remarks = [f"{standalone.BESIDE}: {shown}"] if names else []
    if model is not None and model.scaling is not None:
        remarks.append("the claim is about standardized columns; those of the file were scaled as they were for the fit")
    return remarks


@command("gordan checker > check.py", "python3 check.py proof.json data.csv")
def checker() -> int:
    """Print a standalone checker, one Python file without dependencies, which checks certificates without gordan.

    It shares no code with the rest of gordan, reads CSV, TSV, svmlight and .npy files, and uses exact arithmetic.
    """
    print_lines([Path(standalone.__file__).read_text(encoding="utf-8").rstrip("\n")])
    return ANSWERED


@dataclass(frozen=True)
class Claim:
    """A certificate and what a model file says about its plane.

    If the plane is one of several, `positive` is the class on its positive side and `against` the other one (None: all others).
    `least` is what the model states about a plane of least loss and the exact minimizer, and `disagreement` is how the model
    contradicts the certificate, if it does. `factors` are the class weights of a class against all others, by label; a class
    that is not among them was left out, because it had no weight.
    """

    certificate: gordan.Certificate
    positive: Any = None
    against: Any = None
    least: LeastPlane | None = None
    disagreement: str = ""
    factors: Mapping[Any, float] | None = None

    def unproved_statement(self, certificate: gordan.Certificate, problem: Any) -> str:
        """Return why a statement of the model does not follow from the certificate; empty if all statements follow."""
        if self.disagreement or self.least is None:
            return self.disagreement
        _, w, b = posed(certificate, problem)
        same = np.array_equal(w, self.least.w) and bool(np.all(b == self.least.b))
        if not same or self.least.objective != (certificate.lower, certificate.upper):
            return "the model has another plane or interval than its certificate"
        return "" if self.least.place is None else self.least.place.unproved(certificate, problem)

    @property
    def of_several(self) -> bool:
        """Whether the data may have more than two classes."""
        certificate = self.certificate
        one = self.positive is not None or (certificate.about is not None and certificate.about.positive is not None)
        return one or certificate.several or certificate.model != "logistic"

    @property
    def names_its_classes(self) -> bool:
        """Whether the certificate is about classes that it names, and not about one class against the rest."""
        truths = all(isinstance(label, bool) for label in self.certificate.classes)
        return self.positive is None and not (truths and self.certificate.model == "logistic")

    @property
    def prefix(self) -> str:
        """The classes of the plane as the beginning of a sentence, if the model has several planes."""
        return (
            "" if self.positive is None else f"{self.positive} against {'the rest' if self.against is None else self.against}: "
        )

    def data(self, data: Data) -> tuple[Any, Any]:
        """Return X and y as the certificate means them, for a pair of classes only their rows."""
        if self.against is not None:
            rows = np.flatnonzero((data.labels == self.positive) | (data.labels == self.against))
            if len(rows) == 0:
                raise InputError(f"{data.path} has no rows of {self.positive} or {self.against}, which the model is about")
            return stored(data.X).part(rows), data.labels[rows]
        if self.positive is not None:
            return data.X, data.labels == self.positive
        if self.certificate.model != "logistic":
            return data.X, data.y
        return data.X, self._one_class(data) if self._is_one_class(data) else data.y

    def labels_and_weights(self, data: Data) -> tuple[Any, Any]:
        """Return the labels in the file and the weights of the rows that the certificate is about; None without weights."""
        if self.against is None:
            return data.labels, data.weights
        own = (data.labels == self.positive) | (data.labels == self.against)
        return data.labels[own], None if data.weights is None else data.weights[own]

    def needed_weights(self, data: Data) -> Any:
        """Return the weights that the certificate lacks: those of the data, times class weights for which it has no place."""
        certificate, (labels, weights) = self.certificate, self.labels_and_weights(data)
        if certificate.weights_hash is None:
            return weights if "zero-weight" in certificate.dropped else None  # the others are in it, and are compared
        if self.factors is None:
            return weights
        found, which = np.unique(labels, return_inverse=True)
        products = np.array([self.factors.get(label, 0.0) for label in found.tolist()])[which]
        return products if weights is None else weights * products

    def _is_one_class(self, data: Data) -> bool:
        """Return whether the claim is about one class against the rest, and y still has the labels of the file."""
        truths = all(isinstance(label, bool) for label in self.certificate.classes)
        return data.positive is None and truths and data.y.dtype.kind != "b" and self.certificate.model == "logistic"

    def numbered(self, data: Data) -> str | None:
        """Return the class that the certificate names if the labels of the data are 0 and 1 instead, else None."""
        stated = (self.certificate.about or About()).positive
        numbers = self.positive is None and self._is_one_class(data) and {*data.y.tolist()} == {0, 1}
        return stated if numbers and stated not in ("0", "1") else None

    def _one_class(self, data: Data) -> Array:
        """Return which labels are the class that the certificate names, or 1 if they are 0 and 1."""
        about, numbers = self.certificate.about or About(), {*data.y.tolist()} == {0, 1}
        stated = about.positive if not numbers or about.positive in ("0", "1") else "1"
        if stated is None:
            raise InputError("the certificate is about one class against the rest; say which with --positive CLASS")
        return np.asarray(data.y == class_named(stated, [*data.classes], data.path))


def class_pairs(model: Model) -> list[tuple[Any, Any]]:
    """Return the class on the positive side of each plane and the one against it; None for all others, or for two classes."""
    if model.kind == "one-vs-one":
        return [(model.classes[j], model.classes[i]) for i, j in pairs(len(model.classes))]
    return [(label, None) for label in model.classes] if model.kind == "one-vs-rest" else [(None, None)]


def claims_in(path: Path) -> list[Claim]:
    """Return the claim of a certificate file, or all claims of a model file."""
    if is_container(path):
        model = model_in(path)
        if model.certificates is None:
            raise InputError(f"{path} is a model without certificates; fit it again without --no-certificates")
        certificates = [gordan.Certificate.from_json(text) for text in model.certificates]
        by_loss = model.estimator == "LinearClassifier"
        planes: Sequence[LeastPlane | None] = least_planes(model) if by_loss else [None for _ in certificates]
        claims, factors = enumerate(zip(certificates, class_pairs(model), planes, strict=True)), None
        if model.kind == "one-vs-rest" and model.options is not None and model.options.class_weight is not None:
            factors = dict(zip(model.classes, model.options.class_weight, strict=True))
        return [Claim(own, *side, least, disagreement(model, own, i), factors) for i, (own, side, least) in claims]
    try:
        content = path.read_bytes()
        if not content.lstrip().startswith(b"["):
            return [Claim(gordan.Certificate.from_json(content))]
        return _claims_in_list(content)
    except InputError as error:
        hint = "" if path.suffix == ".json" else "; pass the certificate or model first, then the data"
        raise InputError(f"{path}: {error}{hint}") from None


def _claims_in_list(content: bytes) -> list[Claim]:
    """Return the claims of a list of certificates, which `gordan fit --certificate` writes.

    As in a model file, one of several that names two classes is about their rows alone.
    """
    try:
        listed = [gordan.Certificate.from_json(json.dumps(each)) for each in schema.strict_json(content)]
    except (ValueError, TypeError, RecursionError) as error:
        raise error if isinstance(error, InputError) else InputError(f"this is not JSON: {error}") from None
    if not listed:
        raise InputError("there are no certificates in it")
    claims = [Claim(own) for own in listed]
    if len(claims) == 1:
        return claims
    pairs_of = [own.model == "logistic" and not own.several and not isinstance(own.classes[0], bool) for own in listed]
    return [
        replace(claim, positive=claim.certificate.classes[1], against=claim.certificate.classes[0]) if pair else claim
        for claim, pair in zip(claims, pairs_of, strict=True)
    ]


def disagreement(model: Model, certificate: gordan.Certificate, i: int) -> str:
    """Return how a model contradicts the certificate of its plane i; empty if they agree."""
    first, second = pairs(len(model.classes))[i] if model.kind == "one-vs-one" else (0, -1)
    own = model.classes if model.kind == "multinomial" else (model.classes[first], model.classes[second])
    if model.kind != "one-vs-rest" and tuple(own) != certificate.classes:
        return "the model has other classes than its certificate, or in another order"
    if certificate.w is None or model.kind == "multinomial":
        return ""
    same = np.array_equal(model.coef[i], certificate.w) and model.intercept[i] == (certificate.b or 0.0)
    bracket = certificate.kind != "bracket" or tuple(model.margins[i].tolist()) == (certificate.lower, certificate.upper)
    return "" if same and bracket else "the model has another plane or interval than its certificate"


def with_stated_columns(
    source: DataOptions, weight: str | None, certificate: gordan.Certificate
) -> tuple[DataOptions, str | None]:
    """Return the source and its column of weights, completed by the columns that the certificate names and the file has."""
    about, path = certificate.about or About(), local_copy(source.file)
    names = names_in(path, Dialect(**source.dialect)) or []
    label, weight_column = (name if names.count(name or "") == 1 else None for name in (about.label, about.weight))
    label = source.label or label
    weight = weight or (weight_column if weight_column not in _columns_taken(source, label, about, names) else None)
    if "missing" in certificate.dropped and format_of(path) in (*DELIMITERS, "parquet"):
        source = replace(source, missing=OnMissing.DROP)
    if not source.drop and not source.keep_index:
        others = extra_columns(names, about.columns or (), {weight, label or "".join(names[-1:])})
        source = replace(source, drop=_without_index(others, replace(source, file=path, label=label)))
    return replace(source, file=path, label=label), weight


def _columns_taken(source: DataOptions, label: str | None, about: About, names: list[str]) -> set[str]:
    """Return the columns that cannot be the weights that a certificate names: features, the label, and those to be dropped."""
    places = {str(at): name for j, name in enumerate(names) for at in (j, j - len(names))}
    dropped = {column if column in names else places.get(column, "") for column in map(str, source.drop or ())}
    at = "-1" if label is None else str(label)
    return {*(about.columns or ()), at if at in names else places.get(at, ""), *dropped}


def extra_columns(names: list[str], columns: Sequence[str], others: set[str | None]) -> list[Any]:
    """Return the columns of a file beside those that a certificate names and the `others`; none if the file lacks one of those.

    A column is given by its name, or by its position if the name is empty or not unique.
    """
    known = columns and all(names.count(name) == 1 for name in columns)
    gone = [(j, name) for j, name in enumerate(names) if known and name not in {*columns, *others}]
    return [name if name.strip() and names.count(name) == 1 else j for j, name in gone]


def _without_index(columns: list[Any], source: DataOptions) -> list[Any]:
    """Return these columns without the index of the file, which is left out with a notice when the file is read."""
    named = tuple(column for column in columns if isinstance(column, str))
    if len(named) == len(columns):
        return columns
    wanted, _ = resolve_columns(
        source.file, format_of(source.file), Request(source.label, drop=named, dialect=Dialect(**source.dialect))
    )
    return [column for column in columns if column in named or column not in wanted.drop]


@dataclass(frozen=True)
class Checked:
    """The result of checking a claim.

    `renamed` are the columns with other names than in the data that it was made for, `label` is the name of the label column,
    `remarks` are about its classes, and `compared` is how its weights relate to those of the data (`compared_weights`).
    """

    claim: Claim
    check: gordan.Check
    renamed: tuple[str, ...]
    label: str | None = None
    remarks: tuple[str, ...] = ()
    compared: tuple[str, str] = ("", "")

    @staticmethod
    def of(claim: Claim, data: Data) -> Checked:
        """Check the claim against the data."""
        X, y = claim.data(data)
        certificate, missing = claim.certificate, len(data.left_out)
        if claim.against is not None:  # some rows of a storage, which have no missing values
            certificate, missing = replace(certificate, dropped=()), 0
        given, named = claim.needed_weights(data), data.named
        check = verified_for(certificate, X, y, given, claim.unproved_statement, missing=missing, weight=named.weight)
        remarks = (standalone.NUMBERED.format(claim.numbered(data)),) if claim.numbered(data) else ()
        labels, weights = claim.labels_and_weights(data)
        compared = compared_weights(certificate, y, weights, data.named.weight, labels)
        return Checked(claim, check, other_names(certificate, data.names), data.named.outcome, remarks, compared)

    @property
    def other_data(self) -> bool:
        """Whether the certificate says that it was made for other data, or its weights are not those of the data."""
        return self.check.same_data is False or self.weights_match == "other"

    @property
    def weights_match(self) -> str | None:
        """How the weights of the claim relate to those of the data, in one word; None if it does not depend on weights."""
        return self.compared[0] or None

    @property
    def other_names(self) -> bool:
        """Whether columns, or the label column, have other names than in the data that it was made for."""
        return bool(self.renamed) or other_label(self.claim.certificate, self.label)

    @property
    def notes(self) -> tuple[str, ...]:
        """The lines to print below the claim."""
        certificate = self.claim.certificate
        if self.claim.positive is not None and certificate.about is not None:  # the class is in the first line already
            certificate = replace(certificate, about=replace(certificate.about, positive=None))
        check, classes = self.check, self.claim.positive is None
        about = certificate, self.renamed, check.same_data, check.accepted
        return provenance(*about, label=self.label, more=self.remarks, classes=classes, weights=self.compared)

    def print(self) -> None:
        """Print the first line of the answer."""
        if self.check:
            headline(f"accepted: {self.claim.prefix}{self.check.claim}", True)
        else:
            words = f"rejected: {self.claim.prefix}{self.check.reason} (it claims that {self.check.claim})"
            headline(standalone.cut(words), False)
