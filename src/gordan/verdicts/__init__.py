"""The functions people call."""

from gordan.verdicts.separate import Verdict, separate
from gordan.verdicts.telling import Witness, outward

__all__ = ["Verdict", "Witness", "outward", "separate"]
