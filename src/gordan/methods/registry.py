"""The definition of a named method, and the registry of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple, TypeVar

from gordan.arrays import Array, is_number
from gordan.arrays import choose as choose  # for the files of the methods
from gordan.deadlines import Deadline
from gordan.dynamics import Form
from gordan.errors import InputError, did_you_mean, input_errors
from gordan.geometry import Simplex
from gordan.rows import Rows

# The largest p of the regularized games: beyond, q - 1 loses its digits and nothing is gained.
MAX_NORM = 1e6


class Moves(NamedTuple):
    """How far the players have moved up to round T, as the sums in which regret bounds are stated.

    `p` is Σ‖p_t - p_{t-1}‖₁², `w` is Σ t(t-1)/4·‖w_t - w_{t-1}‖₂², `scores` is Σ t²/8·‖A(w_t - w_{t-1})‖_∞².
    """

    p: float
    w: float
    scores: float


class Regrets(NamedTuple):
    """Upper bounds on the regret of each player and of both together; infinite where the theory states none."""

    w: float = math.inf
    p: float = math.inf
    both: float = math.inf


@dataclass(frozen=True)
class Guarantee:
    """What the theorem guarantees for rows of norm at most 1; D is log n, or what takes its place (`Simplex.diameter`).

    `gap(t, D)` bounds max_w g(w, p̄_t) - m(w̄_t); `margin(t, D, gamma)` is a lower bound on the normalized margin of the output
    after t rounds; `rounds(D, gamma)` is a number of rounds after which that margin is positive. `upper(t)` bounds ‖Aᵀp̄_t‖_p of
    a method that plays no game but counts mistakes, as long as it makes them; `unseparated(t)` bounds that of p_t as long as no
    margin has been positive. `regrets(D, moves)` bounds the regrets after any round; `length(t, gamma)` is a lower bound on ‖w‖
    of the output. Each is None if the theory gives none.
    """

    statement: str
    gap: Callable[[int, float], float] | None = None
    margin: Callable[[int, float, float], float] | None = None
    rounds: Callable[[float, float], float] | None = None
    upper: Callable[[int], float] | None = None
    unseparated: Callable[[int], float] | None = None
    regrets: Callable[[float, Moves], Regrets] | None = None
    length: Callable[[int, float], float] | None = None

    @property
    def bound(self) -> Callable[[int, float], float] | None:
        """The column `bound` of a trace: `upper` if there is one, else `gap`."""
        upper = self.upper
        return self.gap if upper is None else lambda t, D: upper(t)


class Limits(NamedTuple):
    """What a search allows the rounds of a form, beside their number.

    A round that may take long ends at the `deadline`, and its game need not be solved more precisely than `tol` asks for. `doubt`
    is called with the multiplications of a large first game, and returns whether not to play it.
    """

    deadline: Deadline
    tol: float
    doubt: Callable[[float], bool] | None


class InnerGames(NamedTuple):
    """What is particular to methods that solve a game in each round.

    `most_rounds` is the number of rounds after which nothing is left to gain. `within` returns the form with limits that its
    rounds keep. `working_set` tells whether the games are about a set of rows that must fit in memory.
    """

    most_rounds: int
    within: Callable[[Any, Limits], Form]
    working_set: bool = False


@dataclass(frozen=True)
class Method:
    """A method with its options chosen: how to build its form on given rows, its guarantee and its cost.

    `passes` is the cost of a round in passes over the data (without caps, which need one more per response). `noisy` methods play
    for the margin under noise, which differs from that of the data. `plain` says why the method supports neither caps nor halves.
    `losses` tells whether p may be a `LossWeights`, whose cost and regularizer the p-player then has. `resident` tells whether
    vectors over rows may be tensors: the form only adds them, multiplies them by numbers, and passes them to rows, sets and
    learners. `sorts` tells whether it needs nothing of caps but `Simplex.lowest`, which sorts tensors as well. `games` is for
    methods that solve a game in each round.
    """

    name: str
    form: str
    norm: float
    build: Callable[[Rows, Simplex, Array], Form]
    guarantee: Guarantee
    passes: float
    noisy: bool = False
    plain: str | None = None
    losses: bool = False
    resident: bool = False
    sorts: bool = False
    games: InnerGames | None = None

    @property
    def working_set(self) -> bool:
        """Whether it solves games about a set of rows that must fit in memory."""
        return self.games is not None and self.games.working_set

    def on(self, rows: Rows, p_set: Simplex, p0: Array | None) -> Form:
        """Return the form of the method on these rows, or raise an InputError if it does not support caps or halves.

        p_0 is the centre of the set if None; it is then made where vectors over rows are.
        """
        if self.plain is not None and (p_set.caps is not None or p_set.halves is not None):
            raise InputError(
                f"{self.name} supports neither caps (nu) nor halves (a free intercept): {self.plain}; "
                "use an accelerated method, or leave them out (intercept 'penalized' or 'none')"
            )
        if rows.resident and self.resident:
            p_set, p0 = p_set.placed(rows.to_storage_f64), None if p0 is None else rows.to_storage_f64(p0)
        return self.build(rows, p_set, p_set.centre if p0 is None else p0)

    def placed(self, rows: Rows, p_set: Any, *, checkpoint: bool) -> Rows:
        """Return the rows, with vectors over rows left on a device if the form can do so.

        A `checkpoint` holds them, and the learners need sorted scores for caps, so that both keep them on the host.
        """
        stays = self.resident and isinstance(p_set, Simplex) and (p_set.caps is None or self.sorts) and not checkpoint
        return rows.residing() if stays and rows.storage.on_device else rows


@dataclass(frozen=True)
class Entry:
    """An entry of the registry; calling it with options returns a `Method`, without options the default one."""

    name: str
    factory: Callable[..., Method]
    reference: str
    forms: tuple[str, ...]
    summary: str

    def __call__(self, **options: Any) -> Method:
        """Return the method with these options, under its registered name."""
        return replace(self.factory(**options), name=self.name)

    @property
    def takes_norm(self) -> bool:
        """Whether the norm p of feature space is one of its options."""
        return "p" in signature(self.factory).parameters

    def for_norm(self, norm: float, **options: Any) -> Method:
        """Return the method for this norm if it has such an option, else for its own norm."""
        if not self.takes_norm:
            return self(**options)
        with input_errors(self.name, InputError):
            return self(p=norm, **options)


_entries: dict[str, Entry] = {}
# Modules later in the import order that register a method. They are imported when the registry is read, because `import gordan`
# imports nothing before it is needed.
_LATER_MODULES = ("gordan.solve.double_oracle",)
# A registered function keeps its type, so that a type checker refuses options that it does not have.
F = TypeVar("F", bound=Callable[..., Method])


def register(name: str, *, reference: str, forms: tuple[str, ...]) -> Callable[[F], F]:
    """Return a decorator that registers a function returning a `Method` under `name`; the first form is the default."""

    def add(factory: F) -> F:
        taken = _entries if str(factory.__module__).startswith("gordan.") else _all_entries()
        if name in taken:
            raise InputError(f"a method named {name!r} is registered already")
        summary = (factory.__doc__ or "").strip().split("\n")[0]
        _entries[name] = Entry(name, factory, reference, forms, summary)
        return factory

    return add


def names() -> list[str]:
    """Return all registered names."""
    return list(_all_entries())


def get(name: str) -> Entry:
    """Return the entry of this name, or raise an InputError."""
    entries = _entries if isinstance(name, str) and name in _entries else _all_entries()
    if not isinstance(name, str) or name not in entries:
        hint = did_you_mean(name, entries) or f"choose one of {', '.join(entries)}"
        raise InputError(f"there is no method {name!r}; {hint}")
    return entries[name]


def _all_entries() -> dict[str, Entry]:
    """Return the entries by name, those of later modules included."""
    for module in _LATER_MODULES:
        import_module(module)
    return _entries


def once_positive(margin: float) -> float:
    """Return a lower bound on γ(w)/‖w‖ from one on γ(w) with ‖w‖ ≤ 1: the same if it is positive, else -∞."""
    return margin if margin >= 0 else -math.inf


def check_norm(p: Any, least: float = 2.0, most: float = MAX_NORM) -> float:
    """Return p as a float, or raise an InputError unless least ≤ p ≤ most."""
    if not (is_number(p) and least <= p <= most):
        top = "< 2" if most < 2 else f"<= {most:g}".replace("e+06", "e6 (p = 2 log d is close to inf already)")
        raise InputError(f"the norm p is {p!r}; it must be a number with {least:g} <= p {top}")
    return float(p)


def root_margin(gap: Callable[[int, float], float]) -> Callable[[int, float, float], float]:
    """Return the bound √(γ² - 2·gap) on the normalized margin that follows from the gap of the regularized p-norm game.

    It is -∞ while γ² ≤ 2·gap.
    """

    def margin(t: int, D: float, gamma: float) -> float:
        square = gamma**2 - 2 * gap(t, D)
        return math.sqrt(square) if square > 0 else -math.inf

    return margin
