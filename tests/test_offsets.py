"""Columns that are far from 0: losses with a free intercept are minimized and proved about centred rows."""

import math
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from checkers import both
from flint import ctx
from loss_oracle import BITS, Data, minimum
from loss_problems import KINDS, LOSSES, enclosure_faults, matrix, region_faults, rough

import gordan
from gordan.certificates.matrix import MIN_OFFSET_RATIO, Matrix, far_origin
from gordan.certificates.regions import Place
from gordan.intercepts import Intercept
from gordan.rows import memory, stored
from gordan.rows.blocks import Blocks, Loadable
from gordan.rows.memory import Dense

ALL = (*LOSSES, "multinomial")
WHERE = (1e5, -3e6, 1.7e9)


def overlapping(n=400, d=3, seed=0):
    r = np.random.default_rng(seed)
    X = np.round(r.normal(size=(n, d)) * 2.0**20) / 2.0**20  # so that an offset can be added without rounding
    return X, (X.sum(axis=1) + r.normal(size=n) > 0).astype(int)


def moved(X, off, column=0):
    """X with a column that is `off` away, exactly."""
    Z = X.copy()
    Z[:, column] += off
    assert (Z[:, column] - off == X[:, column]).all()
    return Z


def by_parts(X):
    return Blocks(
        [Loadable(len(part), part.size, lambda part=part: Dense(part)) for part in np.array_split(X, 3)], X.shape[1], X.dtype
    )


def in_file(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


# ---- which columns are centred ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int64, np.int32])
@pytest.mark.parametrize("sign", [1, -1])
def test_differences_are_exact(kind, sign):
    r = np.random.default_rng(0)
    far = (sign * (1000 + r.random(300) * 15)).astype(kind)
    X = np.column_stack((far, r.integers(-3, 4, 300).astype(kind), (sign * r.integers(1, 9, 300)).astype(kind)))
    centred = Matrix(stored(X)).centred
    nearest = float(far[np.argmin(np.abs(far.astype(float)))])
    assert centred.origin.tolist() == [nearest, 0, 0]
    differences = X.astype(np.longdouble) - centred.origin
    assert (centred.storage.plain() == differences).all()
    assert centred.centred is centred


def column(low, high):
    return np.column_stack((np.linspace(low, high, 50), np.linspace(-1, 1, 50)))


@pytest.mark.parametrize(
    ("X", "is_centred"),
    [
        (column(MIN_OFFSET_RATIO, MIN_OFFSET_RATIO + 1), True),
        (column(MIN_OFFSET_RATIO, math.nextafter(MIN_OFFSET_RATIO + 1, math.inf)), False),
        (column(-MIN_OFFSET_RATIO - 1, -MIN_OFFSET_RATIO), True),
        (column(1e5, 1.5e5), True),  # far enough for a smaller ratio
        (column(1e5, math.nextafter(1.5e5, math.inf)), False),
        (column(0.9e5, 1.2e5), False),
        (column(1.2e9, 1.7e9), True),  # timestamps of fifteen years
        (column(100, 200), False),
        (column(100, math.nextafter(200, math.inf)), False),
        (column(-1, 100), False),
        (column(-100, 100), False),
        (column(0, 0), False),
        (column(1, 1), False),  # the constant of the intercept
        (column(2, 2), True),
        (column(1e308, 1.01e308), True),
    ],
)
def test_what_is_far(X, is_centred):
    # whatever the order of the rows, their storage, and parts of them
    found = far_origin(Matrix(stored(X)))
    assert (found is not None) == is_centred
    for other in (X[::-1].copy(), sp.csr_array(X), by_parts(X)):
        again = far_origin(Matrix(stored(other)))
        assert again is None if found is None else (again == found).all()
    assert found is None or far_origin(Matrix(stored(X[10:20]))) is not None


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "hinge"])
def test_timestamps_of_three_years_are_solved(loss):
    r = np.random.default_rng(0)
    y = r.integers(0, 2, 500)
    X = np.column_stack((r.normal(size=(500, 3)) + y[:, None], 1.6e9 + r.integers(0, 94_608_000, 500)))
    assert gordan.minimize_loss(X, y, loss=loss, tol=2e-4).status == "solved"


