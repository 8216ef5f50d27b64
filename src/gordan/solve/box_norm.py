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
    """Propose the solution of max s over y_i(x_i·w + b) ≥ s, |w_j| ≤ 1, by HiGHS, where there is room and time for it.

    b is free, or one of the entries where it counts in the norm.
    """
    rows, grouped, R, time = question.rows, question.margin.intercept.grouped, question.radius, question.budget.time
    if R == 0 or not fits(LP_ENTRY_BYTES * rows.entries) or not time.affords(LP_PASSES * time.pace.entry * rows.entries):
        return
    import scipy.sparse as sp
    from scipy.optimize import linprog

    A = rows.scaled(1 / R).columns(np.arange(rows.d))
    free = rows.signs[:, None] if grouped else np.zeros((rows.n, 0))
    answer = linprog(
        np.append(np.zeros(rows.d + free.shape[1]), -1.0),
        A_ub=sp.hstack([-A, -free, np.ones((rows.n, 1))], format="csc"),
        b_ub=np.zeros(rows.n),
        bounds=[(-1.0, 1.0)] * rows.d + [(None, None)] * free.shape[1] + [(0.0, None)],
        method="highs",
        options=LP_OPTIONS | {"time_limit": time.left},
    )
    if answer.status == 0 and answer.x[-1] > 0:
        p, w = np.maximum(-answer.ineqlin.marginals, 0.0), answer.x[: rows.d]
        w, b = question.margin.intercept.played(w)
        yield Proposal(w, b, p / max(float(np.sum(p)), 1e-300))
