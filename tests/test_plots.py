"""The displays draw what they say they draw: the artists are held against the data."""

from __future__ import annotations

from itertools import pairwise

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from scipy import sparse
from sklearn.datasets import load_iris

import gordan
from gordan import BoundaryDisplay, ConvergenceDisplay, LinearClassifier, MarginDisplay, MaxMarginClassifier, ProvedDisplay
from gordan.plots import boundary

X, Y = load_iris(return_X_y=True)
FLAT = X[:, 2:]


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def drawn(display):
    """Draw for good, so that whatever fails late fails here."""
    display.figure_.canvas.draw()
    return display


def texts(display):
    return " ".join(text.get_text() for text in display.ax_.get_legend().get_texts())


@pytest.mark.parametrize("kind", ["bracket", "gap"])
@pytest.mark.parametrize("method", ["auto", "smooth_perceptron", "mirror_prox_perceptron"])
def test_convergence(method, kind):
    model = MaxMarginClassifier(method=method, tol=1e-3).fit(X, Y == 0)
    display = drawn(ConvergenceDisplay.from_estimator(model, kind=kind))
    assert (np.diff(display.lower) >= 0).all()
    assert (np.diff(display.upper) <= 0).all()
    assert display.lower[-1] <= display.margin * (1 + 1e-9)
    assert display.margin <= display.upper[-1] * (1 + 1e-9)
    assert ("theorem" in texts(display)) == (method != "auto")
    if display.promised is not None:  # a theorem: the measured bracket is inside the promised one at every recorded round
        low, high = display.promised
        assert (low <= display.lower + 1e-9).all()
        assert (display.upper <= high + 1e-9).all()
        assert high[-1] - low[-1] < high[0] - low[0]


def test_several_traces_have_colours_marks_and_labels_of_their_own():
    A = np.where(Y == 0, 1, -1)[:, None] * np.column_stack((X, np.ones(len(X))))
    names = ["smooth_perceptron", "mirror_prox_perceptron", "perceptron"]
    traces = [gordan.play(A, name, 60) for name in names]
    for kind in ("bracket", "gap", "regret"):
        display = drawn(ConvergenceDisplay.from_traces(traces, kind=kind))
        shown = [line for line in display.ax_.get_lines() if line.get_label() in names]
        assert len(shown) == (2 if kind == "regret" else 3)  # the Perceptron plays no game
        assert len({line.get_color() for line in shown}) == len({line.get_marker() for line in shown}) == len(shown)
        assert "promised by the theorem" in texts(display)
        if kind == "regret":
            trace = traces[0]
            np.testing.assert_allclose(shown[0].get_ydata(), (trace.regret_w + trace.regret_p) / trace.weight)
    named = drawn(ConvergenceDisplay.from_traces(traces[:2], labels=["one", "two"], kind="gap"))
    assert texts(named).startswith("one two")
    assert "one, two" in repr(named)
    for wrong, message in (([], "0 traces"), ([traces[0], 3], "trace is 3")):
        with pytest.raises(gordan.InputError, match=message):
            ConvergenceDisplay.from_traces(wrong)
    with pytest.raises(gordan.InputError, match="2 traces and 1 labels"):
        ConvergenceDisplay.from_traces(traces[:2], labels=["one"])
    with pytest.raises(gordan.InputError, match="plays no game"):
        ConvergenceDisplay.from_trace(traces[2], kind="regret")


def test_panels_have_one_size_and_say_what_they_show():
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    for ax, own, options in ((axes[0], Y < 2, {}), (axes[1], Y > 0, {"nu": 0.3})):
        model = MaxMarginClassifier(**options).fit(FLAT[own], names[own])
        display = BoundaryDisplay.from_estimator(model, FLAT[own], names[own], ax=ax)
        marks = [points.get_paths()[0].vertices.shape for points in ax.collections[-3:-1]]
        assert len({*marks}) == 2  # a mark of its own for each class
        assert ax.get_title() == display.title != ""
    figure.canvas.draw()
    left, right = (ax.get_position() for ax in axes)
    np.testing.assert_allclose([left.width, left.height], [right.width, right.height], rtol=0.02)
    for ax, own in zip(axes, (Y < 2, Y > 0), strict=True):  # a unit is as long across as up
        box, (x, y) = ax.get_window_extent(), (np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim()))
        assert box.width / x == pytest.approx(box.height / y, rel=1e-6)
        assert (FLAT[own] >= [ax.get_xlim()[0], ax.get_ylim()[0]]).all()
        assert (FLAT[own] <= [ax.get_xlim()[1], ax.get_ylim()[1]]).all()


