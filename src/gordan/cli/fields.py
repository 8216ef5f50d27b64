"""The fields of `--json`: those of each command are declared here, by the names of the attributes that they come from."""

from __future__ import annotations

from typing import Any

from gordan.verdicts import Witness

FIELDS = {
    "separate": "status separable proved margin w b witness classes n d names seconds interrupted certificate",
    "diagnose": "kind proved model columns rows direction dependent open explanation event seconds interrupted certificate",
    "fit": "model classes interrupted planes",
    "planes": "positive against status margin gap nu separable loss objective n_iter passes seconds resumed witness",
    "least losses": "positive against status objective gap radius n_iter passes seconds resumed",
    "predict": "labels n right accuracy",
    "verify": "accepted checks",
    "checks": "accepted claim reason positive against other_data other_names",
    "play": "method form norm n d scale status bracket guarantee columns",
    "convert": "folder kind n d entries kept already",
    "convert --check": "accepted reason bytes",
    "demo": "setosa virginica rash methods picture",
    "setosa": "status margin w b",
    "virginica": "status witness accepted",
    "rash": "kind columns rows",
    "methods": "method bracket passes",
    "witness": "rows weights exact",
}
MISSING = object()


def fields(of: str, *sources: object, **given: Any) -> dict[str, Any]:
    """The fields of a command, or of a part of its answer: as they are given, else from the first source that has them."""
    content: dict[str, Any] = {}
    for name in FIELDS[of].split():
        value = given.get(name, MISSING)
        for source in sources:
            value = getattr(source, name, MISSING) if value is MISSING else value
        if value is MISSING:
            raise AttributeError(f"nothing says what {name!r} of {of!r} is")
        content[name] = _witness(value) if isinstance(value, Witness) else value
    return content


def _witness(witness: Witness) -> dict[str, Any]:
    """Weights as hexadecimal text, since they may have thousands of digits."""
    weights = [hex(int(weight)) for weight in witness.weights] if witness.exact else [*witness.weights]
    return fields("witness", witness, weights=weights)
