"""The sessions in the pages are run, and what the pages show is what comes out (`python docs/pages.py` writes it there)."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

ROOT = Path(__file__).parent.parent
if not (ROOT / "docs" / "pages.py").exists():
    pytest.skip("the pages are not here: run the suite in a checkout of the repository", allow_module_level=True)
spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "pages.py")
pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)

# Commands that take long, or a terminal: their output is left as it is in the page.
LONG = ("gordan demo", "gordan race iris.csv", "^C")
# What a page that matches needs: a package, and the extra that brings it.
NEEDS = {
    "savefig": ("matplotlib", "plot"),
    "as_frame|import pandas": ("pandas", "data"),
    "import statsmodels": ("statsmodels", "stats"),
    "data=trial": ("formulaic", "stats"),
    "from firthmodels": ("firthmodels", "test"),
}


def in_this_process(page: str, folder: Path, monkeypatch):
    """A shell that runs `gordan …` here, which saves starting Python for each command, and everything else with sh."""
    from gordan.cli.app import app
    from gordan.methods import registry

    by_sh = pages.shell_in(folder)
    shown = {command: output for block in pages.BLOCK.findall(page) for command, output in commands(block[1])}

    def run(command: str) -> str:
        if command.startswith(LONG) or ("jq" in command and shutil.which("jq") is None):
            return shown[command]
        before, _, line = command.rpartition("; ")
        found = re.fullmatch(r"(gordan [^|>&#]+)(?:> (\S+)|\| (.+)|#.*)?", line)
        if found is None:
            return by_sh(command)
        if before:
            by_sh(before)
        arguments, target, pipe = found.groups()
        with monkeypatch.context() as patch:
            for name, value in (("COLUMNS", str(pages.WIDTH)), ("NO_COLOR", "1"), ("TERM", "dumb")):
                patch.setenv(name, value)
            patch.setattr(registry, "_entries", {**registry._entries})  # what --import registers is for this command
            if pages.hidden(command):
                patch.setitem(sys.modules, pages.hidden(command), None)
            result = CliRunner().invoke(app, shlex.split(arguments)[1:], prog_name="gordan")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        if target is not None:
            (folder / target).write_text(result.stdout)
        if pipe is not None:
            (folder / "piped").write_text(result.stdout)
            return pages.ended(result.stderr, 0) + by_sh(f"{pipe} < piped")
        return pages.ended(result.output if target is None else result.stderr, result.exit_code)

    return run


def commands(block: str):
    """(command, what is printed below it)."""
    return [(found[1], found[2]) for found in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*?)(?=\n?^\$ |\Z)", block, re.M)]


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda path: path.stem)
def test_page_shows_what_comes_out(page, monkeypatch):
    text = page.read_text()
    for sign, (package, extra) in NEEDS.items():
        if re.search(sign, text):
            pytest.importorskip(package, reason=f"{page.name} needs {package}: pip install 'gordan[{extra}]'")
    if "savefig" in text:
        import matplotlib as mpl

        mpl.use("Agg")
    with pages.session(page) as (folder, namespace):
        again = pages.rerun(text, namespace, in_this_process(text, folder, monkeypatch), terminal=False)
    assert pages.differences(text, again, route=True) == []


def test_ten_wrong_uses_are_shown():
    wrong = (ROOT / "docs" / "cli.md").read_text().partition("## Wrong uses")[2]
    assert wrong.count("[exit code 2]") >= 10
    assert "Traceback" not in wrong


def test_pictures_in_pages_are_there():
    shown = [(page, name) for page in pages.PAGES for name in re.findall(r"!\[[^]]*\]\(([^):]+)\)", page.read_text())]
    assert len(shown) > 10
    for page, picture in shown:
        assert (page.parent / picture).is_file(), f"{page.name} shows {picture}"


def test_a_drifted_page_is_noticed():
    page = "```pycon\n>>> 1 + 1\n3\n>>> 0.5\n0.5\n```\n"
    again = pages.rerun(page, {}, pages.shell_in(ROOT))
    assert again == "```pycon\n>>> 1 + 1\n2\n>>> 0.5\n0.5\n```\n"
    assert pages.differences(page, again, route=True)[-2:] == ["-3", "+2"]
    assert pages.differences("took 3 s, 12 passes", "took 4.1 s, 13 passes", route=True) == []
    assert pages.differences("margin 3", "margin 4", route=True) != []


def test_links_are_there_for_whoever_reads_the_files():
    """A link has a text and leads to a file, and so does one in front of each table that Sphinx would put into its page."""
    found = 0
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = page.read_text()
        assert "[](" not in text, page
        links = set(re.findall(r"\]\((?!https?:)([^)#\s]+)[^)]*\)", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)))
        assert all((page.parent / link).exists() for link in links), page
        assert set(re.findall(r"^```{include} (\S+)", text, re.M)) <= links, page
        found += len(links)
    assert found > 50
