"""The commands `gordan fit`, which writes a model file, and `gordan predict`, which reads one."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from gordan.arrays import positive, seconds_at_most
from gordan.certificates.matrix import Matrix
from gordan.certificates.regions import same_labels
from gordan.cli.answers import headline, print_json, print_line, print_lines, print_notes, print_witness, require_output
from gordan.cli.commands import ANSWERED, NO, UNDECIDED, Interrupts, Saved, command, write_output
from gordan.cli.data import ComputeOptions, Data, DataOptions, class_named, local_copy, model_in, on_cluster, parse_size
from gordan.cli.fields import fields
from gordan.cli.options import (
    CertificateOut,
    Json,
    OnInseparable,
    OnMissing,
    Standardize,
    TimeLimit,
    Weight,
    WithIntercept,
    WithMultiClass,
    WithOnInseparable,
    flag,
    method_names,
)
from gordan.cli.progress import Watch, stored_bytes
from gordan.errors import InputError
from gordan.estimators.fitting import Fitting, NoPlane, Outcome, Parameters, check_parameters, model_of
from gordan.estimators.least_loss import (
    LeastPlane,
    LossFitting,
    LossParameters,
    SharedParameters,
    model_of_least_loss,
    places_of,
)
from gordan.estimators.models import Words
from gordan.estimators.multiclass import Binary, FitTask, TrainingData, binary_problems
from gordan.intercepts import Intercept
from gordan.io import Model, Table, read, write_atomic
from gordan.io.delimited import DELIMITERS, pandas_call, with_separator
from gordan.io.model import probabilities
from gordan.io.reading import format_of, names_in
from gordan.io.table import MAX_LISTED, Dialect, NoSuchColumn, Request, listed, number
from gordan.losses import Loss
from gordan.memory import fits
from gordan.rows import stored
from gordan.rows.storage import require_finite
from gordan.statuses import Status
from gordan.verdicts import Witness
from gordan.verdicts.loss import checked_C

if TYPE_CHECKING:
    from gordan.arrays import Array
    from gordan.certificates import Certificate

# The share of the rows above which so many classes are reported.
MAX_CLASS_SHARE = 0.5


# ---- fit --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassifierOptions:
    """The options of the classifier, by the names of its parameters, and the column with the weights."""

    loss: Annotated[Loss | None, typer.Option(help="Minimize this loss, as LinearClassifier does, for classes that overlap.")] = (
        None
    )
    C: Annotated[float | None, typer.Option("--C", help="With --loss: inverse of the regularization strength. Default: 1.")] = (
        None
    )
    multi_class: WithMultiClass = None
    norm: Annotated[float, typer.Option(min=2, help="Norm of feature space, from 2 to inf.")] = 2.0
    nu: Annotated[
        float | None, typer.Option(help="Fit a soft margin: at most this share of the rows lies inside the margin.")
    ] = None
    intercept: WithIntercept = Intercept.FREE
    class_weight: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=WEIGHT", help="Weight of a class (repeatable), or balanced."),
    ] = None
    weight: Weight = None
    on_inseparable: WithOnInseparable = OnInseparable.WARN
    tol: Annotated[float, typer.Option(help="Relative width of the proved interval at which to stop.")] = 1e-4
    method: Annotated[str, typer.Option(metavar="METHOD", help="auto, or the name of a method.", autocompletion=method_names)] = (
        "auto"
    )
    max_iter: Annotated[int | None, typer.Option(min=1, help="Maximum number of rounds for each plane.")] = None
    time_limit: TimeLimit = None

    def parameters(self, data: Data, device: str | None) -> Parameters:
        """Return the parameters of `MaxMarginClassifier`."""
        if self.C is not None:
            raise InputError("--C needs --loss, such as --loss squared_hinge")
        return Parameters(**self._given(Parameters, data, device))

    def loss_parameters(self, data: Data, device: str | None) -> LossParameters:
        """Return the parameters of `LinearClassifier`; refuse options that apply to margins only."""
        for each in dataclass_fields(self):
            for_margins_only = each.name in names_of(Parameters) - names_of(LossParameters)
            if for_margins_only and getattr(self, each.name) != each.default:
                raise InputError(f"{format_option(each.name)} cannot be combined with --loss")
        if self.C is not None:
            checked_C(self.C, "--C")
        return LossParameters(**self._given(LossParameters, data, device))

    def _given(self, kind: type[SharedParameters], data: Data, device: str | None) -> dict[str, Any]:
        """Return the options that are parameters of this class, without those that were not given."""
        given = {name: getattr(self, name) for name in names_of(type(self)) & names_of(kind)}
        plain = {name: value.value if isinstance(value, StrEnum) else value for name, value in given.items() if value is not None}
        return {**plain, "class_weight": class_weights(self.class_weight, data), "device": device}


def names_of(kind: type) -> set[str]:
    """Return the names of the fields of a dataclass."""
    return {each.name for each in dataclass_fields(kind)}


@command(
    "gordan fit data.csv -o model.gordan",
    "gordan fit data.csv -o model.gordan --loss logistic --C 0.1    classes that overlap",
    "gordan fit iris.csv -o iris.gordan --nu 0.4        three classes, soft margins",
    "gordan fit data.csv -o model.gordan --standardize    columns in different units",
    "gordan fit data.csv -o sparse.gordan --norm inf    few nonzero weights",
    "gordan fit data.csv -o model.gordan --weight count --class-weight balanced",
    "gordan fit data.csv -o model.gordan --certificate proofs.json    proofs for check.py",
    "gordan fit big.npy -o big.gordan --time-limit 600 --on-inseparable raise",
    "gordan fit big.npy -o big.gordan --checkpoint big.run    rerun to resume",
    fields={
        "fit": "model classes interrupted certificate planes",
        "planes": "positive against status margin gap nu separable loss objective n_iter passes seconds resumed witness",
        "least losses": "positive against status objective gap radius n_iter passes seconds resumed",
    },
)
def fit(
    source: DataOptions,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")],
    asked: ClassifierOptions,
    place: ComputeOptions,
    standardize: Standardize = False,
    threads: Annotated[int | None, typer.Option(min=1, help="Maximum number of threads. Default: all cores.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Save the run to this file, and resume from it if it exists."),
    ] = None,
    certificate: CertificateOut = None,
    no_certificates: Annotated[bool, flag("--no-certificates", "Leave the proofs out of the model file.")] = False,
    as_json: Json = False,
) -> int:
    """Fit the classifier of largest margin and write it to a model file, as MaxMarginClassifier does in Python.

    With more than two classes it fits one plane for each pair. If no plane separates two classes, it warns and fits the plane of
    least squared hinge loss. Ctrl-C, SIGTERM and the time limit keep the best planes so far. The coefficients are in the model
    file: in Python, gordan.load(MODEL).coef_, or gordan.load(MODEL)[-1].coef_ after --standardize.

    Exit code 0: the model was written. 1: not separable, with --on-inseparable raise; no model is written. 3: no plane was
    found; no model is written. 75: stopped by SIGTERM; with --checkpoint, rerun the command to resume. A finished fit removes
    its checkpoint.
    """
    positive(asked.tol, "--tol")
    require_output(output, source.file)
    require_output(checkpoint, source.file)
    require_output(certificate, source.file)
    if certificate is not None and (standardize or no_certificates):
        why = "the proofs would be about standardized columns, which no file has" if standardize else "there would be no proofs"
        raise InputError(f"--certificate with {'--standardize' if standardize else '--no-certificates'}: {why}")
    if certificate is not None and certificate.resolve() in {each.resolve() for each in (output, checkpoint) if each is not None}:
        raise InputError(f"{certificate} is given for the certificates and for another output; write them to two files")
    if checkpoint is not None and checkpoint.resolve() == output.resolve():
        raise InputError(f"{checkpoint} is given for the model and for the checkpoint; write them to two files")
    with Interrupts() as interrupts, Watch(f"reading {source.file}", asked.tol) as watch, on_cluster(place.cluster) as client:
        data = source.read((2, math.inf), client=client, memory_limit=place.memory_limit, weight=asked.weight, by_name=True)
        data = _with_plausible_classes(data)
        data = data.standardized() if standardize else data
        watch.about("fitting", data.X)
        if asked.loss is None:
            options = asked.parameters(data, place.device)
            check_parameters(options)
            fitting = Fitting(options, _task(options, data, watch, threads, checkpoint), hashed=not no_certificates)
            _require_room_for_pairs(fitting, data, parse_size(place.memory_limit))
            found = fit_margins(fitting, data, interrupts, watch)
        else:
            loss_options = asked.loss_parameters(data, place.device)
            losses = LossFitting(loss_options, _task(loss_options, data, watch, threads, checkpoint))
            found = fit_losses(losses, data, interrupts, certificates=not no_certificates)
        watch.about("writing")
        if found.model is None:
            written = Saved()
            remarks = [f"no model was written: {interrupts.word if interrupts.pressed else found.missing}"]
        else:
            written = write_output(output, replace(found.model, label=data.named.outcome or None, scaling=data.scaling).save)
            remarks = [f"warning: {each}" for each in found.remarks if each]
        proofs = Saved() if written.path is None else write_output(certificate, lambda path: _write_proofs(path, found.model))
        if written.path is not None and not interrupts.pressed:
            remove_checkpoints(found.answers)
    if as_json:
        planes = [each.fields for each in found.answers]
        ended = {"interrupted": interrupts.pressed, "certificate": proofs.path}
        content = fields("fit", data, model=written.path, planes=planes, **ended)
        print_json({**content, **proofs.fields, **written.fields}, (*data.notices, *remarks))
    else:
        for each in found.answers:
            each.print(data)
        if found.model is not None and written.path is not None:
            print_line(
                f"model written to {written.path}: {len(found.model.classes)} classes, {data.d} feature{'s' * (data.d > 1)}"
            )
        if proofs.path is not None:
            print_line(f"certificates written to {proofs.path}")
    print_notes(*remarks)
    return proofs.exit_code(written.exit_code(interrupts.code or (found.code if found.model is None else ANSWERED)))


def _write_proofs(path: Path, model: Model | None) -> None:
    """Write the certificates of a model as JSON: the only one, or a list of several."""
    texts = (model and model.certificates) or ()
    write_atomic(path, (texts[0] if len(texts) == 1 else f"[{f',{chr(10)} '.join(texts)}]").encode() + b"\n")


def class_weights(given: list[str] | None, data: Data) -> Any:
    """Return the value of `--class-weight`: "balanced", or the weight of each named class."""
    if not given or given == ["balanced"]:
        return given[0] if given else None
    found: dict[Any, float] = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        factor = number(value.encode(errors="replace"))
        if not equals or factor is None:
            raise InputError(f"--class-weight is {text!r}; pass balanced, or CLASS=WEIGHT for each class with a weight")
        found[class_named(name, list(data.classes), data.path)] = factor
    return found


def _task(
    options: Parameters | LossParameters, data: Data, watch: Watch, threads: int | None, checkpoint: Path | None
) -> FitTask:
    """Return what a fit of the data with these parameters is given, whose time starts now."""
    deadline = time.perf_counter() + seconds_at_most(options.time_limit)
    classes, which = np.unique(data.y, return_inverse=True)
    X = stored(data.X, options.device)
    fitted = TrainingData.of(X, data.y, classes, which, data.weights, options.class_weight)
    shown = watch.moment if watch.visible else None
    return FitTask(fitted, deadline, None, threads, shown, words_for(data), checkpoint)


def _with_plausible_classes(data: Data) -> Data:
    """Refuse several labels that are not whole numbers, and warn of many: perhaps the label is another column than the last.

    scikit-learn refuses and warns of the same labels.
    """
    ask = "is the label another column? --label NAME"
    if len(data.classes) > 2 and any(isinstance(label, float) and not label.is_integer() for label in data.classes):
        raise InputError(
            f"{data.path}: the labels are numbers that are not whole, {listed(data.classes)}; {ask} "
            "(if these are classes, put a letter before them)"
        )
    if len(data.classes) <= max(MAX_LISTED, MAX_CLASS_SHARE * data.n):
        return data
    found = f"warning: {data.path} has {len(data.classes)} classes, {listed(data.classes)}, in {data.n} rows; {ask}"
    print_notes(found)
    return replace(data, notices=(*data.notices, found))


def _require_room_for_pairs(fitting: Fitting, data: Data, limit: int | None) -> None:
    """Raise an InputError if the rows of two classes, which are copied for their plane, do not fit into memory."""
    if fitting.kind == "one-vs-one":
        X = fitting.task.data.X
        require_finite(X)  # checked here, because rows of the copies are numbered differently than those of the file
        largest_pair = np.sort(np.unique(data.y, return_counts=True)[1])[-2:].sum() / data.n * stored_bytes(X)
        if fitting.options.device is None and not (fits(largest_pair) and largest_pair <= (limit or math.inf) / 2):
            raise InputError(
                f"{data.path} is large: the rows of two classes are copied for their plane, and do not fit into memory; "
                "pass --multi-class ovr, which copies none"
            )


def format_option(name: str, value: Any = None) -> str:
    """Return a parameter as it is written on the command line."""
    return f"--{name.replace('_', '-')}" + ("" if value is None else f" {value}")


class Prediction(NamedTuple):
    """What a command says about one problem: text, JSON fields, and the files of its run; a witness if it has no plane."""

    heading: str
    sentence: str
    separable: bool | None
    status: Status
    checkpoints: Sequence[Path | None]
    resumed: bool
    fields: dict[str, Any]
    witness: Witness | None = None

    def print(self, data: Data) -> None:
        """Print the answer, with the rows of the witness."""
        if self.heading:
            print_line(self.heading)
        headline(self.sentence, self.separable)
        if self.resumed:
            print_line(f"  resumed from {self.checkpoints[0]}")
        if self.witness is not None:
            print_witness(self.witness, data)


class Fit(NamedTuple):
    """What was found for each problem, the model and warnings about it.

    If there is no model, `missing` says why, unless a signal came, and `code` is the exit code.
    """

    answers: list[Prediction]
    model: Model | None
    remarks: list[str | None]
    missing: str = ""
    code: int = UNDECIDED


def fit_margins(fitting: Fitting, data: Data, interrupts: Interrupts, watch: Watch) -> Fit:
    """Solve one problem after the other, until a signal comes or one of them has no plane, so that there is no model."""
    problems, known = list(binary_problems(fitting)), dict[int, Outcome]()

    def begin(binary: Binary) -> bool:
        watch.about(binary.name)
        return interrupts.pressed

    try:
        for k, outcome in fitting.outcomes(problems, begin=begin):
            known[k] = outcome
    except NoPlane as error:
        outcomes = [*known.values(), *([] if error.outcome is None else [error.outcome])]
        code = NO if outcomes[-1].witness is not None else UNDECIDED
        return Fit([_margin_answer(each, data) for each in outcomes], None, [], str(error), code)
    outcomes = [known[k] for k in sorted(known)] if interrupts.pressed else fitting.comparable_outcomes(problems, known)
    answers = [_margin_answer(each, data) for each in outcomes]
    if not all(each.found for each in outcomes):
        return Fit(answers, None, [], _missing_planes(fitting, outcomes))
    if len(outcomes) < len(problems):
        return Fit(answers, None, [])
    proofs = [described(each.plane.certificate, each.binary, data) if fitting.hashed else None for each in outcomes]
    planes = [replace(each.plane, certificate=proof) for each, proof in zip(outcomes, proofs, strict=True)]
    messages = fitting.inseparable_message(outcomes), fitting.barely_separable_message(outcomes)
    fitted = fitting.task.data
    model = model_of(fitting.kind, fitted.classes, planes, fitting.options, data.names, fitted.factors)
    return Fit(answers, model, [*messages, *fitting.remarks(outcomes)])


def _missing_planes(fitting: Fitting, outcomes: Sequence[Outcome]) -> str:
    """Return why there is no model: a margin is not positive, or time was too short for some of the planes."""
    late = [each for each in outcomes if not each.found and each.status is Status.TIME_LIMIT]
    if late:
        which = "no plane was found" if len(outcomes) == 1 else f"{len(late)} of {len(outcomes)} planes were not found"
        return f"{which} in time; pass a larger --time-limit"
    larger = "; try a larger --nu" if fitting.options.nu is not None else ""
    return f"no plane with a positive margin was found{larger}"


def _margin_answer(outcome: Outcome, data: Data) -> Prediction:
    """Return what is said about a plane of largest margin."""
    binary, plane = outcome.binary, outcome.plane
    return Prediction(
        f"{binary.name}:" if len(data.classes) > 2 else "",
        outcome.sentence,
        outcome.status.separable if plane.loss is None else plane.separable,
        outcome.status,
        outcome.checkpoints,
        outcome.resumed,
        fields("planes", outcome, plane, positive=binary.label, against=binary.other),
        None if outcome.found else outcome.witness,
    )


def fit_losses(fitting: LossFitting, data: Data, interrupts: Interrupts, *, certificates: bool) -> Fit:
    """Find the planes of all problems; there is no model if a signal comes before each has one."""
    problems = list(binary_problems(fitting))
    paths = [fitting.task.checkpoint_of(fitting.kind, k) for k in range(len(problems))]
    resumed = [path is not None and path.exists() for path in paths]
    results, answers = fitting.results(problems), list[Prediction]()
    for binary, result, path, again in zip(problems, results, paths, resumed, strict=False):
        about = fields("least losses", result, positive=binary.label, against=binary.other, resumed=again)
        name = "" if binary.is_whole else f"{binary.name}: "
        answers.append(Prediction("", name + result.sentence, result.status.separable, result.status, [path], again, about))
    if interrupts.pressed and not (len(results) == len(problems) and all(result.w.any() for result in results)):
        return Fit(answers, None, [])
    planes = [
        LeastPlane.of(result, described(result.certificate, binary, data) if certificates else None)
        for binary, result in zip(problems, results, strict=True)
    ]
    fitted = fitting.task.data
    model = model_of_least_loss(fitting.kind, fitted.classes, planes, fitting.options, data.names, fitted.factors)
    return Fit(answers, model, [fitting.convergence_message(problems, results), *fitting.remarks(results)])


def described(certificate: Certificate | None, binary: Binary, data: Data) -> Certificate | None:
    """Return the certificate of a binary problem, if there is one, with a description of its data."""
    return None if certificate is None else data.described(certificate, binary.against_rest)


def words_for(data: Data) -> Words:
    """Return how messages name labels, options and rows on the command line."""
    names = {} if data.positive is None else {True: str(data.positive), False: "the rest"}
    return Words(lambda label: names.get(label, str(label)), format_option, "--loss and --C", data.rows_in_file)


def remove_checkpoints(answers: Sequence[Prediction]) -> None:
    """Remove the checkpoints of a model that was written, unless one of its problems is unfinished."""
    if all(each.status in (Status.SOLVED, Status.MARGIN_BELOW_TOL) for each in answers):
        for path in (path for each in answers for path in each.checkpoints if path is not None):
            try:
                path.resolve().unlink(missing_ok=True)
            except OSError as error:
                print_notes(f"{path}: cannot be removed: {error.strerror}")


# ---- predict ----------------------------------------------------------------------------------------------------------


@command(
    "gordan predict model.gordan new.csv > labels.txt",
    "gordan predict model.gordan new.csv --scores       print x·w + b for each plane",
    "gordan predict setosa.gordan iris.csv --positive setosa    for a model fitted with --positive",
    "gordan predict model.gordan new.csv --proved       say which predictions are proved",
    "gordan predict model.gordan test.svm --json | jq .accuracy",
    fields={"predict": "labels n right accuracy"},
)
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `gordan fit` wrote.")],
    source: DataOptions,
    unlabelled: Annotated[bool, flag("--unlabelled", "The file has no label column.")] = False,
    scores: Annotated[bool, flag("--scores", "Print x·w + b instead, one column per plane.")] = False,
    proved: Annotated[
        bool, flag("--proved", "Add whether the exact minimizer is proved to predict the same class (models of a loss).")
    ] = False,
    proba: Annotated[
        bool,
        flag(
            "--proba", "Print the probability of each class instead, in the order named on stderr (logistic or multinomial loss)."
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Predict the class of each row and print one class per line.

    Columns are matched by name if the model and the file have names, and other columns are ignored. Without names, pass the same
    --drop options as for the fit.

    If the file has labels, a line on stderr says how many predictions match. The label column is the one that has the same name
    as in the fit, or else the last column, if that is not a feature.

    With --proved, a second column says "proved" if the exact minimizer of the loss is proved to predict the same class, and
    "open" otherwise. This trusts the model file, which `gordan verify` checks.
    """
    with Watch(f"reading {source.file}"):
        loaded = model_in(model)
        table = _table_for(loaded, model, source, unlabelled)
        print_notes(*table.notices)
        y = labels_in(table, source.positive)
        X = loaded.scaled(table.X)
        values = loaded.scores(X)
        found = loaded.labels(values)
        if proba:
            values = _probabilities(loaded, values, model, scores)
        same = _proved(loaded, model, X, found, scores or proba) if proved else None
    known = y is not None and {*y.tolist()} <= {*loaded.classes}
    right = int((found == y).sum()) if known else None
    if as_json:
        accuracy = None if right is None else right / len(found)
        content = fields("predict", labels=found, n=len(found), right=right, accuracy=accuracy)
        content |= {"probabilities": values, "classes": loaded.classes} if proba else {"scores": values} if scores else {}
        content |= {"left_out": table.left_out} if source.missing is OnMissing.DROP else {}
        print_json(content | ({} if same is None else {"same_prediction": same}), table.notices)
        return ANSWERED
    print_lines(_lines(values if scores or proba else found[:, None], same))
    if table.left_out:
        print_notes(f"{len(found)} lines are printed, none for the rows that are left out")
    print_notes(*_summary(len(found), same, right, y is not None, loaded, proba))
    return ANSWERED


