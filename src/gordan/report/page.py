"""The page of a race: a single HTML file that contains the data, the style and the plotting code."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from importlib.util import find_spec

from gordan.arrays import plain
from gordan.errors import MissingExtra
from gordan.intercepts import Intercept
from gordan.report.racing import Race, Step
from gordan.verdicts import outward


def page_html(race: Race) -> str:
    """Return the page of a race as HTML, which a browser can open without a network connection.

    Parameters
    ----------
    race : Race
        What `gordan.report.race` returned.

    Returns
    -------
    str
        The page, which contains the JavaScript of plotly.

    Raises
    ------
    MissingExtra
        If plotly is not installed.

    Examples
    --------
    >>> import gordan.report
    >>> X, y = gordan.datasets.iris()
    >>> result = gordan.report.race(X, y, methods=["double_oracle"])
    >>> gordan.report.page_html(result).startswith("<!doctype html>")
    True
    """
    require_plotly()
    from plotly.offline import get_plotlyjs

    template = (files("gordan.report") / "page.html").read_text(encoding="utf-8")
    filled = {
        "TITLE": html.escape(f"Race on {race.source}"),
        "FACTS": html.escape(_facts(race)),
        "VERDICT": html.escape("; ".join(filter(None, [race.verdict_told, race.hint]))),
        "TOL": html.escape(f"{race.tol:g}"),
        "HEADINGS": "".join(f'<th scope="col">{heading}</th>' for heading in ("method", *_headings(race))),
        "ROWS": "\n".join(_row(race, k) for k in range(len(race.lanes))),
        "STYLE": (files("gordan.report") / "page.css").read_text(encoding="utf-8"),
        # "</" would end the script element, even within a string
        "DATA": json.dumps(plain(race.to_dict()), allow_nan=False).replace("<", "\\u003c"),
        "PLOTLY": get_plotlyjs().replace("</script", "<\\/script"),
        "SCRIPT": (files("gordan.report") / "page.js").read_text(encoding="utf-8"),
    }
    parts = template.split("@@")  # every other part is the name of what is put in its place
    return "".join(part if k % 2 == 0 else filled[part] for k, part in enumerate(parts))


def require_plotly() -> None:
    """Raise a MissingExtra if plotly is not installed; called before a race is run."""
    if find_spec("plotly") is None:
        raise MissingExtra("plotly", "report", "the page of a race")


def _facts(race: Race) -> str:
    """Return a line about the data and the options of a race."""
    norm = "" if race.norm == 2 else f", {race.norm:g}-norm"
    return f"{race.told} · {race.n:,} rows, {race.d:,} columns · {Intercept(race.intercept).in_words}{norm}"


def _headings(race: Race) -> tuple[str, ...]:
    """Return the headings of the columns; a narrow screen repeats them in every cell."""
    return "first separator", f"to gap {race.tol:g}", "margin between", "gap", "rounds", "passes", "time"


def _row(race: Race, k: int) -> str:
    """Return the row of a method in the table of results."""
    lane = race.lanes[k]
    lower, upper = outward(*lane.trace.bracket)
    trace = lane.trace
    cells = [
        _reached(lane.first_positive),
        _reached(lane.reached(race.tol)),
        f"{lower} … {upper}",
        f"{trace.gap[-1]:.1e}",
        f"{int(trace.t[-1]):,}",
        f"{trace.passes[-1]:,.0f}",
        format_seconds(float(trace.seconds[-1])),
    ]
    columns = "".join(
        f'<td data-heading="{heading}">{cell if cell.startswith("<") else html.escape(cell)}</td>'
        for heading, cell in zip(_headings(race), cells, strict=True)
    )
    swatch = f'<span class="mark" data-mark="{k}" aria-hidden="true"></span>'
    name = html.escape(lane.name).replace("_", "_<wbr>")  # may be broken there on a narrow screen
    return f'<tr data-method="{html.escape(lane.name)}"><th scope="row">{swatch}{name}</th>{columns}</tr>'


def _reached(step: Step | None) -> str:
    """Return what it took to reach a step, as HTML."""
    return '<span class="never">not reached</span>' if step is None else format_step(step, ", ")


def format_step(step: Step, separator: str) -> str:
    """Format the passes and the time up to a step."""
    passes = format_passes(step.passes)
    return f"{passes} pass{'es' * (passes != '1')}{separator}{format_seconds(step.seconds)}"


def format_passes(passes: float) -> str:
    """Format a number of passes with four digits, or without decimals if it has more."""
    return f"{passes:,.0f}" if passes >= 1000 else f"{passes:.4g}"


def format_seconds(seconds: float) -> str:
    """Format a duration with two or three digits and a suitable unit."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.0f} µs"
    return f"{1e3 * seconds:.2g} ms" if seconds < 0.0995 else f"{1e3 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"
