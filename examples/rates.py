"""Measure the rates of "On Accelerated Perceptrons and Beyond", and of results beyond it: six figures and a table.

    python examples/rates.py --out docs/rates                     # four to five minutes on two cores
    python examples/rates.py --out docs/rates --part rescaling    # one figure and its tables; the others stay
    python examples/rates.py --out rates --quick                  # rough results

Most figures use one family of problems (`cone`): n rows that all lie exactly on the margin, in a cone so flat that γ can be
chosen freely. The figures are

    separation.png  rounds until the first positive margin against 1/γ: 1/γ² for the Perceptron, 1/γ when accelerated
    margin.png      distance to the largest margin against t: 1/log t, 1/√t, 1/t, 1/t²
    p_norm.png      both again for p-norm margins, p in {2, 3, 6, 12}
    regret.png      the measured regrets of the two players, their bound, and the gap of the game below both
    rescaling.png   rounds until the first positive margin down to γ = 1e-8: plain, accelerated and rescaled methods
    race.png        the relative width of the bracket against the round, on five other games

The fitted slopes are written to table.md and table.json, with the largest ratio of measurement and bound over all rounds, which
is at most 1 if the theorems hold.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

import gordan

# ---------------------------------------------------------------------------------------------------------------- problems


def cone(gamma: float, n: int, d: int, p: float = 2.0, seed: int = 0) -> np.ndarray:
    """Return a flat cone: n rows of p-norm 1, all on the margin, A_i = γg + u_i with u_i·w = 0 and 0 in the hull of the u_i.

    g = (1, …, 1)/d^{1/p} and w = (1, …, 1)/d^{1/q} are dual unit vectors, so w has margin γ, and γg, of p-norm γ, is in the hull
    of the rows: γ* = γ by construction, up to rounding. The u_i are random, except for the last, which balances a random convex
    combination of the others. This has two consequences, and both are intended:

    * The multipliers that balance the rows are far from uniform, so softmax(-Av) must tilt, and the tilt is what separates the
      margin of v from γ*. If they were uniform (rows in pairs γg ± u), an accelerated method would be done after one round.
    * No small integers balance the rows, so the Perceptron's mistakes never cancel for long. Separation needs the part of v
      across g to come within γ²t of zero in d-1 dimensions; counting chances puts that near t = γ^{-2(d-1)/d}, close to the worst
      case 1/γ² in high dimension only.
    """
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((n, d))
    u -= u.mean(axis=1, keepdims=True)
    u[-1] = -rng.dirichlet(np.ones(n - 1)) @ u[:-1]
    u /= np.linalg.norm(u, ord=p, axis=1, keepdims=True)
    for _ in range(100):  # lengths of the u_i that give the rows norm 1: a fixed point, reached to rounding
        A = gamma * d ** (-1 / p) + u
        u /= np.linalg.norm(A, ord=p, axis=1, keepdims=True)
    return A


def chain(delta: float, d: int) -> np.ndarray:
    """Return a thin cone: w_1 > 0 and 2w_i < w_{i+1} < 2(1 + δ)w_i, with rows of norm 1."""
    rows = [np.eye(d)[0]]
    for i in range(d - 1):
        for sign, factor in ((1.0, -2.0), (-1.0, 2.0 * (1 + delta))):
            row = np.zeros(d)
            row[i + 1], row[i] = sign, factor
            rows.append(row)
    return np.array(rows) / np.linalg.norm(rows, axis=1)[:, None]


def gauss(n: int, d: int, seed: int) -> np.ndarray:
    """Return normal rows, signed by a random plane and divided by the largest norm."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    A *= np.sign(A @ rng.standard_normal(d))[:, None]
    return A / np.linalg.norm(A, axis=1).max()


GAMES: dict[str, Callable[[], np.ndarray]] = {
    "gauss 200×50": lambda: gauss(200, 50, 2),
    "gauss 500×10": lambda: gauss(500, 10, 5),
    "wide 100×200": lambda: gauss(100, 200, 9),
    "cone 80×40, γ = 1e-4": lambda: cone(1e-4, 80, 40),
    "chain, d = 10, γ ≈ 1e-4": lambda: chain(0.17, 10),
}


@dataclass(frozen=True)
class Sizes:
    """The sizes of the problems, and the numbers of rounds."""

    n: int = 80
    d: int = 40
    seeds: tuple[int, ...] = (0, 1)
    gammas: tuple[float, ...] = tuple(np.geomspace(0.3, 1e-3, 11))
    p_gammas: tuple[float, ...] = tuple(np.geomspace(0.3, 3e-3, 7))
    gamma: float = 0.1
    rounds: int = 100_000
    p_rounds: int = 10_000
    regret_rounds: int = 10_000
    decades: int = 8
    most_rounds: int = 300_000
    race_rounds: int = 20_000


