"""Which regularized loss is meant, and what a plane w, b and weights of the rows prove about its least value.

P(w, b) = ½‖w‖² + Σ C_i ℓ(y_i(x_i·w + b)), where ‖(w, b)‖ counts for a penalized intercept, is at least its minimum P*. With a
weight α_i for each row, between 0 and `most_weight`·C_i, D(α) = Σ C_i g(α_i/C_i) - ½‖Aᵀα‖² is at most P*; a free intercept
needs Σ y_i α_i = 0 besides. All bounds hold for the stored values as real numbers, for any α that is allowed, so that whoever
found w and α need not be believed. Rounding is bounded as in `margins`; u is 2⁻⁵³.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, namespace, relative_width
from gordan.certificates import bounds, elementary
from gordan.certificates.bounds import TINY, U, down, up
from gordan.certificates.data import Certificate
from gordan.certificates.margins import combined
from gordan.certificates.matrix import Matrix, Products, error
from gordan.certificates.problem import Problem
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept
from gordan.losses import Loss
from gordan.rows import LONGEST_SUM, nonzero

# Weights below this count as 0, and bounds below it are: products with them may be subnormal.
LEAST_WEIGHT = 2.0**-900
# Numbers over rows that are worked on at a time, so that they stay in the cache.
NUMBERS_IN_CACHE = 1 << 15


@dataclass(frozen=True, eq=False)
class Optimum:
    """lower ≤ P* ≤ upper, from w, b and weights whose combination is v, up to `error` in the 2-norm."""

    lower: float
    upper: float
    w: Array
    v: Array
    error: float
    rows: Array = field(default_factory=lambda: np.empty(0, np.int64))
    weights: Array = field(default_factory=lambda: np.empty(0))
    """The rows whose weights do not follow from w, b, and these, where planes were proved together.

    w and v have a column for each class where there are several, and the norm is then Frobenius's."""

    @property
    def gap(self) -> float:
        """upper - lower, rounded up."""
        return up(self.upper - self.lower) if self.upper < math.inf else math.inf

    @property
    def relative_width(self) -> float:
        """(upper - lower)/upper."""
        return relative_width(self.lower, self.upper)

    @cached_property
    @ieee_floats()
    def distance(self) -> tuple[float, float]:
        """‖w - v‖ for the v of the exact weights, at least and at most."""
        with np.errstate(over="ignore"):
            most = bounds.length((self.w - self.v) * (1 + 2 * U))
        return max(0.0, down(most * (1 - 2.0**-40) - self.error)), up(most + self.error)

    @cached_property
    @ieee_floats()
    def radius(self) -> float:
        """What ‖w - w*‖ is at most.

        ½‖w - w*‖² + ½‖v - w*‖² ≤ G: P less its minimum over b is 1-strongly convex in w, and -D in v. So w* is in the ball
        about (w + v)/2 of radius √(G - ¼s²), s = ‖w - v‖, and within s/2 + that of w, which grows in s up to √(2G).
        """
        G = self.gap
        if not math.inf > G:
            return math.inf
        s = min(self.distance[1], up(math.sqrt(2 * G)))
        return up(s / 2 + up(math.sqrt(max(0.0, up(G - down(s * s / 4 * (1 - 4 * U)))))))

    @cached_property
    @ieee_floats()
    def ball(self) -> tuple[Array, float]:
        """A centre m and a radius r with ‖m - w*‖ ≤ r: m is midway between w and v.

        The v of the exact weights is off by `error` from the one here, so that the centre is off by half of that. The
        rounding of m is a share u of each entry.
        """
        if not self.gap < math.inf:
            return np.zeros_like(self.v), math.inf
        m = 0.5 * self.w + 0.5 * self.v
        s, _ = self.distance
        rounded = 2 * U * bounds.length(m) + m.size * TINY
        r = math.sqrt(max(0.0, up(self.gap - down(s * s / 4 * (1 - 4 * U)))))
        return m, up(up(r * (1 + 4 * U)) + up(self.error / 2 + rounded))


class Drift(NamedTuple):
    """How far weights may be from those of a checker: Σ|Δα_i|, Σ|Δα_i|‖A_i‖, and what that does to Σ C g and to P - D at most."""

    weights: float
    lengths: float
    paid: float
    cost: float

    def loss(self, apart: float, error: float, surplus: float) -> float:
        """How much less D may be at such weights, at most: P - D = ½‖w - v‖² + Σ C(ℓ(z) + az - g(a)) - b Σ y_i α_i, where ‖w - v‖
        is `apart`, up to `error`."""
        lengths = self.lengths * (apart + self.lengths + 2 * error)
        return (lengths + self.cost + surplus * self.paid) * (1 + 16 * U)


