"""Verdicts and brackets of every set in a folder, on every storage: in memory, mapped, Parquet in row groups, CSR on disk.

    python benchmarks/backends.py FOLDER [--limit SECONDS] [NAME …]

FOLDER holds NAME.npz files: an array X or SciPy's CSR, and y in the same file or in NAME.y.npy. More than two classes are taken
as the first against the rest. Two storages disagree if both decide and decide differently, or if their brackets do not meet.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import gordan
from gordan.io import read
from gordan.io.parts import Csr
from gordan.rows import mapped

MOST_DENSE = 3 * 10**7


def load(path):
    """X and two labels."""
    with np.load(path, allow_pickle=False) as archive:
        X = archive["X"] if "X" in archive else sp.load_npz(path)
        y = archive["y"] if "y" in archive else np.load(path.with_suffix(".y.npy"))
    return X, (y == np.unique(y)[0] if len(np.unique(y)) > 2 else y)


def mapped_array(folder, name, array):
    """The array in a file of its own, mapped."""
    np.save(folder / f"{name}.npy", array)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def storages(X, y, folder):
    """The same rows in each storage."""
    yield "memory", X
    if sp.issparse(X):
        csr = sp.csr_array(X)
        csr.sum_duplicates()
        parts = {
            "data": csr.data.astype(np.float64),
            "indices": csr.indices.astype(np.int32),
            "indptr": csr.indptr.astype(np.int64),
        }
        yield "CSR on disk", Csr(*(mapped_array(folder, name, part) for name, part in parts.items()), shape=csr.shape)
    if X.shape[0] * X.shape[1] > MOST_DENSE:
        return
    dense = np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    yield "map", mapped_array(folder, "X", dense)
    if dense.shape[1] <= 2000:
        import pyarrow as pa
        import pyarrow.parquet as pq

        (folder / "tables").mkdir()
        half = len(dense) // 2
        for k, part in enumerate((slice(0, half), slice(half, None))):
            columns = {f"x{j}": dense[part, j] for j in range(dense.shape[1])}
            table = pa.table({**columns, "y": np.unique(y, return_inverse=True)[1][part]})
            pq.write_table(table, folder / f"tables/{k}.parquet", row_group_size=max(1, len(dense) // 7))
        yield "Parquet", read(folder / "tables", memory_limit=1).X


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for each question")
    chosen = parser.parse_args()
    mapped.LARGE = 1  # every file counts as large
    cells = disagreements = 0
    for path in sorted(chosen.folder.glob("*.npz")):
        if chosen.names and path.stem not in chosen.names:
            continue
        X, y = load(path)
        first = None
        with tempfile.TemporaryDirectory() as folder:
            for name, stored in storages(X, y, Path(folder)):
                verdict = gordan.separate(stored, y, time_limit=chosen.limit)
                nu = None if verdict.separable else float(min(np.mean(y == label) for label in np.unique(y)))
                result = gordan.maximize_margin(stored, y, tol=1e-3, time_limit=chosen.limit, nu=nu)
                if first is None:
                    first = verdict, result
                differ = None not in (verdict.separable, first[0].separable) and verdict.separable != first[0].separable
                if result.nu == first[1].nu:
                    differ |= max(result.margin[0], first[1].margin[0]) > min(result.margin[1], first[1].margin[1])
                cells, disagreements = cells + 1, disagreements + differ
                lower, upper = result.margin
                print(
                    f"{path.stem:22} {name:12} {verdict.status:14} [{lower:.6g}, {upper:.6g}] {result.status:12} "
                    f"{result.passes:.1f} passes{'   DISAGREES' if differ else ''}",
                    flush=True,
                )
    print(f"{disagreements} disagreements in {cells} cells")


if __name__ == "__main__":
    main()
