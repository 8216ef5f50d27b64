"""`gordan fit` and `gordan predict`: a model file from a table, and labels from a model file."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from gordan.arrays import seconds_at_most
from gordan.certificates.matrix import Matrix
from gordan.certificates.regions import same_labels
from gordan.cli.answers import headline, note, require_output, say, say_json, say_lines, say_witness
from gordan.cli.commands import ANSWERED, NO, OPEN, Interrupts, Saved, command, saved
from gordan.cli.data import Data, Place, Source, bytes_of, class_named, model_in, on_cluster, on_disk, tell
from gordan.cli.fields import fields
from gordan.cli.options import (
    Json,
    MultiClass,
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
from gordan.estimators.least_loss import LeastPlane, LossFitting, LossParameters, model_of_least_loss, places_of
from gordan.estimators.models import Words
from gordan.intercepts import Intercept
from gordan.io import Model, Table, read
from gordan.io.container import is_container
from gordan.io.delimited import DELIMITERS, in_pandas, settled
from gordan.io.model import planes as number_of_planes
from gordan.io.model import probabilities
from gordan.io.model import problems as number_of_problems
from gordan.io.reading import format_of, names_in
from gordan.io.table import Dialect, NoSuchColumn, Wanted, number
from gordan.losses import Loss
from gordan.memory import fits
from gordan.rows import stored
from gordan.rows.storage import require_finite
from gordan.statuses import Status
from gordan.verdicts import LossResult
from gordan.verdicts.multiclass import Binary
from gordan.verdicts.weights import row_weights

if TYPE_CHECKING:
    from gordan.arrays import Array
    from gordan.certificates import Certificate


# Options of `fit` that mean nothing to a loss.
ABOUT_MARGINS = ("norm", "nu", "multi_class", "on_inseparable", "method")

# ---- fit --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """Options: what is asked of the classifier, by the names of its parameters; and the column of the weights."""

    loss: Annotated[
        Loss | None, typer.Option(help="Fit the plane of least loss, as LinearClassifier does, for classes that overlap.")
    ] = None
    C: Annotated[float | None, typer.Option("--C", help="With --loss: inverse strength of the regularization. Default: 1.")] = (
        None
    )
    multi_class: WithMultiClass = MultiClass.OVO
    norm: Annotated[float, typer.Option(help="Norm of feature space, from 2 to inf.")] = 2.0
    nu: Annotated[float | None, typer.Option(help="Soft margin: at most this share of the rows lies inside the margin.")] = None
    intercept: WithIntercept = Intercept.FREE
    class_weight: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=WEIGHT", help="Weight of a class (repeatable), or: balanced."),
    ] = None
    weight: Weight = None
    on_inseparable: WithOnInseparable = OnInseparable.WARN
    tol: Annotated[float, typer.Option(help="Relative width of the proved interval to stop at.")] = 1e-4
    method: Annotated[str, typer.Option(help="auto, or the name of a method.", autocompletion=method_names)] = "auto"
    max_iter: Annotated[int | None, typer.Option(min=1, help="Maximum number of rounds for each plane.")] = None
    time_limit: TimeLimit = None

    def parameters(self, data: Data, device: str | None) -> Parameters:
        """Those of `MaxMarginClassifier`."""
        if self.C is not None:
            raise InputError("--C needs --loss, such as --loss squared_hinge")
        left_out = ("weight", "loss", "C")
        given = {each.name: getattr(self, each.name) for each in dataclass_fields(self) if each.name not in left_out}
        plain = {name: value.value if isinstance(value, StrEnum) else value for name, value in given.items()}
        return Parameters(**{**plain, "class_weight": class_weights(self.class_weight, data), "device": device})

    def loss_parameters(self, data: Data, device: str | None) -> LossParameters:
        """Those of `LinearClassifier`; what is about margins is refused."""
        for each in dataclass_fields(self):
            if each.name in ABOUT_MARGINS and getattr(self, each.name) != each.default:
                raise InputError(f"{option_told(each.name)} cannot be combined with --loss")
        assert self.loss is not None
        return LossParameters(
            self.loss.value,
            1.0 if self.C is None else self.C,
            intercept=self.intercept.value,
            tol=self.tol,
            class_weight=class_weights(self.class_weight, data),
            max_iter=self.max_iter,
            time_limit=self.time_limit,
            device=device,
        )


@command(
    "gordan fit data.csv -o model.gordan",
    "gordan fit data.csv -o model.gordan --loss logistic --C 0.1    classes that overlap",
    "gordan fit iris.csv -o iris.gordan --nu 0.4        three classes, soft margins",
    "gordan fit data.csv -o model.gordan --standardize    columns in different units",
    "gordan fit data.csv -o sparse.gordan --norm inf    few nonzero weights",
    "gordan fit data.csv -o model.gordan --weight count --class-weight balanced",
    "gordan fit big.npy -o big.gordan --time-limit 600 --on-inseparable raise",
    "gordan fit big.npy -o big.gordan --checkpoint big.run    rerun to resume",
    fields={
        "fit": "model classes interrupted planes",
        "planes": "positive against status margin gap nu separable loss objective n_iter passes seconds resumed witness",
        "least losses": "positive against status objective gap radius n_iter passes seconds resumed",
    },
)
def fit(
    source: Source,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")],
    asked: Asked,
    place: Place,
    standardize: Standardize = False,
    threads: Annotated[int | None, typer.Option(min=1, help="Maximum number of threads. Default: all cores.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Save the run to this file, and resume from it if it exists (see exit code 75)."),
    ] = None,
    no_certificates: Annotated[bool, flag("--no-certificates", "Leave the proofs out of the model file.")] = False,
    as_json: Json = False,
) -> int:
    """Fit the classifier of largest margin and write it to a model file, as MaxMarginClassifier does in Python.

    With more than two classes it fits one plane for each pair. Where no plane separates, it warns and fits the plane of least
    squared hinge loss. Ctrl-C, SIGTERM and the time limit keep the best planes so far.

    Exit code 0: the model was written. 1: not separable, with --on-inseparable raise. 3: no plane was found. Nothing is written
    in these two cases. 75: SIGTERM; with --checkpoint, rerun the command to resume. A finished fit removes its checkpoint.
    """
    require_output(output, source.file)
    require_output(checkpoint, source.file)
    if checkpoint is not None and output is not None and checkpoint.resolve() == output.resolve():
        raise InputError(f"{checkpoint} is given for the model and for the checkpoint; write them to two files")
    with Interrupts() as interrupts, Watch(f"reading {source.file}", asked.tol) as watch, on_cluster(place.cluster) as client:
        data = source.read(classes=(2, math.inf), client=client, memory_limit=place.memory_limit, weight=asked.weight)
        data = data.standardized() if standardize else data
        watch.about("fitting", data.X)
        weights = data.weights
        if asked.loss is not None:
            options = asked.loss_parameters(data, place.device)
            least = LeastLoss.found(options, data, weights, threads, checkpoint, interrupts, watch)
            watch.about("writing")
            return least.written(output, data, not no_certificates, as_json, interrupts)
        fitting = replace(
            _asked(asked.parameters(data, place.device), data, weights, bytes_of(place.memory_limit)),
            threads=threads,
            hashed=not no_certificates,
            watch=watch.moment if watch.visible else None,
            checkpoint=checkpoint,
        )
        found = _fitted(fitting, interrupts, watch)
        watch.about("writing")
        model = found.model(fitting, data, certificates=not no_certificates)
        written = Saved() if model is None else saved(output, model.save)
        if written.path is not None and not interrupts.pressed:
            paths = (path for outcome in found.outcomes for path in outcome.checkpoints)
            forget_checkpoints([outcome.status for outcome in found.outcomes], paths)
    told = remarks_on(model, interrupts.told if interrupts.pressed else found.missing, found.remarks(fitting))
    if as_json:
        content = fields("fit", data, model=written.path, interrupted=interrupts.pressed, planes=found.fields)
        say_json({**content, **written.fields}, (*data.notices, *told))
    else:
        found.tell(data, written.path)
    tell(told)
    return written.ended(interrupts.code or (found.code if model is None else ANSWERED))


def remarks_on(model: Model | None, missing: str, remarks: Iterable[str | None]) -> list[str]:
    """What there is to say beside the answer: why no model was written, or what warnings there are about it."""
    return [f"no model was written: {missing}"] if model is None else [f"warning: {each}" for each in remarks if each]


def class_weights(given: list[str] | None, data: Data) -> Any:
    """What `--class-weight` says: "balanced", or the weight of each class that is named."""
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


def _asked(options: Parameters, data: Data, weights: Array | None, limit: int | None) -> Fitting:
    """What is asked of the data, where it can be asked in so many bytes of memory."""
    check_parameters(options)
    classes, which = np.unique(data.y, return_inverse=True)
    deadline = time.perf_counter() + seconds_at_most(options.time_limit)
    c = row_weights(weights, options.class_weight, classes.tolist(), which)
    fitting = Fitting(options, stored(data.X, options.device), data.y, classes, c, deadline, words=words_for(data))
    if fitting.kind == "one-vs-one":
        require_finite(fitting.X)  # here, where a row has the number that it has in the file
        pair = np.sort(np.bincount(which))[-2:].sum() / data.n * stored_bytes(fitting.X)
        if options.device is None and not (fits(pair) and pair <= (limit or math.inf) / 2):
            raise InputError(
                f"{data.path} is large: the rows of two classes are copied for their plane, and do not fit into memory; "
                "pass --multi-class ovr, which copies none"
            )
    return fitting


def option_told(name: str, value: Any = None) -> str:
    """A parameter as it is written on a command line."""
    return f"--{name.replace('_', '-')}" + ("" if value is None else f" {value}")


@dataclass(eq=False)
class Found:
    """What came of the binary problems, as far as they were asked; `missing` says why there is no model, `code` with what code
    the program then ends."""

    outcomes: list[Outcome] = field(default_factory=list)
    missing: str = ""
    code: int = OPEN

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The planes for JSON."""
        sides = [{"positive": each.binary.label, "against": each.binary.other} for each in self.outcomes]
        return [fields("planes", each, each.plane, **side) for each, side in zip(self.outcomes, sides, strict=True)]

    def tell(self, data: Data, path: str | None) -> None:
        """The planes in words, and where the model was written."""
        for each in self.outcomes:
            tell_plane(each, data)
        if path is not None:
            say(f"model written to {path}: {len(data.classes)} classes, {data.d} feature{'s' * (data.d > 1)}")

    def remarks(self, fitting: Fitting) -> Iterator[str | None]:
        """What to warn of."""
        yield fitting.inseparable_message(self.outcomes)
        yield fitting.barely_separable_message(self.outcomes)
        yield from fitting.remarks(self.outcomes)

    def model(self, fitting: Fitting, data: Data, *, certificates: bool) -> Model | None:
        """The model, or None where a plane is missing."""
        if self.missing or len(self.outcomes) < number_of_planes(fitting.kind, len(fitting.classes)):
            return None
        proofs = [described(each.plane.certificate, each.binary, data, certificates) for each in self.outcomes]
        found = [replace(each.plane, certificate=proof) for each, proof in zip(self.outcomes, proofs, strict=True)]
        model = model_of(fitting.kind, fitting.classes, found, fitting.options, data.names)
        return replace(model, label=data.label or None, scaling=data.scaling)


