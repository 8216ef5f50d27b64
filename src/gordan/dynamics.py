"""Protocol 1, and the one loop that drives it and every published form.

A *form* can play one round: `Protocol1` lets two learners move, a published form takes the step its authors printed. The
loop keeps the weighted sums (memory O(n + d), whatever the number of rounds) and measures at recorded rounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from gordan.arrays import Array, dot
from gordan.checkpoint import Checkpoint, compute, computed
from gordan.errors import InputError
from gordan.game import Game
from gordan.learners import Anchor, Hint, Learner
from gordan.trace import Moment, Trace


class Output(NamedTuple):
    """What a published form would return now: w = factor · w̄_t (factor None where no game is played), and min_p pᵀAw, where
    the round's pass has told it."""

    w: Array
    lowest: float | None
    factor: float | None


class Round(NamedTuple):
    """What one round did.

    α_t, w_t (None for a baseline), p_t, Aᵀp_t; A w_t where it was computed; the output of a published form, and whether it has
    nothing left to do. `p_bar` where the form keeps the average itself.
    """

    alpha: float
    w: Array | None
    p: Array
    combination: Array
    scores: Array | None = None
    output: Output | None = None
    p_bar: Array | None = None
    finished: bool = False


class Form(Protocol):
    """A way to play: the game, a starting state, and one round."""

    @property
    def game(self) -> Game:
        """The game that is played (for a baseline: whose bracket is measured)."""
        ...

    def start(self) -> Any:
        """The state before round 1."""
        ...

    def round(self, state: Any, t: int) -> tuple[Any, Round]:
        """Round t: the state after it and what was played."""
        ...


class Players(NamedTuple):
    """State of Protocol 1: both learners', and the last losses A w_{t-1} and -Aᵀp_{t-1}."""

    w: Any
    p: Any
    w_loss: Array
    p_loss: Array


@dataclass(frozen=True, eq=False)
class Protocol1:
    """Two learners, an order of play and a weight sequence.

    In round t the first player moves, the other sees its loss and moves; ℓ_t(p) = g(w_t, p), h_t(w) = -g(w, p_t), both with
    weight α_t. Before round 1: p_0, w_0 = 0, and the losses they cause.

    Implements: Protocol 1
    """

    game: Game
    w: Learner
    p: Learner
    first: Literal["w", "p"]
    weight: Callable[[int], float]

    def __post_init__(self) -> None:
        if self.first not in ("w", "p"):
            raise InputError(f"first is {self.first!r}; either 'w' or 'p' moves first")
        if (self.w if self.first == "w" else self.p).hint == "current":
            raise InputError(f"the {self.first}-player moves first, so it cannot know the current loss; use hint 'last'")

    def start(self) -> Players:
        """Both learners' states, and the losses of w_0 = 0 and p_0 (a pass, where the w-player wants a hint of it)."""
        rows = self.game.rows
        first_loss = -rows.combine(self.game.p0) if self.w.hint == "last" else np.zeros(rows.d)
        return Players(self.w.start(), self.p.start(), first_loss, np.zeros(rows.n))

    def round(self, state: Players, t: int) -> tuple[Players, Round]:
        """Round t."""
        rows, alpha = self.game.rows, self.weight(t)
        if not 0 < alpha < math.inf:
            raise InputError(f"the weight of round {t} is {alpha}; weights must be positive and finite")
        # the guesses that need no move of this round
        w_guess = self._guess(self.w.hint, state.w_loss, lambda: -rows.combine(_anchor(state.p).point))
        p_guess = self._guess(self.p.hint, state.p_loss, lambda: rows.scores(_anchor(state.w).point))
        # the first player moves, the second sees its loss and moves
        if self.first == "w":
            w = self.w.play(state.w, alpha, w_guess)
            scores = rows.scores(w)
            p = self.p.play(state.p, alpha, scores if self.p.hint == "current" else p_guess)
            combination = rows.combine(p)
        else:
            p = self.p.play(state.p, alpha, p_guess)
            combination = rows.combine(p)
            w = self.w.play(state.w, alpha, -combination if self.w.hint == "current" else w_guess)
            scores = rows.scores(w)
        # both learn
        after = Players(
            self.w.update(state.w, alpha, -combination, w),
            self.p.update(state.p, alpha, scores, p),
            -combination,
            scores,
        )
        return after, Round(alpha, w, p, combination, scores)

    @staticmethod
    def _guess(hint: Hint, last: Array, at_anchor: Callable[[], Array]) -> Array | None:
        if hint == "last":
            return last
        return at_anchor() if hint == "anchor" else None


def _anchor(state: Any) -> Anchor:
    if not isinstance(state, Anchor):
        raise InputError("the hint 'anchor' needs an opponent that plays mirror descent")
    return state


