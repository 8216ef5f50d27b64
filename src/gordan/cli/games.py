"""The commands `gordan race` and `gordan play`, which run methods of the research part on the rows of a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import gordan
from gordan.certificates.problem import Problem
from gordan.cli.answers import headline, print_json, print_line, print_notes, require_output
from gordan.cli.commands import ANSWERED, Interrupts, command, write_output
from gordan.cli.data import DataOptions
from gordan.cli.fields import fields
from gordan.cli.options import Device, Json, Standardize, TimeLimit, WithIntercept, method_names
from gordan.cli.progress import Watch
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.io import write_atomic

# The gap at which the progress bar of `play`, which has no tolerance, is full.
FULL_BAR = 1e-6


@command(
    "gordan race data.csv --html report.html",
    "gordan race data.csv -m smooth_perceptron -m nesterov --rounds 10000",
    "gordan race iris.csv --positive setosa --intercept none --json",
)
def race(
    source: DataOptions,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PAGE", help="Write a self-contained HTML page with plots.")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            metavar="METHOD",
            help="Name of a method. Repeatable. Default: six methods.",
            autocompletion=method_names,
        ),
    ] = None,
    standardize: Standardize = False,
    intercept: WithIntercept = Intercept.FREE,
    norm: Annotated[
        float, typer.Option(help="Norm of feature space, from 1 to inf; fewer methods support norms other than 2.")
    ] = 2.0,
    rounds: Annotated[int, typer.Option(min=1, help="Maximum number of rounds for each method.")] = 2000,
    tol: Annotated[float, typer.Option(help="Relative width of the bracket at which a method stops.")] = 1e-4,
    time_limit: Annotated[float, typer.Option(metavar="SECONDS", min=0.001, help="Time limit for each method.")] = 10.0,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Run several methods on the same data and compare their cost."""
    from gordan import report  # imported here, so that other commands start without it

    require_output(html, source.file)
    if html is not None:
        report.require_plotly()
    with Interrupts() as interrupts, Watch(f"reading {source.file}", tol) as watch:
        data = source.read()
        data = data.standardized() if standardize else data

        def begin(what: str) -> None:
            if interrupts.pressed:  # during the search for the verdict, which returns what it has
                raise KeyboardInterrupt
            watch.about(what, data.X)

        measured = report.race(
            data.X,
            data.y,
            methods=method,
            intercept=str(intercept),
            norm=norm,
            rounds=rounds,
            tol=tol,
            time_limit=time_limit,
            device=device,
            begin=begin,
            callback=watch.moment,
        )
        result = replace(measured, source=data.path.name, told=data.contrast, verdict=data.with_file_rows(measured.verdict))
        watch.about("writing")
        written = write_output(html, lambda path: write_atomic(path, report.page_html(result).encode()))
    if as_json:
        print_json({**result.to_dict(), "html": written.path, "interrupted": interrupts.pressed, **written.fields}, data.notices)
    else:
        from gordan.cli.tables import race_table

        headline(result.verdict_told, result.verdict.separable)
        race_table(result)
        if result.hint:
            print_notes(f"hint: {result.hint}")
        if written.path is not None:
            print_line(f"page written to {written.path}")
    return written.exit_code(interrupts.code or ANSWERED)


@command(
    "gordan play data.csv smooth_perceptron --rounds 5000",
    "gordan play data.csv accelerated_p_norm_perceptron --norm 4 --save trace.json",
    "gordan play data.csv nesterov --json | jq '.bracket'",
    fields={"play": "method form norm n d scale status bracket guarantee columns"},
)
def play(
    source: DataOptions,
    method: Annotated[
        str, typer.Argument(metavar="METHOD", help="Name of a method.", autocompletion=method_names)
    ] = "smooth_perceptron",
    rounds: Annotated[int, typer.Option(min=1, help="Maximum number of rounds.")] = 1000,
    form: Annotated[str | None, typer.Option(metavar="FORM", help="Form of the method: published or game.")] = None,
    norm: Annotated[float | None, typer.Option(help="Norm p of the p-norm methods and of double_oracle.")] = None,
    standardize: Standardize = False,
    intercept: WithIntercept = Intercept.FREE,
    time_limit: TimeLimit = None,
    device: Device = None,
    save: Annotated[
        Path | None, typer.Option(metavar="TRACE.json", help="Write the whole trace, for `gordan.Trace.load`.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Run one method and print its trace: the bracket, the regrets and the bound of its theorem."""
    require_output(save, source.file)
    chosen = _method(method, form, norm)
    with Interrupts() as interrupts, Watch(f"reading {source.file}", FULL_BAR) as watch:
        data = source.read()
        data = data.standardized() if standardize else data
        problem = Problem.of(data.X, data.y)
        A = gordan.rows.of(data.X, problem.signs, constant=intercept.column, device=device)
        watch.about(method, data.X)
        halves = intercept.group_of_row(problem.signs)
        trace = gordan.play(A, chosen, rounds, halves=halves, time_limit=time_limit, callback=watch.moment)
        written = write_output(save, trace.save)
    if as_json:
        content = fields("play", trace, guarantee=chosen.guarantee.statement, columns=trace.to_dict())
        print_json({**content, **written.fields}, data.notices)
    else:
        from gordan.cli.tables import trace_table

        trace_table(trace, chosen.guarantee.statement)
        if written.path is not None:
            print_line(f"trace written to {written.path}")
    return written.exit_code(interrupts.code or ANSWERED)


def _method(name: str, form: str | None, norm: float | None) -> gordan.methods.Method:
    """Return the method of this name with these options; refuse a norm for a method that has none."""
    entry = gordan.methods.get(name)
    if norm is not None and not entry.takes_norm:
        raise InputError(f"{name} does not take --norm; the p-norm methods and double_oracle do")
    options: dict[str, Any] = {"form": form, "p": norm}
    return entry(**{name: value for name, value in options.items() if value is not None})
