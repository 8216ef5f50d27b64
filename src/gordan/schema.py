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

from gordan.errors import InputError


class FieldType(NamedTuple):
    """The declaration of a field: its types, a description, how to write and read it, and a further condition.

    `description` completes the sentence "it must be …". `read` raises a ValueError if the text is not valid. `holds` is asked
    about values of the right type only; `all_hold` is the same for many values at once, where that is faster.
    """

    types: tuple[type, ...]
    description: str
    write: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], Any] = lambda value: value
    holds: Callable[[Any], bool] | None = None
    all_hold: Callable[[Collection[Any]], bool] | None = None

    def allows(self, value: Any) -> bool:
        """Return whether this is a valid value."""
        return type(value) in self.types and (self.holds is None or self.holds(value))

    def allows_all(self, values: Collection[Any]) -> bool:
        """Return whether these are all valid values."""
        if not {*map(type, values)} <= {*self.types}:
            return False
        return self.all_hold(values) if self.all_hold else self.holds is None or all(map(self.holds, values))

    def require(self, value: Any, name: str) -> None:
        """Raise a ValueError that names the field, unless this is a valid value."""
        if not self.allows(value):
            raise ValueError(f"{name} is {_shown(value)}; it must be {self.description}")

    def parse(self, plain: Any, name: str) -> Any:
        """Return the value that was written as `plain`, or raise a ValueError that names the field."""
        try:
            value = self.read(plain)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name}: {error}") from None
        self.require(value, name)
        return value


def _shown(value: Any) -> str:
    """Return at most 60 characters of a value for a message, without writing out many of its entries."""
    try:
        shown = repr(value[:20] if isinstance(value, (str, bytes, tuple, list)) else value)
    except ValueError:  # integers of thousands of digits, which Python does not write in decimal
        return f"a {type(value).__name__} with a very large integer"
    return shown if len(shown) <= 60 else f"{shown[:59]}…"


def optional(form: FieldType) -> FieldType:
    """Return the declaration of a field that may also be None."""
    return FieldType(
        (*form.types, NoneType),
        f"None or {form.description}",
        lambda value: None if value is None else form.write(value),
        lambda plain: None if plain is None else form.read(plain),
        lambda value: value is None or form.allows(value),
    )


def each(form: FieldType, description: str, length: int | None = None) -> FieldType:
    """Return the declaration of a tuple of such values, which is a list in a file."""
    return FieldType(
        (tuple,),
        description,
        lambda values: [form.write(value) for value in values],
        lambda plain: tuple(form.read(item) for item in listed(plain, length)),
        lambda values: length in (None, len(values)) and form.allows_all(values),
    )


def record(kind: type, description: str, **parts: FieldType) -> FieldType:
    """Return the declaration of an object with these attributes, all of which are in the file."""
    return FieldType(
        (kind,),
        description,
        lambda value: {name: form.write(getattr(value, name)) for name, form in parts.items()},
        lambda plain: kind(**fields(plain, parts, description)),
        lambda value: all(form.allows(getattr(value, name)) for name, form in parts.items()),
    )


def fields(plain: Any, parts: Mapping[str, FieldType], description: str) -> dict[str, Any]:
    """Return the values of a JSON object that has exactly these fields, or raise a ValueError that names the field."""
    require_fields(plain, parts, description)
    return {name: form.parse(plain[name], name) for name, form in parts.items()}


def require_fields(plain: Any, names: Collection[str], description: str) -> None:
    """Raise a ValueError that names the fields that are missing or unknown, unless this is a JSON object with exactly these."""
    if type(plain) is not dict:
        raise ValueError(f"its fields are not those of {description}: {str(plain)[:40]!r} is not an object")
    missing, unknown = sorted({*names} - {*plain}), sorted({*plain} - {*names})
    if missing or unknown:
        found = f"missing fields: {missing}; unknown fields: {str(unknown)[:200]}"
        raise ValueError(f"its fields are not those of {description}: {found}")


def require_format(stated: Any, known: Collection[str], what: str, hint: str = "") -> None:
    """Raise an InputError unless a file states one of the known formats; `what` begins the sentence: "x is not a trace"."""
    if type(stated) is not str or stated not in known:
        expected = " or ".join(map(repr, known))
        ending = f"; {hint}" if hint else ""
        raise InputError(
            f"{what} that this version of gordan can read (format {expected} expected, {_shown(stated)} found){ending}"
        )


def mapping(description: str, parts: Mapping[str, FieldType]) -> FieldType:
    """Return the declaration of a dict with exactly these fields; it is for reading only."""
    return FieldType((dict,), description, read=lambda plain: fields(plain, parts, description))


def choice(*words: str) -> FieldType:
    """Return the declaration of a text that is one of these words, or one of them as it is given here, such as an enum."""
    return FieldType(
        (*{str, *map(type, words)},),
        f"one of {', '.join(map(str, words))}",
        str,
        text,
        lambda value: value in words,
    )


# ---- single values ----------------------------------------------------------------------------------------------------


def text(value: Any) -> str:
    """Return the value if it is text, or raise a ValueError."""
    if type(value) is not str:
        raise ValueError(f"text is expected in place of {str(value)[:40]!r}")
    return value


def count(value: Any) -> int:
    """Return the value if it is a nonnegative integer, or raise a ValueError."""
    if type(value) is not int or value < 0:
        raise ValueError(f"a nonnegative integer is expected in place of {str(value)[:40]!r}")
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
    """Return the finite float that `float.hex` wrote, or raise a ValueError."""
    number = read_hex(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is not finite")
    return number


def listed(value: Any, length: int | None = None) -> list[Any]:
    """Return the value if it is a list (of this length), or raise a ValueError."""
    if type(value) is not list or length not in (None, len(value)):
        raise ValueError(f"a list{'' if length is None else f' of {length}'} is expected in place of {str(value)[:40]!r}")
    return value


def _are_real(values: Collection[Any]) -> bool:
    """Return whether these numbers are finite, and floats can hold those that are integers."""
    try:
        whole = [value for value in values if type(value) is int] if int in {*map(type, values)} else ()
        return all(map(math.isfinite, values)) and all(float(value) == value for value in whole)
    except OverflowError:  # an integer is beyond the floats
        return False


def _decimal(value: Any) -> Any:
    return float(value) if value in ("inf", "-inf", "nan") else value


TEXT = FieldType((str,), "text", str, text)
FLAG = FieldType((bool,), "true or false")
LIST = FieldType((list,), "a list")
COUNT = FieldType((int,), "a nonnegative integer", int, count, (0).__le__)
WHOLE = FieldType((int,), "an integer", hex, whole)
REAL = FieldType(
    (float, int, np.float64),
    "a finite number that float64 can hold",
    lambda value: float(value).hex(),
    finite,
    lambda value: _are_real((value,)),
    _are_real,
)
REAL_OR_INF = REAL._replace(
    description="a number that float64 can hold, or infinity",
    read=lambda value: math.inf if value == "inf" else finite(value),
    holds=lambda value: value == math.inf or _are_real((value,)),
    all_hold=None,
)
FLOAT = FieldType((float,), "a float", float.hex, read_hex)
# A JSON number, or text for infinity and NaN, which JSON does not have.
DECIMAL = FieldType((float,), "a float, such as 1.0", lambda value: value if math.isfinite(value) else str(value), _decimal)


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
