"""What both classifiers share: how they read X and y, predict from planes x·w + b = 0, and write and read model files."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from gordan.arrays import Array, is_number, misaligned
from gordan.certificates.data import About
from gordan.certificates.problem import is_table, read_labels, require_labels
from gordan.errors import InputError
from gordan.estimators.indicators import read_indicators
from gordan.io.model import Model, chosen
from gordan.rows import available, computed, host, is_lazy, is_on_device, is_tensor, require_finite, stored
from gordan.verdicts.multiclass import Binary
from gordan.verdicts.telling import described
from gordan.verdicts.weights import row_weights, weight_factors


class IndexWarning(UserWarning):
    """X and y, or the weights, are paired by position, and their pandas indexes differ."""


class Planes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that has planes: `coef_`, `intercept_`, `classes_` and `kind_`, what the planes separate (as in
    `gordan.io.Model`)."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """All attributes but the trace of the fit, which may be a thousand times as large as the rest."""
        state: dict[str, Any] = dict(super().__getstate__())
        return {name: value for name, value in state.items() if name != "trace_"}

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array, Array]:
        """X as it is stored, y, the classes in order, and which of them each row has. Of several labels a row, y and which of
        them each row has are a column for each."""
        X, y = self._gathered(X), computed(y) if is_lazy(y) else host(y)
        storage = self._stored(X, y, self.device)
        validate_data(self, X, y, skip_check_array=True)
        require_finite(storage)
        if is_table(X, y):
            positive, columns = read_indicators(y, storage.n)
            _check_aligned(X, y, sample_weight, stacklevel=4)
            return storage, positive, columns, positive
        labels, which = read_labels(y, storage.n)
        _check_aligned(X, y, sample_weight, stacklevel=4)
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f" and np.isinf(y).any():  # scikit-learn takes no such label
            row = int(np.argmax(np.isinf(y)))
            raise InputError(f"y[{row}] is {y[row]}; pass finite numbers or text for labels")
        if y.dtype.kind in "biu":  # which are no targets of a regression, and were sorted once
            classes = np.array(labels, dtype=y.dtype)
        else:
            check_classification_targets(y)
            classes = np.unique(y)
        require_labels(classes)
        if len(classes) != len(labels):
            raise InputError("y has different labels that NumPy converts to equal ones; use text for labels")
        if len(classes) < 2:
            raise InputError(f"y has one class only, {classes.tolist()[0]!r}; two are needed")
        return storage, y, classes, which

    def _describe(self, problems: Sequence[Binary], *named: Any) -> None:
        """Let the certificates of these problems say what they are about; `named` are y and the weights as they were given."""
        given = getattr(self, "certificate_", [])
        label, weight = (name if isinstance(name, str) else None for name in (getattr(each, "name", None) for each in named))
        about = About(label=label, weight=weight, columns=tuple(getattr(self, "feature_names_in_", ())) or None)
        proofs = zip(given if isinstance(given, list) else [given], problems, strict=False)
        found = [described(proof, self._about(about, problem)) for proof, problem in proofs]
        if found:
            self.certificate_: Any = found if isinstance(given, list) else found[0]

    def _about(self, about: About, problem: Binary) -> About:
        """What the certificate of this problem is about: of several labels of a row, one column of Y in which there is a 1."""
        if self.kind_ != "multilabel":
            return replace(about, positive=problem.against_rest)
        return replace(about, label=str(problem.label) if isinstance(problem.label, str) else None, positive="1")

    def _gathered(self, X: Any) -> Any:
        """X in memory, where it is a collection of parts on other machines."""
        return computed(X) if is_lazy(X) else X

    def _stored(self, X: Any, y: Any, device: str | None) -> Any:
        """X read as the functions read it: exactly or not at all. What scikit-learn refuses, too, it refuses in its own
        words."""
        try:
            return stored(X, device)
        except InputError:
            if not is_tensor(X) and not is_on_device(X) and not hasattr(X, "columns"):  # ours name the column
                validate_data(self, X, y, accept_sparse="csr", dtype="numeric")
            raise

    def _weights(self, sample_weight: Any, classes: Array, which: Array) -> Array | None:
        """The weights of the rows; of several labels a row without class weights, which differ from column to column."""
        if which.ndim == 2:
            return weight_factors(sample_weight, None, classes.tolist(), which[:, 0])[0]
        return row_weights(sample_weight, self.class_weight, classes.tolist(), which)

    def _is_parallel(self, y: Array, classes: Array) -> bool:
        """Whether several binary problems are to be solved at a time."""
        return (y.ndim == 2 or len(classes) > 2) and bool(effective_n_jobs(self.n_jobs) > 1)

    def _seed(self) -> Any:
        """`random_state` as the functions take it."""
        seed = self.random_state
        return seed if seed is None or is_number(seed) else int(check_random_state(seed).randint(2**31 - 1))

    # ---- predicting --------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Array:
        """The class of each row; of several labels a row, 1 for those that it has and 0 for the others, as an (n, labels)
        array."""
        distances = self._distances(X)
        found = chosen(self.kind_, distances, len(self.classes_))
        return found if self.kind_ == "multilabel" else np.asarray(self.classes_[found])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows (of their weight) whose class, or all of whose labels, are predicted."""
        _check_aligned(X, y, sample_weight, stacklevel=3)
        return float(super().score(X, y, sample_weight=sample_weight))

    def _distances(self, X: Any) -> Array:
        """x·w + b for each row and plane."""
        check_is_fitted(self)
        X = self._gathered(X)
        storage = self._stored(X, "no_validation", None)
        try:
            validate_data(self, X, skip_check_array=True, reset=False)
        except ValueError as error:  # other columns than those of the fit
            raise InputError(str(error)) from None
        with np.errstate(over="ignore", invalid="ignore"):
            signs = storage.to_storage(np.ones(storage.n, np.int8), "signs")
            distances: Array = storage.to_host(storage.scores(self.coef_.T, self.intercept_, signs, available()))
            if not math.isfinite(np.sum(distances)):  # as NaN and infinity in X make it
                require_finite(storage)
        return distances

    # ---- files, and other libraries ----------------------------------------------------------------------------------

    def to_sklearn(self) -> Any:
        """A fitted estimator of scikit-learn with the same planes and predictions, and probabilities where there are any: a
        LogisticRegression for losses of probabilities (within a OneVsRestClassifier where there is one for each of several
        classes), else a LinearSVC; of several labels a row, one of these within a OneVsRestClassifier for each.

        One-vs-one is refused: scikit-learn has no linear classifier with the planes of pairs.
        """
        check_is_fitted(self)
        if self.kind_ == "one-vs-one":
            raise InputError(
                "one-vs-one has a plane for each pair of classes, and no linear classifier of scikit-learn holds these; "
                "fit with multi_class='ovr', or a LinearClassifier"
            )
        coef, b = self.coef_, self.intercept_
        if self.kind_ == "multinomial" and len(self.classes_) == 2:
            coef, b = coef[1:] - coef[:1], b[1:] - b[:1]
        several, labels = self.kind_ == "multilabel", self.classes_
        found = self._peer()
        if several or (self.kind_ == "one-vs-rest" and hasattr(self, "predict_proba")):
            found = OneVsRestClassifier(found.set_params(class_weight=None))
        known = np.repeat([[0], [1]], len(labels), axis=1) if several else labels
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # so that it has all that the installed version wants of a fitted one
            found.fit(np.zeros((len(known), self.n_features_in_)), known)
        for k, single in enumerate(getattr(found, "estimators_", ())):
            single.coef_, single.intercept_ = coef[[k]], b[[k]]
        if not hasattr(found, "estimators_"):
            found.coef_, found.intercept_ = coef.copy(), b.copy()
        if hasattr(self, "feature_names_in_"):
            found.feature_names_in_ = self.feature_names_in_
        return found

    def _peer(self) -> Any:
        """The estimator of scikit-learn that predicts in the same way, not fitted."""
        from sklearn.svm import LinearSVC

        return LinearSVC(loss="hinge", C=1e10, fit_intercept=self.intercept != "none", tol=self.tol)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what predicts, with its certificates, to a model file: no pickle, checksummed, in one step."""
        check_is_fitted(self)
        self._model().save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The classifier in a model file. It predicts as the saved one did; rows and traces of the fit are not in the file."""
        model = Model.load(path)
        if model.estimator != cls.__name__:
            raise InputError(f"{os.fspath(path)} holds a {model.estimator}, not a {cls.__name__}; gordan.load takes either")
        if model.scaling is not None:
            raise InputError(f"{os.fspath(path)} was fitted to scaled columns; gordan.load gives a pipeline that scales them")
        return cls._of_model(model)

    def _model(self) -> Model:
        """The fit as a model file holds it."""
        raise NotImplementedError

    @classmethod
    def _of_model(cls, model: Model) -> Self:
        """The classifier of a model."""
        raise NotImplementedError


# Remarks that were made in this process, with the columns that they were about.
REMARKED: set[tuple[str, Any]] = set()


def first_of(remarks: Iterable[str], X: Any) -> list[str]:
    """The remarks that were not made before about so many columns, whatever numbers are in them: a search with cross-validation
    fits hundreds of times, and each of its warnings is printed, since scikit-learn changes the filters in between."""
    found = {(re.sub(r"[0-9]\S*", "", told), X.d): told for told in remarks}
    new = [told for key, told in found.items() if key not in REMARKED]
    REMARKED.update(found)
    return new


def _check_aligned(X: Any, y: Any, sample_weight: Any, stacklevel: int) -> None:
    """Refuse pandas objects that are in another order than X, and warn if they are about other rows.

    Only a warning, since pipelines and searches of scikit-learn pair rows by position, whatever their index.
    """
    found = misaligned(X=X, y=y, sample_weight=sample_weight)
    if found is None:
        return
    if found.reordered:
        raise InputError(found.message)
    warnings.warn(f"rows are paired by position, but {found.message}", IndexWarning, stacklevel=stacklevel)
