"""Data that stays on disk: maps that are read ahead, Parquet in row groups, converted folders; against the same in memory."""

from __future__ import annotations

import io
import json
import operator
import os
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from passes import Kept, passes_agree

import gordan
from gordan import rows
from gordan.io import convert, read
from gordan.io.parts import Csr, Parts
from gordan.io.store import HEADER, StoredRows, Writer, check, header
from gordan.rows import accept, mapped, memory
from gordan.rows.blocks import Blocks, joined
from gordan.rows.memory import Dense, Sparse
from gordan.solve import double_oracle

N, D = 400, 9


def problem():
    """Points 0.25 or more away from a plane, of which about 0.4 of the entries are 0."""
    rng = np.random.default_rng(11)
    X = np.round(rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.6), 3)
    y = np.where(X @ rng.normal(size=D) > 0, 1, -1)
    X[:, 0] += 0.25 * y
    return X, y


X, Y = problem()


def write_svmlight(path, X, y, base=1, labels=None):
    """X as svmlight text, counted from `base`."""
    lines = []
    for row, label in zip(X, y if labels is None else labels, strict=True):
        lines.append(f"{label} " + " ".join(f"{j + base}:{float(row[j])!r}" for j in np.flatnonzero(row).tolist()))
    path.write_text("\n".join(lines) + "\n")


def write_csv(path, X, y):
    """X and y as CSV."""
    head = ",".join([*(f"x{j}" for j in range(X.shape[1])), "y"])
    rows_ = [",".join([*(repr(float(v)) for v in row), str(label)]) for row, label in zip(X, y, strict=True)]
    path.write_text("\n".join([head, *rows_]) + "\n")


