"""Small problems whose columns depend on each other exactly, nearly or not at all: duplicates, dummies, constants, sums.

Tables of labels for one X, each held against exact arithmetic and both checkers, and certificates with float weights to be
changed. `test_many` and `test_mutations` have some of each, `make fuzz` as many as the time allows.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import mutations
import numpy as np
import oracle
from checkers import both
from test_verified import FAMILIES as MAKERS
from test_verified import INTERCEPTS, KINDS, claims, problem_of

import gordan

FAMILIES = {family.__name__: family for family in MAKERS}


def with_both_signs(Y):
    """The same labels, but rows are left out only where there are both signs: other columns are refused."""
    unclear = (Y == 0).any(axis=0) & ((Y >= 0).all(axis=0) | (Y <= 0).all(axis=0)) & (Y.dtype != bool)
    return np.where(unclear & (Y == 0), np.where((Y > 0).any(axis=0), -1, 1), Y) if unclear.any() else Y


def signed(X, y, intercept):
    """The rows y(x, 1) that count, as fractions."""
    A = X if intercept == "none" else np.column_stack([X, np.ones(len(X))])
    return [[int(s) * Fraction(float(x)) for x in row] for s, row in zip(y, A, strict=True) if s]


def chunk(family, intercept, seed, size):
    """`size` label vectors of one X: how often each verdict came out, and the faults with where they are."""
    r, statuses, faults = np.random.default_rng([*f"{family} {intercept} {seed}".encode()]), Counter(), []
    X = FAMILIES[family](r, int(r.integers(2, 10)), int(r.integers(1, 5)))
    Y = with_both_signs(r.choice((-1, 1, 0), (len(X), size), p=(0.45, 0.45, 0.1)))
    if not (Y < 0).any():
        Y[:, 0] *= -1
    many = gordan.separate(X, Y, intercept=intercept)
    for j, own in enumerate(many):
        y, rows = Y[:, j], signed(X, Y[:, j], intercept)
        statuses[str(own.status)] += 1
        where = f"tables, {family}, {intercept}, seed {seed!r}, column {j}: {own.status}\n  X = {X.tolist()}\n  y = {y.tolist()}"
        truth = oracle.separable(rows)
        if own.separable not in (truth, None):
            faults.append(("wrong verdict", where))
        if both(own.certificate, X, y) != (True, True):
            faults.append(("valid certificate rejected", where))
        if truth and intercept != "free":
            lower, upper = own.margin
            if not Fraction(lower) ** 2 <= oracle.squared_margin(rows) or (
                upper < np.inf and Fraction(upper) ** 2 < oracle.squared_margin(rows)
            ):
                faults.append(("invalid bracket", f"{where}\n  margin = {own.margin}"))
    return statuses, faults


def verified(r):
    """A certificate with float weights, of one of the three kinds, that both checkers accept, and what it is about."""
    kind = r.choice(KINDS)
    while True:
        generator = np.random.default_rng(r.getrandbits(64))
        X, y = problem_of(generator, r.choice(MAKERS))
        for found in claims(generator, X, y, r.choice(INTERCEPTS)):
            if found.kind == kind and both(found, X.tolist(), y.tolist()) == (True, True):
                return found, X.tolist(), y.tolist()


def changed(seed, bases, each):
    """`each` changes of each of `bases` such certificates, as `mutations.run` has them."""
    return mutations.run(f"floats {seed}", bases, each, verified)
