"""What `diagnose` says of designs: the columns, levels and next steps that it names."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from test_designs import of, trial

import gordan

pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'gordan[data]'")


def evaluated(d):
    """The estimates that the last line of the code for a diagnosis evaluates to, after the lines before it ran."""
    *before, last = (line for line in d.next_steps if "firth" not in line.lower())
    space = {"d": d, "gordan": gordan}
    exec("\n".join(before), space)
    return eval(last, space)


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
    """The level is named, and what is reported works."""
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
def test_how_to_expand_two_counts_in_a_formula_is_reported(left):
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
    """The code that is reported has the columns and the weights of the model."""
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
def test_what_a_formula_cannot_have_is_reported_with_a_way_out(case):
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
    """A constant beside the intercept, and 0/1 columns for both sexes: fits need them dropped, which is reported."""
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
def test_numbers_as_text_that_become_levels_are_reported(kind, recwarn):
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
