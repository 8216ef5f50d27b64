"""`ConvergenceDisplay`: the interval for the margin, or for the least value of a loss, pass by pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gordan.arrays import Array, choose
from gordan.errors import InputError
from gordan.plots.fitted import COLOURS, INK, MARKERS, UNITS, axes_or_new, legend_above, of_problem, require_fitted
from gordan.trace import Trace

TITLES = {"bracket": "bracket of the {what}", "gap": "relative width of the bracket", "regret": "average regret"}
BOUNDS = ("upper: ‖Aᵀp‖", "lower: margin of w", "γ*")
# The number of recorded rounds up to which each has a marker; of more rounds about as many have.
MARKED_ROUNDS = 12


@dataclass(repr=False)
class ConvergenceDisplay:
    """Plot of the bracket lower ≤ γ* ≤ upper against passes over the data, with the one that the method's theorem promises.

    For a run that minimizes a loss it is the bracket of the least value.

    Attributes
    ----------
    passes, lower, upper : ndarray
        The recorded rounds: the passes over the data, and the ends of the bracket.
    promised : tuple of ndarray, or None
        The ends of the bracket that the theorem promises for γ* = `margin`; None for a method without a rate.
    margin : float
        The margin γ*, or the least value.
    name : str
        The name of the run in the legend.
    objective : bool
        Whether the run minimizes a loss.
    regret : ndarray or None
        (R^w + R^p)/Σα of the two players, which bounds the game's gap; None for a method that plays no game.
    bound : ndarray or None
        The bound of the theorem for that; None for a method without a rate.
    others : tuple of ConvergenceDisplay
        Further runs that are drawn on the same axes.
    ax_, figure_
        The matplotlib axes and figure of the plot.

    Examples
    --------
    >>> import gordan
    >>> X, y = gordan.datasets.iris()
    >>> traces = [gordan.maximize_margin(X, y, method=name).trace for name in ("smooth_perceptron", "nesterov")]
    >>> display = gordan.ConvergenceDisplay.from_traces(traces, kind="gap")
    >>> display.ax_.get_xlabel()
    'passes over the data'
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
        """Plot the run of a fitted classifier.

        Parameters
        ----------
        estimator : MaxMarginClassifier or LinearClassifier
            The fitted classifier.
        problem : int, default=0
            The number of the plane, if there are several.
        kind : {"bracket", "gap", "regret"}, default="bracket"
            What to draw: the bracket, its relative width on a logarithmic scale, or the average regret of the two players.
        ax : matplotlib Axes, default=None
            The axes to draw on; None creates a figure.

        Returns
        -------
        ConvergenceDisplay
            The display, which has the axes as `ax_`.
        """
        require_fitted(estimator)
        trace = of_problem(estimator, "trace_", problem)
        if trace is None:
            alone = (
                "fit with method='double_oracle'" if hasattr(estimator, "margin_") else "use minimize_loss(X, y == label).trace"
            )
            raise InputError(
                f"this plane has no trace: planes of several classes that were found together have none ({alone}), and files and "
                "pickles do not contain it (fit again)"
            )
        bracket = of_problem(estimator, "objective_", problem)
        bracket = of_problem(estimator, "margin_", problem) if bracket is None else bracket
        margin = float(sum(bracket) / 2) if np.isfinite(bracket[1]) else None
        return cls._from_run(trace, margin).plot(ax, kind=kind)

    @classmethod
    def from_trace(cls, trace: Trace, *, kind: str = "bracket", ax: Any = None) -> ConvergenceDisplay:
        """Plot the trace that `gordan.play` returned, or that of a result of `maximize_margin` or `minimize_loss`.

        `kind` and `ax` are as for `from_estimator`.
        """
        return cls.from_traces([trace], kind=kind, ax=ax)

    @classmethod
    def from_traces(
        cls, traces: Sequence[Trace], *, labels: Sequence[str] | None = None, kind: str = "bracket", ax: Any = None
    ) -> ConvergenceDisplay:
        """Plot several runs on the same data, each with its own colour, marker and label.

        `labels` are their names in the legend, by default those of the methods; `kind` and `ax` are as for `from_estimator`. The
        display returned is that of the first run, which has the others as `others`.
        """
        for trace in traces:
            if not isinstance(trace, Trace):
                raise InputError(f"trace is {trace!r:.60}; pass what `gordan.play` returns, or the trace of a result")
        if not traces or (labels is not None and len(labels) != len(traces)):
            raise InputError(
                f"there are {len(traces)} traces and {len(labels or ())} labels; pass at least one trace, and a label for each"
            )
        runs = [cls._from_run(trace, None) for trace in traces]
        for run, label in zip(runs, labels or (), strict=bool(labels)):
            run.name = str(label)
        runs[0].others = tuple(runs[1:])
        return runs[0].plot(ax, kind=kind)

    @classmethod
    def _from_run(cls, trace: Trace, margin: float | None) -> ConvergenceDisplay:
        """Return the display of a run, not yet drawn; without a margin the middle of its last bracket is used."""
        lower, upper = np.maximum(trace.lower, 0.0), np.asarray(trace.upper)
        margin = float(lower[-1] + upper[-1]) / 2 if margin is None else margin
        objective = trace.loss is not None
        if objective:  # a step may be worse than an earlier one, whose bracket is still valid
            lower, upper = np.maximum.accumulate(lower), np.minimum.accumulate(upper)
        bound = None if trace.bound is None else np.asarray(trace.bound)
        name, promised = trace.method.replace("_", " ") if trace.method == trace.loss else trace.method, _promised(trace, margin)
        return cls(np.asarray(trace.passes), lower, upper, promised, margin, name, objective, trace.average_regret, bound)

    def __repr__(self) -> str:
        what = "least value" if self.objective else "margin"
        others = "".join(f", {run.name}" for run in self.others)
        rounds = f"{len(self.passes)} recorded round{'s' * (len(self.passes) != 1)}"
        return f"ConvergenceDisplay({self.name}{others}: {rounds}, {what} {self.margin:.6g})"

    def plot(self, ax: Any = None, *, kind: str = "bracket") -> ConvergenceDisplay:
        """Draw the plot of this kind (as for `from_estimator`) on `ax`, or in a new figure if it is None."""
        runs = (self, *self.others)
        choose("kind", kind, TITLES)
        if kind == "regret" and all(run.regret is None for run in runs):
            raise InputError(f"{self.name} plays no game, so it has no regret; pass kind='bracket' or kind='gap'")
        self.ax_ = axes_or_new(ax, "ConvergenceDisplay.plot")
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
            legend_above(self.ax_, title)
        else:
            self.ax_.set_title(f"{self.name}: {title}", fontsize="medium")
            self.ax_.legend(frameon=False, fontsize="small")
        return self

    def _line(self, ax: Any, values: Array, label: str | None, color: str, marker: str) -> None:
        """Draw a line with markers at some of the recorded rounds."""
        every = max(1, len(self.passes) // MARKED_ROUNDS)
        ax.plot(self.passes, values, color=color, marker=marker, markersize=4.5, markevery=every, linewidth=1.4, label=label)

    def _promise(self, ax: Any, values: Array, shown: Array, color: str) -> None:
        """Draw what the theorem promises, at the recorded rounds that are `shown`."""
        ax.plot(self.passes[shown], values[shown], color=color, linestyle="--", linewidth=1)

    def _has_promise(self, kind: str) -> bool:
        """Return whether a plot of this kind shows a promise of the theorem."""
        return (self.regret is not None and self.bound is not None) if kind == "regret" else self.promised is not None

    def _top(self) -> float:
        """Return the upper end of the axis, which leaves out the first steps of a loss, far above its least value."""
        return min(float(np.max(self.upper)), 3 * self.margin if self.objective and self.margin > 0 else np.inf)

    def _bracket(self, ax: Any, *, color: str, marker: str, alone: bool) -> None:
        """Draw the bracket of this run, which may be `alone` in the plot."""
        labels = ("upper: value of w", "lower: value of p", "least value") if self.objective else BOUNDS
        if alone:
            ax.fill_between(self.passes, self.lower, self.upper, color=color, alpha=0.12, linewidth=0)
            self._line(ax, self.upper, labels[0], COLOURS[1], "v")
            self._line(ax, self.lower, labels[1], COLOURS[0], "^")
        else:
            self._line(ax, self.upper, self.name, color, marker)
            self._line(ax, self.lower, None, color, marker)
        for end in self.promised or ():
            self._promise(ax, end, (end > 0) & (end <= 1.2 * self._top()), INK if alone else color)

    def _frame(self, ax: Any, runs: Sequence[ConvergenceDisplay]) -> None:
        """Draw the line that the brackets converge to, and label the axis."""
        narrowest = min(runs, key=lambda run: float(run.upper[-1] - run.lower[-1]))
        what, top = "least value" if self.objective else BOUNDS[2], max(run._top() for run in runs)
        label = f"{what} = {narrowest.margin:.4g}"
        ax.axhline(narrowest.margin, color=INK, linewidth=0.8, linestyle=":", label=None if self.others else label)
        if self.others:  # not in the legend, so that legends and panels of all kinds have the same height
            at: Any = {"xycoords": ("axes fraction", "data"), "xytext": (0, 3), "textcoords": "offset points"}
            ax.annotate(label, (0.02, narrowest.margin), **at, color=INK, fontsize="small")
        ax.set_ylim(0, 1.08 * top if top > 0 else 1)
        ax.set_ylabel("objective" if self.objective else f"margin ({UNITS})")

    def _gap(self, ax: Any, *, color: str, marker: str, alone: bool) -> None:
        """Draw the relative width of the bracket of this run."""
        gap = np.divide(self.upper - self.lower, self.upper, out=np.zeros_like(self.upper), where=self.upper > 0)
        gap = np.maximum(gap, np.finfo(float).eps)  # a float bracket may be empty by rounding
        self._line(ax, gap, "measured" if alone else self.name, color, marker)
        if self.promised is not None:
            low, high = self.promised
            self._promise(ax, 1 - low / high, np.ones(len(low), bool), INK if alone else color)
        ax.set_ylabel("gap: (upper - lower)/upper")

    def _regret(self, ax: Any, *, color: str, marker: str, alone: bool) -> None:
        """Draw the average regret of this run, if it has one."""
        if self.regret is None:
            return
        self._line(ax, np.where(self.regret > 0, self.regret, np.nan), "measured" if alone else self.name, color, marker)
        if self.bound is not None:
            self._promise(ax, self.bound, np.isfinite(self.bound), INK if alone else color)
        ax.set_ylabel(r"regret: $(R^w + R^p)/\Sigma\alpha$")


def _promised(trace: Trace, margin: float) -> tuple[Array, Array] | None:
    """Return the bracket that dual - m ≤ bound implies for γ* = margin; None for a method without a bound.

    In a game with ½‖w‖², ½‖Aᵀp̄‖² ≤ ½γ² + bound and γ(w̄)²/‖w̄‖² ≥ γ² - 2·bound; in a game over the ball each end is off by at
    most the bound. The dual value tells which game it is: over the ball it is ‖Aᵀp̄‖, otherwise at most half of it (rows have
    norm ≤ 1).
    """
    if trace.bound is None or trace.dual is None or not np.isfinite(trace.bound).all():
        return None
    bound, size = np.asarray(trace.bound), margin / trace.scale
    if (trace.dual >= np.asarray(trace.upper) / trace.scale * (1 - 1e-9)).all():
        low, high = size - bound, size + bound
    else:
        low, high = np.sqrt(np.maximum(size**2 - 2 * bound, 0.0)), np.sqrt(size**2 + 2 * bound)
    return np.maximum(low, 0.0) * trace.scale, high * trace.scale
