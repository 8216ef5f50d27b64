"""The finder for soft margins among badly scaled columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from gordan.certificates.matrix import Matrix
from gordan.ledger.evidence import Evidence
from gordan.ledger.question import Play, Proposal, Question, Subject
from gordan.rows import stored
from gordan.solve.double_oracle import double_oracle
from gordan.solve.playing import by_playing, many_at_caps, may_be_copied
from gordan.solve.proximal import proximal_newton

# The tolerance of the search with scaled columns, where any plane of positive margin will do.
ROUGH_TOL = 1e-2
# Columns whose sizes, and distances from 0, differ by at most this factor need no scaling: their margins have as many digits.
SIMILAR_SIZES = 16.0
# Passes that the copies and the first p take, about.
COPY_PASSES = 20.0


def by_equal_columns(question: Question, evidence: Evidence, decide_sign: Callable[[], None]) -> Iterator[Proposal]:
    """Propose a plane of positive soft margin, found by a short play on columns of equal size, centred if there is an intercept.

    Whether there is such a plane does not depend on the scale, but a margin that is large beside the size of one column may be
    lost to rounding beside that of another.
    """
    margin, counted, raw = question.margin, question.counted, question.rows
    bare = replace(raw, constant=False)
    cells = raw.n * counted.X.d
    if not may_be_copied(bare) or not question.budget.time.affords(COPY_PASSES * question.budget.time.pace.entry * cells):
        return
    points = bare.dense() * counted.signs[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        centre = points.mean(axis=0) if margin.intercept.exists else np.zeros(counted.X.d)
        points = points - centre
        sizes = np.max(np.abs(points), axis=0, initial=0.0)
        if np.max(np.maximum(sizes, np.abs(centre))) <= SIMILAR_SIZES * np.min(sizes[sizes > 0], initial=np.inf):
            return
        exponents = np.frexp(sizes)[1]
        points = np.ldexp(points, -exponents)
    if not np.isfinite(points).all():
        return
    problem = replace(counted, X=Matrix(stored(points)))
    weights = None if margin.weights is None else margin.weights[question.kept]
    scaled = replace(
        question,
        about=Subject(
            problem,
            replace(margin, X=problem.X, signs=problem.signs, norm=2.0, weights=weights),
            question.about.threads,
        ),
        tol=ROUGH_TOL,
        budget=replace(question.budget, max_iter=None, within=question.budget.time),
        play=Play(proximal_newton() if many_at_caps(question) else double_oracle()),
    )
    found, stopped = Evidence(scaled), False
    for proposal in by_playing(scaled, found, lambda: None):
        stopped = proposal.stopped  # Ctrl-C ends the outer search as well
        found.offer(proposal)
    if found.w is not None and found.b is not None and found.lower > 0:
        least = int(np.min(exponents))  # w and b are multiplied by 2^least, so that neither overflows
        w = np.ldexp(found.w, least - exponents)
        yield Proposal(w, float(np.ldexp(found.b, least)) - float(w @ centre), stopped=stopped)
    elif stopped:
        yield Proposal(stopped=True)
