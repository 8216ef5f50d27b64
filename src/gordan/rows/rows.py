"""`Rows`: the matrix A with A_i = scale · y_i (x_i, c?), accessed through five operations whose passes are counted here."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, as_dense, columns_of, require_aligned, vector, vectors, whole_number
from gordan.errors import BeyondFloats, InputError
from gordan.rows.accept import host, stored
from gordan.rows.memory import Held
from gordan.rows.storage import Storage, not_finite
from gordan.rows.threads import available

# If R is below this or above its inverse, float64 has no room for the weights that multiply A/R.
MIN_RADIUS = 1e-280


class Softmin(NamedTuple):
    """The result of the fused pass at v, for p_i ∝ exp(log p_0i - A_i·v) in each half.

    `combination` is Aᵀp, `scores` is A v. The other fields have one entry per half, or one in all: `lowest` is the minimum score;
    `peak` and `log_rest` add up to the log-sum-exp. They are kept apart because log p_i = (log p_0i - A_i·v - peak) - log_rest is
    precise to the last digits even if scores are of the order of 10⁹, where their sum would lose seven digits.
    """

    combination: Array
    scores: Array
    peak: list[float]
    log_rest: list[float]
    lowest: list[float]


@dataclass(eq=False, repr=False)
class Rows:
    """The rows of A = scale · diag(signs) [X, c?], which is never formed: the storage of X is read in place.

    n is the number of rows. d is the length of w: the number of columns of X, plus one for a column of the `constant` c if c is
    not 0. `signs` are int8. A pass uses `threads` threads, or one per core if None.

    Vectors are float64 whatever the storage. `passes` counts the stored entries touched so far, divided by the number stored: a
    product or a fused pass costs 1, `take(i)` costs its share of the rows. Rows derived from these have their own count.

    `resident` rows leave vectors over rows where X is stored: `scores` and `softmin` return tensors, `combine` and `softmin`
    accept them, and nothing of length n is copied to the host (see `to_storage`). Otherwise they are float64 on the host.
    """

    storage: Storage
    signs: Array
    _: KW_ONLY
    constant: float = 0.0
    scale: float = 1.0
    threads: int | None = None
    resident: bool = False
    n: int = field(init=False)
    d: int = field(init=False)
    passes: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.n, self.d = self.storage.n, self.storage.d + bool(self.constant)
        self._stored_signs = self.storage.to_storage(self.signs, "signs")
        self._threads = available() if self.threads is None else self.threads

    def __repr__(self) -> str:
        return f"Rows({self.storage.kind} {self.dtype}, n={self.n}, d={self.d}, scale={self.scale:.3g})"

    # ---- facts ------------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """The type of the stored entries: a NumPy type, or the name of one that NumPy lacks."""
        return self.storage.dtype

    @property
    def entries(self) -> int:
        """The number of stored entries."""
        return self.storage.entries

    @property
    def sparse(self) -> bool:
        """Whether only nonzero entries are stored."""
        return self.storage.sparse

    @property
    def in_memory(self) -> bool:
        """Whether single rows can be visited (`rows.visiting`); `take` always returns such rows.

        Rows of a large file do not count as in memory: visited in random order, each would cost a seek.
        """
        return self.storage.in_memory

    @property
    def is_array(self) -> bool:
        """Whether X is one dense array in memory (`Storage.is_array`)."""
        return self.storage.is_array

    @property
    def reduces(self) -> bool:
        """Whether scores are on other machines, so that `lowest`, which brings k of them here, costs less than `scores`."""
        return self.storage.is_remote

    # ---- the operations ---------------------------------------------------------------------------------------------

    def scores(self, w: Array) -> Array:
        """Return A w for a vector w, or for a block (d, k) of vectors with their scores as columns; one pass in all."""
        self.passes += 1
        v, b = self.plane(w)
        scores: Array = self.storage.scores(v, b, self._stored_signs, self._threads)
        if self.resident:
            self.check(0.0 if self.storage.is_finite(scores) else math.nan)
        else:
            scores = self.storage.to_host(scores)
            self.check(scores)
        return scores

    def combine(self, p: Array) -> Array:
        """Return Aᵀp for a vector p, or for a block (n, k) of vectors; one pass in all."""
        self.passes += 1
        p = self.storage.to_storage(p, "p")
        q = p * (self._stored_signs if len(p.shape) == 1 else self.storage.to_storage(self.signs[:, None], "signs"))
        q *= self.scale  # before the product with the rows, whose size it undoes
        combination = self.storage.combine(q, self._threads)
        if self.constant:
            combination = np.concatenate((combination, np.reshape(self.constant * host(q.sum(0)), (1, *p.shape[1:]))))
        self.check(combination)
        return combination

    def curved(self, h: Array, p: Array) -> Array:
        """Return AᵀhA p for a number h for each row; one pass if the storage has one for that, else two."""
        v, b = self.plane(p)
        found = self.storage.curved(v, b, h if self.scale == 1 else h * self.scale, self._threads)
        if found is None:
            return self.combine(h * self.scores(p))
        self.passes += 1
        combination = np.append(found[0], self.constant * found[1]) if self.constant else found[0]
        self.check(combination)
        return combination

    def reduce(self, work: Any, over_rows: Any, shared: Any, *, rough: bool = False) -> list[Array]:
        """Return what `work` gives for the pieces of X (not of A), summed (see `Storage.reduce`); one pass."""
        self.passes += 1
        return self.storage.reduce(work, over_rows, shared, self._threads, rough=rough)

    def softmin(self, v: Array, log_p0: Array | None = None, halves: Array | None = None) -> Softmin:
        """Do one fused pass at v: p_i ∝ exp(log p_0i - A_i·v), normalized to mass 1, or to ½ over each half.

        `log_p0` has one entry per row and is uniform if None; `halves` has 0 or 1 for each row (int8).
        """
        return self.softmins(vector(v, "v", self.d, "columns")[None], log_p0, halves)[0]

    def softmins(self, stack: Array, log_p0: Array | None = None, halves: Array | None = None) -> list[Softmin]:
        """Return `softmin` at each row v of the stack, from the same p_0; together they cost one pass."""
        self.passes += 1
        x = vectors(stack, "v", self.d, "columns") * self.scale
        x, b = (x[:, :-1].copy(), self.constant * x[:, -1]) if self.constant else (x, np.zeros(len(x)))
        start = None if log_p0 is None else self.storage.to_storage(log_p0, "log_p0")
        groups = None if halves is None else self.storage.groups_to_storage(halves, "halves")
        sums, scores = self.storage.softmin(x, b, self._stored_signs, self.scale, start, groups, self._threads)
        totals = sums.totals
        if not self.resident:
            totals = self.storage.totals(scores, start, groups, sums)
            scores = self.storage.to_host(scores)
        each = zip(sums.tally.tolist(), sums.acc, scores, totals.tolist(), strict=True)
        return [self._softmin(*one) for one in each]

    def _softmin(self, tally: list[list[float]], acc: Array, scores: Array, totals: list[float]) -> Softmin:
        """Return the result for one v, from its sums."""
        peak, total, signed, lowest, highest = tally
        for part, high in zip(total, highest, strict=True):
            if not part + abs(high) < math.inf:  # NaN reaches the total, infinity one of the two
                self.check(math.nan)
            if part == 0:
                raise InputError("each group needs a row, and a row whose log_p0 is not -inf")
        share = [1.0 / (len(total) * part) for part in total]
        combination = acc[0] * share[0] if len(share) == 1 else acc[0] * share[0] + acc[1] * share[1]
        if self.constant:
            mass = sum(q * part for q, part in zip(signed, share, strict=True))
            combination = np.append(combination, self.constant * mass)
        return Softmin(combination, scores, peak, [math.log(part) for part in totals], lowest)

    def lowest(self, w: Array, k: int, halves: Array | None = None) -> tuple[Array, Array]:
        """Return the k rows of smallest score and their scores, lowest first; ties go to the earlier row.

        With `halves` (0 or 1 for each row), return the k rows of each half: those of half 0, then those of half 1.
        """
        k = min(whole_number(k, "k"), self.n)
        self.passes += 1
        v, b = self.plane(vector(w, "w", self.d, "columns"))
        found = self.storage.lowest(v, b, self._stored_signs, k, halves, self._threads)
        self.check(0.0 if found.finite else math.nan)
        return np.concatenate(found.rows), np.concatenate(found.scores)

    def take(self, i: Any) -> Rows:
        """Return the rows i in memory, as `Rows`; costs their share of a pass."""
        i = np.asarray(i)
        if i.dtype == np.bool_ and i.shape == (self.n,):
            i = np.flatnonzero(i)
        if i.ndim != 1 or not len(i) or i.dtype.kind not in "iu" or not 0 <= i.min() <= i.max() < self.n:
            raise InputError(f"take needs a list of rows between 0 and {self.n - 1}, or a mask of {self.n}; got {i!r:.60}")
        i = i.astype(np.intp)
        self.passes += len(i) / self.n
        return replace(self, storage=self.storage.take(i), signs=self.signs[i])

    def part(self, i: Array) -> Rows:
        """Return the rows i as `Rows` with float64 sums, on the device if X is on one, else in memory.

        Costs their share of a pass.
        """
        self.passes += len(i) / self.n
        return replace(self, storage=self.storage.part(i, exactly=True), signs=self.signs[i])

    def scaled(self, factor: float) -> Rows:
        """Return the rows factor · A over the same storage."""
        return replace(self, scale=self.scale * factor)

    def plane(self, w: Array) -> tuple[Array, Any]:
        """Return w' and b with A_i·w = y_i (x_i·w' + b): the scale is included in both, and b is 0 without a constant column."""
        w = columns_of(w, "w", self.d, "columns") * self.scale
        if not self.constant:
            return w, 0.0
        return w[:-1], self.constant * (float(w[-1]) if w.ndim == 1 else w[-1])

    def check(self, result: Array | float) -> None:
        """Raise an InputError if the result of a pass is not finite, naming the entry of X that is to blame."""
        if np.isfinite(result).all():
            return
        bad = self.storage.first_not_finite()
        if bad is None:
            raise BeyondFloats(
                f"a product with X overflows {self.storage.sums}; divide X by a power of two so that entries are near 1 "
                "(and pass finite w, p)"
            )
        raise BeyondFloats(not_finite(bad, self.storage))

    # ---- lengths and products of rows -------------------------------------------------------------------------------

    def radius(self, p: float = 2.0) -> float:
        """Return R = max_i ‖A_i‖_p; one pass, which also detects NaN and infinity."""
        if not p >= 1:
            raise InputError(f"p is {p}; a norm needs p >= 1")
        self.passes += not self.storage.knows_norms(p)
        norms = np.array([self.storage.largest_norm(p, self._threads)])
        self.check(norms)
        if self.constant:
            top = np.maximum(norms, self.constant)
            norms = top if math.isinf(p) else top * ((norms / top) ** p + (top / self.constant) ** -p) ** (1 / p)
        return float(np.max(norms)) * self.scale

    def playable_radius(self, p: float = 2.0) -> float:
        """Return `radius`, or raise an InputError if it is out of the range of `MIN_RADIUS`."""
        R = self.radius(p)
        if R > 0:
            check_radius(R)
        return R

    def squares(self) -> Array:
        """Return ‖A_i‖² for every row, infinite if it exceeds the largest float; one pass."""
        self.passes += not self.storage.knows_norms(2.0)
        with np.errstate(over="ignore"):
            norms = self.storage.norms(2.0, self._threads) * self.scale
            if np.isnan(norms).any():
                self.check(math.nan)
            return np.asarray(norms**2 + (self.scale * self.constant) ** 2)

    def gram(self, i: Array, j: Array | None = None, weights: Array | None = None) -> Array:
        """Return the products Σ_k weights_k A_ik A_jk of rows i and j (i again if None), in memory.

        Every column has weight 1 by default. Costs their share of a pass.
        """
        self.passes += (len(i) + (0 if j is None else len(j))) / self.n
        j = i if j is None else j
        weights = None if weights is None else vector(weights, "weights", self.d, "columns")
        products = self.storage.gram(i, j, self.scale, weights[:-1] if weights is not None and self.constant else weights)
        if self.constant:
            products += (self.scale * self.constant) ** 2 * (1.0 if weights is None else weights[-1])
        products *= np.outer(self.signs[i], self.signs[j])
        return products

    # ---- the entries themselves, for rows in memory -----------------------------------------------------------------

    def csr(self) -> Any:
        """Return A as a SciPy CSR array in float64, or None if the rows are dense."""
        import scipy.sparse as sp

        if not self.sparse:
            return None
        X = self.storage.plain()
        if self.constant:  # its entry is the last one of each row
            data, columns = np.insert(X.data, X.indptr[1:], self.constant), np.insert(X.indices, X.indptr[1:], self.d - 1)
            X = sp.csr_array((data, columns, X.indptr + np.arange(self.n + 1)), shape=(self.n, self.d))
        X.data *= np.repeat(self.signs * self.scale, np.diff(X.indptr))
        return X

    def dense(self) -> Array:
        """Return A as a dense float64 array; for few rows."""
        X = as_dense(self.storage.plain())
        if self.constant:
            X = np.column_stack((X, np.full(self.n, float(self.constant))))
        return np.asarray(X * (self.signs * self.scale)[:, None])

    def squared(self) -> Rows:
        """Return the rows with the entries A_ij² in float64, for rows in memory; they have their own count of passes."""
        assert isinstance(self.storage, Held), "take the rows first"
        signs, constant = np.ones(self.n, np.int8), float(self.constant) ** 2
        return replace(self, storage=self.storage.squared(), signs=signs, constant=constant, scale=self.scale**2)

    def columns(self, j: Array) -> Any:
        """Return the columns j of A as a SciPy CSC array, for rows in memory; costs their share of a pass."""
        import scipy.sparse as sp

        assert isinstance(self.storage, Held), "take the rows first"
        self.passes += len(j) / self.d
        found = sp.csc_array(self.storage.columns(j[j < self.storage.d]))
        if len(j) > found.shape[1]:  # the constant column, which is the last one of A
            last = int(np.argmax(j))
            found = sp.hstack([found[:, :last], np.full((self.n, 1), float(self.constant)), found[:, last:]], format="csc")
        found.data *= (self.signs * self.scale)[found.indices]
        return found

    # ---- vectors over rows where the rows are -----------------------------------------------------------------------

    def residing(self) -> Rows:
        """Return the same rows with `resident` set."""
        return replace(self, resident=True)

    def to_storage(self, values: Any) -> Any:
        """Return a vector over rows (log p_0, p) where the rows are; once there, passes need not copy it again."""
        return self.storage.to_storage(values, "the vector")

    def groups_to_storage(self, halves: Any) -> Any:
        """Return the halves where the rows are, for the same reason."""
        return self.storage.groups_to_storage(halves, "halves")

    def to_storage_f64(self, values: Any) -> Any:
        """Return a vector over rows where the rows are, in float64; row numbers keep their type."""
        return self.storage.to_storage_f64(values)

    def to_host(self, values: Any) -> Array:
        """Return a vector over rows as float64 on the host."""
        return self.storage.to_host(values)

    # The names of these four in version 0.1.
    place, split, lift, fetch = to_storage, groups_to_storage, to_storage_f64, to_host

    def moments(self, q: Any, i: Any | None = None) -> tuple[Any, Any, Any]:
        """Return Σ q A_i A_iᵀ, Σ q A_i and Σ q over all rows, or over the rows i with one q ≥ 0 for each.

        Results are float64 on the host. For rows on a device, i and q must be there, and the results, which stay there for
        `solve`, are precise enough for a search direction. Costs their share of a pass.
        """
        q = self.storage.to_storage(q, "q") if i is None else q
        if len(q.shape) != 1:
            raise InputError(f"q must hold one number for each of the {self.n} rows; its shape is {tuple(q.shape)}")
        self.passes += q.shape[0] / self.n
        q = q if self.scale == 1 else q * self.scale  # before the products with the rows, and again after them
        products, sums, total = self.storage.moments(q, i, self._stored_signs, bool(self.constant), self._threads)
        if self.constant not in (0, 1):
            products[-1], sums[-1] = products[-1] * self.constant, sums[-1] * self.constant
            products[:, -1] *= self.constant
        return products * self.scale, sums, total / self.scale

    def solve(self, H: Any, b: Array) -> Array | None:
        """Return H⁻¹ b on the host for a positive definite H made from `moments`, or None if H is not positive definite."""
        return self.storage.solve(H, b)


def check_radius(R: float) -> None:
    """Raise an InputError if the largest norm of a row is out of the range of `MIN_RADIUS`."""
    if not MIN_RADIUS <= R <= 1 / MIN_RADIUS:
        wrong, fix = ("small", "multiply") if R < 1 else ("large", "divide")
        raise BeyondFloats(
            f"the largest row has norm {R:.3g}, too {wrong} for float64 products; {fix} the data by a power of two"
        )


def of(
    X: Any,
    signs: Any = None,
    *,
    constant: float = 0.0,
    threads: int | None = None,
    device: str | None = None,
    sums: str | None = None,
    resident: bool = False,
) -> Rows:
    """Return the rows A_i = signs_i · x_i (A_i = x_i without signs) over the storage that fits X; a `Rows` is returned as it is.

    Torch tensors and CuPy arrays are used where they are. `device="cuda"` copies X to the GPU once, `device="cpu"` copies it to
    the host. On a GPU, `sums="float32"` adds scores up in float32, which is a few percent faster and precise to seven digits (see
    `rows.device`), and `resident` leaves vectors over rows on the device (see `Rows`).

    >>> import numpy as np
    >>> A = of(np.array([[1.0, 2.0], [3.0, 4.0]]), signs=[1, -1])
    >>> A.scores(np.array([1.0, 1.0])).tolist(), A.combine(np.array([0.5, 0.5])).tolist(), A.passes
    ([3.0, -7.0], [-1.0, -1.0], 2.0)
    """
    if threads is not None:
        threads = whole_number(threads, "threads")
    if isinstance(X, Rows):
        if signs is not None or constant or device is not None or sums is not None or resident:
            raise InputError(
                "X is a `Rows` object, whose signs, constant column and device cannot be changed; pass the original data"
            )
        return X if threads is None else replace(X, threads=threads)
    storage = stored(X, device, sums)
    require_aligned(X=X, signs=signs)
    y = np.ones(storage.n) if signs is None else vector(host(signs), "signs", storage.n)
    if not np.isin(y, (-1, 1)).all():
        raise InputError("signs must be +1 or -1, one per row")
    return Rows(storage, y.astype(np.int8), constant=constant, threads=threads, resident=resident)
