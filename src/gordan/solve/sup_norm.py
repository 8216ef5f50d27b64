"""The restricted game in the sup norm: the least ‖Aᵀp + r‖_∞ that the p-player can reach with the rows of the working set.

It is a linear program in which few columns matter, just as few rows do, since w is sparse. So it is solved for a working set of
columns,

    min s   over |Σ_i p_i A_ij + r_j| ≤ s for each column j, 0 ≤ p ≤ caps, Σp = mass_g in each group g,

and columns that violate the answer are added until there are none. The multipliers of the columns are w, those of the masses are
the levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gordan.arrays import Array
from gordan.deadlines import UNLIMITED, Deadline
from gordan.memory import fits
from gordan.rows import Rows
from gordan.solve.restricted import Equilibrium, FeasibleSet

# benchmarks/trees.py times margins in this norm, and limits.py how they keep a time limit.

# Columns that the working set begins with, and that are added at a time, at least.
FIRST_COLUMNS, ADDED_COLUMNS = 100, 50
# HiGHS accepts no smaller tolerance for the violation of a constraint; the program is scaled so that s is of the order of 1.
LP_TOLERANCE = 1e-10
LP_OPTIONS = {"primal_feasibility_tolerance": LP_TOLERANCE, "dual_feasibility_tolerance": LP_TOLERANCE}
# Error of an entry of Aᵀp, for rows of norm at most 1.
ROUNDING = 1e-15
# Bytes per entry of a program: the dense columns, the program as SciPy receives it, and what HiGHS makes of it.
LP_ENTRY_BYTES = 100
# Passes over its entries that a program takes at least: HiGHS does not look at the clock during presolve.
LP_PASSES = 200.0
# Programs with at least this many entries are given to the interior-point method first, with crossover to a vertex.
LARGE_PROGRAM = 100_000


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
        columns = _largest(v, np.arange(self.rows.d), FIRST_COLUMNS)
        while True:
            size = float(np.max(v))
            vanished = size <= ROUNDING
            found = None if vanished or self.deadline.passed else self._program(columns, size)
            if found is None:
                zeros = Equilibrium(p, np.zeros(len(p)), np.zeros(len(self.allowed.mass)), settled=vanished)
                return zeros, np.zeros(self.rows.d)
            p, w, levels = found
            v = np.abs(self.rows.combine(p) + self.r)
            bound = float(np.max(v[columns]))
            broken = np.setdiff1d(np.flatnonzero(v > bound * (1 + tol) + ROUNDING), columns)
            if not len(broken):
                return Equilibrium(p, self.rows.scores(bound * w), bound * levels, True), bound * w
            columns = np.concatenate((columns, _largest(v, broken, max(ADDED_COLUMNS, len(columns) // 2))))

    def _program(self, columns: Array, size: float) -> tuple[Array, Array, Array] | None:
        """Return p, w with ‖w‖₁ = 1, and the levels, for these columns of A and r, divided by `size`.

        None where HiGHS fails, or where there is no room or time for the program. The variables are p, v = Aᵀp + r and s: with v
        the matrix A occurs in the program once and not twice.
        """
        import scipy.sparse as sp
        from scipy.optimize import linprog

        n, k, G = self.rows.n, len(columns), self.allowed.indicators
        if not fits(LP_ENTRY_BYTES * n * k) or not self.deadline.affords(LP_PASSES * self.deadline.pace.entry * n * k):
            return None
        A = self.rows.columns(columns).T / size
        one = sp.eye_array(k)
        s = np.ones((k, 1))
        program = {
            "c": np.append(np.zeros(n + k), 1.0),
            "A_ub": sp.hstack([sp.csr_array((2 * k, n)), sp.vstack([one, -one]), np.vstack([-s, -s])], format="csr"),
            "b_ub": np.zeros(2 * k),
            "A_eq": sp.block_array([[A, -one, np.zeros((k, 1))], [G.T, np.zeros((G.shape[1], k)), None]], format="csr"),
            "b_eq": np.append(-self.r[columns] / size, self.allowed.mass),
            "bounds": np.column_stack(
                (np.repeat([0.0, -np.inf], (n, k + 1)), np.concatenate((self.allowed.caps, np.full(k + 1, np.inf))))
            ),
        }
        for method in ("highs-ds", "highs-ipm") if A.size < LARGE_PROGRAM else ("highs-ipm", "highs-ds"):
            limit = {"time_limit": self.deadline.left} if self.deadline.at < math.inf else {}
            answer = linprog(method=method, options=LP_OPTIONS | limit, **program)
            if answer.status == 0:
                w = np.zeros(self.rows.d)
                w[columns] = -answer.eqlin.marginals[:k]
                total = float(np.sum(np.abs(w))) or 1.0  # 1 up to rounding, unless s is 0
                return self.allowed.filled(np.maximum(answer.x[:n], 0.0)), w / total, answer.eqlin.marginals[k:] * (size / total)
        return None


def _largest(v: Array, among: Array, count: int) -> Array:
    """Return those `count` of the columns `among` where v is largest."""
    return among if len(among) <= count else among[np.argpartition(-v[among], count - 1)[:count]]
