"""Witnesses that are proved in floats: held against exact arithmetic, by both checkers; and what verdicts make of them."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import random
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import modes
import numpy as np
import oracle
import pytest
import scipy.sparse as sp
from checkers import both, unchecked
from mutations import is_true
from scipy.optimize import linprog

import gordan
from gordan.certificates import standalone, verified
from gordan.certificates.margins import Margin
from gordan.certificates.matrix import CLAIM
from gordan.certificates.problem import Problem
from gordan.certificates.verify import deviation
from gordan.cli import demo  # noqa: F401 (declares fields)
from gordan.cli.fields import fields
from gordan.intercepts import Intercept
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Asks, Budget, Question, Subject
from gordan.solve import cancelling, overlapping, untangling
from gordan.solve.cone import independent_columns

INTERCEPTS = ("free", "none", "penalized")


# ---- small problems with columns that depend on each other, or nearly ------------------------------------------------


def gaussian(r, n, d):
    return r.standard_normal((n, d))


def integers(r, n, d):
    return r.integers(-2, 3, (n, d)).astype(float)


def duplicates(r, n, d):
    X = r.standard_normal((n, d))
    X[:, -1] = X[:, 0] * r.choice((1.0, -1.0, 3.0, 2.0**-30, 2.0**40))
    return X


def dummies(r, n, d):
    """Columns that add up to the constant, and some of the levels missing."""
    X = np.eye(d)[r.integers(0, d, n)]
    X[:, 0] += r.choice((0.0, 2.0))
    return X


def constants(r, n, d):
    X = r.integers(-3, 4, (n, d)).astype(float)
    X[:, r.integers(0, d)] = r.choice((0.0, 1.0, 0.1, 3.0))
    return X


def sums(r, n, d):
    X = r.integers(-4, 5, (n, d)) / r.choice((1.0, 8.0, 3.0))
    X[:, -1] = X[:, :-1].sum(axis=1) + r.choice((0.0, 1.0))
    return X


def powers(r, n, d):
    return np.ldexp(r.standard_normal((n, d)), r.integers(-40, 41, (n, 1)) + r.integers(-40, 41, (1, d)))


def last_bits(r, n, d):
    """A duplicate, or an opposite row, but for a last bit somewhere."""
    X = r.integers(-2, 3, (n, d)) / 3
    X[:, -1] = X[:, 0]
    i = r.integers(0, n)
    X[i, -1] = np.nextafter(X[i, -1], r.choice((-9.0, 9.0)))
    if n > 1:
        X[0] = X[1] if r.random() < 0.5 else -X[1]
    return X


def rare(r, n, d):
    """Columns in which few rows have entries, so that those of a witness often have none."""
    return r.integers(-2, 3, (n, d)) * (r.random((n, d)) < r.choice((0.2, 0.4, 0.7))) + 0.0


FAMILIES = (gaussian, integers, duplicates, dummies, constants, sums, powers, last_bits, rare)


def problem_of(r, family):
    n, d = int(r.integers(2, 10)), int(r.integers(1, 5))
    X, y = family(r, n, d), r.integers(0, 2, n)
    y[0], y[1] = 0, 1
    return X, y


def signed(X, y, intercept):
    A = np.where(np.asarray(y) > 0, 1.0, -1.0)[:, None] * (X if intercept == "none" else np.column_stack([X, np.ones(len(X))]))
    return [[Fraction(float(x)) for x in row] for row in A]


KINDS = ("verified-witness", "verified-quasi-separation", "verified-overlap")


def truths(X, y, intercept):
    """Whether the data is inseparable, whether it is separated quasi-completely, and whether it overlaps, in exact arithmetic."""
    rows = signed(X, y, intercept)
    overlap = oracle.weakly(rows, [sum(column) for column in zip(*rows, strict=True)]) == 0
    inseparable = not oracle.separable(rows)
    return dict(zip(KINDS, (inseparable, inseparable and not overlap, overlap), strict=True))


def proposals(r, X, y, intercept):
    """Rows and weights that may cancel: a vertex, a point inside, and something else."""
    A = np.array(signed(X, y, intercept), dtype=float)
    A = A / np.maximum(np.abs(A).max(axis=1), 1e-300)[:, None]
    for cost in (r.random(len(A)), np.zeros(len(A))):
        method = "highs-ds" if cost.any() else "highs-ipm"
        equations = np.vstack([(A / np.maximum(np.abs(A).max(axis=0), 1e-300)).T, np.ones(len(A))])
        found = linprog(cost, A_eq=equations, b_eq=np.append(np.zeros(A.shape[1]), 1.0), method=method)
        if found.status == 0:
            yield (
                np.flatnonzero(found.x > 1e-9),
                found.x / np.maximum(np.abs(np.array(signed(X, y, intercept), float)).max(axis=1), 1e-300),
            )
    yield np.sort(r.choice(len(A), r.integers(1, len(A) + 1), replace=False)), r.random(len(A)) + 1e-3


def claims(r, X, y, intercept):
    """Certificates of each kind from what the proposals suggest, and some from weights as they come."""
    problem = Problem.of(X, y)
    direction = gordan.diagnose(X, y, intercept=intercept).direction
    d = X.shape[1]
    plane = [] if direction is None else [*direction.values(), 0][: d + 1]
    for support, p in proposals(r, X, y, intercept):
        if not len(support):
            continue
        found = cancelling.in_floats(problem, support, p[support], Intercept(intercept))
        weights = p[support] if found is None else found.weights
        dependent = () if found is None else found.dependent
        for kind in KINDS:
            found = {"rows": tuple(support.tolist()), "weights": tuple(weights.tolist()), "dependent": dependent}
            if kind == "verified-quasi-separation":
                if not plane or max(map(abs, plane)) > 2**53:
                    continue
                found |= {"w": tuple(map(float, plane[:d])), "b": float(plane[d])}
            yield gordan.Certificate(kind, intercept, (0, 1), X.shape, **found)


def search(seed, count, family):
    """Count claims that are true and accepted, by each checker; every one that is accepted must be true."""
    r = np.random.default_rng((seed, FAMILIES.index(family)))
    counts = Counter()
    for _ in range(count):
        X, y = problem_of(r, family)
        intercept = INTERCEPTS[r.integers(0, 3)]
        true = truths(X, y, intercept)
        proved = Counter()
        for certificate in claims(r, X, y, intercept):
            accepted = both(certificate, X.tolist(), y.tolist())
            assert true[certificate.kind] or accepted == (False, False), (certificate, X, y)
            proved[certificate.kind] = max(proved[certificate.kind], sum(accepted))
        counts += Counter({(kind, truth and f"proved by {proved[kind]}"): 1 for kind, truth in true.items()})
    return counts


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_proved_is_true(family):
    counts = search(0, 120, family)
    for kind in ("verified-witness", "verified-overlap"):
        assert counts[kind, "proved by 2"] > 10
        assert counts[kind, False] > 5
    if family in (integers, dummies, sums, last_bits):  # data of the others is hardly ever separated quasi-completely
        assert counts["verified-quasi-separation", "proved by 2"] > 5


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 13))
@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_proved_is_true_soak(family, seed):
    print(family.__name__, seed, dict(search(seed, 210, family)))


# ---- columns in which a witness has no entries ---------------------------------------------------------------------------


def factors(n, levels, seed=0):
    """The dummies of factors with so many levels and a measured column, as CSR, and labels from a logistic model."""
    r = np.random.default_rng(seed)
    blocks = [sp.csr_array((np.ones(n), (np.arange(n), r.integers(0, m, n))), shape=(n, m)) for m in levels]
    X = sp.csr_array(sp.hstack([*blocks, r.standard_normal((n, 1))]))
    return X, (X @ r.standard_normal(X.shape[1]) + r.logistic(size=n) > 0).astype(int)


def test_rows_in_few_of_many_columns_are_a_witness():
    """A factor of many levels: the rows of few levels overlap, and the columns of the others need not be mentioned."""
    X, y = factors(4000, (3, 8, 700))
    v = gordan.separate(X, y)
    c = v.certificate
    assert (v.status, c.kind) == ("not-separable", "verified-witness")
    assert np.count_nonzero(abs(X[list(c.rows)]).sum(axis=0)) < 400
    assert gordan.verify(c, X, y)
    assert gordan.verify(c, X.toarray(), y)
    small = X[list(c.rows)].toarray(), y[list(c.rows)]
    part = replace(c, rows=tuple(range(len(c.rows))), shape=small[0].shape, data_hash=None)
    assert both(part, small[0].tolist(), small[1].tolist()) == (True, True)
    # they do not span the other rows, and with another sign one of them does not cancel
    assert both(replace(part, kind="verified-overlap"), small[0].tolist(), small[1].tolist()) == (False, False)
    small[1][0] = 1 - small[1][0]
    assert both(part, small[0].tolist(), small[1].tolist()) == (False, False)
    m = gordan.MaxMarginClassifier()
    with pytest.warns(gordan.InseparableWarning):
        m.fit(X, y)
    assert m.separable_ is False


def test_exact_weights_of_rows_in_few_of_many_columns():
    """Columns in which the rows are 0 are no part of the equations, and weights of 0, which dummies make, do no harm."""
    X, y = factors(4000, (3, 8, 700))
    for intercept in INTERCEPTS:
        v = gordan.separate(X, y, intercept=intercept)
        assert not v.stated_witness.exact
        exact = v.find_witness(time_limit=60)
        assert {*exact.rows} <= {*v.stated_witness.rows}
        witness = gordan.Certificate("witness", intercept, (0, 1), X.shape, rows=exact.rows, weights=exact.weights)
        assert gordan.verify(witness, X, y)


def test_exact_weights_take_no_longer_with_columns_in_which_the_rows_are_zero():
    X, y = factors(4000, (3, 8, 700))
    v = gordan.separate(sp.csr_array(sp.hstack([X, sp.csr_array((len(y), 10**6))])), y)
    assert not v.stated_witness.exact
    started = time.process_time()
    assert v.witness is not None
    assert time.process_time() - started < 4  # with a million columns of each row it is half a minute


def test_rows_with_pure_columns_are_left_out():
    """A row with an entry in a column of one sign has weight 0 in every witness; leaving it out may make other columns pure."""
    A = sp.csr_array(np.array([[1.0, 1, 0, 0], [0, -1, 0, 1], [0, 0, 1, -1], [0, 0, -1, 1], [0, 0, 2, -1]]))
    rows, columns = overlapping._without_pure_columns(A)
    assert (rows.tolist(), columns.tolist()) == ([2, 3, 4], [2, 3])


def test_pure_columns_are_left_out_in_time():
    """Here each row that is left out makes one more column pure, and the other columns must not be looked at each time."""
    k = 1400
    A = sp.diags_array([np.ones(k), -np.ones(k)], offsets=[0, 1], shape=(k, 4 * 10**6), format="csr")
    started = time.process_time()
    rows, columns = overlapping._without_pure_columns(A)
    assert (len(rows), len(columns)) == (0, 0)
    assert time.process_time() - started < 1


# ---- near the border -------------------------------------------------------------------------------------------------


def null_vector(S):
    """The x with Σ x_i S_i = 0 and x_k = 1, for r + 1 rows of r columns; None if there is not just one."""
    k, r = len(S), len(S[0])
    table = [[Fraction(float(S[i][j])) for i in range(k)] for j in range(r)]
    for c in range(r):
        pivot = next((i for i in range(c, r) if table[i][c]), None)
        if pivot is None:
            return None
        table[c], table[pivot] = table[pivot], table[c]
        table[c] = [x / table[c][c] for x in table[c]]
        for i in range(r):
            if i != c:
                table[i] = [a - table[i][c] * b for a, b in zip(table[i], table[c], strict=True)]
    return [*(-table[i][-1] for i in range(r)), Fraction(1)]


def near_the_border(r):
    """Rows whose exact weights have one near 0, on either side, and the weights as floats."""
    d = int(r.integers(1, 7))
    S = r.standard_normal((d + 1, d)) * 10.0 ** r.integers(-3, 4, (d + 1, 1))
    p = r.random(d + 1) + 0.1
    small = r.integers(0, d)
    p[small] = r.choice((1.0, -1.0)) * 10.0 ** -r.uniform(3, 20)
    S[-1] = -(p[:-1] @ S[:-1]) / p[-1]
    return S, np.abs(p) * (1 + r.choice((0.0, 1e-15, 1e-12)) * r.standard_normal(d + 1))


def border(seed, count):
    """How often each checker proves that weights are positive: never where one is not."""
    r, counts = np.random.default_rng(seed), Counter()
    for _ in range(count):
        S, p = near_the_border(r)
        x = null_vector(S)
        if x is None:
            continue
        true = all(weight > 0 for weight in x)
        proved, claimed = (verified.cancelling(S, p, slack) < math.inf for slack in (1.0, CLAIM))
        exactly = standalone.positive_solution([[Fraction(float(v)) for v in row] for row in S], [Fraction(float(v)) for v in p])
        assert true or not (proved or exactly), (S, p)
        assert (proved and exactly) or not claimed, (S, p)  # what is claimed, both checkers accept
        counts[true, proved, exactly] += 1
    return counts


def test_weights_near_zero():
    counts = border(0, 1500)
    assert counts[True, True, True] > 300
    assert counts[False, False, False] > 300
    assert counts[True, False, False] > 0  # too near to tell


def least_proved(rows, p):
    """The least last weight with which the standalone checker proves that the rows cancel, by bisection."""
    low, high = 0.0, p[-1]
    while (middle := (low + high) / 2) not in (low, high):
        proved = standalone.positive_solution(rows, [*map(Fraction, (*p[:-1], middle))])
        low, high = (low, middle) if proved else (middle, high)
    return high


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_last_bit_of_a_weight(d):
    """Both checkers accept the same weights to the last bit, also if X has many rows beside those of the certificate."""
    r, verdicts = np.random.default_rng(d), Counter()
    for kind in ("verified-witness", "verified-overlap") * 2:
        S = np.abs(r.standard_normal((d + 2, d))) * 2.0 ** r.integers(-30, 30, d)
        p = [*map(float, r.random(d + 2) + 0.5)]
        S[-1] = -(p[:-1] @ S[:-1]) / p[-1]
        X, rows = np.tile(S, (5000 // S.size + 1, 1)), [[*map(Fraction, row)] for row in S.tolist()]
        least = least_proved(rows, p)
        for weight in (least, math.nextafter(least, 0.0), math.nextafter(least, 1.0)):
            c = gordan.Certificate(kind, "none", (0, 1), X.shape, rows=tuple(range(d + 2)), weights=(*p[:-1], weight))
            first, second = both(c, X, np.ones(len(X), int))
            assert first == second
            verdicts[first] += 1
        assert not oracle.separable(rows)
    assert min(verdicts[True], verdicts[False]) >= 4


def test_rounding_does_not_choose_the_basis():
    """Rows of a minimal witness are equally large when they are eliminated, and what Q proves about further rows depends on which
    of them it uses: both checkers must choose alike, and try both."""
    X = np.array([[1.5422753682720236e-06], [-4.619401838396146e-13], [-0.00010969546911413237], [2.7934614872910397e-08]])
    weights = tuple(map(float.fromhex, ("0x1.f8e6ba8203492p-2", "0x1p-1", "0x1.c6515f7f2db77p-8", "0x1.f8e6ba8203492p-2")))
    c = gordan.Certificate("verified-overlap", "penalized", (0, 1), (4, 1), rows=(0, 1, 2, 3), weights=weights)
    assert both(c, X, [0, 1, 0, 1]) == (True, True)
    for order in itertools.permutations(range(4)):
        other = replace(c, rows=order, weights=tuple(weights[i] for i in order))
        first, second = both(other, X, [0, 1, 0, 1])
        assert first == second


@pytest.mark.parametrize("name", [None, *modes.MODES])
def test_combinations_with_weights_near_zero(name):
    """A row is proved to be a combination of others with weights that are not negative only where it is, in every mode."""
    if name is not None and not modes.CAN_BE_SET:
        pytest.skip(modes.REASON)
    r, counts = np.random.default_rng(8), Counter()
    for _ in range(400):
        S, p = near_the_border(r)
        x = null_vector(S)
        if x is None:
            continue
        T, P = -np.outer(S[-1], [1, 1]), np.column_stack([p[:-1] / p[-1], r.random(len(p) - 1)])
        T[0, 1] = S[0, 0]  # something else
        with modes.mode(modes.MODES[name]) if name else contextlib.nullcontext():
            found = verified.nonnegative_combinations(S[:-1], T, P)
        others = signed(S[:-1], np.ones(len(S) - 1), "none")
        for j, t in enumerate(T.T):
            assert not found[j] or not oracle.separable([*others, [-Fraction(float(v)) for v in t]])
        counts[all(weight >= 0 for weight in x[:-1]), bool(found[0])] += 1
    assert counts[True, True] > 80
    assert counts[False, False] > 80
    for bad in (math.nan, math.inf, 1e200, -1.0):
        assert not verified.nonnegative_combinations(np.eye(2), np.ones((2, 1)), np.array([[1.0], [bad]])).any()


@pytest.mark.parametrize("name", [None, *modes.MODES])
def test_scores_near_zero(name):
    """A vector is proved to have positive scores only where it has, in every mode, and nearly always where it has large ones."""
    if name is not None and not modes.CAN_BE_SET:
        pytest.skip(modes.REASON)
    r, counts = np.random.default_rng(9), Counter()
    for _ in range(300):
        S = r.standard_normal((4, 3)) * 2.0 ** r.integers(-3, 4, (1, 3))
        W = r.standard_normal((3, 5))
        near = np.argmin(np.abs(S), axis=1)[0]  # a score of the first row is nearly 0, or a unit in the last place away from it
        rest = np.delete(np.arange(3), near)
        W[near, :3] = -(S[0, rest] @ W[rest, :3]) / S[0, near] * (1 + r.choice([-1, 0, 1]) * 2.0**-52)
        with modes.mode(modes.MODES[name]) if name else contextlib.nullcontext():
            found = verified.ScoreProver(sp.csr_array(S) if r.random() < 0.5 else S).positive(W * np.sign(S[1] @ W))
        for w, proved in zip((W * np.sign(S[1] @ W)).T, found, strict=True):
            least = min(sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(row, w, strict=True)) for row in S)
            counts[least > 1e-9, least > 0, bool(proved)] += 1
    assert counts[True, True, True] > 50
    assert not any(proved and not positive for _, positive, proved in counts)
    assert (True, True, False) not in counts
    for bad in (math.nan, math.inf, 1e200, 1e-200):
        assert not verified.ScoreProver(np.ones((2, 2))).positive(np.array([[1.0], [bad]])).any()
        assert not verified.ScoreProver(np.array([[1.0, bad]])).positive(np.ones((2, 1))).any()


@pytest.mark.skipif(not modes.CAN_BE_SET, reason=modes.REASON)
@pytest.mark.parametrize("name", modes.MODES)
def test_bounds_hold_in_every_mode(name):
    """The bounds do not depend on the mode, which the threads of a BLAS have each their own of."""
    r, proved = np.random.default_rng(7), 0
    for _ in range(400):
        S, p = near_the_border(r)
        x = null_vector(S)
        with modes.mode(modes.MODES[name]):
            found = verified.cancelling(S, p)
        if x is not None and found < math.inf:
            assert all(weight > 0 for weight in x)
            proved += 1
    assert proved > 80


def test_the_distance_holds():
    """Some exact weights are as near to the floats, of total 1, as is said."""
    r, seen = np.random.default_rng(5), 0
    for _ in range(300):
        S, p = near_the_border(r)
        within, x = verified.cancelling(S, p), null_vector(S)
        if within < math.inf and x is not None:
            # the weights found are the null vector times some number; the best such number is near Σp·x/x·x
            q = [Fraction(float(v)) / sum(map(Fraction, p.tolist())) for v in p]
            t = sum(map(Fraction.__mul__, q, x)) / sum(v * v for v in x)
            assert max(abs(a - t * b) for a, b in zip(q, x, strict=True)) <= Fraction(within) * len(q)
            seen += 1
    assert seen > 80


# ---- changed certificates --------------------------------------------------------------------------------------------


def changed(r, c, X, y):
    """The certificate, or its data, with something changed."""
    n, d = c.shape
    k, kind = r.randrange(len(c.rows)), r.randrange(12 if c.w is None else 15)
    weights = [*c.weights]
    if kind < 4:
        factor = r.choice((0.5, 2.0, 1e-3, 1e-9, 1e-14, 1e-300, 1 + 1e-9, 1 + 1e-13, -1.0, 0.0, 1e300, 3.0))
        weights[k] = weights[k] * factor if abs(weights[k] * factor) < 1e308 else 1e308
        return replace(c, weights=tuple(weights)), X, y
    if kind == 4:
        return replace(c, weights=tuple(math.nextafter(w, r.choice((0.0, 9.0))) for w in weights)), X, y
    if kind == 5:
        return replace(c, rows=(*c.rows[:k], r.randrange(n), *c.rows[k + 1 :])), X, y
    if kind == 6:
        return replace(c, rows=c.rows[:k] + c.rows[k + 1 :], weights=c.weights[:k] + c.weights[k + 1 :]), X, y
    if kind == 7:
        other = r.choice(KINDS)
        plane = {} if other == "verified-quasi-separation" else {"w": None, "b": None}
        return replace(c, kind=other, intercept=r.choice(INTERCEPTS), **plane), X, y
    if kind == 8:
        relation = tuple((r.randrange(d + 2), r.choice((-2, -1, 0, 1, 2**80))) for _ in range(r.randrange(4)))
        return replace(c, dependent=r.choice(((*c.dependent, relation), (relation,), c.dependent[1:], c.dependent * 2))), X, y
    if kind == 9:
        return replace(c, classes=(1, 0)), X, y
    if kind > 11:
        w, j = [*c.w, c.b], r.randrange(d + 1)
        w[j] = r.choice((w[j] + 1, -w[j], 0.0, w[j] * (1 + 1e-15), 1e-300, 0.5))
        return replace(c, w=tuple(w[:-1]), b=w[-1]), X, y
    X = X.copy()
    i, j = r.randrange(n), r.randrange(d)
    X[i, j] = r.choice((math.nextafter(X[i, j], 9.0), -X[i, j], X[i, j] + 1, 0.0, X[i, j] * (1 + 1e-9), X[i, j] * 1e-9))
    return c, X, y


def mutate(seed, bases, each):
    r, rng, counts = random.Random(seed), np.random.default_rng(seed), Counter()
    while counts["bases"] < bases:
        family = r.choice(FAMILIES)
        X, y = problem_of(rng, family)
        intercept = r.choice(INTERCEPTS)
        for certificate in claims(rng, X, y, intercept):
            if both(certificate, X.tolist(), y.tolist()) != (True, True):
                continue
            counts["bases"] += 1
            for _ in range(each):
                c, Z, z = changed(r, certificate, X, y)
                first, second = both(c, Z.tolist(), z.tolist())
                counts[first, second] += 1
                if first or second:
                    assert is_true(c.to_json(), Z.tolist(), z.tolist()), (c, Z, z)
    return counts


def test_changed_certificates():
    counts = mutate(0, 60, 15)
    assert counts[False, False] > 200
    assert counts[True, True] > 200
    assert counts[True, False] + counts[False, True] < 60  # floats and integers differ only where it is close


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 6))
def test_changed_certificates_soak(seed):
    print(dict(mutate(seed, 100, 15)))


def test_many_entries_are_not_decided_in_integers(monkeypatch):
    """The matrices of the theorem are dense: with few entries in many columns, inverting them in Python takes minutes."""
    n = 200
    X = sp.csr_array(sp.vstack([sp.eye_array(n), sp.eye_array(n)]))
    weights = (1e9, *[1.0] * (2 * n - 1))
    wrong = gordan.Certificate("verified-witness", "none", (0, 1), X.shape, rows=tuple(range(2 * n)), weights=weights)
    monkeypatch.setattr("gordan.certificates.standalone.positive_solution", lambda *_: pytest.fail("decided in integers"))
    assert not gordan.verify(wrong, X, np.repeat([1, 0], n))


@pytest.mark.parametrize(("weight", "in_integers"), [(1.1, False), (1.7, True), (2.5, True)])
def test_integers_decide_where_floats_leave_little_room(monkeypatch, weight, in_integers):
    """What floats prove with less room than a claim has, the Q of the standalone checker need not prove."""
    asked = []
    monkeypatch.setattr("gordan.certificates.standalone.positive_solution", lambda *_: asked.append(1))
    c = gordan.Certificate("verified-witness", "none", (0, 1), (2, 1), rows=(0, 1), weights=(1.0, weight))
    assert verified.cancelling(np.array([[-1.0], [1.0]]), np.array(c.weights)) < math.inf
    assert bool(gordan.verify(c, [[1.0], [1.0]], [0, 1])) != in_integers
    assert bool(asked) == in_integers


@pytest.mark.parametrize("weight", [math.nan, math.inf])
def test_weights_that_are_not_finite_prove_nothing(weight):
    c = gordan.Certificate("verified-witness", "none", (0, 1), (2, 1), rows=(0, 1), weights=(1.0, 1.0))
    assert not gordan.verify(unchecked(c, weights=(1.0, weight)), [[1.0], [1.0]], [0, 1])


MALFORMED = {
    "fractions": {"dependent": [[[0, "0x1.8p+0"]]]},
    "no list": {"dependent": {}},
    "a pair of three": {"dependent": [[[0, "0x1", "0x1"]]]},
    "a column below zero": {"dependent": [[[-1, "0x1"]]]},
    "whole weights": {"weights": ["0x1", "0x1"]},
    "a plane": {"w": None},
    "the first format": {"format": "gordan-certificate-1"},
    "null": {"dependent": None},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_certificates_are_refused(name):
    good = gordan.Certificate("verified-witness", "none", (0, 1), (2, 1), rows=(0, 1), weights=(1.0, 1.0))
    content = {**json.loads(good.to_json()), **MALFORMED[name]}
    with pytest.raises(gordan.InputError):
        gordan.Certificate.from_json(json.dumps(content))
    with pytest.raises(standalone.BadInput):
        standalone.check(content, [[1.0], [1.0]], [0, 1])


WRONG = {
    "another factor": (((1, 1), (0, -3)),),
    "no factor": (((1, 0), (0, -2)),),
    "a column twice": (((1, 1), (0, -1), (0, -1)),),
    "a column beyond": (((1, 1), (7, -1)),),
    "by each other": (((1, 1), (0, -2)), ((0, 2), (1, -1))),
    "nothing": ((),),
    "the same again": (((1, 1), (0, -2)), ((1, 1), (0, -2))),
    "left out": (),
}


def test_dependent_columns_are_checked():
    """Column 1 is twice column 0, but for the last row, which the witness does not need and overlap does."""
    X, y = [[1.0, 2.0], [1.0, 2.0], [3.0, 6.0], [2.0, 4.0], [1.0, 5.0]], [0, 1, 0, 1, 1]
    good = gordan.Certificate(
        "verified-witness", "none", (0, 1), (5, 2), rows=(0, 1), weights=(1.0, 1.0), dependent=(((1, 1), (0, -2)),)
    )
    assert both(good, X, y) == (True, True)
    assert both(replace(good, kind="verified-overlap"), X, y) == (False, False)
    assert both(replace(good, kind="verified-overlap", shape=(4, 2)), X[:4], y[:4]) == (True, True)
    for name, dependent in WRONG.items():
        assert both(replace(good, dependent=dependent), X, y) == (False, False), name


# ---- verdicts --------------------------------------------------------------------------------------------------------


def noisy(n, d, seed=0):
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, d))
    return X, (X[:, 0] + r.standard_normal(n) > 0).astype(int)


def test_a_verdict_with_float_weights(monkeypatch):
    """Nothing but `witness` and `find_witness` computes exact weights."""
    X, y = noisy(400, 90)
    with monkeypatch.context() as patch:
        patch.setattr(cancelling, "balance", None)  # calling it would fail
        v = gordan.separate(X, y)
        assert (v.separable, v.margin, v.certificate.kind) == (False, (0.0, 0.0), "verified-witness")
        assert " cancel with positive weights within 1e-" in repr(v)
        stated = v.stated_witness
        assert not stated.exact
        plain = fields("virginica", status="", witness=stated, accepted=True)["witness"]
        assert plain == {"rows": stated.rows, "weights": [*stated.weights], "exact": False}
        assert abs(sum(stated.weights) - 1) < 1e-12
        result = gordan.maximize_margin(X, y)
        assert (result.status, result.stated_witness.exact) == ("not-separable", False)
        d = gordan.diagnose(X, y)
        assert (d.kind, d.certificate.kind, d.dependent, set(d.columns.values())) == ("overlap", "verified-overlap", (), {0})
    for certificate in (v.certificate, result.certificate, d.certificate):
        assert both(certificate, X.tolist(), y.tolist()) == (True, True)
        assert gordan.verify(certificate, sp.csr_array(X), y)
    exact = v.witness
    assert exact.exact
    assert v.find_witness() is exact is v.witness
    again = gordan.separate(X, y)
    assert again.find_witness(time_limit=60) is again.witness
    assert again.witness == exact
    assert {*exact.rows} <= {*stated.rows}
    assert len(exact.rows) <= 92
    witness = gordan.Certificate("witness", "free", (0, 1), X.shape, rows=exact.rows, weights=exact.weights)
    assert both(witness, X.tolist(), y.tolist()) == (True, True)


def test_exact_weights_are_not_begun_where_they_take_long():
    X, y = noisy(1000, 220)
    v = gordan.separate(X, y)
    assert not v.stated_witness.exact
    assert v.find_witness(time_limit=1e-3) is None
    assert not v._exact_witnesses


def test_small_data_has_exact_weights():
    X, y = noisy(60, 8)
    v = gordan.separate(X, y)
    assert v.certificate.kind == "witness"
    assert v.witness is v.stated_witness


def test_exact_weights_of_data_that_was_changed():
    X, y = noisy(3000, 90)
    v = gordan.separate(X, y)
    assert not v.stated_witness.exact
    X[0, 0] += 1
    with pytest.raises(gordan.InputError, match="no witness of what it was"):
        _ = v.witness


@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_quasi_complete_separation_of_wide_data(intercept, levels):
    """Levels that only rows of one class have, beside columns that overlap: proved in floats, and each coefficient's sign."""
    r = np.random.default_rng(5)
    n, d = 420, 90
    X = np.column_stack([r.standard_normal((n, d)), np.zeros((n, levels))])
    y = (X[:, 0] + 2 * r.standard_normal(n) > 0).astype(int)
    some = [np.flatnonzero(y == level % 2)[10 * level : 10 * level + 7] for level in range(levels)]
    for level, rows in enumerate(some):
        X[rows, d + level] = 1
    found = gordan.diagnose(X, y, intercept=intercept)
    assert (found.kind, found.certificate.kind) == ("quasi-complete", "verified-quasi-separation")
    assert found.rows == tuple(sorted(np.concatenate(some).tolist()))
    assert [found.columns[f"x{d + level}"] for level in range(levels)] == [-1, 1, -1][:levels]
    assert not any(sign for name, sign in found.columns.items() if name not in {f"x{d + level}" for level in range(levels)})
    assert both(found.certificate, X.tolist(), y.tolist()) == (True, True)
    # other rows may change, unless that moves them to the wrong side; those of the proof may not be strict
    free = replace(found.certificate, data_hash=None)
    other = next(i for i in range(n) if i not in free.rows and i not in found.rows and y[i] == 1)
    X[other, 3] += 0.5
    assert both(free, X.tolist(), y.tolist()) == (True, True)
    X[other, d] = 1
    assert both(free, X.tolist(), y.tolist()) == (False, False)
    X[other, d] = 0
    X[next(i for i in free.rows if y[i] == 0), d] = 1
    assert both(free, X.tolist(), y.tolist()) == (False, False)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_dependent_columns_of_a_design(intercept):
    """Dummies that add up to 1, a duplicate, a difference, a column of zeros: named as exact arithmetic does, and proved."""
    r = np.random.default_rng(3)
    n = 500
    levels = np.eye(4)[r.integers(0, 4, n)]
    X = np.column_stack([r.standard_normal((n, 80)), levels, np.zeros(n), r.integers(0, 9, (n, 2))])
    X = np.column_stack([X, X[:, -1] - X[:, -2], 0.25 * X[:, 3]])
    y = (X[:, 0] + 2 * r.standard_normal(n) > 0).astype(int)
    d = gordan.diagnose(X, y, intercept=intercept)
    assert (d.kind, d.certificate.kind) == ("overlap", "verified-overlap")
    exact = independent_columns(Problem.of(X, y), Intercept(intercept))
    names = [*(f"x{j}" for j in range(X.shape[1])), "(intercept)"]
    assert {*d.dependent} == {names[j] for j in range(Intercept(intercept).columns(X.shape[1]))} - {names[j] for j in exact}
    assert both(d.certificate, X.tolist(), y.tolist()) == (True, True)
    v = gordan.separate(X, y, intercept=intercept)
    assert v.certificate.kind == "verified-witness"
    assert both(v.certificate, X.tolist(), y.tolist()) == (True, True)


