"""`diagnose` against the exact oracle, its certificates against both checkers, and what it says to people."""

from __future__ import annotations

import math
import os
import random
import sys
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from operator import mul

import numpy as np
import oracle
import pytest
import scipy.sparse as sp
from checkers import both
from scipy.optimize import linprog
from test_fuzz import FAMILIES, instance
from test_fuzz import signed as as_stored

import gordan
from gordan.certificates import exact
from gordan.certificates.margins import Margin
from gordan.certificates.problem import Problem
from gordan.deadlines import UNLIMITED
from gordan.intercepts import Intercept
from gordan.ledger.question import Asks, Budget, Question, Subject
from gordan.solve import coefficients, cone, finders, recession

INTERCEPTS = ("free", "none", "penalized")
EACH = 24
COMPLETE = ([[1.0, 5.0], [2.0, 1.0], [4.0, 2.0], [5.0, 4.0]], [0, 0, 1, 1])
# a dummy that is 1 only where the outcome is, beside a column that overlaps
QUASI = ([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [1.5, 1.0], [2.5, 1.0]], [0, 1, 0, 1, 1])
OVERLAP = ([[1.0, 5.0], [2.0, 1.0], [4.0, 2.0], [5.0, 4.0], [3.0, 3.5], [3.0, 0.0]], [0, 1, 0, 1, 1, 0])


def signed(X, y, intercept):
    """The rows of A as fractions: scores of theirs are exact."""
    return [[Fraction(x) for x in row] for row in as_stored(X, y, intercept)]


def dependent(r, n, d):
    """A combination of columns, a constant or a repeated column beside few different values."""
    X = [[r.randint(-2, 2) for _ in range(d)] for _ in range(n)]
    extra = r.choice([lambda row: sum(row), lambda row: 3, lambda row: 2 * row[0], lambda row: 0])
    at = r.randint(0, d)
    y = [int(row[0] + r.choice([0, 0, 1]) > 0) for row in X]
    return [[*row[:at], extra(row), *row[at:]] for row in X], y


def dummies(r, n, d):
    """Rare zeros and ones, where quasi-complete separation is at home."""
    X = [[int(r.random() < 0.25) for _ in range(d)] for _ in range(n)]
    return X, [int(r.random() < 0.3 + 0.6 * row[0]) for row in X]


MORE = {make.__name__: make for make in (dependent, dummies)}


def made(family, r):
    if family in FAMILIES:
        return instance(family, r)
    X, y = MORE[family](r, r.randint(3, 12), r.randint(1, 3))
    return np.array(X, dtype=float), y if len({*y}) == 2 else [1 - y[0], *y[1:]]


def independent(rows, intercept):
    """The first columns that are independent; the last column, a constant, before all others."""
    k = len(rows[0])
    order = range(k) if intercept == "none" else (k - 1, *range(k - 1))
    chosen = []
    for j in order:
        if oracle.rank([[row[i] for i in (*chosen, j)] for row in rows]) > len(chosen):
            chosen.append(j)
    return sorted(chosen)


def check_diagnosis(X, y, intercept, found):
    """Everything that is promised about one diagnosis, from the raw rows."""
    rows = signed(X, y, intercept)
    names = [f"x{j}" for j in range(X.shape[1])] + ([] if intercept == "none" else ["(intercept)"])
    inside = independent(rows, intercept)
    assert found.dependent == tuple(name for j, name in enumerate(names) if j not in inside)
    if found.kind == "undecided":
        return
    # the direction is strict on `rows` and zero elsewhere, and no weak separator is strict elsewhere
    rest = [row for i, row in enumerate(rows) if i not in {*found.rows}]
    if found.direction is not None:
        assert all(type(value) is int for value in found.direction.values())
        w = [found.direction[name] for name in names]
        scores = [sum(x * v for x, v in zip(row, w, strict=True)) for row in rows]
        assert all(score >= 0 for score in scores)
        assert tuple(i for i, score in enumerate(scores) if score > 0) == found.rows
        assert all(w[j] == 0 for j in range(len(w)) if j not in inside)
    assert not rest or oracle.weakly(rows, [sum(column) for column in zip(*rest, strict=True)]) == 0
    kind = "complete" if not rest else "quasi-complete" if found.rows else "overlap"
    assert found.kind == kind
    assert oracle.separable(rows) == (kind == "complete")
    # signs, from the largest and smallest w_j of the cone
    reduced = [[row[j] for j in inside] for row in rows]
    for position, j in enumerate(inside):
        unit = [int(i == position) for i in range(len(inside))]
        up, down = oracle.weakly(reduced, unit) > 0, oracle.weakly(reduced, [-x for x in unit]) > 0
        expected = {(False, False): 0, (True, False): 1, (False, True): -1, (True, True): None}[up, down]
        if names[j] not in found.open:
            assert found.columns[names[j]] == expected, (names[j], found.columns)
    assert {*found.columns} | {*found.open} == {names[j] for j in inside}
    certificate = found.certificate
    assert certificate.kind == {"complete": "separator", "quasi-complete": "quasi-separation", "overlap": "overlap"}[kind]
    assert both(certificate, X.tolist(), y) == (True, True)