QUICK = Sizes(
    seeds=(0,),
    gammas=tuple(np.geomspace(0.3, 1e-2, 6)),
    p_gammas=tuple(np.geomspace(0.3, 2e-2, 5)),
    rounds=5_000,
    p_rounds=2_000,
    regret_rounds=1_000,
    decades=5,
    most_rounds=3_000,
    race_rounds=2_000,
)

# ----------------------------------------------------------------------------------------------------------------- methods


@dataclass(frozen=True)
class Line:
    """A method with its options, and how it is drawn."""

    name: str
    label: str
    color: str
    options: dict[str, Any] = field(default_factory=dict)
    marker: str = "o"

    @property
    def p(self) -> float:
        """The norm in which the margin is measured."""
        return self.options.get("p", 2)

    @property
    def key(self) -> tuple[str, float]:
        return self.name, self.p

    @property
    def method(self) -> gordan.methods.Method:
        basic = self.options.get("basic")  # by name, or with options: a method itself cannot be sent to another process
        options = self.options if not isinstance(basic, tuple) else {"basic": gordan.methods.get(basic[0])(**basic[1])}
        return gordan.methods.get(self.name)(**options)


# Okabe and Ito's colours, which colour-blind readers can distinguish.
BLACK, GREY, ORANGE, SKY, GREEN = "#000000", "#7f7f7f", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
THEOREM = {"ls": "--", "lw": 1.0, "alpha": 0.8}

SEPARATION = (
    Line("perceptron", "perceptron", BLACK, marker="^"),
    Line("smooth_perceptron", "smooth_perceptron", SKY, marker="s"),
    Line("accelerated_perceptron", "accelerated_perceptron", BLUE, marker="."),
    Line("nesterov", "nesterov", VERMILION, marker="x"),
    Line("mirror_prox_perceptron", "mirror_prox_perceptron", GREEN, marker="D"),
)
MARGIN = (
    Line("gradient_descent", "gradient_descent", GREY),
    Line("normalized_gradient_descent", 'normalized_gradient_descent, step "1/sqrt(t)"', PURPLE, {"step": "1/sqrt(t)"}),
    Line("normalized_gradient_descent", "normalized_gradient_descent, constant step", ORANGE),
    Line("accelerated_perceptron", "accelerated_perceptron", BLUE),
    Line("nesterov", "nesterov", VERMILION),
    Line("accelerated_perceptron", 'accelerated_perceptron, theta="original"', GREEN, {"theta": "original"}),
    Line("accelerated_perceptron", "accelerated_perceptron, eta=1/2", BLACK, {"eta": 0.5}),
)
P_NORMS = (2, 3, 6, 12)


def p_norm_lines(p: float) -> tuple[Line, Line, Line]:
    """Return the baseline, the paper's method and the method beyond the paper, for one p."""
    return (
        Line("p_norm_perceptron", "p_norm_perceptron", BLACK, {"p": p}, "^"),
        Line("accelerated_p_norm_perceptron", "accelerated_p_norm_perceptron", GREEN, {"p": p}, "D"),
        Line("smooth_p_norm_perceptron", "smooth_p_norm_perceptron", BLUE, {"p": p}, "o"),
    )


REGRET = (
    Line("smooth_perceptron", "smooth_perceptron", SKY, {"form": "game"}),
    Line("nesterov", "nesterov", VERMILION, {"form": "game"}),
    Line("mirror_prox_perceptron", "mirror_prox_perceptron", GREEN, {"form": "game"}),
    Line("accelerated_p_norm_perceptron", "accelerated_p_norm_perceptron", ORANGE, {"p": 6}),
    Line("smooth_p_norm_perceptron", "smooth_p_norm_perceptron", BLUE, {"p": 6}),
)

