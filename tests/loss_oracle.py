"""Least values and minimizers of regularized losses without rounding, by methods that share nothing with the package.

Hinge and squared hinge: rational numbers, all active sets one after the other, accepted by the conditions of optimality.
Logistic loss: Newton's method with 400 bits, and then balls that hold the truth. Every comparison of a ball with a number is true
only if it is certain, so that `violates` never blames a bound without cause.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq, fmpq_mat

BITS = 400


def exact(x: Any) -> fmpq:
    """A finite float as a rational number."""
    return fmpq(*float(x).as_integer_ratio())


def to_float(x: fmpq) -> float:
    """The nearest float; infinite beyond all of them."""
    try:
        return float(Fraction(int(x.p), int(x.q)))
    except OverflowError:
        return math.copysign(math.inf, 1 if x > 0 else -1)


def certainly_above(x: Any, bound: float) -> bool:
    """Whether x > bound, for a rational number or a ball."""
    if math.isinf(bound):
        return bound < 0
    return bool(x > (exact(bound) if isinstance(x, fmpq) else arb(bound)))


def violates(x: Any, low: float, high: float) -> bool:
    """Whether x is outside of [low, high], for certain; NaN holds nothing."""
    if math.isnan(low) or math.isnan(high):
        return True
    return certainly_above(x, high) or certainly_above(-x, -low)


@dataclass(frozen=True)
class Data:
    """½‖w‖² + Σ c ℓ(y(x·w + b)) with rational numbers; rows of weight 0 are gone. `kind` is that of the intercept."""

    X: list[list[fmpq]]
    y: list[int]
    c: list[fmpq]
    loss: str
    kind: str

    @staticmethod
    def of(X: Any, signs: Any, c: Any, loss: str, kind: str) -> Data:
        kept = [i for i in range(len(c)) if c[i] > 0]
        rows = np.asarray(X, dtype=np.float64)
        return Data(
            [[exact(x) for x in rows[i]] for i in kept],
            [int(signs[i]) for i in kept],
            [exact(c[i]) for i in kept],
            loss,
            kind,
        )

    @property
    def number(self) -> Any:
        """What numbers are: balls where logarithms are needed."""
        return (lambda x: arb(x)) if self.loss == "logistic" else (lambda x: x)

    @property
    def d(self) -> int:
        """Entries of what is penalized."""
        return len(self.X[0]) + (self.kind == "penalized")

    @property
    def A(self) -> list[list[fmpq]]:
        """y x, or y (x, 1) for a penalized intercept."""
        more = [fmpq(1)] if self.kind == "penalized" else []
        return [[y * v for v in [*x, *more]] for x, y in zip(self.X, self.y, strict=True)]

    def scores(self, v: list[Any], b: Any) -> list[Any]:
        """z; v has b as its last entry where that is penalized."""
        free = [y * b if self.kind == "free" else 0 for y in self.y]
        return [sum((a * e for a, e in zip(row, v, strict=True)), start=extra) for row, extra in zip(self.A, free, strict=True)]

    def value(self, v: list[Any], b: Any) -> Any:
        """P."""
        total = sum((e * e for e in v), start=fmpq(0)) / 2
        for z, c in zip(self.scores(v, b), self.c, strict=True):
            total = total + c * self._cost(z)
        return total

    def _cost(self, z: Any) -> Any:
        if self.loss == "logistic":
            z = arb(z)
            small = arb(0, arb(2) ** -100000) if abs(z) > 10**5 else (-abs(z)).exp().log1p()  # e^-|z| is less than that
            return small + (abs(z) - z) / 2
        short = max(1 - z, fmpq(0))
        return short if self.loss == "hinge" else short * short

    def combination(self, alpha: list[Any]) -> list[Any]:
        """Aᵀα."""
        return [sum((a * row[j] for a, row in zip(alpha, self.A, strict=True)), start=fmpq(0)) for j in range(self.d)]

    def dual(self, alpha: list[fmpq]) -> tuple[Any, list[Any]]:
        """D and Aᵀα of these weights, those of the heavier class divided by the ratio of masses where b is free."""
        if self.kind == "free":
            masses = {side: sum((a for a, y in zip(alpha, self.y, strict=True) if y == side), start=fmpq(0)) for side in (1, -1)}
            heavy = max(masses, key=lambda side: masses[side])
            t = masses[-heavy] / masses[heavy] if masses[heavy] else fmpq(0)
            alpha = [a * t if y == heavy else a for a, y in zip(alpha, self.y, strict=True)]
        assert all(a >= 0 and (self.loss == "squared_hinge" or a <= c) for a, c in zip(alpha, self.c, strict=True))
        v = self.combination(alpha)
        total = -sum((e * e for e in v), start=fmpq(0)) / 2
        for a, c in zip(alpha, self.c, strict=True):
            total = total + self._paid(a, c)
        return total, v

    def _paid(self, a: fmpq, c: fmpq) -> Any:
        if self.loss == "hinge":
            return a
        if self.loss == "squared_hinge":
            return a - a * a / (4 * c)
        if a in (0, c):
            return arb(0)
        share = a / c
        return -c * (share * arb(share).log() + (1 - share) * arb(1 - share).log())


@dataclass(frozen=True)
class Minimum:
    """The least value, the w* (with b* where that is penalized), and all b* there are: low ≤ b* ≤ high."""

    value: Any
    v: list[Any]
    low: Any
    high: Any
    alpha: list[Any]

    def score(self, x: list[fmpq], kind: str) -> tuple[Any, Any]:
        """x·w* + b*, least and most."""
        z = sum((a * e for a, e in zip(x, self.v, strict=False)), start=self.v[-1] if kind == "penalized" else fmpq(0))
        return (z + self.low, z + self.high) if kind == "free" else (z, z)


def minimum(data: Data, near: tuple[Any, float] | None = None) -> Minimum | None:
    """The exact minimum. Logistic: within balls, from a plane that is `near`; None where Newton's method does not end."""
    if data.loss == "logistic":
        assert near is not None
        with ctx.workprec(BITS):
            return _logistic(data, *near)
    return _hinge(data) if data.loss == "hinge" else _squared(data)


