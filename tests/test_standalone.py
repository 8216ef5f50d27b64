"""Each condition of the standalone checker, by claims that violate only one."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import math
import os
import random
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from checkers import Distant, both
from test_standalone_program import SEPARATOR, TABLE, program, written

import gordan
from gordan.certificates import standalone
from gordan.certificates.matrix import Matrix
from gordan.certificates.problem import Problem
from gordan.certificates.verify import check, hash_for

# ---- each condition, by claims that violate only one ---------------------------------------------------------------------


def about(kind, intercept="none", **content):
    return gordan.Certificate(kind, intercept, (0, 1), (4, 2), **content)


X = [[1.0, 0.0], [3.0, 4.0], [-2.0, 0.0], [-1.0, -4.0]]  # with these labels A_i·(1, 0) is 1, 3, 2, 1
LABELS = [1, 1, 0, 0]
P = {"rows": (0, 3), "weights": (1.0, 1.0)}  # A^T p = (1, 2)
BRACKETS = {
    "lower": (about("bracket", w=(1.0, 0.0), lower=1.0), True),
    "lower, too much": (about("bracket", w=(1.0, 0.0), lower=math.nextafter(1.0, 2.0)), False),
    "lower of zero proves itself": (about("bracket", lower=0.0), True),
    "lower below zero": (about("bracket", lower=-1.0), True),
    "lower without w": (about("bracket", lower=0.5), False),
    "lower from nothing": (about("bracket", w=(0.0, 0.0), lower=0.5), False),
    "lower, free": (about("bracket", "free", w=(1.0, 0.0), lower=1.0), True),
    "lower, free, b does not count": (about("bracket", "free", w=(1.0, 0.0), b=100.0, lower=1.0), True),
    "lower, penalized": (about("bracket", "penalized", w=(3.0, 0.0), b=0.0, lower=1.0), True),
    "lower, penalized, b counts": (about("bracket", "penalized", w=(3.0, 0.0), b=4.0, lower=0.5), False),
    "lower, penalized, b in the norm": (about("bracket", "penalized", w=(2.0, 0.0), b=1.0, lower=0.5), False),
    "lower, penalized, b in the norm, less": (about("bracket", "penalized", w=(2.0, 0.0), b=1.0, lower=0.44), True),
    "lower, infinite norm": (about("bracket", w=(0.5, 0.0), lower=1.0, norm=math.inf), True),
    "lower, infinite norm, too much": (about("bracket", w=(1.0, 0.125), lower=0.9, norm=math.inf), False),
    "lower, norm 3": (about("bracket", w=(1.0, 0.0), lower=1 - 1e-14, norm=3.0), True),
    "lower, norm 3, too much": (about("bracket", w=(1.0, 0.0), lower=1 + 1e-15, norm=3.0), False),
    "upper": (about("bracket", **P, upper=math.sqrt(5) + 1e-15), True),
    "upper, too little": (about("bracket", **P, upper=math.sqrt(5) - 1e-15), False),
    "upper, infinite": (about("bracket", upper=math.inf), True),
    "upper without rows": (about("bracket", upper=1e300), False),
    "upper, infinite norm": (about("bracket", **P, upper=2.0, norm=math.inf), True),
    "upper, infinite norm, too little": (about("bracket", **P, upper=math.nextafter(2.0, 0), norm=math.inf), False),
    "upper, free": (about("bracket", "free", **P, upper=math.sqrt(5) + 1e-15), True),
    "upper, free, one class": (about("bracket", "free", rows=(0, 1), weights=(1.0, 1.0), upper=1e300), False),
    "upper, penalized": (about("bracket", "penalized", **P, upper=math.sqrt(5) + 1e-15), True),
    "upper, penalized, unbalanced": (about("bracket", "penalized", rows=(0,), weights=(1.0,), upper=1.42), True),
    "upper, penalized, unbalanced, too little": (about("bracket", "penalized", rows=(0,), weights=(1.0,), upper=1.41), False),
    "weights are normalized": (about("bracket", rows=(0, 3), weights=(8.0, 8.0), upper=math.sqrt(5) + 1e-15), True),
    "norm below one": (about("bracket", lower=0.0, norm=0.875), False),
    "norm of one": (about("bracket", lower=0.0, norm=1.0), True),
    "norm of two": (about("bracket", lower=0.0, norm=2.0), True),
    "nu": (about("bracket", w=(1.0, 0.0), lower=1.25, nu=0.75, sample_weight=(1.0, 1.0, 1.0, 1.0)), True),
    "nu, too much": (about("bracket", w=(1.0, 0.0), lower=1.34, nu=0.75), False),
    "nu of one": (about("bracket", w=(1.0, 0.0), lower=1.75 * (1 - 1e-12), nu=1.0), True),
    "nu above one": (about("bracket", lower=0.0, nu=1.5), False),
    "nu of zero": (about("bracket", lower=0.0, nu=0.0), False),
    "nu, free, a class too small": (about("bracket", "free", lower=0.0, nu=0.75, sample_weight=(1.0, 0.0, 1.0, 1.0)), False),
    "nu, free": (about("bracket", "free", lower=0.0, nu=0.6, sample_weight=(1.0, 0.0, 1.0, 1.0)), True),
    "nu, p within its caps": (about("bracket", **P, upper=2.3, nu=0.5), True),
    "nu, p of too little mass": (about("bracket", **P, upper=2.3, nu=0.75), False),
    "nu, p above its caps": (about("bracket", rows=(0, 3), weights=(2.0, 1.0), upper=9.0, nu=0.5), False),
    "a weight below zero": (about("bracket", lower=0.0, sample_weight=(1.0, 1.0, 1.0, -1.0)), False),
    "rows of weight zero do not count": (about("bracket", w=(1.0, 0.0), lower=2.0, sample_weight=(0.0, 1.0, 1.0, 0.0)), True),
    "rows of weight zero count for p": (about("bracket", **P, upper=9.0, sample_weight=(0.0, 1.0, 1.0, 1.0)), False),
    "all of weight zero": (about("bracket", w=(1.0, 0.0), lower=0.1, sample_weight=(0.0,) * 4), False),
    "rows twice": (about("bracket", rows=(0, 0), weights=(1.0, 1.0), upper=9.0), False),
    "rows beyond the data": (about("bracket", rows=(0, 4), weights=(1.0, 1.0), upper=9.0), False),
    "a weight of zero": (about("bracket", rows=(0, 3), weights=(1.0, 0.0), upper=9.0), False),
    **{
        f"lower under noise of norm {norm:g}{what}": (
            about("bracket", w=(size * 3.0, size * 4.0), lower=step(low), robust=0.25, robust_norm=norm),
            true,
        )
        for norm, low in ((1.0, math.nextafter(0.4, 0.0)), (2.0, math.nextafter(0.35, 0.0)), (math.inf, 0.25))
        for size in (1.0, 0.125, 0.3)
        for what, step, true in (
            (f", w of size {size}", lambda low: low * (1 - 1e-15), True),
            (f", w of size {size}, too much", lambda low: low * (1 + 1e-15), False),
        )
    },
    "lower under too much noise": (about("bracket", w=(3.0, 4.0), lower=1e-300, robust=0.5, robust_norm=math.inf), False),
    **{
        f"upper under noise of norm {norm:g}{what}": (
            about("bracket", **P, upper=math.sqrt(square) - less + more, robust=0.25, robust_norm=norm),
            true,
        )
        for norm, square, less in ((1.0, 4.0625, 0.0), (2.0, 5.0, 0.25), (math.inf, 3.625, 0.0))
        for what, more, true in (("", 1e-14, True), (", too little", -1e-14, False))
    },
    "separator": (about("separator", w=(1.0, 0.0)), True),
    "separator with b, none": (about("separator", w=(1.0, 0.0), b=0.5), False),
    "separator with b, free": (about("separator", "free", w=(1.0, 0.0), b=0.5), True),
    "separator with too much b": (about("separator", "free", w=(1.0, 0.0), b=1.0), False),
    "separator without w": (about("separator"), False),
    "separator with a bracket": (about("separator", w=(1.0, 0.0), lower=1.0, **P, upper=2.3), True),
    "separator with a false lower": (about("separator", w=(1.0, 0.0), lower=1.1), False),
    "separator with a false upper": (about("separator", w=(1.0, 0.0), **P, upper=0.5), False),
    "separator of a bad norm, no bracket": (about("separator", w=(1.0, 0.0), norm=0.5), True),
    "separator of a bad norm": (about("separator", w=(1.0, 0.0), norm=0.5, upper=math.inf), False),
}


@pytest.mark.parametrize("name", BRACKETS)
def test_each_condition_of_separators_and_brackets(name):
    """Claims about four rows, true or false for one reason; both checkers know."""
    certificate, true = BRACKETS[name]
    accepted, reason = standalone.check(json.loads(certificate.to_json()), X, LABELS)
    assert accepted == true
    assert (reason == "accepted") == true
    found = gordan.verify(certificate, X, LABELS)
    assert found.accepted == bool(found) == true
    assert (found.reason == "") == true


@pytest.mark.parametrize(
    ("stored", "given", "column", "only_zeros", "relation", "said"),
    [
        ([1.0, 2.0, 3.0], [1, 2, 3], "n", False, "same", "its weights are those of the column 'n'"),
        ([1.0, 2.0, 3.0], ["1", "2.0", " 3 "], None, False, "same", "those of the weights of the data"),
        ([2.0, 4.0, 9.0], [1, 2, 3], "n", False, "factors", "2 for a, 3 for b"),
        ([0.1 * 3, 0.1 * 7, 3.0], [3, 7, 3], "n", False, "factors", "0.1 for a, 1 for b"),
        (
            [2.0, 4.5, 9.0],
            [1, 2, 3],
            "n",
            False,
            "other",
            "1 of 3 differ, and the weight of row 1 is 4.5 in the certificate and 2",
        ),
        ([2.0, 4.0 + 1e-12, 9.0], [1, 2, 3], "n", False, "other", "1 of 3 differ, and the weight of row 1"),
        ([2.0, 4.0, 9.0], [1, None, 3], "n", False, "other", "nan in the data"),
        ([2.0, 4.0, 9.0], [-1, -2, 3], "n", False, "other", "2 of 3 differ, and the weight of row 0"),
        ([2.0, 4.0], [1, 2, 3], "n", False, "other", "weights for 2 rows, and the data has 3"),
        ([2.0, 0.0, 9.0], [1, 2, 3], "n", True, "other", "the weight of row 1 is zero only in the certificate"),
        ([2.0, 5.0, 9.0], [1, 0, 3], "n", True, "other", "the weight of row 1 is zero only in the data"),
        ([2.0, 5.0, 0.0], [1, 7, 0], "n", True, "same", "its rows of weight zero are those of the column 'n'"),
        ([2.0, 5.0, 0.0], [1, math.nan, 0], "n", True, "other", "1 of 3 differ"),
        ([2.0, 2.0, 0.5], None, None, False, "factors", "are a factor for each class, such as class weights: 2 for a, 0.5 for b"),
        ([1.0, 1.0, 1.0], None, None, False, "factors", "1 for a, 1 for b"),
        ([2.0, 3.0, 0.5], None, None, False, "unknown", "name their column by --weight"),
        ([2.0, 2.0, 0.5], None, "n", False, "unknown", "no column 'n' was read; --weight names another"),
    ],
)
def test_weights_of_a_certificate_are_compared_with_those_of_the_data(stored, given, column, only_zeros, relation, said):
    found, sentence = standalone.compare_weights(stored, given, ["a", "a", "b"], column, only_zeros)
    assert found == relation
    assert said in sentence
    assert found in standalone.WEIGHTS


def integers(kind, X, y, intercept="none", **content):
    return gordan.Certificate(kind, intercept, (0, 1), (len(X), len(X[0])), **content), X, y


CROSS = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1, 1, 1, 0]  # the last row of A is (0, -1)
TWINS = [[1.0], [1.0], [3.0], [3.0]], [1, 0, 1, 0]
WALL = [[0.0, 1.0], [0.0, 1.0], [1.0, 7.0], [-2.0, 3.0]], [1, 0, 1, 0]  # two twins on the plane x = 0, the others beyond it
SHIFTED = [[-1.0, 0.0], [-1.0, 0.0], [5.0, 0.0]], [1, 0, 1]
PAIR, FOUR = {"rows": (0, 1), "weights": (1, 1)}, {"rows": (0, 1, 2, 3), "weights": (1, 1, 1, 1)}
BIG = 2**60 + 1
WHOLE = {
    "witness": (*integers("witness", *TWINS, **PAIR), True),
    "witness, free": (*integers("witness", *TWINS, "free", **PAIR), True),
    "witness of nothing": (*integers("witness", *TWINS), False),
    "witness that does not cancel": (*integers("witness", *TWINS, rows=(0, 3), weights=(1, 1)), False),
    "witness of other weights": (*integers("witness", *TWINS, rows=(0, 3), weights=(3, 1)), True),
    "witness out of balance": (*integers("witness", *TWINS, "free", rows=(0, 3), weights=(3, 1)), False),
    "witness out of balance, penalized": (*integers("witness", *TWINS, "penalized", rows=(0, 3), weights=(3, 1)), False),
    "witness of long weights": (*integers("witness", *TWINS, "free", rows=(0, 1), weights=(BIG, BIG)), True),
    "witness of long weights that differ": (*integers("witness", *TWINS, rows=(0, 1), weights=(BIG, BIG - 1)), False),
    "witness of enormous weights": (*integers("witness", *TWINS, rows=(0, 1), weights=(2**1100, 2**1100)), True),
    "witness of weights below zero": (*integers("witness", *TWINS, rows=(0, 1), weights=(-1, -1)), False),
    "overlap": (*integers("overlap", *CROSS, **FOUR), True),
    "overlap that does not span": (*integers("overlap", *CROSS, **PAIR), False),
    "overlap that does not cancel": (*integers("overlap", *CROSS, rows=(0, 1, 2), weights=(1, 1, 1)), False),
    "overlap of nothing": (*integers("overlap", *CROSS), False),
    "overlap of twins": (*integers("overlap", *TWINS, **PAIR), True),
    "overlap of twins, free": (*integers("overlap", *TWINS, "free", **PAIR), False),
    "overlap of twins, penalized": (*integers("overlap", *TWINS, "penalized", **PAIR), False),
    "overlap of twins in the plane, free": (
        *integers("overlap", [[1.0, 0.0], [1.0, 0.0], [3.0, 5.0], [3.0, 5.0]], [1, 0, 1, 0], "free", **PAIR),
        False,
    ),
    "overlap of both twins, free": (*integers("overlap", *TWINS, "free", **FOUR), True),
    "quasi": (*integers("quasi-separation", *WALL, w=(1, 0), b=0, **PAIR), True),
    "quasi without b": (*integers("quasi-separation", *WALL, w=(1, 0), **PAIR), True),
    "quasi, free": (*integers("quasi-separation", *WALL, "free", w=(1, 0), b=0, **PAIR), True),
    "quasi, long": (*integers("quasi-separation", *WALL, w=(2**1100, 0), b=0, **PAIR), True),
    "quasi on the wrong side": (*integers("quasi-separation", *WALL, w=(-1, 0), b=0, **PAIR), False),
    "quasi on the wrong side of one": (*integers("quasi-separation", *WALL, w=(1, 1), b=-1, **PAIR), False),
    "quasi without w": (*integers("quasi-separation", *WALL, b=0, **PAIR), False),
    "quasi of nothing": (*integers("quasi-separation", *WALL, w=(1, 0), b=0), False),
    "quasi that separates nothing": (*integers("quasi-separation", *CROSS, w=(0, 0), b=0, **FOUR), False),
    "quasi that is complete": (*integers("quasi-separation", [[1.0], [-1.0]], [1, 0], w=(1,), b=0, **PAIR), False),
    "quasi that could be more": (*integers("quasi-separation", *CROSS, w=(0, 1), b=0, **PAIR), False),
    "quasi with a better w": (
        *integers(
            "quasi-separation", [[0.0, 1.0, 0], [0.0, 1.0, 0], [1.0, 0, 0], [0, 0, -1.0]], [1, 0, 1, 0], w=(1, 0, 0), **PAIR
        ),
        False,
    ),
    "quasi through the origin, along one line": (
        *integers("quasi-separation", [[0.0, 1], [0, 1], [0, 2], [1, 0]], [1, 0, 1, 1], w=(1, 0), **PAIR),
        True,
    ),
    "quasi along one line, which a constant leaves": (
        *integers("quasi-separation", [[0.0, 1], [0, 1], [0, 2], [1, 0]], [1, 0, 1, 1], "free", w=(1, 0), b=0, **PAIR),
        False,
    ),
    "quasi with b": (*integers("quasi-separation", *SHIFTED, "free", w=(1, 0), b=1, **PAIR), True),
    "quasi with b but no intercept": (*integers("quasi-separation", *SHIFTED, w=(1, 0), b=1, **PAIR), False),
}


@pytest.mark.parametrize("name", WHOLE)
def test_each_condition_of_integer_certificates(name):
    """Claims of whole numbers, true or false for one reason; both checkers know, whatever the storage."""
    certificate, X, y, true = WHOLE[name]
    assert standalone.check(json.loads(certificate.to_json()), X, y)[0] == true
    assert bool(gordan.verify(certificate, X, y)) == true
    assert bool(gordan.verify(certificate, sp.csr_array(np.array(X)), y)) == true


def test_witnesses_bring_their_rows_together():
    problem = Problem(Matrix(Distant(np.full((2, 1), 2.0))), np.array([1, -1], dtype=np.int8), (0, 1))
    assert check(gordan.Certificate("witness", "none", (0, 1), (2, 1), rows=(0, 1), weights=(1, 1)), problem)


@pytest.mark.parametrize("more", [{"lower": 5.0}, {"upper": -3.0}, {"nu": 0.5}, {"sample_weight": (1.0, 1.0, 1.0, 1.0)}], ids=str)
@pytest.mark.parametrize("name", ["witness", "overlap", "quasi"])
def test_margins_that_a_kind_does_not_prove_are_refused(name, more):
    certificate, X, y, true = WHOLE[name]
    assert true
    with pytest.raises(gordan.InputError, match="certificate has no"):
        replace(certificate, **more)
    content = {**json.loads(certificate.to_json()), **dict.fromkeys(more)}
    with pytest.raises(standalone.BadInput):
        standalone.check(content, X, y)


@pytest.mark.parametrize("suffix", [".parquet", ".pq", ".npz", ".npz.gz"])
def test_unsupported_files_are_refused(suffix, tmp_path, capsys):
    (tmp_path / "c.json").write_text(WHOLE["witness"][0].to_json())
    (tmp_path / f"d{suffix}").write_text("1 1:1\n")
    assert standalone.main([str(tmp_path / "c.json"), str(tmp_path / f"d{suffix}")]) == 2
    assert f"this checker does not read {suffix.removesuffix('.gz')};" in capsys.readouterr().err


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_compressed_files(suffix, pack, tmp_path, capsys):
    """Tables, svmlight and arrays; what is cut short or not compressed is bad input."""
    np.save(tmp_path / "t.npy", TABLE)
    written(tmp_path / "t.csv", "a,b,y\n1,-2,no\n0,4,yes\n0,0.25,no\n")
    written(tmp_path / "t.svm", "no 1:1 2:-2\nyes 2:4\nno 2:0.25\n")
    for name, certificate in (("t.csv", SEPARATOR), ("t.svm", SEPARATOR), ("t.npy", replace(SEPARATOR, classes=(0, 1)))):
        content = (tmp_path / name).read_bytes()
        (tmp_path / (name + suffix)).write_bytes(pack(content))
        assert program(tmp_path, capsys, certificate, name + suffix) == (0, "accepted\n", "")
        for spoiled in (content, pack(content)[:-9], b""):
            (tmp_path / (name + suffix)).write_bytes(spoiled)
            assert program(tmp_path, capsys, certificate, name + suffix)[0] == 2


def test_one_class_against_the_rest_by_its_number():
    """Numbers are compared as numbers, not as whole ones."""
    assert standalone.one_against_the_rest([2.5, 2.0, 3], "2") == [False, True, False]
    assert standalone.one_against_the_rest(["2.0", "2", "2.5"], "2") == [True, True, False]
    assert standalone.one_against_the_rest(["2.0", "2", "two"], "2") == [False, True, False]


# ---- scores in floats, and what the certificate is about -------------------------------------------------------------


def test_scores_in_floats_enclose_the_exact_ones():
    """Rows that cancel to the last bit, exponents far apart, whole numbers beyond floats: the exact score is never outside."""
    r, decided = random.Random(3), 0
    for _ in range(300):
        d, size = r.randint(1, 6), r.choice((0, 3, 60, 300, 500))
        number = r.choice((lambda size=size: math.ldexp(r.gauss(0, 1), r.randint(-size, size)), lambda: float(r.randint(-3, 3))))
        w, b = [number() for _ in range(d)], r.choice((0.0, number()))
        rows = [[number() for _ in range(d)] for _ in range(8)]
        for row in rows[:4]:  # nearly, or exactly, on the plane
            j = r.randrange(d)
            rest = sum((Fraction(x) * Fraction(v) for k, (x, v) in enumerate(zip(row, w, strict=True)) if k != j), Fraction(b))
            if w[j] and abs(rest / Fraction(w[j])) < 2**1000:
                row[j] = float(-rest / Fraction(w[j]))
        if r.random() < 0.2:
            rows[0] = [r.randint(-(2**70), 2**70) for _ in range(d)]
        claim = standalone.Claim(json.loads(gordan.Certificate("separator", "free", (0, 1), (8, d), w=tuple(w), b=b).to_json()))
        X, signs = standalone._rows(rows, d)[0], [r.choice((1, -1)) for _ in rows]
        for i, (near, error) in enumerate(claim._float_scores(X, signs, claim.b)):
            exact = claim._score(X, signs, i, claim.b)
            assert math.isinf(error) or abs(Fraction(near) - exact) <= Fraction(error)
            decided += near > error
    assert decided > 400


def test_a_separator_is_decided_exactly_where_floats_do_not(tmp_path):
    """A row on the plane, one unit to its side, and one to the other, where the sum of products is rounded to 0."""
    tiny = 2.0**-60
    certificate = gordan.Certificate("separator", "none", (0, 1), (2, 3), w=(1.0, 1.0, 1.0))
    for last, accepted in ((tiny, True), (0.0, False), (-tiny, False)):
        X = [[1.0, last, -1.0], [-1.0, -1.0, -1.0]]
        assert standalone.check(json.loads(certificate.to_json()), X, [1, 0])[0] == accepted


class Trial:
    """A table with a missing cell, weights, a column that is not used, and a certificate of a diagnosis of it."""

    TEXT = "id,age,soap,weight,ill\n1,20,0,1,no\n2,30,0,2,yes\n3,40,0,1,no\n4,,1,1,no\n5,25,1,1,yes\n6,35,1,1,yes\n7,25,1,0,no\n"

    def __init__(self, folder, change=None):
        pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'gordan[data]'")
        (folder / "trial.csv").write_text(self.TEXT)
        self.frame = pandas.read_csv(folder / "trial.csv")
        X, y, weights = self.frame[["age", "soap"]], self.frame.ill, self.frame.weight
        self.found = gordan.diagnose(X, y, missing="drop", sample_weight=weights)
        (folder / "proof.json").write_text(self.found.certificate.to_json())


def told(capsys, folder, data, *options, code=0):
    assert standalone.main([str(folder / "proof.json"), str(folder / data), *options]) == code
    return capsys.readouterr().out.splitlines()


def test_rules_and_names_are_applied_to_files(tmp_path, capsys):
    """The label, the weights, the columns and the rules are those of the certificate: nothing has to be named."""
    trial = Trial(tmp_path)
    assert (trial.found.kind, trial.found.rows, trial.found.left_out) == ("quasi-complete", (4, 5), 2)
    lines = told(capsys, tmp_path, "trial.csv", "--weight", "weight", "--drop", "id")
    unasked = "  columns that it does not name are left out: 'id'"
    assert [*lines[:-1], unasked, lines[-1]] == told(capsys, tmp_path, "trial.csv")
    assert lines[0].startswith("accepted: the data is quasi-completely separated")
    assert lines[1].endswith("for the label column 'ill', the weights 'weight', 2 named columns ('age', 'soap')")
    assert lines[2:] == [
        "  the positive class is 'yes', the other one 'no'",
        "  rows with a missing value are left out, and row numbers do not count them",
        "  rows of weight zero are left out, and row numbers do not count them",
        SAME,
    ]
    (tmp_path / "mass.csv").write_text(Trial.TEXT.replace("weight", "mass"))
    assert "by --weight" in told(capsys, tmp_path, "mass.csv", code=1)[0]
    others = told(capsys, tmp_path, "mass.csv", "--weight", "mass")
    assert [line.replace("'mass'", "'weight'") for line in others if line != unasked] == lines
    renamed = Trial.TEXT.replace("soap", "cream")
    (tmp_path / "renamed.csv").write_text(renamed)
    lines = told(capsys, tmp_path, "renamed.csv", "--weight", "weight", "--drop", "id")
    assert "  the columns have other names than those it was made for: 'cream' in place of 'soap'" in lines
    assert lines[-1] == "  the values match the data it was made for; the names of the columns differ"
    (tmp_path / "other.csv").write_text(Trial.TEXT.replace("6,35,", "6,36,"))
    lines = told(capsys, tmp_path, "other.csv", "--weight", "weight", "--drop", "id")
    assert lines[0].startswith("accepted: ")
    assert lines[-1] == "  this is not the data that it was made for, but the claim holds for it as well"
    (tmp_path / "false.csv").write_text(Trial.TEXT.replace("5,25,1,1,yes", "5,25,1,1,no"))
    lines = told(capsys, tmp_path, "false.csv", "--weight", "weight", "--drop", "id", code=1)
    assert lines[0].startswith("rejected: ")
    assert lines[1].startswith("  it claims that the data is quasi-completely separated")


def test_the_claim_counts_the_rows_that_are_left_out(tmp_path, capsys):
    """A certificate chooses the rules, and by its description the column of weights: its claim says how many rows that costs."""
    trial = Trial(tmp_path)
    words = " (for 5 of 7 rows; left out: 1 with a missing value, 1 of weight zero in column 'weight')"
    lines = told(capsys, tmp_path, "trial.csv")
    X, y, weights = trial.frame[["age", "soap"]], trial.frame.ill, trial.frame.weight
    found = gordan.verify(trial.found.certificate, X, y, weights)
    assert lines[0].endswith(words)
    assert str(found).splitlines()[0] == lines[0]
    unnamed = gordan.verify(trial.found.certificate, X, y, weights.to_numpy())
    assert unnamed.claim == found.claim.replace(" in column 'weight'", "")
    # weights of another column leave out the rows that contradict a separator
    (tmp_path / "forged.csv").write_text("x,w,y\n1,1,no\n2,1,yes\n3,0,no\n4,0,no\n5,1,yes\n")
    about = gordan.certificates.data.About(weight="w", columns=("x",))
    proof = gordan.Certificate("separator", "free", ("no", "yes"), (3, 1), w=(1.0,), b=-1.5)
    (tmp_path / "proof.json").write_text(replace(proof, about=about, dropped=("zero-weight",)).to_json())
    words = " (for 3 of 5 rows; left out: 2 of weight zero in column 'w')"
    assert told(capsys, tmp_path, "forged.csv")[0] == "accepted: the data is separable" + words


@pytest.mark.parametrize("described", [True, False])
def test_the_claim_counts_the_rows_of_label_0(tmp_path, capsys, described):
    X, y = [[-1.0], [0.0], [1.0], [2.0]], [-1, 0, 1, 1]
    proof = gordan.Certificate("separator", "free", (-1, 1), (4, 1), w=(1.0,), b=0.0)
    described_proof = replace(proof, data_hash=hash_for(proof, X, y) if described else None)
    (tmp_path / "proof.json").write_text(described_proof.to_json())
    (tmp_path / "three.csv").write_text("x,y\n" + "".join(f"{x},{label}\n" for (x,), label in zip(X, y, strict=True)))
    words = "(for 3 of 4 rows; left out: 1 with the label 0)"
    assert told(capsys, tmp_path, "three.csv")[0].endswith(words)
    found = gordan.verify(described_proof, X, y)
    assert found
    assert found.claim.endswith(words)


def test_a_closed_pipe_is_not_an_error(tmp_path):
    """As after `| head -0`: the exit code is the answer, and nothing is reported."""
    (tmp_path / "proof.json").write_text(gordan.separate([[1.0], [2.0]], [0, 1]).certificate.to_json())
    (tmp_path / "t.csv").write_text("a,y\n1,0\n2,1\n")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-I", standalone.__file__, str(tmp_path / "proof.json"), str(tmp_path / "t.csv")]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


NUMBERS = "a,b,y\n1,2,no\n\n3,4,yes\n5,6,no\n"
WRONG_CELLS = {
    "text": ("5,6", "5,six", "line 5, column 1 ('b'): the cell 'six' is not a finite number; see --decimal"),
    "empty": ("3,4", ",4", "line 4, column 0 ('a'): the cell '' is not a finite number; --missing drop leaves out such rows"),
    "infinite": ("3,4", "3,inf", "line 4, column 1 ('b'): the cell 'inf' is not a finite number"),
    "after a cell of two lines": ("1,2,no\n\n3,4,yes", '1,2,"n\no"\n\n3,x,yes', "line 5, column 1 ('b'): the cell 'x'"),
    "a field too many": ("3,4", "3,4,5", "line 4 has 4 fields; the header has 3"),
    "no label": ("4,yes", "4,", "line 4: the label is empty; every row needs a label"),
}


@pytest.mark.parametrize("name", WRONG_CELLS)
def test_what_is_wrong_in_a_table_is_named_by_line_and_column(name, tmp_path, capsys):
    X, y = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], ["no", "yes", "no"]
    (tmp_path / "proof.json").write_text(gordan.separate(X, y).certificate.to_json())
    (tmp_path / "t.csv").write_text(NUMBERS)
    assert standalone.main([str(tmp_path / "proof.json"), str(tmp_path / "t.csv")]) == 0
    before, after, message = WRONG_CELLS[name]
    (tmp_path / "t.csv").write_text(NUMBERS.replace(before, after))
    assert standalone.main([str(tmp_path / "proof.json"), str(tmp_path / "t.csv")]) == 2
    assert message in capsys.readouterr().err


def test_a_design_that_a_formula_made(tmp_path, capsys):
    """Its certificate is about no column of the table; both checkers say which file to ask for, and accept that."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("formulaic")
    frame = pandas.DataFrame({"age": [30.1, 41, 52, 33, 45, 37], "town": [*"AABBAA"], "ill": [*["no", "yes"] * 2, "no", "yes"]})
    frame.loc[frame.town == "B", "ill"] = "yes"
    d = gordan.diagnose("ill ~ age + town", data=frame)
    proof, table = tmp_path / "proof.json", tmp_path / "table.csv"
    proof.write_text(d.certificate.to_json())
    frame.to_csv(table, index=False)
    code = "d.X.assign(ill=d.y).to_csv('design.csv', index=False)"
    assert standalone.main([str(proof), str(table)]) == 2
    assert code in capsys.readouterr().err
    frame.drop(columns="town").to_csv(table, index=False)
    assert standalone.main([str(proof), str(table)]) == 1
    assert code in capsys.readouterr().out
    assert code in str(gordan.verify(d.certificate, frame[["age"]], frame.ill))
    design = str(tmp_path / "design.csv")
    eval(code.replace("'design.csv'", repr(design)), {"d": d})
    assert standalone.main([str(proof), design]) == 0
    out = capsys.readouterr().out
    assert "3 named columns ('Intercept', 'age', 'town[T.B]')" in out
    assert "the positive class is 'yes', the other one 'no'" in out
    assert out.rstrip().endswith(SAME)


