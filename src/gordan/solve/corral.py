"""Wolfe's method on a Gram matrix, compiled: from a feasible p, one row in or out at a time, the norm falling in every step.

The rows with 0 < p_i < cap_i, the *corral*, are kept affinely independent, so their Gram matrix (plus `shift` within each group)
has a Cholesky factor, which is updated as rows come and go: a step costs the square of the corral. A row that depends on it
is taken out along the dependence, which leaves Aᵀp as it is: Carathéodory's reduction comes with the method.
"""

from __future__ import annotations

import numpy as np

from gordan.rows.kernels import compiled, compiled_in_order

LOWER, FREE, UPPER = 0, 1, 2
# A row with less than this share of its square outside the span of the corral counts as dependent on it.
DEPENDENT = 1e-13
# Error of a score computed from a Gram matrix, for rows of norm at most 1.
ROUNDING = 1e-15


@compiled
def _dot(x, y, k):
    s = 0.0
    for j in range(k):
        s += x[j] * y[j]
    return s


@compiled_in_order
def _forward(L, m, r):
    """r becomes L⁻¹r."""
    for i in range(m):
        r[i] = (r[i] - _dot(L[i], r, i)) / L[i, i]


@compiled
def _backward(L, m, r):
    """r becomes L⁻ᵀr, row by row of L."""
    for i in range(m - 1, -1, -1):
        r[i] /= L[i, i]
        x = r[i]
        for j in range(i):
            r[j] -= L[i, j] * x


@compiled_in_order
def _column(K, groups, shift, corral, m, i, r):
    """r becomes the column of row i in Q = K + (shift within groups), over the corral."""
    for k in range(m):
        r[k] = K[corral[k], i] + (shift if groups[corral[k]] == groups[i] else 0.0)


@compiled_in_order
def _append(K, groups, shift, L, corral, m, i, r):
    """Row i joins the corral; False, and r = L⁻¹(its column), if it depends on it."""
    _column(K, groups, shift, corral, m, i, r)
    _forward(L, m, r)
    square = K[i, i] + shift
    rest = square - _dot(r, r, m)
    if rest <= DEPENDENT * square:
        return False
    for j in range(m):
        L[m, j] = r[j]
    L[m, m] = np.sqrt(rest)
    corral[m] = i
    return True


@compiled_in_order
def _remove(L, corral, m, k):
    """The k-th row leaves: the rows below move up, and rotations make the factor triangular again."""
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
def _settle(K, caps, p, state, load, j, at_cap):
    """Row j goes to its bound; `load` holds what the rows at their caps add to every score."""
    p[j], state[j] = (caps[j], UPPER) if at_cap else (0.0, LOWER)
    if at_cap:
        for i in range(K.shape[0]):
            load[i] += K[j, i] * caps[j]


@compiled_in_order
def _unsettle(K, caps, state, load, j):
    """Row j leaves its bound."""
    if state[j] == UPPER:
        for i in range(K.shape[0]):
            load[i] -= K[j, i] * caps[j]
    state[j] = FREE


@compiled_in_order
def _join(K, groups, shift, caps, p, state, load, L, corral, m, i, r):
    """Row i, of weight p_i, joins the corral, or gives its weight to it where it depends on it. Returns the corral's size."""
    while m > 0 and not _append(K, groups, shift, L, corral, m, i, r):
        _backward(L, m, r)  # A_i = Σ r_k A_k: take t from p_i, add t r_k to p_k
        t, blocking = p[i], np.int64(-1)
        for k in range(m):
            j = corral[k]
            room = np.inf
            if r[k] < 0.0:
                room = -p[j] / r[k]
            elif r[k] > 0.0 and caps[j] < np.inf:
                room = (caps[j] - p[j]) / r[k]
            if room < t:
                t, blocking = max(room, 0.0), k
        for k in range(m):
            j = corral[k]
            p[j] = min(max(p[j] + t * r[k], 0.0), caps[j])
        p[i] -= t
        if blocking < 0:
            p[i], state[i] = 0.0, LOWER
            return m
        j = corral[blocking]
        _settle(K, caps, p, state, load, j, r[blocking] > 0.0)
        _remove(L, corral, m, blocking)
        m = m - np.int64(1)
    if m == 0:
        corral[0] = i
        L[0, 0] = np.sqrt(K[i, i] + shift)
    state[i] = FREE
    return m + np.int64(1)


@compiled_in_order
def _enter(K, groups, shift, caps, p, state, load, L, corral, m, i, r):
    """Row i leaves its bound for the corral. Returns the corral's size.

    Where it depends on the corral, to rounding, weight moves between it and the rows it depends on until one of these is at a
    bound and leaves, or row i arrives at its other bound: its score says that the norm falls on the way.
    """
    upwards = 1.0 if state[i] == LOWER else -1.0
    _unsettle(K, caps, state, load, i)
    while m > 0 and not _append(K, groups, shift, L, corral, m, i, r):
        _backward(L, m, r)
        t, blocking = (caps[i] - p[i] if upwards > 0.0 else p[i]), np.int64(-1)
        for k in range(m):
            j = corral[k]
            change = -upwards * r[k]
            room = np.inf
            if change < 0.0:
                room = -p[j] / change
            elif change > 0.0 and caps[j] < np.inf:
                room = (caps[j] - p[j]) / change
            if room < t:
                t, blocking = max(room, 0.0), np.int64(k)
        for k in range(m):
            j = corral[k]
            p[j] = min(max(p[j] - upwards * t * r[k], 0.0), caps[j])
        p[i] = min(max(p[i] + upwards * t, 0.0), caps[i])
        if blocking < 0:
            _settle(K, caps, p, state, load, i, upwards > 0.0)
            return m
        j = corral[blocking]
        _settle(K, caps, p, state, load, j, -upwards * r[blocking] > 0.0)
        _remove(L, corral, m, blocking)
        m = m - np.int64(1)
    if m == 0:
        corral[0] = i
        L[0, 0] = np.sqrt(K[i, i] + shift)
    return m + np.int64(1)


