"""Fitting a model file from a table, and predicting with one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gordan.cli.data import Data
from gordan.errors import InputError

if TYPE_CHECKING:
    from gordan.io import Model, Table
    from gordan.verdicts import MarginResult


@dataclass(frozen=True)
class Plane:
    """The result of one binary problem: `positive` against `rest`; and the checkpoint that it went on from, if it did."""

    positive: Any
    rest: Any
    result: MarginResult
    resumed: Path | None

    @property
    def told(self) -> str:
        """Which classes it is about, in words."""
        return f"{self.positive} against {self.rest}"


def fit(
    data: Data,
    options: dict[str, Any],
    time_limit: float | None,
    checkpoint: Path | None,
    begin: Callable[[str], bool],
    device: str | None = None,
) -> tuple[tuple[Any, ...], list[Plane]]:
    """The classes and a plane for two of them, or one for each of more against the rest.

    `begin` is told each problem before it is solved, and says whether to. An interrupted run ends the list. With a checkpoint
    each plane has its file, see `checkpoint_of`. X goes to `device` once for all problems.
    """
    from gordan.rows import stored
    from gordan.verdicts import maximize_margin

    classes = tuple(np.unique(data.y).tolist())
    problems = [(classes[1], classes[0], data.y)]
    if len(classes) > 2:
        problems = [(label, "the rest", data.y == label) for label in classes]
    planes: list[Plane] = []
    started = time.perf_counter()
    X = data.X if device is None else stored(data.X, device)
    for k, (positive, rest, y) in enumerate(problems):
        if not begin(data.told if len(problems) == 1 else f"{positive} against the rest"):
            break
        left = None if time_limit is None else max(1e-3, time_limit - (time.perf_counter() - started))
        file = None if checkpoint is None else checkpoint_of(checkpoint, k, len(problems))
        resumed = file if file is not None and file.exists() else None
        result = maximize_margin(X, y, time_limit=left, checkpoint=file, **options)
        planes.append(Plane(positive, rest, result, resumed))
        if planes[-1].result.status == "interrupted":
            break
    return classes, planes


def checkpoint_of(path: Path, k: int, count: int) -> Path:
    """The checkpoint of plane k: the file itself where there is but one plane, else with the number of the plane at its end."""
    return path if count == 1 else path.with_name(f"{path.name}.{k}")


def forget(checkpoint: Path, planes: list[Plane]) -> None:
    """Remove the checkpoints of a model that is written, if nothing is left to be done for it."""
    if all(plane.result.status in ("solved", "margin-below-tol") for plane in planes):
        for k in range(len(planes)):
            checkpoint_of(checkpoint, k, len(planes)).unlink(missing_ok=True)


def model_of(data: Data, classes: tuple[Any, ...], planes: list[Plane], certificates: bool) -> Model | None:
    """The model, or None where a plane is missing."""
    from gordan import __version__
    from gordan.io import Model

    results = [plane.result for plane in planes]
    if len(results) < (1 if len(classes) == 2 else len(classes)) or any(r.w is None for r in results):
        return None
    return Model(
        classes=classes,
        coef=np.array([r.w for r in results]),
        intercept=np.array([float(r.b or 0.0) for r in results]),
        kind="binary" if len(classes) == 2 else "one-vs-rest",
        margins=np.array([r.margin for r in results]),
        norm=results[0].norm,
        nu=None if results[0].nu is None else float(results[0].nu),
        intercept_kind=results[0].intercept,
        version=__version__,
        names=data.names,
        certificates=tuple(r.certificate.to_json() for r in results) if certificates else None,
    )


def read_for(model: Model, path: Path, label: str | None, unlabelled: bool) -> Table:
    """The table to predict, with the columns that the model knows: by name where both have names, else by position."""
    from gordan.io import read
    from gordan.io.reading import format_of

    named = model.names is not None and format_of(path) in ("csv", "tsv", "parquet")
    features: Any = model.names if named else model.coef.shape[1]
    if unlabelled and label is not None:
        raise InputError("--label names a label column and --unlabelled says that there is none; leave out one of them")
    return read(path, label=label, features=features, labelled=False if unlabelled else None)
