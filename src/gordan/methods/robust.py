"""The Smooth Perceptron for margins under perturbations of the rows (adversarial training)."""

from __future__ import annotations

import math
from typing import Any

from gordan.arrays import Array, is_number, positive
from gordan.dynamics import Form
from gordan.errors import InputError
from gordan.game import Game
from gordan.geometry import Ball, Simplex
from gordan.methods.registry import Guarantee, Method, choose, register
from gordan.methods.smooth_perceptron import two_players
from gordan.rows import Rows


@register(
    "robust_perceptron",
    reference="gordan; adversarial training as in G. Wang, Z. Hu, V. Muthukumar and J. Abernethy, 2023",
    forms=("game",),
)
def robust_perceptron(*, form: str = "game", noise: float = 0.1, noise_norm: float = 2.0, eta: float = 0.5) -> Method:
    """Play the Smooth Perceptron for the largest margin that is left if every row may be moved by noise ‖δ_i‖_s ≤ ε.

    g = pᵀAw - ε‖w‖_r - ½‖w‖², 1/r + 1/s = 1, for s = 1, 2 or ∞ (`noise_norm`), ε in the units of A (`noise`); α_t = t: w first
    with OFTL (hint last), whose argmin is z - Π(z) with Π the nearest point of ‖·‖_s ≤ ε (s = ∞: every entry goes ε towards 0); p
    with FTRL⁺[E, p_0, η]. Only the argmin of w differs from `smooth_perceptron`.

    Guarantee (η ≤ 1/2): ½‖Aᵀp̄_T - Π(Aᵀp̄_T)‖² - m(w̄_T) ≤ 2D/(ηT(T+1)). Any w and p give
    (γ(w) - ε‖w‖_r)/‖w‖ ≤ γ_ε ≤ ‖Aᵀp - Π(Aᵀp)‖, and no w withstands the noise if and only if some p has ‖Aᵀp‖_s ≤ ε.

    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], robust_perceptron(noise=0.1), 1000)
    >>> [round(end, 3) for end in trace.bracket]  # the margin without noise is 7/√17 = 1.698
    [1.598, 1.598]
    """
    choose("form", form, ("game",))
    noise, s = positive(noise, "noise"), check_noise_norm(noise_norm)
    if not (is_number(eta) and 0 < eta <= 0.5):
        raise InputError(f"eta is {eta}; the guarantee needs 0 < eta <= 1/2")

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        return two_players(Game(rows, p_set, p0, noise=Ball(rows.d, s, noise * rows.scale)), eta)

    guarantee = Guarantee(f"gap <= {2 / eta:g} D/(T(T+1)) under noise", gap=lambda t, D: 2 * D / (eta * t * (t + 1)))
    return Method("robust_perceptron", form, 2.0, build, guarantee, 2, noisy=True, losses=True, resident=True)


def check_noise_norm(s: Any, name: str = "noise_norm") -> float:
    """Return s as a float, or raise an InputError unless it is 1, 2 or ∞."""
    if not (is_number(s) and s in (1, 2, math.inf)):
        raise InputError(f"{name} is {s!r}; pass 1, 2 or float('inf')")
    return float(s)
