"""The parts of `verify`: certificates as data, labels and rows as they are read, and the bounds that w and p prove."""

from __future__ import annotations

import enum
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from checkers import Distant, both, unchecked

import gordan
from gordan import InputError
from gordan.certificates import margins, standalone
from gordan.certificates import problem as problem_module
from gordan.certificates.data import FIELDS, KINDS, About
from gordan.certificates.margins import Margin, first_not_positive
from gordan.certificates.matrix import Matrix, Products
from gordan.certificates.problem import Problem, read_labels
from gordan.certificates.verify import CHECKS, Check, accepts, check, statement
from gordan.intercepts import Intercept
from gordan.rows.memory import Dense

INTERCEPTS = (Intercept.FREE, Intercept.NONE, Intercept.PENALIZED)
UP = math.nextafter(1.0, 2.0)
DOWN = math.nextafter(1.0, 0.0)


# ---- certificates as data -------------------------------------------------------------------------------------------

BRACKET = gordan.Certificate(
    "bracket", "free", (-0.5, 2.0), (3, 2), w=(0.5, -3), b=np.float64(0.25), rows=(0, 2), weights=(1.0, 1e-300), lower=0.125,
    upper=math.inf, norm=math.inf, nu=0.75, sample_weight=(1.0, 2, 0.0), data_hash="ab",
)  # fmt: skip
QUASI = gordan.Certificate(
    "quasi-separation", "none", ("no", "yes"), (3, 2), w=(3**50, -2), b=0, rows=(1,), weights=(2**1100,),
    about=About("d.csv", 12, "y", columns=("a", "ü")),
)  # fmt: skip


NOTHING = dict.fromkeys(("file", "size", "label", "weight", "positive", "columns", "version", "statement"))


def test_the_content_of_a_file():
    """Word for word: floats and integers in hexadecimal, labels as they are, but for floats; and back again."""
    assert json.loads(BRACKET.to_json()) == {
        "format": "gordan-certificate-2",
        "kind": "bracket",
        "intercept": "free",
        "classes": ["-0x1.0000000000000p-1", "0x1.0000000000000p+1"],
        "class_type": "float",
        "shape": [3, 2],
        "w": ["0x1.0000000000000p-1", "-0x1.8000000000000p+1"],
        "b": "0x1.0000000000000p-2",
        "rows": [0, 2],
        "weights": ["0x1.0000000000000p+0", (1e-300).hex()],
        "lower": "0x1.0000000000000p-3",
        "upper": "inf",
        "norm": "inf",
        "nu": "0x1.8000000000000p-1",
        "sample_weight": ["0x1.0000000000000p+0", "0x1.0000000000000p+1", "0x0.0p+0"],
        "data_hash": "ab",
        "model": "logistic",
        "about": None,
        "dropped": [],
        "robust": "0x0.0p+0",
        "robust_norm": "0x1.0000000000000p+1",
    }
    assert json.loads(QUASI.to_json()) == {
        "format": "gordan-certificate-2",
        "kind": "quasi-separation",
        "intercept": "none",
        "classes": ["no", "yes"],
        "class_type": "str",
        "shape": [3, 2],
        "w": [hex(3**50), "-0x2"],
        "b": "0x0",
        "rows": [1],
        "weights": [hex(2**1100)],
        "data_hash": None,
        "model": "logistic",
        "about": {**NOTHING, "file": "d.csv", "size": 12, "label": "y", "columns": ["a", "ü"]},
        "dropped": [],
    }
    for certificate in (BRACKET, QUASI, replace(BRACKET, classes=(False, True), upper=None, data_hash=None)):
        text = certificate.to_json()
        assert gordan.Certificate.from_json(text) == gordan.Certificate.from_json(text.encode()) == certificate
    assert [replace(QUASI, kind=kind, w=None, b=None).exact for kind in ("witness", "quasi-separation", "overlap")] == [True] * 3
    assert not BRACKET.exact
    assert not replace(BRACKET, kind="separator").exact


def test_defaults_of_a_certificate():
    plain = gordan.Certificate("bracket", "none", (0, 1), (2, 1))
    assert (plain.w, plain.b, plain.rows, plain.weights, plain.lower, plain.upper) == (None, None, (), (), None, None)
    assert (plain.norm, plain.nu, plain.sample_weight, plain.data_hash) == (2.0, None, None, None)
    assert Check(True, "a claim").reason == ""


ALLOWED = [
    {"w": None},
    {"b": None},
    {"b": 3},
    {"lower": None},
    {"upper": 1},
    {"nu": None},
    {"sample_weight": None},
    {"w": (np.float64(1.0), 2)},
    {"w": (2**1024 - 2**971, 0.0)},
    {"rows": (), "weights": ()},
    {"classes": (True, False)},
    {"classes": ("a", "b")},
    {"data_hash": None},
]
REFUSED = [
    *({name: None} for name in ("shape", "rows", "weights", "norm")),
    *({name: (1.0,)} for name in ("b", "lower", "upper", "norm", "nu")),
    *({name: 1.0} for name in ("shape", "w", "rows", "weights", "sample_weight")),
    *({name: [1.0]} for name in ("w", "weights", "sample_weight", "b")),
    *({name: True} for name in ("b", "lower", "upper", "norm", "nu")),
    *({name: (True, 1.0)} for name in ("w", "weights")),
    *({name: "1"} for name in ("b", "lower", "upper", "norm", "nu")),
    *({"w": (entry, 0.0)} for entry in (np.float32(1.0), "1", None, 1j)),
    {"weights": ("1", 1.0)},
    {"sample_weight": "abc"},
    {"classes": ([0], [1])},
    {"rows": (np.int64(0), 1)},
    {"rows": (0.0, 1)},
    {"shape": (3.0, 2)},
    {"shape": (3,)},
    {"shape": (3, 2, 1)},
    {"w": (2**1024 - 2**970, 0.0)},  # rounds beyond the largest float
    {"w": (2**53 + 1, 0.0)},  # between two floats
    {"sample_weight": (1.0, 2**53 + 1, 0.0)},
    {"data_hash": 5},
    {"w": (0.0, -(2**1024))},
    {"sample_weight": (1.0, 2**1024, 0.0)},
    {"upper": 2**1024},
    {"classes": (0,)},
    {"classes": (0, 1, 2)},
    {"classes": [0, 1]},
    {"classes": (0, "1")},
    {"classes": (0, 1.0)},
    {"classes": (None, None)},
    {"kind": "bracke"},
    {"intercept": "fre"},
    {"shape": (-2, 2)},
    {"rows": (-5, 0)},
    {"w": (math.nan, 0.0)},
    {"weights": (math.inf, 0.0)},
    *({name: math.nan} for name in ("b", "lower", "upper", "norm", "nu")),
    *({name: -math.inf} for name in ("b", "lower", "upper", "norm", "nu")),
    {"classes": (math.nan, 1.0)},
    {"classes": (0, 0)},
]


