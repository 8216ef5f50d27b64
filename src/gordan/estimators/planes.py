"""What a fit is made of: the plane of each binary problem, soft where no hard one exists."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gordan.arrays import Array
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.statuses import LIMITS, Status
from gordan.trace import Moment, Trace
from gordan.verdicts import MarginResult, Witness, maximize_margin, outward
from gordan.verdicts.multiclass import Binary

# The gap to which a fit is brought at the end, whatever `tol`.
FINISH = 1e-9


@dataclass(frozen=True, eq=False)
class Plane:
    """What came of one binary problem. `separable` is None where that was not asked or not decided.

    `stopped`: a limit that was set ended the run.
    """

    binary: Binary
    result: MarginResult
    w: Array
    b: float
    separable: bool | None
    witness: Witness | None
    trace: Trace | None
    n_iter: int
    stopped: bool

    @property
    def settled(self) -> bool:
        """Whether there is nothing left to be found out: the reduced hulls meet, as far as floats can tell."""
        return not self.stopped and (not self.w.any() or self.result.status is Status.MARGIN_BELOW_TOL)

    @property
    def weights(self) -> Array:
        """y_i p_i over the rows of the problem."""
        p = self.result.p
        signs = np.where(self.binary.positive, 1.0, -1.0)
        return np.zeros(len(signs)) if p is None else np.asarray(signs * p)


@dataclass(frozen=True, eq=False)
class Fitting:
    """What is asked of every binary problem over one storage X; the names are those of `MaxMarginClassifier`."""

    X: Any
    nu: float | None
    norm: float
    intercept: Intercept
    method: Any
    tol: float
    max_iter: int | None
    deadline: float
    random_state: int | None
    threads: int | None
    verbose: int
    on_inseparable: str

    def plane(self, binary: Binary, start: Array | None) -> Plane:
        """The plane of one problem: hard, or soft where that cannot be. `start` are weights over all rows of X."""
        if start is not None and binary.rows is not None:
            start = start[binary.rows]
        X = self.X if binary.rows is None else self.X.part(binary.rows)  # a copy, made here so that few are there at a time
        first, result = self._solve(binary, X, self.nu, start)
        witness, separable = result.stated_witness, None
        if self.nu is None:
            separable = True if result.margin[0] > 0 else False if witness is not None else None
        trace, rounds = first.trace, first.n_iter
        if witness is not None and binary.rows is not None:
            witness = replace(witness, rows=tuple(binary.rows[[*witness.rows]].tolist()))
        if self._meet(result) and self.on_inseparable == "raise":
            raise InputError(f"{self._blame(binary, witness, result)}. {self.advice(binary)}")
        if self._meet(result) and self.nu is None:
            for share in (0.5, 1.0):
                first, result = self._solve(binary, X, share * binary.largest_nu(self.intercept), start)
                trace, rounds = first.trace, rounds + first.n_iter
                if result.margin[0] > 0:
                    break
        w, b = result.w, result.b
        if w is None or b is None or self._meet(result):
            more, less = binary.totals
            w, b = np.zeros(X.d), (more - less) / (more + less)
        if self.verbose:
            print(f"[MaxMarginClassifier] {binary.name}: {result!r}", flush=True)
        return Plane(binary, result, w, b, separable, witness, trace, rounds, self._stopped(result))

    def _solve(self, binary: Binary, X: Any, nu: float | None, start: Array | None) -> tuple[MarginResult, MarginResult]:
        """The run of the method, and what is left of it after the exact finish."""
        weights = binary.weights
        if nu is None and weights is not None and weights.all():
            weights = None  # they change nothing, and a certificate would carry them

        def run(method: Any, tol: float, start: Any) -> MarginResult:
            return maximize_margin(
                X,
                binary.labels,
                norm=self.norm,
                nu=nu,
                intercept=self.intercept,
                method=method,
                tol=tol,
                sample_weight=weights,
                max_iter=self.max_iter,
                time_limit=max(1e-3, self.deadline - time.perf_counter()),
                start=start,
                random_state=self.random_state,
                threads=self.threads,
                callback=_printer(binary.name) if self.verbose > 1 else None,
            )

        try:
            if isinstance(self.method, str) and self.method in ("auto", "double_oracle"):
                result = run(self.method, min(self.tol, FINISH), start)
                return result, result
            first = run(self.method, self.tol, start)
            if first.stated_witness is not None or self._stopped(first) or first.gap <= FINISH:
                return first, first
            finished = run("auto", min(self.tol, FINISH), first)
            return first, finished if finished.gap < first.gap else first
        except InputError as error:
            if binary.is_whole:
                raise
            raise InputError(f"{binary.name}: {error}") from None

    def _meet(self, result: MarginResult) -> bool:
        """Whether the (reduced) hulls of the classes meet, as far as is known: no positive margin, and no limit is to blame."""
        return result.margin[0] <= 0 and not self._stopped(result)

    def _stopped(self, result: MarginResult) -> bool:
        """Whether a limit that was set ended the run."""
        return result.status in LIMITS and (self.max_iter is not None or result.status is not Status.ITERATION_LIMIT)

    # ---- in words ----------------------------------------------------------------------------------------------------

    def outcome(self, plane: Plane) -> str:
        """What was done about a problem that no hard margin, or none this soft, separates."""
        told = self._blame(plane.binary, plane.witness, plane.result)
        if not plane.w.any():
            heavier = plane.b > 0
            label = plane.binary.labels[plane.binary.positive == heavier][:1].tolist()
            tried = f", also with nu = {plane.result.nu:.6g}" if self.nu is None else ""
            return f"{told}{tried}; w is 0 and the heavier class ({label[0]!r}) is predicted"
        return f"{told}; fitted with nu = {plane.result.nu:.6g}"

    def _blame(self, binary: Binary, witness: Witness | None, result: MarginResult) -> str:
        if self.nu is not None:
            most = f"none has more than {outward(*result.margin)[1]}"
            return f"{binary.name}: no plane of positive soft margin was found at nu = {self.nu:g} ({most})"
        if witness is None:
            return f"{binary.name}: no separator was found, nor a proof that there is none"
        return f"{binary.name} is not separable: {witness}"

    def advice(self, binary: Binary) -> str:
        """What to pass instead."""
        most = binary.largest_nu(self.intercept)
        if self.on_inseparable == "raise":
            soft = f", or on_inseparable='warn' to fit softly with nu = {most / 2:.6g}" if self.nu is None else ""
            return f"Pass {'nu' if self.nu is None else 'a larger nu'} (at most {most:.6g}){soft}"
        if self.nu is None:
            return "Pass nu to choose how soft the margin is, or on_inseparable='ignore' if this is expected"
        return f"Pass a larger nu (at most {most:.6g})"


def _printer(name: str) -> Callable[[Moment], None]:
    def show(moment: Moment) -> None:
        lower, upper = outward(max(0.0, moment.lower), moment.upper)
        told = f"round {moment.t}, {moment.passes:.1f} passes, margin in {lower}..{upper}"
        print(f"[MaxMarginClassifier] {name}: {told}", flush=True)

    return show
