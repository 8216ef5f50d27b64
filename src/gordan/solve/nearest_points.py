"""The finder for hard margins of rows on a device: games on a working set, each solved by an interior-point method there.

The working set begins as a sample. The game on it, min ½‖Aᵀp‖² over p ≥ 0 with its mass in each group (the nearest points of two
hulls), has an answer w with levels λ. One pass finds the rows of lowest A w, and those below the level of their group are added.
p bounds the margin from above and w from below, whatever the working set is. A step of the interior-point method costs a d × d
matrix, and the number of steps does not depend on the condition of the rows. Only the scores have length n, and they stay where
the rows are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, dot, relative_width
from gordan.deadlines import Deadline
from gordan.errors import BeyondFloats
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Cost, Proposal, Question
from gordan.rows import Rows, nonzero
from gordan.solve.playing import TUNING as PLAYING
from gordan.statuses import Ending
from gordan.trace import Moment, Trace


@dataclass(frozen=True)
class Tuning:
    """Constants of the search; `benchmarks/gpu.py` times what they decide."""

    # Rows of each group that the working set begins with, and that are added in a round at most: this many per column, and at
    # least `min_rows`.
    rows_per_column: int = 32
    min_rows: int = 512
    # Entries of the working set: a step reads them a few times, and a pass over all rows reads more.
    max_entries: int = 1 << 26
    # Games, steps in one game, and the share of the way to the boundary that a step goes.
    max_games: int = 60
    max_steps: int = 60
    step_to_boundary: float = 0.995
    # The next game is solved to this share of the width of the bracket, within these bounds.
    inner_share: float = 0.05
    loosest: float = 0.03
    tightest: float = 1e-13
    # Games without progress, each solved more exactly than the last, before rounding is taken for the reason.
    max_stalled: int = 2
    # The hulls are taken to meet where ‖Aᵀp‖ is at most this, for rows of norm at most 1: the search ends. It is smaller than
    # `playing.TUNING.upper_in_doubt`, at which a play asks other finders.
    hulls_meet: float = 1e-7


TUNING = Tuning()


class DeviceEquilibrium(NamedTuple):
    """The p of the working set, how far its scores are above the level of their group (`slack`), w, v = Aᵀp and the levels."""

    p: Array
    slack: Array
    w: Array
    v: Array
    levels: list[float]


class Step(NamedTuple):
    """A direction of w, of the scores A w, of the levels, of the slacks and of p."""

    w: Array
    scores: Any
    levels: list[float]
    slack: Any
    p: Any


class Interior:
    """The game on rows that are sorted by group, with the size of each group; `mass` is that of p in each."""

    def __init__(self, rows: Rows, sizes: list[int], mass: float) -> None:
        self.rows, self.mass, self.sizes = rows.residing(), mass, sizes
        ends = np.cumsum([0, *sizes])
        self.groups = [slice(int(lo), int(hi)) for lo, hi in pairwise(ends)]
        self.places = [self.rows.to_storage_f64(np.arange(group.start, group.stop)) for group in self.groups]
        self.identity = self.rows.to_storage_f64(np.eye(rows.d))

    def solve(self, tol: float, deadline: Deadline) -> DeviceEquilibrium:
        """Return the equilibrium by Mehrotra's predictor-corrector method.

        It ends when p·slack is the share `tol` of ‖Aᵀp‖², when Aᵀp vanishes, or when rounding allows no further step.
        """
        p = self.rows.to_storage_f64(np.concatenate([np.full(size, self.mass / size) for size in self.sizes]))
        w = v = self.rows.combine(p)
        scores = self._scores(w)
        levels = [float(2 * scores[group].min() - scores[group].mean()) - 1e-9 for group in self.groups]
        slack = self._less(scores, levels)
        for _ in range(TUNING.max_steps):
            gap = float((p * slack).sum())
            if gap <= tol * dot(v, v) or math.sqrt(dot(v, v)) <= TUNING.hulls_meet or deadline.passed:
                break
            centre, off = gap / self.rows.n, w - v
            factors = self._factors(p / slack)
            predictor = self._step(factors, p, slack, -p * slack, off)
            if predictor is None:
                break
            ahead = _step_length(p, predictor.p), _step_length(slack, predictor.slack)
            left = float(((p + ahead[0] * predictor.p) * (slack + ahead[1] * predictor.slack)).sum()) / gap
            aim = centre * min(1.0, max(left, 1e-8)) ** 3
            step = self._step(factors, p, slack, aim - p * slack - predictor.p * predictor.slack, off)
            if step is None:
                break
            t = min(_step_length(p, step.p), _step_length(slack, step.slack))
            if t < 1e-8:
                break
            w, p, scores = w + t * step.w, p + t * step.p, scores + t * step.scores
            levels = [level + t * change for level, change in zip(levels, step.levels, strict=True)]
            slack, v = slack + t * step.slack, self.rows.combine(p)
        p = self._feasible(p)
        return DeviceEquilibrium(self.rows.to_host(p), self.rows.to_host(slack), w, self.rows.combine(p), levels)

    def _factors(self, D: Any) -> tuple[Any, list[Any], list[float], Any]:
        """Return I + Σ over groups of (AᵀDA - f fᵀ/ΣD), with f = AᵀD1 and ΣD of each group, and D."""
        H, sums, totals = self.identity, [], []
        for group, place in zip(self.groups, self.places, strict=True):
            products, f, total = self.rows.moments(D[group], place)
            H = H + products - f[:, None] * (f / total)
            sums.append(self.rows.to_host(f))
            totals.append(float(total))
        return H, sums, totals, D

    def _step(self, factors: Any, p: Any, slack: Any, rest: Any, off: Array) -> Step | None:
        """Return the step by which p·slack changes by `rest` and w - Aᵀp = `off` vanishes, both to first order; or None."""
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
        return self.rows.to_storage_f64(self.rows.scores(w))

    def _less(self, scores: Any, levels: list[float]) -> Any:
        """Return the scores minus the level of their group."""
        less = scores + 0.0
        for group, level in zip(self.groups, levels, strict=True):
            less[group] -= level
        return less

    def _feasible(self, p: Any) -> Any:
        """Scale p, in place, so that each group has its mass to the last digits."""
        for group in self.groups:
            p[group] *= self.mass / float(p[group].sum())
        return p


def _step_length(x: Any, step: Any) -> float:
    """Return the share of the step, at most 1, that leaves x > 0."""
    least = float((step / x).min())
    return min(1.0, -TUNING.step_to_boundary / least) if least < 0 else 1.0


def by_nearest_points(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose the best w and p of games on a working set, when the bracket in floats is narrow enough and at the end.

    Where only the sign is asked for, the search ends when w separates or the hulls meet. Each game costs a pass and at most
    `TUNING.max_steps` systems of d equations.
    """
    with suppress(BeyondFloats):  # products in float64 overflow or underflow: other finders decide, or report it
        if question.radius > 0:
            search = _PointSearch(question, evidence)
            yield from search.proposals()
            if search.best.upper <= TUNING.hulls_meet and not question.sign_alone:
                decide_sign()


