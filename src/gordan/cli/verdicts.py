"""The commands `gordan separate` and `gordan diagnose`, whose answers are proved."""

from __future__ import annotations

import json
import math
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import gordan
from gordan.cli.answers import (
    format_rows,
    headline,
    print_json,
    print_line,
    print_lines,
    print_notes,
    print_witness,
    replaced,
    require_output,
)
from gordan.cli.commands import ANSWERED, NO, UNDECIDED, Interrupts, Saved, command, write_output
from gordan.cli.data import ComputeOptions, Data, DataOptions, TableOptions, TooManyClasses, class_named, on_cluster
from gordan.cli.fields import fields
from gordan.cli.options import CertificateOut, Json, Order, Reference, TimeLimit, Weight, WithIntercept, WithModel
from gordan.cli.progress import Watch
from gordan.errors import InputError
from gordan.intercepts import Intercept
from gordan.io import write_atomic
from gordan.regressions import Regression

# The least and the largest number of different outcomes for each model.
CLASSES = dict.fromkeys(Regression, (2, math.inf)) | {Regression.LOGISTIC: (2, 2), Regression.POISSON: (1, math.inf)}

# What to print in place of attributes of a diagnosis in Python.
IN_THE_SHELL = {
    "(`rows`)": "(listed below)",
    "`direction` has": "`direction` in the output of --json has",
    "to_frame()": "--json",
}


@command(
    "gordan separate data.csv",
    "gordan separate iris.csv --label species --positive setosa",
    "gordan separate train.svm.gz --certificate proof.json --time-limit 60",
    "gordan separate data.csv --json | jq .status",
    fields={"separate": "status separable proved margin w b witness classes n d names seconds interrupted certificate"},
)
def separate(
    source: DataOptions,
    place: ComputeOptions,
    intercept: WithIntercept = Intercept.FREE,
    certificate: CertificateOut = None,
    time_limit: TimeLimit = None,
    as_json: Json = False,
) -> int:
    """Decide whether a plane separates the two classes, with proof.

    Exit code 0: separable. 1: not separable. 3: undecided. Rows are numbered from 0, without the header.
    """
    require_output(certificate, source.file)
    with Interrupts() as interrupts, Watch(f"reading {source.file}") as watch, on_cluster(place.cluster) as client:
        data = source.read(client=client, memory_limit=place.memory_limit)
        watch.about("separating")
        v = gordan.separate(
            data.X,
            data.y,
            intercept=str(intercept),
            time_limit=time_limit,
            device=place.device,
            callback=watch.verdict if watch.visible else None,
        )
        written = _write_certificate(certificate, v, data)
    v = data.with_file_rows(v)
    if as_json:
        content = fields("separate", v, data, witness=v.stated_witness, interrupted=interrupts.pressed, certificate=written.path)
        print_json({**content, **written.fields}, data.notices)
    else:
        headline(repr(v), v.separable)
        if v.stated_witness is not None:
            print_witness(v.stated_witness, data)
        _print_written(certificate, written)
    if interrupts.pressed:
        print_notes(interrupts.word)
    return written.exit_code(interrupts.code or {True: ANSWERED, False: NO, None: UNDECIDED}[v.separable])


def _write_certificate(path: Path | None, answer: gordan.Verdict | gordan.Diagnosis, data: Data) -> Saved:
    """Write the certificate, with a description of the data, if there is one and a file was named for it."""
    if path is None or answer.certificate is None:
        return Saved()
    certificate = data.described(answer.certificate)
    return write_output(path, lambda path: write_atomic(path, f"{certificate.to_json()}\n".encode()))


def _print_written(path: Path | None, written: Saved) -> None:
    if path is not None and written.error is None:
        print_line(f"certificate written to {path}" if written.path else "no certificate was written: nothing is proved")


