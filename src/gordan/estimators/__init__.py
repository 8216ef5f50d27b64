"""The classifiers, with the manners of scikit-learn; `fitting` is what they do, without it."""

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

# `gordan fit` needs none of them, and scikit-learn takes a second to import.
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
