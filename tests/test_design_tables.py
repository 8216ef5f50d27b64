"""Data frames with missing values and weights, and tables that cannot be used."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import scipy.sparse as sp
from checkers import both
from test_designs import of, trial

import gordan
from gordan.certificates.verify import hash_for

pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'gordan[data]'")


@pytest.mark.parametrize("empty", [np.nan, None, "NA", "", "n/a", "pandas.NA"], ids=repr)
@pytest.mark.parametrize("where", ["X", "y"])
def test_missing_values_are_alike(empty, where):
    """A cell that is missing, however that is said, leaves its row out; both checkers apply the same rule."""
    empty = pandas.NA if empty == "pandas.NA" else empty
    X = pandas.DataFrame({"a": [1.0, 2.0, 3.0, 1.5, 2.5, 9.0], "b": [0, 0, 0, 1, 1, 1]}, dtype=object)
    y = pandas.Series(["no", "yes", "no", "yes", "yes", "no"], dtype=object, name="ill")
    (X.__setitem__("a", [*X["a"][:5], empty]) if where == "X" else y.__setitem__(5, empty))
    found = gordan.diagnose(X, y, missing="drop")
    assert (found.kind, found.rows, found.left_out) == ("quasi-complete", (3, 4), 1)
    assert found.missing == {"a" if where == "X" else "ill": 1}
    assert found.certificate.dropped == ("missing",)
    assert gordan.verify(found.certificate, X, y)
    assert gordan.verify(found.certificate, found.X, found.y)
    assert hash_for(found.certificate, X, y) == found.certificate.data_hash
    plain = [[None if value is pandas.NA else value for value in row] for row in X.to_numpy().tolist()]
    labels = [None if value is pandas.NA else value for value in y]
    assert both(found.certificate, plain, labels) == (True, True)
    told = r"y\[5\] is .*pass missing='drop'" if where == "y" else "missing='drop'"
    for model in ("logistic", "multinomial"):
        with pytest.raises(gordan.InputError, match=told):
            gordan.diagnose(X, y, model=model)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, lambda X: X.tolist()])
def test_missing_values_of_arrays(storage):
    X = np.array([[1.0, 0], [2, 0], [3, 0], [1.5, 1], [2.5, 1], [np.nan, 1]])
    found = gordan.diagnose(storage(X), [0, 1, 0, 1, 1, 0], missing="drop")
    assert (found.kind, found.missing, found.rows) == ("quasi-complete", {"x0": 1}, (3, 4))
    with pytest.raises(gordan.InputError, match=r"X\[5, 0\].* is nan.*or pass missing='drop'"):
        gordan.diagnose(storage(X), [0, 1, 0, 1, 1, 0])
    with pytest.raises(gordan.InputError, match=r"no row is left.*\(missing: . in x0"):
        gordan.diagnose(storage(X * np.nan), [0, 1, 0, 1, 1, 0], missing="drop")
    with pytest.raises(gordan.InputError, match="choose one of 'raise', 'drop'"):
        gordan.diagnose(storage(X), [0, 1, 0, 1, 1, 0], missing="ignore")


def test_weights_of_rows():
    """Only whether a weight is zero matters; a row of weight zero does not count, whatever it holds."""
    X, y = np.array([[1.0, 0], [2, 0], [3, 0], [1.5, 1], [2.5, 1], [np.nan, 1]]), [0, 1, 0, 1, 1, 0]
    for weights in ([1, 1, 1, 1, 1, 0], [0.5, 3, 7, 1e-300, 1e300, 0.0]):
        found = gordan.diagnose(X, y, sample_weight=weights)
        assert (found.kind, found.rows, found.left_out) == ("quasi-complete", (3, 4), 1)
        assert found.certificate.dropped == ("zero-weight",)
        assert gordan.verify(found.certificate, X, y, sample_weight=weights)
        assert not gordan.verify(found.certificate, X[:5], [0, 1, 0, 1, 0])
        assert gordan.verify(found.certificate, X, y).reason.endswith("pass the weights as sample_weight")
    assert gordan.diagnose(X[:5], y[:5], sample_weight=np.ones(5)).certificate.dropped == ()
    for weights, told in (
        ([1] * 5, "one number for each of the 6"),
        ([1] * 5 + [-1], r"sample_weight\[5\] is"),
        (["a"] * 6, "num"),
        ("count", r"pass the column itself, sample_weight=frame\['count'\]"),
        ([10**400] * 6, "numbers, one for each row, that a float can hold"),
        ([1] * 5 + [np.inf], "finite and not negative"),
        ([1] * 5 + [np.nan], r"sample_weight\[5\] is nan.*or pass missing='drop'"),
    ):
        with pytest.raises(gordan.InputError, match=told):
            gordan.diagnose(X, y, sample_weight=weights)


def test_how_text_becomes_numbers_is_reported():
    frame = trial().dropna()
    with pytest.raises(gordan.InputError, match=r"X = pandas.get_dummies\(X, drop_first=True, dtype=float\)"):
        gordan.diagnose(frame[["age", "region"]], frame.died)
    with pytest.raises(gordan.InputError, match="'region' of X holds text, such as"):
        gordan.diagnose(frame[["region"]].astype("category"), frame.died)
    with pytest.raises(gordan.InputError, match=r"numbers as text; convert it: X\['age'\] = pandas.to_numeric"):
        gordan.diagnose(frame[["age"]].astype(str), frame.died)
    mixed = frame[["age"]].astype(str)
    mixed.iloc[1, 0] = "NA"
    with pytest.raises(gordan.InputError, match=r"numbers as text; .*then missing='drop' leaves out the rows without"):
        gordan.diagnose(mixed, frame.died)
    X = pandas.get_dummies(frame[["age", "region"]], drop_first=True, dtype=float)
    assert gordan.diagnose(X, frame.died).columns["region_B"] == -1


@pytest.mark.parametrize("formula", [False, True])
def test_refused_rows_are_numbered_as_given(formula):
    """Whatever was left out before them."""
    if formula:
        of("formulaic")
    frame = pandas.DataFrame({"x": [np.nan, 1.0, 2, 3, np.inf, 4], "y": [1.0, 0, 3, 1, 0, 2], "n": [1, 0, 1, 1, 1, 1]})

    def diagnose(frame, **options):
        if formula:
            return gordan.diagnose("y ~ x", data=frame, missing="drop", sample_weight="n", **options)
        return gordan.diagnose(frame[["x"]], frame.y, missing="drop", sample_weight=frame.n, **options)

    with pytest.raises(gordan.InputError, match=r"X\[4, [01]\] \(column 'x'\) is inf"):
        diagnose(frame, model="poisson")
    frame.loc[4, "x"], frame.loc[5, "y"] = 0.0, -1.0
    with pytest.raises(gordan.InputError, match=r"y\[5\] is -1; counts"):
        diagnose(frame, model="poisson")
    frame["y"] = [*"aababa"]
    frame.loc[3, "x"] = -np.inf
    with pytest.raises(gordan.InputError, match=r"X\[3, [01]\] \(column 'x'\) is -inf"):
        diagnose(frame)


def test_how_to_expand_proportions_and_counts_is_reported():
    """And what is reported works, with the names of the columns: an outcome that did not occur has the frequency 0."""
    successes, failures = np.array([0, 2, 5]), np.array([4, 3, 0])
    shares = successes / (successes + failures)
    frame = pandas.DataFrame({"dose": [0.0, 1, 2], "share": shares})

    def told(*given, **options):
        with pytest.raises(gordan.InputError) as refused:
            gordan.diagnose(*given, **options)
        what, _, code = str(refused.value).partition("its frequency as weight: ")
        *before, last = code.split("; ")
        space = {"np": np, "pandas": pandas, "gordan": gordan, "frame": frame, "X": given[0], "y": given[-1], "model": given[0]}
        exec("; ".join(before), space)
        return what, eval(last, space)

    X = frame[["dose"]]
    for form in (X, X.to_numpy(), X.to_numpy().tolist(), sp.csr_array(X)):
        for y in (shares, np.column_stack([successes, failures]), pandas.Series(shares)):
            what, found = told(form, y)
            assert ("two columns, as counts" if np.ndim(y) == 2 else "values between 0 and 1, as proportions have") in what
            assert (found.kind, found.rows) == ("quasi-complete", (1, 4))
            assert [*found.columns] == ["dose" if form is X else "x0", "(intercept)"]
    if importlib.util.find_spec("formulaic"):
        _, found = told("share ~ dose", data=frame)
        assert (found.rows, [*found.columns]) == ((1, 4), ["Intercept", "dose"])
    if importlib.util.find_spec("statsmodels"):
        sm = of("statsmodels.api")
        model = sm.GLM(np.column_stack([successes, failures]), sm.add_constant(X), family=sm.families.Binomial())
        _, found = told(model)
        assert (found.rows, [*found.columns], found.weights.tolist()) == ((1, 4), ["const", "dose"], [4, 2, 3, 5])
    X = X.to_numpy()
    with pytest.raises(gordan.InputError, match="model='multinomial', 'ordinal' or 'poisson'"):
        gordan.diagnose(X, [0, 1, 2])


def test_large_frequencies_are_only_frequencies():
    """Nothing is multiplied by them, so nothing overflows."""
    X, y = np.array([[1.0, 0], [2, 0], [3, 0], [1.5, 1], [2.5, 1]]), [0, 1, 0, 1, 1]
    for weights in ([10**18] * 5, [1e300] * 5, np.full(5, 2**63, np.uint64), pandas.Series([10**18] * 5, dtype="Int64")):
        for model in ("logistic", "multinomial", "ordinal", "poisson"):
            assert gordan.diagnose(X, y, model=model, sample_weight=weights).proved


def test_the_order_of_classes_in_words_is_reported():
    X, y = [[1.0], [2.0], [3.0], [1.5], [2.5]], ["low", "medium", "high", "low", "high"]
    for given in (y, pandas.Series(y), pandas.Categorical(y)):
        with pytest.warns(UserWarning, match="in the order high < low < medium; to set it, pass y = pandas.Categorical"):
            found = gordan.diagnose(X, given, model="ordinal")
        assert "high|low" in found.columns
    ordered = pandas.Categorical(y, categories=["low", "medium", "high", "highest"], ordered=True)
    for given in (ordered, pandas.Series(ordered)):
        found = gordan.diagnose(X, given, model="ordinal")
        assert found.certificate.classes == ("low", "medium", "high")
        assert "Order of the classes: low < medium < high." in str(found)
    assert gordan.diagnose(X, [0, 1, 2, 0, 2], model="ordinal").columns  # numbers have an order


def test_an_enum_of_polars_has_an_order():
    polars = of("polars")
    y = polars.Series("dose", ["low", "high", "low", "medium"], dtype=polars.Enum(["low", "medium", "high"]))
    found = gordan.diagnose([[1.0], [2.0], [1.5], [1.7]], y, model="ordinal")
    assert found.certificate.classes == ("low", "medium", "high")


def test_numbers_of_numpy_are_reported_as_numbers():
    with pytest.raises(gordan.InputError, match="reference is 9, but y has the classes 0, 1, 2"):
        gordan.diagnose([[1.0], [2.0], [3.0]], [0, 1, 2], model="multinomial", reference=np.int64(9))
    with pytest.raises(gordan.InputError, match=r"nu is 2.5; for"):
        gordan.maximize_margin([[1.0], [2.0], [3.0]], [0, 1, 0], nu=np.float64(2.5))
    assert str(gordan.InputError("np.str_('a b') and np.True_, np.log2(b)")) == "'a b' and True, np.log2(b)"
