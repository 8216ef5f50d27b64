"""What a command reads: a table with labels, one class against the rest if asked for, and where its rows are in the file."""

from __future__ import annotations

import atexit
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gordan.certificates.data import About, Certificate
from gordan.cli.answers import COPIES, as_given, note
from gordan.cli.columns import warnings_for
from gordan.cli.options import (
    Cluster,
    Decimal,
    Device,
    Drop,
    File,
    KeepIndex,
    Label,
    MemoryLimit,
    Missing,
    NoHeader,
    OnMissing,
    Positive,
    Sep,
    Thousands,
)
from gordan.errors import InputError, did_you_mean
from gordan.io import read
from gordan.io.delimited import DELIMITERS
from gordan.io.model import Model, scaled, scaling_of
from gordan.io.reading import format_of, names_in
from gordan.io.table import Dialect, Table, Wanted, number
from gordan.memory import fits
from gordan.verdicts.formatting import described

if TYPE_CHECKING:
    from gordan.arrays import Array
    from gordan.verdicts import Verdict

MOST_LISTED = 8


def model_in(path: Path) -> Model:
    """The model in a file; refused where rows may have several labels, of which a table has one."""
    model = Model.load(path)
    if model.kind == "multilabel":
        raise InputError(f"{path} has several labels per row, which commands do not support; use gordan.load in Python")
    return model


@dataclass(frozen=True, eq=False)
class Data:
    """Rows and labels of a file. `labels` are those it has; `y` is what is separated: they, or whether they are `positive`.

    `classes` are the values of y, in order; `notices` are what was said of the columns on stderr; `dialect`
    is how its text is written, `left_out` are the rows of the file that were left out, `label` and `weight` are the names of
    the columns of labels and weights, if they have names, and `scaling` says how X was scaled, as in `gordan.io.Model`.
    """

    X: Any
    y: Array
    classes: tuple[Any, ...]
    labels: Array
    names: tuple[str, ...] | None
    path: Path
    positive: str | int | float | bool | None
    notices: tuple[str, ...] = ()
    dialect: Dialect | None = None
    left_out: tuple[int, ...] = ()
    label: str | None = None
    weights: Array | None = None
    weight: str | None = None
    scaling: Array | None = None

    @property
    def told(self) -> str:
        """The classes in words."""
        if self.positive is not None:
            return f"{self.positive} against the rest"
        return " against ".join(map(str, reversed(self.classes)))

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.labels)

    @property
    def d(self) -> int:
        """And columns."""
        return int(self.X.d if hasattr(self.X, "d") else self.X.shape[1])

    @property
    def kept(self) -> Array:
        """The numbers in the file, from 0, of the rows that were not left out."""
        return np.delete(np.arange(self.n + len(self.left_out)), self.left_out)

    def rows_in_file(self, rows: Sequence[int]) -> tuple[int, ...]:
        """The numbers that these rows of X have in the file, where rows that were left out are counted."""
        return tuple(self.kept[[*rows]].tolist()) if self.left_out else tuple(rows)

    def numbered(self, verdict: Verdict) -> Verdict:
        """The verdict with the numbers that the rows of its witness have in the file."""
        witness = verdict.stated_witness
        if witness is None or not self.left_out:
            return verdict
        return replace(verdict, stated_witness=replace(witness, rows=self.rows_in_file(witness.rows)))

    @property
    def numbering(self) -> str:
        """What the numbers of rows mean, in words."""
        return "from 0, without the header" + ("; rows that are left out are counted" if self.left_out else "")

    def standardized(self) -> Data:
        """The same with columns of mean 0 and standard deviation 1 (of mean as it is, where they are sparse)."""
        X = self.X
        dense = isinstance(X, np.ndarray)
        if not (dense and fits(16.0 * X.size)) and not (hasattr(X, "tocsr") and hasattr(X, "multiply")):
            raise InputError(f"--standardize makes a copy of X in memory, but {self.path} stays on disk; scale its columns first")
        scaling = scaling_of(X)
        return replace(self, X=scaled(X, scaling), scaling=scaling)

    @property
    def about(self) -> About:
        """What a certificate says of this data; where columns were standardized, it is not about the file."""
        file = self.scaling is None
        return About(
            file=Path(as_given(str(self.path))).name if file else None,
            size=self.path.stat().st_size if file and self.path.is_file() else None,
            label=self.label or None,
            weight=self.weight,
            positive=None if self.positive is None else str(self.positive),
            columns=None if self.names is None else tuple(self.names),
        )

    def described(self, certificate: Certificate, positive: str | None = None) -> Certificate:
        """A certificate about X and y, or about the class `positive` against the rest, with where these come from."""
        about = self.about if positive is None else replace(self.about, positive=positive)
        rules = (*(("missing",) if self.left_out else ()), *certificate.dropped)
        return described(replace(certificate, dropped=rules), about)

    @property
    def named_X(self) -> Any:
        """X with the names of its columns, where they have names; those that are left in files have them already."""
        return Named(self.X, self.names) if self.names is not None and isinstance(self.X, np.ndarray) else self.X

    @property
    def named_y(self) -> Any:
        """The labels with the name of their column, where it has one."""
        y = self.y.view(NamedLabels)
        y.name = self.label if self.positive is None else f"{self.label or 'label'} is {self.positive}"
        return y

    @property
    def named_weights(self) -> Any:
        """The weights with the name of their column, where it has one; None where there are none."""
        if self.weights is None:
            return None
        weights = self.weights.view(NamedLabels)
        weights.name = self.weight
        return weights


