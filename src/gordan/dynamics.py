"""Protocol 1, and the one loop that drives it and every published form.

A *form* can play one round: `Protocol1` lets two learners move, a published form takes the step its authors printed. The
loop keeps the weighted sums (memory O(n + d), whatever the number of rounds) and measures at recorded rounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, cast

import numpy as np

from gordan.arrays import Array, dot, in_float64, namespace, read_only
from gordan.checkpoint import Checkpoint, checkpointed, compute, computed, require_storable
from gordan.errors import InputError
from gordan.game import Game
from gordan.learners import Anchor, Hint, Learner
from gordan.statuses import Ending
from gordan.trace import Moment, Trace


@checkpointed("run.output")
class Output(NamedTuple):
    """What a published form would return now.

    It is w = factor · w̄_t (factor is None if no game is played), and `lowest` = min_p pᵀAw if the pass of the round gave it.
    """

    w: Array
    lowest: float | None
    factor: float | None


@checkpointed("run.round")
class Round(NamedTuple):
    """The result of one round.

    The fields are α_t, w_t (None for a baseline), p_t and Aᵀp_t; A w_t if it was computed; the output of a published form; the
    average of p if the form keeps it itself; and whether the form has finished.
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
        """Return the state before round 1."""
        ...

    def round(self, state: Any, t: int) -> tuple[Any, Round]:
        """Play round t: return the state after it, and what was played."""
        ...


@checkpointed("run.players")
class Players(NamedTuple):
    """The state of Protocol 1: the states of both learners, and the last losses A w_{t-1} and -Aᵀp_{t-1}."""

    w: Any
    p: Any
    w_loss: Array
    p_loss: Array


def unit_weight(t: int) -> float:
    """Return the weight of round t where all rounds count the same."""
    return 1.0


@dataclass(frozen=True, eq=False)
class Protocol1:
    """Protocol 1: two learners, an order of play and a weight sequence.

    In round t the first player moves, the other sees its loss and moves; ℓ_t(p) = g(w_t, p), h_t(w) = -g(w, p_t), both with
    weight α_t. Before round 1: p_0, w_0 = 0, and their losses. `bound(t)` bounds the gap if the theorem depends on more of the
    rows than D; a published form may have one, too.

    Implements: Protocol 1
    """

    game: Game
    w: Learner
    p: Learner
    first: Literal["w", "p"]
    weight: Callable[[int], float]
    bound: Callable[[int], float] | None = None

    def __post_init__(self) -> None:
        if self.first not in ("w", "p"):
            raise InputError(f"first is {self.first!r}; either 'w' or 'p' moves first")
        if (self.w if self.first == "w" else self.p).hint == "current":
            raise InputError(f"the {self.first}-player moves first, so it cannot know the current loss; use hint 'last'")

    def start(self) -> Players:
        """Return the states of both learners, and the losses of w_0 = 0 and p_0 (a pass, if the w-player uses it as a hint)."""
        rows = self.game.rows
        first_loss = -rows.combine(self.game.p0) if self.w.hint == "last" else np.zeros(rows.d)
        return Players(self.w.start(), self.p.start(), first_loss, namespace(self.game.p0).zeros_like(self.game.p0))

    def round(self, state: Players, t: int) -> tuple[Players, Round]:
        """Play round t: return the state after it, and what was played."""
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


@checkpointed("run.sums")
class Sums(NamedTuple):
    """The memory of the loop: weighted sums over the rounds so far.

    A new object is made in each round, so that an interrupt at any point leaves the last complete round.
    """

    weight: float = 0.0
    w: Array | float = 0.0
    p: Array | float = 0.0
    combination: Array | float = 0.0
    scores: Array | float = 0.0
    value: float = 0.0
    penalty: float = 0.0
    paid: float = 0.0

    def after(self, game: Game, played: Round) -> Sums:
        """Return the sums after one more round."""
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
            0.0 if played.scores is None else self.scores + alpha * in_float64(played.scores),
            self.value + alpha * (dot(played.w, played.combination) - penalty),
            self.penalty + alpha * penalty,
            self.paid + alpha * game.paid(played.p),
        )


