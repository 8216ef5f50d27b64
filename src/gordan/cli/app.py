"""The typer application: one function for each command, which reads, asks the library, and tells."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from gordan.cli.telling import (
    ANSWERED,
    NO,
    OPEN,
    Interrupts,
    Watch,
    answering,
    headline,
    note,
    plain,
    rows_told,
    say,
    say_json,
    say_lines,
    say_witness,
    witness_plain,
)
from gordan.errors import InputError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Intercept(StrEnum):
    """How b enters; see `gordan.separate`."""

    free = "free"
    penalized = "penalized"
    none = "none"


def _method_names(incomplete: str) -> list[str]:
    from gordan import methods, verdicts  # noqa: F401  (the fast routes register themselves)

    return [name for name in methods.names() if name.startswith(incomplete)]


File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Data: svmlight, CSV or TSV with a header (all of these also .gz, .bz2, .xz), .npy, .npz, Parquet (also a folder), "
        "or a folder that `gordan convert` wrote.",
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label", "--target", metavar="COLUMN", help="The label column, by name or position from 0. Default: the last one."
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit", metavar="SIZE", help="Memory to stay below, such as 4GB: what is larger than half of it stays on disk."
    ),
]
Positive = Annotated[
    str | None,
    typer.Option("--positive", metavar="CLASS", help="This class against the rest, for files of more than two classes."),
]
InterceptOption = Annotated[
    Intercept,
    typer.Option("--intercept", help="free: x·w + b. penalized: b is a weight like the others. none: through the origin."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
CheckpointOption = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint", metavar="PATH", help="Keep the run in this file, and go on from it if it is there (see exit code 75)."
    ),
]
Device = Annotated[
    str | None,
    typer.Option("--device", metavar="DEVICE", help="cuda: search on the GPU (pip install 'gordan\\[gpu]'). Default: cpu."),
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", metavar="SECONDS", min=0.001, help="Stop then, with what has been proved.")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="A Dask scheduler, as tcp://10.0.0.1:8786: its workers read FILE, or the Parquet or .npy files of that folder.",
    ),
]


@contextmanager
def _on_cluster(address: str | None) -> Iterator[Any]:
    """A client of the cluster for as long as it is needed; None where none was asked for."""
    if address is None:
        yield None
        return
    from gordan.rows.lazy import connect

    client = connect(address)
    try:
        yield client
    finally:
        client.close()


def _examples(*lines: str) -> str:
    return "[bold]Examples[/bold]\n\n\b\n" + "\n".join("  " + line for line in lines)


def _print_version(wanted: bool) -> None:
    if wanted:
        from gordan import __version__

        typer.echo(f"gordan {__version__}")
        raise typer.Exit()


@app.callback(
    epilog=_examples(
        "gordan demo                           see what it does",
        "gordan separate data.csv              is there a plane between the classes?",
        "gordan fit data.csv -o model.gordan   the plane of largest margin",
        "gordan predict model.gordan new.csv   the class of each row",
        "gordan --install-completion           completion for this shell",
    )
)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop.", is_eager=True, callback=_print_version),
) -> None:
    """Is this data linearly separable, and with what margin? Answers come with a proof.

    Exit codes: 0 answered, and yes; 1 no (not separable, rejected); 2 wrong use or bad input; 3 undecided; 75 SIGTERM;
    130 Ctrl-C.
    """


@app.command(epilog=_examples("gordan demo", "gordan demo --rounds 200 --no-picture"))
@answering
def demo(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds that each method plays.")] = 2000,
    picture: Annotated[Path, typer.Option(metavar="FILE", help="Where to save the picture, if matplotlib is installed.")] = Path(
        "gordan-demo.png"
    ),
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Save none.")] = False,
    as_json: Json = False,
) -> int:
    """See what gordan does, on data that comes with it: a separable set, one that is not, and one that nearly is."""
    from gordan.cli.demo import show

    _require_folder(None if no_picture else picture)
    with Watch("running; the first time the code is compiled, which takes half a minute") as watch:
        show(rounds, None if no_picture else picture, as_json, watch.close)
    return ANSWERED


@app.command(
    epilog=_examples(
        "gordan separate data.csv",
        "gordan separate iris.csv --label species --positive setosa",
        "gordan separate train.svm.gz --certificate proof.json --time-limit 60",
        "gordan separate data.csv --json | jq .status",
    )
)
@answering
def separate(
    file: File,
    label: Label = None,
    positive: Positive = None,
    intercept: InterceptOption = Intercept.free,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="OUT.json", help="Write the proof to this file, for `gordan verify`.")
    ] = None,
    time_limit: TimeLimit = None,
    cluster: Cluster = None,
    memory_limit: MemoryLimit = None,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Is there a plane between the two classes? Yes or no, with proof.

    Exit code 0: separable. 1: not separable. 3: undecided. Rows are counted from 0, without the header.
    """
    import gordan
    from gordan.cli.data import memory_limit as limit_of
    from gordan.cli.data import read_data

    _require_folder(certificate)
    limit = limit_of(memory_limit)
    with Interrupts() as interrupts, Watch(f"reading {file}") as watch, _on_cluster(cluster) as client:
        data = read_data(file, label, positive, client=client, limit=limit)
        watch.about("separating")
        v = gordan.separate(
            data.X,
            data.y,
            intercept=str(intercept),
            time_limit=time_limit,
            device=device,
            callback=watch.verdict if watch.visible else None,
        )
        if certificate is not None and v.certificate is not None:
            _write(certificate, v.certificate.to_json() + "\n")
    if as_json:
        say_json(
            {
                "status": v.status,
                "separable": v.separable,
                "proved": v.proved,
                "interrupted": interrupts.pressed,
                "margin": v.margin,
                "w": v.w,
                "b": v.b,
                "witness": witness_plain(v.witness),
                "classes": v._problem.classes,
                "rows": data.rows,
                "columns": data.columns,
                "names": data.names,
                "certificate": None if certificate is None or v.certificate is None else str(certificate),
                "seconds": v.seconds,
            }
        )
    else:
        headline(repr(v), v.separable)
        if v.witness is not None:
            say_witness(v.witness, data)
        if certificate is not None:
            written = v.certificate is not None
            say(f"certificate written to {certificate}" if written else "no certificate was written: nothing is proved")
    if interrupts.code is not None:
        note(interrupts.told)
        return interrupts.code
    return {True: ANSWERED, False: NO, None: OPEN}[v.separable]


