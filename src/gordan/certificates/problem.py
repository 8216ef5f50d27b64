"""The data of a problem: X with its exact values, y as signs, and a hash that identifies both whatever their storage."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from gordan.arrays import MAX_LABEL, Array, column_values, is_sparse, require_aligned
from gordan.certificates.data import About, Label
from gordan.certificates.matrix import ALWAYS, WORTH_COMPILING, Matrix
from gordan.errors import InputError
from gordan.floats import ieee_floats
from gordan.rows import Block, Storage, column_names, host, in_memory_if_small, require_finite, stored

# The number of rows whose bytes are hashed together; part of the definition of the hash.
CHUNK = 4096
# The largest number of cells that are converted to bytes at a time.
CELLS_HASHED_AT_ONCE = 1 << 18
# If y has exactly these labels, 0 stands for rows that are left out. If -1 or 1 is missing, 0 is a class.
LABELS_WITH_ZERO = [-1, 0, 1]


@dataclass(frozen=True, eq=False)
class Problem:
    """X and y, read exactly.

    `signs` is +1 for classes[1], -1 for classes[0] and 0 for a row that is left out (`counted`). In a problem about `several`
    classes `which` is the number of each row's class and all signs are 1. `about` has the names that X and y came with.
    """

    X: Matrix
    signs: Array
    classes: tuple[Label, ...]
    which: Array | None = None
    about: About | None = None

    @property
    def storage(self) -> Storage:
        """The storage of X."""
        return self.X.storage

    @staticmethod
    @ieee_floats()
    def of(X: Any, y: Any, device: str | None = None, *, several: bool = False) -> Problem:
        """Read X and y; X goes to `device`, if one is named. An InputError says what is wrong with them, and where.

        y must have two classes, or at least two if the problem is about `several`. Whether X is finite is not checked here, but
        by those who pass over X (`require_finite`).
        """
        problem, label = Problem._read(stored(X, device), X, y, None, several), getattr(y, "name", None)
        names = column_names(X, problem.X.d)
        about = About(label=label if isinstance(label, str) else None, columns=None if names is None else tuple(names))
        return replace(problem, about=about)

    @staticmethod
    @ieee_floats()
    def named(X: Any, y: Any, classes: tuple[Label, ...], *, several: bool = False) -> Problem:
        """Read X and y for the classes that a certificate names.

        y may then have only one of these classes, and if it has both of the classes -1 and 1, rows of label 0 are left out.
        """
        return Problem._read(stored(X), X, y, classes, several)

    @staticmethod
    def _read(storage: Storage, X: Any, y: Any, classes: tuple[Label, ...] | None, several: bool) -> Problem:
        """Return the problem of a storage and labels y; `classes` are those of `named`, and `X` is checked to align with y."""
        found, which = read_labels(y, storage.n)
        require_aligned(X=X, y=y)
        if classes is not None and not several and len(classes) == 2:
            negative, positive = classes
            if {*found} <= {*classes} or found == LABELS_WITH_ZERO == [negative, 0, positive]:
                signs = np.array([int(label == positive) - int(label == negative) for label in found], np.int8)[which]
                return Problem(Matrix(storage), signs, (negative, positive))
        if len(found) == 1:
            raise InputError(f"y has one class only, {found[0]!r}; two are needed")
        if several:
            return Problem(Matrix(storage), np.ones(storage.n, np.int8), tuple(found), which=which)
        if len(found) != 2:
            raise InputError(f"y has {len(found)} classes; two are needed: pass y == one of them for that class against the rest")
        signs = 2 * which.astype(np.int8) - 1
        return Problem(Matrix(storage), signs, (found[0], found[1]))

    def signs_for(self, classes: tuple[Label, ...]) -> Array:
        """Return the signs for the classes in this order."""
        return self.signs if classes == self.classes else -self.signs

    def which_for(self, classes: tuple[Label, ...]) -> Array:
        """Return the number of each row's class for the classes in this order."""
        assert self.which is not None
        return np.array([classes.index(label) for label in self.classes])[self.which]

    def in_memory_if_small(self) -> Problem:
        """Return the same problem, moved to memory if it has few rows on a device or a cluster: finders are faster in memory."""
        storage = in_memory_if_small(self.storage)
        return self if storage is self.storage else replace(self, X=Matrix(storage))

    def counted(self) -> tuple[Problem, Array | None]:
        """Return the problem without rows of sign 0, and the numbers of the remaining rows (None if all remain)."""
        if self.signs.all():
            return self, None
        rows = np.flatnonzero(self.signs)
        return self.part(rows), rows

    def part(self, rows: Array) -> Problem:
        """Return the problem with these rows only."""
        which = None if self.which is None else self.which[rows]
        return replace(self, X=Matrix(self.storage.part(rows)), signs=self.signs[rows], which=which)

    def watched(self, given: Any) -> Problem:
        """Return the same problem with an X that notices later changes, so that `hash` is about X as it is now."""
        X = self.X.watched(given)
        return self if X is self.X else replace(self, X=X)

    def require_finite(self) -> None:
        """Raise an InputError that names the entry if X has NaN or infinity. At most one pass over X.

        Norms, which the proofs about many dense rows need as well, are finite only for rows whose entries are finite.
        """
        if not (self.storage.is_array and self.storage.entries >= WORTH_COMPILING and np.isfinite(self.X.norms).all()):
            require_finite(self.storage)

    @ieee_floats()
    def hash(self, intercept: str) -> str:
        """Return the SHA-256 of the SHA-256 of each chunk of 4,096 rows, then shape, classes in order, intercept and labels.

        A row is the number of its nonzero entries, then these in column order, each as int64 column and float64 value, all
        little-endian; -0 counts as 0. So neither storage nor dtype matters. A class is text as JSON writes it, or a number: the
        digits of an integer (also for True, 1.0 and -0.0), else `float.hex`. Labels are the signs as int8, or, for three or more
        classes, their numbers as int64. Raises an InputError if X has changed since `watched`.
        """
        self.X.require_unchanged("certificate")
        head = f"{','.join(map(class_text, self.classes))};{intercept};"
        if self.which is None:
            labels = self.signs.astype("<i1")
        else:
            labels = (2 * self.which - 1).astype("<i1") if len(self.classes) == 2 else self.which.astype("<i8")
        return hash_of(self.X, head, labels.tobytes())


