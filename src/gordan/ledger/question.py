"""What is asked about rows, with how much effort; and what a finder proposes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from gordan.arrays import Array
from gordan.certificates.data import Relation
from gordan.certificates.margins import Margin
from gordan.certificates.problem import Problem
from gordan.deadlines import SLOW_ENTRY, Deadline, Pace, unknown
from gordan.errors import InputError
from gordan.geometry import Simplex
from gordan.rows import SMALLEST_RADIUS, Rows

if TYPE_CHECKING:
    from gordan.trace import Trace


T = TypeVar("T")

# Passes that it takes to end a round and to prove what was found, about; the share of a limit and the seconds that a call may
# overrun it by, which the proof may use; and the share of the limit that is reserved for it at most.
PROOF, OVERRUN, MOST_RESERVED = 16.0, (0.1, 0.2), 0.5
# Seconds for a row of a device in a proof on the host, of a hard margin or a loss and of a soft margin, whose every row may have
# a weight: as a share of the passes of a proof.
ON_HOST, SOFT_ON_HOST = 4e-9, 2e-8


class Asks(Enum):
    """What a question is about: is there a separator, how large is the margin, which rows can a weak separator have strictly on
    their side, and how small can a loss be?"""

    SIGN = "sign"
    WIDTH = "width"
    CONE = "cone"
    LOSS = "loss"


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Rows of norm 1 at most, the R that they were divided by, and the squares of their norms, made when they are asked for."""

    A: Rows
    R: float
    make: Callable[[], Array]

    @cached_property
    def squares(self) -> Array:
        """‖A_i‖²."""
        return self.make() / self.R**2


def _measured(rows: Rows, seconds: float, on_host: float) -> Pace:
    """The pace, with a pass over rows in memory or on a device; over others it takes about the seconds that it took to read them.
    Of a device a proof is mostly vectors over rows on the host."""
    if rows.in_memory or rows.storage.on_device:
        begin = time.perf_counter()
        rows.scaled(1.0).residing().scores(np.zeros(rows.d))
        seconds = time.perf_counter() - begin + (0.0 if rows.in_memory else on_host * rows.n)
    return Pace.measured(seconds, rows.entries)


