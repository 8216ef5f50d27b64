"""The number of BLAS threads, which the process has once, is what it was after any calls, overlapping or broken off."""

from __future__ import annotations

import os
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import gordan
from gordan import blas
from gordan.blas import blas_threads


class Library:
    """A BLAS as threadpoolctl sees it."""

    user_api, internal_api, threading_layer = "blas", "openblas", "pthreads"

    def __init__(self, filepath, threads):
        self.filepath, self.threads = filepath, threads

    def get_num_threads(self):
        return self.threads

    def set_num_threads(self, threads):
        self.threads = threads


class LibraryByThread(Library):
    """One that has a number for each calling thread."""

    internal_api = "mkl"

    def __init__(self, filepath, threads):
        super().__init__(filepath, threads)
        self._own = threading.local()

    def get_num_threads(self):
        return getattr(self._own, "threads", self.threads)

    def set_num_threads(self, threads):
        self._own.threads = threads


@pytest.fixture
def libraries(monkeypatch):
    """Two libraries, of seven and five threads, and OpenMP, which is let alone."""
    openmp = Library("gomp.so", 6)
    openmp.user_api = "openmp"
    found = [Library("a.so", 7), openmp, Library("b.so", 5)]
    monkeypatch.setattr(blas, "_blas", SimpleNamespace(lib_controllers=found))
    monkeypatch.setattr(blas, "_knows_scipy", True)
    return found


def numbers(libraries):
    return [library.threads for library in libraries]


BEFORE, HELD = [7, 6, 5], [1, 6, 1]


class Call(threading.Thread):
    """Somebody within `blas_threads` in a thread of his own, until he is told to leave."""

    def __init__(self, look=lambda: None):
        super().__init__(daemon=True)
        self.look, self.seen = look, []
        self.inside, self.leave = threading.Event(), threading.Event()
        self.start()
        assert self.inside.wait(60)

    def run(self):
        with blas_threads(0):
            self.inside.set()
            self.leave.wait(60)
            self.seen.append(self.look())
        self.seen.append(self.look())

    def end(self):
        self.leave.set()
        self.join(60)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_the_last_call_sets_the_numbers_back(libraries, order):
    calls = [Call() for _ in range(3)]
    for k in order:
        assert numbers(libraries) == HELD
        calls[k].end()
    assert numbers(libraries) == BEFORE


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_numbers_of_each_thread(libraries, order):
    """Each has its own back when it leaves, whoever is still within."""
    mkl = LibraryByThread("mkl.so", 8)
    libraries.append(mkl)
    mkl.set_num_threads(4)  # in this thread
    calls = [Call(mkl.get_num_threads) for _ in range(3)]
    with blas_threads(0):
        assert mkl.get_num_threads() == 1
        for k in order:
            calls[k].end()
            assert calls[k].seen == [1, 8]
        assert numbers(libraries[:3]) == HELD
    assert numbers(libraries[:3]) == BEFORE
    assert mkl.get_num_threads() == 4


def test_a_library_that_one_thread_may_set_at_a_time(libraries):
    """As threadpoolctl has it for OpenBLAS since 3.8: the number belongs to who has set it, until he says that he is done."""
    owner = []

    class Owned(Library):
        def set_num_threads(self, threads):
            if owner in ([], [threading.get_ident()]):
                owner[:] = [threading.get_ident()]
                self.threads = threads

        def clear_controlling_thread(self):
            if owner == [threading.get_ident()]:
                owner.clear()

    libraries.append(Owned("c.so", 9))
    calls = [Call() for _ in range(3)]
    for k in (0, 2, 1):
        assert numbers(libraries) == [*HELD, 1]
        calls[k].end()
    assert numbers(libraries) == [*BEFORE, 9]
    owner[:] = [-1]  # somebody else's: his choice stands
    Call().end()
    assert numbers(libraries) == [*BEFORE, 9]


def test_calls_that_overlap_without_end_in_between(libraries):
    """A chain in which each call begins before the one before ends."""
    call = Call()
    for _ in range(5):
        following = Call()
        call.end()
        assert numbers(libraries) == HELD
        call = following
    call.end()
    assert numbers(libraries) == BEFORE


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ValueError, GeneratorExit])
def test_calls_that_are_broken_off(libraries, raised):
    def work():
        with blas_threads(0):
            with pytest.raises(raised), blas_threads(0):
                raise raised
            assert numbers(libraries) == HELD
            raise raised

    with pytest.raises(raised):
        work()
    assert numbers(libraries) == BEFORE


