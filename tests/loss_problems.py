"""Small problems of regularized losses, made to be difficult, and what each promise of the certificates says about them.

`attack` is one problem, with planes and weights that are right, nearly right or absurd; it returns the promises that are broken,
which is never. `test_loss_certificates` has some of them in each family, `make fuzz` as many as the time allows.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from flint import arb, ctx, fmpq
from loss_oracle import BITS, Data, Minimum, certainly_above, exact, minimum, to_float, violates

import gordan
from gordan.certificates import standalone
from gordan.certificates.losses import Objective, Optimum
from gordan.certificates.matrix import CLAIM, Matrix, Products
from gordan.certificates.regions import region_of
from gordan.intercepts import Intercept
from gordan.losses import Loss
from gordan.rows import stored
from gordan.statuses import Status

LOSSES, KINDS = ("hinge", "squared_hinge", "logistic"), ("free", "none", "penalized")
ABSURD = (math.nan, math.inf, -math.inf, -1.0, 0.0, -0.0, 5e-324, 1e-310, 1e300, 1.7e308, 2.0**-900, 2.0**-901)


def integers(r: random.Random, n: int, d: int) -> list[list[float]]:
    """Entries -3..3."""
    return [[float(r.randint(-3, 3)) for _ in range(d)] for _ in range(n)]


def duplicates(r: random.Random, n: int, d: int) -> list[list[float]]:
    """Two different rows at most."""
    few = integers(r, 2, d)
    return [r.choice(few) for _ in range(n)]


def zeros(r: random.Random, n: int, d: int) -> list[list[float]]:
    """Nothing but zeros, or one column that is constant."""
    return [[r.choice((0.0, 0.0, 1.0))] * d] * n


def normal(r: random.Random, n: int, d: int) -> list[list[float]]:
    """Floats with all their digits, a few of them far from the origin."""
    far = r.choice((0.0, 0.0, 1e3, 1e8))
    return [[far + r.gauss(0, 1) for _ in range(d)] for _ in range(n)]


def offset(r: random.Random, n: int, d: int) -> list[list[float]]:
    """Columns that are far from 0 for their spread, such as times, beside others."""
    far = [r.choice((0.0, 1e3, -1e5, 1.7e9, -(2.0**40))) for _ in range(d)]
    steps = [r.choice((0.0, 1.0, 86400.0)) for _ in range(d)]
    return [[o + (step * r.randint(0, 9) or r.gauss(0, 1)) for o, step in zip(far, steps, strict=True)] for _ in range(n)]


def scaled(r: random.Random, n: int, d: int) -> list[list[float]]:
    """Columns, or rows, or all, by powers of two from 2⁻⁴⁰ to 2⁴⁰."""
    by = r.choice((0, 1))
    sizes = [r.randint(-40, 40) for _ in range(max(n, d))]
    return [[math.ldexp(r.choice((r.gauss(0, 1), r.randint(-3, 3))), sizes[(i, j)[by]]) for j in range(d)] for i in range(n)]


def extreme(r: random.Random, n: int, d: int) -> list[list[float]]:
    """Powers of two from 2⁻¹⁰⁰⁰ to 2¹⁰⁰⁰, and subnormal numbers."""
    one = r.random() < 0.5
    size = r.randint(-1000, 1000)
    return [
        [math.ldexp(r.randint(-3, 3), size if one else r.choice((0, r.randint(-1074, 1000)))) for _ in range(d)] for _ in range(n)
    ]


FAMILIES = {make.__name__: make for make in (integers, duplicates, zeros, normal, offset, scaled, extreme)}


def problem(r: random.Random, family: str, loss: str, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, signs and C_i; both classes have weight."""
    n, d = r.randint(2, 5), r.randint(1, 3)
    X = np.array(FAMILIES[family](r, n, d))
    signs = np.array([1.0, -1.0, *(r.choice((1.0, -1.0)) for _ in range(n - 2))])
    return X, signs, costs(r, family, n, 2)


def costs(r: random.Random, family: str, n: int, sure: int) -> np.ndarray:
    """C_i of n rows, of which the first `sure` have weight."""
    C = r.choice((1.0, 0.1, 0.2, 10.0, 2.0 ** r.randint(-20, 20), 10.0 ** r.randint(-300, 300) if family == "extreme" else 3.0))
    which = r.random()
    weights = [r.choice((0.1, 0.3, 1.0, 2.0, 7.0)) if which < 0.3 else 1.0 for _ in range(n)]
    if which > 0.8:
        most = 300 if family == "extreme" else 30
        weights = [math.ldexp(r.choice((1.0, 1.1)), r.randint(-most, most)) for _ in range(n)]
    if r.random() < 0.2:
        weights[sure:] = [w * r.choice((0.0, 1.0)) for w in weights[sure:]]
    with np.errstate(over="ignore"):
        c = C * np.array(weights)
    c[~np.isfinite(c)] = 1.0
    c[:sure] = np.where(c[:sure] == 0, 1.0, c[:sure])
    return c


