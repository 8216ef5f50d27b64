"""Checkpoints: a run in a file, from which the same call resumes after it was stopped or killed.

The file is a `container`: a JSON header and raw arrays under one checksum, replaced atomically. This module does not know what a
run consists of (the state of a method, the sums of the loop): any value made of arrays, numbers, text, tuples, and named tuples
and frozen dataclasses that are registered by `checkpointed`, is serialized by its fields and restored bit for bit. A file names
the tag of a type and its fields, so that a class may move. No code in a file is executed: types are looked up among those that
are registered, and filled without calling their code.
"""

from __future__ import annotations

import glob
import hashlib
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gordan import schema
from gordan.arrays import Array
from gordan.errors import InputError, input_errors
from gordan.io import container
from gordan.io.files import require_writable
from gordan.rows import Rows

FORMAT = "gordan-checkpoint-2"
PROBLEM = schema.FieldType((dict,), "texts about the problem", holds=lambda facts: all(map(schema.TEXT.allows, facts.values())))
HEADER_FIELDS = {"format": schema.TEXT, "problem": PROBLEM, "parts": schema.FieldType((dict,), "an object")}
# The seconds between two checkpoints, at least, and the share of the time that writing them may take.
INTERVAL_SECONDS, WRITING_SHARE = 30.0, 0.05
# Fields of a form that say how long and how exactly to work, and do not identify the problem.
EFFORT = ("deadline", "tol")
# A problem is identified by the entries of up to this many rows, fewer if they have more entries than this in all.
MAX_SAMPLED_ROWS, MAX_SAMPLED_ENTRIES = 64, 1 << 20
# After this many seconds, a temporary file is assumed to belong to a process that was killed while writing.
ABANDONED_AFTER = 600.0
T = TypeVar("T")
K = TypeVar("K", bound=type)
# The types that are registered, by their tags, and the other way round.
_types: dict[str, type] = {}
_tags: dict[type, str] = {}


def checkpointed(tag: str) -> Callable[[K], K]:
    """Return a decorator that registers a named tuple or a frozen dataclass, so that checkpoints can hold values of it.

    Files contain the tag, so it must stay the same if the class is renamed or moved; no other class may have it.
    """

    def add(kind: K) -> K:
        if _names(kind) is None:
            raise InputError(f"{kind.__qualname__} cannot be kept in a checkpoint; make it a named tuple or a frozen dataclass")
        other = _types.get(tag)
        if other is not None and (other.__module__, other.__qualname__) != (kind.__module__, kind.__qualname__):
            raise InputError(
                f"{tag!r} is the tag of {other.__module__}.{other.__qualname__} in checkpoints; choose another tag for "
                f"{kind.__module__}.{kind.__qualname__}"
            )
        _types[tag], _tags[kind] = kind, tag
        return kind

    return add


def require_storable(value: Any) -> None:
    """Raise an InputError if a checkpoint cannot hold this value; a run asks at its start and not when it is first written."""
    _serialized(value, _Arrays())


