"""Rows on a Dask cluster: `dask.array`, `dask.dataframe`, delayed blocks, or files that the workers read.

A block of rows stays on the worker that made it, and the work of a pass goes there. What comes back is merged on the workers in a
tree whose shape depends on the number of blocks alone, so that sums are the same to the last bit whoever was first; the driver
gets the root of it. Every block, and every part of a vector over rows, is the result of a task: if its worker is lost, the
scheduler makes it again, and nothing else.

Without a client of `dask.distributed` blocks are made one after the other, anew for each pass, by Dask's own threads in this
process (`Made`): slower, but no more than two of them are in memory.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gordan.arrays import Array, vector, zeros_and_ones
from gordan.errors import InputError, MissingExtra
from gordan.rows.blocks import Blocks, Own, Work, _combine, _norms, _scores, _softmin
from gordan.rows.memory import Dense, Held
from gordan.rows.storage import Sums

# Blocks whose results are merged by one task.
FAN = 8
# Vectors over rows that stay on the workers after the pass that brought them there.
MOST_KEPT = 4
# A vector over rows with fewer entries that are not 0 than this share of them is sent as these.
FEW = 1 / 8
# Entries of rows up to which they are combined here.
MOST_TAKEN = 1 << 22
# Bytes of w and the like, for all blocks together, from which they are sent to each worker once and not with every task.
WORTH_SENDING_ONCE = 1 << 20
# Rows that exact arithmetic asked for, kept on the driver.
MOST_ROWS = 1 << 14


@dataclass(eq=False)
class Chunk:
    """A block on a worker, and the address of that."""

    future: Any
    n: int
    entries: int
    where: str | None = None

    def load(self) -> Held:
        """Its rows, brought here."""
        held: Held = self.future.result()
        return held


@dataclass(eq=False)
class Made:
    """A block that is made here each time it is needed."""

    delayed: Any
    n: int
    entries: int

    def load(self) -> Held:
        """Its rows."""
        held: Held = _here(self.delayed)
        return held


class Workers:
    """The engine: one task for each block, near the block, by names that a dashboard shows (`gordan-softmin`, …)."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._name = uuid.uuid4().hex
        self._count = itertools.count()

    def run(self, work: Work, blocks: Sequence[Any], own: Own, shared: tuple[Any, ...]) -> list[Any]:
        """What `work` gives for each block, brought here."""
        return self.gather(self.start(work, blocks, own, shared))

    def start(self, work: Work, blocks: Sequence[Any], own: Own, shared: tuple[Any, ...]) -> list[Any]:
        """The same as futures: the results stay where they are."""
        per_block: list[Any] = [[block.future for block in blocks], *(list(column) for column in zip(*own, strict=True))]
        size = len(blocks) * sum(part.nbytes for part in shared if isinstance(part, np.ndarray))
        if size > WORTH_SENDING_ONCE:
            shared = tuple(self.keep(part) if isinstance(part, np.ndarray) else part for part in shared)
        return self.map(work, *per_block, *([part] * len(blocks) for part in shared), where=[block.where for block in blocks])

    def map(self, work: Work, *columns: Sequence[Any], where: Sequence[str | None] | None = None) -> list[Any]:
        """A task for each entry of the columns, on the worker at its address in `where`.

        Left to itself the scheduler would queue tasks elsewhere, and move blocks there, not knowing how short they are.
        If that worker is lost, another one does.
        """
        name = f"gordan-{work.__name__.strip('_')}-{self._name}{next(self._count)}"
        where = [None] * len(columns[0]) if where is None else where
        futures: list[Any] = [None] * len(where)
        with _large_graphs():
            for address in dict.fromkeys(where):
                own = [k for k, place in enumerate(where) if place == address]
                pinned = {} if address is None else {"workers": [address], "allow_other_workers": True}
                parts = [[column[k] for k in own] for column in columns]
                for k, future in zip(
                    own, self.client.map(work, *parts, key=[(name, k) for k in own], pure=False, **pinned), strict=True
                ):
                    futures[k] = future
        return futures

    def keep(self, part: Array) -> Any:
        """An array on the workers: the result of a task that holds it, so that it is not lost with one of them."""
        return self.map(_same, [part])[0]

    def merged(self, futures: list[Any], merge: Callable[[list[Any]], Any]) -> Any:
        """The futures' results merged in their order, in a tree of fixed shape; the root is brought here."""
        while len(futures) > 1:
            futures = self.map(merge, [futures[k : k + FAN] for k in range(0, len(futures), FAN)])
        return self.gather(futures)[0]

    def gather(self, futures: list[Any]) -> list[Any]:
        """The results."""
        return list(self.client.gather(futures))


