"""Newton's method for the multinomial loss: ½ Σ_c w_cᵀJw_c + Σ C_i (log Σ_c e^{s_ic} - s_iy), s = A W, for all classes at once.

A step solves J V + Aᵀ(C(QU - Q(Q·U))) = -gradient, U = A V, Q = softmax(S): by Cholesky's factorization where classes and
columns are few; else by conjugate gradients, whose products with A have a column for each class, preconditioned by one matrix J
+ Aᵀ h A for all of them, h the mean curvature of a row, where columns are not many. (One matrix for each class would spare a
third of the steps and cost more than it spares.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.blas import factorized, solved
from gordan.deadlines import UNLIMITED, Deadline
from gordan.losses import balancing, softmax
from gordan.memory import fits
from gordan.rows import Rows
from gordan.solve.loss_newton import TUNING as NEWTON
from gordan.solve.loss_newton import conjugate_gradients, second_moment


@dataclass(frozen=True)
class Tuning:
    """Constants of the method; `benchmarks/losses.py --losses multinomial` shows what each choice costs."""

    # Classes times columns up to which all of the second derivatives are factorized.
    most_factorized: int = 400
    # Share of the slope at the start that a line search leaves.
    slope_left: float = 0.1
    # Relative residual of conjugate gradients: a smaller one takes more products in all. And the share of the gradient that is
    # wanted in the end, which it is not to be much smaller than.
    forcing: float = 0.15
    wanted: float = 0.7
    most_cg: int = 500
    # What a factorization costs in steps of conjugate gradients, times classes over columns: with so many more than when it was
    # new it is made anew.
    factor: float = 0.125


TUNING = Tuning()


@dataclass(eq=False)
class SoftmaxNewton:
    """The state of the method: W with b as its last row where there is an intercept, the scores S = A W and Q = softmax(S); and
    the factorization in use, with the conjugate gradients that it took last, and when it was new."""

    rows: Rows
    which: Array
    c: Array
    J: Array
    W: Array
    S: Array
    Q: Array
    time: Deadline = UNLIMITED
    factor: Any = None
    used: int = 0
    used_at_first: int = 0
    steps: int = 0
    slope: Array = field(init=False, repr=False)
    """J W + Aᵀ C (Q - e_y), as `gap` found it."""

    @staticmethod
    def start(rows: Rows, which: Array, k: int, c: Array, free: bool, W: Array | None, time: Deadline) -> SoftmaxNewton:
        """The state at W, or at 0 with the free intercept that is then the best."""
        J = np.ones((rows.d, 1))
        if free:
            J[-1] = 0.0
        if W is None:
            W, S = np.zeros((rows.d, k)), np.zeros((rows.n, k))
            if free:
                shares = np.log(np.bincount(which, weights=c / np.max(c), minlength=k))
                W[-1] = shares - np.mean(shares)
                S += W[-1]
        else:
            W = W - (1.0 - J) * np.mean(W, axis=1, keepdims=True)  # a free b has a sum of 0
            S = rows.scores(W)
        return SoftmaxNewton(rows, which, c, J, W, S, softmax(S), time)

    @property
    def value(self) -> float:
        """P."""
        return 0.5 * float(np.sum(self.J * self.W * self.W)) + total_loss(self.S, self.which, self.c)

    def gap(self) -> float:
        """P - D for the weights that follow from the planes: half the square of the slope, without that in a free b."""
        self.slope = np.asarray(self.J * self.W + self.rows.combine(residuals(self.Q, self.which, self.c)))
        return 0.5 * float(np.sum(self.J * self.slope * self.slope))

    def step(self, enough: float) -> bool:
        """Take one step towards a gradient of size `enough`, and return whether W changed."""
        V = self._direction(self.slope, enough)
        slope = float(np.sum(self.slope * V))
        if not slope < 0:
            return False
        U = self.rows.scores(V)
        along, bend = float(np.sum(self.J * self.W * V)), float(np.sum(self.J * V * V))
        t = line_search(Line(self.S, U, along, bend, slope), self.which, self.c, self.time)
        if not t > 0:
            return False
        self.steps += 1
        before = self.W
        self.W = self.W + t * V
        # every few steps the scores are computed anew, before the roundings of the sums add up
        self.S = self.S + t * U if self.steps % 8 else self.rows.scores(self.W)
        self.Q = softmax(self.S)
        return bool((before != self.W).any())

    def _direction(self, gradient: Array, enough: float) -> Array:
        D, k = self.W.shape
        pace, n = self.time.pace, self.rows.n
        moment = pace.products(D, D, n)
        if D * k <= TUNING.most_factorized and self.time.affords(moment * k * (k + 1) / 2 + pace.factors(D * k)):
            return self._by_factors(gradient)
        few = NEWTON.most_factorized >= D and fits(8 * NEWTON.copies * D * D)
        stale = self.factor is None or self.used > self.used_at_first + TUNING.factor * D / k
        if few and stale and self.time.affords(moment + pace.factors(D)):
            H = second_moment(self.rows, np.arange(n), self._curvature())
            H[np.diag_indices(D)] += self.J[:, 0]
            self.factor, self.used_at_first = factorized(H), -1
        V = self._conjugate_gradients(gradient, enough)
        self.used_at_first = self.used if self.used_at_first < 0 else self.used_at_first
        return V

    def _curvature(self) -> Array:
        """The mean of the second derivatives of a row's loss, over the directions in which it has any."""
        h = self.c * (1.0 - np.sum(self.Q * self.Q, axis=1)) / (self.W.shape[1] - 1)
        return np.asarray(np.maximum(h, 1e-300))

    def _by_factors(self, gradient: Array) -> Array:
        """From all second derivatives. Where b is free, adding the same to all of them changes nothing: that is held at 0."""
        D, k = self.W.shape
        H = np.zeros((k, D, k, D))
        every = np.arange(self.rows.n)
        for a in range(k):
            for b in range(a + 1):
                h = self.Q[:, a] * (1.0 - self.Q[:, a]) if a == b else self.Q[:, a] * self.Q[:, b]
                part = second_moment(self.rows, every, self.c * h) * (1.0 if a == b else -1.0)
                H[a, :, b, :] = part
                H[b, :, a, :] = part
            H[a, range(D), a, range(D)] += self.J[:, 0]
        if self.J[-1, 0] == 0:
            H[:, -1, :, -1] += np.mean([H[a, -1, a, -1] for a in range(k)]) + 1e-300
        V = -solved(factorized(H.reshape(k * D, k * D)), gradient.T.reshape(-1))
        return np.ascontiguousarray(V.reshape(k, D).T)

    def _conjugate_gradients(self, gradient: Array, enough: float) -> Array:
        """V, with a residual that is a share of the gradient, or `enough`."""

        def product(p: Array) -> Array:
            return np.asarray(self.J * p + self.rows.combine(curved(self.Q, self.rows.scores(p), self.c)))

        def precondition(r: Array) -> Array:
            return r if self.factor is None else solved(self.factor, r)

        enough = max(enough, TUNING.forcing * math.sqrt(float(np.vdot(gradient, gradient))))
        found = conjugate_gradients(product, -gradient, enough, TUNING.most_cg, precondition, self.time)
        self.used = found.steps
        return found.s

    def settle(self) -> bool:
        """Move a free b so that each class has the mass of its own rows, and return whether it had to be moved."""
        if self.J[-1, 0] > 0:
            return False
        b = balancing(self.S, self.which, self.c)
        self.W = self.W.copy()
        self.W[-1] += b
        self.S = self.S + b
        self.Q = softmax(self.S)
        return bool(b.any())


