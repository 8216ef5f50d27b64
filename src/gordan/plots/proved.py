"""Which predictions the exact minimizer of a loss is proved to share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.plots.fitted import COLOURS, INK, above, axes, fitted


@dataclass(repr=False)
class ProvedDisplay:
    """How far ahead the predicted class of each row is, and whether the exact minimizer is proved to predict it too.

    `ahead` is the size of x·w + b, of several classes the largest score less the next; `proved` is `same_prediction`; `wrong`
    marks rows with another label, or is None where there are no labels. After `plot`, `ax_` and `figure_` are what was drawn on.
    """

    ahead: Array
    proved: Array
    wrong: Array | None
    name: str

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, bins: int = 40, ax: Any = None) -> ProvedDisplay:
        """The rows of X as a fitted `LinearClassifier` predicts them; y are their labels, if they are known."""
        fitted(estimator, "LinearClassifier", "same_prediction")
        scores = np.asarray(estimator.decision_function(X))
        if scores.ndim == 1:
            ahead = np.abs(scores)
        else:
            best = np.partition(scores, -2, axis=1)[:, -2:]
            ahead = best[:, 1] - best[:, 0]
        wrong = None if y is None else np.asarray(estimator.predict(X) != np.asarray(y))
        return cls(ahead, estimator.same_prediction(X), wrong, str(estimator.loss)).plot(ax, bins=bins)

    def __repr__(self) -> str:
        return f"ProvedDisplay({self.name}: {np.count_nonzero(self.proved)} of {len(self.proved)} rows proved)"

    def plot(self, ax: Any = None, *, bins: int = 40) -> ProvedDisplay:
        """Draw a histogram on a logarithmic axis, open rows on proved ones, and a tick below for each row that is wrong."""
        self.ax_ = ax = axes(ax, "ProvedDisplay.plot")
        self.figure_ = ax.figure
        floor = float(np.min(self.ahead, where=self.ahead > 0, initial=np.inf))
        floor, top = (floor, float(np.max(self.ahead))) if np.isfinite(floor) else (0.5, 1.0)
        edges = np.geomspace(floor, max(top, floor * 1.01) * (1 + 1e-9), bins + 1)
        at = np.maximum(self.ahead, floor)  # rows on a boundary are in the first bin
        share = 100 * float(np.mean(self.proved))
        tallest = 1
        parts = (
            (self.proved, COLOURS[0], f"proved ({np.count_nonzero(self.proved)}, {share:.1f} %)"),
            (~self.proved, COLOURS[1], f"open ({np.count_nonzero(~self.proved)})"),
        )
        base = np.zeros(bins)
        for own, colour, label in parts:
            counts = np.histogram(at[own], bins=edges)[0]
            hatch = "" if own is self.proved else "///"
            ax.stairs(
                base + counts, edges, baseline=base, fill=True, facecolor=colour, edgecolor="white", hatch=hatch, label=label
            )
            base = base + counts
            tallest = max(tallest, int(base.max()))
        if self.wrong is not None and self.wrong.any():
            label = f"wrong ({np.count_nonzero(self.wrong)})"
            level = np.full(np.count_nonzero(self.wrong), -0.05 * tallest)
            ax.plot(at[self.wrong], level, "|", color=INK, markersize=8, label=label)
            ax.set_ylim(-0.1 * tallest, 1.08 * tallest)
        else:
            ax.set_ylim(0, 1.08 * tallest)
        ax.set_xscale("log")
        ax.locator_params(axis="y", integer=True)
        ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= 1.08 * tallest])
        ax.set(xlabel="lead of the predicted class (difference of scores)", ylabel="rows")
        above(ax, f"{self.name.replace('_', ' ')} loss: predictions that the exact minimizer shares")
        return self
