"""The compiled loops of dual coordinate ascent and of conjugate gradients over stored rows; see `rows.visiting`."""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from gordan.compiling import compiled, compiled_in_order
from gordan.rows.kernels import sparse_product

# Entries of the `tally`: the rows visited in all, the epochs done, and of the last epoch the largest violation, the lowest score,
# and the share of its rows that reached or left a bound.
TOUCHED, VIOLATION, LOWEST, EPOCHS, TURNED = 0, 1, 2, 3, 4
# Violations up to this are rounding errors, because scores are near 1 at the end.
SOLVED_VIOLATION = 1e-12
# Divisors are raised to this.
SMALLEST = np.finfo(np.float64).tiny


@compiled_in_order
def shuffle(rows, count, state):
    """Permute rows[:count] at random by a linear congruential generator, and return its next state."""
    for k in range(count - 1, 0, -1):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        j = np.int64((state >> np.uint64(33)) % np.uint64(k + 1))
        rows[k], rows[j] = rows[j], rows[k]
    return state


@compiled_in_order
def _step(g, x, cap, square, floor, ceiling, reflect):
    """Return the new x of one coordinate, its violation, and whether the row may be shrunk.

    It may be if it is at a bound and its gradient is beyond the largest violations of the previous epoch. With `reflect`, x moves
    twice as far, but never back.
    """
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
    """Return x_i·w for dense or CSR arrays; which of the two is decided when a kernel is compiled."""
    return _dense_product(*arrays, i, w) if len(arrays) == 1 else _sparse_product(arrays, i, w)


def row_add(arrays, i, q, w):
    """Add q x_i to w."""
    return _dense_add(*arrays, i, q, w) if len(arrays) == 1 else _sparse_add(arrays, i, q, w)


# The loops over sparse entries are inlined into the kernel that calls them and keep their order: with a call for each row, epochs
# took twice as long at 84 entries per row. The loops over dense entries are vectorised by themselves.
@overload(row_product, inline="always")
def _row_product(arrays, i, w):
    return (lambda arrays, i, w: _dense_product(arrays[0], i, w)) if len(arrays) == 1 else _sparse_product


@overload(row_add, inline="always")
def _row_add(arrays, i, q, w):
    return (lambda arrays, i, q, w: _dense_add(arrays[0], i, q, w)) if len(arrays) == 1 else _sparse_add


@compiled_in_order
def ascend(
    arrays, signs, scale, signs_of_column, column, offset, rows, shrinking, caps, ridge, square,
    x, w, epochs, until_separated, reflect, quiet, stream, tally,
):  # fmt: skip
    """Run epochs over the active rows in random order; x and w change in place.

    `ridge` is the coefficient of x_i in its gradient beside A_i·w: one for each row, or a single 0. `shrinking` holds the number
    of active rows and the violations beyond which a row is shrunk, `stream` the state of the random numbers; both carry over from
    one call to the next. Stops early if the share of rows that reach or leave a bound falls to `quiet`; returns whether it did,
    in the last epoch too, or whether there is nothing left to do.
    """
    d = w.shape[0] - 1
    state, stopped = stream[0], False
    active, floor, ceiling = np.int64(shrinking[0]), shrinking[1], shrinking[2]
    for epoch in range(epochs):
        state = shuffle(rows, active, state)
        most, least, lowest = -np.inf, np.inf, np.inf
        k, turned = 0, 0
        while k < active:
            i = rows[k]
            score = signs[i] * scale * row_product(arrays, i, w) + signs_of_column[i] * (column * w[d] + offset)
            lowest = min(lowest, score)
            cap = caps[i] if caps.shape[0] > 1 else caps[0]
            own = ridge[i] if ridge.shape[0] > 1 else ridge[0]
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
                w[d] += signs_of_column[i] * column * move
            k += 1
        tally[TOUCHED] += active
        tally[VIOLATION], tally[LOWEST], tally[EPOCHS], tally[TURNED] = most - least, lowest, epoch + 1.0, turned / max(active, 1)
        ceiling = most if most > 0.0 else np.inf
        floor = least if least < 0.0 else -np.inf
        stopped = (until_separated and lowest > 0.0) or most - least <= SOLVED_VIOLATION or tally[TURNED] <= quiet
        if stopped:
            break
    shrinking[0], shrinking[1], shrinking[2] = active, floor, ceiling
    stream[0] = state
    return stopped


@compiled
def _square(u):
    """Return ‖u‖²."""
    s = 0.0
    for j in range(u.shape[0]):
        s += u[j] * u[j]
    return s


@compiled_in_order
def _set_direction(residual, share, ratio, direction, arrays, signs, scale, column, rows, u):
    """Set direction = ratio · direction - share · residual and u = Σ_k direction_k A_rows[k].

    The last entry of u belongs to the constant column, whose entries are y_i · column.
    """
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
def _set_residual(gradient, share, groups, weights, residual):
    """Set residual to the gradient minus its mean in each group, weighted by share; return its largest entry and its size."""
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
    """Run conjugate gradients on min ½‖Σ z_k A_rows[k]‖² + pull·z, Σz fixed in each group; z and gradient change in place.

    The preconditioner is `share`, about 1/‖A_i‖². If `tally[0]`, the size of the last residual, is 0, the gradient must be that
    at z; otherwise the iteration continues with `direction` and `gradient` as they are. Stops after `most` steps, or when no
    entry of the gradient differs from the mean of its group by more than `target`, or by more than `rough` while some z is not
    between 0 and its cap. Returns the number of steps.
    """
    m, u = rows.shape[0], tally[2:]
    first, second = 0.0, 0.0  # Σ share of the groups; scalars rather than an array, so that they stay in registers
    for k in range(m):
        first, second = first + (share[k] if groups[k] == 0 else 0.0), second + (share[k] if groups[k] != 0 else 0.0)
    weights = max(first, SMALLEST), max(second, SMALLEST)
    for step in range(most):
        worst, size = _set_residual(gradient, share, groups, weights, residual)
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
        _set_direction(residual, share, ratio, direction, arrays, signs, scale, column, rows, u)
        curvature = _square(u)
        if not curvature > 0.0:  # the residual is rounding error
            tally[1] = 0.0
            return step
        length, constant = size / curvature, column * u[-1]
        for k in range(m):
            i = rows[k]
            z[k] += length * direction[k]
            gradient[k] += length * signs[i] * (scale * row_product(arrays, i, u) + constant)
    return most
