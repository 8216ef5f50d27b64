"""Labels of every type, by every route: values and types come back as they were, or are refused by name."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from checkers import both
from commands import answer, run

import gordan
from gordan import InputError, MaxMarginClassifier
from gordan.io import Model

X = np.array([[0.0, 0.0], [1.0, 0.0], [10.0, 0.0], [11.0, 0.0], [5.0, 9.0], [5.0, 10.0]])  # each two rows apart from the rest
BIG = (5, 2**63 + 1, 2**63 + 3)
WORDS = ("a", "ß\n", "日本")


def three(labels, dtype=None):
    """Two rows of each of three labels."""
    return np.array([label for label in labels for _ in range(2)], dtype=dtype)


def series(labels, dtype):
    return pd.Series([label for label in labels for _ in range(2)], dtype=dtype)


def objects(*labels):
    y = np.empty(2 * len(labels), dtype=object)
    y[:] = [label for label in labels for _ in range(2)]
    return y


INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
# y, the labels as Python has them (None: refused by the functions), the type of classes_ (None: refused by the classifier)
LABELS = {
    **{name: (three(sorted((int(np.iinfo(name).min), 1, int(np.iinfo(name).max))), name), None, name) for name in INTEGERS[:4]},
    **{name: (three((0, 1, int(np.iinfo(name).max)), name), None, name) for name in INTEGERS[4:]},
    **{name: (three((-1.0, 2.0, 4.0), name), (-1.0, 2.0, 4.0), name) for name in ("float16", "float32", "float64")},
    "float32, not whole": (three((0.1, 0.2, 0.3), "f4"), tuple(map(float, np.array((0.1, 0.2, 0.3), "f4"))), None),
    "uint64 beside small ones": (three(BIG, np.uint64), BIG, "uint64"),
    "uint64 beyond int64 only": (three((2**63, 2**63 + 1, 2**64 - 1), np.uint64), (2**63, 2**63 + 1, 2**64 - 1), "uint64"),
    "another byte order": (three((1, 2, 300), ">i4"), (1, 2, 300), "int32"),
    "bool": (np.array([False] * 3 + [True] * 3), (False, True), "bool"),
    "text": (three(WORDS), WORDS, "<U2"),
    "text of a wider type": (three(WORDS, "U9"), WORDS, "<U9"),
    "text in objects": (objects(*WORDS), WORDS, "object"),
    "NumPy's text in objects": (objects(*map(np.str_, WORDS)), WORDS, "object"),
    "whole numbers in objects": (objects(3, 1, 2), (1, 2, 3), "int64"),
    "booleans in objects": (objects(True, False, True), (False, True), "bool"),
    "large whole numbers in objects": (objects(1, 2**70, -(2**200)), (-(2**200), 1, 2**70), None),
    "whole numbers and floats in objects": (objects(1, 2.5, True), (1.0, 2.5), None),
    "a list of whole numbers": ([3, 3, 1, 1, 2, 2], (1, 2, 3), "int64"),
    "a list of large whole numbers": ([2**63 + 1] * 2 + [5] * 2 + [7] * 2, (5, 7, 2**63 + 1), None),
    "a list of NumPy's numbers": (
        [np.uint8(3), np.uint8(3), np.uint8(1), np.uint8(1), np.uint8(2), np.uint8(2)],
        (1, 2, 3),
        "uint8",
    ),
    "categories of text": (pd.Categorical([word for word in WORDS for _ in range(2)]), WORDS, "object"),
    "categories of numbers": (pd.Series(pd.Categorical([2, 2, 1, 1, 3, 3])), (1, 2, 3), "int64"),
    "strings of pandas": (series(WORDS, "string"), WORDS, "object"),
}
for name in INTEGERS:
    values, _, dtype = LABELS[name]
    LABELS[name] = values, tuple(np.unique(values).tolist()), dtype
# nullable types of pandas: the functions keep whole numbers and booleans; scikit-learn makes floats of them, or refuses
NULLABLE = {
    "Int64": (series((3, 1, 2), "Int64"), (1, 2, 3)),
    "UInt64": (series(BIG, "UInt64"), BIG),
    "boolean": (pd.Series([False] * 3 + [True] * 3, dtype="boolean"), (False, True)),
    "Float64": (series((0.5, 1.5, 2.5), "Float64"), (0.5, 1.5, 2.5)),
}
REFUSED = {
    "bytes": three((b"a", b"b", b"c")),
    "dates": three(("2020-01-01", "2020-01-02", "2020-01-03"), "M8[D]"),
    "dates in nanoseconds": three((1, 2, 3), "M8[ns]"),
    "times": three((1, 2, 3), "m8[ns]"),
    "a column of dates": pd.Series(three((1, 2, 3), "M8[ns]")),
    "long floats": three((1, 2, 3), np.longdouble),
    "complex": three((1, 2, 3), complex),
    "text and numbers": objects("a", 1, 2),
    "too many bits": objects(1, 2**1023, 2),
    "dates in objects": objects(*(np.datetime64(k, "ns") for k in (1, 2, 3))),
    "bytes in objects": objects(b"a", b"b", b"c"),
    "pairs": objects((1, 2), (3, 4), (5, 6)),
    "text that ends in NUL": objects("a", "a\0", "b"),
}


def pairs(y):
    """(rows, two labels) for each two classes of y, in its order."""
    values = [*dict.fromkeys(np.asarray(y, dtype=object).tolist())]
    for i in range(len(values)):
        for j in range(i):
            rows = [k for k, label in enumerate(np.asarray(y, dtype=object)) if label in (values[i], values[j])]
            if len({*(label for label in np.asarray(y, dtype=object)[rows])}) == 2:
                yield rows


def some(y, rows):
    """These rows of labels, in the type that they have."""
    return [y[k] for k in rows] if isinstance(y, list) else y.iloc[rows] if isinstance(y, pd.Series) else y[rows]


@pytest.mark.parametrize("name", [*LABELS, *NULLABLE])
def test_labels_by_certificates(name):
    """Values and kinds of Python's labels: in the certificate, in its JSON, and for both checkers."""
    y, labels, *_ = (LABELS | NULLABLE)[name]
    seen = set()
    for rows in pairs(y):
        part = some(y, rows)
        certificate = gordan.separate(X[rows], part).certificate
        again = gordan.Certificate.from_json(certificate.to_json())
        assert again == certificate
        assert [type(label) for label in again.classes] == [type(label) for label in certificate.classes]
        seen |= {(type(label), label) for label in again.classes}
        assert gordan.verify(again, X[rows], part)
        plain = [labels[[*labels].index(label)] for label in np.asarray(part, dtype=object)]
        assert both(certificate, X[rows].tolist(), plain) == (True, True)
        assert not gordan.verify(again, X[rows], [labels[0]] * (len(rows) - 1) + ["other" if isinstance(labels[0], str) else 77])
    mixed = name == "whole numbers and floats in objects"  # of two whole ones none becomes a float
    assert {label for _, label in seen} == {*labels}
    assert mixed or seen == {(type(label), label) for label in labels}


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("name", [name for name, (_, _, dtype) in LABELS.items() if dtype is None])
def test_labels_that_the_classifier_refuses(name, multi_class):
    with pytest.raises(ValueError, match=r"Unknown label type|labels"), np.errstate(invalid="ignore"):
        MaxMarginClassifier(multi_class=multi_class).fit(X, LABELS[name][0])


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("name", [name for name, (_, _, dtype) in LABELS.items() if dtype is not None])
def test_labels_by_model_files(name, multi_class, tmp_path):
    """classes_ and predictions of a classifier that was saved: the same values in the same type."""
    y, labels, dtype = LABELS[name]
    model = MaxMarginClassifier(multi_class=multi_class)
    model.fit(X, y)
    model.save(tmp_path / "m.gordan")
    loaded = MaxMarginClassifier.load(tmp_path / "m.gordan")
    assert loaded.classes_.dtype == np.dtype(dtype) == model.classes_.dtype.newbyteorder("=")
    assert loaded.classes_.tolist() == model.classes_.tolist() == [*labels]
    assert [type(label) for label in loaded.classes_.tolist()] == [type(label) for label in labels]
    found = loaded.predict(X)
    assert found.dtype == loaded.classes_.dtype
    assert found.tolist() == np.asarray(y, dtype=object).tolist()
    loaded.save(tmp_path / "again.gordan")
    assert (tmp_path / "again.gordan").read_bytes() == (tmp_path / "m.gordan").read_bytes()
    plain = Model.load(tmp_path / "m.gordan")
    assert plain.classes == labels
    assert plain.labels(plain.scores(X)).tolist() == found.tolist()


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("name", REFUSED)
def test_labels_that_are_refused_everywhere(name, multi_class):
    y = REFUSED[name]
    with pytest.raises(InputError, match=r"labels|text|bits"):
        gordan.separate(X[:4], y[:4])
    with pytest.raises((ValueError, TypeError), match=r"[Ll]abel|[Cc]omplex|not supported between"):
        MaxMarginClassifier(multi_class=multi_class).fit(X, y)


