"""Certificates as plain data, written to JSON and read from it. Nothing here is trusted; `verify` decides what is proved.

Each kind of certificate makes a claim, and holds what proves it:

    separator         y_i(x_i·w + b) > 0 for every row: w, b. It may also state lower ≤ γ* ≤ upper, as a bracket does.
    witness           no w, b separates, since Σ p_i y_i (x_i, 1) = 0 with p ≥ 0, p ≠ 0: rows and positive integer weights.
    bracket           lower ≤ γ* ≤ upper: w, b, and rows with the weights of p; under perturbations of the rows if `robust` > 0.
    quasi-separation  A w ≥ 0 and A w ≠ 0, and no w with A w ≥ 0 is positive on any other row: integers w and b, rows and
                      positive integer weights.
    overlap           A w ≥ 0 implies A w = 0: rows and positive integer weights.
    verified-witness, verified-quasi-separation, verified-overlap
                      the same three claims, from float weights near which exact ones exist (`verified`), and floats w and b.
    optimum           lower ≤ the least value of a loss ≤ upper (`losses`): w, b; for a hinge also some rows with weights.

The weights of a bracket are float64 and not normalized, since floats seldom add up to exactly 1. In a file floats are written
as `float.hex` and integers as hexadecimal strings, since Python refuses decimal text of more than a few thousand digits. Each
number has exactly one valid spelling and any other is refused, so that no two readers can disagree about a file.

Each field is declared once, in `Certificate`: what it holds, how many values, and which kinds have it. Validation, writing and
reading follow from these declarations. To add a kind, add its name to `Kind`, to `INTEGER_KINDS` if its numbers are integers
and to the fields that it has, and add a line to `verify.CHECKS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from gordan import schema
from gordan.errors import InputError, input_errors
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept, InterceptWord
from gordan.losses import Loss
from gordan.regressions import Regression
from gordan.schema import COUNT, LIST, REAL, REAL_OR_INF, TEXT, WHOLE, FieldType, choice, each, optional, record

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
DROPPED = ("missing", "zero-weight")
LABELS: dict[str, type] = {"str": str, "bool": bool, "int": int, "float": float}  # a bool is an int as well


# ---- what a field can hold ------------------------------------------------------------------------------------------


def _relation(value: Any) -> Relation:
    """Read a relation between columns from JSON: a list of [column, factor]."""
    pairs = (schema.listed(pair, 2) for pair in schema.listed(value))
    return tuple((schema.count(column), schema.whole(factor)) for column, factor in pairs)


@dataclass(frozen=True)
class About:
    """Information for people about where a certificate comes from; no check depends on it.

    `file` and `size` (in bytes) describe the data file, `label` and `weight` are the names of the columns of labels and weights,
    `positive` is the class that was set against the rest, if one was, `columns` are the names of the columns of X, `version` is
    that of gordan, and `statement` is the claim in words, with decimal numbers rounded so that it stays true. There is no date,
    so that equal runs write equal files.
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
        """Refuse values that JSON could not hold."""
        with input_errors("`about` of a certificate is malformed", ValueError):
            for name, form in ABOUT_FIELDS.items():
                form.require(getattr(self, name), name)


def _one_number(label: Any) -> bool:
    return bool(label == label)  # NaN is not equal to itself


def _one_column(pairs: Any) -> bool:
    return all(type(pair) is tuple and [*map(type, pair)] == [int, int] and pair[0] >= 0 for pair in pairs)


