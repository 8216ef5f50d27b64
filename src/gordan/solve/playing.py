"""The finder that plays: a method of the registry, until the bracket in floats is narrow enough to be worth proving."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gordan import dynamics, methods
from gordan.arrays import Array
from gordan.checkpoint import fingerprint
from gordan.deadlines import Deadline
from gordan.errors import InputError
from gordan.geometry import Ball
from gordan.geometry import norm as norm_of
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Proposal, Question
from gordan.memory import fits
from gordan.methods import Method
from gordan.rows import SMALLEST_RADIUS, Rows, of
from gordan.solve.double_oracle import DoubleOracle, double_oracle, limit_in_hand
from gordan.solve.proximal import MOST_COLUMNS, ProximalNewton, proximal_newton
from gordan.solve.restricted import MAX_WORKING_SET
from gordan.trace import Moment, Trace

# Rounds without a positive margin after which the finders of the sign are asked whether there can be one.
DOUBT = 4
# Share of R that ‖Aᵀp‖ is at most when the hulls are taken to meet, where the sign alone is asked for.
VANISHED = 1e-6
# Of the tolerance, what the float bracket is brought to: the certified one is a little wider.
SHARE = 0.9
# Of the tolerance, how exactly a game on few rows is solved: the gap is then what the other rows make it.
INNER = 0.3
# Rounds of the methods that solve a game in each of them, and of all others.
FEW_ROUNDS = {"double_oracle": 1000, "proximal_newton": 100}
MOST_ROUNDS = 100_000
# Methods and forms whose vectors over rows stay where the rows are, unless a checkpoint has to hold them or there are caps.
RESIDENT = {("smooth_perceptron", "published")}
# What goes on, for norm 2 and for others, where the rows need a larger working set than fits.
GAMES = ("accelerated_perceptron", "accelerated_p_norm_perceptron")
# With a free intercept the points may be moved. They are, if their mean is so large a share of R, and n·d is at most so large:
# copies of X, so many at a time, and no more than a way to propose.
FAR, MOST_MOVED, COPIES = 0.9, 1 << 24, 4
# Relative difference of R between two storages of the same rows, at most: one may be a device that adds in float32.
SAME_RADIUS = 1e-3

Doubt = Callable[[], None]


class Notes(NamedTuple):
    """What a run has to know of itself when it is resumed: whether the points were `moved`, the R that they were divided by
    (`scale`) and that of the points as they are (`radius`), the passes before the first round, whether the sign was asked for,
    the separator that this gave, and the seconds spent."""

    moved: bool
    scale: float
    radius: float
    passes: tuple[float, float]
    doubted: bool
    w: Array | None
    b: float
    seconds: float


def by_playing(question: Question, evidence: Evidence, doubt: Doubt) -> Iterator[Proposal]:
    """Play the method that was asked for, from what the evidence has or from `start`; for the sign alone few rounds of "auto"."""
    if question.sign_alone:
        yield from _Playing(question, evidence, doubt, double_oracle(seed=question.budget.seed)).proposals(None)
    else:
        yield from _Playing(question, evidence, doubt, question.play.method).proposals(_start(question, evidence))


def by_margin_without_noise(question: Question, evidence: Evidence, doubt: Doubt) -> Iterator[Proposal]:
    """The double oracle: where no plane stands the noise, its p often proves that, and always if the data cannot be separated."""
    yield from _Playing(question, evidence, doubt, double_oracle(seed=question.budget.seed)).proposals(None)


def by_newton(question: Question, evidence: Evidence, doubt: Doubt) -> Iterator[Proposal]:
    """Newton's method on the game with a proximal term, for rows that can only be passed over."""
    yield from _Playing(question, evidence, doubt, proximal_newton()).proposals(_start(question, evidence))


