"""The interface of a storage: everything that a memory-mapped, GPU or cluster backend of X provides, and nothing else.

The short way to a new backend: if rows a to b of X can be made in memory, describe them by `blocks.Loadable` pieces.
`blocks.Blocks` of such pieces is a complete storage (`accept._sliced` is an example), and a subclass may override what it can do
faster.

The long way is a subclass of `Storage`. It sets five facts (`n`, `d`, `entries`, `dtype`, `kind`) and implements five
operations, which come first below: `scores`, `combine` and `norms` are passes over all rows, `take` copies some rows into memory,
`each_block` reads rows for proofs. Everything else has a default that is derived from these, and is overridden where the storage
knows a faster way: a fused `softmin` and a `reduce` without copies matter most.

Passes serve to find: their results may be rounded in any way, to about seven digits at least, and may come from BLAS (call
`blas.blas_threads` around matrix products, whose threads would otherwise compete with those of the pass). Reads serve to prove:
`take`, `each_row`, `plain` and the entries of a `Block` are X to the last bit. If entries are computed, the computation must be
exact, or the entries of a row must not depend on which other rows are requested with it; BLAS does not promise that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from gordan.arrays import Array, as_dense, columns_of, is_sparse, zeros_and_ones
from gordan.blas import factorized, scipy_linalg, solved
from gordan.errors import InputError

# Defaults that take rows bring at most this many of their stored entries into memory at a time.
MAX_FETCHED_ENTRIES = 1 << 22
# `each_row` takes at most this many rows at a time.
MAX_FETCHED_ROWS = 4096
# The `min_entries` of a device and of a cluster, where a pass starts with a launch or with sending tasks.
MIN_ENTRIES = 1 << 22
CACHE_LINE_BYTES = 64


class Storage(ABC):
    """The rows of X, wherever they are stored.

    Vectors over columns are float64 arrays on the host. Vectors over rows live where the rows do: `to_storage` and its relatives
    bring them there, `to_host` brings them back. By default that is float64 on the host again. `signs` are int8, `b` is a
    constant that is added to every x·w, and `threads` is how many threads of this process a pass may use.
    """

    n: int
    d: int
    entries: int
    """The number of stored entries."""
    dtype: Any
    """The type of the stored entries: a NumPy type, or the name of one that NumPy lacks."""
    kind: str
    """The name of the storage in the `repr` of `Rows`."""
    sums: str = "float64"
    """The type in which scores are added up."""
    sparse: bool = False
    """Whether only nonzero entries are stored, in memory."""
    in_memory: bool = False
    """Whether single rows can be visited at no cost. Rows of a large file cannot: in random order, each would cost a seek."""
    mapped: bool = False
    """Whether the entries are in a memory-mapped file, which should not be copied."""
    on_device: bool = False
    """Whether vectors over rows are on a device, where arithmetic with them is faster than on the host."""
    is_remote: bool = False
    """Whether vectors over rows are on other machines, so that `lowest`, which returns few scores, costs less than `scores`."""
    min_entries: int = 0
    """Problems with fewer entries than this are solved in memory, where a pass takes less time than its start would take here."""

    @property
    def is_array(self) -> bool:
        """Whether X is one dense array in memory, whose products are those of matrices."""
        return self.in_memory and not self.sparse

    @property
    def elsewhere(self) -> bool:
        """Whether passes and the matrices of `moments` are computed on a device or on other machines, at a pace of their own."""
        return self.on_device or self.is_remote

    # ---- what every storage implements ------------------------------------------------------------------------------

    @abstractmethod
    def scores(self, w: Array, b: float | Array, signs: Any, threads: int) -> Any:
        """Return y_i (x_i·w + b); for a block w of shape (d, k) and k numbers b, one column for each, from one pass."""

    @abstractmethod
    def combine(self, q: Any, threads: int) -> Array:
        """Return Xᵀq for a vector over rows, or for a block (n, k) of them."""

    @abstractmethod
    def norms(self, p: float, threads: int) -> Array:
        """Return ‖x_i‖_p on the host, NaN where an entry is not finite."""

    @abstractmethod
    def take(self, i: Array) -> Any:
        """Return the rows i in memory, as `memory.Dense` or `memory.Sparse`.

        A growing working set is requested again and again, so a call for few rows should be cheap, or rows should be cached.
        """

    @abstractmethod
    def each_block(
        self, work: Any, over_rows: Any = (), shared: Any = (), rows: Array | None = None, *, step: int = 0, added: bool = False
    ) -> Iterator[Any]:
        """Yield `work(block, *its part of each vector over rows, *shared)` for each `Block` of the rows, in their order.

        The work is done where the rows are, in IEEE arithmetic and possibly by several threads. `work` is a function at the top
        level of a module. `rows` selects rows by increasing numbers. Blocks have a size that suits the storage, or end at
        multiples of `step`. If the results are only to be `added` up, blocks may be larger, or results may arrive summed.
        """

    # ---- vectors over rows: by default float64 on the host ----------------------------------------------------------

    def to_storage(self, values: Any, name: str) -> Any:
        """Return a vector over rows, or a block (n, k) of them, where the rows are; int8 stays int8.

        Raise an InputError that mentions `name` if the shape is wrong.
        """
        return row_vectors(values, name, self.n)

    def groups_to_storage(self, groups: Any, name: str) -> Any:
        """Return groups, given as 0 or 1 for each row, in the form that `softmin` expects."""
        return zeros_and_ones(groups, name, self.n)

    def to_storage_f64(self, values: Any) -> Any:
        """Return a vector over rows where the rows are, in float64; integers, such as row numbers, keep their type."""
        return values

    def to_host(self, values: Any) -> Array:
        """Return a vector over rows, or a result of `moments`, as float64 on the host."""
        host: Array = values
        return host

    @property
    def proves_on_device(self) -> bool:
        """Whether the blocks of `each_block` are on a device, so that vectors over rows for proofs are best kept there."""
        return False

    def to_blocks(self, values: Any) -> Any:
        """Return a vector over rows where the blocks of `each_block` are, in float64; integers keep their type."""
        return values

    def is_finite(self, values: Any) -> bool:
        """Return whether every entry of a vector over rows is finite."""
        return bool(np.isfinite(self.to_host(values)).all())

    def tied_rows(self, scores: Any) -> Array:
        """Return the numbers of the rows that share their score with another row, in increasing order, on the host."""
        found = self.to_host(scores)
        values, counts = np.unique(found, return_counts=True)
        return np.flatnonzero(np.isin(found, values[counts > 1]))

    # ---- passes derived from those above ----------------------------------------------------------------------------

    def reduce(self, work: Any, over_rows: Any, shared: Any, threads: int, *, rough: bool = False) -> list[Array]:
        """Return the arrays of `work(x, *its part of each vector over rows, *shared)`, summed over all pieces x of the rows.

        `work` is a function at the top level of a module and accepts the array type of vectors over rows; `over_rows` are such
        vectors, placed by `to_storage`. A piece supports x @ V and x.T @ Q with blocks of vectors; `rough` products need only
        three correct digits.
        """
        step = max(1, MAX_FETCHED_ENTRIES * self.n // self.entries)
        ranges = ((lo, min(lo + step, self.n)) for lo in range(0, self.n, step))
        return sums_of(
            self.take(np.arange(lo, hi)).reduce(work, [values[lo:hi] for values in over_rows], shared, threads, rough=rough)
            for lo, hi in ranges
        )

    def softmin(
        self, v: Array, b: Array, signs: Any, scale: float, log_p0: Any | None, groups: Any | None, threads: int
    ) -> tuple[Sums, Any]:
        """Return the sums and the scores of the fused pass for each row of the stack v with its b.

        `log_p0` None means uniform, `groups` None means that there is one group. A fused pass reads X once; this default reads it
        once for the scores and once for the combination of each group.
        """
        scores = np.ascontiguousarray(self.scores(np.ascontiguousarray(v.T), b, signs, threads).T)
        z = (0.0 if log_p0 is None else log_p0) - scores
        members = [np.full(self.n, True)] if groups is None else [groups == g for g in (0, 1)]
        tally, acc = np.zeros((len(v), 5, len(members))), np.zeros((len(v), len(members), self.d))
        for g, own in enumerate(members):
            peak = z[:, own].max(axis=1, initial=-np.finfo(np.float64).max)
            q = np.where(own, np.exp(np.where(own, z - peak[:, None], 0.0)), 0.0)
            signed = q * signs * scale
            low, high = scores[:, own].min(axis=1, initial=np.inf), scores[:, own].max(axis=1, initial=-np.inf)
            tally[:, :, g] = np.stack((peak, q.sum(axis=1), signed.sum(axis=1), low, high), axis=1)
            acc[:, g] = self.combine(np.ascontiguousarray(signed.T), threads).T
        return Sums(tally, acc), scores

    def lowest(self, w: Array, b: float, signs: Any, k: int, groups: Any | None, threads: int) -> Lowest:
        """Return the k rows of smallest score, or those of each group, on the host."""
        groups = None if groups is None else self.groups_to_storage(groups, "halves")
        return smallest(self.scores(w, b, signs, threads), 0, k, groups)

    def totals(self, scores: Any, log_p0: Any | None, groups: Any | None, sums: Sums) -> Array:
        """Return the totals of a fused pass, per v and group, with the precision of float64."""
        return sums.totals

    def largest_norm(self, p: float, threads: int) -> float:
        """Return max_i ‖x_i‖_p, NaN if an entry is not finite."""
        return float(np.max(self.norms(p, threads)))

    def knows_norms(self, p: float) -> bool:
        """Return whether `norms` costs no pass because it was called before and rows are expensive to read."""
        return False

    def first_not_finite(self) -> tuple[int, int, float] | None:
        """Return row, column and value of the first entry that is NaN or infinite, or None."""
        return next((found for found in self.each_block(_first_not_finite) if found is not None), None)

    def curved(self, w: Array, b: float, h: Any, threads: int) -> tuple[Array, float] | None:
        """Return Xᵀq and Σ q for q_i = h_i (x_i·w + b), from one pass; None if that would take two."""
        return None

    def second_moments(self, q: Any, threads: int) -> Array:
        """Return Σ q x xᵀ over all rows, for q ≥ 0."""
        products: Array = self.reduce(_second_moments, (q,), (), threads)[0]
        return products

    def moments(self, q: Any, i: Any | None, signs: Any, constant: bool, threads: int) -> tuple[Any, Any, Any]:
        """Return Σ q a aᵀ, Σ q a and Σ q over the distinct rows i (all if None), for a = y (x, 1?) and q ≥ 0.

        The results stay where the rows are: in float64 on the host; on a device precise enough for a search direction.
        """
        if i is not None:
            weights = np.zeros(self.n)
            weights[i] = q
            q = self.to_storage(weights, "q")
        signed = q * signs
        products, sums, total = self.second_moments(q, threads), self.combine(signed, threads), float(q.sum(0))
        if constant:
            bordered = np.full((len(products) + 1, len(products) + 1), total)
            bordered[:-1, :-1], bordered[-1, :-1] = products, self.combine(q, threads)
            bordered[:-1, -1], products = bordered[-1, :-1], bordered
            sums = np.append(sums, float(signed.sum(0)))
        return products, sums, total

    def solve(self, H: Any, b: Array) -> Array | None:
        """Return H⁻¹ b on the host for a positive definite H made from `moments`, or None if H is not positive definite."""
        linalg = scipy_linalg()
        try:
            x: Array = linalg.cho_solve(linalg.cho_factor(H), b)
        except (linalg.LinAlgError, ValueError):
            return None
        return x if np.isfinite(x).all() else None

    def solver_for(self, H: Array) -> Callable[[Array], Array]:
        """Return a function that maps blocks b to H⁻¹ b approximately, all on the host.

        An H that is indefinite because of rounding is made definite.
        """
        factor = factorized(H.copy())
        return lambda b: solved(factor, b)

    # ---- some rows --------------------------------------------------------------------------------------------------

    def part(self, i: Array, *, exactly: bool = False) -> Any:
        """Return the rows i as a storage for a problem of only those: on the device if X is on one, else in memory.

        With `exactly`, sums over them are in float64, whatever those over all rows are.
        """
        return self.take(i)

    def rows_of(self, values: Any, i: Array) -> Any:
        """Return the entries i of a vector over rows, or of a block (n, k) of them, where `part(i)` needs them."""
        return values[i]

    def gram(self, i: Array, j: Array, scale: float, weights: Array | None = None) -> Array:
        """Return the products of scale·x_i and scale·x_j as a matrix in memory; with weights, Σ_k weights_k x_ik x_jk scale²."""
        both = self.take(np.concatenate((i, j)))
        left = np.arange(len(i))
        products: Array = both.gram(left, left if i is j else len(i) + np.arange(len(j)), scale, weights)
        return products

    # ---- reads for proofs -------------------------------------------------------------------------------------------

    def each_row(self, rows: Any) -> Iterator[tuple[int, Array, Array]]:
        """Yield, for each of these rows, its number and the columns and float64 values of its nonzero entries."""
        step = max(1, min(MAX_FETCHED_ROWS, MAX_FETCHED_ENTRIES * self.n // self.entries))
        for lo in range(0, len(rows), step):
            part = np.asarray(rows[lo : lo + step], dtype=np.intp)
            held = self.take(part)
            yield from ((i, *held.row(k)) for k, i in enumerate(part.tolist()))

    def plain(self) -> Any:
        """Return X in float64, as an array or, if `sparse`, as a SciPy array; for few rows, and not to be modified."""
        return self.take(np.arange(self.n)).spread().astype(np.float64, copy=False)

    def snapshot(self, most: int) -> Storage | None:
        """Return a private copy if what is stored, or what rows are computed from, has at most `most` bytes; else None.

        Without a copy, the `checksum` of the blocks is compared instead.
        """
        return None

    def minus(self, origin: Array) -> Storage | None:
        """Return a copy in memory with the rows x - origin as in `Block.minus`; None if they are elsewhere, or would not fit."""
        return None

    def ieee(self) -> bool:
        """Return whether arithmetic where the rows are can be that of IEEE 754; on the host, threads set their own mode."""
        return True


class Block(Protocol):
    """Some rows as proofs read them: exact entries, and plain sums in float64, each of as many terms as are stored."""

    n: int
    d: int
    first: int
    """The number of its first row in X, if the rows are consecutive."""

    @property
    def lengths(self) -> Array:
        """The number of stored entries of each row; a single number if it is the same for all."""

    def dot(self, w: Array) -> tuple[Any, Array]:
        """Return x_i·w, where the block is, and the largest number of additions that a term goes through, as `lengths` does."""

    def dots(self, W: Array) -> tuple[Any, Array]:
        """Return x_i·w for each column w of W, where the block is, and the additions as for `dot`."""

    def combined(self, Q: Any) -> Any:
        """Return Σ_i q_i x_i for each column q of Q, where the block is."""

    def to_storage_f64(self, values: Any) -> Any:
        """Return an array where the block is; on a device a tensor, in whose arithmetic further work is done."""

    def to_host(self, values: Any) -> Array:
        """Return what `to_storage_f64` or further work gave, as an array on the host."""

    def abs_dot(self, size: Array) -> Any:
        """Return Σ_j |x_ij| size_j, where the block is."""

    def squares(self) -> Any:
        """Return Σ_j x_ij², where the block is."""

    def weighted(self, q: Any) -> Array:
        """Return Σ_i q_i x_i on the host, for a q there or where the block is."""

    def by_row(self, join: np.ufunc, terms: Any) -> Array:
        """Return terms(values, columns) of the stored entries, joined within each row; 0 for a row without entries."""

    def sample(self, k: int) -> Iterable[tuple[Array, Array]] | None:
        """Return columns and values of k entries of each row, the same ones for equal rows, all at once or one by one.

        Return None if entries cannot be chosen in this way.
        """

    def entries(self) -> tuple[Array, Array, Array]:
        """Return the stored entries row by row: position of the row in the block, column, float64 value."""

    def only(self, i: Array) -> Block:
        """Return the block of the rows at these positions."""

    def extremes(self, columns: Array) -> tuple[Array, Array]:
        """Return the least and the greatest entry of each of these columns; for a column with NaN these are NaN, or 0."""

    def minus(self, origin: Array) -> Block:
        """Return the block of the rows x - origin, whose entries must be floats; columns with zeros have origin 0."""

    def checksum(self, at_length: bool) -> list[int]:
        """Return numbers that change if anything stored changes; `at_length` uses a loop that has to be compiled."""


# ---- results of passes ----------------------------------------------------------------------------------------------

# Rows of the `tally` of a softmin pass, which has one column per group: the running peak, Σ e^{z - peak}, the same sum weighted
# by y and the scale, the lowest score and the highest. The highest reveals an overflow, which a weight of zero would hide.
PEAK, TOTAL, SIGNED, LOW, HIGH = 0, 1, 2, 3, 4
# The initial peak on a device, as `LEAST` of `kernels` is in memory: low but not -inf, and representable in float32.
INITIAL_PEAK_FLOAT32 = -3.0e38


class Sums(NamedTuple):
    """The sums of a chunk of a softmin pass for each v: its `tally`, and `acc` = Σ e^{z_i - peak} A_i per group."""

    tally: Array
    acc: Array

    @property
    def totals(self) -> Array:
        """Σ e^{z_i - peak}, per v and group."""
        totals: Array = self.tally[:, TOTAL]
        return totals

    @staticmethod
    def merged(parts: list[Sums]) -> Sums:
        """Return the sums over all chunks, added in their order."""
        if len(parts) == 1:
            return parts[0]
        tally = np.zeros_like(parts[0].tally)
        acc = np.zeros_like(parts[0].acc)
        tally[:, PEAK] = np.max([part.tally[:, PEAK] for part in parts], axis=0)
        tally[:, LOW] = np.min([part.tally[:, LOW] for part in parts], axis=0)
        tally[:, HIGH] = np.max([part.tally[:, HIGH] for part in parts], axis=0)
        for part in parts:
            shrink = np.exp(part.tally[:, PEAK] - tally[:, PEAK])
            tally[:, TOTAL : SIGNED + 1] += shrink[:, None] * part.tally[:, TOTAL : SIGNED + 1]
            acc += shrink[:, :, None] * part.acc
        return Sums(tally, acc)


@dataclass(frozen=True)
class Lowest:
    """The k rows of smallest score of each group, lowest first, ties by row number; `finite` if all scores were finite."""

    k: int
    rows: list[Array]
    scores: list[Array]
    finite: bool

    @staticmethod
    def merged(parts: list[Lowest]) -> Lowest:
        """Return the k rows of smallest score among those of all parts."""
        k, groups = parts[0].k, range(len(parts[0].rows))
        found = [
            _first_of(k, np.concatenate([part.rows[g] for part in parts]), np.concatenate([part.scores[g] for part in parts]))
            for g in groups
        ]
        return Lowest(k, [rows for rows, _ in found], [scores for _, scores in found], all(part.finite for part in parts))


def _first_of(k: int, rows: Array, scores: Array) -> tuple[Array, Array]:
    order = np.lexsort((rows, scores))[:k]
    return rows[order], scores[order]


def smallest(scores: Array, first: int, k: int, groups: Array | None) -> Lowest:
    """Return the k smallest scores (of each group) of a block that begins with the row `first` of X."""
    found = []
    for members in [None] if groups is None else [np.flatnonzero(groups == g) for g in (0, 1)]:
        own = scores if members is None else scores[members]
        # include all ties with the k-th score, so that earlier rows win
        near = np.flatnonzero(own <= np.partition(own, k - 1)[k - 1]) if len(own) > k else np.arange(len(own))
        found.append(_first_of(k, first + (near if members is None else members[near]), own[near]))
    return Lowest(k, [rows for rows, _ in found], [s for _, s in found], bool(np.isfinite(scores).all()))


# ---- helpers of storages --------------------------------------------------------------------------------------------


def row_vectors(values: Any, name: str, n: int) -> Array:
    """Return a vector over n rows, or a block of such vectors, in float64; int8 stays int8."""
    return values if isinstance(values, np.ndarray) and values.dtype == np.int8 else columns_of(values, name, n)


def widest(shared: Any) -> int:
    """Return the largest number of columns among these blocks of vectors."""
    return max((part.shape[1] for part in shared if isinstance(part, np.ndarray) and part.ndim == 2), default=1)


def sums_of(parts: Iterable[Any]) -> list[Any]:
    """Return the sums of the arrays of all parts, added one by one in their order."""
    total: list[Any] = []
    for part in parts:
        total = [one + more for one, more in zip(total, part, strict=True)] if total else [*part]
    return total


def _second_moments(x: Any, q: Array) -> list[Array]:
    """Return Σ q x xᵀ over a piece of the rows."""
    products = x.T @ (x.multiply(q[:, None]) if is_sparse(x) else q[:, None] * x)
    return [as_dense(products)]


def _first_not_finite(block: Block) -> tuple[int, int, float] | None:
    rows, columns, values = block.entries()
    bad = np.flatnonzero(~np.isfinite(values))
    return (block.first + int(rows[bad[0]]), int(columns[bad[0]]), float(values[bad[0]])) if len(bad) else None


def not_finite(entry: tuple[int, int, float], storage: Storage) -> str:
    """Return the message about an entry that is not finite; a column of a data frame is named."""
    row, column, value = entry
    names = getattr(storage, "names", None)
    where = f"X[{row}, {column}]" + ("" if names is None else f" (column {names[column]!r})")
    return f"{where} is {value}; every entry must be finite, not NaN or infinite (drop or impute that row)"


def require_finite(storage: Storage) -> None:
    """Raise an InputError that names the first entry that is NaN or infinite."""
    bad = storage.first_not_finite()
    if bad is not None:
        raise InputError(not_finite(bad, storage))
