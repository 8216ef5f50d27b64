"""Certificates of every kind, true to the last bit or made by the package, and what can be changed about them.

`verdicts` asks both checkers about the text of a certificate. They must agree: accept, reject, or refuse to read it; and what
they accept must be true, which fractions of the data decide here, without any of the package.
"""

from __future__ import annotations

import json
import math
import random
import warnings
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np
import oracle
import scipy.sparse as sp
import test_fuzz as problems

import gordan
from gordan.certificates import standalone

INTERCEPTS = ("free", "none", "penalized")
FLOAT_KINDS = ("separator", "bracket", "verified-witness", "verified-quasi-separation", "verified-overlap")
NORMS = (2.0, 2.0, math.inf, 3.0, 2.5, 4.0, 1e4)
ACCEPT, REJECT, REFUSE = "accept", "reject", "refuse"
DISAGREE, FALSE, CRASH = "disagreement", "a false claim accepted", "crash"


# ---- what the checkers say ------------------------------------------------------------------------------------------


def verdicts(text, X, y, storage=np.asarray):
    """What `verify` and the standalone checker say of a certificate; a crash is a verdict, too."""
    return _asked(_verify, text, X, y, storage), _asked(_standalone, text, X, y, storage)


def _asked(checker, *arguments):
    try:
        return ACCEPT if checker(*arguments) else REJECT
    except (gordan.InputError, standalone.BadInput):
        return REFUSE
    except Exception as error:
        return f"{CRASH}: {error!r}"


def _verify(text, X, y, storage):
    return gordan.verify(gordan.Certificate.from_json(text), storage(np.array(X)), y)


def _standalone(text, X, y, storage):
    return standalone.check(standalone.read_certificate(text), X, y)[0]


# ---- what is true, in fractions -------------------------------------------------------------------------------------


class Facts:
    """What a certificate says of data, as fractions: scores, combinations and norms by their definitions."""

    def __init__(self, certificate, X, y):
        if "missing" in certificate.dropped:
            kept = [i for i, row in enumerate(X) if not any(map(math.isnan, row))]
            X, y = [X[i] for i in kept], [y[i] for i in kept]
        self.c, self.n, self.y = certificate, len(X), y
        self.signs = [1 if label == certificate.classes[1] else -1 for label in y]
        self.X = [[Fraction(x) for x in row] for row in X]
        self.penalized, self.free = certificate.intercept == "penalized", certificate.intercept == "free"
        weights = certificate.sample_weight
        self.weights = [Fraction(1)] * self.n if weights is None else [Fraction(w) for w in weights]
        sides = ([i for i in range(self.n) if self.signs[i] == side] for side in (1, -1))
        self.groups = list(sides) if self.free else [list(range(self.n))]
        nu = certificate.nu
        self.mass = None if nu is None else Fraction(nu) * sum(self.weights) / len(self.groups)

    @property
    def rows(self):
        """The rows of A as the oracle wants them: y_i x_i, or y_i (x_i, 1) unless there is no intercept; or those of a model."""
        if self.c.model != "logistic":
            return made_rows(self.c, self.X, self.y)
        constant = [] if self.c.intercept == "none" else [Fraction(1)]
        return [[sign * x for x in [*row, *constant]] for row, sign in zip(self.X, self.signs, strict=True)]

    def scores(self, b):
        w = [Fraction(x) for x in self.c.w]
        if self.c.model != "logistic":
            return [sum(map(Fraction.__mul__, row, w), Fraction(0)) for row in self.rows]
        return [s * (sum(map(Fraction.__mul__, x, w), Fraction(b))) for x, s in zip(self.X, self.signs, strict=True)]

    def least(self):
        """min over P of p·Aw; None where no row counts."""
        scores, total = self.scores((self.c.b or 0) if self.penalized else 0), Fraction(0)
        for group in self.groups:
            pairs = sorted((scores[i], self.weights[i]) for i in group if self.weights[i] > 0)
            if not pairs:
                return None
            left = self.mass
            if left is None:
                total += pairs[0][0] / len(self.groups)
                continue
            for score, cap in pairs:
                part = min(cap, left)
                total, left = total + part * score / self.mass / len(self.groups), left - part
        return total

    def combination(self):
        """Aᵀp for the p of the certificate, of mass 1."""
        t = dict(zip(self.c.rows, map(Fraction, self.c.weights), strict=True))
        total = [Fraction(0)] * (len(self.X[0]) + self.penalized)
        for group in self.groups:
            mass = sum(t.get(i, 0) for i in group) * len(self.groups)
            for i in group:
                share = t.get(i, 0) * self.signs[i] / mass
                row = [*self.X[i], *([Fraction(1)] if self.penalized else [])]
                total = [a + share * x for a, x in zip(total, row, strict=True)]
        return total

    def plane(self):
        return [*map(Fraction, self.c.w), *([Fraction(self.c.b or 0)] if self.penalized else [])]


