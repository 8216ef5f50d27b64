"""Rows on local Dask workers: what a pass costs beside the same pass in one process, what a round costs beside its pass, and
whether killed workers change the answer.

    python benchmarks/dask_workers.py                          # 2 workers, 2×1 GB; 20 kills
    python benchmarks/dask_workers.py --gigabytes 0.5 --kills 3

Blocks are made on the workers from a seed, so that a lost one can be made again. Worker processes of one thread each are compared
with a process of as many threads. Everything runs on the loopback and ends with the script.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import statistics
import threading
import time
from pathlib import Path

import dask
import numpy as np
import report
from clock import median_seconds
from distributed import Client, LocalCluster

import gordan
from gordan import rows
from gordan.rows.cluster import Workers


def made(seed, n, d):
    """Rows at least 0.2 from the plane of u = (1, …, 1)/√d."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    s = X.sum(axis=1, keepdims=True) / np.sqrt(d)
    X += 0.2 * np.sign(s) / np.sqrt(d)
    return X


def labels(seed, n, d):
    """On which side each of them is."""
    return np.sign(made(seed, n, d).sum(axis=1)).astype(np.int8)


def blocks(count, n, d):
    """So many blocks of n rows, delayed, and their labels."""
    X = [dask.delayed(made)(seed, n, d) for seed in range(count)]
    return X, np.concatenate(dask.compute(*(dask.delayed(labels)(seed, n, d) for seed in range(count))))


def nothing(held):
    """The work of an empty round."""
    return held.n


def warm_seconds(work):
    """The median of some runs after one that warms up."""
    work()
    return median_seconds(work, 7)


class Traffic:
    """The bytes that come back to the driver, by the kind of task."""

    def __init__(self):
        self.bytes, self._gather = 0, Workers.gather

    def __enter__(self):
        def gather(engine, futures):
            found = self._gather(engine, futures)
            self.bytes += sum(len(dask_bytes(part)) for part in found)
            return found

        Workers.gather = gather
        return self

    def __exit__(self, *_):
        Workers.gather = self._gather


def dask_bytes(part):
    """What a result is on the wire."""
    import pickle

    return pickle.dumps(part)


FIGURES = {
    "fused pass": lambda A, v, halves: A.softmin(v, None, halves),
    "lowest 100 of each class": lambda A, v, halves: A.lowest(v, 100, halves),
}


def on_workers(client, X, y, v):
    """Return the seconds of each figure and the bytes that the driver received, the seconds of a round without work, and how many
    blocks were not moved."""
    A = rows.of(X, y, resident=True)
    halves = A.groups_to_storage((y < 0).astype(np.int8))
    keys = [block.future for block in A.storage.blocks]
    before = client.who_has(keys)
    empty = warm_seconds(lambda: A.storage.workers.merged(A.storage._start(nothing, (), ()), max))
    found = {}
    for name, work in FIGURES.items():
        with Traffic() as traffic:
            seconds = warm_seconds(lambda work=work: work(A, v, halves))
        found[name] = seconds, traffic.bytes / 8
    after = client.who_has(keys)
    return found, empty, sum(before[key] == after[key] for key in before)


def passes(options, lines):
    """Seconds of passes on the workers and here."""
    d, count = options.d, options.blocks
    n = int(options.gigabytes * 2e9 / (8 * d * count))
    v = np.full(d, 0.1)
    with workers() as cluster, Client(cluster) as client:
        X, y = blocks(count, n, d)
        found, empty, stayed = on_workers(client, X, y, v)
    here = rows.of(np.concatenate([made(seed, n, d) for seed in range(count)]), y, threads=2)
    halves = (y < 0).astype(np.int8)
    size = here.n * d * 8 / 1e9
    lines.append(f"{size:.2f} GB: {here.n} rows of {d}, float64, {count} blocks, 2 workers of one thread\n")
    lines.append("| | one process, 2 threads | 2 workers | ratio | bytes to driver |\n|---|---|---|---|---|")
    for name, work in FIGURES.items():
        seconds = warm_seconds(lambda work=work: work(here, v, halves))
        there, moved = found[name]
        lines.append(f"| {name} | {seconds * 1e3:.0f} ms | {there * 1e3:.0f} ms | {there / seconds:.2f} | {moved:.0f} |")
    lines.append(f"| a round without work | | {empty * 1e3:.0f} ms | | |")
    load = os.getloadavg()[0]
    lines.append(f"\n{stayed} of {count} blocks were on the same worker, and there alone, after all passes.")
    lines.append(f"{os.cpu_count()} cores; the load average after the run was {load:.1f}.\n")


def kills(options, lines):
    """Fits in each of which one worker is killed at a random instant; a cluster that does not recover in a minute is replaced."""
    rng = random.Random(options.seed)
    calm, span, same, seconds = None, 0.0, 0, []
    while len(seconds) < options.kills:
        with workers() as cluster, Client(cluster) as client:
            X, y = blocks(8, options.kill_rows // 8, 20)
            gordan.maximize_margin(X, y, tol=1e-8)  # warms up
            started = time.perf_counter()
            again = gordan.maximize_margin(X, y, tol=1e-8)
            span, calm = time.perf_counter() - started, again if calm is None else calm
            while len(seconds) < options.kills:
                try:
                    client.wait_for_workers(2, timeout=60)
                    pid = rng.choice(list(client.run(os.getpid).values()))
                except OSError:  # too late, or a worker that is about to be missed
                    break
                timer = threading.Timer(rng.uniform(0, 0.7 * span), os.kill, (pid, signal.SIGKILL))
                timer.start()
                started = time.perf_counter()
                found = gordan.maximize_margin(X, y, tol=1e-8)
                elapsed, late = time.perf_counter() - started, timer.is_alive()
                timer.join()
                if late:  # the fit was over before
                    continue
                seconds.append(elapsed)
                same += found.status == "solved" and np.array_equal(found.w, calm.w) and found.margin == calm.margin
                print(f"kill {len(seconds)}: {same} the same, {seconds[-1]:.1f} s", flush=True)
    middle = statistics.median(seconds)
    lines.append(
        f"{options.kills} fits ({len(y)}×20) with a worker killed at a random instant: {same} ended with the same w and bracket\n"
        f"to the last bit. Seconds without a kill: {span:.1f}; with one: median {middle:.1f}, at most {max(seconds):.1f}.\n"
    )


def workers():
    """Two worker processes on the loopback."""
    quiet = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    return LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **quiet)


def main():
    """Print the figures, and write them to a file if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=1.0, help="per worker")
    parser.add_argument("--d", type=int, default=200)
    parser.add_argument("--blocks", type=int, default=16)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--kill-rows", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    if options.gigabytes:
        passes(options, lines)
    if options.kills:
        kills(options, lines)
    print("\n".join(lines))
    report.save(options.out, "table", "\n".join(lines))


if __name__ == "__main__":
    main()
