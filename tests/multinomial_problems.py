"""Small problems of the multinomial loss, made to be difficult, and what each promise of the certificates says about them: as
`loss_problems` for the other losses."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from flint import arb, ctx, fmpq
from loss_oracle import BITS, certainly_above, exact, violates
from loss_problems import ABSURD, FAMILIES, _points, costs, in_memory, interval_faults, matrix, minimized, newton, wider
from multinomial_oracle import Classes, Least, least, rational, softmax

from gordan.certificates.losses import Optimum
from gordan.certificates.matrix import CLAIM
from gordan.certificates.multinomial import Multinomial, Scores
from gordan.certificates.regions import region_of
from gordan.intercepts import Intercept


def problem(r: random.Random, family: str) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """X, classes by number, how many there are, and C_i; every class has weight."""
    k = r.choice((2, 3, 3, 4))
    n, d = r.randint(k, k + 3), r.randint(1, 2)
    X = np.array(FAMILIES[family](r, n, d))
    which = np.array([*range(k), *(r.randrange(k) for _ in range(n - k))])
    c = costs(r, family, n, k)
    order = np.array(r.sample(range(n), n))
    return X[order], which[order], k, c[order]


def rough(X: np.ndarray, which: np.ndarray, k: int, c: np.ndarray, kind: str, steps: int = 100) -> np.ndarray:
    """Planes near the best ones, for Newton's method to begin with: steps of Newton in floats, halved until P falls."""
    A = X if kind == "none" else np.column_stack((X, np.ones(len(X))))
    n, d = A.shape
    J = np.ones(d)
    J[-1] = 0.0 if kind == "free" else 1.0
    line = np.arange(n)

    def value(V: np.ndarray) -> float:
        s = A @ V
        return 0.5 * float(J @ (V * V).sum(axis=1)) + float(c @ (np.logaddexp.reduce(s, axis=1) - s[line, which]))

    def slopes(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        s = A @ V
        q = np.exp(s - np.logaddexp.reduce(s, axis=1)[:, None])
        H = np.einsum("i,ia,ib,icd->acbd", c, A, A, q[:, :, None] * np.eye(k) - q[:, :, None] * q[:, None, :])
        H += np.einsum("a,ab,cd->acbd", J, np.eye(d), np.eye(k))
        if kind == "free":
            H[-1, :, -1, :] += np.max(np.abs(H[-1, :, -1, :])) + 1e-300
        return J[:, None] * V + A.T @ (c[:, None] * (q - np.eye(k)[which])), H.reshape(d * k, d * k)

    return newton(np.zeros((d, k)), value, slopes, steps)


def planes(r: random.Random, d: int, k: int, best: Least | None, kind: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Planes to be held against the truth: the best ones as rounded, near them, far from them, absurd ones."""
    found = [(np.zeros((d, k)), np.zeros(k)), (np.array([[r.gauss(0, 1) for _ in range(k)] for _ in range(d)]), np.zeros(k))]
    if best is not None:
        W, b = np.array([[float(e.mid()) for e in row] for row in best.W]), np.array([float(e.mid()) for e in best.b])
        off = 10.0 ** r.uniform(-16, 0)
        found += [(W, b), (W * (1 + off * r.gauss(0, 1)) + r.choice((0.0, off)), b * (1 + off * r.gauss(0, 1)))]
        if kind == "free":
            found.append((W, b + np.array([r.choice((0.0, 1e-3, 0.1, -2.0)) for _ in range(k)])))
    if r.random() < 0.2:
        found.append(
            (np.array([[r.choice(ABSURD) for _ in range(k)] for _ in range(d)]), np.array([r.choice(ABSURD) for _ in range(k)]))
        )
    return found if kind != "none" else [(W, np.zeros(k)) for W, _ in found]


def attack(
    r: random.Random, family: str, kind: str, *, solve: bool = False, held: Callable[[np.ndarray], Any] = in_memory
) -> tuple[Counter[str], list[str]]:
    """One problem: how many promises were looked at, by kind, and those that are broken, for X as it is `held`. `solve`: those of
    a result, too."""
    X, which, k, c = problem(r, family)
    found, faults = Counter(problems=1), list[str]()
    with ctx.workprec(BITS if family != "extreme" else 3000), np.errstate(over="ignore"):
        data = Classes.of(X, which, k, c, kind)
        best = least(data, rough(X, which, k, c, kind))
        found["minimizers"] += best is not None
        objective = Multinomial(matrix(held(X)), which, k, c, Intercept(kind))
        assert objective.infeasibility_reason() == ""
        for W, b in planes(r, X.shape[1], k, best, kind):
            slack = r.choice((1.0, CLAIM))
            optimum = objective.enclose(W, b, slack=slack)
            broken = enclosure_faults(objective, data, best, optimum, W, b)
            if best is not None:
                broken += region_faults(objective, best, optimum, b, _points(r, X), found)
            if np.isfinite(W).all() and np.isfinite(b).all():
                claimed = optimum if slack == CLAIM else objective.enclose(W, b, slack=CLAIM)
                broken += claim_faults(r, objective, X, claimed, W, b, found)
            found["enclosures"] += 1
            found["informative"] += optimum.lower > 0 and optimum.upper < math.inf
            faults += [f"{fault}: W={W!r}, b={b!r}, slack={slack}" for fault in broken]
        if solve:
            status, broken = solved(r, X, which, c, best, kind, held)
            found[status] += 1
            faults += broken
    if faults:
        faults.append(f"X={X!r}, which={which!r}, c={c!r}, kind={kind!r}")
    return found, faults


def enclosure_faults(
    objective: Multinomial, data: Classes, best: Least | None, optimum: Optimum, W: np.ndarray, b: np.ndarray
) -> list[str]:
    """lower ≤ D ≤ P* ≤ P(W, b) ≤ upper."""
    faults = interval_faults(optimum, best)
    if np.isfinite(W).all() and np.isfinite(b).all():
        rows = np.vstack((W, b)) if data.kind != "none" else W
        if optimum.upper < math.inf and certainly_above(data.value([[exact(e) for e in row] for row in rows]), optimum.upper):
            faults.append(f"P(W, b) is above {optimum.upper}")
    elif optimum.upper < math.inf:
        faults.append(f"{optimum.upper} from planes that are not finite")
    if optimum.lower > 0:
        # the V of weights that are about as good is not far: what the weights are is not told
        kept = np.flatnonzero(objective.c > 0)
        with np.errstate(invalid="ignore"):  # both may be infinite, with opposite signs
            s = Scores.of(objective.X, W).sums[kept] + objective.X.inward(W, b)
        if np.isfinite(s).all():
            q = [rational(softmax(below_largest(row.tolist()))) for row in s]
            _, V = data.dual(q)
            counted = [row for j, row in enumerate(V) if data.counted(j)]
            off = sum(
                ((e - exact(f)) ** 2 for row, own in zip(counted, optimum.v, strict=True) for e, f in zip(row, own, strict=True)),
                start=fmpq(0),
            )
            if off > (2 * exact(optimum.error)) ** 2:
                faults.append(f"V is off by more than {optimum.error}")
    return faults


def below_largest(s: list[float]) -> list[arb]:
    """Scores less the largest, exactly, or -10⁶ if that is more: of sums with 10³⁰⁰ no digits are left."""
    return [arb(max(exact(e) - exact(max(s)), fmpq(-(10**6)))) for e in s]


def region_faults(
    objective: Multinomial, best: Least, optimum: Optimum, b: np.ndarray, points: np.ndarray, found: Counter[str]
) -> list[str]:
    """Where the minimizer is, and what follows for points."""
    faults, kind, d, k = [], objective.intercept.value, objective.X.d, objective.k
    rows = [*best.W, best.b] if kind == "penalized" else best.W
    for name, (centre, radius) in {"radius": (optimum.w, optimum.radius), "ball": optimum.ball}.items():
        if radius < math.inf:
            found[name] += 1
            off = sum(
                ((e - exact(f)) ** 2 for row, own in zip(rows, centre, strict=True) for e, f in zip(row, own, strict=True)),
                start=arb(0),
            )
            if off > arb(exact(radius) ** 2):
                faults.append(f"W* is outside of the {name} {radius}")
    region = region_of(objective, optimum, b)
    coef, ends = region.coef, region.intercept
    faults += [
        f"W*[{j}, {m}] = {best.W[j][m]} is not in {coef[j, m]}"
        for j in range(d)
        for m in range(k)
        if violates(best.W[j][m], *coef[j, m])
    ]
    faults += [f"b*[{m}] = {best.b[m]} is not in {ends[m]}" for m in range(k) if violates(best.b[m], *ends[m])]
    found["intercepts"] += int(np.isfinite(ends).all())
    labels = region.place.label(matrix(points))
    for x, label in zip(points.tolist(), labels.tolist(), strict=True):
        if label >= 0:
            found["labels"] += 1
            scores = best.scores([exact(e) for e in x])
            if any(scores[m] >= scores[label] for m in range(k) if m != label):
                faults.append(f"the label of {x} is not {label}")
    return faults


def claim_faults(
    r: random.Random, objective: Multinomial, X: np.ndarray, claim: Optimum, W: np.ndarray, b: np.ndarray, found: Counter[str]
) -> list[str]:
    """Whether what was claimed is found again with columns, rows or classes in another order, and in other storage."""
    (n, d), k, checks = X.shape, objective.k, {}
    columns, order, classes = r.sample(range(d), d), r.sample(range(n), n), np.array(r.sample(range(k), k))
    place = np.argsort(classes)
    for name, values, which, c, V, e in (
        ("columns", X[:, columns], objective.which, objective.c, W[columns], b),
        ("rows", X[order], objective.which[order], objective.c[order], W, b),
        ("classes", X, place[objective.which], objective.c, W[:, classes], b[classes]),
        ("sparse", sp.csr_array(X), objective.which, objective.c, W, b),
    ):
        checks[name] = Multinomial(matrix(values), which, k, c, objective.intercept).enclose(V, e)
    return wider(claim, checks, found)


def solved(
    r: random.Random, X: np.ndarray, which: np.ndarray, c: np.ndarray, best: Least | None, kind: str, held: Callable[..., Any]
) -> tuple[str, list[str]]:
    """`minimize_loss` of the problem: its status, and the promises of the result that are broken."""
    result, faults = minimized(r, X, which, c, "multinomial", kind, held)
    if result is None or best is None:
        return "refused" if result is None else result.status, faults
    objective, points = result._evidence.question.objective, _points(r, X)
    if violates(best.value, *result.objective):
        faults.append(f"P* = {best.value} is not in {result.objective}")
    faults += region_faults(objective, best, result._optimum, result.b, points, Counter())
    own = [[exact(e) for e in row] for row in result.w]
    for x, same in zip(points.tolist(), result.same_prediction(points).tolist(), strict=True):
        values = [exact(e) for e in x]
        scores = [
            sum((a * row[m] for a, row in zip(values, own, strict=True)), start=exact(result.b[m])) for m in range(objective.k)
        ]
        label = max(range(objective.k), key=scores.__getitem__)
        star = best.scores(values)
        if same and any(star[m] >= star[label] for m in range(objective.k) if m != label):
            faults.append(f"the label of {x} is another one")
    return result.status, faults