def by_accelerated_game(question: Question, evidence: Evidence, doubt: Doubt) -> Iterator[Proposal]:
    """A pass a round and nothing else: what is left where the rows of positive weight no longer fit in memory."""
    margin, p_set = question.margin, question.p_set
    method = methods.get(GAMES[margin.norm > 2]).for_norm(_played_norm(margin.norm, question.problem.X.d))
    if margin.robust > 0:
        method = methods.robust_perceptron(noise=margin.robust, noise_norm=margin.robust_norm)
    trace, centre = evidence.effort.trace, p_set.centre
    found = centre if trace is None or trace.p_best is None else trace.p_best
    yield from _Playing(question, evidence, doubt, method).proposals(0.5 * found + 0.5 * centre)


def outgrown(question: Question, evidence: Evidence) -> bool:
    """Whether more rows than can be in hand have a weight that is neither 0 nor at its cap."""
    trace, most = evidence.effort.trace, question.shared(_limit_in_hand)
    if trace is None or trace.p_best is None or most is None or question.budget.max_iter is not None:
        return False
    return _free(trace.p_best, question.p_set.caps) >= most


def _limit_in_hand(question: Question) -> int | None:
    return limit_in_hand(question.rows, len(question.p_set.members))


def many_at_caps(question: Question) -> bool:
    """Whether more rows are at their caps than can be in hand: passes over all rows tell sooner which these are."""
    nu, rows = question.margin.nu, question.rows
    return nu is not None and nu * rows.n > MAX_WORKING_SET and rows.in_memory and rows.d <= MOST_COLUMNS


def may_be_copied(rows: Rows) -> bool:
    """Whether these rows, spread out, are few enough to be moved."""
    cells = rows.n * rows.d
    return cells <= MOST_MOVED and rows.in_memory and fits(8 * COPIES * cells)


def _free(p: Array, caps: Array | None) -> int:
    return int(np.count_nonzero(p > 0 if caps is None else (p > 0) & (p < caps)))


def _start(question: Question, evidence: Evidence) -> Array | None:
    """p to start from, a little of it spread over all rows: a start must be positive."""
    trace = evidence.effort.trace
    # under noise the p of the margin without it is a poor start: twice the rounds
    found = question.play.start if trace is None or question.play.method.noisy else trace.p_best
    if found is None:
        return None
    return 0.99 * question.p_set.project(found) + 0.01 * question.p_set.centre


