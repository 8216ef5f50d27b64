"""Rows on a Dask cluster.

A block of rows stays on the worker that made it, and the work of a pass is sent there. Results are merged on the workers in a
tree whose shape depends on the number of blocks alone, so that sums are identical bit for bit whichever worker is fastest; the
client receives the root. Every block, and every part of a vector over rows, is the result of a task: if its worker is lost, the
scheduler recomputes it and nothing else.
"""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from gordan.arrays import Array, zeros_and_ones
from gordan.errors import InputError
from gordan.rows import tasks
from gordan.rows.blocks import InBlocks, Loadable, Own, Work
from gordan.rows.storage import MIN_ENTRIES, Lowest, Sums, row_vectors, sums_of

# How many results one task of the tree merges.
FAN_IN = 8
# How many vectors over rows stay on the workers after the pass that brought them there.
MAX_CACHED_VECTORS = 4
# If at most this share of a vector over rows is nonzero, only its nonzero entries are sent.
SPARSE_SHARE = 1 / 8
# Rows of up to this many entries are combined in this process.
MAX_LOCAL_ENTRIES = 1 << 22
# If w and the like would take more bytes than this in all tasks together, they are sent once to each worker instead.
MAX_BYTES_IN_TASKS = 1 << 20
# For proofs about up to this many rows, the rows are brought here; beyond, the work is sent to the rows.
MAX_LOCAL_ROWS = 4096

# What the results of tasks are merged to.
Merged = TypeVar("Merged")


@dataclass(frozen=True, eq=False)
class Chunk(Loadable):
    """A block on a worker, and the address of that worker."""

    future: Any
    where: str | None = None


class Workers:
    """The workers of a cluster, given one task per block near that block, named for the dashboard (`gordan-softmin`, …)."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._name = uuid.uuid4().hex
        self._count = itertools.count()

    def start(self, work: Work, blocks: Sequence[Any], own: Own, shared: tuple[Any, ...]) -> list[Any]:
        """Start `work` for each block and return the futures: the results stay where they are."""
        per_block: list[Any] = [[block.future for block in blocks], *(list(column) for column in zip(*own, strict=True))]
        size = len(blocks) * sum(part.nbytes for part in shared if isinstance(part, np.ndarray))
        if size > MAX_BYTES_IN_TASKS:  # as the result of a task, which is recomputed if its worker is lost
            shared = tuple(self.map(tasks.same, [part])[0] if isinstance(part, np.ndarray) else part for part in shared)
        return self.map(work, *per_block, *([part] * len(blocks) for part in shared), where=[block.where for block in blocks])

    def map(self, work: Work, *columns: Sequence[Any], where: Sequence[str | None] | None = None) -> list[Any]:
        """Start a task for each entry of the columns, on the worker at its address in `where`.

        Left to itself, the scheduler would queue tasks on other workers and move blocks there, because it does not know how short
        the tasks are. If the worker is lost, another one takes its place.
        """
        if self.client.status == "closed":
            raise InputError(
                "the rows are on a Dask cluster whose client was closed; ask for .certificate and the like while it is open"
            )
        name = f"gordan-{work.__name__.strip('_')}-{self._name}{next(self._count)}"
        where = [None] * len(columns[0]) if where is None else where
        futures: list[Any] = [None] * len(where)
        with large_graphs():
            for address in dict.fromkeys(where):
                own = [k for k, place in enumerate(where) if place == address]
                pinned = {} if address is None else {"workers": [address], "allow_other_workers": True}
                parts = [[column[k] for k in own] for column in columns]
                for k, future in zip(
                    own, self.client.map(work, *parts, key=[(name, k) for k in own], pure=False, **pinned), strict=True
                ):
                    futures[k] = future
        return futures

    def merged(self, futures: list[Any], merge: Callable[[list[Any]], Merged]) -> Merged:
        """Merge the results in their order, in a tree of fixed shape, and return the root."""
        while len(futures) > 1:
            futures = self.map(merge, [futures[k : k + FAN_IN] for k in range(0, len(futures), FAN_IN)])
        root: Merged = self.gather(futures)[0]
        return root

    def gather(self, futures: list[Any]) -> list[Any]:
        """Return the results of the futures, in their order."""
        return list(self.client.gather(futures))


@dataclass(eq=False)
class Spread:
    """A vector over rows, split like the blocks and stored with them.

    `host` is the vector itself if it came from this process, `made` the futures of tasks that computed it; `path` leads to it in
    their nested results. A stack of vectors has a `height`, a block of vectors a `width`.
    """

    storage: Cluster
    host: Array | None = None
    made: list[Any] | None = None
    path: tuple[int, ...] = ()
    height: int = 0
    width: tuple[int, ...] = ()
    _futures: list[Any] | None = field(default=None, repr=False)

    @property
    def futures(self) -> list[Any]:
        """The part of each block, as a future."""
        if self._futures is None:
            workers = self.storage.workers
            if self.made is None:
                assert self.host is not None
                self._futures = workers.map(tasks.same, list(self.storage.cut(self.host)))
            elif self.path:
                self._futures = workers.map(tasks.entry, self.made, [self.path] * len(self.made))
            else:
                self._futures = self.made
        return self._futures

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the corresponding array."""
        return (self.storage.n, *self.width) if self.host is None else self.host.shape

    def __iter__(self) -> Iterator[Spread]:
        return (Spread(self.storage, made=self.made, path=(*self.path, h)) for h in range(self.height))

    def __getitem__(self, at: Any) -> Spread:
        """Return some columns of a block of vectors that came from this process."""
        assert self.host is not None
        return self.storage.to_storage(np.ascontiguousarray(self.host[at]), "columns")

    def __mul__(self, other: Any) -> Spread:
        factor = other.host if isinstance(other, Spread) else other
        if self.host is not None and factor is not None:
            return Spread(self.storage, self.host * factor)
        factors = other.futures if isinstance(other, Spread) else [other] * len(self.futures)
        return Spread(self.storage, made=self.storage.workers.map(tasks.product, self.futures, factors), width=self.width)

    def sum(self, axis: int = 0) -> Any:
        """Return the sum over the rows."""
        if self.host is not None:
            return self.host.sum(axis)
        workers = self.storage.workers
        return workers.merged(workers.map(tasks.total, self.futures), tasks.added)