def _fitted(fitting: Fitting, interrupts: Interrupts, watch: Watch) -> Found:
    """Ask one problem after the other, until a signal comes, or one of them has no plane and no other is wanted."""
    found, problems, known = Found(), list(fitting.problems()), dict[int, Outcome]()
    hard, order = fitting.hard_margins_together(problems)
    for k in order:
        if interrupts.pressed:
            break
        watch.about(problems[k].name)
        try:
            known[k] = fitting.outcome(k, problems[k], hard=hard.get(k))
        except NoPlane as error:
            found.outcomes = [*known.values(), *([] if error.outcome is None else [error.outcome])]
            found.missing, found.code = str(error), NO if found.outcomes[-1].witness is not None else OPEN
            break
        if fitting.decides_all(known[k]):
            break
    if not found.missing:
        found.outcomes = [known[k] for k in sorted(known)] if interrupts.pressed else fitting.comparable_outcomes(problems, known)
    if not found.missing and not all(outcome.found for outcome in found.outcomes):
        larger = "; try a larger --nu" if fitting.options.nu is not None else ""
        found.missing = f"no plane with a positive margin was found{larger}"
    return found


@dataclass(frozen=True, eq=False)
class LeastLoss:
    """What came of the binary problems of a fit of least loss, as far as they were asked."""

    fitting: LossFitting
    problems: list[Binary]
    results: list[LossResult]
    resumed: list[bool]

    @staticmethod
    def found(
        options: LossParameters,
        data: Data,
        weights: Array | None,
        threads: int | None,
        checkpoint: Path | None,
        interrupts: Interrupts,
        watch: Watch,
    ) -> LeastLoss:
        """Ask one problem after the other, until a signal comes."""
        classes, which = np.unique(data.y, return_inverse=True)
        deadline = time.perf_counter() + seconds_at_most(options.time_limit)
        c = row_weights(weights, options.class_weight, classes.tolist(), which)
        moments = watch.moment if watch.visible else None
        X = stored(data.X, options.device)
        fitting = LossFitting(options, X, data.y, classes, c, deadline, None, threads, moments, words_for(data), checkpoint)
        found = LeastLoss(fitting, [], [], [])
        for k, binary in enumerate(fitting.problems()):
            if interrupts.pressed:
                break
            watch.about(binary.name)
            path = fitting.checkpoint_of(k)
            found.problems.append(binary)
            found.resumed.append(path is not None and path.exists())
            found.results.append(fitting.result(binary, k=k))
        return found

    def written(self, output: Path, data: Data, certificates: bool, as_json: bool, interrupts: Interrupts) -> int:
        """Write the model, where there is a plane for each problem, and say what was found."""
        fitting, model = self.fitting, None
        if len(self.results) == number_of_problems(fitting.kind, len(fitting.classes)):
            planes = [
                LeastPlane.of(result, described(result.certificate if certificates else None, binary, data, certificates))
                for binary, result in zip(self.problems, self.results, strict=True)
            ]
            model = model_of_least_loss(fitting.kind, fitting.classes, planes, fitting.options, data.names)
            model = replace(model, label=data.label or None, scaling=data.scaling)
        written = Saved() if model is None else saved(output, model.save)
        self._forget_checkpoints(written.path is not None and not interrupts.pressed)
        remarks = remarks_on(model, interrupts.told, self._remarks())
        if as_json:
            told = [fields("least losses", result, **side) for result, side in zip(self.results, self._sides, strict=True)]
            content = fields("fit", data, model=written.path, interrupted=interrupts.pressed, planes=told)
            say_json({**content, **written.fields}, (*data.notices, *remarks))
        else:
            for k, (binary, result) in enumerate(zip(self.problems, self.results, strict=True)):
                headline(("" if binary.is_whole else f"{binary.name}: ") + result.sentence, result.status.separable)
                self._tell_resumed(k)
            if written.path is not None:
                say(f"model written to {written.path}: {len(data.classes)} classes, {data.d} feature{'s' * (data.d > 1)}")
        tell(remarks)
        return written.ended(interrupts.code or (OPEN if model is None else ANSWERED))

    def _remarks(self) -> Iterator[str | None]:
        yield self.fitting.convergence_message(self.problems, self.results)
        yield from self.fitting.remarks(self.results)

    @property
    def _sides(self) -> list[dict[str, Any]]:
        """What the planes are about, for JSON."""
        pairs = zip(self.problems, self.resumed, strict=True)
        return [{"positive": each.label, "against": each.other, "resumed": resumed} for each, resumed in pairs]

    def _forget_checkpoints(self, complete: bool) -> None:
        paths = [self.fitting.checkpoint_of(k) for k in range(len(self.results))]
        forget_checkpoints([result.status for result in self.results], paths if complete else [])

    def _tell_resumed(self, k: int) -> None:
        """Where problem k went on from, if it did."""
        if self.resumed[k]:
            say(f"  resumed from {self.fitting.checkpoint_of(k)}")


