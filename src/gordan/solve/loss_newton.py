"""Newton's method for regularized losses: ½wᵀJw + Σ φ_i(A_i·w), with A_i = y_i(x_i, 1?) and J = 0 for a free intercept, else 1.

A step solves (J + AᵀhA) s = -gradient with h = φ'' ≥ 0: by Cholesky's factorization where columns are few, by one of the size
of the rows with h > 0 where these are few, else by conjugate gradients. A factorization is used again for later steps, as the
preconditioner of conjugate gradients, for as long as that costs less than a new one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.blas import factorized, solved
from gordan.deadlines import UNLIMITED, Deadline
from gordan.memory import fits
from gordan.rows import Rows


@dataclass(frozen=True)
class Tuning:
    """Constants of the method; `benchmarks/losses.py` shows what each choice costs."""

    # Columns up to which a matrix of that size is factorized.
    most_factorized: int = 3000
    # Rows with h > 0 up to which a matrix of their products is made where columns are more: beyond it conjugate gradients cost
    # less. For sparse rows they nearly always do, unless they do not get as far as they should.
    few_dense: int = 1000
    few_sparse: int = 100
    # Share of the slope at the start that a line search leaves. The first step tried is Newton's, which near the end is right.
    slope_left: float = 0.1
    # Largest relative residual of conjugate gradients.
    forcing: float = 0.1
    most_cg: int = 300
    # Share of rows with h > 0 below which conjugate gradients are run on a copy of these.
    worth_taking: float = 0.7
    # What a product of two entries of a row costs in second moments, and one of a factorization, as shares of what an entry
    # costs in two passes: measured at 10,000 × 384 and, sparse, at 32,561 × 123.
    dense_pair: float = 0.024
    sparse_pair: float = 0.5
    cube: float = 0.0083
    # The squared hinge of rows that a plane nearly separates: the rows that matter change at every step. Where gaps stay as wide
    # as `share_tol` it is solved anew, with these shares of C first.
    shares: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
    share_tol: float = 0.1
    # Entries of dense rows up to which they are held as one signed array, and second moments are one product of matrices: passes
    # over so few entries are mostly calls.
    at_once: int = 1 << 17
    # Entries of rows that are copied at a time for second moments.
    taken: int = 1 << 23
    # Copies of a factorized matrix in memory.
    copies: int = 3


TUNING = Tuning()

Weights = Callable[[Array], Array]
Curvature = Callable[[Array, Array], Array]


@dataclass(eq=False)
class Newton:
    """The state of the method: w, the scores z = A w, and the factorization in use; and A as an array, where it is small."""

    rows: Rows
    J: Array
    w: Array
    z: Array
    A: Array | None = None
    held: Array | None = None
    moment: Array | None = None
    factor: Any = None
    stale: bool = True
    steps: int = 0
    largest_gradient: float = 0.0
    met: bool = True
    """Whether conjugate gradients got as far as they should."""
    time: Deadline = UNLIMITED

    @staticmethod
    def start(rows: Rows, free: bool, w: Array | None = None, time: Deadline = UNLIMITED) -> Newton:
        """The state at w, or at 0."""
        J = np.ones(rows.d)
        if free:
            J[-1] = 0.0
        A = rows.dense() if rows.in_memory and not rows.sparse and rows.n * rows.d <= TUNING.at_once else None
        newton = Newton(rows, J, np.zeros(rows.d), np.zeros(rows.n), A, time=time)
        if w is not None:
            newton.w, newton.z = w.copy(), newton.scores(w)
        return newton

    def scores(self, w: Array) -> Array:
        """A w."""
        if self.A is None:
            return self.rows.scores(w)
        self.rows.passes += 1
        z = self.A @ w
        self.rows.check(z)
        return np.asarray(z)

    def combine(self, p: Array) -> Array:
        """Aᵀp."""
        if self.A is None:
            return self.rows.combine(p)
        self.rows.passes += 1
        v = p @ self.A
        self.rows.check(v)
        return np.asarray(v)

    def gradient(self, alpha: Array) -> Array:
        """J w - Aᵀα."""
        return np.asarray(self.J * self.w - self.combine(alpha))

    def step(self, gradient: Array, weights: Weights, curvature: Curvature, alpha: Array) -> bool:
        """Take one step, and return whether w changed."""
        s = self.direction(gradient, curvature(self.z, alpha))
        slope = float(gradient @ s)
        if not slope < 0:
            return False
        u = self.scores(s)
        t = line_search(self.z, u, float((self.J * self.w) @ s), float((self.J * s) @ s), slope, weights, curvature)
        if not t > 0:
            return False
        self.steps += 1
        before = self.w
        self.w = self.w + t * s
        # every few steps the scores are computed anew, before the roundings of the sums add up
        self.z = self.z + t * u if self.steps % 8 else self.scores(self.w)
        return bool((self.w != before).any())

    def direction(self, gradient: Array, h: Array) -> Array:
        """The direction s with (J + AᵀhA) s = -gradient, nearly."""
        active = np.flatnonzero(h)
        columns, k = self.rows.d, len(active)
        if k == 0:
            return np.where(self.J > 0, -gradient, 0.0)
        few = k <= (TUNING.few_sparse if self.rows.sparse and self.met else TUNING.few_dense)
        if k < columns and few and fits(8 * k * (columns + TUNING.copies * k)):
            return self._by_rows(gradient, h[active], active)
        if columns > TUNING.most_factorized or not fits(8 * TUNING.copies * columns * columns):
            return self._conjugate_gradients(gradient, h, None, TUNING.most_cg)[0]
        reused = self.factor is not None and not self.stale
        most = min(self._steps_for_a_factor(k), TUNING.most_cg) if reused else 0
        if most < 2 and not self.time.affords(self._seconds_for_a_factor(k)):
            return self._conjugate_gradients(gradient, h, None, TUNING.most_cg)[0]
        if most < 2:
            self._factorize(h, active)
            return -solved(self.factor, gradient)
        s, met = self._conjugate_gradients(gradient, h, lambda r: solved(self.factor, r), most)
        self.stale = not met
        return s

    def _steps_for_a_factor(self, k: int) -> int:
        """How many steps of conjugate gradients, two passes each, cost as much as a factorization with k rows of positive h.

        By counting: clocks would make one run differ from the next.
        """
        rows = self.rows
        per_row = rows.entries / rows.n
        pairs = k * per_row * (TUNING.sparse_pair * per_row if rows.sparse else TUNING.dense_pair * rows.d)
        return int((pairs + TUNING.cube * rows.d**3) / rows.entries)

    def _seconds_for_a_factor(self, k: int) -> float:
        """About the seconds of a factorization at the pace of this call: it cannot be interrupted."""
        rows, pace = self.rows, self.time.pace
        return pace.products(rows.d, rows.d, int(k * rows.entries / (rows.n * rows.d))) + pace.factors(rows.d)

    def _factorize(self, h: Array, active: Array) -> None:
        changed = None if self.held is None else np.flatnonzero(h != self.held)
        if self.moment is None or changed is None or 2 * len(changed) > len(active):
            self.moment = second_moment(self.rows, active, h[active], self.A)
        elif len(changed):
            self.moment += second_moment(self.rows, changed, (h - self.held)[changed], self.A)
        self.held = h
        H = self.moment.copy()
        H[np.diag_indices(len(H))] += self.J
        self.factor = factorized(H)
        self.stale = False

    def _by_rows(self, gradient: Array, h: Array, active: Array) -> Array:
        """The same direction from the k rows with h > 0: with r = h A s, (AAᵀ + 1/h) r = -A g and s = -g - Aᵀr for J = 1.

        A free intercept is one more unknown, and Σ y r = -g_b one more equation.
        """
        rows = self.rows.take(active)
        free = self.J[-1] == 0
        g = np.where(self.J > 0, gradient, 0.0)
        K = rows.gram(np.arange(rows.n))
        signs = rows.signs.astype(np.float64) * rows.scale
        if free:
            K -= np.outer(signs, signs)
        K[np.diag_indices(rows.n)] += 1 / h
        r, b = bordered(K, -rows.scores(g), signs if free else None, -float(gradient[-1]))
        s = -(g + rows.combine(r))
        if free:
            s[-1] = -b
        return np.asarray(s)

    def _conjugate_gradients(
        self, gradient: Array, h: Array, precondition: Callable[[Array], Array] | None, most: int
    ) -> tuple[Array, bool]:
        """The direction s, and whether the residual is small enough: a share of the gradient that falls with it."""
        first = math.sqrt(float(gradient @ gradient))
        self.largest_gradient = max(self.largest_gradient, first)
        enough = first * min(TUNING.forcing, math.sqrt(first / self.largest_gradient)) if first > 0 else 0.0
        active = np.flatnonzero(h)
        some = len(active) < TUNING.worth_taking * self.rows.n and self.rows.in_memory
        rows, h = (self.rows.take(active), h[active]) if some else (self.rows, h)
        found = conjugate_gradients(
            lambda p: self.J * p + rows.combine(h * rows.scores(p)), -gradient, enough, most, precondition or np.array, self.time
        )
        self.met = found.met
        return found.s, found.met


class Solved(NamedTuple):
    """The result of conjugate gradients: s, the number of steps, and whether the residual is small enough."""

    s: Array
    steps: int
    met: bool


def conjugate_gradients(
    product: Callable[[Array], Array],
    right: Array,
    enough: float,
    most: int,
    precondition: Callable[[Array], Array],
    time: Deadline = UNLIMITED,
) -> Solved:
    """The s with H s = `right`, up to a residual of size `enough`; vectors may be blocks.

    Ends early in a direction in which H has no curvature.
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
    """The r and b with K r + b·signs = right and signs·r = total; without signs, b = 0 and K r = right."""
    factor = factorized(K)
    r = solved(factor, right)
    if signs is None:
        return r, 0.0
    across = solved(factor, signs)
    b = (float(signs @ r) - total) / float(signs @ across)
    return r - b * across, b


