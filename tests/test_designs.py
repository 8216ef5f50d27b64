"""What statisticians have: data frames with categories and missing values, weights, formulas, models of statsmodels."""

from __future__ import annotations

import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from checkers import both

import gordan
from gordan.certificates.verify import hash_for

pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'gordan[data]'")


def of(package):
    return pytest.importorskip(package, reason=f"needs {package}: pip install {package}")


def trial():
    """60 patients; nobody in region B died, one age is missing and two regions are."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"age": rng.normal(50, 9, 60).round(), "region": rng.choice([*"ABCD"], 60)})
    frame["weight"] = rng.integers(0, 3, 60)
    frame["died"] = (rng.random(60) < 0.5).astype(int)
    frame.loc[frame.region == "B", "died"] = 0
    frame.loc[3, "age"] = np.nan
    frame.loc[[7, 9], "region"] = None
    return frame


def in_b(frame):
    """Rows of region B, by position."""
    return tuple(np.flatnonzero((frame.region == "B") & frame.age.notna()).tolist())


def evaluated(d):
    """The estimates that the last line of the code for a diagnosis evaluates to, after the lines before it ran."""
    *before, last = (line for line in d.next_steps if "firth" not in line.lower())
    space = {"d": d, "gordan": gordan}
    exec("\n".join(before), space)
    return eval(last, space)


# ---- formulas -------------------------------------------------------------------------------------------------------


def test_a_formula():
    of("formulaic")
    frame = trial()
    with pytest.raises(gordan.InputError, match=r"missing values \(1 in age, 2 in region\); pass missing='drop'"):
        gordan.diagnose("died ~ age + C(region)", data=frame)
    found = gordan.diagnose("died ~ age + C(region)", data=frame, missing="drop")
    assert (found.kind, found.left_out, found.missing) == ("quasi-complete", 3, {"age": 1, "region": 2})
    assert found.rows == in_b(frame)
    assert found.explanation == (f"all {len(found.rows)} rows with region = B have died = 0",)
    estimates = found.to_frame().estimate.to_dict()
    assert estimates.pop("C(region)[T.B]") == "-inf"
    assert {*estimates.items()} == {(name, "finite") for name in ("Intercept", "age", "C(region)[T.C]", "C(region)[T.D]")}
    assert gordan.verify(found.certificate, found.X, found.y)
    assert found.certificate.about.columns == tuple(found.X.columns)
    assert found.certificate.about.label == "died"
    assert "3 of 60 rows are left out (missing values: 1 in age, 2 in region)" in repr(found)


def test_functions_in_a_formula_are_those_of_the_caller():
    of("formulaic")

    def doubled(x):
        return 2 * x

    found = gordan.diagnose("died ~ doubled(age) + np.abs(age)", data=trial().dropna())
    assert {*found.columns} | {*found.dependent} == {"Intercept", "doubled(age)", "np.abs(age)"}


def test_truths_with_missing_ones_stay_truths():
    """As an outcome, and as a column: its name is that of a column without missing values."""
    of("formulaic")
    frame = pandas.DataFrame({"x": [1.0, 2, 3, 4, 5], "old": [True, None, False, True, False]})
    frame["well"] = [False, False, None, True, True]
    found = gordan.diagnose("well ~ x", data=frame, missing="drop")
    assert "Event: well = True." in str(found)
    plain = frame.dropna().astype({"old": bool, "well": bool})
    assert gordan.diagnose("well ~ old", data=frame, missing="drop").columns == gordan.diagnose("well ~ old", data=plain).columns


def test_missing_weights_are_counted_by_the_name_of_their_column():
    of("formulaic")
    frame = pandas.DataFrame({"x": [1.0, 2, 1, 2], "y": [0, 1, 1, 0], "n": [1.0, np.nan, 2, 3]})
    assert gordan.diagnose("y ~ x", data=frame, missing="drop", sample_weight="n").missing == {"n": 1}


def test_weights_by_the_name_of_a_column():
    of("formulaic")
    frame = trial().dropna()
    found = gordan.diagnose("died ~ age + region", data=frame, sample_weight="weight")
    kept = frame[frame.weight > 0]
    assert found.left_out == len(frame) - len(kept)
    assert [*frame.index[[*found.rows]]] == [*kept.index[kept.region == "B"]]
    with pytest.raises(gordan.InputError, match="no column 'other' for sample_weight"):
        gordan.diagnose("died ~ age", data=frame, sample_weight="other")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("died ~ age",), r"needs its data: diagnose\('died ~ age', data=frame\)"),
        (("~ age",), "one outcome on its left side"),
        (("died ~ height",), "'height' in the formula .* did you mean 'weight'"),
        (("died ~ age", [0, 1]), "leave y out"),
        (("(died==1) ~ age",), "formulaic cannot read"),
        (("died ~ I(age +)",), r"formulaic cannot read 'died ~ I\(age \+\)': invalid syntax"),
        (("died ~ age | region",), "one sum on its right"),
    ],
)
def test_formulas_that_are_refused(arguments, told):
    of("formulaic")
    data = {} if arguments == ("died ~ age",) else {"data": trial().dropna()}
    with pytest.raises(gordan.InputError, match=told):
        gordan.diagnose(*arguments, **data)


def test_data_of_a_formula_that_is_no_frame():
    of("formulaic")
    with pytest.raises(gordan.InputError, match="data is not a data frame but of type dict"):
        gordan.diagnose("died ~ age", data={"died": [0, 1], "age": [1.0, 2.0]})


def test_a_point_stands_for_the_other_columns():
    """But not for the column of the weights."""
    of("formulaic")
    frame = trial().dropna()
    names = {*gordan.diagnose("died ~ .", data=frame, sample_weight="weight").columns}
    assert names == {"Intercept", "age", "region[T.B]", "region[T.C]", "region[T.D]"}
    assert {*gordan.diagnose("died ~ .", data=frame).columns} == names | {"weight"}


def test_without_formulaic(monkeypatch):
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(gordan.MissingExtra, match=r"a formula needs formulaic: pip install 'gordan\[stats\]'"):
        gordan.diagnose("died ~ age", data=trial())
    with pytest.raises(gordan.MissingExtra):  # also without pandas
        gordan.diagnose("died ~ age", data={"died": [0, 1], "age": [1, 2]})


@pytest.mark.parametrize("output", ["pandas", "numpy", "sparse"])
def test_a_matrix_of_formulaic(output):
    formulaic = of("formulaic")
    frame = trial().dropna()
    X = formulaic.model_matrix("age + region", frame, output=output)
    found = gordan.diagnose(X, frame.died.to_numpy())
    assert (found.kind, found.rows, found.dependent) == ("quasi-complete", in_b(frame), ())
    assert {*found.columns} == {"Intercept", "age", "region[T.B]", "region[T.C]", "region[T.D]"}
    assert found.columns["region[T.B]"] == -1
    assert gordan.verify(found.certificate, X, frame.died.to_numpy())
    both_sides = formulaic.model_matrix("died ~ age + region", frame, output=output)
    found = gordan.diagnose(both_sides.rhs, both_sides.lhs)
    assert (found.rows, found.certificate.about.label) == (in_b(frame), "died")


def test_a_matrix_of_patsy():
    patsy = of("patsy")
    frame = trial().dropna()
    y, X = patsy.dmatrices("died ~ age + region", frame)
    found = gordan.diagnose(X, y)
    assert found.certificate.about.label == "died"
    assert "region = B have died = 0" in found.explanation[0]
    assert {*found.columns} == {*X.design_info.column_names}
    assert found.rows == in_b(frame)
    assert "rank-deficient" not in repr(found)  # its constant is the model's


# ---- models of statsmodels ------------------------------------------------------------------------------------------


def test_binary_models_of_statsmodels():
    sm = of("statsmodels.api")
    frame = trial().dropna()
    X = sm.add_constant(pandas.get_dummies(frame[["age", "region"]], drop_first=True, dtype=float))
    binomial = sm.families.Binomial()
    models = [sm.Logit(frame.died, X), sm.Probit(frame.died, X), sm.GLM(frame.died, X, family=binomial)]
    models.append(sm.GLM(frame.died, X, family=sm.families.Binomial(sm.families.links.CLogLog())))
    for model in models:
        found = gordan.diagnose(model)
        assert (found.model, found.kind, found.rows) == ("logistic", "quasi-complete", in_b(frame))
        assert found.columns == {"const": 0, "age": 0, "region_B": -1, "region_C": 0, "region_D": 0}
        assert found.explanation == (f"all {len(found.rows)} rows with region_B = 1 have died = 0",)
        assert gordan.verify(found.certificate, found.X, found.y)
    weighted = gordan.diagnose(sm.GLM(frame.died, X, family=binomial, freq_weights=frame.weight))
    assert weighted.left_out == int((frame.weight == 0).sum())
    assert f"({weighted.left_out} of weight zero)" in repr(weighted)
    fitted = sm.GLM(frame.died[frame.region != "B"], X[frame.region != "B"].drop(columns="region_B"), family=binomial).fit()
    assert gordan.diagnose(fitted).kind == "overlap"


def test_a_model_with_another_link_is_called_by_it():
    sm = of("statsmodels.api")
    X, y = pandas.DataFrame({"const": 1.0, "x": [1.0, 2, 2, 4, 9]}), [0, 1, 0, 1, 1]
    links = sm.families.links
    models = {"logistic": sm.Logit(y, X), "probit": sm.Probit(y, X)}
    for name, link in {"probit": links.Probit, "complementary log-log": links.CLogLog, "log-log": links.LogLog}.items():
        models |= {f"{name} ": sm.GLM(y, X, family=sm.families.Binomial(link()))}
    for name, model in models.items():
        found = gordan.diagnose(model)
        assert f"estimates of a {name.strip()} regression do not exist" in str(found)
        like = f"# logistic fits: a {name.strip()} regression is separated exactly where a logistic one is"
        assert (like in found.next_steps) == (name != "logistic")


def test_an_offset_is_told_not_to_be_in_the_lines():
    sm = of("statsmodels.api")
    X, y, ones = pandas.DataFrame({"const": 1.0, "t": [1.0, 1, 0, 0]}), [0, 0, 1, 2], np.ones(4)
    family = {"family": sm.families.Poisson()}
    told = "# the offset of the model is not in these lines"
    for model in (sm.Poisson(y, X), sm.GLM(y, X, **family)):
        assert told not in gordan.diagnose(model).next_steps
    for model in (sm.Poisson(y, X, exposure=2 * ones), sm.GLM(y, X, offset=ones, **family)):
        assert gordan.diagnose(model).next_steps[0] == told


def test_rows_that_statsmodels_left_out_are_counted():
    """A formula of statsmodels drops rows with missing values: those that are named are still where they are in the data."""
    smf = of("statsmodels.formula.api")
    frame = trial().dropna().reset_index(drop=True)
    frame.loc[[0, 3, 7], "age"] = np.nan
    found = gordan.diagnose(smf.logit("died ~ age + C(region)", frame))
    assert {*frame.region.iloc[list(found.rows)]} == {"B"}
    assert (found.left_out, len(found.rows)) == (3, int((frame.dropna().region == "B").sum()))
    assert gordan.verify(found.certificate, found.X, found.y)


def test_other_models_of_statsmodels():
    sm = of("statsmodels.api")
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    frame = trial().dropna()
    X = pandas.get_dummies(frame[["age", "region"]], drop_first=True, dtype=float)
    grade = np.where(frame.region == "B", "low", np.where(frame.age > 50, "high", "middle"))
    grade[:2] = "high", "middle"
    ordered = pandas.Series(pandas.Categorical(grade, ["low", "middle", "high"], ordered=True), index=X.index)
    for model, plain in (
        (sm.Poisson(frame.died * 3, sm.add_constant(X)), gordan.diagnose(X, frame.died, model="poisson")),
        (sm.MNLogit(grade, sm.add_constant(X)), gordan.diagnose(X, grade, model="multinomial")),
        (OrderedModel(ordered, X), gordan.diagnose(X, ordered, model="ordinal")),
    ):
        found = gordan.diagnose(model)
        assert (found.model, found.kind, found.rows) == (plain.model, plain.kind, plain.rows)
        assert found.kind != "overlap"
        assert [*found.columns.values()].count(-1) == [*plain.columns.values()].count(-1)
        assert gordan.verify(found.certificate, found.X, found.y)
    assert {"low|middle", "middle|high"} <= {*found.columns}


def test_models_that_are_not_known():
    sm = of("statsmodels.api")
    frame = trial().dropna()
    X = sm.add_constant(frame[["age"]])
    with pytest.raises(gordan.InputError, match="does not support OLS of statsmodels; it supports Logit"):
        gordan.diagnose(sm.OLS(frame.died, X))
    with pytest.raises(gordan.InputError, match="family Gamma"):
        gordan.diagnose(sm.GLM(frame.age, X, family=sm.families.Gamma(sm.families.links.Log())))
    with pytest.raises(gordan.InputError, match="does not support GEE of statsmodels"):
        gordan.diagnose(sm.GEE(frame.died, X, groups=frame.age, family=sm.families.Binomial()))
    with pytest.raises(gordan.InputError, match="pass it alone"):
        gordan.diagnose(sm.Logit(frame.died, X), frame.died)
    with pytest.raises(gordan.InputError, match="the statsmodels model is logistic; leave model out"):
        gordan.diagnose(sm.Logit(frame.died, X), model="poisson")
    counts = np.column_stack([frame.weight, 3 - frame.weight])
    with pytest.raises(gordan.InputError, match="counts of successes and failures; pass two rows for each"):
        gordan.diagnose(sm.GLM(counts, X, family=sm.families.Binomial()))


# ---- missing values, weights, what cannot be used -------------------------------------------------------------------


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


def test_text_is_told_how_to_become_numbers():
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


def test_proportions_and_counts_are_told_how_to_be_expanded():
    """And what is told works, with the names of the columns: an outcome that did not occur has the frequency 0."""
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


def test_the_order_of_classes_in_words_is_told():
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


def test_numbers_of_numpy_are_told_as_numbers():
    with pytest.raises(gordan.InputError, match="reference is 9, but y has the classes 0, 1, 2"):
        gordan.diagnose([[1.0], [2.0], [3.0]], [0, 1, 2], model="multinomial", reference=np.int64(9))
    with pytest.raises(gordan.InputError, match=r"nu is 2.5; for"):
        gordan.maximize_margin([[1.0], [2.0], [3.0]], [0, 1, 0], nu=np.float64(2.5))
    assert str(gordan.InputError("np.str_('a b') and np.True_, np.log2(b)")) == "'a b' and True, np.log2(b)"


# ---- words ----------------------------------------------------------------------------------------------------------


def test_a_name_in_place_of_a_column():
    with pytest.raises(
        gordan.InputError, match=r"y is the text 'died'; pass the column itself.*or a formula, diagnose\('died ~ …'"
    ):
        gordan.diagnose(trial(), "died", missing="drop")
    with pytest.raises(gordan.InputError, match="X has 60 rows but y has 2 labels"):
        gordan.diagnose(trial()[["age"]].to_numpy(), [0, 1], missing="drop")


def test_a_constant_column_is_the_constant():
    frame = trial().dropna()
    X = pandas.get_dummies(frame[["age", "region"]], drop_first=True, dtype=float)
    X.insert(1, "const", 1.0)
    for model, y, name in (
        ("logistic", frame.died, "const"),
        ("poisson", frame.died, "const"),
        ("multinomial", frame.died, "1:const"),
    ):
        found = gordan.diagnose(X, y, model=model)
        assert found.dependent == ()
        assert name in found.columns
        assert not any(key.endswith("(intercept)") for key in (*found.columns, *found.direction))
        assert "rank-deficient" not in str(found)


def test_thresholds_and_levels_in_words():
    frame = pandas.DataFrame({"x1": [1.0, 2.5, 3.1, 3.4, 5.0, 6.0], "x2": [3.0, 1, 2, 3, 1, 2]})
    y = pandas.Series([0, 0, 0, 1, 1, 1])
    assert gordan.diagnose(frame, y).explanation == ("x1 > 3.2 exactly when y = 1",)
    assert gordan.diagnose(-frame, y).explanation == ("x1 > -3.2 exactly when y = 0",)
    touching = gordan.diagnose(pandas.DataFrame({"x": [1.0, 2, 2, 3]}), y.iloc[[0, 1, 3, 4]].reset_index(drop=True))
    assert touching.explanation == ("x > 2 only where y = 1, and x < 2 only where y = 0",)
    level = gordan.diagnose(pandas.DataFrame({"town": [1, 0, 0, 0, 0], "x": [1.0, 1, 1, 2, 2]}), [1, 0, 1, 0, 1])
    assert level.explanation == ("the only row with town = 1 has y = 1",)


def test_a_baseline_that_separates():
    frame = pandas.DataFrame({"region": [*"AAABBBCCCDDD"], "y": [1, 1, 1, *[0, 1, 1] * 3]})
    X = pandas.get_dummies(frame[["region"]], drop_first=True, dtype=float)
    found = gordan.diagnose(X, frame.y)
    (sentence,) = found.explanation
    assert sentence.startswith("all 3 rows with none of region_B, region_C, region_D have y = 1; if all levels of region have ")
    assert "region is missing in these rows: leave them out; otherwise they have the baseline level" in sentence
    assert "; with another level as the baseline (of the 0/1 columns of all levels leave out region_B) fewer" in sentence
    other = pandas.get_dummies(frame[["region"]], dtype=float).drop(columns="region_B")
    for levels in ("A", "AD"):  # one level separates, then two
        frame.loc[frame.region == "D", "y"] = [0, 1, 1] if levels == "A" else 0
        assert any("fewer coefficients can be infinite" in told for told in gordan.diagnose(X, frame.y).explanation)
        now, then = (gordan.diagnose(Z, frame.y).columns.values() for Z in (X, other))
        assert (sum(sign != 0 for sign in now), sum(sign != 0 for sign in then)) == (4, len(levels))
    frame["y"] = [*"aaabbbcccccc"]  # each level has one outcome: no baseline is better than another
    told = gordan.diagnose(X, frame.y, model="multinomial").explanation
    assert any(each.startswith("all 3 rows with none of region_B, region_C, region_D have y = a; if all levels") for each in told)
    middle = frame.y.map({"a": 2, "b": 1, "c": 3})  # which an order makes no coefficient infinite for
    assert not any("baseline" in sentence for sentence in gordan.diagnose(X, middle, model="ordinal").explanation)


def test_columns_of_numbers_that_missing_text_made_objects():
    """A formula sees the numbers that a plain frame does, and not a category for each of them."""
    of("formulaic")
    r = np.random.default_rng(0)
    age = r.normal(50, 10, 60)
    frame = pandas.DataFrame({"age": age.astype(object), "y": (age + r.normal(0, 10, 60) > 50).astype(int)})
    frame.loc[3, "age"], frame.loc[7, "age"] = "NA", ""
    found = gordan.diagnose("y ~ age", data=frame, missing="drop")
    assert (found.kind, [*found.columns]) == ("overlap", ["Intercept", "age"])
    frame.loc[5, "age"] = "unknown"
    with pytest.warns(UserWarning, match="'age' has numbers and also 'unknown'"):
        gordan.diagnose("y ~ age", data=frame, missing="drop")


@pytest.mark.parametrize("term", ["center(x)", "bs(x, df=4)", "poly(x, 2)", "scale", "x:C(scale, Treatment('b'))", "`a b`"])
def test_missing_values_are_found_inside_functions_and_in_columns_named_like_one(term):
    of("formulaic")
    r = np.random.default_rng(0)
    frame = pandas.DataFrame({"x": r.normal(size=60), "scale": [*"abc"] * 20, "df": np.nan, "y": r.integers(0, 2, 60)})
    frame["a b"] = frame.x
    frame.loc[3, ["x", "a b"]], frame.loc[7, "scale"] = np.nan, "NA"
    found = gordan.diagnose(f"y ~ {term}", data=frame, missing="drop")
    lost = {"x": 1} if "x" in term else {}
    lost |= {"scale": 1} if "(x" not in term and "scale" in term else {"a b": 1} if "a b" in term else {}
    assert found.missing == lost
    with pytest.raises(gordan.InputError, match="data has missing values"):
        gordan.diagnose(f"y ~ {term}", data=frame)


def test_categories_that_no_row_has_are_no_columns():
    of("formulaic")
    frame = pandas.DataFrame({"c": pandas.Categorical([*"aabbcc", "NA", "NA"], ["NA", *"abcd"]), "y": [0, 1] * 4})
    found = gordan.diagnose("y ~ c", data=frame, missing="drop")
    assert ([*found.columns], found.dependent) == (["Intercept", "c[T.b]", "c[T.c]"], ())


def test_what_to_do_next_leaves_out_columns_that_depend_on_others():
    frame = pandas.DataFrame({"region": [*"AAABBBCCC"], "y": [1, 1, 1, *[0, 1, 0] * 2]})
    d = gordan.diagnose(pandas.get_dummies(frame[["region"]], dtype=float), frame.y)
    assert d.dependent
    (*_, ridge) = d.next_steps
    assert f"d.X.drop(columns={[*d.dependent]!r})" in ridge
    assert np.isfinite(evaluated(d)).all()


@pytest.mark.parametrize("level", ["A", "2.0"])
def test_a_baseline_that_separates_in_a_formula(level):
    """The level is named, and what is told works."""
    of("formulaic")
    levels = [*"ABCD"] if level == "A" else [2.0, 4.0, 6.5, 8.0]
    frame = pandas.DataFrame({"region": np.repeat(levels, 3), "y": [1, 1, 1, *[0, 1, 1] * 3]})
    (sentence,) = gordan.diagnose("y ~ C(region)", data=frame).explanation
    assert sentence.startswith(f"all 3 rows with region = {level}, the baseline, have y = 1; with another level")
    term = sentence.partition("as the baseline (")[2].partition(" in a formula)")[0]
    assert term == ("C(region, Treatment('B'))" if level == "A" else "C(region, Treatment(4.0))")
    found = gordan.diagnose(f"y ~ {term}", data=frame)
    assert [sign for sign in found.columns.values() if sign != 0] == [1]
    assert found.explanation == (f"all 3 rows with region = {level} have y = 1",)


@pytest.mark.parametrize("source", ["formulaic", "statsmodels"])
def test_a_baseline_of_two_levels(source):
    """It has its name, and another baseline is said to change no more than it does: the sign, and the constant."""
    of(source)
    frame = pandas.DataFrame({"trt": [*"ppppqqqqqq"], "age": [3.0, 1, 2, 5, 2, 4, 1, 6, 3, 5], "y": [*[0] * 4, *[0, 1, 1] * 2]})
    frame["trt"] = frame.trt.astype("category")

    def diagnose(formula):
        if source == "formulaic":
            return gordan.diagnose(formula, data=frame)
        return gordan.diagnose(of("statsmodels.formula.api").logit(formula, frame))

    found = diagnose("y ~ age + trt")
    (sentence,) = found.explanation
    assert sentence == (
        "all 4 rows with trt = p, the baseline, have y = 0; with the other level as the baseline (C(trt, Treatment('q')) in a "
        "formula) the constant can be finite, and the coefficient only changes its sign"
    )
    assert (found.columns["Intercept"], found.columns["trt[T.q]"]) == (-1, 1)
    other = diagnose("y ~ age + C(trt, Treatment('q'))")
    assert (other.columns["Intercept"], other.columns["C(trt, Treatment('q'))[T.p]"]) == (0, -1)
    assert other.explanation == ("all 4 rows with trt = p have y = 0",)
    assert "or drop trt, if it only restates the outcome" in str(found)
    frame["y"] = [0] * 4 + [1] * 6  # with either baseline, everything is infinite
    assert not any("baseline (" in sentence for sentence in diagnose("y ~ trt").explanation)


def test_classes_that_the_baseline_of_two_levels_lacks():
    of("formulaic")
    frame = pandas.DataFrame({"trt": [*"ppppqqqqqq"], "y": [*"ababcabcab"]})
    found = gordan.diagnose("y ~ trt", data=frame, model="multinomial")
    assert found.explanation == ("none of the 4 rows with trt = p has y = c",)


def test_levels_that_occur_together_in_words():
    of("formulaic")
    frame = pandas.DataFrame({"a": [*"xxyyxxyyxy"], "b": [*"ppppqqqqpq"], "y": [0, 1, 1, 0, 0, 1, 1, 1, 1, 1]})
    found = gordan.diagnose("y ~ a * b", data=frame)
    assert "all 3 rows with a = y and b = q have y = 1" in found.explanation


def test_counts_that_are_all_zero():
    found = gordan.diagnose(pandas.DataFrame({"x": [0.0, 0, 1, 2]}), pandas.Series([0, 0, 0, 0], name="visits"), model="poisson")
    assert found.explanation == ("all 4 rows have visits = 0: the likelihood increases as all fitted means go to 0",)
    assert "nothing to estimate where visits = 0 in every row" in str(found)
    assert found.next_steps == ()


def test_combinations_and_counts_in_words():
    X = pandas.DataFrame({"a": [2.0, 0, 3, 1], "b": [0.0, 2, 1, 3]})
    found = gordan.diagnose(X, [1, 0, 1, 0])
    assert any("exactly when y = 1" in sentence for sentence in found.explanation)
    counts = gordan.diagnose(pandas.DataFrame({"x": [0.0, 0, 1, 2]}), pandas.Series([3, 1, 0, 0], name="visits"), model="poisson")
    assert counts.explanation == ("x is 0 in every row with visits > 0, and not in 2 rows with visits = 0",)
    several = pandas.DataFrame({"t": [1.0, 1, 0, 0, 0, 1]})
    found = gordan.diagnose(several, [*"ababcb"], model="multinomial")
    assert found.explanation == ("none of the 3 rows with t = 1 has y = c",)


def test_where_no_single_column_says_why():
    X, y = pandas.DataFrame({"a": [0.0, 1, 4, 5, 0, 9], "b": [0.0, 1, 0, 1, 4, 9]}), ["p", "p", "q", "q", "r", "p"]
    found = gordan.diagnose(X, y, model="multinomial")
    assert found.kind != "overlap"
    assert found.explanation == ("no single column or level says why; `direction` has a combination of columns that separates",)


def test_the_table():
    X = pandas.DataFrame({"age": [1.0, 2, 3, 1.5, 2.5], "treated": [0, 0, 0, 1, 1]})
    X["twice"] = 2 * X.age
    found = gordan.diagnose(X, [0, 1, 0, 1, 1])
    frame = found.to_frame()
    assert frame.index.tolist() == ["(intercept)", "age", "treated", "twice"]
    assert frame.estimate.tolist() == ["finite", "finite", "+inf", "aliased"]
    assert frame.direction.tolist()[:3] == [0, 0, 1]
    lines = str(found).splitlines()
    assert "treated           +inf" in lines
    assert "  - all 2 rows with treated = 1 have y = 1" in lines
    assert [*gordan.diagnose(X, [0, 1, 0, 1, 0]).to_frame().columns] == ["estimate"]


@pytest.mark.parametrize("constant", ["free", "none"])
def test_what_comes_next_for_several_classes_runs(constant):
    X = pandas.DataFrame({"one": 1.0, "t": [1.0, 1, 0, 0, 0, 1]}).iloc[:, 1 if constant == "free" else 0 :]
    d = gordan.diagnose(X, pandas.Series([*"ababcb"]), model="multinomial", intercept=constant)
    assert evaluated(d).shape == (1, 3)


def test_what_comes_next_runs():
    """The lines that are printed, as they are."""
    of("firthmodels")
    d = gordan.diagnose(pandas.DataFrame({"age": [1.0, 2, 3, 1.5, 2.5], "treated": [0, 0, 0, 1, 1]}), [0, 1, 0, 1, 1])
    code = d.next_steps
    assert str(d).endswith("\n".join(f"    {line}" for line in code))
    space = {"d": d, "gordan": gordan}
    exec("\n".join(code[:2]), space)
    assert np.isfinite(eval(code[2], space)).all()
    assert np.isfinite(eval(code[3], space)).all()


@pytest.mark.parametrize("form", ["array", "sparse", "sparse with ones", "frame", "list"])
def test_what_comes_next_runs_for_every_form_of_x(form):
    """Columns that depend on others are left out of the lines, and Firth's package is given dense arrays."""
    of("firthmodels")
    X = np.array([[1, 0, 0.0], [1, 0, 1], [1, 1, 0], [1, 1, 1], [1, 1, 2], [1, 0, 2], [1, 0, 3]])
    forms = {"array": X, "sparse": sp.csr_array(X[:, 1:]), "sparse with ones": sp.csr_array(X), "list": X[:, 1:].tolist()}
    d = gordan.diagnose(pandas.DataFrame(X, columns=[*"abc"]) if form == "frame" else forms[form], [0, 0, 1, 1, 1, 0, 0])
    space = {"d": d, "gordan": gordan}
    exec("\n".join(d.next_steps[:2]), space)
    assert all(np.isfinite(eval(line, space)).all() for line in d.next_steps[2:])