def test_panels_of_several_traces_have_one_height_and_name_their_kind():
    A = np.where(Y == 0, 1, -1)[:, None] * np.column_stack((X, np.ones(len(X))))
    traces = [gordan.play(A, name, 60) for name in ("smooth_perceptron", "mirror_prox_perceptron", "normalized_gradient_descent")]
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.4), layout="constrained")
    for kind, ax in zip(("bracket", "gap", "regret"), axes, strict=True):
        ConvergenceDisplay.from_traces(traces, kind=kind, ax=ax)
        single = drawn(ConvergenceDisplay.from_trace(traces[0], kind=kind))
        assert single.ax_.get_title() == f"smooth_perceptron: {ax.get_title()}"
    figure.canvas.draw()
    assert len({round(ax.get_position().height, 6) for ax in axes}) == 1
    assert len({ax.get_title() for ax in axes}) == 3
    assert "γ* = " in " ".join(text.get_text() for text in axes[0].texts)
    plt.close(figure)


def test_convergence_of_a_trace_and_of_one_of_many():
    trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], "smooth_perceptron", 200)
    _, ax = plt.subplots()
    assert drawn(ConvergenceDisplay.from_trace(trace, ax=ax)).ax_ is ax
    together = MaxMarginClassifier(on_inseparable="ignore").fit(X, Y)
    with pytest.raises(gordan.InputError, match="found together have none"):
        ConvergenceDisplay.from_estimator(together, problem=1)
    model = MaxMarginClassifier(on_inseparable="ignore", method="double_oracle").fit(X, Y)
    assert drawn(ConvergenceDisplay.from_estimator(model, problem=1)).margin == pytest.approx(model.margin_[1].mean())
    labels = np.column_stack((Y == 0, Y != 0))  # two labels have two planes, two classes have one
    several = MaxMarginClassifier(method="double_oracle").fit(X, labels)
    assert drawn(ConvergenceDisplay.from_estimator(several, problem=1)).margin == pytest.approx(several.margin_[1].mean())


def test_margins():
    model = MaxMarginClassifier().fit(X, Y == 0)
    display = drawn(MarginDisplay.from_estimator(model, X, Y == 0))
    assert np.flatnonzero(display.support).tolist() == model.support_.tolist()
    np.testing.assert_allclose(display.closest, (-model.margin_[0], model.margin_[0]), rtol=1e-8)
    np.testing.assert_allclose(display.distances, model.decision_function(X), atol=1e-12)
    heights = sum(patch.get_height() for patch in display.ax_.patches)
    assert heights == len(X)  # every row is in some bar
    assert "support rows, False (1) support rows, True (2)" in texts(display)
    again = drawn(display.plot(bins=10))
    assert len(again.ax_.patches) < len(drawn(display.plot(bins=60)).ax_.patches)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_margins_of_one_of_many_and_of_other_data(multi_class):
    model = MaxMarginClassifier(nu=0.5, multi_class=multi_class, on_inseparable="ignore").fit(X, Y)
    display = drawn(MarginDisplay.from_estimator(model, sp.csr_array(X), Y, problem=2))
    assert len(display.distances) == (100 if multi_class == "ovo" else 150)
    assert display.soft
    assert display.labels == (("1", "2") if multi_class == "ovo" else ("the rest", "2"))
    other = drawn(MarginDisplay.from_estimator(model, X[::2], Y[::2], problem=2))
    assert not other.support.any()
    assert other.closest is None


def assert_hull(corners, points):
    """The corners are some of the points, and all points are to the left of each edge; each corner is a turn to the left."""
    assert {tuple(corner) for corner in corners} <= {tuple(point) for point in points}
    for a, b, c in zip(corners, np.roll(corners, -1, axis=0), np.roll(corners, -2, axis=0), strict=True):
        left = np.array([a[1] - b[1], b[0] - a[0]])
        assert ((points - a) @ left >= -1e-12 * np.abs(left).max()).all()
        assert (c - b) @ left > 0


