"""The restricted game in a norm 2 < p < ∞: the least ‖Aᵀz + r‖_p that the p-player can reach with the rows of the working set.

f(z) = ½‖v‖_p² of v = Aᵀz + r has the gradient g = A w, w = ω∘v with ω_j = (|v_j|/‖v‖_p)^{p-2}, and the Hessian

    A ((p-1) diag(ω) - (p-2) w wᵀ/‖v‖_p²) Aᵀ.

The second part vanishes at the optimum: there g is constant on the free rows of a group, whose total cannot change. So each step
solves the quadratic game of the first part, which is a `Restricted` one with the Gram matrix of A diag(ω)^½, and near the optimum
these are Newton's steps. Far from it ω says little, the less the larger p is. So p is raised from 2 by factors, each optimum
being a good start for the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array, dot
from gordan.deadlines import UNLIMITED, Deadline
from gordan.geometry import dual_vector, norm
from gordan.rows import Rows
from gordan.solve.restricted import Equilibrium, FeasibleSet, Gram, Restricted

# The first exponent above 2, the factor by which it is raised, and the gap that is closed at each exponent on the way.
FIRST_EXPONENT, EXPONENT_FACTOR, ROUGH_TOL = 3.0, 1.6, 1e-3
# Newton steps at one exponent, and steps without a smaller gap before they end.
MAX_STEPS, PATIENCE = 100, 6
# ‖v‖ below this is rounding, for rows of norm at most 1: v = 0.
ZERO_NORM = 1e-13


class Point(NamedTuple):
    """A point z with v = Aᵀz + r, ‖v‖, the gradient, the level of each group, and the duality gap over ‖v‖²."""

    z: Array
    v: Array
    length: float
    gradient: Array
    levels: Array
    gap: float


@dataclass(frozen=True, eq=False)
class PNormGame:
    """The game on the working set, for the p that are `allowed`; r is what rows outside add to Aᵀp."""

    rows: Rows
    allowed: FeasibleSet
    r: Array
    deadline: Deadline = UNLIMITED

    def solve(self, p: float, z: Array, tol: float, *, near: bool) -> Equilibrium:
        """Return the equilibrium in the p-norm from the guess z; if it is `near`, z is feasible and optimal for some rows."""
        point = self._descend(p, z, tol) if near else self._raised(p, z, tol)
        if near and point.gap > 10 * tol and not self.deadline.passed:
            again = self._raised(p, z, tol)
            point = again if again.length <= point.length else point
        return Equilibrium(point.z, point.gradient, point.levels, point.gap <= 10 * tol)

    def _raised(self, p: float, z: Array, tol: float) -> Point:
        """Descend from the optimum in the 2-norm, raising the exponent to p by factors."""
        if self._unaffordable:
            return self.at(p, self.allowed.filled(z))
        linear, constant = self.rows.scores(self.r), dot(self.r, self.r)
        z = self._quadratic(self.rows.gram(np.arange(self.rows.n)), linear, constant).solve(z, tol).p
        first = self.at(p, z)
        exponent = FIRST_EXPONENT
        while exponent < p and first.length > ZERO_NORM and not self.deadline.passed:
            z = self._descend(exponent, z, ROUGH_TOL).z
            exponent *= EXPONENT_FACTOR
        last = self._descend(p, z, tol)
        return last if last.length < first.length else first

    def at(self, p: float, z: Array) -> Point:
        """Return the point z with its gradient, levels and gap."""
        v = self.rows.combine(z) + self.r
        length = norm(v, p)
        gradient = self.rows.scores(dual_vector(v, p))
        lowest, levels = self.allowed.cheapest(gradient)
        gap = (dot(z, gradient) - lowest) / length**2 if length > ZERO_NORM else 0.0
        return Point(z, v, length, gradient, levels, gap)

    def _descend(self, p: float, z: Array, tol: float) -> Point:
        """Take Newton's steps, shortened where f would rise, and return the point of smallest gap."""
        point = best = self.at(p, z)
        damping, patience = 0.0, PATIENCE
        for _ in range(MAX_STEPS):
            if best.gap <= tol or patience < 0 or self._unaffordable:
                break
            weights = (np.abs(point.v) / point.length) ** (p - 2)
            K = self.rows.gram(np.arange(len(z)), weights=weights + damping * float(np.max(weights)))
            slope = point.gradient / (p - 1)
            quadratic = self._quadratic(K, slope - K @ point.z, point.length**2)
            # `descend` is given the slope itself: K z + linear has the rounding errors of K z, which matter at the end
            answer = quadratic.solve(point.z, 1e-12) if patience == PATIENCE else quadratic.descend(point.z, 1e-12, slope)
            after = self.at(p, answer.p)
            if after.gap > 0.5 * point.gap:
                t = _shortened(p, point.v, after.v - point.v)
                damping = max(10 * damping, 1e-6) if t < 0.1 else 0.1 * damping
                after = self.at(p, point.z + t * (answer.p - point.z)) if t < 1 else after
            point = after
            best, patience = (point, PATIENCE) if point.gap < best.gap else (best, patience - 1)
        return best

    def _quadratic(self, K: Array, linear: Array, constant: float) -> Restricted:
        return Restricted(Gram(K), self.allowed, linear, constant, self.rows.d, self.deadline)

    @property
    def _unaffordable(self) -> bool:
        """Return whether there is no time for one more Gram matrix."""
        return not self.deadline.affords(self.deadline.pace.gram(self.rows, self.rows.n, self.rows.n))


def _shortened(p: float, v: Array, dv: Array) -> float:
    """Return the t in (0, 1] with ‖v + t dv‖_p least."""

    def slope(t: float) -> float:
        return dot(dual_vector(v + t * dv, p), dv)

    if slope(1.0) <= 0 or slope(0.0) >= 0:
        return 1.0
    from scipy.optimize import brentq  # imported here: it takes as long as all the rest of gordan

    return float(brentq(slope, 0.0, 1.0, xtol=1e-9, rtol=1e-6))
