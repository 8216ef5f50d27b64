"""What a named method is, and the list of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, NamedTuple, TypeVar

from gordan.arrays import Array, is_number
from gordan.dynamics import Form
from gordan.errors import InputError, did_you_mean, one_of
from gordan.geometry import Simplex
from gordan.rows import Rows

# The largest p of the regularized games: beyond q - 1 loses its digits, and nothing is gained.
MOST_NORM = 1e6


class Moves(NamedTuple):
    """How far the players have moved until round T, in the sums that regret bounds are stated in.

    `p` is Σ‖p_t - p_{t-1}‖₁², `w` is Σ t(t-1)/4·‖w_t - w_{t-1}‖₂², `scores` is Σ t²/8·‖A(w_t - w_{t-1})‖_∞².
    """

    p: float
    w: float
    scores: float


class Regrets(NamedTuple):
    """Upper bounds for the regret of each player, and for both together; infinite where the theory states none."""

    w: float = math.inf
    p: float = math.inf
    both: float = math.inf


@dataclass(frozen=True)
class Guarantee:
    """What the theorem promises, for rows of norm at most 1. D is log n, or what takes its place (`Simplex.diameter`).

    `gap(t, D)` bounds max_w g(w, p̄_t) - m(w̄_t); `margin(t, D, gamma)` is a lower bound for the normalized margin of the
    output after t rounds; `rounds(D, gamma)` a number of rounds after which that margin is positive. `upper(t)` bounds
    ‖Aᵀp̄_t‖_p of a method that plays no game but counts mistakes, as long as it makes them; `unseparated(t)` that of p_t as long
    as no margin has been positive. `regrets(D, moves)` bounds the regrets after any round, `length(t, gamma)` is a lower bound
    for ‖w‖ of the output. None where the theory gives none.
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
        """The column `bound` of a trace: `gap`, else `upper`."""
        upper = self.upper
        return self.gap if upper is None else lambda t, D: upper(t)


@dataclass(frozen=True)
class Method:
    """A method with its options chosen: how to build its form on given rows, its guarantee and its cost.

    `passes` is the cost of a round in passes over the data (without caps, which need one more per response). `noisy`: it plays
    for the margin under noise, which is another one than that of the data. `plain` says why it takes neither caps nor halves.
    """

    name: str
    form: str
    norm: float
    build: Callable[[Rows, Simplex, Array], Form]
    guarantee: Guarantee
    passes: float
    noisy: bool = False
    plain: str | None = None

    def on(self, rows: Rows, p_set: Simplex, p0: Array) -> Form:
        """The method on these rows; refused on a simplex with caps or halves that it does not know."""
        if self.plain is not None and (p_set.caps is not None or p_set.halves is not None):
            raise InputError(
                f"{self.name} supports neither nu nor a free intercept: {self.plain}; "
                "use an accelerated method, or intercept 'penalized' or 'none'"
            )
        return self.build(rows, p_set, p0)


@dataclass(frozen=True)
class Entry:
    """A line of the registry. Calling it with options gives a `Method`; without, the default one."""

    name: str
    factory: Callable[..., Method]
    reference: str
    forms: tuple[str, ...]
    summary: str

    def __call__(self, **options: Any) -> Method:
        """The method with these options, by the name that it is registered under."""
        return replace(self.factory(**options), name=self.name)

    @property
    def takes_norm(self) -> bool:
        """Whether the norm p of feature space is one of its options."""
        return "p" in signature(self.factory).parameters

    def for_norm(self, norm: float, **options: Any) -> Method:
        """The method for this norm, where it can be told; else the one for its own."""
        if not self.takes_norm:
            return self(**options)
        try:
            return self(p=norm, **options)
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None


_entries: dict[str, Entry] = {}
# What is registered keeps its type: options that it does not have are refused by a type checker as well.
F = TypeVar("F", bound=Callable[..., Method])


def register(name: str, *, reference: str, forms: tuple[str, ...]) -> Callable[[F], F]:
    """Decorator: put a function that makes a `Method` into the registry under `name`. The first form is the default."""

    def add(factory: F) -> F:
        if name in _entries:
            raise InputError(f"a method named {name!r} is registered already")
        summary = (factory.__doc__ or "").strip().split("\n")[0]
        _entries[name] = Entry(name, factory, reference, forms, summary)
        return factory

    return add


def names() -> list[str]:
    """All registered names."""
    return list(_entries)


def get(name: str) -> Entry:
    """The entry of that name."""
    if not isinstance(name, str) or name not in _entries:
        hint = did_you_mean(name, _entries) or f"choose one of {', '.join(_entries)}"
        raise InputError(f"there is no method {name!r}; {hint}")
    return _entries[name]


def choose(option: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse a value that is not among those allowed."""
    if not any(isinstance(value, type(item)) and value == item for item in allowed):
        raise InputError(f"{option} is {value!r}; {one_of(value, allowed)}")


def once_positive(margin: float) -> float:
    """A bound on γ(w) with ‖w‖ ≤ 1 as one on γ(w)/‖w‖: the same once it is positive, and silent (-∞) before."""
    return margin if margin >= 0 else -math.inf


def check_norm(p: Any, least: float = 2.0, most: float = MOST_NORM) -> float:
    """p as a float, refused outside least ≤ p ≤ most."""
    if not (is_number(p) and least <= p <= most):
        top = "< 2" if most < 2 else f"<= {most:g}".replace("e+06", "e6 (p = 2 log d is close to inf already)")
        raise InputError(f"the norm p is {p!r}; it must be a number with {least:g} <= p {top}")
    return float(p)


def root_margin(gap: Callable[[int, float], float]) -> Callable[[int, float, float], float]:
    """√(γ² - 2·gap): what a gap of the regularized p-norm game promises for the normalized margin; silent (-∞) before."""

    def margin(t: int, D: float, gamma: float) -> float:
        square = gamma**2 - 2 * gap(t, D)
        return math.sqrt(square) if square > 0 else -math.inf

    return margin