class _Groups(NamedTuple):
    """The group of each row, here and (`stored`) where the rows are; the number of groups, and the mass of p in each."""

    of_row: Array
    stored: Any
    number: int
    mass: float

    @classmethod
    def of(cls, halves: Array | None, rows: Rows) -> _Groups:
        if halves is None:
            return cls(np.zeros(rows.n, np.int8), None, 1, 1.0)
        of_row = halves.astype(np.int8, copy=False)
        return cls(of_row, rows.to_storage(of_row), 2, 0.5)


@dataclass
class _Bracket:
    """The best bracket so far, by w and by p, which is given as rows and their weights."""

    w: Array
    p: tuple[Array, Array] = (np.empty(0, np.intp), np.empty(0))
    lower: float = 0.0
    upper: float = math.inf

    @property
    def width(self) -> float:
        return relative_width(self.lower, self.upper)

    def narrow(self, found: DeviceEquilibrium, inside: Array, lower: float, upper: float) -> None:
        """Keep the w and the p of the game on the rows `inside` where they bound the margin more closely."""
        if lower > self.lower:
            self.lower, self.w = lower, found.w
        if upper < self.upper:
            self.upper, self.p = upper, (inside, found.p)


class _PointSearch:
    """A search by games on a working set."""

    def __init__(self, question: Question, evidence: Evidence) -> None:
        self.question, self.stopped = question, False
        self.rows = question.rows.scaled(1 / question.radius)
        self.noise = question.margin.robust / question.radius  # in the 2-norm it lowers both ends by this much
        self.groups = _Groups.of(question.margin.intercept.group_of_row(question.counted.signs), self.rows)
        self.count = max(TUNING.min_rows, TUNING.rows_per_column * self.rows.d)
        self.most = max(4 * self.count, TUNING.max_entries // self.rows.d)
        self.best = _Bracket(np.zeros(self.rows.d))
        self.moments: list[Moment] = []
        self.begun = time.perf_counter()

    def proposals(self) -> Iterator[Proposal]:
        question, budget = self.question, self.question.budget
        inside, inner, share, stalled, before = self._sample(), TUNING.loosest, PLAYING.bracket_share, 0, 1.0
        most = TUNING.max_games if budget.max_iter is None else min(TUNING.max_games, budget.max_iter)
        status = Ending.ROUNDS
        for t in range(1, most + 1):
            try:
                found = self._game(inside).solve(inner, budget.time)
                lowest = self._score(inside, found)
            except KeyboardInterrupt:
                self.stopped = True
                break
            self._record(t)
            reason = self._reason_to_stop()
            if reason is not None:
                status = reason
                break
            if self.best.lower > 0 and (question.sign_alone or self.best.width <= share * question.tol):
                yield self._proposal(Ending.CALLBACK, t)
                share *= 0.5  # the proved bracket was not narrow enough
            new = self._violating(found, lowest, inside)
            stalled = 0 if len(new) or self.best.width < 0.9 * before else stalled + 1
            if stalled > TUNING.max_stalled:
                status = Ending.FINISHED
                break
            before = self.best.width
            inner = max(
                TUNING.tightest, min(TUNING.loosest, TUNING.inner_share * self.best.width, inner if len(new) else 0.03 * inner)
            )
            inside = self._updated(inside, found.slack, new)
        if not question.sign_alone and self.moments:
            yield self._proposal(Ending.INTERRUPTED if self.stopped else status, t)
        elif self.stopped:
            yield Proposal(stopped=True)

    def _reason_to_stop(self) -> Ending | None:
        """Return why the search ends now, or None if it goes on."""
        if self.stopped:
            return Ending.CALLBACK
        vanished = self.best.upper <= (TUNING.hulls_meet if self.noise == 0 else 0.0)
        return Ending.TIME_LIMIT if self.question.budget.spent else Ending.FINISHED if vanished else None

    def _sample(self) -> Array:
        """Return some rows of each group, sorted by group."""
        rng, chosen = np.random.default_rng(self.question.budget.seed), []
        drawn = rng.integers(self.rows.n, size=8 * self.count)
        for g in range(self.groups.number):
            own = drawn[self.groups.of_row[drawn] == g]
            if len(own) < self.count:  # few rows in all, or in this group
                own = rng.permutation(nonzero(self.groups.of_row == g))
            chosen.append(np.unique(own[: self.count]))
        return np.concatenate(chosen)

    def _game(self, inside: Array) -> Interior:
        sizes = [int(np.count_nonzero(self.groups.of_row[inside] == g)) for g in range(self.groups.number)]
        return Interior(self.rows.part(inside), sizes, self.groups.mass)

    def _score(self, inside: Array, found: DeviceEquilibrium) -> tuple[Array, Array]:
        """Return the rows of lowest score with their scores, and update the bracket by what w and p bound the margin by."""
        i, s = self.rows.lowest(found.w, self.count, self.groups.stored)
        length, upper = math.sqrt(dot(found.w, found.w)), math.sqrt(dot(found.v, found.v))
        firsts = [s[self.groups.of_row[i] == g].min() for g in range(self.groups.number)]
        lower = self.groups.mass * float(sum(firsts)) / length - self.noise if length > 0 else 0.0
        upper = max(0.0, upper - self.noise)
        self.best.narrow(found, inside, lower, upper)
        return i, s

    def _violating(self, found: DeviceEquilibrium, lowest: tuple[Array, Array], inside: Array) -> Array:
        """Return those of the lowest rows that are below the level of their group and not in the working set."""
        i, s = lowest
        below = i[s < np.array(found.levels)[self.groups.of_row[i]]]
        return below[np.isin(below, inside, invert=True)]

    def _updated(self, inside: Array, slack: Array, new: Array) -> Array:
        """Return the working set with the new rows, without those farthest above their level where it is too large."""
        room = self.most - len(new)
        if len(inside) > room:
            inside = inside[np.argpartition(slack, room)[:room]]
        together = np.concatenate((inside, new))
        return together[np.lexsort((together, self.groups.of_row[together]))]

    def _record(self, t: int) -> None:
        """Record the round, and show it to the user's callback, which may stop the search."""
        lower, upper = self.question.radius * self.best.lower, self.question.radius * self.best.upper
        length = math.sqrt(dot(self.best.w, self.best.w))
        seconds, passes = time.perf_counter() - self.begun, self.rows.passes
        moment = Moment(t, lower * length, lower, lower, upper, weight=float(t), passes=passes, seconds=seconds)
        self.moments.append(moment)
        watch = None if self.question.sign_alone else self.question.play.watch
        self.stopped |= watch is not None and bool(watch(moment))

    def _proposal(self, status: Ending, t: int) -> Proposal:
        p = np.zeros(self.rows.n)
        p[self.best.p[0]] = self.best.p[1]
        w, b = self.question.margin.intercept.played(self.best.w)
        if self.question.sign_alone:
            return Proposal(w, b, p)
        trace = Trace.of(
            self.moments, method="nearest_points", form="published", norm=2.0, n=self.rows.n, d=self.rows.d,
            scale=self.question.radius, status=status, w=self.best.w, p=p, w_best=self.best.w, p_best=p,
        )  # fmt: skip
        passes, self.rows.passes = self.rows.passes, 0.0
        return Proposal(w, b, p, cost=Cost(trace, t, passes), stopped=self.stopped)
