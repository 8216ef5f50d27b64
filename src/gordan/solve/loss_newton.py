"""Newton's method for regularized losses: ½wᵀJw + Σ φ_i(A_i·w), with A_i = y_i(x_i, 1?) and J = 0 for a free intercept, else 1.

A step solves (J + AᵀhA) s = -gradient with h = φ'' ≥ 0: by a Cholesky factorization if there are few columns, by one of the size
of the rows with h > 0 if there are few of these, and otherwise by conjugate gradients. Later steps reuse a factorization as the
preconditioner of conjugate gradients, for as long as that costs less than a new one. Conjugate gradients without one are tried
first, and used for as long as they take few steps. The diagonal of J + AᵀhA is then the preconditioner of sparse rows: their
columns differ much in how often they are used. If there are many rows, a part of them is solved first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.blas import factorized, solved
from gordan.deadlines import UNLIMITED, Deadline, Pace
from gordan.memory import fits
from gordan.rows import Rows, Storage


@dataclass(frozen=True)
class Tuning:
    """Constants of the method; `benchmarks/losses.py` shows what each choice costs."""

    # The largest number of columns for which a matrix of that size is factorized.
    most_factorized: int = 3000
    # With more columns than rows with h > 0, the largest number of these rows for which their Gram matrix is factorized: beyond
    # it conjugate gradients cost less. For sparse rows they nearly always do, unless they stop before the residual is small; but
    # where a matrix for all columns would be factorized, that for at most half as many rows costs less.
    few_dense: int = 1000
    few_sparse: int = 100
    # The largest relative error of the slope of a direction from that matrix.
    hidden: float = 1e-3
    # The share of the initial slope that a line search may leave. The first step tried is Newton's, which is right near the end.
    slope_left: float = 0.1
    # The largest factor by which a line search increases a step that is too short: with hardly any curvature there may be much of
    # it a little farther along the line. After `halvings` steps a bracket is divided by orders of magnitude, those of the badly
    # scaled columns, where Newton's method leaves it; it is multiplied by `fall` if its lower end is 0.
    growth: float = 10.0
    halvings: int = 8
    fall: float = 1e-2
    # Largest relative residual of conjugate gradients. Near the end they aim at the share `wanted` of a gradient that is small
    # enough: more precision is no use, and a little more, up to `near_end`, costs less than another step if steps do reduce it.
    forcing: float = 0.1
    wanted: float = 0.5
    near_end: float = 3.0
    most_cg: int = 300
    # Conjugate gradients without a factorization are preconditioned by the diagonal once they took more than `many_cg` steps, if
    # there are this many rows per column. The diagonal itself is best for rows of few entries: scaled by it, the largest
    # eigenvalue of AᵀhA is at most their number. For rows of more entries, as those of text, its square root is better.
    many_cg: int = 4
    diagonal_rows: float = 0.5
    few_entries: int = 32
    # Rows of well-conditioned columns need no factorization: conjugate gradients without one are tried for this many times the
    # steps that cost as much by the count below, which is low. Where they end in time, they are used again, until all of them
    # together took `unaided_in_all` times these steps: a factorization would then have served several steps of Newton's method.
    # For sparse rows they are tried if a factorization costs at least `unaided_sparse` steps: with few columns it costs less.
    unaided: float = 1.3
    unaided_in_all: float = 4.0
    unaided_sparse: int = 25
    # Conjugate gradients run on a copy of the rows with h > 0 if these are less than this share of the rows.
    worth_taking: float = 0.7
    # Copying a dense row costs as much as this many steps of conjugate gradients with it.
    taking_dense: float = 3.0
    # The cost of a product of two entries of a row in second moments, and of one in a factorization, relative to the cost of an
    # entry in two passes: measured at 10,000 × 384 and, sparse, at 32,561 × 123.
    dense_pair: float = 0.024
    sparse_pair: float = 0.5
    cube: float = 0.0083
    # For the squared hinge on nearly separable rows, the rows with h > 0 change at every step. If the gap stays wide, the loss is
    # minimized for these shares of C first, each to a relative gap of `share_tol`.
    shares: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
    share_tol: float = 0.1
    # Dense rows of at most this many entries are held as one signed array, and second moments are one product of matrices: with
    # so few entries, most of the time of a pass is the overhead of its calls.
    at_once: int = 1 << 17
    # Entries of rows that are copied at a time for second moments.
    taken: int = 1 << 23
    # Copies of a factorized matrix in memory.
    copies: int = 3

    def factorizes(self, columns: int) -> bool:
        """Return whether a matrix of that size is factorized: one that is not too large, and of which copies fit in memory."""
        return columns <= self.most_factorized and fits(8 * self.copies * columns * columns)

    def is_too_wide(self, storage: Storage, columns: int) -> bool:
        """Return whether sparse rows in memory have too many columns for a factorization, so that other methods suit them."""
        return storage.in_memory and storage.sparse and columns > self.most_factorized


@dataclass(frozen=True)
class PartTuning:
    """When part of the rows is solved first, to start from its plane.

    That is done with at least `rows_per_column` rows for each column and `least_rows` in all. The part is a `share` of the rows,
    at least `least_per_column` for each column, and is solved to `tol`; if there is a time limit, in at most `share_of_time` of
    the time left, because with a large C a plane that fits the part better may fit all rows worse. For the hinge, and for smooth
    losses whose C ℓ″(0) ‖x‖² is above `small` on average, the plane of a part depends too much on its own noise to save steps,
    unless there are more rows per column (`for_hinge`, `for_large_c`). But the factorization for a part saves one for all rows,
    which is worth it for smooth losses of dense rows if that costs at least `costly_factor` steps of conjugate gradients.
    """

    rows_per_column: int = 40
    for_hinge: int = 270
    for_large_c: int = 1000
    small: float = 10.0
    costly_factor: int = 6
    least_rows: int = 4000
    share: float = 0.1
    least_per_column: int = 10
    tol: float = 1e-2
    share_of_time: float = 0.5

    def choose(self, rows: Rows, seed: int) -> Array:
        """Return the numbers of the rows of a random part, in increasing order.

        Rows on other machines are brought to this process, so they are at most as many as would be solved here.
        """
        count = min(rows.n, max(int(self.share * rows.n), self.least_per_column * rows.d))
        if rows.reduces:
            count = min(count, rows.storage.min_entries // rows.d)
        return np.sort(np.random.default_rng(seed).choice(rows.n, count, replace=False))


TUNING, PART = Tuning(), PartTuning()

Weights = Callable[[Array], Array]
Curvature = Callable[[Array, Array], Array]


class Hessian(NamedTuple):
    """The matrix AᵀhA of the second derivatives of the losses, with its h."""

    h: Array
    products: Array

    @staticmethod
    def of(rows: Rows, h: Array, before: Hessian | None, A: Array | None = None) -> Hessian:
        """Return the matrix for h, updated from the one before if that takes fewer rows; A is as in `second_moment`."""
        active = np.flatnonzero(h)
        if before is not None:
            changed = np.flatnonzero(h != before.h)
            if len(changed) < len(active):
                products = second_moment(rows, changed, (h - before.h)[changed], A)
                products += before.products
                return Hessian(h, products)
        return Hessian(h, second_moment(rows, active, h[active], A))


@dataclass(eq=False)
class History:
    """What conjugate gradients took so far, from which follows how they go on."""

    largest_gradient: float = 0.0
    last_gradient: float = 0.0
    converged: bool = True
    """Whether the last ones reached a residual that is small enough."""
    most_steps: int = 0
    """The largest number of steps so far."""
    products: int = 0
    """The number of products with AᵀhA so far, each of which is one step and costs two passes."""


@dataclass(eq=False)
class Newton:
    """The state of the method: w, the scores z = A w, and the factorization in use."""

    rows: Rows
    J: Array
    w: Array
    z: Array
    time: Deadline
    steps: int = 0
    hessian: Hessian | None = None
    factor: Any = None
    """The factorization of J + AᵀhA."""
    stale: bool = True
    """Whether the factorization is no good as a preconditioner any more."""
    unaided: bool = False
    """Whether conjugate gradients without a factorization are tried first, and took few steps so far."""
    by_products: bool = True
    """Whether products of few rows led to directions that rounding did not hide."""
    cg: History = field(default_factory=History)

    @staticmethod
    def start(rows: Rows, free: bool, w: Array | None, time: Deadline, unaided: bool = False) -> Newton:
        """Return the state at w, or at 0."""
        J = np.ones(rows.d)
        if free:
            J[-1] = 0.0
        newton = Newton(rows, J, np.zeros(rows.d), np.zeros(rows.n), time, unaided=unaided)
        if w is not None:
            newton.w, newton.z = w.copy(), newton.scores(w)
        return newton

    def prepare(self, rows: Rows, weights: Weights, curvature: Curvature) -> None:
        """Begin with the factorization for few rows that stand for all of these, if that saves one for all."""
        columns = self.rows.d
        if not TUNING.factorizes(columns) or steps_for_a_factor(self.rows, self.rows.n) < 2:
            return
        z = rows.scores(self.w)
        h = curvature(z, weights(z))
        active = np.flatnonzero(h)
        if len(active):
            H = second_moment(rows, active, h[active])
            H[np.diag_indices(columns)] += self.J
            self.factor, self.stale = factorized(H), False

    @cached_property
    def A(self) -> Array | None:
        """The signed rows as one array if they are dense and small, else None."""
        rows = self.rows
        return rows.dense() if rows.is_array and rows.n * rows.d <= TUNING.at_once else None

    def scores(self, w: Array) -> Array:
        """Return A w."""
        return self.rows.scores(w) if self.A is None else self._counted(self.A @ w)

    def combine(self, p: Array) -> Array:
        """Return Aᵀp."""
        return self.rows.combine(p) if self.A is None else self._counted(p @ self.A)

    def _counted(self, product: Array) -> Array:
        """Count a product with A as a pass, and check that it is finite."""
        self.rows.passes += 1
        self.rows.check(product)
        return np.asarray(product)

    def gradient(self, alpha: Array) -> Array:
        """Return J w - Aᵀα."""
        return np.asarray(self.J * self.w - self.combine(alpha))

    def step(self, gradient: Array, weights: Weights, curvature: Curvature, alpha: Array, small: float = 0.0) -> bool:
        """Take one step, and return whether w changed; `small` is the length of a gradient that is small enough, if known."""
        s = self.direction(gradient, curvature(self.z, alpha), alpha, small)
        slope = float(gradient @ s)
        if not slope < 0:
            return False
        u = self.scores(s)
        line = Line(self.z, u, float((self.J * self.w) @ s), float((self.J * s) @ s))
        t = line_search(line, derivatives(weights, curvature), TUNING.slope_left * -slope)
        if not t > 0:
            return False
        self.steps += 1
        before = self.w
        self.w = self.w + t * s
        # every few steps the scores are computed anew, before the roundings of the sums add up
        self.z = self.z + t * u if self.steps % 8 else self.scores(self.w)
        return bool((self.w != before).any())

    def direction(self, gradient: Array, h: Array, alpha: Array, small: float) -> Array:
        """Return the direction s with (J + AᵀhA) s = -gradient, approximately; `small` is as in `step`."""
        active = np.flatnonzero(h)
        columns, k = self.rows.d, len(active)
        if k == 0:
            # without weights the plane is only too long: a free b that stayed behind would soon bring some row below 1
            if not alpha.any():
                return -self.w
            # the rows that had curvature before say how large a step may be, and how columns compare
            return np.where(self.J > 0, -gradient, 0.0) if self.factor is None else -solved(self.factor, gradient)
        least = steps_for_a_factor(self.rows, k) if self.unaided else 0
        if least >= 2:
            s = self._conjugate_gradients(gradient, h, small, self._by_diagonal(h), int(TUNING.unaided * least))
            self.unaided = self.cg.converged and self.cg.products <= TUNING.unaided_in_all * least
            if self.cg.converged or self.time.passed:  # a direction that the limit cut short is better than none
                return s
        self.unaided = False
        factorizes = TUNING.factorizes(columns)
        spared = self.rows.sparse and self.cg.converged and not (factorizes and 2 * k <= columns)
        few = k <= (TUNING.few_sparse if spared else TUNING.few_dense)
        if k < columns and few and self.by_products and fits(8 * k * (columns + TUNING.copies * k)):
            found = self._by_rows(gradient, h[active], active)
            if found is not None:
                return found
            self.by_products = not factorizes
        if not factorizes:
            return self._conjugate_gradients(gradient, h, small, self._by_diagonal(h), TUNING.most_cg)
        reused = self.factor is not None and not self.stale
        most = min(steps_for_a_factor(self.rows, k), TUNING.most_cg) if reused else 0
        if most >= 2:
            s = self._conjugate_gradients(gradient, h, small, lambda r: solved(self.factor, r), most)
            self.stale = not self.cg.converged
            return s
        if not self.time.affords(seconds_for_a_factor(self.rows, k, self.time.pace)):
            return self._conjugate_gradients(gradient, h, small, np.array, TUNING.most_cg)
        self.hessian = Hessian.of(self.rows, h, self.hessian, self.A)
        H = self.hessian.products.copy()
        H[np.diag_indices(columns)] += self.J
        self.factor, self.stale = factorized(H), False
        return -solved(self.factor, gradient)

    @cached_property
    def _squared(self) -> Rows | None:
        """The rows whose entries are the squares of A's, of which the diagonal of AᵀhA is a combination; None if not worth it."""
        rows = self.rows
        worth = rows.in_memory and rows.sparse and rows.n >= TUNING.diagonal_rows * rows.d and fits(8 * rows.entries)
        return rows.squared() if worth else None

    def _by_diagonal(self, h: Array) -> Callable[[Array], Array]:
        """Return the preconditioner made of the diagonal of J + AᵀhA, or none as long as few conjugate gradients are needed."""
        if self.cg.most_steps <= TUNING.many_cg or self._squared is None:
            return np.array
        diagonal = self.J + self._squared.combine(h)
        self.rows.passes += 1
        if self.rows.entries > TUNING.few_entries * self.rows.n:
            diagonal = np.sqrt(diagonal)
        inverse = 1 / np.where(diagonal > 0, diagonal, 1.0)
        return lambda r: inverse * r

    def _by_rows(self, gradient: Array, h: Array, active: Array) -> Array | None:
        """Return the direction from the k rows with h > 0: with r = h A s, (AAᵀ + 1/h) r = -A g and s = -g - Aᵀr for J = 1.

        A free intercept is one more unknown, and Σ y r = -g_b one more equation. None if rounding hides the direction: if columns
        are badly scaled, the products of rows say nothing about columns of small entries. Then sᵀ(J + AᵀhA)s differs from -gᵀs.
        """
        rows, free = self.rows.take(active), self.J[-1] == 0
        taken, g, signs = rows, gradient, None
        if free:
            rows, g, signs = replace(rows, constant=0.0), gradient[:-1], rows.signs * (rows.scale * rows.constant)
        K = rows.gram(np.arange(rows.n))
        K[np.diag_indices(rows.n)] += 1 / h
        r, b = bordered(K, -rows.scores(g), signs, -float(gradient[-1]))
        s = -(g + rows.combine(r))
        s = np.append(s, -b) if free else s
        slope, u = float(gradient @ s), taken.scores(s)
        return s if abs(float(self.J * s @ s) + float(h * u @ u) + slope) <= TUNING.hidden * abs(slope) else None

    def _conjugate_gradients(
        self, gradient: Array, h: Array, small: float, precondition: Callable[[Array], Array], most: int
    ) -> Array:
        """Return the direction, with a residual that is a share of the gradient and shrinks faster than it."""
        cg, first = self.cg, math.sqrt(float(gradient @ gradient))
        cg.largest_gradient = max(cg.largest_gradient, first)
        enough = first * min(TUNING.forcing, math.sqrt(first / cg.largest_gradient)) if first > 0 else 0.0
        aim, falls, cg.last_gradient = TUNING.wanted * small, first <= 0.5 * cg.last_gradient, first
        if first > small and enough <= (TUNING.near_end * small if falls else aim):
            enough = aim
        active = np.flatnonzero(h)
        some = len(active) < TUNING.worth_taking * self.rows.n and self.rows.in_memory
        if some and not self.rows.sparse:  # at least as many steps are expected as before
            some = cg.most_steps * (self.rows.n - len(active)) > TUNING.taking_dense * len(active)
        rows, h = (self.rows.take(active), h[active]) if some else (self.rows, h)
        found = conjugate_gradients(lambda p: self.J * p + rows.curved(h, p), -gradient, enough, most, precondition, self.time)
        cg.converged, cg.most_steps = found.converged, max(found.steps, cg.most_steps)
        cg.products += found.steps
        return found.s