class Sums(NamedTuple):
    """The loop's memory: weighted sums over the rounds so far. A new one is made each round, so that an interrupt between any
    two instructions leaves the last complete round."""

    weight: float = 0.0
    w: Array | float = 0.0
    p: Array | float = 0.0
    combination: Array | float = 0.0
    scores: Array | float = 0.0
    value: float = 0.0
    penalty: float = 0.0

    def after(self, game: Game, played: Round) -> Sums:
        """The sums with one more played."""
        alpha = played.alpha
        combination = self.combination + alpha * played.combination
        p = self.p if played.p_bar is not None else self.p + alpha * played.p
        if played.w is None:
            return self._replace(weight=self.weight + alpha, p=p, combination=combination)
        penalty = game.penalty(played.w)
        return Sums(
            self.weight + alpha,
            self.w + alpha * played.w,
            p,
            combination,
            0.0 if played.scores is None else self.scores + alpha * played.scores,
            self.value + alpha * (dot(played.w, played.combination) - penalty),
            self.penalty + alpha * penalty,
        )


@dataclass(frozen=True)
class Best:
    """The bracket so far, and the vectors behind it. γ* ≥ 0 always: w = 0 shows it."""

    lower: float
    upper: float
    w: Array
    p: Array | None = None

    def with_lower(self, lower: float, w: Array) -> Best:
        """This or the better lower bound."""
        return replace(self, lower=lower, w=w) if lower > self.lower else self

    def with_upper(self, upper: float, p: Array) -> Best:
        """This or the better upper bound."""
        return replace(self, upper=upper, p=p) if upper < self.upper else self


class Snapshot(NamedTuple):
    """All that it takes to go on after round t as if nothing had happened; what a checkpoint holds.

    `stopped`: the callback has ended the run. `passes`, `seconds` were spent so far; `looked`, `looking` of them on looking.
    `computed` names what the form has worked out once and for all; `tol` is how exactly it solves a round, if it says so: a form
    that has finished may have more to do for a smaller one.
    """

    t: int
    state: Any
    sums: Sums
    played: Round | None
    best: Best
    moments: tuple[Moment, ...]
    stopped: bool
    passes: float
    looked: float
    seconds: float
    looking: float
    computed: tuple[str, ...]
    tol: float


def run(
    form: Form,
    rounds: int,
    *,
    record: Collection[int],
    scale: float = 1.0,
    bound: Callable[[int, float], float] | None = None,
    time_limit: float | None = None,
    callback: Callable[[Moment], object] | None = None,
    name: str = "custom",
    form_name: str = "game",
    checkpoint: Checkpoint | None = None,
    notes: Callable[[], Any] = lambda: None,
) -> Trace:
    """Play `form` for `rounds` rounds and measure at the rounds in `record` and at the last.

    The rows of the game are A/scale; margins are multiplied back. `bound(t, D)` is the theorem's bound on the game's gap.
    Stops early when the form has finished, when `callback(moment)` returns something true, when `time_limit` seconds have gone
    (by the clock on the wall), or on Ctrl-C; always after a complete round.

    With a `checkpoint` the run goes on from what the file holds, round for round the same as if it had not been stopped, and
    writes itself there from time to time and at its end, with what `notes()` was after that round.

    The regrets are exact: Σα_s g(w, p_s) = S g(w, p̄) is linear in p, so R^w = S·max_w g(w, p̄) - Σα_s g(w_s, p_s), and likewise
    R^p = Σα_s g(w_s, p_s) - min_p Σα_s g(w_s, p). By Theorem 1 and its dual twin (R^w + R^p)/S bounds dual - m.

    Implements: Theorem 1
    """
    if rounds < 1:
        raise InputError(f"rounds is {rounds}; play at least one")
    game, rows = form.game, form.game.rows
    begun = started = time.perf_counter()
    looking, looked, passes_before = 0.0, 0.0, rows.passes
    deadline = getattr(form, "deadline", math.inf)  # of a form that leaves a round unfinished when it has passed
    tol = float(getattr(form, "tol", 0.0))
    moments: tuple[Moment, ...] = ()
    best = Best(0.0, np.inf, np.zeros(rows.d))
    status = "rounds"
    t, sums, played = 0, Sums(), None
    kept: tuple[Snapshot, Any] | None = None

    def look(t: int, played: Round, sums: Sums) -> bool:
        """Measure after round t, show it to the callback, and keep the numbers; True if the callback wants to stop.

        What this costs is not charged to the method, and the vectors are not kept: memory stays O(n + d).
        """
        nonlocal best, looking, looked, moments
        begin, passes = time.perf_counter(), rows.passes - looked
        moment, best = _measure(game, played, sums, best, scale, t)
        looked = rows.passes - passes
        moment = replace(
            moment,
            bound=None if bound is None else bound(t, game.D),
            passes=passes - passes_before,
            seconds=begin - started - looking,
        )
        moments = (*moments, replace(moment, w=None, p=None, w_out=None, p_bar=None))
        stop = callback is not None and bool(callback(moment))
        looking += time.perf_counter() - begin
        return stop

    def keep(stopped: bool = False) -> None:
        """The run as it is now is what a checkpoint would hold; but not with a round that the form left unfinished."""
        nonlocal kept
        if checkpoint is not None and time.perf_counter() <= deadline:
            spent = (rows.passes - passes_before, looked, time.perf_counter() - started, looking)
            kept = Snapshot(t, state, sums, played, best, moments, stopped, *spent, computed(form), tol), notes()

    def save() -> None:
        """Write it; this is not charged to the method either."""
        nonlocal looking
        if checkpoint is not None and kept is not None:
            begin = time.perf_counter()
            checkpoint.write(run=kept[0], notes=kept[1])
            looking += time.perf_counter() - begin

    try:
        found = None if checkpoint is None else checkpoint.restored("run", Snapshot)
        if found is not None:
            compute(form, found.computed)
            t, state, sums, played, best, moments = found[:6]
            rows.passes = passes_before + found.passes
            looked, started, looking = found.looked, begun - found.seconds, found.looking
            if played is not None and played.finished and tol >= found.tol:
                status = "finished"
            elif played is not None and found.stopped and callback is not None and callback(_shown(moments[-1], played, sums)):
                status = "callback"
        else:
            state = form.start()
        keep(status == "callback")
        for t_next in range(t + 1, rounds + 1 if status == "rounds" else 0):
            state, played_next = form.round(state, t_next)
            t, sums, played = t_next, sums.after(game, played_next), played_next
            over_time = time_limit is not None and time.perf_counter() - begun >= time_limit
            planned = t in record or t == rounds or played.finished
            if not planned:  # a look that only the clock asks for is none of the run's
                keep()
            if planned or over_time:
                stop = look(t, played, sums)
                if planned:
                    keep(stop)
                if played.finished or over_time or stop:
                    status = "finished" if played.finished else "time-limit" if over_time else "callback"
                    break
            if checkpoint is not None and checkpoint.due:
                save()
        save()
        if played is not None and (not moments or moments[-1].t != t):  # all rounds asked for had been played before
            look(t, played, sums)
    except KeyboardInterrupt:
        save()
        if played is None:  # not one round was played: there is nothing to keep
            raise
        status = "interrupted"
        callback = None
        if not moments or moments[-1].t != t:
            look(t, played, sums)

    assert played is not None
    output = played.output
    return Trace.of(
        moments,
        method=name,
        form=form_name,
        norm=float(game.norm),
        n=rows.n,
        d=rows.d,
        scale=scale,
        status=status,
        w=sums.w / sums.weight if output is None else output.w,
        p=played.p,
        w_bar=None if played.w is None else sums.w / sums.weight,
        p_bar=_p_bar(played, sums),
        w_best=best.w,
        p_best=best.p,
    )