def _lines(columns: Array, same: Array | None) -> list[str]:
    """Return a line for each row: its label or numbers, and whether that is proved."""
    lines = ["\t".join(map(str, row)) for row in columns.tolist()]
    if same is None:
        return lines
    return [f"{line}\t{'proved' if proved else 'open'}" for line, proved in zip(lines, same.tolist(), strict=True)]


def _summary(n: int, same: Array | None, right: int | None, labelled: bool, loaded: Model, proba: bool) -> Iterator[str]:
    """Yield what the columns of probabilities are, and how many of n predictions are proved and match the labels."""
    if proba:
        yield f"the columns are the probabilities of {', '.join(map(str, loaded.classes))}, in this order"
    if same is not None:
        yield f"{np.count_nonzero(same)} of {n} predictions are proved to be those of the exact minimizer"
    if right is not None:
        yield f"{right} of {n} predictions match the file ({100 * right / n:.2f} %)"
    elif labelled:
        hint = "; --positive CLASS says which of them is True" if loaded.classes == (False, True) else ""
        yield f"the labels of the file differ from those of the model, so they were not compared{hint}"


def _probabilities(loaded: Model, scores: Array, path: Path, also_scores: bool) -> Array:
    """Return the probability of each class, in their order; refuse a model whose scores are not probabilities."""
    if also_scores:
        raise InputError("--scores and --proba print different numbers; leave out one of them")
    if loaded.loss is None or not Loss(loaded.loss).probabilities:
        raise InputError(f"{path} has no probabilities: it was not fitted with --loss logistic or multinomial")
    return probabilities(loaded.kind, scores)


