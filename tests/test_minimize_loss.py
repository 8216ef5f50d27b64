"""`minimize_loss`: results against exact minimizers, what it refuses and how, and every kind of storage."""

from __future__ import annotations

import copy
import dataclasses
import math
import random
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from device_problems import as_on_a_gpu, held
from loss_problems import FAMILIES, KINDS, LOSSES, attack
from sklearn.datasets import load_digits, load_iris

import gordan
from gordan import InputError
from gordan.blas import factorized
from gordan.certificates import matrix, standalone
from gordan.deadlines import UNLIMITED, Deadline
from gordan.ledger import optimum
from gordan.ledger.question import Play
from gordan.losses import Loss
from gordan.rows import Rows, stored
from gordan.rows import storage as rows_storage
from gordan.rows.blocks import Blocks, Loadable
from gordan.rows.memory import Dense
from gordan.solve import block_newton, loss_ascent, loss_newton, minimizing, row_space, smooth_losses
from gordan.solve.loss_newton import Newton
from gordan.solve.loss_task import Found, Task
from gordan.solve.row_space import RowSpace
from gordan.solve.softmax_newton import SoftmaxNewton

SIZE = 2


def data(n=30, d=3, seed=0):
    """Two classes that overlap."""
    r = np.random.default_rng(seed)
    X = r.standard_normal((n, d))
    return X, np.where(X[:, 0] + 0.5 * r.standard_normal(n) > 0, 1, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_results_hold_the_exact_minimizer(loss, kind):
    for family in FAMILIES:
        for k in range(SIZE):
            _, faults = attack(random.Random(f"{family} {loss} {kind} solve {k}"), family, loss, kind, solve=True)
            assert not faults, (family, k, *faults)


@pytest.mark.parametrize("digit", [0, 2, 5])
def test_solved_where_the_slope_grows_on_the_way(digit):
    """Pixels as they are, a class that can be cut off: the value falls at every step, the gap of these steps does not."""
    X, y = load_digits(return_X_y=True)
    assert gordan.minimize_loss(X, y == digit).status == "solved"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_solved_to_the_tolerance(loss, kind):
    X, y = data()
    result = gordan.minimize_loss(X, y, loss=loss, intercept=kind, tol=1e-6)
    lower, upper = result.objective
    assert result.status == "solved"
    assert 0 < lower <= upper
    assert result.gap <= 1e-6
    z = np.where(y == 1, 1, -1) * (X @ result.w + result.b)
    short = np.maximum(1 - z, 0)
    cost = {"hinge": short, "squared_hinge": short**2, "logistic": np.logaddexp(0, -z)}[loss]
    size = result.w @ result.w + (result.b**2 if kind == "penalized" else 0)
    assert lower <= 0.5 * size + cost.sum() <= upper
    low, high = result.coef_interval.T
    assert ((low <= result.w) & (result.w <= high)).all()
    assert result.same_prediction(X).mean() > 0.9
    assert not {*result.support.tolist()} & {*result.not_support.tolist()}
    assert loss == "hinge" or len(result.support) + len(result.not_support) >= 25
    assert result.b == 0 or kind != "none"


REFUSED = {
    "C": ({"C": 0}, r"C is 0; pass a positive finite number"),
    "negative C": ({"C": -1.0}, r"C is -1\.0; pass a positive"),
    "C is no number": ({"C": math.nan}, r"C is nan; pass a positive"),
    "C is infinite": ({"C": math.inf}, r"C is inf; pass a positive"),
    "C is text": ({"C": "1"}, r"C is '1'; pass a positive"),
    "C is a list": ({"C": [1.0]}, r"C is \[1\.0\]; pass a positive"),
    "C beyond floats": ({"C": 10**400}, r"C is 1000*; pass a positive finite number$"),
    "loss": ({"loss": "log"}, r"loss is 'log'; choose one of 'hinge', 'squared_hinge', 'logistic'"),
    "no loss": ({"loss": None}, r"loss is None; choose one of"),
    "intercept": ({"intercept": True}, r"intercept is True; choose one of"),
    "tol": ({"tol": 0}, r"tol is 0; pass a positive number"),
    "time_limit": ({"time_limit": 0}, r"time_limit is 0; pass a positive number of seconds"),
    "max_iter": ({"max_iter": 0}, r"max_iter is 0; pass a whole number"),
    "threads": ({"threads": 2.5}, r"threads is 2\.5; pass a whole number"),
    "random_state": ({"random_state": "a"}, r"random_state is 'a'; pass a whole number"),
    "callback": ({"callback": 3}, r"callback is 3; pass a function"),
    "weights of zero": ({"sample_weight": np.zeros(30)}, r"all rows of class 0 have weight zero; two classes are needed"),
    "negative weights": (
        {"sample_weight": np.full(30, -1.0)},
        r"sample_weight\[0\] is -1\.0; weights must be finite and not neg",
    ),
    "weights that are no numbers": ({"sample_weight": np.full(30, math.nan)}, r"sample_weight\[0\] is nan; weights must be"),
    "too few weights": ({"sample_weight": np.ones(29)}, r"sample_weight must hold one number for each of the 30 rows"),
    "weights overflow": (
        {"C": 1e300, "sample_weight": np.full(30, 1e300)},
        r"C × the weight of row 0 overflows; divide C or",
    ),
    "weights underflow": (
        {"C": 1e-300, "sample_weight": np.full(30, 1e-300)},
        r"C × the weight of row 0 underflows; multiply C or",
    ),
    "class weights": ({"class_weight": {2: 1.0}}, r"class_weight names 2, which is not a class; the classes are 0, 1"),
    "length of start": ({"start": np.zeros(5)}, r"start must hold one number for each of the 3 columns"),
    "start is no number": ({"start": np.array([0.0, math.nan, 0.0])}, r"start\[1\] is not finite; pass an earlier result"),
    "columns of start": ({"start": gordan.minimize_loss(data()[0][:, :2], data()[1])}, "start has 2 columns, X has 3"),
    "start of classes": (
        {"start": gordan.minimize_loss(*data(), loss="multinomial")},
        "start has the planes of 2 classes, this problem one; pass a result of such a problem, or None",
    ),
    "start is text": ({"start": "x"}, r"start must hold real numbers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_what_to_do(name):
    options, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        gordan.minimize_loss(*data(), **options)


DATA = {
    "one class": ([[0.0], [1.0]], [1, 1], r"y has one class only, 1; two are needed"),
    "one row": ([[0.0]], [1], r"y has one class only"),
    "no row": (np.zeros((0, 2)), [], r"X has 0 rows and 2 columns; at least one of each"),
    "three classes": ([[0.0], [1.0], [2.0]], [0, 1, 2], r"y has 3 classes; two are needed: pass y == one of them"),
    "large integers": (
        [[2**53 + 1], [1]],
        [0, 1],
        r"X\[0, 0\] is 9007199254740993: an integer beyond 2\*\*53.*rescale the column",
    ),
    "NaN": ([[0.0, 1.0], [math.nan, 1.0]], [0, 1], r"X\[1, 0\] is nan; every entry must be finite"),
    "infinity": ([[0.0, 1.0], [0.0, math.inf]], [0, 1], r"X\[1, 1\] is inf; every entry must be finite"),
    "text": ([["a"], ["b"]], [0, 1], r"features must be real numbers"),
    "one dimension": ([0.0, 1.0], [0, 1], r"X must be a matrix of rows and columns"),
    "missing label": ([[0.0], [1.0]], [0.0, math.nan], r"y\[1\] is nan; every row needs a label"),
}


@pytest.mark.parametrize("name", DATA)
def test_data_that_is_refused(name):
    X, y, message = DATA[name]
    with pytest.raises(InputError, match=message):
        gordan.minimize_loss(X, y)


def test_a_bad_entry_is_named_by_its_row_where_others_have_weight_zero():
    X, y = data()
    X[5, 1] = math.nan
    weights = np.ones(30)
    weights[[2, 5]] = 0
    with pytest.raises(InputError, match=r"X\[5, 1\] is nan"):
        gordan.minimize_loss(X, y, sample_weight=weights)


@pytest.mark.parametrize("loss", LOSSES)
def test_constant_columns_and_nothing_but_zeros(loss):
    _, y = data()
    least = gordan.minimize_loss(np.zeros((30, 2)), y, loss=loss, tol=1e-6)
    assert least.status == "solved"
    assert (least.w == 0).all()
    # the same least value, since b takes what a constant column could
    constant = gordan.minimize_loss(np.ones((30, 2)), y, loss=loss, tol=1e-6)
    assert constant.objective == pytest.approx(least.objective, rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_separable_data_have_a_minimum(loss):
    X, _ = data()
    y = (X[:, 0] > 0).astype(int)
    result = gordan.minimize_loss(X, y, loss=loss, C=1e4, tol=1e-3)
    assert result.status == "solved"
    if loss != "logistic":  # the first column alone separates, without loss
        assert result.objective[0] <= 0.5 / np.min(np.abs(X[:, 0])) ** 2


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [2.0**-600, 2.0**500, 2.0**1000])
@pytest.mark.filterwarnings("error")
def test_sizes_beyond_reason_leave_a_true_interval(loss, scale):
    X, y = data(6)
    for C in (1.0, 1e300, 1e-300):
        result = gordan.minimize_loss(X * scale, y, loss=loss, C=C)
        lower, upper = result.objective
        assert lower <= upper < math.inf
        assert upper <= 6.0001 * C  # w = 0 is never better
        assert not np.isnan(result.coef_interval).any()
        assert not np.isnan(result.intercept_interval).any()


@pytest.mark.filterwarnings("error")
def test_columns_of_other_names_are_refused():
    """As by `LinearClassifier.same_prediction`, also for a table of labels; a frame without names is read by position."""
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abc"))
    result = gordan.minimize_loss(frame, y)
    expected = result.same_prediction(X)
    assert (result.same_prediction(frame) == expected).all()
    assert (result.same_prediction(pd.DataFrame(X)) == expected).all()
    assert (gordan.minimize_loss(X, y).same_prediction(frame) == expected).all()
    for found in (result, gordan.minimize_loss(frame, np.c_[y, 1 - y] == 1)[1]):
        with pytest.raises(InputError, match="Z has the same columns in another order: 'c' is where X had 'a'; pass the columns"):
            found.same_prediction(frame[["c", "b", "a"]])
        with pytest.raises(InputError, match="Z has other columns than X: 'z' is where X had 'b'"):
            found.same_prediction(frame.rename(columns={"b": "z"}))


def test_a_start_that_overflows_is_no_worse_than_no_plane():
    X, y = data()
    result = gordan.minimize_loss(X, y, start=np.full(3, 1e200))
    assert result.objective[1] <= 30.1


@pytest.mark.parametrize("loss", LOSSES)
def test_starts(loss):
    X, y = data()
    earlier = gordan.minimize_loss(X[:20], y[:20], loss=loss, C=2.0, intercept="none")
    wanted = gordan.minimize_loss(X, y, loss=loss, tol=1e-7).objective
    for start in (earlier, earlier.w, earlier.w.tolist(), np.zeros(3, np.float32)):
        result = gordan.minimize_loss(X, y, loss=loss, start=start, tol=1e-5)
        assert result.status == "solved"
        assert result.objective[0] <= wanted[1]
        assert wanted[0] <= result.objective[1]


@pytest.mark.parametrize("loss", LOSSES)
def test_stopped_early_with_what_is_proved(loss, clock):
    X, y = data()
    true = gordan.minimize_loss(X, y, loss=loss, tol=1e-6).objective

    def interrupt(moment):
        raise KeyboardInterrupt

    clock.tick = 1.0
    results = {"time-limit": gordan.minimize_loss(X, y, loss=loss, time_limit=1e-9)}
    clock.tick = 0.0
    results["interrupted"] = gordan.minimize_loss(X, y, loss=loss, callback=interrupt)
    stopped = gordan.minimize_loss(X, y, loss=loss, callback=lambda moment: True)
    results["iteration-limit"] = gordan.minimize_loss(X, y, loss=loss, max_iter=1, tol=1e-9)
    assert stopped.status == "interrupted"
    for status, result in results.items():
        assert result.status == status
        assert result.objective[0] <= true[1]
        assert true[0] <= result.objective[1] < math.inf
        assert repr(result).startswith(f"stopped ({status})")
        assert len(result.same_prediction(X)) == 30


@pytest.mark.parametrize("seed", range(20))
def test_a_line_search_that_runs_out_of_time_does_not_raise_the_value(seed):
    """It returned its first step, whose value may be a thousand times that of the start."""
    r = np.random.default_rng(seed)
    z, u = r.standard_normal(50), 10.0 ** r.uniform(-3, 3) * r.standard_normal(50)
    u = u if np.sum(u / (1 + np.exp(z))) > 0 else -u
    along = loss_newton.derivatives(Loss.LOGISTIC.weight, lambda z, a: a * (1 - a))
    t = loss_newton.line_search(loss_newton.Line(z, u, 0.0, 1e-3), along, 1e-9, Deadline(-math.inf))
    assert t > 0
    assert 0.5e-3 * t * t + np.sum(np.logaddexp(0, -z - t * u)) < np.sum(np.logaddexp(0, -z))


def test_a_search_that_is_stopped_after_it_began_anew_returns_the_better_plane():
    X, y = data()
    best = gordan.minimize_loss(X, y, loss="logistic", tol=1e-3)

    def find(task, w):
        for plane in (np.append(best.w, best.b), np.zeros(len(best.w) + 1)):
            yield Found(plane, np.empty(0), 0.0, task.value(plane, task.rows.scores(plane)), 1)

    question = dataclasses.replace(best._evidence.question, play=Play(watch=lambda moment: not moment.w_out.any()), tol=1e-9)
    evidence = optimum.LossEvidence(question)
    for proposal in minimizing.proposing(find)(question, evidence, None):
        evidence.offer(proposal)
    assert proposal.stopped
    assert evidence.w.tolist() == best.w.tolist()


def test_errors_of_a_callback_come_through():
    def fail(moment):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        gordan.minimize_loss(*data(), callback=fail)


def in_rows(X, tmp_path):
    return X


def mapped(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


STORAGE = {
    "float64": in_rows,
    "columns first": lambda X, tmp_path: np.asfortranarray(X),
    "float32": lambda X, tmp_path: X.astype(np.float32),
    "lists": lambda X, tmp_path: X.tolist(),
    "pandas": lambda X, tmp_path: pd.DataFrame(X, columns=["a", "b", "c"]),
    "memory map": mapped,
    "rows of nonzeros": lambda X, tmp_path: sp.csr_array(X),
    "columns of nonzeros": lambda X, tmp_path: sp.csc_matrix(X),
    "objects": lambda X, tmp_path: X.astype(object),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("storage", STORAGE)
def test_storage_does_not_matter(storage, loss, tmp_path):
    X, y = data()
    X = X.astype(np.float32).astype(np.float64)
    wanted = gordan.minimize_loss(X, y, loss=loss, tol=1e-6).objective
    labels = pd.Series(np.where(y, "yes", "no")) if storage == "pandas" else y
    result = gordan.minimize_loss(STORAGE[storage](X, tmp_path), labels, loss=loss, tol=1e-6)
    assert result.status == "solved"
    assert result.objective == pytest.approx(wanted, rel=1e-6)


def test_indexes_of_pandas_must_agree():
    X, y = data()
    with pytest.raises(InputError, match="the indexes of X and y differ"):
        gordan.minimize_loss(pd.DataFrame(X), pd.Series(y, index=range(1, 31)))


def test_points_of_other_data():
    X, y = data()
    result = gordan.minimize_loss(X, y, tol=1e-8)
    for points in (X, sp.csr_array(X), pd.DataFrame(X), X.astype(np.float32)):
        assert result.same_prediction(points).sum() >= 29
    on_the_plane = -result.b * result.w / (result.w @ result.w)
    assert not result.same_prediction([on_the_plane]).any()
    assert not result.same_prediction(np.full((2, 3), math.nan)).any()
    with pytest.raises(InputError, match="Z has 2 columns, but the plane was found for 3"):
        result.same_prediction(X[:, :2])


def proved_and_changed(monkeypatch, most_copied):
    """A result of data that are changed afterwards, another one that was asked before, X, and what that one said."""
    monkeypatch.setattr(matrix, "MAX_COPIED_BYTES", most_copied)
    X, y = data()
    result = gordan.minimize_loss(X, y)
    asked = copy.copy(result)
    said = asked.intercept_interval, asked.support.tolist(), asked.coef_interval.tolist()
    X += 1.0
    return result, asked, X, said


def test_data_that_were_copied_may_be_changed(monkeypatch):
    result, asked, _, said = proved_and_changed(monkeypatch, 1 << 30)
    for found in (result, asked):
        assert (found.intercept_interval, found.support.tolist(), found.coef_interval.tolist()) == said


def test_data_that_are_changed_afterwards_are_not_what_was_proved(monkeypatch):
    result, asked, X, said = proved_and_changed(monkeypatch, 0)
    assert (asked.intercept_interval, asked.support.tolist(), asked.coef_interval.tolist()) == said
    assert result.coef_interval.tolist() == said[2]
    for ask in (lambda: result.intercept_interval, lambda: result.support, lambda: result.same_prediction(X)):
        with pytest.raises(InputError, match="X was changed after it was read"):
            ask()


def test_passes_are_counted():
    X, y = data(200, 5)
    result = gordan.minimize_loss(X, y)
    assert result.passes >= 2 * result.n_iter >= 2
    assert result.trace.passes[-1] <= result.passes


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("d", [4, 300])
def test_rows_on_a_device_that_stay_there(loss, d, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'")
    monkeypatch.setattr("gordan.rows.device.MIN_ENTRIES", 0)
    X, y = data(200, d)
    there = gordan.minimize_loss(torch.tensor(X), y, loss=loss, tol=1e-6)
    here = gordan.minimize_loss(X, y, loss=loss, tol=1e-6)
    assert there.status == "solved"
    assert there.objective[0] <= here.objective[1]
    assert here.objective[0] <= there.objective[1]
    assert gordan.verify(there.certificate, X, y)


def test_a_plane_that_is_changed_does_not_change_what_is_proved():
    X, y = data()
    expected, found = (gordan.minimize_loss(X, y, tol=1e-8) for _ in range(2))
    found.w[:] /= np.linalg.norm(found.w)
    np.testing.assert_array_equal(found.coef_interval, expected.coef_interval)
    assert found.intercept_interval == expected.intercept_interval
    assert found.radius == expected.radius


@pytest.mark.parametrize("scale", [1e8, 1e9, 1e10])
def test_tiny_losses_are_found_by_the_standalone_checker(scale):
    X, y = np.array([[-1.0], [1.0], [2.0]]) * scale, [0, 1, 1]
    certificate = gordan.minimize_loss(X, y, loss="logistic", C=1e10 / scale).certificate
    assert gordan.verify(certificate, X, y)
    assert standalone.check(standalone.read_certificate(certificate.to_json()), X.tolist(), y) == (True, "accepted")


def test_weights_that_verify_is_given():
    X, y = data()
    weights = np.arange(1.0, len(y) + 1)
    loss = gordan.minimize_loss(X, y, sample_weight=weights).certificate
    assert gordan.verify(loss, X, y, sample_weight=weights)
    assert not gordan.verify(loss, X, y, sample_weight=weights[::-1])
    margin = gordan.maximize_margin(X, y, nu=0.5, sample_weight=np.full(len(y), 2.0)).certificate
    assert gordan.verify(margin, X, y, sample_weight=np.full(len(y), 2.0))
    with pytest.raises(InputError, match="the indexes of X and sample_weight differ"):
        gordan.verify(loss, pd.DataFrame(X), y, sample_weight=pd.Series(weights, index=range(5, 5 + len(y))))


def test_integers_that_no_float_holds_are_refused():
    X, y = data()
    weights = np.ones(len(y), dtype=np.int64)
    weights[3] = 2**53 + 1
    for options in ({"C": 2**53 + 1}, {"sample_weight": weights}):
        with pytest.raises(InputError, match="float64 cannot hold"):
            gordan.minimize_loss(X, y, **options)
    assert gordan.minimize_loss(X, y, C=2**53 + 2, time_limit=1).C == 2**53 + 2


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_losses_of_any_size_are_found_by_the_standalone_checker(intercept):
    X, y = np.array([[7.7e120], [-5.2e120], [-2.6e120]]), [1, 0, 0]
    result = gordan.minimize_loss(X, y, loss="logistic", C=0.2, intercept=intercept)
    assert 0 < result.objective[0] <= result.objective[1] < 1e-200
    text = standalone.read_certificate(result.certificate.to_json())
    assert standalone.check(text, X.tolist(), y) == (True, "accepted")


def test_enormous_weights_are_not_reported_as_an_overflow_of_x():
    """A product overflows on the way; what is then known is returned, and proved."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.integers(0, 2, 60)
    weights = np.where(np.arange(60) % 7 == 0, 1e300, 1.0)
    result = gordan.minimize_loss(X, y, loss="hinge", sample_weight=weights, max_iter=30)
    assert np.isfinite(result.w).all()
    assert gordan.verify(result.certificate, X, y)
    X[3, 2] = np.nan
    with pytest.raises(InputError, match=r"X\[3, 2\] is nan"):
        gordan.minimize_loss(X, y, loss="hinge", sample_weight=weights, max_iter=30)


# ---- checkpoints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "multinomial"])
def test_a_checkpoint_goes_on_where_the_search_was_stopped(tmp_path, loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    y = (X[:, 0] + rng.standard_normal(300) > 0).astype(int)
    whole = gordan.minimize_loss(X, y, loss=loss, tol=1e-6)
    path, options = tmp_path / "run", {"loss": loss, "checkpoint": tmp_path / "run"}
    first = gordan.minimize_loss(X, y, tol=1e-6, max_iter=2, **options)
    assert (first.status, first.n_iter) == ("iteration-limit", 2)
    seen = []
    second = gordan.minimize_loss(X, y, tol=1e-6, callback=lambda moment: seen.append(moment), **options)
    assert second.status == "solved"
    np.testing.assert_array_equal(seen[0].w_out.reshape(-1)[: first.w.size], first.w.reshape(-1))
    assert seen[0].t == 2
    assert second.n_iter == seen[-1].t > 2
    assert second.objective[0] <= whole.objective[1]
    assert whole.objective[0] <= second.objective[1]
    again = gordan.minimize_loss(X, y, tol=1e-6, **options)
    assert again.n_iter <= second.n_iter + (4 if loss == "hinge" else 1)
    for other in ({"C": 2.0}, {"intercept": "none"}, {"sample_weight": np.arange(300.0)}):
        with pytest.raises(InputError, match="checkpoint of another problem"):
            gordan.minimize_loss(X, y, **options, **other)
    with pytest.raises(InputError, match="another problem: labels"):
        gordan.minimize_loss(X, 1 - y, **options)
    path.unlink()
    if loss != "multinomial":
        with pytest.raises(InputError, match="a checkpoint is for one label vector"):
            gordan.minimize_loss(X, np.column_stack((y > 0, y < 1)), **options)


def in_blocks(X):
    return Blocks([Loadable(len(part), part.size, lambda part=part: Dense(part)) for part in np.array_split(X, 3)], 3, np.float64)


@pytest.mark.parametrize("intercept", KINDS)
@pytest.mark.parametrize("loss", [*LOSSES, "multinomial"])
@pytest.mark.parametrize("held", [np.asarray, in_blocks])
def test_ctrl_c_while_a_part_of_the_rows_is_solved(monkeypatch, held, loss, intercept):
    """The last plane is returned, which in memory is one of the part, with what it proves about all rows."""
    r, n = np.random.default_rng(0), 5000
    X = r.standard_normal((n, 3))
    y = (X @ [1.0, 2.0, -1.0] + r.logistic(size=n) > 0.5).astype(int) + (loss == "multinomial") * (X[:, 0] > 1)
    options, seen = {"loss": loss, "intercept": intercept, "C": 2.0}, []
    last = 3 + (loss == "multinomial")  # of which one is for all rows, before the part
    solved = gordan.minimize_loss(X, y, **options)

    def interrupting(method):
        def stopped(own, *arguments):
            seen.append(own.rows.n)
            if len(seen) == last:
                raise KeyboardInterrupt
            return method(own, *arguments)

        return stopped

    for where, name in ((Newton, "gradient"), (SoftmaxNewton, "look"), (block_newton.LossTable, "at")):
        monkeypatch.setattr(where, name, interrupting(getattr(where, name)))
    result = gordan.minimize_loss(held(X), y, **options)
    assert result.status == "interrupted"
    assert seen[-1] < n or held is in_blocks
    assert result.w.any()
    assert result.objective[0] <= solved.objective[1]
    assert solved.objective[0] <= result.objective[1] < 0.9 * 2.0 * n * Loss(loss).at_zero(3)
    assert gordan.verify(result.certificate, X, y)


def test_ctrl_c_leaves_a_checkpoint(tmp_path):
    X = np.random.default_rng(0).standard_normal((200, 5))
    y = X[:, 0] + X[:, 1] ** 2 > 1

    def stop(moment):
        if moment.t == 2:
            raise KeyboardInterrupt

    stopped = gordan.minimize_loss(X, y, loss="logistic", tol=1e-12, callback=stop, checkpoint=tmp_path / "run")
    assert stopped.status == "interrupted"
    seen = []
    gordan.minimize_loss(X, y, loss="logistic", tol=1e-12, callback=seen.append, checkpoint=tmp_path / "run")
    assert seen[0].t == 2


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", KINDS)
def test_coordinate_ascent_goes_on_with_its_weights(tmp_path, intercept, loss):
    """From a checkpoint as good as finished there is next to nothing to do."""
    X = sp.random(200, 4000, 0.01, format="csr", random_state=0)
    y = np.arange(200) % 2
    options = {"loss": loss, "intercept": intercept, "C": 10.0, "checkpoint": tmp_path / "run"}
    first = gordan.minimize_loss(X, y, tol=1e-5, **options)
    assert first.status == "solved"
    seen = []
    second = gordan.minimize_loss(X, y, tol=1e-5, callback=seen.append, **options)
    assert second.status == "solved"
    assert len(seen) <= 2


def test_a_large_c_is_proved_with_weights_of_the_support():
    """Scores in another order of summation move weights by C times their rounding: what the certificate holds does not move."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 200))
    y = (np.arange(120) < 20).astype(int)
    result = gordan.minimize_loss(X, y, C=1e4, tol=1e-7)
    assert result.status == "solved"
    certificate = result.certificate
    assert 0 < len(certificate.rows) < 120
    for storage in (np.asarray, np.asfortranarray, sp.csr_array):
        assert gordan.verify(certificate, storage(X), y)
    assert standalone.check(standalone.read_certificate(certificate.to_json()), X.tolist(), y.tolist())[0]
    assert not gordan.minimize_loss(X, y, tol=1e-7).certificate.rows  # not needed with C = 1


@pytest.mark.parametrize(
    ("loss", "C", "d", "expected"),
    [("hinge", 1.0, 10, True), ("hinge", 1.0, 30, False), ("logistic", 1.0, 30, True), ("logistic", 100.0, 30, False)],
)
def test_a_part_of_the_rows_comes_first_where_it_saves_steps(loss, C, d, expected, monkeypatch):
    """By the rows for each column, and by C ‖x‖²: the more that is, the more a part's plane is that of its own noise."""
    parts = []
    monkeypatch.setattr(Task, "part", lambda task, i, part=Task.part: parts.append(i) or part(task, i))
    r = np.random.default_rng(0)
    X = r.standard_normal((4500, d))
    y = X[:, 0] + r.standard_normal(4500) > 0
    assert gordan.minimize_loss(X, y, loss=loss, C=C).status == "solved"
    assert bool(parts) is expected


def test_only_products_beyond_floats_end_a_search_quietly(monkeypatch):
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) % 2

    def fails(*_):
        raise gordan.InputError("a mistake")

    monkeypatch.setattr(loss_newton.Newton, "step", fails)
    with pytest.raises(gordan.InputError, match="a mistake"):
        gordan.minimize_loss(X, y)


@pytest.mark.parametrize(("at_once", "taken"), [(-1, 1 << 23), (-1, 40), (1 << 17, 0)])
@pytest.mark.parametrize(("constant", "scale"), [(0.0, 1.0), (1.0, 1.0), (1.0, 0.25)])
def test_second_moments_of_some_rows(at_once, taken, constant, scale, monkeypatch):
    """Σ h A_i A_iᵀ for h of both signs, by one product of matrices or of some rows after the others."""
    monkeypatch.setattr(loss_newton, "TUNING", dataclasses.replace(loss_newton.TUNING, at_once=at_once, taken=taken))
    r = np.random.default_rng(0)
    X, signs = r.standard_normal((50, 4)).astype(np.float32), r.choice([-1, 1], 50).astype(np.int8)
    rows = Rows(stored(X), signs, scale=scale, constant=constant)
    A = scale * signs[:, None] * np.column_stack((X.astype(np.float64), np.full(50, constant)))[:, : rows.d]
    for i in (np.arange(50), np.array([3, 8, 41]), np.arange(0)):  # no rows, if none has changed since the last matrix
        h = r.standard_normal(len(i))
        assert np.allclose(loss_newton.second_moment(rows, i, h), (A[i] * h[:, None]).T @ A[i], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [300.0, 1e4])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_rows_that_rounding_leaves_short_of_one(size, intercept):
    """Few rows, far longer than the margin: the least value of the hinge is that of the hard margin, 1/2m², and C times what
    rounding leaves rows short of 1 is more than that. The plane that is proved is a little longer."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.3, 1, -1)
    X = size * (rng.standard_normal((60, 400)) + 0.1 * y[:, None])
    result = gordan.minimize_loss(X, y, loss="hinge", intercept=intercept, tol=1e-6)
    assert result.status == "solved"
    lower, upper = gordan.maximize_margin(X, y, intercept=intercept, tol=1e-6).margin
    assert result.objective[0] <= 0.5 / lower**2
    assert result.objective[1] >= 0.5 / upper**2
    for storage in (np.asarray, np.asfortranarray, sp.csr_array):
        assert gordan.verify(result.certificate, storage(X), y)
    assert standalone.check(standalone.read_certificate(result.certificate.to_json()), X.tolist(), y.tolist())[0]


def test_scores_are_rounded_once_where_rounding_hides_the_optimum():
    """Columns of very different sizes: sums in float64 leave an interval that is too wide."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    X[:, :2] *= 1e4
    y = np.where(X[:, -1] + rng.standard_normal(len(X)) > 0, 1, -1)
    result = gordan.minimize_loss(X, y, loss="logistic", C=1.0, tol=1e-8)
    assert result.status == "solved"
    question = result._evidence.question
    plain = question.objective.enclose(result.w, result.b, result._evidence.rows, result._evidence.alpha, slack=4.0)
    assert not plain.upper - plain.lower <= 1e-7 * plain.upper  # so that there was something to be mended
    certificate = result.certificate
    for storage in (np.asarray, np.asfortranarray, sp.csr_array):
        assert gordan.verify(certificate, storage(X), y)
    assert standalone.check(standalone.read_certificate(certificate.to_json()), X.tolist(), y.tolist())[0]
    narrower = dataclasses.replace(certificate, upper=certificate.lower + 0.2 * (certificate.upper - certificate.lower))
    assert not gordan.verify(narrower, X, y)


@pytest.mark.parametrize("size", [100.0, 1e4, 1e100])
@pytest.mark.parametrize("loss", [*LOSSES, "multinomial"])
def test_a_start_that_leads_astray_is_forgotten(loss, size):
    """Far from the optimum no row has curvature, so that nothing tells where a free b is."""
    X, y = data(40)
    if loss == "multinomial":
        y = np.arange(40) % 3
    for k in range(3):
        start = size * np.random.default_rng(k).uniform(-1, 1, (3, 3) if loss == "multinomial" else 3)
        assert gordan.minimize_loss(X, y, loss=loss, start=start).status == "solved"
        with as_on_a_gpu():
            assert gordan.minimize_loss(held(X), y, loss=loss, start=start).status == "solved"


def test_what_is_proved_of_sparse_rows_is_found_again_with_dense_ones(monkeypatch):
    """Scores are rounded once where few entries are not 0: no other number of entries counts."""
    rng = np.random.default_rng(0)
    X = np.zeros((300, 50))
    X[:, :4] = rng.standard_normal((300, 4)) * [1e4, 1e4, 1.0, 1.0]
    y = np.where(X[:, 3] + rng.standard_normal(300) > 0, 1, -1)
    monkeypatch.setattr(matrix, "WORTH_ROUNDING_ONCE", 300 * matrix.SECONDS_PER_ROW + 1200.5 * matrix.SECONDS_PER_ENTRY)
    result = gordan.minimize_loss(sp.csr_array(X), y, loss="logistic", tol=1e-8)
    assert result.status == "solved"
    for storage in (sp.csr_array, np.asarray, np.asfortranarray):
        assert gordan.verify(result.certificate, storage(X), y)


@pytest.mark.parametrize("rank", [30, 7])
def test_few_long_rows_are_solved_in_the_coordinates_of_what_they_span(rank):
    """Products of rows stay what they are, and a plane comes back with its scores and length; also where rows depend."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, rank)) @ rng.standard_normal((rank, 200)) * 10.0 ** rng.uniform(-3, 3, 200)
    rows = Rows(stored(X), np.where(np.arange(30) % 2, 1, -1).astype(np.int8), constant=1.0)
    space = RowSpace.of(rows, UNLIMITED)
    assert space.rows.d == 31
    np.testing.assert_allclose(space.rows.gram(np.arange(30)), rows.gram(np.arange(30)), rtol=1e-9, atol=1e-6)
    p = rng.random(30)
    u = space.rows.combine(p)
    w = space.plane(u, refined=2)
    np.testing.assert_allclose(rows.scores(w), space.rows.scores(u), rtol=1e-8)
    assert math.isclose(w @ w, u @ u, rel_tol=1e-8)
    assert RowSpace.of(rows.take(np.arange(30)).scaled(1e200), UNLIMITED) is None  # products beyond the floats
    wide = Rows(stored(X[:, :40]), rows.signs)
    assert RowSpace.of(wide, UNLIMITED) is None


@pytest.mark.parametrize("intercept", KINDS)
@pytest.mark.parametrize(("scale", "C"), [(300.0, 1.0), (1.0, 9e4), (1e3, 1.0), (1e4, 1.0)])
def test_the_squared_hinge_of_few_long_rows_with_a_large_c(intercept, scale, C):
    """1 - z is lost in rounding, and the weights with it: those of the rows that have some are found first."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = scale * rng.standard_normal((60, 500)), rng.integers(0, 4, 60) == 0
        weights = rng.uniform(0, 2, 60) * (rng.random(60) > 0.1)
        for given in (None, weights):
            result = gordan.minimize_loss(X, y, C=C, intercept=intercept, sample_weight=given)
            assert result.status == "solved"
            certificate = result.certificate
            assert gordan.verify(certificate, X, y, sample_weight=given)
        assert gordan.LinearClassifier(C=C, intercept=intercept).fit(X, rng.integers(0, 3, 60)).status_ == ["solved"] * 3


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("intercept", KINDS)
@pytest.mark.parametrize("n", [24, 200])  # all label vectors at a time, and each on its own
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_several_label_vectors_of_few_long_rows_are_solved_there_too(loss, intercept, n, storage, monkeypatch):
    """No matrix of the size of the columns is factorized, which would take a thousand times as long."""
    rng = np.random.default_rng(2)
    X, which = rng.standard_normal((n, 700)) * (rng.random((n, 700)) < (0.05 if storage is sp.csr_array else 1)), np.arange(n) % 3
    X[np.arange(n), which] += 2.0
    X = storage(X)
    Y = which[:, None] == np.arange(3)
    sizes = []

    def spy(H, *args):
        sizes.append(len(H))
        return factorized(H, *args)

    for module in (loss_newton, row_space, rows_storage):
        monkeypatch.setattr(module, "factorized", spy)
    many = gordan.minimize_loss(X, Y, loss=loss, C=2.0, intercept=intercept, tol=1e-8)
    assert max(sizes, default=0) <= n
    for j, result in enumerate(many):
        one = gordan.minimize_loss(X, Y[:, j], loss=loss, C=2.0, intercept=intercept, tol=1e-8)
        assert result.status == "solved"
        assert gordan.verify(result.certificate, X, Y[:, j])
        np.testing.assert_allclose(result.w, one.w, rtol=0, atol=one.radius + result.radius)


@pytest.mark.parametrize("intercept", KINDS)
@pytest.mark.parametrize("d", [500, 3500])
def test_the_hinge_of_few_long_sparse_rows(d, intercept, monkeypatch):
    """In coordinates of the row space, where a matrix for the columns would be factorized; with more columns by the ascent."""
    X, y = sp.csr_array(sp.random(150, d, 0.05, random_state=1)), np.arange(150) % 2
    sizes, spaces, of = [], [], RowSpace.of

    def spy(H, *args):
        sizes.append(len(H))
        return factorized(H, *args)

    for module in (loss_newton, row_space, minimizing):
        monkeypatch.setattr(module, "factorized", spy, raising=False)
    monkeypatch.setattr(RowSpace, "of", lambda *given: spaces.append(of(*given)) or spaces[-1])
    result = gordan.minimize_loss(X, y, loss="hinge", C=10.0, intercept=intercept, tol=1e-8)
    assert result.status == "solved"
    assert any(space is not None for space in spaces) == (d == 500)
    assert max(sizes, default=0) <= 151
    same = gordan.minimize_loss(X.toarray(), y, loss="hinge", C=10.0, intercept=intercept, tol=1e-8)
    assert max(result.objective[0], same.objective[0]) <= min(result.objective[1], same.objective[1])


def test_few_sparse_rows_with_curvature_are_solved_by_their_products(monkeypatch):
    """Where a matrix for all columns would be factorized, that costs less from half as many rows on."""
    X = sp.csr_array(sp.random(500, 900, 0.05, random_state=1))
    X.data -= 0.5
    X.data *= np.geomspace(0.1, 10, 900)[X.indices]  # conjugate gradients alone would take too many steps
    y = X @ np.random.default_rng(0).standard_normal(900) > 0
    sizes, by_rows = [], Newton._by_rows
    monkeypatch.setattr(Newton, "_by_rows", lambda self, g, h, i: sizes.append(len(i)) or by_rows(self, g, h, i))
    result = gordan.minimize_loss(X, y, loss="hinge", C=100.0, tol=1e-8)
    assert result.status == "solved"
    assert 100 < max(sizes) <= 450


@pytest.mark.parametrize("place", ["device", "blocks"])
@pytest.mark.parametrize("intercept", KINDS)
def test_planes_that_nearly_separate_are_found_on_few_rows_where_others_are_elsewhere(intercept, place, monkeypatch):
    """The rows that matter change at every step and from one label vector to the next, so that passes for all take very many."""
    rng = np.random.default_rng(0)
    means, which = rng.standard_normal((3, 40)), np.arange(1200) % 3
    means *= 6 / np.linalg.norm(means, axis=1, keepdims=True)
    X = (rng.standard_normal((1200, 40)) + means[which]).astype(np.float16).astype(np.float64)
    Y, alone = which[:, None] == np.arange(3), []

    def spy(table, j, *rest):
        found, steps = on_few_rows(table, j, *rest)
        alone.append(steps)
        return found, steps

    on_few_rows = block_newton._on_few_rows
    monkeypatch.setattr(block_newton, "_on_few_rows", spy)
    monkeypatch.setattr(block_newton, "TUNING", dataclasses.replace(block_newton.TUNING, patience=4, incoming=2))
    halves = [stored(X[:500]), stored(X[500:])]
    blocks = Blocks([Loadable(half.n, half.entries, lambda half=half: half) for half in halves], 40, X.dtype)
    with as_on_a_gpu() if place == "device" else nullcontext():
        many = gordan.minimize_loss(held(X) if place == "device" else blocks, Y, C=1.0, intercept=intercept, tol=1e-6)
    assert len(alone) >= 3
    assert sum(alone) > 0
    for j, result in enumerate(many):
        assert result.status == "solved"
        assert gordan.verify(result.certificate, X, Y[:, j])


@pytest.mark.parametrize("intercept", KINDS)
def test_the_squared_hinge_of_wide_sparse_rows_with_a_large_c(intercept):
    """Nearly separable, so that the rows that matter are few: ascent finds them, and Newton's method ends it."""
    rng = np.random.default_rng(1)
    X = sp.csr_array(sp.random(300, 5000, 0.02, random_state=1))
    y = np.where(X @ rng.standard_normal(5000) > 0, 1, -1)
    found = gordan.minimize_loss(X, y, C=100.0, intercept=intercept, tol=1e-7)
    assert found.status == "solved"
    same = gordan.minimize_loss(X.toarray(), y, C=100.0, intercept=intercept, tol=1e-9)
    assert max(found.objective[0], same.objective[0]) <= min(found.objective[1], same.objective[1])
    assert found.passes < 400


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_few_passes_for_one_hot_columns_that_differ_in_how_often_they_are_used(loss):
    """More rows than columns, which are too many to factorize: neither ascent nor plain conjugate gradients suit them."""
    rng, n, levels = np.random.default_rng(0), 8000, (10, 50, 500, 3000, 3)
    codes = [rng.integers(0, count, n) for count in levels]
    z = sum(rng.standard_normal(count)[code] for count, code in zip(levels, codes, strict=True))
    X = sp.hstack([sp.csr_array(np.eye(count))[code] for count, code in zip(levels, codes, strict=True)], format="csr")
    y = rng.random(n) < 1 / (1 + np.exp(-z))
    result = gordan.minimize_loss(X, y, loss=loss, C=10.0)
    assert result.status == "solved"
    assert result.passes < 150
    assert gordan.verify(result.certificate, X, y)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("conditioned", ["well", "badly"])
def test_the_factorization_for_a_part_of_the_rows_saves_one_for_all(loss, conditioned, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30000, 300)).astype(np.float32)
    y = X @ rng.standard_normal(300) + 20 * rng.standard_normal(30000) > 0
    X *= np.geomspace(0.1, 10, 300, dtype=np.float32) if conditioned == "badly" else 1
    counts, found = [], loss_newton.second_moment
    monkeypatch.setattr(loss_newton, "second_moment", lambda rows, *given: counts.append(rows.n) or found(rows, *given))
    result = gordan.minimize_loss(X, y, loss=loss)
    assert result.status == "solved"
    assert bool(counts) == (conditioned == "badly")  # conjugate gradients alone take few steps for columns of the same size
    assert max(counts, default=0) < 30000


@pytest.mark.parametrize("intercept", KINDS)
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "hinge"])
def test_columns_of_sizes_that_differ_by_twelve_orders_of_magnitude(loss, intercept):
    """Products of rows hide the small columns, and steps along a line may be far too long or too short."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(15, 60), rng.integers(1, 8)
        X = rng.standard_normal((n, d))
        y = X @ rng.standard_normal(d) + 2 * rng.standard_normal(n) > 0
        X *= 10 ** rng.uniform(-6, 6, d)
        result = gordan.minimize_loss(X, y, loss=loss, C=10.0 ** rng.integers(2, 5), intercept=intercept)
        assert result.status == "solved", seed


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "hinge"])
@pytest.mark.parametrize("columns", [1000, 60])
def test_sparse_rows_of_well_conditioned_columns_need_no_factorization(columns, loss, monkeypatch):
    """Unless a factorization costs little more than a few passes, as with few columns."""
    X = sp.csr_array(sp.random(2000, columns, 20 / columns, random_state=1))
    y = X @ np.random.default_rng(0).standard_normal(columns) + np.random.default_rng(1).standard_normal(2000) > 0
    sizes = []
    monkeypatch.setattr(loss_newton, "factorized", lambda H: sizes.append(len(H)) or factorized(H))
    result = gordan.minimize_loss(X, y, loss=loss)
    assert result.status == "solved"
    assert bool(sizes) == (columns == 60)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_a_free_intercept_is_moved_to_its_best_place_in_few_steps(loss, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100000, 5))
    y = X @ rng.standard_normal(5) + rng.standard_normal(100000) > 0
    counts, shift = [], smooth_losses.shift

    def counted(newton, weights, curvature):
        if newton.rows.n == 100000:
            return shift(newton, lambda z: counts.append(1) or weights(z), curvature)
        return shift(newton, weights, curvature)

    monkeypatch.setattr(smooth_losses, "shift", counted)
    result = gordan.minimize_loss(X, y, loss=loss)
    assert result.status == "solved"
    assert 0 < len(counts) <= 6


@pytest.mark.parametrize("most", [300, 200])
@pytest.mark.parametrize("intercept", KINDS)
def test_weights_of_the_ascent_are_stated(intercept, most, monkeypatch):
    """With a large C they prove what those that follow from w do not; if they are too many, Newton's method ends the ascent."""
    X, y = sp.csr_array(sp.random(300, 5000, 0.02, random_state=1)), np.arange(300) % 2
    monkeypatch.setattr(loss_ascent, "MAX_WEIGHTS", most)
    monkeypatch.setattr(optimum, "MAX_WEIGHTS", most)
    steps, newton = [], loss_ascent.by_newton
    monkeypatch.setattr(loss_ascent, "by_newton", lambda *given, **named: steps.append(1) or newton(*given, **named))
    found = gordan.minimize_loss(X, y, C=1e4, intercept=intercept, tol=1e-6)
    assert found.status == "solved"
    assert (bool(found.claim.rows), bool(steps)) == (most == 300, most < 300)
    assert gordan.verify(found.certificate, X, y)
    same = gordan.minimize_loss(X.toarray(), y, C=1e4, intercept=intercept, tol=1e-8)
    assert max(found.objective[0], same.objective[0]) <= min(found.objective[1], same.objective[1])


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_a_wide_gap_after_some_steps_leads_to_shares_of_c(C, monkeypatch):
    """Only where it is as wide as it is on the way to a plane that nearly separates the rows; few steps follow."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 120)) + 0.5
    y = X @ rng.standard_normal(120) > 8
    shares, found = [], smooth_losses._continued
    monkeypatch.setattr(smooth_losses, "_continued", lambda task: shares.append(1) or found(task))
    result = gordan.minimize_loss(X, y, C=C, tol=1e-6)
    assert result.status == "solved"
    assert (len(shares), result.n_iter <= 20) == (int(C > 1), True)


@pytest.mark.parametrize("intercept", KINDS)
def test_a_small_c_is_solved_by_epochs_and_then_by_multipliers(intercept):
    """Most weights are at their bounds, which coordinate ascent finds out; its estimates count a sum that must vanish."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 6)) + np.array([3.0, 0, 0, 0, 0, 0])
    y = np.where(X[:, 0] + rng.standard_normal(300) > 3.5, 1, -1)
    seen = []
    result = gordan.minimize_loss(X, y, loss="hinge", C=0.005, intercept=intercept, tol=1e-8, callback=seen.append)
    assert result.status == "solved"
    assert seen[0].t == 3  # epochs
    assert all(moment.lower <= moment.upper * (1 + 1e-12) for moment in seen)
    other = gordan.minimize_loss(X, y, loss="hinge", C=0.005, intercept=intercept, tol=1e-8, start=np.zeros(6))
    assert max(result.objective[0], other.objective[0]) <= min(result.objective[1], other.objective[1])


def test_the_hinge_with_a_free_intercept_and_rows_of_unequal_weight():
    """A step may leave all rows without weight: the plane is then shortened together with b, which is in the middle."""
    result = gordan.minimize_loss(np.eye(2), [0, 1], loss="hinge", C=1000, sample_weight=[100, 0.5])
    assert result.status == "solved"
    np.testing.assert_allclose([*result.w, result.b], [-1, 1, 0], atol=1e-3)
    model = gordan.LinearClassifier(loss="hinge", C=1000, class_weight={0: 100, 1: 0.5}).fit(np.eye(2), [0, 1])
    np.testing.assert_allclose(model.coef_, [[-1, 1]], rtol=1e-6)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((rng.integers(20, 30), 25)), rng.integers(2, size=30)
        y = y[: len(X)]
        result = gordan.minimize_loss(X, y, loss="hinge", C=300, sample_weight=rng.choice([100, 0.5], len(X)))
        assert (result.status, result.n_iter < 60) == ("solved", True)


@pytest.mark.parametrize("seed", [361, 412, 514])
def test_the_hinge_smooths_by_the_smaller_weights_of_two_classes(seed):
    """With the mean of all, hardly any row would have curvature on the way."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 31)), int(rng.integers(1, 30))
    X, y = rng.normal(size=(n, d)), rng.integers(0, 2, n)
    y[:2] = 0, 1
    result = gordan.minimize_loss(X, y, loss="hinge", C=10 ** rng.uniform(0, 4), class_weight={0: 1, 1: 1000})
    assert (result.status, result.n_iter < 60) == ("solved", True)


def test_the_hinge_ends_where_its_gap_is_rounding_error():
    """Last digits of the value or of the gap that still change are no progress, if the gap does not halve."""
    X, y = load_iris(return_X_y=True)
    gaps = []
    result = gordan.minimize_loss(
        X, y == 0, loss="hinge", tol=1e-15, callback=lambda moment: gaps.append((moment.upper - moment.lower) / moment.upper)
    )
    assert min(gaps) < 1e-13
    assert sum(gap < 1e-12 for gap in gaps) <= 5
    assert result.gap < 1e-11


@pytest.mark.parametrize("most", [1, 2, 5, 30, 100])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("loss", "wide"), [("hinge", False), ("hinge", True), ("squared_hinge", True)])
def test_epochs_are_at_most_max_iter(loss, wide, kind, most):
    """Also where Newton's method follows, and where a search begins anew."""
    if wide:
        X, y = sp.csr_array(sp.random(60, 4000, 0.02, random_state=1)), np.arange(60) % 2
    else:
        X, y = data(200, 5)
    C = 1.0 if wide else 1e-3
    result = gordan.minimize_loss(X, y, loss=loss, C=C, intercept=kind, max_iter=most, tol=1e-15)
    assert result.n_iter <= most
    assert (result.status == "iteration-limit") == (result.n_iter == most)
    again = gordan.minimize_loss(X, y, loss=loss, C=C, intercept=kind, max_iter=most, tol=1e-15, start=1e3 * np.ones(X.shape[1]))
    assert again.n_iter <= most


def test_passes_are_counted_under_a_time_limit():
    """The search has a budget of its own then, and its passes are those of the result."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 300)), rng.integers(2, size=3000)  # so many entries that their pace is measured
    limited, free = (gordan.minimize_loss(X, y, loss="logistic", time_limit=limit) for limit in (60.0, None))
    assert limited.passes == free.passes > 0
