"""The compiled loops of dual coordinate ascent and of conjugate gradients over stored rows; see `rows.visiting`."""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from gordan.compiling import compiled, compiled_in_order
from gordan.rows.kernels import sparse_product

# Entries of the `tally`: rows visited, largest violation in the last epoch, lowest score met in it, epochs done, and how many of
# the rows that it visited it brought to a bound or away from one.
TOUCHED, VIOLATION, LOWEST, EPOCHS, TURNED = 0, 1, 2, 3, 4
# Nothing is left to gain below this: scores are near 1 at the end.
ENOUGH = 1e-12
SMALLEST = np.finfo(np.float64).tiny


@compiled_in_order
def _shuffle(rows, count, state):
    """A random permutation of rows[:count] by a linear congruential generator; returns its next state."""
    for k in range(count - 1, 0, -1):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        j = np.int64((state >> np.uint64(33)) % np.uint64(k + 1))
        rows[k], rows[j] = rows[j], rows[k]
    return state


@compiled_in_order
def _step(g, x, cap, square, floor, ceiling, reflect):
    """The new x of one coordinate, its violation, and whether it may rest: at a bound, and clear of it by more than the
    largest violations of the epoch before. To `reflect` is to go twice as far, but never back."""
    if reflect:
        return (min(x - 2.0 * g / square, cap), g, False) if g < 0.0 else (x, 0.0, False)
    if x <= 0.0:
        if g > ceiling:
            return x, 0.0, True
        if g >= 0.0:
            return x, 0.0, False
    elif x >= cap:
        if g < floor:
            return x, 0.0, True
        if g <= 0.0:
            return x, 0.0, False
    return min(max(x - g / square, 0.0), cap), g, False


@compiled
def _dense_product(X, i, w):
    s = 0.0
    for j in range(X.shape[1]):
        s += X[i, j] * w[j]
    return s


@compiled
def _dense_add(X, i, q, w):
    for j in range(X.shape[1]):
        w[j] += q * X[i, j]


def _sparse_product(arrays, i, w):
    data, indices, indptr = arrays
    return sparse_product(data, indices, indptr, i, w)


def _sparse_add(arrays, i, q, w):
    data, indices, indptr = arrays
    for k in range(indptr[i], indptr[i + 1]):
        w[indices[k]] += q * data[k]


def row_product(arrays, i, w):
    """x_i·w, for dense or CSR arrays; which of the two is known when a kernel is compiled."""
    return _dense_product(*arrays, i, w) if len(arrays) == 1 else _sparse_product(arrays, i, w)


def row_add(arrays, i, q, w):
    """w += q x_i."""
    return _dense_add(*arrays, i, q, w) if len(arrays) == 1 else _sparse_add(arrays, i, q, w)


# The loops over sparse entries become part of the kernel that asks for them, in order as it is: with a call for each row epochs
# took twice the time at 84 entries a row. Dense ones are vectorised where they are.
@overload(row_product, inline="always")
def _row_product(arrays, i, w):
    return (lambda arrays, i, w: _dense_product(arrays[0], i, w)) if len(arrays) == 1 else _sparse_product


@overload(row_add, inline="always")
def _row_add(arrays, i, q, w):
    return (lambda arrays, i, q, w: _dense_add(arrays[0], i, q, w)) if len(arrays) == 1 else _sparse_add


@compiled_in_order
def ascend(
    arrays, signs, scale, sides, column, offset, rows, shrinking, caps, bend, square,
    x, w, epochs, until_separated, reflect, quiet, stream, tally,
):  # fmt: skip
    """Epochs over the rows in random order, those that rest left out; x and w change in place.

    `bend` is what x_i is multiplied by in its gradient beside A_i·w: one for each row, or one 0. `shrinking` says how many of the
    rows do not rest, and what lets one rest; `stream` is the state of the random numbers. Both go on from one call to the next.
    Ends early where the share of rows that come to a bound or leave it falls to `quiet`.
    """
    d = w.shape[0] - 1
    state = stream[0]
    active, floor, ceiling = np.int64(shrinking[0]), shrinking[1], shrinking[2]
    for epoch in range(epochs):
        state = _shuffle(rows, active, state)
        most, least, lowest = -np.inf, np.inf, np.inf
        k, turned = 0, 0
        while k < active:
            i = rows[k]
            score = signs[i] * scale * row_product(arrays, i, w) + sides[i] * (column * w[d] + offset)
            lowest = min(lowest, score)
            cap = caps[i] if caps.shape[0] > 1 else caps[0]
            own = bend[i] if bend.shape[0] > 1 else bend[0]
            new, violation, rest = _step(score - 1.0 + own * x[i], x[i], cap, square[i] + own, floor, ceiling, reflect)
            if rest:
                active -= 1
                rows[k], rows[active] = rows[active], rows[k]
                continue
            most, least = max(most, violation), min(least, violation)
            if new != x[i]:
                move = new - x[i]
                if (new <= 0.0) != (x[i] <= 0.0) or (new >= cap) != (x[i] >= cap):
                    turned += 1
                x[i] = new
                row_add(arrays, i, signs[i] * scale * move, w)
                w[d] += sides[i] * column * move
            k += 1
        tally[TOUCHED] += active
        tally[VIOLATION], tally[LOWEST], tally[EPOCHS], tally[TURNED] = most - least, lowest, epoch + 1.0, turned / max(active, 1)
        ceiling = most if most > 0.0 else np.inf
        floor = least if least < 0.0 else -np.inf
        if (until_separated and lowest > 0.0) or most - least <= ENOUGH or tally[TURNED] <= quiet:
            break
    shrinking[0], shrinking[1], shrinking[2] = active, floor, ceiling
    stream[0] = state


