"""The double oracle: solve the game exactly on a working set, score all rows once, and add the rows that violate the answer."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gordan.arrays import Array, dot, is_number
from gordan.checkpoint import checkpointed
from gordan.deadlines import SLOW_CELL, UNLIMITED, Deadline
from gordan.dynamics import Form, Output, Round
from gordan.game import Game
from gordan.geometry import Simplex, dual_vector
from gordan.geometry.sets import fill_level, fill_order
from gordan.memory import fits, largest
from gordan.methods.registry import Guarantee, InnerGames, Limits, Method, check_norm, choose, register
from gordan.rows import Ascent, Offset, Rows
from gordan.rows import of as rows_of
from gordan.solve.p_norm import ZERO_NORM, PNormGame
from gordan.solve.restricted import TUNING as GAMES
from gordan.solve.restricted import Equilibrium, FeasibleSet, Gram, Restricted, RowProducts, Stalled
from gordan.solve.screening import idle
from gordan.solve.sup_norm import SupNormGame


@dataclass(frozen=True)
class Tuning:
    """Constants of the method; `benchmarks/compare.py` and `order.py` time what they decide."""

    # The first working set. Dense rows are all in it up to this many; sparse rows, where they are hardly more than columns, up to
    # this many entries.
    all_rows_at_once: int = 500
    all_entries_at_once: int = 1 << 23
    # Coordinate ascent over all rows guesses it, unless there are more entries than this times d² (dense: more rows than this
    # times d): then few rows matter, and the lowest scores find them.
    max_visited: int = 100
    # A random sample of the rows is played first, for at most `max_sample_rounds`, where there is time for this many passes over
    # it.
    sample_passes: float = 20.0
    max_sample_rounds: int = 50
    # Entries of the working set, and of the sample, where the rows are not in memory: 256 MB each.
    max_remote_entries: int = 1 << 25
    # Rows of the working set, at least, that are kept from round to round and that there is room for where rows are not in
    # memory.
    min_working_set: int = 200
    # Rows of lowest score that the working set begins with, and that are added in a round, at least.
    min_added_rows: int = 100
    # Rows of the first working set for a linear program (p = ∞), whose cost grows faster with them.
    max_program_rows: int = 1000
    # Rows of the first working set from which a game takes a second or more where classes overlap.
    large_game: int = 3000
    # Rows of each group that are left free, where there are many, when the others are held at their caps.
    max_free_rows: int = 300

    # The game on the working set. It is solved to this share of the tolerance, so that the gap is due to the other rows.
    inner_share: float = 0.3
    # The working set is so small that this many of its Gram matrices can be computed in time.
    grams_in_time: float = 2.0
    # Sparse rows, more than this and fewer than columns, are solved by products with them first. These may cost as much as the
    # Gram matrix and its factors would, in multiplications for each entry of the one and of the others.
    min_product_rows: int = 200
    gram_cost: float = 1.0
    factor_cost: float = 0.1
    # Where a Gram matrix does not fit, products may cost this many multiplications for each entry of the working set.
    max_products_per_entry: float = 20_000.0
    # Rounds in which ‖Aᵀp‖ does not fall although rows are added, before rounding is taken for the reason.
    max_stalled: int = 10


@dataclass(frozen=True)
class AscentTuning:
    """Constants of coordinate ascent, which guesses the support of p."""

    # It ends after this many epochs, or with one in which at most this share of the rows visited reach a bound or leave one.
    max_epochs: int = 60
    quiet_share: float = 0.004
    # With more rows per column than this more rows keep weight than can be independent, and further epochs do not show which.
    many_rows_per_column: int = 10
    epochs_for_many_rows: int = 20
    # Epochs after each of which a free intercept is adjusted.
    epochs_per_stage: int = 4
    # Under caps there are at most ten stages of two epochs. After each stage the total that the caps are made for is multiplied
    # by a power of Σx over it, at first the square. The power is doubled while the logarithm of that ratio remains above
    # `max_lag` of what it was, and the total changes by a factor of at most e^`max_change`. (4,600 rows of 57 entries with a
    # penalized intercept then take six rounds of the game, and forty with squares alone.) The stages end when the ratio is 1 up
    # to `even` and an epoch is quiet.
    capped_stages: int = 10
    epochs_per_capped_stage: int = 2
    even: float = 5e-4
    max_lag: float = 0.7
    max_power: float = 16.0
    max_change: float = 5.5


TUNING, ASCENT = Tuning(), AscentTuning()


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
    their group's level are added, rows of weight 0 well above it are dropped.

    Guarantee: ‖Aᵀp_t‖_p never rises, and the bracket min_p pᵀAw_t/‖w_t‖_q ≤ γ* ≤ ‖Aᵀp_t‖_p closes once no row is added: after
    finitely many rounds, each of which costs a pass and the game on the working set.

    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], "double_oracle", 50)
    >>> trace.status, bool(trace.gap[-1] < 1e-9)
    ('finished', True)
    """
    choose("form", form, ("published",))
    p = math.inf if is_number(p) and p == math.inf else check_norm(p)

    def build(rows: Rows, p_set: Simplex, p0: Array) -> Form:
        return DoubleOracle(Game(rows, p_set, p0, norm=p), seed=seed)

    def within(form: DoubleOracle, limits: Limits) -> Form:
        tol = min(1e-4, max(1e-10, TUNING.inner_share * limits.tol))
        return replace(form, deadline=limits.deadline, tol=tol, doubt=limits.doubt)

    guarantee = Guarantee("the bracket closes after finitely many rounds")
    return Method("double_oracle", form, p, build, guarantee, math.nan, games=InnerGames(1000, within, working_set=True))