@app.command(
    epilog=_examples(
        "gordan fit data.csv -o model.gordan",
        "gordan fit iris.csv -o iris.gordan --nu 0.6        three classes, soft margins",
        "gordan fit data.csv -o sparse.gordan --norm inf    few nonzero weights",
        "gordan fit big.npy -o big.gordan --tol 1e-3 --time-limit 600",
        "gordan fit big.npy -o big.gordan --checkpoint big.run    say it again after it was stopped",
    )
)
@answering
def fit(
    file: File,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")],
    label: Label = None,
    positive: Positive = None,
    norm: Annotated[float, typer.Option(help="Norm of feature space, from 2 to inf.")] = 2.0,
    nu: Annotated[
        float | None, typer.Option(help="Soft margin: share of the rows that may be on the wrong side, at most 1.")
    ] = None,
    intercept: InterceptOption = Intercept.free,
    tol: Annotated[float, typer.Option(help="Relative width of the proved bracket to stop at.")] = 1e-4,
    method: Annotated[str, typer.Option(help="auto, or a method by name.", autocompletion=_method_names)] = "auto",
    max_iter: Annotated[int | None, typer.Option(min=1, help="Rounds at most.")] = None,
    time_limit: TimeLimit = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads at most; default: all cores.")] = None,
    checkpoint: CheckpointOption = None,
    cluster: Cluster = None,
    memory_limit: MemoryLimit = None,
    device: Device = None,
    no_certificates: Annotated[bool, typer.Option("--no-certificates", help="Leave the proofs out of the model file.")] = False,
    as_json: Json = False,
) -> int:
    """Fit the plane of largest margin and write it to a model file.

    Of more than two classes each is separated from the rest. Ctrl-C, SIGTERM and the time limit keep the best plane so far.

    Exit code 1: not separable. 3: no plane found. Nothing is written then. 75: SIGTERM; with --checkpoint the same command goes
    on from there, and the checkpoint is removed once the model is complete.
    """
    from gordan.cli import models
    from gordan.cli.data import memory_limit as limit_of
    from gordan.cli.data import read_data

    _require_folder(output)
    _require_folder(checkpoint)
    limit = limit_of(memory_limit)
    with Interrupts() as interrupts, Watch(f"reading {file}", tol) as watch, _on_cluster(cluster) as client:
        data = read_data(file, label, positive, multiclass=True, client=client, limit=limit)
        options: dict[str, Any] = {"norm": norm, "nu": nu, "intercept": str(intercept), "tol": tol, "method": method}
        options |= {"max_iter": max_iter, "threads": threads, "callback": watch.moment if watch.visible else None}

        def begin(what: str) -> bool:
            watch.about(what, data.X)
            return not interrupts.pressed

        classes, planes = models.fit(data, options, time_limit, checkpoint, begin, device)
        watch.about("writing")
        model = models.model_of(data, classes, planes, not no_certificates)
        if model is not None:
            with _writing(output):
                model.save(output)
            if checkpoint is not None and not interrupts.pressed:
                models.forget(checkpoint, planes)
    if as_json:
        say_json(
            {
                "model": None if model is None else str(output),
                "classes": classes,
                "interrupted": interrupts.pressed,
                "planes": [
                    {
                        "positive": plane.positive,
                        "status": plane.result.status,
                        "margin": plane.result.margin,
                        "gap": plane.result.gap,
                        "rounds": plane.result.n_iter,
                        "passes": plane.result.passes,
                        "seconds": plane.result.seconds,
                        "resumed": plane.resumed is not None,
                        "witness": witness_plain(plane.result.witness),
                    }
                    for plane in planes
                ],
            }
        )
    else:
        for plane in planes:
            result = plane.result
            if len(classes) > 2:
                say(f"{plane.told}:")
            headline(repr(result), {"solved": True, "not-separable": False}.get(result.status))
            if plane.resumed is not None:
                say(f"  resumed from {plane.resumed}")
            if result.witness is not None:
                say_witness(result.witness, data)
        if model is not None:
            say(f"model written to {output}: {len(classes)} classes, {model.coef.shape[1]} features")
    separable = all(plane.result.witness is None for plane in planes)
    if model is None:
        none = "no plane with a positive margin was found" + ("; try a larger --nu" if nu is not None else "")
        told = none if separable else "without a separator there is no hard margin; pass --nu 0.5, say, for a soft one"
        note(f"no model was written: {interrupts.told if interrupts.pressed else told}")
    if interrupts.code is not None:
        return interrupts.code
    return ANSWERED if model is not None else OPEN if separable else NO