def write_parquet(folder, X, y, files=3, group=40, dtype="float64"):
    """X and y as Parquet files of several row groups."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    folder.mkdir(exist_ok=True)
    for k, part in enumerate(np.array_split(np.arange(len(X)), files)):
        columns = {f"x{j}": X[part, j].astype(dtype) for j in range(X.shape[1])} | {"y": y[part]}
        pq.write_table(pa.table(columns), folder / f"part{k}.parquet", row_group_size=group)


@pytest.fixture
def small_files_count_as_large(monkeypatch):
    """Limits as for files of many gigabytes."""
    for module in (mapped, accept):
        monkeypatch.setattr(module, "LARGE_FILE_BYTES", 1 << 10)
    monkeypatch.setattr(memory, "FILE_CHUNK_BYTES", 1 << 10)
    monkeypatch.setattr("gordan.certificates.matrix.MAX_COPIED_BYTES", 0)
    monkeypatch.setattr("gordan.rows.threads.MIN_CHUNK_ENTRIES", 64)
    monkeypatch.setattr("gordan.rows.threads.MIN_CHUNK_TIMES_D", 2)


def csr_on_disk(folder, X, y):
    """X as a converted folder of CSR arrays."""
    folder.mkdir(exist_ok=True)
    write_svmlight(folder / "data.svm", X, y)
    convert(folder / "data.svm", folder / "csr", kind="csr")
    return read(folder / "csr").X


def backends(folder, X, y):
    """The same data in every storage there is on disk."""
    np.save(folder / "X.npy", X)
    np.save(folder / "f.npy", np.asfortranarray(X))
    np.save(folder / "Xy.npy", np.column_stack((X, y)))
    write_parquet(folder / "tables", X, y)
    return {
        "map": np.load(folder / "X.npy", mmap_mode="r"),
        "map in Fortran order": np.load(folder / "f.npy", mmap_mode="r"),
        "map with a label column": read(folder / "Xy.npy").X,
        "parquet": read(folder / "tables", memory_limit=1).X,
        "csr": csr_on_disk(folder / "c", X, y),
    }


# ---- passes -------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_files_count_as_large")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_operation_agrees_on_every_storage(tmp_path, dtype):
    values = X.astype(dtype).astype(np.float64)
    y = Y.astype(np.int8)
    theirs = rows.of(values, signs=y)
    rng = np.random.default_rng(12)
    w, p = rng.normal(size=D), rng.random(N)
    p[::3] = 0
    some = rng.choice(N, 60)
    for name, stored in backends(tmp_path, X.astype(dtype), Y).items():
        ours = rows.of(stored, signs=y)
        assert not ours.in_memory, name
        assert ours.radius() == pytest.approx(theirs.radius(), rel=1e-14), name
        np.testing.assert_allclose(ours.scores(w), theirs.scores(w), rtol=1e-13, atol=1e-14, err_msg=name)
        np.testing.assert_allclose(ours.combine(p), theirs.combine(p), rtol=1e-11, atol=1e-12, err_msg=name)
        a, b = ours.softmin(w, halves=y < 0), theirs.softmin(w, halves=y < 0)
        np.testing.assert_allclose(a.combination, b.combination, rtol=1e-11, atol=1e-13, err_msg=name)
        np.testing.assert_array_equal(ours.take(some).dense(), theirs.take(some).dense(), err_msg=name)
        np.testing.assert_array_equal(ours.take([5, 2]).dense(), theirs.take([5, 2]).dense(), err_msg=name)
        assert ours.lowest(w, 7)[0].tolist() == theirs.lowest(w, 7)[0].tolist(), name
        passes_agree(ours, theirs.dense(), rng.normal(size=(D, 3)), rng.normal(size=(N, 3)))


@pytest.mark.usefixtures("small_files_count_as_large")
def test_storages_are_what_they_should_be(tmp_path):
    found = {name: rows.of(stored).storage for name, stored in backends(tmp_path, X, Y).items()}
    assert isinstance(found["map"], Dense)
    assert mapped.is_mapped(found["map"].arrays[0])
    assert isinstance(found["csr"], Sparse)
    assert all(mapped.is_mapped(array) for array in found["csr"].arrays[:2])
    assert all(isinstance(found[name], Blocks) for name in ("parquet", "map in Fortran order", "map with a label column"))
    assert len(found["parquet"].blocks) == 12
    assert len(found["map"]._ranges) > 16


@pytest.mark.usefixtures("small_files_count_as_large")
def test_a_pass_asks_for_every_byte_in_order_before_it_is_done(tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", X)
    X_ = np.load(tmp_path / "X.npy", mmap_mode="r")
    asked = []
    monkeypatch.setattr(mapped, "_madvise", lambda: lambda start, size, advice: asked.append((start, size)) or 0)
    rows.of(X_).softmin(np.ones(D))
    begin = np.asarray(X_).ctypes.data
    assert [start for start, _ in asked] == sorted(start for start, _ in asked)
    assert min(start for start, _ in asked) <= begin
    assert max(start + size for start, size in asked) == begin + X.nbytes
    assert all(b[0] <= a[0] + a[1] for a, b in pairwise(asked))


@pytest.mark.usefixtures("small_files_count_as_large")
def test_a_pass_that_fails_leaves_no_reading_thread(tmp_path):
    import threading

    bad = X.copy()
    bad[300, 4] = np.nan
    np.save(tmp_path / "X.npy", bad)
    A = rows.of(np.load(tmp_path / "X.npy", mmap_mode="r"))
    with pytest.raises(gordan.InputError, match=r"X\[300, 4\] is nan"):
        A.scores(np.ones(D))
    assert not [thread for thread in threading.enumerate() if thread.name == "gordan-read"]


@pytest.mark.usefixtures("small_files_count_as_large")
@pytest.mark.parametrize("intercept", ["free", "none"])
def test_verdicts_and_brackets_agree_on_every_storage(tmp_path, intercept):
    flipped = Y.copy()
    flipped[:20] *= -1
    for name, stored in {"memory": X, **backends(tmp_path, X, Y)}.items():
        verdict = gordan.separate(stored, Y, intercept=intercept)
        assert verdict.status == "separable", name
        assert gordan.verify(verdict.certificate, X, Y), name
        result = gordan.maximize_margin(stored, Y, intercept=intercept, tol=1e-8)
        assert result.status == "solved", name
        if name == "memory":
            margin = result.margin
        assert max(result.margin[0], margin[0]) <= min(result.margin[1], margin[1]), name
        assert gordan.verify(result.certificate, X, Y), name
        no = gordan.separate(stored, flipped, intercept=intercept)
        assert no.status == "not-separable", name
        assert gordan.verify(no.certificate, X, flipped), name
        soft = gordan.maximize_margin(stored, flipped, intercept=intercept, nu=0.4, tol=1e-3)
        assert soft.status == "solved", name


@pytest.mark.usefixtures("small_files_count_as_large")
def test_games_of_a_verdict_on_wide_rows_in_a_file_are_small_and_have_a_deadline(tmp_path, monkeypatch, clock):
    from gordan.solve.restricted import Restricted

    played, solve = [], Restricted.solve
    monkeypatch.setattr(Restricted, "solve", lambda game, *rest: played.append(game) or solve(game, *rest))
    monkeypatch.setattr("gordan.solve.overlapping.applies", lambda question: False)  # it would separate them without games
    wide = np.random.default_rng(5).normal(size=(700, 300)) * (np.random.default_rng(6).random((700, 300)) < 0.05)
    y = np.where(wide.sum(axis=1) > 0, 1, -1)
    verdict = gordan.separate(csr_on_disk(tmp_path / "c", wide, y), y, time_limit=20)
    assert verdict.status == "separable"
    assert played
    for game in played:
        assert clock.now < game.deadline.at <= clock.now + 20
        assert len(game.allowed.caps) <= 2 * 301  # twice as many as columns, with that of the intercept


@pytest.mark.usefixtures("small_files_count_as_large")
def test_norms_are_computed_once(tmp_path):
    np.save(tmp_path / "X.npy", X)
    A = rows.of(np.load(tmp_path / "X.npy", mmap_mode="r"))
    A.radius()
    A.scaled(0.5).squares()
    assert A.passes == 1
    np.testing.assert_allclose(A.scaled(0.5).squares(), 0.25 * (X**2).sum(axis=1), rtol=1e-13)


@pytest.mark.usefixtures("small_files_count_as_large")
def test_the_game_goes_on_where_the_working_set_does_not_fit(tmp_path, monkeypatch):
    small = replace(double_oracle.TUNING, max_remote_entries=4 * D, min_working_set=4)
    monkeypatch.setattr(double_oracle, "TUNING", small)
    np.save(tmp_path / "X.npy", X)
    result = gordan.maximize_margin(np.load(tmp_path / "X.npy", mmap_mode="r"), Y, tol=0.3)
    assert result.status == "solved"
    assert result.trace.method == "accelerated_perceptron"
    assert gordan.verify(result.certificate, X, Y)


def test_blocks_keep_the_rows_that_were_taken(tmp_path):
    write_parquet(tmp_path / "tables", X, Y)
    blocks = rows.stored(read(tmp_path / "tables", memory_limit=1).X)
    loads = []
    run = blocks.run

    def counting(work, parts, own, shared):
        loads.append(len(parts))
        return run(work, parts, own, shared)

    blocks.run = counting
    first = np.array([1, 390, 50])
    np.testing.assert_array_equal(blocks.take(first).arrays[0], X[first])
    np.testing.assert_array_equal(blocks.take(np.array([50, 1])).arrays[0], X[[50, 1]])
    np.testing.assert_array_equal(blocks.take(np.array([51, 1, 51])).arrays[0], X[[51, 1, 51]])
    assert loads == [3, 1]
    q = np.zeros(N)
    q[200] = 2.0
    np.testing.assert_array_equal(blocks.combine(q, 1), 2.0 * X[200])
    assert loads == [3, 1, 1]


def test_rows_taken_one_by_one_are_kept_without_a_copy_of_all(monkeypatch):
    """Of a thousand rows taken one by one and then together, a few times as many are copied, and each is read once."""
    values = np.random.default_rng(3).normal(size=(1000, 2))
    blocks, copied = [Kept(Dense(values[k : k + 100])) for k in range(0, 1000, 100)], []
    stored = Blocks(blocks, 2, np.float64)
    monkeypatch.setattr("gordan.rows.blocks.joined", lambda parts: copied.append(sum(x.n for x in parts)) or joined(parts))
    order = np.random.default_rng(4).permutation(1000)
    for i in order.tolist():
        np.testing.assert_array_equal(stored.take(np.array([i])).plain(), values[[i]])
    assert sum(copied) < 20_000
    read = sum(block.loads for block in blocks)
    np.testing.assert_array_equal(stored.take(order).plain(), values[order])
    assert sum(block.loads for block in blocks) == read == 1000


# ---- Parquet ------------------------------------------------------------------------------------------------------------


def test_parquet_in_row_groups(tmp_path):
    write_parquet(tmp_path / "tables", X, Y, dtype="float32")
    table = read(tmp_path / "tables", label="y", memory_limit=1000)
    assert isinstance(table.X, Parts)
    assert table.X.dtype == np.float32
    assert table.names == table.X.columns == tuple(f"x{j}" for j in range(D))
    np.testing.assert_array_equal(np.asarray(table.X), X.astype(np.float32))
    np.testing.assert_array_equal(table.y, Y)
    assert isinstance(read(tmp_path / "tables").X, np.ndarray)
    two = read(tmp_path / "tables", label="y", features=["x3", "x1"], memory_limit=1000)
    np.testing.assert_array_equal(np.asarray(two.X), X[:, [3, 1]].astype(np.float32))


def test_opening_parquet_takes_no_longer_for_each_column_than_for_all(tmp_path, monkeypatch):
    pq = pytest.importorskip("pyarrow.parquet")
    write_parquet(tmp_path / "tables", X, Y, files=2)
    asked, schema = [], pq.ParquetFile.schema_arrow
    monkeypatch.setattr(pq.ParquetFile, "schema_arrow", property(lambda file: asked.append(file) or schema.fget(file)))
    read(tmp_path / "tables", label="y", memory_limit=1)
    assert len(asked) == len(set(map(id, asked)))  # pyarrow makes a schema of all columns whenever it is asked


def test_errors_name_file_and_row(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    bad = X.copy()
    bad[140 + 45, 2] = np.inf
    write_parquet(tmp_path / "a", bad, Y, files=2)
    with pytest.raises(gordan.InputError, match=r"part0.parquet, row 185 \(from 0\), column 'x2': the value is inf"):
        rows.of(read(tmp_path / "a", memory_limit=1).X).radius()
    write_parquet(tmp_path / "b", X, Y, files=2)
    missing = {"x0": [1.0, None], **{f"x{j}": [1.0, 2.0] for j in range(1, D)}, "y": [1, -1]}
    pq.write_table(pa.table(missing), tmp_path / "b/q2.parquet")
    with pytest.raises(gordan.InputError, match=r"q2.parquet, row 1 \(from 0\), column 'x0': .* missing"):
        rows.of(read(tmp_path / "b", memory_limit=1).X).radius()
    others = [({"x0": [1], "y": [1]}, "has the columns 'y' from column 1 on, but .* has 'x1'")]
    others.append(({f"x{j}": [1] for j in range(D)} | {"y": [1]}, "has int64 in column 'x0'"))
    for columns, told in others:
        pq.write_table(pa.table(columns), tmp_path / "b/q2.parquet")
        with pytest.raises(gordan.InputError, match=f"q2.parquet {told}"):
            read(tmp_path / "b", memory_limit=1)
    content = (tmp_path / "a/part1.parquet").read_bytes()
    table = read(tmp_path / "a", memory_limit=1)
    (tmp_path / "a/part1.parquet").write_bytes(content[:-9])
    with pytest.raises(gordan.InputError, match=r"part1.parquet is damaged"):
        table.X.parts[-1].read()


def test_tables_that_are_no_data(tmp_path):
    """Told when the folder is opened, before any row is read."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    one, words = pa.array([1.0, 2.0]), pa.array(["u", "v"])
    for table, told in [
        (pa.table([one, one, words], names=["a", "a", "y"]), "two columns of the same name; rename one"),
        (pa.table({"a": words, "b": one, "y": words}), "column 'a' is of type string; features must be numbers"),
        (pa.table({"a": one[:0], "y": words[:0]}), "has no rows"),
    ]:
        pq.write_table(table, tmp_path / "a.parquet")
        for limit in (1, None):
            with pytest.raises(gordan.InputError, match=told if limit else "."):
                read(tmp_path / "a.parquet", label="y", memory_limit=limit)


