"""Verdicts on real data, held against what is known of each set: `python benchmarks/verdicts.py DATA [--out docs/verdicts]`.

DATA is a folder of .npz files (dense: X and y; sparse: SciPy's CSR with NAME.y.npy beside it) and an INDEX.md whose table has the
columns name, "through origin?" and "with intercept?", each beginning with yes or no. Every verdict must agree and be proved;
sets of several classes are taken one class against the rest, all classes where the set is small, the first one otherwise.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import report
import scipy.sparse as sp

import gordan

SMALL = 3000  # rows up to which every class is tried
PAIRS = {"covtype15k": (0, 1)}  # sets of which the table speaks of two classes
ALSO = {"news20_bydate_tfidf": [7]}
NAMES = {"endometrial": ["NV", "PI", "EH"], "silvapulle1981": ["ghqs"]}


def load(folder: Path, name: str):
    if (folder / f"{name}.y.npy").exists():
        return sp.load_npz(folder / f"{name}.npz"), np.load(folder / f"{name}.y.npy")
    with np.load(folder / f"{name}.npz") as f:
        return f["X"], f["y"]


def known(folder: Path) -> dict[str, dict[str, str]]:
    """{name: {"none": cell, "free": cell}} from the table."""
    lines = [
        line.strip().strip("|").split("|") for line in (folder / "INDEX.md").read_text().splitlines() if line.startswith("|")
    ]
    head = [cell.strip() for cell in lines[0]]
    none, free = head.index("through origin?"), head.index("with intercept?")
    return {cells[0].strip(): {"none": cells[none].strip(), "free": cells[free].strip()} for cells in lines[2:]}


def problems(name: str, X, y):
    """(label, X, y) of the binary problems."""
    classes = np.unique(y)
    if name in PAIRS:
        chosen = np.isin(y, PAIRS[name])
        yield "{} against {}".format(*PAIRS[name]), X[chosen], y[chosen]
    elif len(classes) == 2:
        yield "", X, y
    else:
        for k in [*(classes if len(y) <= SMALL else classes[:1]), *ALSO.get(name, [])]:
            yield f"{k} against the rest", X, y == k


def expected(cell: str, name: str, label: str) -> bool:
    """Whether the table says yes to this problem; one set has one pair of rows that two of its classes share."""
    if name == "news20_bydate_tfidf":
        return not label.startswith(("7 ", "8 "))
    return cell.startswith("yes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/verdicts"))
    arguments = parser.parse_args()
    table = known(arguments.data)
    lines, wrong = [], 0
    for name, cells in table.items():
        X, y = load(arguments.data, name)
        for label, part, labels in problems(name, X, y):
            for intercept in ("none", "free"):
                begin = time.perf_counter()
                v = gordan.separate(part, labels, intercept=intercept, time_limit=60)
                seconds = time.perf_counter() - begin
                checked = v.certificate is not None and bool(gordan.verify(v.certificate, part, labels))
                agrees = v.separable == expected(cells[intercept], name, label)
                wrong += not (agrees and v.proved and checked)
                lines.append(
                    {
                        "set": name, "classes": label, "intercept": intercept, "verdict": repr(v), "status": v.status,
                        "seconds": seconds, "checked": checked, "agrees": agrees,
                    }
                )  # fmt: skip
                print(f"{name:22s} {label:20s} {intercept:5s} {seconds:7.2f} s  {v!r:.100}", flush=True)
        if name in ("endometrial", "silvapulle1981", "lizards"):
            found = gordan.diagnose(X, y)
            print(f"{name:22s} diagnose: {found.kind} {found.columns}, {len(found.rows)} rows strict", flush=True)
            names = NAMES.get(name, [])
            signs = {names[int(key[1:])] if key[1:].isdigit() and names else key: sign for key, sign in found.columns.items()}
            lines.append({"set": name, "diagnose": found.kind, "columns": signs, "strict": len(found.rows)})
    report.save(arguments.out, "table", markdown(lines), {"version": gordan.__version__, "lines": lines})
    verdicts = [line for line in lines if "verdict" in line]
    print(
        f"{len(verdicts)} verdicts, {wrong} that disagree or are not proved, slowest {max(v['seconds'] for v in verdicts):.1f} s"
    )
    sys.exit(1 if wrong else 0)


def markdown(lines) -> str:
    """A line per set and intercept, classes gathered."""
    rows = ["| set | problems | through the origin | with intercept | slowest |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(line["set"] for line in lines):
        own = [line for line in lines if line["set"] == name and "verdict" in line]
        cells = []
        for intercept in ("none", "free"):
            part = [line for line in own if line["intercept"] == intercept]
            if len(part) == 1:
                cells.append(part[0]["verdict"].replace(" (proved)", ""))
            else:
                yes = sum(line["status"] == "separable" for line in part)
                no = [line for line in part if line["status"] != "separable"]
                cells.append(
                    f"{yes} of {len(part)} separable" + "".join(f"; {line['classes']}: {line['verdict']}" for line in no)
                )
        rows.append(f"| {name} | {len(own) // 2} | {cells[0]} | {cells[1]} | {max(line['seconds'] for line in own):.2f} s |")
    for line in lines:
        if "diagnose" in line:
            told = ", ".join(f"{key} {sign}" for key, sign in line["columns"].items())
            rows.append(f"| {line['set']} (diagnose) |  | | {line['diagnose']}, {line['strict']} rows strict: {told} | |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
