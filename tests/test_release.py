"""What a release says of itself is the same everywhere; programs can rely on its types. `tests/release.py` tries the wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

import gordan

ROOT = Path(__file__).parent.parent
# Lines that mypy must refuse, and why.
WRONG = {
    'gordan.separate(X, y, tol="x")': "call-overload",
    'gordan.maximize_margin(X, y, norm="two")': "call-overload",
    "gordan.maximize_margin(X, y, tolerance=1e-3)": "call-overload call-overload",
    "gordan.minimize_loss(X, X).radius": "attr-defined",
    "gordan.separate(X, y).width": "attr-defined",
    "gordan.separate(X, y).witness.rows": "union-attr",
    'gordan.verify({"kind": "witness"}, X, y)': "arg-type",
    'gordan.Certificate("maybe", "free", (0, 1), (2, 1))': "arg-type",
    "gordan.Certificate.from_json(3)": "arg-type",
    'gordan.MaxMarginClassifier(nu="half")': "arg-type",
    'gordan.play(X, "perceptron", "many")': "arg-type",
    "gordan.methods.smooth_perceptron(speed=2)": "call-arg",
}


def test_version_licence_and_date_are_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    (newest, when), *_ = headings = re.findall(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert gordan.__version__ == (f"{newest}.dev0" if when == "unreleased" else newest)
    version, date = next(heading for heading in headings if heading[1] != "unreleased")  # the one that can be cited
    assert f"\nversion: {version}\ndate-released: {date}\n" in citation
    assert f"\nlicense: {project['license']}\n" in citation
    assert project["license"] == "BSD-3-Clause"
    assert (ROOT / "LICENSE").read_text().startswith(f"BSD 3-Clause License\n\nCopyright (c) {date[:4]}, ")
    assert "title: On Accelerated Perceptrons and Beyond" in citation


def test_the_package_is_described_in_the_same_words_everywhere():
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["description"]
    files = [(ROOT / name).read_text() for name in ("README.md", "CITATION.cff", "docs/index.md")]
    assert all("linear classification with proofs" in text.lower() for text in (described, gordan.__doc__, *files))


def test_a_typed_client_passes_and_wrong_uses_do_not(tmp_path):
    pytest.importorskip("mypy", reason="types are read by mypy: pip install 'gordan[test]'")
    # an environment in which this package is a plain copy, as a wheel makes it, beside what it needs
    venv.create(tmp_path / "venv", symlinks=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    shutil.copytree(Path(gordan.__file__).parent, site / "gordan", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "needed.pth").write_text("\n".join(sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})) + "\n")
    shutil.copy(ROOT / "tests" / "client.py", tmp_path)
    head = ["import numpy as np", "import gordan", "X, y = np.eye(2), [0, 1]"]
    (tmp_path / "wrong.py").write_text("\n".join([*head, *WRONG]) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--show-error-codes", "--cache-dir", "cache"]
    done = subprocess.run(
        [*command, "--python-executable", tmp_path / "venv" / "bin" / "python", "client.py", "wrong.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    found = re.findall(r"^(\S+?):(\d+): error: .*\[(\S+)\]$", done.stdout, re.M)
    expected = [("wrong.py", str(k), code) for k, codes in enumerate(WRONG.values(), len(head) + 1) for code in codes.split()]
    assert found == expected, done.stdout + done.stderr
