"""`maximize_margin`: the plane of largest margin, with a certified interval for that margin."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, overload

import numpy as np

from gordan import methods
from gordan.arrays import Array, check_callback, exponent, is_number, positive, relative_width, require_aligned, vector
from gordan.blas import blas_threads
from gordan.certificates.margins import MIN_NOISE, Margin
from gordan.certificates.problem import Problem, is_table
from gordan.checkpoint import Checkpoint
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Evidence, Proof
from gordan.ledger.question import Asks, Budget, Play, Question, Subject
from gordan.methods import Method
from gordan.methods.robust import check_noise_norm
from gordan.solve.double_oracle import double_oracle
from gordan.solve.finders import answer
from gordan.solve.playing import played_norm
from gordan.statuses import Status
from gordan.trace import Moment
from gordan.verdicts.arguments import LabelTable, LabelVector, WeightedKeywords, budget_of, is_auto
from gordan.verdicts.result import MarginResult, stop_status
from gordan.verdicts.weights import allowed_nu, effective_weights, row_weights
from gordan.verdicts.witnesses import Witness

if TYPE_CHECKING:
    from gordan.verdicts.many import ManyMargins

# The width of an interval below which it may be due to rounding, as a share of the largest norm of a row.
ROUNDING_WIDTH = 1e-9


class MarginKeywords(WeightedKeywords, total=False):
    """The keywords of `maximize_margin`."""

    norm: float
    robust: float
    robust_norm: float
    nu: float | None
    method: Any


@overload
def maximize_margin(X: Any, y: LabelVector, **options: Unpack[MarginKeywords]) -> MarginResult: ...
@overload
def maximize_margin(X: Any, y: LabelTable, **options: Unpack[MarginKeywords]) -> ManyMargins: ...
@overload
def maximize_margin(X: Any, y: Any, **options: Unpack[MarginKeywords]) -> MarginResult: ...
def maximize_margin(
    X: Any,
    y: Any,
    *,
    norm: float = 2,
    robust: float = 0.0,
    robust_norm: float = 2,
    nu: float | None = None,
    intercept: str = "free",
    method: Any = "auto",
    tol: float = 1e-4,
    sample_weight: Any = None,
    class_weight: Mapping[Any, float] | str | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    start: Any = None,
    random_state: Any = None,
    threads: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    device: str | None = None,
    callback: Callable[[Moment], object] | None = None,
) -> MarginResult | ManyMargins:
    """Find the plane of largest margin between two classes, and prove how large that margin can be.

    The margin is γ* = max_{w,b} min_i y_i(x_i·w + b)/‖w‖_q, the distance in the norm p of the nearest point to the plane
    (1/p + 1/q = 1). With `nu` the margin is soft: the nearest points, up to a share `nu` of the total weight, are averaged over
    and may be on the wrong side.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        The data, one row per example, whose values are used exactly. Torch tensors, CuPy arrays, memory maps and Dask
        collections are accepted as well.
    y : array-like of shape (n,) or (n, k)
        Two labels of any kind, or several label vectors as columns: True and False, or -1, 0 and 1, where 0 leaves the row out
        of that column. Each column is solved separately; small problems are solved together.
    norm : float, default=2
        The norm p of feature space, 1 ≤ p ≤ ∞. With ∞ the 1-norm of w is used, and w is sparse; with 1 its largest entry. Below
        2 intervals become narrow slowly, except for p = 1 in memory, which is a linear program.
    robust : float, default=0
        The margin that remains when every x_i is moved by some δ_i with ‖δ_i‖_s ≤ `robust`, s = `robust_norm`: it is
        min_i y_i(x_i·w + b) - robust·‖w‖_r, 1/r + 1/s = 1, divided by ‖w‖₂. Allowed for norm 2, without `nu` and without a
        penalized intercept.
    robust_norm : {1, 2, inf}, default=2
        The norm s of these perturbations.
    nu : float, default=None
        None for the hard margin, or a number in (0, 1] that bounds the weights of the rows: p_i ≤ c_i/(nu·Σc), where c are the
        sample weights. A larger value gives a softer margin.
    intercept : {"free", "penalized", "none"}, default="free"
        "free" is x·w + b, where b costs nothing; "penalized" appends a constant column 1 to X, and the margin is that of the
        points (x, 1), as in LIBLINEAR; "none" is x·w.
    method : str or method, default="auto"
        "auto", the name of a registered method, or a method with options such as `gordan.methods.smooth_perceptron(eta=0.5)`.
    tol : float, default=1e-4
        Relative width of the certified interval to stop at.
    sample_weight : array-like of shape (n,), default=None
        The weights of the rows. A row of weight zero is left out; positive weights matter only with `nu`.
    class_weight : dict or "balanced", default=None
        Factors of the sample weights by label; "balanced" gives both classes the same total of weights.
    max_iter : int, default=None
        The number of rounds is at most this, for each column of y.
    time_limit : float, default=None
        Stop after this many seconds, for all columns of y together, and return what is proved. No step is started that would
        not end in time, unless there is a checkpoint.
    start : MarginResult or ndarray of shape (n,), default=None
        An earlier result to start from, or its p; for several columns of y, the results for as many.
    random_state : int, default=None
        Seed of the order in which rows are visited.
    threads : int, default=None
        How many threads a pass may use; all cores if None.
    checkpoint : str or path, default=None
        A file that the run is written to, every half minute and when it ends for whatever reason. The same call resumes from it
        and gives the same result, identical bit for bit. It may have another `tol`, `threads`, storage of X and other limits,
        which apply to each call by itself; `n_iter`, `passes` and `seconds` of the result are totals.
    device : {"cuda", "cpu"}, default=None
        Where to search: "cuda" copies X to the GPU once, "cpu" copies it to main memory; None leaves it where it is. The proof
        uses float64 and the values of X, wherever it runs.
    callback : callable, default=None
        Called with each recorded `Moment`; returning True stops the run.

    Returns
    -------
    MarginResult or ManyMargins
        The plane with the proof, or a sequence of k results with arrays of their parts if y has k columns.

    Raises
    ------
    InputError
        If an argument is invalid; the message names the entry and what to pass instead.

    See Also
    --------
    MaxMarginClassifier : The same as a scikit-learn classifier.
    separate : Decide only whether a plane separates the classes.
    minimize_loss : Find a plane for classes that overlap.

    Examples
    --------
    >>> import gordan
    >>> r = gordan.maximize_margin([[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]], [0, 0, 1])
    >>> r.status, round(r.margin[0], 4)
    ('solved', 1.118)
    """
    options = MarginOptions(
        intercept=Intercept.of(intercept),
        norm=exponent(norm, 1),
        nu=nu,
        method=method,
        tol=positive(tol, "tol"),
        class_weight=class_weight,
        callback=check_callback(callback, "moment"),
        robust=_check_robust(robust),
        robust_norm=check_noise_norm(robust_norm, "robust_norm"),
    )
    budget = budget_of(max_iter, time_limit, random_state, threads)
    if is_table(X, y):
        from gordan.verdicts.many import maximize_many_margins

        require_aligned(X=X, y=y, sample_weight=sample_weight)
        return maximize_many_margins(X, y, device, budget, options, sample_weight, start, checkpoint)
    if start is not None and not isinstance(start, (MarginResult, np.ndarray)):
        raise InputError(f"start is {start!r:.60}; pass an earlier result of maximize_margin or its p, or None")
    file = None if checkpoint is None else Checkpoint(checkpoint)
    problem = Problem.of(X, y, device).in_memory_if_small().watched(X)
    require_aligned(X=X, y=y, sample_weight=sample_weight)
    return margin_of(problem, budget, options, sample_weight, start, file)


class MarginOptions(NamedTuple):
    """Which margin is asked for, how to look for it and how narrow its interval is to be; `class_weight` is as it was passed.

    `work` is as for `Play`.
    """

    intercept: Intercept
    norm: float
    nu: float | None
    method: Any
    tol: float
    class_weight: Any
    callback: Callable[[Moment], object] | None
    robust: float = 0.0
    robust_norm: float = 2.0
    work: float = math.inf

    def question(
        self, problem: Problem, budget: Budget, sample_weight: Any, start: MarginResult | Array | None, checkpoint: Any
    ) -> Question:
        """Return the question how large the margin of a problem is."""
        which = (problem.signs > 0).view(np.int8)
        weights = row_weights(sample_weight, self.class_weight, problem.classes, which)
        weights = effective_weights(weights, caps=self.nu is not None)
        nu = allowed_nu(self.nu, problem, weights, self.intercept)
        noise = self.robust, self.robust_norm
        return Question(
            Subject(problem, Margin(problem.X, problem.signs, self.intercept, self.norm, nu, weights, *noise), budget.threads),
            Asks.WIDTH,
            budget,
            tol=self.tol,
            play=Play(
                self.method_for(problem.X.d, budget.seed),
                auto=self.plays_auto and (self.robust == 0 or self.robust_norm == 2),
                start=_start(start, weights, problem.X.n),
                watch=self.callback,
                checkpoint=checkpoint,
                work=self.work,
            ),
        )

    def method_for(self, d: int, seed: int) -> Method:
        """Return the method to play on data of d columns; "auto" is the double oracle if the norm is 2 or more.

        An InputError is raised for options that cannot be combined with `robust`, or with the method asked for.
        """
        if self.robust == 0:
            return self._method_without_noise(d, seed)
        allowed = {
            "norm": self.norm == 2,
            "nu": self.nu is None,
            "intercept": not self.intercept.in_norm,
            "method": self.plays_auto,
        }
        refused = " and ".join(name for name, fits in allowed.items() if not fits)
        if refused:
            raise InputError(
                "robust can be used with norm 2, method 'auto', intercept 'free' or 'none' and without nu; "
                f"leave out {refused}, or robust"
            )
        if self.robust_norm == 2:  # the plane of largest margin withstands the largest perturbations
            return double_oracle(seed=seed)
        return methods.robust_perceptron(noise=self.robust, noise_norm=self.robust_norm)

    def _method_without_noise(self, d: int, seed: int) -> Method:
        norm, method = self.norm, self.method
        if self.plays_auto:
            method = methods.get("double_oracle" if norm >= 2 else "box_perceptron")
        elif isinstance(method, str):
            method = methods.get(method)
        if isinstance(method, methods.Entry) and method.factory is double_oracle:
            return double_oracle(p=norm, seed=seed)
        if isinstance(method, methods.Entry):
            # what is found for p = 2 log d is certified for the sup norm
            method = method.for_norm(played_norm(norm, d))
        if not isinstance(method, Method):
            raise InputError(f"method is {method!r:.60}; pass 'auto', a name such as 'nesterov', or a method with its options")
        if method.noisy:
            raise InputError(f"{method.name} plays for margins under noise; pass robust=… and method='auto'")
        if method.norm != norm and not (math.isinf(norm) and method.norm > 2):
            raise InputError(
                f"{method.name} plays for the norm {method.norm:g}, not {norm:g}; "
                "use method='auto', a p-norm method, or that norm"
            )
        return method

    @property
    def plays_auto(self) -> bool:
        """Whether the method is "auto"."""
        return is_auto(self.method)


def margin_of(
    problem: Problem,
    budget: Budget,
    options: MarginOptions,
    sample_weight: Any = None,
    start: MarginResult | Array | None = None,
    checkpoint: Checkpoint | None = None,
) -> MarginResult:
    """Find the largest margin of one problem, with an interval that the checker accepts."""
    with blas_threads(problem.storage.entries):
        evidence = answer(options.question(problem, budget, sample_weight, start, checkpoint))
        question, effort, witness = evidence.question, evidence.effort, None
        w, b = evidence.w, evidence.b
        if evidence.witness is not None:
            proof: Proof | None = evidence.witness
            w = b = None
            bracket, witness = (0.0, 0.0), Witness.of(evidence.witness.head, problem.signs, evidence.witness.within)
        else:
            is_open = _status(evidence, (evidence.lower, evidence.upper)) in (Status.NO_PROGRESS, Status.MARGIN_BELOW_TOL)
            if is_open and evidence.upper - evidence.lower <= ROUNDING_WIDTH * question.radius:
                evidence.sharpen()
            bracket, proof = (evidence.lower, evidence.upper), evidence.proof("bracket")
        if proof is None:  # the checker accepted each end, so this was never seen; claim only what needs no proof
            bracket, proof = (0.0, math.inf), Proof(Evidence(question).claim("bracket"))
    margin = question.margin
    return MarginResult(
        status=_status(evidence, bracket),
        w=w,
        b=b,
        p=None if proof.p is None else proof.p / proof.p.sum(),
        margin=bracket,
        stated_witness=witness,
        norm=margin.norm,
        robust=margin.robust,
        robust_norm=margin.robust_norm,
        nu=margin.nu,
        intercept=margin.intercept.value,
        n_iter=effort.rounds,
        passes=effort.passes + question.rows.passes,
        seconds=time.perf_counter() - question.budget.started + effort.earlier,
        trace=None if effort.trace is None else effort.trace.fetched(question.rows.to_host),
        _proof=proof,
        _problem=problem,
    )


def _check_robust(robust: Any) -> float:
    """Return the size of the perturbations as a float, or refuse it."""
    if is_number(robust) and (robust == 0 or MIN_NOISE <= robust < math.inf):
        return float(robust)
    raise InputError(f"robust is {robust!r}; pass 0, or how far a point may be moved (at least {MIN_NOISE:.0e}, and finite)")


def _start(start: MarginResult | Array | None, weights: Array | None, n: int) -> Array | None:
    """Return the p to start from, over the rows of positive weight."""
    found = start.p if isinstance(start, MarginResult) else start
    if found is None:
        return None
    p = vector(found, "start", n)
    return p if weights is None else p[weights > 0]


def _status(evidence: Evidence, bracket: tuple[float, float]) -> Status:
    """Return how the search ended, given this interval."""
    question, (lower, upper) = evidence.question, bracket
    if evidence.witness is not None or (upper == 0 and question.margin.robust > 0):
        return Status.NOT_SEPARABLE
    if upper > 0 and relative_width(lower, upper) <= question.tol:
        return Status.SOLVED
    if lower <= 0 and upper <= question.tol * question.radius:
        return Status.MARGIN_BELOW_TOL
    return stop_status(question.budget, evidence.effort)
