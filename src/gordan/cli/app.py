"""The typer application: its commands in the order of the help."""

from __future__ import annotations

import gc
import sys
from io import TextIOWrapper

import typer

import gordan
from gordan.cli.commands import examples
from gordan.cli.converting import convert
from gordan.cli.demo import demo
from gordan.cli.games import play, race
from gordan.cli.models import fit, predict
from gordan.cli.proofs import verify
from gordan.cli.verdicts import diagnose, separate

app = typer.Typer(
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
        "gordan separate data.csv              is there a plane between the classes?",
        "gordan fit data.csv -o model.gordan   the plane of largest margin",
        "gordan predict model.gordan new.csv   the class of each row",
        "gordan --install-completion           completion for this shell",
    )
)
def _root(
    version: bool = typer.Option(
        False, "--version", metavar="", help="Print the version and stop.", is_eager=True, callback=_print_version
    ),
) -> None:
    """Is this data linearly separable, and with what margin? Answers come with a proof.

    Exit codes: 0 answered, yes; 1 no (not separable, rejected); 2 wrong use or bad input; 3 undecided; 75 SIGTERM; 130 Ctrl-C.
    """


for command in (demo, separate, fit, predict, verify, diagnose, race, play, convert):
    app.command(epilog=command.epilog)(command.run)


def run() -> None:
    """Run the command that the program was called with."""
    # imports and compiled code make many objects that stay: looking for garbage among them takes a tenth of a short run
    gc.set_threshold(50_000, 20, 20)
    if isinstance(sys.stdout, TextIOWrapper):  # ∞ and ≤ where the encoding has none: as on stderr, and nothing is lost
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="gordan")
