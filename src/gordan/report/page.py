"""The page of a race: one HTML file that needs nothing else, with the data, the style and the plotting code inside."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from importlib.util import find_spec

from gordan.arrays import plain
from gordan.errors import MissingExtra
from gordan.report.racing import Race, Step
from gordan.verdicts import outward

INTERCEPTS = {"free": "free intercept", "penalized": "penalized intercept", "none": "no intercept"}


def page_html(race: Race) -> str:
    """The page, as text. Needs plotly, whose JavaScript is put inside; a browser opens it without a network."""
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
        # "</" would end the script element wherever it stands
        "DATA": json.dumps(plain(race.to_dict()), allow_nan=False).replace("<", "\\u003c"),
        "PLOTLY": get_plotlyjs().replace("</script", "<\\/script"),
        "SCRIPT": (files("gordan.report") / "page.js").read_text(encoding="utf-8"),
    }
    parts = template.split("@@")  # text between two of them is the name of what is put there
    return "".join(part if k % 2 == 0 else filled[part] for k, part in enumerate(parts))


def require_plotly() -> None:
    """Refuse to go on without plotly, before anything has been run."""
    if find_spec("plotly") is None:
        raise MissingExtra("plotly", "report", "the page of a race")


def _facts(race: Race) -> str:
    norm = "" if race.norm == 2 else f", {race.norm:g}-norm"
    return f"{race.told} · {race.n:,} rows, {race.d:,} columns · {INTERCEPTS[race.intercept]}{norm}"


def _headings(race: Race) -> tuple[str, ...]:
    """Those of the columns, which a narrow screen shows in every cell."""
    return "first separator", f"to gap {race.tol:g}", "margin between", "gap", "rounds", "passes", "time"


def _row(race: Race, k: int) -> str:
    """A line of the table of results."""
    lane = race.lanes[k]
    lower, upper = outward(*lane.trace.bracket)
    trace = lane.trace
    cells = [
        _steps(lane.first_positive),
        _steps(lane.reached(race.tol)),
        f"{lower} … {upper}",
        f"{trace.gap[-1]:.1e}",
        f"{int(trace.t[-1]):,}",
        f"{trace.passes[-1]:,.0f}",
        seconds_told(float(trace.seconds[-1])),
    ]
    told = "".join(
        f'<td data-heading="{heading}">{cell if cell.startswith("<") else html.escape(cell)}</td>'
        for heading, cell in zip(_headings(race), cells, strict=True)
    )
    swatch = f'<span class="mark" data-mark="{k}" aria-hidden="true"></span>'
    name = html.escape(lane.name).replace("_", "_<wbr>")  # where a narrow screen may break it
    return f'<tr data-method="{html.escape(lane.name)}"><th scope="row">{swatch}{name}</th>{told}</tr>'


def _steps(step: Step | None) -> str:
    if step is None:
        return '<span class="never">not reached</span>'
    return step_told(step, ", ")


def step_told(step: Step, between: str) -> str:
    """Passes and seconds up to there."""
    passes = passes_told(step.passes)
    return f"{passes} pass{'es' * (passes != '1')}{between}{seconds_told(step.seconds)}"


def passes_told(passes: float) -> str:
    """A number of passes with four digits, or all before the point where those are more."""
    return f"{passes:,.0f}" if passes >= 1000 else f"{passes:.4g}"


def seconds_told(seconds: float) -> str:
    """A duration with two digits and a unit that fits."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.0f} µs"
    return f"{1e3 * seconds:.2g} ms" if seconds < 0.0995 else f"{1e3 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"
