"""The checker `verify`: what it claims in words, and why it rejects."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from checkers import both, unchecked
from test_margin_proofs import POINTS

import gordan
from gordan import InputError
from gordan.certificates import standalone
from gordan.certificates.problem import Problem
from gordan.certificates.verify import Check, accepts, check, statement

DATA = Problem.of(POINTS, [1, 1, 0, 0])
SEPARATOR = gordan.Certificate("separator", "free", (0, 1), (4, 2), w=(1.0, 0.0), b=0.0)
CLAIMS = {
    "separator": (SEPARATOR, "the data is separable"),
    "separator with a bracket": (replace(SEPARATOR, lower=0.5, upper=2.0), "a largest margin between 0.5 and 2"),
    "witness": (gordan.Certificate("witness", "free", (0, 1), (4, 2), rows=(0, 1), weights=(1, 1)), "not separable: 2 rows"),
    "bracket": (replace(SEPARATOR, kind="bracket", lower=0.5, upper=1.5), "is between 0.5 and 1.5"),
    "quasi": (gordan.Certificate("quasi-separation", "free", (0, 1), (4, 2), rows=(0,), weights=(1,)), "quasi-completely"),
    "overlap": (
        gordan.Certificate("overlap", "free", (0, 1), (4, 2), rows=(0,), weights=(1,)),
        "overlaps: no plane separates it",
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_in_words(name):
    certificate, words = CLAIMS[name]
    found = check(certificate, DATA)
    assert words in found.claim
    assert isinstance(found, Check)
    assert bool(found) == found.accepted == (found.reason == "")


@pytest.mark.parametrize("name", CLAIMS)
def test_both_checkers_claim_the_same_words(name):
    certificate = CLAIMS[name][0]
    assert standalone.Claim(json.loads(certificate.to_json())).statement() == statement(certificate)


OVERLAPPING = [[0.0, 1.0], [1.0, 0.5], [2.0, 3.0], [3.0, -1.0], [1.5, 0.0]], [0, 1, 0, 1, 0]
ASKED = [
    *((gordan.separate, {"intercept": intercept}) for intercept in ("free", "penalized", "none")),
    *((gordan.maximize_margin, {"intercept": i, "norm": p, "nu": 0.3}) for i in ("free", "none") for p in (2, 3.5, math.inf)),
    *((gordan.maximize_margin, {"robust": 1 / 3, "robust_norm": s}) for s in (1, 2, math.inf)),
    *((gordan.minimize_loss, {"loss": loss, "C": 1 / 3}) for loss in ("hinge", "squared_hinge", "logistic", "multinomial")),
    (gordan.minimize_loss, {"C": 2.0, "intercept": "penalized"}),
    *((gordan.diagnose, {"model": model}) for model in ("logistic", "multinomial", "ordinal", "poisson")),
]


@pytest.mark.parametrize(("ask", "options"), ASKED, ids=lambda value: getattr(value, "__name__", str(value)))
def test_both_checkers_claim_the_same_words_of_what_is_found(ask, options):
    """Of data that overlaps, and of data that does not: the statement in the certificate is what both of them say."""
    for X, y in (OVERLAPPING, (POINTS, [1, 1, 0, 0])):
        certificate = ask(X, y, **options).certificate
        assert standalone.Claim(json.loads(certificate.to_json())).statement() == certificate.about.statement


@pytest.mark.parametrize(("lower", "upper"), [(0.1, 0.3), (1 / 3, 2 / 3), (1e-300, 1e300), (123456789.0, math.inf), (0.0, 0.0)])
def test_ends_in_words_are_rounded_so_that_the_claim_stays_true(lower, upper):
    bracket = replace(SEPARATOR, kind="bracket", lower=lower, upper=upper)
    low, high = statement(bracket).split(" between ")[1].split(" and ")
    assert Fraction(low) <= Fraction(lower)
    assert high == "infinity" or Fraction(high) >= Fraction(upper)
    assert standalone.Claim(json.loads(bracket.to_json())).statement() == statement(bracket)


def test_notes_of_a_check_about_the_data():
    """Whether it is that which the certificate was made for, and has columns of the same names; no claim depends on it."""
    frame = pd.DataFrame(POINTS, columns=["a", "b"])
    y = pd.Series([1, 1, 0, 0], name="ill")
    for ask in (gordan.separate, gordan.maximize_margin, gordan.minimize_loss, gordan.diagnose):
        certificate = ask(frame, y).certificate
        about = certificate.about
        assert (about.columns, about.label, about.version) == (("a", "b"), "ill", gordan.__version__)
        assert about.statement == statement(certificate)
        found = gordan.verify(certificate, frame, y)
        assert (bool(found), found.same_data, found.renamed) == (True, True, ())
        assert str(found).splitlines()[0] == f"accepted: {about.statement}"
        assert str(found).splitlines()[-1] == "  everything that the claim depends on matches the data it was made for"
        found = gordan.verify(certificate, frame.rename(columns={"b": "c"}), y)
        assert (bool(found), found.same_data, found.renamed) == (True, True, ("'c' in place of 'b'",))
        assert "other names than those it was made for: 'c' in place of 'b'" in str(found)
        found = gordan.verify(certificate, 2 * frame, y)
        assert found.same_data is False
        assert "this is not the data that it was made for" in found.notes[-1]
        assert gordan.verify(certificate, frame.to_numpy(), y).renamed == ()  # which has no names
        found = gordan.verify(replace(certificate, data_hash=None, about=None), frame, y)
        notes = ("the positive class is 1, the other one 0", "it does not say which data it was made for")
        assert (bool(found), found.same_data, found.notes) == (True, None, notes)
        found = gordan.verify(certificate, frame, 1 - y)
        assert str(found).startswith("rejected: ")
        assert about.statement in str(found).splitlines()[0]


def test_a_claim_names_a_bracket_where_both_ends_are_stated():
    for ends in ({}, {"lower": 0.5}, {"upper": 2.0}):
        assert check(replace(SEPARATOR, **ends), DATA).claim == "the data is separable"


REASONS = {
    "more rows": ({"shape": (5, 2)}, "it is about data of shape (5, 2), not (4, 2)"),
    "other classes": ({"classes": (0, 2)}, "its classes are (0, 2), those of y are (0, 1)"),
    "rows twice": ({"rows": (1, 1), "weights": (1.0, 1.0)}, "not distinct rows"),
    "a row too many": ({"rows": (4,), "weights": (1.0,)}, "not distinct rows"),
    "a row below zero": ({"rows": (-1,), "weights": (1.0,)}, "not distinct rows"),
    "a weight of zero": ({"rows": (0, 1), "weights": (1.0, 0.0)}, "its weights are not positive"),
    "a weight too few": ({"rows": (0, 1), "weights": (1.0,)}, "its weights are not positive"),
    "w too short": ({"w": (1.0,)}, "of the wrong length"),
    "w too long": ({"w": (1.0, 0.0, 0.0)}, "of the wrong length"),
    "sample weights too short": ({"sample_weight": (1.0, 1.0, 1.0)}, "of the wrong length"),
    "w infinite": ({"w": (math.inf, 0.0)}, "not finite"),
    "w NaN": ({"w": (math.nan, 0.0)}, "not finite"),
    "b infinite": ({"b": math.inf}, "not finite"),
    "b NaN": ({"b": math.nan}, "not finite"),
    "nu infinite": ({"nu": math.inf, "lower": 0.0}, "not finite"),
    "nu NaN": ({"nu": math.nan, "lower": 0.0}, "not finite"),
    "norm NaN": ({"norm": math.nan}, "not finite"),
    "lower infinite": ({"lower": math.inf}, "not finite"),
    "lower infinite, below zero": ({"lower": -math.inf}, "not finite"),
    "upper infinite, below zero": ({"upper": -math.inf}, "not finite"),
    "norm infinite, below zero": ({"norm": -math.inf}, "not finite"),
    "lower NaN": ({"lower": math.nan}, "not finite"),
    "upper NaN": ({"upper": math.nan}, "not finite"),
    "weights infinite": ({"rows": (0,), "weights": (math.inf,)}, "not finite"),
    "no w": ({"w": None}, "it has no w"),
    "b without intercept": ({"intercept": "none", "b": 0.5}, "it has b although"),
    "a row on the wrong side": ({"b": -1.0}, "row 0 is not on the right side"),
    "lower too large": ({"lower": 1.01}, "its lower bound 1.01 is above"),
    "upper too small": ({"rows": (0, 3), "weights": (1.0, 1.0), "upper": 2.0}, "its upper bound 2.0 is below"),
    "norm below 1": ({"norm": 0.5, "lower": 0.0}, "its norm is 0.5"),
    "nu above 1": ({"nu": 1.5, "upper": math.inf}, "nu is 1.5"),
}
FINE = [{}, {"lower": 1.0}, {"lower": -1e300}, {"upper": math.inf}, {"norm": math.inf, "lower": 1.0}, {"b": None}, {"nu": 0.5}]
FINE += [{"rows": (0, 3), "weights": (1.0, 1.0), "upper": 2.2361}, {"classes": (1, 0), "w": (-1.0, 0.0)}, {"nu": 1.5}]


@pytest.mark.parametrize("name", REASONS)
def test_reasons_for_rejection(name):
    change, reason = REASONS[name]
    found = check(unchecked(SEPARATOR, **change), DATA)
    assert not found
    assert reason in found.reason


@pytest.mark.parametrize("change", FINE, ids=str)
def test_accepted_separators(change):
    assert check(replace(SEPARATOR, **change), DATA).reason == ""


def test_brackets_without_w_or_p():
    bracket = replace(SEPARATOR, kind="bracket", w=None, b=None)
    assert check(bracket, DATA)
    assert check(replace(bracket, lower=0.0, upper=math.inf), DATA)
    assert "it has no w for its lower bound" in check(replace(bracket, lower=0.5), DATA).reason
    assert not check(replace(bracket, upper=1e300), DATA)


def test_accepts_agrees_with_check():
    """`accepts` on arrays says what `check` says of the certificate."""
    head = replace(SEPARATOR, kind="bracket", w=None, b=0.0, lower=1.0, upper=2.2361)
    w, p = np.array([1.0, 0.0]), np.array([1.0, 0.0, 0.0, 1.0])
    assert accepts(head, DATA, w, p)
    assert not accepts(head, DATA, None, p)
    assert not accepts(head, DATA, w, None)
    assert accepts(replace(head, upper=None), DATA, w, None)
    assert accepts(replace(head, lower=None), DATA, None, p)
    assert not accepts(replace(head, upper=2.0), DATA, w, p)
    assert not accepts(replace(head, shape=(4, 3)), DATA, w, p)
    assert not accepts(head, DATA, np.array([1.0]), p)
    assert not accepts(head, DATA, np.array([math.nan, 0.0]), p)
    for bad in (-1.0, math.inf, math.nan):
        assert not accepts(replace(head, upper=math.inf), DATA, w, np.array([1.0, bad, 0.0, 1.0]))
    assert accepts(replace(head, kind="separator", lower=None, upper=None), DATA, w, None)
    assert not accepts(replace(head, kind="separator", lower=None, upper=None), DATA, -w, None)


def test_verify_reads_before_it_checks():
    with pytest.raises(InputError, match=r"certificate is dict; pass result.certificate, or model.certificate_"):
        gordan.verify({}, POINTS, [1, 1, 0, 0])
    with pytest.raises(InputError, match=r"X\[1, 0\] is nan"):
        gordan.verify(SEPARATOR, [[1.0, 0.0], [math.nan, 1.0]], [1, 0])
    assert gordan.verify(SEPARATOR, POINTS, [1, 1, 0, 0])
    assert gordan.verify(SEPARATOR, [[1e308, 1e308], [1e308, 0.0], [-1e308, 1e308], [-1.0, 0.0]], [1, 1, 0, 0])
    assert not gordan.verify(replace(SEPARATOR, w=(1.0, 0.0, 1.0)), POINTS, [1, 1, 0, 0])


NAMED = {
    "noise": ({"robust": 0.5}, "under perturbations of size 0.5 in the 2-norm"),
    "norm": ({"norm": 1}, "in the 1-norm"),
    "the largest entry": ({"norm": math.inf}, "in the inf-norm"),
    "soft": ({"nu": 0.9}, "(soft, nu = 0.9)"),
    "penalized": ({"intercept": "penalized"}, "with a penalized intercept"),
}


@pytest.mark.parametrize("case", NAMED)
def test_both_checkers_name_the_kind_of_margin(case):
    """Two claims about the same data with different numbers must not read as if they were about the same thing."""
    options, words = NAMED[case]
    X, y = [[0.0, 0.0], [0.0, 1.0], [3.0, 4.0], [3.0, 5.0]], [0, 0, 1, 1]
    certificate = gordan.maximize_margin(X, y, **options).certificate
    assert words in gordan.verify(certificate, X, y).claim
    assert words in standalone.Claim(json.loads(certificate.to_json())).statement()


@pytest.mark.parametrize("change", [{"robust_norm": 2.002}, {"robust_norm": -2.0}, {"robust": 2.0**-1000}, {"robust": -1.0}])
def test_both_checkers_reject_unknown_perturbations(change):
    X, y = [[0.0, 0.0], [0.0, 1.0], [3.0, 4.0], [3.0, 5.0]], [0, 0, 1, 1]
    certificate = replace(gordan.maximize_margin(X, y).certificate, lower=1.0)
    for allowed in ({}, {"robust": 0.5}, {"robust": 0.5, "robust_norm": 1.0}):
        assert both(replace(certificate, **allowed), X, y) == (True, True)
    assert both(replace(certificate, **change), X, y) == (False, False)


def test_a_statement_that_is_not_the_claim_is_shown(tmp_path, capsys):
    """What people read in the file is not what is checked: both checkers say where it differs."""
    (tmp_path / "d.csv").write_text("a,y\n0,0\n1,1\n")
    made = gordan.separate([[0.0], [1.0]], [0, 1]).certificate
    other = replace(made, about=replace(made.about, statement="the data is fine"))
    told = "its own statement reads differently, and was not checked: 'the data is fine'"
    for certificate, said in ((made, False), (other, True)):
        found = gordan.verify(certificate, [[0.0], [1.0]], [0, 1])
        assert (bool(found), told in found.notes) == (True, said)
        (tmp_path / "c.json").write_text(certificate.to_json())
        assert standalone.main([str(tmp_path / "c.json"), str(tmp_path / "d.csv")]) == 0
        assert (f"  {told}" in capsys.readouterr().out.splitlines()) == said
