"""A linear probe on a GPU: 1,280,000 rows of 1,024 features in float16, 50 classes one against the rest, certified.

`python benchmarks/probe.py --out docs/gpu` prints Markdown and writes it with a JSON twin. The rows are made on the device: class
c has the mean s·μ_c, μ_c a random unit vector, and every entry has noise N(0, 1) on top; `--seed` seeds all of it. With s = 12
each class is separable from the rest; with s = 6 none is, and the margin is soft: nu = 0.05, the classes balanced (with a free
intercept nu is at most twice the share of the smaller class, 0.04 here, unless the classes are given equal weight).

Beside it: multinomial logistic regression by torch's L-BFGS on the same rows (products in float16, sums and everything else in
float32) until its training accuracy is that of gordan's planes.
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

import gordan
from gordan.rows import stored

VARIANTS = {"separable": {"strength": 12.0, "nu": None}, "nu = 0.05": {"strength": 6.0, "nu": 0.05}}
TOLERANCES = (1e-2, 1e-3)
BLOCK = 1 << 16


def probe(n: int, d: int, k: int, strength: float, device: str, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """X in float16 and y, on the device."""
    source = torch.Generator(device).manual_seed(seed)
    means = torch.randn((k, d), generator=source, device=device)
    means *= strength / means.norm(dim=1, keepdim=True)
    y = torch.randint(0, k, (n,), generator=source, device=device)
    y[:k] = torch.arange(k, device=device)  # every class is there
    X = torch.empty((n, d), dtype=torch.float16, device=device)
    for lo in range(0, n, BLOCK):
        own = y[lo : lo + BLOCK]
        X[lo : lo + BLOCK] = torch.randn((len(own), d), generator=source, device=device) + means[own]
    return X, y


def synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def planes(held, y: torch.Tensor, k: int, nu: float | None, tol: float, method: str, limit: float, device: str) -> list[dict]:
    """A plane for each class, until the time is up."""
    found: list[dict] = []
    begun = time.perf_counter()
    for c in range(k):
        left = limit - (time.perf_counter() - begun)
        if found and left < 1.5 * max(plane["seconds"] for plane in found):
            break
        labels = (y == c).cpu().numpy()
        synchronize(device)
        started = time.perf_counter()
        result = gordan.maximize_margin(
            held, labels, nu=nu, tol=tol, method=method, class_weight="balanced" if nu else None, time_limit=max(1.0, left)
        )
        seconds = time.perf_counter() - started
        searched = float(result.trace.seconds[-1]) if result.trace is not None else 0.0
        plane = {"class": c, "status": result.status, "gap": result.gap, "margin": result.margin, "seconds": seconds}
        plane |= {"searched": searched, "passes": result.passes, "rounds": result.n_iter, "w": result.w, "b": result.b}
        found.append(plane)
        told = f"class {c}: {result.status}, gap {result.gap:.2g}, {seconds:.2f} s ({searched:.2f} s of search)"
        print(f"  {told}, {result.passes:.0f} passes", flush=True)
    return found


def accuracy(held, y: torch.Tensor, W: np.ndarray, b: np.ndarray) -> float:
    ones = held.to_storage(np.ones(held.n, np.int8), "signs")
    return float(np.mean(held.to_host(held.scores(W.T, b, ones, 1)).argmax(axis=1) == y.cpu().numpy()))


class Logistic:
    """Multinomial logistic regression, full batch, by torch.optim.LBFGS; a little ridge, since the rows may be separable: one
    number, or one for each column of X and the intercept."""

    def __init__(self, X: torch.Tensor, y: torch.Tensor, k: int, ridge: float | torch.Tensor = 1e-6) -> None:
        self.X, self.y, self.k, self.ridge = X, y, k, ridge
        self.W = torch.zeros((X.shape[1] + 1, k), device=X.device, requires_grad=True)
        self.evaluations, self.right = 0, 0.0

    def closure(self) -> torch.Tensor:
        """The loss; its gradient goes to W.grad. Two products of float16 a block."""
        n, d = self.X.shape
        W = self.W.detach()
        narrow, gradient = W[:d].half(), torch.zeros_like(W)
        loss, right = torch.zeros((), device=W.device), torch.zeros((), device=W.device)
        for lo in range(0, n, BLOCK):
            x, own = self.X[lo : lo + BLOCK], self.y[lo : lo + BLOCK]
            logits = (x @ narrow).float() + W[d]
            right += (logits.argmax(1) == own).sum()
            logs = torch.log_softmax(logits, 1)
            loss -= logs.gather(1, own[:, None]).sum()
            rest = logs.exp_()
            rest[torch.arange(len(own), device=own.device), own] -= 1
            gradient[:d] += (x.T @ rest.half()).float()
            gradient[d] += rest.sum(0)
        self.right = float(right) / n
        self.evaluations += 1
        self.W.grad = gradient / n + self.ridge * W
        return loss / n + 0.5 * (self.ridge * W * W).sum()

    def until(self, target: float, most: int, limit: float) -> dict:
        """Iterations until the training accuracy is reached."""
        optimizer = torch.optim.LBFGS([self.W], max_iter=1, history_size=10, line_search_fn="strong_wolfe")
        synchronize(str(self.X.device))
        started = time.perf_counter()
        iterations = 0
        while self.right < target and iterations < most and time.perf_counter() - started < limit:
            optimizer.step(self.closure)
            iterations += 1
        synchronize(str(self.X.device))
        seconds = time.perf_counter() - started
        return {"iterations": iterations, "evaluations": self.evaluations, "seconds": seconds, "accuracy": self.right}


def proof_speed(held, w: np.ndarray, device: str) -> dict:
    """Enclosures of all scores, made on the device, and from entries that are copied to the host: seconds each."""
    from gordan.certificates.matrix import Matrix, Products

    rows = max(1, min(held.n, (1 << 26) // held.d))
    there, here = Matrix(held), Matrix(held.take(np.arange(rows)))
    times = {}
    for name, matrix in (("device", there), ("host", here)):
        synchronize(device)
        started = time.perf_counter()
        Products.of(matrix, w)
        times[name] = (time.perf_counter() - started) * held.n / matrix.n
    started = time.perf_counter()
    held.take(np.arange(rows))
    times["copy to the host"] = (time.perf_counter() - started) * held.n / rows
    return times


def line(variant: str, tol: float, method: str, found: list[dict], k: int, right: float | None, logistic: dict | None) -> dict:
    solved = [plane for plane in found if plane["gap"] <= tol]
    row = {"variant": variant, "tol": tol, "method": method, "classes": f"{len(solved)} of {k}" if len(found) == k else ""}
    row["classes"] = row["classes"] or f"{len(solved)} of {len(found)} tried"
    row["s per class"] = statistics.median(plane["seconds"] for plane in found)
    row["of which search"] = statistics.median(plane["searched"] for plane in found)
    row["slowest s"] = max(plane["seconds"] for plane in found)
    row["total s"] = sum(plane["seconds"] for plane in found)
    row["passes"] = statistics.median(plane["passes"] for plane in found)
    row["worst gap"] = max(plane["gap"] for plane in found)
    row["accuracy"] = "" if right is None else f"{right:.5f}"
    if logistic is not None:
        row["L-BFGS s"] = logistic["seconds"]
        row["L-BFGS evaluations"] = logistic["evaluations"]
        row["L-BFGS accuracy"] = f"{logistic['accuracy']:.5f}"
    else:
        row |= {"L-BFGS s": "", "L-BFGS evaluations": "", "L-BFGS accuracy": ""}
    return row


def main(arguments: list[str] | None = None) -> list[dict]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_280_000)
    parser.add_argument("--columns", type=int, default=1024)
    parser.add_argument("--classes", type=int, default=50)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=100.0, help="for all classes of one variant and tolerance, at most")
    parser.add_argument("--oracle", type=float, default=0.0, help="seconds that the double oracle may try one class for, too")
    parser.add_argument("--out", type=Path, default=None, help="folder for probe.md and probe.json")
    options = parser.parse_args(arguments)
    device, k = options.device, options.classes
    name = torch.cuda.get_device_name() if device.startswith("cuda") else device
    shape = f"{options.rows:,} × {options.columns:,} float16, {k} classes, seed {options.seed}"
    head = f"{shape}; {name}, torch {torch.__version__}"
    print(head, flush=True)
    rows, everything, speeds = [], [], {}
    for variant, recipe in VARIANTS.items():
        X, y = probe(options.rows, options.columns, k, recipe["strength"], device, options.seed)
        held = stored(X)
        # kernels are compiled on first use; the norms of the rows are found once for all classes
        first = (y == 0).cpu().numpy()
        gordan.maximize_margin(held, first, nu=recipe["nu"], class_weight="balanced", tol=0.5, max_iter=2)
        for tol in TOLERANCES:
            print(f"{variant}, tol {tol:g}", flush=True)
            found = planes(held, y, k, recipe["nu"], tol, "auto", options.seconds, device)
            right = logistic = None
            if len(found) == k and all(plane["w"] is not None for plane in found):
                W, b = np.array([plane["w"] for plane in found]), np.array([plane["b"] for plane in found])
                right = accuracy(held, y, W, b)
                logistic = Logistic(X, y, k).until(right, 1000, 60.0)
                speeds = proof_speed(held, W[0], device)
                print(f"  accuracy {right:.6f}; L-BFGS {logistic}; proof {speeds}", flush=True)
            rows.append(line(variant, tol, "auto", found, k, right, logistic))
            everything.append({"variant": variant, "tol": tol, "planes": [_plain(plane) for plane in found]})
            print(json.dumps(rows[-1]), flush=True)
        if options.oracle:
            one = planes(held, y, 1, recipe["nu"], tol, "double_oracle", options.oracle, device)
            rows.append(line(variant, tol, "double_oracle", one, 1, None, None))
            print(json.dumps(rows[-1]), flush=True)
        del X, y, held
        if device.startswith("cuda"):
            torch.cuda.empty_cache()
    proofs = ", ".join(f"{where} {seconds:.3g} s" for where, seconds in speeds.items())
    text = "\n\n".join((head, report.table(rows), f"Enclosures of all scores of one plane: {proofs}."))
    print(text)
    report.save(options.out, "probe", text, {"about": head, "table": rows, "runs": everything})
    return rows


def _plain(plane: dict) -> dict:
    return {key: value for key, value in plane.items() if key not in ("w", "b")}


if __name__ == "__main__":
    main()
