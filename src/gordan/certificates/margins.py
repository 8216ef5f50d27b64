"""Which margin is meant, and what a plane w and weights p prove about it.

Bounds are enclosures in floats; exact numbers decide what these leave open, so that a bracket is accepted just if it is proved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import mul

import numpy as np

from gordan.arrays import Array
from gordan.certificates import bounds, exact
from gordan.certificates.data import Certificate
from gordan.certificates.matrix import Groups, Matrix, Products, exact_score, near_score
from gordan.certificates.problem import Problem
from gordan.floats import ieee_floats
from gordan.geometry import Ball
from gordan.intercepts import Intercept
from gordan.rows import nonzero

# Rows whose lowest end is refined exactly where enclosures are wide.
MOST_EXACT_ROWS = 4096
# Entries of X up to which a bracket is claimed in exact arithmetic where floats leave it wide.
MOST_SHARPENED = 1 << 17
# Perturbations below this would be lost to underflow.
LEAST_NOISE = 2.0**-900
# Relative width of an enclosure of the margin that is left as it is.
NARROW_WIDTH = 1e-9


@dataclass(frozen=True, eq=False)
class Margin:
    """γ* = max_w min_{p∈P} p·Aw/‖w‖_q of this data.

    P is the simplex, with half of the mass in each class where the intercept is free; without the rows of weight c_i = 0
    (`weights`, all 1 if None); and with p_i ≤ c_i/(νΣc) where there is a `nu`. Without intercept the rows of A are y_i x_i;
    with a penalized one they are y_i (x_i, 1), and ‖(w, b)‖ is what counts.

    With `robust` ε > 0 every x_i may be moved by δ, ‖δ‖_s ≤ ε, s = `robust_norm` (1, 2 or ∞): p·Aw loses ε‖w‖_r, 1/r + 1/s = 1,
    and γ* may be negative, in which case it counts as 0. As max_δ δ·w = ε‖w‖_r, every such δ bounds it by ‖Aᵀp - δ‖₂.
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
        """The one that a certificate is about."""
        c = certificate
        weights = None if c.sample_weight is None else np.array(c.sample_weight, dtype=np.float64)
        return Margin(
            problem.X, problem.signs_for(c.classes), Intercept(c.intercept), c.norm, c.nu, weights, c.robust, c.robust_norm
        )

    @cached_property
    def c(self) -> Array:
        """The weights of the rows."""
        return np.broadcast_to(1.0, self.X.n) if self.weights is None else self.weights

    @cached_property
    def groups(self) -> list[Array]:
        """The rows that share a mass: all of them, or those of each class."""
        return self.intercept.groups(self.signs)

    def infeasibility_reason(self) -> str:
        """Why there is no such margin; empty if there is one."""
        if not self.norm >= 1:
            return f"its norm is {self.norm}, below 1"
        if self.weights is not None and not ((self.c >= 0) & np.isfinite(self.c)).all():
            return "a sample weight is negative or not finite"
        if self.nu is not None and not (0 < self.nu <= 1 and self._reached(self.c)):
            return f"nu is {self.nu}, which leaves no p"
        if not ((self.robust == 0 or LEAST_NOISE <= self.robust < math.inf) and self.robust_norm in (1, 2, math.inf)):
            return f"it is about perturbations of size {self.robust} in the norm {self.robust_norm}"
        if self.robust > 0 and (self.norm != 2 or self.nu is not None or self.intercept.in_norm):
            return "perturbations are for the 2-norm, without nu and without a penalized intercept"
        return ""

    def allows(self, p: Array) -> bool:
        """Whether p ≥ 0, scaled to the mass it must have, is in P: decided exactly."""
        if not (np.min(p) >= 0 and np.max(p) < math.inf) or (self.weights is not None and (p[self.weights == 0] > 0).any()):
            return False
        return self.nu is None or (bool((p <= self.c).all()) and self._reached(p))

    def _reached(self, p: Array) -> bool:
        """Whether p has its share of νΣc in each group."""
        assert self.nu is not None
        return all(bounds.reaches(p[group], self.c, self.nu, len(self.groups)) for group in self.groups)

    # ---- from w -----------------------------------------------------------------------------------------------------

    @ieee_floats()
    def lower(self, w: Array, b: float, *, exactly: bool = False, slack: float = 1.0) -> float:
        """A float that γ* is at least: the lowest p·Aw over P, divided by ‖w‖_q. Zero if nothing better is proved.

        A free b does not matter: what counts is half the sum of the two classes' lowest x·w. The lowest scores are refined in
        exact arithmetic where their enclosures are wide, or if asked to. `slack` is that of the enclosures (see `matrix.CLAIM`).
        """
        products, b = Products.of(self.X, w), self._counted(b)
        length = self._length(products, b)
        if not 0 < length < math.inf:
            return 0.0
        lows = (self._lowest if self.nu is None else self._lowest_tails)(products, b, exactly, slack)
        margin = bounds.down(math.fsum(bounds.down(low / len(lows)) for low in lows))
        if self.robust > 0:
            margin = bounds.down(margin - bounds.up(self.robust * self._noise(np.abs(products.w), dual=True)))
        return max(0.0, bounds.down(margin / length))

    def _noise(self, size: Array, *, dual: bool) -> float:
        """What the norm s of the perturbations, or its dual, is at most for |x| = size."""
        return bounds.norm_bound(size, 2 if self.robust_norm == 2 else math.inf, dual=dual == (self.robust_norm > 1))

    def _counted(self, b: float) -> float:
        """b where it is part of the game, else 0."""
        return b if self.intercept.in_norm else 0.0

    def _length(self, products: Products, b: float) -> float:
        """‖w‖_q, or ‖(w, b)‖_q, at most."""
        if self.norm == 2 and not self.intercept.in_norm:
            return products.length
        own = b / (self.intercept.column or 1)  # b is 0 where it does not count
        return bounds.norm_bound(np.abs(np.append(products.w, own)), self.norm, dual=True)

    def _lowest(self, products: Products, b: float, exactly: bool, slack: float) -> list[float]:
        """What the scores of each group are at least."""
        groups = self._groups
        ends = products.ends(b, self.signs, groups, slack)
        if any(math.isinf(low) and low > 0 for low, _ in ends):
            return [0.0]  # a group without rows
        if not _narrow(ends):
            products.sharpen(np.sort(np.concatenate(products.near([hi for _, hi in ends], b, self.signs, groups, slack))))
            ends = products.ends(b, self.signs, groups, slack)
        if exactly or not _narrow(ends):
            close = products.near([hi for _, hi in ends], b, self.signs, groups, slack)
            return [self._refined(products, rows, low, b) for rows, (low, _) in zip(close, ends, strict=True)]
        return [low for low, _ in ends]

    @cached_property
    def _groups(self) -> Groups:
        """The group of each row that counts."""
        group = (self.signs < 0).astype(np.int8) if self.intercept.grouped else None
        if self.weights is not None:
            group = np.where(self.weights > 0, 0 if group is None else group, -1)
        return Groups(1 + self.intercept.grouped, group)

    @property
    def _counting(self) -> list[Array]:
        """The groups without rows of weight 0."""
        return self.groups if self.weights is None else [group[self.weights[group] > 0] for group in self.groups]

    def _refined(self, products: Products, close: Array, low: float, b: float) -> float:
        """What the scores of a group are at least, by exact scores of those that may be the lowest."""
        if len(close) > MOST_EXACT_ROWS:
            return low
        rows = self.X.storage.each_row(close)
        return min(_rounded_score(row, products.w, b, int(self.signs[i]))[0] for i, *row in rows)

    def _lowest_tails(self, products: Products, b: float, exactly: bool, slack: float) -> list[float]:
        """What the mean of the lowest scores of each group, as many as its mass needs, is at least."""
        assert self.nu is not None
        mass = bounds.down(self.nu * bounds.sum_bounds(self.c)[0] / len(self.groups))
        lo, hi = products.scores(b, self.signs, slack)
        lows = [_tail(lo[group], self.c[group], mass) for group in self.groups]
        if exactly or not np.max(hi - lo) <= NARROW_WIDTH * sum(lows):
            products.sharpen(np.arange(self.X.n))
            lo, hi = products.scores(b, self.signs, slack)
            lows = [_tail(lo[group], self.c[group], mass) for group in self.groups]
        return lows

    @ieee_floats()
    def proves_lower(self, lower: float, w: Array, b: float) -> bool:
        """Whether w proves γ* ≥ lower > 0: decided in exact arithmetic, unless floats can tell that it is too much."""
        entries, e = exact.whole(np.append(w, self._counted(b)))
        unit = Fraction(lower) * Fraction(2) ** e

        def enough(least: Fraction) -> bool:
            if self.robust > 0 and self.robust_norm != 2:  # ‖w‖_r is a fraction
                size = max(map(abs, entries)) if self.robust_norm == 1 else sum(map(abs, entries))
                least -= Fraction(self.robust) * size * Fraction(2) ** e
            total = unit + (Fraction(self.robust) * Fraction(2) ** e if self.robust_norm == 2 else 0)
            return least > 0 and bounds.norm_at_most(entries, least / total, self.norm, dual=True)

        _, hi = Products.of(self.X, w).scores(self._counted(b), self.signs)
        most = bounds.up(sum(mean for _, mean in self._reach(hi)) / len(self.groups))
        if math.isfinite(most) and not enough(Fraction(most)):
            return False
        least = self.exact_least(w, b)
        return least is not None and enough(least)

    def exact_least(self, w: Array, b: float) -> Fraction | None:
        """The lowest p·Aw over P, from the rows whose scores may matter; None where a group has no row that counts."""
        b = self._counted(b)
        lo, hi = Products.of(self.X, w).scores(b, self.signs)
        groups = self._counting
        if any(not len(group) for group in groups):
            return None
        parts = [group[lo[group] <= level] for group, (level, _) in zip(groups, self._reach(hi), strict=True)]
        return sum((self._exact_lowest(rows, w, b) for rows in parts), Fraction(0)) / len(groups)

    def _reach(self, hi: Array) -> list[tuple[float, float]]:
        """`_reach` for each group, where scores are at most `hi`."""
        # in units in which the caps are c; 0 where there are none, and any row will do
        mass = 0.0 if self.nu is None else bounds.up(self.nu * bounds.sum_bounds(self.c)[1] / len(self.groups))
        return [_reach(hi[group], self.c[group], mass) for group in self._counting]

    def _exact_lowest(self, rows: Array, w: Array, b: float) -> Fraction:
        """The lowest score of these rows, or the mean of the lowest ones that the mass of a group needs."""
        scores, e = exact.scores(self.X, rows, w, b, self.signs)
        unit = Fraction(2) ** e
        if self.nu is None:
            return min(scores) * unit
        (caps, f), (total, g) = exact.whole(self.c[rows]), bounds.multiply(bounds.exact_sum(self.c), bounds.dyadic(self.nu))
        low = min(f, g)  # everything in units of 2^low / groups
        mass = left = total << (g - low)
        found = 0
        for score, cap in sorted(zip(scores, caps, strict=True)):
            part = min((cap << (f - low)) * len(self.groups), left)
            found, left = found + part * score, left - part
        return Fraction(found, mass) * unit

    # ---- from p -----------------------------------------------------------------------------------------------------

    @ieee_floats()
    def upper(self, p: Array, *, slack: float = 1.0) -> float:
        """A float that γ* is at most, from p ≥ 0 (not normalized): ‖Aᵀp‖_p over its mass; infinite if p is not allowed.

        With a free intercept each class is normalized to ½. With nu, p_i ≤ c_i and a mass of at least νΣc (½ of it in each class)
        are needed; scaling down to just that mass then keeps p under its caps. `slack` as for `lower`.
        """
        q = self._normalized(p) if self.allows(p) else None
        if q is None:
            return math.inf
        centre, error = combined_with_error(self.X, self.signs, *q, self.intercept)
        if not np.isfinite(centre).all():
            return math.inf
        if self.robust > 0:
            return self._distance(centre, slack * error)
        size = np.abs(centre)
        length = self.X.remembered(f"{self.norm}-norm", size, lambda: bounds.norm_bound(size, self.norm, dual=False))
        return bounds.up(length + bounds.up(slack * error * self._spread(len(size))))

    def _spread(self, d: int) -> float:
        """What the norm of d entries is at most where their 2-norm is 1: 1, or for norms below 2 a power of d."""
        return 1.0 if self.norm >= 2 else d ** (1 / self.norm - 0.5) * (1 + 1e-12)

    def _distance(self, centre: Array, error: float) -> float:
        """What the distance to the perturbations is at most, 0 where it is one, of what is within `error` of `centre`."""
        size = np.abs(centre)
        most = bounds.up(error * (1 if self.robust_norm > 1 else bounds.up(math.sqrt(len(size)))))  # ‖·‖_∞ ≤ ‖·‖₂, ‖·‖₁ ≤ √d‖·‖₂
        if bounds.up(self._noise(size, dual=False) + most) <= self.robust:
            return 0.0
        rest = centre - self._within(Ball(len(centre), self.robust_norm, self.robust).project(centre))
        return bounds.up(bounds.up(bounds.length(rest) * (1 + 2 * bounds.U)) + error)

    def _within(self, delta: Array) -> Array:
        """A perturbation near δ, and for certain one of those that are allowed."""
        size = self._noise(np.abs(delta), dual=False)
        return delta if size <= self.robust else delta * (bounds.down(self.robust / size) * (1 - 4 * bounds.U))

    def _normalized(self, p: Array) -> tuple[Array, Array] | None:
        """The rows of weight, and their weights with a mass of 1 in all, up to a share of (SUM_BLOCK + 4)u; None where a
        group has none."""
        rows = nonzero(p)
        q, groups = p[rows], self.intercept.groups(self.signs[rows])
        for group in groups:
            part = q[group]
            top = float(np.max(part, initial=0.0))
            if top == 0:
                return None
            # only ratios within a group matter; without this a mass may overflow, and its reciprocal be taken for 0
            positive, part = part > 0, np.ldexp(part, -math.frexp(top)[1])
            tiny = positive & (part < bounds.TINY)  # or 0 by now
            if self.nu is not None and tiny.any():
                return None  # without them the others may be above their caps
            part[tiny] = 0.0
            q[group] = part * (1 / (bounds.near_sum(part) * len(groups)))
        return rows, q

    def weighty(self, p: Array) -> Array:
        """p without the weights that are lost beside the largest of their group: `upper` leaves them out, and so must a claim."""
        if np.min(p[nonzero(p)], initial=math.inf) >= 2.0**-1000 * np.max(p):
            return p
        kept = p.copy()
        for group in self.groups:
            size = math.frexp(float(np.max(p[group], initial=0.0)))[1]
            kept[group[np.ldexp(p[group], -size) < bounds.TINY]] = 0.0
        return kept

    @ieee_floats()
    def proves_upper(self, upper: float, p: Array) -> bool:
        """Whether p proves γ* ≤ upper, in exact arithmetic: what floats prove depends on storage and on the order of sums."""
        if upper < 0 or not self.allows(p):
            return False
        if self.robust > 0:
            return self._proves_distance(upper, p)
        q = self._normalized(p)
        if q is not None:
            centre, error = combined_with_error(self.X, self.signs, *q, self.intercept)
            if np.isfinite(centre).all() and math.isfinite(error):
                entries, e = exact.whole(centre)
                most = (Fraction(upper) + Fraction(error * self._spread(len(centre)) * (1 + 1e-12))) / Fraction(2) ** e
                if not bounds.norm_at_most(entries, most, self.norm, dual=False):
                    return False
        combination = self.exact_combination(p)
        if combination is None:
            return False
        entries, unit = combination
        return bounds.norm_at_most(entries, Fraction(upper) / unit, self.norm, dual=False)

    def _proves_distance(self, upper: float, p: Array) -> bool:
        """The same under perturbations, by the nearest one: a shorter vector, or entries cut down by ε or to a level."""
        combination = self.exact_combination(p)
        if combination is None:
            return False
        entries, unit = combination
        epsilon, most = Fraction(self.robust) / unit, Fraction(upper) / unit
        if self.robust_norm == 2:
            return bounds.norm_at_most(entries, epsilon + most, 2, dual=False)
        low = epsilon.denominator  # everything in units of unit/low
        sizes, noise = sorted((abs(m) * low for m in entries), reverse=True), epsilon.numerator
        if self.robust_norm == 1:
            level = max([Fraction(0), *(Fraction(total - noise, k) for k, total in enumerate(accumulate(sizes), 1))])
            above = sum(size > level for size in sizes)
            square = above * level**2 + sum(size * size for size in sizes[above:])
        else:
            square = Fraction(sum((size - noise) ** 2 for size in sizes if size > noise))
        return square <= (most * low) ** 2

    def exact_combination(self, p: Array) -> tuple[list[int], Fraction] | None:
        """Integers m and a unit f with Aᵀp = m·f, each group normalized; None where one has no mass."""
        sums, masses = [], []
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
        low = min((e for _, e in totals), default=0)
        return [m << (e - low) for m, e in totals], Fraction(2) ** low / whole

    # ---- both, exactly ----------------------------------------------------------------------------------------------

    @ieee_floats()
    def sharpened(self, w: Array | None, b: float, p: Array | None, lower: float, upper: float) -> tuple[float, float]:
        """The bracket that w and p prove in exact arithmetic, where floats leave lower..upper; the same for much data.

        For norms other than 2 and ∞ the norms of w and of Aᵀp are bounded by those of the 1- and the 2-norm.
        """
        if self.X.n * self.X.d > MOST_SHARPENED or self.nu is not None or self.robust > 0 or self.norm < 2:
            return lower, upper
        if w is not None:
            lower = max(lower, self.exact_lower(w, b))
        return lower, upper if p is None or not self.allows(p) else min(upper, self.exact_upper(p))

    def exact_lower(self, w: Array, b: float) -> float:
        """A float that γ* is at least, next to what w proves in exact arithmetic; 0 if that is nothing."""
        least = self.exact_least(w, b)
        entries, e = exact.whole(np.append(w, self._counted(b)))
        if least is None or least <= 0 or not any(entries):
            return 0.0
        least /= Fraction(2) ** e
        if self.norm == 2:
            return bounds.enclosed(least**2 / sum(m * m for m in entries), root=True)[0]
        return bounds.enclosed(least / sum(map(abs, entries)))[0]

    def exact_upper(self, p: Array) -> float:
        """A float that γ* is at most, next to what p proves in exact arithmetic; infinite if that is nothing."""
        combination = self.exact_combination(p)
        if combination is None:
            return math.inf
        entries, unit = combination
        if math.isinf(self.norm) or sum(map(bool, entries)) <= 1:
            return bounds.enclosed(max(map(abs, entries), default=0) * unit)[1]
        return bounds.enclosed(sum(m * m for m in entries) * unit**2, root=True)[1]


