"""What a storage of X must be able to do, and what it may: all that a memory-mapped, GPU or cluster backend has to provide.

Whoever can make the rows a..b of X in memory writes none of it: `blocks.Blocks` of such pieces (`blocks.Loadable`) is a storage;
`accept._sliced` makes one. A subclass of `Blocks` then overrides what it can do better: `scores`, `combine`, `_squares`, `take`,
`snapshot`.

A storage must be a `Storage`. That rows can be visited one by one no backend has to provide: `take` gives rows in memory, where
they can.

Passes are for finding: what they give may be rounded in any way, to about seven digits at least, and may come from BLAS (call
`blas.blas_threads` around products of matrices, whose own threads would meet those of the pass). Reads are for proofs: `take`,
`each_row`, `plain` and the entries of a `Block` are X to the last bit. Where entries are made by arithmetic, it is exact, or they
are defined as what one function gives for a row, whichever other rows it is asked for with: BLAS does not promise that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from gordan.arrays import Array, columns_of, zeros_and_ones
from gordan.blas import factorized, scipy_linalg, solved
from gordan.errors import InputError

# Rows of the `tally` of a softmin pass, one column per group: running peak, Σ e^{z - peak}, the same times y and the scale, the
# lowest and the highest score. The highest is there to show an overflow, whose weight of zero would hide it.
PEAK, TOTAL, SIGNED, LOW, HIGH = 0, 1, 2, 3, 4
# Where the peak starts on a device, as `LEAST` of `kernels` is where it does in memory: low, not -inf, and within float32.
LEAST_FLOAT32 = -3.0e38


class Sums(NamedTuple):
    """What one chunk of a softmin pass adds up for each v: its `tally`, and `acc`, Σ e^{z_i - peak} A_i, per group."""

    tally: Array
    acc: Array

    @property
    def totals(self) -> Array:
        """Σ e^{z_i - peak}, per v and group."""
        totals: Array = self.tally[:, TOTAL]
        return totals

    @staticmethod
    def merged(parts: list[Sums]) -> Sums:
        """The sums of all chunks, added in their order."""
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


class Storage(Protocol):
    """What `Rows` asks of every storage of X.

    Vectors over columns are float64 on the host. Vectors over rows live where the rows do: `place`, `split` and `lift` bring them
    there, `fetch` brings one back. For rows in memory that is float64 on the host again. `signs` are int8, `b` is a constant that
    is added to every x·w. A pass may use so many `threads` of this process.
    """

    n: int
    d: int
    entries: int
    """Number of stored entries."""
    dtype: Any
    kind: str
    """What `repr` of `Rows` calls it."""
    sums: str
    """The type that scores are added up in."""
    on_device: bool
    """Whether vectors over rows are on a device, where arithmetic with them is quicker than on the host."""
    sparse: bool
    """Whether only nonzero entries are stored, in memory."""
    in_memory: bool
    """Whether single rows can be visited at no cost. Rows of a large file cannot: in random order each would cost a seek."""
    mapped: bool
    """Whether the entries are in a memory-mapped file, of which no copy should be made."""
    reduces: bool
    """Whether `lowest` costs less than `scores`: these are on other machines, and few of them come here."""

    # ---- vectors over rows ------------------------------------------------------------------------------------------

    def place(self, values: Any, name: str) -> Any:
        """One number per row, or a block (n, k) of such vectors, where the rows are; an InputError that names it otherwise. int8
        stays int8."""

    def split(self, halves: Any, name: str) -> Any:
        """0 or 1 per row, as `softmin` wants its groups."""

    def lift(self, values: Any) -> Any:
        """A vector over rows where they are, in float64; positions of rows as they are."""

    def fetch(self, values: Any) -> Array:
        """A vector over rows as float64 on the host."""

    def finite(self, values: Any) -> bool:
        """Whether a vector over rows is finite."""

    def repeated(self, scores: Any) -> Array:
        """The rows whose score is that of another row, in order, on the host."""

    # ---- passes -----------------------------------------------------------------------------------------------------

    def scores(self, w: Array, b: float | Array, signs: Any, threads: int) -> Any:
        """y_i (x_i·w + b); for a block w (d, k) and k numbers b, one column for each of them from one pass."""

    def lowest(self, w: Array, b: float, signs: Any, k: int, halves: Any | None, threads: int) -> Lowest:
        """The k rows of smallest score, or those of each half, on the host."""

    def combine(self, q: Any, threads: int) -> Array:
        """Xᵀq, for a vector over rows or a block (n, k) of them."""

    def reduce(self, work: Any, over_rows: Any, shared: Any, threads: int, *, rough: bool = False) -> list[Array]:
        """The arrays of `work(x, *its part of each vector over rows, *shared)`, added up over all pieces x of the rows.

        `work` is a function at the top of a module, for arrays of whatever kind vectors over rows have, which are placed ones.
        Products of a piece with blocks of vectors are x @ V and x.T @ Q, `rough` ones to three digits at least.
        """

    def moments(self, q: Any, i: Any | None, signs: Any, constant: bool, threads: int) -> tuple[Any, Any, Any]:
        """Σ q a aᵀ, Σ q a and Σ q over the rows i (all if None; each once), for a = y (x, 1?) and q ≥ 0, where the rows are.

        On the host in float64; on a device good for a direction.
        """

    def solve(self, H: Any, b: Array) -> Array | None:
        """H⁻¹ b on the host, for a positive definite H made from those; None where it is not."""

    def solving(self, H: Array) -> Callable[[Array], Array]:
        """What gives H⁻¹ b, nearly, for blocks b, all on the host; H is made definite where it is not by rounding."""

    def softmin(
        self, v: Array, b: Array, signs: Any, scale: float, log_p0: Any | None, groups: Any | None, threads: int
    ) -> tuple[Sums, Any]:
        """The sums of the fused pass and the scores, for each row of the stack v with its b; the rows of X are read once.

        `log_p0` is uniform where it is None, and there is one group where `groups` are.
        """

    def totals(self, scores: Any, log_p0: Any | None, groups: Any | None, sums: Sums) -> Array:
        """The totals of that pass, per v and group, to the digits of float64."""

    def norms(self, p: float, threads: int) -> Array:
        """‖x_i‖_p on the host; NaN where an entry is not finite."""

    def largest_norm(self, p: float, threads: int) -> float:
        """max_i ‖x_i‖_p; NaN where an entry is not finite."""

    def knows_norms(self, p: float) -> bool:
        """Whether that costs no pass: the rows are dear to read, and it was asked before."""

    def first_not_finite(self) -> tuple[int, int, float] | None:
        """Row, column and value of the first entry that is NaN or infinite."""

    # ---- some rows --------------------------------------------------------------------------------------------------

    def take(self, i: Array) -> Storage:
        """The rows i, in memory (`memory.Dense` or `memory.Sparse`). It may be asked for a few rows again and again, as a working
        set grows: what it costs to begin should be little, or rows be kept."""

    def part(self, i: Array, *, exactly: bool = False) -> Storage:
        """The rows i, for a problem that has only those: where they are, if that is a device, else in memory. `exactly` where
        sums over them are to be of float64, whatever those over all rows are."""

    def gram(self, i: Array, j: Array, scale: float, weights: Array | None = None) -> Array:
        """The products of scale·x_i and scale·x_j, a matrix in memory; with weights, Σ_k weights_k x_ik x_jk scale²."""

    # ---- reads for proofs -------------------------------------------------------------------------------------------

    def each_block(
        self, work: Any, over_rows: Any = (), shared: Any = (), rows: Array | None = None, *, step: int = 0, added: bool = False
    ) -> Iterator[Any]:
        """`work(block, *its part of each vector over rows, *shared)` for each `Block` of rows, or of those named, whose numbers
        rise; done where the rows are, in IEEE arithmetic, by several threads. The results come in the order of the rows.

        `work` is a function at the top of a module. Blocks have a size that suits the storage, or end at multiples of `step`.
        Those whose results are only to be `added` up may be larger, or come added up.
        """

    def each_row(self, rows: Any) -> Iterator[tuple[int, Array, Array]]:
        """Of each of these rows its number, and columns and float64 values of its entries that are not zero, in memory."""

    def plain(self) -> Any:
        """X in float64, a plain array or (where it is `sparse`) an array of SciPy's: for few rows, and not to be written to."""

    def snapshot(self, most: int) -> Storage | None:
        """A copy that nobody else can change, where what is stored (of rows that are made: what they are made of) has at most so
        many bytes; None elsewhere, and the `checksum` of the blocks is compared instead."""

    def ieee(self) -> bool:
        """Whether arithmetic where the rows are can be that of IEEE 754."""


