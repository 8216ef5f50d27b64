"""The least multinomial loss and its minimizer in balls that hold the truth, by Newton's method with hundreds of bits; it
shares nothing with the package. Comparisons as in `loss_oracle`: nothing is blamed without certainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpq
from loss_oracle import exact, exact_mid


@dataclass(frozen=True)
class Classes:
    """½‖W‖² + Σ c (log Σ e^s - s_y), s = Wᵀx + b, with rational numbers; rows of weight 0 are gone. `kind` is that of the
    intercept."""

    X: list[list[fmpq]]
    y: list[int]
    k: int
    c: list[fmpq]
    kind: str

    @staticmethod
    def of(X: Any, which: Any, k: int, c: Any, kind: str) -> Classes:
        kept = [i for i in range(len(c)) if c[i] > 0]
        more = [] if kind == "none" else [fmpq(1)]
        rows = [[*(exact(x) for x in X[i]), *more] for i in kept]
        return Classes(rows, [int(which[i]) for i in kept], k, [exact(c[i]) for i in kept], kind)

    @property
    def d(self) -> int:
        """Rows of W, with b as the last one where there is an intercept."""
        return len(self.X[0])

    def counted(self, j: int) -> bool:
        """Whether row j of W is in the norm."""
        return self.kind != "free" or j < self.d - 1

    def scores(self, W: list[list[Any]]) -> list[list[Any]]:
        """s of each row."""
        return [[sum((a * W[j][m] for j, a in enumerate(x)), start=fmpq(0)) for m in range(self.k)] for x in self.X]

    def value(self, W: list[list[Any]]) -> arb:
        """P."""
        total = arb(sum((e * e for j, row in enumerate(W) if self.counted(j) for e in row), start=fmpq(0))) / 2
        for s, y, c in zip(self.scores(W), self.y, self.c, strict=True):
            total = total + c * log_sum([arb(e - s[y]) for e in s])
        return total

    def dual(self, q: list[list[fmpq]]) -> tuple[arb, list[list[fmpq]]]:
        """D and V of these points of the simplex, mixed with one of them where b is free."""
        assert all(sum(row, start=fmpq(0)) == 1 and min(row) >= 0 for row in q)
        if self.kind == "free":
            N = [sum((c for c, y in zip(self.c, self.y, strict=True) if y == m), start=fmpq(0)) for m in range(self.k)]
            M = [sum((c * row[m] for c, row in zip(self.c, q, strict=True)), start=fmpq(0)) for m in range(self.k)]
            share = max([fmpq(0), *(1 - n / m for n, m in zip(N, M, strict=True) if m > 0)])
            if share > 0:
                total = sum(N, start=fmpq(0))
                mix = [(n - (1 - share) * m) / total for n, m in zip(N, M, strict=True)]
                q = [[(1 - share) * e + r for e, r in zip(row, mix, strict=True)] for row in q]
        V = [
            [
                sum(
                    (c * x[j] * ((y == m) - row[m]) for x, y, c, row in zip(self.X, self.y, self.c, q, strict=True)),
                    start=fmpq(0),
                )
                for m in range(self.k)
            ]
            for j in range(self.d)
        ]
        assert self.kind != "free" or not any(V[-1])
        total = -arb(sum((e * e for row in V for e in row), start=fmpq(0))) / 2
        for c, row in zip(self.c, q, strict=True):
            for e in row:
                if e > 0:
                    total = total - c * (e * arb(e).log())
        return total, V


def log_sum(s: list[arb]) -> arb:
    """log Σ e^s, where e^-100000 and less is anything up to that."""
    top = max(range(len(s)), key=lambda m: float(s[m].mid()) if abs(float(s[m].mid())) < 1e300 else float(s[m].mid() > 0) * 1e300)
    rest = sum((power(e - s[top]) for m, e in enumerate(s) if m != top), start=arb(0))
    return s[top] + rest.log1p()


def power(x: arb) -> arb:
    """eˣ."""
    return arb(0, arb(2) ** -100000) if x < -(10**5) else x.exp()


def softmax(s: list[arb]) -> list[arb]:
    """e^s/Σ e^s."""
    total = log_sum(s)
    return [power(e - total) for e in s]


def rational(q: list[arb]) -> list[fmpq]:
    """Points near these balls that add up to 1."""
    found = [max(exact_mid(e), fmpq(0)) for e in q]
    top = max(range(len(found)), key=found.__getitem__)
    found[top] = 1 - sum((e for m, e in enumerate(found) if m != top), start=fmpq(0))
    return found


@dataclass(frozen=True)
class Least:
    """The least value, W* and b* as balls; of a free b* the one whose sum is 0."""

    value: arb
    W: list[list[arb]]
    b: list[arb]

    def scores(self, x: list[fmpq]) -> list[arb]:
        """x·W* + b*."""
        return [sum((a * row[m] for a, row in zip(x, self.W, strict=True)), start=self.b[m]) for m in range(len(self.b))]


def least(data: Classes, near: np.ndarray) -> Least | None:
    """The exact minimum within balls, from a W (with b as its last row) that is near; None where Newton's method does not end."""
    d, k = data.d, data.k
    W = [[arb(float(e)) for e in row] for row in near]
    for _ in range(60):
        gradient, H = _derivatives(data, W)
        try:
            step = H.solve(arb_mat(d * k, 1, gradient))
        except ZeroDivisionError:
            return None
        W = [[(W[j][m] - step[j * k + m, 0]).mid() for m in range(k)] for j in range(d)]
        size = max(abs(float(e)) for row in W for e in row)
        moved = max(abs(float(step[i, 0].mid())) for i in range(d * k))
        if not size < 1e300 or not moved < 1e300:
            return None
        if moved <= 2.0**-180 * (size or 1.0):
            break
    else:
        return None
    value = data.value(W)
    q = [rational(softmax([arb(arb(e).mid()) for e in s])) for s in data.scores(W)]
    dual, _ = data.dual(q)
    gap = (value - dual).upper()
    if not gap < abs(value) * arb(2) ** -120:
        return None
    radius = (2 * gap).sqrt().upper() if gap > 0 else arb(0)
    balls = [[arb(e.mid(), radius) for e in row] for row in W]
    b = balls[-1] if data.kind == "penalized" else [arb(0)] * k
    if data.kind == "free":
        found = _free(data, balls[:-1], W[-1])
        if found is None:
            return None
        mean = sum(found, start=arb(0)) / k
        b = [e - mean for e in found]
    return Least(dual.union(value), balls if data.kind == "none" else balls[:-1], b)


