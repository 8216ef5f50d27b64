"""SIGKILL at random instants of runs that write a checkpoint after every round: is the file readable, and the result the same?

    python tests/kills.py --kills 200

A child is forked, killed at a random one of its calls of functions, and what it left is read; the next child goes on from there.
One that ends before that call hands its result over, which must be that of a run without checkpoint, bit for bit; then the next
run starts. Instants are counted in calls, not in seconds: the same ones come again, whatever else the machine does. Before
that, the writer of a file is killed at each of its calls, and must leave the old file or the new one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

import gordan
from gordan import checkpoint, dynamics
from gordan.io.files import write_atomic


def problem(n, d, gap, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X.sum(axis=1) > 0, 1, -1)
    return X + gap * np.outer(y, np.ones(d)), y


RUNS = {
    "smooth perceptron": (problem(2000, 10, 0.02), {"tol": 1e-9, "method": "smooth_perceptron", "max_iter": 50}),
    "double oracle": (problem(5000, 5, 0.02), {"tol": 1e-9, "intercept": "none"}),
    "mirror prox, game": (
        problem(1000, 5, 0.02),
        {"tol": 1e-9, "method": gordan.methods.mirror_prox_perceptron(form="game"), "max_iter": 30, "intercept": "none"},
    ),
}


def plain(result):
    """What must be the same, as text: floats bit for bit."""
    facts = [result.status, result.n_iter, result.passes.hex(), result.b.hex(), *(end.hex() for end in result.margin)]
    return json.dumps([facts, [x.hex() for x in result.w.tolist()], [x.hex() for x in result.p.tolist()]])


# Where calls are counted: anywhere, or where files are written, which is a small part of all.
PLACES = ("", "gordan.io.files")


def calls_of(work, place="", last=None):
    """How often work() calls a function from that module, or returns to it; the `last` time that is a SIGKILL."""
    calls = itertools.count()

    def seen(frame, event, argument):
        if str(frame.f_globals.get("__name__")).startswith(place) and next(calls) == last:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return next(calls)


def killed(work, place="", last=None):
    """Whether work() was killed at that call, in a child."""
    child = os.fork()
    if child == 0:
        calls_of(work, place, last)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def torn(path, old=b"old" * 999, new=b"new" * 9999):
    """At how many calls a writer can be killed, and how often the file then was neither the old one nor the new one."""
    write, calls, count = partial(write_atomic, path, new), 0, 0
    path.write_bytes(old)
    while killed(write, last=calls):
        count += path.read_bytes() not in (old, new)
        path.write_bytes(old)
        calls += 1
    return calls, count


def hand_over(name, path, result):
    """Solve with the checkpoint `path`, and write what comes out to `result`, in one step."""
    (X, y), options = RUNS[name]
    found = plain(gordan.maximize_margin(X, y, threads=1, checkpoint=path, **options))
    temporary = result.with_suffix(".new")
    temporary.write_text(found)
    os.replace(temporary, result)


def kills(count, seed=0, say=lambda text: None):
    """The figures of so many kills."""
    checkpoint.INTERVAL_SECONDS, checkpoint.WRITING_SHARE = 0.0, 1e9  # written after every round
    rng = np.random.default_rng(seed)
    figures = {"kills": 0, "in the middle of a write": 0, "before the first write": 0, "unreadable": 0}
    figures |= {"results": 0, "after a resume": 0, "different": 0}
    expected, calls = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        figures["calls of a write"], figures["torn"] = torn(Path(folder, "file"))
        for name, ((X, y), options) in RUNS.items():
            expected[name] = plain(gordan.maximize_margin(X, y, threads=1, **options))
            path = Path(folder, "counted")
            solve = partial(gordan.maximize_margin, X, y, threads=1, checkpoint=path, **options)
            for place in PLACES:
                calls[name, place] = calls_of(solve, place)
                path.unlink()
            say(f"{name}: {calls[name, '']} calls")
        while figures["kills"] < count:
            name = list(RUNS)[figures["results"] % len(RUNS)]
            path, result = Path(folder, "run"), Path(folder, "result")
            resumed, tries = 0, 0
            while not result.exists():
                tries += 1  # the later ones are left longer, so that there is an end
                place = PLACES[rng.integers(2)]
                last = int(rng.uniform(0, calls[name, place] * (0.6 + 0.2 * tries))) if figures["kills"] < count else None
                if not killed(partial(hand_over, name, path, result), place, last):
                    break
                figures["kills"] += 1
                parts = list(Path(folder).glob(".run.*.part"))
                figures["in the middle of a write"] += bool(parts)
                for part in parts:
                    part.unlink()
                if path.exists():
                    resumed += 1
                    try:
                        assert checkpoint.Checkpoint(path).restored("run", dynamics.Snapshot) is not None
                    except gordan.InputError as error:
                        figures["unreadable"] += 1
                        say(f"{name}: {error}")
                else:
                    figures["before the first write"] += 1
            if not result.exists():  # a child that died of itself
                raise RuntimeError(f"{name} ended without a result")
            figures["results"] += 1
            figures["after a resume"] += resumed > 0
            if result.read_text() != expected[name]:
                figures["different"] += 1
                say(f"{name}: another result after {resumed} resumes")
            result.unlink()
            path.unlink()
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    begin = time.perf_counter()
    figures = kills(arguments.kills, arguments.seed, lambda text: print(text, flush=True))
    print(json.dumps(figures | {"seconds": round(time.perf_counter() - begin, 1)}))
