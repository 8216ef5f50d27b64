"""gordan: the maximum-margin separator with a certified interval for its margin, or a proof that there is none.

Inside, every accelerated Perceptron is two online learners playing the game max_w min_p pᵀAw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gordan import methods, rows
from gordan.certificates import Certificate, Check, verify
from gordan.errors import InputError, MissingExtra
from gordan.lazy_imports import lazy_attributes
from gordan.research import play
from gordan.trace import Moment, Trace
from gordan.verdicts import (
    Diagnosis,
    LossResult,
    ManyLosses,
    ManyMargins,
    ManyVerdicts,
    MarginResult,
    Verdict,
    Witness,
    diagnose,
    maximize_margin,
    minimize_loss,
    separate,
)

if TYPE_CHECKING:
    from gordan import datasets as datasets
    from gordan import plots as plots
    from gordan import report as report
    from gordan.estimators import IndexWarning as IndexWarning
    from gordan.estimators import InseparableWarning as InseparableWarning
    from gordan.estimators import LinearClassifier as LinearClassifier
    from gordan.estimators import MaxMarginClassifier as MaxMarginClassifier
    from gordan.estimators import load as load
    from gordan.plots import BoundaryDisplay as BoundaryDisplay
    from gordan.plots import ConvergenceDisplay as ConvergenceDisplay
    from gordan.plots import MarginDisplay as MarginDisplay
    from gordan.plots import ProvedDisplay as ProvedDisplay

__version__ = "0.1.0"
__all__ = [
    "BoundaryDisplay",
    "Certificate",
    "Check",
    "ConvergenceDisplay",
    "Diagnosis",
    "IndexWarning",
    "InputError",
    "InseparableWarning",
    "LinearClassifier",
    "LossResult",
    "ManyLosses",
    "ManyMargins",
    "ManyVerdicts",
    "MarginDisplay",
    "MarginResult",
    "MaxMarginClassifier",
    "MissingExtra",
    "Moment",
    "ProvedDisplay",
    "Trace",
    "Verdict",
    "Witness",
    "datasets",
    "diagnose",
    "load",
    "maximize_margin",
    "methods",
    "minimize_loss",
    "play",
    "plots",
    "report",
    "rows",
    "separate",
    "verify",
]

# What takes scikit-learn, which is over a second to import, or is not always needed.
__getattr__ = lazy_attributes(
    __name__,
    {
        "BoundaryDisplay": "gordan.plots",
        "ConvergenceDisplay": "gordan.plots",
        "IndexWarning": "gordan.estimators",
        "InseparableWarning": "gordan.estimators",
        "MarginDisplay": "gordan.plots",
        "LinearClassifier": "gordan.estimators",
        "MaxMarginClassifier": "gordan.estimators",
        "ProvedDisplay": "gordan.plots",
        "datasets": "gordan.datasets",
        "load": "gordan.estimators",
        "plots": "gordan.plots",
        "report": "gordan.report",
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING", "annotations", "fetched"})