@pytest.mark.parametrize("scale", [1.0, 2.0**-70, 2.0**70])
def test_hulls_of_columns_of_different_scales(scale):
    points = np.random.default_rng(0).standard_normal((40, 2))
    assert_hull(boundary._hull(points * [scale, 1.0], None) / [scale, 1.0], points)
    line = np.outer(np.arange(5.0), [scale, 2.0])
    assert boundary._hull(line, None).tolist() == line[[0, -1]].tolist()


def test_boundary_of_a_hard_margin():
    model = MaxMarginClassifier().fit(FLAT, Y == 0)
    display = drawn(BoundaryDisplay.from_estimator(model, FLAT, Y == 0))
    for k, hull in enumerate(display.hulls):
        assert_hull(hull, FLAT[(Y == 0) == bool(k)])
    low, high = display.closest
    assert np.linalg.norm(high - low) == pytest.approx(2 * model.margin_[0], rel=1e-9)
    np.testing.assert_allclose(model.decision_function([(low + high) / 2]), 0, atol=1e-9)
    assert "hulls, 1.3 apart" in texts(display)
    assert display.ax_.get_xlabel() == "x₀"


def test_boundary_of_a_soft_margin_with_names():
    frame = pandas.DataFrame(FLAT[50:], columns=["length", "width"])
    model = MaxMarginClassifier(nu=0.3).fit(frame, Y[50:])
    display = drawn(BoundaryDisplay.from_estimator(model, frame, Y[50:]))
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("length", "width")
    # the closest points are in the reduced hulls, and nothing of a hull is nearer to the other than they are
    w = model.coef_[0]
    low, high = display.closest
    assert (display.hulls[0] @ w).max() == pytest.approx(low @ w, abs=1e-3)
    assert (display.hulls[1] @ w).min() == pytest.approx(high @ w, abs=1e-3)
    assert (display.hulls[0] @ w).max() <= low @ w + 1e-9
    assert "reduced hulls" in texts(display)


def test_boundary_of_three_classes_and_of_nothing():
    model = MaxMarginClassifier(on_inseparable="ignore").fit(FLAT, Y)
    display = drawn(BoundaryDisplay.from_estimator(model, FLAT, Y))
    across, up, predicted = display.grid
    points = np.column_stack([part.ravel() for part in np.meshgrid(across[::50], up[::50])])
    np.testing.assert_array_equal(model.predict(points), model.classes_[predicted[::50, ::50].ravel()])
    xor = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    nothing = MaxMarginClassifier(on_inseparable="ignore").fit(xor, [0, 0, 1, 1])
    assert drawn(BoundaryDisplay.from_estimator(nothing, xor, [0, 0, 1, 1])).planes == []


def test_a_display_is_described_in_one_line():
    """A notebook shows the picture and this; not all of its arrays."""
    model = MaxMarginClassifier().fit(FLAT, Y == 0)
    assert repr(ConvergenceDisplay.from_estimator(model)).startswith("ConvergenceDisplay(double_oracle: ")
    assert repr(MarginDisplay.from_estimator(model, FLAT, Y == 0)) == "MarginDisplay(True against False: 150 rows)"
    assert repr(BoundaryDisplay.from_estimator(model, FLAT, Y == 0)) == "BoundaryDisplay(False, True: 150 rows)"


def test_long_names_stay_inside_the_figure():
    names = np.array(["a class", "another class with a name that is longer than a legend"])[(Y == 0).astype(int)]
    model = MaxMarginClassifier().fit(FLAT, names)
    for kind in (MarginDisplay, BoundaryDisplay):
        display = drawn(kind.from_estimator(model, FLAT, names))
        legend, page = (part.get_window_extent() for part in (display.ax_.get_legend(), display.figure_))
        assert page.x0 <= legend.x0 < legend.x1 <= page.x1


def test_more_traces_than_colours():
    display = drawn(ConvergenceDisplay.from_traces([gordan.play(FLAT, "smooth_perceptron", 2)] * 9, kind="gap"))
    lines = [line for line in display.ax_.get_lines() if line.get_marker() not in ("", "None")]
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(lines) == 9