@pytest.mark.parametrize("change", ALLOWED, ids=str)
def test_valid_fields_are_accepted(change):
    assert gordan.Certificate.from_json(replace(BRACKET, **change).to_json()).kind == "bracket"


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: str(change)[:60])
def test_invalid_fields_are_refused_by_name(change):
    (name,) = change
    with pytest.raises(InputError, match=name):
        replace(BRACKET, **change)


def test_missing_and_unknown_fields_are_named():
    content = json.loads(BRACKET.to_json())
    content["more"] = content.pop("w")
    told = r"missing fields: \['w'\]; unknown fields: \['more'\]"
    with pytest.raises(InputError, match=told):
        gordan.Certificate.from_json(json.dumps(content))
    with pytest.raises(standalone.BadInput, match=told):
        standalone.check(content, [[1.0]], [0])


@pytest.mark.parametrize("change", [{"w": (1.0, 2)}, {"b": 0.0}, {"weights": (1.5,)}, {"weights": (np.float64(1),)}])
def test_integer_kinds_refuse_floats(change):
    with pytest.raises(InputError, match="an integer"):
        replace(QUASI, **change)
    assert replace(QUASI, weights=(2**2000,), w=(-(2**2000), 1)).exact
    for kind in ("witness", "overlap"):
        with pytest.raises(InputError, match="an integer"):
            gordan.Certificate(kind, "free", (0, 1), (2, 1), rows=(0, 1), weights=(0.5, 0.5))


ONE, TWO = "0x1.0000000000000p+0", "0x1.0000000000000p+1"
SPOILED = {
    "a float that is infinite": {"lower": "inf"},
    "w infinite": {"w": ["inf", ONE]},
    "weights infinite": {"weights": ["inf", ONE]},
    "nu infinite": {"nu": "inf"},
    "b infinite": {"b": "-inf"},
    "sample weight infinite": {"sample_weight": ["inf", ONE, ONE]},
    "upper NaN": {"upper": "nan"},
    "upper infinite below zero": {"upper": "-inf"},
    "norm NaN": {"norm": "nan"},
    "norm infinite below zero": {"norm": "-inf"},
    "decimal list": {"w": [0.5, 1.5]},
    "shape of one": {"shape": [3]},
    "shape below zero": {"shape": [3, -2]},
    "shape of floats": {"shape": [3.0, 2]},
    "w longer": {"w": [ONE] * 3},
    "sample weights longer": {"sample_weight": [ONE] * 4},
    "hash a number": {"data_hash": 5},
    "rows true": {"rows": [True, 2]},
    "labels of another type": {"class_type": "int"},
    "an unknown type": {"class_type": "complex"},
    "a type that is a list": {"class_type": ["float"]},
    "labels that are equal": {"classes": [ONE, ONE]},
    "labels that are both zero": {"classes": ["0x0.0p+0", "-0x0.0p+0"]},
    "a label that is NaN": {"classes": ["nan", ONE]},
    "three labels": {"classes": [ONE, TWO, "0x1.0000000000000p+2"]},
    "an intercept": {"intercept": "some"},
    "a label that is no text": {"classes": [1.0, 2.0]},
    "format 3": {"format": "gordan-certificate-3"},
    "format 1 with a field of format 2": {"format": "gordan-certificate-1"},
    "another model": {"model": "poisson"},
    "a part about with a date": {"about": {**NOTHING, "date": ""}},
    "a part about with a number": {"about": {**NOTHING, "file": 5}},
    "a size that is text": {"about": {**NOTHING, "size": "5"}},
    "a size below 0": {"about": {**NOTHING, "size": -5}},
    "columns that are text": {"about": {**NOTHING, "columns": "ab"}},
    "a column without name": {"about": {**NOTHING, "columns": ["a", None]}},
    "rows dropped by another rule": {"dropped": ["odd"]},
    "rows dropped by one rule twice": {"dropped": ["missing", "missing"]},
    "no more fields": {"also": 1},
    "a kind": {"kind": ["bracket"]},
}


@pytest.mark.parametrize("name", SPOILED)
def test_malformed_files_are_refused_by_both_checkers(name):
    with pytest.raises(InputError, match="certificate") as refused:
        gordan.Certificate.from_json(json.dumps(json.loads(BRACKET.to_json()) | SPOILED[name]))
    (field,) = SPOILED[name]
    assert field in str(refused.value) or field in ("format", "model", "class_type"), "the message names the field"
    with pytest.raises(standalone.BadInput):
        standalone.check(json.loads(BRACKET.to_json()) | SPOILED[name], [[0.0] * 2] * 3, [-0.5, 2.0, 2.0])


def float_spellings(x):
    """Other texts of which `float.fromhex` makes x, and some that it refuses."""
    text = x.hex()
    sign, digits, exponent = text[: x < 0], text[text.index("x") + 1 : text.index("p")], int(text[text.index("p") + 1 :])
    number = abs(x).as_integer_ratio()
    others = [
        *(f" {text}", f"{text} ", f"{text}\n", text.upper(), text.replace("0x", "0X"), f"+{text}", text.replace("0x", "")),
        *(f"{sign}0x0{digits}p{exponent:+d}", f"{sign}0x{digits}0p{exponent:+d}", f"{sign}0x{digits}p{exponent:+03d}"),
        *(f"{sign}0x{digits.rstrip('0')}p{exponent:+d}", f"{sign}0x{number[0]:x}p{1 - number[1].bit_length():+d}", str(x)),
        *(f"{sign}0x{digits}P{exponent:+d}", f"{sign}0x{digits}p {exponent}", f"{text[:6]}_{text[6:]}", text[::-1], ""),
    ]
    return [other for other in others if other != text]


