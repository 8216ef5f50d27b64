"""Formatting of results: intervals that stay valid when rounded, the cost of a search, and certificates described in words."""

from __future__ import annotations

import html
import math
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from gordan.certificates import Certificate
from gordan.certificates.data import About
from gordan.certificates.problem import Problem
from gordan.certificates.verify import statement
from gordan.floats import ieee_floats


def html_paragraph(result: object) -> str:
    """Return the `repr` of a result as a paragraph of HTML, for notebooks."""
    return f"<p>{html.escape(repr(result))}</p>"


def bound_to_data(certificate: Certificate, problem: Problem) -> Certificate:
    """Return the certificate with the hash of the data and a description of what it is about."""
    return described(replace(certificate, data_hash=problem.hash(certificate.intercept)), problem.about or About())


def described(certificate: Certificate, about: About) -> Certificate:
    """Return the certificate with a description: the facts in `about`, its claim in words and the version of gordan."""
    from gordan import __version__

    return replace(certificate, about=replace(about, version=__version__, statement=statement(certificate)))


@ieee_floats()
def outward(lower: float, upper: float) -> tuple[str, str]:
    """Format the ends of an interval with six digits, rounded away from each other so that the interval shown is still valid."""
    shown = []
    for value, rounding in ((lower, ROUND_FLOOR), (upper, ROUND_CEILING)):
        exact = Decimal(value)
        if value == 0 or not math.isfinite(value):
            shown.append(f"{value:g}")
            continue
        digit = Decimal(1).scaleb(exact.adjusted() - 5)
        shown.append(f"{float(exact.quantize(digit, rounding=rounding)):.6g}")
    return shown[0], shown[1]


def format_effort(count: int, unit: str, passes: float, seconds: float) -> str:
    """Format what a search cost, as in "3 steps, 8.2 passes, 0.0018 s"."""
    shown = f"{passes:,.0f}" if passes >= 1000 else f"{passes:.3g}"
    return f"{count:,} {unit}{'s' * (count != 1)}, {shown} pass{'es' * (shown != '1')}, {seconds:.2g} s"
