"""`Evidence` accumulates what is proved about a question. Every proposal is offered to it, and it asks the checker."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from gordan.arrays import Array, namespace, relative_width
from gordan.certificates import Certificate, bounds, exact
from gordan.certificates.data import MARGINS, Kind
from gordan.certificates.margins import first_not_positive
from gordan.certificates.matrix import CLAIM, Groups, Products
from gordan.certificates.verify import accepts, check, deviation
from gordan.geometry import Simplex, dual_exponent, norm
from gordan.geometry.sets import fill_level
from gordan.ledger.question import Asks, Cancelling, Cost, Proposal, ProposedCone, Question
from gordan.rows import host, over_vector
from gordan.trace import Trace

# The largest number of rows of a class whose exact scores are computed to put a plane midway between the classes, and the number
# of rows that are tried first.
MAX_IN_DOUBT, FEW_IN_DOUBT = 256, 16
# Smaller entries of a plane of length 1 may have lost digits when the plane was divided by its length.
MIN_ENTRY = 2.0**-900


@dataclass(frozen=True, eq=False)
class Proof:
    """A certificate that the checker has accepted.

    `head` is the certificate, still without this w and these weights p over all rows if they are given. For rows that are proved
    to cancel, exact weights differ from those of the certificate by at most `within` (`verify.deviation`).
    """

    head: Certificate
    w: Array | None = None
    p: Array | None = None
    within: float = 0.0

    @cached_property
    def certificate(self) -> Certificate:
        """The complete certificate; made on first access, since it is seldom needed and w may be long."""
        if self.w is None and self.p is None:
            return self.head
        support = np.empty(0, np.int64) if self.p is None else np.flatnonzero(self.p)
        return replace(
            self.head,
            w=None if self.w is None else tuple(self.w.tolist()),
            rows=tuple(support.tolist()),
            weights=() if self.p is None else tuple(self.p[support].tolist()),
        )


@dataclass(eq=False)
class Effort:
    """What the evidence has cost.

    `trace` is that of the best run so far, and `earlier` are the seconds of earlier calls according to a checkpoint. `stopped`
    tells whether Ctrl-C or a callback has stopped the search; only the loop over the finders sets it.
    """

    trace: Trace | None = None
    rounds: int = 0
    passes: float = 0.0
    earlier: float = 0.0
    stopped: bool = False

    def add(self, cost: Cost) -> None:
        """Add the cost of one more proposal."""
        if cost.trace is not None and (self.trace is None or cost.trace.gap[-1] <= self.trace.gap[-1]):
            self.trace = cost.trace
        self.rounds += cost.rounds
        self.passes += cost.passes


@dataclass(eq=False)
class Hints:
    """Unproved information that finders pass on to each other.

    `suspects` are rows that may cancel, and `broken` is the smallest share of rows that any plane had on the wrong side.
    `cancelled` tells whether rows cancel up to rounding that are too many for a proof. `independent` are columns that are
    independent and on which the others depend, once these were looked for.
    """

    suspects: Array | None = None
    broken: float = 1.0
    cancelled: bool = False
    independent: tuple[int, ...] | None = None


@dataclass(eq=False)
class Evidence:
    """What has been proved about one question, and what that has cost.

    `lower` is proved by the plane w, b and `upper` by the weights p over all rows, which are on the host or where the blocks of X
    are; `witness` is a proof by itself. `strict` tells whether the plane is proved to have every row strictly on its side.
    `cone_proof` proves the kind of the `cone`.
    """

    question: Question
    w: Array | None = None
    b: float | None = None
    lower: float = 0.0
    strict: bool = False
    p: Any | None = None
    upper: float = math.inf
    witness: Proof | None = None
    hints: Hints = field(default_factory=Hints)
    cone: ProposedCone | None = None
    cone_proof: Certificate | None = None
    effort: Effort = field(default_factory=Effort)

    @property
    def sign_decided(self) -> bool:
        """Whether it is proved that a plane of positive margin exists, or that none does."""
        return self.strict or self.lower > 0 or self.witness is not None

    @property
    def bracket_width(self) -> float:
        """The relative width (upper - lower)/upper of the interval; 0 if upper is 0."""
        return 0.0 if self.witness is not None else relative_width(self.lower, self.upper)

    @property
    def answered(self) -> bool:
        """Whether the question is answered: the cone is proved, the sign is decided, or the interval is narrow enough."""
        if self.question.asks is Asks.CONE:
            return self.cone_proof is not None
        if self.question.asks is Asks.SIGN or self.witness is not None:
            return self.sign_decided
        # an upper end of 0 answers the question only under perturbations; otherwise a witness is needed to prove it exactly
        return (self.upper > 0 or self.question.margin.robust > 0) and self.bracket_width <= self.question.tol

    # ---- proposals --------------------------------------------------------------------------------------------------

    def offer(self, proposal: Proposal) -> bool:
        """Have the proposal checked and keep what improves the evidence; return whether the proposal itself decides the sign.

        The plane is checked before p, since its pass over X also finds the norms that the bound from p needs.
        """
        self.effort.add(proposal.cost)
        if proposal.suspects is not None:
            self.hints.suspects = proposal.suspects
        if proposal.independent is not None:
            self.hints.independent = proposal.independent
        if proposal.witness is not None and self._check_witness(proposal.witness):
            return True
        if proposal.cancelling is not None and self._check_cancelling(proposal.cancelling):
            return True
        if proposal.cone is not None:
            self._check_cone(proposal.cone)
        decided = proposal.w is not None and self._check_planes(self._planes(proposal.w, proposal.b))
        if proposal.p is not None:
            self._improve_upper(proposal.p)
        return decided

    def _rows_of_X(self, rows: Array) -> tuple[int, ...]:
        """Return the row numbers in X of rows that are numbered among those that count."""
        kept = self.question.kept
        return tuple((rows if isinstance(kept, slice) else kept[rows]).tolist())

    def _check_cancelling(self, found: Cancelling) -> bool:
        """Keep the rows as a witness if they are proved to cancel, and return whether they are.

        If the question is about the cone, it is first tried to prove that they span all rows as well, which proves overlap.
        """
        if not np.isfinite(found.weights).all():
            return False
        rows, weights = self._rows_of_X(found.rows), tuple(found.weights.tolist())
        kinds: tuple[Kind, ...] = ("verified-overlap", "verified-witness")
        for kind in kinds if self.question.asks is Asks.CONE else kinds[1:]:
            claim = replace(self._head(kind), rows=rows, weights=weights, dependent=found.dependent)
            within = deviation(claim, self.question.problem)
            if within < math.inf:
                self.witness = Proof(claim, within=within)
                self.cone_proof = claim if kind == "verified-overlap" else None
                return True
        return False

    def _check_witness(self, witness: dict[int, int]) -> bool:
        """Keep the witness if the checker accepts it, and return whether there is one now.

        If the question is about the cone and the rows are many enough to span all rows, overlap is checked as well.
        """
        rows = np.array(sorted(witness))
        weights = tuple(witness[i] for i in rows.tolist())
        found = replace(self._head("witness"), rows=self._rows_of_X(rows), weights=weights)
        if not all(np.isfinite(values).all() for _, _, values in self.question.problem.X.storage.each_row(found.rows)):
            self.question.problem.require_finite()
        if not check(found, self.question.problem):
            return self.witness is not None
        self.witness = Proof(found)
        if self.question.asks is Asks.CONE and 2 * len(rows) > self.question.problem.X.d:
            overlap = replace(found, kind="overlap")
            self.cone_proof = overlap if check(overlap, self.question.problem) else self.cone_proof
        return True

    def _check_cone(self, cone: ProposedCone) -> None:
        """Keep the cone with a certificate of its kind if the checker accepts one."""
        w, b = cone.plane
        proof = self.proof("separator") if self.strict and cone.kind == "complete" else None
        if proof is not None:
            self.cone, self.cone_proof = cone, proof.certificate
            return
        if cone.kind == "complete":
            bits = max(abs(x).bit_length() for x in (*w, b))
            *v, c = (float(x) if bits <= 1000 else x / 2**bits for x in (*w, b))  # larger integers may overflow
            found = replace(self._head("separator"), w=tuple(v), b=c)
        elif cone.p is None:  # the weights of the witness that is already proved are to hold for the rows on the plane
            exactly = [float(x) for x in (*w, b)] if max(map(abs, (*w, b))) < 2**1000 else []
            if self.witness is None or exactly != [*w, b]:
                return
            found = replace(self.witness.head, kind="verified-quasi-separation", w=tuple(exactly[:-1]), b=exactly[-1])
        else:
            found = replace(self._head("overlap"), rows=tuple(cone.p), weights=tuple(cone.p.values()))
            if cone.kind == "quasi-complete":
                found = replace(found, kind="quasi-separation", w=tuple(w), b=b)
        if check(found, self.question.problem):
            self.cone, self.cone_proof = cone, found

    def restore(self, w: Array, b: float) -> None:
        """Check a plane that was accepted in an earlier call, without scaling or moving it."""
        self._check_planes([(w, b)])

    def _check_planes(self, planes: Iterable[tuple[Array, float]]) -> bool:
        """Keep the first plane with a positive margin if it improves the evidence, and return whether there is one.

        A plane without a positive margin is kept only if there is no other.
        """
        margin, sign_alone = self.question.margin, self.question.sign_alone
        for v, c in planes:
            lower = 0.0 if sign_alone else margin.lower(v, c, slack=CLAIM)
            strict = lower == 0 and self._separates_strictly(v, c)
            if strict and sign_alone:
                lower = margin.lower(v, c, slack=CLAIM)
            if lower > self.lower or (strict and not self.sign_decided) or (self.w is None and not sign_alone):
                self.w, self.b, self.lower, self.strict = v, c, lower, strict
            if strict or lower > 0:
                return True
        return False

    def _separates_strictly(self, w: Array, b: float) -> bool:
        """Return whether w, b has every row strictly on its side, decided exactly.

        Always False with nu, sample weights or perturbations, where this is not the question. If the plane does not separate, the
        share of rows that are proved to be on the wrong side becomes a hint.
        """
        margin = self.question.margin
        if margin.nu is not None or margin.weights is not None or margin.robust > 0:
            return False
        products, signs = Products.of(margin.X, w, in_place=True), margin.in_place.signs
        if first_not_positive(products, b, signs) is None:
            return True
        wrong = products.each(lambda part, lo, hi: int(((lo <= -hi) & (hi < math.inf)).sum()), b, signs)
        self.hints.broken = min(self.hints.broken, sum(wrong) / margin.X.n)
        return False

    def _may_separate(self, w: Array, before: Array) -> bool:
        """Return whether w, or a vector that equals w up to rounding, may have every row strictly on its side for some b.

        False is certain, since the enclosures are twice as wide as necessary. w is `before` divided by its length; the answer is
        True if entries of it may have been lost to underflow. Without an intercept b is 0.
        """
        margin = self.question.margin
        smallest = np.min(np.abs(w), where=w != 0, initial=1.0)
        underflow = smallest < MIN_ENTRY or np.count_nonzero(w) < np.count_nonzero(before)
        if margin.nu is not None or margin.weights is not None or underflow:
            return True
        ends = Products.of(margin.X, w, in_place=True).ends(0.0, margin.in_place.signs, self._groups, slack=2.0)
        return sum(hi for _, hi in ends) > 0

    def _planes(self, w: Array, b: float | None) -> Iterator[tuple[Array, float]]:
        """Yield the planes to check for a proposed w, b: of length 1, so that scores are distances, then as proposed.

        The latter helps if the cone of separators is so thin that rounding in the division leaves it.
        """
        margin = self.question.margin
        if not np.isfinite(w).all() or not math.isfinite(b or 0.0):
            return
        length = norm(margin.intercept.joined(w, b or 0.0), dual_exponent(margin.norm))
        for scale in (length, 1.0) if margin.nu is None else (length,):
            if 0 < scale < math.inf:
                v = w / scale
                for c in self._intercepts(v, None if b is None else b / scale):
                    if math.isfinite(c):
                        yield v, c
                if not self._may_separate(v, w):
                    return

    def _intercepts(self, w: Array, b: float | None) -> Iterator[float]:
        """Yield the values of b to check for w.

        If b is free, this is first the one midway between the classes, then the proposed one; if b counts in the norm, it is the
        other way round. The exact middle comes last, since it is seldom needed.
        """
        intercept = self.question.margin.intercept
        if not intercept.grouped and not (intercept.exists and b is None):
            yield b or 0.0
        if intercept.exists and (intercept.grouped or self.question.sign_alone or b is None):
            midway, apart = self._midway(w)
            if apart or b is None:
                yield midway
        if b is not None and intercept.grouped:
            yield b
        if intercept.exists and self.question.sign_alone:
            yield self._exact_middle(w)

    @cached_property
    def _groups(self) -> Groups:
        """The rows by class, or in one group if there is no intercept; where the blocks of X are."""
        margin = self.question.margin
        return Groups(2, margin.in_place.signs < 0) if margin.intercept.exists else Groups(1)

    def _midway(self, w: Array) -> tuple[float, bool]:
        """Return the b midway between the classes in floats, and whether w separates them.

        The ends are the nearest points of the classes, or with nu the levels up to which p fills each class.
        """
        question, margin = self.question, self.question.margin
        scores = Products.of(margin.X, w, in_place=True).sums[question.about.kept_in_place]
        signs, xp = margin.in_place.signs[question.about.kept_in_place], namespace(scores)
        if margin.nu is None or not margin.intercept.grouped:

            def nearest(first: int, end: int) -> tuple[float, float]:
                part, positive = scores[first:end], signs[first:end] > 0
                return float(xp.where(positive, part, math.inf).min()), -float(xp.where(positive, -math.inf, part).max())

            low, high = map(min, zip(*over_vector(nearest, scores), strict=True))
        else:
            p_set, scores = question.about.p_set_in_place, scores * signs
            caps, mass = p_set.caps, p_set.mass * (1 - 1e-12)
            assert caps is not None
            low, high = (fill_level(scores[own], caps[own], mass) for own in p_set.members)
        return -(low / 2 - high / 2), low > -high

    def _exact_middle(self, w: Array) -> float:
        """Return the b midway between the classes, computed exactly and rounded; NaN if no b separates or too many rows tie."""
        margin = self.question.margin
        products, there = Products.of(margin.X, w, in_place=True), margin.in_place.signs
        highs = [hi for _, hi in products.ends(0.0, there, self._groups)]
        close = products.near(highs, 0.0, there, self._groups)
        if sum(highs) <= 0 or max(map(len, close)) > MAX_IN_DOUBT:
            return math.nan
        ends: list[Fraction] = []
        for first in (FEW_IN_DOUBT, MAX_IN_DOUBT):  # if no b separates, few rows are usually enough to see it
            found = [exact.scores(margin.X, rows[:first], w, 0.0, margin.signs) for rows in close]
            ends = [min(scores) * Fraction(2) ** e for scores, e in found]
            if sum(ends) <= 0:
                return math.nan
        try:
            return float((ends[1] - ends[0]) / 2)
        except OverflowError:
            return math.nan

    def _improve_upper(self, p: Any) -> None:
        """Keep p, which is over the rows that count, if it proves a smaller upper bound."""
        question, margin = self.question, self.question.margin
        if not (p.min() > -math.inf and p.max() < math.inf):
            return
        if margin.nu is not None:
            p = question.counted.storage.to_blocks(p)
            p = under_caps(p, margin.in_place.c[question.about.kept_in_place], margin.nu, question.about.p_set_in_place)
        whole = question.over_all_rows(p)
        whole = whole if margin.nu is not None else margin.without_negligible(whole)
        zero = question.asks is Asks.WIDTH and question.radius == 0
        upper = 0.0 if zero else margin.upper(whole, slack=CLAIM)
        if upper < self.upper:
            self.p, self.upper = whole, upper

    def sharpen(self) -> None:
        """Replace the ends of the interval by what the plane and the weights prove in exact arithmetic, if X is small."""
        bracket = self.question.margin.sharpened(self.w, self.b or 0.0, self.p, self.lower, self.upper)
        self.lower, self.upper = bracket

    # ---- proofs -----------------------------------------------------------------------------------------------------

    def proof(self, kind: Kind) -> Proof | None:
        """Return the plane and the weights as a separator or a bracket, or None if the checker does not accept it."""
        claim = self.claim(kind)
        return Proof(claim, self.w, host(self.p)) if accepts(claim, self.question.problem, self.w, self.p) else None

    def claim(self, kind: Kind) -> Certificate:
        """Return the certificate that the plane and the weights are to prove, without them in it."""
        return self._head(kind, self.b, self.lower, self.upper)

    def _head(self, kind: Kind, b: float | None = None, lower: float | None = None, upper: float | None = None) -> Certificate:
        """Return a certificate of this kind about the question's data and margin that still lacks its proof."""
        problem, margin = self.question.problem, self.question.margin
        about: dict[str, Any] = {}
        if kind in MARGINS:
            weights = None if margin.weights is None else tuple(margin.weights.tolist())
            about = {"b": b, "lower": lower, "upper": upper, "norm": margin.norm, "nu": margin.nu, "sample_weight": weights}
            about |= {} if kind == "separator" else {"robust": margin.robust, "robust_norm": margin.robust_norm}
        return Certificate(kind, margin.intercept.value, problem.classes, (problem.X.n, problem.X.d), **about)


def under_caps(found: Any, c: Any, nu: float, p_set: Simplex) -> Any:
    """Return a p of the game as a certificate needs it: p_i ≤ c_i, and a mass of at least νΣc (its share in each group)."""
    xp = namespace(found)
    total = nu * float(c.sum())  # sums are off by some 40 units in the last place, for which `needed` leaves room
    # scaled up as far as the caps allow: the mass beyond νΣc makes up for rounding
    p = xp.minimum(found * max(total, 1.0 / max(float((found / c).max()), bounds.TINY)), c)
    needed = total * p_set.mass * (1 + 2e-14)
    for members in p_set.members:
        own, caps = p[members], c[members]
        for _ in range(50):
            missing = needed - float(own.sum())
            if missing <= 0:
                break
            room = caps - own
            used = room * (own > 0)
            room = used if used.any() else room
            if not room.any():
                break
            own = xp.minimum(own + room * min(1.0, (missing * (1 + 1e-15)) / float(room.sum())), caps)
        p[members] = own
    return p
