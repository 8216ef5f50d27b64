"""The function `play`, which runs a named method and returns what was measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

from gordan import dynamics, methods, rows
from gordan.arrays import check_callback, is_number, require_aligned, seconds_at_most, whole_number
from gordan.checkpoint import Checkpoint, fingerprint, method_facts
from gordan.errors import InputError
from gordan.geometry import LossWeights, Simplex
from gordan.losses import Loss
from gordan.methods import Entry, Method
from gordan.trace import Moment, Trace


def play(
    A: Any,
    method: str | Entry | Method = "smooth_perceptron",
    rounds: int = 1000,
    *,
    caps: Any = None,
    halves: Any = None,
    p0: Any = None,
    loss: str | None = None,
    C: Any = 1.0,
    record: Iterable[int] | None = None,
    time_limit: float | None = None,
    callback: Callable[[Moment], object] | None = None,
    threads: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    device: str | None = None,
) -> Trace:
    """Play the game max_w min_p pᵀAw with a named method and return what was measured.

    Parameters
    ----------
    A
        rows A_i = y_i x_i, dense or SciPy-sparse, float or integer, a torch tensor or CuPy array, or a `gordan.rows.Rows`.
    method
        a registered name (see `gordan.methods.names()`), or a method with options, such as
        `gordan.methods.smooth_perceptron(form="game", eta=0.5)`.
    rounds
        how many rounds to play at most.
    caps
        upper bound on each p_i (the soft margin: 1/(νn) for every row), or None.
    halves
        0 or 1 for each row; p then has mass ½ on each half (the free intercept), or None.
    p0
        the p-player's starting weights, positive, one per row; normalized here. Uniform (proportional to the caps) if None.
    loss, C
        "hinge", "squared_hinge" or "logistic": play for the least ½‖w‖² + Σ C ℓ(A_i·w) instead, which is the same game with
        another set of p; C is a number, or one for each row. For methods with a game form of two leaders (`smooth_perceptron`,
        `accelerated_perceptron`, and `robust_perceptron` with its noise). `lower` and `upper` of the trace are then those of the
        least value.
    record
        the rounds to measure at; about 20 per decade if None. The last round is always measured.
    time_limit
        seconds after which to stop, at the end of a round.
    callback
        called with each recorded `Moment`; returning True stops the run.
    threads
        how many threads a pass may use; all cores if None.
    checkpoint
        a file that the run is written to, every half minute and at its end; the same call resumes from it. `rounds`,
        `record`, `time_limit` and `threads` may then be different, and the rows may be stored in another way.
    device
        "cuda" copies A to the GPU once, "cpu" brings it to the host; None leaves it where it is.

    Notes
    -----
    The game is played on A/R with R = max_i ‖A_i‖ in the method's norm, which is what the theorems assume; margins and bracket
    are multiplied back. They are floating-point estimates of a valid bracket.

    Examples
    --------
    >>> import gordan
    >>> trace = gordan.play([[2.0, 1.0], [1.0, 3.0], [2.0, -1.0]], "accelerated_perceptron", 1000)
    >>> lower, upper = trace.bracket
    >>> print(f"{lower:.4f} {upper:.4f}")  # 7/√17
    1.6977 1.6977
    """
    method = _chosen(method, loss)
    if loss is not None and not method.losses:  # a step size that is derived from the loss may be 0
        raise InputError(f"{method.name} ({method.form}) plays for margins only; for a loss use smooth_perceptron(form='game')")
    rounds = whole_number(rounds, "rounds")
    callback = check_callback(callback, "moment")
    moments = _planned(record, rounds)
    keeper = None if checkpoint is None else Checkpoint(checkpoint)
    raw = rows.of(A, threads=threads, device=device)
    require_aligned(A=A, caps=caps, halves=halves, p0=p0)
    p_set = _p_set(raw.n, loss, C, caps, halves, p0)
    # the value of a loss depends on the length of w: the rows are not rescaled
    start, R = (p_set.start(rows.host(p0)), raw.playable_radius(method.norm)) if loss is None else (p_set.centre, 0.0)
    scaled = raw.scaled(1 / R) if R > 0 else raw
    form: Any = method.on(method.placed(scaled, p_set, checkpoint=keeper is not None), p_set, start)
    if keeper is not None:
        facts: dict[str, Any] = {"task": "play"}
        # before the settings, some of which depend on C
        facts |= {} if loss is None else {"loss": str(loss), "C": float(C) if is_number(C) else p_set.c}
        facts |= method_facts(method, form)
        facts |= {"caps": p_set.caps, "halves": p_set.halves, "p0": None if p0 is None else start}
        keeper.require(fingerprint(raw, **facts))
    trace = dynamics.run(
        form,
        rounds,
        record=moments,
        scale=R if R > 0 else 1.0,
        bound=method.guarantee.bound,
        time_limit=seconds_at_most(time_limit),
        callback=callback,
        name=method.name,
        form_name=method.form,
        checkpoint=keeper,
    )
    return trace if loss is None else replace(trace, loss=Loss.of(loss))


def _chosen(method: str | Entry | Method, loss: str | None) -> Method:
    """Return the method with its options; for a loss, a method given by name uses its game form."""
    found: Any = methods.get(method) if isinstance(method, str) else method
    if isinstance(found, Entry):
        found = found(form="game") if loss is not None and "game" in found.forms else found()
    if hasattr(found, "__len__"):
        raise InputError("play takes the rows y_i x_i and no labels: with y of -1 and +1, pass y[:, None] * X, then the method")
    if not isinstance(found, Method):
        raise InputError(f"method is {found!r:.60}; pass a name such as 'smooth_perceptron', or call it with its options")
    return found


def _planned(record: Iterable[int] | None, rounds: int) -> Collection[int]:
    """Return the rounds to measure at."""
    if record is None:
        return dynamics.log_spaced(rounds)
    if not isinstance(record, Iterable):
        raise InputError(f"record is {record!r}; pass the rounds to measure at, such as range(1, 101), or None")
    moments = {whole_number(t, "record") for t in record}
    if moments and max(moments) > rounds:
        raise InputError(f"record asks for round {max(moments)}, but only {rounds} are played")
    return moments


def _p_set(n: int, loss: str | None, C: Any, caps: Any, halves: Any, p0: Any) -> Any:
    """Return the set of the p-player."""
    if loss is None:
        return Simplex(n, caps=rows.host(caps), halves=rows.host(halves))
    if not (caps is None and halves is None and p0 is None):
        raise InputError("caps, halves and p0 are for margins only; leave out either them or loss")
    return LossWeights.of(loss, C, n)