def integer_spellings(m):
    """Other texts of which `int(_, 16)` makes m, and some that it refuses."""
    text, sign = hex(m), "-" if m < 0 else ""
    digits = text.lstrip("-")[2:]
    others = [
        *(f" {text}", f"{text}\t", text.upper(), f"+{text}", f"{sign}{digits}", f"{sign}0x0{digits}", f"{sign}0X{digits}"),
        *(f"{sign}0x_{digits}", f"{text[:-1]}_{text[-1:]}", str(m), m, float(m), "", "0x", text.replace("x", "o")),
        text.translate({ord("1"): "\uff11", ord("2"): "\uff12"}),  # digits of other scripts
    ]
    return [other for other in others if other != text]


INFINITE = ["Inf", "INF", "+inf", " inf", "infinity", "Infinity", "-inf", "-infinity", "nan", "NaN", "0x1p+1024", "1e999"]
SPELLINGS = [
    *(("lower", text) for text in float_spellings(BRACKET.lower)),
    *(("b", text) for text in float_spellings(-0.1)),
    *(("nu", text) for text in [0.75, True, *INFINITE, "inf"]),
    *(("upper", text) for text in [*float_spellings(1e300), *INFINITE, 2, True, math.pi]),
    *(("norm", text) for text in [*float_spellings(3.0), *INFINITE, 2]),
    *(("w", [ONE, text]) for text in float_spellings(-1.5)),
    *(("weights", [text, ONE]) for text in float_spellings(5e-324)),
    *(("sample_weight", [ONE, text, ONE]) for text in float_spellings(2.5)),
    *(("classes", [text, TWO]) for text in [*float_spellings(-0.5), 1, 0.5, "Infinity", "+inf", "nan"]),
]
WHOLE_SPELLINGS = [
    *(("w", [text, "-0x2"]) for text in integer_spellings(3**50)),
    *(("w", ["0x1", text]) for text in [*integer_spellings(-42), "-0x0", "-0"]),
    *(("b", text) for text in integer_spellings(0)),
    *(("weights", [text]) for text in integer_spellings(2**70 + 0x12)),
]


@pytest.mark.parametrize(
    ("certificate", "field", "value"),
    [*((BRACKET, *row) for row in SPELLINGS), *((QUASI, *row) for row in WHOLE_SPELLINGS)],
    ids=lambda part: part.kind if isinstance(part, gordan.Certificate) else ascii(part)[:40],
)
def test_a_number_has_one_spelling(certificate, field, value):
    """The one that is written, for both checkers; `float.fromhex` and `int` know many more."""
    plain = json.loads(certificate.to_json())
    assert plain[field] != value
    y = [*certificate.classes, certificate.classes[1]]
    with pytest.raises(InputError, match="malformed"):
        gordan.Certificate.from_json(json.dumps(plain | {field: value}))
    with pytest.raises(standalone.BadInput, match="malformed"):
        standalone.check(plain | {field: value}, [[0.0] * 2] * 3, y)


@pytest.mark.parametrize("x", [0.0, -0.0, 5e-324, -1.0, 1 / 3, 1.7976931348623157e308])
def test_floats_survive_the_file_to_the_last_bit(x):
    """Zero of both signs, subnormals and the largest float: as they were, to the last bit, and by both checkers."""
    text = replace(BRACKET, lower=x, b=-x, upper=math.inf, norm=math.inf).to_json()
    found = gordan.Certificate.from_json(text)
    assert (found.lower.hex(), found.b.hex()) == (x.hex(), (-x).hex())
    assert found.to_json() == text
    claim = standalone.Claim(standalone.read_certificate(text))
    assert (claim.lower, claim.b) == (Fraction(x), -Fraction(x))
    assert (claim.upper, claim.norm) == (None, None)


TEXT = BRACKET.to_json()
NOT_JSON = {
    "a name twice": TEXT.replace('"kind": "bracket"', '"kind": "bracket", "kind": "bracket"'),
    "an unknown name twice": TEXT.replace('"kind"', '"a": 1, "a": 1, "kind"'),
    "NaN": TEXT.replace('"upper": "inf"', '"upper": NaN'),
    "Infinity": TEXT.replace('"upper": "inf"', '"upper": Infinity'),
    "minus zero": TEXT.replace('"rows": [0, 2]', '"rows": [-0, 2]'),
    "a row with a leading zero": TEXT.replace('"rows": [0, 2]', '"rows": [00, 2]'),
    "a float for a row": TEXT.replace('"rows": [0, 2]', '"rows": [0, 2.0]'),
    "a power of ten for a row": TEXT.replace('"rows": [0, 2]', '"rows": [0, 2e0]'),
    "too many digits": TEXT.replace('"rows": [0, 2]', f'"rows": [0, {"9" * 5000}]'),
    "nested": TEXT.replace('"rows": [0, 2]', '"rows": ' + "[" * 100_000),
    "nested and closed": TEXT.replace('"rows": [0, 2]', '"rows": ' + "[" * 100_000 + "]" * 100_000),
    "something after the end": TEXT + "x",
    "two objects": TEXT + TEXT,
    "a comma at the end": TEXT[:-1] + ",}",
    "a byte order mark": "\ufeff" + TEXT,
    "single quotes": TEXT.replace('"', "'"),
    "nothing": "",
}


@pytest.mark.parametrize("name", NOT_JSON)
def test_json_is_read_strictly(name, tmp_path, capsys):
    """The same by both: as text, as bytes, and as a file."""
    text = NOT_JSON[name]
    assert text != TEXT
    for content in (text, text.encode()):
        with pytest.raises(InputError, match="certificate"):
            gordan.Certificate.from_json(content)
    with pytest.raises(standalone.BadInput):
        standalone.check(standalone.read_certificate(text), [[0.0] * 2] * 3, [-0.5, 2.0, 2.0])
    (tmp_path / "c.json").write_text(text, encoding="utf-8")
    (tmp_path / "d.csv").write_text("a,b,y\n0,0,-0.5\n0,0,2\n0,0,2\n")
    assert standalone.main([str(tmp_path / "c.json"), str(tmp_path / "d.csv")]) == 2
    assert capsys.readouterr().err.startswith("bad input: ")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1"])
def test_certificates_are_in_utf_8(encoding, tmp_path, capsys):
    text = TEXT.replace('"ab"', '"\xe9"')
    (tmp_path / "c.json").write_bytes(text.encode(encoding))
    (tmp_path / "d.csv").write_text("a,b,y\n0,0,-0.5\n0,0,2\n0,0,2\n")
    with pytest.raises(InputError, match="this is not a certificate"):
        gordan.Certificate.from_json((tmp_path / "c.json").read_bytes())
    assert standalone.main([str(tmp_path / "c.json"), str(tmp_path / "d.csv")]) == 2
    assert capsys.readouterr().err.startswith(f"bad input: {tmp_path / 'c.json'}: ")
    (tmp_path / "c.json").write_text(text, encoding="utf-8")
    assert gordan.Certificate.from_json((tmp_path / "c.json").read_bytes()).data_hash == "\xe9"
    assert standalone.main([str(tmp_path / "c.json"), str(tmp_path / "d.csv")]) == 1


