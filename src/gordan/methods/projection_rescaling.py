"""Projection and rescaling for positive weights with which rows cancel, on a dense copy of the rows in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.checkpoint import checkpointed
from gordan.dynamics import Form, Output, Round
from gordan.game import Game
from gordan.geometry import Simplex
from gordan.methods.registry import Guarantee, Method, choose, register
from gordan.methods.rescaled_perceptron import OWN_ROWS, Copy
from gordan.rows import Rows


@register(
    "projection_rescaling",
    reference="J. Peña and N. Soheili, Solving conic systems via projection and rescaling, Math. Program. 166 (2017)",
    forms=("published",),
)
def projection_rescaling(*, form: str = "published") -> Method:
    """Find positive weights of all rows with Aᵀp = 0, by the Smooth Perceptron on projected rows that are rescaled in phases.

    State: a diagonal D, at first I. A phase: P projects onto {x : AᵀD⁻¹x = 0}, which is I - QQᵀ for Q = qr(D⁻¹A). The Smooth
    Perceptron (η = ½) on the rows of P ends with y = Pz > 0, and then p = D⁻¹y/Σ has Aᵀp = 0 up to rounding; or with weights z
    for which s = ‖(Pz)₊‖₁ ≤ ½ max z, and then D_ii is multiplied by max(1, z_i/s).

    Guarantee: each phase at least doubles the largest Πx_i over the x of that space with 0 ≤ x ≤ 1, so that there are at most
    log₂(1/Π(p_i/max p)) of them, for every solution p. If there is no solution, it does not end except by rounding: only an exact
    check may claim one. The output w solves D⁻¹Aw = z - Pz, and separates if that is positive.

    >>> import gordan, numpy as np
    >>> A = np.array([[1.0, 1.0], [-2.0, 1.0], [1.0, -3.0]])
    >>> trace = gordan.play(A, projection_rescaling(), 1000)
    >>> trace.status, bool((trace.p > 0).all()), bool(np.linalg.norm(trace.p @ A) < 1e-12)
    ('finished', True, True)
    """
    choose("form", form, ("published",))

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        return Projected(Game(rows, p_set, p0), cache(lambda: Copy.of(rows)))

    guarantee = Guarantee("at most log2(1/prod(p_i/max p)) phases")
    return Method("projection_rescaling", form, 2.0, build, guarantee, math.nan, plain=OWN_ROWS)


@checkpointed("projection_rescaling.diagonal")
class Diagonal(NamedTuple):
    """The state: D, the number of phases, the round after which the last ended, z and Pz, y, P of the last response, and μ."""

    D: Array
    phases: int
    since: int
    z: Array
    projected: Array
    y: Array
    response: Array | None
    mu: float


@dataclass(frozen=True, eq=False)
class Projected:
    """The form, which ends with y > 0, or when D overflows."""

    game: Game
    copied: Callable[[], Copy]
    _last: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def copy(self) -> Copy:
        """The rows in memory."""
        return self.copied()

    def _factors(self, D: Array) -> tuple[Array, Array]:
        if self._last.get("D") is not D:
            C = self.copy.C / D[:, None]
            # if all rows are zero, there is nothing to project out
            self._last.update(D=D, factors=np.linalg.qr(C) if C.any() else (C, np.eye(C.shape[1])))
        found: tuple[Array, Array] = self._last["factors"]
        return found

    def start(self) -> Diagonal:
        """Return the state before the first round."""
        return self._begun(np.ones(self.game.rows.n), 0, 0)

    def _begun(self, D: Array, phases: int, since: int) -> Diagonal:
        self.game.rows.passes += 1
        z = np.full(len(D), 1 / len(D))
        projected = self._project(D, z)
        return Diagonal(D, phases, since, z, projected, projected, None, 2.0)

    def _project(self, D: Array, x: Array) -> Array:
        Q, _ = self._factors(D)
        self.game.rows.passes += 1
        return np.asarray(x - Q @ (Q.T @ x))

    def round(self, state: Diagonal, t: int) -> tuple[Diagonal, Round]:
        """Play round t: return the state after it, and what was played."""
        theta, y, mu = 1.0, state.y, state.mu
        if state.response is not None:
            theta = 2 / (t - state.since + 1)
            y = (1 - theta) * y + theta * ((1 - theta) * state.projected + theta * state.response)
            mu *= 1 - theta
        ended = bool(np.min(y) > 0)
        weights = np.exp(-(y - np.min(y)) / mu)
        weights /= np.sum(weights)
        response = self._project(state.D, weights)
        z, projected = (1 - theta) * state.z + theta * weights, (1 - theta) * state.projected + theta * response
        after = state._replace(z=z, projected=projected, y=y, response=response, mu=mu)
        s = float(np.sum(np.maximum(projected, 0.0)))
        if not ended and s <= 0.5 * float(np.max(z)):
            with np.errstate(over="ignore"):  # an overflow ends the method: there are no such weights
                D = state.D * np.maximum(1.0, z / max(s, 1e-300))
            ended = not np.max(D) < 1e250
            after = after if ended else self._begun(D, state.phases + 1, t)
        self.game.rows.passes += 1
        p, combination = self.copy.combine(np.maximum(y, 0.0) / state.D if np.max(y) > 0 else self.game.p0)
        output = Output(self._plane(state.D, z), None, None)
        return after, Round(1.0, None, p, combination, output=output, finished=ended)

    def _plane(self, D: Array, z: Array) -> Array:
        """Return w with D⁻¹Aw = z - Pz, scaled so that its largest entry is 1."""
        Q, R = self._factors(D)
        try:
            u = np.linalg.solve(R, Q.T @ z)
        except np.linalg.LinAlgError:
            u = np.full(R.shape[1], math.nan)
        size = float(np.max(np.abs(u)))
        return self.copy.whole(u / size) if 0 < size < math.inf else np.zeros(self.game.rows.d)
