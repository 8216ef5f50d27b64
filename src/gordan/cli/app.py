"""The typer application."""

from __future__ import annotations

import math

import typer
from rich import box
from rich.console import Console
from rich.table import Table

import gordan
from gordan import datasets

app = typer.Typer(
    no_args_is_help=True,
    help="Maximum-margin separators with a certified interval for the margin.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gordan {gordan.__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop.", is_eager=True, callback=_print_version),
) -> None:
    """Options of the program itself; what they do happens in their callbacks."""


@app.command()
def demo(rounds: int = typer.Option(2000, min=1, help="Rounds to play.")) -> None:
    """Play three methods on iris (setosa against the rest) and show how the margin bracket closes."""
    X, y = datasets.iris()
    A, halves = X * y[:, None], y < 0
    title = f"iris, setosa against the rest: {X.shape[0]} rows, {X.shape[1]} columns, free intercept"
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for heading in ("passes", "margin between", "gap", "theorem"):
        table.add_column(heading, justify="right")
    for name in ("normalized_gradient_descent", "mirror_prox_perceptron", "smooth_perceptron"):
        trace = gordan.play(A, name, rounds, halves=halves)
        lower, upper = trace.bracket
        table.add_row(
            name,
            f"{trace.passes[-1]:.0f}",
            f"{math.floor(1e5 * lower) / 1e5:.5f} {math.ceil(1e5 * upper) / 1e5:.5f}",  # outward: still a bracket
            f"{trace.gap[-1]:.0e}",
            "-" if trace.bound is None else f"{trace.dual[-1] - trace.m[-1]:.0e} ≤ {trace.bound[-1]:.0e}",
        )
    console = Console()
    console.print(table)
    console.print(
        "Three brackets for one number: the largest margin of any separator, in cm.\n"
        "gap: relative width of the bracket. theorem: the game's gap ≤ what the theorem promises after this many rounds."
    )


def main() -> None:
    """Entry point of the `gordan` command."""
    app()
