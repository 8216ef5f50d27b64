"""Newton's method on the game with a proximal term, for rows on a GPU, or where very many rows are at their caps.

The p-player stays near its last weights c: p(w) = argmin_{p∈P} pᵀAw + (τ/2) Σ (p_i - c_i)²/D_i, where D is the size that a weight
is expected to have (its cap, under caps). That makes ψ(w) = -½‖w‖² + min_p (…) concave and smooth, with ∇ψ = Aᵀp(w) - w and, over
the rows F whose weight is at neither bound, the generalized Hessian

    -I - (1/τ) Σ_groups (A_Fᵀ D_F A_F - f fᵀ/Σ_F D),   f = A_Fᵀ D_F 1:

a d × d matrix, whatever n. A step costs two passes and a product with the rows of F; the line search costs none, since A w is
linear. From round to round τ falls and c is the last p: this is the method of multipliers, which ends at the equilibrium itself.
Vectors over rows stay where the rows are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, dot, namespace
from gordan.deadlines import UNLIMITED, Deadline
from gordan.dynamics import Form, Output, Round
from gordan.game import Game
from gordan.geometry import Simplex
from gordan.methods.registry import Guarantee, InnerGames, Limits, Method
from gordan.rows import Rows

# benchmarks/gpu.py and soft.py time what these constants decide.

# Newton steps in a round, and halvings of one.
MAX_STEPS, MAX_HALVINGS = 30, 12
# A round ends when ‖Aᵀp - w‖/‖Aᵀp‖ is at most ROUND_TOL, or this share of the gap before the round.
ROUND_TOL, GAP_SHARE = 1e-7, 0.03
# The factor by which τ is multiplied after each round.
TAU_FACTOR = 0.15
# Rounds without progress before rounding is taken for the reason.
MAX_STALLED = 2
# Rows per column from which the Hessian is computed; where more rows are free, a part of them stands for all.
HESSIAN_ROWS_PER_COLUMN = 64
# Columns up to which the Hessian is formed: its factors cost their cube, and with 20,000 columns a step exceeds any time limit.
MAX_HESSIAN_COLUMNS = 4096


def proximal_newton() -> Method:
    """Take Newton steps on the w-player's smoothed problem, with smoothing that shrinks from round to round (for the 2-norm).

    It is not registered: its state may be on a device, which no checkpoint can hold, and d × d matrices must fit in memory.

    Guarantee: each round's p and w bound γ* as any do, and ‖Aᵀp_t‖ tends to γ*.
    """

    def build(rows: Rows, p_set: Simplex, p0: Any) -> Form:
        return ProximalNewton(Game(rows, p_set, p0))

    def within(form: ProximalNewton, limits: Limits) -> Form:
        return replace(form, deadline=limits.deadline)

    guarantee = Guarantee("the bracket closes as τ falls")
    games = InnerGames(100, within)
    return Method("proximal_newton", "published", 2.0, build, guarantee, math.nan, resident=True, sorts=True, games=games)


class Group(NamedTuple):
    """The rows of a group that has a mass of its own, their caps and the sizes D, stored where the rows are."""

    rows: Any
    caps: Any
    sizes: Any


class State(NamedTuple):
    """The c of each group, w and A w, the last λ, τ, the gap and the least ‖Aᵀp‖ so far, and the rounds since either fell.

    The last λ of each group is where the next search for it begins.
    """

    centre: list[Any]
    w: Array
    scores: Any
    levels: list[float]
    tau: float
    gap: float = 1.0
    upper: float = math.inf
    stalled: int = 0


@dataclass(frozen=True, eq=False)
class ProximalNewton:
    """The form of the method. After the `deadline` a round ends with its current step."""

    game: Game
    deadline: Deadline = UNLIMITED

    @property
    def rows(self) -> Rows:
        """The rows; vectors over them are where they are."""
        return self.game.rows

    @cached_property
    def groups(self) -> list[Group]:
        """The groups: one, or with a free intercept one for each class."""
        p_set, p0, groups = self.game.p_set, self.game.p0, []
        every = namespace(p0).where(p0 > 0)[0]  # a p_0 is positive
        for members in p_set.members:
            which = every[members] if isinstance(members, slice) else members
            if p_set.caps is None:
                none = 0.0 * p0[members]
                groups.append(Group(which, none + p_set.mass, none + p_set.mass / min(len(which), 4 * self.rows.d)))
            else:
                groups.append(Group(which, p_set.caps[members], p_set.caps[members]))
        return groups

    @cached_property
    def _identity(self) -> Any:
        """The d × d identity where the rows are."""
        return self.rows.to_storage_f64(np.eye(self.rows.d))

    def start(self) -> State:
        """Return p_0 and its w, with τ as large as the spread of the scores, so that p depends on every row."""
        p0 = self.game.p0
        w = self.rows.combine(p0)
        scores = self._scores(w)
        parts = [scores[group.rows] for group in self.groups]
        tau = max(math.sqrt(float(((part - part.mean()) ** 2).mean())) for part in parts)
        return State([p0[group.rows] for group in self.groups], w, scores, [math.nan] * len(parts), max(tau, 1e-12))

    def round(self, state: State, t: int) -> tuple[State, Round]:
        """Maximize ψ for the τ and the centre of the state, and return the next state."""
        w, scores, tau = state.w, state.scores, state.tau
        parts, levels, value = self._responses(state.centre, state.levels, scores, tau)
        p = self._joined(parts)
        v = self.rows.combine(p)
        goal = max(ROUND_TOL, GAP_SHARE * state.gap)
        for _ in range(MAX_STEPS):
            ascent = v - w
            if math.sqrt(dot(ascent, ascent)) <= goal * math.sqrt(dot(v, v)) or self.deadline.passed:
                break
            direction = self._direction(parts, ascent, tau)
            if direction is None:
                break
            change, slope = self._scores(direction), dot(ascent, direction)
            step = 1.0
            for _ in range(MAX_HALVINGS):
                ahead, further = w + step * direction, scores + step * change
                found, levels, height = self._responses(state.centre, levels, further, tau)
                if height - 0.5 * dot(ahead, ahead) >= value - 0.5 * dot(w, w) + 1e-4 * step * slope:
                    break
                step *= 0.5
            else:
                break  # only rounding is left to gain
            w, scores, parts, value = ahead, further, found, height
            p = self._joined(parts)
            v = self.rows.combine(p)
        # p proves the upper bound ‖v‖; the lower one is the better of those of v = Aᵀp and of w, which is near it
        fresh = self._scores(v)
        upper, length = math.sqrt(dot(v, v)), math.sqrt(dot(w, w))
        output, lowest, other = v, self.game.p_set.lowest(fresh), self.game.p_set.lowest(scores)
        if length > 0 and other / length > lowest / max(upper, 1e-300):
            output, lowest = w, other
        gap = 1 - max(0.0, lowest / math.sqrt(dot(output, output))) / upper if upper > 0 else 0.0
        stalled = 0 if gap < 0.9 * state.gap or upper < 0.99 * state.upper else state.stalled + 1
        after = State(parts, v, fresh, levels, TAU_FACTOR * tau, min(gap, state.gap), min(upper, state.upper), stalled)
        done = upper == 0 or stalled > MAX_STALLED
        return after, Round(1.0, None, p, v, output=Output(output, lowest, None), finished=done)

    def _responses(self, centre: list[Any], levels: list[float], scores: Any, tau: float) -> tuple[list[Any], list[float], float]:
        """Return p(w) and λ for each group, sought from these levels, and min_p pᵀAw + (τ/2) Σ (p_i - c_i)²/D_i."""
        parts, found, value = [], [], 0.0
        for group, c, last in zip(self.groups, centre, levels, strict=True):
            s = scores[group.rows]
            part, mu = nearest(c - group.sizes * s / tau, group.sizes, group.caps, self.game.p_set.mass, last / tau)
            found.append(mu * tau)
            moved = part - c
            value += float((part * s).sum() + 0.5 * tau * (moved * moved / group.sizes).sum())
            parts.append(part)
        return parts, found, value

    def _direction(self, parts: list[Any], ascent: Array, tau: float) -> Array | None:
        """Return Newton's direction; None if the Hessian is singular to rounding, or would take too long."""
        H, free = self._identity, list[tuple[Any, Any]]()
        for group, part in zip(self.groups, parts, strict=True):
            inner = (part > 0) & (part < group.caps)
            rows, sizes = group.rows[inner], group.sizes[inner]
            if len(rows):
                stride = max(1, len(rows) // (HESSIAN_ROWS_PER_COLUMN * self.rows.d))
                chosen = rows[::stride]
                free.append((chosen, sizes[::stride] * (len(rows) / len(chosen) / tau)))
        if not self._affords(sum(len(chosen) for chosen, _ in free)):
            return None
        for chosen, q in free:
            products, sums, total = self.rows.moments(q, chosen)
            H = H + products - sums[:, None] * (sums / total)
        return self.rows.solve(H, ascent)

    def _affords(self, m: int) -> bool:
        """Return whether there is time for a Hessian from m rows and its factors, if they are made on this machine."""
        rows, pace = self.rows, self.deadline.pace
        return rows.storage.elsewhere or self.deadline.affords(pace.moments(rows, m) + pace.factors(rows.d))

    def _joined(self, parts: list[Any]) -> Any:
        """Return the p over all rows from those of the groups."""
        p = self.game.p0 * 0
        for group, part in zip(self.groups, parts, strict=True):
            p[group.rows] = part
        return p

    def _scores(self, w: Array) -> Any:
        return self.rows.to_storage_f64(self.rows.scores(w))


def nearest(z: Any, sizes: Any, caps: Any, mass: float, guess: float = math.nan) -> tuple[Any, float]:
    """Return clip(z - μ·sizes, 0, caps), and the μ at which it adds up to mass.

    μ is found by Newton's method on a decreasing, piecewise linear function, kept between bounds that shrink.
    """
    none = caps * 0
    low, high = float(((z - caps) / sizes).min()), float((z / sizes).max())
    if bool((caps >= mass).all()):  # the function is convex, and at this lower bound one row alone reaches the mass
        low = float(((z - mass) / sizes).max())
    mu = guess if low < guess < high else low
    for _ in range(200):
        x = (z - mu * sizes).clip(none, caps)
        excess = float(x.sum()) - mass
        if excess > 0:
            low = mu
        else:
            high = mu
        if abs(excess) <= 1e-12 * mass or not low < high:  # a smaller excess is rounding in the sum
            break
        slope = float((sizes * ((x > 0) & (x < caps))).sum())
        ahead = mu + excess / slope if slope > 0 else math.inf
        mu = ahead if low < ahead < high else 0.5 * (low + high)
        if mu in (low, high):
            break
    return x, mu
