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
        help="Data: svmlight, CSV or TSV with a header (all of these also .gz, .bz2, .xz), .npy, .npz, Parquet (also a folder), "
        "a folder that `gordan convert` wrote, or - for standard input.",
    ),
]
Label = Annotated[
    str | None,
    typer.Option("--label", metavar="COLUMN", help="The label column, by name or position from 0. Default: the last one."),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop", metavar="COLUMN", help="Leave out this column, by name or position (svmlight: by its index); again for more."
    ),
]
KeepIndex = Annotated[bool, flag("--keep-index", "Keep a nameless first column that counts the rows.")]
Sep = Annotated[
    str | None, typer.Option("--sep", metavar="CHARACTER", help="What is between the columns of a table of text, such as ';'.")
]
Decimal = Annotated[str, typer.Option("--decimal", metavar="CHARACTER", help="The decimal mark of a table of text: . or ,")]
Thousands = Annotated[str | None, typer.Option("--thousands", metavar="CHARACTER", help="What groups digits in a table of text.")]
NoHeader = Annotated[bool, flag("--no-header", "The table of text has no names of columns: its first line is a row.")]
Missing = Annotated[
    OnMissing, typer.Option("--missing", help="drop: leave out rows of a table of text that have an empty cell, or NA.")
]
Standardize = Annotated[
    bool, flag("--standardize", "Scale columns to mean 0 and standard deviation 1 first; sparse ones keep their zeros.")
]
Positive = Annotated[
    str | None,
    typer.Option("--positive", metavar="CLASS", help="This class against the rest, for files of more than two classes."),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit", metavar="SIZE", help="Memory to stay below, such as 4GB: what is larger than half of it stays on disk."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="A Dask scheduler, as tcp://10.0.0.1:8786: its workers read FILE, or the Parquet or .npy files of that folder.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option("--device", metavar="DEVICE", help="cuda: search on the GPU (pip install 'gordan\\[gpu]'). Default: cpu."),
]
WithIntercept = Annotated[
    Intercept,
    typer.Option("--intercept", help="free: x·w + b. penalized: b is a weight like the others. none: through the origin."),
]
WithModel = Annotated[
    Regression,
    typer.Option("--model", help="multinomial and ordinal: several classes, ordered as they sort. poisson: labels are counts."),
]
Reference = Annotated[
    str | None, typer.Option("--reference", metavar="CLASS", help="The class without coefficients of a multinomial model.")
]
TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", metavar="SECONDS", min=0.001, help="Stop after this many seconds and report what is proved."),
]
WithMultiClass = Annotated[
    MultiClass,
    typer.Option(
        "--multi-class", help="Of several classes, ovo: a plane for each pair. ovr: one for each class against the rest."
    ),
]
WithOnInseparable = Annotated[
    OnInseparable,
    typer.Option("--on-inseparable", help="Without a separator, warn or ignore: fit a soft margin. raise: write no model."),
]
Json = Annotated[bool, flag("--json", "Print one JSON object instead of text.")]
CertificateOut = Annotated[
    Path | None, typer.Option("--certificate", metavar="OUT.json", help="Write the proof to this file, for `gordan verify`.")
]