LABEL = FieldType(
    (*LABELS.values(), np.str_, np.float64),
    "text, a number or a boolean",
    lambda value: value.hex() if isinstance(value, float) else value,
    holds=_one_number,
)
RELATION = FieldType(
    (tuple,),
    "pairs of a column and an integer factor",
    lambda pairs: [[j, hex(m)] for j, m in pairs],
    _relation,
    _one_column,
)
ABOUT_FIELDS = dict.fromkeys((entry.name for entry in fields(About)), optional(TEXT))
ABOUT_FIELDS |= {"size": optional(COUNT), "columns": optional(each(TEXT, "several names"))}
ABOUT = record(About, "a part `about`", **ABOUT_FIELDS)
KINDS: tuple[Kind, ...] = get_args(Kind)
# The kinds whose w, b and weights are integers; those of the other kinds are floats.
INTEGER_KINDS: tuple[Kind, ...] = ("witness", "quasi-separation", "overlap")
MARGINS: tuple[Kind, ...] = ("separator", "bracket")
INTERVALS: tuple[Kind, ...] = (*MARGINS, "optimum")
VERIFIED: tuple[Kind, ...] = ("verified-witness", "verified-quasi-separation", "verified-overlap")
PLANES: tuple[Kind, ...] = (*INTERVALS, "quasi-separation", "verified-quasi-separation")
# The kinds that the first format has.
FIRST_KINDS = tuple(kind for kind in KINDS if kind not in (*VERIFIED, "optimum"))


class FieldSpec(NamedTuple):
    """The declaration of a field of `Certificate`.

    `form` says what it holds; None stands for the numbers of the kind, integers or floats. `length` is None for a single value,
    "" for a list of any length, and otherwise the length of a list or the name of one: n, plane, classes or rows. `kinds` are
    the kinds that have the field, and `since` is the first format that has it.
    """

    form: FieldType | None = None
    length: str | int | None = None
    kinds: tuple[Kind, ...] = KINDS
    since: int = 1

    def form_for(self, kind: Kind, length: int | None = None) -> FieldType:
        """Return what the field holds in a certificate of this kind, as one value or as several (`length` of them if given)."""
        form = self.form or (WHOLE if kind in INTEGER_KINDS else REAL)
        if self.length is None:
            return form
        length = self.length if isinstance(self.length, int) else length
        some = "several" if length is None else str(length)
        return each(form, f"a tuple of {some} values, each of them {form.description}", length)


def _spec(*args: Any, **kwargs: Any) -> Mapping[str, FieldSpec]:
    """Return the metadata that declares a field."""
    return {"spec": FieldSpec(*args, **kwargs)}


