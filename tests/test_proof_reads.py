"""What proofs read of the rows: the same wherever these are stored, in blocks of any size, and once."""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from passes import Kept

import gordan
from gordan import floats
from gordan.certificates import matrix
from gordan.certificates import problem as problem_module
from gordan.certificates.margins import Margin
from gordan.certificates.matrix import Matrix, Products
from gordan.certificates.problem import Problem
from gordan.certificates.verify import check
from gordan.rows import cluster, memory, reads, storage, stored
from gordan.rows.blocks import Blocks, InBlocks
from gordan.rows.cluster import Cluster
from gordan.rows.memory import Dense, Sparse
from gordan.rows.reads import DenseBlock


@pytest.mark.parametrize("storage", [np.array, sp.csr_array])
def test_what_is_remembered_is_of_the_same_vector_and_data(storage):
    """Products and combinations asked for again are those of the vector asked for, also after others, and of these rows alone."""
    r = np.random.default_rng(5)
    X = r.normal(size=(40, 6)) * (r.uniform(size=(40, 6)) < 0.7)
    y = np.arange(40) % 2
    problem, other = Problem.of(storage(X), y), Problem.of(storage(-X), y)
    for w in (np.ones(6), np.arange(6.0), np.ones(6)):
        for data, sign in ((problem, 1), (other, -1)):
            assert np.allclose(Products.of(data.X, w).sums, sign * X @ w, rtol=1e-12, atol=1e-12)
    part = replace(problem.X, storage=Problem.of(storage(X[:20]), y[:20]).storage)
    assert len(Products.of(part, np.ones(6)).sums) == 20
    for p in (np.ones(40), np.where(np.arange(40) < 9, 1.0, 0.0)):
        upper = [Margin(problem.X, problem.signs).upper(p) for _ in range(2)]
        halves = [X[problem.signs == side].T @ p[problem.signs == side] / p[problem.signs == side].sum() for side in (1, -1)]
        length = np.linalg.norm((halves[0] - halves[1]) / 2)
        assert upper[0] == upper[1]
        assert length * (1 - 1e-14) <= upper[0] <= length * (1 + 1e-12)


class Elsewhere(Cluster):
    """Rows in blocks that are worked on one by one, as on other machines."""

    def __init__(self, blocks, d, dtype):
        InBlocks.__init__(self, blocks, d, dtype)

    def run(self, work, blocks, own, shared):
        return [work(block.load(), *mine, *shared) for block, mine in zip(blocks, own, strict=True)]


def elsewhere(X, length):
    """Those in blocks of some length."""
    return Elsewhere([Kept(stored(X[lo : lo + length])) for lo in range(0, X.shape[0], length)], X.shape[1], X.dtype)


class OnDevice(Dense):
    """Rows as on a device: asked for sums, not for entries."""

    class Block(DenseBlock):
        def dot(self, w):
            return self.values.astype(np.float64) @ w, np.array(self.d)

        def squares(self):
            return np.sum(self.values.astype(np.float64) ** 2, axis=1)

        def abs_dot(self, size):
            return np.abs(self.values.astype(np.float64)) @ size

        def weighted(self, q):
            return q @ self.values.astype(np.float64)

        def only(self, i):
            return type(self)(self.values[i])

    def block(self, lo, hi, first=0):
        return self.Block(self.arrays[0][lo:hi], first + lo)


WHERE = {
    "dense": lambda X: stored(X),
    "float32": lambda X: stored(X.astype(np.float32)),
    "columns": lambda X: stored(np.asfortranarray(X)),
    "CSR": lambda X: stored(sp.csr_array(X)),
    "CSR, float32": lambda X: stored(sp.csr_array(X.astype(np.float32))),
    "CSR, long indices": lambda X: long_indices(X),
    "CSR with zeros": lambda X: every_entry(X),
    "in blocks": lambda X: Blocks([Kept(Dense(part)) for part in np.array_split(X, 5)], 6, X.dtype),
    "CSR in blocks": lambda X: Blocks([Kept(stored(sp.csr_array(part))) for part in np.array_split(X, 5)], 6, X.dtype),
    "elsewhere": lambda X: elsewhere(X, 4),
    "CSR elsewhere": lambda X: elsewhere(sp.csr_array(X), 7),
    "on a device": lambda X: OnDevice(X),
}
# What a storage that holds only some numbers makes of random rows, by its name above: `np.rint`, say.
HOLDS = {}


def every_entry(X):
    n, d = X.shape
    return Sparse(X.reshape(-1), np.tile(np.arange(d, dtype=np.int32), n), np.arange(0, n * d + 1, d), d)


def long_indices(X):
    X = sp.csr_array(X)
    held = Sparse(X.data, X.indices, X.indptr, X.shape[1])
    held.arrays = held.arrays[0], X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return held


