"""Sample weights and class weights: the weights c_i of the rows, and the values of nu that they allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gordan.arrays import Array, is_number, vector
from gordan.certificates.bounds import exact_sum
from gordan.certificates.problem import Problem
from gordan.errors import InputError, did_you_mean
from gordan.intercepts import Intercept
from gordan.rows import host

# The least ratio of two sample weights: below it the cap of a row would be lost to rounding.
MIN_RATIO = 2.0**-500


def row_weights(sample_weight: Any, class_weight: Any, labels: Sequence[Any], which: Array) -> Array | None:
    """Return c_i = sample weight × class weight, where row i is of class labels[which[i]]; None if neither is given."""
    return combined_weights(*weight_factors(sample_weight, class_weight, labels, which), labels, which)


def combined_weights(sample: Array | None, factors: Array | None, labels: Sequence[Any], which: Array) -> Array | None:
    """Return what `row_weights` does, from the sample weights and class weights that `weight_factors` returns."""
    c = products_of_weights(sample, factors, which)
    require_classes_with_weight(c, labels, which, len(labels))
    return c


def products_of_weights(sample: Array | None, factors: Array | None, which: Array) -> Array | None:
    """Return the finite products of sample weights and class weights, whatever classes have weight; None if neither is given."""
    if sample is None and factors is None:
        return None
    c = np.ones(len(which)) if sample is None else sample.copy()
    if factors is not None:
        with np.errstate(over="ignore"):
            c *= factors[which]
    if not np.isfinite(c).all():
        row = int(np.argmin(np.isfinite(c)))
        raise InputError(f"sample_weight × class_weight of row {row} overflows; divide one of them by a constant")
    return c


def require_classes_with_weight(c: Array | None, labels: Sequence[Any], which: Array, least: int) -> Array:
    """Return which classes have a row of positive weight, or raise an InputError if these are fewer than `least`."""
    found = np.bincount(which if c is None else which[c > 0], minlength=len(labels)) > 0
    if np.count_nonzero(found) < least:
        label = labels[int(np.argmin(found))]
        needed = "two classes are needed" if least == 2 else "leave them out, or give them some weight"
        raise InputError(f"all rows of class {label!r} have weight zero; {needed}")
    return found


def only_class_with_weight(sample: Array | None, which: Array) -> int | None:
    """Return the number of the class that all rows of positive sample weight are of; None if they are of several, or none is."""
    found = [] if sample is None else np.unique(which[sample > 0]).tolist()
    return found[0] if len(found) == 1 else None


def weight_factors(
    sample_weight: Any, class_weight: Any, labels: Sequence[Any], which: Array
) -> tuple[Array | None, Array | None]:
    """Return the sample weights and the class weight of each label; None for what is not given.

    "balanced" gives all classes the same total of sample weights, so that a row of weight 0 counts as if it were left out.
    """
    n, sample = len(which), None
    if sample_weight is not None:
        given = host(sample_weight)
        sample = np.full(n, float(given)) if is_number(given) else vector(given, "sample_weight", n).copy()
        bad = ~((sample >= 0) & np.isfinite(sample))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"sample_weight[{row}] is {sample[row]}; weights must be finite and not negative")
    if class_weight is None:
        return sample, None
    c = np.ones(n) if sample is None else sample
    totals = np.bincount(which, weights=c / max(float(np.max(c)), 1.0), minlength=len(labels))
    return sample, class_factors(class_weight, labels, totals)


def class_factors(class_weight: Any, labels: Sequence[Any], totals: Array) -> Array:
    """Return the class weight of each label; `totals` are the sums of sample weights per class, up to a common factor."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        counted = int(np.count_nonzero(totals))
        factors: Array = np.divide(totals.sum(), counted * totals, out=np.zeros(len(labels)), where=totals > 0)
        return factors
    if not isinstance(class_weight, Mapping):
        meant = did_you_mean(class_weight, ["balanced"])
        hint = f"; {meant}" if meant else ""
        raise InputError(f"class_weight is {class_weight!r}; pass 'balanced', a dict from labels to weights, or None{hint}")
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        known = did_you_mean(unknown[0], labels) or f"the classes are {', '.join(map(repr, labels))}"
        raise InputError(f"class_weight names {unknown[0]!r}, which is not a class; {known}")
    given = [class_weight.get(label, 1.0) for label in labels]
    for label, factor in zip(labels, given, strict=True):
        if not (is_number(factor) and 0 <= factor < math.inf):
            raise InputError(f"class_weight[{label!r}] is {factor!r}; weights must be finite and not negative")
    return np.array(given, dtype=np.float64)


def effective_weights(c: Array | None, *, caps: bool) -> Array | None:
    """Return the weights up to a common factor; None if they are all equal.

    Unless they are the `caps` of a soft margin, it matters only which of them are zero, and they become 0 and 1.
    """
    if c is None or (c == c[0]).all():
        return None
    if not caps:
        return (c > 0).astype(np.float64)
    largest, least = float(np.max(c)), np.where(c > 0, c, np.inf)
    if np.min(least) < MIN_RATIO * largest:
        low, row = int(np.argmin(least)), int(np.argmax(c))
        raise InputError(
            f"the weights of rows {low} and {row} are {c[low]:g} and {c[row]:g}, which is too far apart; set the first one to 0"
        )
    return c if MIN_RATIO < largest < 1 / MIN_RATIO else np.ldexp(c, -math.frexp(largest)[1])


def allowed_nu(nu: Any, problem: Problem, weights: Array | None, intercept: Intercept) -> float | None:
    """Return nu as a float, or refuse it and name the allowed range. A limit that a user computed with rounding is corrected."""
    if nu is None:
        return None
    own = [problem.signs == side for side in (1, -1)]
    sums = [(int(np.count_nonzero(side)), 0) if weights is None else exact_sum(weights[side]) for side in own]
    sides = [Fraction(m) * Fraction(2) ** e for m, e in sums]
    limit = intercept.largest_nu(*sides)
    most = float(limit)
    if Fraction(most) > limit:
        most = math.nextafter(most, 0.0)
    if not (is_number(nu) and 0 < nu <= min(1.0, most * (1 + 1e-12))):
        why = f": twice the share of the lighter class, {problem.classes[int(sides[0] < sides[1])]!r}" if most < 1 else ""
        raise InputError(f"nu is {nu!r}; for this data it must be in (0, {most:.6g}]{why}")
    return min(float(nu), most)


def scatter(values: Array, rows: Array, n: int) -> Array:
    """Return n numbers that are `values` at `rows`, and 0 elsewhere."""
    scattered = np.zeros(n)
    scattered[rows] = values
    return scattered