@dataclass(frozen=True, eq=False)
class Objective:
    """The P of this data: `c` holds C_i, for every row, of which some may be 0."""

    X: Matrix
    signs: Array
    loss: Loss
    c: Array
    intercept: Intercept = Intercept.FREE

    @staticmethod
    def of(problem: Problem, certificate: Certificate) -> Objective:
        """The one that a certificate is about."""
        c, signs = certificate, problem.signs_for(certificate.classes)
        assert c.loss is not None
        weights = constants_of(c, (signs > 0).astype(np.intp))
        return Objective(problem.X, signs, Loss(c.loss), weights, Intercept(c.intercept))

    @property
    def shape(self) -> tuple[int, ...]:
        """That of w."""
        return (self.X.d,)

    def infeasibility_reason(self) -> str:
        """Return why there is no such minimum; empty if there is one."""
        return infeasibility_reason(self.c, self.intercept, [self.signs == side for side in (1, -1)])

    @ieee_floats()
    def enclose(self, w: Array, b: float, rows: Array, weights: Array, *, slack: float = 1.0, once: bool = False) -> Optimum:
        """The interval that w, b and the weights prove.

        The weights follow from w: α_i = C_i a(z_i) for the z_i as computed. For the hinge, a(z_i) is 1 or 0, and `rows` with
        their `weights` α are the exceptions. With a `slack` of `matrix.CLAIM` the interval holds the one that is found with sums
        in another order, or with the same values in other storage: what was claimed is found again. RowScores are rounded `once`
        if that is wanted, and X is small enough for it.
        """
        products = Products.of(self.X, w)
        products = (products.rounded_once if once else None) or products
        plane, alpha = self.intercept.joined(products.w, b), self.alpha(products, b, rows, weights)
        follows = np.ones(len(alpha), dtype=bool)
        follows[rows] = False
        with np.errstate(over="ignore", invalid="ignore"):
            parts = []
            for part in parts_of(len(alpha)):
                scores = self._enclosed(products, b, part, slack)
                given = scores, self.signs[part], self.c[part], alpha[part], self.X.norms[part]
                terms = row_terms(self.loss, self.intercept, *given, follows[part] if slack != 1 else None)
                parts.append([bounds.near_sum(each) for each in terms])
            used = nonzero(alpha)
            v = combined(self.X, self.signs, used, alpha[used], self.intercept)
            longest = float(np.max(self.X.norms[used], initial=0.0)) + self.intercept.in_norm
        sums = [bounds.fsum([*each]) for each in zip(*parts, strict=True)]
        return proved_optimum(plane, b, v, sums, longest, 2 * slack * bounds.SUM_BLOCK * U, slack)

    def _enclosed(self, products: Products, b: float, part: slice, slack: float) -> RowScores:
        """The scores of some rows."""
        terms = products.terms[part] if products.terms.ndim else products.terms
        radius = error(products.absolute[part] + abs(b), terms + 1.0)
        wider = slack if slack == 1 or products.once else dense_slack(self.X.d, terms, slack)
        return RowScores((products.sums[part] + b) * self.signs[part], radius, radius * wider)

    def alpha(self, products: Products, b: float, rows: Array, weights: Array) -> Array:
        """The weights of the rows that w, b stand for: floats, allowed as they are, but for Σ y_i α_i = 0."""
        alpha = np.zeros(self.X.n)
        with np.errstate(over="ignore", invalid="ignore"):
            for part in parts_of(len(alpha)):
                z = (products.sums[part] + b) * self.signs[part]
                alpha[part] = self.c[part] * self.loss.weight(z)
        alpha[rows] = weights
        allowed: Array = allowed_weights(self.loss, alpha, self.c)
        return allowed


def infeasibility_reason(c: Array, intercept: Intercept, classes: Sequence[Array]) -> str:
    """Return why a loss with these C_i has no minimum; empty if it has one. `classes` has a mask of the rows of each class."""
    if not ((c >= 0) & np.isfinite(c)).all():
        return "C, or C times a weight, is negative or not finite"
    if intercept.grouped and not all((c[own] > 0).any() for own in classes):
        return "all rows of a class have weight zero, so that no b is the best"
    return ""


def allowed_weights(loss: Loss, alpha: Any, c: Any) -> Any:
    """Return weights that a proof may use: at most `most_weight`·C, and 0 for those that are below LEAST_WEIGHT or not finite."""
    xp = namespace(alpha)
    if loss.most_weight < math.inf:
        alpha = xp.minimum(alpha, c * loss.most_weight)
    return xp.where((alpha >= LEAST_WEIGHT) & (alpha < math.inf) & (c > 0), alpha, 0.0)  # comparisons with NaN are false


class RowScores(NamedTuple):
    """z = y(x·w + b) as computed, what it is off by at most, and what a claim leaves room for."""

    z: Any
    radius: Any
    claimed: Any


