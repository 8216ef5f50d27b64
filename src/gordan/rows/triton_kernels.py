"""The loops over rows on a GPU, in Triton, imported when rows are on a CUDA device; Triton's interpreter can run them elsewhere.

A program processes blocks of ROWS whole rows, so that a row is still in registers when its weight is known: X is read once. Each
of the ROWS positions in a block is a separate streaming softmax (running peak, total and combination); a row stays with the
threads that read it, and they exchange nothing but the score until the program ends. `merge` then adds the parts in a fixed
order: there are no atomics, so a pass is reproducible bit for bit.

A row is read in CHUNKS pieces of COLUMNS entries. With narrow pieces, few threads share a row, so that few of them compute the
same score and exponential, and few are idle if the length of a row is not a power of two. The pieces are kept in tuples, because
Triton has no arrays of tiles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from gordan.rows.storage import INITIAL_PEAK_FLOAT32

# The peak before any row has been seen.
INITIAL_PEAK_FLOAT32 = tl.constexpr(INITIAL_PEAK_FLOAT32)


class Plan(NamedTuple):
    """How a pass is divided: rows and columns of a tile, pieces of a row, warps of a program, programs per multiprocessor."""

    rows: int
    columns: int
    chunks: int
    warps: int
    programs: int


# Longer rows do not fit into the registers of one program.
LONGEST_ROW = 16384


def plan(d: int, bytes_an_entry: int, wide: bool) -> Plan:
    """Return the shapes that were fastest on an H200 (`benchmarks/gpu.py --sweep`); `wide` means that scores are float64.

    Small accumulators leave registers for more warps; with large ones, fewer warps with more rows each hide latency better.
    """
    width = max(16, triton.next_power_of_2(d))
    a_thread = 64 if bytes_an_entry == 4 and wide and d % 16 == 0 else 32  # 64 entries and a mask for each are too much
    warps, most = {(4, True): (2, 16), (4, False): (4, 32)}.get((bytes_an_entry, wide), (1, 16))
    while width > 32 * a_thread * warps or (warps < 4 and width > 1024):
        warps *= 2
    columns = width // 4 if width <= 512 else width // 8 if d < width and a_thread == 64 else width
    chunks = -(-d // columns)
    rows = 32 * a_thread * warps // (columns * chunks)
    return Plan(max(1, min(64, 1 << max(0, rows.bit_length() - 1))), columns, chunks, warps, max(1, most // warps))


@triton.jit
def _exp(z, NARROW: tl.constexpr):
    """Return e^z, in float32 if NARROW: the difference z of two scores was already computed in the wider type."""
    return tl.exp(z.to(tl.float32)) if NARROW else tl.exp(z)


@triton.jit
def _read(X, stride, row, here, d, COLUMNS: tl.constexpr, CHUNKS: tl.constexpr, EVEN: tl.constexpr):
    """Load the rows of one block in pieces, zero beyond the last row and column."""
    x = ()
    for c in tl.static_range(CHUNKS):
        j = c * COLUMNS + tl.arange(0, COLUMNS)
        mask = here[:, None] if EVEN else here[:, None] & (j < d)[None, :]
        x = x + (tl.load(X + row.to(tl.int64)[:, None] * stride + j[None, :], mask=mask, other=0.0),)
    return x


@triton.jit(do_not_specialize=["n", "programs"])
def softmin(
    X, stride, v, signs, log_p0, order, ends, scores, tally, acc, n, d, programs,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNKS: tl.constexpr, GROUPS: tl.constexpr, UNIFORM: tl.constexpr,
    EVEN: tl.constexpr, NARROW: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Set scores_i = y_i (unit · x_i·v + b), and the `tally` and `acc` of each program.

    With z = log p_0 - scores, these are the peak, Σ e^{z_i - peak}, Σ y_i e^{z_i - peak} and the lowest score, and
    Σ e^{z_i - peak} y_i x_i. `v` holds d entries, then unit and b; scores are summed in its type, combinations in that of `acc`.
    With two GROUPS, every other program belongs to the second: group g has the rows order[ends[g]:ends[g+1]], and no program
    sees rows of both.
    """
    wide = v.dtype.element_ty
    narrow = acc.dtype.element_ty
    g, program = tl.program_id(0) % GROUPS, tl.program_id(0) // GROUPS
    unit, b = tl.load(v + d), tl.load(v + d + 1)
    w = ()
    sums = ()
    for c in tl.static_range(CHUNKS):
        j = c * COLUMNS + tl.arange(0, COLUMNS)
        w = w + (tl.load(v + j, mask=j < d, other=0.0),)
        sums = sums + (tl.zeros([ROWS, COLUMNS], narrow),)
    peak, low = tl.full([ROWS], INITIAL_PEAK_FLOAT32, wide), tl.full([ROWS], float("inf"), wide)
    total, signed = tl.zeros([ROWS], narrow), tl.zeros([ROWS], narrow)
    first, last = 0, n
    if GROUPS > 1:
        first, last = tl.load(ends + g).to(tl.int32), tl.load(ends + g + 1).to(tl.int32)
    for block in tl.range(program, tl.cdiv(last - first, ROWS), programs, num_stages=STAGES):
        row = first + block * ROWS + tl.arange(0, ROWS)
        here = row < last
        if GROUPS > 1:
            row = tl.load(order + row, mask=here, other=0)
        x = _read(X, stride, row, here, d, COLUMNS, CHUNKS, EVEN)
        product = x[0].to(wide) * w[0][None, :]
        for c in tl.static_range(1, CHUNKS):
            product += x[c].to(wide) * w[c][None, :]
        y = tl.load(signs + row, mask=here, other=0)
        s = y.to(wide) * (tl.sum(product, 1) * unit + b)
        tl.store(scores + row, s, mask=here)
        z = -s
        if not UNIFORM:
            z += tl.load(log_p0 + row, mask=here, other=0.0).to(wide)
        # an overflow must show in the total: a score of +inf would have weight zero and go unnoticed
        z = tl.where(here, tl.where(tl.abs(s) < float("inf"), z, float("nan")), float("-inf"))
        low = tl.minimum(low, tl.where(here, s, float("inf")))
        if tl.max((z > peak).to(tl.int32), 0) > 0:  # rare, after the first few blocks
            top = tl.maximum(peak, z)
            shrink = _exp(peak - top, NARROW).to(narrow)
            peak, total, signed = top, total * shrink, signed * shrink
            shrunk = ()
            for c in tl.static_range(CHUNKS):
                shrunk = shrunk + (sums[c] * shrink[:, None],)
            sums = shrunk
        weight = _exp(z - peak, NARROW).to(narrow)
        q = weight * y.to(narrow)
        total, signed = total + weight, signed + q
        added = ()
        for c in tl.static_range(CHUNKS):
            added = added + (sums[c] + q[:, None] * x[c].to(narrow),)
        sums = added
    top = tl.max(peak, 0)
    shrink = _exp(peak - top, NARROW).to(narrow)
    part, parts = g * programs + program, GROUPS * programs
    tl.store(tally + part, top)
    tl.store(tally + parts + part, tl.sum(total * shrink, 0).to(wide))
    tl.store(tally + 2 * parts + part, tl.sum(signed * shrink, 0).to(wide))
    tl.store(tally + 3 * parts + part, tl.min(low, 0))
    for c in tl.static_range(CHUNKS):
        j = c * COLUMNS + tl.arange(0, COLUMNS)
        tl.store(acc + part.to(tl.int64) * d + j, tl.sum(sums[c] * shrink[:, None], 0), mask=j < d)