class NamedLabels(np.ndarray[Any, Any]):
    """Labels, or weights, with a name, in the manner of a column of a data frame, and with the order of the labels, if any."""

    name: str | None = None
    categories: list[Any] | None = None

    def __array_finalize__(self, of: Any) -> None:
        self.name, self.categories = (getattr(of, name, None) for name in ("name", "categories"))


@dataclass(frozen=True, eq=False)
class Named:
    """An array with names for its columns, in the manner of a data frame."""

    values: Array
    columns: tuple[str, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype, copy=copy)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the array."""
        return self.values.shape

    def __getitem__(self, where: Any) -> Any:
        found = self.values[where]
        return Named(found, self.columns) if found.ndim == 2 and found.shape[1] == len(self.columns) else found


SIZES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}
LEAST_MEMORY = 1 << 26


def bytes_of(text: str | None) -> int | None:
    """Bytes from such as 500MB, 1.5GiB or 2g."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?i?)b?", text.strip().lower())
    if found is None or found[2] not in SIZES:
        raise InputError(f"--memory-limit is {text!r}; pass a size such as 500MB, 4GB or 1.5GiB")
    size = int(float(found[1]) * SIZES[found[2]])
    if size < LEAST_MEMORY:
        raise InputError(f"--memory-limit is {text}; less than 64 MiB is not enough for the program itself")
    return size


@contextmanager
def on_cluster(address: str | None) -> Iterator[Any]:
    """A client of the cluster for as long as it is needed; None where none was asked for."""
    if address is None:
        yield None
        return
    from gordan.rows.lazy import connect

    client = connect(address)
    try:
        yield client
    finally:
        client.close()


