"""`TableEvidence` accumulates in arrays what is proved about the margins of many label vectors for one X."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.certificates import Certificate, verified
from gordan.certificates.blocks import Margins
from gordan.certificates.data import Kind, Relation
from gordan.certificates.matrix import CLAIM
from gordan.certificates.problem import Problem
from gordan.certificates.verify import deviation
from gordan.floats import NotIEEE, ieee_floats
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Proof
from gordan.ledger.question import Cancelling

# More room than a claim usually leaves for the checker, since that scales rows by the weights of each label vector, whereas here
# all label vectors share one scaling.
SLACK = 4 * CLAIM


class Support(NamedTuple):
    """Rows with weights that prove the upper bound of a margin, or that cancel.

    If they cancel, exact weights differ from these by at most `within` (`verify.deviation`), and `dependent` has the relations
    between columns that the proof needs.
    """

    rows: Array = np.empty(0, np.int64)
    weights: Array = np.empty(0)
    within: float = 0.0
    dependent: tuple[Relation, ...] = ()


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of [X, 1], or of X without an intercept, and relations that express some of them by others on all rows."""

    X: Array
    intercept: Intercept
    dependent: tuple[Relation, ...] = ()

    @cached_property
    def independent(self) -> list[int]:
        """The columns that no relation expresses by others."""
        out = {relation[0][0] for relation in self.dependent}
        return [j for j in range(self.intercept.columns(self.X.shape[1])) if j not in out]

    @cached_property
    def rows(self) -> Array:
        """The rows (x, 1), or x without an intercept, restricted to the `independent` columns."""
        A = np.column_stack((self.X, np.ones(len(self.X)))) if self.intercept.exists else self.X
        return np.ascontiguousarray(A[:, self.independent])


@dataclass(eq=False)
class TableEvidence:
    """What is proved for each column of `signs` (n × k, where 0 leaves out a row), for dense rows `X` with their exact values.

    If a label vector is `separable`, its plane proves `lower` and its support `upper`. If `upper` is 0, the rows of its `support`
    cancel. `rounds` are the steps that it took to find this. `columns` has the relations between columns that are proved.
    """

    problem: Problem
    signs: Array
    intercept: Intercept
    X: Array
    columns: Columns = field(init=False)
    planes: Array = field(init=False)
    b: Array = field(init=False)
    lower: Array = field(init=False)
    upper: Array = field(init=False)
    rounds: Array = field(init=False)
    separable: Array = field(init=False)
    support: list[Support] = field(init=False)

    def __post_init__(self) -> None:
        """Begin without any knowledge about the label vectors."""
        d, k = self.X.shape[1], self.signs.shape[1]
        self.columns = Columns(self.X, self.intercept)
        self.planes, self.b = np.full((d, k), math.nan), np.full(k, math.nan)
        self.lower, self.upper, self.separable = np.zeros(k), np.full(k, math.inf), np.zeros(k, dtype=bool)
        self.rounds, self.support = np.zeros(k, np.int64), [Support()] * k

    @property
    def decided(self) -> Array:
        """A mask of the label vectors that have a plane, or rows that cancel."""
        return np.asarray(self.separable | (self.upper == 0))

    def offer_relations(self, dependent: Sequence[Relation]) -> None:
        """Keep relations between columns if they hold exactly on all rows."""
        with ieee_floats():
            if verified.relations_hold(self.problem, dependent, self.intercept):
                self.columns = Columns(self.X, self.intercept, tuple(dependent))

    def offer_cancelling(self, at: Array, p: Array) -> None:
        """Check whether rows cancel with weights near p (m × n, each of total 1) for the label vectors `at`, and keep those."""
        try:
            with ieee_floats():
                within = verified.each_cancelling(self.columns.rows, self.signs.T[at], p, SLACK)
        except NotIEEE:
            return
        for j, weights, off in zip(at.tolist(), p, within.tolist(), strict=True):
            if off < math.inf:
                rows = np.flatnonzero(weights)
                self.support[j], self.upper[j] = Support(rows, weights[rows], off, self.columns.dependent), 0.0

    def offer_one(self, j: int, found: Cancelling) -> None:
        """Check rows that may cancel for one label vector, as `Evidence` does, and keep them if they do."""
        if not np.isfinite(found.weights).all():
            return
        within = deviation(self._witness(found.rows, found.weights, found.dependent), self.column(j))
        if within < math.inf:
            self.support[j], self.upper[j] = Support(found.rows, found.weights, within, found.dependent), 0.0

    def offer_planes(self, at: Array, W: Array, b: Array, P: Array) -> None:
        """Check planes W (d × m), b of the label vectors `at`, with weights P (n × m) for upper bounds, and keep separators."""
        margins = Margins(self.X, self.problem.X.norms, self.signs[:, at], self.intercept)
        try:
            strict, lower = margins.lower(W, b, CLAIM)
            upper = margins.upper(P, CLAIM)
        except NotIEEE:
            return
        for place, j in enumerate(at.tolist()):
            if strict[place] and lower[place] > 0:
                p = P[:, place]
                rows = np.flatnonzero(p) if upper[place] < math.inf else np.empty(0, np.int64)
                self.planes[:, j], self.b[j], self.support[j] = W[:, place], b[place], Support(rows, p[rows])
                self.lower[j], self.upper[j], self.separable[j] = lower[place], upper[place], True

    def column(self, j: int) -> Problem:
        """Return the problem of one label vector."""
        return Problem(self.problem.X, np.ascontiguousarray(self.signs[:, j]), self.problem.classes)

    def proof(self, j: int, kind: Kind) -> Proof:
        """Return the proof for a decided label vector: of this kind (separator or bracket), or a witness if not separable."""
        rows, weights, within, dependent = self.support[j]
        if not self.separable[j]:
            return Proof(self._witness(rows, weights, dependent), within=float(within))
        p = np.zeros(self.problem.X.n)
        p[rows] = weights
        head = self._head(kind, b=float(self.b[j]), lower=float(self.lower[j]), upper=float(self.upper[j]))
        return Proof(head, self.planes[:, j].copy(), p)

    def _witness(self, rows: Array, weights: Array, dependent: tuple[Relation, ...]) -> Certificate:
        """Return a verified witness with these rows and weights."""
        numbers = tuple(rows.tolist()), tuple(weights.tolist())
        return self._head("verified-witness", rows=numbers[0], weights=numbers[1], dependent=dependent)

    def _head(self, kind: Kind, **fields: Any) -> Certificate:
        """Return a certificate of this kind about the problem's data, with these fields."""
        X = self.problem.X
        return Certificate(kind, self.intercept.value, self.problem.classes, (X.n, X.d), **fields)