@checkpointed("run.best")
@dataclass(frozen=True)
class Best:
    """The bracket so far, and the vectors that attain it; γ* ≥ 0 always, because w = 0 has margin 0."""

    lower: float
    upper: float
    w: Array
    p: Array | None = None

    def with_lower(self, lower: float, w: Array) -> Best:
        """Return this bracket, or one with the new lower bound if it is better."""
        return replace(self, lower=lower, w=w) if lower > self.lower else self

    def with_upper(self, upper: float, p: Array) -> Best:
        """Return this bracket, or one with the new upper bound if it is better."""
        return replace(self, upper=upper, p=p) if upper < self.upper else self


@checkpointed("run.after")
class After(NamedTuple):
    """The position of a run after round t; one object, so that an interrupt sees either all of a round or nothing of it."""

    t: int
    state: Any
    sums: Sums
    played: Round | None


@checkpointed("run.spent")
class Spent(NamedTuple):
    """The passes and seconds so far, of which `looked` passes and `looking` seconds were spent on measuring."""

    passes: float
    looked: float
    seconds: float
    looking: float


@checkpointed("run.snapshot")
class Snapshot(NamedTuple):
    """Everything that is needed to resume a run as if it had not been stopped; this is what a checkpoint holds.

    `stopped` means that the callback ended the run. `computed` names the cached properties of the form; `tol` is its tolerance,
    if it has one: a form that has finished may have more to do for a smaller tolerance.
    """

    now: After
    best: Best
    moments: tuple[Moment, ...]
    stopped: bool
    spent: Spent
    computed: tuple[str, ...]
    tol: float


@dataclass(eq=False)
class _Run:
    """A run in progress: its position, what was measured, and which passes and seconds are charged to the method."""

    form: Form
    scale: float
    bound: Callable[[int, float], float] | None
    callback: Callable[[Moment], object] | None
    checkpoint: Checkpoint | None
    notes: Callable[[], Any]
    fetch: bool
    now: After = field(init=False)
    best: Best = field(init=False)
    moments: tuple[Moment, ...] = ()
    kept: tuple[Snapshot, Any] | None = None
    looked: float = 0.0
    looking: float = 0.0

    def __post_init__(self) -> None:
        self.rows = self.form.game.rows
        self.begun = self.started = time.perf_counter()
        self.passes_before = self.rows.passes
        self.now, self.best = After(0, None, Sums(), None), Best(self.form.game.least, np.inf, np.zeros(self.rows.d))
        self.tol = float(getattr(self.form, "tol", 0.0))

    def begin(self) -> Ending | None:
        """Start at round 0 or from the checkpoint; return why the run had ended, or None if there are rounds to play."""
        found = None if self.checkpoint is None else self.checkpoint.restored("run", Snapshot)
        ended = None
        if found is None:
            self.now = self.now._replace(state=self.form.start())
            if self.checkpoint is not None:
                require_storable(self.now.state)
        else:
            compute(self.form, found.computed)
            self.now, self.best, self.moments, spent = found.now, found.best, found.moments, found.spent
            self.rows.passes = self.passes_before + spent.passes
            self.looked, self.started, self.looking = spent.looked, self.begun - spent.seconds, spent.looking
            played = self.now.played
            if played is not None and played.finished and self.tol >= found.tol:
                ended = Ending.FINISHED
            elif played is not None and found.stopped and self.callback is not None and self.callback(self._shown()):
                ended = Ending.CALLBACK
        self.keep(ended is Ending.CALLBACK)
        return ended

    def round(self, t: int) -> Round:
        """Play round t and add the result to the sums."""
        state, played = self.form.round(self.now.state, t)
        self.now = After(t, state, self.now.sums.after(self.form.game, played), played)
        return played

    def look(self) -> bool:
        """Measure, at most once a round, record the numbers and call the callback; return True if it wants to stop.

        The cost of this is not charged to the method, and the vectors are not kept: memory stays O(n + d).
        """
        if self.moments and self.moments[-1].t == self.now.t:
            return False
        begin, passes = time.perf_counter(), self.rows.passes - self.looked
        with_p = self.fetch and self.callback is not None
        moment, self.best = _measure(self.form.game, self.now, self.best, self.scale, with_p=with_p)
        self.looked = self.rows.passes - passes
        moment = replace(
            moment,
            bound=self._promised(moment.t),
            passes=passes - self.passes_before,
            seconds=begin - self.started - self.looking,
        )
        self.moments = (*self.moments, replace(moment, w=None, p=None, w_out=None, p_bar=None))
        stop = self.callback is not None and bool(self.callback(moment))
        self.looking += time.perf_counter() - begin
        return stop

    def _promised(self, t: int) -> float | None:
        """Return the bound of the theorem after t rounds, from the form, which knows its rows, or from the method."""
        own = getattr(self.form, "bound", None)
        if own is not None:
            return float(own(t))
        return None if self.bound is None else self.bound(t, self.form.game.D)

    def advance(self, t: int, planned: bool, time_limit: float) -> Ending | None:
        """Play round t, measure if that is planned or the form has finished, and return why the run ends here, if it does."""
        played = self.round(t)
        over_time = time.perf_counter() - self.begun >= time_limit
        stop = (planned or played.finished) and self.look()
        self.keep(stop)
        if played.finished:
            return Ending.FINISHED
        return Ending.TIME_LIMIT if over_time else Ending.CALLBACK if stop else None

    def keep(self, stopped: bool = False) -> None:
        """Make the run as it is now the content of the checkpoint, unless the form's deadline passed in the middle of a round."""
        deadline = getattr(self.form, "deadline", None)
        if self.checkpoint is not None and not (deadline is not None and deadline.passed):
            seconds = time.perf_counter() - self.started
            spent = Spent(self.rows.passes - self.passes_before, self.looked, seconds, self.looking)
            held = Snapshot(self.now, self.best, self.moments, stopped, spent, computed(self.form), self.tol)
            self.kept = (held, self.notes())

    def save(self) -> None:
        """Write the checkpoint; this is not charged to the method either."""
        if self.checkpoint is not None and self.kept is not None:
            begin = time.perf_counter()
            self.checkpoint.write(run=self.kept[0], notes=self.kept[1])
            self.looking += time.perf_counter() - begin

    def _shown(self) -> Moment:
        """Return the last moment with its vectors, as the callback first saw it."""
        played, sums = self.now.played, self.now.sums
        assert played is not None
        w = sums.w / sums.weight if played.output is None else played.output.w
        shown = {"w": played.w, "p": played.p, "w_out": w, "p_bar": _p_bar(played, sums)}
        return replace(self.moments[-1], **{name: read_only(x) for name, x in shown.items()})


