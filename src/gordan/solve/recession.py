"""The recession cone C = {w : A w ≥ 0} of the logistic likelihood: its relative interior, and the signs of its coordinates.

Let S be the rows that are strict, A_i w > 0, for some w in C, and Z the others. Sums of weak separators are weak separators, so one
w in C is strict on all of S (it lies in the relative interior), and by Stiemke's lemma some p > 0 on Z has Σ p_i A_i = 0. Finding
S, w and p is Gordan's alternative, repeated: a balance p of some rows says that C lies in the null space of their span V; in what is
left, the rows modulo V either have a separator, and that is w, or another balance, which joins p and makes V larger.

`exactly` does just that in rational arithmetic. For many rows `by_program` guesses the split in floats with HiGHS (max Σt_i,
A_i w ≥ t_i, 0 ≤ t_i ≤ 1, whose solution has t = 1 on S, t = 0 on Z, and multipliers of at least 1 on Z) over a growing set of rows;
`completed` makes it exact, or gives up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from flint import fmpq, fmpz_mat

from gordan.arrays import Array
from gordan.certificates import exact
from gordan.certificates.problem import Problem
from gordan.solve.alternative import Separator, alternative

# Problems with at most this many entries (columns squared) are decided in rational arithmetic at once.
SMALL = 20_000
# Rows up to which the exact simplex method is worth starting where floats have failed, and columns.
MOST_PIVOTED, MOST_PIVOTED_COLUMNS = 60, 20
# Columns beyond which dependence is not examined unless there are as few rows, and no linear program is started.
MOST_COLUMNS, MOST_PROGRAM_COLUMNS = 500, 2000
ROUNDS = 100
# Binary digits tried when floats are made rational: few first, for directions that people can read.
DIGITS = (0, 2, 4, 8, 14, 22, 32, 44, 52)
# Scores of strict rows are at least 1 in the program; what is nearer to 0 than this may be 0.
NEAR_ZERO = 1e-6
SAME_SPAN = 1e-9


@dataclass(frozen=True, eq=False)
class Cone:
    """C in the coordinates `columns` of A = [X, 1]; the others are left out (taken as 0) because they depend on these."""

    problem: Problem
    intercept: str
    columns: tuple[int, ...]

    @property
    def k(self) -> int:
        """The number of coordinates."""
        return len(self.columns)

    def rows(self, chosen: Sequence[int]) -> tuple[Any, list[int]]:
        """These rows of A as an integer matrix M, and e with A_i = 2^e_i M_i."""
        found = [exact.integer_row(self.problem, int(i), int(self.problem.signs[i]), self.intercept) for i in chosen]
        return exact.matrix([[row[j] for j in self.columns] for row, _ in found], self.k), [e for _, e in found]

    def whole(self, w: Sequence[int]) -> list[int]:
        """w in the coordinates of A."""
        full = [0] * (self.problem.X.d + (self.intercept != "none"))
        for j, value in zip(self.columns, w, strict=True):
            full[j] = value
        return full

    def signs(self, w: Sequence[int]) -> Array:
        """The signs of A w, exactly."""
        return exact.score_signs(self.problem.X, *exact.split(self.whole(w), self.intercept), self.problem.signs)

    @cached_property
    def floats(self) -> tuple[Any, Array, Array]:
        """F, e, s with F = 2^-e A s near 1 in size (rows and columns scaled by powers of two), dense or CSR."""
        X, signs = self.problem.X, self.problem.signs.astype(np.float64)
        if X.sparse:
            data, indices, indptr = X.arrays
            A = sp.csr_array((data.astype(np.float64), indices.astype(np.int64), indptr.astype(np.int64)), shape=(X.n, X.d))
            if self.intercept != "none":
                A = sp.hstack([A, sp.csr_array(np.ones((X.n, 1)))], format="csr")
            A = sp.csr_array(sp.diags_array(signs) @ A[:, list(self.columns)])
            top = abs(A).max(axis=1).toarray().ravel()
        else:
            A = X.arrays[0].astype(np.float64)
            if self.intercept != "none":
                A = np.column_stack([A, np.ones(X.n)])
            A = A[:, list(self.columns)] * signs[:, None]
            top = np.abs(A).max(axis=1)
        e = np.where(top > 0, np.frexp(top)[1], 0)
        A = sp.diags_array(np.ldexp(1.0, -e)) @ A if X.sparse else np.ldexp(A, -e[:, None])
        side = abs(A).max(axis=0).toarray().ravel() if X.sparse else np.abs(A).max(axis=0)
        s = np.ldexp(1.0, -np.where(side > 0, np.frexp(side)[1], 0))
        return sp.csr_array(A @ sp.diags_array(s)) if X.sparse else A * s, e, s


@dataclass(frozen=True, eq=False)
class Recession:
    """w, an integer vector in the relative interior of C, and p, positive integers by row with Σ p_i A_i = 0, whose rows span the
    rows on which no vector of C is strict. `signs` are those of A w; the columns of `null` span {v : A_i v = 0 for the rows of p}, one
    for each coordinate that is not in `pivots`."""

    cone: Cone
    w: tuple[int, ...]
    p: dict[int, int]
    signs: Array
    null: Any
    pivots: list[int]

    @property
    def kind(self) -> str:
        """What it means for the likelihood."""
        if not self.signs.any():
            return "overlap"
        return "complete" if self.signs.all() else "quasi-complete"


def independent_columns(problem: Problem, intercept: str) -> tuple[int, ...] | None:
    """Columns of [X, 1] that are independent and on which all others depend: the first possible, the constant before all others.

    Exact. None where that would take too long.
    """
    n, k = problem.X.n, problem.X.d + (intercept != "none")
    if min(n, k) > MOST_COLUMNS:
        return None
    order = list(range(k)) if intercept == "none" else [k - 1, *range(k - 1)]
    chosen = np.unique(np.linspace(0, n - 1, min(n, 3 * k + 20)).astype(int)) if n > 3 * k else np.arange(n)
    while True:
        M = exact.matrix(exact.integer_rows(problem, chosen, problem.signs, intercept), k)
        ordered = fmpz_mat(len(chosen), k, [M[i, j] for i in range(len(chosen)) for j in order])
        columns = tuple(sorted(order[j] for j in exact.pivots(ordered)))
        if len(columns) in (n, k):
            return columns
        if k > MOST_COLUMNS:
            return None
        basis = exact.pivots(M.transpose())
        B = _some_rows(M, basis)
        null = exact.null_space(B, exact.pivots(B))
        missed: Array = np.zeros(n, dtype=bool)
        for v in _columns(null):
            missed |= exact.score_signs(problem.X, *exact.split(v, intercept), problem.signs) != 0
        if not missed.any():
            return columns
        chosen = np.union1d(chosen[basis], np.flatnonzero(missed)[: k + 20])


def find(cone: Cone) -> Recession | None:
    """w and p; None where neither floats nor the time for exact arithmetic sufficed."""
    n, k = cone.problem.X.n, cone.k
    if n * k * k <= SMALL:
        return exactly(cone, np.arange(n), n)
    if k > MOST_PROGRAM_COLUMNS:
        return None
    split = by_program(cone)
    found = None if split is None else completed(cone, split)
    if found is None and k <= MOST_PIVOTED_COLUMNS:
        start = np.linspace(0, n - 1, k).astype(int) if split is None else split.on_plane[:k]
        found = exactly(cone, np.unique(start), MOST_PIVOTED)
    return found


# ---- in rational arithmetic -----------------------------------------------------------------------------------------


def exactly(cone: Cone, start: Array, most: int) -> Recession | None:
    """The repeated alternative on a growing set of rows; always decides if all rows are in it, else unless it outgrows `most`."""
    face = _Face(cone)
    chosen = [int(i) for i in start]
    while len(chosen) <= max(most, len(start)):
        w: tuple[int, ...] = (0,) * cone.k
        quotient, origin, sizes = _distinct(cone, chosen, face.null)
        if quotient:
            answer = alternative([[fmpq(x) for x in row] for row in quotient])
            if not isinstance(answer, Separator):
                if not face.grow({origin[i]: fmpq(weight, sizes[i]) for i, weight in answer.weights.items()}):
                    return None
                continue
            w = _combined(face.null, answer.w)
        signs = cone.signs(w)
        wrong = np.flatnonzero((signs < 0) | ((signs == 0) & face.moved()))
        if not len(wrong):
            return Recession(cone, w, face.weights(signs), signs, face.null, face.pivots)
        chosen.extend(int(i) for i in np.setdiff1d(wrong, chosen)[: max(2, cone.k)])
    return None


class _Face:
    """A balance p of some rows, the null space of their span, and how both grow."""

    def __init__(self, cone: Cone) -> None:
        self.cone = cone
        self.p: dict[int, Any] = {}  # for the rows divided by their powers of two
        self.exponents: dict[int, int] = {}
        self.basis: list[int] = []
        self.pivots: list[int] = []
        self.null = exact.null_space(fmpz_mat(0, cone.k), [])

    def grow(self, extra: dict[int, Any]) -> bool:
        """Join positive weights whose combination lies in the span so far: subtract its coordinates, and add p often enough."""
        M, exponents = self.cone.rows([*extra])
        v = [sum((extra[i] * fmpq(M[r, j]) for r, i in enumerate(extra)), fmpq(0)) for j in range(self.cone.k)]
        if self.basis:
            coordinates = in_rows(self.cone.rows(self.basis)[0], v)
            if coordinates is None:
                return False
            c = dict(zip(self.basis, coordinates, strict=True))
            times = max([1, *(int((c[i] / self.p[i]).floor()) + 1 for i in c)])
            self.p = {i: times * weight - c.get(i, fmpq(0)) for i, weight in self.p.items()}
        elif any(v):
            return False
        self.p.update(extra)
        self.exponents.update(zip(extra, exponents, strict=True))
        rows = [*self.p]
        M, _ = self.cone.rows(rows)
        before = len(self.basis)
        self.basis = [rows[i] for i in exact.pivots(M.transpose())]
        B, _ = self.cone.rows(self.basis)
        self.pivots = exact.pivots(B)
        self.null = exact.null_space(B, self.pivots)
        return len(self.basis) > before and all(weight > 0 for weight in self.p.values())

    def moved(self) -> Array:
        """Which rows are outside the span."""
        outside: Array = np.zeros(self.cone.problem.X.n, dtype=bool)
        for v in _columns(self.null):
            outside |= self.cone.signs(v) != 0
        return outside

    def weights(self, signs: Array) -> dict[int, int]:
        """p for the rows as they are; where only zero rows are left over, one of them."""
        if not self.p and not signs.all():
            return {int(np.argmin(np.abs(signs))): 1}
        return whole_weights(self.p, self.exponents)


def _distinct(cone: Cone, chosen: Sequence[int], null: Any) -> tuple[list[list[int]], list[int], list[int]]:
    """The rows times the null space, as distinct primitive integer rows that are not zero; where from, and their divisors."""
    product = cone.rows(chosen)[0] * null
    seen: dict[tuple[int, ...], tuple[int, int]] = {}
    for position, i in enumerate(chosen):
        row = [int(product[position, j]) for j in range(null.ncols())]
        divisor = math.gcd(*row)
        if divisor:
            seen.setdefault(tuple(x // divisor for x in row), (int(i), divisor))
    return [[*row] for row in seen], [i for i, _ in seen.values()], [divisor for _, divisor in seen.values()]


def in_rows(B: Any, v: Sequence[Any]) -> list[Any] | None:
    """The c with Σ c_i B_i = v for independent rows B; None if v is outside their span."""
    r, k = B.nrows(), B.ncols()
    if not r:
        return None if any(v) else []
    columns = exact.pivots(B)
    if len(columns) < r:
        return None
    denominator = math.lcm(*(int(fmpq(x).q) for x in v))
    target = [int((fmpq(x) * denominator).p) for x in v]
    part = fmpz_mat(r, r, [B[i, j] for j in columns for i in range(r)])
    solved = part.solve(fmpz_mat(r, 1, [target[j] for j in columns]))
    c, common = _integers([solved[i, 0] for i in range(r)])
    product = fmpz_mat(1, r, c) * B
    if any(product[0, j] != common * target[j] for j in range(k)):
        return None
    return [fmpq(x, common * denominator) for x in c]


def whole_weights(p: dict[int, Any], exponents: dict[int, int]) -> dict[int, int]:
    """Coprime integer weights for the rows as they are, from rational ones for the rows divided by 2^e."""
    numerators, _ = _integers([*p.values()])
    low = min((-exponents[i] for i in p), default=0)
    scaled = {i: value << (-exponents[i] - low) for i, value in zip(p, numerators, strict=True)}
    divisor = math.gcd(*scaled.values())
    return {i: scaled[i] // divisor for i in sorted(scaled)}


def _integers(values: Sequence[Any]) -> tuple[list[int], int]:
    """Rationals as integers over one denominator."""
    denominator = math.lcm(*(int(x.q) for x in values))
    return [int(x.p) * (denominator // int(x.q)) for x in values], denominator


def _combined(null: Any, c: Sequence[Any]) -> tuple[int, ...]:
    """null · c as a primitive integer vector."""
    numerators, _ = _integers(c)
    product = null * fmpz_mat(len(c), 1, numerators)
    return _primitive([int(product[j, 0]) for j in range(null.nrows())])


def _primitive(w: Sequence[int]) -> tuple[int, ...]:
    divisor = math.gcd(*w) or 1
    return tuple(x // divisor for x in w)


def _columns(M: Any) -> Iterator[list[int]]:
    for column in range(M.ncols()):
        yield [int(M[j, column]) for j in range(M.nrows())]


def _some_rows(M: Any, rows: Sequence[int]) -> Any:
    return fmpz_mat(len(rows), M.ncols(), [M[i, j] for i in rows for j in range(M.ncols())])


# ---- guessed in floats, completed exactly ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Split:
    """What floats say: w (for the scaled columns), some rows of Z that span it, and the first of them that are independent."""

    w: Array
    on_plane: Array
    independent: int


def by_program(cone: Cone) -> Split | None:
    """The split from linear programs over a growing set of rows; None if it does not settle."""
    F, _, _ = cone.floats
    n, k = F.shape
    start = max(200, 6 * k)
    rows = np.arange(n) if n <= start else np.sort(np.random.default_rng(0).choice(n, start, replace=False))
    for _ in range(ROUNDS):
        answer = _program(F[rows])
        if answer is None:
            return None
        w, strict = answer
        plane = rows[~strict]
        span, order = _span(_dense(F[plane]))
        plane = plane[order]
        more = _unsettled(F, w, span, rows, max(100, 2 * k))
        if not len(more):
            return Split(w, plane, span.shape[1])
        rows = np.union1d(rows, more)
    return None


def _program(F: Any) -> tuple[Array, Array] | None:
    """max Σt, F w ≥ t, 0 ≤ t ≤ 1: w, and which t are 1."""
    from scipy.optimize import linprog

    m, k = F.shape
    block = sp.hstack([sp.csr_array(-F), sp.eye_array(m)], format="csr")
    bounds = np.vstack([np.tile([-np.inf, np.inf], (k, 1)), np.tile([0.0, 1.0], (m, 1))])
    answer = linprog(np.r_[np.zeros(k), -np.ones(m)], A_ub=block, b_ub=np.zeros(m), bounds=bounds, method="highs")
    return None if answer.x is None else (answer.x[:k], answer.x[k:] > 0.5)


def _span(rows: Array) -> tuple[Array, Array]:
    """An orthonormal basis of the span of the rows (as columns), and the rows reordered with as many independent ones first."""
    from scipy.linalg import qr

    if not len(rows):
        return np.zeros((rows.shape[1], 0)), np.arange(0)
    Q, R, order = qr(rows.T, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    rank = int(np.count_nonzero(size > SAME_SPAN * max(float(size[0]), SAME_SPAN)))
    return Q[:, :rank], order


def _unsettled(F: Any, w: Array, span: Array, rows: Array, most: int) -> Array:
    """Rows outside the set that w gets wrong, or that are on its plane without being in the span; the worst first."""
    s = F @ w
    s[rows] = np.inf
    near = np.flatnonzero(np.abs(s) <= NEAR_ZERO)
    if len(near):
        part = _dense(F[near])
        inside = np.abs(part - (part @ span) @ span.T).max(axis=1) <= SAME_SPAN
        s[near[inside]] = np.inf
    wrong = np.flatnonzero(s <= NEAR_ZERO)
    _, first = np.unique(np.round(s[wrong], 12), return_index=True)  # the same row many times would teach nothing
    return wrong[first][:most]


def completed(cone: Cone, split: Split) -> Recession | None:
    """Exact p and w from the split, or None: p is solved for on independent rows, given short weights on the others."""
    independent = [int(i) for i in split.on_plane[: split.independent]]
    B, exponents = cone.rows(independent)
    columns = exact.pivots(B)
    if len(columns) < len(independent):
        return None
    null = exact.null_space(B, columns)
    p = _balance(cone, split, B, dict(zip(independent, exponents, strict=True)))
    if p is None:
        return None
    if not null.ncols():
        w = (0,) * cone.k
        return Recession(cone, w, p, np.zeros(cone.problem.X.n, dtype=np.int8), null, columns)
    outside: Array | None = None
    for w in rational(cone, split.w, null, columns):
        signs = cone.signs(w)
        if (signs >= 0).all():
            if outside is None:  # strict must be all rows outside the span
                outside = _outside(cone, null, signs)
            if (signs[outside] > 0).all():
                p = p or {int(i): 1 for i in np.flatnonzero(signs == 0)[:1]}  # zero rows are all that is left
                return Recession(cone, w, p, signs, null, columns)
    return None


def _outside(cone: Cone, null: Any, signs: Array) -> Array:
    """Which rows are outside the span of the balance; those that are strict are in any case."""
    outside: Array = signs > 0
    for v in _columns(null):
        rest = np.flatnonzero(~outside)
        found = exact.score_signs(
            cone.problem.X, *exact.split(cone.whole(v), cone.intercept), cone.problem.signs, rest
        )
        outside[rest] |= found[rest] != 0
    return outside


def _balance(cone: Cone, split: Split, B: Any, exponents: dict[int, int]) -> dict[int, int] | None:
    """Positive integer weights on the independent rows and few others."""
    if not exponents:
        return {}
    F, e, _ = cone.floats
    plane = split.on_plane
    weights = _few_weights(_dense(F[plane]), len(exponents))
    if weights is None:
        return None
    others = [i for i in range(len(exponents), len(plane)) if weights[i] > SAME_SPAN]
    M, more = cone.rows([int(plane[i]) for i in others])
    exponents = exponents | {int(plane[i]): m for i, m in zip(others, more, strict=True)}
    for digits in DIGITS[2:]:
        # short weights for rows of size about 1, carried over to the integer rows
        p = {}
        for i, m in zip(others, more, strict=True):
            shift = m - int(e[plane[i]])
            weight = fmpq(max(1, round(float(weights[i]) * 2**digits)))
            p[int(plane[i])] = weight * 2**shift if shift >= 0 else weight / 2**-shift
        v = [sum((p[int(plane[i])] * fmpq(M[r, j]) for r, i in enumerate(others)), fmpq(0)) for j in range(cone.k)]
        c = in_rows(B, [-x for x in v])
        if c is None:
            return None
        if all(x > 0 for x in c):
            p.update(zip([int(i) for i in plane[: len(c)]], c, strict=True))
            return whole_weights(p, exponents)
    return None


def _few_weights(F: Array, independent: int) -> Array | None:
    """p ≥ 0 with Fᵀp = 0, at least 1 on the independent rows, which come first, and not 0 on at most as many others: a vertex."""
    from scipy.optimize import linprog

    m = len(F)
    lower = np.r_[np.ones(independent), np.zeros(m - independent)]
    # uneven costs, so that the vertex is unique; the equations are those of an orthonormal basis: none is redundant
    costs = np.random.default_rng(1).uniform(1, 2, m)
    span, _ = _span(F)
    answer = linprog(costs, A_eq=(F @ span).T, b_eq=np.zeros(span.shape[1]), bounds=np.c_[lower, np.full(m, np.inf)], method="highs")
    return None if answer.x is None else answer.x


def rational(cone: Cone, w: Array, null: Any, columns: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Integer vectors of the null space near w (for scaled columns), of more and more digits: rounded off the pivot columns."""
    pivot = set(columns)
    free = [j for j in range(cone.k) if j not in pivot]
    _, _, s = cone.floats
    size = float(np.abs(w[free]).max(initial=0.0))
    if not 0 < size < math.inf:
        return
    for digits in DIGITS:
        rounded = [round(float(w[j]) / size * 2**digits) for j in free]
        if any(rounded):
            exact_w = [fmpq(x) * fmpq(*float(s[j]).as_integer_ratio()) for x, j in zip(rounded, free, strict=True)]
            # column number i of the null space is the only one that moves the i-th free coordinate
            yield _combined(null, [x / fmpq(null[j, i]) for i, (x, j) in enumerate(zip(exact_w, free, strict=True))])


