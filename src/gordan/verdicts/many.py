"""Many label vectors for one X: `separate`, `maximize_margin` and `minimize_loss` for each column of a table of labels.

The answers are arrays, and the result of a single column is constructed on first access. Small problems are solved together
(`solve.batches`); columns that this leaves open, and larger problems, are solved one after the other with the same X.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np

from gordan.arrays import Array, as_dense, require_aligned
from gordan.blas import blas_threads
from gordan.certificates import Certificate
from gordan.certificates.data import About
from gordan.certificates.losses import Objective, Optimum
from gordan.certificates.matrix import Matrix
from gordan.certificates.optima import Objectives
from gordan.certificates.problem import Problem, read_label_table
from gordan.certificates.regions import Place, region_of
from gordan.errors import InputError, input_errors
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Proof
from gordan.ledger.optimum import LossEvidence, LossQuestion, LossSubject
from gordan.ledger.question import Budget, Play
from gordan.ledger.table import TableEvidence
from gordan.rows import available, column_names, in_threads, stored
from gordan.solve import batches
from gordan.solve.loss_newton import Interrupted
from gordan.statuses import Status
from gordan.verdicts.arguments import AUTO
from gordan.verdicts.loss import (
    USELESS,
    LossOptions,
    LossResult,
    head_of,
    plane_of_start,
    question_of,
    require_unchanged,
    result_of,
)
from gordan.verdicts.margin import MarginOptions, margin_of
from gordan.verdicts.result import MarginResult
from gordan.verdicts.separate import Verdict, verdict_of
from gordan.verdicts.weights import scatter, weight_factors
from gordan.verdicts.witnesses import Witness

# The relative width of the interval at which `separate` stops a plane: it needs half the steps of a narrow one, or fewer.
ROUGH_WIDTH = 0.1
# Columns that are solved together are solved to this share of the tolerance, so that the proof is within it.
SEARCH_SHARE = 0.2
# Products with all rows in a step of the search for several planes.
PASSES_PER_STEP = 3
# The share of the time for finding planes of several columns together: if X is in memory, what is left open is then solved column
# by column; otherwise the rest is for proofs, unless that would be less than PROOF_SECONDS.
SEARCH_TIME_IN_MEMORY, SEARCH_TIME_OUTSIDE_MEMORY, PROOF_SECONDS = 0.5, 0.9, 1.0
# If there is a time limit, columns have equal shares of it; the time that some leave is given to the others, this many times.
FAIR_ROUNDS = 4
# Stored entries of sparse rows from which columns are solved in parallel: with fewer a pass takes so little time that threads
# wait for each other's Python.
PARALLEL_ENTRIES = 1 << 18
# Entries of X times planes that are proved at a time, by the kind of machine: a second's work or less.
MAX_PROVED = {"host": 1 << 26, "device": 1 << 37}

# `Status(word)` does the same, but type checkers do not accept it.
STATUSES = {status.value: status for status in Status}

One = TypeVar("One", Verdict, MarginResult, LossResult)


@dataclass(frozen=True, eq=False)
class Many(Sequence[One], Generic[One]):
    """The results for k label vectors: a sequence of the results for each, with arrays of their parts.

    `many[j]` is what a call with column j alone returns; it is constructed on first access.
    """

    status: Array
    w: Array
    b: Array
    seconds: float
    _results: dict[int, One] = field(repr=False)
    _construct: Callable[[int], One] = field(repr=False)

    def __len__(self) -> int:
        return len(self.status)

    @overload
    def __getitem__(self, j: int) -> One: ...
    @overload
    def __getitem__(self, j: slice) -> list[One]: ...
    def __getitem__(self, j: int | slice) -> One | list[One]:
        """Return the result of column j, or a list of results for a slice."""
        if isinstance(j, slice):
            return [self[at] for at in range(*j.indices(len(self)))]
        at = range(len(self))[j]
        if at not in self._results:
            self._results[at] = self._construct(at)
        return self._results[at]

    def __iter__(self) -> Iterator[One]:
        return (self[j] for j in range(len(self)))

    def __repr__(self) -> str:
        statuses, counts = np.unique(self.status, return_counts=True)
        each = ", ".join(f"{count:,} {status}" for status, count in zip(statuses.tolist(), counts.tolist(), strict=True))
        return f"{len(self):,} label vectors in {self.seconds:.2g} s: {each or 'none'}"


@dataclass(frozen=True, eq=False, repr=False)
class ManyVerdicts(Many[Verdict]):
    """The answer of `separate` for k label vectors: a sequence of k verdicts, with arrays of their parts.

    `many[j]` is the `Verdict` that a call with column j alone returns; it is constructed on first access.

    Attributes
    ----------
    status : ndarray of str, of shape (k,)
        The status of each verdict.
    margin : ndarray of shape (k, 2)
        The certified intervals for the largest margins.
    w : ndarray of shape (d, k)
        The coefficients of the planes, NaN where there is none.
    b : ndarray of shape (k,)
        Their intercepts, NaN where there is no plane.
    seconds : float
        The wall-clock time of the whole call.

    Examples
    --------
    >>> import gordan
    >>> many = gordan.separate([[0.0], [1.0], [2.0]], [[False, True], [False, False], [True, True]])
    >>> many.status.tolist(), many[0].separable
    (['separable', 'not-separable'], True)
    """

    margin: Array


@dataclass(frozen=True, eq=False, repr=False)
class ManyMargins(Many[MarginResult]):
    """The answer of `maximize_margin` for k label vectors: a sequence of k results, with arrays of their parts.

    `many[j]` is the `MarginResult` for column j. The attributes are those of `ManyVerdicts`.
    """

    margin: Array


@dataclass(frozen=True, eq=False, repr=False)
class ManyLosses(Many[LossResult]):
    """The answer of `minimize_loss` for k label vectors: a sequence of k results, with arrays of their parts.

    `many[j]` is the `LossResult` for column j. The attributes are those of `ManyVerdicts`, but for one.

    Attributes
    ----------
    objective : ndarray of shape (k, 2)
        The certified intervals for the least values, in place of `margin`; (0, inf) for a column that was not started in time,
        whose single result is that of w = 0.
    """

    objective: Array


def separate_many(
    X: Any,
    Y: Any,
    device: str | None,
    budget: Budget,
    intercept: Intercept,
    tol: float,
    callback: Callable[[Verdict], object] | None,
) -> ManyVerdicts:
    """Decide for each column of Y whether a plane separates its classes."""
    columns = _Columns[Verdict](*_read(X, Y, device), intercept, budget)
    columns.whole.require_finite()
    columns.settle_one_sign()
    if callback is None:
        columns.search(ROUGH_WIDTH)
    for j in columns.each_open():
        part, rows = columns.problem(j).counted()
        found = verdict_of(part, intercept, tol, columns.own_budget(), columns.stopping(callback))
        columns.record(j, found if rows is None else _about_all_rows(found, rows, columns.problem(j)))
        columns.stopped |= found._stopped
    for j in columns.each_open(in_time=False):
        columns.record(j, Verdict(Status.UNDECIDED, None, None, (0.0, math.inf), None, 0.0, None, columns.problem(j)))
    finished = columns.finished(Status.SEPARABLE)
    construct = partial(_verdict_from_batch, columns, finished.share)
    return ManyVerdicts(*finished, columns.results, construct, columns.intervals)


def maximize_many_margins(
    X: Any, Y: Any, device: str | None, budget: Budget, options: MarginOptions, sample_weight: Any, start: Any, checkpoint: Any
) -> ManyMargins:
    """Find the plane of largest margin for each column of Y."""
    columns = _Columns[MarginResult](*_read(X, Y, device, checkpoint), options.intercept, budget)
    starts, sample = columns.starts(start), columns.sample_weights(sample_weight)
    if options.nu is None:
        columns.settle_one_sign()
    if _suits_batches(options) and sample is None and starts is None:
        columns.whole.require_finite()
        columns.search(SEARCH_SHARE * options.tol, options.tol)
    stoppable = options._replace(callback=columns.stopping(options.callback))
    for j in columns.each_open():
        part, rows = columns.problem(j).counted()
        p = None if starts is None else starts[j]
        p = p.p if isinstance(p, MarginResult) else p
        with input_errors(f"Y[:, {j}]", InputError):
            found = margin_of(part, columns.own_budget(), stoppable, _at(sample, rows), _at(p, rows))
        columns.record(j, found if rows is None else _about_all_rows(found, rows, columns.problem(j)))
    for j in columns.each_open(in_time=False):
        columns.record(j, _not_started(columns.problem(j), options, columns.stop_reason))
    finished = columns.finished(Status.SOLVED)
    construct = partial(_margin_from_batch, columns, options, finished.share)
    return ManyMargins(*finished, columns.results, construct, columns.intervals)


def margins_together(
    X: Any, Y: Array, intercept: Intercept, tol: float, budget: Budget, *, all_or_none: bool
) -> tuple[dict[int, MarginResult], list[int]]:
    """Find the largest margins, within `tol`, of those columns of Y that are separable, solving all columns together.

    Returns them by the number of the column, and the numbers of the columns that do not seem to be separable, for which no
    witness is looked for. With `all_or_none` no margins are returned if there is such a column.
    """
    columns = _Columns[MarginResult](*_read(X, Y, None), intercept, budget)
    without = columns.search(SEARCH_SHARE * tol, tol, all_or_none=all_or_none)
    decided = np.flatnonzero(~columns.open & np.isfinite(columns.b)).tolist()
    share = (time.perf_counter() - budget.started) / max(1, len(decided))
    options = MarginOptions(intercept, 2.0, None, AUTO, tol, None, None)
    return {j: _margin_from_batch(columns, options, share, j) for j in decided}, without


def minimize_many_losses(
    X: Any,
    Y: Any,
    budget: Budget,
    options: LossOptions,
    sample_weight: Any,
    start: Any,
    device: str | None = None,
    checkpoint: Any = None,
) -> ManyLosses:
    """Find the plane of least loss for each column of Y."""
    columns = _Columns[LossResult](*_read(X, Y, device, checkpoint), options.intercept, budget)
    problem, signs = columns.whole, columns.signs
    starts = columns.starts(start)
    one_sign = np.flatnonzero(_have_one_sign(signs))
    if len(one_sign):
        raise InputError(f"Y[:, {int(one_sign[0])}] has labels of one sign only; both are needed: leave out that column")
    sample = columns.sample_weights(sample_weight)
    stoppable = options._replace(callback=columns.stopping(options.callback))
    question = partial(_loss_question, columns, stoppable, sample, starts)
    planes, steps, search = None, np.zeros(signs.shape[1], np.int64), budget
    c = np.full(problem.X.n, options.C) if sample is None else options.C * sample  # without class weights
    table = Objectives(problem.X, problem.storage.to_storage(signs, "Y"), options.loss, c, options.intercept)
    searched = replace(problem, X=table.X.stored_for(problem.X))
    # planes without class weights would only serve as starts for sparse rows, which are solved faster without
    unweighted = options.class_weight is None or not (problem.storage.sparse and problem.storage.in_memory)
    if options.callback is None and starts is None and budget.max_iter is None and unweighted:
        problem.require_finite()
        try:
            search = columns.search_budget
            planes, steps, table = batches.least_losses(searched, signs, table, options.tol, search)
        except Interrupted as stop:
            planes, columns.stopped = stop.planes.T, True
        except KeyboardInterrupt:
            columns.stopped = True
        planes = None if planes is None else searched.X.plane_outward(planes.T).T
    rough, limited = planes, math.isfinite(budget.deadline) and problem.storage.in_memory and budget.max_iter is None
    if planes is None and limited and options.callback is None and not columns.stopped:
        rough = columns.rough_planes(starts, table, searched)
    optima: dict[int, Optimum] = {}
    if rough is not None and options.class_weight is None:  # class weights differ between columns: the table cannot prove those
        prove = partial(columns.prove, rough, table, max(options.tol, options.enough))
        try:
            optima = prove()
        except KeyboardInterrupt:  # what was found is proved all the same, unless there is another one
            columns.stopped = True
            optima = prove()
        if not problem.storage.in_memory:  # column by column it would take as long again
            ended = columns.stopped or search.short
            columns.status[columns.open] = (columns.stop_reason if ended else Status.NO_PROGRESS).value
            columns.open[:] = False

    def solve(j: int, in_parallel: bool) -> LossResult:
        asked = question(j)
        play = asked.play if planes is None or not np.isfinite(planes[j]).all() else replace(asked.play, start=planes[j])
        before = columns.results.get(j)
        if before is not None:
            play = replace(play, start=np.append(before.w, before.b) if options.intercept.exists else before.w)
        asked = replace(asked, budget=columns.fair_budget(in_parallel))
        if in_parallel:
            play = replace(play, watch=lambda moment: columns.stopped)
        return result_of(replace(asked, play=play), steps=int(steps[j]) if before is None else before.n_iter)

    for _ in range(FAIR_ROUNDS):
        columns.solve_each(solve, may_be_parallel=options.callback is None)
        if not columns.reopened():
            break
    for j in columns.each_open(in_time=False):
        columns.status[j] = columns.stop_reason.value
    finished = columns.finished(Status.SOLVED)

    found = _LossesFromTable(columns, options, sample, table, optima, steps, finished, question)
    return ManyLosses(*finished, columns.results, found.result, columns.intervals)


def _loss_question(
    columns: _Columns[LossResult], options: LossOptions, sample: Array | None, starts: Any, j: int
) -> LossQuestion:
    """Return the question about column j alone."""
    with input_errors(f"Y[:, {j}]", InputError):
        start = None if starts is None else starts[j]
        return question_of(columns.problem(j), columns.own_budget(), options, sample, start)


@dataclass(frozen=True, eq=False)
class _LossesFromTable:
    """The results of columns that are not solved one by one. It is a class, not a closure, so that results can be pickled."""

    columns: _Columns[LossResult]
    options: LossOptions
    sample: Array | None
    table: Objectives
    optima: dict[int, Optimum]
    steps: Array
    finished: Finished
    question: Callable[[int], LossQuestion]

    def result(self, j: int) -> LossResult:
        """Return the result of column j."""
        status, steps, options = STATUSES[self.finished.status[j]], int(self.steps[j]), self.options
        if j not in self.optima:
            evidence = LossEvidence(self.question(j))
            return replace(result_of(evidence.question, evidence, steps), status=status)
        part, optimum = self.columns.problem(j), self.optima[j]
        asked = LossQuestion(
            LossSubject(part, self._objective(part), self.columns.budget.threads),
            self.columns.budget,
            options.tol,
            Play(),
            head_of(part, options, self.sample),
        )
        evidence = LossEvidence(asked, *self.columns.plane(j), optimum.rows, optimum.weights, optimum)
        return replace(
            result_of(asked, evidence, steps), status=status, seconds=self.finished.share, _placed=partial(self.place, j)
        )

    def place(self, j: int) -> Place:
        """Return where the minimizer of column j is; nothing is said about a free b* if the time was up before it was solved."""
        if self.finished.status[j] != Status.TIME_LIMIT.value:
            return self._places[j]
        return region_of(self._objective(self.columns.problem(j)), self.optima[j], self.columns.b[j], locate=False).place

    def _objective(self, part: Problem) -> Objective:
        """Return the objective of the problem of one column."""
        c = self.table.c if part.signs.all() else self.table.c * abs(part.signs)
        return Objective(part.X, part.signs, self.options.loss, c, self.options.intercept)

    @cached_property
    def _places(self) -> dict[int, Place]:
        require_unchanged(self.columns.whole)
        proved = np.array([*self.optima])
        return dict(
            zip(proved.tolist(), self.table.columns(proved).places([*self.optima.values()], self.columns.b[proved]), strict=True)
        )


def about_part(found: MarginResult, problem: Problem, rows: Array | None) -> MarginResult:
    """Return the result of a separable column as one about `problem`, which has only the `rows` that it labels (None: all)."""
    proof, p = found._proof, found.p
    assert p is not None
    assert proof.p is not None
    head = replace(proof.head, classes=problem.classes, shape=(problem.X.n, problem.X.d))
    return replace(found, p=_at(p, rows), _proof=Proof(head, proof.w, _at(proof.p, rows)), _problem=problem)


def _suits_batches(options: MarginOptions) -> bool:
    """Return whether margins of this kind can be found for all columns together."""
    is_hard = options.class_weight is None and options.nu is None and options.norm == 2 and options.robust == 0
    return is_hard and options.plays_auto and options.callback is None


def _verdict_from_batch(columns: _Columns[Verdict], seconds: float, j: int) -> Verdict:
    """Return the verdict about a column that was decided together with others, with its share of the seconds of the call."""
    proof, witness = columns.proof(j, "separator")
    status = Status.SEPARABLE if witness is None else Status.NOT_SEPARABLE
    return Verdict(status, *columns.plane(j), columns.interval(j), witness, seconds, proof, columns.problem(j))


def _margin_from_batch(columns: _Columns[MarginResult], options: MarginOptions, seconds: float, j: int) -> MarginResult:
    """Return the result of a column that was decided together with others, with its share of the seconds of the call."""
    (proof, witness), (w, b) = columns.proof(j, "bracket"), columns.plane(j)
    rounds = 0 if columns.evidence is None else int(columns.evidence.rounds[j])
    return replace(
        _not_started(columns.problem(j), options, Status.SOLVED if witness is None else Status.NOT_SEPARABLE),
        n_iter=rounds,
        passes=float(PASSES_PER_STEP * rounds),
        w=w,
        b=b,
        p=None if proof.p is None else proof.p / proof.p.sum(),
        margin=columns.interval(j),
        stated_witness=witness,
        seconds=seconds,
        _proof=proof,
    )


# ---- the columns of a table ---------------------------------------------------------------------------------------------


class Finished(NamedTuple):
    """The status, w and b of all columns, and the seconds of the call."""

    status: Array
    w: Array
    b: Array
    seconds: float

    @property
    def share(self) -> float:
        """The seconds of the call, divided by the number of columns."""
        return self.seconds / max(1, len(self.status))


class _Columns(Generic[One]):
    """The columns of a table of signs, and what is known about each: its result, or what was decided together with others.

    `open` marks the columns that are not yet decided, `intervals` are those of the margins or of the least losses.
    """

    def __init__(self, problem: Problem, signs: Array, intercept: Intercept, budget: Budget) -> None:
        self.whole, self.signs, self.intercept, self.budget = problem, signs, intercept, budget
        k = signs.shape[1]
        self.w, self.b = np.full((problem.X.d, k), math.nan), np.full(k, math.nan)
        self.intervals, self.open = np.column_stack((np.zeros(k), np.full(k, math.inf))), np.ones(k, dtype=bool)
        self.status = np.full(k, "", dtype=f"<U{max(map(len, Status))}")
        self.results: dict[int, One] = {}
        self.evidence: TableEvidence | None = None
        self.stopped = False

    def starts(self, start: Any) -> Any:
        """Return the earlier results to start from, one for each column; None if there are none."""
        k = self.signs.shape[1]
        if start is not None and (not isinstance(start, (Many, list)) or len(start) != k):
            raise InputError(f"start is {start!r:.60}; pass what an earlier call returned for {k} label vectors, or None")
        return start

    def sample_weights(self, sample_weight: Any) -> Array | None:
        """Return the sample weights, one for each row; None if there are none."""
        return weight_factors(sample_weight, None, self.whole.classes, np.zeros(self.whole.X.n, np.intp))[0]

    def settle_one_sign(self) -> None:
        """Settle columns of one sign, which w = 0 and a free intercept of that sign separate at any distance."""
        one = np.flatnonzero(_have_one_sign(self.signs))
        if self.intercept.grouped and len(one):
            self.w[:, one], self.b[one] = 0.0, np.where((self.signs[:, one] > 0).any(axis=0), 1.0, -1.0)
            self.intervals[one], self.open[one] = math.inf, False

    def search(self, enough: float, tol: float = math.inf, *, all_or_none: bool = False) -> list[int]:
        """Decide all open columns together if there are few rows, and return those that do not seem to be separable.

        Each plane is improved until its interval has the relative width `enough`; columns whose interval is wider than `tol`
        stay open. With `all_or_none` all columns stay open if one does not seem to be separable.
        """
        without: Array = np.empty(0, np.int64)
        if not self.open.any() or not batches.applies(self.whole, self.intercept):
            return []
        plain = self.whole.storage.plain()
        X = np.array(as_dense(plain), order="C")
        self.evidence = evidence = TableEvidence(self.whole, self.signs, self.intercept, X)
        try:
            with blas_threads(self.whole.storage.entries):
                without = batches.search(evidence, np.flatnonzero(self.open), self.budget, enough, all_or_none=all_or_none)
        except KeyboardInterrupt:
            self.stopped = True
        with np.errstate(invalid="ignore"):
            narrow = (evidence.upper - evidence.lower <= tol * evidence.upper) & ((evidence.upper < math.inf) | (tol == math.inf))
        done = evidence.decided & (~evidence.separable | narrow)
        self.w[:, done], self.b[done] = evidence.planes[:, done], evidence.b[done]
        self.intervals[done] = np.column_stack((evidence.lower, evidence.upper))[done]
        self.open &= ~done
        return [*map(int, without)]

    def prove(self, planes: Array, objectives: Objectives, tol: float) -> dict[int, Optimum]:
        """Return what these planes prove about the least losses, as far as time allows; columns within `tol` are settled."""
        found: dict[int, Optimum] = {}
        storage, worst = self.whole.storage, float(np.sum(objectives.c)) * objectives.loss.at_zero(2) * USELESS
        size = max(1, MAX_PROVED["device" if storage.on_device else "host"] // storage.entries)
        finite = np.flatnonzero(np.isfinite(planes).all(axis=1) & (planes.any(axis=1) | (not storage.in_memory)))
        for lo in range(0, len(finite), size):
            # planes that are not proved would have been found for nothing: the first ones always are, and the others as long as
            # the overrun of the limit allows; elsewhere than in memory this takes less time than proofs for w = 0, one by one
            if (self.stopped or self.budget.overrun) and lo > 0:
                break
            own = finite[lo : lo + size]
            whole = len(own) == len(planes)
            W, b = self.intercept.plane_of((planes if whole else planes[own]).T)
            b = np.zeros(len(own)) + b
            some = objectives if whole else objectives.columns(own)
            for j, w, offset, optimum in zip(own.tolist(), W.T, b, some.enclose(W, b), strict=True):
                if optimum.upper <= worst:
                    found[j] = optimum
                    self.w[:, j], self.b[j], self.intervals[j] = w, offset, (optimum.lower, optimum.upper)
                    self.open[j] = optimum.relative_width > tol
        return found

    def each_open(self, *, in_time: bool = True) -> Iterator[int]:
        """Iterate over the open columns; with `in_time` only until the call is stopped or its time is up."""
        for j in np.flatnonzero(self.open).tolist():
            if in_time and (self.stopped or self.budget.spent):
                return
            yield j

    def solve_each(self, solve: Callable[[int, bool], One], *, may_be_parallel: bool) -> None:
        """Solve each open column: in parallel if the rows are sparse, in memory and so many that it pays.

        `solve` gets the number of the column and whether others are solved at the same time.
        """
        storage, threads = self.whole.storage, self.budget.threads or available()
        in_parallel = may_be_parallel and threads > 1 and storage.in_memory and storage.sparse
        in_parallel = in_parallel and storage.entries >= PARALLEL_ENTRIES
        open_columns, recording, over = np.flatnonzero(self.open).tolist(), threading.Lock(), False

        def work(at: int, _: int) -> None:
            if self.stopped or self.budget.spent:
                return
            try:
                found = solve(open_columns[at], in_parallel)
            except BaseException:
                self.stopped = True  # so that the others end soon
                raise
            with recording:
                if not over:
                    self.record_best(open_columns[at], found)

        try:
            with blas_threads(0 if in_parallel else storage.entries):  # around all of them: the setting is global to the process
                in_threads(work, [(at, at + 1) for at in range(len(open_columns))], threads if in_parallel else 1)
        except KeyboardInterrupt:  # while this thread waits for another
            with recording:
                self.stopped = over = True

    def stopping(self, callback: Callable[[Any], object] | None) -> Callable[[Any], object] | None:
        """Return the callback such that it stops the whole call by returning True."""

        def watched(moment: Any) -> object:
            self.stopped = bool(callback is not None and callback(moment))
            return self.stopped

        return None if callback is None else watched

    def own_budget(self) -> Budget:
        """Return the budget of one column, whose deadline is that of the call."""
        return replace(self.budget, started=time.perf_counter())

    def fair_budget(self, in_parallel: bool) -> Budget:
        """Return the budget of one column, with an equal share of the time left for each open column."""
        budget, at_once = self.own_budget(), (self.budget.threads or available()) if in_parallel else 1
        share = min(1.0, at_once / max(1, int(self.open.sum())))
        return replace(
            budget,
            deadline=budget.time.sooner(share).at,
            threads=1 if in_parallel else budget.threads,
        )

    def reopened(self) -> bool:
        """Open the columns whose share of the time was too short, if time is left, and return whether there are any."""
        short = [j for j in self.results if self.status[j] == Status.TIME_LIMIT.value]
        if self.stopped or self.budget.spent or not short:
            return False
        self.open[short] = True
        return True

    def rough_planes(self, starts: Any, table: Objectives, searched: Problem) -> Array:
        """Return planes of all columns, which are proved before each column is solved: its start, or one of part of the rows."""
        if starts is not None:
            return np.array([plane_of_start(start, self.intercept, self.whole.X.d) for start in starts])
        found = batches.rough_planes(searched, self.signs, table, self.search_budget)
        return searched.X.plane_outward(found.T).T

    @property
    def search_budget(self) -> Budget:
        """The budget of a search for planes that are then proved together."""
        budget, now, in_memory = self.budget, time.perf_counter(), self.whole.storage.in_memory
        share = SEARCH_TIME_IN_MEMORY if in_memory else SEARCH_TIME_OUTSIDE_MEMORY
        if (1 - share) * (budget.deadline - now) < PROOF_SECONDS:
            share = SEARCH_TIME_IN_MEMORY
        return replace(budget, deadline=min(budget.deadline, (1 - share) * now + share * budget.deadline))

    @property
    def stop_reason(self) -> Status:
        """Why columns were not started."""
        return Status.INTERRUPTED if self.stopped else Status.TIME_LIMIT

    def record(self, j: int, found: Any) -> None:
        """Record the result of column j."""
        self.results[j], self.open[j] = found, False
        self.stopped |= found.status is Status.INTERRUPTED
        self.status[j] = found.status.value
        self.intervals[j] = found.objective if isinstance(found, LossResult) else found.margin
        if found.w is not None:
            self.w[:, j], self.b[j] = found.w, found.b

    def record_best(self, j: int, found: Any) -> None:
        """Record the result of column j, unless a narrower interval is known."""
        lower, upper = self.intervals[j].tolist()
        if isinstance(found, LossResult) and upper - lower < found.objective[1] - found.objective[0]:
            self.status[j], self.open[j] = found.status.value, False
            self.stopped |= found.status is Status.INTERRUPTED
        else:
            self.record(j, found)

    def finished(self, proved: Status) -> Finished:
        """Return what all columns have at the end of the call; columns with a plane from a batch are `proved`."""
        seconds = time.perf_counter() - self.budget.started
        from_batch = np.where(self.intervals[:, 1] == 0, Status.NOT_SEPARABLE.value, proved.value)
        return Finished(np.where(self.status == "", from_batch, self.status), self.w, self.b, seconds)

    # ---- a column that was decided together with others -----------------------------------------------------------------

    def problem(self, j: int) -> Problem:
        """Return the problem of column j, with sign 0 for rows that are left out."""
        return replace(self.whole, signs=np.ascontiguousarray(self.signs[:, j]))

    def interval(self, j: int) -> tuple[float, float]:
        """Return the interval of column j."""
        lower, upper = self.intervals[j].tolist()
        return lower, upper

    def plane(self, j: int) -> tuple[Array | None, float | None]:
        """Return the plane of column j, or None twice if there is none."""
        return (self.w[:, j].copy(), float(self.b[j])) if np.isfinite(self.b[j]) else (None, None)

    def proof(self, j: int, kind: Any) -> tuple[Proof, Witness | None]:
        """Return the proof for column j, and the witness in it. For labels of one sign it is w = 0 and b alone."""
        if self.evidence is None or not self.evidence.decided[j]:
            head = Certificate(
                "separator", self.intercept.value, self.whole.classes, (self.whole.X.n, self.whole.X.d), b=float(self.b[j])
            )
            return Proof(head, self.w[:, j].copy()), None
        proof = self.evidence.proof(j, kind)
        if self.evidence.separable[j]:
            return proof, None
        return proof, Witness.of(proof.head, self.signs[:, j], proof.within)


def _have_one_sign(signs: Array) -> Array:
    """Return which columns lack one of the two signs."""
    return np.asarray((signs.max(axis=0, initial=0) <= 0) | (signs.min(axis=0, initial=0) >= 0))


def _read(X: Any, Y: Any, device: str | None, checkpoint: Any = None) -> tuple[Problem, Array]:
    """Read X, with the classes of all label vectors, and the label vectors as columns of signs; refuse a checkpoint."""
    if checkpoint is not None:
        raise InputError("a checkpoint is for one label vector; leave it out, or pass the columns of Y one by one")
    storage = stored(X, device)
    classes, signs = read_label_table(Y, storage.n)
    require_aligned(X=X, Y=Y)
    names = column_names(X, storage.d)
    about = About(columns=None if names is None else tuple(names))
    return Problem(Matrix(storage), np.ones(storage.n, np.int8), classes, about=about).in_memory_if_small().watched(X), signs


def _at(values: Any, rows: Array | None) -> Any:
    """Return the values at the rows; all of them if `rows` is None."""
    return values if rows is None or values is None else values[rows]


def _about_all_rows(found: Any, rows: Array, problem: Problem) -> Any:
    """Return the result for some rows of X as one about all rows, the others of which are left out."""
    proof, n = found._proof, problem.X.n
    changes: dict[str, Any] = {"_problem": problem}
    if proof is not None:
        head = proof.head
        weights = head.sample_weight
        if weights is not None:
            weights = tuple(scatter(np.array(weights), rows, n).tolist())
        head = replace(
            head, shape=(n, problem.X.d), rows=tuple(rows[[*head.rows]].tolist()) if head.rows else (), sample_weight=weights
        )
        changes["_proof"] = Proof(head, proof.w, None if proof.p is None else scatter(proof.p, rows, n))
    stated = found.stated_witness
    if stated is not None:
        changes["stated_witness"] = replace(stated, rows=tuple(rows[[*stated.rows]].tolist()))
    if isinstance(found, MarginResult) and found.p is not None:
        changes["p"] = scatter(found.p, rows, n)
    return replace(found, **changes)


def _not_started(problem: Problem, options: MarginOptions, status: Status) -> MarginResult:
    """Return the result for a column about which nothing is known."""
    shape, norm = (problem.X.n, problem.X.d), options.norm
    head = Certificate("bracket", options.intercept.value, problem.classes, shape, lower=0.0, upper=math.inf, norm=norm)
    head = replace(head, robust=options.robust, robust_norm=options.robust_norm)
    return MarginResult(
        status=status,
        w=None,
        b=None,
        p=None,
        margin=(0.0, math.inf),
        stated_witness=None,
        norm=norm,
        robust=options.robust,
        robust_norm=options.robust_norm,
        nu=options.nu,
        intercept=options.intercept.value,
        n_iter=0,
        passes=0.0,
        seconds=0.0,
        trace=None,
        _proof=Proof(head),
        _problem=problem,
    )