@pytest.mark.parametrize("form", ["array", "sparse", "frame", "list", "formula", "weights"])
@pytest.mark.parametrize("model", ["poisson", "ordinal"])
def test_what_comes_next_for_counts_and_orders_runs(model, form):
    """As printed. The rest of the counts overlaps, and has the estimates to which those of all rows converge."""
    of("statsmodels")
    frame = pandas.DataFrame({"t": [0.0] * 9 + [1] * 3, "age": [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 2, 5, 7]})
    y = pandas.Series([1, 0, 2, 1, 0, 2, 1, 2, 2, 0, 0, 0], name="y")
    n = np.array([1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 0, 1])
    if form == "formula":
        of("formulaic")
        d = gordan.diagnose("y ~ t + age", data=frame.assign(y=y), model=model)
    else:
        X = {"array": frame.to_numpy(), "sparse": sp.csr_array(frame), "list": frame.to_numpy().tolist()}.get(form, frame)
        d = gordan.diagnose(X, y, model=model, sample_weight=n if form == "weights" else None)
    assert d.kind == "quasi-complete"
    assert np.flatnonzero(d.separated).tolist() == ([9, 10] if form == "weights" else [9, 10, 11])
    *before, last = d.next_steps
    assert str(d).endswith("\n".join(f"    {line}" for line in d.next_steps))
    space = {"d": d, "gordan": gordan}
    exec("\n".join(before), space)
    estimates = np.asarray(eval(last, space))
    assert np.isfinite(estimates).all()
    if model == "ordinal":  # coefficients by name, then thresholds that give every class a share
        named, names = eval(before[-1], space), [*getattr(space["Z"], "columns", (0, 1))]
        assert [*named] == names
        treated, older = named.values()
        assert -9 < treated < -0.5  # finite by the prior
        assert 0 < older < 2
        assert ("t" in names) == (form in ("frame", "formula", "weights"))
        assert len(estimates) == 2
        assert (np.diff(estimates) > 0).all()
        eta = frame.to_numpy() @ [*named.values()]
        shares = 1 / (1 + np.exp(-(estimates - eta[:, None])))  # of classes up to each threshold
        mass = n if form == "weights" else np.ones(12)
        for k, cut in enumerate(estimates):  # the slope along each threshold is zero at the mode
            low, high = (1 / (1 + np.exp(-(estimates[k + by] - eta))) if 0 <= k + by < 2 else float(by > 0) for by in (-1, 1))
            F = shares[:, k]
            slope = F * (1 - F) * mass * ((y == k) / (F - low) - (y == k + 1) / (high - F))
            assert abs(slope.sum()) < 1e-3, cut
    if model == "poisson":
        assert space["rest"].kind == "overlap"
        mean = np.exp(estimates[0] + estimates[1] * frame.age[:9])
        residuals = (y[:9] - mean) * (n[:9] if form == "weights" else 1)
        assert max(abs(residuals.sum()), abs(residuals @ frame.age[:9])) < 1e-6