def _solve(entries: list[list[fmpq]], right: list[fmpq]) -> list[fmpq] | None:
    matrix = fmpq_mat(len(entries), len(entries), [e for row in entries for e in row])
    try:
        solution = matrix.solve(fmpq_mat(len(right), 1, right))
    except ZeroDivisionError:
        return None
    return [solution[i, 0] for i in range(len(right))]


def _dot(x: list[Any], y: list[Any]) -> Any:
    return sum((a * b for a, b in zip(x, y, strict=True)), start=fmpq(0))


def _hinge(data: Data) -> Minimum:
    """Rows are beyond the margin (α = 0), short of it (α = C) or on it; the latter are independent for some optimal α."""
    A, y, c, n, free = data.A, data.y, data.c, len(data.y), data.kind == "free"
    gram = [[_dot(A[i], A[j]) for j in range(n)] for i in range(n)]
    for sides in itertools.product((2, 1, 0), repeat=n):
        on, short = [i for i in range(n) if sides[i] == 1], [i for i in range(n) if sides[i] == 2]
        if len(on) > data.d + free:
            continue
        missing = -sum((c[i] * y[i] for i in short), start=fmpq(0))
        alpha = [c[i] if sides[i] == 2 else fmpq(0) for i in range(n)]
        b: fmpq | None = fmpq(0)
        if on:
            entries = [[gram[i][j] for j in on] + [fmpq(y[i])] * free for i in on]
            right = [1 - sum((c[j] * gram[i][j] for j in short), start=fmpq(0)) for i in on]
            if free:
                entries.append([fmpq(y[j]) for j in on] + [fmpq(0)])
                right.append(missing)
            solution = _solve(entries, right)
            if solution is None:
                continue
            for i, a in zip(on, solution, strict=False):
                alpha[i] = a
            b = solution[-1] if free else b
        elif free:
            if missing != 0:
                continue
            b = None
        if any(a < 0 or a > cap for a, cap in zip(alpha, c, strict=True)):
            continue
        v = data.combination(alpha)
        ends = _flat(data, v) if free else (fmpq(0), fmpq(0))
        z = data.scores(v, ends[0] if b is None else b)
        if all((z[i] <= 1 or sides[i] != 2) and (z[i] >= 1 or sides[i] != 0) for i in range(n)):
            value = data.value(v, ends[0])
            assert value == data.value(v, ends[1]) == data.dual(alpha)[0]
            return Minimum(value, v, *ends, alpha)
    raise AssertionError("some active set is optimal")


def _flat(data: Data, v: list[fmpq]) -> tuple[fmpq, fmpq]:
    """Where the hinge is least in b: it is convex, and linear between the points where a row meets z = 1."""
    turns = [y - _dot(x, v) for x, y in zip(data.X, data.y, strict=True)]
    rows = [*zip(turns, data.y, data.c, strict=True)]

    def slope(b: fmpq, right: bool) -> fmpq:
        rising = sum((c for t, y, c in rows if y < 0 and (t < b or (right and t == b))), start=fmpq(0))
        return rising - sum((c for t, y, c in rows if y > 0 and (t > b or (not right and t == b))), start=fmpq(0))

    return min(t for t in turns if slope(t, True) >= 0), max(t for t in turns if slope(t, False) <= 0)


