"""Tables from what the sections have measured: Markdown, one JSON, and which of the promises were kept."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

Run = dict[str, Any]
# Seconds below which a set does not count in a comparison.
TOO_SHORT = 5e-3
MEGABYTE = 1 << 20


def time_to(runs: list[Run], accuracy: float, limit: float) -> Run:
    """Seconds of the fastest run that reached the accuracy; the limit, marked, if none did."""
    times = [run["seconds"] for run in runs if run.get("accuracy", math.inf) <= accuracy and not run.get("timeout")]
    return {"seconds": min(times), "timeout": False} if times else {"seconds": limit, "timeout": True}


def clock(run: Run | None) -> str:
    """Seconds with two digits; > for a limit, ✗ for a failure."""
    if run is None:
        return ""
    value = run["seconds"]
    text = f"{value:.0f}" if value >= 10 else f"{value:.2g}" if value >= 1e-3 else f"{value:.1g}"
    return ("✗ >" if "failed" in run else ">" if run.get("timeout") else "") + text


def line(variant: dict[str, Any], accuracies: Iterable[float], own: float, limit: float) -> str:
    """One line of progress: seconds to each accuracy."""
    told = []
    for who, runs in variant.items():
        if who != "reference":
            most = own if who == "gordan" else limit
            told.append(f"{who} " + "/".join(clock(time_to(runs, accuracy, most)) for accuracy in accuracies))
    return ", ".join(told)


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as Markdown; columns in order of first appearance."""
    head = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(cell(row.get(key, "")) for key in head) + " |" for row in rows])


def cell(value: Any) -> str:
    """A number in three digits, a whole one in full."""
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


# ---- sections --------------------------------------------------------------------------------------------------------


def verdicts(entries: dict[str, Run]) -> tuple[str, list[Run]]:
    """The table of verdicts, and the promises about them."""
    rows, faster, slower, unproved = [], {}, [], {}
    for name, entry in sorted(entries.items()):
        own, peer = entry["gordan"], entry["HiGHS"]
        told = {"separable": "yes", "not-separable": "no"}.get(own.get("status", ""), own.get("status", "failed"))
        row = {"set": name, "n": f"{entry['n']:,}", "d": f"{entry['d']:,}", "separable": told, "gordan, proved [s]": clock(own)}
        row["HiGHS [s]"] = clock(peer) + (" wrong" if wrong(own, peer) else "")
        row["HiGHS / gordan"] = ("≥ " if peer.get("timeout") else "") + f"{peer['seconds'] / own['seconds']:.3g}"
        faster[name] = peer["seconds"] / own["seconds"]
        if faster[name] < 1 and own["seconds"] >= TOO_SHORT:
            slower.append(f"{name} {faster[name]:.2g}×")
        others = {who: entry[who] for who in ("Perceptron", "LIBLINEAR", "LIBSVM") if who in entry}
        row |= {f"{who} [s]": clock(run) for who, run in others.items()}
        if others:
            fastest = min(run["seconds"] for run in others.values())
            row["gordan / fastest unproved"] = f"{own['seconds'] / fastest:.2g}"
            if own["seconds"] >= TOO_SHORT:
                unproved[name] = own["seconds"] / fastest
        row["memory [MB]"] = f"{own.get('memory', 0) / MEGABYTE:.0f}"
        rows.append(row)
    undecided = [name for name, entry in entries.items() if not entry["gordan"].get("proved")]
    slowest = max((entry["gordan"]["seconds"] for entry in entries.values()), default=math.nan)
    proved, mean = f"{len(entries) - len(undecided)}/{len(entries)}, slowest {slowest:.2g} s", geometric_mean(faster.values())
    late = [f"{name} {value:.2g}×" for name, value in unproved.items() if value > 2]
    return table(rows), [
        promise("verdict proved on every set within 30 s", proved, not undecided and slowest <= 30, undecided),
        promise("verdict at least 10× faster than HiGHS (geometric mean)", f"{mean:.3g}×", mean >= 10),
        promise("on no set slower than HiGHS", f"worst {min(faster.values(), default=math.nan):.2g}×", not slower, slower),
        promise(
            "proved verdict within 2× of the fastest unproved one on separable sets",
            f"worst {max(unproved.values(), default=math.nan):.2g}×",
            not late,
            late,
        ),
    ]


