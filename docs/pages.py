"""Run the sessions in the pages, and write their output into the pages.

    python docs/pages.py                      # all pages, including README.md: about three minutes
    python docs/pages.py docs/cli.md          # one page
    python docs/pages.py --check              # change nothing; show differences, with exit code 1 if there are any

A ```pycon block is a Python session with >>>, and a ```console block a terminal session with $. The blocks of a page share one
session and one folder, which initially contains the data files of the package. Pictures that a page saves are copied to
docs/pictures.
`tests/test_pages.py` runs the same code, so a page that no longer matches the program fails the suite.

A command followed by a line ^C is interrupted once its progress bar shows a gap; one that ends in "# without PACKAGE" runs as if
that package were not installed. Times differ from run to run and are not compared.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import doctest
import io
import linecache
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gordan

HERE = Path(__file__).resolve().parent
PAGES = [
    HERE.parent / "README.md",
    HERE / "quickstart.md",
    HERE / "choosing.md",
    HERE / "losses.md",
    HERE / "robust.md",
    HERE / "one_game.md",
    HERE / "methods.md",
    HERE / "displays.md",
    HERE / "cli.md",
    HERE / "certificates.md",
    HERE / "long_runs.md",
    *sorted((HERE / "tutorials").glob("*.md")),
]
BLOCK = re.compile(r"^```(pycon|console)\n(.*?)^```$", re.M | re.S)
TIMES = re.compile(r"\d+(\.\d+)?(e-\d+)?\s?(s|ms|µs)\b")
# Details of how an answer was found, which may change although the answer does not: rounds, passes, and the rows of a witness.
# The length of a rule below the head of a table depends on the times in the table.
ROUTE = re.compile(r"─+|[\d.,]+ (?:rounds?|pass(?:es)?)|(?<=weighted rows )[\d, …]+\(\d+(?= in all)|\d+(?= rows suffice)")
WIDTH = 100  # width of the terminal
BAR = 600  # characters at the end of the progress bar that are searched
PROGRAM = """import os, sys
sys.modules.update(dict.fromkeys(os.environ.get("GORDAN_WITHOUT", "").split()))
from gordan.cli import main
main()
"""
# Digits of a number beyond the eighth decimal, which differ between processors.
DIGITS = re.compile(r"(\d+\.\d{8})\d+")
Shell = Callable[[str], str]


def main() -> int:
    """Rewrite the pages, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    drifted = 0
    for page in [path.resolve() for path in options.pages]:
        old = page.read_text()
        with session(page) as (folder, namespace):
            new = rerun(old, namespace, shell_in(folder))
            if not options.check:
                page.write_text(kept_where_only_times_differ(old, new))
                for picture in folder.glob("*.png"):
                    shutil.copy(picture, HERE / "pictures" / picture.name)
        found = differences(old, new)
        drifted += bool(found)
        print(f"{page.name}: {'as it was' if not found else 'differs'}")
        print("\n".join(found))
    return int(bool(drifted) and options.check)


