"""The compiled loops over sparse rows for several planes at once, in float32; see `rows.block_ascent`.

The planes are the columns of one array, so that an entry of X is read once for all of them and multiplied by a whole vector
register. Numba does not find that out by itself for so short a loop (it took three times as long at 158 entries a row), so the
two inner loops are written as LLVM code. They are compiled for a number of columns: the argument `lanes` is a tuple with as many
entries, whose values do not matter.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from gordan.compiling import compiled_in_order
from gordan.rows.ascent import shuffle
from gordan.rows.kernels import all_lanes, plus_product

# Rows of the `tally`: the estimates of P - D and of P.
GAP, VALUE = 0, 1


def _products(data, indices, begin, end, W, sums, lanes):
    """Set sums = Σ_k data_k W[indices_k], for k from `begin` to `end`."""
    sums[:] = data[begin:end].astype(np.float32) @ W[indices[begin:end]]


def _add(data, indices, begin, end, moves, W, lanes):
    """Add data_k · moves to W[indices_k], for k from `begin` to `end`; no index occurs twice."""
    W[indices[begin:end]] += data[begin:end].astype(np.float32)[:, None] * moves


@overload(_products, inline="always")
def _products_compiled(data, indices, begin, end, W, sums, lanes):
    return lambda data, indices, begin, end, W, sums, lanes: _vector_products(data, indices, begin, end, W, sums, lanes)


@overload(_add, inline="always")
def _add_compiled(data, indices, begin, end, moves, W, lanes):
    return lambda data, indices, begin, end, moves, W, lanes: _vector_add(data, indices, begin, end, moves, W, lanes)


@intrinsic
def _vector_products(typing_context, data, indices, begin, end, W, sums, lanes):
    return types.void(data, indices, types.int64, types.int64, W, sums, lanes), _products_code


@intrinsic
def _vector_add(typing_context, data, indices, begin, end, moves, W, lanes):
    return types.void(data, indices, types.int64, types.int64, moves, W, lanes), _add_code


FLOAT, INT64 = ir.FloatType(), ir.IntType(64)
# Sums are added up in this many vectors, since each addition to one has to wait for the last.
CHAINS = 4


class _Entries:
    """The entries of a row in LLVM code."""

    def __init__(self, context, builder, signature, args):
        *kinds, lanes = signature.args
        given = zip(kinds, args, strict=False)
        made = [context.make_array(kind)(context, builder, arg) if kind != types.int64 else arg for kind, arg in given]
        (self.data, self.indices, self.begin, self.end, *self.others), self.builder = made, builder
        self.lanes, self.vector = lanes.count, ir.VectorType(FLOAT, lanes.count)

    def each(self):
        return cgutils.for_range_slice(self.builder, self.begin, self.end, INT64(1), INT64)

    def value(self, k):
        """Return data_k in all lanes."""
        x = self.builder.load(self.builder.gep(self.data.data, [k]))
        return all_lanes(self.builder, x if x.type == FLOAT else self.builder.fptrunc(x, FLOAT), self.lanes)

    def row_of(self, W, k):
        """Return the address of the row of W for entry k."""
        column = self.builder.load(self.builder.gep(self.indices.data, [k]))
        column = column if column.type == INT64 else self.builder.zext(column, INT64)
        return self.vector_at(W, self.builder.mul(column, INT64(self.lanes)))

    def vector_at(self, array, k):
        return self.builder.bitcast(self.builder.gep(array.data, [k]), self.vector.as_pointer())

    def load(self, pointer):
        loaded = self.builder.load(pointer)
        loaded.align = 4
        return loaded

    def store(self, value, pointer):
        self.builder.store(value, pointer).align = 4


def _products_code(context, builder, signature, args):
    row = _Entries(context, builder, signature, args)
    W, sums = row.others
    totals = [cgutils.alloca_once_value(builder, ir.Constant(row.vector, [0.0] * row.lanes)) for _ in range(CHAINS)]

    def add(total, k):
        builder.store(plus_product(builder, builder.load(total), row.value(k), row.load(row.row_of(W, k))), total)

    whole = builder.sub(row.end, builder.srem(builder.sub(row.end, row.begin), INT64(CHAINS)))
    with cgutils.for_range_slice(builder, row.begin, whole, INT64(CHAINS), INT64) as (k, _):
        for j, total in enumerate(totals):
            add(total, builder.add(k, INT64(j)))
    with cgutils.for_range_slice(builder, whole, row.end, INT64(1), INT64) as (k, _):
        add(totals[0], k)
    found = reduce(builder.fadd, map(builder.load, totals))
    row.store(found, row.vector_at(sums, INT64(0)))
    return context.get_dummy_value()


def _add_code(context, builder, signature, args):
    row = _Entries(context, builder, signature, args)
    moves, W = row.others
    moved = row.load(row.vector_at(moves, INT64(0)))
    with row.each() as (k, _):
        place = row.row_of(W, k)
        row.store(plus_product(builder, row.load(place), row.value(k), moved), place)
    return context.get_dummy_value()


@compiled_in_order
def ascend_lanes(data, indices, indptr, signs, column, offset, order, ridge, square, x, W, last, stream, tally, lanes):
    """Run one epoch over the rows in random order for the label vectors in the columns of `signs`; x, W and `last` change.

    For each of them x_i goes to where Σx - ½‖Σ x_i A_i‖² - ½Σ ridge x² is largest, at least 0: `last` is the entry of w that
    belongs to a constant `column`, and the `offset` is added to scores. A row of sign 0 stays as it is. The tally adds up what
    each row contributes to P - D = ½‖w - v‖² + Σ C FY and to P when it is visited, where C is 1/(2 ridge) and v = w.
    """
    sums, moves = np.zeros(len(lanes), np.float32), np.zeros(len(lanes), np.float32)
    tally[:] = 0.0
    stream[0] = shuffle(order, order.shape[0], stream[0])
    for i in order:
        begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        _products(data, indices, begin, end, W, sums, lanes)
        moved = False
        for lane in range(signs.shape[1]):
            sign, own = signs[i, lane], x[i, lane]
            moves[lane] = np.float32(0.0)
            if sign == 0:
                continue
            z = sign * (sums[lane] + column * last[lane] + offset[lane])
            short = max(1.0 - z, 0.0)
            left = short - ridge[i] * own
            tally[GAP, lane] += 0.5 * left * left / ridge[i] + own * max(z - 1.0, 0.0)
            tally[VALUE, lane] += 0.5 * (own * z + short * short / ridge[i])
            new = np.float32(max(own - (z - 1.0 + ridge[i] * own) / (square[i] + ridge[i]), 0.0))
            if new != own:
                x[i, lane] = new
                move = sign * (new - own)
                moves[lane] = move
                last[lane] += column * move
                moved = True
        if moved:
            _add(data, indices, begin, end, moves, W, lanes)


@compiled_in_order
def lane_combination(data, indices, indptr, q, W, lanes):
    """Add Σ_i x_i q_i to W for the rows q_i of q, in float32."""
    for i in range(q.shape[0]):
        _add(data, indices, np.int64(indptr[i]), np.int64(indptr[i + 1]), q[i], W, lanes)


@compiled_in_order
def lane_scores(data, indices, indptr, W, scores, lanes):
    """Set scores_i = x_i·W for every row, in float32."""
    for i in range(scores.shape[0]):
        _products(data, indices, np.int64(indptr[i]), np.int64(indptr[i + 1]), W, scores[i], lanes)
