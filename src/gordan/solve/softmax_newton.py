"""Newton's method for the multinomial loss: ½ Σ_c w_cᵀJw_c + Σ C_i (log Σ_c e^{s_ic} - s_iy), s = A W, for all classes at once.

A step solves J V + Aᵀ(C(QU - Q(Q·U))) = -gradient, U = A V, Q = softmax(S), by conjugate gradients, whose products with A have a
column for each class. With few classes and columns the preconditioner is the Cholesky factorization of the whole Hessian at an
earlier W, or for part of the rows; when it is new, it solves the system by itself. Otherwise, unless there are too many columns,
it is that of one matrix J + AᵀhA for all classes, where h is the mean curvature of a row. (One matrix for each class would save
a third of the steps, but cost more than that.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.blas import factorized, solved
from gordan.certificates.multinomial import balancing
from gordan.deadlines import UNLIMITED, Deadline
from gordan.losses import softmax
from gordan.rows import Rows, over_rows
from gordan.solve.loss_newton import TUNING as NEWTON
from gordan.solve.loss_newton import Line, conjugate_gradients, line_search, second_moment, steps_for_a_factor


@dataclass(frozen=True)
class Tuning:
    """Constants of the method; `benchmarks/losses.py --losses multinomial` shows what each choice costs."""

    # The largest number of classes times columns for which the whole Hessian is factorized.
    most_factorized: int = 400
    # The share of the initial slope that a line search may leave.
    slope_left: float = 0.1
    # Relative residual of conjugate gradients (a smaller one takes more products in all), and the gradient to aim for, as a share
    # of the largest one that is small enough in the end.
    forcing: float = 0.15
    wanted: float = 0.7
    most_cg: int = 500
    # Rows of well-conditioned columns need no preconditioner. Unless part of the rows provides one, conjugate gradients without
    # it are tried first, in at most so many steps, for sparse rows in as many as cost as much as a factorization if these are
    # more; a factorization is made once they do not end in time.
    unaided: int = 12
    # The preconditioner is made anew once conjugate gradients take this many more steps than when it was new, times columns over
    # classes, for each matrix of second moments that it is made of: that is about the cost of a factorization.
    factor: float = 0.125
    # The whole Hessian is factorized anew, too, if a step leaves more than this share of the squared gradient, once that is at
    # most `near` times what is small enough: with badly scaled columns, a small residual may be a bad direction.
    slow: float = 0.25
    near: float = 1e4


TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class SoftmaxLoss:
    """The losses C (log Σ_c e^{s_c} - s_y) of all rows at the scores S (n × k), where `which` has the class y of each row."""

    which: Array
    c: Array
    S: Array

    @staticmethod
    def first(which: Array, c: Array, k: int, free: bool) -> tuple[Array, SoftmaxLoss]:
        """Return the best intercepts b of k classes for w = 0, which are 0 unless they are free, and the losses there."""
        b = np.zeros(k)
        if free:
            b = np.log(np.bincount(which, weights=c / np.max(c), minlength=k))
            b -= np.mean(b)
        return b, SoftmaxLoss(which, c, np.zeros((len(c), k)) + b)

    def at(self, S: Array) -> SoftmaxLoss:
        """Return the losses at other scores."""
        return replace(self, S=S)

    def balanced(self) -> tuple[Array, SoftmaxLoss]:
        """Return the b with which each class has the mass of its own rows, and the losses at S + b."""
        b = balancing(self.S, self.which, self.c)
        return b, self.at(self.S + b)

    @cached_property
    def _evaluated(self) -> tuple[Array, float]:
        """The probabilities softmax(S) and the sum of the losses, which share their exponentials."""
        Q = np.empty_like(self.S)

        def part(lo: int, hi: int) -> float:
            S, own = self.S[lo:hi], Q[lo:hi]
            top = S.max(axis=1)
            np.exp(np.subtract(S, top[:, None], out=own), out=own)
            total = own.sum(axis=1)
            own /= total[:, None]
            return float(self.c[lo:hi] @ (np.log(total) + (top - S[np.arange(hi - lo), self.which[lo:hi]])))

        return Q, math.fsum(over_rows(part, *self.S.shape))

    @property
    def Q(self) -> Array:
        """The probabilities softmax(S)."""
        return self._evaluated[0]

    @cached_property
    def weights(self) -> Array:
        """C Q, which every product with the Hessian needs."""
        return np.asarray(self.c[:, None] * self.Q)

    @property
    def total(self) -> float:
        """The sum of the losses."""
        return self._evaluated[1]

    @property
    def gradient(self) -> Array:
        """The gradient in the scores, C (Q - e_y)."""
        R = self.weights.copy()
        R[np.arange(len(self.c)), self.which] -= self.c
        return R

    def hessian_product(self, U: Array) -> Array:
        """Return the product of the Hessian in the scores with U, C (QU - Q(Q·U))."""
        return _hessian_times(U, self.Q, self.weights)

    def line_search(self, line: Line, slope: float, time: Deadline) -> float:
        """Return t > 0 near the minimum along a line from these scores, whose slope at t = 0 is given."""
        c = self.c
        own = float(c @ line.u[np.arange(len(c)), self.which])

        def derivatives(S: Array, U: Array) -> tuple[float, Callable[[], float]]:
            def part(lo: int, hi: int) -> tuple[float, float]:
                u, Q = U[lo:hi], softmax(S[lo:hi])
                Q *= u
                mean = Q.sum(axis=1)
                return float(c[lo:hi] @ mean), float(c[lo:hi] @ (np.einsum("ij,ij->i", Q, u) - mean * mean))

            slopes, bends = zip(*over_rows(part, *S.shape), strict=True)
            return math.fsum(slopes) - own, lambda: math.fsum(bends)

        return line_search(line, derivatives, TUNING.slope_left * abs(slope), time)


class Look(NamedTuple):
    """What a pass over the rows finds about the planes: the gap and the gradient.

    The gap P - D is that of the weights that follow from the planes: half the squared gradient, without that in a free b. The
    `slope` is the gradient in the form in which the method uses it.
    """

    gap: float
    slope: Any


@dataclass(eq=False)
class SoftmaxNewton:
    """The state of the method: W, with b as its last row if there is an intercept, the losses, and the preconditioner in use."""

    rows: Rows
    J: Array
    W: Array
    loss: SoftmaxLoss
    time: Deadline = UNLIMITED
    steps: int = 0
    unaided: bool = False
    """Whether conjugate gradients without a preconditioner are tried, and took few steps so far."""
    factor: Any = None
    """The factorization of the preconditioner."""
    used: int = 0
    """The number of steps that the last conjugate gradients took."""
    used_at_first: int = 0
    """The same when the preconditioner was new, and -1 if it was not used yet."""
    square: float = math.inf
    """The squared gradient before the last step."""

    @staticmethod
    def start(
        rows: Rows, which: Array, k: int, c: Array, free: bool, W: Array | None, time: Deadline, unaided: bool = False
    ) -> SoftmaxNewton:
        """Return the state at W, or at W = 0 with the best free intercept.

        With `unaided`, conjugate gradients without a preconditioner are tried unless a factorization takes little time.
        """
        J = np.ones((rows.d, 1))
        if free:
            J[-1] = 0.0
        if W is not None:
            W = W - (1.0 - J) * np.mean(W, axis=1, keepdims=True)  # a free b has a sum of 0
            loss = SoftmaxLoss(which, c, rows.scores(W))
        else:
            W = np.zeros((rows.d, k))
            W[-1], loss = SoftmaxLoss.first(which, c, k, free)
        newton = SoftmaxNewton(rows, J, W, loss, time)
        return replace(newton, unaided=unaided and not newton.small)

    @property
    def value(self) -> float:
        """The objective P."""
        return 0.5 * float(np.sum(self.J * self.W * self.W)) + self.loss.total

    def look(self) -> Look:
        """Return the gap and the gradient J W + Aᵀ C (Q - e_y)."""
        slope = np.asarray(self.J * self.W + self.rows.combine(self.loss.gradient))
        return Look(0.5 * float(np.sum(self.J * slope * slope)), slope)

    def step(self, look: Look, enough: float) -> bool:
        """Take one step from the planes that were looked at towards a gradient of size `enough`; return whether W changed."""
        return self.move(look, self._direction(look.slope, enough))

    def move(self, look: Look, V: Array) -> bool:
        """Move the planes that were looked at to the least value in the direction V, and return whether W changed."""
        slope = float(np.sum(look.slope * V))
        if not slope < 0:
            return False
        U = self.rows.scores(V)
        line = Line(self.loss.S, U, float(np.sum(self.J * self.W * V)), float(np.sum(self.J * V * V)))
        t = self.loss.line_search(line, slope, self.time)
        if not t > 0:
            return False
        self.steps += 1
        before = self.W
        self.W = self.W + t * V
        # every few steps the scores are computed anew, before the roundings of the sums add up
        self.loss = self.loss.at(self.loss.S + t * U if self.steps % 8 else self.rows.scores(self.W))
        return bool((before != self.W).any())

    def prepare(self, rows: Rows, which: Array, c: Array) -> None:
        """Begin with the preconditioner for few rows that stand for all of these."""
        loss = SoftmaxLoss(which, c, rows.scores(self.W))
        self.factor, self.used_at_first = self._factor(rows, loss), -1

    def _direction(self, gradient: Array, enough: float) -> Array:
        if self.unaided:
            most = steps_for_a_factor(self.rows, self.rows.n) // int(self.W.shape[1]) if self.rows.sparse else 0
            return self._conjugate_gradients(gradient, enough, max(TUNING.unaided, most))
        stale = self.factor is None or self.used > max(self.used_at_first, 0) + self._worth
        before, self.square = self.square, float(np.sum(gradient * gradient))
        slow = self.whole and TUNING.slow * before < self.square < TUNING.near * enough * enough
        if stale or self.small or slow:
            factor = self._factor(self.rows, self.loss)
            if factor is not None:
                self.factor, self.used_at_first = factor, -1
            if self.whole and factor is not None:
                self.used = self.used_at_first = 0
                return -self._solved(gradient)
        V = self._conjugate_gradients(gradient, enough, TUNING.most_cg)
        self.used_at_first = self.used if self.used_at_first < 0 else self.used_at_first
        return V

    @property
    def whole(self) -> bool:
        """Whether the matrix that is factorized is the whole Hessian."""
        return bool(self.W.size <= TUNING.most_factorized)

    @property
    def small(self) -> bool:
        """Whether the whole Hessian is factorized at every step, because most of the time of a pass is the overhead of calls."""
        return self.whole and self.rows.n * len(self.W) <= NEWTON.at_once

    @property
    def _moments(self) -> float:
        """The number of matrices of second moments that the factorized matrix is made of."""
        k = int(self.W.shape[1])
        return k * (k + 1) / 2 if self.whole else 1

    @property
    def _worth(self) -> float:
        """How many steps of conjugate gradients a factorization costs."""
        return TUNING.factor * self._moments * (len(self.W) / int(self.W.shape[1]))

    def _factor(self, rows: Rows, loss: SoftmaxLoss) -> Any:
        """Return the factorization of the Hessian for these rows, or of its mean over classes; None if that costs too much."""
        D, k = self.W.shape
        size, pace = D * k if self.whole else D, self.time.pace
        few = self.whole or NEWTON.factorizes(D)
        if not few or not self.time.affords(self._moments * pace.products(D, D, rows.n) + pace.factors(size)):
            return None
        every, Q = np.arange(rows.n), loss.Q
        if not self.whole:
            # the mean second derivative of each row's loss, over the directions in which it has any
            mean = np.maximum(loss.c * (1.0 - np.sum(Q * Q, axis=1)) / (k - 1), 1e-300)
            H = second_moment(rows, every, mean)
            H[np.diag_indices(D)] += self.J[:, 0]
            return factorized(H)
        A = rows.dense() if rows.in_memory and not rows.sparse and rows.n * D <= NEWTON.at_once else None
        H = np.zeros((k, D, k, D))
        for a in range(k):
            for b in range(a + 1):
                h = Q[:, a] * (1.0 - Q[:, a]) if a == b else Q[:, a] * Q[:, b]
                part = second_moment(rows, every, loss.c * h, A) * (1.0 if a == b else -1.0)
                H[a, :, b, :] = part
                H[b, :, a, :] = part
            H[a, range(D), a, range(D)] += self.J[:, 0]
        if self.J[-1, 0] == 0:  # adding a constant to all entries of a free b changes nothing: that direction is held at 0
            H[:, -1, :, -1] += np.mean([H[a, -1, a, -1] for a in range(k)]) + 1e-300
        return factorized(H.reshape(size, size))

    def _solved(self, r: Array) -> Array:
        """Return the solution for the factorized matrix and the right sides r, which are r itself without one."""
        if self.factor is None:
            return r
        if not self.whole:
            return solved(self.factor, r)
        return np.ascontiguousarray(solved(self.factor, r.T.reshape(-1)).reshape(r.shape[::-1]).T)

    def _conjugate_gradients(self, gradient: Array, enough: float, most: int) -> Array:
        """Return the direction with a residual of size `enough`, or of a share of the gradient if that is more."""

        def product(p: Array) -> Array:
            return np.asarray(self.J * p + self._curved(p))

        enough = max(enough, TUNING.forcing * math.sqrt(float(np.vdot(gradient, gradient))))
        found = conjugate_gradients(product, -gradient, enough, most, self._solved, self.time)
        self.used, self.unaided = found.steps, self.unaided and found.converged
        return found.s

    def _curved(self, V: Array) -> Array:
        """Return Aᵀ(C(QU - Q(Q·U))), U = A V; for rows in memory in one pass, while pieces of U are in the cache."""
        rows, loss = self.rows, self.loss
        if not rows.in_memory:
            return rows.combine(loss.hessian_product(rows.scores(V)))
        v, b = rows.plane(V)
        found, mass = rows.reduce(_hessian_product, (loss.Q, loss.weights), (v, b), rough=True)
        found *= rows.scale
        return np.vstack((found, rows.scale * rows.constant * mass)) if rows.constant else found

    def settle(self) -> bool:
        """Move a free b so that each class has the mass of its own rows, and return whether it had to be moved."""
        if self.J[-1, 0] > 0:
            return False
        b, self.loss = self.loss.balanced()
        self.W = self.W.copy()
        self.W[-1] += b
        return bool(b.any())


def _hessian_product(x: Any, Q: Array, weights: Array, V: Array, b: Any) -> tuple[Array, Array]:
    """Return the share of some rows x in the product of the Hessian with V and b, and in that of a column of ones."""
    weighted_scores = _hessian_times(x @ V + b, Q, weights)
    return x.T @ weighted_scores, weighted_scores.sum(0)


def _hessian_times(U: Array, Q: Array, weights: Array) -> Array:
    """Return C (QU - Q(Q·U)) for weights C Q."""
    found = U - np.einsum("ij,ij->i", Q, U)[:, None]
    found *= weights
    return np.asarray(found)
