"""`minimize_loss`: the plane of least regularized loss, with a certified interval for that least value."""

from __future__ import annotations

import html
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from gordan.arrays import (
    Array,
    check_callback,
    is_number,
    positive,
    require_aligned,
    seconds_at_most,
    seed,
    vector,
    whole_number_or_none,
)
from gordan.blas import blas_threads
from gordan.certificates import Certificate
from gordan.certificates.losses import Objective, Optimum, hash_of_weights, row_constants
from gordan.certificates.matrix import Matrix
from gordan.certificates.multinomial import Multinomial
from gordan.certificates.problem import Problem, is_table
from gordan.certificates.regions import ClassRegion, Place, Region, certain_label, region_of
from gordan.checkpoint import Checkpoint
from gordan.errors import InputError
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept
from gordan.ledger.optimum import LossEvidence, LossQuestion, without_plane
from gordan.ledger.question import Budget, Play
from gordan.losses import Loss
from gordan.rows import host, stored
from gordan.solve.finders import answer
from gordan.statuses import Status
from gordan.trace import Moment, Trace
from gordan.verdicts.scaling import scale_hint
from gordan.verdicts.telling import bound, outward
from gordan.verdicts.weights import combined_weights, weight_factors

# A plane whose value is more than so much of that without one, w = 0, is of no use: sizes beyond reason lead finders astray.
NO_BETTER = 1.01
# Sample weights up to which a certificate holds them; of more it holds a hash.
MOST_STORED = 100_000


