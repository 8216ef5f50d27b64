"""How the margin is found: a method plays until the bracket in floats is narrow enough, and what it found is proved."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gordan import dynamics, methods
from gordan.arrays import Array, seed, vector
from gordan.certificates import Certificate
from gordan.certificates.margins import Margin
from gordan.certificates.matrix import CLAIM, Matrix
from gordan.certificates.problem import Problem
from gordan.certificates.verify import check
from gordan.checkpoint import Checkpoint, fingerprint
from gordan.errors import InputError
from gordan.geometry import Simplex, dual_exponent
from gordan.geometry import norm as norm_of
from gordan.methods import Method
from gordan.rows import Rows, of, stored
from gordan.rows.rows import SMALLEST_RADIUS
from gordan.rows.storage import SecondMoments, Storage
from gordan.solve.double_oracle import DoubleOracle, double_oracle
from gordan.solve.proximal import MOST_COLUMNS, ProximalNewton, proximal_newton
from gordan.solve.screening import level
from gordan.trace import Moment, Trace
from gordan.verdicts.result import MarginResult, Status
from gordan.verdicts.separate import Trial
from gordan.verdicts.telling import Witness
from gordan.verdicts.weights import caps_of, under_caps

# Rounds without a positive margin after which it is first asked whether there can be one.
DOUBT = 4
# Of the tolerance, what the float bracket is brought to: the certified one is a little wider.
SHARE = 0.9
# Of the tolerance, how exactly a game on few rows is solved: the gap is then what the other rows make it.
INNER = 0.3
ROUNDS = {"double_oracle": 1000, "proximal_newton": 100}
# Rows on a device are given to Newton's method down to a tolerance that the type of its scores can tell.
NEWTON = {"float32": 1e-4, "float64": 1e-8}
MOST_ROUNDS = 100_000
# The tolerance of a search among columns of like size, where any plane of positive margin will do.
ALIKE = 1e-2
# What goes on, for norm 2 and for others, where rows that are not in memory need a larger working set than fits.
GAMES = ("accelerated_perceptron", "accelerated_p_norm_perceptron")
# With a free intercept the points may be moved. They are, if their mean is so large a share of R, and n·d is at most so large:
# a copy of X, and no more than a way to propose.
FAR, MOST_MOVED = 0.9, 1 << 24
# Relative difference of R between two storages of the same rows, at most: one may be a device that adds in float32.
SAME_RADIUS = 1e-3


class Notes(NamedTuple):
    """What a run has to know of itself when it is resumed: whether the points were `moved`, the R that they were divided by
    (`scale`) and that of the points as they are (`radius`), the passes before the first round, whether a verdict was asked for,
    the separator that this gave, and the seconds spent."""

    moved: bool
    scale: float
    radius: float
    passes: tuple[float, float]
    asked: bool
    w: Array | None
    b: float
    seconds: float


class Played(NamedTuple):
    """What is played on: the rows as they are, these `moved` to around 0 (or as they are), and these divided by their `R`."""

    raw: Rows
    moved: Rows
    rows: Rows
    R: float

    @property
    def passes(self) -> float:
        """All passes over the data so far."""
        return sum(used.passes for used in {id(used): used for used in self[:3]}.values())


@dataclass(eq=False)
class Search:
    """One call of `maximize_margin`: play until the float bracket is narrow enough, then prove it."""

    problem: Problem
    margin: Margin
    method: Method
    tol: float
    max_iter: int | None
    deadline: float
    start: MarginResult | Array | None
    threads: int | None
    callback: Callable[[Moment], object] | None
    started: float
    checkpoint: Checkpoint | None = None
    witness: Witness | None = None
    proof: Certificate | None = None
    separator: tuple[Array, float] | None = None
    asked: bool = False
    stopped: bool = False
    auto: bool = False
    outgrown: bool = False
    hand: int | None = None
    caps: Array | None = None
    radius: float = 0.0

    @cached_property
    def kept(self) -> Array | slice:
        """The rows that count: those of weight 0 do not."""
        weights = self.margin.weights
        return slice(None) if weights is None or weights.all() else np.flatnonzero(weights)

    @cached_property
    def counted(self) -> Problem:
        """The problem without the other rows."""
        if isinstance(self.kept, slice):
            return self.problem
        self.problem.require_finite()  # by the row as it was given
        return self.problem.part(self.kept)

    @cached_property
    def weights(self) -> Array | None:
        """The weights of the rows that count."""
        return None if self.margin.weights is None else self.margin.weights[self.kept]

    @cached_property
    def trial(self) -> Trial:
        """What the search for a verdict has to say, asked once."""
        trial = Trial(self.counted, self.margin.intercept, self.started)
        trial.decide(self.deadline)
        return trial

    def result(self) -> MarginResult:
        """Play, and prove what was found."""
        storage, signs = self.counted.storage, self.counted.signs
        raw = Rows(storage, signs, constant=self.margin.intercept == "penalized", threads=self.threads)
        self.radius = raw.playable_radius(self.margin.norm)
        moved, R = self._moved(raw, signs, self._before(raw))
        played = Played(raw, moved, moved.scaled(1 / R) if R > 0 else moved, R)
        p_set = Simplex(
            raw.n,
            caps=None if self.margin.nu is None else caps_of(self.weights, raw.n, self.margin.nu),
            halves=(signs < 0) if self.margin.intercept == "free" else None,
        )
        self.caps = p_set.caps
        p0 = p_set.start(self._start(p_set))
        try:
            trace = self._trace(self.method, played, p_set, p0)
            rounds = int(trace.t[-1])
            if self.outgrown and not self.stopped and self.max_iter is None:
                # what is in hand would no longer fit: from here on the game is played, a pass a round
                method = choose_method(GAMES[self.margin.norm > 2], self.margin.norm, self.problem, self.tol, None)
                found = trace.p_best if trace.p_best is not None else p0
                later = self._trace(method, played, p_set, p_set.start(0.5 * found + 0.5 * p_set.centre))
                rounds += int(later.t[-1])
                trace = min(trace, later, key=lambda run: run.gap[-1])
        except KeyboardInterrupt:  # before the first round was over: p_0 is what there is
            trace, rounds, self.stopped = None, 0, True
        try:
            return self._proved(trace, p_set, rounds, played)
        except KeyboardInterrupt:  # one is taken as the wish to stop playing; the second one ends it
            self.stopped = True
            return self._proved(trace, p_set, rounds, played)

    def _notes(self, played: Played) -> Notes:
        """What a checkpoint holds of this run, beside what the loop knows. That a witness was found is found out again."""
        w, b = (None, 0.0) if self.separator is None else self.separator
        asked, seconds = self.asked and self.witness is None, time.perf_counter() - self.started
        passes = played.raw.passes, played.moved.passes
        return Notes(played.moved is not played.raw, played.R, self.radius, passes, asked, w, b, seconds)

    def _before(self, raw: Rows) -> Notes | None:
        """What the checkpoint says of the run that it was written by."""
        notes = None if self.checkpoint is None else self.checkpoint.restored("notes", Notes)
        if self.checkpoint is None or notes is None:
            return None
        if abs(notes.radius - self.radius) > SAME_RADIUS * self.radius or (notes.moved and raw.n * raw.d > MOST_MOVED):
            raise InputError(f"{self.checkpoint.path} is the checkpoint of other data; pass another file, or remove it")
        self.asked = notes.asked
        if notes.w is not None:
            self.separator = notes.w, notes.b
        self.started -= notes.seconds
        return notes

    def _require(self, raw: Rows, form: dynamics.Form) -> None:
        """Refuse the checkpoint of another problem."""
        assert self.checkpoint is not None
        start = self.start.p if isinstance(self.start, MarginResult) else self.start
        facts: dict[str, Any] = {"task": "maximize_margin", "norm": self.margin.norm, "nu": self.margin.nu}
        facts |= {"intercept": self.margin.intercept, "method": self.method.name, "guarantee": self.method.guarantee.statement}
        facts |= {"classes": self.problem.classes, "labels": self.problem.signs, "weights": self.margin.weights, "start": start}
        self.checkpoint.require(fingerprint(raw, form, **facts))

    def _trace(self, method: Method, played: Played, p_set: Simplex, p0: Array) -> Trace:
        """One method from p_0 until `_look` stops it. Checkpoints are of the method asked for."""
        rows = played.rows
        form = method.build(rows, p_set, p0)
        self.hand = None
        if isinstance(form, DoubleOracle):  # a round of its may take long: it looks at the clock itself
            form = replace(form, deadline=self.deadline, tol=min(1e-4, max(1e-10, INNER * self.tol)))
            self.hand = None if rows.in_memory or rows.sparse or not self.auto else form.most
        elif isinstance(form, ProximalNewton):
            form = replace(form, deadline=self.deadline)
        checkpoint = self.checkpoint if method is self.method else None
        if checkpoint is not None:
            self._require(played.raw, form)
        rounds = ROUNDS.get(method.name, MOST_ROUNDS) if self.max_iter is None else self.max_iter
        return dynamics.run(
            form,
            rounds,
            record=range(1, rounds + 1) if method.name in ROUNDS else dynamics.log_spaced(rounds),
            scale=played.R if played.R > 0 else 1.0,
            bound=method.guarantee.gap,
            time_limit=max(1e-3, self.deadline - time.perf_counter()),
            callback=self._look,
            name=method.name,
            form_name=method.form,
            checkpoint=checkpoint,
            notes=lambda: self._notes(played),
        )

    def _moved(self, raw: Rows, signs: Array, before: Notes | None) -> tuple[Rows, float]:
        """The rows to play on, and their R: with a free intercept points that are far from 0 as a whole are moved there.

        γ*, w and p are the same for x_i - m, and R is smaller: products keep their digits, and the theorems promise more. A run
        that is resumed goes on with the rows it had, wherever they are stored now.
        """
        if before is not None:
            played = self._around(raw, signs, self._mean(raw, signs)) if before.moved else raw
            raw.passes, played.passes = before.passes
            return played, before.scale
        if self.margin.intercept != "free" or self.radius == 0 or raw.n * raw.d > MOST_MOVED or raw.mapped or not raw.in_memory:
            return raw, self.radius
        mean = self._mean(raw, signs)
        if norm_of(mean, self.margin.norm) < FAR * self.radius:
            return raw, self.radius
        moved = self._around(raw, signs, mean)
        R = moved.radius(self.margin.norm)
        return (moved, R) if SMALLEST_RADIUS <= R <= self.radius else (raw, self.radius)

    def _mean(self, raw: Rows, signs: Array) -> Array:
        """The mean of the points."""
        return raw.scaled(1 / self.radius).combine(signs / len(signs)) * self.radius

    def _around(self, raw: Rows, signs: Array, mean: Array) -> Rows:
        """The rows of the points less their mean."""
        here = raw if raw.in_memory else raw.take(np.arange(raw.n))
        return of(here.dense() * signs[:, None] - mean, signs, threads=self.threads)

    def _start(self, p_set: Simplex) -> Array | None:
        """p of the earlier result, a little of it spread over all rows: a start must be positive."""
        found = self.start.p if isinstance(self.start, MarginResult) else self.start
        if found is None:
            return None
        return 0.99 * p_set.project(vector(found, "start", self.problem.X.n)[self.kept]) + 0.01 * p_set.centre

    def _look(self, moment: Moment) -> bool:
        """At a recorded round: whether to stop."""
        if self.callback is not None and self.callback(moment):
            self.stopped = True
            return True
        if self.hand is not None and moment.p is not None and np.count_nonzero(moment.p) >= self.hand:
            free = moment.p > 0 if self.caps is None else (moment.p > 0) & (moment.p < self.caps)
            self.outgrown = bool(np.count_nonzero(free) >= self.hand)
            if self.outgrown:
                return True
        if moment.lower > 0:
            return moment.gap <= SHARE * self.tol
        if self.margin.nu is not None:
            if moment.upper > SHARE * self.tol * self.radius:
                return False
            if not self.asked:
                self._soft_separator()
            return self.stopped or self.separator is None or self.method.name not in ROUNDS
        if not self.asked and moment.t >= DOUBT:
            return self._not_separable()
        doubtful = self.asked and self.separator is None
        return moment.upper <= (SHARE * self.tol * self.radius if doubtful else 0.0)

    def _not_separable(self) -> bool:
        """Ask for a verdict once: a witness ends the run, a separator is kept."""
        self.asked = True
        proof = self.trial.proof
        if proof is None:
            return False
        if proof.w is not None:
            self.separator = proof.w, float(proof.head.b or 0.0)
            return False
        rows = np.arange(self.problem.X.n)[self.kept][list(proof.head.rows)]
        self.proof = replace(proof.head, rows=tuple(rows.tolist()), shape=(self.problem.X.n, self.problem.X.d))
        self.witness = Witness.of(self.proof, self.problem.signs)
        return True

    def _soft_separator(self) -> None:
        """Look once for a plane of positive soft margin among columns of like size, moved around 0 unless the plane must pass it.

        Whether there is one does not depend on that, but a margin that is positive beside the size of one column may be lost to
        rounding beside that of another.
        """
        self.asked = True
        margin, counted = self.margin, self.counted
        raw = Rows(counted.storage, counted.signs, threads=self.threads)
        if raw.n * raw.d > MOST_MOVED or not raw.in_memory:
            return
        points = raw.dense() * counted.signs[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            centre = np.zeros(raw.d) if margin.intercept == "none" else points.mean(axis=0)
            points = points - centre
            size = np.ldexp(1.0, -np.frexp(np.max(np.abs(points), axis=0, initial=0.0))[1])
            points = points * size
        if not np.isfinite(points).all():
            return
        problem = replace(counted, X=Matrix(raw.n, raw.d, (points,)), storage=stored(points))
        alike = Search(
            problem=problem,
            margin=Margin(problem.X, problem.signs, margin.intercept, 2.0, margin.nu, self.weights),
            method=double_oracle(),
            tol=ALIKE,
            max_iter=None,
            deadline=self.deadline,
            start=None,
            threads=self.threads,
            callback=None,
            started=self.started,
            asked=True,
        )
        found = alike.result()
        self.stopped |= alike.stopped  # by Ctrl-C
        if found.w is not None and found.b is not None and found.margin[0] > 0:
            w = found.w * size
            w, b = self._of_length_one(w, found.b - float(w @ centre))
            if w is not None and b is not None and margin.lower(w, b) > 0:
                self.separator = w, b

    def _of_length_one(self, w: Array, b: float) -> tuple[Array | None, float | None]:
        """w, b divided by ‖w‖_q, or ‖(w, b)‖_q where b counts; None where that is not possible."""
        length = norm_of(np.append(w, b) if self.margin.intercept == "penalized" else w, dual_exponent(self.margin.norm))
        return (w / length, b / length) if 0 < length < math.inf else (None, None)

    def _proved(self, trace: Trace | None, p_set: Simplex, rounds: int, played: Played) -> MarginResult:
        """The result with a bracket that the checker accepts."""
        margin, problem = self.margin, self.problem
        if trace is not None and trace.status == "interrupted":
            self.stopped = True
        nothing = trace is None or trace.lower[-1] <= 0
        if self.witness is None and nothing and not self.asked and not self.stopped:
            if margin.nu is None:
                self._not_separable()
            else:
                self._soft_separator()
        w, b, p, lower, upper = None, None, None, 0.0, math.inf
        if self.witness is None:
            if trace is not None:
                w, b = self._plane(trace.w_best, p_set)
            lower = 0.0 if w is None else margin.lower(w, b or 0.0, slack=CLAIM)
            if lower == 0 and self.separator is not None:
                w, b = self.separator
                lower = margin.lower(w, b, slack=CLAIM)
            p = self._weights_behind(trace, p_set)
            upper = 0.0 if self.radius == 0 else margin.upper(p, slack=CLAIM)
            stuck = self._status(lower, upper, trace) == "no-progress" and margin.nu is None and margin.norm == 2
            if stuck and self.method.name != "proximal_newton":  # after which the double oracle goes on
                # where rows are far apart in size, what finds verdicts may get further than games do
                trial = self.trial
                if trial.p is not None and trial.upper < upper:
                    p, upper = self._over_all_rows(trial.p), trial.upper
                if trial.proof is not None and trial.proof.w is not None and trial.lower > lower:
                    w, b, lower = trial.proof.w, float(trial.proof.head.b or 0.0), trial.lower
            self.proof = self._certificate(w, b, p, lower, upper)
        else:
            upper = 0.0
        assert self.proof is not None
        accepted = check(self.proof, problem)
        if not accepted:  # never seen; if ever, nothing is claimed but what needs no proof
            self.witness, lower, upper = None, 0.0, math.inf
            self.proof = self._certificate(None, None, None, lower, upper)
        return MarginResult(
            status=self._status(lower, upper, trace),
            w=w,
            b=b,
            p=None if p is None else p / p.sum(),
            margin=(lower, upper),
            witness=self.witness,
            norm=margin.norm,
            nu=margin.nu,
            intercept=margin.intercept,
            n_iter=rounds,
            passes=played.passes,
            seconds=time.perf_counter() - self.started,
            trace=trace,
            _certificate=self.proof,
            _problem=problem,
        )

    def _status(self, lower: float, upper: float, trace: Trace | None) -> Status:
        if self.witness is not None:
            return "not-separable"
        if upper > 0 and (upper - lower) / upper <= self.tol:
            return "solved"
        if lower <= 0 and upper <= self.tol * self.radius:
            return "margin-below-tol"
        if self.stopped:
            return "interrupted"
        if time.perf_counter() >= self.deadline:
            return "time-limit"
        return "iteration-limit" if trace is not None and trace.status == "rounds" else "no-progress"

    def _plane(self, v: Array, p_set: Simplex) -> tuple[Array | None, float | None]:
        """w of length 1 and b from the vector of the game."""
        if self.margin.intercept == "penalized":
            return self._of_length_one(v[:-1], float(v[-1]))
        w, b = self._of_length_one(v, 0.0)
        if w is None or self.margin.intercept == "none":
            return w, b
        rows = Rows(self.counted.storage, self.counted.signs)
        if p_set.caps is None:
            _, (low, high) = rows.lowest(w, 1, halves=p_set.halves)
            return w, -float(low / 2 - high / 2)
        # midway between the scores up to which p fills the two classes
        scores, mass = rows.scores(w), p_set.mass * (1 - 1e-12)
        low, high = (level(scores[own], p_set.caps[own], mass) for own in p_set.members)
        return w, -(low / 2 - high / 2)

    def _weights_behind(self, trace: Trace | None, p_set: Simplex) -> Array:
        """p over all rows, as the certificate wants it: with nu p_i ≤ c_i and a mass of at least νΣc, else of any size."""
        found = p_set.centre if trace is None or trace.p_best is None else trace.p_best
        if self.margin.nu is not None:
            found = under_caps(found, self.margin.c[self.kept], self.margin.nu, p_set)
        return self._over_all_rows(found)

    def _over_all_rows(self, found: Array) -> Array:
        """0 for the rows that do not count."""
        p = np.zeros(self.problem.X.n)
        p[self.kept] = found
        return p

    def _certificate(self, w: Array | None, b: float | None, p: Array | None, lower: float, upper: float) -> Certificate:
        problem, margin = self.problem, self.margin
        rows = np.empty(0, np.intp) if p is None else np.flatnonzero(p)
        weights = margin.weights
        return Certificate(
            "bracket",
            margin.intercept,  # type: ignore[arg-type]
            problem.classes,
            (problem.X.n, problem.X.d),
            w=None if w is None else tuple(w.tolist()),
            b=b,
            rows=tuple(rows.tolist()),
            weights=() if p is None else tuple(p[rows].tolist()),
            lower=lower,
            upper=upper,
            norm=margin.norm,
            nu=margin.nu,
            sample_weight=None if weights is None else tuple(weights.tolist()),
        )


def choose_method(method: Any, norm: float, problem: Problem, tol: float, random_state: Any) -> Method:
    """The method asked for, for this norm."""
    order, d = seed(random_state), problem.X.d
    storage: Storage = problem.storage
    newton = norm == 2 and d <= MOST_COLUMNS and isinstance(storage, SecondMoments) and tol >= NEWTON[storage.sums]
    if isinstance(method, str) and method == "auto" and newton:
        return proximal_newton()
    if isinstance(method, str):
        method = methods.get("double_oracle" if method == "auto" else method)
    if isinstance(method, methods.Entry) and method.factory is double_oracle:
        return double_oracle(p=norm, seed=order)
    if isinstance(method, methods.Entry):
        # for the largest norm the p-norm methods play p = 2 log d, and what they find is certified for norm inf
        method = method.for_norm(2 * math.log(max(d, 3)) if math.isinf(norm) else norm)
    if not isinstance(method, Method):
        raise InputError(f"method is {method!r:.60}; pass 'auto', a name such as 'nesterov', or a method with its options")
    if method.norm != norm and not (math.isinf(norm) and method.norm > 2):
        raise InputError(
            f"{method.name} plays for the norm {method.norm:g}, not {norm:g}; use method='auto', a p-norm method, or that norm"
        )
    return method