@pytest.mark.parametrize("formula", [False, True])
def test_what_comes_next_has_the_weights(formula):
    """Frequencies do not matter for separation, but for estimates: those of repeated rows come out."""
    frame = pandas.DataFrame({"age": [1.0, 2, 3, 1.5, 2.5, 9], "treated": [0, 0, 0, 1, 1, 0], "n": [2, 1, 3, 1, 2, 0]})
    frame["died"] = [0, 1, 0, 1, 1, 1]
    if formula:
        of("formulaic")
        d = gordan.diagnose("died ~ age + treated", data=frame, sample_weight="n")
    else:
        d = gordan.diagnose(frame[["age", "treated"]], frame.died, sample_weight=frame.n)
    assert (np.asarray(d.weights).tolist(), len(d.X), len(d.y)) == ([2, 1, 3, 1, 2], 5, 5)
    many = np.repeat(np.arange(5), [2, 1, 3, 1, 2])
    space = {"d": d, "gordan": gordan}
    again = SimpleNamespace(X=d.X.iloc[many], y=d.y.iloc[many], weights=np.ones(len(many)))
    _, scaler, fit, ridge = d.next_steps
    exec(scaler, space)
    np.testing.assert_allclose(eval(ridge, space), eval(ridge, space | {"d": again}), rtol=1e-3)
    firth = of("firthmodels")
    space |= {"FirthLogisticRegression": firth.FirthLogisticRegression}
    np.testing.assert_allclose(eval(fit, space), eval(fit, space | {"d": again}), rtol=1e-3)


