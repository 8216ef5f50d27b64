"""`MaxMarginClassifier`: `maximize_margin` with the manners of scikit-learn."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from gordan.arrays import Array, blas_threads, is_number, positive, vector
from gordan.certificates import Certificate
from gordan.errors import InputError
from gordan.io import Model
from gordan.rows import host, stored
from gordan.rows.device import on_device
from gordan.rows.tensors import is_elsewhere, is_tensor
from gordan.trace import Trace
from gordan.verdicts import MarginResult, Witness, maximize_margin, outward

# The gap to which a fit is brought at the end, whatever `tol`.
FINISH = 1e-9
CHOICES = {"multi_class": ("ovo", "ovr"), "on_inseparable": ("warn", "raise", "ignore")}
KINDS = {"ovr": "one-vs-rest", "ovo": "one-vs-one"}


class InseparableWarning(UserWarning):
    """No plane separates the classes (or none was found), so a soft margin was fitted, or none at all."""


@dataclass(frozen=True, eq=False)
class Binary:
    """One problem with two classes: `labels` for the rows `rows` of X (all if None), `positive` where they are the second."""

    name: str
    X: Any
    labels: Array
    positive: Array
    weights: Array | None
    rows: Array | None

    def storage(self) -> Any:
        """X itself, or a copy of its rows `rows`: made when asked for, so that few are there at a time."""
        return self.X if self.rows is None else self.X.part(self.rows)

    @property
    def totals(self) -> tuple[float, float]:
        """C₊ and C₋."""
        c = np.ones(len(self.positive)) if self.weights is None else self.weights
        return math.fsum(c[self.positive]), math.fsum(c[~self.positive])

    def most(self, intercept: str) -> float:
        """The largest nu: 2·min(C₊, C₋)/(C₊ + C₋) with a free intercept, else 1."""
        return 2 * min(self.totals) / sum(self.totals) if intercept == "free" else 1.0

    def row(self, i: int) -> int:
        """The row of X that is row i here."""
        return i if self.rows is None else int(self.rows[i])


@dataclass(frozen=True, eq=False)
class Plane:
    """What came of one binary problem. `separable` is None where that was not asked or not decided."""

    binary: Binary
    result: MarginResult
    w: Array
    b: float
    separable: bool | None
    witness: Witness | None
    trace: Trace | None
    n_iter: int

    @property
    def settled(self) -> bool:
        """Whether there is nothing left to be found out: the reduced hulls meet, as far as floats can tell."""
        return not self.w.any() or self.result.status == "margin-below-tol"

    @property
    def weights(self) -> Array:
        """y_i p_i over the rows of the problem."""
        p = self.result.p
        signs = np.where(self.binary.positive, 1.0, -1.0)
        return np.zeros(len(signs)) if p is None else np.asarray(signs * p)


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
        What to do when no plane separates (and nu is None), or when nu is so small that the reduced hulls meet.

    Attributes
    ----------
    coef_ : (k, d) array
        The planes, ‖w‖_q = 1 each: k is 1 for two classes, else the number of classes or of pairs (i, j), i < j, in order.
    intercept_ : (k,) array
        Their b: scores x·w + b are signed distances, positive on the side of `classes_[1]`, of the class, or of j.
    classes_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
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
        row, others matter for soft margins only, where k counts as k equal rows.
        """
        started = time.perf_counter()
        tol = positive(self.tol, "tol")
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(map(repr, allowed))}")
        storage, y = self._read(X, y)
        check_classification_targets(y)
        classes, which = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise InputError(f"y has one class only, {classes.tolist()[0]!r}; two are needed")
        weights = self._weights(sample_weight, classes, which)
        problems = list(self._problems(storage, classes, which, weights))
        starts = self._starts(classes, storage.n)
        limit = None if self.time_limit is None else started + positive(self.time_limit, "time_limit")
        seed = self.random_state
        if seed is not None and not is_number(seed):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        busy = len(problems) > 1 and effective_n_jobs(self.n_jobs) > 1

        def solve(k: int) -> Plane:
            threads = 1 if busy else None
            return self._plane(problems[k], tol, limit, seed, threads, None if starts is None else starts[k])

        if busy:
            with blas_threads(0):  # around all of them: each sets and resets a number that the process has once
                planes = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(solve)(k) for k in range(len(problems)))
        else:
            planes = [solve(k) for k in range(len(problems))]
        self._keep(planes, classes, storage.n)
        self._tell(planes, tol)
        return self

    def _read(self, X: Any, y: Any) -> tuple[Any, Array]:
        """X as it is stored, and y; scikit-learn looks at what it can look at: data on the host."""
        if not is_tensor(X) and not is_elsewhere(X):
            X, y = validate_data(self, X, host(y), accept_sparse="csr", dtype="numeric")
            return stored(X, self.device), y
        storage = stored(X, self.device)
        y = column_or_1d(host(y), warn=True)
        if len(y) != storage.n:
            raise InputError(f"X has {storage.n} rows but y has {len(y)} labels")
        self.n_features_in_ = storage.d
        if hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        return storage, y

    def _weights(self, sample_weight: Any, classes: Array, which: Array) -> Array | None:
        """c_i = sample weight × class weight; None where all are 1."""
        if sample_weight is None and self.class_weight is None:
            return None
        n = len(which)
        c = np.ones(n)
        if sample_weight is not None:
            sample_weight = host(sample_weight)
            c = np.full(n, float(sample_weight)) if is_number(sample_weight) else vector(sample_weight, "sample_weight", n).copy()
            bad = ~((c >= 0) & np.isfinite(c))
            if bad.any():
                row = int(np.argmax(bad))
                raise InputError(f"sample_weight[{row}] is {c[row]}; weights must be finite and not negative")
        labels = classes.tolist()
        factors = np.ones(len(classes))
        if isinstance(self.class_weight, Mapping):
            unknown = [label for label in self.class_weight if label not in labels]
            if unknown:
                raise InputError(f"class_weight names {unknown[0]!r}, but the classes are {', '.join(map(repr, labels))}")
            for k, label in enumerate(labels):
                factors[k] = factor = self.class_weight.get(label, 1.0)
                if not (is_number(factor) and 0 <= factor < math.inf):
                    raise InputError(f"class_weight[{label!r}] is {factor!r}; weights must be finite and not negative")
        elif self.class_weight == "balanced":
            totals = np.bincount(which, weights=c, minlength=len(classes))
            factors = np.divide(c.sum(), len(classes) * totals, out=np.zeros(len(classes)), where=totals > 0)
        elif self.class_weight is not None:
            raise InputError(f"class_weight is {self.class_weight!r}; pass 'balanced', a dict from labels to weights, or None")
        c *= factors[which]
        left = np.bincount(which[c > 0], minlength=len(classes))
        if not left.all():
            label = labels[int(np.argmin(left))]
            raise InputError(f"all rows of class {label!r} have weight zero; leave them out, or give them some weight")
        return c

    def _problems(self, storage: Any, classes: Array, which: Array, weights: Array | None) -> Iterator[Binary]:
        """The binary problems, all over one storage of X."""
        labels = classes.tolist()
        if len(classes) == 2:
            yield Binary(f"{labels[1]!r} against {labels[0]!r}", storage, classes[which], which == 1, weights, None)
        elif self.multi_class == "ovr":
            for k, label in enumerate(labels):
                own = which == k
                yield Binary(f"{label!r} against the rest", storage, own, own, weights, None)
        else:
            for i, j in _pairs(len(classes)):
                rows = np.flatnonzero((which == i) | (which == j))
                c = None if weights is None else weights[rows]
                name = f"{labels[j]!r} against {labels[i]!r}"
                yield Binary(name, storage, classes[which[rows]], which[rows] == j, c, rows)

    def _starts(self, classes: Array, n: int) -> list[Array] | None:
        """The weights of the last fit for each problem, where they can serve again."""
        if not (self.warm_start and hasattr(self, "dual_coef_")):
            return None
        if self.shape_fit_ != (n, self.n_features_in_) or not np.array_equal(classes, self.classes_):
            return None
        starts = np.zeros((len(self.dual_coef_), n))
        starts[:, self.support_] = np.abs(self.dual_coef_)
        return list(starts)

    def _plane(
        self, binary: Binary, tol: float, deadline: float | None, seed: int | None, threads: int | None, start: Array | None
    ) -> Plane:
        """The plane of one problem: hard, or soft where that cannot be."""
        if start is not None and binary.rows is not None:
            start = start[binary.rows]

        storage = binary.storage()

        def solve(nu: float | None) -> tuple[MarginResult, MarginResult]:
            return self._solve(binary, storage, nu, tol, deadline, seed, threads, start)

        first, result = solve(self.nu)
        witness, separable = result.witness, None
        if self.nu is None:
            separable = True if result.margin[0] > 0 else False if witness is not None else None
        trace, rounds = first.trace, first.n_iter
        if witness is not None and binary.rows is not None:
            witness = replace(witness, rows=tuple(binary.row(i) for i in witness.rows))
        meet = result.margin[0] <= 0 and not self._stopped(result)
        if meet and self.on_inseparable == "raise":
            raise InputError(self._blame(binary, witness, self.nu) + ". " + self._advice(binary))
        if meet and self.nu is None:
            for share in (0.5, 1.0):
                first, result = solve(share * binary.most(self.intercept))
                trace, rounds = first.trace, rounds + first.n_iter
                if result.margin[0] > 0:
                    break
            meet = result.margin[0] <= 0 and not self._stopped(result)
        w, b = result.w, result.b
        if w is None or b is None or meet:
            more, less = binary.totals
            w, b = np.zeros(storage.d), (more - less) / (more + less)
        plane = Plane(binary, result, w, b, separable, witness, trace, rounds)
        if self.verbose:
            print(f"[MaxMarginClassifier] {binary.name}: {result!r}", flush=True)
        return plane

    def _solve(
        self,
        binary: Binary,
        storage: Any,
        nu: float | None,
        tol: float,
        deadline: float | None,
        seed: int | None,
        threads: int | None,
        start: Array | None,
    ) -> tuple[MarginResult, MarginResult]:
        """The run of the method, and what is left of it after the exact finish."""
        weights = binary.weights
        if nu is None and weights is not None and weights.all():
            weights = None  # they change nothing, and a certificate would carry them

        def run(method: Any, tol: float, start: Any) -> MarginResult:
            return maximize_margin(
                storage,
                binary.labels,
                norm=self.norm,
                nu=nu,
                intercept=self.intercept,
                method=method,
                tol=tol,
                sample_weight=weights,
                max_iter=self.max_iter,
                time_limit=None if deadline is None else max(1e-3, deadline - time.perf_counter()),
                start=start,
                random_state=seed,
                threads=threads,
                callback=_printer(binary.name) if self.verbose > 1 else None,
            )

        try:
            if isinstance(self.method, str) and self.method in ("auto", "double_oracle"):
                result = run(self.method, min(tol, FINISH), start)
                return result, result
            first = run(self.method, tol, start)
            if first.status != "solved" or first.gap <= FINISH:
                return first, first
            finished = run("auto", min(tol, FINISH), first)
            return first, finished if finished.gap < first.gap else first
        except InputError as error:
            if binary.rows is None and binary.labels is not binary.positive:
                raise
            raise InputError(f"{binary.name}: {error}") from None

    def _stopped(self, result: MarginResult) -> bool:
        """Whether a limit that was set ended the run."""
        if result.status in ("time-limit", "interrupted"):
            return True
        return self.max_iter is not None and result.status == "iteration-limit" and result.n_iter >= self.max_iter

    def _keep(self, planes: list[Plane], classes: Array, n: int) -> None:
        """The attributes of a fitted estimator."""
        many = len(classes) > 2
        self._kind = KINDS[self.multi_class] if many else "binary"
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
            "certificate_": [plane.result.claim for plane in planes],
            "witness_": [plane.witness for plane in planes],
            "trace_": [plane.trace for plane in planes],
        }
        for name, values in lists.items():
            setattr(self, name, values if many else values[0])
        dual = np.zeros((len(planes), n))
        for k, plane in enumerate(planes):
            dual[k, slice(None) if plane.binary.rows is None else plane.binary.rows] = plane.weights
        self.support_ = np.flatnonzero(dual.any(axis=0))
        self.dual_coef_ = dual[:, self.support_]

    # ---- warnings ----------------------------------------------------------------------------------------------------

    def _tell(self, planes: list[Plane], tol: float) -> None:
        """One warning for all problems without a separator, one for all that did not converge."""
        blamed = [
            plane
            for plane in planes
            if (plane.result.nu is not None and self.nu is None) or (plane.settled and not plane.w.any())
        ]
        if blamed and self.on_inseparable == "warn":
            worst = "; ".join(self._outcome(plane) for plane in blamed[:3])
            more = f"; and {len(blamed) - 3} more" if len(blamed) > 3 else ""
            warnings.warn(f"{worst}{more}. {self._advice(blamed[0].binary)}", InseparableWarning, stacklevel=3)
        wide = [plane for plane in planes if plane.result.gap > tol and not plane.settled]
        if wide:
            plane = max(wide, key=lambda plane: plane.result.gap)
            lower, upper = outward(*plane.result.margin)
            which = f" of {plane.binary.name}" if len(planes) > 1 else ""
            others = f", as are {len(wide) - 1} others" if len(wide) > 1 else ""
            limit = plane.result.status if self._stopped(plane.result) else "no progress"
            warnings.warn(
                f"the margin{which} is between {lower} and {upper}: wider than tol={tol:g} (gap {plane.result.gap:.2g}{others}) "
                f"after {plane.n_iter} rounds ({limit}). Raise max_iter or time_limit where they are set; else bring the "
                "columns of X to a like size, or raise tol",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _outcome(self, plane: Plane) -> str:
        told = self._blame(plane.binary, plane.witness, self.nu)
        if not plane.w.any():
            heavier = plane.b > 0
            label = plane.binary.labels[plane.binary.positive == heavier][:1].tolist()
            tried = f"with nu = {plane.result.nu:.6g} too; " if self.nu is None else ""
            return f"{told} {tried}w is 0 and the heavier class ({label[0]!r}) is predicted"
        return f"{told}; fitted with nu = {plane.result.nu:.6g}"

    def _blame(self, binary: Binary, witness: Witness | None, nu: float | None) -> str:
        if nu is not None:
            return f"{binary.name}: the reduced hulls of the classes meet at nu = {nu:g}, no plane has a positive soft margin;"
        if witness is None:
            return f"{binary.name}: no separator was found, nor a proof that there is none"
        return f"{binary.name} is not separable: {witness}"

    def _advice(self, binary: Binary) -> str:
        most = binary.most(self.intercept)
        if self.on_inseparable == "raise":
            soft = f", or on_inseparable='warn' to fit softly with nu = {most / 2:.6g}" if self.nu is None else ""
            return f"Pass {'nu' if self.nu is None else 'a larger nu'} (at most {most:.6g}){soft}"
        if self.nu is None:
            return "Pass nu to choose how soft the margin is, or on_inseparable='ignore' if this is expected"
        return f"Pass a larger nu (at most {most:.6g})"

    # ---- predicting --------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Signed distances to the plane (two classes) or to each class's plane, as an (n, classes) array.

        For pairs: the votes of each class, ties broken by the sum of its distances squeezed into (-⅓, ⅓).
        """
        distances = self._distances(X)
        if self._kind == "binary":
            return distances.ravel()
        return self._votes(distances) if self._kind == "one-vs-one" else distances

    def predict(self, X: Any) -> Array:
        """The class of each row."""
        chosen = self._chosen(self._distances(X))
        return np.asarray(self.classes_[chosen])

    def _distances(self, X: Any) -> Array:
        """x·w + b for each row and plane."""
        check_is_fitted(self)
        if is_tensor(X) or is_elsewhere(X):
            storage = on_device(X, None)
            if storage.d != self.n_features_in_:
                raise InputError(
                    f"X has {storage.d} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input"
                )
            return storage.distances(self.coef_, self.intercept_)
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False)
        return np.asarray(safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_)

    def _chosen(self, distances: Array) -> Array:
        """The number of the class, from the distances to the planes."""
        if self._kind == "binary":
            return np.asarray(distances[:, 0] > 0).astype(int)
        return np.asarray(np.argmax(self._votes(distances) if self._kind == "one-vs-one" else distances, axis=1))

    def _votes(self, scores: Array) -> Array:
        votes = np.zeros((len(scores), len(self.classes_)))
        sums = np.zeros_like(votes)
        for k, (i, j) in enumerate(_pairs(len(self.classes_))):
            won = scores[:, k] > 0
            votes[:, i] += ~won
            votes[:, j] += won
            sums[:, i] -= scores[:, k]
            sums[:, j] += scores[:, k]
        return np.asarray(votes + sums / (3 * (np.abs(sums) + 1)))

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what predicts, with its certificates, to a model file: no pickle, checksummed, in one step."""
        check_is_fitted(self)
        self._model().save(path)

    def _model(self) -> Model:
        from gordan import __version__

        many = len(self.classes_) > 2
        names = getattr(self, "feature_names_in_", None)
        certificates = self.certificate_ if many else [self.certificate_]
        return Model(
            classes=tuple(self.classes_.tolist()),
            coef=self.coef_,
            intercept=self.intercept_,
            kind=self._kind,
            margins=np.array(self.margin_).reshape(-1, 2),
            norm=float(self.norm),
            nu=None if self.nu is None else float(self.nu),
            intercept_kind=self.intercept,
            version=__version__,
            names=None if names is None else tuple(str(name) for name in names),
            certificates=tuple(certificate.to_json() for certificate in certificates),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MaxMarginClassifier:
        """The classifier in a model file. It predicts as the saved one did; rows and traces of the fit are not in the file."""
        return cls._of_model(Model.load(path))

    @classmethod
    def _of_model(cls, model: Model) -> MaxMarginClassifier:
        multi_class = "ovo" if model.kind == "one-vs-one" else "ovr"
        found = cls(nu=model.nu, norm=model.norm, intercept=model.intercept_kind, multi_class=multi_class)  # type: ignore[arg-type]
        many = model.kind != "binary"
        found._kind = model.kind
        found.classes_ = np.array(model.classes)
        found.coef_, found.intercept_ = model.coef, model.intercept
        found.n_features_in_ = model.coef.shape[1]
        if model.names is not None:
            found.feature_names_in_ = np.array(model.names, dtype=object)
        lower, upper = model.margins.T
        gaps = np.where(np.isinf(upper), 1.0, np.divide(upper - lower, upper, out=np.zeros(len(upper)), where=upper > 0))
        found.margin_ = model.margins if many else (float(lower[0]), float(upper[0]))
        found.gap_ = gaps if many else float(gaps[0])
        if model.certificates is not None:
            certificates = [Certificate.from_json(text) for text in model.certificates]
            found.certificate_ = certificates if many else certificates[0]
            nus = [certificate.nu for certificate in certificates]
            found.nu_ = nus if many else nus[0]
        return found


def _pairs(count: int) -> list[tuple[int, int]]:
    """(0, 1), (0, 2), …, (1, 2), …"""
    return [(i, j) for i in range(count) for j in range(i + 1, count)]


def _printer(name: str) -> Any:
    def show(moment: Any) -> None:
        lower, upper = outward(max(0.0, moment.lower), moment.upper)
        print(
            f"[MaxMarginClassifier] {name}: round {moment.t}, {moment.passes:.1f} passes, margin in {lower}..{upper}", flush=True
        )

    return show
