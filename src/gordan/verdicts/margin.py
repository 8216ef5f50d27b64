"""`maximize_margin`: the separator of largest margin, with a certified interval for that margin."""

from __future__ import annotations

import html
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from gordan import dynamics, methods
from gordan.arrays import Array, blas_threads, is_number, positive, seed, vector, whole_number
from gordan.certificates import Certificate
from gordan.certificates.bounds import exact_sum
from gordan.certificates.margins import Margin
from gordan.certificates.matrix import CLAIM
from gordan.certificates.problem import Problem, check_intercept
from gordan.certificates.verify import check
from gordan.checkpoint import Checkpoint, fingerprint
from gordan.errors import InputError
from gordan.geometry import Simplex, dual_exponent
from gordan.geometry import norm as norm_of
from gordan.methods import Method
from gordan.research import SMALLEST_RADIUS, log_spaced, starting_weights
from gordan.rows import Rows, host, of
from gordan.solve.double_oracle import DoubleOracle, double_oracle
from gordan.solve.proximal import MOST_COLUMNS, ProximalNewton, proximal_newton
from gordan.trace import Moment, Trace
from gordan.verdicts.separate import Trial
from gordan.verdicts.telling import Witness, outward

Status = Literal["solved", "not-separable", "margin-below-tol", "iteration-limit", "time-limit", "interrupted"]

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
# What goes on, for norm 2 and for others, where rows that are not in memory need a larger working set than fits.
GAMES = ("accelerated_perceptron", "accelerated_p_norm_perceptron")
# With a free intercept the points may be moved. They are, if their mean is so large a share of R, and n·d is at most so large:
# a copy of X, and no more than a way to propose.
FAR, MOST_MOVED = 0.9, 1 << 24
# Sample weights further apart than this leave rows whose cap is lost in rounding.
FURTHEST = 2.0**-500
# Relative difference of R between two storages of the same rows, at most: one may be a device that adds in float32.
SAME_RADIUS = 1e-3


