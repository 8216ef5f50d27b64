"""The finder of the recession cone C = {w : A w ≥ 0}: which rows can be strict, for which w, and why no others can.

Let S be the rows that are strict, A_i w > 0, for some w in C, and Z the others. Sums of weak separators are weak separators, so
one w in C is strict on all of S (it lies in the relative interior), and by Stiemke's lemma some p > 0 on Z has Σ p_i A_i = 0.
S, w and p are found by repeating Gordan's alternative: a balance p of some rows implies that C lies in the null space of their
span V. In that null space the other rows either have a separator, which is w, or another balance, which is added to p and makes V
larger.

`exactly` does this in rational arithmetic. For many rows `by_program` guesses S and Z in floats with HiGHS (max Σt_i, A_i w ≥
t_i, 0 ≤ t_i ≤ 1, whose solution has t = 1 on S and t = 0 on Z) over a growing set of rows; `completed` makes the guess exact, or
fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from flint import fmpq, fmpz_mat

from gordan.arrays import Array
from gordan.certificates import exact
from gordan.certificates.data import Certificate, Relation
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Proposal, Question
from gordan.memory import fits
from gordan.solve import overlapping
from gordan.solve.alternative import Separator, alternative, reading_seconds
from gordan.solve.cancelling import MAX_EXACT_SIZE, MAX_PIVOTED_ROWS
from gordan.solve.cone import (
    COPIES,
    DIGITS,
    Cone,
    columns_of,
    combined,
    dense,
    in_rows,
    independent_columns,
    quotient,
    rational,
    rounded,
    some_rows,
    unscaled,
)
from gordan.solve.levelling import scaled_question

# benchmarks/overlap.py times what these constants decide.

# Rows per column up to which Newton steps are asked first, since they prove overlap soonest. For more rows the other finders have
# planes of larger margin, from which coefficients are decided sooner.
FEW_ROWS_PER_COLUMN = 20
# Columns up to which the exact simplex method is worth starting where floats have failed.
MAX_PIVOTED_COLUMNS = 20
# Columns up to which a linear program is started, and rounds in which rows are added to it.
MAX_PROGRAM_COLUMNS, MAX_ROUNDS = 2000, 100
# Dimensions of the null space of a witness's rows, at most, in which a strict w is looked for.
MAX_NULL_DIMENSIONS = 2
# Entries of rows that are made dense at a time.
DENSE_BLOCK_ENTRIES = 1 << 20
# Scores of strict rows are at least 1 in the program; those nearer to 0 than this may be 0.
NEAR_ZERO = 1e-6
# A row whose entries off a span are all below this is in the span.
SAME_SPAN = 1e-9


@dataclass(frozen=True, eq=False)
class Recession:
    """The cone: w, an integer vector in its relative interior, and p, positive integers by row with Σ p_i A_i = 0.

    The rows of p span the rows on which no vector of C is strict; p is None if the known witness has floats near such p.
    `signs` are those of A w. The columns of `face` span {v : A_i v = 0 for the rows of p}, one for each coordinate that is not in
    `pivots`; face is None if that is the whole space.
    """

    cone: Cone
    w: tuple[int, ...]
    p: dict[int, int] | None
    signs: Array
    face: Any
    pivots: list[int]

    @property
    def dimension(self) -> int:
        """The dimension of C."""
        return self.cone.k if self.face is None else int(self.face.ncols())

    @cached_property
    def null(self) -> Any:
        """The vectors of `face`, also where it is the whole space."""
        return exact.null_space(fmpz_mat(0, self.cone.k), []) if self.face is None else self.face

    @property
    def kind(self) -> str:
        """The kind of separation: "overlap", "complete" or "quasi-complete"."""
        if not self.signs.any():
            return "overlap"
        return "complete" if self.signs.all() else "quasi-complete"

    @property
    def plane(self) -> tuple[list[int], int]:
        """The plane w, b in the coordinates of X."""
        w, b = self.cone.intercept.plane_of(self.cone.whole(self.w))
        return w, b


def by_cone(question: Question, evidence: Evidence, decide_sign: Callable[[], None]) -> Iterator[Proposal]:
    """Propose the recession cone, in independent coordinates.

    For many rows the sign is decided first: a separator or a witness may tell the cone without further search.
    """
    problem, intercept = question.problem, question.margin.intercept
    everything = tuple(range(intercept.columns(problem.X.d)))
    many = not decided_at_once(problem.X.n, len(everything))
    if many:
        few = problem.X.n <= FEW_ROWS_PER_COLUMN * len(everything)
        if few and overlapping.applies(question) and question.shared(scaled_question) is None:
            yield from overlapping.by_newton_steps(question, evidence, decide_sign)
        if not evidence.sign_decided:
            decide_sign()
        if evidence.answered:
            return
    columns = question.shared(independent)
    yield Proposal(independent=columns)
    cone = Cone(problem, intercept, everything if columns is None else columns, question.budget.time)
    if many and columns is not None:
        yield from _from_evidence(cone, columns == everything, evidence)
        if evidence.answered:
            return
    found = find(cone)
    if found is not None:
        yield Proposal(cone=found)
    if not many and not evidence.answered:
        decide_sign()
        yield Proposal(cone=found)  # in case that it is complete and floats could not prove the separator


def _from_evidence(cone: Cone, full: bool, evidence: Evidence) -> Iterator[Proposal]:
    """Propose the cone that follows from a proved separator or witness; `full` says that all columns are independent."""
    if full and evidence.w is not None:
        b = [] if evidence.b is None or not cone.intercept.exists else [evidence.b]
        complete = from_separator(cone, [*evidence.w.tolist(), *b])
        if complete is not None:
            yield Proposal(cone=complete)
    if evidence.witness is not None:
        found = from_witness(cone, evidence.witness.head)
        if found is not None:
            yield Proposal(cone=found)


def independent(question: Question) -> tuple[int, ...] | None:
    """Return the columns of A that are independent and on which the others depend; None if that was not examined."""
    return independent_columns(question.problem, question.margin.intercept, question.budget.time)


def decided_at_once(n: int, k: int) -> bool:
    """Return whether rational arithmetic decides n rows with k columns at once."""
    return n * k**2 <= MAX_EXACT_SIZE


def find(cone: Cone) -> Recession | None:
    """Return the cone by rational arithmetic where the problem is small, otherwise by linear programs; None if both fail."""
    n, k = cone.problem.X.n, cone.k
    if decided_at_once(n, k):
        return exactly(cone, np.arange(n), n)
    if k > MAX_PROGRAM_COLUMNS:
        return None
    split = by_program(cone) if cone.scalable else None
    found = None if split is None else completed(cone, split)
    if found is None and k <= MAX_PIVOTED_COLUMNS:
        start = np.linspace(0, n - 1, k).astype(int) if split is None else split.on_plane[:k]
        found = exactly(cone, np.unique(start), MAX_PIVOTED_ROWS)
    return found


def from_separator(cone: Cone, w: list[float]) -> Recession | None:
    """Return the cone from any w with A w > 0, given as floats; its own w has as few digits as possible."""
    for near in rounded(np.array(w) / cone.floats[2]) if cone.scalable else ():
        if cone.separates(near):
            return _complete(cone, exact.primitive(unscaled(cone.floats[2], near)))
    unrounded, _ = exact.integers([fmpq(*x.as_integer_ratio()) for x in w])
    return _complete(cone, exact.primitive(unrounded)) if (cone.signs(unrounded) > 0).all() else None


def _complete(cone: Cone, w: tuple[int, ...]) -> Recession:
    """Return the cone of a w with A w > 0."""
    return Recession(cone, w, {}, np.ones(cone.problem.X.n, np.int8), None, [])


def from_witness(cone: Cone, witness: Certificate) -> Recession | None:
    """Return the cone where the rows of a witness span all rows on some plane, and the w of that plane is strict on the others.

    None if no such w is found.
    """
    verified = witness.kind == "verified-witness"
    found = _null_space(cone, witness.dependent) if verified else _null_space_of_rows(cone, witness.rows)
    if found is None:
        return None
    null, pivots = found
    p = None if verified else dict(zip(witness.rows, (int(x) for x in witness.weights), strict=True))
    outside = _outside(cone, null, np.zeros(cone.problem.X.n, dtype=np.int8))
    if not outside.any() or not cone.scalable:
        return None
    F, _, s = cone.floats
    try:
        basis = np.array([[float(x) for x in v] for v in columns_of(null)]).T / s[:, None]
    except OverflowError:  # integers beyond the floats, as columns of subnormal numbers make them
        return None
    scores = dense(F[outside] @ basis)
    answer = (np.sign(scores[0]), None) if null.ncols() == 1 else _program(cone, scores)
    for w in () if answer is None else rational(cone, basis @ answer[0], null, pivots):
        signs = cone.signs(w)
        if (signs >= 0).all() and (signs[outside] > 0).all():
            return Recession(cone, w, p, signs, null, pivots)
    return None


def _null_space_of_rows(cone: Cone, rows: Sequence[int]) -> tuple[Any, list[int]] | None:
    """Return the null space of these rows, and the pivot coordinates; None if it is large or trivial, or time is short."""
    if len(rows) < cone.k - MAX_NULL_DIMENSIONS:
        return None
    if not cone.deadline.affords(reading_seconds(cone.problem, rows, cone.intercept, cone.deadline)):
        return None
    M, _ = cone.rows(rows)
    B = some_rows(M, exact.pivots(M.transpose()))
    pivots = exact.pivots(B)
    return (exact.null_space(B, pivots), pivots) if len(pivots) < cone.k else None


def _null_space(cone: Cone, relations: Sequence[Relation]) -> tuple[Any, list[int]] | None:
    """Return the vectors of these relations in coordinates of the cone, as columns, and the other coordinates.

    None if there are no such relations, or if one involves columns outside the cone.
    """
    place = {column: i for i, column in enumerate(cone.columns)}
    vectors = {place[relation[0][0]]: relation for relation in relations if relation[0][0] in place}
    if not vectors or not {column for relation in vectors.values() for column, _ in relation} <= place.keys():
        return None
    null = fmpz_mat(cone.k, len(vectors))
    for i, j in enumerate(sorted(vectors)):
        for column, factor in vectors[j]:
            null[place[column], i] = factor
    return null, [j for j in range(cone.k) if j not in vectors]


# ---- rational arithmetic ------------------------------------------------------------------------------------------------


def exactly(cone: Cone, start: Array, most: int) -> Recession | None:
    """Return the cone by repeating the alternative on a growing set of rows; None if it outgrows `most`, or the time is up."""
    face = _Face(cone)
    chosen = [int(i) for i in start]
    while len(chosen) <= max(most, len(start)) and not cone.deadline.passed:
        w: tuple[int, ...] = (0,) * cone.k
        modulo, origin, sizes = quotient(cone, chosen, face.null)
        if modulo:
            answer = alternative([[fmpq(x) for x in row] for row in modulo], cone.deadline)
            if answer is None:
                return None
            if not isinstance(answer, Separator):
                if not face.grow({origin[i]: fmpq(weight, sizes[i]) for i, weight in answer.weights.items()}):
                    return None
                continue
            w = combined(face.null, answer.w)
        signs = cone.signs(w)
        wrong = np.flatnonzero((signs < 0) | ((signs == 0) & _outside(cone, face.null, signs)))
        if not len(wrong):
            return Recession(cone, w, face.weights(signs), signs, face.null, face.pivots)
        chosen.extend(int(i) for i in np.setdiff1d(wrong, chosen)[: max(2, cone.k)])
    return None


class _Face:
    """A balance p of some rows and the null space of their span, which more rows can be added to."""

    def __init__(self, cone: Cone) -> None:
        self.cone = cone
        self.p: dict[int, Any] = {}  # for the rows divided by their powers of two
        self.exponents: dict[int, int] = {}
        self.basis: list[int] = []
        self.pivots: list[int] = []
        self.null = exact.null_space(fmpz_mat(0, cone.k), [])

    def grow(self, extra: dict[int, Any]) -> bool:
        """Add positive weights whose combination lies in the span so far; return whether the span has grown.

        The coordinates of the combination are subtracted from a multiple of p that keeps all weights positive.
        """
        M, exponents = self.cone.rows([*extra])
        v = [sum((extra[i] * fmpq(M[r, j]) for r, i in enumerate(extra)), fmpq(0)) for j in range(self.cone.k)]
        if self.basis:
            coordinates = in_rows(self.cone.rows(self.basis)[0], v, self.cone.deadline)
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

    def weights(self, signs: Array) -> dict[int, int]:
        """Return p for the rows as they are; where only rows of zeros cancel, one of them."""
        if not self.p and not signs.all():
            return {int(np.argmin(np.abs(signs))): 1}
        return exact.unscaled(self.p, self.exponents)


# ---- guessed in floats, completed exactly -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ConeGuess:
    """A guess in floats: w for the scaled columns, and rows of Z that span it, of which the first `independent` are so."""

    w: Array
    on_plane: Array
    independent: int


def by_program(cone: Cone) -> ConeGuess | None:
    """Return the split from linear programs over a growing set of rows; None if rows are still added after MAX_ROUNDS."""
    F, _, _ = cone.floats
    rng = np.random.default_rng(0)
    # equal rows, recognised by their product with a random vector, are needed once
    _, where = np.unique(F @ rng.uniform(1, 2, cone.k), return_index=True)
    if len(where) < F.shape[0]:
        F = F[where]
    else:  # without a copy of F
        where = np.arange(F.shape[0])
    n, k = F.shape
    start = max(200, 3 * k)
    rows = np.arange(n) if n <= start else np.sort(rng.choice(n, start, replace=False))
    for _ in range(MAX_ROUNDS):
        answer = _program(cone, F[rows])
        if answer is None:
            return None
        w, strict = answer
        s = F @ w
        s[rows] = np.inf
        more = np.flatnonzero(s < -NEAR_ZERO)
        if not len(more):  # w is in C; but are all rows on its plane in the span of those that must stay there?
            plane, near = rows[~strict], np.flatnonzero(s <= NEAR_ZERO)
            if not fits(8 * COPIES * len(plane) * k) or not cone.deadline.affords(cone.deadline.pace.basis(k, len(plane))):
                return None
            span, order = _span(dense(F[plane]))
            more = near[_distance_to_span(F, near, span) > SAME_SPAN]
            if not len(more):
                return ConeGuess(w, where[plane[order]], span.shape[1])
        rows = np.union1d(rows, more[np.argsort(s[more], kind="stable")[: max(100, k)]])
    return None


def _distance_to_span(F: Any, rows: Array, span: Array) -> Array:
    """Return the largest entry of the part of each of these rows that is outside the span; rows are made dense block by block."""
    step = max(1, DENSE_BLOCK_ENTRIES // F.shape[1])
    blocks = (dense(F[rows[lo : lo + step]]) for lo in range(0, len(rows), step))
    return np.concatenate([np.empty(0), *(np.abs(part - (part @ span) @ span.T).max(axis=1) for part in blocks)])


def _program(cone: Cone, F: Any) -> tuple[Array, Array] | None:
    """Solve max Σt, F w ≥ t, 0 ≤ t ≤ 1, and return w and which t are 1."""
    m, k = F.shape
    block = sp.hstack([sp.csr_array(-F), sp.eye_array(m)], format="csr")
    bounds = np.vstack([np.tile([-np.inf, np.inf], (k, 1)), np.tile([0.0, 1.0], (m, 1))])
    answer = cone.program(np.r_[np.zeros(k), -np.ones(m)], A_ub=block, b_ub=np.zeros(m), bounds=bounds)
    return None if answer is None else (answer.x[:k], answer.x[k:] > 0.5)


def _span(rows: Array) -> tuple[Array, Array]:
    """Return an orthonormal basis of the span of the rows (as columns), and an order of the rows with independent ones first."""
    from scipy.linalg import qr

    if not len(rows):
        return np.zeros((rows.shape[1], 0)), np.arange(0)
    Q, R, order = qr(rows.T, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    rank = int(np.count_nonzero(size > SAME_SPAN * max(float(size[0]), SAME_SPAN)))
    return Q[:, :rank], order


def completed(cone: Cone, split: ConeGuess) -> Recession | None:
    """Return exact p and w from the split, or None: p is solved for on independent rows, given short weights on the others."""
    independent = [int(i) for i in split.on_plane[: split.independent]]
    if not cone.deadline.affords(reading_seconds(cone.problem, independent, cone.intercept, cone.deadline)):
        return None
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
            if outside is None:  # all rows outside the span must be strict
                outside = _outside(cone, null, signs)
            if (signs[outside] > 0).all():
                p = p or {int(i): 1 for i in np.flatnonzero(signs == 0)[:1]}  # only rows of zeros cancel
                return Recession(cone, w, p, signs, null, columns)
    return None


def _outside(cone: Cone, null: Any, signs: Array) -> Array:
    """Return which rows are outside the span with this null space; `signs`, of the scores of a null vector, show some of them."""
    outside: Array = signs != 0
    for v in columns_of(null):
        rest = np.flatnonzero(~outside)
        outside[rest] = cone.signs(v, rest)[rest] != 0
    return outside


def _balance(cone: Cone, split: ConeGuess, B: Any, exponents: dict[int, int]) -> dict[int, int] | None:
    """Return positive integer weights on the independent rows and few others with which they cancel, or None."""
    if not exponents:
        return {}
    F, e, _ = cone.floats
    plane = split.on_plane
    weights = _few_weights(cone, dense(F[plane]), len(exponents))
    if weights is None:
        return None
    others = [i for i in range(len(exponents), len(plane)) if weights[i] > SAME_SPAN]
    places = [int(plane[i]) for i in others]
    M, more = cone.rows(places)
    exponents = exponents | dict(zip(places, more, strict=True))
    for digits in DIGITS[2:]:
        near = zip(others, places, more, strict=True)
        p = {row: _short(float(weights[i]), digits, m - int(e[row])) for i, row, m in near}
        v = [sum((p[row] * fmpq(M[r, j]) for r, row in enumerate(places)), fmpq(0)) for j in range(cone.k)]
        c = in_rows(B, [-x for x in v], cone.deadline)
        if c is None:
            return None
        if all(x > 0 for x in c):
            p.update(zip([int(i) for i in plane[: len(c)]], c, strict=True))
            return exact.unscaled(p, exponents)
    return None


def _short(weight: float, digits: int, shift: int) -> Any:
    """Return a weight rounded to this many binary digits, for a row of size about 1, times 2^shift, for the integer row."""
    whole = fmpq(max(1, round(weight * 2**digits)))
    return whole * 2**shift if shift >= 0 else whole / 2**-shift


def _few_weights(cone: Cone, F: Array, independent: int) -> Array | None:
    """Return a vertex p ≥ 0 of Fᵀp = 0 that is at least 1 on the independent rows, which come first, and 0 on most others."""
    m = len(F)
    lower = np.r_[np.ones(independent), np.zeros(m - independent)]
    # random costs make the vertex unique; equations in an orthonormal basis are not redundant
    costs = np.random.default_rng(1).uniform(1, 2, m)
    span, _ = _span(F)
    bounds = np.c_[lower, np.full(m, np.inf)]
    answer = cone.program(costs, A_eq=(F @ span).T, b_eq=np.zeros(span.shape[1]), bounds=bounds)
    return None if answer is None else answer.x
