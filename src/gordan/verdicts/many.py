"""Many label vectors for one X: `separate`, `maximize_margin` and `minimize_loss` for each column of a table of labels.

Answers are arrays; the result of a single column is made when it is asked for. Small problems are looked at together
(`solve.batches`), and what that leaves open, or what is too large for it, is asked one after the other, of the same X.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Generic, TypeVar, overload

import numpy as np

from gordan.arrays import Array, require_aligned
from gordan.blas import blas_threads
from gordan.certificates import Certificate
from gordan.certificates.data import About
from gordan.certificates.losses import Objective, Optimum
from gordan.certificates.matrix import Matrix
from gordan.certificates.optima import Objectives
from gordan.certificates.problem import Problem, read_label_table
from gordan.certificates.regions import Place
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Proof
from gordan.ledger.optimum import LossEvidence, LossQuestion
from gordan.ledger.question import Budget, Play
from gordan.ledger.table import TableEvidence
from gordan.rows import available, column_names, in_threads, stored
from gordan.solve import batches
from gordan.statuses import Status
from gordan.verdicts import loss as losses
from gordan.verdicts import margin as margins
from gordan.verdicts.loss import LossResult
from gordan.verdicts.result import MarginResult
from gordan.verdicts.separate import Verdict, verdict_of
from gordan.verdicts.telling import Witness
from gordan.verdicts.weights import weight_factors

# What a plane of `separate` may be short of the widest: its margin is known to about a tenth, in less than half of the steps.
ROUGH = 0.1
# Of the tolerance, what the gap of planes that are looked for together is brought to.
SHARE = 0.2
# Products with all rows in a step of those who find planes together.
PASSES = 3
# Of the time, what planes are looked for together, in memory, where what is left is looked for one by one, and elsewhere.
FOUND_TOGETHER, FOUND_BY_PASSES = 0.5, 0.9
# Seconds below which what is then left is too little for a proof and places by passes.
PROVED_BY_PASSES = 1.0
# Stored entries of sparse rows from which label vectors are solved on all cores at a time: with fewer a pass takes so little time
# that threads wait for each other's Python.
BUSY = 1 << 18
# Entries of X times planes that are proved at a time, on either kind of machine: a second's work or less.
MOST_PROVED = {"host": 1 << 26, "device": 1 << 37}

STATUSES = {status.value: status for status in Status}

One = TypeVar("One", Verdict, MarginResult, LossResult)


@dataclass(frozen=True, eq=False)
class Many(Sequence[One], Generic[One]):
    """The results for the columns of a table of labels, in their order: a sequence of what a call with one column returns.

    `status` has a word for each, `w` (d × k) and `b` (k) the planes, NaN where there is none. `seconds` are those of the call.
    """

    status: Array
    w: Array
    b: Array
    seconds: float
    _made: dict[int, One] = field(repr=False)
    _make: Callable[[int], One] = field(repr=False)

    def __len__(self) -> int:
        return len(self.status)

    @overload
    def __getitem__(self, j: int) -> One: ...
    @overload
    def __getitem__(self, j: slice) -> list[One]: ...
    def __getitem__(self, j: int | slice) -> One | list[One]:
        """The result of column j, made when it is first asked for; or those of several."""
        if isinstance(j, slice):
            return [self[at] for at in range(*j.indices(len(self)))]
        at = range(len(self))[j]
        if at not in self._made:
            self._made[at] = self._make(at)
        return self._made[at]

    def __iter__(self) -> Iterator[One]:
        return (self[j] for j in range(len(self)))

    def __repr__(self) -> str:
        words, counts = np.unique(self.status, return_counts=True)
        each = ", ".join(f"{count:,} {word}" for word, count in zip(words.tolist(), counts.tolist(), strict=True))
        return f"{len(self):,} label vectors in {self.seconds:.2g} s: {each or 'none'}"


@dataclass(frozen=True, eq=False, repr=False)
class ManyVerdicts(Many[Verdict]):
    """What `separate` says of each column: `margin` (k × 2) has a certified interval for each."""

    margin: Array

    @staticmethod
    def of(
        X: Any,
        Y: Any,
        device: str | None,
        budget: Budget,
        kind: Intercept,
        tol: float,
        callback: Callable[[Verdict], object] | None,
    ) -> ManyVerdicts:
        """The verdicts on all columns of Y."""
        problem, signs = _read(X, Y, device)
        problem.require_finite()
        columns = _Columns[Verdict](problem, signs, kind, budget)
        columns.settle_one_sign()
        if callback is None:
            columns.search(ROUGH)

        def decided(j: int) -> Verdict:
            proof, margin, share = columns.proof(j, "separator"), columns.margin(j), columns.share
            status = Status.SEPARABLE if proof.witness is None else Status.NOT_SEPARABLE
            return Verdict(status, *columns.plane(j), margin, proof.witness, share, proof.proof, columns.problem(j))

        for j in columns.left():
            part, rows = columns.problem(j).counted()
            found = verdict_of(part, kind, tol, columns.own_budget(), columns.stopping(callback))
            columns.keep(j, found if rows is None else _whole(found, rows, columns.problem(j)))
        for j in columns.left(begin=False):
            columns.keep(j, Verdict(Status.UNDECIDED, None, None, (0.0, math.inf), None, 0.0, None, columns.problem(j)))
        words = columns.words(Status.SEPARABLE)
        return ManyVerdicts(words, columns.w, columns.b, columns.seconds, columns.made, decided, columns.margins)


@dataclass(frozen=True, eq=False, repr=False)
class ManyMargins(Many[MarginResult]):
    """What `maximize_margin` says of each column: `margin` (k × 2) has a certified interval for each."""

    margin: Array

    @staticmethod
    def of(
        X: Any,
        Y: Any,
        device: str | None,
        budget: Budget,
        asked: margins.Asked,
        sample_weight: Any,
        start: Any,
        checkpoint: Any,
    ) -> ManyMargins:
        """The largest margins of all columns of Y."""
        problem, signs = _read(X, Y, device)
        starts = _starts(start, signs.shape[1])
        if checkpoint is not None:
            raise InputError("a checkpoint is for one label vector; leave it out, or pass the columns of Y one by one")
        columns = _Columns[MarginResult](problem, signs, asked.kind, budget)
        sample = _sample(sample_weight, problem)
        if asked.nu is None:
            columns.settle_one_sign()
        if _together(asked) and sample is None and starts is None:
            problem.require_finite()
            columns.search(SHARE * asked.tol, asked.tol)
        made = partial(_margin_together, columns, asked)
        asked = asked._replace(watch=columns.stopping(asked.watch))
        for j in columns.left():
            part, rows = columns.problem(j).counted()
            weights, first = _of_rows(sample, rows), _of_rows(_first_weights(starts, j), rows)
            with _named(j):
                found = margins.margin_of(part, columns.own_budget(), asked, weights, first)
            columns.keep(j, found if rows is None else _whole(found, rows, columns.problem(j)))
        for j in columns.left(begin=False):
            columns.keep(j, _not_begun(columns.problem(j), asked, columns.end))
        words = columns.words(Status.SOLVED)
        return ManyMargins(words, columns.w, columns.b, columns.seconds, columns.made, made, columns.margins)


def _together(asked: margins.Asked) -> bool:
    """Whether margins of this kind are looked for in all columns at once."""
    hard = asked.class_weight is None and asked.nu is None and asked.norm == 2 and asked.noise[0] == 0
    return hard and asked.plays_auto and asked.watch is None


def margins_together(
    X: Any, Y: Array, kind: Intercept, tol: float, budget: Budget, *, all_or_none: bool
) -> tuple[dict[int, MarginResult], list[int]]:
    """The largest margins, within `tol`, of columns of Y that are found to be separable together, and which seem not to be:
    a proof with few rows is left to a call with such a column. With `all_or_none` there are no margins then."""
    columns = _Columns[MarginResult](*_read(X, Y, None), kind, budget)
    without = columns.search(SHARE * tol, tol, all_or_none=all_or_none)
    decided = np.flatnonzero(~columns.open & np.isfinite(columns.b)).tolist()
    columns.share = (time.perf_counter() - budget.started) / max(1, len(decided))
    asked = margins.Asked(kind, 2.0, None, "auto", tol, None, None)
    return {j: _margin_together(columns, asked, j) for j in decided}, without


def about_part(found: MarginResult, problem: Problem, rows: Array | None) -> MarginResult:
    """The result of a column that is separable as one about the rows alone that count in it (None: all), which are `problem`."""
    proof, p = found._proof, found.p
    assert p is not None
    assert proof.p is not None
    head = replace(proof.head, classes=problem.classes, shape=(problem.X.n, problem.X.d))
    return replace(found, p=_of_rows(p, rows), _proof=Proof(head, proof.w, _of_rows(proof.p, rows)), _problem=problem)


def _first_weights(starts: Any, j: int) -> Any:
    """The p that column j begins with, if one was passed."""
    given = None if starts is None else starts[j]
    return given.p if isinstance(given, MarginResult) else given


def _of_rows(values: Any, rows: Array | None) -> Any:
    """Those of the rows, if these are not all."""
    return values if rows is None or values is None else values[rows]


def _margin_together(columns: _Columns[MarginResult], asked: margins.Asked, j: int) -> MarginResult:
    """The result of a column that was decided together with others."""
    proof, (w, b) = columns.proof(j, "bracket"), columns.plane(j)
    p, rounds = proof.proof.p, 0 if columns.evidence is None else int(columns.evidence.rounds[j])
    return replace(
        _not_begun(columns.problem(j), asked, Status.SOLVED if proof.witness is None else Status.NOT_SEPARABLE),
        n_iter=rounds,
        passes=float(PASSES * rounds),
        w=w,
        b=b,
        p=None if p is None else p / p.sum(),
        margin=columns.margin(j),
        stated_witness=proof.witness,
        seconds=columns.share,
        _proof=proof.proof,
    )


@dataclass(frozen=True, eq=False, repr=False)
class ManyLosses(Many[LossResult]):
    """What `minimize_loss` says of each column: `objective` (k × 2) has a certified interval for each.

    It is (0, inf) for a column that was not begun in time; the single result then is that of w = 0.
    """

    objective: Array

    @staticmethod
    def of(X: Any, Y: Any, device: str | None, budget: Budget, asked: losses.Asked, sample_weight: Any, start: Any) -> ManyLosses:
        """The planes of least loss of all columns of Y."""
        problem, signs = _read(X, Y, device)
        starts = _starts(start, signs.shape[1])
        one = np.flatnonzero(_of_one_sign(signs))
        if len(one):
            raise InputError(f"Y[:, {int(one[0])}] has labels of one sign only; both are needed: leave out that column")
        sample = _sample(sample_weight, problem)
        columns = _Columns[LossResult](problem, signs, asked.kind, budget)

        asked = asked._replace(watch=columns.stopping(asked.watch))

        def question(j: int) -> LossQuestion:
            with _named(j):
                return losses.question_of(
                    columns.problem(j), columns.own_budget(), asked, sample, None if starts is None else starts[j]
                )

        planes, steps, search = None, np.zeros(signs.shape[1], np.int64), budget
        c = np.full(problem.X.n, asked.C) if sample is None else asked.C * sample  # weights of classes come later
        table = Objectives(problem.X, problem.storage.to_storage(signs, "Y"), asked.loss, c, asked.kind)
        if asked.watch is None and starts is None and budget.max_iter is None:
            problem.require_finite()
            try:
                search = _of_the_search(budget, problem.storage.in_memory)
                planes, steps, table = batches.least_losses(problem, signs, table, asked.tol, search)
            except KeyboardInterrupt:
                columns.stopped = True
        optima: dict[int, Optimum] = {}
        if planes is not None and asked.class_weight is None:  # whose weights differ from one column to the next
            optima = columns.prove(planes, table, asked.tol)
        if not problem.storage.in_memory and planes is not None and asked.class_weight is None:  # one by one would take no less
            columns.status[columns.open] = (columns.end if search.short else Status.NO_PROGRESS).value
            columns.open[:] = False

        def solved(j: int, busy: bool) -> LossResult:
            own = question(j)
            play = own.play if planes is None or not np.isfinite(planes[j]).all() else replace(own.play, start=planes[j])
            if busy:
                own = replace(own, budget=replace(own.budget, threads=1))
                play = replace(play, watch=lambda moment: columns.stopped)
            return losses.result_of(replace(own, play=play), steps=int(steps[j]))

        columns.solve(solved, asked.watch is None)

        @cache
        def places() -> dict[int, Place]:
            losses.require_unchanged(problem)
            own = np.array([*optima])
            some = table.columns(own)
            return dict(zip(optima, some.places([*optima.values()], columns.b[own]), strict=True))

        def made(j: int) -> LossResult:
            if j not in optima:
                evidence = LossEvidence(question(j))
                return replace(losses.result_of(evidence.question, evidence, int(steps[j])), status=STATUSES[words[j]])
            own = columns.problem(j)
            objective = Objective(own.X, own.signs, asked.loss, c if own.signs.all() else c * abs(own.signs), asked.kind)
            head = losses.head_of(own, asked, sample)
            evidence = LossEvidence(
                LossQuestion(own, objective, budget, asked.tol, Play(), head),
                *columns.plane(j),
                optima[j].rows,
                optima[j].weights,
                optima[j],
            )
            result = losses.result_of(evidence.question, evidence, int(steps[j]))
            return replace(result, status=STATUSES[words[j]], seconds=columns.share, _placed=lambda: places()[j])

        for j in columns.left(begin=False):
            columns.status[j] = columns.end.value
        words = columns.words(Status.SOLVED)
        return ManyLosses(words, columns.w, columns.b, columns.seconds, columns.made, made, columns.margins)


def _of_the_search(budget: Budget, in_memory: bool) -> Budget:
    """The budget of the search for planes that are proved together."""
    now, share = time.perf_counter(), FOUND_TOGETHER if in_memory else FOUND_BY_PASSES
    if (1 - share) * (budget.deadline - now) < PROVED_BY_PASSES:
        share = FOUND_TOGETHER
    return replace(budget, deadline=min(budget.deadline, (1 - share) * now + share * budget.deadline))


# ---- the columns of a table ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Proved:
    """A proof, and the witness that it is of."""

    proof: Proof
    witness: Witness | None


class _Columns(Generic[One]):
    """The columns of a table of signs, and what is known of each: results that were `made`, and what was decided together."""

    def __init__(self, problem: Problem, signs: Array, kind: Intercept, budget: Budget) -> None:
        self.whole, self.signs, self.kind, self.budget = problem, signs, kind, budget
        k = signs.shape[1]
        self.w, self.b = np.full((problem.X.d, k), math.nan), np.full(k, math.nan)
        self.margins, self.open = np.column_stack((np.zeros(k), np.full(k, math.inf))), np.ones(k, dtype=bool)
        self.status = np.full(k, "", dtype=f"<U{max(map(len, Status))}")
        self.made: dict[int, One] = {}
        self.evidence: TableEvidence | None = None
        self.stopped = False
        self.seconds = self.share = 0.0

    def settle_one_sign(self) -> None:
        """Columns of one sign are separable with a free intercept: any b of that sign, and w = 0, at any distance."""
        one = np.flatnonzero(_of_one_sign(self.signs))
        if self.kind.grouped and len(one):
            self.w[:, one], self.b[one] = 0.0, np.where((self.signs[:, one] > 0).any(axis=0), 1.0, -1.0)
            self.margins[one], self.open[one] = math.inf, False

    def search(self, enough: float, tol: float = math.inf, *, all_or_none: bool = False) -> list[int]:
        """Decide all columns together where rows are few; what is wider than `tol` stays open, and with `all_or_none` everything
        if one column seems to have no plane. Those columns are returned."""
        without: Array = np.empty(0, np.int64)
        if not self.open.any() or not batches.applies(self.whole, self.kind):
            return []
        plain = self.whole.storage.plain()
        X = np.array(plain.toarray() if self.whole.storage.sparse else plain, order="C")
        self.evidence = evidence = TableEvidence(self.whole, self.signs, self.kind, X)
        try:
            with blas_threads(self.whole.storage.entries):
                without = batches.search(evidence, np.flatnonzero(self.open), self.budget, enough, all_or_none=all_or_none)
        except KeyboardInterrupt:
            self.stopped = True
        with np.errstate(invalid="ignore"):
            narrow = (evidence.upper - evidence.lower <= tol * evidence.upper) & ((evidence.upper < math.inf) | (tol == math.inf))
        done = evidence.decided & (~evidence.separable | narrow)
        self.w[:, done], self.b[done] = evidence.planes[:, done], evidence.b[done]
        self.margins[done] = np.column_stack((evidence.lower, evidence.upper))[done]
        self.open &= ~done
        return [*map(int, without)]

    def prove(self, planes: Array, objectives: Objectives, tol: float) -> dict[int, Optimum]:
        """What these planes prove about the least losses of all columns, while there is time; those within `tol` are settled."""
        found: dict[int, Optimum] = {}
        storage, worst = self.whole.storage, float(np.sum(objectives.c)) * objectives.loss.at_zero(2) * losses.NO_BETTER
        size = max(1, MOST_PROVED["device" if storage.on_device else "host"] // storage.entries)
        able = np.flatnonzero(np.isfinite(planes).all(axis=1))
        for lo in range(0, len(able), size):
            # one by one, as w = 0 would be proved where the time is up, takes longer than one pass for all of them
            if self.stopped or (self.budget.spent and (lo > 0 or storage.in_memory)):
                break
            own = able[lo : lo + size]
            whole = len(own) == len(planes)
            W, b = self.kind.plane_of((planes if whole else planes[own]).T)
            b = np.zeros(len(own)) + b
            some = objectives if whole else objectives.columns(own)
            for j, w, offset, optimum in zip(own.tolist(), W.T, b, some.enclose(W, b), strict=True):
                if optimum.upper <= worst:
                    found[j] = optimum
                    self.w[:, j], self.b[j], self.margins[j] = w, offset, (optimum.lower, optimum.upper)
                    self.open[j] = optimum.relative_width > tol
        return found

    def left(self, *, begin: bool = True) -> Iterator[int]:
        """The columns that are open; those that work is to be begun for while there is time."""
        for j in np.flatnonzero(self.open).tolist():
            if begin and (self.stopped or self.budget.spent):
                return
            yield j

    def solve(self, solved: Callable[[int, bool], One], unwatched: bool) -> None:
        """Keep what is found for each column that is open: on all cores where rows are sparse, in memory and so many that threads
        need not wait for each other's Python. `solved` is told whether others are at work."""
        storage, threads = self.whole.storage, self.budget.threads or available()
        busy = unwatched and threads > 1 and storage.in_memory and storage.sparse and storage.entries >= BUSY
        left, keeping, over = np.flatnonzero(self.open).tolist(), threading.Lock(), False

        def work(at: int, _: int) -> None:
            if self.stopped or self.budget.spent:
                return
            try:
                found = solved(left[at], busy)
            except BaseException:
                self.stopped = True  # others end soon
                raise
            with keeping:
                if not over:
                    self.keep(left[at], found)

        try:
            with blas_threads(0 if busy else storage.entries):  # around all of them: it sets a number that the process has once
                in_threads(work, [(at, at + 1) for at in range(len(left))], threads if busy else 1)
        except KeyboardInterrupt:  # while this thread waits for another
            with keeping:
                self.stopped = over = True

    def stopping(self, callback: Callable[[Any], object] | None) -> Callable[[Any], object] | None:
        """The callback, which ends the whole call by returning True."""

        def watched(moment: Any) -> object:
            self.stopped = bool(callback is not None and callback(moment))
            return self.stopped

        return None if callback is None else watched

    def own_budget(self) -> Budget:
        """The budget of one column: the deadline is that of the call."""
        return replace(self.budget, started=time.perf_counter())

    @property
    def end(self) -> Status:
        """Why columns were not begun."""
        return Status.INTERRUPTED if self.stopped else Status.TIME_LIMIT

    def keep(self, j: int, found: Any) -> None:
        """The result of a column."""
        self.made[j], self.open[j] = found, False
        self.stopped |= found.status is Status.INTERRUPTED
        self.status[j] = found.status.value
        self.margins[j] = found.objective if isinstance(found, LossResult) else found.margin
        if found.w is not None:
            self.w[:, j], self.b[j] = found.w, found.b

    def words(self, proved: Status) -> Array:
        """The status of every column, at the end of the call: `proved` for a plane that was found together with others."""
        self.seconds = time.perf_counter() - self.budget.started
        self.share = self.seconds / max(1, len(self.status))
        together = self.status == ""
        none = self.margins[:, 1] == 0
        return np.where(together, np.where(none, Status.NOT_SEPARABLE.value, proved.value), self.status)

    # ---- a column that was decided together with others -----------------------------------------------------------------

    def problem(self, j: int) -> Problem:
        """The problem of column j, with signs of 0 for rows that are left out."""
        return replace(self.whole, signs=np.ascontiguousarray(self.signs[:, j]))

    def margin(self, j: int) -> tuple[float, float]:
        """Its interval."""
        lower, upper = self.margins[j].tolist()
        return lower, upper

    def plane(self, j: int) -> tuple[Array | None, float | None]:
        """Its plane, if there is one."""
        return (self.w[:, j].copy(), float(self.b[j])) if np.isfinite(self.b[j]) else (None, None)

    def proof(self, j: int, kind: Any) -> _Proved:
        """Its proof. That labels of one sign are separable is said by w = 0 and b alone."""
        if self.evidence is None or not self.evidence.decided[j]:
            head = Certificate(
                "separator", self.kind.value, self.whole.classes, (self.whole.X.n, self.whole.X.d), b=float(self.b[j])
            )
            return _Proved(Proof(head, self.w[:, j].copy()), None)
        proof = self.evidence.proof(j, kind)
        if self.evidence.separable[j]:
            return _Proved(proof, None)
        return _Proved(proof, Witness.of(proof.head, self.signs[:, j], proof.within))


