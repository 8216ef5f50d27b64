"""Changed certificates: both checkers say the same of every one of them, and nothing that they accept is false."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import degenerate
import loss_mutations
import mutations
import numpy as np
import pytest
from mutations import ACCEPT, DISAGREE, FALSE, REFUSE, REJECT

import gordan
from gordan.certificates import standalone

BASES, EACH = 40, 20
LOSS_BASES = 24  # each loss and intercept twice
SOAK_SEEDS, SOAK_BASES = 25, 200


@pytest.mark.parametrize("seed", range(4))
def test_changed_certificates(seed):
    """3,200 of them; `make soak` and `make fuzz` go on with others."""
    counts, faults = mutations.run(seed, BASES, EACH)
    print(f"{counts.total()} changed certificates: {dict(counts)}")
    assert not faults, "\n".join(f"{fault}: {where}" for fault, where in faults[:3])


@pytest.mark.parametrize("seed", range(3))
def test_changed_certificates_of_losses(seed):
    """1,440 of them. What floats leave open, to the last bit, is decided in fractions: so the checkers agree there as well."""
    counts, faults = loss_mutations.run(seed, LOSS_BASES, EACH)
    assert not faults, "\n".join(f"{fault}: {where}" for fault, where in faults[:3])
    assert {*counts} == {(loss, verdict) for loss in loss_mutations.LOSSES for verdict in (ACCEPT, REJECT, REFUSE)}


def test_every_kind_and_verdict_comes_up():
    counts = sum((mutations.run(seed, BASES, EACH)[0] for seed in ("kinds", "more kinds", "all kinds")), mutations.Counter())
    kinds = ("separator", "witness", "bracket", "quasi-separation", "overlap")
    seen = {(kind, verdict) for _, kind, verdict in counts}
    assert {(kind, verdict) for kind in kinds for verdict in (ACCEPT, REJECT, REFUSE)} <= seen


def test_changed_certificates_of_models():
    """1,200 of them."""
    counts, faults = mutations.run("models", 60, EACH, mutations.model)
    print(f"{counts.total()} changed certificates of models: {dict(counts)}")
    assert not faults, "\n".join(f"{fault}: {where}" for fault, where in faults[:3])
    seen = {(model, kind.startswith("verified-"), verdict) for model, kind, verdict in counts}
    models = ("multinomial", "ordinal", "poisson")
    assert {(model, floats, said) for model in models for floats in (False, True) for said in (ACCEPT, REJECT)} <= seen


def test_changed_certificates_with_float_weights():
    """500 of them, about columns that depend on each other."""
    counts, faults = degenerate.changed("few", 25, EACH)
    assert not faults, "\n".join(f"{fault}: {where}" for fault, where in faults[:3])
    seen = {(kind, verdict) for _, kind, verdict in counts}
    assert {(kind, verdict) for kind in degenerate.KINDS for verdict in (ACCEPT, REJECT, REFUSE)} <= seen


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SOAK_SEEDS))
def test_changed_certificates_soak(seed):
    """100,000 of them."""
    counts, faults = mutations.run(f"soak {seed}", SOAK_BASES, EACH)
    print(f"{counts.total()} changed certificates: {dict(counts)}")
    assert not faults, "\n".join(f"{fault}: {where}" for fault, where in faults[:3])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SOAK_SEEDS))
def test_changed_certificates_of_losses_soak(seed):
    """12,000 of them."""
    _, faults = loss_mutations.run(f"soak {seed}", LOSS_BASES, EACH)
    assert not faults, "\n".join(f"{fault}: {where}" for fault, where in faults[:3])


def test_faults_are_seen(monkeypatch):
    """The run can fail: a checker that accepts everything is found out, by the other one or, if both do, by the oracle."""
    assert mutations.run(0, 3, 5)[1] == []
    monkeypatch.setattr(mutations, "_verify", lambda text, X, y, storage: gordan.Certificate.from_json(text) is not None)
    assert {fault for fault, _ in mutations.run(0, 3, 5)[1]} == {DISAGREE}
    monkeypatch.setattr(mutations, "_standalone", lambda *arguments: mutations._verify(*arguments))
    assert FALSE in {fault for fault, _ in mutations.run(0, 10, 5)[1]}


def test_ends_are_found_where_the_value_is_a_ball_around_zero():
    """An exact value that is known up to its radius only, far from the next floats of its centre."""
    plane = {"w": (-8.881784197001252e-15, -7.033348083496094e-06), "b": 50.91226700855783, "loss": "logistic", "C": 3.0}
    certificate = gordan.Certificate("optimum", "free", (0, 1), (2, 2), lower=0.0, upper=1.0, **plane)
    lower, upper = loss_mutations.proved(certificate, np.array([[-0.6, -2.42678167e8], [0.0, 2.27675306e8]]), [1, 0])
    assert lower == 0
    assert 0 < upper < math.inf


@pytest.mark.parametrize("loss", loss_mutations.LOSSES)
def test_false_intervals_of_losses_are_seen(loss):
    X, y = [[0.0], [1.0], [2.0], [3.5]], [0, 1, 0, 1]
    certificate = gordan.minimize_loss(X, y, loss=loss).certificate
    assert loss_mutations.is_true(certificate.to_json(), X, y)
    lower, upper = loss_mutations.proved(certificate, X, y)
    assert certificate.lower <= lower <= upper <= certificate.upper
    for ends in ({"lower": 1.001 * certificate.upper}, {"upper": 0.999 * certificate.lower}):
        assert loss_mutations.is_true(replace(certificate, **ends).to_json(), X, y) is False


# ---- tight to the last bit, by hand ------------------------------------------------------------------------------------

LINE = [[2.0], [1.0], [3.0], [-1.0], [-1.0], [2.0], [-3.0]]
SIDES = [0, 0, 0, 1, 1, 0, 1]
TIGHT = {
    # certificate, X, y: the lower bound is true, and the next float is not
    "nu in the last digits": ((LINE, SIDES), "none", {"w": (-1.0,), "lower": 1.0, "nu": 0.2}),
    "nu of all rows": ((LINE, SIDES), "none", {"w": (-1.0,), "lower": float.fromhex("0x1.db6db6db6db6dp+0"), "nu": 1.0}),
    "nu with weights": (
        (LINE, SIDES),
        "none",
        {"w": (-1.0,), "lower": 1.25, "nu": 0.5, "sample_weight": (1.0, 1.0, 0.0, 0.5, 0.0, 1.0, 0.5)},
    ),
    "an enormous w": (([[-2e10], [2e10]], [0, 1]), "none", {"w": (2.0**1023,), "lower": 2e10, "norm": 3.0}),
    "a tiny w": (([[-2e10], [2e10]], [0, 1]), "none", {"w": (5e-324,), "lower": 2e10, "norm": 3.0}),
    "an enormous w and tiny rows": (([[-5e-324], [5e-324]], [0, 1]), "free", {"w": (2.0**1023,), "lower": 5e-324}),
    "eight ones": (([[-1.0] * 8, [1.0] * 8], [0, 1]), "none", {"w": (1.0,) * 8, "lower": 2.0, "norm": 3.0}),
    "entries far apart": (
        ([[-(2.0**1000), -(2.0**-1000)], [2.0**1000, 2.0**-1000]], [0, 1]),
        "none",
        {"w": (2.0**-1000, 2.0**1000), "lower": math.nextafter(2.0**-999, 0.0)},
    ),
}


@pytest.mark.parametrize("name", TIGHT)
def test_lower_bounds_to_the_last_bit(name):
    """Accepted by both where fractions say that w proves it; the next float is rejected by both."""
    (X, y), intercept, content = TIGHT[name]
    certificate = gordan.Certificate("bracket", intercept, (0, 1), (len(X), len(X[0])), **content)
    assert mutations.tight_lower(certificate, X, y) == certificate.lower
    assert mutations.verdicts(certificate.to_json(), X, y) == (ACCEPT, ACCEPT)
    more = replace(certificate, lower=math.nextafter(certificate.lower, math.inf))
    assert mutations.verdicts(more.to_json(), X, y) == (REJECT, REJECT)


@pytest.mark.parametrize("norm", [2.0, 2.5, 3.0, 4.0, math.inf])
@pytest.mark.parametrize("intercept", mutations.INTERCEPTS)
@pytest.mark.parametrize("nu", [None, 0.4])
@pytest.mark.parametrize("exponent", [0, 900, -900])
def test_both_ends_to_the_last_bit(norm, intercept, nu, exponent):
    """Of weights that are not equal, on scales from 2⁻⁹⁰⁰ to 2⁹⁰⁰."""
    X = [[math.ldexp(x, exponent) for x in row] for row in ([3.0, 1.0], [1.5, -1.0], [0.7, 2.0], [-0.3, -2.0], [-4.0, 1.0])]
    y, c = [1, 1, 1, 0, 0], (1.0, 0.3, 0.0, 2.5, 1.0)
    rows = (0, 1, 3, 4)
    weights = tuple(c[i] for i in rows) if nu is not None else (0.3, 0.1, 7.0, 1e-9)
    certificate = gordan.Certificate("bracket", intercept, (0, 1), (5, 2), (1.0, 0.25), 0.0, rows, weights)
    certificate = replace(certificate, norm=norm, nu=nu, sample_weight=c)
    lower, upper = mutations.tight_lower(certificate, X, y), mutations.tight_upper(certificate, X, y)
    assert 0 < lower <= upper < math.inf
    more, less = math.nextafter(lower, math.inf), math.nextafter(upper, 0.0)
    for ends, verdict in (((lower, upper), ACCEPT), ((more, upper), REJECT), ((lower, less), REJECT)):
        text = replace(certificate, lower=ends[0], upper=ends[1]).to_json()
        assert mutations.verdicts(text, X, y) == (verdict, verdict)


def test_what_is_held_against_the_checkers_is_right():
    """The norms and tails of this file's own arithmetic, on cases that can be done by heart."""
    assert mutations.norm_is_at_most([Fraction(3), Fraction(-4)], 2.0, False, Fraction(5))
    assert not mutations.norm_is_at_most([Fraction(3), Fraction(-4)], 2.0, False, Fraction(499, 100))
    assert mutations.norm_is_at_most([Fraction(1)] * 8, 3.0, True, Fraction(4))
    assert not mutations.norm_is_at_most([Fraction(1)] * 8, 3.0, True, Fraction(4) - Fraction(1, 10**40))
    soft = gordan.Certificate("bracket", "none", (0, 1), (3, 1), w=(1.0,), nu=0.5, rows=(0, 1, 2), weights=(1.0, 1.0, 1.0))
    facts = mutations.Facts(soft, [[1.0], [2.0], [-4.0]], [1, 1, 0])
    assert facts.least() == Fraction(1 + Fraction(2, 2)) / Fraction(3, 2)
    assert facts.combination() == [Fraction(7, 3)]
    assert mutations.tight_lower(soft, [[1.0], [2.0], [-4.0]], [1, 1, 0]) == 4 / 3
    assert standalone.check(json.loads(replace(soft, lower=4 / 3).to_json()), [[1.0], [2.0], [-4.0]], [1, 1, 0])[0]