def row_terms(
    loss: Loss, intercept: Intercept, scores: RowScores, y: Any, c: Any, alpha: Any, norms: Any, follows: Any | None
) -> tuple[Any, ...]:
    """What `proved_optimum` needs the sums of, for each row; or for each row and label vector.

    What the losses are at most: ℓ falls, so that the lowest z that is claimed counts; gains and losses of what is paid at least;
    weights times lengths of rows, and whether there is a weight. Then, unless `follows` is None, how far weights that follow from
    the scores may be from those of a checker (`Drift`); and, for a free intercept, by class the weights, the gains, and the
    weights times lengths.

    These scores, and those of a checker, are within a radius R of the exact ones, and a(z) falls: so weights differ by
    C(a(z - 2R) - a(z + 2R)) at most, and for a library's exp by 8u of themselves. A weight a(z') instead of a(z) costs
    ℓ(z) + a(z')z - g(a(z')) = ℓ(z) - ℓ(z') - ℓ'(z')(z - z') ≤ |z - z'||a(z) - a(z')|. Near 1, where g is steep, a weight that is
    off by 8u changes g by 300u, elsewhere by less than 64u(1 + |z|) of the weight.
    """
    (z, radius, claimed), xp = scores, namespace(scores.z)
    above = xp.where(c > 0, c * loss_above(loss, z - claimed) * (1 + 4 * U) + TINY, 0.0)
    paid, counts = paid_below(loss, alpha, c), alpha > 0
    gains, weighted = paid.clip(min=0.0), alpha * xp.where(counts, norms, 0.0)
    terms: tuple[Any, ...] = above, gains, (-paid).clip(min=0.0), weighted + intercept.in_norm * alpha, 0.0 * alpha + counts
    if follows is not None:
        low, high = z - 2.0 * radius, z + 2.0 * radius
        moved = c * (loss.weight(low) - loss.weight(high)) * (1 + 16 * U) + 16 * U * alpha
        moved = xp.where(follows & (c > 0), moved, 0.0)
        size = xp.maximum(abs(low), abs(high)) + 1.0
        rounded = alpha * ((512 + 64 * size) * U)
        drifts = moved, moved * (norms + intercept.in_norm), moved * size + rounded, moved * (high - low) + rounded
        terms += tuple(xp.where(moved == 0, 0.0, drift) for drift in drifts)
    if intercept.grouped:
        terms += tuple(part * own for part in (alpha, gains, weighted) for own in (y > 0, y < 0))
    return terms


def proved_optimum(
    plane: Array, b: float, v: Array, sums: Sequence[float], longest: float, share: float, slack: float, blocks: int = 0
) -> Optimum:
    """The interval from the sums of `row_terms`, each off by that share of it at most; v, their combination as computed; and the
    length of the longest row that has a weight.

    v is off by as many roundings of a term as there are weights, and one for each block of rows; `slack` times that is left to a
    checker. Where b is free the weights of the heavier class are multiplied by t < 1, the ratio of the masses, so that these are
    equal. t is never formed: g is concave with g(0) = 0, so that Σ C g of that class falls by a share of 1 - t at most, and the
    combination moves by (1 - t) Σ α_i‖x_i‖ at most. Which class is the heavier may be open.
    """
    above, gains, losses, lengths, count, *more = sums
    upper = value_above(plane, share, above, share)
    nothing = Optimum(0.0, upper, plane, np.zeros_like(v), 0.0)
    drift, by_class = Drift(0.0, 0.0, 0.0, 0.0), more
    if slack != 1:
        drift, by_class = Drift(*(up(x * (1 + share)) for x in more[:4])), more[4:]
    off = 2 * U * (count + blocks + 2 * bounds.SUM_BLOCK) * lengths * (1 + share)
    off = up(slack * (off + count * TINY * (longest + len(v) + 1.0)))
    total = down(down(gains * (1 - share)) - up(losses * (1 + share)))
    if not (np.isfinite(v).all() and math.isfinite(off + gains + losses + sum(drift))):
        return nothing
    surplus = shift = 0.0
    if by_class:
        masses, paid, weighted = by_class[:2], by_class[2:4], by_class[4:]
        surplus = _surplus(masses, share, drift)
        if not surplus < 1:
            return nothing
        most, least = ([up(mass * (1 + sign * share) + sign * drift.weights) for mass in masses] for sign in (1, -1))
        heavier = [k for k in (0, 1) if most[k] >= least[1 - k]]  # or may be
        total = down(total - up(surplus * up(max(paid[k] for k in heavier) * (1 + share))))
        shift = up(surplus * up(up(max(weighted[k] for k in heavier) * (1 + share)) + drift.lengths))
        drift = drift._replace(cost=drift.cost + abs(b) * drift.weights)
    if slack != 1:
        total -= drift.loss(bounds.length(plane - v), off, surplus)
    lower, v, off = dual_below(total, v, up(off + shift))
    return Optimum(lower, upper, plane, v, off)


