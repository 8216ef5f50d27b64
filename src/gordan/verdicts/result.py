"""`MarginResult`, which `maximize_margin` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from gordan.arrays import Array, relative_width
from gordan.certificates import Certificate
from gordan.certificates.problem import Problem
from gordan.ledger.evidence import Effort, Proof
from gordan.ledger.question import Budget
from gordan.statuses import Ending, Status
from gordan.trace import Trace
from gordan.verdicts.formatting import bound_to_data, format_effort, outward
from gordan.verdicts.witnesses import HasWitness, Witness


def stop_status(budget: Budget, effort: Effort) -> Status:
    """Return why a search ended that has not reached its tolerance."""
    if effort.stopped:
        return Status.INTERRUPTED
    if budget.short:
        return Status.TIME_LIMIT
    return Status.ITERATION_LIMIT if effort.trace is not None and effort.trace.status == Ending.ROUNDS else Status.NO_PROGRESS


@dataclass(frozen=True, eq=False)
class MarginResult(HasWitness):
    """The answer of `maximize_margin`: the plane of largest margin, and a certified interval for that margin.

    Attributes
    ----------
    status : str
        How the search ended:

        - "solved": the relative width of the interval, `gap`, is at most `tol`.
        - "not-separable": no plane separates, as `witness` proves, and `margin` is (0, 0). With `robust`, no plane separates
          under such perturbations, as `p` proves.
        - "margin-below-tol": `upper` is at most `tol` times the largest norm of a row, and no positive margin was found.
        - "iteration-limit", "time-limit", "interrupted": the search was stopped, with what was proved by then.
        - "no-progress": rounding allows no narrower interval, or the chosen method plays for another norm than `norm`.
    w : ndarray of shape (d,), or None
        The normal vector of the best plane found, of length 1 in the dual norm up to rounding, so that scores x·w + b are signed
        distances; None if no plane was found.
    b : float or None
        The intercept of that plane.
    p : ndarray of shape (n,), or None
        Weights of the rows, of total 1, that prove the upper end of the interval.
    margin : tuple of float
        The certified interval (lower, upper) for the largest margin, in the units of X and in the norm `norm`.
    stated_witness : Witness or None
        The rows and weights that the proof uses to show that no plane separates. Its weights are floats if exact ones would
        have taken long to compute; `witness` and `find_witness` give exact ones.
    norm, robust, robust_norm, intercept
        The arguments of the call.
    nu : float or None
        The `nu` of the call; if it was at its limit, the largest float that is within it.
    n_iter : int
        The number of rounds.
    passes : float
        How many times the stored entries of X were read.
    seconds : float
        The wall-clock time of the call.
    trace : Trace or None
        The recorded rounds of the search, if there were any.

    See Also
    --------
    maximize_margin : The function that returns it.
    verify : Check its certificate.
    """

    status: Status
    w: Array | None
    b: float | None
    p: Array | None
    margin: tuple[float, float]
    stated_witness: Witness | None
    norm: float
    robust: float
    robust_norm: float
    nu: float | None
    intercept: str
    n_iter: int
    passes: float
    seconds: float
    trace: Trace | None = field(repr=False)
    _proof: Proof = field(repr=False)
    _problem: Problem = field(repr=False)

    @property
    def gap(self) -> float:
        """The relative width of the interval, (upper - lower)/upper; 0 if both are 0."""
        return relative_width(*self.margin)

    @property
    def bare_certificate(self) -> Certificate:
        """The certificate without the hash of the data, which is available at no cost and even if X was changed."""
        return self._proof.certificate

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate for `gordan.verify`.

        It contains a hash of the data, which is computed on first access; an InputError is raised if X was changed before.
        """
        return bound_to_data(self._proof.certificate, self._problem)

    def __repr__(self) -> str:
        return self.sentence if self.stated_witness is not None else self.sentence + self._scale_hint

    @property
    def sentence(self) -> str:
        """The result in words, without advice about the scale of the columns."""
        lower, upper = outward(*self.margin)
        kind = "" if self.nu is None else f" (soft, nu = {self.nu:g})"
        effort = format_effort(self.n_iter, "round", self.passes, self.seconds)
        if self.robust > 0:
            kind = f" under perturbations of size {self.robust:g} in the {self.robust_norm:g}-norm"
            if self.status is Status.NOT_SEPARABLE:
                return f"not separable{kind} (proved by the weights p; {effort})"
        return self.status.describe(lower=lower, upper=upper, soft=kind, effort=f"; {effort}", witness=self.stated_witness)
