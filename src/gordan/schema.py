"""Declarations of the fields of a file, each made once, from which checking, writing and reading follow.

Certificates, model files, traces, checkpoints and the manifests of converted folders are declared with these. JSON is read
strictly, and a number has one spelling: floats that must be restored exactly are text in the format of `float.hex`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from types import NoneType
from typing import Any, NamedTuple

import numpy as np


class Form(NamedTuple):
    """The declaration of a field: its types, a description in words, how to write and read it, and further conditions.

    `read` raises a ValueError if the text is not valid.
    """

    types: tuple[type, ...]
    words: str
    write: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], Any] = lambda value: value
    holds: Callable[[Any], bool] = lambda value: True

    def allows(self, value: Any) -> bool:
        """Return whether this is a valid value."""
        return type(value) in self.types and self.holds(value)

    def taken(self, plain: Any, name: str) -> Any:
        """Return the value that was written as `plain`, or raise a ValueError that mentions `name`."""
        value = self.read(plain)
        if not self.allows(value):
            raise ValueError(f"{name} is {self.words}, not {plain!r:.60}")
        return value


def optional(form: Form) -> Form:
    """Return the declaration of a field that may also be None."""
    return Form(
        (*form.types, NoneType),
        f"None or {form.words}",
        lambda value: None if value is None else form.write(value),
        lambda plain: None if plain is None else form.read(plain),
        lambda value: value is None or form.holds(value),
    )


def each(form: Form, words: str, length: int | None = None) -> Form:
    """Return the declaration of a tuple of such values, which is a list in a file."""
    return Form(
        (tuple,),
        words,
        lambda values: [form.write(value) for value in values],
        lambda plain: tuple(form.read(item) for item in listed(plain, length)),
        lambda values: length in (None, len(values)) and all(map(form.allows, values)),
    )


def record(kind: type, words: str, **parts: Form) -> Form:
    """Return the declaration of an object with these attributes, all of which are in the file."""
    return Form(
        (kind,),
        words,
        lambda value: {name: form.write(getattr(value, name)) for name, form in parts.items()},
        lambda plain: kind(**fields(plain, parts, words)),
        lambda value: all(form.allows(getattr(value, name)) for name, form in parts.items()),
    )


def fields(plain: Any, parts: Mapping[str, Form], words: str) -> dict[str, Any]:
    """Return the values of a JSON object that has exactly these fields, or raise a ValueError."""
    require_fields(plain, parts, words)
    return {name: form.taken(plain[name], name) for name, form in parts.items()}


def require_fields(plain: Any, names: Collection[str], words: str) -> None:
    """Raise a ValueError that names the fields that are missing or unknown, unless this is a JSON object with exactly these."""
    if type(plain) is not dict:
        raise ValueError(f"its fields are not those of {words}: {str(plain)[:40]!r} is not an object")
    missing, unknown = sorted({*names} - {*plain}), sorted({*plain} - {*names})
    if missing or unknown:
        raise ValueError(f"its fields are not those of {words}: missing fields: {missing}; unknown fields: {str(unknown)[:200]}")


def mapping(words: str, parts: Mapping[str, Form]) -> Form:
    """Return the declaration of a dict with exactly these fields; it is for reading only."""
    return Form((dict,), words, read=lambda plain: fields(plain, parts, words))


def choice(*words: str) -> Form:
    """Return the declaration of a text that is one of these words."""
    return Form((str,), f"one of {', '.join(words)}", str, text, lambda value: value in words)


# ---- single values ----------------------------------------------------------------------------------------------------


def text(value: Any) -> str:
    """Return the value if it is text, or raise a ValueError."""
    if type(value) is not str:
        raise ValueError(f"text is expected in place of {str(value)[:40]!r}")
    return value


def count(value: Any) -> int:
    """Return the value if it is a nonnegative integer, or raise a ValueError."""
    if type(value) is not int or value < 0:
        raise ValueError(f"a count is expected in place of {str(value)[:40]!r}")
    return value


def whole(value: Any) -> int:
    """Return the integer that `hex` writes as this text, or raise a ValueError for any other spelling."""
    number = int(text(value), 16)
    if hex(number) != value:
        raise ValueError(f"{value[:40]!r} is not a whole number as hex() writes it")
    return number


def read_hex(value: Any) -> float:
    """Return the float that `float.hex` writes as this text, or raise a ValueError for any other spelling and for NaN."""
    number = float.fromhex(text(value))
    if number.hex() != value or math.isnan(number):
        raise ValueError(f"{value[:40]!r} is not a number as float.hex writes it")
    return number


def finite(value: Any) -> float:
    """Return the same if it is finite, or raise a ValueError."""
    number = read_hex(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is not finite")
    return number


def listed(value: Any, length: int | None = None) -> list[Any]:
    """Return the value if it is a list (of this length), or raise a ValueError."""
    if type(value) is not list or length not in (None, len(value)):
        raise ValueError(f"a list{'' if length is None else f' of {length}'} is expected in place of {str(value)[:40]!r}")
    return value


def _decimal(value: Any) -> Any:
    return float(value) if value in ("inf", "-inf", "nan") else value


TEXT = Form((str,), "text", str, text)
FLAG = Form((bool,), "true or false")
COUNT = Form((int,), "whole numbers", int, count)
WHOLE = Form((int,), "whole numbers", hex, whole)
REAL = Form((float, int, np.float64), "real numbers", lambda value: float(value).hex(), finite)
REAL_OR_INF = REAL._replace(read=lambda value: math.inf if value == "inf" else finite(value))
FLOAT = Form((float,), "a float", float.hex, read_hex)
# A JSON number, or text for infinity and NaN, which JSON does not have.
DECIMAL = Form((float,), "a number", lambda value: value if math.isfinite(value) else str(value), _decimal)


# ---- JSON -------------------------------------------------------------------------------------------------------------


def strict_json(content: str | bytes) -> Any:
    """Parse JSON in UTF-8; raise a ValueError if a name occurs twice, a number is not finite, or 0 is written "-0"."""
    content = content if isinstance(content, str) else bytes(content).decode()
    return json.loads(content, object_pairs_hook=_once, parse_constant=_refuse, parse_float=_json_float, parse_int=_json_int)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _refuse(spelling: str) -> Any:
    raise ValueError(f"{spelling} is not valid JSON")


def _json_int(spelling: str) -> int:
    return int(spelling) if spelling != "-0" else _refuse(spelling)


def _json_float(spelling: str) -> float:
    value = float(spelling)
    if not math.isfinite(value):
        raise ValueError(f"{spelling} is not finite")
    return value
