"""Where the exact minimizer of a loss is proved to be: a ball for w*, an interval for b*, and the labels that follow from both.

½‖w - w*‖² + ½‖v - w*‖² ≤ G puts w* into a ball (`Optimum.ball`). A penalized intercept is one more entry of w. For a free one
there is no strong convexity, but the slope of P in b increases with b and with every x_i·w. So b* is at least every b at which
the slope is negative for the largest x_i·w* that the ball allows, and at most every b at which it is positive for the smallest
ones. The origin is first moved to the middle of the data; otherwise the intervals would be wider the farther the data is from 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, dot, namespace
from gordan.certificates import bounds, elementary
from gordan.certificates.bounds import TINY, above, below, down, up
from gordan.certificates.data import Certificate
from gordan.certificates.losses import Objective, Optimum, dense_slack
from gordan.certificates.matrix import CLAIM, Matrix, Products, added, block_scores, error, for_blocks, sum_share
from gordan.certificates.multinomial import ROOT2, Multinomial, Scores, balancing
from gordan.certificates.problem import Problem
from gordan.floats import U, ieee_floats
from gordan.intercepts import Intercept
from gordan.losses import Loss
from gordan.rows import Block

# The distances at which the slope in b is computed, as multiples of the one at which it changes sign if all rows are as far from
# the origin as they are on average: smaller ones hardly ever suffice, and each costs as much as a proof.
# If none of these is enough, as for a hinge for which many b are best, larger distances follow, some at a time, and then
# distances between the last two of these, in steps of the ratios FINE_RATIOS, or with more than MAX_SLOPES in those of
# COARSE_RATIOS: these steps are still narrower than those of FIRST_MULTIPLES, and are found with fewer distances.
FIRST_MULTIPLES = np.array([1.05, 1.3])
MAX_SLOPES = 1 << 16
FURTHER_MULTIPLES = np.split(4.0 ** np.arange(1, 41), (2, 8, 16, 24, 32))
FINE_RATIOS, COARSE_RATIOS = 4.0 ** np.array([1 / 8, 1 / 64, 1 / 512]), 4.0 ** np.array([1 / 4, 1 / 16])


@dataclass(frozen=True, eq=False)
class Place:
    """What is proved about the exact minimizer, without the data, as a model file stores it.

    The distance of w to w* is at most `radius`, and that of w* to the `centre` at most `r`. If b counts in the norm, this is
    about (w*, b*/`column`), and with several classes about matrices with one column for each. For a free intercept b* +
    origin·w* is between the two entries of `offset`. With several classes the last entry of `offset` bounds how far the
    differences of b* + origin·w* between classes are from those of the other entries.
    """

    intercept: Intercept
    radius: float
    r: float
    offset: Array
    origin: Array
    centre: Array

    def row(self) -> Array:
        """Return all numbers as one vector, in the order above, with the centre by columns."""
        return np.concatenate(([self.radius, self.r], self.offset, self.origin, self.centre.T.ravel()))

    @staticmethod
    def of_row(row: Array, intercept: Intercept, d: int, k: int | None) -> Place:
        """Return the place from such a vector, for d columns and one plane, or k classes."""
        offset, origin, centre = np.split(row[2:], np.cumsum((2 if k is None else k + 1, d)))
        entries = centre if k is None else centre.reshape(k, -1).T
        return Place(intercept, float(row[0]), float(row[1]), offset, origin, entries)

    @ieee_floats()
    def unproved(self, certificate: Certificate, problem: Problem) -> str:
        """Return why an accepted certificate does not prove that the minimizer is in this place; empty if it does."""
        objective, b, found = proved(certificate, problem)
        if self.centre.shape != found.w.shape or self.intercept != objective.intercept:
            return "the place of the minimizer is stated for another problem"
        # a claim leaves more room for rounding than its check, and may know no more than that the least value is 0 or more
        nothing = Optimum(0.0, found.upper, found.w, np.zeros_like(found.v), 0.0)
        if not (self._holds(found) or self._holds(nothing)):
            return f"the minimizer is stated to be within {self.radius!r}, and proved to be within {found.radius!r}"
        if objective.X.relative(self.origin) is None:
            return "the origin of the place of the minimizer is not among the rows"
        region = _region(objective, self.centre, self.r, objective.X.inward(found.w, b), self.radius, self.origin, self.offset)
        if not self.intercept.grouped or region.offset_is_proved:
            return ""
        return "the intercept of the minimizer is stated to be in an interval that is not proved"

    def _holds(self, optimum: Optimum) -> bool:
        """Return whether an interval for the least value proves that the minimizer is in this place."""
        m, r = optimum.ball
        return self.radius >= optimum.radius and self.r >= up(bounds.length((self.centre - m) * (1 + 2 * U)) + r)

    def label(self, X: Matrix) -> Array:
        """Return the number of the class that the minimizer is proved to predict for each row of X; -1 if it is undecided."""
        if self.centre.ndim == 1:
            low, high = self.scores(X)
            return np.where(low > 0, 1, np.where(high < 0, 0, -1))
        intercept, m = self.intercept, self.centre
        with ieee_floats(), np.errstate(over="ignore", invalid="ignore"):
            if intercept.grouped:
                near, origin = self._near(X)
                sizes = above(distances(near, origin) * (up(ROOT2 * self.r) * (1 + 4 * U)) + self.offset[-1])
                return certain_label(X, m, self.offset[:-1], sizes)
            m, b = intercept.parted(m)
        return certain_label(X, m, b, self._reach_of_rows(X, up(ROOT2 * self.r)))

    @ieee_floats()
    def scores(self, X: Matrix) -> tuple[Array, Array]:
        """Return lower and upper bounds on x·w* + b* for the rows of X, for one plane."""
        intercept = self.intercept
        with np.errstate(over="ignore", invalid="ignore"):
            if intercept.grouped:  # (x - origin)·w* and b* + origin·w*
                (X, origin), m = self._near(X), self.centre
                reach, (lo, hi) = _reach(distances(X, origin), self.r), Products.of(X, m).scores(0.0, np.ones(X.n))
                (least, most), (low, high) = enclosed_product(origin, m), self.offset
                return below(below(below(lo - most) - reach) + low), above(above(above(hi - least) + reach) + high)
            m, b = intercept.parted(self.centre)
            reach, (lo, hi) = self._reach_of_rows(X, self.r), Products.of(X, m).scores(float(b), np.ones(X.n))
            return below(lo - reach), above(hi + reach)

    def _near(self, X: Matrix) -> tuple[Matrix, Array]:
        """Return the rows and the origin, both without the offsets of columns if these can be subtracted from both exactly."""
        near = X.centred
        origin = near.relative(self.origin)
        return (X, self.origin) if origin is None else (near, origin)

    def _reach_of_rows(self, X: Matrix, r: float) -> Array:
        """Return bounds on how far scores of the rows of X are from those of the centre, for planes within r of it."""
        with np.errstate(over="ignore", invalid="ignore"):
            column = self.intercept.column
            return _reach(np.sqrt(X.norms * X.norms + float(column**2)) * (1 + 8 * U) if column else X.norms, r)


def same_labels(places: Sequence[Place], X: Matrix, predicted: Array) -> Array:
    """Return a mask of the rows for which the minimizers are proved to predict these classes, given by number.

    There is one place, or one for each class against the rest.
    """
    if len(places) == 1:
        return np.asarray(places[0].label(X) == predicted)
    bounds = [place.scores(X) for place in places]
    lows, highs = (np.column_stack([pair[end] for pair in bounds]) for end in (0, 1))
    rows = np.arange(X.n)
    own = lows[rows, predicted]
    highs[rows, predicted] = -np.inf
    return np.asarray(own > highs.max(axis=1))


@dataclass(frozen=True, eq=False)
class Slopes:
    """The slopes in b of the losses of k planes, for all w* in their balls.

    `centres` has the centres of the balls as columns, `r` their radii, and `signs` the labels (n × k, where 0 leaves a row out).
    Here b means b + origin·w. Bounds on rounding are multiplied by `slack` (see `matrix.CLAIM`), and `step` is the number of rows
    of a block.
    """

    X: Matrix
    signs: Any
    c: Array
    loss: Loss
    centres: Array
    r: Array
    origin: Array
    slack: float
    step: int = 0

    @ieee_floats()
    @np.errstate(over="ignore", invalid="ignore")
    def offsets(self, b: Array) -> Array:
        """Return a lower and an upper bound on b* + origin·w* for each plane (k × 2); b is near b*.

        A bound is any b at which the slope is proved to have the right sign. Several are tried in one pass, at growing distances.
        """
        near = b + 0.5 * self._shifts[0] + 0.5 * self._shifts[1]
        near = np.where(np.isfinite(near), near, 0.0)
        # scores of rows that far out are uncertain by r times that, and b* by the mean of it; the origin is their mean
        away = math.sqrt(max(0.0, float(np.mean(self.X.norms[self.c > 0] ** 2)) - dot(self.origin, self.origin)))
        first = np.maximum(np.abs(near), 1.0) * 2.0**-40 + np.minimum(away * self.r, 1e150)

        def nearest(distance: Array) -> Array:
            """Return for both ends the least of these distances (2 × m × k) proved to be beyond b*; infinite if none is."""
            proved = self.proved(np.stack((near - distance[0], near + distance[1])))
            return np.asarray(np.where(proved, distance, math.inf).min(axis=1))

        best = np.full((2, len(near)), math.inf)
        for multiples in (FIRST_MULTIPLES, *FURTHER_MULTIPLES):
            best = np.minimum(best, nearest(np.broadcast_to(first * multiples[:, None], (2, len(multiples), len(near)))))
            if np.isfinite(best).all():
                break
        if (np.isfinite(best) & (best > FIRST_MULTIPLES[-1] * first)).any():
            ratios, steps = (FINE_RATIOS, 8.0) if len(self.c) * len(near) <= MAX_SLOPES else (COARSE_RATIOS, 4.0)
            for ratio in ratios:
                best = np.minimum(best, nearest(best[:, None] * ratio ** -np.arange(1.0, steps)[:, None]))
        return np.column_stack((near - best[0], near + best[1]))

    @ieee_floats()
    @np.errstate(over="ignore", invalid="ignore")
    def proved(self, ends: Array) -> Array:
        """Return whether b* + origin·w* is proved to be ≥ each of ends[0] and ≤ each of ends[1] (2 × m × k), in one pass."""
        sizes = np.array([[bounds.length(m) for m in self.centres.T], self.r])
        planes = for_blocks(self.X, np.vstack((self.centres.T, self.origin)).T)
        balls = Balls(planes, sizes, bounds.length(self.origin), self._shifts)
        shared = balls, ends, self.loss, self.slack
        vectors = self.signs, self.c, self.X.norms_in_place
        parts = list(self.X.each_block(_slopes, vectors, shared, step=self.step))
        gains, losses = np.moveaxis(np.sum([found for found, _ in parts], axis=0), 2, 0)
        share = self.slack * sum_share(max(rows for _, rows in parts), len(parts))
        return np.asarray(gains * (1 - share) > losses * (1 + share))

    @cached_property
    def _shifts(self) -> Array:
        """Lower and upper bounds on origin·m for each centre m."""
        return np.array([enclosed_product(self.origin, m) for m in self.centres.T]).T


class Balls(NamedTuple):
    """Balls around centres m, and an origin o.

    The `planes` are the centres and, as the last column, the origin with ‖o‖ ≤ `far`; `sizes` are upper bounds on ‖m‖ and on the
    radii r; and o·m is between the two `shifts`.
    """

    planes: Array
    sizes: Any
    far: float
    shifts: Any


def _slopes(block: Block, y: Any, c: Any, norms: Any, balls: Balls, ends: Any, loss: Loss, slack: float) -> tuple[Array, int]:
    """Return bounds on the masses of rows at each b of both `ends`, and the number of rows.

    The first is a lower bound on the mass of the rows whose scores z improve as b moves towards b*, the second an upper bound on
    that of the others. Scores are relative to the origin. For the lower end they are as large as the ball allows, for the upper
    end as small. They are sums of four numbers, and z of one more, so that there are at most six roundings of all of them.
    """
    sums, terms = block_scores(block, balls.planes)
    xp, sums, towards, far = namespace(sums), sums[:, :-1], sums[:, -1:], balls.far
    y, c, norms, (length, r), (least, most), ends = map(
        block.to_storage_f64, (y, c, norms[:, None], balls.sizes, balls.shifts, ends)
    )
    c = c[:, None] * abs(y)
    if slack > 1:
        norms, slack = norms * _dense_norm_factor(block.d), dense_slack(block.d, terms, slack)
    away = _distance(norms, towards - slack * error(norms * far, terms + 1.0), far)
    reach = xp.where(away == 0, 0.0, away * (r * (1 + 8 * U)))  # NaN shows, and proves nothing
    radius = slack * error(norms * length, terms + 1.0) + reach + TINY
    rounded = slack * 16 * U * (abs(sums) + abs(least) + abs(most) + radius)
    found, used = [], c > 0
    for some, scores, gaining in ((ends[0], sums - least + radius, y > 0), (ends[1], sums - most - radius, y < 0)):
        for b in some:
            z, wide = (scores + b) * y, rounded + slack * 16 * U * abs(b)
            end = xp.where(gaining, z + wide, z - wide)  # where a weight is at least or at most what is asked for
            light, heavy = weight_bounds(loss, end)
            gains = xp.where(gaining & used, (c * light - TINY).clip(min=0.0), 0.0)
            found += [added(gains), added(xp.where(gaining | ~used, 0.0, c * heavy + TINY))]
    return block.to_host(xp.stack(found)).reshape(*ends.shape[:2], 2, y.shape[1]), len(y)


@dataclass(frozen=True, eq=False)
class _Ball(ABC):
    """A ball ‖w* - m‖ ≤ r that contains the exact minimizer, or (w*, b*/`column`) if b counts in the norm.

    `near` is a b near b* for the rows X of the objective, from which b* is searched, and `radius` bounds the distance of w to w*.
    `origin` and `offset` are those of a `Place`; if they are None, they are found from the data.
    """

    objective: Any
    m: Array
    r: float
    near: Any
    radius: float = math.inf
    origin: Array | None = None
    offset: Array | None = None

    @property
    @ieee_floats()
    def _entries(self) -> Array:
        return np.stack((below(self.m - self.r), above(self.m + self.r)), axis=-1)

    @property
    def coef(self) -> Array:
        """Intervals for the entries of w*, of shape (d, 2) or (d, k, 2)."""
        return self._entries[: self.objective.X.d]

    @cached_property
    def place(self) -> Place:
        """What is proved, in a form that does not need the data."""
        offset, origin = np.zeros(2 if self.m.ndim == 1 else self.m.shape[1] + 1), np.zeros(self.objective.X.d)
        if self.objective.intercept.grouped:
            offset, origin = self._placed_offset, self._origin
        return Place(self.objective.intercept, self.radius, self.r, offset, origin, self.m)

    @property
    @abstractmethod
    def _placed_offset(self) -> Array:
        """The `offset` of a `Place` for a free intercept, found from the data."""

    @cached_property
    def weights(self) -> tuple[Array, Array]:
        """The rows that are proved to have a positive weight at every optimum, and those that are proved to have none."""
        objective, counted = self.objective, self.objective.c > 0
        if objective.loss in (Loss.LOGISTIC, Loss.MULTINOMIAL):
            return np.flatnonzero(counted), np.flatnonzero(~counted)
        lo, hi = self.place.scores(objective.X)
        lo, hi = np.where(objective.signs > 0, lo, -hi), np.where(objective.signs > 0, hi, -lo)
        return np.flatnonzero(counted & (hi < 1)), np.flatnonzero(~counted | (lo > 1))

    @cached_property
    def _origins(self) -> tuple[Array, Array]:
        """The origin for the user's rows, and for the rows X of the objective."""
        X = self.objective.X
        return origin_of(X, self.objective.c > 0) if self.origin is None else (self.origin, X.relative(self.origin))

    @property
    def _origin(self) -> Array:
        return self._origins[0]


