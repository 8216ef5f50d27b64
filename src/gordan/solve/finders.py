"""The table of finders, in the order in which they are asked; and the loop that asks them.

A finder is a generator of proposals. It says which part of a question it answers, the sign of the margin or the width of the
interval, and what it needs for that. Nothing that it yields is believed: the evidence has every proposal checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from gordan.ledger.evidence import Evidence
from gordan.ledger.optimum import LossEvidence
from gordan.ledger.question import Asks, Proposal, Question
from gordan.memory import fits
from gordan.solve import double_oracle, minimizing, overlapping, playing, separation, soft, untangling
from gordan.solve.box_norm import by_linear_program
from gordan.solve.levelling import by_levelling, levelled
from gordan.solve.loss_newton import TUNING as NEWTON
from gordan.solve.nearest_points import by_nearest_points
from gordan.solve.proximal import MOST_COLUMNS
from gordan.solve.rescaling import by_rescaling, is_rescalable

# Newton's method is given rows down to a tolerance that the type of its scores can tell.
NEWTON_TOL = {"float32": 1e-4, "float64": 1e-9}
# Share of the rows that a plane may have on the wrong side to be worth improving by play. Where classes overlap it is above 6% in
# every set of benchmarks/order.py; where they hardly touch it is below, and play finds a plane up to 100 times as soon.
HARDLY_ANY = 0.06
# Passes that are to be left when equal points are looked for before the play.
GLANCE = 20.0
# Rows for each column from which a small problem is asked for a witness before its margin is looked for.
TALL = 20

Find = Callable[[Any, Any, Callable[[], None]], Iterator[Proposal]]
Needs = Callable[[Any, Any], bool]


@dataclass(frozen=True)
class Finder:
    """A line of the table: which parts of a question it answers, and what it needs for each.

    `find(question, evidence, doubt)` may call `doubt()` to have the finders of the sign asked first.
    """

    name: str
    find: Find
    sign: Needs | None = None
    width: Needs | None = None
    cone: Needs | None = None
    loss: Needs | None = None

    def applies(self, wanted: Asks, question: Any, evidence: Any) -> bool:
        """Whether it has something to say about that part of the question."""
        needs = {Asks.SIGN: self.sign, Asks.WIDTH: self.width, Asks.CONE: self.cone, Asks.LOSS: self.loss}[wanted]
        return needs is not None and needs(question, evidence)


def _hard(question: Question, evidence: Evidence) -> bool:
    return question.margin.nu is None and question.margin.robust == 0


def _small(question: Question, evidence: Evidence) -> bool:
    return _hard(question, evidence) and separation.is_small(question)


def _likely_inseparable(question: Question, evidence: Evidence) -> bool:
    """So many rows for each column that a plane rarely separates them: a play would find out that there is no margin later."""
    tall = question.counted.X.n >= TALL * question.counted.X.d
    return tall and _small(question, evidence) and question.margin.norm == 2 and _unwatched(question, evidence)


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


def _tangled(question: Question, evidence: Evidence) -> bool:
    return _not_tiny(question, evidence) and untangling.applies(question)


def _unwatched(question: Question, evidence: Evidence) -> bool:
    """A witness at a glance spares the play, where nobody waits for its rounds and there is time for both."""
    play, budget = question.play, question.budget
    unwatched = play.auto and play.watch is None and play.checkpoint is None and _in_memory(question, evidence)
    return unwatched and GLANCE * budget.time.pace.entry * question.rows.entries < budget.time.left


def _playable(question: Question, evidence: Evidence) -> bool:
    sized = _in_memory(question, evidence) and question.unit_rows is not None
    return sized and question.sign_alone and _level(question, evidence)


def _few(question: Question, evidence: Evidence) -> bool:
    """Rows so few that a game has all of them in hand, and more than columns: one game decides sooner than epochs."""
    rows = question.rows
    return not rows.sparse and rows.d < rows.n <= double_oracle.FEW and _playable(question, evidence)


def _many_in_memory(question: Question, evidence: Evidence) -> bool:
    return _in_memory(question, evidence) and not _few(question, evidence)


def _hardly_inseparable(question: Question, evidence: Evidence) -> bool:
    """Few rows; or such that a plane has hardly any of them on the wrong side, unless they are so many that any sample tells."""
    rows = question.rows
    hardly = evidence.broken <= HARDLY_ANY and rows.entries <= double_oracle.TALL * rows.d**2
    return _few(question, evidence) or (hardly and _playable(question, evidence))


def _matrix_of_columns(question: Question) -> bool:
    """Whether there is room for a matrix of the columns, and for passes that keep nothing in a file."""
    margin = question.margin
    if not question.play.auto or question.play.checkpoint is not None:
        return False
    d = question.problem.X.d
    room = d <= MOST_COLUMNS and fits(8 * playing.COPIES * d * d)
    return room and margin.norm == 2


def _by_passes(question: Question, evidence: Evidence) -> bool:
    """Rows on a device; or so many at their caps that they are not to be looked at one by one."""
    suits = question.counted.storage.on_device or playing.many_at_caps(question)
    return suits and _matrix_of_columns(question) and question.tol >= NEWTON_TOL[question.rows.storage.sums]


def _hard_on_device(question: Question, evidence: Evidence) -> bool:
    return question.counted.storage.on_device and _hard(question, evidence) and _matrix_of_columns(question)


def _box(question: Question, evidence: Evidence) -> bool:
    return question.margin.norm == 1 and _in_memory(question, evidence)


def _rescalable(question: Question, evidence: Evidence) -> bool:
    return _hard(question, evidence) and is_rescalable(question)


def _soft(question: Question, evidence: Evidence) -> bool:
    return question.margin.nu is not None


def _open(question: Question, evidence: Evidence) -> bool:
    """Not where a soft margin has been found to be too small to matter, or is known as well as floats can tell."""
    if _hard(question, evidence) or evidence.effort.trace is None:
        return True
    vanishes = not evidence.sign_decided and evidence.upper <= question.tol * question.radius
    return not vanishes and bool(evidence.effort.trace.gap[-1] > question.tol)


def _outgrown(question: Question, evidence: Evidence) -> bool:
    return question.play.auto and _open(question, evidence) and playing.outgrown(question, evidence)


def _smooth(question: Any, evidence: Any) -> bool:
    return question.objective.loss.smooth and not question.objective.loss.several


def _several(question: Any, evidence: Any) -> bool:
    return question.objective.loss.several and not _elsewhere(question, evidence)


def _elsewhere(question: Any, evidence: Any) -> bool:
    """Rows in a file, on a device or on other machines, where vectors over rows are to stay; and nobody waits for steps."""
    play = question.play
    return not question.rows.in_memory and play.watch is None and play.checkpoint is None


def _not_smooth(question: Any, evidence: Any) -> bool:
    """The hinge; if not all time was spent by passes alone."""
    return not question.objective.loss.smooth and not (evidence.optimum is not None and question.budget.short)


def _sparse_hinge(question: Any, evidence: Any) -> bool:
    rows = question.rows
    wide = rows.sparse and rows.in_memory and rows.d > NEWTON.most_factorized
    return wide and question.play.start is None and _not_smooth(question, evidence)


def _by_cone(question: Question, evidence: Evidence, doubt: Callable[[], None]) -> Iterator[Proposal]:
    from gordan.solve.recession import by_cone  # here: it brings SciPy and python-flint

    yield from by_cone(question, evidence, doubt)


FINDERS = (
    Finder("contradiction", separation.by_contradiction, sign=_hard, width=_unwatched),
    Finder("witness of an interior point", separation.by_interior_witness, width=_likely_inseparable),
    Finder("interior point", separation.by_interior_point, sign=_small),
    Finder("coordinate ascent", separation.by_ascent, sign=_many_in_memory),
    Finder("nearest points", by_nearest_points, sign=_hard_on_device, width=_hard_on_device),
    Finder("Newton's method", playing.by_newton, width=_by_passes),
    Finder("linear program", by_linear_program, width=_box),
    Finder("play", playing.by_playing, sign=_hardly_inseparable, width=_open),
    Finder("levelling", by_levelling, sign=_uneven),
    Finder("Newton steps", overlapping.by_newton_steps, sign=_overlapping),
    Finder("nearly dependent columns", untangling.by_untangling, sign=_tangled),
    Finder("working set", separation.by_working_set, sign=_not_tiny),
    Finder("exact arithmetic", separation.by_exact_arithmetic, sign=_hard),
    Finder("rescaling", by_rescaling, sign=_rescalable),
    Finder("equal columns", soft.by_equal_columns, sign=_soft),
    Finder("recession cone", _by_cone, cone=_hard),
    Finder("accelerated game", playing.by_accelerated_game, width=_outgrown),
    Finder("passes alone", minimizing.by_passes_alone, loss=_elsewhere),
    Finder("Newton's method for losses", minimizing.by_smooth_newton, loss=_smooth),
    Finder("Newton's method for several classes", minimizing.by_softmax_newton, loss=_several),
    Finder("coordinate ascent for the hinge", minimizing.by_coordinate_ascent, loss=_sparse_hinge),
    Finder("method of multipliers", minimizing.by_multiplier_newton, loss=_not_smooth),
)


def answer(question: Any, callback: Callable[[Any], object] | None = None) -> Any:
    """Ask the finders until the question is answered, the time is up, or nobody has anything more to say.

    Where a method was asked for by name, the finders of the sign decide only that (they are not `narrowing`): the width is what
    the method makes of it. `callback` is called with the evidence after each proposal that did not answer; something true ends
    the search, as does Ctrl-C. What is proved by then is returned.
    """
    question = replace(question, budget=question.budget.paced(question.rows, question.vectors, question.on_host))
    evidence: Any = LossEvidence(question) if question.asks is Asks.LOSS else Evidence(question)
    asked: set[str] = set()

    def ask(wanted: Asks, narrowing: bool) -> None:
        for finder in FINDERS:
            if evidence.answered:  # by those who were asked about the sign in between
                return
            if finder.name in asked or not finder.applies(wanted, question, evidence):
                continue
            if asked and question.budget.spent and (wanted is Asks.SIGN or _proposed(evidence)):
                return
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


def _proposed(evidence: Any) -> bool:
    """Whether there is something to report where the time is up."""
    return evidence.question.asks is Asks.WIDTH and evidence.p is not None


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
    limited = (trace is not None and trace.status == "rounds") or evidence.question.budget.short
    return not limited and margin.nu is None and margin.norm == 2
