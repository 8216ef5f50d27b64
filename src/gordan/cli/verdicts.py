"""`gordan separate` and `gordan diagnose`: questions that are answered with proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gordan
from gordan.certificates.data import About
from gordan.cli.answers import headline, note, require_output, rows_told, say, say_json, say_witness
from gordan.cli.commands import ANSWERED, NO, OPEN, Interrupts, Saved, command, saved
from gordan.cli.data import Data, Place, Source, on_cluster
from gordan.cli.fields import fields
from gordan.cli.options import CertificateOut, Json, TimeLimit, WithIntercept
from gordan.cli.progress import Watch
from gordan.intercepts import Intercept
from gordan.io import write_atomic


@command(
    "gordan separate data.csv",
    "gordan separate iris.csv --label species --positive setosa",
    "gordan separate train.svm.gz --certificate proof.json --time-limit 60",
    "gordan separate data.csv --json | jq .status",
)
def separate(
    source: Source,
    place: Place,
    intercept: WithIntercept = Intercept.FREE,
    certificate: CertificateOut = None,
    time_limit: TimeLimit = None,
    as_json: Json = False,
) -> int:
    """Is there a plane between the two classes? Yes or no, with proof.

    Exit code 0: separable. 1: not separable. 3: undecided. Rows are counted from 0, without the header.
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
        written = _write_certificate(certificate, v, data, source.label)
    if as_json:
        content = fields("separate", v, data, witness=v.stated_witness, interrupted=interrupts.pressed, certificate=written.path)
        say_json({**content, **written.fields}, data.notices)
    else:
        headline(repr(v), v.separable)
        if v.stated_witness is not None:
            say_witness(v.stated_witness, data)
        _tell_written(certificate, written)
    if interrupts.pressed:
        note(interrupts.told)
    return written.ended(interrupts.code or {True: ANSWERED, False: NO, None: OPEN}[v.separable])


def _write_certificate(path: Path | None, answer: gordan.Verdict | gordan.Diagnosis, data: Data, label: str | None) -> Saved:
    """Write the certificate, if a file was named for it and there is one, with what it is about."""
    if path is None or answer.certificate is None:
        return Saved()
    certificate = replace(answer.certificate, about=About(data.path.name, label, data.names, gordan.__version__))
    return saved(path, lambda path: write_atomic(path, f"{certificate.to_json()}\n".encode()))


def _tell_written(path: Path | None, written: Saved) -> None:
    if path is not None and written.error is None:
        say(f"certificate written to {path}" if written.path else "no certificate was written: nothing is proved")


@command(
    "gordan diagnose trial.csv --label died",
    "gordan diagnose trial.csv --label died --certificate proof.json",
    "gordan diagnose trial.csv --json | jq .columns",
)
def diagnose(
    source: Source,
    intercept: WithIntercept = Intercept.FREE,
    certificate: CertificateOut = None,
    time_limit: TimeLimit = None,
    as_json: Json = False,
) -> int:
    """Do the estimates of a logistic regression exist? Complete or quasi-complete separation, or overlap, with proof.

    Exit code 3: undecided.
    """
    require_output(certificate, source.file)
    with Interrupts() as interrupts, Watch(f"reading {source.file}") as watch:
        data = source.read()
        watch.about("diagnosing")
        found = gordan.diagnose(data.named_X, data.y, intercept=str(intercept), time_limit=time_limit)
        written = _write_certificate(certificate, found, data, source.label)
    if as_json:
        exact = None if found.direction is None else {name: hex(value) for name, value in found.direction.items()}
        ended = {"interrupted": interrupts.pressed, "certificate": written.path}
        content = fields("diagnose", found, event=data.classes[1], direction=exact, **ended)
        say_json({**content, **written.fields}, data.notices)
    else:
        first, *rest = repr(found).split("\n")
        headline(first, {"overlap": True, "undecided": None}.get(found.kind, False))
        for line in rest:
            say(line)
        if found.kind == "quasi-complete":
            say(f"Rows strictly on their side: {rows_told(found.rows)} (from 0, without the header).")
        _tell_written(certificate, written)
    if interrupts.pressed:
        note(interrupts.told)
    return written.ended(interrupts.code or (ANSWERED if found.proved else OPEN))