@dataclass(frozen=True)
class Budget:
    """How much effort an answer may cost. `deadline` and `started` are times of `time.perf_counter`; `pace` is what work costs,
    as measured in this call, where there is a deadline."""

    started: float
    deadline: float = math.inf
    max_iter: int | None = None
    threads: int | None = None
    seed: int = 1
    pace: Callable[[], Pace] = unknown

    def paced(self, rows: Rows, vectors: int = 1, on_host: float = ON_HOST) -> Budget:
        """With the pace of passes over these rows, and time for the proof reserved, beyond what a limit may be overrun by. The
        proof is about so many vectors at once, and takes that long for a row on the host.

        The pace is measured when it is asked for: at once only where the proof may need some of the limit.
        """
        limit = self.deadline - self.started
        if math.isinf(limit) or self.spent or self.pace is not unknown or not Pace.matters(rows.n, rows.d):
            return self  # nothing to measure, or no time for it
        measure = partial(_measured, rows, time.perf_counter() - self.started, on_host)
        overrun = OVERRUN[0] * limit + OVERRUN[1]
        if PROOF * (SLOW_ENTRY * rows.entries * vectors + on_host * rows.n) <= overrun:
            return replace(self, pace=measure)
        pace = measure()
        reserve = min(MOST_RESERVED * limit, max(0.0, PROOF * pace.entry * rows.entries * vectors - overrun))
        return replace(self, deadline=self.deadline - reserve, pace=lambda: pace)

    @cached_property
    def time(self) -> Deadline:
        """The deadline, for those that ask whether it leaves time for something."""
        return Deadline(self.deadline, self.pace)

    @property
    def spent(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() >= self.deadline

    @property
    def short(self) -> bool:
        """Whether the time is up, or was too short for something that was asked for."""
        return self.spent or self.time.refused


@dataclass(frozen=True, eq=False)
class Play:
    """How a game is played where one is: by which `Method` (`auto`: it was not asked for by name), from which p, if any.

    `watch` is called with the `Moment` of a round, `checkpoint` is the file of the run.
    """

    method: Any = None
    auto: bool = True
    start: Array | None = None
    watch: Callable[[Any], object] | None = None
    checkpoint: Any = None


@dataclass(frozen=True, eq=False)
class Question:
    """A question about the rows of one problem.

    `margin` says which margin is meant: intercept, norm, nu and weights. `tol` is the relative width of the interval to stop at.
    `origin` is the question that this one is asked for, where its rows have been scaled or moved.
    """

    problem: Problem
    margin: Margin
    asks: Asks
    budget: Budget
    tol: float = 0.0
    play: Play = Play()
    origin: Question | None = None
    _shared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    vectors = 1

    @property
    def on_host(self) -> float:
        """Seconds for a row of a device in a proof."""
        return ON_HOST if self.margin.nu is None else SOFT_ON_HOST

    @property
    def sign_alone(self) -> bool:
        """Whether nothing but a plane with every row strictly on its side will do."""
        return self.asks is not Asks.WIDTH

    def shared(self, make: Callable[[Question], T]) -> T:
        """make(self), made once: what several finders need."""
        if make not in self._shared:
            self._shared[make] = make(self)
        found: T = self._shared[make]
        return found

    def known(self, make: Callable[[Question], T]) -> T | None:
        """The same if it has been made, else None."""
        found: T | None = self._shared.get(make)
        return found

    @cached_property
    def kept(self) -> Array | slice:
        """The rows that count: those of weight 0 do not."""
        weights = self.margin.weights
        return slice(None) if weights is None or weights.all() else np.flatnonzero(weights)

    @cached_property
    def counted(self) -> Problem:
        """The problem without the rows that do not count: what finders see."""
        if isinstance(self.kept, slice):
            return self.problem
        self.problem.require_finite()  # by the row as it was given
        return self.problem.part(self.kept)

    @cached_property
    def rows(self) -> Rows:
        """The signed rows as the game for the margin has them, with a column of ones only where b counts in the norm (`unit_rows`
        are those for the sign). Their passes are part of the answer's."""
        problem, margin = self.counted, self.margin
        return Rows(problem.storage, problem.signs, constant=margin.intercept.column, threads=self.budget.threads)

    @cached_property
    def radius(self) -> float:
        """The largest norm of a row. One pass; refused where products with such rows leave no room in float64."""
        return self.rows.playable_radius(self.margin.norm)

    @cached_property
    def unit_rows(self) -> UnitRows:
        """The signed rows as a separator sees them, with a column of ones where there is an intercept, divided by their largest
        norm; an InputError where floats leave no room for that, which ends a finder of the sign."""
        problem, exists = self.counted, self.margin.intercept.exists
        A = Rows(problem.storage, problem.signs, constant=exists, threads=self.budget.threads)
        if A.in_memory:
            with np.errstate(over="ignore"):
                squares = np.asarray(problem.X.norms**2 + exists)  # proofs need these norms as well
        R = math.sqrt(float(np.max(squares))) if A.in_memory else A.radius()
        if not SMALLEST_RADIUS <= R <= 1 / SMALLEST_RADIUS:
            raise InputError(f"the largest row has norm {R:.3g}, which leaves no room for float64 products")
        return UnitRows(A.scaled(1 / R), R, (lambda: squares) if A.in_memory else A.squares)

    @cached_property
    def p_set(self) -> Simplex:
        """Where p lives, over the rows that count."""
        margin, signs = self.margin, self.counted.signs
        caps = None
        if margin.nu is not None:
            c = np.ones(len(signs)) if margin.weights is None else margin.weights[self.kept]
            # a list is gone through in a quarter of the time
            total = margin.nu * (float(len(signs)) if margin.weights is None else math.fsum(c.tolist()))
            with np.errstate(over="ignore"):
                caps = np.minimum(c / total, 1.0) if total > 0 else np.ones(len(c))  # 1 is enough for any
        return Simplex(len(signs), caps=caps, halves=margin.intercept.halves(signs))

    def over_all_rows(self, p: Array) -> Array:
        """A vector over the rows that count, with 0 for the others."""
        if isinstance(self.kept, slice):
            return p
        whole = np.zeros(self.problem.X.n)
        whole[self.kept] = p
        return whole


class Cancelling(NamedTuple):
    """Rows that may cancel with positive weights near these, and what the certificate says of columns that depend on others."""

    rows: Array
    weights: Array
    dependent: tuple[Relation, ...] = ()


class Cone(Protocol):
    """What may be the cone of weak separators, {w : A w ≥ 0}: of which kind, with which w inside, and why no other rows are
    strict."""

    @property
    def p(self) -> dict[int, int] | None:
        """Integer weights by row, whose rows cancel and span the rows that are not strict; None where a witness says so."""

    @property
    def signs(self) -> Array:
        """The signs of A w."""

    @property
    def kind(self) -> str:
        """ "complete", "quasi-complete" or "overlap"."""

    @property
    def plane(self) -> tuple[list[int], int]:
        """Integers w, b in the relative interior."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """Something that may be proved: a plane w, b; weights p that bound the margin; rows that may cancel; a cone.

    Vectors over rows are over the rows that count. b may be left out (None): it is then put midway between the classes.
    `cancelling` are rows whose float weights may prove that exact ones exist.
    `smoothing` is what a hinge was smoothed by where its weights follow from the plane in that way.
    `suspects` are rows whose hull may hold 0, for those who decide that exactly. `trace`, `rounds` and `passes` say what it cost
    to find, where that is counted.
    """

    w: Array | None = None
    b: Any = None
    p: Array | None = None
    witness: dict[int, int] | None = None
    cancelling: Cancelling | None = None
    suspects: Array | None = None
    cone: Cone | None = None
    smoothing: float | None = None
    trace: Trace | None = None
    rounds: int = 0
    passes: float = 0.0
