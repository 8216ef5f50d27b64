"""The restricted game, solved up to rounding: the least ‖Aᵀp‖ that the p-player can reach with the rows of a working set.

    min ½‖Aᵀp + r‖²   over 0 ≤ p ≤ caps, Σp = mass_g in each group g

where r is what rows outside add (those held at their caps; 0 for a hard margin). At the optimum the scores A_i·w of w = Aᵀp + r
equal a level λ_g for free rows (0 < p_i < cap_i), are at least λ_g where p_i = 0, and at most λ_g where p_i = cap_i. Given which
rows are free, this is a linear system. *Block pivoting* guesses them, solves, exchanges every row that contradicts the guess, and
repeats: a handful of steps where the guess is nearly right, as after some epochs of coordinate ascent. Where that makes no
progress, Wolfe's method takes over, in which every step descends.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.blas import scipy_linalg
from gordan.deadlines import LOOPS, UNLIMITED, Deadline
from gordan.rows import Face, Rows, StoppingRule, equalize_scores


@dataclass(frozen=True)
class Tuning:
    """Constants of a game on a working set."""

    # Rows of a working set whose Gram matrix is formed: it then takes at most 288 MB. Sparse rows with more columns need none.
    max_working_set: int = 6000
    # Matrices of the size of the Gram matrix that exist at a time.
    grams: int = 4
    # Pivoting steps, and how many of them may fail to reduce the contradictions before Wolfe's method takes over.
    max_pivots: int = 60
    patience: int = 4
    # The least shift that keeps the system of a face regular where the margin is 0.
    min_shift: float = 1e-7
    # Relative accuracy of the scores on a face while more than 10%, more than 1%, or fewer of its rows are on the wrong side. On
    # text data with tol = 1e-6 it takes a sixth fewer steps in all than 1e-3, 1e-5 and 1e-8 do.
    rough: tuple[float, float, float] = (1e-2, 1e-3, 1e-4)
    # The accuracy of the scores at the end is never finer than this.
    final: float = 1e-11
    # Steps of Wolfe's method between two checks of a deadline: as many as rows, and at least this many. Where the pace is known,
    # a call gets work for a share of the time left instead: the first share, and once such work was timed the second. Each call
    # makes the factor anew, so that work of less than `factors` times that is not worth beginning.
    min_steps_per_check: int = 100
    first_share: float = 0.1
    share: float = 0.5
    factors: float = 2.0
    # Scores that are all below this are rounding (rows have norm at most 1): w = 0, and the hulls meet. It is smaller than
    # `corral.NEGLIGIBLE_SCORES`, at which Wolfe's method stops: scores are about γ², and if γ is small but positive, such as
    # 1e-6, the search for a witness would fail.
    zero_scores: float = 1e-15


TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """The set of p over the working set: 0 ≤ p ≤ caps, which may be infinite, and Σp = mass_g in each group g.

    `groups` has the group of each row.
    """

    groups: Array
    mass: Array
    caps: Array

    @cached_property
    def members(self) -> list[Array]:
        """The rows of each group."""
        return [np.flatnonzero(self.groups == g) for g in range(len(self.mass))]

    @cached_property
    def indicators(self) -> Array:
        """A matrix with a column for each group, 1 for its rows."""
        return np.equal.outer(self.groups, np.arange(len(self.mass))).astype(np.float64)

    def masses(self, p: Array) -> Array:
        """Return Σp of each group."""
        return np.array([float(p[own].sum()) for own in self.members])

    def cheapest(self, scores: Array) -> tuple[float, Array]:
        """Return the lowest p·scores over this set, and the score up to which such a p fills each group."""
        lowest, levels = 0.0, np.empty(len(self.mass))
        for g, own in enumerate(self.members):
            s = scores[own]
            order = np.argsort(s, kind="stable")
            filled = np.minimum(np.cumsum(self.caps[own][order]), self.mass[g])
            k = min(int(np.searchsorted(filled, self.mass[g])), len(s) - 1)
            levels[g] = s[order[k]]
            lowest += float(np.diff(filled[: k + 1], prepend=0.0) @ s[order[: k + 1]])
        return lowest, levels

    def filled(self, p: Array) -> Array:
        """Return p ≥ 0 made feasible: each group is scaled to its mass below the caps."""
        p = p.copy()
        for g, own in enumerate(self.members):
            p[own] = filled(p[own], self.caps[own], float(self.mass[g]))
        return p


@dataclass(frozen=True)
class Equilibrium:
    """The p of the working set, the scores of w = Aᵀp + r, the level λ_g of each group, and whether no row contradicts them."""

    p: Array
    scores: Array
    levels: Array
    settled: bool


class Guess(NamedTuple):
    """The z of the free rows at which the search on a face begins, their caps, and their scores at z where these are known."""

    z: Array
    caps: Array
    scores: Array | None


class Accuracy(NamedTuple):
    """How exactly a face is solved, relative to `square`, about ‖Aᵀz + r‖².

    `rough` is enough where some z are out of bounds, `final` is asked for where none is.
    """

    square: float
    rough: float
    final: float


class Contradictions(NamedTuple):
    """Free rows whose z is below 0 (`low`) or above their cap (`high`), and rows at a bound with scores on the wrong side.

    `enters` are those at 0 whose score is below their level, `leaves` those at their cap whose score is above it.
    """

    low: Array
    high: Array
    enters: Array
    leaves: Array
    total: int

    @classmethod
    def of(cls, free: Array, upper: Array, z: Array, caps: Array, slack: Array, noise: float) -> Contradictions:
        """Return the contradictions to a guess of the free rows and of those at their caps."""
        low, high = free & (z < 0), free & (z > caps)
        enters, leaves = ~free & ~upper & (slack < -noise), upper & (slack > noise)
        return cls(low, high, enters, leaves, int(np.count_nonzero(low | high | enters | leaves)))

    def resolved(self, free: Array, upper: Array) -> tuple[Array, Array]:
        """Return the next guess, in which every contradicting row is exchanged."""
        return (free & ~self.low & ~self.high) | self.enters | self.leaves, (upper & ~self.leaves) | self.high


@dataclass(eq=False)
class Gram:
    """A working set given by its Gram matrix, which is factorized anew for each face."""

    K: Array

    def scores(self, p: Array) -> Array:
        """Return A(Aᵀp)."""
        used = np.flatnonzero(p)
        return np.asarray(self.K[:, used] @ p[used] if 4 * len(used) < len(p) else self.K @ p)

    def stationary(self, F: Array, G: Array, mass: Array, linear: Array, guess: Guess, aim: Accuracy) -> tuple[Array, float]:
        """Return the z on rows F, with Σz = mass_g in each group, that makes ½zᵀAAᵀz + linear·z stationary; and its accuracy, 0.

        G has the groups as columns. The system is that of Q = AAᵀ + shift·GGᵀ: the second term is constant on the set of z, and
        makes Q regular for affinely independent rows even if 0 is in their hull. The shift is of the size of the squared margin,
        so that levels keep their digits.
        """
        solver = scipy_linalg().lapack
        Q = self.K[np.ix_(F, F)]
        Q += min(1.0, max(TUNING.min_shift, aim.square)) * (G @ G.T)
        rhs = np.column_stack((G, -linear))
        ridge = 1e-15 * float(np.trace(Q))
        while True:
            factor = np.array(Q, order="F")  # Q is symmetric, so it does not matter which triangle LAPACK reads
            factor.flat[:: len(F) + 1] += ridge
            factor, failed = solver.dpotrf(factor, lower=1, overwrite_a=1, clean=0)
            if not failed:
                break
            ridge *= 100
        x = solver.dpotrs(factor, rhs, lower=1)[0]
        for _ in range(2 if aim.final < 1e-10 else 1):  # refinement undoes the ridge and rounding (a proximal point step each)
            x += solver.dpotrs(factor, rhs - Q @ x, lower=1)[0]
        V, u = x[:, :-1], x[:, -1]
        return np.asarray(V @ np.linalg.solve(G.T @ V, mass - G.T @ u) + u), 0.0


class Stalled(Exception):
    """Raised when conjugate gradients have used up their budget."""


@dataclass(eq=False)
class RowProducts:
    """A working set given by products with its rows: conjugate gradients on each face, for thousands of free rows.

    `squares` are ‖A_i‖². After `budget` multiplications `Stalled` is raised.
    """

    rows: Rows
    squares: Array
    budget: float
    deadline: Deadline = UNLIMITED

    def scores(self, p: Array) -> Array:
        """Return A(Aᵀp)."""
        return self.rows.scores(self.rows.combine(p))

    def stationary(self, F: Array, G: Array, mass: Array, linear: Array, guess: Guess, aim: Accuracy) -> tuple[Array, float]:
        """Return the z of `Gram.stationary`, and how equal the scores are within each group, as a share of `square`.

        That is the final accuracy, unless some z is out of bounds when the rough one is reached.
        """
        z = guess.z.copy()
        price = 4.0 * self.rows.entries * len(F) / self.rows.n  # multiplications of a step
        most = max(1, int(min(self.budget / price, 20.0 * len(F))))
        if self.deadline.pace.entry > 0:  # a step has two products, on one thread
            most = max(1, min(most, int(self.deadline.left / (price * self.deadline.pace.entry))))
        face = Face(F, np.argmax(G, axis=1), mass, linear, self.squares[F], guess.caps)
        until = StoppingRule(aim.final * aim.square, aim.rough * aim.square, most, lambda: not self.deadline.passed)
        steps, spread = equalize_scores(self.rows, face, z, until, guess.scores)
        self.budget -= steps * price
        if self.budget < price:
            raise Stalled
        return z, spread / aim.square


@dataclass(frozen=True, eq=False)
class Restricted:
    """The game on the working set, for the p that are `allowed`.

    `linear` = A r and `constant` = ‖r‖² are what rows outside add to the scores and to the square. `rank` bounds that of the
    rows, so that more than rank + groups free rows must be dependent. After the `deadline` the search ends with a feasible p that
    is not settled.
    """

    rows: Gram | RowProducts
    allowed: FeasibleSet
    linear: Array
    constant: float
    rank: int
    deadline: Deadline = UNLIMITED

    def solve(self, p: Array, tol: float) -> Equilibrium:
        """Return the equilibrium, from the zeros and the caps of a guess p; it is settled if scores are right to `tol`."""
        caps = self.allowed.caps
        free, upper = (p > 0) & (p < caps), p >= caps
        z, scores, square = self._begin(p)
        final = max(TUNING.final, tol)
        fewest, patience, accuracy = len(p) + 1, TUNING.patience, TUNING.rough[0]
        known = True  # whether the scores are those of z on the face
        for _ in range(TUNING.max_pivots):
            if not self._solvable(int(np.count_nonzero(free))):
                break
            self._fill(free, upper, scores)
            aim = Accuracy(square, accuracy, final)
            z, scores, levels, reached = self._on_face(free, upper, z, scores if known else None, aim)
            square = self._square(z, scores, levels)
            # rough scores show only of rows far from their level that they are on the wrong side of it
            noise = max((tol if min(reached, accuracy) <= final else reached) * square, 1e-15 * float(np.max(np.abs(scores))))
            wrong = Contradictions.of(free, upper, z, caps, scores - levels[self.allowed.groups], noise)
            if wrong.total == 0:
                if reached <= final or accuracy <= final:
                    return Equilibrium(np.clip(z, 0.0, caps), scores, levels, True)
                accuracy, known = final, True
                continue
            fewest, patience = (wrong.total, TUNING.patience) if wrong.total < fewest else (fewest, patience - 1)
            if patience < 0 or float(np.max(np.abs(scores))) <= TUNING.zero_scores or self.deadline.passed:
                break
            share = wrong.total / np.count_nonzero(free)
            rough = TUNING.rough[0 if share > 0.1 else 1 if share > 0.01 else 2]
            accuracy = max(final, min(accuracy, rough))
            known = not (wrong.low | wrong.high).any()
            free, upper = wrong.resolved(free, upper)
        z = np.clip(z, 0.0, caps)
        return self.descend(z, tol) if isinstance(self.rows, Gram) else Equilibrium(z, scores, levels, False)

    def _begin(self, p: Array) -> tuple[Array, Array, float]:
        """Return p scaled to the mass, its scores, and ‖Aᵀp + r‖²; for p = 0 that is taken as 1."""
        scores, total = self.rows.scores(p) + self.linear, float(p.sum())
        scale = float(self.allowed.mass.sum()) / total if total > 0 else 0.0
        square = scale * float(p @ (scale * (scores - self.linear) + 2 * self.linear)) + self.constant if scale else 1.0
        return scale * p, self.linear + scale * (scores - self.linear), square

    def _solvable(self, free: int) -> bool:
        """Return whether this many free rows may be independent, and there is time to factorize their matrix."""
        if not isinstance(self.rows, Gram):
            return True
        return free <= self.rank + len(self.allowed.mass) and self.deadline.affords(self.deadline.pace.factors(free))

    def descend(self, p: Array, tol: float, gradient: Array | None = None) -> Equilibrium:
        """Return the equilibrium by Wolfe's method from p, made feasible: its p is on affinely independent rows.

        `gradient` has the scores at p, where p is feasible and they are known more exactly than K p + linear.
        """
        from gordan.solve import corral

        assert isinstance(self.rows, Gram)
        allowed = self.allowed
        if gradient is None:
            p = allowed.filled(p)
            gradient = self.rows.scores(p) + self.linear
        p, scores, levels = p.copy(), gradient.copy(), allowed.cheapest(gradient)[1]
        groups = allowed.groups.astype(np.int64)
        steps = (20 if np.isfinite(allowed.caps).any() else 2) * len(p) + 20 * self.rank + 100
        unpaced = steps if math.isinf(self.deadline.at) else max(TUNING.min_steps_per_check, len(p))
        seconds, share, settled = LOOPS * self.deadline.pace.multiplication, TUNING.first_share, False  # of a multiplication
        while not settled and steps > 0 and self.deadline.affords(seconds * self._least_work(p)):
            work = max(self._least_work(p), share * self.deadline.left / seconds) if seconds > 0 else math.inf
            left = np.array([steps if seconds > 0 else min(steps, unpaced), work])
            order, base, asked, begin = np.argsort(-p, kind="stable"), scores.copy(), left[0], time.perf_counter()
            state = (groups, allowed.mass, allowed.caps, order, p, tol, left, scores, levels)
            settled = bool(corral.descend(self.rows.K, base, *state))  # type: ignore[no-untyped-call]
            steps -= int(asked - left[0])
            if seconds > 0:
                seconds, share = max(time.perf_counter() - begin, 1e-9) / max(work - left[1], 1.0), TUNING.share
        return Equilibrium(p, scores, levels, settled)

    def _least_work(self, p: Array) -> float:
        """Return the multiplications with which Wolfe's method is worth beginning at p."""
        free = min(int(np.count_nonzero(p)), self.rank + len(self.allowed.mass))
        return TUNING.factors * float(free) ** 3 / 6

    def _fill(self, free: Array, upper: Array, scores: Array) -> None:
        """Free the row of lowest score in every group without a free row: one must take up what the others leave."""
        for own in self.allowed.members:
            if not free[own].any():
                first = own[np.argmin(scores[own])]
                free[first], upper[first] = True, False

    def _square(self, z: Array, scores: Array, levels: Array) -> float:
        """Return ‖Aᵀz + r‖², the unit of the accuracy of scores; not far below the levels, since r makes it uncertain."""
        size = float(np.abs(levels).sum())
        return min(size, max(1e-3 * size, float(z @ (scores + self.linear)) + self.constant))

    def _on_face(
        self, free: Array, upper: Array, start: Array, known: Array | None, aim: Accuracy
    ) -> tuple[Array, Array, Array, float]:
        """Return the stationary p for this guess of the free rows and those at their caps, its scores, levels and accuracy.

        The search begins at `start`, whose scores may be `known`.
        """
        F = np.flatnonzero(free)
        G = self.allowed.indicators[F]
        z = np.zeros(len(free))
        z[upper] = self.allowed.caps[upper]
        linear = (self.rows.scores(z) if upper.any() else 0.0) + self.linear
        guess = Guess(start[F], self.allowed.caps[F], None if known is None else known[F])
        z[F], reached = self.rows.stationary(F, G, self.allowed.mass - self.allowed.masses(z), linear[F], guess, aim)
        scores = self.rows.scores(z) + self.linear
        return z, scores, (scores[F] @ G) / G.sum(axis=0), reached


def filled(p: Array, caps: Array, mass: float) -> Array:
    """Return p ≥ 0 scaled to the mass below the caps.

    Rows at their caps stay there, and rows of weight 0 get what the others have no room for.
    """
    p = np.minimum(p, caps)
    for _ in range(100):
        full = p >= caps
        left, loose = mass - float(p[full].sum()), float(p[~full].sum())
        if left < -1e-12 * mass:
            p *= mass / float(p.sum())
        elif loose == 0 or abs(left - loose) <= 1e-15 * mass:
            break
        else:
            p = np.where(full, p, np.clip(p * (left / loose), 0.0, caps))
    missing = mass - float(p.sum())
    if missing > 1e-12 * mass:
        room = caps - p if np.isfinite(caps).all() else np.where(np.isinf(caps), missing, 0.0)  # without a cap: for all of it
        p = np.minimum(p + room * (missing / max(float(room.sum()), missing)), caps)
    return p
