"""The arguments and options that several commands have: each is declared once, with the name that the library has for it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from gordan import methods
from gordan.intercepts import Intercept


class MultiClass(StrEnum):
    """What `--multi-class` may be."""

    OVO = "ovo"
    OVR = "ovr"


class OnInseparable(StrEnum):
    """What `--on-inseparable` may be."""

    WARN = "warn"
    RAISE = "raise"
    IGNORE = "ignore"


class OnMissing(StrEnum):
    """What `--missing` may be."""

    RAISE = "raise"
    DROP = "drop"


class Regression(StrEnum):
    """What `--model` may be."""

    LOGISTIC = "logistic"
    MULTINOMIAL = "multinomial"
    ORDINAL = "ordinal"
    POISSON = "poisson"


def method_names(incomplete: str) -> list[str]:
    """Names of methods that start so, for completion."""
    return [name for name in methods.names() if name.startswith(incomplete)]


def flag(name: str, told: str) -> Any:
    """An option without a value: newer versions of typer show `<bool>` behind it, unless told otherwise."""
    return typer.Option(name, metavar="", help=told)


File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Data: CSV, TSV or svmlight (also compressed: .gz, .bz2, .xz), .npy, .npz, Parquet (a file or a folder), "
        "a folder written by `gordan convert`, or - for standard input.",
    ),
]
Label = Annotated[
    str | None,
    typer.Option("--label", metavar="COLUMN", help="Label column, by name or position from 0. Default: the last one."),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", help="Ignore this column, by name or position (svmlight: by index). Repeatable."),
]
KeepIndex = Annotated[bool, flag("--keep-index", "Keep an unnamed first column that numbers the rows.")]
Sep = Annotated[
    str | None,
    typer.Option("--sep", metavar="CHARACTER", help="Column separator of a text table, such as ';'. Default: detected."),
]
Decimal = Annotated[str, typer.Option("--decimal", metavar="CHARACTER", help="Decimal mark of a text table: . or ,")]
Thousands = Annotated[str | None, typer.Option("--thousands", metavar="CHARACTER", help="Thousands separator of a text table.")]
NoHeader = Annotated[bool, flag("--no-header", "The text table has no header: its first line is data.")]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight", metavar="COLUMN", help="Column with sample weights, by name or position; it is not used as a feature."
    ),
]
Missing = Annotated[
    OnMissing, typer.Option("--missing", help="Rows of a table with an empty or NA cell: refuse them, or drop them.")
]
Standardize = Annotated[
    bool, flag("--standardize", "Scale columns to mean 0 and standard deviation 1 first; sparse ones keep their zeros.")
]
Positive = Annotated[
    str | None,
    typer.Option("--positive", metavar="CLASS", help="One class against the rest, for files with more than two classes."),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Stay below this much memory, such as 4GB; data larger than half of it stays on disk.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Dask scheduler, such as tcp://10.0.0.1:8786, whose workers read FILE, or a folder of Parquet or .npy files.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option("--device", metavar="DEVICE", help="cuda: compute on the GPU (pip install 'gordan\\[gpu]'). Default: cpu."),
]
WithIntercept = Annotated[
    Intercept,
    typer.Option(
        "--intercept", help="free: x·w + b. penalized: b counts in the norm of w. none: the plane passes through the origin."
    ),
]
WithModel = Annotated[
    Regression,
    typer.Option("--model", help="multinomial and ordinal: several classes. poisson: labels are counts."),
]
Reference = Annotated[str | None, typer.Option("--reference", metavar="CLASS", help="Reference class of a multinomial model.")]
Order = Annotated[
    str | None,
    typer.Option("--order", metavar="CLASSES", help="Classes of an ordinal model, lowest first, such as low,medium,high."),
]
TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", metavar="SECONDS", min=0.001, help="Stop after this many seconds and report what is proved."),
]
WithMultiClass = Annotated[
    MultiClass,
    typer.Option(
        "--multi-class", help="With several classes, ovo: one plane per pair. ovr: one plane per class against the rest."
    ),
]
WithOnInseparable = Annotated[
    OnInseparable,
    typer.Option(
        "--on-inseparable", help="If no plane separates, warn or ignore: fit by squared hinge loss. raise: write no model."
    ),
]
Json = Annotated[bool, flag("--json", "Print one JSON object instead of text.")]
CertificateOut = Annotated[
    Path | None, typer.Option("--certificate", metavar="OUT.json", help="Write the proof to this file, for `gordan verify`.")
]
