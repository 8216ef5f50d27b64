"""Run commands of the program in this process or as one of its own, and write the tables that they read."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import gordan
from gordan.cli.app import app

DATA = Path(gordan.__file__).parent / "data"
IRIS, RASH = DATA / "iris.csv", DATA / "rash.csv"
# half the distance of the hulls of setosa and the rest, from an independent solver (LIBSVM, C = 1e10)
SETOSA = 0.817557


def run(*arguments: object, **options):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answer(*arguments: object, code: int = 0):
    """The JSON that a command prints."""
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.output
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout, parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))


def program(*arguments: object, **options):
    """The program as a process of its own."""
    command = [sys.executable, "-m", "gordan", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def write_csv(path: Path, X, y=None, names: str = "abcdefghij") -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names[: X.shape[1]], *([] if y is None else ["side"])])
        writer.writerows([*map(repr, row), *([] if y is None else [y[i]])] for i, row in enumerate(X.tolist()))
    return path
