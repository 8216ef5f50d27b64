"""The signs of the coordinates of the recession cone: which coefficients of a logistic regression are infinite, and which way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from flint import fmpq

from gordan.arrays import Array, times_powers
from gordan.certificates import exact
from gordan.deadlines import DENSE_GRAM
from gordan.memory import fits
from gordan.solve import recession
from gordan.solve.alternative import Separator, alternative
from gordan.solve.cone import columns_of, combined, dense, in_rows, quotient, rational, some_rows
from gordan.solve.recession import ROUNDS, SAME_SPAN, Recession

# Copies of the strict rows, in coordinates of the cone, that are in use at a time.
COPIES = 4
# Of affine scaling, before a linear program is asked.
STEPS = 12


def coordinate_signs(found: Recession) -> Iterator[tuple[int, int | None]]:
    """For each coordinate that can be decided, as it is: 1 if w_j > 0 throughout the relative interior of C, -1 if w_j < 0, 0 if
    w_j = 0 throughout, None if both signs occur. Exact.

    With S the strict rows and Z the others: w_j = 0 on C just where it is on the null space of the span of Z. That w_j ≥ 0 on C
    is, by Farkas, e_j = Σ q_i A_i + (a vector of that span) with q ≥ 0 on S; else some w in the interior has w_j < 0. So it is
    Gordan's alternative for S and the row -e_j.
    """
    null, k = found.null, found.cone.k
    moving = [any(null[j, i] != 0 for i in range(null.ncols())) for j in range(k)]
    strict = np.flatnonzero(found.signs > 0)
    seen = [found.w]
    small, decide = len(strict) * null.ncols() ** 2 <= recession.SMALL, None
    for j in range(k):
        sign = (found.w[j] > 0) - (found.w[j] < 0)
        if not moving[j]:
            yield j, 0
        elif sign == 0 or any(sign * w[j] < 0 for w in seen):
            yield j, None
        elif null.ncols() == 1:
            yield j, sign
        elif found.cone.late:
            continue
        elif (found.cone.signs(turned := (*found.w[:j], -sign, *found.w[j + 1 :])) >= 0).all():  # a step in one coordinate does
            seen.append(turned)
            yield j, None
        elif decide is not None or small or _have_room(found, strict):
            if decide is None:
                decide = _Exactly(found, strict) if small else _ByProgram(found, strict)
            answer = decide(j, sign)
            if answer is True:
                yield j, sign
            elif answer is not None:
                seen.append(answer)
                yield j, None


def _have_room(found: Recession, strict: Array) -> bool:
    """Whether there is room and time for the linear programs."""
    cells, deadline = len(strict) * found.null.ncols(), found.cone.deadline
    room = found.cone.scalable and fits(8 * COPIES * cells)
    return room and deadline.affords(DENSE_GRAM * deadline.pace.multiplication * cells * found.cone.k)


class _Exactly:
    """Decides the sign of a coordinate on these strict rows: True, or a vector of C with the other sign; None if time is up."""

    def __init__(self, found: Recession, strict: Array) -> None:
        self.null, self.deadline = found.null, found.cone.deadline
        self.rows, _, _ = quotient(found.cone, [int(i) for i in strict], found.null)

    def __call__(self, j: int, sign: int) -> Any:
        opposite = [-sign * int(self.null[j, i]) for i in range(self.null.ncols())]
        answer = alternative([[fmpq(x) for x in row] for row in (*self.rows, opposite)], self.deadline)
        return combined(self.null, answer.w) if isinstance(answer, Separator) else answer is not None or None


def _divided(w: Sequence[int], s: Array) -> Array:
    """w/s, up to its length, for integers of any size and powers of two s."""
    shifts = [max(0, int(x).bit_length() - 64) for x in w]
    leading = np.array([float(int(x) >> shift) for x, shift in zip(w, shifts, strict=True)])
    return times_powers(leading, np.array(shifts) - np.frexp(s)[1])


class _ByProgram:
    """The same for many rows: linear programs over a growing set of rows propose, exact arithmetic decides; None if it fails."""

    def __init__(self, found: Recession, strict: Array) -> None:
        from scipy.linalg import qr

        self.found, self.strict = found, strict
        self.cone, self.null = found.cone, found.null
        F, _, s = self.cone.floats
        self.Q = qr(np.array([_divided(v, s) for v in columns_of(self.null)]).T, mode="economic")[0]
        self.G = dense(F[strict] @ self.Q)
        count = max(200, 6 * self.Q.shape[1])
        self.centre = self.Q.T @ _divided(found.w, s)
        self.rows = np.sort(np.argsort(self.G @ self.centre, kind="stable")[:count])

    def __call__(self, j: int, sign: int) -> Any:
        further = self._further(j, sign)
        if further is not None:
            return further
        target = -sign * self.Q[j] / np.linalg.norm(self.Q[j])
        for _ in range(ROUNDS):
            answer = self._program(target)
            if answer is None:
                return None
            t, c, multipliers = answer
            if t <= SAME_SPAN:
                return self._proved(j, sign, self.strict[self.rows[multipliers[:-1] > SAME_SPAN]])
            s = self.G @ c
            wrong = np.flatnonzero(s < 0)
            if not len(wrong):
                return self._direction(j, sign, self.Q @ c)
            self.rows = np.union1d(self.rows, wrong[np.argsort(s[wrong], kind="stable")[: max(100, 2 * len(c))]])
        return None

    def _further(self, j: int, sign: int) -> tuple[int, ...] | None:
        """A vector of C with the other sign, if steps of affine scaling from the one in hand reach it: cheaper than a program.

        Each goes to nearly the end of Dikin's ellipsoid Σ (G_i·δ / G_i·c)² ≤ 1 around c, which lies in C.
        """
        c = self.centre / np.linalg.norm(self.centre)
        for _ in range(STEPS):
            scores = self.G @ c
            if not (scores > 0).all() or self.cone.late:
                return None
            with np.errstate(over="ignore", invalid="ignore"):
                M = self.G / scores[:, None]
                H = M.T @ M + np.outer(c, c)  # the second term: C is a cone, and c keeps its size
            if not np.isfinite(H).all():  # on the border, as far as floats can tell
                return None
            try:
                step = np.linalg.solve(H, self.Q[j])
            except np.linalg.LinAlgError:
                return None
            reach = float(self.Q[j] @ step)
            if not reach > 0:
                return None
            c = c - (0.95 * sign / math.sqrt(reach)) * step
            c /= np.linalg.norm(c)
            if sign * (self.Q[j] @ c) < 0:
                return self._direction(j, sign, self.Q @ c)
        return None

    def _program(self, target: Array) -> Any:
        """max t, G c ≥ t, target·c ≥ t, |c| ≤ 1."""
        block = np.vstack([self.G[self.rows], target])
        m, d = block.shape
        bounds = np.vstack([np.tile([-1.0, 1.0], (d, 1)), [[-np.inf, 1.0]]])
        cost = np.r_[np.zeros(d), -1.0]
        answer = self.cone.program(cost, A_ub=np.column_stack([-block, np.ones(m)]), b_ub=np.zeros(m), bounds=bounds)
        return None if answer is None else (answer.x[-1], answer.x[:-1], -answer.ineqlin.marginals)

    def _proved(self, j: int, sign: int, rows: Array) -> bool | None:
        """True if sign·e_j is a nonnegative combination of these rows, modulo the span."""
        product = self.cone.rows([int(i) for i in rows])[0] * self.null
        part = some_rows(product, exact.pivots(product.transpose()))
        q = in_rows(part, [sign * fmpq(self.null[j, i]) for i in range(self.null.ncols())], self.cone.deadline)
        return True if q is not None and all(x >= 0 for x in q) else None

    def _direction(self, j: int, sign: int, w: Array) -> tuple[int, ...] | None:
        """An exact vector of C near w whose coordinate j has the other sign."""
        for candidate in rational(self.cone, w, self.null, self.found.pivots):
            if sign * candidate[j] < 0 and (self.cone.signs(candidate) >= 0).all():
                return candidate
        return None
