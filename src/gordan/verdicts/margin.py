"""`maximize_margin`: the separator of largest margin, with a certified interval for that margin."""

from __future__ import annotations

import html
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gordan import dynamics, methods
from gordan.arrays import Array, blas_threads, is_number, positive, vector, whole_number
from gordan.certificates import Certificate
from gordan.certificates.bounds import Products, exact_sum, reaches
from gordan.certificates.problem import Problem, check_intercept
from gordan.certificates.verify import check, lower_bound, upper_bound
from gordan.errors import InputError
from gordan.geometry import Simplex, dual_exponent
from gordan.geometry import norm as norm_of
from gordan.methods import Method
from gordan.research import SMALLEST_RADIUS, log_spaced, starting_weights
from gordan.rows import Rows
from gordan.solve.double_oracle import double_oracle
from gordan.trace import Moment, Trace
from gordan.verdicts.separate import Trial
from gordan.verdicts.telling import Witness, outward

Status = Literal["solved", "not-separable", "margin-below-tol", "iteration-limit", "time-limit", "interrupted"]

# Rounds without a positive margin after which it is first asked whether there can be one.
DOUBT = 4
# Of the tolerance, what the float bracket is brought to: the certified one is a little wider.
SHARE = 0.9
ROUNDS = {"double_oracle": 1000}
MOST_ROUNDS = 100_000
# The largest nu is a quotient: one that is above it by so little, relatively, is taken for it.
NU_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class MarginResult:
    """What `maximize_margin` found and proved.

    `margin` is a certified interval (lower, upper) for γ*, in the units of X and the norm asked for; `gap` its relative width.
    `w`, `b` is the best separator found, ‖w‖_q = 1 up to rounding, so that scores x·w + b are signed distances; `p` the weights
    over the rows behind `upper`, of total 1. w and p are None where nothing was found. `status` is

        solved             gap ≤ tol
        not-separable      no plane separates: `witness` proves it, margin is (0, 0)
        margin-below-tol   upper ≤ tol · max‖x_i‖, and no positive margin was found
        iteration-limit, time-limit, interrupted   what was proved by then
    """

    status: Status
    w: Array | None
    b: float | None
    p: Array | None
    margin: tuple[float, float]
    witness: Witness | None
    norm: float
    nu: float | None
    intercept: str
    n_iter: int
    passes: float
    seconds: float
    trace: Trace | None = field(repr=False)
    _certificate: Certificate = field(repr=False)
    _problem: Problem = field(repr=False)

    @property
    def gap(self) -> float:
        """(upper - lower)/upper; 0 if upper is 0."""
        lower, upper = self.margin
        if upper == 0:
            return 0.0
        return 1.0 if math.isinf(upper) else (upper - lower) / upper

    @property
    def claim(self) -> Certificate:
        """The certificate without the hash of the data: at no cost, and without holding on to X."""
        return self._certificate

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate, bound to the data by its hash (computed on first access)."""
        return replace(self._certificate, data_hash=self._problem.hash(self._certificate.intercept))

    def __repr__(self) -> str:
        lower, upper = outward(*self.margin)
        soft = "" if self.nu is None else f" (soft, nu = {self.nu:g})"
        effort = f"{self.n_iter} rounds, {self.passes:.3g} passes, {self.seconds:.2g} s"
        if self.status == "not-separable":
            return f"not separable: {self.witness} (proved)"
        if self.status == "solved":
            return f"solved: the largest margin{soft} is between {lower} and {upper} (proved; {effort})"
        if self.status == "margin-below-tol":
            return f"margin below tolerance: no margin{soft} exceeds {upper} (proved; {effort})"
        return f"stopped ({self.status}): the largest margin{soft} is between {lower} and {upper} (proved; {effort})"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"


def maximize_margin(
    X: Any,
    y: Any,
    *,
    norm: float = 2,
    nu: float | None = None,
    intercept: str = "free",
    method: Any = "auto",
    tol: float = 1e-4,
    sample_weight: Any = None,
    class_weight: Mapping[Any, float] | str | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    start: MarginResult | Array | None = None,
    random_state: Any = None,
    threads: int | None = None,
    callback: Callable[[Moment], object] | None = None,
) -> MarginResult:
    """The w, b that put the nearest point as far from the plane as possible, and a proof of how far that can be.

    The margin is γ* = max_{w,b} min_i y_i(x_i·w + b)/‖w‖_q: the distance, in the norm p, of the nearest point to the plane
    (1/p + 1/q = 1). With `nu` the nearest points may be on the wrong side: their share of the weight is averaged over.

    Parameters
    ----------
    X, y
        data; X dense or sparse with exact values, y two labels of any kind.
    norm
        the norm p of feature space, 2 ≤ p ≤ ∞ (∞: w is measured in the 1-norm, and is sparse).
    nu
        None for the hard margin, or a number in (0, 1]: p_i ≤ c_i/(nu·Σc), c the weights. The larger, the softer.
    intercept
        "free" (x·w + b, b costs nothing), "penalized" (a constant 1 is a further column; margin that of (x, 1), as LIBLINEAR
        does) or "none".
    method
        "auto", the name of a registered method, or a method with options such as
        `gordan.methods.smooth_perceptron(eta=0.5)`.
    tol
        relative width of the certified bracket to stop at.
    sample_weight, class_weight
        weights c_i = sample weight × class weight ("balanced": n/(2·count)). Without nu positive ones change nothing; a zero
        weight removes the row.
    max_iter, time_limit
        rounds and seconds at most.
    start
        an earlier result to start from, or its p.
    random_state
        seed of the order in which rows are visited (an integer, or None).
    threads
        how many threads a pass may use; all cores if None.
    callback
        called with each recorded `Moment`; something true stops the run.

    Examples
    --------
    >>> import gordan
    >>> gordan.maximize_margin([[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]], [0, 0, 1]).status
    'solved'
    """
    check_intercept(intercept)
    norm, tol = _norm(norm), positive(tol, "tol")
    limit = math.inf if time_limit is None else positive(time_limit, "time_limit")
    if max_iter is not None:
        max_iter = whole_number(max_iter, "max_iter")
    if callback is not None and not callable(callback):
        raise InputError(f"callback is {callback!r}; pass a function of one moment, or None")
    started = time.perf_counter()
    problem = Problem.of(X, y)
    weights = _weights(problem, sample_weight, class_weight)
    nu = _feasible(nu, problem, weights, intercept)
    run = _Run(
        problem=problem,
        task=Task(norm, nu, intercept, weights),
        method=_method(method, norm, problem.X.d, random_state),
        tol=tol,
        max_iter=max_iter,
        deadline=started + limit,
        start=start,
        threads=threads,
        callback=callback,
        started=started,
    )
    with blas_threads(problem.storage.entries):
        return run.result()


@dataclass(frozen=True, eq=False)
class Task:
    """Which margin is meant. `weights` are c_i, or None where they are all equal."""

    norm: float
    nu: float | None
    intercept: str
    weights: Array | None

    def lower(self, problem: Problem, w: Array, b: float) -> float:
        """What w proves the margin to be at least."""
        return lower_bound(
            problem, Products.of(problem.X, w), problem.signs, w, b, self.norm, self.nu, self.weights, self.intercept
        )

    def upper(self, problem: Problem, p: Array) -> float:
        """What p proves it to be at most."""
        return upper_bound(problem, problem.signs, p, self.norm, self.nu, self.weights, self.intercept)


@dataclass(eq=False)
class _Run:
    """One call of `maximize_margin`: play until the float bracket is narrow enough, then prove it."""

    problem: Problem
    task: Task
    method: Method
    tol: float
    max_iter: int | None
    deadline: float
    start: MarginResult | Array | None
    threads: int | None
    callback: Callable[[Moment], object] | None
    started: float
    witness: Witness | None = None
    proof: Certificate | None = None
    separated: bool = False
    separator: tuple[Array, float] | None = None

    def result(self) -> MarginResult:
        """Play, and prove what was found."""
        storage, signs = self.problem.storage, self.problem.signs
        weights = self.task.weights
        self.kept = np.arange(self.problem.X.n)
        if weights is not None and (weights == 0).any():
            self.kept = np.flatnonzero(weights)
            storage, signs, weights = storage.take(self.kept), signs[self.kept], weights[self.kept]
        raw = Rows(storage, signs, constant=self.task.intercept == "penalized", threads=self.threads)
        self.R = raw.radius(self.task.norm)
        if self.R > 0 and not SMALLEST_RADIUS <= self.R <= 1 / SMALLEST_RADIUS:
            raise InputError(f"the largest row has norm {self.R:.3g}; multiply X by a power of two so that it is near 1")
        rows = raw.scaled(1 / self.R) if self.R > 0 else raw
        p_set = Simplex(
            rows.n,
            caps=None if self.task.nu is None else _caps(weights, rows.n, self.task.nu),
            halves=(signs < 0) if self.task.intercept == "free" else None,
        )
        p0 = starting_weights(p_set, self._start(p_set))
        form = self.method.build(rows, p_set, p0)
        rounds = ROUNDS.get(self.method.name, MOST_ROUNDS) if self.max_iter is None else self.max_iter
        trace = dynamics.run(
            form,
            rounds,
            record=range(1, rounds + 1) if self.method.name in ROUNDS else log_spaced(rounds),
            scale=self.R if self.R > 0 else 1.0,
            bound=self.method.guarantee.gap,
            time_limit=None if math.isinf(self.deadline) else max(1e-3, self.deadline - time.perf_counter()),
            callback=self._look,
            name=self.method.name,
            form_name=self.method.form,
        )
        passes = raw.passes + (rows.passes if rows is not raw else 0.0)
        return self._proved(trace, signs, p_set, passes)

    def _start(self, p_set: Simplex) -> Array | None:
        """p of the earlier result, mixed with the centre: a start must be positive, and under the caps of this problem."""
        found = self.start.p if isinstance(self.start, MarginResult) else self.start
        if found is None:
            return None
        if np.shape(found) != (self.problem.X.n,):
            raise InputError(f"start is for {len(found)} rows, but X has {self.problem.X.n}")
        p = np.maximum(vector(found, "start", self.problem.X.n)[self.kept], 0.0)
        for members in p_set.members:
            total = float(p[members].sum())
            p[members] = p[members] * (p_set.mass / total) if 0 < total < math.inf else p_set.centre[members]
        share, towards = 0.99, p - p_set.centre
        if p_set.caps is not None:
            up = towards > 0
            share = min(share, float(np.min((p_set.caps - p_set.centre)[up] / towards[up], initial=share)))
        return np.asarray(p_set.centre + max(0.0, share) * towards)

    def _look(self, moment: Moment) -> bool:
        """At a recorded round: whether to stop."""
        if self.callback is not None and self.callback(moment):
            self.stopped = True
            return True
        if moment.lower > 0:
            return moment.gap <= SHARE * self.tol
        if self.task.nu is not None:
            return moment.upper <= SHARE * self.tol * self.R
        if self.separated or moment.t < DOUBT:
            return moment.upper == 0
        return self._not_separable()

    stopped = False

    def _not_separable(self) -> bool:
        """Ask for a verdict once: a witness ends the run."""
        self.separated = True
        trial = Trial(self._kept_problem(), self.task.intercept, self.started)
        trial.decide(self.deadline)
        if trial.proof is not None and trial.proof.kind == "separator":
            self.separator = np.array(trial.proof.w), float(trial.proof.b or 0.0)
        if trial.proof is None or trial.proof.kind != "witness":
            return False
        rows = tuple(int(self.kept[i]) for i in trial.proof.rows)
        self.proof = replace(trial.proof, rows=rows, shape=(self.problem.X.n, self.problem.X.d))
        self.witness = Witness(rows, tuple(int(weight) for weight in trial.proof.weights))
        return True

    def _kept_problem(self) -> Problem:
        if len(self.kept) == self.problem.X.n:
            return self.problem
        storage = self.problem.storage.take(self.kept)
        return replace(
            self.problem,
            X=replace(self.problem.X, n=storage.n, arrays=storage.arrays),
            signs=self.problem.signs[self.kept],
            storage=storage,
        )

    def _proved(self, trace: Trace, signs: Array, p_set: Simplex, passes: float) -> MarginResult:
        """The result with a bracket that the checker accepts."""
        task, problem = self.task, self.problem
        if (
            self.witness is None
            and task.nu is None
            and trace.lower[-1] <= 0
            and not self.separated
            and trace.status != "interrupted"
        ):
            self._not_separable()
        w, b, p, lower, upper = None, None, None, 0.0, math.inf
        if self.witness is None:
            w, b = self._plane(trace.w_best, signs, p_set)
            lower = 0.0 if w is None else task.lower(problem, w, b or 0.0)
            if lower <= 0 and self.separator is not None:  # a margin too small to be played for, but a margin
                w, b = self._unit(*self.separator)
                lower = task.lower(problem, w, b)
            p = self._weights_behind(trace, p_set)
            upper = task.upper(problem, p)
            self.proof = self._certificate(w, b, p, lower, upper)
        else:
            upper = 0.0
        assert self.proof is not None
        accepted = check(self.proof, problem)
        if not accepted:  # never seen; if ever, nothing is claimed but what needs no proof
            lower, upper = 0.0, math.inf
            self.proof = self._certificate(None, None, None, lower, upper)
        return MarginResult(
            status=self._status(trace, lower, upper),
            w=w,
            b=b,
            p=None if p is None else p / p.sum(),
            margin=(lower, upper),
            witness=self.witness,
            norm=task.norm,
            nu=task.nu,
            intercept=task.intercept,
            n_iter=int(trace.t[-1]),
            passes=passes,
            seconds=time.perf_counter() - self.started,
            trace=trace,
            _certificate=self.proof,
            _problem=problem,
        )

    def _status(self, trace: Trace, lower: float, upper: float) -> Status:
        if self.witness is not None:
            return "not-separable"
        if upper > 0 and (upper - lower) / upper <= self.tol:
            return "solved"
        if lower <= 0 and upper <= self.tol * self.R:
            return "margin-below-tol"
        if trace.status == "interrupted" or self.stopped:
            return "interrupted"
        return "time-limit" if time.perf_counter() >= self.deadline else "iteration-limit"

    def _plane(self, v: Array, signs: Array, p_set: Simplex) -> tuple[Array | None, float | None]:
        """w of length 1 and b from the vector of the game."""
        length = norm_of(v, dual_exponent(self.task.norm))
        if not 0 < length < math.inf:
            return None, None
        v = v / length
        if self.task.intercept == "none":
            return v, 0.0
        if self.task.intercept == "penalized":
            return v[:-1], float(v[-1])
        scores = Rows(self.problem.storage, np.ones_like(self.problem.signs)).scores(v)[self.kept]
        ends = []
        for side in (1, -1):
            own = np.flatnonzero(signs == side)
            order = own[np.argsort(side * scores[own], kind="stable")]
            # the row where the lowest (highest) scores reach total cap ½: the first one without caps
            caps = np.full(len(order), 1.0) if p_set.caps is None else p_set.caps[order]
            reached = int(np.searchsorted(np.cumsum(caps), 0.5 * (1 - 1e-12)))
            ends.append(float(scores[order[min(reached, len(order) - 1)]]))
        return v, -(ends[0] / 2 + ends[1] / 2)

    def _unit(self, w: Array, b: float) -> tuple[Array, float]:
        """w and b with ‖w‖_q = 1, or ‖(w, b)‖_q where the intercept is penalized."""
        vector = np.append(w, b) if self.task.intercept == "penalized" else w
        length = norm_of(vector, dual_exponent(self.task.norm))
        return w / length, b / length

    def _weights_behind(self, trace: Trace, p_set: Simplex) -> Array:
        """p over all rows, as the certificate wants it: with nu p_i ≤ c_i and a mass of νΣc, else of any size."""
        found = p_set.centre if trace.p_best is None else trace.p_best
        p = np.zeros(self.problem.X.n)
        if self.task.nu is None:
            p[self.kept] = found
            return p
        c = np.ones(self.problem.X.n) if self.task.weights is None else self.task.weights
        c = c[self.kept]
        total = self.task.nu * math.fsum(c)
        q = np.minimum(found * total, c)
        for members in p_set.members:
            if not reaches(q[members], self.task.nu, c, len(p_set.members)):
                q[members] = self._filled(q[members], c[members], total * p_set.mass * (1 + 1e-14), members, trace)
        p[self.kept] = q
        return p

    def _filled(self, q: Array, c: Array, needed: float, members: Array | slice, trace: Trace) -> Array:
        """q ≤ c with what is missing to that mass, by rounding, added: to rows that have weight, or to the next in line."""
        for _ in range(50):
            missing = needed - math.fsum(q)
            if missing <= 0:
                break
            room = np.where(q > 0, c - q, 0.0)
            if not room.any():
                idle = np.flatnonzero(q < c)
                if not len(idle):
                    break
                rows = Rows(self.problem.storage, self.problem.signs, constant=self.task.intercept == "penalized")
                room[idle[np.argmin(rows.scores(trace.w_best)[self.kept][members][idle])]] = 1.0
                room = np.minimum(room, c - q)
            q = np.minimum(q + room * min(1.0, (missing * (1 + 1e-15)) / math.fsum(room)), c)
        return np.asarray(q)

    def _certificate(self, w: Array | None, b: float | None, p: Array | None, lower: float, upper: float) -> Certificate:
        problem, task = self.problem, self.task
        rows = () if p is None else tuple(int(i) for i in np.flatnonzero(p))
        weights = task.weights
        return Certificate(
            "bracket",
            task.intercept,  # type: ignore[arg-type]
            problem.classes,
            (problem.X.n, problem.X.d),
            w=None if w is None else tuple(w.tolist()),
            b=b,
            rows=rows,
            weights=() if p is None else tuple(p[list(rows)].tolist()),
            lower=lower,
            upper=upper,
            norm=task.norm,
            nu=task.nu,
            sample_weight=None if weights is None else tuple(weights.tolist()),
        )


def _norm(norm: Any) -> float:
    if not (is_number(norm) and norm >= 2):
        raise InputError(f"norm is {norm!r}; pass a number p with 2 <= p <= inf")
    return float(norm)


def _method(method: Any, norm: float, d: int, random_state: Any) -> Method:
    """The method asked for, for this norm."""
    if random_state is not None and not (is_number(random_state) and int(random_state) == random_state):
        raise InputError(f"random_state is {random_state!r}; pass a whole number, or None")
    if isinstance(method, str) and method in ("auto", "double_oracle"):
        return double_oracle(p=norm, seed=1 if random_state is None else int(random_state))
    if isinstance(method, str):
        method = methods.get(method)
    if isinstance(method, methods.Entry):
        # the p-norm methods are told p; for the largest norm they play p = 2 log d, and what they find is certified for norm inf
        method = method(p=2 * math.log(max(d, 3)) if math.isinf(norm) else norm) if "p_norm" in method.name else method()
    if not isinstance(method, Method):
        raise InputError(f"method is {method!r}; pass 'auto', a name such as 'smooth_perceptron', or a method with its options")
    if method.norm != norm and not (math.isinf(norm) and method.norm > 2):
        raise InputError(
            f"{method.name} plays for the norm {method.norm:g}, not {norm:g}; use method='auto', a p-norm method, or that norm"
        )
    return method


def _weights(problem: Problem, sample_weight: Any, class_weight: Any) -> Array | None:
    """c_i = sample weight × class weight; None where all are 1."""
    n = problem.X.n
    if sample_weight is None and class_weight is None:
        return None
    c = np.ones(n)
    if sample_weight is not None:
        if is_number(sample_weight):
            sample_weight = np.full(n, float(sample_weight))
        c = vector(sample_weight, "sample_weight", n).copy()
        bad = ~((c >= 0) & np.isfinite(c))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"sample_weight[{row}] is {c[row]}; weights must be finite and not negative")
    if class_weight is not None:
        for side, label in zip((-1, 1), problem.classes, strict=True):
            own = problem.signs == side
            if isinstance(class_weight, str):
                if class_weight != "balanced":
                    raise InputError(f"class_weight is {class_weight!r}; pass 'balanced', a dict from labels to weights, or None")
                c[own] *= n / (2 * np.count_nonzero(own))
            elif isinstance(class_weight, Mapping):
                factor = class_weight.get(label, 1.0)
                if not (is_number(factor) and 0 <= factor < math.inf):
                    raise InputError(f"class_weight[{label!r}] is {factor!r}; weights must be finite and not negative")
                c[own] *= float(factor)
            else:
                raise InputError(f"class_weight is {class_weight!r}; pass 'balanced', a dict from labels to weights, or None")
        unknown = [label for label in class_weight if label not in problem.classes] if isinstance(class_weight, Mapping) else []
        if unknown:
            raise InputError(
                f"class_weight names {unknown[0]!r}, but the classes are {problem.classes[0]!r} and {problem.classes[1]!r}"
            )
    for side, label in zip((-1, 1), problem.classes, strict=True):
        if not c[problem.signs == side].any():
            raise InputError(f"all rows of class {label!r} have weight zero; two classes are needed")
    return c


def _feasible(nu: Any, problem: Problem, weights: Array | None, intercept: str) -> float | None:
    """nu, refused if it leaves no p. Where it is the largest one up to rounding, the largest float that does leave one."""
    if nu is None:
        return None
    c = np.ones(problem.X.n) if weights is None else weights
    sides = [math.fsum(c[problem.signs == side]) for side in (1, -1)]
    most = 2 * min(sides) / sum(sides) if intercept == "free" else 1.0
    if not (is_number(nu) and 0 < nu <= most * (1 + NU_ROUNDING)):
        why = f": twice the share of the lighter class, {problem.classes[int(sides[0] < sides[1])]!r}" if most < 1 else ""
        raise InputError(f"nu is {nu!r}; for this data it must be in (0, {most:.6g}]{why}")
    if nu < most * (1 - NU_ROUNDING) or intercept != "free":
        return min(float(nu), 1.0)
    exact = 2 * min(exact_sum(c[problem.signs == side]) for side in (1, -1)) / exact_sum(c)
    largest = float(exact)
    if largest > exact:
        largest = math.nextafter(largest, 0.0)
    return min(float(nu), largest)


def _caps(weights: Array | None, n: int, nu: float) -> Array:
    """c_i/(νΣc)."""
    c = np.ones(n) if weights is None else weights
    return np.asarray(c / (nu * math.fsum(c)))