def _of_one_sign(signs: Array) -> Array:
    """Which columns have no row of one of the signs."""
    return np.asarray((signs.max(axis=0, initial=0) <= 0) | (signs.min(axis=0, initial=0) >= 0))


class _named:
    """Within: what is refused is said of this column."""

    def __init__(self, j: int) -> None:
        self.j = j

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, InputError):
            raise InputError(f"Y[:, {self.j}]: {error}") from None


def _read(X: Any, Y: Any, device: str | None) -> tuple[Problem, Array]:
    """X as proofs read it, with the classes of all label vectors, and these as columns of signs."""
    storage = stored(X, device)
    classes, signs = read_label_table(Y, storage.n)
    require_aligned(X=X, Y=Y)
    names = column_names(X, storage.d)
    about = About(columns=None if names is None else tuple(names))
    return Problem(Matrix(storage), np.ones(storage.n, np.int8), classes, about=about).nearby().watched(X), signs


def _sample(sample_weight: Any, problem: Problem) -> Array | None:
    """Sample weights, one for each row; None where there are none."""
    return weight_factors(sample_weight, None, problem.classes, np.zeros(problem.X.n, np.intp))[0]


def _starts(start: Any, k: int) -> Any:
    """The earlier results to start from, one for each column; None where there are none."""
    if start is None:
        return None
    if not isinstance(start, (Many, list)) or len(start) != k:
        raise InputError(f"start is {start!r:.60}; pass what an earlier call returned for {k} label vectors, or None")
    return start


