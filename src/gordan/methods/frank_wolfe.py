"""Frank–Wolfe on ½‖Aᵀp‖²: von Neumann's method for a point in the hull, and its variants with away steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array, dot
from gordan.checkpoint import checkpointed
from gordan.dynamics import Form, Output, Protocol1, Round
from gordan.game import Game
from gordan.geometry import Simplex, norm
from gordan.learners import BestResponse, Leader
from gordan.methods.registry import Guarantee, Method, Regrets, choose, register
from gordan.rows import Rows

STEPS = ("2/(t+1)", "line search", "away", "pairwise")
# Aᵀp is updated along with p, and recomputed once its norm has fallen to this share: otherwise it would fall below its own
# rounding errors if rows cancel, and finally underflow.
RECOMPUTE_SHARE = 1e-3


@register(
    "frank_wolfe",
    reference="J. von Neumann (told by G. Dantzig, 1992); E. Gilbert (1966); S. Lacoste-Julien and M. Jaggi, NIPS 2015 (away)",
    forms=("published", "game"),
)
def frank_wolfe(*, form: str = "published", step: str = "2/(t+1)") -> Method:
    """Minimize ½‖Aᵀp‖² by Frank–Wolfe (von Neumann, Gilbert): move p towards the vertex that w = Aᵀp has lowest.

    Published, s a vertex of P with s·Aw lowest for w = Aᵀp_{t-1}: p_t = (1-θ)p_{t-1} + θs, with θ = 2/(t+1) (`step="2/(t+1)"`,
    w_1 = 0), or the θ in [0, 1] that makes ‖Aᵀp_t‖ least ("line search"). "away" takes weight from the vertex that w has highest
    where that promises more, "pairwise" (Mitchell, Dem'yanov and Malozemov) moves it from there to s; both by line search, from
    one vertex.

    Game, for θ = 2/(t+1): g = pᵀAw - ½‖w‖², α_t = t; w first with FTL, p with the best response. p_T = p̄_T. The others have
    none.

    Guarantee: gap ≤ 8/(T+1) for θ = 2/(t+1); by line search ‖Aᵀp_T‖² ≤ 1/T as long as no margin min A_i·Aᵀp_t has been positive.

    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], frank_wolfe(), 200)
    >>> bool((trace.dual - trace.m <= trace.bound).all())  # the guarantee, at every recorded round
    True
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], frank_wolfe(step="away"), 200)
    >>> bool(trace.gap[-1] < 1e-6)  # a linear rate
    True
    """
    choose("form", form, ("published", "game"))
    choose("step", step, STEPS if form == "published" else STEPS[:1])

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        game = Game(rows, p_set, p0)
        if form == "published":
            return _OpenLoop(game) if step == STEPS[0] else _LineSearch(game, step)
        return Protocol1(
            game,
            w=Leader(game.w_set, np.zeros(rows.d), curvature=game.w_curvature),
            p=BestResponse(p_set, p0),
            first="w",
            weight=float,
        )

    if step == STEPS[0]:
        guarantee = Guarantee("gap <= 8/(T+1)", gap=lambda t, D: 8 / (t + 1), regrets=lambda D, moves: Regrets(p=0.0))
    elif step == "line search":  # round t looks at p_{t-1}
        guarantee = Guarantee("|A'p|^2 <= 1/T until separated", unseparated=lambda t: 1 / math.sqrt(max(1, t - 1)))
    else:
        guarantee = Guarantee("linear rate, no constant")
    if step in ("away", "pairwise"):
        plain = f"step {step!r} takes weight from one row"
        return Method("frank_wolfe", form, 2.0, build, guarantee, math.nan, plain=plain)
    return Method("frank_wolfe", form, 2.0, build, guarantee, 2, resident=step == STEPS[0])


@checkpointed("frank_wolfe.average")
class _Average(NamedTuple):
    """The state: p_t, Aᵀp_t, Σα_t w_t."""

    p: Array
    combination: Array
    total: Array


@dataclass(frozen=True, eq=False)
class _OpenLoop:
    """Published form with θ = 2/(t+1)."""

    game: Game

    def start(self) -> _Average:
        zero = np.zeros(self.game.rows.d)
        return _Average(0.0 * self.game.p0, zero, zero)

    def round(self, state: _Average, t: int) -> tuple[_Average, Round]:
        rows, theta, w = self.game.rows, 2 / (t + 1), state.combination
        scores = rows.scores(w)
        s = self.game.p_set.vertex(scores)
        combination = rows.combine(s)
        p = (1 - theta) * state.p + theta * s
        after = _Average(p, (1 - theta) * w + theta * combination, state.total + t * w)
        output = Output(after.total / (t * (t + 1) / 2), None, 1.0)
        return after, Round(float(t), w, s, combination, scores=scores, output=output, p_bar=p)


@checkpointed("frank_wolfe.point")
class _Point(NamedTuple):
    """The state: p_t and Aᵀp_t, and the length of the last Aᵀp that was computed from p."""

    p: Array
    combination: Array
    length: float


@dataclass(frozen=True, eq=False)
class _LineSearch:
    """Published forms with a line search; round t scores p_{t-1}, which gives its margin, and then moves."""

    game: Game
    step: str

    def start(self) -> _Point:
        rows, p = self.game.rows, self.game.p0
        combination = rows.combine(p)
        if self.step != "line search":  # start at one row, since weight is taken away row by row
            p = self.game.p_set.vertex(rows.scores(combination))
            combination = rows.combine(p)
        return _Point(p, combination, norm(combination, 2))

    def round(self, state: _Point, t: int) -> tuple[_Point, Round]:
        rows, (p, w, length) = self.game.rows, state
        scores = rows.scores(w)
        s = self.game.p_set.vertex(scores)
        played = Round(1.0, None, p, w, output=Output(w, self.game.p_set.lowest(scores), None))
        if self.step == "line search":
            direction, along, most = s - p, rows.combine(s) - w, 1.0
        else:
            direction, along, most = self._away(p, w, scores, int(np.argmin(scores)))
        square = dot(along, along)
        theta = min(most, max(0.0, -dot(w, along) / square)) if square > 0 else 0.0
        if theta == most < math.inf:  # a full step removes a row: set what rounding leaves of it to 0
            moved = np.where(p + theta * direction > 1e-16, p + theta * direction, 0.0)
        else:
            moved = p + theta * direction
        combination = w + theta * along
        if norm(combination, 2) < RECOMPUTE_SHARE * length:
            combination = rows.combine(moved)
            length = norm(combination, 2)
        return _Point(moved, combination, length), played

    def _away(self, p: Array, w: Array, scores: Array, i: int) -> tuple[Array, Array, float]:
        """Return the direction d in p, Aᵀd, and the longest step: away from the vertex j of highest score, or towards i."""
        rows = self.game.rows
        j = int(np.argmax(np.where(p > 0, scores, -np.inf)))
        to, from_ = np.zeros(rows.n), np.zeros(rows.n)
        to[i] = from_[j] = 1.0
        pair = rows.take([i, j])
        row_i, row_j = pair.combine(np.array([1.0, 0.0])), pair.combine(np.array([0.0, 1.0]))
        if self.step == "pairwise":
            return to - from_, row_i - row_j, float(p[j])
        value = dot(w, w)
        if value - scores[i] >= scores[j] - value or p[j] == 1:
            return to - p, row_i - w, 1.0
        return p - from_, w - row_j, float(p[j] / (1 - p[j]))