UNKNOWN = {
    "a column": (
        "y ~ agee + C(region)",
        "'agee' in the formula .* is neither a column of data nor a function; did you mean 'age'",
    ),
    "in a function": ("y ~ I(agee ** 2)", "did you mean 'age'?"),
    "the outcome": ("yy ~ age", "did you mean 'y'?"),
    "a function": ("y ~ logg(age)", "the columns are 'age', "),
    "of R": ("y ~ age + factor(region)", r"C\(…\) makes 0/1 columns of a category, as factor\(…\) does in R"),
    "of R with a point": ("y ~ as.factor(region)", r"C\(…\) makes 0/1 columns"),
    "with a space": ("y ~ blood pressure", "in backticks: `blood pressure`"),
}


@pytest.mark.parametrize("formula", UNKNOWN)
def test_names_in_a_formula_that_are_not_known(formula):
    formula, told = UNKNOWN[formula]
    frame = pandas.DataFrame({"age": [1.0, 2, 3, 4], "region": [*"ABAB"], "blood pressure": [1.0, 2, 2, 1], "y": [0, 1, 0, 1]})
    with pytest.raises(gordan.InputError, match=told):
        gordan.diagnose(formula, data=frame)


def test_infinite_without_a_sign_is_explained_below_the_table():
    """Two columns that separate in both directions: of either, with the other, the estimate may go both ways."""
    found = gordan.diagnose([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1, 1, 0, 0])
    assert "inf" in found.to_frame()["estimate"].tolist()
    lines = str(found).splitlines()
    table = [k for k, line in enumerate(lines) if line.endswith("  estimate") or line.rstrip().endswith(("inf", "finite"))]
    assert lines[table[-1] + 1].startswith("inf: infinite, sign undetermined")
    assert "undetermined" not in str(gordan.diagnose([[1.0], [2.0], [3.0]], [0, 0, 1]))


