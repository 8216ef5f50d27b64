"""What the planes of several classes prove about the least multinomial loss.

P(W, b) = ½‖W‖² + Σ C_i (log Σ_c e^{s_ic} - s_iy), s_i = Wᵀx_i + b, in the Frobenius norm, with b as a further row of W if the
intercept is penalized. A row has weights α_ic ≥ 0, one for each class, whose sum is C_i. With q_i = α_i/C_i, the entropy H and
V = Σ x_i (C_i e_y - α_i)ᵀ, D(α) = Σ C_i H(q_i) - ½‖V‖² is at most the minimum P*, and P - D = ½‖W - V‖² + Σ C_i
KL(q_i‖softmax(s_i)). A free intercept requires Σ α_i = N as well, where N_c is the sum of the C_i of class c. As in `losses`, the
planes may come from anywhere. The weights are floats that follow from W, except for the largest of each row, which stands for
C_i minus the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, namespace
from gordan.certificates import bounds, elementary
from gordan.certificates.bounds import TINY, down, up
from gordan.certificates.data import Certificate
from gordan.certificates.losses import (
    MIN_WEIGHT,
    Drift,
    Optimum,
    constants_of,
    dense_slack,
    dual_below,
    infeasibility_reason,
    parts_of,
    value_above,
)
from gordan.certificates.matrix import CLAIM, Matrix, added, block_scores, error, sum_share
from gordan.certificates.problem import Problem
from gordan.floats import U, ieee_floats
from gordan.intercepts import Intercept
from gordan.losses import Loss, balancing_step, softmax
from gordan.rows import Block, in_threads, over_rows, threads_for

ROOT2 = 1.4142135623730954  # not below √2
# Masses that differ by this share of the smallest one are balanced: sums of so many terms have no more digits.
BALANCED = 1e-14


class Scores(NamedTuple):
    """The products X W as computed, with what is needed to enclose them.

    `lengths` are upper bounds on the norms of the columns of W, `absolute` is |x_i|·max_c|w_c| as computed, and `terms` is the
    number of additions that a term goes through, for each row or for all rows.
    """

    sums: Array
    lengths: Array
    absolute: Array
    terms: Array

    @staticmethod
    def of(X: Matrix, W: Array) -> Scores:
        """Return the products with W: one pass over X, or none if the last call was for the same W."""
        found: Scores = X.remembered("block of products", W, lambda: Scores._computed(X, W.copy()))
        return found

    @staticmethod
    def _computed(X: Matrix, W: Array) -> Scores:
        with np.errstate(over="ignore", invalid="ignore"):
            (sums, terms, _), absolute = X.products(W), X.absolute(np.max(np.abs(W), axis=1))
        lengths = np.array([bounds.length(column) for column in W.T])
        return Scores(sums, lengths, absolute[:, None], terms[:, None] if terms.ndim else terms)

    def enclosed(self, X: Matrix, b: Any, part: slice) -> tuple[Array, Array]:
        """Return x_i·w_c + b_c as computed for the rows of a part, and bounds on the errors."""
        with np.errstate(over="ignore", invalid="ignore"):
            terms = self.terms[part] if self.terms.ndim else self.terms
            absolute = np.fmin(X.norms[part, None] * self.lengths, self.absolute[part])  # of badly scaled columns far less
            return self.sums[part] + b, error(absolute + np.abs(b), terms + 1.0)


class Weights(NamedTuple):
    """The weights `alpha` of some rows, and what follows from them.

    `others` is the sum of the weights of a row except for the largest, `signed` is C e_y - α in floats, `paid` a lower bound on
    C H, `largest` a mask of the largest weight of each row, and `drift` a bound on the relative differences from the weights of
    a checker whose sums are in another order.
    """

    alpha: Any
    others: Any
    signed: Any
    paid: Any
    largest: Any
    drift: Any

    def mixed(self, own: Any, c: Any) -> Any:
        """Return C in the column of the largest weight of each row, unless that is the row's own class."""
        return namespace(c).where(self.largest & ~own, c[:, None], 0.0)

    def masses(self, own: Any, c: Any) -> tuple[Any, Any, Any]:
        """Return the terms whose sums over the rows are the arrays of `Masses`."""
        return self.mixed(own, c), (-self.signed).clip(min=0.0), self.signed.clip(min=0.0)

    def drifts(self, s: Any, sizes: Any) -> tuple[Any, tuple[Any, ...]]:
        """Return |Δα| for each class and the terms of `Drift`, for each row, if each α_c has a relative error of ρ.

        Then the sum of the others has an error of at most ρ times that sum, and so has the largest weight. KL(q'‖softmax(s)) is
        at most Σ|Δq||Δ log q|, with 2ρ for each difference.
        """
        xp, used = namespace(s), self.drift > 0
        rho = self.drift * (1 + 16 * U)
        moved, spread = 2 * rho * self.others, (xp.amax(s, 1) - xp.amin(s, 1)).clip(max=800.0) + 2.0
        parts = moved, moved * sizes, moved * spread, 2 * moved * rho
        by_class = rho[:, None] * xp.minimum(self.alpha, self.others[:, None])
        return xp.where(used[:, None], by_class, 0.0), tuple(xp.where(used, part, 0.0) for part in parts)

    def products(self, c: Any) -> Any:
        """Return Σ α_j α_l/C over the rows, for all pairs of classes."""
        xp = namespace(c)
        return xp.einsum("ij,il->jl", self.alpha, self.alpha / xp.where(c > 0, c, 1.0)[:, None])

    def numbers(self, s: Any, c: Any) -> Any:
        """Return a bound on Σ|α - α'|, the number of rows with scores that are not finite, and the largest drift.

        Weights that count as 0 are not included in the bound.
        """
        xp = namespace(s)
        odd = xp.where((c > 0) & ~xp.isfinite(s).all(1), 1.0, 0.0 * c)
        return xp.stack(((2 * self.drift * self.others).sum(), odd.sum(), self.drift.max()))


