"""The signs of the coordinates of the recession cone: which coefficients of a logistic regression are infinite, and which way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq

from gordan.arrays import Array, times_powers
from gordan.blas import factorized, solved
from gordan.certificates import exact
from gordan.certificates.verified import cancelling, signed_rows, strictly_positive
from gordan.deadlines import DENSE_GRAM
from gordan.memory import fits
from gordan.solve import recession
from gordan.solve.alternative import Separator, alternative
from gordan.solve.cancelling import few_rows, near
from gordan.solve.cone import columns_of, combined, dense, in_rows, quotient, rational, some_rows
from gordan.solve.recession import ROUNDS, SAME_SPAN, Recession

# Copies of the strict rows, in coordinates of the cone, that are in use at a time.
COPIES = 4
# Rows in hand: so many for each dimension of the cone, and at least.
ROWS_A_COLUMN, FEWEST_ROWS = 4, 200
# Steps to the centre (three or four are needed), and for one coefficient (up to ten) before a linear program is asked; how far
# each goes towards the border; and the decrement at which a vector is central enough.
CENTRING, STEPS, REACH, CENTRAL = 30, 25, 0.9, 0.1


def coordinate_signs(found: Recession) -> Iterator[tuple[int, int | None]]:
    """For each coordinate that can be decided, as it is: 1 if w_j > 0 throughout the relative interior of C, -1 if w_j < 0, 0 if
    w_j = 0 throughout, None if both signs occur. Exact.

    With S the strict rows and Z the others: w_j = 0 on C just where it is on the null space of the span of Z. That w_j ≥ 0 on C
    is, by Farkas, e_j = Σ q_i A_i + (a vector of that span) with q ≥ 0 on S; else some w in the interior has w_j < 0. So it is
    Gordan's alternative for S and the row -e_j.
    """
    null, k = found.null, found.cone.k
    cone = _Vectors(found)
    for j in range(k):
        sign = (found.w[j] > 0) - (found.w[j] < 0)
        if not cone.full and not any(null[j, i] != 0 for i in range(null.ncols())):
            yield j, 0
        elif null.ncols() == 1:
            yield j, sign
        elif sign == 0 or cone.has_both(j, sign):
            yield j, None
        elif not found.cone.late and (answer := cone.decided(j, sign)) is not None:
            yield j, sign if answer else None


class _Vectors:
    """Vectors of C that are known, and who finds out about a coordinate."""

    def __init__(self, found: Recession) -> None:
        self.found, self.full = found, found.null.ncols() == found.cone.k
        self.inside: list[Any] = [found.w]

    @cached_property
    def decide(self) -> _Exactly | _FromCentre | None:
        """Made when it is first needed; None where there is no room or time."""
        strict = np.flatnonzero(self.found.signs > 0)
        if len(strict) * self.found.null.ncols() ** 2 <= recession.SMALL:
            return _Exactly(self.found, strict)
        if self.found.cone.late or not _have_room(self.found, strict):
            return None
        centre = _FromCentre(self.found, strict)
        self.inside.extend(centre.inside)
        return centre

    def has_both(self, j: int, sign: int) -> bool:
        """Whether coordinate j, which has this sign for one of the vectors, has the other for another."""
        return any(sign * w[j] < 0 for w in self.inside)

    def decided(self, j: int, sign: int) -> bool | None:
        """Whether coordinate j has this sign throughout; None where that is not found out."""
        turned = (*self.found.w[:j], -sign, *self.found.w[j + 1 :])
        if not self.full and (self.found.cone.signs(turned) >= 0).all():  # a step in one coordinate does
            self.inside.append(turned)
        answer = None if self.decide is None or self.has_both(j, sign) else self.decide(j, sign)
        if answer is not None and answer is not True:
            self.inside.append(answer)
        return False if self.has_both(j, sign) else answer


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


class _FromCentre:
    """The same for many rows, from a central vector c of C; what floats propose is proved, in floats or exactly.

    Let G be the strict rows in coordinates of C, D = diag(1/G_i·c) and H = GᵀD²G. Of the coordinate t·c > 0, the direction in
    which it decreases most within Dikin's ellipsoid is -u for u = H⁻¹t, and one factorization gives those of all coordinates. The
    scores then change by -D⁻¹v with v = DGu. Where t·(c - τu) < 0 for a c - τu in C both signs occur; and where v ≥ 0, q = Dv ≥ 0
    has Gᵀq = Hu = t: the sign is the same throughout. Else c moves that way, and a new H is needed.
    """

    def __init__(self, found: Recession, strict: Array) -> None:
        from scipy.linalg import qr

        self.found, self.strict = found, strict
        self.cone, self.null = found.cone, found.null
        self.full = self.null.ncols() == self.cone.k
        F, _, s = self.cone.floats
        if self.full:
            self.Q = np.eye(self.cone.k)
        else:
            self.Q = qr(np.array([_divided(v, s) for v in columns_of(self.null)]).T, mode="economic")[0]
        self.G = dense(F[strict] if self.full else F[strict] @ self.Q)
        c = self.Q.T @ _divided(found.w, s)
        self.rows = np.sort(np.argsort(self.G @ c, kind="stable")[: max(FEWEST_ROWS, ROWS_A_COLUMN * self.Q.shape[1])])
        self.exact: Array | None = None
        self.centre = self._central(c / np.linalg.norm(c))
        self.inside = self._all_around() if self.full else []

    def __call__(self, j: int, sign: int) -> Any:
        answer = self._along(j, sign)
        return self._by_program(j, sign) if answer is None else answer

    def _metric(self, c: Array) -> tuple[Array, Array] | None:
        """DG and the diagonal of D, for the rows in hand; None where c is on the border, as far as floats can tell."""
        G = self.G[self.rows]
        with np.errstate(all="ignore"):
            D = 1 / (G @ c)
            M = G * D[:, None]
            inside = (D > 0).all() and math.isfinite(float(np.vdot(M, M))) and not self.cone.late
        return (M, D) if inside else None

    def _central(self, given: Array) -> Array:
        """Near the least -Σ log G_i·c + m|c|²/2 over the m rows in hand; what is given where that is not inside for all rows."""
        c, m = given, len(self.rows)
        for _ in range(CENTRING):
            metric = self._metric(c)
            if metric is None:
                return given
            M, _ = metric
            gradient = m * c - M.sum(axis=0)
            H = M.T @ M
            H.flat[:: len(H) + 1] += m
            step = -solved(factorized(H), gradient)
            c = c + min(1.0, REACH / max(REACH, -float(np.min(M @ step)))) * step
            if -float(gradient @ step) < CENTRAL:
                break
        return c if (self.G @ c > 0).all() else given

    def _all_around(self) -> list[Array]:
        """Vectors of C beyond those coordinate planes that steps from the centre reach; proved, all at once."""
        c, metric = self.centre, self._metric(self.centre)
        if metric is None or not self.cone.scaled_exactly:
            return []
        M, _ = metric
        U = solved(factorized(M.T @ M), np.diag(np.sign(c)))
        W = c[:, None] - U * _beyond(np.abs(c), np.abs(np.diagonal(U)), np.max(M @ U, axis=0))
        W = W[:, np.isfinite(W).all(axis=0)]
        return [*W[:, strictly_positive(self.cone.floats[0], W)].T]

    def _along(self, j: int, sign: int) -> Any:
        """True, or a vector of C with the other sign, by steps of affine scaling; None where neither is proved."""
        target, c = sign * self.Q[j], self.centre
        for _ in range(STEPS):
            metric = self._metric(c)
            if metric is None:
                return None
            M, D = metric
            u = solved(factorized(M.T @ M), target)
            v = M @ u
            if (v >= 0).all():
                return self._proved_same(j, sign, D * v)
            step = float(_beyond(target @ c, target @ u, np.max(v)))
            if math.isfinite(step):
                other = c - step * u
                scores = self.G @ other
                wrong = np.flatnonzero(scores <= 0)
                if not len(wrong):
                    return self._direction(j, sign, self.Q @ other)
                self._take_in(wrong[np.argsort(scores[wrong], kind="stable")])
                c = self.centre
                continue
            if not np.max(v) > 0:  # rounding
                return None
            c = c - (REACH / np.max(v)) * u
            c /= np.linalg.norm(c)
        return None

    def _take_in(self, wrong: Array) -> None:
        """Have some more rows in hand: of these, the first."""
        self.exact = None
        self.rows = np.union1d(self.rows, wrong[: max(100, 2 * self.Q.shape[1])])

    def _exact_rows(self) -> Array:
        """The rows in hand as they are stored; read once, until there are more of them."""
        if self.exact is None:
            problem, rows = self.cone.problem, self.strict[self.rows].tolist()
            self.exact = signed_rows(problem, rows, self.cone.intercept, problem.signs)[:, list(self.cone.columns)]
        return self.exact

    def _proved_same(self, j: int, sign: int, q: Array) -> bool | None:
        """True if sign·e_j is proved to be a combination of strict rows with weights near q, modulo the span of the others."""
        _, e, s = self.cone.floats
        rows = self.strict[self.rows]
        if self.full:  # then these rows and -sign·e_j cancel with positive weights
            S = np.vstack([self._exact_rows(), -sign * np.eye(1, self.cone.k, j)])
            with np.errstate(all="ignore"):
                try:
                    weights = near(S, np.append(times_powers(q, -e[rows]), 1 / s[j]))
                except np.linalg.LinAlgError:
                    weights = None
                if weights is not None and cancelling(S, weights) < math.inf:
                    return True
        with np.errstate(all="ignore"):
            try:
                few = few_rows(np.vstack([self.G[self.rows], -sign * self.Q[j]]), np.append(q, 1.0))
            except np.linalg.LinAlgError:
                return None
        return self._proved(j, sign, rows[few[few < len(rows)]])

    def _by_program(self, j: int, sign: int) -> Any:
        """The same by linear programs over a growing set of rows."""
        target = -sign * self.Q[j] / np.linalg.norm(self.Q[j])
        for _ in range(ROUNDS):
            answer = self._program(target)
            if answer is None:
                return None
            t, c, multipliers = answer
            if t <= SAME_SPAN:
                return self._proved(j, sign, self.strict[self.rows[multipliers[:-1] > SAME_SPAN]])
            scores = self.G @ c
            wrong = np.flatnonzero(scores < 0)
            if not len(wrong):
                return self._direction(j, sign, self.Q @ c)
            self._take_in(wrong[np.argsort(scores[wrong], kind="stable")])
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

    def _direction(self, j: int, sign: int, w: Array) -> Any:
        """A vector of C near w, proved, whose coordinate j has the other sign; floats are for scaled columns."""
        if self.full and self.cone.scaled_exactly and sign * w[j] < 0 and strictly_positive(self.cone.floats[0], w[:, None])[0]:
            return w
        for candidate in rational(self.cone, w, self.null, self.found.pivots):
            if sign * candidate[j] < 0 and (self.cone.signs(candidate) >= 0).all():
                return candidate
        return None


@np.errstate(all="ignore")
def _beyond(value: Any, slope: Any, steepest: Any) -> Array:
    """A step along which a positive value changes its sign before a score does, half way to that or less; NaN if there is none.

    The value decreases by `slope` a step, and the score that does so fastest by the share `steepest` of itself.
    """
    turning, border = np.asarray(value / slope), np.where(steepest > 0, 1 / np.asarray(steepest), math.inf)
    return np.where((turning > 0) & (turning < border), np.minimum(2 * turning, (turning + border) / 2), math.nan)
