"""Draw the walks of architecture.md: a line through the packages, one dot for each function, from the tables of that page.

python docs/walks.py               # into docs/walks
"""

from __future__ import annotations

import html
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The packages from left to right, in reading order, with what is in them and their colour.
LANES = {
    "io": (("io", "checkpoint"), "#888888"),
    "rows": (("rows",), "#4477aa"),
    "the paper": (("geometry", "game", "learners", "trace", "dynamics", "methods", "research"), "#66ccee"),
    "certificates": (("certificates",), "#228833"),
    "ledger": (("ledger",), "#44aa99"),
    "solve": (("solve",), "#ccbb44"),
    "verdicts": (("verdicts",), "#aa3377"),
    "interface": (("estimators", "plots", "report", "cli"), "#ee6677"),
}
LANE, STEP, TOP, LEFT = 62, 24, 54, 44


def walks() -> dict[str, list[str]]:
    """Return the functions of each walk, by the name of its picture."""
    _, _, text = (HERE / "architecture.md").read_text(encoding="utf-8").partition("## Four walks")
    found = {}
    for part in re.split(r"^### ", text.partition("\n## ")[0], flags=re.M)[1:]:
        picture = re.search(r"\(walks/(\w+)\.svg\)", part)
        assert picture is not None, part.splitlines()[0]
        found[picture[1]] = re.findall(r"^\| `([\w.]+)` \|", part, flags=re.M)
    return found


def lane_of(function: str) -> int:
    """Return the lane of a function."""
    package = function.split(".")[0]
    return next(k for k, (packages, _) in enumerate(LANES.values()) if package in packages)


def drawn(name: str, steps: list[str]) -> str:
    """Return the picture as SVG."""
    width, height = LEFT + LANE * len(LANES) + 350, TOP + STEP * len(steps) + 10
    points = [(LEFT + LANE * lane_of(step), TOP + STEP * (k + 0.5)) for k, step in enumerate(steps)]
    colours = [colour for _, colour in LANES.values()]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-family="system-ui, sans-serif" '
        f'font-size="12" aria-label="The walk {html.escape(name)} through the packages: {html.escape(", ".join(steps))}">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for k, (package, (_, colour)) in enumerate(LANES.items()):
        x = LEFT + LANE * k
        parts.append(
            f'<line x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{height - 6}" stroke="{colour}" stroke-opacity="0.35" stroke-width="8"/>'
        )
        parts.append(f'<text x="{x}" y="{TOP - 16 - 16 * (k % 2)}" text-anchor="middle" fill="#333">{package}</text>')
    line = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
    parts.append(f'<polyline points="{line}" fill="none" stroke="#444" stroke-width="1.6" stroke-linejoin="round"/>')
    names = LEFT + LANE * len(LANES) - 24
    for (x, y), step in zip(points, steps, strict=True):
        parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="5.5" fill="{colours[lane_of(step)]}" stroke="#222"/>')
        parts.append(
            f'<text x="{names}" y="{y + 4:.0f}" font-family="ui-monospace, monospace" font-size="11" fill="#222">{step}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Draw all walks."""
    (HERE / "walks").mkdir(exist_ok=True)
    for name, steps in walks().items():
        (HERE / "walks" / f"{name}.svg").write_text(drawn(name, steps), encoding="utf-8")


if __name__ == "__main__":
    main()
