"""The two errors that gordan raises by design."""

from __future__ import annotations


class InputError(ValueError):
    """An input was refused; the message says what was wrong, where, and what to pass instead."""


class MissingExtra(ImportError):
    """An optional part was asked for that is not installed; the message names the extra to install."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'gordan[{extra}]'")
