"""The fields of `--json`, by the names of the attributes that they come from: each command declares its own (`command`)."""

from __future__ import annotations

from typing import Any

from gordan.verdicts import Witness

FIELDS = {"witness": "rows weights exact"}
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
