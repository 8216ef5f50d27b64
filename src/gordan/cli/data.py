"""Read the data of a command: a table with labels, two classes or one class against the rest."""

from __future__ import annotations

import atexit
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gordan.certificates.data import About, Certificate
from gordan.cli.answers import TEMPORARY_COPIES, print_notes, with_original_names
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
from gordan.errors import InputError, did_you_mean, input_errors
from gordan.io import read
from gordan.io.container import is_container
from gordan.io.delimited import DELIMITERS
from gordan.io.files import write_errors_at
from gordan.io.model import Model, scaled, scaling_of
from gordan.io.reading import format_of, names_in
from gordan.io.table import MAX_LISTED, Dialect, Request, Table, equal_names, listed, number
from gordan.memory import fits
from gordan.verdicts.formatting import described
from gordan.verdicts.model_matrix import Names

if TYPE_CHECKING:
    from gordan.arrays import Array
    from gordan.verdicts import Verdict


def model_in(path: Path) -> Model:
    """Read a model; refuse one in which a row may have several labels, because a table has one label per row."""
    if not is_container(path):
        raise InputError(f"{path} is not a model file of gordan; the model comes first, then the data")
    model = Model.load(path)
    if model.kind == "multilabel":
        raise InputError(f"{path} has several labels per row, which commands do not support; use gordan.load in Python")
    return model


@dataclass(frozen=True, eq=False)
class Data:
    """The rows and labels of a file.

    `labels` are those of the file, and `y` is what is separated: the labels, or whether they are `positive`. `classes` are the
    values of y in order; `notices` are the lines about the columns on stderr; `dialect` is the format of a text table;
    `left_out` are the rows of the file that were left out; `named` are the names of its columns; and `scaling` says how X was
    scaled, as in `gordan.io.Model`.
    """

    X: Any
    y: Array
    classes: tuple[Any, ...]
    labels: Array
    named: Names
    path: Path
    positive: str | int | float | bool | None
    notices: tuple[str, ...] = ()
    dialect: Dialect | None = None
    left_out: tuple[int, ...] = ()
    weights: Array | None = None
    scaling: Array | None = None

    @property
    def contrast(self) -> str:
        """The classes in words, such as "yes against no"."""
        if self.positive is not None:
            return f"{self.positive} against the rest"
        return " against ".join(map(str, reversed(self.classes)))

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the columns of X, if they have any."""
        return None if self.named.columns is None else tuple(self.named.columns)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.labels)

    @property
    def d(self) -> int:
        """The number of columns."""
        return int(self.X.d if hasattr(self.X, "d") else self.X.shape[1])

    @property
    def kept(self) -> Array:
        """The numbers in the file, from 0, of the rows that were kept."""
        return np.delete(np.arange(self.n + len(self.left_out)), self.left_out)

    def rows_in_file(self, rows: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers in the file of these rows of X, where rows that were left out are counted."""
        return tuple(self.kept[[*rows]].tolist()) if self.left_out else tuple(rows)

    def with_file_rows(self, verdict: Verdict) -> Verdict:
        """Return the verdict with the rows of its witness numbered as in the file."""
        witness = verdict.stated_witness
        if witness is None or not self.left_out:
            return verdict
        return replace(verdict, stated_witness=replace(witness, rows=self.rows_in_file(witness.rows)))

    @property
    def numbering(self) -> str:
        """How rows are numbered, in words."""
        return "from 0, without the header" + ("; rows that are left out are counted" if self.left_out else "")

    def standardized(self) -> Data:
        """Return the data with columns scaled to standard deviation 1 and, unless they are sparse, mean 0."""
        X = self.X
        dense = isinstance(X, np.ndarray)
        if not (dense and fits(16.0 * X.size)) and not (hasattr(X, "tocsr") and hasattr(X, "multiply")):
            raise InputError(f"--standardize makes a copy of X in memory, but {self.path} stays on disk; scale its columns first")
        scaling = scaling_of(X)
        return replace(self, X=scaled(X, scaling), scaling=scaling)

    @property
    def about(self) -> About:
        """The description of this data for a certificate; after standardization it does not name the file."""
        file = self.scaling is None
        return replace(
            self.named.about,
            file=Path(with_original_names(str(self.path))).name if file else None,
            size=self.path.stat().st_size if file and self.path.is_file() else None,
            positive=None if self.positive is None else str(self.positive),
        )

    def described(self, certificate: Certificate, positive: str | None = None) -> Certificate:
        """Return a certificate about X and y, or about the class `positive` against the rest, with a description of the data."""
        about = self.about if positive is None else replace(self.about, positive=positive)
        rules = (*(("missing",) if self.left_out else ()), *certificate.dropped)
        return described(replace(certificate, dropped=rules), about)

    @property
    def named_X(self) -> Any:
        """X with the names of its columns, if they have any; data that stays in files has them already."""
        return NamedMatrix(self.X, self.names) if self.names is not None and isinstance(self.X, np.ndarray) else self.X

    @property
    def named_y(self) -> Any:
        """The labels with the name of their column, if it has one."""
        y = self.y.view(NamedVector)
        label = self.named.outcome
        y.name = label if self.positive is None else f"{label or 'label'} is {self.positive}"
        return y

    @property
    def named_weights(self) -> Any:
        """The weights with the name of their column, if it has one; None if there are none."""
        if self.weights is None:
            return None
        weights = self.weights.view(NamedVector)
        weights.name = self.named.weight
        return weights


