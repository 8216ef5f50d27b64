"""What people call on a GPU, in seconds with proof; and the fused pass, its read bandwidth by type and row length.

The pass stands against `torch.sum` and against two products in torch. Prints Markdown, and writes it with a JSON twin:
`python benchmarks/gpu.py --out docs/gpu`. Arrays have 4·10⁹ entries, and then a quarter of them; `--entries` says otherwise,
`--rows` how many rows the problems have. `--sweep` also tries other cuts of the pass than the one that gordan plans.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
import report
import torch
import triton

from gordan import rows
from gordan.rows import triton_kernels as kernels
from gordan.rows.device import Device

DEVICE = "cuda"
LENGTHS = [128, 256, 784, 1024, 4096]
# types of the entries, and of what scores are added up in
TYPES = [(torch.float32, "float64"), (torch.float32, "float32"), (torch.bfloat16, "float32"), (torch.float16, "float32")]


def milliseconds(functions: dict, repeats: int = 7, in_a_row: int = 20) -> dict[str, float]:
    """Median of each, by events on the device: several calls in a row, as rounds come, and all functions in turn."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(repeats):
        for name, function in functions.items():
            function()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(in_a_row):
                function()
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end) / in_a_row)
    return {name: statistics.median(values) for name, values in times.items()}


