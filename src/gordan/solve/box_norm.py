"""The finder for norm 1, where w is in a box: the margin is the value of a linear program,

    min Σ_j t_j   over |Σ_i p_i A_ij| ≤ t_j for each column j, 0 ≤ p ≤ caps, Σp = mass_g in each group g,

or of its dual, if there are more columns than rows,

    max Σ_g mass_g λ_g - caps·ξ   over A_i·w + ξ_i ≥ λ_g for each row i of group g, ξ ≥ 0, |w_j| ≤ 1.

The multipliers of either are the variables of the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.geometry import Simplex
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
    """Propose the solution of the program by HiGHS, where there is room and time for it."""
    from scipy.optimize import linprog

    rows, R, time = question.rows, question.radius, question.budget.time
    if R == 0 or not fits(2 * LP_ENTRY_BYTES * rows.entries) or not time.affords(LP_PASSES * time.pace.entry * rows.entries):
        return
    A, P = rows.scaled(1 / R).columns(np.arange(rows.d)), question.p_set
    narrow = rows.d <= rows.n
    program = _for_p(A, P) if narrow else _for_w(A, P)
    for method in ("highs-ipm", "highs-ds") if rows.entries >= LARGE_ENTRIES else ("highs-ds", "highs-ipm"):
        if time.passed:
            return
        limit = {"time_limit": LP_SHARE * time.left} if time.left < math.inf else {}
        answer = linprog(method=method, options=LP_OPTIONS | limit, **program)
        if answer.status == 0:
            p, w, value = _read_for_p(answer, rows.d) if narrow else _read_for_w(answer, rows.d)
            yield from _proposals(question, P.project(p), w, value)
            return


def _proposals(question: Question, p: Array, w: Array, value: float) -> Iterator[Proposal]:
    """Yield p and w, or p alone for a soft margin that vanishes; if a hard one does, other finders see more."""
    if value > 0 and w.any():
        w, b = question.margin.intercept.played(w)
        yield Proposal(w, b, p)
    elif question.margin.nu is not None:
        yield Proposal(p=p)


def _for_p(A: Any, P: Simplex) -> dict[str, Any]:
    """Return the program as arguments of `linprog`; its variables are p and t."""
    import scipy.sparse as sp

    n, d = A.shape
    upper = np.full(n + d, math.inf)
    if P.caps is not None:
        upper[:n] = P.caps
    groups, one = _groups(P), sp.eye_array(d)
    return {
        "c": np.repeat([0.0, 1.0], [n, d]),
        "A_ub": sp.block_array([[A.T, -one], [-A.T, -one]], format="csc"),
        "b_ub": np.zeros(2 * d),
        "A_eq": sp.csc_array(np.column_stack((groups.T, np.zeros((groups.shape[1], d))))),
        "b_eq": np.full(groups.shape[1], P.mass),
        "bounds": np.column_stack((np.zeros(n + d), upper)),
    }


def _read_for_p(answer: Any, d: int) -> tuple[Array, Array, float]:
    """Return p, w and the value from the solution of `_for_p`."""
    above, below = -answer.ineqlin.marginals.reshape(2, d)
    return answer.x[:-d], above - below, float(answer.fun)


def _for_w(A: Any, P: Simplex) -> dict[str, Any]:
    """Return the dual as arguments of `linprog`; its variables are w, λ and, if there are caps, ξ."""
    import scipy.sparse as sp

    (n, d), groups = A.shape, _groups(P)
    k, slack = groups.shape[1], np.zeros(0) if P.caps is None else P.caps
    soft = [] if P.caps is None else [-sp.eye_array(n)]
    ends = np.repeat([[-1.0, 1.0], [-math.inf, math.inf], [0.0, math.inf]], [d, k, len(slack)], axis=0)
    return {
        "c": np.concatenate((np.zeros(d), np.full(k, -P.mass), slack)),
        "A_ub": sp.hstack([-A, groups, *soft], format="csc"),
        "b_ub": np.zeros(n),
        "bounds": ends,
    }


def _read_for_w(answer: Any, d: int) -> tuple[Array, Array, float]:
    """Return p, w and the value from the solution of `_for_w`."""
    return -answer.ineqlin.marginals, answer.x[:d], -float(answer.fun)


def _groups(P: Simplex) -> Array:
    """Return a column for each group, which is 1 for its rows and 0 for others."""
    groups = np.zeros((P.n, len(P.members)))
    for column, members in zip(groups.T, P.members, strict=True):
        column[members] = 1.0
    return groups