def test_a_table_that_changes_under_a_run(tmp_path):
    write_parquet(tmp_path / "tables", X, Y, files=1)
    table = read(tmp_path / "tables", memory_limit=1)
    write_parquet(tmp_path / "tables", X[:30], Y[:30], files=1)
    with pytest.raises(gordan.InputError, match="has 30 rows, but it had 40 before; the file has changed"):
        table.X.parts[0].read()


def test_features_alone_in_row_groups(tmp_path):
    write_parquet(tmp_path / "tables", X, Y)
    table = read(tmp_path / "tables", features=[f"x{j}" for j in range(D)], labelled=False, memory_limit=1)
    assert table.y is None
    np.testing.assert_array_equal(np.asarray(table.X), X)


# ---- converted folders --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_svmlight_converted_is_svmlight_read(tmp_path, monkeypatch, base, kind):
    monkeypatch.setattr("gordan.io.converting.CONVERSION_ENTRIES", 200)
    monkeypatch.setattr("gordan.io.text.BLOCK", 1 << 12)
    monkeypatch.setattr("gordan.io.text.SHORT", 0)
    Z = X.copy()
    Z[0, 0], Z[1, D - 1] = 1.5, 2.5  # so that base and width are seen
    write_svmlight(tmp_path / "data.svm", Z, Y, base, labels=np.where(Y > 0, "yes", "no"))
    done = convert(tmp_path / "data.svm", tmp_path / "out", kind=kind)
    assert (done.kind, done.shape) == (kind, Z.shape)
    assert len(json.loads((tmp_path / "out/manifest.json").read_text())["pieces"]) > 5
    theirs, ours = read(tmp_path / "data.svm"), read(tmp_path / "out")
    np.testing.assert_array_equal(theirs.y, ours.y)
    assert ours.y.dtype.kind == "U"
    np.testing.assert_array_equal(theirs.X.toarray(), ours.X.tocsr().toarray() if kind == "csr" else np.asarray(ours.X))
    assert isinstance(ours.X, Csr if kind == "csr" else np.memmap)
    check(tmp_path / "out")