def run(
    form: Form,
    rounds: int,
    *,
    record: Collection[int],
    scale: float = 1.0,
    bound: Callable[[int, float], float] | None = None,
    time_limit: float = math.inf,
    callback: Callable[[Moment], object] | None = None,
    name: str = "custom",
    form_name: str = "game",
    checkpoint: Checkpoint | None = None,
    notes: Callable[[], Any] = lambda: None,
    fetch: bool = True,
) -> Trace:
    """Play `form` for `rounds` rounds and measure at the rounds in `record` and at the last.

    The rows of the game are A/scale; margins are multiplied back. `bound(t, D)` is the theorem's bound on the game's gap. The run
    stops early when the form has finished, when `callback(moment)` returns True, when `time_limit` seconds of wall-clock time
    have passed, or on Ctrl-C; always after a complete round.

    With a `checkpoint`, the run resumes from the file, round for round the same as if it had not been stopped, and is written
    there from time to time and at its end, together with the value of `notes()` after that round.

    Vectors over rows that are elsewhere are copied to the host for the callback and the trace. Without `fetch`, a `Moment` has
    none, and those of the trace stay where they are (`Trace.fetched`).

    The regrets are exact: Σα_s g(w, p_s) = S g(w, p̄) is linear in p, so R^w = S·max_w g(w, p̄) - Σα_s g(w_s, p_s), and likewise
    R^p = Σα_s g(w_s, p_s) - min_p Σα_s g(w_s, p). By Theorem 1 and its dual twin (R^w + R^p)/S bounds dual - m. What p pays for a
    loss is convex and not linear: Σα_s ψ(p_s) then takes the place of Sψ(p̄) in R^w, which can only be less.

    Implements: Theorem 1
    """
    if rounds < 1:
        raise InputError(f"rounds is {rounds}; play at least one")
    under_way = _Run(form, scale, bound, callback, checkpoint, notes, fetch)
    try:
        ended = under_way.begin()
        for t in range(under_way.now.t + 1, rounds + 1 if ended is None else 0):
            ended = under_way.advance(t, t in record or t == rounds, time_limit)
            if ended is not None:
                break
            if checkpoint is not None and checkpoint.due:
                under_way.save()
        under_way.save()
        under_way.look()  # after saving: a round that was not planned to be the last is not measured in a resumed run
    except KeyboardInterrupt:
        under_way.save()
        if under_way.now.played is None:  # no round was played: there is nothing to return
            raise
        ended = Ending.INTERRUPTED
        under_way.callback = None
        under_way.look()
    trace = _trace(under_way, ended or Ending.ROUNDS, name, form_name)
    return trace.fetched(under_way.rows.to_host) if fetch else trace


