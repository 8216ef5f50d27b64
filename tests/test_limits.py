"""Limits of time are kept: whatever cannot be interrupted is charged to a clock that advances by work, not by time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from test_blocks import cut

import gordan
from gordan import deadlines
from gordan.certificates import verified
from gordan.certificates.margins import Margin
from gordan.certificates.matrix import Matrix
from gordan.certificates.problem import Problem
from gordan.deadlines import LOOPS, Deadline, Pace
from gordan.ledger.question import PROOF_PASSES, Budget
from gordan.rows import Rows, ascent
from gordan.solve import batches, block_newton, cancelling, corral, loss_newton, overlapping, separation
from gordan.solve.restricted import FeasibleSet, Gram, Restricted

# Seconds of a multiplication in a product of matrices and for an entry in a pass: as on a machine a million times slower.
PACE = Pace(1e-6, 1e-6)
LIMIT = 4.0
NO_DASK = "dask is missing: pip install 'gordan[dask]'"


@pytest.mark.parametrize("ask", [gordan.maximize_margin, gordan.minimize_loss])
def test_a_limit_does_not_copy_the_rows_again(ask, monkeypatch):
    """The rows of positive weight are a copy of X, which the measured pace and the search share."""
    r, part, copies = np.random.default_rng(0), Problem.part, []
    monkeypatch.setattr(Problem, "part", lambda problem, rows: copies.append(len(rows)) or part(problem, rows))
    X = r.standard_normal((2000, 200))
    assert ask(X, X[:, 0] > 0, sample_weight=np.arange(2000) > 0, time_limit=600).status == "solved"
    assert copies == [1999]


@pytest.fixture
def descents(monkeypatch, clock):
    """The multiplications of each call of Wolfe's method, which are charged to the clock."""
    calls, descend = [], corral.descend

    def charging(*arguments):
        left = arguments[8]
        before = left[1]
        found = descend(*arguments)
        calls.append(before - left[1])
        clock.now += LOOPS * PACE.multiplication * calls[-1]
        return found

    monkeypatch.setattr(corral, "descend", charging)
    return calls


@pytest.fixture
def charged(monkeypatch, clock, descents):
    """The pieces of work that were charged to the clock, by name, with the seconds of the longest of each."""
    longest = {}

    def charge(owner, name, seconds):
        work = getattr(owner, name)

        def charging(*arguments, **options):
            found = work(*arguments, **options)
            cost = seconds(*arguments, **options)
            longest[name] = max(longest.get(name, 0.0), cost)
            clock.now += cost
            return found

        monkeypatch.setattr(owner, name, charging)

    def a_pass(rows, *_, **__):
        return PACE.entry * rows.storage.entries

    clock.tick = 1e-4
    monkeypatch.setattr(Pace, "matters", staticmethod(lambda n, d: True))
    monkeypatch.setattr(Pace, "measured", staticmethod(lambda seconds, entries: PACE))
    charge(Rows, "gram", lambda rows, i, j=None, weights=None: PACE.gram(rows, len(i), len(i if j is None else j)) / 2)
    charge(Rows, "scores", a_pass)
    charge(Rows, "combine", a_pass)
    charge(Matrix, "products", a_pass)
    charge(Matrix, "combination", a_pass)
    charge(Matrix, "absolute", a_pass)
    charge(Rows, "moments", lambda rows, q, i=None: 0.0 if rows.storage.on_device else moment_seconds(rows, len(q)))
    charge(overlapping, "_second_moments", lambda A: 0.8 * PACE.multiplication * A.shape[0] * A.shape[1] ** 2)
    charge(cancelling, "near", lambda S, p: 1.6 * PACE.multiplication * S.shape[0] * S.shape[1] ** 2)
    charge(verified, "deviation", lambda c, problem, *_: proof_seconds(len(c.rows), problem.X.d + 1))
    charge(loss_newton, "second_moment", lambda rows, i, *_: PACE.products(rows.d, rows.d, len(i)) / 2)
    charge(Gram, "stationary", lambda gram, F, *_: PACE.factors(len(F)))
    charge(separation, "reshaped", lambda taken: PACE.basis(taken.n, taken.d) / 2 if taken.d <= taken.n else 0.0)
    charge(ascent, "ascend", lambda arrays, *rest: 2 * PACE.entry * arrays[0].size * rest[12])
    charge(scipy.optimize, "linprog", lambda *_, options=None, **__: min((options or {}).get("time_limit", 60.0), 60.0))
    return longest


