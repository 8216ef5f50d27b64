"""`maximize_margin` with the manners of scikit-learn."""

from gordan.estimators.classifier import InseparableWarning, MaxMarginClassifier

__all__ = ["InseparableWarning", "MaxMarginClassifier"]