class Stored(StrEnum):
    """How `convert` stores rows."""

    auto = "auto"
    dense = "dense"
    csr = "csr"


@app.command(
    epilog=_examples(
        "gordan convert train.svm.gz train               then: gordan fit train -o model.gordan",
        "gordan convert tables/ data --label y           a folder of Parquet files",
        "gordan convert --check train                    compare a converted folder with its checksums",
    )
)
@answering
def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="svmlight, CSV, TSV, .npy, or Parquet (a file or a folder).")],
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="The folder to write.")] = None,
    label: Label = None,
    kind: Annotated[
        Stored, typer.Option("--as", help="dense, csr, or auto: by the share of entries that are not zero.")
    ] = Stored.auto,
    memory_limit: MemoryLimit = None,
    check: Annotated[bool, typer.Option("--check", help="Convert nothing; compare the folder with its checksums.")] = False,
    as_json: Json = False,
) -> int:
    """Convert data once to arrays on disk, for data larger than memory: every command reads the folder in place of a file.

    If it is stopped, even by a kill, the same command goes on where it was.

    Exit code 1: the check found something wrong.
    """
    from gordan.cli.data import memory_limit as limit_of
    from gordan.io import convert as convert_
    from gordan.io.store import check as check_

    if check:
        target = file if folder is None else folder
        reason = ""
        with Watch(f"checking {target}"):
            try:
                size = check_(target)
            except InputError as error:
                size, reason = 0, str(error)
        if as_json:
            say_json({"accepted": not reason, "reason": reason, "bytes": size})
        else:
            headline(reason or f"{target}: {size} bytes as they were written", not reason)
        return NO if reason else ANSWERED
    if folder is None:
        raise InputError("convert needs a folder to write to: gordan convert FILE DIR")
    limit = limit_of(memory_limit)
    with Watch(f"converting {file}") as watch:
        done = convert_(
            file, folder, label=label, kind=str(kind), memory_limit=limit, progress=lambda rows: watch.about(f"{rows} rows")
        )
    if as_json:
        say_json(
            {
                "folder": str(folder),
                "kind": done.kind,
                "rows": done.shape[0],
                "columns": done.shape[1],
                "entries": done.entries,
                "resumed": done.resumed,
                "already": done.already,
            }
        )
    else:
        n, d = done.shape
        told = "was converted before" if done.already else f"went on after {done.resumed} rows" if done.resumed else "converted"
        say(f"{told}: {n} rows, {d} columns, {done.kind}, {done.entries} entries, in {folder}")
    return ANSWERED


