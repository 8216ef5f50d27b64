"""A fitted classifier as plain data, and its file."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gordan.arrays import LARGEST_LABEL, Array
from gordan.errors import InputError
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept
from gordan.io import container
from gordan.losses import Loss, softmax
from gordan.schema import FLAG, FLOAT, TEXT, Form, choice, each, optional, read_hex, record

# The formats that are read, the last of which is written: the first is that of gordan 0.1.
FORMATS = ("gordan-model-1", "gordan-model-2")
KINDS = ("binary", "one-vs-rest", "one-vs-one", "multinomial", "multilabel")
TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
# Types of labels beside those that NumPy gives them by itself, and their names in a file.
DTYPES = re.compile("u?int(8|16|32|64)|float(16|32)|object|U[1-9][0-9]{0,8}")
# Characters of an array of text, at most: a small file is not to ask for much memory. Longer labels are kept as objects.
MOST_TEXT = 1 << 18
Label: TypeAlias = str | int | float | bool


@dataclass(frozen=True)
class PlaneFacts:
    """What a file says of one plane: the `nu` that it was fitted with (None: a hard margin), whether its classes are
    `separable` (proved either way; None where that was not asked, or not decided), and the certified interval for the least value
    of the `objective` where a classifier of largest margin had to minimize a loss."""

    nu: float | None
    separable: bool | None
    objective: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Model:
    """What a fit found: k planes x·w + b = 0 for two or more classes.

    Attributes
    ----------
    classes : tuple of str, int, float or bool
        The labels in order, all of one type.
    coef : (k, d) float64 array
        w of each plane.
    intercept : (k,) float64 array
        b of each plane.
    kind : {"binary", "one-vs-rest", "one-vs-one", "multinomial", "multilabel"}
        What the planes separate: classes[1] (positive) from classes[0], k = 1; each class (positive) from the others, one plane
        a class; or classes[j] (positive) from classes[i] for i < j, k = c(c-1)/2 planes in the order (0, 1), (0, 2), …, (1, 2),
        …. Or all classes at once, one plane a class, also where there are but two: one problem, with one interval and one
        certificate. Or labels of which a row may have several: each (positive) from the rows without it, one plane a label.
    margins : (k, 2) float64 array
        The certified interval for the margin of each plane; of a `LinearClassifier`, for the least value of its objective. (1, 2)
        where the planes are those of one problem.
    norm, nu, intercept_kind
        The problem that was solved: the norm of feature space, at least 2; how soft the margins are; "free", "penalized" or
        "none". nu is that of all planes where it is the same for all (None: hard margins), also where a fit took it because no
        plane separates; else the one asked for (None: none was). What each plane was fitted with is in `planes`.
    version : str
        The version of gordan that made it.
    names : tuple of str, optional
        The names of the d features.
    certificates : tuple of str, optional
        The certificate of each plane, as JSON text.
    class_dtype : str, optional
        The NumPy type of the labels, such as "uint8", "float32", "U9" or "object"; None for the one that they have by themselves:
        int64 (uint64, object where that is too small), float64, bool, or text of the longest label.
    estimator : str
        The class of gordan that it is a fit of; `gordan.load` makes one.
    planes : tuple of PlaneFacts, optional
        What else is known of each plane; None in files of gordan 0.1.
    loss, C : optional
        Where a loss was minimized: its name, and the factor of its sum.
    places : (problems, length) float64 array, optional
        What is proved of the exact minimizers of the losses, a row for each problem, as in `gordan.certificates.regions.Place`.
    label : str, optional
        The name of the label column that it was fitted to.
    scaling : (2, d) float64 array, optional
        The planes, and their certificates, are about (x - scaling[0])/scaling[1] in place of x.
    """

    classes: tuple[Label, ...]
    coef: Array
    intercept: Array
    kind: str
    margins: Array
    norm: float
    nu: float | None
    intercept_kind: str
    version: str
    names: tuple[str, ...] | None = None
    certificates: tuple[str, ...] | None = None
    class_dtype: str | None = None
    estimator: str = "MaxMarginClassifier"
    planes: tuple[PlaneFacts, ...] | None = None
    loss: str | None = None
    C: float | None = None
    places: Array | None = None
    label: str | None = None
    scaling: Array | None = None

    def __post_init__(self) -> None:
        try:
            _check_labels(self.classes, self.class_dtype)
            for name, field in FIELDS.items():
                if not field.form.allows(getattr(self, name)):
                    raise InputError(f"{name} of a model is {field.form.words}, not {getattr(self, name)!r:.200}")
            self._check_sizes()
            self._check_values()
        except (TypeError, AttributeError) as error:
            raise InputError(f"this is not a model: {error}") from None

    def _check_sizes(self) -> None:
        """Refuse arrays and lists whose lengths do not fit each other."""
        c, k = len(self.classes), len(self.coef)
        if k != planes(self.kind, c):
            raise InputError(f"a model of kind {self.kind!r} for {c} classes cannot have {k} planes")
        d = self.coef.shape[1] if self.coef.ndim == 2 else 0
        m = problems(self.kind, c)
        shapes: dict[str, tuple[int, ...]] = {"coef": (k, max(d, 1)), "intercept": (k,), "margins": (m, 2)}
        for name, shape in (shapes if self.scaling is None else shapes | {"scaling": (2, d)}).items():
            array = getattr(self, name)
            if array.dtype != np.float64 or array.shape != shape:
                raise InputError(
                    f"{name} of a model is a float64 array of shape {shape}, not {array.dtype} of shape {array.shape}"
                )
        if self.places is not None:
            parts = (k + 1, k) if self.kind == "multinomial" else (2, 1)
            length = 2 + parts[0] + d + parts[1] * (d + Intercept(self.intercept_kind).in_norm)
            if self.places.dtype != np.float64 or self.places.shape != (m, length):
                raise InputError(
                    f"places of a model is None or a float64 array of shape {(m, length)}, not {self.places.dtype} of shape "
                    f"{self.places.shape}"
                )
        for name, length in {"names": d, "certificates": m, "planes": m}.items():
            if getattr(self, name) is not None and len(getattr(self, name)) != length:
                raise InputError(f"{name} of a model is None or has {length} entries, not {len(getattr(self, name))}")

    def _check_values(self) -> None:
        """Refuse numbers that are no planes and no intervals, and text that cannot be written."""
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            raise InputError("coef and intercept of a model must be finite")
        if self.scaling is not None and not (np.isfinite(self.scaling).all() and (self.scaling[1] > 0).all()):
            raise InputError("scaling of a model is finite, and what is divided by is positive")
        lower, upper = self.margins.T
        if not ((lower >= 0) & (lower <= upper) & np.isfinite(lower)).all():
            raise InputError("margins of a model are intervals 0 <= lower <= upper, lower finite")
        if self.places is not None and (np.isnan(self.places).any() or not (self.places[:, :2] >= 0).all()):
            raise InputError("places of a model begin with two distances, and have no NaN")
        for text in (*self.classes, *(self.names or ()), *(self.certificates or ()), self.version, self.estimator, self.label):
            if isinstance(text, str) and re.search("[\ud800-\udfff]", text):
                raise InputError(f"{text!r} has an unpaired surrogate, which cannot be written as UTF-8")

    def scaled(self, X: Any) -> Any:
        """X as the planes are about it; as it is where it has other columns, which whoever uses it refuses."""
        return X if self.scaling is None or X.shape[1] != self.coef.shape[1] else scaled(X, self.scaling)

    def scores(self, X: Any) -> Array:
        """x·w + b for each row and plane, of X as they are about it."""
        return np.asarray(X @ self.coef.T + self.intercept)

    def labels(self, scores: Array) -> Array:
        """The class of each row with these scores."""
        return np.asarray(self.class_array()[chosen(self.kind, scores, len(self.classes))])

    def class_array(self) -> Array:
        """The labels as an array of the type that they were given in."""
        return _array(self.classes, self.class_dtype)

    @ieee_floats()
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, in one step: there is the old file or the new, never half of one."""
        container.save(path, *self._parts())

    @staticmethod
    @ieee_floats()
    def load(path: str | os.PathLike[str]) -> Model:
        """Read a model that `save` wrote. Any other, newer or damaged file is refused, and nothing in it is run."""
        return _from_parts(*container.load(path), os.fspath(path))

    @ieee_floats()
    def to_bytes(self) -> bytes:
        """The content of the file."""
        return container.encode(*self._parts())

    @staticmethod
    @ieee_floats()
    def from_bytes(content: bytes) -> Model:
        """The model that `to_bytes` wrote so, checked as `load` does."""
        return _from_parts(*container.decode(content, "this"), "this")

    def _parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        kind = type(self.classes[0]).__name__
        header = {name: field.form.write(getattr(self, name)) for name, field in FIELDS.items()} | {
            "format": FORMATS[-1],
            "classes": [label.hex() if isinstance(label, float) else label for label in self.classes],
            "class_type": kind if self.class_dtype is None else f"{kind} {self.class_dtype}",
        }
        arrays = {name: getattr(self, name) for name in ARRAYS}
        arrays |= {name: getattr(self, name) for name in OPTIONAL if getattr(self, name) is not None}
        for i, text in enumerate(self.certificates or ()):
            arrays[f"certificate {i}"] = np.frombuffer(text.encode(), np.uint8)
        return header, arrays


