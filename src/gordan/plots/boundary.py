"""`BoundaryDisplay`: the decision boundary of a classifier of two features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gordan.arrays import Array, require_aligned
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.io.model import chosen
from gordan.plots.fitted import (
    COLOURS,
    INK,
    MARKERS,
    axes_or_new,
    binary_problem,
    describe_plane,
    legend_above,
    minimizes_loss,
    of_problem,
    require_fitted,
    shortened,
)

# The number of directions in which extreme points of a reduced hull are computed.
DIRECTIONS = 720


@dataclass(repr=False)
class BoundaryDisplay:
    """Plot of the points, the hulls of the classes and the decision boundary, for data with two features.

    For two classes it also shows the closest points of the hulls. If the margin is soft, the hulls are the reduced ones,
    {Σ p_i x_i : p_i ≤ 2c_i/(νΣc), Σp = 1} over each class: the plane is halfway between these, up to the choice of b.

    Attributes
    ----------
    hulls : list of ndarray
        The corners of the hull of each class, in order.
    planes : list of tuple
        The (w, b) of the lines that are drawn.
    closest : tuple of ndarray, or None
        The closest points of the two hulls.
    support : ndarray of bool
        Which rows are support rows.
    ax_, figure_
        The matplotlib axes and figure of the plot.

    Examples
    --------
    >>> import gordan
    >>> X, y = gordan.datasets.iris()
    >>> model = gordan.MaxMarginClassifier().fit(X[:, :2], y)
    >>> gordan.BoundaryDisplay.from_estimator(model, X[:, :2], y)
    BoundaryDisplay(-1, 1: 150 rows)
    """

    X: Array
    y: Array
    classes: list[Any]
    grid: tuple[Array, Array, Array]
    hulls: list[Array]
    planes: list[tuple[Array, float]]
    closest: tuple[Array, Array] | None
    support: Array
    soft: bool
    names: tuple[str, str] = ("x₀", "x₁")
    limits: tuple[float, float, float, float] = (0.0, 1.0, 0.0, 1.0)
    title: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, resolution: int = 600, ax: Any = None
    ) -> BoundaryDisplay:
        """Plot the boundary of a fitted classifier.

        Parameters
        ----------
        estimator : MaxMarginClassifier or LinearClassifier
            The classifier, fitted to two features. Support rows are those of a MaxMarginClassifier.
        X : array-like of shape (n, 2)
            The points to draw, usually those of the fit.
        y : array-like of shape (n,)
            Their labels.
        sample_weight : array-like of shape (n,), default=None
            The weights of the fit, if it had any; they determine the reduced hulls.
        resolution : int, default=600
            The number of grid points in each direction for the background, which shows the predictions.
        ax : matplotlib Axes, default=None
            The axes to draw on; None creates a figure.

        Returns
        -------
        BoundaryDisplay
            The display, which has the axes as `ax_`.
        """
        require_fitted(estimator)
        require_aligned(X=X, y=y, sample_weight=sample_weight)
        names = getattr(X, "columns", None)
        names = ("x₀", "x₁") if names is None else tuple(str(name) for name in names)
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != 2 or len(estimator.coef_[0]) != 2:
            raise InputError(
                f"a boundary can be drawn for two features only; X has shape {X.shape}, and the classifier was fitted to "
                f"{len(estimator.coef_[0])} features"
            )
        if estimator.kind_ == "multilabel":
            raise InputError("a boundary can be drawn for one label per row only; fit a classifier to one column of Y")
        y = np.asarray(y)
        binary = estimator.kind_ == "binary"
        nu = of_problem(estimator, "nu_", 0) if binary else None
        closest, support = _closest(estimator, X, y) if binary else (None, np.zeros(len(X), bool))
        limits = _limits(X)
        display = cls(
            X=X,
            y=y,
            classes=estimator.classes_.tolist(),
            grid=_predicted(estimator, _around(limits), resolution),
            hulls=_hulls(estimator, X, y, sample_weight, nu),
            planes=[(w, float(b)) for w, b in zip(estimator.coef_, estimator.intercept_, strict=True) if binary and w.any()],
            closest=closest,
            support=support,
            soft=nu is not None,
            names=(names[0], names[1]),
            limits=limits,
            title=describe_plane(estimator, 0, nu)
            if binary or minimizes_loss(estimator, 0)
            else f"{len(estimator.classes_)} classes, {estimator.kind_}",
        )
        return display.plot(ax)

    def __repr__(self) -> str:
        return f"BoundaryDisplay({', '.join(map(str, self.classes))}: {len(self.X)} rows)"

    def plot(self, ax: Any = None) -> BoundaryDisplay:
        """Draw the plot on `ax`, or in a new figure if it is None, and return the display."""
        self.ax_ = ax = axes_or_new(ax, "BoundaryDisplay.plot")
        self.figure_ = ax.figure
        self._draw_classes(ax)
        self._draw_planes(ax)
        left, right, bottom, top = self.limits
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.dataLim.set_points(np.array([[left, bottom], [right, top]]))
        ax.margins(0)
        ax.autoscale()
        # equal units in both directions, so that distances look right, unless the points would be squeezed into a narrow strip
        if 0.25 <= (top - bottom) / (right - left) <= 4:
            ax.set_aspect("equal", adjustable="datalim")
        legend_above(ax, self.title)
        return self

    def _draw_classes(self, ax: Any) -> None:
        """Draw the predictions as background, the hulls, the points and the support rows."""
        from matplotlib.colors import ListedColormap

        colours = [COLOURS[k % len(COLOURS)] for k in range(len(self.classes))]
        ax.imshow(
            self.grid[2],
            extent=_around(self.limits),
            origin="lower",
            cmap=ListedColormap(colours),
            vmin=-0.5,
            vmax=len(colours) - 0.5,
            alpha=0.1,
            interpolation="nearest",
            aspect="auto",
        )
        for k, (label, colour, hull) in enumerate(zip(self.classes, colours, self.hulls, strict=True)):
            if len(hull) > 1:
                ax.fill(*hull.T, facecolor=colour, edgecolor=colour, alpha=0.18, linewidth=0)
                ax.plot(*np.concatenate((hull, hull[:1])).T, color=colour, linewidth=1.2)
            own = self.y == label
            style = {"color": colour, "marker": MARKERS[k % len(MARKERS)], "label": shortened(label)}
            ax.scatter(*self.X[own].T, s=18, linewidths=0, zorder=3, **style)
        if self.support.any():
            marked = f"support rows ({np.count_nonzero(self.support)})"
            ax.scatter(*self.X[self.support].T, s=48, facecolors="none", edgecolors=INK, linewidths=0.8, label=marked, zorder=3)

    def _draw_planes(self, ax: Any) -> None:
        """Draw the planes, the closest points, and parallels through these."""
        for w, b in self.planes:
            _line(ax, w, b, color=INK, linewidth=1.6)
            for point in self.closest or ():
                _line(ax, w, -float(w @ point), color=INK, linewidth=0.8, linestyle=":")
        if self.closest is not None:
            apart = float(np.linalg.norm(self.closest[1] - self.closest[0]))
            hulls = "reduced hulls" if self.soft else "hulls"
            ax.plot(
                *np.array(self.closest).T,
                color=INK,
                linestyle="--",
                linewidth=1,
                marker="D",
                markersize=6,
                markerfacecolor="white",
                zorder=4,
                label=f"closest points of the {hulls}, {apart:.3g} apart",
            )


def _closest(estimator: Any, X: Array, y: Array) -> tuple[tuple[Array, Array] | None, Array]:
    """Return the closest points of the two hulls (None unless b is free), and which rows are support rows."""
    found = binary_problem(estimator, X, y, 0)
    support = np.zeros(len(X), bool)
    support[found.own[found.weights > 0]] = True
    share = found.share
    if share is None or minimizes_loss(estimator, 0) or not Intercept.of(estimator.intercept).grouped:
        return None, support
    negative, positive = ((share * (found.signs == sign)) @ X[found.own] for sign in (-1, 1))
    return (negative, positive), support


def _hulls(estimator: Any, X: Array, y: Array, sample_weight: Any, nu: float | None) -> list[Array]:
    """Return the hull of each class, reduced if the margin is soft."""
    c = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    groups = 2 if Intercept.of(estimator.intercept).grouped else 1
    hulls = []
    for label in estimator.classes_:
        own = (y == label) & (c > 0)
        caps = None if nu is None else c[own] * groups / (nu * c.sum())
        hulls.append(_hull(X[own], caps))
    return hulls


def _predicted(estimator: Any, limits: tuple[float, float, float, float], resolution: int) -> tuple[Array, Array, Array]:
    """Return the coordinates of a grid and the number of the class that is predicted at each of its points."""
    across, up = np.linspace(limits[0], limits[1], resolution), np.linspace(limits[2], limits[3], resolution)
    points = np.column_stack([part.ravel() for part in np.meshgrid(across, up)])
    scores = points @ estimator.coef_.T + estimator.intercept_
    return across, up, chosen(estimator.kind_, scores, len(estimator.classes_)).reshape(resolution, resolution)


def _around(limits: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """Return the limits with as much space again on each side, for axes of another shape."""
    left, right, bottom, top = limits
    across, up = right - left, top - bottom
    return left - across, right + across, bottom - up, top + up


def _limits(X: Array) -> tuple[float, float, float, float]:
    """Return left, right, bottom and top of the plot, with some space around the points."""
    low, high = X.min(axis=0), X.max(axis=0)
    room = 0.08 * np.where(high > low, high - low, 1.0)
    (left, bottom), (right, top) = (low - room).tolist(), (high + room).tolist()
    return left, right, bottom, top


def _line(ax: Any, w: Array, b: float, **style: Any) -> None:
    """Draw the line x·w + b = 0 across the whole plot."""
    foot = -b * w / float(w @ w)
    ax.axline(foot, foot + np.array([-w[1], w[0]]) / float(np.hypot(*w)), **style)


def _hull(X: Array, caps: Array | None) -> Array:
    """Return the corners, in order, of the hull of X, or of the reduced hull {Σ p_i x_i : p ≤ caps, Σp = 1}."""
    from scipy.spatial import ConvexHull, QhullError  # imported here because it takes 0.2 s

    if caps is not None:
        turns = np.linspace(0, 2 * np.pi, DIRECTIONS, endpoint=False)
        order = np.argsort(-(np.column_stack((np.cos(turns), np.sin(turns))) @ X.T), axis=1, kind="stable")
        held = np.minimum(np.cumsum(caps[order], axis=1), 1.0)
        p = np.diff(held, axis=1, prepend=0.0)
        X = np.einsum("kn,knd->kd", p / p.sum(axis=1, keepdims=True), X[order])
    points = np.unique(X, axis=0)
    if len(points) < 3:
        return points
    try:
        return np.asarray(points[ConvexHull(points, qhull_options="QbB").vertices])  # whatever the scales of the columns
    except QhullError:  # all points are on a line
        return points[[0, -1]]
