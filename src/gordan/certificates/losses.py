"""Which regularized loss is meant, and what a plane w, b and weights of the rows prove about its least value.

P(w, b) = ½‖w‖² + Σ C_i ℓ(y_i(x_i·w + b)), where ‖(w, b)‖ counts for a penalized intercept, is at least its minimum P*. With a
weight α_i for each row, between 0 and `most_weight`·C_i, D(α) = Σ C_i g(α_i/C_i) - ½‖Aᵀα‖² is at most P*; a free intercept
needs Σ y_i α_i = 0 besides. All bounds hold for the stored values as real numbers, for any α that is allowed, so that whoever
found w and α need not be believed. Rounding is bounded as in `margins`; u is 2⁻⁵³.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, namespace, relative_width
from gordan.certificates import bounds, elementary
from gordan.certificates.bounds import TINY, U, down, up
from gordan.certificates.data import Certificate
from gordan.certificates.margins import combined_with_error
from gordan.certificates.matrix import Matrix, Products
from gordan.certificates.problem import Problem
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept
from gordan.losses import Loss
from gordan.rows import LONGEST_SUM, nonzero

# Weights below this count as 0, and bounds below it are: products with them may be subnormal.
LEAST = 2.0**-900
# Numbers over rows that are worked on at a time, so that they stay in the cache.
BLOCK = 1 << 15


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
        """Why there is no such minimum; empty if there is one."""
        if not ((self.c >= 0) & np.isfinite(self.c)).all():
            return "C, or C times a weight, is negative or not finite"
        if self.intercept.grouped and not all((self.c[self.signs == side] > 0).any() for side in (1, -1)):
            return "all rows of a class have weight zero, so that no b is the best"
        return ""

    @ieee_floats()
    def enclose(self, w: Array, b: float, rows: Array, weights: Array, *, slack: float = 1.0, once: bool = False) -> Optimum:
        """The interval that w, b and the weights prove.

        The weights follow from w: α_i = C_i a(z_i) for the z_i as computed. For the hinge, a(z_i) is 1 or 0, and `rows` with
        their `weights` α are the exceptions. With a `slack` of `matrix.CLAIM` the interval holds the one that is found with sums
        in another order, or with the same values in other storage: what was claimed is found again. Scores are rounded `once`
        if that is wanted, and X is small enough for it.
        """
        products = Products.of(self.X, w)
        products = (products.rounded_once if once else None) or products
        plane, alpha = self.intercept.joined(products.w, b), self.alpha(products, b, rows, weights)
        share = 2 * bounds.SUM_BLOCK * U
        upper = value_above(plane, 4 * U + (slack - 1) * share, self._losses_above(products, b, slack), slack * share)
        drift = None if slack == 1 else self._drift(products, b, alpha, rows)
        lower, v, error = self._dual_below(alpha, plane, slack, drift)
        return Optimum(lower, upper, plane, v, error)

    # ---- from w and b -----------------------------------------------------------------------------------------------

    def _losses_above(self, products: Products, b: float, slack: float) -> float:
        """What Σ C ℓ is at most, before sums are rounded: ℓ falls, so that the lowest z that the enclosures allow counts."""
        wider = slack if slack == 1 or products.once else dense_slack(self.X.d, products.terms, slack)
        lo, _ = products.scores(b, self.signs, wider)
        terms = np.empty(len(lo))
        with np.errstate(over="ignore", invalid="ignore"):
            for part in parts_of(len(lo)):
                terms[part] = np.where(self.c[part] > 0, self.c[part] * loss_above(self.loss, lo[part]) * (1 + 4 * U) + TINY, 0.0)
            return bounds.near_sum(terms)

    # ---- from the weights -------------------------------------------------------------------------------------------

    def alpha(self, products: Products, b: float, rows: Array, weights: Array) -> Array:
        """The weights of the rows that w, b stand for: floats, allowed as they are, but for Σ y_i α_i = 0."""
        alpha = np.zeros(self.X.n)
        with np.errstate(over="ignore", invalid="ignore"):
            for part in parts_of(len(alpha)):
                z = (products.sums[part] + b) * self.signs[part]
                alpha[part] = self.c[part] * self.loss.weight(z)
        alpha[rows] = weights
        if self.loss.most_weight < math.inf:
            np.minimum(alpha, self.c * self.loss.most_weight, out=alpha)
        alpha[~((alpha >= LEAST) & (self.c > 0))] = 0.0  # NaN too
        return alpha

    def _drift(self, products: Products, b: float, alpha: Array, rows: Array) -> Drift:
        """How far off these weights the ones are that follow from sums in another order.

        Both z are within a radius R of the exact one, and a(z) falls: so the weights differ by C(a(z - 2R) - a(z + 2R)) at
        most, and for a library's exp by 8u of themselves. A weight a(z') instead of a(z) costs ℓ(z) + a(z')z - g(a(z')) = ℓ(z)
        - ℓ(z') - ℓ'(z')(z - z') ≤ |z - z'||a(z) - a(z')|. Near 1, where g is steep, a weight that is off by 8u changes g by
        300u, elsewhere by less than 64u(1 + |z|) of the weight.
        """
        lo, hi = products.scores(b, self.signs, 2.0)
        with np.errstate(over="ignore", invalid="ignore"):
            moved = self.c * (self.loss.weight(lo) - self.loss.weight(hi)) * (1 + 16 * U) + 16 * U * alpha
            moved[rows] = 0.0
            moved[self.c == 0] = 0.0
            used = np.flatnonzero(moved)
            delta, low, high = moved[used], lo[used], hi[used]
            size = np.maximum(np.abs(low), np.abs(high)) + 1.0
            rounded = alpha[used] * ((512 + 64 * size) * U)
            sizes = self.X.norms[used] + self.intercept.in_norm
            weights, lengths, paid, cost = (
                bounds.near_sum(part) * (1 + 4 * bounds.SUM_BLOCK * U)
                for part in (delta, delta * sizes, delta * size + rounded, delta * (high - low) + rounded)
            )
        return Drift(weights, lengths, paid, cost + abs(b) * weights if self.intercept.grouped else cost)

    def _dual_below(self, alpha: Array, plane: Array, slack: float, drift: Drift | None) -> tuple[float, Array, float]:
        """What D is at least for these weights, their combination, and its error; nothing better than α = 0, if that is better.

        Where b is free the weights of the heavier class are multiplied by t < 1, the ratio of the masses, so that these are
        equal. t is rational and never formed: g is concave with g(0) = 0, so that Σ C g of that class falls by a share of 1 -
        t at most, and the combination moves by (1 - t) Σ α_i‖x_i‖ at most.
        """
        paid = np.empty(len(alpha))
        with np.errstate(over="ignore", invalid="ignore"):
            for part in parts_of(len(alpha)):
                paid[part] = paid_below(self.loss, alpha[part], self.c[part])
            used = nonzero(alpha)
            v, error = combined_with_error(self.X, self.signs, used, alpha[used], self.intercept)
            if not (np.isfinite(v).all() and np.isfinite(paid).all() and math.isfinite(error)):
                return dual_below(-math.inf, v, 0.0)
            error, total = up(slack * error), sum_below(paid, slack)
            surplus, shift = 0.0, 0.0
            if self.intercept.grouped:
                sides, surplus = self._surplus(alpha, drift)
                if surplus >= 1:
                    return dual_below(-math.inf, v, 0.0)
                lost = max(up(surplus * up(max(0.0, -sum_below(-paid[side], slack)))) for side in sides)
                masses = (bounds.near_sum(alpha[side] * self.X.norms[side]) for side in sides)
                shift = up(surplus * up(max(masses) * (1 + 4 * slack * bounds.SUM_BLOCK * U)))
                total = down(total - lost)
            if drift is not None:
                total -= drift.loss(bounds.length(plane - v), error, surplus)
                shift = up(shift + up(surplus * drift.lengths))
        return dual_below(total, v, up(error + shift))

    def _surplus(self, alpha: Array, drift: Drift | None) -> tuple[list[Array], float]:
        """The rows of the heavier class, and 1 - t at most, where t ≤ 1 is the mass of the other over its mass; exact before
        rounding. Weights that drift by T in all add 2T over that mass at most, and either class may then be the heavier."""
        sides = [np.flatnonzero((self.signs == side) & (alpha > 0)) for side in (1, -1)]
        masses = [Fraction(m) * Fraction(2) ** e for m, e in (bounds.exact_sum(alpha[side]) for side in sides)]
        heavy = int(masses[1] > masses[0])
        if not masses[heavy]:
            return sides, 1.0
        surplus = bounds.enclosed(1 - masses[1 - heavy] / masses[heavy])[1]
        if drift is None:
            return [sides[heavy]], surplus
        share = drift.weights / bounds.enclosed(masses[heavy])[0]
        return sides, up(surplus + up(2 * share)) if share < 0.25 else 1.0


def value_above(plane: Array, square: float, losses: float, share: float) -> float:
    """What P is at most, where ½‖plane‖² and the sum of the losses are too small by these shares of them at most."""
    size = bounds.length(plane)
    value = up(up(0.5 * size * size * (1 + square)) + up(losses * (1 + share)))
    return value if value < math.inf else math.inf  # NaN is no bound


def dual_below(total: float, v: Array, error: float) -> tuple[float, Array, float]:
    """What D is at least where Σ C g is at least `total`, and v is off by `error`; v and that. Nothing, if α = 0 is better."""
    size = up(bounds.length(v) + error)
    lower = down(total - up(0.5 * size * size * (1 + 4 * U)))
    return (lower, v, error) if LEAST <= lower < math.inf else (0.0, np.zeros_like(v), 0.0)


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
    step = max(1, BLOCK // width)
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


def sum_below(values: Array, slack: float = 1.0) -> float:
    """What Σ values is at least; positive and negative ones are added up apart."""
    share = 2 * slack * bounds.SUM_BLOCK * U
    gains, losses = bounds.near_sum(np.maximum(values, 0.0)), bounds.near_sum(np.maximum(-values, 0.0))
    if not gains < math.inf:
        return -math.inf
    return down(down(gains * (1 - share)) - up(losses * (1 + share)))