def check_family(family, intercept, size, seed=""):
    """Small problems are decided, without exception but for complete separation by planes that float64 may be too coarse for."""
    r = random.Random(f"diagnose {family} {intercept}{seed}")
    kinds = Counter()
    for _ in range(size):
        X, y = made(family, r)
        found = gordan.diagnose(r.choice((np.asarray, sp.csr_array))(X), y, intercept=intercept)
        check_diagnosis(X, y, intercept, found)
        assert not (found.open and found.proved)
        assert found.proved or family in ("tiny_margin", "huge_exponents", "cancelling", "extreme")
        kinds[found.kind] += 1
    print(f"{family}, {intercept}: {dict(kinds)}")
    assert len({*kinds} - {"undecided"}) > 1 or {*kinds} == {"quasi-complete"}


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("family", [*FAMILIES, *MORE])
def test_against_the_oracle(family, intercept):
    """576 small problems here; 9,600 others with `--soak`."""
    check_family(family, intercept, EACH)


@pytest.mark.soak
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("family", [*FAMILIES, *MORE])
def test_against_the_oracle_soak(family, intercept):
    """The long run."""
    check_family(family, intercept, 400, " soak")


@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize("family", [*FAMILIES, *MORE])
def test_the_route_for_many_rows(family, intercept, monkeypatch):
    """With the exact route switched off, floats propose: nothing that is said is wrong, and ordinary data is decided."""
    monkeypatch.setattr(recession, "MAX_EXACT_SIZE", 0)
    monkeypatch.setattr(recession, "MAX_PIVOTED_COLUMNS", 0)
    r = random.Random(f"program {family} {intercept}")
    still_open = 0
    for _ in range(EACH):
        X, y = made(family, r)
        found = gordan.diagnose(r.choice((np.asarray, sp.csr_array))(X), y, intercept=intercept)
        check_diagnosis(X, y, intercept, found)
        still_open += not found.proved or bool(found.open)
    assert still_open == 0 or family in ("tiny_margin", "huge_exponents", "cancelling", "extreme")


def test_projections_find_what_they_say():
    """For each t a q > 0 with Vᵀq = t, or an x with V x > 0, for nearly all of these with t·x < 0."""
    r, found = np.random.default_rng(4), Counter()
    for m, k in ((30, 5), (80, 20), (200, 40)):
        A = r.standard_normal((m, k))
        A *= np.sign(A @ r.standard_normal(k))[:, None]
        c = linprog(np.zeros(k), A_ub=-A, b_ub=-np.ones(m), bounds=(None, None)).x
        V, R = np.linalg.qr(A / (A @ c)[:, None])
        T = np.linalg.solve(R.T, np.diag(np.sign(c)))
        T /= np.linalg.norm(T, axis=0)
        same, P, others, X = coefficients.projected(V, T, UNLIMITED)
        assert sorted([*same, *others]) == [*range(k)]
        assert (P > 0).all()
        assert np.abs(V.T @ P - T[:, same]).max(initial=0) < 1e-12
        assert (V @ X > 0).all()
        found += Counter(same=len(same), beyond=int(np.sum(np.sum(T[:, others] * X, axis=0) < 0)), all=k)
    assert found["same"] > 0
    assert found["beyond"] > 0
    assert found["same"] + found["beyond"] > 0.9 * found["all"]


