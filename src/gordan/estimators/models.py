"""What the fits of both classifiers share: how they speak, and the model file that their planes make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gordan.arrays import Array
from gordan.io.model import Model, labels_of


class Words(NamedTuple):
    """How whoever is spoken to writes a label, and a parameter with or without a value; what chooses a loss instead; and which
    numbers rows of X have there."""

    label: Callable[[Any], str]
    option: Callable[..., str]
    losses: str
    rows: Callable[[Sequence[int]], tuple[int, ...]] = tuple


IN_PYTHON = Words(
    repr, lambda name, value=None: name if value is None else f"{name}={value!r}", "LinearClassifier to choose a loss and C"
)


def places_of_planes(found: Sequence[Any]) -> Array | None:
    """What is proved of the exact minimizers, as a model file holds it; None where it is not known of all planes."""
    rows = [plane.place.row() for plane in found if plane.place is not None]
    return np.array(rows) if len(rows) == len(found) else None


def with_planes(kind: str, classes: Array, found: Sequence[Any], names: Sequence[Any] | None, **facts: Any) -> Model:
    """The model of planes that have w, b and a certificate (or None), with these facts beside."""
    from gordan import __version__

    labels, dtype = labels_of(classes)
    texts = [plane.certificate.to_json() for plane in found if plane.certificate is not None]
    return Model(
        classes=labels,
        coef=np.vstack([plane.w.T for plane in found]),
        intercept=np.concatenate([np.atleast_1d(plane.b) for plane in found]),
        kind=kind,
        version=__version__,
        names=None if names is None else tuple(map(str, names)),
        certificates=tuple(texts) if len(texts) == len(found) else None,
        class_dtype=dtype,
        **facts,
    )
