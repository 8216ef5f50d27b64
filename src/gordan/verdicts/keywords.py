"""Types for the overloads of `separate`, `maximize_margin` and `minimize_loss`: which labels, and which keywords they share.

A type checker infers the result for many label vectors if it knows that y has two axes, and that for one vector otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

import numpy as np

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
