"""Wolfe's method on a Gram matrix, compiled: from a feasible p, one row enters or leaves at a time, and the norm always falls.

The rows with 0 < p_i < cap_i, which Wolfe calls the *corral*, are kept affinely independent, so that their Gram matrix (plus
SHIFT within each group) has a Cholesky factor. The factor is updated as rows enter and leave: a step costs the square of the
corral. For a row that depends on the corral, weight is moved along the dependence, which leaves Aᵀp as it is, until one of the
rows is at a bound: Carathéodory's reduction is part of the method. Scores are updated as base + K(p - p0): near the end p hardly
differs from p0, and they keep the digits of `base`.

A step may exchange as many rows as the corral has. So a call is limited not only by steps but by work, `left[1]`, which counts
the multiplications of a solve with the factor; other loops are counted as the multiplications that take as long.
"""

from __future__ import annotations

import numpy as np

from gordan.compiling import compiled, compiled_in_order

LOWER, FREE, UPPER = 0, 1, 2
# A row with less than this share of its square outside the span of the corral counts as dependent on it.
DEPENDENT_ROW = 1e-12
# Error of a score computed from a Gram matrix, for rows of norm at most 1.
GRAM_SCORE_ROUNDING = 1e-15
# Added to products within a group, which changes no p: affinely independent rows become linearly independent.
SHIFT = 1.0
# Scores that are all below this end the descent: ‖w‖² is no larger (where r is 0). It is larger than `zero_scores` of
# `restricted`, by which the hulls are said to meet, since here it follows only that more steps are not worthwhile.
NEGLIGIBLE_SCORES = 1e-12
# What it costs to remove a row, by the square of the rows below it, and to add the column of a row that has moved to a right-hand
# side: both loops jump from row to row in memory.
REMOVAL, MOVED = 12.0, 4.0


@compiled
def _dot(x, y, k):
    s = 0.0
    for j in range(k):
        s += x[j] * y[j]
    return s


@compiled_in_order
def _forward(L, m, r):
    """Replace r by L⁻¹r."""
    for i in range(m):
        r[i] = (r[i] - _dot(L[i], r, i)) / L[i, i]


@compiled
def _backward(L, m, r):
    """Replace r by L⁻ᵀr, row by row of L."""
    for i in range(m - 1, -1, -1):
        r[i] /= L[i, i]
        x = r[i]
        for j in range(i):
            r[j] -= L[i, j] * x


@compiled_in_order
def _column(K, groups, corral, m, i, r):
    """Set r to the column of row i in Q = K + (SHIFT within groups), over the corral."""
    for k in range(m):
        r[k] = K[corral[k], i] + (SHIFT if groups[corral[k]] == groups[i] else 0.0)


@compiled_in_order
def _append(K, groups, L, corral, m, i, r):
    """Append row i to the corral; return False, with r = L⁻¹(its column), if it depends on the corral."""
    _column(K, groups, corral, m, i, r)
    _forward(L, m, r)
    square = K[i, i] + SHIFT
    rest = square - _dot(r, r, m)
    if rest <= DEPENDENT_ROW * square:
        return False
    for j in range(m):
        L[m, j] = r[j]
    L[m, m] = np.sqrt(rest)
    corral[m] = i
    return True


@compiled_in_order
def _remove(L, corral, m, k):
    """Remove the k-th row: the rows below move up, and rotations make the factor triangular again."""
    for i in range(k, m - 1):
        corral[i] = corral[i + 1]
        for j in range(i + 2):
            L[i, j] = L[i + 1, j]
    for i in range(k, m - 1):
        a, b = L[i, i], L[i, i + 1]
        length = np.hypot(a, b)
        c, s = a / length, b / length
        for j in range(i, m - 1):
            x, y = L[j, i], L[j, i + 1]
            L[j, i] = c * x + s * y
            L[j, i + 1] = c * y - s * x


@compiled_in_order
def _settle(caps, p, state, j, at_cap):
    """Put row j at its bound."""
    p[j], state[j] = (caps[j], UPPER) if at_cap else (0.0, LOWER)