@contextlib.contextmanager
def session(page: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Create a folder with the data of the package, in which a page runs, and the namespace of its Python session."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        for table in (Path(gordan.__file__).parent / "data").glob("*.csv"):
            shutil.copy(table, name)
        os.chdir(name)
        try:
            yield Path(name), {"__name__": "__main__"}
        finally:
            os.chdir(before)


def rerun(text: str, namespace: dict[str, Any], shell: Shell, *, terminal: bool = True) -> str:
    """Return the page with its blocks run again; without a `terminal`, blocks with ^C stay as they are."""

    def block(found: re.Match[str]) -> str:
        kind, content = found.groups()
        if "\n^C\n" in content and not terminal:
            return found[0]
        return f"```{kind}\n{python(content, namespace) if kind == 'pycon' else console(content, shell)}```"

    return BLOCK.sub(block, text)


def differences(old: str, new: str, *, route: bool = False) -> list[str]:
    """Return lines that differ in more than a time; with `route`, words that differ in more than how the answer was found."""
    if route:
        texts = [TIMES.sub("# s", ROUTE.sub("#", DIGITS.sub(r"\1", " ".join(text.split())))).split() for text in (old, new)]
    else:
        texts = [TIMES.sub("# s", text).splitlines() for text in (old, new)]
    return list(difflib.unified_diff(*texts, "page", "run", lineterm="", n=0))


def kept_where_only_times_differ(old: str, new: str) -> str:
    """Return the new page, or the old one if only times differ, so that running it again changes nothing."""
    return new if differences(old, new) else old


# ---- Python ------------------------------------------------------------------------------------------------------------


def python(content: str, namespace: dict[str, Any]) -> str:
    """Run a Python session again and return each example with its current output, including warnings."""
    shown = []
    for piece in doctest.DocTestParser().parse(content):
        if isinstance(piece, str):
            shown.append(piece)
            continue
        source = piece.source.splitlines()
        shown.append("".join(f"{'>>>' if k == 0 else '...'} {line}".rstrip() + "\n" for k, line in enumerate(source)))
        shown.append(output_of(piece.source, namespace))
    return "".join(shown)


def output_of(source: str, namespace: dict[str, Any]) -> str:
    """Return what an interpreter prints for this piece of source."""
    printed = io.StringIO()
    linecache.cache["<page>"] = len(source), None, source.splitlines(keepends=True), "<page>"

    def told(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        printed.write(f"{category.__name__}: {message}\n")

    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = told  # type: ignore[assignment]
        try:
            exec(compile(source, "<page>", "single"), namespace)  # the pages are ours
        except Exception as error:
            last = traceback.format_exception_only(error)[-1]
            printed.write(f"Traceback (most recent call last):\n  ...\n{last}")
    return printed.getvalue()


# ---- terminal ----------------------------------------------------------------------------------------------------------


def console(content: str, shell: Shell) -> str:
    """Run a terminal session again and return each command with its current output."""
    commands = [line for line in content.splitlines() if line.startswith(("$ ", "^C"))]
    shown = []
    for k, command in enumerate(commands):
        if command == "^C":
            continue
        pressed = commands[k + 1 : k + 2] == ["^C"]
        output = interrupted(command[2:]) if pressed else shell(command[2:])
        shown.append(f"{command}\n{output}")
    return "\n".join(shown)


def environment(folder: Path) -> dict[str, str]:
    """Return an environment without colours, with a fixed width, in which `gordan` is this version."""
    binaries = folder / ".bin"
    binaries.mkdir(exist_ok=True)
    program = binaries / "gordan"
    program.write_text(f"#!{sys.executable}\n{PROGRAM}")
    program.chmod(0o755)
    path = f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}"
    package = f"{Path(gordan.__file__).parent.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    plain = {"PATH": path, "PYTHONPATH": package, "COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb", "MPLBACKEND": "Agg"}
    return {**os.environ, **plain}


def shell_in(folder: Path) -> Shell:
    """Return a function that runs commands with sh in this folder."""

    def run(command: str) -> str:
        settings = {**environment(folder), "GORDAN_WITHOUT": hidden(command)}
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return ended(done.stdout, done.returncode)

    return run


def hidden(command: str) -> str:
    """Return the name of the package that a command should run without."""
    found = re.search(r"# without (\w+)$", command)
    return found[1] if found else ""


def ended(output: str, code: int) -> str:
    """Return the output with trailing spaces removed, long lines wrapped as on a terminal, and a nonzero exit code appended."""
    told = [line for line in output.rstrip("\n").splitlines() if "is compiling its loops" not in line]  # once on a new machine
    lines = [part for line in told for part in broken(line.rstrip())]
    return "".join(f"{line}\n" for line in lines) + (f"[exit code {code}]\n" if code else "")


def broken(line: str) -> list[str]:
    """Split a line into pieces that fit the terminal; tables and JSON stay whole."""
    if len(line) <= WIDTH or "─" in line or line.startswith("{"):
        return [line]
    indent = " " * (len(line) - len(line.lstrip(" ")))
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def interrupted(command: str) -> str:
    """Run the command in its own terminal and interrupt it by Ctrl-C once its progress bar shows a gap."""
    import pty

    folder = Path.cwd()
    ours, theirs = pty.openpty()
    settings = {**environment(folder), "TERM": "xterm", "COLUMNS": str(WIDTH)}
    with subprocess.Popen(
        ["sh", "-c", f"exec {command}"], cwd=folder, env=settings, stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as process:
        os.close(theirs)
        bar = ""
        while process.poll() is None and not re.search(r"gap \S+ .* passes.* 0:00:(0[2-9]|[1-5])", bar[-BAR:]):
            bar += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", os.read(ours, 4096).decode(errors="ignore"))
        process.send_signal(signal.SIGINT)
        told = process.stdout.read() if process.stdout is not None else ""
    os.close(ours)
    shown = [line for line in re.split(r"[\r\n]+", bar) if re.search(r"gap .* 0:00:", line)]
    return f"{shown[-1].rstrip() if shown else ''}\n^C\n{ended(told, process.returncode)}"


if __name__ == "__main__":
    sys.exit(main())