FILES = {
    name: LABELS[name]
    for name in LABELS
    if LABELS[name][2] not in (None, "object") and getattr(LABELS[name][0], "dtype", "object") != "object"
}


@pytest.mark.parametrize("kind", ["csv", "npy"])
@pytest.mark.parametrize("name", FILES)
def test_labels_by_the_command_line(name, kind, tmp_path):
    """The JSON of separate, fit, predict and verify, of labels in text and in an array."""
    y, labels, dtype = FILES[name]
    y, file, options = np.asarray(y), tmp_path / f"t.{kind}", []
    if kind == "csv":
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).to_csv(file, index=False)
        labels = tuple(map(str, labels)) if isinstance(labels[0], bool) else labels
    else:
        np.save(file, X)
        np.save(tmp_path / "y.npy", y)
        options = ["--label", tmp_path / "y.npy"]
    model = tmp_path / "m.gordan"
    fitted = answer("fit", file, *options, "-o", model)
    assert fitted["classes"] == [*labels]
    assert [type(label) for label in fitted["classes"]] == [type(label) for label in labels]
    found = answer("predict", model, file, *options)
    assert found["labels"] == [labels[k] for k in np.unique(y, return_inverse=True)[1]]
    assert [type(label) for label in found["labels"]] == [type(labels[0])] * 6
    assert found["accuracy"] == 1
    assert kind == "csv" or Model.load(model).class_array().dtype == np.dtype(dtype)
    assert answer("verify", model, file, *options)["accepted"]
    if len(labels) > 2:
        proof = tmp_path / "c.json"
        for label in (labels[0], labels[-1]):  # each of them, also where floats do not tell it from others
            said = answer("separate", file, *options, "--positive", label, "--certificate", proof)
            assert said["classes"] == [False, True]
            assert run("verify", proof, file, *options, "--positive", label).exit_code == 0
            other = run("verify", proof, file, *options, "--positive", labels[1])
            assert other.exit_code == 1, other.output