def test_rows_of_weight_zero_are_left_out():
    X, y = noisy(500, 90)
    weights = np.ones(500)
    weights[::5] = 0.0
    result = gordan.maximize_margin(X, y, sample_weight=weights)
    assert result.status == "not-separable"
    assert not set(result.certificate.rows) & set(range(0, 500, 5))
    assert deviation(result.certificate, Problem.of(X, y)) < 1e-6


# ---- Newton steps ----------------------------------------------------------------------------------------------------


def asked(X, y, intercept="free", limit=math.inf):
    problem, started = Problem.of(X, y), time.perf_counter()
    margin = Margin(problem.X, problem.signs, Intercept(intercept))
    return Question(Subject(problem, margin), Asks.SIGN, Budget(started, started + limit))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_newton_steps_find_rows_that_cancel(storage, intercept):
    """At once from random rows; p is where the gradient of the loss vanishes, so that the rows cancel up to rounding."""
    X, y = noisy(2000, 90)
    X[:, 3:] *= 10.0 ** np.linspace(-6, 6, 87)
    X[X < -2] = 0.0
    question = asked(storage(X), y, intercept)
    assert overlapping.applies(question)
    evidence = Evidence(question)
    decided = [evidence.offer(proposal) for proposal in overlapping.by_newton_steps(question, evidence, None)]
    assert decided == [True]
    assert evidence.witness.head.kind == "verified-witness"
    assert both(evidence.witness.head, X.tolist(), y.tolist()) == (True, True)
    assert len(evidence.witness.head.rows) <= 4 * 91