def made_rows(c, X, y):
    """The rows of the other models, from what their likelihoods are: rows whose product with w must not fall."""
    one = [] if c.intercept == "none" else [Fraction(1)]
    rows = []
    for x, label in zip(X, y, strict=True):
        z = [*one, *x]
        if c.model == "poisson":
            rows += [z, [-v for v in z]] if label > 0 else [[-v for v in z]]
            continue
        k, own = len(c.classes), c.classes.index(label)
        if c.model == "multinomial":
            for other in range(k):
                if other != own:
                    parts = [[(int(j == own) - int(j == other)) * v for v in z] for j in range(1, k)]
                    rows.append([v for part in parts for v in part])
        else:
            if own > 0:
                rows.append([*(Fraction(-int(t == own - 1)) for t in range(k - 1)), *x])
            if own < k - 1:
                rows.append([*(Fraction(int(t == own)) for t in range(k - 1)), *(-v for v in x)])
    return rows


def norm_is_at_most(x, p, dual, bound):
    """Whether |x|_p ≤ bound, or the norm of the dual exponent; what balls of 2,000 bits do not tell is taken for equal."""
    sizes = [abs(v) for v in x if v]
    if not sizes or bound <= 0:
        return bound >= 0 and not sizes
    if math.isinf(p):
        return (sum(sizes) if dual else max(sizes)) <= bound
    if p == 2:
        return sum(v * v for v in sizes) <= bound * bound
    power = Fraction(p) / (Fraction(p) - 1) if dual else Fraction(p)
    with flint.ctx.workprec(2000):
        exponent = flint.arb(flint.fmpq(power.numerator, power.denominator))
        ratios = [flint.fmpq((v / bound).numerator, (v / bound).denominator) for v in sizes]
        return not sum((flint.arb(r) ** exponent for r in ratios), flint.arb(0)) > 1


def _searched(holds, guess):
    """The largest float for which `holds`, which does for 0 and not for the largest; by bisection over the floats."""
    low, high = 0, np.float64(1.7976931348623157e308).view(np.int64).item()
    near = np.float64(guess).view(np.int64).item()
    for place in (near - 3, near + 3):
        if low < place < high:
            low, high = (place, high) if holds(_float_at(place)) else (low, place)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(_float_at(middle)) else (low, middle)
    return _float_at(low)


def _float_at(place):
    return np.int64(place).view(np.float64).item()


def tight_lower(certificate, X, y):
    """The largest float that w proves γ* to be at least; 0 if nothing."""
    facts = Facts(certificate, X, y)
    least = facts.least()
    if least is None or least <= 0 or not any(facts.plane()):
        return 0.0
    x, p = facts.plane(), certificate.norm
    size = float(max(map(abs, x)))
    guess = min(float(min(least / Fraction(size), 10**300)), 1e300)
    return _searched(lambda f: f == 0 or norm_is_at_most(x, p, True, least / Fraction(f)), guess)


