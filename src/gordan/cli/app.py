"""The typer application: its commands in the order of the help."""

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
from gordan.cli.progress import Showing, Shown
from gordan.cli.proofs import checker, verify
from gordan.cli.verdicts import diagnose, separate
from gordan.errors import did_you_mean


@contextlib.contextmanager
def suggestions() -> Iterator[None]:
    """Within: where a value is none of those that an option has, the message asks whether the nearest one is meant."""
    try:
        yield
    except typer.BadParameter as error:
        error.message = error.message.removeprefix("Value error, ")
        if found := re.fullmatch(r"'(.*)' is not one of (.*?)\.?", error.message):
            meant = did_you_mean(found[1], re.findall("'([^']*)'", found[2]))
            error.message = f"{error.message} {meant.capitalize()}".rstrip()
        raise


class _Commands(TyperGroup):
    """The commands; what holds for all of them may come after one as well as before."""

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
    """Import a module, which may be in the folder that the program was started in."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        importlib.import_module(name)
    except Exception as error:  # whatever it does, it is not of gordan
        hint = f"; write {name.removesuffix('.py')}, without .py" if name.endswith(".py") else ""
        told = f"{type(error).__name__}: {error}"
        raise typer.BadParameter(f"{name} cannot be imported: {told}{hint}", param_hint="--import") from None


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
        "gordan fit data.csv -o model.gordan   the plane of largest margin",
        "gordan predict model.gordan new.csv   the class of each row",
        "gordan --install-completion           completion for this shell",
    )
)
def _root(
    version: bool = typer.Option(
        False, "--version", metavar="", help="Print the version and stop.", is_eager=True, callback=_print_version
    ),
    debug: bool = typer.Option(
        False, "--debug", metavar="", help="Print the traceback of an unexpected exception, as GORDAN_DEBUG=1 does."
    ),
    progress: Annotated[
        Showing, typer.Option(help="Progress on stderr. auto: on a terminal only. log: a line every 30 seconds. none: off.")
    ] = Showing.AUTO,
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
    Shown.how = progress
    for name in modules or ():
        import_here(name)


for command in (demo, separate, fit, predict, verify, checker, diagnose, race, play, convert):
    app.command(epilog=command.epilog)(command.run)


def run() -> None:
    """Run the command that the program was called with."""
    # imports and compiled code make many objects that stay: looking for garbage among them takes a tenth of a short run
    gc.set_threshold(50_000, 20, 20)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started the program, as `>&-` does
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (for as long as the program runs)
    if isinstance(sys.stdout, TextIOWrapper):  # ∞ and ≤ where the encoding has none: as on stderr, and nothing is lost
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="gordan")
