"""A fit of least loss: the binary problems of some labels, and the plane of each.

`LinearClassifier.fit` and `gordan fit --loss` both use it. It does not import scikit-learn, which takes a second.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from numbers import Integral
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from gordan.arrays import Array, positive
from gordan.certificates import Certificate, bounds
from gordan.certificates.matrix import Matrix, far_origin
from gordan.certificates.regions import Place
from gordan.errors import InputError, did_you_mean
from gordan.estimators.models import build_model, certificates_of, limit_advice, options_of
from gordan.estimators.multiclass import Binary, FitTask
from gordan.intercepts import Intercept, InterceptWord
from gordan.io.model import Kind, Model, PlaneFacts
from gordan.ledger.question import Budget
from gordan.losses import Loss
from gordan.statuses import Status
from gordan.verdicts import LossResult, minimize_loss, outward
from gordan.verdicts.arguments import budget_of
from gordan.verdicts.loss import MAX_STORED, LossOptions, checked_C, require_constants
from gordan.verdicts.many import minimize_many_losses
from gordan.verdicts.scaling import far_column, scale_hint
from gordan.verdicts.weights import weight_factors

# The most entries of X, zeros included, for which a fit goes on to the smaller tolerance, until rounding allows no progress: it
# costs milliseconds, and `coef_` is then accurate to ten digits or more.
SMALL_ENTRIES, SMALL_TOL = 1 << 15, 1e-12
# With several classes together, the proved gap that is not narrowed further if only rounding keeps it above SMALL_TOL.
SMALL_ENOUGH = 1e-9
# With a smaller C_i, the weights of the rows may be below those that a proof can use (`certificates.losses.MIN_WEIGHT`).
MIN_C = 1e-265
# A relative bound on what rounding takes from the cost of a row, and from its product with the sum of all C_i.
COST_ERROR = 2.0**-40
# Seconds per row and class to find the region of the minimizer (`benchmarks/limits.py`), and the share of a time limit that is
# kept for it at most.
REGION_SECONDS, MAX_SHARE_FOR_REGION = 5e-7, 0.25

# Parameters of other libraries, and what to pass instead: to both classifiers, to that of losses, and to that of margins.
HINTS_FOR_UNKNOWN_PARAMETERS = {
    "fit_intercept": "pass intercept='none' for no intercept, 'free' for one that is not penalized",
    "kernel": "the classifier is linear",
    **dict.fromkeys(("solver", "dual"), "how the problem is solved depends on the data"),
}
HINTS_FOR_LOSSES = {
    "penalty": "the penalty is half the square of the Euclidean norm",
    "multi_class": "classes are fitted one against the rest; pass loss='multinomial' for all at once",
}
HINTS_FOR_MARGINS = dict.fromkeys(("C", "loss"), "pass nu for a soft margin, or use LinearClassifier to choose a loss and C")
Class = TypeVar("Class")


def refusing_unknown_parameters(cls: type[Class]) -> type[Class]:
    """Make the constructor of a class of parameters say which one is meant where one is unknown, or must be named."""
    original: Any = cls.__dict__["__init__"]

    @wraps(original)
    def __init__(self: Any, *given: Any, **named: Any) -> None:
        parts = fields(cls)  # type: ignore[arg-type]
        known = {field.name for field in parts}
        by_position = [field.name for field in parts if not field.kw_only]
        if len(given) > len(by_position):
            allowed = f"only {' and '.join(by_position)}" if by_position else "no parameters"
            raise TypeError(f"{type(self).__name__} takes {allowed} by position; pass parameters by name, such as tol=1e-4")
        for name in (name for name in named if name not in known):
            own = HINTS_FOR_LOSSES if "loss" in known else HINTS_FOR_MARGINS
            hint = (HINTS_FOR_UNKNOWN_PARAMETERS | own).get(name) or did_you_mean(name, known)
            hint = hint or f"its parameters are {', '.join(sorted(known))}"
            raise TypeError(f"{type(self).__name__} has no parameter {name!r}; {hint}")
        original(self, *given, **named)

    cls.__init__ = __init__  # type: ignore[method-assign]
    return cls


@dataclass(kw_only=True, eq=False, repr=False)
class SharedParameters:
    """The parameters that both classifiers have."""

    intercept: InterceptWord = "free"
    tol: float = 1e-4
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
    max_iter: int | None = None
    time_limit: float | None = None
    warm_start: bool = False
    n_jobs: int | None = None
    device: str | None = None
    random_state: Any = None
    verbose: int = 0


def check_shared_parameters(options: SharedParameters, most_verbose: int = 1) -> None:
    """Refuse parameters of either classifier that no binary problem checks."""
    positive(options.tol, "tol")
    if not isinstance(options.warm_start, (bool, np.bool_)):
        raise InputError(f"warm_start is {options.warm_start!r:.60}; pass True or False")
    jobs: Any = options.n_jobs
    verbose: Any = options.verbose
    if jobs is not None and (isinstance(jobs, (bool, np.bool_)) or not isinstance(jobs, Integral) or jobs == 0):
        raise InputError(f"n_jobs is {jobs!r:.60}; pass a number of threads, -1 for one on each core, or None")
    if not isinstance(verbose, Integral):  # which bool is
        allowed = ", ".join(map(str, range(most_verbose)))
        raise InputError(f"verbose is {verbose!r:.60}; pass {allowed} or {most_verbose}")


@refusing_unknown_parameters
@dataclass(eq=False, repr=False)
class LossParameters(SharedParameters):
    """The parameters of `LinearClassifier`, whose docstring describes them."""

    loss: Literal["squared_hinge", "hinge", "logistic", "multinomial"] = "squared_hinge"
    C: float = 1.0


class LeastPlane(NamedTuple):
    """The plane of one binary problem, as stored in a model file; or those of all classes, as columns of w."""

    w: Array
    b: Any
    objective: tuple[float, float]
    certificate: Certificate | None
    place: Place | None = None

    @staticmethod
    def of(result: LossResult, certificate: Certificate | None) -> LeastPlane:
        """Return the plane of a result, with this certificate."""
        return LeastPlane(result.w, result.b, result.objective, certificate, result.place)


@dataclass(frozen=True, eq=False)
class LossFitting:
    """A fit of least loss: the parameters, and what all binary problems share."""

    options: LossParameters
    task: FitTask

    @property
    def kind(self) -> Kind:
        """What the planes separate, as in `gordan.io.Model`."""
        if self.task.data.y.ndim == 2:
            return "multilabel"
        if Loss.of(self.options.loss).several:
            return "multinomial"
        return "binary" if len(self.task.data.classes) == 2 else "one-vs-rest"

    def _arguments(self, of: int = 1) -> dict[str, Any]:
        """Return the arguments of `minimize_loss` that are the same for all labels, with one of `of` shares of the time left."""
        options, X = self.options, self.task.data.X
        return {
            "loss": options.loss,
            "C": options.C,
            "intercept": options.intercept,
            "tol": min(options.tol, SMALL_TOL) if X.n * X.d <= SMALL_ENTRIES else options.tol,
            "max_iter": options.max_iter,
            "time_limit": None if options.time_limit is None else self._left() / of,
            "random_state": self.task.seed,
            "threads": self.task.threads,
        }

    def _together(self, class_weight: Any) -> tuple[Budget, LossOptions]:
        """Return the limits and the options for several problems together."""
        asked = self._arguments()
        budget = budget_of(asked["max_iter"], asked["time_limit"], asked["random_state"], asked["threads"])
        loss, intercept = Loss.of(asked["loss"]), Intercept.of(asked["intercept"])
        enough = min(self.options.tol, SMALL_ENOUGH)
        return budget, LossOptions(loss, float(asked["C"]), intercept, asked["tol"], class_weight, enough=enough)

    def _left(self) -> float:
        """Return the seconds that a search may take, so that some are left for the regions of the minimizers."""
        left, rows = self.task.deadline - time.perf_counter(), int(self.task.data.X.n)
        return max(1e-3, left - min(MAX_SHARE_FOR_REGION * left, REGION_SECONDS * rows * len(self.task.data.classes)))

    def result(self, binary: Binary, start: Array | None = None, k: int = 0, to_come: int = 0) -> LossResult:
        """Find the plane of least loss of problem k; `start` is a w to start from, with b as its last entry.

        The time left is for this problem and `to_come` others, in equal shares.
        """
        with binary.naming_errors:
            result: LossResult = minimize_loss(
                binary.rows_of(self.task.data.X),
                binary.labels,
                **self._weights_of(binary),
                start=start,
                **self._arguments(to_come + 1),
                checkpoint=self.task.checkpoint_of(self.kind, k),
                callback=self.task.watch,
            )
        return self._reported(binary, result)

    def _weights_of(self, binary: Binary) -> dict[str, Any]:
        """Return the weights of a problem as arguments of `minimize_loss`.

        Sample weights that are too many for a certificate are passed without the class weights, if it has a place for these: it
        then has a hash of the weights that the user knows. The rest of a class has none, since its rows are of several classes.
        """
        if self.options.class_weight is None or self.kind == "one-vs-rest" or len(binary.labels) <= MAX_STORED:
            return {"sample_weight": binary.weights}
        if self.kind == "multilabel":
            return {"sample_weight": self.task.data.weights, "class_weight": self.options.class_weight}
        assert self.task.data.factors is not None
        labels, factors = self.task.data.classes.tolist(), self.task.data.factors.tolist()
        own = labels if binary.other is None else (binary.other, binary.label)
        class_weight = {label: factor for label, factor in zip(labels, factors, strict=True) if label in own}
        sample, _ = weight_factors(self.task.data.sample, None, labels, self.task.data.y)
        sample = sample if sample is None or binary.rows is None else sample[binary.rows]
        return {"sample_weight": sample, "class_weight": class_weight}

    def results(self, problems: Sequence[Binary], starts: Sequence[Array] | None = None) -> list[LossResult]:
        """Find the planes of several problems about all rows with shared passes over X.

        Problems for which no time is left are not started. With a checkpoint, which is for one problem, they are solved one by
        one until an interrupt.
        """
        if len(problems) > 1 and self.task.checkpoint is None:
            try:
                labels = np.array([binary.positive for binary in problems]).T  # transposed: its columns are then contiguous
                class_weight = self.options.class_weight if self.kind == "multilabel" else None
                # without the callback, with which no passes are shared
                many = minimize_many_losses(
                    self.task.data.X, labels, *self._together(class_weight), self.task.data.weights, starts
                )
                return [self._reported(binary, result) for binary, result in zip(problems, many, strict=True)]
            except InputError:  # the message is to name the class
                pass
        found: list[LossResult] = []
        for k, binary in enumerate(problems):
            found.append(self.result(binary, None if starts is None else starts[k], k, to_come=len(problems) - 1 - k))
            if found[-1].status is Status.INTERRUPTED:
                break
        return found

    def constant_plane(self) -> LeastPlane:
        """Return w = 0 and a b that predicts the only class with weight, where there is nothing to separate.

        With probabilities no b is best, and the loss of this one is at most `tol`. The interval is from 0 to that loss, or to the
        loss of b = 0 where b is not free.
        """
        data, loss, intercept = self.task.data, Loss.of(self.options.loss), Intercept.of(self.options.intercept)
        assert data.weights is not None  # otherwise all classes have weight
        single, weights = Loss.LOGISTIC if loss.several else loss, data.weights
        with np.errstate(over="ignore", under="ignore"):
            c = checked_C(self.options.C) * weights
        require_constants(c, weights, range(len(c)))
        total = bounds.sum_bounds(bounds.above(c[c > 0]))[1]
        known = min(total, sys.float_info.max)
        b = max(1.0, math.log(known) - math.log(self.options.tol) + 1e-6) if loss.probabilities else 1.0
        cost = float(single.cost(np.array(b))) if intercept.grouped else single.at_zero(2)
        upper = bounds.up(total * cost * (1 + COST_ERROR)) if cost > 0 else 0.0
        b = b if data.only else -b
        if loss.several:
            return LeastPlane(np.zeros((data.X.d, 2)), np.array([-b / 2, b / 2]), (0.0, upper), None)
        return LeastPlane(np.zeros(data.X.d), b, (0.0, upper), None)

    def _reported(self, binary: Binary, result: LossResult) -> LossResult:
        """Return the result with its status for the `tol` of the fit, and print it if `verbose` says so."""
        if result.gap <= self.options.tol:  # small problems have a smaller one
            result = replace(result, status=Status.SOLVED)
        if self.options.verbose:
            print(f"[LinearClassifier] {binary.name}: {result.sentence}", flush=True)
        return result

    def remarks(self, results: Sequence[LossResult]) -> Iterator[str]:
        """Iterate over further advice: that the columns are badly scaled."""
        solved = all(result.gap <= self.options.tol for result in results)
        hint = scale_hint(self.task.data.X, np.vstack([result.w.T for result in results]) if solved else None)
        if hint:
            yield hint

    def _numerical_advice(self, binary: Binary, result: LossResult) -> str:
        """Return what to do about an interval that rounding leaves wider than `tol`."""
        C = self.options.C * (1.0 if binary.weights is None else float(np.max(binary.weights)))
        if C >= MIN_C or result.objective[0] > 0:
            X = self.task.data.X
            far = far_column(X, far_origin(Matrix(X)) if Intercept(self.options.intercept).grouped else None)
            if not far:
                return "scale the columns of X, or pass a smaller C"
            subtract = f"subtract the mean of column {far}, which is far from 0 for its spread"
            return f"scale the columns of X and {subtract} (StandardScaler does both), or pass a smaller C"
        times = "" if binary.weights is None else " × the largest weight of a row"
        return (
            f"{self.task.words.option('C')}{times} is {C:.3g}, which is too small for a proof of a positive lower end; "
            f"pass a larger C, such that it is at least {MIN_C:g}"
        )

    def convergence_message(self, problems: Sequence[Binary], results: Sequence[LossResult]) -> str | None:
        """Return the warning about intervals that are wider than `tol`; None if there are none."""
        wide = [(binary, result) for binary, result in zip(problems, results, strict=True) if result.gap > self.options.tol]
        if not wide:
            return None
        binary, result = max(wide, key=lambda pair: pair[1].gap)
        lower, upper = outward(*result.objective)
        others = f", and {len(wide) - 1} more" if len(wide) > 1 else ""
        advice = limit_advice(result.status, self.task.words) or self._numerical_advice(binary, result)
        return (
            f"{binary.name}{others}: stopped ({result.status}) with the least value between {lower} and {upper}, a gap of "
            f"{result.gap:.1e} where {self.task.words.option('tol')} is {self.options.tol:g}; {advice}"
        )


def model_of_least_loss(
    kind: Kind,
    classes: Array,
    planes: Sequence[LeastPlane],
    options: LossParameters,
    names: Sequence[Any] | None,
    factors: Array | None,
) -> Model:
    """Return the model of these planes; `factors` are the class weights of the fit."""
    return build_model(
        kind,
        classes,
        planes,
        names,
        margins=np.array([plane.objective for plane in planes], dtype=np.float64),
        norm=2.0,
        nu=None,
        intercept_kind=str(options.intercept),
        estimator="LinearClassifier",
        planes=tuple(PlaneFacts(None, None) for _ in planes),
        loss=str(options.loss),
        C=float(options.C),
        options=options_of(options, factors),
    )


def places_of(model: Model) -> list[Place] | None:
    """Return what a model says about the minimizers of its problems, in order; None if it says nothing."""
    if model.places is None:
        return None
    classes = len(model.classes) if model.kind == "multinomial" else None
    intercept, d = Intercept(model.intercept_kind), model.coef.shape[1]
    return [Place.of_row(row, intercept, d, classes) for row in model.places]


def least_planes(model: Model) -> list[LeastPlane]:
    """Return the planes of a model, with their intervals, certificates and regions."""
    intervals = [(float(lower), float(upper)) for lower, upper in model.margins]
    parts = intervals, certificates_of(model), places_of(model) or []
    return planes_from_parts(model.kind, model.coef, model.intercept, *parts)


def planes_from_parts(
    kind: Kind, coef: Array, b: Array, intervals: Sequence[Any], certificates: Sequence[Any], places: Sequence[Place]
) -> list[LeastPlane]:
    """Return the plane of each problem; for the multinomial loss there is one problem with the planes of all classes."""
    found: Any = [(coef.T, b)] if kind == "multinomial" else zip(coef, b.tolist(), strict=True)
    known: Sequence[Place | None] = places or [None for _ in intervals]
    proved = zip(found, intervals, certificates, known, strict=True)
    return [LeastPlane(*plane, *facts) for plane, *facts in proved]
