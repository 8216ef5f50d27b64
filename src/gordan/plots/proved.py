"""`ProvedDisplay`: which predictions the exact minimizer of a loss is proved to share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gordan.arrays import Array, as_dense
from gordan.errors import InputError
from gordan.plots.fitted import COLOURS, INK, axes_or_new, legend_above, require_fitted

# The ratio of the ends of a logarithmic axis up to which 2 and 5 are labelled between the powers of ten.
FEW_DECADES = 100.0


@dataclass(repr=False)
class ProvedDisplay:
    """Histogram of the lead of the predicted class, which shows whether the exact minimizer is proved to predict it too.

    Attributes
    ----------
    ahead : ndarray
        The lead of the predicted class of each row: the size of x·w + b, or with several classes the largest score minus the
        next one. For multilabel y the size of the least score, on which any of the predicted labels would change first.
    proved : ndarray of bool
        Which predictions the exact minimizer is proved to share, as in `LinearClassifier.same_prediction`.
    wrong : ndarray of bool, or None
        Which rows have another label, or for multilabel y other labels; None if the labels are not known.
    ax_, figure_
        The matplotlib axes and figure of the plot.

    Examples
    --------
    >>> import gordan
    >>> X, y = gordan.datasets.iris("versicolor")
    >>> model = gordan.LinearClassifier().fit(X, y)
    >>> display = gordan.ProvedDisplay.from_estimator(model, X, y)
    >>> bool(display.proved.mean() > 0.9)
    True
    """

    ahead: Array
    proved: Array
    wrong: Array | None
    name: str

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, bins: int = 40, ax: Any = None) -> ProvedDisplay:
        """Plot which predictions of a fitted classifier are proved.

        Parameters
        ----------
        estimator : LinearClassifier
            The fitted classifier.
        X : array-like or sparse matrix of shape (n, d)
            The rows to predict.
        y : array-like of shape (n,) or (n, k), default=None
            Their labels, if they are known.
        bins : int, default=40
            The number of bins.
        ax : matplotlib Axes, default=None
            The axes to draw on; None creates a figure.

        Returns
        -------
        ProvedDisplay
            The display, which has the axes as `ax_`.
        """
        require_fitted(estimator, "LinearClassifier", "same_prediction")
        scores = np.asarray(estimator.decision_function(X))
        if scores.ndim == 1:
            ahead = np.abs(scores)
        elif estimator.kind_ == "multilabel":
            ahead = np.abs(scores).min(axis=1)
        else:
            best = np.partition(scores, -2, axis=1)[:, -2:]
            ahead = best[:, 1] - best[:, 0]
        wrong = None if y is None else _wrong(estimator.predict(X), y)
        return cls(ahead, estimator.same_prediction(X), wrong, str(estimator.loss)).plot(ax, bins=bins)

    def __repr__(self) -> str:
        return f"ProvedDisplay({self.name}: {np.count_nonzero(self.proved)} of {len(self.proved)} rows proved)"

    def plot(self, ax: Any = None, *, bins: int = 40) -> ProvedDisplay:
        """Draw the histogram on `ax`, or in a new figure if it is None, with a tick below for each misclassified row."""
        self.ax_ = ax = axes_or_new(ax, "ProvedDisplay.plot")  # first: without matplotlib, it says what to install
        from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

        self.figure_ = ax.figure
        floor = float(np.min(self.ahead, where=self.ahead > 0, initial=np.inf))
        floor, top = (floor, float(np.max(self.ahead))) if np.isfinite(floor) else (0.5, 1.0)
        edges = np.geomspace(floor, max(top, floor * 1.01) * (1 + 1e-9), bins + 1)
        at = np.maximum(self.ahead, floor)  # so that rows on a boundary are in the first bin
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
        if top < FEW_DECADES * floor:  # by default minor ticks are labelled then, and their labels overlap
            ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            ax.xaxis.set_minor_formatter(NullFormatter())
        ax.locator_params(axis="y", integer=True)
        ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= 1.08 * tallest])
        ax.set(xlabel="lead of the predicted class (difference of scores)", ylabel="rows")
        legend_above(ax, f"{self.name.replace('_', ' ')} loss: predictions that the exact minimizer shares")
        return self


def _wrong(predicted: Array, y: Any) -> Array:
    """Return which rows of labels, or of tables of labels, differ from those predicted."""
    labels = np.asarray(as_dense(y))
    labels = labels.reshape(-1) if labels.shape == (len(predicted), 1) else labels
    if labels.shape != predicted.shape:
        raise InputError(
            f"y has shape {labels.shape}, but the predictions for X have {predicted.shape}; pass labels for each row"
        )
    return np.asarray((predicted != labels).reshape(len(predicted), -1).any(axis=1))