def test_entries_that_are_not_finite_or_not_stored():
    X = column(1e6, 1e6 + 1)
    for value in (math.nan, math.inf, -math.inf, 0.0):
        bad = X.copy()
        bad[33, 0] = value
        for rows in (bad, sp.csr_array(bad), by_parts(bad)):
            assert far_origin(Matrix(stored(rows))) is None
        if not math.isfinite(value):
            with pytest.raises(gordan.InputError, match=r"X\[33, 0\]"):
                gordan.minimize_loss(bad, np.arange(50) % 2)
    bad = moved(X, 0)
    bad[7, 1] = math.nan  # in another column
    with pytest.raises(gordan.InputError, match=r"X\[7, 1\] is nan"):
        gordan.minimize_loss(bad, np.arange(50) % 2)
    with pytest.raises(gordan.InputError, match=r"X\[7, 1\] is nan"):  # the number of the row as given, with rows left out
        gordan.minimize_loss(bad, np.arange(50) % 2, sample_weight=np.arange(50) > 3)


def test_ordinary_data_is_neither_copied_nor_read(monkeypatch):
    X, y = overlapping()

    def refused(*_):
        raise AssertionError("read or copied")

    for name in ("extremes", "minus"):
        for kind in (memory.DenseBlock, memory.SparseBlock, Dense, memory.Sparse):
            if hasattr(kind, name):
                monkeypatch.setattr(kind, name, refused)
    for rows in (X, sp.csr_array(X), by_parts(X), np.column_stack((X, np.ones(len(X))))):
        m = Matrix(stored(rows))
        assert m.centred is m
    assert gordan.minimize_loss(X, y).status == "solved"
    Z = moved(X, 1e6)
    for kind in ("penalized", "none"):
        gordan.minimize_loss(Z, y, intercept=kind, max_iter=2)
    with pytest.raises(AssertionError):
        gordan.minimize_loss(Z, y)


def test_intercepts_are_rounded_once():
    m = Matrix(stored(column(1e9, 1e9 + 1))).centred
    w = np.array([0.1, 0.2])
    assert m.inward(w, -1e8) == float((10**9 * 3602879701896397 - 10**8 * 2**55) / 2**55)
    assert m.outward(w, m.inward(w, -1e8)) == -1e8
    assert m.inward(np.array([1e308, 0.0]), 0.0) == math.inf
    assert m.inward(np.array([-1e308, 0.0]), 0.0) == -math.inf
    assert math.isnan(m.inward(w, math.nan))
    assert m.inward(np.column_stack((w, -w)), np.array([0.0, 1.0])).tolist() == [m.inward(w, 0.0), m.inward(-w, 1.0)]
    assert m.plane_outward(m.plane_inward(np.array([0.5, 0.2, 3.0]))).tolist() == [0.5, 0.2, 3.0]
    assert m.relative(np.array([1e9 + 0.5, 0.25])).tolist() == [0.5, 0.25]
    assert m.relative(np.array([1e-9, 0.0])) is None


# ---- answers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", WHERE)
@pytest.mark.parametrize("loss", ALL)
def test_answers_do_not_depend_on_the_origin(loss, off):
    X, y = overlapping()
    Z = moved(X, off)
    there, here = gordan.minimize_loss(Z, y, loss=loss), gordan.minimize_loss(X, y, loss=loss)
    assert there.status == here.status == "solved"
    assert there.gap <= here.gap + 1e-5
    assert there.objective[0] <= here.objective[1]
    assert here.objective[0] <= there.objective[1]
    assert np.linalg.norm(there.w - here.w) <= there.radius + here.radius
    np.testing.assert_allclose(there.b + off * there.w[0], here.b, atol=1e-2)
    assert (there.coef_interval[..., 0] <= here.coef_interval[..., 1]).all()
    assert (here.coef_interval[..., 0] <= there.coef_interval[..., 1]).all()
    low, high = np.moveaxis(np.asarray(there.intercept_interval), -1, 0)
    assert ((low <= there.b) & (there.b <= high)).all()
    assert there.same_prediction(Z).mean() >= here.same_prediction(X).mean() - 0.1
    assert there.same_prediction(Z).mean() > 0.8
    assert gordan.verify(there.certificate, Z, y)
    if loss != "multinomial":
        assert not {*there.support.tolist()} & {*here.not_support.tolist()}
        assert not {*here.support.tolist()} & {*there.not_support.tolist()}