def described(certificate: Certificate | None, binary: Binary, data: Data, wanted: bool) -> Certificate | None:
    """The certificate of a binary problem, with where the data is from; None where none is wanted."""
    if certificate is None or not wanted:
        return None
    return data.described(certificate, binary.against_rest)


def words_for(data: Data) -> Words:
    """How labels and options are told on the command line."""
    names = {} if data.positive is None else {True: str(data.positive), False: "the rest"}
    return Words(lambda label: names.get(label, str(label)), option_told, "--loss and --C", data.rows_in_file)


def tell_plane(outcome: Outcome, data: Data) -> None:
    """A plane in words, with the rows of a witness where there is no softer plane."""
    if len(data.classes) > 2:
        say(f"{outcome.binary.name}:")
    headline(outcome.sentence, outcome.status.separable if outcome.plane.loss is None else outcome.plane.separable)
    if outcome.resumed:
        say(f"  resumed from {outcome.checkpoints[0]}")
    if outcome.witness is not None and not outcome.found:
        say_witness(outcome.witness, data)


def forget_checkpoints(statuses: Sequence[Status], paths: Iterable[Path | None]) -> None:
    """Remove the checkpoints of a model that is written, if nothing is left to be done for its planes, which ended so."""
    if all(status in (Status.SOLVED, Status.MARGIN_BELOW_TOL) for status in statuses):
        for path in (path for path in paths if path is not None):
            try:
                path.resolve().unlink(missing_ok=True)
            except OSError as error:
                note(f"{path}: cannot be removed: {error.strerror}")


