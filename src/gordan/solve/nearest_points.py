"""The margin of many rows from games on few of them, each solved by an interior-point method where the rows are.

The rows in hand begin as a sample. The game on them, min ½‖Aᵀp‖² over p ≥ 0 with its mass in each group (the nearest points of
two hulls), has an answer w with levels λ; one pass finds the rows of lowest A w, and those below their group's level come in. p
bounds the margin from above and w from below, whatever the rows in hand are. An interior point costs a matrix of d columns a
step, and as many steps for rows of any condition; nothing here is of length n but the scores, which stay where the rows are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, dot, relative_width
from gordan.deadlines import Deadline
from gordan.errors import InputError
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Proposal, Question
from gordan.rows import Rows, nonzero
from gordan.trace import Moment, Trace

# Rows for each column that are in hand at first, of each group, and that come in at most in a round.
ROWS_A_COLUMN, LEAST_ROWS = 16, 512
# Entries in hand at most: a step reads them a few times, and a pass over all rows has more.
MOST_ENTRIES = 1 << 26
# Games at most, steps in one, and how much of the way to the boundary a step goes.
MOST_GAMES, MOST_STEPS, INSIDE = 60, 60, 0.995
# Of the tolerance what the bracket in floats is brought to (the proved one is a little wider); of the bracket's width how exactly
# the next game is solved, and the bounds of that.
SHARE, INNER, LOOSEST, TIGHTEST = 0.9, 0.05, 0.03, 1e-13
# Games without gain, each solved more exactly than the last, after which rounding is taken for the reason.
MOST_STALLED = 2
# ‖Aᵀp‖, for rows of norm 1 at most, below which the hulls are taken to meet.
VANISHED = 1e-7


class Equilibrium(NamedTuple):
    """p over the rows in hand and how far their scores are above the level of their group; w, Aᵀp and the levels."""

    p: Array
    slack: Array
    w: Array
    v: Array
    levels: list[float]


class Step(NamedTuple):
    """A direction: of w and A w, of the levels, of the slacks and of p."""

    w: Array
    scores: Any
    levels: list[float]
    slack: Any
    p: Any


class Interior:
    """The game on rows that have the first group first, and how many each group has; `mass` is that of p in each."""

    def __init__(self, rows: Rows, sizes: list[int], mass: float) -> None:
        self.rows, self.mass, self.sizes = rows.residing(), mass, sizes
        ends = np.cumsum([0, *sizes])
        self.groups = [slice(int(lo), int(hi)) for lo, hi in pairwise(ends)]
        self.places = [self.rows.lift(np.arange(group.start, group.stop)) for group in self.groups]

    def solve(self, tol: float, deadline: Deadline) -> Equilibrium:
        """Mehrotra's predictor and corrector until p·slack is this share of ‖Aᵀp‖², Aᵀp vanishes, or rounding ends it."""
        p = self.rows.lift(np.concatenate([np.full(size, self.mass / size) for size in self.sizes]))
        w = v = self.rows.combine(p)
        scores = self._scores(w)
        levels = [float(2 * scores[group].min() - scores[group].mean()) - 1e-9 for group in self.groups]
        slack = self._less(scores, levels)
        for _ in range(MOST_STEPS):
            gap = float((p * slack).sum())
            if gap <= tol * dot(v, v) or math.sqrt(dot(v, v)) <= VANISHED or deadline.passed:
                break
            centre, off = gap / self.rows.n, w - v
            factors = self._factors(p / slack)
            plain = self._step(factors, p, slack, -p * slack, off)
            if plain is None:
                break
            ahead = _reach(p, plain.p), _reach(slack, plain.slack)
            left = float(((p + ahead[0] * plain.p) * (slack + ahead[1] * plain.slack)).sum()) / gap
            aim = centre * min(1.0, max(left, 1e-8)) ** 3
            step = self._step(factors, p, slack, aim - p * slack - plain.p * plain.slack, off)
            if step is None:
                break
            t = min(_reach(p, step.p), _reach(slack, step.slack))
            if t < 1e-8:
                break
            w, p, scores = w + t * step.w, p + t * step.p, scores + t * step.scores
            levels = [level + t * change for level, change in zip(levels, step.levels, strict=True)]
            slack, v = slack + t * step.slack, self.rows.combine(p)
        p = self._feasible(p)
        return Equilibrium(self.rows.fetch(p), self.rows.fetch(slack), w, self.rows.combine(p), levels)

    def _factors(self, D: Any) -> tuple[Any, list[Any], list[float], Any]:
        """I + Σ over groups of (AᵀDA - f fᵀ/ΣD), with f = AᵀD1 and ΣD of each, and D."""
        H, sums, totals = self.rows.lift(np.eye(self.rows.d)), [], []
        for group, place in zip(self.groups, self.places, strict=True):
            products, f, total = self.rows.moments(D[group], place)
            H = H + products - f[:, None] * (f / total)
            sums.append(self.rows.fetch(f))
            totals.append(float(total))
        return H, sums, totals, D

    def _step(self, factors: Any, p: Any, slack: Any, rest: Any, off: Array) -> Step | None:
        """The solution of the linear equations in which p·slack changes by `rest` and w - Aᵀp = `off` vanishes."""
        H, sums, totals, D = factors
        q = rest / slack
        missing = [self.mass - float((p[group] + q[group]).sum()) for group in self.groups]
        right = self.rows.combine(q) - off
        for f, total, m in zip(sums, totals, missing, strict=True):
            right = right + f * (m / total)
        w = self.rows.solve(H, right)
        if w is None:
            return None
        levels = [(m + dot(f, w)) / total for f, total, m in zip(sums, totals, missing, strict=True)]
        scores = self._scores(w)
        change = self._less(scores, levels)
        return Step(w, scores, levels, change, q - D * change)

    def _scores(self, w: Array) -> Any:
        return self.rows.lift(self.rows.scores(w))

    def _less(self, scores: Any, levels: list[float]) -> Any:
        """The scores less the level of their group."""
        less = scores + 0.0
        for group, level in zip(self.groups, levels, strict=True):
            less[group] -= level
        return less

    def _feasible(self, p: Any) -> Any:
        """p with the mass of each group to the last digits."""
        for group in self.groups:
            p[group] *= self.mass / float(p[group].sum())
        return p