# ---- the fields of the header -----------------------------------------------------------------------------------------

ARRAYS = ("coef", "intercept", "margins")
OPTIONAL = ("places", "scaling")
LABELS = ("classes", "class_type")


class Field(NamedTuple):
    """A field of a model: its form, and in which format it is first, with its value in files `before` that."""

    form: Form
    format: int = 1
    before: Any = None


def _is_there(value: Any) -> bool:
    """What the header has of a part that is in an array."""
    return value is not None


def _no_value(flag: Any) -> None:
    if type(flag) is not bool:
        raise ValueError("its fields are not those of a model")


def _is_interval(value: tuple[float, float]) -> bool:
    return 0 <= value[0] <= value[1] and value[0] < math.inf


NU = optional(FLOAT._replace(words="a float in (0, 1]", holds=lambda nu: 0 < nu <= 1))
INTERVAL = each(FLOAT, "an interval", 2)
FACTS = record(
    PlaneFacts,
    "nu, separable and objective",
    nu=NU,
    separable=optional(FLAG),
    objective=optional(INTERVAL._replace(holds=lambda value: INTERVAL.holds(value) and _is_interval(value))),
)
FIELDS = {
    "estimator": Field(TEXT._replace(words="the name of a class", holds=str.isidentifier), 2, "MaxMarginClassifier"),
    "kind": Field(choice(*KINDS)),
    "names": Field(optional(each(TEXT, "texts"))),
    "norm": Field(FLOAT._replace(words="a float of at least 2", holds=lambda norm: norm >= 2)),
    "nu": Field(NU),
    "intercept_kind": Field(choice(*Intercept)._replace(types=(str, Intercept))),
    "loss": Field(optional(choice(*Loss)._replace(types=(str, Loss))), 2),
    "C": Field(optional(FLOAT._replace(words="a positive float", holds=lambda C: 0 < C < math.inf)), 2),
    "version": Field(TEXT),
    "planes": Field(optional(each(FACTS, "nu, separable and objective of each plane")), 2),
    "label": Field(optional(TEXT), 2),
    **dict.fromkeys(OPTIONAL, Field(optional(Form((np.ndarray,), "an array"))._replace(write=_is_there, read=_no_value), 2)),
    "certificates": Field(optional(each(TEXT, "texts"))._replace(write=_is_there, read=_no_value)),
}