def tight_upper(certificate, X, y):
    """The smallest float that p proves γ* to be at most."""
    facts = Facts(certificate, X, y)
    u, p = facts.combination(), certificate.norm
    if not any(u):
        return 0.0
    guess = min(float(min(max(map(abs, u)), Fraction(10**300))), 1e300)
    return math.nextafter(_searched(lambda f: not norm_is_at_most(u, p, False, Fraction(f)), guess), math.inf)


def is_true(text, X, y):
    """Whether a claim that was accepted is true of the data, where the oracle knows; None where it does not."""
    c = gordan.Certificate.from_json(text)
    facts = Facts(c, X, y)
    if c.kind in ("witness", "verified-witness"):
        return not oracle.separable(facts.rows)
    if c.kind in ("overlap", "verified-overlap"):
        return oracle.weakly(facts.rows, [sum(column) for column in zip(*facts.rows, strict=True)]) == 0
    if c.kind in ("quasi-separation", "verified-quasi-separation"):
        scores = facts.scores(c.b or 0)
        on_plane = [row for row, score in zip(facts.rows, scores, strict=True) if score == 0]
        weak = min(scores) >= 0 < max(scores) and on_plane
        return bool(weak) and oracle.weakly(facts.rows, [sum(column) for column in zip(*on_plane, strict=True)]) == 0
    if c.kind == "separator" and min(facts.scores(c.b or 0)) <= 0:
        return False
    if c.nu is not None or c.norm not in (2, math.inf) or (c.lower is None and c.upper is None):
        return True if c.lower is None and c.upper is None else None
    kept = [i for i in range(facts.n) if facts.weights[i] > 0]
    if len({facts.signs[i] for i in kept}) < (2 if facts.free else 1):
        return None  # then nothing above 0 and below infinity is claimed
    rows = [facts.rows[i][: len(X[0]) + facts.penalized] for i in kept]
    if facts.free:
        rows = oracle.free([facts.X[i] for i in kept], [int(facts.signs[i] > 0) for i in kept])
    square = oracle.squared_margin(rows) if c.norm == 2 else oracle.sup_margin(rows) ** 2
    lower, upper = max(Fraction(c.lower or 0.0), Fraction(0)), c.upper
    return lower**2 <= square and (upper is None or math.isinf(upper) or (upper >= 0 and square <= Fraction(upper) ** 2))


# ---- certificates to start from --------------------------------------------------------------------------------------


def scaled(r, X):
    """X times a power of two that leaves it exact: most often 1, sometimes beyond all reason."""
    e = r.choice((0, 0, 0, 0, 60, -60, 400, -400, 990, -990))
    if e == 0:
        return X
    top = max((math.frexp(x)[1] for row in X for x in row if x), default=0)
    low = min((math.frexp(x)[1] for row in X for x in row if x), default=0)
    e = max(min(e, 1020 - top), min(0, -960 - low))
    return [[math.ldexp(x, e) for x in row] for row in X]


def found(r):
    """What `separate`, `diagnose` or `maximize_margin` has to say about a random problem."""
    X, y = problems.instance(r.choice([*problems.FAMILIES]), r)
    intercept = r.choice(INTERCEPTS)
    function = r.choice(("separate", "diagnose", "maximize_margin", "model", "model"))
    if function == "model":
        return of_a_model(r, X, y)
    if function == "separate":
        certificate = gordan.separate(X, y, intercept=intercept).certificate
    elif function == "diagnose":
        certificate = gordan.diagnose(X, y, intercept=intercept).certificate
    else:
        X = X * 2.0 ** -max(0, int(np.log2(np.max(np.abs(X), initial=1.0))) - 200)
        c = r.choice((None, [r.choice((0.5, 1.0, 2.0, 3.0, 0.1)) for _ in y]))
        nu = None
        if r.random() < 0.5:
            totals = [sum(w for w, label in zip(c or [1.0] * len(y), y, strict=True) if label == side) for side in (0, 1)]
            most = 2 * min(totals) / sum(totals) if intercept == "free" else 1.0
            nu = r.choice((most, most / 2, most / 3))
        options = {"norm": r.choice(NORMS[:5]), "nu": nu, "sample_weight": c, "max_iter": 3}
        try:
            certificate = gordan.maximize_margin(X, y, intercept=intercept, **options).certificate
        except gordan.InputError as error:
            if "too small for float64 products" not in str(error):  # rows of the smallest floats are refused
                raise
            certificate = None
    return (certificate, X.tolist(), y) if certificate is not None else tight(r)


