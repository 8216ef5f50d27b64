"""Certificates: false ones are rejected by both checkers, malformed ones are refused, and the bounds are bounds."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import struct
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from checkers import both
from hypothesis import example, given
from hypothesis import strategies as st
from passes import Kept

import gordan
from gordan import floats
from gordan.certificates import bounds, matrix, standalone
from gordan.certificates import problem as problem_module
from gordan.certificates.margins import Margin
from gordan.certificates.matrix import Matrix, Products, exact_score, near_score
from gordan.certificates.problem import Problem
from gordan.certificates.verify import check
from gordan.intercepts import Intercept
from gordan.rows import cluster, memory, reads, stored
from gordan.rows.blocks import Blocks
from gordan.rows.cluster import Cluster
from gordan.rows.memory import Dense, Sparse
from gordan.rows.reads import DenseBlock

INTERCEPTS = (Intercept.FREE, Intercept.NONE, Intercept.PENALIZED)
SEPARABLE = [[1.0, 0.5], [2.0, 3.0], [0.75, -0.25], [-1.0, -2.0], [-2.0, 0.125], [-0.5, -1.0]]
INSEPARABLE = [[1.0, 1.0], [3.0, -1.0], [-2.0, 0.5], [1.0, 0.0], [-1.5, 0.25], [2.0, 0.25]]
Y = [1, 1, 1, 0, 0, 0]
# A bound is too large by no more than this share.
SHARP = 1 - Fraction(1, 10**12)


def made(kind, intercept):
    """A certificate of that kind from `separate`, and its data."""
    X = INSEPARABLE if kind == "witness" else SEPARABLE
    certificate = gordan.separate(X, Y, intercept=intercept).certificate
    assert certificate.kind == ("witness" if kind == "witness" else "separator")
    return replace(certificate, kind=kind), X


def one_changed(values, changes):
    """Every tuple with one entry replaced by one of its changes."""
    return [(*values[:i], new, *values[i + 1 :]) for i, old in enumerate(values) for new in changes(old) if new != old]


def mutations(c):
    """Certificates that differ from c in one field."""
    n, d = c.shape
    if c.w is not None:
        around = lambda x: (-x, 0.0, 3 * x, math.nextafter(x, 9.0), x + 1e3, 1e300 * x)  # noqa: E731
        yield from (replace(c, w=w) for w in one_changed(c.w, around))
        yield from (replace(c, b=b) for b in around(c.b))
        yield replace(c, b=1.0)
    yield from (replace(c, weights=t) for t in one_changed(c.weights, lambda t: (2 * t, 7 * t, -t, 0 * t)))
    yield from (replace(c, rows=rows) for rows in one_changed(c.rows, lambda _: range(n + 1)))
    yield replace(c, rows=c.rows[1:], weights=c.weights[1:])
    if c.lower is not None:
        yield from (replace(c, lower=c.lower * f) for f in (1 + 1e-15, 1 + 1e-9, 1.5, 1e6, 1e300))
        yield from (replace(c, upper=c.upper * f) for f in (1 - 1e-15, 1 - 1e-9, 0.5, 1e-6, 0.0, -1.0))
    yield replace(c, classes=c.classes[::-1])
    yield replace(c, classes=(0, 2))
    yield from (replace(c, intercept=other) for other in INTERCEPTS)
    if c.kind in ("separator", "bracket"):
        yield from (replace(c, norm=norm) for norm in (math.inf, 3.0, 2.5, 1.5, 0.0))
        yield from (replace(c, nu=nu) for nu in (-1.0, 0.0, 1e-3, 0.5, 1.0, 1.5))
        yield from (replace(c, sample_weight=(*[1.0] * (n - 1), last)) for last in (1.0, 0.0, -1.0))
    yield from (replace(c, shape=shape) for shape in ((n + 1, d), (n, d + 1), (d, n)))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kind", ["separator", "witness", "bracket"])
def test_mutated_certificates(kind, intercept):
    """Both checkers say the same of each, and what one changed field makes false is rejected."""
    certificate, X = made(kind, intercept)
    assert both(certificate, X, Y) == (True, True)
    rejected, every = 0, list(mutations(certificate))
    for mutated in every:
        first, second = both(mutated, X, Y)
        rejected += not second
        assert first == second, mutated
    print(f"{len(every)} mutated, {rejected} became false and were rejected by both")
    assert rejected > 20


SOFT = np.round(np.random.default_rng(3).normal(size=(8, 2)), 2) + np.outer([1, -1] * 4, [0.7, 0.2])
SOFT_Y = [1, 0] * 4


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nu", [None, 0.5, 0.75])
@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_mutated_brackets(intercept, norm, nu, weighted):
    """Brackets of `maximize_margin`: whatever one changed field makes false is rejected by both checkers, and nothing else."""
    c = [1.0, 2.0, 0.0, 1.5, 0.5, 1.0, 2.0, 1.0] if weighted else None
    result = gordan.maximize_margin(SOFT, SOFT_Y, norm=norm, nu=nu, intercept=intercept, sample_weight=c)
    certificate, X = result.certificate, SOFT.tolist()
    assert certificate.kind == "bracket"
    assert 0 < certificate.lower < certificate.upper < math.inf
    assert both(certificate, X, SOFT_Y) == (True, True)
    rejected, every = 0, [*mutations(certificate), *weight_mutations(certificate)]
    for mutated in every:
        first, second = both(mutated, X, SOFT_Y)
        rejected += not second
        assert first == second, mutated
    print(f"{len(every)} mutated, {rejected} became false and were rejected by both")
    assert rejected > 20


def weight_mutations(c):
    """Certificates that differ in one sample weight, in all of them, or in nu by one unit in the last place."""
    plain = c.sample_weight or (1.0,) * c.shape[0]
    yield from (replace(c, sample_weight=w) for w in one_changed(plain, lambda t: (0.0, 2 * t, t / 2, -1.0, math.inf)))
    yield replace(c, sample_weight=tuple(3 * t for t in plain))
    yield replace(c, sample_weight=None)
    if c.nu is not None:
        yield from (replace(c, nu=nu) for nu in (c.nu / 2, math.nextafter(c.nu, 0.0), math.nextafter(c.nu, 2.0), 5e-324, None))


@pytest.mark.parametrize("seed", range(30))
def test_nu_is_feasible_or_not_to_the_last_bit(seed):
    """A bracket for nu at the largest float that leaves a p is accepted by both; the next float is rejected by both."""
    r = np.random.default_rng(seed)
    n = int(r.integers(3, 30))
    y = (np.arange(n) < r.integers(1, n)).astype(int).tolist()
    c = [1.0] * n if seed % 3 == 0 else (r.uniform(0.1, 1.0, n) * 2.0 ** (seed % 3 * r.integers(-30, 30, n))).tolist()
    totals = [sum(Fraction(w) for w, label in zip(c, y, strict=True) if label == side) for side in (1, 0)]
    limit = 2 * min(totals) / sum(totals)
    nu = float(limit)
    nu = nu if Fraction(nu) <= limit else math.nextafter(nu, 0.0)
    X = [[1.0 if label else -1.0] for label in y]
    certificate = gordan.Certificate(
        "bracket", "free", (0, 1), (n, 1), (1.0,), 0.0, tuple(range(n)), tuple(c), 0.9, 1.1, nu=nu, sample_weight=tuple(c)
    )
    assert both(certificate, X, y) == (True, True)
    beyond = replace(certificate, nu=math.nextafter(nu, 1.0))
    assert both(beyond, X, y) == ((nu == 1.0, nu == 1.0) if beyond.nu == nu else (False, False))
    assert both(replace(beyond, rows=(), weights=(), upper=math.inf), X, y)[0] is (beyond.nu == nu)
    for intercept in ("none", "penalized"):
        one = replace(certificate, intercept=intercept, nu=1.0, lower=0.0)
        assert both(replace(one, upper=1.5), X, y) == (True, True)


@given(st.lists(st.floats(0, 1e308) | st.floats(0, 1e-300), min_size=1, max_size=9))
def test_exact_sums(values):
    """exact_sum makes no error, and `reaches` decides by it."""
    total = sum(map(Fraction, values))
    assert value(*bounds.exact_sum(np.array(values))) == total
    array = np.array(values)
    for nu in (1.0, 0.5, math.nextafter(1.0, 0.0)):
        for groups in (1, 2):
            expected = total >= Fraction(nu) * total / groups
            assert bounds.reaches(array, array, nu, groups) == expected
    assert bounds.reaches(array, np.append(array, 5e-324), 1.0, 1) is False


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_false_by_construction(intercept):
    """Claims that cannot be true, whatever their proof: a separator of inseparable data, a witness against a separable set."""
    separator, separable = made("separator", intercept)
    witness, inseparable = made("witness", intercept)
    for false, X in ((separator, inseparable), (witness, separable)):
        assert both(false, X, Y) == (False, False)
    for weights in one_changed(witness.weights, lambda t: (t + 1, 2 * t, 3 * t)):  # a minimal balance is unique up to scale
        assert both(replace(witness, weights=weights), inseparable, Y) == (False, False)
    flipped = replace(separator, classes=(1, 0))
    assert both(flipped, separable, Y) == (False, False)
    if intercept != "penalized":  # with both labels and classes swapped the claim is the same
        assert both(flipped, separable, [1 - label for label in Y]) == (True, True)
    for upper in (0.0, separator.lower * (1 - 1e-6)):
        assert both(replace(separator, upper=upper), separable, Y) == (False, False)
    for lower in (separator.upper * (1 + 1e-6), 1e300):
        assert both(replace(separator, lower=lower), separable, Y) == (False, False)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nu", [None, 0.25, 0.6])
@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 3.0, 2.75, math.inf])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_what_verify_computes_is_exact_to_rounding(intercept, norm, nu, weighted):
    """The bounds that `verify` derives are accepted by the exact checker, and one part in 10⁶ more by neither."""
    r = np.random.default_rng(0)
    lowers = 0
    for _ in range(6):
        signs = np.array([1, -1] * 5)
        X = r.normal(size=(10, 3)) * 2.0 ** r.integers(-8, 8) + 0.75 * signs[:, None]
        y = (signs > 0).astype(int).tolist()
        c = np.round(r.uniform(0.5, 2.0, 10), 2) if weighted else np.ones(10)
        if weighted:
            c[:2] = 0.0, 3.0
        problem, weights = Problem.of(X, y), c if weighted else None
        w, b, p = r.uniform(0.5, 1, 3) / 3, float(r.normal() / 8), c * (1.0 if nu else r.uniform(0.0, 1.0, 10))
        margin = Margin(problem.X, signs, intercept, norm, nu, weights)
        lower, upper = margin.lower(w, b), margin.upper(p)
        rows = tuple(np.flatnonzero(p).tolist())
        certificate = gordan.Certificate(
            "bracket", intercept, (0, 1), (10, 3), tuple(w.tolist()), b, rows, tuple(p[list(rows)].tolist())
        )
        certificate = replace(certificate, norm=norm, nu=nu, sample_weight=None if weights is None else tuple(c.tolist()))
        assert both(replace(certificate, lower=lower, upper=upper), X.tolist(), y) == (True, True)
        assert upper > lower
        assert both(replace(certificate, upper=upper * (1 - 1e-6)), X.tolist(), y) == (False, False)
        assert lower == 0 or both(replace(certificate, lower=lower * (1 + 1e-6)), X.tolist(), y) == (False, False)
        lowers += lower > 0
    assert lowers


OPPOSITE = [[1.0], [-1.0]]
FALSE = {
    "weights whose sum overflows": {"rows": (0, 1), "weights": (1e308, 1e308), "upper": 1e-300},
    "weights whose sum underflows": {"rows": (0, 1), "weights": (5e-324, 5e-324), "upper": 1e-300},
    "w whose norm overflows": {"w": (1.7e308,), "b": 1.7e308, "lower": 1.5},
    "nu below zero": {"rows": (0, 1), "weights": (1.0, 1.0), "upper": 1.5, "nu": -1.0},
    "nu zero": {"rows": (0, 1), "weights": (1.0, 1.0), "upper": 1.5, "nu": 0.0},
    "nu above one": {"w": (1.0,), "b": 0.0, "lower": 0.5, "nu": 1.5},
    "a negative sample weight": {"w": (1.0,), "b": 0.0, "lower": 0.5, "sample_weight": (1.0, -1.0)},
    "a negative sample weight under nu": {"w": (1.0,), "b": 0.0, "lower": 1.5, "nu": 0.5, "sample_weight": (4.0, -1.0)},
}


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("claim", FALSE)
def test_extreme_and_meaningless_claims(claim, intercept):
    """Overflow, underflow and parameters out of range reject; they do not accept, and do not raise."""
    certificate = gordan.Certificate("bracket", intercept, (0, 1), (2, 1), **FALSE[claim])
    assert both(certificate, OPPOSITE, [1, 0]) == (False, False)


def test_a_soft_lower_bound_on_the_border_of_narrow_is_checked_as_sharply_as_it_was_made():
    """Enclosures that are just too wide for who claims are sharpened, and just narrow enough for who checks: both must do it."""
    X = np.array([[-2, 2, -1, 1], [-3, 1, -2, 0], [3, -1, 3, 1], [1, -1, 1, 1]], dtype=np.float64)
    X = np.vstack((X, np.where(np.arange(4) == 3, -1.0, X))) * [1, 1, 1, 2.0**-15]
    y = [1] * 4 + [0] * 4
    result = gordan.maximize_margin(X, y, nu=1.0, norm=math.inf, tol=1e-4)
    assert result.status == "solved"
    assert gordan.verify(result.certificate, X, y)


def test_infeasible_nu():
    """Where nu leaves no p at all there is no margin to bound."""
    certificate = gordan.Certificate("bracket", "free", (0, 1), (3, 1), w=(1.0,), lower=0.5, nu=0.9)
    assert both(certificate, [[1.0], [-1.0], [-2.0]], [1, 0, 0]) == (False, False)


@pytest.mark.parametrize("scale", [1.7e308, 1e300, 1e-300, 5e-324])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_extreme_data_does_not_raise(scale, intercept):
    """Brackets at the ends of the float range are accepted or rejected, never a crash; and what is accepted is true."""
    X = [[scale] * 4, [-scale] * 4]
    for norm in (2.0, 3.0, math.inf):
        for w, t in ((1.0, 1.0), (1.7e308, 1.7e308), (5e-324, 5e-324)):
            base = gordan.Certificate("bracket", intercept, (0, 1), (2, 4), (w,) * 4, 0.0, (0, 1), (t, t), norm=norm)
            for claim in ({"lower": scale}, {"lower": 1e-3 * scale}, {"upper": scale}, {"upper": 2.5 * scale}):
                if math.isfinite(*claim.values()):
                    first, second = both(replace(base, **claim), X, [1, 0])
                    assert first == second


@pytest.mark.parametrize(
    "change", [{"w": (1.0, 1.0)}, {"w": (math.nan,)}, {"w": (math.inf,)}, {"lower": math.nan}, {"upper": math.nan}]
)
def test_handmade_certificates_that_no_file_can_hold(change):
    """A Certificate made in memory with a wrong length or NaN is rejected or refused by InputError, not accepted."""
    certificate = gordan.Certificate("separator", "none", (0, 1), (2, 1), w=(1.0,), rows=(0,), weights=(1.0,))
    try:
        accepted = bool(gordan.verify(replace(certificate, **change), OPPOSITE, [1, 0]))
    except gordan.InputError:
        accepted = False
    assert not accepted


VALID = json.loads(gordan.separate(SEPARABLE, Y).certificate.to_json())
MALFORMED = {
    **{f"no {name}": {k: v for k, v in VALID.items() if k != name} for name in VALID},
    **{f"{name} of another type": {**VALID, name: {"a": [1]}} for name in VALID},
    **{f"{name} a number": {**VALID, name: 1.5} for name in VALID},
    **{f"{name} NaN": {**VALID, name: "nan"} for name in ("b", "lower", "upper", "norm", "nu")},
    "w with NaN": {**VALID, "w": ["nan", (1.0).hex()]},
    "w infinite": {**VALID, "w": ["inf", (1.0).hex()]},
    "w too short": {**VALID, "w": [(1.0).hex()]},
    "lower infinite": {**VALID, "lower": "inf"},
    "weights too short": {**VALID, "weights": VALID["weights"][1:]},
    "a row below zero": {**VALID, "rows": [-1, *VALID["rows"][1:]]},
    "a row that is true": {**VALID, "rows": [True, *VALID["rows"][1:]]},
    "sample_weight too short": {**VALID, "sample_weight": [(1.0).hex()]},
    "one class twice": {**VALID, "classes": [1, 1]},
    "classes of another type": {**VALID, "classes": ["0", "1"]},
    "an unknown kind": {**VALID, "kind": "guess"},
    "an unknown intercept": {**VALID, "intercept": "some"},
    "another format": {**VALID, "format": "gordan-certificate-3"},
    "an extra field": {**VALID, "note": ""},
    "a list": [VALID],
    "a number": 3,
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_json(name):
    """What is not exactly a certificate is an InputError here and BadInput there."""
    with pytest.raises(gordan.InputError):
        gordan.Certificate.from_json(json.dumps(MALFORMED[name]))
    with pytest.raises(standalone.BadInput):
        standalone.check(MALFORMED[name], SEPARABLE, Y)


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, b"\xff\xfe", "NaN", json.dumps(VALID)[:-9], json.dumps(VALID)[:40], "9" * 5000]
)
def test_text_that_is_no_json(text):
    """Truncated, nested beyond reason, not UTF-8: an InputError."""
    with pytest.raises(gordan.InputError):
        gordan.Certificate.from_json(text)


@pytest.mark.parametrize(
    "y", [["no", "yes"], [0, 1], [-1, 1], [0.5, 2.5], [False, True], [0, 1.5], [-math.inf, math.inf], ["é", "\n"]]
)
def test_labels_survive(y):
    """Certificates keep labels of every kind through JSON."""
    certificate = gordan.separate([[0.0], [1.0]], y).certificate
    assert gordan.Certificate.from_json(certificate.to_json()) == certificate
    assert both(certificate, [[0.0], [1.0]], y) == (True, True)


# The bounds, against fractions.

FINITE = st.floats(allow_nan=False, allow_infinity=False)
MODERATE = st.floats(-1e150, 1e150)
MANTISSAS = st.integers(-(2**70), 2**70)


def value(m, e):
    """m·2^e as a fraction."""
    return Fraction(m) * Fraction(2) ** e


@given(MANTISSAS, st.integers(-1300, 1100))
@example(3, -1075)
@example(-3, -1075)
@example(2**60 + 1, -1130)
@example(1, 1024)
@example(-1, 1024)
@example(1, -2000)
@example(2**54 - 1, 970)  # above the largest float, and below the next power of two
@example(-(2**54 - 1), 970)
@example(2**53 + 1, 5)
def test_directed_rounding(m, e):
    """round_up is the least float not below, round_down the greatest not above."""
    exact = value(m, e)
    for rounded, side in ((bounds.round_up(m, e), 1), (bounds.round_down(m, e), -1)):
        if math.isfinite(rounded):
            assert side * Fraction(rounded) >= side * exact
        else:
            assert rounded == side * math.inf
        inner = math.nextafter(rounded, -side * math.inf)
        assert math.isinf(inner) or side * Fraction(inner) < side * exact


@given(FINITE, FINITE, st.lists(st.tuples(MANTISSAS, st.integers(-1200, 1200)), max_size=5))
def test_dyadics_are_exact(x, y, terms):
    """dyadic, multiply and add make no error."""
    assert value(*bounds.dyadic(x)) == Fraction(x)
    assert value(*bounds.multiply(bounds.dyadic(x), bounds.dyadic(y))) == Fraction(x) * Fraction(y)
    assert value(*bounds.add(terms)) == sum((value(m, e) for m, e in terms), Fraction(0))


@st.composite
def matrices(draw):
    """X dense or CSR, float32 or float64, w and b; rows may cancel, be subnormal or reach 1e300."""
    d = draw(st.integers(1, 5))
    entry = draw(st.sampled_from([FINITE, MODERATE, st.floats(-1e-300, 1e-300), st.integers(-3, 3).map(float)]))
    rows = draw(st.lists(st.lists(entry, min_size=d, max_size=d), min_size=2, max_size=6))
    w = draw(st.lists(entry, min_size=d, max_size=d))
    if d > 1 and draw(st.booleans()):  # x·w is small against its terms
        w = [1.0, -1.0, *[0.0] * (d - 2)]
        rows = [[row[0], math.nextafter(row[0], row[1]), *row[2:]] for row in rows]
    X = np.array(rows)
    if draw(st.booleans()):
        with np.errstate(over="ignore", under="ignore"):
            X = np.nan_to_num(X.astype(np.float32))
    return X, draw(st.booleans()), np.array(w), draw(entry)


@given(matrices())
def test_scores_are_enclosed(case):
    """lo ≤ y_i(x_i·w + b) ≤ hi, and exact_score is that score."""
    X, sparse, w, b = case
    signs = np.array([1, -1] * 3)[: len(X)].astype(np.int8)
    problem = Problem.of(sp.csr_array(X) if sparse else X, signs)
    lo, hi = Products.of(problem.X, w).scores(b, signs)
    for i, row in enumerate(X.tolist()):
        exact = int(signs[i]) * (sum((Fraction(x) * Fraction(v) for x, v in zip(row, w.tolist(), strict=True)), Fraction(b)))
        assert math.isinf(lo[i]) or Fraction(lo[i]) <= exact
        assert math.isinf(hi[i]) or exact <= Fraction(hi[i])
        assert lo[i] < hi[i]
        assert value(*exact_score(problem.X, i, w, b, int(signs[i]))) == exact


@given(matrices())
@example((np.array([[0.0, 0.0], [5e-324, 5e-324]]), False, np.zeros(2), 0.0))  # √2 of them is not one of them
def test_rounded_scores_have_the_right_sign(case):
    """Where products can be split without error, near_score is the float nearest to the score; norms of rows are upper bounds."""
    X, sparse, w, b = case
    signs = np.array([1, -1] * 3)[: len(X)].astype(np.int8)
    problem = Problem.of(sp.csr_array(X) if sparse else X, signs)
    for i, row in enumerate(X.tolist()):
        exact = int(signs[i]) * (sum((Fraction(x) * Fraction(v) for x, v in zip(row, w.tolist(), strict=True)), Fraction(b)))
        found = near_score(problem.X, i, w, b, int(signs[i]))
        assert math.isnan(found) or found == float(exact)
        square = sum(Fraction(x) ** 2 for x in row)
        upper = float(problem.X.norms[i])
        assert math.isinf(upper) or square <= Fraction(upper) ** 2
        assert upper == 0 or not 1e-120 < max(map(abs, row)) < 1e140 or Fraction(upper) ** 2 <= square * Fraction(1 + 1e-12)


def test_rounded_scores_where_nearly_everything_cancels():
    """The plain sum of these products is wrong in its sign; the rounded score is not, and tiny products are left to integers."""
    X, w = np.array([[1e16, 1.0, -1e16, 2.0**-40]]), np.array([1.0 + 2.0**-30, -1.0, 1.0 + 2.0**-30, 1.0])
    problem = Problem.of(np.vstack([X, -X]), [0, 1])
    exact = sum(Fraction(x) * Fraction(v) for x, v in zip(X[0].tolist(), w.tolist(), strict=True))
    assert near_score(problem.X, 0, w, 1.0, 1) == float(exact + 1) == 2.0**-40
    assert math.isnan(near_score(problem.X, 0, w * 2.0**-950, 0.0, 1))


def test_sums_are_near():
    """near_sum is within 1 ± (GO + 1)u of the sum, for lengths around the number of terms that are added in one go."""
    r = np.random.default_rng(3)
    for length in (0, 1, 63, 64, 65, 1000):
        values = r.uniform(size=length) * 2.0 ** r.integers(-40, 40, length)
        exact = sum(map(Fraction, values.tolist()), Fraction(0))
        assert abs(Fraction(bounds.near_sum(values)) - exact) <= exact * (bounds.GO + 1) * Fraction(1, 2**53)
    assert bounds.near_sum(np.full(100, 1e308)) == math.inf


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


# The matrix, wherever its rows are.


class Here:
    """An engine that works on blocks as another machine would."""

    def run(self, work, blocks, own, shared):
        return [work(block.load(), *mine, *shared) for block, mine in zip(blocks, own, strict=True)]


def elsewhere(X, length):
    """Rows in blocks of some length that are worked on one by one, as on other machines."""
    held = [stored(X[lo : lo + length]) for lo in range(0, X.shape[0], length)]
    storage = Cluster.__new__(Cluster)
    storage.engine, storage._blocks = Here(), Blocks([Kept(part) for part in held], X.shape[1], X.dtype, engine=Here())
    for name in ("blocks", "ends", "n", "d", "entries"):
        setattr(storage, name, getattr(storage._blocks, name))
    return storage


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
    monkeypatch.setattr(reads, "WORTH_THREADS", 1 if threads > 1 else 1 << 19)
    monkeypatch.setattr(cluster, "MOST_BROUGHT", 5 if threads > 1 else cluster.MOST_BROUGHT)
    monkeypatch.setattr(reads, "FETCHED", 40 if threads > 1 else reads.FETCHED)
    X, w = random_rows(rng), rng.normal(size=6)
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
    M.have(range(23))
    for i in range(23):
        columns, values = M.row(i)
        assert columns.tolist() == np.flatnonzero(X[i]).tolist()
        assert values.tolist() == X[i][X[i] != 0].tolist()
        assert values.dtype == np.float64
    products.sharpen(np.arange(0, 23, 2))
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
    X = random_rows(np.random.default_rng(2))
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
    monkeypatch.setattr(cluster, "MOST_BROUGHT", 0)
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


def gamma(k):
    """What k roundings may do to a sum of products, as a share of the sum of their sizes: ku/(1 - ku)."""
    return Fraction(k, 2**53) / (1 - Fraction(k, 2**53))


class Adversary(Dense):
    """Sums as far off as the number of their terms allows, to one side or the other."""

    def __init__(self, X, side):
        super().__init__(X)
        self.side, self.exact = side, [[Fraction(x) for x in row] for row in X.tolist()]

    def block(self, lo, hi, first=0):
        return AdversaryBlock(self.arrays[0][lo:hi], first + lo, self.side)


class AdversaryBlock(DenseBlock):
    def __init__(self, values, first, side):
        super().__init__(values, first)
        self.side, self.exact = side, [[Fraction(x) for x in row] for row in values.tolist()]

    def off(self, terms, side):
        """Σ terms and as much as roundings may add to it; two of them are left for this float."""
        return float(sum(terms) + side * (gamma(len(terms)) - Fraction(2, 2**53)) * sum(map(abs, terms)))

    def dot(self, w):
        v = [Fraction(x) for x in w.tolist()]
        sums = [self.off([x * y for x, y in zip(row, v, strict=True)], self.side) for row in self.exact]
        return np.array(sums), np.array(self.d)

    def squares(self):
        return np.array([self.off([x * x for x in row], -1) for row in self.exact])

    def abs_dot(self, size):
        v = [Fraction(x) for x in size.tolist()]
        return np.array([self.off([abs(x * y) for x, y in zip(row, v, strict=True)], -1) for row in self.exact])

    def weighted(self, q):
        weights = [Fraction(x) for x in q.tolist()]
        columns = zip(*self.exact, strict=True)
        return np.array([self.off([x * y for x, y in zip(column, weights, strict=True)], self.side) for column in columns])

    def only(self, i):
        return AdversaryBlock(self.values[i], 0, self.side)


def nearly(values, side):
    """`near_sum`, as far from the sum as it may be."""
    return float(sum(Fraction(x) for x in values.tolist()) * (1 + side * (bounds.GO + 1) * Fraction(1, 2**53)))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize(("side", "near"), [(1, 0), (-1, 0), (-1, -1), (-1, 1), (1, 1)])
def test_bounds_hold_for_whatever_a_sum_may_lose(side, near, intercept, monkeypatch):
    """Norms, scores and upper bounds, although every sum in floats is as wrong as the order of its terms may make it."""
    rng = np.random.default_rng(17)
    X, w, b = rng.uniform(0.5, 1.0, (16, 60)), rng.uniform(0.5, 1.0, 60), 0.25
    signs = np.array([1] * 16 if intercept != "free" else [1, -1] * 8, dtype=np.int8)
    if intercept == "free":
        X[1::2] *= -1
    M = Matrix(Adversary(X, side))
    exact = M.storage.exact
    for row, norm in zip(exact, M.norms.tolist(), strict=True):
        assert sum(x * x for x in row) <= Fraction(norm) ** 2
    products = Products.of(M, w)
    for _ in range(2):
        lo, hi = products.scores(b, signs)
        for row, sign, low, high in zip(exact, signs.tolist(), lo.tolist(), hi.tolist(), strict=True):
            score = sign * (sum(x * Fraction(y) for x, y in zip(row, w.tolist(), strict=True)) + Fraction(b))
            assert Fraction(low) <= score <= Fraction(high)
        products.sharpen(np.arange(16))
    margin = Margin(M, signs, intercept)
    for p in (np.ones(16), rng.uniform(size=16), np.where(np.arange(16) < 4, 1.0, 0.0)):
        total = [Fraction(0)] * (60 + (intercept == "penalized"))
        for group in margin.groups:
            mass = sum(Fraction(float(p[i])) for i in group) * len(margin.groups)
            for i in group:
                row = [*exact[i], *([Fraction(1)] if intercept == "penalized" else [])]
                total = [t + Fraction(float(p[i])) * int(signs[i]) * x / mass for t, x in zip(total, row, strict=True)]
        # the masses of the groups to one side, and what is added up after them to the other
        sides = itertools.chain([near] * len(margin.groups), itertools.repeat(-near))
        with monkeypatch.context() as patch:
            patch.setattr(bounds, "near_sum", lambda values, sides=sides: nearly(values, next(sides)))
            upper = Fraction(margin.upper(p)) ** 2
        square = sum(t * t for t in total)
        assert square <= upper <= square * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("length", [3, 64, 200])
def test_the_norm_of_a_vector_holds_for_whatever_a_sum_may_lose(length, monkeypatch):
    """`near_sum` as far below the sum as it may be."""
    sizes = np.random.default_rng(1).uniform(0.5, 1.0, length)

    monkeypatch.setattr(bounds, "near_sum", lambda values: nearly(values, -1))
    square = sum(Fraction(x) ** 2 for x in sizes.tolist())
    bound = Fraction(bounds.norm_bound(sizes, 2.0, dual=False)) ** 2
    assert square <= bound <= square * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_norms_of_rows_whose_squares_are_no_floats(d, storage):
    """Rows of one entry or more, beside one whose square is: bounds all the same, and sharp to √d."""
    sizes = [1.0, 1e-200, 1e200, 5e-324, 1.7e308, 1e-141, 1e-139, 1e149, 1e151]
    M = Problem.of(storage(np.array([[0.0] * d, *([size] * d for size in sizes)])), [0, *[1] * 9]).X
    assert M.norms[0] == 0
    for size, norm in zip(sizes, M.norms[1:].tolist(), strict=True):
        if math.isfinite(norm):
            assert d * Fraction(size) ** 2 <= Fraction(norm) ** 2
            assert norm <= math.sqrt(d) * size * (1 + 1e-14) + 5e-324
        assert math.isfinite(norm) or size * math.sqrt(d) > 1.7e308


def test_overflow_in_one_row_is_not_that_of_others():
    products = Products.of(Matrix(Dense(np.array([[1e308, 1e308], [1.0, 2.0], [-1e308, -1e308]]))), np.array([1e10, 1e10]))
    lo, hi = products.scores(0.0, np.ones(3))
    assert lo[0] == lo[2] == -math.inf
    assert hi[0] == hi[2] == math.inf
    assert 2.9e10 < lo[1] < 3e10 < hi[1] < 3.1e10


def test_products_are_split_without_error():
    """x·v, less its float, less the rest of it, is zero: to the last of its 106 digits."""
    rng = np.random.default_rng(9)
    for x, v in rng.uniform(1.0, 2.0, (300, 2)).tolist():
        rest = Fraction(x) * Fraction(v) - Fraction(x * v)
        row = np.array([[x, -(x * v), -float(rest)], [1.0, 0.0, 0.0]])
        assert Fraction(float(rest)) == rest
        assert near_score(Matrix(Dense(row)), 0, np.array([v, 1.0, 1.0]), 0.0, 1) == 0
        assert near_score(Matrix(Dense(row)), 0, np.array([v, 1.0, 1.0]), 2.0**-200, -1) == -(2.0**-200)


def test_products_that_cannot_be_split_are_not_guessed():
    """Products beyond the floats, of both signs; a factor that is itself too large to split. `exact_score` knows."""
    for x, v in (([1e200, 1e200, 1.0], [1e200, -1e200, 1.0]), ([1.5e308, 1.0], [1e-300, 1.0])):
        M, w = Matrix(Dense(np.array([x]))), np.array(v)
        assert math.isnan(near_score(M, 0, w, 0.0, 1))
        m, e = exact_score(M, 0, w, 0.0, 1)
        assert Fraction(m) * Fraction(2) ** e == sum(Fraction(a) * Fraction(b) for a, b in zip(x, v, strict=True))


@pytest.mark.parametrize("nu", [None, 0.5])
def test_lower_bounds_scale_with_the_data_and_keep_their_slack(nu):
    """A column that w does not see makes the first enclosures too wide; what is found without it is as good on every scale, and
    a claim is made with more slack than its check, there too."""
    X, signs, w = np.array([[1.0, 1e9], [2.0, -1e9], [1.5, 1e8], [1.0, 1e9]]), np.ones(4, dtype=np.int8), np.array([1.0, 0.0])

    def lower(X, **options):  # anew: what was sharpened is remembered
        return Margin(Matrix(Dense(X)), signs, Intercept.NONE, nu=nu).lower(w[: X.shape[1]], 0.0, **options)

    found = lower(X)
    assert 1 - 1e-14 < found < 1
    for scale in (2.0**-60, 1.0, 2.0**60):
        assert lower(X * scale) == pytest.approx(found * scale, rel=1e-15, abs=0)
        for data in (X * scale, X[:, :1] * scale):
            assert lower(data, slack=matrix.CLAIM) < lower(data)


def test_upper_bounds_of_rows_that_vanish_when_weighted():
    """A third of the least float is 0; three thirds of it are not."""
    X = np.full((3, 1), 5e-324)
    assert Margin(Matrix(Dense(X)), np.ones(3, dtype=np.int8), Intercept.NONE).upper(np.ones(3)) >= 5e-324


def test_slack_widens_the_enclosures():
    X = random_rows(np.random.default_rng(4))
    products, signs = Products.of(Matrix(Dense(X)), np.arange(6.0)), np.ones(23)
    plain, wide = products.scores(0.5, signs), products.scores(0.5, signs, 1000.0)
    assert [part.tolist() for part in products.scores(0.5, signs, 1.0)] == [part.tolist() for part in plain]
    assert np.allclose(wide[1] - wide[0], 1000 * (plain[1] - plain[0]), rtol=0.5)


def test_errors_are_those_of_the_theory():
    """γ_k Σ|a||w|, where the sum itself is only known as computed, and TINY for each term that may underflow."""
    for k in (1, 5, 1000, 10**6):
        for size in (0.0, 1e-310, 1.0, 1e300):
            bound = Fraction(float(matrix.error(np.array([size]), np.array(k))[0]))
            needed = gamma(k) * Fraction(size) / (1 - gamma(k)) + k * Fraction(sys.float_info.min)
            assert needed <= bound <= Fraction(2001 * (k + 4), 1000 * 2**53) * Fraction(size) + (k + 5) * Fraction(bounds.TINY)


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
    monkeypatch.setattr(reads, "WORTH_THREADS", 12)
    monkeypatch.setattr(memory, "available", lambda: 7)
    monkeypatch.setattr(memory, "in_waves", lambda work, arrays, ranges, threads, wave: asked.append((ranges, threads)) or [])
    for n, d in ((4, 3), (11, 1), (2, 6), (1, 11)):
        list(Dense(np.zeros((n, d))).each_block(print))
    for entries in (12, 11):
        list(Sparse(np.ones(entries), np.zeros(entries, np.int32), np.array([0, 5, entries]), 100).each_block(print))
    assert asked == [([(0, n)], threads) for n, threads in ((4, 7), (11, 1), (2, 7), (1, 1), (2, 7), (2, 1))]


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
    assert Products.of(M, w.copy()) is first
    w[0] = 7.0  # what is kept is a copy
    assert Products.of(M, w) is not first
    assert first.w[0] == 0
    counted = []
    for vector in (np.ones(2), np.ones(2), np.zeros(2), np.ones(2)):
        M.remembered("count", vector, lambda: counted.append(1) or len(counted))
    assert len(counted) == 3
    assert M.remembered("other", np.ones(2), lambda: "another kind") == "another kind"
    assert M.remembered("count", np.ones(2), lambda: None) == 3


@given(st.lists(FINITE.map(abs) | st.floats(0, 1e-320) | st.integers(0, 3).map(float), min_size=1, max_size=6))
def test_norms_are_enclosed(x):
    """Norms 2, ∞, its dual 1, and 3 by their powers; wide by no more than 10⁻¹² of themselves."""
    exact = [Fraction(v) for v in x]
    powers = {
        (2.0, False): (2, sum(v**2 for v in exact)),
        (2.0, True): (2, sum(v**2 for v in exact)),
        (math.inf, False): (1, max(exact)),
        (math.inf, True): (1, sum(exact)),
        (3.0, False): (3, sum(v**3 for v in exact)),
    }
    for (p, dual), (power, total) in powers.items():
        bound = bounds.norm_bound(np.array(x), p, dual=dual)
        assert math.isinf(bound) or total <= Fraction(bound) ** power
        if 1e-290 < max(x) < 1e290:
            assert (Fraction(bound) * SHARP) ** power <= total


@pytest.mark.parametrize("dual", [False, True])
@pytest.mark.parametrize("p", [2.0, 3.0, 2.5, 1e6, 1e300, math.inf])
def test_norms_at_the_ends(p, dual):
    """Nothing and zeros have the norm 0, what is not finite an infinite one; units and powers of two are sharp to rounding."""
    assert bounds.norm_bound(np.zeros(0), p, dual=dual) == bounds.norm_bound(np.zeros(3), p, dual=dual) == 0
    for bad in (math.inf, math.nan):
        assert bounds.norm_bound(np.array([1.0, bad]), p, dual=dual) == math.inf
    for size in (1.0, 2.0**1000, 2.0**-1000, 5e-324, 1.5e308):
        bound = bounds.norm_bound(np.array([0.0, size, 0.0]), p, dual=dual)
        assert size <= bound <= size * (1 + 1e-14) + 5e-324
    assert bounds.norm_bound(np.full(4, 1.5e308), 2.0, dual=dual) == math.inf
    assert bounds.norm_bound(np.full(4, 1.5e308), math.inf, dual=True) == math.inf
    assert p in (2.0, math.inf) or bounds._power_norm(np.zeros(2), p, dual) == 5e-324  # above 0, and no more
    many = np.full(10_000, 0.25)
    q = p if not dual else (p / (p - 1) if p < math.inf else 1.0)
    assert bounds.norm_bound(many, p, dual=dual) == pytest.approx(0.25 * 10_000 ** (1 / q), rel=1e-12)


@given(st.lists(st.floats(0, 1e308), min_size=1, max_size=6), st.sampled_from([2.5, 3.0, 7.0, 1.5e3]))
def test_dual_norm_with_standalone(x, p):
    """The dual norm of other exponents, against the decimals of the standalone checker."""
    bound = bounds.norm_bound(np.array(x), p, dual=True)
    exact = [Fraction(v) for v in x]
    assert math.isinf(bound) or standalone._at_least(Fraction(bound), exact, Fraction(p), dual=True)
    if 1e-290 < max(x) < 1e290:
        assert not standalone._at_least(Fraction(bound) * SHARP, exact, Fraction(p), dual=True)


@given(st.lists(st.floats(-1e307, 1e307), min_size=1, max_size=9))
def test_sums_are_enclosed(values):
    """sum_bounds holds Σ values."""
    low, high = bounds.sum_bounds(np.array(values))
    assert Fraction(low) <= sum(map(Fraction, values)) <= Fraction(high)


@pytest.mark.parametrize("x", [0.1, 1e-310, 1e300, -0.1])
@pytest.mark.parametrize("length", [1, 64, 65, 100, 1000])
def test_sums_of_equal_values_are_enclosed(x, length):
    """Many equal values are not added up one by one; the enclosure is as narrow as that of others."""
    low, high = bounds.sum_bounds(np.full(length, x))
    assert Fraction(low) <= length * Fraction(x) <= Fraction(high)
    assert Fraction(high) - Fraction(low) <= 2 * Fraction(math.ulp(length * x))


@pytest.mark.parametrize("length", [64, 65, 200])
def test_sums_of_many_values_are_enclosed(length):
    values = np.random.default_rng(length).uniform(0.0, 1.0, length)
    lower, upper = bounds.sum_bounds(values)
    exact = sum(Fraction(x) for x in values.tolist())
    assert Fraction(lower) < exact < Fraction(upper)
    assert upper - lower < 1e-13 * upper


def test_sums_beyond_the_floats():
    most = math.nextafter(math.inf, 0.0)
    assert bounds.sum_bounds(np.array([1e308, 1.5e308, 1.0])) == (most, math.inf)
    assert bounds.sum_bounds(np.array([-1e308, -1.5e308, -1.0])) == (-math.inf, -most)
    assert bounds.sum_bounds(np.array([0.25, 1e308, 1.5e308])) == (most, math.inf)
    assert bounds.near_sum(np.array([0.0] * bounds.GO + [1e308, 1e308])) == math.inf


def test_the_unit_of_rounding():
    """1 + u is rounded to 1, more is not; nothing that underflows loses more than TINY, even where subnormals are flushed."""
    assert 1 + bounds.U == 1
    assert 1 + 1.5 * bounds.U > 1
    assert sys.float_info.min <= bounds.TINY / 2


# The hash, and the standalone checker as a program.


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


def write(folder, kind, X, y):
    """The data in a file of that kind, and the arguments for it."""
    X = np.array(X)
    path = folder / f"data.{kind.split()[0]}"
    if kind in ("csv", "tsv"):
        mark = "," if kind == "csv" else "\t"
        path.write_text(
            "\n".join([f"a{mark}b{mark}label", *(mark.join(map(repr, [*row, v])) for row, v in zip(X.tolist(), y, strict=True))])
        )
        return [path, "--label", "label"]
    if kind == "svm":
        lines = (
            f"{v} " + " ".join(f"{j + 1}:{x!r}" for j, x in enumerate(row) if x) for row, v in zip(X.tolist(), y, strict=True)
        )
        path.write_text("# data\n" + "\n".join(lines))
        return [path]
    dtype, order = kind.split()[1:]
    np.save(path, np.asarray(X, dtype=dtype, order=order))
    np.save(folder / "y.npy", np.array(y))
    return [path, "--labels", folder / "y.npy"]


@pytest.mark.parametrize("kind", ["csv", "tsv", "svm", "npy f8 C", "npy f4 F", "npy f2 C"])
def test_standalone_reads_files(kind, tmp_path, capsys):
    """Every kind of file, with true and false certificates, and the exit codes."""
    arguments = [str(part) for part in write(tmp_path, kind, SEPARABLE, Y)]
    certificate = gordan.separate(SEPARABLE, Y).certificate
    other = replace(certificate, kind="overlap", w=None, b=None, lower=None, upper=None, weights=(1, 1), rows=(0, 3))
    for content, code in (
        (certificate, 0),
        (replace(certificate, classes=(1, 0)), 1),
        (replace(certificate, shape=(6, 2), b=9.0), 1),
        (other, 1),
    ):
        path = tmp_path / "certificate.json"
        path.write_text(content.to_json())
        assert standalone.main([str(path), *arguments]) == code
    path.write_text("{")
    assert standalone.main([str(path), *arguments]) == 2
    path.write_text(certificate.to_json())
    for bad in (b"", b"\0\xff", b"a,b\n1\n", b"1 1:\n"):
        (tmp_path / arguments[0]).write_bytes(bad)
        assert standalone.main([str(path), *arguments]) == 2
    assert standalone.main([str(path), str(tmp_path / "missing.csv")]) == 2


FILES = {
    "too few labels": ("data.svm", "1 1:1\n0 1:1\n", "it is about 5 rows"),
    "entries outside": ("data.svm", "1 9:1\n0 1:1\n", "it is about 2 columns; the data has 9"),
    "one class": ("data.svm", "2 1:1\n" * 5, "the data has 1 classes"),
    "entries before the first": ("data.svm", "1 -3:1\n0 1:1\n", "in the column -4"),
    "an index that is too long": ("data.svm", f"1 {2**62}:1\n", "line 1 has an index beyond"),
    "an index twice": ("data.svm", "1 1:1 1:2\n", "the same index twice"),
    "infinite": ("data.csv", "a,b,y\n" + "inf,0,0\n" * 3 + "1,0,1\n" * 2, "not a finite number"),
    "an open quote": ("data.csv", 'a,b,y\n1,2,"0' + "x" * 200_000, "field larger than field limit"),
    "no such column": ("data.csv", "a,b,y\n1,2,0\n", "there is no column 7"),
}


@pytest.mark.parametrize(("name", "content", "told"), FILES.values(), ids=FILES)
def test_standalone_says_what_is_wrong_with_a_file(name, content, told, tmp_path, capsys):
    proof = tmp_path / "certificate.json"
    proof.write_text(gordan.separate(SEPARABLE, Y).certificate.to_json().replace(f'"shape": [{len(Y)}', '"shape": [5'))
    (tmp_path / name).write_text(content)
    options = ["--label", "7"] if "7" in told else []
    assert standalone.main([str(proof), str(tmp_path / name), *options]) == (1 if told.startswith("it is") else 2)
    printed = capsys.readouterr()
    assert told in printed.out + printed.err


def test_standalone_reads_arrays_of_labels(tmp_path, capsys):
    """Text and booleans; what it does not read is refused, and so are arrays that are not there."""
    labels = {"text": np.where(np.array(Y) == Y[0], "no", "yes"), "bool": np.array(Y) != Y[0]}
    X, y, proof = (tmp_path / name for name in ("X.npy", "y.npy", "certificate.json"))
    np.save(X, np.array(SEPARABLE))
    for values in labels.values():
        np.save(y, values)
        proof.write_text(gordan.separate(SEPARABLE, values).certificate.to_json())
        assert standalone.main([str(proof), str(X), "--labels", str(y)]) == 0
        np.save(y, values[::-1])
        assert standalone.main([str(proof), str(X), "--labels", str(y)]) == 1
    np.save(y, labels["bool"])
    assert standalone.main([str(proof), str(X)]) == 2
    np.save(X, np.array(SEPARABLE).astype(">f8"))
    assert standalone.main([str(proof), str(X), "--labels", str(y)]) == 2
    np.save(X, np.zeros((len(Y), 2, 1)))
    assert standalone.main([str(proof), str(X), "--labels", str(y)]) == 2
    told = capsys.readouterr().err
    assert "add --labels y.npy" in told
    assert "arrays of type >f8" in told
    assert "does not hold an array of one or two dimensions" in told


@pytest.mark.parametrize("third", [2**53, 2**53 + 1])
def test_standalone_reads_long_whole_labels(third, tmp_path):
    """Labels that are the same as floats are not the same."""
    (tmp_path / "d.csv").write_text(f"x,y\n0,1\n1,1\n3,{2**53 + 1}\n4,{third}\n")
    claim = gordan.Certificate("separator", "free", (1, 2**53 + 1), (4, 1), w=(1.0,), b=-2.0)
    (tmp_path / "c.json").write_text(claim.to_json())
    arguments = [str(tmp_path / "c.json"), str(tmp_path / "d.csv")]
    assert standalone.main(arguments) == (2 if third == 2**53 else 0)  # three classes
    claim = gordan.Certificate("separator", "free", (False, True), (4, 1), w=(1.0,), b=-2.0)
    (tmp_path / "c.json").write_text(claim.to_json())
    assert standalone.main([*arguments, "--positive", str(2**53 + 1)]) == (third == 2**53)


@pytest.mark.parametrize(
    "header", [{"descr": "", "shape": (2, 2)}, {"descr": "<f8", "shape": (-2, -2)}], ids=["no type", "shape"]
)
def test_standalone_refuses_arrays_that_are_none(header, tmp_path):
    text = repr(header | {"fortran_order": False}).encode("latin-1")
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(32))
    with pytest.raises(standalone.BadInput):
        standalone.read_npy(tmp_path / "a.npy")


def test_standalone_reads_booleans_in_text(tmp_path):
    y = np.array(Y) != Y[0]
    (tmp_path / "c.json").write_text(gordan.separate(SEPARABLE, y).certificate.to_json())
    for words in (("False", "True"), ("0", "1")):
        data = write(tmp_path, "csv", SEPARABLE, Y)[0]
        lines = data.read_text().splitlines()
        body = [line.rsplit(",", 1)[0] + "," + words[value] for line, value in zip(lines[1:], y.tolist(), strict=True)]
        data.write_text("\n".join([lines[0], *body]))
        assert standalone.main([str(tmp_path / "c.json"), str(data), "--label", "label"]) == 0


@pytest.mark.parametrize("names", [("rose", "tulip", "violet"), ("1", "2.0", "3")], ids=["text", "numbers"])
def test_standalone_takes_one_class_against_the_rest(names, tmp_path, capsys):
    X, labels = [[0.0, 1.0], [1.0, 0.0], [5.0, 5.0], [6.0, 5.0], [9.0, 0.0]], [names[k] for k in (0, 0, 1, 1, 2)]
    proof, data = tmp_path / "c.json", tmp_path / "data.csv"
    proof.write_text(gordan.separate(X, np.array(labels) == names[1]).certificate.to_json())
    data.write_text("a,b,kind\n" + "".join(f"{a},{b},{label}\n" for (a, b), label in zip(X, labels, strict=True)))
    assert standalone.main([str(proof), str(data), "--positive", names[1]]) == 0
    assert standalone.main([str(proof), str(data), "--positive", names[2]]) == 1
    assert standalone.main([str(proof), str(data), "--positive", "lily"]) == 2
    assert standalone.main([str(data), str(proof)]) == 2
    told = capsys.readouterr().err
    assert "no row has the label 'lily'" in told
    assert "the certificate comes first" in told
    if names[0] == "rose":
        assert standalone.main([str(proof), str(data)]) == 2
        assert "add --positive CLASS" in capsys.readouterr().err
    proof.write_text(gordan.separate(SEPARABLE, Y).certificate.to_json())
    assert standalone.main([str(proof), str(data), "--positive", names[1]]) == 2
    assert "leave out --positive" in capsys.readouterr().err


def test_claims_without_what_proves_them():
    """Rejected by both checkers: no w, no weights, a group without weight."""
    n = len(Y)
    shape, classes = (n, 2), tuple(sorted({*Y}))
    for certificate in (
        gordan.Certificate("separator", "free", classes, shape, b=0.0),
        gordan.Certificate("bracket", "free", classes, shape, lower=0.1),
        gordan.Certificate("bracket", "none", classes, shape, w=(1.0, 1.0), lower=0.1, sample_weight=(0.0,) * n),
        gordan.Certificate("bracket", "free", classes, shape, upper=1.0),
    ):
        assert not gordan.verify(certificate, SEPARABLE, Y)
        assert not standalone.check(json.loads(certificate.to_json()), SEPARABLE, Y)[0]


def test_what_the_second_checker_is_given():
    """Rows and labels that are no data of a certificate are no reason to reject it: they are refused."""
    content = json.loads(gordan.separate(SEPARABLE, Y).certificate.to_json())
    for X, y, told in [
        (SEPARABLE, Y[:-1], "rows and"),
        ([["x", 0.0], *SEPARABLE[1:]], Y, "not a finite number"),
        ([{-1: 1.0}, *SEPARABLE[1:]], Y, "in the column -1"),
    ]:
        with pytest.raises(standalone.BadInput, match=told):
            standalone.check(content, X, y)


def test_labels_that_are_no_labels():
    with pytest.raises(gordan.InputError, match=r"y\[1\] is a number of 4001 bits"):
        gordan.separate([[0.0], [1.0]], np.array([0, 2**4000], dtype=object))
    verdict = gordan.separate([[0.0], [1.0]], np.array([np.int64(3), np.int64(5)], dtype=object))
    assert verdict.certificate.classes == (3, 5)


def test_standalone_stands_alone(tmp_path):
    """It runs as one file, without site-packages."""
    path = tmp_path / "certificate.json"
    path.write_text(gordan.separate(SEPARABLE, Y).certificate.to_json())
    data = write(tmp_path, "csv", SEPARABLE, Y)[0]
    copy = tmp_path / "checker.py"
    with open(standalone.__file__, encoding="utf-8") as source:
        copy.write_text(source.read(), encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", "-S", copy, path, data], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "accepted")
    assert done.stdout.endswith("  this is the data that it was made for\n")


# ---- what is not even a claim, and what only looks like one ----------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "proof"},
        {"intercept": "Free"},
        {"w": ("1",)},
        {"w": (None,)},
        {"w": (1j,)},
        {"w": [1.0]},
        {"w": (10**400,)},
        {"b": "x"},
        {"norm": None},
        {"norm": "2"},
        {"lower": "0"},
        {"rows": (0.0,)},
        {"weights": ("1",)},
        {"classes": (0, "1")},
        {"classes": ([0], [1])},
        {"shape": (2,)},
        {"sample_weight": "ab"},
    ],
)
def test_malformed_certificates_are_refused(change):
    good = {"kind": "bracket", "intercept": "none", "classes": (0, 1), "shape": (2, 1), "w": (1.0,), "lower": 0.1}
    with pytest.raises(gordan.InputError):
        gordan.Certificate(**{**good, **change})


@pytest.mark.parametrize("text", [None, 1, {}, "", "[]", "nonsense"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(gordan.InputError):
        gordan.Certificate.from_json(text)


def test_a_witness_has_whole_weights():
    with pytest.raises(gordan.InputError, match="whole numbers"):
        gordan.Certificate("witness", "free", (0, 1), (2, 1), rows=(0, 1), weights=(0.5, 0.5))


@pytest.mark.parametrize("norm", [3.0, 1e6, 1e38, 1e300, float("inf")])
def test_upper_bounds_hold_for_enormous_norms(norm):
    X, y = [[0.0], [1.2]], [0, 1]
    false = gordan.Certificate("bracket", "free", (0, 1), (2, 1), upper=0.59, rows=(0, 1), weights=(1.0, 1.0), norm=norm)
    assert not gordan.verify(false, X, y)
    assert gordan.verify(replace(false, upper=0.61), X, y)


@pytest.mark.parametrize("kind", ["witness", "bracket", "separator", "overlap"])
@pytest.mark.parametrize("wrap", [np.array, sp.csr_array])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nothing_is_accepted_about_data_that_is_not_finite(kind, wrap, value):
    X, y = wrap(np.array([[1.0], [1.0], [value]])), [0, 1, 1]
    fields = {"rows": (0, 1), "weights": (1, 1) if kind in ("witness", "overlap") else (1.0, 1.0)}
    fields |= {"w": (1.0,), "b": 0.0} if kind == "separator" else {"upper": 1.0} if kind == "bracket" else {}
    certificate = gordan.Certificate(kind, "free", (0, 1), (3, 1), **fields)
    with pytest.raises(gordan.InputError, match=r"X\[2, 0\] is"):
        gordan.verify(certificate, X, y)


def test_lower_bounds_that_are_exactly_true_are_accepted():
    X, y = [[0.0, 0.0], [3.0, 4.0]], [0, 1]
    c = gordan.Certificate("bracket", "free", (0, 1), (2, 2), w=(3.0, 4.0), lower=2.5)
    assert gordan.verify(c, X, y)
    assert not gordan.verify(replace(c, lower=np.nextafter(2.5, 3)), X, y)
    c = gordan.Certificate("bracket", "none", (0, 1), (2, 1), w=(1.0,), lower=1.0, norm=float("inf"))
    assert gordan.verify(c, [[-1.0], [1.0]], y)
    assert not gordan.verify(replace(c, lower=np.nextafter(1.0, 2)), [[-1.0], [1.0]], y)


def test_tails_of_enormous_scores_do_not_overflow():
    """A mean of 1e308 and scores about 0, all in all 2.5e307."""
    c = gordan.Certificate("bracket", "none", (0, 1), (4, 1), w=(1.0,), lower=1e-300, nu=1.0)
    X, y = [[1.0], [1e-160], [5e-324], [-1e308]], [0, 1, 0, 0]
    assert both(c, X, y) == (True, True)
    assert both(replace(c, lower=1e308 / 4), X, y) == (False, False)
    assert both(replace(c, lower=math.nextafter(1e308 / 4, 0.0)), X, y) == (True, True)


def test_the_hash_sees_labels_and_not_their_type():
    X = [[0.0], [1.0]]
    hashes = {gordan.separate(X, y).certificate.data_hash for y in ([0, 1], [0.0, 1.0], [False, True], [-0.0, 1.0])}
    assert len(hashes) == 1
    assert gordan.separate(X, [0, 2]).certificate.data_hash not in hashes
    assert gordan.separate(X, ["0", "1"]).certificate.data_hash not in hashes


@pytest.mark.parametrize("y", [[True, 2], [True, 2.5], [0, 1.5]])
def test_labels_of_mixed_kinds_survive_the_file(y):
    c = gordan.separate([[0.0], [1.0]], y).certificate
    assert gordan.Certificate.from_json(c.to_json()) == c
    assert gordan.verify(c, [[0.0], [1.0]], y)


@pytest.mark.parametrize("d", [4097, 8193, 20_000])
def test_scores_of_long_rows_are_enclosed_narrowly(d):
    rng = np.random.default_rng(d)
    X, w = rng.standard_normal((4, d)), rng.standard_normal(d)
    X[1, : d // 2], X[2] = X[1, d - d // 2 :], 1e-3 * X[3]  # cancelling, and small
    problem = Problem.of(X, [0, 1, 0, 1])
    products = Products.of(problem.X, w)
    products.sharpen(np.arange(4))
    lo, hi = products.scores(0.25, problem.signs)
    for i in range(4):
        terms = (Fraction(x) * Fraction(y) for x, y in zip(X[i].tolist(), w.tolist(), strict=True))
        exact = int(problem.signs[i]) * (sum(terms) + Fraction(1, 4))
        assert Fraction(float(lo[i])) <= exact <= Fraction(float(hi[i]))
        assert hi[i] - lo[i] <= 2.0**-53 * 40_000 * float(np.abs(X[i]) @ np.abs(w))


def test_weights_that_vanish_beside_the_largest_count_under_caps():
    """A row of 1e308 with a weight of 1e-30 beside ones of 1e300: scaled to them it is 0, but the caps need it."""
    X, y, c = [[1e-200], [1e-200], [1e308]], [1, 0, 1], (1e300, 1e300, 1e-30)
    about = {"rows": (0, 1, 2), "weights": c, "nu": 1.0, "sample_weight": c}
    certificate = gordan.Certificate("bracket", "none", (0, 1), (3, 1), upper=1e-199, **about)
    assert both(certificate, X, y) == (False, False)


def test_sample_weights_that_add_up_beyond_the_floats():
    """No warning, and the same answer."""
    about = {"w": (1.0,), "lower": 0.5, "nu": 0.5, "sample_weight": (1e308, 1e308, 1.0, 1.5e308)}
    first, second = both(
        gordan.Certificate("bracket", "none", (0, 1), (4, 1), **about), [[1.0], [2.0], [-1.0], [3.0]], [1, 1, 0, 1]
    )
    assert first == second