WRONG = {
    "logistic": ([0, 1, 0, 1, 1, 1, 1], 5, 0),
    "multinomial": ([*"abcabcb"], 4, "a"),
    "ordinal": ([1, 2, 3, 1, 3, 3, 3], 5, 1),
    "poisson": ([1, 0, 2, 3, 0, 0, 0], 5, 1),
}


@pytest.mark.parametrize("model", WRONG)
def test_both_checkers_name_the_row_that_was_changed(model):
    """As it is in the data, also where a model makes several rows of it."""
    y, i, other = WRONG[model]
    X = [[1.0, 0], [2, 0], [3, 0], [4, 0], [2, 1], [3, 1], [1, 1]]
    certificate = gordan.diagnose(X, y, model=model).certificate
    assert both(certificate, X, y) == (True, True)
    y = [*y[:i], other, *y[i + 1 :]]
    reason = f"row {i} is on the wrong side"
    assert gordan.verify(certificate, X, y).reason == reason
    assert standalone.check(json.loads(certificate.to_json()), X, y) == (False, reason)


CLASSES = {
    "logistic": ([*"abab"], "the positive class is 'b', the other one 'a'"),
    "multinomial": ([*"abcab"], "its classes are 'a', 'b', 'c'; the first is the reference"),
    "ordinal": ([3, 7, 9, 11, 20, 3], "the order of its classes is 3 < 7 < 9 < 11 < …"),
    "poisson": ([0, 1, 0, 2], None),
}