def _squared(data: Data) -> Minimum:
    A, y, c, n, free = data.A, data.y, data.c, len(data.y), data.kind == "free"
    rows = [[*a, fmpq(sign)] if free else a for a, sign in zip(A, y, strict=True)]
    for size in range(n, -1, -1):
        for active in itertools.combinations(range(n), size):
            if free and not size:
                continue
            k = data.d + free
            entries = [
                [
                    fmpq(int(i == j and i < data.d)) + 2 * sum((c[r] * rows[r][i] * rows[r][j] for r in active), start=fmpq(0))
                    for j in range(k)
                ]
                for i in range(k)
            ]
            solution = _solve(entries, [2 * sum((c[r] * rows[r][i] for r in active), start=fmpq(0)) for i in range(k)])
            if solution is None:
                continue
            v, b = (solution[:-1], solution[-1]) if free else (solution, fmpq(0))
            z = data.scores(v, b)
            if all(z[i] <= 1 if i in active else z[i] >= 1 for i in range(n)):
                alpha = [2 * c[i] * max(1 - z[i], fmpq(0)) for i in range(n)]
                value = data.value(v, b)
                assert value == data.dual(alpha)[0]
                return Minimum(value, v, b, b, alpha)
    raise AssertionError("some active set is optimal")


def _sigmoid(z: arb) -> arb:
    """1/(1 + eᶻ)."""
    if abs(z) > 10**5:
        small = arb(0, arb(2) ** -100000)
        return small if z > 0 else 1 - small
    return 1 / (1 + z.exp()) if z < 0 else (-z).exp() / (1 + (-z).exp())


def _logistic(data: Data, w: Any, b: float) -> Minimum | None:
    free = data.kind == "free"
    rows = [[*a, fmpq(sign)] if free else a for a, sign in zip(data.A, data.y, strict=True)]
    k = data.d + free
    x = [arb(float(e)) for e in [*w, *([b] if data.kind != "none" else [])]]
    for _ in range(60):
        z = [arb(_dot_balls(row, x).mid()) for row in rows]
        a = [c * _sigmoid(t) for c, t in zip(data.c, z, strict=True)]
        bend = [t * _sigmoid(-s) for t, s in zip(a, z, strict=True)]
        gradient = [
            (x[j] if j < data.d else arb(0)) - sum((t * row[j] for t, row in zip(a, rows, strict=True)), start=arb(0))
            for j in range(k)
        ]
        matrix = arb_mat(
            k,
            k,
            [
                arb(int(i == j and i < data.d))
                + sum((h * row[i] * row[j] for h, row in zip(bend, rows, strict=True)), start=arb(0))
                for i in range(k)
                for j in range(k)
            ],
        )
        try:
            step = matrix.solve(arb_mat(k, 1, gradient))
        except ZeroDivisionError:
            return None
        x = [(x[j] - step[j, 0]).mid() for j in range(k)]
        size = max(abs(float(e.mid())) for e in x) or 1.0
        if not all(math.isfinite(float(e)) for e in x):
            return None
        if max(abs(float(step[j, 0].mid())) for j in range(k)) <= 2.0**-180 * size:
            break
    else:
        return None
    v, b = (x[:-1], x[-1]) if free else (x, arb(0))
    alpha = [exact_mid(c * _sigmoid(arb(t.mid()))) for c, t in zip(data.c, data.scores(v, b), strict=True)]
    alpha = [min(t, c) for t, c in zip(alpha, data.c, strict=True)]
    value, (dual, _) = data.value(v, b), data.dual(alpha)
    gap = (value - dual).upper()
    if not gap < abs(value) * arb(2) ** -120:
        return None
    radius = (2 * gap).sqrt().upper() if gap > 0 else arb(0)
    v = [arb(e.mid(), radius) for e in v]
    low = high = arb(0)
    if free:
        low = high = _free_intercept(data, v, b.mid(), radius)
        if low is None:
            return None
    return Minimum(dual.union(value), v, low, high, alpha)


def _free_intercept(data: Data, v: list[arb], b: arb, radius: arb) -> arb | None:
    """b* by the signs of slopes on both sides of b."""
    for k in range(140, 20, -10):
        width = (abs(b) + 1) * arb(2) ** -k
        ends = []
        for end in (b - width, b + width):
            z = data.scores(v, end)
            ends.append(-sum((y * c * _ball_sigmoid(t) for y, c, t in zip(data.y, data.c, z, strict=True)), start=arb(0)))
        if ends[0] < 0 < ends[1]:
            return (b - width).union(b + width)
    return None


def _ball_sigmoid(z: arb) -> arb:
    return _sigmoid(z.lower()).union(_sigmoid(z.upper()))


def _dot_balls(row: list[fmpq], x: list[arb]) -> arb:
    return sum((e * a for a, e in zip(row, x, strict=True)), start=arb(0))


def exact_mid(x: arb) -> fmpq:
    """The middle of a ball as a rational number."""
    m, e = x.mid().man_exp()
    if e < -(10**5):  # left out: some weight will do
        return fmpq(0)
    return fmpq(int(m)) * (fmpq(2) ** int(e) if e >= 0 else fmpq(1, 2 ** -int(e)))
