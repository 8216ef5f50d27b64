"""The two errors that gordan raises by design, suggestions for misspelled names, and imports of optional dependencies."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

# How NumPy prints its scalars; messages show only what is inside, which is what the user passed.
SCALAR = re.compile(
    r"\bnp\.(?:(?:u?int|float|datetime|timedelta)[0-9]+|str_|longdouble)\(('[^']*'|[^()']*)\)|\bnp\.(True|False)_\b"
)


class InputError(ValueError):
    """An input was refused; the message says what was wrong, where, and what to pass instead."""

    def __init__(self, message: str) -> None:
        super().__init__(SCALAR.sub(lambda found: found[1] or found[2], message))


class BeyondFloats(InputError):
    """Products with X are not finite, or too small; solvers end where that happens."""


@contextmanager
def input_errors(prefix: str, *kinds: type[Exception]) -> Iterator[None]:
    """Return a context in which exceptions of these kinds are InputErrors whose message has this prefix."""
    try:
        yield
    except kinds as error:
        raise InputError(f"{prefix}: {error}") from None


def did_you_mean(given: object, names: Iterable[object]) -> str:
    """Return a "did you mean" question about the name nearest to what was given, or nothing if none is near."""
    known = {str(name).lower(): name for name in names}
    near = difflib.get_close_matches(str(given).lower(), known, 1)
    return f"did you mean {known[near[0]]!r}?" if near else ""


def one_of(given: object, names: Iterable[object]) -> str:
    """Return advice that lists the names to choose from, and asks about the nearest one if there is one."""
    listed = [str(name) if isinstance(name, str) else name for name in names]  # not the members of an enumeration
    return "; ".join(filter(None, [f"choose one of {', '.join(map(repr, listed))}", did_you_mean(given, listed)]))


class MissingExtra(ImportError):
    """An optional dependency is not installed; the message names the extra to install."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'gordan[{extra}]'")


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """Import and return a module of an optional dependency, or raise a MissingExtra."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(module.partition(".")[0], extra, purpose) from None
