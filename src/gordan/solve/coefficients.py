"""The signs of the coordinates of the recession cone: which coefficients of a logistic regression diverge, and to which side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from flint import fmpq

from gordan.arrays import Array, times_powers
from gordan.blas import factorized, scipy_linalg, solved
from gordan.certificates import exact
from gordan.certificates.verified import ScoreProver, nonnegative_combinations
from gordan.deadlines import DENSE_GRAM, Deadline
from gordan.memory import fits
from gordan.solve.alternative import Separator, alternative
from gordan.solve.cancelling import few_rows
from gordan.solve.cone import columns_of, combined, dense, in_rows, quotient, rational, some_rows
from gordan.solve.recession import MAX_ROUNDS, SAME_SPAN, Recession, decided_at_once


@dataclass(frozen=True)
class Tuning:
    """Constants of the search for the coefficients that diverge; `benchmarks/overlap.py` times what they decide."""

    # Copies of the strict rows, in coordinates of the cone, that exist at a time.
    copies: int = 4
    # Rows of the working set: this many per dimension of the cone, and at least `min_rows`.
    rows_per_column: int = 6
    min_rows: int = 200
    # Steps to the centre. Two or three are needed, and only where one step from the known vector leaves most coefficients
    # undecided.
    max_centring_steps: int = 30
    # Steps for one coefficient before a linear program is asked; up to ten are needed.
    max_steps: int = 25
    # Share of the way to the boundary that a step goes, and the Newton decrement at which a vector is central enough.
    step_to_boundary: float = 0.9
    central: float = 10.0
    # A negative weight below this share of the largest may be rounding: the coefficient hardly has one sign.
    nearly_zero: float = 1e-9
    # Projections for all coefficients at once, and how often rows are added in between: they leave one coefficient in forty to
    # steps of its own.
    max_projections: int = 300
    max_retries: int = 5
    # Share of its largest possible value by which every weight of a combination is kept above 0.
    weight_floor: float = 0.01
    # While at most `few_open` coefficients are undecided, they are checked after every fourth projection only, since a check
    # costs more.
    few_open: int = 8
    projections_per_check: int = 4


TUNING = Tuning()


def coordinate_signs(found: Recession) -> Iterator[tuple[int, int | None]]:
    """Yield the sign of each coordinate that can be decided, proved exactly.

    It is 1 if w_j > 0 throughout the relative interior of C, -1 if w_j < 0, 0 if w_j = 0 throughout, None if both signs occur.

    With S the strict rows and Z the others, w_j = 0 on C if and only if it is 0 on the null space of the span of Z. By Farkas'
    lemma w_j ≥ 0 on C if and only if e_j = Σ q_i A_i + (a vector of that span) with q ≥ 0 on S; otherwise some w in the interior
    has w_j < 0. So this is Gordan's alternative for S and the row -e_j.
    """
    cone = _KnownSigns(found)
    for j in range(found.cone.k):
        sign = (found.w[j] > 0) - (found.w[j] < 0)
        if not cone.full and not any(found.null[j, i] != 0 for i in range(found.dimension)):
            yield j, 0
        elif found.dimension == 1:
            yield j, sign
        elif sign == 0 or cone.has_both(j):
            yield j, None
        elif not found.cone.deadline.passed and (answer := cone.decided(j, sign)) is not None:
            yield j, sign if answer else None


class _KnownSigns:
    """The signs that occur in known vectors of C, and the search for the others."""

    def __init__(self, found: Recession) -> None:
        self.found, self.full = found, found.dimension == found.cone.k
        self.positive, self.negative = (np.zeros(found.cone.k, dtype=bool) for _ in range(2))
        self._add(found.w)

    def _add(self, *vectors: Any) -> None:
        """Add vectors of C, given as floats or as integers of any size."""
        signs = np.array([w if isinstance(w, np.ndarray) else [(x > 0) - (x < 0) for x in w] for w in vectors])
        self.positive |= (signs > 0).any(axis=0)
        self.negative |= (signs < 0).any(axis=0)

    @cached_property
    def decide(self) -> _Exactly | _FromCentre | None:
        """The search for one coordinate, made when it is first needed; None if there is no room or time for it."""
        strict = np.flatnonzero(self.found.signs > 0)
        if decided_at_once(len(strict), self.found.dimension):
            return _Exactly(self.found, strict)
        if self.found.cone.deadline.passed or not _fits_memory_and_time(self.found, strict):
            return None
        centre = _FromCentre(self.found, strict)
        if centre.inside:
            self._add(*centre.inside.values())
        return centre

    def has_both(self, j: int) -> bool:
        """Return whether coordinate j has different signs in two of the vectors."""
        return bool(self.positive[j] and self.negative[j])

    def decided(self, j: int, sign: int) -> bool | None:
        """Return whether coordinate j has this sign throughout; None if that could not be decided."""
        turned = (*self.found.w[:j], -sign, *self.found.w[j + 1 :])
        if not self.full and (self.found.cone.signs(turned) >= 0).all():  # a step in one coordinate is enough
            self._add(turned)
        answer = None if self.decide is None or self.has_both(j) else self.decide(j, sign)
        if answer is not None and answer is not True:
            self._add(answer)
        return False if self.has_both(j) else answer


def _fits_memory_and_time(found: Recession, strict: Array) -> bool:
    """Return whether floats and linear programs fit into the memory and the time that are left."""
    cells, deadline = len(strict) * found.dimension, found.cone.deadline
    fitting = found.cone.scalable and fits(8 * TUNING.copies * cells)
    return fitting and deadline.affords(DENSE_GRAM * deadline.pace.multiplication * cells * found.cone.k)


class _Exactly:
    """Decides the sign of a coordinate in exact arithmetic.

    The answer is True if the coordinate has the given sign throughout, a vector of C with the other sign if not, and None if the
    time is up.
    """

    def __init__(self, found: Recession, strict: Array) -> None:
        self.null, self.deadline = found.null, found.cone.deadline
        self.rows, _, _ = quotient(found.cone, [int(i) for i in strict], found.null)

    def __call__(self, j: int, sign: int) -> Any:
        opposite = [-sign * int(self.null[j, i]) for i in range(self.null.ncols())]
        answer = alternative([[fmpq(x) for x in row] for row in (*self.rows, opposite)], self.deadline)
        return combined(self.null, answer.w) if isinstance(answer, Separator) else answer is not None or None


def _divided(w: Sequence[int], s: Array) -> Array:
    """Return w/s, up to its length, for integers of any size and powers of two s."""
    shifts = [max(0, int(x).bit_length() - 64) for x in w]
    leading = np.array([float(int(x) >> shift) for x, shift in zip(w, shifts, strict=True)])
    return times_powers(leading, np.array(shifts) - np.frexp(s)[1])


class _FromCentre:
    """Decides as `_Exactly` does, for many rows, from a central vector c of C; what floats find is proved, in floats or exactly.

    Let G be the strict rows in coordinates of C, D = diag(1/G_i·c) and H = GᵀD²G. If C has full dimension, most coordinates are
    decided together: with H = RᵀR the columns of V = DGR⁻¹ are orthonormal, and `projected` decides for t = R⁻ᵀe_j. Each of the
    others takes steps of its own: the direction in which a coordinate t·c > 0 decreases most within Dikin's ellipsoid is -u for
    u = H⁻¹t. The scores then change by -D⁻¹v with v = DGu. Where t·(c - τu) < 0 for a c - τu in C, both signs occur; and where
    v ≥ 0, q = Dv ≥ 0 has Gᵀq = Hu = t, and the sign is the same throughout. Otherwise c moves along -u, and a new H is formed.
    """

    def __init__(self, found: Recession, strict: Array) -> None:
        from scipy.linalg import qr

        self.found, self.strict = found, strict
        self.cone, self.full = found.cone, found.dimension == found.cone.k
        F, _, s = self.cone.floats
        if self.full:
            self.Q = np.eye(self.cone.k)
        else:
            self.Q = qr(np.array([_divided(v, s) for v in columns_of(found.null)]).T, mode="economic")[0]
        F = F if len(strict) == F.shape[0] else F[strict]
        self.G = dense(F if self.full else F @ self.Q)
        c = self.Q.T @ _divided(found.w, s)
        few = max(TUNING.min_rows, TUNING.rows_per_column * self.Q.shape[1])
        self._hold(np.arange(len(self.G)) if len(self.G) <= few else np.sort(np.argsort(self.G @ c, kind="stable")[:few]))
        self.centre = c / np.linalg.norm(c)
        self.inside: dict[int, Array] = {}
        self.same: set[int] = set()
        self.proves = self.cone.scores if self.full else None
        if self.proves is not None and len(strict) < len(found.signs):  # the other rows are zero
            self.proves = ScoreProver(self.G)
        if self.proves is None:
            self._to_centre()
        else:
            self._together(self.proves)

    def __call__(self, j: int, sign: int) -> Any:
        if j in self.same:
            return True
        answer = self._by_steps(j, sign)
        return self._by_program(j, sign) if answer is None else answer

    def _hold(self, rows: Array) -> None:
        """Make these rows the working set."""
        self.rows, self.held = rows, self.G if len(rows) == len(self.G) else self.G[rows]

    def _metric(self, c: Array) -> tuple[Array, Array] | None:
        """Return DG and the diagonal of D, for the working set; None if c is on the boundary in floats, or the time is up."""
        with np.errstate(all="ignore"):
            D = 1 / (self.held @ c)
            M = self.held * D[:, None]
            inside = (D > 0).all() and math.isfinite(float(np.vdot(M, M))) and not self.cone.deadline.passed
        return (M, D) if inside else None

    def _to_centre(self) -> None:
        """Move c near the minimum of -Σ log G_i·c + m|c|²/2 over the m rows of the working set, if that is inside for all."""
        c, m = self.centre, len(self.rows)
        for _ in range(TUNING.max_centring_steps):
            metric = self._metric(c)
            if metric is None:
                return
            M, _ = metric
            gradient = m * c - M.sum(axis=0)
            H = M.T @ M
            H.flat[:: len(H) + 1] += m
            step = -solved(factorized(H), gradient)
            c = c + min(1.0, TUNING.step_to_boundary / max(TUNING.step_to_boundary, -float(np.min(M @ step)))) * step
            if -float(gradient @ step) < TUNING.central:
                break
        self.centre = c if (self.G @ c > 0).all() else self.centre

    @np.errstate(all="ignore")
    def _together(self, proves: ScoreProver) -> None:
        """Decide the coordinates for which projections find a vector of C with the other sign, or a combination of rows."""
        triangular = partial(scipy_linalg().solve_triangular, lower=True, overwrite_b=True, check_finite=False)
        open_, local = np.flatnonzero(self.centre), self._local()
        open_ = open_ if local is None else self._in_one_step(proves, open_, local[2])
        if 2 * len(open_) > len(self.centre):
            self._to_centre()
            local = self._local()
        sign = np.sign(self.centre)
        for _ in range(TUNING.max_retries):
            if local is None or not len(open_):
                return
            M, D, (lower, scale) = local
            V = triangular(lower, scale[:, None] * M.T).T
            T = triangular(lower, np.diag(scale * sign)[:, open_])
            length = np.linalg.norm(T, axis=0)
            same, P, others, X = projected(V, T / length, self.cone.deadline)
            proved = nonnegative_combinations(self.held, np.diag(sign)[:, open_[same]], D[:, None] * P * length[same])
            self.same.update(open_[same][proved].tolist())
            W = scale[:, None] * triangular(lower, X, trans="T")
            able, open_ = proves.positive(W), open_[others]
            self.inside.update(zip(open_[able].tolist(), W[:, able].T, strict=True))
            scores = np.min(self.G @ W[:, ~able], axis=1, initial=math.inf)
            wrong = np.flatnonzero(scores <= 0)
            if not len(wrong):
                return
            self._add_rows(wrong[np.argsort(scores[wrong], kind="stable")])
            open_, local = open_[~able], self._local()

    def _local(self) -> tuple[Array, Array, tuple[Array, Array]] | None:
        """Return the metric at the centre, and the factor of H."""
        metric = self._metric(self.centre)
        return None if metric is None else (*metric, factorized(metric[0].T @ metric[0]))

    def _in_one_step(self, proves: ScoreProver, open_: Array, factor: tuple[Array, Array]) -> Array:
        """Return the coordinates that are still open after a step from the centre, along -u, which may lead to the other sign."""
        c = self.centre
        U = solved(factor, np.diag(np.sign(c))[:, open_])
        steepest = np.max((self.G @ U) / (self.G @ c)[:, None], axis=0)
        steps = _beyond(np.abs(c[open_]), np.abs(U[open_, np.arange(len(open_))]), steepest)
        able = np.flatnonzero(np.isfinite(steps))
        W = c[:, None] - steps[able] * U[:, able]
        able, W = able[proved := proves.positive(W)], W[:, proved]
        self.inside.update(zip(open_[able].tolist(), W.T, strict=True))
        return np.delete(open_, able)

    @np.errstate(all="ignore")
    def _by_steps(self, j: int, sign: int) -> Any:
        """Return True, or a vector of C with the other sign, by steps of affine scaling; None if neither is proved."""
        target, c = sign * self.Q[j], self.inside.get(j, self.centre)
        for _ in range(TUNING.max_steps):
            metric = self._metric(c)
            if metric is None:
                return None
            M, D = metric
            u = solved(factorized(M.T @ M), target)
            v = M @ u
            rounding = TUNING.nearly_zero * np.max(v)
            if np.min(v) >= -rounding:
                return self._proved_same(j, sign, D * np.where(v > (0 if np.min(v) >= 0 else rounding), v, 0.0))
            steepness = (self.G @ u) / (self.G @ c)  # of all rows
            steepest = np.max(steepness)
            step = float(_beyond(target @ c, target @ u, steepest))
            if math.isfinite(step):
                return self._direction(j, sign, self.Q @ (c - step * u))
            if not steepest > 0:  # only by rounding
                return None
            sooner = np.flatnonzero(steepness > np.max(v))
            self._add_rows(sooner[np.argsort(-steepness[sooner], kind="stable")])
            c = c - (TUNING.step_to_boundary / steepest) * u
            c /= np.linalg.norm(c)
        return None

    def _add_rows(self, wrong: Array) -> None:
        """Add the first of these rows to the working set."""
        self._hold(np.union1d(self.rows, wrong[: max(100, 2 * self.Q.shape[1])]))

    def _proved_same(self, j: int, sign: int, q: Array) -> bool | None:
        """Return True if sign·e_j is proved to be a combination of strict rows, with weights near q, modulo the span."""
        G, target = self.held, sign * self.Q[j]
        metric = self._metric(self.centre) if self.proves is not None else None
        if metric is not None:
            M, D = metric[0] * (q > 0)[:, None], metric[1] * (q > 0)  # rows of weight 0 keep it
            q = q + D * (M @ solved(factorized(M.T @ M), target - G.T @ q))
            if nonnegative_combinations(G, target[:, None], q[:, None])[0]:
                return True
        with np.errstate(all="ignore"):
            try:
                chosen = few_rows(np.vstack([G, -target]), np.append(q, 1.0), self.cone.deadline)
                if chosen is None:
                    return None
                few = chosen[chosen < len(G)]
                if metric is not None and len(few) == len(target):
                    alone = np.linalg.solve(G[few].T, target)
                    if nonnegative_combinations(G[few], target[:, None], alone[:, None])[0]:
                        return True
            except np.linalg.LinAlgError:
                return None
        return self._proved(j, sign, self.strict[self.rows[few]])

    def _by_program(self, j: int, sign: int) -> Any:
        """Return what `_by_steps` does, by linear programs over a growing set of rows."""
        target = -sign * self.Q[j] / np.linalg.norm(self.Q[j])
        for _ in range(MAX_ROUNDS):
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
            self._add_rows(wrong[np.argsort(scores[wrong], kind="stable")])
        return None

    def _program(self, target: Array) -> Any:
        """Solve max t, G c ≥ t, target·c ≥ t, |c| ≤ 1, and return t, c and the multipliers of the rows."""
        block = np.vstack([self.held, target])
        m, d = block.shape
        bounds = np.vstack([np.tile([-1.0, 1.0], (d, 1)), [[-np.inf, 1.0]]])
        cost = np.r_[np.zeros(d), -1.0]
        answer = self.cone.program(cost, A_ub=np.column_stack([-block, np.ones(m)]), b_ub=np.zeros(m), bounds=bounds)
        return None if answer is None else (answer.x[-1], answer.x[:-1], -answer.ineqlin.marginals)

    def _proved(self, j: int, sign: int, rows: Array) -> bool | None:
        """Return True if sign·e_j is exactly a nonnegative combination of these rows, modulo the span of the others."""
        null = self.found.null
        product = self.cone.rows([int(i) for i in rows])[0] * null
        part = some_rows(product, exact.pivots(product.transpose()))
        q = in_rows(part, [sign * fmpq(null[j, i]) for i in range(null.ncols())], self.cone.deadline)
        return True if q is not None and all(x >= 0 for x in q) else None

    def _direction(self, j: int, sign: int, w: Array) -> Any:
        """Return a vector near w that is proved to be in C and whose coordinate j has the other sign, or None.

        w, and the vector if it has floats, are for scaled columns.
        """
        if self.proves is not None and sign * w[j] < 0 and self.proves.positive(w[:, None])[0]:
            return w
        for candidate in rational(self.cone, w, self.found.face, self.found.pivots):
            if sign * candidate[j] < 0 and (self.cone.signs(candidate) >= 0).all():
                return candidate
        return None


@np.errstate(all="ignore")
def projected(V: Array, T: Array, deadline: Deadline) -> tuple[Array, Array, Array, Array]:
    """Decide for columns t of T, of length 1, whether Vᵀq = t for some q > 0, or V x > 0 and t·x < 0 for some x.

    Return the numbers of the columns with such a q, and the q; and the numbers of the others, with an x for each, where V x > 0
    but t·x < 0 only if the projections sufficed.

    The columns of V are orthonormal, and V c = 1 for c = Vᵀ1. The least |Vᵀq - t| over q ≥ 0 is 0 where there is such a q;
    otherwise r = t - Vᵀq has V r ≤ 0 and t·r > 0 at the minimum. It is approached by accelerated projections, which restart,
    column by column, when the objective increases. On the way -r + a c is an x as soon as its product with t is negative for an
    a > max V r. And t is moved by ε c, so that q + V r + ε is a solution as soon as it is positive. All but the last step are in
    float32.
    """
    m, c = len(V), V.sum(axis=0)
    height = c @ T
    floor, open_ = TUNING.weight_floor * height / m, np.flatnonzero(height > 0)
    # vectors are stored as rows here, for the cache
    V32, C32 = V.astype(np.float32), np.ascontiguousarray(V.T, dtype=np.float32)
    t, up = (np.ascontiguousarray(part[:, open_].T, dtype=np.float32) for part in (T - np.outer(c, floor), T / height))
    before = np.maximum(t @ C32, 0)
    q, pace = before.copy(), np.ones(len(open_))
    same, P, others, X = [np.empty(0, int)], [np.empty((m, 0))], [np.empty(0, int)], [np.empty((len(c), 0))]
    for left in range(TUNING.max_projections)[::-1]:
        if not len(open_):
            break
        r = t - q @ V32
        after = r @ C32
        checking = len(open_) > TUNING.few_open or left % TUNING.projections_per_check == 0
        least = np.maximum(np.max(after, axis=1), 0) if checking else None
        after += q
        if least is not None:
            most = np.einsum("ij,ij->i", up, r)
            positive = np.min(after, axis=1) > -0.9 * floor[open_]
            turned = (least < 0.999 * most) & ~positive
            undecided = ~(turned | positive)
            if not left or deadline.passed:
                turned, undecided = ~positive, np.zeros_like(positive)
            if not undecided.all():
                same.append(open_[positive])
                P.append(after[positive].T + floor[same[-1]])
                others.append(open_[turned])
                X.append(np.outer(c, np.where(least < most, 0.1 * least + 0.9 * most, 2 * least)[turned]) - r[turned].T)
                open_, t, up, q, before, after, pace = (part[undecided] for part in (open_, t, up, q, before, after, pace))
        np.maximum(after, 0, out=after)
        step = np.subtract(after, before, out=before)
        q -= after
        pace[np.einsum("ij,ij->i", q, step) > 0] = 1
        faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        np.multiply(step, ((pace - 1) / faster).astype(np.float32)[:, None], out=q)
        q += after
        np.maximum(q, 0, out=q)
        before, pace = after, faster
    numbers, found = np.concatenate(same), np.hstack(P)
    return numbers, found + V @ (T[:, numbers] - V.T @ found), np.concatenate(others), np.hstack(X)


@np.errstate(all="ignore")
def _beyond(value: Any, slope: Any, steepest: Any) -> Array:
    """Return a step after which a positive value has changed its sign and no score has; NaN if there is none.

    It goes at most half the way from where the value is 0 to where a score is. Per step the value decreases by `slope`, and the
    score that decreases fastest by the share `steepest` of itself.
    """
    turning, border = np.asarray(value / slope), np.where(steepest > 0, 1 / np.asarray(steepest), math.inf)
    return np.where((turning > 0) & (turning < border), np.minimum(2 * turning, (turning + border) / 2), math.nan)
