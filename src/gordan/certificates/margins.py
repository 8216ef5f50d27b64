"""The largest margin γ* of data, and the bounds on it that a plane w and weights p prove.

Bounds are enclosures in floats. What these leave open is decided in exact arithmetic, so that a bracket is accepted if and only
if its w and p prove it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, namespace
from gordan.certificates import bounds, exact
from gordan.certificates.data import Certificate
from gordan.certificates.matrix import Groups, Matrix, Products, exact_score, near_score
from gordan.certificates.problem import Problem
from gordan.floats import U, ieee_floats
from gordan.geometry import Ball
from gordan.geometry.sets import fill_level
from gordan.intercepts import Intercept
from gordan.rows import host, nonzero, over_vector

# The largest number of rows whose exact scores are computed if the enclosures of the lowest scores are wide.
MAX_EXACT_ROWS = 4096
# Rows near the lowest score are looked at alone if they are at most one in so many; otherwise, block by block among the others.
FEW_CLOSE = 8
# The largest number of cells of X for which a bracket is claimed in exact arithmetic if floats leave it wide.
MAX_SHARPENED = 1 << 17
# Smaller perturbations would be lost to underflow.
MIN_NOISE = 2.0**-900
# Enclosures of the margin with at most this relative width are not refined.
NARROW_WIDTH = 1e-9


class RowFacts(NamedTuple):
    """The signs and the weights c of the rows, and the rows of each group, where the blocks of X are."""

    signs: Any
    c: Any
    groups: list[Any]


@dataclass(frozen=True, eq=False)
class Margin:
    """The largest margin γ* = max_w min_{p∈P} p·Aw/‖w‖_q of data X, y, with 1/norm + 1/q = 1.

    P is the simplex, with half of the mass in each class if the intercept is free. Rows of weight c_i = 0 are left out
    (`weights`, all 1 if None), and with a `nu` p_i ≤ c_i/(νΣc). The rows of A are y_i x_i; with a penalized intercept they are
    y_i (x_i, 1), and (w, b) takes the place of w.

    With `robust` ε > 0 every x_i may be moved by any δ with ‖δ‖_s ≤ ε, s = `robust_norm` (1, 2 or ∞). Then p·Aw loses ε‖w‖_r,
    1/r + 1/s = 1, and γ* may be negative, in which case it counts as 0. Since max_δ δ·w = ε‖w‖_r, every such δ gives the upper
    bound ‖Aᵀp - δ‖₂.

    A p may be on the host or where the blocks of X are, which is where sums over its entries are made.
    """

    X: Matrix
    signs: Array
    intercept: Intercept = Intercept.FREE
    norm: float = 2.0
    nu: float | None = None
    weights: Array | None = None
    robust: float = 0.0
    robust_norm: float = 2.0

    @staticmethod
    def of(problem: Problem, certificate: Certificate) -> Margin:
        """Return the margin that a certificate is about."""
        c = certificate
        weights = None if c.sample_weight is None else np.array(c.sample_weight, dtype=np.float64)
        return Margin(
            problem.X, problem.signs_for(c.classes), Intercept(c.intercept), c.norm, c.nu, weights, c.robust, c.robust_norm
        )

    @cached_property
    def c(self) -> Array:
        """The weights c_i of the rows."""
        return np.broadcast_to(1.0, self.X.n) if self.weights is None else self.weights

    @cached_property
    def groups(self) -> list[Array]:
        """The groups of rows over which p has a fixed mass: all rows, or the rows of each class if the intercept is free."""
        return self.intercept.groups(self.signs)

    @cached_property
    def in_place(self) -> RowFacts:
        """What is known of the rows, where the blocks of X are."""
        place = self.X.storage.to_blocks
        signs = place(self.signs)
        return RowFacts(signs, place(self.c), self.groups if signs is self.signs else self.intercept.groups(signs))

    def infeasibility_reason(self) -> str:
        """Return why no such margin is defined, or an empty string if one is."""
        if not self.norm >= 1:
            return f"its norm is {self.norm}, below 1"
        if self.weights is not None and not ((self.c >= 0) & np.isfinite(self.c)).all():
            return "a sample weight is negative or not finite"
        if self.nu is not None and not (0 < self.nu <= 1 and self._has_required_mass(self.in_place.c)):
            return f"nu is {self.nu}, for which no p is allowed"
        if not ((self.robust == 0 or MIN_NOISE <= self.robust < math.inf) and self.robust_norm in (1, 2, math.inf)):
            return f"its perturbations, of size {self.robust} in the {self.robust_norm}-norm, are of an unknown norm or size"
        if self.robust > 0 and (self.norm != 2 or self.nu is not None or self.intercept.in_norm):
            return "perturbations are only allowed with the 2-norm, without nu and without a penalized intercept"
        return ""

    def allows(self, p: Any) -> bool:
        """Return whether p, scaled to the mass it must have, is in P; decided exactly."""
        p, c = self.X.storage.to_blocks(p), self.in_place.c
        if not (p.min() >= 0 and p.max() < math.inf) or (self.weights is not None and (p[c == 0] > 0).any()):
            return False
        return self.nu is None or (bool((p <= c).all()) and self._has_required_mass(p))

    def _has_required_mass(self, p: Any) -> bool:
        """Return whether p has a mass of at least νΣc/(number of groups) in each group; decided exactly."""
        assert self.nu is not None
        _, c, groups = self.in_place
        return all(bounds.reaches(p[group], c, self.nu, len(groups)) for group in groups)

    # ---- from w -----------------------------------------------------------------------------------------------------

    @ieee_floats()
    def lower(self, w: Array, b: float, *, exactly: bool = False, slack: float = 1.0) -> float:
        """Return a lower bound on γ*: the minimum of p·Aw over P divided by ‖w‖_q, or 0 if nothing better is proved.

        A free b does not matter: the minimum is half the sum of the two classes' lowest y_i x_i·w. If the enclosures of the
        lowest scores are wide, or with `exactly`, these scores are computed in exact arithmetic. The radius of the enclosures is
        multiplied by `slack` (see `matrix.CLAIM`).
        """
        products, b = Products.of(self.X, w, in_place=True), self._b_in_norm(b)
        length = self._length_bound(products, b)
        if not 0 < length < math.inf:
            return 0.0
        lows = (self._lowest_scores if self.nu is None else self._lowest_tail_means)(products, b, exactly, slack)
        margin = bounds.down(math.fsum(bounds.down(low / len(lows)) for low in lows))
        if self.robust > 0:
            margin = bounds.down(margin - bounds.up(self.robust * self._perturbation_norm(np.abs(products.w), dual=True)))
        return max(0.0, bounds.down(margin / length))

    def _perturbation_norm(self, size: Array, *, dual: bool) -> float:
        """Return an upper bound on ‖x‖_s for |x| = size, where s is the norm of the perturbations, or on the norm dual to it."""
        return bounds.norm_bound(size, 2 if self.robust_norm == 2 else math.inf, dual=dual == (self.robust_norm > 1))

    def _b_in_norm(self, b: float) -> float:
        """Return b if it counts in the norm, else 0."""
        return b if self.intercept.in_norm else 0.0

    def _length_bound(self, products: Products, b: float) -> float:
        """Return an upper bound on ‖w‖_q, or on ‖(w, b)‖_q if b counts in the norm."""
        if self.norm == 2 and not self.intercept.in_norm:
            return products.length
        own = b / (self.intercept.column or 1)  # b is 0 where it does not count
        return bounds.norm_bound(np.abs(np.append(products.w, own)), self.norm, dual=True)

    def _lowest_scores(self, products: Products, b: float, exactly: bool, slack: float) -> list[float]:
        """Return a lower bound on the lowest score of each group; [0.0] if a group has no rows."""
        groups, signs = self._groups, self.in_place.signs
        ends = products.ends(b, signs, groups, slack)
        if any(math.isinf(low) and low > 0 for low, _ in ends):
            return [0.0]
        if not _narrow(ends):
            close = np.sort(np.concatenate(products.near([hi for _, hi in ends], b, signs, groups, slack)))
            products = products.sharpened(close)
            # the row with the least lo is among them, since the lo of the others are above its hi
            ends = products.ends(b, signs, groups, slack, close if FEW_CLOSE * len(close) <= self.X.n else None)
        if exactly or not _narrow(ends):
            near = products.near([hi for _, hi in ends], b, signs, groups, slack)
            return [self._refined_low(products, rows, low, b) for rows, (low, _) in zip(near, ends, strict=True)]
        return [low for low, _ in ends]

    @cached_property
    def _groups(self) -> Groups:
        """The group of each row, without the rows of weight 0, where the blocks of X are."""
        group = (self.signs < 0).astype(np.int8) if self.intercept.grouped else None
        if self.weights is not None:
            group = np.where(self.weights > 0, 0 if group is None else group, -1)
        return Groups(1 + self.intercept.grouped, None if group is None else self.X.storage.to_blocks(group))

    @property
    def _weighted_groups(self) -> list[Array]:
        """The rows of each group, without the rows of weight 0."""
        return self.groups if self.weights is None else [group[self.weights[group] > 0] for group in self.groups]

    def _refined_low(self, products: Products, close: Array, low: float, b: float) -> float:
        """Return a lower bound on the scores of a group from the exact scores of its rows `close` to the lowest one.

        The bound is `low`, which is known, if these rows are too many.
        """
        if len(close) > MAX_EXACT_ROWS:
            return low
        rows = self.X.storage.each_row(close)
        return min(_rounded_score(row, products.w, b, int(self.signs[i]))[0] for i, *row in rows)

    def _lowest_tail_means(self, products: Products, b: float, exactly: bool, slack: float) -> list[float]:
        """Return for each group a lower bound on the mean of its lowest scores, filled up to the caps until it has its mass."""
        assert self.nu is not None
        mass = bounds.down(self.nu * bounds.near_bounds(self.in_place.c)[0] / len(self.groups))
        lows, width = self._tail_means(products, b, slack, mass)
        # narrower enclosures move a mean by less than the width of the widest one
        if exactly or not (width <= NARROW_WIDTH * sum(lows) or sum(lows) + len(lows) * width <= 0):
            lows, _ = self._tail_means(products.sharpened(), b, slack, mass)
        return lows

    def _tail_means(self, products: Products, b: float, slack: float, mass: float) -> tuple[list[float], float]:
        """Return a lower bound on the tail mean of each group, and the width of the widest enclosure of a score."""
        signs, c, groups = self.in_place
        lo = namespace(products.sums).empty_like(products.sums)

        def keep(part: slice, low: Any, high: Any) -> float:
            lo[part] = low
            return float((high - low).max())

        width = max(products.each(keep, b, signs, slack))
        return [_tail_lower(lo[group], c[group], mass) for group in groups], width

    @ieee_floats()
    def proves_lower(self, lower: float, w: Array, b: float) -> bool:
        """Return whether w proves γ* ≥ lower > 0; decided in exact arithmetic, unless floats show that it does not."""
        entries, e = exact.whole(np.append(w, self._b_in_norm(b)))
        unit = Fraction(lower) * Fraction(2) ** e

        def enough(least: Fraction) -> bool:
            """Return whether a minimum of p·Aw of `least` proves the bound: least - ε‖w‖_r ≥ lower ‖w‖_q."""
            if self.robust > 0 and self.robust_norm != 2:  # ‖w‖_r is rational
                size = max(map(abs, entries)) if self.robust_norm == 1 else sum(map(abs, entries))
                least -= Fraction(self.robust) * size * Fraction(2) ** e
            total = unit + (Fraction(self.robust) * Fraction(2) ** e if self.robust_norm == 2 else 0)
            return least > 0 and bounds.norm_at_most(entries, least / total, self.norm, dual=True)

        _, hi = Products.of(self.X, w).scores(self._b_in_norm(b), self.signs)
        most = bounds.up(sum(mean for _, mean in self._tail_uppers(hi)) / len(self.groups))
        if math.isfinite(most) and not enough(Fraction(most)):
            return False
        least = self.exact_least(w, b)
        return least is not None and enough(least)

    def exact_least(self, w: Array, b: float) -> Fraction | None:
        """Return the minimum of p·Aw over P as a fraction; None if a group has no row of positive weight.

        Exact scores are computed only for the rows that may be among the lowest ones.
        """
        b = self._b_in_norm(b)
        lo, hi = Products.of(self.X, w).scores(b, self.signs)
        groups = self._weighted_groups
        if any(not len(group) for group in groups):
            return None
        parts = [group[lo[group] <= level] for group, (level, _) in zip(groups, self._tail_uppers(hi), strict=True)]
        return sum((self._exact_lowest(rows, w, b) for rows in parts), Fraction(0)) / len(groups)

    def _tail_uppers(self, hi: Array) -> list[tuple[float, float]]:
        """Return `_tail_upper` for each group, for scores that are at most `hi`."""
        # in units in which the caps are c; a mass of 0 stands for the lowest score alone, without caps
        mass = 0.0 if self.nu is None else bounds.up(self.nu * bounds.sum_bounds(self.c)[1] / len(self.groups))
        return [_tail_upper(hi[group], self.c[group], mass) for group in self._weighted_groups]

    def _exact_lowest(self, rows: Array, w: Array, b: float) -> Fraction:
        """Return the lowest score of these rows, or with nu the mean of the lowest ones up to the mass of a group, exactly."""
        scores, e = exact.scores(self.X, rows, w, b, self.signs)
        unit = Fraction(2) ** e
        if self.nu is None:
            return min(scores) * unit
        (caps, f), (total, g) = exact.whole(self.c[rows]), bounds.multiply(bounds.exact_sum(self.c), bounds.dyadic(self.nu))
        low = min(f, g)  # masses are integers in units of 2^low / groups
        mass = left = total << (g - low)
        found = 0
        for score, cap in sorted(zip(scores, caps, strict=True)):
            part = min((cap << (f - low)) * len(self.groups), left)
            found, left = found + part * score, left - part
        return Fraction(found, mass) * unit

    # ---- from p -----------------------------------------------------------------------------------------------------

    @ieee_floats()
    def upper(self, p: Any, *, slack: float = 1.0) -> float:
        """Return an upper bound on γ* from p ≥ 0 of any mass: ‖Aᵀp‖_norm divided by that mass; ∞ if p is not allowed.

        With a free intercept each class is normalized to a mass of ½. With nu, p_i ≤ c_i is needed and a mass of at least νΣc
        (half of it in each class); scaling p down to exactly that mass then keeps it under its caps. `slack` is as in `lower`.
        """
        p = self.X.storage.to_blocks(p)
        q = self._normalized(p) if self.allows(p) else None
        if q is None:
            return math.inf
        centre, error = combined_with_error(self.X, self.in_place.signs, *q, self.intercept)
        if not np.isfinite(centre).all():
            return math.inf
        if self.robust > 0:
            return self._distance_bound(centre, slack * error)
        size = np.abs(centre)
        length = self.X.remembered(f"{self.norm}-norm", size, lambda: bounds.norm_bound(size, self.norm, dual=False))
        return bounds.up(length + bounds.up(slack * error * self._norm_ratio(len(size))))

    def _norm_ratio(self, d: int) -> float:
        """Return an upper bound on the norm of d entries whose 2-norm is 1: 1, or a power of d for norms below 2."""
        return 1.0 if self.norm >= 2 else d ** (1 / self.norm - 0.5) * (1 + 1e-12)

    def _distance_bound(self, centre: Array, error: float) -> float:
        """Return an upper bound on the 2-norm distance to the perturbations {‖δ‖_s ≤ ε} of any point within `error` of `centre`.

        `error` is in the 2-norm. The bound is 0 if every such point is a perturbation.
        """
        size = np.abs(centre)
        most = bounds.up(error * (1 if self.robust_norm > 1 else bounds.up(math.sqrt(len(size)))))  # ‖·‖_∞ ≤ ‖·‖₂, ‖·‖₁ ≤ √d‖·‖₂
        if bounds.up(self._perturbation_norm(size, dual=False) + most) <= self.robust:
            return 0.0
        rest = centre - self._allowed_perturbation(Ball(len(centre), self.robust_norm, self.robust).project(centre))
        return bounds.up(bounds.up(bounds.length(rest) * (1 + 2 * U)) + error)

    def _allowed_perturbation(self, delta: Array) -> Array:
        """Return a vector near δ that is proved to be a perturbation: ‖δ‖_s ≤ ε."""
        size = self._perturbation_norm(np.abs(delta), dual=False)
        return delta if size <= self.robust else delta * (bounds.down(self.robust / size) * (1 - 4 * U))

    def _normalized(self, p: Any) -> tuple[Any, Any] | None:
        """Return the rows of positive weight, and these weights normalized to a total mass of 1; None if a group has no weight.

        The weights are where the blocks of X are. The normalized ones have a relative error of at most (SUM_BLOCK + 4)u.
        """
        rows = nonzero(p)
        q, groups = p[rows], self.intercept.groups(self.in_place.signs[rows])
        for group in groups:
            part = q[group]
            if not len(part):
                return None
            # only ratios within a group matter; without this scaling a mass may overflow and its reciprocal become 0
            positive, part = part > 0, _divided(part, float(part.max()))
            tiny = positive & (part < bounds.TINY)  # 0 included, if the scaling underflowed
            if self.nu is not None and tiny.any():
                return None  # without these weights, the others may exceed their caps
            part[tiny] = 0.0
            q[group] = part * (1 / (bounds.near_sum(part) * len(groups)))
        return rows, q

    def without_negligible(self, p: Array) -> Array:
        """Return p without weights that are negligible beside the largest of their group.

        `upper` leaves these out, so a certificate must not have them either.
        """
        if np.min(p[nonzero(p)], initial=math.inf) >= 2.0**-1000 * np.max(p):
            return p
        kept = p.copy()
        for group in self.groups:
            size = math.frexp(float(np.max(p[group], initial=0.0)))[1]
            kept[group[np.ldexp(p[group], -size) < bounds.TINY]] = 0.0
        return kept

    @ieee_floats()
    def proves_upper(self, upper: float, p: Array) -> bool:
        """Return whether p proves γ* ≤ upper, decided in exact arithmetic unless floats show that it does not.

        What floats prove depends on the storage and on the order of summation; the answer does not.
        """
        p = self.X.storage.to_blocks(p)
        if upper < 0 or not self.allows(p):
            return False
        if self.robust > 0:
            return self._proves_distance(upper, p)
        q = self._normalized(p)
        if q is not None:
            centre, error = combined_with_error(self.X, self.in_place.signs, *q, self.intercept)
            if np.isfinite(centre).all() and math.isfinite(error):
                entries, e = exact.whole(centre)
                most = (Fraction(upper) + Fraction(error * self._norm_ratio(len(centre)) * (1 + 1e-12))) / Fraction(2) ** e
                if not bounds.norm_at_most(entries, most, self.norm, dual=False):
                    return False
        if (combination := self.exact_combination(p)) is None:
            return False
        entries, unit = combination
        return bounds.norm_at_most(entries, Fraction(upper) / unit, self.norm, dual=False)

    def _proves_distance(self, upper: float, p: Array) -> bool:
        """Return whether p proves γ* ≤ upper under perturbations, by the exact distance of Aᵀp to {‖δ‖_s ≤ ε}.

        For s = 2 the distance is ‖Aᵀp‖₂ - ε. For s = ∞ the size of every entry is reduced by ε, but not below 0. For s = 1 the
        nearest perturbation reduces the largest entries to a common level, which leaves min(|entry|, level).
        """
        if (combination := self.exact_combination(p)) is None:
            return False
        entries, unit = combination
        epsilon, most = Fraction(self.robust) / unit, Fraction(upper) / unit
        if self.robust_norm == 2:
            return bounds.norm_at_most(entries, epsilon + most, 2, dual=False)
        low = epsilon.denominator  # sizes and noise are integers in units of unit/low
        sizes, noise = sorted((abs(m) * low for m in entries), reverse=True), epsilon.numerator
        if self.robust_norm == 1:
            level = max([Fraction(0), *(Fraction(total - noise, k) for k, total in enumerate(accumulate(sizes), 1))])
            above = sum(size > level for size in sizes)
            square = above * level**2 + sum(size * size for size in sizes[above:])
        else:
            square = Fraction(sum((size - noise) ** 2 for size in sizes if size > noise))
        return square <= (most * low) ** 2

    def exact_combination(self, p: Any) -> tuple[list[int], Fraction] | None:
        """Return integers m and a fraction f with Aᵀp = m·f exactly, for p normalized in each group.

        Only columns that some row of positive weight has an entry in are included. None if a group has no weight.
        """
        p, sums, masses = host(p), [], []
        for group in self.groups:
            rows = group[p[group] > 0]
            weights, _ = exact.whole(p[rows])  # only their ratios matter
            if not weights:
                return None
            masses.append(sum(weights) * len(self.groups))
            signed = list(map(mul, weights, self.signs[rows].tolist()))
            sums.append(exact.combination(self.X, rows, signed, constant=self.intercept.column))
        whole = math.prod(masses)
        shares = [(whole // mass, total) for mass, total in zip(masses, sums, strict=True)]
        columns = {column for total in sums for column in total}
        totals = [bounds.add([(m * share, e) for share, total in shares for m, e in [total.get(j, (0, 0))]]) for j in columns]
        entries, e = bounds.common_exponent(totals)
        return entries, Fraction(2) ** e / whole

    # ---- both, exactly ----------------------------------------------------------------------------------------------

    @ieee_floats()
    def sharpened(self, w: Array | None, b: float, p: Array | None, lower: float, upper: float) -> tuple[float, float]:
        """Return the bracket that w and p prove in exact arithmetic, or the given one if that is not worth it or not supported.

        For norms between 2 and ∞ the bounds use ‖w‖_q ≤ ‖w‖₁ and ‖Aᵀp‖_norm ≤ ‖Aᵀp‖₂.
        """
        if self.X.n * self.X.d > MAX_SHARPENED or self.nu is not None or self.robust > 0 or self.norm < 2:
            return lower, upper
        if w is not None:
            lower = max(lower, self.exact_lower(w, b))
        return lower, upper if p is None or not self.allows(p) else min(upper, self.exact_upper(p))

    def exact_lower(self, w: Array, b: float) -> float:
        """Return a lower bound on γ* from w in exact arithmetic, rounded down to a float; 0 if w proves none."""
        least = self.exact_least(w, b)
        entries, e = exact.whole(np.append(w, self._b_in_norm(b)))
        if least is None or least <= 0 or not any(entries):
            return 0.0
        least /= Fraction(2) ** e
        if self.norm == 2:
            return bounds.enclosed(least**2 / sum(m * m for m in entries), root=True)[0]
        return bounds.enclosed(least / sum(map(abs, entries)))[0]

    def exact_upper(self, p: Array) -> float:
        """Return an upper bound on γ* from p in exact arithmetic, rounded up to a float; infinite if p proves none."""
        if (combination := self.exact_combination(p)) is None:
            return math.inf
        entries, unit = combination
        if math.isinf(self.norm) or sum(map(bool, entries)) <= 1:
            return bounds.enclosed(max(map(abs, entries), default=0) * unit)[1]
        return bounds.enclosed(sum(m * m for m in entries) * unit**2, root=True)[1]


def combined_with_error(X: Matrix, signs: Any, rows: Any, q: Any, intercept: Intercept) -> tuple[Array, float]:
    """Return Aᵀq as computed for weights q of these rows, and a bound on its distance to the combination with exact weights.

    The distance is in the 2-norm. Each q_i has a relative error of at most (SUM_BLOCK + 4)u, and a column is a sum of at most k
    products, where k is the number of rows with weight. So with γ as in `matrix.error` an entry is off by at most γ Σ q_i|x_ij|,
    where γ counts k + SUM_BLOCK + 4 roundings, and the vector by at most γ Σ q_i‖x_i‖. Norms above 2 are no larger. Vectors over
    rows are where the blocks of X are.
    """
    if not q.all():
        rows, q = rows[q != 0], q[q != 0]
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = (X.norms_in_place if len(rows) == X.n else X.norms_in_place[rows]) + float(intercept.column)
        total = bounds.near_sum(q * sizes)
        relative = 2 * U * (len(rows) + 2 * bounds.SUM_BLOCK)  # twice what is needed, since `total` is rounded as well
        # underflow of a weight, and of a product
        lost = len(rows) * bounds.TINY * ((float(sizes.max()) if len(rows) else 0.0) + X.d + 1.0)
    return combined(X, signs, rows, q, intercept), relative * total + lost


def combined(X: Matrix, signs: Any, rows: Any, q: Any, intercept: Intercept) -> Array:
    """Return Aᵀq as computed in float64, for nonzero weights q of these rows."""
    whole, xp = len(rows) == X.n, namespace(q)
    signed = q * (signs if whole else signs[rows])
    over_all = signed if whole else xp.zeros(X.n, dtype=q.dtype, device=q.device)
    if not whole:
        over_all[rows] = signed
    # what tells combinations apart, in as few numbers as possible; the two kinds are kept apart, since their keys may be equal
    most = 2 * len(rows) > X.n
    kind, key = ("combination", over_all) if most else ("combination of rows", xp.concatenate((rows, signed)))
    with np.errstate(over="ignore", invalid="ignore"):
        centre: Array = X.remembered(kind, key, lambda: X.combination(over_all, rows))
        return intercept.combined(centre, float(signed.sum()))


@ieee_floats()
def first_not_positive(products: Products, b: float, signs: Any) -> int | None:
    """Return a row with y_i(x_i·w + b) ≤ 0, the first that is found, or None if every score is positive; decided exactly.

    The signs are where the products are.
    """

    def doubtful(part: slice, lo: Any, hi: Any) -> tuple[Any, Any]:
        below = nonzero(lo <= 0)
        return below + part.start, below[hi[below] < 0][:1] + part.start

    doubted, wrong = zip(*products.each(doubtful, b, signs), strict=True)
    for found in wrong:
        if len(found):
            return int(found[0])
    rows = np.concatenate([*map(host, doubted)])
    if not len(rows):
        return None
    products = products.sharpened(rows)
    lo, hi = map(host, products.scores(b, signs, part=rows))
    rows, hi = rows[lo <= 0], hi[lo <= 0]
    for (i, *row), high in zip(products.X.storage.each_row(rows), hi.tolist(), strict=True):
        if high < 0 or _rounded_score(row, products.w, b, int(signs[i]))[1] <= 0:
            return i
    return None


def _rounded_score(row: Sequence[Array], w: Array, b: float, sign: int) -> tuple[float, float]:
    """Return a float just below y_i(x_i·w + b), and a number with the sign of that score."""
    score = near_score(row, w, b, sign)
    if not math.isnan(score):
        return bounds.down(score), score
    m, e = exact_score(row, w, b, sign)
    return bounds.round_down(m, e), float((m > 0) - (m < 0))


def _narrow(ends: list[tuple[float, float]]) -> bool:
    """Return whether the enclosures (low, high) of the lowest scores are narrow relative to their sum."""
    lows = sum(low for low, _ in ends)
    return sum(high for _, high in ends) - lows <= NARROW_WIDTH * lows


def _tail_upper(hi: Array, c: Array, mass: float) -> tuple[float, float]:
    """Return a level and an upper bound on min Σt_i s_i / mass over 0 ≤ t_i ≤ c_i, Σt = mass, for scores s ≤ hi.

    The rows with hi up to the level have at least this mass, so that rows whose scores are above it do not matter. If the mass
    is 0, both are the lowest hi. Infinite if floats do not decide.
    """
    if mass == 0 or not len(hi):
        return float(np.min(hi, initial=math.inf)), float(np.min(hi, initial=math.inf))
    order = np.argsort(hi, kind="stable")
    with np.errstate(over="ignore", invalid="ignore"):
        held_by = np.cumsum(c[order]) * (1 - (len(c) + 2) * U)  # the relative error of each sum is at most len(c)·u
        last = int(np.searchsorted(held_by, mass))
        if not math.isfinite(mass) or last == len(order) or not math.isfinite(hi[order[last]]):
            return math.inf, math.inf
        filled, top = order[:last], float(hi[order[last]])
        below = c[filled] * (top - hi[filled]) * (1 - 8 * U)
        if not np.isfinite(below).all():
            return top, math.inf
        less = bounds.sum_bounds(below)[0] - len(below) * bounds.TINY
        held = bounds.sum_bounds(c[filled])
        # the part of the last row that is needed, rounded up: more of it makes the mean higher, so the bound stays valid
        missing = min(float(c[order[last]]), max(0.0, bounds.up(mass - held[0])))
        whole = bounds.up(held[1] + missing)
    return top, bounds.up(top - bounds.down(max(0.0, less) / whole))


def _divided(weights: Any, top: float) -> Any:
    """Return weights up to `top`, divided by a power of two near that; they are rounded only where that makes them subnormal."""
    half = math.frexp(top)[1] // 2  # the inverse of a subnormal power is not a float
    return weights * 2.0**-half * 2.0 ** (half - math.frexp(top)[1])


def _tail_lower(lo: Any, c: Any, mass: float) -> float:
    """Return a lower bound on min Σt_i s_i / K over 0 ≤ t_i ≤ c_i, Σt = K, for scores s ≥ lo and every K ≥ mass.

    By duality (τK - Σc_i(τ - s_i)₊)/K is such a bound for any τ. The best τ is the score at which the lowest rows reach the
    mass K.
    """
    with np.errstate(over="ignore"):
        tau = fill_level(lo, c, mass)
    if not math.isfinite(tau) or mass <= 0:
        return -math.inf

    def excess_of(first: int, end: int) -> tuple[float, int]:
        """Return an upper bound on the sum of the terms of some rows, but for underflow, and how many they are."""
        below = nonzero(lo[first:end] < tau) + first
        with np.errstate(over="ignore", invalid="ignore"):
            terms = c[below] * (tau - lo[below]) * (1 + 8 * U)
        return bounds.near_bounds(terms)[1], len(terms)

    excesses, counts = zip(*over_vector(excess_of, lo), strict=True)
    if not all(map(math.isfinite, excesses)):
        return -math.inf
    excess = bounds.up(bounds.fsum(excesses)) + sum(counts) * bounds.TINY
    return bounds.down(tau - bounds.up(excess / mass))
