"""How far the rows are from the plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.plots.fitted import COLOURS, INK, UNITS, above, axes, by_loss, planes_told, short, side


@dataclass(repr=False)
class MarginDisplay:
    """The signed distances x·w + b of both classes, with the support rows below and the closest points of the hulls.

    `distances` and `signs` are the rows, `support` marks those of positive weight (none where the data is not that of the fit),
    `closest` holds the distances of the closest points (negative side, positive side) or is None, `labels` names the sides.
    """

    distances: Array
    signs: Array
    support: Array
    closest: tuple[float, float] | None
    labels: tuple[str, str]
    soft: bool
    title: str = ""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, problem: int = 0, bins: int = 40, ax: Any = None) -> MarginDisplay:
        """The rows of X, y seen from the plane of that number; support rows are marked on the data of the fit."""
        found = side(estimator, X, y, problem)
        share = found.share
        closest = None
        if share is not None and not by_loss(estimator, problem):
            ends = [float(share[found.signs == sign] @ found.scores[found.signs == sign]) for sign in (-1, 1)]
            closest = ends[0], ends[1]
        nu = estimator.nu_[problem] if isinstance(getattr(estimator, "nu_", None), list) else getattr(estimator, "nu_", None)
        title = f"{found.labels[1]} against {found.labels[0]}: {planes_told(estimator, problem, nu)}"
        display = cls(found.scores, found.signs, found.weights > 0, closest, found.labels, nu is not None, title)
        return display.plot(ax, bins=bins)

    def __repr__(self) -> str:
        return f"MarginDisplay({self.labels[1]} against {self.labels[0]}: {len(self.distances)} rows)"

    def plot(self, ax: Any = None, *, bins: int = 40) -> MarginDisplay:
        """Draw two histograms of about so many bins, one tick for each support row, and the plane at 0."""
        self.ax_ = axes(ax, "MarginDisplay.plot")
        self.figure_ = self.ax_.figure
        edges = self._edges(bins)
        tallest = 1
        for k, sign in enumerate((-1, 1)):
            own = self.signs == sign
            style = {"color": COLOURS[k], "alpha": 0.55, "hatch": ("", "///")[k], "edgecolor": "white", "linewidth": 0}
            label = f"{short(self.labels[k])} ({np.count_nonzero(own)})"
            counts, _, _ = self.ax_.hist(self.distances[own], bins=edges, label=label, **style)
            tallest = max(tallest, int(np.max(counts)))
        for k, sign in enumerate((-1, 1)):
            at = self.distances[(self.signs == sign) & self.support]
            if len(at):
                level = np.full(len(at), -(0.035 + 0.05 * k) * tallest)
                marked = f"support rows, {short(self.labels[k])} ({len(at)})"
                self.ax_.plot(at, level, "|", color=COLOURS[k], markersize=9, markeredgewidth=1.5, label=marked, zorder=5)
        self.ax_.axvline(0, color=INK, linewidth=1.2)
        if self.closest is not None:
            hulls = "reduced hulls" if self.soft else "hulls"
            for k, at in enumerate(self.closest):
                apart = f"closest points of the {hulls}, {self.closest[1] - self.closest[0]:.3g} apart" if k == 0 else None
                self.ax_.plot([at, at], [0, 1.08 * tallest], color=INK, linewidth=1, linestyle="--", label=apart)
        bottom = -0.13 * tallest if self.support.any() else 0
        self.ax_.set_ylim(bottom, 1.08 * tallest)
        self.ax_.locator_params(axis="y", integer=True)
        self.ax_.set_yticks([tick for tick in self.ax_.get_yticks() if 0 <= tick <= 1.08 * tallest])
        self.ax_.set(xlabel=f"signed distance to the plane ({UNITS})", ylabel="rows")
        above(self.ax_, self.title)
        return self

    def _edges(self, bins: int) -> Array:
        """Edges of about so many bins: one is the plane, and for a hard margin that can be seen two are its ends."""
        low, high = float(np.min(self.distances)), float(np.max(self.distances))
        width = (high - low) / bins if high > low else 1.0
        if self.closest is not None and not self.soft:
            margin = (self.closest[1] - self.closest[0]) / 2
            if margin >= 0.4 * width:
                width = margin / np.ceil(margin / width)
        # a little towards the plane: the rows on the margin, to rounding, are then beyond its end
        return np.asarray(width * (1 - 1e-9) * np.arange(np.floor(low / width - 0.5), np.ceil(high / width) + 1.5))
