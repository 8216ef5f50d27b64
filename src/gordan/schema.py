"""What the parts of a file may hold: each is declared once, and what is checked, written and read follows from that.

Certificates, model files, traces and the heads of checkpoints and folders are made of these. JSON is read strictly, and a number
has one spelling: floats that must come back exactly are text as `float.hex` writes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, NamedTuple

import numpy as np


class Form(NamedTuple):
    """The types that a value may have and what it is in words; how it is written and read (a ValueError says what is wrong); and
    what else must hold of it."""

    types: tuple[type, ...]
    words: str
    write: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], Any] = lambda value: value
    holds: Callable[[Any], bool] = lambda value: True

    def allows(self, value: Any) -> bool:
        """Whether this may be the value."""
        return type(value) in self.types and self.holds(value)

    def taken(self, plain: Any, name: str) -> Any:
        """The value that is written so; a ValueError names the part where it is not one."""
        value = self.read(plain)
        if not self.allows(value):
            raise ValueError(f"{name} is {self.words}, not {plain!r:.60}")
        return value


def optional(form: Form) -> Form:
    """The same, or None."""
    return Form(
        (*form.types, NoneType),
        f"None or {form.words}",
        lambda value: None if value is None else form.write(value),
        lambda plain: None if plain is None else form.read(plain),
        lambda value: value is None or form.holds(value),
    )


def each(form: Form, words: str, length: int | None = None) -> Form:
    """Several of them: a tuple, which is a list in a file."""
    return Form(
        (tuple,),
        words,
        lambda values: [form.write(value) for value in values],
        lambda plain: tuple(form.read(item) for item in listed(plain, length)),
        lambda values: length in (None, len(values)) and all(map(form.allows, values)),
    )


def record(kind: type, words: str, **parts: Form) -> Form:
    """An object with these parts, all of which are in the file."""
    return Form(
        (kind,),
        words,
        lambda value: {name: form.write(getattr(value, name)) for name, form in parts.items()},
        lambda plain: kind(**fields(plain, parts, words)),
        lambda value: all(form.allows(getattr(value, name)) for name, form in parts.items()),
    )


def fields(plain: Any, parts: Mapping[str, Form], words: str) -> dict[str, Any]:
    """The values of a JSON object that has just these parts."""
    if type(plain) is not dict or set(plain) != set(parts):
        raise ValueError(f"its fields are not those of {words}")
    return {name: form.taken(plain[name], name) for name, form in parts.items()}


def choice(*words: str) -> Form:
    """One of these words."""
    return Form((str,), f"one of {', '.join(words)}", str, text, lambda value: value in words)


# ---- single values ----------------------------------------------------------------------------------------------------


def text(value: Any) -> str:
    """Text, or a ValueError."""
    if type(value) is not str:
        raise ValueError(f"text is expected in place of {str(value)[:40]!r}")
    return value


def count(value: Any) -> int:
    """A whole number that is not negative, or a ValueError."""
    if type(value) is not int or value < 0:
        raise ValueError(f"a count is expected in place of {str(value)[:40]!r}")
    return value


def whole(value: Any) -> int:
    """The whole number that `hex` writes as this text; a ValueError for any other spelling."""
    number = int(text(value), 16)
    if hex(number) != value:
        raise ValueError(f"{value[:40]!r} is not a whole number as hex() writes it")
    return number


def read_hex(value: Any) -> float:
    """The float that `float.hex` writes as this text; a ValueError for any other spelling of it, and for NaN."""
    number = float.fromhex(text(value))
    if number.hex() != value or math.isnan(number):
        raise ValueError(f"{value[:40]!r} is not a number as float.hex writes it")
    return number


def finite(value: Any) -> float:
    """The same, if it is finite."""
    number = read_hex(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is not finite")
    return number


def listed(value: Any, length: int | None = None) -> list[Any]:
    """A list, or a ValueError."""
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
# As JSON writes it, which has no infinity: that is text.
DECIMAL = Form((float,), "a number", lambda value: value if math.isfinite(value) else str(value), _decimal)


# ---- JSON -------------------------------------------------------------------------------------------------------------


def strict_json(content: str | bytes) -> Any:
    """JSON in UTF-8 in which no name is given twice, every number is finite and 0 is not written "-0"; a ValueError otherwise."""
    content = content if isinstance(content, str) else bytes(content).decode()
    return json.loads(content, object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite, parse_int=_whole)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _refuse(spelling: str) -> Any:
    raise ValueError(f"{spelling} is no JSON")


def _whole(spelling: str) -> int:
    return int(spelling) if spelling != "-0" else _refuse(spelling)


def _finite(spelling: str) -> float:
    value = float(spelling)
    if not math.isfinite(value):
        raise ValueError(f"{spelling} is not finite")
    return value