def random_rows(rng, n=23, d=6):
    """Rows of multiples of 1/8 (so that float32 holds them), a third of them zero, one row of zeros, two that repeat."""
    X = rng.integers(-40, 40, (n, d)) / 8 * (rng.uniform(size=(n, d)) < 0.7)
    X[3], X[7] = 0.0, X[6]
    return X


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("where", WHERE)
def test_rows_are_the_same_wherever_they_are(where, threads, monkeypatch):
    """Norms, products, sums of sizes, combinations and single rows, in blocks of a few rows, against fractions."""
    rng = np.random.default_rng(11)
    monkeypatch.setattr(reads, "BLOCK_ENTRIES", 12)
    monkeypatch.setattr(reads, "MIN_ENTRIES_FOR_THREADS", 1 if threads > 1 else 1 << 19)
    monkeypatch.setattr(cluster, "MAX_LOCAL_ROWS", 5 if threads > 1 else cluster.MAX_LOCAL_ROWS)
    monkeypatch.setattr(storage, "MAX_FETCHED_ENTRIES", 40 if threads > 1 else storage.MAX_FETCHED_ENTRIES)
    X, w = HOLDS.get(where, np.asarray)(random_rows(rng)), rng.normal(size=6)
    held = WHERE[where](X)
    M = Matrix(held)
    exact = [[Fraction(x) for x in row] for row in X.tolist()]
    v = [Fraction(x) for x in w.tolist()]
    scores = [sum(x * y for x, y in zip(row, v, strict=True)) for row in exact]
    sizes = [sum(abs(x * y) for x, y in zip(row, v, strict=True)) for row in exact]

    products = Products.of(M, w)
    for row, norm in zip(exact, M.norms.tolist(), strict=True):
        square = sum(x * x for x in row)
        assert square <= Fraction(norm) ** 2 <= square * (1 + Fraction(1, 10**14))
    square = sum(x * x for x in v)
    assert square <= Fraction(products.length) ** 2 <= square * (1 + Fraction(1, 10**13))
    for found, truth, size, terms in zip(products.sums, scores, sizes, np.broadcast_to(products.terms, 23), strict=True):
        assert abs(Fraction(float(found)) - truth) <= size * Fraction(1, 10**15)
        assert terms <= 6
    for some in (np.arange(23), np.array([0, 3, 4, 11, 22]), np.array([3]), np.array([], dtype=np.intp)):
        found = M.absolute(w, some)
        assert len(found) == len(some)
        for size, i in zip(found, some, strict=True):
            assert abs(Fraction(float(size)) - sizes[i]) <= sizes[i] * Fraction(1, 10**15)
    for q in (
        rng.normal(size=23),
        np.where(np.arange(23) % 5 == 1, 0.5, 0.0),
        np.where(np.arange(23) == 8, 2.0, 0.0),
        np.zeros(23),
    ):
        p = [Fraction(x) for x in q.tolist()]
        for j, found in enumerate(M.combination(q).tolist()):
            terms = [x * row[j] for x, row in zip(p, exact, strict=True)]
            assert abs(Fraction(found) - sum(terms)) <= sum(map(abs, terms)) * Fraction(1, 10**14)
    for i, columns, values in M.storage.each_row(np.arange(23)):
        assert columns.tolist() == np.flatnonzero(X[i]).tolist()
        assert values.tolist() == X[i][X[i] != 0].tolist()
        assert values.dtype == np.float64
    products = products.sharpened(np.arange(0, 23, 2))
    for sharp, size, i in zip(products.absolute, sizes, range(23), strict=True):
        assert float(sharp) >= float(size) * (1 - 1e-14)
        assert i % 2 or float(sharp) <= float(size) * (1 + 1e-14)


@pytest.mark.parametrize("share", [1.0, 0.6, 0.5, 0.3, 0.02])
@pytest.mark.parametrize("where", ["dense", "CSR"])
def test_combinations_of_most_rows_and_of_few(where, share, monkeypatch):
    """In several blocks, whole numbers, so that nothing is rounded; most, half, few or hardly any rows have weight."""
    monkeypatch.setattr(reads, "BLOCK_ENTRIES", 30)
    rng = np.random.default_rng(6)
    X = rng.integers(-9, 9, (200, 3)) * (rng.uniform(size=(200, 3)) < 0.7) * 1.0
    q = np.where(rng.permutation(200) < share * 200, rng.integers(1, 9, 200), 0) * 1.0
    held = WHERE[where](X)
    assert len(list(held.each_block(rows_of, added=True))) > 4
    assert Matrix(held).combination(q).tolist() == [sum(map(math.prod, zip(q, x, strict=True))) for x in X.T]


