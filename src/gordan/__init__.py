"""gordan: linear classification with proofs.

It decides with proof whether a plane separates two classes (`separate`), finds the plane of largest margin (`maximize_margin`,
`MaxMarginClassifier`) or of least loss (`minimize_loss`, `LinearClassifier`) with certified intervals, and finds out why a
regression has no finite estimate (`diagnose`). `verify` checks the certificates of all of them. Inside, every accelerated
Perceptron is two online learners playing the game max_w min_p pᵀAw (`play`, `methods`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gordan.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from gordan import datasets, methods, plots, report, rows
    from gordan.certificates import Certificate, Check
    from gordan.certificates.verify import verify
    from gordan.errors import InputError, MissingExtra
    from gordan.estimators import IndexWarning, InseparableWarning, LinearClassifier, MaxMarginClassifier, load
    from gordan.plots import BoundaryDisplay, ConvergenceDisplay, MarginDisplay, ProvedDisplay
    from gordan.research import play
    from gordan.trace import Moment, Trace
    from gordan.verdicts import LossResult, ManyLosses, ManyMargins, ManyVerdicts, MarginResult, Verdict, Witness
    from gordan.verdicts.diagnose import Diagnosis, diagnose
    from gordan.verdicts.loss import minimize_loss
    from gordan.verdicts.margin import maximize_margin
    from gordan.verdicts.separate import separate

__version__ = "0.2.0.dev0"
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

# Names are imported on first access: NumPy and the rest take most of a second, scikit-learn another one, and the command line has
# to respond to Ctrl-C in that time.
_MODULES = {
    "certificates": "Certificate Check verify",
    "errors": "InputError MissingExtra",
    "estimators": "IndexWarning InseparableWarning LinearClassifier MaxMarginClassifier load",
    "plots": "BoundaryDisplay ConvergenceDisplay MarginDisplay ProvedDisplay",
    "research": "play",
    "trace": "Moment Trace",
    "verdicts": "Diagnosis LossResult ManyLosses ManyMargins ManyVerdicts MarginResult Verdict Witness diagnose maximize_margin "
    "minimize_loss separate",
}
__getattr__ = lazy_attributes(
    __name__, {name: f"gordan.{module}" for module, names in _MODULES.items() for name in names.split()}
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING", "annotations", "lazy_attributes"})