def _proved(loaded: Model, path: Path, X: Any, found: Array, numbers: bool) -> Array:
    """Return for each row whether the exact minimizer is proved to predict this class."""
    if numbers:
        raise InputError("--proved is about the class of each row; leave out --scores and --proba")
    places = places_of(loaded)
    if places is None:
        which = "the planes" if loaded.loss is None else "some planes"
        why = f"{which} of {path} have the largest margin instead; fit with --loss squared_hinge"
        if loaded.estimator == "LinearClassifier":
            why = f"{path} does not say where it is; fit it again with this version of gordan"
        raise InputError(f"--proved is about the exact minimizer of a loss, but {why}")
    number = {label: k for k, label in enumerate(loaded.classes)}
    return same_labels(places, Matrix(stored(X)), np.array([number[label] for label in found.tolist()], dtype=np.intp))


def _table_for(model: Model, own: Path, source: DataOptions, unlabelled: bool) -> Table:
    """Read the table for a model from the file `own`; an error about a categorical column says how to make its 0/1 columns."""
    try:
        return read_for(model, source, unlabelled)
    except NoSuchColumn as error:
        path, missing = local_copy(source.file), str(error.column)
        if missing not in (model.names or ()) or format_of(path) not in DELIMITERS:
            raise
        hint = _level_hint(model.names or (), missing, own, path, Dialect(**source.dialect))
        raise InputError(hint) if hint else error from None