@dataclass(eq=False)
class Parts:
    """A vector over rows, cut like the blocks and where they are; `host` where it came from here.

    `path` leads to it where the tasks give more than that; a stack of vectors has a `height`.
    """

    storage: Cluster
    host: Array | None = None
    made: list[Any] | None = None
    path: tuple[int, ...] = ()
    height: int = 0
    _futures: list[Any] | None = field(default=None, repr=False)

    @property
    def futures(self) -> list[Any]:
        """Its part for each block."""
        if self._futures is None:
            engine = self.storage.engine
            if self.made is None:
                assert self.host is not None
                self._futures = engine.map(_same, list(self.storage.cut(self.host)))
            elif self.path:
                self._futures = engine.map(_entry, self.made, [self.path] * len(self.made))
            else:
                self._futures = self.made
        return self._futures

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return (self.storage.n,)

    def __iter__(self) -> Iterator[Parts]:
        return (Parts(self.storage, made=self.made, path=(*self.path, h)) for h in range(self.height))

    def __mul__(self, other: Any) -> Parts:
        factor = other.host if isinstance(other, Parts) else other
        if self.host is not None and factor is not None:
            return Parts(self.storage, self.host * factor)
        factors = other.futures if isinstance(other, Parts) else [other] * len(self.futures)
        return Parts(self.storage, made=self.storage.engine.map(_product, self.futures, factors))

    def sum(self) -> float:
        """The sum of all entries."""
        if self.host is not None:
            return float(self.host.sum())
        engine = self.storage.engine
        return float(engine.merged(engine.map(_total, self.futures), _added))


