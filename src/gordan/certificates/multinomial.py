"""What planes of several classes prove about the least multinomial loss, and where its exact minimizer is.

P(W, b) = ½‖W‖² + Σ C_i (log Σ_c e^{s_ic} - s_iy), s_i = Wᵀx_i + b, in the Frobenius norm, with b as a further row of W where
the intercept is penalized. A row has a weight α_ic ≥ 0 for each class, of sum C_i: with q_i = α_i/C_i, H the entropy and V = Σ
x_i (C_i e_y - α_i)ᵀ, D(α) = Σ C_i H(q_i) - ½‖V‖² is at most the minimum P*, and P - D = ½‖W - V‖² + Σ C_i KL(q_i‖softmax(s_i)).
A free intercept needs Σ α_i = N besides, N_c = Σ C_i over the rows of class c. As in `losses`, nobody needs to be believed: the
weights are floats that follow from W, all but the largest of each row, which stands for C_i less the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import add
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.certificates import bounds, elementary
from gordan.certificates.bounds import TINY, U, down, up
from gordan.certificates.data import Certificate
from gordan.certificates.losses import LEAST, Drift, Optimum, dense_slack, row_constants, sum_below
from gordan.certificates.matrix import Matrix, error
from gordan.certificates.problem import Problem
from gordan.floats import ieee_floats
from gordan.intercepts import Intercept
from gordan.losses import Loss

# Scores that are worked on at a time, so that they stay in the cache.
BLOCK = 1 << 15
ROOT2 = 1.4142135623730954  # not below √2


class Scores(NamedTuple):
    """X W as computed, what the norms of the columns of W and |x_i|·max_c|w_c| are at most, and the additions that a term goes
    through: for each row, or one number for all."""

    sums: Array
    lengths: Array
    absolute: Array
    terms: Array

    @staticmethod
    def of(X: Matrix, W: Array) -> Scores:
        """One pass over X; none if it was made for the same W just before."""
        found: Scores = X.remembered("block of products", W, lambda: Scores._computed(X, W.copy()))
        return found

    @staticmethod
    def _computed(X: Matrix, W: Array) -> Scores:
        with np.errstate(over="ignore", invalid="ignore"):
            (sums, terms), absolute = X.products(W), X.absolute(np.max(np.abs(W), axis=1))
        lengths = np.array([bounds.norm_bound(np.abs(column), 2.0, dual=False) for column in W.T])
        return Scores(sums, lengths, absolute[:, None], terms[:, None] if terms.ndim else terms)

    def enclosed(self, X: Matrix, b: Any, part: slice) -> tuple[Array, Array]:
        """x_i·w_c + b_c as computed for these rows, and what it is off by at most."""
        with np.errstate(over="ignore", invalid="ignore"):
            terms = self.terms[part] if self.terms.ndim else self.terms
            absolute = np.fmin(X.norms[part, None] * self.lengths, self.absolute[part])  # of badly scaled columns far less
            return self.sums[part] + b, error(absolute + np.abs(b), terms + 1.0)


class Weights(NamedTuple):
    """The weights of some rows, Σ of those that are not the largest, C e_y - α in floats, what C H is at least, and which is the
    largest; and how far each weight may be, as a share, from that of a checker whose sums are in another order."""

    alpha: Array
    others: Array
    signed: Array
    paid: Array
    largest: Array
    drift: Array


@dataclass(frozen=True, eq=False)
class Multinomial:
    """The P of this data: `which` of the k classes each row has, and `c` holds C_i, of which some may be 0."""

    X: Matrix
    which: Array
    k: int
    c: Array
    intercept: Intercept = Intercept.FREE
    loss: Loss = field(default=Loss.MULTINOMIAL, init=False)

    @staticmethod
    def of(problem: Problem, certificate: Certificate) -> Multinomial:
        """The one that a certificate is about."""
        c = certificate
        assert c.C is not None
        which = problem.which_for(c.classes)
        sample = None if c.sample_weight is None else np.array(c.sample_weight, dtype=np.float64)
        factors = None if c.class_weight is None else np.array(c.class_weight, dtype=np.float64)
        return Multinomial(problem.X, which, len(c.classes), row_constants(c.C, sample, factors, which), Intercept(c.intercept))

    @property
    def shape(self) -> tuple[int, ...]:
        """That of W."""
        return self.X.d, self.k

    def trouble(self) -> str:
        """Why there is no such minimum; empty if there is one."""
        if not ((self.c >= 0) & np.isfinite(self.c)).all():
            return "C, or C times a weight, is negative or not finite"
        if self.intercept.grouped and not np.bincount(self.which[self.c > 0], minlength=self.k).all():
            return "all rows of a class have weight zero, so that no b is the best"
        return ""

    @ieee_floats()
    def enclose(self, w: Array, b: Any, rows: Array, weights: Array, *, slack: float = 1.0, enough: object = None) -> Optimum:
        """The interval that W and b prove; `rows` are none, and `slack` is as for `Objective.enclose`."""
        assert not len(rows)
        scores, plane = Scores.of(self.X, w), np.vstack((w, b)) if self.intercept.in_norm else w
        n = self.X.n
        above, paid, signed = np.empty(n), np.empty(n), np.empty((n, self.k))
        mixed = np.zeros(self.k)  # Σ C over the rows whose largest weight is that of another class than their own
        moved, drift = np.zeros(self.k), Drift(0.0, 0.0, 0.0, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            wider = np.asarray(slack if slack == 1 else dense_slack(self.X.d, scores.terms, slack))
            for part in self._blocks():
                s, radius = scores.enclosed(self.X, b, part)
                own = wider[part] if wider.ndim else wider
                above[part] = self._losses_above(s, radius * own, part)
                found = self._weights(s, radius, part)
                signed[part], paid[part] = found.signed, found.paid
                wrong = found.largest != self.which[part]
                mixed += np.bincount(found.largest[wrong], weights=self.c[part][wrong], minlength=self.k)
                if slack != 1:
                    by_class, more = self._drift(found, s, part)
                    moved, drift = moved + by_class, Drift(*map(add, drift, more))
            upper = self._value_above(plane, above, slack)
            lower, v, off = self._dual_below(plane, b, signed, paid, mixed, slack, moved, drift)
        return Optimum(lower, upper, plane, v, off)

    def _blocks(self) -> list[slice]:
        step = max(1, BLOCK // self.k)
        return [slice(lo, min(lo + step, self.X.n)) for lo in range(0, self.X.n, step)]

    # ---- from W and b -----------------------------------------------------------------------------------------------

    def _losses_above(self, s: Array, radius: Array, part: slice) -> Array:
        """What C (log Σ e^{s_c} - s_y) is at most: it grows in all s_c - s_y. Σ e^{t - max t} is one and the others."""
        c, own = self.c[part], (np.arange(len(s)), self.which[part])
        t = np.nextafter((s + radius) - (s - radius)[own][:, None], np.inf)
        t[own] = 0.0
        top = t.max(axis=1)
        share = elementary.exp(np.minimum(np.nextafter(t - top[:, None], np.inf), 0.0)) * (1 + elementary.REL) + TINY
        share[own[0], t.argmax(axis=1)] = 0.0
        rest = share.sum(axis=1) * (1 + 2 * (self.k + 4) * U)
        loss = (top + elementary.log1p_above(rest)) * (1 + 4 * U)
        return np.where(c > 0, np.where(np.isfinite(t).all(axis=1), c * loss * (1 + 4 * U) + TINY, math.inf), 0.0)

    def _value_above(self, plane: Array, above: Array, slack: float) -> float:
        sums = 2 * bounds.GO * U
        length = bounds.norm_bound(np.abs(plane).ravel(), 2.0, dual=False)
        total = up(0.5 * length * length * (1 + 4 * U + (slack - 1) * sums))
        value = up(total + up(bounds.near_sum(above) * (1 + slack * sums)))
        return value if value < math.inf else math.inf  # NaN is no bound

    # ---- from the weights -------------------------------------------------------------------------------------------

    def _weights(self, s: Array, radius: Array, part: slice) -> Weights:
        """The weights that follow from scores: floats α = C e^s/Σe^s, of which the largest r stands for C - Σ_{c≠r} α_c.

        Σ of the others is off by a share ku. C e_y - α is off by ku of itself, but for the entry r ≠ y, C less that sum: by kuC,
        which is at most 2ku of the entry y. Entropy: α ln(C/α) for the others, where α/C ≤ ½, and for r at both ends of what
        C - Σ may be, since q ln q has one minimum.
        """
        c, k, own = self.c[part], self.k, self.which[part]
        line = np.arange(len(s))
        top = s.max(axis=1)
        e = np.exp(s - top[:, None])
        alpha = e / e.sum(axis=1)[:, None] * c[:, None]
        largest = s.argmax(axis=1)
        alpha[line, largest] = 0.0
        alpha[~(alpha >= LEAST)] = 0.0  # NaN too
        others = alpha.sum(axis=1)
        lost = ~((others * (1 + 2 * k * U) < c) & np.isfinite(top))
        alpha[lost], others[lost], largest[lost] = 0.0, 0.0, own[lost]
        right = largest == own
        share = np.divide(alpha, c[:, None], out=np.zeros_like(alpha), where=alpha > 0)
        used = share > elementary.LEAST_SHARE
        logs = np.where(used, alpha * elementary.neg_log(np.where(used, np.minimum(share, 0.5), 0.5)), 0.0)
        x = np.divide(others, c, out=np.zeros_like(others), where=others > 0)
        ends = (x * (1 - (2 * k + 8) * U), np.minimum(x * (1 + (2 * k + 8) * U), 1.0))
        last = np.minimum(*map(elementary.complement_below, ends))
        paid = (logs.sum(axis=1) * (1 - elementary.REL_TWO) + c * last) * (1 - 2 * (k + 8) * U)
        signed = -alpha
        signed[line, largest] -= np.where(right, 0.0, c - others)
        signed[line, own] += np.where(right, others, c)
        alpha[line, largest] = c - others
        spread = np.minimum((top - s.min(axis=1)), 800.0)
        with np.errstate(invalid="ignore"):
            drift = np.expm1(4 * radius.max(axis=1)) + (2 * spread + 4 * k + 32) * U
        return Weights(alpha, others, signed, np.maximum(paid, 0.0), largest, np.where(others > 0, drift, 0.0))

    def _drift(self, found: Weights, s: Array, part: slice) -> tuple[Array, Drift]:
        """Σ|Δα| for each class, and the whole of it, where each α_c is off by a share ρ: the others by ρ of their sum, and so the
        largest. KL(q'‖softmax(s)) is at most Σ|Δq||Δ log q|, 2ρ in place of each."""
        used = found.drift > 0
        rho, others = found.drift[used] * (1 + 16 * U), found.others[used]
        moved, sizes = 2 * rho * others, self.X.norms[part][used] + self.intercept.in_norm
        spread = np.minimum(s.max(axis=1) - s.min(axis=1), 800.0)[used] + 2.0
        by_class = (rho[:, None] * np.minimum(found.alpha[used], others[:, None])).T
        each = [bounds.near_sum(np.ascontiguousarray(row)) * (1 + 4 * bounds.GO * U) for row in by_class]
        parts = moved, moved * sizes, moved * spread, 2 * moved * rho
        return np.array(each), Drift(*(bounds.near_sum(terms) * (1 + 4 * bounds.GO * U) for terms in parts))

    def _dual_below(
        self, plane: Array, b: Any, signed: Array, paid: Array, mixed: Array, slack: float, moved: Array, drift: Drift
    ) -> tuple[float, Array, float]:
        """What D is at least for these weights, V, and its error; nothing better than α = C e_y, if that is better.

        Where b is free the weights are mixed with one distribution for all rows: λ = max (1 - N_c/M_c)₊, M = Σ α_i, and q' =
        (1-λ)q + λr has Σ C q' = N for r = (N - (1-λ)M)/(λΣN), which is one. Entropy falls by a share λ at most, and V moves by
        λ√2 Σ C‖x‖ at most.
        """
        nothing = 0.0, np.zeros_like(plane), 0.0
        v, off = self._combined(signed)
        if not (np.isfinite(v).all() and math.isfinite(off) and np.isfinite(paid).all()):
            return nothing
        off, total = up(slack * off), sum_below(paid, slack)
        if self.intercept.grouped:
            surplus = self._surplus(signed, mixed, moved)
            if not surplus < 1:
                return nothing
            used = self.c > 0
            whole = ROOT2 * bounds.near_sum(self.c[used] * self.X.norms[used]) * (1 + 4 * slack * bounds.GO * U)
            total = down(total - up(surplus * up(max(total, 0.0))))
            cost = drift.cost + float(np.max(np.abs(b))) * drift.weights + surplus * drift.paid
            drift = drift._replace(cost=cost)
            off = up(off + up(surplus * up(whole)) if surplus > 0 else off)
        if slack != 1:
            away = bounds.norm_bound(np.abs(plane - v).ravel(), 2.0, dual=False)
            total -= (drift.lengths * (away + drift.lengths + 2 * off) + drift.cost) * (1 + 16 * U)
        length = up(bounds.norm_bound(np.abs(v).ravel(), 2.0, dual=False) + off)
        lower = down(total - up(0.5 * length * length * (1 + 4 * U)))
        return (lower, v, off) if LEAST <= lower < math.inf else nothing

    def _combined(self, signed: Array) -> tuple[Array, float]:
        """V as computed, and what it is off by at most in the 2-norm: rows of C e_y - α have one of √2 times the entry y."""
        v = self.X.remembered("block combination", signed, lambda: self.X.combination(signed))
        used = np.flatnonzero(signed.any(axis=1))
        sizes = self.X.norms[used]
        if self.intercept.in_norm:
            v, sizes = np.vstack((v, signed.sum(axis=0))), sizes + 1.0
        total = ROOT2 * bounds.near_sum(signed[used, self.which[used]] * sizes)
        lost = len(used) * TINY * self.k * (float(np.max(sizes, initial=0.0)) + self.X.d + 1.0)
        return v, 2 * U * (len(used) + 4 * self.k + 2 * bounds.GO) * total + lost

    def _surplus(self, signed: Array, mixed: Array, moved: Array) -> float:
        """What λ is at most: M_c - N_c is minus the sum of the column c of C e_y - α, and λ_c at most that over N_c."""
        worst = 0.0
        for c, (more, rounded) in enumerate(self._imbalance(signed, mixed)):
            more = up(up(more) + up(rounded + up(float(moved[c]))))
            if more > 0:
                mass = bounds.near_sum(np.where(self.which == c, self.c, 0.0)) * (1 - 4 * bounds.GO * U)
                worst = max(worst, up(more / mass) if mass > 0 else 1.0)
        return worst

    def _imbalance(self, signed: Array, mixed: Array) -> Iterator[tuple[float, float]]:
        """M_c - N_c for each class, and what it is off by at most."""
        share = 2 * U * (2 * bounds.GO + self.k + 4)
        for c in range(self.k):
            gains, losses = (bounds.near_sum(np.maximum(sign * signed[:, c], 0.0)) for sign in (-1.0, 1.0))
            yield gains - losses, up(share * (gains + losses) + 2 * (self.k + 4) * U * float(mixed[c]))

    @ieee_floats()
    def balance(self, w: Array, b: Array) -> tuple[float, float]:
        """ε = ½‖Σ C(q - e_y)‖₁ at most, and what Σ C q_T(1 - q_T) is at least for every set T of classes but none and all; q =
        softmax(Wᵀx + b), and its weights as computed are off by a share as for a checker's (`_weights`).

        That sum is one of Σ C q_j q_l over j in T and l outside, of which some is an edge of the tree with the largest ones.
        """
        scores, signed = Scores.of(self.X, w), np.empty((self.X.n, self.k))
        products, moved, mixed, worst = np.zeros((self.k, self.k)), 0.0, np.zeros(self.k), 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for part in self._blocks():
                s, radius = scores.enclosed(self.X, b, part)
                found = self._weights(s, radius, part)
                signed[part] = found.signed
                if not np.isfinite(s[self.c[part] > 0]).all():
                    return math.inf, 0.0
                wrong = found.largest != self.which[part]
                mixed += np.bincount(found.largest[wrong], weights=self.c[part][wrong], minlength=self.k)
                moved += float(np.sum(2 * found.drift * found.others)) + 2 * self.k * LEAST * len(s)
                worst = max(worst, float(np.max(found.drift)))
                c, alpha = self.c[part][:, None], found.alpha
                products += np.einsum("ij,il->jl", alpha, np.divide(alpha, c, out=np.zeros_like(alpha), where=c > 0))
        # the largest weight of a row is C/k at least, and off by kuC
        rounded = 4 * (self.X.n + 2 * self.k**2 + 8) * U
        least = down(_weakest_link(products) * (1 - 2 * worst) * (1 - rounded) - self.X.n * TINY)
        excess = sum(abs(more) + rounded for more, rounded in self._imbalance(signed, mixed))
        return up(0.5 * excess * (1 + 4 * self.k * U) + moved * (1 + 4 * self.X.n * U)), least if worst < 0.1 else 0.0


def _weakest_link(products: Array) -> float:
    """The least edge of a tree over all classes with the largest ones there are, by Prim's method."""
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