def test_newton_steps_bring_in_rows_that_are_missed():
    """Where the first rows are separable, rows that their plane has on the wrong side come in."""
    r = np.random.default_rng(2)
    X = r.standard_normal((4000, 90))
    y = (X[:, 0] > 0) ^ (r.random(4000) < 0.005)
    question = asked(X, y)
    evidence = Evidence(question)
    sample = np.unique(np.random.default_rng(question.budget.seed).integers(4000, size=4 * 91))
    assert gordan.separate(X[sample], y[sample]).separable
    proposals = [*overlapping.by_newton_steps(question, evidence, None)]
    assert [evidence.offer(proposal) for proposal in proposals][-1]
    assert evidence.witness is not None
    assert gordan.verify(evidence.witness.head, X, y)


def test_newton_steps_find_separators():
    r = np.random.default_rng(2)
    X = r.standard_normal((1000, 90))
    y = X @ r.standard_normal(90) > 0
    question = asked(X, y)
    evidence = Evidence(question)
    X, y = X[:300], y[:300]
    question = asked(X, y)
    evidence = Evidence(question)
    assert [evidence.offer(proposal) for proposal in overlapping.by_newton_steps(question, evidence, None)] == [True]
    assert evidence.strict
    assert evidence.witness is None


def test_newton_steps_end_in_time():
    X, y = noisy(2000, 90)
    question = asked(X, y, limit=0.0)
    assert [*overlapping.by_newton_steps(question, Evidence(question), None)] == []


