"""The checker. It re-derives every claim from X and y; of gordan it uses the reading of data and the rigorous bounds, no solver.

Signs are decided by a floating-point enclosure, and by exact integers for the rows where that is not enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.certificates import bounds, exact
from gordan.certificates.data import Certificate
from gordan.certificates.problem import Problem
from gordan.errors import InputError
from gordan.rows.device import Entries

# Rows whose lowest end is refined exactly before a bracket's lower bound is given up as wide.
MOST_EXACT_ROWS = 4096
# Relative width of an enclosure of the margin that is left as it is.
NARROW = 1e-9


@dataclass(frozen=True)
class Check:
    """Whether a certificate was accepted, what it claims, and why it was rejected. True when accepted."""

    accepted: bool
    claim: str
    reason: str = ""

    def __bool__(self) -> bool:
        return self.accepted


def verify(certificate: Certificate, X: Any, y: Any) -> Check:
    """Check a certificate against data. Raises only on malformed input; a false claim is a rejected one.

    >>> import gordan
    >>> X, y = [[0.0], [1.0]], [0, 1]
    >>> c = gordan.Certificate("separator", "free", (0, 1), (2, 1), w=(1.0,), b=-0.5)
    >>> bool(gordan.verify(c, X, y)), bool(gordan.verify(c, X, [1, 0]))
    (True, False)
    """
    if not isinstance(certificate, Certificate):
        raise InputError(f"certificate is {type(certificate).__name__}; read one with Certificate.from_json")
    problem = Problem.of(X, y)
    if certificate.w is not None and not certificate.exact and len(certificate.w) == problem.X.d:
        bounds.Products.of(problem.X, np.array(certificate.w, dtype=np.float64))  # in one pass with the norms
    if not np.isfinite(problem.X.norms).all():
        problem.require_finite()
    return check(certificate, problem)


def check(certificate: Certificate, problem: Problem) -> Check:
    """`verify` on data that has been read."""
    reason = _refusal(certificate, problem)
    return Check(not reason, _claim(certificate), reason)


def _claim(c: Certificate) -> str:
    if c.kind == "separator":
        return "the data is separable"
    if c.kind == "witness":
        return f"the data is not separable: {len(c.rows)} rows suffice to show it"
    if c.kind == "bracket":
        return f"the largest margin is at least {c.lower!r} and at most {c.upper!r}"
    if c.kind == "quasi-separation":
        return "the data is quasi-completely separated: w is strict on every row on which a weak separator can be"
    return f"the data overlaps, no direction separates even weakly: {len(c.rows)} rows suffice to show it"


def accepts(head: Certificate, problem: Problem, w: Array | None, p: Array | None) -> bool:
    """Whether `check` accepts the separator or bracket `head` with this w and the weights p over all rows.

    Before it has them: to make tuples of many numbers, and arrays of these again, takes longer than to check them.
    """
    signs = problem.signs if head.classes == problem.classes else -problem.signs
    reason = _other_data(head, problem) or _out_of_range(head, w)
    if p is not None and not (np.min(p) >= 0 and np.max(p) < math.inf):
        reason = "its weights are not positive"
    if not reason:
        p = np.zeros(problem.X.n) if p is None else p
        reason = (_separator if head.kind == "separator" else _bracket)(head, problem, signs, w, p)
    return not reason


def _other_data(c: Certificate, problem: Problem) -> str:
    """Why nothing can be said of this data."""
    if c.shape != (problem.X.n, problem.X.d):
        return f"it is about data of shape {c.shape}, not {(problem.X.n, problem.X.d)}"
    if {*c.classes} != {*problem.classes}:
        return f"its classes are {c.classes}, those of y are {problem.classes}"
    entries = problem.X.arrays[0]
    if not bounds.floats_are_ieee() or (isinstance(entries, Entries) and not entries.ieee()):
        return "this process flushes subnormals or rounds differently; nothing can be proved in it"
    return ""


def _refusal(c: Certificate, problem: Problem) -> str:
    """Why the certificate is not accepted; empty if it is."""
    reason = _other_data(c, problem)
    if reason:
        return reason
    signs = problem.signs if c.classes == problem.classes else -problem.signs
    if len({*c.rows}) != len(c.rows) or (c.rows and not 0 <= min(c.rows) <= max(c.rows) < problem.X.n):
        return "its rows are not distinct rows of X"
    if (c.weights and min(c.weights) <= 0) or len(c.weights) != len(c.rows):
        return "its weights are not positive, one for each row"
    w = None if c.w is None or c.exact else np.fromiter(c.w, np.float64, len(c.w))  # integers may be beyond the floats
    reason = _out_of_range(c, w)
    if reason:
        return reason
    if not c.exact:
        p = np.zeros(problem.X.n)
        p[list(c.rows)] = c.weights
        return (_separator if c.kind == "separator" else _bracket)(c, problem, signs, w, p)
    if c.kind == "witness":
        return _witness(c, problem, signs)
    return _quasi_separation(c, problem, signs) if c.kind == "quasi-separation" else _overlap(c, problem, signs)


def _out_of_range(c: Certificate, w: Array | None) -> str:
    """What no file can hold."""
    n, d = c.shape
    if any(given is not None and len(given) != d for given in (c.w, w)) or (
        c.sample_weight is not None and len(c.sample_weight) != n
    ):
        return "its w or its sample weights are of the wrong length"
    numbers = [c.norm, c.lower or 0.0, c.upper or 0.0]
    plain = () if c.exact else (*c.weights, c.b or 0.0)
    infinite = w is not None and not np.isfinite(w).all()
    if infinite or any(map(math.isnan, numbers)) or not all(map(math.isfinite, (*plain, c.nu or 0.0))):
        return "it has numbers that are not finite"
    return ""


def _separator(c: Certificate, problem: Problem, signs: Array, w: Array | None, p: Array) -> str:
    if w is None:
        return "it has no w"
    b = float(c.b or 0.0)
    if c.intercept == "none" and b != 0:
        return "it has b although there is no intercept"
    products = bounds.Products.of(problem.X, w)
    row = first_not_positive(problem, products, w, b, signs)
    if row is not None:
        return f"row {row} is not on the right side"
    return _bracket(c, problem, signs, w, p) if c.lower is not None or c.upper is not None else ""


def first_not_positive(problem: Problem, products: bounds.Products, w: Array, b: float, signs: Array) -> int | None:
    """The first row with y_i(x_i·w + b) ≤ 0, decided exactly; `products` are those of X and w."""
    lo, hi = products.scores(b, signs)
    if (lo <= 0).any():
        if (hi < 0).any():
            return int(np.argmax(hi < 0))
        products.sharpen(np.flatnonzero(lo <= 0))
        lo, hi = products.scores(b, signs)
        problem.X.have(np.flatnonzero(lo <= 0)[:MOST_EXACT_ROWS])
    for i in np.flatnonzero(lo <= 0):
        if hi[i] < 0 or _rounded_score(problem, int(i), w, b, signs)[1] <= 0:
            return int(i)
    return None


def _witness(c: Certificate, problem: Problem, signs: Array) -> str:
    if not c.rows:
        return "it has no rows"
    problem.X.have(c.rows)
    entries = [exact.integer_entries(problem.X, row) for row in c.rows]
    low = min(e for _, _, e in entries)
    p = [int(weight) * int(signs[row]) for row, weight in zip(c.rows, c.weights, strict=True)]
    balance = sum(p)
    column = exact.first_not_cancelling([part << (e - low) for part, (_, _, e) in zip(p, entries, strict=True)], entries)
    if column is not None:
        return f"the weighted rows do not cancel in column {column}"
    if c.intercept != "none" and balance != 0:
        return "the weights of the two classes differ, and there is an intercept"
    return ""


def _quasi_separation(c: Certificate, problem: Problem, signs: Array) -> str:
    """A w ≥ 0, A w ≠ 0; and A_i v = 0 for each v with A v ≥ 0 and each row with A_i w = 0, since p says so of its support."""
    if c.w is None:
        return "it has no w"
    w, b = [*c.w], 0 if c.b is None else c.b
    if c.intercept == "none" and b != 0:
        return "it has b although there is no intercept"
    found = exact.score_signs(problem.X, [int(x) for x in w], int(b), signs)
    if (found < 0).any():
        return f"row {int(np.argmax(found < 0))} is on the wrong side"
    if not found.any():
        return "w separates nothing: every row is on its plane"
    on_plane = np.flatnonzero(found == 0)
    if not len(on_plane):
        return "w leaves no row on its plane: the separation is complete"
    reason = _witness(c, problem, signs)
    if reason:
        return reason
    return "" if exact.spans(problem, c.rows, on_plane, c.intercept) else "its rows do not span the rows on the plane of w"


def _overlap(c: Certificate, problem: Problem, signs: Array) -> str:
    """A_i w = 0 for every row i and each w with A w ≥ 0, since p says so of its support, which spans all rows."""
    reason = _witness(c, problem, signs)
    if reason:
        return reason
    everything = np.arange(problem.X.n)
    return "" if exact.spans(problem, c.rows, everything, c.intercept) else "its rows do not span all rows"


def _bracket(c: Certificate, problem: Problem, signs: Array, w: Array | None, p: Array) -> str:
    weights = None if c.sample_weight is None else np.array(c.sample_weight)
    if (c.norm < 2) or math.isnan(c.norm):
        return f"its norm is {c.norm}, below 2"
    c_ = np.ones(problem.X.n) if weights is None else weights
    if not ((c_ >= 0) & np.isfinite(c_)).all():
        return "a sample weight is negative or not finite"
    if c.nu is not None:
        groups = [c_] if c.intercept != "free" else [c_[signs > 0], c_[signs < 0]]
        if not 0 < c.nu <= 1 or not all(bounds.reaches(group, c_, c.nu, len(groups)) for group in groups):
            return f"nu is {c.nu}, which leaves no p"
    if c.lower is not None and c.lower > 0:
        if w is None:
            return "it has no w for its lower bound"
        b, products = float(c.b or 0.0), bounds.Products.of(problem.X, w)
        best = lower_bound(problem, products, signs, w, b, c.norm, c.nu, weights, c.intercept)
        if c.lower > best:
            best = lower_bound(problem, products, signs, w, b, c.norm, c.nu, weights, c.intercept, exactly=True)
        if not (c.lower <= best or _lower_exactly(c, problem, products, signs, w, b, weights)):
            return f"its lower bound {c.lower!r} is above {best!r}, which is what w proves"
    if c.upper is not None and c.upper < math.inf:
        proved = upper_bound(problem, signs, p, c.norm, c.nu, weights, c.intercept)
        if not (c.upper >= proved or _upper_exactly(c, problem, signs, p, weights)):
            return f"its upper bound {c.upper!r} is below {proved!r}, which is what p proves"
    return ""


def _lower_exactly(
    c: Certificate, problem: Problem, products: bounds.Products, signs: Array, w: Array, b: float, weights: Array | None
) -> bool:
    """Whether w proves the lower bound, in exact arithmetic, where that is a question of few rows and of squares at most."""
    if c.lower is None or c.nu is not None or c.norm not in (2, math.inf):
        return False
    b = b if c.intercept == "penalized" else 0.0
    lo, hi = products.scores(b, signs)
    groups = [signs != 0] if c.intercept != "free" else [signs > 0, signs < 0]
    margin = Fraction(0)
    for members in groups:
        group = np.flatnonzero(members if weights is None else members & (weights > 0))
        close = group[lo[group] <= np.min(hi[group], initial=math.inf)]
        if not 0 < len(close) <= MOST_EXACT_ROWS:
            return False
        problem.X.have(close)
        scores = [bounds.exact_score(problem.X, int(i), w, b, int(signs[i])) for i in close]
        margin += min(Fraction(m) * Fraction(2) ** e for m, e in scores) / len(groups)
    entries = [abs(Fraction(float(x))) for x in ((*w, b) if c.intercept == "penalized" else w)]
    if margin <= 0 or not any(entries):
        return False
    if math.isinf(c.norm):
        return Fraction(c.lower) * sum(entries) <= margin
    return Fraction(c.lower) ** 2 * sum(x * x for x in entries) <= margin**2


def _upper_exactly(c: Certificate, problem: Problem, signs: Array, p: Array, weights: Array | None) -> bool:
    """Whether p proves the upper bound, in exact arithmetic: what floats prove depends on storage and on the order of sums."""
    used = np.flatnonzero(p).tolist()
    if c.upper is None or c.upper < 0 or len(used) > MOST_EXACT_ROWS or not _allowed(p, signs, c.nu, weights, c.intercept):
        return False
    problem.X.have(used)
    sides = [1, -1] if c.intercept == "free" else [0]
    total: dict[int, Fraction] = {}
    for side in sides:
        rows = [row for row in used if side in (0, int(signs[row]))]
        mass = sum((Fraction(float(p[row])) for row in rows), Fraction(0)) * len(sides)
        if mass == 0:
            return False
        for row in rows:
            share = Fraction(float(p[row])) * int(signs[row]) / mass
            if c.intercept == "penalized":
                total[-1] = total.get(-1, Fraction(0)) + share
            for column, value in zip(*problem.X.row(row), strict=True):
                total[int(column)] = total.get(int(column), Fraction(0)) + share * Fraction(float(value))
    if math.isinf(c.norm) or not any(total.values()):
        return Fraction(c.upper) >= max(map(abs, total.values()), default=Fraction(0))
    return c.norm == 2 and Fraction(c.upper) ** 2 >= sum(value**2 for value in total.values())


def _allowed(p: Array, signs: Array, nu: float | None, weights: Array | None, intercept: str) -> bool:
    """Whether p ≥ 0, scaled to the mass it must have, is in P: decided exactly."""
    if not ((p >= 0) & np.isfinite(p)).all() or (weights is not None and (p[weights == 0] > 0).any()):
        return False
    if nu is None:
        return True
    c = np.ones(len(p)) if weights is None else weights
    groups = [np.ones(len(p), dtype=bool)] if intercept != "free" else [signs > 0, signs < 0]
    return bool((p <= c).all()) and all(bounds.reaches(p[group], c, nu, len(groups)) for group in groups)


def lower_bound(
    problem: Problem,
    products: bounds.Products,
    signs: Array,
    w: Array,
    b: float,
    norm: float,
    nu: float | None,
    weights: Array | None,
    intercept: str,
    *,
    exactly: bool = False,
    slack: float = 1.0,
) -> float:
    """A float that γ* is at least, from w: the lowest p·Aw over P, divided by ‖w‖_q. Zero if nothing better is proved.

    Without intercept the scores are y_i x_i·w; with a penalized one y_i(x_i·w + b), divided by ‖(w, b)‖; with a free one b does
    not matter: half the sum of the two classes' lowest. The lowest scores are refined in exact arithmetic where their enclosures
    are wide, or if asked to. `slack` is that of the enclosures (see `bounds.CLAIM`).
    """
    b = b if intercept == "penalized" else 0.0
    if norm == 2 and intercept != "penalized":
        length = products.length
    else:
        size = np.abs(np.append(w, b)) if intercept == "penalized" else np.abs(w)
        length = bounds.norm_bounds(size, size, norm, dual=True)[1]
    if not 0 < length < math.inf:
        return 0.0
    lo, hi = products.scores(b, signs, slack)
    groups = [np.arange(problem.X.n)] if intercept != "free" else [np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)]
    if nu is None:
        if weights is not None:
            groups = [group[weights[group] > 0] for group in groups]
        if any(not len(group) for group in groups):
            return 0.0
        lows, narrow = _lows(lo, hi, groups)
        if not narrow:
            products.sharpen(np.sort(np.concatenate([group[lo[group] <= np.min(hi[group])] for group in groups])))
            lo, hi = products.scores(b, signs, slack)
            lows, narrow = _lows(lo, hi, groups)
        if exactly or not narrow:
            lows = [_lowest(problem, lo, hi, group, w, b, signs) for group in groups]
    else:
        c = np.ones(problem.X.n) if weights is None else weights
        total = bounds.sum_bounds(c)
        share = tuple(nu * part / len(groups) for part in total)
        mass = bounds.down(share[0]), bounds.up(share[1])
        lows = [_tail(lo[group], c[group], *mass) for group in groups]
        if exactly or not np.max(hi - lo) <= NARROW * sum(lows):
            products.sharpen(np.arange(problem.X.n))
            lo, hi = products.scores(b, signs, slack)
            lows = [_tail(lo[group], c[group], *mass) for group in groups]
    margin = bounds.down(math.fsum(bounds.down(low / len(groups)) for low in lows))
    return max(0.0, bounds.down(margin / length)) if margin > 0 else 0.0


def _lows(lo: Array, hi: Array, groups: list[Array]) -> tuple[list[float], bool]:
    """The lowest end in each group, and whether the enclosures of the lowest scores are narrow for their size."""
    lows = [float(np.min(lo[group])) for group in groups]
    width = sum(float(np.min(hi[group])) for group in groups) - sum(lows)
    return lows, width <= NARROW * sum(lows)


def _lowest(problem: Problem, lo: Array, hi: Array, group: Array, w: Array, b: float, signs: Array) -> float:
    """A lower bound on the smallest score in the group, sharpened by exact scores."""
    ceiling = float(np.min(hi[group]))
    floor = float(np.min(lo[group]))
    close = group[lo[group] < ceiling]
    if len(close) > MOST_EXACT_ROWS:
        return floor
    problem.X.have(close)
    exact = [_rounded_score(problem, int(i), w, b, signs)[0] for i in close]
    return min([ceiling, *exact]) if len(close) < len(group) else min(exact)


def _rounded_score(problem: Problem, i: int, w: Array, b: float, signs: Array) -> tuple[float, float]:
    """A float not above y_i(x_i·w + b) and next to it, and something that has its sign."""
    score = bounds.near_score(problem.X, i, w, b, int(signs[i]))
    if not math.isnan(score):
        return bounds.down(score), score
    m, e = bounds.exact_score(problem.X, i, w, b, int(signs[i]))
    return bounds.round_down(m, e), float((m > 0) - (m < 0))


def _tail(lo: Array, c: Array, low_mass: float, high_mass: float) -> float:
    """A lower bound on min Σt_i s_i / K over 0 ≤ t_i ≤ c_i, Σt = K, for s ≥ lo and a K in [low_mass, high_mass].

    By duality (τK - Σc_i(τ - s_i)₊)/K for any τ is one; the best is the score at which the smallest ones reach mass K.
    """
    if c.min() == c.max() > 0:  # equal weights: no need to sort
        reached = int(min(low_mass / float(c[0]), len(lo) - 1))
        tau = float(np.partition(lo, reached)[reached])
    else:
        order = np.argsort(lo, kind="stable")
        with np.errstate(over="ignore"):
            reached = int(np.searchsorted(np.cumsum(c[order]), low_mass))
        tau = float(lo[order[min(reached, len(order) - 1)]])
    if not math.isfinite(tau) or low_mass <= 0:
        return -math.inf
    below = lo < tau
    with np.errstate(over="ignore", invalid="ignore"):
        terms = c[below] * (tau - lo[below]) * (1 + 8 * bounds.U)
    if not np.isfinite(terms).all():
        return -math.inf
    excess = bounds.sum_bounds(terms)[1] + len(terms) * bounds.TINY
    return bounds.down(tau - bounds.up(excess / low_mass))


def upper_bound(
    problem: Problem,
    signs: Array,
    p: Array,
    norm: float,
    nu: float | None,
    weights: Array | None,
    intercept: str,
    *,
    slack: float = 1.0,
) -> float:
    """A float that γ* is at most, from p ≥ 0 (not normalized): ‖Aᵀp‖_p over its mass; infinite if p is not allowed.

    With a free intercept each class is normalized to ½. With nu, p_i ≤ c_i and a mass of at least νΣc (½ of it in each class) are
    needed; scaling down to just that mass then keeps p under its caps. `slack` is that of the enclosures (see `bounds.CLAIM`).
    """
    if not _allowed(p, signs, nu, weights, intercept):
        return math.inf
    groups = [np.arange(problem.X.n)] if intercept != "free" else [np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)]
    q = np.zeros(problem.X.n)
    for group in groups:
        part = p[group]
        top = float(np.max(part, initial=0.0))
        if top == 0:
            return math.inf
        # only ratios within a group matter; without this a mass may overflow, and its reciprocal be taken for 0
        positive, part = part > 0, np.ldexp(part, -math.frexp(top)[1])
        tiny = positive & (part < bounds.TINY)  # or 0 by now
        if nu is not None and tiny.any():
            return math.inf  # without them the others may be above their caps
        part[tiny] = 0.0
        q[group] = part * (1 / (bounds.near_sum(part) * len(groups)))
    centre, error = _combination(problem, q, signs, intercept == "penalized")
    if not np.isfinite(centre).all():
        return math.inf
    size = np.abs(centre)
    length = problem.X.remembered(f"{norm}-norm", size, lambda: bounds.norm_bounds(size, size, norm, dual=False)[1])
    return bounds.up(length + bounds.up(slack * error))


def _combination(problem: Problem, q: Array, signs: Array, constant: bool) -> tuple[Array, float]:
    """Σ q_i y_i (x_i, 1?) as computed, and what it is at most away, in the 2-norm, from that of the exact weights.

    Each q_i is off by a share of (GO + 4)u, and a column is a sum of at most as many products as there are rows of weight: with
    γ_k as in `bounds.error` it is off by γ_k Σ q_i|x_ij|, and the norm of these by γ_k Σ q_i‖x_i‖ at most. The p-norm, p ≥ 2, is
    no larger.
    """
    X = problem.X
    used = np.flatnonzero(q)
    with np.errstate(over="ignore", invalid="ignore"):
        signed = q * signs
        centre = X.remembered("combination", signed, lambda: X.combination(signed))
        sizes = X.norms[used]
        if constant:
            centre, sizes = np.append(centre, np.sum(signed)), sizes + 1.0
        total = bounds.near_sum(q[used] * sizes) * (1 + 4 * bounds.GO * bounds.U)
        relative = 2 * bounds.U * (len(used) + 2 * bounds.GO + 16.0)
        # what underflow does to a weight, and to a product
        lost = len(used) * bounds.TINY * (float(np.max(sizes)) + X.d + 1.0)
    return centre, relative * total * (1 + 4 * bounds.U) + lost
