"""`separate`: decide with proof whether a plane separates two classes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np

from gordan.arrays import Array, check_callback, positive
from gordan.blas import blas_threads
from gordan.certificates import Certificate
from gordan.certificates.margins import Margin
from gordan.certificates.problem import Problem, is_table
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Evidence, Proof
from gordan.ledger.question import Asks, Budget, Question, Subject
from gordan.solve.finders import answer
from gordan.statuses import Status
from gordan.verdicts.arguments import LabelTable, LabelVector, SearchKeywords, budget_of
from gordan.verdicts.formatting import bound_to_data, outward
from gordan.verdicts.witnesses import HasWitness, Witness

if TYPE_CHECKING:
    from gordan.verdicts.many import ManyVerdicts


@dataclass(frozen=True, eq=False)
class Verdict(HasWitness):
    """The answer of `separate`: whether a plane separates the classes, and the proof.

    In a condition a verdict is True or False; an undecided one raises an InputError there.

    Attributes
    ----------
    status : {"separable", "not-separable", "margin-below-tol", "undecided"}
        What was proved. "margin-below-tol" means that no margin is larger than a small bound; whether a positive one exists is
        then open, as it is if the status is "undecided".
    w : ndarray of shape (d,), or None
        The normal vector of a separating plane, of length 1 up to rounding, so that scores x·w + b are signed distances; None
        if none was found.
    b : float or None
        The intercept of that plane.
    margin : tuple of float
        A certified interval (lower, upper) for the largest margin in the units of X (2-norm); (0, 0) if no plane separates.
    stated_witness : Witness or None
        The rows and weights that the proof uses to show that no plane separates. Its weights are floats if exact ones would
        have taken long to compute; `witness` and `find_witness` give exact ones.
    seconds : float
        The wall-clock time of the call.

    See Also
    --------
    separate : The function that returns it.
    verify : Check its certificate.
    """

    status: Status
    w: Array | None
    b: float | None
    margin: tuple[float, float]
    stated_witness: Witness | None
    seconds: float
    _proof: Proof | None = field(repr=False)
    _problem: Problem = field(repr=False)
    _stopped: bool = field(default=False, repr=False)  # by Ctrl-C or the callback, which no status says

    @property
    def separable(self) -> bool | None:
        """Whether a plane separates the classes; None if that was not decided."""
        return self.status.separable

    def __bool__(self) -> bool:
        """Return `separable`, or raise an InputError if that was not decided."""
        if self.separable is None:
            raise InputError(f"whether the data is separable was not decided ({self.status}); use .separable or .status instead")
        return self.separable

    @property
    def proved(self) -> bool:
        """Whether the status is proved, which it is unless it is "undecided"."""
        return self.status is not Status.UNDECIDED

    @cached_property
    def certificate(self) -> Certificate | None:
        """The certificate for `gordan.verify`; None if nothing was proved.

        It contains a hash of the data, which is computed on first access; an InputError is raised if X was changed before.
        """
        return None if self._proof is None else bound_to_data(self._proof.certificate, self._problem)

    def __repr__(self) -> str:
        lower, upper = outward(*self.margin)
        sentence = self.status.describe(lower=lower, upper=upper, witness=self.stated_witness)
        if self.status is Status.MARGIN_BELOW_TOL:
            sentence += "; whether any margin is positive is undecided"
        return sentence + self._scale_hint if self.separable is None else sentence


class SeparateKeywords(SearchKeywords, total=False):
    """The keywords of `separate`."""

    callback: Callable[[Verdict], object] | None


@overload
def separate(X: Any, y: LabelVector, **options: Unpack[SeparateKeywords]) -> Verdict: ...
@overload
def separate(X: Any, y: LabelTable, **options: Unpack[SeparateKeywords]) -> ManyVerdicts: ...
@overload
def separate(X: Any, y: Any, **options: Unpack[SeparateKeywords]) -> Verdict: ...
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
) -> Verdict | ManyVerdicts:
    """Decide with proof whether a plane separates two classes.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        The data, one row per example, whose values are used exactly. Torch tensors, CuPy arrays, memory maps and Dask
        collections are accepted as well.
    y : array-like of shape (n,) or (n, k)
        Two labels of any kind, or several label vectors as columns: True and False, or -1, 0 and 1, where 0 leaves the row out
        of that column. Each column is decided separately; small problems are solved together.
    intercept : {"free", "penalized", "none"}, default="free"
        "free" is x·w + b; "penalized" decides the same, but the margin is that of the points (x, 1); "none" is x·w, a plane
        through the origin.
    tol : float, default=1e-10
        The status is "margin-below-tol" if the largest margin is proved to be at most `tol` times the largest norm of a row, and
        no exact witness could be found.
    max_iter : int, default=None
        The number of rounds of the working-set method is at most this; each solves a game on few rows and scores all rows.
    time_limit : float, default=None
        Stop after this many seconds, for all columns of y together, and return what is proved. No step is started that would
        not end in time.
    random_state : int, default=None
        Seed of the order in which rows are visited.
    device : {"cuda", "cpu"}, default=None
        Where to search: "cuda" copies X to the GPU once, "cpu" copies it to main memory; None leaves it where it is.
    callback : callable, default=None
        Called with the verdict so far after each proposal that was not accepted; returning True ends the search.

    Returns
    -------
    Verdict or ManyVerdicts
        The verdict, or a sequence of k verdicts with arrays of their parts if y has k columns.

    Raises
    ------
    InputError
        If an argument is invalid; the message names the entry and what to pass instead.

    See Also
    --------
    maximize_margin : Find the plane of largest margin.
    minimize_loss : Find a plane for classes that overlap.
    diagnose : Find out which coefficients of a regression are infinite.

    Examples
    --------
    >>> import gordan
    >>> gordan.separate([[0.0], [1.0], [2.0]], ["no", "no", "yes"])
    separable: the largest margin is between 0.499999 and 0.500001 (proved)
    >>> gordan.separate([[0.0], [1.0], [2.0]], ["no", "yes", "no"]).witness
    Witness(rows=(0, 1, 2), weights=(1, 2, 1))
    """
    asked, tol, callback = Intercept.of(intercept), positive(tol, "tol"), check_callback(callback, "verdict")
    budget = budget_of(max_iter, time_limit, random_state)
    if is_table(X, y):
        from gordan.verdicts.many import separate_many

        return separate_many(X, y, device, budget, asked, tol, callback)
    problem = Problem.of(X, y, device).in_memory_if_small().watched(X)
    problem.require_finite()
    return verdict_of(problem, asked, tol, budget, callback)


def verdict_of(
    problem: Problem, intercept: Intercept, tol: float, budget: Budget, callback: Callable[[Verdict], object] | None
) -> Verdict:
    """Return the verdict on one problem, whose X must be finite."""
    question = Question(Subject(problem, Margin(problem.X, problem.signs, intercept), budget.threads), Asks.SIGN, budget)
    with blas_threads(problem.storage.entries):
        evidence = answer(question, None if callback is None else lambda found: callback(_verdict(found, 0.0)))
    return replace(_verdict(evidence, tol), _stopped=evidence.effort.stopped)


def _verdict(evidence: Evidence, tol: float) -> Verdict:
    """Return the verdict that follows from the evidence."""
    problem, seconds = evidence.question.problem, time.perf_counter() - evidence.question.budget.started
    if evidence.witness is not None:
        witness = Witness.of(evidence.witness.head, problem.signs, evidence.witness.within)
        return Verdict(Status.NOT_SEPARABLE, None, None, (0.0, 0.0), witness, seconds, evidence.witness, problem)
    if evidence.strict and evidence.lower == 0:  # both ends of the interval are lost to rounding
        evidence.sharpen()
    proof = evidence.proof("separator") if evidence.strict else None
    if proof is not None and evidence.w is not None:
        bracket = evidence.lower, evidence.upper
        return Verdict(Status.SEPARABLE, evidence.w.copy(), float(evidence.b or 0.0), bracket, None, seconds, proof, problem)
    R = min(float(np.max(problem.X.norms)), math.nextafter(math.inf, 0.0))
    proof = evidence.proof("bracket") if evidence.upper <= tol * R else None
    status = Status.UNDECIDED if proof is None else Status.MARGIN_BELOW_TOL
    return Verdict(status, None, None, (0.0, evidence.upper), None, seconds, proof, problem)