def _reach(x: Any, step: Any) -> float:
    """How much of the step leaves x > 0, at most all of it."""
    least = float((step / x).min())
    return min(1.0, -INSIDE / least) if least < 0 else 1.0


def by_nearest_points(question: Question, evidence: Evidence, doubt: Any) -> Iterator[Proposal]:
    """Games on few rows, until the bracket in floats is narrow enough; for the sign until w separates or the hulls meet."""
    with suppress(InputError):  # rows too small, large or unlike for float64 products: others will decide, or say so
        if question.radius > 0:
            search = _Search(question, evidence)
            yield from search.proposals()
            if search.upper <= VANISHED and not question.sign_alone:
                doubt()


class _Groups(NamedTuple):
    """The group of each row, the same where the rows are if there are several, how many there are, and the mass of each."""

    which: Array
    placed: Any
    many: int
    mass: float

    @classmethod
    def of(cls, halves: Array | None, rows: Rows) -> _Groups:
        if halves is None:
            return cls(np.zeros(rows.n, np.int8), None, 1, 1.0)
        which = halves.astype(np.int8, copy=False)
        return cls(which, rows.place(which), 2, 0.5)


class _Search:
    """The working set and the best bracket so far."""

    def __init__(self, question: Question, evidence: Evidence) -> None:
        self.question, self.effort = question, evidence.effort
        self.rows = question.rows.scaled(1 / question.radius)
        self.noise = question.margin.robust / question.radius  # in the 2-norm: it takes so much off both ends
        self.groups = _Groups.of(question.margin.intercept.halves(question.counted.signs), self.rows)
        self.count = max(LEAST_ROWS, ROWS_A_COLUMN * self.rows.d)
        self.most = max(4 * self.count, MOST_ENTRIES // self.rows.d)
        self.lower, self.upper = 0.0, math.inf
        self.w, self.p = np.zeros(self.rows.d), (np.empty(0, np.intp), np.empty(0))
        self.moments: list[Moment] = []
        self.begun = time.perf_counter()

    @property
    def width(self) -> float:
        return relative_width(self.lower, self.upper)

    def proposals(self) -> Iterator[Proposal]:
        question, budget = self.question, self.question.budget
        inside, inner, share, stalled, before = self._sample(), LOOSEST, SHARE, 0, 1.0
        most = MOST_GAMES if budget.max_iter is None else min(MOST_GAMES, budget.max_iter)
        status = "rounds"
        for t in range(1, most + 1):
            try:
                found = self._game(inside).solve(inner, budget.time)
                low = self._look(inside, found)
            except KeyboardInterrupt:
                self.effort.stopped = True
                break
            self._tell(t)
            over = self._over()
            if over:
                status = over
                break
            if self.lower > 0 and (question.sign_alone or self.width <= share * question.tol):
                yield self._proposal("callback", t)
                share *= 0.5  # not narrow enough for the proof
            new = self._violated(found, low, inside)
            stalled = 0 if len(new) or self.width < 0.9 * before else stalled + 1
            if stalled > MOST_STALLED:
                status = "finished"
                break
            before = self.width
            inner = max(TIGHTEST, min(LOOSEST, INNER * self.width, inner if len(new) else 0.03 * inner))
            inside = self._renewed(inside, found.slack, new)
        if not question.sign_alone and self.moments:
            yield self._proposal("interrupted" if self.effort.stopped else status, t)

    def _over(self) -> str:
        """Why there is no further game, if there is a reason."""
        if self.effort.stopped:
            return "callback"
        vanished = self.upper <= (VANISHED if self.noise == 0 else 0.0)
        return "time-limit" if self.question.budget.spent else "finished" if vanished else ""

    def _sample(self) -> Array:
        """Some rows of each group, group by group."""
        rng, chosen = np.random.default_rng(self.question.budget.seed), []
        for g in range(self.groups.many):
            own = nonzero(self.groups.which == g)
            chosen.append(own if len(own) <= self.count else own[np.unique(rng.integers(len(own), size=self.count))])
        return np.concatenate(chosen)

    def _game(self, inside: Array) -> Interior:
        sizes = [int(np.count_nonzero(self.groups.which[inside] == g)) for g in range(self.groups.many)]
        return Interior(self.rows.part(inside), sizes, self.groups.mass)

    def _look(self, inside: Array, found: Equilibrium) -> tuple[Array, Array]:
        """The lowest rows of w; what w and p bound the margin by is noted."""
        i, s = self.rows.lowest(found.w, self.count, self.groups.placed)
        length, upper = math.sqrt(dot(found.w, found.w)), math.sqrt(dot(found.v, found.v))
        firsts = [s[self.groups.which[i] == g].min() for g in range(self.groups.many)]
        lower = self.groups.mass * float(sum(firsts)) / length - self.noise if length > 0 else 0.0
        upper = max(0.0, upper - self.noise)
        if lower > self.lower:
            self.lower, self.w = lower, found.w
        if upper < self.upper:
            self.upper, self.p = upper, (inside, found.p)
        return i, s

    def _violated(self, found: Equilibrium, low: tuple[Array, Array], inside: Array) -> Array:
        """Of the lowest rows those below the level of their group that are not in hand."""
        i, s = low
        below = i[s < np.array(found.levels)[self.groups.which[i]]]
        return below[np.isin(below, inside, invert=True)]

    def _renewed(self, inside: Array, slack: Array, new: Array) -> Array:
        """The rows in hand with the new ones, without those farthest above their level where they are too many."""
        room = self.most - len(new)
        if len(inside) > room:
            inside = inside[np.argpartition(slack, room)[:room]]
        together = np.concatenate((inside, new))
        return together[np.lexsort((together, self.groups.which[together]))]

    def _tell(self, t: int) -> None:
        """Note the round, and show it to whoever watches, who may want to stop."""
        lower, upper = self.question.radius * self.lower, self.question.radius * self.upper
        length = math.sqrt(dot(self.w, self.w))
        seconds, passes = time.perf_counter() - self.begun, self.rows.passes
        moment = Moment(t, lower * length, lower, lower, upper, weight=float(t), passes=passes, seconds=seconds)
        self.moments.append(moment)
        watch = None if self.question.sign_alone else self.question.play.watch
        self.effort.stopped |= watch is not None and bool(watch(moment))

    def _proposal(self, status: str, t: int) -> Proposal:
        p = np.zeros(self.rows.n)
        p[self.p[0]] = self.p[1]
        w, b = self.question.margin.intercept.played(self.w)
        if self.question.sign_alone:
            return Proposal(w, b, p)
        trace = Trace.of(
            self.moments, method="nearest_points", form="published", norm=2.0, n=self.rows.n, d=self.rows.d,
            scale=self.question.radius, status=status, w=self.w, p=p, w_best=self.w, p_best=p,
        )  # fmt: skip
        passes, self.rows.passes = self.rows.passes, 0.0
        return Proposal(w, b, p, trace=trace, rounds=t, passes=passes)