FITS = [
    gordan.separate,
    lambda *data: gordan.LinearClassifier().fit(*data),
    lambda *data: gordan.MaxMarginClassifier().fit(*data),
]


@pytest.mark.parametrize("fit", FITS, ids=["separate", "linear", "margin"])
@pytest.mark.parametrize("kind", [object, "str", "category"])
def test_text_in_a_frame_is_answered_with_the_line_that_makes_numbers(fit, kind):
    X = pandas.DataFrame({"age": [1.0, 2, 3, 4], "smokes": pandas.Series(["ja", "nein", "ja", "nein"], dtype=kind)})
    with pytest.raises(gordan.InputError) as refused:
        fit(X, [0, 1, 1, 0])
    assert "(column 'smokes') is 'ja'" in str(refused.value)
    line = str(refused.value).partition("columns of text first, ")[2]
    scope = {"X": X, "pandas": pandas}
    exec(line, scope)
    assert [*scope["X"].columns] == ["age", "smokes_nein"]
    with pytest.raises(gordan.InputError, match=r"X\['age'\] = pandas.to_numeric\(X\['age'\]\)"):
        fit(X.assign(age=["1", "2", "3", "4"]), [0, 1, 1, 0])


def test_the_order_of_a_column_that_a_formula_names():
    """There is no y to pass: the message names the column of the data."""
    of("formulaic")
    frame = pandas.DataFrame({"x": [1.0, 2, 3, 1, 2, 3], "grade": ["low", "medium", "high"] * 2})
    told = r"the classes of grade are text.*; to set it, data\['grade'\] = pandas.Categorical\(data\['grade'\], categories="
    with pytest.warns(UserWarning, match=told):
        gordan.diagnose("grade ~ x", data=frame, model="ordinal")
    with pytest.raises(gordan.InputError, match=r"model is 'poison'; .*did you mean 'poisson'\?"):
        gordan.diagnose(frame[["x"]], frame.grade, model="poison")


