"""`maximize_margin` with the manners of scikit-learn."""

from gordan.estimators.classifier import IndexWarning, InseparableWarning, MaxMarginClassifier

__all__ = ["IndexWarning", "InseparableWarning", "MaxMarginClassifier"]
