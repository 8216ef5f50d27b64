"""Newton's method with conjugate gradients for the losses of many label vectors, all of them in the same passes over the rows.

Each label vector has its own step, but A w, Aᵀα and products with second derivatives are those of blocks of vectors. The second
derivatives J + AᵀhA do not depend on signs, and are the same for all label vectors at the start: one factorization of these is
the preconditioner of all steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gordan.arrays import Array
from gordan.blas import scipy_linalg
from gordan.losses import Loss
from gordan.memory import fits
from gordan.rows import Rows
from gordan.solve.loss_newton import TUNING as NEWTON
from gordan.solve.loss_newton import factorized


@dataclass(frozen=True)
class Tuning:
    """What the method is tuned by; `benchmarks/many.py` shows what it costs."""

    # Of the tolerance, what the gap in floats is brought to.
    share: float = 0.5
    steps: int = 60
    # Largest relative residual of conjugate gradients; how many of their steps cost as much as one would for a single vector; and
    # the least number of them that is worth beginning: where a factorization costs less, each label vector is left to its own.
    forcing: float = 0.1
    vectors_in_one: float = 6.0
    least_cg: int = 8
    # Numbers in a block of vectors over rows: what is held of these, some ten times over, however many label vectors there are;
    # and the fewest label vectors that share passes, where there is room.
    block: int = 1 << 20
    fewest: int = 4
    # Steps of a search along one direction, and the share of the slope that it leaves.
    searches: int = 12
    slope_left: float = 0.1


TUNING = Tuning()


def block_size(n: int) -> int:
    """How many label vectors of n rows are looked at together."""
    return max(TUNING.fewest if fits(80.0 * TUNING.fewest * n) else 1, TUNING.block // n)


@np.errstate(all="ignore")
def planes(rows: Rows, Y: Array, c: Array, loss: Loss, free: bool, tol: float, spent: Callable[[], bool]) -> tuple[Array, Array]:
    """For each column of signs Y (n × k, 0 leaves out) the w near the least ½wᵀJw + Σ c_i ℓ(y_i A_i·w), J = 0 for a free b, the
    last entry, and else 1, and the steps that it took. `rows` have no signs of their own; not finite where floats do not get
    there."""
    J, k = np.ones((rows.d, 1)), Y.shape[1]
    if free:
        J[-1] = 0.0
    c = c[:, None]
    W, S, todo = np.zeros((rows.d, k)), np.zeros(Y.shape), np.arange(k)
    precondition = _preconditioner(rows, np.mean(Y != 0, axis=1) * c[:, 0], loss, J[:, 0])
    first, steps = np.full(k, math.nan), np.zeros(k, np.int64)
    for _ in range(TUNING.steps):
        if spent():
            break
        y, w, s = Y[:, todo], W[:, todo], S[:, todo]
        if free:
            _shift(y, w, s, c, loss)
        z = y * s
        a = np.where(y != 0, loss.weight(z), 0.0)
        gradient = J * w - rows.combine(y * (c * a))
        value = 0.5 * np.sum(J * w * w, axis=0) + np.sum(np.where(y != 0, c * loss.cost(z), 0.0), axis=0)
        W[:, todo], S[:, todo] = w, s
        size = np.sum(J * gradient * gradient, axis=0)
        going = np.isfinite(value) & (0.5 * size > TUNING.share * tol * value)
        if not going.any() or spent():
            break
        todo, y, w, s, z, a, gradient = todo[going], *(part[:, going] for part in (y, w, s, z, a, gradient))
        first[todo] = np.where(np.isnan(first[todo]), size[going], np.fmax(first[todo], size[going]))
        h = np.where(y != 0, c * loss.curvature(z, a), 0.0)
        most = TUNING.vectors_in_one * _steps_for_a_factor(rows, np.count_nonzero(h) / len(todo))
        if steps.any() and most < TUNING.least_cg:
            break
        enough = np.minimum(TUNING.forcing, (size[going] / first[todo]) ** 0.25)
        step, met = _conjugate_gradients(rows, J, h, gradient, precondition, enough, int(max(most, TUNING.least_cg)))
        u = rows.scores(step)
        t = _search(y, z, y * u, c, loss, np.sum(J * w * step, axis=0), np.sum(J * step * step, axis=0))
        W[:, todo], S[:, todo] = w + t * step, s + t * u
        steps[todo] += 1
        if spent() or not met:
            break
    return W, steps


def _preconditioner(rows: Rows, c: Array, loss: Loss, J: Array) -> Callable[[Array], Array]:
    """What solves with J + AᵀhA for the h of w = 0, which is that of all label vectors; or with its diagonal, where columns are
    many."""
    zero = np.zeros(len(c))
    h = c * loss.curvature(zero, loss.weight(zero))
    d = rows.d
    if d <= NEWTON.most_factorized and fits(8 * NEWTON.copies * d * d):
        H = np.array(rows.moments(h)[0])
        H[np.diag_indices(d)] += J
        factor, scale = factorized(H)
        column, solve = scale[:, None], scipy_linalg().cho_solve
        return lambda r: np.asarray(column * solve((factor, True), column * r, check_finite=False))
    return np.array  # none: a copy


def _conjugate_gradients(
    rows: Rows,
    J: Array,
    h: Array,
    gradient: Array,
    precondition: Callable[[Array], Array],
    enough: Array,
    most: int,
) -> tuple[Array, bool]:
    """For each column s with (J + AᵀhA) s = -gradient, up to a share `enough` of it in the norm of the preconditioner; and
    whether so many steps were enough for most of them."""
    step, r = np.zeros_like(gradient), -gradient
    q = precondition(r)
    p, rq = q, np.sum(r * q, axis=0)
    aim, todo = enough**2 * rq, np.arange(gradient.shape[1])
    for _ in range(most):
        if not len(todo):
            break
        Hp = J * p + rows.combine(h[:, todo] * rows.scores(p))
        bend = np.sum(p * Hp, axis=0)
        t = np.where(bend > 0, rq / bend, 0.0)
        step[:, todo] += t * p
        r = r - t * Hp
        q = precondition(r)
        new = np.sum(r * q, axis=0)
        p = q + (new / rq) * p
        on = (new > aim[todo]) & (bend > 0)
        todo, p, r, rq = todo[on], p[:, on], r[:, on], new[on]
    return step, 2 * len(todo) <= gradient.shape[1]


def _steps_for_a_factor(rows: Rows, active: float) -> float:
    """How many steps of conjugate gradients cost as much as a factorization with so many rows of positive h, for one vector."""
    per_row = rows.entries / rows.n
    return (active * per_row * NEWTON.dense_pair * rows.d + NEWTON.cube * rows.d**3) / rows.entries


def _shift(y: Array, w: Array, s: Array, c: Array, loss: Loss) -> None:
    """Move b, the last entry of w, and with it all scores s, in each column to where both classes have the same mass."""
    low, high = np.full(w.shape[1], -math.inf), np.full(w.shape[1], math.inf)
    b, todo = np.zeros(w.shape[1]), np.arange(w.shape[1])
    for _ in range(TUNING.searches):
        own = y[:, todo]
        z = own * (s[:, todo] + b[todo])
        a = np.where(own != 0, loss.weight(z), 0.0)
        mass = c * a
        slope = -np.sum(own * mass, axis=0)
        low[todo], high[todo] = np.where(slope < 0, b[todo], low[todo]), np.where(slope > 0, b[todo], high[todo])
        bend = np.sum(np.where(own != 0, c * loss.curvature(z, a), 0.0), axis=0)
        new = b[todo] - slope / bend
        inside = (new > low[todo]) & (new < high[todo])
        middle = np.where(
            np.isinf(low[todo]),
            np.where(np.isinf(high[todo]), 0.0, high[todo] - 1.0 - np.abs(high[todo])),
            np.where(np.isinf(high[todo]), low[todo] + 1.0 + np.abs(low[todo]), 0.5 * (low[todo] + high[todo])),
        )
        new = np.where(inside, new, middle)
        on = (np.abs(slope) > 1e-13 * np.sum(mass, axis=0)) & (new != b[todo])
        b[todo[on]] = new[on]
        todo = todo[on]
        if not len(todo):
            break
    w[-1] += b
    s += b


def _search(y: Array, z: Array, u: Array, c: Array, loss: Loss, along: Array, bend: Array) -> Array:
    """For each column t > 0 near the least value along z + t u, as `loss_newton.line_search` for one."""
    used = y != 0
    t, low, high = np.ones(z.shape[1]), np.zeros(z.shape[1]), np.full(z.shape[1], math.inf)
    start = along - np.sum(np.where(used, c * loss.weight(z), 0.0) * u, axis=0)
    todo = np.arange(z.shape[1])
    for _ in range(TUNING.searches):
        ut, own = u[:, todo], used[:, todo]
        zt = z[:, todo] + t[todo] * ut
        a = np.where(own, loss.weight(zt), 0.0)
        slope = along[todo] + t[todo] * bend[todo] - np.sum(c * a * ut, axis=0)
        on = np.abs(slope) > TUNING.slope_left * np.abs(start[todo])
        if not on.any():
            break
        high[todo], low[todo] = np.where(slope > 0, t[todo], high[todo]), np.where(slope > 0, low[todo], t[todo])
        second = bend[todo] + np.sum(np.where(own, c * loss.curvature(zt, a), 0.0) * ut * ut, axis=0)
        new = t[todo] - slope / second
        inside = (new > low[todo]) & (new < high[todo])
        new = np.where(inside, new, np.where(np.isinf(high[todo]), 2 * t[todo], 0.5 * (low[todo] + high[todo])))
        t[todo[on]] = new[on]
        todo = todo[on]
    return t