def matrix(X: Any) -> Matrix:
    """X as the certificates read it."""
    storage = stored(X)
    return Matrix(storage)


def rough(data: Data, steps: int = 200) -> tuple[list[float], float]:
    """A plane near the best one, for Newton's method to begin with: steps of Newton, halved until P falls."""
    rows = np.array([[to_float(x) for x in row] for row in data.A])
    free = data.kind == "free"
    if free:
        rows = np.column_stack((rows, data.y))
    c = np.array([to_float(x) for x in data.c])
    J = np.ones(rows.shape[1])
    if free:
        J[-1] = 0.0

    def value(v: np.ndarray) -> float:
        return 0.5 * float((J * v) @ v) + float(c @ np.logaddexp(0.0, -(rows @ v)))

    def slopes(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a = 0.5 * (1 - np.tanh(rows @ v / 2))
        H = np.diag(J) + rows.T @ ((c * a * (1 - a))[:, None] * rows)
        return J * v - rows.T @ (c * a), H + 1e-300 * np.eye(len(v))

    x = newton(np.zeros(rows.shape[1]), value, slopes, steps)
    return (x[:-1].tolist(), float(x[-1])) if data.kind != "none" else (x.tolist(), 0.0)


def newton(x: np.ndarray, value: Callable[..., float], slopes: Callable[..., Any], steps: int) -> np.ndarray:
    """Steps of Newton from x, halved until the value falls; `slopes` has the gradient and the matrix of second derivatives."""
    with np.errstate(all="ignore"):
        for _ in range(steps):
            gradient, H = slopes(x)
            try:
                step = np.linalg.solve(H, gradient.ravel()).reshape(x.shape)
            except np.linalg.LinAlgError:
                break
            t = 1.0
            while t > 1e-12 and not value(x - t * step) < value(x):
                t /= 2
            if t <= 1e-12 or not np.isfinite(step).all():
                break
            x = x - t * step
    return x


def planes(r: random.Random, data: Data, least: Minimum | None) -> list[tuple[np.ndarray, float]]:
    """Planes to be held against the truth: the best one as rounded, near it, far from it, absurd ones."""
    d = len(data.X[0])
    found = [(np.zeros(d), 0.0), (np.array([r.gauss(0, 1) for _ in range(d)]), r.gauss(0, 1))]
    if least is not None:
        entries = [_float(e) for e in least.v]
        w, b = np.array(entries[:d]), entries[-1] if data.kind == "penalized" else _float(least.low)
        off = 10.0 ** r.uniform(-16, 0)
        found += [(w, b), (w * (1 + off * r.gauss(0, 1)), b * (1 + off * r.gauss(0, 1)) + r.choice((0.0, off)))]
        if data.kind == "free":
            found.append((w, _float((least.low + least.high) / 2)))
            found.append((w, b + r.choice((1e-3, 0.1, -0.3, 2.0))))
    if r.random() < 0.2:
        found.append((np.array([r.choice(ABSURD) for _ in range(d)]), r.choice(ABSURD)))
    return found if data.kind != "none" else [(w, 0.0) for w, _ in found]


def _float(x: Any) -> float:
    return to_float(x) if isinstance(x, fmpq) else float(x.mid())


def weights(r: random.Random, data: Data, least: Minimum | None, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows with weights of their own: those of the optimum, rounded, or nearly, or absurd ones, or none."""
    which, kept = r.random(), np.flatnonzero(c > 0)
    if least is not None and which < 0.5:
        alpha = np.array([_float(a) for a in least.alpha])
        if r.random() < 0.5:
            alpha = alpha * np.array([1 + 10.0 ** r.uniform(-16, 0) * r.gauss(0, 1) for _ in alpha])
        return kept, alpha
    if which < 0.8:
        return kept[:0], c[:0]
    rows = np.array(sorted(r.sample(range(len(c)), r.randint(0, len(c)))), dtype=np.int64)
    return rows, np.array([r.choice((*ABSURD, 0.5 * c[i], c[i], 2 * c[i])) for i in rows])


def in_memory(X: np.ndarray) -> Any:
    """X, where it is."""
    return X


def attack(
    r: random.Random, family: str, loss: str, kind: str, *, solve: bool = False, held: Callable[[np.ndarray], Any] = in_memory
) -> tuple[Counter[str], list[str]]:
    """One problem: how many promises were looked at, by kind, and those that are broken. `solve`: those of a result, too, for X
    as it is `held`."""
    X, signs, c = problem(r, family, loss, kind)
    found, faults = Counter(problems=1), list[str]()
    with ctx.workprec(BITS if family != "extreme" else 3000), np.errstate(over="ignore"):
        data = Data.of(X, signs, c, loss, kind)
        least = minimum(data, rough(data)) if loss == "logistic" else minimum(data)
        found["minimizers"] += least is not None
        objective = Objective(matrix(X), signs, Loss(loss), c, Intercept(kind))
        assert objective.infeasibility_reason() == ""
        for w, b in planes(r, data, least):
            rows, alpha = weights(r, data, least, c)
            slack, once = r.choice((1.0, CLAIM)), r.random() < 0.5  # the scores as they are computed, or rounded once
            optimum = objective.enclose(w, b, rows, alpha, slack=slack, once=once)
            broken = enclosure_faults(objective, data, least, optimum, (w, b, rows, alpha))
            if least is not None:
                points = _points(r, X)
                broken += region_faults(objective, data, least, optimum, b, points, found)
            if r.random() < 0.4 and np.isfinite(w).all() and math.isfinite(b):
                claimed = optimum if slack == CLAIM else objective.enclose(w, b, rows, alpha, slack=CLAIM, once=once)
                broken += claim_faults(r, objective, X, claimed, (w, b, rows, alpha), found)
            found["enclosures"] += 1
            found["informative"] += optimum.lower > 0 and optimum.upper < math.inf
            faults += [
                f"{fault}: w={w!r}, b={b!r}, rows={rows!r}, weights={alpha!r}, slack={slack}, once={once}" for fault in broken
            ]
        status, broken = solved(r, X, data, c, least, held) if solve else ("", [])
        found[status] += 1
        faults += broken
    if faults:
        faults.append(f"X={X!r}, signs={signs!r}, c={c!r}")
    return found, faults


def solved(
    r: random.Random, X: np.ndarray, data: Data, c: np.ndarray, least: Minimum | None, held: Callable[[np.ndarray], Any]
) -> tuple[str, list[str]]:
    """`minimize_loss` of the problem: its status, and the promises of the result that are broken."""
    y, kept = np.zeros(len(c), np.int64), np.flatnonzero(c)
    y[kept] = data.y  # those of weight 0 may have any label
    y[y == 0] = 1
    result, faults = minimized(r, X, y, c, data.loss, data.kind, held)
    if result is None or least is None:
        return "refused" if result is None else result.status, faults
    objective, points = result._evidence.question.objective, _points(r, X)
    faults += enclosure_faults(objective, data, least, result._optimum, (result.w, result.b, *_exceptions(result)))
    faults += region_faults(objective, data, least, result._optimum, result.b, points, Counter())
    if not (result.objective == (result._optimum.lower, result._optimum.upper) and result.radius == result._optimum.radius):
        faults.append("the result says something else than what is proved")
    own = [exact(e) for e in result.w]
    for x, same in zip(points.tolist(), result.same_prediction(points).tolist(), strict=True):
        score = sum((exact(e) * w for e, w in zip(x, own, strict=True)), start=exact(result.b))
        best = least.score([exact(e) for e in x], data.kind)
        if same and any(s * score < 0 or s == 0 or score == 0 for s in best):
            faults.append(f"the label of {x} is another one: {score} here, {best} at the minimum")
    return result.status, faults


def minimized(
    r: random.Random, X: np.ndarray, y: np.ndarray, c: np.ndarray, loss: str, kind: str, held: Callable[[np.ndarray], Any]
) -> tuple[Any, list[str]]:
    """What `minimize_loss` returns, None if it refuses, and what is wrong with its status or its certificate."""
    limit, tol = r.choice((None, None, 1, 5)), r.choice((1e-2, 1e-4, 1e-9))
    try:
        result = gordan.minimize_loss(held(X), y, loss=loss, intercept=kind, sample_weight=c, max_iter=limit, tol=tol)
    except gordan.InputError as error:
        return None, [] if "overflows" in str(error) else [f"refused: {error}"]
    faults = [f"solved, but {result.gap} > {tol}"] if result.status == "solved" and not result.gap <= tol else []
    if not gordan.verify(result.certificate, X, y):
        faults.append(f"what was claimed is not found: {gordan.verify(result.certificate, X, y).reason}")
    accepted, reason = standalone.check(json.loads(result.certificate.to_json()), X.tolist(), y.tolist())
    # of the other losses it allows for 30 digits
    if not accepted and (loss == "multinomial" or 1e-9 < c[c > 0].min() <= c.max() < 1e9):
        faults.append(f"what was claimed is not found by hand: {reason}")
    return result, faults


def _exceptions(result: Any) -> tuple[np.ndarray, np.ndarray]:
    return result._evidence.rows, result._evidence.alpha


def chunk(
    family: str, kind: str, seed: str, size: int, held: Callable[[np.ndarray], Any] = in_memory
) -> tuple[Counter[str], list[tuple[str, str]]]:
    """`size` problems for `make fuzz`: how often `minimize_loss` ended how, and the faults with where they are."""
    import multinomial_problems  # which imports from here

    statuses, faults = Counter[str](), list[tuple[str, str]]()
    for k in range(size):
        loss = (*LOSSES, "multinomial")[k % (len(LOSSES) + 1)]
        r = random.Random(f"{family} {loss} {kind} {seed} {k}")
        if loss == "multinomial":
            found, broken = multinomial_problems.attack(r, family, kind, solve=True, held=held)
        else:
            found, broken = attack(r, family, loss, kind, solve=True, held=held)
        statuses.update({status: found[status] for status in (*Status, "refused") if found[status]})
        where = f"minimize_loss, {family}, {loss}, {kind}, seed {seed!r}, instance {k}"
        claims = ["was claimed" in text for text in broken]  # the last one is the problem
        if broken:
            kinds = {"valid certificate rejected" if claim else "invalid bracket" for claim in claims[:-1]}
            faults += [(name, "\n  ".join((where, *broken))) for name in sorted(kinds)]
    return statuses, faults


def _points(r: random.Random, X: np.ndarray) -> np.ndarray:
    """Points to predict: rows, and some between and beyond them."""
    more = [[r.uniform(-2, 2) * x for x in r.choice(X.tolist())] for _ in range(3)]
    with np.errstate(over="ignore", invalid="ignore"):
        points = np.concatenate((X, 0.5 * X + 0.5 * X[::-1], np.array(more), X * (1 + 1e-15)))
    return points[np.isfinite(points).all(axis=1)]


def enclosure_faults(
    objective: Objective, data: Data, least: Minimum | None, optimum: Optimum, proposal: tuple[Any, float, Any, Any]
) -> list[str]:
    """lower ≤ D(α) ≤ P* ≤ P(w, b) ≤ upper, and what v is off by."""
    w, b, rows, given = proposal
    faults = interval_faults(optimum, least)
    if np.isfinite(w).all() and math.isfinite(b):
        v = [exact(e) for e in objective.intercept.joined(w, b)]
        if optimum.upper < math.inf and certainly_above(data.value(v, exact(b)), optimum.upper):
            faults.append(f"P(w, b) is above {optimum.upper}")
    elif optimum.upper < math.inf:
        faults.append(f"{optimum.upper} from a plane that is not finite")
    if optimum.lower > 0:
        # the weights follow from the scores as computed, or from those that are rounded once
        products = Products.of(objective.X, w)
        ways = [dual_faults(objective, data, optimum, own, (b, rows, given)) for own in (products, products.rounded_once) if own]
        faults += [] if not all(ways) else ways[0]
    return faults


def dual_faults(
    objective: Objective, data: Data, optimum: Optimum, products: Products, proposal: tuple[float, Any, Any]
) -> list[str]:
    """D of the weights that follow from these scores, and what their combination v is off by."""
    b, rows, given = proposal
    alpha = objective.alpha(products, objective.X.inward(products.w, b), rows, given)
    exactly, v = data.dual([exact(a) for a in alpha[objective.c > 0]])
    faults = [f"D = {exactly} is below {optimum.lower}"] if certainly_above(-exactly, -optimum.lower) else []
    off = sum(((e - exact(f)) ** 2 for e, f in zip(v, optimum.v, strict=True)), start=fmpq(0))
    if certainly_above(off, math.inf) or off > exact(optimum.error) ** 2:
        faults.append(f"v is off by more than {optimum.error}")
    return faults


def interval_faults(optimum: Optimum, least: Any) -> list[str]:
    """Whether it is an interval, with the least value in it."""
    faults = []
    if not (0 <= optimum.lower <= optimum.upper and optimum.error >= 0) or math.isnan(optimum.radius):
        faults.append(f"no interval: {optimum.lower} .. {optimum.upper}, error {optimum.error}")
    if least is not None and violates(least.value, optimum.lower, optimum.upper):
        faults.append(f"P* = {least.value} is not in {optimum.lower} .. {optimum.upper}")
    return faults


def region_faults(
    objective: Objective, data: Data, least: Minimum, optimum: Optimum, b: float, points: np.ndarray, found: Counter[str]
) -> list[str]:
    """Where the minimizer is, and what follows for rows and points."""
    faults, kind = [], objective.intercept.value
    d = objective.X.d

    def distance(centre: np.ndarray) -> Any:
        return sum(((e - exact(f)) ** 2 for e, f in zip(least.v, centre, strict=True)), start=fmpq(0))

    for name, (centre, radius) in {"radius": (optimum.w, optimum.radius), "ball": optimum.ball}.items():
        if radius < math.inf:
            found[name] += 1
            off = distance(centre)
            if off > (exact(radius) ** 2 if isinstance(off, fmpq) else arb(exact(radius) ** 2)):
                faults.append(f"w* is outside of the {name} {radius}")
    region = region_of(objective, optimum, b)
    coef = region.coef.tolist()
    faults += [f"w*[{j}] = {least.v[j]} is not in {coef[j]}" for j in range(d) if violates(least.v[j], *coef[j])]
    ends = (least.low, least.high) if kind == "free" else (least.v[-1],) * 2 if kind == "penalized" else (fmpq(0),) * 2
    faults += [f"b* = {end} is not in {region.intercept}" for end in ends if violates(end, *region.intercept)]
    found["intercepts"] += all(map(math.isfinite, region.intercept))
    support, other = region.weights
    for i, x in enumerate(data.X):
        row = int(np.flatnonzero(objective.c > 0)[i])
        z = [data.y[i] * s for s in least.score(x, kind)]
        if row in support and any(s > 1 if data.loss != "logistic" else False for s in z):
            faults.append(f"row {row} has weight 0 at an optimum")
        if row in support and data.loss == "squared_hinge" and any(s == 1 for s in z):
            faults.append(f"row {row} has weight 0 at the optimum")
        if row in other and any(s < 1 if data.loss != "logistic" else True for s in z):
            faults.append(f"row {row} has weight at an optimum")
    found["rows decided"] += len(support) + len(other)
    low, high = region.place.scores(matrix(points))
    for i, x in enumerate(points.tolist()):
        scores = least.score([exact(e) for e in x], kind)
        faults += [f"the score {s} of {x} is not in {low[i]} .. {high[i]}" for s in scores if violates(s, low[i], high[i])]
    found["labels"] += int(np.sum((low > 0) | (high < 0)))
    return faults


def claim_faults(
    r: random.Random,
    objective: Objective,
    X: np.ndarray,
    claim: Optimum,
    proposal: tuple[Any, float, Any, Any],
    found: Counter[str],
) -> list[str]:
    """Whether what was claimed is found again with columns or rows in another order, and in other storage."""
    w, b, rows, alpha = proposal
    n, d = X.shape
    if r.random() < 0.2 and np.max(np.abs(X)) < 1e100 and np.min(np.abs(X[X != 0]), initial=1.0) > 1e-100:
        # claimed for sparse rows, of which the dense ones look longer
        X, w = np.column_stack((X, np.zeros((n, 40)))), np.append(w, np.zeros(40))
        d, sparse = d + 40, matrix(sp.csr_array(X))
        claim = Objective(sparse, *(objective.signs, objective.loss, objective.c, objective.intercept)).enclose(
            w, b, rows, alpha, slack=CLAIM
        )
    columns, order = r.sample(range(d), d), r.sample(range(n), n)
    place = np.argsort(order)
    checks = {}
    for name, values, plane, signs, c, which in (
        ("columns", X[:, columns], w[columns], objective.signs, objective.c, rows),
        ("rows", X[order], w, objective.signs[order], objective.c[order], place[rows]),
        ("sparse", sp.csr_array(X), w, objective.signs, objective.c, rows),
    ):
        other = Objective(matrix(values), signs, objective.loss, c, objective.intercept)
        checks[name] = other.enclose(plane, b, which, alpha)
        if not (claim.lower <= checks[name].lower and checks[name].upper <= claim.upper):
            checks[name] = other.enclose(plane, b, which, alpha, once=True)
    return wider(claim, checks, found)


def wider(claim: Optimum, checks: dict[str, Optimum], found: Counter[str]) -> list[str]:
    """What was claimed and is not found again."""
    found["claims"] += len(checks)
    return [
        f"{name}: {claim.lower} .. {claim.upper} was claimed, {check.lower} .. {check.upper} found"
        for name, check in checks.items()
        if check.lower < claim.lower or check.upper > claim.upper
    ]
