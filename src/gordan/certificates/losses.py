"""A regularized loss, and what a plane w, b and weights of the rows prove about its least value.

P(w, b) = ½‖w‖² + Σ C_i ℓ(y_i(x_i·w + b)), with ‖(w, b)‖ instead for a penalized intercept, is at least its minimum P*. With a
weight α_i between 0 and `most_weight`·C_i for each row, D(α) = Σ C_i g(α_i/C_i) - ½‖Aᵀα‖² is at most P*; a free intercept
requires Σ y_i α_i = 0 as well. All bounds hold for the stored values as real numbers and for every α that is allowed, so that w
and α may come from anywhere. Rounding is bounded as in `margins`; u is 2⁻⁵³.
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
from gordan.certificates.bounds import TINY, down, up
from gordan.certificates.data import Certificate
from gordan.certificates.margins import combined
from gordan.certificates.matrix import Matrix, Products, error
from gordan.certificates.problem import Problem
from gordan.floats import U, ieee_floats
from gordan.intercepts import Intercept
from gordan.losses import Loss
from gordan.rows import LONGEST_SUM, nonzero

# Smaller weights, and smaller lower bounds, are replaced by 0, since products with them may be subnormal.
MIN_WEIGHT = 2.0**-900
# How many numbers of a vector over the rows are processed at a time, so that they stay in the cache.
NUMBERS_IN_CACHE = 1 << 15


@dataclass(frozen=True, eq=False)
class Optimum:
    """An interval lower ≤ P* ≤ upper, proved by w, b and by weights whose combination is within `error` of v in the 2-norm.

    If planes were proved together, `rows` are those whose weights do not follow from w, b, and `weights` are these. For several
    classes w and v have one column for each, and the norm is the Frobenius norm.
    """

    lower: float
    upper: float
    w: Array
    v: Array
    error: float
    rows: Array = field(default_factory=lambda: np.empty(0, np.int64))
    weights: Array = field(default_factory=lambda: np.empty(0))

    @property
    def width(self) -> float:
        """The difference upper - lower, rounded up."""
        return up(self.upper - self.lower) if self.upper < math.inf else math.inf

    @property
    def relative_width(self) -> float:
        """The relative width (upper - lower)/upper."""
        return relative_width(self.lower, self.upper)

    @cached_property
    @ieee_floats()
    def distance(self) -> tuple[float, float]:
        """A lower and an upper bound on ‖w - v‖ for the v of the exact weights."""
        with np.errstate(over="ignore"):
            most = bounds.length((self.w - self.v) * (1 + 2 * U))
        return max(0.0, down(most * (1 - 2.0**-40) - self.error)), up(most + self.error)

    @cached_property
    @ieee_floats()
    def radius(self) -> float:
        """An upper bound on ‖w - w*‖.

        ½‖w - w*‖² + ½‖v - w*‖² ≤ G, since the minimum of P over b is 1-strongly convex in w, and -D is in v. So w* is in the
        ball about (w + v)/2 of radius √(G - ¼s²), s = ‖w - v‖, and its distance to w is at most s/2 more than this radius, which
        increases with s up to s = √(2G).
        """
        G = self.width
        if not math.inf > G:
            return math.inf
        s = min(self.distance[1], up(math.sqrt(2 * G)))
        return up(s / 2 + up(math.sqrt(max(0.0, up(G - down(s * s / 4 * (1 - 4 * U)))))))

    @cached_property
    @ieee_floats()
    def ball(self) -> tuple[Array, float]:
        """A centre m, midway between w and v, and a radius r with ‖m - w*‖ ≤ r.

        The v of the exact weights is within `error` of this one, which moves the centre by up to half of that. Each entry of m is
        rounded with a relative error of u.
        """
        if not self.width < math.inf:
            return np.zeros_like(self.v), math.inf
        m = 0.5 * self.w + 0.5 * self.v
        s, _ = self.distance
        rounded = 2 * U * bounds.length(m) + m.size * TINY
        r = math.sqrt(max(0.0, up(self.width - down(s * s / 4 * (1 - 4 * U)))))
        return m, up(up(r * (1 + 4 * U)) + up(self.error / 2 + rounded))


class Drift(NamedTuple):
    """Bounds on how far weights may be from those of a checker: Σ|Δα_i|, Σ|Δα_i|‖A_i‖, and the changes of Σ C g and P - D."""

    weights: float
    lengths: float
    paid: float
    cost: float

    def loss(self, apart: float, error: float, surplus: float) -> float:
        """Return an upper bound on how much smaller D may be for such weights.

        P - D = ½‖w - v‖² + Σ C(ℓ(z) + az - g(a)) - b Σ y_i α_i, where ‖w - v‖ is `apart`, up to `error`.
        """
        lengths = self.lengths * (apart + self.lengths + 2 * error)
        return (lengths + self.cost + surplus * self.paid) * (1 + 16 * U)


@dataclass(frozen=True, eq=False)
class Objective:
    """The function P for given data; `c` has the C_i of all rows, some of which may be 0.

    If b is free, which makes the origin of the rows arbitrary, X is centred (`Matrix.centred`). Intercepts are those for the rows
    as the user gave them, except where something else is said.
    """

    X: Matrix
    signs: Array
    loss: Loss
    c: Array
    intercept: Intercept = Intercept.FREE

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", self.X.centred if self.intercept.grouped else self.X)

    @staticmethod
    def of(problem: Problem, certificate: Certificate) -> Objective:
        """Return the objective that a certificate is about."""
        c, signs = certificate, problem.signs_for(certificate.classes)
        assert c.loss is not None
        weights = constants_of(c, (signs > 0).astype(np.intp))
        return Objective(problem.X, signs, Loss(c.loss), weights, Intercept(c.intercept))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of w."""
        return (self.X.d,)

    def infeasibility_reason(self) -> str:
        """Return why there is no such minimum; empty if there is one."""
        return infeasibility_reason(self.c, self.intercept, [self.signs == side for side in (1, -1)])

    @ieee_floats()
    def enclose(self, w: Array, b: float, rows: Array, weights: Array, *, slack: float = 1.0, once: bool = False) -> Optimum:
        """Return the interval that w, b and the weights prove.

        The weights follow from w: α_i = C_i a(z_i) for the z_i as computed. `rows` with their `weights` α are exceptions, which
        the hinge needs, since its a(z_i) is 1 or 0. With a `slack` of `matrix.CLAIM` the interval contains those that a checker
        may find with sums in another order, or with the same values in another storage. With `once`, each score is rounded only
        once, if X is small enough for that.
        """
        products = Products.of(self.X, w)
        products, b = (products.rounded_once if once else None) or products, self.X.inward(w, b)
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
            longest = float(np.max(self.X.norms[used], initial=0.0)) + self.intercept.column
        sums = [bounds.fsum([*each]) for each in zip(*parts, strict=True)]
        return proved_optimum(plane, b, v, sums, longest, 2 * slack * bounds.SUM_BLOCK * U, slack)

    def _enclosed(self, products: Products, b: float, part: slice, slack: float) -> RowScores:
        """Return the scores of the rows of a part."""
        terms = products.terms[part] if products.terms.ndim else products.terms
        radius = error(products.absolute[part] + abs(b), terms + 1.0)
        wider = slack if slack == 1 or products.once else dense_slack(self.X.d, terms, slack)
        return RowScores((products.sums[part] + b) * self.signs[part], radius, radius * wider)

    def alpha(self, products: Products, b: float, rows: Array, weights: Array) -> Array:
        """Return the weights that follow from w, b: floats, which are allowed as they are, except for Σ y_i α_i = 0.

        Here b is the intercept for the rows X.
        """
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
    """Return weights that a proof may use: at most `most_weight`·C, and 0 for those that are below MIN_WEIGHT or not finite."""
    xp = namespace(alpha)
    if loss.most_weight < math.inf:
        alpha = xp.minimum(alpha, c * loss.most_weight)
    return xp.where((alpha >= MIN_WEIGHT) & (alpha < math.inf) & (c > 0), alpha, 0.0)  # comparisons with NaN are false