def _dense(F: Any) -> Array:
    return np.asarray(F.toarray() if sp.issparse(F) else F)


# ---- signs of coordinates -------------------------------------------------------------------------------------------


def coordinate_signs(found: Recession) -> Iterator[tuple[int, int | None]]:
    """For each coordinate that can be decided, as it is: 1 if w_j > 0 throughout the relative interior of C, -1 if w_j < 0, 0 if
    w_j = 0 throughout, None if both signs occur. Exact.

    w_j = 0 on C just where it is on the null space of the span of Z. That w_j ≥ 0 on C is, by Farkas, e_j = Σ q_i A_i + (a vector of
    that span) with q ≥ 0 on S; else some w in the interior has w_j < 0. Gordan's alternative for S and the row -e_j.
    """
    null, k = found.null, found.cone.k
    moving = [any(null[j, i] != 0 for i in range(null.ncols())) for j in range(k)]
    strict = np.flatnonzero(found.signs > 0)
    seen = [found.w]
    decide = None
    for j in range(k):
        sign = (found.w[j] > 0) - (found.w[j] < 0)
        if not moving[j]:
            yield j, 0
        elif sign == 0 or any(sign * w[j] < 0 for w in seen):
            yield j, None
        elif null.ncols() == 1:
            yield j, sign
        else:
            if decide is None:
                small = len(strict) * null.ncols() ** 2 <= SMALL
                decide = _Exactly(found, strict) if small else _ByProgram(found, strict)
            answer = decide(j, sign)
            if answer is True:
                yield j, sign
            elif answer is not None:
                seen.append(answer)
                yield j, None


