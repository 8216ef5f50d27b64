"""Certificates of least losses, made by the package or true to the last bit, and what can be changed about them.

As `mutations` for the other kinds: both checkers must say the same of every one, and what they accept must hold the exact least
value, which `loss_oracle` and `multinomial_oracle` find without the package.
"""

from __future__ import annotations

import math
import random
import warnings
from collections import Counter
from dataclasses import replace
from functools import lru_cache

import loss_problems
import multinomial_oracle
import multinomial_problems
import mutations
import numpy as np
import scipy.sparse as sp
from flint import arb, ctx, fmpq
from loss_oracle import BITS, Data, exact, exact_mid, minimum, to_float, violates
from mutations import ACCEPT, CRASH, DISAGREE, FALSE

import gordan

LOSSES = (*loss_problems.LOSSES, "multinomial")
FAMILIES = ("integers", "integers", "duplicates", "zeros", "normal", "normal", "offset", "scaled")


# ---- certificates to start from ----------------------------------------------------------------------------------------


def base(r, loss, kind):
    """The certificate of a small problem, with X and y; or one whose ends are what its plane proves, to the last bit."""
    family = r.choice(FAMILIES)
    if loss == "multinomial":
        X, which, _, c = multinomial_problems.problem(r, family)
        y = [("b", "a", "c", "d")[label] for label in which]
    else:
        X, signs, c = loss_problems.problem(r, family, loss, kind)
        y = [int(sign > 0) for sign in signs]
    options = {"loss": loss, "intercept": kind, "tol": r.choice((1e-9, 1e-4)), "max_iter": r.choice((None, None, 1, 3))}
    if r.random() < 0.5:
        options |= {"sample_weight": c, "class_weight": r.choice((None, None, "balanced"))}
    else:
        options |= {"C": float(np.max(c))}
    try:
        certificate = gordan.minimize_loss(X, y, **options).certificate
    except gordan.InputError as error:
        if "overflows" not in str(error):
            raise
        return base(r, loss, kind)
    if r.random() < 0.5:
        certificate = tight(r, certificate, X, y)
    return certificate, X.tolist(), y


def tight(r, certificate, X, y):
    """The same with an end, or both, as near as the plane and the weights prove it; or beyond that by one bit."""
    lower, upper = proved(certificate, X, y)
    less, more = math.nextafter(lower, math.inf), math.nextafter(upper, -math.inf)
    ends = r.choice(((lower, upper), (lower, upper), (less, upper), (lower, more), (lower, None), (None, upper)))
    return replace(certificate, lower=ends[0], upper=ends[1])


def proved(certificate, X, y):
    """The largest float that is at most D, and the smallest that is at least P, by what the documentation says of both."""
    with ctx.workprec(BITS):
        P, D = _values(certificate, X, y)
        # from the ends of balls, which may be many floats apart: around 0 the radius is not small beside the value
        below, above = _float(D if isinstance(D, fmpq) else D.lower()), _float(P if isinstance(P, fmpq) else P.upper())
        while below > 0 and _above(below, D):
            below = math.nextafter(below, 0.0)
        while above < math.inf and _above(P, above):
            above = math.nextafter(above, math.inf)
        return max(below, 0.0), above


def _values(c, X, y):
    if c.several:
        data = _classes(c, X, y)
        planes = np.reshape(c.w, (len(c.classes), -1)).T
        W = [[exact(e) for e in row] for row in planes]
        full = W if c.intercept != "none" else [*W]
        s = [[sum((a * row[m] for a, row in zip(x, full, strict=True)), start=fmpq(0)) for m in range(data.k)] for x in data.X]
        q = [multinomial_oracle.rational(multinomial_oracle.softmax([arb(e) for e in row])) for row in s]
        return data.value(W), data.dual(q)[0]
    data, kept = _data(c, X, y), np.flatnonzero(_constants(c, y))
    v, b = [exact(e) for e in c.w], exact(c.b or 0.0)
    v = [*v, b] if c.intercept == "penalized" else v
    z, stored = data.scores(v, b), dict(zip(c.rows, c.weights, strict=True))
    alpha = []
    for i, t, cost in zip(kept.tolist(), z, data.c, strict=True):
        a = fmpq(int(t < 1)) if c.loss == "hinge" else 2 * max(1 - t, fmpq(0)) if c.loss == "squared_hinge" else _sigmoid(t)
        own = exact(stored[i]) if i in stored else cost * a
        alpha.append(own if c.loss == "squared_hinge" else min(own, cost))
    return data.value(v, b), data.dual(alpha)[0]


def _sigmoid(t):
    if abs(t) > 2000:
        return fmpq(0) if t > 0 else fmpq(1)
    return exact_mid(1 / (1 + arb(t).exp()))


def _float(x):
    return to_float(x) if isinstance(x, fmpq) else float(x.mid())


def _above(x, y):
    """x > y, of a float and what is exact or a ball; what a ball leaves open is taken for true."""
    x, y = (exact(e) if isinstance(e, float) else e for e in (x, y))
    return bool(x > y) if isinstance(x, fmpq) and isinstance(y, fmpq) else not arb(x) <= arb(y)


