"""What planes prove about the least losses of many label vectors for the same rows: `Objective.enclose` for blocks of vectors.

One pass over X proves all of them. Vectors over the rows are made block by block, where the rows are stored, and only sums are
returned. They may be added in any order, so that the intervals are somewhat wider than those of one label vector, and contain
what a checker finds for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gordan.arrays import Array, namespace
from gordan.certificates import bounds
from gordan.certificates.losses import Optimum, RowScores, allowed_weights, dense_slack, proved_optimum, row_terms
from gordan.certificates.margins import combined
from gordan.certificates.matrix import CLAIM, Matrix, added, block_scores, error, for_blocks, sum_share
from gordan.certificates.regions import Place, Slopes, origin_of
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept
from gordan.losses import Loss, SmoothHinge
from gordan.rows import Block, available, in_threads, over_rows

# About how many rows times label vectors are processed at a time if there are many label vectors.
TERMS_AT_ONCE = 1 << 20

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Objectives:
    """The function P of each column of `signs` (n × k, where 0 leaves a row out), with the same C_i = `c` for all of them.

    X is centred as in `Objective`. `smoothing` is the distance below z = 1 over which the weight of a row for the hinge grows to
    C; such weights are stated. `weights` (n × k) are weights of the rows to be stated, if they do not follow from the planes.
    """

    X: Matrix
    signs: Array
    loss: Loss
    c: Array
    intercept: Intercept
    smoothing: float = 0.0
    weights: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", self.X.centred if self.intercept.grouped else self.X)

    def columns(self, j: Array) -> Objectives:
        """Return the same for these label vectors only."""
        return replace(self, signs=self.signs[:, j], weights=None if self.weights is None else self.weights[:, j])

    @ieee_floats()
    def enclose(self, W: Array, b: Array) -> list[Optimum]:
        """Return the intervals that the planes W (d × k) with their b prove, with room for the rounding of a checker."""
        k, W, b = W.shape[1], for_blocks(self.X, W), self.X.inward(W, b)
        given = np.empty((self.X.n, 0))
        if self.weights is not None:
            given = allowed_weights(self.loss, self.weights, self.c[:, None] * np.abs(self.signs))
        planes = Planes(W, b, np.array([bounds.length(w) for w in W.T]), self.smoothing)
        shared = planes, self.loss, self.intercept
        vectors, step = (self.signs, self.c, self.X.norms_in_place, given), self._rows_at_a_time(k)
        v, parts, most, stated = np.zeros((self.X.d + 1, 0 if given.shape[1] else k)), [], 0, []
        with np.errstate(over="ignore", invalid="ignore"):
            first = 0
            for sums, combination, rows, (i, j, alpha) in self.X.each_block(_sums, vectors, shared, step=step):
                v += combination
                stated.append((i + first, j, alpha))
                first += rows
                most = max(most, rows)
                parts.append(sums)
            whole = np.sum(parts, axis=0)
            longest, share = max(float(sums[-1, 0]) for sums in parts), CLAIM * sum_share(most, len(parts))
            i, column, alpha = map(np.concatenate, zip(*stated, strict=True))
            combinations = self._combined(given) if given.shape[1] else self.intercept.combined(v[:-1], v[-1]).T

        @np.errstate(over="ignore", invalid="ignore")
        def optimum_of(j: int) -> Optimum:
            plane, sums = self.intercept.joined(W[:, j].copy(), float(b[j])), whole[:-1, j].tolist()
            optimum = proved_optimum(plane, float(b[j]), combinations[j].copy(), sums, longest, share, CLAIM, len(parts))
            mine = np.flatnonzero(column == j)
            return replace(optimum, rows=i[mine], weights=alpha[mine]) if len(mine) else optimum

        return _of_planes(optimum_of, k, self.X.d)

    def _combined(self, alpha: Array) -> list[Array]:
        """Return Aᵀα for the weights of each label vector."""

        def work(j: int, _: int) -> Array:
            rows = np.flatnonzero(alpha[:, j])
            return combined(self.X, self.signs[:, j], rows, alpha[rows, j], self.intercept)

        return in_threads(work, [(j, j + 1) for j in range(alpha.shape[1])], available())

    def _rows_at_a_time(self, k: int) -> int:
        """Return the number of rows of a block if there are more label vectors than columns; 0 for the storage's own blocks."""
        return TERMS_AT_ONCE // k if k > self.X.d else 0

    def places(self, optima: Sequence[Optimum], b: Array) -> list[Place]:
        """Return the places of the minimizers, as `Region.place` does for one; b are the intercepts of the planes."""
        intercept, origin, ends = self.intercept, np.zeros(self.X.d), np.zeros((len(optima), 2))
        radii, balls = zip(*_of_planes(lambda j: (optima[j].radius, optima[j].ball), len(optima), self.X.d), strict=True)
        if intercept.grouped:
            centres, r = np.array([m for m, _ in balls]).T, np.array([radius for _, radius in balls])
            origin, own_origin = origin_of(self.X, self.c > 0)
            step = self._rows_at_a_time(len(balls))
            near = np.array([self.X.inward(optimum.w, own) for optimum, own in zip(optima, b.tolist(), strict=True)])
            ends = Slopes(self.X, self.signs, self.c, self.loss, centres, r, own_origin, CLAIM, step).offsets(near)
        facts = zip(radii, balls, ends, strict=True)
        return [Place(intercept, radius, own, offset, origin, m) for radius, (m, own), offset in facts]