def test_what_cannot_be_drawn_is_refused():
    model = MaxMarginClassifier().fit(X, Y == 0)
    with pytest.raises(gordan.InputError, match="two features"):
        BoundaryDisplay.from_estimator(model, X, Y == 0)
    with pytest.raises(gordan.InputError, match="problem is 3"):
        MarginDisplay.from_estimator(model, X, Y == 0, problem=3)
    with pytest.raises(gordan.InputError, match="both sides"):
        MarginDisplay.from_estimator(model, X[:50], (Y == 0)[:50])
    with pytest.raises(gordan.InputError, match="this display is for a MaxMarginClassifier"):
        MarginDisplay.from_estimator(LinearClassifier().fit(X, Y == 0), X, Y == 0)
    with pytest.raises(gordan.InputError, match="not a fitted"):
        ConvergenceDisplay.from_estimator(MaxMarginClassifier())
    with pytest.raises(gordan.InputError, match="kind is 'nice'"):
        ConvergenceDisplay.from_estimator(model, kind="nice")
    with pytest.raises(gordan.InputError, match=r"trace is 3; pass what `gordan\.play` returns"):
        ConvergenceDisplay.from_trace(3)


def test_loaded_models_have_margins_but_no_trace(tmp_path):
    MaxMarginClassifier().fit(X, Y == 0).save(tmp_path / "model")
    model = MaxMarginClassifier.load(tmp_path / "model")
    drawn(MarginDisplay.from_estimator(model, X, Y == 0))
    with pytest.raises(gordan.InputError, match="no trace"):
        ConvergenceDisplay.from_estimator(model)


def test_rows_named_in_another_order_are_not_drawn():
    X, y = load_iris(as_frame=True, return_X_y=True)
    X, y = X.iloc[:100, :2], y.iloc[:100]
    estimator = MaxMarginClassifier().fit(X, y)
    for display in (MarginDisplay, BoundaryDisplay):
        display.from_estimator(estimator, X, y)
        with pytest.raises(gordan.InputError, match=r"y = y\.loc\[X\.index\]"):
            display.from_estimator(estimator, X, y.iloc[::-1])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("kind", ["bracket", "gap"])
def test_convergence_of_a_loss(loss, kind):
    """The ends of the bracket never part, and hold the certified least value."""
    result = gordan.minimize_loss(X, Y == 2, loss=loss, tol=1e-8)
    display = drawn(ConvergenceDisplay.from_trace(result.trace, kind=kind))
    assert display.objective
    assert (np.diff(display.lower) >= 0).all()
    assert (np.diff(display.upper) <= 0).all()
    assert display.lower[-1] <= result.objective[1] * (1 + 1e-9)
    assert display.upper[-1] >= result.objective[0] * (1 - 1e-9)
    assert display.ax_.get_ylabel() in ("objective", "gap: (upper - lower)/upper")
    assert "least value" in repr(display)


def test_planes_of_least_loss_are_drawn_by_distances():
    """Unscaled scores are no distances, and the mean of the support rows is no closest point of the hulls."""
    model = MaxMarginClassifier(on_inseparable="ignore").fit(FLAT[50:], Y[50:])
    assert model.loss_ == "squared_hinge"
    display = drawn(MarginDisplay.from_estimator(model, FLAT[50:], Y[50:]))
    w, b = model.coef_[0], model.intercept_[0]
    np.testing.assert_allclose(display.distances, (FLAT[50:] @ w + b) / np.linalg.norm(w))
    assert display.closest is None
    assert drawn(BoundaryDisplay.from_estimator(model, FLAT[50:], Y[50:])).closest is None
    run = drawn(ConvergenceDisplay.from_estimator(model))
    assert run.objective
    assert model.objective_[0] <= run.margin <= model.objective_[1]