@pytest.mark.parametrize("chunk", [1, 4, 5, 7, 8, 23, 100])
@pytest.mark.parametrize("where", WHERE)
def test_the_hash_of_rows_is_the_same_wherever_they_are(where, chunk, monkeypatch):
    """By its definition: SHA-256 over those of the chunks, then shape, classes, intercept and signs."""
    monkeypatch.setattr(problem_module, "CHUNK", chunk)
    X = HOLDS.get(where, np.asarray)(random_rows(np.random.default_rng(2)))
    signs = np.where(np.arange(23) % 3 == 0, 1, -1).astype(np.int8)
    whole = hashlib.sha256()
    for lo in range(0, 23, chunk):
        part = hashlib.sha256()
        for row in X[lo : lo + chunk].tolist():
            pairs = [(j, x) for j, x in enumerate(row) if x]
            part.update(struct.pack("<q", len(pairs)) + b"".join(struct.pack("<qd", j, x) for j, x in pairs))
        whole.update(part.digest())
    whole.update(b'23,6;"a",2;none;' + bytes(int(s) % 256 for s in signs))
    held = WHERE[where](X)
    assert Problem(Matrix(held), signs, ("a", 2)).hash("none") == whole.hexdigest()


@pytest.mark.parametrize("where", ["elsewhere", "CSR elsewhere"])
def test_nothing_is_known_of_rows_where_floats_are_not_ieee(where, monkeypatch):
    M = Matrix(WHERE[where](random_rows(np.random.default_rng(2))))
    monkeypatch.setattr(floats, "floats_are_ieee", lambda: False)
    monkeypatch.setattr(cluster, "MAX_LOCAL_ROWS", 0)
    for ask in (
        lambda: M.norms,
        lambda: Products.of(M, np.ones(6)),
        lambda: M.absolute(np.ones(6), np.arange(23)),
        lambda: M.combination(np.ones(23)),
    ):
        with pytest.raises(floats.NotIEEE):
            ask()


def test_a_device_without_ieee_proves_nothing(monkeypatch):
    X, signs = np.array([[-1.0], [1.0]]), np.array([-1, 1], dtype=np.int8)
    problem = Problem(Matrix(OnDevice(X)), signs, (0, 1))
    certificate = gordan.Certificate("separator", "none", (0, 1), (2, 1), w=(1.0,))
    assert check(certificate, problem)
    monkeypatch.setattr(OnDevice, "ieee", lambda self: False)
    assert "nothing can be proved" in check(certificate, problem).reason


def test_long_rows_are_added_up_in_parts(monkeypatch):
    """No term goes through more additions than a part and the number of parts have; all parts count."""
    monkeypatch.setattr(reads, "LONGEST_SUM", 4)
    rng = np.random.default_rng(3)
    for d, additions in ((8, 8), (9, 4 + 3), (12, 4 + 3), (13, 4 + 4)):
        X, w = rng.integers(-9, 9, (5, d)).astype(np.float64), rng.integers(-9, 9, d).astype(np.float64)
        sums, terms = Dense(X).block(1, 4).dot(w)
        assert sums.tolist() == [sum(a * b for a, b in zip(row, w.tolist(), strict=True)) for row in X[1:4].tolist()]
        assert terms == additions


def rows_of(block):
    return block.first, block.first + block.n


def test_blocks_have_about_so_many_entries(monkeypatch):
    """By the columns of a dense row, by the mean of sparse ones; at least one row; or they end at multiples of a number."""

    def ranges(held, entries, **how):
        monkeypatch.setattr(reads, "BLOCK_ENTRIES", entries)
        return list(held.each_block(rows_of, **how))

    assert ranges(Dense(np.zeros((5, 3))), 6) == [(0, 2), (2, 4), (4, 5)]
    assert ranges(Dense(np.zeros((3, 3))), 2) == [(0, 1), (1, 2), (2, 3)]
    assert ranges(Dense(np.zeros((5, 1))), 3) == [(0, 3), (3, 5)]
    ends = np.array([0, 2, 4, 6, 8])
    assert ranges(Sparse(np.ones(8), np.zeros(8, np.int32), ends, 100), 6) == [(0, 3), (3, 4)]
    assert ranges(Sparse(np.ones(8), np.zeros(8, np.int32), ends, 100), 6, added=True) == [(0, 4)]
    assert ranges(Sparse(np.ones(0), np.zeros(0, np.int32), 0 * ends, 100), 3) == [(0, 3), (3, 4)]
    assert ranges(Sparse(np.ones(4), np.zeros(4, np.int32), ends[[0, 2]], 100), 4) == [(0, 1)]
    assert ranges(Dense(np.zeros((5, 3))), 6, step=4) == [(0, 4), (4, 5)]
    parts = Blocks([Kept(Dense(np.zeros((n, 3)))) for n in (3, 6, 1)], 3, np.float64)
    assert ranges(parts, 6) == [(0, 2), (2, 3), (3, 5), (5, 7), (7, 9), (9, 10)]
    assert ranges(parts, 6, step=4) == [(0, 3), (3, 4), (4, 8), (8, 9), (9, 10)]
    assert list(parts.each_block(rows_of, rows=np.array([1, 4, 7, 8]))) == [(0, 1), (0, 1), (7, 9)]
    assert [block.loads for block in parts.blocks] == [3, 3, 2]


