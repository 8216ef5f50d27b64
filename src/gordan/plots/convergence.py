"""The bracket around the margin, or around the least value of a loss, closing pass by pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.losses import Loss
from gordan.plots.fitted import COLOURS, INK, MARKERS, UNITS, above, axes, fitted
from gordan.trace import Trace

KINDS = ("bracket", "gap", "regret")
TITLES = {"bracket": "bracket of the {what}", "gap": "relative width of the bracket", "regret": "average regret"}
BOUNDS = ("upper: ‖Aᵀp‖", "lower: margin of w", "γ*")
# Recorded rounds up to which each has a mark; of more some have.
MARKS = 12


@dataclass(repr=False)
class ConvergenceDisplay:
    """The bracket lower ≤ γ* ≤ upper over passes through the data, and the one that the method's theorem promises.

    Of a run that minimizes a loss (`objective`) it is the bracket of the least value, which `margin` then is.

    `passes`, `lower`, `upper` are the recorded rounds; `promised` is (lower, upper) of the theorem for γ* = `margin`, or None for
    a method without a rate. `regret` is (R^w + R^p)/Σα of the two players, which bounds the game's gap, and `bound` what the
    theorem promises for that; None for a method that plays no game, or has no rate. `others` are further runs that are drawn on
    the same axes. After `plot`, `ax_` and `figure_` are what was drawn on.
    """

    passes: Array
    lower: Array
    upper: Array
    promised: tuple[Array, Array] | None
    margin: float
    name: str
    objective: bool = False
    regret: Array | None = None
    bound: Array | None = None
    others: tuple[ConvergenceDisplay, ...] = ()

    @classmethod
    def from_estimator(cls, estimator: Any, *, problem: int = 0, kind: str = "bracket", ax: Any = None) -> ConvergenceDisplay:
        """The run of a fitted `MaxMarginClassifier`, also where it minimized a loss; `problem` is the number of the binary
        problem when multiclass."""
        fitted(estimator)
        many = len(estimator.classes_) > 2
        traces = getattr(estimator, "trace_", None)
        trace = (traces[problem] if many else traces) if traces is not None else None
        if trace is None:
            raise InputError(
                "this plane has no trace: planes of several classes that were found together have none (fit with "
                "method='double_oracle'), nor has what was loaded from a file or a pickle (fit it)"
            )
        objectives = getattr(estimator, "objective_", None)
        found = (objectives[problem] if many else objectives) if objectives is not None else None
        bracket = found or (estimator.margin_[problem] if many else estimator.margin_)
        return cls._of(trace, float(sum(bracket) / 2) if np.isfinite(bracket[1]) else None).plot(ax, kind=kind)

    @classmethod
    def from_trace(cls, trace: Trace, *, kind: str = "bracket", ax: Any = None) -> ConvergenceDisplay:
        """Any trace, such as that of `gordan.play`, or of a result of `maximize_margin` or `minimize_loss`."""
        return cls.from_traces([trace], kind=kind, ax=ax)

    @classmethod
    def from_traces(
        cls, traces: Sequence[Trace], *, labels: Sequence[str] | None = None, kind: str = "bracket", ax: Any = None
    ) -> ConvergenceDisplay:
        """Several runs on the same data, each with a colour, a mark and a label of its own: one of `labels`, else its method."""
        for trace in traces:
            if not isinstance(trace, Trace):
                raise InputError(f"trace is {trace!r:.60}; pass what `gordan.play` returns, or the trace of a result")
        if not traces or (labels is not None and len(labels) != len(traces)):
            raise InputError(
                f"there are {len(traces)} traces and {len(labels or ())} labels; pass a trace or more, and a label for each"
            )
        runs = [cls._of(trace, None) for trace in traces]
        for run, label in zip(runs, labels or (), strict=bool(labels)):
            run.name = str(label)
        runs[0].others = tuple(runs[1:])
        return runs[0].plot(ax, kind=kind)

    @classmethod
    def _of(cls, trace: Trace, margin: float | None) -> ConvergenceDisplay:
        lower, upper = np.maximum(trace.lower, 0.0), np.asarray(trace.upper)
        margin = float(lower[-1] + upper[-1]) / 2 if margin is None else margin
        objective = trace.method in {*Loss}
        if objective:  # a step may be worse than an earlier one, whose ends still hold
            lower, upper = np.maximum.accumulate(lower), np.minimum.accumulate(upper)
        regret = None if trace.regret_w is None or trace.regret_p is None else (trace.regret_w + trace.regret_p) / trace.weight
        bound = None if trace.bound is None else np.asarray(trace.bound)
        name, promised = trace.method.replace("_", " ") if objective else trace.method, _promised(trace, margin)
        return cls(np.asarray(trace.passes), lower, upper, promised, margin, name, objective, regret, bound)

    def __repr__(self) -> str:
        what = "least value" if self.objective else "margin"
        others = "".join(f", {run.name}" for run in self.others)
        rounds = f"{len(self.passes)} recorded round{'s' * (len(self.passes) != 1)}"
        return f"ConvergenceDisplay({self.name}{others}: {rounds}, {what} {self.margin:.6g})"

    def plot(self, ax: Any = None, *, kind: str = "bracket") -> ConvergenceDisplay:
        """Draw the bracket itself, or on a logarithmic scale its relative width (kind "gap") or the regrets (kind "regret")."""
        runs = (self, *self.others)
        if kind not in KINDS:
            raise InputError(f"kind is {kind!r}; choose 'bracket', 'gap' or 'regret'")
        if kind == "regret" and all(run.regret is None for run in runs):
            raise InputError(f"{self.name} plays no game, so that there is no regret; draw its bracket or its gap")
        self.ax_ = axes(ax, "ConvergenceDisplay.plot")
        self.figure_ = self.ax_.figure
        for k, run in enumerate(runs):
            style: Any = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)], "alone": not self.others}
            {"bracket": run._bracket, "gap": run._gap, "regret": run._regret}[kind](self.ax_, **style)
        if kind == "bracket":
            self._frame(self.ax_, runs)
        else:
            self.ax_.set_yscale("log")
        if any(run._has_promise(kind) for run in runs):
            self.ax_.plot([], [], color=INK, linestyle="--", linewidth=1, label="promised by the theorem")
        last, first = max(run.passes[-1] for run in runs), min(run.passes[0] for run in runs)
        if last > 30 * max(1.0, first):
            self.ax_.set_xscale("log")
        else:
            self.ax_.set_xlim(0, 1.05 * last)
        self.ax_.set_xlabel("passes over the data")
        title = TITLES[kind].format(what="least value" if self.objective else "margin")
        if self.others:
            above(self.ax_, title)
        else:
            self.ax_.set_title(f"{self.name}: {title}", fontsize="medium")
            self.ax_.legend(frameon=False, fontsize="small")
        return self

    def _line(self, ax: Any, values: Array, label: str | None, color: str, marker: str) -> None:
        """A line with marks on some of the recorded rounds."""
        every = max(1, len(self.passes) // MARKS)
        ax.plot(self.passes, values, color=color, marker=marker, markersize=4.5, markevery=every, linewidth=1.4, label=label)

    def _promise(self, ax: Any, values: Array, shown: Array, color: str) -> None:
        ax.plot(self.passes[shown], values[shown], color=color, linestyle="--", linewidth=1)

    def _has_promise(self, kind: str) -> bool:
        return (self.regret is not None and self.bound is not None) if kind == "regret" else self.promised is not None

    def _top(self) -> float:
        """How high the bracket is drawn: a loss begins far above its least value."""
        return min(float(np.max(self.upper)), 3 * self.margin if self.objective and self.margin > 0 else np.inf)

    def _bracket(self, ax: Any, *, color: str, marker: str, alone: bool) -> None:
        words = ("upper: value of w", "lower: value of p", "least value") if self.objective else BOUNDS
        if alone:
            ax.fill_between(self.passes, self.lower, self.upper, color=color, alpha=0.12, linewidth=0)
            self._line(ax, self.upper, words[0], COLOURS[1], "v")
            self._line(ax, self.lower, words[1], COLOURS[0], "^")
        else:
            self._line(ax, self.upper, self.name, color, marker)
            self._line(ax, self.lower, None, color, marker)
        for end in self.promised or ():
            self._promise(ax, end, (end > 0) & (end <= 1.2 * self._top()), INK if alone else color)

    def _frame(self, ax: Any, runs: Sequence[ConvergenceDisplay]) -> None:
        """The line that the brackets close in on, and the axis across it."""
        narrowest = min(runs, key=lambda run: float(run.upper[-1] - run.lower[-1]))
        what, top = "least value" if self.objective else BOUNDS[2], max(run._top() for run in runs)
        label = f"{what} = {narrowest.margin:.4g}"
        ax.axhline(narrowest.margin, color=INK, linewidth=0.8, linestyle=":", label=None if self.others else label)
        if self.others:  # not in the legend, so that legends and panels of all kinds are of one height
            at: Any = {"xycoords": ("axes fraction", "data"), "xytext": (0, 3), "textcoords": "offset points"}
            ax.annotate(label, (0.02, narrowest.margin), **at, color=INK, fontsize="small")
        ax.set_ylim(0, 1.08 * top if top > 0 else 1)
        ax.set_ylabel("objective" if self.objective else f"margin ({UNITS})")

    def _gap(self, ax: Any, *, color: str, marker: str, alone: bool) -> None:
        gap = np.divide(self.upper - self.lower, self.upper, out=np.zeros_like(self.upper), where=self.upper > 0)
        gap = np.maximum(gap, np.finfo(float).eps)  # a float bracket may be empty by rounding
        self._line(ax, gap, "measured" if alone else self.name, color, marker)
        if self.promised is not None:
            low, high = self.promised
            self._promise(ax, 1 - low / high, np.ones(len(low), bool), INK if alone else color)
        ax.set_ylabel("gap: (upper - lower)/upper")

    def _regret(self, ax: Any, *, color: str, marker: str, alone: bool) -> None:
        if self.regret is None:
            return
        self._line(ax, np.where(self.regret > 0, self.regret, np.nan), "measured" if alone else self.name, color, marker)
        if self.bound is not None:
            self._promise(ax, self.bound, np.isfinite(self.bound), INK if alone else color)
        ax.set_ylabel(r"regret: $(R^w + R^p)/\Sigma\alpha$")


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
