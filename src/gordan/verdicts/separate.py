"""`separate`: is there a plane between the two classes? With proof, either way."""

from __future__ import annotations

import html
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gordan.arrays import Array, is_number, whole_number
from gordan.certificates import Certificate
from gordan.certificates.problem import Problem, check_intercept
from gordan.certificates.verify import check, first_not_positive, lower_bound, upper_bound
from gordan.errors import InputError
from gordan.geometry import norm
from gordan.solve import separation
from gordan.solve.quick import quick_witness
from gordan.trace import Moment
from gordan.verdicts.telling import Witness, outward

Status = Literal["separable", "not-separable", "margin-below-tol", "undecided"]

# Problems with at most this many entries (d squared) are decided exactly at once; larger ones start from what floats suggest.
SMALL = 20_000
MOST_EXACT_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Verdict:
    """Whether the data is separable, and the proof. `certificate` is what `gordan.verify` accepts.

    `margin` is a certified interval (in the units of X, 2-norm) for the largest margin; (0, 0) when there is none. `w` has
    length 1 up to rounding, so that scores x·w + b are signed distances.
    """

    status: Status
    w: Array | None
    b: float | None
    margin: tuple[float, float]
    witness: Witness | None
    seconds: float
    _certificate: Certificate | None = field(repr=False)
    _problem: Problem = field(repr=False)

    @property
    def separable(self) -> bool | None:
        """True, False, or None where that was not decided."""
        return {"separable": True, "not-separable": False}.get(self.status)

    @property
    def proved(self) -> bool:
        """Whether the checker accepted the status; False only for "undecided"."""
        return self.status != "undecided"

    @cached_property
    def certificate(self) -> Certificate | None:
        """The certificate, bound to the data by its hash (computed on first access)."""
        return (
            None
            if self._certificate is None
            else replace(self._certificate, data_hash=self._problem.hash(self._certificate.intercept))
        )

    def __repr__(self) -> str:
        if self.status == "separable":
            lower, upper = outward(*self.margin)
            return f"separable: the largest margin is between {lower} and {upper} (proved)"
        if self.status == "not-separable":
            return f"not separable: {self.witness} (proved)"
        if self.status == "margin-below-tol":
            return f"margin below tolerance: no margin exceeds {outward(*self.margin)[1]} (proved); is one positive? That is open"
        return f"undecided: the largest margin is at most {outward(*self.margin)[1]}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"


def separate(
    X: Any,
    y: Any,
    *,
    intercept: str = "free",
    tol: float = 1e-10,
    max_iter: int | None = None,
    time_limit: float | None = None,
    random_state: Any = None,
    callback: Callable[[Moment], object] | None = None,
) -> Verdict:
    """Decide whether a plane separates the two classes of y, with proof.

    Parameters
    ----------
    X, y
        data; X dense or sparse with exact values, y two labels of any kind.
    intercept
        "free" (x·w + b), "penalized" (separability is the same; the margin is that of (x, 1)) or "none".
    tol
        "margin-below-tol" is answered when the margin is certified to be at most tol times the largest row norm and the exact
        witness could not be completed.
    max_iter
        rounds of the accelerated game at most.
    time_limit
        seconds after which to stop looking; what was proved by then is returned.
    random_state
        accepted for the day a route is randomized; none is now.
    callback
        called with each recorded `Moment` of the game; something true ends the game.

    Examples
    --------
    >>> import gordan
    >>> gordan.separate([[0.0], [1.0], [2.0]], ["no", "no", "yes"])
    separable: the largest margin is between 0.499999 and 0.500001 (proved)
    >>> gordan.separate([[0.0], [1.0], [2.0]], ["no", "yes", "no"]).witness
    Witness(rows=(0, 1, 2), weights=(1, 2, 1))
    """
    check_intercept(intercept)
    if not (is_number(tol) and tol > 0):
        raise InputError(f"tol is {tol!r}; pass a positive number")
    if time_limit is not None and not (is_number(time_limit) and time_limit > 0):
        raise InputError(f"time_limit is {time_limit!r}; pass a positive number of seconds, or None")
    rounds = 2000 if max_iter is None else whole_number(max_iter, "max_iter")
    started = time.perf_counter()
    deadline = math.inf if time_limit is None else started + time_limit
    trial = _Trial(Problem.of(X, y), intercept, started)
    trial.problem.require_finite()

    witness = quick_witness(trial.problem, intercept)
    if witness is not None and trial.proves_witness(witness):
        return trial.verdict()
    try:
        for propose in (_exactly_if_small, _by_game, _by_program):
            for proposal in propose(trial, rounds, deadline, callback):
                if trial.proves(proposal):
                    return trial.verdict()
    except KeyboardInterrupt:
        pass
    return trial.verdict(tol)


