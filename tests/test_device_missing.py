"""What is said where torch or a GPU is missing: the extra, or the way out. Needs neither."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import gordan
from gordan.cli.app import app
from gordan.errors import MissingExtra

X, Y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0]]), np.array([0, 0, 1])
CALLS = {
    "separate": lambda **device: gordan.separate(X, Y, **device),
    "maximize_margin": lambda **device: gordan.maximize_margin(X, Y, **device),
    "play": lambda **device: gordan.play(X, "smooth_perceptron", 3, **device),
    "classifier": lambda **device: gordan.MaxMarginClassifier(**device).fit(X, Y),
}


@pytest.mark.parametrize("name", CALLS)
def test_missing_torch_is_named(name, monkeypatch):
    CALLS[name]()  # imports what it needs: some of that looks for torch
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"device='cuda' needs torch: pip install 'gordan\[gpu\]'"):
        CALLS[name](device="cuda")
    CALLS[name](device="cpu")  # which needs none


@pytest.mark.parametrize("command", ["separate", "fit", "race", "play"])
def test_command_line(command, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    file = tmp_path / "data.csv"
    file.write_text("a,b,y\n" + "".join(f"{a},{b},{y}\n" for (a, b), y in zip(X, Y, strict=True)))
    options = {"fit": ["-o", str(tmp_path / "model")], "race": ["-m", "double_oracle"]}.get(command, [])
    told = CliRunner().invoke(app, [command, str(file), "--device", "cuda", *options])
    assert told.exit_code == 2
    assert "gordan[gpu]" in told.output
    assert CliRunner().invoke(app, [command, str(file), "--device", "cpu", *options]).exit_code == 0