def hash_of(X: Matrix, head: str, labels: bytes) -> str:
    """Return the SHA-256 of the digests of the chunks of X, its shape, the head and the labels."""
    whole = hashlib.sha256()
    # remembered, since these digests are the same for all label vectors of one X
    whole.update(X.remembered("digests", ALWAYS, lambda: b"".join(_digests(X.storage))))
    whole.update(f"{X.n},{X.d};{head}".encode())
    whole.update(labels)
    return whole.hexdigest()


def class_text(label: Label) -> str:
    """Return a class as the hash reads it; labels that are equal give the same text, whatever their type."""
    if isinstance(label, str):
        return json.dumps(label)
    return str(int(label)) if math.isfinite(label) and label == int(label) else float(label).hex()


def _digests(storage: Storage) -> Iterator[bytes]:
    """Yield the SHA-256 of each chunk, computed where the rows are stored.

    Only chunks that are split between several blocks are sent here as bytes.
    """
    open_number, open_chunk = -1, hashlib.sha256()
    for number, whole, content in storage.each_block(_chunk, (), (CHUNK, storage.n), step=CHUNK):
        if open_number not in (-1, number):
            yield open_chunk.digest()
            open_number, open_chunk = -1, hashlib.sha256()
        if whole:
            yield content
        else:
            open_number = number
            open_chunk.update(content)
    if open_number != -1:
        yield open_chunk.digest()


