"""What a certificate is: plain data, with JSON both ways. Nothing here is believed; `verify` decides.

    separator         y_i(x_i·w + b) > 0 for every row (and lower ≤ γ* ≤ upper): w, b; for the bracket rows and weights of p
    witness           no w, b does that, since Σ p_i y_i (x_i, 1) = 0 with p ≥ 0, p ≠ 0: rows, positive integer weights
    bracket           lower ≤ γ* ≤ upper: w, b, rows and weights of p
    quasi-separation  A w ≥ 0, A w ≠ 0, and no w does better on the other rows: integer w and b, rows, integer weights
    overlap           A w ≥ 0 only where A w = 0: rows, integer weights

Weights of a bracket are float64, not normalized: floats never sum to exactly 1. In a file floats are written as `float.hex`
and integers as hexadecimal strings, since Python refuses decimal text of more than some thousand digits. A number has one
spelling, the one that is written; any other is refused, so that no two readers can differ about it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from gordan.arrays import BEYOND_FLOATS
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.io.container import read_hex, strict_json

FORMAT = "gordan-certificate-1"
KINDS = ("separator", "witness", "bracket", "quasi-separation", "overlap")
INTERCEPTS = tuple(Intercept)
Label = str | int | float | bool
LABELS: dict[str, type] = {"str": str, "bool": bool, "int": int, "float": float}  # a bool is an int as well
# Fields that are tuples, and further types that each kind of number may have.
SEVERAL = ("shape", "w", "rows", "weights", "sample_weight")
OPTIONAL = ("w", "b", "lower", "upper", "nu", "sample_weight")
ALSO: dict[type, tuple[type, ...]] = {int: (), float: (int, np.float64)}
Kind = Literal["separator", "witness", "bracket", "quasi-separation", "overlap"]


@dataclass(frozen=True)
class Certificate:
    """A claim about data X, y and what is needed to check it.

    `classes` is (negative, positive): y_i = +1 for the second. `shape` is that of X. `sample_weight` holds c_i where they matter
    (with nu), else None. `w` has float64 entries (integers for `quasi-separation`), `weights` float64 (integers for `witness`,
    `quasi-separation`, `overlap`). `data_hash` names the data the certificate was made for, or is None; see `Problem.hash`.
    """

    kind: Kind
    intercept: Literal["free", "penalized", "none"]
    classes: tuple[Label, Label]
    shape: tuple[int, int]
    w: tuple[float, ...] | tuple[int, ...] | None = None
    b: float | int | None = None
    rows: tuple[int, ...] = ()
    weights: tuple[float, ...] | tuple[int, ...] = ()
    lower: float | None = None
    upper: float | None = None
    norm: float = 2.0
    nu: float | None = None
    sample_weight: tuple[float, ...] | None = None
    data_hash: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is not even a claim: unknown words, text for numbers, fractions where whole numbers are needed."""
        if self.kind not in KINDS or self.intercept not in INTERCEPTS:
            raise InputError(f"a certificate of kind {self.kind!r} with intercept {self.intercept!r} is not known")
        number = int if self.exact else float
        given: tuple[tuple[str, Any, type], ...] = (
            ("shape", self.shape, int),
            ("w", self.w, number),
            ("b", self.b, number),
            ("rows", self.rows, int),
            ("weights", self.weights, number),
            ("lower", self.lower, float),
            ("upper", self.upper, float),
            ("norm", self.norm, float),
            ("nu", self.nu, float),
            ("sample_weight", self.sample_weight, float),
        )
        for name, values, kind in given:
            if values is None and name in OPTIONAL:
                continue
            if isinstance(values, tuple) != (name in SEVERAL):
                raise InputError(f"{name} of a certificate must be {'a tuple' if name in SEVERAL else 'one number'}")
            every = values if name in SEVERAL else (values,)
            types = {*map(type, every)}
            strange = types - {kind, *ALSO[kind]}
            if strange:
                sort = "whole numbers" if kind is int else "real numbers"
                raise InputError(f"{name} of a {self.kind} certificate must hold {sort}, not {strange.pop().__name__}")
            if kind is float and int in types and any(abs(v) >= BEYOND_FLOATS or float(v) != v for v in every if type(v) is int):
                raise InputError(f"{name} of a certificate has a whole number that is no float")
        if len(self.shape) != 2 or not isinstance(self.classes, tuple) or len({*map(type, self.classes)}) != 1:
            raise InputError("a certificate needs a shape of two numbers, and two classes of one type")
        if not isinstance(self.data_hash, (str, type(None))):
            raise InputError("data_hash of a certificate is text, or None")
        if len(self.classes) != 2 or not isinstance(self.classes[0], (str, int, float, bool)):
            raise InputError("classes of a certificate are two texts, numbers or booleans")

    @property
    def exact(self) -> bool:
        """Whether weights (and w) are integers."""
        return self.kind not in ("separator", "bracket")

    def to_json(self) -> str:
        """The certificate as one JSON object."""
        number = _hex_int if self.exact else _hex_float
        content: dict[str, Any] = {"format": FORMAT}
        for part in fields(self):
            value = getattr(self, part.name)
            if value is None:
                content[part.name] = None
            elif part.name in ("w", "weights"):
                content[part.name] = [number(item) for item in value]
            elif part.name == "b":
                content[part.name] = number(value)
            elif part.name == "sample_weight":
                content[part.name] = [_hex_float(item) for item in value]
            elif part.name in ("lower", "upper", "norm", "nu"):
                content[part.name] = _hex_float(value)
            elif part.name == "classes":
                content[part.name] = [label.hex() if isinstance(label, float) else label for label in value]
                content["class_type"] = next(name for name, kind in LABELS.items() if isinstance(value[0], kind))
            else:
                content[part.name] = list(value) if isinstance(value, tuple) else value
        return json.dumps(content, allow_nan=False)

    @staticmethod
    def from_json(text: str | bytes) -> Certificate:
        """Read what `to_json` wrote; anything else is an InputError that says what is wrong with it."""
        try:
            content = strict_json(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"this is not a certificate: {error}") from None
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise InputError(f"this is not a certificate that this version can read (format {FORMAT!r} expected)")
        try:
            return _from_plain(content)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"the certificate is malformed: {error}") from None


