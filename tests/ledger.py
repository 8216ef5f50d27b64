"""Recompute from the raw rows everything a trace claims, and check every bound at every recorded round.

The checker keeps its own sums of the moves (it sees them through the callback) and never uses what the loop added up.
"""

from __future__ import annotations

import math

import numpy as np
from problems import p_norm
from scipy.special import logsumexp

import gordan
from gordan.geometry import Simplex, dual_exponent
from gordan.methods.registry import Moves


def tail_mean(scores, caps, mass):
    """min of p·scores over 0 ≤ p ≤ caps, Σp = mass, by filling from below."""
    total, left = 0.0, mass
    for i in np.argsort(scores, kind="stable"):
        share = min(left, caps[i])
        total += share * scores[i]
        left -= share
        if left <= 0:
            break
    return total


def lowest(scores, caps=None, halves=None):
    """min_{p∈P} p·scores, from the definition."""
    groups = [np.arange(len(scores))] if halves is None else [np.flatnonzero(np.asarray(halves) == h) for h in (0, 1)]
    mass = 1 / len(groups)
    if caps is None:
        return sum(mass * scores[g].min() for g in groups)
    return sum(tail_mean(scores[g], caps[g], mass) for g in groups)


def ends(method, A, **sets):
    """What w and p say about the margin that a method plays for, as functions: of its own norm, and under its noise, if any."""
    p_set, q = Simplex(len(A), **sets), dual_exponent(method.norm)
    cost, rest = under(method.on(gordan.rows.of(A), p_set, p_set.centre).game.noise)

    def lower(w):
        length = p_norm(w, q)
        return (lowest(A @ w, **sets) - cost(w)) / length if length > 0 else 0.0

    return lower, lambda p: p_norm(rest(A.T @ p), method.norm)


def under(noise):
    """What the noise of a game costs w, and what it leaves of Aᵀp; nothing and all of it where there is none."""
    if noise is None:
        return lambda w: 0.0, lambda c: c
    return lambda w: noise.radius * p_norm(w, dual_exponent(noise.q)), lambda c: c - noise.project(c)


def log_n(n, nu=None, halves=None):
    """What takes the place of log n: log n, log(1/ν), ½(log n₊ + log n₋), or the last two together."""
    sizes = [n] if halves is None else [int(np.sum(np.asarray(halves) == h)) for h in (0, 1)]
    per_half = [math.log(len(sizes) * size / (nu * n)) if nu else math.log(size) for size in sizes]
    return sum(per_half) / len(sizes)


