"""Print tables with rich."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.table import Table

from gordan.cli.answers import console, escape_controls, print_line
from gordan.report.page import format_passes, format_seconds, format_step
from gordan.verdicts import outward

if TYPE_CHECKING:
    from gordan.report import Race
    from gordan.report.racing import Step
    from gordan.trace import Trace

# At most this many rounds of a trace are printed.
MAX_LINES = 16


def table(title: str | None, first: str, *others: str) -> Table:
    """Return an empty table with these headings; all columns but the first hold numbers."""
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    made.add_column(first, no_wrap=True)
    for heading in others:
        made.add_column(heading, justify="right", overflow="fold")  # numbers are wrapped rather than cut
    return made


def race_table(race: Race) -> None:
    """Print the first positive margin, the time to tol and the last bracket of each method."""
    made = table(
        escape_controls(f"{race.source}: {race.told}"),
        "method",
        "first separator",
        f"to gap {race.tol:g}",
        "margin between",
        "passes",
        "time",
    )
    for lane in race.lanes:
        lower, upper = outward(*lane.trace.bracket)
        made.add_row(
            lane.name,
            _step(lane.first_positive),
            _step(lane.reached(race.tol)),
            f"{lower}\n{upper}",
            f"{lane.trace.passes[-1]:,.0f}",
            format_seconds(float(lane.trace.seconds[-1])),
        )
    _print(made)


def _step(step: Step | None) -> str:
    return "-" if step is None else format_step(step, "\n")


def trace_table(trace: Trace, statement: str) -> None:
    """Print some of the recorded rounds, including the first and the last."""
    print_line(f"{trace.method}, {trace.form} form; theorem: {statement}")
    made = table(None, "round", "passes", "lower", "upper", "gap", "regret", "theorem")
    chosen = np.unique(np.linspace(0, len(trace) - 1, min(MAX_LINES, len(trace))).round().astype(int))
    regret = trace.average_regret
    for k in chosen.tolist():
        lower, upper = outward(float(trace.lower[k]), float(trace.upper[k]))
        made.add_row(
            str(trace.t[k]),
            format_passes(float(trace.passes[k])),
            lower,
            upper,
            f"{trace.gap[k]:.1e}",
            "-" if regret is None else f"{regret[k]:.1e}",
            "-" if trace.bound is None else f"{trace.bound[k]:.1e}",
        )
    _print(made)
    print_line(
        "lower, upper: bounds on the margin. regret: (R^w + R^p)/Σα of the two players. theorem: its bound on the game's gap."
    )
    print_line(trace.status.message.format(t=int(trace.t[-1])))


def _print(made: Table) -> None:
    target = console()
    if not target.is_terminal:  # a pipe has no width
        target.width = 200
    target.print(made)