@app.command(
    epilog=_examples(
        "gordan predict model.gordan new.csv > labels.txt",
        "gordan predict model.gordan new.csv --scores       signed distances from the planes",
        "gordan predict model.gordan test.svm --json | jq .accuracy",
    )
)
@answering
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `gordan fit` wrote.")],
    file: File,
    label: Label = None,
    unlabelled: Annotated[bool, typer.Option("--unlabelled", help="The file has no label column.")] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Print x·w + b instead, one column for each plane.")] = False,
    as_json: Json = False,
) -> int:
    """Print the class of each row, one on a line.

    Columns are found by name where the model and the file have names; others are ignored.

    If the file has labels, stderr says how many of them were met.
    """
    from gordan.cli import models
    from gordan.io import Model

    with Watch(f"reading {file}"):
        loaded = Model.load(model)
        table = models.read_for(loaded, file, label, unlabelled)
        values = loaded.scores(table.X)
        found = loaded.labels(values)
    known = table.y is not None and {*table.y.tolist()} <= {*loaded.classes}
    right = int((found == table.y).sum()) if known else None
    if as_json:
        content: dict[str, Any] = {"labels": found, "rows": len(found)}
        content |= {"scores": values} if scores else {}
        say_json({**content, "right": right, "accuracy": None if right is None else right / len(found)})
        return ANSWERED
    say_lines(["\t".join(map(repr, row)) for row in values.tolist()] if scores else [str(label) for label in found.tolist()])
    if right is not None:
        note(f"{right} of {len(found)} labels as in the file ({100 * right / len(found):.2f} %)")
    return ANSWERED


@app.command(
    epilog=_examples(
        "gordan separate data.csv --certificate proof.json",
        "gordan verify proof.json data.csv",
        "gordan verify model.gordan data.csv",
    )
)
@answering
def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="A certificate, or a model file with certificates in it.")],
    file: File,
    label: Label = None,
    positive: Positive = None,
    as_json: Json = False,
) -> int:
    """Check a certificate against the data: everything is re-derived, in exact arithmetic where floats do not decide.

    Exit code 0: accepted. 1: rejected.
    """
    import gordan
    from gordan.cli.data import read_data
    from gordan.cli.proofs import claims_in

    with Watch(f"reading {file}") as watch:
        claims = claims_in(certificate)
        one_against_rest = any(claim.positive is not None for claim in claims)
        data = read_data(file, label, positive, multiclass=one_against_rest)
        watch.about("checking")
        checks = [(claim, gordan.verify(claim.certificate, data.X, claim.target(data))) for claim in claims]
        other = [claim.other_data(data) for claim, _ in checks]
    if as_json:
        told = [
            {
                "accepted": check.accepted,
                "claim": check.claim,
                "reason": check.reason,
                "positive": claim.positive,
                "other_data": differs,
            }
            for (claim, check), differs in zip(checks, other, strict=True)
        ]
        say_json({"accepted": all(check for _, check in checks), "checks": told})
    else:
        for (claim, check), differs in zip(checks, other, strict=True):
            about = "" if claim.positive is None else f"{claim.positive} against the rest: "
            if check:
                headline(f"accepted: {about}{check.claim}", True)
            else:
                headline(f"rejected: {about}{check.reason} (it claims that {check.claim})", False)
            if differs:
                say("  it was made for other data than this file" + (", but holds for this as well" if check else ""))
    return ANSWERED if all(check for _, check in checks) else NO


