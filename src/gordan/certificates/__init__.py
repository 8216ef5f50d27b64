"""What is proved. A certificate is plain data; `verify` re-derives its claim from X and y and imports no solver."""

from gordan.certificates.data import Certificate
from gordan.certificates.verify import Check, verify

__all__ = ["Certificate", "Check", "verify"]
