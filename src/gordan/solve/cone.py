"""The recession cone C = {w : A w ≥ 0} of the logistic likelihood in independent coordinates, and exact arithmetic on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from flint import fmpq, fmpz_mat

from gordan.arrays import Array, as_dense, is_sparse
from gordan.blas import blas_threads
from gordan.certificates import exact
from gordan.certificates.problem import Problem
from gordan.certificates.verified import ScoreProver, independent, signed_rows
from gordan.deadlines import UNLIMITED, Deadline
from gordan.intercepts import Intercept
from gordan.memory import fits
from gordan.solve.alternative import reading_seconds, solving_seconds
from gordan.solve.cancelling import column_order
from gordan.solve.separation import largest_entries

# Columns up to which dependence is examined; there may be more where rows are as few.
MAX_COLUMNS = 600
# Copies of A that exist at a time while it is scaled and made into a program, as SciPy receives it and as HiGHS holds it.
COPIES = 6
# Passes that scaling takes, about, with the product and the sort that follow: they are copies into new memory, on one thread.
SCALING_PASSES = 150.0
# Passes that the signs of exact scores take, about.
SIGN_PASSES = 10.0
# Binary digits tried when floats are made rational: few first, for directions that people can read.
DIGITS = (0, 2, 4, 8, 14, 22, 32, 44, 52)


@dataclass(frozen=True, eq=False)
class Cone:
    """The cone C in the coordinates `columns` of A = [X, 1]; the others are taken as 0, since they depend on these.

    Nothing long is begun after the `deadline`.
    """

    problem: Problem
    intercept: Intercept
    columns: tuple[int, ...]
    deadline: Deadline = UNLIMITED

    def program(self, costs: Array, **constraints: Any) -> Any:
        """Return the solution of a linear program by HiGHS; None if it has none, or the time is up."""
        if self.deadline.passed:
            return None
        from scipy.optimize import linprog

        options = {} if math.isinf(self.deadline.at) else {"time_limit": self.deadline.left}
        answer = linprog(costs, method="highs", options=options, **constraints)
        return answer if answer.status == 0 else None

    @property
    def k(self) -> int:
        """The number of coordinates."""
        return len(self.columns)

    def rows(self, chosen: Sequence[int]) -> tuple[Any, list[int]]:
        """Return these rows of A as an integer matrix M, and e with A_i = 2^e_i M_i."""
        found, exponents = exact.integer_rows(self.problem, chosen, self.intercept)
        return exact.matrix([[row[j] for j in self.columns] for row in found], self.k), exponents

    def whole(self, w: Sequence[int]) -> list[int]:
        """Return w in the coordinates of A."""
        full = [0] * self.intercept.columns(self.problem.X.d)
        for j, value in zip(self.columns, w, strict=True):
            full[j] = value
        return full

    def signs(self, w: Sequence[int], among: Array | None = None) -> Array:
        """Return the exact signs of A w; where `among` names rows, only those of these rows are reliable."""
        return exact.score_signs(self.problem.X, *self.intercept.plane_of(self.whole(w)), self.problem.signs, among)

    @cached_property
    def scalable(self) -> bool:
        """Whether there is room and time for `floats`."""
        X = self.problem.storage
        cells = X.entries if X.sparse else X.n * (self.k + 1)
        room = fits(COPIES * (16 if X.sparse else 8) * cells)
        return room and self.deadline.affords(SCALING_PASSES * self.deadline.pace.entry * cells)

    @cached_property
    def floats(self) -> tuple[Any, Array, Array]:
        """F, e and s with F = 2^-e A s near 1 in size: rows and columns scaled by powers of two, dense or CSR."""
        A, signs = self.problem.storage.plain(), self.problem.signs.astype(np.float64)
        sparse = is_sparse(A)
        if self.intercept.exists:
            ones = np.ones((len(signs), 1))
            A = sp.hstack([A, sp.csr_array(ones)], format="csr") if sparse else np.column_stack([A, ones])
        A = A[:, list(self.columns)] if self.k < A.shape[1] else A
        A = sp.csr_array(sp.diags_array(signs) @ A) if sparse else A * signs[:, None]
        e = _exponents(largest_entries(A, 1))
        if sparse:
            A.data = np.ldexp(A.data, -np.repeat(e, np.diff(A.indptr)))
        else:
            A = np.ldexp(A, -e[:, None])
        s = np.ldexp(1.0, np.minimum(1000, -_exponents(largest_entries(A, 0))))  # as far as floats go, for subnormal columns
        return sp.csr_array(A @ sp.diags_array(s)) if sparse else A * s, e, s

    @cached_property
    def scores(self) -> ScoreProver | None:
        """A prover of the signs of products with `floats`; None if scaling has lost entries or digits of A."""
        F, A = self.floats[0], self.problem.storage.plain()
        if self.k < self.intercept.columns(self.problem.X.d):
            A = A[:, [j for j in self.columns if j < self.problem.X.d]]
        found = ScoreProver(F)
        stored, entries = (np.count_nonzero(each.data if is_sparse(each) else each) for each in (F, A))
        constant = F.shape[0] if self.intercept.exists and self.problem.X.d in self.columns else 0
        return found if found.in_range and stored == entries + constant else None

    def separates(self, near: Array) -> bool:
        """Return whether integers w, for scaled columns, are proved to have A w > 0: in floats, or exactly."""
        F, _, s = self.floats
        if not np.min(F @ near) > 0:
            return False
        proved = self.scores is not None and self.scores.positive(near[:, None])[0]
        return bool(proved or (self.signs(unscaled(s, near)) > 0).all())


def _exponents(top: Array) -> Array:
    return np.where(top > 0, np.frexp(top)[1], 0)


def independent_columns(problem: Problem, intercept: Intercept, deadline: Deadline = UNLIMITED) -> tuple[int, ...] | None:
    """Return the columns of [X, 1] that are independent and on which all others depend.

    These are the first possible ones, where the constant comes before all others. They are found exactly, unless it is proved in
    floats that all columns are independent. None if that would take too long or too much memory.
    """
    n, k = problem.X.n, intercept.columns(problem.X.d)
    if min(n, k) > MAX_COLUMNS:
        return None
    for many in (k + 20, 3 * k + 20 if n > 3 * k else n):  # of dense rows few are enough
        chosen = np.linspace(0, n - 1, min(n, many)).astype(int)
        if _all_independent(problem, chosen, intercept):
            return tuple(range(k))
    while exact.numbers_fit(k * (2 * len(chosen) + min(k, MAX_COLUMNS))):
        if not deadline.affords(reading_seconds(problem, chosen, intercept, deadline)):
            return None
        M = exact.matrix(exact.integer_rows(problem, chosen, intercept)[0], k)
        columns = _pivot_columns(M, intercept.exists)
        if len(columns) in (n, k):
            return columns
        if k > MAX_COLUMNS:
            return None
        basis = exact.pivots(M.transpose())
        B = some_rows(M, basis)
        null = exact.null_space(B, exact.pivots(B))
        outside = _outside_span(problem, intercept, null, deadline)
        if outside is None or not outside.any():
            return None if outside is None else columns
        chosen = np.union1d(chosen[basis], np.flatnonzero(outside)[: k + 20])
    return None


def _pivot_columns(M: Any, constant_last: bool) -> tuple[int, ...]:
    """Return the first independent columns of an integer matrix, in `column_order`."""
    n, k = M.nrows(), M.ncols()
    order = column_order(k, constant_last)
    ordered = fmpz_mat(n, k, [M[i, j] for i in range(n) for j in order])
    return tuple(sorted(order[j] for j in exact.pivots(ordered)))


def _all_independent(problem: Problem, chosen: Array, intercept: Intercept) -> bool:
    """Return whether these rows prove in floats that all columns are independent."""
    cells = len(chosen) * intercept.columns(problem.X.d)
    if cells > len(chosen) ** 2 or not fits(8.0 * COPIES * cells):
        return False
    with blas_threads(cells):
        return independent(signed_rows(problem, chosen.tolist(), intercept, problem.signs))


def _outside_span(problem: Problem, intercept: Intercept, null: Any, deadline: Deadline) -> Array | None:
    """Return which rows are outside the span with this null space, at least some if there are any; None if time is short.

    A random combination of the null vectors finds some at once; each null vector is needed to see that there are none.
    """
    mixed = null * fmpz_mat(null.ncols(), 1, np.random.default_rng(0).integers(1, 1000, null.ncols()).tolist())
    outside = np.zeros(problem.X.n, dtype=bool)
    for v in (*columns_of(mixed), *columns_of(null)):
        if not deadline.affords(SIGN_PASSES * deadline.pace.entry * problem.X.storage.entries):
            return None
        outside = exact.score_signs(problem.X, *intercept.plane_of(v), problem.signs) != 0
        if outside.any():
            break
    return outside


def quotient(cone: Cone, chosen: Sequence[int], null: Any) -> tuple[list[list[int]], list[int], list[int]]:
    """Return the rows times the null space, as distinct primitive nonzero integer rows, with their origins and divisors."""
    product = cone.rows(chosen)[0] * null
    seen: dict[tuple[int, ...], tuple[int, int]] = {}
    for position, i in enumerate(chosen):
        row = [int(product[position, j]) for j in range(null.ncols())]
        divisor = math.gcd(*row)
        if divisor:
            seen.setdefault(tuple(x // divisor for x in row), (int(i), divisor))
    return [[*row] for row in seen], [i for i, _ in seen.values()], [divisor for _, divisor in seen.values()]


def in_rows(B: Any, v: Sequence[Any], deadline: Deadline = UNLIMITED) -> list[Any] | None:
    """Return c with Σ c_i B_i = v for independent rows B; None if v is outside their span, or time is short."""
    r, k = B.nrows(), B.ncols()
    if not r:
        return None if any(v) else []
    columns = exact.pivots(B)
    if len(columns) < r:
        return None
    target, denominator = exact.integers(v)
    part = fmpz_mat(r, r, [B[i, j] for j in columns for i in range(r)])
    if not deadline.affords(solving_seconds(part, deadline)):
        return None
    solved = part.solve(fmpz_mat(r, 1, [target[j] for j in columns]))
    c, common = exact.integers([solved[i, 0] for i in range(r)])
    product = fmpz_mat(1, r, c) * B
    if any(product[0, j] != common * target[j] for j in range(k)):
        return None
    return [fmpq(x, common * denominator) for x in c]


def combined(null: Any, c: Sequence[Any]) -> tuple[int, ...]:
    """Return null · c as a primitive integer vector."""
    numerators, _ = exact.integers(c)
    product = null * fmpz_mat(len(c), 1, numerators)
    return exact.primitive([int(product[j, 0]) for j in range(null.nrows())])


def columns_of(M: Any) -> Iterator[list[int]]:
    """Yield the columns of an integer matrix."""
    for column in range(M.ncols()):
        yield [int(M[j, column]) for j in range(M.nrows())]


def some_rows(M: Any, rows: Sequence[int]) -> Any:
    """Return these rows of an integer matrix."""
    return fmpz_mat(len(rows), M.ncols(), [M[i, j] for i in rows for j in range(M.ncols())])


def rounded(w: Array) -> Iterator[Array]:
    """Yield integers near multiples of w, with more and more digits."""
    size = float(np.abs(w).max(initial=0.0))
    for digits in DIGITS if 0 < size < math.inf else ():
        near = np.rint(w / size * 2.0**digits)
        if near.any():
            yield near


def unscaled(s: Array, near: Array) -> list[int]:
    """Return integers for the columns of A, up to a power of two, from integers for columns multiplied by powers of two s."""
    shifts = np.frexp(s)[1]
    return [int(x) << shift for x, shift in zip(near.tolist(), (shifts - np.min(shifts)).tolist(), strict=True)]


def rational(cone: Cone, w: Array, null: Any, columns: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield integer vectors of the null space (None: of the whole space) near w, which is for scaled columns.

    Coordinates other than those of the pivot `columns` are rounded, to more and more digits; the null space gives the others.
    """
    pivot = set(columns)
    free = [j for j in range(cone.k) if j not in pivot]
    for near in rounded(w[free]):
        whole = unscaled(cone.floats[2][free], near)
        if null is None:
            yield exact.primitive(whole)
            continue
        # column number i of the null space is the only one that moves the i-th free coordinate
        yield combined(null, [fmpq(x) / fmpq(null[j, i]) for i, (x, j) in enumerate(zip(whole, free, strict=True))])


def dense(F: Any) -> Array:
    """Return F as a dense array."""
    return np.asarray(as_dense(F))
