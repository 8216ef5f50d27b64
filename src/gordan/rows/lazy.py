"""The storage of Dask collections, and of files that workers read.

With a client of `dask.distributed` they become blocks on its workers (`rows.cluster`). Without one, Dask's threads in this
process compute the blocks one after the other and anew for each pass: slower, but no more than two of them are in memory.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, aligned
from gordan.errors import InputError, MissingExtra
from gordan.floats import ieee_floats
from gordan.rows.blocks import Blocks, Loadable
from gordan.rows.cluster import Chunk, Cluster, Workers, large_graphs
from gordan.rows.memory import Held


def is_lazy(values: Any) -> bool:
    """Return whether this is a Dask collection, or a list of delayed parts, without importing anything."""
    dask = sys.modules.get("dask.base")
    if dask is None:
        return False
    if not isinstance(values, (list, tuple)):
        return bool(dask.is_dask_collection(values))
    return bool(values) and all(dask.is_dask_collection(piece) for piece in values)


def are_files(X: Any) -> bool:
    """Return whether X is a list of files for the workers of the current client, without importing anything.

    Without a client it is not: labels may be strings, too.
    """
    named = isinstance(X, (list, tuple)) and bool(X) and all(isinstance(piece, (str, os.PathLike)) for piece in X)
    return named and current_client() is not None


def computed(values: Any) -> Any:
    """Compute a Dask collection, or a list of delayed parts, such as labels, and return it on the host."""
    import dask

    if not isinstance(values, (list, tuple)):
        return values.compute()
    return np.concatenate([np.asarray(part) for part in dask.compute(*values)])


def current_client() -> Any:
    """Return the current client of Dask, or None, without importing anything."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def connect(address: str) -> Any:
    """Return a client of the scheduler at this address, such as tcp://10.0.0.1:8786."""
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


# ---- blocks of X -----------------------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """The shape of a block, its number of stored entries, and their type."""

    n: int
    d: int
    entries: int
    dtype: str


# Makes block k again with its rows counted from a given number, so that the message of its refusal names the row of X.
MakeAgain = Callable[[int, int], Any]


def in_blocks(X: Any) -> Cluster | Blocks:
    """Return the storage for a lazy X: blocks on the workers of the current client or, without one, made here in every pass."""
    from dask import delayed

    pieces = _pieces(X)
    client = current_client()
    name = f"gordan-block-{uuid.uuid4().hex}"
    accepted = delayed(_accepted, pure=False)

    def block(k: int, first: int = 0) -> Any:
        return accepted(pieces[k], first, dask_key_name=f"{name}-{k}-{first}")

    blocks = [block(k) for k in range(len(pieces))]
    if client is None:
        measures = [partial(lambda of: _measured(_here(of)), of) for of in blocks]
        found, d, dtype = _nonempty(blocks, measures, lambda k, first: _here(block(k, first)))
        return Blocks([Loadable(shape.n, shape.entries, partial(_here, of)) for of, shape in found], d, dtype, kind="dask")
    with large_graphs():
        futures = client.compute(blocks)
    return _cluster_of(client, futures, lambda k, first: client.compute(block(k, first)).result())


def _cluster_of(client: Any, futures: list[Any], again: MakeAgain) -> Cluster:
    """Return the storage of blocks that are being made on the workers."""
    found, d, dtype = _nonempty(futures, [shape.result for shape in Workers(client).map(_measured, futures)], again)
    places = client.who_has([future for future, _ in found])
    where = [next(iter(places.get(future.key, ())), None) for future, _ in found]
    chunks = [Chunk(n, size, of.result, of, at) for (of, (n, _, size, _)), at in zip(found, where, strict=True)]
    return Cluster(client, chunks, d, dtype)


def _nonempty(
    blocks: list[Any], measures: Sequence[Callable[[], Shape | None]], again: MakeAgain
) -> tuple[list[tuple[Any, Shape]], int, Any]:
    """Return the blocks that have rows, with their shapes, the number of columns, and a common type of the entries.

    A block that is refused is made again, so that the message counts rows from the first row of X.
    """
    shapes: list[Shape | None] = []
    for k, measure in enumerate(measures):
        try:
            shapes.append(measure())
        except InputError as error:
            first = sum(shape.n for shape in shapes if shape is not None)
            try:
                if first:
                    again(k, first)
            except InputError as named:
                raise named from None
            raise error from None
    found = [(block, shape) for block, shape in zip(blocks, shapes, strict=True) if shape is not None]
    if not found:
        raise InputError("X has no rows; at least one is needed")
    d = found[0][1].d
    for k, shape in enumerate(shapes):
        if shape is not None and shape.d != d:
            raise InputError(f"block {k} of X has {shape.d} columns, but the first one has {d}")
    return found, d, np.result_type(*(shape.dtype for _, shape in found))


