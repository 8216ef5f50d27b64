"""Newton's method for the multinomial loss of sparse rows with many columns, as combinations of these rows.

The best W is AᵀB for some B (n × k), and so is every W on the way to it from 0. A step needs A W and products with AAᵀ. W itself
is as long as A has columns, of which text has several times more than rows, and sums of such blocks take longer than the products
with A. So the steps are about B alone (`SoftmaxNewton` has the same in W). The products with AAᵀ are made in float32, where eight
planes fit into a vector register: that is enough for a direction. Scores are made anew in float64 before anything is proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from gordan.arrays import Array
from gordan.deadlines import Deadline
from gordan.losses import balancing, softmax
from gordan.memory import fits
from gordan.rows import Rows, gram_product
from gordan.solve.loss_newton import TUNING as NEWTON
from gordan.solve.softmax_newton import TUNING, Line, curved, line_search, residuals, total_loss

# Lengths of rows whose squares and sums are far from the ends of float32.
SHORTEST, LONGEST = 1e-12, 1e12
# Blocks of float64 for rows times classes that are held at a time, and of planes.
BLOCKS = 16


@dataclass(eq=False)
class RowSoftmaxNewton:
    """The state of the method: W = AᵀB, a free b of its own, the scores S = A W + b and Q = softmax(S)."""

    rows: Rows
    which: Array
    c: Array
    free: bool
    B: Array
    b: Array
    S: Array
    Q: Array
    time: Deadline
    steps: int = 0
    # what `gap` found: W + AᵀR = Aᵀ slope, the product of that with A, and the slope in b
    slope: Array = field(init=False, repr=False)
    product: Array = field(init=False, repr=False)
    slope_b: Array = field(init=False, repr=False)

    @staticmethod
    def suits(rows: Rows, k: int) -> bool:
        """Whether the method is for such rows: sparse ones in memory, of many columns, that float32 can hold."""
        wide = rows.in_memory and rows.sparse and rows.d > NEWTON.most_factorized
        if not wide or not fits(8 * k * (BLOCKS * rows.n + 2 * rows.d)):
            return False
        longest = math.sqrt(float(np.max(rows.squares(), initial=0.0)))
        return SHORTEST < longest < LONGEST

    @staticmethod
    def start(rows: Rows, which: Array, k: int, c: Array, free: bool, time: Deadline) -> RowSoftmaxNewton:
        """The state at W = 0, with the free intercept that is then the best."""
        b = np.zeros(k)
        if free:
            b = np.log(np.bincount(which, weights=c / np.max(c), minlength=k))
            b -= np.mean(b)
        S = np.zeros((rows.n, k)) + b
        return RowSoftmaxNewton(rows, which, c, free, np.zeros((rows.n, k)), b, S, softmax(S), time)

    @property
    def W(self) -> Array:
        """The planes, with b as the last row where there is an intercept."""
        W = self.rows.combine(self.B)
        if self.free:
            W[-1] = self.b
        return W

    @property
    def value(self) -> float:
        """P, where ‖W‖² = B·(A W)."""
        return 0.5 * float(np.vdot(self.B, self.S - self.b)) + total_loss(self.S, self.which, self.c)

    def gap(self) -> float:
        """P - D for the weights that follow from the planes: half the square of the slope, without that in a free b."""
        R = residuals(self.Q, self.which, self.c)
        self.slope, self.slope_b = self.B + R, R.sum(axis=0) * self.free
        self.product = self._gram(self.slope)
        return 0.5 * float(np.vdot(self.slope, self.product))

    def _gram(self, Q: Array) -> Array:
        """AAᵀQ, without the column of a free intercept."""
        found = gram_product(self.rows, Q)
        return found if self.free or not self.rows.constant else found + Q.sum(axis=0)

    def step(self, enough: float) -> bool:
        """Take one step towards a gradient of size `enough`, and return whether W changed."""
        D, U, b = self._conjugate_gradients(enough)
        slope = float(np.vdot(self.slope, U)) + float(self.slope_b @ b)
        if not slope < 0:
            return False
        line = Line(self.S, U + b, float(np.vdot(self.B, U)), float(np.vdot(D, U)), slope)
        t = line_search(line, self.which, self.c, self.time)
        if not t > 0:
            return False
        self.steps += 1
        before, self.B, self.b = self.B, self.B + t * D, self.b + t * b
        self._score(self.S + t * (U + b))
        return bool((before != self.B).any())

    def _conjugate_gradients(self, enough: float) -> tuple[Array, Array, Array]:
        """D and b with J V + Aᵀ(C(QU - Q(Q·U))) = -gradient, nearly, for V = AᵀD and U = A V + b; and A V.

        Residuals and directions are Aᵀr and Aᵀp: their products with each other are r·(AAᵀr) and p·(AAᵀp). AAᵀp follows from AAᵀr
        as p does from r, so that a step takes one product with AAᵀ.
        """
        r, Kr, rb = -self.slope, -self.product, -self.slope_b
        D, U, b = np.zeros_like(r), np.zeros_like(r), np.zeros_like(rb)
        p, Kp, pb = r, Kr, rb
        size = float(np.vdot(r, Kr)) + float(rb @ rb)
        enough = max(enough, TUNING.forcing * math.sqrt(max(size, 0.0)))
        for _ in range(TUNING.most_cg):
            bent = curved(self.Q, Kp + pb, self.c)
            Hp, Hb = p + bent, bent.sum(axis=0) * self.free
            bend = float(np.vdot(Kp, Hp)) + float(pb @ Hb)
            if not bend > 0:
                break
            t = size / bend
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
        self._score(self.rows.scores(self.W))
        if self.free:
            b = balancing(self.S, self.which, self.c)
            self.b = self.b + b
            self._score(self.S + b)
        return True

    def _score(self, S: Array) -> None:
        self.S, self.Q = S, softmax(S)
