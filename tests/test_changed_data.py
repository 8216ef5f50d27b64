"""Data that is changed after a proof: the certificate is of what was proved, or there is none."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from test_proof_reads import WHERE, random_rows

import gordan
from gordan import InputError, MaxMarginClassifier
from gordan.certificates import matrix
from gordan.certificates.matrix import Matrix
from gordan.certificates.problem import Problem
from gordan.io import read
from gordan.rows import device, reads, stored

Y = np.arange(40) % 2
ASK = {
    "separate": gordan.separate,
    "maximize_margin": gordan.maximize_margin,
    "soft": lambda X, y: gordan.maximize_margin(X, y, nu=0.5, sample_weight=np.arange(1.0, 41.0)),
    "diagnose": gordan.diagnose,
}


def points():
    """Two classes that a plane separates, some entries zero."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 5)) * (rng.uniform(size=(40, 5)) < 0.8)
    X[:, 0] = np.where(Y, 4.0, -4.0) + rng.normal(size=40) / 4
    return X


def mapped(tmp_path):
    np.save(tmp_path / "X.npy", points())
    X = np.load(tmp_path / "X.npy", mmap_mode="r+")
    return X, X


def tensor(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'")
    X = points()
    return torch.from_numpy(X), X


def dask_array(tmp_path):
    import dask
    import dask.array

    X = points()
    blocks = [dask.delayed(lambda rows: X[rows].copy())(slice(lo, lo + 10)) for lo in range(0, 40, 10)]
    return dask.array.concatenate([dask.array.from_delayed(block, (10, 5), X.dtype) for block in blocks]), X


def sparse(tmp_path):
    X = sp.csr_array(points())
    return X, X.data[:, None]


def file(tmp_path):
    X, _ = mapped(tmp_path)
    np.save(tmp_path / "y.npy", Y)
    return read(tmp_path / "X.npy", label=str(tmp_path / "y.npy")).X, X


# X as it is passed, and an array that holds its entries
STORAGES = {
    "dense": lambda tmp_path: (points(),) * 2,
    "float32": lambda tmp_path: (points().astype(np.float32),) * 2,
    "sparse": sparse,
    "a memory map": mapped,
    "a file": file,
    "a tensor": tensor,
    "a Dask array": dask_array,
}
CHANGES = {
    "the last bit of an entry": lambda X: X.__setitem__((7, 0), np.nextafter(X[7, 0], 9, dtype=X.dtype)),
    "a sign": lambda X: np.negative(X[3:4], out=X[3:4]),
    "all signs": lambda X: np.negative(X, out=X),
    "two entries": lambda X: X.__setitem__(([2, 11], 0), X[[11, 2], 0]),
    "two rows of a class": lambda X: X.__setitem__([4, 6], X[[6, 4]]),
    "an order": lambda X: X.__setitem__(slice(None), X[::-1].copy()),
    "a scale": lambda X: np.multiply(X, 2, out=X),
}


@pytest.fixture(params=["small", "large", "large and compiled"])
def size(request, monkeypatch):
    """Whether data counts as small, which is copied."""
    if request.param != "small":
        monkeypatch.setattr(matrix, "MAX_COPIED_BYTES", 0)
        monkeypatch.setattr(device, "MIN_ENTRIES", 0)
    if request.param == "large and compiled":
        monkeypatch.setattr(matrix, "WORTH_COMPILING", 0)
        monkeypatch.setattr(reads, "BLOCK_ENTRIES", 30)
    return request.param


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("storage", STORAGES)
def test_a_change_after_the_proof(storage, change, size, tmp_path):
    """The hash is of the values that were proved about, or is refused; where nothing was changed it is as ever."""
    X, entries = STORAGES[storage](tmp_path)
    before = X.toarray() if sp.issparse(X) else entries.copy()
    name = gordan.separate(before, Y).certificate.data_hash
    result = gordan.separate(X, Y)
    assert gordan.separate(X, Y).certificate.data_hash == name
    saved = entries.copy()
    CHANGES[change](entries)
    copied = size == "small" and storage != "a Dask array"
    if not copied:
        with pytest.raises(InputError, match="X was changed after it was read"):
            _ = result.certificate
        entries[...] = saved
    assert result.certificate.data_hash == name
    assert gordan.verify(result.certificate, before, Y)


def asked(ask):
    """The certificate of the points, a result about an X, and this X; the labels have changed since."""
    X, y = points(), Y.copy()
    expected = ASK[ask](X.copy(), y).certificate
    result = ASK[ask](X, y)
    y[:] = 1 - y
    assert expected is not None
    return expected, result, X


@pytest.mark.parametrize("ask", ASK)
def test_small_data_is_copied_for_every_question(ask):
    expected, result, X = asked(ask)
    X *= -1
    assert result.certificate == expected


@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize("size", ["large", "large and compiled"], indirect=True)
def test_every_question_is_watched(ask, size):
    expected, result, X = asked(ask)
    X *= -1
    with pytest.raises(InputError, match=r"X was changed .* before you change X, or pass a copy"):
        _ = result.certificate
    X *= -1
    assert result.certificate == expected
    X *= -1
    assert result.certificate == expected  # it was made


def test_weights_are_those_of_the_proof():
    X, c = points(), np.arange(1.0, 41.0)
    result = gordan.maximize_margin(X, Y, nu=0.5, sample_weight=c)
    expected = tuple(c.tolist())
    c[:] = 1.0
    assert result.certificate.sample_weight == expected
    assert gordan.verify(result.certificate, X, Y)


def test_frames_are_watched(size):
    """A frame of one type may be a view of an array."""
    X = points()
    frame = pd.DataFrame(X, copy=False)
    expected = gordan.separate(X.copy(), Y).certificate
    result = gordan.separate(frame, Y)
    X *= -1
    if size == "small" or not np.shares_memory(frame.to_numpy(), X):
        assert replace(result.certificate, about=expected.about) == expected  # but for the names of the columns
    else:
        with pytest.raises(InputError, match="X was changed"):
            _ = result.certificate


def test_classifiers_do_without_a_checksum(monkeypatch):
    """They keep certificates without a hash."""
    monkeypatch.setattr(matrix, "MAX_COPIED_BYTES", 0)
    monkeypatch.setattr(matrix.Matrix, "checksum", None)
    model = MaxMarginClassifier().fit(points(), Y)
    assert model.certificate_.data_hash is None
    assert gordan.verify(model.certificate_, points(), Y)


def test_parts_are_not_watched():
    """A checksum is of all rows."""
    X = points()
    whole = Problem.of(X, Y)
    assert whole.watched(whole.storage) is whole
    watched = replace(whole, X=Matrix(whole.storage))
    watched.X.remembered("checksum", np.empty(0), lambda: whole.X.checksum() + 1)
    with pytest.raises(InputError, match="X was changed"):
        watched.hash("free")
    part = watched.part(np.arange(10))
    assert part.hash("free") == Problem.of(X[:10], Y[:10]).hash("free")


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("where", [where for where in WHERE if where != "on a device"])
def test_checksums_see_every_change(where, compiled, monkeypatch):
    """Of any bit of any entry, in whatever storage; and are the same for the same entries."""
    monkeypatch.setattr(matrix, "WORTH_COMPILING", 0 if compiled else 1 << 60)
    monkeypatch.setattr(reads, "BLOCK_ENTRIES", 12)
    X = random_rows(np.random.default_rng(2))

    def checksum(X):
        held = WHERE[where](X)
        return Matrix(held).checksum()

    expected, seen = checksum(X), set()
    assert checksum(X.copy()) == expected
    stored_places = np.argwhere(X)
    for i, j in stored_places:
        for other in (-X[i, j], X[i, j] + 2.0**-9, 2 * X[i, j]):
            changed = X.copy()
            changed[i, j] = other
            seen.add(checksum(changed))
    assert expected not in seen
    assert len(seen) == 3 * len(stored_places)
    assert checksum(-X) != expected
    assert checksum(X[::-1].copy()) != expected


def test_checksums_of_tensors():
    """Entries of 16, 32 and 64 bits, changed one by one, all signs at once, and in their order."""
    torch = pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'")
    X = torch.from_numpy(random_rows(np.random.default_rng(2)))
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        held = stored(X.to(dtype).clone())
        M = Matrix(held)
        expected, seen = M.checksum(), set()
        assert M.checksum() == expected
        assert bool((X.to(dtype) == held.X).all())
        for i, j in np.ndindex(*X.shape):
            for other in (-held.X[i, j], held.X[i, j] + 1):
                if (before := held.X[i, j].clone()) != other:
                    held.X[i, j] = other
                    seen.add(M.checksum())
                    held.X[i, j] = before
        assert expected not in seen
        for sign in (-1, -1):
            held.X.mul_(sign)
            same = bool((X.to(dtype) == held.X).all())
            assert same == (M.checksum() == expected)
        held.X.copy_(held.X.flip(0))
        assert M.checksum() != expected


def test_zeros_with_a_sign_are_a_change(size):
    """0 and -0 have one hash; but that the bits were changed is seen, and refused where there is no copy."""
    X = points()
    result, expected = gordan.separate(X, Y), gordan.separate(np.abs(X) * np.sign(X), Y).certificate
    X[X == 0] = -0.0
    if size == "small":
        assert result.certificate == expected
    else:
        with pytest.raises(InputError, match="X was changed"):
            _ = result.certificate


@pytest.mark.parametrize("ask", ["separate", "maximize_margin", "minimize_loss", "diagnose", "verify"])
@pytest.mark.parametrize("flip", [0, 3])
def test_data_is_given_back_with_the_answer(ask, flip, monkeypatch):
    """X, which is not copied here, is no part of a cycle: it goes when the answer goes, and not when garbage is collected."""
    monkeypatch.setattr(matrix, "MAX_COPIED_BYTES", 0)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 4))
    y = np.where(X[:, 0] > 0, 1, -1)
    y[:flip] *= -1
    call = {"verify": partial(gordan.verify, gordan.separate(X, y).certificate)}.get(ask) or getattr(gordan, ask)
    call(X.copy(), y)  # compiles
    gone = weakref.ref(X)
    gc.collect()
    gc.disable()
    try:
        answer = call(X, y)
        del X
        assert ask == "verify" or gone() is not None
        del answer
        assert gone() is None
    finally:
        gc.enable()