RESCALING = (
    Line("perceptron", "perceptron", BLACK, marker="^"),
    Line("smooth_perceptron", "smooth_perceptron", SKY, {"eta": 0.5}, "s"),
    Line("pdhg", "pdhg, restarted", PURPLE, {"restart": True}, "v"),
    Line("rescaled_perceptron", "rescaled_perceptron, plain step", GREY, {"step": "plain"}, "x"),
    Line("rescaled_perceptron", "rescaled_perceptron, of perceptron", ORANGE, {"basic": "perceptron"}, "D"),
    Line("rescaled_perceptron", "rescaled_perceptron", VERMILION),
    Line("rescaled_perceptron", "rescaled_perceptron, of mirror_prox", GREEN, {"basic": "mirror_prox_perceptron"}, "."),
    Line("rescaled_perceptron", "rescaled_perceptron, of pdhg", BLUE, {"basic": "pdhg"}, "*"),
)
# These are in the tables but not in the figure.
ALSO_RESCALED = (
    Line("rescaled_perceptron", "rescaled_perceptron, plain step, of perceptron", "", {"step": "plain", "basic": "perceptron"}),
    Line(
        "rescaled_perceptron",
        "rescaled_perceptron, of frank_wolfe by line search",
        "",
        {"basic": ("frank_wolfe", {"step": "line search"})},
    ),
)
RACE = (
    Line("smooth_perceptron", "smooth_perceptron, eta=1/2", SKY, {"eta": 0.5}),
    Line("nesterov", "nesterov", VERMILION),
    Line("mirror_prox_perceptron", "mirror_prox_perceptron", GREEN),
    Line("normalized_gradient_descent", "normalized_gradient_descent", ORANGE),
    Line("frank_wolfe", "frank_wolfe, pairwise", GREY, {"step": "pairwise"}),
    Line("pdhg", "pdhg", BLUE),
    Line("pdhg", "pdhg, restarted", PURPLE, {"restart": True}),
)

# ------------------------------------------------------------------------------------------------------------- measurements


def rounds_to_separate(line: Line, A: np.ndarray, gamma: float) -> tuple[float, float]:
    """Return the rounds until the first positive margin, and the number that the theorem promises."""
    method = line.method
    promised = method.guarantee.rounds(math.log(len(A)), gamma)
    limit = math.ceil(promised) + 2
    # a Perceptron has a positive margin when no mistake is left, and needs one more round to find that out
    by_itself = line.name in ("perceptron", "p_norm_perceptron")
    record = [] if by_itself else range(1, limit + 1)
    trace = gordan.play(A, method, limit, record=record, callback=lambda now: now.margin > 0, threads=1)
    if trace.status not in ("callback", "finished"):
        raise AssertionError(f"{line.label}: no positive margin after {limit} rounds, {promised:.1f} were promised")
    return float(trace.t[-1] - by_itself), promised


def margin_gaps(line: Line, A: np.ndarray, gamma: float, rounds: int) -> dict[str, np.ndarray]:
    """Return t, γ* - normalized margin, and the theorem's bound on it (infinite where there is none)."""
    method = line.method
    trace = gordan.play(A, method, rounds, threads=1)
    promise = method.guarantee.margin
    D = math.log(len(A))
    bound = np.full(len(trace), np.inf)
    if promise is not None:
        bound = gamma - np.array([promise(int(t), D, gamma) for t in trace.t])
    if line.name == "accelerated_p_norm_perceptron":
        # the theorem is about γ(w̄) with ‖w̄‖ ≤ 1, and γ(w̄)/‖w̄‖ is at least γ(w̄) only if γ(w̄) ≥ 0, so the bound starts there
        bound[bound > gamma] = np.inf
    return {"t": trace.t, "gap": gamma - trace.normalized_margin, "bound": bound}


def regrets(line: Line, A: np.ndarray, gamma: float, rounds: int) -> dict[str, np.ndarray]:
    """Return the measured regrets, Σα_t, the gap of the game and the theorem's bound on it."""
    trace = gordan.play(A, line.method, rounds, threads=1)
    return {
        "t": trace.t,
        "w": trace.regret_w,
        "p": trace.regret_p,
        "weight": trace.weight,
        "gap": trace.dual - trace.m,
        "bound": trace.bound,
    }


def slope(x: Iterable[float], y: Iterable[float]) -> float:
    """Return the slope of the least-squares line through (log x, log y)."""
    return float(np.polyfit(np.log(np.asarray(x)), np.log(np.asarray(y)), 1)[0])


def cone_job(measure: Callable[..., Any], line: Line, gamma: float, sizes: Sizes, seed: int, *more: Any) -> Any:
    """Call `measure(line, A, γ, …)` with the cone of this γ, in the norm of the method."""
    return measure(line, cone(gamma, sizes.n, sizes.d, line.p, seed), gamma, *more)


# -------------------------------------------------------------------------------------------------- (a) rounds to separate

Row = dict[str, Any]
Curve = dict[str, Any]
Part = tuple[str, Figure, dict[str, list[Row]]]  # the figure's name, the figure, and tables by caption