def wrong(own: Run, peer: Run) -> bool:
    """Whether the LP says other than what is proved."""
    return bool(peer.get("t") is not None and own.get("proved") and (peer["t"] > 1e-9) != (own["status"] == "separable"))


def margins(entries: dict[str, Run], accuracies: tuple[float, ...], limits: dict[str, float]) -> tuple[str, list[Run]]:
    """Time to each accuracy, passes and memory, and the promises about them."""
    rows, ratios, slower, missed, tall = [], {}, [], [], {}
    for name, entry in sorted(entries.items()):
        for intercept in (variant for variant in ("free", "penalized") if variant in entry and entry.get("separable", True)):
            runs = entry[intercept]
            row = {"set": name, "n": f"{entry['n']:,}", "d": f"{entry['d']:,}", "intercept": intercept}
            row |= accuracy_cells(runs, accuracies, limits["gordan"], limits["peer"])
            own = time_to(runs["gordan"], accuracies[-1], limits["gordan"])
            finest = runs["gordan"][-1]
            peers = [time_to(runs[who], accuracies[-1], limits["peer"]) for who in peers_in(runs)]
            fastest = min(peers, key=lambda run: run["seconds"])
            row["fastest peer / gordan at 1e-6"] = (
                "≥ " if fastest["timeout"] else ""
            ) + f"{fastest['seconds'] / own['seconds']:.3g}"
            row["passes"] = f"{finest.get('passes', math.nan):.1f}"
            row["memory [MB]"] = f"{finest.get('memory', 0) / MEGABYTE:.0f}"
            rows.append(row)
            if own["timeout"] or own["seconds"] > 60:
                missed.append(f"{name} ({intercept})")
            ratio = fastest["seconds"] / own["seconds"]
            ratios[name] = min(ratio, ratios.get(name, math.inf))  # a set counts by the worse of its two intercepts
            if ratio < 1 and own["seconds"] >= TOO_SHORT:
                slower.append(f"{name} ({intercept}) {ratio:.2g}×")
            if entry["n"] >= 10 * entry["d"]:
                tall[f"{name} ({intercept})"] = finest.get("passes", math.inf)
    many, mean = [name for name, value in tall.items() if value > 60], geometric_mean(ratios.values())
    certified = f"{len(rows) - len(missed)}/{len(rows)}"
    return table(rows), [
        promise("margin certified to 1e-6 on every separable set within 60 s", certified, not missed, missed),
        promise("at least 5× faster than the best peer's best setting (geometric mean)", f"{mean:.3g}×", mean >= 5),
        promise("on no set slower than a peer", f"worst {min(ratios.values(), default=math.nan):.2g}×", not slower, slower),
        promise("at most 60 passes to 1e-6 where n ≥ 10 d", f"most {max(tall.values(), default=math.nan):.0f}", not many, many),
    ]


def softs(entries: dict[str, Run], accuracies: tuple[float, ...], limits: dict[str, float]) -> str:
    """Time to each accuracy of the soft margin."""
    rows = []
    for name, entry in sorted(entries.items()):
        for intercept in (variant for variant in ("free", "penalized") if variant in entry):
            row = {"set": name, "n": f"{entry['n']:,}", "d": f"{entry['d']:,}", "nu": entry["nu"], "intercept": intercept}
            rows.append(row | accuracy_cells(entry[intercept], accuracies, limits["gordan"], limits["soft"]))
    return table(rows)


def peers_in(runs: dict[str, Any]) -> list[str]:
    return [who for who in runs if who not in ("gordan", "reference")]


def accuracy_cells(runs: dict[str, Any], accuracies: tuple[float, ...], own: float, limit: float) -> dict[str, str]:
    """One cell for each of us and the peers: seconds to the accuracies."""
    cells = {}
    finest = runs["gordan"][-1]
    if finest.get("status") == "margin-below-tol":
        return {"gordan [s]": f"{clock(finest)} to the proof that the reduced hulls meet"}
    for who in ("gordan", *peers_in(runs)):
        most = own if who == "gordan" else limit
        cells[f"{who} [s]"] = " / ".join(clock(time_to(runs[who], accuracy, most)) for accuracy in accuracies)
    return cells


