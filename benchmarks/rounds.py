"""What one round costs, beside one `A @ w` and one `A.T @ p` in NumPy or SciPy in the same run.

    python benchmarks/rounds.py [--out FOLDER] [--quick]

Three questions: the fused round on data larger than the cache (dense 200,000 × 500, sparse 100,000 × 50,000 with 0.1% stored),
the overhead of a round on a 100 × 10 problem, and how the time per round grows with n. Timings alternate between us and the
peer, and medians are reported, because machines are noisy.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from pathlib import Path

import numba
import numpy as np
import report
import scipy
import scipy.sparse as sp

import gordan

PUBLISHED = ["smooth_perceptron", "accelerated_perceptron", "nesterov", "mirror_prox_perceptron", "normalized_gradient_descent"]


def seconds(function, calls: int = 5) -> float:
    """Of one call, in a row of several, as rounds come."""
    begin = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - begin) / calls


def side_by_side(functions: dict, repeats: int) -> dict[str, float]:
    """Median seconds of each, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(repeats):
        for name, function in functions.items():
            times[name].append(seconds(function))
    return {name: statistics.median(values) for name, values in times.items()}


def per_round(A, method: str, rounds: int) -> float:
    """Seconds per round, start-up and the pass for R left out: the difference of two runs."""
    short, long = rounds, 3 * rounds
    spent = [gordan.play(A, method, count, record=[]).seconds[-1] for count in (short, long)]
    return (spent[1] - spent[0]) / (long - short)


def fused_round(A, label: str, repeats: int) -> dict:
    """One round of the Smooth Perceptron against two products, and the bare fused pass."""
    n, d = A.shape
    rng = np.random.default_rng(1)
    w, p = rng.standard_normal(d).astype(A.dtype), np.full(n, 1 / n, dtype=A.dtype)
    rows = gordan.rows.of(A)
    v = w.astype(np.float64) * 0.1
    transposed = A.T
    times = side_by_side(
        {
            "two products": lambda: (A @ w, transposed @ p),
            "fused pass": lambda: rows.softmin(v),
            "round": lambda: round_of(rows),
        },
        repeats,
    )
    return {
        "data": label,
        **{f"{name} [ms]": 1000 * value for name, value in times.items()},
        "round / two products": times["round"] / times["two products"],
    }


_forms: dict[int, list] = {}


def round_of(rows) -> None:
    """One round of the published Smooth Perceptron, the bookkeeping of the loop included."""
    from gordan.dynamics import Sums
    from gordan.geometry import Simplex

    if id(rows) not in _forms:
        p_set = Simplex(rows.n)
        form = gordan.methods.smooth_perceptron().build(rows, p_set, p_set.centre)
        _forms[id(rows)] = [form, form.start(), 0, Sums()]
    entry = _forms[id(rows)]
    form, state, t, sums = entry
    state, played = form.round(state, t + 1)
    entry[1:] = [state, t + 1, sums.after(form.game, played)]


def dense(n: int, d: int, dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d), dtype=np.float32).astype(dtype)
    A /= 2 * np.sqrt(d)
    return A


def sparse(n: int, d: int, density: float, dtype: str) -> sp.csr_array:
    rng = np.random.default_rng(0)
    per_row = round(d * density)
    columns = rng.integers(0, d, n * per_row, dtype=np.int32)
    data = rng.standard_normal(n * per_row).astype(dtype) / (2 * np.sqrt(per_row))
    A = sp.csr_array((data, columns, np.arange(0, n * per_row + 1, per_row, dtype=np.int32)), shape=(n, d))
    A.sum_duplicates()
    return A


def overhead(repeats: int) -> list[dict]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((100, 10))
    found: dict[str, list[float]] = {name: [] for name in PUBLISHED}
    for _ in range(repeats):  # in turn, since what else runs on the machine comes and goes
        for name, seconds in found.items():
            seconds.append(1e6 * per_round(A, name, 1000))
    return [
        {"method": name, "µs per round, 100 × 10, median": statistics.median(seconds), "fastest": min(seconds)}
        for name, seconds in found.items()
    ]


def growth(quick: bool) -> tuple[list[dict], float]:
    """Seconds a round against n at d = 50, and the fitted exponent over the sizes that outgrow the caches."""
    sizes = [10_000, 100_000, 400_000] if quick else [10_000, 100_000, 400_000, 1_000_000, 2_000_000]
    rows = []
    for n in sizes:
        A = dense(n, 50, "float64")
        rounds = max(3, 2_000_000 // n)
        spent = statistics.median(per_round(A, "smooth_perceptron", rounds) for _ in range(3))
        rows.append({"n": n, "ms per round": 1000 * spent, "ns per row": 1e9 * spent / n})
    big = [row for row in rows if row["n"] >= 100_000]
    slope = np.polyfit(np.log([row["n"] for row in big]), np.log([row["ms per round"] for row in big]), 1)[0]
    return rows, float(slope)


def machine() -> dict:
    return {
        "cores": os.cpu_count(),
        "processor": next(
            (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
            platform.processor(),
        )
        if Path("/proc/cpuinfo").exists()
        else platform.processor(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "gordan": gordan.__version__,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/rounds"))
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, a few repetitions")
    options = parser.parse_args()
    shrink, repeats = (10, 5) if options.quick else (1, 15)

    fused = []
    for dtype in ("float64", "float32"):
        fused.append(fused_round(dense(200_000 // shrink, 500, dtype), f"dense {200_000 // shrink:,} × 500 {dtype}", repeats))
        fused.append(
            fused_round(
                sparse(100_000 // shrink, 50_000, 1e-3, dtype), f"sparse {100_000 // shrink:,} × 50,000, 0.1% {dtype}", repeats
            )
        )
    small = overhead(25)
    grown, exponent = growth(options.quick)
    result = {"machine": machine(), "fused": fused, "overhead": small, "growth": grown, "growth exponent": exponent}
    text = "\n\n".join(
        [
            "Machine: " + ", ".join(f"{key} {value}" for key, value in result["machine"].items()),
            report.table(fused),
            report.table(small),
            report.table(grown),
            f"Fitted exponent of the time per round in n, from n = 100,000: {exponent:.2f}",
        ]
    )
    report.save(options.out, "table", text, result)
    print(text)


if __name__ == "__main__":
    main()
