"""`LinearClassifier`: the scikit-learn classifier of least regularized loss. The fitting itself is in `least_loss`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gordan.arrays import Array, relative_width
from gordan.certificates import Certificate
from gordan.certificates.matrix import Matrix
from gordan.certificates.problem import is_one_hot
from gordan.certificates.regions import same_labels
from gordan.errors import InputError
from gordan.estimators.least_loss import (
    LeastPlane,
    LossFitting,
    LossParameters,
    check_shared_parameters,
    least_planes,
    model_of_least_loss,
    planes_from_parts,
)
from gordan.estimators.models import class_weights_of, parameters_of
from gordan.estimators.multiclass import binary_problems
from gordan.estimators.planes import Planes
from gordan.intercepts import Intercept
from gordan.io.model import Kind, Model, probabilities
from gordan.io.model import problems as number_of_problems
from gordan.losses import Loss
from gordan.statuses import Status
from gordan.verdicts.loss import with_planes


def _has_probabilities(self: LinearClassifier) -> bool:
    """Return True if the loss is one of probabilities, or raise the AttributeError that scikit-learn shows otherwise."""
    known = [loss.value for loss in Loss if loss.probabilities]
    if self.loss not in known:
        allowed = " or ".join(f"loss={name!r}" for name in known)
        raise AttributeError(f"loss={self.loss!r} gives no probabilities; pass {allowed} to use predict_proba")
    return True


@dataclass(frozen=True, eq=False)
class Proofs:
    """The certificates of a fit: as they are, or without the `planes` that they are about, as pairs of w and b."""

    claims: Sequence[Certificate]
    planes: Sequence[tuple[Array, Any]] | None = None

    @cached_property
    def certificates(self) -> list[Certificate]:
        """The certificates with their planes."""
        if self.planes is None:
            return [*self.claims]
        return [with_planes(claim, *plane) for claim, plane in zip(self.claims, self.planes, strict=True)]


class LinearClassifier(Planes, LossParameters):
    """Linear classifier of least regularized loss, with a certified interval for that least value.

    The objective is ½‖w‖² + Σ C_i ℓ(y_i(x_i·w + b)), where C_i = C × sample weight × weight of the row's own class. With
    `intercept="penalized"` it is that of LinearSVC, with `loss="logistic"` that of a binary LogisticRegression and with
    `loss="multinomial"` that of LogisticRegression for several classes. More than two classes are fitted one against the rest,
    except with the multinomial loss, which is about all classes at once. Multilabel y gives a plane for each label.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "logistic", "multinomial"}, default="squared_hinge"
        The loss ℓ(z) of a row with z = y(x·w + b): (1 - z)₊², (1 - z)₊ or log(1 + e⁻ᶻ); or log Σ_c e^{s_c} - s_y for the scores
        s_c = x·w_c + b_c of all classes.
    C : float, default=1.0
        The weight of the loss against the penalty ½‖w‖²: the larger C is, the less w is regularized.
    intercept : {"free", "penalized", "none"}, default="free"
        With "free" b is not penalized; with "penalized" ½b² is added to the objective, as in LIBLINEAR; "none" is b = 0.
    tol : float, default=1e-4
        Relative width of the certified interval to stop at. Small problems are solved until rounding allows no progress.
    class_weight : dict or "balanced", default=None
        Factors of the sample weights by label; "balanced" gives all classes the same total of weights. For multilabel y the keys
        are 0 and 1, and "balanced" applies to each column by itself.
    max_iter : int, default=None
        The number of rounds (steps of Newton's method, epochs of coordinate ascent) is at most this, for each binary problem.
    time_limit : float, default=None
        Stop after about this many seconds, for the whole fit, with the best planes found. Ctrl-C stops a fit too, with what is
        proved by then and a ConvergenceWarning; a search such as GridSearchCV goes on with its next fit.
    warm_start : bool, default=False
        Start from the planes of the last fit, if it had as many columns and the same classes, for instance along a path of C.
    n_jobs : int, default=None
        The number of binary problems to solve at a time, in threads. With None, problems with many sparse rows use all cores.
    device : {"cuda", "cpu"}, default=None
        "cuda" copies X to the GPU once, "cpu" copies it to main memory; None leaves it where it is. `fit`, `predict` and
        `decision_function` accept torch tensors and CuPy arrays; results are NumPy arrays.
    random_state : int or RandomState, default=None
        Seed of the order in which rows are visited, and of the subsample that a first plane is found for if there are many rows.
        None is a fixed seed, so that equal fits give equal results.
    verbose : int, default=0
        1 prints a line for each binary problem.

    Attributes
    ----------
    coef_ : ndarray of shape (k, d)
        The coefficients of the planes. k is 1 for two classes, except with the multinomial loss; otherwise it is the number of
        classes, or of labels of multilabel y.
    intercept_ : ndarray of shape (k,)
        The intercepts. Those of the multinomial loss with a free intercept have the sum 0.
    classes_ : ndarray
        The classes in order; for multilabel y the names of its columns, or their numbers if it has no distinct names. A class
        whose rows all have weight zero, as in a bootstrap of few rows, is left out as if they were removed. If only one class has
        weight, another one is kept, `coef_` is 0, and the one with weight is predicted for all rows, with a warning. Such a fit
        has no certificate.
    class_weight_ : ndarray of shape (n_classes,), or None
        The class weights of the fit, in the order of `classes_`; None without class weights. For multilabel y those of 0 and 1,
        or None if they are balanced. They are needed to check certificates of more than 100,000 rows (see `certificate_`).
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of str
        The names of the columns of X, if X is a data frame.
    kind_ : {"binary", "one-vs-rest", "multinomial", "multilabel"}
        What the planes separate. The following attributes describe one problem if it is "binary" or "multinomial", otherwise k
        problems.
    n_iter_ : int
        The largest number of steps of a problem.
    status_ : str, or list of str
        "solved", or why the search was stopped.
    objective_ : tuple of float, or ndarray of shape (k, 2)
        The certified interval (lower, upper) for the least value of the objective.
    gap_ : float, or ndarray of shape (k,)
        The relative width (upper - lower)/upper of that interval.
    radius_ : float, or ndarray of shape (k,)
        A proved bound on the distance (in the Frobenius norm) of `coef_` from the exact minimizer.
    certificate_ : Certificate, or list of Certificate
        The proof of `objective_`. `gordan.verify` checks it against X and y; for a class against the rest pass y == class, for a
        label its column of y, and otherwise only the rows of `classes_` if a class was left out. If there are more than 100,000
        weights, pass these as well: the sample weights, or for a class against the rest their products with the class weights,
        `sample_weight * class_weight_[np.searchsorted(classes_, y)]`.

    trace_ : Trace or None, or list of Trace or None
        The recorded steps; None for planes that were found together with those of other classes or labels. It is not part of
        pickles and model files.

    See Also
    --------
    MaxMarginClassifier : Linear classifier of largest margin, which has no C to choose.
    minimize_loss : The function behind it.
    load : Read a classifier from a model file.

    Examples
    --------
    >>> from gordan import LinearClassifier
    >>> model = LinearClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"])
    >>> model.predict([[-1.0], [4.0]]).tolist(), model.gap_ <= 1e-4
    (['no', 'yes'], True)
    """

    _proofs: Proofs | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.loss != "multinomial"
        return tags

    # ---- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearClassifier:
        """Fit the plane of least loss, or the planes of several classes or labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The data, one row per example.
        y : array-like of shape (n,) or (n, k)
            The labels of the rows, of any kind; or multilabel indicators, a table of 0 and 1 (or booleans, a sparse matrix or a
            data frame) with a column for each label.
        sample_weight : array-like of shape (n,), default=None
            The weights of the rows: weight k counts as k equal rows, and a row of weight zero is left out.

        Returns
        -------
        self : LinearClassifier
            The fitted classifier.

        Notes
        -----
        Rows are paired by position, as in `MaxMarginClassifier.fit`.
        """
        check_shared_parameters(self)
        fitting = self._fitting(LossFitting, X, y, sample_weight)
        if fitting.task.data.y.ndim == 2 and Loss.of(self.loss).several:
            raise InputError(
                f"loss={self.loss!r} assumes one class for each row, but Y has {len(fitting.task.data.classes)} columns of labels"
                + (
                    "; pass Y.argmax(axis=1)"
                    if is_one_hot(fitting.task.data.y)
                    else ", of which a row may have several; pass loss='logistic'"
                )
            )
        problems = list(binary_problems(fitting))
        if fitting.task.data.only is not None:
            self._keep_constant(fitting)
            self._warn_of_only_class(fitting.task.data)
            return self
        starts = self._starts(fitting.kind, fitting.task.data.classes, fitting.task.data.X.d)
        if fitting.task.threads == 1:
            results = self._solve_in_parallel(fitting.result, zip(problems, starts or [None] * len(problems), strict=True))
        else:
            results = fitting.results(problems, starts)
        self._keep(fitting.kind, fitting.task.data.classes, [LeastPlane.of(result, None) for result in results])
        claims = self._described(fitting.kind, [result.claim for result in results], problems, y, sample_weight)
        self._proofs = Proofs(claims, [(result.w, result.b) for result in results])
        self.class_weight_ = fitting.task.data.factors
        self.n_iter_ = max(result.n_iter for result in results)
        statuses, traces = [str(result.status) for result in results], [result.trace for result in results]
        self.status_ = statuses[0] if len(statuses) == 1 else statuses
        self.trace_ = traces[0] if len(traces) == 1 else traces
        message = fitting.convergence_message(problems, results)
        if message is not None:
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        for remark in self._new_remarks(fitting.remarks(results)):
            warnings.warn(remark, UserWarning, stacklevel=2)
        return self

    def _keep_constant(self, fitting: LossFitting) -> None:
        """Set the fitted attributes for data of which only one class has weight."""
        plane = fitting.constant_plane()
        self._keep(fitting.kind, fitting.task.data.classes, [plane])
        self._proofs, self.class_weight_ = None, fitting.task.data.factors
        self.n_iter_, self.trace_ = 0, None
        self.status_ = str(Status.SOLVED if self.gap_ <= self.tol else Status.NO_PROGRESS)

    def _gathered(self, X: Any) -> Any:
        return X  # the passes run where the parts are

    def _starts(self, kind: Kind, classes: Array, d: int) -> Sequence[Any] | None:
        """Return the planes of the last fit, each as w with b as its last entry; None if they cannot be used again."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        if (self.kind_, self.coef_.shape[1]) != (kind, d) or not np.array_equal(classes, self.classes_):
            return None
        if kind == "multinomial":
            return [np.vstack((self.coef_.T, self.intercept_))]
        planes, exists = zip(self.coef_, self.intercept_, strict=True), Intercept.of(self.intercept).exists
        return [np.append(w, b) if exists else w for w, b in planes]

    def _keep(self, kind: Kind, classes: Array, planes: Sequence[LeastPlane]) -> None:
        """Set the fitted attributes that are also stored in a model file."""
        self.kind_, self.classes_ = kind, classes
        self.coef_ = np.vstack([plane.w.T for plane in planes])
        self.intercept_ = np.concatenate([np.atleast_1d(plane.b) for plane in planes])
        gaps = [relative_width(*plane.objective) for plane in planes]
        one = number_of_problems(kind, len(classes)) == 1
        self.objective_ = planes[0].objective if one else np.array([plane.objective for plane in planes])
        self.gap_ = gaps[0] if one else np.array(gaps)
        self._places = [plane.place for plane in planes if plane.place is not None]
        radii = [place.radius for place in self._places] or [math.inf for _ in planes]
        self.radius_ = radii[0] if one else np.array(radii)

    @property
    def certificate_(self) -> Any:
        """The proof of `objective_`, constructed on first access: its tuples of numbers take longer than some fits."""
        if self._proofs is None:
            raise AttributeError(
                "this classifier has no certificate: it is not fitted, only one class had weight, or its model file has none"
            )
        found = self._proofs.certificates
        return found[0] if number_of_problems(self.kind_, len(self.classes_)) == 1 else found

    # ---- predicting --------------------------------------------------------------------------------------------------

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, with the logistic and the multinomial loss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows to predict.

        Returns
        -------
        ndarray of shape (n, n_classes)
            With the logistic loss 1/(1 + e^-score); for more than two classes divided by their sum, for multilabel y not. With
            the multinomial loss e^score divided by the sum over the classes.
        """
        scores = self._distances(X)
        return probabilities(self.kind_, scores)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of what `predict_proba` returns."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def same_prediction(self, X: Any) -> Array:
        """Return for each row whether the exact minimizer is proved to predict the same as this fit.

        The proof needs only the region that contains the minimizer, which is kept with the fit and in model files. Its radius
        shrinks with the square root of `tol`: if few rows are proved, fit with `tol=1e-8`, which takes a few more steps.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows to predict.

        Returns
        -------
        ndarray of bool, of shape (n,)
            True where the class, or for multilabel y each label, is proved to be the same.
        """
        check_is_fitted(self)
        if not self._places:
            raise InputError(
                "the model file does not say where the exact minimizer is, or only one class had weight; same_prediction is not "
                "available, so fit again"
            )
        predicted = self.predict(X)
        M = Matrix(self._stored(X, "no_validation", None))
        if self.kind_ == "multilabel":
            same = [same_labels([place], M, own) for place, own in zip(self._places, predicted.T, strict=True)]
            return np.asarray(np.logical_and.reduce(same))
        return same_labels(self._places, M, np.searchsorted(self.classes_, predicted))

    # ---- files, and other libraries ----------------------------------------------------------------------------------

    def _peer(self) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC

        exists = Intercept.of(self.intercept).exists
        options = {"C": self.C, "fit_intercept": exists, "tol": self.tol, "class_weight": self.class_weight}
        if Loss(self.loss).probabilities or self.kind_ == "multilabel":
            return LogisticRegression(**options)
        return LinearSVC(loss=self.loss, **options)

    def _model(self) -> Model:
        intervals = np.reshape(self.objective_, (-1, 2)).tolist()
        certificates = [None] * len(intervals) if self._proofs is None else self._proofs.certificates
        planes = planes_from_parts(self.kind_, self.coef_, self.intercept_, intervals, certificates, self._places)
        names = getattr(self, "feature_names_in_", None)
        return model_of_least_loss(self.kind_, self.classes_, planes, self, names, getattr(self, "class_weight_", None))

    @classmethod
    def _of_model(cls, model: Model) -> LinearClassifier:
        known = parameters_of(model, [part.name for part in fields(LossParameters)])
        found = cls(model.loss, model.C, intercept=model.intercept_kind, **known)  # type: ignore[arg-type]
        found.class_weight_ = class_weights_of(model)
        planes = least_planes(model)
        found._keep(model.kind, model.class_array(), planes)
        proofs = [plane.certificate for plane in planes if plane.certificate is not None]
        found._proofs = Proofs(proofs) if len(proofs) == len(planes) else None  # a model file may have none
        found._keep_columns(model)
        return found
