"""The witness that no plane separates two classes, and how the results of `separate` and `maximize_margin` give access to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gordan.arrays import Array, seconds_at_most
from gordan.certificates import Certificate
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Proof
from gordan.ledger.question import Cancelling
from gordan.verdicts.formatting import html_paragraph
from gordan.verdicts.scaling import scale_hint

# Rows that are listed in a sentence.
MAX_LISTED = 6


@dataclass(frozen=True)
class Witness:
    """Rows and positive weights that prove that no plane separates the classes.

    The weighted sum Σ weight · y_i (x_i, 1) is exactly zero (without an intercept: Σ weight · y_i x_i), which is impossible if
    every row is on the correct side of some plane.

    Attributes
    ----------
    rows : tuple of int
        The positions of the rows in X, from 0.
    weights : tuple of int, or tuple of float
        Coprime positive integers, one for each row. If `exact` is False they are floats that add up to 1.
    one_class : bool
        Whether all rows are of the same class, which can happen without an intercept only.
    exact : bool
        Whether the weights cancel the rows exactly. If not, weights within the distance `within` of these are proved to do so.
    within : float
        How far the exact weights can be from these; 0 if `exact` is True.
    """

    rows: tuple[int, ...]
    weights: tuple[int, ...] | tuple[float, ...]
    one_class: bool = field(default=False, repr=False, compare=False)
    exact: bool = field(default=True, repr=False)
    within: float = field(default=0.0, repr=False, compare=False)

    @staticmethod
    def of(proof: Certificate, signs: Array, within: float = 0.0) -> Witness:
        """Return the witness in a certificate; `signs` are those of all rows of X."""
        one_class = len({int(signs[row]) for row in proof.rows}) == 1
        return Witness(proof.rows, proof.weights, one_class, proof.exact, within)

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.rows[:MAX_LISTED])) + (", …" if len(self.rows) > MAX_LISTED else "")
        if not self.exact:
            within = 10.0 ** math.ceil(math.log10(max(self.within, 1e-300)))
            return f"the rows {shown} ({len(self.rows)} in all) cancel with positive weights within {within:.0e} of these"
        if len(self.rows) == 1:
            return f"row {self.rows[0]} is zero"
        if len(self.rows) == 2 and self.weights == (1, 1):
            alike = "opposite features and the same label" if self.one_class else "the same features and different labels"
            return f"rows {self.rows[0]} and {self.rows[1]} have {alike}"
        return f"the weighted rows {shown} ({len(self.rows)} in all) cancel exactly"


class HasWitness:
    """A result that may have a witness. It has the fields `stated_witness`, `_proof` and `_problem`."""

    stated_witness: Witness | None
    _proof: Proof | None
    _problem: Problem

    def _repr_html_(self) -> str:
        return html_paragraph(self)

    @cached_property
    def _scale_hint(self) -> str:
        """The advice to scale the columns, as the end of a sentence; empty if their scales are similar."""
        hint = scale_hint(self._problem.storage, None)
        return hint and f"; {hint}"

    @property
    def witness(self) -> Witness | None:
        """The witness with exact integer weights, computed on first access if the proof uses floats; None if there is none."""
        return self.find_witness()

    @cached_property
    def _exact_witnesses(self) -> list[Witness]:
        """The witness that `find_witness` has computed, or nothing yet."""
        return []

    def find_witness(self, time_limit: float | None = None) -> Witness | None:
        """Return the witness with exact integer weights.

        Parameters
        ----------
        time_limit : float, default=None
            Return None if the computation is expected to take longer than this many seconds. The time is estimated from some
            of the rows; once started, the computation is not interrupted.

        Returns
        -------
        Witness or None
            A witness that has at most one row more than there are independent columns; None if the data was not proved
            inseparable, or if the computation would take too long.
        """
        seconds, stated = seconds_at_most(time_limit), self.stated_witness
        if stated is None or stated.exact or self._proof is None:
            return stated
        if self._exact_witnesses:
            return self._exact_witnesses[0]
        from gordan.solve.cancelling import exact_weights

        self._problem.X.require_unchanged("witness")
        found = Cancelling(np.array(stated.rows), np.array(stated.weights), self._proof.head.dependent)
        weights = exact_weights(self._problem, found, Intercept(self._proof.head.intercept), seconds)
        if weights is None:
            return None
        self._exact_witnesses.append(Witness((*weights,), (*weights.values(),), stated.one_class))
        return self._exact_witnesses[0]