def separation(pool: Executor, sizes: Sizes) -> Part:
    """Plot the rounds until the first positive margin against 1/γ."""
    curves = separation_curves(pool, sizes, SEPARATION, sizes.gammas, sizes.seeds)
    rows = [
        separation_row(line, curve, 2.0 if line.name == "perceptron" else 1.0)
        for line, curve in zip(SEPARATION, curves, strict=True)
    ]
    return "separation", draw_separation(curves, rows), {"Rounds until the first positive margin, against 1/γ": rows}


def separation_curves(
    pool: Executor, sizes: Sizes, lines: Sequence[Line], gammas: Sequence[float], seeds: Sequence[int]
) -> list[Curve]:
    """Return a curve per line, from one run per line, γ and seed; small γ are started first, since they take longest."""
    runs = {
        (k, gamma, seed): pool.submit(cone_job, rounds_to_separate, line, gamma, sizes, seed)
        for gamma in sorted(gammas)
        for k, line in enumerate(lines)
        for seed in seeds
    }
    pairs = [np.array([[runs[k, gamma, seed].result() for seed in seeds] for gamma in gammas]) for k in range(len(lines))]
    return [separation_curve(gammas, pair) for pair in pairs]


def separation_curve(gammas: Sequence[float], pairs: np.ndarray) -> Curve:
    """Return 1/γ, rounds, promised rounds (geometric means over seeds), and the largest ratio of the two over all runs."""
    rounds, promised = np.moveaxis(np.exp(np.log(pairs).mean(axis=1)), -1, 0)
    return {"x": 1 / np.array(gammas), "rounds": rounds, "bound": promised, "share": float((pairs[..., 0] / pairs[..., 1]).max())}


def separation_row(line: Line, curve: Curve, theory: float, **more: Any) -> Row:
    """Return a line of the table, fitted where γ ≤ 0.1, because the first rounds of any method are cheap."""
    low = curve["x"] >= 10
    measured = slope(curve["x"][low], curve["rounds"][low])
    return {"method": line.label, **more, "slope": measured, "theory": theory, "share": curve["share"]}


def draw_separation(curves: list[Curve], rows: list[Row]) -> Figure:
    fig, ax = plt.subplots(figsize=(7.6, 5.2))
    for line, curve, row in zip(SEPARATION, curves, rows, strict=True):
        label = f"{line.label}: slope {row['slope']:.2f}"
        hollow = {"ms": 9, "mfc": "none"} if line.marker == "s" else {"ms": 6}
        ax.loglog(curve["x"], curve["rounds"], marker=line.marker, color=line.color, lw=1.6, label=label, **hollow)
        ax.loglog(curve["x"], curve["bound"], **THEOREM, color=line.color)
    ax.plot([], [], **THEOREM, color=GREY, label="dashed: the theorem's number of rounds")
    ax.set(xlabel="1/γ", ylabel="rounds until the first positive margin")
    ax.legend(loc="upper left", frameon=False)
    ax.set_title("The Perceptron needs about 1/γ² rounds, accelerated Perceptrons 1/γ")
    return fig


# -------------------------------------------------------------------------------------------------------- (b) margin gap


def margin(pool: Executor, sizes: Sizes) -> Part:
    """Plot the distance to the largest margin against t."""
    runs = [pool.submit(cone_job, margin_gaps, line, sizes.gamma, sizes, sizes.seeds[0], sizes.rounds) for line in MARGIN]
    curves = [run.result() for run in runs]
    rows = margin_rows(curves, sizes.gamma)
    return "margin", draw_margin(curves, rows), {"γ* - normalized margin, against t": rows}


def last_decades(t: np.ndarray, decades: float = 2.0) -> np.ndarray:
    """Return which recorded rounds are in the last decades."""
    return t >= t[-1] / 10**decades


def gap_row(line: Line, curve: Curve, theory: float | None, **more: Any) -> Row:
    """Return a line of the table: the slope over the last two decades, and the largest gap/bound if there is a bound."""
    late = last_decades(curve["t"])
    share = float(np.max(curve["gap"] / curve["bound"])) if np.isfinite(curve["bound"]).any() else None
    return {"method": line.label, **more, "slope": slope(curve["t"][late], curve["gap"][late]), "theory": theory, "share": share}


