"""The long fuzz: `make fuzz MINUTES=60`. Random problems, answers held against the exact oracle, or against what was planted, and
totals for each family.

Every process takes chunks of problems from `test_fuzz` by turns: of small ones three of verdicts and one of margins, of planted
ones with up to 2,000 rows one of verdicts, of margins and of diagnoses; and then as many changed certificates from `mutations`
and `loss_mutations`, of which both checkers must say the same; losses from `loss_problems`, held against exact minimizers,
also for rows in tensors where torch is installed (`--only device --instances 5000`: those alone); and tables of labels for
columns that depend on each other, with changed certificates about such columns, from `degenerate`. A
fault is printed with the chunk that shows it again, a chunk that takes two minutes counts as a crash, and the exit code is 1 if
there was any.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import multiprocessing
import os
import signal
import sys
import time
import traceback
import warnings
from collections import Counter

SIZE, PLANTED, LONGEST = 25, 5, 120
TURN = ("separate", "separate", "separate", "maximize_margin")
PLANTED_TURN = ("separate", "maximize_margin", "diagnose")
FUNCTIONS = (*PLANTED_TURN, "minimize_loss", "device", "tables", "verify")
# Statuses that leave a question open; a margin of the small problems, or a loss, is often stopped on purpose.
OPEN = ("undecided", "margin-below-tol", "no-progress", "iteration-limit", "time-limit")
# Losses of rows on a device, where torch is there to make some.
DEVICE = ("device",) if importlib.util.find_spec("torch") else ()
CERTIFICATE_CHANGES = 20  # of each certificate
KINDS = ("wrong verdict", "invalid bracket", "valid certificate rejected", "witness not minimal", "disagreement")
KINDS += ("a false claim accepted", "crash")


def hang(*_):
    """An alarm went off."""
    raise TimeoutError(f"no end after {LONGEST} s")


def worker(number, seed, end, most, only, results):
    """Chunk after chunk until the time is up, or `most` problems were made; each goes to `results`, and None at the end."""
    import degenerate
    import device_problems
    import loss_mutations
    import loss_problems
    import mutations
    import test_fuzz as fuzz

    signal.signal(signal.SIGALRM, hang)
    warnings.simplefilter("error")
    changes = {"changed": mutations.run, "changed losses": loss_mutations.run, "changed floats": degenerate.changed}
    turns = (
        (function, family, intercept, f"{seed} {number} {k}", size)
        for k in itertools.count()
        for function, family, intercept, size in [
            *((TURN[k % len(TURN)], family, intercept, SIZE) for family in fuzz.FAMILIES for intercept in fuzz.INTERCEPTS),
            *((PLANTED_TURN[k % 3], family, intercept, PLANTED) for family in fuzz.CHANGES for intercept in fuzz.INTERCEPTS),
            *(
                (function, family, intercept, SIZE)
                for function in ("minimize_loss", *DEVICE)
                for family in loss_problems.FAMILIES
                for intercept in fuzz.INTERCEPTS
            ),
            *(("tables", family, intercept, SIZE) for family in degenerate.FAMILIES for intercept in fuzz.INTERCEPTS),
            *(("verify", family, "any", SIZE) for family in changes),
        ]
        if only in (None, function)
    )
    made = 0
    for function, family, intercept, name, size in turns:
        if time.time() > end or made >= most:
            break
        made += size
        signal.alarm(LONGEST)
        try:
            if function == "verify":
                found, faults = changes[family](name, size, CERTIFICATE_CHANGES)
            elif function == "tables":
                found, faults = degenerate.chunk(family, intercept, name, size)
            elif function in ("minimize_loss", "device"):
                problems = loss_problems if function == "minimize_loss" else device_problems
                found, faults = problems.chunk(family, intercept, name, size)
            else:
                found, faults = fuzz.chunk(function, family, intercept, name, size)
        except Exception:
            where = f"{function}, {family}, {intercept}, seed {name!r}\n{traceback.format_exc()}"
            found, faults = Counter(), [("crash", where)]
        signal.alarm(0)
        results.put((function, family, found, faults))
    results.put(None)


def main():
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--instances", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--only", choices=FUNCTIONS, help="problems of this function alone")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", default="0", help="another seed, other problems")
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # for the processes: the problems are tiny
    started, context = time.time(), multiprocessing.get_context("spawn")
    results = context.Queue()
    arguments = (options.seed, started + 60 * options.minutes, options.instances / options.workers, options.only, results)
    processes = [context.Process(target=worker, args=(number, *arguments)) for number in range(options.workers)]
    for process in processes:
        process.start()
    statuses, faults, running = {}, Counter(), len(processes)
    while running:
        answer = results.get()
        if answer is None:
            running -= 1
            continue
        function, family, found, broken = answer
        statuses.setdefault((function, family), Counter()).update(found)
        for fault, where in broken:
            faults[function, family, fault] += 1
            print(f"{fault}: {where}", flush=True)
    report(statuses, faults, time.time() - started, options.workers)
    return 1 if faults else 0


def report(statuses, faults, seconds, workers):
    """Totals per function and family."""
    from problems import CHANGES

    lines = [["function", "family", "instances", *KINDS, "open"]]
    for (function, family), found in sorted(statuses.items(), key=lambda item: (FUNCTIONS.index(item[0][0]), item[0][1])):
        total = found.total()
        stopped = function in ("minimize_loss", "device") or (function == "maximize_margin" and family not in CHANGES)
        still = "-" if stopped else f"{100 * sum(found[status] for status in OPEN) / max(1, total):.3f}%"
        lines.append([function, family, f"{total:,}", *(str(faults[function, family, kind]) for kind in KINDS), still])
    total = sum(found.total() for found in statuses.values())
    sums = [str(sum(count for (_, _, kind), count in faults.items() if kind == wanted)) for wanted in KINDS]
    lines.append(["all", "", f"{total:,}", *sums, ""])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        cells = [
            cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells))
    print(f"{total:,} instances in {seconds / 60:.1f} minutes on {workers} processes: {total / seconds:.0f} a second")


if __name__ == "__main__":
    sys.exit(main())
