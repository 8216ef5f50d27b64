"""`maximize_margin`: the separator of largest margin, with a certified interval for that margin."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from gordan import methods
from gordan.arrays import (
    Array,
    check_callback,
    exponent,
    is_number,
    positive,
    relative_width,
    require_aligned,
    seconds_at_most,
    seed,
    vector,
    whole_number_or_none,
)
from gordan.blas import blas_threads
from gordan.certificates.margins import LEAST_NOISE, Margin
from gordan.certificates.problem import Problem, is_table
from gordan.checkpoint import Checkpoint
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Evidence, Proof
from gordan.ledger.question import Asks, Budget, Play, Question
from gordan.methods.robust import check_noise_norm
from gordan.solve.finders import answer
from gordan.solve.playing import choose_method
from gordan.statuses import Status
from gordan.trace import Moment
from gordan.verdicts.result import MarginResult
from gordan.verdicts.telling import Witness
from gordan.verdicts.weights import allowed_nu, row_weights, that_matter

# Share of the largest norm below which the width of a bracket may be rounding.
LOST = 1e-9


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
) -> MarginResult:
    """The w, b that put the nearest point as far from the plane as possible, and a proof of how far that can be.

    Returns a `MarginResult`, or a `ManyMargins` for a table of labels.

    The margin is γ* = max_{w,b} min_i y_i(x_i·w + b)/‖w‖_q: the distance, in the norm p, of the nearest point to the plane
    (1/p + 1/q = 1). With `nu` the nearest points may be on the wrong side: their share of the weight is averaged over.

    Parameters
    ----------
    X, y
        data; X dense or sparse with exact values, y two labels of any kind; torch tensors and CuPy arrays as they are. y may have
        several columns: True and False, or -1, 0 and 1, where 0 leaves the row out. Each is solved, small ones together.
    norm
        the norm p of feature space, 1 ≤ p ≤ ∞ (∞: w is measured in the 1-norm, and is sparse; 1: in the largest entry). Below 2
        brackets close slowly, except for p = 1 without nu, which is a linear program.
    robust, robust_norm
        the largest margin that is left when every x_i is moved by some δ_i with ‖δ_i‖_s ≤ robust, s = robust_norm (1, 2 or ∞):
        min_i y_i(x_i·w + b) - robust·‖w‖_r, 1/r + 1/s = 1, over ‖w‖₂. For norm 2, without nu and without a penalized intercept.
        Where no plane stands such noise, the status is "not-separable", and p proves it.
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
        weights c_i = sample weight × class weight ("balanced": the same total for each class). Without nu positive ones change
        nothing; a zero weight removes the row.
    max_iter, time_limit
        rounds (for each column of y) and seconds (for all of them) at most. Nothing is begun that would not end in time,
        unless there is a checkpoint.
    start
        an earlier result to start from, or its p; for several columns of y the results for as many.
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
        called with each recorded `Moment`; returning True stops the run.

    Examples
    --------
    >>> import gordan
    >>> gordan.maximize_margin([[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]], [0, 0, 1]).status
    'solved'
    """
    kind, norm, tol, limit = Intercept.of(intercept), exponent(norm, 1), positive(tol, "tol"), seconds_at_most(time_limit)
    max_iter, threads = whole_number_or_none(max_iter, "max_iter"), whole_number_or_none(threads, "threads")
    callback = check_callback(callback, "moment")
    started = time.perf_counter()
    budget = Budget(started, started + limit, max_iter, threads, seed(random_state))
    asked = Asked(kind, norm, nu, method, tol, class_weight, callback, _noise(robust, robust_norm))
    if is_table(X, y):
        from gordan.verdicts.many import ManyMargins

        require_aligned(X=X, y=y, sample_weight=sample_weight)
        return cast(
            "MarginResult", ManyMargins.of(X, y, device, budget, asked, sample_weight, start, checkpoint)
        )  # what checkers of types expect of one y
    if start is not None and not isinstance(start, (MarginResult, np.ndarray)):
        raise InputError(f"start is {start!r:.60}; pass an earlier result of maximize_margin or its p, or None")
    keeper = None if checkpoint is None else Checkpoint(checkpoint)
    problem = Problem.of(X, y, device).nearby().watched(X)
    require_aligned(X=X, y=y, sample_weight=sample_weight)
    return margin_of(problem, budget, asked, sample_weight, start, keeper)


class Asked(NamedTuple):
    """Which margin is asked for, how it is looked for and how narrow its interval is to be; `class_weight` as it was passed."""

    kind: Intercept
    norm: float
    nu: float | None
    method: Any
    tol: float
    class_weight: Any
    watch: Callable[[Moment], object] | None
    noise: tuple[float, float] = (0.0, 2.0)

    def chosen(self, d: int, order: Any) -> Any:
        """The method that is played, for data of d columns."""
        if self.noise[0] == 0:
            return choose_method(self.method, self.norm, d, order)
        allowed = {"norm": self.norm == 2, "nu": self.nu is None, "intercept": not self.kind.in_norm, "method": self.plays_auto}
        wrong = [name for name, fits in allowed.items() if not fits]
        if wrong:
            what = "robust is for norm 2 and method 'auto', without nu and with intercept 'free' or 'none'"
            raise InputError(f"{what}; leave out {' and '.join(wrong)}, or robust")
        if self.noise[1] == 2:  # the plane of largest margin stands most noise
            return choose_method("auto", 2.0, d, order)
        return methods.robust_perceptron(noise=self.noise[0], noise_norm=self.noise[1])

    @property
    def plays_auto(self) -> bool:
        """Whether no method was asked for by name."""
        return isinstance(self.method, str) and self.method == "auto"


def margin_of(
    problem: Problem,
    budget: Budget,
    asked: Asked,
    sample_weight: Any = None,
    start: MarginResult | Array | None = None,
    keeper: Checkpoint | None = None,
) -> MarginResult:
    """The largest margin of one problem."""
    which = (problem.signs > 0).view(np.int8)
    weights = that_matter(row_weights(sample_weight, asked.class_weight, problem.classes, which), caps=asked.nu is not None)
    nu = allowed_nu(asked.nu, problem, weights, asked.kind)
    question = Question(
        problem,
        Margin(problem.X, problem.signs, asked.kind, asked.norm, nu, weights, *asked.noise),
        Asks.WIDTH,
        budget,
        tol=asked.tol,
        play=Play(
            asked.chosen(problem.X.d, budget.seed),
            auto=asked.plays_auto and (asked.noise[0] == 0 or asked.noise[1] == 2) and asked.norm >= 2,
            start=_start(start, weights, problem.X.n),
            watch=asked.watch,
            checkpoint=keeper,
        ),
    )
    with blas_threads(problem.storage.entries):
        return _result(answer(question))


def _noise(robust: Any, robust_norm: Any) -> tuple[float, float]:
    """The size of perturbations and their norm."""
    if not (is_number(robust) and (robust == 0 or LEAST_NOISE <= robust < math.inf)):
        raise InputError(
            f"robust is {robust!r}; pass 0, or how far a point may be moved (at least {LEAST_NOISE:.0e}, and finite)"
        )
    return float(robust), check_noise_norm(robust_norm, "robust_norm")


def _start(start: MarginResult | Array | None, weights: Array | None, n: int) -> Array | None:
    """p of the earlier result, over the rows that count."""
    found = start.p if isinstance(start, MarginResult) else start
    if found is None:
        return None
    p = vector(found, "start", n)
    return p if weights is None else p[weights > 0]


def _result(evidence: Evidence) -> MarginResult:
    """The result that follows from what was proved, with a bracket that the checker accepts."""
    question, effort = evidence.question, evidence.effort
    problem, margin = question.problem, question.margin
    w, b, p, bracket, witness = evidence.w, evidence.b, evidence.p, (evidence.lower, evidence.upper), None
    if evidence.witness is not None:
        proof: Proof | None = evidence.witness
        w = b = p = None
        bracket, witness = (0.0, 0.0), Witness.of(evidence.witness.head, problem.signs, evidence.witness.within)
    else:
        open_end = _status(evidence, bracket) in (Status.NO_PROGRESS, Status.MARGIN_BELOW_TOL)
        if open_end and evidence.upper - evidence.lower <= LOST * question.radius:
            evidence.sharpen()
            bracket = evidence.lower, evidence.upper
        proof = evidence.proof("bracket")
    if proof is None:  # never seen; if ever, nothing is claimed but what needs no proof
        bracket, proof = (0.0, math.inf), Proof(Evidence(question).claim("bracket"))
    return MarginResult(
        status=_status(evidence, bracket),
        w=w,
        b=b,
        p=None if p is None else p / p.sum(),
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
        trace=effort.trace,
        _proof=proof,
        _problem=problem,
    )


def _status(evidence: Evidence, bracket: tuple[float, float]) -> Status:
    question, effort, (lower, upper) = evidence.question, evidence.effort, bracket
    if evidence.witness is not None or (upper == 0 and question.margin.robust > 0):
        return Status.NOT_SEPARABLE
    if upper > 0 and relative_width(lower, upper) <= question.tol:
        return Status.SOLVED
    if lower <= 0 and upper <= question.tol * question.radius:
        return Status.MARGIN_BELOW_TOL
    if effort.stopped:
        return Status.INTERRUPTED
    if question.budget.short:
        return Status.TIME_LIMIT
    return Status.ITERATION_LIMIT if effort.trace is not None and effort.trace.status == "rounds" else Status.NO_PROGRESS
