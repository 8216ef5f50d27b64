"""The p-norm methods in the game form: the paper's at rate 1/t, one beyond it at rate 1/t², and one for 1 ≤ p < 2."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from gordan.arrays import Array, is_number
from gordan.dynamics import Form, Protocol1, unit_weight
from gordan.errors import InputError
from gordan.game import Game
from gordan.geometry import Entropy, Simplex, SquaredNorm, dual_exponent
from gordan.learners import Leader
from gordan.methods.registry import Guarantee, Method, Moves, Regrets, check_norm, choose, once_positive, register, root_margin
from gordan.methods.smooth_perceptron import erm_regrets
from gordan.rows import Rows


@register(
    "accelerated_p_norm_perceptron",
    reference="G. Wang, R. Hanashiro, E. Guha and J. Abernethy, On accelerated Perceptrons and beyond, ICLR 2023",
    forms=("game",),
)
def accelerated_p_norm_perceptron(*, form: str = "game", p: float = 3.0, w_set: str = "ball") -> Method:
    """Play the accelerated p-norm Perceptron: √((p-1) log n)/γ rounds where the classical one needs (p-1)/γ².

    g = pᵀAw for rows with ‖A_i‖_p ≤ 1, α_t = 1, η_w = 1/√(2(q-1)D), η_p = 1/η_w: w first with OFTRL[‖·‖_q²/(2(q-1)), 0, η_w] and
    hint last, p with FTRL⁺[E, p_0, η_p]. As printed w is free (`w_set="free"`); kept in the unit q-ball (`"ball"`) the same bound
    holds for the bracket.

    Guarantee: max_{‖w‖_q≤1} g(w, p̄_T) - γ(w̄_T) ≤ √(2(p-1)D)/T, so γ(w̄_T) > 0 once T > √(2(p-1)D)/γ.

    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], accelerated_p_norm_perceptron(p=3.0), 200)
    >>> bool((trace.dual - trace.m <= trace.bound).all())  # the guarantee, at every recorded round
    True

    Implements: Algorithm 4, Theorem 5
    """
    choose("form", form, ("game",))
    choose("w_set", w_set, ("ball", "free"))
    p = check_norm(p)
    q = dual_exponent(p)

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        game = Game(rows, p_set, p0, norm=p, curvature=0.0, radius=1.0 if w_set == "ball" else math.inf)
        eta = 1 / math.sqrt(2 * (q - 1) * game.D)
        return Protocol1(
            game,
            w=Leader(game.w_set, np.zeros(rows.d), SquaredNorm(q, 1 / (q - 1)), eta, hint="last"),
            p=Leader(p_set, p0, Entropy(), 1 / eta, hint="current"),
            first="w",
            weight=unit_weight,
        )

    def regrets(D: float, moves: Moves) -> Regrets:
        eta = 1 / math.sqrt(2 * (q - 1) * D)
        return Regrets(w=1 / (2 * (q - 1) * eta) + eta / 2 * moves.p, p=D * eta - eta / 2 * moves.p)

    bound = math.sqrt(2 * (p - 1))
    guarantee = Guarantee(
        f"gap <= {bound:.4g} sqrt(D)/T",
        gap=lambda t, D: bound * math.sqrt(D) / t,
        margin=(lambda t, D, gamma: once_positive(gamma - bound * math.sqrt(D) / t)) if w_set == "ball" else None,
        rounds=lambda D, gamma: bound * math.sqrt(D) / gamma,
        regrets=regrets,
    )
    return Method("accelerated_p_norm_perceptron", form, p, build, guarantee, 2, resident=True)


@register(
    "smooth_p_norm_perceptron",
    reference="gordan; the regularized p-norm game, beyond the paper",
    forms=("game",),
)
def smooth_p_norm_perceptron(*, form: str = "game", p: float = 3.0, eta: float | None = None) -> Method:
    """Play the Smooth Perceptron for p-norm margins: rate 1/t² where the accelerated p-norm Perceptron has 1/t.

    g = pᵀAw - ½‖w‖_q² for rows with ‖A_i‖_p ≤ 1, α_t = t: w first with OFTL (hint last), that is w_t = ∇½‖·‖_p² at the weighted
    average of Aᵀp; p with FTRL⁺[E, p_0, η], η = (q-1)/4 unless a smaller one is given.

    Guarantee: ½‖Aᵀp̄_T‖_p² - m(w̄_T) ≤ 2D/(ηT(T+1)) = 8(p-1)D/(T(T+1)); where γ² > 2·gap, normalized margin ≥ √(γ² - 2·gap).

    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], smooth_p_norm_perceptron(p=3.0), 200)
    >>> bool((trace.dual - trace.m <= trace.bound).all())  # the guarantee, at every recorded round
    True
    """
    choose("form", form, ("game",))
    p = check_norm(p)
    q = dual_exponent(p)
    step = (q - 1) / 4 if eta is None else eta
    if not is_number(step) or not 0 < step <= (q - 1) / 4:
        raise InputError(f"eta is {eta}; the guarantee needs 0 < eta <= (q-1)/4 = {(q - 1) / 4:.6g} for p = {p:g}")

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        game = Game(rows, p_set, p0, norm=p)
        return Protocol1(
            game,
            w=Leader(game.w_set, np.zeros(rows.d), hint="last", curvature=game.w_curvature),
            p=Leader(p_set, p0, Entropy(), step, hint="current"),
            first="w",
            weight=float,
        )

    def gap(t: int, D: float) -> float:
        return 2 * D / (step * t * (t + 1))

    guarantee = Guarantee(
        f"gap <= {2 / step:.4g} D/(T(T+1))",
        gap=gap,
        margin=root_margin(gap),
        rounds=lambda D, gamma: math.sqrt(4 * D / step) / gamma,
        regrets=partial(erm_regrets, step),
    )
    return Method("smooth_p_norm_perceptron", form, p, build, guarantee, 2, resident=True)


@register(
    "box_perceptron",
    reference="gordan; the bilinear game on the q-ball for 1 <= p < 2, beyond the paper",
    forms=("game",),
)
def box_perceptron(*, form: str = "game", p: float = 1.0) -> Method:
    """Play the accelerated Perceptron for p-norm margins with 1 ≤ p < 2; for p = 1 the vector w lives in a box.

    g = pᵀAw on ‖w‖_q ≤ 1 for rows with ‖A_i‖_p ≤ 1, α_t = 1: w first with OFTRL[½‖·‖₂², 0, η_w], hint last, whose argmin is a
    Euclidean projection onto the q-ball (p = 1: entries are clipped to [-1, 1]); p with FTRL⁺[E, p_0, 1/η_w]. ½‖·‖_q² is not
    strongly convex for q > 2, so that there is no game at rate 1/t²; ½‖·‖₂² is, and is at most ½d^{2/p-1} on the ball.
    η_w = √(d^{2/p-1}/(2D)).

    Guarantee: ‖Aᵀp̄_T‖_p - γ(w̄_T) ≤ √(2d^{2/p-1}D)/T.

    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], box_perceptron(p=1.0), 1000)
    >>> print(trace.w_best.round(3), [round(end, 3) for end in trace.bracket])
    [1.   0.25] [1.75, 1.75]
    """
    choose("form", form, ("game",))
    p = check_norm(p, 1.0, math.nextafter(2.0, 1.0))

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        game = Game(rows, p_set, p0, norm=p, curvature=0.0, radius=1.0)
        size = rows.d ** (2 / p - 1)
        eta = math.sqrt(size / (2 * game.D))
        return Protocol1(
            game,
            w=Leader(game.w_set, np.zeros(rows.d), SquaredNorm(), eta, hint="last"),
            p=Leader(p_set, p0, Entropy(), 1 / eta, hint="current"),
            first="w",
            weight=unit_weight,
            bound=lambda t: math.sqrt(2 * size * game.D) / t,
        )

    return Method("box_perceptron", form, p, build, Guarantee(f"gap <= sqrt(2 d^{2 / p - 1:.4g} D)/T"), 2, resident=True)