def _from_parts(header: dict[str, Any], arrays: dict[str, Array], name: str) -> Model:
    stated = header.get("format")
    if stated not in FORMATS:
        known = " or ".join(map(repr, FORMATS))
        raise InputError(f"{name} is not a model this version can read (format {known} expected, {str(stated)[:40]!r} found)")
    try:
        return _model(header, arrays, 1 + FORMATS.index(stated))
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise InputError(f"{name} is damaged: {error}") from None


def _model(header: dict[str, Any], arrays: dict[str, Array], version: int) -> Model:
    there = {name for name, field in FIELDS.items() if field.format <= version}
    if set(header) != there | {"format", *LABELS}:
        raise ValueError("its fields are not those of a model")
    named = [*ARRAYS, *(name for name in OPTIONAL if header.get(name))]
    extra = [f"certificate {i}" for i in range(len(arrays) - len(named))] if header["certificates"] else []
    if list(arrays) != [*named, *extra]:
        raise ValueError(f"its arrays are {', '.join(arrays)}"[:200])
    read: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
    read |= {name: field.form.read(header[name]) if name in there else field.before for name, field in FIELDS.items()}
    read |= {name: arrays.get(name) for name in OPTIONAL}
    read["certificates"] = tuple(arrays[part].tobytes().decode() for part in extra) if header["certificates"] else None
    read["classes"], read["class_dtype"] = _labels(header["classes"], header["class_type"])
    return Model(**read)


