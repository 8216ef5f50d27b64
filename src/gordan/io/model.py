"""A fitted classifier as plain data, and its file."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.io import container

FORMAT = "gordan-model-1"
KINDS = ("binary", "one-vs-rest", "one-vs-one")
INTERCEPTS = tuple(Intercept)
TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
# Whole numbers from here on are no labels: no float is beside them.
LARGEST_LABEL = 2**1023
# Types of labels beside those that NumPy gives them by itself, and their names in a file.
DTYPES = re.compile("u?int(8|16|32|64)|float(16|32)|object|U[1-9][0-9]{0,8}")
# Characters of an array of text, at most: a small file is not to ask for much memory. Longer labels are kept as objects.
MOST_TEXT = 1 << 18
FIELDS = {"format", "kind", "classes", "class_type", "names", "norm", "nu", "intercept_kind", "version", "certificates"}
Label: TypeAlias = str | int | float | bool


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
    kind : {"binary", "one-vs-rest", "one-vs-one"}
        What the planes separate: classes[1] (positive) from classes[0], k = 1; each class (positive) from the others, one plane a
        class; or classes[j] (positive) from classes[i] for i < j, k = c(c-1)/2 planes in the order (0, 1), (0, 2), …, (1, 2), ….
    margins : (k, 2) float64 array
        The certified interval for the margin of each plane.
    norm, nu, intercept_kind
        The problem that was solved: the norm of feature space, at least 2; how soft the margins are; "free", "penalized" or
        "none". nu is that of all planes where it is the same for all (None: hard margins), also where a fit took it because no
        plane separates; else the one asked for (None: none was). What each plane was fitted with is in its certificate.
    names : tuple of str, optional
        The names of the d features.
    version : str
        The version of gordan that made it.
    certificates : tuple of str, optional
        The certificate of each plane, as JSON text.
    class_dtype : str, optional
        The NumPy type of the labels, such as "uint8", "float32", "U9" or "object"; None for the one that they have by themselves:
        int64 (uint64, object where that is too small), float64, bool, or text of the longest label.
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

    def __post_init__(self) -> None:
        try:
            self._check()
        except (TypeError, AttributeError) as error:
            raise InputError(f"this is no model: {error}") from None

    def _check(self) -> None:
        c, k = len(self.classes), len(self.coef)
        kind = type(self.classes[0]) if c else None
        if c < 2 or kind not in TYPES.values() or any(type(label) is not kind for label in self.classes):
            raise InputError(
                f"a model needs two or more classes, all text, whole numbers, numbers or booleans, not {self.classes!r}"
            )
        if len(set(self.classes)) < c or any(label != label or label in (math.inf, -math.inf) for label in self.classes):
            raise InputError(f"the classes of a model must be distinct, and finite if they are numbers, not {self.classes!r}")
        if any(isinstance(label, int) and abs(label) >= LARGEST_LABEL for label in self.classes):
            raise InputError("a class of a model is a whole number of more than 1023 bits; use shorter labels")
        if self.class_dtype is not None and _dtype_to_write(self.classes, _array(self.classes, self.class_dtype)) is None:
            raise InputError(f"class_dtype of a model is {self.class_dtype!r}, which its labels have by themselves; pass None")
        if self.kind not in KINDS or k != planes(self.kind, c):
            raise InputError(f"a model of kind {self.kind!r} for {c} classes cannot have {k} planes")
        shapes = {"coef": (k, *self.coef.shape[1:2]), "intercept": (k,), "margins": (k, 2)}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.dtype != np.float64 or array.shape != shape or 0 in shape or (name == "coef" and array.ndim != 2):
                raise InputError(
                    f"{name} of a model is a float64 array of shape {shape}, not {array.dtype} of shape {array.shape}"
                )
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            raise InputError("coef and intercept of a model must be finite")
        if not ((self.margins[:, 0] >= 0) & (self.margins[:, 0] <= self.margins[:, 1]) & np.isfinite(self.margins[:, 0])).all():
            raise InputError("margins of a model are intervals 0 <= lower <= upper, lower finite")
        if type(self.norm) is not float or not self.norm >= 2:
            raise InputError(f"norm of a model is a float of at least 2, not {self.norm!r}")
        if self.nu is not None and (type(self.nu) is not float or not 0 < self.nu <= 1):
            raise InputError(f"nu of a model is None or a float in (0, 1], not {self.nu!r}")
        if self.intercept_kind not in INTERCEPTS or type(self.version) is not str:
            raise InputError(f"intercept_kind is one of {', '.join(INTERCEPTS)} and version is text")
        for name, length in {"names": self.coef.shape[1], "certificates": k}.items():
            texts = getattr(self, name)
            if texts is not None and (len(texts) != length or any(type(text) is not str for text in texts)):
                raise InputError(f"{name} of a model is None or {length} texts")
        every = [*self.classes, *(self.names or ()), *(self.certificates or ()), self.version]
        for text in every:
            if isinstance(text, str) and re.search("[\ud800-\udfff]", text):
                raise InputError(f"{text!r} has half a character in it, which cannot be written as UTF-8")

    def scores(self, X: Any) -> Array:
        """x·w + b for each row and plane."""
        return np.asarray(X @ self.coef.T + self.intercept)

    def labels(self, scores: Array) -> Array:
        """The class of each row with these scores."""
        return np.asarray(self.class_array()[chosen(self.kind, scores, len(self.classes))])

    def class_array(self) -> Array:
        """The labels as an array of the type that they were given in."""
        return _array(self.classes, self.class_dtype)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, in one step: there is the old file or the new, never half of one."""
        container.save(path, *self._parts())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Model:
        """Read a model that `save` wrote. Any other, newer or damaged file is refused, and nothing in it is run."""
        return _from_parts(*container.load(path), os.fspath(path))

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return container.encode(*self._parts())

    @staticmethod
    def from_bytes(content: bytes) -> Model:
        """The model that `to_bytes` wrote so, checked as `load` does."""
        return _from_parts(*container.decode(content, "this"), "this")

    def _parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        kind = type(self.classes[0]).__name__
        header = {
            "format": FORMAT,
            "kind": self.kind,
            "classes": [label.hex() if isinstance(label, float) else label for label in self.classes],
            "class_type": kind if self.class_dtype is None else f"{kind} {self.class_dtype}",
            "names": None if self.names is None else list(self.names),
            "norm": self.norm.hex(),
            "nu": None if self.nu is None else self.nu.hex(),
            "intercept_kind": self.intercept_kind,
            "version": self.version,
            "certificates": self.certificates is not None,
        }
        arrays = {"coef": self.coef, "intercept": self.intercept, "margins": self.margins}
        for i, text in enumerate(self.certificates or ()):
            arrays[f"certificate {i}"] = np.frombuffer(text.encode(), np.uint8)
        return header, arrays


