"""The sets of the players, and the regularizers on them.

The sets are `Simplex` (plain, capped, two half-simplices), `LossWeights` and `Ball` (R^d, l2 ball, q-ball). The regularizers are
`Entropy`, `LossCost` and `SquaredNorm`; each has value, gradient, Bregman divergence, and the mirror map that every learner's
argmin uses.
"""

from gordan.geometry.regularizers import Entropy, NoisySquare, Regularizer, SquaredNorm
from gordan.geometry.sets import Ball, Domain, Simplex, dual_exponent, dual_vector, norm
from gordan.geometry.weights import LossCost, LossWeights

__all__ = [
    "Ball",
    "Domain",
    "Entropy",
    "LossCost",
    "LossWeights",
    "NoisySquare",
    "Regularizer",
    "Simplex",
    "SquaredNorm",
    "dual_exponent",
    "dual_vector",
    "norm",
]