@dataclass(eq=False)
class _Playing:
    """One method at play for one question; `doubted`: the finders of the sign have been asked."""

    question: Question
    evidence: Evidence
    doubt: Doubt
    method: Method
    doubted: bool = False

    def proposals(self, start: Array | None) -> Iterator[Proposal]:
        """What is left at the end of the run: the best w and the best p."""
        question = self.question
        before = self._before()
        moved, R = self._moved(before)
        rows = moved.scaled(1 / R) if R > 0 else moved
        rows = rows.residing() if self._resides(rows) else rows
        try:
            trace = self._run(question.p_set.start(start), moved, rows, R)
        except KeyboardInterrupt:  # before the first round was over: p_0 is what there is
            self.evidence.effort.stopped = True
            yield Proposal(p=question.p_set.centre)
            return
        self.evidence.effort.stopped |= trace.status == "interrupted"
        passes = sum(used.passes for used in {id(used): used for used in (moved, rows) if used is not question.rows}.values())
        w, b = question.margin.intercept.played(trace.w_best)
        p = question.p_set.centre if trace.p_best is None else trace.p_best
        yield Proposal(w, b, p, trace=trace, rounds=int(trace.t[-1]), passes=passes)

    def _resides(self, rows: Rows) -> bool:
        """Whether vectors over rows can stay on a device."""
        question, method = self.question, self.method
        held = question.play.checkpoint is not None or question.p_set.caps is not None
        return rows.storage.on_device and (method.name, method.form) in RESIDENT and not held

    def _run(self, p0: Array, moved: Rows, rows: Rows, R: float) -> Trace:
        """One method from p_0 until `_look` stops it. Checkpoints are of the method asked for."""
        question, budget, method = self.question, self.question.budget, self.method
        form: Any = method.on(rows, question.p_set, p0)
        noise = question.margin.robust
        if noise > 0 and not method.noisy:  # what it finds is measured under the noise
            ball = Ball(rows.d, question.margin.robust_norm, noise * rows.scale)
            form = replace(form, game=replace(form.game, noise=ball))
        checkpoint = question.play.checkpoint if method is question.play.method else None
        # what is resumed must not depend on the pace
        deadline = budget.time if checkpoint is None else Deadline(budget.deadline)
        if isinstance(form, DoubleOracle):  # a round of its may take long: it looks at the clock itself
            form = replace(form, deadline=deadline, tol=min(1e-4, max(1e-10, INNER * question.tol if noise == 0 else 0.0)))
        elif isinstance(form, ProximalNewton):
            form = replace(form, deadline=deadline)
        if checkpoint is not None:
            self._require(form)
        rounds = FEW_ROUNDS.get(method.name, MOST_ROUNDS) if budget.max_iter is None else budget.max_iter
        return dynamics.run(
            form,
            rounds,
            record=range(1, rounds + 1) if method.name in FEW_ROUNDS else dynamics.log_spaced(rounds),
            scale=R if R > 0 else 1.0,
            bound=method.guarantee.bound,
            time_limit=deadline.left,
            callback=self._look,
            name=method.name,
            form_name=method.form,
            checkpoint=checkpoint,
            notes=lambda: self._notes(moved, R),
        )

    # ---- when to stop -----------------------------------------------------------------------------------------------

    def _look(self, moment: Moment) -> bool:
        """At a recorded round: whether to stop."""
        question, evidence = self.question, self.evidence
        if question.sign_alone:
            return moment.lower > 0 or moment.t >= DOUBT or moment.upper <= VANISHED * question.radius
        if question.play.watch is not None and question.play.watch(moment):
            evidence.effort.stopped = True
            return True
        if self._outgrows(moment.p):
            return True
        if moment.lower > 0:
            return moment.gap <= SHARE * question.tol
        return self._vanishing(moment)

    def _vanishing(self, moment: Moment) -> bool:
        """Whether to stop where no margin is positive so far. Before that the finders of the sign are asked."""
        question, evidence = self.question, self.evidence
        small = moment.upper <= SHARE * question.tol * question.radius
        if question.margin.robust > 0:
            return moment.upper <= 0  # it falls to 0 where no plane stands the noise
        if question.margin.nu is not None:
            if not small:
                return False
            self._ask()
            return evidence.effort.stopped or not evidence.sign_decided or self.method.name not in FEW_ROUNDS
        if moment.t >= DOUBT and self._ask() and evidence.sign_decided:
            return evidence.witness is not None
        doubtful = self.doubted and not evidence.sign_decided
        return small if doubtful else moment.upper <= 0

    def _ask(self) -> bool:
        """Ask the finders of the sign, once; whether that was now."""
        if self.doubted:
            return False
        self.doubted = True
        self.doubt()
        return True

    def _outgrows(self, p: Array | None) -> bool:
        """Whether the working set has no room for the rows of positive weight."""
        question = self.question
        if p is None or not question.play.auto or self.method.name != "double_oracle":
            return False
        most = question.shared(_limit_in_hand)
        return most is not None and _free(p, question.p_set.caps) >= most

    # ---- where rows are played on -----------------------------------------------------------------------------------

    def _moved(self, before: Notes | None) -> tuple[Rows, float]:
        """The rows to play on, and their R: with a free intercept points that are far from 0 as a whole are moved there.

        γ*, w and p are the same for x_i - m, and R is smaller: products keep their digits, and the theorems promise more. A run
        that is resumed goes on with the rows it had, wherever they are stored now.
        """
        question, raw, radius = self.question, self.question.rows, self.question.radius
        if before is not None:
            played = self._around(self._mean()) if before.moved else raw
            raw.passes, played.passes = before.passes
            return played, before.scale
        fixed = not question.margin.intercept.grouped
        if fixed or radius == 0 or raw.storage.mapped or not may_be_copied(raw):
            return raw, radius
        mean = self._mean()
        if norm_of(mean, question.margin.norm) < FAR * radius:
            return raw, radius
        moved = self._around(mean)
        R = moved.radius(question.margin.norm)
        return (moved, R) if SMALLEST_RADIUS <= R <= radius else (raw, radius)

    def _mean(self) -> Array:
        """The mean of the points."""
        signs, radius = self.question.counted.signs, self.question.radius
        return self.question.rows.scaled(1 / radius).combine(signs / len(signs)) * radius

    def _around(self, mean: Array) -> Rows:
        """The rows of the points less their mean."""
        raw, signs = self.question.rows, self.question.counted.signs
        here = raw if raw.in_memory else raw.take(np.arange(raw.n))
        return of(here.dense() * signs[:, None] - mean, signs, threads=self.question.budget.threads)

    # ---- checkpoints ------------------------------------------------------------------------------------------------

    def _notes(self, moved: Rows, R: float) -> Notes:
        """What a checkpoint holds of this run, beside what the loop knows. That a witness was found is found out again."""
        question, evidence = self.question, self.evidence
        seconds = time.perf_counter() - question.budget.started + evidence.effort.earlier
        doubted = self.doubted and evidence.witness is None
        passes = question.rows.passes, moved.passes
        return Notes(moved is not question.rows, R, question.radius, passes, doubted, evidence.w, evidence.b or 0.0, seconds)

    def _before(self) -> Notes | None:
        """What the checkpoint says of the run that it was written by."""
        question, checkpoint = self.question, self.question.play.checkpoint
        notes: Notes | None = None if checkpoint is None else checkpoint.restored("notes", Notes)
        if notes is None:
            return None
        too_large = notes.moved and question.rows.n * question.rows.d > MOST_MOVED
        if abs(notes.radius - question.radius) > SAME_RADIUS * question.radius or too_large:
            raise InputError(f"{checkpoint.path} is the checkpoint of other data; pass another file, or remove it")
        self.doubted = notes.doubted
        if notes.w is not None:
            self.evidence.restore(notes.w, notes.b)
        self.evidence.effort.earlier = notes.seconds
        return notes

    def _require(self, form: dynamics.Form) -> None:
        """Refuse the checkpoint of another problem."""
        question, margin, problem = self.question, self.question.margin, self.question.problem
        facts: dict[str, Any] = {"task": "maximize_margin", "norm": margin.norm, "nu": margin.nu}
        facts |= {"intercept": margin.intercept.value, "method": self.method.name, "guarantee": self.method.guarantee.statement}
        facts |= {"classes": problem.classes, "labels": problem.signs, "weights": margin.weights, "start": question.play.start}
        question.play.checkpoint.require(fingerprint(question.rows, form, **facts))


