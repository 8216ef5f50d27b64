"""How long something takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """The seconds that it takes, and its answer."""
    begin = time.perf_counter()
    answer = work()
    return time.perf_counter() - begin, answer


def median_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Of so many runs."""
    return statistics.median(timed(work)[0] for _ in range(repeats))