def margin_rows(curves: list[Curve], gamma: float) -> list[Row]:
    """Return the table of the figure; gradient descent appears twice, because a power of t does not describe it."""
    theory = (None, -0.5, -1.0, -2.0, -2.0, -2.0, -2.0)
    rows = [gap_row(line, curve, k) for line, curve, k in zip(MARGIN, curves, theory, strict=True)]
    # gradient descent reaches length log(γ²t)/γ, so its rate of 1/log t is measured against this length
    plain, late = curves[0], last_decades(curves[0]["t"], 1.0)
    clock = np.log(gamma**2 * plain["t"][late])
    measured = slope(clock, plain["gap"][late])
    return [*rows, {"method": "gradient_descent, against log(γ²t)", "slope": measured, "theory": -1.0, "share": None}]


def draw_margin(curves: list[Curve], rows: list[Row]) -> Figure:
    fig, ax = plt.subplots(figsize=(9.4, 5.6))
    dots = {"nesterov": (0, (2, 3)), "accelerated_perceptron, eta=1/2": (0, (1, 3))}
    for line, curve in zip(MARGIN, curves, strict=True):
        ax.loglog(curve["t"], curve["gap"], color=line.color, lw=2.4, ls=dots.get(line.label, "-"))
        if line.name != "nesterov":  # its bound is nearly that of the accelerated Perceptron
            ax.loglog(curve["t"], curve["bound"], **THEOREM, color=line.color)
    last = curves[0]["t"][-1]
    for index, lift, words in (
        (0, 14, "gradient_descent"),
        (1, -12, 'normalized_gradient_descent\nstep "1/sqrt(t)"'),
        (2, 0, "normalized_gradient_descent\nconstant step"),
        (3, 12, "accelerated_perceptron and\nnesterov (dotted)"),
        (5, -18, 'accelerated_perceptron,\ntheta="original" or\neta=1/2 (dotted)'),
    ):
        words += f": slope {rows[index]['slope']:.2f}".replace("-", "−")
        place = {"xytext": (8, lift), "textcoords": "offset points", "va": "center", "annotation_clip": False}
        ax.annotate(words, (last, curves[index]["gap"][-1]), **place, color=MARGIN[index].color, fontsize=9)
    ax.set(xlabel="round t", ylabel="γ* − normalized margin", xlim=(1, last), ylim=(curves[-1]["gap"][-1] / 5, 2))
    ax.plot([], [], **THEOREM, color=GREY, label="dashed: the theorem's bound")
    ax.legend(loc="lower left", frameon=False)
    ax.set_title("Distance to the largest margin: acceleration turns 1/t into 1/t²")
    return fig


# -------------------------------------------------------------------------------------------------------------- (c) p-norm


def p_norm(pool: Executor, sizes: Sizes) -> Part:
    """Plot rounds and distances for p-norm margins."""
    grid = [p_norm_lines(p) for p in P_NORMS]
    flat = [line for lines in reversed(grid) for line in lines]  # large p first: they take longest
    curves = separation_curves(pool, sizes, flat, sizes.p_gammas, sizes.seeds[:1])
    apart = {line.key: curve for line, curve in zip(flat, curves, strict=True)}
    game_lines = [line for line in flat if line.name != "p_norm_perceptron"]
    runs = [pool.submit(cone_job, margin_gaps, line, sizes.gamma, sizes, sizes.seeds[0], sizes.p_rounds) for line in game_lines]
    gaps = {line.key: run.result() for line, run in zip(game_lines, runs, strict=True)}
    rounds, margins = p_norm_rows(grid, apart, gaps)
    return (
        "p_norm",
        draw_p_norm(grid, apart, gaps),
        {
            "p-norm: rounds until the first positive margin, against 1/γ": rounds,
            "p-norm: γ* - normalized margin, against t": margins,
        },
    )


Grid = list[tuple[Line, Line, Line]]
Curves = dict[tuple[str, float], Curve]


def p_norm_rows(grid: Grid, apart: Curves, gaps: Curves) -> tuple[list[Row], list[Row]]:
    """Return slopes of rounds against 1/γ per p and against p-1 at the smallest γ, then of the margin gap against t."""
    rounds, margins = [], []
    for lines, theory, in_p in zip(zip(*grid, strict=True), (2.0, 1.0, 1.0), (1.0, 0.5, 0.5), strict=True):
        rounds += [separation_row(line, apart[line.key], theory, p=line.p) for line in lines]
        measured = slope([line.p - 1 for line in lines], [apart[line.key]["rounds"][-1] for line in lines])
        rounds.append({"method": f"{lines[0].name}, against p-1", "p": "all", "slope": measured, "theory": in_p, "share": None})
    for lines, theory in zip(list(zip(*grid, strict=True))[1:], (-1.0, -2.0), strict=True):
        margins += [gap_row(line, gaps[line.key], theory, p=line.p) for line in lines]
    return rounds, margins


