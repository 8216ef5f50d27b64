"""What the fits of both classifiers share: the wording of their messages, and the model of their planes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.certificates import Certificate
from gordan.io.model import Model, labels_of
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


def build_model(kind: str, classes: Array, found: Sequence[Any], names: Sequence[Any] | None, **facts: Any) -> Model:
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