def _chunk(block: Block, rows: int, n: int) -> tuple[int, bool, bytes]:
    """Return the number of the chunk that the block is in, whether the block is all of it, and its digest or else its bytes.

    A chunk has this number of `rows`, except for the last one of the n rows of X.
    """
    step = max(1, CELLS_HASHED_AT_ONCE // block.d)
    parts = (_bytes(block.only(np.arange(lo, min(lo + step, block.n)))) for lo in range(0, block.n, step))
    number, whole = block.first // rows, block.n == min(rows, n - block.first // rows * rows)
    if not whole:
        return number, whole, b"".join(parts)
    chunk = hashlib.sha256()
    for part in parts:
        chunk.update(part)
    return number, whole, chunk.digest()


def _bytes(block: Block) -> bytes:
    """Return the bytes of these rows that are hashed: for each the number of its nonzero entries, then columns and values."""
    found = block.entries()
    place, columns, values = (part[found[2] != 0] for part in found)
    counts = np.bincount(place, minlength=block.n)
    words = np.empty(block.n + 2 * len(values), "<i8")
    words[np.arange(block.n) + 2 * (np.cumsum(counts) - counts)] = counts
    at = place + 1 + 2 * np.arange(len(values))
    words[at], words[at + 1] = columns, values.astype("<f8").view("<i8")
    return words.tobytes()


def is_one_hot(array: Array) -> bool:
    """Return whether each row of a table has one 1 and otherwise zeros."""
    return bool(((array == 0) | (array == 1)).all() and (array.sum(axis=1) == 1).all())


def read_labels(y: Any, n: int) -> tuple[list[Label], Array]:
    """Return the distinct labels of y in order (str, int, float or bool), and the position of each row's label among them.

    NaN, None, NA and infinity are refused, as are labels of mixed kinds.
    """
    if np.ma.is_masked(y):
        raise InputError(f"y[{int(np.flatnonzero(np.ma.getmaskarray(y))[0])}] is masked; every row needs a label (drop that row)")
    if is_sparse(y):
        raise InputError("y is a sparse matrix; pass y.toarray()")
    if isinstance(y, (list, tuple)):  # np.asarray would turn labels of mixed kinds into text
        y = np.fromiter(y, dtype=object, count=len(y))
    array = np.asarray(host(column_values(y)))
    if array.ndim == 2 and 1 in array.shape:
        array = array.reshape(-1)
    if array.ndim != 1:
        hint = (
            "; pass one column (separate, maximize_margin, and minimize_loss and the classifiers unless the loss is multinomial, "
        )
        hint += "accept a table of labels)"
        if array.ndim == 2 and array.dtype.kind in "biuf" and is_one_hot(array):
            hint = ", with one 1 in each row; pass y.argmax(axis=1)"
        found = f"its shape is {array.shape}" if hasattr(y, "ndim") else f"it is of type {type(y).__name__}"
        raise InputError(f"y must be one label per row, but {found}{hint if array.ndim == 2 else ''}")
    if len(array) != n:
        raise InputError(f"X has {n} rows but y has {len(array)} labels")
    require_labels(array[:0])
    if array.dtype.kind in "biufU":
        return _read_array(array)
    plain = _of_one_kind([_label(value, i) for i, value in enumerate(array)])
    try:
        ordered: list[Label] = sorted({*plain})
    except TypeError:
        raise InputError("y mixes text and numbers; use labels of one kind") from None
    place = {label: k for k, label in enumerate(ordered)}
    return ordered, np.array([place[label] for label in plain])


def _read_array(array: Array) -> tuple[list[Label], Array]:
    """Return what `read_labels` does, for an array of numbers, booleans or text."""
    if array.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(array))
        if len(wrong):
            _refuse_float(array[wrong[0]].item(), int(wrong[0]))
    if len(array) and array.dtype.kind != "U":
        low, high = array.min(), array.max()
        second = array == high
        if low != high and (second | (array == low)).all():  # two distinct numbers: faster than np.unique, which sorts
            return [low.item(), high.item()], second.astype(np.intp)
        if array.dtype.kind in "iu" and int(high) - int(low) < len(array):  # a small range of integers: faster as well
            above = (array - low if array.dtype.kind == "u" else array.astype(np.int64) - int(low)).astype(np.intp)
            held = np.bincount(above) > 0
            return [int(low) + k for k in np.flatnonzero(held).tolist()], (np.cumsum(held) - 1)[above]
    distinct, which = np.unique(array, return_inverse=True)
    return distinct.tolist(), which


def _of_one_kind(labels: list[Label]) -> list[Label]:
    """Return labels that mix booleans, integers and floats as the last of these types that occurs; others unchanged."""
    kinds = {*map(type, labels)}
    if len(kinds) == 1 or str in kinds:
        return labels
    numbers: list[Label] = [float(label) if float in kinds else int(label) for label in labels]
    for i, (label, number) in enumerate(zip(labels, numbers, strict=True)):
        if number != label:
            raise InputError(f"y[{i}] is {label}, which float64 cannot hold, beside labels that are floats; use text for labels")
    return numbers


def is_table(X: Any, y: Any) -> bool:
    """Return whether y has several columns of labels. One column, or one row if X has more, is a single label vector."""
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, (list, tuple)) and len(y) and isinstance(y[0], (list, tuple, np.ndarray)):
        shape = (len(y), len(y[0]))
    if shape is None or len(shape) != 2 or shape[1] == 1:
        return False
    return shape[0] != 1 or getattr(X, "shape", (len(X) if hasattr(X, "__len__") else 0,))[0] == 1