def _level_hint(wanted: Sequence[str], missing: str, model: Path, path: Path, dialect: Dialect) -> str:
    """Return how to make 0/1 columns from the categorical columns of a file, if that is all that is missing; else an empty text.

    `missing` is a column that the model needs and the file does not have.
    """
    dialect = with_separator(path, format_of(path), Request(dialect=dialect))[0].dialect
    names = names_in(path, dialect) or []
    found = [name for name in names if name not in wanted and _levels_of(name, wanted)]
    absent = [name for name in wanted if name not in names and not any(_levels_of(factor, [name]) for factor in found)]
    if absent or not found:  # an absent column would be filled with zeros
        return f"{path} has no column named {absent[0]!r}" if found else ""
    own = next(name for name in found if _levels_of(name, [missing]))
    frame = f"{pandas_call(path, dialect)}.dropna(subset={found!r})"
    columns = f"gordan.io.Model.load({str(model)!r}).names"
    return (
        f"{path} has no column named {missing!r}, but {own!r}: if that is a category, it needs the 0/1 columns that the data of "
        f"the fit had. In Python: pandas.get_dummies({frame}, columns={found!r}, dtype=int).reindex(columns={columns}, "
        "fill_value=0).to_csv('numbers.csv', index=False), where a level that the fit did not have counts as the first one"
    )


