"""The rescaled Perceptron, whose number of rounds grows with log(1/γ), which answers the paper's open question.

It plays the paper's methods phase by phase, on a dense copy of the rows in memory. It only proposes; `certificates` proves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.checkpoint import checkpointed
from gordan.dynamics import Form, Output, Round, Sums
from gordan.errors import InputError
from gordan.game import Game
from gordan.geometry import Simplex, norm
from gordan.methods.registry import Guarantee, Method, choose, get, register
from gordan.methods.smooth_perceptron import smooth_perceptron
from gordan.rows import Rows, of

# The largest number of entries of the dense copy.
MAX_COPIED_ENTRIES = 1 << 27
# The condition of W beyond which rounding may put a feasible w outside the ellipsoid (it does from 1e16 on), and the smallest
# size of W before it underflows.
MAX_CONDITION, MIN_SIZE = 1e14, 1e-250
# Why these methods support neither caps nor halves.
OWN_ROWS = "it has rows of its own in each phase"
# The number of bisection steps for log τ.
BISECTIONS = 60


@register(
    "rescaled_perceptron",
    reference="D. Dadush, L. Végh and G. Zambelli, Math. Oper. Res. 45 (2020) (plain step); the adaptive step is gordan's",
    forms=("published", "game"),
)
def rescaled_perceptron(*, form: str = "published", basic: str | Method = "smooth_perceptron", step: str = "adaptive") -> Method:
    """Find a separator in a number of phases that grows with log(1/γ), each of which plays a method on rescaled rows.

    State: a matrix W, at first I; the ellipsoid {Wu : ‖u‖ ≤ 1} holds every w with Aw ≥ 0, ‖w‖ ≤ 1. A phase, with ν_i = ‖Wᵀa_i‖:

    1. Play `basic` on the rows b_i = Wᵀa_i/ν_i until Bu > 0, and then w = Wu separates; or until e = ‖Bᵀp̄‖ ≤ 1/(3d).
    2. c_i = p̄_i max(1, p̄_i/e), G = Σc_i b_i b_iᵀ = VΛVᵀ; τ > 0 maximizes Σ_j log(1 + τλ_j) - d log(1 + τe), the gain.
    3. W ← W V diag(√((1 + τe)/(1 + τλ_j))) Vᵀ.

    `step="plain"` is c = p̄, τ = 1. d is the rank of A. Why: if Bu ≥ 0, ‖u‖ ≤ 1, then s = Bu ≤ 1 and p̄·s ≤ e, so that
    s_i ≤ min(1, e/p̄_i) and Σc_i s_i² ≤ e: u is in {uᵀ(I + τG)u ≤ 1 + τe}.

    Game: in each phase that of the basic method, on B. Mapped back, q_i ∝ p̄_i/ν_i bounds γ* by ‖Aᵀq‖.

    Guarantee: a gain of at least log 2 - 1/3 a phase, in all at most 2d log(1 + 1/γ̂), γ̂ the margin of the rows divided by their
    norms; so at most 5.56 d log(1 + 1/γ̂) phases, each as long as the basic method takes to a gap of 1/(3d), or of 1/(18d²) in a
    regularized game: 3d√(8D) rounds of `smooth_perceptron` (η = ½), 9d² of `perceptron` and of `frank_wolfe` by line search,
    4.5d√D of `mirror_prox_perceptron`. In floats it ends undecided once the condition of W is above 1e14. It finds a separator,
    not the margin, and supports neither nu nor halves.

    >>> import gordan, numpy as np
    >>> A = np.array([[1.0, 0.0], [-1.0, 1e-6]])  # a margin of 5e-7
    >>> trace = gordan.play(A, rescaled_perceptron(), 1000)
    >>> trace.status, bool((A @ trace.w > 0).all())
    ('finished', True)
    """
    choose("form", form, ("published", "game"))
    choose("step", step, ("adaptive", "plain"))
    played = basic_method(basic, form)

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        return Rescaled(Game(rows, p_set, p0), cache(lambda: Copy.of(rows)), played, step == "adaptive")

    statement = "at most 5.56 d log(1 + 1/gamma) phases"
    return Method("rescaled_perceptron", form, 2.0, build, Guarantee(statement), math.nan, plain=OWN_ROWS)


def basic_method(basic: str | Method, form: str) -> Method:
    """Return the method of a phase, with the longer of its proved steps."""
    if basic == "smooth_perceptron":
        return smooth_perceptron(form=form, eta=0.5)
    if isinstance(basic, str):
        entry = get(basic)
        basic = entry.for_norm(2.0, form=form if form in entry.forms else entry.forms[0])
    if not isinstance(basic, Method):
        raise InputError(f"basic is {basic!r:.60}; pass the name of a method, or a method with its options")
    if basic.norm != 2 or basic.noisy:
        what = "margins under noise" if basic.noisy else f"the norm {basic.norm:g}"
        raise InputError(f"basic is {basic.name!r}, which plays for {what}; phases are games for the norm 2 without noise")
    if not _ends(basic):
        raise InputError(
            f"basic is {basic.name!r}, which promises no gap, so that its phases need not end; use 'smooth_perceptron'"
        )
    return basic


def _ends(basic: Method) -> bool:
    """Return whether a theorem, of the method or of its form, says that its gap, or ‖Aᵀp‖ until it separates, tends to 0."""
    stated, point = basic.guarantee, Simplex(1)
    if stated.gap is not None or stated.upper is not None or stated.unseparated is not None:
        return True
    return getattr(basic.build(of(np.ones((1, 1))), point, point.centre), "bound", None) is not None


@dataclass(frozen=True, eq=False)
class Copy:
    """A dense copy of the rows, A = C Qᵀ with Q a basis of their span (None for the unit vectors), and their norms."""

    A: Array
    C: Array
    Q: Array | None
    norms: Array

    @staticmethod
    def of(rows: Rows) -> Copy:
        """Return the copy of these rows, or raise an InputError if it is too large."""
        if rows.n * rows.d > MAX_COPIED_ENTRIES:
            raise InputError(
                f"rescaling works on a dense copy of the rows, of at most {MAX_COPIED_ENTRIES:,} entries; use another method"
            )
        A = rows.scaled(1.0).take(np.arange(rows.n)).dense()  # this pass is counted by `start`
        norms = _lengths(A)
        # rows are scaled to about the same length by powers of two, or short ones would count as rounding errors of long ones
        _, sizes, right = np.linalg.svd(np.ldexp(A, -np.frexp(norms)[1][:, None]), full_matrices=False)
        rank = max(1, int(np.sum(sizes > max(A.shape) * np.finfo(float).eps * sizes[0])))
        Q = None if rank == rows.d else right[:rank].T
        return Copy(A, A if Q is None else A @ Q, Q, norms)

    def whole(self, u: Array) -> Array:
        """Return Q u, the vector in feature space for a vector u of coordinates."""
        return u if self.Q is None else self.Q @ u

    def combine(self, q: Array) -> tuple[Array, Array]:
        """Return q ≥ 0 normalized to mass 1, and Aᵀq."""
        q = q / np.max(q) if np.max(q) > 0 else np.ones_like(q)  # all may underflow if sizes differ widely
        q /= np.sum(q)
        return q, self.A.T @ q


def _lengths(A: Array) -> Array:
    """Return ‖A_i‖ of every row, without underflow."""
    top = np.max(np.abs(A), axis=1, initial=0.0)
    shares = np.divide(A, top[:, None], out=np.zeros_like(A), where=top[:, None] > 0)
    return np.asarray(top * np.sqrt(np.sum(shares * shares, axis=1)))


class _Phase(NamedTuple):
    """The rows rescaled by a W: the form of the basic method on them, B and ν."""

    form: Form
    B: Array
    lengths: Array


@checkpointed("rescaled_perceptron.ellipsoid")
class Ellipsoid(NamedTuple):
    """The state of all phases.

    It is W, the number of phases, the round after which the last one ended, the total gain, and the state and sums of the current
    phase.
    """

    W: Array
    phases: int
    since: int
    gain: float
    inner: Any
    sums: Sums


@dataclass(frozen=True, eq=False)
class Rescaled:
    """The form, which ends with a separator, when rows cancel up to rounding, or when W has lost too many digits."""

    game: Game
    copied: Callable[[], Copy]
    basic: Method
    adaptive: bool
    # the phase of the last W, cached because all of its rounds use it
    _last: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def copy(self) -> Copy:
        """The rows in memory."""
        return self.copied()

    def start(self) -> Ellipsoid:
        """Return the state before the first round."""
        self.game.rows.passes += 1
        W = np.eye(self.copy.C.shape[1])
        return Ellipsoid(W, 0, 0, 0.0, self._begun(W), Sums())

    def _begun(self, W: Array) -> Any:
        """Return the state of the basic method before the first round of a phase, or None if a row is 0."""
        phase = self._phase(W)
        self.game.rows.passes += 1
        return None if phase is None else phase.form.start()

    def _phase(self, W: Array) -> _Phase | None:
        if self._last.get("W") is not W:
            with np.errstate(divide="ignore", invalid="ignore"):
                B = (self.copy.C / self.copy.norms[:, None]) @ W
            lengths = _lengths(B)
            phase = None
            if (lengths > 0).all():
                B /= lengths[:, None]
                plain = Simplex(len(B))
                phase = _Phase(self.basic.on(of(B, threads=self.game.rows.threads), plain, plain.centre), B, lengths)
            self._last.update(W=W, phase=phase)
        found: _Phase | None = self._last["phase"]
        return found

    def round(self, state: Ellipsoid, t: int) -> tuple[Ellipsoid, Round]:
        """Play round t: return the state after it, and what was played."""
        rows, phase = self.game.rows, self._phase(state.W)
        if phase is None:  # a row is zero, and then a witness, or W has lost it to rounding
            q, combination = self.copy.combine((self.copy.norms == np.min(self.copy.norms)).astype(float))
            return state, Round(1.0, None, q, combination, output=Output(np.zeros(rows.d), None, None), finished=True)
        before = phase.form.game.rows.passes
        inner, played = phase.form.round(state.inner, t - state.since)
        sums = state.sums.after(phase.form.game, played)
        # the theorem of a method that plays no game is about p_t
        p_t = played.p if played.w is None else np.asarray(sums.p / sums.weight)
        p_bar = p_t if played.p_bar is None else played.p_bar
        u = np.asarray(sums.w / sums.weight) if played.output is None else played.output.w
        e = norm(phase.B.T @ p_bar, 2)
        known = None if played.output is None else played.output.lowest
        lowest = float(np.min(phase.B @ u)) if known is None else known
        rows.passes += phase.form.game.rows.passes - before + 2 + (known is None)  # Bᵀp̄, Aᵀq, and Bu where it is not known
        # relative to the least length and norm, so that nothing overflows
        shares = (np.min(phase.lengths) / phase.lengths) * (np.min(self.copy.norms) / self.copy.norms)
        q, combination = self.copy.combine(p_bar * shares)
        w = self.copy.whole(state.W @ u)
        ended = lowest > 0 or e == 0
        after = state._replace(inner=inner, sums=sums)
        if not ended and e <= 1 / (3 * len(state.W)):
            gain, factor = stretched(phase.B, p_bar, e, self.adaptive)
            W = state.W @ factor
            sizes = np.linalg.svd(W, compute_uv=False)
            ended = not (sizes[0] <= MAX_CONDITION * sizes[-1] and sizes[0] >= MIN_SIZE)
            if not ended:
                after = Ellipsoid(W, state.phases + 1, t, state.gain + gain, self._begun(W), Sums())
        return after, Round(1.0, None, q, combination, output=Output(w, None, None), finished=ended)


def stretched(B: Array, p: Array, e: float, adaptive: bool = True) -> tuple[float, Array]:
    """Return the gain of a phase, and the matrix by which W is multiplied."""
    c = p * np.maximum(1.0, p / e) if adaptive else p
    values, V = np.linalg.eigh((B * c[:, None]).T @ B)
    values = np.maximum(values, 0.0)

    def gain(tau: float) -> float:
        return float(np.sum(np.log1p(tau * values)) - len(values) * math.log1p(tau * e))

    tau = 1.0
    if adaptive:  # the slope, times 1 + τe, falls with τ; with every λ_j > e it stays positive, so that τ is bounded
        low, high = -8.0, math.log(1e6 / e)
        for _ in range(BISECTIONS):
            middle = math.exp((low + high) / 2)
            rising = float(np.sum((values - e) / (1 + middle * values))) > 0
            low, high = ((low + high) / 2, high) if rising else (low, (low + high) / 2)
        tau = max(1.0, math.exp((low + high) / 2), key=gain)
    return gain(tau), (V * np.sqrt((1 + tau * e) / (1 + tau * values))) @ V.T
