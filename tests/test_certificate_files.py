"""Certificates as data: their fields, the spelling of numbers, and files that both checkers refuse."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from checkers import both

import gordan
from gordan import InputError
from gordan.certificates import standalone
from gordan.certificates.data import FIELDS, KINDS, About
from gordan.certificates.verify import CHECKS, Check

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
