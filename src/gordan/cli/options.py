"""Declare the arguments and options that several commands share, with the names that they have in the library."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from gordan import methods
from gordan.intercepts import Intercept
from gordan.regressions import Regression

# The choices of --multi-class, --on-inseparable and --missing: the names in lower case.
MultiClass = StrEnum("MultiClass", ["OVO", "OVR"])
OnInseparable = StrEnum("OnInseparable", ["WARN", "RAISE", "IGNORE"])
OnMissing = StrEnum("OnMissing", ["RAISE", "DROP"])


def method_names(incomplete: str) -> list[str]:
    """Return the names of methods that start with this text, for shell completion."""
    return [name for name in methods.names() if name.startswith(incomplete)]


def flag(name: str, text: str, panel: str | None = None) -> Any:
    """Declare an option without a value; an empty metavar keeps newer versions of typer from showing `<bool>`."""
    return typer.Option(name, metavar="", help=text, rich_help_panel=panel)


def data_option(name: str, text: str, metavar: str | None = None) -> Any:
    """Declare an option that says how the data is read."""
    return typer.Option(name, metavar=metavar, help=text, rich_help_panel=DATA_PANEL)


DATA_PANEL = "Data options"
File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Data: CSV, TSV or svmlight (also compressed: .gz, .bz2, .xz), .npy, .npz, Parquet (a file or a folder), "
        "a folder written by `gordan convert`, or - for standard input.",
    ),
]
Label = Annotated[
    str | None, data_option("--label", "Label column, by name or position from 0. Default: the last one.", "COLUMN")
]
Drop = Annotated[
    list[str] | None,
    data_option("--drop", "Ignore this column, by name or position (svmlight: by index). Repeatable.", "COLUMN"),
]
KeepIndex = Annotated[bool, flag("--keep-index", "Keep an unnamed first column that counts the rows.", DATA_PANEL)]
Sep = Annotated[
    str | None, data_option("--sep", "Column separator of a text table, such as ';'. Default: detected.", "CHARACTER")
]
Decimal = Annotated[str, data_option("--decimal", "Decimal mark of a text table: . or ,", "CHARACTER")]
Thousands = Annotated[str | None, data_option("--thousands", "Thousands separator of a text table.", "CHARACTER")]
NoHeader = Annotated[bool, flag("--no-header", "The text table has no header: its first line is data.", DATA_PANEL)]
Weight = Annotated[
    str | None,
    data_option("--weight", "Column with sample weights, by name or position; it is not used as a feature.", "COLUMN"),
]
Missing = Annotated[
    OnMissing, data_option("--missing", "What to do with rows that have an empty or NA cell: raise an error, or drop them.")
]
Standardize = Annotated[
    bool,
    flag("--standardize", "Scale columns to mean 0 and standard deviation 1; sparse columns are not centered.", DATA_PANEL),
]
Positive = Annotated[
    str | None, data_option("--positive", "Take this class against the rest, if there are more than two.", "CLASS")
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
        "--intercept", help="free: x·w + b. penalized: b is part of the norm. none: the plane passes through the origin."
    ),
]
WithModel = Annotated[
    Regression,
    typer.Option("--model", help="The regression. multinomial, ordinal: several classes. poisson: the labels are counts."),
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
    MultiClass | None,
    typer.Option(
        "--multi-class",
        help="For several classes, ovo: one plane per pair. ovr: one plane per class against the rest. Default: ovo.",
    ),
]
WithOnInseparable = Annotated[
    OnInseparable,
    typer.Option(
        "--on-inseparable",
        help="If no plane separates the classes: fit by squared hinge loss, with a warning (warn) or without one (ignore), "
        "or write no model (raise).",
    ),
]
Json = Annotated[bool, flag("--json", "Print one JSON object instead of text.")]
CertificateOut = Annotated[
    Path | None, typer.Option("--certificate", metavar="OUT.json", help="Write the proof to this file, for `gordan verify`.")
]
