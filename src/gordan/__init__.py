"""gordan: the maximum-margin separator with a certified interval for its margin, or a proof that there is none.

Inside, every accelerated Perceptron is two online learners playing the game max_w min_p pᵀAw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gordan import methods, rows
from gordan.certificates import Certificate, Check, verify
from gordan.errors import InputError, MissingExtra
from gordan.research import play
from gordan.trace import Moment, Trace
from gordan.verdicts import Diagnosis, MarginResult, Verdict, Witness, diagnose, maximize_margin, separate

if TYPE_CHECKING:
    from gordan.estimators import InseparableWarning as InseparableWarning
    from gordan.estimators import MaxMarginClassifier as MaxMarginClassifier
    from gordan.plots import BoundaryDisplay as BoundaryDisplay
    from gordan.plots import ConvergenceDisplay as ConvergenceDisplay
    from gordan.plots import MarginDisplay as MarginDisplay

__version__ = "0.1.0.dev0"
__all__ = [
    "BoundaryDisplay",
    "Certificate",
    "Check",
    "ConvergenceDisplay",
    "Diagnosis",
    "InputError",
    "InseparableWarning",
    "MarginDisplay",
    "MarginResult",
    "MaxMarginClassifier",
    "MissingExtra",
    "Moment",
    "Trace",
    "Verdict",
    "Witness",
    "diagnose",
    "maximize_margin",
    "methods",
    "play",
    "rows",
    "separate",
    "verify",
]

# What takes scikit-learn (over a second to import) is fetched when it is first asked for.
_LATER = {
    "BoundaryDisplay": "gordan.plots",
    "ConvergenceDisplay": "gordan.plots",
    "InseparableWarning": "gordan.estimators",
    "MarginDisplay": "gordan.plots",
    "MaxMarginClassifier": "gordan.estimators",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'gordan' has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "annotations"})
