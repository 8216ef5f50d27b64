"""A fit of largest margin: the binary problems of some labels, and the plane of each; by a loss if no plane separates.

`MaxMarginClassifier.fit` and `gordan fit` both use it. It does not import scikit-learn, which takes a second.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from gordan.arrays import Array, choose, exponent, is_number, relative_width
from gordan.certificates import Certificate
from gordan.certificates.problem import Problem
from gordan.certificates.regions import Place
from gordan.checkpoint import Checkpoint
from gordan.errors import InputError
from gordan.estimators.least_loss import (
    LossFitting,
    LossParameters,
    SharedParameters,
    check_shared_parameters,
    refusing_unknown_parameters,
)
from gordan.estimators.leave_one_out import leave_one_out_errors
from gordan.estimators.models import build_model, certificates_of, limit_advice, options_of
from gordan.estimators.multiclass import Binary, FitTask
from gordan.intercepts import Intercept
from gordan.io.model import Kind, Model, PlaneFacts
from gordan.io.model import planes as number_of_planes
from gordan.ledger.question import Budget
from gordan.losses import Loss
from gordan.rows import available
from gordan.solve.batches import is_sooner
from gordan.statuses import LIMITS, Status
from gordan.trace import Moment, Trace
from gordan.verdicts import LossResult, MarginResult, Witness, outward
from gordan.verdicts.arguments import AUTO, budget_of, is_auto
from gordan.verdicts.many import about_part, margins_together
from gordan.verdicts.margin import MarginOptions, margin_of
from gordan.verdicts.scaling import scale_hint

CHOICES = {"multi_class": ("ovo", "ovr"), "on_inseparable": ("warn", "raise", "ignore")}
# The values of `multi_class`, and the kinds of models that they give.
KIND_OF_MULTI_CLASS: dict[str, Kind] = {"ovr": "one-vs-rest", "ovo": "one-vs-one"}
# The gap that a fit is brought to at the end, whatever `tol` is.
FINAL_GAP = 1e-9
# The shares of the largest nu that are tried in turn for norms other than 2 if there is no hard margin.
SOFT_SHARES = (0.5, 1.0)
# What is fitted instead for norm 2, and the share of the time after which the search for a separating plane is given up.
LOSS, C, SEARCH_SHARE = Loss.SQUARED_HINGE, 1.0, 0.25
# Without a time limit it is given up after this many multiplications, about a second, and this many for each entry of X, about
# what ten such fits cost, since the finders of the sign decided nothing. Both are counted, so that a fit can be repeated.
MIN_WORK, WORK_PER_ENTRY = 1e10, 1e3
# The leave-one-out error (an estimate, over all problems with at least so many rows) from which classes are called barely
# separable. `benchmarks/accuracy.py --data` counts such fits beside their test accuracy.
BARELY_SEPARABLE, ENOUGH_ROWS = 0.015, 500
# The largest table of signs, rows times problems in bytes, for which margins are found together.
MAX_SIGNS = 1 << 26
# The number of problems that a warning names.
MAX_NAMED = 3


@refusing_unknown_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class Parameters(SharedParameters):
    """The parameters of `MaxMarginClassifier`, whose docstring describes them."""

    nu: float | None = None
    norm: float = 2
    method: Any = AUTO
    multi_class: Literal["ovo", "ovr"] = "ovo"
    on_inseparable: Literal["warn", "raise", "ignore"] = "warn"


def check_parameters(options: Parameters) -> None:
    """Refuse parameters that no binary problem checks."""
    for name, allowed in CHOICES.items():
        choose(name, getattr(options, name), allowed)
    check_shared_parameters(options, most_verbose=2)


@dataclass(frozen=True, eq=False)
class Plane:
    """The plane of one binary problem, as stored in a model file.

    If it is that of least loss, `objective` is the interval of the loss and `place` what is proved about the exact minimizer.
    """

    w: Array
    b: float
    margin: tuple[float, float]
    nu: float | None
    separable: bool | None
    certificate: Certificate | None
    objective: tuple[float, float] | None = None
    place: Place | None = None

    @property
    def loss(self) -> str | None:
        """The loss that was minimized; None for a margin."""
        return None if self.objective is None else LOSS.value

    @property
    def gap(self) -> float:
        """The relative width (upper - lower)/upper of the interval of the objective, or of the margin if there is none."""
        return relative_width(*(self.objective or self.margin))


def model_of(
    kind: Kind,
    classes: Array,
    planes: Sequence[Plane],
    options: Parameters,
    names: Sequence[Any] | None,
    factors: Array | None,
) -> Model:
    """Return the model of these planes; `factors` are the class weights of the fit."""
    nus = [plane.nu for plane in planes]
    nu = nus[0] if len({*nus}) == 1 else options.nu
    by_loss = any(plane.loss is not None for plane in planes)
    return build_model(
        kind,
        classes,
        planes,
        names,
        margins=np.array([plane.margin for plane in planes]),
        norm=float(options.norm),
        nu=None if nu is None else float(nu),
        intercept_kind=options.intercept,
        planes=tuple(
            PlaneFacts(None if plane.nu is None else float(plane.nu), plane.separable, plane.objective) for plane in planes
        ),
        loss=LOSS.value if by_loss else None,
        C=C if by_loss else None,
        options=options_of(options, factors),
    )


def planes_of(model: Model) -> list[Plane]:
    """Return the planes of a model. In files of 0.1 the nu of a plane is in its certificate, and a hard one separates."""
    planes = []
    for k, certificate in enumerate(certificates_of(model)):
        lower, upper = map(float, model.margins[k])
        if model.planes is not None:
            facts = model.planes[k]
        else:
            nu = model.nu if certificate is None else certificate.nu
            facts = PlaneFacts(nu, True if nu is None and lower > 0 else None)
        plane = Plane(model.coef[k], float(model.intercept[k]), (lower, upper), facts.nu, facts.separable, certificate)
        planes.append(replace(plane, objective=facts.objective))
    return planes


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of one binary problem. It holds no reference to X.

    `sentence` is the last result in words; `support` and `dual` are the rows of X of positive weight, and y_i p_i for them;
    `trace` is the run that led to the plane. `stopped` is True if a limit ended the search, `resumed` if it continued from one of
    the `checkpoints`, and `softened` if no separating plane was found, so that another plane was fitted.
    `leave_one_out_errors` is an estimate for hard margins.
    """

    binary: Binary
    plane: Plane
    status: Status
    sentence: str
    witness: Witness | None
    support: Array
    dual: Array
    trace: Trace | None
    n_iter: int
    passes: float
    seconds: float
    stopped: bool
    checkpoints: tuple[Path | None, ...] = ()
    resumed: bool = False
    softened: bool = False
    leave_one_out_errors: int = 0

    @property
    def found(self) -> bool:
        """Whether a plane was found, which it was unless w is 0."""
        return bool(self.plane.w.any())

    @property
    def meets(self) -> bool:
        """Whether the (reduced) hulls of the classes meet as far as is known: no margin is positive, and no limit was reached."""
        return self.plane.loss is None and self.plane.margin[0] <= 0 and not self.stopped

    @property
    def settled(self) -> bool:
        """Whether a longer search would find nothing more, because the hulls meet as far as floats can tell."""
        return not self.stopped and (not self.found or self.status is Status.MARGIN_BELOW_TOL)