@pytest.mark.parametrize("source", ["data.csv", "tables", "Xy.npy"])
@pytest.mark.parametrize("kind", ["csr", "dense", "auto"])
def test_tables_converted_are_tables_read(tmp_path, source, kind):
    write_csv(tmp_path / "data.csv", X, Y)
    write_parquet(tmp_path / "tables", X, Y)
    np.save(tmp_path / "Xy.npy", np.column_stack((X, Y)))
    done = convert(tmp_path / source, tmp_path / "out", kind=kind)
    assert done.kind == ("dense" if kind == "auto" else kind)
    theirs, ours = read(tmp_path / source), read(tmp_path / "out")
    assert theirs.names == ours.names
    np.testing.assert_array_equal(theirs.y, ours.y)
    np.testing.assert_array_equal(np.asarray(theirs.X), ours.X.tocsr().toarray() if kind == "csr" else np.asarray(ours.X))


def test_storage_is_chosen_by_density(tmp_path):
    thin = np.where(np.random.default_rng(13).random((N, D)) < 0.1, X, 0.0)
    thin[:, D - 1] = 1.0
    write_csv(tmp_path / "thin.csv", thin, Y)
    write_svmlight(tmp_path / "full.svm", np.where(X == 0, 1.0, X), Y)
    assert convert(tmp_path / "thin.csv", tmp_path / "a").kind == "csr"
    assert convert(tmp_path / "full.svm", tmp_path / "b").kind == "dense"
    assert convert(tmp_path / "full.svm", tmp_path / "b").already


# Prints how many calls of functions it took, unless the one with the given number is to be the last.
CONVERT = """
import sys
from gordan.io import convert, converting, text
from kills import calls_of
converting.CONVERSION_ENTRIES, text.BLOCK = 2000, 1 << 14
source, target, kind, last = sys.argv[1:]
print(calls_of(lambda: convert(source, target, kind=kind), last=int(last)))
"""


