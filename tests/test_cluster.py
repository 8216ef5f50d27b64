"""Rows on a Dask cluster against the same rows in memory; and what a lost worker costs."""

from __future__ import annotations

import json
import logging
import os
import pickle
import random
import signal
import sys
import threading
import time
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pytest
import scipy.sparse as sp
from passes import log_total, passes_agree
from typer.testing import CliRunner

import gordan
from gordan import rows
from gordan.rows.blocks import Blocks
from gordan.rows.storage import Sums

REASON = "dask is missing: pip install 'gordan[dask]'"
distributed = pytest.importorskip("distributed", reason=REASON)
da = pytest.importorskip("dask.array", reason=REASON)
dd = pytest.importorskip("dask.dataframe", reason=REASON)

import dask  # noqa: E402
import pandas as pd  # noqa: E402

from gordan.rows import cluster, lazy, storage, tasks  # noqa: E402

N, D, SIZE = 230, 6, 25  # ten blocks: the tree has two levels


@pytest.fixture(scope="module")
def client():
    """Two workers on threads of this process, reached through the loopback."""
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with (
        # an idle worker would take tasks from a busy one, with their blocks, where these take long on a busy machine
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", **options) as local,
        distributed.Client(local) as client,
    ):
        yield client


def problem(n=N, d=D, seed=3):
    """Points about 0.2 away from a plane, or more."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=d)
    u /= np.linalg.norm(u)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = np.where(X @ u > 0, 1, -1)
    return X + 0.2 * np.outer(y, u), y


def delayed_blocks(X, size=SIZE):
    """X as blocks that tasks make."""
    return [dask.delayed(X[lo : lo + size]) for lo in range(0, X.shape[0], size)]


KINDS = {
    "array": lambda X: da.from_array(X, chunks=(SIZE, 4)),
    "frame": lambda X: dd.from_pandas(pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]), npartitions=10),
    "sparse blocks": lambda X: delayed_blocks(sp.csr_array(X)),
}


@pytest.mark.parametrize(("kind", "constant"), [("array", False), ("frame", True), ("sparse blocks", True)])
def test_every_operation_agrees(client, kind, constant):
    X, y = problem()
    ours, theirs = rows.of(KINDS[kind](X), y, constant=constant), rows.of(X, y, constant=constant)
    assert (ours.n, ours.d, ours.dtype) == (theirs.n, theirs.d, theirs.dtype)
    rng = np.random.default_rng(0)
    w, p, halves = rng.normal(size=theirs.d), rng.random(N), (y < 0).astype(np.int8)
    close = {"rtol": 1e-12, "atol": 1e-13}
    assert ours.radius() == pytest.approx(theirs.radius(), rel=1e-15)
    np.testing.assert_allclose(ours.squares(), theirs.squares(), rtol=1e-14)
    np.testing.assert_allclose(ours.scores(w), theirs.scores(w), **close)
    few = np.where(np.arange(N) % 40 == 7, p, 0.0)
    for weights in (p, few, np.zeros(N)):
        np.testing.assert_allclose(ours.combine(weights), theirs.combine(weights), **close)
    for log_p0, split in [(None, None), (np.log(p), halves)]:
        a, b = ours.softmin(w, log_p0, split), theirs.softmin(w, log_p0, split)
        for what in (attrgetter("combination"), attrgetter("scores"), attrgetter("lowest"), log_total):
            np.testing.assert_allclose(what(a), what(b), **close)
        for found, expected in zip(ours.lowest(w, 9, split), theirs.lowest(w, 9, split), strict=True):
            np.testing.assert_allclose(found, expected, **close)
    some = np.array([200, 3, 3, 57, 0])
    np.testing.assert_array_equal(ours.take(some).dense(), theirs.take(some).dense())
    np.testing.assert_allclose(ours.gram(some, np.array([1, 99])), theirs.gram(some, np.array([1, 99])), **close)
    assert ours.passes == theirs.passes
    passes_agree(ours, theirs.dense(), rng.normal(size=(theirs.d, 3)), rng.normal(size=(N, 3)))
    assert not ours.combine(np.zeros((N, 2))).any()
    W = rng.normal(size=(theirs.d, 3))
    resident = ours.residing()
    np.testing.assert_allclose(resident.combine(resident.scores(W)), theirs.combine(theirs.scores(W)), **close)


def test_few_rows_are_solved_in_memory(client, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    labels = rng.integers(0, 3, 400)
    X[:, :3] += np.eye(3)[labels]
    Y, there = np.stack([labels == c for c in range(3)], 1), da.from_array(X, chunks=(100, 5))
    monkeypatch.setattr(cluster, "MIN_ENTRIES", X.size + 1)
    found = gordan.minimize_loss(there, Y, loss="hinge")
    assert found.status.tolist() == ["solved"] * 3
    assert found.objective.tolist() == gordan.minimize_loss(X, Y, loss="hinge").objective.tolist()
    assert gordan.verify(found[0].certificate, there, Y[:, 0])
    monkeypatch.setattr(cluster, "MIN_ENTRIES", X.size)
    assert rows.in_memory_if_small(rows.stored(there)).is_remote


@pytest.mark.parametrize("kind", ["array", "sparse blocks"])
def test_limits_as_for_large_data(client, kind, monkeypatch):
    """Vectors that are sent once, weights on some rows that stay where they are, rows that are forgotten; and proofs there."""
    X, y = problem()
    for module, name, value in (
        (cluster, "MAX_BYTES_IN_TASKS", 0),
        (cluster, "MAX_LOCAL_ENTRIES", 0),
        (cluster, "MAX_LOCAL_ROWS", 0),
        (storage, "MAX_FETCHED_ENTRIES", 30),
    ):
        monkeypatch.setattr(module, name, value)
    ours, theirs = rows.of(KINDS[kind](X), y), rows.of(X, y)
    rng = np.random.default_rng(0)
    w, p = rng.normal(size=D), rng.random(N)
    few = np.where(np.arange(N) % 40 == 7, p, 0.0)
    np.testing.assert_allclose(ours.scores(w), theirs.scores(w), rtol=1e-12, atol=1e-13)
    for weights in (p, few):
        np.testing.assert_allclose(ours.combine(weights), theirs.combine(weights), rtol=1e-12, atol=1e-13)
    for _ in range(4):
        some = rng.choice(N, 20, replace=False)
        np.testing.assert_array_equal(ours.take(some).dense(), theirs.take(some).dense())
    stored = rows.stored(KINDS[kind](X))
    found = gordan.maximize_margin(stored, y, tol=1e-8)
    assert found.status == "solved"
    assert gordan.verify(found.certificate, X, y)
    assert gordan.verify(gordan.maximize_margin(X, y, tol=1e-8).certificate, stored, y)
    assert not gordan.verify(replace(found.certificate, upper=found.margin[0] * (1 - 1e-6)), stored, y)
    assert not gordan.verify(replace(found.certificate, lower=found.margin[1] * (1 + 1e-6)), stored, y)


def test_files_that_do_not_belong_together(client, tmp_path):
    X, y = problem(40, 2)
    first = pd.DataFrame(X, columns=list("ab")).assign(label=y)
    first.to_parquet(tmp_path / "0.parquet")
    for other, told in [
        (first.rename(columns={"b": "c"}), "1.parquet has other columns than .*0.parquet: 'a', 'c'"),
        (first.assign(label=np.where(y > 0, "yes", "no")), "the label column has another type"),
    ]:
        other.to_parquet(tmp_path / "1.parquet")
        with pytest.raises(gordan.InputError, match=told):
            lazy.read_on(client, tmp_path, "label")


def test_labels_in_a_list_of_strings_are_no_files(client):
    X, y = problem()
    names = np.where(y > 0, "yes", "no").tolist()
    for stored in (X, KINDS["array"](X)):
        verdict = gordan.separate(stored, names)
        assert verdict.status == "separable"
        assert gordan.verify(verdict.certificate, X, names)
    with pytest.raises(gordan.InputError, match="signs must"):
        rows.of(X, names)


def test_vectors_over_rows_stay_on_the_workers(client, monkeypatch):
    X, y = problem()
    monkeypatch.setattr(cluster.Cluster, "to_host", None)  # nobody asks for one
    A, B = rows.of(KINDS["array"](X), y, resident=True), rows.of(X, y)
    w = np.ones(D)
    soft, scores = A.softmin(w), A.scores(w)
    assert isinstance(soft.scores, cluster.Spread)
    np.testing.assert_allclose(soft.combination, B.softmin(w).combination, rtol=1e-12)
    np.testing.assert_allclose(A.combine(scores), B.combine(B.scores(w)), rtol=1e-11)
    np.testing.assert_allclose(A.combine(soft.scores), B.combine(B.scores(w)), rtol=1e-11)
    with monkeypatch.context() as patch:
        patch.undo()
        np.testing.assert_allclose(np.concatenate(client.gather(scores.futures)), B.scores(w), rtol=1e-14)


def test_sums_are_those_of_one_tree_to_the_last_bit(client):
    X, y = problem()
    storage = rows.stored(KINDS["array"](X))
    v, log_p0 = np.full(D, 0.3), np.log(np.random.default_rng(1).random(N))
    found = rows.of(storage, y).softmin(v, log_p0).combination
    parts = []
    for lo in range(0, N, SIZE):
        held, signs = rows.stored(X[lo : lo + SIZE]), y[lo : lo + SIZE].astype(np.int8)
        parts.append(held.softmin(v[None], np.zeros(1), signs, 1.0, log_p0[lo : lo + SIZE], None, 1)[0])
    while len(parts) > 1:
        parts = [Sums.merged(parts[k : k + cluster.FAN_IN]) for k in range(0, len(parts), cluster.FAN_IN)]
    np.testing.assert_array_equal(found, parts[0].acc[0, 0] * (1.0 / parts[0].tally[0, 1, 0]))


def late(seconds, value):
    """The value, after a while."""
    time.sleep(seconds)
    return value


def test_arrays_of_messages_are_moved_to_where_their_type_wants_them():
    """Products of matrices that begin anywhere take another way, with other last digits."""

    def moved(array):
        buffer = np.empty(array.nbytes + 1, np.uint8)
        view = buffer[1:].view(array.dtype).reshape(array.shape)
        view[...] = array
        assert not view.flags.aligned
        return view

    r = np.random.default_rng(0)
    X, q = r.standard_normal((150, 5)), r.standard_normal((150, 3))
    held, arrived = rows.stored(X), rows.stored(X)
    arrived.__setstate__({**arrived.__dict__, "arrays": (moved(X),)})
    assert arrived.arrays[0].flags.aligned
    assert not arrived.arrays[0].flags.writeable
    here, there = (tasks.reduce(block, values, combined, (), 1, False) for block, values in ((held, q), (arrived, moved(q))))
    np.testing.assert_array_equal(here, there)


def combined(x, q):
    """What `reduce` adds up in the test above."""
    return (x.T @ q,)


def test_the_order_of_arrival_does_not_matter(client):
    engine = cluster.Workers(client)
    values = [np.random.default_rng(k).normal(size=5) * 10.0**k for k in range(12)]
    waits = [0.002 * k for k in range(12)]
    first, last = (engine.merged(engine.map(late, w, values), tasks.added) for w in (waits, waits[::-1]))
    np.testing.assert_array_equal(first, last)


def test_blocks_stay_where_they_are_and_tasks_have_names(client):
    X, y = problem(8000, 100)  # blocks so large that moving one would take longer than the work
    storage = rows.stored(da.from_array(X, chunks=(2000, 100)))
    A = rows.of(storage, y)
    before = client.who_has([block.future for block in storage.blocks])
    for _ in range(5):
        A.softmin(np.ones(100))
        A.lowest(np.ones(100), 5)
    assert client.who_has([block.future for block in storage.blocks]) == before
    assert all(len(workers) == 1 for workers in before.values())
    assert {"gordan-block", "gordan-softmin", "gordan-lowest", "gordan-merged"} <= {*client.cluster.scheduler.task_prefixes}


@pytest.mark.parametrize("kind", ["array", "sparse blocks"])
def test_verdict_margin_and_proof_are_those_of_the_rows_in_memory(client, kind, monkeypatch):
    X, y = problem()
    lazy = rows.stored(KINDS[kind](X))
    labels = da.from_array(y, chunks=70)
    with monkeypatch.context() as patch:
        patch.setattr(cluster.Cluster, "scores", None)  # the default route gets by with the lowest rows
        patch.setattr(cluster.Cluster, "norms", None)
        ours = gordan.maximize_margin(lazy, labels, tol=1e-9)
    theirs = gordan.maximize_margin(X, y, tol=1e-9)
    assert ours.status == theirs.status == "solved"
    assert max(ours.margin[0], theirs.margin[0]) <= min(ours.margin[1], theirs.margin[1])
    np.testing.assert_allclose(ours.w, theirs.w, atol=1e-7)
    assert ours.certificate.data_hash == theirs.certificate.data_hash
    assert gordan.verify(ours.certificate, X, y)
    assert gordan.verify(theirs.certificate, lazy, y)
    assert not gordan.verify(theirs.certificate, lazy, -y)
    assert gordan.separate(lazy, y).status == "separable"
    flipped = y.copy()
    flipped[:3] *= -1
    ours, theirs = gordan.separate(lazy, flipped), gordan.separate(X, flipped)
    assert ours.status == theirs.status == "not-separable"
    assert gordan.verify(ours.certificate, X, flipped)


def test_results_without_their_cluster(client):
    """What needs the rows says why there are none; a certificate and a classifier need none."""
    X, y = problem()
    with distributed.Client(client.cluster) as other:
        A = da.from_array(X, chunks=(SIZE, D))
        kept, late = gordan.separate(A, y), gordan.separate(A, y)
        model = gordan.LinearClassifier().fit(A, y)
        certificate = kept.certificate
        with pytest.raises(TypeError, match="keep the certificate"):
            pickle.dumps(kept)
        assert other is distributed.default_client()
    assert gordan.verify(pickle.loads(pickle.dumps(certificate)), X, y)
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)).all()
    with pytest.raises(gordan.InputError, match=r"client was closed; ask for .certificate"):
        _ = late.certificate


def test_diagnosis_is_that_of_the_rows_in_memory(client):
    X = np.round(np.random.default_rng(0).normal(size=(60, 3)), 1)
    for y in (X[:, 0] > 0, X[:, 0] ** 2 > X[:, 1]):
        ours, theirs = (gordan.diagnose(data, y) for data in (da.from_array(X, chunks=(20, 3)), X))
        assert ours.kind == theirs.kind
        assert gordan.verify(ours.certificate, X, y)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_least_losses_and_classifiers_agree(client, loss, monkeypatch):
    """Of one label vector, of several, and of a classifier of several classes; passes bring back sums, and no scores."""
    r = np.random.default_rng(1)
    y = r.integers(0, 3, N)
    X = r.standard_normal((N, D)) + r.standard_normal((3, D))[y]
    there = da.from_array(X, chunks=(SIZE, D))
    alone = gordan.minimize_loss(there, y == 1, loss=loss, tol=1e-8)
    assert alone.status == "solved"
    assert np.allclose(alone.w, gordan.minimize_loss(X, y == 1, loss=loss, tol=1e-8).w, atol=1e-3)
    assert gordan.verify(alone.certificate, X, y == 1)

    def no_scores(*args):
        raise AssertionError("scores were made")

    monkeypatch.setattr(cluster.Cluster, "scores", no_scores)
    many = gordan.minimize_loss(there, y[:, None] == np.arange(3), loss=loss, tol=1e-6)
    assert (many.status == "solved").all()
    assert np.allclose(many.w[:, 1], alone.w, atol=1e-3)
    model = gordan.LinearClassifier(loss, tol=1e-6).fit(there, da.from_array(y, chunks=SIZE))
    monkeypatch.undo()
    here = gordan.LinearClassifier(loss, tol=1e-6).fit(X, y)
    assert np.allclose(model.coef_, here.coef_, atol=1e-2)
    assert (model.predict(there) == here.predict(X)).mean() > 0.98
    assert gordan.verify(model.certificate_[2], X, y == 2)


def test_several_classes_agree(client, monkeypatch):
    """The multinomial loss: found, proved and placed by sums of the workers."""
    r = np.random.default_rng(1)
    y = r.integers(0, 3, N)
    X = r.standard_normal((N, D)) + r.standard_normal((3, D))[y]

    def no_scores(*args):
        raise AssertionError("scores were made")

    monkeypatch.setattr(cluster.Cluster, "scores", no_scores)
    there = gordan.LinearClassifier("multinomial", tol=1e-6).fit(da.from_array(X, chunks=(SIZE, D)), y)
    monkeypatch.undo()
    here = gordan.LinearClassifier("multinomial", tol=1e-6).fit(X, y)
    assert there.status_ == "solved"
    assert np.linalg.norm(there.coef_ - here.coef_) <= there.radius_ + here.radius_
    assert gordan.verify(there.certificate_, X, y)


def test_soft_margins_agree(client):
    X, y = problem(120, 4)
    y[:4] *= -1
    ours, theirs = (gordan.maximize_margin(data, y, nu=0.3, tol=1e-6) for data in (KINDS["array"](X), X))
    assert ours.status == theirs.status == "solved"
    assert max(ours.margin[0], theirs.margin[0]) <= min(ours.margin[1], theirs.margin[1])


@pytest.mark.parametrize("name", ["smooth_perceptron", "mirror_prox_perceptron", "nesterov", "perceptron", "double_oracle"])
def test_methods_play_the_same_game(client, name):
    X, y = problem(100, 4)
    A = X * y[:, None]
    halves = None if name == "perceptron" else (y < 0).astype(np.int8)
    ours, theirs = (gordan.play(data, name, 4, halves=halves) for data in (da.from_array(A, chunks=(30, 4)), A))
    np.testing.assert_allclose(ours.w, theirs.w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.upper, theirs.upper, rtol=1e-9)


def test_hashes_of_chunks_that_lie_in_several_blocks(client):
    X = np.random.default_rng(0).integers(0, 2, (9000, 1)).astype(np.float64)
    y = np.arange(9000) % 2
    lazy = da.from_array(X, chunks=((1000, 3000, 100, 4200, 700), 1))
    problems = [gordan.certificates.problem.Problem.of(data, y) for data in (lazy, X)]
    assert problems[0].hash("free") == problems[1].hash("free")


def broken(value, row, column, dtype=object):
    """Blocks with one entry that is refused."""
    X = np.ones((40, 3), dtype)
    X[row, column] = value
    return delayed_blocks(X, 10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: broken(2**60 + 1, 27, 2), r"X\[27, 2\]"),
        (lambda: broken("a", 0, 1), r"X\[0, 1\] is 'a'"),
        (lambda: da.from_array(np.arange(5), chunks=2), r"shape is \(5,\)"),
        (lambda: [dask.delayed(np.ones((2, 2))), dask.delayed(np.ones((2, 3)))], "block 1 of X has 3 columns"),
        (lambda: [dask.delayed(np.ones((0, 2)))], "no rows"),
        (lambda: delayed_blocks(np.ones((4, 2)) * 1j, 2), r"X\[0, 0\].*complex"),
    ],
)
def test_refusals_name_the_row(client, make, message):
    with pytest.raises(gordan.InputError, match=message):
        rows.stored(make())


def test_entries_that_are_not_finite_are_named(client):
    X, y = problem()
    X[137, 2] = np.nan
    with pytest.raises(gordan.InputError, match=r"X\[137, 2\] is nan"):
        gordan.separate(KINDS["array"](X), y)
    with pytest.raises(gordan.InputError, match=r"X\[137, 2\] is nan"):
        rows.of(KINDS["array"](X), y).lowest(np.ones(D), 3)


def test_blocks_without_rows_are_left_out(client):
    frame = dd.from_pandas(pd.DataFrame({"a": np.arange(12.0), "b": 1.0}), npartitions=4)
    kept = frame[frame.a > 6]
    A = rows.of(kept)
    assert A.n == 5
    np.testing.assert_array_equal(A.take(np.arange(5)).dense()[:, 0], np.arange(7, 12))


@pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler")  # older Dask sees the client of the other tests
def test_without_a_client_blocks_are_made_here_for_each_pass():
    X, y = problem()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lazy, "current_client", lambda: None)
        storage = rows.stored(da.from_array(X, chunks=(50, 3)))
        assert isinstance(storage, Blocks)
        np.testing.assert_allclose(rows.of(storage, y).scores(np.ones(D)), rows.of(X, y).scores(np.ones(D)), rtol=1e-14)
        assert gordan.separate(storage, y).status == "separable"
        with pytest.raises(gordan.InputError, match=r"X\[27, 2\]"):
            rows.stored(broken(2**60 + 1, 27, 2))


def test_names_of_columns_are_those_of_the_fit():
    """As for pandas: columns in another order are refused, not predicted with the wrong coefficients."""
    X, y = problem()
    names = [f"x{j}" for j in range(D)]
    frame = pd.DataFrame(X, columns=names)
    parts = dd.from_pandas(frame, npartitions=3)
    model, twin = gordan.LinearClassifier().fit(parts, y), gordan.LinearClassifier().fit(frame, y)
    for fitted in (model, twin):
        assert fitted.feature_names_in_.tolist() == names
        for other in (parts[names[::-1]], frame[names[::-1]]):
            with pytest.raises(gordan.InputError, match="Feature names must be in the same order"):
                fitted.predict(other)
    np.testing.assert_array_equal(model.predict(parts), twin.predict(frame))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(gordan.errors.MissingExtra, match=r"gordan\[dask\]"):
        lazy.connect("tcp://127.0.0.1:1")


def test_files_read_by_workers(client, tmp_path):
    X, y = problem(90, 4)
    for k in range(3):
        part = slice(30 * k, 30 * k + 30)
        np.save(tmp_path / f"{k}.npy", X[part])
        frame = pd.DataFrame(X[part], columns=list("abcd")).assign(label=np.where(y[part] > 0, "yes", "no"))
        (tmp_path / "table").mkdir(exist_ok=True)
        frame.to_parquet(tmp_path / "table" / f"{k}.parquet")
    by_list = gordan.separate([tmp_path / f"{k}.npy" for k in range(3)], y)
    assert by_list.status == "separable"
    address, table, model = client.scheduler.address, str(tmp_path / "table"), tmp_path / "m.gordan"
    from gordan.cli.app import app

    told = CliRunner().invoke(app, ["separate", table, "--cluster", address, "--json"])
    assert told.exit_code == 0, told.output
    answer = json.loads(told.stdout)
    assert (answer["status"], answer["n"], answer["d"], answer["names"]) == ("separable", 90, 4, list("abcd"))
    told = CliRunner().invoke(app, ["fit", table, "-o", str(model), "--cluster", address])
    assert told.exit_code == 0, told.output
    loaded = gordan.io.Model.load(model)
    assert loaded.classes == ("no", "yes")
    scores = X @ loaded.coef[0] + loaded.intercept[0]
    assert (np.sign(scores) == y).all()
    three = np.where(X[:, 0] > 0.5, "c", np.where(y > 0, "b", "a"))
    for k in range(3):
        part = slice(30 * k, 30 * k + 30)
        pd.DataFrame(X[part], columns=list("abcd")).assign(label=three[part]).to_parquet(tmp_path / "table" / f"{k}.parquet")
    told = CliRunner().invoke(app, ["fit", table, "-o", str(model), "--cluster", address, "--on-inseparable", "ignore"])
    assert told.exit_code == 0, told.output
    here = gordan.MaxMarginClassifier(on_inseparable="ignore").fit(X, three)
    np.testing.assert_allclose(gordan.io.Model.load(model).coef, here.coef_, atol=1e-6)


def test_the_index_of_files_that_workers_read(client, tmp_path):
    """It counts on from file to file, so one file alone does not tell; the certificate holds without a cluster."""
    X, y = problem(90, 3)
    for k, part in enumerate(np.split(np.arange(90), 3)):
        columns = {"Unnamed: 0": part, **{name: X[part, j] for j, name in enumerate("abc")}, "y": y[part]}
        pd.DataFrame(columns).to_parquet(tmp_path / f"{k}.parquet")
    from gordan.cli.app import app

    address, proof = client.scheduler.address, tmp_path / "proof.json"
    asked = ["separate", str(tmp_path), "--cluster", address, "--certificate", str(proof), "--json"]
    told = CliRunner().invoke(app, asked)
    assert told.exit_code == 0, told.output
    answer = json.loads(told.stdout)
    assert (answer["names"], len(answer["notices"])) == (list("abc"), 1)
    assert "column 0 ('Unnamed: 0')" in answer["notices"][0]
    assert (y * (X @ np.array(answer["w"]) + answer["b"]) > 0).all()
    assert CliRunner().invoke(app, ["verify", str(proof), str(tmp_path)]).exit_code == 0
    for options, names in (["--keep-index"], ["Unnamed: 0", *"abc"]), (["--drop", "b"], [*"ac"]):
        answer = json.loads(CliRunner().invoke(app, [*asked, *options]).stdout)
        assert answer["names"] == names
    pd.DataFrame({"a": X[:, 0], "y": y}).to_csv(tmp_path / "t.csv")
    answer = json.loads(CliRunner().invoke(app, ["separate", str(tmp_path / "t.csv"), "--cluster", address, "--json"]).stdout)
    assert answer["names"] == ["a"]


def test_a_folder_without_files_and_an_address_without_a_scheduler(client, tmp_path):
    with pytest.raises(gordan.InputError, match="folder without Parquet"):
        lazy.read_on(client, tmp_path, None)
    with pytest.raises(gordan.InputError, match="no Dask scheduler at 'nonsense://x'"):
        lazy.connect("nonsense://x")


def test_killed_workers_cost_their_blocks_and_nothing_else():
    """Four worker processes, of which three are killed at random instants of a fit: w is the same to the last bit."""
    X, y = problem(1200, 5)
    rng = random.Random(7)
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with (
        distributed.LocalCluster(n_workers=4, threads_per_worker=1, processes=True, **options) as local,
        distributed.Client(local) as client,
    ):
        lazy = da.from_array(X, chunks=(300, 5))
        started = time.perf_counter()
        calm = gordan.maximize_margin(lazy, y, tol=1e-6)
        span = time.perf_counter() - started
        victims = list(client.run(os.getpid).values())[:3]
        for pid in victims:
            timer = threading.Timer(rng.uniform(0, 0.7 * span), os.kill, (pid, signal.SIGKILL))
            timer.start()
            found = gordan.maximize_margin(lazy, y, tol=1e-6)
            timer.join()
            assert found.status == calm.status == "solved"
            assert found.margin == calm.margin
            np.testing.assert_array_equal(found.w, calm.w)


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.soak)])
def test_workers_killed_while_losses_are_minimized(kills, monkeypatch):
    """In the middle of a pass, of the search or of the proof: planes and intervals are the same to the last bit."""
    r = np.random.default_rng(1)
    y = r.integers(0, 3, 1200)
    X = r.standard_normal((1200, 5)) + r.standard_normal((3, 5))[y]
    start, passes, victim = cluster.Workers.start, [], []

    def killing(self, work, *rest):
        futures = start(self, work, *rest)
        passes.append(work.__name__)
        if victim and len(passes) == victim[0][0]:
            os.kill(victim.pop()[1], signal.SIGKILL)
        return futures

    def fitted(loss):
        passes.clear()
        found = gordan.minimize_loss(lazy, y if loss == "multinomial" else y == 1, loss=loss, tol=1e-4)
        return found.w, found.b, found.objective, found.place.row()

    monkeypatch.setattr(cluster.Workers, "start", killing)
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=True, **options) as local,
        distributed.Client(local) as client,
    ):
        lazy, calm = da.from_array(X, chunks=(300, 5)), {}
        for loss in ("multinomial", "logistic"):
            calm[loss] = fitted(loss), len(passes)
            assert {"reduce", "each_block"} <= {*passes}
        for k in range(kills):
            loss = list(calm)[k % 2]
            expected, count = calm[loss]
            victim.append((int(r.integers(1, count + 1)), next(iter(client.run(os.getpid).values()))))
            for found, right in zip(fitted(loss), expected, strict=True):
                np.testing.assert_array_equal(found, right)
            assert not victim