def test_no_program_for_a_coefficient(monkeypatch):
    """Where the separation is complete, projections and steps decide every coefficient, which signs held against HiGHS."""
    monkeypatch.setattr(coefficients._FromCentre, "_by_program", None)
    r = np.random.default_rng(1)
    X = r.standard_normal((400, 20))
    y = (X @ r.standard_normal(20) > 0).astype(int)
    found = gordan.diagnose(X, y)
    assert (found.kind, found.open) == ("complete", ())
    A = np.where(y > 0, 1.0, -1.0)[:, None] * np.column_stack([X, np.ones(400)])
    for j, sign in enumerate(found.columns.values()):
        ends = [linprog(s * np.eye(21)[j], A_ub=-A, b_ub=np.zeros(400), bounds=(-1, 1)).fun for s in (1, -1)]
        assert {(False, True): 1, (True, False): -1, (True, True): None}[ends[0] < -1e-9, ends[1] < -1e-9] == sign
    assert {*found.columns.values()} == {1, -1, None}


@pytest.mark.parametrize("decimals", [None, 2])
def test_a_total_of_floats_beside_its_parts(decimals):
    """Columns that depend on others but for the last bits: floats see a dependence, exact arithmetic none."""
    r = np.random.default_rng(0)
    X = r.standard_normal((200, 12))
    X = X if decimals is None else np.round(X, decimals)
    X[:, 8] = X[:, 9] + X[:, 10]
    y = (X[:, 0] + r.standard_normal(200) > 0).astype(int)
    verdict = gordan.separate(X, y)
    assert verdict.status == "not-separable"
    assert both(verdict.certificate, X, y) == (True, True)
    found = gordan.diagnose(X, y)
    assert (found.kind, found.dependent, found.open, {*found.columns.values()}) == ("overlap", (), (), {0})
    assert both(found.certificate, X, y) == (True, True)
    X[:, -1] = 0
    X[np.flatnonzero(y)[:20], -1] = 1
    found = gordan.diagnose(X, y)
    assert (found.kind, found.dependent, found.open) == ("quasi-complete", (), ())
    assert {name for name, sign in found.columns.items() if sign} == {"x11"}
    assert found.rows == tuple(np.flatnonzero(X[:, -1]).tolist())
    assert both(found.certificate, X, y) == (True, True)


