"""gordan: the maximum-margin separator with a certified interval for its margin, or a proof that there is none.

Inside, every accelerated Perceptron is two online learners playing the game max_w min_p pᵀAw.
"""

from gordan import methods, rows
from gordan.certificates import Certificate, Check, verify
from gordan.errors import InputError, MissingExtra
from gordan.research import play
from gordan.trace import Moment, Trace
from gordan.verdicts import Diagnosis, MarginResult, Verdict, Witness, diagnose, maximize_margin, separate

__version__ = "0.1.0.dev0"
__all__ = [
    "Certificate",
    "Check",
    "Diagnosis",
    "InputError",
    "MarginResult",
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
