"""The functions that answer questions about data: `separate`, `maximize_margin`, `minimize_loss` and `diagnose`."""

from gordan.verdicts.diagnose import Diagnosis, diagnose
from gordan.verdicts.formatting import outward
from gordan.verdicts.loss import LossResult, minimize_loss
from gordan.verdicts.many import ManyLosses, ManyMargins, ManyVerdicts
from gordan.verdicts.margin import maximize_margin
from gordan.verdicts.result import MarginResult
from gordan.verdicts.separate import Verdict, separate
from gordan.verdicts.witnesses import Witness

__all__ = [
    "Diagnosis",
    "LossResult",
    "ManyLosses",
    "ManyMargins",
    "ManyVerdicts",
    "MarginResult",
    "Verdict",
    "Witness",
    "diagnose",
    "maximize_margin",
    "minimize_loss",
    "outward",
    "separate",
]
