"""The finders that play: a method of the registry, until the bracket in floats is narrow enough to be worth proving."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gordan import dynamics, methods
from gordan.arrays import Array
from gordan.checkpoint import checkpointed, fingerprint, method_facts
from gordan.deadlines import Deadline
from gordan.errors import InputError
from gordan.geometry import Ball
from gordan.geometry import norm as norm_of
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Cost, Proposal, Question
from gordan.memory import fits
from gordan.methods import Method
from gordan.methods.registry import Limits
from gordan.rows import MIN_RADIUS, Rows, of
from gordan.solve.cancelling import EXACT_AT_ONCE, cancelling
from gordan.solve.double_oracle import Pointless, double_oracle, game_multiplications, working_set_limit
from gordan.solve.proximal import MAX_HESSIAN_COLUMNS, proximal_newton
from gordan.solve.restricted import TUNING as GAMES
from gordan.statuses import Ending
from gordan.trace import Moment, Trace


@dataclass(frozen=True)
class Tuning:
    """Constants of the finders that play; `benchmarks/compare.py` and `order.py` time what they decide."""

    # Rounds without a positive margin after which the finders of the sign are asked whether there can be one.
    rounds_before_doubt: int = 4
    # The sign is in doubt where ‖Aᵀp‖ is at most this share of R: a play for the sign ends, in others the finders of the sign are
    # asked.
    upper_in_doubt: float = 1e-6
    # The float bracket is brought to this share of the tolerance, since the certified one is a little wider.
    bracket_share: float = 0.9
    # The round limit of methods that do not declare one.
    max_rounds: int = 100_000
    # The methods that go on, for norm 2 and for others, where the rows need a larger working set than fits.
    fallback_methods: tuple[str, str] = ("accelerated_perceptron", "accelerated_p_norm_perceptron")
    # With a free intercept the points are centred if the norm of their mean is at least this share of R.
    far_from_zero: float = 0.9
    # A centred copy is made of at most this many entries; this many copies exist at a time.
    max_centred_entries: int = 1 << 24
    copies: int = 4
    # The largest relative difference of R between two storages of the same rows: one may be a device that adds in float32.
    same_radius: float = 1e-3


TUNING = Tuning()

DecideSign = Callable[[], None]


@checkpointed("maximize_margin.notes")
class Notes(NamedTuple):
    """What a run needs to know of itself when it is resumed.

    That is whether the points were centred (`moved`), the R that they were divided by (`scale`) and that of the points as they
    are (`radius`), the passes before the first round, whether the finders of the sign were asked (`doubted`), the separator that
    they found, and the seconds spent.
    """

    moved: bool
    scale: float
    radius: float
    passes: tuple[float, float]
    doubted: bool
    w: Array | None
    b: float
    seconds: float


def by_playing(question: Question, evidence: Evidence, decide_sign: DecideSign) -> Iterator[Proposal]:
    """Propose the best w and p of the method that was chosen, from the best p so far or from `start`.

    Where only the sign is asked for, a few rounds of the double oracle are played.
    """
    if question.sign_alone:
        yield from _Playing(question, evidence, decide_sign, double_oracle(seed=question.budget.seed)).proposals(None)
    else:
        yield from _Playing(question, evidence, decide_sign, question.play.method).proposals(_start(question, evidence))


def by_margin_without_noise(question: Question, evidence: Evidence, decide_sign: DecideSign) -> Iterator[Proposal]:
    """Propose the w and p of the margin without noise, by the double oracle.

    Where no plane withstands the noise, this p often proves it, and always if the data is not separable.
    """
    yield from _Playing(question, evidence, decide_sign, double_oracle(seed=question.budget.seed)).proposals(None)


def by_newton(question: Question, evidence: Evidence, decide_sign: DecideSign) -> Iterator[Proposal]:
    """Propose the w and p of Newton's method on the game with a proximal term, which needs the rows in passes only."""
    yield from _Playing(question, evidence, decide_sign, proximal_newton()).proposals(_start(question, evidence))


def by_accelerated_game(question: Question, evidence: Evidence, decide_sign: DecideSign) -> Iterator[Proposal]:
    """Propose the w and p of an accelerated method, which costs a pass a round, where the working set does not fit in memory."""
    margin, p_set = question.margin, question.p_set
    method = methods.get(TUNING.fallback_methods[margin.norm > 2]).for_norm(played_norm(margin.norm, question.problem.X.d))
    if margin.robust > 0:
        method = methods.robust_perceptron(noise=margin.robust, noise_norm=margin.robust_norm)
    found, centre = _best_p(question, evidence), p_set.centre
    found = centre if found is None else found
    yield from _Playing(question, evidence, decide_sign, method).proposals(0.5 * found + 0.5 * centre)


