"""The arguments that `separate`, `maximize_margin` and `minimize_loss` share: their types, and the limits of a call.

The types are for overloads. A type checker infers the result for many label vectors if it knows that y has two axes, and that for
one vector otherwise.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

import numpy as np

from gordan.arrays import seconds_at_most, seed, whole_number_or_none
from gordan.ledger.question import Budget
from gordan.trace import Moment

LabelVector: TypeAlias = np.ndarray[tuple[int], Any]
LabelTable: TypeAlias = np.ndarray[tuple[int, int], Any] | Sequence[list[bool]] | Sequence[list[int]]


class SearchKeywords(TypedDict, total=False):
    """The keywords that all three functions take."""

    intercept: str
    tol: float
    max_iter: int | None
    time_limit: float | None
    random_state: Any
    device: str | None


class WeightedKeywords(SearchKeywords, total=False):
    """The keywords that `maximize_margin` and `minimize_loss` share."""

    sample_weight: Any
    class_weight: Mapping[Any, float] | str | None
    start: Any
    threads: int | None
    checkpoint: str | os.PathLike[str] | None
    callback: Callable[[Moment], object] | None


# The `method` that leaves the choice to gordan.
AUTO = "auto"


def is_auto(method: Any) -> bool:
    """Return whether this `method`, a name or a method with its options, leaves the choice to gordan."""
    return isinstance(method, str) and method == AUTO


def budget_of(max_iter: Any, time_limit: Any, random_state: Any, threads: Any = None) -> Budget:
    """Check the limits of a call, and return them as a budget whose time starts now."""
    limit, max_iter = seconds_at_most(time_limit), whole_number_or_none(max_iter, "max_iter")
    threads, started = whole_number_or_none(threads, "threads"), time.perf_counter()
    return Budget(started, started + limit, max_iter, threads, seed(random_state))
