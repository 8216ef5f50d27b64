"""The finder for margins that are hardly positive: rescaling methods, where every other finder of the sign has failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gordan.geometry import Simplex
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Proposal, Question
from gordan.memory import fits
from gordan.methods import rescaling
from gordan.solve.cancelling import cancelling

# Multiplications of a phase, rows times columns squared, up to which rescaling is worth starting.
MAX_MULTIPLICATIONS = 20_000_000
# Rounds of both players: the hardest chains of 100 columns need about 300 each with phases of PDHG, and 2,000 with those of the
# Smooth Perceptron, which also take three times as long.
MAX_ROUNDS = 4000
# Weights of rows that cancel are found within about 200 rounds: where the search for a separator has given up, the search for
# weights ends after this many.
ENOUGH_ROUNDS = 300
# Copies of the rows that exist at a time.
COPIES = 4


def is_rescalable(question: Question) -> bool:
    """Return whether a phase costs little, and there is room for dense copies of the rows."""
    n, d = question.counted.X.n, question.counted.X.d
    return n * d * d <= MAX_MULTIPLICATIONS and fits(8.0 * COPIES * n * (d + 1))


def by_rescaling(question: Question, evidence: Evidence, decide_sign: Any) -> Iterator[Proposal]:
    """Propose a plane found by `rescaled_perceptron`, or rows that cancel found by `projection_rescaling`.

    Both methods are played in turns on rows with a column of ones, whose weight is b.
    """
    problem, time = question.counted, question.budget.time
    if not time.affords(2 * time.pace.basis(problem.X.n, problem.X.d + 1)):
        return
    rows = question.unit_rows.A
    p_set = Simplex(rows.n)
    form = rescaling(basic="pdhg").on(rows, p_set, p_set.centre)
    state = form.start()
    for t in range(1, MAX_ROUNDS + 1):
        state, played = form.round(state, t)
        if question.budget.spent or (state.over[0] and not played.finished and state.rounds[1] >= ENOUGH_ROUNDS):
            return
        if played.finished:
            assert played.output is not None
            yield Proposal(*rows.plane(played.output.w), played.p)
            support = np.flatnonzero(played.p)
            yield from cancelling(question, support, played.p[support])
            return