@app.command(epilog=_examples("gordan diagnose trial.csv --label died", "gordan diagnose trial.csv --json | jq .columns"))
@answering
def diagnose(
    file: File,
    label: Label = None,
    positive: Positive = None,
    intercept: InterceptOption = Intercept.free,
    time_limit: TimeLimit = None,
    as_json: Json = False,
) -> int:
    """Do the estimates of a logistic regression exist? Complete or quasi-complete separation, or overlap, with proof.

    Exit code 3: undecided.
    """
    import gordan
    from gordan.cli.data import Named, read_data

    with Interrupts() as interrupts, Watch(f"reading {file}") as watch:
        data = read_data(file, label, positive)
        watch.about("diagnosing")
        X = Named(data.X, data.names) if data.names is not None else data.X
        found = gordan.diagnose(X, data.y, intercept=str(intercept), time_limit=time_limit)
    if as_json:
        say_json(
            {
                "kind": found.kind,
                "proved": found.proved,
                "interrupted": interrupts.pressed,
                "columns": found.columns,
                "rows": found.rows,
                "direction": None if found.direction is None else {name: hex(value) for name, value in found.direction.items()},
                "dependent": found.dependent,
                "open": found.open,
                "event": found._problem.classes[1],
                "seconds": found.seconds,
            }
        )
    else:
        first, *rest = repr(found).split("\n")
        headline(first, {"overlap": True, "undecided": None}.get(found.kind, False))
        for line in rest:
            say(line)
        if found.kind == "quasi-complete":
            say(f"Rows strictly on their side: {rows_told(found.rows)} (from 0, without the header).")
    if interrupts.code is not None:
        note(interrupts.told)
        return interrupts.code
    return ANSWERED if found.proved else OPEN


@app.command(
    epilog=_examples(
        "gordan race data.csv --html report.html",
        "gordan race data.csv --method smooth_perceptron --method nesterov --rounds 10000",
        "gordan race iris.csv --positive setosa --intercept none --json",
    )
)
@answering
def race(
    file: File,
    html: Annotated[Path | None, typer.Option("--html", metavar="PAGE", help="Write one self-contained page with plots.")] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", "-m", help="A method by name; again for more. Default: six of them.", autocompletion=_method_names
        ),
    ] = None,
    label: Label = None,
    positive: Positive = None,
    intercept: InterceptOption = Intercept.free,
    norm: Annotated[
        float, typer.Option(help="Norm of feature space, from 2 to inf; for other norms than 2 fewer methods run.")
    ] = 2.0,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each method at most.")] = 2000,
    tol: Annotated[float, typer.Option(help="Relative width of the bracket at which a method has arrived.")] = 1e-4,
    time_limit: Annotated[float, typer.Option(metavar="SECONDS", min=0.001, help="Seconds of each method at most.")] = 10.0,
    device: Device = None,
    as_json: Json = False,
) -> int:
    """Run methods side by side on the same data, and compare what they cost."""
    from gordan import report
    from gordan.cli.data import read_data
    from gordan.cli.tables import race_table

    _require_folder(html)
    if html is not None:
        report.require_plotly()
    with Interrupts() as interrupts, Watch(f"reading {file}", tol) as watch:
        data = read_data(file, label, positive)
        result = report.race(
            data.X,
            data.y,
            method,
            intercept=str(intercept),
            norm=norm,
            rounds=rounds,
            tol=tol,
            time_limit=time_limit,
            device=device,
            source=file.name,
            told=data.told,
            begin=lambda what: watch.about(what, data.X),
            callback=watch.moment,
        )
        if html is not None:
            watch.about("writing")
            _write(html, report.page_html(result))
    if as_json:
        say_json({**result.to_dict(), "html": None if html is None else str(html), "interrupted": interrupts.pressed})
    else:
        headline(result.verdict_told, result.verdict.separable)
        race_table(result)
        if html is not None:
            say(f"page written to {html}")
    return ANSWERED if interrupts.code is None else interrupts.code