@dataclass(frozen=True, eq=False)
class MarginResult:
    """What `maximize_margin` found and proved.

    `margin` is a certified interval (lower, upper) for γ*, in the units of X and the norm asked for; `gap` its relative width.
    `nu` is the one used: at its limit, the largest float that leaves a p.
    `w`, `b` is the best separator found, ‖w‖_q = 1 up to rounding, so that scores x·w + b are signed distances; `p` the weights
    over the rows behind `upper`, of total 1. w and p are None where nothing was found. `status` is

        solved             gap ≤ tol
        not-separable      no plane separates: `witness` proves it, margin is (0, 0)
        margin-below-tol   upper ≤ tol · max‖x_i‖, and no positive margin was found
        iteration-limit, time-limit, interrupted   what was proved by then
    """

    status: Status
    w: Array | None
    b: float | None
    p: Array | None
    margin: tuple[float, float]
    witness: Witness | None
    norm: float
    nu: float | None
    intercept: str
    n_iter: int
    passes: float
    seconds: float
    trace: Trace | None = field(repr=False)
    _certificate: Certificate = field(repr=False)
    _problem: Problem = field(repr=False)

    @property
    def gap(self) -> float:
        """(upper - lower)/upper; 0 if upper is 0."""
        lower, upper = self.margin
        if upper == 0:
            return 0.0
        return 1.0 if math.isinf(upper) else (upper - lower) / upper

    @property
    def claim(self) -> Certificate:
        """The certificate without the hash of the data: at no cost, and without holding on to X."""
        return self._certificate

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate, bound to the data by its hash (computed on first access)."""
        return replace(self._certificate, data_hash=self._problem.hash(self._certificate.intercept))

    def __repr__(self) -> str:
        lower, upper = outward(*self.margin)
        soft = "" if self.nu is None else f" (soft, nu = {self.nu:g})"
        passes = f"{self.passes:,.0f}" if self.passes >= 1000 else f"{self.passes:.3g}"
        effort = f"{self.n_iter:,} round{'s' * (self.n_iter != 1)}, {passes} passes, {self.seconds:.2g} s"
        if self.status == "not-separable":
            return f"not separable: {self.witness} (proved)"
        if self.status == "solved":
            return f"solved: the largest margin{soft} is between {lower} and {upper} (proved; {effort})"
        if self.status == "margin-below-tol":
            return f"margin below tolerance: no margin{soft} exceeds {upper} (proved; {effort})"
        return f"stopped ({self.status}): the largest margin{soft} is between {lower} and {upper} (proved; {effort})"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"


def maximize_margin(
    X: Any,
    y: Any,
    *,
    norm: float = 2,
    nu: float | None = None,
    intercept: str = "free",
    method: Any = "auto",
    tol: float = 1e-4,
    sample_weight: Any = None,
    class_weight: Mapping[Any, float] | str | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    start: MarginResult | Array | None = None,
    random_state: Any = None,
    threads: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    device: str | None = None,
    callback: Callable[[Moment], object] | None = None,
) -> MarginResult:
    """The w, b that put the nearest point as far from the plane as possible, and a proof of how far that can be.

    The margin is γ* = max_{w,b} min_i y_i(x_i·w + b)/‖w‖_q: the distance, in the norm p, of the nearest point to the plane
    (1/p + 1/q = 1). With `nu` the nearest points may be on the wrong side: their share of the weight is averaged over.

    Parameters
    ----------
    X, y
        data; X dense or sparse with exact values, y two labels of any kind; torch tensors and CuPy arrays as they are.
    norm
        the norm p of feature space, 2 ≤ p ≤ ∞ (∞: w is measured in the 1-norm, and is sparse).
    nu
        None for the hard margin, or a number in (0, 1]: p_i ≤ c_i/(nu·Σc), c the weights. The larger, the softer.
    intercept
        "free" (x·w + b, b costs nothing), "penalized" (a constant 1 is a further column; margin that of (x, 1), as LIBLINEAR
        does) or "none".
    method
        "auto", the name of a registered method, or a method with options such as
        `gordan.methods.smooth_perceptron(eta=0.5)`.
    tol
        relative width of the certified bracket to stop at.
    sample_weight, class_weight
        weights c_i = sample weight × class weight ("balanced": n/(2·count)). Without nu positive ones change nothing; a zero
        weight removes the row.
    max_iter, time_limit
        rounds and seconds at most.
    start
        an earlier result to start from, or its p.
    random_state
        seed of the order in which rows are visited (an integer, or None).
    threads
        how many threads a pass may use; all cores if None.
    checkpoint
        a file that the run is written to, every half minute and when it ends for whatever reason; the same call goes on from
        there, to the same result bit by bit. `tol`, the limits, `threads` and the storage of X may be others then. The limits
        are those of this call; `n_iter`, `passes` and `seconds` of the result are totals.
    device
        where to look for the margin: "cuda" copies X to the GPU once, "cpu" brings it to the host; None leaves it where it is.
        The proof is in float64 and about the values of X, wherever it runs.
    callback
        called with each recorded `Moment`; something true stops the run.

    Examples
    --------
    >>> import gordan
    >>> gordan.maximize_margin([[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]], [0, 0, 1]).status
    'solved'
    """
    check_intercept(intercept)
    norm, tol = _norm(norm), positive(tol, "tol")
    limit = math.inf if time_limit is None else positive(time_limit, "time_limit")
    if max_iter is not None:
        max_iter = whole_number(max_iter, "max_iter")
    if threads is not None:
        threads = whole_number(threads, "threads")
    if start is not None and not isinstance(start, (MarginResult, np.ndarray)):
        raise InputError(f"start is {start!r:.60}; pass an earlier result of maximize_margin or its p, or None")
    if callback is not None and not callable(callback):
        raise InputError(f"callback is {callback!r}; pass a function of one moment, or None")
    started = time.perf_counter()
    keeper = None if checkpoint is None else Checkpoint(checkpoint)
    problem = Problem.of(X, y, device).nearby()
    weights = _weights(problem, host(sample_weight), class_weight, caps=nu is not None)
    nu = _allowed_nu(nu, problem, weights, intercept)
    run = _Run(
        problem=problem,
        task=Margin(problem.X, problem.signs, intercept, norm, nu, weights),
        # what Newton's method keeps is on a device, and not in a file
        method=_method("double_oracle" if keeper is not None and method == "auto" else method, norm, problem, tol, random_state),
        auto=isinstance(method, str) and method == "auto",
        tol=tol,
        max_iter=max_iter,
        deadline=started + limit,
        start=start,
        threads=threads,
        callback=callback,
        started=started,
        checkpoint=keeper,
    )
    with blas_threads(problem.storage.entries):
        found = run.result()
        if run.method.name != "proximal_newton" or found.status != "iteration-limit" or max_iter is not None:
            return found
        # rounding stopped Newton's method short of the tolerance: games on few rows, solved exactly, go on from there
        again = replace(run, method=_method("double_oracle", norm, problem, tol, random_state), start=found).result()
        better = again if again.gap < found.gap or again.status == "solved" else found
        return replace(better, passes=found.passes + again.passes, n_iter=found.n_iter + again.n_iter)


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


@dataclass(eq=False)
class _Run:
    """One call of `maximize_margin`: play until the float bracket is narrow enough, then prove it."""

    problem: Problem
    task: Margin
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

    def result(self) -> MarginResult:
        """Play, and prove what was found."""
        storage, signs = self.problem.storage, self.problem.signs
        weights = self.task.weights
        self.kept = np.arange(self.problem.X.n)
        if weights is not None and (weights == 0).any():
            self.problem.require_finite()  # by the row as it was given
            self.kept = np.flatnonzero(weights)
            storage, signs, weights = storage.part(self.kept), signs[self.kept], weights[self.kept]
        raw = Rows(storage, signs, constant=self.task.intercept == "penalized", threads=self.threads)
        self.R = raw.radius(self.task.norm)
        if self.R > 0 and not SMALLEST_RADIUS <= self.R <= 1 / SMALLEST_RADIUS:
            raise InputError(f"the largest row has norm {self.R:.3g}; multiply X by a power of two so that it is near 1")
        before = self._before(raw)
        played, R = self._moved(raw, signs, before)
        rows = played.scaled(1 / R) if R > 0 else played
        p_set = Simplex(
            rows.n,
            caps=None if self.task.nu is None else _caps(weights, rows.n, self.task.nu),
            halves=(signs < 0) if self.task.intercept == "free" else None,
        )
        self.caps = p_set.caps
        p0 = starting_weights(p_set, self._start(p_set))
        try:
            trace = self._played(self.method, rows, p_set, p0, R, raw, played)
            if self.outgrown and not self.stopped and self.max_iter is None:
                # what is in hand would no longer fit: from here on the game is played, a pass a round
                method = _method(GAMES[self.task.norm > 2], self.task.norm, self.problem, self.tol, None)
                found = trace.p_best if trace.p_best is not None else p0
                start = starting_weights(p_set, 0.5 * found + 0.5 * p_set.centre)
                later = self._played(method, rows, p_set, start, R, raw, played)
                trace = min(trace, later, key=lambda run: run.gap[-1])
        except KeyboardInterrupt:  # before the first round was over: p_0 is what there is
            trace, self.stopped = None, True
        passes = sum(used.passes for used in {id(used): used for used in (raw, played, rows)}.values())
        try:
            return self._proved(trace, signs, p_set, passes)
        except KeyboardInterrupt:  # one is taken as the wish to stop playing; the second one ends it
            self.stopped = True
            return self._proved(trace, signs, p_set, passes)

    def _notes(self, raw: Rows, played: Rows, R: float) -> Notes:
        """What a checkpoint holds of this run, beside what the loop knows. That a witness was found is found out again."""
        w, b = (None, 0.0) if self.separator is None else self.separator
        asked, seconds = self.asked and self.witness is None, time.perf_counter() - self.started
        return Notes(played is not raw, R, self.R, (raw.passes, played.passes), asked, w, b, seconds)

    def _before(self, raw: Rows) -> Notes | None:
        """What the checkpoint says of the run that it was written by."""
        notes = None if self.checkpoint is None else self.checkpoint.restored("notes", Notes)
        if self.checkpoint is None or notes is None:
            return None
        if abs(notes.radius - self.R) > SAME_RADIUS * self.R or (notes.moved and raw.n * raw.d > MOST_MOVED):
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
        facts: dict[str, Any] = {"task": "maximize_margin", "norm": self.task.norm, "nu": self.task.nu}
        facts |= {"intercept": self.task.intercept, "method": self.method.name, "guarantee": self.method.guarantee.statement}
        facts |= {"classes": self.problem.classes, "labels": self.problem.signs, "weights": self.task.weights, "start": start}
        self.checkpoint.require(fingerprint(raw, form, **facts))

    def _played(self, method: Method, rows: Rows, p_set: Simplex, p0: Array, R: float, raw: Rows, played: Rows) -> Trace:
        """One method from p_0 until `_look` stops it. Checkpoints are of the method asked for."""
        form = method.build(rows, p_set, p0)
        self.hand = None
        if isinstance(form, DoubleOracle):  # a round of its may take long: it looks at the clock itself
            form = replace(form, deadline=self.deadline, tol=min(1e-4, max(1e-10, INNER * self.tol)))
            self.hand = None if rows.in_memory or rows.sparse or not self.auto else form.most
        elif isinstance(form, ProximalNewton):
            form = replace(form, deadline=self.deadline)
        checkpoint = self.checkpoint if method is self.method else None
        if checkpoint is not None:
            self._require(raw, form)
        rounds = ROUNDS.get(method.name, MOST_ROUNDS) if self.max_iter is None else self.max_iter
        return dynamics.run(
            form,
            rounds,
            record=range(1, rounds + 1) if method.name in ROUNDS else log_spaced(rounds),
            scale=R if R > 0 else 1.0,
            bound=method.guarantee.gap,
            time_limit=None if math.isinf(self.deadline) else max(1e-3, self.deadline - time.perf_counter()),
            callback=self._look,
            name=method.name,
            form_name=method.form,
            checkpoint=checkpoint,
            notes=lambda: self._notes(raw, played, R),
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
        if self.task.intercept != "free" or self.R == 0 or raw.n * raw.d > MOST_MOVED or raw.mapped or not raw.in_memory:
            return raw, self.R
        mean = self._mean(raw, signs)
        if norm_of(mean, self.task.norm) < FAR * self.R:
            return raw, self.R
        moved = self._around(raw, signs, mean)
        R = moved.radius(self.task.norm)
        return (moved, R) if SMALLEST_RADIUS <= R <= self.R else (raw, self.R)

    def _mean(self, raw: Rows, signs: Array) -> Array:
        """The mean of the points."""
        return raw.scaled(1 / self.R).combine(signs / len(signs)) * self.R

    def _around(self, raw: Rows, signs: Array, mean: Array) -> Rows:
        """The rows of the points less their mean."""
        here = raw if raw.in_memory else raw.take(np.arange(raw.n))
        return of(here.dense() * signs[:, None] - mean, signs, threads=self.threads)

    def _start(self, p_set: Simplex) -> Array | None:
        """p of the earlier result, a little of it spread over all rows: a start must be positive."""
        found = self.start.p if isinstance(self.start, MarginResult) else self.start
        if found is None:
            return None
        if np.shape(found) != (self.problem.X.n,):
            raise InputError(f"start is for {np.size(found)} rows, but X has {self.problem.X.n}")
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
        if self.task.nu is not None:
            return moment.upper <= SHARE * self.tol * self.R
        if not self.asked and moment.t >= DOUBT:
            return self._not_separable()
        return moment.upper == 0 if self.separator is not None or not self.asked else moment.upper <= SHARE * self.tol * self.R

    def _not_separable(self) -> bool:
        """Ask for a verdict once: a witness ends the run, a separator is kept."""
        self.asked = True
        trial = Trial(self._kept_problem(), self.task.intercept, self.started)
        trial.decide(self.deadline)
        if trial.proof is None:
            return False
        if trial.proof.w is not None:
            self.separator = trial.proof.w, float(trial.proof.head.b or 0.0)
            return False
        rows = tuple(int(self.kept[i]) for i in trial.proof.head.rows)
        self.proof = replace(trial.proof.head, rows=rows, shape=(self.problem.X.n, self.problem.X.d))
        self.witness = Witness.of(self.proof, self.problem.signs)
        return True

    def _kept_problem(self) -> Problem:
        if len(self.kept) == self.problem.X.n:
            return self.problem
        storage = self.problem.storage.part(self.kept)
        return replace(
            self.problem,
            X=replace(self.problem.X, n=storage.n, arrays=storage.arrays),
            signs=self.problem.signs[self.kept],
            storage=storage,
        )

    def _proved(self, trace: Trace | None, signs: Array, p_set: Simplex, passes: float) -> MarginResult:
        """The result with a bracket that the checker accepts."""
        task, problem = self.task, self.problem
        if trace is not None and trace.status == "interrupted":
            self.stopped = True
        nothing = trace is None or trace.lower[-1] <= 0
        if self.witness is None and task.nu is None and nothing and not self.asked and not self.stopped:
            self._not_separable()
        w, b, p, lower, upper = None, None, None, 0.0, math.inf
        if self.witness is None:
            if trace is not None:
                w, b = self._plane(trace.w_best, signs, p_set)
            lower = 0.0 if w is None else task.lower(w, b or 0.0, slack=CLAIM)
            if lower == 0 and self.separator is not None:
                w, b = self.separator
                lower = task.lower(w, b, slack=CLAIM)
            p = self._weights_behind(trace, p_set)
            upper = 0.0 if self.R == 0 else task.upper(p, slack=CLAIM)
            self.proof = self._certificate(w, b, p, lower, upper)
        else:
            upper = 0.0
        assert self.proof is not None
        accepted = check(self.proof, problem)
        if not accepted:  # never seen; if ever, nothing is claimed but what needs no proof
            lower, upper = 0.0, math.inf
            self.proof = self._certificate(None, None, None, lower, upper)
        return MarginResult(
            status=self._status(lower, upper),
            w=w,
            b=b,
            p=None if p is None else p / p.sum(),
            margin=(lower, upper),
            witness=self.witness,
            norm=task.norm,
            nu=task.nu,
            intercept=task.intercept,
            n_iter=0 if trace is None else int(trace.t[-1]),
            passes=passes,
            seconds=time.perf_counter() - self.started,
            trace=trace,
            _certificate=self.proof,
            _problem=problem,
        )

    def _status(self, lower: float, upper: float) -> Status:
        if self.witness is not None:
            return "not-separable"
        if upper > 0 and (upper - lower) / upper <= self.tol:
            return "solved"
        if lower <= 0 and upper <= self.tol * self.R:
            return "margin-below-tol"
        if self.stopped:
            return "interrupted"
        return "time-limit" if time.perf_counter() >= self.deadline else "iteration-limit"

    def _plane(self, v: Array, signs: Array, p_set: Simplex) -> tuple[Array | None, float | None]:
        """w of length 1 and b from the vector of the game."""
        length = norm_of(v, dual_exponent(self.task.norm))
        if not 0 < length < math.inf:
            return None, None
        v = v / length
        if self.task.intercept == "none":
            return v, 0.0
        if self.task.intercept == "penalized":
            return v[:-1], float(v[-1])
        if p_set.caps is None and len(self.kept) == self.problem.X.n:
            _, (low, high) = Rows(self.problem.storage, signs).lowest(v, 1, halves=(signs < 0).astype(np.int8))
            return v, -float(low / 2 - high / 2)
        scores = Rows(self.problem.storage, np.ones_like(self.problem.signs)).scores(v)[self.kept]
        ends = []
        for side in (1, -1):
            own = np.flatnonzero(signs == side)
            if p_set.caps is None:
                ends.append(side * float(np.min(side * scores[own])))
                continue
            caps = p_set.caps[own]
            if caps.min() == caps.max():  # equal ones: no need to sort
                reached = min(math.ceil(0.5 * (1 - 1e-12) / float(caps[0])) - 1, len(own) - 1)
                ends.append(side * float(np.partition(side * scores[own], reached)[reached]))
                continue
            order = own[np.argsort(side * scores[own], kind="stable")]
            # the row where the lowest (highest) scores reach total cap ½; without caps it is the first
            reached = int(np.searchsorted(np.cumsum(p_set.caps[order]), 0.5 * (1 - 1e-12)))
            ends.append(float(scores[order[min(reached, len(order) - 1)]]))
        return v, -(ends[0] / 2 + ends[1] / 2)

    def _weights_behind(self, trace: Trace | None, p_set: Simplex) -> Array:
        """p over all rows, as the certificate wants it: with nu p_i ≤ c_i and a mass of at least νΣc, else of any size."""
        found = p_set.centre if trace is None or trace.p_best is None else trace.p_best
        p = np.zeros(self.problem.X.n)
        if self.task.nu is None:
            p[self.kept] = found
            return p
        c = np.ones(self.problem.X.n) if self.task.weights is None else self.task.weights
        c = c[self.kept]
        total = self.task.nu * math.fsum(c.tolist())
        used = found > 0
        with np.errstate(over="ignore"):  # as much as the caps have room for: what is beyond νΣc makes up for rounding
            most = float(np.min(c[used] / found[used]))
        q = np.minimum(found * max(total, most), c)
        for members in p_set.members:
            needed = total * p_set.mass * (1 + 1e-14)
            for _ in range(50):
                missing = needed - math.fsum(q[members].tolist())
                if missing <= 0:
                    break
                room = (c - q)[members] * (q[members] > 0) if ((c - q)[members] * (q[members] > 0)).any() else (c - q)[members]
                if not room.any():
                    break
                q[members] = np.minimum(q[members] + room * min(1.0, (missing * (1 + 1e-15)) / math.fsum(room)), c[members])
        p[self.kept] = q
        return p

    def _certificate(self, w: Array | None, b: float | None, p: Array | None, lower: float, upper: float) -> Certificate:
        problem, task = self.problem, self.task
        rows = np.empty(0, np.intp) if p is None else np.flatnonzero(p)
        weights = task.weights
        return Certificate(
            "bracket",
            task.intercept,  # type: ignore[arg-type]
            problem.classes,
            (problem.X.n, problem.X.d),
            w=None if w is None else tuple(w.tolist()),
            b=b,
            rows=tuple(rows.tolist()),
            weights=() if p is None else tuple(p[rows].tolist()),
            lower=lower,
            upper=upper,
            norm=task.norm,
            nu=task.nu,
            sample_weight=None if weights is None else tuple(weights.tolist()),
        )


def _norm(norm: Any) -> float:
    if not (is_number(norm) and norm >= 2):
        raise InputError(f"norm is {norm!r}; pass a number p with 2 <= p <= inf")
    return float(norm)


def _method(method: Any, norm: float, problem: Problem, tol: float, random_state: Any) -> Method:
    """The method asked for, for this norm."""
    order, d = seed(random_state), problem.X.d
    storage = problem.storage
    newton = norm == 2 and d <= MOST_COLUMNS and hasattr(storage, "moments") and tol >= NEWTON[storage.sums]
    if isinstance(method, str) and method == "auto" and newton:
        return proximal_newton()
    if isinstance(method, str) and method in ("auto", "double_oracle"):
        return double_oracle(p=norm, seed=order)
    if isinstance(method, str):
        method = methods.get(method)
    if isinstance(method, methods.Entry):
        # the p-norm methods are told p; for the largest norm they play p = 2 log d, and what they find is certified for norm inf
        method = method(p=2 * math.log(max(d, 3)) if math.isinf(norm) else norm) if "p_norm" in method.name else method()
    if not isinstance(method, Method):
        raise InputError(f"method is {method!r}; pass 'auto', a name such as 'smooth_perceptron', or a method with its options")
    if method.norm != norm and not (math.isinf(norm) and method.norm > 2):
        raise InputError(
            f"{method.name} plays for the norm {method.norm:g}, not {norm:g}; use method='auto', a p-norm method, or that norm"
        )
    return method


def _weights(problem: Problem, sample_weight: Any, class_weight: Any, *, caps: bool) -> Array | None:
    """c_i = sample weight × class weight, up to a common factor; None where they are all equal.

    Unless they make `caps` only which of them are zero matters, and they are 0 or 1.
    """
    n = problem.X.n
    if sample_weight is None and class_weight is None:
        return None
    c = np.ones(n)
    if sample_weight is not None:
        if is_number(sample_weight):
            sample_weight = np.full(n, float(sample_weight))
        c = vector(sample_weight, "sample_weight", n).copy()
        bad = ~((c >= 0) & np.isfinite(c))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"sample_weight[{row}] is {c[row]}; weights must be finite and not negative")
    if class_weight is not None:
        for side, label in zip((-1, 1), problem.classes, strict=True):
            own = problem.signs == side
            if isinstance(class_weight, str):
                if class_weight != "balanced":
                    raise InputError(f"class_weight is {class_weight!r}; pass 'balanced', a dict from labels to weights, or None")
                c[own] *= n / (2 * np.count_nonzero(own))
            elif isinstance(class_weight, Mapping):
                factor = class_weight.get(label, 1.0)
                if not (is_number(factor) and 0 <= factor < math.inf):
                    raise InputError(f"class_weight[{label!r}] is {factor!r}; weights must be finite and not negative")
                with np.errstate(over="ignore"):
                    c[own] *= float(factor)
            else:
                raise InputError(f"class_weight is {class_weight!r}; pass 'balanced', a dict from labels to weights, or None")
        unknown = [label for label in class_weight if label not in problem.classes] if isinstance(class_weight, Mapping) else []
        if unknown:
            raise InputError(
                f"class_weight names {unknown[0]!r}, but the classes are {problem.classes[0]!r} and {problem.classes[1]!r}"
            )
    for side, label in zip((-1, 1), problem.classes, strict=True):
        if not c[problem.signs == side].any():
            raise InputError(f"all rows of class {label!r} have weight zero; two classes are needed")
    largest, row = float(np.max(c)), int(np.argmax(c))
    if math.isinf(largest):
        raise InputError(f"the weight of row {row} overflows: sample_weight × class_weight; divide one of them")
    if (c == largest).all():
        return None
    if not caps:
        return (c > 0).astype(np.float64)
    least = np.where(c > 0, c, np.inf)
    if np.min(least) < FURTHEST * largest:
        low = int(np.argmin(least))
        raise InputError(
            f"the weights of rows {low} and {row} are {c[low]:g} and {c[row]:g}, too far apart; make the first one 0"
        )
    return c if FURTHEST < largest < 1 / FURTHEST else np.ldexp(c, -math.frexp(largest)[1])


def _allowed_nu(nu: Any, problem: Problem, weights: Array | None, intercept: str) -> float | None:
    """nu as a float; refused with the allowed range if it leaves no p. A limit that was computed with rounding is corrected."""
    if nu is None:
        return None
    c = np.ones(problem.X.n) if weights is None else weights
    sides = [Fraction(m) * Fraction(2) ** e for m, e in (exact_sum(c[problem.signs == side]) for side in (1, -1))]
    limit = 2 * min(sides) / sum(sides) if intercept == "free" else Fraction(1)
    most = float(limit)
    if Fraction(most) > limit:
        most = math.nextafter(most, 0.0)
    if not (is_number(nu) and 0 < nu <= min(1.0, most * (1 + 1e-12))):
        why = f": twice the share of the lighter class, {problem.classes[int(sides[0] < sides[1])]!r}" if most < 1 else ""
        raise InputError(f"nu is {nu!r}; for this data it must be in (0, {most:.6g}]{why}")
    return min(float(nu), most)


def _caps(weights: Array | None, n: int, nu: float) -> Array:
    """c_i/(νΣc); 1 is enough for any."""
    c = np.ones(n) if weights is None else weights
    total = nu * math.fsum(c.tolist())  # a list is gone through in a quarter of the time
    with np.errstate(over="ignore"):
        return np.minimum(c / total, 1.0) if total > 0 else np.ones(n)
