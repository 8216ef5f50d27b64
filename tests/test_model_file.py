"""Model files: what is saved comes back bit for bit, and no byte can be changed, cut off or made up without a refusal."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gordan.errors import InputError
from gordan.io import Model, container
from gordan.io.container import ALIGNMENT, MAGIC, decode, encode
from gordan.io.model import FIELDS, Options, PlaneFacts, planes

PAGE = Path(__file__).parent.parent / "docs" / "files.md"
BINARY = Model(
    classes=("no", "yes"),
    coef=np.array([[1.5, -0.0, 1e-310]]),
    intercept=np.array([0.25]),
    kind="binary",
    margins=np.array([[0.5, np.inf]]),
    norm=2.0,
    nu=None,
    intercept_kind="free",
    version="0.1.0",
)


def model(classes, kind, d=2, **parts):
    k = planes(kind, len(classes))
    rng = np.random.default_rng(len(classes))
    base = replace(
        BINARY,
        classes=classes,
        kind=kind,
        coef=rng.standard_normal((k, d)),
        intercept=rng.standard_normal(k),
        margins=np.sort(rng.random((k, 2)), axis=1),
    )
    return replace(base, **parts)


MODELS = {
    "binary": BINARY,
    "integers": model((-1, 1), "binary"),
    "floats": model((0.1, 0.5, 1e300), "one-vs-rest", nu=0.25),
    "booleans": model((False, True), "binary", norm=np.inf, intercept_kind="none"),
    "all pairs": model(("a", "b", "ß", "日本"), "one-vs-one", names=("höhe", ""), norm=3.5),
    "certificates": model(("a", "b", "c"), "one-vs-rest", certificates=('{"x": 1}', "", "é" * 100), intercept_kind="penalized"),
    "huge integers": model((-(2**200), 2**200), "binary"),
    "many columns": model((0, 1), "binary", d=1000),
    "small integers": model((0, 1, 255), "one-vs-rest", class_dtype="uint8"),
    "text in objects": model(("a", "b"), "binary", class_dtype="object"),
    "facts": model(("a", "b", "c"), "one-vs-one", planes=(PlaneFacts(None, True), PlaneFacts(0.5, False), PlaneFacts(0.1, None))),
    "a loss": model((0, 1), "binary", estimator="LinearClassifier", loss="squared_hinge", C=0.1),
    "options": model(
        (0, 1, 2), "one-vs-rest", options=Options(1e-6, 5, np.inf, True, -3, True, (0.5, 1.0, 0.0), "é", "ovr", "warn")
    ),
    "few options": model((0, 1), "binary", options=Options(0.1)),
    "options of labels": model(("a", "b", "c"), "multilabel", options=Options(0.1, class_weight=(1.0, 2.0))),
}


def same(one, other):
    for part in fields(Model):
        ours, theirs = getattr(one, part.name), getattr(other, part.name)
        if isinstance(ours, np.ndarray):
            assert theirs.dtype == ours.dtype
            assert theirs.shape == ours.shape
            assert theirs.tobytes() == ours.tobytes()
        else:
            assert theirs == ours
            assert type(theirs) is type(ours)
    assert [type(label) for label in one.classes] == [type(label) for label in other.classes]


@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_comes_back(name, tmp_path):
    MODELS[name].save(tmp_path / "m.gordan")
    loaded = Model.load(tmp_path / "m.gordan")
    same(MODELS[name], loaded)
    loaded.save(tmp_path / "again.gordan")
    assert (tmp_path / "again.gordan").read_bytes() == (tmp_path / "m.gordan").read_bytes()
    assert not loaded.coef.flags.writeable


def test_the_layout_is_as_documented():
    """Read with struct, json and hashlib alone."""
    content = BINARY.to_bytes()
    assert content[:8] == b"\x89GORDAN\n"
    version, length = struct.unpack("<II", content[8:16])
    assert version == 1
    assert (16 + length) % 64 == 0
    whole = json.loads(content[16 : 16 + length])
    assert whole["header"]["classes"] == ["no", "yes"]
    assert [entry["name"] for entry in whole["arrays"]] == ["coef", "intercept", "margins"]
    for entry in whole["arrays"]:
        assert entry["offset"] % 64 == 0
        assert entry["dtype"] == "<f8"
        start, count = 16 + length + entry["offset"], int(np.prod(entry["shape"]))
        values = struct.unpack_from(f"<{count}d", content, start)
        assert list(values) == getattr(BINARY, entry["name"]).ravel().tolist()
    assert content[-32:] == hashlib.sha256(content[:-32]).digest()


# ---- damage ---------------------------------------------------------------------------------------------------------


def test_every_change_of_a_byte_is_refused():
    """Every byte of the file, every other value it could have."""
    content = BINARY.to_bytes()
    Model.from_bytes(content)
    spoilt, tried = bytearray(content), 0
    for place, byte in enumerate(content):
        for value in range(256):
            if value != byte:
                spoilt[place] = value
                with pytest.raises(InputError):
                    Model.from_bytes(bytes(spoilt))
                tried += 1
        spoilt[place] = byte
    assert tried == 255 * len(content)


def test_every_truncation_and_extension_is_refused(tmp_path):
    content = MODELS["certificates"].to_bytes()
    for length in range(len(content)):
        with pytest.raises(InputError):
            Model.from_bytes(content[:length])
    for more in (b"\0", b"x" * 64, content):
        with pytest.raises(InputError):
            Model.from_bytes(content + more)


# ---- forgery: the checksum is right, the content is not -------------------------------------------------------------


def signed(content):
    return content + hashlib.sha256(content).digest()


def forged(change, start=MAGIC, version=1, length=None):
    """The file of BINARY with `change` made to its JSON header, in a fitting layout, with a valid checksum."""
    content = BINARY.to_bytes()
    old = struct.unpack_from("<I", content, 12)[0]
    whole = json.loads(content[16 : 16 + old])
    changed = change(whole)
    text = changed if isinstance(changed, bytes) else json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-(16 + len(text)) % ALIGNMENT)
    head = start + struct.pack("<II", version, len(text) if length is None else length)
    return signed(head + text + content[16 + old : -32])


def at(*path, value=None, remove=False):
    """A change of one place in the header."""

    def change(whole):
        inside = whole
        for step in path[:-1]:
            inside = inside[step]
        if remove:
            del inside[path[-1]]
        else:
            inside[path[-1]] = value

    return change


def text(content):
    return lambda whole: content


# The options of a model as they are in a file.
WRITTEN = {part.name: None for part in fields(Options)} | {"tol": (0.1).hex(), "warm_start": False, "balanced": False}
NOTHING = lambda whole: None  # noqa: E731
FORGED = {
    "claims 10^14 numbers": forged(at("arrays", 0, "shape", value=[1, 10**14])),
    "claims more than can be counted": forged(at("arrays", 0, "shape", value=[2**40, 2**40])),
    "eight axes of 2^47": forged(at("arrays", 0, "shape", value=[2**47] * 8)),
    "a thousand axes": forged(at("arrays", 0, "shape", value=[1] * 1000)),
    "negative shape": forged(at("arrays", 0, "shape", value=[-1, 3])),
    "shape with a fraction": forged(at("arrays", 0, "shape", value=[1.0, 3])),
    "shape of booleans": forged(at("arrays", 0, "shape", value=[True, 3])),
    "shape is text": forged(at("arrays", 0, "shape", value="13")),
    "fewer numbers": forged(at("arrays", 0, "shape", value=[1, 2])),
    "offset elsewhere": forged(at("arrays", 1, "offset", value=0)),
    "offset far away": forged(at("arrays", 1, "offset", value=2**62)),
    "objects": forged(at("arrays", 0, "dtype", value="|O")),
    "another dtype": forged(at("arrays", 0, "dtype", value="<i8")),
    "a dtype that is a list": forged(at("arrays", 0, "dtype", value=["<f8"])),
    "big-endian": forged(at("arrays", 0, "dtype", value=">f8")),
    "a field of an array missing": forged(at("arrays", 0, "shape", remove=True)),
    "two arrays of one name": forged(at("arrays", 1, "name", value="coef")),
    "an array of another name": forged(at("arrays", 1, "name", value="b")),
    "a name that is a number": forged(at("arrays", 0, "name", value=1)),
    "arrays are no list": forged(at("arrays", value={})),
    "arrays missing": forged(at("arrays", remove=True)),
    "an array is null": forged(at("arrays", value=[None])),
    "header missing": forged(at("header", remove=True)),
    "header a list": forged(at("header", value=[])),
    "not JSON": forged(text(b"{")),
    "nested too deeply": forged(text(b"[" * 100_000)),
    "not UTF-8": forged(text(b'{"\xff": 1}')),
    "half a character": forged(at("header", "version", value="\ud800")),
    "NaN": forged(text(b'{"arrays":[],"header":{"x":NaN}}')),
    "an overflow": forged(text(b'{"arrays":[],"header":{"x":1e999}}')),
    "an integer of 5,000 digits": forged(text(b'{"arrays":[],"header":{"x":' + b"9" * 5000 + b"}}")),
    "a name twice": forged(text(b'{"arrays":[],"arrays":[],"header":{}}')),
    "header beyond the file": forged(NOTHING, length=2**32 - 1),
    "header shorter": forged(NOTHING, length=64),
    "layout 0": forged(NOTHING, version=0),
    "layout 2": forged(NOTHING, version=2),
    "another start": forged(NOTHING, start=b"\x89PNG\r\n\x1a\n"),
    "written in another way": forged(lambda whole: json.dumps(whole, indent=1, sort_keys=True).encode()),
    "a field missing": forged(at("header", "norm", remove=True)),
    "a field too many": forged(at("header", "extra", value=1)),
    "newer format": forged(at("header", "format", value="gordan-model-3")),
    "format a list": forged(at("header", "format", value=["gordan-model-1"])),
    "norm a number": forged(at("header", "norm", value=2)),
    "norm 1": forged(at("header", "norm", value=(1.0).hex())),
    "norm spelled otherwise": forged(at("header", "norm", value="0x1p1")),
    "norm nan": forged(at("header", "norm", value="nan")),
    "norm too large": forged(at("header", "norm", value="0x1p99999")),
    "nu 2": forged(at("header", "nu", value=(2.0).hex())),
    "nu spelled otherwise": forged(at("header", "nu", value=" 0x1.0000000000000p-1")),
    "one class": forged(at("header", "classes", value=["a"])),
    "three classes": forged(at("header", "classes", value=["a", "b", "c"])),
    "classes equal": forged(at("header", "classes", value=["a", "a"])),
    "classes of other type": forged(at("header", "classes", value=[0, 1])),
    "class type unknown": forged(at("header", "class_type", value="bytes")),
    "class type a list": forged(at("header", "class_type", value=["str"])),
    "class type with nothing behind it": forged(at("header", "class_type", value="str ")),
    "class type with two blanks": forged(at("header", "class_type", value="str  object")),
    "class type that the labels have anyway": forged(at("header", "class_type", value="str U3")),
    "class type too narrow": forged(at("header", "class_type", value="str U2")),
    "class type of numbers": forged(at("header", "class_type", value="str int8")),
    "class type that needs 8 GB": forged(at("header", "class_type", value="str U999999999")),
    "class type of records": forged(at("header", "class_type", value="str V8")),
    "kind unknown": forged(at("header", "kind", value="many")),
    "kind a list": forged(at("header", "kind", value=["binary"])),
    "kind of another number": forged(at("header", "kind", value="one-vs-rest")),
    "intercept unknown": forged(at("header", "intercept_kind", value="some")),
    "version a number": forged(at("header", "version", value=1)),
    "names too few": forged(at("header", "names", value=["a"])),
    "names of numbers": forged(at("header", "names", value=[1, 2, 3])),
    "names a text": forged(at("header", "names", value="abc")),
    "an estimator that is no name": forged(at("header", "estimator", value="a.b")),
    "an estimator that is a number": forged(at("header", "estimator", value=1)),
    "a loss that is not known": forged(at("header", "loss", value="zero_one")),
    "C 0": forged(at("header", "C", value=(0.0).hex())),
    "C a number": forged(at("header", "C", value=1)),
    "planes too many": forged(at("header", "planes", value=[{"nu": None, "separable": True, "objective": None}] * 2)),
    "planes no list": forged(at("header", "planes", value={"nu": None, "separable": True, "objective": None})),
    "planes empty": forged(at("header", "planes", value=[])),
    "planes false": forged(at("header", "planes", value=False)),
    "a plane with a field too many": forged(
        at("header", "planes", value=[{"nu": None, "separable": True, "objective": None, "w": 1}])
    ),
    "a plane that is a list": forged(at("header", "planes", value=[[None, True]])),
    "a plane of nu 2": forged(at("header", "planes", value=[{"nu": (2.0).hex(), "separable": None, "objective": None}])),
    **{
        f"a plane of objective {value}": forged(
            at("header", "planes", value=[{"nu": None, "separable": False, "objective": value}])
        )
        for value in (1, [], ["0x0.0p+0"], [(2.0).hex(), (1.0).hex()], [(-1.0).hex(), (1.0).hex()], [1.0, 2.0])
    },
    "a plane that is separable by 1": forged(at("header", "planes", value=[{"nu": None, "separable": 1, "objective": None}])),
    "the fields of an older format": forged(at("header", "format", value="gordan-model-1")),
    "certificates that are not there": forged(at("header", "certificates", value=True)),
    "certificates a number": forged(at("header", "certificates", value=0)),
    "places that are not there": forged(at("header", "places", value=True)),
    "places a number": forged(at("header", "places", value=0)),
    "options no record": forged(at("header", "options", value=[])),
    "options with too few fields": forged(at("header", "options", value={"tol": (0.1).hex()})),
    **{
        f"options with {name} {value!r}": forged(at("header", "options", value=WRITTEN | {name: value}))
        for name, value in (
            ("tol", 0.1),
            ("tol", (0.0).hex()),
            ("max_iter", -1),
            ("time_limit", "nan"),
            ("warm_start", 1),
            ("random_state", True),
            ("class_weight", "balanced"),
            ("class_weight", [(1.0).hex()]),
            ("class_weight", [(-1.0).hex(), (1.0).hex()]),
            ("class_weight", [(1.0).hex(), "inf"]),
            ("method", 1),
            ("method", "\ud800"),
            ("nu", None),
        )
    },
}


@pytest.mark.parametrize("content", FORGED.values(), ids=FORGED)
def test_forged_files(content, tmp_path):
    (tmp_path / "m.gordan").write_bytes(content)
    with pytest.raises(InputError, match=r"m\.gordan"):
        Model.load(tmp_path / "m.gordan")


def test_the_forger_can_write_a_valid_file():
    """Else the table above would show nothing."""
    assert forged(NOTHING) == BINARY.to_bytes()
    known = [{"nu": (0.5).hex(), "separable": False, "objective": [(1.5).hex(), (2.0).hex()]}]
    assert Model.from_bytes(forged(at("header", "planes", value=known))).planes == (PlaneFacts(0.5, False, (1.5, 2.0)),)

    def older(whole):
        for name in ("estimator", "planes", "places", "scaling", "label", "loss", "C", "options"):
            del whole["header"][name]
        whole["header"]["format"] = "gordan-model-1"

    same(Model.from_bytes(forged(older)), BINARY)
    same(Model.from_bytes(forged(at("header", "options", remove=True))), BINARY)  # as files were before they had options
    assert Model.from_bytes(forged(at("header", "options", value=WRITTEN))).options == Options(0.1)
    assert Model.from_bytes(forged(at("header", "version", value="9.9.9"))).version == "9.9.9"
    assert Model.from_bytes(forged(at("header", "class_type", value="str U4"))).class_array().dtype == "<U4"
    assert Model.from_bytes(forged(at("header", "norm", value=(3.0).hex()))).norm == 3


@pytest.mark.parametrize("what", ["not finite", "interval upside down"])
def test_forged_values(what):
    arrays = {"coef": BINARY.coef, "intercept": BINARY.intercept, "margins": BINARY.margins}
    header = json.loads(json.dumps(decode(BINARY.to_bytes(), "x")[0]))
    if what == "not finite":
        arrays["coef"] = np.array([[1.0, np.nan, 1.0]])
    else:
        arrays["margins"] = np.array([[2.0, 1.0]])
    with pytest.raises(InputError):
        Model.from_bytes(encode(header, arrays))


def test_bytes_between_the_arrays_must_be_zero():
    content = bytearray(BINARY.to_bytes()[:-32])
    place = len(content) - 16 - ALIGNMENT + 8  # behind the one intercept, before the margins
    assert content[place] == 0
    content[place] = 1
    with pytest.raises(InputError, match="canonical form"):
        Model.from_bytes(signed(bytes(content)))


@given(st.data())
def test_any_bytes(data):
    """Random headers with a valid start and checksum: an InputError, nothing else."""
    body = data.draw(
        st.one_of(st.binary(max_size=100), st.text('{}[]":,arysheopfdtn0123456789<f8 ', max_size=100).map(str.encode))
    )
    length = data.draw(st.one_of(st.just(len(body)), st.integers(0, 2**32 - 1)))
    for content in (body, MAGIC + body, signed(MAGIC + struct.pack("<II", 1, length) + body)):
        with pytest.raises(InputError):
            Model.from_bytes(content)


# ---- the messages, the file system, the container -------------------------------------------------------------------


def test_messages(tmp_path):
    path = tmp_path / "m.gordan"
    cases = {
        "bad magic number": b"hello",
        "cut short": MAGIC + b"\x01\0\0\0",
        "use a newer one": FORGED["layout 2"],
        "checksum is wrong": BINARY.to_bytes()[:-1] + b"\0",
        "requires": FORGED["claims 10^14 numbers"],
        r"can read \(format 'gordan-model-1' or 'gordan-model-2' expected, 'gordan-model-3' found\)": FORGED["newer format"],
    }
    for part, content in cases.items():
        path.write_bytes(content)
        with pytest.raises(InputError, match=part) as caught:
            Model.load(path)
        assert str(path) in str(caught.value)
    with pytest.raises(FileNotFoundError):
        Model.load(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        Model.load(tmp_path)


@pytest.mark.skipif(not PAGE.exists(), reason="the pages are not here: run the suite in a checkout of the repository")
def test_the_page_describes_every_field():
    """docs/files.md has a row for each field of the header, and no other."""
    table = PAGE.read_text(encoding="utf-8").partition("The `header` of a model:")[2].partition("\n\nFiles of 0.1")[0]
    named = [name for line in table.splitlines() if line.startswith("| `") for name in re.findall("`(\\w+)`", line.split("|")[1])]
    assert sorted(named) == sorted({*FIELDS, "format", "classes", "class_type"})


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.gordan"
    BINARY.save(path)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        MODELS["integers"].save(path)
    assert path.read_bytes() == BINARY.to_bytes()
    assert os.listdir(tmp_path) == ["m.gordan"]


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    (tmp_path / "link").symlink_to("no/w.gordan")
    for name in ("no/w.gordan", "link"):
        with pytest.raises(FileNotFoundError, match="cannot be written: No such file or directory") as caught:
            BINARY.save(tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
    with pytest.raises(IsADirectoryError) as caught:
        BINARY.save(tmp_path)
    assert caught.value.filename == str(tmp_path)


def test_links_and_pipes(tmp_path):
    """A link stays one, also where its file is not there yet; a pipe stays one; nothing is left beside them."""
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to("target")
    os.mkfifo(pipe)
    BINARY.save(link)
    assert link.is_symlink()
    assert (tmp_path / "target").read_bytes() == BINARY.to_bytes()
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    BINARY.save(pipe)
    assert os.read(reading, 1 << 16) == BINARY.to_bytes()
    os.close(reading)
    assert pipe.is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe", "target"]


def test_standard_output_that_goes_to_a_file(tmp_path):
    """What is printed before and after stays, as if a pipe had been written to."""
    program = "from gordan.io import write_atomic; print('before', flush=True); write_atomic('out', b'model\\n'); print('after')"
    with open(tmp_path / "out", "wb") as out:
        subprocess.run([sys.executable, "-c", program], stdout=out, cwd=tmp_path, check=True)
    assert (tmp_path / "out").read_text() == "before\nmodel\nafter\n"


BAD_MODELS = {
    "one class": {"classes": ("a",)},
    "classes of two types": {"classes": ("a", 1)},
    "booleans and integers": {"classes": (True, 2)},
    "nan as a class": {"classes": (0.0, float("nan"))},
    "infinite class": {"classes": (0.0, float("inf"))},
    "classes of NumPy": {"classes": (np.int64(0), np.int64(1))},
    "the same class twice": {"classes": ("a", "a")},
    "float32": {"coef": BINARY.coef.astype(np.float32)},
    "a list": {"coef": [[1.0, 2.0, 3.0]]},
    "coef a vector": {"coef": BINARY.coef[0]},
    "no columns": {"coef": np.zeros((1, 0))},
    "two planes": {"coef": np.ones((2, 3))},
    "two intercepts": {"intercept": np.ones(2)},
    "nan": {"intercept": np.array([np.nan])},
    "margins of one column": {"margins": np.ones((1, 1))},
    "lower nan": {"margins": np.array([[np.nan, 1.0]])},
    "lower negative": {"margins": np.array([[-1.0, 1.0]])},
    "norm below 2": {"norm": 1.5},
    "norm an integer": {"norm": 2},
    "nu 0": {"nu": 0.0},
    "names too many": {"names": ("a",) * 4},
    "certificates too many": {"certificates": ("{}",) * 2},
    "no classes": {"classes": None},
    "half a character": {"names": ("a", "b", "\ud800")},
    "half a character in a class": {"classes": ("a", "\udfff")},
}


@pytest.mark.parametrize("parts", BAD_MODELS.values(), ids=BAD_MODELS)
def test_what_is_no_model(parts):
    with pytest.raises(InputError):
        replace(BINARY, **parts)


def test_container_of_anything(tmp_path):
    arrays = {
        "empty": np.zeros((0, 3)),
        "number": np.array(7, dtype=np.int64),
        "swapped": np.arange(3, dtype=">i4"),
        "strided": np.arange(10, dtype=np.float32)[::3],
        "fortran": np.asfortranarray(np.arange(6, dtype=np.int8).reshape(2, 3)),
        "bytes": np.frombuffer(b"abc", np.uint8),
    }
    container.save(tmp_path / "c", {"t": 3, "x": 0.1, "nested": {"b": [1, None, "é"]}}, arrays)
    header, loaded = container.load(tmp_path / "c")
    assert header == {"t": 3, "x": 0.1, "nested": {"b": [1, None, "é"]}}
    assert list(loaded) == list(arrays)
    for name, array in arrays.items():
        assert loaded[name].shape == array.shape
        assert loaded[name].tolist() == array.tolist()
        assert loaded[name].dtype.byteorder in "<|="
    container.save(tmp_path / "c", {}, {})
    assert container.load(tmp_path / "c") == ({}, {})
    for bad in (np.array(["a"]), np.array([object()]), np.array([1j]), np.array([True])):
        with pytest.raises(InputError, match="a file can hold"):
            container.save(tmp_path / "c", {}, {"x": bad})
    with pytest.raises(ValueError):
        container.save(tmp_path / "c", {"x": float("nan")}, {})


def test_places_are_kept_and_checked():
    """One row of 2 + 2 + d + d numbers for a plane; d + 1 of them for a penalized intercept."""
    d = BINARY.coef.shape[1]
    for kind, length in {"free": 4 + 2 * d, "none": 4 + 2 * d, "penalized": 5 + 2 * d}.items():
        known = replace(BINARY, intercept_kind=kind, places=np.arange(float(length))[None])
        np.testing.assert_array_equal(Model.from_bytes(known.to_bytes()).places, known.places)
        for wrong in (np.zeros((1, length + 1)), np.zeros((2, length)), np.zeros((1, length), np.float32), "places"):
            with pytest.raises(InputError, match="places"):
                replace(known, places=wrong)
        for value in (np.nan, -1.0):
            with pytest.raises(InputError, match="two distances"):
                replace(known, places=np.full((1, length), value))