@app.command(
    epilog=_examples(
        "gordan play data.csv smooth_perceptron --rounds 5000",
        "gordan play data.csv accelerated_p_norm_perceptron --norm 4 --save trace.json",
        "gordan play data.csv nesterov --json | jq '.bracket'",
    )
)
@answering
def play(
    file: File,
    method: Annotated[str, typer.Argument(help="A method by name.", autocompletion=_method_names)] = "smooth_perceptron",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds at most.")] = 1000,
    form: Annotated[str | None, typer.Option(help="published or game, where there are both.")] = None,
    norm: Annotated[float | None, typer.Option(help="Norm p of the p-norm methods and of double_oracle.")] = None,
    label: Label = None,
    positive: Positive = None,
    intercept: InterceptOption = Intercept.free,
    time_limit: TimeLimit = None,
    device: Device = None,
    save: Annotated[
        Path | None, typer.Option(metavar="TRACE.json", help="Write the whole trace, for `gordan.Trace.load`.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Play one method on the rows and print what was measured: the bracket, regrets and the theorem's bound."""
    import gordan
    from gordan.certificates.problem import Problem
    from gordan.cli.data import read_data
    from gordan.cli.tables import trace_table

    _require_folder(save)
    entry = gordan.methods.get(method)
    if norm is not None and "p" not in signature(entry.factory).parameters:
        raise InputError(f"{method} has no --norm; that belongs to the p-norm methods and to double_oracle")
    options: dict[str, Any] = {name: value for name, value in (("form", form), ("p", norm)) if value is not None}
    chosen = entry(**options)
    with Interrupts() as interrupts, Watch(f"reading {file}", 1e-6) as watch:
        data = read_data(file, label, positive)
        problem = Problem.of(data.X, data.y)
        A = gordan.rows.of(data.X, problem.signs, constant=intercept == "penalized", device=device)
        watch.about(method, data.X)
        halves = problem.signs < 0 if intercept == "free" else None
        trace = gordan.play(A, chosen, rounds, halves=halves, time_limit=time_limit, callback=watch.moment)
    if save is not None:
        with _writing(save):
            trace.save(save)
    if as_json:
        facts = {name: getattr(trace, name) for name in ("method", "form", "norm", "n", "d", "scale", "status", "bracket")}
        say_json({**facts, "guarantee": chosen.guarantee.statement, "columns": plain(trace.to_dict())})
    else:
        trace_table(trace, chosen.guarantee.statement)
        if save is not None:
            say(f"trace written to {save}")
    return ANSWERED if interrupts.code is None else interrupts.code


def _require_folder(path: Path | None) -> None:
    """Refuse a file that cannot be written before anything is computed."""
    if path is None:
        return
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file to write")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to write {path.name} to; make it first")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Within: an error of the file system is told with the name that the user knows, not that of the temporary file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"it cannot be written: {error.strerror or error}", str(path)) from None


def _write(path: Path, text: str) -> None:
    from gordan.io import write_atomic

    with _writing(path):
        write_atomic(path, text.encode())


def main() -> None:
    """Entry point of the `gordan` command."""
    # imports and compiled code make many objects that stay: looking for garbage among them takes a tenth of a short run
    gc.set_threshold(50_000, 20, 20)
    app(prog_name="gordan")