def _surplus(masses: Sequence[float], share: float, drift: Drift) -> float:
    """1 - t at most, t ≤ 1 the mass of the lighter class over that of the heavier; 1 where nothing is known."""
    light, heavy = sorted(masses)
    if not down(heavy * (1 - share)) > 0:
        return 1.0
    moved = up(drift.weights / down(heavy * (1 - share)))
    surplus = up(1 - down(down(light * (1 - share)) / up(heavy * (1 + share))))
    return up(max(surplus, 0.0) + up(2 * moved)) if moved < 0.25 else 1.0


def value_above(plane: Array, square: float, losses: float, share: float) -> float:
    """What P is at most, where ½‖plane‖² and the sum of the losses are too small by these shares of them at most."""
    size = bounds.length(plane)
    value = up(up(0.5 * size * size * (1 + square)) + up(losses * (1 + share)))
    return value if value < math.inf else math.inf  # NaN is no bound


def dual_below(total: float, v: Array, error: float) -> tuple[float, Array, float]:
    """What D is at least where Σ C g is at least `total`, and v is off by `error`; v and that. Nothing, if α = 0 is better."""
    size = up(bounds.length(v) + error)
    lower = down(total - up(0.5 * size * size * (1 + 4 * U)))
    return (lower, v, error) if LEAST_WEIGHT <= lower < math.inf else (0.0, np.zeros_like(v), 0.0)


def constants_of(c: Certificate, which: Array) -> Array:
    """C_i for the rows of data that a certificate is about, whose classes are these."""
    assert c.C is not None
    given = c.sample_weight, c.class_weight
    sample, factors = (None if weights is None else np.array(weights, dtype=np.float64) for weights in given)
    return row_constants(c.C, sample, factors, which)


def row_constants(C: float, sample_weight: Array | None, class_weight: Array | None, which: Array) -> Array:
    """C_i = C · (s_i · f), f the weight of the class `which[i]`; each product is rounded, in this order."""
    c = np.ones(len(which)) if sample_weight is None else sample_weight.copy()
    with np.errstate(over="ignore"):
        if class_weight is not None:
            c *= class_weight[which]
        return np.asarray(float(C) * c)


def dense_slack(d: int, terms: Any, slack: float) -> Any:
    """`slack` for rows of so many terms. A checker may hold X as a dense array, where a row counts as a sum of more."""
    dense = d if d <= 2 * LONGEST_SUM else LONGEST_SUM + -(-d // LONGEST_SUM)
    return (2.5 + 1.01 * (dense + 5.0) / (terms + 5.0)).clip(min=slack)


def hash_of_weights(sample_weight: Array) -> str:
    """What names sample weights that are too many to be stored: the SHA-256 of their bytes as little-endian float64."""
    return hashlib.sha256(sample_weight.astype("<f8").tobytes()).hexdigest()


def parts_of(n: int, width: int = 1) -> list[slice]:
    """Some of n rows after the others, of which vectors, or blocks of so many, stay in the cache."""
    step = max(1, NUMBERS_IN_CACHE // width)
    return [slice(lo, min(lo + step, n)) for lo in range(0, n, step)]


def loss_above(loss: Loss, z: Array) -> Array:
    """What ℓ(z) is at most. 1 - z is rounded by a share u, its square by 3u."""
    if loss is Loss.LOGISTIC:
        return elementary.softplus_above(z)
    short = (1.0 - z).clip(min=0.0) * (1 + 2 * U)
    return short if loss is Loss.HINGE else short * short * (1 + 2 * U) + TINY


def paid_below(loss: Loss, alpha: Array, c: Array) -> Array:
    """What C g(α/C) is at least, for 0 ≤ α ≤ `most_weight`·C; 0 where α is.

    Squared hinge: α - α²/4C, of which the second part is rounded by 3u, and the difference by u. Logistic: C times the
    entropy of a = α/C, rounded down where it is below ½ and up where it is above, by 4u: the entropy is the less, the farther
    a is from ½.
    """
    if loss is Loss.HINGE:
        return 1.0 * alpha
    xp, used = namespace(alpha), alpha > 0
    share = alpha / xp.where(used, c, 1.0)
    if loss is Loss.SQUARED_HINGE:
        quarter = 0.25 * share * alpha * (1 + 4 * U) + TINY
        paid: Array = xp.where(used, (alpha - quarter) - (alpha + quarter) * (2 * U), 0.0)
        return paid
    q = xp.where(share <= 0.5, share * (1 - 4 * U), 1.0 - (share * (1 + 4 * U)).clip(max=1.0))
    paid = xp.where(used, c * elementary.entropy_below(q.clip(min=0.0)) * (1 - 4 * U), 0.0)
    return paid