@pytest.mark.parametrize("loss", ALL)
def test_times_and_single_precision(loss):
    r = np.random.default_rng(1)
    days = r.integers(0, 300, 300)
    times = 1_700_000_000 + 86400 * days
    y = ((days - 150) / 100 + r.normal(size=300) > 0).astype(int)
    result = gordan.minimize_loss(np.column_stack((times, times + 7200 * r.integers(0, 9, 300))), y, loss=loss, C=1e-3)
    assert result.gap <= 1e-4
    narrow = np.column_stack((20000 + days, r.normal(size=300))).astype(np.float32)
    result = gordan.minimize_loss(narrow, y, loss=loss, tol=1e-9)
    assert result.status == "solved"
    assert gordan.verify(result.certificate, narrow.astype(np.float64), y)
    assert result.same_prediction(narrow).mean() > 0.8


@pytest.mark.parametrize("loss", ALL)
def test_storages_prove_the_same(loss, tmp_path, monkeypatch):
    X, y = overlapping(600)
    Z = moved(X, 1.7e9)
    Z[:, 2] = np.where(Z[:, 2] > 1, Z[:, 2], 0.0)
    claim = gordan.minimize_loss(Z, y, loss=loss, tol=1e-5)
    assert claim.gap <= 1e-5
    monkeypatch.setattr("gordan.rows.mapped.LARGE_FILE_BYTES", 1 << 10)
    held = {"csr": sp.csr_array(Z), "blocks": by_parts(Z), "file": in_file(Z, tmp_path)}
    assert stored(held["file"]).on_disk
    try:
        import torch

        held["torch"] = torch.from_numpy(Z)
    except ImportError:
        pass
    for name, rows in held.items():
        assert gordan.verify(claim.certificate, rows, y), name
        centred = Matrix(stored(rows)).centred
        assert centred.computed == (name != "csr")
    found = gordan.minimize_loss(held["csr"], y, loss=loss)
    assert found.gap <= 1e-4
    assert gordan.verify(found.certificate, Z, y)
    assert found.same_prediction(held["blocks"]).mean() > 0.8


def test_without_memory_for_a_copy(monkeypatch):
    X, y = overlapping()
    Z = moved(X, 1e5)
    claim = gordan.minimize_loss(Z, y, loss="logistic").certificate
    monkeypatch.setattr(memory, "fits", lambda size: False)
    assert Matrix(stored(Z)).centred.computed
    assert gordan.verify(claim, Z, y)
    assert gordan.minimize_loss(Z, y, loss="logistic").gap <= 1e-4


