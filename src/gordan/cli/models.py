"""`gordan fit` and `gordan predict`: a model file from a table, and labels from a model file."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import gordan
from gordan.cli.answers import headline, note, require_output, say, say_json, say_lines, say_witness, witness_plain
from gordan.cli.commands import ANSWERED, NO, OPEN, Interrupts, Saved, command, saved
from gordan.cli.data import Data, class_named, on_cluster, on_disk, read_data, tell
from gordan.cli.options import (
    Cluster,
    Device,
    Drop,
    File,
    Json,
    KeepIndex,
    Label,
    MemoryLimit,
    Positive,
    TimeLimit,
    WithIntercept,
    flag,
    method_names,
)
from gordan.cli.progress import Watch
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.io import Model, Table, read
from gordan.io.container import is_container
from gordan.io.model import planes as number_of_planes
from gordan.io.reading import format_of
from gordan.rows import stored
from gordan.statuses import Status
from gordan.verdicts.multiclass import binary_problems, model_of

if TYPE_CHECKING:
    from gordan.arrays import Array


# ---- fit --------------------------------------------------------------------------------------------------------------


@command(
    "gordan fit data.csv -o model.gordan",
    "gordan fit iris.csv -o iris.gordan --nu 0.6        three classes, soft margins",
    "gordan fit data.csv -o sparse.gordan --norm inf    few nonzero weights",
    "gordan fit big.npy -o big.gordan --tol 1e-3 --time-limit 600",
    "gordan fit big.npy -o big.gordan --checkpoint big.run    say it again after it was stopped",
)
def fit(
    file: File,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")],
    label: Label = None,
    drop: Drop = None,
    keep_index: KeepIndex = False,
    positive: Positive = None,
    norm: Annotated[float, typer.Option(help="Norm of feature space, from 2 to inf.")] = 2.0,
    nu: Annotated[float | None, typer.Option(help="Soft margin: at most this share of the rows is short of its margin.")] = None,
    intercept: WithIntercept = Intercept.FREE,
    tol: Annotated[float, typer.Option(help="Relative width of the proved bracket to stop at.")] = 1e-4,
    method: Annotated[str, typer.Option(help="auto, or a method by name.", autocompletion=method_names)] = "auto",
    max_iter: Annotated[int | None, typer.Option(min=1, help="Rounds at most.")] = None,
    time_limit: TimeLimit = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads at most; default: all cores.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Keep the run in this file, and go on from it if it is there (see exit code 75)."),
    ] = None,
    cluster: Cluster = None,
    memory_limit: MemoryLimit = None,
    device: Device = None,
    no_certificates: Annotated[bool, flag("--no-certificates", "Leave the proofs out of the model file.")] = False,
    as_json: Json = False,
) -> int:
    """Fit the plane of largest margin and write it to a model file.

    Of more than two classes each is separated from the rest. Ctrl-C, SIGTERM and the time limit keep the best plane so far.

    Exit code 1: not separable. 3: no plane found. Nothing is written then. 75: SIGTERM; with --checkpoint the same command goes
    on from there, and the checkpoint is removed once the model is complete.
    """
    require_output(output, file)
    require_output(checkpoint, file)
    with Interrupts() as interrupts, Watch(f"reading {file}", tol) as watch, on_cluster(cluster) as client:
        data = read_data(
            file, label, positive, drop=drop, keep_index=keep_index, multiclass=True, client=client, memory_limit=memory_limit
        )
        X = data.X if device is None else stored(data.X, device)  # once for all planes
        started = time.perf_counter()
        kind = "binary" if len(data.classes) == 2 else "one-vs-rest"
        planes: list[Fitted] = []
        for k, binary in enumerate(binary_problems(kind, data.y, data.classes, word=str)):
            if interrupts.pressed:
                break
            told = data.told if kind == "binary" else binary.name
            kept = checkpoint if kind == "binary" else numbered(checkpoint, k)
            resumed = kept is not None and kept.exists()
            watch.about(told, data.X)
            result = gordan.maximize_margin(
                X,
                binary.labels,
                norm=norm,
                nu=nu,
                intercept=str(intercept),
                method=method,
                tol=tol,
                max_iter=max_iter,
                time_limit=None if time_limit is None else max(1e-3, time_limit - (time.perf_counter() - started)),
                threads=threads,
                checkpoint=kept,
                callback=watch.moment if watch.visible else None,
            )
            planes.append(Fitted(binary.label, told, result, kept, resumed))
        watch.about("writing")
        model = _complete(kind, data, planes, nu, certificates=not no_certificates)
        written = Saved() if model is None else saved(output, model.save)
        if written.path is not None and not interrupts.pressed:
            forget_checkpoints(planes)
    if as_json:
        content = {"model": written.path, "classes": data.classes, "interrupted": interrupts.pressed}
        say_json({**content, "planes": [plane.plain() for plane in planes], **written.fields}, data.notices)
    else:
        for plane in planes:
            plane.tell(data)
        if model is not None and written.path is not None:
            say(f"model written to {written.path}: {len(model.classes)} classes, {model.coef.shape[1]} features")
    if model is None:
        note(f"no model was written: {interrupts.told if interrupts.pressed else _why_none(planes, nu)}")
    separable = all(plane.result.stated_witness is None for plane in planes)
    return written.ended(interrupts.code or (ANSWERED if model is not None else OPEN if separable else NO))


def numbered(path: Path | None, k: int) -> Path | None:
    """The checkpoint of problem k of several: the number of the problem at the end of its name."""
    return None if path is None else path.with_name(f"{path.name}.{k}")


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result of one problem, `told` in words, with `positive` on its positive side; `resumed`: from its `checkpoint`."""

    positive: Any
    told: str
    result: gordan.MarginResult
    checkpoint: Path | None
    resumed: bool

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        result = self.result
        return {
            "positive": self.positive,
            "status": result.status,
            "margin": result.margin,
            "gap": result.gap,
            "n_iter": result.n_iter,
            "passes": result.passes,
            "seconds": result.seconds,
            "resumed": self.resumed,
            "witness": witness_plain(result.stated_witness),
        }

    def tell(self, data: Data) -> None:
        """In words."""
        if len(data.classes) > 2:
            say(f"{self.told}:")
        headline(repr(self.result), self.result.status.separable)
        if self.resumed:
            say(f"  resumed from {self.checkpoint}")
        if self.result.stated_witness is not None:
            say_witness(self.result.stated_witness, data)