def on_disk(path: Path) -> Path:
    """The file; for `-` and for a pipe a copy, since files are opened more than once, until the program ends."""
    stdin = path == Path("-")
    if not stdin and not path.is_fifo():
        return path
    folder = Path(tempfile.mkdtemp(prefix="gordan-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / ("stdin" if stdin else path.name)
    COPIES[str(target)] = "standard input" if stdin else str(path)
    with target.open("wb") as copy, nullcontext(sys.stdin.buffer) if stdin else path.open("rb") as source:
        shutil.copyfileobj(source, copy)
    return target


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Options: which columns of a file are read, and how its text is written."""

    label: Label = None
    drop: Drop = None
    keep_index: KeepIndex = False
    sep: Sep = None
    decimal: Decimal = "."
    thousands: Thousands = None
    no_header: NoHeader = False
    missing: Missing = OnMissing.RAISE

    @property
    def columns(self) -> dict[str, Any]:
        """What `gordan.io.read` and `convert` are asked for by these options; a tab may be written as two characters."""
        return {"label": self.label, "drop": self.drop or (), "keep_index": self.keep_index, **self.dialect}

    @property
    def dialect(self) -> dict[str, Any]:
        """How the text is written."""
        sep = "\t" if self.sep == "\\t" else self.sep
        marks = {"sep": sep, "decimal": self.decimal, "thousands": self.thousands}
        return {**marks, "header": not self.no_header, "missing": str(self.missing)}


@dataclass(frozen=True, kw_only=True)
class Source(Columns):
    """Options: the file that a command reads, and which of its columns and classes."""

    file: File
    positive: Positive = None

    @property
    def arguments(self) -> list[str]:
        """The options that were given, as they are written on a command line."""
        words = []
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name == "file" or value == option.default or value == []:
                continue
            for each in value if isinstance(value, list) else [value]:
                words += [f"--{option.name.replace('_', '-')}", *([] if each is True else [str(each)])]
        return words

    def read(
        self,
        *,
        classes: tuple[int, float] = (2, 2),
        client: Any = None,
        memory_limit: str | None = None,
        weight: str | None = None,
    ) -> Data:
        """Read a file of two classes, or take one class against the rest; `classes` are how few and how many there may be.

        The column `weight` holds weights, and is no feature. With a `client` the workers of its cluster read it (see
        `rows.lazy.read_on`). Columns that are left out unasked, or look like the number of the row, are told on stderr at once.
        """
        path, limit = self.file if client is not None else on_disk(self.file), bytes_of(memory_limit)
        if weight is not None and client is None and (format_of(path) in DELIMITERS or self.missing is OnMissing.DROP):
            return self._weighted(path, weight, classes, limit)
        if weight is not None:
            features = replace(self, file=path, drop=[*(self.drop or ()), weight])
            data = features.read(classes=classes, client=client, memory_limit=memory_limit)
            named = None if weight.lstrip("-").isdigit() else weight
            return replace(data, weights=_weights_beside(path, self.columns, weight), weight=named)
        if client is None:
            return self._data(read(path, **self.columns, memory_limit=limit), path, classes)
        own = ("sep", "decimal", "thousands", "no_header", "missing")
        if any(getattr(self, each.name) != each.default for each in fields(self) if each.name in own):
            raise InputError("--sep, --decimal, --thousands, --no-header and --missing are not supported with --cluster")
        from gordan.rows.lazy import read_on

        table = read_on(client, path, self.label, self.drop or (), self.keep_index)
        tell(table.notices)
        data = replace(_chosen(table, path, self.positive, classes), label=getattr(table, "label", None))
        return replace(data, notices=table.notices)  # rows that are elsewhere are not looked at

    def _data(self, table: Table, path: Path, allowed: tuple[int, float]) -> Data:
        """The data of a table that was read here, with what is to be said of its columns."""
        tell(table.notices)
        data = replace(_chosen(table, path, self.positive, allowed), label=table.label)
        found = warnings_for(table, data.y)
        tell(found)
        return replace(data, notices=(*table.notices, *found), dialect=table.dialect, left_out=table.left_out)

    def _weighted(self, path: Path, weight: str, allowed: tuple[int, float], limit: int | None) -> Data:
        """The data of a table in memory, of which one column holds weights: it is read as the features are."""
        table = read(path, **self.columns, memory_limit=limit)
        header = names_in(path, table.dialect) or []
        at = Wanted().position(weight, header if table.dialect.header else None, path, len(header))
        if at not in table.numbers or len(table.numbers) == 1:
            raise InputError(f"--weight {weight}: this column of {path} is the label, is dropped, or is the only one")
        j = [*table.numbers].index(at)
        rest = [k for k in range(len(table.numbers)) if k != j]
        names = None if table.names is None else tuple(table.names[k] for k in rest)
        features = replace(table, X=table.X[:, rest], names=names, numbers=tuple(table.numbers[k] for k in rest))
        data = self._data(features, path, allowed)
        return replace(data, weights=table.X[:, j].copy(), weight=header[at] or None)


def _weights_beside(path: Path, columns: dict[str, Any], weight: str) -> Array:
    """The column of a file that holds the weights: read as its labels, the label being left out."""
    if format_of(path) not in ("csv", "tsv", "parquet", "npy"):
        raise InputError(f"--weight names a column of a CSV, TSV, Parquet or .npy file, which {path} is not")
    left_out = [*columns["drop"], -1 if columns["label"] is None else columns["label"]]
    try:
        found = read(path, **columns | {"label": weight, "drop": left_out}).y
    except InputError as error:
        raise InputError(f"--weight {weight}: {error}") from None
    if found is None or found.dtype.kind not in "iuf":
        raise InputError(f"--weight {weight}: this column of {path} holds text; weights must be numbers")
    return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True)
class Place:
    """Options: where the rows are read and searched."""

    cluster: Cluster = None
    memory_limit: MemoryLimit = None
    device: Device = None


def tell(notices: Iterable[str]) -> None:
    """Say on stderr what is to be said of the columns."""
    for each in notices:
        note(each)


class TooManyClasses(InputError):
    """A file has more classes than a command can use; a command may add what else to pass."""


def _chosen(table: Any, path: Path, positive: str | None, allowed: tuple[int, float]) -> Data:
    """The data of a table: as few and as many classes as are allowed, or one against the rest."""
    assert table.y is not None  # labels were asked for
    classes = np.unique(table.y).tolist()
    fewest, most = allowed
    if len(classes) < fewest:
        raise InputError(f"{path} has one class only, {classes[0]!r}; two are needed")
    if positive is not None:
        found = class_named(positive, classes, path)
        return Data(table.X, table.y == found, (False, True), table.y, table.names, path, found)
    if len(classes) > most:
        many = "" if len(classes) <= MOST_LISTED else f" and {len(classes) - MOST_LISTED} more"
        some = ", ".join(map(str, classes[:MOST_LISTED]))
        hint = " (or is the label another column? --label NAME)" if many else ""
        told = f"{path} has {len(classes)} classes, {some}{many}"
        raise TooManyClasses(f"{told}; pass --positive {classes[0]} for that class against the rest{hint}")
    return Data(table.X, table.y, tuple(classes), table.y, table.names, path, None)


def class_named(text: str, classes: list[Any], path: Path) -> Any:
    """The class of a file that `text` names."""
    for label in classes:
        if str(label) == text:  # before any that is the same as a float
            return label
    for label in classes:
        if not isinstance(label, (str, bool)) and number(text.encode(errors="replace")) == label:
            return label
    shown = ", ".join(map(str, classes[:MOST_LISTED])) + (", …" if len(classes) > MOST_LISTED else "")
    raise InputError(f"{path} has no class {text!r}; {did_you_mean(text, map(str, classes)) or f'its classes are {shown}'}")
