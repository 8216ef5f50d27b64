"""The two checkers asked together, and rows that have to be brought before they are looked at."""

from __future__ import annotations

import copy

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


def unchecked(certificate, **change):
    """The certificate with these fields, without the checks of its constructor: checkers do not rely on them."""
    changed = copy.copy(certificate)
    vars(changed).update(change)
    return changed


class Distant(Dense):
    """Rows on another machine: only those that are asked for together come from there."""

    def __init__(self, X):
        super().__init__(X)
        self.brought = set()

    def each_row(self, rows):
        self.brought |= {int(i) for i in rows}
        return Dense(self.arrays[0]).each_row(rows)

    def row(self, i):
        raise AssertionError("one by one")
