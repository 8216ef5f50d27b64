"""The certificates in a file, and the labels that each of them is about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gordan.cli.data import Data
from gordan.errors import InputError

if TYPE_CHECKING:
    from gordan.certificates import Certificate

MODEL = b"\x89GORDAN\n"


@dataclass(frozen=True)
class Claim:
    """A certificate; `positive` is its class if it is about one class of a model against the rest."""

    certificate: Certificate
    positive: Any = None

    def target(self, data: Data) -> Any:
        """y, as the certificate means it."""
        if self.positive is not None:
            return data.labels == self.positive
        if data.positive is None and {*self.certificate.classes} == {False, True} and data.y.dtype.kind != "b":
            if {*data.y.tolist()} != {0, 1}:
                raise InputError("the certificate is about one class against the rest; say which with --positive CLASS")
            return data.y.astype(bool)
        return data.y

    def other_data(self, data: Data) -> bool:
        """Whether the hash in the certificate is that of other data."""
        from gordan.certificates.problem import Problem

        stated = self.certificate.data_hash
        return stated is not None and stated != Problem.of(data.X, self.target(data)).hash(self.certificate.intercept)


def claims_in(path: Path) -> list[Claim]:
    """The certificate in a JSON file, or all those in a model file."""
    from gordan.certificates import Certificate
    from gordan.io import Model

    with path.open("rb") as file:
        if file.read(len(MODEL)) == MODEL:
            model = Model.load(path)
            if model.certificates is None:
                raise InputError(f"{path} is a model without certificates; fit it again without --no-certificates")
            texts = [Certificate.from_json(text) for text in model.certificates]
            several = model.kind == "one-vs-rest"
            return [Claim(text, model.classes[k] if several else None) for k, text in enumerate(texts)]
    try:
        return [Claim(Certificate.from_json(path.read_bytes()))]
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
