"""Displays as in scikit-learn: `from_estimator(...)` computes and draws, `plot(ax=None)` draws again.

matplotlib is imported when something is drawn.
"""

from gordan.plots.boundary import BoundaryDisplay
from gordan.plots.convergence import ConvergenceDisplay
from gordan.plots.margins import MarginDisplay
from gordan.plots.proved import ProvedDisplay

__all__ = ["BoundaryDisplay", "ConvergenceDisplay", "MarginDisplay", "ProvedDisplay"]
