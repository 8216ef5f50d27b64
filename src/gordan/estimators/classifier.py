"""`MaxMarginClassifier`: the face that scikit-learn knows; `fitting` has the fitting."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from gordan.arrays import Array, seconds_at_most
from gordan.blas import blas_threads
from gordan.estimators.fitting import Fitting, Outcome, Parameters, Plane, check_parameters, model_of, planes_of
from gordan.estimators.planes import Planes, first_of
from gordan.io.model import Model, decisions


class InseparableWarning(UserWarning):
    """No plane separates the classes (or none was found), so that something else was fitted; or they are barely separable."""


class MaxMarginClassifier(Planes, Parameters):
    """The linear classifier of largest margin, with a certified interval for that margin.

    The margin is γ* = max_{w,b} min_i y_i(x_i·w + b)/‖w‖_q: the distance of the nearest point to the plane, in the units of X.
    There is no C to choose. Where no plane separates, that of least squared hinge loss is fitted instead (C = 1), with a warning
    that names rows to blame; `LinearClassifier` chooses loss and C. Where planes separate, but the fit suggests that they would
    get 1.5 % or more of further rows wrong (an estimate by the span of the support rows), a warning says so.

    Parameters
    ----------
    nu : float, optional
        None for the hard margin, or a number in (0, ν_max]: the share of the weight of the rows that the margin is averaged over,
        as in ν-SVM. ν_max = 2·min(C₊, C₋)/(C₊ + C₋), C± the total weights of the classes (1 without a free intercept). Where the
        soft margin is 0, w = 0 and the heavier class is predicted, with a warning. With None, a norm other than 2 and data that
        no plane separates, ν_max/2 is used; if the reduced hulls meet there too, ν_max.
    norm : float, default 2
        The norm p of feature space, 2 ≤ p ≤ ∞; w is measured in the dual one.
    intercept : {"free", "penalized", "none"}
        "free": x·w + b; "penalized": a constant column 1 is added and counts in the norm of w, as LIBLINEAR does; "none".
    method : str or method, default "auto"
        What finds the plane: "auto", or a method of `gordan.methods`. Once it is within `tol`, the exact finish follows.
    tol : float, default 1e-4
        Relative width of the certified interval above which a ConvergenceWarning is given. Whatever it is, a fit ends with an
        exact solve on the active rows, so `coef_` is good to about 1e-9 unless a limit stopped it.
    max_iter : int, optional
        Rounds at most, for each binary problem.
    time_limit : float, optional
        Seconds at most, for the whole fit. Where no separator is found in a quarter of it (shared by the binary problems), the
        plane of least loss is fitted.
    multi_class : {"ovo", "ovr"}
        With more than two classes, one plane for each pair of classes, or one for each class against the rest. Pairs are
        separable far more often than a class and all others together. Of several labels a row, each has a plane of its own.
    class_weight : dict, "balanced" or None
        Factors of the sample weights, by label. "balanced": inverse to the total weight of the class. Of several labels a row,
        for 0 and 1, and each column is balanced by itself.
    warm_start : bool, default False
        Start from the weights of the last fit, if it had as many rows and the same classes.
    n_jobs : int, optional
        Binary problems to solve at a time (threads).
    device : str, optional
        "cuda" copies X to the GPU once, for all binary problems; "cpu" brings it to the host; None leaves it where it is. Torch
        tensors and CuPy arrays may be passed to `fit`, `predict` and `decision_function`; what these return is in NumPy.
    random_state : int, RandomState or None
        Seed of the order in which rows are visited; None stands for a fixed one.
    verbose : int, default 0
        1 prints a line for each binary problem, 2 also one for each recorded round.
    on_inseparable : {"warn", "raise", "ignore"}
        What to do when no plane separates (and nu is None), or when none of positive soft margin is found: nu is too small.
        "ignore" fits as "warn" does.

    Attributes
    ----------
    coef_ : (k, d) array
        The planes, ‖w‖_q = 1 each unless it is that of least loss: k is 1 for two classes, else the number of classes, of
        pairs (i, j), i < j, in order, or of labels that a row may have several of.
    intercept_ : (k,) array
        Their b: scores x·w + b are signed distances, positive on the side of `classes_[1]`, of the class, of the label, or of j.
    classes_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn. Of several labels a row, `classes_` are the names of the columns of a data frame, or else
        their numbers.
    kind_ : {"binary", "one-vs-rest", "one-vs-one", "multilabel"}
        What the planes separate, as in `gordan.io.Model`.
    n_iter_ : int
        Rounds, or steps of Newton's and interior-point methods; the most over the binary problems.
    nu_ : float or None
        The nu of the fit, None for a hard margin or a loss. A list when multiclass, as are `separable_`, `certificate_`,
        `witness_`, `loss_`, `objective_` and `trace_`. Claims are about single binary problems; that all classes can be separated
        together is not claimed.
    margin_ : (lower, upper), or (k, 2) array when multiclass
        The certified interval for the (soft) margin.
    loss_ : str or None
        "squared_hinge" for a plane of least loss, since no plane separates; one for all classes if one of them against the rest
        needs it.
    objective_ : (lower, upper) or None
        The certified interval for the least value of ½‖w‖² + Σ c_i(1 - z_i)₊², z = y(x·w + b), c the weights, where that was
        minimized.
    gap_ : float, or (k,) array
        (upper - lower)/upper, of the objective where there is one, else of the margin.
    separable_ : bool or None
        Whether a plane separates, proved either way; None where that was not decided, or not asked since nu was given or another
        class needed a loss.
    support_ : array
        The rows of positive weight in any of the problems, in order.
    dual_coef_ : (k, s) array for s support rows
        y_i p_i, of total 1 in absolute value. For norm 2, `dual_coef_ @ X[support_]` is parallel to `coef_`, and its length is
        the margin; where a loss was minimized it is `coef_` itself, nearly.
    certificate_ : Certificate
        Proof of `margin_`, or of `objective_`. `gordan.verify` checks it against X, y; for one class against the rest against
        X, y == class; for a pair against the rows of that pair; for one of several labels against X and its column.
    witness_ : Witness or None
        Rows and integer weights that prove that no plane separates, where that is so.
    trace_ : Trace or None
        The run; None for a plane that was found together with those of other classes, as small ones are.

    Examples
    --------
    >>> from gordan import MaxMarginClassifier
    >>> model = MaxMarginClassifier().fit([[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]], ["no", "no", "yes"])
    >>> model.predict([[2.5, 0.0], [0.5, 0.5]]).tolist(), model.separable_
    (['yes', 'no'], True)
    """

    # ---- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MaxMarginClassifier:
        """Find the plane, or planes, of largest margin.

        X is dense or sparse, one row per example; y has any labels, or is a table of 0 and 1 (booleans; also sparse, or a data
        frame) with a column for each of several labels that a row may have; `sample_weight` one number for each row: a zero
        removes the row, others matter for soft margins only, where k counts as k equal rows. Rows are paired by position: pandas
        objects with the index of X in another order are refused, and an `IndexWarning` is given for other indexes.
        """
        started = time.perf_counter()
        check_parameters(self)
        named = y, sample_weight
        storage, y, classes, which = self._read(X, y, sample_weight)
        busy = self._is_parallel(y, classes)
        fitting = Fitting(
            options=self,
            X=storage,
            y=y,
            classes=classes,
            weights=self._weights(sample_weight, classes, which),
            deadline=started + seconds_at_most(self.time_limit),
            seed=self._seed(),
            threads=1 if busy else None,
        )
        problems = list(fitting.problems())
        starts = self._starts(fitting.kind, classes, storage.n)
        hard, order = fitting.together(problems) if starts is None else ({}, [*range(len(problems))])
        given = [None] * len(problems) if starts is None else starts
        asked = ((k, problems[k], start, hard.get(k)) for k, start in zip(order, given, strict=True))
        if busy:
            with blas_threads(0):  # around all of them: each sets and resets a number that the process has once
                found = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(fitting.outcome)(*each) for each in asked)
            known = dict(zip(order, found, strict=True))
        elif y.ndim == 2:
            known = dict(enumerate(fitting.outcomes_of_labels(problems, [*given], hard)))
        else:
            known = {}
            for each in asked:
                known[each[0]] = outcome = fitting.outcome(*each)
                if fitting.decides_all(outcome):
                    break
        outcomes = fitting.alike(problems, known)
        self._keep(fitting.kind, classes, [outcome.plane for outcome in outcomes])
        self._describe(problems, *named)
        self._keep_runs(outcomes, storage.n)
        for category, told in (
            (InseparableWarning, fitting.inseparable(outcomes)),
            (InseparableWarning, fitting.barely(outcomes)),
            *((UserWarning, remark) for remark in first_of(fitting.remarks(outcomes), storage)),
            (ConvergenceWarning, fitting.unfinished(outcomes)),
        ):
            if told is not None:
                warnings.warn(told, category, stacklevel=2)
        return self

    def _starts(self, kind: str, classes: Array, n: int) -> Iterator[Array] | None:
        """The weights of the last fit for each problem, one at a time, where they can serve again."""
        if not (self.warm_start and hasattr(self, "dual_coef_")):
            return None
        if (self.kind_, *self.shape_fit_) != (kind, n, self.n_features_in_) or not np.array_equal(classes, self.classes_):
            return None
        totals = np.maximum(np.abs(self.dual_coef_).sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return (_spread(p, self.support_, n) for p in np.abs(self.dual_coef_) / totals)

    def _keep(self, kind: str, classes: Array, planes: Sequence[Plane]) -> None:
        """The attributes that a model file has as well."""
        self.kind_ = kind
        self.classes_ = classes
        self.coef_ = np.array([plane.w for plane in planes])
        self.intercept_ = np.array([plane.b for plane in planes])
        for name in ("margin", "gap", "nu", "separable", "certificate", "loss", "objective"):
            values = [getattr(plane, name) for plane in planes]
            if name != "certificate" or None not in values:  # a file may have come without
                several = np.array(values) if name in ("margin", "gap") else values
                setattr(self, f"{name}_", values[0] if kind == "binary" else several)

    def _keep_runs(self, outcomes: Sequence[Outcome], n: int) -> None:
        """The attributes that only a fit has."""
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

    # ---- predicting --------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Signed distances to the plane (two classes) or to each class's or label's plane, as an (n, classes) array.

        For pairs: the votes of each class, ties broken by the sum of its distances squeezed into (-⅓, ⅓).
        """
        distances = self._distances(X)
        return decisions(self.kind_, distances, len(self.classes_))

    # ---- files -------------------------------------------------------------------------------------------------------

    def _model(self) -> Model:
        several = [None for _ in self.coef_]
        facts = [self.margin_, self.nu_, self.separable_, getattr(self, "certificate_", several), self.objective_]
        facts = [[value] if self.kind_ == "binary" and value is not several else value for value in facts]
        planes = [Plane(*each) for each in zip(self.coef_, self.intercept_, *facts, strict=True)]
        return model_of(self.kind_, self.classes_, planes, self, getattr(self, "feature_names_in_", None))

    @classmethod
    def _of_model(cls, model: Model) -> MaxMarginClassifier:
        """The classifier of a model. Where all planes were made soft with one nu, a new fit asks for that."""
        multi_class = "ovo" if model.kind == "one-vs-one" else "ovr"
        found = cls(nu=model.nu, norm=model.norm, intercept=model.intercept_kind, multi_class=multi_class)  # type: ignore[arg-type]
        found._keep(model.kind, model.class_array(), planes_of(model))
        found.n_features_in_ = model.coef.shape[1]
        if model.names is not None:
            found.feature_names_in_ = np.array(model.names, dtype=object)
        return found


def _spread(values: Array, rows: Array, n: int) -> Array:
    """These values at these rows of n, and 0 at the others."""
    spread = np.zeros(n)
    spread[rows] = values
    return spread