def of_a_model(r, X, y):
    """What `diagnose` has to say about a model of counts or of three classes."""
    model = r.choice(("multinomial", "ordinal", "poisson"))
    y = [label + r.choice((0, 0, 1)) for label in y] if r.random() < 0.7 else [r.randint(0, 2) for _ in y]
    y = y if len({*y}) > 1 else [(y[0] + 1) % 3, *y[1:]]
    intercept = "free" if model == "ordinal" else r.choice(("free", "none"))
    X, y = X[:7, :2], y[:7]
    y = y if len({*y}) > 1 else [(y[0] + 1) % 3, *y[1:]]
    certificate = gordan.diagnose(X, y, model=model, intercept=intercept).certificate
    return (certificate, X.tolist(), y) if certificate is not None else tight(r)


def model(r):
    """The same about a random problem; with float weights, which are to be verified, where they were whole numbers."""
    c, X, y = of_a_model(r, *problems.instance(r.choice([*problems.FAMILIES]), r))
    if not c.exact or r.random() < 0.5 or max(map(abs, c.w or (0,))) >= 2**53:
        return c, X, y
    weights = tuple(t / sum(c.weights) for t in c.weights)
    w, b = None if c.w is None else tuple(map(float, c.w)), None if c.b is None else float(c.b)
    return replace(c, kind=f"verified-{c.kind}", weights=weights, w=w, b=b), X, y


def tight(r):
    """A bracket or separator with ends that are true to the last bit, or one of those ends beyond it."""
    n, d = r.randint(2, 9), r.randint(1, 4)
    entries = (lambda: float(r.randint(-3, 3)), lambda: r.gauss(0, 1), lambda: math.ldexp(r.randint(-9, 9), r.randint(-50, 50)))
    entry = r.choice(entries)
    X = [[entry() for _ in range(d)] for _ in range(n)]
    y = [1, 0, *(r.randint(0, 1) for _ in range(n - 2))]
    intercept, norm = r.choice(INTERCEPTS), r.choice(NORMS)
    w = tuple(r.choice((float(r.randint(-3, 3)), r.gauss(0, 1))) for _ in range(d))
    shift = r.choice((0, 0, 0.0, 3.0))
    if any(w) and r.random() < 0.8:  # most rows on the right side
        size = math.fsum(v * v for v in w)
        steps = [(1 if label else -1) * shift / size for label in y]
        X = [[x + step * v for x, v in zip(row, w, strict=True)] for row, step in zip(X, steps, strict=True)]
        right = [int(math.fsum(map(float.__mul__, row, w)) > 0) for row in X]
        y = [side if r.random() < 0.9 else label for side, label in zip(right, y, strict=True)]
        y = y if len({*y}) == 2 else [1 - y[0], *y[1:]]
    X = scaled(r, X)
    e = r.choice((0, 0, 0, 500, -500, 1000, -1000, 1020))
    w = tuple(math.ldexp(v, e) for v in w)
    c = r.choice((None, None, tuple(float(r.randint(0, 3)) for _ in y), tuple(r.choice((0.1, 0.3, 1.0, 2.5)) for _ in y)))
    totals = [sum(Fraction(v) for v, label in zip(c or [1] * n, y, strict=True) if label == side) for side in (0, 1)]
    nu, rows = None, sorted(r.sample(range(n), r.randint(1, n)))
    if r.random() < 0.5 and (min(totals) > 0 if intercept == "free" else sum(totals) > 0):
        most = min(Fraction(1), 2 * min(totals) / sum(totals)) if intercept == "free" else Fraction(1)
        nu = r.choice((float(most), float(most) / 2, float(most) / 3, 0.3 * float(most), 0.5 * float(most)))
        nu = nu if Fraction(nu) <= most else math.nextafter(nu, 0.0)
        rows = list(range(n))
    if c is not None:
        rows = [i for i in rows if c[i] > 0]
    if intercept == "free" and len({y[i] for i in rows}) < 2:
        rows = [i for i in range(n) if c is None or c[i] > 0]
    caps = [1.0] * n if c is None else c
    weights = tuple(caps[i] if nu is not None else r.choice((1.0, 2.0, r.random() + 0.1, 2.0**-40)) for i in rows)
    f = 0 if nu is not None else r.choice((0, 0, 0, 900, -900))
    weights = tuple(math.ldexp(t, f) for t in weights)
    b = r.choice((0.0, math.ldexp(r.gauss(0, 1), e), None))
    b = None if intercept == "none" else b
    certificate = gordan.Certificate("bracket", intercept, (0, 1), (n, d), w, b, tuple(rows), weights)
    certificate = replace(certificate, norm=norm, nu=nu, sample_weight=c)
    has_mass = rows and (intercept != "free" or len({y[i] for i in rows}) == 2)
    lower = tight_lower(certificate, X, y)
    upper = tight_upper(certificate, X, y) if has_mass else math.inf
    more, less = math.nextafter(lower, 1e308), math.nextafter(upper, 0.0)
    lower, upper = r.choice(((lower, upper), (more, upper), (lower, less), (lower, None)))
    kind = r.choice(("bracket", "bracket", "separator"))
    return replace(certificate, kind=kind, lower=lower, upper=upper), X, y


