"""Kinds of intercept: what a kind says of itself, and kinds whose column is not 1.

No such kind exists, so the column of the penalized intercept is changed. A penalized b with the column c is the weight of an
additional feature that is c in all rows, for which no intercept is needed.
"""

from __future__ import annotations

import json
import typing

import numpy as np
import pytest
import scipy.sparse as sp
from loss_problems import LOSSES

import gordan
from gordan.certificates import standalone
from gordan.certificates.verify import statement
from gordan.intercepts import Intercept, InterceptWord
from gordan.rows.blocks import Blocks, Loadable
from gordan.rows.memory import Dense


def in_blocks(X):
    """Rows that are made in memory when they are needed."""
    parts = Dense(X[: len(X) // 2]), Dense(X[len(X) // 2 :])
    return Blocks([Loadable(part.n, part.entries, lambda part=part: part) for part in parts], X.shape[1], X.dtype)


# How the rows are stored.
STORED = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "blocks": in_blocks,
}


def data(n=40, d=3, gap=0.3, seed=1):
    """Return rows, exact in float32, of two classes, which overlap if the gap is negative."""
    r = np.random.default_rng(seed)
    w = r.standard_normal(d)
    X = r.standard_normal((n, d))
    y = np.where(X @ w > 0.2, 1, -1)
    return np.round((X + gap * y[:, None] * w / np.linalg.norm(w) + 0.5) * 1024) / 1024, y


def with_feature(X, column):
    return np.column_stack((X, np.full(len(X), float(column))))


@pytest.fixture
def column(monkeypatch):
    """The column of the penalized intercept."""
    monkeypatch.setattr(Intercept, "column", property(lambda kind: 4 if kind is Intercept.PENALIZED else 0))
    return 4


def agree(found, expected, tol=1e-4):
    """Require intervals, one in each row, that are narrow and have numbers in common."""
    found, expected = np.atleast_2d(found), np.atleast_2d(expected)
    assert (np.maximum(found[:, 0], expected[:, 0]) <= np.minimum(found[:, 1], expected[:, 1])).all(), (found, expected)
    assert (found[:, 1] - found[:, 0] <= tol * found[:, 1]).all(), found


def test_the_words_are_the_type():
    assert typing.get_args(InterceptWord) == tuple(Intercept)


@pytest.mark.parametrize("kind", [*Intercept])
def test_words_of_claims(kind):
    """The standalone checker has the same words, though it shares no code."""
    X, y = data()
    for find in (gordan.maximize_margin, gordan.minimize_loss):
        certificate = find(X, y, intercept=kind).certificate
        words = statement(certificate)
        assert words == standalone.Claim(json.loads(certificate.to_json())).statement()
        assert kind.in_claims in words


@pytest.mark.parametrize("shape", [(), (2,)], ids=["one plane", "two planes"])
def test_planes_there_and_back(column, shape):
    r = np.random.default_rng(0)
    w, b, mass = r.standard_normal((3, *shape)), r.standard_normal(shape), r.standard_normal(shape)
    for kind in Intercept:
        joined = kind.joined(w, b)
        again, own = kind.parted(joined)
        np.testing.assert_array_equal(again, w)
        np.testing.assert_array_equal(own, b if kind.in_norm else np.zeros(shape))
        assert kind.combined(w, mass).shape == joined.shape
        plane = np.concatenate((w, np.reshape(b, (1, *shape)))) if kind.exists else w
        inward = kind.inward(plane)
        np.testing.assert_array_equal(kind.outward(inward), plane)
        if kind.exists:
            np.testing.assert_array_equal(kind.constant() * inward[-1], b)
    np.testing.assert_array_equal(Intercept.PENALIZED.joined(w, b)[-1], b / column)
    np.testing.assert_array_equal(Intercept.PENALIZED.combined(w, mass)[-1], column * mass)
    assert Intercept.PENALIZED.constant(8.0) == column / 8


@pytest.mark.parametrize("store", STORED.values(), ids=STORED)
def test_signs_and_margins(column, store):
    X, y = data()
    A = with_feature(X, column)
    expected = gordan.maximize_margin(A, y, intercept="none", tol=1e-6)
    found = gordan.separate(store(X), y, intercept="penalized")
    agree(found.margin, expected.margin)
    result = gordan.maximize_margin(store(X), y, intercept="penalized", tol=1e-6)
    agree(result.margin, expected.margin)
    np.testing.assert_allclose(np.append(result.w, result.b / column), expected.w, atol=1e-3)
    table = np.column_stack((y, -y))
    for many in (
        gordan.separate(store(X), table, intercept="penalized"),
        gordan.maximize_margin(store(X), table, intercept="penalized"),
    ):
        agree(many.margin, np.tile(expected.margin, (2, 1)), 0.1)


@pytest.mark.parametrize(("norm", "nu"), [(1, None), (2, None), (3, None), (np.inf, None), (2, 0.4), (np.inf, 0.4)])
def test_margins_of_all_norms(column, norm, nu):
    X, y = data()
    result = gordan.maximize_margin(X, y, intercept="penalized", norm=norm, nu=nu)
    agree(result.margin, gordan.maximize_margin(with_feature(X, column), y, intercept="none", norm=norm, nu=nu).margin, 1e-3)
    assert gordan.verify(result.certificate, X, y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("store", STORED.values(), ids=STORED)
def test_losses(column, store, loss):
    for gap, C in ((-0.5, 0.01), (-0.5, 1.0), (0.3, 100.0)):
        X, y = data(gap=gap)
        A = with_feature(X, column)
        expected = gordan.minimize_loss(A, y, loss=loss, C=C, intercept="none", tol=1e-6)
        found = gordan.minimize_loss(store(X), y, loss=loss, C=C, intercept="penalized", tol=1e-6)
        agree(found.objective, expected.objective)
        assert gordan.verify(found.certificate, X, y)
        low, high = found.intercept_interval
        first, last = column * expected.coef_interval[-1]
        assert max(low, first) <= min(high, last)
        same = found.same_prediction(X)
        assert same.any()
        assert (np.sign(X @ found.w + found.b) == np.sign(A @ expected.w))[same].all()


def test_losses_from_a_start(column):
    """The plane of an earlier call is one for the rows as given, as b is in every result."""
    X, y = data(gap=-0.5)
    first = gordan.minimize_loss(X, y, intercept="penalized", tol=1e-8)
    again = gordan.minimize_loss(X, y, intercept="penalized", tol=1e-4, start=first)
    assert again.n_iter <= 1
    agree(again.objective, first.objective)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", [(40, 3), (30, 80)], ids=["few", "long"])
@pytest.mark.parametrize("store", STORED.values(), ids=STORED)
def test_tables_of_losses(column, store, shape, loss):
    X, y = data(*shape, gap=-0.3)
    Y = np.column_stack((y, np.where(X[:, 0] > 0.5, 1, -1)))
    expected = gordan.minimize_loss(with_feature(X, column), Y, loss=loss, intercept="none")
    agree(gordan.minimize_loss(store(X), Y, loss=loss, intercept="penalized").objective, expected.objective, 1e-3)


@pytest.mark.parametrize("shape", [(60, 3), (60, 900)], ids=["narrow", "wide"])
@pytest.mark.parametrize("store", STORED.values(), ids=STORED)
def test_losses_of_several_classes(column, store, shape):
    X, _ = data(*shape)
    y = (X[:, 0] > 0.7).astype(int) + (X[:, 1] > 0.7)
    expected = gordan.minimize_loss(with_feature(X, column), y, loss="multinomial", intercept="none")
    found = gordan.minimize_loss(store(X), y, loss="multinomial", intercept="penalized")
    agree(found.objective, expected.objective, 1e-3)
    ends = np.maximum(found.intercept_interval[:, 0], column * expected.coef_interval[-1, :, 0])
    assert (ends <= np.minimum(found.intercept_interval[:, 1], column * expected.coef_interval[-1, :, 1])).all()
    assert gordan.verify(found.certificate, X, y)


@pytest.mark.parametrize("loss", ["squared_hinge", "multinomial"])
def test_losses_of_wide_sparse_rows(column, loss):
    """Coordinate ascent for several label vectors, and Newton's method in the space of the rows for several classes."""
    r = np.random.default_rng(0)
    X = sp.random_array((150, 6000), density=0.01, rng=r, format="csr")
    A = sp.csr_array(sp.hstack((X, np.full((150, 1), float(column)))))
    y = r.integers(0, 3, 150) if loss == "multinomial" else np.where(r.standard_normal((150, 4)) > 0, 1, -1)
    expected = gordan.minimize_loss(A, y, loss=loss, intercept="none")
    agree(gordan.minimize_loss(X, y, loss=loss, intercept="penalized").objective, expected.objective, 1e-3)
