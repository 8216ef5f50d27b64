"""The restricted game, solved essentially exactly: the least ‖Aᵀp‖ that the p-player can reach with the rows in hand.

    min ½‖Aᵀp + r‖²   over 0 ≤ p ≤ caps, Σp = mass_g in each group g

where r is what rows outside add (those held at their caps; 0 for a hard margin). At the optimum the scores A_i·w of w = Aᵀp + r
are a level λ_g for free rows (0 < p_i < cap_i), at least λ_g where p_i = 0, and at most λ_g where p_i = cap_i. Given which rows
are free this is a linear system. *Block pivoting* guesses them, solves, moves every row that contradicts the guess to the other
side, and repeats: a handful of steps where the guess is nearly right, as after some epochs of coordinate ascent. Where it does
not get nearer, Wolfe's method takes over, whose every step descends.
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

# Rows of a working set at most, if their Gram matrix fits: it then has at most 288 MB, and so much as GRAMS of them is in use at
# a time. Sparse rows with more columns still need no such matrix.
MAX_WORKING_SET, GRAMS = 6000, 4
# Pivoting may fail to reduce the number of contradictions this often before Wolfe's method takes over.
PATIENCE = 4
MOST_PIVOTS = 60
SMALLEST_SHIFT = 1e-7
# Relative accuracy of the scores on a face, while more than a tenth, more than a hundredth, or fewer of its rows are on the wrong
# side (text data, tol 1e-6: a sixth fewer steps in all than with 1e-3, 1e-5 and 1e-8); and, at most, at the end.
ROUGH, FINAL = (1e-2, 1e-3, 1e-4), 1e-11
# Steps of Wolfe's method between two looks at the clock, where there is a deadline: as many as the rows, at least so many. Where
# the pace is known it begins with few, and twice as many follow each time.
STEPS_A_LOOK, FIRST_STEPS = 100, 16
# Scores that are all below this are rounding (rows have norm at most 1): w = 0, the hulls meet. Less than `corral.ZERO`, where
# Wolfe's method stops: scores are about γ², and for a γ that is only small, 1e-6 say, a witness would be looked for in vain.
ZERO = 1e-15


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """Where the p of the rows in hand may be: 0 ≤ p ≤ caps, which may be infinite, and Σp = mass_g in each group g; `which` is
    the group of each row."""

    which: Array
    mass: Array
    caps: Array

    @cached_property
    def members(self) -> list[Array]:
        """The rows of each group."""
        return [np.flatnonzero(self.which == g) for g in range(len(self.mass))]

    @cached_property
    def indicators(self) -> Array:
        """One column for each group, 1 for its rows."""
        return np.equal.outer(self.which, np.arange(len(self.mass))).astype(np.float64)

    def masses(self, p: Array) -> Array:
        """Σp of each group."""
        return np.array([float(p[own].sum()) for own in self.members])

    def cheapest(self, scores: Array) -> tuple[float, Array]:
        """The lowest p·scores over these p, and the score up to which such a p fills each group."""
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
        """p ≥ 0 made feasible: each group is scaled to its mass below the caps."""
        p = p.copy()
        for g, own in enumerate(self.members):
            p[own] = filled(p[own], self.caps[own], float(self.mass[g]))
        return p


@dataclass(frozen=True)
class Equilibrium:
    """p on the rows in hand, the scores of w = Aᵀp + r, the level λ_g of each group, and whether all contradictions are gone."""

    p: Array
    scores: Array
    levels: Array
    settled: bool


class Guess(NamedTuple):
    """Where the search on a face begins, the caps, and the scores there, where they are known."""

    z: Array
    caps: Array
    scores: Array | None


class Accuracy(NamedTuple):
    """How exactly a face is solved, relative to `square`, about ‖Aᵀz + r‖²: at first, and where all z are within bounds."""

    square: float
    rough: float
    final: float


class Contradictions(NamedTuple):
    """Free rows whose z is below 0 or above their caps, and rows at a bound whose score is on the wrong side of their level."""

    low: Array
    high: Array
    enters: Array
    returns: Array
    total: int

    @classmethod
    def of(cls, free: Array, upper: Array, z: Array, caps: Array, slack: Array, noise: float) -> Contradictions:
        """Those to a guess of the free rows and of those at their caps."""
        low, high = free & (z < 0), free & (z > caps)
        enters, returns = ~free & ~upper & (slack < -noise), upper & (slack > noise)
        return cls(low, high, enters, returns, int(np.count_nonzero(low | high | enters | returns)))

    def mended(self, free: Array, upper: Array) -> tuple[Array, Array]:
        """The next guess."""
        return (free & ~self.low & ~self.high) | self.enters | self.returns, (upper & ~self.returns) | self.high


@dataclass(eq=False)
class Gram:
    """Rows in hand by their Gram matrix, factorized anew for each face."""

    K: Array

    def scores(self, p: Array) -> Array:
        """A(Aᵀp)."""
        used = np.flatnonzero(p)
        return np.asarray(self.K[:, used] @ p[used] if 4 * len(used) < len(p) else self.K @ p)

    def stationary(self, F: Array, G: Array, mass: Array, pull: Array, guess: Guess, aim: Accuracy) -> tuple[Array, float]:
        """The z on rows F, Σz = mass_g in each group, that makes ½zᵀAAᵀz + pull·z stationary; G has the groups as columns.

        Solved with Q = AAᵀ + shift·GGᵀ: the second term is constant on the set of z, and makes Q regular for affinely independent
        rows even if 0 is in their hull. The shift is of the size of the squared margin, so that levels keep their digits; not
        below what keeps Q regular where that is 0. With it comes the accuracy reached.
        """
        solver = scipy_linalg().lapack
        Q = self.K[np.ix_(F, F)]
        Q += min(1.0, max(SMALLEST_SHIFT, aim.square)) * (G @ G.T)
        rhs = np.column_stack((G, -pull))
        ridge = 1e-15 * float(np.trace(Q))
        while True:
            factor = np.array(Q, order="F")  # Q is symmetric: the triangle that LAPACK takes for the lower one is right
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
    """Conjugate gradients have used up their budget."""


@dataclass(eq=False)
class Products:
    """Rows in hand by products with them: conjugate gradients on each face, for thousands of free rows.

    `squares` are ‖A_i‖². `budget` is the number of multiplications to spend at most; beyond it `Stalled` is raised.
    """

    rows: Rows
    squares: Array
    budget: float
    deadline: Deadline = UNLIMITED

    def scores(self, p: Array) -> Array:
        """A(Aᵀp)."""
        return self.rows.scores(self.rows.combine(p))

    def stationary(self, F: Array, G: Array, mass: Array, pull: Array, guess: Guess, aim: Accuracy) -> tuple[Array, float]:
        """As `Gram.stationary`, with scores equal within each group up to that share of `square`: the final one, unless some z is
        out of bounds by the time that the rough one is reached."""
        z = guess.z.copy()
        price = 4.0 * self.rows.entries * len(F) / self.rows.n  # of a step
        most = max(1, int(min(self.budget / price, 20.0 * len(F))))
        if self.deadline.pace.entry > 0:  # a step multiplies twice, on one thread
            most = max(1, min(most, int(self.deadline.left / (price * self.deadline.pace.entry))))
        face = Face(F, np.argmax(G, axis=1), mass, pull, self.squares[F], guess.caps)
        until = StoppingRule(aim.final * aim.square, aim.rough * aim.square, most, lambda: not self.deadline.passed)
        steps, spread = equalize_scores(self.rows, face, z, until, guess.scores)
        self.budget -= steps * price
        if self.budget < price:
            raise Stalled
        return z, spread / aim.square


@dataclass(frozen=True, eq=False)
class Restricted:
    """The game on the rows in hand, for the p that are `allowed`; `pull` = A r, `rest` = ‖r‖².

    `rank` bounds that of the rows, so that more than rank + groups free rows must be dependent. After the `deadline` it
    ends with a feasible p that is not settled.
    """

    rows: Gram | Products
    allowed: FeasibleSet
    pull: Array
    rest: float
    rank: int
    deadline: Deadline = UNLIMITED

    def solve(self, p: Array, tol: float) -> Equilibrium:
        """The equilibrium, from a first guess p of which only the zeros and caps matter. Scores right to `tol` are settled."""
        caps = self.allowed.caps
        free, upper = (p > 0) & (p < caps), p >= caps
        z, scores, square = self._begin(p)
        final = max(FINAL, tol)
        fewest, patience, accuracy = len(p) + 1, PATIENCE, ROUGH[0]
        known = True  # whether the scores are those of z on the face
        for _ in range(MOST_PIVOTS):
            if not self._solvable(int(np.count_nonzero(free))):
                break
            self._fill(free, upper, scores)
            guess = Guess(z, caps, scores if known else None)
            z, scores, levels, reached = self._on_face(free, upper, guess, Accuracy(square, accuracy, final))
            square = self._square(z, scores, levels)
            # scores that are rough tell only of rows far from the level that they are on the wrong side of it
            noise = max((tol if min(reached, accuracy) <= final else reached) * square, 1e-15 * float(np.max(np.abs(scores))))
            wrong = Contradictions.of(free, upper, z, caps, scores - levels[self.allowed.which], noise)
            if wrong.total == 0:
                if reached <= final or accuracy <= final:
                    return Equilibrium(np.clip(z, 0.0, caps), scores, levels, True)
                accuracy, known = final, True
                continue
            fewest, patience = (wrong.total, PATIENCE) if wrong.total < fewest else (fewest, patience - 1)
            if patience < 0 or float(np.max(np.abs(scores))) <= ZERO or self.deadline.passed:
                break
            share = wrong.total / np.count_nonzero(free)
            accuracy = max(final, min(accuracy, ROUGH[0] if share > 0.1 else ROUGH[1] if share > 0.01 else ROUGH[2]))
            known = not (wrong.low | wrong.high).any()
            free, upper = wrong.mended(free, upper)
        z = np.clip(z, 0.0, caps)
        return self.descend(z, tol) if isinstance(self.rows, Gram) else Equilibrium(z, scores, levels, False)

    def _begin(self, p: Array) -> tuple[Array, Array, float]:
        """p scaled to the mass, its scores, and ‖Aᵀp + r‖²; 0 and 1 where p is 0."""
        scores, total = self.rows.scores(p) + self.pull, float(p.sum())
        shrink = float(self.allowed.mass.sum()) / total if total > 0 else 0.0
        square = shrink * float(p @ (shrink * (scores - self.pull) + 2 * self.pull)) + self.rest if shrink else 1.0
        return shrink * p, self.pull + shrink * (scores - self.pull), square

    def _solvable(self, free: int) -> bool:
        """Whether so many rows need not be dependent, and there is time for their factors."""
        if not isinstance(self.rows, Gram):
            return True
        return free <= self.rank + len(self.allowed.mass) and self.deadline.affords(self.deadline.pace.factors(free))

    def descend(self, p: Array, tol: float, gradient: Array | None = None) -> Equilibrium:
        """From p, made feasible, by Wolfe's method, which also leaves p on affinely independent rows.

        `gradient` are the scores at p where p is feasible and they are known better than K p + pull.
        """
        from gordan.solve import corral

        assert isinstance(self.rows, Gram)
        allowed = self.allowed
        if gradient is None:
            p = allowed.filled(p)
            gradient = self.rows.scores(p) + self.pull
        p, scores, levels = p.copy(), gradient.copy(), allowed.cheapest(gradient)[1]
        which = allowed.which.astype(np.int64)
        left = (20 if np.isfinite(allowed.caps).any() else 2) * len(p) + 20 * self.rank + 100
        steps = left if math.isinf(self.deadline.at) else max(STEPS_A_LOOK, len(p))
        settled, paced = False, self.deadline.pace.multiplication > 0
        steps, expected = FIRST_STEPS if paced else steps, self._descent(int(np.count_nonzero(p)), FIRST_STEPS)
        while not settled and left > 0 and self.deadline.affords(expected):
            order, base, begin = np.argsort(-p, kind="stable"), scores.copy(), time.perf_counter()
            state = (which, allowed.mass, allowed.caps, order, p, tol, min(steps, left), scores, levels)
            settled = bool(corral.descend(self.rows.K, base, *state))  # type: ignore[no-untyped-call]
            left -= steps
            if paced:  # twice as many steps, if they end in time: each piece makes the factors anew
                expected = 2 * (time.perf_counter() - begin)
                steps *= 2 if expected <= 0.5 * self.deadline.left else 1
        return Equilibrium(p, scores, levels, settled)

    def _descent(self, free: int, steps: int) -> float:
        """Seconds of so many steps of Wolfe's method that begin with so many free rows."""
        free = min(free, self.rank + len(self.allowed.mass))
        return LOOPS * self.deadline.pace.multiplication * (free**3 / 6 + 4.0 * steps * (free + steps) ** 2)

    def _fill(self, free: Array, upper: Array, scores: Array) -> None:
        """Every group needs a free row, to take up what the others leave: the one of lowest score."""
        for own in self.allowed.members:
            if not free[own].any():
                first = own[np.argmin(scores[own])]
                free[first], upper[first] = True, False

    def _square(self, z: Array, scores: Array, levels: Array) -> float:
        """‖Aᵀz + r‖², what the accuracy of scores is measured by; not much below the levels, where r makes it uncertain."""
        size = float(np.abs(levels).sum())
        return min(size, max(1e-3 * size, float(z @ (scores + self.pull)) + self.rest))

    def _on_face(self, free: Array, upper: Array, guess: Guess, aim: Accuracy) -> tuple[Array, Array, Array, float]:
        """The stationary p for this guess of the free rows and those at their caps, its scores, the levels, and the accuracy."""
        F = np.flatnonzero(free)
        G = self.allowed.indicators[F]
        z = np.zeros(len(free))
        z[upper] = self.allowed.caps[upper]
        pull = (self.rows.scores(z) if upper.any() else 0.0) + self.pull
        guess = Guess(guess.z[F], guess.caps[F], None if guess.scores is None else guess.scores[F])
        z[F], reached = self.rows.stationary(F, G, self.allowed.mass - self.allowed.masses(z), pull[F], guess, aim)
        scores = self.rows.scores(z) + self.pull
        return z, scores, (scores[F] @ G) / G.sum(axis=0), reached


def filled(p: Array, caps: Array, mass: float) -> Array:
    """p ≥ 0 scaled to the mass below the caps; rows at their caps stay there, and those of weight 0 get what does not fit."""
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
        room = caps - p if np.isfinite(caps).all() else np.where(np.isinf(caps), missing, 0.0)  # no cap: room for all of it
        p = np.minimum(p + room * (missing / max(float(room.sum()), missing)), caps)
    return p
