"""The sets of the players: a simplex for the p-player, and a ball for the w-player."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from gordan.arrays import MAX_SQUARE, MIN_SQUARE, Array, dot, namespace, vector, whole_number, zeros_and_ones
from gordan.errors import InputError

# Up to this many rows are sorted at once rather than partitioned.
FEW_SORTED = 1000


@dataclass(frozen=True, eq=False)
class Simplex:
    """The set P = {p ≥ 0, Σp = 1, p_i ≤ caps_i}; with `halves`, mass ½ on each of two halves (the free intercept).

    Parameters
    ----------
    n
        number of rows.
    caps
        upper bound for each p_i, or None. `cap_i = c_i/(ν Σc)` is the ν soft margin.
    halves
        0 or 1 for each row, or None.

    >>> Simplex(4, caps=np.full(4, 0.5)).lowest(np.array([3.0, 1.0, 2.0, 9.0]))
    1.5
    """

    n: int
    caps: Array | None = None
    halves: Array | None = None

    def __post_init__(self) -> None:
        whole_number(self.n, "n")
        if self.halves is not None:
            halves = zeros_and_ones(self.halves, "halves", self.n)
            if np.count_nonzero(halves) in (0, self.n):
                raise InputError("halves must contain both 0 and 1")
            object.__setattr__(self, "halves", halves)
        if self.caps is not None:
            caps = vector(self.caps, "caps", self.n)
            if not caps.min() > 0:
                row = int(np.flatnonzero(~(caps > 0))[0])
                raise InputError(f"caps[{row}] is {caps[row]}; every cap must be positive (leave the row out instead)")
            object.__setattr__(self, "caps", caps if float(np.max(caps)) <= self.mass else np.minimum(caps, self.mass))
            for total in self._totals():
                if total < self.mass * (1 - 1e-12):
                    raise InputError(f"the caps add up to {total:.6g} but must hold mass {self.mass:g}; raise them (lower nu)")

    def _totals(self) -> list[float]:
        """Return the sum of the caps of each half."""
        caps = self.caps
        assert caps is not None
        if self.halves is None or not self._equal_caps:
            return [float(np.sum(caps[members])) for members in self.members]
        second = int(np.count_nonzero(self.halves))
        return [float(caps[0]) * count for count in (self.n - second, second)]

    @cached_property
    def _equal_caps(self) -> bool:
        """Whether there are caps, which are all equal."""
        return self.caps is not None and bool(self.caps.min() == self.caps.max())

    @property
    def mass(self) -> float:
        """The sum of p over a half, or over all rows."""
        return 1.0 if self.halves is None else 0.5

    @cached_property
    def members(self) -> tuple[Array | slice, ...]:
        """The rows of each half (all rows if there are no halves)."""
        if self.halves is None:
            return (slice(None),)
        return tuple(np.flatnonzero(self.halves == half) for half in (0, 1))

    @cached_property
    def centre(self) -> Array:
        """The default p_0: proportional to the caps, and so inside the set, or uniform over each half."""
        p: Array = 1.0 * (self._ones if self.caps is None else self.caps)
        for members in self.members:
            p[members] *= self.mass / p[members].sum()
        return p

    @cached_property
    def _ones(self) -> Array:
        """A 1 for each row, where the vectors of this set are."""
        return np.broadcast_to(1.0, self.n)

    def start(self, p0: Any = None) -> Array:
        """Return p_0 from the weights that a caller passes, or `centre` if None.

        They are normalized over each half, and refused if they exceed the caps or if one is too small for its logarithm.
        """
        if p0 is None:
            return self.centre
        p = vector(p0, "p0", self.n).copy()
        bad = ~((p > 0) & np.isfinite(p))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"p0[{row}] is {p[row]}; starting weights must be positive and finite (leave the row out instead)")
        for members in self.members:
            p[members] /= np.max(p[members])
            p[members] *= self.mass / np.sum(p[members])
        if (p < np.finfo(np.float64).tiny).any():
            row = int(np.argmin(p))
            raise InputError(f"p0[{row}] is too small a share of the total to start from; leave the row out instead")
        if self.caps is not None and (p > self.caps * (1 + 1e-9)).any():
            row = int(np.argmax(p / self.caps))
            raise InputError(f"p0[{row}] is {p[row]:.6g} of the total, above its cap {self.caps[row]:.6g}")
        return p

    def placed(self, place: Callable[[Any], Any]) -> Simplex:
        """Return the same set for vectors where `place` brings its caps and halves."""
        found, own = copy(self), {"_ones": place(self._ones)}
        if self.halves is not None:
            halves = place(self.halves)
            own["members"] = tuple(namespace(halves).where(halves == half)[0] for half in (0, 1))
        if self.caps is not None:
            own["caps"] = place(np.broadcast_to(self.caps[0], self.n) if self._equal_caps else self.caps)
        found.__dict__.pop("centre", None)  # it is where the vectors of this set are
        found.__dict__.update(own)
        return found

    def diameter(self, p0: Array) -> float:
        """Return D = max_{p∈P} D_E(p, p_0), or an upper bound if the mass is not a sum of caps: the greedy Σ p_i log(cap_i/p_0i).

        It is log n on the simplex, ½(log n₊ + log n₋) on half-simplices, and log(1/ν) with the caps of ν.
        """
        ceiling = math.log(self.mass) if self.caps is None else np.log(self.caps)
        return max(0.0, -self.lowest(namespace(p0).log(p0) - ceiling))

    def lowest(self, scores: Array) -> float:
        """Return min_{p∈P} p·scores: the minimum, half the sum of two minima, or with caps the tail mean (CVaR)."""
        if self.caps is None:
            return self.mass * float(sum(scores[members].min() for members in self.members))
        total = 0.0
        for members in self.members:
            s = scores[members]
            rows, weights = _filled(s, self.caps[members], self.mass)
            total += dot(weights, s[rows]) if isinstance(s, np.ndarray) else float((weights * s[rows]).sum())
        return total

    def vertex(self, scores: Array) -> Array:
        """Return a p∈P with p·scores lowest, by filling the smallest scores up to their caps."""
        xp = namespace(scores)
        p: Array = xp.zeros_like(scores, dtype=xp.float64)
        for members in self.members:
            s = scores[members]
            part = xp.zeros_like(s, dtype=xp.float64)
            if self.caps is None:
                part[xp.argmin(s)] = self.mass
            else:
                rows, weights = _filled(s, self.caps[members], self.mass)
                part[rows] = weights
            p[members] = part
        return p

    def log_softmax(self, theta: Array) -> Array:
        """Return log p for p = argmin_{p∈P} E(p) - θ·p, that is p_i = min(cap_i, κ e^{θ_i}) with κ per half."""
        xp = namespace(theta)
        log_p: Array = xp.empty_like(theta)
        for members in self.members:
            z = theta[members] - theta[members].max()  # first: entries may be of the order of 10⁹, differences are not
            if self.caps is None:
                log_p[members] = z - math.log(xp.exp(z).sum() / self.mass)
            else:
                log_p[members] = _capped(z, np.log(self.caps[members]), self.mass)
        return log_p

    def project(self, y: Array) -> Array:
        """Return the point of P nearest to y, which is p_i = min(cap_i, max(0, y_i - τ)) with τ per half."""
        p = np.empty(self.n)
        for members in self.members:
            z = y[members]
            caps = np.full(len(z), self.mass) if self.caps is None else self.caps[members]
            p[members] = np.clip(z - _projection_threshold(z, caps, self.mass), 0.0, caps)
        return p

    def contains(self, p: Array, tol: float = 1e-9) -> bool:
        """Return whether p is in P up to `tol`."""
        inside = bool((p >= -tol).all()) and (self.caps is None or bool((p <= self.caps + tol).all()))
        return inside and all(abs(float(p[members].sum()) - self.mass) <= tol for members in self.members)


def fill_order(scores: Any, caps: Any, mass: float, side: Literal["left", "right"] = "left") -> tuple[Array, int]:
    """Return an order of the rows in which those that the mass fills up to their caps come first, and how many they are.

    The rows of lowest score are filled; their caps add up to less than the mass or, with side "right", to at most the mass. The
    row after them comes next. If all caps are equal, rows are partitioned rather than sorted, which takes a tenth of the time for
    30,000 rows. Otherwise the half that contains the last row filled is partitioned again, until few rows are left to sort.
    Tensors are sorted, which a device does as fast.
    """
    if not isinstance(scores, np.ndarray):
        order = scores.argsort()
        held = caps[order].cumsum(0)
        return order, int((held < mass if side == "left" else held <= mass).sum())
    if len(caps) and caps.min() == caps.max():
        whole = mass / float(caps[0]) if caps[0] > 0 else math.inf
        count = len(caps) if whole > len(caps) else max(0, math.ceil(whole) - 1 if side == "left" else math.floor(whole))
        return (np.argpartition(scores, count) if count < len(caps) else np.arange(len(caps))), count
    order, low, high, held = np.arange(len(caps)), 0, len(caps), 0.0
    while high - low > FEW_SORTED:
        half, rows = (high - low) // 2, order[low:high]
        rows = rows[np.argpartition(scores[rows], half)]
        order[low:high] = rows
        total = held + float(np.sum(caps[rows[:half]]))
        if total < mass or (total == mass and side == "right"):
            low, held = low + half, total
        else:
            high = low + half
    rows = order[low:high]
    order[low:high] = rows[np.argsort(scores[rows], kind="stable")]
    return order, low + int(np.searchsorted(held + np.cumsum(caps[order[low:high]]), mass, side))


def _filled(scores: Array, caps: Array, mass: float) -> tuple[Array, Array]:
    """Return the rows that the mass fills from the lowest score on, the last one in part, and their weights."""
    order, count = fill_order(scores, caps, mass)
    rows = order[: count + 1]
    weights = caps[rows]
    if count < len(order):
        weights[-1] = min(float(weights[-1]), max(0.0, mass - float(weights[:-1].sum())))
    return rows, weights


def fill_level(scores: Array, caps: Array | None, mass: float) -> float:
    """Return the score up to which the caps of the rows add up to the mass; the lowest score if there are no caps."""
    if caps is None or float(caps.min()) >= mass:
        return float(scores.min())
    order, filled = fill_order(scores, caps, mass)
    return float(scores.max() if filled == len(order) else scores[order[filled]])


def _capped(theta: Array, log_caps: Array, mass: float) -> Array:
    """Return log p_i = min(log cap_i, log κ + θ_i) with Σp = mass, by sorting rows by the κ at which they reach their caps."""
    meets = log_caps - theta
    order = np.argsort(meets, kind="stable")
    caps = np.exp(log_caps[order])
    # In logarithms throughout: rows below their caps may weigh e^-1000 times as much as those at them, and still carry the rest.
    rest = np.logaddexp.accumulate(theta[order][::-1])[::-1]
    with np.errstate(divide="ignore"):
        log_kappa = np.log(np.maximum(mass - (np.cumsum(caps) - caps), 0.0)) - rest
    enough = np.flatnonzero(log_kappa <= meets[order])
    first = int(enough[0]) if len(enough) else len(order)  # all rows are at their caps if these add up to exactly the mass
    log_p = log_caps.copy()
    free = order[first:]
    log_p[free] = np.minimum(log_caps[free], theta[free] + log_kappa[first : first + 1])
    return log_p


def _projection_threshold(y: Array, caps: Array, mass: float) -> float:
    """Return τ with Σ min(cap_i, max(0, y_i - τ)) = mass, by going down the breakpoints of this piecewise linear function."""
    points = np.concatenate((y, y - caps))
    order = np.argsort(-points, kind="stable")
    points = points[order]
    slopes = np.cumsum(np.concatenate((np.ones(len(y)), -np.ones(len(y))))[order])
    heights = np.concatenate(([0.0], np.cumsum(slopes[:-1] * -np.diff(points))))
    k = int(np.searchsorted(heights, mass)) - 1  # the last point above the level: heights begin at 0, below any mass
    return float(points[k] - (mass - heights[k]) / max(slopes[k], 1.0))  # the slope is 0 if the caps add up to exactly the mass


@dataclass(frozen=True)
class Ball:
    """The ball W = {‖w‖_q ≤ radius} in R^d; with an infinite radius, R^d itself."""

    d: int
    q: float = 2.0
    radius: float = math.inf

    def __post_init__(self) -> None:
        if not (self.q >= 1 and self.radius > 0):
            raise InputError(f"a ball needs q >= 1 and a positive radius; got q = {self.q}, radius = {self.radius}")

    def clip(self, w: Array) -> Array:
        """Return w, scaled back to the sphere if it is outside: the argmin for any regularizer that is a function of ‖·‖_q."""
        length = norm(w, self.q) if self.radius < math.inf else 0.0
        return w if length <= self.radius else w * (self.radius / length)

    def project(self, y: Array) -> Array:
        """Return the point of W nearest to y in the 2-norm, for q = 1 (by sorting), q = 2, q = ∞ (a clip) or 2 < q < ∞.

        For 2 < q < ∞ it is sign(y)·z with `z + λz^{q-1} = |y|` in every entry and ‖z‖_q = radius, found by Newton's method.
        """
        q = self.q
        if q == 2 or norm(y, q) <= self.radius:
            return self.clip(y)
        if q == math.inf:
            return np.clip(y, -self.radius, self.radius)
        if q == 1:
            size = np.sort(np.abs(y))[::-1]
            levels = (np.cumsum(size) - self.radius) / np.arange(1, len(size) + 1)
            last = int(np.max(np.flatnonzero(size > levels), initial=0))  # none if the radius is lost to rounding
            return self.clip(np.sign(y) * np.maximum(np.abs(y) - levels[last], 0.0))
        if q < 2:
            raise InputError(f"no projection onto a ball with q = {q:g}; q must be 1, or at least 2")
        size = np.abs(y) / self.radius
        multiplier = float(np.max(size)) * self.d ** ((q - 1) / q)  # ‖z‖_q ≤ 1 here, since z_j ≤ (|y_j|/λ)^{1/(q-1)}
        for _ in range(100):
            z = np.minimum(size, (size / multiplier) ** (1 / (q - 1)))  # an upper bound, from which Newton steps only decrease
            for _ in range(100):
                power = multiplier * z ** (q - 2)
                step = (z * (1 + power) - size) / (1 + (q - 1) * power)
                z = np.maximum(z - step, 0.0)
                if np.max(np.abs(step)) <= 1e-16:
                    break
            total = float(np.sum(z**q))
            if abs(total - 1) <= 1e-14:
                break
            slope = -q * float(np.sum(z**q * (power / (1 + (q - 1) * power)))) / total  # of log ‖z‖_q^q in log λ
            multiplier *= math.exp(min(5.0, max(-5.0, -math.log(total) / slope)))
        return self.clip(np.sign(y) * z * self.radius)

    def vertex(self, c: Array) -> Array:
        """Return a w∈W with c·w lowest."""
        if self.radius == math.inf:
            raise InputError("a linear loss has no minimum over R^d; give the learner a regularizer or a bounded set")
        length = norm(c, dual_exponent(self.q))
        return np.zeros(self.d) if length == 0 else dual_vector(c, dual_exponent(self.q)) * (-self.radius / length)

    def contains(self, w: Array, tol: float = 1e-9) -> bool:
        """Return whether w is in W up to `tol`."""
        return norm(w, self.q) <= self.radius + tol


Domain: TypeAlias = Simplex | Ball


def dual_exponent(q: float) -> float:
    """Return p with 1/p + 1/q = 1."""
    return math.inf if q == 1 else 1.0 if q == math.inf else q / (q - 1)


def norm(x: Array, p: float) -> float:
    """Return ‖x‖_p without overflow."""
    if p == 2:
        square = dot(x, x)
        if MIN_SQUARE <= square <= MAX_SQUARE:
            return math.sqrt(square)
    top = float(np.max(np.abs(x), initial=0.0))
    if top == 0 or p == math.inf or not math.isfinite(top):
        return top
    return float(top * float(np.sum((np.abs(x) / top) ** p)) ** (1 / p))


def dual_vector(theta: Array, p: float) -> Array:
    """Return ∇½‖θ‖_p² = sign(θ)|θ|^{p-1} ‖θ‖_p^{2-p}, the vector of q-norm ‖θ‖_p aligned with θ (0 at 0)."""
    if p == 2:
        return theta
    length = norm(theta, p)
    if length == 0:
        return np.zeros_like(theta)
    if p == math.inf:  # a subgradient: all on the first largest entry
        w = np.zeros_like(theta)
        first = int(np.argmax(np.abs(theta)))
        w[first] = theta[first]
        return w
    return np.sign(theta) * (np.abs(theta) / length) ** (p - 1) * length
