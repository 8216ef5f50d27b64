"""The same questions asked of every backend: verdicts and brackets on a folder of sets, and whether any two of them disagree.

`python benchmarks/agreement.py --data FOLDER --backends memory torch cuda` prints Markdown; the exit code is 1 if there is a
disagreement: one backend proves separable what another proves not to be, or two certified brackets do not meet. What a time limit
left open disagrees with nothing. See `sets.py` for the folder.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
from sets import load, names

import gordan
from gordan.rows import device as devices

# Entries up to which sparse rows are spread out for backends that have dense ones only.
MOST_DENSE = 1 << 28


def on(backend: str, X):
    """X as the backend takes it, or None where it is too large for it."""
    if backend == "memory":
        return X
    import torch

    if hasattr(X, "toarray"):
        if X.shape[0] * X.shape[1] > MOST_DENSE:
            return None
        X = X.toarray()
    tensor = torch.from_numpy(np.ascontiguousarray(X))
    return tensor.to(backend) if backend != "torch" else tensor


def ask(X, y, limit: float) -> dict:
    """A verdict and two brackets, hard where there is one, and soft."""
    verdict = gordan.separate(X, y, time_limit=limit)
    nu = 0.9 * min(1.0, 2 * min(np.mean(y > 0), np.mean(y < 0)))
    results = [gordan.maximize_margin(X, y, time_limit=limit, nu=nu)]
    if verdict.separable:
        results.append(gordan.maximize_margin(X, y, time_limit=limit))
    return {"verdict": verdict.separable, "brackets": [result.margin for result in results]}


def disagree(one: dict, other: dict) -> bool:
    """Whether they cannot both be true."""
    if None not in (one["verdict"], other["verdict"]) and one["verdict"] != other["verdict"]:
        return True
    pairs = zip(one["brackets"], other["brackets"], strict=False)
    return any(max(a[0], b[0]) > min(a[1], b[1]) for a, b in pairs)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--backends", nargs="+", default=["memory", "torch"], help="memory, torch, cuda")
    parser.add_argument("--seconds", type=float, default=10.0, help="for one answer")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds for everything: sets are left out then")
    options = parser.parse_args(arguments)
    devices.WORTH_IT = 0  # small sets are the point here
    begun, asked, wrong = time.perf_counter(), 0, 0
    print("| set | " + " | ".join(options.backends) + " | disagreements |\n|---|" + "---|" * (len(options.backends) + 1))
    for name in names(options.data):
        if time.perf_counter() - begun > options.budget:
            print(f"| {name} | left out: out of time |")
            continue
        data = load(str(options.data / f"{name}.npz"))
        answers, told = {}, []
        for backend in options.backends:
            X = on(backend, data.X)
            if X is None:
                told.append("too large")
                continue
            started = time.perf_counter()
            answers[backend] = found = ask(X, data.y, options.seconds)
            words = {True: "separable", False: "not separable", None: "open"}[found["verdict"]]
            brackets = ", ".join(f"{lower:.6g}..{upper:.6g}" for lower, upper in found["brackets"])
            told.append(f"{words}, {brackets}, {time.perf_counter() - started:.1f} s")
        count = sum(disagree(*pair) for pair in itertools.combinations(answers.values(), 2))
        asked, wrong = asked + len(answers), wrong + count
        print(f"| {name} | " + " | ".join(told) + f" | {count} |", flush=True)
    print(f"\n{asked} answers, {wrong} disagreements")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
