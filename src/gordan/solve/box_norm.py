"""The finder for norm 1, where w is in a box: the margin is the value of a linear program, whose multipliers are w."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Proposal, Question
from gordan.memory import fits
from gordan.solve.sup_norm import LP_ENTRY_BYTES, LP_OPTIONS, LP_PASSES

# Programs of at least so many entries are given to the interior-point method first, with crossover to a vertex: it solves one of
# 30,000 rows and 30 columns in half the time of the simplex method.
LARGE_ENTRIES = 100_000
# The share of the time that is left which a method may use: where it does not end in that time, others go on.
LP_SHARE = 0.4


def by_linear_program(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose the solution of min Σ_j t_j over |Aᵀp| ≤ t, p ∈ P, by HiGHS, where there is room and time for it.

    It has as many constraints as there are columns. The dual, with a constraint for each row, takes up to ten times as long.
    """
    rows, R, time = question.rows, question.radius, question.budget.time
    if R == 0 or not fits(2 * LP_ENTRY_BYTES * rows.entries) or not time.affords(LP_PASSES * time.pace.entry * rows.entries):
        return
    A = rows.scaled(1 / R).columns(np.arange(rows.d))
    methods = ("highs-ipm", "highs-ds") if rows.entries >= LARGE_ENTRIES else ("highs-ds", "highs-ipm")
    found = next((each for each in (_solved(A, question, method) for method in methods) if each is not None), None)
    if found is None:
        return
    p, w, value = found
    soft = question.margin.nu is not None
    if value > 0:
        w, b = question.margin.intercept.played(w)
        yield Proposal(w, b, p)
    elif soft:
        yield Proposal(p=p)


def _solved(A: Any, question: Question, method: str) -> tuple[Array, Array, float] | None:
    """Return p, w and the value of the program for these rows; None if this method of HiGHS does not find them in time."""
    import scipy.sparse as sp
    from scipy.optimize import linprog

    (n, d), p_set, time = A.shape, question.p_set, question.budget.time
    if time.passed:
        return None
    masses = np.zeros((len(p_set.members), n + d))
    for mass, members in zip(masses, p_set.members, strict=True):
        mass[:n][members] = 1.0
    upper = np.full(n + d, math.inf)
    if p_set.caps is not None:
        upper[:n] = p_set.caps
    one = sp.eye_array(d)
    answer = linprog(
        np.repeat([0.0, 1.0], [n, d]),
        A_ub=sp.block_array([[A.T, -one], [-A.T, -one]], format="csc"),
        b_ub=np.zeros(2 * d),
        A_eq=sp.csc_array(masses),
        b_eq=np.full(len(masses), p_set.mass),
        bounds=np.column_stack((np.zeros(n + d), upper)),
        method=method,
        options=LP_OPTIONS | ({"time_limit": LP_SHARE * time.left} if time.left < math.inf else {}),
    )
    if answer.status != 0:
        return None
    above, below = -answer.ineqlin.marginals.reshape(2, d)
    return p_set.project(answer.x[:n]), above - below, float(answer.fun)