def combined_with_error(X: Matrix, signs: Array, rows: Array, q: Array, intercept: Intercept) -> tuple[Array, float]:
    """Aᵀq for weights q of these rows as computed, and what it is at most away, in the 2-norm, from that of the exact weights.

    Each q_i is off by a share of (SUM_BLOCK + 4)u, and a column is a sum of at most as many products as there are rows of weight:
    with γ_k as in `matrix.error` it is off by γ_k Σ q_i|x_ij|, and the norm of these by γ_k Σ q_i‖x_i‖ at most. The p-norm,
    p ≥ 2, is no larger.
    """
    rows, q = rows[q != 0], q[q != 0]
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = X.norms[rows] + float(intercept.column)
        total = bounds.near_sum(q * sizes)
        relative = 2 * bounds.U * (len(rows) + 2 * bounds.SUM_BLOCK)  # twice what is needed: neither is `total` exact
        # what underflow does to a weight, and to a product
        lost = len(rows) * bounds.TINY * (float(np.max(sizes, initial=0.0)) + X.d + 1.0)
    return combined(X, signs, rows, q, intercept), relative * total + lost


def combined(X: Matrix, signs: Array, rows: Array, q: Array, intercept: Intercept) -> Array:
    """Aᵀq for weights q of these rows, which are not 0, as computed."""
    signed = q * signs[rows]

    def combination() -> Array:
        over_all = np.zeros(X.n)
        over_all[rows] = signed
        return X.combination(over_all, rows)

    with np.errstate(over="ignore", invalid="ignore"):
        centre: Array = X.remembered("combination", np.concatenate((rows, signed)), combination)
        return np.append(centre, intercept.column * np.sum(signed)) if intercept.in_norm else centre