class Checkpoint:
    """The checkpoint file of one run; it need not exist, but if it does, it must be a checkpoint.

    `require` checks that it is one of the same problem. It is written every half minute, or less often if writing takes more than
    a twentieth of the time.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise InputError(f"checkpoint is {path!r:.60}; pass the name of a file, or None")
        self.path = Path(path)
        self.problem: Mapping[str, str] = {}
        self._written: Any = None
        self._found = self._read()
        self._due = time.perf_counter() + INTERVAL_SECONDS

    @property
    def found(self) -> bool:
        """Whether there is a run to resume."""
        return self._found is not None

    @property
    def due(self) -> bool:
        """Whether it is time to write again."""
        return time.perf_counter() >= self._due

    def require(self, problem: Mapping[str, str]) -> None:
        """Make this a checkpoint of `problem` (see `fingerprint`), or raise an InputError if the file is one of another."""
        self.problem = dict(problem)
        if self._found is None:
            return
        stored = self._found[0]["problem"]
        for name in [*problem, *stored]:
            there, here = stored.get(name, "not given"), problem.get(name, "not given")
            if there != here:
                differing = f"{name} is {_short(there)} in the file, but {_short(here)} in this call"
                hint = "repeat the call that made it, pass another file, or remove this one to start over"
                raise InputError(f"{self.path} is the checkpoint of another problem: {differing}; {hint}")

    def restored(self, part: str, kind: type[T]) -> T | None:
        """Return what was passed to `write` under this name, bit for bit; None if there is no file."""
        if self._found is None:
            return None
        header, arrays = self._found
        try:
            found = _restored(header["parts"][part], arrays)
            if found is not None and not isinstance(found, kind):
                raise TypeError(f"its {part} is a {type(found).__name__}")
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
            message = f"{self.path} does not fit this version of gordan: {error}"
            raise InputError(f"{message}; use the version that wrote it, or remove it to start over") from None
        return found

    def write(self, **parts: Any) -> None:
        """Replace the file atomically by one with these parts.

        If this fails, for instance because the disk is full, warn and keep the old file: a long run is not given up for it.
        """
        if self._written is not None and all(parts.get(name) is part for name, part in self._written.items()):
            return
        begin = time.perf_counter()
        arrays = _Arrays()
        taken = {name: _serialized(part, arrays) for name, part in parts.items()}
        header = {"format": FORMAT, "problem": dict(self.problem), "parts": taken}
        try:
            container.save(self.path, header, arrays.stored)
            self._written = parts
        except OSError as error:
            warnings.warn(f"the checkpoint {self.path} was not written: {error.strerror or error}", RuntimeWarning, stacklevel=2)
        now = time.perf_counter()
        self._due = now + max(INTERVAL_SECONDS, (now - begin) / WRITING_SHARE)

    def _read(self) -> tuple[dict[str, Any], dict[str, Array]] | None:
        require_writable(self.path)
        if self.path.exists() and not self.path.is_file():
            raise InputError(f"{self.path} is a pipe or a device; name a file for the checkpoint, which is read again")
        target = Path(os.path.realpath(self.path))
        for left in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
            if time.time() - left.stat().st_mtime > ABANDONED_AFTER:
                left.unlink(missing_ok=True)
        if not self.path.exists():
            return None
        header, arrays = container.load(self.path)
        hint = "use the version that wrote it, or remove it to start over"
        schema.require_format(header.get("format"), (FORMAT,), f"{self.path} is not a checkpoint", hint)
        with input_errors(f"{self.path} is damaged", ValueError):
            return schema.fields(header, HEADER_FIELDS, "a checkpoint"), arrays


def fingerprint(rows: Rows, **facts: Any) -> dict[str, str]:
    """Return texts that identify the problem in any storage: its shape, up to 64 rows, and `facts`.

    Arrays and rows are represented by their SHA-256. Other rows may differ unnoticed, because a hash of all of them would cost as
    much as many passes. Proofs are made from the data at hand, so an unnoticed change can cost time, but not correctness.
    """
    described = {name: _digest(fact) if isinstance(fact, np.ndarray) else repr(fact) for name, fact in facts.items()}
    return {**described, "shape": f"{rows.n} x {rows.d}", "rows": _sampled(rows)}


def method_facts(method: Any, form: Any) -> dict[str, Any]:
    """Return the facts that identify a method that plays: its name, form and guarantee, and the settings of the form."""
    return {"method": method.name, "form": method.form, "guarantee": method.guarantee.statement, "settings": settings(form)}


def settings(value: Any) -> str:
    """Return the numbers and texts in the fields of a form, without its data and without `EFFORT`.

    Names of classes and functions are left out, so that they may change. Numbers have 12 digits: some are computed, and the last
    digits of a logarithm differ between machines.
    """
    if isinstance(value, bool | int | None):
        return repr(value)
    if isinstance(value, str):
        return repr(str(value))  # without the class of an enum
    if isinstance(value, float):
        return f"{value:.12g}"
    if is_dataclass(value) and not isinstance(value, Rows):
        parts = (f"{part.name}={settings(getattr(value, part.name))}" for part in fields(value) if part.name not in EFFORT)
        return f"({', '.join(parts)})"
    return "…"


def _sampled(rows: Rows) -> str:
    count = min(rows.n, MAX_SAMPLED_ROWS, max(2, MAX_SAMPLED_ENTRIES // rows.d))
    uncounted = rows.scaled(1.0)  # a copy, so that its passes are not charged to a method
    taken = uncounted.take(np.unique(np.linspace(0, rows.n - 1, count).astype(np.int64)))
    A = taken.csr()
    if A is None:
        A = taken.dense()
        i, j = np.nonzero(A)
        values = A[i, j]
    else:
        A = A.tocoo()
        order = np.lexsort((A.col, A.row))
        i, j, values = A.row[order], A.col[order], A.data[order]
        i, j, values = i[values != 0], j[values != 0], values[values != 0]
    return _digest(i.astype(np.int64), j.astype(np.int64), values.astype(np.float64))


def _digest(*arrays: Array) -> str:
    whole = hashlib.sha256()
    for array in arrays:
        whole.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
    return whole.hexdigest()


def _short(fact: str) -> str:
    """Return a fact for a message, with digests abbreviated."""
    return f"{fact[:8]}…" if re.fullmatch("[0-9a-f]{64}", fact) else fact[:200]


def computed(form: Any) -> tuple[str, ...]:
    """Return the names of the cached properties of a form that have been computed."""
    return tuple(sorted(name for name in vars(form) if isinstance(getattr(type(form), name, None), cached_property)))


def compute(form: Any, names: tuple[str, ...]) -> None:
    """Compute these properties, which had been computed when the run was written, before their cost is counted again."""
    for name in names:
        if isinstance(getattr(type(form), name, None), cached_property):
            getattr(form, name)


# ---- values in a file -------------------------------------------------------------------------------------------------

OBJECT = schema.FieldType((dict,), "an object")
# Other files hold no NaN, which `read_hex` refuses.
NUMBER = schema.FLOAT._replace(read=lambda plain: math.nan if plain == "nan" else schema.read_hex(plain))
# A value that is an object in the file has exactly the fields of one of these; the first ones are arrays.
ARRAY_FORMS: tuple[dict[str, schema.FieldType], ...] = (
    {"array": schema.TEXT},
    {"bool": OBJECT},
    {"transposed": schema.TEXT},
    {"zeros": schema.COUNT, "at": schema.TEXT, "values": schema.TEXT},
)
VALUES: tuple[dict[str, schema.FieldType], ...] = (
    *ARRAY_FORMS,
    {"float": NUMBER},
    {"scalar": OBJECT},
    {"tuple": schema.LIST},
    {"type": schema.TEXT, "parts": OBJECT},
    {"table": schema.TEXT, "rows": schema.COUNT, "columns": OBJECT},
)


class _Arrays:
    """The arrays of a file, each stored once, however often it occurs."""

    def __init__(self) -> None:
        self.stored: dict[str, Array] = {}
        self._known: dict[int, tuple[Array, Any]] = {}

    def add(self, array: Array) -> Any:
        """Return the description of an array, the same one for the same array."""
        if id(array) not in self._known:
            self._known[id(array)] = (array, _array(array, self))  # a reference, so that no other array gets its id
        return self._known[id(array)][1]

    def store(self, array: Array) -> str:
        """Store the array, and return its name in the file."""
        name = str(len(self.stored))
        self.stored[name] = array
        return name


def _serialized(value: Any, arrays: _Arrays) -> Any:
    """Return the value as JSON, with arrays referred to by name."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"float": value.hex()}
    if isinstance(value, np.generic):
        return {"scalar": _array(np.asarray(value), arrays)}
    if isinstance(value, np.ndarray):
        return arrays.add(value)
    names = _names(type(value))
    if names is not None:
        return {"type": _tag(value), "parts": {name: _serialized(getattr(value, name), arrays) for name in names}}
    if type(value) is tuple:
        columns = _columns(value)
        if columns is not None:
            table = {name: None if column is None else arrays.store(column) for name, column in columns.items()}
            return {"table": _tag(value[0]), "rows": len(value), "columns": table}
        return {"tuple": [_serialized(item, arrays) for item in value]}
    raise InputError(
        f"a {type(value).__qualname__} cannot be kept in a checkpoint; the state of a method is made of NumPy arrays, numbers, "
        "text, tuples, named tuples and frozen dataclasses"
    )


