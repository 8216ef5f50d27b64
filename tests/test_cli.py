"""The command line."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

import gordan
from gordan.cli.app import app

runner = CliRunner()


def test_demo_prints_three_brackets_for_one_number():
    result = runner.invoke(app, ["demo", "--rounds", "300"])
    assert result.exit_code == 0
    brackets = [tuple(map(float, pair)) for pair in re.findall(r"(0\.\d{5}) (\d\.\d{5})", result.output)]
    assert len(brackets) == 3
    # half the distance of the hulls of setosa and the rest, from an independent solver (LIBSVM, C = 1e10)
    assert all(lower <= 0.817557 <= upper for lower, upper in brackets)


def test_version_and_help():
    assert runner.invoke(app, ["--version"]).output.strip() == f"gordan {gordan.__version__}"
    assert "demo" in runner.invoke(app, ["--help"]).output


@pytest.mark.parametrize("arguments", [["demo", "--rounds", "0"], ["nonsense"], ["demo", "--unknown"]])
def test_wrong_use_exits_with_2(arguments):
    assert runner.invoke(app, arguments).exit_code == 2