# ---- predict ----------------------------------------------------------------------------------------------------------


@command(
    "gordan predict model.gordan new.csv > labels.txt",
    "gordan predict model.gordan new.csv --scores       signed distances from the planes",
    "gordan predict setosa.gordan iris.csv --positive setosa    for a model fitted with --positive",
    "gordan predict model.gordan new.csv --proved       which predictions are proved",
    "gordan predict model.gordan test.svm --json | jq .accuracy",
    fields={"predict": "labels n right accuracy"},
)
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `gordan fit` wrote.")],
    source: Source,
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
    """Print the predicted class of each row, one per line.

    Columns are matched by name where the model and the file have names, and other columns are ignored; without names, pass the
    --drop options of the fit.

    If the file has labels, stderr reports how many predictions match. The label column is the one with the name that it had in
    the fit, else the last column if that is not a feature.

    With --proved a second column says "proved" where the exact minimizer of the loss is proved to predict the same class, and
    "open" elsewhere. This trusts the model file, which `gordan verify` checks.
    """
    with Watch(f"reading {source.file}"):
        loaded = _model(model)
        table = _table_for(loaded, model, source, unlabelled)
        tell(table.notices)
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
        say_json(content | ({} if same is None else {"same_prediction": same}), table.notices)
        return ANSWERED
    say_lines(_lines(values if scores or proba else found[:, None], same))
    if table.left_out:
        note(f"{len(found)} lines are printed, none for the rows that are left out")
    tell(_compared(len(found), same, right, y is not None, loaded, proba))
    return ANSWERED