# ---- what is changed ------------------------------------------------------------------------------------------------

FLOATS, ENDS, LISTS = ("b", "lower", "upper", "norm", "nu"), ("lower", "upper"), ("w", "weights", "sample_weight")
LARGEST = 1.7976931348623157e308


def other_float(r, text):
    """The text of another float, or of something else in its place."""
    try:
        x = float.fromhex(text)
    except (ValueError, TypeError, OverflowError):
        x = 1.0
    if not math.isfinite(x):
        x = r.choice((1.0, LARGEST))
    near = [math.nextafter(x, 2e308), math.nextafter(x, -2e308)]
    near += [math.nextafter(near[0], 2e308), math.nextafter(near[1], -2e308)]
    far = [-x, 0.0, -0.0, 5e-324, LARGEST, x / 3, x * (1 + 1e-9), x * (1 - 1e-9), x * (1 + 1e-15), 1.0, 0.5]
    far += [math.ldexp(x, e) if abs(math.frexp(x)[1] + e) < 1020 else x for e in (1, -1, 10, -10, 1000, -1000, 2000)]
    strange = [x, int(x) if abs(x) < 1e300 else 1, True, None, [], {}, "", "inf", "-inf", "nan", "Infinity", str(x), hex(3)]
    strange += [x.hex().upper(), " " + x.hex(), x.hex().replace("0x", ""), x.hex() + "0", "0x1p0", "0x1p+0"]
    kind = r.random()
    chosen = r.choice(near) if kind < 0.5 else r.choice(far) if kind < 0.85 else r.choice(strange)
    return chosen.hex() if isinstance(chosen, float) and kind < 0.85 else chosen


def other_integer(r, text):
    """The same for whole numbers in hexadecimal."""
    try:
        m = int(text, 16)
    except (ValueError, TypeError, OverflowError):
        m = 1
    chosen = r.choice((m + 1, m - 1, -m, 2 * m, 3 * m, 0, m << 1100, m ^ (1 << max(0, m.bit_length() - 1)), m * (2**61 - 1)))
    strange = (m, float(m) if abs(m) < 1e300 else 1.5, (1.0).hex(), "", "0x", hex(m).upper(), hex(m)[2:], f"{m:#o}", None, True)
    return hex(chosen) if r.random() < 0.85 else r.choice(strange)