class Line(NamedTuple):
    """The planes W + t V: S and U are the scores of W and V, `along` and `bend` are WᵀJV and VᵀJV, `slope` is that at t = 0."""

    S: Array
    U: Array
    along: float
    bend: float
    slope: float


def line_search(line: Line, which: Array, c: Array, time: Deadline) -> float:
    """t > 0 near the minimum along a line, where the slope is a share of that at the start at most."""
    S, U, along, bend, slope = line
    own = float(c @ U[np.arange(len(c)), which])
    t, low, high = 1.0, 0.0, math.inf
    for _ in range(40):
        Q = softmax(S + t * U)
        mean = np.sum(Q * U, axis=1)
        found = along + t * bend + float(c @ mean) - own
        if abs(found) <= TUNING.slope_left * abs(slope) or time.passed:
            break
        low, high = (low, t) if found > 0 else (t, high)
        second = bend + float(c @ (np.sum(Q * U * U, axis=1) - mean * mean))
        new = t - found / second if second > 0 else math.inf
        if not low < new < high:
            new = 0.5 * (low + high) if high < math.inf else 2 * t
        if new in (low, high, t):
            break
        t = new
    return t


def total_loss(S: Array, which: Array, c: Array) -> float:
    """Σ C (log Σ_c e^{s_c} - s_y)."""
    top = S.max(axis=1)
    losses = np.log(np.exp(S - top[:, None]).sum(axis=1)) + (top - S[np.arange(len(c)), which])
    return float(c @ losses)


def residuals(Q: Array, which: Array, c: Array) -> Array:
    """C (Q - e_y)."""
    R = c[:, None] * Q
    R[np.arange(len(c)), which] -= c
    return R


def curved(Q: Array, U: Array, c: Array) -> Array:
    """C (QU - Q(Q·U)): how C (Q - e_y) changes as scores move by U."""
    found = Q * U
    found -= Q * found.sum(axis=1, keepdims=True)
    found *= c[:, None]
    return found
