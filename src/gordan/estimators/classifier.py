"""`MaxMarginClassifier`: the face that scikit-learn knows; `planes` has the fitting."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from gordan.arrays import Array, is_number, misaligned, positive, seconds_at_most
from gordan.blas import blas_threads
from gordan.certificates import Certificate
from gordan.certificates.problem import read_labels, require_labels
from gordan.errors import InputError
from gordan.estimators.planes import Fitting, Plane
from gordan.intercepts import Intercept
from gordan.io.model import Model, chosen, decisions
from gordan.rows import available, computed, host, is_lazy, is_on_device, is_tensor, require_finite, stored
from gordan.verdicts import outward
from gordan.verdicts.multiclass import binary_problems, model_of
from gordan.verdicts.weights import row_weights

CHOICES = {"multi_class": ("ovo", "ovr"), "on_inseparable": ("warn", "raise", "ignore")}
# scikit-learn's word for it, and ours.
KINDS = {"ovr": "one-vs-rest", "ovo": "one-vs-one"}


class InseparableWarning(UserWarning):
    """No plane separates the classes (or none was found), so a soft margin was fitted, or none at all."""


class IndexWarning(UserWarning):
    """X and y, or the weights, are paired by position, and their pandas indexes differ."""


class MaxMarginClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The linear classifier of largest margin, with a certified interval for that margin.

    The margin is γ* = max_{w,b} min_i y_i(x_i·w + b)/‖w‖_q: the distance of the nearest point to the plane, in the units of X.
    There is no C to choose. Where no plane separates, the margin is made soft (`nu`), with a warning that names rows to blame.

    Parameters
    ----------
    nu : float, optional
        None for the hard margin, or a number in (0, ν_max]: the share of the weight of the rows that the margin is averaged over,
        as in ν-SVM. ν_max = 2·min(C₊, C₋)/(C₊ + C₋), C± the total weights of the classes (1 without a free intercept). With None
        and data that no plane separates, ν_max/2 is used; if the reduced hulls meet there too, ν_max; if even there, w = 0
        and the heavier class is predicted.
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
        Seconds at most, for the whole fit.
    multi_class : {"ovo", "ovr"}
        With more than two classes, one plane for each pair of classes, or one for each class against the rest. Pairs are
        separable far more often than a class and all others together.
    class_weight : dict, "balanced" or None
        Factors of the sample weights, by label. "balanced": inverse to the total weight of the class.
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

    Attributes
    ----------
    coef_ : (k, d) array
        The planes, ‖w‖_q = 1 each: k is 1 for two classes, else the number of classes or of pairs (i, j), i < j, in order.
    intercept_ : (k,) array
        Their b: scores x·w + b are signed distances, positive on the side of `classes_[1]`, of the class, or of j.
    classes_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    kind_ : {"binary", "one-vs-rest", "one-vs-one"}
        What the planes separate, as in `gordan.io.Model`.
    n_iter_ : int
        Rounds; the most over the binary problems.
    nu_ : float or None
        The nu of the fit, None for a hard margin. A list when multiclass, as are `separable_`, `certificate_`, `witness_` and
        `trace_`. Claims are about single binary problems; that all classes can be separated together is not claimed.
    margin_ : (lower, upper), or (k, 2) array when multiclass
        The certified interval for the (soft) margin.
    gap_ : float, or (k,) array
        (upper - lower)/upper.
    separable_ : bool or None
        Whether a plane separates, proved either way; None where that was not decided, or not asked since nu was given.
    support_ : array
        The rows of positive weight in any of the problems, in order.
    dual_coef_ : (k, s) array for s support rows
        y_i p_i, of total 1 in absolute value. For norm 2, `dual_coef_ @ X[support_]` is parallel to `coef_`, and its length is
        the margin.
    certificate_ : Certificate
        Proof of `margin_`. `gordan.verify` checks it against X, y; for one class against the rest against X, y == class; for a
        pair against the rows of that pair.
    witness_ : Witness or None
        Rows and integer weights that prove that no plane separates, where that is so.
    trace_ : Trace or None
        The run.

    Examples
    --------
    >>> from gordan import MaxMarginClassifier
    >>> model = MaxMarginClassifier().fit([[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]], ["no", "no", "yes"])
    >>> model.predict([[2.5, 0.0], [0.5, 0.5]]).tolist(), model.separable_
    (['yes', 'no'], True)
    """

    def __init__(
        self,
        *,
        nu: float | None = None,
        norm: float = 2,
        intercept: Literal["free", "penalized", "none"] = "free",
        method: Any = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        device: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        on_inseparable: Literal["warn", "raise", "ignore"] = "warn",
    ) -> None:
        self.nu = nu
        self.norm = norm
        self.intercept = intercept
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.on_inseparable = on_inseparable

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MaxMarginClassifier:
        """Find the plane, or planes, of largest margin.

        X is dense or sparse, one row per example; y has any labels; `sample_weight` one number for each row: a zero removes the
        row, others matter for soft margins only, where k counts as k equal rows. Rows are paired by position: pandas objects
        with the index of X in another order are refused, and an `IndexWarning` is given for other indexes.
        """
        started = time.perf_counter()
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(map(repr, allowed))}")
        if not isinstance(self.verbose, (int, np.integer)):  # bool is one
            raise InputError(f"verbose is {self.verbose!r}; pass 0, 1 or 2")
        tol = positive(self.tol, "tol")
        storage, y, classes, which = self._read(X, y, sample_weight)
        if len(classes) < 2:
            raise InputError(f"y has one class only, {classes.tolist()[0]!r}; two are needed")
        kind = KINDS[self.multi_class] if len(classes) > 2 else "binary"
        weights = row_weights(sample_weight, self.class_weight, classes.tolist(), which)
        problems = list(binary_problems(kind, y, classes.tolist(), weights))
        starts: Iterable[Array | None] = self._starts(kind, classes, storage.n) or [None for _ in problems]
        seed = self.random_state
        if seed is not None and not is_number(seed):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        busy = len(problems) > 1 and effective_n_jobs(self.n_jobs) > 1
        fitting = Fitting(
            X=storage,
            nu=self.nu,
            norm=self.norm,
            intercept=Intercept.of(self.intercept),
            method=self.method,
            tol=tol,
            max_iter=self.max_iter,
            deadline=started + seconds_at_most(self.time_limit),
            random_state=seed,
            threads=1 if busy else None,
            verbose=self.verbose,
            on_inseparable=self.on_inseparable,
        )
        if busy:
            with blas_threads(0):  # around all of them: each sets and resets a number that the process has once
                tasks = (delayed(fitting.plane)(*each) for each in zip(problems, starts, strict=True))
                planes = Parallel(n_jobs=self.n_jobs, prefer="threads")(tasks)
        else:
            planes = [fitting.plane(*each) for each in zip(problems, starts, strict=True)]
        self._keep(planes, kind, classes, storage.n)
        self._warn(planes, fitting)
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array, Array]:
        """X as it is stored, y, the classes in order, and which of them each row has."""
        X, y = computed(X) if is_lazy(X) else X, host(y)
        storage = self._stored(X, y, self.device)
        validate_data(self, X, y, skip_check_array=True)
        require_finite(storage)
        labels, which = read_labels(y, storage.n)
        _check_aligned(X, y, sample_weight, stacklevel=4)
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f" and np.isinf(y).any():  # scikit-learn takes no such label
            row = int(np.argmax(np.isinf(y)))
            raise InputError(f"y[{row}] is {y[row]}; pass finite numbers or text for labels")
        check_classification_targets(y)
        classes = np.unique(y)
        require_labels(classes)
        if len(classes) != len(labels):
            raise InputError("y has labels that differ and that NumPy makes equal; use text for labels")
        return storage, y, classes, which

    def _stored(self, X: Any, y: Any, device: str | None) -> Any:
        """X read as the functions read it: exactly or not at all. What scikit-learn refuses, too, it refuses in its own words."""
        try:
            return stored(X, device)
        except InputError:
            if not is_tensor(X) and not is_on_device(X):
                validate_data(self, X, y, accept_sparse="csr", dtype="numeric")
            raise

    def _starts(self, kind: str, classes: Array, n: int) -> Iterator[Array] | None:
        """The weights of the last fit for each problem, one at a time, where they can serve again."""
        if not (self.warm_start and hasattr(self, "dual_coef_")):
            return None
        if (self.kind_, *self.shape_fit_) != (kind, n, self.n_features_in_) or not np.array_equal(classes, self.classes_):
            return None
        return (_spread(np.abs(dual), self.support_, n) for dual in self.dual_coef_)

    def _keep(self, planes: list[Plane], kind: str, classes: Array, n: int) -> None:
        """The attributes of a fitted estimator."""
        many = kind != "binary"
        self.kind_ = kind
        self.classes_ = classes
        self.shape_fit_ = (n, self.n_features_in_)
        self.coef_ = np.array([plane.w for plane in planes])
        self.intercept_ = np.array([plane.b for plane in planes])
        self.n_iter_ = max(plane.n_iter for plane in planes)
        margins = [plane.result.margin for plane in planes]
        self.margin_ = np.array(margins) if many else margins[0]
        self.gap_ = np.array([plane.result.gap for plane in planes]) if many else planes[0].result.gap
        lists: dict[str, list[Any]] = {
            "nu_": [plane.result.nu for plane in planes],
            "separable_": [plane.separable for plane in planes],
            "certificate_": [plane.result.bare_certificate for plane in planes],
            "witness_": [plane.witness for plane in planes],
            "trace_": [plane.trace for plane in planes],
        }
        for name, values in lists.items():
            setattr(self, name, values if many else values[0])
        used = np.zeros(n, dtype=bool)
        for plane in planes:
            support = np.flatnonzero(plane.weights)
            used[support if plane.binary.rows is None else plane.binary.rows[support]] = True
        self.support_ = np.flatnonzero(used)
        self.dual_coef_ = np.empty((len(planes), len(self.support_)))
        for k, plane in enumerate(planes):  # one vector over all rows at a time
            rows = plane.binary.rows
            weights = plane.weights if rows is None else _spread(plane.weights, rows, n)
            self.dual_coef_[k] = weights[self.support_]

    def _warn(self, planes: list[Plane], fitting: Fitting) -> None:
        """One warning for all problems without a separator, one for all that did not converge."""
        blamed = [
            plane
            for plane in planes
            if (plane.result.nu is not None and self.nu is None) or (plane.settled and not plane.w.any())
        ]
        if blamed and self.on_inseparable == "warn":
            worst = "; ".join(fitting.outcome(plane) for plane in blamed[:3])
            more = f"; and {len(blamed) - 3} more" if len(blamed) > 3 else ""
            warnings.warn(f"{worst}{more}. {fitting.advice(blamed[0].binary)}", InseparableWarning, stacklevel=3)
        wide = [plane for plane in planes if plane.result.gap > fitting.tol and not plane.settled]
        if wide:
            plane = max(wide, key=lambda plane: plane.result.gap)
            lower, upper = outward(*plane.result.margin)
            which = f" of {plane.binary.name}" if len(planes) > 1 else ""
            others = f", as are {len(wide) - 1} others" if len(wide) > 1 else ""
            limit = plane.result.status
            warnings.warn(
                f"the margin{which} is between {lower} and {upper}: wider than tol={fitting.tol:g} (gap {plane.result.gap:.2g}"
                f"{others}) after {plane.n_iter} rounds ({limit}). Raise max_iter or time_limit where they are set; "
                "else bring the columns of X to a like size, or raise tol",
                ConvergenceWarning,
                stacklevel=3,
            )

    # ---- predicting --------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Signed distances to the plane (two classes) or to each class's plane, as an (n, classes) array.

        For pairs: the votes of each class, ties broken by the sum of its distances squeezed into (-⅓, ⅓).
        """
        distances = self._distances(X)
        return decisions(self.kind_, distances, len(self.classes_))

    def predict(self, X: Any) -> Array:
        """The class of each row."""
        distances = self._distances(X)
        return np.asarray(self.classes_[chosen(self.kind_, distances, len(self.classes_))])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows (of their weight) whose class is predicted."""
        _check_aligned(X, y, sample_weight, stacklevel=3)
        return float(super().score(X, y, sample_weight=sample_weight))

    def _distances(self, X: Any) -> Array:
        """x·w + b for each row and plane."""
        check_is_fitted(self)
        X = computed(X) if is_lazy(X) else X
        storage = self._stored(X, "no_validation", None)
        try:
            validate_data(self, X, skip_check_array=True, reset=False)
        except ValueError as error:  # other columns than those of the fit
            raise InputError(str(error)) from None
        with np.errstate(over="ignore", invalid="ignore"):
            signs = storage.place(np.ones(storage.n, np.int8), "signs")
            distances: Array = storage.fetch(storage.scores(self.coef_.T, self.intercept_, signs, available()))
            if not math.isfinite(np.sum(distances)):  # as NaN and infinity in X make it
                require_finite(storage)
        return distances

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what predicts, with its certificates, to a model file: no pickle, checksummed, in one step."""
        check_is_fitted(self)
        self._model().save(path)

    def _model(self) -> Model:
        one = self.kind_ == "binary"
        certificates = getattr(self, "certificate_", None)  # a file may have come without
        return model_of(
            self.kind_,
            self.classes_,
            zip(self.coef_, self.intercept_, np.reshape(self.margin_, (-1, 2)), [self.nu_] if one else self.nu_, strict=True),
            [certificates] if one and certificates is not None else certificates,
            norm=self.norm,
            nu=self.nu,
            intercept=self.intercept,
            names=getattr(self, "feature_names_in_", None),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MaxMarginClassifier:
        """The classifier in a model file. It predicts as the saved one did; rows and traces of the fit are not in the file.

        `nu` is that of the file (see `gordan.io.Model`): where all planes were made soft with one nu, a new fit asks for it.
        """
        return cls._of_model(Model.load(path))

    @classmethod
    def _of_model(cls, model: Model) -> MaxMarginClassifier:
        multi_class = "ovo" if model.kind == "one-vs-one" else "ovr"
        found = cls(nu=model.nu, norm=model.norm, intercept=model.intercept_kind, multi_class=multi_class)  # type: ignore[arg-type]
        many = model.kind != "binary"
        found.kind_ = model.kind
        found.classes_ = model.class_array()
        found.coef_, found.intercept_ = model.coef, model.intercept
        found.n_features_in_ = model.coef.shape[1]
        if model.names is not None:
            found.feature_names_in_ = np.array(model.names, dtype=object)
        lower, upper = model.margins.T
        gaps = np.where(np.isinf(upper), 1.0, np.divide(upper - lower, upper, out=np.zeros(len(upper)), where=upper > 0))
        found.margin_ = model.margins if many else (float(lower[0]), float(upper[0]))
        found.gap_ = gaps if many else float(gaps[0])
        nus = [model.nu for _ in model.coef]
        if model.certificates is not None:
            certificates = [Certificate.from_json(text) for text in model.certificates]
            found.certificate_ = certificates if many else certificates[0]
            nus = [certificate.nu for certificate in certificates]
        found.nu_ = nus if many else nus[0]
        return found


def _spread(values: Array, rows: Array, n: int) -> Array:
    """These values at these rows of n, and 0 at the others."""
    spread = np.zeros(n)
    spread[rows] = values
    return spread


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