def _played_norm(norm: float, d: int) -> float:
    """The norm that a p-norm method plays for: p = 2 log d for the largest one."""
    return 2 * math.log(max(d, 3)) if math.isinf(norm) else norm


def choose_method(method: Any, norm: float, d: int, seed: int) -> Method:
    """The method asked for, for this norm and so many columns; "auto" is the double oracle."""
    if isinstance(method, str):
        method = methods.get(("double_oracle" if norm >= 2 else "box_perceptron") if method == "auto" else method)
    if isinstance(method, methods.Entry) and method.factory is double_oracle:
        return double_oracle(p=norm, seed=seed)
    if isinstance(method, methods.Entry):
        # what is found for p = 2 log d is certified for norm inf
        method = method.for_norm(_played_norm(norm, d))
    if not isinstance(method, Method):
        raise InputError(f"method is {method!r:.60}; pass 'auto', a name such as 'nesterov', or a method with its options")
    if method.noisy:
        raise InputError(f"{method.name} plays for margins under noise; pass robust=… and method='auto'")
    if method.norm != norm and not (math.isinf(norm) and method.norm > 2):
        raise InputError(
            f"{method.name} plays for the norm {method.norm:g}, not {norm:g}; use method='auto', a p-norm method, or that norm"
        )
    return method