class Pointless(Exception):
    """Raised by `DoubleOracle.start` where its `doubt` says that the game need not be played."""


@checkpointed("double_oracle.state")
class State(NamedTuple):
    """The row numbers of the working set (`inside`), p over all rows, and the Gram matrix of the working set, where it is kept.

    `square` is the least ‖Aᵀp‖² so far, and `stalled` counts the rounds since it last fell.
    """

    inside: Array
    p: Array
    gram: Array | None
    square: float = math.inf
    stalled: int = 0


class WorkingSet(NamedTuple):
    """The rows of the working set, the p that they may have, a guess of it, and what rows outside add to Aᵀp."""

    rows: Rows
    allowed: FeasibleSet
    guess: Array
    r: Array

    def outside(self) -> tuple[Array, float]:
        """Return A r and ‖r‖²: what rows outside add to the scores, and to the square of Aᵀp by themselves."""
        return (self.rows.scores(self.r), dot(self.r, self.r)) if self.r.any() else (np.zeros(self.rows.n), 0.0)


class GameSolution(NamedTuple):
    """The equilibrium of the working set, its Gram matrix where it is kept, and w where it is not the dual vector of Aᵀp.

    `direct` scores are products with the rows themselves, as exact as another pass would make them.
    """

    found: Equilibrium
    gram: Array | None = None
    w: Array | None = None
    direct: bool = False


