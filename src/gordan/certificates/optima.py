"""What planes prove about the least losses of many label vectors for the same rows: `Objective.enclose` for blocks of vectors.

For losses with a slope, whose weights follow from the planes: one pass over X proves all of them. All that is as long as X has
rows is made piece by piece where the rows are; what comes back are sums. These are in whatever order, so that bounds are somewhat
wider than those for one label vector, and hold what a checker finds for each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gordan.arrays import Array, namespace
from gordan.certificates import bounds
from gordan.certificates.bounds import SUM_BLOCK, TINY, U, down, up
from gordan.certificates.losses import LEAST, Drift, Optimum, dense_slack, dual_below, loss_above, paid_below, value_above
from gordan.certificates.matrix import CLAIM, Matrix, added, block_scores, error, sum_share
from gordan.certificates.regions import Place, distances, enclosed_product, mean_of, weight_bounds
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept
from gordan.losses import Loss, SmoothHinge
from gordan.rows import Block

# Where the slope in b is looked at, in multiples of the distance at which it changes sign if all rows are as far out as they are
# on average; and where none of these will do, at distances that grow fourfold.
NEAR = np.array([0.95, 1.05, 1.2, 1.6])
FAR = 4.0 ** np.arange(1, 20)
# Rows times label vectors that are worked on at a time, about, where label vectors are many.
NUMBERS = 1 << 20


@dataclass(frozen=True, eq=False)
class Objectives:
    """The P of each column of signs (n × k, in which 0 leaves a row out): `c` holds C_i, which is the same in all of them."""

    X: Matrix
    signs: Array
    loss: Loss
    c: Array
    intercept: Intercept
    smoothing: float = 0.0
    """Up to this distance below z = 1 the weight of a row for the hinge grows to C: those are then stated."""

    @ieee_floats()
    def enclose(self, W: Array, b: Array) -> list[Optimum]:
        """The intervals that the planes W (d × k) with their b prove, as they are claimed: a checker finds each of them again."""
        length = np.array([bounds.length(w) for w in W.T])
        shared = W, b, length, self.loss, float(self.intercept.in_norm), self.smoothing
        step = self._rows_at_a_time(W.shape[1])
        v, parts, most, stated = np.zeros((self.X.d + 1, W.shape[1])), [], 0, []
        with np.errstate(over="ignore", invalid="ignore"):
            vectors, first = (self.signs, self.c, self.X.norms), 0
            for sums, combined, rows, (i, j, alpha) in self.X.storage.each_block(_sums, vectors, shared, step=step):
                v += combined
                stated.append((i + first, j, alpha))
                first += rows
                most = max(most, rows)
                parts.append(sums)
            whole = np.sum(parts, axis=0)
            whole[-1] = np.max([sums[-1] for sums in parts], axis=0)
            found, (i, column, alpha) = [], map(np.concatenate, zip(*stated, strict=True))
            for j, (w, offset) in enumerate(zip(W.T, b.tolist(), strict=True)):
                own = v[:, j].copy() if self.intercept.in_norm else v[:-1, j].copy()
                plane, sums = self.intercept.joined(w.copy(), offset), whole[:, j].tolist()
                optimum = self._optimum(plane, offset, sums, own, (most, len(parts)))
                mine = np.flatnonzero(column == j)
                found.append(replace(optimum, rows=i[mine], weights=alpha[mine]) if len(mine) else optimum)
        return found

    def _rows_at_a_time(self, k: int) -> int:
        """So many where there are more label vectors than columns; 0: as the storage has it."""
        return NUMBERS // k if k > self.X.d else 0

    def _optimum(self, plane: Array, b: float, sums: list[float], v: Array, terms: tuple[int, int]) -> Optimum:
        """Of one label vector, from what `_sums` adds up. `terms` are the rows of the largest block, and the number of blocks.

        Four times what sums may be off by is claimed. v is off by as many roundings of a term as there are weights, and one for
        each block.
        """
        above, gains, losses, lengths, count, *by_class, moved, moved_lengths, moved_paid, moved_cost, longest = sums
        share = CLAIM * sum_share(*terms)
        upper = value_above(plane, share, above, share)
        nothing = Optimum(0.0, upper, plane, np.zeros_like(v), 0.0)
        drift = Drift(*(up(x * (1 + share)) for x in (moved, moved_lengths, moved_paid, moved_cost)))
        off = 2 * U * (count + terms[1] + 2 * SUM_BLOCK) * lengths * (1 + share)
        off = up(CLAIM * (off + count * TINY * (longest + self.X.d + 1.0)))
        total = down(down(gains * (1 - share)) - up(losses * (1 + share)))
        if not (np.isfinite(v).all() and math.isfinite(off + total + sum(drift))):
            return nothing
        surplus = shift = 0.0
        if self.intercept.grouped:
            masses, paid, weighted = by_class[:2], by_class[2:4], by_class[4:]
            surplus = _surplus(masses, share, drift)
            if not surplus < 1:
                return nothing
            total = down(total - up(surplus * up(max(paid) * (1 + share))))
            shift = up(surplus * up(up(max(weighted) * (1 + share)) + drift.lengths))
            drift = drift._replace(cost=drift.cost + abs(b) * drift.weights)
        total -= drift.loss(bounds.length(plane - v), off, surplus)
        lower, v, off = dual_below(total, v, up(off + shift))
        return Optimum(lower, upper, plane, v, off)

    @ieee_floats()
    def places(self, optima: Sequence[Optimum], b: Array) -> list[Place]:
        """Where the minimizers are, as `Region.place` says for one; b are those of the planes, near the best ones.

        For a free intercept one end of the interval for b*, moved to an origin amid the rows, is any b at which the slope is
        proved to have the right sign. Some are looked at in one pass, at distances that grow.
        """
        balls, kind = [optimum.ball for optimum in optima], self.intercept
        M, r = np.column_stack([m for m, _ in balls]), np.array([radius for _, radius in balls])
        origin = mean_of(self.X, self.c > 0) if kind.grouped else np.zeros(self.X.d)
        ends = self._offsets(M, r, b, origin) if kind.grouped else np.zeros((len(balls), 2))
        facts = zip(optima, balls, ends, strict=True)
        return [Place(kind, optimum.radius, radius, own, origin, m) for optimum, (m, radius), own in facts]

    def _offsets(self, M: Array, r: Array, b: Array, origin: Array) -> Array:
        """b* + origin·w* of each label vector, at least and at most."""
        away, shifts = distances(self.X, origin), np.array([enclosed_product(origin, m) for m in M.T]).T
        near = b + 0.5 * shifts[0] + 0.5 * shifts[1]
        near = np.where(np.isfinite(near), near, 0.0)
        # scores of rows that far out are uncertain by r times that, and b* by the mean of it
        first = np.maximum(np.abs(near), 1.0) * 2.0**-40 + np.minimum(float(np.mean(away)) * r, 1e150)
        sizes = np.array([[bounds.length(m) for m in M.T], r])
        step = self._rows_at_a_time(M.shape[1])

        def nearest(multiples: Array) -> Array:
            """For both ends the least of these distances at which b is proved to be beyond b*; infinite where none is."""
            distance = first * multiples[:, None]
            shared = M, sizes, shifts, np.stack((near - distance, near + distance)), self.loss
            vectors = self.signs, self.c, self.X.norms, away
            parts = list(self.X.storage.each_block(_slopes, vectors, shared, step=step))
            gains, losses = np.moveaxis(np.sum([found for found, _ in parts], axis=0), 2, 0)
            share = sum_share(max(rows for _, rows in parts), len(parts))
            return np.asarray(np.where(gains * (1 - share) > losses * (1 + share), distance, math.inf).min(axis=1))

        with np.errstate(over="ignore", invalid="ignore"):
            best = nearest(NEAR)
            if np.isinf(best).any():
                best = np.minimum(best, nearest(FAR))
            return np.column_stack((near - best[0], near + best[1]))


def _surplus(masses: list[float], share: float, drift: Drift) -> float:
    """1 - t at most, t ≤ 1 the mass of the lighter class over that of the heavier; 1 where nothing is known."""
    light, heavy = sorted(masses)
    if not down(heavy * (1 - share)) > 0:
        return 1.0
    moved = up(drift.weights / down(heavy * (1 - share)))
    surplus = up(1 - down(down(light * (1 - share)) / up(heavy * (1 + share))))
    return up(max(surplus, 0.0) + up(2 * moved)) if moved < 0.25 else 1.0


# ---- work on one block of rows, done where that is ----------------------------------------------------------------------


def _sums(
    block: Block, y: Any, c: Any, norms: Any, W: Array, b: Any, length: Any, loss: Loss, in_norm: float, smoothing: float = 0.0
) -> tuple[Array, Array, int, tuple[Array, Array, Array]]:
    """What is added up over some rows, a column for each plane; Σ α y x with Σ α y below it; how many rows these are; and the
    weights that are stated: row of the block, plane, α.

    The sums: what the losses are at most; gains and losses of what is paid at least; weights times lengths, and how many weights
    there are; by class the masses, the gains, and masses times lengths of rows; how far weights drift (`Drift`). Last comes the
    length of the longest row.

    As `Objective.enclose`: scores are within a radius of the exact ones, of which four times as much is claimed (and more where a
    checker may hold X in another form); weights follow from the scores as computed, and drift by what twice the radius may do.
    Those of the hinge do not: they are C or 0 where the claimed scores are on one side of z = 1, and stated else.
    """
    sums, terms = block_scores(block, W)
    xp = namespace(sums)
    y, c, norms, b, length = map(block.lift, (y, c, norms, b, length))
    c = c[:, None] * abs(y)
    radius = error(norms[:, None] * length + abs(b), terms + 1.0)
    z = (sums + b) * y
    low = z - radius * dense_slack(block.d, terms, CLAIM)
    above = xp.where(c > 0, c * loss_above(loss, low) * (1 + 4 * U) + TINY, 0.0)
    hinge = loss is Loss.HINGE
    alpha = c * (SmoothHinge(smoothing) if hinge and smoothing > 0 else loss).weight(z)
    alpha = xp.where((alpha >= LEAST) & (c > 0), alpha, 0.0)  # NaN too
    if loss.most_weight < math.inf:
        alpha = xp.minimum(alpha, c * loss.most_weight)
    stated = _stated(block, z, CLAIM * radius, alpha, c) if hinge else (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    low, high = z - 2.0 * radius, z + 2.0 * radius
    moved = xp.where(c > 0, c * (loss.weight(low) - loss.weight(high)) * (1 + 16 * U) + 16 * U * alpha, 0.0)
    moved = 0.0 * c if hinge else moved
    size = xp.maximum(abs(low), abs(high)) + 1.0
    size = xp.where(moved > 0, size, 0.0)
    rounded = alpha * ((512 + 64 * size) * U)
    paid = paid_below(loss, alpha, c)
    sizes = (norms + in_norm)[:, None]
    gains, weighted = paid.clip(min=0.0), alpha * norms[:, None]
    parts = (
        above,
        gains,
        (-paid).clip(min=0.0),
        alpha * sizes,
        0.0 * alpha + (alpha > 0),
        *(part * own for part in (alpha, gains, weighted) for own in (y > 0, y < 0)),
        moved,
        moved * sizes,
        moved * size + rounded,
        moved * (high - low) + rounded,
    )
    totals = [block.drop(added(part)) for part in parts]
    signed = alpha * y
    longest = np.full(len(totals[0]), float(block.drop(sizes.max())))
    combined = np.vstack((block.drop(block.combined(signed)), block.drop(added(signed))))
    return np.array([*totals, longest]), combined, len(y), stated


def _stated(block: Block, z: Any, radius: Any, alpha: Any, c: Any) -> tuple[Array, Array, Array]:
    """The rows and planes whose weight is not what the side of z = 1 says, or that may be on either, and these weights."""
    xp = namespace(z)
    certain = ((z + radius < 1) & (alpha == c)) | ((z - radius > 1) & (alpha == 0))
    i, j = xp.where((c > 0) & ~certain)
    return block.drop(i), block.drop(j), block.drop(alpha[i, j])


def _slopes(
    block: Block, y: Any, c: Any, norms: Any, away: Any, M: Array, sizes: Any, shifts: Any, ends: Any, loss: Loss
) -> tuple[Array, int]:
    """Masses of rows that gain and of those that lose as b grows, at least and at most, at each b of both `ends`; and how many
    rows these are.

    `sizes` are what ‖m‖ and r are at most. Scores are those about the origin, whose product with m is between the two `shifts`:
    as large as the ball lets them be for the lower end, and as small for the upper one. They are sums of four numbers, and z of
    one more: six roundings of all of them at most.
    """
    sums, terms = block_scores(block, M)
    xp = namespace(sums)
    y, c, norms, away, (length, r), (least, most), ends = map(block.lift, (y, c, norms, away, sizes, shifts, ends))
    c = c[:, None] * abs(y)
    reach = xp.where(away[:, None] > 0, away[:, None] * (r * (1 + 8 * U)), 0.0)
    radius = error(norms[:, None] * length, terms + 1.0) + reach + TINY
    rounded = 16 * U * (abs(sums) + abs(least) + abs(most) + radius)
    found = []
    for some, scores, gaining in ((ends[0], sums - least + radius, y > 0), (ends[1], sums - most - radius, y < 0)):
        for b in some:
            z, wide = (scores + b) * y, rounded + 16 * U * abs(b)
            light, heavy = weight_bounds(loss, z - wide, z + wide)
            found += [added(xp.where(gaining, c * light, 0.0)), added(xp.where(gaining, 0.0, c * heavy))]
    return block.drop(xp.stack(found)).reshape(*ends.shape[:2], 2, y.shape[1]), len(y)
