"""`gordan demo`: three small sets with their verdicts, three methods that close in on one margin, and a picture."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gordan
from gordan import datasets
from gordan.cli.data import Named
from gordan.cli.tables import table
from gordan.cli.telling import aligned, console, headline, say, say_json, weights_told, witness_plain
from gordan.verdicts import outward

if TYPE_CHECKING:
    from gordan.trace import Trace
    from gordan.verdicts import Verdict

METHODS = ("normalized_gradient_descent", "mirror_prox_perceptron", "smooth_perceptron")


def show(rounds: int, picture: Path | None, as_json: bool, done: Callable[[], None]) -> None:
    """Run everything, save the picture if there is matplotlib, call `done`, and print it all."""
    X, y = datasets.iris("setosa")
    separable = gordan.separate(X, y)
    other, signs = datasets.iris("virginica")
    inseparable = gordan.separate(other, signs)
    check = gordan.verify(inseparable.certificate, other, signs) if inseparable.certificate is not None else None
    rash = datasets.rash()
    diagnosis = gordan.diagnose(Named(rash[0], rash[2]), rash[1])
    traces = [gordan.play(X * y[:, None], name, rounds, halves=y < 0) for name in METHODS]
    saved = None
    if picture is not None:
        with contextlib.suppress(ImportError):
            _save(picture, X, y, traces)
            saved = str(picture)
    done()
    if as_json:
        say_json(
            {
                "separable": {"status": separable.status, "margin": separable.margin, "w": separable.w, "b": separable.b},
                "inseparable": {
                    "status": inseparable.status,
                    "witness": witness_plain(inseparable.witness),
                    "accepted": bool(check),
                },
                "quasi-separated": {"kind": diagnosis.kind, "columns": diagnosis.columns, "rows": diagnosis.rows},
                "methods": [{"method": t.method, "bracket": t.bracket, "passes": float(t.passes[-1])} for t in traces],
                "picture": saved,
            }
        )
        return
    _title("1. iris, setosa against the rest: 150 flowers, 4 measurements in cm")
    headline(repr(separable), True)
    _title("2. iris, virginica against the rest")
    headline(repr(inseparable), False)
    if check:
        _tell_witness(inseparable)
    _title("3. a rash and a new soap, 12 people: does a logistic regression have estimates?")
    for line in repr(diagnosis).split("\n"):
        say(line)
    _title(f"4. three methods close in on the margin of the first set, {rounds} rounds each")
    _methods(traces)
    if picture is not None:
        say(f"\npicture saved to {saved}" if saved else "\n(with matplotlib a picture is saved: pip install 'gordan[plot]')")


def _title(text: str) -> None:
    import typer

    typer.echo("\n" + typer.style(text, bold=True))


def _tell_witness(verdict: Verdict) -> None:
    """What anybody can add up."""
    assert verdict.witness is not None
    weights = weights_told(verdict.witness)
    for line in aligned([[f"row {row}", f"weight {weight}"] for row, weight in zip(verdict.witness.rows, weights, strict=True)]):
        say("  " + line)
    say("  Add up weight · label · (flower, 1) over these rows, label +1 or -1: the sum is exactly zero, column by column.")
    say("  A plane with every flower on its side would make the same sum positive, so there is none.")


def _methods(traces: list[Trace]) -> None:
    made = table(None, "method", "passes", "margin between", "gap", "theorem")
    for trace in traces:
        made.add_row(
            trace.method,
            f"{trace.passes[-1]:.0f}",
            " ".join(outward(*trace.bracket)),
            f"{trace.gap[-1]:.0e}",
            "-" if trace.bound is None else f"{trace.dual[-1] - trace.m[-1]:.0e} ≤ {trace.bound[-1]:.0e}",
        )
    console().print(made)
    say("gap: relative width of the bracket. theorem: the game's gap ≤ what the theorem promises after so many rounds.")


def _save(path: Path, X: Any, y: Any, traces: list[Trace]) -> None:
    """The petals with their plane, and the brackets closing."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    petals = X[:, 2:]
    best = gordan.maximize_margin(petals, y)
    for sign, name, marker in ((1, "setosa", "o"), (-1, "the rest", "s")):
        left.scatter(*petals[y == sign].T, s=16, marker=marker, label=name, alpha=0.8)
    if best.w is not None and best.b is not None:
        x = np.linspace(petals[:, 0].min(), petals[:, 0].max(), 2)
        for shift, style in ((0.0, "-"), (best.margin[0], ":"), (-best.margin[0], ":")):
            left.plot(x, (shift - best.b - best.w[0] * x) / best.w[1], style, color="black", linewidth=1)
    left.set(
        xlabel="petal length (cm)", ylabel="petal width (cm)", ylim=(0, 2.7), title=f"largest margin {best.margin[0]:.4f} cm"
    )
    left.legend()
    for trace in traces:
        (line,) = right.semilogx(trace.passes, trace.upper, label=trace.method)
        right.semilogx(trace.passes, trace.lower, color=line.get_color())
    right.set(
        xlabel="passes over the data", ylabel="margin (cm)", title="brackets closing, all four measurements", ylim=(0, None)
    )
    right.legend(fontsize=8)
    figure.savefig(path, dpi=120)