def test_newton_steps_are_for_many_rows_and_columns():
    for n, d in ((60, 8), (150, 90), (2000, 20)):
        assert not overlapping.applies(asked(*noisy(n, d)))


def test_a_sample_is_untangled_where_all_rows_do_not_fit(monkeypatch):
    """The rows of a sample cancel, so that the slices of all rows are not needed."""
    r = np.random.default_rng(0)
    X = r.standard_normal((2000, 5))
    X = np.column_stack((X, X @ r.standard_normal(5)))
    question = asked(X, r.random(2000) < 0.5)
    monkeypatch.setattr(untangling, "SAMPLED_ENTRIES", 1000)
    monkeypatch.setattr(untangling, "fits", lambda size: size <= 8.0 * untangling.COPIES * 1000)
    assert untangling.applies(question)
    taken, untangled = [], untangling.Tangle.untangled
    monkeypatch.setattr(untangling.Tangle, "untangled", lambda *given: taken.append(len(given[2])) or untangled(*given))
    evidence = Evidence(question)
    decided = [evidence.offer(proposal) for proposal in untangling.by_untangling(question, evidence, None)]
    assert any(decided)
    assert taken == [1000 // 7]
    monkeypatch.setattr(untangling, "fits", lambda size: False)
    assert not untangling.applies(question)


@pytest.mark.parametrize("seed", range(5))
def test_few_rows_of_many_cancel(seed):
    """Carathéodory: one row more than columns is left, and these cancel with positive weights, exactly."""
    r = np.random.default_rng(seed)
    S = r.standard_normal((40, 6))
    p = r.random(40) + 0.01
    S[-1] = -(p[:-1] @ S[:-1]) / p[-1]
    p = cancelling.near(S, p)
    rows = cancelling.few_rows(S, p)
    assert len(rows) == 7
    x = null_vector(S[rows])
    assert x is not None
    assert all(weight > 0 for weight in x)


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e30])
def test_the_size_of_the_data_does_not_matter(scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 90)) * scale
    y = (X[:, 0] + 2 * scale * rng.standard_normal(300) > 0).astype(int)
    certificate = gordan.separate(X, y).certificate
    assert certificate.kind == "verified-witness"
    assert gordan.verify(certificate, X, y)
    assert standalone.check(standalone.read_certificate(certificate.to_json()), X.tolist(), y.tolist())[0]