class Cluster:
    """The storage of X in blocks on the workers of a cluster. Vectors over rows are `Parts`.

    How many threads the work on a block may use is for the workers to say: their threads, shared by the blocks.
    """

    sums = "float64"
    kind = "dask"

    def __init__(self, client: Any, chunks: Sequence[Chunk], d: int, dtype: Any) -> None:
        self.engine = Workers(client)
        self._blocks = Blocks(chunks, d, dtype, kind=self.kind, engine=self.engine)
        self.blocks, self.ends = self._blocks.blocks, self._blocks.ends
        self.n, self.d, self.entries, self.dtype = self._blocks.n, d, self._blocks.entries, self._blocks.dtype
        self.firsts: list[int] = self.ends[:-1].tolist()  # the first row of each block
        self._kept: list[Parts] = []
        self._threads = max(1, sum(client.nthreads().values()) // len(chunks))

    @property
    def arrays(self) -> tuple[Remote]:
        """The entries for whoever proves something about them."""
        return (Remote(self),)

    def cut(self, values: Array) -> Iterable[Array]:
        """A vector over rows in the parts of the blocks."""
        return (np.ascontiguousarray(values[..., lo:hi]) for lo, hi in itertools.pairwise(self.ends))

    def each(self, work: Work, over_rows: tuple[Any, ...] = (), shared: tuple[Any, ...] = ()) -> list[Any]:
        """`work(rows in memory, *its part of each vector over rows, *shared)` for every block, in their order, brought here.

        A list in place of a vector has one entry for each block.
        """
        return self.engine.gather(self._start(work, over_rows, shared))

    def _start(self, work: Work, over_rows: tuple[Any, ...], shared: tuple[Any, ...]) -> list[Any]:
        columns = [self._column(values) for values in over_rows]
        own: Own = list(zip(*columns, strict=True)) if columns else [()] * len(self.blocks)
        return self.engine.start(work, self.blocks, own, shared)

    def _column(self, values: Any) -> list[Any]:
        """What each block has of it."""
        if isinstance(values, (list, Parts)):
            return values if isinstance(values, list) else values.futures
        return [None] * len(self.blocks) if values is None else list(self.cut(values))

    # ---- vectors over rows -------------------------------------------------------------------------------------------

    def place(self, values: Any, name: str) -> Parts:
        if isinstance(values, Parts):
            return values
        kept = isinstance(values, np.ndarray) and values.dtype == np.int8
        return self._placed(values if kept else vector(values, name, self.n), keep=name != "p")

    def split(self, halves: Any, name: str) -> Parts:
        return halves if isinstance(halves, Parts) else self._placed(zeros_and_ones(halves, name, self.n), keep=True)

    def _placed(self, values: Array, keep: bool) -> Parts:
        """Equal values are not sent twice: methods pass the same p_0 and halves round after round."""
        for parts in self._kept:
            if parts.host is not None and parts.host.dtype == values.dtype and np.array_equal(parts.host, values):
                return parts
        if not keep:
            return Parts(self, values)
        self._kept = [Parts(self, values.copy()), *self._kept[: MOST_KEPT - 1]]
        return self._kept[0]

    def lift(self, values: Any) -> Any:
        return self.place(values, "the vector")

    def fetch(self, values: Parts) -> Array:
        if values.host is not None:
            return values.host
        return np.concatenate(self.engine.gather(values.futures), axis=-1)

    def finite(self, values: Parts) -> bool:
        if values.host is not None:
            return bool(np.isfinite(values.host).all())
        return bool(self.engine.merged(self.engine.map(_finite, values.futures), all))

    def smallest(self, scores: Parts, k: int) -> tuple[Array, Array]:
        """From the k smallest of each block, merged on the workers."""
        found = self.engine.map(_smallest, scores.futures, self.firsts, [k] * len(self.blocks))
        lowest: Lowest = self.engine.merged(found, Lowest.merged)
        return lowest.rows[0], lowest.scores[0]

    def totals(self, scores: Parts, log_p0: Parts | None, groups: Parts | None, sums: Sums) -> Array:
        return sums.totals

    # ---- passes ------------------------------------------------------------------------------------------------------

    def scores(self, w: Array, b: float, signs: Parts, threads: int) -> Parts:
        return Parts(self, made=self._start(_scores, (signs,), (w, b, self._threads)))

    def combine(self, q: Parts, threads: int) -> Array:
        """Of a q that lives on few rows these are taken, if not here already; if on some, the work goes to their blocks."""
        if q.host is not None:
            rows = np.flatnonzero(q.host)
            if 0 < len(rows) * self.entries <= MOST_TAKEN * self.n:
                return self.take(rows).combine(q.host[rows], 1)
            if len(rows) <= FEW * self.n:
                return self._combine_some(rows, q.host)
        combination: Array = self.engine.merged(self._start(_combine, (q,), (self._threads,)), _added)
        return combination

    def _combine_some(self, rows: Array, q: Array) -> Array:
        asked, own = self._asked(rows)
        if not asked:
            return np.zeros(self.d)
        found = self.engine.start(_combine_some, asked, [(part, q[lo + part]) for lo, part in own], (self._threads,))
        combination: Array = self.engine.merged(found, _added)
        return combination

    def _asked(self, rows: Array) -> tuple[list[Any], list[tuple[int, Array]]]:
        """The blocks that have some of these rows (in order), and for each its first row and where in it they are."""
        cuts = np.searchsorted(rows, self.ends)
        asked = [k for k in range(len(self.blocks)) if cuts[k + 1] > cuts[k]]
        return [self.blocks[k] for k in asked], [(int(self.ends[k]), rows[cuts[k] : cuts[k + 1]] - self.ends[k]) for k in asked]

    def softmin(
        self, v: Array, b: Array, signs: Parts, scale: float, log_p0: Parts | None, groups: Parts | None, threads: int
    ) -> tuple[Sums, Parts]:
        pairs = self._start(_softmin, (signs, log_p0, groups), (v, b, scale, self._threads))
        sums: Sums = self.engine.merged(self.engine.map(_entry, pairs, [(0,)] * len(pairs)), Sums.merged)
        return sums, Parts(self, made=pairs, path=(1,), height=len(v))

    def lowest(self, w: Array, b: float, signs: Parts, k: int, groups: Parts | None) -> tuple[list[Array], list[Array], bool]:
        """The k rows of smallest score (of each group) and their scores, lowest first, and whether all scores are finite: one
        reduction, O(k) numbers of each worker."""
        over_rows = (self.firsts, signs, groups)
        found: Lowest = self.engine.merged(self._start(_lowest, over_rows, (k, w, b, self._threads)), Lowest.merged)
        return found.rows, found.scores, found.finite

    def norms(self, p: float, threads: int) -> Array:
        return np.concatenate(self.each(_norms, (), (p, self._threads)))

    def knows_norms(self, p: float) -> bool:
        return False

    def largest_norm(self, p: float) -> float:
        """max_i ‖x_i‖_p; NaN where an entry is not finite."""
        return float(self.engine.merged(self._start(_largest_norm, (), (p, self._threads)), np.max))

    def take(self, i: Array) -> Held:
        return self._blocks.take(i) if len(i) else Dense(np.empty((0, self.d)))

    def gram(self, i: Array, j: Array, scale: float, weights: Array | None = None) -> Array:
        return self._blocks.gram(i, j, scale, weights)

    def first_not_finite(self) -> tuple[int, int, float] | None:
        return self._blocks.first_not_finite()

    part = take


class Remote:
    """The entries as an array of which rows are brought here when asked for; work on all of them goes to the blocks (`each`)."""

    def __init__(self, storage: Cluster) -> None:
        self.storage = storage
        self.shape = (storage.n, storage.d)
        self.each, self.firsts = storage.each, storage.firsts
        self._rows: dict[int, tuple[Held, int]] = {}

    def __len__(self) -> int:
        return self.shape[0]

    def have(self, rows: Sequence[int]) -> None:
        """Bring these rows here together, since they will be asked for one by one."""
        missing = np.array(sorted({int(i) for i in rows} - self._rows.keys()), dtype=np.intp)
        if not len(missing):
            return
        if len(self._rows) + len(missing) > MOST_ROWS:
            self._rows = {}
        held = self.storage.take(missing)
        self._rows.update((int(i), (held, k)) for k, i in enumerate(missing))

    def __getitem__(self, rows: Any) -> Array:
        if np.ndim(rows) == 0 and not isinstance(rows, slice):
            self.have([int(rows)])
            held, k = self._rows[int(rows)]
            row: Array = _plain(held.take(np.array([k])))[0]
            return row
        return _plain(self.storage.take(np.arange(len(self))[rows]))

    def astype(self, dtype: Any) -> Array:
        """All of it."""
        return self[:].astype(dtype, copy=False)


# ---- the work of the workers: functions of modules, since they are sent by name ---------------------------------------


@dataclass(frozen=True)
class Lowest:
    """The k rows of smallest score of each group, lowest first, ties by row; and whether all scores met were finite."""

    k: int
    rows: list[Array]
    scores: list[Array]
    finite: bool

    @staticmethod
    def merged(parts: list[Lowest]) -> Lowest:
        """Those of all parts."""
        k, groups = parts[0].k, range(len(parts[0].rows))
        found = [
            _first_of(k, np.concatenate([part.rows[g] for part in parts]), np.concatenate([part.scores[g] for part in parts]))
            for g in groups
        ]
        return Lowest(k, [rows for rows, _ in found], [scores for _, scores in found], all(part.finite for part in parts))


def _first_of(k: int, rows: Array, scores: Array) -> tuple[Array, Array]:
    order = np.lexsort((rows, scores))[:k]
    return rows[order], scores[order]


def _smallest(scores: Array, first: int, k: int) -> Lowest:
    return _lowest_of(scores, first, k, None)


def _lowest(held: Held, first: int, signs: Array, groups: Array | None, k: int, w: Array, b: float, threads: int) -> Lowest:
    return _lowest_of(held.scores(w, b, signs, threads), first, k, groups)


def _lowest_of(scores: Array, first: int, k: int, groups: Array | None) -> Lowest:
    found = []
    for members in [np.arange(len(scores))] if groups is None else [np.flatnonzero(groups == g) for g in (0, 1)]:
        near = members
        if len(members) > k:  # all that tie with the k-th, so that the earlier rows win
            own = scores[members]
            near = members[own <= np.partition(own, k - 1)[k - 1]]
        found.append(_first_of(k, first + near, scores[near]))
    return Lowest(k, [rows for rows, _ in found], [s for _, s in found], bool(np.isfinite(scores).all()))


def _largest_norm(held: Held, p: float, threads: int) -> float:
    return float(np.max(held.norms(p, threads)))


def _combine_some(held: Held, i: Array, q: Array, threads: int) -> Array:
    return held.take(i).combine(q, threads)


def _added(parts: list[Any]) -> Any:
    return np.sum(parts, axis=0)


def _same(part: Any) -> Any:
    return part


def _entry(found: Any, path: tuple[int, ...]) -> Any:
    for k in path:
        found = found[k]
    return found


def _product(part: Array, factor: Any) -> Array:
    return np.asarray(part * factor)


def _total(part: Array) -> float:
    return float(part.sum())


def _finite(part: Array) -> bool:
    return bool(np.isfinite(part).all())


def _plain(held: Held) -> Array:
    return held.arrays[0] if isinstance(held, Dense) else np.asarray(held.csr().toarray())


def _accepted(piece: Any, first: int) -> Held | None:
    """A piece of X as a block, exactly or not at all; None where it has no rows. `first` is its first row in messages."""
    from gordan.rows.accept import stored

    if isinstance(piece, (str, os.PathLike)):
        from gordan.io import read

        piece = read(piece, labelled=False).X
    if len(getattr(piece, "shape", ())) == 2 and piece.shape[0] == 0:
        return None
    held = stored(piece, first=first)
    if not isinstance(held, Held):
        raise InputError(
            f"a block of X is {type(piece).__name__}; blocks must be NumPy arrays, data frames or SciPy sparse arrays"
        )
    return held


def _measured(held: Held | None) -> tuple[int, int, int, str] | None:
    return None if held is None else (held.n, held.d, held.entries, str(held.dtype))


# ---- what may be passed ----------------------------------------------------------------------------------------------


def is_lazy(values: Any) -> bool:
    """Whether this is a Dask collection, or a list of delayed parts. Imports nothing."""
    dask = sys.modules.get("dask.base")
    if dask is None:
        return False
    if not isinstance(values, (list, tuple)):
        return bool(dask.is_dask_collection(values))
    return bool(values) and all(dask.is_dask_collection(piece) for piece in values)


def are_files(X: Any) -> bool:
    """Whether X is a list of files for the workers of the current client; labels may be strings, too. Imports nothing."""
    named = isinstance(X, (list, tuple)) and bool(X) and all(isinstance(piece, (str, os.PathLike)) for piece in X)
    return named and current_client() is not None


def computed(values: Any) -> Any:
    """A Dask collection, or a list of delayed parts put together, on the host: labels and the like."""
    import dask

    if not isinstance(values, (list, tuple)):
        return values.compute()
    return np.concatenate([np.asarray(part) for part in dask.compute(*values)])


def current_client() -> Any:
    """The client that Dask computes with at present, or None. Imports nothing."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def connect(address: str) -> Any:
    """A client of the scheduler at this address, such as tcp://10.0.0.1:8786."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtra("dask and distributed", "dask", "a cluster") from None
    try:
        return Client(address, timeout="10s")
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"there is no Dask scheduler at {address!r}: {error}; pass its address, as tcp://10.0.0.1:8786"
        ) from None