def _whole(found: Any, rows: Array, problem: Problem) -> Any:
    """The result for some rows as one about all rows, of which the others are left out."""
    proof, n = found._proof, problem.X.n
    changes: dict[str, Any] = {"_problem": problem}
    if proof is not None:
        head = proof.head
        weights = head.sample_weight
        if weights is not None:
            weights = tuple(_spread(np.array(weights), rows, n).tolist())
        head = replace(
            head, shape=(n, problem.X.d), rows=tuple(rows[[*head.rows]].tolist()) if head.rows else (), sample_weight=weights
        )
        changes["_proof"] = Proof(head, proof.w, None if proof.p is None else _spread(proof.p, rows, n))
    stated = found.stated_witness
    if stated is not None:
        changes["stated_witness"] = replace(stated, rows=tuple(rows[[*stated.rows]].tolist()))
    if isinstance(found, MarginResult) and found.p is not None:
        changes["p"] = _spread(found.p, rows, n)
    return replace(found, **changes)


def _spread(values: Array, rows: Array, n: int) -> Array:
    whole = np.zeros(n)
    whole[rows] = values
    return whole


def _not_begun(problem: Problem, asked: margins.Asked, status: Status) -> MarginResult:
    """What is known without looking: nothing."""
    shape = problem.X.n, problem.X.d
    head = Certificate("bracket", asked.kind.value, problem.classes, shape, lower=0.0, upper=math.inf, norm=asked.norm)
    head = replace(head, robust=asked.noise[0], robust_norm=asked.noise[1])
    return MarginResult(
        status=status,
        w=None,
        b=None,
        p=None,
        margin=(0.0, math.inf),
        stated_witness=None,
        norm=asked.norm,
        robust=asked.noise[0],
        robust_norm=asked.noise[1],
        nu=asked.nu,
        intercept=asked.kind.value,
        n_iter=0,
        passes=0.0,
        seconds=0.0,
        trace=None,
        _proof=Proof(head),
        _problem=problem,
    )