@dataclass(frozen=True, eq=False)
class DoubleOracle:
    """The form of the method. The p of a round is supported on the working set and on rows held at their caps.

    After the `deadline` the game on the working set is left as it is: the round ends soon, with a p that is as valid as any. The
    working set is no larger than there is time for. If coordinate ascent finds no separating plane, `doubt` is called with the
    multiplications of the first game, where that is large, and returns whether to end with `Pointless` instead.
    """

    game: Game
    tol: float = 1e-10
    seed: int = 1
    deadline: Deadline = UNLIMITED
    doubt: Callable[[float], bool] | None = None

    @property
    def n_groups(self) -> int:
        """The number of groups of rows that have a mass of their own."""
        return len(self.game.p_set.members)

    @cached_property
    def groups(self) -> Array:
        """The group of each row."""
        halves = self.game.p_set.halves
        return np.zeros(self.game.rows.n, np.int8) if halves is None else halves

    @cached_property
    def caps(self) -> Array:
        """The caps, infinite where there are none."""
        caps = self.game.p_set.caps
        return np.broadcast_to(np.inf, self.game.rows.n) if caps is None else caps

    @cached_property
    def norms(self) -> Array:
        """The norms ‖A_i‖₂ of all rows."""
        return np.sqrt(self.game.rows.squares())

    @cached_property
    def max_size(self) -> int:
        """The largest size of the working set."""
        most = min(self.game.rows.n, max_working_set(self.game.rows, self.n_groups))
        return max(2 * self.n_groups, self.deadline.largest(most, lambda m: TUNING.grams_in_time * self._gram_seconds(m, m)))

    def _gram_seconds(self, new: int, m: int) -> float:
        """Predict the seconds for the products of `new` rows with m rows, which include them; 0 where these are not formed."""
        if self.game.norm == math.inf or (new == m and self._solved_by_products(m)):
            return 0.0
        return self.deadline.pace.gram(self.game.rows, new, m) + (SLOW_CELL * m * m if new < m else 0.0)  # it is copied to grow

    def _gram_fits(self, m: int, new: int) -> bool:
        """Return whether there is room for the Gram matrix of m rows, and time for the products with `new` of them."""
        room = m <= self.max_size or fits(_working_set_bytes(self.game.rows, m))
        return room and self.deadline.affords(self._gram_seconds(new, m))

    def _solved_by_products(self, m: int) -> bool:
        """Return whether a working set of m rows is solved by products with them sooner than by their Gram matrix."""
        rows = self.game.rows
        return self.game.norm == 2 and rows.sparse and rows.d > m > TUNING.min_product_rows

    # ---- the first working set ------------------------------------------------------------------------------------------

    def start(self) -> State:
        """Return the first p: by coordinate ascent over all rows, or, where these are many, by a sample or the lowest rows."""
        rows, capped, norm = self.game.rows, self.game.p_set.caps is not None, self.game.norm
        if norm == 2 and rows.is_array and rows.n <= TUNING.all_rows_at_once:
            return self._all_rows()
        if rows.in_memory and (rows.entries <= TUNING.max_visited * rows.d**2 or capped):
            return self._from_ascent()
        first = max(TUNING.min_added_rows, rows.d if norm < math.inf else 0)
        seconds = TUNING.sample_passes * self.deadline.pace.entry * rows.entries * self._sample_size / rows.n
        if not capped and rows.n > 2 * self._sample_size and self.deadline.affords(seconds):
            inside, p = self._from_sample()
            scores = p
        elif rows.reduces and not capped:
            share = -(-first // self.n_groups)
            inside = np.sort(rows.lowest(rows.combine(self.game.p0), share, self.game.p_set.halves)[0])
            scores = p = np.zeros(rows.n)
        else:
            scores = rows.scores(rows.combine(self.game.p0))
            p = self.game.p_set.vertex(scores) if capped else np.zeros(rows.n)
            inside = self._lowest(scores, min(first, self.max_size))
        return State(self._with_enough_capacity(inside, p, scores), p, None)

    def _all_rows(self) -> State:
        """Return every row, with the Gram matrix.

        Where d > n, the ascent visits the rows of a factor of the Gram matrix instead: their products are the same.
        """
        rows, n = self.game.rows, self.game.rows.n
        gram = rows.gram(np.arange(n))
        squares = np.diag(gram).copy()
        if rows.d > n:
            shifted = gram.copy()
            shifted.flat[:: n + 1] += 1e-12 * float(np.max(squares)) + np.finfo(float).tiny
            with contextlib.suppress(np.linalg.LinAlgError):  # for a guess the rows themselves serve as well
                rows = rows_of(np.ascontiguousarray(np.linalg.cholesky(shifted)), threads=1)
                squares = np.diag(shifted).copy()
        p, _ = ascended(rows, self.game.p_set, squares, self.seed, self.deadline.at)
        return State(np.arange(n), p, gram)

    def _from_ascent(self) -> State:
        """Return the rows that coordinate ascent leaves with weight, or near the margin."""
        rows, capped, norm = self.game.rows, self.game.p_set.caps is not None, self.game.norm
        p, near = ascended(rows, self.game.p_set, self.norms**2, self.seed, self.deadline.at)
        inside = np.flatnonzero(near | ((p > 0) & (p < self.caps)))
        if self.doubt is not None and len(inside) > TUNING.large_game:
            lower = self.game.p_set.lowest(rows.scores(rows.combine(p)))
            if lower <= 0 and self.doubt(game_multiplications(rows, min(len(inside), GAMES.max_working_set))):
                raise Pointless
        few_entries = rows.n <= 2 * rows.d and rows.entries <= TUNING.all_entries_at_once
        if norm == 2 and len(inside) > TUNING.min_product_rows and rows.sparse and few_entries:
            inside = np.arange(rows.n)  # scoring all rows costs no more than a step on the face
        scores = rows.scores(rows.combine(p)) if capped else p
        most = min(self.max_size, TUNING.max_program_rows) if norm == math.inf else self.max_size
        if len(inside) > most and not self._solved_by_products(len(inside)):
            if capped:  # rows outside must be at a bound, and those at their caps must leave mass to the working set
                p, inside = self.game.p_set.vertex(scores), self._lowest(scores, most)
            else:
                inside = self._heaviest(inside, p, most)
                p[np.setdiff1d(np.flatnonzero(p), inside)] = 0.0
        return State(self._with_enough_capacity(inside, p, scores), p, None)

    @cached_property
    def _sample_size(self) -> int:
        """The size of the random sample: a solution for m rows is violated by about d n/m of the others, for d√n by some √n."""
        rows = self.game.rows
        best = max(1000, int(rows.d * math.sqrt(rows.n)))
        best = best if rows.in_memory else min(best, max(1000, TUNING.max_remote_entries * rows.n // rows.entries))
        return max(2 * self.n_groups, largest(best, lambda m: _copied_bytes(rows, min(m, rows.n))))

    def _from_sample(self) -> tuple[Array, Array]:
        """Return the working set and p of the game on a random sample of rows (Clarkson's idea)."""
        rows, rng = self.game.rows, np.random.default_rng(self.seed)
        share = self._sample_size // self.n_groups
        members = (np.flatnonzero(self.groups == g) for g in range(self.n_groups))
        sample = np.sort(np.concatenate([rng.choice(own, min(len(own), share), replace=False) for own in members]))
        p_set = _without_caps(self.game.p_set, sample)
        part = DoubleOracle(Game(rows.take(sample), p_set, p_set.centre, norm=self.game.norm), self.tol, self.seed, self.deadline)
        state = part.start()
        for t in range(1, TUNING.max_sample_rounds + 1):
            state, played = part.round(state, t)
            if played.finished or state.stalled > 1 or self.deadline.passed:  # rows of a sample are no reason to go on
                break
        p = np.zeros(rows.n)
        p[sample] = played.p
        return np.sort(sample[state.inside]), p

    def _heaviest(self, inside: Array, p: Array, count: int) -> Array:
        """Return those of the rows `inside` that have most weight, the same number of each group."""
        chosen = []
        for g in range(self.n_groups):
            own = inside[self.groups[inside] == g]
            chosen.append(own[np.argsort(-p[own], kind="stable")[: -(-count // self.n_groups)]])
        return np.sort(np.concatenate(chosen))

    def _lowest(self, scores: Array, count: int) -> Array:
        """Return the rows of each group nearest to the level up to which p fills it (without caps: the lowest)."""
        chosen = []
        for g in range(self.n_groups):
            own = np.flatnonzero(self.groups == g)
            slack = np.abs(scores[own] - fill_level(scores[own], self.caps[own], self.game.p_set.mass))
            share = min(len(own), -(-count // self.n_groups))
            chosen.append(own[np.argpartition(slack, share - 1)[:share]])
        return np.sort(np.concatenate(chosen))

    def _with_enough_capacity(self, inside: Array, p: Array, scores: Array) -> Array:
        """Return the working set with the rows that it needs, under caps, to hold the mass that rows at their caps leave."""
        if self.game.p_set.caps is None:
            return inside
        chosen = np.zeros(len(p), dtype=bool)
        chosen[inside] = True
        for g in range(self.n_groups):
            members = self.groups == g
            held = np.flatnonzero(members & ~chosen & (p > 0))
            # a tenth of the mass is left to the working set, or less where that would take too many rows
            share = min(0.1, TUNING.max_free_rows * float(np.mean(self.caps[members])) / self.game.p_set.mass)
            order, fit = fill_order(scores[held], self.caps[held], (1 - share) * self.game.p_set.mass, "right")
            chosen[held[order[fit:]]] = True
            left = self.game.p_set.mass - float(self.caps[held[order[:fit]]].sum())
            missing = 1.5 * left - float(self.caps[members & chosen].sum())
            if missing > 0:
                unused = np.flatnonzero(members & ~chosen & (p == 0))
                order, enough = fill_order(scores[unused], self.caps[unused], missing)
                chosen[unused[order[: 1 + enough]]] = True
        chosen[inside] = False
        return np.concatenate((inside, np.flatnonzero(chosen)))  # `inside` keeps its order, which is that of its Gram matrix

    # ---- a round --------------------------------------------------------------------------------------------------------

    def round(self, state: State, t: int) -> tuple[State, Round]:
        """Play round t: solve the game on the working set, score all rows, and choose the next working set."""
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

    def _scores(self, w: Array, inside: Array, answer: GameSolution) -> Array:
        """Return A w.

        Where the rows are on other machines, only the scores of the working set and of as many of the lowest rows as may be added
        are exact; for the other rows the highest of these stands, which they are not below.
        """
        rows, halves, found = self.game.rows, self.game.p_set.halves, answer.found
        if answer.direct and found.settled and len(inside) == rows.n:
            return found.scores[np.argsort(inside)]
        if not rows.reduces or self.game.p_set.caps is not None:
            return rows.scores(w)
        count = max(TUNING.min_added_rows, int(np.count_nonzero(found.p))) + len(inside)
        lowest, values = rows.lowest(w, count, halves)
        scores = np.empty(rows.n)
        for g in range(self.n_groups):
            scores[self.groups == g] = np.max(values[self.groups[lowest] == g])
        scores[lowest] = values
        scores[inside] = rows.take(inside).scores(w)
        return scores

    def _screened(self, state: State, scores: Array, upper: float, lower: float) -> State:
        """Add all rows that may still have weight, where they are few enough: the next round is then the last."""
        alive = ~idle(scores, self.norms, self.game.p_set, upper, lower)
        alive[state.inside] = False
        more = np.flatnonzero(alive)
        m = len(state.inside)
        if state.gram is None or not 0 < len(more) <= min(2 * m, self.max_size - m):
            return state
        if not self.deadline.affords(self._gram_seconds(len(more), m + len(more))):
            return state
        gram = self._grown(state.gram, state.inside, more)
        return state._replace(inside=np.concatenate((state.inside, more)), gram=gram)

    def _next(self, state: State, answer: GameSolution, p: Array, scores: Array, square: float) -> tuple[State, bool]:
        """Return the next working set, and whether the game is finished: no row outside violates the answer, or gains ceased."""
        rows, inside, found, gram = self.game.rows, state.inside, answer.found, answer.gram
        slack = scores - found.levels[self.groups]
        outside = np.ones(len(p), dtype=bool)
        outside[inside] = False
        noise = self.tol * square + 1e-15 * float(np.max(np.abs(scores)))
        wrong = np.flatnonzero(outside & np.where(p > 0, slack > noise, slack < -noise))
        stalled = state.stalled + 1 if square >= (1 - 1e-12) * state.square else 0
        state = state._replace(p=p, gram=gram, square=min(square, state.square), stalled=stalled)
        if not len(wrong) or square <= ZERO_NORM**2 or stalled > TUNING.max_stalled:
            # an answer that is not settled is tried once more, from where it ended
            return state, found.settled or square <= ZERO_NORM**2 or stalled > 0
        count = max(TUNING.min_added_rows, int(np.count_nonzero(found.p)))
        if len(wrong) > count:
            wrong = np.sort(wrong[np.argpartition(-np.abs(slack[wrong]), count)[:count]])
        # rows at a bound that are well clear of the level are dropped: if one is needed again, that costs one more round. While
        # ‖Aᵀp‖ does not fall, none is: where several w are optimal, they would be added and dropped by turns
        free = (found.p > 0) & (found.p < self.caps[inside])
        distance = np.where(free, -1.0, np.abs(slack[inside]))
        kept = np.flatnonzero(distance <= 0.1 * square) if stalled == 0 else np.arange(len(inside))
        kept = kept[np.argsort(distance[kept], kind="stable")]
        least = int(np.count_nonzero(free))  # free rows must stay, since rows outside are at a bound
        kept = kept[: max(TUNING.min_working_set, 4 * rows.d, least)]
        if self.game.p_set.caps is not None:
            wrong = np.setdiff1d(self._with_enough_capacity(np.concatenate((inside[kept], wrong)), p, scores), inside[kept])
        kept = np.sort(kept[: max(self.max_size - len(wrong), least)])
        if gram is not None:
            room = self._gram_fits(len(kept) + len(wrong), len(wrong))
            gram = self._grown(gram[np.ix_(kept, kept)], inside[kept], wrong) if room else None
        return state._replace(inside=np.concatenate((inside[kept], wrong)), gram=gram), False

    def _grown(self, gram: Array, kept: Array, new: Array) -> Array:
        """Return the Gram matrix with these rows added."""
        m, grown = len(kept), np.empty((len(kept) + len(new),) * 2)
        grown[:m, :m], grown[m:, m:] = gram, self.game.rows.gram(new)
        if m:
            grown[m:, :m] = self.game.rows.gram(new, kept)
            grown[:m, m:] = grown[m:, :m].T
        return grown

    # ---- the game on the working set ------------------------------------------------------------------------------------

    def _solve(self, state: State) -> GameSolution:
        """Return the equilibrium of the working set, given the rows outside that are held at their caps."""
        rows, inside, norm, m = self.game.rows, state.inside, self.game.norm, len(state.inside)
        held = state.p.copy()
        held[inside] = 0.0
        allowed, guess, others = self._allowed(inside, held), state.p[inside], bool(held.any())
        room = state.gram is not None or self._gram_fits(m, m)
        by_products = self._begins_with_products(state.gram, m, room)
        if norm == 2 and rows.in_memory and guess.any() and not (by_products or others):  # without a copy of the rows
            gram = rows.gram(inside) if state.gram is None else state.gram
            return self._by_gram(gram, allowed, guess, np.zeros(m), 0.0)
        r, taken = rows.combine(held) if others else np.zeros(rows.d), self._taken(inside)
        working = WorkingSet(taken, allowed, guess if guess.any() else self._guessed(taken, inside), r)
        if norm > 2:
            return self._in_norm(working, room, near=state.square < math.inf)
        if by_products:
            answer = self._by_products(working, self.norms[inside] ** 2)
            if answer is not None:
                return answer
            if not room:
                return self._unsolved(working)
        gram = taken.gram(np.arange(m)) if state.gram is None else state.gram
        return self._by_gram(gram, allowed, working.guess, *working.outside())

    def _allowed(self, inside: Array, held: Array) -> FeasibleSet:
        """Return the set of p over the working set, beside the weights that are held outside."""
        mass = np.array([self.game.p_set.mass - float(held[own].sum()) for own in self.game.p_set.members])
        return FeasibleSet(self.groups[inside].astype(np.int64), mass, self.caps[inside])

    def _begins_with_products(self, gram: Array | None, m: int, room: bool) -> bool:
        """Return whether m rows without a Gram matrix are solved by products with them, at least at first."""
        return gram is None and self.game.norm == 2 and (self._solved_by_products(m) or not room)

    def _taken(self, inside: Array) -> Rows:
        """Return the rows of the working set, as a view where it has all rows in order."""
        rows = self.game.rows
        if rows.in_memory and len(inside) == rows.n and (inside == np.arange(rows.n)).all():
            return rows.scaled(1.0)  # with a count of passes of its own, as `take` has
        return rows.take(inside)

    def _guessed(self, taken: Rows, inside: Array) -> Array:
        """Return a first p of the working set, by coordinate ascent."""
        squares = taken.squares() if self.game.rows.reduces else self.norms[inside] ** 2
        return ascended(taken, _without_caps(self.game.p_set, inside), squares, self.seed, self.deadline.at)[0]

    def _by_gram(self, gram: Array, allowed: FeasibleSet, guess: Array, linear: Array, constant: float) -> GameSolution:
        game = Restricted(Gram(gram), allowed, linear, constant, self.game.rows.d, self.deadline)
        return GameSolution(game.solve(guess, self.tol), gram)

    def _by_products(self, working: WorkingSet, squares: Array) -> GameSolution | None:
        """Solve by products with the rows; return None if these are so ill-conditioned that a Gram matrix would cost less."""
        m, entries = working.rows.n, working.rows.entries
        budget = game_multiplications(working.rows, m) if m <= GAMES.max_working_set else math.inf
        if not self._solved_by_products(m):
            budget = min(budget, TUNING.max_products_per_entry * entries)
        products = RowProducts(working.rows, squares, budget, self.deadline)
        game = Restricted(products, working.allowed, *working.outside(), self.game.rows.d, self.deadline)
        try:
            return GameSolution(game.solve(working.guess, self.tol), direct=True)
        except Stalled:
            return None

    def _in_norm(self, working: WorkingSet, room: bool, near: bool) -> GameSolution:
        """Solve in a norm above 2."""
        rows, allowed, guess, r = working
        if self.game.norm == math.inf:
            found, w = SupNormGame(rows, allowed, r, self.deadline).solve(guess, self.tol)
            return GameSolution(found, w=w)
        if not room:
            return self._unsolved(working)
        return GameSolution(PNormGame(rows, allowed, r, self.deadline).solve(self.game.norm, guess, self.tol, near=near))

    def _unsolved(self, working: WorkingSet) -> GameSolution:
        """Return the guess, made feasible: there is no room, or no time, for anything better."""
        p = working.allowed.filled(working.guess)
        w = dual_vector(working.rows.combine(p) + working.r, self.game.norm)
        scores = working.rows.scores(w)
        return GameSolution(Equilibrium(p, scores, working.allowed.cheapest(scores)[1], False))


def game_multiplications(rows: Rows, m: int) -> float:
    """Return about how many multiplications the Gram matrix of m of these rows and its factors take."""
    return TUNING.gram_cost * m * m * rows.entries / rows.n + TUNING.factor_cost * float(m) ** 3


# ---- the size of a working set ------------------------------------------------------------------------------------------


def max_working_set(rows: Rows, n_groups: int) -> int:
    """Return the largest size of a working set of these rows that fits in memory."""
    most = GAMES.max_working_set
    if not rows.in_memory:
        most = min(most, max(TUNING.min_working_set, TUNING.max_remote_entries * rows.n // rows.entries))
    return max(2 * n_groups, largest(most, lambda m: _working_set_bytes(rows, min(m, rows.n))))


def working_set_limit(rows: Rows, n_groups: int) -> int | None:
    """Return the number of free rows from which other methods must take over; None if the working set can grow."""
    most = max_working_set(rows, n_groups)
    limited = most < min(rows.n, GAMES.max_working_set)  # memory is short
    # sparse rows with more columns than the working set has rows need no Gram matrix
    bounded = limited and rows.d <= most if rows.sparse else limited or not rows.in_memory
    return most if bounded else None


def _copied_bytes(rows: Rows, m: int) -> float:
    """Return the bytes of a copy of m rows: entries in float64 with their columns, or blocks that are concatenated."""
    return 16.0 * m * rows.entries / rows.n


def _working_set_bytes(rows: Rows, m: int) -> float:
    """Return the bytes of a working set of m rows with the matrices that are made of its Gram matrix."""
    return 8.0 * GAMES.grams * m * m + _copied_bytes(rows, m)


# ---- coordinate ascent --------------------------------------------------------------------------------------------------


def _without_caps(p_set: Simplex, inside: Array) -> Simplex:
    """Return the set of p over some of the rows, without caps, since it serves for a guess only."""
    return Simplex(len(inside), halves=None if p_set.halves is None else p_set.halves[inside])


def ascended(rows: Rows, p_set: Simplex, squares: Array, seed: int, deadline: float = math.inf) -> tuple[Array, Array]:
    """Return a guess of the optimal p by epochs of dual coordinate ascent, and which other rows are near the margin.

    The ascent is on max Σx - ½‖Aᵀx‖², x ≥ 0, whose optimum is p/γ*². With a free intercept Σ y_i x_i = 0 is enforced by the
    method of multipliers: the intercept is the multiplier. Caps are relative to the total of x so far.
    """
    capped, signs_of_column = p_set.caps is not None, None if p_set.halves is None else (1 - 2 * p_set.halves).astype(np.int8)
    column, offset = 0.0 if signs_of_column is None else 0.5 * float(np.sqrt(np.mean(squares))), 0.0
    ascent = Ascent(rows, squares, np.zeros(rows.n), np.zeros(rows.d + 1), deadline=deadline)
    total = Total(1.0 / max(float(np.sum(rows.combine(p_set.centre) ** 2)), 1e-12)) if capped else None
    stages, epochs, enough = _schedule(rows, signs_of_column is not None, capped)
    for stage in range(stages):
        if time.perf_counter() >= deadline:
            break
        if total is not None and p_set.caps is not None:
            _cap(ascent, np.asarray(p_set.caps * total.value), column, signs_of_column)
        if signs_of_column is not None:
            ascent.intercept = Offset(signs_of_column, column, offset)
        stats = ascent.run_epochs(epochs, seed=seed + stage, quiet=enough)
        offset += column * float(ascent.w[-1])
        quiet = stats.turned <= ASCENT.quiet_share
        total = None if total is None else total.after(float(ascent.x.sum()), quiet)
        if quiet if total is None else total.settled:
            break
    scores = rows.scores(ascent.w[:-1])
    return _distributed(ascent.x, scores if signs_of_column is None else scores + offset * signs_of_column, ascent.caps, p_set)


def _schedule(rows: Rows, free: bool, capped: bool) -> tuple[int, int, float]:
    """Return the number of stages, the epochs of each, and the share of turned rows after which a stage ends."""
    if capped:
        return ASCENT.capped_stages, ASCENT.epochs_per_capped_stage, -1.0
    epochs = ASCENT.epochs_for_many_rows if rows.n > ASCENT.many_rows_per_column * rows.d else ASCENT.max_epochs
    return (-(-epochs // ASCENT.epochs_per_stage), ASCENT.epochs_per_stage, -1.0) if free else (1, epochs, ASCENT.quiet_share)


def _cap(ascent: Ascent, caps: Array, column: float, signs_of_column: Array | None) -> None:
    """Let the ascent go on below these caps, with every row."""
    ascent.caps, x = caps, ascent.x
    if (x > caps).any():
        np.minimum(x, caps, out=x)
        ascent.w[:-1] = ascent.rows.combine(x)
        ascent.w[-1] = column * float(x @ signs_of_column) if signs_of_column is not None else 0.0
    ascent.unshrink()


class Total(NamedTuple):
    """An estimate of Σx, by which x is divided to give p. A power of the excess makes up for the lag of x behind its caps.

    It is `settled` once x adds up to it and hardly changes.
    """

    value: float
    excess: float = 0.0
    power: float = 2.0
    settled: bool = False

    def after(self, found: float, quiet: bool) -> Total:
        """Return the total moved towards what x adds up to, unless it is settled; `quiet` tells whether x hardly changes."""
        excess = math.log(max(found / self.value, 1e-6))
        if quiet and abs(excess) <= ASCENT.even:
            return Total(self.value, excess, self.power, settled=True)
        lags = excess * self.excess > 0 and abs(excess) > max(ASCENT.even, ASCENT.max_lag * abs(self.excess))
        power = min(2 * self.power, ASCENT.max_power) if lags else 2.0
        return Total(self.value * math.exp(min(ASCENT.max_change, max(-ASCENT.max_change, power * excess))), excess, power)


def _distributed(x: Array, scores: Array, caps: Array | None, p_set: Simplex) -> tuple[Array, Array]:
    """Return x ≤ caps as a p, each group with its mass, and which other rows are near the margin."""
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