def conversion(source, target, kind, last=-1):
    """The number of calls of functions in a process of its own, or None if it was killed at the last that it was given."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", CONVERT, str(source), str(target), kind, str(last)]
    done = subprocess.run(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode in (0, -signal.SIGKILL)
    return None if done.returncode else int(done.stdout)


def killed_conversions(source, target, kind, kills, seed):
    """Run the conversion again and again, killed at a random call, until one run finishes; how often it was killed."""
    rng, count, calls = np.random.default_rng(seed), 0, conversion(source, target.with_name("counted"), kind)
    while conversion(source, target, kind, int(rng.uniform(0, 0.5 * calls)) if count < kills else -1) is None:
        count += 1
        if target.exists() and not (target / "manifest.json").exists() and (target / "journal.jsonl").exists():
            with pytest.raises(gordan.InputError, match="unfinished"):
                read(target)
    return count


@pytest.mark.parametrize(("source", "kind"), [("data.svm", "csr"), ("data.csv", "dense")])
def test_a_conversion_killed_at_any_instant_goes_on(tmp_path, source, kind):
    big = np.tile(X, (40, 1))
    y = np.tile(Y, 40)
    write_svmlight(tmp_path / "data.svm", big, y, base=0)
    write_csv(tmp_path / "data.csv", big, y)
    convert(tmp_path / source, tmp_path / "whole", kind=kind)
    assert killed_conversions(tmp_path / source, tmp_path / "killed", kind, kills=5, seed=3) >= 1
    whole, killed = read(tmp_path / "whole"), read(tmp_path / "killed")
    check(tmp_path / "killed")
    np.testing.assert_array_equal(whole.y, killed.y)
    for name in ("data.npy", "indices.npy", "indptr.npy") if kind == "csr" else ("X.npy",):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes()
    assert sorted(os.listdir(tmp_path / "killed")) == sorted(os.listdir(tmp_path / "whole"))


@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("source", ["data.svm", "data.csv"])
def test_a_conversion_stopped_after_any_step_goes_on(tmp_path, monkeypatch, source, kind):
    """Every write, fsync, truncation, rename and removal is the last one once."""
    monkeypatch.setattr("gordan.io.converting.CONVERSION_ENTRIES", 900)
    monkeypatch.setattr("gordan.io.text.BLOCK", 1 << 12)
    if source == "data.svm":
        write_svmlight(tmp_path / source, X, Y, base=0)
    else:
        write_csv(tmp_path / source, X, Y)
    convert(tmp_path / source, tmp_path / "whole", kind=kind)

    class Stop(Exception):
        pass

    left = 0
    real = {name: getattr(os, name) for name in ("fsync", "replace", "ftruncate")}

    def counted(name):
        def call(*args):
            nonlocal left
            left -= 1
            if left < 0:
                raise Stop
            return real[name](*args)

        return call

    for name in real:
        monkeypatch.setattr(os, name, counted(name))
    target, runs = tmp_path / "out", 0
    while True:
        left, runs = runs, runs + 1
        try:
            convert(tmp_path / source, target, kind=kind)
            break
        except Stop:
            continue
    assert runs > 3
    left = 10**6
    check(target)
    for name in ("y.npy", *(("data.npy", "indices.npy", "indptr.npy") if kind == "csr" else ("X.npy",))):
        assert (tmp_path / "whole" / name).read_bytes() == (target / name).read_bytes()


def test_damage_is_found(tmp_path):
    csr = csr_on_disk(tmp_path / "c", X, Y)
    folder = tmp_path / "c/csr"
    assert csr.shape == X.shape
    for name in ("data.npy", "indices.npy", "indptr.npy", "y.npy"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-1])
        with pytest.raises(gordan.InputError, match=f"{name} is damaged"):
            read(folder)
        (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(gordan.InputError, match="checksum is wrong"):
            check(folder)
        (folder / name).write_bytes(content)
    manifest = (folder / "manifest.json").read_bytes()
    for broken in (
        b"{}",
        manifest[:-30],
        manifest.replace(b'"shape": [', b'"shape": [1,'),
        manifest.replace(b"data-1", b"data-9"),
    ):
        (folder / "manifest.json").write_bytes(broken)
        with pytest.raises(gordan.InputError):
            read(folder)
    (folder / "manifest.json").write_bytes(manifest)
    check(folder)
    raw = np.memmap(folder / "indices.npy", "<i4", "r+", 128)
    for value, told in [(D, "indices leave"), (-1, "indices leave"), (int(raw[1]), "do not increase")]:
        kept = int(raw[0])
        raw[0] = value
        raw.flush()
        with pytest.raises(gordan.InputError, match=told):
            rows.of(read(folder).X)
        raw[0] = kept
    raw.flush()
    rows.of(read(folder).X)
    ends = np.memmap(folder / "indptr.npy", "<i8", "r+", 128)
    for k, value, told in [
        (N, int(ends[N]) + 1, "arrays do not fit"),
        (0, 1, "arrays do not fit"),
        (9, int(ends[11]), "rows overlap"),
    ]:
        kept = int(ends[k])
        ends[k] = value
        ends.flush()
        with pytest.raises(gordan.InputError, match=told):
            rows.of(read(folder).X)
        ends[k] = kept
    ends.flush()
    rows.of(read(folder).X)


def manifests(found):
    """Ways to damage a manifest of CSR arrays, each with the message about it."""
    n, d = found["shape"]
    first = {**found["pieces"][0], "rows": found["pieces"][0]["rows"] + 1}
    files = found["files"]
    shape = files["data.npy"]["shape"]

    def with_data(**entry):
        return {"files": {**files, "data.npy": entry}}

    yield {"shape": [float(n), d]}, "damaged: shape: a nonnegative integer is expected in place of"
    yield {"shape": [n, 0]}, "do not match its shape"
    yield {"pieces": [first, *found["pieces"][1:]]}, "do not match its shape"
    yield {"files": {"X.npy": files["data.npy"]}}, "its fields are not those of the files of csr rows"
    yield {"names": ["a"]}, "names do not match"
    yield {"names": [1] * d}, "damaged: names: text is expected in place of '1'"
    yield (
        with_data(dtype="<f2", shape=shape),
        "files: data.npy: dtype is '<f2'; it must be one of <f4, ",
    )
    yield (
        with_data(dtype="<f8", shape=[-1]),
        "files: data.npy: shape: a nonnegative integer is expected in place of",
    )
    yield (
        with_data(dtype="<f8", shape=[2**48]),
        r"files: data.npy: shape is \(281474976710656,\); it must be a list of sizes",
    )
    yield with_data(shape=shape), "manifest.json is damaged: .* those of an array"
    yield (
        {"format": "gordan-rows-99"},
        r"c/csr is not a folder that this version of gordan can read "
        r"\(format 'gordan-data-1' expected, 'gordan-rows-99' found\); use the version that wrote it, or convert",
    )


def test_damaged_manifest_is_refused(tmp_path):
    csr_on_disk(tmp_path / "c", X, Y)
    path = tmp_path / "c/csr/manifest.json"
    good = json.loads(path.read_text())
    for change, told in manifests(good):
        path.write_text(json.dumps({**good, **change}))
        with pytest.raises(gordan.InputError, match=told):
            read(path.parent)


def test_every_field_of_a_manifest_is_checked(tmp_path):
    """Without a field, or with a value of another type in it, a folder cannot be read."""
    csr_on_disk(tmp_path / "c", X[:6], Y[:6])
    path = tmp_path / "c/csr/manifest.json"
    good = path.read_text()

    def places(value):
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            yield value, key
            if key != "source":  # which says what was converted, and may hold anything
                yield from places(item)

    count = len([*places(json.loads(good))])
    assert count > 30
    for k in range(count):
        for change, value in ((operator.delitem, ()), (operator.setitem, (1.5,))):
            changed = json.loads(good)
            change(*[*places(changed)][k], *value)
            path.write_text(json.dumps(changed))
            with pytest.raises(gordan.InputError):
                read(path.parent)


def test_arrays_that_do_not_fit_each_other(tmp_path):
    """Whole files with honest headers, as another conversion would have left them."""
    csr_on_disk(tmp_path / "a", X, Y)
    csr_on_disk(tmp_path / "b", X[:-1], Y[:-1])
    mine, theirs = (json.loads((tmp_path / name / "csr/manifest.json").read_text()) for name in "ab")
    for name in ("indptr.npy", "data.npy"):
        os.replace(tmp_path / "b/csr" / name, tmp_path / "a/csr" / name)
        mine["files"][name] = theirs["files"][name]
        (tmp_path / "a/csr/manifest.json").write_text(json.dumps(mine))
        with pytest.raises(gordan.InputError, match="sizes of its arrays do not match"):
            read(tmp_path / "a/csr")
    write_csv(tmp_path / "X.csv", X, Y)
    convert(tmp_path / "X.csv", tmp_path / "dense", kind="dense")
    told = json.loads((tmp_path / "dense/manifest.json").read_text())
    told["shape"][1], told["names"] = D - 1, None
    (tmp_path / "dense/manifest.json").write_text(json.dumps(told))
    with pytest.raises(gordan.InputError, match=rf"X has the shape \({N}, {D}\), but the manifest says \({N}, {D - 1}\)"):
        read(tmp_path / "dense")


def test_what_a_converted_folder_is_not_asked(tmp_path):
    write_csv(tmp_path / "X.csv", X, Y)
    folder = convert(tmp_path / "X.csv", tmp_path / "out").path
    for options, told in [
        ({"label": "y"}, "leave out label="),
        ({"features": ["x0"]}, "leave out label= and names"),
        ({"features": D + 1}, f"has {D} columns, but {D + 1} features are wanted"),
    ]:
        with pytest.raises(gordan.InputError, match=told):
            read(folder, **options)
    assert read(folder, features=D).X.shape == X.shape
    assert read(folder, labelled=False).y is None


def test_features_alone_are_converted(tmp_path):
    """A matrix without a column of labels has none afterwards, and says so where they are asked for."""
    with Writer(tmp_path / "out", {"kind": "dense"}) as writer:
        writer.write(StoredRows(N, N * D, {"X.npy": X.astype("<f8").tobytes()}, None), [])
        writer.finish(None, X.shape, "<f8", None)
    table = read(tmp_path / "out", labelled=False)
    np.testing.assert_array_equal(table.X, X)
    assert table.y is None
    assert check(tmp_path / "out") == X.nbytes
    with pytest.raises(gordan.InputError, match=r"has no labels \(in Python, labelled=False"):
        read(tmp_path / "out", labelled=True)


@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<i4", "<i8"])
def test_headers_have_one_size(dtype):
    """Values are written before the shape is known, behind the room for the header."""
    for n in (0, 1, 10**6, 2**48 - 1):
        for shape in ((n,), (n, 0), (n, 1), (n, 2**48 - 1)):
            written = header(dtype, shape)
            assert len(written) == HEADER
            file = io.BytesIO(written)
            assert np.lib.format.read_magic(file) == (1, 0)
            assert np.lib.format.read_array_header_1_0(file) == (shape, False, np.dtype(dtype))


def test_two_conversions_into_one_folder(tmp_path):
    """The second is refused while the first is at it, and the first is not disturbed."""
    write_csv(tmp_path / "X.csv", X, Y)

    def second(_):
        with pytest.raises(gordan.InputError, match="is being written by another process"):
            convert(tmp_path / "X.csv", tmp_path / "out")

    convert(tmp_path / "X.csv", tmp_path / "out", progress=second)
    check(tmp_path / "out")
    np.testing.assert_array_equal(read(tmp_path / "out").X, X)


DAMAGED_LINES = {
    "half a line": b'{"rows": ',
    "no piece": b"{}",
    "a list": b"[1]",
    "nested too deeply": b"[" * 100_000,
    "a field of another type": lambda piece: {**piece, "rows": "7"},
    "fewer than no rows": lambda piece: {**piece, "rows": -7},
    "a file missing": lambda piece: {**piece, "bytes": {}},
    "a place of text": lambda piece: {**piece, "place": "here"},
    "a label without its line": lambda piece: {**piece, "labels": [["YQ=="]]},
}


@pytest.mark.parametrize("damage", [*DAMAGED_LINES, "data"])
def test_a_stopped_conversion_that_was_damaged(tmp_path, monkeypatch, damage):
    """What the journal does not vouch for is written again; what it does and is gone cannot be gone on with."""
    monkeypatch.setattr("gordan.io.converting.CONVERSION_ENTRIES", 900)
    write_csv(tmp_path / "X.csv", X, Y)

    class Stop(Exception):
        pass

    def stop(rows):
        if rows > N // 2:
            raise Stop

    with pytest.raises(Stop):
        convert(tmp_path / "X.csv", tmp_path / "out", progress=stop)
    if damage in DAMAGED_LINES:
        line = DAMAGED_LINES[damage]
        with (tmp_path / "out/journal.jsonl").open("r+b") as journal:
            last = journal.readlines()[-1]
            journal.write((json.dumps(line(json.loads(last))).encode() if callable(line) else line) + b"\n")
        assert 0 < convert(tmp_path / "X.csv", tmp_path / "out").kept < N
        check(tmp_path / "out")
        np.testing.assert_array_equal(read(tmp_path / "out").X, X)
    else:
        os.truncate(tmp_path / "out/X.npy", 200)
        with pytest.raises(gordan.InputError, match=r"X.npy was cut short; delete"):
            convert(tmp_path / "X.csv", tmp_path / "out")


CONVERSIONS = {
    "kind": ("a.csv", "x,y\n1,1\n", {"kind": "sparse"}, "kind is 'sparse'"),
    "memory limit": ("a.csv", "x,y\n1,1\n", {"memory_limit": "4GB"}, "memory_limit is '4GB'; pass a whole number"),
    "no rows": ("a.csv", "x,y\n", {}, "has no rows"),
    "no entries": ("a.svm", "1\n-1\n", {"kind": "csr"}, "number of columns is unknown"),
    "label of svmlight": ("a.svm", "1 1:1\n", {"label": "y"}, "the label comes first"),
}


@pytest.mark.parametrize(("name", "content", "options", "told"), CONVERSIONS.values(), ids=CONVERSIONS)
def test_what_cannot_be_converted(tmp_path, name, content, options, told):
    (tmp_path / name).write_text(content)
    with pytest.raises(gordan.InputError, match=told):
        convert(tmp_path / name, tmp_path / "out", **options)


def test_arrays_that_cannot_be_converted(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    with pytest.raises(gordan.InputError, match=r"only svmlight, CSV, TSV, .npy and Parquet are converted"):
        convert(tmp_path / "a.npz", tmp_path / "out")
    np.save(tmp_path / "a.npy", np.array([[1, 0], [2**53 + 1, 1]]))
    with pytest.raises(gordan.InputError, match=r"beyond 2\*\*53, which float64 cannot hold"):
        convert(tmp_path / "a.npy", tmp_path / "out")


@pytest.mark.parametrize("most", [1 << 12, 1 << 20])
def test_sparse_text_is_stored_sparse(tmp_path, monkeypatch, most):
    """Decided by the first rows, or by all where they are few; rows without entries count."""
    monkeypatch.setattr("gordan.io.converting.CONVERSION_ENTRIES", most)
    thin = np.where(np.random.default_rng(14).random((3000, 30)) < 0.05, 1.5, 0.0)
    thin[0, 29] = 2.5
    write_svmlight(tmp_path / "thin.svm", thin, np.arange(3000) % 2)
    assert convert(tmp_path / "thin.svm", tmp_path / "out").kind == "csr"
    found = read(tmp_path / "out").X
    np.testing.assert_array_equal(found.tocsr().toarray(), thin)


@pytest.mark.usefixtures("small_files_count_as_large")
def test_products_with_data_on_disk(tmp_path):
    """`X @ w`, as of an array, for what stays in files."""
    write_parquet(tmp_path / "tables", X, Y)
    W = np.random.default_rng(15).normal(size=(D, 2))
    for stored in (read(tmp_path / "tables", memory_limit=1).X, csr_on_disk(tmp_path / "c", X, Y)):
        assert len(stored) == N
        assert stored.dtype == np.float64
        np.testing.assert_allclose(stored @ W, X @ W, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(stored @ W[:, 0], X @ W[:, 0], rtol=1e-13, atol=1e-13)


def test_what_is_in_the_way_of_a_conversion(tmp_path):
    write_csv(tmp_path / "data.csv", X, Y)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    with pytest.raises(gordan.InputError, match="is not empty"):
        convert(tmp_path / "data.csv", tmp_path / "full")
    convert(tmp_path / "data.csv", tmp_path / "out")
    write_csv(tmp_path / "data.csv", X[:50], Y[:50])
    with pytest.raises(gordan.InputError, match="holds other data"):
        convert(tmp_path / "data.csv", tmp_path / "out")
    (tmp_path / "bad.svm").write_text("1 1:2\n-1 2:x\n")
    with pytest.raises(gordan.InputError, match=r"bad.svm, line 2"):
        convert(tmp_path / "bad.svm", tmp_path / "bad")


def test_memory_limit_decides_where_X_is(tmp_path):
    np.save(tmp_path / "X.npy", np.column_stack((X, Y)))
    assert isinstance(read(tmp_path / "X.npy", memory_limit=1 << 10).X, np.memmap)
    assert not mapped.is_mapped(read(tmp_path / "X.npy", memory_limit=1 << 30).X)
    csr_on_disk(tmp_path / "c", X, Y)
    assert isinstance(read(tmp_path / "c/csr", memory_limit=1 << 10).X, Csr)
    assert sp.issparse(read(tmp_path / "c/csr", memory_limit=1 << 30).X)
    with pytest.raises(gordan.InputError, match=r"gordan convert data.svm"):
        read(tmp_path / "c/data.svm", memory_limit=1 << 10)


def test_labels_in_a_second_file(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    table = read(tmp_path / "X.npy", label=str(tmp_path / "y.npy"))
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, Y)
    np.save(tmp_path / "y.npy", Y[1:])
    with pytest.raises(gordan.InputError, match="labels have the shape"):
        read(tmp_path / "X.npy", label=str(tmp_path / "y.npy"))
    np.save(tmp_path / "y.npy", Y[:, None])
    with pytest.raises(gordan.InputError, match="labels"):
        read(tmp_path / "X.npy", label=str(tmp_path / "y.npy"))
    np.save(tmp_path / "y.npy", Y)
    with pytest.raises(gordan.InputError, match=f"has {D} columns \\(no label column\\), but {D + 1} features are wanted"):
        read(tmp_path / "X.npy", label=str(tmp_path / "y.npy"), features=D + 1)


# ---- under a limit ------------------------------------------------------------------------------------------------------

needs_limits = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="RLIMIT_DATA is Linux's")

# What threads take to work in, each of them, is a part of the limit: their number must not be that of the machine.
LIMIT = """
import json, os, resource, sys
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
import numpy as np
import gordan
from gordan import blas, rows


