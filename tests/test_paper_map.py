"""Paper, code and tests cannot drift apart: walk docs/paper_map.md both ways."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

from gordan import methods

ROOT = Path(__file__).parents[1]
EXPECTED = {
    *(f"Algorithm {k}" for k in range(1, 6)),
    *(f"Protocol {k}" for k in (1, 2)),
    *(f"Proposition {k}" for k in (1, 2, 3)),
    *(f"Theorem {k}" for k in range(1, 8)),
    *(f"Lemma {k}" for k in range(1, 7)),
    *(f"Assumption {k}" for k in (1, 2)),
}


def rows():
    """[(item, code names, test names)] of the first table."""
    lines = (ROOT / "docs" / "paper_map.md").read_text().split("## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][1:]
    return [(item, re.findall(r"`([^`]+)`", code), re.findall(r"`([^`]+)`", tests)) for item, _, _, code, tests in cells]


def named(docstring, word):
    """The items after `Implements:` or `Checks:` in a docstring."""
    found = re.findall(rf"^\s*{word}: (.+)$", docstring or "", re.MULTILINE)
    return {item.strip() for line in found for item in line.split(",")}


def test_every_item_of_the_paper_has_a_row():
    assert {item for item, _, _ in rows()} == EXPECTED


def test_every_item_has_a_label_of_its_own():
    lines = (ROOT / "docs" / "paper_map.md").read_text().split("## ")[0].splitlines()
    labels = [line.split("|")[2].strip(" `") for line in lines if line.startswith("| ")][1:]
    assert len(set(labels)) == len(EXPECTED)


def test_every_method_is_on_the_pages():
    """A line of the table of docs/methods.md, and one of docs/api.md; the double oracle is described where margins are."""
    table = [line.split("|")[1] for line in (ROOT / "docs" / "methods.md").read_text().splitlines() if line.startswith("| `")]
    assert {*re.findall(r"`([^`]+)`", " ".join(table))} - {"maximize_margin"} == {*methods.names()}
    listed = re.findall(r"^\.\. autofunction:: gordan\.methods\.(\w+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    assert {*methods.names()} - {"double_oracle"} <= {*listed}


def test_what_is_beyond_the_paper_names_code_and_tests_that_exist():
    """Each line of the tables of docs/beyond.md: a statement, its proof or that there is none, code, and a test of it."""
    lines = [line for line in (ROOT / "docs" / "beyond.md").read_text().splitlines() if line.startswith("| ")]
    lines = [line for line in lines if not line.startswith("| statement |")]
    assert len(lines) >= 15
    for line in lines:
        *_, proof, code, tests = [cell.strip() for cell in line.strip("|").split("|")]
        assert proof.startswith(("proof", "no proof")), line
        assert "`gordan" in code, line
        assert "`tests/" in tests, line
        for name in re.findall(r"`(gordan[^`]+)`", code):
            module, _, attribute = name.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), name
        for name in re.findall(r"`(tests/[^`]+)`", tests):
            path, _, function = name.partition("::")
            assert function in docstrings(ROOT / path), name


def test_code_of_each_row_says_so():
    for item, code, _ in rows():
        assert code, item
        for name in code:
            module, _, attribute = name.rpartition(".")
            docstring = getattr(importlib.import_module(module), attribute).__doc__
            assert item in named(docstring, "Implements"), f"{name} does not say that it implements {item}"


def test_tests_of_each_row_say_so():
    for item, _, tests in rows():
        assert tests, item
        for name in tests:
            path, _, function = name.partition("::")
            functions = docstrings(ROOT / path)
            assert not function or function in functions, f"{name} does not exist"
            said = named(functions[function], "Checks") if function else set().union(*map(checks, functions.values()))
            assert item in said, f"{name} does not say that it checks {item}"


def test_nothing_is_claimed_that_is_not_in_the_table():
    in_table = {(item, name) for item, code, _ in rows() for name in code}
    for path in (ROOT / "src").rglob("*.py"):
        for name, docstring in docstrings(path).items():
            for item in named(docstring, "Implements"):
                assert any(known == item and code.endswith(f".{name}") for known, code in in_table), (item, path, name)
    tests_in_table = {(item, name) for item, _, tests in rows() for name in tests}
    for path in (ROOT / "tests").glob("test_*.py"):
        for name, docstring in docstrings(path).items():
            for item in checks(docstring):
                known = {(item, f"tests/{path.name}::{name}"), (item, f"tests/{path.name}")}
                assert known & tests_in_table, f"{path.name}::{name} checks {item}, which the table does not say"


def checks(docstring):
    return named(docstring, "Checks")


def docstrings(path):
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds)}