def _pieces(X: Any) -> list[Any]:
    """Return the blocks of X as delayed values."""
    if isinstance(X, (list, tuple)):
        return [os.fspath(piece) if isinstance(piece, (str, os.PathLike)) else piece for piece in X]
    if hasattr(X, "numblocks"):  # dask.array
        if X.ndim != 2:
            raise InputError(f"X must be a matrix of rows and columns, but its shape is {X.shape}")
        return list(X.rechunk({1: -1}).to_delayed().ravel() if X.numblocks[1] > 1 else X.to_delayed().ravel())
    if hasattr(X, "to_delayed"):  # dask.dataframe
        return list(X.to_delayed())
    return [X]  # one delayed block


# ---- the work on one block, done by a worker or here -------------------------------------------------------------------


@ieee_floats()
def _accepted(piece: Any, first: int) -> Held | None:
    """Return a piece of X as rows in memory, or None if it is empty; `first` is the number of its first row in messages."""
    from gordan.rows.accept import stored

    if isinstance(piece, (str, os.PathLike)):
        from gordan.io import read

        piece = read(piece, labelled=False, keep_index=True).X  # one file of several: its index may begin anywhere
    if len(getattr(piece, "shape", ())) == 2 and piece.shape[0] == 0:
        return None
    held = stored(aligned(piece), first=first)
    if not isinstance(held, Held):
        raise InputError(
            f"a block of X is {type(piece).__name__}; blocks must be NumPy arrays, data frames or SciPy sparse arrays"
        )
    return held


def _measured(held: Held | None) -> Shape | None:
    return None if held is None else Shape(held.n, held.d, held.entries, str(held.dtype))


def _here(delayed: Any) -> Any:
    return delayed.compute(scheduler="threads")


# ---- files that workers read ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Files:
    """The files of one table, read by workers: rows on the workers, labels here, and the names of the columns.

    `notices` are those of a `gordan.io.Table`.
    """

    X: Cluster
    y: Array
    names: tuple[str, ...] | None
    notices: tuple[str, ...]


def read_on(client: Any, path: Path, label: str | None, drop: Sequence[str | int] = (), keep_index: bool = False) -> Files:
    """Read a file, or the Parquet or .npy files of a folder in the order of their names, each by a worker as a block.

    The workers must see the files under the same path. The parameters are those of `gordan.io.read`.
    """
    paths = sorted([*path.glob("*.parquet"), *path.glob("*.npy")]) if path.is_dir() else [path]
    if not paths:
        raise InputError(f"{path} is a folder without Parquet or .npy files; put the blocks of the table there")
    engine = Workers(client)
    asked = {"label": label, "drop": tuple(drop), "keep_index": keep_index}
    asked["drop"], notices = engine.map(_without_index, [str(path.resolve())], [asked])[0].result()
    asked["keep_index"] = True
    tables = engine.map(_table, [str(part.resolve()) for part in paths], [asked] * len(paths))
    labels, names = zip(*engine.gather(engine.map(_labels, tables)), strict=True)
    if any(name != names[0] for name in names):
        k = next(k for k, name in enumerate(names) if name != names[0])
        raise InputError(f"{paths[k]} has other columns than {paths[0]}: {', '.join(map(repr, names[k] or ()))[:200]}")
    if len({part.dtype.kind for part in labels}) > 1:
        raise InputError(f"the label column has another type in some of the files of {path}")

    def again(k: int, first: int) -> Any:
        return engine.map(_features, [tables[k]], [first])[0].result()

    return Files(_cluster_of(client, engine.map(_features, tables), again), np.concatenate(labels), names[0], notices)


def _without_index(path: str, asked: dict[str, Any]) -> tuple[tuple[str | int, ...], tuple[str, ...]]:
    """Return the columns to drop from every file, and the notices; an index may continue from one file to the next."""
    from gordan.io.index import without_index
    from gordan.io.reading import format_of
    from gordan.io.table import Request

    where, wanted = Path(path), Request(**asked)
    if where.is_dir() and next(where.glob("*.parquet"), None) is None:
        return wanted.drop, ()
    wanted, notices = without_index(where, "parquet" if where.is_dir() else format_of(where), wanted)
    return wanted.drop, notices


@ieee_floats()
def _table(path: str, asked: dict[str, Any]) -> Any:
    from gordan.io import read

    return read(path, **asked)


def _labels(table: Any) -> tuple[Array, tuple[str, ...] | None]:
    return table.y, table.names


def _features(table: Any, first: int = 0) -> Held | None:
    return _accepted(table.X, first)
