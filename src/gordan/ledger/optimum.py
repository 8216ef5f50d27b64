"""`LossQuestion` and `LossEvidence`: how small a loss can be, and what is proved about it.

They have the same roles for losses as `Question` and `Evidence` have for margins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from gordan.arrays import Array, relative_width
from gordan.certificates import Certificate
from gordan.certificates.losses import Objective, Optimum, dense_slack, of_zero
from gordan.certificates.matrix import CLAIM, Matrix, Products
from gordan.certificates.multinomial import Multinomial
from gordan.certificates.optima import Objectives
from gordan.certificates.problem import Problem
from gordan.floats import U
from gordan.ledger.evidence import Effort
from gordan.ledger.question import Asks, Budget, Play, Proposal
from gordan.losses import Loss
from gordan.rows import Rows

# The rows and weights of a certificate that states none.
NO_WEIGHTS = np.empty(0, np.int64), np.empty(0)
# If the relative width of an interval is above the first number (and above tol), certificates of the squared hinge state the
# weights of up to MAX_WEIGHTS rows, provided that this narrows the interval.
WIDE_ENOUGH_TO_STATE_WEIGHTS, MAX_WEIGHTS = 1e-9, 10_000


@dataclass(frozen=True, eq=False)
class LossSubject:
    """What a question is about: the `objective` of a problem, and the rows that finders need, with `threads` for the passes."""

    problem: Problem
    objective: Objective | Multinomial
    threads: int | None = None

    @cached_property
    def kept(self) -> Array | slice:
        """The rows that count, which are those with C_i > 0."""
        c = self.objective.c
        return slice(None) if c.all() else np.flatnonzero(c)

    @cached_property
    def rows(self) -> Rows:
        """The signed rows that count, with the column of the intercept if there is one."""
        return self.signed(self.searched)

    def signed(self, X: Matrix) -> Rows:
        """Return the signed rows of X that count, with the column of the intercept if there is one."""
        problem = replace(self.problem, X=X)
        if not isinstance(self.kept, slice):
            self.problem.require_finite()  # before rows are renumbered, so that an error names the row as given
            problem = problem.part(self.kept)
        return Rows(problem.storage, problem.signs, constant=self.objective.intercept.constant(), threads=self.threads)

    @property
    def searched(self) -> Matrix:
        """The matrix with the rows of finders, which may have another origin than the user's."""
        return self.objective.X.stored_for(self.problem.X)

    @cached_property
    def c(self) -> Array:
        """The C_i of the rows that count."""
        return self.objective.c[self.kept]


@dataclass(frozen=True, eq=False)
class LossQuestion:
    """The question how small the `objective` of a problem can be.

    `tol` is the relative width at which the interval is narrow enough. `play.start` is a w to start from, with b as its last
    entry if there is an intercept, for the rows that the user gave, and `head` is a certificate that still lacks its proof.
    """

    about: LossSubject
    budget: Budget
    tol: float
    play: Play
    head: Certificate
    asks: Asks = field(default=Asks.LOSS, init=False)

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.about.problem

    @property
    def objective(self) -> Objective | Multinomial:
        """The objective that is to be small."""
        return self.about.objective

    @property
    def kept(self) -> Array | slice:
        """The rows that count, which are those with C_i > 0."""
        return self.about.kept

    @property
    def rows(self) -> Rows:
        """The signed rows that count, with the column of the intercept if there is one."""
        return self.about.rows

    @property
    def given_rows(self) -> Rows:
        """The same rows as the user gave them, which are known by a checkpoint."""
        return self.about.signed(self.problem.X)

    def evidence(self) -> LossEvidence:
        """Return the evidence before anything is proved."""
        return LossEvidence(self)

    def inward(self, plane: Array) -> Array:
        """Return the plane w, b (with b last) as the w of `rows`, which may have another origin than those of the user."""
        return self.about.objective.intercept.inward(self.about.searched.plane_inward(plane))

    def outward(self, plane: Array) -> Array:
        """Return the w of a finder as a plane w, b for the rows that the user gave."""
        return self.about.searched.plane_outward(self.about.objective.intercept.outward(plane))

    @property
    def c(self) -> Array:
        """The C_i of the rows that count."""
        return self.about.c

    @property
    def vectors(self) -> int:
        """The number of planes that are proved at once."""
        return math.prod(self.objective.shape[1:])

    @property
    def which(self) -> Array | None:
        """The classes of the rows that count for the multinomial loss, else None."""
        return self.objective.which[self.kept] if isinstance(self.objective, Multinomial) else None


