"""The bounds behind the proofs about losses, each by itself: against exact numbers, or with shares of rounding that show.

Whole proofs leave more room than one wrong term takes, so that they stay true without it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from loss_problems import KINDS, LOSSES, matrix

import gordan
from gordan.certificates import losses, multinomial, regions
from gordan.certificates.bounds import TINY
from gordan.certificates.losses import (
    Drift,
    Objective,
    Optimum,
    RowScores,
    loss_above,
    paid_below,
    proved_optimum,
    row_constants,
    row_terms,
)
from gordan.certificates.matrix import CLAIM, Matrix, sum_share
from gordan.certificates.multinomial import ROOT2, Facts, Masses, Multinomial, Scores, _enclosed, losses_above, weights_of
from gordan.certificates.optima import Objectives
from gordan.certificates.regions import Balls, ClassRegion, Region, Slopes, _slopes, proved, region_of, weight_bounds
from gordan.floats import U
from gordan.intercepts import Intercept
from gordan.losses import Loss
from gordan.rows import stored

NONE = np.empty(0, np.int64), np.empty(0)
# What a formula is compared with: far above the rounding of these few operations, far below the shares that are passed.
CLOSE = 1e-12


# ---- where the minimizer is -------------------------------------------------------------------------------------------


def optima():
    """w and v apart by s, and gaps from ¼s², the least there is, to far more."""
    r = np.random.default_rng(0)
    for k in range(400):
        w, v = r.standard_normal((2, 1 + k % 3)) * 10.0 ** r.uniform(-3, 3)
        v = w.copy() if k % 5 == 0 else v
        quarter = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(w, v, strict=True)) / 4
        gap = float(quarter) * (1 + 2.0 ** -r.integers(1, 54)) if quarter else float(r.uniform(0, 1))
        error = float(r.choice([0.0, 1e-3, 1.0]))
        yield Optimum(0.0, gap * 1.01, w, v, error), quarter


def test_the_ball_and_the_radius_are_never_reported_too_small():
    """‖m - w*‖ ≤ √(G - ¼s²) + error/2 about (w + v)/2, and ‖w - w*‖ ≤ s/2 + √(G - ¼s²) for every s that the error allows."""
    for optimum, quarter in optima():
        gap, error = Fraction(optimum.upper) - Fraction(optimum.lower), Fraction(optimum.error)
        with ctx.workprec(400):
            apart = 2 * _arb(quarter).sqrt()
            least, most = optimum.distance
            assert arb(least) <= max(apart - _arb(error), arb(0)) + 1e-300
            assert arb(most) >= apart + _arb(error)
            m, r = optimum.ball
            middle = sum(
                (Fraction(c) - (Fraction(a) + Fraction(b)) / 2) ** 2 for a, b, c in zip(optimum.w, optimum.v, m, strict=True)
            )
            low = max(apart - _arb(error), arb(0))
            reach = (_arb(gap) - low * low / 4).sqrt()
            assert arb(r) >= reach + _arb(error) / 2 + _arb(middle).sqrt()
            assert arb(r) <= (reach + _arb(error) / 2) * (1 + 1e-6) + 1e-6 * apart
            s = min(apart + _arb(error), (2 * _arb(gap)).sqrt())
            assert arb(optimum.radius) >= s / 2 + (_arb(gap) - s * s / 4).sqrt() * (1 - arb(2) ** -200)
            assert arb(optimum.radius) <= (s / 2 + (_arb(gap) - s * s / 4).sqrt()) * (1 + 1e-6)


@pytest.mark.parametrize("exponent", range(-60, 60, 7))
def test_balls_of_planes_that_are_nearly_apart_by_all_that_the_gap_allows(exponent):
    """G - ¼s² is a few units in the last place of either: that it is rounded up decides."""
    s = math.ldexp(1.7, exponent)
    for k in range(1, 40):
        gap = float(Fraction(s) ** 2 / 4 * (1 + Fraction(k, 2**52)))
        optimum = Optimum(0.0, gap, np.array([s]), np.array([0.0]), 0.0)
        rest = (Fraction(gap) - Fraction(s) ** 2 / 4) if Fraction(gap) > Fraction(s) ** 2 / 4 else Fraction(0)
        assert Fraction(optimum.ball[1]) ** 2 >= rest
        assert (Fraction(optimum.radius) - Fraction(s) / 2) ** 2 >= rest
        empty = Optimum(0.0, gap, np.array([0.0]), np.array([0.0]), 0.0)
        assert Fraction(empty.ball[1]) ** 2 >= Fraction(gap)


def _arb(x):
    return arb(x.numerator) / arb(x.denominator)


# ---- what rows add -----------------------------------------------------------------------------------------------------


def shares():
    """α/C from 0 to 1, with the neighbours of 0, ½ and 1."""
    r = np.random.default_rng(1)
    ends = [2.0**-900, 2.0**-52, 0.25, 0.5, 1.0, *(np.nextafter(0.5, side) for side in (0, 1)), np.nextafter(1.0, 0)]
    return np.concatenate((ends, 1 - 10.0 ** r.uniform(-16, -1, 300), 10.0 ** r.uniform(-16, 0, 300), r.uniform(0, 1, 600)))


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_paid_is_never_reported_too_large(loss):
    """C g(α/C): exact fractions for the hinges, balls for the entropy. Near α = 4C a squared hinge pays nearly nothing."""
    share = shares() * (4.0 if loss == "squared_hinge" else 1.0)
    c = np.random.default_rng(2).uniform(0.5, 2.0, len(share))
    alpha = np.minimum(share * c, c * Loss(loss).most_weight)
    alpha[0] = 0.0
    found = paid_below(Loss(loss), alpha, c)
    assert found[0] == 0
    with ctx.workprec(400):
        for a, own, paid in zip(alpha[1:].tolist(), c[1:].tolist(), found[1:].tolist(), strict=True):
            a, own = Fraction(a), Fraction(own)
            if loss == "logistic":
                q = _arb(a / own)
                true = -_arb(own) * (q * q.log() + ((1 - q) * (1 - q).log() if a < own else 0))
                size = true + _arb(own) / 8
            else:
                true, size = _arb(a - (a * a / own / 4 if loss == "squared_hinge" else 0)), _arb(a)
            assert not arb(paid) > true
            assert arb(paid) >= true - size * arb(2) ** -42


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_never_reported_too_small(loss):
    z = np.concatenate((np.random.default_rng(3).uniform(-60, 2, 500), 1 - 10.0 ** np.random.default_rng(4).uniform(-15, 3, 500)))
    with ctx.workprec(400):
        for score, found in zip(z.tolist(), loss_above(Loss(loss), z).tolist(), strict=True):
            short = max(arb(0), 1 - arb(score))
            true = {"hinge": short, "squared_hinge": short * short, "logistic": (-arb(score)).exp().log1p()}[loss]
            assert not true > arb(found)
            assert arb(found) <= true * (1 + arb(2) ** -43) + 2 * TINY


@pytest.mark.parametrize("k", [2, 3, 7])
def test_losses_of_several_classes_are_never_reported_too_small(k):
    """C (log Σ e^s - s_y), also where all of it is one difference of scores, and for all scores that the radius allows."""
    r = np.random.default_rng(k)
    s = r.standard_normal((400, k)) * 10.0 ** r.uniform(-3, 3, (400, 1))
    own = r.integers(0, k, 400)[:, None] == np.arange(k)
    c = r.uniform(0.1, 10.0, 400)
    radius = np.abs(s) * r.choice([0.0, 0.01], (400, 1))
    found = losses_above(s, radius, own, c)
    with ctx.workprec(400):
        for i in range(400):
            worst = [arb(a) + (-1 if mine else 1) * arb(e) for a, e, mine in zip(s[i], radius[i], own[i], strict=True)]
            true = arb(c[i]) * (sum(x.exp() for x in worst).log() - worst[int(np.argmax(own[i]))])
            assert not true > arb(found[i])
            assert arb(found[i]) <= true * (1 + arb(2) ** -40) + arb(2) ** -40 * float(np.max(np.abs(s[i]))) + 9 * TINY


@pytest.mark.parametrize("k", [2, 3, 7])
def test_entropies_of_weights_are_never_reported_too_large(k):
    """All weights but the largest are floats, and that is what they leave of C."""
    r = np.random.default_rng(10 + k)
    s = r.standard_normal((300, k)) * 10.0 ** r.uniform(-3, 2, (300, 1))
    own, c = r.integers(0, k, 300)[:, None] == np.arange(k), r.uniform(0.1, 10.0, 300)
    found = weights_of(s, np.zeros_like(s), own, c)
    with ctx.workprec(600):
        for i in range(300):
            alpha = [Fraction(a) for a, top in zip(found.alpha[i].tolist(), found.largest[i].tolist(), strict=True) if not top]
            assert abs(Fraction(found.others[i]) - sum(alpha)) <= 2 * k * Fraction(U) * sum(alpha)
            q = [_arb(a / Fraction(c[i])) for a in [*alpha, Fraction(c[i]) - sum(alpha)] if a]
            true = -arb(c[i]) * sum((share * share.log() for share in q), arb(0))
            assert not arb(found.paid[i]) > true
            assert arb(found.paid[i]) >= true * (1 - arb(2) ** -40) - arb(2) ** -40


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_losses_times_weights_are_never_reported_too_small(loss):
    r = np.random.default_rng(6)
    z, c = 1 - 10.0 ** r.uniform(-9, 3, 2000), r.uniform(0.1, 10.0, 2000)
    zero = np.zeros(2000)
    above = row_terms(Loss(loss), Intercept.NONE, RowScores(z, zero, zero), zero + 1, c, zero, zero, None)[0]
    for score, own, found in zip(z.tolist(), c.tolist(), above.tolist(), strict=True):
        assert Fraction(found) >= Fraction(own) * (1 - Fraction(score)) ** (1 + (loss == "squared_hinge"))


def test_constants_of_rows_are_rounded_in_the_order_that_is_stated():
    C, sample, factors, which = 0.1, np.array([0.3, 0.7, 0.0]), np.array([1.1, 1.3]), np.array([0, 1, 1])
    assert row_constants(C, sample, factors, which).tolist() == [0.1 * (0.3 * 1.1), 0.1 * (0.7 * 1.3), 0.0]
    assert row_constants(C, sample, None, which).tolist() == [0.1 * 0.3, 0.1 * 0.7, 0.0]
    assert row_constants(C, None, factors, which).tolist() == [0.1 * 1.1, 0.1 * 1.3, 0.1 * 1.3]
    assert sample.tolist() == [0.3, 0.7, 0.0]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_several_classes_are_off_by_as_much_as_their_sizes_say(kind):
    """2u(k + 4)(‖x‖‖w‖ + |b|) for the k - 1 additions of products and that of b, in memory and where the rows are."""
    X, which, c = rows()
    of = Multinomial(matrix(X), which, 3, c, Intercept(kind))
    W, b = np.random.default_rng(9).standard_normal((3, 3)), np.array([3.0, 0.0, -5.0])
    lengths, norms = np.linalg.norm(W, axis=0), np.linalg.norm(X, axis=1)[:, None]
    terms = float(of.X.products(W)[1])
    whole = 2 * U * (terms + 5) * (norms * lengths + np.abs(b))
    ((s, radius, *_),) = of.X.storage.each_block(_enclosed, (which,), (W, c, of.X.norms, b, lengths))
    np.testing.assert_allclose(s, X @ W + b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(radius, whole, rtol=1e-9)
    s, radius = Scores.of(of.X, W).enclosed(of.X, b, slice(None))
    absolute = np.minimum(norms * lengths, (np.abs(X) @ np.abs(W).max(axis=1))[:, None])
    np.testing.assert_allclose(s, X @ W + b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(radius, 2 * U * (terms + 5) * (absolute + np.abs(b)), rtol=1e-9)


# ---- sums over rows -----------------------------------------------------------------------------------------------------


def rows(n=90, d=3, k=3):
    r = np.random.default_rng(7)
    which = np.arange(n) % k
    c = r.uniform(0.1, 3.0, n)
    c[:4] = 0.0
    return r.standard_normal((n, d)) + which[:, None], which, c


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_the_rows_do_not_matter(kind, monkeypatch):
    X, which, c = rows()
    w, several = np.array([0.3, -0.2, 0.1]), np.random.default_rng(8).standard_normal((3, 3))
    found = []
    for cache in (1 << 15, 16):
        monkeypatch.setattr(losses, "NUMBERS_IN_CACHE", cache)
        ends = [
            Objective(matrix(X), np.where(which, 1.0, -1.0), Loss(loss), c, Intercept(kind)).enclose(w, 0.1, *NONE, slack=slack)
            for loss in LOSSES
            for slack in (1.0, CLAIM)
        ]
        of = Multinomial(matrix(X), which, 3, c, Intercept(kind))
        b = np.array([0.1, 0.0, -0.1]) if of.intercept.exists else np.zeros(3)
        ends += [of.enclose(several, b, slack=slack) for slack in (1.0, CLAIM)]
        found.append([*((end.lower, end.upper) for end in ends), of.balance(several, b)])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
    assert (np.array(found[0]) > 0).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cache", [1 << 15, 16])
def test_facts_are_the_sums_that_they_say(kind, cache, monkeypatch):
    monkeypatch.setattr(losses, "NUMBERS_IN_CACHE", cache)
    X, which, c = rows()
    of = Multinomial(matrix(X), which, 3, c, Intercept(kind))
    W = np.random.default_rng(9).standard_normal((3, 3))
    b = np.array([0.1, 0.0, -0.1]) if of.intercept.exists else np.zeros(3)
    s = X @ W + b
    q = np.exp(s - s.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    own = which[:, None] == np.arange(3)
    signed, norms = c[:, None] * (own - q), np.linalg.norm(X, axis=1)
    sizes = norms + of.intercept.in_norm
    facts = of._facts(W, b, CLAIM)
    expected = {
        "above": c @ (np.log(np.exp(s).sum(axis=1)) - s[own]),
        "paid": -c @ (q * np.log(q)).sum(axis=1),
        "lengths": signed[own] @ sizes,
        "whole": c @ norms,
        "used": np.count_nonzero(c),
        "longest": sizes[c > 0].max(),
    }
    assert {name: getattr(facts, name) for name in expected} == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(facts.mass, np.bincount(which, weights=c), rtol=1e-12)
    np.testing.assert_allclose(facts.v, np.vstack((X.T @ signed, signed.sum(axis=0))), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(facts.masses.gains - facts.masses.losses, -signed.sum(axis=0), rtol=1e-9, atol=1e-12)
    mixed = np.where((q == q.max(axis=1, keepdims=True)) & ~own, c[:, None], 0.0).sum(axis=0)
    np.testing.assert_allclose(facts.masses.mixed, mixed, rtol=1e-12)


# ---- intervals from sums: with shares that show ---------------------------------------------------------------------------


def interval(plane, b, v, sums, longest, share, slack, blocks):
    """The formulas of `proved_optimum` as they stand in its docstring, in plain floats."""
    above, gains, lost, lengths, count, *more = sums
    upper = 0.5 * (plane @ plane) * (1 + share) + above * (1 + share)
    weights, drift, paid_drift, cost = (x * (1 + share) for x in more[:4]) if slack != 1 else (0.0,) * 4
    by_class = more[4:] if slack != 1 else more
    off = slack * (2 * U * (count + blocks + 128) * lengths * (1 + share) + count * TINY * (longest + len(v) + 1))
    total, surplus, shift = gains * (1 - share) - lost * (1 + share), 0.0, 0.0
    if by_class:
        masses, paid, weighted = by_class[:2], by_class[2:4], by_class[4:]
        surplus = 1 - min(masses) * (1 - share) / (max(masses) * (1 + share)) + 2 * weights / (max(masses) * (1 - share))
        heavier = [k for k in (0, 1) if masses[k] * (1 + share) + weights >= masses[1 - k] * (1 - share) - weights]
        total -= surplus * max(paid[k] for k in heavier) * (1 + share)
        shift = surplus * (max(weighted[k] for k in heavier) * (1 + share) + drift)
        cost += abs(b) * weights
    if slack != 1:
        total -= drift * (np.linalg.norm(plane - v) + drift + 2 * off) + cost + surplus * paid_drift
    return total - 0.5 * (np.linalg.norm(v) + off + shift) ** 2, upper, off + shift


BY_CLASS = {
    "one group": [],
    "the first class is heavier": [3.0, 1.9, 40.0, 90.0, 2.0, 5.0],
    "the second class is heavier": [1.9, 3.0, 90.0, 40.0, 5.0, 2.0],
    "either may be heavier": [2.0, 2.01, 40.0, 90.0, 5.0, 2.0],
    "either may be heavier, the other way": [2.01, 2.0, 90.0, 40.0, 2.0, 5.0],
}


@pytest.mark.parametrize("name", BY_CLASS)
@pytest.mark.parametrize("slack", [1.0, CLAIM])
@pytest.mark.parametrize("drift", [[0.0] * 4, [0.02, 0.3, 0.7, 1.1]])
@pytest.mark.parametrize(("count", "blocks", "longest"), [(5.0, 0, 1.0), (2.0**44, 2**44, 1.0), (2.0**10, 3, 2.0**1009)])
def test_intervals_from_sums(name, slack, drift, count, blocks, longest):
    plane, v = np.array([1.5, -0.5]), np.array([0.75, 0.25])
    sums = [17.0, 300.0, 6.0, 9.0, count, *(drift if slack != 1 else []), *BY_CLASS[name]]
    found = proved_optimum(plane, -1.3, v, sums, longest, 0.01, slack, blocks)
    lower, upper, error = interval(plane, -1.3, v, sums, longest, 0.01, slack, blocks)
    assert lower > 1
    assert (found.lower, found.upper, found.error) == pytest.approx((lower, upper, error), rel=CLOSE)


@pytest.mark.parametrize("place", range(7))
def test_sums_that_are_not_finite_prove_no_lower_end(place):
    """The others are parts of these: gains and lengths of one class."""
    sums = [17.0, 300.0, 6.0, 9.0, 5.0, 2.0, 2.0, 40.0, 40.0, 2.0, 2.0]
    assert proved_optimum(np.ones(2), 0.0, np.ones(2), sums, 1.0, 0.01, 1.0).lower > 0
    for value in (math.nan, math.inf):
        broken = proved_optimum(np.ones(2), 0.0, np.ones(2), [*sums[:place], value, *sums[place + 1 :]], 1.0, 0.01, 1.0)
        assert broken.lower == 0 if place else (broken.lower > 0 and broken.upper == math.inf)
    assert proved_optimum(np.ones(2), 0.0, np.array([1.0, math.nan]), sums, 1.0, 0.01, 1.0).lower == 0


def facts(**changes):
    """Facts of two classes: with masses that differ by 3% of them, and a share of 1%."""
    given = {
        "above": 17.0, "paid": 300.0, "lengths": 9.0, "whole": 4.0, "used": 5.0, "blocks": 0, "longest": 1.0,
        "drift": Drift(0.0, 0.0, 0.0, 0.0), "drifts": np.zeros(2), "mass": np.array([50.0, 60.0]),
        "v": np.array([[0.75, 0.25], [0.5, -0.25], [0.0, 0.0]]),
        "masses": Masses(np.zeros(2), np.array([6.0, 3.0]), np.array([4.5, 4.5]), 0.01),
    }  # fmt: skip
    return Facts(**given | changes)


def surplus_of(given):
    k, share, found = len(given.mass), given.masses.share, [0.0]
    for mixed, gains, lost, moved, mass in zip(*given.masses[:3], given.drifts, given.mass, strict=True):
        more = gains - lost + (2 * share + 2 * U * (k + 4)) * (gains + lost) + 2 * (k + 4) * U * mixed + moved
        found.append(more / (mass * (1 - 2 * share)))
    return max(found)


SURPLUS = {
    "plain": {},
    "the other class": {"masses": Masses(np.zeros(2), np.array([3.0, 6.0]), np.array([4.5, 4.5]), 0.01)},
    "drifts": {"drifts": np.array([2.0, 1.0])},
    "mixed rows": {"masses": Masses(np.array([2.0**50, 0.0]), np.array([6.0, 3.0]), np.array([4.5, 4.5]), 0.01)},
    "equal masses that are rounded": {"masses": Masses(np.zeros(2), np.full(2, 2.0**50), np.full(2, 2.0**50), 0.0)},
    "no class is too heavy": {"masses": Masses(np.zeros(2), np.array([1.0, 1.0]), np.array([4.5, 4.5]), 0.01)},
}


@pytest.mark.parametrize("name", SURPLUS)
def test_the_share_by_which_a_class_is_too_heavy(name):
    given = facts(**SURPLUS[name])
    assert given.surplus == pytest.approx(surplus_of(given), rel=CLOSE)
    assert (given.surplus > 0) == (name != "no class is too heavy")
    assert facts(mass=np.array([0.0, 60.0])).surplus == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slack", [1.0, CLAIM])
@pytest.mark.parametrize("name", [*SURPLUS, "many rows", "far rows"])
def test_intervals_of_several_classes_from_sums(kind, slack, name):
    more = {"many rows": {"used": 2.0**44, "blocks": 2**43}, "far rows": {"used": 2.0**10, "longest": 2.0**1009}}
    drift = Drift(0.02, 0.3, 0.7, 1.1) if slack != 1 else Drift(0.0, 0.0, 0.0, 0.0)
    given = facts(**{**SURPLUS, **more}[name], drift=drift)
    of = Multinomial(matrix(np.ones((2, 2 if kind != "penalized" else 1))), np.array([0, 1]), 2, np.ones(2), Intercept(kind))
    plane, b, share = np.array([[1.0, 0.5], [-0.5, 0.0]]), np.array([0.4, -1.3]), slack * given.masses.share
    v = given.v[:2]
    off = 2 * U * (given.used + given.blocks + 8 + 128) * ROOT2 * given.lengths * (1 + share)
    off = slack * (off + given.used * TINY * 2 * (given.longest + of.X.d + 1))
    total, cost = given.paid * (1 - share), drift.cost + 0.0
    if of.intercept.grouped:
        surplus = surplus_of(given)
        total -= surplus * total
        off += surplus * ROOT2 * given.whole * (1 + 2 * share)
        cost += 1.3 * drift.weights + surplus * drift.paid
    if slack != 1:
        total -= drift.lengths * (np.linalg.norm(plane - v) + drift.lengths + 2 * off) + cost
    lower, _, error = of._dual_below(plane, b, given, slack)
    assert (lower, error) == pytest.approx((total - 0.5 * (np.linalg.norm(v) + off) ** 2, off), rel=CLOSE)
    assert lower > 1


@pytest.mark.parametrize("field", ["paid", "lengths", "longest", "whole", "v"])
def test_facts_that_are_not_finite_prove_no_lower_end(field):
    of = Multinomial(matrix(np.ones((2, 2))), np.array([0, 1]), 2, np.ones(2))
    for value in (math.nan, math.inf):
        broken = facts(**{field: np.full((3, 2), value) if field == "v" else value})
        assert of._dual_below(np.zeros((2, 2)), np.zeros(2), broken, 1.0)[0] == 0
    assert of._dual_below(np.zeros((2, 2)), np.zeros(2), facts(mass=np.array([0.0, 60.0])), 1.0)[0] == 0


def test_weights_of_no_class_are_the_largest_twice():
    s = np.array([[1.0, 1.0, 1.0], [0.0, 2.0, 2.0]])
    found = weights_of(s, np.zeros_like(s), np.array([[True, False, False]] * 2), np.ones(2))
    assert found.largest.sum(axis=1).tolist() == [1, 1]
    assert multinomial._first_largest(s).tolist() == [[True, False, False], [False, True, False]]


# ---- intercepts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_slopes_of_hinges_are_between_their_bounds(loss):
    r = np.random.default_rng(5)
    z = np.concatenate((1 - 10.0 ** r.uniform(-15, 3, 500), r.uniform(-3, 3, 500), [1.0, math.nan]))
    light, heavy = weight_bounds(Loss(loss), z)
    assert (light[-2], heavy[-2]) == (0.0, 1.0 if loss == "hinge" else 0.0)
    assert not light[-1] > 0
    assert not heavy[-1] < 1
    for score, least, most in zip(z[:-2].tolist(), light.tolist(), heavy.tolist(), strict=False):
        slope = max(Fraction(0), 2 * (1 - Fraction(score))) if loss == "squared_hinge" else Fraction(score < 1)
        assert Fraction(least) <= slope <= Fraction(most)
        assert Fraction(least) >= slope * (1 - Fraction(9, 2**53))
        assert Fraction(most) <= slope * (1 + Fraction(9, 2**53))


@pytest.mark.parametrize("loss", LOSSES)
def test_masses_of_rows_that_gain_and_lose_as_b_grows(loss):
    """With 2⁴⁰ times the rounding that there may be, and rows that are left out by a label of 0 or by C = 0."""
    X, which, c = rows()
    signs = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 1.0]])[:, which].T
    m, r, slack = np.array([[0.3, -0.2], [-0.2, 0.1], [0.1, 0.4]]), np.array([0.01, 0.02]), 2.0**40
    of = Slopes(matrix(X), signs, c, Loss(loss), m, r, np.zeros(3), slack)
    ends = np.array([[[-2.0, -1.5], [-0.5, 0.0]], [[0.1, 0.2], [1.5, 2.5]]])
    sizes = np.array([np.linalg.norm(m, axis=0), r])
    least, most = shifts = np.array([[0.25, -0.75], [0.5, -0.5]])  # as if the origin were elsewhere
    vars(of)["_shifts"] = shifts
    balls = Balls(np.column_stack((m, np.zeros(3))), sizes, 0.0, shifts)
    ((found, count),) = of.X.storage.each_block(_slopes, (signs, c, of.X.norms), (balls, ends, Loss(loss), slack))
    terms, norms, sums = float(of.X.products(m)[1]), np.linalg.norm(X, axis=1)[:, None], X @ m
    radius = slack * 2 * U * (terms + 5) * norms * sizes[0] + norms * r
    expected = np.empty_like(found)
    for end, side in ((0, 1), (1, -1)):
        for j, b in enumerate(ends[end]):
            wide = slack * 16 * U * (np.abs(sums) + np.abs(least) + np.abs(most) + radius + np.abs(b))
            z, gaining = (sums - shifts[end] + side * radius + b) * signs, signs == side
            z = np.where(gaining, z + wide, z - wide)
            slopes = {"hinge": z < 1, "squared_hinge": 2 * np.maximum(1 - z, 0), "logistic": 1 / (1 + np.exp(z))}[loss]
            mass = c[:, None] * np.abs(signs) * slopes
            expected[end, j] = np.where(gaining, mass, 0).sum(axis=0), np.where(gaining, 0, mass).sum(axis=0)
    assert count == len(X)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)
    # of these masses, which are sums with errors of 20% then, the first must exceed the second for certain
    share, decided = slack * sum_share(len(X), 1), 0
    for b in np.linspace(-6, 6, 200):
        ends = np.full((2, 1, 2), b)
        ((found, _),) = of.X.storage.each_block(_slopes, (signs, c, of.X.norms), (balls, ends, Loss(loss), slack))
        gains, lost = found[:, :, 0], found[:, :, 1]
        assert of.proved(ends).tolist() == (gains * (1 - share) > lost * (1 + share)).tolist()
        decided += np.count_nonzero((gains > lost) != (gains * (1 - share) > lost * (1 + share)))
    assert decided


def proved_offset(loss):
    """The offset of an optimum, and whether another one would be proved."""
    X, which, _ = rows()
    result = gordan.minimize_loss(X, which if loss == "multinomial" else which > 0, loss=loss)
    of, optimum = result._evidence.question.objective, result._optimum
    place = region_of(of, optimum, result.b).place
    region = ClassRegion if loss == "multinomial" else Region

    def is_proved(offset):
        return region(of, place.centre, place.r, result.b, place.radius, place.origin, np.array(offset)).offset_is_proved

    assert is_proved(place.offset)
    return place.offset, is_proved


def test_an_offset_of_classes_that_is_not_proved_is_refused():
    (*b, spread), is_proved = proved_offset("multinomial")
    assert is_proved([*b, math.inf])
    assert not is_proved([*b, spread / 2])
    assert not is_proved([b[0] + 4 * spread, *b[1:], spread])


@pytest.mark.parametrize("loss", LOSSES)
def test_an_offset_that_is_not_proved_is_refused(loss):
    (low, high), is_proved = proved_offset(loss)
    assert is_proved([-math.inf, math.inf])
    assert is_proved([low, math.inf])
    for false in ([high + 1, math.inf], [-math.inf, low - 1], [high + 1, high + 2], [math.inf, -math.inf], [math.nan, high]):
        assert not is_proved(false)


def test_a_constant_in_the_intercepts_of_classes_does_not_matter():
    X, which, _ = rows()
    result = gordan.minimize_loss(X, which, loss="multinomial")
    of, optimum = result._evidence.question.objective, result._optimum
    here, there = (region_of(of, optimum, result.b + constant).intercept for constant in (0.0, 3.0))
    np.testing.assert_allclose(here, there, atol=1e-9)
    assert here[:, 0].sum() <= 0 <= here[:, 1].sum()
    assert np.ptp(here, axis=1).max() < 0.1


@pytest.mark.parametrize("k", [2, 3, 5])
def test_intervals_for_the_intercepts_of_classes(k):
    """b*_j is the mean of its differences from the others, one of which is 0: the width counts k - 1 of k times."""
    X, which, c = rows(k=k)
    of = Multinomial(matrix(X), which, k, c)
    region = ClassRegion(of, np.zeros((3, k)), 0.125, np.zeros(k), origin=np.array([3.0, 4.0, 0.0]))
    b = np.arange(k) + 2.0
    vars(region).update(_offset=b, _spread=0.5)
    wide = (0.5 + math.sqrt(2) * 0.125 * 5) * (1 - 1 / k)
    expected = np.column_stack((b - b.mean() - wide, b - b.mean() + wide))
    np.testing.assert_allclose(region.intercept, expected, rtol=1e-12, atol=1e-12)
    assert (np.ptp(region.intercept, axis=1) >= 2 * wide).all()


@pytest.mark.parametrize("slack", [1.0, CLAIM])
def test_the_spread_of_the_intercepts_of_classes(slack, monkeypatch):
    """(k - 1)(κ + τ), κ = √2 r max‖x - o‖ and τ = -ln(1 - ε/μ); nothing is known from ε = μ/2 on."""
    X, which, c = rows()
    of, origin = Multinomial(matrix(X), which, 3, c), np.array([1.0, 0.5, 0.0])
    region = ClassRegion(of, np.zeros((3, 3)), 0.01, np.zeros(3), origin=origin)
    kappa = math.sqrt(2) * 0.01 * np.linalg.norm(X - origin, axis=1)[c > 0].max()
    for excess, least in ((0.0, 1.0), (0.1, 1.0), (0.3, 8.0), (0.6, 1.0), (0.1, 0.0), (math.nan, 1.0), (math.inf, 1.0)):
        monkeypatch.setattr(Multinomial, "balance", lambda *_, found=(excess, least): found)
        spread = region._spread_of(np.zeros(3), slack)
        if least > 0 and slack * excess / least < 0.5:
            expected = 2 * (kappa - math.log1p(-slack * excess / least))
            assert spread == pytest.approx(expected, rel=1e-9)
            assert spread >= expected * (1 - 1e-15)
        else:
            assert spread == math.inf


def test_places_of_another_problem_are_refused():
    X, which, _ = rows()
    result = gordan.minimize_loss(X, which > 0, loss="logistic")
    certificate, problem = result.certificate, result._evidence.question.problem
    of, optimum = result._evidence.question.objective, result._optimum
    place = region_of(of, optimum, result.b).place
    assert place.unproved(certificate, problem) == ""
    assert "another problem" in replace(place, intercept=Intercept.NONE).unproved(certificate, problem)
    assert "another problem" in replace(place, centre=np.append(place.centre, 0.0)).unproved(certificate, problem)
    # of a plane that is far off, nothing is known but that the least value is not negative
    start = replace(certificate, w=(5.0, -5.0, 5.0), b=0.0, lower=None, upper=None)
    _, b, found = proved(start, problem)
    assert found.lower == 0
    for lower in (0.0, 1.0):
        known = replace(found, lower=lower, upper=found.upper * (1 + 1e-9), v=np.zeros(3), error=0.0)
        assert (region_of(of, known, b).place.unproved(start, problem) == "") == (lower == 0)


def test_places_of_many_label_vectors_say_how_far_their_planes_are():
    X, which, c = rows()
    signs = np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])[:, which].T
    of = Objectives(matrix(X), signs, Loss.LOGISTIC, c, Intercept.FREE)
    optima = of.enclose(np.zeros((3, 2)), np.zeros(2))
    places = of.places(optima, np.zeros(2))
    assert [(place.radius, place.r) for place in places] == [(optimum.radius, optimum.ball[1]) for optimum in optima]


def test_intervals_for_b_of_many_rows_are_found_at_fewer_distances(monkeypatch):
    """And are at most by the last ratio wider than those that are searched for more closely."""
    r = np.random.default_rng(0)
    X, tried, ends = r.standard_normal((200, 3)), [], []
    signs = np.where(X[:, 0] + r.standard_normal(200) > 1.5, 1, -1).astype(np.int8)[:, None]
    found = Slopes.proved
    monkeypatch.setattr(Slopes, "proved", lambda self, ends: tried.append(ends.size) or found(self, ends))
    for several in (1 << 16, 0):
        monkeypatch.setattr(regions, "MAX_SLOPES", several)
        ball = np.zeros((3, 1)), np.array([1.0]), np.zeros(3)
        slopes = Slopes(Matrix(stored(X)), signs, np.ones(200), Loss.LOGISTIC, *ball, 1.0)
        ends.append(slopes.offsets(np.array([-1.0]))[0])
        tried.append(0)
    at = tried.index(0)
    assert len(tried[:at]) > 2  # the first distances are not enough
    assert sum(tried[at:]) < 0.6 * sum(tried[:at])
    close, rough = (end - -1.0 for end in ends)
    assert (rough / close <= 4 ** (1 / 16) * (1 + 1e-9)).all()