def _lines(columns: Array, same: Array | None) -> list[str]:
    """A line for each row: its label or numbers, and whether that is proved."""
    lines = ["\t".join(map(str, row)) for row in columns.tolist()]
    proved = [] if same is None else ["\tproved" if each else "\topen" for each in same.tolist()]
    return [line + told for line, told in zip(lines, proved, strict=True)] if proved else lines


def _compared(n: int, same: Array | None, right: int | None, labelled: bool, loaded: Model, proba: bool) -> Iterator[str]:
    """What the columns of probabilities are; how many of n predictions are proved, and match the labels of the file."""
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
    """Those of the classes, in their order; refused where scores have no such meaning."""
    if also_scores:
        raise InputError("--scores and --proba print different numbers; leave out one of them")
    if loaded.loss is None or not Loss(loaded.loss).probabilities:
        raise InputError(f"{path} has no probabilities: it was not fitted with --loss logistic or multinomial")
    return probabilities(loaded.kind, scores)


def _proved(loaded: Model, path: Path, X: Any, found: Array, numbers: bool) -> Array:
    """For each row, whether the exact minimizer is proved to predict that class."""
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


def _model(path: Path) -> Model:
    """The model in a file; whoever swaps the two files is told so."""
    if not is_container(path):
        raise InputError(f"{path} is not a model file of gordan; the model comes first, then the data")
    return model_in(path)