@pytest.mark.parametrize("spread", [3, 30, 3000])
def test_labels_of_a_logarithmic_axis_do_not_overlap(spread):
    leads = np.geomspace(0.4, 0.4 * spread, 60)
    display = ProvedDisplay(leads, leads > 1, None, "hinge").plot()
    display.figure_.set_size_inches(4.5, 4)
    display.figure_.canvas.draw()
    labels = [label for label in display.ax_.get_xticklabels(which="both") if label.get_text()]
    low, high = display.ax_.get_xlim()
    boxes = sorted(label.get_window_extent().extents.tolist() for label in labels if low <= label.get_position()[0] <= high)
    assert len(boxes) >= 2
    assert all(left[2] < right[0] for left, right in pairwise(boxes))


@pytest.mark.parametrize("several", [False, True])
def test_which_rows_are_proved(several):
    y = Y if several else Y == 2
    model = LinearClassifier("logistic", max_iter=3, tol=1.0).fit(X, y)
    display = drawn(ProvedDisplay.from_estimator(model, X, y, bins=10))
    np.testing.assert_array_equal(display.proved, model.same_prediction(X))
    np.testing.assert_array_equal(display.wrong, model.predict(X) != y)
    scores = np.sort(np.atleast_2d(model.decision_function(X).T).T, axis=1)
    np.testing.assert_allclose(display.ahead, scores[:, -1] - scores[:, -2] if several else np.abs(scores[:, 0]))
    assert 0 < display.proved.sum() < 150
    proved, open_ = display.ax_.patches
    counts = open_.get_data().values
    assert counts.sum() == 150  # stacked: the upper edge counts all rows
    assert proved.get_data().values.sum() == display.proved.sum()
    assert f"open ({150 - display.proved.sum()})" in texts(display)
    assert drawn(ProvedDisplay.from_estimator(model, X)).wrong is None
    with pytest.raises(gordan.InputError, match="not a fitted LinearClassifier"):
        ProvedDisplay.from_estimator(MaxMarginClassifier(), X)


def test_which_rows_of_several_labels_are_proved():
    table = np.c_[Y == 0, Y == 1, Y > 0].astype(int)
    model = LinearClassifier("logistic", max_iter=3, tol=1.0).fit(X, table)
    for given in (table, sparse.csr_matrix(table)):
        display = drawn(ProvedDisplay.from_estimator(model, X, given, bins=10))
        np.testing.assert_array_equal(display.wrong, (model.predict(X) != table).any(axis=1))
        np.testing.assert_array_equal(display.ahead, np.abs(model.decision_function(X)).min(axis=1))
    with pytest.raises(gordan.InputError, match=r"y has shape \(150,\), but the predictions for X have \(150, 3\)"):
        ProvedDisplay.from_estimator(model, X, Y)
    with pytest.raises(gordan.InputError, match=r"y has shape \(10,\), but the predictions for X have \(150,\); pass labels"):
        ProvedDisplay.from_estimator(LinearClassifier().fit(X, Y), X, Y[:10])


@pytest.mark.parametrize("y", [Y == 2, Y], ids=["two classes", "three"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "multinomial"])
def test_convergence_and_boundary_of_a_loss(loss, y):
    model = LinearClassifier(loss).fit(FLAT, y)
    display = drawn(BoundaryDisplay.from_estimator(model, FLAT, y, resolution=50))
    assert not display.support.any()
    assert display.closest is None
    assert len(display.planes) == (model.kind_ == "binary")
    assert display.title == f"least {loss.replace('_', ' ')} loss"
    several = model.kind_ == "one-vs-rest"
    if several:  # classes that were found one by one
        model.trace_ = [gordan.minimize_loss(FLAT, y == label, loss=loss).trace for label in model.classes_]
    display = drawn(ConvergenceDisplay.from_estimator(model, problem=int(several)))
    assert display.margin == pytest.approx(np.reshape(model.objective_, (-1, 2))[int(several)].mean())
    assert repr(display).startswith(f"ConvergenceDisplay({loss.replace('_', ' ')}: ")
    assert "least value" in repr(display)
    with pytest.raises(gordan.InputError, match="this display is for a MaxMarginClassifier"):
        MarginDisplay.from_estimator(model, FLAT, y)
    model.trace_ = [None] * 3 if several else None  # as of classes that are found together
    with pytest.raises(gordan.InputError, match=r"found together have none \(use minimize_loss\(X, y == label\)\.trace\)"):
        ConvergenceDisplay.from_estimator(model, problem=1)
