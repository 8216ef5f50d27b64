"""`separate`: is there a plane between the two classes? With proof, either way."""

from __future__ import annotations

import contextlib
import html
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gordan.arrays import Array, check_callback, positive, seconds_at_most, seed, whole_number_or_none
from gordan.blas import blas_threads
from gordan.certificates import Certificate
from gordan.certificates.margins import Margin, first_not_positive
from gordan.certificates.matrix import CLAIM, Products
from gordan.certificates.problem import Problem, check_intercept
from gordan.certificates.verify import accepts, check
from gordan.errors import InputError
from gordan.geometry import norm
from gordan.solve import separation
from gordan.solve.quick import quick_witness
from gordan.verdicts.telling import Witness, outward

Status = Literal["separable", "not-separable", "margin-below-tol", "undecided"]


@dataclass(frozen=True, eq=False)
class Proof:
    """What the checker accepted: a certificate, or one that is still without this w and the weights p over all rows."""

    head: Certificate
    w: Array | None = None
    p: Array | None = None

    @cached_property
    def certificate(self) -> Certificate:
        """All of it, in tuples: made on first access, since few ask for it, and w may be long."""
        if self.w is None and self.p is None:
            return self.head
        support = np.empty(0, np.int64) if self.p is None else np.flatnonzero(self.p)
        return replace(
            self.head,
            w=None if self.w is None else tuple(self.w.tolist()),
            rows=tuple(support.tolist()),
            weights=() if self.p is None else tuple(self.p[support].tolist()),
        )


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
    _proof: Proof | None = field(repr=False)
    _problem: Problem = field(repr=False)

    @property
    def separable(self) -> bool | None:
        """True, False, or None where that was not decided."""
        return {"separable": True, "not-separable": False}.get(self.status)

    def __bool__(self) -> bool:
        """`separable`, where that was decided: what is open is neither true nor false."""
        if self.separable is None:
            raise InputError(f"whether the data is separable was not decided ({self.status}); ask for .separable or .status")
        return self.separable

    @property
    def proved(self) -> bool:
        """Whether the checker accepted the status; False only for "undecided"."""
        return self.status != "undecided"

    @cached_property
    def certificate(self) -> Certificate | None:
        """The certificate, bound to the data by its hash (computed on first access)."""
        if self._proof is None:
            return None
        return replace(self._proof.certificate, data_hash=self._problem.hash(self._proof.head.intercept))

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
    device: str | None = None,
    callback: Callable[[Verdict], object] | None = None,
) -> Verdict:
    """Decide whether a plane separates the two classes of y, with proof.

    Parameters
    ----------
    X, y
        data; X dense or sparse with exact values, y two labels of any kind; torch tensors and CuPy arrays as they are.
    intercept
        "free" (x·w + b), "penalized" (separability is the same; the margin is that of (x, 1)) or "none".
    tol
        "margin-below-tol" is answered when the margin is certified to be at most tol times the largest row norm and the exact
        witness could not be completed.
    max_iter
        rounds of the working set at most: each solves a game on few rows exactly and looks at all rows once.
    time_limit
        seconds after which to stop looking; what was proved by then is returned.
    random_state
        seed of the order in which rows are visited (an integer, or None).
    device
        where to look: "cuda" copies X to the GPU once, "cpu" brings it to the host; None leaves it where it is.
    callback
        called with the verdict so far after each proposal that was not accepted; something true ends the search.

    Examples
    --------
    >>> import gordan
    >>> gordan.separate([[0.0], [1.0], [2.0]], ["no", "no", "yes"])
    separable: the largest margin is between 0.499999 and 0.500001 (proved)
    >>> gordan.separate([[0.0], [1.0], [2.0]], ["no", "yes", "no"]).witness
    Witness(rows=(0, 1, 2), weights=(1, 2, 1))
    """
    check_intercept(intercept)
    check_callback(callback, "verdict")
    tol, limit, max_iter = positive(tol, "tol"), seconds_at_most(time_limit), whole_number_or_none(max_iter, "max_iter")
    order = seed(random_state)
    started = time.perf_counter()
    trial = Trial(Problem.of(X, y, device).nearby(), intercept, started)
    trial.problem.require_finite()
    # what was proved before Ctrl-C is kept
    with contextlib.suppress(KeyboardInterrupt), blas_threads(trial.problem.storage.entries):
        trial.decide(started + limit, max_iter, callback, order)
    return trial.verdict(tol)


