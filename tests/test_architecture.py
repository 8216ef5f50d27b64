"""The walks in docs/architecture.md are taken, and pass where the page says, in its order."""

import ast
import re
import sys
import textwrap
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import gordan
from gordan import rows
from gordan.rows.storage import Storage
from gordan.solve import finders, separation

PAGE = Path(__file__).resolve().parent.parent / "docs" / "architecture.md"


def written():
    """The functions of each walk, by its title."""
    _, _, text = PAGE.read_text(encoding="utf-8").partition("## Four walks")
    walks = {}
    for part in re.split(r"^### ", text.partition("\n## ")[0], flags=re.M)[1:]:
        walks[part.splitlines()[0]] = re.findall(r"^\| `([\w.]+)` \|", part, flags=re.M)
    return walks


def taken(work):
    """Every function of gordan that is called, in order."""
    calls = []

    def note(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("gordan."):
            calls.append(f"{module.removeprefix('gordan.')}.{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def separate_a_csv(folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    lines = ["a,b,c,class", *(",".join([*map(repr, row), label]) for row, label in zip(X.tolist(), y, strict=True))]
    (folder / "data.csv").write_text("\n".join(lines))
    from gordan.cli.app import app

    def work():
        told = CliRunner().invoke(app, ["separate", str(folder / "data.csv")])
        assert told.exit_code == 0, told.output

    return work


def fit_sparse(_):
    X = sp.random(3000, 300, 0.05, format="csr", random_state=0)
    y = X @ np.random.default_rng(0).normal(size=300) > 0
    return lambda: gordan.MaxMarginClassifier(on_inseparable="ignore").fit(X, y)


def diagnose(_):
    return lambda: gordan.diagnose([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [1.5, 1.0], [2.5, 1.0]], [0, 1, 0, 1, 1])


def play(_):
    A = np.random.default_rng(0).normal((2.0, 0.0, 0.0), size=(40, 3))
    return lambda: gordan.play(A, "smooth_perceptron", 5)


@pytest.mark.parametrize(
    ("start", "work"),
    [
        ("`gordan separate", separate_a_csv),
        ("`MaxMarginClassifier", fit_sparse),
        ("`gordan.diagnose", diagnose),
        ("`play", play),
    ],
)
def test_walks(start, work, tmp_path):
    (steps,) = (steps for title, steps in written().items() if title.startswith(start))
    calls = iter(taken(work(tmp_path)))
    assert len(steps) > 8
    for step in steps:
        assert step in calls, f"{step} is not called after the steps before it"


def test_everything_public_says_what_it_is():
    """Modules, classes and functions without an underscore have a docstring, and methods and properties, unless they are what
    a protocol of their package asks for: that is said once, there."""
    source = Path(gordan.__file__).parent
    trees = {path.relative_to(source): ast.parse(path.read_text(encoding="utf-8")) for path in source.rglob("*.py")}
    silent, looked = [], 0
    for path, tree in trees.items():
        package = [other for name, other in trees.items() if name.parts[0] == path.parts[0]]
        said_once = {method.name for other in package for method in asked_for(other)}
        for node in [tree, *public(tree)]:
            looked += 1
            if not ast.get_docstring(node) and getattr(node, "name", "") not in said_once:
                silent.append(f"{path.as_posix()}: {getattr(node, 'name', 'the module')}")
    assert looked > 800
    assert not silent


def asked_for(tree):
    """The methods of the protocols and abstract classes in a module."""
    for node in public(tree):
        if isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") in ("Protocol", "ABC") for base in node.bases):
            yield from (method for method in public(node) if ast.get_docstring(method))


def public(owner):
    """The functions and classes in a module or class, and in these classes, whose names have no underscore; of a function with
    overloads its implementation, which has the docstring."""
    for node in owner.body:
        overload = any(getattr(decorator, "id", "") == "overload" for decorator in getattr(node, "decorator_list", ()))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_") and not overload:
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node)


def test_only_rows_look_at_the_arrays_of_a_storage():
    """What a storage is made of is asked for nowhere else; `rows/storage.py` has everything that may be asked for."""
    source, looked = Path(gordan.__file__).parent, Counter()
    for path in source.rglob("*.py"):
        found = [node.lineno for node in ast.walk(ast.parse(path.read_text())) if getattr(node, "attr", None) == "arrays"]
        assert not found or path.parent == source / "rows", f"{path.name}, line {found}"
        looked[path.parent.name] += len(found)
    assert looked["rows"] > 10


def test_the_page_counts_the_operations_of_a_storage():
    """Those that a backend has to implement, and those with defaults."""
    required = Storage.__abstractmethods__
    derived = {name for name, value in vars(Storage).items() if callable(value) and not name.startswith("_")} - required
    assert "five operations" in PAGE.read_text(encoding="utf-8")
    assert len(required) == 5
    assert f"{len(derived)} more operations have defaults" in PAGE.read_text(encoding="utf-8")


def test_the_modules_of_rows_are_listed_in_reading_order():
    """By the package itself: nothing else has to know of a new storage (import-linter forbids others all of them)."""
    listed = rows.__doc__.partition("in reading order::")[2]
    names = {word for line in listed.splitlines() for word in line[:40].replace(",", " ").split()}
    assert {path.stem for path in Path(rows.__file__).parent.glob("*.py")} - {"__init__"} == names


def test_the_finder_in_contributing_finds(monkeypatch):
    """Its code, as a reader copies it, first in the table but for small data."""
    page = (PAGE.parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## How to add a finder")[2]
    code = {}
    exec(textwrap.dedent(re.search(r"   ```python\n(.*?)   ```", page, re.DOTALL)[1]), code)
    found = []

    def find(*asked):
        for proposal in code["by_ridge"](*asked):
            found.append(proposal)
            yield proposal

    line = finders.Finder("ridge", find, sign=lambda question, evidence: not separation.suits_interior_point(question))
    monkeypatch.setattr(finders, "FINDERS", (line, *finders.FINDERS))
    X = np.random.default_rng(0).normal(size=(3000, 5))
    y = np.where(X.sum(axis=1) + 1 > 0, 1, -1)
    verdict = gordan.separate(X + 0.5 * y[:, None], y)
    assert len(found) == 1
    assert verdict.separable
    assert 0 < verdict.margin[0] < verdict.margin[1] < np.inf
