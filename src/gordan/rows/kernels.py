"""The compiled loops over stored rows. Imported when a kernel is first needed, because numba takes 0.5 s to import.

Every kernel works on the rows lo..hi-1 and releases the GIL, so that chunks run on the threads of `rows.threads`. Sums are
float64 whatever the storage: with weights α_t = t a float32 sum stops adding exactly near t = 5,800. Reassociation
is allowed (it is what lets the loops use vector units); NaN and infinity keep their meaning, so bad data shows in the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# The peak is kept this far (in nats) above the z = log p_0 - score that set it, and is only lifted again when a row comes within
# half of that: the accumulated combination is then rescaled a handful of times instead of once per record low, and weights stay
# below e^-12, so that sums of very large rows do not overflow.
HEADROOM = 24.0

# Rows of the `tally` of a softmin pass, one column per group: running peak, Σ e^{z - peak}, the same times y, lowest and highest
# score. The highest is there to show an overflow, whose weight of zero would hide it.
PEAK, TOTAL, SIGNED, LOW, HIGH = 0, 1, 2, 3, 4
LEAST = -np.finfo(np.float64).max


def compiled(function: Kernel, *, reassociate: bool = True) -> Kernel:
    """`function` compiled by numba, cached on disk where some folder can be written."""
    options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz"} if reassociate else {"contract"}}
    try:
        kernel: Kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no cache folder can be written: compile anew in every process
        kernel = numba.njit(**options)(function)
    return kernel


# Sparse sums stay in order: a vectorised one uses gather instructions, measured four times slower than scalar loads.
compiled_in_order = partial(compiled, reassociate=False)


@compiled
def _begin(tally, acc):
    """Nothing added yet. The peak starts at the least float, not -inf: a row of weight zero must not make inf - inf."""
    tally[:, PEAK] = LEAST
    tally[:, TOTAL] = 0.0
    tally[:, SIGNED] = 0.0
    tally[:, LOW] = math.inf
    tally[:, HIGH] = LEAST
    acc[:] = 0.0


@compiled
def _weigh(scores, log_p0, groups, lo, hi, tally, acc, weight):
    """weight_i = exp(log p_0i - s_i - peak) for one block, lifting the peak of its group when a row outgrows it."""
    peak, total, signed, low, high = tally[PEAK], tally[TOTAL], tally[SIGNED], tally[LOW], tally[HIGH]
    uniform = log_p0.shape[0] == 1
    for i in range(lo, hi):
        g = groups[i]
        low[g] = min(low[g], scores[i])
        high[g] = max(high[g], scores[i])
        z = (log_p0[0] if uniform else log_p0[i]) - scores[i]
        if z > peak[g] - 0.5 * HEADROOM:
            shrink = math.exp(peak[g] - (z + HEADROOM))
            total[g] *= shrink
            signed[g] *= shrink
            for j in range(acc.shape[1]):
                acc[g, j] *= shrink
            for k in range(lo, i):
                if groups[k] == g:
                    weight[k - lo] *= shrink
            peak[g] = z + HEADROOM
        weight[i - lo] = math.exp(z - peak[g])
        total[g] += weight[i - lo]


# ---- dense rows -----------------------------------------------------------------------------------------------------

# Columns of four rows that `_four_rows` handles in one turn, as STRIP // LANES vectors of LANES float64 each.
STRIP, LANES = 16, 4
LINE = 64  # bytes that come from memory together


@intrinsic
def _four_rows(typing_context, X, v, i, k, q, target, ahead):
    """The products x·v of rows i..i+3 over whole strips of columns, while target += Σ q_r x_{k_r} for the rows of the tuple k.

    The rows i.. come from memory and the rows k from the cache: doing both in one loop lets the adding hide in the waiting.
    Vector code by hand, because the entries `ahead` of those being read must be asked for a line at a time between the
    arithmetic, and a loop with a prefetch in it is not vectorised by the compiler. On float32 a pass takes a third less time so.
    """
    signature = types.UniTuple(types.float64, 4)(X, v, types.int64, k, q, target, types.int64)
    return signature, _four_rows_code


def _four_rows_code(context, builder, signature, args):
    """LLVM code of `_four_rows`, for whatever vector registers the machine has."""
    double, byte, int32, int64 = ir.DoubleType(), ir.IntType(8), ir.IntType(32), ir.IntType(64)
    vector = ir.VectorType(double, LANES)
    narrow = signature.args[0].dtype == types.float32
    entry, size = (ir.FloatType(), 4) if narrow else (double, 8)
    X, v, target = (context.make_array(signature.args[a])(context, builder, args[a]) for a in (0, 1, 5))
    d = builder.extract_value(X.shape, 1)
    k = cgutils.unpack_tuple(builder, args[3])
    q = cgutils.unpack_tuple(builder, args[4])

    def row(i):
        return builder.gep(X.data, [builder.mul(i, d)])

    def at(base, j, kind):
        return builder.bitcast(builder.gep(base, [j]), kind.as_pointer())

    def load(base, j, kind, align):
        loaded = builder.load(at(base, j, ir.VectorType(kind, LANES)))
        loaded.align = align
        return loaded if kind is double else builder.fpext(loaded, vector)

    def all_lanes(x):
        undefined = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(undefined, x, int32(0))
        return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(int32, LANES), [0] * LANES))

    def plus_product(total, x, y):
        return builder.fadd(builder.fmul(x, y, flags=("contract",)), total, flags=("contract",))

    fetch_type = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), int32, int32, int32])
    fetch = cgutils.get_or_insert_function(builder.module, fetch_type, "llvm.prefetch.p0")
    new = [row(builder.add(args[2], int64(r))) for r in range(4)]
    far = [builder.gep(base, [args[6]]) for base in new]  # perhaps beyond the array: asking for it is harmless
    old = [row(i) for i in k]
    q = [all_lanes(x) for x in q]
    sums = [cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * LANES)) for _ in new]
    whole = builder.sub(d, builder.urem(d, int64(STRIP)))
    with cgutils.for_range_slice(builder, int64(0), whole, int64(STRIP), int64) as (strip, _):
        for offset in range(0, STRIP, LINE // size):
            for base in far:
                builder.call(fetch, [at(base, builder.add(strip, int64(offset)), byte), int32(0), int32(3), int32(1)])
        for offset in range(0, STRIP, LANES):
            j = builder.add(strip, int64(offset))
            part = load(v.data, j, double, 8)
            for base, total in zip(new, sums, strict=True):
                builder.store(plus_product(builder.load(total), load(base, j, entry, size), part), total)
            if old:
                part = load(target.data, j, double, 8)
                for base, weight in zip(old, q, strict=True):
                    part = plus_product(part, weight, load(base, j, entry, size))
                builder.store(part, at(target.data, j, vector)).align = 8

    def sum_of_lanes(x):
        lanes = [builder.extract_element(x, int32(lane)) for lane in range(LANES)]
        while len(lanes) > 1:
            lanes = [builder.fadd(one, other) for one, other in zip(lanes[::2], lanes[1::2], strict=True)]
        return lanes[0]

    return cgutils.pack_array(builder, [sum_of_lanes(builder.load(total)) for total in sums])


@compiled
def _ahead(X):
    """Entries ahead to ask for: some rows, 8 KiB or more of them; within the row where four rows fill more than 64 KiB."""
    d = X.shape[1]
    row = max(1, d * X.itemsize)
    return d * max(4, 8192 // row) if row <= 16384 else 4096 // X.itemsize


@compiled
def dense_scores(X, w, b, signs, lo, hi, scores):
    """scores_i = y_i (x_i·w + b). Four rows at a time, so that w is loaded once for four."""
    d = X.shape[1]
    ahead = _ahead(X)
    i = lo
    while i + 4 <= hi:
        s0, s1, s2, s3 = _four_rows(X, w, i, (), (), w, ahead)
        for j in range(np.uint64(d - d % STRIP), np.uint64(d)):  # unsigned: no index counted from the end
            s0 += X[i, j] * w[j]
            s1 += X[i + 1, j] * w[j]
            s2 += X[i + 2, j] * w[j]
            s3 += X[i + 3, j] * w[j]
        scores[i] = signs[i] * (s0 + b)
        scores[i + 1] = signs[i + 1] * (s1 + b)
        scores[i + 2] = signs[i + 2] * (s2 + b)
        scores[i + 3] = signs[i + 3] * (s3 + b)
        i += 4
    while i < hi:
        s0 = 0.0
        for j in range(d):
            s0 += X[i, j] * w[j]
        scores[i] = signs[i] * (s0 + b)
        i += 1


@compiled
def _dense_add(X, q, chosen, m, offset, target):
    """target += Σ_k q_k x_k over the m chosen rows, four at a time, so that the target is loaded once for four."""
    d = X.shape[1]
    k = 0
    while k + 4 <= m:
        i0, i1, i2, i3 = chosen[k], chosen[k + 1], chosen[k + 2], chosen[k + 3]
        q0, q1, q2, q3 = q[i0 - offset], q[i1 - offset], q[i2 - offset], q[i3 - offset]
        for j in range(d):
            target[j] += q0 * X[i0, j] + q1 * X[i1, j] + q2 * X[i2, j] + q3 * X[i3, j]
        k += 4
    while k < m:
        i0 = chosen[k]
        q0 = q[i0 - offset]
        for j in range(d):
            target[j] += q0 * X[i0, j]
        k += 1


@compiled
def dense_combine(X, q, lo, hi, acc):
    """acc += Σ_i q_i x_i. Rows of weight zero are skipped unread."""
    chosen = np.empty(256, np.int64)
    m = 0
    for i in range(lo, hi):
        if q[i] != 0.0:
            chosen[m] = i
            m += 1
        if m == 256 or i == hi - 1:
            _dense_add(X, q, chosen, m, 0, acc)
            m = 0


@compiled
def _dense_block(X, v, b, signs, scale, log_p0, groups, before, start, stop, scores, tally, acc, weight, chosen, ends):
    """Scores of the rows start..stop-1 while the chosen rows of the block at `before` are added, then their weights."""
    d = X.shape[1]
    ahead = _ahead(X)
    i = start
    for g in range(acc.shape[0]):
        target = acc[g]
        m = ends[g]
        while i + 4 <= stop and m + 4 <= ends[g + 1]:
            k0, k1, k2, k3 = chosen[m], chosen[m + 1], chosen[m + 2], chosen[m + 3]
            q0, q1, q2, q3 = weight[k0 - before], weight[k1 - before], weight[k2 - before], weight[k3 - before]
            s0, s1, s2, s3 = _four_rows(X, v, i, (k0, k1, k2, k3), (q0, q1, q2, q3), target, ahead)
            for j in range(np.uint64(d - d % STRIP), np.uint64(d)):  # unsigned: no index counted from the end
                s0 += X[i, j] * v[j]
                s1 += X[i + 1, j] * v[j]
                s2 += X[i + 2, j] * v[j]
                s3 += X[i + 3, j] * v[j]
                target[j] += q0 * X[k0, j] + q1 * X[k1, j] + q2 * X[k2, j] + q3 * X[k3, j]
            scores[i] = signs[i] * (s0 + b)
            scores[i + 1] = signs[i + 1] * (s1 + b)
            scores[i + 2] = signs[i + 2] * (s2 + b)
            scores[i + 3] = signs[i + 3] * (s3 + b)
            i += 4
            m += 4
        _dense_add(X, weight, chosen[m:], ends[g + 1] - m, before, target)
    if start >= stop:
        return
    dense_scores(X, v, b, signs, i, stop, scores)
    _weigh(scores, log_p0, groups, start, stop, tally, acc, weight)
    m = 0
    for g in range(acc.shape[0]):
        for i in range(start, stop):
            if groups[i] == g and weight[i - start] != 0.0:  # not > 0: NaN must reach the sum
                weight[i - start] *= signs[i] * scale  # the scale first: it undoes the size of the rows
                tally[SIGNED, g] += weight[i - start]
                chosen[m] = i
                m += 1
        ends[g + 1] = m


@compiled
def dense_softmin(X, v, b, signs, scale, log_p0, groups, lo, hi, scores, tally, acc):
    """One read of the rows, block by block, for all the v in the stack.

    A block is at most 256 KiB, so that it is still in the second-level cache when it is added, and when the next v wants it.
    """
    block = max(4, min(128, 262144 // max(1, X.shape[1] * X.itemsize) // 4 * 4))
    count = v.shape[0]
    _begin(tally, acc)
    weight = np.empty((count, block))
    chosen = np.empty((count, block), np.int64)  # the rows of the block before, by group; rows of weight zero are left out
    ends = np.zeros((count, acc.shape[1] + 1), np.int64)
    before = lo
    for start in range(lo, hi + block, block):
        stop = min(start + block, hi)
        for h in range(count):
            _dense_block(
                X, v[h], b[h], signs, scale, log_p0, groups, before, start, stop,
                scores[h], tally[h], acc[h], weight[h], chosen[h], ends[h],
            )  # fmt: skip
        before = start


@compiled
def dense_norms(X, p, lo, hi, norms):
    """‖x_i‖_p, scaled by the largest entry so that neither squares nor powers overflow; NaN where an entry is not finite."""
    for i in range(lo, hi):
        top = 0.0
        for j in range(X.shape[1]):
            top = max(top, abs(X[i, j]))
            if not math.isfinite(X[i, j]):
                top = math.nan
                break
        norms[i] = top
        if top > 0.0 and p < math.inf:
            s = 0.0
            for j in range(X.shape[1]):
                s += (abs(X[i, j]) / top) ** 2 if p == 2.0 else (abs(X[i, j]) / top) ** p
            norms[i] = top * s ** (1.0 / p)


# ---- sparse rows (CSR) ----------------------------------------------------------------------------------------------


@compiled_in_order
def sparse_scores(data, indices, indptr, w, b, signs, lo, hi, scores):
    """scores_i = y_i (x_i·w + b). Four sums, so that an addition need not wait for the one before it."""
    for i in range(lo, hi):
        s0 = s1 = s2 = s3 = 0.0
        k, end = indptr[i], indptr[i + 1]
        while k + 4 <= end:
            s0 += data[k] * w[indices[k]]
            s1 += data[k + 1] * w[indices[k + 1]]
            s2 += data[k + 2] * w[indices[k + 2]]
            s3 += data[k + 3] * w[indices[k + 3]]
            k += 4
        while k < end:
            s0 += data[k] * w[indices[k]]
            k += 1
        scores[i] = signs[i] * ((s0 + s1) + (s2 + s3) + b)


@compiled_in_order
def sparse_combine(data, indices, indptr, q, lo, hi, acc):
    """acc += Σ_i q_i x_i."""
    for i in range(lo, hi):
        if q[i] != 0.0:
            for k in range(indptr[i], indptr[i + 1]):
                acc[indices[k]] += q[i] * data[k]


@compiled_in_order
def sparse_softmin(data, indices, indptr, v, b, signs, scale, log_p0, groups, lo, hi, scores, tally, acc):
    """As `dense_softmin`; a block is 128 rows."""
    _begin(tally, acc)
    weight = np.empty(128)
    for start in range(lo, hi, 128):
        stop = min(start + 128, hi)
        for h in range(v.shape[0]):
            sparse_scores(data, indices, indptr, v[h], b[h], signs, start, stop, scores[h])
            _weigh(scores[h], log_p0, groups, start, stop, tally[h], acc[h], weight)
            for i in range(start, stop):
                if weight[i - start] != 0.0:
                    g = groups[i]
                    q = weight[i - start] * (signs[i] * scale)
                    tally[h, SIGNED, g] += q
                    for k in range(indptr[i], indptr[i + 1]):
                        acc[h, g, indices[k]] += q * data[k]


@compiled_in_order
def sparse_norms(data, indices, indptr, p, lo, hi, norms):
    """As `dense_norms`."""
    for i in range(lo, hi):
        top = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            top = max(top, abs(data[k]))
            if not math.isfinite(data[k]):
                top = math.nan
                break
        norms[i] = top
        if top > 0.0 and p < math.inf:
            s = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                s += (abs(data[k]) / top) ** 2 if p == 2.0 else (abs(data[k]) / top) ** p
            norms[i] = top * s ** (1.0 / p)