def _tag(value: Any) -> str:
    """Return the tag of the type of the value, or raise an InputError that says how to register it."""
    kind = type(value)
    if kind not in _tags:
        raise InputError(
            f"a {kind.__qualname__} cannot be kept in a checkpoint: its class is not registered; decorate the class with "
            f'@checkpointed("{kind.__module__.rpartition(".")[2]}.{kind.__name__}") of gordan.checkpoint'
        )
    return _tags[kind]


def _columns(records: tuple[Any, ...]) -> dict[str, Array | None] | None:
    """Return many records of one type, whose fields are all numbers or all None, as columns; None for any other tuple."""
    names = _names(type(records[0])) if len({type(record) for record in records}) == 1 else None
    if names is None:
        return None
    columns: dict[str, Array | None] = {}
    for name in names:
        values = [getattr(record, name) for record in records]
        kinds = {type(value) for value in values}
        if kinds == {type(None)}:
            columns[name] = None
        elif kinds == {float} or (kinds == {int} and max(map(abs, values)) < 2**63):
            columns[name] = np.array(values)
        else:
            return None
    return columns


def _array(array: Array, arrays: _Arrays) -> dict[str, Any]:
    if array.dtype == np.bool_:
        return {"bool": _array(array.view(np.uint8), arrays)}
    if array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous:
        return {"transposed": arrays.store(array.T)}  # the order of entries decides how products with it are rounded
    if array.ndim == 1 and array.dtype == np.float64:
        used = np.flatnonzero(np.ascontiguousarray(array).view(np.int64))  # -0 is not 0
        if 2 * len(used) < len(array):
            return {"zeros": len(array), "at": arrays.store(used.astype(np.int64)), "values": arrays.store(array[used])}
    return {"array": arrays.store(array)}


