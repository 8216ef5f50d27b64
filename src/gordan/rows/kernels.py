"""The compiled loops over stored rows, imported when a kernel is first needed because numba takes 0.5 s to import.

Every kernel works on the rows lo..hi-1 and releases the GIL, so that chunks run on the threads of `rows.threads`. Sums are
float64 whatever the storage: with weights α_t = t, a float32 sum stops adding exactly near t = 5,800. Reassociation is
allowed, because it lets the loops use vector units; NaN and infinity keep their meaning, so bad data shows in the result.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable

from gordan.arrays import LN2_HIGH, LN2_LOW, MAX_SQUARE, MIN_SQUARE
from gordan.compiling import compiled, compiled_in_order
from gordan.rows.storage import CACHE_LINE_BYTES, HIGH, LOW, PEAK, SIGNED, TOTAL

# The peak is kept this far (in nats) above the z = log p_0 - score that set it, and is raised again only when a row comes within
# half of that: the accumulated combination is then rescaled a handful of times instead of once per record low, and weights stay
# below e^-12, so that sums of very large rows do not overflow.
HEADROOM = 24.0

# The initial peak, finite so that a row of weight zero does not make inf - inf.
INITIAL_PEAK = -np.finfo(np.float64).max

# For `_exponentials`: 1/ln 2, the number whose addition rounds to an integer, and 1/k!.
LOG2_E = 1 / math.log(2)
ROUNDER = 1.5 * 2.0**52
TAYLOR = tuple(1 / math.factorial(k) for k in range(13, -1, -1))


# Sparse sums keep their order (`compiled_in_order`): vectorised ones use gather instructions, which were measured to be four
# times slower. Minima and maxima are vectorised only where NaN need not be considered.
compiled_without_nan = partial(compiled, fastmath=["nnan", "nsz", "reassoc"])


@compiled
def _begin(tally, acc):
    """Initialize the sums of a pass."""
    tally[:, PEAK] = INITIAL_PEAK
    tally[:, TOTAL] = 0.0
    tally[:, SIGNED] = 0.0
    tally[:, LOW] = math.inf
    tally[:, HIGH] = INITIAL_PEAK
    acc[:] = 0.0


@compiled_in_order
def _to_the_exponent(power, shifted):
    """Return power · 2^m for the m in the last bits of `shifted`."""
    bits = np.float64(power).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
    return np.int64(bits).view(np.float64)


@compiled_in_order
def _exponentials(x):
    """Replace x_k by e^{x_k} for x_k ≤ 0, correct to the last digit or two, in vector registers; NaN stays NaN.

    e^x = 2^m e^r with r within ±½ log 2: adding 1.5·2^52 rounds x/log 2 to the integer m and leaves m in the last bits of the
    sum, from where a shift brings it to the exponent. e^r is its Taylor polynomial of degree 13, whose remainder is below 1e-17.
    Below e^-700, where 2^m may be too small for a float, it is the square of e^{x/2}.
    """
    for k in range(x.shape[0]):
        near = x[k] > -700.0
        y = x[k] if near else 0.5 * x[k]
        shifted = y * LOG2_E + ROUNDER
        m = shifted - ROUNDER
        r = (y - m * LN2_HIGH) - m * LN2_LOW
        power = TAYLOR[0]
        for c in range(1, len(TAYLOR)):
            power = power * r + TAYLOR[c]
        power = _to_the_exponent(power, shifted) if y > -700.0 else (0.0 if y <= -700.0 else math.nan)
        x[k] = power if near else power * power


@compiled_without_nan
def _extremes(scores, z, groups, g):
    """Return the lowest and highest score of group g and its highest z, which are meaningless if a score is NaN."""
    low, high, top = math.inf, INITIAL_PEAK, INITIAL_PEAK
    for k in range(len(z)):
        inside = groups[k] == g
        low = min(low, scores[k] if inside else math.inf)
        high = max(high, scores[k] if inside else INITIAL_PEAK)
        top = max(top, z[k] if inside else INITIAL_PEAK)
    return low, high, top


@compiled
def _weigh(scores, signs, scale, log_p0, groups, lo, hi, tally, acc, weight):
    """Set weight_i = y_i scale exp(log p_0i - s_i - peak) for one block, after raising the peaks if the block exceeds them."""
    scores, signs, groups, weight = scores[lo:hi], signs[lo:hi], groups[lo:hi], weight[: hi - lo]
    if log_p0.shape[0] == 1:
        for k in range(len(weight)):
            weight[k] = log_p0[0] - scores[k]
    else:
        log_p0 = log_p0[lo:hi]
        for k in range(len(weight)):
            weight[k] = log_p0[k] - scores[k]
    peak, last = tally[PEAK], acc.shape[0] - 1  # there are one or two groups
    for g in range(last + 1):
        low, high, top = _extremes(scores, weight, groups, g)
        tally[LOW, g], tally[HIGH, g] = min(tally[LOW, g], low), max(tally[HIGH, g], high)
        if top > peak[g] - 0.5 * HEADROOM:
            shrink = math.exp(peak[g] - (top + HEADROOM))
            peak[g] = top + HEADROOM
            tally[TOTAL, g] *= shrink
            tally[SIGNED, g] *= shrink
            acc[g] *= shrink
    first, second = peak[0], peak[last]
    for k in range(len(weight)):
        weight[k] -= first if groups[k] == 0 else second
    _exponentials(weight)
    for g in range(last + 1):
        total = signed = 0.0
        for k in range(len(weight)):
            q = weight[k] if groups[k] == g else 0.0
            total += q
            signed += q * (signs[k] * scale)
        tally[TOTAL, g] += total
        tally[SIGNED, g] += signed
    for k in range(len(weight)):
        weight[k] *= signs[k] * scale  # the scale first: it brings rows of any size near 1


# ---- dense rows -----------------------------------------------------------------------------------------------------

# `_four_rows` handles STRIP columns per iteration, as STRIP // DOUBLES vectors of DOUBLES float64 each.
STRIP, DOUBLES = 16, 4


def _four_rows(X, v, i, k, q, target, ahead):
    """Return the products x·v of rows i..i+3 and add Σ q_r x_{k_r} for the rows of the tuple k to target; d ≥ DOUBLES.

    The rows i.. come from memory and the rows k from the cache: in one loop, the additions are hidden by the waits for memory.
    The vector code below is written by hand because the entries `ahead` must be prefetched a line at a time between the
    arithmetic, and compilers do not vectorise a loop with a prefetch. It makes a pass over float32 rows a third faster.
    """
    if len(k):
        target += np.asarray(q) @ X[list(k)].astype(np.float64)
    return tuple(X[i : i + 4].astype(np.float64) @ v)


@overload(_four_rows, inline="always")
def _four_rows_compiled(X, v, i, k, q, target, ahead):
    return lambda X, v, i, k, q, target, ahead: _four_rows_in_vectors(X, v, i, k, q, target, ahead)


@intrinsic
def _four_rows_in_vectors(typing_context, X, v, i, k, q, target, ahead):
    signature = types.UniTuple(types.float64, 4)(X, v, types.int64, k, q, target, types.int64)
    return signature, _four_rows_code


def all_lanes(builder, x, lanes):
    """Return LLVM code for a vector that has x in each of its lanes."""
    undefined = ir.Constant(ir.VectorType(x.type, lanes), ir.Undefined)
    first = builder.insert_element(undefined, x, ir.IntType(32)(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))


def plus_product(builder, total, x, y):
    """Return LLVM code for total + x·y, which may be rounded once."""
    return builder.fadd(builder.fmul(x, y, flags=("contract",)), total, flags=("contract",))


def _four_rows_code(context, builder, signature, args):
    """Generate the LLVM code of `_four_rows`, for whatever vector registers the machine has."""
    double, byte, int32, int64 = ir.DoubleType(), ir.IntType(8), ir.IntType(32), ir.IntType(64)
    vector = ir.VectorType(double, DOUBLES)
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
        loaded = builder.load(at(base, j, ir.VectorType(kind, DOUBLES)))
        loaded.align = align
        return loaded if kind is double else builder.fpext(loaded, vector)

    fetch_type = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), int32, int32, int32])
    fetch = cgutils.get_or_insert_function(builder.module, fetch_type, "llvm.prefetch.p0")
    new = [row(builder.add(args[2], int64(r))) for r in range(4)]
    far = [builder.gep(base, [args[6]]) for base in new]  # perhaps beyond the array, which is harmless for a prefetch
    old = [row(i) for i in k]
    q = [all_lanes(builder, x, DOUBLES) for x in q]
    zeros = ir.Constant(vector, [0.0] * DOUBLES)
    # Two sums for each row, used alternately, because an addition has to wait for the previous one to the same sum.
    sums = [[cgutils.alloca_once_value(builder, zeros) for _ in new] for _ in range(2)]

    def add_columns(j, turn=0, keep=lambda x: x):
        """Add the columns j..j+DOUBLES-1, or those of them that `keep` does not set to zero."""
        part = keep(load(v.data, j, double, 8))
        for base, total in zip(new, sums[turn % 2], strict=True):
            builder.store(plus_product(builder, builder.load(total), load(base, j, entry, size), part), total)
        if old:
            part = load(target.data, j, double, 8)
            for base, weight in zip(old, q, strict=True):
                part = plus_product(builder, part, keep(weight), load(base, j, entry, size))
            builder.store(part, at(target.data, j, vector)).align = 8

    strips, vectors = (builder.sub(d, builder.urem(d, int64(width))) for width in (STRIP, DOUBLES))
    with cgutils.for_range_slice(builder, int64(0), strips, int64(STRIP), int64) as (strip, _):
        for offset in range(0, STRIP, CACHE_LINE_BYTES // size):
            for base in far:
                builder.call(fetch, [at(base, builder.add(strip, int64(offset)), byte), int32(0), int32(3), int32(1)])
        for turn in range(STRIP // DOUBLES):
            add_columns(builder.add(strip, int64(turn * DOUBLES)), turn)
    with cgutils.for_range_slice(builder, strips, vectors, int64(DOUBLES), int64) as (j, _):
        add_columns(j)
    # The remaining columns: the last DOUBLES, without those that were added before.
    left = builder.sub(d, vectors)
    with builder.if_then(builder.icmp_signed(">", left, int64(0))):
        lasts = ir.Constant(ir.VectorType(int64, DOUBLES), list(range(DOUBLES, 0, -1)))
        mine = builder.icmp_signed("<=", lasts, all_lanes(builder, left, DOUBLES))
        add_columns(builder.sub(d, int64(DOUBLES)), keep=lambda x: builder.select(mine, x, zeros))

    def sum_of_lanes(x):
        lanes = [builder.extract_element(x, int32(lane)) for lane in range(DOUBLES)]
        while len(lanes) > 1:
            lanes = [builder.fadd(one, other) for one, other in zip(lanes[::2], lanes[1::2], strict=True)]
        return lanes[0]

    totals = [builder.fadd(builder.load(one), builder.load(other)) for one, other in zip(*sums, strict=True)]
    return cgutils.pack_array(builder, [sum_of_lanes(total) for total in totals])


@compiled
def _ahead(X):
    """Return how many entries ahead to prefetch: rows of 8 KiB or more in all, or less than a row if four rows exceed 64 KiB."""
    d = X.shape[1]
    row = max(1, d * X.itemsize)
    return d * max(4, 8192 // row) if row <= 16384 else 4096 // X.itemsize


@compiled
def dense_scores(X, w, b, signs, lo, hi, scores):
    """Set scores_i = y_i (x_i·w + b), four rows at a time, so that w is loaded once for four."""
    d = X.shape[1]
    ahead = _ahead(X)
    i = lo
    while i + 4 <= hi and d >= DOUBLES:
        s0, s1, s2, s3 = _four_rows(X, w, i, (), (), w, ahead)
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
    """Add Σ_k q_k x_k over the m chosen rows to target, four at a time, so that the target is loaded once for four."""
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
    """Add Σ_i q_i x_i to acc; rows of weight zero are not read."""
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
def dense_curved(X, w, b, h, lo, hi, q, acc):
    """Set q_i = h_i (x_i·w + b) and add Σ_i q_i x_i to acc, reading the rows once, in blocks as `dense_softmin` does."""
    block = max(4, min(128, 262144 // max(1, X.shape[1] * X.itemsize) // 4 * 4))
    chosen = np.empty(block + 1, np.int64)
    for start in range(lo, hi, block):
        stop = min(start + block, hi)
        dense_scores(X, w, b, h, start, stop, q)
        m = 0
        for i in range(start, stop):
            chosen[m] = i
            m += q[i] != 0.0
        _dense_add(X, q, chosen, m, 0, acc)


@compiled
def _dense_block(X, v, b, signs, scale, log_p0, groups, before, start, stop, scores, tally, acc, weight, chosen, ends):
    """Compute the scores of the rows start..stop-1 while adding the chosen rows of the previous block, then the weights."""
    d = X.shape[1]
    ahead = _ahead(X)
    i = start
    for g in range(acc.shape[0]):
        target = acc[g]
        m = ends[g]
        while i + 4 <= stop and m + 4 <= ends[g + 1] and d >= DOUBLES:
            k0, k1, k2, k3 = chosen[m], chosen[m + 1], chosen[m + 2], chosen[m + 3]
            q0, q1, q2, q3 = weight[k0 - before], weight[k1 - before], weight[k2 - before], weight[k3 - before]
            s0, s1, s2, s3 = _four_rows(X, v, i, (k0, k1, k2, k3), (q0, q1, q2, q3), target, ahead)
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
    _weigh(scores, signs, scale, log_p0, groups, start, stop, tally, acc, weight)
    m = 0
    for g in range(acc.shape[0]):
        for i in range(start, stop):
            chosen[m] = i
            m += groups[i] == g and weight[i - start] != 0.0  # not > 0: NaN must reach the sum
        ends[g + 1] = m


@compiled
def dense_softmin(X, v, b, signs, scale, log_p0, groups, lo, hi, scores, tally, acc):
    """Read the rows once, block by block, for all v in the stack.

    A block is at most 256 KiB, so that it is still in the second-level cache when it is added and when the next v needs it.
    """
    block = max(4, min(128, 262144 // max(1, X.shape[1] * X.itemsize) // 4 * 4))
    count = v.shape[0]
    _begin(tally, acc)
    weight = np.empty((count, block))
    chosen = np.empty((count, block + 1), np.int64)  # the rows of nonzero weight of the previous block, by group
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
def _scaled_norm(x, p):
    """Return ‖x‖_p, scaled by the largest entry so that powers do not overflow; NaN if an entry is not finite."""
    top = 0.0
    for j in range(x.shape[0]):
        top = max(top, abs(np.float64(x[j])))
        if not math.isfinite(x[j]):
            return math.nan
    if top == 0.0 or p == math.inf:
        return top
    s = 0.0
    for j in range(x.shape[0]):
        s += (abs(x[j]) / top) ** 2 if p == 2.0 else (abs(x[j]) / top) ** p
    return top * s ** (1.0 / p)


@compiled
def _norm(x, p):
    """Return ‖x‖_p; for p = 2 from the plain sum of squares if that is in range, which takes a tenth of the time."""
    if p == 2.0:
        s = 0.0
        for j in range(x.shape[0]):
            s += np.float64(x[j]) * x[j]
        if MIN_SQUARE <= s <= MAX_SQUARE:
            return math.sqrt(s)
    return _scaled_norm(x, p)


@compiled
def dense_norms(X, p, lo, hi, norms):
    """Set norms_i = ‖x_i‖_p, NaN if an entry is not finite."""
    for i in range(lo, hi):
        norms[i] = _norm(X[i], p)


# ---- sparse rows (CSR) ----------------------------------------------------------------------------------------------


@register_jitable(inline="always")  # a call for each row would cost as much as several entries
def sparse_product(data, indices, indptr, i, w):
    """Return x_i·w from four sums, so that an addition need not wait for the previous one."""
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
    return (s0 + s1) + (s2 + s3)


@compiled_in_order
def sparse_scores(data, indices, indptr, w, b, signs, lo, hi, scores):
    """Set scores_i = y_i (x_i·w + b)."""
    for i in range(lo, hi):
        scores[i] = signs[i] * (sparse_product(data, indices, indptr, i, w) + b)


@compiled_in_order
def sparse_combine(data, indices, indptr, q, lo, hi, acc):
    """Add Σ_i q_i x_i to acc."""
    for i in range(lo, hi):
        if q[i] != 0.0:
            for k in range(indptr[i], indptr[i + 1]):
                acc[indices[k]] += q[i] * data[k]


@compiled_in_order
def sparse_curved(data, indices, indptr, w, b, h, lo, hi, q, acc):
    """Set q_i = h_i (x_i·w + b) and add Σ_i q_i x_i to acc, reading each row while it is in the cache."""
    for i in range(lo, hi):
        q[i] = 0.0
        if h[i] != 0.0:
            q[i] = h[i] * (sparse_product(data, indices, indptr, i, w) + b)
            for k in range(indptr[i], indptr[i + 1]):
                acc[indices[k]] += q[i] * data[k]


@compiled_in_order
def sparse_softmin(data, indices, indptr, v, b, signs, scale, log_p0, groups, lo, hi, scores, tally, acc):
    """Do the pass of `dense_softmin` over CSR rows, in blocks of 128."""
    _begin(tally, acc)
    weight = np.empty(128)
    for start in range(lo, hi, 128):
        stop = min(start + 128, hi)
        for h in range(v.shape[0]):
            sparse_scores(data, indices, indptr, v[h], b[h], signs, start, stop, scores[h])
            _weigh(scores[h], signs, scale, log_p0, groups, start, stop, tally[h], acc[h], weight)
            for i in range(start, stop):
                if weight[i - start] != 0.0:
                    g = groups[i]
                    for k in range(indptr[i], indptr[i + 1]):
                        acc[h, g, indices[k]] += weight[i - start] * data[k]


@compiled_in_order
def sparse_squares(data, indices, indptr, root, lo, hi, total):
    """Set total = Σ_i root_i² x_i x_iᵀ; columns increase along a row, so pairs fill the lower half, which is then mirrored."""
    for i in range(lo, hi):
        q = root[i] * root[i]
        if q != 0.0:
            for k in range(indptr[i], indptr[i + 1]):
                factor, row = q * data[k], total[indices[k]]
                for m in range(indptr[i], k + 1):
                    row[indices[m]] += factor * data[m]
    for j in range(total.shape[0]):
        for m in range(j):
            total[m, j] = total[j, m]


@compiled_in_order
def sparse_take(data, indices, indptr, rows, ends, taken, columns):
    """Copy the entries of these rows, in this order; those of the k-th row end at ends[k + 1]."""
    for k in range(len(rows)):
        first, count = indptr[rows[k]], ends[k + 1] - ends[k]
        for m in range(count):
            taken[ends[k] + m] = data[first + m]
        for m in range(count):
            columns[ends[k] + m] = indices[first + m]


@compiled
def sparse_norms(data, indices, indptr, p, lo, hi, norms):
    """Set norms_i = ‖x_i‖_p, NaN if an entry is not finite."""
    for i in range(lo, hi):
        norms[i] = _norm(data[indptr[i] : indptr[i + 1]], p)


@compiled
def mixed_bits(words):
    """Return a hash of all bits of these integers and of their positions, which other integers match by chance once in 2³².

    It is Σ low(k_i) high(k_i) + k_i modulo 2⁶⁴ over the low and high halves of k_i = word ⊕ i·step, as in the hash NH.
    """
    step, low, half = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFFFFFFFF), np.uint64(32)
    total, place = np.uint64(0), np.uint64(0)
    for i in range(len(words)):
        place += step
        k = np.uint64(words[i]) ^ place
        total += (k & low) * (k >> half) + k
    return total