@compiled_in_order
def _stationary(load, groups, shift, mass, caps, state, L, corral, m, V, levels):
    """The optimum z of the face in V[count], over the corral; `levels` get the scores of its rows. False if it is singular."""
    count = mass.shape[0]
    sums, fixed = np.zeros((count, count + 1)), np.zeros(count)
    u = V[count]
    bounded = False
    for k in range(m):
        u[k] = -load[corral[k]]
        bounded |= u[k] != 0.0
    for j in range(state.shape[0]):
        if state[j] == UPPER:
            fixed[groups[j]] += caps[j]
    if bounded:
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
    if count == 1:
        if sums[0, 0] <= 0.0:
            return False
        levels[0] = (mass[0] - fixed[0] - sums[0, 1]) / sums[0, 0]
    else:
        a0, a1 = mass[0] - fixed[0] - sums[0, 2], mass[1] - fixed[1] - sums[1, 2]
        det = sums[0, 0] * sums[1, 1] - sums[0, 1] * sums[1, 0]
        if det <= 0.0:
            return False
        levels[0] = (a0 * sums[1, 1] - a1 * sums[0, 1]) / det
        levels[1] = (a1 * sums[0, 0] - a0 * sums[1, 0]) / det
    for k in range(m):
        for g in range(count):
            u[k] += levels[g] * V[g, k]
    for g in range(count):
        levels[g] -= shift * (mass[g] - fixed[g])
    return True


@compiled
def _scores(K, load, p, corral, m, scores):
    """scores = K p + pull."""
    for i in range(K.shape[0]):
        scores[i] = load[i]
    for k in range(m):
        j = corral[k]
        x = p[j]
        for i in range(K.shape[0]):
            scores[i] += K[j, i] * x


@compiled_in_order
def descend(K, pull, groups, shift, mass, caps, order, p, tol, zero, most, scores, levels):
    """Minimize ½pᵀKp + pull·p from the feasible p, in place, with p_i ≤ caps_i and Σp = mass_g in each group.

    Returns whether it ended with every row's score on the right side of its group's level, up to `tol`, or with all scores at
    most `zero`.
    """
    n, count = K.shape[0], mass.shape[0]
    state = np.zeros(n, np.int8)
    corral = np.empty(n + 1, np.int64)
    L = np.empty((n + 1, n + 1))
    V = np.empty((count + 1, n + 1))
    r = np.empty(n + 1)
    load = pull + 0.0
    m = np.int64(0)  # one type throughout: a kernel is compiled anew for every other
    for i in range(n):
        if p[i] >= caps[i]:
            _settle(K, caps, p, state, load, i, True)
    for i in order:  # the heaviest first: the lighter ones give their weight to them
        if p[i] > 0.0 and state[i] == LOWER:
            m = _join(K, groups, shift, caps, p, state, load, L, corral, m, i, r)
    for g in range(count):  # a group whose rows are all at bounds needs one that can move
        free, first = False, np.int64(-1)
        for i in range(n):
            if groups[i] == g:
                free |= state[i] == FREE
                if state[i] == UPPER:
                    first = i
        if not free and first >= 0:
            _unsettle(K, caps, state, load, first)
            m = _join(K, groups, shift, caps, p, state, load, L, corral, m, first, r)
    for _ in range(most):
        while _stationary(load, groups, shift, mass, caps, state, L, corral, m, V, levels):
            t, blocking = 1.0, np.int64(-1)
            for k in range(m):
                j = corral[k]
                move = V[count, k] - p[j]
                room = np.inf
                if V[count, k] < 0.0:
                    room = -p[j] / move
                elif V[count, k] > caps[j]:
                    room = (caps[j] - p[j]) / move
                if room < t:
                    t, blocking = max(room, 0.0), k
            for k in range(m):
                j = corral[k]
                p[j] = min(max(p[j] + t * (V[count, k] - p[j]), 0.0), caps[j])
            if blocking < 0:
                break
            j = corral[blocking]
            _settle(K, caps, p, state, load, j, V[count, blocking] > caps[j])
            _remove(L, corral, m, blocking)
            m = m - np.int64(1)
        _scores(K, load, p, corral, m, scores)
        size, width = 0.0, 0.0
        for i in range(n):
            size = max(size, abs(scores[i]))
        if size <= zero:
            return True
        for g in range(count):
            width += abs(levels[g])
        noise = max(tol * width, ROUNDING)
        best, entering = noise, np.int64(-1)
        for i in range(n):
            slack = scores[i] - levels[groups[i]]
            gain = 0.0 if state[i] == FREE else (slack if state[i] == UPPER else -slack)
            if gain > best:
                best, entering = gain, np.int64(i)
        if entering < 0:
            return True
        m = _enter(K, groups, shift, caps, p, state, load, L, corral, m, entering, r)
    return False
