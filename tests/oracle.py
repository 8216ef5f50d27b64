"""What is true, for problems of a dozen rows: separability, weak separation and the largest margin in exact rational arithmetic.

Written for the tests with integers and fractions only; nothing of gordan is used. `rows` are the A_i = y_i x_i, or y_i (x_i, 1).
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations


def whole(rows):
    """The rows (of floats, integers or fractions) times a common denominator, as integers, and that denominator."""
    rows = [[x.as_integer_ratio() for x in row] for row in rows]
    scale = math.lcm(*(q for row in rows for _, q in row))
    return [[p * (scale // q) for p, q in row] for row in rows], scale


def separable(rows):
    """Whether some w has A w > 0: the simplex method with Bland's rule on max t, A w ≥ t, t ≤ 1.

    Dictionary form, w = w⁺ - w⁻; w needs no bounds, since they only scale it. All entries are integers over one denominator.
    """
    # a positive factor does not change the sign of a row's score
    rows = [[x // (math.gcd(*row) or 1) for x in row] for row in (whole([row])[0][0] for row in rows)]
    k = len(rows[0])
    table = [[*(-x for x in row), *row, 1, 0] for row in rows]  # t - A_i w⁺ + A_i w⁻ + slack = 0
    table += [[0] * (2 * k) + [1, 1], [0] * (2 * k) + [-1, 0]]  # t + slack = 1; the objective
    return _maximize(table, enough=0) > 0


def weakly(rows, objective):
    """max objective·w over the w with A w ≥ 0 and |w_j| ≤ 1."""
    rows = [[x // (math.gcd(*row) or 1) for x in row] for row in (whole([row])[0][0] for row in rows)]
    ((objective,), scale) = whole([objective])
    k = len(objective)
    table = [[*(-x for x in row), *row, 0] for row in rows]
    table += [[int(i == j) for i in range(2 * k)] + [1] for j in range(2 * k)]
    return _maximize([*table, [*(-x for x in objective), *objective, 0]]) / scale


def rank(rows):
    """The rank of rational rows: fraction-free elimination."""
    rows, found, previous = [whole([row])[0][0] for row in rows], 0, 1
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(found, len(rows)) if rows[i][column]), None)
        if pivot is not None:
            rows[found], rows[pivot] = rows[pivot], rows[found]
            top = rows[found]
            for i in range(found + 1, len(rows)):
                factor = rows[i][column]
                rows[i] = [(top[column] * a - factor * b) // previous for a, b in zip(rows[i], top, strict=True)]
            previous = top[column]
            found += 1
    return found


def _maximize(table, enough=None):
    """The largest value of the objective in the last row (with its signs changed), or any above `enough`: the simplex method with
    Bland's rule from a dictionary whose constants, the last column, are not negative."""
    constraints, variables = len(table) - 1, len(table[0]) - 1
    outside, inside = list(range(variables)), list(range(variables, variables + constraints))
    denominator = 1
    while enough is None or table[-1][-1] <= enough * denominator:
        entering = min((j for j in range(variables) if table[-1][j] < 0), key=outside.__getitem__, default=None)
        if entering is None:
            break
        candidates = [i for i in range(constraints) if table[i][entering] > 0]
        leaving = min(candidates, key=lambda i: (Fraction(table[i][-1], table[i][entering]), inside[i]))
        pivot, pivot_row = table[leaving][entering], table[leaving]
        for i, row in enumerate(table):
            if i != leaving:
                factor = row[entering]
                table[i] = [(x * pivot - factor * y) // denominator for x, y in zip(row, pivot_row, strict=True)]
                table[i][entering] = -factor
        pivot_row[entering] = denominator
        denominator = pivot
        outside[entering], inside[leaving] = inside[leaving], outside[entering]
    return Fraction(table[-1][-1], denominator)


def squared_margin(rows):
    """min ‖Σ p_i A_i‖² over p ≥ 0, Σp = 1: Wolfe's minimum-norm point, exactly. It is γ*², and 0 where nothing separates."""
    points, scale = whole(rows)
    gram = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in points] for a in points]
    corral = [min(range(len(points)), key=lambda i: gram[i][i])]
    p, total = [1], 1  # weights as integers over their sum
    while True:
        products = [sum(weight * gram[i][j] for i, weight in zip(corral, p, strict=True)) for j in range(len(points))]
        length = sum(weight * products[i] for i, weight in zip(corral, p, strict=True))  # times total²
        nearest = min(range(len(points)), key=products.__getitem__)
        if products[nearest] * total >= length:
            return Fraction(length, total**2 * scale**2)
        corral, p = [*corral, nearest], [*p, 0]
        while True:
            target, size = _affine_minimizer([[gram[i][j] for j in corral] for i in corral])
            # the share of the way to the target at which the first weight is 0
            ways = [Fraction(a * size, a * size - b * total) for a, b in zip(p, target, strict=True) if b <= 0]
            step = min(ways, default=Fraction(1))
            near, far = (step.denominator - step.numerator) * size, step.numerator * total
            p = [near * a + far * b for a, b in zip(p, target, strict=True)]
            kept = [j for j, weight in enumerate(p) if weight > 0]
            corral, p = [corral[j] for j in kept], [p[j] for j in kept]
            common = math.gcd(*p)
            p = [weight // common for weight in p]
            total = sum(p)
            if not ways:
                break


def free(points, labels):
    """Half the differences of the points labelled 1 and the others: what takes the place of the rows with a free intercept."""
    points, scale = whole(points)
    sides = [[point for point, label in zip(points, labels, strict=True) if (label == 1) == side] for side in (1, 0)]
    return [[Fraction(x - y, 2 * scale) for x, y in zip(a, b, strict=True)] for a in sides[0] for b in sides[1]]


def squared_margin_free(points, labels):
    """The square of half the distance between the hulls of the points labelled 1 and of the others."""
    return squared_margin(free(points, labels))


def sup_margin(rows):
    """max_w min_i A_i·w over Σ|w_j| ≤ 1, or 0: the margin for the norm ∞, by the simplex method."""
    rows, scale = whole(rows)
    k = len(rows[0])
    table = [[*(-x for x in row), *row, 1, 0] for row in rows]
    table += [[1] * (2 * k) + [0, 1], [0] * (2 * k) + [-1, 0]]
    return _maximize(table) / scale


def means(rows, k):
    """All means of k of the rows: the corners of their hull with weights of at most 1/k."""
    rows, scale = whole(rows)
    return [[Fraction(sum(column), k * scale) for column in zip(*chosen, strict=True)] for chosen in combinations(rows, k)]


def _affine_minimizer(gram):
    """The λ with Σλ = 1 that minimizes λ·Gλ, for affinely independent points, as integers and their sum: Bareiss elimination on
    the optimality system, after which the diagonal is one number."""
    size = len(gram) + 1
    table = [[0, *[1] * (size - 1), 1]] + [[1, *row, 0] for row in gram]
    previous = 1
    for k in range(size):
        chosen = next(i for i in range(k, size) if table[i][k])
        table[k], table[chosen] = table[chosen], table[k]
        pivot, pivot_row = table[k][k], table[k]
        for i in range(size):
            if i != k:
                factor = table[i][k]
                table[i] = [(x * pivot - factor * y) // previous for x, y in zip(table[i], pivot_row, strict=True)]
        previous = pivot
    sign = 1 if previous > 0 else -1
    return [sign * table[i][-1] for i in range(1, size)], sign * previous