def on_cluster(X: Any) -> Cluster | Blocks:
    """The storage for a lazy X: blocks on the workers of the current client, or made here, pass by pass, where there is none."""
    from dask import delayed

    pieces = _pieces(X)
    client = current_client()
    name = f"gordan-block-{uuid.uuid4().hex}"
    accepted = delayed(_accepted, pure=False)

    def block(k: int, first: int = 0) -> Any:
        return accepted(pieces[k], first, dask_key_name=f"{name}-{k}-{first}")

    if client is None:
        return _by_passes(len(pieces), block)
    with _large_graphs():
        futures = client.compute([block(k) for k in range(len(pieces))])
    return _settled(client, futures, lambda k, first: client.compute(block(k, first)).result())


def _settled(client: Any, futures: list[Any], again: Callable[[int, int], Any]) -> Cluster:
    """The storage from blocks that are being made; `again(k, first)` makes block k once more, for its message."""
    shapes: list[Any] = []
    for measured in Workers(client).map(_measured, futures):
        try:
            shapes.append(measured.result())
        except InputError as error:
            raise _by_its_row(shapes, error, lambda first: again(len(shapes), first)) from None
    found = [(future, shape) for future, shape in zip(futures, shapes, strict=True) if shape is not None]
    d, dtype = _agreed(shapes)
    places = client.who_has([future for future, _ in found])
    chunks = [Chunk(future, shape[0], shape[2], next(iter(places.get(future.key, ())), None)) for future, shape in found]
    return Cluster(client, chunks, d, dtype)


