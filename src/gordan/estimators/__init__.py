"""The scikit-learn classifiers; what they do, without scikit-learn, is in `fitting` and `least_loss`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gordan.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from gordan.estimators.classifier import InseparableWarning as InseparableWarning
    from gordan.estimators.classifier import MaxMarginClassifier as MaxMarginClassifier
    from gordan.estimators.linear import LinearClassifier as LinearClassifier
    from gordan.estimators.loading import load as load
    from gordan.estimators.planes import IndexWarning as IndexWarning

__all__ = ["IndexWarning", "InseparableWarning", "LinearClassifier", "MaxMarginClassifier", "load"]

# These names are imported on first access: `gordan fit` does without them, and scikit-learn takes a second to import.
__getattr__ = lazy_attributes(
    __name__,
    {
        "IndexWarning": "gordan.estimators.planes",
        "InseparableWarning": "gordan.estimators.classifier",
        "LinearClassifier": "gordan.estimators.linear",
        "MaxMarginClassifier": "gordan.estimators.classifier",
        "load": "gordan.estimators.loading",
    },
)
