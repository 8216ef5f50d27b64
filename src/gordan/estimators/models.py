"""What the fits of both classifiers share: the wording of their messages, and the model of their planes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array, positive, seconds_at_most, whole_number_or_none
from gordan.certificates import Certificate
from gordan.io.model import Kind, Model, Options, labels_of
from gordan.statuses import Status


class Words(NamedTuple):
    """How messages are worded for users of Python or of the command line.

    `label` formats a label, `option` a parameter with or without a value, `losses` is the advice to choose a loss instead, and
    `rows` gives the numbers that the rows of X have for the user.
    """

    label: Callable[[Any], str]
    option: Callable[..., str]
    losses: str
    rows: Callable[[Sequence[int]], tuple[int, ...]] = tuple


IN_PYTHON = Words(
    repr, lambda name, value=None: name if value is None else f"{name}={value!r}", "LinearClassifier to choose a loss and C"
)


def limit_advice(status: Status, words: Words) -> str:
    """Return the advice to raise the limit that ended a search, or to fit again after an interrupt; empty if neither ended it."""
    if status is Status.INTERRUPTED:
        return "fit again without interrupting it"
    limit = {Status.ITERATION_LIMIT: "max_iter", Status.TIME_LIMIT: "time_limit"}.get(status)
    return f"pass a larger {words.option(limit)}" if limit else ""


def certificates_of(model: Model) -> list[Certificate | None]:
    """Return the certificate of each problem of a model, or None for each if it has none."""
    texts = model.certificates or [None] * len(model.margins)
    return [None if text is None else Certificate.from_json(text) for text in texts]


def options_of(given: Any, factors: Array | None) -> Options:
    """Return the parameters of a classifier as a model file has them; `factors` are the class weights of the fit.

    Only what a file can hold is kept: a method or a generator of random numbers that is an object is not.
    """
    seed, method, limit = given.random_state, getattr(given, "method", None), given.time_limit
    seed = seed.item() if isinstance(seed, np.integer) else seed
    return Options(
        tol=positive(given.tol, "tol"),
        max_iter=whole_number_or_none(given.max_iter, "max_iter"),
        time_limit=None if limit is None else seconds_at_most(limit),
        warm_start=bool(given.warm_start),
        random_state=seed if type(seed) is int else None,
        balanced=isinstance(given.class_weight, str),
        class_weight=None if factors is None else tuple(factors.tolist()),
        method=method if isinstance(method, str) else None,
        multi_class=getattr(given, "multi_class", None),
        on_inseparable=getattr(given, "on_inseparable", None),
    )


def parameters_of(model: Model, known: Collection[str]) -> dict[str, Any]:
    """Return the `known` parameters of a classifier that the options of a model say, with the names of its constructor."""
    options = model.options
    if options is None:
        return {}
    found = {part.name: getattr(options, part.name) for part in fields(Options) if part.name in known}
    if options.balanced:
        found["class_weight"] = "balanced"
    elif options.class_weight is not None:
        labels = [0, 1] if model.kind == "multilabel" else model.class_array().tolist()
        found["class_weight"] = dict(zip(labels, options.class_weight, strict=True))
    return {name: value for name, value in found.items() if value is not None}  # None is the default, or not said


def class_weights_of(model: Model) -> Array | None:
    """Return the class weights of the fit of a model; None if there were none, or the file does not say."""
    found = None if model.options is None else model.options.class_weight
    return None if found is None else np.array(found)


def build_model(kind: Kind, classes: Array, found: Sequence[Any], names: Sequence[Any] | None, **facts: Any) -> Model:
    """Return the model of planes that have w, b, a certificate and a place (or None), with further fields `facts`.

    It has certificates, or what is proved about the exact minimizers, only if these are known for all planes.
    """
    from gordan import __version__

    labels, dtype = labels_of(classes)
    texts = [plane.certificate.to_json() for plane in found if plane.certificate is not None]
    places = [plane.place.row() for plane in found if plane.place is not None]
    return Model(
        classes=labels,
        coef=np.vstack([plane.w.T for plane in found]),
        intercept=np.concatenate([np.atleast_1d(plane.b) for plane in found]),
        kind=kind,
        version=__version__,
        names=None if names is None else tuple(map(str, names)),
        certificates=tuple(texts) if len(texts) == len(found) else None,
        class_dtype=dtype,
        places=np.array(places) if len(places) == len(found) else None,
        **facts,
    )
