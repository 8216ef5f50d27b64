"""A fit of least loss: the binary problems that some labels make, and the plane of each.

`LinearClassifier.fit` and `gordan fit --loss` are both this. Without scikit-learn, which takes a second to import.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from gordan.arrays import Array
from gordan.certificates import Certificate
from gordan.certificates.regions import Place
from gordan.errors import InputError, did_you_mean
from gordan.estimators.models import IN_PYTHON, Words, places_of_planes, with_planes
from gordan.intercepts import Intercept
from gordan.io.model import Model, PlaneFacts
from gordan.io.model import problems as number_of_problems
from gordan.losses import Loss
from gordan.statuses import Status
from gordan.trace import Moment
from gordan.verdicts import LossResult, minimize_loss, outward
from gordan.verdicts.multiclass import Binary, binary_problems
from gordan.verdicts.scaling import scale_hint

# Entries of X up to which a fit goes on until rounding stops it: it costs milliseconds, and `coef_` then has ten digits or more.
FEW_ENTRIES = 1 << 17
FINISH = 1e-12
# Seconds for a row and class to find where the minimizer is (`benchmarks/limits.py`), and the share of a limit kept for that.
PLACE, MOST_KEPT = 5e-7, 0.25


# What other libraries call a parameter, and what to pass here.
INSTEAD = {
    "fit_intercept": "pass intercept='none' for no intercept, 'free' for one that is not penalized",
    "penalty": "the penalty is half the square of the Euclidean norm",
}
Class = TypeVar("Class")


def naming_itself(cls: type[Class]) -> type[Class]:
    """The class of parameters, such that it refuses unknown ones by the name of the estimator, with what may be meant."""
    made: Any = cls.__dict__["__init__"]

    @wraps(made)
    def __init__(self: Any, *given: Any, **named: Any) -> None:
        known = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        for name in (name for name in named if name not in known):
            hint = INSTEAD.get(name) or did_you_mean(name, known) or f"it has {', '.join(sorted(known))}"
            raise TypeError(f"{type(self).__name__} has no parameter {name!r}; {hint}")
        made(self, *given, **named)

    cls.__init__ = __init__  # type: ignore[method-assign]
    return cls


@naming_itself
@dataclass(eq=False, repr=False)
class LossParameters:
    """The parameters of `LinearClassifier`, which describes them. They are listed here and nowhere else."""

    loss: Literal["squared_hinge", "hinge", "logistic", "multinomial"] = "squared_hinge"
    C: float = 1.0
    _: KW_ONLY
    intercept: Literal["free", "penalized", "none"] = "free"
    tol: float = 1e-4
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
    max_iter: int | None = None
    time_limit: float | None = None
    warm_start: bool = False
    n_jobs: int | None = None
    device: str | None = None
    random_state: Any = None
    verbose: int = 0


class LeastPlane(NamedTuple):
    """The plane of one binary problem, as a model file holds it; or those of all classes, columns of w."""

    w: Array
    b: Any
    objective: tuple[float, float]
    certificate: Certificate | None
    place: Place | None = None

    @staticmethod
    def of(result: LossResult, certificate: Certificate | None) -> LeastPlane:
        """What a result found, with that certificate of it."""
        return LeastPlane(result.w, result.b, result.objective, certificate, result.place)


@dataclass(frozen=True, eq=False)
class LossFitting:
    """What is asked of every binary problem that the labels y make over one storage X; `classes` are the labels in order.

    `seed` is that of `random_state`, `watch` a callback of `minimize_loss`; `checkpoint` is the file of a run, with the number of
    the class behind its name where there is one for each.
    """

    options: LossParameters
    X: Any
    y: Array
    classes: Array
    weights: Array | None
    deadline: float
    seed: Any = None
    threads: int | None = None
    watch: Callable[[Moment], object] | None = None
    words: Words = IN_PYTHON
    checkpoint: Path | None = None

    @property
    def kind(self) -> str:
        """What the planes separate, as in `gordan.io.Model`."""
        if self.y.ndim == 2:
            return "multilabel"
        if Loss.of(self.options.loss).several:
            return "multinomial"
        return "binary" if len(self.classes) == 2 else "one-vs-rest"

    def problems(self) -> Iterator[Binary]:
        """The binary problems, in the order of the planes of a model; made one at a time."""
        return binary_problems(
            self.kind, self.y, self.classes.tolist(), self.weights, self.words.label, self.options.class_weight
        )

    def _asked(self) -> dict[str, Any]:
        """What `minimize_loss` is asked for, whatever the labels, in the time that is left."""
        options = self.options
        return {
            "loss": options.loss,
            "C": options.C,
            "intercept": options.intercept,
            "tol": min(options.tol, FINISH) if self.X.entries <= FEW_ENTRIES else options.tol,
            "max_iter": options.max_iter,
            "time_limit": None if options.time_limit is None else self._left(),
            "random_state": self.seed,
            "threads": self.threads,
        }

    def _left(self) -> float:
        """Seconds that a search may take: what is left but for finding where the minimizers are afterwards."""
        left, rows = self.deadline - time.perf_counter(), int(self.X.n)
        return max(1e-3, left - min(MOST_KEPT * left, PLACE * rows * len(self.classes)))

    def checkpoint_of(self, k: int) -> Path | None:
        """The file of the run of problem k."""
        if self.checkpoint is None or number_of_problems(self.kind, len(self.classes)) == 1:
            return self.checkpoint
        return self.checkpoint.with_name(f"{self.checkpoint.name}.{k}")

    def result(self, binary: Binary, start: Array | None = None, k: int = 0) -> LossResult:
        """The plane of least loss of problem k; `start` is a w to start from, with b as its last entry."""
        try:
            result: LossResult = minimize_loss(
                self.X,
                binary.labels,
                sample_weight=binary.weights,
                start=start,
                **self._asked(),
                checkpoint=self.checkpoint_of(k),
                callback=self.watch,
            )
        except InputError as error:
            if binary.is_whole:
                raise
            raise InputError(f"{binary.name}: {error}") from None
        return self._told(binary, result)

    def results(self, problems: Sequence[Binary], starts: Sequence[Array | None]) -> list[LossResult]:
        """The planes of several problems: classes against the rest, and labels of which a row may have several, share the
        passes over X, and those that the time is up for are not begun."""
        if len(problems) < 2 or self.watch is not None:
            return [self.result(binary, start) for binary, start in zip(problems, starts, strict=True)]
        try:
            many: Any = minimize_loss(
                self.X,
                np.array([binary.positive for binary in problems]).T,  # columns are what is read of it
                sample_weight=self.weights,
                class_weight=self.options.class_weight if self.kind == "multilabel" else None,
                start=None if any(start is None for start in starts) else [*starts],
                **self._asked(),
            )
        except InputError:  # one by one, by the name of the class
            return [self.result(binary, start) for binary, start in zip(problems, starts, strict=True)]
        return [self._told(binary, result) for binary, result in zip(problems, many, strict=True)]

    def _told(self, binary: Binary, result: LossResult) -> LossResult:
        if result.gap <= self.options.tol:  # small problems go on until rounding stops them
            result = replace(result, status=Status.SOLVED)
        if self.options.verbose:
            print(f"[LinearClassifier] {binary.name}: {result.sentence}", flush=True)
        return result

    def remarks(self, results: Sequence[LossResult]) -> Iterator[str]:
        """What else there is to say: columns of very different size."""
        solved = all(result.gap <= self.options.tol for result in results)
        hint = scale_hint(self.X, np.vstack([result.w.T for result in results]) if solved else None)
        if hint:
            yield hint

    def unfinished(self, problems: Sequence[Binary], results: Sequence[LossResult]) -> str | None:
        """What to say of the intervals that are wider than `tol`; None where there are none."""
        wide = [(binary, result) for binary, result in zip(problems, results, strict=True) if result.gap > self.options.tol]
        if not wide:
            return None
        binary, result = wide[0]
        lower, upper = outward(*result.objective)
        others = f", and {len(wide) - 1} more" if len(wide) > 1 else ""
        larger = {Status.ITERATION_LIMIT: "max_iter", Status.TIME_LIMIT: "time_limit"}.get(result.status)
        advice = "scale the columns of X, or pass a smaller C" if larger is None else f"pass a larger {self.words.option(larger)}"
        return (
            f"{binary.name}{others}: stopped ({result.status}) with the least value between {lower} and {upper}, a gap of "
            f"{result.gap:.1e} where {self.words.option('tol')} is {self.options.tol:g}; {advice}"
        )


def model_of_least_loss(
    kind: str, classes: Array, planes: Sequence[LeastPlane], options: LossParameters, names: Sequence[Any] | None
) -> Model:
    """The model of these planes, with their certificates if all of them have one, and likewise with what is known of the
    minimizers."""
    return with_planes(
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
        places=places_of_planes(planes),
    )


def places_of(model: Model) -> list[Place] | None:
    """Where the minimizers of a model are, one for each of its problems; None where it does not say."""
    if model.places is None:
        return None
    classes = len(model.classes) if model.kind == "multinomial" else None
    kind, d = Intercept(model.intercept_kind), model.coef.shape[1]
    return [Place.of_row(row, kind, d, classes) for row in model.places]


def least_planes(model: Model) -> list[LeastPlane]:
    """The planes of a model, with what it says of them."""
    texts = model.certificates or [None] * len(model.margins)
    certificates = [None if text is None else Certificate.from_json(text) for text in texts]
    intervals = [(float(lower), float(upper)) for lower, upper in model.margins]
    return planes_of(model.kind, model.coef, model.intercept, intervals, certificates, places_of(model) or [])


def planes_of(
    kind: str, coef: Array, b: Array, intervals: Sequence[Any], certificates: Sequence[Any], places: Sequence[Place]
) -> list[LeastPlane]:
    """The planes of each problem, of the multinomial loss those of all classes."""
    found: Any = [(coef.T, b)] if kind == "multinomial" else zip(coef, b.tolist(), strict=True)
    known: Sequence[Place | None] = places or [None for _ in intervals]
    proved = zip(found, intervals, certificates, known, strict=True)
    return [LeastPlane(*plane, *facts) for plane, *facts in proved]
