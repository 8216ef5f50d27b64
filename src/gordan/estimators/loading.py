"""`load`: the classifier in a model file, whichever it is."""

from __future__ import annotations

import os

from gordan.errors import InputError
from gordan.estimators.classifier import MaxMarginClassifier
from gordan.io.model import Model

# By the name that a model file has for it. A classifier is made from a `Model` by its `_of_model`.
ESTIMATORS = {kind.__name__: kind for kind in (MaxMarginClassifier,)}


def load(path: str | os.PathLike[str]) -> MaxMarginClassifier:
    """The classifier in a model file that `save` or `gordan fit` wrote. It predicts as the saved one did.

    What is proved comes with it, in `certificate_`; rows and traces of the fit are not in the file.
    """
    model = Model.load(path)
    if model.estimator not in ESTIMATORS:
        raise InputError(
            f"{os.fspath(path)} holds a {model.estimator}, which this version of gordan does not have; use a newer one"
        )
    return ESTIMATORS[model.estimator]._of_model(model)
