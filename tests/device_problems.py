"""Small problems of regularized losses through what is done to rows on a device, in torch on the CPU: as `loss_problems`, whose
promises are held against exact minimizers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import loss_problems
import numpy as np
import pytest

from gordan.rows import device


def held(X: np.ndarray) -> device.Device:
    """X as a tensor of the narrowest type that has its entries."""
    torch = pytest.importorskip("torch", reason="torch is missing: pip install 'gordan[gpu]'")
    torch.set_num_threads(1)  # threads that wait for each other on busy cores cost more than they bring
    X = torch.from_numpy(X)
    kinds = (torch.float16, torch.float32, torch.float64)
    return device.Device(next(X.to(kind) for kind in kinds if bool((X.to(kind).double() == X).all())))


@contextmanager
def as_on_a_gpu() -> Iterator[None]:
    """Within: tensors stay where they are, however few rows there are, and proofs do their sums there."""
    with mock.patch.object(device, "MIN_ENTRIES", 0), mock.patch.object(device.Device, "proves_on_device", True):
        yield


def chunk(family: str, kind: str, seed: str, size: int) -> tuple[Counter[str], list[tuple[str, str]]]:
    """`size` problems, by turns of each loss."""
    with as_on_a_gpu():
        return loss_problems.chunk(family, kind, f"device {seed}", size, held)
