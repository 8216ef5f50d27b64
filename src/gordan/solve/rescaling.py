"""The finder for margins that are hardly positive: rescaling, where every other finder of the sign has failed."""

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

# Multiplications of a phase at most (rows times columns squared), and rounds of both players: the hardest chains of 100 columns
# need some 300 each with phases of PDHG, and 2,000 with those of the Smooth Perceptron, which take thrice as long. Weights of
# rows that cancel are found within some 200 rounds; where the other player gives up, they are looked for that long and no longer.
MOST_MULTIPLICATIONS, MOST_ROUNDS, ENOUGH_ROUNDS = 20_000_000, 4000, 300
# Copies of the rows that are in use at a time.
COPIES = 4


def is_rescalable(question: Question) -> bool:
    """Whether a phase costs little, and there is room for the rows spread out."""
    n, d = question.counted.X.n, question.counted.X.d
    return n * d * d <= MOST_MULTIPLICATIONS and fits(8.0 * COPIES * n * (d + 1))


def by_rescaling(question: Question, evidence: Evidence, doubt: Any) -> Iterator[Proposal]:
    """A separator of `rescaled_perceptron`, or rows that `projection_rescaling` says cancel; b is the weight of a column."""
    problem, time = question.counted, question.budget.time
    if not time.affords(2 * time.pace.basis(problem.X.n, problem.X.d + 1)):
        return
    rows = question.unit_rows.A
    p_set = Simplex(rows.n)
    form = rescaling(basic="pdhg").on(rows, p_set, p_set.centre)
    state = form.start()
    for t in range(1, MOST_ROUNDS + 1):
        state, played = form.round(state, t)
        if question.budget.spent or (state.over[0] and not played.finished and state.rounds[1] >= ENOUGH_ROUNDS):
            return
        if played.finished:
            assert played.output is not None
            yield Proposal(*rows.plane(played.output.w), played.p)
            support = np.flatnonzero(played.p)
            yield from cancelling(question, support, played.p[support])
            return