def draw_p_norm(grid: Grid, apart: Curves, gaps: Curves) -> Figure:
    fig, axes = plt.subplots(2, len(grid), figsize=(11.5, 6.4), sharex="row", sharey="row")
    for lines, above, below in zip(grid, *axes, strict=True):
        for line in lines:
            curve = apart[line.key]
            above.loglog(curve["x"], curve["rounds"], marker=line.marker, color=line.color, lw=1.5, ms=4)
            above.loglog(curve["x"], curve["bound"], **THEOREM, color=line.color)
        for line in lines[1:]:
            curve = gaps[line.key]
            below.loglog(curve["t"], curve["gap"], color=line.color, lw=2)
            below.loglog(curve["t"], curve["bound"], **THEOREM, color=line.color)
        above.set(title=f"p = {line.p:g}", xlabel="1/γ")
        below.set(xlabel="round t", xticks=(1, 100, 10_000), xlim=(1, 1.3 * curve["t"][-1]))
    axes[0, 0].set_ylabel("rounds until the first\npositive margin")
    axes[1, 0].set_ylabel("γ* − normalized margin")
    handles = [Line2D([], [], color=line.color, marker=line.marker, ms=5, label=line.label) for line in grid[0]]
    handles.append(Line2D([], [], **THEOREM, color=GREY, label="dashed: theorem"))
    fig.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    fig.suptitle("p-norm margins: 1/γ rounds instead of 1/γ² for every p, and a margin at 1/t, or at 1/t² when smoothed")
    return fig


# ------------------------------------------------------------------------------------------------------------- (d) regrets


def regret(pool: Executor, sizes: Sizes) -> Part:
    """Plot the regrets of the two players, their bound, and the gap of the game."""
    runs = [pool.submit(cone_job, regrets, line, sizes.gamma, sizes, sizes.seeds[0], sizes.regret_rounds) for line in REGRET]
    curves = [run.result() for run in runs]
    rows = [regret_row(line, curve, k) for line, curve, k in zip(REGRET, curves, (-2.0, -2.0, -1.0, -1.0, -2.0), strict=True)]
    return "regret", draw_regret(curves), {"(R^w + R^p)/Σα, against t": rows}


def regret_row(line: Line, curve: Curve, theory: float) -> Row:
    """Return a line of the table: the slope of (R^w + R^p)/Σα, and the largest shares of the bound that it and the gap reach."""
    total = (curve["w"] + curve["p"]) / curve["weight"]
    late = last_decades(curve["t"])
    return {
        "method": line.label + (f", p = {line.p:g}" if "p" in line.options else ""),
        "slope": slope(curve["t"][late], total[late]),
        "theory": theory,
        "share": float(np.max(total / curve["bound"])),
        "gap/regret": float(np.max(curve["gap"] / total)),
    }


def draw_regret(curves: list[Curve]) -> Figure:
    fig, axes = plt.subplots(2, len(REGRET), figsize=(13, 6.4), sharex=True, sharey="row")
    for line, curve, above, below in zip(REGRET, curves, *axes, strict=True):
        t, weight, total = curve["t"], curve["weight"], curve["w"] + curve["p"]
        limit = weight * curve["bound"]
        above.semilogx(t, np.ones(len(t)), "--", color=VERMILION, lw=1.6, label="the theorem's bound")
        above.semilogx(t, total / limit, color=BLACK, lw=2.2, label="$R^w+R^p$")
        above.semilogx(t, curve["w"] / limit, color=ORANGE, lw=1.6, label="$R^w$ alone")
        above.semilogx(t, curve["p"] / limit, color=BLUE, lw=1.6, ls=(0, (4, 2)), label="$R^p$ alone")
        below.loglog(t, curve["bound"], "--", color=VERMILION, lw=1.6)
        below.loglog(t, total / weight, color=BLACK, lw=2.2)
        below.loglog(t, curve["gap"], color=SKY, lw=2.2, ls=(0, (1, 2)), label="gap of the game")
        name = line.name.replace("_p_norm", " p-norm").replace("_perceptron", "\nperceptron").replace("_", "-")
        above.set_title(name + (f", p = {line.p:g}" if "p" in line.options else ""), fontsize=11)
        below.set(xlabel="round t", xticks=(1, 100, 10_000), xlim=(1, 1.3 * t[-1]))
    axes[0, 0].set_ylabel("regret as a share\nof its bound")
    axes[1, 0].set_ylabel("divided by $\\Sigma\\alpha_t$")
    handles = axes[0, 0].get_legend_handles_labels()[0] + axes[1, 0].get_legend_handles_labels()[0]
    fig.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)
    fig.suptitle("The regrets add up to less than a constant, so the gap of the game falls as fast as the weights grow")
    return fig