@dataclass
class Trial:
    """What has been proved so far about one problem."""

    problem: Problem
    intercept: Any
    started: float
    proof: Proof | None = None
    p: Array | None = None
    lower: float = 0.0
    upper: float = math.inf

    @cached_property
    def margin(self) -> Margin:
        """What is bracketed."""
        return Margin(self.problem.X, self.problem.signs, self.intercept)

    def decide(
        self,
        deadline: float = math.inf,
        max_iter: int | None = None,
        callback: Callable[[Verdict], object] | None = None,
        order: int = 1,
    ) -> None:
        """Look for a separator or a witness that the checker accepts, the quick exits first; rows are visited in this order."""
        witness = quick_witness(self.problem, self.intercept)
        if witness is not None and self.proves_witness(witness):
            return
        for proposal in separation.proposals(self.problem, self.intercept, deadline, max_iter, order):
            if self.proves(proposal):
                return
            self._bound(proposal.p)
            if callback is not None and callback(self.verdict(0.0)):
                return

    def _bound(self, p: Array | None) -> None:
        """The upper bound that p proves, if it is the best so far."""
        upper = math.inf if p is None else self.margin.upper(p, slack=CLAIM)
        if upper < self.upper:
            self.p, self.upper = p, upper

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
            w = proposal.w / scale
            products = Products.of(self.problem.X, w)
            for b in self._intercepts(products, proposal.b / scale):
                if math.isfinite(b) and first_not_positive(products, b, self.problem.signs) is None:
                    self._bound(proposal.p)  # not before: the first products bring the norms that this needs
                    self.lower = self.margin.lower(w, b, slack=CLAIM)
                    return self._accepted(Proof(self._bracketed("separator", b), w, self.p))
        return False

    def _intercepts(self, products: Products, b: float) -> tuple[float, ...]:
        """A free b puts the plane midway between the classes, or else where it was proposed."""
        if self.intercept != "free":
            return (b,)
        lowest = float(np.min(products.sums[self.problem.signs > 0]))
        highest = float(np.max(products.sums[self.problem.signs < 0]))
        return (-(lowest / 2 + highest / 2), b) if lowest > highest else (b,)

    def proves_witness(self, witness: dict[int, int]) -> bool:
        """Whether the checker accepts these rows and weights."""
        rows = tuple(sorted(witness))
        weights = tuple(witness[i] for i in rows)
        return self._accepted(Proof(replace(self._plain("witness"), rows=rows, weights=weights)))

    def _plain(self, kind: Any) -> Certificate:
        return Certificate(kind, self.intercept, self.problem.classes, (self.problem.X.n, self.problem.X.d))

    def _bracketed(self, kind: Any, b: float | None = None) -> Certificate:
        return replace(self._plain(kind), b=b, lower=self.lower, upper=self.upper)

    def _accepted(self, proof: Proof) -> bool:
        if self._holds(proof):
            self.proof = proof
            return True
        return False

    def _holds(self, proof: Proof) -> bool:
        if proof.head.exact:
            return bool(check(proof.head, self.problem))
        return accepts(proof.head, self.problem, proof.w, proof.p)

    def verdict(self, tol: float = 0.0) -> Verdict:
        """The verdict that follows from what was proved."""
        seconds = time.perf_counter() - self.started
        proof = self.proof
        if proof is not None and proof.head.kind == "witness":
            witness = Witness.of(proof.head, self.problem.signs)
            return Verdict("not-separable", None, None, (0.0, 0.0), witness, seconds, proof, self.problem)
        if proof is not None and proof.w is not None:
            proved = (proof.head.lower or 0.0, math.inf if proof.head.upper is None else proof.head.upper)
            return Verdict("separable", proof.w.copy(), float(proof.head.b or 0.0), proved, None, seconds, proof, self.problem)
        bracket = Proof(self._bracketed("bracket"), p=self.p)
        R = min(float(np.max(self.problem.X.norms)), math.nextafter(math.inf, 0.0))
        small = self.upper <= tol * R and self._holds(bracket)
        status: Status = "margin-below-tol" if small else "undecided"
        return Verdict(status, None, None, (0.0, self.upper), None, seconds, bracket if small else None, self.problem)