def outgrown(question: Question, evidence: Evidence) -> bool:
    """Return whether more rows than the working set can hold have a weight that is neither 0 nor at its cap."""
    p = _best_p(question, evidence)
    return p is not None and question.budget.max_iter is None and _has_too_many_free_rows(question, p)


def _best_p(question: Question, evidence: Evidence) -> Array | None:
    """Return the best p of the last play on the host, if there was one."""
    effort = evidence.effort
    if effort.trace is None:
        return None
    effort.trace = effort.trace.fetched(question.rows.to_host)
    return effort.trace.p_best


def _has_too_many_free_rows(question: Question, p: Array) -> bool:
    limit, caps = question.shared(_working_set_limit), question.p_set.caps
    free = p > 0 if caps is None else (p > 0) & (p < caps)
    return limit is not None and int(np.count_nonzero(free)) >= limit


def _working_set_limit(question: Question) -> int | None:
    return working_set_limit(question.rows, len(question.p_set.members))


def many_at_caps(question: Question) -> bool:
    """Return whether more rows are at their caps than a working set can hold: passes show sooner which these are."""
    nu, rows = question.margin.nu, question.rows
    return nu is not None and nu * rows.n > GAMES.max_working_set and rows.in_memory and rows.d <= MAX_HESSIAN_COLUMNS


def may_be_copied(rows: Rows) -> bool:
    """Return whether a dense, centred copy of these rows may be made."""
    cells = rows.n * rows.d
    return cells <= TUNING.max_centred_entries and rows.in_memory and fits(8 * TUNING.copies * cells)


def _start(question: Question, evidence: Evidence) -> Array | None:
    """Return the p to start from, with a little weight on every row: a start must be positive."""
    # under noise the p of the margin without it is a poor start, which doubles the rounds
    unplayed = evidence.effort.trace is None or question.play.method.noisy
    found = question.play.start if unplayed else _best_p(question, evidence)
    if found is None:
        return None
    return 0.99 * question.p_set.project(found) + 0.01 * question.p_set.centre


