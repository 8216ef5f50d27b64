"""The question how small a loss can be, and the evidence about it: the same roles as `Question` and `Evidence` have for
margins."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gordan.arrays import Array, relative_width
from gordan.certificates import Certificate
from gordan.certificates.losses import Objective, Optimum, dense_slack
from gordan.certificates.matrix import CLAIM, Products
from gordan.certificates.multinomial import Multinomial
from gordan.certificates.optima import Objectives
from gordan.certificates.problem import Problem
from gordan.ledger.evidence import Effort
from gordan.ledger.question import ON_HOST, Asks, Budget, Play, Proposal
from gordan.losses import Loss
from gordan.rows import Rows

# The rows, and their weights, of a certificate that states none.
NO_WEIGHTS = np.empty(0, np.int64), np.empty(0)
# A relative width above which certificates of the squared hinge hold weights of rows, if that narrows it, and of how many.
WIDE, MOST_WEIGHTS = 1e-9, 10_000


@dataclass(frozen=True, eq=False)
class LossQuestion:
    """How small is the `objective` of this problem? `tol` is the relative width of the interval to stop at.

    `play.start` is a w (with b as its last entry where there is one) to start from, `head` a certificate that lacks its proof.
    """

    problem: Problem
    objective: Objective | Multinomial
    budget: Budget
    tol: float
    play: Play
    head: Certificate
    asks: Asks = field(default=Asks.LOSS, init=False)

    on_host = ON_HOST

    @cached_property
    def kept(self) -> Array | slice:
        """The rows that count."""
        c = self.objective.c
        return slice(None) if c.all() else np.flatnonzero(c)

    @cached_property
    def rows(self) -> Rows:
        """The signed rows that count, with a column of ones where there is an intercept."""
        problem = self.problem
        if not isinstance(self.kept, slice):
            problem.require_finite()  # by the row as it was given
            problem = problem.part(self.kept)
        return Rows(problem.storage, problem.signs, constant=self.objective.intercept.exists, threads=self.budget.threads)

    @cached_property
    def c(self) -> Array:
        """C_i of the rows that count."""
        return self.objective.c[self.kept]

    @property
    def vectors(self) -> int:
        """How many planes are proved at once."""
        return math.prod(self.objective.shape[1:])

    @property
    def which(self) -> Array | None:
        """The classes of the rows that count, where the loss is about several."""
        return self.objective.which[self.kept] if isinstance(self.objective, Multinomial) else None


@dataclass(eq=False)
class LossEvidence:
    """What has been proved about the least value: `optimum`, by the plane w, b and, for the hinge and where it helps, weights
    `alpha` of these `rows`."""

    question: LossQuestion
    w: Array | None = None
    b: Any = 0.0
    rows: Array = field(default_factory=lambda: NO_WEIGHTS[0])
    alpha: Array = field(default_factory=lambda: NO_WEIGHTS[1])
    optimum: Optimum | None = None
    effort: Effort = field(default_factory=Effort)

    @property
    def bracket_width(self) -> float:
        """(upper - lower)/upper, 0 if upper is 0, 1 if nothing is known."""
        return 1.0 if self.optimum is None else self.optimum.relative_width

    @property
    def answered(self) -> bool:
        """Whether the interval is narrow enough."""
        return self.bracket_width <= self.question.tol

    def offer(self, proposal: Proposal) -> bool:
        """Have the plane and the weights checked, and keep them if the interval is narrower; nothing here decides a sign."""
        self.effort.add(proposal)
        objective = self.question.objective
        if proposal.w is None or not np.isfinite(proposal.w).all() or not np.isfinite(proposal.b).all():
            return False
        w, b, smoothing = proposal.w, proposal.b, proposal.smoothing
        follow = objective.loss.smooth or smoothing is not None
        self._proved(w, b, *(NO_WEIGHTS if follow else self._stated(w, float(b), proposal.p)), smoothing=smoothing)
        wide = max(self.question.tol, WIDE)
        if objective.loss is Loss.SQUARED_HINGE and self.bracket_width > wide:
            rows, alpha = self._stated(w, float(b), proposal.p)
            if len(rows) <= MOST_WEIGHTS:
                self._proved(w, b, rows, alpha)
        if objective.loss is Loss.HINGE and smoothing is None and self.bracket_width > wide:
            self._lengthened(w, float(b), proposal.p)
        if self.bracket_width > wide and self.w is w and self._hidden_by_rounding(proposal):
            self._proved(w, b, self.rows, self.alpha, once=True)
        return False

    def _proved(self, w: Array, b: Any, rows: Array, alpha: Array, *, once: bool = False, smoothing: float | None = None) -> None:
        """Keep the plane with these weights, if the interval that they prove is narrower; with scores that are rounded `once`,
        if that is wanted and X is small enough. Weights of a hinge with a `smoothing` follow from the plane."""
        objective = self.question.objective
        if isinstance(objective, Multinomial):
            found = objective.enclose(w, b, slack=CLAIM)
        elif smoothing is None and (objective.X.storage.in_memory or len(rows) or not objective.loss.smooth):
            found = objective.enclose(w, b, rows, alpha, slack=CLAIM, once=once)
        else:
            # by one pass that brings back sums: rows of sign 0 have no weight in c
            X, loss = objective.X, objective.loss
            table = Objectives(X, objective.signs[:, None], loss, objective.c, objective.intercept, smoothing or 0.0)
            (found,) = table.enclose(w[:, None], np.array([float(b)]))
            rows, alpha = found.rows, found.weights
        if self.optimum is None or found.gap < self.optimum.gap:
            self.w, self.b, self.rows, self.alpha, self.optimum = w, b, rows, alpha, found

    def _hidden_by_rounding(self, proposal: Proposal) -> bool:
        """Whether the interval would be narrow enough but for the rounding of scores, and there is time to read X row by row."""
        trace, X, question = proposal.trace, self.question.objective.X, self.question
        if trace is None or not X.storage.in_memory or isinstance(question.objective, Multinomial):
            return False
        estimated = relative_width(float(trace.lower[-1]), float(trace.upper[-1]))
        return estimated <= question.tol and question.budget.time.affords(X.seconds_row_by_row)

    def _lengthened(self, w: Array, b: float, p: Array | None) -> None:
        """Prove a plane that is longer by what rounding may leave rows short of z = 1: where it separates them, C times that may
        be more than the least value."""
        objective = self.question.objective
        assert isinstance(objective, Objective)
        products = Products.of(objective.X, w)
        # twice as wide as what is claimed: the sums of the longer plane are rounded, too
        lo, _ = products.scores(b, objective.signs, 2 * dense_slack(objective.X.d, products.terms, CLAIM))
        least = float(np.min(lo, where=objective.c > 0, initial=math.inf))
        if 0 < least < 1 and least > math.sqrt(1 / (1 + self.bracket_width)):
            w, b = w / least, b / least
            self._proved(w, b, *self._stated(w, b, p))

    def _stated(self, w: Array, b: float, p: Array | None) -> tuple[Array, Array]:
        """The rows whose weights a certificate states, and these weights: p, or what follows from w as computed here.

        A row whose z is above 1 for certain has no weight, and for the hinge one below 1 has C. The others are stated: for the
        squared hinge because, with a large C and few rows on the wrong side of z = 1, the room that a claim leaves for scores in
        another order of summation is C times as wide; weights that the certificate holds need none.
        """
        objective, question = self.question.objective, self.question
        assert isinstance(objective, Objective)
        products = Products.of(objective.X, w)
        lo, hi = products.scores(b, objective.signs, CLAIM)
        if p is None:
            alpha = objective.alpha(products, b, *NO_WEIGHTS)
        else:
            alpha = np.zeros(len(objective.c))
            alpha[question.kept] = np.clip(p, 0.0, question.c * objective.loss.most_weight)
        certain = np.where(lo > 1, 0.0, math.nan)  # NaN: unlike any weight
        if objective.loss is Loss.HINGE:
            certain[hi < 1] = objective.c[hi < 1]
        rows = np.flatnonzero((alpha != certain) & (objective.c > 0))
        return rows, alpha[rows]


def without_plane(evidence: LossEvidence) -> Optimum:
    """What w = 0, b = 0 proves: the interval that needs no search."""
    shape = evidence.question.objective.shape
    evidence.offer(Proposal(w=np.zeros(shape), b=np.zeros(shape[1:]) if len(shape) > 1 else 0.0))
    assert evidence.optimum is not None
    return evidence.optimum
