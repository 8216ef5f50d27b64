"""Rosenblatt's Perceptron and Gentile's p-norm Perceptron: the baselines that look at one row at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.checkpoint import checkpointed
from gordan.dynamics import Form, Output, Round
from gordan.game import Game
from gordan.geometry import Simplex, dual_vector
from gordan.methods.registry import Guarantee, Method, check_norm, choose, register
from gordan.rows import Rows


@register(
    "perceptron",
    reference="F. Rosenblatt, The Perceptron, Psychological Review 65 (1958); A. Novikoff, On convergence proofs (1962)",
    forms=("published",),
)
def perceptron(*, form: str = "published", output: str = "last") -> Method:
    """Run Rosenblatt's Perceptron: cycle over the rows, and add each row that is not on the right side.

    A round is one mistake: w += A_i for the next row with A_i·w ≤ 0. It has finished when a whole cycle finds none.

    Guarantee: at most 1/γ² mistakes, so it has finished in round 1/γ² + 1. p_0 plays no part. `output` is "last" or "average"
    (of w over the rounds). The mistakes, counted per row, are a distribution p with Aᵀp = w/T, so ‖w‖/T bounds γ* from above; it
    is at most 1/√T, which is `trace.bound`.

    >>> import gordan, numpy as np
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, 2.0]])
    >>> trace = gordan.play(A, perceptron(), 100)
    >>> trace.status, int(trace.t[-1]), bool((A @ trace.w > 0).all())
    ('finished', 3, True)
    """
    choose("form", form, ("published",))
    return _baseline("perceptron", 2.0, output)


@register(
    "p_norm_perceptron",
    reference="C. Gentile, The robustness of the p-norm algorithms, Machine Learning 53 (2003) 265-299",
    forms=("published",),
)
def p_norm_perceptron(*, form: str = "published", p: float = 3.0, output: str = "last") -> Method:
    """Run Gentile's p-norm Perceptron: θ += A_i on a mistake, w = ∇½‖θ‖_p².

    Guarantee: at most (p-1)/γ² mistakes, for rows with ‖A_i‖_p ≤ 1 and γ the largest margin over ‖w‖_q ≤ 1.

    >>> import gordan, numpy as np
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, 2.0]])
    >>> trace = gordan.play(A, p_norm_perceptron(p=4.0), 100)
    >>> trace.status, int(trace.t[-1]), bool((A @ trace.w > 0).all())
    ('finished', 3, True)
    """
    choose("form", form, ("published",))
    return _baseline("p_norm_perceptron", check_norm(p), output)


def _baseline(name: str, p: float, output: str) -> Method:
    choose("output", output, ("last", "average"))

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        return _Cyclic(Game(rows, p_set, p0, norm=p), output == "average")

    guarantee = Guarantee(
        f"at most {p - 1:g}/gamma^2 mistakes",
        rounds=lambda D, gamma: (p - 1) / gamma**2 + 1,
        upper=lambda t: math.sqrt((p - 1) / max(1, t - 1)),  # the last round makes no mistake
    )
    return Method(name, "published", p, build, guarantee, math.nan, plain="it looks at one row at a time")


@checkpointed("perceptron.state")
class _State(NamedTuple):
    """The state: θ, how often each row was added, where the cycle stands, and Σw over the rounds."""

    theta: Array
    mistakes: Array
    next: int
    total: Array


@dataclass(frozen=True, eq=False)
class _Cyclic:
    """Published form. A round adds the next mistake, the first row in cyclic order with A_i·w ≤ 0, to θ, until there is none."""

    game: Game
    average: bool

    def start(self) -> _State:
        zero = np.zeros(self.game.rows.d)
        return _State(zero, np.zeros(self.game.rows.n), 0, zero)

    def round(self, state: _State, t: int) -> tuple[_State, Round]:
        rows = self.game.rows
        w = dual_vector(state.theta, self.game.norm)
        i, row = self._next_mistake(w, state.next)
        if row is None:
            p = state.mistakes / max(1.0, float(np.sum(state.mistakes)))
            output = Output(state.total / (t - 1) if self.average else w, None, None)
            return state, Round(1.0, None, p, state.theta / max(1, t - 1), output=output, p_bar=p, finished=True)
        theta = state.theta + row
        this = np.zeros(rows.n)
        this[i] = 1.0
        mistakes = state.mistakes + this
        w = dual_vector(theta, self.game.norm)
        total = state.total + w
        after = _State(theta, mistakes, (i + 1) % rows.n, total)
        output = Output(total / t if self.average else w, None, None)
        return after, Round(1.0, None, this, row, output=output, p_bar=mistakes / t)

    def _next_mistake(self, w: Array, start: int) -> tuple[int, Array | None]:
        """Return the first row from `start` on, in cyclic order, with A_i·w ≤ 0; block sizes double, so few rows are wasted."""
        rows = self.game.rows
        seen, size = 0, 1
        while seen < rows.n:
            size = min(2 * size, rows.n - seen)
            block = (start + seen + np.arange(size)) % rows.n
            taken = rows.take(block)
            wrong = np.flatnonzero(taken.scores(w) <= 0)
            if len(wrong):
                one = np.zeros(size)
                one[wrong[0]] = 1.0
                return int(block[wrong[0]]), taken.combine(one)
            seen += size
        return -1, None