@ieee_floats()
def first_not_positive(products: Products, b: float, signs: Array) -> int | None:
    """The first row with y_i(x_i·w + b) ≤ 0, decided exactly."""

    def doubtful(part: slice, lo: Array, hi: Array) -> tuple[Array, Array]:
        below = np.flatnonzero(lo <= 0) if np.min(lo) <= 0 else np.empty(0, np.intp)
        return below + part.start, below[hi[below] < 0] + part.start

    rows, wrong = map(np.concatenate, zip(*products.each(doubtful, b, signs), strict=True))
    if len(wrong):
        return int(wrong[0])
    if not len(rows):
        return None
    products.sharpen(rows)
    lo, hi = products.scores(b, signs, part=rows)
    rows, hi = rows[lo <= 0], hi[lo <= 0]
    for (i, *row), high in zip(products.X.storage.each_row(rows), hi.tolist(), strict=True):
        if high < 0 or _rounded_score(row, products.w, b, int(signs[i]))[1] <= 0:
            return i
    return None


def _rounded_score(row: Sequence[Array], w: Array, b: float, sign: int) -> tuple[float, float]:
    """A float not above y_i(x_i·w + b) and next to it, and something that has its sign."""
    score = near_score(row, w, b, sign)
    if not math.isnan(score):
        return bounds.down(score), score
    m, e = exact_score(row, w, b, sign)
    return bounds.round_down(m, e), float((m > 0) - (m < 0))


