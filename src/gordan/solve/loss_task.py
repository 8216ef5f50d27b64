"""The task of minimizing a loss in floats, as all of its finders see it, and what they find."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from gordan.arrays import Array
from gordan.checkpoint import checkpointed
from gordan.deadlines import UNLIMITED, Deadline
from gordan.losses import Loss
from gordan.rows import Rows
from gordan.solve.loss_newton import PART, Interrupted, steps_for_a_factor


@dataclass(frozen=True)
class Tuning:
    """Constants of the finders; `benchmarks/losses.py` shows what each choice costs."""

    # The gap in floats is brought to this share of the tolerance, because the proved gap is a little wider.
    share: float = 0.8
    # A smaller gap in floats may narrow a proved gap if it is at least this share of it.
    proved: float = 0.1
    most_steps: int = 500
    # After this many steps without a smaller gap, or a value smaller by `progress`, rounding is taken to stop the method.
    patience: int = 6
    progress: float = 1e-6
    # A gap below this share of the value is lost in the rounding of the value.
    lost: float = 1e-16
    # At a gap of this share of the value w has all the digits that it can have.
    settled: float = 1e-26
    # The squared hinge of dense rows that a plane nearly separates: if the relative gap is above one of these after so many
    # steps, it is solved again with shares of C first (`loss_newton`).
    continued: tuple[tuple[int, float], ...] = ((4, 1e4), (8, 1e3), (40, 10.0))
    # How many sets of rows with weight are tried, and how far below 1 rounding alone may leave a score.
    supports: int = 100
    lost_of_one: float = 1e-14
    # A start that led to no proved interval narrower than this is dropped.
    astray: float = 0.1


TUNING = Tuning()


@dataclass(frozen=True, eq=False)
class Task:
    """A loss to be minimized: the signed rows, with a column of ones if there is an intercept, and C_i for each row."""

    rows: Rows
    c: Array
    loss: Loss
    free: bool
    tol: float
    time: Deadline = UNLIMITED
    seed: int = 1
    which: Array | None = None
    """The class of each row, if the loss is multinomial."""
    max_iter: int | None = None
    alpha: Array | None = None
    """Weights of the rows to start from, for methods that use them."""
    partial: bool = False
    """Whether the rows are a part that is solved first."""

    @property
    def classes(self) -> set[int]:
        """The classes that have rows."""
        return {*np.unique(self.rows.signs if self.which is None else self.which).tolist()}

    def part(self, i: Array) -> Task:
        """Return the task for these rows alone, with C_i increased to stand for all rows."""
        rows, which = self.rows.take(i), None if self.which is None else self.which[i]
        c, tol = self.c[i] * (self.rows.n / len(i)), max(PART.tol, self.tol)
        time = self.time.sooner(PART.share_of_time)
        return replace(self, rows=rows, c=c, tol=tol, time=time, which=which, alpha=None, partial=True)

    def weights(self, z: Array) -> Array:
        """Return the weights C a(z) of a smooth loss at scores z."""
        return np.asarray(self.c * self.loss.weight(z))

    def curvature(self, z: Array, alpha: Array) -> Array:
        """Return the second derivatives of the losses, by which these weights fall as z grows."""
        return np.asarray(self.c * self.loss.curvature(z, alpha / self.c))

    def after(self, steps: int) -> Task:
        """Return the task for a method that goes on after so many steps."""
        return self if self.max_iter is None else replace(self, max_iter=self.max_iter - steps)

    def value(self, w: Array, z: Array) -> float:
        """Return the value P of the plane w, whose scores are z."""
        v = w[:-1] if self.free else w
        return 0.5 * float(v @ v) + float(self.c @ self.loss.cost(z))

    def dual(self, alpha: Array, v: Array) -> float:
        """Return the dual value D of the weights α with Aᵀα = v; with a free b, Σ y α = 0 is taken for granted."""
        v = v[:-1] if self.free else v
        with np.errstate(invalid="ignore", divide="ignore"):
            paid = self.c @ self.loss.paid(np.where(self.c > 0, alpha / self.c, 0.0))
        return float(paid) - 0.5 * float(v @ v)

    def balanced_dual(self, alpha: Array, v: Array, w: Array) -> float:
        """Return D, reduced if Σ y α should be 0 and is not: P - D = ½‖w - v‖² + Σ C FY - b Σ y α, whose last term must be 0."""
        imbalance = float(w[-1]) * float(alpha @ self.rows.signs) if self.free else 0.0
        return self.dual(alpha, v) - imbalance - abs(imbalance)


@checkpointed("minimize_loss.found")
@dataclass(frozen=True, eq=False)
class Found:
    """A plane (w has b as its last entry if there is an intercept), weights, and the interval that they give in floats."""

    w: Array
    alpha: Array
    lower: float
    upper: float
    steps: int
    stated: bool = False
    """Whether the weights of a smooth loss are more than those that follow from the plane."""
    smoothing: float | None = None
    """The smoothing of the hinge, if its weights follow from the plane in that way."""
    unaided: bool = False
    """Whether conjugate gradients without a factorization found the plane."""

    @property
    def bracket_width(self) -> float:
        """(upper - lower)/upper."""
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0

    @property
    def width(self) -> float:
        """The width of the interval that a proof gives, whose lower end is at least 0; NaN counts as infinite."""
        width = self.upper - max(self.lower, 0.0)
        return width if width < math.inf else math.inf


Find = Callable[[Task, Array | None], Iterator[Found]]


def then(before: Found, steps: Iterator[Found]) -> Iterator[Found]:
    """Yield these steps, counted on from those before."""
    for found in steps:
        yield replace(found, steps=before.steps + found.steps)


def after(w: Array, steps: Iterator[Found]) -> Iterator[Found]:
    """Yield these steps from the plane w of a part of the rows, which is all that there is until the first of them."""
    try:
        yield from steps
    except KeyboardInterrupt:
        raise Interrupted(w) from None


def part_and_plane(task: Task, find: Callable[[Task], Iterator[Found]]) -> tuple[Task, Found] | None:
    """Return the task for a part of the rows and its plane if there are many rows per column, else None."""
    rows = task.rows
    if rows.n < PART.least_rows or rows.n < rows_per_column(task) * rows.d:
        return None
    i = PART.choose(rows, task.seed)
    part = task.part(i)
    if task.free and part.classes != task.classes:
        return None
    found: Found | None = None
    try:
        for found in find(part):
            if found.bracket_width <= part.tol:
                break
    except KeyboardInterrupt as stop:
        raise (stop if found is None else Interrupted(found.w)) from None
    assert found is not None
    task.rows.passes += part.rows.passes * len(i) / rows.n
    return part, found


def rows_per_column(task: Task) -> int:
    """Return the smallest number of rows per column with which a part of the rows is solved first."""
    if task.loss is Loss.HINGE:
        return PART.for_hinge
    rows = task.rows
    between = PART.rows_per_column * rows.d <= rows.n < PART.for_large_c * rows.d and not task.loss.several
    between = between and (rows.sparse or steps_for_a_factor(rows, rows.n) < PART.costly_factor)
    if not between:
        return PART.rows_per_column
    z = np.zeros(rows.n)
    curvature = float(np.mean(task.curvature(z, task.weights(z)) * rows.squares()))
    return PART.for_large_c if curvature > PART.small else PART.rows_per_column
