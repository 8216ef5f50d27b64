"""What all displays use: a binary problem of a fitted classifier, colours and markers, legends and axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gordan.arrays import Array, require_aligned
from gordan.errors import InputError, import_extra
from gordan.io.model import pairs, problems

# Colours that colour-blind readers can tell apart, also in grey (after Paul Tol's "bright").
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
INK = "#333333"
# Markers that go with them. There is one more, so that a colour that is used again has another marker.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# The most characters of a class name in a legend.
MAX_CHARACTERS = 20
UNITS = "units of X"


@dataclass(frozen=True, eq=False)
class BinaryProblem:
    """One binary problem of a fitted classifier, with data.

    `own` are the positions of its rows in X. `signs`, `scores` (signed distances) and `weights` have an entry for each of these;
    the weights p are zero if the data is not that of the fit. `labels` are the names of the negative and the positive side.
    """

    own: Array
    signs: Array
    scores: Array
    weights: Array
    labels: tuple[str, str]

    @property
    def share(self) -> Array | None:
        """p divided by its sum over each side, which gives the closest points of the hulls; None if it is not known."""
        share = self.weights.copy()
        for sign in (1, -1):
            total = float(share[self.signs == sign].sum())
            if total <= 0:
                return None
            share[self.signs == sign] /= total
        return share


def binary_problem(estimator: Any, X: Any, y: Any, problem: int) -> BinaryProblem:
    """Return the binary problem of that number, for these data."""
    require_aligned(X=X, y=y)
    y = np.asarray(y)
    names = [str(label) for label in estimator.classes_.tolist()]
    count = len(estimator.coef_)
    if not 0 <= problem < count:
        raise InputError(f"problem is {problem}; the binary problems of the classifier have the numbers 0 to {count - 1}")
    if estimator.kind_ == "multilabel" and y.ndim == 2:
        y = np.where(y[:, problem] == 1, estimator.classes_[problem], None)
    if y.shape != (np.shape(X)[0],):
        raise InputError(f"X has {np.shape(X)[0]} rows, but y has shape {y.shape}; pass one label for each row")
    if estimator.kind_ in ("binary", "one-vs-one"):
        i, j = pairs(len(names))[problem]
        own = np.flatnonzero((y == estimator.classes_[i]) | (y == estimator.classes_[j]))
        signs = np.where(y[own] == estimator.classes_[j], 1, -1)
        labels = (names[i], names[j])
    else:
        own = np.arange(len(y))
        signs = np.where(y == estimator.classes_[problem], 1, -1)
        labels = ("the rest", names[problem])
    if not ((signs == 1).any() and (signs == -1).any()):
        raise InputError(f"y has no rows of {labels[int((signs == -1).any())]!r}; pass data with both sides of the problem")
    weights = np.zeros(len(y))
    if getattr(estimator, "shape_fit_", (None,))[0] == len(y):
        weights[estimator.support_] = np.abs(estimator.dual_coef_[problem])
    scores = _distances(estimator, X, problem)[own]
    if minimizes_loss(estimator, problem):  # where x·w + b is not a distance
        scores = scores / (float(np.linalg.norm(estimator.coef_[problem])) or 1.0)
    return BinaryProblem(own, signs, scores, weights[own], labels)


def require_fitted(estimator: Any, kind: str = "MaxMarginClassifier or LinearClassifier", own: str = "objective_") -> None:
    """Raise an InputError unless this is a fitted classifier of this kind, which has the attribute `own`."""
    if not hasattr(estimator, "coef_"):
        raise InputError(f"{estimator!r:.80} is not a fitted {kind}; call fit first")
    if not hasattr(estimator, own):
        raise InputError(f"{estimator!r:.80} is not a fitted {kind}; this display is for a {kind}")


def of_problem(estimator: Any, name: str, problem: int) -> Any:
    """Return a fitted attribute for the plane of that number; None if the estimator does not have it."""
    values = getattr(estimator, name, None)
    if values is None or problems(estimator.kind_, len(estimator.classes_)) == 1:
        return values
    return values[problem]


def loss_of(estimator: Any, problem: int) -> str | None:
    """Return the loss that the plane of that number minimizes, by choice or because no plane separates; None for a margin."""
    return of_problem(estimator, "loss_", problem) if hasattr(estimator, "margin_") else str(estimator.loss)


def minimizes_loss(estimator: Any, problem: int) -> bool:
    """Return whether that plane minimizes a loss."""
    return loss_of(estimator, problem) is not None


def describe_plane(estimator: Any, problem: int, nu: float | None) -> str:
    """Return the description of a plane for a title."""
    loss = loss_of(estimator, problem)
    if loss is not None:
        return f"least {loss.replace('_', ' ')} loss"
    return "largest margin" if nu is None else f"largest soft margin, ν = {nu:.3g}"


def _distances(estimator: Any, X: Any, problem: int) -> Array:
    """Return x·w + b for each row, for the plane of that number."""
    values = X if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)
    return np.asarray(np.asarray(values @ estimator.coef_[problem]).ravel() + estimator.intercept_[problem])


def shortened(name: Any) -> str:
    """Return the name of a class, shortened to fit into a legend."""
    text = str(name)
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"


def legend_above(ax: Any, title: str) -> None:
    """Draw a legend in two columns above the axes, and a title above that."""
    rows = -(-len(ax.get_legend_handles_labels()[1]) // 2)
    tight = {"columnspacing": 1.2, "handlelength": 1.6, "handletextpad": 0.5}
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize="small", **tight)
    ax.set_title(title, pad=10 + 15 * rows, fontsize="medium")


def axes_or_new(ax: Any, purpose: str) -> Any:
    """Return these axes, or new ones if they are None."""
    return import_extra("matplotlib.pyplot", "plot", purpose).subplots(layout="constrained")[1] if ax is None else ax
