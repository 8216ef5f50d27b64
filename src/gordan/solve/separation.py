"""Proposals for `separate`: float candidates from an accelerated game and a linear program, exact ones from few rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from flint import fmpq, fmpz

from gordan import dynamics, methods
from gordan.arrays import Array
from gordan.certificates.bounds import dyadic
from gordan.certificates.problem import Problem
from gordan.geometry import Simplex
from gordan.research import SMALLEST_RADIUS
from gordan.rows import Rows
from gordan.solve.alternative import Balance, alternative, balance_of_support
from gordan.trace import Moment

# Rows up to which the exact simplex method, whose cost grows with their cube, is worth starting.
MOST_PIVOTED = 60


@dataclass(frozen=True)
class Proposal:
    """Something to be proved: w and b that may separate, weights p that bound the margin, or rows whose hull may hold 0."""

    w: Array | None = None
    b: float = 0.0
    p: Array | None = None
    witness: dict[int, int] | None = None
    interrupted: bool = False


def from_game(
    problem: Problem,
    intercept: str,
    rounds: int,
    deadline: float,
    stop: Callable[[Moment], object] | None = None,
    *,
    until_separated: bool = True,
) -> Proposal | None:
    """The smooth Perceptron, until it separates or for all rounds; p bounds the margin either way.

    None where the rows leave the range of floats.
    """
    signs = problem.signs
    rows = Rows(problem.storage, signs, constant=intercept == "penalized")
    R = rows.radius()
    if not SMALLEST_RADIUS <= R <= 1 / SMALLEST_RADIUS:
        return None
    p_set = Simplex(problem.X.n, halves=(signs < 0) if intercept == "free" else None)
    form = methods.smooth_perceptron(eta=0.5).build(rows.scaled(1 / R), p_set, p_set.centre)
    record = {int(t) for t in np.unique(np.geomspace(1, rounds, 60).round())}

    def done(moment: Moment) -> bool:
        found = until_separated and moment.margin > 0
        return bool(stop is not None and stop(moment)) or found or time.perf_counter() > deadline

    trace = dynamics.run(form, rounds, record=record, scale=R, callback=done)
    w = trace.w_best if trace.lower[-1] > 0 else trace.w
    return Proposal(*split(problem, w, intercept), p=trace.p_best, interrupted=trace.status == "interrupted")


def split(problem: Problem, w: Array, intercept: str) -> tuple[Array, float]:
    """w and b from the vector of the game; a free b puts the plane midway between the classes."""
    if intercept == "none":
        return w, 0.0
    if intercept == "penalized":
        return w[:-1], float(w[-1])
    scores = Rows(problem.storage, np.ones_like(problem.signs)).scores(w)
    lowest, highest = float(scores[problem.signs > 0].min()), float(scores[problem.signs < 0].max())
    return w, -(lowest / 2 + highest / 2)


def from_program(problem: Problem, intercept: str, deadline: float) -> tuple[Proposal | None, Array]:
    """max t, A w ≥ t, |w_j| ≤ 1 by HiGHS, on rows and columns scaled by powers of two; also the rows with a multiplier."""
    from scipy.optimize import linprog

    A = _scaled_rows(problem, intercept)
    n, k = A.shape
    columns = abs(A).max(axis=0).toarray().ravel() if sp.issparse(A) else np.abs(A).max(axis=0)
    shrink = np.where(columns > 0, 2.0 ** -np.ceil(np.log2(np.where(columns > 0, columns, 1.0))), 1.0)
    A = A @ sp.diags_array(shrink) if sp.issparse(A) else A * shrink
    block = sp.hstack([-A, sp.csr_array(np.ones((n, 1)))], format="csr") if sp.issparse(A) else np.column_stack([-A, np.ones(n)])
    left = deadline - time.perf_counter()
    answer = linprog(
        np.r_[np.zeros(k), -1.0],
        A_ub=block,
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * k + [(None, 1)],
        method="highs-ds",
        options={} if math.isinf(left) else {"time_limit": max(0.1, left)},
    )
    if answer.x is None:
        return None, np.arange(0)
    support = np.flatnonzero(answer.ineqlin.marginals < -1e-12)
    w = answer.x[:k] * shrink
    if intercept == "none":
        return Proposal(w=w), support
    return Proposal(w=w[:-1], b=float(w[-1])), support


def _scaled_rows(problem: Problem, intercept: str) -> Any:
    """A with each row divided by a power of two near its largest entry (which separators do not see), and the constant column."""
    X = problem.X
    signs = problem.signs.astype(np.float64)
    if X.sparse:
        data, indices, indptr = X.arrays
        A = sp.csr_array((data.astype(np.float64), indices.astype(np.int64), indptr.astype(np.int64)), shape=(X.n, X.d))
        if intercept != "none":
            A = sp.hstack([A, sp.csr_array(np.ones((X.n, 1)))], format="csr")
        return sp.diags_array(signs) @ A
    A = X.arrays[0].astype(np.float64)
    if intercept != "none":
        A = np.column_stack([A, np.ones(X.n)])
    top = np.abs(A).max(axis=1)
    exponents = np.where(top > 0, np.frexp(top)[1], 0)
    return np.ldexp(A, -exponents[:, None]) * signs[:, None]


def exact_rows(problem: Problem, rows: Any, intercept: str) -> tuple[list[list[Any]], list[int]]:
    """These rows of A (with the constant column) as integers, each divided by a power of two 2^e; and the e."""
    k = problem.X.d + (intercept != "none")
    M, exponents = [], []
    for i in rows:
        columns, values = problem.X.row(int(i))
        entries = {int(j): dyadic(float(x)) for j, x in zip(columns, values, strict=True)}
        if intercept != "none":
            entries[k - 1] = (1, 0)
        low = min((e for _, e in entries.values()), default=0)
        sign = int(problem.signs[i])
        row = [fmpq(0)] * k
        for j, (m, e) in entries.items():
            row[j] = fmpq(fmpz(sign * m) << (e - low)) if e > low else fmpq(sign * m)
        M.append(row)
        exponents.append(low)
    return M, exponents


def exact_working_set(problem: Problem, intercept: str, start: Array, deadline: float, most: int) -> Iterator[Proposal]:
    """Gordan's alternative decided exactly on a growing set of rows.

    A witness ends it; a separator of the set is proposed for all rows, and the rows it fails come into the set. It also ends when
    the set outgrows `most` or the time is up.
    """
    chosen = [int(i) for i in start]
    while len(chosen) <= most and time.perf_counter() < deadline:
        if chosen:
            M, exponents = exact_rows(problem, chosen, intercept)
            answer = balance_of_support(M) or (alternative(M) if len(M) <= MOST_PIVOTED else None)
            if answer is None:
                return
            if isinstance(answer, Balance):
                yield Proposal(witness=_unscaled(answer.weights, chosen, exponents))
                return
            w = _as_floats(answer.w)
            for rounded in _rescaled(M):  # only asked for if w, once rounded, does not separate
                yield Proposal(*((w, 0.0) if intercept == "none" else (w[:-1], float(w[-1]))))
                w = rounded
        else:
            w = np.zeros(problem.X.d + (intercept != "none"))
        body, b = (w, 0.0) if intercept == "none" else (w[:-1], float(w[-1]))
        yield Proposal(w=body, b=b)
        failed = _lowest_rows(problem, body, b, chosen, max(2, problem.X.d))
        if not len(failed):
            return
        chosen.extend(int(i) for i in failed)


def _rescaled(M: list[list[Any]], times: int = 6) -> Iterator[Array]:
    """Other separators of M, which survive rounding better: rows and columns scaled by powers of two so that the terms of each
    score, at the last separator, are at most about 1."""
    columns = [_power(fmpq(1))] * len(M[0])
    sizes = [_power(max(abs(x) for x in row)) for row in M]
    for _ in range(times):
        answer = alternative([[x * c / s for x, c in zip(row, columns, strict=True)] for row, s in zip(M, sizes, strict=True)])
        if isinstance(answer, Balance):
            return
        w = [x * c for x, c in zip(answer.w, columns, strict=True)]
        yield _as_floats(w)
        columns = [_power(x) if x != 0 else c for x, c in zip(w, columns, strict=True)]
        sizes = [_power(max(abs(x * v) for x, v in zip(row, w, strict=True))) for row in M]
    for k in range(1, 60):  # a thin cone: other multiples of w round to other directions
        yield _as_floats([x * fmpq(60 + k, 60) for x in w])


def _power(x: Any) -> Any:
    """The power of two near |x|; 1 for 0."""
    e = int(x.p.bit_length()) - int(x.q.bit_length()) if x != 0 else 0
    return fmpq(fmpz(1) << e) if e >= 0 else fmpq(fmpz(1), fmpz(1) << -e)


def _lowest_rows(problem: Problem, w: Array, b: float, chosen: list[int], count: int) -> Array:
    """The rows outside the set with the lowest scores, relative to their size, that are not clearly positive."""
    lo, absolute = np.empty(problem.X.n), np.empty(problem.X.n)
    with np.errstate(all="ignore"):
        for begin, end in problem.X.blocks():
            s, a, _ = problem.X.products(w, begin, end)
            lo[begin:end], absolute[begin:end] = problem.signs[begin:end] * (s + b), a + abs(b)
        relative = np.nan_to_num(lo / np.where(absolute > 0, absolute, 1.0), nan=-1.0)
    outside = np.setdiff1d(np.flatnonzero(relative <= 1e-12), chosen)
    return outside[np.argsort(relative[outside], kind="stable")[:count]]


def _as_floats(w: list[Any]) -> Array:
    """The rational w, scaled by a power of two to largest entry near 1, as the nearest floats."""
    size: Any = max(abs(x) for x in w)
    if size == 0:
        return np.zeros(len(w))
    shift = int(size.q.bit_length()) - int(size.p.bit_length())
    return np.array([_nearest(x, shift) for x in w])


def _nearest(x: Any, shift: int) -> float:
    """x·2^shift as a float."""
    p, q = int(x.p), int(x.q)
    p, q = (p << shift, q) if shift >= 0 else (p, q << -shift)
    try:
        return p / q
    except OverflowError:
        return math.copysign(math.inf, p)


def _unscaled(weights: dict[int, int], chosen: list[int], exponents: list[int]) -> dict[int, int]:
    """Weights for the rows as they are, from weights for the rows divided by 2^e."""
    low = min(-exponents[i] for i in weights)
    scaled = {chosen[i]: weight << (-exponents[i] - low) for i, weight in weights.items()}
    divisor = math.gcd(*scaled.values())
    return {i: weight // divisor for i, weight in sorted(scaled.items())}