class Region(_Ball):
    """The ball of the minimizer of a loss of one plane."""

    objective: Objective

    @cached_property
    @ieee_floats()
    def intercept(self) -> tuple[float, float]:
        """An interval that contains every b*."""
        intercept = self.objective.intercept
        if intercept.in_norm:
            low, high = (intercept.column * self._entries[-1]).tolist()
            return low, high
        if not intercept.exists:
            return 0.0, 0.0
        length = bounds.length(self._origin)
        shift, away = enclosed_product(self._origin, self.m), up(self.r * length) if length > 0 else 0.0
        low, high = self._placed_offset.tolist()
        return down(down(low - shift[1]) - away), up(up(high - shift[0]) + away)

    # ---- a free intercept -------------------------------------------------------------------------------------------

    @cached_property
    def _placed_offset(self) -> Array:
        """Bounds on b* + origin·w*, the lower and the upper one."""
        if self.offset is not None:
            return self.offset
        found: Array = self._slopes(CLAIM).offsets(np.array([self.near]))[0]
        return found

    def _slopes(self, slack: float) -> Slopes:
        of = self.objective
        return Slopes(of.X, of.signs[:, None], of.c, of.loss, self.m[:, None], np.array([self.r]), self._origins[1], slack)

    @property
    def offset_is_proved(self) -> bool:
        """Whether b* + origin·w* is proved to be between the two entries of `offset`."""
        assert self.offset is not None
        known = self._slopes(1.0).proved(self.offset[:, None, None])[:, 0, 0]
        return bool((known | (self.offset == [-math.inf, math.inf])).all())


