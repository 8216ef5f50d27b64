"""`MarginDisplay`: histograms of the distances of both classes to the plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.plots.fitted import (
    COLOURS,
    INK,
    UNITS,
    axes_or_new,
    binary_problem,
    describe_plane,
    legend_above,
    minimizes_loss,
    of_problem,
    require_fitted,
    shortened,
)


@dataclass(repr=False)
class MarginDisplay:
    """Histograms of the signed distances of both classes to the plane, with support rows and closest points of the hulls.

    Attributes
    ----------
    distances : ndarray
        The signed distance of each row to the plane.
    signs : ndarray
        The side of each row, -1 or 1.
    support : ndarray of bool
        Which rows are support rows; none if the data is not that of the fit.
    closest : tuple of float, or None
        The signed distances of the closest points of the two hulls.
    labels : tuple of str
        The names of the negative and the positive side.
    ax_, figure_
        The matplotlib axes and figure of the plot.

    Examples
    --------
    >>> import gordan
    >>> X, y = gordan.datasets.iris()
    >>> model = gordan.MaxMarginClassifier().fit(X, y)
    >>> gordan.MarginDisplay.from_estimator(model, X, y)
    MarginDisplay(1 against -1: 150 rows)
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
        """Plot the distances of rows to a plane of a fitted classifier.

        Parameters
        ----------
        estimator : MaxMarginClassifier
            The fitted classifier.
        X : array-like or sparse matrix of shape (n, d)
            The rows. Support rows are marked if they are those of the fit.
        y : array-like of shape (n,) or (n, k)
            Their labels.
        problem : int, default=0
            The number of the plane, if there are several.
        bins : int, default=40
            The approximate number of bins.
        ax : matplotlib Axes, default=None
            The axes to draw on; None creates a figure.

        Returns
        -------
        MarginDisplay
            The display, which has the axes as `ax_`.
        """
        require_fitted(estimator, "MaxMarginClassifier", "margin_")
        found = binary_problem(estimator, X, y, problem)
        share = found.share
        closest = None
        if share is not None and not minimizes_loss(estimator, problem):
            ends = [float(share[found.signs == sign] @ found.scores[found.signs == sign]) for sign in (-1, 1)]
            closest = ends[0], ends[1]
        nu = of_problem(estimator, "nu_", problem)
        title = f"{found.labels[1]} against {found.labels[0]}: {describe_plane(estimator, problem, nu)}"
        display = cls(found.scores, found.signs, found.weights > 0, closest, found.labels, nu is not None, title)
        return display.plot(ax, bins=bins)

    def __repr__(self) -> str:
        return f"MarginDisplay({self.labels[1]} against {self.labels[0]}: {len(self.distances)} rows)"

    def plot(self, ax: Any = None, *, bins: int = 40) -> MarginDisplay:
        """Draw the histograms on `ax`, or in a new figure if it is None, and return the display."""
        self.ax_ = axes_or_new(ax, "MarginDisplay.plot")
        self.figure_ = self.ax_.figure
        edges = self._edges(bins)
        tallest = 1
        for k, sign in enumerate((-1, 1)):
            own = self.signs == sign
            style = {"color": COLOURS[k], "alpha": 0.55, "hatch": ("", "///")[k], "edgecolor": "white", "linewidth": 0}
            label = f"{shortened(self.labels[k])} ({np.count_nonzero(own)})"
            counts, _, _ = self.ax_.hist(self.distances[own], bins=edges, label=label, **style)
            tallest = max(tallest, int(np.max(counts)))
        for k, sign in enumerate((-1, 1)):
            at = self.distances[(self.signs == sign) & self.support]
            if len(at):
                level = np.full(len(at), -(0.035 + 0.05 * k) * tallest)
                marked = f"support rows, {shortened(self.labels[k])} ({len(at)})"
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
        legend_above(self.ax_, self.title)
        return self

    def _edges(self, bins: int) -> Array:
        """Return the edges of about so many bins; the plane is one, and so are both ends of a hard margin that is wide enough."""
        low, high = float(np.min(self.distances)), float(np.max(self.distances))
        width = (high - low) / bins if high > low else 1.0
        if self.closest is not None and not self.soft:
            margin = (self.closest[1] - self.closest[0]) / 2
            if margin >= 0.4 * width:
                width = margin / np.ceil(margin / width)
        # a little closer to the plane, so that rows on the margin, up to rounding, are in the bin beyond its end
        return np.asarray(width * (1 - 1e-9) * np.arange(np.floor(low / width - 0.5), np.ceil(high / width) + 1.5))
