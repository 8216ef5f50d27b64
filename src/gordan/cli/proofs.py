"""`gordan verify`: the certificates in a file, and the labels that each of them is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import gordan
from gordan.certificates import standalone
from gordan.certificates.data import About
from gordan.certificates.regions import posed
from gordan.certificates.verify import hash_for, verified_for
from gordan.cli.answers import headline, say, say_json, say_lines
from gordan.cli.commands import ANSWERED, NO, command
from gordan.cli.data import Data, Source
from gordan.cli.fields import fields
from gordan.cli.options import Json
from gordan.cli.progress import Watch
from gordan.errors import InputError
from gordan.estimators.least_loss import LeastPlane, least_planes
from gordan.io import Model
from gordan.io.container import is_container
from gordan.io.model import pairs
from gordan.rows import stored


@command(
    "gordan separate data.csv --certificate proof.json",
    "gordan verify proof.json data.csv",
    "gordan verify model.gordan data.csv",
)
def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="A certificate, or a model file with certificates in it.")],
    source: Source,
    as_json: Json = False,
) -> int:
    """Check a certificate against the data: everything is re-derived, in exact arithmetic where floats do not decide.

    Exit code 0: accepted. 1: rejected.
    """
    with Watch(f"reading {source.file}") as watch:
        claims = claims_in(certificate)
        several = any(claim.positive is not None or claim.certificate.several for claim in claims)
        data = source.read(multiclass=several or any(claim.certificate.model != "logistic" for claim in claims))
        watch.about("checking")
        checked = [Checked.of(claim, data) for claim in claims]
    accepted = all(each.check for each in checked)
    if as_json:
        checks = [fields("checks", each.check, each.claim, each) for each in checked]
        say_json(fields("verify", accepted=accepted, checks=checks), data.notices)
    else:
        for each in checked:
            each.tell()
    return ANSWERED if accepted else NO


@command("gordan checker > check.py", "python3 check.py proof.json data.csv")
def checker() -> int:
    """Print a checker in one file that needs nothing but Python: for people who are to check certificates without gordan.

    It shares no code with the rest of gordan, reads CSV, TSV, svmlight and .npy files, and computes in exact arithmetic.
    """
    say_lines([Path(standalone.__file__).read_text(encoding="utf-8").rstrip("\n")])
    return ANSWERED


@dataclass(frozen=True)
class Claim:
    """A certificate. If it is about one plane of a model for several classes, `positive` is the class on its positive side, and
    `against` the other one (None: all others). `least` is what a model says of the plane that it is about, and of the exact
    minimizer of its loss."""

    certificate: gordan.Certificate
    positive: Any = None
    against: Any = None
    least: LeastPlane | None = None

    def beyond(self, certificate: gordan.Certificate, problem: Any) -> str:
        """Why what the model says beside the certificate does not follow from it; empty if it does."""
        if self.least is None:
            return ""
        _, w, b = posed(certificate, problem)
        same = np.array_equal(w, self.least.w) and bool(np.all(b == self.least.b))
        if not same or self.least.objective != (certificate.lower, certificate.upper):
            return "the model has another plane or interval than its certificate"
        return "" if self.least.place is None else self.least.place.unproved(certificate, problem)

    @property
    def told(self) -> str:
        """What is against what, where that is to be said."""
        return (
            "" if self.positive is None else f"{self.positive} against {'the rest' if self.against is None else self.against}: "
        )

    def data(self, data: Data) -> tuple[Any, Any]:
        """X and y, as the certificate means them: for a pair of classes their own rows."""
        if self.against is not None:
            rows = np.flatnonzero((data.labels == self.positive) | (data.labels == self.against))
            if len(rows) == 0:
                raise InputError(f"{data.path} has no rows of {self.positive} or {self.against}, which the model is about")
            return stored(data.X).part(rows), data.labels[rows]
        if self.positive is not None:
            return data.X, data.labels == self.positive
        if self.certificate.model != "logistic":
            return data.X, data.y
        if data.positive is None and {*self.certificate.classes} == {False, True} and data.y.dtype.kind != "b":
            if {*data.y.tolist()} != {0, 1}:
                raise InputError("the certificate is about one class against the rest; say which with --positive CLASS")
            return data.X, data.y.astype(bool)
        return data.X, data.y


def sides(model: Model) -> list[tuple[Any, Any]]:
    """The class on the positive side of each plane and the one against it; None for all others, and where there are but two."""
    if model.kind == "one-vs-one":
        return [(model.classes[j], model.classes[i]) for i, j in pairs(len(model.classes))]
    return [(label, None) for label in model.classes] if model.kind == "one-vs-rest" else [(None, None)]


def claims_in(path: Path) -> list[Claim]:
    """The certificate in a JSON file, or all those in a model file."""
    if is_container(path):
        model = Model.load(path)
        if model.certificates is None:
            raise InputError(f"{path} is a model without certificates; fit it again without --no-certificates")
        certificates = [gordan.Certificate.from_json(text) for text in model.certificates]
        by_loss = model.estimator == "LinearClassifier"
        planes: Sequence[LeastPlane | None] = least_planes(model) if by_loss else [None for _ in certificates]
        claims = zip(certificates, sides(model), planes, strict=True)
        return [Claim(certificate, *side, least) for certificate, side, least in claims]
    try:
        return [Claim(gordan.Certificate.from_json(path.read_bytes()))]
    except InputError as error:
        raise InputError(f"{path}: {error}; pass the certificate or model first, then the data") from None


@dataclass(frozen=True)
class Checked:
    """What came of a claim. `other_data`: the hash in the certificate is that of other data; `other_names`: it names other
    columns than the file has."""

    claim: Claim
    check: gordan.Check
    other_data: bool
    other_names: bool

    @staticmethod
    def of(claim: Claim, data: Data) -> Checked:
        """Check the claim against the data."""
        (X, y), stated = claim.data(data), claim.certificate.data_hash
        check = verified_for(claim.certificate, X, y, more=claim.beyond)
        other = stated is not None and stated != hash_for(claim.certificate, X, y)
        names = None if claim.certificate.about is None else claim.certificate.about.columns
        named = None if data.names is None else tuple(data.names)
        return Checked(claim, check, other, names is not None and named is not None and names != named)

    def tell(self) -> None:
        """In words."""
        if self.check:
            headline(f"accepted: {self.claim.told}{self.check.claim}", True)
        else:
            headline(f"rejected: {self.claim.told}{self.check.reason} (it claims that {self.check.claim})", False)
        about = self.claim.certificate.about
        source = "" if about is None else _source(about)
        if source:
            say(f"  it was made for {source}")
        if self.other_names:
            say("  the columns of this file have other names than those it was made for")
        if self.other_data:
            say("  it was made for other data than this file" + (", but holds for this as well" if self.check else ""))


def _source(about: About) -> str:
    """What a certificate was made for, in words."""
    size = "" if about.size is None else f" ({about.size:,} bytes)"
    parts = (
        about.file and f"{about.file}{size}",
        about.label and f"the label column {about.label}",
        about.positive and f"the class {about.positive} against the rest",
    )
    return ", ".join(filter(None, parts)) if about.file else ""