class NamedVector(np.ndarray[Any, Any]):
    """A vector of labels or weights with a name, like a column of a data frame, and possibly with an order of its categories."""

    name: str | None = None
    categories: list[Any] | None = None

    def __array_finalize__(self, of: Any) -> None:
        self.name, self.categories = (getattr(of, name, None) for name in ("name", "categories"))


@dataclass(frozen=True, eq=False)
class NamedMatrix:
    """A matrix with names for its columns, like a data frame."""

    values: Array
    columns: tuple[str, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype, copy=copy)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix."""
        return self.values.shape

    def __getitem__(self, where: Any) -> Any:
        found = self.values[where]
        return NamedMatrix(found, self.columns) if found.ndim == 2 and found.shape[1] == len(self.columns) else found


SIZES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}
MIN_MEMORY = 1 << 26


def parse_size(text: str | None) -> int | None:
    """Return the number of bytes of a size such as 500MB, 1.5GiB or 2g."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?i?)b?", text.strip().lower())
    if found is None or found[2] not in SIZES:
        raise InputError(f"--memory-limit is {text!r}; pass a size such as 500MB, 4GB or 1.5GiB")
    size = int(float(found[1]) * SIZES[found[2]])
    if size < MIN_MEMORY:
        raise InputError(f"--memory-limit is {text}; less than 64 MiB is not enough for the program itself")
    return size


@contextmanager
def on_cluster(address: str | None) -> Iterator[Any]:
    """Return a context with a client of the cluster; the client is None if no cluster was asked for."""
    if address is None:
        yield None
        return
    from gordan.rows.lazy import connect

    client = connect(address)
    try:
        yield client
    finally:
        client.close()