def test_sizes_that_are_in_range():
    """By its definition, entry by entry; NaN and infinity are not."""
    ends = 2.0**-400, 2.0**400
    sizes = [0.0, 5e-324, np.nextafter(ends[0], 0), ends[0], 1.0, ends[1], np.nextafter(ends[1], math.inf), math.inf, math.nan]
    for some in ([], *([x] for x in sizes), *([x, y] for x in sizes for y in sizes), *([0.0, 1.0, x] for x in sizes)):
        expected = all(x == 0 or ends[0] <= x <= ends[1] for x in some)
        assert verified.in_range(np.array(some)) is expected, some


def test_relations_express_a_column_of_their_own_by_others():
    assert verified._independent([((2, 1), (0, -1))], 3) == [0, 1]
    assert verified._independent([((2, -3),), ((1, 2), (0, 5))], 4) == [0, 3]
    malformed = [
        [()],
        [((2, 0), (0, 1))],  # says nothing about column 2
        [((2, 1), (2, -1))],
        [((3, 1),)],
        [((-1, 1),)],
        [((2, 1), (0, -1)), ((2, 1), (1, -1))],
        [((2, 1), (1, -1)), ((1, 1), (0, -1))],  # by a column that is left out as well
    ]
    for dependent in malformed:
        assert verified._independent(dependent, 3) is None


