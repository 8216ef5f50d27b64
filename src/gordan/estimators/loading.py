"""`load`: read a classifier of either kind from a model file."""

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

# The classifiers by their names in model files.
ESTIMATORS: dict[str, Any] = {kind.__name__: kind for kind in (MaxMarginClassifier, LinearClassifier)}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a classifier from a model file that `save` or `gordan fit` wrote.

    It predicts as the saved one did and has its certificates and its parameters, so that it fits the same again; only `n_jobs`,
    `device`, `verbose` and parameters that are objects have their defaults. Attributes that only a fit has, such as `n_iter_` and
    `trace_`, are not in the file.

    Parameters
    ----------
    path : str or path
        The model file.

    Returns
    -------
    MaxMarginClassifier, LinearClassifier or Pipeline
        The classifier. A file of `gordan fit --standardize` gives a scikit-learn Pipeline of a StandardScaler and the classifier,
        which is `pipeline[-1]` and expects scaled rows, as in `pipeline[-1].same_prediction(pipeline[:-1].transform(X))`. To keep
        such a model, copy the file: `pipeline[-1].save` writes the classifier without the scaling.

    Raises
    ------
    InputError
        If the file is damaged, or was written by a newer version with another kind of model.

    Examples
    --------
    >>> import tempfile, gordan
    >>> model = gordan.LinearClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.gordan")
    ...     gordan.load(f"{folder}/model.gordan").predict([[4.0]]).tolist()
    ['yes']
    """
    model = Model.load(path)
    if model.estimator not in ESTIMATORS:
        raise InputError(
            f"{os.fspath(path)} holds a {model.estimator}, which this version of gordan cannot read; use a newer version"
        )
    kind = ESTIMATORS[model.estimator]
    if model.scaling is None:
        return kind._of_model(model)
    return make_pipeline(_scaler(model), kind._of_model(replace(model, names=None)))  # the first step has the names


def _scaler(model: Model) -> StandardScaler:
    """Return the step of a pipeline that scales the columns as in the fit."""
    assert model.scaling is not None
    center, spread = model.scaling
    scaler = StandardScaler(with_mean=bool(center.any()))
    scaler.mean_, scaler.scale_, scaler.var_ = center, spread, spread**2
    scaler.n_features_in_ = len(center)
    if model.names is not None:
        scaler.feature_names_in_ = np.array(model.names, dtype=object)
    return scaler
