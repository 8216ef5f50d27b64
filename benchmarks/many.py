"""Many label vectors for one X, beside HiGHS and single calls: `python benchmarks/many.py [--quick] [--out FOLDER]`.

X is Gaussian and labels are random. `separate` proves each of its verdicts; HiGHS (`scipy.optimize.linprog`) is asked for a w
with A w ≥ 1, and proves nothing. HiGHS and single calls are timed on the first columns, in turns with the whole table; all times
are those of one label vector, and the verdicts on those columns are compared. The last lines show the growth with the columns.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

import numpy as np
import report
from clock import timed
from scipy.optimize import linprog

import gordan

# rows, columns and label vectors of the figures that are to be reached, and those of the growth
MUST = [(200, 80, 1000), (100, 60, 1000), (60, 20, 10_000)]
GROWTH = [(5 * d // 2, d, 2_000_000 // d**2) for d in (20, 40, 80, 160, 320)]
HEAD = [
    "rows × columns",
    "label vectors",
    "separable",
    "`separate(X, Y)`",
    "HiGHS",
    "speedup",
    "single calls",
    "speedup",
    "`maximize_margin`",
]


def highs(X, y) -> bool | None:
    """Whether there is a separator; None where HiGHS does not know."""
    A = y[:, None] * np.column_stack([X, np.ones(len(X))])
    found = linprog(np.zeros(A.shape[1]), A_ub=-A, b_ub=-np.ones(len(A)), bounds=(None, None), method="highs")
    return {0: True, 2: False}.get(found.status)


def line(n: int, d: int, k: int, repeat: int, sample: int) -> str:
    r = np.random.default_rng(d)
    X, Y = r.standard_normal((n, d)), r.choice((-1, 1), (n, k))
    sample = min(sample, k)
    times: dict[str, list[float]] = {"many": [], "highs": [], "single": [], "margin": []}
    for _ in range(repeat):
        seconds, many = timed(lambda: gordan.separate(X, Y))
        times["many"].append(seconds / k)
        seconds, theirs = timed(lambda: [highs(X, y) for y in Y.T[:sample]])
        times["highs"].append(seconds / sample)
        seconds, ours = timed(lambda: [gordan.separate(X, y).separable for y in Y.T[:sample]])
        times["single"].append(seconds / sample)
        times["margin"].append(timed(lambda: gordan.maximize_margin(X, Y))[0] / k)
    together = (many.status == "separable").tolist()
    assert set(many.status) <= {"separable", "not-separable"}
    assert together[:sample] == ours, "the verdicts differ"
    assert all(own == other for own, other in zip(together, theirs, strict=False) if other is not None), "HiGHS differs"
    for j in range(min(5, k)):
        assert gordan.verify(many[j].certificate, X, Y[:, j])
    shown = {name: median(each) for name, each in times.items()}
    cells = [f"{n:,} × {d:,}", f"{k:,}", f"{np.mean(together):.1%}", f"{1e3 * shown['many']:.3g} ms"]
    for name in ("highs", "single"):
        cells += [f"{1e3 * shown[name]:.3g} ms", f"{shown[name] / shown['many']:.0f}"]
    return "| " + " | ".join([*cells, f"{1e3 * shown['margin']:.3g} ms"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the label vectors, once")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--sample", type=int, default=40, help="label vectors that HiGHS and single calls are asked about")
    parser.add_argument("--out", type=Path, default=Path("docs/verdicts"))
    arguments = parser.parse_args()
    shrink, repeat = (10, 1) if arguments.quick else (1, arguments.repeat)
    gordan.maximize_margin(np.eye(4), np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]))  # what is imported on first use
    gordan.separate(np.array([[0.0], [1.0], [2.0]]), [1, 0, 1])
    lines = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    print("\n".join(lines), flush=True)
    for n, d, k in MUST + GROWTH:
        lines.append(line(n, d, max(10, k // shrink), repeat, arguments.sample // (4 if arguments.quick else 1)))
        print(lines[-1], flush=True)
    if not arguments.quick:
        report.save(arguments.out, "many", "\n".join(lines))


if __name__ == "__main__":
    main()
