"""What `maximize_margin` returns."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from functools import cached_property

from gordan.arrays import Array, relative_width
from gordan.certificates import Certificate
from gordan.certificates.problem import Problem
from gordan.ledger.evidence import Proof
from gordan.statuses import Status
from gordan.trace import Trace
from gordan.verdicts.telling import Inseparable, Witness, bound, outward


@dataclass(frozen=True, eq=False)
class MarginResult(Inseparable):
    """What `maximize_margin` found and proved.

    `margin` is a certified interval (lower, upper) for γ*, in the units of X and the norm asked for; `gap` its relative width.
    With `robust`, not-separable says that no plane separates under such perturbations, and p proves it.
    `nu` is the one used: at its limit, the largest float that leaves a p.
    `w`, `b` is the best separator found, ‖w‖_q = 1 up to rounding, so that scores x·w + b are signed distances; `p` the weights
    over the rows behind `upper`, of total 1. w and p are None where nothing was found. `status` is

        solved             gap ≤ tol
        not-separable      no plane separates: `witness` proves it (`stated_witness` as in `Verdict`), margin is (0, 0)
        margin-below-tol   upper ≤ tol · max‖x_i‖, and no positive margin was found
        iteration-limit, time-limit, interrupted   what was proved by then
        no-progress        rounding leaves no narrower bracket, or the method plays for another norm than the one asked for
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
        """(upper - lower)/upper; 0 if they are equal."""
        return relative_width(*self.margin)

    @property
    def bare_certificate(self) -> Certificate:
        """The certificate without the hash of the data: at no cost, and without holding on to X."""
        return self._proof.certificate

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate, bound to the data by its hash (computed on first access; an InputError if X was changed before)."""
        return bound(self._proof.certificate, self._problem)

    def __repr__(self) -> str:
        return self.sentence if self.stated_witness is not None else f"{self.sentence}{self._hint}"

    @property
    def sentence(self) -> str:
        """The result in words, without a hint about the data."""
        lower, upper = outward(*self.margin)
        soft = "" if self.nu is None else f" (soft, nu = {self.nu:g})"
        passes = f"{self.passes:,.0f}" if self.passes >= 1000 else f"{self.passes:.3g}"
        effort = f"{self.n_iter:,} round{'s' * (self.n_iter != 1)}, {passes} pass{'es' * (passes != '1')}, {self.seconds:.2g} s"
        if self.robust > 0:
            soft = f" under perturbations of size {self.robust:g} in the {self.robust_norm:g}-norm"
            if self.status is Status.NOT_SEPARABLE:
                return f"not separable{soft}: the mean of signed rows with weights p is within them (proved; {effort})"
        return self.status.describe(lower=lower, upper=upper, soft=soft, effort=f"; {effort}", witness=self.stated_witness)

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"