@pytest.mark.parametrize("job", ["cook", "pilot", "teacher"])
def test_a_level_that_separates_is_named_where_all_levels_have_columns(job):
    """One of the columns depends on the others and the constant, and has no coefficient; it may be the one that separates."""
    jobs = np.repeat(["cook", "pilot", "teacher"], 4)
    y = pandas.Series(np.where((jobs != job) & (np.arange(12) % 2 == 0), "yes", "no"), name="default")
    X = pandas.get_dummies(pandas.DataFrame({"job": jobs}), dtype=int)
    assert gordan.diagnose(X, y).explanation == (f"all 4 rows with job_{job} = 1 have default = no",)


@pytest.mark.parametrize("empty", [pandas.NA, None, np.nan, "", "NA"], ids=["NA", "None", "nan", "empty", "text"])
def test_missing_weights_are_alike(empty):
    frame = trial().dropna().reset_index(drop=True)
    frame["weight"] = frame.weight.astype(object)
    frame.loc[3, "weight"] = empty
    with pytest.raises(gordan.InputError, match=r"sample_weight\[3\] is nan.*or pass missing='drop'"):
        gordan.diagnose(frame[["age"]], frame.died, sample_weight=frame.weight)
    found = gordan.diagnose(frame[["age"]], frame.died, sample_weight=frame.weight, missing="drop")
    assert found.missing == {"weight": 1}
    assert found.certificate.dropped == ("missing", "zero-weight")
    assert gordan.verify(found.certificate, frame[["age"]], frame.died, sample_weight=frame.weight)
    if importlib.util.find_spec("formulaic"):
        again = gordan.diagnose("died ~ age", data=frame, sample_weight="weight", missing="drop")
        assert (again.missing, again.left_out) == (found.missing, found.left_out)


def test_columns_of_one_name_do_not_hide_each_other():
    """An outcome that is called X, and weights that are called data, are columns as any other."""
    frame = trial().dropna().reset_index(drop=True)
    frame.loc[3, "age"] = np.nan
    assert gordan.diagnose(frame[["age"]], frame.died.rename("X"), missing="drop").missing == {"age": 1}
    twice = pandas.concat([frame[["age"]], frame[["age"]] ** 2], axis=1).fillna(0).astype(object)
    assert [*gordan.diagnose(twice, frame.died).columns][:2] == ["age", "age [1]"]
    if importlib.util.find_spec("formulaic"):
        named = frame.rename(columns={"weight": "data"})
        assert gordan.diagnose("died ~ age", data=named, sample_weight="data", missing="drop").missing == {"age": 1}


def test_weights_of_a_formula_are_aligned():
    of("formulaic")
    frame = trial().dropna()
    with pytest.raises(gordan.InputError, match="the indexes of data and sample_weight differ"):
        gordan.diagnose("died ~ age", data=frame, sample_weight=frame.weight[::-1])
    with pytest.raises(gordan.InputError, match=r"no row is left: .* \(missing: \d+ in age\)"):
        gordan.diagnose("died ~ age", data=frame.assign(age=np.nan), missing="drop")


def run_told(refusal, **space):
    """What the code in a refusal returns."""
    code = str(refusal.value).partition("its frequency as weight: ")[2]
    *before, last = code.split("; ")
    space |= {"np": np, "pandas": pandas, "gordan": gordan}
    exec("; ".join(before), space)
    return eval(last, space)


@pytest.mark.parametrize("left", ["s + f", "cbind(s, f)"])
def test_two_counts_in_a_formula_are_told_how_to_be_expanded(left):
    of("formulaic")
    frame = pandas.DataFrame({"dose": [0.0, 1, 2], "s": [0, 2, 5], "f": [4, 3, 0]})
    with pytest.raises(gordan.InputError, match="has two outcomes, as counts of successes and failures") as refusal:
        gordan.diagnose(f"{left} ~ dose", data=frame)
    found = run_told(refusal, frame=frame)
    assert (found.kind, found.rows, found.weights.tolist()) == ("quasi-complete", (1, 4), [4, 2, 3, 5])
    with pytest.raises(gordan.InputError, match="needs one outcome on its left side"):  # two rows each would not be counts
        gordan.diagnose(f"{left} ~ dose", data=frame, model="poisson")


def test_weights_of_proportions_are_in_the_code():
    X, shares, trials = pandas.DataFrame({"dose": [0.0, 1, 2]}), pandas.Series([0, 0.25, 1]), pandas.Series([4, 8, 5])
    with pytest.raises(gordan.InputError, match="as proportions have") as refusal:
        gordan.diagnose(X, shares, sample_weight=trials)
    assert run_told(refusal, X=X, y=shares, sample_weight=trials).weights.tolist() == [4, 2, 6, 5]
    if importlib.util.find_spec("formulaic"):
        frame = X.assign(share=shares, trials=trials)
        with pytest.raises(gordan.InputError, match="as proportions have") as refusal:
            gordan.diagnose("share ~ dose", data=frame, sample_weight="trials")
        assert run_told(refusal, frame=frame).weights.tolist() == [4, 2, 6, 5]