def test_large_passes_are_made_by_several_threads(monkeypatch):
    asked = []
    monkeypatch.setattr(reads, "MIN_ENTRIES_FOR_THREADS", 12)
    monkeypatch.setattr(reads, "BLOCK_ENTRIES", 1)  # a row is a block
    monkeypatch.setattr(memory, "available", lambda: 7)
    monkeypatch.setattr(memory, "in_waves", lambda work, arrays, ranges, threads, wave: asked.append((ranges, threads)) or [])
    for n, d in ((4, 3), (11, 1), (2, 6)):
        list(Dense(np.zeros((n, d))).each_block(print))
    for entries in (12, 11):
        list(Sparse(np.ones(entries), np.zeros(entries, np.int32), np.array([0, 5, entries]), 100).each_block(print))
    assert asked == [([(i, i + 1) for i in range(n)], threads) for n, threads in ((4, 7), (11, 1), (2, 7), (2, 7), (2, 1))]


def test_norms_come_with_the_first_products(monkeypatch):
    """One pass for both, and none for what is known."""
    passes, norms = [], matrix._norms
    monkeypatch.setattr(matrix, "_norms", lambda block: passes.append(block.first) or norms(block))
    blocks, each_block = [], Dense.each_block
    monkeypatch.setattr(Dense, "each_block", lambda self, work, *rest: blocks.append(work) or each_block(self, work, *rest))
    X = random_rows(np.random.default_rng(4))
    M = Matrix(Dense(X))
    Products.of(M, np.ones(6))
    assert passes == [0]
    assert len(blocks) == 1
    assert np.allclose(M.norms, np.linalg.norm(X, axis=1), rtol=1e-14)
    Products.of(M, np.arange(6.0))
    assert passes == [0]
    other = Matrix(Dense(X))
    assert other.norms.tolist() == M.norms.tolist()
    Products.of(other, np.ones(6))
    assert passes == [0, 0]


def test_what_was_asked_for_just_before_is_not_computed_again():
    X = random_rows(np.random.default_rng(4))
    M, w = Matrix(Dense(X)), np.arange(6.0)
    first = Products.of(M, w)
    assert Products.of(M, w.copy()).sums is first.sums
    w[0] = 7.0  # what is kept is a copy
    assert Products.of(M, w).sums is not first.sums
    assert first.w[0] == 0
    first, known = Products.of(M, w), Products.of(M, w).absolute.copy()
    for rows in (np.arange(len(X)), np.array([2, 3]), None):
        assert (first.sharpened(rows).absolute != known).any()
        assert Products.of(M, w).absolute.tolist() == first.absolute.tolist() == known.tolist()  # whoever sharpened some before
    counted = []
    for vector in (np.ones(2), np.ones(2), np.zeros(2), np.ones(2)):
        M.remembered("count", vector, lambda: counted.append(1) or len(counted))
    assert len(counted) == 3
    assert M.remembered("other", np.ones(2), lambda: "another kind") == "another kind"
    assert M.remembered("count", np.ones(2), lambda: None) == 3


def test_hash_is_of_the_values():
    """Dense and CSR, float32 and int, -0.0 and 0.0, explicit zeros: one hash; another value, order or label: another."""
    X = np.array([[0.0, 2.0, -3.0], [1.0, 0.0, 0.5]])
    stored = sp.csr_array((np.array([-0.0, 2.0, -3.0, 1.0, 0.5]), [0, 1, 2, 0, 2], [0, 3, 5]), shape=(2, 3))
    unsorted = sp.csr_array((np.array([-3.0, 2.0, 0.5, 1.0]), [2, 1, 2, 0], [0, 2, 4]), shape=(2, 3))
    negative = np.where(X == 0, -0.0, X)
    same = [
        X,
        X.astype(np.float32),
        np.asfortranarray(X),
        negative,
        sp.csr_array(X),
        sp.csc_array(X),
        sp.coo_array(X),
        stored,
        unsorted,
    ]
    expected = Problem.of(X, [0, 1]).hash("free")
    assert {Problem.of(matrix, [0, 1]).hash("free") for matrix in same} == {expected}
    others = [Problem.of(X[::-1], [0, 1]), Problem.of(X, [1, 0]), Problem.of(X, ["0", "1"]), Problem.of(X * 2, [0, 1])]
    assert len({expected, *(other.hash("free") for other in others)}) == 5
