"""How answers are told: the witness in words, and brackets that are still brackets when printed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from gordan.arrays import Array, seconds_at_most
from gordan.certificates import Certificate
from gordan.certificates.data import About
from gordan.certificates.problem import Problem
from gordan.certificates.verify import statement
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Proof
from gordan.ledger.question import Cancelling
from gordan.verdicts.scaling import scale_hint


def bound(certificate: Certificate, problem: Problem) -> Certificate:
    """The certificate with the hash of the data, and with what it is about."""
    return described(replace(certificate, data_hash=problem.hash(certificate.intercept)), problem.about or About())


def described(certificate: Certificate, about: About) -> Certificate:
    """The certificate with what it is about: these facts, its claim in words and the version of gordan."""
    from gordan import __version__

    return replace(certificate, about=replace(about, version=__version__, statement=statement(certificate)))


@dataclass(frozen=True)
class Witness:
    """Rows and coprime positive integer weights with Σ weight · y_i (x_i, 1) = 0 exactly (Σ weight · y_i x_i = 0 without
    intercept): no plane gets them all right. `one_class`: they are all of one class, as they may be without intercept.

    If not `exact`, the weights are floats of total 1, and weights `within` so far of them are proved to cancel the rows.
    """

    rows: tuple[int, ...]
    weights: tuple[int, ...] | tuple[float, ...]
    one_class: bool = field(default=False, repr=False, compare=False)
    exact: bool = field(default=True, repr=False)
    within: float = field(default=0.0, repr=False, compare=False)

    @staticmethod
    def of(proof: Certificate, signs: Array, within: float = 0.0) -> Witness:
        """The witness that a certificate holds; `signs` are those of all rows."""
        one_class = len({int(signs[row]) for row in proof.rows}) == 1
        return Witness(proof.rows, proof.weights, one_class, proof.exact, within)

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.rows[:6])) + (", …" if len(self.rows) > 6 else "")
        if not self.exact:
            within = 10.0 ** math.ceil(math.log10(max(self.within, 1e-300)))
            return f"the rows {shown} ({len(self.rows)} in all) cancel with positive weights within {within:.0e} of these"
        if len(self.rows) == 1:
            return f"row {self.rows[0]} is zero"
        if len(self.rows) == 2 and self.weights == (1, 1) and self.one_class:
            return f"rows {self.rows[0]} and {self.rows[1]} have opposite features and the same label"
        if len(self.rows) == 2 and self.weights == (1, 1):
            return f"rows {self.rows[0]} and {self.rows[1]} have the same features and different labels"
        return f"the weighted rows {shown} ({len(self.rows)} in all) cancel exactly"


class Inseparable:
    """What a result says about its witness. It has fields `stated_witness`, `_proof` and `_problem`."""

    stated_witness: Witness | None
    _proof: Proof | None
    _problem: Problem

    @cached_property
    def _hint(self) -> str:
        """What to say of columns of very different size."""
        hint = scale_hint(self._problem.storage, None)
        return hint and f"; {hint}"

    @cached_property
    def witness(self) -> Witness | None:
        """The witness with exact weights, computed on first access where the proof has floats; None where there is none."""
        return self.find_witness()

    def find_witness(self, time_limit: float | None = None) -> Witness | None:
        """The witness with exact integer weights, on one row more than independent columns at most; None where there is none, or
        where it would take longer than so many seconds.

        How long it takes is estimated from a part of the rows; once begun, it is not interrupted.
        """
        seconds, stated = seconds_at_most(time_limit), self.stated_witness
        if stated is None or stated.exact or self._proof is None:
            return stated
        if "witness" in vars(self):
            return self.witness
        from gordan.solve.cancelling import exact_weights

        self._problem.X.require_unchanged("witness")
        found = Cancelling(np.array(stated.rows), np.array(stated.weights), self._proof.head.dependent)
        weights = exact_weights(self._problem, found, Intercept(self._proof.head.intercept), seconds)
        return None if weights is None else Witness((*weights,), (*weights.values(),), stated.one_class)


@ieee_floats()
def outward(lower: float, upper: float) -> tuple[str, str]:
    """The ends of a bracket with six digits, rounded away from each other: what is shown is still a bracket."""
    from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

    shown = []
    for value, rounding in ((lower, ROUND_FLOOR), (upper, ROUND_CEILING)):
        exact = Decimal(value)
        if value == 0 or not math.isfinite(value):
            shown.append(f"{value:g}")
            continue
        digit = Decimal(1).scaleb(exact.adjusted() - 5)
        shown.append(f"{float(exact.quantize(digit, rounding=rounding)):.6g}")
    return shown[0], shown[1]
