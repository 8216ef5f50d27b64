"""Newton's method for the multinomial loss of sparse rows with many columns, as combinations of these rows.

The best W is AᵀB for some B (n × k), and so is every iterate if the first is 0. A step needs A W and products with AAᵀ. W has as
many rows as A has columns, which for text is several times the number of rows of A, and sums of such blocks take longer than the
products with A. So the steps are taken in B (`SoftmaxNewton` takes them in W). The products with AAᵀ are computed in float32, in
which eight planes fit into a vector register and which is precise enough for a direction. Scores are computed again in float64
before anything is proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.deadlines import Deadline
from gordan.memory import fits
from gordan.rows import Rows, gram_product
from gordan.solve.loss_newton import TUNING as NEWTON
from gordan.solve.loss_newton import Line
from gordan.solve.softmax_newton import TUNING, Look, SoftmaxLoss

# Lengths of rows whose squares and sums neither overflow nor underflow in float32.
SHORTEST, LONGEST = 1e-12, 1e12
# Blocks of float64 (n × k) that are held at a time.
BLOCKS = 16


class Slope(NamedTuple):
    """The gradient Aᵀr in W, its product AAᵀr with A, and the gradient in b."""

    r: Array
    Kr: Array
    b: Array


@dataclass(eq=False)
class RowSoftmaxNewton:
    """The state of the method: W = AᵀB, b if it is free, and the losses at the scores A W + b."""

    rows: Rows
    free: bool
    B: Array
    b: Array
    loss: SoftmaxLoss
    time: Deadline
    steps: int = 0

    @staticmethod
    def suits(rows: Rows, k: int) -> bool:
        """Return whether the method suits the rows: sparse, in memory, with many columns, and within the range of float32."""
        if not NEWTON.is_too_wide(rows.storage, rows.d) or not fits(8 * k * (BLOCKS * rows.n + 2 * rows.d)):
            return False
        longest = math.sqrt(float(np.max(rows.squares(), initial=0.0)))
        return SHORTEST < longest < LONGEST

    @staticmethod
    def start(rows: Rows, which: Array, k: int, c: Array, free: bool, time: Deadline) -> RowSoftmaxNewton:
        """Return the state at W = 0 with the best free intercept."""
        b, loss = SoftmaxLoss.first(which, c, k, free)
        return RowSoftmaxNewton(rows, free, np.zeros((rows.n, k)), b, loss, time)

    @property
    def W(self) -> Array:
        """The planes, with b as the last row if there is an intercept."""
        W = self.rows.combine(self.B)
        if self.free:
            W[-1] = self.b
        return W

    @property
    def value(self) -> float:
        """The objective P, where ‖W‖² = B·(A W)."""
        return 0.5 * float(np.vdot(self.B, self.loss.S - self.b)) + self.loss.total

    def look(self) -> Look:
        """Return the gap and the gradient, as a `Slope`."""
        R = self.loss.gradient
        r = self.B + R
        slope = Slope(r, self._gram(r), R.sum(axis=0) * self.free)
        return Look(0.5 * float(np.vdot(slope.r, slope.Kr)), slope)

    def _gram(self, Q: Array) -> Array:
        """Return AAᵀQ, without the column of a free intercept."""
        found = gram_product(self.rows, Q)
        return found if self.free or not self.rows.constant else found + self.rows.constant**2 * Q.sum(axis=0)

    def step(self, look: Look, enough: float) -> bool:
        """Take one step from the planes that were looked at towards a gradient of size `enough`; return whether W changed."""
        D, U, b = self._conjugate_gradients(look.slope, enough)
        slope = float(np.vdot(look.slope.r, U)) + float(look.slope.b @ b)
        if not slope < 0:
            return False
        line = Line(self.loss.S, U + b, float(np.vdot(self.B, U)), float(np.vdot(D, U)))
        t = self.loss.line_search(line, slope, self.time)
        if not t > 0:
            return False
        self.steps += 1
        before, self.B, self.b = self.B, self.B + t * D, self.b + t * b
        self.loss = self.loss.at(line.z + t * line.u)
        return bool((before != self.B).any())

    def _conjugate_gradients(self, slope: Slope, enough: float) -> tuple[Array, Array, Array]:
        """Solve J V + Aᵀ(C(QU - Q(Q·U))) = -gradient for V = AᵀD and U = A V + b approximately; return D, A V and b.

        Residuals and directions are Aᵀr and Aᵀp, whose squared lengths are r·(AAᵀr) and p·(AAᵀp). AAᵀp follows from AAᵀr as p
        does from r, so that a step takes one product with AAᵀ.
        """
        r, Kr, rb = -slope.r, -slope.Kr, -slope.b
        D, U, b = np.zeros_like(r), np.zeros_like(r), np.zeros_like(rb)
        p, Kp, pb = r, Kr, rb
        size = float(np.vdot(r, Kr)) + float(rb @ rb)
        enough = max(enough, TUNING.forcing * math.sqrt(max(size, 0.0)))
        for _ in range(TUNING.most_cg):
            weighted_scores = self.loss.hessian_product(Kp + pb)
            Hp, Hb = p + weighted_scores, weighted_scores.sum(axis=0) * self.free
            curvature = float(np.vdot(Kp, Hp)) + float(pb @ Hb)
            if not curvature > 0:
                break
            t = size / curvature
            D, U, b = D + t * p, U + t * Kp, b + t * pb
            r, rb = r - t * Hp, rb - t * Hb
            Kr = self._gram(r)
            new = float(np.vdot(r, Kr)) + float(rb @ rb)
            if not math.sqrt(max(new, 0.0)) > enough or self.time.passed:
                break
            beta, size = new / size, new
            p, Kp, pb = r + beta * p, Kr + beta * Kp, rb + beta * pb
        return D, U, b

    def settle(self) -> bool:
        """Compute the scores again in float64, and move a free b so that each class has the mass of its own rows.

        Returns True, since both change the scores.
        """
        self.loss = self.loss.at(self.rows.scores(self.W))
        if self.free:
            b, self.loss = self.loss.balanced()
            self.b = self.b + b
        return True