def _hex_float(value: float) -> str:
    return float(value).hex()


def _hex_int(value: int | float) -> str:
    return hex(int(value))


def _from_plain(content: dict[str, Any]) -> Certificate:
    names = {part.name for part in fields(Certificate)}
    if set(content) != names | {"class_type"}:
        raise ValueError(f"its fields are {sorted(content)}")
    kind, intercept = content["kind"], content["intercept"]
    if kind not in KINDS or intercept not in INTERCEPTS:
        raise ValueError(f"kind {kind!r}, intercept {intercept!r}")
    number: Callable[[Any], Any] = _read_float if kind in ("separator", "bracket") else _read_int
    shape = tuple(_count(size) for size in _list(content["shape"], 2))
    return Certificate(
        kind=kind,
        intercept=intercept,
        classes=_labels(content["classes"], content["class_type"]),
        shape=(shape[0], shape[1]),
        w=None if content["w"] is None else tuple(number(item) for item in _list(content["w"], shape[1])),
        b=None if content["b"] is None else number(content["b"]),
        rows=tuple(_count(row) for row in _list(content["rows"])),
        weights=tuple(number(item) for item in _list(content["weights"], len(content["rows"]))),
        lower=None if content["lower"] is None else _read_float(content["lower"]),
        upper=None if content["upper"] is None else _read_float(content["upper"], infinite=True),
        norm=_read_float(content["norm"], infinite=True),
        nu=None if content["nu"] is None else _read_float(content["nu"]),
        sample_weight=None
        if content["sample_weight"] is None
        else tuple(_read_float(item) for item in _list(content["sample_weight"], shape[0])),
        data_hash=None if content["data_hash"] is None else _text(content["data_hash"]),
    )


def _list(value: Any, length: int | None = None) -> list[Any]:
    if type(value) is not list or length not in (None, len(value)):
        raise ValueError(f"a list{'' if length is None else f' of {length}'} is expected in place of {str(value)[:40]!r}")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"text is expected in place of {str(value)[:40]!r}")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"a count is expected in place of {str(value)[:40]!r}")
    return value


def _read_float(value: Any, *, infinite: bool = False) -> float:
    number = read_hex(value)
    if not (math.isfinite(number) or (infinite and number > 0)):
        raise ValueError(f"{value} is not finite")
    return number


def _read_int(value: Any) -> int:
    number = int(_text(value), 16)
    if hex(number) != value:
        raise ValueError(f"{value[:40]!r} is not a whole number as hex() writes it")
    return number


def _labels(values: Any, kind: Any) -> tuple[Label, Label]:
    pair: list[Any] = [read_hex(v) if kind == "float" else v for v in _list(values, 2)]
    if kind not in LABELS or any(type(label) is not LABELS[kind] for label in pair) or pair[0] == pair[1]:
        raise ValueError(f"classes {values!r} of type {kind!r}")
    return pair[0], pair[1]
