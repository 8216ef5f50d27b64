"""The two checkers asked together, and rows that have to be brought before they are looked at."""

from __future__ import annotations

import gordan
from gordan.certificates import standalone


def both(certificate, X, y):
    """What `verify` and the standalone checker say, on the certificate as a file; refusing to read counts as rejecting."""
    text = certificate.to_json()
    try:
        first = bool(gordan.verify(gordan.Certificate.from_json(text), X, y))
    except gordan.InputError:
        first = False
    try:
        second = standalone.check(standalone.read_certificate(text), X, y)[0]
    except standalone.BadInput:
        second = False
    return first, second


class Distant:
    """Rows on another machine: those that were not asked for together are not there."""

    each = None

    def __init__(self, rows):
        self._rows, self._brought = rows, ()

    def have(self, rows):
        self._brought = tuple(rows)

    def __getitem__(self, i):
        assert i in self._brought
        return self._rows[i]