@dataclass(eq=False)
class _Playing:
    """One run of a method for one question.

    `doubted` says whether the finders of the sign have been asked, and `work` counts the multiplications since then. `stopped`
    says whether the user's callback has ended the run.
    """

    question: Question
    evidence: Evidence
    decide_sign: DecideSign
    method: Method
    doubted: bool = False
    work: float = 0.0
    stopped: bool = False

    def proposals(self, start: Array | None) -> Iterator[Proposal]:
        """Propose the best w and the best p at the end of the run."""
        question = self.question
        before = self._restored_notes()
        moved, R = self._played_rows(before)
        scaled = moved.scaled(1 / R) if R > 0 else moved
        rows = self.method.placed(scaled, question.p_set, checkpoint=question.play.checkpoint is not None)
        try:
            trace = self._run(None if start is None else question.p_set.start(start), moved, rows, R)
        except KeyboardInterrupt:  # before the end of the first round, when there is only p_0
            yield Proposal(p=question.p_set.centre, stopped=True)
            return
        except Pointless:
            return
        passes = sum(used.passes for used in {id(used): used for used in (moved, rows) if used is not question.rows}.values())
        stopped = self.stopped or trace.status == Ending.INTERRUPTED
        found = Proposal(cost=Cost(trace, int(trace.t[-1]), passes), stopped=stopped)
        if self.evidence.witness is None:  # otherwise nothing is left to prove
            w, b = question.margin.intercept.played(trace.w_best)
            found = replace(found, w=w, b=b, p=question.p_set.centre if trace.p_best is None else trace.p_best)
        yield found

    def _run(self, p0: Array | None, moved: Rows, rows: Rows, R: float) -> Trace:
        """Run the method from p_0 until `_look` stops it. Only the method that was asked for writes checkpoints."""
        question, budget, method = self.question, self.question.budget, self.method
        form: Any = method.on(rows, question.p_set, p0)
        noise = question.margin.robust
        if noise > 0 and not method.noisy:  # the method ignores the noise, but its bracket is measured under it
            ball = Ball(rows.d, question.margin.robust_norm, noise * rows.scale)
            form = replace(form, game=replace(form.game, noise=ball))
        checkpoint = question.play.checkpoint if method is question.play.method else None
        # a run with a checkpoint must not depend on the pace, which may be another when it is resumed
        deadline = budget.time if checkpoint is None else Deadline(budget.deadline)
        doubt = self._is_pointless if self._may_be_left_out else None
        games = method.games
        if games is not None:
            form = games.within(form, Limits(deadline, question.tol if noise == 0 else 0.0, doubt))
        if checkpoint is not None:
            self._require_same_problem(form)
        most = TUNING.max_rounds if games is None else games.most_rounds
        rounds = most if budget.max_iter is None else budget.max_iter
        return dynamics.run(
            form,
            rounds,
            record=dynamics.log_spaced(rounds) if games is None else range(1, rounds + 1),
            scale=R if R > 0 else 1.0,
            bound=method.guarantee.bound,
            time_limit=deadline.left,
            callback=self._look,
            name=method.name,
            form_name=method.form,
            checkpoint=checkpoint,
            notes=lambda: self._notes(moved, R),
            # with caps only the user's callback, and the limit of a working set, need the p of a round
            fetch=question.play.watch is not None or question.margin.nu is None or method.working_set,
        )

    # ---- when to stop ---------------------------------------------------------------------------------------------------

    def _look(self, moment: Moment) -> bool:
        """Return whether to stop, at a recorded round."""
        question = self.question
        if question.sign_alone:
            vanished = self._vanished(moment)
            if vanished:
                self._rows_cancel(moment.p)  # other finders would begin anew
            return vanished or moment.lower > 0 or moment.t >= TUNING.rounds_before_doubt
        if question.play.watch is not None and question.play.watch(moment):
            self.stopped = True
            return True
        if moment.lower > 0 and moment.gap <= TUNING.bracket_share * question.tol:
            return True
        bounded = question.play.auto and self.method.working_set
        if moment.p is not None and bounded and _has_too_many_free_rows(question, moment.p):
            return True
        return moment.lower <= 0 and self._vanishes(moment)

    def _vanished(self, moment: Moment) -> bool:
        """Return whether the upper bound is so small that the rows may well cancel."""
        return moment.upper <= TUNING.upper_in_doubt * self.question.radius

    def _vanishes(self, moment: Moment) -> bool:
        """Return whether to stop where no margin is positive so far. The finders of the sign are asked before."""
        question, evidence = self.question, self.evidence
        small = moment.upper <= TUNING.bracket_share * question.tol * question.radius
        if question.margin.robust > 0:
            return moment.upper <= 0  # it falls to 0 where no plane withstands the noise
        if question.margin.nu is not None:
            if not small:
                return False
            self._ask_once()
            return evidence.effort.stopped or not evidence.sign_decided or self.method.games is None
        late, vanished = moment.t >= TUNING.rounds_before_doubt, self._vanished(moment)
        if vanished and not self.doubted and self._rows_cancel(moment.p):
            return True
        if (late or vanished) and self._ask_once() and evidence.sign_decided:
            return evidence.witness is not None
        if not (late and self.doubted and not evidence.sign_decided):
            return moment.upper <= 0
        self.work += self._work_of_round(moment.p)
        return small or self.work > question.play.work

    def _work_of_round(self, p: Array | None) -> float:
        """Return how many multiplications a round takes, about."""
        rows = self.question.rows
        return 2.0 * rows.entries + game_multiplications(rows, 0 if p is None else int(np.count_nonzero(p)))

    @property
    def _may_be_left_out(self) -> bool:
        """Whether a hard margin is asked for, of which nobody watches the play."""
        play, margin = self.question.play, self.question.margin
        hard = margin.nu is None and margin.robust == 0 and margin.norm == 2 and not self.question.sign_alone
        return hard and play.auto and play.watch is None and play.checkpoint is None

    def _is_pointless(self, multiplications: float) -> bool:
        """Return whether not to play: the finders of the sign prove that no margin counts, or leave it open for too much work."""
        question, evidence = self.question, self.evidence
        self._ask_once()
        if evidence.sign_decided or evidence.effort.stopped:
            return evidence.witness is not None or evidence.effort.stopped
        return evidence.upper <= TUNING.bracket_share * question.tol * question.radius or multiplications > question.play.work

    def _rows_cancel(self, p: Array | None) -> bool:
        """Return whether the rows of p are proved to cancel, by exact weights if these take little time."""
        if p is None:
            return False
        question, support = self.question, np.flatnonzero(p)
        k = question.margin.intercept.columns(question.counted.X.d)
        if not 0 < len(support) <= k + 1 or len(support) * k * k > EXACT_AT_ONCE:
            return False
        return any(map(self.evidence.offer, cancelling(question, support, p[support])))

    def _ask_once(self) -> bool:
        """Ask the finders of the sign unless they were asked before; return whether they were asked now."""
        if self.doubted:
            return False
        self.doubted = True
        self.decide_sign()
        return True

    # ---- the rows that are played on ------------------------------------------------------------------------------------

    def _played_rows(self, before: Notes | None) -> tuple[Rows, float]:
        """Return the rows to play on, and their R: with a free intercept points that are far from 0 as a whole are centred.

        γ*, w and p are the same for x_i - m, and R is smaller: products keep their digits, and the theorems promise more. A run
        that is resumed goes on with the rows it had, wherever they are stored now.
        """
        question, raw, radius = self.question, self.question.rows, self.question.radius
        if before is not None:
            played = self._centred(self._mean()) if before.moved else raw
            raw.passes, played.passes = before.passes
            return played, before.scale
        fixed = not question.margin.intercept.grouped
        if fixed or radius == 0 or raw.storage.mapped or not may_be_copied(raw):
            return raw, radius
        mean = self._mean()
        if norm_of(mean, question.margin.norm) < TUNING.far_from_zero * radius:
            return raw, radius
        moved = self._centred(mean)
        R = moved.radius(question.margin.norm)
        return (moved, R) if MIN_RADIUS <= R <= radius else (raw, radius)

    def _mean(self) -> Array:
        """Return the mean of the points."""
        signs, radius = self.question.counted.signs, self.question.radius
        return self.question.rows.scaled(1 / radius).combine(signs / len(signs)) * radius

    def _centred(self, mean: Array) -> Rows:
        """Return the rows of the points minus their mean."""
        raw, signs = self.question.rows, self.question.counted.signs
        here = raw if raw.in_memory else raw.take(np.arange(raw.n))
        return of(here.dense() * signs[:, None] - mean, signs, threads=self.question.budget.threads)

    # ---- checkpoints ----------------------------------------------------------------------------------------------------

    def _notes(self, moved: Rows, R: float) -> Notes:
        """Return what a checkpoint holds of this run, beside what the loop knows. A witness is not stored but found again."""
        question, evidence = self.question, self.evidence
        seconds = time.perf_counter() - question.budget.started + evidence.effort.earlier
        doubted = self.doubted and evidence.witness is None
        passes = question.rows.passes, moved.passes
        return Notes(moved is not question.rows, R, question.radius, passes, doubted, evidence.w, evidence.b or 0.0, seconds)

    def _restored_notes(self) -> Notes | None:
        """Return what the checkpoint says of the run that wrote it, and restore it; raise InputError if it is of other data."""
        question, checkpoint = self.question, self.question.play.checkpoint
        notes: Notes | None = None if checkpoint is None else checkpoint.restored("notes", Notes)
        if notes is None:
            return None
        too_large = notes.moved and question.rows.n * question.rows.d > TUNING.max_centred_entries
        if abs(notes.radius - question.radius) > TUNING.same_radius * question.radius or too_large:
            raise InputError(f"{checkpoint.path} is the checkpoint of other data; pass another file, or remove it")
        self.doubted = notes.doubted
        if notes.w is not None:
            self.evidence.restore(notes.w, notes.b)
        self.evidence.effort.earlier = notes.seconds
        return notes

    def _require_same_problem(self, form: dynamics.Form) -> None:
        """Refuse the checkpoint of another problem."""
        question, margin, problem = self.question, self.question.margin, self.question.problem
        facts: dict[str, Any] = {"task": "maximize_margin", "norm": margin.norm, "nu": margin.nu}
        facts |= {"intercept": margin.intercept.value, **method_facts(self.method, form)}
        facts |= {"classes": problem.classes, "labels": problem.signs, "weights": margin.weights, "start": question.play.start}
        question.play.checkpoint.require(fingerprint(question.rows, **facts))


def played_norm(norm: float, d: int) -> float:
    """Return the norm that a p-norm method plays for: p = 2 log d stands for the sup norm."""
    return 2 * math.log(max(d, 3)) if math.isinf(norm) else norm