@compiled_in_order
def _join(K, groups, caps, p, state, L, corral, m, i, rising, r, left):
    """Bring row i into the corral, which other rows may leave for it, and return the size of the corral.

    Where row i depends on the corral, A_i = Σ r_k A_k, weight is moved along the dependence, to row i if it is `rising` and from
    it otherwise, until a row of the corral reaches a bound and leaves, or row i does and stays out.
    """
    left[1] -= 0.5 * m * m
    while m > 0 and not _append(K, groups, L, corral, m, i, r):
        if left[1] <= 0.0:
            return m
        _backward(L, m, r)
        sign = -1.0 if rising else 1.0
        t, blocking = caps[i] - p[i] if rising else p[i], np.int64(-1)
        for k in range(m):
            j, change = corral[k], sign * r[k]
            room = np.inf
            if change < 0.0:
                room = -p[j] / change
            elif change > 0.0 and caps[j] < np.inf:
                room = (caps[j] - p[j]) / change
            if room < t:
                t, blocking = max(room, 0.0), k
        for k in range(m):
            j = corral[k]
            p[j] = min(max(p[j] + t * sign * r[k], 0.0), caps[j])
        p[i] -= sign * t
        if blocking < 0:
            _settle(caps, p, state, i, rising)
            return m
        _settle(caps, p, state, corral[blocking], sign * r[blocking] > 0.0)
        _remove(L, corral, m, blocking)
        left[1] -= 1.0 * m * m + REMOVAL * (m - blocking) ** 2
        m = m - np.int64(1)
    if m == 0:
        corral[0] = i
        L[0, 0] = np.sqrt(K[i, i] + SHIFT)
    state[i] = FREE
    return m + np.int64(1)


@compiled
def _scores(K, base, p, p0, scores):
    """Set scores to base + K(p - p0): near p0 they are as exact as `base`."""
    for i in range(K.shape[0]):
        scores[i] = base[i]
    for j in range(K.shape[0]):
        x = p[j] - p0[j]
        if x != 0.0:
            for i in range(K.shape[0]):
                scores[i] += K[j, i] * x


@compiled_in_order
def _stationary(K, base, p, p0, groups, mass, L, corral, m, V):
    """Set V[count] to the optimum of the face minus p, over the corral; return False if the system is singular.

    A group without rows in the corral is left out: all its rows are at bounds, and these hold its mass.
    """
    n, count = p.shape[0], mass.shape[0]
    sums, missing = np.zeros((count, count + 1)), mass.copy()
    u = V[count]
    for k in range(m):
        u[k] = -base[corral[k]]
    for j in range(n):
        missing[groups[j]] -= p[j]
        x = p[j] - p0[j]
        if x != 0.0:
            for k in range(m):
                u[k] -= K[j, corral[k]] * x
    _forward(L, m, u)
    _backward(L, m, u)
    for g in range(count):
        v = V[g]
        for k in range(m):
            v[k] = 1.0 if groups[corral[k]] == g else 0.0
        _forward(L, m, v)
        _backward(L, m, v)
    for k in range(m):
        g = groups[corral[k]]
        for h in range(count + 1):
            sums[g, h] += V[h, k]
    for g in range(count):
        missing[g] -= sums[g, count]
    for g in range(count):
        if sums[g, g] == 0.0:
            continue
        regular, level = _group_level(sums, missing, g, count - 1 - g)
        if not regular:
            return False
        for k in range(m):
            u[k] += level * V[g, k]
    return True


@compiled_in_order
def _group_level(sums, missing, g, h):
    """Return whether the equations for the levels are regular, and the level of group g; h is the other group, or g."""
    if h == g or sums[h, h] == 0.0:
        return True, missing[g] / sums[g, g]
    det = sums[g, g] * sums[h, h] - sums[g, h] * sums[h, g]
    return (True, (missing[g] * sums[h, h] - missing[h] * sums[g, h]) / det) if det > 0.0 else (False, 0.0)


@compiled_in_order
def _levels(scores, groups, state, levels):
    """Set levels to the mean score of the free rows of each group.

    Where no row is free it is the highest score of a row at its cap, and where there is none either, the lowest of all.
    """
    free = np.zeros(levels.shape[0])
    levels[:] = 0.0
    for i in range(scores.shape[0]):
        if state[i] == FREE:
            levels[groups[i]] += scores[i]
            free[groups[i]] += 1.0
    for g in range(levels.shape[0]):
        levels[g] = levels[g] / free[g] if free[g] > 0.0 else -np.inf
    for i in range(scores.shape[0]):
        if state[i] == UPPER and free[groups[i]] == 0.0:
            levels[groups[i]] = max(levels[groups[i]], scores[i])
    for g in range(levels.shape[0]):
        if levels[g] == -np.inf:  # the group has no mass
            levels[g] = np.min(scores)