class Block(Protocol):
    """Some rows as proofs read them: exact entries, and plain sums in float64, each of as many terms as are stored."""

    n: int
    d: int
    first: int
    """The number of its first row in X, where the rows are consecutive."""

    @property
    def lengths(self) -> Array:
        """The stored entries of each row; one number if all have as many."""

    def dot(self, w: Array) -> tuple[Array, Array]:
        """x_i·w, and the additions that a term goes through at most, as `lengths`."""

    def dots(self, W: Array) -> tuple[Any, Array]:
        """x_i·w for each column w of W, where the block is, and the additions as for `dot`."""

    def combined(self, Q: Any) -> Any:
        """Σ_i q_i x_i for each column q of Q, where the block is."""

    def lift(self, values: Any) -> Any:
        """An array where the block is: on a device a tensor there, in whose arithmetic work on it is done."""

    def drop(self, values: Any) -> Array:
        """And back."""

    def abs_dot(self, size: Array) -> Array:
        """Σ_j |x_ij| size_j."""

    def squares(self) -> Array:
        """Σ_j x_ij²."""

    def weighted(self, q: Array) -> Array:
        """Σ_i q_i x_i."""

    def by_row(self, join: np.ufunc, terms: Any) -> Array:
        """The terms(values, columns) of the stored entries of each row, joined; 0 where there are none."""

    def sample(self, k: int) -> Iterable[tuple[Array, Array]] | None:
        """Columns and values of k entries of each row, all of them or one at a time, the same of equal rows; None where they
        cannot be chosen so."""

    def entries(self) -> tuple[Array, Array, Array]:
        """The stored entries, row by row: position of the row in the block, column, float64 value."""

    def only(self, i: Array) -> Block:
        """The rows at these positions."""

    def checksum(self, at_length: bool) -> list[int]:
        """Numbers of which one is another if anything stored was changed; `at_length` by a loop that has to be compiled."""


