"""gordan and its peers, each as a small function of the data and its settings.

A function prepares what the peer wants to be given (not timed) and returns a `Call`: `run` is what is timed, and `answer` reads a
plane w, b off what it returned. What a plane is worth is judged here, the same way for everybody, from the raw data.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sets import Data

warnings.filterwarnings("ignore")  # of peers that stop at their iteration limit: what they reached is judged anyway


@dataclass(frozen=True)
class Answer:
    """A plane, if there is one, and what else the peer claims."""

    w: np.ndarray | None = None
    b: float = 0.0
    claims: dict[str, Any] | None = None


@dataclass(frozen=True)
class Call:
    """`run()` is timed; `answer(what it returned)` is not."""

    run: Callable[[], Any]
    answer: Callable[[Any], Answer]


# ---- gordan ---------------------------------------------------------------------------------------------------------


def gordan_verdict(data: Data, limit: float, intercept: str = "free") -> Call:
    """`separate`, with proof."""
    import gordan

    def answer(v: Any) -> Answer:
        return Answer(v.w, v.b or 0.0, {"status": v.status, "proved": v.proved, "margin": list(v.margin)})

    return Call(lambda: gordan.separate(data.X, data.y, intercept=intercept, time_limit=limit), answer)


def gordan_margin(data: Data, limit: float, intercept: str, tol: float, nu: float | None = None) -> Call:
    """`maximize_margin`, certified."""
    import gordan

    def answer(r: Any) -> Answer:
        claims = {"status": r.status, "gap": r.gap, "margin": list(r.margin), "passes": r.passes, "rounds": r.n_iter}
        if nu is not None and r.p is not None and r.w is not None:
            claims["level"] = _level(data, r, nu)
        return Answer(r.w, r.b or 0.0, claims)

    return Call(lambda: gordan.maximize_margin(data.X, data.y, intercept=intercept, tol=tol, nu=nu, time_limit=limit), answer)


def _level(data: Data, r: Any, nu: float) -> float:
    """The score of the rows that are neither idle nor at their cap: it ties nu to the C of a C-SVM."""
    cap = 1 / (nu * len(r.p))
    free = (r.p > 1e-6 * cap) & (r.p < (1 - 1e-6) * cap)
    scores = data.y * (data.X64 @ r.w + r.b)
    return float(np.median(scores[free if free.any() else r.p > 0]))


# ---- peers ----------------------------------------------------------------------------------------------------------


def highs(data: Data, limit: float) -> Call:
    """scipy's `linprog`: max t with y_i(x_i·w + b) ≥ t, |w_j| ≤ 1; separable iff t > 0."""
    from scipy.optimize import linprog

    A = data.signed(constant=True)
    ones = np.ones((len(data.y), 1))
    A_ub = sp.csc_array(sp.hstack((-A, sp.csr_array(ones)))) if data.sparse else np.hstack((-A, ones))
    d = A.shape[1] - 1
    cost = np.zeros(d + 2)
    cost[-1] = -1.0
    bounds = [(-1, 1)] * d + [(None, None), (None, None)]

    def run() -> Any:
        return linprog(cost, A_ub=A_ub, b_ub=np.zeros(len(data.y)), bounds=bounds, method="highs", options={"time_limit": limit})

    def answer(result: Any) -> Answer:
        done = result.status == 0
        claims = {"done": done, "t": float(-result.fun) if done else None, "message": result.message.split("(")[0].strip()}
        return Answer(result.x[:d], float(result.x[d]), claims) if done else Answer(claims=claims)

    return Call(run, answer)


def perceptron(data: Data, limit: float, epochs: int) -> Call:
    """scikit-learn's Perceptron, so many epochs."""
    from sklearn.linear_model import Perceptron

    model = Perceptron(max_iter=epochs, tol=None, random_state=0)
    return Call(lambda: model.fit(data.X64, data.y), _plane)