def _of_planes(work: Callable[[int], Found], k: int, d: int) -> list[Found]:
    """Return work(j) for each of k planes, which costs vectors of d numbers."""
    parts = over_rows(lambda lo, hi: [work(j) for j in range(lo, hi)], k, d)
    return [found for part in parts for found in part]


# ---- work on one block of rows, done where that is ----------------------------------------------------------------------


class Planes(NamedTuple):
    """Planes W (d × k) with their intercepts b, upper bounds on ‖w‖, and the smoothing with which the hinge weights follow."""

    W: Array
    b: Any
    length: Any
    smoothing: float


def _sums(
    block: Block, y: Any, c: Any, norms: Any, given: Any, planes: Planes, loss: Loss, intercept: Intercept
) -> tuple[Array, Array, int, tuple[Array, ...]]:
    """Return sums over the rows of a block, a combination of the rows, their number, and the weights to be stated.

    The sums are those of `row_terms`, with a column for each plane, and the length of the longest row as a last row. The
    combination is Σ α y x with Σ α y below it; it is empty if the weights are `given`. Stated weights are (row of the block,
    plane, α).

    As in `Objective.enclose`, a claim allows for four times the error of the scores, and for more if a checker may store X in
    another form. Weights follow from the scores as computed. Those of the hinge are C or 0 if the scores that are allowed for
    are on one side of z = 1, and otherwise stated. So are `given` weights, unless they are 0 and these scores are above 1.
    """
    sums, terms = block_scores(block, planes.W)
    xp = namespace(sums)
    y, c, norms, given, b, length = map(block.to_storage_f64, (y, c, norms, given, planes.b, planes.length))
    smoothing = planes.smoothing
    c, norms = c[:, None] * abs(y), norms[:, None]
    z, radius = (sums + b) * y, error(norms * length + abs(b), terms + 1.0)
    hinge = loss is Loss.HINGE
    alpha = given if given.shape[1] else c * (SmoothHinge(smoothing) if hinge and smoothing > 0 else loss).weight(z)
    alpha = allowed_weights(loss, alpha, c)
    follows, none = c >= 0, (z - CLAIM * radius > 1) & (alpha == 0)
    if hinge:
        follows = ((z + CLAIM * radius < 1) & (alpha == c)) | none
    elif given.shape[1]:
        follows = none
    i, j = xp.where((c > 0) & ~follows)
    scores = RowScores(z, radius, radius * dense_slack(block.d, terms, CLAIM))
    totals = [block.to_host(added(each)) for each in row_terms(loss, intercept, scores, y, c, alpha, norms, follows)]
    longest = np.full(len(totals[0]), float(block.to_host(norms.max())) + intercept.column)
    signed = alpha * y
    combination = np.empty((block.d + 1, 0))
    if not given.shape[1]:
        combination = np.vstack((block.to_host(block.combined(signed)), block.to_host(added(signed))))
    return np.array([*totals, longest]), combination, len(y), tuple(map(block.to_host, (i, j, alpha[i, j])))
