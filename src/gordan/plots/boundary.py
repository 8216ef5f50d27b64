"""The plane between two hulls, for two features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gordan.arrays import Array, require_aligned
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.io.model import chosen
from gordan.plots.fitted import COLOURS, INK, MARKERS, above, axes, by_loss, fitted, planes_told, short, side

# Directions in which a reduced hull is asked for its extreme point.
DIRECTIONS = 720


@dataclass(repr=False)
class BoundaryDisplay:
    """Two features: the points, the hulls of the classes, the boundary, and (two classes) the closest points of the hulls.

    Where the margin is soft the hulls are the reduced ones, {Σ p_i x_i : p_i ≤ 2c_i/(νΣc), Σp = 1} over each class: the plane is
    the one halfway across the gap between *them*, up to the choice of b. `hulls` are polygons, one for each class; `closest` the
    two points or None; `planes` the (w, b) that are drawn.
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
    limits: tuple[float, float, float, float] = field(default=(0.0, 1.0, 0.0, 1.0))
    title: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, resolution: int = 600, ax: Any = None
    ) -> BoundaryDisplay:
        """A classifier fitted to X, y with two columns. `sample_weight` as in the fit, if there was one (for reduced hulls)."""
        fitted(estimator)
        require_aligned(X=X, y=y, sample_weight=sample_weight)
        names = getattr(X, "columns", None)
        names = ("x₀", "x₁") if names is None else tuple(str(name) for name in names)
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != 2 or len(estimator.coef_[0]) != 2:
            raise InputError(
                f"a boundary is drawn for two features; X has shape {X.shape}, the classifier {len(estimator.coef_[0])}"
            )
        if estimator.kind_ == "multilabel":
            raise InputError("a boundary is drawn for one label per row; fit a classifier to one column of Y")
        y = np.asarray(y)
        binary = estimator.kind_ == "binary"
        nu = getattr(estimator, "nu_", None) if binary else None
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
            title=_title(estimator, nu),
        )
        return display.plot(ax)

    def __repr__(self) -> str:
        return f"BoundaryDisplay({', '.join(map(str, self.classes))}: {len(self.X)} rows)"

    def plot(self, ax: Any = None) -> BoundaryDisplay:
        """Draw on these axes, or on new ones."""
        self.ax_ = ax = axes(ax, "BoundaryDisplay.plot")
        self.figure_ = ax.figure
        self._draw_classes(ax)
        self._draw_planes(ax)
        left, right, bottom, top = self.limits
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.dataLim.set_points(np.array([[left, bottom], [right, top]]))
        ax.margins(0)
        ax.autoscale()
        # one unit the same length both ways, so that distances are distances, in axes that keep their size; unless the points
        # would make a strip in them
        if 0.25 <= (top - bottom) / (right - left) <= 4:
            ax.set_aspect("equal", adjustable="datalim")
        above(ax, self.title)
        return self

    def _draw_classes(self, ax: Any) -> None:
        """What is predicted where, the hulls, the points and the support rows among them."""
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
            ax.scatter(
                *self.X[own].T, s=18, color=colour, marker=MARKERS[k % len(MARKERS)], linewidths=0, label=short(label), zorder=3
            )
        if self.support.any():
            marked = f"support rows ({np.count_nonzero(self.support)})"
            ax.scatter(*self.X[self.support].T, s=48, facecolors="none", edgecolors=INK, linewidths=0.8, label=marked, zorder=3)

    def _draw_planes(self, ax: Any) -> None:
        """The planes, their parallels through the closest points, and these."""
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
    """The closest points of the two hulls, where b is free, and which rows are support rows."""
    found = side(estimator, X, y, 0)
    support = np.zeros(len(X), bool)
    support[found.own[found.weights > 0]] = True
    share = found.share
    if share is None or by_loss(estimator, 0) or not Intercept.of(estimator.intercept).grouped:
        return None, support
    negative, positive = ((share * (found.signs == sign)) @ X[found.own] for sign in (-1, 1))
    return (negative, positive), support


def _hulls(estimator: Any, X: Array, y: Array, sample_weight: Any, nu: float | None) -> list[Array]:
    """The hull of each class, reduced if the margin is soft."""
    c = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    groups = 2 if Intercept.of(estimator.intercept).grouped else 1
    hulls = []
    for label in estimator.classes_:
        own = (y == label) & (c > 0)
        caps = None if nu is None else c[own] * groups / (nu * c.sum())
        hulls.append(_hull(X[own], caps))
    return hulls


def _predicted(estimator: Any, limits: tuple[float, float, float, float], resolution: int) -> tuple[Array, Array, Array]:
    """The number of the class that is predicted at each point of a grid, with its coordinates across and up."""
    across, up = np.linspace(limits[0], limits[1], resolution), np.linspace(limits[2], limits[3], resolution)
    points = np.column_stack([part.ravel() for part in np.meshgrid(across, up)])
    scores = points @ estimator.coef_.T + estimator.intercept_
    return across, up, chosen(estimator.kind_, scores, len(estimator.classes_)).reshape(resolution, resolution)


def _around(limits: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """The same with as much room again on each side, for axes of another shape."""
    left, right, bottom, top = limits
    across, up = right - left, top - bottom
    return left - across, right + across, bottom - up, top + up


def _title(estimator: Any, nu: float | None) -> str:
    """What the planes are."""
    if estimator.kind_ != "binary" and not by_loss(estimator, 0):
        return f"{len(estimator.classes_)} classes, {estimator.kind_}"
    return planes_told(estimator, 0, nu)


def _limits(X: Array) -> tuple[float, float, float, float]:
    low, high = X.min(axis=0), X.max(axis=0)
    room = 0.08 * np.where(high > low, high - low, 1.0)
    (left, bottom), (right, top) = (low - room).tolist(), (high + room).tolist()
    return left, right, bottom, top


def _line(ax: Any, w: Array, b: float, **style: Any) -> None:
    """The line x·w + b = 0, across the whole picture."""
    foot = -b * w / float(w @ w)
    ax.axline(foot, foot + np.array([-w[1], w[0]]) / float(np.hypot(*w)), **style)


def _hull(X: Array, caps: Array | None) -> Array:
    """The corners, in order, of the hull of X, or of {Σ p_i x_i : p ≤ caps, Σp = 1}."""
    if caps is not None:
        turns = np.linspace(0, 2 * np.pi, DIRECTIONS, endpoint=False)
        order = np.argsort(-(np.column_stack((np.cos(turns), np.sin(turns))) @ X.T), axis=1, kind="stable")
        held = np.minimum(np.cumsum(caps[order], axis=1), 1.0)
        p = np.diff(held, axis=1, prepend=0.0)
        X = np.einsum("kn,knd->kd", p / p.sum(axis=1, keepdims=True), X[order])
    points = np.unique(X, axis=0)
    return points if len(points) < 3 else np.concatenate((_chain(points)[:-1], _chain(points[::-1])[:-1]))


def _chain(points: Array) -> Array:
    """The lower half of the hull of points in order of x, from the first to the last (Andrew's monotone chain)."""
    chain: list[Array] = []
    for point in points:
        while len(chain) > 1:
            (ax, ay), (bx, by) = chain[-1] - chain[-2], point - chain[-2]
            if ax * by - ay * bx > 0:
                break
            chain.pop()
        chain.append(point)
    return np.array(chain)