def liblinear(data: Data, limit: float, C: float, tol: float) -> Call:
    """LinearSVC: dual coordinate descent; the intercept is penalized."""
    from sklearn.svm import LinearSVC

    model = LinearSVC(loss="hinge", C=C, tol=tol, dual=True, max_iter=10**7, random_state=0)
    return Call(lambda: model.fit(data.X64, data.y), _plane)


def libsvm(data: Data, limit: float, C: float, tol: float) -> Call:
    """SVC(kernel="linear"): decomposition on the kernel matrix; free intercept."""
    from sklearn.svm import SVC

    model = SVC(kernel="linear", C=C, tol=tol, cache_size=1000)
    return Call(lambda: model.fit(data.X64, data.y), _plane)


def nu_libsvm(data: Data, limit: float, nu: float, tol: float) -> Call:
    """NuSVC(kernel="linear"): the same nu as ours, free intercept."""
    from sklearn.svm import NuSVC

    model = NuSVC(kernel="linear", nu=nu, tol=tol, cache_size=1000)
    return Call(lambda: model.fit(data.X64, data.y), _plane)


def clarabel(data: Data, limit: float, tol: float) -> Call:
    """The interior-point solver on min ½‖w‖², y_i(x_i·w + b) ≥ 1, with rows divided by the longest; free intercept."""
    import clarabel as solver

    A = sp.csc_matrix(-data.signed(constant=True) / data.radius)
    n, k = A.shape
    P = sp.diags_array(np.append(np.ones(k - 1), 0.0)).tocsc()
    settings = solver.DefaultSettings()
    settings.verbose = False
    settings.time_limit = limit
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol

    def run() -> Any:
        return solver.DefaultSolver(P, np.zeros(k), A, -np.ones(n), [solver.NonnegativeConeT(n)], settings).solve()

    def answer(solution: Any) -> Answer:
        x = np.array(solution.x)
        return Answer(x[:-1], float(x[-1]), {"status": str(solution.status)})

    return Call(run, answer)


def _plane(model: Any) -> Answer:
    coef = model.coef_
    return Answer(np.asarray(coef.todense() if sp.issparse(coef) else coef).ravel(), float(np.ravel(model.intercept_)[0]))


PEERS: dict[str, Callable[..., Call]] = {
    "gordan verdict": gordan_verdict,
    "gordan margin": gordan_margin,
    "HiGHS": highs,
    "Perceptron": perceptron,
    "LIBLINEAR": liblinear,
    "LIBSVM": libsvm,
    "LIBSVM nu": nu_libsvm,
    "Clarabel": clarabel,
}


# ---- what a plane is worth ------------------------------------------------------------------------------------------


def worth(data: Data, answer: Answer, intercept: str, nu: float | None) -> dict[str, Any]:
    """Training errors of w, b, and the margin of w (soft with nu); with a free intercept that of w with its best b."""
    if answer.w is None or not np.isfinite(answer.w).all() or not answer.w.any():
        return {"errors": len(data.y), "reached": -math.inf}
    scores = data.X64 @ answer.w
    signed = data.y * (scores + answer.b)
    length = math.hypot(np.linalg.norm(answer.w), answer.b if intercept == "penalized" else 0.0)
    if intercept == "free":
        lowest = [_mean_of_lowest(side * scores[data.y == side], _count(data, nu) / 2) for side in (1, -1)]
        reached = sum(lowest) / 2 / length
    else:
        reached = _mean_of_lowest(signed, _count(data, nu)) / length
    return {"errors": int(np.count_nonzero(signed <= 0)), "reached": float(reached)}


def _count(data: Data, nu: float | None) -> float:
    """How many rows the p-player must at least spread its mass over."""
    return 0.0 if nu is None else nu * len(data.y)


def _mean_of_lowest(scores: np.ndarray, count: float) -> float:
    """The mean of the `count` lowest scores, the last of them counted by its share; the lowest one if that is below 1."""
    if count <= 1:
        return float(np.min(scores))
    ordered = np.sort(scores)
    whole = int(count)
    rest = (count - whole) * ordered[min(whole, len(ordered) - 1)]
    return float((ordered[:whole].sum() + rest) / count)