def change_number(r, c, X, y):
    """One number of a field."""
    number = other_float if c.get("kind") in FLOAT_KINDS else other_integer
    name = r.choice([*FLOATS, *LISTS, *LISTS])
    plain = other_float if name in ("lower", "upper", "norm", "nu", "sample_weight") else number
    if name in LISTS and isinstance(c.get(name), list) and c[name]:
        k = r.randrange(len(c[name]))
        c[name] = [*c[name][:k], plain(r, c[name][k]), *c[name][k + 1 :]]
    elif name not in LISTS:
        c[name] = plain(r, c.get(name))


def change_end(r, c, X, y):
    """An end of the bracket by one unit in the last place, or several."""
    name = r.choice(ENDS)
    if isinstance(c.get(name), str) and c[name] != "inf":
        try:
            x = float.fromhex(c[name])
        except (ValueError, OverflowError):
            return
        for _ in range(r.choice((1, 1, 2, 5))):
            x = math.nextafter(x, r.choice((2e308, -2e308)))
        c[name] = x.hex()


def change_list(r, c, X, y):
    """Entries of a list exchanged, repeated, added or left out."""
    name = r.choice(("w", "weights", "rows", "sample_weight", "shape", "classes"))
    values = c.get(name)
    if not isinstance(values, list) or not values:
        return
    i, j = r.randrange(len(values)), r.randrange(len(values))
    swapped = [*values]
    swapped[i], swapped[j] = swapped[j], swapped[i]
    shorter, repeated = [*values[:i], *values[i + 1 :]], [*values[:i], values[j], *values[i + 1 :]]
    c[name] = r.choice((swapped, shorter, repeated, [*values, values[i]]))


def change_rows(r, c, X, y):
    """A row for another, one more with its weight, one less, or numbers that are none of rows."""
    rows, weights = c.get("rows"), c.get("weights")
    if not isinstance(rows, list) or not isinstance(weights, list) or len(rows) != len(weights):
        return
    n, kind = len(X), r.random()
    one = "0x1" if c.get("kind") not in FLOAT_KINDS else (1.0).hex()
    if kind < 0.3 and rows:
        k = r.randrange(len(rows))
        c["rows"] = [*rows[:k], r.choice((r.randrange(n), n, -1, n + 2**40, True, 1.0, "0", None)), *rows[k + 1 :]]
    elif kind < 0.7:
        c["rows"], c["weights"] = [*rows, r.randrange(n)], [*weights, r.choice((one, *(weights or [one])))]
    elif rows:
        k = r.randrange(len(rows))
        c["rows"], c["weights"] = rows[:k] + rows[k + 1 :], weights[:k] + weights[k + 1 :]


def change_weights(r, c, X, y):
    """All sample weights anew, or all weights of p times one number."""
    n = len(X)
    if r.random() < 0.6:
        among = r.choice(((1.0,), (0.0, 1.0), (0.5, 1.0, 2.0), (r.random(), r.random()), (1e300, 1.0), (1.7e308,)))
        c["sample_weight"] = r.choice((None, [r.choice(among).hex() for _ in range(n)]))
    elif isinstance(c.get("weights"), list):
        factor = r.choice((2.0, 3.0, 0.5, 2.0**900, 2.0**-900, 0.0, -1.0))
        try:
            if c.get("kind") in FLOAT_KINDS:
                c["weights"] = [(float.fromhex(t) * factor).hex() for t in c["weights"]]
            else:
                c["weights"] = [hex(int(int(t, 16) * Fraction(factor))) for t in c["weights"]]
        except (TypeError, ValueError, OverflowError):
            pass