def widest(shared: Any) -> int:
    """Columns of the widest of these blocks of vectors."""
    return max((part.shape[1] for part in shared if isinstance(part, np.ndarray) and part.ndim == 2), default=1)


def row_vectors(values: Any, name: str, n: int) -> Array:
    """A vector over n rows, or a block of such vectors, in float64; int8 stays int8."""
    return values if isinstance(values, np.ndarray) and values.dtype == np.int8 else columns_of(values, name, n)


def sums_of(parts: Iterable[Any]) -> list[Any]:
    """The arrays of all parts, added up one by one in their order."""
    total: list[Any] = []
    for part in parts:
        total = [one + more for one, more in zip(total, part, strict=True)] if total else [*part]
    return total


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


def smallest(scores: Array, first: int, k: int, groups: Array | None) -> Lowest:
    """The k smallest scores (of each group), where the block begins with the row `first` of X."""
    found = []
    for members in [None] if groups is None else [np.flatnonzero(groups == g) for g in (0, 1)]:
        own = scores if members is None else scores[members]
        # all that tie with the k-th, so that the earlier rows win
        near = np.flatnonzero(own <= np.partition(own, k - 1)[k - 1]) if len(own) > k else np.arange(len(own))
        found.append(_first_of(k, first + (near if members is None else members[near]), own[near]))
    return Lowest(k, [rows for rows, _ in found], [s for _, s in found], bool(np.isfinite(scores).all()))