def _by_passes(count: int, block: Callable[..., Any]) -> Blocks:
    shapes: list[Any] = []
    for k in range(count):
        try:
            shapes.append(_measured(_here(block(k))))
        except InputError as error:
            raise _by_its_row(shapes, error, lambda first: _here(block(len(shapes), first))) from None
    d, dtype = _agreed(shapes)
    made = [Made(block(k), shape[0], shape[2]) for k, shape in enumerate(shapes) if shape is not None]
    return Blocks(made, d, dtype, kind="dask")


def _by_its_row(shapes: list[Any], error: InputError, again: Callable[[int], Any]) -> InputError:
    """The refusal of a block, with rows counted from the first row of X: the blocks before it have been measured."""
    first = sum(shape[0] for shape in shapes if shape is not None)
    if first:
        try:
            again(first)
        except InputError as named:
            return named
    return error


def _agreed(shapes: list[Any]) -> tuple[int, Any]:
    """The number of columns of all blocks, and a type for their entries."""
    found = [shape for shape in shapes if shape is not None]
    if not found:
        raise InputError("X has no rows; at least one is needed")
    for k, shape in enumerate(shapes):
        if shape is not None and shape[1] != found[0][1]:
            raise InputError(f"block {k} of X has {shape[1]} columns, but the first one has {found[0][1]}")
    return found[0][1], np.result_type(*(shape[3] for shape in found))