@pytest.mark.parametrize(
    ("rest", "delta", "proved"), [(0.5, 0.4, True), (0.65, 0.4, False), (0.1, 0.6, False), (0.1, 0.49, True)]
)
def test_the_theorem_needs_room_for_the_inverse(monkeypatch, rest, delta, proved):
    """Σ|Q_i| ρ/(1 - δ) < p_i and δ < ½, for an inverse whose distance δ from the exact one is known."""
    monkeypatch.setattr(verified, "_right_inverses", lambda *_: (np.array([[1.0, 0.0]]), np.array([delta])))
    S, T, P = np.array([[1.0], [1.0]]), np.array([[2.0 - rest]]), np.array([[1.0], [1.0]])
    assert verified.nonnegative_combinations(S, T, P).tolist() == [proved]
    M, signs, p = np.array([[1.0, 1.0 - rest]]), np.array([[1.0, -1.0]]), np.array([[1.0, 1.0]])
    found = verified._deviations(M, signs, p, np.zeros(2, int), 1.0)
    assert (found < math.inf).tolist() == [proved]
    if proved:
        assert found[0] == pytest.approx(rest / (1 - delta) / 2, rel=1e-5)
        assert found[0] >= rest / (1 - delta) / 2
    assert verified._deviations(M, signs, p, np.zeros(2, int), 20.0).tolist() == [math.inf]
    assert verified.independent(S) == (delta < 0.5)
    for name, given in {"S": (S * 1e-200, T, P), "T": (S, T * 1e200, P), "P": (S, T, P * np.array([[1.0], [1e-200]]))}.items():
        assert not verified.nonnegative_combinations(*given).any(), name


