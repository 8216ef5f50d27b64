"""The double oracle: solve the game exactly on few rows, look at all rows once, bring in those that break the answer."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array, dot, is_number
from gordan.deadlines import UNLIMITED, Deadline
from gordan.dynamics import Form, Output, Round
from gordan.game import Game
from gordan.geometry import Simplex, dual_vector
from gordan.geometry.sets import fill_order, level
from gordan.memory import fits, largest
from gordan.methods.registry import Guarantee, Method, check_norm, choose, register
from gordan.rows import Ascent, Offset, Rows
from gordan.rows import of as rows_of
from gordan.solve.p_norm import PNormGame
from gordan.solve.restricted import GRAMS, MAX_WORKING_SET, Equilibrium, FeasibleSet, Gram, Products, Restricted, Stalled
from gordan.solve.screening import idle
from gordan.solve.sup_norm import SupNormGame

# Gram matrices of all rows in hand that there is to be time for.
GAMES = 2.0
# Entries of the rows in hand, and of the sample to begin with, where the rows are not in memory: 256 MB each at most.
ENTRIES_IN_HAND = 1 << 25
# Of the rows that coordinate ascent finds, those that a linear program (p = ∞) begins with.
MOST_IN_PROGRAM = 1000
# Above so many rows, and with more columns still, sparse rows are first solved by products with them. What that may cost is what
# their Gram matrix and its factors would: so many multiplications for an entry of the one and for the others.
MANY, GRAM_ENTRY, PIVOTS = 200, 1.0, 0.1
# Multiplications for each entry of the rows in hand that products with them may cost where a Gram matrix does not fit.
PRODUCTS = 20_000.0
# Rows of each group that are left free, if they are many, when the others are held at their caps.
ROOM = 300
# So few rows, if dense, are all in hand from the start.
ALL_IN_HAND = 500
# Sparse rows with at most so many entries are all in hand at once.
SMALL = 1 << 23
# Epochs of coordinate ascent that guess the support, at most: it ends with one that turns only so small a share of the rows; and
# those of a part, after which a free intercept is adjusted.
EPOCHS, QUIET, PART = 60, 0.004, 4
# With so many times more rows than columns more rows stay than can be independent, and further epochs do not tell which.
MANY_TIMES, FEWER_EPOCHS = 10, 20
# Parts under caps.
PARTS = 10
# After each of them the total that the caps are made for is multiplied by a power of Σx over it, the square at first;
# the power doubles while the logarithm of that ratio stays above LAG of what it was, and the total changes by e^FURTHEST at most.
# (4,600 rows of 57 entries, penalized intercept: six rounds instead of forty with squares alone.) They end where the ratio is 1
# up to EVEN and rows are quiet.
EVEN, LAG, MOST_POWER, FURTHEST = 5e-4, 0.7, 16.0, 5.5
# ‖Aᵀp‖ below this is rounding: 0 is in the hull of the rows (whose norms are at most 1).
ZERO = 1e-13
# Rounds without gain, where the rows that come in all fail to help, before rounding is taken for the reason.
MOST_STALLED = 10
# With more entries than this times d² (dense: more rows than this times d) the rows are not visited one by one: few of them
# matter, and the lowest scores find them.
MOST_VISITED = 100
# Passes over a sample of the rows that it takes to copy them and to begin.
TAKING = 20.0
# Rounds on a random sample of the rows before all of them are looked at.
SAMPLE_ROUNDS = 50


@register(
    "double_oracle",
    reference="H. B. McMahan, G. Gordon and A. Blum, Planning with cost functions controlled by an adversary, ICML 2003",
    forms=("published",),
)
def double_oracle(*, form: str = "published", p: float = 2.0, seed: int = 1) -> Method:
    """Solve the game on a working set of rows, score all rows, add the lowest, drop the idle: exact after few passes.

    Round t: p_t = argmin ‖Aᵀp‖_p over the p∈P that live on the working set: for p = 2 by block pivoting and Wolfe's method, for
    2 < p < ∞ by a sequence of such games, for p = ∞ by linear programs in which the columns have a working set, too. Then one
    pass for the scores A w_t of w_t = ∇½‖·‖_p² at Aᵀp_t (the multipliers of the columns for p = ∞); rows whose score is below
    their group's level come in, rows of weight 0 well above it go.

    Guarantee: ‖Aᵀp_t‖_p never rises, and the bracket min_p pᵀAw_t/‖w_t‖_q ≤ γ* ≤ ‖Aᵀp_t‖_p closes once no row comes in: after
    finitely many rounds, each costing a pass and a share.

    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], "double_oracle", 50)
    >>> trace.status, bool(trace.gap[-1] < 1e-9)
    ('finished', True)
    """
    choose("form", form, ("published",))
    p = math.inf if is_number(p) and p == math.inf else check_norm(p)

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        return DoubleOracle(Game(rows, p_set, p0, norm=p), seed=seed)

    return Method("double_oracle", form, p, build, Guarantee("the bracket closes after finitely many rounds"), math.nan)


class State(NamedTuple):
    """The working set (rows in hand), p over all rows, and the Gram matrix of the rows in hand (None where it is not kept).

    `square` is the least ‖Aᵀp‖² so far, and `stalled` counts the rounds since it fell last.
    """

    inside: Array
    p: Array
    gram: Array | None
    square: float = math.inf
    stalled: int = 0


class Hand(NamedTuple):
    """The rows in hand, the p that they may have, a guess of it, and what rows outside add to Aᵀp."""

    rows: Rows
    allowed: FeasibleSet
    guess: Array
    r: Array

    def outside(self) -> tuple[Array, float]:
        """What rows outside add to the scores, and to the square of Aᵀp by themselves."""
        return (self.rows.scores(self.r), dot(self.r, self.r)) if self.r.any() else (np.zeros(self.rows.n), 0.0)


class Answer(NamedTuple):
    """The equilibrium of the rows in hand, their Gram matrix where it is kept, and w where it is not the dual vector of Aᵀp.

    `direct` scores are products with the rows themselves, as exact as another pass would make them.
    """

    found: Equilibrium
    gram: Array | None = None
    w: Array | None = None
    direct: bool = False


@dataclass(frozen=True, eq=False)
class DoubleOracle:
    """The form. A round's p lives on the rows in hand and on rows held at their caps.

    After the `deadline` the game on the rows in hand is left where it is: the round ends soon, and its p is as good as any. No
    more rows are in hand than there is time for.
    """

    game: Game
    tol: float = 1e-10
    seed: int = 1
    deadline: Deadline = UNLIMITED

    @property
    def groups(self) -> int:
        """How many groups of rows have a mass of their own."""
        return len(self.game.p_set.members)

    @cached_property
    def which(self) -> Array:
        """The group of each row."""
        halves = self.game.p_set.halves
        return np.zeros(self.game.rows.n, np.int8) if halves is None else halves

    @cached_property
    def caps(self) -> Array:
        """The caps, infinite where there are none."""
        caps = self.game.p_set.caps
        return np.broadcast_to(np.inf, self.game.rows.n) if caps is None else caps

    def start(self) -> State:
        """A first p: by coordinate ascent over all rows, or, where these are many, the rows that p_0 leaves lowest."""
        rows, capped, norm = self.game.rows, self.game.p_set.caps is not None, self.game.norm
        if norm == 2 and rows.in_memory and rows.n <= ALL_IN_HAND and not rows.sparse:
            return self._all_in_hand()
        if rows.in_memory and (rows.entries <= MOST_VISITED * rows.d**2 or capped):
            return self._from_ascent()
        sampling = TAKING * self.deadline.pace.entry * rows.entries * self._sample_size / rows.n
        if not capped and rows.n > 2 * self._sample_size and self.deadline.affords(sampling):
            inside, p = self._from_sample()
            scores = p
        elif rows.reduces and not capped:
            share = -(-self._first // self.groups)
            inside = np.sort(rows.lowest(rows.combine(self.game.p0), share, self.game.p_set.halves)[0])
            scores = p = np.zeros(rows.n)
        else:
            scores = rows.scores(rows.combine(self.game.p0))
            p = self.game.p_set.vertex(scores) if capped else np.zeros(rows.n)
            inside = self._lowest(scores, min(self._first, self.most))
        return State(self._with_enough_capacity(inside, p, scores), p, None)

    @property
    def _first(self) -> int:
        """Rows in hand at first, where p_0 says which are lowest."""
        return max(100, self.game.rows.d if self.game.norm < math.inf else 0)

    def _from_ascent(self) -> State:
        """The rows that coordinate ascent leaves with weight, or near the margin."""
        rows, capped, norm = self.game.rows, self.game.p_set.caps is not None, self.game.norm
        p, near = ascended(rows, self.game.p_set, self.norms**2, self.seed, self.deadline.at)
        inside = np.flatnonzero(near | ((p > 0) & (p < self.caps)))
        if norm == 2 and len(inside) > MANY and rows.sparse and rows.n <= 2 * rows.d and rows.entries <= SMALL:
            inside = np.arange(rows.n)  # a look at all rows costs no more than a step on the face
        scores = rows.scores(rows.combine(p)) if capped else p
        most = min(self.most, MOST_IN_PROGRAM) if norm == math.inf else self.most
        if len(inside) > most and not self._by_products(len(inside)):
            if capped:  # all others at a bound: to what mass they would leave, rows at their caps would have to come in again
                p, inside = self.game.p_set.vertex(scores), self._lowest(scores, most)
            else:
                inside = self._heaviest(inside, p, most)
                p[np.setdiff1d(np.flatnonzero(p), inside)] = 0.0
        return State(self._with_enough_capacity(inside, p, scores), p, None)

    def _all_in_hand(self) -> State:
        """Every row, with its Gram matrix; where d > n the ascent visits the rows of a factor of it: their products are equal."""
        rows, n = self.game.rows, self.game.rows.n
        gram = rows.gram(np.arange(n))
        squares = np.diag(gram).copy()
        if rows.d > n:
            shifted = gram.copy()
            shifted.flat[:: n + 1] += 1e-12 * float(np.max(squares)) + np.finfo(float).tiny
            with contextlib.suppress(np.linalg.LinAlgError):  # only a guess is wanted: the rows themselves serve as well
                rows = rows_of(np.ascontiguousarray(np.linalg.cholesky(shifted)), threads=1)
                squares = np.diag(shifted).copy()
        p, _ = ascended(rows, self.game.p_set, squares, self.seed, self.deadline.at)
        return State(np.arange(n), p, gram)

    @cached_property
    def _sample_size(self) -> int:
        """Of m rows drawn at random, the solution is broken by about d n/m of the others: d√n rows leave some √n."""
        rows = self.game.rows
        best = max(1000, int(rows.d * math.sqrt(rows.n)))
        best = best if rows.in_memory else min(best, max(1000, ENTRIES_IN_HAND * rows.n // rows.entries))
        return max(2 * self.groups, largest(best, lambda m: _bytes_copied(rows, min(m, rows.n))))

    @cached_property
    def most(self) -> int:
        """Rows in hand at most."""
        rows, most = self.game.rows, min(self.game.rows.n, most_in_hand(self.game.rows, self.groups))
        return max(2 * self.groups, self.deadline.largest(most, lambda m: GAMES * self._seconds(rows, m, m)))

    def _seconds(self, rows: Rows, m: int, k: int) -> float:
        """What the products of m rows with k rows take; none where they are not made."""
        return 0.0 if self._by_products(m) or self.game.norm == math.inf else self.deadline.pace.gram(rows, m, k)

    def _size(self, m: int) -> float:
        return _bytes_in_hand(self.game.rows, m)

    def _by_products(self, m: int) -> bool:
        """Whether m rows in hand are solved by products with them sooner than by their Gram matrix."""
        rows = self.game.rows
        return self.game.norm == 2 and rows.sparse and rows.d > m > MANY

    def _from_sample(self) -> tuple[Array, Array]:
        """The working set and p of the game on a random sample of rows (Clarkson's idea); costs its share of a pass."""
        rows, rng = self.game.rows, np.random.default_rng(self.seed)
        share = self._sample_size // self.groups
        members = (np.flatnonzero(self.which == g) for g in range(self.groups))
        sample = np.sort(np.concatenate([rng.choice(own, min(len(own), share), replace=False) for own in members]))
        game = Game(rows.take(sample), *_part(self.game.p_set, sample), norm=self.game.norm)
        part = DoubleOracle(game, self.tol, self.seed, self.deadline)
        state = part.start()
        for t in range(1, SAMPLE_ROUNDS + 1):
            state, played = part.round(state, t)
            if played.finished or self.deadline.passed:
                break
        p = np.zeros(rows.n)
        p[sample] = played.p
        return np.sort(sample[state.inside]), p

    def _with_enough_capacity(self, inside: Array, p: Array, scores: Array) -> Array:
        """The working set with what it takes, under caps, to hold the mass that the rows held at their caps leave to it."""
        if self.game.p_set.caps is None:
            return inside
        chosen = np.zeros(len(p), dtype=bool)
        chosen[inside] = True
        for g in range(self.groups):
            members = self.which == g
            held = np.flatnonzero(members & ~chosen & (p > 0))
            # a tenth of the mass is left to rows in hand, or less where that would take too many
            share = min(0.1, ROOM * float(np.mean(self.caps[members])) / self.game.p_set.mass)
            order, fit = fill_order(scores[held], self.caps[held], (1 - share) * self.game.p_set.mass, "right")
            chosen[held[order[fit:]]] = True
            left = self.game.p_set.mass - float(self.caps[held[order[:fit]]].sum())
            missing = 1.5 * left - float(self.caps[members & chosen].sum())
            if missing > 0:
                idle = np.flatnonzero(members & ~chosen & (p == 0))
                order, enough = fill_order(scores[idle], self.caps[idle], missing)
                chosen[idle[order[: 1 + enough]]] = True
        chosen[inside] = False
        return np.concatenate((inside, np.flatnonzero(chosen)))  # the order of `inside` is that of its Gram matrix

    def round(self, state: State, t: int) -> tuple[State, Round]:
        """Round t."""
        rows = self.game.rows
        answer = self._solve(state)
        p = state.p.copy()
        p[state.inside] = answer.found.p
        v = rows.combine(p)
        w = dual_vector(v, self.game.norm) if answer.w is None else answer.w
        scores = self._scores(w, state.inside, answer)
        lowest, square = self.game.p_set.lowest(scores), dot(v, w)
        if self.deadline.passed:  # there is no next round to prepare
            return state._replace(p=p), Round(1.0, None, p, v, output=Output(w, lowest, None))
        after, finished = self._next(state, answer, p, scores, square)
        if self.game.norm == 2 and not finished and lowest > 0 and not rows.reduces:
            after = self._screened(after, scores, math.sqrt(square), lowest / math.sqrt(square))
        return after, Round(1.0, None, p, v, output=Output(w, lowest, None), finished=finished)

    def _scores(self, w: Array, inside: Array, answer: Answer) -> Array:
        """A w; where it is on other machines, the rows in hand and as many of the lowest as may come in, all others being put at
        the highest of these: they are not below it."""
        rows, halves, found = self.game.rows, self.game.p_set.halves, answer.found
        if answer.direct and found.settled and len(inside) == rows.n:
            return found.scores[np.argsort(inside)]
        if not rows.reduces or self.game.p_set.caps is not None:
            return rows.scores(w)
        count = max(100, int(np.count_nonzero(found.p))) + len(inside)
        lowest, values = rows.lowest(w, count, halves)
        scores = np.empty(rows.n)
        for g in range(self.groups):
            scores[self.which == g] = np.max(values[self.which[lowest] == g])
        scores[lowest] = values
        scores[inside] = rows.take(inside).scores(w)
        return scores

    @cached_property
    def norms(self) -> Array:
        """‖A_i‖₂ of all rows."""
        return np.sqrt(self.game.rows.squares())

    def _screened(self, state: State, scores: Array, upper: float, lower: float) -> State:
        """All rows that may still matter, where they are few enough to be in hand together: the next round is then the last."""
        alive = ~idle(scores, self.norms, self.game.p_set, upper, lower)
        alive[state.inside] = False
        more = np.flatnonzero(alive)
        m = len(state.inside)
        if state.gram is None or not 0 < len(more) <= min(2 * m, self.most - m):
            return state
        if not self.deadline.affords(self._seconds(self.game.rows, len(more), m + len(more))):
            return state
        gram = self._grown(state.gram, state.inside, more)
        return state._replace(inside=np.concatenate((state.inside, more)), gram=gram)

    def _solve(self, state: State) -> Answer:
        """The equilibrium of the rows in hand, given the rows outside that are held at their caps."""
        rows, inside, norm, m = self.game.rows, state.inside, self.game.norm, len(state.inside)
        held = state.p.copy()
        held[inside] = 0.0
        allowed, guess, others = self._allowed(inside, held), state.p[inside], bool(held.any())
        room = state.gram is not None or self._has_room(m)
        by_products = self._prefers_products(state.gram, m, room)
        if norm == 2 and rows.in_memory and guess.any() and not (by_products or others):  # without a copy of the rows
            gram = rows.gram(inside) if state.gram is None else state.gram
            return self._by_gram(gram, allowed, guess, np.zeros(m), 0.0)
        r, taken = rows.combine(held) if others else np.zeros(rows.d), self._taken(inside)
        hand = Hand(taken, allowed, guess if guess.any() else self._guessed(taken, inside), r)
        if norm > 2:
            return self._in_norm(hand, room, near=state.square < math.inf)
        if by_products:
            answer = self._by_gradients(hand, self.norms[inside] ** 2)
            if answer is not None:
                return answer
            if not room:
                return self._left_as_it_is(hand)
        gram = taken.gram(np.arange(m)) if state.gram is None else state.gram
        return self._by_gram(gram, allowed, hand.guess, *hand.outside())

    def _allowed(self, inside: Array, held: Array) -> FeasibleSet:
        """The p of the rows in hand, beside those that are held outside."""
        mass = np.array([self.game.p_set.mass - float(held[own].sum()) for own in self.game.p_set.members])
        return FeasibleSet(self.which[inside].astype(np.int64), mass, self.caps[inside])

    def _prefers_products(self, gram: Array | None, m: int, room: bool) -> bool:
        """Whether m rows in hand, without their Gram matrix, are solved by products with them, at least at first."""
        return gram is None and self.game.norm == 2 and (self._by_products(m) or not room)

    def _has_room(self, m: int) -> bool:
        """Whether there is room and time for the Gram matrix of m rows."""
        return (m <= self.most or fits(self._size(m))) and self.deadline.affords(self._seconds(self.game.rows, m, m))

    def _guessed(self, taken: Rows, inside: Array) -> Array:
        """A first p of the rows in hand."""
        squares = taken.squares() if self.game.rows.reduces else self.norms[inside] ** 2
        return ascended(taken, _part(self.game.p_set, inside)[0], squares, self.seed, self.deadline.at)[0]

    def _by_gram(self, gram: Array, allowed: FeasibleSet, guess: Array, pull: Array, rest: float) -> Answer:
        game = Restricted(Gram(gram), allowed, pull, rest, self.game.rows.d, self.deadline)
        return Answer(game.solve(guess, self.tol), gram)

    def _by_gradients(self, hand: Hand, squares: Array) -> Answer | None:
        """By products with the rows; None where they are so ill-conditioned that the Gram matrix costs as much as was spent."""
        m, entries = hand.rows.n, hand.rows.entries
        budget = GRAM_ENTRY * m * entries + PIVOTS * float(m) ** 3 if m <= MAX_WORKING_SET else math.inf
        if not self._by_products(m):
            budget = min(budget, PRODUCTS * entries)
        products = Products(hand.rows, squares, budget, self.deadline)
        game = Restricted(products, hand.allowed, *hand.outside(), self.game.rows.d, self.deadline)
        try:
            return Answer(game.solve(hand.guess, self.tol), direct=True)
        except Stalled:
            return None

    def _in_norm(self, hand: Hand, room: bool, near: bool) -> Answer:
        """In a norm above 2."""
        if self.game.norm == math.inf:
            found, w = SupNormGame(hand.rows, hand.allowed, hand.r, self.deadline).solve(hand.guess, self.tol)
            return Answer(found, w=w)
        if not room:
            return self._left_as_it_is(hand)
        power = PNormGame(hand.rows, hand.allowed, hand.r, self.deadline)
        return Answer(power.solve(self.game.norm, hand.guess, self.tol, near=near))

    def _left_as_it_is(self, hand: Hand) -> Answer:
        """The guess, made feasible: there is no room, or no time, for anything better."""
        p = hand.allowed.filled(hand.guess)
        w = dual_vector(hand.rows.combine(p) + hand.r, self.game.norm)
        scores = hand.rows.scores(w)
        return Answer(Equilibrium(p, scores, hand.allowed.cheapest(scores)[1], False))

    def _taken(self, inside: Array) -> Rows:
        """The rows in hand; all of them are not copied."""
        rows = self.game.rows
        if rows.in_memory and len(inside) == rows.n and (inside == np.arange(rows.n)).all():
            return rows.scaled(1.0)  # with a count of passes of its own, as `take` has
        return rows.take(inside)

    def _next(self, state: State, answer: Answer, p: Array, scores: Array, square: float) -> tuple[State, bool]:
        """The working set for the next round; finished if nothing outside breaks the answer, or gains have ceased."""
        rows, inside, found, gram = self.game.rows, state.inside, answer.found, answer.gram
        slack = scores - found.levels[self.which]
        outside = np.ones(len(p), dtype=bool)
        outside[inside] = False
        noise = self.tol * square + 1e-15 * float(np.max(np.abs(scores)))
        broken = np.flatnonzero(outside & np.where(p > 0, slack > noise, slack < -noise))
        stalled = state.stalled + 1 if square >= (1 - 1e-12) * state.square else 0
        state = state._replace(p=p, gram=gram, square=min(square, state.square), stalled=stalled)
        if not len(broken) or square <= ZERO**2 or stalled > MOST_STALLED:
            # an answer that is not settled gets one more try from where it ended
            return state, found.settled or square <= ZERO**2 or stalled > 0
        count = max(100, int(np.count_nonzero(found.p)))
        if len(broken) > count:
            broken = np.sort(broken[np.argpartition(-np.abs(slack[broken]), count)[:count]])
        # rows that are idle and well clear of the level may come back later, at the price of one more round
        free = (found.p > 0) & (found.p < self.caps[inside])
        distance = np.where(free, -1.0, np.abs(slack[inside]))
        where = np.flatnonzero(distance <= 0.1 * square)
        where = where[np.argsort(distance[where], kind="stable")]
        least = int(np.count_nonzero(free))  # these cannot go: outside a row is at a bound
        where = where[: max(MANY, 4 * rows.d, least)]
        if self.game.p_set.caps is not None:
            broken = np.setdiff1d(self._with_enough_capacity(np.concatenate((inside[where], broken)), p, scores), inside[where])
        where = np.sort(where[: max(self.most - len(broken), least)])
        if gram is not None:
            after = len(where) + len(broken)
            room = after <= self.most or fits(self._size(after))
            room &= self.deadline.affords(self._seconds(rows, len(broken), after))
            gram = self._grown(gram[np.ix_(where, where)], inside[where], broken) if room else None
        return state._replace(inside=np.concatenate((inside[where], broken)), gram=gram), False

    def _grown(self, gram: Array, kept: Array, new: Array) -> Array:
        """The Gram matrix with these rows added."""
        cross = self.game.rows.gram(new, kept) if len(kept) else np.empty((len(new), 0))
        return np.block([[gram, cross.T], [cross, self.game.rows.gram(new)]])

    def _heaviest(self, inside: Array, p: Array, count: int) -> Array:
        """Those of the rows `inside` that have most weight, of each group its share."""
        chosen = []
        for g in range(self.groups):
            own = inside[self.which[inside] == g]
            chosen.append(own[np.argsort(-p[own], kind="stable")[: -(-count // self.groups)]])
        return np.sort(np.concatenate(chosen))

    def _lowest(self, scores: Array, count: int) -> Array:
        """The rows of each group nearest to the level up to which p fills it (without caps: the lowest)."""
        chosen = []
        for g in range(self.groups):
            own = np.flatnonzero(self.which == g)
            slack = np.abs(scores[own] - level(scores[own], self.caps[own], self.game.p_set.mass))
            share = min(len(own), -(-count // self.groups))
            chosen.append(own[np.argpartition(slack, share - 1)[:share]])
        return np.sort(np.concatenate(chosen))


def most_in_hand(rows: Rows, groups: int) -> int:
    """Rows in hand at most, for so many groups."""
    most = MAX_WORKING_SET if rows.in_memory else min(MAX_WORKING_SET, max(MANY, ENTRIES_IN_HAND * rows.n // rows.entries))
    return max(2 * groups, largest(most, lambda m: _bytes_in_hand(rows, min(m, rows.n))))


def limit_in_hand(rows: Rows, groups: int) -> int | None:
    """Free rows with which a working set has outgrown its bound, so that others have to go on; None where nothing bounds it."""
    most = most_in_hand(rows, groups)
    limited = most < min(rows.n, MAX_WORKING_SET)  # memory is short
    # sparse rows with more columns than are in hand need no Gram matrix
    bounded = limited and rows.d <= most if rows.sparse else limited or not rows.in_memory
    return most if bounded else None


def _bytes_copied(rows: Rows, m: int) -> float:
    """Bytes of m rows, in float64 with their columns, or in blocks that are put together."""
    return 16.0 * m * rows.entries / rows.n


def _bytes_in_hand(rows: Rows, m: int) -> float:
    """Bytes of m rows in hand with what is made of their Gram matrix."""
    return 8.0 * GRAMS * m * m + _bytes_copied(rows, m)


def _part(p_set: Simplex, inside: Array) -> tuple[Simplex, Array]:
    """The p-player's set over some of the rows, without caps, since it serves for a guess only; and a start in it."""
    part = Simplex(len(inside), halves=None if p_set.halves is None else p_set.halves[inside])
    return part, part.centre


def ascended(rows: Rows, p_set: Simplex, squares: Array, seed: int, deadline: float = math.inf) -> tuple[Array, Array]:
    """A guess of the optimal p by epochs of dual coordinate ascent, and which other rows are near the margin.

    The ascent is on max Σx - ½‖Aᵀx‖², x ≥ 0, whose optimum is p/γ*². With a free intercept Σ y_i x_i = 0 is enforced by the
    method of multipliers: the intercept is the multiplier. Caps are taken relative to the total of x so far.
    """
    capped, sides = p_set.caps is not None, None if p_set.halves is None else (1 - 2 * p_set.halves).astype(np.int8)
    column, offset = 0.0 if sides is None else 0.5 * float(np.sqrt(np.mean(squares))), 0.0
    going = Ascent(rows, squares, np.zeros(rows.n), np.zeros(rows.d + 1), deadline=deadline)
    total = Total(1.0 / max(float(np.sum(rows.combine(p_set.centre) ** 2)), 1e-12)) if capped else None
    parts, epochs, enough = _schedule(rows, sides is not None, capped)
    for part in range(parts):
        if time.perf_counter() >= deadline:
            break
        if total is not None and p_set.caps is not None:
            _cap(going, np.asarray(p_set.caps * total.value), column, sides)
        if sides is not None:
            going.intercept = Offset(sides, column, offset)
        done = going.run_epochs(epochs, seed=seed + part, quiet=enough)
        offset += column * float(going.w[-1])
        quiet = done.turned <= QUIET
        if quiet if total is None else total.settled(float(going.x.sum()), quiet):
            break
    scores = rows.scores(going.w[:-1])
    return _distributed(going.x, scores if sides is None else scores + offset * sides, going.caps, p_set)


def _schedule(rows: Rows, free: bool, capped: bool) -> tuple[int, int, float]:
    """How many parts the ascent has, the epochs of each, and the share of turns after which a part ends."""
    if capped:
        return PARTS, 2, -1.0
    epochs = FEWER_EPOCHS if rows.n > MANY_TIMES * rows.d else EPOCHS
    return (-(-epochs // PART), PART, -1.0) if free else (1, epochs, QUIET)


def _cap(going: Ascent, caps: Array, column: float, sides: Array | None) -> None:
    """The ascent goes on below these caps, with every row."""
    going.caps, x = caps, going.x
    if (x > caps).any():
        np.minimum(x, caps, out=x)
        going.w[:-1] = going.rows.combine(x)
        going.w[-1] = column * float(x @ sides) if sides is not None else 0.0
    going.unshrink()


@dataclass
class Total:
    """What x adds up to, as far as is known: x over it is p only if that adds up to 1. A power of the excess makes up for the lag
    of x behind its caps."""

    value: float
    excess: float = 0.0
    power: float = 2.0

    def settled(self, found: float, quiet: bool) -> bool:
        """Whether x adds up to the total and hardly changes; else the total moves towards what was found."""
        before, self.excess = self.excess, math.log(max(found / self.value, 1e-6))
        if quiet and abs(self.excess) <= EVEN:
            return True
        lags = self.excess * before > 0 and abs(self.excess) > max(EVEN, LAG * abs(before))
        self.power = min(2 * self.power, MOST_POWER) if lags else 2.0
        self.value *= math.exp(min(FURTHEST, max(-FURTHEST, self.power * self.excess)))
        return False


def _distributed(x: Array, scores: Array, caps: Array | None, p_set: Simplex) -> tuple[Array, Array]:
    """x ≤ caps as a p, each group with its mass, and which other rows are near the margin."""
    near = (x == 0) & (scores < 1.0)
    p = np.zeros(len(x))
    for own in p_set.members:
        mass = float(x[own].sum())
        if mass > 0:
            p[own] = x[own] * (p_set.mass / mass)
        else:
            near[own] |= scores[own] <= np.min(scores[own])
    if caps is not None and p_set.caps is not None:
        p = np.where(x >= caps, p_set.caps, np.minimum(p, 0.999 * p_set.caps))
    return p, near
