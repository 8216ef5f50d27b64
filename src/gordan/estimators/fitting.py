"""A fit: the binary problems that some labels make, and the plane of each; by a loss where no plane separates.

`MaxMarginClassifier.fit` and `gordan fit` are both this. Without scikit-learn, which takes a second to import.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from gordan.arrays import Array, exponent, positive, relative_width
from gordan.certificates import Certificate
from gordan.certificates.problem import Problem
from gordan.certificates.regions import Place
from gordan.errors import InputError, one_of
from gordan.estimators.least_loss import LossFitting, LossParameters, naming_itself
from gordan.estimators.left_out import left_out_wrong
from gordan.estimators.models import IN_PYTHON, Words, places_of_planes, with_planes
from gordan.intercepts import Intercept
from gordan.io.model import Model, PlaneFacts
from gordan.io.model import planes as number_of_planes
from gordan.ledger.question import Budget
from gordan.losses import Loss
from gordan.rows import available
from gordan.solve.batches import is_sooner
from gordan.statuses import LIMITS, Status
from gordan.trace import Moment, Trace
from gordan.verdicts import LossResult, MarginResult, Witness, maximize_margin, outward
from gordan.verdicts.many import about_part, margins_together
from gordan.verdicts.multiclass import Binary, binary_problems
from gordan.verdicts.scaling import scale_hint

CHOICES = {"multi_class": ("ovo", "ovr"), "on_inseparable": ("warn", "raise", "ignore")}
# scikit-learn's word for it, and ours.
KINDS = {"ovr": "one-vs-rest", "ovo": "one-vs-one"}
# The gap to which a fit is brought at the end, whatever `tol`.
FINISH = 1e-9
# Shares of the largest nu that are tried in turn where no hard margin exists, for norms other than 2.
SHARES = (0.5, 1.0)
# What is fitted instead for norm 2, and the share of the time that the search for a separator may take without one.
LOSS, C, LOOKING = Loss.SQUARED_HINGE, 1.0, 0.25
# The share of rows that a hard margin gets wrong when they are left out (an estimate, over all problems of so many rows) from
# which its classes are called barely separable. `benchmarks/accuracy.py --data` counts such fits beside their test accuracy.
BARELY, ENOUGH_ROWS = 0.015, 500
# Signs of all rows in all problems, up to which margins are looked for together: bytes.
MOST_SIGNS = 1 << 26
# Problems that a warning names.
MOST_NAMED = 3


@naming_itself
@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """The parameters of `MaxMarginClassifier`, which describes them. They are listed here and nowhere else."""

    nu: float | None = None
    norm: float = 2
    intercept: Literal["free", "penalized", "none"] = "free"
    method: Any = "auto"
    tol: float = 1e-4
    max_iter: int | None = None
    time_limit: float | None = None
    multi_class: Literal["ovo", "ovr"] = "ovo"
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
    warm_start: bool = False
    n_jobs: int | None = None
    device: str | None = None
    random_state: Any = None
    verbose: int = 0
    on_inseparable: Literal["warn", "raise", "ignore"] = "warn"


def check_parameters(options: Parameters) -> None:
    """Refuse what no binary problem would refuse by itself."""
    for name, allowed in CHOICES.items():
        if getattr(options, name) not in allowed:
            raise InputError(f"{name} is {getattr(options, name)!r}; {one_of(getattr(options, name), allowed)}")
    if not isinstance(options.verbose, (int, np.integer)):  # bool is one
        raise InputError(f"verbose is {options.verbose!r}; pass 0, 1 or 2")
    positive(options.tol, "tol")


@dataclass(frozen=True, eq=False)
class Plane:
    """The plane of one binary problem, as a model file holds it; `objective` is None unless it is that of least loss, and so is
    `place`, what is proved of the exact minimizer."""

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
        """The loss that was minimized, if one was."""
        return None if self.objective is None else LOSS.value

    @property
    def gap(self) -> float:
        """(upper - lower)/upper of the objective or the margin; 0 if upper is 0."""
        return relative_width(*(self.objective or self.margin))


def model_of(kind: str, classes: Array, planes: Sequence[Plane], options: Parameters, names: Sequence[Any] | None) -> Model:
    """The model of these planes, with their certificates if all of them have one."""
    nus = [plane.nu for plane in planes]
    nu = nus[0] if len({*nus}) == 1 else options.nu
    by_loss = any(plane.loss is not None for plane in planes)
    return with_planes(
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
        places=places_of_planes(planes),
    )


def planes_of(model: Model) -> list[Plane]:
    """The planes of a model. In files of 0.1 the nu of a plane is in its certificate, and a hard one separates."""
    texts: Sequence[str | None] = model.certificates or [None] * len(model.coef)
    certificates = [None if text is None else Certificate.from_json(text) for text in texts]
    planes = []
    for k, certificate in enumerate(certificates):
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
    """What came of one binary problem. It does not hold on to X.

    `told` is the last result in words; `support` and `dual` are the rows of X of positive weight, and y_i p_i there; `trace` is
    the run that led to the plane; `stopped`: a limit that was set ended it; `resumed`: it went on from one of `checkpoints`;
    `softened`: there is no separator, or none was found, and the plane is another one; `left_out_wrong`: how many
    rows a hard one gets wrong when they are left out, by estimate.
    """

    binary: Binary
    plane: Plane
    status: Status
    told: str
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
    left_out_wrong: int = 0

    @property
    def found(self) -> bool:
        """Whether there is a plane: w is not 0."""
        return bool(self.plane.w.any())

    @property
    def meets(self) -> bool:
        """Whether the (reduced) hulls of the classes meet, as far as is known: no positive margin, and no limit is to blame."""
        return self.plane.loss is None and self.plane.margin[0] <= 0 and not self.stopped

    @property
    def settled(self) -> bool:
        """Whether there is nothing left to be found out: the hulls meet, as far as floats can tell."""
        return not self.stopped and (not self.found or self.status is Status.MARGIN_BELOW_TOL)


class NoPlane(InputError):
    """No plane separates, or none was found, and a soft margin was not wanted; `outcome` says what is known."""

    def __init__(self, message: str, outcome: Outcome | None = None) -> None:
        super().__init__(message)  # the message alone: what is raised in a worker process is made anew from it
        self.outcome = outcome


class Attempt(NamedTuple):
    """A problem at one nu: the run of the method, and what is left of it after the exact finish."""

    first: MarginResult
    result: MarginResult


@dataclass(frozen=True, eq=False)
class Fitting:
    """What is asked of every binary problem that the labels y make over one storage X; `classes` are the labels in order.

    `seed` is that of `random_state`. `hashed`: certificates are bound to the data, which costs a pass. `watch` is a callback of
    `maximize_margin`. `checkpoint` is the file of a run, with the number of the problem behind its name where there are several.
    """

    options: Parameters
    X: Any
    y: Array
    classes: Array
    weights: Array | None
    deadline: float
    seed: int | None = None
    threads: int | None = None
    hashed: bool = False
    watch: Callable[[Moment], object] | None = None
    checkpoint: Path | None = None
    words: Words = IN_PYTHON

    @property
    def kind(self) -> str:
        """What the planes separate, as in `gordan.io.Model`."""
        if self.y.ndim == 2:
            return "multilabel"
        return KINDS[self.options.multi_class] if len(self.classes) > 2 else "binary"

    @property
    def intercept(self) -> Intercept:
        """The kind of intercept."""
        return Intercept.of(self.options.intercept)

    def problems(self) -> Iterator[Binary]:
        """The binary problems, in the order of the planes of a model; made one at a time."""
        return binary_problems(
            self.kind, self.y, self.classes.tolist(), self.weights, self.words.label, self.options.class_weight
        )

    def together(self, problems: Sequence[Binary]) -> tuple[dict[int, MarginResult], list[int]]:
        """The hard margins of those of several problems that are found to be separable sooner together than one by one, in a
        share of the time; all others are left to `outcome`. And in which order: where one class against the rest is not
        separable, no other hard margin is wanted."""
        order = [*range(len(problems))]
        n, counted = self.X.n, max(len(binary.positive) for binary in problems)
        few = n * len(problems) <= MOST_SIGNS and is_sooner(counted, self.intercept.columns(self.X.d))
        if len(problems) == 1 or not few or not self._is_plain:
            return {}, order
        signs = np.zeros((n, len(problems)), np.int8, order="F")
        for k, binary in enumerate(problems):
            signs[slice(None) if binary.rows is None else binary.rows, k] = np.where(binary.positive, 1, -1)
        now = time.perf_counter()
        share = 1.0 if self.options.on_inseparable == "raise" else LOOKING
        budget = Budget(now, now + share * (self.deadline - now), threads=self.threads)
        wanted = self.intercept, min(self.options.tol, FINISH), budget
        versus_rest = self.kind == KINDS["ovr"]
        hard, inseparable = margins_together(self.X, signs, *wanted, all_or_none=versus_rest)
        first = inseparable[:1] if versus_rest else []
        return hard, [*first, *(k for k in order if k not in first)]

    @property
    def _is_plain(self) -> bool:
        """Whether hard margins of norm 2 are asked for of all rows, by runs whose rounds are not printed, limited or kept."""
        options = self.options
        hard = options.nu is None and options.norm == 2 and (self.weights is None or bool(self.weights.all()))
        auto = isinstance(options.method, str) and options.method == "auto"
        return hard and auto and options.max_iter is None and self.checkpoint is None and options.verbose <= 1

    def outcome(
        self,
        k: int,
        binary: Binary,
        start: Array | None = None,
        hard: MarginResult | None = None,
        least: LossResult | None = None,
    ) -> Outcome:
        """The plane of problem k: hard, or of least loss where that cannot be; soft for norms other than 2. `start` are weights
        over all rows of X; `hard` is its hard margin, where that was found together with others, and `least` its plane of least
        loss, where that is to take the place of a hard one."""
        if k > 0 and hard is None and least is None and time.perf_counter() >= self.deadline:
            return self._not_begun(binary)
        X = self.X if binary.rows is None else self.X.part(binary.rows)  # a copy, made here so that few are there at a time
        checkpoints = self._checkpoints(k)
        resumed = any(path is not None and path.exists() for path in checkpoints)
        tried = [] if least is not None else self._attempts(k, X, binary, start, checkpoints, hard)
        return self._concluded(binary, X, tried, least, checkpoints, resumed)

    def outcomes_of_labels(
        self, problems: Sequence[Binary], starts: Sequence[Array | None], hard: Mapping[int, MarginResult]
    ) -> list[Outcome]:
        """The planes of labels of which a row may have several: each by itself, but those without a separator share the passes
        of the loss. `starts` and `hard` as for `outcome`."""
        none, tried = self._checkpoints(0), {}  # a checkpoint is for one label a row
        for k, binary in enumerate(problems):
            if k == 0 or k in hard or time.perf_counter() < self.deadline:
                tried[k] = self._attempts(k, self.X, binary, starts[k], none, hard.get(k))
        softened = [k for k, attempts in tried.items() if self._falls_back(attempts[-1].result)]
        found = self._losses(self.X).results([problems[k] for k in softened], [None] * len(softened))
        least = dict(zip(softened, found, strict=True))
        return [
            self._concluded(binary, self.X, tried[k], least.get(k)) if k in tried else self._not_begun(binary)
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
        """What follows from these attempts, or from the plane of least loss that takes their place."""
        if least is not None or self._falls_back(tried[-1].result):
            found = self._least(binary, X, tried, least)
        else:
            found = self._outcome(binary, X, tried)
        found = replace(found, checkpoints=checkpoints, resumed=resumed)
        if found.meets and self.options.on_inseparable == "raise":
            raise NoPlane(f"{self._blame(found)}. {self._advice(binary)}", found)
        if self.options.verbose:
            print(f"[MaxMarginClassifier] {binary.name}: {found.told}", flush=True)
        return found

    def decides_all(self, outcome: Outcome) -> bool:
        """Whether this outcome makes those of all other problems."""
        return self.kind == KINDS["ovr"] and outcome.plane.loss is not None

    def alike(self, problems: Sequence[Binary], outcomes: Mapping[int, Outcome]) -> list[Outcome]:
        """The same outcomes, in order; but if one class against the rest needed a loss, all classes by it: scores are compared.
        The other classes need no outcome then."""
        by_loss = {k: each for k, each in outcomes.items() if each.plane.loss is not None}
        if not any(map(self.decides_all, by_loss.values())):
            return [outcomes[k] for k in range(len(problems))]
        others = [k for k in range(len(problems)) if k not in by_loss]
        losses = replace(self._losses(self.X), watch=None)  # who wants to see the steps is not to get others
        results = losses.results([problems[k] for k in others], [None] * len(others))
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
        """The hard margin, or the soft one asked for; and for norms other than 2 softer ones where there is none."""
        options = self.options
        if hard is not None:
            hard = about_part(hard, Problem.of(X, binary.labels), binary.rows)
            return [Attempt(hard, hard)]
        start = start if start is None or binary.rows is None else start[binary.rows]
        if options.nu is not None or options.on_inseparable == "raise":
            return [self._attempt(X, binary, options.nu, start, checkpoints[0], self.deadline)]
        now = time.perf_counter()
        among = max(1, number_of_planes(self.kind, len(self.classes)) - k)
        looking = now + LOOKING * (self.deadline - now) / among
        tried = [self._attempt(X, binary, None, start, checkpoints[0], looking)]
        first = tried[0].result
        if first.margin[0] > 0 and first.status is Status.TIME_LIMIT:  # a separator: there is time to improve it
            again = first if checkpoints[0] is None else start  # a checkpoint goes on from itself
            tried.append(self._attempt(X, binary, None, again, checkpoints[0], self.deadline))
        if options.norm != 2:
            for share, path in zip(SHARES, checkpoints[1:], strict=True):
                if self._meets(tried[-1].result):
                    nu = share * binary.largest_nu(self.intercept)
                    tried.append(self._attempt(X, binary, nu, start, path, self.deadline))
        return tried

    def _falls_back(self, result: MarginResult) -> bool:
        """Whether the plane of least loss takes the place of this one: no separator, and neither Ctrl-C nor `max_iter` is why."""
        options, unfinished = self.options, result.status is not Status.TIME_LIMIT and self._stopped(result)
        hard = options.nu is None and options.norm == 2 and options.on_inseparable != "raise"
        return hard and result.margin[0] <= 0 and not unfinished

    def _losses(self, X: Any) -> LossFitting:
        """What is asked of problems without a separator, over all rows or those of one of them."""
        options = self.options
        asked = LossParameters(LOSS.value, C, intercept=options.intercept, tol=options.tol, time_limit=options.time_limit)
        asked.class_weight = options.class_weight  # part of the weights already, but for several labels a row
        about = self.y, self.classes, self.weights
        return LossFitting(asked, X, *about, self.deadline, self.seed, self.threads, self.watch, self.words)

    def _least(self, binary: Binary, X: Any, tried: Sequence[Attempt], result: LossResult | None) -> Outcome:
        """The plane of least loss, after these attempts at a hard margin; `result` where it is known."""
        result = self._losses(X).result(binary) if result is None else result
        hard = tried[0].result if tried else None
        witness = None if hard is None else self._numbered(hard.stated_witness, binary)
        signs = np.where(binary.positive, 1.0, -1.0)
        z = X.to_host(X.scores(result.w, result.b, X.to_storage(signs.astype(np.int8), "signs"), self.threads or available()))
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
            result._region.place if self.hashed else None,
        )
        runs = _runs(tried)
        return Outcome(
            binary=binary,
            plane=plane,
            status=result.status,
            told=result.sentence,
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

    def _outcome(self, binary: Binary, X: Any, tried: list[Attempt]) -> Outcome:
        hard, (first, result) = tried[0].result, tried[-1]
        witness = self._numbered(hard.stated_witness, binary)
        p = np.empty(0) if result.p is None else result.p
        support = np.flatnonzero(p)
        runs = _runs(tried)
        whole = replace(  # with all that it cost, and by the rows of X
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
            told=whole.sentence,
            witness=witness,
            support=support if binary.rows is None else binary.rows[support],
            dual=np.where(binary.positive[support], 1.0, -1.0) * p[support],
            trace=first.trace,
            n_iter=whole.n_iter,
            passes=whole.passes,
            seconds=whole.seconds,
            stopped=self._stopped(result),
            softened=self.options.nu is None and result.nu is not None,
            left_out_wrong=left_out_wrong(X, binary.positive, result, self.intercept) if self._wants_estimate(binary) else 0,
        )

    def _not_begun(self, binary: Binary) -> Outcome:
        """What is known of a problem that the time was up for: nothing. The heavier class is predicted."""
        more, less = binary.totals
        about = tuple(np.unique(binary.labels).tolist()), (len(binary.labels), self.X.d)
        claim = Certificate(
            "bracket", self.intercept.value, *about, lower=0.0, upper=math.inf, norm=float(self.options.norm), nu=self.options.nu
        )
        plane = Plane(np.zeros(self.X.d), (more - less) / (more + less), (0.0, math.inf), self.options.nu, None, claim)
        told, none = "stopped (time-limit): it was not begun", np.empty(0)
        return Outcome(binary, plane, Status.TIME_LIMIT, told, None, none.astype(np.int64), none, None, 0, 0.0, 0.0, stopped=True)

    def _plane(self, binary: Binary, d: int, hard: MarginResult, result: MarginResult) -> Plane:
        """The plane of a result; w = 0 and the heavier class where there is none. `hard` is the result for the nu asked for."""
        w, b = result.w, result.b
        if w is None or b is None or self._meets(result):
            more, less = binary.totals
            w, b = np.zeros(d), (more - less) / (more + less)
        decided = self.options.nu is None and (hard.margin[0] > 0 or hard.stated_witness is not None)
        separable = hard.stated_witness is None if decided else None
        return Plane(w, b, result.margin, result.nu, separable, result.certificate if self.hashed else result.bare_certificate)

    def _checkpoints(self, k: int) -> tuple[Path | None, ...]:
        """The files of the runs of problem k: of the nu asked for, and of those that are tried where there is no hard margin."""
        ends = ["" if self.kind == "binary" else f".{k}"]
        ends += [f"{ends[0]}.nu{j}" for j in range(1, 1 + len(SHARES))]
        return tuple(None if self.checkpoint is None else self.checkpoint.with_name(self.checkpoint.name + end) for end in ends)

    def _attempt(self, X: Any, binary: Binary, nu: float | None, start: Any, checkpoint: Path | None, deadline: float) -> Attempt:
        """The plane at this nu, brought to the gap `FINISH` unless a limit comes first."""
        options, weights = self.options, binary.weights
        if nu is None and weights is not None and weights.all():
            weights = None  # they change nothing, and a certificate would carry them
        printer = _printer(binary.name) if options.verbose > 1 else None

        def run(method: Any, tol: float, start: Any, checkpoint: Path | None = None) -> MarginResult:
            found: MarginResult = maximize_margin(
                X,
                binary.labels,
                norm=exponent(options.norm),
                nu=nu,
                intercept=self.intercept,
                method=method,
                tol=tol,
                sample_weight=weights,
                max_iter=options.max_iter,
                time_limit=max(1e-3, deadline - time.perf_counter()),
                start=start,
                random_state=self.seed,
                threads=self.threads,
                checkpoint=checkpoint,
                callback=self.watch or printer,
            )
            return found

        try:
            if isinstance(options.method, str) and options.method in ("auto", "double_oracle"):
                result = run(options.method, min(options.tol, FINISH), start, checkpoint)
                return Attempt(result, result)
            first = run(options.method, options.tol, start, checkpoint)
            if first.stated_witness is not None or self._stopped(first) or first.gap <= FINISH:
                return Attempt(first, first)
            finished = run("auto", min(options.tol, FINISH), first)
            return Attempt(first, finished if finished.gap < first.gap else first)
        except InputError as error:
            if binary.is_whole:
                raise
            raise InputError(f"{binary.name}: {error}") from None

    def _wants_estimate(self, binary: Binary) -> bool:
        options = self.options
        hard = options.nu is None and options.norm == 2 and options.on_inseparable == "warn"
        return hard and binary.weights is None and len(binary.positive) >= ENOUGH_ROWS

    def _meets(self, result: MarginResult) -> bool:
        return result.margin[0] <= 0 and not self._stopped(result)

    def _stopped(self, result: MarginResult) -> bool:
        """Whether a limit that was set ended the run."""
        return result.status in LIMITS and (self.options.max_iter is not None or result.status is not Status.ITERATION_LIMIT)

    def _numbered(self, witness: Witness | None, binary: Binary) -> Witness | None:
        """The witness of a problem, with the numbers that its rows have for whoever is spoken to."""
        if witness is None:
            return None
        rows = witness.rows if binary.rows is None else binary.rows[[*witness.rows]].tolist()
        return replace(witness, rows=self.words.rows(rows))

    # ---- in words ----------------------------------------------------------------------------------------------------

    def inseparable(self, outcomes: Sequence[Outcome]) -> str | None:
        """What to say of the problems that no hard margin, or none this soft, separates; None where there are none."""
        blamed = [each for each in outcomes if each.softened or (each.settled and not each.found)]
        if not blamed or self.options.on_inseparable != "warn":
            return None
        more = f"; and {len(blamed) - MOST_NAMED} more" if len(blamed) > MOST_NAMED else ""
        others = ", as are all classes" if blamed[0].plane.loss is not None and self.kind == KINDS["ovr"] else ""
        return f"{'; '.join(map(self._told, blamed[:MOST_NAMED]))}{more}{others}. {self._advice(blamed[0].binary)}"

    def barely(self, outcomes: Sequence[Outcome]) -> str | None:
        """What to say of planes that separate all rows, but few others like them; None where they do well enough."""
        hard = [each for each in outcomes if each.plane.separable and self._wants_estimate(each.binary)]
        rows = sum(len(each.binary.positive) for each in hard)
        wrong = sum(each.left_out_wrong for each in hard) / max(rows, 1)
        if wrong < BARELY:
            return None
        return (
            f"the classes are barely separable: planes separate all rows, but of rows that are left out they would get about "
            f"{100 * wrong:.2g} % wrong (an estimate). Use {self.words.losses}, or "
            f"{self.words.option('on_inseparable', 'ignore')} if this is expected"
        )

    def remarks(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        """What else there is to say: class weights without effect, columns of very different size."""
        hard = sum(each.plane.loss is None and each.plane.nu is None and each.found for each in outcomes)
        option, total = self.words.option, len(outcomes)
        if self.options.class_weight is not None and hard:
            which = "a hard margin" if hard == total else f"{hard} of {total} planes, which have a hard margin"
            yield f"{option('class_weight')} has no effect on {which}: pass {option('nu')} as well, or use {self.words.losses}"
        losses = [each.plane.w for each in outcomes if each.plane.loss is not None]
        hint = scale_hint(self.X, np.array(losses) if len(losses) == total else None)
        if hint:
            yield hint

    def unfinished(self, outcomes: Sequence[Outcome]) -> str | None:
        """What to say of the problems whose interval is wider than `tol`; None where there are none."""
        wide = [each for each in outcomes if each.plane.gap > self.options.tol and not each.settled]
        if not wide:
            return None
        widest = max(wide, key=lambda each: each.plane.gap)
        lower, upper = outward(*(widest.plane.objective or widest.plane.margin))
        what = "margin" if widest.plane.loss is None else "least loss"
        which = f" of {widest.binary.name}" if len(outcomes) > 1 else ""
        others = f", as are {len(wide) - 1} others" if len(wide) > 1 else ""
        return (
            f"the {what}{which} is between {lower} and {upper}: wider than tol={self.options.tol:g} "
            f"(gap {widest.plane.gap:.2g}{others}) after {widest.n_iter} rounds ({widest.status}). Raise max_iter or time_limit "
            "where they are set; else scale the columns of X, or raise tol"
        )

    def _told(self, outcome: Outcome) -> str:
        """What was done about a problem without a hard margin, or one this soft."""
        blame, nu = self._blame(outcome), outcome.plane.nu
        by_loss = outcome.plane.loss is not None
        how = f"fitted by squared hinge loss (C = {C:g})" if by_loss else f"fitted with nu = {nu:.6g}"
        if outcome.found:
            return f"{blame}; {how}"
        heavier = outcome.binary.labels[outcome.binary.positive == (outcome.plane.b > 0)][:1].tolist()
        tried = "" if self.options.nu is not None else f"; {how}" if by_loss else f", also with nu = {nu:.6g}"
        return f"{blame}{tried}; w is 0 and the heavier class ({self.words.label(heavier[0])}) is predicted"

    def _blame(self, outcome: Outcome) -> str:
        name, nu = outcome.binary.name, self.options.nu
        if nu is not None:
            most = f"none has more than {outward(*outcome.plane.margin)[1]}"
            return f"{name}: no plane of positive soft margin was found at nu = {nu:g} ({most})"
        if outcome.witness is None:
            return f"{name}: no separator was found, nor a proof that there is none"
        return f"{name} is not separable: {outcome.witness}"

    def _advice(self, binary: Binary) -> str:
        """What to pass instead."""
        most, hard, option = binary.largest_nu(self.intercept), self.options.nu is None, self.words.option
        if self.options.on_inseparable == "raise":
            instead = "by squared hinge loss" if self.options.norm == 2 else f"softly with nu = {most / 2:.6g}"
            soft = f", or {option('on_inseparable', 'warn')} to fit {instead}" if hard else ""
            return f"Pass {'' if hard else 'a larger '}{option('nu')} (at most {most:.6g}){soft}, or use {self.words.losses}"
        if hard and self.options.norm == 2:
            return f"Use {self.words.losses}, or {option('on_inseparable', 'ignore')} if this is expected"
        if hard:
            ignore = option("on_inseparable", "ignore")
            return f"Pass {option('nu')} to choose how soft the margin is, or {ignore} if this is expected"
        return f"Pass a larger {option('nu')} (at most {most:.6g}), or use {self.words.losses}"


def _runs(tried: Sequence[Attempt]) -> Collection[MarginResult]:
    """The results of these attempts, each once."""
    return {id(run): run for attempt in tried for run in attempt}.values()


def _printer(name: str) -> Callable[[Moment], None]:
    def show(moment: Moment) -> None:
        lower, upper = outward(max(0.0, moment.lower), moment.upper)
        told = f"round {moment.t}, {moment.passes:.1f} passes, margin in {lower}..{upper}"
        print(f"[MaxMarginClassifier] {name}: {told}", flush=True)

    return show
