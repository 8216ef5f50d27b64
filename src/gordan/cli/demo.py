"""The command `gordan demo`, which shows verdicts on three small data sets, three methods at work, and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

import gordan
from gordan.cli.answers import align_columns, console, format_weights, headline, print_json, print_line, require_output
from gordan.cli.commands import ANSWERED, Saved, command, write_output
from gordan.cli.data import NamedMatrix
from gordan.cli.fields import fields
from gordan.cli.options import Json, flag
from gordan.cli.progress import Watch
from gordan.errors import InputError
from gordan.io import write_atomic
from gordan.verdicts import outward

if TYPE_CHECKING:
    from gordan.arrays import Array
    from gordan.trace import Trace
    from gordan.verdicts import Diagnosis, Verdict

PICTURE = Path("gordan-demo.png")
METHODS = ("normalized_gradient_descent", "mirror_prox_perceptron", "smooth_perceptron")


@command(
    "gordan demo",
    "gordan demo --rounds 200 --no-picture",
    fields={
        "demo": "setosa virginica rash methods picture",
        "setosa": "status margin w b",
        "virginica": "status witness accepted",
        "rash": "kind columns rows",
        "methods": "method bracket passes",
    },
)
def demo(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds that each method plays.")] = 2000,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to save the picture, if matplotlib is installed. Default: gordan-demo.png."),
    ] = None,
    no_picture: Annotated[bool, flag("--no-picture", "Do not save a picture.")] = False,
    as_json: Json = False,
) -> int:
    """Show what gordan does, on data that comes with it: one set that is separable, one that is not, and one that nearly is."""
    require_output(None if no_picture else picture)
    with Watch("running"):
        shown = _run(rounds)
        written, remark = (Saved(), "") if no_picture else _save(shown, picture)
    if as_json:
        parts = {
            "setosa": fields("setosa", shown.separable),
            "virginica": fields("virginica", shown.inseparable, shown, witness=shown.inseparable.stated_witness),
            "rash": fields("rash", shown.diagnosis),
            "methods": [fields("methods", trace, passes=float(trace.passes[-1])) for trace in shown.traces],
        }
        print_json({**fields("demo", picture=written.path, **parts), **written.fields})
    else:
        _print_results(shown, rounds)
        if remark:
            print_line("\n" + remark)
    return written.exit_code(ANSWERED)


@dataclass(frozen=True, eq=False)
class Shown:
    """The results that the demo prints; X and y are the separable set."""

    X: Array
    y: Array
    separable: Verdict
    inseparable: Verdict
    accepted: bool
    diagnosis: Diagnosis
    traces: list[Trace]


def _run(rounds: int) -> Shown:
    from gordan import datasets

    X, y = datasets.iris("setosa")
    other, signs = datasets.iris("virginica")
    inseparable = gordan.separate(other, signs)
    values, rash, names = datasets.rash()
    return Shown(
        X,
        y,
        gordan.separate(X, y),
        inseparable,
        inseparable.certificate is not None and bool(gordan.verify(inseparable.certificate, other, signs)),
        gordan.diagnose(NamedMatrix(values, names), rash),
        [gordan.play(X * y[:, None], name, rounds, halves=y < 0) for name in METHODS],
    )


def _print_results(shown: Shown, rounds: int) -> None:
    _title("1. iris, setosa against the rest: 150 flowers, 4 measurements in cm")
    headline(repr(shown.separable), True)
    _title("2. iris, virginica against the rest")
    headline(repr(shown.inseparable), False)
    if shown.accepted:
        _print_witness(shown.inseparable)
    _title("3. a rash and a new soap, 12 people: does a logistic regression have estimates?")
    for line in repr(shown.diagnosis).split("\n"):
        print_line(line)
    _title(f"4. three methods close in on the margin of the first set, {rounds} rounds each")
    _print_methods(shown.traces)


def _title(text: str) -> None:
    typer.echo("\n" + typer.style(text, bold=True))


def _print_witness(verdict: Verdict) -> None:
    """Print the rows and weights of a witness, and how to check it by hand."""
    assert verdict.stated_witness is not None
    weights = format_weights(verdict.stated_witness)
    for line in align_columns(
        [[f"row {row}", f"weight {weight}"] for row, weight in zip(verdict.stated_witness.rows, weights, strict=True)]
    ):
        print_line("  " + line)
    print_line(
        "  Add up weight · label · (flower, 1) over these rows, label +1 or -1: the sum is exactly zero, column by column."
    )
    print_line("  A plane with every flower on its side would make the same sum positive, so there is none.")


def _print_methods(traces: list[Trace]) -> None:
    from gordan.cli.tables import table

    made = table(None, "method", "passes", "margin between", "gap", "theorem")
    for trace in traces:
        made.add_row(
            trace.method,
            f"{trace.passes[-1]:,.0f}",
            " ".join(outward(*trace.bracket)),
            f"{trace.gap[-1]:.0e}",
            "-" if trace.bound is None or trace.dual is None else f"{trace.dual[-1] - trace.m[-1]:.0e} ≤ {trace.bound[-1]:.0e}",
        )
    console().print(made)
    print_line("gap: relative width of the bracket. theorem: the game's gap ≤ the bound of the theorem after that many rounds.")


def _save(shown: Shown, asked: Path | None) -> tuple[Saved, str]:
    """Save the picture and return a line about it; if no file was named for it, failing to save it is not an error."""
    path = PICTURE if asked is None else asked
    try:
        written = write_output(path, lambda path: write_atomic(path, _drawn(shown, path)))
    except ImportError:
        return Saved(), "(with matplotlib a picture is saved: pip install 'gordan[plot]')"
    if written.path is not None:
        return written, f"picture saved to {written.path}"
    return (
        (Saved(), f"(no picture was saved. {written.error}; name another file with --picture)")
        if asked is None
        else (written, "")
    )


def _drawn(shown: Shown, path: Path) -> bytes:
    """Draw the petals with their plane, and the brackets of the methods, in the format of the file name."""
    from matplotlib.figure import Figure

    from gordan.plots import BoundaryDisplay, ConvergenceDisplay

    figure = Figure(figsize=(11, 5), layout="constrained")
    kind, kinds = path.suffix[1:].lower() or "png", figure.canvas.get_supported_filetypes()
    if kind not in kinds:
        raise InputError(f"{path}: pictures are saved as {', '.join(sorted(kinds))}; pass a file name with one of these endings")
    left, right = figure.subplots(1, 2)
    petals = NamedMatrix(shown.X[:, 2:], ("petal length (cm)", "petal width (cm)"))
    names = np.where(shown.y > 0, "setosa", "the rest")
    BoundaryDisplay.from_estimator(gordan.MaxMarginClassifier().fit(petals.values, names), petals, names, ax=left)
    ConvergenceDisplay.from_traces(shown.traces, ax=right)
    content = BytesIO()
    figure.savefig(content, format=kind, dpi=120)
    return content.getvalue()