def _exactly_if_small(trial: _Trial, rounds: int, deadline: float, callback: Any) -> Any:
    n, d = trial.problem.X.n, trial.problem.X.d + 1
    if n * d * d <= SMALL:
        game = separation.from_game(trial.problem, trial.intercept, min(rounds, 200), deadline, callback, until_separated=False)
        if game is not None:
            trial.keep(game)
            yield game
        yield from separation.exact_working_set(trial.problem, trial.intercept, np.arange(n), deadline, n)


def _by_game(trial: _Trial, rounds: int, deadline: float, callback: Any) -> Any:
    game = separation.from_game(trial.problem, trial.intercept, rounds, deadline, callback)
    if game is not None:
        trial.keep(game)
        yield game
        if game.interrupted:
            raise KeyboardInterrupt


def _by_program(trial: _Trial, rounds: int, deadline: float, callback: Any) -> Any:
    if time.perf_counter() > deadline:
        return
    proposal, support = separation.from_program(trial.problem, trial.intercept, deadline)
    if proposal is not None:
        yield proposal
    yield from separation.exact_working_set(trial.problem, trial.intercept, support, deadline, MOST_EXACT_ROWS)


@dataclass
class _Trial:
    """What has been proved so far about one problem."""

    problem: Problem
    intercept: Any
    started: float
    proof: Certificate | None = None
    p: Array | None = None
    lower: float = 0.0
    upper: float = math.inf

    def keep(self, proposal: separation.Proposal | None) -> None:
        """Use the proposal's p for the upper bound if it is the best so far."""
        if proposal is None or proposal.p is None:
            return
        upper = upper_bound(self.problem, self.problem.signs, proposal.p, 2.0, None, None, self.intercept)
        if upper < self.upper:
            self.p, self.upper = proposal.p, upper

    def proves(self, proposal: separation.Proposal) -> bool:
        """Whether the checker accepts the proposal as a separator or a witness."""
        if proposal.witness is not None:
            return self.proves_witness(proposal.witness)
        if proposal.w is None or not np.isfinite(proposal.w).all() or not math.isfinite(proposal.b):
            return False
        length = norm(np.append(proposal.w, proposal.b) if self.intercept == "penalized" else proposal.w, 2.0)
        # of length 1, so that scores are distances; but for a thin cone, where the division would round it away, as it is
        for scale in (length, 1.0):
            if not 0 < scale < math.inf:
                continue
            w, b = proposal.w / scale, proposal.b / scale
            if math.isfinite(b) and first_not_positive(self.problem, w, b, self.problem.signs) is None:
                self.lower = lower_bound(self.problem, self.problem.signs, w, b, 2.0, None, None, self.intercept)
                return self._accepted(self._certificate("separator", w, b))
        return False

    def proves_witness(self, witness: dict[int, int]) -> bool:
        """Whether the checker accepts these rows and weights."""
        rows = tuple(sorted(witness))
        weights = tuple(witness[i] for i in rows)
        return self._accepted(replace(self._plain("witness"), rows=rows, weights=weights))

    def _plain(self, kind: Any) -> Certificate:
        return Certificate(kind, self.intercept, self.problem.classes, (self.problem.X.n, self.problem.X.d))

    def _certificate(self, kind: Any, w: Array | None, b: float | None) -> Certificate:
        rows = () if self.p is None else tuple(int(i) for i in np.flatnonzero(self.p))
        return replace(
            self._plain(kind),
            w=None if w is None else tuple(w.tolist()),
            b=b,
            rows=rows,
            weights=() if self.p is None else tuple(self.p[list(rows)].tolist()),
            lower=self.lower,
            upper=self.upper,
        )

    def _accepted(self, certificate: Certificate) -> bool:
        if check(certificate, self.problem):
            self.proof = certificate
            return True
        return False

    def verdict(self, tol: float = 0.0) -> Verdict:
        """The verdict that follows from what was proved."""
        seconds = time.perf_counter() - self.started
        proof = self.proof
        if proof is not None and proof.kind == "witness":
            witness = Witness(proof.rows, tuple(int(weight) for weight in proof.weights))
            return Verdict("not-separable", None, None, (0.0, 0.0), witness, seconds, proof, self.problem)
        if proof is not None and proof.w is not None:
            w = np.array(proof.w)
            return Verdict("separable", w, float(proof.b or 0.0), (self.lower, self.upper), None, seconds, proof, self.problem)
        bracket = self._certificate("bracket", None, None)
        R = float(np.max(self.problem.storage.norms(2.0, 1)))
        small = self.upper <= tol * R and self._accepted(bracket)
        status: Status = "margin-below-tol" if small else "undecided"
        return Verdict(status, None, None, (0.0, self.upper), None, seconds, bracket if small else None, self.problem)
