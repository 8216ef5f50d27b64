"""`separate`: is there a plane between the two classes? With proof, either way."""

from __future__ import annotations

import html
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from gordan.arrays import Array, check_callback, positive, seconds_at_most, seed, whole_number_or_none
from gordan.blas import blas_threads
from gordan.certificates import Certificate
from gordan.certificates.margins import Margin
from gordan.certificates.problem import Problem, is_table
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Evidence, Proof
from gordan.ledger.question import Asks, Budget, Question
from gordan.solve.finders import answer
from gordan.statuses import Status
from gordan.verdicts.telling import Inseparable, Witness, bound, outward


@dataclass(frozen=True, eq=False)
class Verdict(Inseparable):
    """Whether the data is separable, and the proof. `certificate` is what `gordan.verify` accepts.

    `margin` is a certified interval (in the units of X, 2-norm) for the largest margin; (0, 0) when there is none. `w` has
    length 1 up to rounding, so that scores x·w + b are signed distances. `witness` has exact weights, `stated_witness` those of
    the proof, which are floats where exact ones would have taken long.
    """

    status: Status
    w: Array | None
    b: float | None
    margin: tuple[float, float]
    stated_witness: Witness | None
    seconds: float
    _proof: Proof | None = field(repr=False)
    _problem: Problem = field(repr=False)

    @property
    def separable(self) -> bool | None:
        """True, False, or None where that was not decided."""
        return self.status.separable

    def __bool__(self) -> bool:
        """`separable`, where that was decided: what is open is neither true nor false."""
        if self.separable is None:
            raise InputError(f"whether the data is separable was not decided ({self.status}); ask for .separable or .status")
        return self.separable

    @property
    def proved(self) -> bool:
        """Whether the checker accepted the status; False only for "undecided"."""
        return self.status is not Status.UNDECIDED

    @cached_property
    def certificate(self) -> Certificate | None:
        """The certificate, bound to the data by its hash (computed on first access; an InputError if X was changed before)."""
        if self._proof is None:
            return None
        return bound(self._proof.certificate, self._problem)

    def __repr__(self) -> str:
        lower, upper = outward(*self.margin)
        told = self.status.describe(lower=lower, upper=upper, witness=self.stated_witness)
        told += "; whether any margin is positive is undecided" if self.status is Status.MARGIN_BELOW_TOL else ""
        return told + self._hint if self.separable is None else told

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"


def separate(
    X: Any,
    y: Any,
    *,
    intercept: str = "free",
    tol: float = 1e-10,
    max_iter: int | None = None,
    time_limit: float | None = None,
    random_state: Any = None,
    device: str | None = None,
    callback: Callable[[Verdict], object] | None = None,
) -> Verdict:
    """Decide whether a plane separates the two classes of y, with proof: a `Verdict`, or a `ManyVerdicts` for a table of labels.

    Parameters
    ----------
    X, y
        data; X dense or sparse with exact values, y two labels of any kind; torch tensors and CuPy arrays as they are. y may have
        several columns: True and False, or -1, 0 and 1, where 0 leaves the row out. Each is decided, small ones together.
    intercept
        "free" (x·w + b), "penalized" (separability is the same; the margin is that of (x, 1)) or "none".
    tol
        "margin-below-tol" is answered when the margin is certified to be at most tol times the largest row norm and the exact
        witness could not be completed.
    max_iter
        rounds of the working set at most: each solves a game on few rows exactly and looks at all rows once.
    time_limit
        seconds after which to stop looking, for all columns of y; what was proved by then is returned. Nothing is begun that
        would not end in time.
    random_state
        seed of the order in which rows are visited (an integer, or None).
    device
        where to look: "cuda" copies X to the GPU once, "cpu" brings it to the host; None leaves it where it is.
    callback
        called with the verdict so far after each proposal that was not accepted; returning True ends the search.

    Examples
    --------
    >>> import gordan
    >>> gordan.separate([[0.0], [1.0], [2.0]], ["no", "no", "yes"])
    separable: the largest margin is between 0.499999 and 0.500001 (proved)
    >>> gordan.separate([[0.0], [1.0], [2.0]], ["no", "yes", "no"]).witness
    Witness(rows=(0, 1, 2), weights=(1, 2, 1))
    """
    kind = Intercept.of(intercept)
    callback = check_callback(callback, "verdict")
    tol, limit, max_iter = positive(tol, "tol"), seconds_at_most(time_limit), whole_number_or_none(max_iter, "max_iter")
    started = time.perf_counter()
    budget = Budget(started, started + limit, max_iter, seed=seed(random_state))
    if is_table(X, y):
        from gordan.verdicts.many import ManyVerdicts

        return cast(
            "Verdict", ManyVerdicts.of(X, y, device, budget, kind, tol, callback)
        )  # what checkers of types expect of one y
    problem = Problem.of(X, y, device).nearby().watched(X)
    problem.require_finite()
    return verdict_of(problem, kind, tol, budget, callback)


def verdict_of(
    problem: Problem, kind: Intercept, tol: float, budget: Budget, callback: Callable[[Verdict], object] | None
) -> Verdict:
    """The verdict on one problem, whose X is finite."""
    question = Question(problem, Margin(problem.X, problem.signs, kind), Asks.SIGN, budget)
    with blas_threads(problem.storage.entries):
        evidence = answer(question, None if callback is None else lambda found: callback(_verdict(found, 0.0)))
    return _verdict(evidence, tol)


def _verdict(evidence: Evidence, tol: float) -> Verdict:
    """The verdict that follows from what was proved."""
    problem, seconds = evidence.question.problem, time.perf_counter() - evidence.question.budget.started
    if evidence.witness is not None:
        witness = Witness.of(evidence.witness.head, problem.signs, evidence.witness.within)
        return Verdict(Status.NOT_SEPARABLE, None, None, (0.0, 0.0), witness, seconds, evidence.witness, problem)
    if evidence.strict and evidence.lower == 0:  # lost to rounding, as the upper end then is
        evidence.sharpen()
    proof = evidence.proof("separator") if evidence.strict else None
    if proof is not None and evidence.w is not None:
        bracket = evidence.lower, evidence.upper
        return Verdict(Status.SEPARABLE, evidence.w.copy(), float(evidence.b or 0.0), bracket, None, seconds, proof, problem)
    R = min(float(np.max(problem.X.norms)), math.nextafter(math.inf, 0.0))
    proof = evidence.proof("bracket") if evidence.upper <= tol * R else None
    status = Status.UNDECIDED if proof is None else Status.MARGIN_BELOW_TOL
    return Verdict(status, None, None, (0.0, evidence.upper), None, seconds, proof, problem)
