"""The binary problems that a classifier of several classes solves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gordan.arrays import Array
from gordan.certificates.matrix import Matrix
from gordan.certificates.problem import Problem, read_labels
from gordan.errors import InputError, input_errors
from gordan.estimators.models import IN_PYTHON, Words
from gordan.intercepts import Intercept
from gordan.io.model import Kind, pairs
from gordan.io.model import problems as number_of_problems
from gordan.trace import Moment
from gordan.verdicts.weights import (
    class_factors,
    only_class_with_weight,
    products_of_weights,
    require_classes_with_weight,
    row_weights,
    weight_factors,
)

if TYPE_CHECKING:
    from gordan.estimators.fitting import Fitting
    from gordan.estimators.least_loss import LossFitting


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a classifier is fitted to: X as stored, the labels y, and the classes in order.

    Classes whose rows all have weight zero are left out, as if these rows were removed. X and y have them still: `counted` are
    the positions of the other rows, or None if no class was left out. If only one class has weight, one other class is kept, and
    `only` is the number of the one that has weight: there is nothing to separate, and it is to be predicted for all rows.

    `weights` are the products of the `sample` weights with the class weights, which are the `factors`. For multilabel y, where
    class weights differ between columns, `weights` are without them, and `factors` are those of 0 and 1, or None if they are
    balanced in each column.
    """

    X: Any
    y: Array
    classes: Array
    weights: Array | None
    sample: Any = None
    factors: Array | None = None
    counted: Array | None = None
    only: int | None = None

    @staticmethod
    def of(
        X: Any, y: Array, classes: Array, which: Array, sample_weight: Any, class_weight: Any, one_will_do: bool = False
    ) -> TrainingData:
        """Return the data with checked weights; `which` has the number of the class of each row, or is the table of labels.

        Two classes with weight are needed, unless `one_will_do`.
        """
        labels, rows, only = classes.tolist(), None, None
        if which.ndim == 2:
            by_label = class_weight is not None and not (isinstance(class_weight, str) and class_weight == "balanced")
            factors = class_factors(class_weight, [False, True], np.ones(2)) if by_label else None
            weights, _ = weight_factors(sample_weight, None, labels, which[:, 0])
        else:
            sample, factors = weight_factors(sample_weight, class_weight, labels, which)
            weights = products_of_weights(sample, factors, which)
            only = only_class_with_weight(sample, which) if one_will_do else None
            if only is None:
                counted = require_classes_with_weight(weights, labels, which, 2)
            else:
                other = int(only == 0)
                counted, only = np.isin(np.arange(len(labels)), (only, other)), int(only > other)
            if not counted.all():
                classes, factors = classes[counted], None if factors is None else factors[counted]
                rows = np.flatnonzero(counted[which])
        return TrainingData(X, y, classes, weights, sample_weight, factors, rows, only)


@dataclass(frozen=True, eq=False)
class FitTask:
    """What a fit of either classifier is given beside its parameters: the data, its limits, and whom it tells about its progress.

    `deadline` is a time of `time.perf_counter`, and `seed` that of `random_state`. `watch` is a callback of `maximize_margin` and
    `minimize_loss`, and `words` are those of messages. `checkpoint` is the file of a run; if there are several problems, the
    number of the problem is appended to its name.
    """

    data: TrainingData
    deadline: float
    seed: int | None = None
    threads: int | None = None
    watch: Callable[[Moment], object] | None = None
    words: Words = IN_PYTHON
    checkpoint: Path | None = None

    def checkpoint_of(self, kind: Kind, k: int, end: str = "") -> Path | None:
        """Return the checkpoint file of problem k of a model of this kind; `end` is appended to its name."""
        if self.checkpoint is None:
            return None
        number = "" if number_of_problems(kind, len(self.data.classes)) == 1 else f".{k}"
        return self.checkpoint.with_name(f"{self.checkpoint.name}{number}{end}")


@dataclass(frozen=True, eq=False)
class Binary:
    """One problem with two classes, or with all classes for the multinomial loss.

    `name` describes it in words; `label` is the class on the positive side (None for all classes) and `other` the one against it
    (None: all others).
    `rows` are its rows of X (None: all); `labels`, `positive` and `weights` have one entry for each of them, and `positive` is
    True where the label is that of the positive side.
    """

    name: str
    label: Any
    other: Any
    labels: Array
    positive: Array
    weights: Array | None
    rows: Array | None

    @property
    def is_whole(self) -> bool:
        """Whether it is about X and y themselves, and is not one problem of several."""
        return self.rows is None and self.against_rest is None

    @property
    def against_rest(self) -> str | None:
        """The name of the class that is set against all others; None if there is no such class."""
        return None if self.label is None or self.other is not None else str(self.label)

    @property
    def naming_errors(self) -> AbstractContextManager[None]:
        """A context in which the message of an InputError begins with the name of this problem, if it is one of several."""
        return nullcontext() if self.is_whole else input_errors(self.name, InputError)

    def problem(self, X: Any) -> Problem:
        """Return the problem for proofs; X is the storage of its rows."""
        classes = [False, True] if self.other is None else read_labels([self.other, self.label], 2)[0]
        return Problem(Matrix(X), np.where(self.positive, np.int8(1), np.int8(-1)), tuple(classes)).in_memory_if_small()

    def rows_of(self, X: Any) -> Any:
        """Return the rows of X that this problem is about (a copy unless it is about all), or X if it has no others."""
        return X if self.rows is None or X.n == len(self.rows) else X.part(self.rows)

    @property
    def totals(self) -> tuple[float, float]:
        """The total weights C₊ and C₋ of the two classes."""
        c = np.ones(len(self.positive)) if self.weights is None else self.weights
        return math.fsum(c[self.positive]), math.fsum(c[~self.positive])

    def largest_nu(self, intercept: Intercept) -> float:
        """Return the largest nu for which weights p exist."""
        return float(intercept.largest_nu(*self.totals))


def binary_problems(fitting: Fitting | LossFitting) -> Iterator[Binary]:
    """Iterate over the binary problems of a fit, in the order of the planes of a `gordan.io.Model`.

    The weights include the class weights, except for multilabel y, where these are about having a label or not and differ between
    columns.
    """
    data, kind, word, class_weight = fitting.task.data, fitting.kind, fitting.task.words.label, fitting.options.class_weight
    y, weights, classes = data.y, data.weights, data.classes.tolist()
    if kind == "multinomial":  # one problem for all classes
        labels = y if data.counted is None else y[data.counted]
        c = weights if weights is None or data.counted is None else weights[data.counted]
        yield Binary("all classes", None, None, labels, labels == classes[-1], c, data.counted)
        return
    if kind == "multilabel":  # y has a column for each label, which is True where the row has that label
        for label, own in zip(classes, y.T, strict=True):
            c = weights if class_weight is None else row_weights(weights, class_weight, [False, True], own.astype(np.intp))
            yield Binary(f"label {word(label)}", label, None, own, own, c, None)
        return
    if kind == "one-vs-rest":
        for label in classes:
            own = y == label
            yield Binary(f"{word(label)} against the rest", label, None, own, own, weights, None)
        return
    for i, j in pairs(len(classes)):
        other, label = classes[i], classes[j]
        rows = data.counted if kind == "binary" else np.flatnonzero((y == other) | (y == label))
        labels = y if rows is None else y[rows]
        c = weights if weights is None or rows is None else weights[rows]
        yield Binary(f"{word(label)} against {word(other)}", label, other, labels, labels == label, c, rows)
