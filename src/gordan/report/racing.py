"""A race: several methods on the same rows, one after the other, each measured in the same way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gordan import rows
from gordan.arrays import Array, check_callback, exponent, positive, seconds_at_most, whole_number
from gordan.certificates.problem import Problem
from gordan.errors import InputError
from gordan.geometry import Simplex
from gordan.intercepts import Intercept
from gordan.methods import Method, get
from gordan.research import play
from gordan.statuses import Ending
from gordan.trace import Moment, Trace
from gordan.verdicts import Verdict, separate
from gordan.verdicts.scaling import scale_hint

DEFAULT = (
    "double_oracle",
    "smooth_perceptron",
    "accelerated_perceptron",
    "mirror_prox_perceptron",
    "nesterov",
    "normalized_gradient_descent",
)
# The default methods for norms other than 2: above 2, infinity, and below 2.
P_NORM = ("double_oracle", "smooth_p_norm_perceptron", "accelerated_p_norm_perceptron")
LARGEST_NORM, LOW_NORM = ("double_oracle", "steepest_descent"), ("box_perceptron", "steepest_descent")


class Step(NamedTuple):
    """A recorded round, and its cost up to then."""

    t: int
    passes: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Lane:
    """One method of a race.

    Attributes
    ----------
    method : Method
        The method with its options.
    trace : Trace
        What was measured.
    D : float
        The diameter of the p-player's set, which is in the guarantee of the method.
    """

    method: Method
    trace: Trace
    D: float

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.method.name

    @property
    def first_positive(self) -> Step | None:
        """The first recorded round at which a separator was known; None if none was found."""
        return self._first(np.asarray(self.trace.lower) > 0)

    def reached(self, tol: float) -> Step | None:
        """Return the first recorded round with a relative gap of at most `tol`; None if there is none."""
        return self._first((np.asarray(self.trace.gap) <= tol) & (np.asarray(self.trace.lower) > 0))

    def _first(self, holds: Array) -> Step | None:
        if not holds.any():
            return None
        k = int(np.argmax(holds))
        return Step(int(self.trace.t[k]), float(self.trace.passes[k]), float(self.trace.seconds[k]))

    def promised_margin(self, gamma: float) -> list[float] | None:
        """Return the margin that the method's theorem promises at each recorded round, in the units of X; None without one.

        `gamma` is a lower bound for γ* in these units. The promises increase with γ, so those for a lower bound hold as well.
        """
        promise, R = self.method.guarantee.margin, self.trace.scale
        if promise is None or not gamma > 0:
            return None
        return [R * promise(int(t), self.D, gamma / R) for t in self.trace.t]

    @property
    def average_regret(self) -> Array | None:
        """The average regret (R^w + R^p)/Σα at each recorded round; None for a method that plays no game."""
        return self.trace.average_regret

    def to_dict(self, tol: float, gamma: float) -> dict[str, Any]:
        """Return everything as plain data; `tol` is that of the race, `gamma` is as in `promised_margin`."""
        trace, regret = self.trace, self.average_regret
        return {
            "method": self.name,
            "form": trace.form,
            "guarantee": self.method.guarantee.statement,
            "status": trace.status,
            "bracket": list(trace.bracket),
            "gap": float(trace.gap[-1]),
            "rounds": int(trace.t[-1]),
            "passes": float(trace.passes[-1]),
            "seconds": float(trace.seconds[-1]),
            "first_positive": _step(self.first_positive),
            "to_tol": _step(self.reached(tol)),
            "columns": {**trace.to_dict(), "gap": trace.gap.tolist()},
            "promised_margin": self.promised_margin(gamma),
            "average_regret": None if regret is None else regret.tolist(),
        }


@dataclass(frozen=True, eq=False)
class Race:
    """The result of `race`.

    Attributes
    ----------
    source : str
        The name of the data.
    told : str
        The two classes, in words.
    n, d : int
        The numbers of rows and columns.
    intercept, norm, tol
        The arguments of the call.
    verdict : Verdict
        Whether the classes are separable, with proof.
    lanes : tuple of Lane
        The methods, in the order in which they were run.
    hint : str
        The advice to scale the columns, if that may be why only the double oracle found a separator; otherwise empty.
    """

    source: str
    told: str
    n: int
    d: int
    intercept: str
    norm: float
    tol: float
    verdict: Verdict
    lanes: tuple[Lane, ...]
    hint: str = ""

    @property
    def bracket(self) -> tuple[float, float]:
        """The best lower and upper bound on γ* of all methods, in the units of X; estimates in floats, as in a trace."""
        return max(lane.trace.bracket[0] for lane in self.lanes), min(lane.trace.bracket[1] for lane in self.lanes)

    @property
    def verdict_told(self) -> str:
        """The verdict in words; its margin is in the 2-norm, whatever the norm of the race."""
        other_norm = self.norm != 2 and self.verdict.separable
        return f"{self.verdict!r}; that margin is in the 2-norm" if other_norm else repr(self.verdict)

    def __repr__(self) -> str:
        first = f"{self.source}, {self.told}. {self.verdict_told}"
        return "\n".join([first, *(f"  {self._line(lane)}" for lane in self.lanes), *filter(None, [self.hint])])

    def _line(self, lane: Lane) -> str:
        """Return the line about one method."""
        step = lane.reached(self.tol)
        reached = "did not reach" if step is None else f"took {step.passes:.4g} passes to reach"
        last = f"{lane.trace.gap[-1]:.1e} after {lane.trace.passes[-1]:.4g} passes"
        return f"{lane.name}: {reached} a gap of {self.tol:g}; the last gap is {last}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        gamma = self.bracket[0]
        return {
            "source": self.source,
            "told": self.told,
            "n": self.n,
            "d": self.d,
            "intercept": self.intercept,
            "norm": self.norm,
            "tol": self.tol,
            "verdict": self.verdict_told,
            "status": self.verdict.status,
            "bracket": list(self.bracket),
            "hint": self.hint,
            "methods": [lane.to_dict(self.tol, gamma) for lane in self.lanes],
        }


def _step(step: Step | None) -> dict[str, float] | None:
    """Return a step as plain data."""
    return None if step is None else step._asdict()


def race(
    X: Any,
    y: Any,
    *,
    methods: Sequence[str] | None = None,
    intercept: str = "free",
    norm: float = 2.0,
    rounds: int = 2000,
    tol: float = 1e-4,
    time_limit: float | None = 10.0,
    device: str | None = None,
    begin: Callable[[str], object] | None = None,
    callback: Callable[[Moment], object] | None = None,
) -> Race:
    """Run methods on the same X, y, one after the other, and measure each in the same way.

    Each method plays two rounds before its clock is started, so that loading compiled code is not counted. Ctrl-C ends the method
    that is running, and then the race, with the methods that have run so far.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        The data, one row per example.
    y : array-like of shape (n,)
        Two labels of any kind.
    methods : sequence of str, default=None
        Names of methods (see `gordan.methods.names()`); None chooses those for this norm that are worth comparing.
    intercept : {"free", "penalized", "none"}, default="free"
        How b enters: "free", "penalized" or "none", as for `gordan.separate`.
    norm : float, default=2
        The norm p of feature space, 1 ≤ p ≤ ∞.
    rounds : int, default=2000
        How many rounds to play at most, for each method.
    tol : float, default=1e-4
        Relative width of the bracket to stop at; the bracket is in floats, as in a trace.
    time_limit : float, default=10
        Stop after this many seconds, each method and the verdict before them; None for no limit.
    device : {"cuda", "cpu"}, default=None
        Where to run: "cuda" copies X to the GPU once, "cpu" copies it to main memory; None leaves it where it is.
    begin : callable, default=None
        Called with the name of each method before it runs, and before that with "verdict".
    callback : callable, default=None
        Called with each recorded `Moment`; returning True stops the method that is running.

    Returns
    -------
    Race
        The verdict and what was measured; `page_html` shows it.

    Raises
    ------
    InputError
        If an argument is invalid, or a method cannot play for this norm or intercept.

    See Also
    --------
    page_html : Return the result as an HTML page.
    gordan.play : Run a single method.

    Examples
    --------
    >>> import gordan.report
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]], [0, 0, 1]
    >>> result = gordan.report.race(X, y, methods=["smooth_perceptron", "double_oracle"])
    >>> [lane.name for lane in result.lanes if lane.first_positive]
    ['smooth_perceptron', 'double_oracle']
    """
    kind = Intercept.of(intercept)
    callback = check_callback(callback, "moment")
    rounds, tol, norm = whole_number(rounds, "rounds"), positive(tol, "tol"), exponent(norm, 1)
    seconds_at_most(time_limit)
    problem = Problem.of(X, y, device)
    X = X if device is None else problem.storage  # which is on the device, so that it is copied once
    chosen = [_method(name, norm) for name in (methods or _default(norm, kind))]
    if len({method.name for method in chosen}) < len(chosen):
        raise InputError("a method is listed twice; list each method once")
    A = rows.of(X, problem.signs, constant=kind.column)
    halves = kind.group_of_row(problem.signs)
    p_set = Simplex(A.n, halves=halves)
    D = p_set.diameter(p_set.centre)
    for method in chosen:  # a method that cannot run is refused before any other is run
        method.on(A, p_set, p_set.centre)
    begin = begin or (lambda _: None)
    begin("verdict")
    verdict = separate(X, y, intercept=intercept, time_limit=time_limit)

    def stop(moment: Moment) -> bool:
        return bool(callback is not None and callback(moment)) or (moment.lower > 0 and moment.gap <= tol)

    lanes: list[Lane] = []
    for method in chosen:
        try:
            begin(method.name)
            if play(A, method, 2, halves=halves).status == Ending.INTERRUPTED:
                raise KeyboardInterrupt
            trace = play(A, method, rounds, halves=halves, time_limit=time_limit, callback=stop)
        except KeyboardInterrupt:
            if not lanes:
                raise
            break
        lanes.append(Lane(method, trace, D))
        if trace.status == Ending.INTERRUPTED:
            break
    told = " against ".join(map(str, reversed(problem.classes)))
    hint = scale_hint(problem.storage, None) if _only_oracle_found_separator(verdict, lanes) else ""
    return Race("the data", told, A.n, problem.X.d, intercept, norm, tol, verdict, tuple(lanes), hint)


def _only_oracle_found_separator(verdict: Verdict, lanes: Sequence[Lane]) -> bool:
    """Return whether no method but the double oracle found a separator, although there may be one."""
    found = [lane.first_positive is not None for lane in lanes if lane.name != "double_oracle"]
    return verdict.separable is not False and bool(found) and not any(found)


def _default(norm: float, intercept: Intercept) -> tuple[str, ...]:
    """Return the names of the default methods."""
    if norm != 2:
        return LOW_NORM if norm < 2 else LARGEST_NORM if math.isinf(norm) else P_NORM
    return DEFAULT if intercept.grouped else (*DEFAULT, "perceptron")


def _method(name: str, norm: float) -> Method:
    """Return the method of that name for this norm, or raise an InputError that says why it cannot be used."""
    method = get(name).for_norm(norm)
    if method.noisy:
        raise InputError(f"{name} plays for margins under noise, which cannot be compared with the others; leave it out")
    if method.norm != norm:
        others = ", ".join(_default(norm, Intercept.FREE))
        raise InputError(f"{name} plays for the norm {method.norm:g}, not {norm:g}; use one of {others}")
    return method