@compiled_in_order
def _partner(scores, groups, state, i):
    """Return the row at its cap that must give what row i takes, if no row of its group is free; -1 otherwise."""
    found = np.int64(-1)
    for j in range(scores.shape[0]):
        if groups[j] == groups[i] and j != i:
            if state[j] == FREE:
                return np.int64(-1)
            if state[j] == UPPER and (found < 0 or scores[j] > scores[found]):
                found = j
    return found


@compiled_in_order
def _move(caps, p, corral, m, move):
    """Move p to the optimum of its face, or as far as bounds allow; return the position of the blocking row, or -1."""
    t, blocking = 1.0, np.int64(-1)
    for k in range(m):
        j = corral[k]
        room = np.inf
        if p[j] + move[k] < 0.0:
            room = -p[j] / move[k]
        elif p[j] + move[k] > caps[j]:
            room = (caps[j] - p[j]) / move[k]
        if room < t:
            t, blocking = max(room, 0.0), k
    for k in range(m):
        j = corral[k]
        p[j] = min(max(p[j] + t * move[k], 0.0), caps[j])
    return blocking


@compiled_in_order
def _entering(scores, levels, groups, state, noise):
    """Return the row at a bound that gains most by leaving it; -1 where none gains more than the noise."""
    best, entering = noise, np.int64(-1)
    for i in range(scores.shape[0]):
        slack = scores[i] - levels[groups[i]]
        gain = 0.0 if state[i] == FREE else (slack if state[i] == UPPER else -slack)
        if gain > best:
            best, entering = gain, i
    return entering


@compiled_in_order
def descend(K, base, groups, mass, caps, order, p, tol, left, scores, levels):
    """Minimize base·(p - p0) + ½(p - p0)ᵀK(p - p0) from the feasible p0 that p holds, in place; p_i ≤ caps_i, Σp = mass_g.

    `base` has the scores at p0. Return whether the score of every row is on the right side of the level of its group, up to `tol`
    and rounding, after at most left[0] steps and about left[1] multiplications. What is done is taken off `left`.
    """
    n, count = K.shape[0], mass.shape[0]
    state = np.zeros(n, np.int8)
    corral = np.empty(n + 1, np.int64)
    L = np.empty((n + 1, n + 1))
    V = np.empty((count + 1, n + 1))
    r = np.empty(n + 1)
    base, p0 = base.copy(), p.copy()
    m = np.int64(0)  # one type throughout, since a kernel is compiled for each
    for i in range(n):
        if p[i] >= caps[i]:
            _settle(caps, p, state, i, True)
    for i in order:  # the heaviest first: rows that depend on them give them their weight
        if p[i] > 0.0 and state[i] == LOWER and left[1] > 0.0:
            m = _join(K, groups, caps, p, state, L, corral, m, i, False, r, left)
    while left[0] > 0.0:
        left[0] -= 1.0
        while left[1] > 0.0 and _stationary(K, base, p, p0, groups, mass, L, corral, m, V):
            left[1] -= (count + 1.0) * m * m
            blocking = _move(caps, p, corral, m, V[count])
            if blocking < 0:
                break
            _settle(caps, p, state, corral[blocking], V[count, blocking] > 0.0)
            _remove(L, corral, m, blocking)
            left[1] -= MOVED * m * m + REMOVAL * (m - blocking) ** 2
            m = m - np.int64(1)
        _scores(K, base, p, p0, scores)
        left[1] -= 1.0 * n * m
        base[:], p0[:] = scores, p  # so that p differs from p0 in few rows
        _levels(scores, groups, state, levels)
        size, width = 0.0, 0.0
        for i in range(n):
            size = max(size, abs(scores[i]))
        if size <= NEGLIGIBLE_SCORES:
            return True
        if left[1] <= 0.0:  # p may not be the optimum of its face
            return False
        for g in range(count):
            width += abs(levels[g])
        entering = _entering(scores, levels, groups, state, max(tol * width, GRAM_SCORE_ROUNDING))
        if entering < 0:
            return True
        partner = _partner(scores, groups, state, entering)
        if partner >= 0:
            m = _join(K, groups, caps, p, state, L, corral, m, partner, False, r, left)
        m = _join(K, groups, caps, p, state, L, corral, m, entering, state[entering] == LOWER, r, left)
    return False
