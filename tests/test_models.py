"""`diagnose` for models beside the logistic one, against exact linear programs over rows that are made here from definitions."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import oracle
import pytest
import scipy.sparse as sp
from checkers import both
from mutations import is_true, made_rows

import gordan
from gordan.solve import recession

MODELS = ("multinomial", "ordinal", "poisson")
pytestmark = pytest.mark.filterwarnings("ignore:the classes of y are text")  # which are in the order of the alphabet here
EACH = 40


def instance(model, r):
    """A small problem: few values, dummies, columns that depend on each other, outcomes that follow a column or do not."""
    n, d = r.randint(3, 9), r.randint(1, 2 if model == "multinomial" else 3)
    column = r.choice(
        (lambda: r.randint(-2, 2), lambda: int(r.random() < 0.3), lambda: r.gauss(0, 1), lambda: 0.1 * r.randint(-3, 3))
    )
    X = [[float(column()) for _ in range(d)] for _ in range(n)]
    if r.random() < 0.2:
        X = [[*row, 2 * row[0]] for row in X]
    k = r.randint(2, 4) if model != "poisson" else 3
    follow = r.random() < 0.6
    y = [max(0, min(k - 1, round(row[0] + r.choice((0, 0, 1))))) if follow else r.randrange(k) for row in X]
    if model != "poisson" and len({*y}) == 1:
        y[0] = 1 - min(y[0], 1)
    if model != "poisson":
        y = [("a", "b", "c", "d")[label] for label in y] if r.random() < 0.5 else y
    return X, y


def independent(rows, first):
    """The columns that are independent of those before them; these come first in the order."""
    chosen = []
    for j in [*first, *(j for j in range(len(rows[0])) if j not in first)]:
        if oracle.rank([[row[i] for i in (*chosen, j)] for row in rows]) > len(chosen):
            chosen.append(j)
    return sorted(chosen)


def check_diagnosis(model, X, y, intercept, found):
    """Everything that is promised, from the raw values and the definition of the model."""
    classes = sorted({*y}) if model != "poisson" else [False, True]
    about = SimpleNamespace(model=model, intercept=intercept, classes=classes)
    rows = made_rows(about, [[Fraction(x) for x in row] for row in X], y)
    of = [i for i, row in enumerate(X) for _ in made_rows(about, [[Fraction(x) for x in row]], [y[i]])]
    names = found._data.names
    inside = independent(rows, [])
    assert found.dependent == tuple(name for j, name in enumerate(names) if j not in inside)
    assert found.model == model
    strict = [oracle.weakly(rows, row) > 0 for row in rows]  # whether some direction is strict there
    assert found.rows == tuple(sorted({of[i] for i, own in enumerate(strict) if own}))
    kind = "complete" if all(strict) else "quasi-complete" if any(strict) else "overlap"
    assert found.kind == kind
    assert oracle.separable(rows) == (kind == "complete")
    if found.direction is not None:
        w = [found.direction[name] for name in names]
        scores = [sum(x * v for x, v in zip(row, w, strict=True)) for row in rows]
        assert [score > 0 for score in scores] == strict
        assert min(scores) >= 0
    reduced = [[row[j] for j in inside] for row in rows]
    for position, j in enumerate(inside):
        unit = [int(i == position) for i in range(len(inside))]
        up, down = oracle.weakly(reduced, unit) > 0, oracle.weakly(reduced, [-x for x in unit]) > 0
        expected = {(False, False): 0, (True, False): 1, (False, True): -1, (True, True): None}[up, down]
        assert found.columns[names[j]] == expected, (names[j], found.columns)
    certificate = found.certificate
    assert (certificate.model, certificate.shape) == (model, (len(X), len(X[0])))
    assert both(certificate, X, y) == (True, True)
    told = {"complete": "separator", "quasi-complete": "quasi-separation", "overlap": "overlap"}
    assert certificate.kind.removeprefix("verified-") == told[kind]


def test_an_ordinal_model_without_intercept_is_refused():
    with pytest.raises(gordan.InputError, match="thresholds in place of an intercept"):
        gordan.diagnose([[1.0], [2.0]], [0, 1], model="ordinal", intercept="none")


@pytest.mark.parametrize(
    ("model", "intercept"),
    [(model, intercept) for model in MODELS for intercept in ("free", "none") if (model, intercept) != ("ordinal", "none")],
)
def test_against_the_oracle(model, intercept):
    r, kinds = random.Random(f"{model} {intercept}"), Counter()
    for _ in range(EACH):
        X, y = instance(model, r)
        storage = r.choice((np.asarray, sp.csr_array))
        found = gordan.diagnose(storage(np.array(X)), y, model=model, intercept=intercept)
        check_diagnosis(model, X, y, intercept, found)
        kinds[found.kind] += 1
    print(f"{model}, {intercept}: {dict(kinds)}")
    assert {"quasi-complete", "overlap"} <= {*kinds}


@pytest.mark.parametrize("model", MODELS)
def test_the_route_for_many_rows(model, monkeypatch):
    """With the exact route switched off, floats propose: what is decided is right."""
    monkeypatch.setattr(recession, "MAX_EXACT_SIZE", 0)
    r = random.Random(f"program {model}")
    for _ in range(EACH // 2):
        X, y = instance(model, r)
        found = gordan.diagnose(X, y, model=model)
        assert found.proved
        assert not found.open
        check_diagnosis(model, X, y, "free", found)


def changes(c):
    """What may be changed about a certificate, field by field."""
    (n, d), whole = c.shape, c.exact
    for i, weight in enumerate(c.weights):
        for new in (weight + 1, 2 * weight, weight * 0, -weight):
            yield {"weights": (*c.weights[:i], new, *c.weights[i + 1 :])}
        for row in range(0, 2 * n + 3):
            yield {"rows": (*c.rows[:i], row, *c.rows[i + 1 :])}
        yield {"rows": (*c.rows[:i], *c.rows[i + 1 :]), "weights": (*c.weights[:i], *c.weights[i + 1 :])}
    for j, value in enumerate(c.w or ()):
        for new in (-value, value * 0, 3 * value + 1, value - 1):
            yield {"w": (*c.w[:j], new, *c.w[j + 1 :])}
    if c.w is not None:
        yield from ({"w": w} for w in (tuple(-x for x in c.w), tuple(0 * x for x in c.w), c.w[1:], None))
        yield from ({"b": 1 if whole else 1.0}, {"lower": 0.5}, {"rows": (0,), "weights": (1 if whole else 1.0,)})
    for kind in ("separator", "witness", "overlap", "quasi-separation"):
        yield {"kind": kind} if kind in ("separator", "quasi-separation") else {"kind": kind, "w": None, "b": None}
    for model in (*MODELS, "logistic"):
        yield {"model": model}
        yield {"model": model, "classes": (False, True)}
    yield from ({"intercept": intercept} for intercept in ("free", "none", "penalized"))
    yield from ({"classes": c.classes[::-1]}, {"classes": (*c.classes[1:], c.classes[0])}, {"classes": c.classes[:2]})
    yield from ({"shape": shape} for shape in ((n + 1, d), (n, d + 1), (n - 1, d)))
    yield from ({"dropped": dropped} for dropped in (("missing",), ("zero-weight",)))


@pytest.mark.parametrize("model", MODELS)
def test_mutated_certificates(model):
    """Both checkers agree on every certificate with one field changed, and what they accept is true."""
    r, said = random.Random(f"mutated {model}"), Counter()
    for _ in range(12):
        X, y = instance(model, r)
        certificate = gordan.diagnose(X, y, model=model).certificate
        for change in changes(certificate):
            try:
                mutated = replace(certificate, **change)
            except gordan.InputError:
                said["refused"] += 1
                continue
            first, second = both(mutated, X, y)
            assert first == second, mutated
            said["accepted" if first else "rejected"] += 1
            assert not first or is_true(mutated.to_json(), X, y) is not False, mutated
    print(f"{model}: {dict(said)}")
    assert said["rejected"] > 300
    assert 20 < said["accepted"] < said["rejected"]


@pytest.mark.parametrize("model", ["multinomial", "ordinal"])
@pytest.mark.parametrize(
    ("change", "told"),
    [({"kind": kind}, "states no margin and no loss") for kind in ("bracket", "optimum")]
    + [({"lower": 0.1}, "no margin"), ({"upper": 0.1}, "no margin"), ({"norm": 1.0}, "no margin")]
    + [({"b": 1.0}, "no b, no nu"), ({"nu": 0.1}, "no b, no nu"), ({"sample_weight": (1.0,) * 6}, "no sample weights")],
)
def test_fields_of_margins_and_losses_have_no_meaning_for_a_model(model, change, told):
    X, y = [[1.0, 0.0], [2.0, 1.0], [4.0, 5.0], [5.0, 6.0], [7.0, 0.5], [8.0, 0.0]], [0, 0, 1, 1, 2, 2]
    certificate = gordan.diagnose(X, y, model=model).certificate
    assert certificate.kind == "separator"
    assert replace(certificate, b=0.0) is not None
    with pytest.raises(gordan.InputError, match=told):
        replace(certificate, **change)


def test_counts_and_classes_that_are_refused():
    for y, told in (
        ([0, -1, 2], r"y\[1\] is -1"),
        ([0, np.inf, 2], "finite"),
        ([0, np.nan, 1], "every row needs a label"),
        (["a", "b", "c"], "y must hold real numbers"),
    ):
        with pytest.raises(gordan.InputError, match=told):
            gordan.diagnose([[1.0], [2.0], [3.0]], y, model="poisson")
    with pytest.raises(gordan.InputError, match="one class only"):
        gordan.diagnose([[1.0], [2.0]], [1, 1], model="ordinal")
    with pytest.raises(gordan.InputError, match="choose one of 'logistic'"):
        gordan.diagnose([[1.0], [2.0]], [1, 0], model="probit")
    with pytest.raises(gordan.InputError, match="reference is 'z', but y has the classes 'a', 'b'"):
        gordan.diagnose([[1.0], [2.0]], ["a", "b"], model="multinomial", reference="z")
    with pytest.raises(gordan.InputError, match="leave it out for model='poisson'"):
        gordan.diagnose([[1.0], [2.0]], [1, 2], model="poisson", reference=1)


def test_two_classes_are_the_logistic_model():
    """Multinomial and ordinal models of two classes ask what the logistic one asks."""
    r, signs = random.Random(5), Counter()
    for _ in range(20):
        X, y = instance("multinomial", r)
        y = [int(label in (0, "a")) for label in y]
        if len({*y}) == 1:
            continue
        plain = gordan.diagnose(X, y)
        for model, names in (("multinomial", lambda name: f"1:{name}"), ("ordinal", lambda name: name)):
            found = gordan.diagnose(X, y, model=model)
            assert (found.kind, found.rows) == (plain.kind, plain.rows)
            for name, sign in plain.columns.items():
                if name != "(intercept)":
                    assert found.columns[names(name)] == sign
                    signs[sign] += 1
    assert min(signs[0], signs[1], signs[-1]) > 0


def test_the_reference_changes_names_and_nothing_else():
    X, y = [[0.0], [0.0], [1.0], [1.0], [2.0], [2.0]], ["a", "b", "a", "b", "c", "c"]
    first, second = (gordan.diagnose(X, y, model="multinomial", reference=reference) for reference in (None, "b"))
    assert (first.kind, first.rows) == (second.kind, second.rows)
    assert {*first.columns} == {"b:x0", "b:(intercept)", "c:x0", "c:(intercept)"}
    assert {*second.columns} == {"a:x0", "a:(intercept)", "c:x0", "c:(intercept)"}
    assert second.certificate.classes == ("b", "a", "c")
    for found in (first, second):
        assert both(found.certificate, X, y) == (True, True)