def test_a_generator_that_is_abandoned(libraries):
    def work():
        with blas_threads(0):
            yield 1
            yield 2

    begun = work()
    assert next(begun) == 1
    assert numbers(libraries) == HELD
    del begun
    assert numbers(libraries) == BEFORE


@pytest.mark.parametrize("when", ["entering", "leaving"])
def test_ctrl_c_while_the_numbers_are_set(libraries, when):
    """It comes when the first library has been set and the second has not."""
    second = libraries[2]

    def interrupted(threads):
        del second.set_num_threads  # once
        raise KeyboardInterrupt

    if when == "entering":
        second.set_num_threads = interrupted
    with pytest.raises(KeyboardInterrupt), blas_threads(0):
        second.set_num_threads = interrupted
    if when == "entering":
        assert numbers(libraries) == BEFORE
    with blas_threads(0):
        assert numbers(libraries) == HELD
    assert numbers(libraries) == BEFORE


def test_numbers_that_others_change_in_between(libraries):
    """What counts is what there was before the first of our calls; what is chosen afterwards is left alone."""
    first = Call()
    libraries[0].set_num_threads(3)
    second = Call()
    first.end()
    libraries[2].set_num_threads(2)
    second.end()
    assert numbers(libraries) == BEFORE
    libraries[0].set_num_threads(4)
    Call().end()
    assert numbers(libraries) == [4, 6, 5]


def test_a_library_that_is_loaded_in_between(libraries, monkeypatch):
    """SciPy's comes when it is first needed: it is held from then on, and set back with the others."""
    monkeypatch.setattr(blas, "_knows_scipy", False)
    monkeypatch.setattr("threadpoolctl.ThreadpoolController", lambda: SimpleNamespace(lib_controllers=libraries))
    call = Call()
    libraries.append(Library("scipy.so", 9))
    monkeypatch.setattr(blas, "_knows_scipy", False)
    blas.scipy_linalg()
    assert numbers(libraries) == [*HELD, 1]
    call.end()
    assert numbers(libraries) == [*BEFORE, 9]
    monkeypatch.setattr(blas, "_knows_scipy", False)
    blas.scipy_linalg()  # nobody is within
    assert numbers(libraries) == [*BEFORE, 9]


def test_large_products_have_all_threads(libraries):
    with blas_threads(blas.MAX_SINGLE_THREAD_ENTRIES + 1):
        assert numbers(libraries) == BEFORE
    with blas_threads(blas.MAX_SINGLE_THREAD_ENTRIES):
        assert numbers(libraries) == HELD


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of Python, about threads and fork: that is the point
@pytest.mark.parametrize("within", [False, True])
def test_a_forked_child_forgets_the_calls_of_other_threads(libraries, within):
    call = Call()

    def forked():
        child = os.fork()
        if child == 0:
            os._exit(numbers(libraries) != (HELD if within else BEFORE))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    if within:
        with blas_threads(0):
            assert forked() == 0
    else:
        assert forked() == 0
    assert numbers(libraries) == HELD
    call.end()
    assert numbers(libraries) == BEFORE


def test_overlapping_calls_of_the_functions():
    """The real libraries: the second call begins when the first one is in its callback, and ends after it."""

    def threads():
        return [found.num_threads for found in ThreadpoolController().lib_controllers if found.user_api == "blas"]

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    gordan.maximize_margin(X, y, nu=0.8)  # SciPy is loaded
    assert "scipy.linalg" in sys.modules
    first, second, over = threading.Event(), threading.Event(), threading.Event()
    seen = []

    def begin(_):
        first.set()
        assert second.wait(60)
        seen.append(threads())

    def go_on(_):
        second.set()
        assert over.wait(60)
        seen.append(threads())

    def one():
        gordan.maximize_margin(X, y, nu=0.8, callback=begin)
        over.set()

    def other():
        assert first.wait(60)
        gordan.maximize_margin(X, y, nu=0.8, callback=go_on)

    before = threads()
    calls = [threading.Thread(target=work) for work in (one, other)]
    for call in calls:
        call.start()
    for call in calls:
        call.join(120)
    assert threads() == before
    assert len(seen) >= 2
    assert seen == [[1] * len(before)] * len(seen)
