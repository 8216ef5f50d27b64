"""The typer application, with its commands in the order of the help."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import re
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import gordan
from gordan.cli.commands import Debugging, examples
from gordan.cli.converting import convert
from gordan.cli.demo import demo
from gordan.cli.games import play, race
from gordan.cli.models import fit, predict
from gordan.cli.progress import ProgressMode, ProgressSetting
from gordan.cli.proofs import checker, verify
from gordan.cli.verdicts import diagnose, separate
from gordan.errors import did_you_mean


@contextlib.contextmanager
def suggestions() -> Iterator[None]:
    """Return a context in which the error about an invalid choice suggests the most similar valid one."""
    try:
        yield
    except typer.BadParameter as error:
        error.message = error.message.removeprefix("Value error, ")
        if found := re.fullmatch(r"'(.*)' is not one of (.*?)\.?", error.message):
            meant = did_you_mean(found[1], re.findall("'([^']*)'", found[2]))
            error.message = f"{error.message} {meant.capitalize()}".rstrip()
        raise


class _Commands(TyperGroup):
    """The group of all commands; its own options may be given after a command as well as before it."""

    def invoke(self, ctx: Any) -> Any:
        with suggestions():
            return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        first, rest, words = [], [], iter(args[:end])
        for word in words:
            if word == "--debug" or word.startswith(("--import=", "--progress=")):
                first.append(word)
            elif word in ("--import", "--progress"):
                first += [word, *itertools.islice(words, 1)]
            else:
                rest.append(word)
        with suggestions():
            return super().parse_args(ctx, [*first, *rest, *args[end:]])


def import_here(name: str) -> None:
    """Import a module, which may be in the current folder."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        importlib.import_module(name)
    except Exception as error:  # the module is not part of gordan and may raise anything
        hint = f"; write {name.removesuffix('.py')}, without .py" if name.endswith(".py") else ""
        reason = f"{type(error).__name__}: {error}"
        raise typer.BadParameter(f"{name} cannot be imported: {reason}{hint}", param_hint="--import") from None


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gordan {gordan.__version__}")
        raise typer.Exit()


@app.callback(
    epilog=examples(
        "gordan demo                           see what it does",
        "gordan separate data.csv              can a plane separate the classes?",
        "gordan fit data.csv -o model.gordan   fit the plane of largest margin",
        "gordan predict model.gordan new.csv   predict the class of each row",
        "gordan --install-completion           install completion for this shell",
    )
)
def _root(
    version: bool = typer.Option(
        False, "--version", metavar="", help="Print the version and exit.", is_eager=True, callback=_print_version
    ),
    debug: bool = typer.Option(
        False, "--debug", metavar="", help="Print the traceback of an unexpected exception, as GORDAN_DEBUG=1 does."
    ),
    progress: Annotated[
        ProgressMode,
        typer.Option(help="Show progress on stderr. auto: on a terminal only. log: a line every 30 seconds. none: never."),
    ] = ProgressMode.AUTO,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import", metavar="MODULE", help="Import this module first, to use the methods that it registers. Repeatable."
        ),
    ] = None,
) -> None:
    """Linear classification with proofs: is this data separable, with what margin, and which plane has the least loss?

    Exit codes: 0 yes or done; 1 no (not separable, rejected); 2 bad usage or input; 3 undecided; 70 bug; 75 SIGTERM; 130 Ctrl-C.
    """
    Debugging.on = debug
    ProgressSetting.mode = progress
    for name in modules or ():
        import_here(name)


for command in (demo, separate, fit, predict, verify, checker, diagnose, race, play, convert):
    app.command(epilog=command.epilog)(command.run)


def run() -> None:
    """Run the command that was given on the command line."""
    # Imports and compiled code make many objects that stay; looking for garbage among them takes a tenth of a short run.
    gc.set_threshold(50_000, 20, 20)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed by the shell, as `>&-` does
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (for as long as the program runs)
    if isinstance(sys.stdout, TextIOWrapper):  # an encoding without ∞ and ≤ must not be an error; stderr escapes them already
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="gordan")
