"""Put the measured comparison into README.md, from docs/benchmarks/table.json: run it after `make bench`.

    python benchmarks/readme.py

It replaces what is between the two lines <!-- comparison … --> of README.md, and nothing else. Shown are the sets with the most
entries, and the geometric means over all.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import report

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- comparison: benchmarks/readme.py writes what follows -->", "<!-- comparison ends -->"
MOST = 6
ACCURACY = 1e-6


def main() -> None:
    """Rewrite the place in README.md."""
    page = ROOT / "README.md"
    before, _, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    sections = json.loads((ROOT / "docs" / "benchmarks" / "table.json").read_text())["sections"]
    page.write_text(f"{before}{BEGIN}\n{comparison(sections['verdict'], sections['margin'])}\n{END}{after}")


def comparison(verdict: dict[str, Any], margin: dict[str, Any]) -> str:
    """The table and the line below it."""
    sets = sorted(verdict["entries"], key=lambda name: -verdict["entries"][name]["n"] * verdict["entries"][name]["d"])
    rows, faster, ratios = [], [], {"free": [], "penalized": []}
    for name in sets:
        entry = verdict["entries"][name]
        own, peer = entry["gordan"], entry["HiGHS"]
        faster.append(peer["seconds"] / own["seconds"])
        row = {"set": name, "n × d": f"{entry['n']:,} × {entry['d']:,}"}
        row["separable?"] = {"separable": "yes", "not-separable": "no"}.get(own.get("status", ""), "not decided")
        row["proved in [s]"] = report.clock(own)
        row["HiGHS, unproved [s]"] = report.clock(peer)
        for intercept, found in ratios.items():
            runs = margin["entries"].get(name, {}).get(intercept)
            if runs is None:
                continue
            mine = report.time_to(runs["gordan"], ACCURACY, margin["limits"]["gordan"])
            peers = {who: report.time_to(runs[who], ACCURACY, margin["limits"]["peer"]) for who in report.peers_in(runs)}
            best = min(peers, key=lambda who: peers[who]["seconds"])
            found.append(peers[best]["seconds"] / mine["seconds"])
            if intercept == "free":
                row["margin to 1e-6 [s]"] = report.clock(mine)
                row["best peer [s]"] = report.clock(peers[best]) + ("" if peers[best]["timeout"] else f" ({best})")
        rows.append(row)
    means = {intercept: report.geometric_mean(found) for intercept, found in ratios.items()}
    shown = f"the {MOST} largest of {len(sets)} sets" if len(sets) > MOST else f"all {len(sets)} sets"
    return (
        f"{report.table(rows[:MOST])}\n\n"
        f"The table shows {shown}; >10 means that the limit of 10 s was reached. Over all sets, "
        f"the geometric mean of the speed-up is {report.geometric_mean(faster):.2g} for the verdict (against HiGHS), "
        f"{means['free']:.2g} for the margin (against LIBSVM or Clarabel, best setting) "
        f"and {means['penalized']:.2g} for the margin with a penalized intercept (against LIBLINEAR). "
        f"Measured on {verdict['machine']['cores']} cores at commit {verdict['commit'][:7]}: "
        "[how it was measured, and where gordan is slower](docs/benchmarks.md)."
    )


if __name__ == "__main__":
    main()
