"""Verdicts, brackets and certificates of `separate` and `maximize_margin` against the exact oracle, on small problems made to be
difficult; and, with `diagnose`, on problems of up to 2,000 rows whose answer is planted (`problems.planted`).

5,000 verdicts and 1,000 margins here; `make soak` runs 100,000 others, and `make fuzz MINUTES=60` as many as the time allows.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import oracle
import pytest
import scipy.sparse as sp
from problems import CHANGES, planted

import gordan
from gordan.certificates import standalone

INTERCEPTS = ("free", "none", "penalized")
SIZE, MARGINS, PLANTED = 250, 50, 8
# Entries up to which a planted problem is also given to the checker that is written by hand.
MOST_BY_HAND = 400
SOAK_CHUNKS, SOAK_SIZE, SOAK_MARGINS = 4, 1000, 250


def small_integers(r, n, d):
    """Entries -3..3, with labels by chance or by a plane."""
    X = [[r.randint(-3, 3) for _ in range(d)] for _ in range(n)]
    if r.random() < 0.5:
        return X, [r.randint(0, 1) for _ in X]
    w, b = [r.randint(-3, 3) for _ in range(d)], r.randint(-1, 1)
    return X, [int(sum(x * v for x, v in zip(row, w, strict=True)) + b > 0) for row in X]


def tiny_margin(r, n, d):
    """Two copies of the same integer points; only a column of ±2⁻ᵏ tells the classes apart, and sometimes it is wrong once."""
    tiny = 2.0 ** -r.randint(1, 200)
    points = [[r.randint(-3, 3) for _ in range(d - 1)] for _ in range((n + 1) // 2)]
    y = [i % 2 for i in range(n)]
    X = [[*points[i // 2], tiny if y[i] else -tiny] for i in range(n)]
    if r.random() < 0.5:
        row = r.choice(X)
        row[-1] = r.choice([-row[-1], 0.0, row[-1] / 2, 3 * row[-1]])
    return X, y


def boundary(r, n, d):
    """Rows on the right side of a plane or on it, and rows on the plane that balance: γ* is 0 and a separator all but exists."""
    w = [r.choice([-2, -1, 1, 2]) for _ in range(d)]
    X, y = small_integers(r, n, d)
    y = [int(sum(x * v for x, v in zip(row, w, strict=True)) >= 0) for row in X]
    ends = [_onto([r.randint(-3, 3) for _ in range(d)], w) for _ in range(2)]
    X += [*ends, [Fraction(a + b, 2) for a, b in zip(*ends, strict=True)], [-x for x in ends[0]]]
    return X[-12:], [*y, 1, 1, 0, 1][-12:]


def _onto(x, w):
    """An integer multiple of the projection of x onto the plane w·x = 0."""
    square, product = sum(v * v for v in w), sum(a * b for a, b in zip(x, w, strict=True))
    return [square * a - product * b for a, b in zip(x, w, strict=True)]


def duplicates(r, n, d):
    """Few different points, many times; rarely with both labels."""
    X, y = small_integers(r, (n + 3) // 4, d)
    chosen = [r.randrange(len(X)) for _ in range(n)]
    return [X[i] for i in chosen], [y[i] if r.random() < 0.97 else 1 - y[i] for i in chosen]


def huge_exponents(r, n, d):
    """Entries m·2ᵉ with e from -300 to 300."""
    X, y = small_integers(r, n, d)
    columns = [r.randint(-300, 300) for _ in range(d)] if r.random() < 0.3 else None
    return [[math.ldexp(x, columns[j] if columns else r.randint(-300, 300)) for j, x in enumerate(row)] for row in X], y


def cancelling(r, n, d):
    """Points along (1, -1, …) with entries up to 2⁵², off that line by a few units: scores cancel to their last bits."""
    X, y = [], []
    for _ in range(n):
        large, off = r.randint(-(2**52), 2**52), r.randint(-2, 2)
        X.append([large, off - large, *(r.randint(-1, 1) for _ in range(d - 2))][:d])
        y.append(int(off > 0) if r.random() < 0.9 else r.randint(0, 1))
    return X, y


def extreme(r, n, d):
    """Entries m·2ᵉ as far as floats go, e by entry, column or row; the smallest floats; points a few last bits apart."""
    X, y = small_integers(r, n, d)
    kind = r.choice(("entries", "columns", "columns", "rows", "rows", "smallest", "last bits", "last bits"))
    if kind == "last bits":
        base = [r.uniform(1, 2) * 10.0 ** r.choice((0, 16, r.randint(-300, 300))) for _ in range(d)]
        ends = [(0.0, -x, x / 2) for x in base]
        return [
            [base[j] + x * math.ulp(base[j]) if r.random() < 0.7 else r.choice(ends[j]) for j, x in enumerate(row)] for row in X
        ], y
    columns = [r.randint(-1074, 1000) for _ in range(d)]
    rows = [r.randint(-1074, 1000) for _ in X]
    exponents = {
        "entries": lambda i, j: r.choice((0, 0, r.randint(-1074, 1000))),
        "columns": lambda i, j: columns[j],
        "rows": lambda i, j: rows[i],
        "smallest": lambda i, j: -1074,
    }[kind]
    return [[math.ldexp(x, exponents(i, j)) for j, x in enumerate(row)] for i, row in enumerate(X)], y


FAMILIES = {
    make.__name__: make for make in (small_integers, tiny_margin, boundary, duplicates, huge_exponents, cancelling, extreme)
}


def most_open(family, size):
    """How many may stay open: 1%, and of tiny margins all, which is printed. Some extreme problems have no float separator:
    0.25%, and three standard deviations of that."""
    if family == "extreme":
        return 0.0025 * size + 3 * math.sqrt(0.0025 * size)
    return size if family == "tiny_margin" else 0.01 * size


def instance(family, r):
    """One problem of the family with both classes: float64 X, list y."""
    X, y = FAMILIES[family](r, r.randint(2, 12), r.randint(1, 4))
    if len({*y}) == 1:
        y = [1 - y[0], *y[1:]]
    return np.array(X, dtype=np.float64), y


def signed(X, y, intercept):
    """The rows y_i x_i, or y_i (x_i, 1), exactly."""
    constant = [] if intercept == "none" else [1]
    return [[x if label else -x for x in [*row, *constant]] for row, label in zip(X.tolist(), y, strict=True)]


def hull(X, y, intercept, k=1):
    """Points whose least norm is γ*, where at least k rows (of each class, with a free intercept) have to share their mass."""
    if intercept != "free":
        return oracle.means(signed(X, y, intercept), k)
    sides = [oracle.means([row for row, label in zip(X.tolist(), y, strict=True) if label == side], k) for side in (1, 0)]
    return oracle.free([*sides[0], *sides[1]], [1] * len(sides[0]) + [0] * len(sides[1]))


def squared_margin(X, y, intercept):
    """γ*² by the oracle."""
    return oracle.squared_margin(hull(X, y, intercept))


WRONG, INVALID, REJECTED, CLUMSY = "wrong verdict", "invalid bracket", "valid certificate rejected", "witness not minimal"


def check_instance(X, y, intercept, max_iter, storage):
    """One verdict on X, stored dense or sparse: its status, and which promises it breaks.

    One exact method is enough for each instance: the linear program where the verdict is that nothing separates (or none), the
    minimum-norm point where something does, which gives the margin, too. That the two agree is tested below.
    """
    verdict = gordan.separate(storage(X), y, intercept=intercept, max_iter=max_iter)
    rows = signed(X, y, intercept)
    square = squared_margin(X, y, intercept) if verdict.separable or oracle.separable(rows) else Fraction(0)
    faults = [WRONG] if verdict.separable not in (None, square > 0) else []
    faults += bracket_faults(verdict.margin, square)
    certificate = verdict.certificate
    if verdict.status == "undecided":
        return verdict.status, faults if certificate is None else [*faults, WRONG]
    faults += certificate_faults(certificate, X, y)
    if verdict.witness is not None:
        weights = verdict.witness.weights
        plain = all(type(weight) is int and weight > 0 for weight in weights) and math.gcd(*weights) == 1
        if not plain or (len(weights) > 2 and len(weights) > oracle.rank(rows) + 1):
            faults.append(CLUMSY)
    return verdict.status, faults


def bracket_faults(margin, square):
    """Whether lower ≤ γ* ≤ upper, by squares."""
    lower, upper = margin
    holds = 0 <= lower <= upper and Fraction(lower) ** 2 <= square
    return [] if holds and (math.isinf(upper) or square <= Fraction(upper) ** 2) else [INVALID]


def certificate_faults(certificate, X, y):
    """Whether both checkers accept it, before and after JSON."""
    text = certificate.to_json()
    accepted = (
        gordan.verify(certificate, X, y)
        and standalone.check(json.loads(text), X.tolist(), y)[0]
        and gordan.Certificate.from_json(text) == certificate
    )
    return [] if accepted else [REJECTED]


def soft(r, X, y, intercept):
    """A nu for which the oracle knows the margin, k and the rows it is about: few, and a power of two of them."""
    sides = [[i for i, label in enumerate(y) if label == side] for side in (1, 0)]
    size = r.choice([size for size in (1, 2, 4) if size <= min(map(len, sides))])
    rows = [*sides[0][:size], *sides[1][:size]]
    k = r.randint(1, size if intercept == "free" else 2 * size)
    return X[rows], [y[i] for i in rows], k / size if intercept == "free" else k / (2 * size), k


def playable(X):
    """X, or a power of two times X: `maximize_margin` refuses rows beyond 1e280, and if all are below 1e-280."""
    size = int(np.frexp(np.max(np.abs(X)))[1])
    return X if abs(size) <= 200 else np.ldexp(X, int(math.copysign(200, size)) - size)


def check_margin(X, y, intercept, r):
    """One result of `maximize_margin`, hard or soft, for the norm 2 or ∞, stopped early or not: status, and broken promises."""
    norm, nu, k = r.choice((2, 2, 2, math.inf)), None, 1
    if r.random() < 0.5:
        X, y, nu, k = soft(r, X, y, intercept)
    method = "auto" if norm == 2 or r.random() < 0.7 else "smooth_p_norm_perceptron"
    options = {"max_iter": r.choice((1, 3, 30, None) if method == "auto" else (1, 30, 100)), "tol": r.choice((1e-2, 1e-4, 1e-9))}
    X = playable(X)
    storage = r.choice((np.asarray, sp.csr_array))
    result = gordan.maximize_margin(storage(X), y, intercept=intercept, norm=norm, nu=nu, method=method, **options)
    points = hull(X, y, intercept, k)
    square = oracle.squared_margin(points) if norm == 2 else oracle.sup_margin(points) ** 2
    faults = bracket_faults(result.margin, square) + certificate_faults(result.certificate, X, y)
    lower, upper = result.margin
    solved = upper > 0 and upper - lower <= options["tol"] * upper
    if (result.status == "not-separable") > (square == 0) or (result.status == "solved") != solved:
        faults.append(WRONG)
    if result.status == "margin-below-tol" and not (lower == 0 and upper <= options["tol"] * 2 * max(1.0, np.abs(X).sum())):
        faults.append(WRONG)
    if not all(np.isfinite(part).all() for part in (result.w, result.p) if part is not None):
        faults.append(WRONG)
    return result.status, faults


def check_planted(function, found, intercept, r):
    """One answer about a planted problem: its status, and broken promises. Bounds of a known margin hold in every norm."""
    X, y, complete = r.choice((np.asarray, np.asarray, sp.csr_array))(found.X), found.y, found.kind == "complete"
    if function == "diagnose":
        answer = gordan.diagnose(X, y, intercept=intercept)
        kinds = ("quasi-complete", "overlap") if found.kind == "not complete" else (found.kind,)
        faults, status = [] if answer.kind in (*kinds, "undecided") else [WRONG], answer.kind
    elif function == "separate":
        answer = gordan.separate(X, y, intercept=intercept)
        faults, status = [] if answer.separable in (None, complete) else [WRONG], answer.status
    else:
        norm = r.choice((2, 2, 3, math.inf))
        try:
            answer = gordan.maximize_margin(X, y, intercept=intercept, norm=norm, max_iter=r.choice((None, None, 3)))
        except gordan.InputError as error:
            if "by a power of two" in str(error):  # rows beyond 1e±280
                return "refused", []
            raise
        status = answer.status
        faults = [WRONG] if complete and status == "not-separable" else []
    if function != "diagnose":
        low, high = (0, math.inf) if complete else (0, 0)
        low, high = (low, high) if found.margin is None else (found.margin, found.margin)
        holds = 0 <= answer.margin[0] <= high and low <= answer.margin[1]
        faults += [] if holds else [INVALID]
    if answer.certificate is not None and not gordan.verify(answer.certificate, X, y):
        faults.append(REJECTED)
    if answer.certificate is not None and found.X.size <= MOST_BY_HAND:
        faults += certificate_faults(answer.certificate, found.X, y.tolist())
    return status, faults


def chunk(function, family, intercept, seed, size, rounds=(None, 3, 40), most=2000):
    """`size` instances for a function: how often each status, and the faults with where they are.

    `family` is one of FAMILIES, or of `problems.CHANGES`, whose problems have up to `most` rows.
    """
    if family in CHANGES:
        r = random.Random(f"{function} {family} {intercept} {seed}")
        answers = (check_planted(function, planted(family, r, intercept, most), intercept, r) for _ in range(size))
        found, faults = Counter(), []
        for k, (status, broken) in enumerate(answers):
            found[status] += 1
            faults += [(fault, f"{function}, {family}, {intercept}, seed {seed!r}, instance {k}") for fault in broken]
        return found, faults
    r = random.Random(f"{family} {intercept} {seed}" if function == "separate" else f"{function} {family} {intercept} {seed}")
    found, faults = Counter(), []
    for k in range(size):
        X, y = instance(family, r)
        if function == "separate":
            status, broken = check_instance(X, y, intercept, r.choice(rounds), r.choice((np.asarray, np.asarray, sp.csr_array)))
        else:
            status, broken = check_margin(X, y, intercept, r)
        found[status] += 1
        faults += [(fault, f"{function}, {family}, {intercept}, seed {seed!r}, instance {k}") for fault in broken]
    return found, faults


def check_chunk(family, intercept, seed, size, rounds):
    """`size` verdicts, and how many stay open."""
    found, faults = chunk("separate", family, intercept, seed, size, rounds)
    print(f"{family}, {intercept}, seed {seed}: {dict(found)}")
    assert not faults
    assert found["undecided"] + found["margin-below-tol"] <= most_open(family, size)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_fuzz(family, intercept):
    """5,250 instances, with few rounds of the game: its brackets hold whenever it stops."""
    check_chunk(family, intercept, 0, SIZE, (1, 10, 40))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_fuzz_margins(family, intercept):
    """1,050 brackets of `maximize_margin`: hard and soft, norms 2 and ∞, stopped early and not."""
    found, faults = chunk("maximize_margin", family, intercept, 0, MARGINS)
    print(f"{family}, {intercept}: {dict(found)}")
    assert not faults


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("family", CHANGES)
def test_fuzz_planted(family, intercept):
    """432 answers about up to 300 rows, far beyond what the oracle decides; `make fuzz` has up to 2,000."""
    for function in ("separate", "maximize_margin", "diagnose"):
        found, faults = chunk(function, family, intercept, 0, PLANTED, most=300)
        print(f"{function}, {family}, {intercept}: {dict(found)}")
        assert not faults


@pytest.mark.soak
@pytest.mark.parametrize("part", range(SOAK_CHUNKS))
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_fuzz_soak(family, intercept, part):
    """The long run, with the default number of rounds, too."""
    check_chunk(family, intercept, f"soak {part}", SOAK_SIZE, (None, 3, 40))
    found, faults = chunk("maximize_margin", family, intercept, f"soak {part}", SOAK_MARGINS)
    print(f"margins: {dict(found)}")
    assert not faults


@pytest.mark.parametrize("family", FAMILIES)
def test_oracle_agrees_with_itself(family):
    """Its two methods, an exact linear program and an exact minimum-norm point, give the same answer for each intercept."""
    r = random.Random(family)
    for _ in range(40):
        X, y = instance(family, r)
        for intercept in INTERCEPTS:
            separable = oracle.separable(signed(X, y, intercept))
            assert separable == (squared_margin(X, y, intercept) > 0)
            assert separable == (oracle.sup_margin(hull(X, y, intercept)) > 0)


def test_a_fault_is_seen():
    """The checks can fail: a bracket beside γ*, a certificate for other data."""
    X, y = np.array([[1.0], [-1.0]]), [1, 0]
    assert bracket_faults((0.5, 0.9), Fraction(1)) == bracket_faults((1.1, 1.2), Fraction(1)) == [INVALID]
    assert bracket_faults((0.5, math.nextafter(1.0, 0.0)), Fraction(1)) == [INVALID]
    assert certificate_faults(gordan.separate(X, y).certificate, -X, y) == [REJECTED]