# ----------------------------------------------------------------------------------------------------------- (e) rescaling


# Thin cones of another kind, with their margins as `maximize_margin` proves them.
CHAINS = {"3.1e-4": 1.0, "7.5e-6": 1e-2, "7.6e-8": 1e-4}


def first_positive(line: Line, key: str, most: int) -> tuple[int, float] | None:
    """Return rounds and passes until the first positive margin on the cone or chain of this γ, or None if it takes more than
    `most` rounds.

    Long runs are looked at every thousandth of their length, and then again, from the last round without to the first with one.
    """
    A = chain(CHAINS[key], 10) if key in CHAINS else cone(float(key), 80, 40)
    by_itself = line.name in ("perceptron", "rescaled_perceptron")

    def played(record: Iterable[int]) -> gordan.Trace:
        return gordan.play(A, line.method, most, record=record, callback=lambda now: now.lower > 0, threads=1)

    grid = (int(t) for t in [*range(1, 1000), *1.001 ** np.arange(6900, 1001 * math.log(most))])
    trace = played([] if by_itself else {t for t in grid if t <= most})
    if trace.status not in ("callback", "finished") or not (A @ trace.w_best).min() > 0:
        return None
    if not by_itself and trace.t[-1] > 1000:
        trace = played(range(int(trace.t[-2]) + 1, int(trace.t[-1]) + 1))
    return int(trace.t[-1]) - (line.name == "perceptron"), float(trace.passes[-1])  # it needs one more round to find no mistake


def rescaling(pool: Executor, sizes: Sizes) -> Part:
    """Plot the rounds until the first positive margin against 1/γ, down to margins that only rescaled methods reach."""
    lines, columns = (*RESCALING, *ALSO_RESCALED), [[f"1e-{power}" for power in range(1, sizes.decades + 1)], [*CHAINS]]
    found: dict[tuple[int, str], tuple[int, float] | None] = {}
    for keys in columns:
        for before, key in zip([None, *keys], keys, strict=False):  # a method that failed is not run on a smaller margin
            asked = [k for k in range(len(lines)) if before is None or found[k, before] is not None]
            runs = {k: pool.submit(first_positive, lines[k], key, sizes.most_rounds) for k in asked}
            found |= {(k, key): runs[k].result() if k in runs else None for k in range(len(lines))}
    tables: dict[str, list[Row]] = {}
    for part, what in enumerate(("Rounds", "Passes")):
        for keys, kind in zip(columns, ("", " of chains with d = 10"), strict=True):
            caption = f"{what} until the first positive margin{kind}, down to small γ"
            tables[caption] = [{"method": line.label} for line in lines]
            for k, row in enumerate(tables[caption]):
                row |= {key: None if (pair := found[k, key]) is None else round(pair[part]) for key in keys}
    rows = tables["Rounds until the first positive margin, down to small γ"]
    return "rescaling", draw_rescaling(rows[: len(RESCALING)]), tables


def draw_rescaling(rows: list[Row]) -> Figure:
    fig, ax = plt.subplots(figsize=(8.6, 5.4))
    for line, row in zip(RESCALING, rows, strict=True):
        points = [(10.0 ** int(key[3:]), rounds) for key, rounds in row.items() if key != "method" and rounds is not None]
        ax.loglog(*zip(*points, strict=True), marker=line.marker, color=line.color, lw=1.6, ms=6, label=line.label)
    ax.set(xlabel="1/γ", ylabel="rounds until the first positive margin")
    ax.legend(loc="upper right", frameon=False, fontsize=9)
    ax.set_ylim(top=ax.get_ylim()[1] * 30)
    ax.set_title("Rescaled, an accelerated Perceptron separates margins of 1e-8 in some 150 rounds")
    return fig


# ---------------------------------------------------------------------------------------------------------------- (f) race

WIDTH = 1e-6


def widths(line: Line, game: str, rounds: int) -> dict[str, np.ndarray]:
    """Return t and the relative width of the bracket, which is 1 until a margin is positive; the run ends at 1e-6."""
    record = {int(t) for t in np.geomspace(1, rounds, 400)}
    done = {"record": record, "callback": lambda now: now.gap <= WIDTH, "threads": 1}
    trace = gordan.play(GAMES[game](), line.method, rounds, **done)
    return {"t": trace.t, "gap": trace.gap}


