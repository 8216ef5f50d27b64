"""What may be passed as rows: it is taken exactly, not copied where it need not be, and left alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from test_rows import BASE, DTYPES, STORAGES, Twin, as_stored, close, everything, matrix, same_softmin, vector

from gordan import InputError, rows


def same_rows(X, A=BASE):
    """`X` is taken for the matrix `A`, exactly (entries are small integers)."""
    made, twin = rows.of(X), Twin(np.asarray(A, dtype=np.float64))
    w, p = np.array([1.0, 2, -3, 4]), np.array([1.0, 2, 3, 4, 5])
    assert made.scores(w).tolist() == (twin.A @ w).tolist()
    assert made.combine(p).tolist() == (twin.A.T @ p).tolist()
    assert made.take([2, 0]).scores(w).tolist() == (twin.A[[2, 0]] @ w).tolist()
    same_softmin(made, twin, w / 8)
    for q in (1.0, 2.0, 3.0, np.inf):
        close(made.radius(q), twin.radius(q))


def csr(data, indices, indptr, index=np.int32, dtype=np.float64):
    """A CSR matrix with exactly these arrays: SciPy tidies nothing."""
    made = sp.csr_matrix((5, 4))
    made.data, made.indices, made.indptr = np.array(data, dtype), np.array(indices, index), np.array(indptr, index)
    return made


def excess():
    """Two entries beyond the last row, as `csr.data` may have after rows were dropped by hand."""
    made = sp.csr_matrix(BASE)
    made.data, made.indices = np.r_[made.data, 77.0, 78.0], np.r_[made.indices, np.int32(0), np.int32(1)]
    return made


CANONICAL = ([1, -2, 3, 4, 5, -6, 7, 8, 9], [0, 2, 0, 1, 3, 1, 3, 0, 3], [0, 2, 2, 5, 7, 9])
SPARSE = {
    "canonical": lambda: csr(*CANONICAL),
    "float32": lambda: csr(*CANONICAL, dtype=np.float32),
    "int64 indices": lambda: csr(*CANONICAL, index=np.int64),
    "unsorted": lambda: csr([-2, 1, 5, 3, 4, 7, -6, 9, 8], [2, 0, 3, 0, 1, 3, 1, 3, 0], [0, 2, 2, 5, 7, 9]),
    "duplicates": lambda: csr([4, -2, -3, 3, 4, 5, -6, 7, 8, 9], [0, 2, 0, 0, 1, 3, 1, 3, 0, 3], [0, 3, 3, 6, 8, 10]),
    "duplicates that add to the largest row": lambda: csr(
        [1, -2, 3, 4, 5, -6, 7, 4, 4, 3, 3, 3], [0, 2, 0, 1, 3, 1, 3, 0, 0, 3, 3, 3], [0, 2, 2, 5, 7, 12]
    ),
    "duplicates that cancel": lambda: csr(
        [1, -2, 90, -90, 3, 4, 5, -6, 7, 8, 9], [0, 2, 1, 1, 0, 1, 3, 1, 3, 0, 3], [0, 2, 4, 7, 9, 11]
    ),
    "explicit zeros": lambda: csr([1, 0, -2, 0, 3, 4, 5, -6, 7, 8, 9], [0, 1, 2, 3, 0, 1, 3, 1, 3, 0, 3], [0, 3, 4, 7, 9, 11]),
    "excess storage": excess,
    "byte-swapped data": lambda: csr(*CANONICAL, dtype=">f8"),
    "int8 data": lambda: csr(*CANONICAL, dtype=np.int8),
    "int64 data": lambda: csr(*CANONICAL, dtype=np.int64),
    "csr_array": lambda: sp.csr_array(BASE),
    "csc_matrix": lambda: sp.csc_matrix(BASE),
    "csc_array": lambda: sp.csc_array(BASE),
    "coo_matrix": lambda: sp.coo_matrix(BASE),
    "coo_array with duplicates": lambda: sp.coo_array(
        ([1.0, -3, 1, 3, 4, 5, -6, 7, 8, 9], ([0, 0, 0, 2, 2, 2, 3, 3, 4, 4], [0, 2, 2, 0, 1, 3, 1, 3, 0, 3])), shape=(5, 4)
    ),
    "lil_matrix": lambda: sp.lil_matrix(BASE),
    "dok_array": lambda: sp.dok_array(BASE),
    "bsr_matrix": lambda: sp.bsr_matrix(BASE),
    "dia_array": lambda: sp.dia_array(BASE),
}


@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_input(kind):
    same_rows(SPARSE[kind]())


@pytest.mark.parametrize("kind", [k for k in SPARSE if k not in ("lil_matrix", "dok_array", "bsr_matrix", "dia_array")])
def test_sparse_input_is_not_changed(kind):
    X = SPARSE[kind]()
    names = ("data", "row", "col") if X.format == "coo" else ("data", "indices", "indptr")
    before = {name: getattr(X, name).copy() for name in names}
    everything(rows.of(X))
    for name, array in before.items():
        after = getattr(X, name)
        assert after.dtype == array.dtype, name
        assert after.tobytes() == array.tobytes(), name
        assert after.flags.writeable, name


def read_only(X):
    X.flags.writeable = False
    return X


DENSE = {
    "list": BASE.tolist,
    "float64": BASE.copy,
    "float32": lambda: BASE.astype(np.float32),
    "Fortran": lambda: np.asfortranarray(BASE),
    "Fortran float32": lambda: np.asfortranarray(BASE.astype(np.float32)),
    "negative strides": lambda: BASE[::-1, ::-1].copy()[::-1, ::-1],
    "strided": lambda: np.repeat(np.repeat(BASE, 2, axis=0), 3, axis=1)[::2, ::3],
    "transposed": lambda: BASE.T.copy().T,
    "byte-swapped": lambda: BASE.astype(">f8"),
    "byte-swapped float32": lambda: BASE.astype(">f4"),
    "byte-swapped int16": lambda: BASE.astype(">i2"),
    "byte-swapped int64": lambda: BASE.astype(">i8"),
    "read-only": lambda: read_only(BASE.copy()),
    "np.matrix": lambda: BASE.view(np.matrix),
    "float16": lambda: BASE.astype(np.float16),
    "longdouble": lambda: BASE.astype(np.longdouble),
    "objects": lambda: BASE.astype(object),
    "objects of many kinds": lambda: np.array([[int(x) if x > 0 else np.float32(x) for x in row] for row in BASE], dtype=object),
} | {f"int{bits}": lambda bits=bits: BASE.astype(f"int{bits}") for bits in (8, 16, 32, 64)}


@pytest.mark.parametrize("kind", DENSE)
def test_dense_input(kind):
    same_rows(DENSE[kind]())


@pytest.mark.parametrize("kind", [k for k in DENSE if k != "list"])
def test_dense_input_is_not_changed(kind):
    X = DENSE[kind]()
    before, flags, dtype = X.tobytes(), str(X.flags), X.dtype
    everything(rows.of(X))
    assert (X.tobytes(), str(X.flags), X.dtype) == (before, flags, dtype)


EXTREMES = {
    "bool": [0, 1],
    "int8": [-128, 127],
    "uint8": [0, 255],
    "int16": [-(2**15), 2**15 - 1],
    "uint16": [0, 2**16 - 1],
    "int32": [-(2**31), 2**31 - 1],
    "uint32": [0, 2**32 - 1],
    "int64": [-(2**53), 2**53],
    "uint64": [0, 2**53],
    "float16": [-65504.0, 6e-8],
    "longdouble": [-(2.0**-1074), 1.5e308],
    "object": [-(2**53), 2**64],
}


@pytest.mark.parametrize(
    ("storage", "dtype"), [("dense", t) for t in EXTREMES] + [("sparse", t) for t in EXTREMES if t not in ("float16", "object")]
)
def test_extreme_values_are_exact(storage, dtype):
    """Nothing wraps and nothing is rounded, not even with a minus sign."""
    values = np.array(EXTREMES[dtype], dtype=dtype)
    X = as_stored(np.stack((values, values[::-1])), storage)
    made = rows.of(X, [1, -1])
    low, high = (float(x) for x in values)
    assert made.scores(np.array([1.0, 0.0])).tolist() == [low, -high]
    assert made.scores(np.array([0.0, 1.0])).tolist() == [high, -low]


@pytest.mark.parametrize("dtype", DTYPES)
def test_native_arrays_are_not_copied(dtype, peak_memory):
    X = np.ones((20_000, 50), dtype)
    S = sp.csr_matrix(X)
    for made in (lambda: rows.of(X), lambda: rows.of(S), lambda: rows.of(X, np.ones(len(X)), constant=True).scaled(0.5)):
        kept, peak = peak_memory(made)
        assert peak < X.nbytes / 4
        assert kept.n == len(X)


@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_map(dtype, tmp_path, peak_memory):
    """Used in place: no full copy, by the rows or by any pass."""
    X = np.random.default_rng(0).standard_normal((20_000, 50)).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    w, p = vector(50), vector(len(X))
    warm = rows.of(mapped)

    def passes():
        A = rows.of(mapped)
        return A.scores(w), A.combine(p), A.softmin(w), A.radius(), A.lowest(w, 9)

    _, peak = peak_memory(passes)
    assert peak < X.nbytes / 2
    assert np.shares_memory(warm.storage.arrays[0], mapped)
    same = rows.of(X)
    assert np.array_equal(warm.scores(w), same.scores(w))
    assert np.array_equal(warm.combine(p), same.combine(p))
    assert np.array_equal(warm.take([3, 1]).scores(w), same.take([3, 1]).scores(w))
    assert (tmp_path / "X.npy").read_bytes()[-X.nbytes :] == X.tobytes()


def test_rows_with_other_threads():
    """The same rows and the same answers; only the number of threads is another one."""
    made = rows.of(matrix(9, 4, np.float64), np.where(np.arange(9) % 2, -1, 1), constant=True).scaled(0.5)
    other = rows.of(made, threads=1)
    assert other is not made
    assert other.storage is made.storage
    np.testing.assert_array_equal(other.scores(np.arange(5.0)), made.scores(np.arange(5.0)))


@pytest.mark.parametrize("storage", STORAGES)
def test_squares_find_what_is_not_finite(storage):
    X = matrix(9, 4, np.float64)
    X[5, 2] = np.nan
    with pytest.raises(InputError, match=r"X\[5, 2\] is nan"):
        rows.of(as_stored(X, storage)).squares()


def test_rows_are_returned_as_they_are():
    made = rows.of(BASE)
    assert rows.of(made) is made


def test_repr_says_what_is_stored():
    assert repr(rows.of(sp.csr_matrix(BASE.astype(np.float32)), constant=True)) == "Rows(sparse float32, n=5, d=5, scale=1)"


def test_vectors_are_left_alone():
    made = rows.of(BASE, [1, -1, 1, -1, 1], constant=True).scaled(2.0)
    w, p, log_p0, halves = vector(5), vector(5, 2), vector(5, 3), np.array([0, 1, 0, 1, 1], np.int8)
    before = [x.copy() for x in (w, p, log_p0, halves)]
    made.scores(w)
    made.combine(p)
    made.softmin(w, log_p0, halves)
    made.lowest(w, 2)
    assert all(np.array_equal(x, y) for x, y in zip((w, p, log_p0, halves), before, strict=True))
