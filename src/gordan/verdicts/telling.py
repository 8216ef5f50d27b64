"""How answers are told: the witness in words, and brackets that are still brackets when printed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from gordan.arrays import Array
from gordan.certificates import Certificate


@dataclass(frozen=True)
class Witness:
    """Rows and coprime positive integer weights with Σ weight · y_i (x_i, 1) = 0 exactly (Σ weight · y_i x_i = 0 without
    intercept): no plane gets them all right. `one_class`: they are all of one class, as they may be without intercept."""

    rows: tuple[int, ...]
    weights: tuple[int, ...]
    one_class: bool = field(default=False, repr=False, compare=False)

    @staticmethod
    def of(proof: Certificate, signs: Array) -> Witness:
        """The witness that a certificate holds; `signs` are those of all rows."""
        rows = tuple(int(row) for row in proof.rows)
        return Witness(rows, tuple(int(weight) for weight in proof.weights), len({int(signs[row]) for row in rows}) == 1)

    def __str__(self) -> str:
        if len(self.rows) == 1:
            return f"row {self.rows[0]} is zero"
        if len(self.rows) == 2 and self.weights == (1, 1) and self.one_class:
            return f"rows {self.rows[0]} and {self.rows[1]} have opposite features and the same label"
        if len(self.rows) == 2 and self.weights == (1, 1):
            return f"rows {self.rows[0]} and {self.rows[1]} have the same features and different labels"
        shown = ", ".join(map(str, self.rows[:6])) + (", …" if len(self.rows) > 6 else "")
        return f"the weighted rows {shown} ({len(self.rows)} in all) cancel exactly"


def outward(lower: float, upper: float) -> tuple[str, str]:
    """The ends of a bracket with six digits, rounded away from each other: what is shown is still a bracket."""
    from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

    shown = []
    for value, rounding in ((lower, ROUND_FLOOR), (upper, ROUND_CEILING)):
        exact = Decimal(value)
        if value == 0 or not math.isfinite(value):
            shown.append(f"{value:g}")
            continue
        digit = Decimal(1).scaleb(exact.adjusted() - 5)
        shown.append(f"{float(exact.quantize(digit, rounding=rounding)):.6g}")
    return shown[0], shown[1]
