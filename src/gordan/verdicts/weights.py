"""The weights c_i of the rows, what nu makes of them, and the p that a certificate holds under them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from gordan.arrays import Array, is_number, vector
from gordan.certificates.bounds import exact_sum
from gordan.certificates.problem import Problem
from gordan.errors import InputError
from gordan.geometry import Simplex

# Sample weights further apart than this leave rows whose cap is lost in rounding.
FURTHEST = 2.0**-500


def row_weights(problem: Problem, sample_weight: Any, class_weight: Any, *, caps: bool) -> Array | None:
    """c_i = sample weight × class weight, up to a common factor; None where they are all equal.

    Unless they make `caps` only which of them are zero matters, and they are 0 or 1.
    """
    n = problem.X.n
    if sample_weight is None and class_weight is None:
        return None
    c = np.ones(n)
    if sample_weight is not None:
        if is_number(sample_weight):
            sample_weight = np.full(n, float(sample_weight))
        c = vector(sample_weight, "sample_weight", n).copy()
        bad = ~((c >= 0) & np.isfinite(c))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"sample_weight[{row}] is {c[row]}; weights must be finite and not negative")
    if class_weight is not None:
        for side, label in zip((-1, 1), problem.classes, strict=True):
            own = problem.signs == side
            if isinstance(class_weight, str):
                if class_weight != "balanced":
                    raise InputError(f"class_weight is {class_weight!r}; pass 'balanced', a dict from labels to weights, or None")
                c[own] *= n / (2 * np.count_nonzero(own))
            elif isinstance(class_weight, Mapping):
                factor = class_weight.get(label, 1.0)
                if not (is_number(factor) and 0 <= factor < math.inf):
                    raise InputError(f"class_weight[{label!r}] is {factor!r}; weights must be finite and not negative")
                with np.errstate(over="ignore"):
                    c[own] *= float(factor)
            else:
                raise InputError(f"class_weight is {class_weight!r}; pass 'balanced', a dict from labels to weights, or None")
        unknown = [label for label in class_weight if label not in problem.classes] if isinstance(class_weight, Mapping) else []
        if unknown:
            raise InputError(
                f"class_weight names {unknown[0]!r}, but the classes are {problem.classes[0]!r} and {problem.classes[1]!r}"
            )
    for side, label in zip((-1, 1), problem.classes, strict=True):
        if not c[problem.signs == side].any():
            raise InputError(f"all rows of class {label!r} have weight zero; two classes are needed")
    largest, row = float(np.max(c)), int(np.argmax(c))
    if math.isinf(largest):
        raise InputError(f"the weight of row {row} overflows: sample_weight × class_weight; divide one of them")
    if (c == largest).all():
        return None
    if not caps:
        return (c > 0).astype(np.float64)
    least = np.where(c > 0, c, np.inf)
    if np.min(least) < FURTHEST * largest:
        low = int(np.argmin(least))
        raise InputError(
            f"the weights of rows {low} and {row} are {c[low]:g} and {c[row]:g}, too far apart; make the first one 0"
        )
    return c if FURTHEST < largest < 1 / FURTHEST else np.ldexp(c, -math.frexp(largest)[1])


def allowed_nu(nu: Any, problem: Problem, weights: Array | None, intercept: str) -> float | None:
    """nu as a float; refused with the allowed range if it leaves no p. A limit that was computed with rounding is corrected."""
    if nu is None:
        return None
    c = np.ones(problem.X.n) if weights is None else weights
    sides = [Fraction(m) * Fraction(2) ** e for m, e in (exact_sum(c[problem.signs == side]) for side in (1, -1))]
    limit = 2 * min(sides) / sum(sides) if intercept == "free" else Fraction(1)
    most = float(limit)
    if Fraction(most) > limit:
        most = math.nextafter(most, 0.0)
    if not (is_number(nu) and 0 < nu <= min(1.0, most * (1 + 1e-12))):
        why = f": twice the share of the lighter class, {problem.classes[int(sides[0] < sides[1])]!r}" if most < 1 else ""
        raise InputError(f"nu is {nu!r}; for this data it must be in (0, {most:.6g}]{why}")
    return min(float(nu), most)


def caps_of(weights: Array | None, n: int, nu: float) -> Array:
    """c_i/(νΣc); 1 is enough for any."""
    c = np.ones(n) if weights is None else weights
    total = nu * math.fsum(c.tolist())  # a list is gone through in a quarter of the time
    with np.errstate(over="ignore"):
        return np.minimum(c / total, 1.0) if total > 0 else np.ones(n)


def under_caps(found: Array, c: Array, nu: float, p_set: Simplex) -> Array:
    """p as a certificate wants it, p_i ≤ c_i with a mass of at least νΣc (its share in each group), from the p of the game."""
    total = nu * math.fsum(c.tolist())
    used = found > 0
    with np.errstate(over="ignore"):  # as much as the caps have room for: what is beyond νΣc makes up for rounding
        most = float(np.min(c[used] / found[used]))
    p = np.minimum(found * max(total, most), c)
    for members in p_set.members:
        needed = total * p_set.mass * (1 + 1e-14)
        for _ in range(50):
            missing = needed - math.fsum(p[members].tolist())
            if missing <= 0:
                break
            room = (c - p)[members]
            room = room * (p[members] > 0) if (room * (p[members] > 0)).any() else room
            if not room.any():
                break
            p[members] = np.minimum(p[members] + room * min(1.0, (missing * (1 + 1e-15)) / math.fsum(room)), c[members])
    return p