def allow(megabytes):
    used = int(next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1]) << 10
    resource.setrlimit(resource.RLIMIT_DATA, (used + (megabytes << 20), resource.RLIM_INFINITY))


def fails(work):
    try:
        work()
    except MemoryError as error:
        return str(error)
"""

SOLVED = """
warm = np.random.default_rng(0).normal(size=(5000, 60))
for dtype in ("f4", "f8"):
    gordan.maximize_margin(warm.astype(dtype), np.where(warm[:, 0] > 0, 1, -1))  # compiles, and starts threads
allow(int(sys.argv[2]))
X = np.load(sys.argv[1], mmap_mode="r")
assert fails(lambda: np.array(X)), "the limit is not one"
result = gordan.maximize_margin(X, np.where(np.arange(len(X)) % 2, 1, -1))
print(json.dumps([result.status, *result.margin, result.passes]))
"""

SHORT = """
import scipy.linalg
A = np.random.default_rng(0).normal(size=(300, 300))
# NumPy's BLAS, and SciPy's
work = [lambda: rows.of(A).gram(np.arange(300)), lambda: blas.scipy_linalg().lapack.dpotrf(np.eye(300))]
if sys.argv[1] == "before":
    blas.ensure_blas_memory(), blas.scipy_linalg()
allow(12)
print(json.dumps([fails(each) for each in work]))
"""


def limited(program, *arguments):
    """What a program prints that limits its own memory."""
    command = [sys.executable, "-c", LIMIT + program, *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)  # one that waits for ever fails
    assert found.returncode == 0, found.stderr[-2000:]
    return json.loads(found.stdout)


@needs_limits
def test_a_file_larger_than_the_memory_that_is_left_is_solved(tmp_path):
    """307 MB in 240 MB, of which about 160 are used: sample, working set, vectors over rows and the working memory of BLAS."""
    rng, y = np.random.default_rng(1), np.where(np.arange(20_000) % 2, 1, -1)
    X_ = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (600_000, 128))
    for lo in range(0, len(X_), len(y)):
        block = rng.standard_normal((len(y), X_.shape[1]), dtype=np.float32)
        block[:, 0] = y * (0.5 + np.abs(block[:, 0]))
        X_[lo : lo + len(y)] = block
    status, lower, upper, passes = limited(SOLVED, str(tmp_path / "X.npy"), "240")
    assert status == "solved"
    assert upper * (1 + 1e-9) >= 0.5
    assert upper - lower <= 1e-4 * upper
    assert passes < 40


def test_memory_is_some_vectors_over_rows(tmp_path, peak_memory):
    """160 bytes a row, as docs/out_of_core.md says, whatever the columns are: here 4, so that there is little else."""
    rng, n = np.random.default_rng(2), 800_000
    X_ = rng.standard_normal((n, 4), dtype=np.float32)
    y = np.where(X_[:, 0] > 0, 1, -1)
    X_[:, 0] += 0.2 * y
    np.save(tmp_path / "X.npy", X_)
    stored = np.load(tmp_path / "X.npy", mmap_mode="r")
    result, peak = peak_memory(lambda: gordan.maximize_margin(stored, y))
    assert result.status == "solved"
    assert peak <= 160 * n


@needs_limits
@pytest.mark.parametrize("called", ["before", "never"])
def test_short_memory_is_an_error_and_not_a_wait(called):
    """OpenBLAS asks for 32 MiB when it is first called: again and again if there are none, or it ends the process."""
    answers = limited(SHORT, called)
    assert len(answers) == 2
    for told in answers:
        assert told is None if called == "before" else "of working memory, which is not available; raise the memory limit" in told