class Masses(NamedTuple):
    """Sums over the rows for each class, with relative errors of at most `share`.

    `mixed` is Σ C over the rows of other classes whose largest weight is that of this class; `gains` and `losses` are the sums
    of the positive and of the negative entries of α - C e_y.
    """

    mixed: Array
    gains: Array
    losses: Array
    share: float

    @staticmethod
    def of(signed: Array, mixed: Array) -> Masses:
        """Return the sums from C e_y - α."""
        columns = np.ascontiguousarray(signed.T)
        gains, losses = (np.array([bounds.near_sum(np.maximum(sign * row, 0.0)) for row in columns]) for sign in (-1.0, 1.0))
        return Masses(mixed, gains, losses, 2 * bounds.SUM_BLOCK * U)

    @property
    def imbalance(self) -> Iterator[tuple[float, float]]:
        """M_c - N_c for each class, with a bound on its error."""
        k = len(self.mixed)
        for mixed, gains, losses in zip(self.mixed.tolist(), self.gains.tolist(), self.losses.tolist(), strict=True):
            rounded = (2 * self.share + 2 * U * (k + 4)) * (gains + losses)
            yield gains - losses, up(rounded + 2 * (k + 4) * U * mixed)


class Facts(NamedTuple):
    """Sums over the rows for planes W, b, whose relative errors are at most the share of `masses`.

    `above` bounds the losses from above and `paid` bounds Σ C H from below; `lengths` is Σ (C e_y - α)_y‖A_i‖ and `whole` is
    Σ C‖x_i‖. `used` is the number of rows in which C e_y - α is not 0, `longest` the largest ‖A_i‖ of these, and `blocks` the
    number of blocks. `drifts` has Σ|Δα| and `mass` has N_c for each class; `v` is V with Σ (C e_y - α) below it.
    """

    above: float
    paid: float
    lengths: float
    whole: float
    used: float
    blocks: int
    longest: float
    drift: Drift
    drifts: Array
    mass: Array
    v: Array
    masses: Masses

    @property
    def surplus(self) -> float:
        """An upper bound on λ: λ_c is at most (M_c - N_c)/N_c, and M_c - N_c is minus the sum of column c of C e_y - α."""
        worst, share = 0.0, 2 * self.masses.share
        for (more, rounded), moved, mass in zip(self.masses.imbalance, self.drifts.tolist(), self.mass.tolist(), strict=True):
            more = up(up(more) + up(rounded + up(moved)))
            if more > 0:
                worst = max(worst, up(more / (mass * (1 - share))) if mass > 0 else 1.0)
        return worst


