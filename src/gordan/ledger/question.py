"""The questions that can be asked about rows, the effort that an answer may cost, and the proposals of finders."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from gordan.arrays import Array, namespace
from gordan.certificates.bounds import near_sum
from gordan.certificates.data import Relation
from gordan.certificates.margins import Margin
from gordan.certificates.problem import Problem
from gordan.deadlines import SLOW_ENTRY, Deadline, Pace, unknown
from gordan.geometry import Simplex
from gordan.rows import Rows, check_radius

if TYPE_CHECKING:
    from gordan.ledger.evidence import Evidence
    from gordan.trace import Trace


T = TypeVar("T")
E_co = TypeVar("E_co", covariant=True)

# About how many passes it takes to end a round and to prove what was found.
PROOF_PASSES = 16.0
# A call may overrun its time limit by this share of it and this many seconds, which the proof may use.
OVERRUN_SHARE, OVERRUN_SECONDS = 0.1, 0.2
# The largest share of the time limit that is reserved for the proof.
MAX_SHARE_FOR_PROOF = 0.5
# For rows on a device, the seconds per row and pass of a proof that vectors over rows take on the host.
ON_HOST = 4e-9


class Asks(Enum):
    """What a question is about.

    SIGN: does a separator exist? WIDTH: how large is the largest margin? CONE: which rows can a weak separator have strictly on
    their side? LOSS: how small can a loss be?
    """

    SIGN = "sign"
    WIDTH = "width"
    CONE = "cone"
    LOSS = "loss"


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Rows A with norms of at most 1, and the largest norm R that they were divided by."""

    A: Rows
    R: float
    unscaled_squares: Callable[[], Array]

    @cached_property
    def squares(self) -> Array:
        """The squared norms ‖A_i‖²."""
        return self.unscaled_squares() / self.R**2


def _allowed_overrun(limit: float) -> float:
    """Return the seconds by which a proof may exceed a time limit."""
    return OVERRUN_SHARE * limit + OVERRUN_SECONDS


def _measured(rows: Rows, seconds: float) -> Pace:
    """Return the pace of a pass over these rows.

    It is measured for rows in memory or on a device. For others it is estimated by the seconds that it took to read them. With
    rows on a device, what a proof and its result need of vectors over rows on the host is added.
    """
    if rows.in_memory or rows.storage.on_device:
        for _ in range(2):
            begin = time.perf_counter()
            rows.scaled(1.0).residing().scores(np.zeros(rows.d))
            seconds = time.perf_counter() - begin
            if seconds <= SLOW_ENTRY * rows.entries:  # a first pass may have loaded the compiled loop
                break
        seconds += 0.0 if rows.in_memory else ON_HOST * rows.n
    return Pace.measured(seconds, rows.entries)