def _table_for(model: Model, own: Path, source: Source, unlabelled: bool) -> Table:
    """`read_for` the model of the file `own`; where a category is in place of its levels, say how to make columns of these."""
    try:
        return read_for(model, source, unlabelled)
    except NoSuchColumn as error:
        path, missing = on_disk(source.file), str(error.column)
        if missing not in (model.names or ()) or format_of(path) not in DELIMITERS:
            raise
        hint = _level_hint(model.names or (), missing, own, path, Dialect(**source.dialect))
        raise InputError(hint) if hint else error from None


def _level_hint(wanted: Sequence[str], missing: str, model: Path, path: Path, dialect: Dialect) -> str:
    """How to make columns of levels for a file that has their category, where the `missing` one is one and all other columns are
    there; else nothing."""
    dialect = settled(path, format_of(path), Wanted(dialect=dialect))[0].dialect
    names = names_in(path, dialect) or []
    found = [name for name in names if name not in wanted and _levels_of(name, wanted)]
    absent = [name for name in wanted if name not in names and not any(_levels_of(factor, [name]) for factor in found)]
    if absent or not found:  # what is not there would become zeros
        return f"{path} has no column named {absent[0]!r}" if found else ""
    own = next(name for name in found if _levels_of(name, [missing]))
    frame = f"{in_pandas(path, dialect)}.dropna(subset={found!r})"
    columns = f"gordan.io.Model.load({str(model)!r}).names"
    return (
        f"{path} has no column named {missing!r}, but {own!r}: if that is a category, it needs the 0/1 columns that the data of "
        f"the fit had. In Python: pandas.get_dummies({frame}, columns={found!r}, dtype=int).reindex(columns={columns}, "
        "fill_value=0).to_csv('numbers.csv', index=False), where a level that the fit did not have counts as the first one"
    )


def _levels_of(factor: str, names: Sequence[str]) -> list[str]:
    """The names that columns of levels have, as pandas makes them."""
    return [name for name in names if name.startswith(f"{factor}_")]


def read_for(model: Model, source: Source, unlabelled: bool) -> Table:
    """The table to predict, with the columns that the model knows: by name where both have names, else by position."""
    path = on_disk(source.file)
    named = model.names is not None and format_of(path) in ("csv", "tsv", "parquet")
    features: Any = model.names if named else model.coef.shape[1]
    if unlabelled and source.label is not None:
        raise InputError("--label names a label column and --unlabelled says that there is none; leave out one of them")
    asked = {"features": features, "labelled": False if unlabelled else None, **source.columns}
    if named and model.label is not None and source.label is None and not unlabelled:
        with suppress(NoSuchColumn):  # a feature that is not there is refused below
            return read(path, **asked | {"label": model.label})
        found = read(path, **asked)
        other = found.y is not None and not {*np.unique(found.y).tolist()} <= {*model.classes}
        return read(path, **asked | {"labelled": False}) if other else found  # the last column is not its label
    return read(path, **asked)


def labels_in(table: Table, positive: str | None) -> Array | None:
    """The labels of the table, or whether they are `positive`; None where there are none."""
    if positive is None:
        return table.y
    if table.y is None:
        raise InputError(f"--positive names a class, but {table.path} has no labels; leave it out")
    return np.asarray(table.y == class_named(positive, np.unique(table.y).tolist(), table.path))
