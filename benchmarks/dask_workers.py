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


def timed(work, times=7):
    """The median of some runs after one that warms up."""
    work()
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


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


def passes(client, options, lines):
    """Seconds of passes on the workers and here."""
    d, count = options.d, options.blocks
    n = int(options.gigabytes * 2e9 / (8 * d * count))
    X, y = blocks(count, n, d)
    there = rows.of(X, y, resident=True)
    size = there.n * d * 8 / 1e9
    v, halves = np.full(d, 0.1), (y < 0).astype(np.int8)
    there_halves = there.split(halves)
    before = client.who_has([block.future for block in there._storage.blocks])
    empty = timed(lambda: there._storage.engine.merged(there._storage._start(nothing, (), ()), max))
    figures = {
        "fused pass": lambda A, h: A.softmin(v, None, h),
        "lowest 100 of each class": lambda A, h: A.lowest(v, 100, h),
    }
    on_workers, moved = {}, {}
    for name, work in figures.items():
        with Traffic() as traffic:
            on_workers[name] = timed(lambda work=work: work(there, there_halves))
        moved[name] = traffic.bytes / 8
    after = client.who_has([block.future for block in there._storage.blocks])
    stayed = sum(before[key] == after[key] for key in before)
    del there
    client.restart()
    here = rows.of(np.concatenate([made(seed, n, d) for seed in range(count)]), y, threads=2)
    lines.append(f"{size:.2f} GB: {here.n} rows of {d}, float64, {count} blocks, 2 workers of one thread\n")
    lines.append("| | one process, 2 threads | 2 workers | ratio | bytes back |\n|---|---|---|---|---|")
    for name, work in figures.items():
        seconds = timed(lambda work=work: work(here, halves))
        ratio = on_workers[name] / seconds
        lines.append(f"| {name} | {seconds * 1e3:.0f} ms | {on_workers[name] * 1e3:.0f} ms | {ratio:.2f} | {moved[name]:.0f} |")
    lines.append(f"| a round without work | | {empty * 1e3:.0f} ms | | |")
    lines.append(f"\n{stayed} of {count} blocks were on the same worker, and there alone, after all passes.\n")


def kills(client, options, lines):
    """Fits in each of which one worker is killed at a random instant."""
    rng = random.Random(options.seed)
    X, y = blocks(8, options.kill_rows // 8, 20)
    started = time.perf_counter()
    calm = gordan.maximize_margin(X, y, tol=1e-8)
    span = time.perf_counter() - started
    same, seconds = 0, []
    for _ in range(options.kills):
        client.wait_for_workers(2, timeout=120)
        pid = rng.choice(list(client.run(os.getpid).values()))
        timer = threading.Timer(rng.uniform(0, span), os.kill, (pid, signal.SIGKILL))
        timer.start()
        started = time.perf_counter()
        found = gordan.maximize_margin(X, y, tol=1e-8)
        seconds.append(time.perf_counter() - started)
        timer.join()
        same += found.status == "solved" and np.array_equal(found.w, calm.w) and found.margin == calm.margin
    lines.append(
        f"{options.kills} fits ({len(y)}×20) with a worker killed at a random instant: {same} ended with the same w and bracket, to "
        f"the last bit. Seconds without a kill: {span:.1f}; with one: median {statistics.median(seconds):.1f}, "
        f"at most {max(seconds):.1f}.\n"
    )


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
    local = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **local) as cluster, Client(cluster) as client:
        if options.gigabytes:
            passes(client, options, lines)
        if options.kills:
            kills(client, options, lines)
    print("\n".join(lines))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "table.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