def exponents(entries: dict[str, Run]) -> tuple[dict[str, dict[str, float]], list[Run]]:
    """For growth in n and in d the fitted exponent of each curve."""
    found: dict[str, dict[str, float]] = {}
    for letter in "nd":
        curves: dict[str, list[tuple[float, float]]] = {}
        for entry in (entry for key, entry in entries.items() if key[0] == letter):
            for curve, run in entry.items():
                if isinstance(run, dict) and not run.get("timeout") and "failed" not in run:
                    curves.setdefault(curve, []).append((entry[letter], run["seconds"]))
        found[letter] = {
            curve: float(np.polyfit(*np.log(np.array(points)).T, 1)[0]) for curve, points in curves.items() if len(points) > 2
        }
    worst = max((value for curve, value in found["n"].items() if "LIBLINEAR" not in curve), default=math.nan)
    return found, [promise("growth in n: exponent at most 1.1", f"{worst:.2f}", worst <= 1.1)]


def growths(entries: dict[str, Run]) -> tuple[str, list[Run]]:
    """Seconds against size, and the exponents."""
    rows = [
        {"n": f"{entry['n']:,}", "d": f"{entry['d']:,}"}
        | {f"{curve} [s]": clock(run) for curve, run in entry.items() if isinstance(run, dict)}
        | {"memory of the margin [MB]": f"{entry['margin to 1e-6'].get('memory', 0) / MEGABYTE:.0f}"}
        | {"data [MB]": f"{entry['n'] * entry['d'] * 8 / MEGABYTE:.0f}"}
        for entry in entries.values()
    ]
    found, promises = exponents(entries)
    fitted = [{"exponent in": letter} | {curve: f"{value:.2f}" for curve, value in found[letter].items()} for letter in found]
    return table(rows) + "\n\n" + table(fitted), promises


def first_calls(entries: dict[str, Run]) -> tuple[str, list[Run]]:
    """Seconds from a fresh process."""
    rows = [{"fresh process": name, "seconds (median)": clock(run)} for name, run in entries.items()]
    imported, separated = (entries.get(name, {}).get("seconds", math.inf) for name in ("import gordan", "separate FILE.csv"))
    return table(rows), [
        promise("`import gordan` under 0.5 s", f"{imported:.2g} s", imported < 0.5),
        promise("`separate` on a 1,000 × 20 CSV from a fresh process under 1.5 s", f"{separated:.2g} s", separated < 1.5),
    ]


def save(out: Path | None, name: str, text: str, content: Any = None) -> None:
    """Write a text to NAME.md in a folder, and what it was made of, if given, to NAME.json; nothing if the folder is None."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{name}.md").write_text(text + "\n", encoding="utf-8")
        if content is not None:
            (out / f"{name}.json").write_text(json.dumps(content, indent=1, default=str) + "\n")


def promise(what: str, measured: str, kept: bool, exceptions: list[str] | None = None) -> Run:
    return {"promise": what, "measured": measured, "kept": "yes" if kept else "**no**", "exceptions": ", ".join(exceptions or [])}


def write(out: Path, accuracies: tuple[float, ...]) -> None:
    """`table.md`, `table.json` and the plots, from the sections that are there."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(out.glob("*.json")) if path.stem != "table"}
    texts, promises = {}, []
    for section, told in found.items():
        entries, limits = told["entries"], told["limits"]
        if section == "verdict":
            texts[section], kept = verdicts(entries)
        elif section == "margin":
            texts[section], kept = margins(entries, accuracies, limits)
        elif section == "soft":
            texts[section], kept = softs(entries, accuracies, limits), []
        elif section == "growth":
            texts[section], kept = growths(entries)
        else:
            texts[section], kept = first_calls(entries)
        promises += kept
    headings = {
        "verdict": "Verdict: seconds until proved, free intercept",
        "margin": "Margin: seconds to relative accuracy " + " / ".join(f"{accuracy:g}" for accuracy in accuracies),
        "soft": "Soft margin: seconds to relative accuracy " + " / ".join(f"{accuracy:g}" for accuracy in accuracies),
        "growth": "Growth",
        "first-call": "First call",
    }
    parts = ["## What was promised\n\n" + table(promises)] if promises else []
    for section, heading in headings.items():
        if section in texts:
            told = found[section]
            where = ", ".join(f"{key} {value}" for key, value in told["machine"].items())
            limits = ", ".join(f"{key} {value:g} s" for key, value in told["limits"].items())
            parts.append(f"## {heading}\n\n{texts[section]}\n\nCommit {told['commit']}; {where}. Limits: {limits}.")
    save(out, "table", "\n\n".join(parts), {"promises": promises, "sections": found})
    import plots

    plots.draw(out, found, accuracies)
