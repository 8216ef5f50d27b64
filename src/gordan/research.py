"""`play`: the function researchers call."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gordan import dynamics, methods, rows
from gordan.arrays import Array
from gordan.errors import InputError
from gordan.geometry import Simplex
from gordan.methods import Method
from gordan.trace import Moment, Trace


def play(
    A: Any,
    method: str | Method = "smooth_perceptron",
    rounds: int = 1000,
    *,
    caps: Any = None,
    halves: Any = None,
    p0: Any = None,
    record: Iterable[int] | None = None,
    time_limit: float | None = None,
    callback: Callable[[Moment], object] | None = None,
    threads: int | None = None,
) -> Trace:
    """Play the game max_w min_p pᵀAw with a named method and return what was measured.

    Parameters
    ----------
    A : rows A_i = y_i x_i, dense or SciPy-sparse, float or integer, or a `gordan.rows.Rows`.
    method : a registered name (see `gordan.methods.names()`), or a method with options, such as
        `gordan.methods.smooth_perceptron(form="game", eta=0.5)`.
    rounds : how many rounds to play at most.
    caps : upper bound on each p_i (the soft margin: 1/(νn) for every row), or None.
    halves : 0 or 1 for each row; p then has mass ½ on each half (the free intercept), or None.
    p0 : the p-player's starting weights, positive, one per row; normalized here. Uniform (proportional to the caps) if None.
    record : the rounds to measure at; about 20 per decade if None. The last round is always measured.
    time_limit : seconds after which to stop, at the end of a round.
    callback : called with each recorded `Moment`; something true stops the run.
    threads : how many threads a pass may use; all cores if None.

    Notes
    -----
    The game is played on A/R with R = max_i ‖A_i‖ in the method's norm, which is what the theorems assume; margins and bracket
    are multiplied back. They are floating-point estimates of a valid bracket.

    Examples
    --------
    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], "accelerated_perceptron", 1000)
    >>> lower, upper = trace.bracket
    >>> bool(lower <= 7 / 17**0.5 <= upper)
    True
    """
    if isinstance(method, str):
        method = methods.get(method)()
    elif not isinstance(method, Method):
        raise InputError(f"method is {method!r}; pass a name such as 'smooth_perceptron', or call it with its options")
    rounds = _whole("rounds", rounds)
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"time_limit is {time_limit!r}; pass a positive number of seconds, or None")
    moments = _log_spaced(rounds) if record is None else {_whole("record", t) for t in record}
    if moments and max(moments) > rounds:
        raise InputError(f"record asks for round {max(moments)}, but only {rounds} are played")

    raw = rows.of(A, threads=threads)
    R = raw.radius(method.norm)
    if 0 < R < 1e-300:
        raise InputError(f"the largest row has norm {R:.3g}, too small to divide by; multiply A by a power of two")
    scaled = raw.scaled(1 / R) if R > 0 else raw
    p_set = Simplex(raw.n, caps=caps, halves=halves)
    form = method.build(scaled, p_set, _start(p_set, p0))
    return dynamics.run(
        form,
        rounds,
        record=moments,
        scale=R if R > 0 else 1.0,
        bound=method.guarantee.gap,
        time_limit=time_limit,
        callback=callback,
        name=method.name,
        form_name=method.form,
    )


def _start(p_set: Simplex, p0: Any) -> Array:
    if p0 is None:
        return p_set.centre
    p = np.array(p0, dtype=np.float64)
    if p.shape != (p_set.n,):
        raise InputError(f"A has {p_set.n} rows but p0 has shape {p.shape}; pass one weight per row")
    if not ((p > 0) & np.isfinite(p)).all():
        row = int(np.flatnonzero(~((p > 0) & np.isfinite(p)))[0])
        raise InputError(f"p0[{row}] is {p[row]}; starting weights must be positive and finite (leave the row out instead)")
    for members in p_set.members:
        p[members] *= p_set.mass / np.sum(p[members])
    if p_set.caps is not None and (p > p_set.caps * (1 + 1e-9)).any():
        row = int(np.argmax(p / p_set.caps))
        raise InputError(f"p0[{row}] is {p[row]:.6g} of the total, above its cap {p_set.caps[row]:.6g}")
    return p


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise InputError(f"{name} is {value!r}; pass a whole number, at least 1")
    return int(value)


def _log_spaced(rounds: int) -> set[int]:
    """About 20 rounds per decade, 1 and the last among them."""
    count = 1 + math.ceil(20 * math.log10(rounds)) if rounds > 1 else 1
    return {int(t) for t in np.unique(np.geomspace(1, rounds, count).round())}
