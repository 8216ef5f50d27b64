"""Rows in a torch tensor: on a GPU the fused pass is one Triton kernel; in memory it is torch operations, block by block.

Entries of 16, 32 and 64 bits are read as they are stored. They are added up in these types:

    entries            scores     combination of the fused pass    combine
    float64            float64    float64                          float64
    float32            float64    float32                          float64
    float16, bfloat16  float32    float32                          float32

Scores of float32 rows are float64 because accelerated methods subtract scores of size γt²; the combination is a mean, whose error
is no larger than that of its terms. `sums="float32"` or "float64" chooses the type of the scores and of `combine` instead. These
numbers are only used to propose: proofs read the entries themselves, in float64 (`tensors.TensorBlock`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property, wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from gordan.arrays import Array, zeros_and_ones
from gordan.errors import BeyondFloats, InputError, MissingExtra
from gordan.floats import ieee_floats
from gordan.rows.memory import Dense
from gordan.rows.reads import DenseBlock
from gordan.rows.storage import (
    HIGH,
    INITIAL_PEAK_FLOAT32,
    LOW,
    MIN_ENTRIES,
    PEAK,
    SIGNED,
    TOTAL,
    Lowest,
    Storage,
    Sums,
    row_vectors,
    sums_of,
    widest,
)
from gordan.rows.tensors import (
    TensorBlock,
    TensorPiece,
    device_is_ieee,
    exact,
    free_device_memory,
    host,
    is_tensor,
    torch_for,
    within_device_memory,
)

# The number of entries that torch operations process at a time: few enough for the cache in memory, enough for a launch on a GPU.
BLOCK = {"cpu": 1 << 18, "cuda": 1 << 27}

# About how many vectors over rows `reduce` needs for each vector over columns, and the share of the free memory of a GPU that
# they may take.
VECTORS_PER_COLUMN = 12
MAX_MEMORY_SHARE = 0.25

# The number of entries that proofs, which make several float64 copies of a block, process at a time.
PROOF_BLOCK = {"cpu": 1 << 16, "cuda": 1 << 26}

# More problems than this use matrix products if these need no converted copy of the entries, which costs more than ten fused
# passes (`benchmarks/gpu.py`).
MAX_PASSES = 4


Pass = TypeVar("Pass", bound=Callable[..., Any])


def _within_memory(operation: Pass) -> Pass:
    """Make the operation raise an InputError if the device has no memory left for it."""

    @wraps(operation)
    def clearly(self: Device, *args: Any, **options: Any) -> Any:
        return within_device_memory(lambda: operation(self, *args, **options), f"a pass over {self.n} rows")

    return cast(Pass, clearly)


class DeviceGroups(NamedTuple):
    """Two groups of rows on the device: 0 or 1 for each row, the rows of group 0 and then of group 1, and where each begins."""

    groups: Any
    order: Any
    ends: Any


class Device(Storage):
    """A storage of the rows of a torch tensor, with vectors over rows on its device.

    `fused` chooses whether Triton kernels do the passes, which is the default on a GPU; elsewhere they need Triton's interpreter
    (TRITON_INTERPRET=1).
    """

    on_device = True

    def __init__(self, X: Any, *, sums: str | None = None, fused: bool | None = None) -> None:
        torch = torch_for()
        self.X = X if X.stride(1) == 1 and X.stride(0) >= X.shape[1] else X.contiguous()
        self.n, self.d = X.shape
        self.entries = max(1, X.numel())
        name = str(X.dtype).removeprefix("torch.")
        self.dtype: Any = name if name == "bfloat16" else np.dtype(name)
        self.kind = f"torch {X.device}"
        self.min_entries = MIN_ENTRIES
        self.sums = ("float32" if X.element_size() == 2 else "float64") if sums is None else sums
        if self.sums not in ("float32", "float64") or (name, self.sums) == ("float64", "float32"):
            raise InputError(f"sums is {sums!r}; pass 'float64', or 'float32' for entries of 32 or 16 bits, or None")
        self.wide = getattr(torch, self.sums)
        self.narrow = torch.float64 if name == "float64" else torch.float32
        self._fused = X.is_cuda if fused is None else fused
        self._found_norms: dict[float, Any] = {}
        self._passes: dict[int, Any] = {}  # fused passes that are not in use, by the number of groups

    # ---- vectors over rows -------------------------------------------------------------------------------------------

    def to_storage(self, values: Any, name: str) -> Any:
        if not is_tensor(values):
            array = row_vectors(values, name, self.n)
            values = torch_for().from_numpy(array if array.flags.writeable else array.copy())
        if values.ndim not in (1, 2) or len(values) != self.n:
            raise InputError(f"{name} must hold one number for each of the {self.n} rows; its shape is {tuple(values.shape)}")
        return values.to(self.X.device, values.dtype if values.dtype == torch_for().int8 else self.wide)

    def groups_to_storage(self, groups: Any, name: str) -> DeviceGroups:
        """Return the two groups of rows, given as 0 or 1 for each row or as an earlier result of this function."""
        if isinstance(groups, DeviceGroups):
            return groups
        torch = torch_for()
        groups = self.to_storage(zeros_and_ones(host(groups), name, self.n), name)
        order = torch.cat([torch.nonzero(groups == g)[:, 0] for g in (0, 1)]).to(torch.int32 if self.n < 2**31 else torch.int64)
        ends = torch.tensor([0, int((groups == 0).sum()), self.n], device=self.X.device)
        return DeviceGroups(groups, order, ends)

    def to_storage_f64(self, values: Any) -> Any:
        torch = torch_for()
        if isinstance(values, np.ndarray) and values.dtype == np.float64 and values.strides == (0,):  # one number, broadcast
            return torch.full(values.shape, float(values[0]), dtype=torch.float64, device=self.X.device)
        there = (values if is_tensor(values) else torch.from_numpy(values)).to(self.X.device)
        return there.to(torch.float64) if there.is_floating_point() else there

    def to_host(self, values: Any) -> Array:
        fetched: Array = values.to("cpu", torch_for().float64).numpy()
        return fetched

    @property
    def proves_on_device(self) -> bool:
        return bool(self.X.is_cuda)

    def to_blocks(self, values: Any) -> Any:
        return self.to_storage_f64(values) if self.proves_on_device else host(values)

    def is_finite(self, values: Any) -> bool:
        return bool(torch_for().isfinite(values).all())

    def _smallest(self, scores: Any, k: int) -> tuple[Array, Array]:
        torch = torch_for()
        last = torch.topk(scores, k, largest=False, sorted=False).values.max()
        chosen = torch.nonzero(scores <= last)[:, 0]
        values, order = torch.sort(scores[chosen], stable=True)
        return chosen[order[:k]].cpu().numpy(), self.to_host(values[:k])

    def tied_rows(self, scores: Any) -> Array:
        """Return the rows that share their score with another row; they are found on the device, and only they are copied."""
        torch = torch_for()
        ordered = torch.sort(scores).values
        again = torch.unique_consecutive(ordered[1:][ordered[1:] == ordered[:-1]])
        if not len(again):
            return np.empty(0, np.int64)
        place = torch.searchsorted(again, scores).clamp_(max=len(again) - 1)
        found: Array = torch.nonzero(again[place] == scores)[:, 0].cpu().numpy()
        return found

    # ---- passes ------------------------------------------------------------------------------------------------------

    @_within_memory
    def scores(self, w: Array, b: float | Array, signs: Any, threads: int) -> Any:
        if w.ndim == 2:
            return self._block_scores(w, np.asarray(b), signs)
        if self._kernels is not None:
            return self._run(w, float(b), signs, None, None, merged=False)[1]
        scores = self.X.new_empty(self.n, dtype=self.wide)
        v, unit = self._unit(w)
        v = torch_for().from_numpy(v).to(self.X.device, self.wide)
        for lo, hi in self._blocks():
            scores[lo:hi] = signs[lo:hi] * ((self.X[lo:hi].to(self.wide) @ v) * unit + b)
        return scores

    def _block_scores(self, W: Array, b: Array, signs: Any) -> Any:
        """Return the scores of a block of vectors, in float64."""
        torch = torch_for()
        scores = self.X.new_empty((self.n, W.shape[1]), dtype=torch.float64)
        matrix, constants = torch.from_numpy(W.copy()).to(self.X.device), torch.from_numpy(b.copy()).to(self.X.device)
        for lo, hi in self._blocks():
            scores[lo:hi] = signs[lo:hi, None] * (self.X[lo:hi].double() @ matrix + constants)
        return scores

    def lowest(self, w: Array, b: float, signs: Any, k: int, groups: Any | None, threads: int) -> Lowest:
        s = self.scores(w, b, signs, threads)
        if not self.is_finite(s):
            return Lowest(k, [], [], False)
        if groups is None:
            found = [self._smallest(s, k)]
        else:
            halves = zeros_and_ones(groups, "halves", self.n) if isinstance(groups, np.ndarray) else groups
            halves = self.to_storage(halves, "halves")
            both = (self._smallest(s.masked_fill(halves != g, math.inf), k) for g in (0, 1))  # selected where the scores are
            found = [(i[lowest < math.inf], lowest[lowest < math.inf]) for i, lowest in both]
        return Lowest(k, [i for i, _ in found], [lowest for _, lowest in found], True)

    @_within_memory
    def combine(self, q: Any, threads: int) -> Array:
        if self._kernels is not None and q.ndim == 1:
            kernels, programs, cut = self._kernels
            try:
                total: Any = kernels.run_combine(self.X, q, self.wide, programs, cut)
            finally:
                self._wait()
            combined: Array = total.numpy().copy()
            return combined
        total = torch_for().zeros((*q.shape[1:], self.d), dtype=torch_for().float64, device=self.X.device)
        for lo, hi in self._blocks():
            total += q[lo:hi].to(self.wide).movedim(0, -1) @ self.X[lo:hi].to(self.wide)
        return self.to_host(total.movedim(-1, 0))

    @_within_memory
    def reduce(self, work: Any, over_rows: Any, shared: Any, threads: int, *, rough: bool = False) -> list[Array]:
        def fits(values: Any) -> Any:  # rough work is done entirely in float32
            narrow = rough and is_tensor(values) and values.dtype == torch_for().float64
            return values.to(self.narrow) if narrow else values

        there = [fits(self.to_storage_f64(part)) if isinstance(part, np.ndarray) else part for part in shared]
        over_rows = [fits(values) for values in over_rows]
        numbers = VECTORS_PER_COLUMN * widest(shared) + (0 if rough else self.d)
        step = self._size(BLOCK)
        if self.X.is_cuda:  # pieces as large as memory allows: a launch costs as much as the work on a hundred thousand rows
            size = (4 if rough else 8) * numbers + 4 * self.d
            step = max(1, int(MAX_MEMORY_SHARE * free_device_memory(self.X.device, self.n * size / MAX_MEMORY_SHARE)) // size)
        pieces = (slice(lo, min(lo + step, self.n)) for lo in range(0, self.n, step))
        found = (work(TensorPiece(self.X[of], rough), *(values[of] for values in over_rows), *there) for of in pieces)
        return [self.to_host(total) for total in sums_of(found)]

    @_within_memory
    def softmin(
        self, v: Array, b: Array, signs: Any, scale: float, log_p0: Any | None, groups: DeviceGroups | None, threads: int
    ) -> tuple[Sums, Any]:
        """Run the kernel once for each v, or two small matrix products for all of them, whichever is faster."""
        by_products = self._kernels is None or (len(v) > MAX_PASSES and self.wide == self.narrow == self.X.dtype)
        sums, scores = (self._by_products if by_products else self._by_passes)(v, b, signs, log_p0, groups)
        for scaled in (sums.tally[:, SIGNED], sums.acc):
            scaled *= scale
        return sums, scores

    @_within_memory
    def totals(self, scores: Any, log_p0: Any | None, groups: DeviceGroups | None, sums: Sums) -> Array:
        """Return Σ e^{log p_0i - s_i - peak} in float64, from the scores: kernels compute exponentials in float32."""
        torch = torch_for()
        if self.narrow == torch.float64 or self._kernels is None:
            return sums.totals
        z = (0.0 if log_p0 is None else log_p0) - scores.to(torch.float64)
        peaks = sums.tally[:, PEAK]
        parts = [z] if groups is None else [z[:, groups.groups == g] for g in (0, 1)]
        peak = torch.from_numpy(peaks).to(self.X.device)
        return self.to_host(torch.stack([torch.exp(part - peak[:, g, None]).sum(1) for g, part in enumerate(parts)], 1))

    def norms(self, p: float, threads: int) -> Array:
        return self.to_host(self._norms(p))

    def largest_norm(self, p: float, threads: int) -> float:
        return float(self._norms(p).max())  # NaN propagates

    def _norms(self, p: float) -> Any:
        if p not in self._found_norms:  # each class is a problem that needs them
            self._found_norms[p] = self._find_norms(p)
        return self._found_norms[p]

    @_within_memory
    def _find_norms(self, p: float) -> Any:
        torch = torch_for()
        norms = self.X.new_empty(self.n, dtype=torch.float64)
        for lo, hi in self._blocks():
            if p == 2 and self.X.element_size() < 8:  # no square of such an entry overflows float64
                found = torch.linalg.vector_norm(self.X[lo:hi].to(torch.float64), dim=1)
                norms[lo:hi] = torch.where(torch.isfinite(found), found, math.nan)
                continue
            x = self.X[lo:hi].to(torch.float64).abs()  # a new tensor: the user's is not changed
            top = x.amax(1)  # NaN propagates
            if p < math.inf:
                x /= torch.where(top > 0, top, 1.0)[:, None]
                top = top * ((x.square_() if p == 2 else x.pow_(p)).sum(1) ** (1 / p))
            norms[lo:hi] = torch.where(torch.isfinite(top), top, math.nan)
        return norms

    def take(self, i: Array) -> Dense:
        """Select the rows on the device and copy them to memory, where single rows are visited and restricted games solved."""
        return Dense(exact(self._picked(i)))

    def part(self, i: Array, *, exactly: bool = False) -> Device:
        if not exactly:
            return Device(self._picked(i), sums=self.sums, fused=self._fused)
        return Device(self._picked(i).to(self.narrow), fused=self._fused)

    def rows_of(self, values: Any, i: Array) -> Any:
        return values[self.to_storage_f64(i)]

    @_within_memory
    def gram(self, i: Array, j: Array, scale: float, weights: Array | None = None) -> Array:
        left, right = (self._picked(rows).to(torch_for().float64) * scale for rows in (i, j))
        if weights is not None:
            left = left * torch_for().from_numpy(weights).to(left.device)
        return self.to_host(left @ right.T)

    @_within_memory
    def moments(self, q: Any, i: Any | None, signs: Any, constant: bool, threads: int) -> tuple[Any, Any, Any]:
        """Return the moments as `Storage` says, computed in the narrow type over all rows and in float64 over some of them.

        The narrow type is precise enough for a direction. Over few rows, an interior point weights some rows up to 10¹⁵ times as
        much as others.
        """
        torch = torch_for()
        kind = self.narrow if i is None else torch.float64
        size = self.d + constant
        products = torch.zeros((size, size), dtype=torch.float64, device=self.X.device)
        sums = torch.zeros(size, dtype=torch.float64, device=self.X.device)
        for lo, hi in self._blocks(len(q)):
            which = slice(lo, hi) if i is None else i[lo:hi]
            x, weights = self.X[which].to(kind), q[lo:hi].to(kind)
            x = torch.cat((x, torch.ones_like(x[:, :1])), 1) if constant else x
            products += (x * weights[:, None]).T @ x
            sums += (weights * signs[which]) @ x
        return products, sums, q.sum()

    @_within_memory
    def solve(self, H: Any, b: Array) -> Array | None:
        torch = torch_for()
        L, failed = torch.linalg.cholesky_ex(H)
        x = torch.cholesky_solve(self.to_storage_f64(b)[:, None], L)[:, 0]
        return None if int(failed) or not self.is_finite(x) else self.to_host(x)

    @_within_memory
    def solver_for(self, H: Any) -> Callable[[Array], Array]:
        torch, H = torch_for(), self.to_storage_f64(H)
        scale = H.diagonal().clamp(min=1e-300).rsqrt()
        ridge, unit = 0.0, torch.eye(len(H), dtype=H.dtype, device=H.device)
        while True:
            L, failed = torch.linalg.cholesky_ex(H * scale * scale[:, None] + ridge * unit)
            if not int(failed):
                break
            ridge = max(4 * ridge, 1e-14 * len(H))
        inverse = torch.cholesky_inverse(L) * scale * scale[:, None]
        return lambda b: self.to_host(inverse @ self.to_storage_f64(b))

    def _picked(self, i: Any) -> Any:
        where = i if is_tensor(i) else torch_for().from_numpy(np.asarray(i, dtype=np.int64)).to(self.X.device)
        return within_device_memory(lambda: self.X[where], f"{len(i)} rows")

    # ---- reads for proofs --------------------------------------------------------------------------------------------

    def each_block(
        self, work: Any, over_rows: Any = (), shared: Any = (), rows: Array | None = None, *, step: int = 0, added: bool = False
    ) -> Iterator[Any]:
        """Yield the results as `Storage` says; selected rows are collected some at a time, not block by block."""
        count, size = self.n if rows is None else len(rows), step or self._size(PROOF_BLOCK)
        if not self.proves_on_device:  # blocks are on the host
            over_rows = tuple(map(host, over_rows))
        for lo in range(0, count, size):
            which: Any = slice(lo, min(lo + size, count))
            which = which if rows is None else rows[which]
            with ieee_floats(), np.errstate(over="ignore", invalid="ignore"):
                found = work(self._block(which, lo), *(values[which] for values in over_rows), *shared)
            yield found

    def _block(self, which: Any, first: int) -> DenseBlock:
        chosen = self.X[which] if isinstance(which, slice) else self._picked(which)
        return TensorBlock(chosen, first) if self.proves_on_device else DenseBlock(exact(chosen), first)

    def plain(self) -> Array:
        return exact(self.X).astype(np.float64, copy=False)

    def ieee(self) -> bool:
        return not self.X.is_cuda or device_is_ieee(self.X)

    def first_not_finite(self) -> tuple[int, int, float] | None:
        torch = torch_for()
        for lo, hi in self._blocks():
            finite = torch.isfinite(self.X[lo:hi])
            if not bool(finite.all()):
                row, column = (int(i) for i in torch.nonzero(~finite)[0])
                return row + lo, column, float(self.X[row + lo, column])
        return None

    # ---- how ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _kernels(self) -> tuple[Any, int, Any] | None:
        """The Triton kernels, the number of multiprocessors, and the plan of a pass; None if torch operations are used."""
        if not self._fused:
            return None
        try:
            from gordan.rows import triton_kernels as kernels
        except ImportError:
            raise MissingExtra("triton", "gpu", "a pass over rows on a GPU") from None
        if self.d > kernels.LONGEST_ROW or self.n >= 2**31:
            return None
        cut = kernels.plan(self.d, self.X.element_size(), self.sums == "float64")
        if not self.X.is_cuda:  # the interpreter runs programs one by one: two of them, so that there is something to merge
            return kernels, 2, cut._replace(programs=1)
        return kernels, torch_for().cuda.get_device_properties(self.X.device).multi_processor_count, cut

    def _run(
        self, v: Array, b: float, signs: Any, log_p0: Any | None, split: DeviceGroups | None, *, merged: bool = True
    ) -> tuple[Any, Any]:
        """Start the fused pass and return it, with its scores; wait before its sums are read (see `_wait`)."""
        assert self._kernels is not None
        kernels, programs, cut = self._kernels
        order, ends, count = (signs, signs, 1) if split is None else (split.order, split.ends, 2)
        # taken by one thread only; a pass that is not waited for is not put back
        run = self._passes.pop(count, None) or kernels.Pass(self.X, self.wide, self.narrow, count, programs, cut)
        run.packed[:-2], run.packed[-2] = self._unit(v)
        run.packed[-1] = b
        return run, run.start(signs, log_p0, order, ends, merged=merged)

    def _wait(self) -> None:
        """Wait for the kernels that have been started."""
        if self.X.is_cuda:
            torch_for().cuda.current_stream(self.X.device).synchronize()

    def _by_passes(self, V: Array, b: Array, signs: Any, log_p0: Any | None, groups: DeviceGroups | None) -> tuple[Sums, Any]:
        """Run the fused kernel for each v; return its sums, still without the scale, and the scores."""
        try:
            runs = [self._run(v, constant, signs, log_p0, groups) for v, constant in zip(V, b.tolist(), strict=True)]
        finally:
            self._wait()
        sums = Sums(np.array([run.tally for run, _ in runs]), np.array([run.combination for run, _ in runs]))
        self._passes[len(runs[0][0].combination)] = runs[0][0]
        return sums, runs[0][1][None] if len(runs) == 1 else torch_for().stack([scores for _, scores in runs])

    def _by_products(self, V: Array, b: Array, signs: Any, log_p0: Any | None, groups: DeviceGroups | None) -> tuple[Sums, Any]:
        """Return the same from torch operations.

        Scores and combinations of a block of rows are the products X Vᵀ and Q X with all weights Q: X is read twice, however many
        v there are.
        """
        torch = torch_for()
        k, place = len(V), self.X.device
        count = 1 if groups is None else 2
        units = [self._unit(v) for v in V]
        matrix = torch.from_numpy(np.stack([v for v, _ in units], axis=1)).to(place, self.wide)
        unit = torch.tensor([unit for _, unit in units], dtype=self.wide, device=place)
        constants = torch.from_numpy(np.asarray(b, dtype=np.float64)).to(place, self.wide)
        found = torch.zeros((k, count, HIGH + self.d), dtype=torch.float64, device=place)
        tally, acc = found[:, :, :HIGH], found[:, :, HIGH:]
        tally[:, :, PEAK], tally[:, :, LOW] = INITIAL_PEAK_FLOAT32, math.inf
        scores = torch.empty((k, self.n), dtype=self.wide, device=place)
        for lo, hi in self._blocks():
            x, y = self.X[lo:hi], signs[lo:hi]
            s = y * ((x.to(self.wide) @ matrix) * unit + constants).T
            scores[:, lo:hi] = s
            z = -s if log_p0 is None else log_p0[lo:hi] - s
            of_group = [None] if groups is None else [groups.groups[lo:hi] == g for g in (0, 1)]
            q = torch.stack([_weights(tally[:, g], acc[:, g], z, s, mine) for g, mine in enumerate(of_group)], 1)
            q *= y
            tally[:, :, SIGNED] += q.sum(-1)
            acc += (q.reshape(k * count, -1).to(self.narrow) @ x.to(self.narrow)).reshape(acc.shape)
        on_host = self.to_host(found)
        tallies = np.zeros((k, HIGH + 1, count))  # no highest score: one that is infinite shows in the total
        tallies[:, :HIGH] = on_host[:, :, :HIGH].transpose(0, 2, 1)
        return Sums(tallies, on_host[:, :, HIGH:]), scores

    def _unit(self, v: Array) -> tuple[Array, float]:
        """Return v divided by a power of two near its largest entry, and that power: v/R must not underflow for a huge R."""
        top = float(np.abs(v).max())
        exponent = min(math.frexp(top)[1], 1023) if 0 < top < math.inf else 0  # 2^1024 is beyond the floats
        if self.sums == "float32" and not -126 <= exponent <= 127:
            raise BeyondFloats(
                f"w has entries of size {top:.3g}, beyond float32 sums; divide X by a power of two so that entries are near 1"
            )
        return np.ldexp(v, -exponent), math.ldexp(1.0, exponent)

    def _blocks(self, n: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield the ranges of n rows (all if None) that torch operations process at a time."""
        n, step = self.n if n is None else n, self._size(BLOCK)
        for lo in range(0, n, step):
            yield lo, min(lo + step, n)

    def _size(self, entries: dict[str, int]) -> int:
        """Return the number of rows that have this many entries."""
        return max(1, entries["cuda" if self.X.is_cuda else "cpu"] // int(self.d))


def _weights(tally: Any, acc: Any, z: Any, s: Any, mine: Any | None) -> Any:
    """Return e^{z - peak} in float64 for k vectors v, to which the rows of z and s belong.

    Before that, the peaks in `tally` (k, 4) are raised and the sums rescaled. Rows of X that are not `mine` have weight zero.
    """
    torch = torch_for()
    z = torch.where(torch.isfinite(s), z.to(torch.float64), math.nan)  # an overflow must show in the total
    s = s.to(torch.float64)
    if mine is not None:
        z, s = torch.where(mine, z, -math.inf), torch.where(mine, s, math.inf)
    top = torch.fmax(tally[:, PEAK], z.nan_to_num(-math.inf, math.inf, -math.inf).amax(1))
    shrink = torch.exp(tally[:, PEAK] - top)
    weight = torch.exp(z - top[:, None])
    acc *= shrink[:, None]
    tally[:, PEAK] = top
    tally[:, TOTAL] = tally[:, TOTAL] * shrink + weight.sum(1)
    tally[:, SIGNED] *= shrink
    tally[:, LOW] = torch.fmin(tally[:, LOW], s.amin(1))
    return weight
