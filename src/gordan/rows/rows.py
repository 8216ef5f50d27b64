"""`Rows`: the matrix A with A_i = scale · y_i (x_i, 1?) as five operations. Passes are counted here."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, columns_of, require_aligned, vector, vectors, whole_number
from gordan.errors import InputError
from gordan.rows.accept import host, stored
from gordan.rows.memory import Held
from gordan.rows.storage import Storage, not_finite
from gordan.rows.threads import available

# Beyond this, or its inverse, R leaves no room in float64 for the weights that multiply A/R.
SMALLEST_RADIUS = 1e-280


class Softmin(NamedTuple):
    """The answer of the fused pass at v, for p_i ∝ exp(log p_0i - A_i·v) in each half.

    `combination` is Aᵀp, `scores` is A v. The rest has one entry per half, or one in all: `lowest` the minimum score; `peak` and
    `log_rest`, whose sum is the log-sum-exp. They are kept apart because log p_i = (log p_0i - A_i·v - peak) - log_rest is exact
    to the last digits also where scores are of the order of 10⁹ and their sum would lose seven.
    """

    combination: Array
    scores: Array
    peak: list[float]
    log_rest: list[float]
    lowest: list[float]

    @property
    def log_total(self) -> list[float]:
        """The log-sum-exp of log p_0 - A v."""
        return [peak + rest for peak, rest in zip(self.peak, self.log_rest, strict=True)]


@dataclass(eq=False, repr=False)
class Rows:
    """A = scale · diag(signs) [X, c?], never formed: the storage of X is read in place. n is the number of rows, d the length of
    w: the columns of X, and one more for a column of the `constant` c, if that is not 0. `signs` are int8. `threads` are as many
    as there are cores if None.

    Vectors are float64 whatever the storage. `passes` is the number of stored entries touched so far over the number stored:
    a product or a fused pass costs 1, `take(i)` costs its share of the rows. Rows made from these have a count of their own.

    `resident` rows leave vectors over rows on the device where X is: `scores` and `softmin` give tensors, `combine` and `softmin`
    take them, and nothing of length n crosses to the host (see `place`). Otherwise they come back as float64 on the host.
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
        self._placed_signs = self.storage.place(self.signs, "signs")
        self._threads = available() if self.threads is None else self.threads

    def __repr__(self) -> str:
        return f"Rows({self.storage.kind} {self.dtype}, n={self.n}, d={self.d}, scale={self.scale:.3g})"

    # ---- facts ------------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """Type of the stored entries: a NumPy type, or the name of one that NumPy lacks."""
        return self.storage.dtype

    @property
    def entries(self) -> int:
        """Number of stored entries."""
        return self.storage.entries

    @property
    def sparse(self) -> bool:
        """Whether only nonzero entries are stored."""
        return self.storage.sparse

    @property
    def in_memory(self) -> bool:
        """Whether single rows can be visited (`rows.visiting`). `take` gives such rows, whatever it takes them from.

        Rows of a large file count as not in memory: visited in random order, each would cost a seek.
        """
        return self.storage.in_memory

    @property
    def reduces(self) -> bool:
        """Whether `lowest` costs less than `scores`: where scores are on other machines, it brings k of them here."""
        return self.storage.reduces

    # ---- the operations ---------------------------------------------------------------------------------------------

    def scores(self, w: Array) -> Array:
        """A w, for a vector w or a block (d, k) of them, whose scores are the columns: one pass for all."""
        self.passes += 1
        v, b = self.plane(w)
        s = self.storage.scores(v, b, self._placed_signs, self._threads)
        if self.resident:
            self.check(0.0 if self.storage.finite(s) else math.nan)
            resident: Array = s
            return resident
        fetched = self.storage.fetch(s)
        self.check(fetched)
        return fetched

    def combine(self, p: Array) -> Array:
        """Aᵀp, for a vector p or a block (n, k) of them: one pass for all."""
        self.passes += 1
        p = self.storage.place(p, "p")
        q = p * (self._placed_signs if len(p.shape) == 1 else self.storage.place(self.signs[:, None], "signs"))
        q *= self.scale  # before the rows: it undoes their size
        combination = self.storage.combine(q, self._threads)
        if self.constant:
            combination = np.concatenate((combination, np.reshape(self.constant * host(q.sum(0)), (1, *p.shape[1:]))))
        self.check(combination)
        return combination

    def reduce(self, work: Any, over_rows: Any, shared: Any, *, rough: bool = False) -> list[Array]:
        """What `work` gives for the pieces of X, without signs, constant column or scale, added up (see `Storage.reduce`)."""
        self.passes += 1
        return self.storage.reduce(work, over_rows, shared, self._threads, rough=rough)

    def softmin(self, v: Array, log_p0: Array | None = None, halves: Array | None = None) -> Softmin:
        """One fused pass at v: p_i ∝ exp(log p_0i - A_i·v), normalized to mass 1, or to ½ over each half.

        `log_p0` is uniform unless given (one entry per row); `halves` holds 0 or 1 per row (int8).
        """
        return self.softmins(vector(v, "v", self.d, "columns")[None], log_p0, halves)[0]

    def softmins(self, stack: Array, log_p0: Array | None = None, halves: Array | None = None) -> list[Softmin]:
        """`softmin` at each row v of the stack, from the same p_0: together they cost one pass."""
        self.passes += 1
        x = vectors(stack, "v", self.d, "columns") * self.scale
        x, b = (x[:, :-1].copy(), self.constant * x[:, -1]) if self.constant else (x, np.zeros(len(x)))
        start = None if log_p0 is None else self.storage.place(log_p0, "log_p0")
        groups = None if halves is None else self.split(halves)
        sums, scores = self.storage.softmin(x, b, self._placed_signs, self.scale, start, groups, self._threads)
        totals = sums.totals
        if not self.resident:
            totals = self.storage.totals(scores, start, groups, sums)
            scores = self.storage.fetch(scores)
        each = zip(sums.tally.tolist(), sums.acc, scores, totals.tolist(), strict=True)
        return [self._softmin(*one) for one in each]

    def _softmin(self, tally: list[list[float]], acc: Array, scores: Array, totals: list[float]) -> Softmin:
        """The answer from its sums."""
        peak, total, signed, lowest, highest = tally
        for part, high in zip(total, highest, strict=True):
            if not part + abs(high) < math.inf:  # NaN reaches the total, infinity one of the two
                self.check(math.nan)
            if part == 0:
                raise InputError("p has nowhere to go: no row (of one of the halves) has a log_p0 above -inf")
        share = [1.0 / (len(total) * part) for part in total]
        combination = acc[0] * share[0] if len(share) == 1 else acc[0] * share[0] + acc[1] * share[1]
        if self.constant:
            mass = sum(q * part for q, part in zip(signed, share, strict=True))
            combination = np.append(combination, self.constant * mass)
        return Softmin(combination, scores, peak, [math.log(part) for part in totals], lowest)

    def lowest(self, w: Array, k: int, halves: Array | None = None) -> tuple[Array, Array]:
        """The k rows of smallest score and their scores, lowest first; ties go to the earlier row.

        With `halves` (0 or 1 per row) the k rows of each half: those of half 0 and then those of half 1.
        """
        k = min(whole_number(k, "k"), self.n)
        self.passes += 1
        v, b = self.plane(vector(w, "w", self.d, "columns"))
        found = self.storage.lowest(v, b, self._placed_signs, k, halves, self._threads)
        self.check(0.0 if found.finite else math.nan)
        return np.concatenate(found.rows), np.concatenate(found.scores)

    def take(self, i: Any) -> Rows:
        """The rows i, as rows again; costs their share of a pass."""
        i = np.asarray(i)
        if i.dtype == np.bool_ and i.shape == (self.n,):
            i = np.flatnonzero(i)
        if i.ndim != 1 or not len(i) or i.dtype.kind not in "iu" or not 0 <= i.min() <= i.max() < self.n:
            raise InputError(f"take needs a list of rows between 0 and {self.n - 1}, or a mask of {self.n}; got {i!r:.60}")
        i = i.astype(np.intp)
        self.passes += len(i) / self.n
        return replace(self, storage=self.storage.take(i), signs=self.signs[i])

    def part(self, i: Array) -> Rows:
        """The rows i where they are, as rows again, if that is a device, else in memory; costs their share of a pass."""
        self.passes += len(i) / self.n
        return replace(self, storage=self.storage.part(i), signs=self.signs[i])

    def scaled(self, factor: float) -> Rows:
        """The rows factor · A over the same storage."""
        return replace(self, scale=self.scale * factor)

    def plane(self, w: Array) -> tuple[Array, Any]:
        """The w and b with A_i·w = y_i (x_i·w + b), where the scale and the constant column are gone; b is 0 without one."""
        w = columns_of(w, "w", self.d, "columns") * self.scale
        if not self.constant:
            return w, 0.0
        return w[:-1], self.constant * (float(w[-1]) if w.ndim == 1 else w[-1])

    def check(self, result: Array | float) -> None:
        """Raise if a pass gave something that is not finite, naming the entry of X to blame."""
        if np.isfinite(result).all():
            return
        bad = self.storage.first_not_finite()
        if bad is None:
            raise InputError(
                f"a product with X overflows {self.storage.sums}; divide X by a power of two so that entries are near 1 "
                "(and pass finite w, p)"
            )
        raise InputError(not_finite(bad, self.storage))

    # ---- lengths and products of rows -------------------------------------------------------------------------------

    def radius(self, p: float = 2.0) -> float:
        """R = max_i ‖A_i‖_p. One pass, which also finds NaN and infinity."""
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
        """`radius`, refused where there is no room for the weights that multiply A/R (`SMALLEST_RADIUS`)."""
        R = self.radius(p)
        if R > 0 and not SMALLEST_RADIUS <= R <= 1 / SMALLEST_RADIUS:
            wrong, fix = ("small", "multiply") if R < 1 else ("large", "divide")
            raise InputError(
                f"the largest row has norm {R:.3g}, too {wrong} for float64 products; {fix} the data by a power of two"
            )
        return R

    def squares(self) -> Array:
        """‖A_i‖² for every row, infinite where that is beyond the floats. One pass."""
        self.passes += not self.storage.knows_norms(2.0)
        with np.errstate(over="ignore"):
            norms = self.storage.norms(2.0, self._threads) * self.scale
            if np.isnan(norms).any():
                self.check(math.nan)
            return np.asarray(norms**2 + (self.scale * self.constant) ** 2)

    def gram(self, i: Array, j: Array | None = None, weights: Array | None = None) -> Array:
        """The products Σ_k weights_k A_ik A_jk for rows i and j (i again if None), in memory; costs their share of a pass.

        Every column has weight 1 if none are given.
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
        """A as a SciPy CSR array in float64, or None where the rows are dense."""
        import scipy.sparse as sp

        if not self.sparse:
            return None
        X = self.storage.plain()
        if self.constant:
            X = sp.hstack([X, np.full((self.n, 1), float(self.constant))], format="csr")
        X.data *= np.repeat(self.signs * self.scale, np.diff(X.indptr))
        return X

    def dense(self) -> Array:
        """A as a plain float64 array: for few rows."""
        X = self.storage.plain()
        X = X.toarray() if self.sparse else X
        if self.constant:
            X = np.column_stack((X, np.full(self.n, float(self.constant))))
        return np.asarray(X * (self.signs * self.scale)[:, None])

    def columns(self, j: Array) -> Array:
        """The columns j of A; costs their share of a pass."""
        assert isinstance(self.storage, Held), "take the rows first"
        self.passes += len(j) / self.d
        stored = j < self.storage.d
        block = np.full((self.n, len(j)), float(self.constant))
        block[:, stored] = self.storage.columns(j[stored])
        return np.asarray(block * (self.signs * self.scale)[:, None])

    # ---- vectors over rows where the rows are -----------------------------------------------------------------------

    def residing(self) -> Rows:
        """The same rows, `resident`."""
        return replace(self, resident=True)

    def place(self, values: Any) -> Any:
        """A vector over rows (log p_0, p) where the rows are: placed once, it is not copied again by every pass."""
        return self.storage.place(values, "the vector")

    def split(self, halves: Any) -> Any:
        """The halves where the rows are, likewise."""
        return self.storage.split(halves, "halves")

    def lift(self, values: Any) -> Any:
        """A vector over rows where these are, in float64; positions of rows as they are."""
        return self.storage.lift(values)

    def fetch(self, values: Any) -> Array:
        """And back: float64 on the host."""
        return self.storage.fetch(values)

    def moments(self, q: Any, i: Any | None = None) -> tuple[Any, Any, Any]:
        """Σ q A_i A_iᵀ, Σ q A_i and Σ q over all rows, or over the rows i with one q ≥ 0 for each. Costs their share of a pass.

        In float64 on the host. Of rows on a device good for a direction; i and q are there, and the answers stay. `solve` takes
        them.
        """
        q = self.storage.place(q, "q") if i is None else q
        if len(q.shape) != 1:
            raise InputError(f"q must hold one number for each of the {self.n} rows; its shape is {tuple(q.shape)}")
        self.passes += q.shape[0] / self.n
        q = q if self.scale == 1 else q * self.scale  # before the rows, and once more after them: it undoes their size
        products, sums, total = self.storage.moments(q, i, self._placed_signs, bool(self.constant), self._threads)
        if self.constant not in (0, 1):
            products[-1], sums[-1] = products[-1] * self.constant, sums[-1] * self.constant
            products[:, -1] *= self.constant
        return products * self.scale, sums, total / self.scale

    def solve(self, H: Any, b: Array) -> Array | None:
        """H⁻¹ b on the host, for a positive definite H made from `moments`; None where it is not."""
        return self.storage.solve(H, b)


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
    """Rows A_i = signs_i · x_i (A_i = x_i without signs) over the storage that fits X; a `Rows` is returned as it is.

    Torch tensors and CuPy arrays are used where they are. `device="cuda"` copies X to the GPU once, `device="cpu"` brings it to
    the host. There `sums="float32"` adds scores up in float32, a few percent faster and to seven digits (see `rows.device`), and
    `resident` leaves vectors over rows on the device (see `Rows`).

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
                "X is `Rows` already, with signs, constant column and device as they are; pass the data itself to choose them"
            )
        if threads is None:
            return X
        return replace(X, threads=threads)
    storage = stored(X, device, sums)
    require_aligned(X=X, signs=signs)
    y = np.ones(storage.n) if signs is None else vector(host(signs), "signs", storage.n)
    if not np.isin(y, (-1, 1)).all():
        raise InputError("signs must be +1 or -1, one per row")
    return Rows(storage, y.astype(np.int8), constant=constant, threads=threads, resident=resident)
