"""The restricted game in the sup norm: the least ‖Aᵀp + r‖_∞ that the p-player can reach with the rows of the working set.

It is a linear program in which few columns matter, just as few rows do, since w is sparse. So it is solved for a working set of
columns,

    min s   over |Σ_i p_i A_ij + r_j| ≤ s for each column j, 0 ≤ p ≤ caps, Σp = mass_g in each group g,

or its dual, if there are more columns than rows,

    max r·w + Σ_g mass_g λ_g - caps·ξ   over A_i·w + ξ_i ≥ λ_g for each row i of group g, ξ ≥ 0, ‖w‖₁ ≤ 1,

and columns that violate the answer are added until there are none. The multipliers of either are the variables of the other; the
λ_g are the levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.deadlines import UNLIMITED, Deadline
from gordan.memory import fits
from gordan.rows import Rows
from gordan.solve.restricted import Equilibrium, FeasibleSet

# benchmarks/trees.py times margins in this norm, and limits.py how they keep a time limit.

# Columns that the working set begins with, and that are added at a time, at least. Of sparse rows there are more, which have as
# many entries as this many dense columns.
FIRST_COLUMNS, ADDED_COLUMNS = 100, 50
# It begins with all columns where |Aᵀp + r| is at least this share of the largest entry: at an equilibrium w has no others.
TIGHT = 0.9
# HiGHS accepts no smaller tolerance for the violation of a constraint; the program is scaled so that s is of the order of 1.
LP_TOLERANCE = 1e-10
LP_OPTIONS = {"primal_feasibility_tolerance": LP_TOLERANCE, "dual_feasibility_tolerance": LP_TOLERANCE}
# Error of an entry of Aᵀp, for rows of norm at most 1 of which some tens have weight.
COMBINATION_ROUNDING = 4e-15
# Bytes per entry of a program: the columns, the program as SciPy receives it, and what HiGHS makes of it.
LP_ENTRY_BYTES = 100
# Passes over its entries that a program takes at least, where a row or a column of it counts as so many entries: HiGHS does not
# look at the clock during presolve.
LP_PASSES, LP_LINE_ENTRIES = 600.0, 60
# Programs with at least this many rows and columns are given to the interior-point method first, with crossover to a vertex.
LARGE_PROGRAM = 500

Reader = Callable[[Any], tuple[Array, Array, Array]]


@dataclass(frozen=True, eq=False)
class SupNormGame:
    """The game on the working set, for the p that are `allowed`; r is what rows outside add to Aᵀp."""

    rows: Rows
    allowed: FeasibleSet
    r: Array
    deadline: Deadline = UNLIMITED

    def solve(self, p: Array, tol: float) -> tuple[Equilibrium, Array]:
        """Return the equilibrium, and w with ‖w‖₁ = ‖Aᵀp + r‖_∞; the guess p decides which columns are tried first."""
        p = self.allowed.filled(p)
        v = np.abs(self.rows.combine(p) + self.r)
        tight = int(np.count_nonzero(v >= TIGHT * np.max(v)))
        columns = _largest(v, np.arange(self.rows.d), max(self._as_entries(FIRST_COLUMNS), tight))
        while True:
            size = float(np.max(v))
            vanished = size <= COMBINATION_ROUNDING
            found = None if vanished or self.deadline.passed else self._program(columns, size)
            if found is None:
                zeros = Equilibrium(p, np.zeros(len(p)), np.zeros(len(self.allowed.mass)), settled=vanished)
                return zeros, np.zeros(self.rows.d)
            p, w, levels = found
            v = np.abs(self.rows.combine(p) + self.r)
            bound = float(np.max(v[columns]))
            broken = np.setdiff1d(np.flatnonzero(v > bound * (1 + tol) + COMBINATION_ROUNDING), columns)
            if not len(broken):
                return Equilibrium(p, self.rows.scores(bound * w), bound * levels, True), bound * w
            columns = np.concatenate((columns, _largest(v, broken, max(self._as_entries(ADDED_COLUMNS), len(columns) // 2))))

    def _as_entries(self, dense: int) -> int:
        """Return how many columns have as many entries as this many dense ones, on average."""
        return dense * self.rows.n * self.rows.d // self.rows.entries

    def _program(self, columns: Array, size: float) -> tuple[Array, Array, Array] | None:
        """Return p, w with ‖w‖₁ = 1, and the levels, for these columns of A and r, divided by `size`.

        None if HiGHS fails, or where there is no room or time for the program.
        """
        from scipy.optimize import linprog

        n, k = self.rows.n, len(columns)
        entries = float(k) * self.rows.entries / self.rows.d
        passed_over = entries + LP_LINE_ENTRIES * (n + k)
        if not fits(LP_ENTRY_BYTES * entries) or not self.deadline.affords(LP_PASSES * self.deadline.pace.entry * passed_over):
            return None
        program, read = (_for_p if k < n else _for_w)(self.rows.columns(columns) / size, self.r[columns] / size, self.allowed)
        for method in ("highs-ds", "highs-ipm") if min(n, k) < LARGE_PROGRAM else ("highs-ipm", "highs-ds"):
            if self.deadline.passed:
                break
            limit = {"time_limit": self.deadline.left} if self.deadline.at < math.inf else {}
            answer = linprog(method=method, options=LP_OPTIONS | limit, **program)
            if answer.status == 0:
                w = np.zeros(self.rows.d)
                p, w[columns], levels = read(answer)
                total = float(np.sum(np.abs(w))) or 1.0  # 1 up to rounding, unless the margin is 0
                return self.allowed.filled(np.maximum(p, 0.0)), w / total, levels * (size / total)
        return None


# ---- the program and its dual, as SciPy takes them, with functions that read p, w and the levels off the answer ----------
# The simplex method works with matrices of as many rows as there are constraints, so that the one with fewer is solved.


def _for_p(A: Any, r: Array, allowed: FeasibleSet) -> tuple[dict[str, Any], Reader]:
    """Return the program in p, v = Aᵀp + r and s: with v, the matrix A occurs in it once and not twice."""
    import scipy.sparse as sp

    (n, k), G = A.shape, allowed.indicators
    one, s = sp.eye_array(k), np.ones((k, 1))
    highest = np.concatenate((allowed.caps, np.full(k + 1, np.inf)))
    program = {
        "c": np.append(np.zeros(n + k), 1.0),
        "A_ub": sp.hstack([sp.csr_array((2 * k, n)), sp.vstack([one, -one]), np.vstack([-s, -s])], format="csr"),
        "b_ub": np.zeros(2 * k),
        "A_eq": sp.block_array([[A.T, -one, np.zeros((k, 1))], [G.T, np.zeros((G.shape[1], k)), None]], format="csr"),
        "b_eq": np.append(-r, allowed.mass),
        "bounds": np.column_stack((np.repeat([0.0, -np.inf], (n, k + 1)), highest)),
    }
    return program, lambda answer: (answer.x[:n], -answer.eqlin.marginals[:k], answer.eqlin.marginals[k:])


def _for_w(A: Any, r: Array, allowed: FeasibleSet) -> tuple[dict[str, Any], Reader]:
    """Return the program in the positive and the negative part of w, the levels, and the ξ_i of finite caps."""
    import scipy.sparse as sp

    (n, k), G, capped = A.shape, allowed.indicators, np.flatnonzero(np.isfinite(allowed.caps))
    parts = (2 * k, G.shape[1], len(capped))
    scores = sp.hstack([-A, A, G, -sp.eye_array(n, format="csc")[:, capped]])
    program = {
        "c": np.concatenate((-r, r, -allowed.mass, allowed.caps[capped])),
        "A_ub": sp.vstack([scores, np.repeat([1.0, 0.0, 0.0], parts)[None]], format="csc"),
        "b_ub": np.append(np.zeros(n), 1.0),
        "bounds": np.column_stack((np.repeat([0.0, -np.inf, 0.0], parts), np.full(sum(parts), np.inf))),
    }
    levels = slice(2 * k, 2 * k + G.shape[1])
    return program, lambda answer: (-answer.ineqlin.marginals[:n], answer.x[:k] - answer.x[k : 2 * k], answer.x[levels])


def _largest(v: Array, among: Array, count: int) -> Array:
    """Return those `count` of the columns `among` where v is largest."""
    return among if len(among) <= count else among[np.argpartition(-v[among], count - 1)[:count]]