# as 0.1.0 wrote them: `separate`, `maximize_margin` with nu, weights and norms, and `diagnose`
OLD = json.loads((Path(__file__).parent / "certificates_of_0_1.json").read_text())


@pytest.mark.parametrize("old", OLD, ids=lambda old: old["certificate"]["kind"])
def test_certificates_of_the_first_version_are_read(old):
    """They are accepted by both checkers as they are, and as this version writes them; a foreign field is refused."""
    text = json.dumps(old["certificate"])
    certificate = gordan.Certificate.from_json(text)
    assert json.loads(certificate.to_json())["format"] == "gordan-certificate-2"
    assert both(certificate, old["X"], old["y"]) == (True, True)
    assert gordan.verify(certificate, old["X"], old["y"])
    assert standalone.check(standalone.read_certificate(text), old["X"], old["y"])[0]
    if certificate.kind not in ("separator", "bracket"):
        for change in ({"lower": ONE}, {"norm": ONE}, {"nu": ONE}, {"sample_weight": []}):
            spoiled = {**old["certificate"], **change}
            with pytest.raises(InputError):
                gordan.Certificate.from_json(json.dumps(spoiled))
            with pytest.raises(standalone.BadInput):
                standalone.check(spoiled, old["X"], old["y"])


def test_every_kind_has_a_check_in_both_checkers():
    assert set(CHECKS) == set(KINDS) == set(standalone.KINDS)
    for kind in KINDS:
        names = {part.name for part in FIELDS if kind in part.metadata["spec"].kinds}
        assert names == {name for name, (_, _, kinds) in standalone.FIELDS.items() if kind in kinds}


# ---- labels and rows ------------------------------------------------------------------------------------------------


class Column:
    """What frames have in common."""

    def to_numpy(self):
        return np.array([3, 1, 3])


class Colour(enum.IntEnum):
    RED = 3
    BLUE = 5