def _shown(moment: Moment, played: Round, sums: Sums) -> Moment:
    """A moment that was kept, with its vectors, as it was first shown to the callback."""
    w = sums.w / sums.weight if played.output is None else played.output.w
    return replace(moment, w=played.w, p=played.p, w_out=np.asarray(w), p_bar=_p_bar(played, sums))


def _p_bar(played: Round, sums: Sums) -> Array:
    return np.asarray(sums.p / sums.weight) if played.p_bar is None else played.p_bar


def _measure(game: Game, played: Round, sums: Sums, best: Best, scale: float, t: int) -> tuple[Moment, Best]:
    """Everything a moment holds but bound, passes and seconds; and the bracket with this round in it."""
    combination = np.asarray(sums.combination / sums.weight)
    p_bar = _p_bar(played, sums)
    w_bar = None if played.w is None else np.asarray(sums.w / sums.weight)
    if played.output is None:
        assert w_bar is not None
        output = Output(w_bar, None, 1.0)
    else:
        output = played.output
    lowest = output.lowest
    if lowest is None and played.scores is not None and output.factor is not None:
        lowest = output.factor * game.p_set.lowest(np.asarray(sums.scores / sums.weight))
    elif lowest is None:
        lowest = game.p_set.lowest(game.rows.scores(output.w))
    normalized = scale * game.lower(output.w, lowest)
    # any w and any p bound the margin: the averages, and this round's moves where their products are known
    best = best.with_lower(normalized, output.w)
    if played.w is not None and played.scores is not None:
        best = best.with_lower(scale * game.lower(played.w, game.p_set.lowest(played.scores)), played.w)
    best = best.with_upper(scale * game.upper(combination), p_bar)
    best = best.with_upper(scale * game.upper(played.combination), played.p)

    m = dual = regret_w = regret_p = None
    if w_bar is not None and output.factor is not None:
        lowest_bar = lowest / output.factor
        m, dual = game.m(w_bar, lowest_bar), game.dual(combination)
        regret_w = sums.weight * dual - sums.value
        regret_p = sums.value - (sums.weight * lowest_bar - sums.penalty)
    moment = Moment(
        t=t,
        margin=scale * lowest,
        normalized_margin=normalized,
        lower=best.lower,
        upper=best.upper,
        m=m,
        dual=dual,
        regret_w=regret_w,
        regret_p=regret_p,
        weight=sums.weight,
        bound=None,
        passes=0.0,
        seconds=0.0,
        w=played.w,
        p=played.p,
        w_out=output.w,
        p_bar=p_bar,
    )
    return moment, best
