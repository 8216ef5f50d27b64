"""`Evidence`: the only object that accumulates what is proved. Every proposal is offered to it; it asks the checker."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from gordan.arrays import Array, relative_width
from gordan.certificates import Certificate, exact
from gordan.certificates.data import MARGINS, Kind
from gordan.certificates.margins import first_not_positive
from gordan.certificates.matrix import CLAIM, Groups, Products
from gordan.certificates.verify import accepts, check, deviation
from gordan.geometry import Simplex, dual_exponent, norm
from gordan.geometry.sets import level
from gordan.ledger.question import Asks, Cancelling, Cone, Proposal, Question
from gordan.rows import over_rows
from gordan.trace import Trace

# Rows whose exact scores are asked for, at most, to put a plane midway between the classes; and first.
MOST_IN_DOUBT, FEW_IN_DOUBT = 256, 16
# Entries of a plane of length 1 below this may have lost digits when it was divided by its length.
SMALLEST = 2.0**-900


@dataclass(frozen=True, eq=False)
class Proof:
    """What the checker accepted: a certificate, or one that is still without this w and the weights p over all rows. Exact
    weights of rows that cancel are `within` so far of those that it has."""

    head: Certificate
    w: Array | None = None
    p: Array | None = None
    within: float = 0.0

    @cached_property
    def certificate(self) -> Certificate:
        """All of it, in tuples: made on first access, since few ask for it, and w may be long."""
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
    """What the evidence has cost: the best run so far, rounds, passes, and the seconds of earlier calls that a checkpoint
    holds.

    `stopped`: Ctrl-C, or a callback that asked for it.
    """

    trace: Trace | None = None
    rounds: int = 0
    passes: float = 0.0
    earlier: float = 0.0
    stopped: bool = False

    def add(self, proposal: Proposal) -> None:
        """The cost of one more proposal."""
        if proposal.trace is not None and (self.trace is None or proposal.trace.gap[-1] <= self.trace.gap[-1]):
            self.trace = proposal.trace
        self.rounds += proposal.rounds
        self.passes += proposal.passes


@dataclass(eq=False)
class Hints:
    """What finders know of each other's proposals, and nobody has proved: `suspects`, rows that may cancel, and `broken`, the
    least share of the rows that a plane had on the wrong side."""

    suspects: Array | None = None
    broken: float = 1.0


@dataclass(eq=False)
class Evidence:
    """What has been proved about one question, and what that has cost.

    `lower` is proved by the plane w, b, `upper` by the weights p over all rows, `witness` by itself. `strict`: the plane is known
    to have every row strictly on its side. `cone_proof` proves the kind of the `cone`.
    """

    question: Question
    w: Array | None = None
    b: float | None = None
    lower: float = 0.0
    strict: bool = False
    p: Array | None = None
    upper: float = math.inf
    witness: Proof | None = None
    hints: Hints = field(default_factory=Hints)
    cone: Cone | None = None
    cone_proof: Certificate | None = None
    effort: Effort = field(default_factory=Effort)

    @property
    def sign_decided(self) -> bool:
        """Whether it is proved that there is a plane of positive margin, or that there is none."""
        return self.strict or self.lower > 0 or self.witness is not None

    @property
    def bracket_width(self) -> float:
        """(upper - lower)/upper, 0 if upper is 0."""
        return 0.0 if self.witness is not None else relative_width(self.lower, self.upper)

    @property
    def answered(self) -> bool:
        """Whether the question is answered: its sign is decided, and the interval is narrow enough if that was asked."""
        if self.question.asks is Asks.CONE:
            return self.cone_proof is not None
        if self.question.asks is Asks.SIGN or self.witness is not None:
            return self.sign_decided
        # an upper end of 0 is a proof by itself under perturbations, where it need not be exact
        return (self.upper > 0 or self.question.margin.robust > 0) and self.bracket_width <= self.question.tol

    # ---- proposals --------------------------------------------------------------------------------------------------

    def offer(self, proposal: Proposal) -> bool:
        """Have the proposal checked, and keep of it what is better than what there is; whether it decides the sign by itself.

        The plane comes first: its pass over X brings the norms that the bound of p needs.
        """
        self.effort.add(proposal)
        if proposal.suspects is not None:
            self.hints.suspects = proposal.suspects
        if proposal.witness is not None and self._proves_witness(proposal.witness):
            return True
        if proposal.cancelling is not None and self._proves_cancelling(proposal.cancelling):
            return True
        if proposal.cone is not None:
            self._proves_cone(proposal.cone)
        decided = proposal.w is not None and self._proves_plane(self._planes(proposal.w, proposal.b))
        if proposal.p is not None:
            self._bound_by(proposal.p)
        return decided

    def _rows(self, rows: Array) -> tuple[int, ...]:
        """The numbers in X of these rows that count."""
        kept = self.question.kept
        return tuple((rows if isinstance(kept, slice) else kept[rows]).tolist())

    def _proves_cancelling(self, found: Cancelling) -> bool:
        """Whether the rows are proved to cancel; where the cone is asked about, whether they also span all rows."""
        rows, weights = self._rows(found.rows), tuple(found.weights.tolist())
        kinds: tuple[Kind, ...] = ("verified-overlap", "verified-witness")
        for kind in kinds if self.question.asks is Asks.CONE else kinds[1:]:
            claim = replace(self._head(kind), rows=rows, weights=weights, dependent=found.dependent)
            within = deviation(claim, self.question.problem)
            if within < math.inf:
                self.witness = Proof(claim, within=within)
                self.cone_proof = claim if kind == "verified-overlap" else None
                return True
        return False

    def _proves_witness(self, witness: dict[int, int]) -> bool:
        rows = np.array(sorted(witness))
        weights = tuple(witness[i] for i in rows.tolist())
        found = replace(self._head("witness"), rows=self._rows(rows), weights=weights)
        if not check(found, self.question.problem):
            return self.witness is not None
        self.witness = Proof(found)
        if self.question.asks is Asks.CONE and 2 * len(rows) > self.question.problem.X.d:
            overlap = replace(found, kind="overlap")  # if they also span all rows, which few do not
            self.cone_proof = overlap if check(overlap, self.question.problem) else self.cone_proof
        return True

    def _proves_cone(self, cone: Cone) -> None:
        w, b = cone.plane
        proof = self.proof("separator") if self.strict and cone.kind == "complete" else None
        if proof is not None:
            self.cone, self.cone_proof = cone, proof.certificate
            return
        if cone.kind == "complete":
            floats = _nearest([*w, b])
            found = replace(self._head("separator"), w=tuple(floats[:-1]), b=floats[-1])
        elif cone.p is None:  # weights exist near those of the witness in hand, which say so of all rows on the plane
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
        """Have a plane that was accepted in an earlier call checked as it is, to the last bit."""
        self._proves_plane([(w, b)])

    def _proves_plane(self, planes: Iterable[tuple[Array, float]]) -> bool:
        """Whether one of the planes has a positive margin. One that has none is kept only where there is no other."""
        margin, sign_alone = self.question.margin, self.question.sign_alone
        for v, c in planes:
            lower = 0.0 if sign_alone else margin.lower(v, c, slack=CLAIM)
            strict = lower == 0 and self._strict(v, c)
            if strict and sign_alone:
                lower = margin.lower(v, c, slack=CLAIM)
            if lower > self.lower or (strict and not self.sign_decided) or (self.w is None and not sign_alone):
                self.w, self.b, self.lower, self.strict = v, c, lower, strict
            if strict or lower > 0:
                return True
        return False

    def _strict(self, w: Array, b: float) -> bool:
        """Whether w, b has every row strictly on its side, decided exactly. Not asked where rows may be on the other side."""
        margin = self.question.margin
        if margin.nu is not None or margin.weights is not None or margin.robust > 0:
            return False
        products = Products.of(margin.X, w)
        if first_not_positive(products, b, margin.signs) is None:
            return True
        wrong = products.each(lambda part, lo, hi: int(np.count_nonzero((lo <= -hi) & (hi < math.inf))), b, margin.signs)
        self.hints.broken = min(self.hints.broken, sum(wrong) / margin.X.n)
        return False

    def _apart(self, w: Array, before: Array) -> bool:
        """Whether some b, or none where there is no intercept, may have every row strictly on its side; if not, no w does that is
        the same up to rounding: the enclosures are twice as wide as they need be. True where entries of `before` may be lost."""
        margin = self.question.margin
        underflow = np.min(np.abs(w), where=w != 0, initial=1.0) < SMALLEST or np.count_nonzero(w) < np.count_nonzero(before)
        if margin.nu is not None or margin.weights is not None or underflow:
            return True
        ends = Products.of(margin.X, w).ends(0.0, margin.signs, self._sides, slack=2.0)
        return sum(hi for _, hi in ends) > 0

    def _planes(self, w: Array, b: float | None) -> Iterator[tuple[Array, float]]:
        """Of length 1, so that scores are distances; but for a thin cone, where the division rounds it away, as it is.

        A free b puts the plane midway between the classes, or else where it was proposed.
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
                if not self._apart(v, w):
                    return

    def _intercepts(self, w: Array, b: float | None) -> Iterator[float]:
        """A free b puts the plane midway between the classes, or else where it was proposed; where b counts in the norm it is
        the other way round. The exact middle comes last: it is seldom needed."""
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
            yield self._middle(w)

    @cached_property
    def _sides(self) -> Groups:
        """The rows by the side on which they are to be, where an intercept has two."""
        margin = self.question.margin
        return Groups(2, (margin.signs < 0).astype(np.int8)) if margin.intercept.exists else Groups(1)

    def _midway(self, w: Array) -> tuple[float, bool]:
        """The b midway between the nearest points of the classes, or between the levels up to which p fills them; and whether
        these lie apart."""
        question, signs = self.question, self.question.counted.signs
        scores = Products.of(question.margin.X, w).sums[question.kept]
        if question.margin.nu is None or not question.margin.intercept.grouped:

            def nearest(first: int, end: int) -> tuple[float, float]:
                part, positive = scores[first:end], signs[first:end] > 0
                return float(np.min(np.where(positive, part, np.inf))), -float(np.max(np.where(positive, -np.inf, part)))

            low, high = map(min, zip(*over_rows(nearest, len(scores)), strict=True))
        else:
            scores = scores * signs
            caps, mass = question.p_set.caps, question.p_set.mass * (1 - 1e-12)
            assert caps is not None
            low, high = (level(scores[own], caps[own], mass) for own in question.p_set.members)
        return -(low / 2 - high / 2), low > -high

    def _middle(self, w: Array) -> float:
        """The b midway between the classes as exactly as floats hold it; NaN where no b separates, or many rows are in doubt."""
        margin = self.question.margin
        products = Products.of(margin.X, w)
        highs = [hi for _, hi in products.ends(0.0, margin.signs, self._sides)]
        close = products.near(highs, 0.0, margin.signs, self._sides)
        if sum(highs) <= 0 or max(map(len, close)) > MOST_IN_DOUBT:
            return math.nan
        ends: list[Fraction] = []
        for first in (FEW_IN_DOUBT, MOST_IN_DOUBT):  # few are enough to see that no b separates, if that is so
            found = [exact.scores(margin.X, rows[:first], w, 0.0, margin.signs) for rows in close]
            ends = [min(scores) * Fraction(2) ** e for scores, e in found]
            if sum(ends) <= 0:
                return math.nan
        try:
            return float((ends[1] - ends[0]) / 2)
        except OverflowError:
            return math.nan

    def _bound_by(self, p: Array) -> None:
        """The upper bound that p, over the rows that count, proves."""
        question, margin = self.question, self.question.margin
        if not (np.min(p) > -math.inf and np.max(p) < math.inf):
            return
        if margin.nu is not None:
            p = under_caps(p, margin.c[question.kept], margin.nu, question.p_set)
        whole = question.over_all_rows(p)
        whole = whole if margin.nu is not None else margin.weighty(whole)
        zero = question.asks is Asks.WIDTH and question.radius == 0
        upper = 0.0 if zero else margin.upper(whole, slack=CLAIM)
        if upper < self.upper:
            self.p, self.upper = whole, upper

    def sharpen(self) -> None:
        """Replace the ends of the interval by what the plane and the weights prove in exact arithmetic, where data is little."""
        bracket = self.question.margin.sharpened(self.w, self.b or 0.0, self.p, self.lower, self.upper)
        self.lower, self.upper = bracket

    # ---- proofs -----------------------------------------------------------------------------------------------------

    def proof(self, kind: Kind) -> Proof | None:
        """The plane and the weights as a separator or a bracket, if the checker accepts that."""
        claim = self.claim(kind)
        return Proof(claim, self.w, self.p) if accepts(claim, self.question.problem, self.w, self.p) else None

    def claim(self, kind: Kind) -> Certificate:
        """What the plane and the weights are to prove, without them."""
        return self._head(kind, self.b, self.lower, self.upper)

    def _head(self, kind: Kind, b: float | None = None, lower: float | None = None, upper: float | None = None) -> Certificate:
        """A certificate without proof."""
        problem, margin = self.question.problem, self.question.margin
        about: dict[str, Any] = {}
        if kind in MARGINS:
            weights = None if margin.weights is None else tuple(margin.weights.tolist())
            about = {"b": b, "lower": lower, "upper": upper, "norm": margin.norm, "nu": margin.nu, "sample_weight": weights}
            about |= {} if kind == "separator" else {"robust": margin.robust, "robust_norm": margin.robust_norm}
        return Certificate(kind, margin.intercept.value, problem.classes, (problem.X.n, problem.X.d), **about)


