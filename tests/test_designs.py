"""What statisticians have: formulas, and models of statsmodels."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import gordan

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


def test_an_offset_that_is_not_in_the_lines_is_reported():
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
