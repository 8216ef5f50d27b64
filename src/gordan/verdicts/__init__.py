"""The functions people call."""

from gordan.verdicts.diagnose import Diagnosis, diagnose
from gordan.verdicts.separate import Verdict, separate
from gordan.verdicts.telling import Witness, outward

__all__ = ["Diagnosis", "Verdict", "Witness", "diagnose", "outward", "separate"]