def _restored(plain: Any, arrays: dict[str, Array], known: dict[str, Any] | None = None) -> Any:
    """Return the value that was serialized as `plain`."""
    known = {} if known is None else known
    if plain is None or type(plain) in (bool, int, str):
        return plain
    value = _fields(plain, VALUES)
    if "float" in value:
        return value["float"]
    if "scalar" in value:
        return _stored(value["scalar"], arrays)[()]
    if "tuple" in value:
        return tuple(_restored(item, arrays, known) for item in value["tuple"])
    if "table" in value:
        return _rows_of(value, arrays)
    if "type" in value:
        found = _type(value["type"], value["parts"])
        return _made(found, {name: _restored(part, arrays, known) for name, part in value["parts"].items()})
    name = repr(plain)
    if name not in known:  # what was one array is one again
        known[name] = _stored(plain, arrays)
    return known[name]


def _fields(plain: Any, known: tuple[dict[str, schema.FieldType], ...]) -> dict[str, Any]:
    """Return the fields of a value in a file, which must be exactly those of one of the known ones, or raise a ValueError."""
    for parts in known:
        if type(plain) is dict and plain.keys() == parts.keys():
            return schema.fields(plain, parts, "a value")
    raise ValueError(f"{plain!r:.40} is not a value of a checkpoint")


def _rows_of(plain: dict[str, Any], arrays: dict[str, Array]) -> tuple[Any, ...]:
    """Return the records of one type that were stored as columns."""
    found, nothing = _type(plain["table"], plain["columns"]), [None] * plain["rows"]
    columns = [nothing if name is None else arrays[name].tolist() for name in plain["columns"].values()]
    return tuple(_made(found, dict(zip(plain["columns"], values, strict=True))) for values in zip(*columns, strict=True))


def _stored(plain: dict[str, Any], arrays: dict[str, Array]) -> Array:
    """Return a copy of an array of the file, which is read-only: kernels would be compiled again for it."""
    value = _fields(plain, ARRAY_FORMS)
    if "bool" in value:
        return _stored(value["bool"], arrays).astype(np.bool_)
    if "transposed" in value:
        return arrays[value["transposed"]].copy().T
    if "zeros" in value:
        array = np.zeros(value["zeros"])
        array[arrays[value["at"]]] = arrays[value["values"]]
        return array
    return arrays[value["array"]].copy()


def _made(kind: Any, parts: Mapping[str, Any]) -> Any:
    """Return an instance of this type with these fields, without running any code of the type that a file names."""
    fields = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and fields is not None:
        return tuple.__new__(kind, [parts[name] for name in fields])
    value = object.__new__(kind)
    for name, part in parts.items():
        object.__setattr__(value, name, part)
    return value


def _names(kind: Any) -> tuple[str, ...] | None:
    """Return the fields of a named tuple or a frozen dataclass, None for any other type."""
    if not isinstance(kind, type):
        return None
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return tuple(kind._fields)
    if is_dataclass(kind) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return tuple(part.name for part in fields(kind))
    return None


def _type(tag: str, parts: Collection[str]) -> Any:
    """Return the registered type with this tag, which must have these fields, or raise a ValueError."""
    if tag not in _types:
        raise ValueError(f"no type is registered as {tag!r:.80}; if a module of your own registers it, import that first")
    if {*(_names(_types[tag]) or ())} != {*parts}:
        raise ValueError(f"the type {tag!r:.80} has other fields in this version")
    return _types[tag]
