"""`LinearClassifier`: the linear classifier of least regularized loss, with a certified interval for that least value."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from gordan.arrays import Array, positive, seconds_at_most
from gordan.blas import blas_threads
from gordan.certificates.matrix import Matrix
from gordan.certificates.regions import same_labels
from gordan.errors import InputError
from gordan.estimators.least_loss import LeastPlane, LossFitting, LossParameters, least_planes, model_of_least_loss, planes_of
from gordan.estimators.planes import Planes, first_of
from gordan.io.model import Model, decisions, probabilities
from gordan.io.model import problems as number_of_problems
from gordan.losses import Loss
from gordan.verdicts.loss import with_planes


def _has_probabilities(self: LinearClassifier) -> bool:
    known = [loss.value for loss in Loss if loss.probabilities]
    if self.loss not in known:
        told = " or ".join(f"loss={name!r}" for name in known)
        raise AttributeError(f"predict_proba needs a loss of probabilities; loss is {self.loss!r}, pass {told}")
    return True


class LinearClassifier(Planes, LossParameters):
    """The linear classifier of least ½‖w‖² + Σ C_i ℓ(y_i(x_i·w + b)), with a certified interval for that least value.

    With `intercept="penalized"` it solves the problem of scikit-learn's LinearSVC, with `loss="logistic"` that of a binary
    LogisticRegression, with `loss="multinomial"` that of one for several classes; and proves how near it is to the optimum.
    Several classes: one against the rest, but for the multinomial loss, which is about all of them at once. Several labels a row
    (scikit-learn's multilabel y): a plane for each.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "logistic", "multinomial"}
        ℓ(z) = (1 - z)₊², (1 - z)₊ or log(1 + e⁻ᶻ); or log Σ_c e^{s_c} - s_y for the scores s_c = x·w_c + b_c of all classes.
    C : float, default 1
        The larger, the less the norm of w matters. C_i = C × sample weight × weight of the row's own class.
    intercept : {"free", "penalized", "none"}
        "free": b costs nothing; "penalized": ½b² is added, as LIBLINEAR does; "none".
    tol : float, default 1e-4
        Relative width of the certified interval to stop at. Small problems are solved until rounding stops it.
    class_weight : dict, "balanced" or None
        Factors of the sample weights, by label. "balanced": inverse to the total weight of the class. Of several labels a row,
        for 0 and 1, and each column is balanced by itself.
    max_iter : int, optional
        Rounds (steps of Newton's method, epochs of coordinate ascent) at most, for each binary problem.
    time_limit : float, optional
        Seconds at most, for the whole fit.
    warm_start : bool, default False
        Start from the planes of the last fit, if it had as many columns and the same classes: along a path of C, say.
    n_jobs : int, optional
        Binary problems to solve at a time (threads). Those of many sparse rows share all cores if this is None.
    device : str, optional
        "cuda" copies X to the GPU once, "cpu" brings it to the host; None leaves it where it is.
    random_state : int, RandomState or None
        Seed of the order in which rows are visited, and of those that a first plane is found for where there are many; None
        stands for a fixed one.
    verbose : int, default 0
        1 prints a line for each binary problem.

    Attributes
    ----------
    coef_ : (k, d) array
        w of each plane: k is 1 for two classes, else the number of classes, or of labels that a row may have several of; of the
        multinomial loss always that.
    intercept_ : (k,) array
        Their b. Of the multinomial loss with a free intercept 0 is their sum.
    classes_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn. Of several labels a row, `classes_` are the names of the columns of a data frame, or else
        their numbers.
    kind_ : {"binary", "one-vs-rest", "multinomial", "multilabel"}
        What the planes separate. Where that is one problem, binary or multinomial, what follows is about that; else about k.
    n_iter_ : int
        Steps; the most over the binary problems.
    status_ : str, or list of k
        "solved", or what stopped it.
    objective_ : (lower, upper), or (k, 2) array
        The certified interval for the least value.
    gap_ : float, or (k,) array
        (upper - lower)/upper.
    radius_ : float, or (k,) array
        The exact minimizer's w is at most this far from `coef_` (proved), in the Frobenius norm.
    certificate_ : Certificate, or list
        Proof of `objective_`. `gordan.verify` checks it against X, y; for one class against the rest against X, y == class; for
        one of several labels against X and its column.

    Examples
    --------
    >>> from gordan import LinearClassifier
    >>> model = LinearClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"])
    >>> model.predict([[-1.0], [4.0]]).tolist(), model.gap_ <= 1e-4
    (['no', 'yes'], True)
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.loss != "multinomial"
        return tags

    # ---- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearClassifier:
        """Find the plane, or planes, of least loss.

        X is dense or sparse, one row per example; y has any labels, or is a table of 0 and 1 (booleans; also sparse, or a data
        frame) with a column for each of several labels that a row may have; `sample_weight` one number for each row: k counts as
        k equal rows, and zero removes a row. Rows are paired by position, as in `MaxMarginClassifier.fit`.
        """
        started = time.perf_counter()
        positive(self.tol, "tol")
        deadline = started + seconds_at_most(self.time_limit)
        named = y, sample_weight
        storage, y, classes, which = self._read(X, y, sample_weight)
        if y.ndim == 2 and Loss.of(self.loss).several:
            raise InputError(
                f"loss={self.loss!r} assumes one class for each row, but Y has {len(classes)} columns of labels, of which a "
                "row may have several; pass loss='logistic'"
            )
        busy = self._is_parallel(y, classes)
        weights = self._weights(sample_weight, classes, which)
        fitting = LossFitting(self, storage, y, classes, weights, deadline, self._seed(), threads=1 if busy else None)
        problems = list(fitting.problems())
        starts = self._starts(fitting.kind, classes, storage.d) or [None] * len(problems)
        asked = zip(problems, starts, strict=True)
        if busy:
            with blas_threads(0):  # around all of them: each sets and resets a number that the process has once
                results = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(fitting.result)(*each) for each in asked)
        else:
            results = fitting.results(problems, starts)
        one = number_of_problems(fitting.kind, len(classes)) == 1
        self._keep(fitting.kind, classes, [LeastPlane.of(result, result.claim) for result in results])
        self._describe(problems, *named)
        self._claims = self.__dict__.pop("certificate_"), [(result.w, result.b) for result in results]
        self.n_iter_ = max(result.n_iter for result in results)
        statuses = [str(result.status) for result in results]
        self.status_ = statuses[0] if one else statuses
        unfinished = fitting.unfinished(problems, results)
        if unfinished is not None:
            warnings.warn(unfinished, ConvergenceWarning, stacklevel=2)
        for told in first_of(fitting.remarks(results), storage):
            warnings.warn(told, UserWarning, stacklevel=2)
        return self

    def _gathered(self, X: Any) -> Any:
        return X  # passes go to where the parts are

    def _starts(self, kind: str, classes: Array, d: int) -> Sequence[Any] | None:
        """w with b of each plane of the last fit, where they can serve again."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        if (self.kind_, self.coef_.shape[1]) != (kind, d) or not np.array_equal(classes, self.classes_):
            return None
        if kind == "multinomial":
            return [np.vstack((self.coef_.T, self.intercept_))]
        planes = zip(self.coef_, self.intercept_, strict=True)
        return [w if self.intercept == "none" else np.append(w, b) for w, b in planes]

    def _keep(self, kind: str, classes: Array, planes: Sequence[LeastPlane]) -> None:
        """The attributes that a model file has as well."""
        self.kind_, self.classes_ = kind, classes
        self.coef_ = np.vstack([plane.w.T for plane in planes])
        self.intercept_ = np.concatenate([np.atleast_1d(plane.b) for plane in planes])
        intervals = np.array([plane.objective for plane in planes])
        widths, upper = intervals[:, 1] - intervals[:, 0], intervals[:, 1]
        gaps = np.divide(widths, upper, out=np.zeros(len(planes)), where=upper > 0)
        certificates = [plane.certificate for plane in planes]
        one = number_of_problems(kind, len(classes)) == 1
        self.objective_ = tuple(intervals[0].tolist()) if one else intervals
        self.gap_ = float(gaps[0]) if one else gaps
        self.__dict__.pop("certificate_", None)
        if None not in certificates:  # a file may have come without
            self.certificate_ = certificates[0] if one else certificates
        self._places = [plane.place for plane in planes if plane.place is not None]
        if self._places:
            radii = [place.radius for place in self._places]
            self.radius_ = radii[0] if one else np.array(radii)

    @cached_property
    def certificate_(self) -> Any:
        """Made when it is asked for: tuples of the numbers in `coef_` take longer to make than some fits."""
        if not hasattr(self, "_claims"):
            raise AttributeError("this classifier has no certificate: it is not fitted, or its file holds none")
        claims, planes = self._claims
        if not isinstance(claims, list):
            return with_planes(claims, *planes[0])
        return [with_planes(claim, *plane) for claim, plane in zip(claims, planes, strict=True)]

    # ---- predicting --------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """x·w + b for each class's or label's plane, as an (n, classes) array; of two classes that of the plane, or of the
        multinomial loss that of the second less that of the first."""
        scores = self._distances(X)
        return decisions(self.kind_, scores, len(self.classes_))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """The probability of each class or label, as an (n, classes) array: 1/(1 + e^-score), of several classes divided by their
        sum (labels of which a row may have several are not); of the multinomial loss e^score divided by their sum."""
        scores = self._distances(X)
        return probabilities(self.kind_, scores)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def same_prediction(self, X: Any) -> Array:
        """For each row, whether the exact minimizer is proved to predict the same class as this fit, or all labels alike.

        What this needs, the place of the minimizer and not the rows of the fit, is kept with it and in model files.
        """
        check_is_fitted(self)
        if not self._places:
            raise InputError("this classifier was loaded from a file, which does not hold what this needs; fit it again")
        predicted = self.predict(X)
        M = Matrix(self._stored(X, "no_validation", None))
        if self.kind_ == "multilabel":
            alike = [same_labels([place], M, own) for place, own in zip(self._places, predicted.T, strict=True)]
            return np.asarray(np.logical_and.reduce(alike))
        return same_labels(self._places, M, np.searchsorted(self.classes_, predicted))

    # ---- files, and other libraries ----------------------------------------------------------------------------------

    def _peer(self) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC

        options = {"C": self.C, "fit_intercept": self.intercept != "none", "tol": self.tol, "class_weight": self.class_weight}
        return LogisticRegression(**options) if Loss(self.loss).probabilities else LinearSVC(loss=self.loss, **options)

    def _model(self) -> Model:
        intervals = np.reshape(self.objective_, (-1, 2)).tolist()
        certificates = getattr(self, "certificate_", [None] * len(intervals))
        certificates = certificates if isinstance(certificates, list) else [certificates]
        planes = planes_of(self.kind_, self.coef_, self.intercept_, intervals, certificates, self._places)
        return model_of_least_loss(self.kind_, self.classes_, planes, self, getattr(self, "feature_names_in_", None))

    @classmethod
    def _of_model(cls, model: Model) -> LinearClassifier:
        found = cls(model.loss, model.C, intercept=model.intercept_kind)  # type: ignore[arg-type]
        found._keep(model.kind, model.class_array(), least_planes(model))
        found.n_features_in_ = model.coef.shape[1]
        if model.names is not None:
            found.feature_names_in_ = np.array(model.names, dtype=object)
        return found
