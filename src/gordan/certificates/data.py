"""What a certificate is: plain data, with JSON both ways. Nothing here is believed; `verify` decides.

    separator         y_i(x_i·w + b) > 0 for every row (and lower ≤ γ* ≤ upper): w, b; for the bracket rows and weights of p
    witness           no w, b does that, since Σ p_i y_i (x_i, 1) = 0 with p ≥ 0, p ≠ 0: rows, positive integer weights
    bracket           lower ≤ γ* ≤ upper: w, b, rows and weights of p; under perturbations of the rows if `robust` > 0
    quasi-separation  A w ≥ 0, A w ≠ 0, and no w does better on the other rows: integer w and b, rows, integer weights
    overlap           A w ≥ 0 only where A w = 0: rows, integer weights
    verified-witness, verified-quasi-separation, verified-overlap
                      the same three claims, with float weights near which exact ones exist (`verified`), and floats w and b
    optimum           lower ≤ the least value of a loss ≤ upper (`losses`): w, b; for the hinge some rows with weights

Weights of a bracket are float64, not normalized: floats never sum to exactly 1. In a file floats are written as `float.hex`
and integers as hexadecimal strings, since Python refuses decimal text of more than some thousand digits. A number has one
spelling, the one that is written; any other is refused, so that no two readers can differ about it.

A field is declared once, in `Certificate`: what it holds, how many of it, and which kinds have it. Checks, writing and reading
follow from that. A new kind is its name in `Kind`, in `EXACT` if it is, and in the fields that it has, and a line of
`verify.CHECKS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from gordan import schema
from gordan.arrays import BEYOND_FLOATS
from gordan.errors import InputError
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept
from gordan.losses import Loss
from gordan.schema import COUNT, REAL, REAL_OR_INF, TEXT, WHOLE, Form, each, optional, record

FORMAT, FIRST_FORMAT = "gordan-certificate-2", "gordan-certificate-1"
Kind = Literal[
    "separator",
    "witness",
    "bracket",
    "quasi-separation",
    "overlap",
    "verified-witness",
    "verified-quasi-separation",
    "verified-overlap",
    "optimum",
]
Label = str | int | float | bool
Relation = tuple[tuple[int, int], ...]
ABOUT_TEXTS = ("file", "label", "weight", "positive", "version", "statement")
DROPPED = ("missing", "zero-weight")
LABELS: dict[str, type] = {"str": str, "bool": bool, "int": int, "float": float}  # a bool is an int as well
MODELS = ("logistic", "multinomial", "ordinal", "poisson")


# ---- what a field can hold ------------------------------------------------------------------------------------------


def _relation(value: Any) -> Relation:
    pairs = (schema.listed(pair, 2) for pair in schema.listed(value))
    return tuple((schema.count(column), schema.whole(factor)) for column, factor in pairs)


@dataclass(frozen=True)
class About:
    """Where a certificate comes from, for people; no check depends on it, and it has no date: equal runs give equal files.

    `file` and `size` (in bytes) are those of the data, `label` is the column of the labels and `weight` that of the weights,
    `positive` the class that was set against the rest, if one was; `columns` are the names of those that X has, `version` is
    that of gordan, and `statement` is the claim in words and decimal numbers, rounded so that it stays true.
    """

    file: str | None = None
    size: int | None = None
    label: str | None = None
    weight: str | None = None
    positive: str | None = None
    columns: tuple[str, ...] | None = None
    version: str | None = None
    statement: str | None = None

    def __post_init__(self) -> None:
        """Refuse what a file could not hold."""
        names = [getattr(self, name) for name in ABOUT_TEXTS]
        columns = () if self.columns is None else self.columns
        if not isinstance(columns, tuple) or not all(isinstance(name, (str, type(None))) for name in (*names, *columns)):
            raise InputError("`about` of a certificate must hold text")
        if self.size is not None and (type(self.size) is not int or self.size < 0):
            raise InputError("size in `about` of a certificate must be a number of bytes")


LABEL = Form((*LABELS.values(),), "texts, numbers or booleans", lambda value: value.hex() if isinstance(value, float) else value)
RELATION = Form((tuple,), "pairs of a column and a factor", lambda pairs: [[j, hex(m)] for j, m in pairs], _relation)
ABOUT_FORMS = dict.fromkeys((part.name for part in fields(About)), optional(TEXT))
ABOUT_FORMS |= {"size": optional(COUNT), "columns": optional(each(TEXT, "names"))}
ABOUT = record(About, "a part `about`", **ABOUT_FORMS)
KINDS: tuple[Kind, ...] = get_args(Kind)
# Those whose w, b and weights are whole numbers; of the others they are floats.
EXACT: tuple[Kind, ...] = ("witness", "quasi-separation", "overlap")
MARGINS: tuple[Kind, ...] = ("separator", "bracket")
INTERVALS: tuple[Kind, ...] = (*MARGINS, "optimum")
VERIFIED: tuple[Kind, ...] = ("verified-witness", "verified-quasi-separation", "verified-overlap")
PLANES: tuple[Kind, ...] = (*INTERVALS, "quasi-separation", "verified-quasi-separation")
FIRST_KINDS = tuple(kind for kind in KINDS if kind not in (*VERIFIED, "optimum"))


class Part(NamedTuple):
    """What is declared of a field: its form (None: the numbers of the kind), how many values it has (None: one, "" any number,
    else a number or the name of one: n, plane, classes, rows), which kinds have it, words that are allowed, and the first
    format with it."""

    form: Form | None = None
    many: str | int | None = None
    kinds: tuple[Kind, ...] = KINDS
    words: tuple[str, ...] = ()
    since: int = 1

    def form_for(self, kind: Kind) -> Form:
        """The form in a certificate of that kind."""
        return self.form or (WHOLE if kind in EXACT else REAL)


def _is(*given: Any, **more: Any) -> Mapping[str, Part]:
    return {"part": Part(*given, **more)}


# ---- the certificate ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Certificate:
    """A claim about data X, y and what is needed to check it.

    `classes` is (negative, positive): y_i = +1 for the second; for a multinomial or ordinal model, and of a multinomial loss, all
    of them, in order (it is about `several`). Of that loss `w` has the plane of each class, one after the other, with b as its
    last entry where there is an intercept. `shape` is that of X. `sample_weight` holds c_i where they matter (with nu), else
    None. `w` has float64 entries (integers for `quasi-separation`), `weights` float64 (integers for `witness`,
    `quasi-separation`, `overlap`). `data_hash` names the data the certificate was made for, or is None; see `Problem.hash`.
    `dependent` has for each column of [X, 1] that is a combination of others on the rows in question the pairs (column,
    factor), that column first, whose sum is 0. Of an optimum, C_i = C · (sample weight · class weight), rounded in that order;
    where sample weights are too many to be stored, `weights_hash` names them (`losses.hash_of_weights`). `model` is the model
    whose estimates are asked about: w and `rows` are those of the rows that `models` makes of the data, which are the data's
    own for "logistic". `about` says where the data came from. `dropped` are rules by which rows of the data are left out before
    anything else: "missing", rows in which a value is missing; "zero-weight", rows whose sample weight is zero.
    A bracket with `robust` ε > 0 is about the largest margin that is left when every x_i is moved by some δ with ‖δ‖_s ≤ ε,
    s = `robust_norm`.
    """

    kind: Kind = field(metadata=_is(TEXT, words=KINDS))
    intercept: Literal["free", "penalized", "none"] = field(metadata=_is(TEXT, words=(*Intercept,)))
    classes: tuple[Label, ...] = field(metadata=_is(LABEL, ""))
    shape: tuple[int, int] = field(metadata=_is(COUNT, 2))
    w: tuple[float, ...] | tuple[int, ...] | None = field(default=None, metadata=_is(many="plane", kinds=PLANES))
    b: float | int | None = field(default=None, metadata=_is(kinds=PLANES))
    rows: tuple[int, ...] = field(default=(), metadata=_is(COUNT, ""))
    weights: tuple[float, ...] | tuple[int, ...] = field(default=(), metadata=_is(many="rows"))
    lower: float | None = field(default=None, metadata=_is(REAL, kinds=INTERVALS))
    upper: float | None = field(default=None, metadata=_is(REAL_OR_INF, kinds=INTERVALS))
    norm: float = field(default=2.0, metadata=_is(REAL_OR_INF, kinds=MARGINS))
    nu: float | None = field(default=None, metadata=_is(REAL, kinds=MARGINS))
    sample_weight: tuple[float, ...] | None = field(default=None, metadata=_is(REAL, "n", kinds=INTERVALS))
    data_hash: str | None = field(default=None, metadata=_is(TEXT))
    dependent: tuple[Relation, ...] = field(default=(), metadata=_is(RELATION, "", kinds=VERIFIED, since=2))
    model: str = field(default="logistic", metadata=_is(TEXT, words=MODELS, since=2))
    about: About | None = field(default=None, metadata=_is(ABOUT, since=2))
    dropped: tuple[str, ...] = field(default=(), metadata=_is(TEXT, "", since=2))
    loss: str | None = field(default=None, metadata=_is(TEXT, kinds=("optimum",), words=(*Loss,), since=2))
    C: float | None = field(default=None, metadata=_is(REAL, kinds=("optimum",), since=2))
    class_weight: tuple[float, ...] | None = field(default=None, metadata=_is(REAL, "classes", kinds=("optimum",), since=2))
    weights_hash: str | None = field(default=None, metadata=_is(TEXT, kinds=("optimum",), since=2))
    robust: float = field(default=0.0, metadata=_is(REAL, kinds=("bracket",), since=2))
    robust_norm: float = field(default=2.0, metadata=_is(REAL_OR_INF, kinds=("bracket",), since=2))

    def __post_init__(self) -> None:
        """Refuse what is not even a claim: unknown words, text for numbers, fractions where whole numbers are needed."""
        for part in PARTS:
            value = getattr(self, part.name)
            if value is not part.default:  # which every kind may have
                _require(part, value, self.kind)
        if len({*map(type, self.classes)}) != 1:
            raise InputError("the classes of a certificate must be of one type")
        if len(self.classes) < 2:
            raise InputError("a certificate needs at least two classes")
        if len(self.classes) > 2 and not self.several:
            raise InputError(f"a certificate of this kind has two classes, not {len(self.classes)}")
        if self.class_weight is not None and len(self.class_weight) != len(self.classes):
            raise InputError("class_weight of a certificate must hold one number for each class")
        if self.dropped not in ((), *((rule,) for rule in DROPPED), DROPPED):
            raise InputError(f"dropped of a certificate is {self.dropped!r}; it may hold {' and '.join(map(repr, DROPPED))}")
        if self.model != "logistic":
            self._require_plain()

    def _require_plain(self) -> None:
        """Refuse what has no meaning for rows that are made."""
        if len({*self.classes}) != len(self.classes):
            raise InputError("the classes of a certificate must differ from each other")
        if self.kind in ("bracket", "optimum") or self.lower is not None or self.upper is not None or self.norm != 2:
            raise InputError(f"a certificate with model {self.model!r} states no margin and no loss")
        if self.b not in (None, 0) or self.nu is not None or self.sample_weight is not None:
            raise InputError(f"a certificate with model {self.model!r} has no b, no nu and no sample weights")
        if self.model == "poisson" and [*map(str, self.classes)] != ["False", "True"]:
            raise InputError("a certificate about a Poisson model has the classes False (y = 0) and True (y > 0)")
        if self.model == "ordinal" and self.intercept != "free":
            raise InputError("a certificate about an ordinal model has thresholds: its intercept is free")

    @property
    def several(self) -> bool:
        """Whether it is about all classes at once, and not about one of two."""
        return self.loss == Loss.MULTINOMIAL or self.model in SEVERAL_CLASSES

    @property
    def exact(self) -> bool:
        """Whether weights (and w) are integers."""
        return self.kind in EXACT

    @ieee_floats()
    def to_json(self) -> str:
        """The certificate as one JSON object, with the fields of its kind."""
        content: dict[str, Any] = {"format": FORMAT}
        for part in _parts_of(self.kind):
            declared, value = part.metadata["part"], getattr(self, part.name)
            write = declared.form_for(self.kind).write
            plain = value if value is None else write(value) if declared.many is None else [write(item) for item in value]
            content[part.name] = plain
            if part.name == "classes":
                content["class_type"] = next(name for name, kind in LABELS.items() if isinstance(value[0], kind))
        return json.dumps(content, allow_nan=False)

    @staticmethod
    @ieee_floats()
    def from_json(text: str | bytes) -> Certificate:
        """Read what `to_json` wrote, here or in 0.1; anything else is an InputError that says what is wrong with it."""
        try:
            content = schema.strict_json(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"this is not a certificate: {error}") from None
        if not isinstance(content, dict) or content.get("format") not in (FORMAT, FIRST_FORMAT):
            raise InputError(f"this is not a certificate that this version can read (format {FORMAT!r} expected)")
        try:
            return _from_plain(content, first=content.pop("format") == FIRST_FORMAT)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"the certificate is malformed: {error}") from None


PARTS: tuple[Field[Any], ...] = fields(Certificate)
# The models whose y may have more than two classes.
SEVERAL_CLASSES = ("multinomial", "ordinal")


def made_columns(model: str, intercept: str, d: int, classes: int) -> int:
    """How many coefficients w has, for X with d columns; see `models`."""
    block = d + (intercept != "none")
    return {"logistic": d, "multinomial": (classes - 1) * block, "ordinal": classes - 1 + d, "poisson": block}[model]


def _parts_of(kind: str) -> list[Field[Any]]:
    return [part for part in PARTS if kind in part.metadata["part"].kinds]


def _require(part: Field[Any], value: Any, kind: Kind) -> None:
    """Refuse a value that the declaration of its field does not allow."""
    name, declared = part.name, part.metadata["part"]
    if kind in KINDS and kind not in declared.kinds and value != part.default:
        raise InputError(f"a {kind} certificate has no {name}")
    if value is None and part.default is None:
        return
    if declared.words:
        if value not in declared.words:
            words = ", ".join(repr(str(word)) for word in declared.words)
            raise InputError(f"{name} of a certificate is {value!r:.60}; it must be one of {words}")
        return
    if isinstance(value, tuple) != (declared.many is not None):
        raise InputError(f"{name} of a certificate must be {'one value' if declared.many is None else 'a tuple'}")
    if isinstance(declared.many, int) and len(value) != declared.many:
        raise InputError(f"{name} of a certificate must be {declared.many} values")
    _require_form(name, value if isinstance(value, tuple) else (value,), declared.form_for(kind), kind)


def _require_form(name: str, values: tuple[Any, ...], form: Form, kind: Kind) -> None:
    """Refuse what is not written in this form."""
    types = {*map(type, values)}
    strange = types - {*form.types} if form is not LABEL else {found for found in types if not issubclass(found, form.types)}
    if strange:
        raise InputError(f"{name} of a {kind} certificate must hold {form.words}, not {strange.pop().__name__}")
    whole = [v for v in values if type(v) is int] if int in types and np.float64 in form.types else []
    if any(abs(v) >= BEYOND_FLOATS or float(v) != v for v in whole):
        raise InputError(f"{name} of a certificate has an integer that float64 cannot hold")
    if form is RELATION and any(
        type(pair) is not tuple or [*map(type, pair)] != [int, int] for pairs in values for pair in pairs
    ):
        raise InputError(f"{name} of a certificate must hold {form.words}")


def _from_plain(content: dict[str, Any], first: bool) -> Certificate:
    kind = content.get("kind")
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r}")
    known = [part for part in PARTS if part.metadata["part"].since == 1] if first else _parts_of(kind)
    wanted, present = {part.name for part in known} | {"class_type"}, {*content}
    if present != wanted or (first and kind not in FIRST_KINDS):
        raise ValueError(f"missing fields: {sorted(wanted - present)}; unknown fields: {sorted(present - wanted)}")
    sizes = _sizes(content)
    found = {part.name: _value(part, content[part.name], kind, sizes) for part in known}
    found["classes"] = _labels(content["classes"], content["class_type"])
    return Certificate(**found)


def _sizes(content: Mapping[str, Any]) -> dict[Any, int]:
    """How long the lists are whose lengths have names."""
    n, d = (schema.count(size) for size in schema.listed(content["shape"], 2))
    model, classes = schema.text(content.get("model", MODELS[0])), len(schema.listed(content["classes"]))
    if model not in MODELS:
        raise ValueError(f"model {model!r}")
    plane = made_columns(model, schema.text(content["intercept"]), d, classes)
    if content.get("loss") == Loss.MULTINOMIAL:
        plane = classes * (d + (content["intercept"] != Intercept.NONE))
    return {"n": n, "plane": plane, "rows": len(schema.listed(content["rows"])), "classes": classes}


def _value(part: Field[Any], plain: Any, kind: Kind, sizes: Mapping[Any, int]) -> Any:
    """What is written in a field."""
    declared = part.metadata["part"]
    read, many = declared.form_for(kind).read, declared.many
    if plain is None and part.default is None:
        return None
    if many is None:
        return read(plain)
    return tuple(read(item) for item in schema.listed(plain, sizes.get(many, many or None)))


def _labels(values: Any, kind: Any) -> tuple[Label, ...]:
    found: list[Any] = [schema.read_hex(v) if kind == "float" else v for v in schema.listed(values)]
    if kind not in LABELS or any(type(label) is not LABELS[kind] for label in found) or len({*found}) < max(2, len(found)):
        raise ValueError(f"classes {str(values)[:80]} of type {kind!r}")
    return tuple(found)