@command(
    "gordan diagnose trial.csv --label died",
    "gordan diagnose trial.csv --label died --certificate proof.json",
    "gordan diagnose visits.csv --label visits --model poisson",
    "gordan diagnose trial.csv --label died --weight count --missing drop",
    "gordan diagnose pain.csv --model ordinal --order none,mild,severe",
    "gordan diagnose trial.csv --json | jq .columns",
    fields={
        "diagnose": "kind proved model columns rows direction dependent nearly_dependent open explanation event seconds "
        "interrupted certificate"
    },
)
def diagnose(
    source: DataOptions,
    model: WithModel = Regression.LOGISTIC,
    reference: Reference = None,
    order: Order = None,
    weight: Weight = None,
    intercept: WithIntercept = Intercept.FREE,
    certificate: CertificateOut = None,
    time_limit: TimeLimit = None,
    as_json: Json = False,
) -> int:
    """Decide whether the estimates of a regression exist: complete or quasi-complete separation, or overlap, with proof.

    Exit code 0: decided. 3: undecided.
    """
    require_output(certificate, source.file)
    if reference is not None and model is not Regression.MULTINOMIAL:
        raise InputError(f"--reference is for --model multinomial; a {model} regression has no reference class")
    with Interrupts() as interrupts, Watch(f"reading {source.file}") as watch:
        try:
            data = source.read(classes=CLASSES[model], weight=weight)
        except TooManyClasses as error:
            raise InputError(f"{error}, or --model multinomial, ordinal or poisson") from None
        watch.about("diagnosing")
        found = gordan.diagnose(
            data.named_X,
            with_class_order(data, order, model),
            model=str(model),
            reference=None if reference is None else class_named(reference, [*data.classes], data.path),
            intercept=str(intercept),
            sample_weight=data.named_weights,
            time_limit=time_limit,
        )
        written = _write_certificate(certificate, found, data)
    found = replace(found, rows=data.rows_in_file(found.rows))
    if as_json:
        exact = None if found.direction is None else {name: hex(value) for name, value in found.direction.items()}
        ended = {"interrupted": interrupts.pressed, "certificate": written.path}
        event = data.classes[1] if model is Regression.LOGISTIC else None
        sentences = [_in_class_words(sentence, data) for sentence in found.explanation]
        near = dict(found._nearly_dependent)
        content = fields("diagnose", found, event=event, explanation=sentences, direction=exact, nearly_dependent=near, **ended)
        print_json({**content, **written.fields}, data.notices)
    else:
        _print_diagnosis(found, data, _outcome_line(data, source, model))
        _print_written(certificate, written)
        if found.next_steps and model in (Regression.LOGISTIC, Regression.MULTINOMIAL):
            print_lines(["", *_next_commands(source, weight, intercept, data, found)])
    if interrupts.pressed:
        print_notes(interrupts.word)
    return written.exit_code(interrupts.code or (ANSWERED if found.proved else UNDECIDED))


def _print_diagnosis(found: gordan.Diagnosis, data: Data, outcome: str) -> None:
    """Print a diagnosis, with the line `outcome` in place of the event, and without the lines of Python code."""
    lines = (line for line in str(found).split("\n") if not line.startswith("Event: ") and line.strip() not in found.next_steps)
    first, *rest = (replaced(_in_class_words(line, data), IN_THE_SHELL) for line in lines)
    if data.left_out:  # rows with missing cells, which the diagnosis was not given
        gone, n = len(data.left_out) + found.left_out, data.n + len(data.left_out)
        more = f"{gone} of {n} rows are left out ({len(data.left_out)} with missing cells; "
        first = re.sub(r"^\d+ of \d+ rows (?:is|are) left out \(", more, first).replace(
            "numbered as given", "numbered as in the file"
        )
    headline(first, {"overlap": True, "undecided": None}.get(found.kind, False))
    for line in (outcome, *rest):
        print_line(line)
    if found.kind == "quasi-complete":
        what = "Rows strictly on the correct side" if found.model == "logistic" else "Separated rows"
        print_line(f"{what}: {format_rows(found.rows)} ({data.numbering}).")


def _in_class_words(words: str, data: Data) -> str:
    """Rewrite a sentence about True and False in terms of the class that is taken against the rest."""
    if data.positive is None:
        return words
    name, label = data.named_y.name, data.named.outcome or "label"
    words = words.replace(f"{name} = True", f"{label} = {data.positive}")
    return words.replace(f"{name} = False", f"{label} ≠ {data.positive}")


