"""The command `gordan convert`, which writes data to arrays on disk."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gordan import io
from gordan.cli.answers import headline, print_json, print_line, print_notes
from gordan.cli.commands import ANSWERED, NO, command
from gordan.cli.data import TableOptions, parse_size
from gordan.cli.fields import fields
from gordan.cli.options import Json, MemoryLimit, flag
from gordan.cli.progress import Watch
from gordan.errors import InputError
from gordan.io.store import require_store

Kind = StrEnum("Kind", ["AUTO", "DENSE", "CSR"])


@command(
    "gordan convert train.svm.gz train               for gordan fit train -o model.gordan",
    "gordan convert tables/ data --label y           a folder of Parquet files",
    "gordan convert --check train                    compare a converted folder with its checksums",
    fields={"convert": "folder kind n d entries kept already", "convert --check": "accepted reason bytes"},
)
def convert(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Data: svmlight, CSV, TSV, .npy, or Parquet (a file or a folder).")
    ],
    table: TableOptions,
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="The folder to write.")] = None,
    kind: Annotated[Kind, typer.Option(help="Storage: dense, csr, or auto, by the share of nonzero entries.")] = Kind.AUTO,
    memory_limit: MemoryLimit = None,
    check: Annotated[bool, flag("--check", "Only compare a converted folder with its checksums.")] = False,
    as_json: Json = False,
) -> int:
    """Convert data that is larger than memory to arrays on disk; every command reads the folder in place of a file.

    If the conversion is stopped or killed, rerun the command to resume it.

    Exit code 0: converted, or checked without a difference. 1: the check found a difference.
    """
    if check:
        return _check(file if folder is None else folder, as_json)
    if folder is None:
        raise InputError("convert needs a folder to write to: gordan convert FILE DIR")
    limit = parse_size(memory_limit)
    with Watch(f"converting {file}") as watch:
        done = io.convert(
            file,
            folder,
            **table.columns,
            kind=str(kind),
            memory_limit=limit,
            progress=lambda rows: watch.about(f"{rows} rows"),
        )
    print_notes(*done.notices)
    n, d = done.shape
    if as_json:
        print_json(fields("convert", done, folder=str(folder), n=n, d=d), done.notices)
    else:
        action = "already converted" if done.already else f"resumed after {done.kept} rows" if done.kept else "converted"
        print_line(f"{action}: {n} rows, {d} columns, {done.kind}, {done.entries} entries, in {folder}")
    return ANSWERED


def _check(folder: Path, as_json: bool) -> int:
    require_store(folder)
    size, reason = 0, ""
    with Watch(f"checking {folder}"):
        try:
            size = io.check(folder)
        except InputError as error:
            reason = str(error)
    if as_json:
        print_json(fields("convert --check", accepted=not reason, reason=reason, bytes=size))
    else:
        headline(reason or f"{folder}: {size} bytes, all checksums match", not reason)
    return NO if reason else ANSWERED