@pytest.mark.parametrize("fitted", [False, True])
def test_proportions_in_a_model_of_statsmodels(fitted):
    """The code that is told has the columns and the weights of the model."""
    sm = of("statsmodels.api")
    X, shares = sm.add_constant(pandas.DataFrame({"dose": [0.0, 1, 2, 3]})), [0.25, 0.5, 0.25, 0.75]
    model = sm.GLM(shares, X, family=sm.families.Binomial(), var_weights=np.array([4.0, 2, 8, 4]))
    given = model.fit() if fitted else model
    with pytest.raises(gordan.InputError, match="proportions as outcomes; pass two rows for each") as refusal:
        gordan.diagnose(given)
    found = run_told(refusal, **{"results" if fitted else "model": given})
    assert ([*found.columns], found.weights.tolist()) == (["const", "dose"], [1, 3, 1, 1, 2, 6, 3, 1])


def test_distributions_of_an_ordinal_model():
    """Those that are known to be log-concave: with others estimates need not be unique."""
    of("statsmodels")
    from scipy import stats
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    X, y = pandas.DataFrame({"x": [0.0, 0, 0, 1, 1]}), pandas.Series(pandas.Categorical([0, 1, 2, 2, 2], ordered=True))
    found = gordan.diagnose(OrderedModel(y, X, distr="probit"))
    assert (found.kind, found.columns["x"]) == ("quasi-complete", 1)
    assert "of an ordinal probit regression do not exist" in str(found)
    assert any('distr="probit"' in line for line in found.next_steps)
    found = gordan.diagnose(OrderedModel(y, X, distr=stats.gumbel_l))
    assert any('distr="logit")  # in place of the complementary log-log link' in line for line in found.next_steps)
    with pytest.raises(gordan.InputError, match=r"'cauchy' of the OrderedModel is log-concave.*model='ordinal'"):
        gordan.diagnose(OrderedModel(y, X, distr=stats.cauchy))


