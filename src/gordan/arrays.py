"""The one type alias: NumPy arrays whose element type is said in words where it matters."""

from typing import Any, TypeAlias

import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