class OnHost(ABC):
    """The part of a storage that computes on processors: second moments come from combinations and Σ q x xᵀ."""

    n: int
    place: Any
    combine: Any
    fetch: Any
    norms: Any
    take: Any
    scores: Any
    on_device, reduces = False, False

    def part(self, i: Array, *, exactly: bool = False) -> Any:
        return self.take(i)

    def repeated(self, scores: Any) -> Array:
        fetched = self.fetch(scores)
        values, counts = np.unique(fetched, return_counts=True)
        return np.flatnonzero(np.isin(fetched, values[counts > 1]))

    def largest_norm(self, p: float, threads: int) -> float:
        return float(np.max(self.norms(p, threads)))

    def totals(self, scores: Any, log_p0: Any | None, groups: Any | None, sums: Sums) -> Array:
        return sums.totals

    def ieee(self) -> bool:
        return True  # threads see to their own mode

    @abstractmethod
    def _squares(self, q: Any, threads: int) -> Array:
        """Σ q x xᵀ."""

    def moments(self, q: Any, i: Array | None, signs: Any, constant: bool, threads: int) -> tuple[Array, Array, float]:
        if i is not None:
            weights = np.zeros(self.n)
            weights[i] = q
            q = self.place(weights, "q")
        signed = q * signs
        products, sums, total = self._squares(q, threads), self.combine(signed, threads), float(q.sum(0))
        if constant:
            bordered = np.full((len(products) + 1, len(products) + 1), total)
            bordered[:-1, :-1], bordered[-1, :-1] = products, self.combine(q, threads)
            bordered[:-1, -1], products = bordered[-1, :-1], bordered
            sums = np.append(sums, float(signed.sum(0)))
        return products, sums, total

    def solve(self, H: Array, b: Array) -> Array | None:
        linalg = scipy_linalg()
        try:
            x: Array = linalg.cho_solve(linalg.cho_factor(H), b)
        except (linalg.LinAlgError, ValueError):
            return None
        return x if np.isfinite(x).all() else None

    def solving(self, H: Array) -> Callable[[Array], Array]:
        factor = factorized(H.copy())
        return lambda b: solved(factor, b)


class HostVectors(OnHost):
    """The part of a storage whose vectors over rows are float64 on the host."""

    n: int
    sums = "float64"

    def place(self, values: Any, name: str) -> Array:
        return row_vectors(values, name, self.n)

    def split(self, halves: Any, name: str) -> Array:
        return zeros_and_ones(halves, name, self.n)

    def lift(self, values: Array) -> Array:
        return values

    def fetch(self, values: Array) -> Array:
        return values

    def finite(self, values: Array) -> bool:
        return bool(np.isfinite(values).all())

    def lowest(self, w: Array, b: float, signs: Array, k: int, halves: Any | None, threads: int) -> Lowest:
        groups = None if halves is None else self.split(halves, "halves")
        return smallest(self.scores(w, b, signs, threads), 0, k, groups)


def not_finite(entry: tuple[int, int, float], storage: Storage) -> str:
    """What is wrong with this entry; columns of a data frame have names."""
    row, column, value = entry
    names = getattr(storage, "names", None)
    where = f"X[{row}, {column}]" + ("" if names is None else f" (column {names[column]!r})")
    return f"{where} is {value}; every entry must be finite, not NaN or infinite (drop or impute that row)"


def require_finite(storage: Storage) -> None:
    """Refuse NaN and infinity, naming the entry."""
    bad = storage.first_not_finite()
    if bad is not None:
        raise InputError(not_finite(bad, storage))