REFUSED = {
    "an offset": ("died ~ age + offset(weight)", "leave the offset out: it changes the estimates, but not whether they exist"),
    "random effects": ("died ~ age + (1|region)", "random effects .* are not supported"),
    "a comparison": ("(age > 50) ~ weight", r"write calculations and comparisons inside I\(…\)"),
    "dates": ("died ~ seen", r"'seen' holds dates; make numbers of them first, such as days: frame\['seen'\] = "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_formula_cannot_have_is_told_with_a_way_out(case):
    of("formulaic")
    formula, told = REFUSED[case]
    frame = trial().dropna()
    with pytest.raises(gordan.InputError, match=told):
        gordan.diagnose(formula, data=frame.assign(seen=pandas.date_range("2024", periods=len(frame))))


def test_text_in_a_frame_of_polars_is_answered_with_a_line_of_polars():
    polars = of("polars")
    X, y = polars.DataFrame({"age": [*"123456"], "region": [*"ABCABC"]}), [0, 1, 0, 1, 1, 0]
    for line in ("X.with_columns(polars.col('age').cast(float, strict=False))", "X.to_dummies('region', drop_first=True)"):
        with pytest.raises(gordan.InputError) as refused:
            gordan.diagnose(X, y)
        assert f"X = {line}" in str(refused.value)
        X = eval(line, {"X": X, "polars": polars})
    assert [*gordan.diagnose(X, y).columns] == ["age", "region_B", "region_C", "(intercept)"]


def test_columns_to_drop_before_the_fit_are_named():
    """A constant beside the intercept, and 0/1 columns for both sexes: fits need them dropped, which is told."""
    api = of("statsmodels.api")
    r = np.random.default_rng(0)
    frame = pandas.DataFrame({"age": r.integers(20, 80, 60), "sex": r.choice(["f", "m"], 60), "died": r.integers(0, 2, 60)})
    X = pandas.get_dummies(frame[["age", "sex"]], dtype=float)
    for given, name in ((api.Logit(frame.died, api.add_constant(X)), "sex_m"), (api.Logit(frame.died, X.assign(c=7.0)), "c")):
        told = str(gordan.diagnose(given))
        assert told.startswith(f"X is rank-deficient: {name} is a linear combination of the other columns, and left out")
        assert f"The maximum-likelihood estimates exist, and are unique only after {name} is dropped." in told
        assert f"Next: drop {name} first, then fit as usual; " in told
        assert api.Logit(given.endog, gordan.diagnose(given).X.drop(columns=name)).fit(disp=0).mle_retvals["converged"]


@pytest.mark.parametrize("n", [80, 5000])  # all rows, and a sample of them
@pytest.mark.parametrize("form", ["frame", "sparse", "formula", "no constant", "multinomial"])
def test_columns_that_depend_on_others_up_to_rounding_are_named(form, n):
    """The estimates exist and are unique, since rounding makes the columns independent, but no program finds them."""
    r = np.random.default_rng(0)
    frame = pandas.DataFrame({"age": r.uniform(20, 80, n).round(1), "x": r.normal(size=n).round(2)})
    frame["age2"], frame["powers"] = frame.age * 12, frame.age**3
    frame["rare"] = (np.arange(n) == 1) + 0.0  # which a sample does not see
    frame["seldom"] = (np.arange(n) % 79 == 1) + 0.0
    y = pandas.Series(r.integers(0, 2, n), name="y")
    y[[1, 80 % n]], frame.loc[[0, 80 % n], "rare"] = [0, 1], 1.0
    if form == "formula":
        of("formulaic")
        found = gordan.diagnose("y ~ age + x + age2 + powers", data=frame.assign(y=y))
    elif form == "sparse":
        found = gordan.diagnose(sp.csr_array(frame), y)
    else:
        model = "multinomial" if form == "multinomial" else "logistic"
        found = gordan.diagnose(frame, y, model=model, intercept="none" if form == "no constant" else "free")
    age, age2 = ("x0", "x2") if form == "sparse" else ("age", "age2")
    assert found.dependent == ()
    told = [line for line in str(found).splitlines() if line.startswith("Notice (not proved)")]
    assert len(told) == 1
    assert f"{age2} is a linear combination of {age} up to rounding; programs may fail to converge" in told[0]
    if found.kind == "overlap":
        assert f"Next: drop {age2} first, then fit as usual; " in repr(found)
    rounded = frame[["age", "x"]].assign(age2=frame.age2.round(-1))  # highly correlated, and yet a fit finds the estimates
    assert "Notice" not in str(gordan.diagnose(rounded, y))


@pytest.mark.parametrize("form", ["formula", "statsmodels", "columns", "sparse", "multinomial"])
def test_the_ridge_line_penalizes_no_intercept(form):
    """A penalty on the constant, or on columns in large units, would turn the sign of age."""
    r = np.random.default_rng(1)
    frame = pandas.DataFrame({"age": r.uniform(60, 90, 200).round(), "test": r.integers(0, 2, 200)})
    frame["died"] = (r.random(200) < 1 / (1 + np.exp(4 - 0.05 * frame.age))).astype(int)
    frame.loc[frame.test == 1, "died"] = 0
    X, died = frame[["age", "test"]], frame.died
    if form == "formula":
        of("formulaic")
        d = gordan.diagnose("died ~ age + test", data=frame)
    elif form == "statsmodels":
        api = of("statsmodels.api")
        d = gordan.diagnose(api.Logit(died, api.add_constant(X)))
    else:
        d = gordan.diagnose(sp.csr_array(X) if form == "sparse" else X, died, model=form if form == "multinomial" else "logistic")
    assert 'intercept="free"' in d.next_steps[-1]
    assert d.next_steps[-1].endswith("# ridge of standardized columns, without penalty on the intercept")
    w = evaluated(d)
    w = w[:, 1] - w[:, 0] if form == "multinomial" else w
    standard = X.to_numpy() / X.std(ddof=0).to_numpy()
    expected = gordan.minimize_loss(standard, died, loss="logistic", C=1.0).w
    assert w[0] > 0.2 > -2 > w[1]
    np.testing.assert_allclose(w, expected, rtol=0.3 if form == "multinomial" else 2e-2)


def test_a_model_without_a_constant_is_said_to_have_none():
    api = of("statsmodels.api")
    X, y = pandas.DataFrame({"biom": [1.0, 2, 3, 4], "t": [1.0, 1, 2, 1]}), pandas.Series([0, 0, 1, 1], name="y")
    d = gordan.diagnose(api.Logit(y - 0.0, X - 2.5))
    assert "Notice: the model has no constant; if one is meant, pass sm.add_constant(X) to statsmodels" in repr(d)
    assert d.next_steps[-1].endswith('intercept="none").w  # ridge of scaled columns')
    assert np.isfinite(evaluated(d)).all()
    assert "constant" not in repr(gordan.diagnose(api.Logit(y, api.add_constant(X))))
    formula = of("statsmodels.formula.api").logit("y ~ t + biom - 1", X.assign(y=y))
    assert "constant" not in repr(gordan.diagnose(formula))  # which says so itself
    sexes = pandas.DataFrame({"f": [1.0, 0, 1, 0, 1], "m": [0.0, 1, 0, 1, 0]})  # whose sum is the constant
    assert "constant" not in repr(gordan.diagnose(api.Logit([0, 1, 1, 0, 0], sexes)))


def test_firth_converges_where_the_separation_is_complete(recwarn):
    of("firthmodels")
    X = pandas.DataFrame({"biom": np.linspace(0, 10, 60) ** 3})
    d = gordan.diagnose(X, (X.biom > 400).astype(int))
    space = {"d": d}
    exec(d.next_steps[0], space)
    assert np.isfinite(eval(d.next_steps[2], space)).all()
    assert not [each for each in recwarn if "iterations" in str(each.message)]


def removed(api):
    """Results of a formula, without their data."""
    results = api.logit("died ~ age", trial().dropna()).fit(disp=0)
    results.remove_data()
    return results


ANSWERED = {
    "data that was removed": (lambda f: gordan.diagnose(removed(of("statsmodels.formula.api"))), "was removed.*pass the data, "),
    "two columns of one name": (
        lambda f: gordan.diagnose("died ~ age", data=pandas.concat([f, f[["age"]]], axis=1)),
        r"data has 2 columns 'age'; .*data.loc\[:, ~data.columns.duplicated\(\)\]",
    ),
    "two columns of weights": (
        lambda f: gordan.diagnose("died ~ age", data=pandas.concat([f, f[["weight"]]], axis=1), sample_weight="weight"),
        "data has 2 columns 'weight'; ",
    ),
    "a frame in place of y": (
        lambda f: gordan.diagnose("died ~ age", f),
        r"passed as data: diagnose\('died ~ age', data=frame\)",
    ),
    "a misspelt weight": (
        lambda f: gordan.diagnose("died ~ age", data=f, sample_weight="weihgt"),
        "data has no column 'weihgt' for sample_weight; did you mean 'weight'\\?",
    ),
    "numbers with commas": (
        lambda f: gordan.diagnose(f[["age"]].astype(str).replace(r"\.", ",", regex=True), f.died),
        r"numbers with a decimal comma, such as '.*,0'; convert it: X\['age'\] = pandas.to_numeric\(X\['age'\].str.replace",
    ),
    "text": (lambda f: gordan.diagnose(f[["age", "region"]], f.died), r"diagnose\('died ~ .', data=X.assign\(died=y\), missing"),
    "text with y as a list": (
        lambda f: gordan.diagnose(f[["age", "region"]], f.died.tolist()),
        r"diagnose\('outcome ~ .', data=X.assign\(outcome=y\), missing",
    ),
}


@pytest.mark.parametrize("case", ANSWERED)
def test_what_is_refused_is_answered_with_what_to_pass(case):
    of("formulaic")
    call, told = ANSWERED[case]
    with pytest.raises(gordan.InputError, match=told):
        call(trial().dropna())


@pytest.mark.parametrize("kind", [object, "str"])
def test_numbers_as_text_that_become_levels_are_told(kind, recwarn):
    of("formulaic")
    frame = pandas.DataFrame({"bmi": [f"2{k % 12},0" for k in range(36)], "y": np.arange(36) // 12 % 2}).astype({"bmi": kind})
    gordan.diagnose("y ~ C(bmi)", data=frame)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="'bmi' holds numbers as text, such as '20,0', so each of 12 values becomes a level"):
        gordan.diagnose("y ~ bmi", data=frame)
    frame["bmi"] = pandas.to_numeric(frame["bmi"].str.replace(",", "."))
    assert [*gordan.diagnose("y ~ bmi", data=frame).columns] == ["Intercept", "bmi"]


def test_what_separates_alone_comes_first_and_is_named():
    frame = pandas.DataFrame({"town": [1.0, 1, 0, 0, 0, 0], "age": [1.0, 3, 2, 3, 1, 4], "biom": [1.0, 2, 3, 6, 7, 8]})
    found = gordan.diagnose(frame, pandas.Series([0, 0, 0, 1, 1, 1], name="died"))
    assert found.explanation == ("biom > 4 exactly when died = 1", "all 2 rows with town = 1 have died = 0")
    assert "methods give tests; or drop or coarsen biom, if it only restates the outcome." in repr(found)


@pytest.mark.parametrize("source", ["formula", "dummies"])
def test_a_level_that_separates_is_to_be_merged(source):
    frame = pandas.DataFrame({"region": ["Bern", "Chur", "Genf"] * 6, "y": [0, 1, 1, 1, 1, 0] * 3})
    if source == "formula":
        of("formulaic")
        found, name = gordan.diagnose("y ~ C(region)", data=frame), "C(region)[T.Chur]"
    else:
        X, name = pandas.get_dummies(frame[["region"]], drop_first=True, dtype=float), "region_Chur"
        found = gordan.diagnose(X, frame.y)
    assert f"or merge level Chur of region with another level (dropping {name} merges it with the baseline)." in repr(found)


def test_rows_without_a_level_are_said_to_be_missing():
    """Zeros in the columns of all levels, which pandas writes for missing values."""
    frame = pandas.DataFrame({"region": [*"AABBCC", None, None], "y": [0, 1] * 3 + [1, 1]})
    (sentence,) = gordan.diagnose(pandas.get_dummies(frame[["region"]], dtype=float), frame.y).explanation
    assert sentence.startswith(
        "all 2 rows with none of region_A, region_B, region_C have y = 1; if all levels of region have columns, region is "
        "missing in these rows: leave them out; otherwise they have the baseline level; with another"
    )