def _outcome_line(data: Data, source: DataOptions, model: Regression) -> str:
    """Return a line that says which column is the outcome, and which of its values the event."""
    event = f"; the event is {data.positive or data.classes[1]}" if model is Regression.LOGISTIC else ""
    last = "" if source.label is not None else " (the last column; --label names another one)"
    return f"Outcome: {data.named.outcome or 'the label of each row'}{event}{last}."


def _next_commands(
    source: DataOptions, weight: str | None, intercept: Intercept, data: Data, found: gordan.Diagnosis
) -> list[str]:
    """Return commands for models that have estimates on separated data: ridge, and Firth's penalized likelihood."""
    # an intercept, which is not penalized, takes the place of a column that is the constant
    constants = [name for name in found._constants if name in (data.names or ())]
    aliased = [name for name in found.dependent or () if name in (data.names or ())]
    source = replace(source, drop=[*(source.drop or ()), *dict.fromkeys([*aliased, *constants])])
    intercept = Intercept.FREE if intercept.exists or constants else intercept
    weights = [] if weight is None else ["--weight", weight]
    constant = [] if intercept is Intercept.FREE else ["--intercept", str(intercept)]
    scaled = ["--standardize"] if intercept.exists else []  # centred columns would add a constant to a model without one
    options = [*source.arguments, *weights, *constant, "--loss", found.model, *scaled, "-o", "ridge.gordan"]
    ridge = f"{shlex.join(['gordan', 'fit', str(source.file), *options])}  # ridge, with proof"
    model, what = ("[-1]", ", of standardized columns") if scaled else ("", "")
    coefficients = f"python3 -c \"import gordan; print(gordan.load('ridge.gordan'){model}.coef_)\"  # its coefficients{what}"
    return [ridge, coefficients, *(_firth_commands(source, intercept, data) if found.model == "logistic" else ())]


def _firth_commands(source: DataOptions, intercept: Intercept, data: Data) -> list[str]:
    """Return shell commands that fit Firth's penalized likelihood in Python."""
    default = TableOptions().columns
    asked = "".join(f", {name}={_python_literal(value)}" for name, value in source.columns.items() if value != default[name])
    y = "t.y" if data.positive is None else f"t.y == {_python_literal(data.positive)}"
    X, names, weights = "t.X", "t.names" if data.names else "range(t.X.shape[1])", ""
    if data.named.weight is not None:
        X, names, weights = "np.delete(t.X, k, 1)", "t.names[:k] + t.names[k + 1:]", ", t.X[:, k]"
    constant = "" if intercept.exists else "fit_intercept=False, "
    lines = [
        f"t = gordan.io.read({_python_literal(str(source.file))}{asked})",
        *([] if data.named.weight is None else [f"k = t.names.index({_python_literal(data.named.weight)})"]),
        f"f = FirthLogisticRegression({constant}max_iter=1000).fit({X}, {y}{weights})",
        f"print(*zip({names}, f.coef_.tolist()))",
    ]
    imports = ["import gordan", *(["import numpy as np"] if weights else []), "from firthmodels import FirthLogisticRegression"]
    return ["pip install firthmodels", "python3 - <<'END'  # Firth's estimates", *imports, *lines, "END"]


def _python_literal(value: Any) -> str:
    """Return a value as a Python literal, with text in double quotes."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (str, list)) else repr(value)


def with_class_order(data: Data, order: str | None, model: Regression) -> Any:
    """Return the labels, for an ordinal model with the order of their classes; warn if text is ordered alphabetically."""
    y = data.named_y
    if model is not Regression.ORDINAL:
        if order is not None:
            raise InputError(f"--order is for --model ordinal; a {model} regression has no order")
        return y
    y.categories = [*data.classes]
    if order is not None:
        y.categories = [class_named(name.strip(), [*data.classes], data.path) for name in order.split(",")]
        if sorted(map(str, y.categories)) != sorted(map(str, data.classes)):
            raise InputError(f"--order {order}: it must name each class once; they are {', '.join(map(str, data.classes))}")
    elif len(data.classes) > 2 and isinstance(data.classes[0], str):
        given, example = " < ".join(data.classes), ",".join(reversed(data.classes))
        print_notes(
            f"warning: the classes are text and taken in alphabetical order, {given}; pass --order with the lowest class "
            f"first, such as --order {example}"
        )
    return y