@triton.jit(do_not_specialize=["n", "programs"])
def combine(
    X, stride, q, acc, n, d, programs,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNKS: tl.constexpr, EVEN: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Compute Σ q_i x_i per program, in the type of `acc`."""
    narrow = acc.dtype.element_ty
    sums = ()
    for _ in tl.static_range(CHUNKS):
        sums = sums + (tl.zeros([ROWS, COLUMNS], narrow),)
    for block in tl.range(tl.program_id(0), tl.cdiv(n, ROWS), programs, num_stages=STAGES):
        row = block * ROWS + tl.arange(0, ROWS)
        here = row < n
        weight = tl.load(q + row, mask=here, other=0.0).to(narrow)
        x = _read(X, stride, row, here, d, COLUMNS, CHUNKS, EVEN)
        added = ()
        for c in tl.static_range(CHUNKS):
            added = added + (sums[c] + weight[:, None] * x[c].to(narrow),)
        sums = added
    for c in tl.static_range(CHUNKS):
        j = c * COLUMNS + tl.arange(0, COLUMNS)
        tl.store(acc + tl.program_id(0).to(tl.int64) * d + j, tl.sum(sums[c], 0), mask=j < d)


@triton.jit
def merge(
    tally, acc, out, parts, d, EVERY: tl.constexpr, PARTS: tl.constexpr, COLUMNS: tl.constexpr, WEIGHED: tl.constexpr
):  # fmt: skip
    """Add the parts of one group in order, in float64, into `out`.

    It holds peak, total, signed and low of all groups, a place for each group that is left as it is, and the combinations. If not
    WEIGHED, there is no tally and every part counts once. EVERY is at least the number of parts, because the tally is read at
    once; the combinations are read PARTS at a time.
    """
    g, groups = tl.program_id(1), tl.num_programs(1)
    tally += g * parts
    top = tl.full([], INITIAL_PEAK_FLOAT32, tl.float64)
    if WEIGHED:
        part = tl.arange(0, EVERY)
        peak = tl.load(tally + part, mask=part < parts, other=INITIAL_PEAK_FLOAT32).to(tl.float64)
        top = tl.max(peak, 0)
        if tl.program_id(0) == 0:
            factor = tl.exp(peak - top)
            row = groups * parts
            total = tl.load(tally + row + part, mask=part < parts, other=0.0).to(tl.float64)
            signed = tl.load(tally + 2 * row + part, mask=part < parts, other=0.0).to(tl.float64)
            low = tl.load(tally + 3 * row + part, mask=part < parts, other=float("inf")).to(tl.float64)
            tl.store(out + g, top)
            tl.store(out + groups + g, tl.sum(factor * total, 0))
            tl.store(out + 2 * groups + g, tl.sum(factor * signed, 0))
            tl.store(out + 3 * groups + g, tl.min(low, 0))
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros([PARTS, COLUMNS], tl.float64)
    for start in range(0, parts, PARTS):
        i = start + tl.arange(0, PARTS)
        shrink = tl.full([PARTS], 1.0, tl.float64)
        if WEIGHED:
            shrink = tl.exp(tl.load(tally + i, mask=i < parts, other=INITIAL_PEAK_FLOAT32).to(tl.float64) - top)
        where = acc + (g * parts + i).to(tl.int64)[:, None] * d + j[None, :]
        tile = tl.load(where, mask=(i < parts)[:, None] & (j < d)[None, :], other=0.0).to(tl.float64)
        sums += tile * shrink[:, None]
    tl.store(out + 5 * groups + g * d + j, tl.sum(sums, 0), mask=j < d)


class Pass:
    """The fused pass over a tensor X: its buffers and compiled kernels, to be used again once its sums have been read.

    What Python does before the kernel starts is time in which the device is idle, so that as little as possible is left to do.
    """

    def __init__(self, X: Any, wide: Any, narrow: Any, groups: int, programs: int, cut: Plan) -> None:
        self._X, self._groups, self._cut = X, groups, cut
        d, self._parts = X.shape[1], programs * cut.programs
        self._packed = torch.empty(d + 2, dtype=wide, pin_memory=X.is_cuda)
        self._there = X.new_empty(d + 2, dtype=wide)
        self._tally = X.new_empty((4, groups, self._parts), dtype=wide)
        self._acc = X.new_empty((groups, self._parts, d), dtype=narrow)
        self._sums = _summands(groups, d, X.is_cuda)
        self._known: dict[Any, Any] = {}
        # d entries of v, then unit and b, to be written before the pass starts
        self.packed = self._packed.numpy()
        # read them after the stream has been waited for
        self.tally = self._sums[: 5 * groups].view(5, groups).numpy()
        self.combination = self._sums[5 * groups :].view(groups, d).numpy()

    def start(self, signs: Any, log_p0: Any | None, order: Any, ends: Any, *, merged: bool) -> Any:
        """Start the pass and return its scores, in the type of v; its sums are computed only if `merged`."""
        X, cut, there = self._X, self._cut, self._there
        there.copy_(self._packed, non_blocking=True)
        (n, d), start = X.shape, signs if log_p0 is None else log_p0
        scores = X.new_empty(n, dtype=there.dtype)
        arguments = X, X.stride(0), there, signs, start, order, ends, scores, self._tally, self._acc, n, d, self._parts
        constants = {
            "ROWS": cut.rows, "COLUMNS": cut.columns, "CHUNKS": cut.chunks, "GROUPS": self._groups, "UNIFORM": log_p0 is None,
            "EVEN": cut.columns * cut.chunks == d, "NARROW": X.element_size() < 8, "STAGES": 3,
        }  # fmt: skip
        # the other tensors are always of the same kinds
        kinds = log_p0 is None, signs.dtype, signs.data_ptr() % 16, start.dtype, start.data_ptr() % 16
        known = self._known.get(kinds)
        if known is None:
            self._known[kinds] = _start(softmin, (self._groups * self._parts, 1, 1), cut.warps, arguments, constants)
        else:
            known(*arguments, *constants.values())
        if merged:
            _start_merge(self._tally, self._acc, self._sums)
        return scores


def run_combine(X: Any, q: Any, narrow: Any, programs: int, cut: Plan) -> Any:
    """Start the sum Xᵀq and return it, in float64 and in host memory (see `_summands`)."""
    n, d = X.shape
    programs *= cut.programs
    acc, sums = X.new_empty((1, programs, d), dtype=narrow), _summands(1, d, X.is_cuda)
    constants = {
        "ROWS": cut.rows,
        "COLUMNS": cut.columns,
        "CHUNKS": cut.chunks,
        "EVEN": cut.columns * cut.chunks == d,
        "STAGES": 3,
    }
    _start(combine, (programs, 1, 1), cut.warps, (X, X.stride(0), q, acc, n, d, programs), constants)
    _start_merge(None, acc, sums)
    return sums[5:]


def _summands(groups: int, d: int, locked: bool) -> Any:
    """Return zeros for the sums of `merge`, in page-locked memory of the host.

    The kernel writes them there itself, since a copy would take 0.07 ms more. They are not there, and their memory must not be
    released, before the stream has been waited for.
    """
    return torch.zeros(groups * (5 + d), dtype=torch.float64, pin_memory=locked)


def _start_merge(tally: Any | None, acc: Any, out: Any) -> None:
    """Start `merge`."""
    groups, parts, d = acc.shape
    # triton.cdiv and triton.next_power_of_2 take a hundredth of a millisecond each; tiles of 128 × 16 take 1.5 times as long
    constants = {"EVERY": 1 << (parts - 1).bit_length(), "PARTS": 512, "COLUMNS": 8, "WEIGHED": tally is not None}
    _start(merge, (-(-d // 8), groups, 1), 8, (acc if tally is None else tally, acc, out, parts, d), constants)


# Compiled kernels by their grid and the kinds of their arguments. Before Triton 3.3 they took other arguments than functions do.
_compiled: dict[Any, Any] = {}
DIRECTLY = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 3)


def _start(
    kernel: Any, grid: tuple[int, int, int], warps: int, arguments: tuple[Any, ...], constants: dict[str, Any]
) -> Any | None:
    """Start a kernel, and return what starts it again with arguments of the same kinds, if there is such a function.

    Arguments and constants are in the order of its parameters. Triton inspects every argument at each call, which takes up to
    0.2 ms of Python; a kernel that was compiled for arguments of the same kinds is started directly instead. The kind of a tensor
    is its type and its alignment to 16 bytes; the kind of an integer is whether it is 1, a multiple of 16, or beyond 32 bits.
    """
    kinds = [(x.dtype, x.data_ptr() % 16) if isinstance(x, torch.Tensor) else (x == 1, x % 16 == 0, x >> 31) for x in arguments]
    key = kernel.fn.__name__, arguments[0].device, grid, warps, *constants.values(), *kinds
    known = _compiled.get(key)
    if known is not None:
        known(*arguments, *constants.values())
        return known
    made = kernel[grid](*arguments, **constants, num_warps=warps, enable_fp_fusion=True)
    if DIRECTLY and made is not None:  # the interpreter compiles nothing
        _compiled[key] = made[grid]
    return _compiled.get(key)