def seconds_for_a_factor(rows: Rows, k: int, pace: Pace) -> float:
    """Predict the seconds of a factorization for k rows with h > 0, which cannot be interrupted, at the pace of a call."""
    return pace.products(rows.d, rows.d, int(k * rows.entries / (rows.n * rows.d))) + pace.factors(rows.d)


def may_be_unaided(rows: Rows) -> bool:
    """Return whether conjugate gradients without a factorization are tried first."""
    return not rows.sparse or steps_for_a_factor(rows, rows.n) >= TUNING.unaided_sparse


def steps_for_a_factor(rows: Rows, k: int) -> int:
    """Return how many steps of conjugate gradients, two passes each, cost as much as a factorization for k rows with h > 0.

    The cost is counted and not timed, because times would make one run differ from the next.
    """
    per_row, size = rows.entries / rows.n, rows.d if rows.sparse else min(k, rows.d)
    pairs = k * per_row * (TUNING.sparse_pair * per_row if rows.sparse else TUNING.dense_pair * size)
    return int((pairs + TUNING.cube * size**3) / rows.entries)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a search, with the planes that were computed last: as columns, NaN for those that there are not yet."""

    def __init__(self, planes: Array) -> None:
        super().__init__()
        self.planes = planes


class Solved(NamedTuple):
    """The solution s of conjugate gradients, the number of steps, and whether the residual is small enough."""

    s: Array
    steps: int
    converged: bool


def conjugate_gradients(
    product: Callable[[Array], Array],
    right: Array,
    enough: float,
    most: int,
    precondition: Callable[[Array], Array],
    time: Deadline = UNLIMITED,
) -> Solved:
    """Solve H s = `right` up to a residual of size `enough`, where `product` multiplies by H; vectors may be blocks.

    It ends early if the time is up, or in a direction in which H has no curvature.
    """
    s, r = np.zeros_like(right), right
    q = precondition(r)
    p, rq = q, float(np.vdot(r, q))
    for k in range(1, most + 1):
        Hp = product(p)
        bend = float(np.vdot(p, Hp))
        if not bend > 0:
            return Solved(s if s.any() else p, k, True)
        t = rq / bend
        s = s + t * p
        r = r - t * Hp
        if math.sqrt(float(np.vdot(r, r))) <= enough or time.passed:
            return Solved(s, k, True)
        q = precondition(r)
        new = float(np.vdot(r, q))
        p, rq = q + (new / rq) * p, new
    return Solved(s, most, False)


def bordered(K: Array, right: Array, signs: Array | None, total: float) -> tuple[Array, float]:
    """Solve K r + b·signs = right and signs·r = total for r and b; without signs, b = 0 and K r = right."""
    factor = factorized(K)
    r = solved(factor, right)
    if signs is None:
        return r, 0.0
    across = solved(factor, signs)
    b = (float(signs @ r) - total) / float(signs @ across)
    return r - b * across, b


class Line(NamedTuple):
    """The planes w + t s: z and u are the scores of w and s, `along` is wᵀJs and `bend` is sᵀJs."""

    z: Any
    u: Any
    along: float
    bend: float


Derivatives = Callable[[Any, Any], tuple[float, Callable[[], float]]]


def line_search(line: Line, of_losses: Derivatives, enough: float, time: Deadline = UNLIMITED) -> float:
    """Return t > 0 where the slope of the objective along a line is at most `enough`, by Newton's method kept within a bracket.

    `of_losses(z, u)` returns the slope of the sum of the losses along u at the scores z, and a function for its derivative. When
    the time is up, the largest t up to which the objective is known to fall is returned, once there is one.
    """
    (z, u, along, bend), t, low, high = line, 1.0, 0.0, math.inf
    for k in range(40):
        of_loss, second = of_losses(z + t * u, u)
        slope = along + t * bend + of_loss
        if abs(slope) <= enough:
            break
        low, high = (low, t) if slope > 0 else (t, high)
        if low > 0 and time.passed:
            return low  # at a larger t the objective may be far above that of the start
        curvature = bend + second()
        new = t - slope / curvature if curvature > 0 else math.inf
        if high == math.inf:
            new = min(new, TUNING.growth * t)
        elif not low < new < high:
            new = _within(low, high) if k >= TUNING.halvings else 0.5 * (low + high)
        if new in (low, high, t):
            break
        t = new
    return t


def _within(low: float, high: float) -> float:
    """Return t between `low` and `high`, which may differ by orders of magnitude."""
    return math.sqrt(low * high) if low > 0 else TUNING.fall * high


def derivatives(weights: Weights, curvature: Curvature) -> Derivatives:
    """Return the derivatives along a line of losses with these weights (minus the slopes) and second derivatives."""

    def of_losses(z: Any, u: Any) -> tuple[float, Callable[[], float]]:
        alpha = weights(z)
        return -float(alpha @ u), lambda: float((curvature(z, alpha) * u) @ u)

    return of_losses


def second_moment(rows: Rows, i: Array, h: Array, A: Array | None = None) -> Array:
    """Return Σ h A_i A_iᵀ over the rows i, if any, on the host; h may have both signs. A is the array of all rows, if held."""
    if not len(i):
        return np.zeros((rows.d, rows.d))
    if A is not None or (rows.is_array and len(i) * rows.d <= TUNING.at_once):
        rows.passes += len(i) / rows.n if A is not None else 0.0
        own = rows.take(i).dense() if A is None else A[i]
        return np.asarray((own * h[:, None]).T @ own)
    total = np.zeros((rows.d, rows.d))
    for sign in (1.0, -1.0):
        own = sign * h > 0
        if not own.any():
            continue
        if not rows.in_memory or (len(i) == rows.n and own.all()):
            q = np.zeros(rows.n)  # one for each row, because it is sent to where the rows are
            q[i[own]] = sign * h[own]
            products = rows.moments(q)[0]
            total += sign * rows.to_host(products)
            continue
        # from a copy of these rows: among the others they would be read a few at a time
        each = max(1, int(TUNING.taken * rows.n / rows.entries))
        for lo in range(0, int(own.sum()), each):
            some = np.flatnonzero(own)[lo : lo + each]
            part = rows.take(i[some])
            total += sign * part.moments(sign * h[some])[0]
    return total