class _Exactly:
    """Decides the sign of a coordinate on these strict rows: True, or a vector of C with the other sign."""

    def __init__(self, found: Recession, strict: Array) -> None:
        self.null = found.null
        self.quotient, _, _ = _distinct(found.cone, [int(i) for i in strict], found.null)

    def __call__(self, j: int, sign: int) -> Any:
        opposite = [-sign * int(self.null[j, i]) for i in range(self.null.ncols())]
        answer = alternative([[fmpq(x) for x in row] for row in (*self.quotient, opposite)])
        return _combined(self.null, answer.w) if isinstance(answer, Separator) else True


class _ByProgram:
    """The same for many rows: linear programs over a growing set of rows propose, exact arithmetic decides; None where it fails."""

    def __init__(self, found: Recession, strict: Array) -> None:
        from scipy.linalg import qr

        self.found, self.strict = found, strict
        self.cone, self.null = found.cone, found.null
        F, _, s = self.cone.floats
        on_null = np.array([[float(fmpq(x) / top) for x in v] for v in _columns(self.null) for top in [max(map(abs, v))]])
        self.Q = qr((on_null / s).T, mode="economic")[0]
        self.G = _dense(F[strict] @ self.Q)
        count = max(200, 6 * self.Q.shape[1])
        lowest = np.argsort(self.G @ (self.Q.T @ (np.array([float(x) for x in found.w]) / s)), kind="stable")
        self.rows = np.sort(lowest[:count])

    def __call__(self, j: int, sign: int) -> Any:
        target = -sign * self.Q[j] / np.linalg.norm(self.Q[j])
        for _ in range(ROUNDS):
            answer = self._program(target)
            if answer is None:
                return None
            t, c, multipliers = answer
            if t <= SAME_SPAN:
                return self._proved(j, sign, self.strict[self.rows[multipliers[:-1] > SAME_SPAN]])
            s = self.G @ c
            wrong = np.flatnonzero(s < 0)
            if not len(wrong):
                return self._direction(j, sign, self.Q @ c)
            self.rows = np.union1d(self.rows, wrong[np.argsort(s[wrong], kind="stable")[: max(100, 2 * len(c))]])
        return None

    def _program(self, target: Array) -> Any:
        """max t, G c ≥ t, target·c ≥ t, |c| ≤ 1."""
        from scipy.optimize import linprog

        block = np.vstack([self.G[self.rows], target])
        m, d = block.shape
        bounds = np.vstack([np.tile([-1.0, 1.0], (d, 1)), [[-np.inf, 1.0]]])
        cost = np.r_[np.zeros(d), -1.0]
        answer = linprog(cost, A_ub=np.column_stack([-block, np.ones(m)]), b_ub=np.zeros(m), bounds=bounds, method="highs")
        return None if answer.x is None else (answer.x[-1], answer.x[:-1], -answer.ineqlin.marginals)

    def _proved(self, j: int, sign: int, rows: Array) -> bool | None:
        """True if sign·e_j is a nonnegative combination of these rows, modulo the span."""
        product = self.cone.rows([int(i) for i in rows])[0] * self.null
        part = _some_rows(product, exact.pivots(product.transpose()))
        q = in_rows(part, [sign * fmpq(self.null[j, i]) for i in range(self.null.ncols())])
        return True if q is not None and all(x >= 0 for x in q) else None

    def _direction(self, j: int, sign: int, w: Array) -> tuple[int, ...] | None:
        """An exact vector of C near w whose coordinate j has the other sign."""
        for candidate in rational(self.cone, w, self.null, self.found.pivots):
            if sign * candidate[j] < 0 and (self.cone.signs(candidate) >= 0).all():
                return candidate
        return None