def _narrow(ends: list[tuple[float, float]]) -> bool:
    """Whether the enclosures of the lowest scores are narrow for their size."""
    lows = sum(low for low, _ in ends)
    return sum(high for _, high in ends) - lows <= NARROW_WIDTH * lows


def _reach(hi: Array, c: Array, mass: float) -> tuple[float, float]:
    """A score at which the lowest rows have at least this mass, and what the mean score of the lowest ones of that mass is at
    most, for scores s ≤ hi; infinite where floats cannot tell."""
    if mass == 0 or not len(hi):
        return float(np.min(hi, initial=math.inf)), float(np.min(hi, initial=math.inf))
    order = np.argsort(hi, kind="stable")
    with np.errstate(over="ignore", invalid="ignore"):
        heaped = np.cumsum(c[order]) * (1 - (len(c) + 2) * bounds.U)  # each sum is off by a share of len(c)·u at most
        last = int(np.searchsorted(heaped, mass))
        if not math.isfinite(mass) or last == len(order) or not math.isfinite(hi[order[last]]):
            return math.inf, math.inf
        filled, level = order[:last], float(hi[order[last]])
        below = c[filled] * (level - hi[filled]) * (1 - 8 * bounds.U)
        if not np.isfinite(below).all():
            return level, math.inf
        less = bounds.sum_bounds(below)[0] - len(below) * bounds.TINY
        held = bounds.sum_bounds(c[filled])
        # of the last row no more than is missing, but enough: the more mass, the higher the mean
        missing = min(float(c[order[last]]), max(0.0, bounds.up(mass - held[0])))
        whole = bounds.up(held[1] + missing)
    return level, bounds.up(level - bounds.down(max(0.0, less) / whole))


def _tail(lo: Array, c: Array, mass: float) -> float:
    """A lower bound on min Σt_i s_i / K over 0 ≤ t_i ≤ c_i, Σt = K, for s ≥ lo and every K ≥ mass.

    By duality (τK - Σc_i(τ - s_i)₊)/K for any τ is one; the best is the score at which the smallest ones reach mass K.
    """
    if c.min() == c.max() > 0:  # equal weights: no need to sort
        reached = int(min(mass / float(c[0]), len(lo) - 1))
        tau = float(np.partition(lo, reached)[reached])
    else:
        order = np.argsort(lo, kind="stable")
        with np.errstate(over="ignore"):
            reached = int(np.searchsorted(np.cumsum(c[order]), mass))
        tau = float(lo[order[min(reached, len(order) - 1)]])
    if not math.isfinite(tau) or mass <= 0:
        return -math.inf
    below = lo < tau
    with np.errstate(over="ignore", invalid="ignore"):
        terms = c[below] * (tau - lo[below]) * (1 + 8 * bounds.U)
    if not np.isfinite(terms).all():
        return -math.inf
    excess = bounds.sum_bounds(terms)[1] + len(terms) * bounds.TINY
    return bounds.down(tau - bounds.up(excess / mass))
