"""Rescaling for both alternatives, a separator or weights with which rows cancel, on a dense copy of the rows in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.checkpoint import checkpointed
from gordan.dynamics import Form, Round
from gordan.game import Game
from gordan.geometry import Simplex
from gordan.methods.projection_rescaling import Projected
from gordan.methods.registry import Guarantee, Method, choose, register
from gordan.methods.rescaled_perceptron import OWN_ROWS, Copy, Rescaled, basic_method
from gordan.rows import Rows


@register(
    "rescaling",
    reference="gordan; rescaled_perceptron and projection_rescaling in turn",
    forms=("published",),
)
def rescaling(*, form: str = "published", basic: str | Method = "smooth_perceptron") -> Method:
    """Find a separator or weights with Aᵀp = 0, whichever exists, by `rescaled_perceptron` and `projection_rescaling` in turn.

    Odd rounds are those of the first, even rounds those of the second; it ends when one of them has found what it looks for.

    Guarantee: that of each, with twice the rounds. On rows that can be separated in the weak sense only, neither needs to end.

    >>> import gordan, numpy as np
    >>> A = np.array([[1.0, 1.0], [-2.0, 1.0], [1.0, -3.0]])
    >>> trace = gordan.play(A, rescaling(), 1000)  # weights with Aᵀp = 0
    >>> trace.status, bool(np.linalg.norm(trace.p @ A) < 1e-12)
    ('finished', True)
    >>> trace = gordan.play(A[:2], rescaling(), 1000)  # a separator
    >>> trace.status, bool((A[:2] @ trace.w > 0).all())
    ('finished', True)
    """
    choose("form", form, ("published",))
    played = basic_method(basic, form)

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        game, copied = Game(rows, p_set, p0), cache(lambda: Copy.of(rows))
        return _Alternating(game, Rescaled(game, copied, played, True), Projected(game, copied))

    guarantee = Guarantee("O(d log(1/gamma)) phases, or as many as p needs")
    return Method("rescaling", form, 2.0, build, guarantee, math.nan, plain=OWN_ROWS)


@checkpointed("rescaling.alternating")
class _AlternatingState(NamedTuple):
    """The states of both methods, how many rounds each has played, and which of them has ended without an answer."""

    separating: Any
    cancelling: Any
    rounds: tuple[int, int]
    over: tuple[bool, bool]


@dataclass(frozen=True, eq=False)
class _Alternating:
    """The form, which alternates between both methods until one of them has an answer or both have ended without."""

    game: Game
    separating: Rescaled
    cancelling: Projected

    def start(self) -> _AlternatingState:
        return _AlternatingState(self.separating.start(), self.cancelling.start(), (0, 0), (False, False))

    def round(self, state: _AlternatingState, t: int) -> tuple[_AlternatingState, Round]:
        turn = (t + 1) % 2
        turn = 1 - turn if state.over[turn] else turn
        rounds, over = (state.rounds[0] + (turn == 0), state.rounds[1] + (turn == 1)), state.over
        form = (self.separating, self.cancelling)[turn]
        moved, played = form.round((state.separating, state.cancelling)[turn], rounds[turn])
        if played.finished:
            assert played.output is not None
            found = bool(np.min(self.separating.copy.A @ played.output.w) > 0) if turn == 0 else bool(np.min(played.p) > 0)
            over = (over[0] or turn == 0, over[1] or turn == 1)
            played = played._replace(finished=found or all(over))
        after = state._replace(rounds=rounds, over=over)
        return (after._replace(separating=moved) if turn == 0 else after._replace(cancelling=moved)), played