@pytest.mark.parametrize("model", CLASSES)
def test_both_checkers_say_which_classes_it_is_about(model, tmp_path, capsys):
    y, words = CLASSES[model]
    X = np.arange(len(y), dtype=float)[:, None] % 3
    certificate = gordan.diagnose(X, y, model=model).certificate
    (tmp_path / "proof.json").write_text(certificate.to_json())
    np.savetxt(tmp_path / "t.csv", np.column_stack([X.astype(str), y]), fmt="%s", delimiter=",", header="x,y", comments="")
    lines = told(capsys, tmp_path, "t.csv")
    notes = str(gordan.verify(certificate, X, y)).splitlines()
    assert [line.replace("...", "…") for line in lines] == notes
    assert words is None or f"  {words}" in notes


SAME = "  everything that the claim depends on matches the data it was made for"


@pytest.mark.parametrize("model", ["logistic", "multinomial", "ordinal", "poisson"])
def test_the_data_of_every_model_is_recognised(model, tmp_path, capsys):
    """The hash is that of the package: for tables, svmlight and arrays, with zeros and without."""
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 3, size=(5000 if model == "logistic" else 30, 3)).astype(float)
    X[:, 0] += 0.5
    y = rng.integers(0, 2 if model == "logistic" else 3, len(X))
    certificate = gordan.diagnose(X, y, model=model).certificate
    (tmp_path / "proof.json").write_text(certificate.to_json())
    table = np.column_stack([X, y])
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header="a,b,c,y", comments="", fmt="%.17g")
    np.save(tmp_path / "t.npy", table)
    np.save(tmp_path / "f.npy", np.asfortranarray(table))
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    np.save(tmp_path / "y.npy", y)
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row) if v) for row, label in zip(X.tolist(), y, strict=True)
    ]
    (tmp_path / "t.svm").write_text("\n".join(lines))
    for name, *options in (("t.csv",), ("t.npy",), ("f.npy",), ("t.svm",), ("X.npy", "--labels", str(tmp_path / "y.npy"))):
        found = told(capsys, tmp_path, name, *options)
        assert found[0].startswith("accepted: the data ")
        assert found[-1] == SAME
    other_order = replace(certificate, classes=certificate.classes[::-1]) if model != "poisson" else certificate
    claim = standalone.Claim(json.loads(other_order.to_json()))
    rows, _, labels = claim.data(X.tolist(), y.tolist(), None)
    same = claim.hash_of(rows, labels) == claim.data_hash
    assert same == gordan.verify(other_order, X, y).same_data == (model == "poisson")
    table[0, 0] += 1
    np.save(tmp_path / "t.npy", table)
    assert standalone.main([str(tmp_path / "proof.json"), str(tmp_path / "t.npy")]) in (0, 1)
    assert capsys.readouterr().out.splitlines()[-1].startswith("  this is not the data that it was made for")