def test_scores_are_off_by_as_much_as_their_terms_say():
    """2V(k + 4) times the sum of sizes: what is orthogonal to a row is proved to be positive once that much is added."""
    S = np.random.default_rng(0).standard_normal((50, 7))
    for rows in (S, sp.csr_array(S)):
        np.testing.assert_allclose(verified.ScoreProver(rows).off, 2 * verified.V * 11 * np.abs(S).sum(axis=1), rtol=1e-9)
    for x, y in S[:, :2]:
        row, across = np.array([[x, y]]), np.array([[y], [-x]])
        scores = verified.ScoreProver(row)
        for more, positive in ((-2.0, False), (0.5, False), (2.0, True)):
            added = across + row.T * (more * scores.off[0] * np.abs(across).max() / (row @ row.T))
            assert scores.positive(added).tolist() == [positive]


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_growing_c_separates_sparse_rows_or_lets_them_cancel(intercept, noise):
    rng = np.random.default_rng(3)
    X = sp.random_array((900, 150), density=0.1, rng=rng, format="csr")
    y = (X @ rng.standard_normal(150) > 0) ^ (rng.random(900) < noise)
    question = asked(X, y, intercept)
    evidence = Evidence(question)
    (proposal,) = overlapping.by_least_loss(question, evidence, None)
    assert evidence.offer(proposal) == (noise == 0)
    if noise:
        assert evidence.upper <= 2 * overlapping.TUNING.cancelled * question.unit_rows.R
