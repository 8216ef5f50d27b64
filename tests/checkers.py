"""The two checkers asked together, and rows that have to be brought before they are looked at."""

from __future__ import annotations

import gordan
from gordan.certificates import standalone
from gordan.rows.memory import Dense


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


class Distant(Dense):
    """Rows on another machine: those that were not asked for together are not there."""

    def __init__(self, X):
        super().__init__(X)
        self.brought = set()

    def prefetch(self, rows):
        self.brought |= {int(i) for i in rows}

    def row(self, i):
        assert i in self.brought
        return super().row(i)