# ---- what is true ---------------------------------------------------------------------------------------------------


def _constants(c, y):
    which = [c.classes.index(label) for label in y]
    factors = np.ones(len(c.classes)) if c.class_weight is None else np.array(c.class_weight)
    sample = np.ones(len(y)) if c.sample_weight is None else np.array(c.sample_weight)
    return c.C * (sample * factors[which])


def _data(c, X, y):
    signs = [1 if label == c.classes[1] else -1 for label in y]
    return Data.of(X, signs, _constants(c, y), c.loss, c.intercept)


def _classes(c, X, y):
    which = np.array([c.classes.index(label) for label in y])
    return multinomial_oracle.Classes.of(np.array(X), which, len(c.classes), _constants(c, y), c.intercept)


@lru_cache(maxsize=512)
def _least(head, X, y):
    """The exact least value; None where the oracle does not find it. `head` is a certificate without its proof."""
    with ctx.workprec(BITS):
        if not _constants(head, y).any():
            return fmpq(0)
        if not head.several:
            data = _data(head, X, y)
            found = minimum(data, loss_problems.rough(data)) if head.loss == "logistic" else minimum(data)
        else:
            data = _classes(head, X, y)
            c, which = _constants(head, y), np.array([head.classes.index(label) for label in y])
            near = multinomial_problems.rough(np.array(X), which, len(head.classes), c, head.intercept)
            found = multinomial_oracle.least(data, near)
        return None if found is None else found.value


def is_true(text, X, y):
    """Whether the least value is in the interval of a certificate that was accepted; None where the oracle finds none."""
    c = gordan.Certificate.from_json(text)
    head = replace(c, w=None, b=None, rows=(), weights=(), lower=None, upper=None, data_hash=None, about=None)
    value = _least(head, tuple(map(tuple, X)), tuple(y))
    lower, upper = 0.0 if c.lower is None else c.lower, math.inf if c.upper is None else c.upper
    with ctx.workprec(BITS):
        return None if value is None else not violates(value, lower, upper)


# ---- what is changed ------------------------------------------------------------------------------------------------


def change_optimum(r, c, X, y):
    """A field that only certificates of losses have."""
    k = len(c["classes"]) if isinstance(c.get("classes"), list) else 2
    one, two, half, none = (x.hex() for x in (1.0, 2.0, 0.5, 0.0))
    words = {
        "loss": (*LOSSES, *LOSSES, "softmax", None),
        "C": (*(x.hex() for x in (0.5, 1.0, 2.0, 0.0, -1.0, 1e300, 5e-324)), mutations.other_float(r, c.get("C")), None),
        "class_weight": (None, [one] * k, [half] * (k - 1), [none] * k, [two, *[one] * (k - 1)], [none, *[one] * (k - 1)]),
        "weights_hash": ("0" * 64, None),
        "intercept": mutations.INTERCEPTS,
        "b": (none, one, mutations.other_float(r, c.get("b")), None),
    }
    name = r.choice([*words])
    c[name] = r.choice(words[name])


def change_weight(r, c, X, y):
    """A weight that a row has of its own, for the hinge and others: one more, one less, or another."""
    rows, weights = c.get("rows"), c.get("weights")
    if not (isinstance(rows, list) and isinstance(weights, list) and len(rows) == len(weights)):
        return
    if rows and r.random() < 0.6:
        k = r.randrange(len(rows))
        changed = r.choice(([mutations.other_float(r, weights[k])], []))
        c["rows"], c["weights"] = rows[: k + len(changed)] + rows[k + 1 :], weights[:k] + changed + weights[k + 1 :]
    else:
        c["rows"], c["weights"] = [*rows, r.randrange(len(X))], [*weights, r.choice((0.0, 0.5, 1.0, 3.0)).hex()]


CHANGES = [*mutations.CHANGES, *[change_optimum] * 5, *[change_weight] * 3, *[mutations.change_end] * 4]


def run(seed, bases, each):
    """`each` changes of each of `bases` certificates, losses and intercepts by turns: how often each verdict, and the faults."""
    r = random.Random(f"losses {seed}")
    counts, faults = Counter(), []
    for k in range(bases):
        loss, kind = LOSSES[k % len(LOSSES)], mutations.INTERCEPTS[k // len(LOSSES) % 3]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            certificate, X, y = base(r, loss, kind)
            for _ in range(each):
                data_share = 0.1 if {*y} == {0, 1} else 0.0
                text, data, labels = mutations.mutated(r, certificate, X, y, CHANGES, 0.04, data_share)
                storage = r.choice((np.asarray, np.asarray, sp.csr_array)) if np.isfinite(data).all() else np.asarray
                first, second = mutations.verdicts(text, data, labels, storage)
                counts[loss, first] += 1
                where = f"seed {seed!r}, certificate {k}\n  {text[:3000]}\n  X = {data}\n  y = {labels}\n  {first}, {second}"
                if first != second or CRASH in first:
                    faults.append((CRASH if CRASH in first + second else DISAGREE, where))
                if ACCEPT in (first, second) and '"optimum"' in text and is_true(text, data, labels) is False:
                    faults.append((FALSE, where))
    return counts, faults