def line_search(
    z: Array,
    u: Array,
    along: float,
    bend: float,
    slope: float,
    weights: Weights,
    curvature: Curvature,
    left: float = TUNING.slope_left,
) -> float:
    """t > 0 near the minimum of the objective along z + t u, where the slope is a share `left` of `slope` at most.

    `along` is wᵀJs and `bend` sᵀJs. Newton's method on the slope, kept within the interval that the signs of slopes leave.
    """
    t, low, high = 1.0, 0.0, math.inf
    for _ in range(40):
        zt = z + t * u
        alpha = weights(zt)
        found = along + t * bend - float(alpha @ u)
        if abs(found) <= left * abs(slope):
            break
        low, high = (low, t) if found > 0 else (t, high)
        second = bend + float((curvature(zt, alpha) * u) @ u)
        new = t - found / second if second > 0 else math.inf
        if not low < new < high:
            new = 0.5 * (low + high) if high < math.inf else 2 * t
        if new in (low, high, t):
            break
        t = new
    return t


def second_moment(rows: Rows, i: Array, h: Array, A: Array | None = None) -> Array:
    """Σ h A_i A_iᵀ over the rows i, on the host; h may have both signs. A is the array of all rows, if there is one."""
    if A is not None or (rows.in_memory and not rows.sparse and len(i) * rows.d <= TUNING.at_once):
        rows.passes += len(i) / rows.n if A is not None else 0.0
        own = rows.take(i).dense() if A is None else A[i]
        return np.asarray((own * h[:, None]).T @ own)
    total = np.zeros((rows.d, rows.d))
    for sign in (1.0, -1.0):
        own = sign * h > 0
        if not own.any():
            continue
        if not rows.in_memory or (len(i) == rows.n and own.all()):
            q = np.zeros(rows.n)  # one for each row: it is placed where the rows are
            q[i[own]] = sign * h[own]
            products = rows.moments(q)[0]
            total += sign * (rows.fetch(products) if rows.storage.on_device else products)
            continue
        # of a copy of these rows: among the others they would be read in pieces of a few rows
        each = max(1, int(TUNING.taken * rows.n / rows.entries))
        for lo in range(0, int(own.sum()), each):
            some = np.flatnonzero(own)[lo : lo + each]
            part = rows.take(i[some])
            total += sign * part.moments(sign * h[some])[0]
    return total