@pytest.mark.parametrize("loss", LOSSES)
def test_tables_of_labels(loss):
    X, y = overlapping()
    Z = moved(X, 1.7e9, 1)
    r = np.random.default_rng(0)
    Y = np.array(
        [2 * y - 1, np.where(r.random(len(y)) < 0.3, 0, 1 - 2 * y), np.where(X[:, 0] + r.normal(size=len(y)) > 0, 1, -1)]
    ).T
    there, here = gordan.minimize_loss(Z, Y, loss=loss), gordan.minimize_loss(X, Y, loss=loss)
    assert there.status.tolist() == here.status.tolist() == ["solved"] * 3
    for j in range(3):
        assert there.objective[j, 0] <= here.objective[j, 1]
        assert here.objective[j, 0] <= there.objective[j, 1]
        assert gordan.verify(there[j].certificate, Z, Y[:, j])
        assert there[j].same_prediction(Z).mean() > 0.8
    again = gordan.minimize_loss(Z, Y, loss=loss, start=there)
    assert again.status.tolist() == ["solved"] * 3


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_tables_that_share_passes(loss):
    X, y = overlapping(600, 80)  # wide enough for that
    Z = moved(X, 1e6, 5)
    Y = np.array([y, X[:, 0] > 0, X[:, 3] > X[:, 1]]).T.astype(bool)
    for limit in (None, 20.0):
        there = gordan.minimize_loss(Z, Y, loss=loss, time_limit=limit)
        assert there.status.tolist() == ["solved"] * 3
        assert all(gordan.verify(one.certificate, Z, Y[:, j]) for j, one in enumerate(there))
        assert all(one.same_prediction(Z).mean() > 0.8 for one in there)


@pytest.mark.parametrize("loss", ALL)
def test_starts_weights_and_checkpoints(loss, tmp_path):
    X, y = overlapping()
    Z, weights = moved(X, 1.7e9), np.random.default_rng(0).integers(0, 4, len(X))
    full = gordan.minimize_loss(Z, y, loss=loss, sample_weight=weights, class_weight="balanced")
    assert full.status == "solved"
    assert gordan.verify(full.certificate, Z, y)
    again = gordan.minimize_loss(Z, y, loss=loss, sample_weight=weights, class_weight="balanced", start=full)
    assert again.status == "solved"
    assert again.n_iter <= full.n_iter
    file, seen = tmp_path / "run", []
    first = gordan.minimize_loss(
        Z, y, loss=loss, max_iter=1, checkpoint=file, callback=lambda moment: seen.append(moment.w_out) and None
    )
    assert first.status == "iteration-limit"
    resumed = gordan.minimize_loss(Z, y, loss=loss, checkpoint=file)
    assert resumed.status == "solved"
    assert resumed.n_iter >= first.n_iter
    b = seen[-1][-1]
    assert np.all(np.abs(b + 1.7e9 * seen[-1][0]) < 1e-3 * np.abs(b) + 10)  # in the coordinates of the user


def test_a_hinge_that_is_separable():
    # z ≥ 1 is to hold for the rounded intercept, too, since C multiplies what is missing
    X, y = overlapping(200)
    Z = moved(X[np.abs(X[:, 0]) > 0.2], 1e6)
    y = (Z[:, 0] > 1e6).astype(int)
    for loss in ("hinge", "squared_hinge"):
        result = gordan.minimize_loss(Z, y, loss=loss, C=1e3)
        assert result.gap <= 1e-4
        assert gordan.verify(result.certificate, Z, y)
        assert both(result.certificate, Z.tolist(), y.tolist()) == (True, True)


# ---- proofs, held against exact minimizers ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_all_that_is_proved_holds_for_the_data_as_given(loss, kind):
    r = np.random.default_rng(3)
    for off in (3e4, 2.0**31, -1e12):
        X = np.column_stack((off + r.integers(-9, 9, 6), r.integers(-3, 4, 6))).astype(float)
        y = np.array([1, -1, 1, 1, -1, -1])
        result = gordan.minimize_loss(X, y, loss=loss, intercept=kind, C=0.5)
        objective, optimum, evidence = result._evidence.question.objective, result._optimum, result._evidence
        with ctx.workprec(BITS):
            data = Data.of(X, y, np.full(6, 0.5), loss, kind)
            least = minimum(data, rough(data)) if loss == "logistic" else minimum(data)
            proposal = result.w, result.b, evidence.rows, evidence.alpha
            assert not enclosure_faults(objective, data, least, optimum, proposal)
            if least is not None:
                assert not region_faults(objective, data, least, optimum, result.b, X, Counter())
        assert both(result.certificate, X.tolist(), y.tolist()) == (True, True)
        if kind == "free" and abs(off) < 1e10:
            assert result.gap <= 1e-4