def _trace(done: _Run, status: Ending, name: str, form_name: str) -> Trace:
    """Return the trace of a run."""
    game, (_, _, sums, played) = done.form.game, done.now
    assert played is not None
    return Trace.of(
        done.moments,
        method=name,
        form=form_name,
        norm=float(game.norm),
        n=game.rows.n,
        d=game.rows.d,
        scale=done.scale,
        status=status,
        w=sums.w / sums.weight if played.output is None else played.output.w,
        p=played.p,
        w_bar=None if played.w is None else sums.w / sums.weight,
        p_bar=_p_bar(played, sums),
        w_best=done.best.w,
        p_best=done.best.p,
    )


def _p_bar(played: Round, sums: Sums) -> Any:
    return sums.p / sums.weight if played.p_bar is None else played.p_bar


def _measure(game: Game, now: After, best: Best, scale: float, *, with_p: bool) -> tuple[Moment, Best]:
    """Return a moment without bound, passes and seconds, and the bracket updated by this round.

    The vectors over rows, which may have to be copied from a device, are in it if it is `with_p`.
    """
    t, _, sums, played = now
    assert played is not None
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
        lowest = output.factor * game.p_set.lowest(cast(Array, sums.scores / sums.weight))
    elif lowest is None:
        lowest = game.p_set.lowest(game.rows.scores(output.w))
    normalized = scale * game.lower(output.w, lowest)
    # any w and any p bound the margin: the averages, and this round's moves where their products are known
    best = best.with_lower(normalized, output.w)
    if played.w is not None and played.scores is not None:
        best = best.with_lower(scale * game.lower(played.w, game.p_set.lowest(played.scores)), played.w)
    best = best.with_upper(scale * game.upper(combination, p_bar), p_bar)
    best = best.with_upper(scale * game.upper(played.combination, played.p), played.p)

    m = dual = regret_w = regret_p = None
    if w_bar is not None and output.factor is not None:
        lowest_bar = lowest / output.factor
        m, dual = game.m(w_bar, lowest_bar), game.dual(combination, p_bar)
        regret_w = sums.weight * (dual - game.paid(p_bar)) - sums.value
        regret_p = (sums.value + sums.paid) - (sums.weight * lowest_bar - sums.penalty)
    lower, upper = game.shown(best.lower, best.upper)
    moment = Moment(
        t=t,
        margin=scale * lowest,
        normalized_margin=normalized,
        lower=lower,
        upper=upper,
        m=m,
        dual=dual,
        regret_w=regret_w,
        regret_p=regret_p,
        weight=sums.weight,
        w=read_only(played.w),
        p=read_only(_on_host(game, played.p)) if with_p else None,
        w_out=read_only(output.w),
        p_bar=read_only(_on_host(game, p_bar)) if with_p else None,
    )
    return moment, best


def _on_host(game: Game, x: Any) -> Any:
    """Return a vector over rows on the host, also if the rows are `resident`."""
    return x if x is None or isinstance(x, np.ndarray) else game.rows.to_host(x)


def log_spaced(rounds: int) -> set[int]:
    """Return about 20 rounds per decade, including the first and the last."""
    count = 1 + math.ceil(20 * math.log10(rounds)) if rounds > 1 else 1
    return {int(t) for t in np.unique(np.geomspace(1, rounds, count).round())}