LABELS = {
    "whole numbers": ([3, 1, 3], [1, 3], [1, 0, 1]),
    "an array": (np.array([3, 1, 3], dtype=np.uint8), [1, 3], [1, 0, 1]),
    "floats": (np.array([0.5, -0.5, 0.5]), [-0.5, 0.5], [1, 0, 1]),
    "half precision": (np.array([0.5, -0.5, 0.5], dtype=np.float16), [-0.5, 0.5], [1, 0, 1]),
    "booleans": ([True, False, True], [False, True], [1, 0, 1]),
    "text": (("b", "a", "b"), ["a", "b"], [1, 0, 1]),
    "a column": (np.array([[3], [1], [3]]), [1, 3], [1, 0, 1]),
    "a line": (np.array([[3, 1, 3]]), [1, 3], [1, 0, 1]),
    "booleans and numbers": ([True, 0, 1], [0, 1], [1, 0, 1]),
    "numbers of two kinds": ([1, 0.5, True], [0.5, 1.0], [1, 0, 1]),
    "what an Enum stands for": ([Colour.BLUE, Colour.RED, Colour.BLUE], [3, 5], [1, 0, 1]),
    "NumPy's numbers": ([np.int8(3), np.float32(0.5), np.int64(3)], [0.5, 3.0], [1, 0, 1]),
    "large numbers": ([2**1023 - 1, -(2**1023) + 1, 2**1023 - 1], [-(2**1023) + 1, 2**1023 - 1], [1, 0, 1]),
    "a column of a frame": (Column(), [1, 3], [1, 0, 1]),
    "NumPy's text": (np.array(["b", "a", "b"], dtype=object), ["a", "b"], [1, 0, 1]),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_read(name):
    y, distinct, which = LABELS[name]
    found, places = read_labels(y, 3)
    assert found == distinct
    assert [type(label) for label in found] == [type(label) for label in distinct]
    assert np.asarray(places).tolist() == which


BAD_LABELS = {
    "masked": (np.ma.masked_array([1, 2, 3], mask=[False, True, True]), "y[1] is masked"),
    "NaN": (np.array([1.0, math.nan, math.nan]), "y[1] is nan"),
    "NaN in a list": ([1.0, 0.0, math.nan], "y[2] is nan"),
    "None": ([1, None, 2], "y[1] is None; every row needs a label"),
    "NA": ([1, 2, pd.NA], "y[2] is <NA>; every row needs a label"),
    "NaT": ([pd.NaT, 2, 1], "y[0] is NaT; every row needs a label"),
    "dates": (np.array(["2020-01-01", "NaT", "2021-01-01"], dtype="M8[D]"), "y has labels of type datetime64[D]; use text"),
    "dates in nanoseconds": (np.array([1, 2, 1], dtype="M8[ns]"), "y has labels of type datetime64[ns]; use text"),
    "times": (np.array([1, 2, 1], dtype="m8[ns]"), "y has labels of type timedelta64[ns]; use text"),
    "dates in a list": ([np.datetime64(1, "ns"), np.datetime64(2, "ns"), np.datetime64(1, "ns")], "labels must be text"),
    "bytes": (np.array([b"a", b"b", b"a"]), "y has labels of type |S1; use text"),
    "bytes in a list": ([b"a", b"b", b"a"], "y[0] is b'a'; labels must be text"),
    "two columns": (np.ones((3, 2)), "its shape is (3, 2)"),
    "three dimensions": (np.ones((3, 1, 1)), "its shape is (3, 1, 1)"),
    "no dimension": (np.array(3), "its shape is ()"),
    "too few": ([1, 2], "X has 3 rows but y has 2 labels"),
    "too many": ([1, 2, 1, 2], "X has 3 rows but y has 4 labels"),
    "text and numbers": ([1, "a", 2], "mixes text and numbers"),
    "too large": ([1, 2**1023, 2], "y[1] is a number of 1024 bits"),
    "far below zero": ([1, -(2**1023), 2], "y[1] is a number of 1024 bits"),
    "long floats": (np.array([0.5, -0.5, 0.5], dtype=np.longdouble), "y has labels of type float"),
    "long floats in a list": ([np.longdouble(0.5), np.longdouble(1.5), np.longdouble(0.5)], "labels must be text"),
    "lists": ([[1], [2], [1, 2]], "labels must be text, numbers or booleans"),
    "complex": ([1j, 2j, 1j], "y[0] is 1j"),
}


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("end", ["least", "largest"])
def test_labels_that_can_be_counted_are_read_as_numpy_reads_them(dtype, end):
    info = np.iinfo(dtype)
    first = int(info.min) if end == "least" else int(info.max) - 255  # of the narrow types: over their whole range
    y = np.array([first + int(k) for k in np.random.default_rng(5).choice([0, 3, 4, 40, 255], 400)], dtype=dtype)
    found, places = read_labels(y, 400)
    expected, inverse = np.unique(y, return_inverse=True)
    assert found == expected.tolist()
    assert {*map(type, found)} == {int}
    assert np.array_equal(places, inverse)


@pytest.mark.parametrize("name", BAD_LABELS)
def test_labels_that_are_refused(name):
    y, message = BAD_LABELS[name]
    with pytest.raises(InputError) as caught:
        read_labels(y, 3)
    assert message in str(caught.value)


def test_classes_are_two():
    X = [[0.0], [1.0], [2.0]]
    for y, message in (([1, 1, 1], "one class only, 1;"), ([0, 1, 2], "y has 3 classes")):
        with pytest.raises(InputError, match=message):
            Problem.of(X, y)
    problem = Problem.of(X, ["b", "a", "b"])
    assert problem.classes == ("a", "b")
    assert problem.signs.tolist() == [1, -1, 1]
    assert problem.signs.dtype == np.int8
    assert problem.signs_for(("a", "b")).tolist() == [1, -1, 1]
    assert problem.signs_for(("b", "a")).tolist() == [-1, 1, -1]
    assert (problem.X.n, problem.X.d) == (3, 1)
    assert problem.nearby() is problem


def test_parts_of_problems_and_devices(monkeypatch):
    problem = Problem.of([[0.0, 5.0], [1.0, 6.0], [2.0, 7.0]], ["b", "a", "b"])
    part = problem.part(np.array([2, 1]))
    assert (part.X.n, part.X.d, part.signs.tolist(), part.classes) == (2, 2, [1, -1], ("a", "b"))
    assert [part.storage.row(i)[1].tolist() for i in range(2)] == [[2.0, 7.0], [1.0, 6.0]]
    assert part.storage.n == 2
    other = Problem.of([[1.0, 2.0]] * 2, [0, 1]).storage
    monkeypatch.setattr(problem_module, "nearby", lambda storage: other)
    near = problem.nearby()
    assert (near.X.n, near.X.d, near.X.storage, near.storage) == (2, 2, other, other)
    assert near.signs is problem.signs
    asked = []
    monkeypatch.setattr(problem_module, "stored", lambda X, device: asked.append(device) or other)
    Problem.of(None, [0, 1], "cuda")
    Problem.of(None, [0, 1])
    assert asked == ["cuda", None]


@pytest.mark.parametrize("storage", [np.array, sp.csr_array])
def test_entries_that_are_not_finite_are_named(storage):
    X = np.array([[1e308, 1e308], [1e308, 5.0]])
    Problem.of(storage(X), [0, 1]).require_finite()  # although the sum of all is not
    for value in (math.nan, math.inf, -math.inf):
        X[1, 1] = value
        with pytest.raises(InputError, match=rf"X\[1, 1\] is {value}"):
            Problem.of(storage(X), [0, 1]).require_finite()


@pytest.mark.parametrize(
    ("label", "text"),
    [
        *(("a", '"a"'), ("é", '"\\u00e9"'), (1, "1"), (True, "1"), (1.0, "1"), (-0.0, "0"), (0.5, "0x1.0000000000000p-1")),
        *((-7, "-7"), (math.inf, "inf"), (-math.inf, "-inf"), (2**200, str(2**200)), (2.0**80, str(2**80))),
    ],
)
def test_labels_in_the_hash(label, text):
    assert problem_module.class_text(label) == text


def test_the_hash_does_not_see_the_order_of_entries():
    data, indices, indptr = np.array([3.0, 1.0, 2.0]), np.array([2, 0, 1]), np.array([0, 2, 3])
    unsorted = Problem.of(sp.csr_array((data, indices, indptr), shape=(2, 3)), [1, 0])
    plain = Problem.of([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]], [1, 0])
    assert unsorted.hash("free") == plain.hash("free")
    assert plain.hash("free") != plain.hash("none")


def test_intercepts():
    for intercept in INTERCEPTS:
        assert Intercept.of(intercept) == intercept
    with pytest.raises(InputError, match="intercept is 'fre'; choose one of 'free', 'penalized', 'none'"):
        Intercept.of("fre")


# ---- what w and p prove ---------------------------------------------------------------------------------------------


def tail(scores, caps, mass):
    """The least Σ t_i s_i / mass over 0 ≤ t ≤ caps, Σt = mass."""
    total, left = Fraction(0), mass
    for score, cap in sorted(zip(scores, caps, strict=True)):
        part = min(cap, left)
        total, left = total + part * score, left - part
    return total / mass


