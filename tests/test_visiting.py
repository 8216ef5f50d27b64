"""Dual coordinate ascent, and conjugate gradients on a few rows, over every storage and type."""

from __future__ import annotations

import time

import numpy as np
import pytest
from test_rows import DTYPES, STORAGES, as_stored, close, matrix, pair_of

from gordan import rows
from gordan.rows import Ascent, Face, Offset, StoppingRule, equalize_scores, visiting


def ascent(storage, dtype=np.float64, *, caps=False, free=False, constant=False, seed=7):
    """An ascent at x = 0 with the matrix of its problem and its offsets: max Σ(1 - o_i)x_i - ½‖Bᵀx‖², 0 ≤ x ≤ caps."""
    n, d = 40, 5
    X = matrix(n, d, dtype, seed)
    signs = np.where(X[:, 0] + 0.3 * X[:, 1] >= 0, 1, -1)
    X[:, 0] += (0.3 * signs).astype(dtype)  # separable, so that x is bounded
    made, twin = pair_of(X, storage, signs, constant=constant, scale=0.5)
    going = Ascent(made, made.squares(), np.zeros(n), np.zeros(made.d + 1), caps=np.linspace(0.5, 3.0, n) if caps else None)
    B, offsets = np.column_stack([twin.A, np.zeros(n)]), np.zeros(n)
    if free:
        sides = np.where(np.arange(n) % 3 == 0, -1, 1).astype(np.int8)
        going.intercept = Offset(sides, 0.7, 0.2)
        B[:, -1], offsets = 0.7 * sides, 0.2 * sides
    return going, B, offsets


VARIANTS = [
    {},
    {"caps": True},
    {"free": True},
    {"caps": True, "free": True},
    {"constant": True},
    {"constant": True, "caps": True},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "+".join(v) or "plain")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("storage", STORAGES)
def test_ascent_rises_to_the_optimum(storage, dtype, variant):
    going, B, offsets = ascent(storage, dtype, **variant)
    x, w = going.x, going.w
    caps = np.full(len(x), np.inf) if going.caps is None else going.caps
    heights = [0.0]
    for epoch in range(20):
        going.unshrink()
        done = going.run_epochs(1, seed=epoch + 1)
        assert done.epochs == 1
        assert (x >= 0).all()
        assert (x <= caps).all()
        close(w, B.T @ x, np.abs(B).T @ x)
        heights.append(float((1 - offsets) @ x - 0.5 * np.sum((B.T @ x) ** 2)))
        assert heights[-1] >= heights[-2] - 1e-12 * abs(heights[-1])
    assert heights[-1] > 0
    for part in range(40):
        going.unshrink()
        done = going.run_epochs(100, seed=part)
        if done.violation <= 1e-11 and done.epochs < 3:
            break
    gradient = B @ w + offsets - 1
    assert (gradient[x == 0] >= -1e-8).all()
    assert (gradient[x == caps] <= 1e-8).all()
    inside = (x > 0) & (x < caps)
    assert inside.any()
    assert np.abs(gradient[inside]).max() <= 1e-8


