"""Represent a fitted classifier as plain data, and read and write its file."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from gordan.arrays import MAX_LABEL, Array
from gordan.errors import InputError, input_errors
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept
from gordan.io import container
from gordan.losses import Loss, softmax
from gordan.schema import COUNT, FLAG, FLOAT, TEXT, FieldType, choice, each, fields, optional, read_hex, record, require_format

# All of these formats are read, and the last one is written. The first one is that of gordan 0.1.
FORMATS = ("gordan-model-1", "gordan-model-2")
# What the planes of a model separate. As a type, so that mypy refuses comparisons with other words.
Kind = Literal["binary", "one-vs-rest", "one-vs-one", "multinomial", "multilabel"]
TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
# The names in a file of the types of labels, beside the types that NumPy chooses by default.
LABEL_DTYPES = re.compile("u?int(8|16|32|64)|float(16|32)|object|U[1-9][0-9]{0,8}")
# A small file must not be able to ask for much memory, so longer labels are kept as objects.
MAX_LABEL_CHARACTERS = 1 << 18
Label: TypeAlias = str | int | float | bool


@dataclass(frozen=True)
class PlaneFacts:
    """What else is known of one plane of a model.

    `nu` is the value that it was fitted with (None: a hard margin), `separable` says whether its classes are (proved either way;
    None if that was not asked or not decided), and `objective` is the certified interval for the least loss, if a classifier of
    largest margin had to minimize a loss.
    """

    nu: float | None
    separable: bool | None
    objective: tuple[float, float] | None = None


@dataclass(frozen=True)
class Options:
    """The parameters of a fit that are not attributes of `Model`, so that a loaded classifier can be fitted again as before.

    `class_weight` are the class weights of the fit in the order of the classes, or for several labels those of 0 and 1, and
    `balanced` tells whether these were to be balanced. The last three are None for classifiers without such a parameter.
    """

    tol: float
    max_iter: int | None = None
    time_limit: float | None = None
    warm_start: bool = False
    random_state: int | None = None
    balanced: bool = False
    class_weight: tuple[float, ...] | None = None
    method: str | None = None
    multi_class: str | None = None
    on_inseparable: str | None = None


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted linear classifier: k planes x·w + b = 0 for two or more classes.

    Attributes
    ----------
    classes : tuple of str, int, float or bool
        The labels in order, all of one type.
    coef : (k, d) float64 array
        w of each plane.
    intercept : (k,) float64 array
        b of each plane.
    kind : {"binary", "one-vs-rest", "one-vs-one", "multinomial", "multilabel"}
        What the planes separate. "binary": classes[1] (positive) from classes[0], k = 1. "one-vs-rest": each class (positive)
        from all others, one plane per class. "one-vs-one": classes[j] (positive) from classes[i] for i < j, k = c(c-1)/2 planes
        in the order (0, 1), (0, 2), …, (1, 2), …. "multinomial": all classes at once, one plane per class even for two classes;
        this is one problem with one interval and one certificate. "multilabel": a row may have several labels, and each label
        (positive) is separated from the rows without it, one plane per label.
    margins : (k, 2) float64 array
        The certified interval for the margin of each plane, or for the least value of the objective of a `LinearClassifier`. The
        shape is (1, 2) if all planes belong to one problem.
    norm, nu, intercept_kind
        The problem that was solved: the norm of feature space, at least 2; how soft the margins are; and "free", "penalized" or
        "none". If all planes have the same nu, it is that one (None: hard margins), even if the fit chose it because no plane
        separates; otherwise it is the nu that was asked for. `planes` has the nu of each plane.
    version : str
        The version of gordan that fitted the model.
    names : tuple of str, optional
        The names of the d features.
    certificates : tuple of str, optional
        The certificate of each plane, as JSON text.
    class_dtype : str, optional
        The NumPy type of the labels, such as "uint8", "float32", "U9" or "object"; None for the default type: int64 (uint64 or
        object where that is too small), float64, bool, or text of the length of the longest label.
    estimator : str
        The name of the gordan class that was fitted, of which `gordan.load` returns an instance.
    planes : tuple of PlaneFacts, optional
        What else is known of each plane; None for files of gordan 0.1.
    loss, C : optional
        The name of the loss that was minimized, and the factor C of its sum.
    places : (problems, length) float64 array, optional
        What is proved about the exact minimizer of each problem, one row per problem, as in `gordan.certificates.regions.Place`.
    label : str, optional
        The name of the label column of the training data.
    scaling : (2, d) float64 array, optional
        If given, the planes and their certificates apply to (x - scaling[0])/scaling[1] instead of x.
    options : Options, optional
        Further parameters of the fit; None for files that do not have them.
    """

    classes: tuple[Label, ...]
    coef: Array
    intercept: Array
    kind: Kind
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
    options: Options | None = None

    def __post_init__(self) -> None:
        with input_errors("this is not a model", TypeError, AttributeError):
            _check_labels(self.classes, self.class_dtype)
            for name, field in FIELDS.items():
                if not field.form.allows(getattr(self, name)):
                    raise InputError(f"{name} of a model must be {field.form.description}, not {getattr(self, name)!r:.200}")
            self._check_sizes()
            self._check_values()

    def _check_sizes(self) -> None:
        """Raise an InputError if the lengths of arrays and lists do not match."""
        c, k = len(self.classes), len(self.coef)
        if k != planes(self.kind, c):
            raise InputError(f"a model of kind {self.kind!r} for {c} classes cannot have {k} planes")
        d = self.coef.shape[1] if self.coef.ndim == 2 else 0
        m = problems(self.kind, c)
        ends, planes_placed = (k + 1, k) if self.kind == "multinomial" else (2, 1)
        place = 2 + ends + d + planes_placed * (d + Intercept(self.intercept_kind).in_norm)
        shapes = {"coef": (k, max(d, 1)), "intercept": (k,), "margins": (m, 2), "places": (m, place), "scaling": (2, d)}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if not (array is None and name in OPTIONAL_ARRAYS) and (array.dtype != np.float64 or array.shape != shape):
                raise InputError(
                    f"{name} of a model is a float64 array of shape {shape}, not {array.dtype} of shape {array.shape}"
                )
        for name, length in {"names": d, "certificates": m, "planes": m}.items():
            if getattr(self, name) is not None and len(getattr(self, name)) != length:
                raise InputError(f"{name} of a model is None or has {length} entries, not {len(getattr(self, name))}")
        factors = None if self.options is None else self.options.class_weight
        labels = 2 if self.kind == "multilabel" else c
        if factors is not None and len(factors) != labels:
            raise InputError(f"class_weight of a model is None or has {labels} entries, not {len(factors)}")

    def _check_values(self) -> None:
        """Raise an InputError for numbers that are not planes or intervals, and for text that cannot be encoded."""
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            raise InputError("coef and intercept of a model must be finite")
        if self.scaling is not None and not (np.isfinite(self.scaling).all() and (self.scaling[1] > 0).all()):
            raise InputError("scaling of a model must be finite, and its second row positive")
        lower, upper = self.margins.T
        if not ((lower >= 0) & (lower <= upper) & np.isfinite(lower)).all():
            raise InputError("margins of a model must be intervals 0 <= lower <= upper with a finite lower end")
        if self.places is not None and (np.isnan(self.places).any() or not (self.places[:, :2] >= 0).all()):
            raise InputError("places of a model must begin with two distances and contain no NaN")
        texts = *self.classes, *(self.names or ()), *(self.certificates or ()), self.version, self.estimator, self.label
        for text in (*texts, *(() if self.options is None else vars(self.options).values())):
            if isinstance(text, str) and re.search("[\ud800-\udfff]", text):
                raise InputError(f"{text!r} has an unpaired surrogate, which cannot be written as UTF-8")

    def scaled(self, X: Any) -> Any:
        """Return X scaled as the planes require; an X with the wrong number of columns is returned unchanged."""
        return X if self.scaling is None or X.shape[1] != self.coef.shape[1] else scaled(X, self.scaling)

    def scores(self, X: Any) -> Array:
        """Return x·w + b for each row of a scaled X and each plane."""
        return np.asarray(X @ self.coef.T + self.intercept)

    def labels(self, scores: Array) -> Array:
        """Return the predicted class of each row, given its scores."""
        return np.asarray(self.class_array()[chosen(self.kind, scores, len(self.classes))])

    def class_array(self) -> Array:
        """Return the classes as an array of the type that the training labels had."""
        return _label_array(self.classes, self.class_dtype)

    @ieee_floats()
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file atomically."""
        container.save(path, *self._parts())

    @staticmethod
    @ieee_floats()
    def load(path: str | os.PathLike[str]) -> Model:
        """Read a model that `save` wrote; any other, newer or damaged file is refused, and nothing in it is executed."""
        return _from_parts(*container.load(path), os.fspath(path))

    @ieee_floats()
    def to_bytes(self) -> bytes:
        """Return the bytes that `save` writes."""
        return container.encode(*self._parts())

    @staticmethod
    @ieee_floats()
    def from_bytes(content: bytes) -> Model:
        """Return the model that `to_bytes` encoded, with the checks of `load`."""
        return _from_parts(*container.decode(content, "this"), "this")

    def _parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        kind = type(self.classes[0]).__name__
        header = {name: field.form.write(getattr(self, name)) for name, field in FIELDS.items() if name not in FLAGGED} | {
            **{name: getattr(self, name) is not None for name in FLAGGED},
            "format": FORMATS[-1],
            "classes": [label.hex() if isinstance(label, float) else label for label in self.classes],
            "class_type": kind if self.class_dtype is None else f"{kind} {self.class_dtype}",
        }
        arrays = {name: getattr(self, name) for name in ARRAYS}
        arrays |= {name: getattr(self, name) for name in OPTIONAL_ARRAYS if getattr(self, name) is not None}
        for i, text in enumerate(self.certificates or ()):
            arrays[f"certificate {i}"] = np.frombuffer(text.encode(), np.uint8)
        return header, arrays


# ---- the fields of the header -----------------------------------------------------------------------------------------

ARRAYS = ("coef", "intercept", "margins")
OPTIONAL_ARRAYS = ("places", "scaling")
# What is stored as arrays if it is there, which the header says.
FLAGGED = (*OPTIONAL_ARRAYS, "certificates")
HEADER_FIELDS = {"format": TEXT, "classes": FieldType((list,), "a list of labels"), "class_type": TEXT}


class Field(NamedTuple):
    """The declaration of a field in the header: what it holds, and the first format that has it.

    Files of that format that were written before the field was added may lack it if it is `added`. A model from a file without
    the field has the default of `Model`.
    """

    form: FieldType
    since: int = 1
    added: bool = False


NU = optional(FLOAT._replace(description="a float in (0, 1]", holds=lambda nu: 0 < nu <= 1))
INTERVAL = each(FLOAT._replace(holds=lambda end: end >= 0), "an interval", 2)
PLANE_FIELDS = record(
    PlaneFacts,
    "nu, separable and objective",
    nu=NU,
    separable=optional(FLAG),
    objective=optional(INTERVAL._replace(holds=lambda ends: INTERVAL.allows(ends) and math.inf > ends[0] <= ends[1])),
)
POSITIVE = FLOAT._replace(description="a positive float", holds=lambda value: value > 0)
FACTOR = FLOAT._replace(description="a factor", holds=lambda factor: 0 <= factor < math.inf)
OPTIONS = record(
    Options,
    "the parameters of a fit",
    tol=POSITIVE,
    max_iter=optional(COUNT),
    time_limit=optional(POSITIVE),
    warm_start=FLAG,
    random_state=optional(FieldType((int,), "an integer")),
    balanced=FLAG,
    class_weight=optional(each(FACTOR, "the factor of each class")),
    method=optional(TEXT),
    multi_class=optional(TEXT),
    on_inseparable=optional(TEXT),
)
FIELDS = {
    "estimator": Field(TEXT._replace(description="the name of a class", holds=str.isidentifier), since=2),
    "kind": Field(choice(*get_args(Kind))),
    "names": Field(optional(each(TEXT, "texts"))),
    "norm": Field(FLOAT._replace(description="a float of at least 2", holds=lambda norm: norm >= 2)),
    "nu": Field(NU),
    "intercept_kind": Field(choice(*Intercept)),
    "loss": Field(optional(choice(*Loss)), since=2),
    "C": Field(optional(FLOAT._replace(description="a positive float", holds=lambda C: 0 < C < math.inf)), since=2),
    "version": Field(TEXT),
    "planes": Field(optional(each(PLANE_FIELDS, "nu, separable and objective of each plane")), since=2),
    "label": Field(optional(TEXT), since=2),
    **dict.fromkeys(OPTIONAL_ARRAYS, Field(optional(FieldType((np.ndarray,), "an array")), since=2)),
    "certificates": Field(optional(each(TEXT, "texts"))),
    "options": Field(optional(OPTIONS), since=2, added=True),
}


def _from_parts(header: dict[str, Any], arrays: dict[str, Array], name: str) -> Model:
    stated = header.get("format")
    require_format(stated, FORMATS, f"{name} is not a model")
    with input_errors(f"{name} is damaged", ValueError, TypeError, KeyError, OverflowError):
        return _model(header, arrays, 1 + FORMATS.index(stated))


def _model(header: dict[str, Any], arrays: dict[str, Array], version: int) -> Model:
    known = {name: field for name, field in FIELDS.items() if field.since <= version and (name in header or not field.added)}
    forms = {name: FLAG if name in FLAGGED else field.form for name, field in known.items()}
    read = fields(header, forms | HEADER_FIELDS, "a model")
    named = [*ARRAYS, *(name for name in OPTIONAL_ARRAYS if header.get(name))]
    extra = [f"certificate {i}" for i in range(len(arrays) - len(named))] if header["certificates"] else []
    if list(arrays) != [*named, *extra]:
        raise ValueError(f"its arrays are {', '.join(arrays)}"[:200])
    read |= {name: arrays.get(name) for name in (*ARRAYS, *OPTIONAL_ARRAYS)}
    read["certificates"] = tuple(arrays[part].tobytes().decode() for part in extra) if header["certificates"] else None
    read["classes"], read["class_dtype"] = _labels(read["classes"], read.pop("class_type"))
    del read["format"]
    return Model(**read)


# ---- labels -----------------------------------------------------------------------------------------------------------


def _labels(values: list[Any], stated: str) -> tuple[tuple[Label, ...], str | None]:
    """Return `classes` and `class_dtype` from their two fields in the header."""
    kind, _, dtype = stated.partition(" ")
    if kind not in TYPES or (not dtype and kind != stated):
        raise ValueError("its classes are not of a known type")
    classes = tuple(read_hex(label) if kind == "float" else label for label in values)
    if any(type(label) is not TYPES[kind] for label in classes):
        raise ValueError("its classes are not of the type that it states")
    return classes, dtype or None


def _check_labels(classes: tuple[Label, ...], dtype: str | None) -> None:
    """Raise an InputError if these cannot be the classes of a model."""
    kind = type(classes[0]) if classes else None
    if len(classes) < 2 or kind not in TYPES.values() or any(type(label) is not kind for label in classes):
        raise InputError(f"a model needs two or more classes, all text, whole numbers, numbers or booleans, not {classes!r}")
    if len(set(classes)) < len(classes) or any(label != label or label in (math.inf, -math.inf) for label in classes):
        raise InputError(f"the classes of a model must be distinct, and finite if they are numbers, not {classes!r}")
    if any(isinstance(label, int) and abs(label) >= MAX_LABEL for label in classes):
        raise InputError("a class of a model is a whole number of more than 1023 bits; use shorter labels")
    if dtype is not None and _dtype_to_write(classes, _label_array(classes, dtype)) is None:
        raise InputError(f"class_dtype of a model is {dtype!r}, which is the default for its labels; pass None")


def labels_of(array: Array) -> tuple[tuple[Label, ...], str | None]:
    """Return `classes` and `class_dtype` of an array of labels; raise an InputError if they could not be restored."""
    classes = tuple(label.item() if isinstance(label, np.generic) else label for label in array.tolist())
    if array.dtype.kind not in "biufUO" or any(type(label) not in TYPES.values() for label in classes):
        raise InputError(f"labels of type {array.dtype} cannot be saved; use text, numbers or booleans, such as y.astype(str)")
    return classes, _dtype_to_write(classes, array)


def _label_array(classes: tuple[Label, ...], dtype: str | None) -> Array:
    """Return the labels as an array of this type (None: the default type); refuse a type that cannot hold them."""
    if dtype is not None and not (type(dtype) is str and LABEL_DTYPES.fullmatch(dtype)):
        raise InputError(f"class_dtype of a model is {dtype!r:.40}; pass None, or a type such as uint8, float32, U9 or object")
    if dtype is not None and dtype[0] == "U" and int(dtype[1:]) * len(classes) > MAX_LABEL_CHARACTERS:
        raise InputError(
            f"{len(classes)} labels of {dtype[1:]} characters each are too long; shorten them, as y.astype('U64') does"
        )
    own = {str: ["str"], bool: ["bool"], float: ["float64"], int: ["int64", "uint64"]}[type(classes[0])]
    if isinstance(classes[0], str) and max(map(len, map(str, classes))) * len(classes) > MAX_LABEL_CHARACTERS:
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
    """Return the name of the type of an array of labels; None if it is their default type."""
    dtype = array.dtype.newbyteorder("=")
    if dtype == _label_array(classes, None).dtype:
        return None
    return f"U{dtype.itemsize // 4}" if dtype.kind == "U" else dtype.name


# ---- scaling ----------------------------------------------------------------------------------------------------------


def scaling_of(X: Any) -> Array:
    """Return the mean and the standard deviation of each column of X, dense or SciPy's CSR, as `Model.scaling`.

    The deviation of a constant column is given as 1, and the mean of a sparse column as 0, so that it stays sparse.
    """
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
    """Return (x - scaling[0])/scaling[1] for each row of X in float64; a sparse X stays sparse if nothing is subtracted."""
    center, spread = scaling
    if hasattr(X, "tocsr"):
        if not center.any():
            X = X.tocsr()
            return type(X)((X.data / spread[X.indices], X.indices, X.indptr), shape=X.shape)
        X = X.toarray()
    return (np.asarray(X, dtype=np.float64) - center) / spread


# ---- predicting -------------------------------------------------------------------------------------------------------


def planes(kind: Kind, classes: int) -> int:
    """Return the number of planes of a model of this kind; -1 if there is no such model for so many classes."""
    if classes == 2:
        return {"binary": 1, "multinomial": 2, "multilabel": 2}.get(kind, -1)
    pairs = classes * (classes - 1) // 2
    return {"one-vs-rest": classes, "one-vs-one": pairs, "multinomial": classes, "multilabel": classes}.get(kind, -1)


def problems(kind: Kind, classes: int) -> int:
    """Return the number of problems that such a model solves, each with its own interval and certificate."""
    return 1 if kind == "multinomial" else planes(kind, classes)


def pairs(classes: int) -> list[tuple[int, int]]:
    """Return the two classes of each plane of a one-vs-one model: (0, 1), (0, 2), …, (1, 2), …."""
    return list(combinations(range(classes), 2))


def decisions(kind: Kind, scores: Array, classes: int) -> Array:
    """Return the decision function: a number for each row and class (for two classes, one per row); the largest one wins.

    These are the scores or, for one-vs-one, the votes for each class, with ties broken by the sum of its scores mapped to
    (-⅓, ⅓).
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


def probabilities(kind: Kind, scores: Array) -> Array:
    """Return the probability of each class for each row, given the scores of a logistic or multinomial loss.

    This is 1/(1 + e^-score), divided by its sum over the classes if there are several (but not for several labels); for the
    multinomial loss it is e^score divided by its sum.
    """
    if kind == "multinomial":
        return softmax(scores)
    with np.errstate(over="ignore"):
        shares = 1.0 / (1.0 + np.exp(-scores))
        if kind == "binary":
            return np.column_stack((1.0 / (1.0 + np.exp(scores[:, 0])), shares[:, 0]))
    if kind == "multilabel":
        return np.asarray(shares)
    totals = shares.sum(axis=1, keepdims=True)
    lost = totals[:, 0] == 0  # all shares of the row underflow
    shares[lost], totals[lost] = 1.0, shares.shape[1]
    return np.asarray(shares / totals)


def chosen(kind: Kind, scores: Array, classes: int) -> Array:
    """Return the index of the predicted class of each row; for several labels, 1 or 0 for each of them."""
    found = decisions(kind, scores, classes)
    return np.asarray(found > 0).astype(int) if found.ndim == 1 or kind == "multilabel" else np.asarray(found.argmax(axis=1))