def change_word(r, c, X, y):
    """A kind, intercept, norm, nu, label or shape for another."""
    words = {
        "kind": (*standalone.KINDS, "proof", None),
        "intercept": (*INTERCEPTS, "Free", None),
        "norm": ("inf", *(x.hex() for x in (2.0, 3.0, 2.5, 1.5, 0.0, -2.0, 1e300, 2.0000000000000004, 1.9999999999999998))),
        "nu": (None, *(x.hex() for x in (1.0, 0.5, 0.1, 1.5, 0.0, 5e-324, 0.30000000000000004))),
        "classes": ([1, 0], [0, 2], ["0", "1"], [False, True], [True, False], [0, 0], [0], [0.0, 1.0], ["0x0.0p+0", (1.0).hex()]),
        "class_type": ("int", "float", "bool", "str", "complex", None),
        "shape": ([len(X) + 1, len(X[0])], [len(X), len(X[0]) + 1], [len(X[0]), len(X)], [0, 0], [2.0, 1], [-1, 1]),
        "data_hash": ("", "ab", None, 5, [], "0" * 64),
        "format": ("gordan-certificate-1", "gordan-certificate-3", None),
        "model": ("poisson", "multinomial", "ordinal", "logistic", None),
        "about": (None, {}, ABOUT, {**ABOUT, "columns": ["a"], "size": 5}, {**ABOUT, "size": -1}, {**ABOUT, "file": 1}),
        "dropped": ([], ["missing"], ["zero-weight"], ["missing", "zero-weight"], ["zero-weight", "missing"], ["other"], None),
    }
    name = r.choice([*words])
    c[name] = r.choice(words[name])
    if name == "kind" and r.random() < 0.7:  # numbers in the other form
        whole = c["kind"] in ("witness", "quasi-separation", "overlap")
        for field in ("w", "weights", "b"):
            c[field] = _converted(c.get(field), whole)
        for field, (_, _, kinds) in standalone.FIELDS.items() if c["kind"] in standalone.KINDS else ():
            if c["kind"] in kinds:  # the fields of the other kind
                c.setdefault(field, {"norm": "0x1.0000000000000p+1", "dependent": [], "dropped": []}.get(field))
            else:
                c.pop(field, None)


ABOUT = dict.fromkeys(("file", "size", "label", "weight", "positive", "columns", "version", "statement"))


def _converted(value, whole):
    if isinstance(value, list):
        return [_converted(v, whole) for v in value]
    try:
        x = Fraction(float.fromhex(value)) if "." in value else Fraction(int(value, 16))
        return hex(int(x * 2**60)) if whole else float(x).hex()
    except (TypeError, ValueError, OverflowError):
        return value


def change_fields(r, c, X, y):
    """A field less, one more, or something quite different in its place."""
    name = r.choice([*c])
    kind = r.random()
    if kind < 0.3:
        del c[name]
    elif kind < 0.5:
        c[r.choice(("note", "Kind", "format ", ""))] = r.choice((None, 1, "x"))
    else:
        c[name] = r.choice((None, 0, 1, -1, 1.5, True, "", "x", [], [None], {}, {"a": 1}, [[0]], "0x1", "inf"))


CHANGES = [change_number] * 4 + [change_end] * 4 + [change_rows, change_weights, change_word] * 2 + [change_list, change_fields]


def change_text(r, text):
    """The text of a certificate, written otherwise or spoiled."""
    k = r.randrange(len(text))
    return r.choice(
        (
            json.dumps(json.loads(text), indent=r.choice((None, 1)), sort_keys=True),
            " " + text + "\n",
            text[:k],
            text[:k] + text[k + 1 :],
            text[:k] + r.choice('0123456789abcdefpx+-."{}[],: \\') + text[k + 1 :],
            text[:k] + r.choice('0123456789abcdefpx+-."{}[],: \\') + text[k:],
            text.replace('"kind"', '"kind": "witness", "kind"', 1),
            text.replace("null", r.choice(("NaN", "Infinity", "-Infinity", "nil", "-0", "0", "1e999")), 1),
            text.replace('"rows": [', '"rows": [' + r.choice(("-0, ", "00, ", "1e0, ", "1.0, ", "9" * 5000 + ", "))),
            text.replace('"kind"', '"k\\u0069nd"', 1),
            "[" * r.choice((1, 100_000)) + text,
        )
    )