class RowScores(NamedTuple):
    """Scores z = y(x·w + b) as computed, a bound on their error, and the error that a claim allows for."""

    z: Any
    radius: Any
    claimed: Any


def row_terms(
    loss: Loss, intercept: Intercept, scores: RowScores, y: Any, c: Any, alpha: Any, norms: Any, follows: Any | None
) -> tuple[Any, ...]:
    """Return the terms, for each row or for each row and label vector, whose sums `proved_optimum` needs.

    These are upper bounds on the losses (ℓ decreases, so the lowest z that is claimed counts), the positive and the negative
    parts of lower bounds on C g(α/C), the weights times the lengths of rows, and whether there is a weight. Unless `follows` is
    None, bounds follow on how far weights that follow from the scores may be from those of a checker (`Drift`). For a free
    intercept the weights, the gains, and the weights times lengths come last, each by class.

    These scores and those of a checker are within a radius R of the exact ones, and a(z) decreases, so that weights differ by at
    most C(a(z - 2R) - a(z + 2R)), and by a relative error of 8u for a library's exp. A weight a(z') instead of a(z) costs
    ℓ(z) + a(z')z - g(a(z')) = ℓ(z) - ℓ(z') - ℓ'(z')(z - z') ≤ |z - z'||a(z) - a(z')|. Near 1, where g is steep, a relative error
    of 8u of a weight changes g by 300u, elsewhere by less than 64u(1 + |z|) times the weight.
    """
    (z, radius, claimed), xp = scores, namespace(scores.z)
    above = xp.where(c > 0, c * loss_above(loss, z - claimed) * (1 + 4 * U) + TINY, 0.0)
    paid, counts = paid_below(loss, alpha, c), alpha > 0
    gains, weighted = paid.clip(min=0.0), alpha * xp.where(counts, norms, 0.0)
    terms: tuple[Any, ...] = above, gains, (-paid).clip(min=0.0), weighted + intercept.column * alpha, 0.0 * alpha + counts
    if follows is not None:
        low, high = z - 2.0 * radius, z + 2.0 * radius
        moved = c * (loss.weight(low) - loss.weight(high)) * (1 + 16 * U) + 16 * U * alpha
        moved = xp.where(follows & (c > 0), moved, 0.0)
        size = xp.maximum(abs(low), abs(high)) + 1.0
        rounded = alpha * ((512 + 64 * size) * U)
        drifts = moved, moved * (norms + intercept.column), moved * size + rounded, moved * (high - low) + rounded
        terms += tuple(xp.where(moved == 0, 0.0, drift) for drift in drifts)
    if intercept.grouped:
        terms += tuple(part * own for part in (alpha, gains, weighted) for own in (y > 0, y < 0))
    return terms