class NoPlane(InputError):
    """Error of `on_inseparable="raise"`: no plane separates the classes, or none was found. `outcome` is what is known."""

    def __init__(self, message: str, outcome: Outcome | None = None) -> None:
        super().__init__(message)  # the message alone, from which an error of a worker process is constructed again
        self.outcome = outcome


class Attempt(NamedTuple):
    """The results for a problem at one nu: that of the chosen method, and that after the exact solve."""

    first: MarginResult
    result: MarginResult


@dataclass(frozen=True, eq=False)
class Fitting:
    """A fit of largest margin: the parameters, and what all binary problems share.

    With `hashed` certificates contain the hash of the data, which costs a pass.
    """

    options: Parameters
    task: FitTask
    hashed: bool = False
    interrupted: Callable[[], bool] = bool
    """Whether Ctrl-C was pressed in this fit: problems that were not started by then are left out."""

    @property
    def kind(self) -> Kind:
        """What the planes separate, as in `gordan.io.Model`."""
        if self.task.data.y.ndim == 2:
            return "multilabel"
        return KIND_OF_MULTI_CLASS[self.options.multi_class] if len(self.task.data.classes) > 2 else "binary"

    @property
    def intercept(self) -> Intercept:
        """The kind of intercept."""
        return Intercept.of(self.options.intercept)

    def hard_margins_together(self, problems: Sequence[Binary]) -> tuple[dict[int, MarginResult], list[int]]:
        """Find the hard margins of small problems together, and the order in which to ask for the outcomes of all problems.

        Problems that are not found to be separable in a share of the time are left to `outcome`. If one of several classes is not
        separable from the rest, it comes first, because then no hard margin is needed.
        """
        order = [*range(len(problems))]
        n, counted = self.task.data.X.n, max(len(binary.positive) for binary in problems)
        few = n * len(problems) <= MAX_SIGNS and is_sooner(counted, self.intercept.columns(self.task.data.X.d))
        if len(problems) == 1 or not few or not self._is_plain:
            return {}, order
        signs = np.zeros((n, len(problems)), np.int8, order="F")
        for k, binary in enumerate(problems):
            signs[slice(None) if binary.rows is None else binary.rows, k] = np.where(binary.positive, 1, -1)
        now = time.perf_counter()
        share = 1.0 if self.options.on_inseparable == "raise" else SEARCH_SHARE
        budget = Budget(now, now + share * (self.task.deadline - now), threads=self.task.threads)
        tol, against_rest = min(self.options.tol, FINAL_GAP), self.kind == KIND_OF_MULTI_CLASS["ovr"]
        hard, inseparable = margins_together(self.task.data.X, signs, self.intercept, tol, budget, all_or_none=against_rest)
        first = inseparable[:1] if against_rest else []
        return hard, [*first, *(k for k in order if k not in first)]

    @property
    def _is_plain(self) -> bool:
        """Whether hard margins of norm 2 are asked for, with default options: such problems can be solved together."""
        options, weights = self.options, self.task.data.weights
        hard = options.nu is None and options.norm == 2 and (weights is None or bool(weights.all()))
        unlimited = options.max_iter is None and self.task.checkpoint is None
        return hard and is_auto(options.method) and unlimited and options.verbose <= 1

    def outcomes(
        self,
        problems: Sequence[Binary],
        starts: Iterable[Array] | None = None,
        *,
        solve_all: Callable[..., list[Outcome]] | None = None,
        begin: Callable[[Binary], bool] | None = None,
    ) -> Iterator[tuple[int, Outcome]]:
        """Iterate over the numbers of the problems and their outcomes, as they are found, until no further one is needed.

        `starts` are weights over all rows of X for each problem. `solve_all`, if it is given, calls a function with each of
        several tuples of arguments at the same time. `begin` is called before each problem; returning True ends the iteration.
        """
        hard, order = self.hard_margins_together(problems) if starts is None else ({}, [*range(len(problems))])
        given: Iterable[Array | None] = [None] * len(problems) if starts is None else starts
        asked = ((k, problems[k], start, hard.get(k)) for k, start in zip(order, given, strict=True))
        if solve_all is not None:
            yield from zip(order, solve_all(self.outcome, asked), strict=True)
        elif self.kind == "multilabel":
            yield from enumerate(self._outcomes_of_labels(problems, [*given], hard))
        else:
            for k, binary, start, known in asked:
                if begin is not None and begin(binary):
                    return
                found = self.outcome(k, binary, start=start, hard=known)
                yield k, found
                if self.decides_all(found):
                    return

    def outcome(
        self,
        k: int,
        binary: Binary,
        start: Array | None = None,
        hard: MarginResult | None = None,
        least: LossResult | None = None,
    ) -> Outcome:
        """Find the plane of problem k: of largest margin, or if there is none of least loss (for norms other than 2 a soft one).

        `start` are weights over all rows of X; `hard` is the hard margin if it was found together with others, and `least` the
        plane of least loss if that is to be used instead.
        """
        if hard is None and least is None and self._ends_before(k):
            return self._not_started(binary)
        X = binary.rows_of(self.task.data.X)  # perhaps a copy, made here so that few exist at a time
        checkpoints = self._checkpoints(k)
        resumed = any(path is not None and path.exists() for path in checkpoints)
        tried = [] if least is not None else self._attempts(k, X, binary, start, checkpoints, hard)
        return self._concluded(binary, X, tried, least, checkpoints, resumed)

    def _outcomes_of_labels(
        self, problems: Sequence[Binary], starts: Sequence[Array | None], hard: Mapping[int, MarginResult]
    ) -> list[Outcome]:
        """Find the planes of multilabel y: one for each label, with shared passes for those that need a loss.

        `starts` and `hard` are as for `outcome`.
        """
        none, tried = self._checkpoints(0), {}  # there are no checkpoints for multilabel y
        for k, binary in enumerate(problems):
            if k in hard or not self._ends_before(k):
                tried[k] = self._attempts(k, self.task.data.X, binary, starts[k], none, hard.get(k))
        softened = [k for k, attempts in tried.items() if self._falls_back(attempts[-1].result)]
        if self.interrupted():  # these planes would be found one after the other
            tried, softened = {k: attempts for k, attempts in tried.items() if k not in softened}, []
        found = self._loss_fitting(self.task.data.X).results([problems[k] for k in softened])
        least = dict(zip(softened, found, strict=True))
        return [
            self._concluded(binary, self.task.data.X, tried[k], least.get(k)) if k in tried else self._not_started(binary)
            for k, binary in enumerate(problems)
        ]

    def _concluded(
        self,
        binary: Binary,
        X: Any,
        tried: list[Attempt],
        least: LossResult | None,
        checkpoints: tuple[Path | None, ...] = (),
        resumed: bool = False,
    ) -> Outcome:
        """Return the outcome of these attempts, or of the plane of least loss that is used instead."""
        if least is not None or self._falls_back(tried[-1].result):
            found = self._loss_outcome(binary, X, tried, least)
        else:
            found = self._margin_outcome(binary, X, tried)
        found = replace(found, checkpoints=checkpoints, resumed=resumed)
        if found.meets and self.options.on_inseparable == "raise":
            raise NoPlane(f"{self._problem_message(found)}. {self._advice(binary)}", found)
        if self.options.verbose:
            print(f"[MaxMarginClassifier] {binary.name}: {found.sentence}", flush=True)
        return found

    def decides_all(self, outcome: Outcome) -> bool:
        """Return whether no further outcome is needed: one class against the rest needs a loss, so that all classes use it."""
        return self.kind == KIND_OF_MULTI_CLASS["ovr"] and outcome.plane.loss is not None

    def comparable_outcomes(self, problems: Sequence[Binary], outcomes: Mapping[int, Outcome]) -> list[Outcome]:
        """Return the outcomes of all problems in order, such that their scores can be compared.

        If one class against the rest needed a loss, the other classes are fitted by that loss too; they need no outcome before.
        """
        by_loss = {k: each for k, each in outcomes.items() if each.plane.loss is not None}
        if self.interrupted():
            return [outcomes.get(k) or self._not_started(binary) for k, binary in enumerate(problems)]
        if not any(map(self.decides_all, by_loss.values())):
            return [outcomes[k] for k in range(len(problems))]
        others = [k for k in range(len(problems)) if k not in by_loss]
        results = self._loss_fitting(self.task.data.X).results([problems[k] for k in others])
        for k, least in zip(others, results, strict=True):
            checkpoints = outcomes[k].checkpoints if k in outcomes else ()
            by_loss[k] = replace(self.outcome(k, problems[k], least=least), checkpoints=checkpoints)
        return [by_loss[k] for k in range(len(problems))]

    def _attempts(
        self,
        k: int,
        X: Any,
        binary: Binary,
        start: Array | None,
        checkpoints: Sequence[Path | None],
        hard: MarginResult | None,
    ) -> list[Attempt]:
        """Find the margin at the given nu; if no hard margin is found and the norm is not 2, also softer ones."""
        options, problem = self.options, binary.problem(X)
        if hard is not None:
            hard = about_part(hard, problem, binary.rows)
            return [Attempt(hard, hard)]
        start = start if start is None or binary.rows is None else start[binary.rows]
        if options.nu is not None or options.on_inseparable == "raise":
            return [self._attempt(problem, binary, options.nu, start, checkpoints[0], self.task.deadline)]
        now = time.perf_counter()
        remaining = max(1, number_of_planes(self.kind, len(self.task.data.classes)) - k)
        search_deadline = now + SEARCH_SHARE * (self.task.deadline - now) / remaining
        tried = [self._attempt(problem, binary, None, start, checkpoints[0], search_deadline)]
        first = tried[0].result
        if first.margin[0] > 0 and first.status is Status.TIME_LIMIT:  # the plane separates, and there is time to improve it
            again = first if checkpoints[0] is None else start  # a checkpoint has its own start
            tried.append(self._attempt(problem, binary, None, again, checkpoints[0], self.task.deadline))
        if options.norm != 2:
            for share, path in zip(SOFT_SHARES, checkpoints[1:], strict=True):
                if self._meets(tried[-1].result):
                    nu = share * binary.largest_nu(self.intercept)
                    tried.append(self._attempt(problem, binary, nu, start, path, self.task.deadline))
        return tried

    def _falls_back(self, result: MarginResult) -> bool:
        """Return whether a loss is minimized instead: no plane separates, and neither Ctrl-C nor `max_iter` ended the search."""
        unfinished = result.status is not Status.TIME_LIMIT and self._stopped(result)
        return self._may_fall_back and result.margin[0] <= 0 and not unfinished

    @property
    def _may_fall_back(self) -> bool:
        """Whether a loss is minimized if no plane separates."""
        options = self.options
        return options.nu is None and options.norm == 2 and options.on_inseparable != "raise"

    def _loss_fitting(self, X: Any) -> LossFitting:
        """Return the fit of least loss for problems that are not separable, over these rows."""
        options = self.options
        loss = LossParameters(
            loss=LOSS.value,
            C=C,
            intercept=options.intercept,
            tol=options.tol,
            time_limit=options.time_limit,
            class_weight=options.class_weight,  # for multilabel y; otherwise it is part of the weights
        )
        return LossFitting(loss, replace(self.task, data=replace(self.task.data, X=X), checkpoint=None))

    def _loss_outcome(self, binary: Binary, X: Any, tried: Sequence[Attempt], result: LossResult | None) -> Outcome:
        """Return the outcome for the plane of least loss, after these attempts at a hard margin; `result` if it is known."""
        result = self._loss_fitting(X).result(binary) if result is None else result
        hard = tried[0].result if tried else None
        witness = None if hard is None else self._with_row_numbers(hard.stated_witness, binary)
        signs, threads = np.where(binary.positive, 1.0, -1.0), self.task.threads or available()
        z = X.to_host(X.scores(result.w, result.b, X.to_storage(signs.astype(np.int8), "signs"), threads))
        alpha = C * LOSS.weight(np.asarray(z, dtype=np.float64)) * (1.0 if binary.weights is None else binary.weights)
        support = np.flatnonzero(alpha)
        plane = Plane(
            result.w,
            result.b,
            (0.0, math.inf) if hard is None else hard.margin,
            None,
            None if witness is None else False,
            result.certificate if self.hashed else result.bare_certificate,
            result.objective,
            result._located.place if self.hashed else None,
        )
        runs = _runs(tried)
        return Outcome(
            binary=binary,
            plane=plane,
            status=result.status,
            sentence=result.sentence,
            witness=witness,
            support=support if binary.rows is None else binary.rows[support],
            dual=signs[support] * alpha[support],
            trace=result.trace,
            n_iter=result.n_iter,
            passes=result.passes + sum(run.passes for run in runs),
            seconds=result.seconds + sum(run.seconds for run in runs),
            stopped=result.status in LIMITS,
            softened=hard is not None,
        )

    def _margin_outcome(self, binary: Binary, X: Any, tried: list[Attempt]) -> Outcome:
        """Return the outcome for a margin, hard or soft."""
        hard, (first, result) = tried[0].result, tried[-1]
        witness = self._with_row_numbers(hard.stated_witness, binary)
        p = np.empty(0) if result.p is None else result.p
        support = np.flatnonzero(p)
        runs = _runs(tried)
        whole = replace(  # with the cost of all attempts, and the numbers of rows in X
            result,
            stated_witness=None if result.stated_witness is None else witness,
            n_iter=sum(attempt.first.n_iter for attempt in tried),
            passes=sum(run.passes for run in runs),
            seconds=sum(run.seconds for run in runs),
        )
        return Outcome(
            binary=binary,
            plane=self._plane(binary, X.d, hard, result),
            status=result.status,
            sentence=whole.sentence,
            witness=witness,
            support=support if binary.rows is None else binary.rows[support],
            dual=np.where(binary.positive[support], 1.0, -1.0) * p[support],
            trace=first.trace,
            n_iter=whole.n_iter,
            passes=whole.passes,
            seconds=whole.seconds,
            stopped=self._stopped(result),
            softened=self.options.nu is None and result.nu is not None,
            leave_one_out_errors=leave_one_out_errors(X, binary.positive, result, self.intercept)
            if self._wants_estimate(binary)
            else 0,
        )

    def _ends_before(self, k: int) -> bool:
        """Return whether the fit ends before problem k: Ctrl-C was pressed, or no time is left. The first one gets some time."""
        return self.interrupted() or (k > 0 and time.perf_counter() >= self.task.deadline)

    def _not_started(self, binary: Binary) -> Outcome:
        """Return the outcome for a problem that was not started: the class of larger weight is predicted."""
        status = Status.INTERRUPTED if self.interrupted() else Status.TIME_LIMIT
        return self._constant_outcome(binary, status, f"stopped ({status}): it was not started")

    def only_class_outcome(self, binary: Binary) -> Outcome:
        """Return the outcome for a problem of which only one class has weight, after a check of what its search would check."""
        exponent(self.options.norm)
        nu: Any = self.options.nu
        if nu is not None and not (is_number(nu) and 0 < nu <= 1):
            raise InputError(f"nu is {nu!r}; it must be in (0, 1]")
        return self._constant_outcome(binary, Status.NO_PROGRESS, "only one class has weight")

    def _constant_outcome(self, binary: Binary, status: Status, sentence: str) -> Outcome:
        """Return the outcome for a problem about which nothing is said: the class of larger weight is predicted."""
        about = tuple(np.unique(binary.labels).tolist()), (len(binary.labels), self.task.data.X.d)
        claim = Certificate(
            "bracket", self.intercept.value, *about, lower=0.0, upper=math.inf, norm=float(self.options.norm), nu=self.options.nu
        )
        plane = Plane(*_constant_plane(binary, self.task.data.X.d), (0.0, math.inf), self.options.nu, None, claim)
        rows, dual = np.empty(0, np.int64), np.empty(0)
        return Outcome(binary, plane, status, sentence, None, rows, dual, None, 0, 0.0, 0.0, stopped=True)

    def _plane(self, binary: Binary, d: int, hard: MarginResult, result: MarginResult) -> Plane:
        """Return the plane of a result, or a constant one if it has none; `hard` is the result for the nu asked for."""
        w, b = result.w, result.b
        if w is None or b is None or self._meets(result):
            w, b = _constant_plane(binary, d)
        decided = self.options.nu is None and (hard.margin[0] > 0 or hard.stated_witness is not None)
        separable = hard.stated_witness is None if decided else None
        return Plane(w, b, result.margin, result.nu, separable, result.certificate if self.hashed else result.bare_certificate)

    def _checkpoints(self, k: int) -> tuple[Path | None, ...]:
        """Return the checkpoint files of problem k: for the given nu, and for those that are tried if there is no hard margin."""
        ends = ["", *(f".nu{j}" for j in range(1, 1 + len(SOFT_SHARES)))]
        return tuple(self.task.checkpoint_of(self.kind, k, end) for end in ends)

    def _attempt(
        self, problem: Problem, binary: Binary, nu: float | None, start: Any, checkpoint: Path | None, deadline: float
    ) -> Attempt:
        """Find the plane at this nu, brought to the gap FINAL_GAP unless a limit is reached before."""
        options, weights = self.options, binary.weights
        if nu is None and weights is not None and weights.all():
            weights = None  # they change nothing, and certificates would contain them
        watch = self.task.watch or (_printer(binary.name) if options.verbose > 1 else None)
        bounded = nu is None and self._may_fall_back and options.time_limit is None and checkpoint is None
        work = max(MIN_WORK, WORK_PER_ENTRY * problem.storage.entries) if bounded else math.inf

        def run(method: Any, tol: float, start: Any, checkpoint: Checkpoint | None = None) -> MarginResult:
            asked = MarginOptions(self.intercept, exponent(options.norm), nu, method, tol, None, watch, work=work)
            seconds = max(1e-3, deadline - time.perf_counter())
            budget = budget_of(options.max_iter, seconds, self.task.seed, self.task.threads)
            return margin_of(problem, budget, asked, weights, start, checkpoint)

        is_final = is_auto(options.method) or (isinstance(options.method, str) and options.method == "double_oracle")
        narrow = min(options.tol, FINAL_GAP)
        with binary.naming_errors:
            file = None if checkpoint is None else Checkpoint(checkpoint)
            first = run(options.method, narrow if is_final else options.tol, start, file)
            if is_final or first.stated_witness is not None or self._stopped(first) or first.gap <= FINAL_GAP:
                return Attempt(first, first)
            finished = run(AUTO, narrow, first)
            return Attempt(first, finished if finished.gap < first.gap else first)

    def _wants_estimate(self, binary: Binary) -> bool:
        """Return whether the leave-one-out error of this problem is estimated."""
        options = self.options
        hard = options.nu is None and options.norm == 2 and options.on_inseparable == "warn"
        return hard and binary.weights is None and len(binary.positive) >= ENOUGH_ROWS

    def _meets(self, result: MarginResult) -> bool:
        """Return whether the (reduced) hulls of the classes meet as far as is known."""
        return result.margin[0] <= 0 and not self._stopped(result)

    def _stopped(self, result: MarginResult) -> bool:
        """Return whether a limit ended the search: `max_iter` only if it was set, since methods have limits of their own."""
        return result.status in LIMITS and (self.options.max_iter is not None or result.status is not Status.ITERATION_LIMIT)

    def _with_row_numbers(self, witness: Witness | None, binary: Binary) -> Witness | None:
        """Return the witness of a problem with the numbers that its rows have for the user."""
        if witness is None:
            return None
        rows = witness.rows if binary.rows is None else binary.rows[[*witness.rows]].tolist()
        return replace(witness, rows=self.task.words.rows(rows))

    # ---- messages ----------------------------------------------------------------------------------------------------

    def inseparable_message(self, outcomes: Sequence[Outcome]) -> str | None:
        """Return the warning about problems without a positive margin at the given nu; None if there are none."""
        affected = [each for each in outcomes if each.softened or (each.settled and not each.found)]
        if not affected or self.options.on_inseparable != "warn":
            return None
        more = f"; and {len(affected) - MAX_NAMED} more" if len(affected) > MAX_NAMED else ""
        others = ", as are all classes" if affected[0].plane.loss is not None and self.kind == KIND_OF_MULTI_CLASS["ovr"] else ""
        messages = "; ".join(map(self._remedy_message, affected[:MAX_NAMED]))
        return f"{messages}{more}{others}. {self._advice(affected[0].binary)}"

    def barely_separable_message(self, outcomes: Sequence[Outcome]) -> str | None:
        """Return the warning about separating planes whose estimated leave-one-out error is large; None if it is not."""
        hard = [each for each in outcomes if each.plane.separable and self._wants_estimate(each.binary)]
        rows = sum(len(each.binary.positive) for each in hard)
        share = sum(each.leave_one_out_errors for each in hard) / max(rows, 1)
        if share < BARELY_SEPARABLE:
            return None
        return (
            "the classes are barely separable: the fit separates all rows, but would misclassify about "
            f"{100 * share:.2g} % of new rows (an estimate). Use {self.task.words.losses}, or "
            f"{self.task.words.option('on_inseparable', 'ignore')} if this is expected"
        )

    def remarks(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        """Iterate over further advice: that class weights have no effect, and that the columns are badly scaled."""
        hard = sum(each.plane.loss is None and each.plane.nu is None and each.found for each in outcomes)
        words, total = self.task.words, len(outcomes)
        option = words.option
        if self.options.class_weight is not None and hard:
            which = "a hard margin" if hard == total else f"{hard} of {total} planes, which have a hard margin"
            yield f"{option('class_weight')} has no effect on {which}: pass {option('nu')} as well, or use {words.losses}"
        losses = [each.plane.w for each in outcomes if each.plane.loss is not None]
        hint = scale_hint(self.task.data.X, np.array(losses) if len(losses) == total else None)
        if hint:
            yield hint

    def convergence_message(self, outcomes: Sequence[Outcome]) -> str | None:
        """Return the warning about problems whose interval is wider than `tol`; None if there are none."""
        wide = [each for each in outcomes if each.plane.gap > self.options.tol and not each.settled]
        if not wide:
            return None
        widest = max(wide, key=lambda each: each.plane.gap)
        lower, upper = outward(*(widest.plane.objective or widest.plane.margin))
        what = "margin" if widest.plane.loss is None else "least value"
        others = f", and {len(wide) - 1} more" if len(wide) > 1 else ""
        rounds = f"{widest.n_iter:,} round{'s' * (widest.n_iter != 1)}"
        advice = limit_advice(widest.status, self.task.words) or "scale the columns of X, or pass a larger tol"
        return (
            f"{widest.binary.name}{others}: stopped ({widest.status}) after {rounds} with the {what} between {lower} and "
            f"{upper}, a gap of {widest.plane.gap:.1e} where {self.task.words.option('tol')} is {self.options.tol:g}; {advice}"
        )

    def _remedy_message(self, outcome: Outcome) -> str:
        """Describe a problem without a positive margin, and what was fitted instead."""
        problem, nu = self._problem_message(outcome), outcome.plane.nu
        by_loss = outcome.plane.loss is not None
        how = f"fitted by squared hinge loss (C = {C:g})" if by_loss else f"fitted with nu = {nu:.6g}"
        if outcome.found:
            return f"{problem}; {how}"
        heavier = outcome.binary.labels[outcome.binary.positive == (outcome.plane.b > 0)][:1].tolist()
        tried = "" if self.options.nu is not None else f"; {how}" if by_loss else f", also with nu = {nu:.6g}"
        return f"{problem}{tried}; w is 0 and the heavier class ({self.task.words.label(heavier[0])}) is predicted"

    def _problem_message(self, outcome: Outcome) -> str:
        """Describe why there is no plane of positive margin at the given nu."""
        name, nu = outcome.binary.name, self.options.nu
        if nu is not None:
            most = f"none has more than {outward(*outcome.plane.margin)[1]}"
            return f"{name}: no plane of positive soft margin was found at nu = {nu:g} ({most})"
        if outcome.witness is None:
            return f"{name}: no separator was found, nor a proof that there is none"
        return f"{name} is not separable: {outcome.witness}"

    def _advice(self, binary: Binary) -> str:
        """Return what to pass instead."""
        most, hard, option = binary.largest_nu(self.intercept), self.options.nu is None, self.task.words.option
        if self.options.on_inseparable == "raise":
            instead = "by squared hinge loss" if self.options.norm == 2 else f"softly with nu = {most / 2:.6g}"
            soft = f", or {option('on_inseparable', 'warn')} to fit {instead}" if hard else ""
            return f"Pass {'' if hard else 'a larger '}{option('nu')} (at most {most:.6g}){soft}, or use {self.task.words.losses}"
        if hard and self.options.norm == 2:
            return f"Use {self.task.words.losses}, or {option('on_inseparable', 'ignore')} if this is expected"
        if hard:
            ignore = option("on_inseparable", "ignore")
            return f"Pass {option('nu')} to choose how soft the margin is, or {ignore} if this is expected"
        return f"Pass a larger {option('nu')} (at most {most:.6g}), or use {self.task.words.losses}"


def _runs(tried: Sequence[Attempt]) -> Collection[MarginResult]:
    """Return the results of these attempts, each once."""
    return {id(run): run for attempt in tried for run in attempt}.values()


def _constant_plane(binary: Binary, d: int) -> tuple[Array, float]:
    """Return w = 0 and the b that predicts the class of larger weight."""
    positive, negative = binary.totals
    return np.zeros(d), (positive - negative) / (positive + negative)


def _printer(name: str) -> Callable[[Moment], None]:
    """Return a callback that prints each recorded round."""

    def show(moment: Moment) -> None:
        lower, upper = outward(max(0.0, moment.lower), moment.upper)
        progress = f"round {moment.t}, {moment.passes:.1f} passes, margin between {lower} and {upper}"
        print(f"[MaxMarginClassifier] {name}: {progress}", flush=True)

    return show