# ---- labels -----------------------------------------------------------------------------------------------------------


def _labels(values: Any, stated: Any) -> tuple[tuple[Label, ...], str | None]:
    """`classes` and `class_dtype` from their two fields in the header."""
    kind, _, dtype = stated.partition(" ") if type(stated) is str else ("", "", "")
    if kind not in TYPES or type(values) is not list or (not dtype and kind != stated):
        raise ValueError("its classes are not of a known type")
    classes = tuple(read_hex(label) if kind == "float" else label for label in values)
    if any(type(label) is not TYPES[kind] for label in classes):
        raise ValueError("its classes are of another type than it says")
    return classes, dtype or None


def _check_labels(classes: tuple[Label, ...], dtype: str | None) -> None:
    """Refuse what cannot be the labels of a model."""
    kind = type(classes[0]) if classes else None
    if len(classes) < 2 or kind not in TYPES.values() or any(type(label) is not kind for label in classes):
        raise InputError(f"a model needs two or more classes, all text, whole numbers, numbers or booleans, not {classes!r}")
    if len(set(classes)) < len(classes) or any(label != label or label in (math.inf, -math.inf) for label in classes):
        raise InputError(f"the classes of a model must be distinct, and finite if they are numbers, not {classes!r}")
    if any(isinstance(label, int) and abs(label) >= LARGEST_LABEL for label in classes):
        raise InputError("a class of a model is a whole number of more than 1023 bits; use shorter labels")
    if dtype is not None and _dtype_to_write(classes, _array(classes, dtype)) is None:
        raise InputError(f"class_dtype of a model is {dtype!r}, which is the default for its labels; pass None")


def labels_of(array: Array) -> tuple[tuple[Label, ...], str | None]:
    """The labels in an array as a model holds them, `classes` and `class_dtype`; an InputError where they would not come back."""
    classes = tuple(label.item() if isinstance(label, np.generic) else label for label in array.tolist())
    if array.dtype.kind not in "biufUO" or any(type(label) not in TYPES.values() for label in classes):
        raise InputError(f"labels of type {array.dtype} cannot be saved; use text, numbers or booleans, such as y.astype(str)")
    return classes, _dtype_to_write(classes, array)


def _array(classes: tuple[Label, ...], dtype: str | None) -> Array:
    """The labels as an array of that type (None: of the one that they have by themselves); refused if it does not hold them."""
    if dtype is not None and not (type(dtype) is str and DTYPES.fullmatch(dtype)):
        raise InputError(f"class_dtype of a model is {dtype!r:.40}; pass None, or a type such as uint8, float32, U9 or object")
    if dtype is not None and dtype[0] == "U" and int(dtype[1:]) * len(classes) > MOST_TEXT:
        raise InputError(
            f"{len(classes)} labels of {dtype[1:]} characters each are too long; shorten them, as y.astype('U64') does"
        )
    own = {str: ["str"], bool: ["bool"], float: ["float64"], int: ["int64", "uint64"]}[type(classes[0])]
    if isinstance(classes[0], str) and max(map(len, map(str, classes))) * len(classes) > MOST_TEXT:
        own = []
    for name in [*own, "object"] if dtype is None else [dtype]:
        try:
            array = np.empty(len(classes), dtype=object)
            array[:] = classes
            with np.errstate(over="ignore"):
                array = array.astype(name)
        except (OverflowError, ValueError, TypeError):
            continue
        if array.tolist() == list(classes) and {*map(type, array.tolist())} == {*map(type, classes)}:
            return array
    raise InputError(f"class_dtype of a model is {dtype!r}, which does not hold its labels {classes!r}")


def _dtype_to_write(classes: tuple[Label, ...], array: Array) -> str | None:
    """The name of the type of this array of labels; None where they have it by themselves."""
    dtype = array.dtype.newbyteorder("=")
    if dtype == _array(classes, None).dtype:
        return None
    return f"U{dtype.itemsize // 4}" if dtype.kind == "U" else dtype.name


# ---- scaling ----------------------------------------------------------------------------------------------------------