def local_copy(path: Path) -> Path:
    """Return the path of a file, or of a temporary copy of standard input or a pipe, because files are read more than once."""
    stdin = path == Path("-")
    if not stdin and not path.is_fifo():
        return path
    folder = Path(tempfile.mkdtemp(prefix="gordan-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / ("stdin" if stdin else path.name)
    TEMPORARY_COPIES[str(target)] = "standard input" if stdin else str(path)
    opened = nullcontext(sys.stdin.buffer) if stdin else path.open("rb")
    with opened as source, write_errors_at(folder), target.open("wb") as copy:
        shutil.copyfileobj(source, copy)
    return target


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The options for the columns of a file and the format of a text table."""

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
        """The arguments of `gordan.io.read` and `convert` for these options."""
        return {"label": self.label, "drop": self.drop or (), "keep_index": self.keep_index, **self.dialect}

    @property
    def dialect(self) -> dict[str, Any]:
        """The arguments for the format of a text table; a tab may be given as the two characters \\t."""
        sep = "\t" if self.sep == "\\t" else self.sep
        marks = {"sep": sep, "decimal": self.decimal, "thousands": self.thousands}
        return {**marks, "header": not self.no_header, "missing": str(self.missing)}


@dataclass(frozen=True, kw_only=True)
class DataOptions(TableOptions):
    """The options for the file that a command reads, its columns and its classes."""

    file: File
    positive: Positive = None

    @property
    def arguments(self) -> list[str]:
        """The options that differ from their defaults, as they are written on a command line."""
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
        classes: tuple[int, float] = (2, 2),
        *,
        client: Any = None,
        memory_limit: str | None = None,
        weight: str | None = None,
        by_name: bool = False,
    ) -> Data:
        """Read a file of two classes, or one class against the rest; `classes` are the least and the largest number of classes.

        The column `weight` holds weights and is not a feature. Features of one name are refused if a model will have to find them
        `by_name`. With a `client`, the workers of its cluster read the file (see
        `rows.lazy.read_on`). Notices and warnings about the columns are printed to stderr at once.
        """
        path, limit = self.file if client is not None else local_copy(self.file), parse_size(memory_limit)
        if weight is not None and client is None and (format_of(path) in DELIMITERS or self.missing is OnMissing.DROP):
            return self._weighted(path, weight, classes, limit, by_name)
        if weight is not None:
            features = replace(self, file=path, drop=[*(self.drop or ()), weight])
            data = features.read(classes=classes, client=client, memory_limit=memory_limit, by_name=by_name)
            named = replace(data.named, weight=None if weight.lstrip("-").isdigit() else weight)
            return replace(data, weights=_weights_beside(path, self.columns, weight), named=named)
        if client is None:
            return self._data(read(path, **self.columns, memory_limit=limit), path, classes, by_name)
        if self.dialect != TableOptions().dialect:
            raise InputError("--sep, --decimal, --thousands, --no-header and --missing are not supported with --cluster")
        from gordan.rows.lazy import read_on

        table = read_on(client, path, self.label, self.drop or (), self.keep_index)
        _print_notices(table, path, by_name)
        data = _select_classes(table, path, self.positive, classes)
        return replace(data, notices=table.notices)  # no warnings about columns, which would need the rows here

    def _data(self, table: Table, path: Path, allowed: tuple[int, float], by_name: bool) -> Data:
        """Return the data of a table, and print the notices and warnings about its columns."""
        _print_notices(table, path, by_name)
        data = _select_classes(table, path, self.positive, allowed)
        found = warnings_for(table, data.y)
        print_notes(*found)
        return replace(data, notices=(*table.notices, *found), dialect=table.dialect, left_out=table.left_out)

    def _weighted(self, path: Path, weight: str, allowed: tuple[int, float], limit: int | None, by_name: bool) -> Data:
        """Read a table in which one of the columns holds weights, together with the features."""
        table = read(path, **self.columns, memory_limit=limit)
        header = names_in(path, table.dialect) or []
        at = Request().position(weight, header if table.dialect.header else None, path, len(header))
        if at not in table.numbers or len(table.numbers) == 1:
            raise InputError(f"--weight {weight}: this column of {path} is the label, is dropped, or is the only one")
        j = [*table.numbers].index(at)
        rest = [k for k in range(len(table.numbers)) if k != j]
        columns = None if table.names is None else tuple(table.names[k] for k in rest)
        features = replace(table, X=table.X[:, rest], names=columns, numbers=tuple(table.numbers[k] for k in rest))
        data = self._data(features, path, allowed, by_name)
        return replace(data, weights=table.X[:, j].copy(), named=replace(data.named, weight=header[at] or None))


def _print_notices(table: Any, path: Path, by_name: bool) -> None:
    """Print the notices about a table; refuse features of one name where they will have to be found by name."""
    equal = equal_names(path, table.names) if by_name else ""
    if equal:
        raise InputError(equal)
    print_notes(*table.notices)


def _weights_beside(path: Path, columns: dict[str, Any], weight: str) -> Array:
    """Read the column of weights as if it were the label, with the label left out."""
    if format_of(path) not in ("csv", "tsv", "parquet", "npy"):
        raise InputError(f"--weight names a column of a CSV, TSV, Parquet or .npy file, which {path} is not")
    left_out = [*columns["drop"], -1 if columns["label"] is None else columns["label"]]
    with input_errors(f"--weight {weight}", InputError):
        found = read(path, **columns | {"label": weight, "drop": left_out}).y
    if found is None or found.dtype.kind not in "iuf":
        raise InputError(f"--weight {weight}: this column of {path} holds text; weights must be numbers")
    return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True)
class ComputeOptions:
    """The options for where the data is kept and the computation runs."""

    cluster: Cluster = None
    memory_limit: MemoryLimit = None
    device: Device = None


class TooManyClasses(InputError):
    """Raised if a file has more classes than a command can use, which may add advice to the message."""


def _select_classes(table: Any, path: Path, positive: str | None, allowed: tuple[int, float]) -> Data:
    """Return the data of a table, with a number of classes that is `allowed`, or with one class against the rest."""
    assert table.y is not None  # labels were asked for
    classes, names = np.unique(table.y).tolist(), Names(table.names, getattr(table, "label", None))
    fewest, most = allowed
    if len(classes) < fewest:
        raise InputError(f"{path} has one class only, {classes[0]!r}; two are needed")
    if positive is not None:
        found = class_named(positive, classes, path)
        return Data(table.X, table.y == found, (False, True), table.y, names, path, found)
    if len(classes) > most:
        hint = " (or is the label another column? --label NAME)" if len(classes) > MAX_LISTED else ""
        raise TooManyClasses(
            f"{path} has {len(classes)} classes, {listed(classes)}; "
            f"pass --positive {classes[0]} for that class against the rest{hint}"
        )
    return Data(table.X, table.y, tuple(classes), table.y, names, path, None)


def class_named(text: str, classes: list[Any], path: Path) -> Any:
    """Return the class that `text` names; an InputError suggests a similar one."""
    for label in classes:
        if str(label) == text:  # an exact match is preferred to an equal number
            return label
    for label in classes:
        if not isinstance(label, (str, bool)) and number(text.encode(errors="replace")) == label:
            return label
    raise InputError(
        f"{path} has no class {text!r}; {did_you_mean(text, map(str, classes)) or f'its classes are {listed(classes)}'}"
    )
