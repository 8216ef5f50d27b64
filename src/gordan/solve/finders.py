"""The table of finders, in the order in which they are asked; and the loop that asks them.

A finder is a generator of proposals. It says which part of a question it answers, the sign of the margin or the width of the
interval, and what it needs. Nothing that it yields is believed: the evidence has every proposal checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from gordan.ledger.evidence import Evidence
from gordan.ledger.optimum import LossEvidence
from gordan.ledger.question import Asks, Proposal, Question
from gordan.memory import fits
from gordan.solve import minimizing, overlapping, playing, separation, soft
from gordan.solve.levelling import by_levelling, levelled
from gordan.solve.loss_newton import TUNING as NEWTON
from gordan.solve.proximal import MOST_COLUMNS

# Newton's method is given rows down to a tolerance that the type of its scores can tell.
NEWTON_TOL = {"float32": 1e-4, "float64": 1e-8}

Find = Callable[[Any, Any, Callable[[], None]], Iterator[Proposal]]


@dataclass(frozen=True)
class Finder:
    """A line of the table. `find(question, evidence, doubt)` may call `doubt()` to have the finders of the sign asked first."""

    name: str
    answers: frozenset[Asks]
    find: Find
    applies: Callable[[Any, Any], bool]


SIGN, WIDTH, CONE, LOSS = (frozenset({asked}) for asked in (Asks.SIGN, Asks.WIDTH, Asks.CONE, Asks.LOSS))


def _hard(question: Question, evidence: Evidence) -> bool:
    return question.margin.nu is None


def _small(question: Question, evidence: Evidence) -> bool:
    return _hard(question, evidence) and separation.is_small(question)


def _level(question: Question, evidence: Evidence) -> bool:
    return _hard(question, evidence) and question.shared(levelled) is None


def _uneven(question: Question, evidence: Evidence) -> bool:
    return _hard(question, evidence) and question.shared(levelled) is not None


def _in_memory(question: Question, evidence: Evidence) -> bool:
    return _hard(question, evidence) and question.rows.in_memory


def _not_tiny(question: Question, evidence: Evidence) -> bool:
    return not separation.is_tiny(question) and _level(question, evidence)


def _overlapping(question: Question, evidence: Evidence) -> bool:
    return _level(question, evidence) and overlapping.applies(question)


def _on_device(question: Question, evidence: Evidence) -> bool:
    storage, margin = question.counted.storage, question.margin
    if not question.play.auto or question.play.checkpoint is not None or not storage.on_device:
        return False  # what Newton's method keeps is on a device, and not in a file
    d = question.problem.X.d
    room = d <= MOST_COLUMNS and fits(8 * playing.COPIES * d * d)
    return room and margin.norm == 2 and question.tol >= NEWTON_TOL[question.rows.storage.sums]


def _soft(question: Question, evidence: Evidence) -> bool:
    return not _hard(question, evidence)


def _always(question: Question, evidence: Evidence) -> bool:
    return True


def _outgrown(question: Question, evidence: Evidence) -> bool:
    return question.play.auto and playing.outgrown(question, evidence)


def _smooth(question: Any, evidence: Any) -> bool:
    return bool(question.objective.loss.smooth)


def _not_smooth(question: Any, evidence: Any) -> bool:
    return not question.objective.loss.smooth


def _sparse_hinge(question: Any, evidence: Any) -> bool:
    rows = question.rows
    wide = rows.sparse and rows.in_memory and rows.d > NEWTON.most_factorized
    return wide and question.play.start is None and _not_smooth(question, evidence)


def _by_cone(question: Question, evidence: Evidence, doubt: Callable[[], None]) -> Iterator[Proposal]:
    from gordan.solve.recession import by_cone  # here: it brings SciPy and python-flint

    yield from by_cone(question, evidence, doubt)


FINDERS = (
    Finder("contradiction", SIGN, separation.by_contradiction, _hard),
    Finder("interior point", SIGN, separation.by_interior_point, _small),
    Finder("coordinate ascent", SIGN, separation.by_ascent, _in_memory),
    Finder("levelling", SIGN, by_levelling, _uneven),
    Finder("Newton steps", SIGN, overlapping.by_newton_steps, _overlapping),
    Finder("working set", SIGN, separation.by_working_set, _not_tiny),
    Finder("exact arithmetic", SIGN, separation.by_exact_arithmetic, _hard),
    Finder("equal columns", SIGN, soft.by_equal_columns, _soft),
    Finder("recession cone", CONE, _by_cone, _hard),
    Finder("Newton's method", WIDTH, playing.by_newton, _on_device),
    Finder("play", WIDTH, playing.by_playing, _always),
    Finder("accelerated game", WIDTH, playing.by_accelerated_game, _outgrown),
    Finder("Newton's method for losses", LOSS, minimizing.by_smooth_newton, _smooth),
    Finder("coordinate ascent for the hinge", LOSS, minimizing.by_coordinate_ascent, _sparse_hinge),
    Finder("method of multipliers", LOSS, minimizing.by_multiplier_newton, _not_smooth),
)


def answer(question: Any, callback: Callable[[Any], object] | None = None) -> Any:
    """Ask the finders until the question is answered, the time is up, or nobody has anything more to say.

    Where a method was asked for by name, the finders of the sign decide only that (they are not `narrowing`): the width is what
    the method makes of it. `callback` is called with the evidence after each proposal that did not answer; something true ends
    the search, as does Ctrl-C. What is proved by then is returned.
    """
    evidence: Any = LossEvidence(question) if question.asks is Asks.LOSS else Evidence(question)
    asked: set[str] = set()

    def ask(wanted: Asks, narrowing: bool) -> None:
        for finder in FINDERS:
            if wanted not in finder.answers or finder.name in asked or not finder.applies(question, evidence):
                continue
            asked.add(finder.name)
            for proposal in finder.find(question, evidence, lambda: ask(Asks.SIGN, question.play.auto)):
                decided = _offered(evidence, proposal if narrowing else replace(proposal, p=None))
                if evidence.answered or (decided and wanted is Asks.SIGN) or evidence.effort.stopped:
                    return
                if callback is not None and callback(evidence):
                    evidence.effort.stopped = True
                    return

    try:
        ask(question.asks, narrowing=True)
        if question.asks is Asks.WIDTH and not evidence.answered and not evidence.effort.stopped:
            stuck = _stopped_by_rounding(evidence)
            if stuck or not evidence.sign_decided:
                ask(Asks.SIGN, narrowing=stuck or question.play.auto)
    except KeyboardInterrupt:
        evidence.effort.stopped = True
    if question.asks is Asks.SIGN and evidence.p is None and not evidence.sign_decided:
        evidence.offer(Proposal(p=question.p_set.centre))  # nobody had the time to say anything
    return evidence


def _offered(evidence: Any, proposal: Proposal) -> bool:
    """Whether the proposal decides the sign. One Ctrl-C is the wish to stop looking; a second one ends the proof, too."""
    try:
        return bool(evidence.offer(proposal))
    except KeyboardInterrupt:
        evidence.effort.stopped = True
        return bool(evidence.offer(proposal))


def _stopped_by_rounding(evidence: Evidence) -> bool:
    """Whether no limit ended the search for the width. Finders that scale rows and columns may then get further."""
    trace, margin = evidence.effort.trace, evidence.question.margin
    limited = (trace is not None and trace.status == "rounds") or evidence.question.budget.spent
    return not limited and margin.nu is None and margin.norm == 2
