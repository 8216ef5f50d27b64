"""`MaxMarginClassifier`: the scikit-learn classifier of largest margin. The fitting itself is in `fitting`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gordan.arrays import Array
from gordan.estimators.fitting import Fitting, Outcome, Parameters, Plane, check_parameters, model_of, planes_of
from gordan.estimators.interrupts import InterruptFlag
from gordan.estimators.models import class_weights_of, parameters_of
from gordan.estimators.multiclass import Binary, binary_problems
from gordan.estimators.planes import Planes
from gordan.io.model import Kind, Model
from gordan.verdicts.weights import scatter


class InseparableWarning(UserWarning):
    """Warning that no plane separates the classes, so that another plane was fitted, or that they are barely separable."""


class MaxMarginClassifier(Planes, Parameters):
    """Linear classifier of largest margin, with a certified interval for that margin.

    The margin is γ* = max_{w,b} min_i y_i(x_i·w + b)/‖w‖_q, the distance of the nearest point to the plane in the units of X.
    There is no C to choose. If no plane separates the classes, the plane of least squared hinge loss (C = 1) is fitted instead,
    and an `InseparableWarning` names rows that cannot be separated; use `LinearClassifier` to choose the loss and C. The warning
    is also given if the classes are separable but the fit suggests that 1.5 % or more of new rows would be misclassified (the
    leave-one-out error, estimated from the support rows).

    Parameters
    ----------
    nu : float, default=None
        None for the hard margin, or a number in (0, ν_max]: the share of the total weight that the margin is averaged over, as in
        ν-SVM. ν_max = 2·min(C₊, C₋)/(C₊ + C₋), where C₊ and C₋ are the total weights of the classes; it is 1 without a free
        intercept. If the soft margin is 0, w is 0 and the class of larger weight is predicted, with a warning. If it is None, the
        norm is not 2 and no plane separates the classes, ν_max/2 is used, and ν_max if that gives no positive margin either.
    norm : float, default=2
        The norm p of feature space, 2 ≤ p ≤ ∞; w is measured in the dual norm.
    intercept : {"free", "penalized", "none"}, default="free"
        "free" is x·w + b; "penalized" appends a constant column 1 to X, so that b counts in the norm of w, as in LIBLINEAR;
        "none" is x·w.
    method : str or method, default="auto"
        What finds the plane: "auto", or a method of `gordan.methods`. Once it is within `tol`, an exact solve follows.
    tol : float, default=1e-4
        Relative width of the certified interval above which a ConvergenceWarning is given. Whatever it is, a fit ends with an
        exact solve on the active rows, so that `coef_` is accurate to about 1e-9 unless a limit was reached.
    max_iter : int, default=None
        The number of rounds is at most this, for each binary problem.
    time_limit : float, default=None
        Stop after about this many seconds, for the whole fit. If no separating plane is found within a quarter of it (shared by
        the binary problems), the plane of least loss is fitted. Ctrl-C stops a fit too, with what is proved by then and a
        ConvergenceWarning; a search such as GridSearchCV goes on with its next fit.
    multi_class : {"ovo", "ovr"}, default="ovo"
        With more than two classes, fit one plane for each pair of classes, or one for each class against the rest. Pairs are
        separable far more often. It is ignored for multilabel y, where each label has a plane of its own.
    class_weight : dict or "balanced", default=None
        Factors of the sample weights by label; "balanced" gives all classes the same total of weights. For multilabel y the keys
        are 0 and 1, and "balanced" applies to each column by itself.
    warm_start : bool, default=False
        Start from the weights of the last fit, if it had as many rows and the same classes.
    n_jobs : int, default=None
        The number of binary problems to solve at a time, in threads.
    device : {"cuda", "cpu"}, default=None
        "cuda" copies X to the GPU once, for all binary problems; "cpu" copies it to main memory; None leaves it where it is.
        `fit`, `predict` and `decision_function` accept torch tensors and CuPy arrays; results are NumPy arrays.
    random_state : int or RandomState, default=None
        Seed of the order in which rows are visited. None is a fixed seed, so that equal fits give equal results.
    verbose : int, default=0
        1 prints a line for each binary problem, 2 also one for each recorded round.
    on_inseparable : {"warn", "raise", "ignore"}, default="warn"
        What to do if no plane separates the classes (with nu=None), or if `nu` is too small for a positive soft margin.
        "ignore" fits what "warn" does, without the warning.

    Attributes
    ----------
    coef_ : ndarray of shape (k, d)
        The coefficients of the planes, with ‖w‖_q = 1 unless a loss was minimized. k is 1 for two classes; otherwise it is the
        number of pairs (i, j) of classes, i < j, in order, the number of classes, or the number of labels of multilabel y.
    intercept_ : ndarray of shape (k,)
        The intercepts. Scores x·w + b are signed distances, positive on the side of `classes_[1]`, of class j of a pair, of the
        class against the rest, or of the label.
    classes_ : ndarray
        The classes in order; for multilabel y the names of its columns, or their numbers if it has no distinct names. A class
        whose rows all have weight zero, as in a bootstrap of few rows, is left out as if they were removed. If only one class has
        weight, another one is kept, `coef_` is 0, and the one with weight is predicted for all rows, with a warning.
    class_weight_ : ndarray of shape (n_classes,), or None
        The class weights of the fit, in the order of `classes_`; None without class weights. For multilabel y those of 0 and 1,
        or None if they are balanced.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of str
        The names of the columns of X, if X is a data frame.
    kind_ : {"binary", "one-vs-one", "one-vs-rest", "multilabel"}
        What the planes separate.
    n_iter_ : int
        The largest number of rounds (or steps of Newton's and of interior-point methods) of a binary problem.
    margin_ : tuple of float, or ndarray of shape (k, 2)
        The certified interval (lower, upper) for the margin, or for the soft margin.
    gap_ : float, or ndarray of shape (k,)
        The relative width (upper - lower)/upper of `objective_` if a loss was minimized, otherwise of `margin_`.
    nu_ : float or None
        The nu of the fit; None for a hard margin or a loss. Unless `kind_` is "binary" this and the following attributes, except
        `support_` and `dual_coef_`, are lists with an entry for each plane. Each proof is about one binary problem; nothing is
        claimed about all classes together.
    separable_ : bool or None
        Whether a plane separates the classes, which is proved either way; None if that was not decided, or not asked because
        `nu` was given or because another class required a loss.
    loss_ : str or None
        "squared_hinge" if a loss was minimized because no plane separates the classes. With one class against the rest, all
        planes minimize it if one has to.
    objective_ : tuple of float, or None
        The certified interval (lower, upper) for the least value of ½‖w‖² + Σ c_i(1 - z_i)₊², z = y(x·w + b), where c are the
        weights; None for a margin.
    certificate_ : Certificate
        The proof of `margin_` or `objective_`. `gordan.verify` checks it against X and y; for a class against the rest pass
        y == class, for a pair its rows only, for a label its column of y. If a class was left out of `classes_`, pass only the
        rows of the two others.
    witness_ : Witness or None
        Rows and weights that prove that no plane separates the classes, if that is the case.
    trace_ : Trace or None
        The recorded rounds; None for planes that were found together with those of other classes, as small ones are. It is not
        part of pickles and model files.
    support_ : ndarray of int
        The positions of the rows that have a positive weight in any of the problems.
    dual_coef_ : ndarray of shape (k, n_support)
        y_i p_i for these rows, with a total of 1 in absolute value. For norm 2, `dual_coef_ @ X[support_]` is parallel to
        `coef_`, and its length is the margin; if a loss was minimized, it is approximately `coef_` itself.

    See Also
    --------
    LinearClassifier : Linear classifier of least loss, for classes that overlap.
    maximize_margin : The function behind it.
    load : Read a classifier from a model file.

    Examples
    --------
    >>> from gordan import MaxMarginClassifier
    >>> model = MaxMarginClassifier().fit([[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]], ["no", "no", "yes"])
    >>> model.predict([[2.5, 0.0], [0.5, 0.5]]).tolist(), model.separable_
    (['yes', 'no'], True)
    """

    # ---- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MaxMarginClassifier:
        """Fit the plane of largest margin, or the planes of several classes or labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The data, one row per example.
        y : array-like of shape (n,) or (n, k)
            The labels of the rows, of any kind; or multilabel indicators, a table of 0 and 1 (or booleans, a sparse matrix or a
            data frame) with a column for each label.
        sample_weight : array-like of shape (n,), default=None
            The weights of the rows. A row of weight zero is left out; positive weights matter for soft margins and losses, where
            weight k counts as k equal rows.

        Returns
        -------
        self : MaxMarginClassifier
            The fitted classifier.

        Notes
        -----
        Rows are paired by position. If the pandas indexes of X, y and `sample_weight` name the same rows in another order, an
        InputError is raised; an `IndexWarning` is given if they name other rows.
        """
        check_parameters(self)
        fitting = self._fitting(Fitting, X, y, sample_weight)
        problems = list(binary_problems(fitting))
        data = fitting.task.data
        if data.only is not None:
            self._keep_fit(fitting, problems, [fitting.only_class_outcome(problems[0])], y, sample_weight)
            self._warn_of_only_class(data)
            return self
        with InterruptFlag() as flag:
            fitting = replace(fitting, interrupted=flag.is_set)
            starts = self._starts(fitting.kind, data.classes, data.X.n)
            solve_all = self._solve_in_parallel if fitting.task.threads == 1 else None
            outcomes = fitting.comparable_outcomes(problems, dict(fitting.outcomes(problems, starts, solve_all=solve_all)))
        self._keep_fit(fitting, problems, outcomes, y, sample_weight)
        for category, message in (
            (InseparableWarning, fitting.inseparable_message(outcomes)),
            (InseparableWarning, fitting.barely_separable_message(outcomes)),
            *((UserWarning, remark) for remark in self._new_remarks(fitting.remarks(outcomes))),
            (ConvergenceWarning, fitting.convergence_message(outcomes)),
        ):
            if message is not None:
                warnings.warn(message, category, stacklevel=2)
        return self

    def _starts(self, kind: Kind, classes: Array, n: int) -> Iterator[Array] | None:
        """Return the weights of the last fit for each problem, one at a time; None if they cannot be used again."""
        if not (self.warm_start and hasattr(self, "dual_coef_")):
            return None
        if (self.kind_, *self.shape_fit_) != (kind, n, self.n_features_in_) or not np.array_equal(classes, self.classes_):
            return None
        totals = np.maximum(np.abs(self.dual_coef_).sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return (scatter(p, self.support_, n) for p in np.abs(self.dual_coef_) / totals)

    def _keep_fit(
        self, fitting: Fitting, problems: Sequence[Binary], outcomes: Sequence[Outcome], y: Any, sample_weight: Any
    ) -> None:
        """Set the fitted attributes."""
        data, planes = fitting.task.data, [outcome.plane for outcome in outcomes]
        proofs = self._described(fitting.kind, [plane.certificate for plane in planes], problems, y, sample_weight)
        planes = [replace(plane, certificate=proof) for plane, proof in zip(planes, proofs, strict=True)]
        self._keep(fitting.kind, data.classes, planes)
        self.class_weight_ = data.factors
        self._keep_runs(outcomes, data.X.n)

    def _keep(self, kind: Kind, classes: Array, planes: Sequence[Plane]) -> None:
        """Set the fitted attributes that are also stored in a model file."""
        self.kind_ = kind
        self.classes_ = classes
        self.coef_ = np.array([plane.w for plane in planes])
        self.intercept_ = np.array([plane.b for plane in planes])
        for name in ("margin", "gap", "nu", "separable", "certificate", "loss", "objective"):
            values = [getattr(plane, name) for plane in planes]
            if name != "certificate" or None not in values:  # a model file may have none
                several = np.array(values) if name in ("margin", "gap") else values
                setattr(self, f"{name}_", values[0] if kind == "binary" else several)

    def _keep_runs(self, outcomes: Sequence[Outcome], n: int) -> None:
        """Set the fitted attributes that are not stored in a model file."""
        self.shape_fit_ = (n, self.n_features_in_)
        self.n_iter_ = max(outcome.n_iter for outcome in outcomes)
        for name in ("witness", "trace"):
            values = [getattr(outcome, name) for outcome in outcomes]
            setattr(self, f"{name}_", values[0] if self.kind_ == "binary" else values)
        used = np.zeros(n, dtype=bool)
        for outcome in outcomes:
            used[outcome.support] = True
        self.support_ = np.flatnonzero(used)
        self.dual_coef_ = np.zeros((len(outcomes), len(self.support_)))
        for k, outcome in enumerate(outcomes):
            self.dual_coef_[k, np.searchsorted(self.support_, outcome.support)] = outcome.dual

    # ---- files -------------------------------------------------------------------------------------------------------

    def _model(self) -> Model:
        several = [None for _ in self.coef_]
        facts = [self.margin_, self.nu_, self.separable_, getattr(self, "certificate_", several), self.objective_]
        facts = [[value] if self.kind_ == "binary" and value is not several else value for value in facts]
        planes = [Plane(*each) for each in zip(self.coef_, self.intercept_, *facts, strict=True)]
        names = getattr(self, "feature_names_in_", None)
        return model_of(self.kind_, self.classes_, planes, self, names, getattr(self, "class_weight_", None))

    @classmethod
    def _of_model(cls, model: Model) -> MaxMarginClassifier:
        """Return the classifier of a model. If all planes are soft with the same nu, it has that nu for another fit."""
        known = parameters_of(model, [part.name for part in fields(Parameters)])
        if model.options is None and model.kind == "one-vs-rest":
            known["multi_class"] = "ovr"
        found = cls(nu=model.nu, norm=model.norm, intercept=model.intercept_kind, **known)  # type: ignore[arg-type]
        found.class_weight_ = class_weights_of(model)
        found._keep(model.kind, model.class_array(), planes_of(model))
        found._keep_columns(model)
        return found