def lowest_scores(seed, equal):
    """Scores that are equal, below zero, and of any size; weights; a mass of one row, of some, of all, and between; the mean."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        n = int(rng.integers(1, 9))
        scores = rng.integers(-3, 4, n) * 2.0 ** rng.integers(-3, 3)
        c = np.full(n, rng.uniform(0.5, 2)) if equal else rng.uniform(0, 2, n) + 1e-3
        for share in (0.01, 1 / n, 0.5, 0.999):
            mass = float(share * c.sum())
            yield scores, c, mass, tail([*map(Fraction, scores.tolist())], [*map(Fraction, c.tolist())], Fraction(mass))


@pytest.mark.parametrize("equal", [True, False])
def test_lower_bounds_on_the_mean_of_the_lowest_scores(equal):
    for lo, c, mass, exact in lowest_scores(8, equal):
        found = margins._tail_lower(lo, c, mass)
        assert Fraction(found) <= exact
        room = (1 + max(map(abs, lo.tolist()))) * (1 + sum(map(Fraction, c.tolist())) / Fraction(mass))
        assert exact - Fraction(found) <= Fraction(1, 10**14) * room
    assert margins._tail_lower(np.array([1.0, 2.0]), np.ones(2), 0.0) == -math.inf
    assert margins._tail_lower(np.array([1.0, 2.0]), np.ones(2), -1.0) == -math.inf
    assert margins._tail_lower(np.array([-math.inf, 2.0]), np.ones(2), 1.5) == -math.inf
    assert margins._tail_lower(np.array([-math.inf, 2.0]), np.array([1.0, 2.0]), 1.5) == -math.inf
    assert margins._tail_lower(np.array([1.0, 2.0]), np.array([1.0, 0.0]), 0.5) == pytest.approx(1.0, rel=1e-14)
    # weights whose sum, one after the other, never gets beyond the first
    c = np.array([1.0, *[2.0**-53] * 4])
    assert margins._tail_lower(np.arange(1.0, 6.0), c, float(np.nextafter(1.0, 2.0))) == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("equal", [True, False])
def test_upper_bounds_on_the_mean_of_the_lowest_scores(equal):
    """The mean of the lowest scores, from above and sharp; and a score up to which there are enough rows for their mass."""
    for hi, c, mass, exact in lowest_scores(9, equal):
        level, mean = margins._tail_upper(hi, c, mass)
        if math.isinf(level):  # the mass is that of all rows, up to rounding
            assert mass > (1 - 1e-14) * c.sum()
            continue
        assert exact <= Fraction(mean) <= exact + Fraction(1, 10**14) * (1 + max(map(abs, hi.tolist())))
        assert sum(map(Fraction, c[hi <= level].tolist())) >= Fraction(mass)
        assert sum(map(Fraction, c[hi < level].tolist())) <= Fraction(mass) * (1 + Fraction(1, 10**14))
    assert margins._tail_upper(np.array([3.0, -2.0]), np.ones(2), 0.0) == (-2.0, -2.0)
    for hi, c, mass in (
        ([1.0, 2.0], [1.0, 1.0], 3.0),
        ([1.0, math.inf], [1.0, 1.0], 1.5),
        ([1.0, 2.0], [1e308, 1e308], math.inf),
    ):
        assert margins._tail_upper(np.array(hi), np.array(c), mass) == (math.inf, math.inf)
    assert margins._tail_upper(np.array([-1e308, 1e308]), np.ones(2), 1.5) == (1e308, math.inf)


POINTS = [[1.0, 0.0], [3.0, 4.0], [-2.0, 0.0], [-1.0, -4.0]]  # A_i·(1, 0) is 1, 3, 2, 1 with the signs below
SIGNS = np.array([1, 1, -1, -1], dtype=np.int8)


def margin_of(X=POINTS, signs=SIGNS, **options):
    X = np.asarray(X, dtype=np.float64)
    intercept = Intercept(options.pop("intercept", "free"))
    return Margin(Matrix(Dense(X)), np.asarray(signs, dtype=np.int8), intercept, **options)


def test_groups_and_weights():
    assert [group.tolist() for group in margin_of().groups] == [[0, 1], [2, 3]]
    for intercept in ("none", "penalized"):
        assert [group.tolist() for group in margin_of(intercept=intercept).groups] == [[0, 1, 2, 3]]
    assert margin_of().c.tolist() == [1.0] * 4
    weighed = margin_of(weights=np.array([0.0, 2.0, 1.0, 0.0]))
    assert weighed.c.tolist() == [0, 2, 1, 0]
    assert [group.tolist() for group in weighed._weighted_groups] == [[1], [2]]
    assert (margin_of(intercept="penalized")._b_in_norm(3.0), margin_of()._b_in_norm(3.0)) == (3.0, 0.0)


NO_MARGIN = {
    "norm below 1": ({"norm": 0.999}, "its norm is 0.999"),
    "norm NaN": ({"norm": math.nan}, "its norm is nan"),
    "a weight below zero": ({"weights": np.array([1.0, -1e-300, 1, 1])}, "negative or not finite"),
    "a weight that is infinite": ({"weights": np.array([1.0, math.inf, 1, 1])}, "negative or not finite"),
    "a weight that is NaN": ({"weights": np.array([1.0, math.nan, 1, 1])}, "negative or not finite"),
    "nu of zero": ({"nu": 0.0}, "nu is 0.0"),
    "nu above one": ({"nu": UP, "intercept": "none"}, "no p is allowed"),
    "nu above one of nothing": ({"nu": 1.5, "intercept": "none", "weights": np.zeros(4)}, "no p is allowed"),
    "nu beyond a class": ({"nu": 0.75, "weights": np.array([1.0, 0, 1, 1])}, "no p is allowed"),
}


@pytest.mark.parametrize("name", NO_MARGIN)
def test_reasons_for_infeasible_margins(name):
    options, reason = NO_MARGIN[name]
    assert reason in margin_of(**options).infeasibility_reason()


@pytest.mark.parametrize(
    "options",
    [{}, {"norm": 2.0}, {"norm": math.inf}, {"nu": 1.0}, {"nu": 5e-324}, {"nu": 2 / 3, "weights": np.array([1.0, 0, 1, 1])}],
)
def test_feasible_margins(options):
    assert margin_of(**options).infeasibility_reason() == ""


ALLOWS = [
    ({}, [1.0, 0, 0, 1], True),
    ({}, [0.0, 0, 0, 0], True),
    ({}, [1.0, -1e-300, 0, 1], False),
    ({}, [1.0, math.nan, 0, 1], False),
    ({}, [1.0, math.inf, 0, 1], False),
    ({"weights": np.array([1.0, 0, 1, 1])}, [1.0, 0, 0, 1], True),
    ({"weights": np.array([1.0, 0, 1, 1])}, [1.0, 1e-300, 0, 1], False),
    ({"nu": 0.5}, [1.0, 0, 0, 1], True),
    ({"nu": 0.5}, [1.0, 0, 0, DOWN], False),  # half of ν·4 is 1 in each class
    ({"nu": 0.5}, [UP, 0, 0, 1], False),
    ({"nu": 0.5, "intercept": "none"}, [1.0, 1, 0, 0], True),
    ({"nu": 0.5, "intercept": "none"}, [1.0, DOWN, 0, 0], False),
    ({"nu": 0.5}, [1.0, 1, 0, 0], False),
]


@pytest.mark.parametrize(("options", "p", "allowed"), ALLOWS)
def test_allowed_weights(options, p, allowed):
    margin = margin_of(**options)
    assert margin.allows(np.array(p)) == allowed
    if not allowed:
        assert margin.upper(np.array(p)) == math.inf
        assert not margin.proves_upper(1e300, np.array(p))


def test_a_class_without_weight_proves_nothing():
    for p in ([1.0, 0, 0, 0], [0.0, 0, 0, 0]):
        assert margin_of().upper(np.array(p)) == math.inf
        assert not margin_of().proves_upper(1e300, np.array(p))
    assert margin_of(intercept="none").upper(np.zeros(4)) == math.inf
    assert margin_of(intercept="none").upper(np.array([1.0, 0, 0, 0])) == pytest.approx(1.0, rel=1e-14)


LOWEST = [
    # options, w, b, γ that w proves
    ({}, (1.0, 0.0), 0.0, 1.0),
    ({}, (1.0, 0.0), 77.0, 1.0),
    ({"intercept": "none"}, (1.0, 0.0), 77.0, 1.0),
    ({"intercept": "none"}, (4.0, 0.0), 0.0, 1.0),
    ({"intercept": "none", "norm": math.inf}, (1.0, 0.0), 0.0, 1.0),
    ({"intercept": "none", "norm": math.inf}, (2.0, 0.5), 0.0, 2 / 2.5),
    ({"intercept": "penalized"}, (3.0, 0.0), 0.0, 1.0),
    ({"intercept": "penalized"}, (12.0, 0.0), 5.0, 7 / 13),
    ({"intercept": "penalized", "norm": math.inf}, (3.0, 0.0), -1.0, 2 / 4),
    ({"intercept": "none", "weights": np.array([0.0, 1, 1, 0])}, (1.0, 0.0), 0.0, 2.0),
    ({"weights": np.array([0.0, 1, 1, 0])}, (1.0, 0.0), 0.0, 2.5),
    ({"nu": 1.0}, (1.0, 0.0), 0.0, 1.75),
    ({"nu": 0.75}, (1.0, 0.0), 0.0, ((1 + 1.5) / 1.5 + (1 + 1) / 1.5) / 2),
    ({"nu": 0.75, "intercept": "none"}, (1.0, 0.0), 0.0, 4 / 3),
    ({"nu": 0.5, "intercept": "none", "weights": np.array([2.0, 1, 1, 0])}, (1.0, 0.0), 0.0, 1.0),
    ({"intercept": "none"}, (-1.0, 0.0), 0.0, 0.0),
    ({"intercept": "none"}, (0.0, 0.0), 0.0, 0.0),
    ({"intercept": "none"}, (0.0, 1.0), 0.0, 0.0),
    ({"intercept": "none", "weights": np.zeros(4)}, (1.0, 0.0), 0.0, 0.0),
]


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize(("options", "w", "b", "proved"), LOWEST)
def test_lower_bounds_in_closed_form(options, w, b, proved, exactly):
    margin = margin_of(**options)
    found = margin.lower(np.array(w), b, exactly=exactly)
    assert found <= proved * (1 + 1e-15)
    assert found >= proved * (1 - 1e-12)
    assert proved == 0 or margin.proves_lower(proved * (1 - 1e-15), np.array(w), b)
    assert not margin.proves_lower(proved * (1 + 1e-15) + 5e-324, np.array(w), b)
    assert exactly or proved == 0 or margin.lower(np.array(w), b, slack=100.0) < found
    assert margin.lower(np.array(w), b, exactly=exactly, slack=1.0) == found


UPPERS = [
    ({"intercept": "none"}, [1.0, 0, 0, 0], 1.0),
    ({"intercept": "none"}, [0.0, 0.125, 0, 0], 5.0),
    ({"intercept": "none"}, [1.0, 0, 3.0, 0], 1.75),
    ({"intercept": "none", "norm": math.inf}, [0.0, 2.0, 0, 0], 4.0),
    ({"intercept": "penalized", "norm": math.inf}, [0.0, 2.0, 0, 0], 4.0),
    ({"intercept": "penalized"}, [1.0, 0, 1.0, 0], 1.5),
    ({}, [1.0, 0, 9.0, 0], 1.5),
    ({"norm": math.inf}, [0.0, 7.0, 9.0, 0], 2.5),
]


@pytest.mark.parametrize(("options", "p", "proved"), UPPERS)
def test_upper_bounds_in_closed_form(options, p, proved):
    """‖Aᵀp‖ over the mass, in closed form; exactly that is proved in fractions, the next float below it is not."""
    margin, p = margin_of(**options), np.array(p)
    for scale in (1.0, 1e300, 1e-300):
        assert proved <= margin.upper(p * scale) <= proved * (1 + 1e-12)
    assert margin.upper(p, slack=1e6) > margin.upper(p) == margin.upper(p, slack=1.0)
    assert margin.proves_upper(proved, p)
    assert not margin.proves_upper(math.nextafter(proved, 0.0), p)
    assert not margin.proves_upper(-proved, p)


def test_upper_bounds_with_a_penalized_intercept():
    """The constant column counts: |(1, 0, 1)| for the first row alone."""
    margin = margin_of(intercept="penalized")
    assert margin.upper(np.array([1.0, 0, 0, 0])) == pytest.approx(math.sqrt(2), rel=1e-13)
    assert margin.proves_upper(1.4142135623730952, np.array([1.0, 0, 0, 0]))
    assert not margin.proves_upper(1.414213562373095, np.array([1.0, 0, 0, 0]))


@pytest.mark.parametrize("norm", [2.0, 3.0, math.inf])
def test_zero_is_proved_whatever_the_norm(norm):
    assert margin_of([[0.0, 0.0], [0.0, -0.0]], [1, -1], norm=norm).proves_upper(0.0, np.ones(2))
    margin = margin_of([[1.0, 2.0], [1.0, 2.0]], [1, -1], norm=norm)
    assert margin.proves_upper(0.0, np.ones(2))
    assert not margin.proves_upper(-5e-324, np.ones(2))
    assert not margin_of([[1.0, 2.0], [1.0, 2.5]], [1, -1], norm=norm).proves_upper(0.0, np.ones(2))


def test_exact_proofs_look_at_all_rows_that_matter(monkeypatch):
    """However many are lowest, or have weight: where rows are brought from elsewhere, some at a time."""
    monkeypatch.setattr(margins, "MOST_EXACT_ROWS", 2)
    X, signs, w = np.array([[1.0], [1.0], [1.0], [2.0]]), [1] * 4, np.ones(1)
    for rows in (Dense(X), Distant(X)):
        margin = Margin(Matrix(rows), np.array(signs, dtype=np.int8), Intercept.NONE)
        products = Products.of(margin_of(X, signs).X, w)  # a pass over rows elsewhere is not the question
        margin.X._last["products"] = w, (w, products.length, products.sums, products.absolute, products.terms)
        margin.X._last["combination"] = np.full(4, 0.25), np.array([1.25])
        margin.X._last["norms"] = np.empty(0), np.array([1.0, 1.0, 1.0, 2.0])
        assert margin.proves_upper(1.25, np.ones(4))
        assert not margin.proves_upper(DOWN * 1.25, np.ones(4))
        assert margin.proves_lower(1.0, w, 0.0)
        assert not margin.proves_lower(UP, w, 0.0)
    assert 1 - 1e-14 < margin_of(X, signs, intercept="none").lower(w, 0.0, exactly=True) < 1


def test_lowest_scores_that_cancel_are_refined():
    """Scores of 1 that are differences of 1e17: enclosures are too wide to tell, integers are not."""
    X = [[1e17, 1.0, -1e17], [1e17, 2.0, -1e17], [-1e17, -1.0, 1e17], [5.0, -4.0, 0.0]]
    w = np.array([1.0, 1.0, 1.0])
    margin = margin_of(X, [1, 1, -1, 1], intercept="none")
    lower = margin.lower(w, 0.0)
    assert lower == pytest.approx(1 / math.sqrt(3), rel=1e-13)
    assert Fraction(lower) ** 2 * 3 <= 1
    assert margin_of(X, [1, 1, -1, 1], intercept="free").lower(w, 0.0) == pytest.approx(1 / math.sqrt(3), rel=1e-13)
    products = Products.of(margin.X, w)
    assert first_not_positive(products, 0.0, margin.signs) is None


@pytest.mark.parametrize("nu", [None, 0.75])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_large_entries_that_w_does_not_see(intercept, nu):
    """Enclosures by norms are too wide by ten digits; those by the entries that count are not."""
    X = [[1.0, 1e10], [2.0, -1e10], [-1.0, 1e10], [-4.0, 3e10]]
    margin = margin_of(X, intercept=intercept, nu=nu)
    lowest = {None: 1.0, 0.75: 4 / 3}[nu] if intercept != "free" or nu is None else (4 / 3 + 2) / 2
    for exactly in (False, True):
        found = margin.lower(np.array([0.5, 0.0]), 0.0, exactly=exactly)
        assert lowest * (1 - 1e-13) <= found <= lowest
    assert margin.lower(np.array([0.5, 0.0]), 0.0, slack=1000.0) < margin.lower(np.array([0.5, 0.0]), 0.0)


def test_weights_that_vanish_beside_others():
    """A weight that is nothing beside the largest is left out, not made larger; under caps it may not be left out."""
    for tiny in (1e-310, 5e-324):
        assert margin_of(intercept="none").upper(np.array([1.0, tiny, 0, 0])) == pytest.approx(1.0, rel=1e-13)
        assert margin_of().upper(np.array([1.0, tiny, 1.0, 0])) == pytest.approx(1.5, rel=1e-13)
        assert margin_of(intercept="none").upper(np.array([0.0, tiny, 0, 0])) == pytest.approx(5.0, rel=1e-13)
        capped = margin_of(intercept="none", nu=0.5, weights=np.array([1.0, tiny, 0, 0]))
        assert capped.upper(np.array([1.0, tiny, 0, 0])) == math.inf


def test_exact_proofs_prefetch_their_rows():
    """Where rows are elsewhere, exact scores and sums ask for theirs beforehand."""

    w, p = np.array([1.0, 0.0]), np.array([1.0, 0, 0, 1.0])
    for use, rows in (
        (lambda margin: margin.lower(w, 0.0, exactly=True), {0, 3}),
        (lambda margin: margin.proves_lower(1.0, w, 0.0), {0, 3}),
        (lambda margin: margin.proves_upper(9.0, p), {0, 3}),
        (lambda margin: first_not_positive(Products.of(margin.X, np.zeros(2)), 0.0, SIGNS) == 0, {0, 1, 2, 3}),
    ):
        held = Distant(np.array(POINTS))
        assert use(Margin(Matrix(held), SIGNS))
        assert held.brought == rows


WRONG = [
    ([[1.0], [-1.0], [0.0]], 0.0, 1),
    ([[1.0], [0.0], [-1.0]], 0.0, 2),  # one that is wrong beyond doubt comes before one on the plane
    ([[1.0], [0.0], [2.0]], 0.0, 1),
    ([[1.0], [2.0], [3.0]], 0.0, None),
    ([[1.0], [2.0], [3.0]], -1.0, 0),
    ([[1.0], [2.0], [3.0]], -DOWN, None),
    ([[1.0], [2.0], [5e-324]], 0.0, None),
    ([[1e17 + 16.0], [2e17], [3e17]], -1e17, None),
]


@pytest.mark.parametrize(("X", "b", "row"), WRONG)
def test_the_first_row_on_the_wrong_side(X, b, row):
    margin = margin_of(X, [1, 1, 1])
    assert first_not_positive(Products.of(margin.X, np.ones(1)), b, margin.signs) == row
    mirrored = margin_of([[-x] for (x,) in X], [-1, -1, -1])
    assert first_not_positive(Products.of(mirrored.X, np.ones(1)), -b, mirrored.signs) == row


TINY_SCORES = [
    ([1e-300, -1e-300], 0),  # exactly zero
    ([1e-300, -2e-300], -1),
    ([2e-300, -1e-300], 1),
    ([5e-324, 0.0], 1),
    ([-5e-324, 5e-324], 0),
]


@pytest.mark.parametrize(("row", "sign"), TINY_SCORES)
def test_scores_whose_products_underflow(row, sign):
    """x·w below the floats: decided by integers, whatever they are rounded to."""
    margin, w = margin_of([[1.0, 1.0], row], [1, 1], intercept="none"), np.full(2, 1e-300)
    assert first_not_positive(Products.of(margin.X, w), 0.0, margin.signs) == (None if sign > 0 else 1)
    flipped = margin_of([[1.0, 1.0], [-x for x in row]], [1, -1], intercept="none")
    assert first_not_positive(Products.of(flipped.X, w), 0.0, flipped.signs) == (None if sign > 0 else 1)
    separator = gordan.Certificate("separator", "none", (0, 1), (2, 2), w=(1e-300, 1e-300))
    assert bool(gordan.verify(separator, [[1.0, 1.0], [-x for x in row]], [1, 0])) == (sign > 0)


# ---- the checker ----------------------------------------------------------------------------------------------------

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
    with pytest.raises(InputError, match="certificate is dict; pass"):
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
