"""`load`: the classifier in a model file, whichever it is."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gordan.errors import InputError
from gordan.estimators.classifier import MaxMarginClassifier
from gordan.estimators.linear import LinearClassifier
from gordan.io.model import Model

# By the name that a model file has for it. Each has `_of_model` and `_model`.
ESTIMATORS: dict[str, Any] = {kind.__name__: kind for kind in (MaxMarginClassifier, LinearClassifier)}


def load(path: str | os.PathLike[str]) -> Any:
    """The classifier in a model file that `save` or `gordan fit` wrote: a `MaxMarginClassifier` or a `LinearClassifier`.

    It predicts as the saved one did. What is proved comes with it, in `certificate_`; rows and traces of the fit are not in
    the file. A model of `gordan fit --standardize` is a Pipeline of scikit-learn, of a StandardScaler and the classifier: what
    only the classifier has is reached by `pipeline[-1]`, for scaled rows, as in
    `pipeline[-1].same_prediction(pipeline[:-1].transform(X))` and `pipeline[-1].certificate_`. To keep such a model, copy the
    file: `pipeline[-1].save` writes the classifier without the scaling.
    """
    model = Model.load(path)
    if model.estimator not in ESTIMATORS:
        raise InputError(
            f"{os.fspath(path)} holds a {model.estimator}, which this version of gordan does not have; use a newer one"
        )
    kind = ESTIMATORS[model.estimator]
    if model.scaling is None:
        return kind._of_model(model)
    return make_pipeline(_scaler(model), kind._of_model(replace(model, names=None)))  # names are those of the first step


def _scaler(model: Model) -> StandardScaler:
    """The step of a pipeline that scales the columns as they were for the fit."""
    assert model.scaling is not None
    center, spread = model.scaling
    scaler = StandardScaler(with_mean=bool(center.any()))
    scaler.mean_, scaler.scale_, scaler.var_ = center, spread, spread**2
    scaler.n_features_in_ = len(center)
    if model.names is not None:
        scaler.feature_names_in_ = np.array(model.names, dtype=object)
    return scaler