@dataclass(frozen=True)
class Budget:
    """How much effort an answer may cost.

    `started` and `deadline` are times of `time.perf_counter`; `pace` returns what work costs, as measured in this call, if there
    is a deadline. `within` is the time of the budget that this one was made from, which is asked about what is refused here.
    """

    started: float
    deadline: float = math.inf
    max_iter: int | None = None
    threads: int | None = None
    seed: int = 1
    pace: Callable[[], Pace] = unknown
    within: Deadline | None = None

    def paced(self, rows: Rows, vectors: int = 1) -> Budget:
        """Return the budget with the pace of passes over these rows, and with time reserved for the proof.

        Reserved is what the proof needs beyond the overrun that is allowed. The proof is about this number of `vectors` at once.
        The pace is measured here only if the proof may need some of the limit, and otherwise when it is first needed.
        """
        limit = self.deadline - self.started
        if math.isinf(limit) or self.spent or self.pace is not unknown or not Pace.matters(rows.n, rows.d):
            return self  # nothing to measure, or no time for it
        measure = partial(_measured, rows, time.perf_counter() - self.started)
        overrun = _allowed_overrun(limit)
        if PROOF_PASSES * (SLOW_ENTRY * rows.entries * vectors + ON_HOST * rows.n) <= overrun:
            return replace(self, pace=measure, within=self.time)
        pace = measure()
        reserve = min(MAX_SHARE_FOR_PROOF * limit, max(0.0, PROOF_PASSES * pace.entry * rows.entries * vectors - overrun))
        return replace(self, deadline=self.deadline - reserve, pace=lambda: pace, within=self.time)

    @cached_property
    def time(self) -> Deadline:
        """The deadline as an object that says whether it leaves time for some work."""
        return Deadline(self.deadline, self.pace, self.within)

    @cached_property
    def time_to_prove(self) -> Deadline:
        """The deadline of a last step and its proof, which may end a little later than the search."""
        return Deadline(self._latest, self.pace, self.time)

    @property
    def _latest(self) -> float:
        return self.deadline + _allowed_overrun(self.deadline - self.started)

    @property
    def spent(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() >= self.deadline

    @property
    def overrun(self) -> bool:
        """Whether the time is up by more than is allowed for the end of a proof."""
        return time.perf_counter() >= self._latest

    @property
    def short(self) -> bool:
        """Whether the time is up, or was too short for some work that a finder asked about."""
        return self.spent or self.time.refused


@dataclass(frozen=True, eq=False)
class Play:
    """How a game is played, by the finders that play one.

    `method` is the `Method`, and `auto` tells whether it was chosen automatically. `start` is the p to start from, if any.
    `watch` is called with the `Moment` of each round, and `checkpoint` is the file of the run. `work` is the number of
    multiplications that may be spent, about, after the finders of the sign have not decided it.
    """

    method: Any = None
    auto: bool = True
    start: Array | None = None
    watch: Callable[[Any], object] | None = None
    checkpoint: Any = None
    work: float = math.inf


@dataclass(frozen=True, eq=False)
class Subject:
    """What a question is about: the margin of one problem, and the rows in the forms that finders need.

    `margin` defines the margin: intercept, norm, nu, weights and perturbations. `threads` is how many the passes may use.
    """

    problem: Problem
    margin: Margin
    threads: int | None = None

    @cached_property
    def kept(self) -> Array | slice:
        """The rows that count, which are those of positive weight."""
        weights = self.margin.weights
        return slice(None) if weights is None or weights.all() else np.flatnonzero(weights)

    @cached_property
    def counted(self) -> Problem:
        """The problem with only the rows that count, which is what finders see."""
        if isinstance(self.kept, slice):
            return self.problem
        self.problem.require_finite()  # before rows are renumbered, so that an error names the row as given
        return self.problem.part(self.kept)

    @cached_property
    def rows(self) -> Rows:
        """The signed rows of the game for the margin, with a column of ones only if b counts in the norm.

        Their passes are counted in the answer. The rows for the sign are `unit_rows`.
        """
        problem, margin = self.counted, self.margin
        return Rows(problem.storage, problem.signs, constant=margin.intercept.column, threads=self.threads)

    @cached_property
    def radius(self) -> float:
        """The largest norm of a row; an InputError if products with such rows would leave the range of float64. One pass."""
        return self.rows.playable_radius(self.margin.norm)

    @cached_property
    def unit_rows(self) -> UnitRows:
        """The signed rows for the sign, with a column of ones if there is an intercept, divided by their largest norm.

        Raises an InputError if that norm is too small or too large for float64 products, which ends a finder of the sign.
        """
        problem, exists = self.counted, self.margin.intercept.exists
        A = Rows(problem.storage, problem.signs, constant=exists, threads=self.threads)
        if A.in_memory:
            with np.errstate(over="ignore"):
                squares = np.asarray(problem.X.norms**2 + exists)  # proofs need the same norms
        R = math.sqrt(float(np.max(squares))) if A.in_memory else A.radius()
        check_radius(R)
        return UnitRows(A.scaled(1 / R), R, (lambda: squares) if A.in_memory else A.squares)

    @cached_property
    def p_set(self) -> Simplex:
        """The set of allowed p over the rows that count."""
        margin, signs = self.margin, self.counted.signs
        caps = None
        if margin.nu is not None:
            c = np.ones(1) if margin.weights is None else margin.weights[self.kept]
            total = margin.nu * (float(len(signs)) if margin.weights is None else near_sum(c))
            with np.errstate(over="ignore"):
                caps = np.minimum(c / total, 1.0) if total > 0 else np.ones(1)  # a cap of 1 is no restriction
            caps = caps if len(caps) == len(signs) else np.full(len(signs), caps[0])
        return Simplex(len(signs), caps=caps, halves=margin.intercept.group_of_row(signs))

    @cached_property
    def kept_in_place(self) -> Any:
        """The rows that count, as vectors are indexed with that are where the blocks of X are."""
        return self.kept if isinstance(self.kept, slice) else self.problem.storage.to_blocks(self.kept)

    @cached_property
    def p_set_in_place(self) -> Simplex:
        """The same set for vectors where the blocks of X are."""
        storage = self.counted.storage
        return self.p_set.placed(storage.to_blocks) if storage.proves_on_device else self.p_set

    def over_all_rows(self, p: Any) -> Any:
        """Return a vector over all rows from one over the rows that count, with 0 for the others."""
        if isinstance(self.kept, slice):
            return p
        whole = namespace(p).zeros(self.problem.X.n, dtype=p.dtype, device=p.device)
        whole[self.kept if isinstance(p, np.ndarray) else self.kept_in_place] = p
        return whole


@dataclass(frozen=True, eq=False)
class Question:
    """A question about the rows of one problem.

    `tol` is the relative width at which an interval is narrow enough. `origin` is the question that this one was derived from by
    scaling or moving its rows, if any.
    """

    about: Subject
    asks: Asks
    budget: Budget
    tol: float = 0.0
    play: Play = Play()
    origin: Question | None = None
    _shared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    vectors = 1

    @property
    def sign_alone(self) -> bool:
        """Whether only a plane with every row strictly on its side answers the question, whatever its margin."""
        return self.asks is not Asks.WIDTH

    def shared(self, make: Callable[[Question], T]) -> T:
        """Return make(self), computed once for all finders that need it."""
        if make not in self._shared:
            self._shared[make] = make(self)
        found: T = self._shared[make]
        return found

    def evidence(self) -> Evidence:
        """Return the evidence before anything is proved."""
        from gordan.ledger.evidence import Evidence  # here because evidence is about questions

        return Evidence(self)

    def derived(self, problem: Problem, margin: Margin) -> Question:
        """Return the same question about rows that are these ones scaled or moved."""
        return replace(self, about=Subject(problem, margin, self.about.threads), origin=self)

    # ---- what the question is about ---------------------------------------------------------------------------------

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.about.problem

    @property
    def margin(self) -> Margin:
        """The margin of the problem."""
        return self.about.margin

    @property
    def kept(self) -> Array | slice:
        """The rows that count (`Subject.kept`)."""
        return self.about.kept

    @property
    def counted(self) -> Problem:
        """The problem with only the rows that count, which is what finders see."""
        return self.about.counted

    @property
    def rows(self) -> Rows:
        """The signed rows of the game for the margin (`Subject.rows`)."""
        return self.about.rows

    @property
    def radius(self) -> float:
        """The largest norm of a row (`Subject.radius`)."""
        return self.about.radius

    @property
    def unit_rows(self) -> UnitRows:
        """The signed rows for the sign (`Subject.unit_rows`)."""
        return self.about.unit_rows

    @property
    def p_set(self) -> Simplex:
        """The set of allowed p over the rows that count."""
        return self.about.p_set

    def over_all_rows(self, p: Any) -> Any:
        """Return a vector over all rows from one over the rows that count, with 0 for the others."""
        return self.about.over_all_rows(p)


class Answerable(Protocol[E_co]):
    """What the loop that asks the finders needs of a question; E is what is proved about it."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def asks(self) -> Asks:
        """What the question is about."""

    @property
    def budget(self) -> Budget:
        """How much effort the answer may cost."""

    @property
    def rows(self) -> Rows:
        """The rows that are passed over."""

    @property
    def vectors(self) -> int:
        """The number of vectors that are proved at once."""

    def evidence(self) -> E_co:
        """Return the evidence before anything is proved."""


Q = TypeVar("Q", bound=Answerable[Any])


def paced(question: Q) -> Q:
    """Return the question with its budget for the pace of passes over its rows.

    What the question is about does not depend on the deadline, and is kept with all that was computed for it.
    """
    budget = question.budget.paced(question.rows, question.vectors)
    return question if budget is question.budget else replace(question, budget=budget)


class Cancelling(NamedTuple):
    """Rows that may cancel with positive weights near these, and the relations between columns that their proof needs."""

    rows: Array
    weights: Array
    dependent: tuple[Relation, ...] = ()


class ProposedCone(Protocol):
    """A candidate for the cone of weak separators {w : A w ≥ 0}: its kind, a w in it, and why no other rows can be strict."""

    @property
    def p(self) -> dict[int, int] | None:
        """Integer weights by row, whose rows cancel and span the rows that are not strict; None if a witness proves this."""

    @property
    def signs(self) -> Array:
        """The signs of A w."""

    @property
    def kind(self) -> str:
        """The kind of separation: "complete", "quasi-complete" or "overlap"."""

    @property
    def plane(self) -> tuple[list[int], int]:
        """A plane with integers w, b in the relative interior of the cone."""


@dataclass(frozen=True, eq=False)
class Cost:
    """What it cost to find a proposal, as far as that is counted: the trace of a run, and rounds and passes."""

    trace: Trace | None = None
    rounds: int = 0
    passes: float = 0.0


@dataclass(frozen=True, eq=False)
class Proposal:
    """Something that a finder has found and that may be proved: a plane, weights that bound the margin, a witness or a cone.

    Vectors over rows are over the rows that count. If b is None, the plane is put midway between the classes. `witness` has
    exact integer weights by row, and `cancelling` rows whose float weights may prove that exact ones exist. `smoothing` is the
    smoothing parameter of a hinge whose weights follow from the plane. `suspects` are rows whose convex hull may contain 0, for
    finders that decide this exactly. `independent` are columns that are independent and on which the others depend. `stopped`
    tells whether Ctrl-C or a callback has ended the search, after which no other proposal follows.
    """

    w: Array | None = None
    b: Any = None
    p: Array | None = None
    witness: dict[int, int] | None = None
    cancelling: Cancelling | None = None
    suspects: Array | None = None
    independent: tuple[int, ...] | None = None
    cone: ProposedCone | None = None
    smoothing: float | None = None
    cost: Cost = Cost()
    stopped: bool = False