def moment_seconds(rows, m):
    """The seconds of the second moments of m rows, as measured with dense ones."""
    return 0.8 * PACE.multiplication * m * rows.entries / rows.n * rows.d


def proof_seconds(m, k):
    """The seconds of a proof that m rows of k columns cancel, as measured with a few hundred columns and more."""
    return 2.2 * PACE.multiplication * (m + k) * k**2


def of_storage(kind, X, tmp_path):
    if kind == "device":
        return pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'").from_numpy(X)
    if kind == "blocks":
        return cut(X, -(-len(X) // 3))
    if kind == "dask":
        return pytest.importorskip("dask.array", reason=NO_DASK).from_array(X, chunks=(-(-len(X) // 2), X.shape[1]))
    if kind == "mapped":
        np.save(tmp_path / "X.npy", X)
        return np.load(tmp_path / "X.npy", mmap_mode="r")
    return {"float64": X, "float32": X.astype(np.float32), "sparse": sp.csr_array(X * (np.abs(X) > 1))}[kind]


ASKED = {
    "separate": gordan.separate,
    "margin": gordan.maximize_margin,
    "norm 3": lambda X, y, **limit: gordan.maximize_margin(X, y, norm=3, **limit),
    "norm inf": lambda X, y, **limit: gordan.maximize_margin(X, y, norm=math.inf, **limit),
    "penalized": lambda X, y, **limit: gordan.maximize_margin(X, y, intercept="penalized", **limit),
    "nu": lambda X, y, **limit: gordan.maximize_margin(X, y, nu=0.4, **limit),
    "nu, norm 10": lambda X, y, **limit: gordan.maximize_margin(X, y, nu=0.4, norm=10, **limit),
    "diagnose": gordan.diagnose,
}


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse", "mapped", "blocks", "dask", "device"])
@pytest.mark.parametrize("asked", ASKED)
def test_no_piece_of_work_outlasts_the_limit(asked, kind, charged, clock, tmp_path, monkeypatch, request):
    if kind == "dask":
        request.getfixturevalue("cluster")
    monkeypatch.setattr(gordan.rows.device, "MIN_ENTRIES", 0)  # tensors stay where they are
    rng = np.random.default_rng(0)
    X, y = of_storage(kind, rng.standard_normal((900, 60)), tmp_path), rng.integers(0, 2, 900)
    begin = clock.now
    found = ASKED[asked](X, y, time_limit=LIMIT)
    assert clock.now - begin <= 1.1 * LIMIT + 0.3
    assert max(charged.values()) <= LIMIT
    assert getattr(found, "status", getattr(found, "kind", "")) in ("undecided", "time-limit", "margin-below-tol")


@pytest.mark.parametrize("kind", ["float64", "float32", "mapped", "blocks", "dask"])
@pytest.mark.parametrize("asked", ["separate", "margin", "nu", "diagnose"])
def test_long_steps_and_their_proofs_are_begun_only_in_time(asked, kind, charged, clock, tmp_path, request):
    """Rows that cancel are sought only if there is time to prove that they do."""
    if kind == "dask":
        request.getfixturevalue("cluster")
    rng = np.random.default_rng(0)
    X, y = of_storage(kind, rng.standard_normal((1000, 200)), tmp_path), rng.integers(0, 2, 1000)
    for limit in (20.0, 60.0, 180.0):
        begin = clock.now
        ASKED[asked](X, y, time_limit=limit)
        assert clock.now - begin <= 1.1 * limit + 0.3
    charged.clear()
    ASKED[asked](X, y, time_limit=1e6)
    assert max(charged.values()) > 10.0


@pytest.mark.parametrize("kind", ["float64", "sparse", "blocks"])
def test_a_hessian_that_would_outlast_the_limit_is_not_begun(kind, charged, clock, monkeypatch, tmp_path):
    monkeypatch.setattr("gordan.solve.playing.many_at_caps", lambda question: True)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 100))
    y, X = X[:, 0] + 0.5 * rng.standard_normal(2000) > 0, of_storage(kind, X, tmp_path)
    for limit in (20.0, 40.0):
        begin = clock.now
        assert gordan.maximize_margin(X, y, nu=0.5, time_limit=limit).status == "time-limit"
        assert clock.now - begin <= 1.1 * limit + 0.3
    assert gordan.maximize_margin(X, y, nu=0.5, time_limit=1e6).status in ("solved", "margin-below-tol")
    assert charged["moments"] > 1.0


@pytest.mark.parametrize("tol", [1e-9, 1e-13])
def test_soft_margins_of_a_device_leave_time_for_the_proof(tol, charged, clock, monkeypatch):
    """What the vectors over rows of the proof and the result take on the host is kept of the limit."""
    rng = np.random.default_rng(0)
    X, each, upper = rng.standard_normal((900, 60)), 1e-4, Margin.upper
    y = X[:, 0] + 0.5 * rng.standard_normal(900) > 0

    def slow(margin, *arguments, **options):
        clock.now += 0.5 * PROOF_PASSES * each * margin.X.n
        return upper(margin, *arguments, **options)

    monkeypatch.setattr(gordan.rows.device, "MIN_ENTRIES", 0)
    monkeypatch.setattr(Pace, "measured", staticmethod(lambda seconds, entries: Pace(PACE.multiplication, seconds / entries)))
    monkeypatch.setattr("gordan.ledger.question.ON_HOST", each)
    monkeypatch.setattr(Margin, "upper", slow)
    begin = clock.now
    monkeypatch.setattr("gordan.solve.finders.SECONDS_TO_PLAY", LIMIT / 900)
    found = gordan.maximize_margin(of_storage("device", X, None), y, nu=0.5, tol=tol, time_limit=LIMIT)
    assert (found.status, found.trace.method) == ("time-limit", "proximal_newton")
    assert 0.5 * LIMIT <= clock.now - begin <= 1.1 * LIMIT + 0.3


def test_a_step_that_exchanges_many_rows_can_be_interrupted(descents, clock):
    """One step of Wolfe's method takes as many exchanges as it needs: the work of a call is limited, not its steps alone."""
    rng = np.random.default_rng(0)
    n, d = 160, 150
    A = rng.standard_normal((n, d)) / 10 + (np.arange(d) == 0)
    allowed = FeasibleSet(np.zeros(n, np.int64), np.ones(1), np.full(n, np.inf))

    def descended(limit):
        begin = clock.now
        game = Restricted(Gram(A @ A.T), allowed, np.zeros(n), 0.0, d, Deadline(begin + limit, lambda: PACE))
        answer = game.descend(np.full(n, 1 / n), 1e-9)
        return answer, clock.now - begin

    answer, enough = descended(1e6)
    assert answer.settled
    lengths = []
    for share in (0.2, 0.4, 0.6):
        descents.clear()
        stopped, seconds = descended(share * enough)
        assert seconds <= 1.05 * share * enough
        assert descents
        assert not stopped.settled
        np.testing.assert_allclose(stopped.scores, A @ (A.T @ stopped.p), atol=1e-12)
        assert min(stopped.p) >= 0
        assert abs(sum(stopped.p) - 1) <= 1e-12
        lengths.append(float(np.linalg.norm(A.T @ stopped.p)))
    assert lengths == sorted(lengths, reverse=True)
    assert descended(0.01 * enough)[1] <= 0.01 * enough  # too short for the factor: it is not begun


def test_a_matrix_of_second_moments_that_would_outlast_the_limit_is_not_begun(charged, clock):
    """Steps of conjugate gradients, of two passes each, can be interrupted."""
    rng = np.random.default_rng(0)
    X, y, limit, begin = rng.standard_normal((900, 60)), rng.integers(0, 2, 900), 3.0, clock.now
    found = gordan.minimize_loss(X, y, time_limit=limit)
    assert clock.now - begin <= 1.1 * limit + 0.3
    assert (found.status, "second_moment" in charged) == ("solved", False)
    assert gordan.minimize_loss(X, y, time_limit=1e6).status == "solved"
    assert charged["second_moment"] > limit


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "hinge"])
@pytest.mark.parametrize("columns", [1, 5])
def test_matrices_of_losses_are_begun_only_in_time(loss, columns, charged, clock, monkeypatch):
    """The matrices of one label vector, of several in shared passes, and of the smoothed problems of a hinge."""
    rng, work = np.random.default_rng(0), loss_newton.second_moment
    X, limit = rng.standard_normal((900, 60)), 3.0
    Y = np.sign(X[:, :columns] + rng.standard_normal((900, columns)))
    Y = Y.astype(np.int8) if columns > 1 else Y[:, 0]
    reduced = Rows.reduce

    def reduce(rows, kernel, *arguments, **options):
        if kernel is block_newton.SEPARATE.moments:
            charged["moments"] = PACE.products(rows.d, rows.d, rows.n) / 2
            clock.now += charged["moments"]
        return reduced(rows, kernel, *arguments, **options)

    monkeypatch.setattr(batches, "_few", lambda n, d: False)
    monkeypatch.setattr(batches, "_shares_passes", lambda problem, d: True)
    monkeypatch.setattr(block_newton, "second_moment", work)  # the charged one, which is there under its own name
    monkeypatch.setattr(Rows, "reduce", reduce)
    begin = clock.now
    gordan.minimize_loss(X, Y, loss=loss, time_limit=limit, C=100.0, tol=1e-9)
    assert clock.now - begin <= 1.1 * limit + 0.3
    begin = clock.now
    gordan.minimize_loss(X, Y, loss=loss, time_limit=1e6, C=100.0, tol=1e-9)
    assert clock.now - begin > 1.5 * limit


@pytest.mark.parametrize(("loss", "passes"), [("squared_hinge", 1), ("logistic", 1), ("multinomial", 2)])
def test_after_a_pass_that_outlasts_the_limit_only_the_proof_follows(loss, passes, clock, monkeypatch):
    """Elsewhere than in memory each pass may take as long as the limit: b is moved by what the last one returned."""
    torch = pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'")
    monkeypatch.setattr(gordan.rows.device, "MIN_ENTRIES", 0)
    rng = np.random.default_rng(0)
    X, y, reduce, begun = rng.standard_normal((900, 5)), rng.integers(0, 4, 900), Rows.reduce, []

    def slow(rows, *arguments, **options):
        if rows.n == len(X):  # and not a part of them, with which the search begins
            begun.append(clock.now)
            clock.now += LIMIT
        return reduce(rows, *arguments, **options)

    monkeypatch.setattr(batches, "_few", lambda n, d: False)
    monkeypatch.setattr(Rows, "reduce", slow)
    monkeypatch.setattr("gordan.certificates.regions.Slopes.proved", lambda *_: pytest.fail("a pass for a place"))
    monkeypatch.setattr("gordan.certificates.multinomial.Multinomial.balance", lambda *_: pytest.fail("a pass for a place"))
    model = gordan.LinearClassifier(loss, tol=1e-9, time_limit=LIMIT)
    with pytest.warns(Warning, match="time-limit"):
        model.fit(torch.from_numpy(X), y)
    assert len(begun) == passes
    assert np.isfinite(model.objective_).all()
    assert not model.same_prediction(X).any()
    monkeypatch.undo()
    if loss == "multinomial":
        assert model._places[0].unproved(model.certificate_, Problem.of(X, y, several=True)) == ""


def test_with_enough_time_nothing_is_refused(charged, clock):
    """The same work, on the same clock, with a limit that leaves room for it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 60))
    y = X[:, 0] > 0
    result = gordan.maximize_margin(X, y, time_limit=1e6)
    assert (result.status, charged["gram"] > LIMIT) == ("solved", True)


def test_what_a_deadline_affords(clock):
    deadline = Deadline(clock.now + 10.0, lambda: Pace(1.0, 1.0))
    assert deadline.affords(9.0)
    assert deadline.largest(100, lambda m: m / 2) == 20
    assert deadline.refused
    assert deadlines.UNLIMITED.affords(math.inf)
    assert deadlines.UNLIMITED.largest(100, lambda m: math.inf) == 100
    clock.now += 11.0
    assert deadline.passed
    assert deadline.left == 1e-3
    assert not Deadline(clock.now - 1.0).affords(0.0)


def test_what_a_part_of_the_time_refuses_is_known_of_the_whole(clock):
    """Work that the whole would have had time for was not left out for lack of time."""
    budget = Budget(clock.now, clock.now + 10.0, pace=lambda: PACE)
    part = budget.time.sooner(0.5)
    assert not part.affords(6.0)
    assert (part.refused, budget.time.refused, budget.short) == (True, False, False)
    for refusing in (budget.time.sooner(0.5).sooner(0.5), budget.time_to_prove, replace(budget, within=budget.time).time):
        budget.time.refused = False
        assert not refusing.affords(12.0)
        assert budget.short