def proved_optimum(
    plane: Array, b: float, v: Array, sums: Sequence[float], longest: float, share: float, slack: float, blocks: int = 0
) -> Optimum:
    """Return the interval that the sums of `row_terms` prove, whose relative errors are at most `share`.

    v is the combination of the rows as computed, and `longest` the length of the longest row with a weight. A term of v goes
    through as many roundings as there are weights, and one for each block of rows; a claim allows for `slack` times their error.
    If b is free, the weights of the heavier class are multiplied by the ratio t ≤ 1 of the masses, which makes these equal. t is
    never computed: g is concave with g(0) = 0, so that Σ C g of that class decreases by a share of at most 1 - t, and the
    combination moves by at most (1 - t) Σ α_i‖x_i‖. It may be open which class is the heavier one.
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
    """Return an upper bound on 1 - t, where t ≤ 1 is the mass of the lighter class over that of the heavier; 1 if unknown."""
    light, heavy = sorted(masses)
    if not down(heavy * (1 - share)) > 0:
        return 1.0
    moved = up(drift.weights / down(heavy * (1 - share)))
    surplus = up(1 - down(down(light * (1 - share)) / up(heavy * (1 + share))))
    return up(max(surplus, 0.0) + up(2 * moved)) if moved < 0.25 else 1.0


@ieee_floats()
def of_zero(X: Matrix, c: Array, loss_at_zero: float, shape: tuple[int, ...]) -> Optimum:
    """Return the interval from 0 to the value of w = 0, b = 0, which needs no pass over X if its norms are known.

    α = 0 proves the lower end. The factor is far more than the rounding of a checker. `shape` is that of the plane.
    """
    value = (bounds.near_sum(c) * loss_at_zero + len(c) * TINY) * (1 + 2.0**-36)
    return Optimum(0.0, value if np.isfinite(X.norms).all() else math.inf, np.zeros(shape), np.zeros(shape), 0.0)


def value_above(plane: Array, square: float, losses: float, share: float) -> float:
    """Return an upper bound on P, where `square` and `share` bound the relative errors of ½‖plane‖² and of the losses."""
    size = bounds.length(plane)
    value = up(up(0.5 * size * size * (1 + square)) + up(losses * (1 + share)))
    return value if value < math.inf else math.inf  # NaN is no bound


def dual_below(total: float, v: Array, error: float) -> tuple[float, Array, float]:
    """Return a lower bound on D for Σ C g ≥ total and a v with this `error`, and both; those of α = 0 if that is better."""
    size = up(bounds.length(v) + error)
    lower = down(total - up(0.5 * size * size * (1 + 4 * U)))
    return (lower, v, error) if MIN_WEIGHT <= lower < math.inf else (0.0, np.zeros_like(v), 0.0)


def constants_of(c: Certificate, which: Array) -> Array:
    """Return the C_i of a certificate for rows of these classes."""
    assert c.C is not None
    given = c.sample_weight, c.class_weight
    sample, factors = (None if weights is None else np.array(weights, dtype=np.float64) for weights in given)
    return row_constants(c.C, sample, factors, which)


def row_constants(C: float, sample_weight: Array | None, class_weight: Array | None, which: Array) -> Array:
    """Return C_i = C · (s_i · f) with the weight f of the class `which[i]`; the products are rounded in this order."""
    c = np.ones(len(which)) if sample_weight is None else sample_weight.copy()
    with np.errstate(over="ignore"):
        if class_weight is not None:
            c *= class_weight[which]
        return np.asarray(float(C) * c)


def dense_slack(d: int, terms: Any, slack: float) -> Any:
    """Return the slack for rows with this number of terms: a checker may store X as a dense array, whose sums have more terms."""
    dense = d if d <= 2 * LONGEST_SUM else LONGEST_SUM + -(-d // LONGEST_SUM)
    return (2.5 + 1.01 * (dense + 5.0) / (terms + 5.0)).clip(min=slack)


def hash_of_weights(sample_weight: Array) -> str:
    """Return the SHA-256 of sample weights as little-endian float64, which stands for weights that are too many to be stored."""
    return hashlib.sha256(sample_weight.astype("<f8").tobytes()).hexdigest()


def parts_of(n: int, width: int = 1) -> list[slice]:
    """Return slices of n rows for which a vector over the rows, or a block of `width` vectors, stays in the cache."""
    step = max(1, NUMBERS_IN_CACHE // width)
    return [slice(lo, min(lo + step, n)) for lo in range(0, n, step)]


def loss_above(loss: Loss, z: Array) -> Array:
    """Return an upper bound on ℓ(z). The relative error of 1 - z is u, that of its square 3u."""
    if loss is Loss.LOGISTIC:
        return elementary.softplus_above(z)
    short = (1.0 - z).clip(min=0.0) * (1 + 2 * U)
    return short if loss is Loss.HINGE else short * short * (1 + 2 * U) + TINY


def paid_below(loss: Loss, alpha: Array, c: Array) -> Array:
    """Return a lower bound on C g(α/C) for 0 ≤ α ≤ `most_weight`·C; 0 where α is 0.

    Squared hinge: α - α²/4C; the relative error of the second term is 3u, that of the difference u. Logistic: C times the
    entropy of a = α/C, where a is rounded down if it is below ½ and up if it is above, by 4u, since the entropy decreases with
    the distance of a from ½.
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
