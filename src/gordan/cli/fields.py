"""Collect the fields of `--json` from the attributes of the same names; each command declares its own fields."""

from __future__ import annotations

from typing import Any

from gordan.verdicts import Witness

FIELDS = {"witness": "rows weights exact"}
MISSING = object()


def fields(of: str, *sources: object, **given: Any) -> dict[str, Any]:
    """Return the fields of a command, or of a part of its answer: as given, or from the first source that has them."""
    content: dict[str, Any] = {}
    for name in FIELDS[of].split():
        value = given.get(name, MISSING)
        for source in sources:
            value = getattr(source, name, MISSING) if value is MISSING else value
        if value is MISSING:
            raise AttributeError(f"no source has the field {name!r} of {of!r}")
        content[name] = _witness(value) if isinstance(value, Witness) else value
    return content


def _witness(witness: Witness) -> dict[str, Any]:
    """Return the fields of a witness, with exact weights as hexadecimal text, since they may have thousands of digits."""
    weights = [hex(int(weight)) for weight in witness.weights] if witness.exact else [*witness.weights]
    return fields("witness", witness, weights=weights)