class ClassRegion(_Ball):
    """The ball of the minimizer of a multinomial loss, in the Frobenius norm.

    A free b* is unique up to a constant, which is chosen here so that its sum is 0.

    Two columns of W* - m differ by at most √2 r. For a free intercept the origin is moved to a centre o, and β = b + Wᵀo. Take
    any b, the weights q of the rows at (m, b), ε = ½‖Σ C(q - e_y)‖₁, a lower bound μ on Σ C q_T(1 - q_T) for all sets T of
    classes, τ = -ln(1 - ε/μ) and κ = √2 r max‖x_i - o‖. Then the differences of β* are within (k-1)(κ + τ) of those of β = b +
    mᵀo. Proof: sort the entries of β* - β. If there were a gap of more than κ + τ between the classes T at the top and the
    others, the odds of T would increase by a factor of more than e^τ for every row, and the mass of T over all rows by more than
    ε, which is the most that it can increase by.
    """

    objective: Multinomial

    @cached_property
    @ieee_floats()
    def intercept(self) -> Array:
        """Intervals for the entries of b*, of shape (k, 2)."""
        intercept, k = self.objective.intercept, self.objective.k
        if intercept.in_norm:
            found: Array = intercept.column * self._entries[-1]
            return found
        if not intercept.exists:
            return np.zeros((k, 2))
        length, b = bounds.length(self._origin), self._offset
        with np.errstate(over="ignore", invalid="ignore"):
            # b*_j is the mean of b*_j - b*_l over all l, of which one is 0; the mean of b is off by u of the sum of |b|
            reach = up(up(ROOT2 * self.r) * length) if length > 0 else 0.0
            wide = up((self._spread + reach) * (1 - 1 / k) * (1 + 8 * U) + 4 * U * float(np.sum(np.abs(b))) + TINY)
            centre = b - np.mean(b)
            found = np.stack((below(centre - wide), above(centre + wide)), axis=-1)
        return np.where(np.isnan(found), [-np.inf, np.inf], found)

    # ---- a free intercept -------------------------------------------------------------------------------------------

    @property
    def _placed_offset(self) -> Array:
        return np.append(self._offset, self._spread) if self.offset is None else self.offset

    @property
    def offset_is_proved(self) -> bool:
        """Whether differences of β* are proved to be as near to those of `offset` as its last entry says."""
        assert self.offset is not None
        return bool(self.offset[-1] >= self._spread_of(self.offset[:-1]))

    @cached_property
    def _offset(self) -> Array:
        """A b near the best one for m; any b may be used."""
        objective, kept = self.objective, np.flatnonzero(self.objective.c)
        with ieee_floats(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if objective.X.storage.in_memory:
                S = Scores.of(objective.X, self.m).sums[kept] + self.near
                b = self.near + balancing(S, objective.which[kept], objective.c[kept])
            else:  # by one step, which takes a pass over X
                b = self.near + objective.balanced(self.m, self.near, CLAIM).step
        return objective.X.outward(self.m, b) if np.isfinite(b).all() else np.zeros(objective.k)

    @cached_property
    def _spread(self) -> float:
        """An upper bound on (k - 1)(κ + τ) for `_offset`, with room for a checker whose sums are in another order."""
        return self._spread_of(self._offset, CLAIM) * (1 + 2.0**-40)

    @ieee_floats()
    def _spread_of(self, offset: Array, slack: float = 1.0) -> float:
        """Return an upper bound on (k - 1)(κ + τ) for this b; infinite if nothing is known."""
        objective = self.objective
        kept = np.flatnonzero(objective.c)
        with np.errstate(over="ignore", invalid="ignore"):
            excess, least = objective.balance(self.m, objective.X.inward(self.m, offset), slack)
            reach = float(np.max(distances(objective.X, self._origins[1], slack)[kept], initial=0.0))
            kappa = 0.0 if reach == 0 else up(up(up(ROOT2 * self.r) * reach) * (1 + 4 * U))
            share = up(slack * excess / (least * (1 - 2.0**-40))) if least > 0 else 1.0
            if not (share < 0.5 and kappa < math.inf):
                return math.inf
            tau = float(elementary.neg_log_above(np.array([share]))[0])
            return up(up((objective.k - 1) * up(kappa + tau)) * (1 + 4 * U))


def posed(c: Certificate, problem: Problem) -> tuple[Objective | Multinomial, Array, Any]:
    """Return the objective that a certificate of an optimum is about, and its w and b."""
    w = np.array(c.w, dtype=np.float64)
    if c.several:
        return Multinomial.of(problem, c), *Intercept(c.intercept).plane_of(w.reshape(len(c.classes), -1).T)
    return Objective.of(problem, c), w, float(c.b or 0.0)


def proved(c: Certificate, problem: Problem, slack: float = 1.0) -> tuple[Objective | Multinomial, Any, Optimum]:
    """Return the objective that a certificate is about, its b, and the interval that it proves.

    Scores are rounded only once if the claim is not proved otherwise.
    """
    objective, w, b = posed(c, problem)
    if isinstance(objective, Multinomial):
        return objective, b, objective.enclose(w, b, slack=slack)
    rows, weights = np.array(c.rows, dtype=np.int64), np.array(c.weights, dtype=np.float64)
    found = objective.enclose(w, b, rows, weights, slack=slack)
    if not claims(c, found):
        found = objective.enclose(w, b, rows, weights, slack=slack, once=True)
    return objective, b, found


def claims(c: Certificate, found: Optimum) -> bool:
    """Return whether the interval that is proved is inside the one that the certificate claims."""
    return (c.lower or 0.0) <= found.lower and (math.inf if c.upper is None else c.upper) >= found.upper


def region_of(objective: Objective | Multinomial, optimum: Optimum, b: Any, *, locate: bool = True) -> Region | ClassRegion:
    """Return what an interval for the least value proves about the minimizer; b is near b*.

    Without `locate`, nothing is said about a free b*, which would take passes over X.
    """
    facts = *optimum.ball, objective.X.inward(optimum.w, b) if objective.intercept.grouped else b, optimum.radius
    if locate and (optimum.lower > 0 or isinstance(objective, Multinomial)):
        return _region(objective, *facts)
    if isinstance(objective, Multinomial):
        return _region(objective, *facts, np.zeros(objective.X.d), np.append(np.zeros(objective.k), math.inf))
    # if nothing is proved from below, the ball is so large that bounds on b* would not be worth the passes either
    return _region(objective, *facts, np.zeros(objective.X.d), np.array([-math.inf, math.inf]))


def _region(objective: Objective | Multinomial, *facts: Any) -> Region | ClassRegion:
    return ClassRegion(objective, *facts) if isinstance(objective, Multinomial) else Region(objective, *facts)


@ieee_floats()
def certain_label(X: Matrix, w: Array, b: Any, apart: Array | float = 0.0) -> Array:
    """Return the number of the class that the planes w, b predict for each row of X; -1 if it is undecided.

    This is the class whose score is more than `apart` above all others. One plane predicts 1 on its positive side, else 0.
    """
    X = X.centred
    with np.errstate(over="ignore", invalid="ignore"):
        b = X.inward(w, b)
        if w.ndim == 1:
            lo, hi = Products.of(X, w).scores(b, np.ones(X.n))
            return np.where(lo > apart, 1, np.where(hi < -apart, 0, -1))
        s, radius = Scores.of(X, w).enclosed(X, b, slice(None))
        lo, hi, line = below(s - radius), above(s + radius), np.arange(X.n)
        best = lo.argmax(axis=1)
        first = lo[line, best]
        hi[line, best] = -np.inf
        return np.where(below(first - hi.max(axis=1)) > apart, best, -1)


def mean_of(X: Matrix, counted: Array) -> Array:
    """Return the mean of the rows that count, as computed; any point may be used."""
    with ieee_floats(), np.errstate(over="ignore", invalid="ignore"):
        mean = X.combination(counted / max(int(np.count_nonzero(counted)), 1))
    return mean if np.isfinite(mean).all() else np.zeros(X.d)


def origin_of(X: Matrix, counted: Array) -> tuple[Array, Array]:
    """Return a point near the mean of the rows that count, as one among the user's rows, and relative to the origin of X."""
    mean = mean_of(X, counted)
    if X.origin is None:
        return mean, mean
    point = X.origin + mean
    own = X.relative(point)
    return (point, own) if own is not None else (X.origin, np.zeros(X.d))


def enclosed_product(x: Array, m: Array) -> tuple[float, float]:
    """Return a lower and an upper bound on x·m."""
    with np.errstate(over="ignore", invalid="ignore"):
        terms = x * m
        sizes = np.abs(terms)
        # two roundings of each term and those of `near_sum`, and as many again
        error = 2 * (bounds.SUM_BLOCK + 4) * U * float(np.sum(sizes)) * (1 + 2 * len(terms) * U) + len(terms) * TINY
        # sums of terms below this do not overflow on the way
        total = bounds.near_sum(terms) if float(np.max(sizes)) * len(terms) < math.inf else math.nan
    return (down(total - error), up(total + error)) if math.isfinite(total + error) else (-math.inf, math.inf)


def distances(X: Matrix, origin: Array, slack: float = 1.0) -> Array:
    """Return upper bounds on ‖x - o‖ for the rows of X; with the `slack` of a claim, no less than those of a checker."""
    with np.errstate(over="ignore", invalid="ignore"):
        products = Products.of(X, origin)
        wide = 1.0 if slack == 1 else float(np.max(dense_slack(X.d, products.terms, slack)))
        towards, _ = products.scores(0.0, np.ones(X.n), wide)
        return np.asarray(_distance(X.norms * (1.0 if slack == 1 else _dense_norm_factor(X.d)), towards, bounds.length(origin)))


def _dense_norm_factor(d: int) -> float:
    """Return a factor for bounds on norms, if another form of X may have d terms in every row."""
    return 1 + 4 * U * (d + 16)


def _distance(norms: Any, towards: Any, length: float) -> Any:
    """Return an upper bound on ‖x - o‖ for x·o ≥ towards and ‖o‖ = length.

    ‖x - o‖² = ‖x‖² - 2x·o + ‖o‖², in which no term exceeds (‖x‖ + ‖o‖)²; rounding is at most 8u times that. The root may be off
    by 2u, which is one unit in the last place, and the product with the factor by u. Underflow is covered by the TINY that is
    included in `towards`.
    """
    xp, whole = namespace(norms), norms + length
    squares = (norms * norms - 2.0 * towards) + length * length + 8 * U * whole * whole
    near = xp.sqrt(xp.where(abs(squares) < math.inf, squares, math.inf).clip(min=0.0))  # parts may be beyond the floats
    return xp.minimum(near, whole) * (1 + 4 * U)


def _reach(sizes: Array, r: float) -> Array:
    """Return bounds on |x·w* - x·m| for rows x of these sizes; for a size of 0 this is TINY even if r is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(sizes == 0, 0.0, sizes * (r * (1 + 4 * U))) + TINY  # NaN shows, and proves nothing


def weight_bounds(loss: Loss, z: Array) -> tuple[Array, Array]:
    """Return lower and upper bounds on a(z). At z = 1 the hinge has slopes from 0 to 1."""
    if loss is Loss.HINGE:
        return (z < 1) * 1.0, ~(z > 1) * 1.0  # NaN may be on either side
    if loss is Loss.SQUARED_HINGE:
        slope = 2.0 * (1.0 - z).clip(min=0.0)
        return slope * (1 - 2 * U), slope * (1 + 2 * U)
    return elementary.sigmoid(z)
