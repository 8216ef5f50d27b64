"""A safe test for rows that have weight 0 in every optimal p, from any bracket.

Let w = Aᵀp with ‖w‖ = u for some p∈P, let γ* ≥ l, and let w* = Aᵀp* be the least-norm point, ‖w*‖ = γ*. Optimality says
⟨w*, Aᵀp - w*⟩ ≥ 0 for every p∈P, so ‖w‖² ≥ γ*² + ‖w - w*‖², and

    ‖w - w*‖ ≤ r = √(u² - l²),    |A_i·w - A_i·w*| ≤ ‖A_i‖ r.

It also says that p* fills, in each group, the rows of lowest score A_i·w* up to their caps: p*_i = 0 for every row above the
level at which the caps of the rows below add up to the group's mass. That level is at most τ, the level for the scores A_j·w +
‖A_j‖ r. Hence p*_i = 0 wherever A_i·w - ‖A_i‖ r > τ. No row that has weight is lost; how many others are ruled out depends on r.
"""

from __future__ import annotations

import math

import numpy as np

from gordan.arrays import Array
from gordan.geometry import Simplex
from gordan.geometry.sets import fill_level


def idle(scores: Array, norms: Array, p_set: Simplex, upper: float, lower: float) -> Array:
    """Return which rows have weight 0 in every optimal p, given the scores A w and a bracket lower ≤ γ* ≤ upper = ‖w‖."""
    r = math.sqrt(max(0.0, upper * upper - lower * lower)) + 1e-12 * upper  # a little more, for rounding
    found = np.empty(len(scores), dtype=bool)
    for own in p_set.members:
        s, reach = scores[own], r * norms[own]
        found[own] = s - reach > fill_level(s + reach, None if p_set.caps is None else p_set.caps[own], p_set.mass)
    return found
