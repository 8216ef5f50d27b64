"""The primal-dual hybrid gradient method of Chambolle and Pock, with restarts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array, positive
from gordan.checkpoint import checkpointed
from gordan.dynamics import Form, Protocol1, Round, unit_weight
from gordan.game import Game
from gordan.geometry import Simplex, SquaredNorm, norm
from gordan.learners import Mirror, Reflected
from gordan.methods.registry import Guarantee, Method, choose, register
from gordan.rows import Rows, host

# With up to this many rows or columns, L is computed from an eigenvalue; beyond, it is estimated by this many products with AᵀA
# and enlarged by a safety factor.
MAX_EIGENVALUE_SIZE, POWER_ITERATIONS, SAFETY = 512, 30, 1.05
# A restart is due when the gap of the average has fallen to this share of that after the last restart, after this many rounds at
# least.
RESTART_SHARE, MIN_ROUNDS_TO_RESTART = math.exp(-1), 8


@register(
    "pdhg",
    reference="A. Chambolle and T. Pock, JMIV 40 (2011); restarts: D. Applegate et al., NeurIPS 2021",
    forms=("published", "game"),
)
def pdhg(*, form: str = "published", omega: float = 1.0, restart: bool = False) -> Method:
    """Play the bilinear game on the unit ball by the primal-dual hybrid gradient method (PDHG, Chambolle–Pock).

    Published, L = ‖A‖₂, τ = 1/(ωL), σ = ω/L, w_0 = 0, Π the nearest point of P:

        w_t = clip(w_{t-1} + τAᵀp_{t-1}),   p_t = Π(p_{t-1} - σA(2w_t - w_{t-1})).

    With `restart` it starts again at its average once the gap of that is e^{-1} of what it was after the last restart, and log ω
    moves half way to the ratio of how far p and w went. Two passes a round: Π needs all scores.

    Game: g = pᵀAw, ‖w‖ ≤ 1, α_t = 1; p first with reflected steps, p_t = Π(p_{t-1} - σ(2Aw_{t-1} - Aw_{t-2})), w with mirror
    descent and the current loss. Its p_t is the published p_{t-1}: the pair of round t is (w_t, p_{t-1}).

    Guarantee for that pair, without restarts: ‖Aᵀp̄_T‖ - γ(w̄_T) ≤ (1/(2τ) + max_p ‖p - p_0‖²/(2σ))/T. For (w_t, p_t) it is
    false, and ½(1/√τ + max_p ‖p - p_0‖/√σ)²/T holds.

    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], pdhg(), 200)
    >>> bool((trace.dual - trace.m <= trace.bound).all())  # the guarantee, at every recorded round
    True
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], pdhg(restart=True), 1000)
    >>> bool(trace.gap[-1] < 1e-6)
    True
    """
    choose("form", form, ("published", "game"))
    choose("restart", restart, (False, True) if form == "published" else (False,))
    omega = positive(omega, "omega")

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        game = Game(rows, p_set, p0, curvature=0.0, radius=1.0)
        played = _Pdhg(game, omega, restart)
        if form == "published":
            return played
        L = played.length
        return Protocol1(
            game,
            w=Mirror(game.w_set, np.zeros(rows.d), SquaredNorm(), 1 / (omega * L), hint="current"),
            p=Reflected(p_set, p0, omega / L),
            first="p",
            weight=unit_weight,
            bound=played.gap,
        )

    guarantee = Guarantee("gap <= (1/(2 tau) + max|p - p_0|^2/(2 sigma))/T" if not restart else "none proved after a restart")
    return Method("pdhg", form, 2.0, build, guarantee, 2)


@checkpointed("pdhg.state")
class _State(NamedTuple):
    """The state: w_t and A w_t, p_t and Aᵀp_t, ω; the point and round of the last restart, the sums and the first gap since."""

    w: Array
    scores: Array
    p: Array
    combination: Array
    omega: float
    from_w: Array
    from_p: Array
    since: int
    sums: tuple[Array, ...]
    gap: float


@dataclass(frozen=True, eq=False)
class _Pdhg:
    """Published form. Round t is the pair (w_t, p_{t-1}), for which the bound is proved."""

    game: Game
    omega: float
    restart: bool

    @cached_property
    def length(self) -> float:
        """L = ‖A‖₂, or 1 if A is 0; its passes are not charged to the method."""
        return _length(self.game.rows.scaled(1.0)) or 1.0

    @property
    def bound(self) -> Callable[[int], float] | None:
        """The function `gap` if it is proved, else None."""
        return None if self.restart else self.gap

    def gap(self, t: int) -> float:
        """Return the bound on the gap after t rounds."""
        return self.length * (self.omega / 2 + _reach(self.game) / (2 * self.omega)) / t

    def start(self) -> _State:
        rows, p = self.game.rows, self.game.p0
        w, scores = np.zeros(rows.d), np.zeros(rows.n)
        combination = rows.combine(p)
        return _State(w, scores, p, combination, self.omega, w, p, 0, (w, scores, np.zeros(rows.n), w), math.inf)

    def round(self, state: _State, t: int) -> tuple[_State, Round]:
        game, rows = self.game, self.game.rows
        w = game.w_set.clip(state.w + state.combination / (state.omega * self.length))
        scores = rows.scores(w)
        p = game.p_set.project(state.p - (state.omega / self.length) * (2 * scores - state.scores))
        combination = rows.combine(p)
        played = Round(1.0, w, state.p, state.combination, scores=scores)
        moves = (w, scores, state.p, state.combination)
        sums = tuple(total + move for total, move in zip(state.sums, moves, strict=True))
        after = state._replace(w=w, scores=scores, p=p, combination=combination, sums=sums)
        return (self._restarted(after, t) if self.restart else after), played

    def _restarted(self, state: _State, t: int) -> _State:
        """Return the state restarted at the average if a restart is due, else the state as it is."""
        count = t - state.since
        w, scores, p, combination = (total / count for total in state.sums)
        gap = norm(combination, 2) - self.game.p_set.lowest(scores)
        if math.isinf(state.gap):
            return state._replace(gap=gap)
        if count < MIN_ROUNDS_TO_RESTART or gap > RESTART_SHARE * state.gap:
            return state
        far_w, far_p = norm(w - state.from_w, 2), norm(p - state.from_p, 2)
        omega = math.sqrt(state.omega * far_p / far_w) if min(far_w, far_p) > 1e-12 else state.omega
        zeros = tuple(np.zeros_like(total) for total in state.sums)
        return _State(w, scores, p, combination, omega, w, p, t, zeros, math.inf)


def _reach(game: Game) -> float:
    """Return max_{p∈P} ‖p - p_0‖², which is attained at a vertex; with caps or halves, an upper bound."""
    p_set, p0 = game.p_set, game.p0
    square = float(np.sum(p0**2))
    if p_set.caps is None and p_set.halves is None:
        return 1 - 2 * float(np.min(p0)) + square
    most = p_set.mass if p_set.caps is None else float(np.max(np.minimum(p_set.caps, p_set.mass)))
    return most + square  # Σp² ≤ max p · Σp, and p·p_0 ≥ 0


def _length(rows: Rows) -> float:
    """Return ‖A‖₂ from the smaller of AᵀA and AAᵀ, or an estimate that is seldom too small."""
    if min(rows.n, rows.d) <= MAX_EIGENVALUE_SIZE:
        products = host(rows.moments(np.ones(rows.n))[0]) if rows.d <= rows.n else rows.gram(np.arange(rows.n))
        return math.sqrt(max(0.0, float(np.linalg.eigvalsh(products)[-1]))) * (1 + 1e-12)
    v = rows.combine(np.full(rows.n, 1 / rows.n))
    v = v if v.any() else np.ones(rows.d)
    for _ in range(POWER_ITERATIONS):
        v = rows.combine(rows.scores(v / norm(v, 2)))
        if not v.any():
            return 0.0
    return SAFETY * math.sqrt(norm(v, 2))