@pytest.mark.parametrize("missing", ["program", "completion"])
@pytest.mark.parametrize("family", [*FAMILIES, *MORE])
def test_where_floats_do_not_get_there(family, missing, monkeypatch):
    """Exact arithmetic on a few rows, and on more of them as they turn out to be wrong, decides all the same."""
    monkeypatch.setattr(recession, "MAX_EXACT_SIZE", 0)
    monkeypatch.setattr(
        recession, *(("by_program", lambda cone: None) if missing == "program" else ("completed", lambda *_: None))
    )
    r = random.Random(f"pivoting {family}")
    for _ in range(EACH // 2):
        X, y = made(family, r)
        found = gordan.diagnose(X, y)
        check_diagnosis(X, y, "free", found)
        assert found.kind != "undecided"


def test_a_sample_of_the_rows_grows(monkeypatch):
    """The rows that decide are three of thousands, so that a program over a sample is wrong about them at first."""
    rng = np.random.default_rng(4)
    X = np.column_stack((rng.standard_normal((4000, 2)).round(3), np.zeros(4000)))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.where(y == 1, 0.25, -0.25)
    X[[10, 2000, 3990], 0] = 0.0  # on the plane of the others, and of both classes
    X[[10, 2000, 3990], 1] = [1.0, -1.0, 0.0]
    y[[10, 2000, 3990]] = [0, 0, 1]
    found = gordan.diagnose(X, y)
    assert found.kind == "quasi-complete"
    assert {*range(4000)} - {*found.rows} == {10, 2000, 3990}
    assert both(found.certificate, X.tolist(), y.tolist()) == (True, True)


@pytest.mark.parametrize("kind", ["overlap", "quasi-complete", "complete"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_many_rows(kind, storage):
    """Beyond what is solved exactly at once, with columns of known behaviour."""
    rng = np.random.default_rng(0)
    n, d = 3000, 8
    X = rng.standard_normal((n, d)).round(2)
    y = (rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    expected = dict.fromkeys([*(f"x{j}" for j in range(d)), "(intercept)"], 0)
    rows = ()
    if kind != "overlap":
        X[:, 3], X[:, 5] = (rng.random(n) < 0.02) & (y == 1), (rng.random(n) < 0.02) & (y == 0)
        expected |= {"x3": 1, "x5": -1}
        rows = tuple(np.flatnonzero((X[:, 3] > 0) | (X[:, 5] > 0)).tolist())
    if kind == "complete":
        X[:, 1] = 2 * y - 1 + rng.random(n) / 2
        rows = tuple(range(n))
    found = gordan.diagnose(storage(X), y)
    assert found.kind == kind
    assert found.rows == rows
    assert not found.open
    assert found.columns == expected or kind == "complete"
    assert found.columns["x1"] == (1 if kind == "complete" else 0)
    assert gordan.verify(found.certificate, X, y)
    assert len(found.certificate.rows) <= 2 * (d + 1)


# ---- certificates ---------------------------------------------------------------------------------------------------


def proofs():
    """Certificates of both kinds with their data."""
    for intercept in INTERCEPTS:
        for X, y in (QUASI, OVERLAP):
            yield gordan.diagnose(X, y, intercept=intercept).certificate, X, y


def mutations(c):
    """Certificates that differ from c in one field."""
    n, d = c.shape
    for i, weight in enumerate(c.weights):
        for new in (weight + 1, 2 * weight, 0, -weight):
            yield replace(c, weights=(*c.weights[:i], new, *c.weights[i + 1 :]))
    for i in range(len(c.rows)):
        for row in range(n + 1):
            yield replace(c, rows=(*c.rows[:i], row, *c.rows[i + 1 :]))
        yield replace(c, rows=(*c.rows[:i], *c.rows[i + 1 :]), weights=(*c.weights[:i], *c.weights[i + 1 :]))
    yield replace(c, rows=(), weights=())
    if c.w is not None:
        for j in range(d):
            for new in (-c.w[j], 0, 3 * c.w[j] + 1, c.w[j] - 1):
                yield replace(c, w=(*c.w[:j], new, *c.w[j + 1 :]))
        yield from (replace(c, b=b) for b in (1, -1, None))
        yield replace(c, w=tuple(-x for x in c.w), b=-c.b)
        yield replace(c, w=(0,) * d, b=0)
        yield replace(c, w=None)
    yield replace(c, kind="quasi-separation")
    yield from (replace(c, kind=kind, w=None, b=None) for kind in ("overlap", "witness"))
    yield from (replace(c, intercept=other) for other in INTERCEPTS)
    yield replace(c, classes=c.classes[::-1])
    yield replace(c, classes=(0, 2))
    yield from (replace(c, shape=shape) for shape in ((n + 1, d), (n, d + 1), (d, n)))


def holds(c, X, y):
    """Whether the claim of a mutated certificate is true, whatever its proof."""
    rows = signed(np.array(X), [int(label == c.classes[1]) for label in y], c.intercept)
    weak = oracle.weakly(rows, [sum(column) for column in zip(*rows, strict=True)]) > 0
    complete = oracle.separable(rows)
    return {"overlap": not weak, "quasi-separation": weak and not complete, "witness": not complete}[c.kind]


def test_mutated_certificates():
    """Both checkers agree on every certificate with one field changed, and what they accept is true."""
    accepted = rejected = 0
    for certificate, X, y in proofs():
        assert both(certificate, X, y) == (True, True)
        for mutated in mutations(certificate):
            first, second = both(mutated, X, y)
            assert first == second, mutated
            accepted, rejected = accepted + first, rejected + (not first)
            if first and mutated.kind != "witness":
                assert holds(mutated, X, y), mutated
    assert rejected > 250
    assert accepted < rejected / 2


PAIR = {"rows": (0, 1), "weights": (1, 1)}
LINE = [[1.0, 0], [-1, 0], [2, 0], [0, 1]]
FALSE = {
    "support that does not span": ("overlap", PAIR, [[1.0, 0], [-1, 0], [0, 1], [0, -1]]),
    "a row off the span": ("overlap", PAIR, [[1.0, 0], [-1, 0], [1, 2.0**-1074], [3, 0]]),
    "complete called quasi": (
        "quasi-separation",
        {"w": (1, 0), "b": 0, "rows": (0,), "weights": (1,)},
        [[1.0, 0], [1, 1], [2, 0], [3, 0]],
    ),
    "a better w": (
        "quasi-separation",
        {"w": (1, 0, 0), "b": 0, "rows": (1, 2), "weights": (1, 1)},
        [[1.0, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1]],
    ),
    "w that separates nothing": ("quasi-separation", {"w": (0, 0), "b": 0} | PAIR, LINE),
    "b without intercept": ("quasi-separation", {"w": (0, 1), "b": 1} | PAIR, [[1.0, 0], [-1, 0], [0, 2], [0, 1]]),
    "a tiny wrong side": (
        "quasi-separation",
        {"w": (1, 1), "b": 0} | PAIR,
        [[1.0, -1.0], [-1, 1], [1, -1 - 2.0**-52], [1, 1]],
    ),
}


@pytest.mark.parametrize("case", FALSE)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_false_claims(case, storage):
    """Each lacks one thing; the rows of the second class are negated, so that A is the matrix shown."""
    kind, content, A = FALSE[case]
    y = [1, 1, 0, 1]
    X = np.array([[x if label else -x for x in row] for row, label in zip(A, y, strict=True)], dtype=float)
    certificate = gordan.Certificate(kind, "none", (0, 1), X.shape, **content)
    assert not gordan.verify(certificate, storage(X), y)
    assert both(certificate, X.tolist(), y) == (False, False)


@pytest.mark.parametrize("change", [{"w": (1.0, 0.0)}, {"b": 0.5}, {"weights": (1.5, 1.0)}, {"w": (np.nan, 0)}])
def test_numbers_that_are_no_integers(change):
    certificate = gordan.diagnose(*QUASI).certificate
    with pytest.raises(gordan.InputError, match="an integer"):
        replace(certificate, **change)


def test_a_direction_of_the_wrong_length_is_rejected():
    certificate = gordan.diagnose(*QUASI).certificate
    assert not gordan.verify(replace(certificate, w=(1,)), *QUASI)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_verify_refuses_what_is_not_finite(storage):
    X, y = OVERLAP
    certificate = gordan.diagnose(X, y).certificate
    for i in range(len(X)):
        spoiled = np.array(X)
        spoiled[i, 1] = np.nan
        with pytest.raises(gordan.InputError, match=rf"X\[{i}, 1\] is nan"):
            gordan.verify(certificate, storage(spoiled), y)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_signs_of_scores_are_exact(storage):
    """Cancellation to the last bit, exponents far apart, integers beyond floats: against fractions."""
    r = random.Random(0)
    seen = set()
    for _ in range(150):
        d, n = r.randint(1, 4), 8
        w = [r.randint(-3, 3) * r.choice([1, 1, 2**70 + 1, 3**700, 2**1200]) for _ in range(d)]
        b = r.choice([0, 0, 1, -(2**60), 3**700])
        size = r.choice([0, 30, 300])
        X = np.array([[r.randint(-3, 3) * 2.0 ** r.randint(-size, size) for _ in range(d)] for _ in range(n)])
        for i in range(0, n, 2):  # make some of them vanish: x·w = 0 for two entries
            a, c = r.randrange(d), r.randrange(d)
            if max(abs(w[a]), abs(w[c])) < 2**53 and a != c:
                X[i] = 0
                X[i, a], X[i, c] = w[c], -w[a]
        y = [i % 2 for i in range(n)]
        truth = []
        for row, label in zip(X.tolist(), y, strict=True):
            score = sum((Fraction(x) * v for x, v in zip(row, w, strict=True)), Fraction(b)) * (2 * label - 1)
            truth.append((score > 0) - (score < 0))
        problem = Problem.of(storage(X), y)
        assert exact.score_signs(problem.X, w, b, problem.signs).tolist() == truth
        seen.update(truth)
    assert seen == {-1, 0, 1}


# ---- what people meet -----------------------------------------------------------------------------------------------


def test_full_rank_follows_from_overlap(monkeypatch):
    """Where there are too many columns to examine their rank, a proof of overlap that spans them all still shows it."""
    monkeypatch.setattr(cone, "MAX_COLUMNS", 1)
    found = gordan.diagnose(*OVERLAP)
    assert (found.dependent, found.columns) == ((), {"x0": 0, "x1": 0, "(intercept)": 0})
    found = gordan.diagnose(*QUASI)
    assert (found.kind, found.dependent, found.columns) == ("quasi-complete", None, {})


def test_stories():
    told = repr(gordan.diagnose(*QUASI))
    assert told.startswith(
        "Quasi-complete separation (proved): a plane has 2 of 5 rows strictly on the right side and the other 3 exactly on the "
        "plane; no plane does better."
    )
    assert "\nEvent: y = 1.\nCoefficients: x1 goes to +∞; x0 and (intercept) stay finite." in told
    assert "Firth's penalized likelihood" in told
    assert "exact or profile-likelihood methods" in told
    assert "drop or coarsen x1" in told
    told = repr(gordan.diagnose(*COMPLETE))
    assert told.startswith("Complete separation (proved): a plane has all 4 rows strictly on the right side.")
    assert "sign undetermined" in told
    told = repr(gordan.diagnose(*OVERLAP))
    assert told.startswith("Overlap (proved): no plane separates the classes, not even weakly.")
    assert "The maximum-likelihood estimates exist and are unique.\nNext: fit as usual." in told
    html = gordan.diagnose(*QUASI)._repr_html_()
    assert html.count("<p>") == html.count("</p>") == 4


def test_rank_is_reported_first():
    X, y = OVERLAP
    X = [[7.0, a, b, a - b] for a, b in X]
    found = gordan.diagnose(X, y)
    assert found.dependent == ("x0", "x3")
    assert {*found.columns} == {"x1", "x2", "(intercept)"}
    first, second, third = repr(found).splitlines()
    assert first.startswith("X is rank-deficient: x0 and x3 are linear combinations of the other columns and the intercept")
    assert first.endswith("and left out as aliased: their effects cannot be told from those of the others.")
    assert second.endswith("The maximum-likelihood estimates exist, and are unique only after x0 and x3 are dropped.")
    assert third.startswith("Next: drop x0 and x3 first, then fit as usual; ")
    ones = repr(gordan.diagnose([[1.0, *row[1:3]] for row in X], y))  # a column of ones is the constant
    assert "rank-deficient" not in ones
    assert ones.endswith("exist and are unique.\nNext: fit as usual.")
    told = repr(gordan.diagnose(X, [0, 1, 2, *y[3:]], model="multinomial"))
    assert "x0 and x3 are linear combinations" in told  # once, and not for each class
    assert gordan.diagnose(X, y, intercept="none").dependent == ("x3",)


def test_names_are_escaped_and_long_lists_cut():
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'gordan[data]'")
    X = pandas.DataFrame(QUASI[0], columns=["age", "<b>"])
    assert "&lt;b&gt; goes to +∞" in gordan.diagnose(X, QUASI[1])._repr_html_()
    rng = np.random.default_rng(0)
    wide = gordan.diagnose(rng.standard_normal((12, 10)), np.arange(12) % 2)
    assert "x1, x2, x3, x4, x5, x6 and 3 more are infinite" in repr(wide)


def test_pandas():
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'gordan[data]'")
    X, y = QUASI
    frame = pandas.DataFrame(X, columns=["age", "treated"])
    labels = pandas.Series(["yes" if label else "no" for label in y])
    found = gordan.diagnose(frame, labels)
    assert found.columns == {"age": 0, "treated": 1, "(intercept)": 0}
    assert found.direction == {"age": 0, "treated": 1, "(intercept)": 0}
    assert gordan.verify(found.certificate, frame, labels)
    frame["town"] = ["a", "b", "c", "d", "e"]
    with pytest.raises(gordan.InputError, match=r"column 'town' of X holds text, such as 'a'; make 0/1 columns of it"):
        gordan.diagnose(frame, labels)
    twice = pandas.DataFrame(np.c_[X, np.array(X)[:, :1] ** 2], columns=["age", "(intercept)", "age"])
    assert [*gordan.diagnose(twice, labels).columns] == ["age", "(intercept) [1]", "age [2]", "(intercept)"]


class Frame:
    """What polars frames have in common with this: `columns` and a conversion to an array."""

    def __init__(self, content):
        self.content = content

    @property
    def columns(self):
        return [*self.content]

    def __array__(self, dtype=None, copy=None):
        return np.array([*self.content.values()], dtype=dtype).T


def test_any_frame():
    frame = Frame({"dose": [row[0] for row in QUASI[0]], "event": [row[1] for row in QUASI[0]]})
    assert gordan.diagnose(frame, QUASI[1]).columns == {"dose": 0, "event": 1, "(intercept)": 0}


def test_polars():
    polars = pytest.importorskip("polars", reason="polars is not required")
    frame = polars.DataFrame(np.array(QUASI[0]), schema=["dose", "event"])
    found = gordan.diagnose(frame, polars.Series(QUASI[1]))
    assert found.columns == {"dose": 0, "event": 1, "(intercept)": 0}


BAD = {
    "nan": (lambda X, y: ([[np.nan, 0.0], *X[1:]], y), r"X\[0, 0\] is nan"),
    "inf in sparse": (lambda X, y: (sp.csr_array([*X[:-1], [1.0, np.inf]]), y), r"X\[4, 1\] is inf"),
    "nan in y": (lambda X, y: (X, [np.nan, *y[1:]]), r"y\[0\] is nan"),
    "None in y": (lambda X, y: (X, [None, *y[1:]]), r"y\[0\] is None"),
    "one class": (lambda X, y: (X, [1] * 5), "one class only, 1"),
    "three classes": (lambda X, y: (X, [0, 1, 2, 1, 0]), "3 classes"),
    "lengths": (lambda X, y: (X, y[1:]), "X has 5 rows but y has 4 labels"),
    "1-D": (lambda X, y: (np.ones(5), y), r"shape is \(5,\)"),
    "3-D": (lambda X, y: (np.ones((5, 1, 1)), y), r"shape is \(5, 1, 1\)"),
    "no rows": (lambda X, y: (np.ones((0, 2)), []), "0 rows"),
    "no columns": (lambda X, y: (np.ones((5, 0)), y), "0 columns"),
    "complex": (lambda X, y: (np.array(X) * 1j, y), r"X\[0, 0\]"),
    "text": (lambda X, y: (np.array(X).astype(str), y), r"X\[0, 0\]"),
    "beyond 2**53": (lambda X, y: (np.full((5, 1), 2**53 + 1), y), r"X\[0, 0\].*2\*\*53"),
    "invalid CSR": (lambda X, y: (spoiled(X), y), "CSR matrix is not valid"),
}


def spoiled(X):
    matrix = sp.csr_matrix(X)
    matrix.indices = matrix.indices + 7
    return matrix


@pytest.mark.parametrize(("make", "message"), list(BAD.values()), ids=BAD)
def test_bad_input_is_refused(make, message):
    with pytest.raises(gordan.InputError, match=message):
        gordan.diagnose(*make(*QUASI))


def test_bad_intercept():
    with pytest.raises(gordan.InputError, match="intercept is 'some'; choose one of"):
        gordan.diagnose(*QUASI, intercept="some")


VALID = {
    "float32": lambda X: np.array(X, np.float32),
    "float16": lambda X: np.array(X, np.float16),
    "fortran": lambda X: np.asfortranarray(X),
    "reversed twice": lambda X: np.array(X)[::-1][::-1],
    "byte-swapped": lambda X: np.array(X).astype(">f8"),
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "scaled by 2**300": lambda X: np.array(X) * 2.0**300,
    "scaled by 2**-1000": lambda X: np.array(X) * 2.0**-1000,
    "rows twice": lambda X: np.repeat(X, 2, axis=0),
}


@pytest.mark.parametrize("change", VALID)
def test_valid_input_of_every_kind(change):
    """The same answer whatever the storage and the units; subnormal entries, too."""
    X, y = QUASI
    given = VALID[change](X)
    before = given.copy()
    y = np.repeat(y, given.shape[0] // 5)
    found = gordan.diagnose(given, y)
    assert found.kind == "quasi-complete"
    assert found.columns == {"x0": 0, "x1": 1, "(intercept)": 0}
    assert len(found.rows) == 2 * given.shape[0] // 5
    assert gordan.verify(found.certificate, given, y)
    assert (abs(before - given)).max() == 0


def test_zero_rows_and_zero_columns():
    X, y = [[0.0, 0.0], [1.0, 0.0], [-2.0, 0.0]], [0, 1, 0]
    found = gordan.diagnose(X, y, intercept="none")
    assert (found.kind, found.rows, found.dependent) == ("quasi-complete", (1, 2), ("x1",))
    assert both(found.certificate, X, y) == (True, True)
    assert gordan.diagnose(X, y).kind == "complete"
    nothing = gordan.diagnose([[0.0], [0.0]], [0, 1], intercept="none")
    assert (nothing.kind, nothing.columns, nothing.dependent) == ("overlap", {}, ("x0",))
    assert both(nothing.certificate, [[0.0], [0.0]], [0, 1]) == (True, True)


@pytest.mark.parametrize("stage", ["rank", "kind", "columns"])
def test_ctrl_c_keeps_what_was_proved(stage, monkeypatch):
    """An interrupt in any stage: the stages before it stand."""

    def interrupt(*_):
        raise KeyboardInterrupt

    room, name = {
        "rank": (recession, "independent_columns"),
        "kind": (recession, "find"),
        "columns": (coefficients, "coordinate_signs"),
    }[stage]
    monkeypatch.setattr(room, name, interrupt)
    found = gordan.diagnose(*QUASI)
    if stage == "columns":
        assert (found.kind, found.rows, found.columns) == ("quasi-complete", (3, 4), {})
        assert found.open == ("x0", "x1", "(intercept)")
        assert "x0, x1 and (intercept) were not decided" in repr(found)
        assert gordan.verify(found.certificate, *QUASI)
    else:
        assert (found.kind, found.certificate, found.proved) == ("undecided", None, False)
        assert (found.dependent is None) == (stage == "rank")
        assert repr(found).startswith("Undecided: nothing was proved")


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_from_outside(ctrl_c, monkeypatch):
    """It may come at any instant of a search, which here goes on until it does."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20_000, 120)), rng.integers(0, 2, 20_000)
    answer = finders.answer

    def answer_for_ever(question):
        ctrl_c.set()
        while True:
            found = answer(question)
            if found.effort.stopped:
                return found

    monkeypatch.setattr(sys.modules["gordan.verdicts.diagnose"], "answer", answer_for_ever)
    assert gordan.diagnose(X, y).kind == "undecided"


def test_not_complete_is_kept_where_the_rest_is_open(monkeypatch):
    """Where the cone is not found, the witness of `separate` still says that the separation is not complete."""
    monkeypatch.setattr(recession, "find", lambda cone: None)
    found = gordan.diagnose(*QUASI)
    assert found.kind == "undecided"
    assert found.certificate.kind == "witness"
    assert gordan.diagnose(*OVERLAP).kind == "overlap"  # whose rows span all others
    assert "the separation is not complete (proved)" in repr(found)
    assert gordan.diagnose(*COMPLETE).kind == "complete"


def test_time_limit_leaves_what_is_open(clock):
    """The kind is asked first, and is proved; the coefficients that there was no time for are named."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 160)), rng.integers(0, 2, 200)
    clock.tick = 1000.0  # so long that solvers which keep time by themselves are not stopped
    limited = (gordan.diagnose(X, y, time_limit=1000.0 * readings) for readings in range(1, 1000))
    none = next(limited)
    some = next(found for found in limited if found.columns)  # the first for which there was time
    assert (none.kind, none.columns) == ("undecided", {})
    assert some.kind == "complete"
    assert some.open
    assert gordan.verify(some.certificate, X, y)
    for found in (none, some):
        assert {*found.open, *found.columns} == {*(f"x{j}" for j in range(160)), "(intercept)"}
    for wrong in (0, -1.0, "soon", math.nan):
        with pytest.raises(gordan.InputError, match="time_limit"):
            gordan.diagnose(X, y, time_limit=wrong)


def test_a_separator_of_many_rows_is_shortened():
    """The direction has few digits where few digits separate."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2000, 4))
    y = X[:, 0] > 0
    X[:, 0] += np.where(y, 1.0, -1.0)
    found = gordan.diagnose(X, y)
    assert found.kind == "complete"
    assert max(map(abs, found.direction.values())) <= 2**8
    assert (np.where(y, 1, -1) * (X @ [found.direction[f"x{j}"] for j in range(4)] + found.direction["(intercept)"]) > 0).all()


def test_vectors_of_the_cone_that_one_step_finds():
    """Recomputed in fractions: each has every row strictly on its side, and most the other sign in their coordinate."""
    r = np.random.default_rng(3)
    X = r.normal(size=(200, 30)) * 10.0 ** r.integers(-1, 2, 30)
    y = X @ r.normal(size=30) / np.abs(X).max() > 0
    problem = Problem.of(X, y)
    budget, margin = Budget(time.perf_counter()), Margin(problem.X, problem.signs, Intercept.FREE)
    found = finders.answer(Question(Subject(problem, margin), Asks.CONE, budget)).cone
    centre = coefficients._FromCentre(found, np.arange(200))
    A = [[Fraction(float(x)) * int(s) for x in (*row, 1.0)] for row, s in zip(X, problem.signs, strict=True)]
    s = found.cone.floats[2]
    for w in centre.inside.values():
        own = [Fraction(float(x)) * Fraction(float(scale)) for x, scale in zip(w, s, strict=True)]
        assert all(sum(map(mul, row, own)) > 0 for row in A)
    assert sum(w[j] * centre.centre[j] < 0 for j, w in centre.inside.items()) > 8
    assert all(w[j] * centre.centre[j] > 0 for j in centre.same for w in centre.inside.values())
    assert dict(coefficients.coordinate_signs(found)).keys() == {*range(31)}
