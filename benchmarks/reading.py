"""How fast files are read, beside scikit-learn, pandas and pyarrow: python benchmarks/reading.py [--processor]"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from clock import timed

from gordan.io import read


def svmlight(path: Path, size: int, form: str) -> None:
    """Rows of 40 entries among 10,000 columns, labels ±1."""
    rng = np.random.default_rng(0)
    lines: list[str] = []
    for _ in range(2000):
        columns = np.sort(rng.choice(10_000, 40, replace=False)) + 1
        entries = " ".join(f"{j}:{form % value}" for j, value in zip(columns, rng.standard_normal(40), strict=True))
        lines.append(f"{'+1' if rng.random() < 0.5 else '-1'} {entries}\n")
    repeat(path, "", "".join(lines), size)


def csv(path: Path, size: int, form: str, columns: int = 20) -> None:
    """Rows of 20 numbers and a text label."""
    rng = np.random.default_rng(0)
    X, header = rng.standard_normal((2000, columns)), ",".join(f"x{j}" for j in range(columns)) + ",label\n"
    lines = [",".join(form % value for value in row) + f",{'yes' if row[0] > 0 else 'no'}\n" for row in X]
    repeat(path, header, "".join(lines), size)


def repeat(path: Path, header: str, body: str, size: int) -> None:
    """A file of about `size` bytes."""
    path.write_text(header + body * max(1, size // len(body)))


def seconds(call: Callable[[], Any], processor: bool) -> float:
    """The best of three: wall-clock time, or processor time of all threads, which other programs disturb less."""
    return min(processor_time(call) if processor else timed(call)[0] for _ in range(3))


def processor_time(call: Callable[[], Any]) -> float:
    """The processor time of a call."""
    began = time.process_time()
    call()
    return time.process_time() - began


def rivals() -> dict[str, dict[str, Callable[[Path], Any]]]:
    """Other readers, as far as they are installed."""
    found: dict[str, dict[str, Callable[[Path], Any]]] = {".svm": {}, ".csv": {}}
    try:
        from sklearn.datasets import load_svmlight_file

        found[".svm"]["scikit-learn"] = lambda path: load_svmlight_file(str(path))
    except ImportError:
        pass
    try:
        import pandas

        found[".csv"]["pandas"] = pandas.read_csv
    except ImportError:
        pass
    try:
        from pyarrow.csv import read_csv

        found[".csv"]["pyarrow"] = lambda path: read_csv(str(path))
    except ImportError:
        pass
    return found


def main(arguments: list[str]) -> None:
    """Print one line per file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--processor", action="store_true", help="count processor time instead of wall-clock time")
    options, others = parser.parse_args(arguments), rivals()
    size, processor = options.megabytes * 10**6, options.processor
    with tempfile.TemporaryDirectory() as folder:
        for suffix, make in {".svm": svmlight, ".csv": csv}.items():
            for form in ("%.6g", "%.17g"):
                path = Path(folder) / f"data{suffix}"
                make(path, size, form)
                megabytes = path.stat().st_size / 1e6
                read(path)  # compile, and bring the file into memory
                told = [f"gordan {megabytes / seconds(lambda path=path: read(path), processor):.0f}"]
                told += [
                    f"{name} {megabytes / seconds(lambda path=path, call=call: call(path), processor):.0f}"
                    for name, call in others[suffix].items()
                ]
                print(f"{suffix} {form:>6} {megabytes:5.0f} MB, MB/s: {', '.join(told)}")


if __name__ == "__main__":
    main(sys.argv[1:])