def race(pool: Executor, sizes: Sizes) -> Part:
    """Plot the brackets of several kinds of methods on several kinds of games."""
    runs = {(k, game): pool.submit(widths, line, game, sizes.race_rounds) for k, line in enumerate(RACE) for game in GAMES}
    curves = {key: run.result() for key, run in runs.items()}
    rows = [{"method": line.label, **{game: reached(curves[k, game]) for game in GAMES}} for k, line in enumerate(RACE)]
    return "race", draw_race(curves, sizes), {f"Rounds to a relative width of {WIDTH:g}, or the width reached": rows}


def reached(curve: Curve) -> str:
    """Return the number of rounds, or the width after the last round."""
    last = float(curve["gap"][-1])
    return str(int(curve["t"][-1])) if last <= WIDTH else "not separated" if last >= 1 else f"width {last:.0e}"


def draw_race(curves: dict[tuple[int, str], Curve], sizes: Sizes) -> Figure:
    fig, axes = plt.subplots(1, len(GAMES), figsize=(14, 4.2), sharex=True, sharey=True)
    for game, ax in zip(GAMES, axes, strict=True):
        for k, line in enumerate(RACE):
            ax.loglog(curves[k, game]["t"], np.maximum(curves[k, game]["gap"], WIDTH / 2), color=line.color, lw=1.6)
        ax.axhline(WIDTH, **THEOREM, color=BLACK)
        ax.set(title=game.replace(", γ", ",\nγ"), xlabel="round t", xlim=(1, sizes.race_rounds))
    axes[0].set_ylabel("relative width of the bracket")
    handles = [Line2D([], [], color=line.color, label=line.label) for line in RACE]
    fig.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    fig.suptitle("Only restarted PDHG reaches a width of 1e-6 in all five games")
    return fig


# ------------------------------------------------------------------------------------------------------------------ output


def number(value: Any) -> str:
    """Format a value for the table."""
    return "–" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def named(method: str) -> str:
    """Format the name of a method as code, followed by its options."""
    name, comma, options = method.partition(", ")
    return f"`{name}`{comma}{options}"


HEADERS = {"method": "method", "p": "p", "slope": "slope", "theory": "theory", "share": "largest measured/bound"}
HEADERS["gap/regret"] = "largest gap/(regrets/Σα)"
HEADERS |= {key: f"γ = {key}" for key in (*(f"1e-{power}" for power in range(1, 9)), *CHAINS)} | {game: game for game in GAMES}
PARTS = {part.__name__: part for part in (separation, margin, p_norm, regret, rescaling, race)}


def markdown(tables: dict[str, list[Row]]) -> str:
    """Return the tables as Markdown, each under its caption."""
    parts = []
    for caption, rows in tables.items():
        keys = [key for key in HEADERS if key in rows[0]]
        lines = [[HEADERS[key] for key in keys], ["---"] + ["--:"] * (len(keys) - 1)]
        lines += [[named(row[key]) if key == "method" else number(row[key]) for key in keys] for row in rows]
        caption = caption.replace("*", "\\*")  # of γ*, which would end the bold face
        parts.append(f"**{caption}**\n\n" + "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n")
    return "\n".join(parts)


def rounded(value: Any) -> Any:
    """Round floats to six digits, since more digits are not meaningful."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def save_png(figure: Figure, path: Path) -> None:
    """Save with 64 colours, which suffice for lines and take a third of the space."""
    raw = io.BytesIO()
    figure.savefig(raw, format="png", dpi=110)
    Image.open(raw).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


STYLE = {
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 12,
    "figure.titlesize": 13,
    "axes.labelsize": 11,
    "legend.fontsize": 10,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the figures and the table")
    parser.add_argument("--quick", action="store_true", help="fewer problems and rounds: under half a minute")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this figure, again for more; other tables stay")
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else Sizes()
    arguments.out.mkdir(parents=True, exist_ok=True)
    plt.rcParams.update(STYLE)
    kept = arguments.out / "table.json"
    tables: dict[str, list[Row]] = (
        json.loads(kept.read_text(encoding="utf-8"))["tables"] if arguments.part and kept.exists() else {}
    )
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for part in (PARTS[name] for name in arguments.part or PARTS):
            started = time.perf_counter()
            name, figure, found = part(pool, sizes)
            save_png(figure, arguments.out / f"{name}.png")
            tables |= found
            print(f"{name}.png ({time.perf_counter() - started:.0f} s)", flush=True)
    (arguments.out / "table.md").write_text(markdown(tables), encoding="utf-8")
    content = rounded({"sizes": asdict(sizes), "tables": tables})
    (arguments.out / "table.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
