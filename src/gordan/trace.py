"""Measurements of a run: one `Moment` per recorded round, and all of them in a `Trace`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

import numpy as np

from gordan.arrays import Array, relative_width
from gordan.checkpoint import checkpointed
from gordan.errors import import_extra, input_errors
from gordan.losses import Loss
from gordan.schema import (
    COUNT,
    DECIMAL,
    LIST,
    TEXT,
    FieldType,
    choice,
    each,
    fields,
    mapping,
    optional,
    require_format,
    strict_json,
)
from gordan.statuses import Ending

FORMAT = "gordan-trace-1"


@checkpointed("run.moment")
@dataclass(frozen=True, eq=False)
class Moment:
    """One recorded round, as handed to a callback.

    `margin`, `normalized_margin`, `lower` and `upper` are in the units of A. The rest lives in the game on A/R, where the
    theorems hold. Entries are None if the method plays no game (the baselines) or has no such theorem. `w`, `p` are this
    round's moves (w_t is None for a baseline), `w_out` the method's output so far.
    """

    t: int
    margin: float
    normalized_margin: float
    lower: float
    upper: float
    m: float | None = None
    dual: float | None = None
    regret_w: float | None = None
    regret_p: float | None = None
    weight: float = 0.0
    bound: float | None = None
    passes: float = 0.0
    seconds: float = 0.0
    w: Array | None = field(default=None, repr=False)
    p: Array | None = field(default=None, repr=False)
    w_out: Array | None = field(default=None, repr=False)
    p_bar: Array | None = field(default=None, repr=False)

    @property
    def gap(self) -> float:
        """The relative width of the bracket, (upper - lower)/upper; 0 if upper is 0, or below lower because of rounding."""
        return relative_width(self.lower, self.upper)


COLUMNS = tuple(f.name for f in dataclass_fields(Moment) if f.name not in ("w", "p", "w_out", "p_bar"))


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """The record of one run. Columns are arrays over the recorded rounds (None if nothing was measured)::

        t                   the round
        margin              γ(w) = min_{p∈P} pᵀAw of the output w, as long as it is (a sum over rounds grows)
        normalized_margin   γ(w)/‖w‖_q
        lower, upper        the bracket: the best lower and upper bound on γ* seen at recorded rounds
        m, dual             m(w̄_t) = min_p g(w̄_t, p) and max_w g(w, p̄_t): the ends of the game's gap
        regret_w, regret_p  the weighted regrets Σα_s h_s(w_s) - min_w Σα_s h_s(w), and the same for p, measured exactly;
                            in the bilinear games against comparators with ‖w‖_q ≤ 1
        weight              Σ_{s≤t} α_s
        bound               what the method's theorem promises for dual - m; of the Perceptrons, which play no game but make
                            at most (p-1)/γ² mistakes, √((p-1)/mistakes), which bounds ‖Aᵀp̄_t‖_p and so `upper`/R
        passes, seconds     spent by the method; the pass for R, looking at it and callbacks are left out

    `w` is the method's output (what its theorem is about) and `p` its last distribution; `w_bar`, `p_bar` are the weighted
    averages; `w_best`, `p_best` are the vectors behind `lower` and `upper`. `scale` is R: the game was played on A/R.
    `loss` is the loss that was minimized, whose least value `lower` and `upper` then bound, or None for a margin. `status` is
    "finished" (nothing left to do), "rounds" (their limit), "time-limit", "callback" or "interrupted".
    """

    method: str
    form: str
    norm: float
    n: int
    d: int
    scale: float
    status: Ending
    columns: dict[str, Array | None]
    w: Array
    p: Array | None
    w_bar: Array | None = None
    p_bar: Array | None = None
    w_best: Array
    p_best: Array | None
    loss: Loss | None = None

    def __getattr__(self, name: str) -> Any:
        if name in COLUMNS:
            return self.columns[name]
        raise AttributeError(f"a trace has no {name!r}; its columns are {', '.join(COLUMNS)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *COLUMNS]

    def __len__(self) -> int:
        return len(self.t)

    def fetched(self, to_host: Callable[[Any], Array]) -> Trace:
        """Return the trace with its vectors over rows on the host, where `to_host` brings those that are elsewhere."""
        over_rows: dict[str, Any] = {name: getattr(self, name) for name, size in VECTORS.items() if size == "n"}
        there = {id(x): x for x in over_rows.values() if not (x is None or isinstance(x, np.ndarray))}
        here = {key: to_host(x) for key, x in there.items()}  # each of them once
        return replace(self, **{name: here.get(id(x), x) for name, x in over_rows.items()}) if here else self

    def __repr__(self) -> str:
        what = "margin" if self.loss is None else "least value"
        return (
            f"Trace({self.method}, {self.form} form, n={self.n}, d={self.d}: {self.t[-1]} rounds, "
            f"{self.passes[-1]:.4g} passes, {what} in [{self.lower[-1]:.6g}, {self.upper[-1]:.6g}], {self.status})"
        )

    @property
    def bracket(self) -> tuple[float, float]:
        """The last (lower, upper), floating-point estimates of an interval that contains γ*."""
        return float(self.lower[-1]), float(self.upper[-1])

    @property
    def gap(self) -> Array:
        """The relative width (upper - lower)/upper at recorded rounds; 0 if upper is 0, or below lower by rounding."""
        upper = np.asarray(self.upper)
        gap: Array = np.divide(np.maximum(0.0, upper - self.lower), upper, out=np.zeros_like(upper), where=upper > 0)
        return gap

    @property
    def average_regret(self) -> Array | None:
        """(R^w + R^p)/Σα of the two players at recorded rounds, which bounds the game's gap; None if no game is played."""
        if self.regret_w is None or self.regret_p is None:
            return None
        return np.asarray((self.regret_w + self.regret_p) / self.weight)

    def to_dict(self) -> dict[str, list[float | None]]:
        """Return the columns as plain lists, with None if nothing was measured, for `polars.DataFrame(...)` and JSON."""
        return {name: [None] * len(self) if column is None else column.tolist() for name, column in self.columns.items()}

    def to_frame(self) -> Any:
        """Return the columns as a pandas data frame, with one row per recorded round."""
        pandas = import_extra("pandas", "data", "Trace.to_frame")
        return pandas.DataFrame(self.to_dict()).astype({name: float for name in COLUMNS if name != "t"})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a JSON file, from which floats are restored exactly."""
        from gordan.io import write_atomic  # not above: nothing else that `import gordan` needs reads or writes files

        content = {"format": FORMAT} | {name: form.write(getattr(self, name)) for name, form in SCALAR_FIELDS.items()}
        content |= {} if self.loss is None else {"loss": self.loss.value}  # files about margins are those of earlier versions
        content["columns"] = {name: _plain(column) or [None] * len(self) for name, column in self.columns.items()}
        content |= {name: _plain(getattr(self, name)) for name in VECTORS}
        write_atomic(path, (json.dumps(content, allow_nan=False) + "\n").encode())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Trace:
        """Read a trace that `save` wrote, or raise an InputError."""
        with input_errors(f"{path} is not a trace", ValueError, RecursionError):
            content = strict_json(Path(path).read_bytes())
        stated = content.pop("format", None) if type(content) is dict else None
        require_format(stated, (FORMAT,), f"{path} is not a trace")
        with input_errors(f"{path} is damaged", ValueError, OverflowError):
            return _from_plain(content)

    @staticmethod
    def of(moments: Sequence[Moment], **facts: Any) -> Trace:
        """Return the trace of these moments."""
        columns = {name: _column(name, [getattr(moment, name) for moment in moments]) for name in COLUMNS}
        return Trace(columns=columns, **facts)


def _column(name: str, values: Iterable[Any]) -> Array | None:
    values = list(values)
    if any(value is None for value in values):
        return None
    return np.array(values, dtype=np.int64 if name == "t" else np.float64)


SCALAR_FIELDS = {
    "method": TEXT,
    "form": TEXT,
    "norm": DECIMAL,
    "n": COUNT,
    "d": COUNT,
    "scale": DECIMAL,
    "status": choice(*Ending),
}
# The vectors, and whether their length is n or d. All but w and w_best may be None.
VECTORS = {"w": "d", "p": "n", "w_bar": "d", "p_bar": "n", "w_best": "d", "p_best": "n"}
COLUMN_FIELDS = {
    **SCALAR_FIELDS,
    "loss": optional(choice(*Loss)),
    "columns": mapping("the columns of a trace", dict.fromkeys(COLUMNS, LIST)),
    **{name: LIST if name in ("w", "w_best") else optional(LIST) for name in VECTORS},
}


def _plain(values: Array | None) -> Any:
    return None if values is None else [DECIMAL.write(value) if isinstance(value, float) else value for value in values.tolist()]


def _from_plain(content: dict[str, Any]) -> Trace:
    """Return the trace that was written as `content`; raise a ValueError or an OverflowError if it is not valid."""
    content.setdefault("loss", None)
    found = fields(content, COLUMN_FIELDS, "a trace")
    rounds = len(found["columns"]["t"])
    if not rounds:
        raise ValueError("it has no rounds")
    found["columns"] = {
        name: None if values == [None] * rounds else _numbers(values, name, rounds, COUNT if name == "t" else DECIMAL)
        for name, values in found["columns"].items()
    }
    found["status"] = Ending(found["status"])
    found["loss"] = None if found["loss"] is None else Loss(found["loss"])
    for name, size in VECTORS.items():
        if found[name] is not None:
            found[name] = _numbers(found[name], name, found[size], DECIMAL)
    return Trace(**found)


def _numbers(values: Any, name: str, length: int, form: FieldType) -> Array:
    found = each(form, f"a list of {length} values, each of them {form.description}", length).parse(values, name)
    return np.array(found, dtype=np.int64 if form is COUNT else np.float64)