@compiled
def _square(u):
    """‖u‖²."""
    s = 0.0
    for j in range(u.shape[0]):
        s += u[j] * u[j]
    return s


@compiled_in_order
def _aimed(residual, share, ratio, direction, arrays, signs, scale, column, rows, u):
    """direction = ratio · direction - share · residual, and u = Σ_k direction_k A_rows[k]; the last entry of u belongs to the
    constant column, whose entries are y_i · column."""
    constant = 0.0
    u[:] = 0.0
    for k in range(rows.shape[0]):
        direction[k] = ratio * direction[k] - share[k] * residual[k]
        i = rows[k]
        q = signs[i] * direction[k]
        row_add(arrays, i, scale * q, u)
        constant += q
    u[u.shape[0] - 1] = column * constant


@compiled_in_order
def _less_means(gradient, share, groups, weights, residual):
    """residual = the gradient less its mean in each group, weighted by share; returns its largest entry and its size."""
    first, second = 0.0, 0.0
    for k in range(gradient.shape[0]):
        part = share[k] * gradient[k]
        first, second = first + (part if groups[k] == 0 else 0.0), second + (part if groups[k] != 0 else 0.0)
    first, second = first / weights[0], second / weights[1]
    worst, size = 0.0, 0.0
    for k in range(gradient.shape[0]):
        residual[k] = gradient[k] - (first if groups[k] == 0 else second)
        worst = max(worst, abs(residual[k]))
        size += residual[k] * residual[k] * share[k]
    return worst, size


@compiled_in_order
def level(arrays, signs, scale, column, rows, groups, share, caps, z, gradient, direction, residual, tally, rough, target, most):
    """Steps of conjugate gradients on min ½‖Σ z_k A_rows[k]‖² + pull·z, Σz fixed in each group; z and gradient change in place.

    Preconditioned by `share`, about 1/‖A_i‖². The gradient must be that at z when `tally[0]`, the size of the last residual, is
    0; otherwise `direction` and it go on where they were. Ends after `most` steps, or when no gradient differs from the mean of
    its group by more than `target`; or by more than `rough` where some z is not between 0 and its cap. Returns the steps done.
    """
    m, u = rows.shape[0], tally[2:]
    first, second = 0.0, 0.0  # Σ share of the groups: no array, so that they stay in registers
    for k in range(m):
        first, second = first + (share[k] if groups[k] == 0 else 0.0), second + (share[k] if groups[k] != 0 else 0.0)
    weights = max(first, SMALLEST), max(second, SMALLEST)
    for step in range(most):
        worst, size = _less_means(gradient, share, groups, weights, residual)
        tally[1] = worst
        if not worst > target:
            return step
        if not worst > rough:
            for k in range(m):
                if not 0.0 <= z[k] <= caps[k]:
                    return step
            rough = 0.0
        ratio = size / tally[0] if tally[0] > 0.0 else 0.0
        tally[0] = size
        _aimed(residual, share, ratio, direction, arrays, signs, scale, column, rows, u)
        curvature = _square(u)
        if not curvature > 0.0:  # no more to gain: the residual is rounding
            tally[1] = 0.0
            return step
        length, constant = size / curvature, column * u[-1]
        for k in range(m):
            i = rows[k]
            z[k] += length * direction[k]
            gradient[k] += length * signs[i] * (scale * row_product(arrays, i, u) + constant)
    return most
