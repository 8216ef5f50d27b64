"""Certificates: false ones are rejected by both checkers, and malformed ones are refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from checkers import both, unchecked

import gordan
from gordan.certificates import standalone
from gordan.certificates.margins import Margin
from gordan.certificates.problem import Problem
from gordan.intercepts import Intercept

INTERCEPTS = (Intercept.FREE, Intercept.NONE, Intercept.PENALIZED)
SEPARABLE = [[1.0, 0.5], [2.0, 3.0], [0.75, -0.25], [-1.0, -2.0], [-2.0, 0.125], [-0.5, -1.0]]
INSEPARABLE = [[1.0, 1.0], [3.0, -1.0], [-2.0, 0.5], [1.0, 0.0], [-1.5, 0.25], [2.0, 0.25]]
Y = [1, 1, 1, 0, 0, 0]


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
    rejected = 0
    for mutated in mutations(certificate):
        first, second = both(mutated, X, Y)
        rejected += not second
        assert first == second, mutated
    assert rejected > 20


SOFT = np.round(np.random.default_rng(3).normal(size=(8, 2)), 2) + np.outer([1, -1] * 4, [0.7, 0.2])
SOFT_Y = [1, 0] * 4


@pytest.mark.parametrize(("nu", "weighted"), [(None, False), (0.5, True), (0.75, False)])
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
    rejected = 0
    for mutated in (*mutations(certificate), *weight_mutations(certificate)):
        first, second = both(mutated, X, SOFT_Y)
        rejected += not second
        assert first == second, mutated
    assert rejected > 20


def weight_mutations(c):
    """Certificates that differ in one sample weight, in all of them, or in nu by one unit in the last place."""
    plain = c.sample_weight or (1.0,) * c.shape[0]
    yield from (unchecked(c, sample_weight=w) for w in one_changed(plain, lambda t: (0.0, 2 * t, t / 2, -1.0, math.inf)))
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


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_claims_that_cannot_be_true(intercept):
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
def test_bounds_of_verify_are_exact_up_to_rounding(intercept, norm, nu, weighted):
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
    verdicts = set()
    for norm in (2.0, 3.0, math.inf):
        for w, t in ((1.0, 1.0), (1.7e308, 1.7e308), (5e-324, 5e-324)):
            base = gordan.Certificate("bracket", intercept, (0, 1), (2, 4), (w,) * 4, 0.0, (0, 1), (t, t), norm=norm)
            for claim in ({"lower": scale}, {"lower": 1e-3 * scale}, {"upper": scale}, {"upper": 2.5 * scale}):
                if math.isfinite(*claim.values()):
                    first, second = both(replace(base, **claim), X, [1, 0])
                    assert first == second
                    verdicts.add(second)
    assert verdicts == {True, False}


@pytest.mark.parametrize(
    "change", [{"w": (1.0, 1.0)}, {"w": (math.nan,)}, {"w": (math.inf,)}, {"lower": math.nan}, {"upper": math.nan}]
)
def test_handmade_certificates_that_no_file_can_hold(change):
    """A Certificate made in memory with a wrong length or NaN is rejected or refused by InputError, not accepted."""
    certificate = gordan.Certificate("separator", "none", (0, 1), (2, 1), w=(1.0,), rows=(0,), weights=(1.0,))
    assert gordan.verify(certificate, OPPOSITE, [1, 0])
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


def test_an_unknown_format_is_reported():
    known = r"\(format 'gordan-certificate-2' or 'gordan-certificate-1' expected, 'gordan-certificate-3' found\)"
    with pytest.raises(gordan.InputError, match=f"this is not a certificate that this version of gordan can read {known}"):
        gordan.Certificate.from_json(json.dumps(MALFORMED["another format"]))


@pytest.mark.parametrize(
    "text",
    [
        *(None, 1, {}, "", "[]", "{", "nonsense", "NaN", "[" * 100_000, b"\xff\xfe", "9" * 5000),
        *(json.dumps(VALID)[:-9], json.dumps(VALID)[:40]),
    ],
)
def test_text_that_is_not_a_json_object(text):
    """Not text, truncated, nested too deeply or not UTF-8: an InputError."""
    with pytest.raises(gordan.InputError):
        gordan.Certificate.from_json(text)


@pytest.mark.parametrize(
    "y",
    [
        *(["no", "yes"], ["é", "\n"], [0, 1], [-1, 1], [0.5, 2.5], [False, True]),
        *([0, 1.5], [True, 2], [True, 2.5]),  # of mixed types
    ],
)
def test_labels_survive_the_file(y):
    """Certificates keep labels of every type through JSON, and both checkers recognise them."""
    certificate = gordan.separate([[0.0], [1.0]], y).certificate
    assert gordan.Certificate.from_json(certificate.to_json()) == certificate
    assert both(certificate, [[0.0], [1.0]], y) == (True, True)


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


def test_labels_in_arrays_of_objects():
    with pytest.raises(gordan.InputError, match=r"y\[1\] is a number of 4001 bits"):
        gordan.separate([[0.0], [1.0]], np.array([0, 2**4000], dtype=object))
    verdict = gordan.separate([[0.0], [1.0]], np.array([np.int64(3), np.int64(5)], dtype=object))
    assert verdict.certificate.classes == (3, 5)


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


def test_the_hash_sees_labels_and_not_their_type():
    X = [[0.0], [1.0]]
    hashes = {gordan.separate(X, y).certificate.data_hash for y in ([0, 1], [0.0, 1.0], [False, True], [-0.0, 1.0])}
    assert len(hashes) == 1
    assert gordan.separate(X, [0, 2]).certificate.data_hash not in hashes
    assert gordan.separate(X, ["0", "1"]).certificate.data_hash not in hashes


def test_weights_that_vanish_beside_the_largest_count_under_caps():
    """A row of 1e308 with a weight of 1e-30 beside ones of 1e300: scaled to them it is 0, but the caps need it."""
    X, y, c = [[1e-200], [1e-200], [1e308]], [1, 0, 1], (1e300, 1e300, 1e-30)
    about = {"rows": (0, 1, 2), "weights": c, "nu": 1.0, "sample_weight": c}
    certificate = gordan.Certificate("bracket", "none", (0, 1), (3, 1), upper=1e-199, **about)
    assert both(certificate, X, y) == (False, False)


def test_sample_weights_that_add_up_beyond_the_floats():
    """The mean of the lowest half of the weights is (1 + 2·0.75)/1.75 = 10/7, although their sum overflows; no warning."""
    about = {"w": (1.0,), "nu": 0.5, "sample_weight": (1e308, 1e308, 1.0, 1.5e308)}
    for lower, proved in ((0.5, True), (1.428571, True), (1.428572, False)):
        certificate = gordan.Certificate("bracket", "none", (0, 1), (4, 1), lower=lower, **about)
        assert both(certificate, [[1.0], [2.0], [-1.0], [3.0]], [1, 1, 0, 1]) == (proved, proved)
