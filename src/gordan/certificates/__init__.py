"""Certificates and their checkers. A certificate is plain data; `verify` re-derives its claim from X and y without a solver."""

from gordan.certificates.data import Certificate
from gordan.certificates.verify import Check, verify

__all__ = ["Certificate", "Check", "verify"]
