"""How long something takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def timed(work: Callable[[], T], clock: Callable[[], float] = time.perf_counter) -> tuple[float, T]:
    """The seconds that it takes, and its answer."""
    begin = clock()
    answer = work()
    return clock() - begin, answer


def median_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Of so many runs."""
    return statistics.median(timed(work)[0] for _ in range(repeats))
