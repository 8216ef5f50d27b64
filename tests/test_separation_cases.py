"""Data sets for which others have published whether estimates exist: `diagnose`, and `separate` for linear programs, agree.

`tests/data/separation` has those under the MIT and BSD licences, with their notices. The others are read from the folder that the
environment variable GORDAN_SEPARATION_CASES names; it has files of the same form.
"""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from checkers import both

import gordan

OWN = Path(__file__).parent / "data" / "separation"
OTHERS = os.environ.get("GORDAN_SEPARATION_CASES")
ESTIMATES = {0: "finite", 1: "+inf", -1: "-inf", None: "inf"}
MODELS = {
    "binary": "logistic",
    "multinomial": "multinomial",
    "ordinal": "ordinal",
    "poisson": "poisson",
    "log-binomial": "poisson",
}
# Where the published answer is not ours, and why.
JUDGED = {
    "firth-first-separates": ("x2", "x1 alone separates, so that directions with x2 of either sign do: the sign is undetermined"),
    "brglm2-alligators-sparse": (
        "Bird:lakeHancock",
        "with these counts Bird occurs in Hancock and never in Oklawaha: lakeOklawaha is infinite for Bird, lakeHancock is not",
    ),
}


def cases():
    """Those of the repository, then those of the folder; without it one that is skipped."""
    known = {case["name"]: (OWN, case) for case in json.loads((OWN / "cases.json").read_text())}
    if OTHERS is not None:
        more = json.loads((Path(OTHERS) / "cases.json").read_text())
        known |= {case["name"]: (Path(OTHERS), case) for case in more if case["name"] not in known}
    found = [pytest.param(*known[name], id=name) for name in known if known[name][1]["model"] != "capacity"]
    missing = pytest.mark.skip(reason="set GORDAN_SEPARATION_CASES to a folder with cases.json and the data of other licences")
    return found if OTHERS is not None else [*found, pytest.param(None, None, id="others", marks=missing)]


def read(folder, case):
    """Columns, rows and outcomes as text."""
    with (folder / case["file"]).open(newline="") as file:
        header, *body = csv.reader(file)
    return header[:-1], np.array([[float(cell) for cell in line[:-1]] for line in body]), [line[-1] for line in body]


class Named:
    """An array with names for its columns."""

    def __init__(self, X, columns):
        self.X, self.columns, self.shape = X, columns, X.shape

    def __array__(self, dtype=None, copy=None):
        return np.array(self.X, dtype, copy=copy)


@pytest.mark.parametrize(("folder", "case"), cases())
def test_a_published_case(folder, case):
    names, X, y = read(folder, case)
    if case["model"] == "lp":
        return check_program(X, y, case)
    if not names:  # the published answer is that nothing is separated; gordan wants a column to answer about
        with pytest.raises(gordan.InputError, match="0 columns; at least one of each is needed"):
            gordan.diagnose(X, y, intercept="none")
        return None
    model = MODELS[case["model"]]
    if model == "poisson":
        y = [float(value) for value in y]
    elif model != "logistic" and not isinstance(case["classes"][0], str):
        y = [type(case["classes"][0])(value) for value in y]
    if model == "ordinal":  # by their place in the order, which need not be that of the alphabet
        y = [case["classes"].index(value) for value in y]
    options = {"reference": case["reference"]} if model == "multinomial" else {}
    intercept = "free" if case["intercept"] else "none"
    found = gordan.diagnose(Named(X, names), y, model=model, intercept=intercept, **options)
    assert found.proved
    assert both(found.certificate, X.tolist(), y) == (True, True)
    check_expected(found, case)
    return None


def check_expected(found, case):
    expected = case["expected"]
    if "kind" in expected:
        assert found.kind == expected["kind"]
    if "separated" in expected:
        assert (found.kind != "overlap") == expected["separated"]
    if "rows" in expected:
        assert found.rows == tuple(expected["rows"])
    if "number_of_rows" in expected:
        assert len(found.rows) == expected["number_of_rows"]
    if expected.get("rank_deficient"):
        assert found.dependent or "one" in found.columns  # a column of ones is the constant
    if "certificate" in expected:
        assert all((found.direction[name] > 0) == (value > 0) for name, value in expected["certificate"].items() if value) or all(
            (found.direction[name] < 0) == (value > 0) for name, value in expected["certificate"].items() if value
        )
    said = {name: ESTIMATES[sign] for name, sign in found.columns.items()} | dict.fromkeys(found.dependent, "aliased")
    for name, estimate in expected.get("coefficients", {}).items():
        if JUDGED.get(case["name"], ("", ""))[0] == name:
            assert said[name] != estimate
        else:
            assert said[name] == estimate or (estimate == "inf" and said[name].endswith("inf")), name


def check_program(X, y, case):
    """a·w ≥ 1 where y = 1, a·w ≤ -1 where y = 0: feasible just if the rows are separable; bounds w ≥ 0 are further rows."""
    signs = [1 if float(label) == 1 else -1 for label in y]
    if case["variables"] == "lower bound 0":
        X, signs = np.vstack([X, np.eye(X.shape[1])]), [*signs, *[1] * X.shape[1]]
    v = gordan.separate(X, signs, intercept="none")
    assert v.separable == case["expected"]["feasible"]
    assert gordan.verify(v.certificate, X, signs)
