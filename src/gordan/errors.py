"""The two errors that gordan raises by design."""

from __future__ import annotations

import re

# How NumPy shows its own numbers and texts: what is inside is what people have passed.
SCALAR = re.compile(
    r"\bnp\.(?:(?:u?int|float|datetime|timedelta)[0-9]+|str_|longdouble)\(('[^']*'|[^()']*)\)|\bnp\.(True|False)_\b"
)


class InputError(ValueError):
    """An input was refused; the message says what was wrong, where, and what to pass instead."""

    def __init__(self, message: str) -> None:
        super().__init__(SCALAR.sub(lambda found: found[1] or found[2], message))


class MissingExtra(ImportError):
    """An optional part was asked for that is not installed; the message names the extra to install."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'gordan[{extra}]'")
