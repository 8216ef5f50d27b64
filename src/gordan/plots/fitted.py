"""What the displays read off a fitted classifier and its data, and the axes they draw on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gordan.arrays import Array, require_aligned
from gordan.errors import InputError, MissingExtra
from gordan.io.model import pairs

# Colours that are told apart by colour-blind eyes and in grey (after Paul Tol's "bright").
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
INK = "#333333"
# Marks that go with them, for whoever sees no colours; one more, so that a colour that comes again has another mark.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Characters of a class name in a legend.
MOST_NAME = 20
UNITS = "units of X"


@dataclass(frozen=True, eq=False)
class Side:
    """One binary problem of a fitted classifier, on data.

    `own` are the rows of X it is about, `signs` ±1 for them, `scores` their x·w + b, `weights` their share p of the fit (zeros
    where the data is not that of the fit), `labels` how the two sides are called.
    """

    own: Array
    signs: Array
    scores: Array
    weights: Array
    labels: tuple[str, str]

    @property
    def share(self) -> Array | None:
        """p normalized over each side, so that p·x are the closest points of the (reduced) hulls; None where it is not known."""
        share = self.weights.copy()
        for sign in (1, -1):
            total = float(share[self.signs == sign].sum())
            if total <= 0:
                return None
            share[self.signs == sign] /= total
        return share


def side(estimator: Any, X: Any, y: Any, problem: int) -> Side:
    """The binary problem of that number."""
    fitted(estimator)
    require_aligned(X=X, y=y)
    y = np.asarray(y)
    names = [str(label) for label in estimator.classes_.tolist()]
    count = len(estimator.coef_)
    if not 0 <= problem < count:
        raise InputError(f"problem is {problem}; the classifier has the binary problems 0 to {count - 1}")
    if estimator.kind_ == "multilabel" and y.ndim == 2:
        y = np.where(y[:, problem] == 1, estimator.classes_[problem], None)
    if y.shape != (np.shape(X)[0],):
        raise InputError(f"X has {np.shape(X)[0]} rows, y has shape {y.shape}; pass one label for each row")
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
    if by_loss(estimator, problem):  # x·w + b is no distance there
        scores = scores / (float(np.linalg.norm(estimator.coef_[problem])) or 1.0)
    return Side(own, signs, scores, weights[own], labels)


def fitted(estimator: Any, kind: str = "MaxMarginClassifier", own: str = "margin_") -> None:
    """Refuse what is not a fitted classifier of this kind, by an attribute of its own."""
    if not hasattr(estimator, "coef_") or not hasattr(estimator, own):
        why = f"this display is for a {kind}" if hasattr(estimator, "coef_") else "call fit first"
        raise InputError(f"{estimator!r:.80} is not a fitted {kind}; {why}")


def by_loss(estimator: Any, problem: int) -> bool:
    """Whether that plane is one of least loss, since none separates."""
    losses = getattr(estimator, "loss_", None)
    return (losses[problem] if isinstance(losses, list) else losses) is not None


def planes_told(estimator: Any, problem: int, nu: float | None) -> str:
    """What a plane is, in a title."""
    if by_loss(estimator, problem):
        return "least squared hinge loss"
    return "largest margin" if nu is None else f"largest soft margin, ν = {nu:.3g}"


def _distances(estimator: Any, X: Any, problem: int) -> Array:
    values = X if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)
    return np.asarray(np.asarray(values @ estimator.coef_[problem]).ravel() + estimator.intercept_[problem])


def short(name: Any) -> str:
    """The name of a class, cut where it would not fit into a legend."""
    text = str(name)
    return text if len(text) <= MOST_NAME else f"{text[: MOST_NAME - 1]}…"


def above(ax: Any, title: str) -> None:
    """A legend above the axes in two columns, and a title above that."""
    rows = -(-len(ax.get_legend_handles_labels()[1]) // 2)
    tight = {"columnspacing": 1.2, "handlelength": 1.6, "handletextpad": 0.5}
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize="small", **tight)
    ax.set_title(title, pad=10 + 15 * rows, fontsize="medium")


def axes(ax: Any, purpose: str) -> Any:
    """These axes, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtra("matplotlib", "plot", purpose) from None
    return plt.subplots(layout="constrained")[1]
