"""Plots of what the sections have measured: time to accuracy on each set, performance profiles, growth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import report

COLOURS = {"gordan": "C0", "LIBLINEAR": "C1", "LIBSVM": "C2", "Clarabel": "C3", "HiGHS": "C4", "Perceptron": "C5", "NuSVC": "C2"}


def draw(out: Path, found: dict[str, Any], accuracies: tuple[float, ...]) -> None:
    """Every plot for which there are figures."""
    import matplotlib

    matplotlib.use("Agg")
    if "margin" in found:
        time_to_accuracy(out / "time_to_accuracy.svg", found["margin"], accuracies)
    profiles(out / "profiles.svg", found, accuracies)
    if "growth" in found:
        growth(out / "growth.svg", found["growth"])


def time_to_accuracy(path: Path, told: dict[str, Any], accuracies: tuple[float, ...]) -> None:
    """A panel for each set: a point for each run that was not stopped, and the best accuracy within so many seconds."""
    import matplotlib.pyplot as plt

    entries = {name: entry for name, entry in sorted(told["entries"].items()) if "free" in entry and entry.get("separable", True)}
    if not entries:
        return
    columns = 4
    figure, axes = plt.subplots(
        -(-len(entries) // columns), columns, figsize=(13, 2.6 * -(-len(entries) // columns)), squeeze=False, sharey=True
    )
    for axis in axes.flat[len(entries) :]:
        axis.set_visible(False)
    for axis, (name, entry) in zip(axes.flat, entries.items(), strict=False):
        for intercept, style in (("free", "-"), ("penalized", "--")):
            for who, runs in entry.get(intercept, {}).items():
                points = [(run["seconds"], run["accuracy"]) for run in runs if usable(run)] if who != "reference" else []
                if points:
                    x, y = np.maximum(np.array(sorted(points)).T, 1e-12)
                    best = np.minimum.accumulate(y)
                    axis.step(x, best, style, where="post", color=COLOURS[who], label=f"{who}, {intercept} intercept")
                    axis.plot(x, y, ".", color=COLOURS[who])
        for accuracy in accuracies:
            axis.axhline(accuracy, color="0.85", linewidth=0.8, zorder=0)
        axis.set(xscale="log", yscale="log", xlim=(1e-3, 100), ylim=(1e-13, 3))
        axis.set_title(f"{name}, {entry['n']:,} × {entry['d']:,}", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("seconds")
    for axis in axes[:, 0]:
        axis.set_ylabel("relative accuracy")
    known = {label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(known.values(), known.keys(), loc="upper center", ncols=5, fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 0.97))
    figure.savefig(path)
    plt.close(figure)


def usable(run: dict[str, Any]) -> bool:
    return not run.get("timeout") and 0 < run.get("accuracy", np.inf) < np.inf


def profiles(path: Path, found: dict[str, Any], accuracies: tuple[float, ...]) -> None:
    """Share of sets on which each is within a factor of the fastest: of the verdicts, and of the margins at each accuracy."""
    import matplotlib.pyplot as plt

    panels: dict[str, list[dict[str, float]]] = {}
    if "verdict" in found:
        whole = found["verdict"]["entries"].values()
        panels["proved verdict, all sets"] = [
            {who: seconds(entry[who]) for who in ("gordan", "HiGHS")} for entry in whole
        ]  # fmt: skip
    if "margin" in found:
        limits = found["margin"]["limits"]
        entries = [entry for entry in found["margin"]["entries"].values() if "penalized" in entry]
        for accuracy in accuracies:
            panels[f"margin to {accuracy:g}"] = [best_times(entry, accuracy, limits) for entry in entries]
    if not any(panels.values()):
        return
    figure, axes = plt.subplots(1, len(panels), figsize=(3.6 * len(panels), 3.2), sharey=True, squeeze=False)
    for axis, (title, sets) in zip(axes[0], panels.items(), strict=True):
        for who in dict.fromkeys(who for times in sets for who in times):
            factors = np.sort([times[who] / min(times.values()) if np.isfinite(times[who]) else np.inf for times in sets])
            share = np.arange(1, len(factors) + 1) / len(factors)
            solved = np.isfinite(factors)
            if solved.any():
                x = np.concatenate((factors[solved], [1e4]))
                axis.step(x, np.concatenate((share[solved], share[solved][-1:])), where="post", color=COLOURS[who], label=who)
        axis.set(xscale="log", xlim=(1, 1e4), ylim=(0, 1.02), title=title, xlabel="factor of the fastest time")
        axis.legend(fontsize=8)
    axes[0, 0].set_ylabel("share of the sets")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def seconds(run: dict[str, Any]) -> float:
    return np.inf if run.get("timeout") or "failed" in run else run["seconds"]


def best_times(entry: dict[str, Any], accuracy: float, limits: dict[str, float]) -> dict[str, float]:
    """Seconds to the accuracy of everybody, whatever the intercept; ours is the slower of the two."""
    times: dict[str, float] = {}
    for intercept in ("free", "penalized"):
        for who, runs in entry[intercept].items():
            if who != "reference":
                times[who] = max(times.get(who, 0.0), seconds(report.time_to(runs, accuracy, limits["peer"])))
    return times


def growth(path: Path, told: dict[str, Any]) -> None:
    """Seconds against n and against d, with fitted exponents."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
    found, _ = report.exponents(told["entries"])
    for axis, letter, title in zip(axes, "nd", ("d = 50", "n = 2,000"), strict=True):
        entries = [entry for key, entry in told["entries"].items() if key[0] == letter]
        for k, curve in enumerate(dict.fromkeys(c for entry in entries for c, run in entry.items() if isinstance(run, dict))):
            points = [(entry[letter], seconds(entry[curve])) for entry in entries if curve in entry]
            x, y = np.array(points).T
            exponent = found[letter].get(curve)
            axis.loglog(x, y, marker=".", color=f"C{k}", label=curve + (f" ~ {letter}^{exponent:.2f}" if exponent else ""))
        axis.set(title=title, xlabel=letter)
        axis.legend(fontsize=8)
    axes[0].set_ylabel("seconds")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