class Ledger:
    """Plays a method on rows of norm ≤ 1 and checks each recorded round against all that the method declares; `worst` is the
    largest share of a bound that was used.

    `gap(t)` is the bound where it is not the guarantee's, because it depends on more of the rows than D: by default that of the
    form, which knows them. `gamma` is the margin that the method plays for, under noise if it does; None where it is not known.
    """

    def __init__(self, X, A, method, *, gamma, nu=None, halves=None, slack=1e-9, relative=0.0, gap=None):
        self.X, self.A, self.method, self.gamma, self.halves = X, np.asarray(A, dtype=np.float64), method, gamma, halves
        self.caps = None if nu is None else np.full(len(self.A), 1 / (nu * len(self.A)))
        self.D = max(log_n(len(self.A), nu, halves), math.log(2))
        self.norm, self.q = method.norm, dual_exponent(method.norm)
        p_set = Simplex(len(self.A), caps=self.caps, halves=halves)
        form, stated = method.on(gordan.rows.of(self.A), p_set, p_set.centre), method.guarantee.gap
        self.regularized, (self.cost, self.rest) = bool(form.game.curvature), under(form.game.noise)
        own = getattr(form, "bound", None) if stated is None else lambda t: stated(t, self.D)
        self.gap = own if gap is None else gap
        self.separated = False
        self.slack, self.relative = slack, relative
        self.S = self.value = self.penalties = self.moves = self.p_moves = self.w_moves = 0.0
        self.w_sum, self.p_sum = np.zeros(self.A.shape[1]), np.zeros(len(self.A))
        self.p_last = None
        self.w_last = np.zeros(self.A.shape[1])
        self.worst = 0.0

    def below(self, value, bound, what):
        """value ≤ bound, up to the tolerance that the promises state."""
        assert value <= bound + self.slack + self.relative * abs(bound), f"{what}: {value!r} > {bound!r} at t={self.t}"

    def used(self, value, bound, what):
        """The same; and how much of the bound was used is noted."""
        self.below(value, bound, what)
        self.worst = max(self.worst, value / bound)

    def penalty(self, w):
        return (0.5 * p_norm(w, self.q) ** 2 if self.regularized else 0.0) + self.cost(w)

    def check(self, rounds, checked=None):
        """Play and check every round from the moves; in long runs only the rounds in `checked`, trusting the sums of the loop."""
        self.every = checked is None
        record = range(1, rounds + 1) if self.every else checked
        sets = {"caps": self.caps, "halves": self.halves}
        trace = gordan.play(self.X, self.method, rounds, record=record, callback=self.see, **sets)
        assert trace.status in ("rounds", "finished")
        return trace

    def see(self, moment):
        self.t, A = moment.t, self.A
        # the output's margin and the bracket, from the raw rows
        scores = A @ moment.w_out
        length = p_norm(moment.w_out, self.q)
        margin = lowest(scores, self.caps, self.halves)
        self.same(moment.margin, margin, scale=max(1.0, length))
        normalized = (margin - self.cost(moment.w_out)) / length if length > 0 else 0.0
        # where w̄ has all but cancelled, the rounding of its scores is divided by its length
        self.same(moment.normalized_margin, normalized, scale=max(1.0, 1e-6 / length) if length > 0 else 1.0)
        if self.gamma is not None:
            self.below(moment.lower, self.gamma, "lower bound above the margin")
            self.below(self.gamma, moment.upper, "upper bound below the margin")
        self.below(moment.lower, moment.upper, "bracket")
        reached = p_norm(self.rest(A.T @ moment.p_bar), self.norm)
        assert moment.upper <= reached + self.slack + self.relative
        guarantee = self.method.guarantee
        if guarantee.upper is not None:
            self.used(reached, guarantee.upper(moment.t), "mistakes")
        if guarantee.unseparated is not None and self.every and not self.separated:
            self.used(p_norm(A.T @ moment.p, self.norm), guarantee.unseparated(moment.t), "while nothing separates")
        self.separated |= normalized > 0
        if guarantee.margin is not None and self.gamma:
            self.below(guarantee.margin(moment.t, self.D, self.gamma), normalized, "normalized margin")
        if moment.w is None:
            return
        if self.every:
            self.add(moment)
            self.game(moment, guarantee)
        average = (moment.regret_w + moment.regret_p) / moment.weight
        self.below(moment.dual - moment.m, average, "the dual twin of Theorem 1")
        if self.gap is not None:
            bound = self.gap(moment.t)
            self.same(moment.bound, bound, scale=max(1.0, bound))
            self.used(moment.dual - moment.m, bound, "gap")
            self.below(average, bound, "average regret")

    def add(self, moment):
        """One more round in our own sums of the moves."""
        A, w, p = self.A, moment.w, moment.p
        alpha = moment.weight - self.S
        if self.p_last is None:
            self.p_last = centre(len(A), self.caps, self.halves)
        combination = A.T @ p
        self.S = moment.weight
        self.value += alpha * (combination @ w - self.penalty(w))
        self.penalties += alpha * self.penalty(w)
        self.w_sum += alpha * w
        self.p_sum += alpha * p
        self.p_moves += np.abs(p - self.p_last).sum() ** 2
        self.w_moves += moment.t * (moment.t - 1) / 4 * np.linalg.norm(w - self.w_last) ** 2
        self.moves += moment.t**2 / 8 * np.abs(A @ (w - self.w_last)).max() ** 2
        self.p_last, self.w_last = p, w

    def game(self, moment, guarantee):
        """Regrets, Theorem 1 and its twin, and the method's own bounds, from the moves alone."""
        A = self.A
        w_bar, p_bar = self.w_sum / self.S, self.p_sum / self.S
        low = lowest(A @ w_bar, self.caps, self.halves)
        length = p_norm(self.rest(A.T @ p_bar), self.norm)
        m, dual = low - self.penalty(w_bar), 0.5 * length**2 if self.regularized else length
        regret_w = self.S * dual - self.value
        regret_p = self.value - (self.S * low - self.penalties)
        scale = max(1.0, self.S)
        self.same(moment.m, m)
        self.same(moment.dual, dual)
        self.same(moment.regret_w, regret_w, scale)
        self.same(moment.regret_p, regret_p, scale)
        # Theorem 1 for comparators, and its dual twin
        average = (regret_w + regret_p) / self.S
        for comparator in self.comparators(w_bar):
            value = lowest(A @ comparator, self.caps, self.halves) - self.penalty(comparator)
            self.below(value - m, average, "Theorem 1")
        self.below(dual - m, average, "the dual twin of Theorem 1")
        if self.regularized and self.norm == 2 and self.gap is not None:
            L = max(0.0, (low - self.cost(w_bar)) / np.linalg.norm(w_bar)) if np.any(w_bar) else 0.0
            self.below(0.5 * (length**2 - L**2), dual - m, "½(U² - L²) ≤ gap")
        # the method's theorem
        if self.gap is not None:
            bound = self.gap(moment.t)
            self.below(dual - m, bound, "gap")
            self.below(average, bound, "average regret")
        if guarantee.regrets is not None:
            bounds = guarantee.regrets(self.D, Moves(self.p_moves, self.w_moves, self.moves))
            slack = 1e-15 * self.S * len(A)  # regrets are differences of sums of size S
            for regret, bound, whose in zip((regret_w, regret_p, regret_w + regret_p), bounds, bounds._fields, strict=True):
                if bound < math.inf:
                    self.below(regret, bound + slack, f"regret of {whose}")
        if guarantee.length is not None and self.gamma:
            least = guarantee.length(moment.t, self.gamma)
            self.below(least, p_norm(moment.w_out, self.q) * (1 + 1e-12), "the length of the output")

    def comparators(self, w_bar):
        rng = np.random.default_rng(self.t)
        w = rng.standard_normal(len(w_bar))
        yield w / p_norm(w, self.q)
        yield 0.3 * w / p_norm(w, self.q)
        if np.any(w_bar):
            yield w_bar / p_norm(w_bar, self.q)

    def same(self, claimed, recomputed, scale=1.0):
        tolerance = (self.slack + self.relative) * scale
        assert abs(claimed - recomputed) <= tolerance, f"{claimed!r} claimed, {recomputed!r} recomputed at t={self.t}"


def centre(n, caps, halves):
    """p_0, from its definition: proportional to the caps, or uniform, within each half."""
    p = np.ones(n) if caps is None else np.array(caps)
    groups = [np.arange(n)] if halves is None else [np.flatnonzero(np.asarray(halves) == h) for h in (0, 1)]
    for g in groups:
        p[g] /= len(groups) * p[g].sum()
    return p


def psi_mu(A, v, mu):
    """min_q qᵀAv + μ D_E(q, 1/n) - ½‖v‖², in closed form."""
    return -mu * (logsumexp(-A @ v / mu) - math.log(len(A))) - 0.5 * v @ v
