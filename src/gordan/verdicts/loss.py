"""`minimize_loss`: the plane of least regularized loss, with a certified interval for that least value."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, overload

import numpy as np

from gordan.arrays import Array, check_callback, is_number, positive, require_aligned, vector
from gordan.blas import blas_threads
from gordan.certificates import Certificate
from gordan.certificates.losses import Objective, Optimum, hash_of_weights, row_constants
from gordan.certificates.matrix import Matrix
from gordan.certificates.multinomial import Multinomial
from gordan.certificates.problem import Problem, is_table
from gordan.certificates.regions import Place, certain_label, region_of
from gordan.checkpoint import Checkpoint
from gordan.errors import InputError
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept
from gordan.ledger.optimum import LossEvidence, LossQuestion, LossSubject, without_plane
from gordan.ledger.question import Budget, Play
from gordan.losses import Loss
from gordan.rows import column_names, host, stored
from gordan.solve.finders import answer
from gordan.statuses import Status
from gordan.trace import Moment, Trace
from gordan.verdicts.arguments import LabelTable, LabelVector, WeightedKeywords, budget_of
from gordan.verdicts.formatting import bound_to_data, format_effort, html_paragraph, outward
from gordan.verdicts.result import stop_status
from gordan.verdicts.scaling import scale_hint
from gordan.verdicts.weights import combined_weights, scatter, weight_factors

if TYPE_CHECKING:
    from gordan.verdicts.many import ManyLosses

# A plane whose objective is more than this times that of w = 0 is discarded: entries of extreme size lead finders astray.
USELESS = 1.01
# The most sample weights that a certificate contains; it contains a hash of a larger number.
MAX_STORED = 100_000
# After the time limit a free b* is not located if the gap is wider than this: that would prove hardly anything, and take longer
# than the proof of the objective.
MAX_GAP_TO_LOCATE_B = 0.1


class Located(NamedTuple):
    """What is proved about the exact minimizer: the interval of b*, the rows with and without weight, and its place."""

    intercept: Any
    support: Array
    not_support: Array
    place: Place


@dataclass(frozen=True, eq=False)
class LossResult:
    """The answer of `minimize_loss`: a plane, and a certified interval for the least value of the objective.

    The objective is ½‖w‖² + Σ C_i ℓ(y_i(x_i·w + b)), and w* is its exact minimizer. For the multinomial loss w has shape (d, k)
    and b shape (k,), in the order of the labels, and ‖·‖ is the Frobenius norm; a free b, which is determined up to a constant,
    has the sum 0.

    Attributes
    ----------
    status : str
        How the search ended:

        - "solved": the relative width of the interval, `gap`, is at most `tol`.
        - "iteration-limit", "time-limit", "interrupted": the search was stopped, with what was proved by then.
        - "no-progress": rounding allows no narrower interval.
    w : ndarray of shape (d,) or (d, k)
        The coefficients of the plane, or of the planes of k classes.
    b : float, or ndarray of shape (k,)
        The intercept.
    objective : tuple of float
        The certified interval (lower, upper) for the least value; `upper` is the value at `w`, `b`.
    loss, C, intercept
        The arguments of the call.
    n_iter : int
        The number of steps.
    passes : float
        How many times the stored entries of X were read.
    seconds : float
        The wall-clock time of the call.
    trace : Trace or None
        The recorded steps of the search, if there were any.

    See Also
    --------
    minimize_loss : The function that returns it.
    verify : Check its certificate.
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
        """The relative width of the interval, (upper - lower)/upper; 0 if both are 0."""
        return self._optimum.relative_width

    @property
    def radius(self) -> float:
        """A proved bound on ‖w - w*‖; with a penalized intercept on the distance of (w, b) from (w*, b*)."""
        return self._optimum.radius

    @property
    def coef_interval(self) -> Array:
        """Proved intervals for the entries of w*, of shape (d, 2); for the multinomial loss (d, k, 2)."""
        # not from `_located`: this part needs no X, so X may have been changed
        return region_of(self._evidence.question.objective, self._optimum, self.b).coef

    @property
    def intercept_interval(self) -> Any:
        """A proved interval (lower, upper) for every optimal intercept b*; for the multinomial loss an array of shape (k, 2)."""
        return self._located.intercept

    @property
    def support(self) -> Array:
        """The positions of the rows that are proved to have a positive weight at the optimum."""
        return self._located.support

    @property
    def not_support(self) -> Array:
        """The positions of the rows that are proved to have weight zero: without them the minimizer is the same."""
        return self._located.not_support

    @ieee_floats()
    def same_prediction(self, Z: Any) -> Array:
        """Return for each row of Z whether the exact minimizer is proved to predict the same label as this plane.

        Parameters
        ----------
        Z : array-like or sparse matrix of shape (m, d)
            The rows to predict.

        Returns
        -------
        ndarray of bool, of shape (m,)
            True where the labels are proved to be the same.
        """
        storage = stored(Z)
        if storage.d != len(self.w):
            raise InputError(f"Z has {storage.d} columns, but the plane was found for {len(self.w)}")
        about = self._evidence.question.problem.about
        _require_same_names(column_names(Z, storage.d), None if about is None else about.columns)
        X = Matrix(storage)
        own = certain_label(X, self.w, self.b)
        return np.asarray((own >= 0) & (own == self._located.place.label(X)))

    @property
    def claim(self) -> Certificate:
        """The certificate without the plane, which `with_planes` adds, and without the hash of the data."""
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
        """The certificate without the hash of the data, which is available at little cost and even if X was changed."""
        return with_planes(self.claim, self.w, self.b)

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate for `gordan.verify`.

        It contains a hash of the data, which is computed on first access; an InputError is raised if X was changed before.
        """
        return bound_to_data(self.bare_certificate, self._evidence.question.problem)

    @property
    def place(self) -> Place:
        """What is proved about the exact minimizer, as stored in a model file. X must not have been changed.

        For several label vectors it is computed for all of them at once. Nothing is said about a free b* if the time was up and
        the rows are not in memory, where the passes that it takes are long, or little is known about w*.
        """
        if self._placed is not None:
            return self._placed()
        objective = self._evidence.question.objective
        locate = self.status is not Status.TIME_LIMIT or (objective.X.storage.in_memory and self.gap <= MAX_GAP_TO_LOCATE_B)
        return region_of(objective, self._optimum, self.b, locate=locate).place

    @cached_property
    def _located(self) -> Located:
        """What is proved about the minimizer with the help of X, all of it at once, before X can be changed."""
        question = self._evidence.question
        require_unchanged(question.problem)
        region = region_of(question.objective, self._optimum, self.b)
        return Located(region.intercept, *region.weights, region.place)

    def __repr__(self) -> str:
        hint = scale_hint(self._evidence.question.problem.storage, self.w.T if self.status is Status.SOLVED else None)
        return f"{self.sentence}; {hint}" if hint else self.sentence

    @property
    def sentence(self) -> str:
        """The result in words, without advice about the scale of the columns."""
        lower, upper = outward(*self.objective)
        effort = format_effort(self.n_iter, "step", self.passes, self.seconds)
        ending = "solved" if self.status is Status.SOLVED else f"stopped ({self.status.value})"
        name = self.loss.replace("_", " ")
        return f"{ending}: the least value ({name}, C = {self.C:g}) is between {lower} and {upper} (proved; {effort})"

    def _repr_html_(self) -> str:
        return html_paragraph(self)


def _require_same_names(given: Sequence[str] | None, names: Sequence[str] | None) -> None:
    """Raise an InputError if columns have other names than those of X; numbers of columns are not names."""
    if given is None or names is None:
        return
    numbers = [str(j) for j in range(len(names))]
    differing = [(theirs, own) for theirs, own in zip(given, names, strict=True) if theirs != own]
    if differing and numbers not in ([*given], [*names]):
        theirs, own = differing[0]
        again = "Z has the same columns in another order" if sorted(given) == sorted(names) else "Z has other columns than X"
        fix = "pass the columns of X in their order, or Z.to_numpy() if these are the same"
        raise InputError(f"{again}: {theirs!r} is where X had {own!r}; {fix}")


def with_planes(claim: Certificate, w: Array, b: Any) -> Certificate:
    """Return the certificate `claim` with the plane that it is about, or the planes of several classes."""
    planes = np.vstack((w, b)) if w.ndim > 1 and Intercept(claim.intercept).exists else w
    return replace(claim, w=tuple(planes.T.reshape(-1).tolist()))


def require_unchanged(problem: Problem) -> None:
    """Raise an InputError if X was changed."""
    if problem.X.changed:
        raise InputError(
            "X was changed after it was read, so nothing more can be proved about its earlier values; use "
            "intercept_interval, support or same_prediction before you change X, or pass a copy of X"
        )


class LossKeywords(WeightedKeywords, total=False):
    """The keywords of `minimize_loss`."""

    loss: str
    C: float


@overload
def minimize_loss(X: Any, y: LabelVector, **options: Unpack[LossKeywords]) -> LossResult: ...
@overload
def minimize_loss(X: Any, y: LabelTable, **options: Unpack[LossKeywords]) -> ManyLosses: ...
@overload
def minimize_loss(X: Any, y: Any, **options: Unpack[LossKeywords]) -> LossResult: ...
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
) -> LossResult | ManyLosses:
    """Find the plane of least regularized loss, and prove how small that loss can be.

    The objective is ½‖w‖² + Σ C_i ℓ(y_i(x_i·w + b)), where C_i = C × sample weight × weight of the row's class.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        The data, one row per example, whose values are used exactly. Torch tensors, CuPy arrays, memory maps and Dask
        collections are accepted as well.
    y : array-like of shape (n,) or (n, k)
        Two labels of any kind (two or more for the multinomial loss), or several label vectors as columns: True and False, or
        -1, 0 and 1, where 0 leaves the row out of that column. Each column is solved separately, with shared passes over X.
    loss : {"squared_hinge", "hinge", "logistic", "multinomial"}, default="squared_hinge"
        "squared_hinge" is (1 - z)₊², "hinge" (1 - z)₊ and "logistic" log(1 + e⁻ᶻ), where z = y(x·w + b). "multinomial" is
        log Σ_c e^{s_c} - s_y for the scores s = Wᵀx + b of all classes; w then has shape (d, k) and b shape (k,).
    C : float, default=1.0
        The weight of the loss against the penalty ½‖w‖²: the larger C is, the less w is regularized.
    intercept : {"free", "penalized", "none"}, default="free"
        With "free" b is not penalized; with "penalized" ½b² is added to the objective, as in LIBLINEAR; "none" is b = 0.
    tol : float, default=1e-4
        Relative width of the certified interval for the least value to stop at.
    sample_weight : array-like of shape (n,), default=None
        The weights of the rows.
    class_weight : dict or "balanced", default=None
        Weights of the classes by label; "balanced" gives all classes the same total of sample weights.
    max_iter : int, default=None
        The number of rounds (steps of Newton's method, epochs of coordinate ascent) is at most this, for each column of y.
    time_limit : float, default=None
        Stop after this many seconds, for all columns of y together, and return what is proved.
    start : LossResult or array-like, default=None
        An earlier result to start from, for data with as many columns (with any C and any rows), or a finite w, with or without b
        as its last entry (for several classes, as its last row); for several columns of y, the results for as many.
    random_state : int, default=None
        Seed of the order in which rows are visited, and of the subsample that a first plane is found for if there are many rows.
    threads : int, default=None
        How many threads a pass may use; all cores if None.
    device : {"cuda", "cpu"}, default=None
        Where to search: "cuda" copies X to the GPU once, "cpu" copies it to main memory; None leaves it where it is.
    checkpoint : str or path, default=None
        A file that the run is written to, every half minute and when it ends for whatever reason. The same call resumes from its
        last plane. The limits apply to each call by itself; `n_iter` of the result is the total.
    callback : callable, default=None
        Called with each step as a `Moment`, whose `lower` and `upper` are estimates; returning True stops the search.

    Returns
    -------
    LossResult or ManyLosses
        The plane with the proof, or a sequence of k results with arrays of their parts if y has k columns.

    Raises
    ------
    InputError
        If an argument is invalid; the message names the entry and what to pass instead.

    See Also
    --------
    LinearClassifier : The same as a scikit-learn classifier.
    maximize_margin : Find the plane of largest margin, which has no C to choose.

    Examples
    --------
    >>> import gordan
    >>> r = gordan.minimize_loss([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], C=1.0)
    >>> r.status, r.gap <= 1e-4, len(r.coef_interval)
    ('solved', True, 1)
    """
    chosen = Loss.of(loss)
    options = LossOptions(
        loss=chosen,
        C=checked_C(C),
        intercept=Intercept.of(intercept),
        tol=positive(tol, "tol"),
        class_weight=class_weight,
        callback=check_callback(callback, "moment"),
    )
    budget = budget_of(max_iter, time_limit, random_state, threads)
    if not chosen.several and is_table(X, y):
        from gordan.verdicts.many import minimize_many_losses

        require_aligned(X=X, y=y, sample_weight=sample_weight)
        return minimize_many_losses(X, y, budget, options, sample_weight, start, device, checkpoint)
    problem = Problem.of(X, y, device, several=chosen.several).in_memory_if_small().watched(X)
    require_aligned(X=X, y=y, sample_weight=sample_weight)
    file = None if checkpoint is None else Checkpoint(checkpoint)
    return result_of(question_of(problem, budget, options, sample_weight, start, file))


def checked_C(C: Any, name: str = "C") -> float:
    """Return C as a float, or raise an InputError that calls it by this name."""
    if not (is_number(C) and 0 < C < math.inf):
        raise InputError(f"{name} is {C!r:.60}; pass a positive finite number")
    if float(C) != C:
        raise InputError(f"{name} is {C!r:.60}, an integer that float64 cannot hold; pass a float")
    return float(C)


class LossOptions(NamedTuple):
    """Which loss is asked for, and how narrow the interval for its least value is to be; `class_weight` is as it was passed.

    If several label vectors are solved together and rounding leaves an interval wider than `tol`, but not than `enough`, then
    that one is not solved by itself.
    """

    loss: Loss
    C: float
    intercept: Intercept
    tol: float
    class_weight: Any = None
    callback: Callable[[Moment], object] | None = None
    enough: float = 0.0


def require_constants(c: Array, weights: Array | None, rows: Any) -> None:
    """Refuse C_i = C × weight that are infinite, or 0 where the weight is not; `rows` are the numbers of the rows to name."""
    if not np.isfinite(c).all():
        row = int(rows[np.argmin(np.isfinite(c))])
        raise InputError(f"C × the weight of row {row} overflows; divide C or the weights by a constant")
    if weights is not None and ((c == 0) & (weights > 0)).any():
        row = int(rows[np.argmax((c == 0) & (weights > 0))])
        raise InputError(f"C × the weight of row {row} underflows; multiply C or the weights by a constant, or make it 0")


def question_of(
    problem: Problem, budget: Budget, options: LossOptions, sample_weight: Any, start: Any, checkpoint: Checkpoint | None = None
) -> LossQuestion:
    """Return the question about one problem, in which rows of sign 0 have no weight."""
    n, kept = problem.X.n, np.flatnonzero(problem.signs)
    which = (problem.signs[kept] > 0).astype(np.intp) if problem.which is None else problem.which
    given = sample_weight
    if sample_weight is not None and len(kept) < n:
        given, _ = weight_factors(sample_weight, None, problem.classes, np.zeros(n, np.intp))
        sample_weight = None if given is None else given[kept]
    sample, factors = weight_factors(sample_weight, options.class_weight, problem.classes, which)
    weights = combined_weights(sample, factors, problem.classes, which)  # refuses weights that leave a class without any
    c = row_constants(options.C, sample, factors, which)
    require_constants(c, weights, kept)
    if len(kept) < n:
        c, sample = scatter(c, kept, n), given
    several = len(problem.classes) if options.loss.several else None
    objective = (
        Objective(problem.X, problem.signs, options.loss, c, options.intercept)
        if several is None
        else Multinomial(problem.X, which, several, c, options.intercept)
    )
    return LossQuestion(
        LossSubject(problem, objective, budget.threads),
        budget,
        options.tol,
        Play(start=plane_of_start(start, options.intercept, problem.X.d, several), watch=options.callback, checkpoint=checkpoint),
        head_of(problem, options, sample, factors),
    )


def result_of(question: LossQuestion, evidence: LossEvidence | None = None, steps: int = 0) -> LossResult:
    """Return the result for a question, from the evidence if it is given; `steps` were taken before."""
    is_search = evidence is None  # otherwise no pass is made here
    # finders may overflow; what they propose then is not finite, and proves nothing
    with blas_threads(question.problem.storage.entries), np.errstate(over="ignore", invalid="ignore"):
        evidence = answer(question) if evidence is None else evidence
        question = evidence.question  # with the budget of the search, and the passes that it made
        objective, optimum = question.objective, evidence.optimum
        at_zero = float(np.sum(objective.c)) * objective.loss.at_zero(len(question.problem.classes))
        if optimum is None or not optimum.upper <= USELESS * at_zero:
            optimum = without_plane(evidence)
    assert evidence.w is not None
    trace = evidence.effort.trace
    return LossResult(
        status=Status.SOLVED if evidence.answered else stop_status(question.budget, evidence.effort),
        w=evidence.w.copy(),  # so that changing it does not change what is proved
        b=evidence.b,
        objective=(optimum.lower, optimum.upper),
        loss=objective.loss.value,
        C=float(question.head.C or 0.0),
        intercept=objective.intercept.value,
        n_iter=steps + (0 if trace is None else int(trace.t[-1])),
        passes=question.rows.passes if is_search else 0.0,
        seconds=time.perf_counter() - question.budget.started,
        trace=trace,
        _optimum=optimum,
        _evidence=evidence,
    )


def head_of(problem: Problem, options: LossOptions, sample: Array | None, factors: Array | None = None) -> Certificate:
    """Return the certificate without its proof."""
    stored = sample is not None and len(sample) <= MAX_STORED
    return Certificate(
        "optimum",
        options.intercept.value,
        problem.classes,
        (problem.X.n, problem.X.d),
        loss=options.loss.value,
        C=options.C,
        class_weight=None if factors is None else tuple(factors.tolist()),
        sample_weight=tuple(sample.tolist()) if sample is not None and stored else None,
        weights_hash=None if sample is None or stored else hash_of_weights(sample),
    )


def plane_of_start(start: LossResult | Array | None, intercept: Intercept, d: int, k: int | None = None) -> Array | None:
    """Return the w to start from, with b (0 if it was not given) as its last entry if there is an intercept.

    For the multinomial loss of k classes these are the columns of an array.
    """
    if start is None:
        return None
    if isinstance(start, LossResult):
        _require_fitting_start(start, d, k)
    if k is not None:
        return _multinomial_start(start, intercept, d, k)
    found = np.append(start.w, start.b) if isinstance(start, LossResult) else start
    if intercept.exists and np.shape(found) == (d + 1,):
        plane = vector(found, "start", d + 1, "columns")
    else:
        w = vector(start.w if isinstance(start, LossResult) else found, "start", d, "columns")
        plane = np.append(w, 0.0) if intercept.exists else w
    if not np.isfinite(plane).all():
        row = int(np.argmin(np.isfinite(plane)))
        raise InputError(f"start[{row}] is not finite; pass an earlier result or a finite w, or None")
    return plane


def _require_fitting_start(start: LossResult, d: int, k: int | None) -> None:
    """Raise an InputError unless an earlier result has as many columns and planes as this problem."""
    if len(start.w) != d:
        raise InputError(f"start has {len(start.w)} columns, X has {d}; pass a result for the same columns, or None")
    planes, needed = (each if each is None else f"the planes of {each} classes" for each in (_classes_of(start), k))
    if planes != needed:
        raise InputError(
            f"start has {planes or 'one plane'}, this problem {needed or 'one'}; pass a result of such a problem, or None"
        )


def _classes_of(result: LossResult) -> int | None:
    """Return the number of classes of a result of the multinomial loss, else None."""
    return result.w.shape[1] if result.w.ndim == 2 else None


def _multinomial_start(start: LossResult | Array, intercept: Intercept, d: int, k: int) -> Array:
    """Return the planes of k classes to start from, as columns."""
    found = np.vstack((start.w, start.b)) if isinstance(start, LossResult) else getattr(start, "w", start)
    try:
        planes = np.array(host(found), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("start must hold real numbers, or be an earlier result") from None
    if planes.shape not in ((d, k), (d + 1, k)) or not np.isfinite(planes).all():
        raise InputError(f"start must be finite and of shape {(d, k)}, or {(d + 1, k)} with b; its shape is {planes.shape}")
    if intercept.exists and len(planes) == d:
        planes = np.vstack((planes, np.zeros(k)))
    return planes[: d + intercept.exists]
