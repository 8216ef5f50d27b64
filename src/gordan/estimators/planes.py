"""`Planes`: what both classifiers share, which is reading X and y, predicting from planes, exporting, and model files."""

from __future__ import annotations

import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from gordan.arrays import Array, is_number, misaligned, seconds_at_most
from gordan.blas import blas_threads
from gordan.certificates import Certificate
from gordan.certificates.data import About
from gordan.certificates.problem import is_table, read_labels, require_labels
from gordan.errors import InputError
from gordan.estimators.indicators import read_indicators
from gordan.estimators.multiclass import Binary, FitTask, TrainingData
from gordan.intercepts import Intercept
from gordan.io.model import Kind, Model, chosen, decisions
from gordan.rows import available, computed, host, is_lazy, is_on_device, is_tensor, refuse_queries, require_finite, stored
from gordan.verdicts.formatting import described

F = TypeVar("F")


class IndexWarning(UserWarning):
    """Warning that X and y, or X and the weights, have different pandas indexes, and that rows are paired by position."""


# The remarks made in this process: the classifier and the columns that each was about, and its text without numbers.
REMARKED: set[tuple[str, Any, str]] = set()


class Planes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the classifiers, which predict from planes x·w + b = 0.

    A fitted one has `coef_`, `intercept_`, `classes_` and `kind_`, which says what the planes separate (as in `gordan.io.Model`).
    """

    kind_: Kind

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes except `trace_`, which may be a thousand times as large as the rest."""
        state: dict[str, Any] = dict(super().__getstate__())
        return {name: value for name, value in state.items() if name != "trace_"}

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _fitting(self, kind: Callable[..., F], X: Any, y: Any, sample_weight: Any) -> F:
        """Return the fit of these data, a `Fitting` or `LossFitting`, whose time starts now.

        It has one thread if several binary problems are to be solved at a time, and otherwise any number (None).
        """
        deadline = time.perf_counter() + seconds_at_most(self.time_limit)
        storage, labels, classes, which = self._read(X, y, sample_weight)
        data = TrainingData.of(storage, labels, classes, which, sample_weight, self.class_weight, one_will_do=True)
        given = self.random_state
        seed = given if given is None or is_number(given) else int(check_random_state(given).randint(2**31 - 1))
        in_parallel = (labels.ndim == 2 or len(data.classes) > 2) and effective_n_jobs(self.n_jobs) > 1
        return kind(self, FitTask(data, deadline, seed, threads=1 if in_parallel else None))

    def _solve_in_parallel(self, solve: Callable[..., Any], asked: Iterable[Sequence[Any]]) -> list[Any]:
        """Return what `solve` returns for each of these tuples of arguments, several at a time."""
        with blas_threads(0):  # around all of them: the setting is global to the process
            return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(solve)(*each) for each in asked))

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array, Array]:
        """Read and check X and y: return the storage of X, y, the classes in order, and the number of the class of each row.

        For multilabel y the second and the last are both the table of booleans, with a column for each label.
        """
        X, y = self._gathered(X), computed(y) if is_lazy(y) else host(y)
        storage = self._stored(X, y, self.device)
        validate_data(self, _named(X), y, skip_check_array=True)
        require_finite(storage)
        if is_table(X, y):
            positive, columns = read_indicators(y, storage.n)
            _check_aligned(X, y, sample_weight, stacklevel=5)
            return storage, positive, columns, positive
        labels, which = read_labels(y, storage.n)
        _check_aligned(X, y, sample_weight, stacklevel=5)
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "O" and not any(isinstance(label, str) for label in labels):
            if any(isinstance(label, int) and abs(label) >= 2**63 for label in labels):
                raise InputError("y has a label of more than 64 bits; use text for labels (y.astype(str), say)")
            y = np.array(y.tolist())  # scikit-learn does not know numbers and booleans that are stored as objects
        if y.dtype.kind in "biu":  # these are sorted already, and cannot be the target of a regression
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

    def _described(
        self, kind: Kind, proofs: Iterable[Certificate | None], problems: Sequence[Binary], *named: Any
    ) -> list[Certificate]:
        """Return the certificates with what they are about; `named` are y and the weights as passed, which may have names."""
        label, weight = (name if isinstance(name, str) else None for name in (getattr(each, "name", None) for each in named))
        about = About(label=label, weight=weight, columns=tuple(getattr(self, "feature_names_in_", ())) or None)
        pairs = zip(proofs, problems, strict=True)
        return [described(proof, _about(about, kind, problem)) for proof, problem in pairs if proof is not None]

    def _gathered(self, X: Any) -> Any:
        """Return X in memory if it is a collection of parts on other machines, otherwise X itself."""
        return computed(X) if is_lazy(X) else X

    def _stored(self, X: Any, y: Any, device: str | None) -> Any:
        """Return X as a storage, as `gordan.separate` reads it; what scikit-learn refuses too is refused with its message."""
        refuse_queries(X)  # first, since they warn of being asked for their columns
        try:
            return stored(X, device)
        except InputError:
            # our messages name the column, or say how a file is read
            if not is_tensor(X) and not is_on_device(X) and not hasattr(X, "columns") and not isinstance(X, str):
                validate_data(self, X, y, accept_sparse="csr", dtype="numeric")
            raise

    # ---- predicting --------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Return the scores of each row, by which `predict` decides.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows to score.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            x·w + b for the plane of each class or label, which is the signed distance to a plane of largest margin. For two
            classes it is one number: that of the plane, or with the multinomial loss the score of the second class minus that of
            the first. For pairs of classes these are the votes for each class, with ties broken by the sum of its scores squeezed
            into (-⅓, ⅓).
        """
        distances = self._distances(X)  # first, since it refuses a classifier that is not fitted
        return decisions(self.kind_, distances, len(self.classes_))

    def predict(self, X: Any) -> Array:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows to predict.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            The classes; for multilabel y a table with 1 for each label of a row and 0 for the others.
        """
        distances = self._distances(X)  # first, since it refuses a classifier that is not fitted
        found = chosen(self.kind_, distances, len(self.classes_))
        return found if self.kind_ == "multilabel" else np.asarray(self.classes_[found])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on X and y: the (weighted) share of rows whose class, or all of whose labels, are correct."""
        _check_aligned(X, y, sample_weight, stacklevel=3)
        return float(super().score(X, y, sample_weight=sample_weight))

    def _distances(self, X: Any) -> Array:
        """Return x·w + b for each row and plane."""
        check_is_fitted(self)
        X = self._gathered(X)
        storage = self._stored(X, "no_validation", None)
        try:
            validate_data(self, _named(X), skip_check_array=True, reset=False)
        except ValueError as error:  # the columns are not those of the fit
            raise InputError(str(error)) from None
        with np.errstate(over="ignore", invalid="ignore"):
            signs = storage.to_storage(np.ones(storage.n, np.int8), "signs")
            distances: Array = storage.to_host(storage.scores(self.coef_.T, self.intercept_, signs, available()))
            if not math.isfinite(np.sum(distances)):  # perhaps because of NaN or infinity in X
                require_finite(storage)
        return distances

    # ---- files, and other libraries ----------------------------------------------------------------------------------

    def to_sklearn(self) -> Any:
        """Return a fitted scikit-learn estimator with the same planes and predictions, for export to ONNX or skops.

        Returns
        -------
        LinearSVC, LogisticRegression or OneVsRestClassifier
            A LogisticRegression for the logistic and the multinomial loss, otherwise a LinearSVC. The logistic loss of more than
            two classes gives a OneVsRestClassifier of LogisticRegression. So does multilabel y with any loss, because exporters
            read 0.5 as the threshold of other estimators there; its `predict_proba` is meaningful for the logistic loss only.

        Raises
        ------
        InputError
            If there is a plane for each pair of classes: scikit-learn has no linear classifier of this kind.
        """
        check_is_fitted(self)
        if self.kind_ == "one-vs-one":
            raise InputError(
                "scikit-learn has no linear classifier with one plane per pair of classes; "
                "fit with multi_class='ovr', or use LinearClassifier"
            )
        coef, b = self.coef_, self.intercept_
        if self.kind_ == "multinomial" and len(self.classes_) == 2:
            coef, b = coef[1:] - coef[:1], b[1:] - b[:1]
        found, y = self._peer(), self.classes_
        if self.kind_ == "multilabel" or (self.kind_ == "one-vs-rest" and hasattr(self, "predict_proba")):
            found = OneVsRestClassifier(found.set_params(class_weight=None))
        if self.kind_ == "multilabel":
            y = np.repeat([[0], [1]], len(self.classes_), axis=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # a fit to zeros sets all attributes that the installed version of scikit-learn expects
            found.fit(np.zeros((len(y), self.n_features_in_)), y)
        for k, single in enumerate(getattr(found, "estimators_", ())):
            single.coef_, single.intercept_ = coef[[k]], b[[k]]
        if not hasattr(found, "estimators_"):
            found.coef_, found.intercept_ = coef.copy(), b.copy()
        if hasattr(self, "feature_names_in_"):
            found.feature_names_in_ = self.feature_names_in_
        return found

    def _peer(self) -> Any:
        """Return the scikit-learn estimator that predicts in the same way, not fitted."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC

        if self.kind_ == "multilabel":
            return LogisticRegression(fit_intercept=Intercept.of(self.intercept).exists, tol=self.tol)
        return LinearSVC(loss="hinge", C=1e10, fit_intercept=Intercept.of(self.intercept).exists, tol=self.tol)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the classifier and its certificates to a model file, which is not a pickle and has a checksum.

        Parameters
        ----------
        path : str or path
            The file to write; an existing one is replaced in one step.
        """
        check_is_fitted(self)
        self._model().save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a classifier from a model file.

        It predicts as the saved one did, and has its parameters as `gordan.load` describes. Attributes that only a fit has, such
        as `n_iter_` and `trace_`, are not in the file.

        Parameters
        ----------
        path : str or path
            A file that `save` or `gordan fit` wrote.

        Returns
        -------
        MaxMarginClassifier or LinearClassifier
            An instance of the class that the method is called on.

        Raises
        ------
        InputError
            If the file is damaged or has another kind of model; `gordan.load` reads all kinds.
        """
        model = Model.load(path)
        if model.estimator != cls.__name__:
            raise InputError(f"{os.fspath(path)} holds a {model.estimator}, not a {cls.__name__}; gordan.load reads both")
        if model.scaling is not None:
            raise InputError(f"{os.fspath(path)} was fitted to scaled columns; gordan.load gives a pipeline that scales them")
        return cls._of_model(model)

    def _model(self) -> Model:
        """Return the fit as it is stored in a model file."""
        raise NotImplementedError

    @classmethod
    def _of_model(cls, model: Model) -> Self:
        """Return the classifier of a model."""
        raise NotImplementedError

    def _keep_columns(self, model: Model) -> None:
        """Set the attributes about the columns of X from a model."""
        self.n_features_in_ = model.coef.shape[1]
        if model.names is not None:
            self.feature_names_in_ = np.array(model.names, dtype=object)

    # ---- warnings ----------------------------------------------------------------------------------------------------

    def _warn_of_only_class(self, data: TrainingData) -> None:
        """Warn that one class is predicted for all rows, since no other one has weight."""
        label = data.classes.tolist()[data.only]
        for remark in self._new_remarks([f"only rows of class {label!r} have positive weight, so it is predicted for all rows"]):
            warnings.warn(remark, UserWarning, stacklevel=3)

    def _new_remarks(self, remarks: Iterable[str]) -> list[str]:
        """Return the remarks that were not yet made about such data in this process, whatever numbers are in them.

        A search with cross-validation fits hundreds of times, and each of its warnings would be printed, since scikit-learn
        changes the filters in between.
        """
        columns = tuple(getattr(self, "feature_names_in_", ())) or self.coef_.shape[1]
        found = {(type(self).__name__, columns, re.sub(r"[0-9]\S*", "", remark)): remark for remark in remarks}
        new = [remark for key, remark in found.items() if key not in REMARKED]
        REMARKED.update(found)
        return new


def _about(about: About, kind: Kind, problem: Binary) -> About:
    """Return what the certificate of this problem is about; for multilabel y a column, where 1 is the positive class."""
    if kind != "multilabel":
        return replace(about, positive=problem.against_rest)
    return replace(about, label=str(problem.label) if isinstance(problem.label, str) else None, positive="1")


def _named(X: Any) -> Any:
    """Return X, or in place of a Dask data frame an empty one of pandas, whose column names scikit-learn can read."""
    return X._meta if is_lazy(X) and hasattr(X, "columns") else X


def _check_aligned(X: Any, y: Any, sample_weight: Any, stacklevel: int) -> None:
    """Refuse pandas objects whose index has that of X in another order, and warn if it is a different one.

    It is only a warning because pipelines and searches of scikit-learn pair rows by position, whatever the index.
    """
    found = misaligned(X=X, y=y, sample_weight=sample_weight)
    if found is None:
        return
    if found.reordered:
        raise InputError(found.message)
    warnings.warn(f"rows are paired by position, but {found.message}", IndexWarning, stacklevel=stacklevel)
