"""The same questions asked of every backend: verdicts and brackets on a folder of sets, and whether any two of them disagree.

    python benchmarks/agreement.py --data FOLDER --backends memory map parquet csr dask torch --seconds 4 --out docs/agreement

Each answer is a line of `results.jsonl` as soon as it is there: a run that was cut off goes on, and other backends and sets are
added to what is there; `table.md` is written anew from all of it. Without --out the table is printed, and nothing kept.

Two backends disagree if one proves separable what the other proves not to be, or if two certified brackets do not meet; what a
time limit left open disagrees with nothing. The exit code is 1 if there is a disagreement or an error. Sets stay on their
backend however small they are. See `sets.py` for the folder.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import logging
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sets import load, names

import gordan
from gordan.io import read
from gordan.io.parts import Csr
from gordan.rows import device, mapped

# Entries up to which sparse rows are spread out for backends that have dense ones only.
MOST_DENSE = 1 << 27
# Columns of a table: Parquet keeps each apart, and a pass over 10,000 of them takes longer than an answer should.
MAX_COLUMNS = 2500
# Row groups of a table in all, and blocks on a cluster.
PIECES = 6


def dense(X):
    """X as an array in rows, or None where that would be too large."""
    if X.shape[0] * X.shape[1] > MOST_DENSE:
        return None
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X)


def file_of(array, path):
    """The array in a file, mapped."""
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def in_memory(X, folder):
    return X


def in_map(X, folder):
    full = dense(X)
    return None if full is None else file_of(full, folder / "X.npy")


def in_csr(X, folder):
    csr = sp.csr_array(X)
    csr.sum_duplicates()
    indices, indptr = csr.indices.astype(np.int32), csr.indptr.astype(np.int64)
    parts = {"data": csr.data, "indices": indices, "indptr": indptr}
    return Csr(*(file_of(part, folder / f"{name}.npy") for name, part in parts.items()), shape=csr.shape)


def in_parquet(X, folder):
    """Two files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    full = dense(X)
    if full is None or full.shape[1] > MAX_COLUMNS:
        return None
    for k, part in enumerate(np.array_split(full, 2)):
        table = pa.table({f"x{j}": part[:, j] for j in range(full.shape[1])} | {"y": np.zeros(len(part))})
        pq.write_table(table, folder / f"{k}.parquet", row_group_size=-(-len(full) // PIECES))
    return read(folder, memory_limit=1).X


def in_dask(X, folder):
    """An array in blocks; sparse rows as delayed blocks."""
    import dask
    import dask.array as da

    size = -(-X.shape[0] // PIECES)
    if not sp.issparse(X):
        return da.from_array(X, chunks=(size, X.shape[1]))
    return [dask.delayed(X[lo : lo + size]) for lo in range(0, X.shape[0], size)]


def in_torch(X, folder, where="cpu"):
    import torch

    full = dense(X)
    return None if full is None else torch.from_numpy(full).to(where)


def in_cuda(X, folder):
    return in_torch(X, folder, "cuda")


BACKENDS = {"memory": in_memory, "map": in_map, "parquet": in_parquet, "csr": in_csr}
BACKENDS |= {"dask": in_dask, "torch": in_torch, "cuda": in_cuda}


@contextlib.contextmanager
def cluster(wanted):
    """A worker on two threads of this process."""
    if not wanted:
        yield
        return
    from distributed import Client, LocalCluster

    options = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=1, threads_per_worker=2, processes=False, **options) as local, Client(local):
        yield


def ask(X, y, limit):
    """A verdict and two brackets: of a soft margin, and of the hard one where there is one."""
    verdict = gordan.separate(X, y, time_limit=limit)
    nu = 0.9 * min(1.0, 2 * min(np.mean(y > 0), np.mean(y < 0)))
    margins = {"soft": gordan.maximize_margin(X, y, time_limit=limit, nu=nu).margin}
    if verdict.separable:
        margins["hard"] = gordan.maximize_margin(X, y, time_limit=limit).margin
    return {"separable": verdict.separable, **margins}


def answer(data, backend, limit):
    """What is kept of one set on one backend."""
    kept = {"set": data.name, "n": data.X.shape[0], "d": data.X.shape[1], "backend": backend, "limit": limit}
    with tempfile.TemporaryDirectory() as folder:
        X = BACKENDS[backend](data.X, Path(folder))
        if X is None:
            return kept | {"left_out": "too wide"}
        started = time.perf_counter()
        try:
            found = ask(X, data.y, limit)
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        return kept | found | {"seconds": round(time.perf_counter() - started, 2)}


def disagree(one, other):
    """Whether they cannot both be true."""
    if None not in (one["separable"], other["separable"]) and one["separable"] != other["separable"]:
        return True
    both = [(one[kind], other[kind]) for kind in ("soft", "hard") if kind in one and kind in other]
    return any(max(a[0], b[0]) > min(a[1], b[1]) for a, b in both)


def gap(bracket):
    """Its relative width, to one digit."""
    lower, upper = bracket
    return f"{(upper - max(lower, 0.0)) / upper if upper > 0 else 0.0:.0e}".replace("e-0", "e-").replace("e+00", "")


def cell(found):
    """An answer in a table."""
    if found is None:
        return ""
    for kind in ("left_out", "error"):
        if kind in found:
            return found[kind]
    gaps = ", ".join(gap(found[kind]) for kind in ("hard", "soft") if kind in found)
    return f"{ {True: 'yes', False: 'no', None: 'open'}[found['separable']] }; {gaps}; {found['seconds']:.1f} s"


def common(answers, kind):
    """What all brackets of one kind say together."""
    brackets = [found[kind] for found in answers if kind in found]
    if not brackets:
        return ""
    lower, upper = max(bracket[0] for bracket in brackets), min(bracket[1] for bracket in brackets)
    return f"{lower:.6g}..{upper:.6g}"


def table(results, backends):
    """Markdown, and how many disagreements and errors there are."""
    lines = ["| set | n × d | largest margin | soft margin | " + " | ".join(backends) + " | disagreements |"]
    lines.append("|---|" + "---|" * (len(backends) + 4))
    answers = wrong = errors = 0
    for name in dict.fromkeys(found["set"] for found in results):
        own = {found["backend"]: found for found in results if found["set"] == name and found["backend"] in backends}
        good = [found for found in own.values() if "separable" in found]
        count = sum(disagree(*pair) for pair in itertools.combinations(good, 2))
        answers, wrong, errors = answers + len(good), wrong + count, errors + sum("error" in found for found in own.values())
        size = next(f"{found['n']:,} × {found['d']:,}" for found in own.values())
        told = [name, size, common(good, "hard"), common(good, "soft"), *(cell(own.get(backend)) for backend in backends)]
        lines.append(f"| {' | '.join(told)} | {count} |")
    lines += ["", f"{answers} answers, {wrong} disagreements, {errors} errors.", ""]
    return "\n".join(lines), wrong + errors


def main(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of sets")
    parser.add_argument("--backends", nargs="+", default=["memory", "map", "parquet", "csr"], choices=BACKENDS)
    parser.add_argument("--seconds", type=float, default=10.0, help="for one question; there are up to three")
    parser.add_argument("--only", nargs="+", help="these sets")
    parser.add_argument("--out", type=Path, help="a folder for results.jsonl and table.md")
    options = parser.parse_args(arguments)
    mapped.LARGE_FILE_BYTES, device.MIN_ENTRIES = 1, 0
    few = np.random.default_rng(0).normal(size=(60, 3))
    for dtype in (np.float32, np.float64):  # so that no time goes into compiling what is not in the cache
        ask(few.astype(dtype), np.where(few[:, 0] > 0, 1, -1), 60.0)
    results = []
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        kept = options.out / "results.jsonl"
        lines = kept.read_text(encoding="utf-8").splitlines(keepends=True) if kept.exists() else []
        results = [json.loads(line) for line in lines if line.endswith("\n")]  # the last one may be cut off
        kept.write_text("".join(line for line in lines if line.endswith("\n")), encoding="utf-8")
    done = {(found["set"], found["backend"], found["limit"]) for found in results}
    with cluster("dask" in options.backends):
        for name, backend in itertools.product(names(options.data), options.backends):
            if (options.only and name not in options.only) or (name, backend, options.seconds) in done:
                continue
            found = answer(load(str(options.data / f"{name}.npz")), backend, options.seconds)
            # another limit asks anew
            results = [old for old in results if (old["set"], old["backend"]) != (name, backend)] + [found]
            print(name, backend, cell(found), flush=True)
            if options.out is not None:
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
    order = {name: k for k, name in enumerate(names(options.data))}
    results.sort(key=lambda found: (order.get(found["set"], len(order)), found["set"]))
    told, bad = table(results, [name for name in BACKENDS if any(found["backend"] == name for found in results)])
    if options.out is None:
        print(told)
    else:
        (options.out / "table.md").write_text(told, encoding="utf-8")
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