def _why_none(planes: list[Fitted], nu: float | None) -> str:
    if any(plane.result.stated_witness is not None for plane in planes):
        return "without a separator there is no hard margin; pass --nu 0.5, say, for a soft one"
    return "no plane with a positive margin was found" + ("; try a larger --nu" if nu is not None else "")


def forget_checkpoints(planes: list[Fitted]) -> None:
    """Remove the checkpoints of a model that is written, if nothing is left to be done for it."""
    if all(plane.result.status in (Status.SOLVED, Status.MARGIN_BELOW_TOL) for plane in planes):
        for plane in planes:
            if plane.checkpoint is not None:
                try:
                    plane.checkpoint.resolve().unlink(missing_ok=True)
                except OSError as error:
                    note(f"{plane.checkpoint}: it cannot be removed: {error.strerror}")


def _complete(kind: str, data: Data, planes: list[Fitted], nu: float | None, *, certificates: bool) -> Model | None:
    """The model, or None where a plane is missing."""
    found = [plane.result for plane in planes if plane.result.w is not None]
    if len(found) < number_of_planes(kind, len(data.classes)):
        return None
    return model_of(
        kind,
        np.unique(data.y),
        [(r.w, r.b or 0.0, r.margin, r.nu) for r in found],
        [r.certificate for r in found] if certificates else None,
        norm=found[0].norm,
        nu=nu,
        intercept=found[0].intercept,
        names=data.names,
    )


# ---- predict ----------------------------------------------------------------------------------------------------------


@command(
    "gordan predict model.gordan new.csv > labels.txt",
    "gordan predict model.gordan new.csv --scores       signed distances from the planes",
    "gordan predict setosa.gordan iris.csv --positive setosa    of a model that was fitted so",
    "gordan predict model.gordan test.svm --json | jq .accuracy",
)
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `gordan fit` wrote.")],
    file: File,
    label: Label = None,
    drop: Drop = None,
    keep_index: KeepIndex = False,
    positive: Positive = None,
    unlabelled: Annotated[bool, flag("--unlabelled", "The file has no label column.")] = False,
    scores: Annotated[bool, flag("--scores", "Print x·w + b instead, one column for each plane.")] = False,
    as_json: Json = False,
) -> int:
    """Print the class of each row, one on a line.

    Columns are found by name where the model and the file have names; others are ignored. Elsewhere pass the --drop of the fit.

    If the file has labels, stderr says how many of them were met.
    """
    with Watch(f"reading {file}"):
        loaded = _model(model)
        table = read_for(loaded, file, label, unlabelled, drop, keep_index)
        tell(table.notices)
        y = labels_in(table, positive)
        values = loaded.scores(table.X)
        found = loaded.labels(values)
    known = y is not None and {*y.tolist()} <= {*loaded.classes}
    right = int((found == y).sum()) if known else None
    if as_json:
        content: dict[str, Any] = {"labels": found, "n": len(found)}
        content |= {"scores": values} if scores else {}
        say_json({**content, "right": right, "accuracy": None if right is None else right / len(found)}, table.notices)
        return ANSWERED
    say_lines(["\t".join(map(repr, row)) for row in values.tolist()] if scores else [str(label) for label in found.tolist()])
    if right is not None:
        note(f"{right} of {len(found)} labels as in the file ({100 * right / len(found):.2f} %)")
    elif y is not None:
        hint = "; --positive CLASS says which of them is True" if loaded.classes == (False, True) else ""
        note(f"the labels of the file are not those of the model, so they were not compared{hint}")
    return ANSWERED


def _model(path: Path) -> Model:
    """The model in a file; whoever swaps the two files is told so."""
    if not is_container(path):
        raise InputError(f"{path} is not a model file of gordan; the model comes first, then the data")
    return Model.load(path)


def read_for(
    model: Model, path: Path, label: str | None, unlabelled: bool, drop: list[str] | None = None, keep_index: bool = False
) -> Table:
    """The table to predict, with the columns that the model knows: by name where both have names, else by position."""
    path = on_disk(path)
    named = model.names is not None and format_of(path) in ("csv", "tsv", "parquet")
    features: Any = model.names if named else model.coef.shape[1]
    if unlabelled and label is not None:
        raise InputError("--label names a label column and --unlabelled says that there is none; leave out one of them")
    labelled = False if unlabelled else None
    return read(path, label=label, features=features, labelled=labelled, drop=drop or (), keep_index=keep_index)


def labels_in(table: Table, positive: str | None) -> Array | None:
    """The labels of the table, or whether they are `positive`; None where there are none."""
    if positive is None:
        return table.y
    if table.y is None:
        raise InputError(f"--positive names a class, but {table.path} has no labels; leave it out")
    return np.asarray(table.y == class_named(positive, np.unique(table.y).tolist(), table.path))