def test_large_labels_of_text_files(tmp_path):
    """Whole numbers of 64 bits are read as they are; longer ones only where a float is the same."""
    file = tmp_path / "t.csv"
    for labels, read in (
        ((2**63 - 1, -(2**63)), [-(2**63), 2**63 - 1]),
        ((2**63, 5), [5, 2**63]),
        ((2**64 - 1, 2**64 - 2), [2**64 - 2, 2**64 - 1]),
        ((2**64, -1), [-1.0, 2.0**64]),
        ((2**63, -1), [-1.0, 2.0**63]),
        ((2**63 + 1, -1), None),
        ((2**64 + 1, 5), None),
        ((0.5, 2**53 + 1), None),
    ):
        file.write_text("x,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels)))
        if read is None:
            refused = run("separate", file)
            assert refused.exit_code == 2
            assert "cannot be represented in float64; put a letter before it" in refused.output
        else:
            assert answer("separate", file)["classes"] == read


def test_types_of_labels_that_no_model_can_have():
    """A type that does not hold the labels, is not one of labels, needs enormous memory, or is the one that they have anyway."""
    arrays = {"coef": np.ones((1, 2)), "intercept": np.zeros(1), "margins": np.ones((1, 2))}
    about = {"kind": "binary", "norm": 2.0, "nu": None, "intercept_kind": "free", "version": "0"}
    for classes, dtype in (
        ((1, 300), "uint8"),
        ((-1, 1), "uint64"),
        ((1, 2), "float32"),
        ((0.1, 2.0), "float32"),
        ((0.0, 1e300), "float16"),
        (("a", "bc"), "U1"),
        (("1", "2"), "int8"),
        ((False, True), "uint8"),
        ((1, 2), "int64"),
        ((1, 2**63), "uint64"),
        ((1.0, 2.0), "float64"),
        ((False, True), "bool"),
        (("a", "b"), "U1"),
        (("a", "b"), "U999999999"),
        (("a", "b"), "S1"),
        (("a", "b"), "M8[ns]"),
        (("a", "b"), "O"),
        (("a", "b"), "complex"),
        (("a", "b"), ""),
        (("a", "b"), 7),
    ):
        with pytest.raises(InputError, match=r"class_dtype of a model|too long"):
            Model(classes, **arrays, **about, class_dtype=dtype)
    long = Model(("a" * 200_000, "b"), **arrays, **about)  # as text, each of them would be as long
    assert long.class_array().dtype == object
    assert Model.from_bytes(long.to_bytes()).class_array().tolist() == ["a" * 200_000, "b"]
    with pytest.raises(InputError, match="more than 1023 bits"):
        Model((0, 10**5000), **arrays, **about)
    for classes, dtype, kind in (((1, 300), "uint16", "int uint16"), (("a", "b"), "object", "str object"), ((1, 2), None, "int")):
        model = Model(classes, **arrays, **about, class_dtype=dtype)
        assert model.class_array().tolist() == [*classes]
        again = Model.from_bytes(model.to_bytes())
        assert (again.classes, again.class_dtype) == (classes, dtype)
        assert f'"class_type":{json.dumps(kind)}'.encode() in model.to_bytes()


@pytest.mark.parametrize("kind", ["text", "booleans", "whole numbers", "chunks", "dictionary"])
def test_labels_in_arrays_of_pyarrow(kind):
    """They are those of lists; missing ones are named, and left out if asked for."""
    arrow = pytest.importorskip("pyarrow")
    labels = {"booleans": [False, True] * 3, "whole numbers": [1, 2] * 3}.get(kind, ["no", "yes"] * 3)
    make = arrow.chunked_array if kind == "chunks" else arrow.array

    def of(values):
        return make([values[:2], values[2:]]) if kind == "chunks" else make(values)

    y, lacking = of(labels), of([None, *labels[1:]])
    if kind == "dictionary":
        y, lacking = y.dictionary_encode(), lacking.dictionary_encode()
    certificate = gordan.separate(X, y).certificate
    assert certificate == gordan.separate(X, labels).certificate
    assert gordan.verify(certificate, X, y)
    model = gordan.LinearClassifier().fit(X, y)
    assert model.predict(X).tolist() == gordan.LinearClassifier().fit(X, labels).predict(X).tolist()
    assert model.classes_.tolist() == labels[:2]
    with pytest.raises(gordan.InputError, match=r"y\[0\] is (None|nan); every row needs a label"):
        gordan.separate(X, lacking)
    assert gordan.diagnose(X, lacking, missing="drop").kind == gordan.diagnose(X[1:], labels[1:]).kind