def scaling_of(X: Any) -> Array:
    """The mean and the standard deviation of each column of X, dense or SciPy's CSR, as `Model.scaling`: 1 for that of a constant
    column, and 0 for the mean of sparse ones, which stay sparse."""
    n, sparse = X.shape[0], hasattr(X, "tocsr")
    mean: Array = np.asarray(X.sum(axis=0) / n if sparse else np.mean(X, axis=0, dtype=np.float64), dtype=np.float64).ravel()
    if sparse:
        X = X.tocsr()
        stored, squares = np.bincount(X.indices, minlength=len(mean)), (X.data.astype(np.float64) - mean[X.indices]) ** 2
        spread = np.sqrt((np.bincount(X.indices, squares, len(mean)) + (n - stored) * mean**2) / n)
    else:
        spread = np.asarray(np.std(X, axis=0, dtype=np.float64))
    spread[spread <= n * np.finfo(np.float64).eps * np.abs(mean)] = 1.0  # constant, but for rounding
    return np.array([np.zeros_like(mean) if sparse else mean, spread])


def scaled(X: Any, scaling: Array) -> Any:
    """(x - scaling[0])/scaling[1] for each row of X, in float64; a sparse X stays sparse where nothing is to be subtracted."""
    center, spread = scaling
    if hasattr(X, "tocsr"):
        if not center.any():
            X = X.tocsr()
            return type(X)((X.data / spread[X.indices], X.indices, X.indptr), shape=X.shape)
        X = X.toarray()
    return (np.asarray(X, dtype=np.float64) - center) / spread


# ---- predicting -------------------------------------------------------------------------------------------------------


def planes(kind: str, classes: int) -> int:
    """How many planes a model of this kind has; -1 where it cannot be."""
    if classes == 2:
        return {"binary": 1, "multinomial": 2, "multilabel": 2}.get(kind, -1)
    pairs = classes * (classes - 1) // 2
    return {"one-vs-rest": classes, "one-vs-one": pairs, "multinomial": classes, "multilabel": classes}.get(kind, -1)


def problems(kind: str, classes: int) -> int:
    """How many problems these planes are found by, each with an interval and a certificate of its own."""
    return 1 if kind == "multinomial" else planes(kind, classes)


def pairs(classes: int) -> list[tuple[int, int]]:
    """(0, 1), (0, 2), …, (1, 2), …: which two classes each plane of a one-vs-one model is about."""
    return list(combinations(range(classes), 2))


def decisions(kind: str, scores: Array, classes: int) -> Array:
    """A number for each row and class (one for each row where there are two), the largest being that of the class to choose.

    Scores themselves, or (one-vs-one) the votes of each class, ties broken by the sum of its scores squeezed into (-⅓, ⅓).
    """
    if kind == "multinomial" and classes == 2:
        return np.asarray(scores[:, 1] - scores[:, 0])
    if kind != "one-vs-one":
        return scores[:, 0] if kind == "binary" else scores
    votes = np.zeros((len(scores), classes))
    sums = np.zeros_like(votes)
    for k, (i, j) in enumerate(pairs(classes)):
        won = scores[:, k] > 0
        votes[:, i] += ~won
        votes[:, j] += won
        sums[:, i] -= scores[:, k]
        sums[:, j] += scores[:, k]
    return np.asarray(votes + sums / (3 * (np.abs(sums) + 1)))


def probabilities(kind: str, scores: Array) -> Array:
    """What scores of a logistic loss mean: 1/(1 + e^-score) for each row and class, of several classes divided by their sum (of
    several labels not); and those of a multinomial one, e^score divided by the sum."""
    if kind == "multinomial":
        return softmax(scores)
    with np.errstate(over="ignore"):
        shares = 1.0 / (1.0 + np.exp(-scores))
        if kind == "binary":
            return np.column_stack((1.0 / (1.0 + np.exp(scores[:, 0])), shares[:, 0]))
    if kind == "multilabel":
        return np.asarray(shares)
    totals = shares.sum(axis=1, keepdims=True)
    lost = totals[:, 0] == 0  # all of them underflow
    shares[lost], totals[lost] = 1.0, shares.shape[1]
    return np.asarray(shares / totals)


def chosen(kind: str, scores: Array, classes: int) -> Array:
    """The number of the class of each row; 1 or 0 for each of several labels."""
    found = decisions(kind, scores, classes)
    return np.asarray(found > 0).astype(int) if found.ndim == 1 or kind == "multilabel" else np.asarray(found.argmax(axis=1))