class Cluster(InBlocks):
    """A storage of X in blocks on the workers of a cluster, with vectors over rows as `Spread`.

    The work on a block uses its share of the threads of the workers; the `threads` of this process do not matter.
    """

    is_remote = True

    def __init__(self, client: Any, chunks: Sequence[Chunk], d: int, dtype: Any) -> None:
        super().__init__(chunks, d, dtype, kind="dask")
        self.min_entries = MIN_ENTRIES
        self.workers = Workers(client)
        self._cached_vectors: list[Spread] = []
        self._threads = max(1, sum(client.nthreads().values()) // len(chunks))

    def __reduce__(self) -> Any:
        raise TypeError("rows on a Dask cluster cannot be pickled or copied; keep the certificate of a result, or a classifier")

    def run(self, work: Work, blocks: Sequence[Any], own: Own, shared: tuple[Any, ...]) -> list[Any]:
        """Return what `work` gives on the workers for each of these blocks."""
        return self.workers.gather(self.workers.start(work, blocks, own, shared))

    def cut(self, values: Array) -> Iterable[Array]:
        """Split a vector over rows into the parts of the blocks."""
        return (np.ascontiguousarray(values[lo:hi]) for lo, hi in itertools.pairwise(self.ends))

    def _start(self, work: Work, over_rows: tuple[Any, ...], shared: tuple[Any, ...]) -> list[Any]:
        """Start `work(rows in memory, *its part of each vector over rows, *shared)` for every block and return the futures.

        A list in place of a vector has one entry for each block.
        """
        columns = [self._column(values) for values in over_rows]
        own: Own = list(zip(*columns, strict=True)) if columns else [()] * len(self.blocks)
        return self.workers.start(work, self.blocks, own, shared)

    def _column(self, values: Any) -> list[Any]:
        """Return the part of each block, as an array or a future."""
        if isinstance(values, (list, Spread)):
            return values if isinstance(values, list) else values.futures
        return [None] * len(self.blocks) if values is None else list(self.cut(values))

    # ---- vectors over rows -------------------------------------------------------------------------------------------

    def to_storage(self, values: Any, name: str) -> Spread:
        if isinstance(values, Spread):
            return values
        return self._spread(row_vectors(values, name, self.n), keep=name != "p")

    def groups_to_storage(self, groups: Any, name: str) -> Spread:
        return groups if isinstance(groups, Spread) else self._spread(zeros_and_ones(groups, name, self.n), keep=True)

    def _spread(self, values: Array, keep: bool) -> Spread:
        """Return the vector over rows, reusing one of equal values: methods pass the same p_0 and groups round after round."""
        for parts in self._cached_vectors:
            if parts.host is not None and parts.host.dtype == values.dtype and np.array_equal(parts.host, values):
                return parts
        if not keep:
            return Spread(self, values)
        self._cached_vectors = [Spread(self, values.copy()), *self._cached_vectors[: MAX_CACHED_VECTORS - 1]]
        return self._cached_vectors[0]

    def to_storage_f64(self, values: Any) -> Any:
        return self.to_storage(values, "the vector")

    def to_host(self, values: Spread | Array) -> Array:
        if isinstance(values, np.ndarray):
            return values
        if values.host is not None:
            return values.host
        return np.concatenate(self.workers.gather(values.futures), axis=-1 if values.height else 0)

    def rows_of(self, values: Spread, i: Array) -> Array:
        return self.to_host(values)[i]

    def is_finite(self, values: Spread) -> bool:
        if values.host is not None:
            return bool(np.isfinite(values.host).all())
        return bool(self.workers.merged(self.workers.map(tasks.finite, values.futures), all))

    # ---- passes ------------------------------------------------------------------------------------------------------

    def scores(self, w: Array, b: float | Array, signs: Spread, threads: int) -> Spread:
        return Spread(self, made=self._start(tasks.scores, (signs,), (w, b, self._threads)), width=w.shape[1:])

    def combine(self, q: Spread, threads: int) -> Array:
        """Return Xᵀq: from rows taken here if q is nonzero on few of them, else from the blocks on which it is nonzero."""
        if q.host is not None:
            rows = np.flatnonzero(q.host if q.host.ndim == 1 else q.host.any(axis=1))
            if 0 < len(rows) * self.entries <= MAX_LOCAL_ENTRIES * self.n:
                return self.take(rows).combine(q.host[rows], 1)
            if len(rows) <= SPARSE_SHARE * self.n:
                return self._combine_some(rows, q.host)
        return self.workers.merged(self._start(tasks.combine, (q,), (self._threads,)), tasks.added)

    def _combine_some(self, rows: Array, q: Array) -> Array:
        asked = self.holding(rows)
        if not asked:
            return np.zeros((self.d, *q.shape[1:]))
        own = [(part - self.ends[k], q[part]) for k, part in asked]
        found = self.workers.start(tasks.combine_some, [self.blocks[k] for k, _ in asked], own, (self._threads,))
        return self.workers.merged(found, tasks.added)

    def reduce(self, work: Any, over_rows: Any, shared: Any, threads: int, *, rough: bool = False) -> list[Array]:
        found = self._start(tasks.reduce, tuple(over_rows), (work, shared, self._threads, rough))
        return self.workers.merged(found, sums_of)

    def second_moments(self, q: Spread, threads: int) -> Array:
        return self.workers.merged(self._start(tasks.second_moments, (q,), (self._threads,)), tasks.added)

    def softmin(
        self, v: Array, b: Array, signs: Spread, scale: float, log_p0: Spread | None, groups: Spread | None, threads: int
    ) -> tuple[Sums, Spread]:
        pairs = self._start(tasks.softmin, (signs, log_p0, groups), (v, b, scale, self._threads))
        sums = self.workers.merged(self.workers.map(tasks.entry, pairs, [(0,)] * len(pairs)), Sums.merged)
        return sums, Spread(self, made=pairs, path=(1,), height=len(v))

    def lowest(self, w: Array, b: float, signs: Spread, k: int, groups: Any | None, threads: int) -> Lowest:
        """Return the k rows of smallest score by one reduction of O(k) numbers of each worker."""
        over_rows = self.ends[:-1].tolist(), signs, None if groups is None else self.groups_to_storage(groups, "halves")
        return self.workers.merged(self._start(tasks.lowest, over_rows, (k, w, b, self._threads)), Lowest.merged)

    def norms(self, p: float, threads: int) -> Array:
        return np.concatenate(self.workers.gather(self._start(tasks.norms, (), (p, self._threads))))

    def largest_norm(self, p: float, threads: int) -> float:
        return float(self.workers.merged(self._start(tasks.largest_norm, (), (p, self._threads)), np.max))

    def each_block(
        self, work: Work, over_rows: Any = (), shared: Any = (), rows: Array | None = None, **how: Any
    ) -> Iterator[Any]:
        """Do the work on the workers, or here if it is about few rows."""
        if rows is not None and len(rows) <= MAX_LOCAL_ROWS:
            yield from self.take(rows).each_block(work, tuple(values[rows] for values in over_rows), shared, **how)
            return
        over_rows = tuple(values.host if isinstance(values, Spread) else values for values in over_rows)
        asked, own = self.holding(rows), []
        for k, mine in asked:
            lo, hi = int(self.ends[k]), int(self.ends[k + 1])
            own.append((lo, None if mine is None else mine - lo, tuple(values[lo:hi] for values in over_rows)))
        found = self.run(tasks.each_block, [self.blocks[k] for k, _ in asked], own, (work, how, *shared))
        yield from itertools.chain.from_iterable(found)


@contextlib.contextmanager
def large_graphs() -> Iterator[None]:
    """Silence Dask's warning: vectors over rows are part of the graph on purpose, so that they can be sent again."""
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        yield