@dataclass(frozen=True, eq=False)
class LossResult:
    """What `minimize_loss` found and proved.

    `objective` is a certified interval (lower, upper) for the least value of ½‖w‖² + Σ C_i ℓ(y_i(x_i·w + b)); `upper` is that
    of the plane `w`, `b`. `gap` is the relative width of the interval. w* is the exact minimizer: `radius` bounds its
    distance from w (for a penalized intercept that of (w*, b*) from (w, b)), `coef_interval` each of its entries,
    `intercept_interval` every b* that is the best. Of a multinomial loss w is (d, k) and b (k,), in the order of the labels, ‖·‖
    the Frobenius norm, and 0 the sum of a free b, which counts only up to a constant. `status` is

        solved             gap ≤ tol
        iteration-limit, time-limit, interrupted   what was proved by then
        no-progress        rounding leaves no narrower interval
    """

    status: Status
    w: Array
    b: Any
    objective: tuple[float, float]
    loss: str
    C: float
    intercept: str
    n_iter: int
    passes: float
    seconds: float
    trace: Trace | None = field(repr=False)
    _optimum: Optimum = field(repr=False)
    _evidence: LossEvidence = field(repr=False)
    _placed: Callable[[], Place] | None = field(default=None, repr=False)

    @property
    def gap(self) -> float:
        """(upper - lower)/upper; 0 if upper is 0."""
        return self._optimum.relative_width

    @property
    def radius(self) -> float:
        """‖w - w*‖ is at most this (proved)."""
        return self._optimum.radius

    @property
    def coef_interval(self) -> Array:
        """(d, 2), of a multinomial loss (d, k, 2): every entry of w* lies in its interval (proved)."""
        return region_of(self._evidence.question.objective, self._optimum, self.b).coef  # which needs no X

    @property
    def intercept_interval(self) -> Any:
        """Every b* lies in it (proved): two numbers, or an array (k, 2)."""
        return self._region.intercept

    @property
    def support(self) -> Array:
        """The rows that are proved to have a positive weight at the optimum."""
        return self._region.weights[0]

    @property
    def not_support(self) -> Array:
        """The rows that are proved to have none: without them the minimizer is the same."""
        return self._region.weights[1]

    @ieee_floats()
    def same_prediction(self, Z: Any) -> Array:
        """For each row of Z, whether the exact minimizer is proved to predict the same label as this plane."""
        storage = stored(Z)
        if storage.d != len(self.w):
            raise InputError(f"Z has {storage.d} columns, but the plane was found for {len(self.w)}")
        X = Matrix(storage)
        own = certain_label(X, self.w, self.b)
        return np.asarray((own >= 0) & (own == self._region.place.label(X)))

    @property
    def claim(self) -> Certificate:
        """The certificate without the plane (`with_planes` adds it) and without the hash of the data: at no cost."""
        evidence = self._evidence
        return replace(
            evidence.question.head,
            b=None if self.w.ndim > 1 else self.b,
            rows=tuple(evidence.rows.tolist()),
            weights=tuple(evidence.alpha.tolist()),
            lower=self.objective[0],
            upper=self.objective[1],
        )

    @property
    def bare_certificate(self) -> Certificate:
        """The certificate without the hash of the data."""
        return with_planes(self.claim, self.w, self.b)

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate, bound to the data by its hash (computed on first access; an InputError if X was changed before)."""
        return bound(self.bare_certificate, self._evidence.question.problem)

    @property
    def place(self) -> Place:
        """What is proved of the exact minimizer, as a model file holds it; for as long as X is what it was. For several
        label vectors all are found at once."""
        if self._placed is not None:
            return self._placed()
        return region_of(self._evidence.question.objective, self._optimum, self.b).place

    @cached_property
    def _region(self) -> Region | ClassRegion:
        """Where the minimizer is; all that depends on X is computed at once, while X is known to be what it was."""
        question = self._evidence.question
        require_unchanged(question.problem)
        region = region_of(question.objective, self._optimum, self.b)
        _ = region.intercept, region.weights, region.place
        return region

    def __repr__(self) -> str:
        hint = scale_hint(self._evidence.question.problem.storage, self.w.T if self.status is Status.SOLVED else None)
        return f"{self.sentence}; {hint}" if hint else self.sentence

    @property
    def sentence(self) -> str:
        """The result in words, without a hint about the data."""
        lower, upper = outward(*self.objective)
        passes = f"{self.passes:,.0f}" if self.passes >= 1000 else f"{self.passes:.3g}"
        effort = f"{self.n_iter:,} step{'s' * (self.n_iter != 1)}, {passes} pass{'es' * (passes != '1')}, {self.seconds:.2g} s"
        words = "solved" if self.status is Status.SOLVED else f"stopped ({self.status.value})"
        name = self.loss.replace("_", " ")
        return f"{words}: the least value ({name}, C = {self.C:g}) is between {lower} and {upper} (proved; {effort})"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"


def with_planes(claim: Certificate, w: Array, b: Any) -> Certificate:
    """The claim with the plane, or those of several classes, which it is about."""
    planes = np.vstack((w, b)) if w.ndim > 1 and Intercept(claim.intercept).exists else w
    return replace(claim, w=tuple(planes.T.reshape(-1).tolist()))


def require_unchanged(problem: Problem) -> None:
    """Refuse an X that was changed."""
    if problem.X.changed:
        raise InputError(
            "X was changed after it was read, so that nothing more can be proved about what it was; ask for "
            "intercept_interval, support or same_prediction before you change X, or pass a copy of it"
        )


def minimize_loss(
    X: Any,
    y: Any,
    *,
    loss: str = "squared_hinge",
    C: float = 1.0,
    intercept: str = "free",
    tol: float = 1e-4,
    sample_weight: Any = None,
    class_weight: Mapping[Any, float] | str | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    start: Any = None,
    random_state: Any = None,
    threads: int | None = None,
    device: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    callback: Callable[[Moment], object] | None = None,
) -> LossResult:
    """The w, b of least ½‖w‖² + Σ C_i ℓ(y_i(x_i·w + b)), and a proof of how small that can be.

    Returns a `LossResult`, or a `ManyLosses` for a table of labels.

    Parameters
    ----------
    X, y
        data; X dense or sparse with exact values, y two labels of any kind, or more of them for the multinomial loss. y may have
        several columns: True and False, or -1, 0 and 1, where 0 leaves the row out. Each is solved, small ones together.
    loss
        "hinge" (1 - z)₊, "squared_hinge" (1 - z)₊² or "logistic" log(1 + e⁻ᶻ), z = y(x·w + b); or "multinomial" log Σ_c e^{s_c} -
        s_y, s = Wᵀx + b, for all classes at once: w is then (d, k), and b (k,).
    C
        a positive number: the larger, the less the norm of w matters. C_i = C × sample weight × weight of the row's class.
    intercept
        "free" (b costs nothing), "penalized" (½b² is added, as LIBLINEAR does) or "none".
    tol
        relative width of the certified interval for the least value to stop at.
    sample_weight, class_weight
        weights of the rows, and of classes by label, or "balanced" (by sums of sample weights).
    max_iter, time_limit
        rounds (steps of Newton's method, epochs of coordinate ascent) at most for each column of y, and seconds for all of
        them; what is proved by then is returned.
    start
        an earlier result for data of as many columns (any C, any rows), or a finite w (with b as a last entry, of several classes
        a last row, or without) to start from; for several columns of y the results for as many.
    random_state
        seed of the order in which rows are visited, and of those that a first plane is found for where there are many.
    threads
        threads a pass may use; all cores if None.
    device
        where to look for the plane: "cuda" copies X to the GPU once, "cpu" brings it to the host; None leaves it where it is.
    checkpoint
        a file that the run is written to, every half minute and when it ends for whatever reason; the same call goes on with
        its last plane. The limits are those of this call; `n_iter` of the result is the total.
    callback
        called with each step as a `Moment`, whose `lower` and `upper` are estimates; returning True stops the search.

    Examples
    --------
    >>> import gordan
    >>> r = gordan.minimize_loss([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], C=1.0)
    >>> r.status, r.gap <= 1e-4, len(r.coef_interval)
    ('solved', True, 1)
    """
    kind, chosen, tol, limit = Intercept.of(intercept), Loss.of(loss), positive(tol, "tol"), seconds_at_most(time_limit)
    max_iter, threads = whole_number_or_none(max_iter, "max_iter"), whole_number_or_none(threads, "threads")
    if not (is_number(C) and 0 < C < math.inf):
        raise InputError(f"C is {C!r:.60}; pass a positive finite number")
    if float(C) != C:
        raise InputError(f"C is {C!r:.60}, an integer that float64 cannot hold; pass a float")
    callback = check_callback(callback, "moment")
    started = time.perf_counter()
    budget = Budget(started, started + limit, max_iter, threads, seed(random_state))
    asked = Asked(chosen, float(C), kind, tol, class_weight, callback)
    if not chosen.several and is_table(X, y):
        from gordan.verdicts.many import ManyLosses

        if checkpoint is not None:
            raise InputError("a checkpoint is for one label vector; leave it out, or pass the columns of Y one by one")
        require_aligned(X=X, y=y, sample_weight=sample_weight)
        return cast(
            "LossResult", ManyLosses.of(X, y, device, budget, asked, sample_weight, start)
        )  # what checkers of types expect of one y
    problem = Problem.of(X, y, device, several=chosen.several).nearby().watched(X)
    require_aligned(X=X, y=y, sample_weight=sample_weight)
    keeper = None if checkpoint is None else Checkpoint(checkpoint)
    question = question_of(problem, budget, asked, sample_weight, start)
    return result_of(replace(question, play=replace(question.play, checkpoint=keeper)))


class Asked(NamedTuple):
    """Which loss is asked for, and how narrow the interval for its least value is to be; `class_weight` as it was passed."""

    loss: Loss
    C: float
    kind: Intercept
    tol: float
    class_weight: Any
    watch: Callable[[Moment], object] | None


def question_of(
    problem: Problem, budget: Budget, asked: Asked, sample_weight: Any = None, start: LossResult | Array | None = None
) -> LossQuestion:
    """The question about one problem; rows of sign 0 have no weight in it."""
    kept = np.flatnonzero(problem.signs)
    which = (problem.signs[kept] > 0).astype(np.intp) if problem.which is None else problem.which
    given = sample_weight
    if sample_weight is not None and len(kept) < problem.X.n:
        given, _ = weight_factors(sample_weight, None, problem.classes, np.zeros(problem.X.n, np.intp))
        sample_weight = None if given is None else given[kept]
    sample, factors = weight_factors(sample_weight, asked.class_weight, problem.classes, which)
    weights = combined_weights(sample, factors, problem.classes, which)  # refuses what leaves a class without weight
    c = row_constants(asked.C, sample, factors, which)
    if not np.isfinite(c).all():
        row = int(kept[np.argmin(np.isfinite(c))])
        raise InputError(f"the weight of row {row} overflows: C × its weight; divide one of them")
    if weights is not None and ((c == 0) & (weights > 0)).any():
        row = int(kept[np.argmax((c == 0) & (weights > 0))])
        raise InputError(f"the weight of row {row} underflows: C × its weight; multiply one of them, or make the weight 0")
    if len(kept) < problem.X.n:
        whole = np.zeros(problem.X.n)
        whole[kept] = c
        c, sample = whole, given
    several = len(problem.classes) if asked.loss.several else None
    return LossQuestion(
        problem,
        Objective(problem.X, problem.signs, asked.loss, c, asked.kind)
        if several is None
        else Multinomial(problem.X, which, several, c, asked.kind),
        budget,
        asked.tol,
        Play(start=_start(start, asked.kind, problem.X.d, several), watch=asked.watch),
        head_of(problem, asked, sample, factors),
    )


def result_of(question: LossQuestion, evidence: LossEvidence | None = None, steps: int = 0) -> LossResult:
    """What is found about a question, or follows from evidence that there is; so many steps were taken before."""
    # finders may overflow: what they then propose is not finite, and proves nothing
    known = evidence is not None  # and nothing was passed over here
    with blas_threads(question.problem.storage.entries), np.errstate(over="ignore", invalid="ignore"):
        evidence = answer(question) if evidence is None else evidence
        assert evidence is not None
        found, asked = evidence.optimum, question.objective
        at_zero = float(np.sum(asked.c)) * asked.loss.at_zero(len(question.problem.classes))
        useless = found is None or not found.upper <= NO_BETTER * at_zero
        optimum = without_plane(evidence) if found is None or useless else found
    assert evidence.w is not None
    effort, objective = evidence.effort, question.objective
    return LossResult(
        status=_status(evidence),
        w=evidence.w.copy(),  # so that whoever changes it does not change what is proved
        b=evidence.b,
        objective=(optimum.lower, optimum.upper),
        loss=objective.loss.value,
        C=float(question.head.C or 0.0),
        intercept=objective.intercept.value,
        n_iter=steps + (0 if effort.trace is None else int(effort.trace.t[-1])),
        passes=0.0 if known else evidence.question.rows.passes,
        seconds=time.perf_counter() - question.budget.started,
        trace=effort.trace,
        _optimum=optimum,
        _evidence=evidence,
    )


def head_of(problem: Problem, asked: Asked, sample: Array | None, factors: Array | None = None) -> Certificate:
    """The certificate without its proof."""
    stored = sample is not None and len(sample) <= MOST_STORED
    return Certificate(
        "optimum",
        asked.kind.value,
        problem.classes,
        (problem.X.n, problem.X.d),
        loss=asked.loss.value,
        C=asked.C,
        class_weight=None if factors is None else tuple(factors.tolist()),
        sample_weight=tuple(sample.tolist()) if sample is not None and stored else None,
        weights_hash=None if sample is None or stored else hash_of_weights(sample),
    )


def _start(start: LossResult | Array | None, kind: Intercept, d: int, k: int | None) -> Array | None:
    """w, with b as its last entry where there is one: 0 for a w that comes without. Of k classes, these are the columns."""
    if start is None:
        return None
    if k is not None:
        return _block_start(start, kind, d, k)
    found = np.append(start.w, start.b) if isinstance(start, LossResult) else start
    if kind.exists and np.shape(found) == (d + 1,):
        plane = vector(found, "start", d + 1, "columns")
    else:
        w = vector(found[:d] if isinstance(start, LossResult) else found, "start", d, "columns")
        plane = np.append(w, 0.0) if kind.exists else w
    if not np.isfinite(plane).all():
        row = int(np.argmin(np.isfinite(plane)))
        raise InputError(f"start[{row}] is not finite; pass an earlier result or a finite w, or None")
    return plane


def _block_start(start: LossResult | Array, kind: Intercept, d: int, k: int) -> Array:
    found = np.vstack((start.w, start.b)) if isinstance(start, LossResult) and start.w.ndim == 2 else getattr(start, "w", start)
    try:
        planes = np.array(host(found), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("start must hold real numbers, or be an earlier result") from None
    if planes.shape not in ((d, k), (d + 1, k)) or not np.isfinite(planes).all():
        raise InputError(f"start must be finite and of shape {(d, k)}, or {(d + 1, k)} with b; its shape is {planes.shape}")
    if kind.exists and len(planes) == d:
        planes = np.vstack((planes, np.zeros(k)))
    return planes[: d + kind.exists]


def _status(evidence: LossEvidence) -> Status:
    budget, effort = evidence.question.budget, evidence.effort
    if evidence.answered:
        return Status.SOLVED
    if effort.stopped:
        return Status.INTERRUPTED
    if budget.short:
        return Status.TIME_LIMIT
    return Status.ITERATION_LIMIT if effort.trace is not None and effort.trace.status == "rounds" else Status.NO_PROGRESS