def _levels_of(factor: str, names: Sequence[str]) -> list[str]:
    """Return the names that pandas would give to 0/1 columns made from this categorical column."""
    return [name for name in names if name.startswith(f"{factor}_")]


def read_for(model: Model, source: DataOptions, unlabelled: bool) -> Table:
    """Read the columns that a model needs: by name if both have names, else by position."""
    path = local_copy(source.file)
    named = model.names is not None and format_of(path) in ("csv", "tsv", "parquet")
    features: Any = model.names if named else model.coef.shape[1]
    if unlabelled and source.label is not None:
        raise InputError("--label names a label column and --unlabelled says that there is none; leave out one of them")
    asked = {"features": features, "labelled": False if unlabelled else None, **source.columns}
    if named and model.label is not None and source.label is None and not unlabelled:
        with suppress(NoSuchColumn):  # a missing feature is refused below
            return read(path, **asked | {"label": model.label})
        found = read(path, **asked)
        other = found.y is not None and not {*np.unique(found.y).tolist()} <= {*model.classes}
        return read(path, **asked | {"labelled": False}) if other else found  # a last column with other values is not the label
    return read(path, **asked)


def labels_in(table: Table, positive: str | None) -> Array | None:
    """Return the labels of the table, or whether they are `positive`; None if there are none."""
    if positive is None:
        return table.y
    if table.y is None:
        raise InputError(f"--positive names a class, but {table.path} has no labels; leave it out")
    return np.asarray(table.y == class_named(positive, np.unique(table.y).tolist(), table.path))
