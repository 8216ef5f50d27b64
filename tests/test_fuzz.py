"""Verdicts, brackets and certificates of `separate` against the exact oracle, on small problems made to be difficult.

10,000 instances here; `pytest --soak -m soak tests/test_fuzz.py` runs 180,000 others, and GORDAN_FUZZ=N multiplies those by N.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import oracle
import pytest
import scipy.sparse as sp

import gordan
from gordan.certificates import standalone

INTERCEPTS = ("free", "none", "penalized")
CHUNKS, SIZE = 1, 556
SOAK_CHUNKS, SOAK_SIZE = 10 * int(os.environ.get("GORDAN_FUZZ", "1")), 1000


def small_integers(r, n, d):
    """Entries -3..3, with labels by chance or by a plane."""
    X = [[r.randint(-3, 3) for _ in range(d)] for _ in range(n)]
    if r.random() < 0.5:
        return X, [r.randint(0, 1) for _ in X]
    w, b = [r.randint(-3, 3) for _ in range(d)], r.randint(-1, 1)
    return X, [int(sum(x * v for x, v in zip(row, w, strict=True)) + b > 0) for row in X]


def tiny_margin(r, n, d):
    """Two copies of the same integer points; only a column of ±2⁻ᵏ tells the classes apart, and sometimes it is wrong once."""
    tiny = 2.0 ** -r.randint(1, 200)
    points = [[r.randint(-3, 3) for _ in range(d - 1)] for _ in range((n + 1) // 2)]
    y = [i % 2 for i in range(n)]
    X = [[*points[i // 2], tiny if y[i] else -tiny] for i in range(n)]
    if r.random() < 0.5:
        row = r.choice(X)
        row[-1] = r.choice([-row[-1], 0.0, row[-1] / 2, 3 * row[-1]])
    return X, y


def boundary(r, n, d):
    """Rows on the right side of a plane or on it, and rows on the plane that balance: γ* is 0 and a separator all but exists."""
    w = [r.choice([-2, -1, 1, 2]) for _ in range(d)]
    X, y = small_integers(r, n, d)
    y = [int(sum(x * v for x, v in zip(row, w, strict=True)) >= 0) for row in X]
    ends = [_onto([r.randint(-3, 3) for _ in range(d)], w) for _ in range(2)]
    X += [*ends, [Fraction(a + b, 2) for a, b in zip(*ends, strict=True)], [-x for x in ends[0]]]
    return X[-12:], [*y, 1, 1, 0, 1][-12:]


def _onto(x, w):
    """An integer multiple of the projection of x onto the plane w·x = 0."""
    square, product = sum(v * v for v in w), sum(a * b for a, b in zip(x, w, strict=True))
    return [square * a - product * b for a, b in zip(x, w, strict=True)]


def duplicates(r, n, d):
    """Few different points, many times; rarely with both labels."""
    X, y = small_integers(r, (n + 3) // 4, d)
    chosen = [r.randrange(len(X)) for _ in range(n)]
    return [X[i] for i in chosen], [y[i] if r.random() < 0.97 else 1 - y[i] for i in chosen]


def huge_exponents(r, n, d):
    """Entries m·2ᵉ with e from -300 to 300."""
    X, y = small_integers(r, n, d)
    columns = [r.randint(-300, 300) for _ in range(d)] if r.random() < 0.3 else None
    return [[math.ldexp(x, columns[j] if columns else r.randint(-300, 300)) for j, x in enumerate(row)] for row in X], y


def cancelling(r, n, d):
    """Points along (1, -1, …) with entries up to 2⁵², off that line by a few units: scores cancel to their last bits."""
    X, y = [], []
    for _ in range(n):
        large, off = r.randint(-(2**52), 2**52), r.randint(-2, 2)
        X.append([large, off - large, *(r.randint(-1, 1) for _ in range(d - 2))][:d])
        y.append(int(off > 0) if r.random() < 0.9 else r.randint(0, 1))
    return X, y


FAMILIES = {make.__name__: make for make in (small_integers, tiny_margin, boundary, duplicates, huge_exponents, cancelling)}


def instance(family, r):
    """One problem of the family with both classes: float64 X, list y."""
    X, y = FAMILIES[family](r, r.randint(2, 12), r.randint(1, 4))
    if len({*y}) == 1:
        y = [1 - y[0], *y[1:]]
    return np.array(X, dtype=np.float64), y


def signed(X, y, intercept):
    """The rows y_i x_i, or y_i (x_i, 1), exactly."""
    constant = [] if intercept == "none" else [1]
    return [[Fraction(x) * (1 if label else -1) for x in [*row, *constant]] for row, label in zip(X.tolist(), y, strict=True)]


def squared_margin(X, y, intercept):
    """γ*² by the oracle."""
    if intercept == "free":
        return oracle.squared_margin_free(X.tolist(), y)
    return oracle.squared_margin(signed(X, y, intercept))


def check_instance(X, y, intercept, max_iter, storage):
    """Everything that is promised about one verdict on X, stored dense or sparse; returns its status."""
    verdict = gordan.separate(storage(X), y, intercept=intercept, max_iter=max_iter)
    rows = signed(X, y, intercept)
    truth = oracle.separable(rows)
    assert verdict.separable in (None, truth)
    square = squared_margin(X, y, intercept) if truth else Fraction(0)
    assert (square > 0) == truth
    lower, upper = verdict.margin
    assert lower >= 0
    assert Fraction(lower) ** 2 <= square
    assert math.isinf(upper) or square <= Fraction(upper) ** 2
    certificate = verdict.certificate
    if verdict.status == "undecided":
        assert certificate is None
        return verdict.status
    assert gordan.verify(certificate, X, y)
    text = certificate.to_json()
    assert standalone.check(json.loads(text), X.tolist(), y) == (True, "accepted")
    assert gordan.Certificate.from_json(text) == certificate
    if verdict.witness is not None:
        weights = verdict.witness.weights
        assert all(type(weight) is int and weight > 0 for weight in weights)
        assert math.gcd(*weights) == 1
        assert len(weights) <= oracle.rank(rows) + 1
    return verdict.status


def check_chunk(family, intercept, seed, size, rounds):
    """`size` instances; what stays open is at most 1% but for tiny margins, where it is printed."""
    r = random.Random(f"{family} {intercept} {seed}")
    found = Counter()
    for _ in range(size):
        X, y = instance(family, r)
        found[check_instance(X, y, intercept, r.choice(rounds), r.choice((np.asarray, np.asarray, sp.csr_array)))] += 1
    print(f"{family}, {intercept}, seed {seed}: {dict(found)}")
    still_open = found["undecided"] + found["margin-below-tol"]
    assert family == "tiny_margin" or still_open <= 0.01 * size


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_fuzz(family, intercept, chunk):
    """10,008 instances, with few rounds of the game: its brackets hold whenever it stops."""
    check_chunk(family, intercept, chunk, SIZE, (1, 10, 40))


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(SOAK_CHUNKS))
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_fuzz_soak(family, intercept, chunk):
    """The long run, with the default number of rounds, too."""
    check_chunk(family, intercept, f"soak {chunk}", SOAK_SIZE, (None, 3, 40))


@pytest.mark.parametrize("family", FAMILIES)
def test_oracle_agrees_with_itself(family):
    """Its two methods, an exact linear program and an exact minimum-norm point, give the same answer for each intercept."""
    r = random.Random(family)
    for _ in range(40):
        X, y = instance(family, r)
        for intercept in INTERCEPTS:
            assert oracle.separable(signed(X, y, intercept)) == (squared_margin(X, y, intercept) > 0)