def labels_of(array: Array) -> tuple[tuple[Label, ...], str | None]:
    """The labels in an array as a model holds them, `classes` and `class_dtype`; an InputError where they would not come back."""
    classes = tuple(label.item() if isinstance(label, np.generic) else label for label in array.tolist())
    if array.dtype.kind not in "biufUO" or any(type(label) not in TYPES.values() for label in classes):
        raise InputError(f"labels of type {array.dtype} cannot be saved; fit with text, numbers or booleans (y.astype(str), say)")
    return classes, _dtype_to_write(classes, array)


def _array(classes: tuple[Label, ...], dtype: str | None) -> Array:
    """The labels as an array of that type (None: of the one that they have by themselves); refused if it does not hold them."""
    if dtype is not None and not (type(dtype) is str and DTYPES.fullmatch(dtype)):
        raise InputError(f"class_dtype of a model is {dtype!r:.40}; such as uint8, float32, U9 or object is expected, or None")
    if dtype is not None and dtype[0] == "U" and int(dtype[1:]) * len(classes) > MOST_TEXT:
        raise InputError(f"{len(classes)} labels of {dtype[1:]} characters each are too long; shorten them: y.astype('U64'), say")
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


def planes(kind: str, classes: int) -> int:
    """How many planes a model of this kind has; -1 where it cannot be."""
    if classes == 2:
        return 1 if kind == "binary" else -1
    return {"one-vs-rest": classes, "one-vs-one": classes * (classes - 1) // 2}.get(kind, -1)


def pairs(classes: int) -> list[tuple[int, int]]:
    """(0, 1), (0, 2), …, (1, 2), …: which two classes each plane of a one-vs-one model is about."""
    return list(combinations(range(classes), 2))


def decisions(kind: str, scores: Array, classes: int) -> Array:
    """A number for each row and class (one for each row of a binary model), the largest being that of the class to choose.

    Scores themselves, or (one-vs-one) the votes of each class, ties broken by the sum of its scores squeezed into (-⅓, ⅓).
    """
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


def chosen(kind: str, scores: Array, classes: int) -> Array:
    """The number of the class of each row."""
    found = decisions(kind, scores, classes)
    return np.asarray(found > 0).astype(int) if kind == "binary" else np.asarray(found.argmax(axis=1))


def _from_parts(header: dict[str, Any], arrays: dict[str, Array], name: str) -> Model:
    stated = header.get("format")
    if stated != FORMAT:
        raise InputError(f"{name} is not a model this version can read (format {FORMAT!r} expected, {str(stated)[:40]!r} found)")
    try:
        return _model(header, arrays)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise InputError(f"{name} is damaged: {error}") from None


def _model(header: dict[str, Any], arrays: dict[str, Array]) -> Model:
    if set(header) != FIELDS or type(header["certificates"]) is not bool:
        raise ValueError("its fields are not those of a model")
    fixed = ["coef", "intercept", "margins"]
    extra = [f"certificate {i}" for i in range(len(arrays) - len(fixed))] if header["certificates"] else []
    if list(arrays) != fixed + extra:
        raise ValueError(f"its arrays are {', '.join(arrays)}"[:200])
    if type(header["class_type"]) is not str or type(header["classes"]) is not list:
        raise ValueError("its classes are not of a known type")
    kind, _, dtype = header["class_type"].partition(" ")
    if kind not in TYPES or (not dtype and kind != header["class_type"]):
        raise ValueError("its classes are not of a known type")
    classes = tuple(container.read_hex(label) if kind == "float" else label for label in header["classes"])
    if any(type(label) is not TYPES[kind] for label in classes):
        raise ValueError("its classes are of another type than it says")
    if header["names"] is not None and type(header["names"]) is not list:
        raise ValueError("its names are no list")
    return Model(
        classes,
        arrays["coef"],
        arrays["intercept"],
        header["kind"],
        arrays["margins"],
        container.read_hex(header["norm"]),
        None if header["nu"] is None else container.read_hex(header["nu"]),
        header["intercept_kind"],
        header["version"],
        None if header["names"] is None else tuple(header["names"]),
        tuple(arrays[part].tobytes().decode() for part in extra) if header["certificates"] else None,
        dtype or None,
    )
