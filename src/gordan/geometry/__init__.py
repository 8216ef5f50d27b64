"""Where the players live and how distance is measured there.

Sets: `Simplex` (plain, capped, two half-simplices), `LossWeights`, `Ball` (R^d, l2 ball, q-ball). Regularizers: `Entropy`,
`LossCost`, `SquaredNorm`;
each has value, gradient, Bregman divergence, and the mirror map that every learner's argmin is made of.
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
