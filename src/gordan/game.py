"""The game max_w min_p g(w, p) over rows: g = pᵀAw - curvature · ½‖w‖_q².

`curvature` 1 is the regularized game of Algorithms 1-3, where max_w g(w, p) = ½‖Aᵀp‖_p² and max_w m(w) = γ*²/2;
`curvature` 0 is the bilinear game on a ball, where both are margins themselves. All numbers here are floating-point estimates,
which guide the search and prove nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, in_float64, namespace
from gordan.errors import InputError
from gordan.geometry import Ball, Entropy, LossCost, LossWeights, NoisySquare, Regularizer, SquaredNorm, dual_exponent, norm
from gordan.rows import Rows, Softmin

# Up to this many columns, the largest eigenvalue of AᵀCA is computed; beyond, it is bounded by the trace.
MAX_EIGENVALUE_COLUMNS = 2000


class Response(NamedTuple):
    """The p-player's smoothed response to v: log p, Aᵀp, the scores A v, the lowest p·Av over P, and log Σ p_0i e^{-A_i·v}.

    `log_risk` is None with caps or halves, for which the sum has no such meaning.
    """

    log_p: Array
    combination: Array
    scores: Array
    lowest: float
    log_risk: float | None

    @property
    def p(self) -> Array:
        """The response p, computed on access because some callers need only its logarithm."""
        p: Array = namespace(self.log_p).exp(in_float64(self.log_p))
        return p


@dataclass(frozen=True, eq=False)
class Game:
    """The game max_{w∈W} min_{p∈P} pᵀAw - curvature · ½‖w‖_q², with 1/norm + 1/q = 1.

    Parameters
    ----------
    rows
        the rows A, of norm at most 1 for the theorems to hold as stated.
    p_set
        P, a `Simplex`; or `LossWeights` if a loss is minimized: p then pays ψ(p), and the least value is minus the value of the
        game.
    p0
        the p-player's starting point, inside P and positive.
    norm
        the norm p of feature space, at least 1; the regularized game is strongly concave in w for 2 ≤ p < ∞ only.
    curvature
        1 (regularized) or 0 (bilinear).
    radius
        of W = {‖w‖_q ≤ radius}; infinite for R^d.
    noise
        the perturbations δ of a row that w must withstand, an s-ball of radius ε, or None: g is reduced by max_δ δ·w = ε‖w‖_r,
        1/r + 1/s = 1, and the bracket is for γ_ε = max (γ(w) - ε‖w‖_r)/‖w‖. Only for the regularized game on R^d and norm 2.

    Implements: Assumption 1, Assumption 2
    """

    rows: Rows
    p_set: Any
    p0: Array
    norm: float = 2.0
    curvature: float = 1.0
    radius: float = math.inf
    noise: Ball | None = None

    def __post_init__(self) -> None:
        if not (self.norm >= 1 and self.curvature >= 0 and self.radius > 0):
            raise InputError("a game needs norm >= 1, curvature >= 0 and radius > 0")
        if self.noise is not None and not (self.norm == 2 and self.curvature == 1 and self.radius == math.inf):
            raise InputError("a game with noise needs norm 2, curvature 1 and w in R^d")
        fits = self.p_set.n == len(self.p0) == self.rows.n
        if not fits or not self.p_set.contains(self.p0) or not (self.p0 > 0).all():
            raise InputError("p0 must be a positive point of the p-player's set, one entry per row")

    @cached_property
    def q(self) -> float:
        """The dual exponent, whose norm measures w."""
        return dual_exponent(self.norm)

    @cached_property
    def w_set(self) -> Ball:
        """The set W of the w-player."""
        return Ball(self.rows.d, self.q, self.radius)

    @cached_property
    def w_curvature(self) -> SquaredNorm | None:
        """The part of the w-player's loss that is not linear."""
        if self.noise is not None:
            return NoisySquare(noise=self.noise)
        return SquaredNorm(self.q, self.curvature) if self.curvature else None

    @property
    def p_regularizer(self) -> Regularizer:
        """The regularizer of the p-player's learners."""
        return self.p_set.regularizer if isinstance(self.p_set, LossWeights) else Entropy()

    @property
    def p_curvature(self) -> LossCost | None:
        """The cost ψ that the p-player pays in addition to pᵀAw, or None."""
        return self.p_set.cost if isinstance(self.p_set, LossWeights) else None

    @cached_property
    def p_convexity(self) -> float:
        """The σ with σ‖Aᵀ(p - p')‖² ≤ 2 D_R(p, p') for the regularizer R of the p-player.

        It is 1 for the entropy and rows of norm at most 1. For a loss it is the convexity of R divided by the largest eigenvalue
        of AᵀCA or, with many columns, by its trace.
        """
        if not isinstance(self.p_set, LossWeights):
            return 1.0
        c, rows = self.p_set.c, self.rows
        if rows.d > MAX_EIGENVALUE_COLUMNS:
            largest = float(c @ rows.squares())
        else:
            largest = float(np.linalg.eigvalsh(rows.to_host(rows.moments(c)[0]))[-1])
        return self.p_set.regularizer.convexity / max(largest, np.finfo(np.float64).tiny)

    def paid(self, p: Array) -> float:
        """Return ψ(p), which is 0 unless a loss is minimized."""
        return 0.0 if self.p_curvature is None else self.p_curvature.value(p)

    @cached_property
    def log_p0(self) -> Array:
        """The vector log p_0, stored with the rows if they are `resident`."""
        log_p0: Array = namespace(self.p0).log(self.p0)
        return self.rows.to_storage(log_p0) if self.rows.resident else log_p0

    @cached_property
    def halves(self) -> Any:
        """The halves of P, stored with the rows if they are `resident`."""
        halves = self.p_set.halves
        return self.rows.groups_to_storage(halves) if self.rows.resident and halves is not None else halves

    @cached_property
    def D(self) -> float:
        """max_p D_E(p, p_0), the log n of the theorems; at least log 2, because step sizes divide by it.

        If a loss is minimized, it is max_p D_R(p, p_0)/σ, which takes its place in the theorems (see `p_convexity`).
        """
        return float(max(self.p_set.diameter(self.p0) / self.p_convexity, math.log(2)))

    def penalty(self, w: Array) -> float:
        """Return curvature · ½‖w‖_q², plus the cost of noise."""
        return (0.5 * self.curvature * norm(w, self.q) ** 2 if self.curvature else 0.0) + self._cost(w)

    def _cost(self, w: Array) -> float:
        """Return max_δ δ·w over the noise."""
        return 0.0 if self.noise is None else self.noise.radius * norm(w, dual_exponent(self.noise.q))

    def _rest(self, combination: Array) -> Array:
        """Return Aᵀp minus its projection onto the noise."""
        return combination if self.noise is None else combination - self.noise.project(combination)

    def m(self, w: Array, lowest: float) -> float:
        """Return m(w) = min_p g(w, p), from the lowest p·Aw."""
        return lowest - self.penalty(w)

    def dual(self, combination: Array, p: Array) -> float:
        """Return max_w g(w, p) from Aᵀp.

        That is what p pays, plus ½‖Aᵀp‖_p² in the regularized game, else ‖Aᵀp‖_p (comparators of q-norm at most 1).
        """
        length = norm(self._rest(combination), self.norm)
        return (0.5 * length**2 / self.curvature if self.curvature else length) + self.paid(p)

    def lower(self, w: Array, lowest: float) -> float:
        """Return the lower bound γ(w)/‖w‖_q of γ*, 0 for w = 0; for a loss, the lower bound m(w) of the value."""
        if self.p_curvature is not None:
            return self.m(w, lowest)
        length = norm(w, self.q)
        return (lowest - self._cost(w)) / length if length > 0 else 0.0

    def upper(self, combination: Array, p: Array) -> float:
        """Return the upper bound ‖Aᵀp‖_p of γ*, with noise its distance to that; for a loss, the upper bound max_w g(w, p)."""
        return norm(self._rest(combination), self.norm) if self.p_curvature is None else self.dual(combination, p)

    @property
    def least(self) -> float:
        """A lower bound of γ*, or of the value, for any rows, from w = 0."""
        return 0.0 if self.p_curvature is None else float(self.p_set.lowest(np.zeros(self.rows.n)))

    def shown(self, lower: float, upper: float) -> tuple[float, float]:
        """Return the bracket for traces; for a loss it is that of the least value, which is minus the value of the game."""
        return (lower, upper) if self.p_curvature is None else (-upper, -lower)

    def respond(self, v: Array) -> Response:
        """Return argmin_{p∈P} pᵀAv + D_E(p, p_0), in one fused pass; with caps, which need all scores first, in two."""
        return self.responses(v[None])[0]

    def responses(self, stack: Array, log_p0: Array | None = None) -> list[Response]:
        """Return the response to each v of the stack, all in one fused pass; with caps, each needs two passes."""
        if isinstance(self.p_set, LossWeights):
            raise InputError("this form knows the entropy only; use form='game' for a loss")
        anchor = self.log_p0 if log_p0 is None else log_p0
        if self.p_set.caps is not None:
            return [self._capped(v, anchor) for v in stack]
        return [self._response(soft, anchor) for soft in self.rows.softmins(stack, anchor, self.halves)]

    def _response(self, soft: Softmin, anchor: Array) -> Response:
        halves = self.p_set.halves
        log_p = anchor - soft.scores
        if halves is not None and self.rows.storage.on_device and self.rows.resident:  # `np.take` needs vectors on the host
            second = self.rows.to_storage_f64(self.halves.groups * 1.0)  # in torch, int8 times a number is float32
            for part in (soft.peak, [rest + math.log(2) for rest in soft.log_rest]):
                log_p -= (1 - second) * part[0] + second * part[1]
            return Response(log_p, soft.combination, soft.scores, 0.5 * sum(soft.lowest), None)
        if halves is None:
            log_p -= soft.peak[0]
            log_p -= soft.log_rest[0]
            lowest, log_risk = soft.lowest[0], soft.peak[0] + soft.log_rest[0]
        else:
            log_p -= np.take(soft.peak, halves)
            log_p -= np.take([rest + math.log(2) for rest in soft.log_rest], halves)
            lowest, log_risk = 0.5 * sum(soft.lowest), None
        return Response(log_p, soft.combination, soft.scores, lowest, log_risk)

    def _capped(self, v: Array, anchor: Array) -> Response:
        scores = self.rows.scores(v)
        log_p = self.p_set.log_softmax(anchor - scores)
        return Response(log_p, self.rows.combine(np.exp(log_p)), scores, self.p_set.lowest(scores), None)
