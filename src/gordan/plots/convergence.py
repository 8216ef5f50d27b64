"""The bracket around the margin, or around the least value of a loss, closing pass by pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.losses import Loss
from gordan.plots.fitted import COLOURS, INK, axes, fitted
from gordan.trace import Trace

BOUNDS = ("upper: ‖Aᵀp‖", "lower: margin of w", "γ*")


@dataclass(repr=False)
class ConvergenceDisplay:
    """The bracket lower ≤ γ* ≤ upper over passes through the data, and the one that the method's theorem promises.

    Of a run that minimizes a loss (`objective`) it is the bracket of the least value, which `margin` then is.

    `passes`, `lower`, `upper` are the recorded rounds; `promised` is (lower, upper) of the theorem for γ* = `margin`, or None for
    a method without a rate. After `plot`, `ax_` and `figure_` are what was drawn on.
    """

    passes: Array
    lower: Array
    upper: Array
    promised: tuple[Array, Array] | None
    margin: float
    name: str
    objective: bool = False

    @classmethod
    def from_estimator(cls, estimator: Any, *, problem: int = 0, kind: str = "bracket", ax: Any = None) -> ConvergenceDisplay:
        """The run of a fitted `MaxMarginClassifier`, also where it minimized a loss; `problem` is the number of the binary
        problem when multiclass."""
        fitted(estimator)
        many = len(estimator.classes_) > 2
        traces = getattr(estimator, "trace_", None)
        trace = (traces[problem] if many else traces) if traces is not None else None
        if trace is None:
            raise InputError("this classifier has no trace (it was loaded from a file); fit it")
        objectives = getattr(estimator, "objective_", None)
        found = (objectives[problem] if many else objectives) if objectives is not None else None
        bracket = found or (estimator.margin_[problem] if many else estimator.margin_)
        return cls._of(trace, float(sum(bracket) / 2) if np.isfinite(bracket[1]) else None).plot(ax, kind=kind)

    @classmethod
    def from_trace(cls, trace: Trace, *, kind: str = "bracket", ax: Any = None) -> ConvergenceDisplay:
        """Any trace, such as that of `gordan.play`, or of a result of `maximize_margin` or `minimize_loss`."""
        if not isinstance(trace, Trace):
            raise InputError(f"trace is {trace!r:.60}; pass what `gordan.play` returns, or the trace of a result")
        return cls._of(trace, None).plot(ax, kind=kind)

    @classmethod
    def _of(cls, trace: Trace, margin: float | None) -> ConvergenceDisplay:
        lower, upper = np.maximum(trace.lower, 0.0), np.asarray(trace.upper)
        margin = float(lower[-1] + upper[-1]) / 2 if margin is None else margin
        objective = trace.method in {*Loss}
        if objective:  # a step may be worse than an earlier one, whose ends still hold
            lower, upper = np.maximum.accumulate(lower), np.minimum.accumulate(upper)
        name = trace.method.replace("_", " ") if objective else trace.method
        return cls(np.asarray(trace.passes), lower, upper, _promised(trace, margin), margin, name, objective)

    def __repr__(self) -> str:
        what = "least value" if self.objective else "margin"
        return f"ConvergenceDisplay({self.name}: {len(self.passes)} recorded rounds, {what} {self.margin:.6g})"

    def plot(self, ax: Any = None, *, kind: str = "bracket") -> ConvergenceDisplay:
        """Draw the bracket itself, or (kind "gap") its relative width on a logarithmic scale."""
        if kind not in ("bracket", "gap"):
            raise InputError(f"kind is {kind!r}; choose 'bracket' or 'gap'")
        self.ax_ = axes(ax, "ConvergenceDisplay.plot")
        self.figure_ = self.ax_.figure
        (self._bracket if kind == "bracket" else self._gap)(self.ax_)
        if self.passes[-1] > 30 * max(1.0, self.passes[0]):
            self.ax_.set_xscale("log")
        else:
            self.ax_.set_xlim(0, 1.05 * self.passes[-1])
        self.ax_.set(xlabel="passes over the data", title=self.name)
        self.ax_.legend(frameon=False)
        return self

    def _bracket(self, ax: Any) -> None:
        few = {"marker": "o", "markersize": 3.5} if len(self.passes) < 40 else {}
        ax.fill_between(self.passes, self.lower, self.upper, color=COLOURS[0], alpha=0.15, linewidth=0)
        words = ("upper: value of w", "lower: value of p", "least value") if self.objective else BOUNDS
        ax.plot(self.passes, self.upper, color=COLOURS[1], label=words[0], **few)
        ax.plot(self.passes, self.lower, color=COLOURS[0], label=words[1], **few)
        # a loss begins far above its least value
        top = min(float(np.max(self.upper)), 3 * self.margin if self.objective and self.margin > 0 else np.inf)
        if self.promised is not None:
            for k, end in enumerate(self.promised):
                shown = (end > 0) & (end <= 1.2 * top)
                label = "promised by the theorem" if k == 0 else None
                ax.plot(self.passes[shown], end[shown], color=INK, linestyle="--", linewidth=1, label=label)
        ax.axhline(self.margin, color=INK, linewidth=0.8, linestyle=":", label=f"{words[2]} = {self.margin:.4g}")
        ax.set_ylim(0, 1.08 * top if top > 0 else 1)
        ax.set_ylabel("objective" if self.objective else "margin")

    def _gap(self, ax: Any) -> None:
        few = {"marker": "o", "markersize": 3.5} if len(self.passes) < 40 else {}
        gap = np.divide(self.upper - self.lower, self.upper, out=np.zeros_like(self.upper), where=self.upper > 0)
        gap = np.maximum(gap, np.finfo(float).eps)  # a float bracket may be empty by rounding
        ax.plot(self.passes, gap, color=COLOURS[0], label="measured", **few)
        if self.promised is not None:
            low, high = self.promised
            ax.plot(self.passes, 1 - low / high, color=INK, linestyle="--", linewidth=1, label="promised by the theorem")
        ax.set_yscale("log")
        ax.set_ylim(float(np.min(gap)) / 3, 2)
        ax.set_ylabel("gap: (upper - lower)/upper")


def _promised(trace: Trace, margin: float) -> tuple[Array, Array] | None:
    """The bracket that dual - m ≤ bound implies for γ* = margin.

    In a game with ½‖w‖², ½‖Aᵀp̄‖² ≤ ½γ² + bound and γ(w̄)²/‖w̄‖² ≥ γ² - 2·bound; over the ball each is off by at most the bound.
    Which it is the first round tells: there the dual value is ‖Aᵀp̄‖ over the ball, else at most half of it (rows have norm ≤ 1).
    """
    if trace.bound is None or trace.dual is None or not np.isfinite(trace.bound).all():
        return None
    bound, size = np.asarray(trace.bound), margin / trace.scale
    if (trace.dual >= np.asarray(trace.upper) / trace.scale * (1 - 1e-9)).all():
        low, high = size - bound, size + bound
    else:
        low, high = np.sqrt(np.maximum(size**2 - 2 * bound, 0.0)), np.sqrt(size**2 + 2 * bound)
    return np.maximum(low, 0.0) * trace.scale, high * trace.scale