@pytest.mark.parametrize("reflect", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
def test_ascent_until_separated(storage, reflect):
    going, B, _ = ascent(storage)
    done = going.run_epochs(500, until_separated=True, reflect=reflect)
    assert done.epochs < 500
    assert done.lowest > 0
    close(going.w, B.T @ going.x, np.abs(B).T @ going.x)


def test_a_step_that_reflects_mirrors_w():
    """At the plane A_1·w = 1, on whose wrong side it is; the other row is beyond its plane and does not give back."""
    A = np.array([[2.0, 1.0], [0.0, 3.0]])
    going = Ascent(rows.of(A), np.sum(A**2, axis=1), np.array([0.0, 1.0]), np.array([0.0, 0.5, 0.0]))
    going.run_epochs(1, reflect=True)
    assert going.x == pytest.approx([2 * (1 - 0.5) / 5, 1.0])
    assert A[0] @ going.w[:2] == pytest.approx(2 - 0.5)


@pytest.mark.parametrize("storage", STORAGES)
def test_the_rows_that_an_epoch_turns_are_counted(storage):
    """From x = 0 they are those that have weight after it."""
    going, _, _ = ascent(storage)
    met = going.run_epochs(1)
    assert 0 < met.turned == np.count_nonzero(going.x) / going.rows.n


def test_ascent_is_repeatable():
    ends = []
    for seed in (1, 1, 2):
        going, _, _ = ascent("sparse")
        going.run_epochs(3, seed=seed)
        ends.append(going.x)
    np.testing.assert_array_equal(ends[0], ends[1])
    assert (ends[0] != ends[2]).any()


@pytest.mark.parametrize("storage", STORAGES)
def test_ascent_goes_on_with_the_rows_that_do_not_rest(storage):
    going, B, _ = ascent(storage)
    made = going.rows
    counts = [made.n]
    for part in range(30):
        before = made.passes
        going.run_epochs(2, seed=part)
        assert sorted(going.order) == list(range(made.n))
        assert made.passes - before <= 2 * counts[-1] / made.n + 1e-12
        counts.append(int(going.shrinking[0]))
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < made.n
    close(going.w, B.T @ going.x, np.abs(B).T @ going.x)
    going.unshrink()
    assert going.shrinking[0] == made.n


@pytest.mark.parametrize("storage", STORAGES)
def test_ascent_ends_when_it_is_quiet(storage):
    turned = []
    for quiet in (1.0, -1.0):
        done = ascent(storage)[0].run_epochs(50, quiet=quiet)
        turned.append((done.epochs, done.turned))
    assert turned[0][0] == 1
    assert turned[1][0] > 1
    assert turned[1][1] < turned[0][1]


@pytest.mark.parametrize("quiet", [1.0, 0.05, -1.0])
def test_a_deadline_that_is_far_changes_no_ascent(quiet, monkeypatch):
    """With a deadline the epochs are run in pieces, here of one epoch each."""
    monkeypatch.setattr(visiting, "SECONDS_PER_CHECK", 0.0)
    with_deadline, without = ascent("dense")[0], ascent("dense")[0]
    with_deadline.deadline = time.perf_counter() + 1000
    assert with_deadline.run_epochs(20, quiet=quiet) == without.run_epochs(20, quiet=quiet)
    assert with_deadline.x.tolist() == without.x.tolist()


@pytest.mark.parametrize("empty", [0, 500])  # columns that no row uses: sparse rows are then visited without them
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("storage", STORAGES)
def test_level_is_the_stationary_point(storage, dtype, halves, constant, empty):
    rng = np.random.default_rng(3)
    X = np.column_stack((matrix(30, 40, dtype), np.zeros((30, empty), dtype)))
    signs = np.where(rng.random(30) < 0.5, -1, 1)
    made = rows.of(as_stored(X, storage), signs, constant=constant).scaled(0.25)
    A = 0.25 * signs[:, None] * np.column_stack((X.astype(np.float64), np.ones((30, int(constant)))))
    i = np.sort(rng.choice(30, 20, replace=False))
    groups = (signs[i] < 0).astype(np.int64) if halves else np.zeros(20, np.int64)
    mass = np.array([0.7, 0.3]) if halves else np.ones(1)
    G = np.eye(len(mass))[groups]
    pull = 0.1 * rng.standard_normal(20)
    K = A[i] @ A[i].T
    exact = np.linalg.solve(np.block([[K, G], [G.T, np.zeros((len(mass), len(mass)))]]), np.concatenate((-pull, mass)))[:20]
    z = rng.random(20)
    face = Face(i, groups, mass, pull, np.diag(K), np.full(20, np.inf))
    steps, spread = equalize_scores(made, face, z, StoppingRule(1e-11, 0.0, 500))
    assert 0 < steps < 500
    assert spread <= 1e-11
    np.testing.assert_allclose(z @ G, mass, atol=1e-12)
    np.testing.assert_allclose(z, exact, atol=1e-7 * np.abs(exact).max())
    # known scores are taken as they are; nothing is left to do
    assert equalize_scores(made, face, z.copy(), StoppingRule(1e-9, 0.0, 500), K @ z + pull)[0] == 0
    # weights out of bounds end it at the rough target
    if (exact < 0).any():
        rough = equalize_scores(made, face, np.full(20, 0.05), StoppingRule(1e-11, 1e-3, 500))
        assert rough[0] < steps
        assert rough[1] <= 1e-3
    # it can be asked to stop
    assert equalize_scores(made, face, np.full(20, 0.05), StoppingRule(0.0, 0.0, 500, lambda: False))[0] == 0


@pytest.mark.parametrize("storage", STORAGES)
def test_level_goes_on_from_the_rough_target_where_the_weights_are_within_bounds(storage):
    X = matrix(12, 15, np.float64)
    made, K = rows.of(as_stored(X, storage)), X @ X.T
    inside = np.linspace(1.0, 2.0, 12) / 18  # sums to 1

    def fill_level(z, cap, most):
        face = Face(np.arange(12), np.zeros(12, np.int64), np.ones(1), -K @ inside, np.diag(K), np.full(12, cap))
        return equalize_scores(made, face, z, StoppingRule(1e-11, 1e-2, most))

    z = np.full(12, 1 / 12)
    steps, spread = fill_level(z, np.inf, 100)
    assert spread <= 1e-11
    np.testing.assert_allclose(z, inside, atol=1e-10)
    fewer, rough = fill_level(np.full(12, 1 / 12), 0.1, 100)  # less than some of `inside`
    assert fewer < steps
    assert 1e-11 < rough <= 1e-2
    # no more steps than allowed, and z is what they have reached
    z = np.full(12, 1 / 12)
    steps, spread = fill_level(z, np.inf, 2)
    gradient = K @ (z - inside)
    assert steps == 2
    assert spread > 1e-11
    assert gradient @ (z - inside) < (1 / 12 - inside) @ K @ (1 / 12 - inside)


def test_level_does_not_step_where_nothing_moves():
    """The rows are one point: weight moved between them moves nothing, and there is no end to it where one is pulled more."""
    z, one = np.array([0.25, 0.75]), rows.of([[4.0, 4.0], [4.0, 4.0]])  # powers of two: no rounding
    pull = np.array([0.0, 2.0**-20])
    face = Face(np.arange(2), np.zeros(2, np.int64), np.ones(1), pull, np.full(2, 32.0), np.full(2, np.inf))
    found = equalize_scores(one, face, z, StoppingRule(0.0, 0.0, 9))
    assert found == (0, 0.0)
    assert z.tolist() == [0.25, 0.75]