class ClassBalance(NamedTuple):
    """How well the classes are balanced at W, b.

    `products` is Σ α_j α_l/C, `moved` a bound on Σ|α - α'| with the exact weights α', `worst` the largest drift of a weight, and
    `finite` tells whether all scores are finite.
    """

    masses: Masses
    products: Array
    moved: float
    worst: float
    finite: bool

    @property
    def step(self) -> Array:
        """The step of b after which each class has nearly the mass of its rows; NaN where it is unknown."""
        return balancing_step(self.masses.gains - self.masses.losses, np.diag(self.products.sum(axis=1)) - self.products)


@dataclass(frozen=True, eq=False)
class Multinomial:
    """The function P for given data: `which` is the number of each row's class, and `c` has the C_i, some of which may be 0.

    X is centred as in `Objective`.
    """

    X: Matrix
    which: Array
    k: int
    c: Array
    intercept: Intercept = Intercept.FREE
    loss: Loss = field(default=Loss.MULTINOMIAL, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", self.X.centred if self.intercept.grouped else self.X)

    @staticmethod
    def of(problem: Problem, certificate: Certificate) -> Multinomial:
        """Return the objective that a certificate is about."""
        c, which = certificate, problem.which_for(certificate.classes)
        return Multinomial(problem.X, which, len(c.classes), constants_of(c, which), Intercept(c.intercept))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of W."""
        return self.X.d, self.k

    def infeasibility_reason(self) -> str:
        """Return why there is no such minimum; empty if there is one."""
        return infeasibility_reason(self.c, self.intercept, [self.which == j for j in range(self.k)])

    @ieee_floats()
    def enclose(self, w: Array, b: Any, *, slack: float = 1.0) -> Optimum:
        """Return the interval that W and b prove; `slack` is as in `Objective.enclose`."""
        b = self.X.inward(w, b)
        plane = self.intercept.joined(w, b)
        with np.errstate(over="ignore", invalid="ignore"):
            facts = self._facts_in_place(w, b) if self._is_claimed_in_place(slack) else self._facts(w, b, slack)
            share = facts.masses.share
            upper = value_above(plane, 4 * U + (slack - 1) * share, facts.above, slack * share)
            lower, v, off = self._dual_below(plane, b, facts, slack)
        return Optimum(lower, upper, plane, v, off)

    def _is_claimed_in_place(self, slack: float) -> bool:
        """Return whether sums are made where the rows are: these are not in memory, and there is room for sums in any order."""
        return slack != 1 and not self.X.storage.in_memory

    def _each_block(self, work: Any, w: Array, b: Any) -> Iterator[Any]:
        """Return what `work` returns for the blocks, as one sequence for each part of it."""
        lengths = np.array([bounds.length(column) for column in w.T])
        shared = np.ascontiguousarray(w), np.zeros(self.k) + b, lengths, float(self.intercept.column)
        return zip(*self.X.each_block(work, (self.which, self.c, self.X.norms_in_place), shared), strict=True)

    def _facts_in_place(self, w: Array, b: Any) -> Facts:
        numbers, longest, by_class, v, rows = self._each_block(_facts_of, w, b)
        above, paid, lengths, whole, used, *drift = np.sum(numbers, axis=0).tolist()
        mixed, gains, losses, drifts, mass = np.sum(by_class, axis=0)
        found = Masses(mixed, gains, losses, sum_share(max(rows), len(rows)))
        total = sum(v, np.zeros_like(v[0]))
        return Facts(above, paid, lengths, whole, used, len(rows), max(longest), Drift(*drift), drifts, mass, total, found)

    def _facts(self, w: Array, b: Any, slack: float) -> Facts:
        """Return the facts from scores that are all in memory."""
        scores, norms, column = Scores.of(self.X, w), self.X.norms, self.intercept.column
        n = self.X.n
        above, paid, signed = np.empty(n), np.empty(n), np.empty((n, self.k))
        mixed, drifts, drift = np.zeros(self.k), np.zeros(self.k), Drift(0.0, 0.0, 0.0, 0.0)
        wider = np.asarray(slack if slack == 1 else dense_slack(self.X.d, scores.terms, slack))
        rounding = 1 + 4 * bounds.SUM_BLOCK * U

        def facts_of(part: slice, s: Array, radius: Array, own: Array, c: Array) -> tuple[Array, Any, Any]:
            above[part] = losses_above(s, radius * (wider[part] if wider.ndim else wider), own, c)
            found = weights_of(s, radius, own, c)
            signed[part], paid[part] = found.signed, found.paid
            by_class, more = found.drifts(s, norms[part] + column) if slack != 1 else (np.zeros((0, self.k)), ())
            sums = [[bounds.near_sum(np.ascontiguousarray(row)) * rounding for row in terms] for terms in (by_class.T, more)]
            return found.mixed(own, c).sum(axis=0), *sums

        for own_mixed, by_class, more in self._each_part(facts_of, scores, b):
            mixed += own_mixed
            if slack != 1:
                drifts += by_class
                drift = Drift(*(have + sums for have, sums in zip(drift, more, strict=True)))
        v = self.X.remembered("block combination", signed, lambda: self.X.combination(signed))
        used, counted = np.flatnonzero(signed.any(axis=1)), self.c > 0
        sizes = norms[used] + column
        return Facts(
            bounds.near_sum(above),
            bounds.near_sum(paid) if np.isfinite(paid).all() else math.nan,
            bounds.near_sum(signed[used, self.which[used]] * sizes),
            bounds.near_sum(self.c[counted] * norms[counted]),
            float(len(used)),
            0,
            float(np.max(sizes, initial=0.0)),
            drift,
            drifts,
            np.array([bounds.near_sum(np.where(self.which == c, self.c, 0.0)) for c in range(self.k)]),
            np.vstack((v, signed.sum(axis=0))),
            Masses.of(signed, mixed),
        )

    def _each_part(self, work: Any, scores: Scores, b: Any) -> list[Any]:
        """Return what `work` returns for slices of the rows, scores, bounds on their errors, masks of the own classes, and C."""

        @ieee_floats()
        def of_part(lo: int, hi: int) -> Any:
            part = slice(lo, hi)
            with np.errstate(over="ignore", invalid="ignore"):  # which every thread has for itself
                own = self.which[part, None] == np.arange(self.k)
                return work(part, *scores.enclosed(self.X, b, part), own, self.c[part])

        ranges = [(part.start, part.stop) for part in parts_of(self.X.n, self.k)]
        return in_threads(of_part, ranges, threads_for(len(ranges)))

    def _dual_below(self, plane: Array, b: Any, facts: Facts, slack: float) -> tuple[float, Array, float]:
        """Return a lower bound on D for these weights, V, and a bound on its error; those of α = C e_y if that is better.

        The norm of a row of C e_y - α is at most √2 times its entry y. If b is free, the weights are mixed with one distribution
        r for all rows: with λ = max (1 - N_c/M_c)₊, M = Σ α_i and r = (N - (1-λ)M)/(λΣN), q' = (1-λ)q + λr has Σ C q' = N. The
        entropy decreases by a share of at most λ, and V moves by at most λ√2 Σ C‖x‖.
        """
        share, v = slack * facts.masses.share, self.intercept.combined(facts.v[: self.X.d], facts.v[self.X.d])
        terms = facts.used + facts.blocks + 4 * self.k + 2 * bounds.SUM_BLOCK
        off = 2 * U * terms * ROOT2 * facts.lengths * (1 + share)
        off += facts.used * TINY * self.k * (facts.longest + self.X.d + 1.0)
        if not (np.isfinite(v).all() and math.isfinite(off) and math.isfinite(facts.paid)):
            return dual_below(-math.inf, v, 0.0)
        off, total, drift = up(slack * off), down(facts.paid * (1 - share)), facts.drift
        if self.intercept.grouped:
            surplus = facts.surplus
            if not surplus < 1:
                return dual_below(-math.inf, v, 0.0)
            whole = ROOT2 * facts.whole * (1 + 2 * share)
            total = down(total - up(surplus * up(max(total, 0.0))))
            cost = drift.cost + float(np.max(np.abs(b))) * drift.weights + surplus * drift.paid
            drift = drift._replace(cost=cost, paid=0.0)
            off = up(off + up(surplus * up(whole)) if surplus > 0 else off)
        if slack != 1:
            total -= drift.loss(bounds.length(plane - v), off, 0.0)
        return dual_below(total, v, off)

    @ieee_floats()
    def balance(self, w: Array, b: Array, slack: float = 1.0) -> tuple[float, float]:
        """Return an upper bound on ε = ½‖Σ C(q - e_y)‖₁, and a lower one on Σ C q_T(1 - q_T) for all sets T of some classes.

        q = softmax(Wᵀx + b) with the b for the rows x of X, and the relative error of the weights as computed is that of a
        checker's weights (`weights_of`). The second sum adds Σ C q_j q_l over j in T and l outside; one of these pairs is an edge
        of the tree of largest edges.
        """
        found = self.balanced(w, b, slack)
        if not found.finite:
            return math.inf, 0.0
        # the largest weight of a row is C/k at least, and off by kuC
        rounded = 4 * (self.X.n + 2 * self.k**2 + 8) * U
        least = down(smallest_spanning_tree_edge(found.products) * (1 - 2 * found.worst) * (1 - rounded) - self.X.n * TINY)
        excess = sum(abs(more) + rounded for more, rounded in found.masses.imbalance)
        most = up(0.5 * excess * (1 + 4 * self.k * U) + found.moved * (1 + 4 * self.X.n * U))
        return most, least if found.worst < 0.1 else 0.0

    @ieee_floats()
    def balanced(self, w: Array, b: Array, slack: float) -> ClassBalance:
        """Return what `balance` is computed from, and what is needed to balance b."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self._is_claimed_in_place(slack):
                numbers, by_class, each, rows = self._each_block(_balances, w, b)
                mixed, gains, losses = np.sum(by_class, axis=0)
                masses, products = Masses(mixed, gains, losses, sum_share(max(rows), len(rows))), np.sum(each, axis=0)
            else:
                signed, products, mixed = np.empty((self.X.n, self.k)), np.zeros((self.k, self.k)), np.zeros(self.k)

                def balance_of(part: slice, s: Array, radius: Array, own: Array, c: Array) -> tuple[Array, Array, Array]:
                    found = weights_of(s, radius, own, c)
                    signed[part] = found.signed
                    return found.mixed(own, c).sum(axis=0), found.numbers(s, c), found.products(c)

                each_mixed, numbers, each_products = zip(*self._each_part(balance_of, Scores.of(self.X, w), b), strict=True)
                mixed, products = sum(each_mixed, mixed), sum(each_products, products)
                masses = Masses.of(signed, mixed)
        (moved, odd), worst = np.sum(numbers, axis=0)[:2].tolist(), float(np.max(numbers, axis=0)[2])
        return ClassBalance(masses, products, moved + 2 * self.k * MIN_WEIGHT * self.X.n, worst, odd == 0)


# ---- rows, in memory or on a device; `own` and `largest` are True for one class of each ------------------------------------


def losses_above(s: Any, radius: Any, own: Any, c: Any) -> Any:
    """Return upper bounds on C (log Σ e^{s_c} - s_y), which increases in all s_c - s_y.

    The largest term of Σ e^{t - max t} is 1, so that only the others are computed.
    """
    xp, k = namespace(s), s.shape[1]
    t = _above((s + radius) - xp.where(own, s - radius, 0.0).sum(1)[:, None])
    t = xp.where(own, 0.0, t)
    top = xp.amax(t, 1)
    share = elementary.exp(_above(t - top[:, None]).clip(max=0.0)) * (1 + elementary.REL) + TINY
    share = xp.where(_first_largest(t), 0.0, share)
    rest = share.sum(1) * (1 + 2 * (k + 4) * U)
    loss = (top + elementary.log1p_above(rest)) * (1 + 4 * U)
    return xp.where(c > 0, xp.where(xp.isfinite(t).all(1), c * loss * (1 + 4 * U) + TINY, math.inf), 0.0)


def weights_of(s: Any, radius: Any, own: Any, c: Any) -> Weights:
    """Return the weights that follow from scores: floats α = C e^s/Σe^s, of which the largest, r, stands for C - Σ_{c≠r} α_c.

    The relative error of the sum of the others is ku, and so is that of C e_y - α, except for the entry r ≠ y, which is C minus
    that sum: its error is kuC, at most 2ku times the entry y. The entropy is α ln(C/α) for the others, where α/C ≤ ½; for r it
    is taken at both ends of the interval for C - Σ, since q ln q has one minimum.
    """
    xp, k = namespace(s), s.shape[1]
    top = xp.amax(s, 1)
    alpha, largest = softmax(s) * c[:, None], _first_largest(s)
    alpha = xp.where(largest | ~(alpha >= MIN_WEIGHT), 0.0, alpha)  # NaN too
    others = alpha.sum(1)
    lost = ~((others * (1 + 2 * k * U) < c) & xp.isfinite(top))
    alpha, others, largest = (
        xp.where(lost[:, None], 0.0, alpha),
        xp.where(lost, 0.0, others),
        xp.where(lost[:, None], own, largest),
    )
    right = (largest & own).any(1)
    share = alpha / xp.where(alpha > 0, c[:, None], 1.0)
    used = share > elementary.MIN_SHARE
    logs = xp.where(used, alpha * elementary.neg_log(xp.where(used, share.clip(max=0.5), 0.5)), 0.0)
    x = others / xp.where(others > 0, c, 1.0)
    ends = (x * (1 - (2 * k + 8) * U), (x * (1 + (2 * k + 8) * U)).clip(max=1.0))
    last = xp.minimum(*map(elementary.complement_below, ends))
    paid = (logs.sum(1) * (1 - elementary.REL_TWO) + c * last) * (1 - 2 * (k + 8) * U)
    signed = -alpha - xp.where(largest, xp.where(right, 0.0, c - others)[:, None], 0.0)
    signed = signed + xp.where(own, xp.where(right, others, c)[:, None], 0.0)
    spread = (top - xp.amin(s, 1)).clip(max=800.0)
    drift = xp.expm1(4 * xp.amax(radius, 1)) + (2 * spread + 4 * k + 32) * U
    alpha = xp.where(largest, (c - others)[:, None], alpha)
    return Weights(alpha, others, signed, paid.clip(min=0.0), largest, xp.where(others > 0, drift, 0.0))


def _first_largest(x: Any) -> Any:
    """Return a mask of the largest entry of each row, the first one if there are several."""
    return x.argmax(1)[:, None] == _class_numbers(x)


def _class_numbers(x: Any) -> Any:
    """Return the numbers 0, 1, … of the columns of x as one row of floats."""
    return namespace(x).cumsum(namespace(x).ones_like(x[:1]), 1) - 1.0


def _above(x: Any) -> Any:
    """Return the next float above each entry."""
    xp = namespace(x)
    return xp.nextafter(x, xp.full_like(x[:1], math.inf))


# ---- work on one block of rows, done where that is; sums are in any order ---------------------------------------------------


def _enclosed(block: Block, which: Any, W: Array, *more: Any) -> tuple[Any, ...]:
    """Return scores with b, bounds on their errors, the number of terms, masks of the rows' own classes, and C and the norms."""
    sums, terms = block_scores(block, W)
    which, c, norms, b, lengths = map(block.to_storage_f64, (np.asarray(which, dtype=np.float64), *more))
    own, radius = which[:, None] == _class_numbers(sums), error(norms[:, None] * lengths + abs(b), terms + 1.0)
    return sums + b, radius, terms, own, c, norms


def _facts_of(
    block: Block, which: Any, c: Any, norms: Any, W: Array, b: Any, lengths: Any, column: float
) -> tuple[Array, float, Array, Array, int]:
    """Return sums of `Facts` over a block: numbers, the largest ‖A_i‖, sums for each class, V, and the number of rows."""
    s, radius, terms, own, c, norms = _enclosed(block, which, W, c, norms, b, lengths)
    xp, found = namespace(s), weights_of(s, radius, own, c)
    sizes, used = norms + column, (found.signed != 0).any(1)
    by_class, drift = found.drifts(s, sizes)
    numbers = (
        losses_above(s, radius * dense_slack(block.d, terms, CLAIM), own, c),
        found.paid,
        xp.where(used, xp.where(own, found.signed, 0.0).sum(1) * sizes, 0.0),
        xp.where(c > 0, c * norms, 0.0),
        used + 0.0 * c,
        *drift,
    )
    classes = *found.masses(own, c), by_class, xp.where(own, c[:, None], 0.0)
    longest = float(block.to_host(xp.where(used, sizes, 0.0).max()))
    v = np.vstack((block.to_host(block.combined(found.signed)), block.to_host(added(found.signed))))
    return block.to_host(added(xp.stack(numbers, 1))), longest, block.to_host(xp.stack([*map(added, classes)])), v, len(s)


def _balances(
    block: Block, which: Any, c: Any, norms: Any, W: Array, b: Any, lengths: Any, column: float
) -> tuple[Array, Array, Array, int]:
    """Return the numbers of `ClassBalance` for a block, its masses and products, and the number of rows."""
    s, radius, _, own, c, norms = _enclosed(block, which, W, c, norms, b, lengths)
    xp, found = namespace(s), weights_of(s, radius, own, c)
    masses = block.to_host(xp.stack([*map(added, found.masses(own, c))]))
    return block.to_host(found.numbers(s, c)), masses, block.to_host(found.products(c)), len(s)


def smallest_spanning_tree_edge(products: Array) -> float:
    """Return the smallest edge of a maximum spanning tree over all classes, by Prim's algorithm."""
    link, weakest = products[0].copy(), math.inf
    link[0] = -math.inf
    for _ in range(len(products) - 1):
        nearest = int(np.argmax(link))
        weakest = min(weakest, float(link[nearest]))
        joined = np.isinf(link)
        link = np.maximum(link, products[nearest])
        link[joined] = -math.inf
        link[nearest] = -math.inf
    return weakest


def balancing(S: Array, labels: Array, c: Array) -> Array:
    """Return b of sum 0 with Σ c softmax(s + b) ≈ Σ c e_y, found by Newton's method as precisely as rounding allows."""
    n, k = S.shape
    b, mass = np.zeros(k), np.bincount(labels, weights=c, minlength=k)
    best, least = b, math.inf
    for _ in range(30):
        parts = over_rows(lambda lo, hi, b=b: _excess(S[lo:hi] + b, labels[lo:hi], c[lo:hi]), n, k)  # type: ignore[misc]
        g, H = (np.sum(each, axis=0) for each in zip(*parts, strict=True))
        size = float(np.max(np.abs(g)))
        if not size < least:
            break
        best, least = b, size
        if size <= BALANCED * float(np.min(mass)):
            break
        s = balancing_step(g, H)
        if not np.isfinite(s).all():
            break
        b = b + s
    return np.asarray(best - np.mean(best))


def _excess(S: Array, labels: Array, c: Array) -> tuple[Array, Array]:
    """Return Σ c (softmax(s) - e_y) over some rows, and its derivative in a b that is added to all scores."""
    every, Q = np.arange(len(S)), softmax(S)
    weighted = c[:, None] * Q
    H = np.diag(weighted.sum(axis=0)) - weighted.T @ Q
    # minus the weights of the other classes: c minus the own weight would lose the digits of a small difference
    weighted[every, labels] = 0.0
    weighted[every, labels] = -weighted.sum(axis=1)
    return weighted.sum(axis=0), H