def _pieces(X: Any) -> list[Any]:
    """The blocks of X, delayed."""
    if isinstance(X, (list, tuple)):
        return [os.fspath(piece) if isinstance(piece, (str, os.PathLike)) else piece for piece in X]
    if hasattr(X, "numblocks"):  # dask.array
        if X.ndim != 2:
            raise InputError(f"X must be a matrix of rows and columns, but its shape is {X.shape}")
        return list(X.rechunk({1: -1}).to_delayed().ravel() if X.numblocks[1] > 1 else X.to_delayed().ravel())
    if hasattr(X, "to_delayed"):  # dask.dataframe
        return list(X.to_delayed())
    return [X]  # one delayed block


@dataclass(frozen=True, eq=False)
class Files:
    """Files of one table that workers have read: rows on the workers, labels here, and the names of the columns."""

    X: Cluster
    y: Array
    names: tuple[str, ...] | None


def read_on(client: Any, path: Path, label: str | None) -> Files:
    """A file, or the Parquet or .npy files of a folder in the order of their names, each read by a worker as a block.

    Workers need to see the files under the same path.
    """
    paths = [path]
    if path.is_dir():
        paths = sorted([*path.glob("*.parquet"), *path.glob("*.npy")])
    if not paths:
        raise InputError(f"{path} is a folder without Parquet or .npy files; put the blocks of the table there")
    engine = Workers(client)
    tables = engine.map(_table, [str(part.resolve()) for part in paths], [label] * len(paths))
    labels, names = zip(*engine.gather(engine.map(_labels, tables)), strict=True)
    if any(name != names[0] for name in names):
        k = next(k for k, name in enumerate(names) if name != names[0])
        raise InputError(f"{paths[k]} has other columns than {paths[0]}: {', '.join(map(repr, names[k] or ()))[:200]}")
    if len({part.dtype.kind for part in labels}) > 1:
        raise InputError(f"the label column has another type in some of the files of {path}")
    X = _settled(client, engine.map(_features, tables), lambda k, first: engine.map(_features, [tables[k]], [first])[0].result())
    return Files(X, np.concatenate(labels), names[0])


def _table(path: str, label: str | None) -> Any:
    from gordan.io import read

    return read(path, label=label)


def _labels(table: Any) -> tuple[Array, tuple[str, ...] | None]:
    return table.y, table.names


def _features(table: Any, first: int = 0) -> Held | None:
    return _accepted(table.X, first)


def _here(delayed: Any) -> Any:
    return delayed.compute(scheduler="threads")


@contextlib.contextmanager
def _large_graphs() -> Iterator[None]:
    """Vectors over rows are sent inside of tasks on purpose, so that they can be sent again: Dask need not warn."""
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        yield