def _nearest(w: Sequence[int]) -> list[float]:
    """w divided by a power of two and rounded; as it is where floats hold it."""
    bits = max(abs(x).bit_length() for x in w)
    return [float(x) for x in w] if bits <= 1000 else [x / 2**bits for x in w]


def under_caps(found: Array, c: Array, nu: float, p_set: Simplex) -> Array:
    """p as a certificate wants it, p_i ≤ c_i with a mass of at least νΣc (its share in each group), from the p of the game."""
    total = nu * float(np.sum(c))  # sums in pairs are off by some 40 units in the last place: the mass has room for that
    used = found > 0
    with np.errstate(over="ignore"):  # as much as the caps have room for: what is beyond νΣc makes up for rounding
        most = float(np.min(c[used] / found[used]))
    p = np.minimum(found * max(total, most), c)
    for members in p_set.members:
        needed = total * p_set.mass * (1 + 2e-14)
        for _ in range(50):
            missing = needed - float(np.sum(p[members]))
            if missing <= 0:
                break
            room = (c - p)[members]
            room = room * (p[members] > 0) if (room * (p[members] > 0)).any() else room
            if not room.any():
                break
            p[members] = np.minimum(p[members] + room * min(1.0, (missing * (1 + 1e-15)) / float(np.sum(room))), c[members])
    return p