# ---- the certificate ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Certificate:
    """A claim about data X, y, together with what is needed to check it.

    `classes` is (negative, positive): y_i = +1 for the second. For a multinomial or ordinal model and for the multinomial loss
    it lists all classes, in order (the certificate is then about `several` classes). For that loss `w` has the plane of each
    class, one after the other, each with b as its last entry if there is an intercept. `shape` is that of X. `w` has float64
    entries (integers for `quasi-separation`), and so has `weights` (integers for `witness`, `quasi-separation` and `overlap`).
    `sample_weight` holds the weights c_i of the rows if the claim depends on them, else None. `data_hash` identifies the data
    that the certificate was made for, or is None; see `Problem.hash`. `dependent` describes each column of [X, 1] that is a
    combination of others on the rows in question by pairs (column, factor), that column first, whose sum is 0.

    In an optimum C_i = C · (sample weight · class weight), rounded in that order; if the sample weights are too many to be
    stored, `weights_hash` identifies them (`losses.hash_of_weights`). `model` is the model whose estimates are asked about: `w`
    and `rows` refer to the rows that `models` makes from the data, which for "logistic" are those of the data. `about` says
    where the data came from. `dropped` lists the rules by which rows of the data are left out before anything else: "missing"
    for rows with a missing value, "zero-weight" for rows whose sample weight is zero. A bracket with `robust` ε > 0 is about the
    largest margin that remains if every x_i may be moved by any δ with ‖δ‖_s ≤ ε, s = `robust_norm`.
    """

    kind: Kind = field(metadata=_spec(choice(*KINDS)))
    intercept: InterceptWord = field(metadata=_spec(choice(*Intercept)))
    classes: tuple[Label, ...] = field(metadata=_spec(LABEL, ""))
    shape: tuple[int, int] = field(metadata=_spec(COUNT, 2))
    w: tuple[float, ...] | tuple[int, ...] | None = field(default=None, metadata=_spec(length="plane", kinds=PLANES))
    b: float | int | None = field(default=None, metadata=_spec(kinds=PLANES))
    rows: tuple[int, ...] = field(default=(), metadata=_spec(COUNT, ""))
    weights: tuple[float, ...] | tuple[int, ...] = field(default=(), metadata=_spec(length="rows"))
    lower: float | None = field(default=None, metadata=_spec(REAL, kinds=INTERVALS))
    upper: float | None = field(default=None, metadata=_spec(REAL_OR_INF, kinds=INTERVALS))
    norm: float = field(default=2.0, metadata=_spec(REAL_OR_INF, kinds=MARGINS))
    nu: float | None = field(default=None, metadata=_spec(REAL, kinds=MARGINS))
    sample_weight: tuple[float, ...] | None = field(default=None, metadata=_spec(REAL, "n", kinds=INTERVALS))
    data_hash: str | None = field(default=None, metadata=_spec(TEXT))
    dependent: tuple[Relation, ...] = field(default=(), metadata=_spec(RELATION, "", kinds=VERIFIED, since=2))
    model: str = field(default="logistic", metadata=_spec(choice(*Regression), since=2))
    about: About | None = field(default=None, metadata=_spec(ABOUT, since=2))
    dropped: tuple[str, ...] = field(default=(), metadata=_spec(TEXT, "", since=2))
    loss: str | None = field(default=None, metadata=_spec(choice(*Loss), kinds=("optimum",), since=2))
    C: float | None = field(default=None, metadata=_spec(REAL, kinds=("optimum",), since=2))
    class_weight: tuple[float, ...] | None = field(default=None, metadata=_spec(REAL, "classes", kinds=("optimum",), since=2))
    weights_hash: str | None = field(default=None, metadata=_spec(TEXT, kinds=("optimum",), since=2))
    robust: float = field(default=0.0, metadata=_spec(REAL, kinds=("bracket",), since=2))
    robust_norm: float = field(default=2.0, metadata=_spec(REAL_OR_INF, kinds=("bracket",), since=2))

    def __post_init__(self) -> None:
        """Refuse what is not a well-formed claim, such as unknown words, text for numbers, or floats where integers belong."""
        with input_errors("the certificate is malformed", ValueError):
            for entry in FIELDS:
                value = getattr(self, entry.name)
                if value is entry.default:  # every kind may have the default
                    continue
                _form_of(entry, self.kind).require(value, entry.name)
                if self.kind not in entry.metadata["spec"].kinds and value != entry.default:
                    raise ValueError(f"a {self.kind} certificate has no {entry.name}")
        if len({*map(type, self.classes)}) != 1:
            raise InputError("the classes of a certificate must be of one type")
        if len(self.classes) < 2:
            raise InputError("a certificate needs at least two classes")
        if len({*self.classes}) != len(self.classes):
            raise InputError("the classes of a certificate must differ from each other")
        if len(self.classes) > 2 and not self.several:
            raise InputError(f"a certificate of this kind has two classes, not {len(self.classes)}")
        if self.class_weight is not None and len(self.class_weight) != len(self.classes):
            raise InputError("class_weight of a certificate must hold one number for each class")
        if self.dropped not in ((), *((rule,) for rule in DROPPED), DROPPED):
            raise InputError(f"dropped of a certificate is {self.dropped!r}; it may hold {' and '.join(map(repr, DROPPED))}")
        if self.model != "logistic":
            self._require_model_fields()

    def _require_model_fields(self) -> None:
        """Refuse fields that have no meaning for a model other than the logistic one."""
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
        """Whether the certificate is about all classes at once, and not about two classes."""
        return self.loss == Loss.MULTINOMIAL or Regression(self.model).of_classes

    @property
    def exact(self) -> bool:
        """Whether the weights, w and b are integers."""
        return self.kind in INTEGER_KINDS

    @ieee_floats()
    def to_json(self) -> str:
        """Return the certificate as one JSON object, with the fields of its kind."""
        content: dict[str, Any] = {"format": FORMAT}
        for entry in _fields_of(self.kind):
            value = getattr(self, entry.name)
            content[entry.name] = _form_of(entry, self.kind).write(value)
            if entry.name == "classes":
                content["class_type"] = next(name for name, kind in LABELS.items() if isinstance(value[0], kind))
        return json.dumps(content, allow_nan=False)

    @staticmethod
    @ieee_floats()
    def from_json(text: str | bytes) -> Certificate:
        """Read what `to_json` wrote, in this version or in 0.1; an InputError says what is wrong with any other text."""
        try:
            content = schema.strict_json(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"this is not a certificate: {error}") from None
        stated = content.pop("format", None) if type(content) is dict else None
        schema.require_format(stated, (FORMAT, FIRST_FORMAT), "this is not a certificate")
        try:
            return _from_json_object(content, first=stated == FIRST_FORMAT)
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"the certificate is malformed: {error}") from None


