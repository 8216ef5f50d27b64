"""Screening is safe: what it calls idle has weight 0 at the optimum, and the game without those rows has the same value."""

from __future__ import annotations

import numpy as np
import pytest
from problems import separable

import gordan
from gordan.geometry import Simplex
from gordan.solve.screening import idle

SETS = ("simplex", "caps", "halves", "caps+halves")


def the_set(kind, n, halves, rng):
    caps = rng.uniform(2, 6, n) / n if "caps" in kind else None
    return Simplex(n, caps=caps, halves=halves if "halves" in kind else None)


def value(A, p_set):
    """γ* and p*, by the double oracle to its end."""
    trace = gordan.play(A, "double_oracle", 200, caps=p_set.caps, halves=p_set.halves)
    assert trace.gap[-1] < 1e-8
    return trace.upper[-1], trace.p_best


def random_point(p_set, rng, sharp):
    """A p of the set near one of its vertices, or anywhere."""
    return np.exp(p_set.log_softmax(sharp * rng.standard_normal(p_set.n)))


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("seed", range(6))
def test_idle_rows_do_not_matter(kind, seed):
    rng = np.random.default_rng(seed)
    problem = separable(60, 5, 0.1, seed=seed, halves=True)
    A = problem.A
    n = len(A)
    p_set = the_set(kind, n, problem.halves, rng)
    gamma, best = value(A, p_set)
    found = 0
    for k in range(40):
        near = 0.5 ** rng.integers(0, 14)  # from far to all but optimal
        p = (1 - near) * best + near * random_point(p_set, rng, 3)
        w = A.T @ p
        lower = gamma * rng.choice([0.0, 0.9, 0.999, 1 - 1e-6])
        rows = idle(A @ w, np.linalg.norm(A, axis=1), p_set, float(np.linalg.norm(w)), lower)
        assert best[rows].max(initial=0.0) < 1e-9
        found += int(rows.sum())
        if k % 10 == 9 and rows.any():
            kept = ~rows
            part = Simplex(
                int(kept.sum()),
                caps=None if p_set.caps is None else p_set.caps[kept],
                halves=None if p_set.halves is None else p_set.halves[kept],
            )
            assert value(A[kept], part)[0] == pytest.approx(gamma, rel=1e-7)
    assert found > 0  # or nothing was tested


def test_nothing_is_idle_without_a_bracket():
    """With lower = 0 and a far w every row may matter."""
    A = separable(20, 3, 0.1, seed=1).A
    n = len(A)
    w = A.T @ np.full(n, 1 / n)
    rows = idle(A @ w, np.linalg.norm(A, axis=1), Simplex(n), float(np.linalg.norm(w)), 0.0)
    assert not rows.any()
