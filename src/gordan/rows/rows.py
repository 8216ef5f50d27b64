"""`Rows`: the matrix A with A_i = scale · y_i (x_i, 1?) as five operations. Passes are counted here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, vector, vectors, whole_number
from gordan.errors import InputError
from gordan.rows.accept import host, stored
from gordan.rows.mapped import is_mapped
from gordan.rows.memory import Storage
from gordan.rows.threads import available

UNIFORM = np.zeros(1)
NO_CAPS = np.array([np.inf])
# Rows shorter than the root of this are visited with short steps: full ones would leave the range of floats.
SMALLEST_SQUARE = 1e-150
# Rows shorter than the root of this share of the mean square count as that long where rows are weighed by their length.
FLAT = 1e-3
# Steps of conjugate gradients between two questions whether to go on.
STEPS_A_LOOK = 64
# Where the rows have fewer entries than so many times d, columns that none of them uses are left out of these steps: a vector
# over columns then stays in the cache (11,000 rows of 160 entries, d = 130,000: a quarter of the whole time).
WIDE = 4


class Ascent(NamedTuple):
    """What the last epoch of an ascent met: the largest violation of optimality, the lowest score; the epochs done; and the share
    of the rows visited that the last one brought to a bound or away from it."""

    violation: float
    lowest: float
    epochs: int
    turned: float


class Visits(NamedTuple):
    """Which rows an ascent visits, for one that goes on in several calls: their order, of which the first `resting[0]` do not
    rest; and the violations beyond which one may. Changed in place."""

    order: Array
    resting: Array

    @classmethod
    def all(cls, n: int) -> Visits:
        """Every row."""
        return cls.of(np.arange(n))

    @classmethod
    def of(cls, rows: Array) -> Visits:
        """These."""
        return cls(rows.astype(np.int64), np.array([len(rows), -np.inf, np.inf]))


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


class Rows:
    """A = scale · diag(signs) [X, 1?], never formed: the storage of X is read in place. n is the number of rows, d the length of
    w: the columns of X, and one more for a constant column.

    Vectors are float64 whatever the storage. `passes` is the number of stored entries touched so far over the number stored:
    a product or a fused pass costs 1, `take(i)` costs its share of the rows. `take` starts a count of its own.

    `resident` rows leave vectors over rows on the device where X is: `scores` and `softmin` give tensors, `combine` and `softmin`
    take them, and nothing of length n crosses to the host (see `place`). Otherwise they come back as float64 on the host.
    """

    def __init__(
        self,
        storage: Storage,
        signs: Array,
        *,
        constant: bool = False,
        scale: float = 1.0,
        threads: int | None = None,
        resident: bool = False,
    ) -> None:
        self._storage = storage
        self.n = storage.n
        self.d = storage.d + constant
        self._signs = signs
        self._placed_signs = storage.place(signs, "signs")
        self.resident = resident
        self._constant = constant
        self._scale = scale
        self._groups: Any = None
        self.threads = available() if threads is None else threads
        self.passes = 0.0

    @property
    def dtype(self) -> Any:
        """Type of the stored entries: a NumPy type, or the name of one that NumPy lacks."""
        return self._storage.dtype

    def __repr__(self) -> str:
        return f"Rows({self._storage.kind} {self.dtype}, n={self.n}, d={self.d}, scale={self._scale:.3g})"

    def scaled(self, factor: float) -> Rows:
        """The rows factor · A over the same storage, with a count of passes of their own."""
        return self._with(self._storage, self._signs, self._scale * factor)

    def place(self, values: Any) -> Any:
        """A vector over rows (log p_0, p) where the rows are: placed once, it is not copied again by every pass."""
        return self._storage.place(values, "the vector")

    def residing(self) -> Rows:
        """The same rows, `resident`, with a count of passes of their own."""
        return Rows(self._storage, self._signs, constant=self._constant, scale=self._scale, threads=self.threads, resident=True)

    def lift(self, values: Any) -> Any:
        """A vector over rows where these are, in float64; positions of rows as they are."""
        return self._storage.lift(values)

    def fetch(self, values: Any) -> Array:
        """And back: float64 on the host."""
        return self._storage.fetch(values)

    def moments(self, i: Any, q: Any) -> tuple[Any, Any, Any]:
        """Σ q_k A_i A_iᵀ, Σ q_k A_i and Σ q_k over the rows i, good for a direction: for rows on a device, where i and q are and
        where the answers stay; `solve` takes them. Costs the share of the rows."""
        self.passes += len(i) / self.n
        products, sums, total = self._storage.moments(i, q, self._placed_signs, self._constant)  # type: ignore[attr-defined]
        return products * self._scale * self._scale, sums * self._scale, total

    def solve(self, H: Any, b: Array) -> Array | None:
        """H⁻¹ b on the host, for a positive definite H made from `moments`; None where it is not."""
        x: Array | None = self._storage.solve(H, b)  # type: ignore[attr-defined]
        return x

    def split(self, halves: Any) -> Any:
        """The halves where the rows are, likewise."""
        return self._storage.split(halves, "halves")

    def radius(self, p: float = 2.0) -> float:
        """R = max_i ‖A_i‖_p. One pass, which also finds NaN and infinity."""
        if not p >= 1:
            raise InputError(f"p is {p}; a norm needs p >= 1")
        if hasattr(self._storage, "largest_norm"):  # elsewhere: one number comes back
            self.passes += 1
            norms = np.array([self._storage.largest_norm(p)])
        else:
            norms = self._norms(p)
        self._check(np.max(norms))
        if self._constant:
            top = np.maximum(norms, 1.0)
            norms = top if math.isinf(p) else top * ((norms / top) ** p + top**-p) ** (1 / p)
        return float(np.max(norms)) * self._scale

    def scores(self, w: Array) -> Array:
        """A w."""
        self.passes += 1
        v, b = self._split(w)
        s: Array = self._back(self._storage.scores(v, b, self._placed_signs, self.threads))
        return s

    def combine(self, p: Array) -> Array:
        """Aᵀp."""
        self.passes += 1
        q = self._storage.place(p, "p") * self._placed_signs
        q *= self._scale  # before the rows: it undoes their size
        combination = self._storage.combine(q, self.threads)
        if self._constant:
            combination = np.append(combination, float(q.sum()))
        self._check(combination)
        return combination

    def softmin(self, v: Array, log_p0: Array | None = None, halves: Array | None = None) -> Softmin:
        """One fused pass at v: p_i ∝ exp(log p_0i - A_i·v), normalized to mass 1, or to ½ over each half.

        `log_p0` is uniform unless given (one entry per row); `halves` holds 0 or 1 per row (int8).
        """
        return self.softmins(vector(v, "v", self.d, "columns")[None], log_p0, halves)[0]

    def softmins(self, stack: Array, log_p0: Array | None = None, halves: Array | None = None) -> list[Softmin]:
        """`softmin` at each row v of the stack, from the same p_0: together they cost one pass."""
        self.passes += 1
        x = vectors(stack, "v", self.d, "columns") * self._scale
        x, b = (x[:, :-1].copy(), x[:, -1].copy()) if self._constant else (x, np.zeros(len(x)))
        log_p0 = UNIFORM if log_p0 is None else self._storage.place(log_p0, "log_p0")
        groups, count = (self._everything, 1) if halves is None else (self._storage.split(halves, "halves"), 2)
        sums, scores = self._storage.softmin(x, b, self._placed_signs, self._scale, log_p0, groups, count, self.threads)
        totals = sums.tally[:, 1]
        if not self.resident:
            totals = self._storage.totals(scores, log_p0, groups, sums)
            scores = self._storage.fetch(scores)
        each = zip(sums.tally.tolist(), sums.acc, scores, totals.tolist(), strict=True)
        return [self._softmin(*one) for one in each]

    def _softmin(self, tally: list[list[float]], acc: Array, scores: Array, totals: list[float]) -> Softmin:
        """The answer from its sums."""
        peak, total, signed, lowest, highest = tally
        for part, high in zip(total, highest, strict=True):
            if not part + abs(high) < math.inf:  # NaN reaches the total, infinity one of the two
                self._check(math.nan)
            if part == 0:
                raise InputError("p has nowhere to go: no row (of one of the halves) has a log_p0 above -inf")
        share = [1.0 / (len(total) * part) for part in total]
        combination = acc[0] * share[0] if len(share) == 1 else acc[0] * share[0] + acc[1] * share[1]
        if self._constant:
            combination = np.append(combination, sum(q * part for q, part in zip(signed, share, strict=True)))
        return Softmin(combination, scores, peak, [math.log(part) for part in totals], lowest)

    def lowest(self, w: Array, k: int, halves: Array | None = None) -> tuple[Array, Array]:
        """The k rows of smallest score and their scores, lowest first; ties go to the earlier row.

        With `halves` (0 or 1 per row) the k rows of each half: those of half 0 and then those of half 1.
        """
        k = min(whole_number(k, "k"), self.n)
        self.passes += 1
        v, b = self._split(w)
        if self.reduces:
            groups = None if halves is None else self._storage.split(halves, "halves")
            found, scores, finite = self._storage.lowest(v, b, self._placed_signs, k, groups)  # type: ignore[attr-defined]
            self._check(0.0 if finite else math.nan)
            return np.concatenate(found), np.concatenate(scores)
        s = self._storage.scores(v, b, self._placed_signs, self.threads)
        self._check(0.0 if self._storage.finite(s) else math.nan)
        if halves is None:
            return self._storage.smallest(s, k)
        fetched, chosen = self._storage.fetch(s), []
        for half in (0, 1):
            own = np.flatnonzero(host(halves) == half)
            chosen.append(own[np.argsort(fetched[own], kind="stable")[:k]])
        i = np.concatenate(chosen)
        return i, fetched[i]

    @property
    def reduces(self) -> bool:
        """Whether `lowest` costs less than `scores`: where scores are on other machines, it brings k of them here."""
        return hasattr(self._storage, "lowest")

    def take(self, i: Any) -> Rows:
        """The rows i, as rows again; costs their share of a pass."""
        i = np.asarray(i)
        if i.dtype == np.bool_ and i.shape == (self.n,):
            i = np.flatnonzero(i)
        if i.ndim != 1 or not len(i) or i.dtype.kind not in "iu" or not 0 <= i.min() <= i.max() < self.n:
            raise InputError(f"take needs a list of rows between 0 and {self.n - 1}, or a mask of {self.n}; got {i!r:.60}")
        i = i.astype(np.intp)
        self.passes += len(i) / self.n
        return self._with(self._storage.take(i), self._signs[i], self._scale)

    def _with(self, storage: Storage, signs: Array, scale: float) -> Rows:
        return Rows(storage, signs, constant=self._constant, scale=scale, threads=self.threads, resident=self.resident)

    @property
    def _everything(self) -> Any:
        """Groups where there is but one."""
        if self._groups is None:
            self._groups = self._storage.place(np.zeros(self.n, np.int8), "groups")
        return self._groups

    def _back(self, values: Any) -> Any:
        """A vector over rows on its way out of a pass: checked, and on the host unless it is to stay where it is."""
        if self.resident:
            self._check(0.0 if self._storage.finite(values) else math.nan)
            return values
        fetched = self._storage.fetch(values)
        self._check(fetched)
        return fetched

    def gram(self, i: Array, j: Array | None = None, weights: Array | None = None) -> Array:
        """The products Σ_k weights_k A_ik A_jk for rows i and j (i again if None), in memory; costs their share of a pass.

        Every column has weight 1 if none are given.
        """
        self.passes += (len(i) + (0 if j is None else len(j))) / self.n
        j = i if j is None else j
        weights = None if weights is None else vector(weights, "weights", self.d, "columns")
        products = self._storage.gram(i, j, self._scale, weights[:-1] if weights is not None and self._constant else weights)
        if self._constant:
            products += self._scale**2 * (1.0 if weights is None else weights[-1])
        products *= np.outer(self._signs[i], self._signs[j])
        return products

    @property
    def scale(self) -> float:
        """The factor in A = scale · diag(signs) [X, 1?]."""
        return self._scale

    @property
    def mapped(self) -> bool:
        """Whether the entries are in a memory-mapped file, of which no copy should be made."""
        return is_mapped(getattr(self._storage, "arrays", (None,))[0])

    @property
    def entries(self) -> int:
        """Number of stored entries."""
        return self._storage.entries

    @property
    def sparse(self) -> bool:
        """Whether only nonzero entries are stored."""
        return hasattr(self._storage, "csr")

    @property
    def in_memory(self) -> bool:
        """Whether single rows can be visited: what `ascend` needs. `take` gives such rows, whatever it takes them from.

        Rows of a large file count as not in memory: visited in random order, each would cost a seek.
        """
        return hasattr(self._storage, "ascend") and not getattr(self._storage, "on_disk", False)

    def csr(self) -> Any:
        """A as a SciPy CSR array in float64, or None where the rows are dense."""
        import scipy.sparse as sp

        if not self.sparse:
            return None
        X = self._storage.csr()  # type: ignore[attr-defined]
        if self._constant:
            X = sp.hstack([X, np.ones((self.n, 1))], format="csr")
        X.data *= np.repeat(self._signs * self._scale, np.diff(X.indptr))
        return X

    def dense(self) -> Array:
        """A as a plain float64 array: for few rows."""
        X = self._storage.csr().toarray() if self.sparse else self._storage.arrays[0].astype(np.float64)  # type: ignore[attr-defined]
        if self._constant:
            X = np.column_stack((X, np.ones(self.n)))
        return np.asarray(X * (self._signs * self._scale)[:, None])

    def columns(self, j: Array) -> Array:
        """The columns j of A, for rows in memory; costs their share of a pass."""
        self.passes += len(j) / self.d
        stored = j < self._storage.d
        block = np.ones((self.n, len(j)))
        block[:, stored] = self._storage.columns(j[stored])  # type: ignore[attr-defined]
        return np.asarray(block * (self._signs * self._scale)[:, None])

    def squares(self) -> Array:
        """‖A_i‖² for every row, infinite where that is beyond the floats. One pass."""
        with np.errstate(over="ignore"):
            norms = self._norms(2.0) * self._scale
            if np.isnan(norms).any():
                self._check(math.nan)
            return np.asarray(norms**2 + (self._scale**2 if self._constant else 0.0))

    def _norms(self, p: float) -> Array:
        """‖x_i‖_p: a pass, or what an earlier one found if the rows are not in memory."""
        kept: dict[float, Array] | None = getattr(self._storage, "kept", None)
        if kept is not None and p in kept:
            return kept[p]
        self.passes += 1
        norms = self._storage.norms(p, self.threads)
        if kept is not None:
            kept[p] = norms
        return norms

    def ascend(
        self,
        x: Array,
        w: Array,
        *,
        squares: Array,
        epochs: int,
        caps: Array | None = None,
        sides: Array | None = None,
        column: float = 0.0,
        offset: float = 0.0,
        visit: Array | None = None,
        visits: Visits | None = None,
        until_separated: bool = False,
        reflect: bool = False,
        quiet: float = -1.0,
        seed: int = 1,
    ) -> Ascent:
        """Epochs of dual coordinate ascent on max_x Σx - ½‖Σ x_i A_i‖², 0 ≤ x ≤ caps; x and w = Σ x_i A_i change in place.

        Row i is visited in random order and x_i moved to the best value for it; a row at its bound whose gradient is clear of the
        last epoch's violations rests until the call is over (the shrinking of LIBLINEAR), or as long as the same `visits` are
        passed on. w has one entry more than A has columns: the weight of a further column, whose entry in row i is `column` times
        sides_i = ±1, and sides_i · `offset` is added to the score (a free intercept). `visit` names the rows to visit, all if
        None. `until_separated` ends after an epoch in which every row met had a positive score, `quiet` after one that turns at
        most that share of the rows. An epoch costs the share of the rows it visits.

        `reflect` is another way: x_i goes twice as far as would be best for it, and never back, so that w is mirrored at every
        plane A_i·w = 1 on whose wrong side it is (T. S. Motzkin and I. J. Schoenberg, The relaxation method for linear
        inequalities, 1954). That does not lead to the best x, but to a separator, where there is one, and in fewer epochs.
        """
        if visits is None:
            visits = Visits.all(self.n) if visit is None else Visits.of(visit)
        bounds = NO_CAPS if caps is None else caps
        if self._constant:
            column, sides = self._scale, self._signs
        elif sides is None:
            sides = self._signs
        safe = np.where(squares > 0, np.maximum(squares, SMALLEST_SQUARE), 1.0) + (0.0 if self._constant else column * column)
        v = w[:-1] if self._constant else w  # a constant column of A is the further column of X
        tally = self._storage.ascend(  # type: ignore[attr-defined]
            self._signs,
            self._scale,
            sides,
            column,
            offset,
            *visits,
            bounds,
            safe,
            x,
            v,
            epochs,
            until_separated,
            reflect,
            quiet,
            seed,
        )
        self.passes += tally[0] / self.n
        if np.isnan(tally).any():
            self._check(math.nan)
        return Ascent(max(0.0, float(tally[1])), float(tally[2]), int(tally[3]), float(tally[4]))

    def level(
        self,
        z: Array,
        i: Array,
        groups: Array,
        *,
        mass: Array,
        pull: Array,
        squares: Array,
        caps: Array,
        rough: float,
        target: float,
        most: int,
        gradient: Array | None = None,
        go_on: Callable[[], bool] = lambda: True,
    ) -> tuple[int, float]:
        """Conjugate gradients on min ½‖Σ z_k A_i[k]‖² + pull·z over Σz = mass_g in each group; z changes in place.

        `groups` has 0 or 1 for each of the rows i, and each group up to the largest has some; `squares` are ‖A_i‖², for a
        diagonal preconditioner; `gradient` that at z, where it is known. Ends when no score differs from the mean of its group by
        more than `target`, or than `rough` while some z is not between 0 and its cap; after `most` steps, or when `go_on`, asked
        now and then, says no. Returns the steps done, each of which costs twice the share of the rows, and that difference.
        """
        share = 1.0 / np.maximum(squares, FLAT * float(np.mean(squares)) + SMALLEST_SQUARE)
        missing = mass - np.bincount(groups, weights=z, minlength=len(mass))
        z += share * (missing / np.bincount(groups, weights=share, minlength=len(mass)))[groups]
        rows, visited = self, i
        if self.sparse and len(i) * self.entries < WIDE * self.d * self.n:
            narrowed = self._storage.narrowed(i)  # type: ignore[attr-defined]
            rows, visited = self._with(narrowed, self._signs[i], self._scale), np.arange(len(i))
        if gradient is None or float(np.max(np.abs(missing))) > 1e-13 * float(np.sum(mass)):
            x = np.zeros(rows.n)
            x[visited] = z
            gradient = rows.scores(rows.combine(x))[visited] + pull
        direction, residual, tally = np.zeros(len(z)), np.empty(len(z)), np.zeros(3 + rows._storage.d)
        column = self._scale if self._constant else 0.0
        state = (groups, share, caps, z, gradient, direction, residual, tally)
        steps, last = 0, STEPS_A_LOOK
        while steps < most and last == STEPS_A_LOOK and go_on():
            last = rows._storage.level(  # type: ignore[attr-defined]
                rows._signs, self._scale, column, visited, *state, rough, target, min(STEPS_A_LOOK, most - steps)
            )
            steps += last
        self.passes += 2 * steps * len(i) / self.n + (rows.passes * len(i) / self.n if rows is not self else 0.0)
        return steps, float(tally[1])

    def _split(self, w: Array) -> tuple[Array, float]:
        w = vector(w, "w", self.d, "columns") * self._scale
        return (w[:-1], float(w[-1])) if self._constant else (w, 0.0)

    def _check(self, result: Array | float) -> None:
        """Raise if a pass gave something that is not finite, naming the entry of X to blame."""
        if np.isfinite(result).all():
            return
        bad = self._storage.first_not_finite()
        if bad is None:
            raise InputError(
                f"a product with X overflows {self._storage.sums}; divide X by a power of two so that entries are near 1 "
                "(and pass finite w, p)"
            )
        row, column, value = bad
        raise InputError(f"X[{row}, {column}] is {value}; every entry must be finite (drop or impute that row)")


def of(
    X: Any,
    signs: Any = None,
    *,
    constant: bool = False,
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
        return Rows(X._storage, X._signs, constant=X._constant, scale=X._scale, threads=threads, resident=X.resident)
    storage = stored(X, device, sums)
    y = np.ones(storage.n) if signs is None else vector(host(signs), "signs", storage.n)
    if not np.isin(y, (-1, 1)).all():
        raise InputError("signs must be +1 or -1, one per row")
    return Rows(storage, y.astype(np.int8), constant=constant, threads=threads, resident=resident)
