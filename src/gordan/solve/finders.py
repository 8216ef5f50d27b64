"""The table of finders, in the order in which they are asked; and the loop that asks them.

A finder is a generator of proposals. It says which part of a question it answers, the sign of the margin or the width of the
interval, and what it needs for that. Nothing that it yields is believed: the evidence has every proposal checked.

The order shows in public answers. The first proposal that decides the sign ends `separate`, and its w and p are the ends of
`Verdict.margin`: so whoever comes before "interior point" leaves small data, of which that knows the largest margin, to it. A
proposal that is refused costs the passes of its check, is shown to the user's callback, and may lower `Hints.broken`, by which
"play" is asked or not: so finders look at the scores in floats before they propose. CONTRIBUTING.md has an example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gordan.errors import InputError
from gordan.ledger.evidence import Evidence
from gordan.ledger.optimum import LossEvidence
from gordan.ledger.question import Asks, Proposal, Question
from gordan.losses import Loss
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
LIKELY_INSEPARABLE = 20

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
        needs: Needs | None = getattr(self, wanted.value)  # the parts have the names of the fields
        return needs is not None and needs(question, evidence)


def _hard_margin(question: Question, evidence: Evidence) -> bool:
    return question.margin.nu is None and question.margin.robust == 0


def _same_plane(question: Question, evidence: Evidence) -> bool:
    """The hard margin, or what noise in the 2-norm leaves of it: the same plane and weights prove both."""
    margin = question.margin
    return margin.nu is None and (margin.robust == 0 or margin.robust_norm == 2)


def _suits_interior_point(question: Question, evidence: Evidence) -> bool:
    return _hard_margin(question, evidence) and separation.suits_interior_point(question)


def _likely_inseparable(question: Question, evidence: Evidence) -> bool:
    """So many rows for each column that a plane rarely separates them: a play would find out that there is no margin later."""
    many = question.counted.X.n >= LIKELY_INSEPARABLE * question.counted.X.d
    return many and _suits_interior_point(question, evidence) and question.margin.norm == 2 and _unwatched(question, evidence)


def _well_scaled(question: Question, evidence: Evidence) -> bool:
    return _hard_margin(question, evidence) and question.shared(levelled) is None


def _badly_scaled(question: Question, evidence: Evidence) -> bool:
    return _hard_margin(question, evidence) and question.shared(levelled) is not None


def _in_memory(question: Question, evidence: Evidence) -> bool:
    return _hard_margin(question, evidence) and question.rows.in_memory


def _beyond_exact_arithmetic(question: Question, evidence: Evidence) -> bool:
    return not separation.suits_exact_arithmetic(question) and _well_scaled(question, evidence)


def _overlapping(question: Question, evidence: Evidence) -> bool:
    return _well_scaled(question, evidence) and overlapping.applies(question)


def _tangled(question: Question, evidence: Evidence) -> bool:
    return _beyond_exact_arithmetic(question, evidence) and untangling.applies(question)


def _unwatched(question: Question, evidence: Evidence) -> bool:
    """A witness at a glance spares the play, where nobody waits for its rounds and there is time for both."""
    play, budget = question.play, question.budget
    unwatched = play.auto and play.watch is None and play.checkpoint is None and _in_memory(question, evidence)
    return unwatched and GLANCE * budget.time.pace.entry * question.rows.entries < budget.time.left


def _playable(question: Question, evidence: Evidence) -> bool:
    return _in_memory(question, evidence) and question.sign_alone and _well_scaled(question, evidence)


def _all_in_hand(question: Question, evidence: Evidence) -> bool:
    """Rows so few that a game has all of them in hand, and more than columns: one game decides sooner than epochs."""
    rows = question.rows
    return not rows.sparse and rows.d < rows.n <= double_oracle.ALL_IN_HAND and _playable(question, evidence)


def _more_than_in_hand(question: Question, evidence: Evidence) -> bool:
    return _in_memory(question, evidence) and not _all_in_hand(question, evidence)


def _hardly_inseparable(question: Question, evidence: Evidence) -> bool:
    """Few rows; or such that a plane has hardly any of them on the wrong side, unless they are so many that any sample tells."""
    rows = question.rows
    hardly = evidence.hints.broken <= HARDLY_ANY and rows.entries <= double_oracle.MOST_VISITED * rows.d**2
    return _all_in_hand(question, evidence) or (hardly and _playable(question, evidence))


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


def _hard_margin_on_device(question: Question, evidence: Evidence) -> bool:
    return question.counted.storage.on_device and _same_plane(question, evidence) and _matrix_of_columns(question)


def _box(question: Question, evidence: Evidence) -> bool:
    return question.margin.norm == 1 and _in_memory(question, evidence)


def _rescalable(question: Question, evidence: Evidence) -> bool:
    return _hard_margin(question, evidence) and is_rescalable(question)


def _noisy(question: Question, evidence: Evidence) -> bool:
    """Noise that changes the plane, and nobody waits for the rounds of the method that knows it."""
    margin, play = question.margin, question.play
    unwatched = play.watch is None and play.checkpoint is None and play.start is None and question.budget.max_iter is None
    return margin.robust > 0 and margin.robust_norm != 2 and unwatched


def _soft(question: Question, evidence: Evidence) -> bool:
    return question.margin.nu is not None


def _not_settled(question: Question, evidence: Evidence) -> bool:
    """Not where a soft margin has been found to be too small to matter, or is known as well as floats can tell."""
    if question.margin.nu is None or evidence.effort.trace is None:
        return True
    vanishes = not evidence.sign_decided and evidence.upper <= question.tol * question.radius
    return not vanishes and bool(evidence.effort.trace.gap[-1] > question.tol)


def _outgrown(question: Question, evidence: Evidence) -> bool:
    return question.play.auto and _not_settled(question, evidence) and playing.outgrown(question, evidence)


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
    """The hinge, or its square for rows that fit a cache, with so many sparse columns that no matrix of them is factorized."""
    rows, loss = question.rows, question.objective.loss
    hinged = loss is Loss.HINGE or (loss is Loss.SQUARED_HINGE and rows.entries <= minimizing.EPOCHS.most_entries)
    wide = rows.sparse and rows.in_memory and rows.d > NEWTON.most_factorized
    return wide and hinged and question.play.start is None


def _by_cone(question: Question, evidence: Evidence, doubt: Callable[[], None]) -> Iterator[Proposal]:
    from gordan.solve.recession import by_cone  # here: it brings SciPy and python-flint

    yield from by_cone(question, evidence, doubt)


FINDERS = (
    Finder("contradiction", separation.by_contradiction, sign=_hard_margin, width=_unwatched),
    Finder("witness of an interior point", separation.by_interior_witness, width=_likely_inseparable),
    Finder("interior point", separation.by_interior_point, sign=_suits_interior_point),
    Finder("coordinate ascent", separation.by_ascent, sign=_more_than_in_hand),
    Finder("nearest points", by_nearest_points, sign=_hard_margin_on_device, width=_hard_margin_on_device),
    Finder("Newton's method", playing.by_newton, width=_by_passes),
    Finder("linear program", by_linear_program, width=_box),
    Finder("margin without noise", playing.by_margin_without_noise, width=_noisy),
    Finder("play", playing.by_playing, sign=_hardly_inseparable, width=_not_settled),
    Finder("levelling", by_levelling, sign=_badly_scaled),
    Finder("Newton steps", overlapping.by_newton_steps, sign=_overlapping),
    Finder("nearly dependent columns", untangling.by_untangling, sign=_tangled),
    Finder("working set", separation.by_working_set, sign=_beyond_exact_arithmetic),
    Finder("exact arithmetic", separation.by_exact_arithmetic, sign=_hard_margin),
    Finder("rescaling", by_rescaling, sign=_rescalable),
    Finder("equal columns", soft.by_equal_columns, sign=_soft),
    Finder("recession cone", _by_cone, cone=_hard_margin),
    Finder("accelerated game", playing.by_accelerated_game, width=_outgrown),
    Finder("passes alone", minimizing.by_passes_alone, loss=_elsewhere),
    Finder("coordinate ascent for the hinge", minimizing.by_coordinate_ascent, loss=_sparse_hinge),
    Finder("Newton's method for losses", minimizing.by_smooth_newton, loss=_smooth),
    Finder("Newton's method for several classes", minimizing.by_softmax_newton, loss=_several),
    Finder("method of multipliers", minimizing.by_multiplier_newton, loss=_not_smooth),
)


def answer(question: Any, callback: Callable[[Any], object] | None = None) -> Any:
    """Ask the finders until the question is answered, the time is up, or nobody has anything more to say.

    Where a method was asked for by name, the finders of the sign decide only that (they are not `narrowing`): the width is what
    the method makes of it. `callback` is called with the evidence after each proposal that did not answer; returning True ends
    the search, as does Ctrl-C. What is proved by then is returned.
    """
    budget = question.budget.paced(question.rows, question.vectors, question.on_host)
    question = question if budget is question.budget else replace(question, budget=budget)
    evidence: Any = LossEvidence(question) if question.asks is Asks.LOSS else Evidence(question)
    asking = _Asking(question, evidence, callback, set())
    try:
        asking.ask(question.asks, narrowing=True)
        if question.asks is Asks.WIDTH and not evidence.answered and not evidence.effort.stopped:
            stuck = _stopped_by_rounding(evidence)
            if stuck or not evidence.sign_decided:
                asking.ask(Asks.SIGN, narrowing=stuck or question.play.auto)
    except KeyboardInterrupt:
        evidence.effort.stopped = True
    if question.asks is Asks.SIGN and evidence.p is None and not evidence.sign_decided:
        evidence.offer(Proposal(p=question.p_set.centre))  # nobody had the time to say anything
    return evidence


@dataclass(frozen=True, eq=False)
class _Asking:
    """One way through the table. No function that refers to itself: that would keep X until garbage is collected."""

    question: Any
    evidence: Any
    callback: Callable[[Any], object] | None
    asked: set[str]

    def ask(self, wanted: Asks, narrowing: bool) -> None:
        """Ask those finders that were not asked before about this part of the question."""
        question, evidence = self.question, self.evidence
        for finder in FINDERS:
            if evidence.answered:  # by those who were asked about the sign in between
                return
            if finder.name in self.asked or not finder.applies(wanted, question, evidence):
                continue
            if self.asked and question.budget.spent and (wanted is Asks.SIGN or _proposed(evidence)):
                return
            self.asked.add(finder.name)
            if self._ends(finder, wanted, narrowing):
                return

    def _ends(self, finder: Finder, wanted: Asks, narrowing: bool) -> bool:
        """Whether what the finder proposes, or whoever watches, ends the search."""
        evidence = self.evidence
        for proposal in _proposals(finder, wanted, self.question, evidence, self.doubt):
            decided = _offered(evidence, proposal if narrowing else replace(proposal, p=None))
            if evidence.answered or (decided and wanted is Asks.SIGN) or evidence.effort.stopped:
                return True
            if self.callback is not None and self.callback(evidence):
                evidence.effort.stopped = True
                return True
        return False

    def doubt(self) -> None:
        """Have the finders of the sign asked first."""
        self.ask(Asks.SIGN, self.question.play.auto)


def _proposals(finder: Finder, wanted: Asks, question: Any, evidence: Any, doubt: Callable[[], None]) -> Iterator[Proposal]:
    """What the finder yields. It need not mind warnings; and if it is asked for the sign, neither products that overflow nor
    matrices without inverse: others decide then. Whoever is asked for more says what is wrong with the data."""
    found = finder.find(question, evidence, doubt)
    while True:
        try:
            with np.errstate(all="ignore"):
                proposal = next(found, None)
        except (InputError, np.linalg.LinAlgError):
            if wanted is not Asks.SIGN:
                raise
            return
        if proposal is None:
            return
        yield proposal


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