FIELDS: tuple[Field[Any], ...] = fields(Certificate)


def _fields_of(kind: str) -> list[Field[Any]]:
    """Return the fields that certificates of this kind have."""
    return [entry for entry in FIELDS if kind in entry.metadata["spec"].kinds]


def _form_of(entry: Field[Any], kind: Kind, length: int | None = None) -> FieldType:
    """Return what a field holds in certificates of this kind, in memory and in a file: its default None is always allowed."""
    form: FieldType = entry.metadata["spec"].form_for(kind, length)
    return optional(form) if entry.default is None else form


def _from_json_object(content: dict[str, Any], first: bool) -> Certificate:
    """Return the certificate in a JSON object of the second format, or of the first one if `first`."""
    kind = choice(*(FIRST_KINDS if first else KINDS)).parse(content.get("kind"), "kind")
    known = [entry for entry in FIELDS if entry.metadata["spec"].since == 1] if first else _fields_of(kind)
    schema.require_fields(content, [*(entry.name for entry in known), "class_type"], f"a {kind} certificate")
    lengths = _named_lengths(content)
    found = {
        entry.name: _form_of(entry, kind, lengths.get(entry.metadata["spec"].length)).parse(content[entry.name], entry.name)
        for entry in known
    }
    found["classes"] = _read_classes(content["classes"], choice(*LABELS).parse(content["class_type"], "class_type"))
    return Certificate(**found)


def _named_lengths(content: Mapping[str, Any]) -> dict[Any, int]:
    """Return the lengths of lists that `FieldSpec.length` refers to by name."""
    n, d = each(COUNT, "two sizes", 2).parse(content["shape"], "shape")
    model = choice(*Regression).parse(content.get("model", "logistic"), "model")
    classes, rows = (len(LIST.parse(content[name], name)) for name in ("classes", "rows"))
    block = d + Intercept(choice(*Intercept).parse(content["intercept"], "intercept")).exists
    planes = {"logistic": d, "multinomial": (classes - 1) * block, "ordinal": classes - 1 + d, "poisson": block}  # see `models`
    plane = classes * block if content.get("loss") == Loss.MULTINOMIAL else planes[model]
    return {"n": n, "plane": plane, "rows": rows, "classes": classes}


def _read_classes(values: list[Any], kind: str) -> tuple[Label, ...]:
    """Return the classes, which must be of the type with this name."""
    form = schema.FLOAT if kind == "float" else FieldType((LABELS[kind],), f"of type {kind!r}, as class_type says")
    return tuple(form.parse(value, f"classes[{k}]") for k, value in enumerate(values))
