"""The table of finders, in the order in which they are asked, and the loop that asks them.

A finder is a generator of proposals: a plane, weights that bound the margin, rows that may cancel, or a cone. Nothing that it
yields is trusted: `Evidence` has every proposal checked and keeps what is proved. Each line of `FINDERS` says which parts of a
question a finder answers, and under which condition.

=======  =================  ====================================================================================================
part     asked by           when its finders are asked
=======  =================  ====================================================================================================
sign     `separate`         in order, until a proposal is proved to separate the rows, or to show that nothing does
width    `maximize_margin`  in order, until the interval is narrow enough. A finder that sees no positive margin calls
                            `decide_sign()`, which asks those of the sign; they are also asked at the end, if the sign is still
                            undecided or rounding stopped the search.
cone     `diagnose`         the one finder of the cone calls `decide_sign()` where rows are many
loss     `minimize_loss`    in order, until the interval of the objective is narrow enough
=======  =================  ====================================================================================================

No finder is asked twice. The order shows in public answers: the first proposal that decides the sign ends `separate`, and its w
and p are the ends of `Verdict.margin`. So finders that come before "interior point" leave small data to it, since it finds the
largest margin there. A proposal that is refused costs the passes of its check, is shown to the user's callback, and may lower
`Hints.broken`, on which the condition of "play" depends. So finders look at the scores in floats before they propose.
CONTRIBUTING.md has an example.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from gordan.errors import BeyondFloats
from gordan.ledger.evidence import Evidence
from gordan.ledger.optimum import LossEvidence, LossQuestion
from gordan.ledger.question import Answerable, Asks, Proposal, Question, paced
from gordan.memory import fits
from gordan.solve import (
    double_oracle,
    hinge,
    loss_ascent,
    minimizing,
    overlapping,
    playing,
    separation,
    smooth_losses,
    soft,
    untangling,
)
from gordan.solve.box_norm import by_linear_program
from gordan.solve.levelling import by_scaling, scaled_question
from gordan.solve.loss_newton import TUNING as NEWTON
from gordan.solve.nearest_points import by_nearest_points
from gordan.solve.proximal import MAX_HESSIAN_COLUMNS
from gordan.solve.rescaling import by_rescaling, is_rescalable
from gordan.statuses import Ending

# The smallest tolerance for which the proximal Newton method is asked, by the type in which the rows are summed: beyond it, sums
# in that type cannot tell whether the bracket has closed. For a soft margin of rows on a device it is asked for any tolerance,
# since the methods that go on from there keep vectors over rows on the host, and take this many seconds per row to begin.
PROXIMAL_TOL = {"float32": 1e-4, "float64": 1e-9}
SECONDS_TO_PLAY = 5e-7
# Largest share of rows on the wrong side of a plane at which playing on is worthwhile. Where classes overlap the share exceeds 6%
# on every set of benchmarks/order.py; where they hardly touch it is below, and play finds a plane up to 100 times as soon.
MAX_WRONG_SHARE = 0.06
# The search for equal points before a play needs time for this many passes: a pass for the keys, and the first rounds of the
# play.
CONTRADICTION_PASSES = 20.0
# Rows per column from which small data is searched for a witness before its margin: random labels are then almost never
# separable.
LIKELY_INSEPARABLE = 20

Find = Callable[[Any, Any, Callable[[], None]], Iterator[Proposal]]
Condition = Callable[[Question, Evidence], bool]
LossCondition = Callable[[LossQuestion, LossEvidence], bool]
E = TypeVar("E")


@dataclass(frozen=True)
class Finder:
    """A line of the table: a finder, and for each part of a question that it answers the condition under which it is asked.

    `find(question, evidence, decide_sign)` may call `decide_sign()` to have the finders of the sign asked before it goes on.
    """

    name: str
    find: Find
    sign: Condition | None = None
    width: Condition | None = None
    cone: Condition | None = None
    loss: LossCondition | None = None

    def applies(self, part: Asks, question: Any, evidence: Any) -> bool:
        """Return whether the finder is to be asked about this part of the question."""
        conditions = {Asks.SIGN: self.sign, Asks.WIDTH: self.width, Asks.CONE: self.cone, Asks.LOSS: self.loss}
        condition: Callable[[Any, Any], bool] | None = conditions[part]
        return condition is not None and condition(question, evidence)


# ---- conditions ----------------------------------------------------------------------------------------------------------


def _hard_margin(question: Question, evidence: Evidence) -> bool:
    return question.margin.nu is None and question.margin.robust == 0


def _soft_margin(question: Question, evidence: Evidence) -> bool:
    return question.margin.nu is not None


def _in_memory(question: Question, evidence: Evidence) -> bool:
    return _hard_margin(question, evidence) and question.rows.in_memory


def _suits_interior_point(question: Question, evidence: Evidence) -> bool:
    return _hard_margin(question, evidence) and separation.suits_interior_point(question)


def _may_run_before_play(question: Question, evidence: Evidence) -> bool:
    """Return whether to try a finder that may make the play needless: nobody watches its rounds, and there is time for both."""
    play, budget = question.play, question.budget
    unwatched = play.auto and play.watch is None and play.checkpoint is None and _in_memory(question, evidence)
    return unwatched and CONTRADICTION_PASSES * budget.time.pace.entry * question.rows.entries < budget.time.left


def _search_equal_points_first(question: Question, evidence: Evidence) -> bool:
    """Return whether to look for equal points first: not in dense rows of which a short ascent leaves few with weight."""
    if not _may_run_before_play(question, evidence):
        return False
    return not (_dense_and_many(question, evidence) and overlapping.seems_separable(question))


def _likely_inseparable(question: Question, evidence: Evidence) -> bool:
    """Return whether there are so many rows per column that a plane rarely separates them, which a play would find out later."""
    many = question.counted.X.n >= LIKELY_INSEPARABLE * question.counted.X.d
    small = many and _suits_interior_point(question, evidence) and question.margin.norm == 2
    return small and _may_run_before_play(question, evidence)


def _dense_and_many(question: Question, evidence: Evidence) -> bool:
    """Return whether dense rows are several times as many as columns, and nobody watches the play that this may spare."""
    n, d, norm = question.counted.X.n, question.counted.X.d, question.margin.norm
    many = question.rows.is_array and n >= separation.TUNING.doubtful_rows_per_column * d and norm == 2
    return many and overlapping.applies(question) and _may_run_before_play(question, evidence)


def _sparse(question: Question, evidence: Evidence) -> bool:
    return question.rows.sparse and _in_memory(question, evidence)


def _sparse_of_many_columns(question: Question, evidence: Evidence) -> bool:
    return _sparse(question, evidence) and overlapping.has_many_columns(question)


def _sparse_and_likely_inseparable(question: Question, evidence: Evidence) -> bool:
    """Return whether sparse rows are several times as many as columns, and nobody watches the play that this may spare."""
    many = question.counted.X.n >= overlapping.TUNING.rows_per_column * question.counted.X.d
    return many and _sparse(question, evidence) and _may_run_before_play(question, evidence)


def _well_scaled(question: Question, evidence: Evidence) -> bool:
    return _hard_margin(question, evidence) and question.shared(scaled_question) is None


def _badly_scaled(question: Question, evidence: Evidence) -> bool:
    return _hard_margin(question, evidence) and question.shared(scaled_question) is not None


def _beyond_exact_arithmetic(question: Question, evidence: Evidence) -> bool:
    return not separation.suits_exact_arithmetic(question) and _well_scaled(question, evidence)


def _suits_working_set(question: Question, evidence: Evidence) -> bool:
    """Return whether a game on few rows may decide: not where rows seem to cancel that have entries in thousands of columns."""
    return _beyond_exact_arithmetic(question, evidence) and not evidence.hints.cancelled


def _may_overlap(question: Question, evidence: Evidence) -> bool:
    return _well_scaled(question, evidence) and overlapping.applies(question)


def _may_have_nearly_dependent_columns(question: Question, evidence: Evidence) -> bool:
    return _beyond_exact_arithmetic(question, evidence) and untangling.applies(question)


def _rescalable(question: Question, evidence: Evidence) -> bool:
    return _hard_margin(question, evidence) and is_rescalable(question)


def _playable(question: Question, evidence: Evidence) -> bool:
    return _in_memory(question, evidence) and question.sign_alone and _well_scaled(question, evidence)


def _decided_by_one_game(question: Question, evidence: Evidence) -> bool:
    """Return whether dense rows, more than columns, all fit the working set: one game decides sooner than epochs of ascent."""
    rows = question.rows
    return rows.is_array and rows.d < rows.n <= double_oracle.TUNING.all_rows_at_once and _playable(question, evidence)


def _suits_ascent(question: Question, evidence: Evidence) -> bool:
    return _in_memory(question, evidence) and not _decided_by_one_game(question, evidence)


def _nearly_separable(question: Question, evidence: Evidence) -> bool:
    """Return whether one game decides, or a plane has few rows on its wrong side, and not so many rows that samples overlap."""
    rows = question.rows
    few_wrong = evidence.hints.broken <= MAX_WRONG_SHARE and rows.entries <= double_oracle.TUNING.max_visited * rows.d**2
    few_wrong = few_wrong and not evidence.hints.cancelled
    return _decided_by_one_game(question, evidence) or (few_wrong and _playable(question, evidence))


def _hessian_fits(question: Question) -> bool:
    """Return whether a d × d matrix fits in memory, for methods that write no checkpoints and are for the 2-norm alone."""
    d, play = question.problem.X.d, question.play
    if not play.auto or play.checkpoint is not None or question.margin.norm != 2:
        return False
    return d <= MAX_HESSIAN_COLUMNS and fits(8 * playing.TUNING.copies * d * d)


def _suits_proximal_newton(question: Question, evidence: Evidence) -> bool:
    """Return whether rows are on a device, or so many are at their caps that the working set cannot hold them."""
    on_device = question.counted.storage.on_device
    suits = (on_device or playing.many_at_caps(question)) and _hessian_fits(question)
    first = on_device and question.margin.nu is not None
    return suits and (first or question.tol >= PROXIMAL_TOL[question.rows.storage.sums])


def _hard_margin_on_device(question: Question, evidence: Evidence) -> bool:
    """Return whether rows are on a device; noise in the 2-norm is allowed, with which plane and weights are the same."""
    margin = question.margin
    same_plane = margin.nu is None and (margin.robust == 0 or margin.robust_norm == 2)
    return question.counted.storage.on_device and same_plane and _hessian_fits(question)


def _norm_one(question: Question, evidence: Evidence) -> bool:
    margin, rows = question.margin, question.rows
    return margin.norm == 1 and margin.robust == 0 and rows.in_memory and question.play.auto


def _noise_changes_the_plane(question: Question, evidence: Evidence) -> bool:
    """Return whether noise is not in the 2-norm, and no callback, checkpoint, start or round limit is for the robust method."""
    margin, play = question.margin, question.play
    unwatched = play.watch is None and play.checkpoint is None and play.start is None and question.budget.max_iter is None
    return margin.robust > 0 and margin.robust_norm != 2 and unwatched


def _not_settled(question: Question, evidence: Evidence) -> bool:
    """Return False if a soft margin is known to be negligible, or as precisely as floats or time to play on the host allow."""
    if question.margin.nu is None:
        return True
    vanishes, trace = not evidence.sign_decided and evidence.upper <= question.tol * question.radius, evidence.effort.trace
    if vanishes or (trace is not None and trace.gap[-1] <= question.tol):
        return False
    to_host = question.counted.storage.on_device and evidence.p is not None
    return not to_host or question.budget.time.affords(SECONDS_TO_PLAY * question.rows.n)


def _working_set_outgrown(question: Question, evidence: Evidence) -> bool:
    play = question.play
    bounded = play.auto and play.method.working_set
    return bounded and _not_settled(question, evidence) and playing.outgrown(question, evidence)


def _smooth_loss(question: LossQuestion, evidence: LossEvidence) -> bool:
    return question.objective.loss.smooth and not question.objective.loss.several


def _loss_outside_memory(question: LossQuestion, evidence: LossEvidence) -> bool:
    """Return whether rows are outside memory, where vectors over rows stay, and no callback or checkpoint needs the steps."""
    play = question.play
    return not question.rows.in_memory and play.watch is None and play.checkpoint is None


def _loss_of_several_classes(question: LossQuestion, evidence: LossEvidence) -> bool:
    return question.objective.loss.several and not _loss_outside_memory(question, evidence)


def _hinge(question: LossQuestion, evidence: LossEvidence) -> bool:
    """Return whether the loss is the hinge, unless the passes alone have used up the time."""
    return not question.objective.loss.smooth and not (evidence.optimum is not None and question.budget.short)


def _sparse_hinge(question: LossQuestion, evidence: LossEvidence) -> bool:
    """Return whether there are too many sparse columns to factorize, and the loss and the rows suit coordinate ascent."""
    rows = question.rows
    wide = NEWTON.is_too_wide(rows.storage, rows.d) and question.play.start is None
    return wide and loss_ascent.suits_ascent(rows, question.c, question.objective.loss)


def _sparing(find: Find) -> Find:
    """Return the finder that ends where products overflow or a matrix is singular: the play that it may spare reports that."""

    def found(question: Question, evidence: Evidence, decide_sign: Callable[[], None]) -> Iterator[Proposal]:
        with contextlib.suppress(BeyondFloats, np.linalg.LinAlgError):
            yield from find(question, evidence, decide_sign)

    return found


def _by_cone(question: Question, evidence: Evidence, decide_sign: Callable[[], None]) -> Iterator[Proposal]:
    from gordan.solve.recession import by_cone  # imported here because it needs SciPy and python-flint

    yield from by_cone(question, evidence, decide_sign)


# ---- the table -----------------------------------------------------------------------------------------------------------

# Above each line: what the finder proposes, for which data, and what it costs. A pass is a product with all n rows of d columns.
FINDERS = (
    # Two equal points with different labels, or a row of zeros. Reads all entries at most once.
    Finder("contradiction", separation.by_contradiction, sign=_hard_margin, width=_search_equal_points_first),
    # Rows that cancel, of small data that is likely to overlap. About ten steps of n·d·min(n, d) multiplications.
    Finder("witness of an interior point", _sparing(separation.by_interior_witness), width=_likely_inseparable),
    # The plane of the largest margin, or rows that cancel, of small data. About ten steps as for its witness, for each.
    Finder("interior point", separation.by_interior_point, sign=_suits_interior_point),
    # A plane, where there is one with some room. At most 96 epochs of a pass each; two where rows are many.
    Finder("coordinate ascent", separation.by_ascent, sign=_suits_ascent),
    # Rows that cancel, of dense rows of which many keep weight. Two epochs of ascent; then a few systems, made from 3d rows.
    Finder("suspects", _sparing(overlapping.by_weighted_rows), sign=_dense_and_many, width=_dense_and_many),
    # Rows that cancel, of sparse rows that overlap in few of many columns. A copy of the rows, and Newton steps for few columns.
    Finder("few columns", _sparing(overlapping.by_few_columns), sign=_sparse, width=_sparse_and_likely_inseparable),
    # A plane, or weights with which sparse rows of many columns nearly cancel. Some hundred steps of conjugate gradients.
    Finder("least loss", overlapping.by_least_loss, sign=_sparse_of_many_columns),
    # Plane and weights for rows on a device, from games on few of them. A pass and some tens of d × d systems for each game.
    Finder("nearest points", by_nearest_points, sign=_hard_margin_on_device, width=_hard_margin_on_device),
    # Plane and weights for rows that can only be passed over. Two passes and a d × d system for each step.
    Finder("Newton's method", playing.by_newton, width=_suits_proximal_newton),
    # Plane and weights for norm 1. One linear program with twice as many entries as the rows.
    Finder("linear program", by_linear_program, width=_norm_one),
    # Plane and weights of the margin without noise: they often prove that no plane withstands it. Costs a play.
    Finder("margin without noise", playing.by_margin_without_noise, width=_noise_changes_the_plane),
    # Plane and weights by the method asked for; by default the double oracle, of which a round costs a pass and a game on a
    # working set of at most 6,000 rows. A few rounds for the sign.
    Finder("play", playing.by_playing, sign=_nearly_separable, width=_not_settled),
    # What the finders above and below that work in floats propose for a scaled and centred copy of small, badly scaled data.
    Finder("levelling", by_scaling, sign=_badly_scaled),
    # Rows that cancel, of dense data that overlaps, or a plane. At most five rounds of a pass and about eight d × d systems.
    Finder("Newton steps", overlapping.by_newton_steps, sign=_may_overlap),
    # Rows that cancel, where a column is a combination of others except for rounding. The same for a copy of the rows, and an
    # exact solve.
    Finder("nearly dependent columns", untangling.by_untangling, sign=_may_have_nearly_dependent_columns),
    # Rows that cancel, or a plane, for any data. A pass and a game on about 2d rows, with their Gram matrix, for each round.
    Finder("working set", separation.by_working_set, sign=_suits_working_set),
    # Rows that cancel, or a plane, in rational arithmetic, where floats cannot decide. Grows with n·d²·digits; up to 2,000 rows.
    Finder("exact arithmetic", separation.by_exact_arithmetic, sign=_hard_margin),
    # Rows that cancel, or a plane of hardly positive margin, where all others failed. Up to 4,000 rounds of n·d² multiplications.
    Finder("rescaling", by_rescaling, sign=_rescalable),
    # A plane of positive soft margin, where columns are badly scaled. A dense copy of the rows and a short play.
    Finder("equal columns", soft.by_equal_columns, sign=_soft_margin),
    # The cone of weak separators. Rational arithmetic for small data, else linear programs over some rows and an exact solve.
    Finder("recession cone", _by_cone, cone=_hard_margin),
    # Plane and weights, where more rows have weight than the working set can hold. A pass a round, in up to 100,000 rounds.
    Finder("accelerated game", playing.by_accelerated_game, width=_working_set_outgrown),
    # The plane of least loss for rows outside memory. Passes and nothing else.
    Finder("passes alone", minimizing.by_passes_alone, loss=_loss_outside_memory),
    # The plane of least hinge loss for many sparse columns. Epochs of at most a pass each.
    Finder("coordinate ascent for the hinge", minimizing.proposing(loss_ascent.by_ascent), loss=_sparse_hinge),
    # The plane of least loss for a smooth loss. A few passes and a d × d system, or conjugate gradients, for each step.
    Finder("Newton's method for losses", minimizing.proposing(smooth_losses.by_newton), loss=_smooth_loss),
    # The planes of several classes. The same for all classes together.
    Finder(
        "Newton's method for several classes", minimizing.proposing(smooth_losses.by_all_classes), loss=_loss_of_several_classes
    ),
    # The plane of least hinge loss. A sequence of smooth problems.
    Finder("method of multipliers", minimizing.proposing(hinge.by_hinge), loss=_hinge),
)


# ---- the loop ------------------------------------------------------------------------------------------------------------


def answer(question: Answerable[E], callback: Callable[[E], object] | None = None) -> E:
    """Ask the finders until the question is answered, the time is up or no finder is left, and return the evidence.

    Where a method was chosen by name, the finders of the sign decide only that: the weights that they propose do not narrow the
    interval, which is left to the method. `callback` is called with the evidence after each proposal that did not answer;
    returning True ends the search, as does Ctrl-C.
    """
    question = paced(question)
    evidence = question.evidence()
    search = _FinderSearch(question, evidence, callback, set())
    try:
        search.ask(question.asks, narrowing=True)
        if question.asks is Asks.WIDTH:
            search.ask_for_open_sign()
    except KeyboardInterrupt:
        search.evidence.effort.stopped = True
    if question.asks is Asks.SIGN:
        search.bound_open_sign()
    return evidence


@dataclass(frozen=True, eq=False)
class _FinderSearch:
    """One search through the table, with the names of the finders asked so far.

    A class and not a closure: a function that refers to itself would keep X alive until garbage is collected.
    """

    question: Any
    evidence: Any
    callback: Callable[[Any], object] | None
    asked: set[str]

    def ask(self, part: Asks, narrowing: bool) -> None:
        """Ask the finders of this part that were not asked before; unless `narrowing`, their weights are left out."""
        question, evidence = self.question, self.evidence
        for finder in FINDERS:
            if evidence.answered:  # by the finders of the sign that another one called for
                return
            if finder.name in self.asked or not finder.applies(part, question, evidence):
                continue
            reportable = part is Asks.SIGN or (question.asks is Asks.WIDTH and evidence.p is not None)
            if self.asked and question.budget.spent and reportable:
                return
            self.asked.add(finder.name)
            if self._ends(finder, part, narrowing):
                return

    def _ends(self, finder: Finder, part: Asks, narrowing: bool) -> bool:
        """Offer what the finder proposes; return whether a proposal, the callback or Ctrl-C ends the search for this part."""
        evidence = self.evidence
        for proposal in _proposals(finder, part, self.question, evidence, self.decide_sign):
            evidence.effort.stopped |= proposal.stopped
            decided = _offered(evidence, proposal if narrowing else replace(proposal, p=None))
            if evidence.answered or (decided and part is Asks.SIGN) or evidence.effort.stopped:
                return True
            if self.callback is not None and self.callback(evidence):
                evidence.effort.stopped = True
                return True
        return False

    def ask_for_open_sign(self) -> None:
        """Ask the finders of the sign after those of the width, if the sign is undecided or rounding stopped the search."""
        evidence = self.evidence
        if not evidence.answered and not evidence.effort.stopped:
            stuck = _stopped_by_rounding(evidence)
            if stuck or not evidence.sign_decided:
                self.ask(Asks.SIGN, narrowing=stuck or self.question.play.auto)

    def bound_open_sign(self) -> None:
        """Offer equal weights if no finder of the sign has proposed any, for instance because time was too short."""
        if self.evidence.p is None and not self.evidence.sign_decided:
            self.evidence.offer(Proposal(p=self.question.p_set.centre))

    def decide_sign(self) -> None:
        """Ask the finders of the sign, for a finder of another part that depends on it."""
        self.ask(Asks.SIGN, self.question.play.auto)


def _proposals(finder: Finder, part: Asks, question: Any, evidence: Any, decide_sign: Callable[[], None]) -> Iterator[Proposal]:
    """Yield what the finder proposes, without warnings of NumPy.

    Where products overflow or a matrix is singular, a finder of the sign ends and the others decide. For the other parts the
    error is raised, since it tells the user what is wrong with the data.
    """
    found = finder.find(question, evidence, decide_sign)
    while True:
        try:
            with np.errstate(all="ignore"):
                proposal = next(found, None)
        except (BeyondFloats, np.linalg.LinAlgError):
            if part is not Asks.SIGN:
                raise
            return
        if proposal is None:
            return
        yield proposal


def _offered(evidence: Any, proposal: Proposal) -> bool:
    """Offer the proposal and return whether it decides the sign. A first Ctrl-C ends the search, a second one the proof too."""
    try:
        return bool(evidence.offer(proposal))
    except KeyboardInterrupt:
        evidence.effort.stopped = True
        return bool(evidence.offer(proposal))


def _stopped_by_rounding(evidence: Evidence) -> bool:
    """Return whether no limit ended the search for the width: finders that scale rows and columns may then get further."""
    trace, margin = evidence.effort.trace, evidence.question.margin
    limited = (trace is not None and trace.status == Ending.ROUNDS) or evidence.question.budget.short
    return not limited and margin.nu is None and margin.norm == 2