def matrix(entries: int, d: int, dtype: torch.dtype) -> torch.Tensor:
    X = torch.empty((entries // d, d), dtype=dtype, device=DEVICE)
    for part in X.split(max(1, len(X) // 16)):
        part.normal_()
    return X


def two_products(X: torch.Tensor, v: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The same numbers by torch: X is read twice, and 16-bit products are rounded to 16 bits."""
    return (torch.softmax(-y * (X @ v).float(), 0) * y).to(X.dtype) @ X


def cell(entries: int, d: int, dtype: torch.dtype, sums: str) -> dict:
    """One line of the table. `kernel` is the pass alone, `fused` is `Rows.softmin` on resident rows: v goes to the device and Aᵀp
    comes back, and the host waits for it. With halves there is also a log p0, and the kernel is another one."""
    X = matrix(entries, d, dtype)
    n = len(X)
    rng = np.random.default_rng(0)
    v = rng.standard_normal(d) / np.sqrt(d)
    signs = np.where(rng.random(n) < 0.5, -1, 1).astype(np.int8)
    A = rows.of(X, signs, sums=sums, resident=True)
    halves, log_p0 = A.groups_to_storage(signs < 0), A.to_storage(rng.standard_normal(n))
    narrow_v, y = torch.from_numpy(v).to(DEVICE, dtype), torch.from_numpy(signs).to(DEVICE)
    took = milliseconds(
        {
            "torch.sum": lambda: torch.sum(X),
            "kernel": lambda: A.storage._run(v, 0.0, A._stored_signs, None, None),
            "fused": lambda: A.softmin(v),
            "two products": lambda: two_products(X, narrow_v, y),
            "kernel, halves": lambda: A.storage._run(v, 0.0, A._stored_signs, log_p0, halves),
            "fused, halves": lambda: A.softmin(v, log_p0, halves),
            "combine": lambda: A.combine(log_p0),
        }
    )
    size = X.numel() * X.element_size() / 1e9
    rate = {name: size / ms for name, ms in took.items()}  # GB/ms = TB/s
    scores, combination = errors(A, X, v, signs)
    row = {"entries": str(dtype).removeprefix("torch."), "scores": sums, "d": d, "n": n}
    row |= {f"{name} [TB/s]": value for name, value in rate.items() if name != "two products"}
    row["kernel / torch.sum"] = rate["kernel"] / rate["torch.sum"]
    row["fused / kernel"] = rate["fused"] / rate["kernel"]
    row["the same with halves"] = rate["fused, halves"] / rate["kernel, halves"]
    row["two products / fused [time]"] = took["two products"] / took["fused"]
    row["error of scores"] = scores
    row["error of Aᵀp"] = combination
    return row


def errors(A: rows.Rows, X: torch.Tensor, v: np.ndarray, signs: np.ndarray) -> tuple[float, float]:
    """Largest error of a score over Σ|x||v|, and ‖error of Aᵀp‖/‖Aᵀp‖, against float64 on the same entries."""
    soft = A.softmin(v)
    wide, y = torch.from_numpy(v).to(DEVICE), torch.from_numpy(signs).to(DEVICE)
    exact = torch.empty(len(X), dtype=torch.float64, device=DEVICE)
    worst, step = 0.0, max(1, len(X) // 64)
    for lo in range(0, len(X), step):
        part = X[lo : lo + step].double()
        exact[lo : lo + step] = y[lo : lo + step] * (part @ wide)
        error = (soft.scores[lo : lo + step] - exact[lo : lo + step]).abs()
        worst = max(worst, float((error / (part.abs() @ wide.abs())).max()))
    p = torch.softmax(-exact, 0) * y
    combination = torch.zeros(len(v), dtype=torch.float64, device=DEVICE)
    for lo in range(0, len(X), step):
        combination += p[lo : lo + step] @ X[lo : lo + step].double()
    want = combination.cpu().numpy()
    return worst, float(np.linalg.norm(soft.combination - want) / np.linalg.norm(want))


def levels(entries: int, d: int) -> list[dict]:
    """One fused pass with vectors over rows on the device, with them brought to the host, and rounds of the methods.

    "of its passes" is the time of a round divided by that of the fused passes that it takes.
    """
    import gordan
    from gordan.dynamics import Sums
    from gordan.geometry import Simplex

    X = matrix(entries, d, torch.float32)
    signs = np.where(np.random.default_rng(0).random(len(X)) < 0.5, -1, 1)
    here, there = rows.of(X, signs), rows.of(X, signs, resident=True)
    v, log_p0 = np.full(d, 0.01), np.zeros(len(X))
    placed = there.to_storage(log_p0)
    scaled, p_set = here.scaled(1 / here.radius()), Simplex(len(X))

    def rounds(method: gordan.methods.Method, A: rows.Rows):
        form = method.on(A, p_set, p_set.centre)
        state, sums, t = form.start(), Sums(), 0

        def play() -> None:
            nonlocal state, sums, t
            t += 1
            state, played = form.round(state, t)
            sums = sums.after(form.game, played)

        return play

    fused = wall(lambda: there.softmin(v, placed))
    found = [
        {"what": "fused pass, vectors over rows stay on the device", "ms": fused},
        {"what": "fused pass, log p0 copied there and scores back", "ms": wall(lambda: here.softmin(v, log_p0))},
    ]
    for name in gordan.methods.names():
        entry = gordan.methods.get(name)
        for method in (entry(form=form) for form in entry.forms):
            if method.resident:
                ms = wall(rounds(method, method.placed(scaled, p_set, checkpoint=False)))
                found.append(
                    {"what": f"round of {name} ({method.form})", "ms": ms, "of its passes": ms / (method.passes * fused)}
                )
    smooth = gordan.methods.smooth_perceptron()
    ms = wall(rounds(smooth, scaled))
    return [*found, {"what": "round of smooth_perceptron, vectors over rows in NumPy", "ms": ms, "of its passes": ms / fused}]


def stack(entries: int, d: int, dtype: torch.dtype, sums: str, k: int) -> dict:
    """A stack of k vectors v over one X: by matrix products, and by a fused pass for each."""
    X = matrix(entries, d, dtype)
    rng = np.random.default_rng(0)
    V = rng.standard_normal((k, d)) / np.sqrt(d)
    signs = torch.from_numpy(np.where(rng.random(len(X)) < 0.1, 1, -1).astype(np.int8)).to(DEVICE)
    held = Device(X, sums=sums)
    together = wall(lambda: held._by_products(V, np.zeros(k), signs, None, None))
    apart = wall(lambda: held._by_passes(V, np.zeros(k), signs, None, None))
    row = {"entries": str(dtype).removeprefix("torch."), "scores": sums, "d": d, "k": k}
    return row | {"matrix products [ms]": together, "k fused passes [ms]": apart}


def wall(function, repeats: int = 5) -> float:
    """Median milliseconds by the clock, until the device is idle again."""
    times = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - begin))
    return statistics.median(times[1:])


def planted(n: int, d: int, turned: float = 0.0) -> tuple[torch.Tensor, np.ndarray]:
    """Points of norm about 1 on both sides of a plane, 0.02 and more away from it; a share of the labels is turned over. y is an
    array in memory."""
    torch.manual_seed(int(1000 * turned))
    w = torch.nn.functional.normalize(torch.randn(d, device=DEVICE), dim=0)
    X, y = torch.empty((n, d), device=DEVICE), torch.empty(n, device=DEVICE)
    for part, labels in zip(X.split(1 << 19), y.split(1 << 19), strict=True):
        part.normal_().div_(d**0.5)
        labels.copy_(torch.where(part @ w >= 0, 1.0, -1.0))
        part += 0.02 * labels[:, None] * w
    y[torch.rand(n, device=DEVICE) < turned] *= -1
    return X, y.cpu().numpy().astype(np.int64)


def calls(n: int, d: int, wide: tuple[int, int], repeats: int = 5) -> list[dict]:
    """What people call, by the clock on the wall: X on the device, y in memory, proofs included."""
    import gordan

    def line(what: str, call) -> dict:
        call()
        times, answers = [], []
        for _ in range(repeats):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            answers.append(call())
            times.append(time.perf_counter() - begin)
        row = {
            "call": what,
            "rows × columns": f"{len(X):,} × {X.shape[1]:,}",
            "s": statistics.median(times),
            "slowest s": max(times),
        }
        last = answers[-1]
        row["answer"] = f"gap {last.gap_:.0e}" if hasattr(last, "gap_") else str(last.status)
        row["passes"] = getattr(last, "passes", None)
        print(json.dumps(row), flush=True)
        return row

    def margin(**options):
        return gordan.maximize_margin(X, y, **options)

    X, y = planted(n, d)
    found = [line("separate", lambda: gordan.separate(X, y))]
    found += [
        line(f"maximize_margin, tol={tol:g}", lambda tol=tol: gordan.maximize_margin(X, y, tol=tol)) for tol in (1e-3, 1e-6)
    ]
    X, y = planted(n, d, turned=0.02)
    found.append(line("separate, 2% of the labels turned over", lambda: gordan.separate(X, y)))
    for loss in ("squared_hinge", "logistic", "hinge"):
        model = gordan.LinearClassifier(loss, tol=1e-4)
        found.append(line(f"LinearClassifier({loss!r}, tol=1e-4).fit there", lambda model=model: model.fit(X, y)))
    found.append(line("maximize_margin, nu=0.4, tol=0.001, there", lambda: margin(nu=0.4, tol=1e-3)))
    found.append(line("the same, tol=1e-12, time_limit=1", lambda: margin(nu=0.4, tol=1e-12, time_limit=1.0)))
    del X
    X, y = planted(*wide)
    found += [
        line(f"maximize_margin, tol={tol:g}", lambda tol=tol: gordan.maximize_margin(X, y, tol=tol)) for tol in (1e-3, 1e-6)
    ]
    for limit in (0.5, 1.0):
        what = f"maximize_margin, tol=1e-12, time_limit={limit:g}"
        found.append(line(what, lambda limit=limit: margin(tol=1e-12, time_limit=limit)))
    return found


def sweep(entries: int, d: int, dtype: torch.dtype, sums: str) -> list[dict]:
    """Other cuts of the pass: entries a thread, warps, columns of a piece."""
    X = matrix(entries, d, dtype)
    held = Device(X, sums=sums)
    planned = held._kernels
    y = torch.ones(len(X), dtype=torch.int8, device=DEVICE)
    found = []
    for columns in (32, 64, 128, 256, 1024, 4096):
        chunks = -(-d // columns)
        for warps in (1, 2, 4, 8):
            for a_thread in (16, 32, 64):
                tile = 32 * warps * a_thread
                if chunks > 16 or columns * chunks >= 2 * d or not chunks * columns <= tile <= 64 * columns * chunks:
                    continue
                size = 1 << (tile // (columns * chunks)).bit_length() - 1
                cut = kernels.Plan(size, columns, chunks, warps, max(1, 16 // warps))
                held.__dict__["_kernels"] = (kernels, planned[1], cut)
                ms = milliseconds({"it": lambda: held._run(np.ones(d), 0.0, y, None, None)}, 3, 3)["it"]
                found.append({"cut": f"{size} rows, {chunks} × {columns} columns, {warps} warps", "TB/s": X.nbytes / 1e9 / ms})
    best = sorted(found, key=lambda row: -row["TB/s"])[:4]
    name = str(dtype).removeprefix("torch.")
    return [{"entries": name, "scores": sums, "d": d, **row, "planned": str(tuple(planned[2]))} for row in best]


def name() -> str:
    return torch.cuda.get_device_name() if DEVICE == "cuda" else DEVICE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/gpu"))
    parser.add_argument("--entries", type=float, default=4e9, help="of each array")
    parser.add_argument("--rows", type=float, default=1e7, help="of the problems that people's calls are timed on")
    parser.add_argument("--sweep", action="store_true", help="also try other cuts of the pass")
    options = parser.parse_args()
    if DEVICE == "cuda" and not torch.cuda.is_available():
        parser.exit(1, "no CUDA device: these are figures of a GPU\n")
    entries = int(options.entries)
    n = int(options.rows)
    result: dict = {
        "machine": {"gpu": name(), "torch": torch.__version__, "triton": triton.__version__},
        "calls": calls(n, 256, (n // 5, 1024)),
        "passes": [],
    }
    torch.cuda.empty_cache()
    for size in (entries, entries // 4):
        for dtype, sums in TYPES:
            for d in LENGTHS:
                result["passes"].append(cell(size, d, dtype, sums))
                torch.cuda.empty_cache()
                print(json.dumps(result["passes"][-1]), flush=True)
    result["levels"] = levels(entries // 4, 1024)
    result["stack"] = [stack(entries // 4, 784, *kind, 10) for kind in TYPES[:3]]
    if options.sweep:
        result["sweep"] = [row for kind in TYPES[:3] for d in LENGTHS for row in sweep(entries, d, *kind)]
    text = "\n\n".join(
        ["Machine: " + ", ".join(f"{key} {value}" for key, value in result["machine"].items())]
        + [report.table(table) for table in result.values() if isinstance(table, list)]
    )
    report.save(options.out, "table", text, result)
    print(text)


if __name__ == "__main__":
    main()