def read_label_table(Y: Any, n: int) -> tuple[tuple[Label, Label], Array]:
    """Return the classes, (False, True) or (-1, 1), and the signs (n × k) as int8 in Fortran order, 0 for rows left out."""
    if np.ma.is_masked(Y):
        i, j = (int(at) for at in np.argwhere(np.ma.getmaskarray(Y))[0])
        raise InputError(f"Y[{i}, {j}] is masked; 0 beside -1 and 1 leaves a row out")
    if is_sparse(Y):
        raise InputError("Y is a sparse matrix; pass Y.toarray()")
    try:
        array = np.asarray(host(column_values(Y)))
    except ValueError as error:
        raise InputError(f"Y is not a table of labels: {error}") from None
    if array.ndim != 2 or len(array) != n:
        raise InputError(f"Y must have {n} rows as X does and a column for each label vector, but its shape is {array.shape}")
    if array.dtype == object and all(isinstance(value, (bool, np.bool_)) for value in array.flat):
        array = array.astype(bool)
    if array.dtype == bool:
        signs = np.asfortranarray(array).view(np.int8) * np.int8(2)
        signs -= 1
        return (False, True), signs
    signs = _read_signs(array)
    if array.size and not (signs < 0).any():
        one_hot = bool((signs.sum(axis=1) == 1).all())
        hint = "; each row has one 1: for one class a row, pass y = Y.argmax(axis=1) to a classifier" if one_hot else ""
        raise InputError(f"Y, of shape {array.shape}, has only 0 and 1, and 0 leaves a row out; pass Y == 1, or -1/+1{hint}")
    empty = np.flatnonzero(~signs.any(axis=0))
    if len(empty):
        raise InputError(f"Y[:, {int(empty[0])}] leaves out every row; leave out that column")
    # a checker could not distinguish such a column from one whose classes are 0 and the other number
    one_sign = (signs >= 0).all(axis=0) | (signs <= 0).all(axis=0)
    unclear = np.flatnonzero(one_sign & ~signs.all(axis=0))
    if len(unclear):
        raise InputError(
            f"Y[:, {int(unclear[0])}] has 0 and labels of one sign only, so that 0 could be a class or a row left out; leave out "
            "that column"
        )
    return (-1, 1), signs


def _read_signs(array: Array) -> Array:
    """Return a table of -1, 0 and 1 as int8 in Fortran order; an InputError names the first other entry."""
    if array.dtype.kind not in "iufO":
        raise InputError(f"Y has labels of type {array.dtype}; pass True and False, or -1, 0 and 1")
    plain = array.dtype != object
    known = (array == -1) | (array == 0) | (array == 1) if plain else np.vectorize(_is_sign, otypes=[bool])(array)
    if not known.all():
        i, j = (int(at) for at in np.argwhere(~known)[0])
        raise InputError(f"Y[{i}, {j}] is {array[i, j]!r}; pass True and False, or -1, 0 and 1, where 0 leaves the row out")
    return np.asfortranarray(array.astype(np.int8))


def _is_sign(value: Any) -> bool:
    """Return whether a value is the number -1, 0 or 1."""
    return isinstance(value, (int, float, np.number)) and value in LABELS_WITH_ZERO


def require_labels(labels: Array) -> None:
    """Refuse an array of labels that are not text, numbers or booleans, and text that ends in NUL, which NumPy does not keep."""
    if labels.dtype.kind not in "biufUOT" or labels.dtype.char == "g":
        raise InputError(f"y has labels of type {labels.dtype}; use text, numbers or booleans (y.astype(str), say)")
    for label in labels.tolist():
        if isinstance(label, str) and label.endswith("\0"):  # NumPy's == ignores it, also in arrays of objects
            raise InputError(f"y has the label {label!r}; use labels that do not end in NUL characters")


def _refuse_float(value: float, i: int) -> NoReturn:
    """Raise an InputError about a label of row i that is NaN or infinite."""
    if math.isnan(value):
        raise InputError(f"y[{i}] is {value}; every row needs a label (drop that row)")
    raise InputError(f"y[{i}] is {value}; pass finite numbers or text for labels")  # as scikit-learn does


def _label(value: Any, i: int) -> Label:
    """Return the label of row i as a plain str, int, float or bool; an InputError says why it cannot be one."""
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":  # dates would become integers
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        _refuse_float(value, i)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        raise InputError(f"y[{i}] is {value}; every row needs a label (drop that row)")
    if isinstance(value, int) and abs(value) >= MAX_LABEL:
        raise InputError(f"y[{i}] is a number of {value.bit_length()} bits; use shorter labels")
    if not isinstance(value, (str, int, float, bool)):
        raise InputError(f"y[{i}] is {value!r}; labels must be text, numbers or booleans")
    if isinstance(value, str) and value.endswith("\0"):
        raise InputError(f"y[{i}] is {value!r}; labels must not end in NUL characters, which NumPy's text does not keep")
    return next(kind(value) for kind in (bool, str, int, float) if isinstance(value, kind))  # the value of an Enum member