def change_data(r, X, y):
    """Other data than the certificate was made for."""
    X, y = [[*row] for row in X], [*y]
    i, j = r.randrange(len(X)), r.randrange(len(X[0]))
    kind = r.randrange(9)
    if kind == 0:
        y[i] = 1 - y[i]
    elif kind == 1:
        X[i] = [-x for x in X[i]]
    elif kind == 2:
        X[i][j] = math.nextafter(X[i][j], r.choice((1e308, -1e308)))
    elif kind == 3:
        k = r.randrange(len(X))
        X[i], X[k] = X[k], X[i]
    elif kind == 4:
        X, y = X[:i] + X[i + 1 :], y[:i] + y[i + 1 :]
    elif kind == 5:
        X = [[*row, 0.0] for row in X]
    elif kind == 6:
        X[i][j] = r.choice((0.0, math.inf, math.nan, 1e300, 5e-324))
    elif kind == 7:
        other = r.choice((lambda v: 0, lambda v: 2 * v, lambda v: "abc"[v % 3], float, bool))
        y = [other(label) for label in y]
    else:
        X, y = [*X, X[i]], [*y, y[i]]
    return X, y


def mutated(r, certificate, X, y, changes=CHANGES, text_share=0.06, data_share=0.12):
    """The text of a certificate with up to three changes, and the data, which may be changed as well."""
    content = json.loads(certificate.to_json())
    for _ in range(r.choice((0, 1, 1, 1, 1, 2, 3))):
        r.choice(changes)(r, content, X, y)
    text = json.dumps(content)
    if r.random() < text_share:
        text = change_text(r, text)
    if r.random() < data_share:
        X, y = change_data(r, X, y)
    return text, X, y


# ---- the run --------------------------------------------------------------------------------------------------------


def run(seed, bases, each, start=lambda r: r.choice((found, tight, tight))(r)):
    """`each` changes of each of `bases` certificates: how often each verdict, and the faults with what shows them.

    What is accepted is held against the oracle; and of one margin no lower bound that is accepted may be above an upper one.
    """
    r = random.Random(f"mutations {seed}")
    counts, faults = Counter(), []
    for k in range(bases):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            certificate, X, y = start(r)
        ends = defaultdict(lambda: (0.0, math.inf))
        for _ in range(each):
            text, data, labels = mutated(r, certificate, X, y)
            storage = r.choice((np.asarray, np.asarray, sp.csr_array)) if np.isfinite(data).all() else np.asarray
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                first, second = verdicts(text, data, labels, storage)
            counts[certificate.model, certificate.kind, first] += 1
            said = f"verify: {first}, standalone: {second}"
            where = f"seed {seed!r}, certificate {k}\n  {text[:3000]}\n  X = {data}\n  y = {labels}\n  {said}"
            if first != second or CRASH in first + second:
                faults.append((CRASH if CRASH in first + second else DISAGREE, where))
            elif ACCEPT in (first, second):
                if is_true(text, data, labels) is False:
                    faults.append((FALSE, where))
                faults += _contradictions(ends, text, data, labels, where)
    return counts, faults


def _contradictions(ends, text, X, y, where):
    c = gordan.Certificate.from_json(text)
    if c.lower is None and c.upper is None:
        return []
    about = repr((X, y, c.intercept, c.classes, c.norm, c.nu, c.sample_weight))
    lower, upper = ends[about]
    ends[about] = max(lower, c.lower or 0.0), min(upper, math.inf if c.upper is None else c.upper)
    return [(FALSE, f"brackets that contradict each other\n{where}")] if ends[about][0] > ends[about][1] else []
