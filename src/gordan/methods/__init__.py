"""The named methods, one small module each, with formula, theorem, game form and published form.

`gordan.methods.names()` lists them, `.get(name)` returns an entry, `.register(...)` adds one. Each is a function that takes
its options and returns a `Method` for `gordan.play`:

>>> import gordan
>>> gordan.methods.smooth_perceptron(form="game").guarantee.statement
'gap <= 8 D/(T(T+1)), margin >= gamma - 8 D/(gamma T(T+1))'
"""

from gordan.methods.accelerated_perceptron import accelerated_perceptron
from gordan.methods.frank_wolfe import frank_wolfe
from gordan.methods.gradient_descent import gradient_descent, normalized_gradient_descent
from gordan.methods.mirror_descent import mirror_descent
from gordan.methods.mirror_prox_perceptron import mirror_prox_perceptron
from gordan.methods.nesterov import nesterov
from gordan.methods.p_norm import accelerated_p_norm_perceptron, box_perceptron, smooth_p_norm_perceptron
from gordan.methods.pdhg import pdhg
from gordan.methods.perceptron import p_norm_perceptron, perceptron
from gordan.methods.projection_rescaling import projection_rescaling
from gordan.methods.registry import Entry, Guarantee, Method, get, names, register
from gordan.methods.rescaled_perceptron import rescaled_perceptron
from gordan.methods.rescaling import rescaling
from gordan.methods.robust import robust_perceptron
from gordan.methods.smooth_perceptron import smooth_perceptron
from gordan.methods.steepest_descent import steepest_descent

__all__ = [
    "Entry",
    "Guarantee",
    "Method",
    "accelerated_p_norm_perceptron",
    "accelerated_perceptron",
    "box_perceptron",
    "frank_wolfe",
    "get",
    "gradient_descent",
    "mirror_descent",
    "mirror_prox_perceptron",
    "names",
    "nesterov",
    "normalized_gradient_descent",
    "p_norm_perceptron",
    "pdhg",
    "perceptron",
    "projection_rescaling",
    "register",
    "rescaled_perceptron",
    "rescaling",
    "robust_perceptron",
    "smooth_p_norm_perceptron",
    "smooth_perceptron",
    "steepest_descent",
]
