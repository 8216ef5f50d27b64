"""The finder for norm 1, where w is in a box: the margin is the value of a linear program, whose multipliers are p."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Proposal, Question
from gordan.memory import fits
from gordan.solve.sup_norm import LP_ENTRY_BYTES, LP_OPTIONS, LP_PASSES


def by_linear_program(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose the solution of a linear program by HiGHS, where there is room and time for it.

    For a hard margin it is max s over y_i(x_i·w + b) ≥ s, |w_j| ≤ 1, where b is free, or one of the entries if it counts in the
    norm. For a soft one it is max Σ_g mass_g s_g - caps·ξ over A_i·w + ξ_i ≥ s_g for each row i of group g, ξ ≥ 0, |w_j| ≤ 1: at
    the best s it is the least p·Aw that the caps allow.
    """
    rows, grouped, R, time = question.rows, question.margin.intercept.grouped, question.radius, question.budget.time
    if R == 0 or not fits(LP_ENTRY_BYTES * rows.entries) or not time.affords(LP_PASSES * time.pace.entry * rows.entries):
        return
    import scipy.sparse as sp
    from scipy.optimize import linprog

    A, p_set, d = rows.scaled(1 / R).columns(np.arange(rows.d)), question.p_set, rows.d
    if p_set.caps is None:
        free = rows.signs[:, None] if grouped else np.zeros((rows.n, 0))
        cost = np.append(np.zeros(d + free.shape[1]), -1.0)
        others = [-free, np.ones((rows.n, 1))]
        bounds = [(None, None)] * free.shape[1] + [(0.0, None)]
    else:
        groups = len(p_set.members)
        levels = np.zeros((rows.n, groups))
        for g, members in enumerate(p_set.members):
            levels[members, g] = 1.0
        cost = np.concatenate((np.zeros(d), np.full(groups, -p_set.mass), p_set.caps))
        others = [levels, -sp.eye_array(rows.n)]
        bounds = [(None, None)] * groups + [(0.0, None)] * rows.n
    answer = linprog(
        cost,
        A_ub=sp.hstack([-A, *others], format="csc"),
        b_ub=np.zeros(rows.n),
        bounds=[(-1.0, 1.0)] * d + bounds,
        method="highs",
        options=LP_OPTIONS | {"time_limit": time.left},
    )
    if answer.status != 0 or (p_set.caps is None and answer.fun >= 0):
        return
    p = np.maximum(-answer.ineqlin.marginals, 0.0)
    p = p / max(float(np.sum(p)), 1e-300) if p_set.caps is None else p_set.project(p)
    if answer.fun < 0:
        w, b = question.margin.intercept.played(answer.x[:d])
        yield Proposal(w, b, p)
    else:
        yield Proposal(p=p)