@pytest.mark.parametrize("loss", ALL)
def test_claims_that_are_not_true_are_rejected(loss):
    X, y = overlapping(40)
    Z = moved(X, 1.7e9)
    result = gordan.minimize_loss(Z, y, loss=loss)
    lower, upper = result.objective
    for change in ({"lower": upper * (1 + 1e-9)}, {"upper": lower * (1 - 1e-9)}):
        assert both(replace(result.certificate, **change), Z.tolist(), y.tolist()) == (False, False)
    assert both(result.certificate, Z.tolist(), y.tolist()) == (True, True)
    # the claim is not about rows that are somewhere else, although differences are the same
    assert not gordan.verify(result.certificate, moved(X, 1.8e9), y)


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_places_are_checked(loss):
    X, y = overlapping(100)
    Z = moved(X, 1e6)
    result = gordan.minimize_loss(Z, y, loss=loss)
    place, problem = result.place, result._evidence.question.problem
    k = 2 if loss == "multinomial" else None
    again = Place.of_row(place.row(), Intercept.FREE, 3, k)
    assert again.unproved(result.certificate, problem) == ""
    assert (again.label(matrix(Z)) >= 0).mean() > 0.9
    assert (again.label(matrix(Z)) == again.label(matrix(Z[::-1].copy()))[::-1]).all()
    far = np.concatenate((Z, [[0.0, 0.0, 0.0]]))  # such rows are not centred
    assert set(again.label(matrix(far))[:-1]) <= {-1, 0, 1}
    moved_origin = Place.of_row(place.row(), Intercept.FREE, 3, k)
    moved_origin.origin[0] = 1e-9
    assert "origin" in moved_origin.unproved(result.certificate, problem)
    moved_origin.origin[0] = place.origin[0] + 1.0  # then b* + origin·w* is another number
    assert loss == "multinomial" or "not proved" in moved_origin.unproved(result.certificate, problem)


# ---- the classifier -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ALL)
def test_models_are_saved_and_loaded(loss, tmp_path):
    X, _ = overlapping()
    r = np.random.default_rng(0)
    y = np.digitize(X[:, 0] + 0.5 * r.normal(size=len(X)), (-0.5, 0.5))
    Z = moved(X, 1.7e9)
    model = gordan.LinearClassifier(loss).fit(Z, y)
    assert {*np.ravel(model.status_).tolist()} == {"solved"}
    assert model.same_prediction(Z).mean() > 0.6
    model.save(tmp_path / "model")
    again = gordan.load(tmp_path / "model")
    assert (again.same_prediction(Z) == model.same_prediction(Z)).all()
    assert (again.predict(Z) == gordan.LinearClassifier(loss).fit(X, y).predict(X)).mean() > 0.99
    labels = np.column_stack((y == 0, y == 2)).astype(int)
    if loss != "multinomial":
        both_labels = gordan.LinearClassifier(loss).fit(Z, labels)
        assert both_labels.same_prediction(Z).mean() > 0.5


def test_changes_of_X_are_noticed():
    X, y = overlapping(70_000)  # too large for a copy
    Z = moved(X, 1e6)
    result = gordan.minimize_loss(Z, y)
    Z[5, 1] += 1
    with pytest.raises(gordan.InputError, match="X was changed"):
        _ = result.certificate


def test_the_warning_names_the_column():
    X, y = overlapping(2000)
    for Z, options in ((moved(X, 1.7e9), {"intercept": "penalized"}), (moved(X, 1.7e9), {})):
        if not options:
            Z[7, 0] = 0.0  # not all entries are far
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            gordan.LinearClassifier("logistic", **options).fit(Z, y)
        assert any("subtract the mean of column 0" in str(one.message) for one in caught), (
            options,
            [str(one.message) for one in caught],
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gordan.LinearClassifier("logistic").fit(moved(X, 1.7e9), y)