@dataclass(eq=False)
class LossEvidence:
    """What has been proved about the least value of a loss.

    The interval `optimum` is proved by the plane w, b and, for the hinge and wherever it helps, by weights `alpha` of `rows`.
    """

    question: LossQuestion
    w: Array | None = None
    b: Any = 0.0
    rows: Array = field(default_factory=lambda: NO_WEIGHTS[0])
    alpha: Array = field(default_factory=lambda: NO_WEIGHTS[1])
    optimum: Optimum | None = None
    effort: Effort = field(default_factory=Effort)

    @property
    def bracket_width(self) -> float:
        """The relative width (upper - lower)/upper of the interval; 0 if upper is 0, and 1 if nothing is known."""
        return 1.0 if self.optimum is None else self.optimum.relative_width

    @property
    def answered(self) -> bool:
        """Whether the interval is narrow enough for the question's tol."""
        return self.bracket_width <= self.question.tol

    def offer(self, proposal: Proposal) -> bool:
        """Have the plane and the weights checked and keep them if they narrow the interval; returns False.

        `Evidence.offer` returns whether a sign is decided, which is not a question here.
        """
        self.effort.add(proposal.cost)
        objective = self.question.objective
        if proposal.w is None or not np.isfinite(proposal.w).all() or not np.isfinite(proposal.b).all():
            return False
        w, b, smoothing = proposal.w, proposal.b, proposal.smoothing
        weights_follow = (objective.loss.smooth and proposal.p is None) or smoothing is not None
        stated = NO_WEIGHTS if weights_follow else self._weights_to_state(w, float(b), proposal.p)
        if objective.loss.smooth and len(stated[0]) > MAX_WEIGHTS:
            stated = NO_WEIGHTS
        self._prove(w, b, *stated, smoothing=smoothing)
        wide = max(self.question.tol, WIDE_ENOUGH_TO_STATE_WEIGHTS)
        if objective.loss is Loss.SQUARED_HINGE and weights_follow and self.bracket_width > wide:
            rows, alpha = self._weights_to_state(w, float(b), proposal.p)
            if len(rows) <= MAX_WEIGHTS:
                self._prove(w, b, rows, alpha)
        if objective.loss is Loss.HINGE and smoothing is None and self.bracket_width > wide:
            self._prove_longer_plane(w, float(b), proposal.p)
        if self.bracket_width > wide and self.w is w and self._hidden_by_rounding(proposal):
            self._prove(w, b, self.rows, self.alpha, once=True)
        return False

    def _prove(self, w: Array, b: Any, rows: Array, alpha: Array, *, once: bool = False, smoothing: float | None = None) -> None:
        """Keep the plane with these weights if they prove a narrower interval.

        With `once`, each score is rounded only once, if X is small enough for that. With a `smoothing`, the weights of a hinge
        follow from the plane.
        """
        objective = self.question.objective
        if isinstance(objective, Multinomial):
            found = objective.enclose(w, b, slack=CLAIM)
        elif smoothing is None and (objective.X.storage.in_memory or len(rows) or not objective.loss.smooth):
            found = objective.enclose(w, b, rows, alpha, slack=CLAIM, once=once)
        else:
            # one pass that returns only sums; rows of sign 0 have C_i = 0
            X, loss = objective.X, objective.loss
            table = Objectives(X, objective.signs[:, None], loss, objective.c, objective.intercept, smoothing or 0.0)
            (found,) = table.enclose(w[:, None], np.array([float(b)]))
            rows, alpha = found.rows, found.weights
        if self.optimum is None or found.width < self.optimum.width:
            self.w, self.b, self.rows, self.alpha, self.optimum = w, b, rows, alpha, found

    def _hidden_by_rounding(self, proposal: Proposal) -> bool:
        """Return whether only the rounding of scores keeps the interval wide, and there is time to read X row by row."""
        trace, X, question = proposal.cost.trace, self.question.objective.X, self.question
        if trace is None or not X.storage.in_memory or isinstance(question.objective, Multinomial):
            return False
        estimated = relative_width(float(trace.lower[-1]), float(trace.upper[-1]))
        return estimated <= question.tol and question.budget.time.affords(X.seconds_row_by_row)

    def _prove_longer_plane(self, w: Array, b: float, p: Array | None) -> None:
        """Try a slightly longer plane, for which every row is proved to have z ≥ 1, if the plane separates the rows.

        Otherwise rounding may leave rows short of z = 1, and C times this loss may exceed the least value.
        """
        objective = self.question.objective
        assert isinstance(objective, Objective)
        products = Products.of(objective.X, w)
        # twice as wide as for a claim, since the sums for the longer plane are rounded as well, and so is its b
        own = objective.X.inward(w, b)
        lo, _ = products.scores(own, objective.signs, 2 * dense_slack(objective.X.d, products.terms, CLAIM))
        least = float(np.min(lo, where=objective.c > 0, initial=math.inf)) - (0.0 if own == b else 4 * U * abs(b))
        if 0 < least < 1 and least > math.sqrt(1 / (1 + self.bracket_width)):
            w = w / least
            b = objective.X.outward(w, own / least)
            self._prove(w, b, *self._weights_to_state(w, b, p))

    def _weights_to_state(self, w: Array, b: float, p: Array | None) -> tuple[Array, Array]:
        """Return the rows whose weights a certificate has to state, and these weights, from p or else as they follow from w.

        The other weights are certain: 0 for a row with z > 1, and for the hinge C_i for a row with z < 1. The squared hinge
        states weights for another reason: a claim leaves room for scores that are summed in another order, and with a large C
        and few rows with z < 1 this room, multiplied by C, dominates the interval. Stated weights need no such room.
        """
        objective, question = self.question.objective, self.question
        assert isinstance(objective, Objective)
        products = Products.of(objective.X, w)
        b = objective.X.inward(w, b)
        lo, hi = products.scores(b, objective.signs, CLAIM)
        if p is None:
            alpha = objective.alpha(products, b, *NO_WEIGHTS)
            if objective.X.origin is not None:  # b has fewer digits than the weights need
                masses = [float(np.sum(alpha, where=objective.signs == side)) for side in (1, -1)]
                heavier = objective.signs == (1 if masses[0] > masses[1] else -1)
                alpha[heavier] *= min(masses) / max(masses) if max(masses) > 0 else 1.0
        else:
            alpha = np.zeros(len(objective.c))
            alpha[question.kept] = np.clip(p, 0.0, question.c * objective.loss.most_weight)
        certain = np.where(lo > 1, 0.0, math.nan)  # NaN differs from every weight
        if objective.loss is Loss.HINGE:
            certain[hi < 1] = objective.c[hi < 1]
        rows = np.flatnonzero((alpha != certain) & (objective.c > 0))
        return rows, alpha[rows]


def without_plane(evidence: LossEvidence) -> Optimum:
    """Offer w = 0, b = 0 to the evidence and return the interval that is proved, which needs no search.

    If the time is up, this is the one that takes no pass: there may be many such label vectors.
    """
    question, objective, shape = evidence.question, evidence.question.objective, evidence.question.objective.shape
    w, b = np.zeros(shape), np.zeros(shape[1:]) if len(shape) > 1 else 0.0
    if evidence.optimum is None and question.budget.spent:
        at_zero = objective.loss.at_zero(len(question.problem.classes))
        plane = shape[0] + objective.intercept.in_norm, *shape[1:]
        evidence.w, evidence.b, evidence.optimum = w, b, of_zero(objective.X, objective.c, at_zero, plane)
        return evidence.optimum
    evidence.offer(Proposal(w=w, b=b))
    assert evidence.optimum is not None
    return evidence.optimum