def _derivatives(data: Classes, W: list[list[arb]]) -> tuple[list[arb], arb_mat]:
    """The gradient, and the second derivatives, to which the square of the sum of a free b is added."""
    d, k = data.d, data.k
    gradient = [W[j][m] if data.counted(j) else arb(0) for j in range(d) for m in range(k)]
    H = [[arb(int(i == j and data.counted(i // k))) for j in range(d * k)] for i in range(d * k)]
    for x, y, c, s in zip(data.X, data.y, data.c, data.scores(W), strict=True):
        q = softmax([arb(arb(e).mid()) for e in s])
        for i in range(d):
            if x[i] == 0:
                continue
            for m in range(k):
                gradient[i * k + m] = gradient[i * k + m] + c * x[i] * (q[m] - (m == y))
                for j in range(d):
                    for o in range(k):
                        H[i * k + m][j * k + o] = H[i * k + m][j * k + o] + c * x[i] * x[j] * (q[m] * (m == o) - q[m] * q[o])
    if data.kind == "free":
        size = max(abs(float(H[i][i].mid())) for i in range((d - 1) * k, d * k))
        for i in range((d - 1) * k, d * k):
            for j in range((d - 1) * k, d * k):
                H[i][j] = H[i][j] + size
    return gradient, arb_mat(d * k, d * k, [e for row in H for e in row])


def _free(data: Classes, W: list[list[arb]], b: list[arb]) -> list[arb] | None:
    """b* for every W in these balls: by Newton's method with intervals, which holds the root of what it maps into itself."""
    k = data.k
    mean = sum(b, start=arb(0)) / k
    b = [(e - mean).mid() for e in b]
    rows = [x[:-1] for x in data.X]
    base = [[sum((a * row[m] for a, row in zip(x, W, strict=True)), start=arb(0)) for m in range(k)] for x in rows]
    for bits in range(130, 20, -10):
        width = (max(abs(e) for e in b) + 1).upper() * arb(2) ** -bits
        box = [arb(e, width) for e in b]
        value, H = [sum(b, start=arb(0))] * k, [[arb(1)] * k for _ in range(k)]
        for s, y, c in zip(base, data.y, data.c, strict=True):
            q = softmax([e + f for e, f in zip(s, b, strict=True)])
            wide = softmax([e + f for e, f in zip(s, box, strict=True)])
            value = [e + c * (q[m] - (m == y)) for m, e in enumerate(value)]
            H = [[H[m][o] + c * (wide[m] * (m == o) - wide[m] * wide[o]) for o in range(k)] for m in range(k)]
        try:
            step = arb_mat(k, k, [e for row in H for e in row]).solve(arb_mat(k, 1, value))
        except ZeroDivisionError:
            continue
        found = [b[m] - step[m, 0] for m in range(k)]
        if all(box[m].contains(found[m]) for m in range(k)):
            return found
    return None
